/* The tokenizer's rules on small vocabularies made here: merging, added tokens, BOS and EOS, byte fallback, what is refused. */
#include "tokenizer_build.h"

#include <pthread.h>

#define SPECIAL MICA_TOKENIZE_PARSE_SPECIAL
#define BOS MICA_TOKENIZE_ADD_BOS

/* Checks that `text` gives the ids, which end at -1. */
#define IDS(v, text, flags, ...) check_list(v, text, flags, (const int32_t[]){__VA_ARGS__, -1})

static void check_list(const mica_vocab *v, const char *text, unsigned flags, const int32_t *want)
{
    size_t n = 0;
    while (want[n] >= 0) {
        n++;
    }
    check_ids(v, text, strlen(text), flags, want, n, text);
}

/* Ids 0..255: bytes; then these. */
enum { AB = 256, BC, ABC, HI, SPACE_A, CTRL, USER, USER_LONG, END_TURN, BPE_TOKENS };

static recipe bpe_recipe(void)
{
    recipe r = {.model = "gpt2", .pre = "gpt-2", .no_scores = true};
    add_alphabet(&r);
    add_token(&r, "ab", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "bc", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "abc", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "hi", MICA_TOKEN_CONTROL, 0); /* the merge "h i" would make a control token of typed text */
    add_token(&r, "\xC4\xA0" "a", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "<|c|>", MICA_TOKEN_CONTROL, 0);
    add_token(&r, "<u>", MICA_TOKEN_USER, 0);
    add_token(&r, "<u>\xC3\xA9 ", MICA_TOKEN_USER, 0);
    add_token(&r, "<|im_end|>", MICA_TOKEN_CONTROL, 0);
    assert_int_equal(r.n_tokens, BPE_TOKENS);
    const char *merges[] = {"b c", "a b", "ab c", "h i", "\xC4\xA0 a", "a zz"};
    memcpy(r.merges, merges, sizeof(merges));
    r.n_merges = 6;
    return r;
}

static void bpe_merges(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    built *b = make_vocab(&r);
    const mica_vocab *v = b->o.vocab;
    if (b->status) {
        fail_msg("%s", b->err.message);
    }
    IDS(v, "abc", 0, 'a', BC); /* "b c" comes first, and "a bc" is no merge */
    IDS(v, "ab", 0, AB);
    IDS(v, "abab", 0, AB, AB);
    IDS(v, "bcbcb", 0, BC, BC, 'b');
    IDS(v, "x a", 0, 'x', SPACE_A);
    IDS(v, "hi", 0, 'h', 'i');
    IDS(v, "hi", SPECIAL, HI);
    IDS(v, "azz", 0, 'a', 'z', 'z'); /* a merge whose result is no token is ignored */
    IDS(v, "\xC3\xA9", 0, 0xC3, 0xA9);
    IDS(v, "", 0, -1);
    assert_int_equal(mica_vocab_size(v), BPE_TOKENS);
    assert_int_equal(mica_vocab_find(v, "abc", 3), ABC);
    assert_int_equal(mica_vocab_find(v, "", 0), -1);
    assert_int_equal(mica_vocab_type(v, CTRL), MICA_TOKEN_CONTROL);
    assert_int_equal(mica_vocab_type(v, -5), MICA_TOKEN_UNKNOWN);
    free_vocab(b);
}

static void added_tokens(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    built *b = make_vocab(&r);
    const mica_vocab *v = b->o.vocab;
    IDS(v, "a<u>b", 0, 'a', USER, 'b');
    IDS(v, "<u>\xC3\xA9 <u>\xC3\xA9x", 0, USER_LONG, USER, 0xC3, 0xA9, 'x'); /* the longest that fits */
    IDS(v, "<|c|>", 0, '<', '|', 'c', '|', '>');
    IDS(v, "<|c|><|c|<|c|>", SPECIAL, CTRL, '<', '|', 'c', '|', CTRL);
    IDS(v, "a<u>bc", 0, 'a', USER, BC); /* no merge across it */
    const int32_t mixed[] = {CTRL, 'a', USER_LONG, 0xC3, 0xA9, SPACE_A};
    check_text(v, mixed, 6, false, "a<u>\xC3\xA9 \xC3\xA9 a", 11, "hidden");
    check_text(v, (const int32_t[]){CTRL, 'a'}, 2, true, "<|c|>a", 6, "shown");
    free_vocab(b);
}

static void bos_and_eos(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    r.keys[0] = "bos_token_id", r.values[0] = CTRL, r.keys[1] = "eos_token_id", r.values[1] = END_TURN;
    built *b = make_vocab(&r);
    assert_false(mica_vocab_special_tokens(b->o.vocab)->add_bos); /* byte-level files do not ask by default */
    IDS(b->o.vocab, "x", BOS, 'x');
    free_vocab(b);
    r.pre = "llama-bpe"; /* this family does */
    b = make_vocab(&r);
    assert_true(mica_vocab_special_tokens(b->o.vocab)->add_bos);
    IDS(b->o.vocab, "x", BOS, CTRL, 'x');
    IDS(b->o.vocab, "abc", 0, ABC); /* and takes whole words as they are */
    free_vocab(b);
    r.keys[2] = "add_bos_token", r.values[2] = 1, r.keys[3] = "add_eos_token", r.values[3] = 1;
    b = make_vocab(&r);
    const mica_vocab *v = b->o.vocab;
    IDS(v, "x", 0, 'x');
    IDS(v, "x", BOS, CTRL, 'x', END_TURN);
    IDS(v, "", BOS, CTRL, END_TURN);
    IDS(v, "<|c|>x<|im_end|>", BOS | SPECIAL, CTRL, 'x', END_TURN);
    IDS(v, "x<|c|>", BOS | SPECIAL, CTRL, 'x', CTRL, END_TURN);
    IDS(v, "<|c|>", BOS, CTRL, '<', '|', 'c', '|', '>', END_TURN);
    free_vocab(b);
    r.values[2] = 0;
    b = make_vocab(&r);
    IDS(b->o.vocab, "x", BOS, 'x', END_TURN);
    free_vocab(b);
}

static void ends_of_generation(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    r.keys[0] = "eos_token_id", r.values[0] = ABC;
    add_token(&r, "<|end|>", MICA_TOKEN_CONTROL, 0);
    add_token(&r, "</s>", MICA_TOKEN_USER, 0);
    add_token(&r, "<eos>", MICA_TOKEN_NORMAL, 0);
    built *b = make_vocab(&r);
    const mica_vocab *v = b->o.vocab;
    assert_true(mica_vocab_ends_generation(v, ABC) && mica_vocab_ends_generation(v, END_TURN));
    assert_true(mica_vocab_ends_generation(v, BPE_TOKENS));
    assert_int_equal(mica_vocab_special_tokens(v)->eot, END_TURN);
    assert_false(mica_vocab_ends_generation(v, BPE_TOKENS + 1)); /* markup that a model may write */
    assert_false(mica_vocab_ends_generation(v, BPE_TOKENS + 2));
    assert_false(mica_vocab_ends_generation(v, CTRL) || mica_vocab_ends_generation(v, BPE_TOKENS + 3));
    free_vocab(b);
    add_token(&r, "<|return|>", MICA_TOKEN_CONTROL, 0); /* the format in which <|end|> ends a message only */
    b = make_vocab(&r);
    assert_false(mica_vocab_ends_generation(b->o.vocab, BPE_TOKENS));
    assert_true(mica_vocab_ends_generation(b->o.vocab, BPE_TOKENS + 3));
    free_vocab(b);
}

/* Ids of the SentencePiece vocabulary below: 3..258 are bytes. */
enum { UNK, S_BOS, S_EOS, SP = 259, S_A, S_B, S_AB, SP_A, SP_SP, S_LESS, S_S, S_GREATER, S_LESS_S, S_USER, S_OLD };

static recipe spm_recipe(void)
{
    recipe r = {.model = "llama", .pre = "default", .no_merges = true};
    add_token(&r, "<unk>", MICA_TOKEN_UNKNOWN, 0);
    add_token(&r, "<s>", MICA_TOKEN_CONTROL, 100); /* the best score: must not be reached by merging */
    add_token(&r, "</s>", MICA_TOKEN_CONTROL, 0);
    add_byte_tokens(&r);
    add_token(&r, "\xE2\x96\x81", MICA_TOKEN_NORMAL, -9);
    add_token(&r, "a", MICA_TOKEN_NORMAL, -9);
    add_token(&r, "b", MICA_TOKEN_NORMAL, -9);
    add_token(&r, "ab", MICA_TOKEN_NORMAL, -1);
    add_token(&r, "\xE2\x96\x81" "a", MICA_TOKEN_NORMAL, -2);
    add_token(&r, "\xE2\x96\x81\xE2\x96\x81", MICA_TOKEN_NORMAL, -3);
    add_token(&r, "<", MICA_TOKEN_NORMAL, -9);
    add_token(&r, "s", MICA_TOKEN_NORMAL, -9);
    add_token(&r, ">", MICA_TOKEN_NORMAL, -9);
    add_token(&r, "<s", MICA_TOKEN_NORMAL, -4);
    add_token(&r, "[u]", MICA_TOKEN_USER, 0);
    add_token(&r, "bb", MICA_TOKEN_UNUSED, 50);
    return r;
}

/* An added token that is a part of a character must not cut characters of the text. */
static void added_tokens_of_half_characters(void **state)
{
    (void)state;
    recipe recipes[] = {bpe_recipe(), spm_recipe()};
    const char *text = "a\xC3\xA9<u>\xC3\xA9";
    for (size_t k = 0; k < 2; k++) {
        add_token(&recipes[k], "\xC3", MICA_TOKEN_USER, 0);
        add_token(&recipes[k], "\xA9<u", MICA_TOKEN_CONTROL, 0);
        built *b = make_vocab(&recipes[k]);
        int32_t *ids;
        size_t n;
        assert_int_equal(mica_vocab_tokenize(b->o.vocab, text, strlen(text), SPECIAL, &ids, &n, NULL), MICA_OK);
        for (size_t i = 0; i < n; i++) {
            assert_true(ids[i] < recipes[k].n_tokens - 2);
        }
        check_text(b->o.vocab, ids, n, false, text, strlen(text), "half characters");
        free(ids);
        free_vocab(b);
    }
}

static void sentencepiece(void **state)
{
    (void)state;
    recipe r = spm_recipe();
    r.keys[0] = "add_space_prefix", r.values[0] = 0;
    built *b = make_vocab(&r);
    const mica_vocab *v = b->o.vocab;
    if (b->status) {
        fail_msg("%s", b->err.message);
    }
    IDS(v, "ab", 0, S_AB);
    IDS(v, " ab", 0, SP, S_AB);  /* "ab" (-1) before "_a" (-2) */
    IDS(v, " a", 0, SP_A);
    IDS(v, "   ", 0, SP_SP, SP); /* equal scores: leftmost first */
    IDS(v, "bb", 0, S_B, S_B);   /* an unused piece is not used */
    IDS(v, "<s>", 0, S_LESS_S, S_GREATER);
    IDS(v, "<s>", SPECIAL, S_BOS);
    IDS(v, "\xC3\xA9\n", 0, 3 + 0xC3, 3 + 0xA9, 3 + '\n');
    IDS(v, "a[u] a", 0, S_A, S_USER, SP_A);
    IDS(v, "a", BOS, S_BOS, S_A); /* BOS by default, found by its name */
    check_text(v, (const int32_t[]){SP_A, 3 + 0xC3, 3 + 0xA9, SP_SP, S_USER, S_EOS}, 6, false, " a\xC3\xA9  [u]", 9, "pieces");
    check_text(v, (const int32_t[]){UNK, S_OLD}, 2, true, "<unk>bb", 7, "unknown, unused");
    free_vocab(b);
}

/* The space that tokenising puts before each run of text goes away again; others stay. */
static void space_prefix(void **state)
{
    (void)state;
    static const char *const texts[] = {"a",   " a",    "  a",        "",     " ",       "\n", "a[u]a",
                                        "[u]", "[u] a", "a[u]  [u]b", "<s>a", "\xC3\xA9"};
    recipe r = spm_recipe();
    built *b = make_vocab(&r);
    const mica_vocab *v = b->o.vocab;
    assert_true(mica_vocab_special_tokens(v)->add_space_prefix);
    IDS(v, "a", 0, SP_A);
    IDS(v, " a", 0, SP, SP_A); /* "_a" (-2) before "__" (-3) */
    IDS(v, "a", BOS, S_BOS, SP_A);
    IDS(v, "<s>a", SPECIAL, S_BOS, SP_A);
    IDS(v, "[u]a", 0, S_USER, SP_A);
    IDS(v, "", 0, -1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (unsigned flags = 0; flags < 4; flags++) {
            int32_t *ids;
            size_t n;
            assert_int_equal(mica_vocab_tokenize(v, texts[i], strlen(texts[i]), flags, &ids, &n, NULL), MICA_OK);
            bool spelt = flags & BOS && !(flags & SPECIAL && texts[i][0] == '<'); /* a BOS that the text does not spell */
            check_text(v, ids + spelt, n - spelt, true, texts[i], strlen(texts[i]), "space prefix");
            free(ids);
        }
    }
    free_vocab(b);
}

/* Without byte tokens an unknown character is the unknown token; without that either, or if it is a control token, nothing. */
static void no_byte_tokens(void **state)
{
    (void)state;
    recipe r = {.model = "llama", .no_merges = true};
    add_token(&r, "<unk>", MICA_TOKEN_UNKNOWN, 0);
    add_token(&r, "a", MICA_TOKEN_NORMAL, -1);
    r.keys[0] = "add_space_prefix", r.values[0] = 0;
    built *b = make_vocab(&r);
    IDS(b->o.vocab, "a\xC3\xA9" "a", 0, 1, 0, 1);
    free_vocab(b);
    r.tokens[0].type = MICA_TOKEN_CONTROL;
    b = make_vocab(&r);
    IDS(b->o.vocab, "a\xC3\xA9" "a", 0, 1, 1);
    free_vocab(b);
}

/* Every id of gemma4's kind: characters and U+2581 with merges, bytes for the rest. */
static void characters_with_merges(void **state)
{
    (void)state;
    enum { G_SP = 256, G_A, G_B, G_SP_A, G_SP_SP };
    recipe r = {.model = "gemma4", .no_scores = true};
    add_byte_tokens(&r);
    add_token(&r, "\xE2\x96\x81", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "a", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "b", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "\xE2\x96\x81" "a", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "\xE2\x96\x81\xE2\x96\x81", MICA_TOKEN_NORMAL, 0);
    r.merges[0] = "\xE2\x96\x81 a", r.merges[1] = "\xE2\x96\x81 \xE2\x96\x81", r.n_merges = 2;
    built *b = make_vocab(&r);
    if (b->status) {
        fail_msg("%s", b->err.message);
    }
    IDS(b->o.vocab, "a  ab", 0, G_A, G_SP, G_SP_A, G_B);
    IDS(b->o.vocab, "   ", 0, G_SP_SP, G_SP);
    IDS(b->o.vocab, "\xC3\xA9", 0, 0xC3, 0xA9);
    check_text(b->o.vocab, (const int32_t[]){G_SP_A, 0xC3, 0xA9, G_SP_SP}, 4, false, " a\xC3\xA9  ", 6, "gemma4");
    free_vocab(b);
}

static void duplicates(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    add_token(&r, "ab", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "<u>", MICA_TOKEN_USER, 0);
    add_token(&r, "", MICA_TOKEN_NORMAL, 0);
    add_token(&r, "", MICA_TOKEN_USER, 0);
    r.merges[r.n_merges++] = "b c"; /* again, with a worse rank: the first counts */
    built *b = make_vocab(&r);
    if (b->status) {
        fail_msg("%s", b->err.message);
    }
    IDS(b->o.vocab, "ab<u>bc", 0, AB, USER, BC);
    check_text(b->o.vocab, (const int32_t[]){BPE_TOKENS, BPE_TOKENS + 1, BPE_TOKENS + 2}, 3, false, "ab<u>", 5, "duplicates");
    free_vocab(b);
}

/* Loading must fail with `status` and a message that has both texts. */
static void refused(recipe r, mica_status status, const char *says, const char *and_says)
{
    built *b = make_vocab(&r);
    if (b->status != status || !strstr(b->err.message, says) || !strstr(b->err.message, and_says)) {
        fail_msg("wanted status %d with \"%s\" and \"%s\", got %d: %s", status, says, and_says, b->status, b->err.message);
    }
    assert_null(b->o.vocab);
    free_vocab(b);
}

static void gguf_20_array_length_mismatch(void **state)
{
    (void)state;
    recipe r = spm_recipe();
    char all[32], few[32];
    snprintf(all, sizeof(all), "%d", r.n_tokens);
    snprintf(few, sizeof(few), "%d entries", r.n_tokens - 1);
    r.scores_less = 1;
    refused(r, MICA_BAD_FILE, few, all);
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.scores", "at byte");
    r.scores_less = -1;
    r.n_tokens--; /* one score too many */
    refused(r, MICA_BAD_FILE, all, "tokenizer.ggml.scores");
    r = spm_recipe();
    r.types_less = r.n_tokens - 3;
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.token_type has 3 entries", all);
    r = bpe_recipe();
    r.types_less = 1;
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.token_type", "at byte");
}

static void gguf_21_special_id_out_of_range(void **state)
{
    (void)state;
    recipe r = spm_recipe();
    r.keys[0] = "bos_token_id", r.values[0] = 1000000, r.keys[1] = "eos_token_id", r.values[1] = UINT32_MAX;
    built *b = make_vocab(&r);
    assert_int_equal(b->status, MICA_OK);
    assert_non_null(strstr(b->o.warnings, "tokenizer.ggml.bos_token_id is 1000000"));
    assert_non_null(strstr(b->o.warnings, "tokenizer.ggml.eos_token_id is 4294967295"));
    const mica_vocab_special *s = mica_vocab_special_tokens(b->o.vocab);
    assert_true(s->bos == -1 && s->eos == -1 && s->unk == UNK && !s->add_bos);
    IDS(b->o.vocab, "a", BOS, SP_A);
    mica_vocab *quiet;
    assert_int_equal(mica_vocab_load(b->o.gguf, NULL, NULL, &quiet, NULL), MICA_OK); /* no listener is fine */
    mica_vocab_free(quiet);
    free_vocab(b);
}

static void broken_metadata(void **state)
{
    (void)state;
    recipe good = bpe_recipe(), r = good;
    r.model = NULL;
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.model", "");
    r.model = "t5";
    refused(r, MICA_UNSUPPORTED, "\"t5\"", "tokenizer.ggml.model");
    r = good;
    r.pre = "llama-9";
    refused(r, MICA_UNSUPPORTED, "\"llama-9\"", "tokenizer.ggml.pre");
    r = good;
    r.no_tokens = true;
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.tokens", "missing");
    r = good;
    r.n_tokens = 0;
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.tokens has 0 entries", "at byte");
    r = good;
    r.no_merges = true;
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.merges", "missing");
    static const char *const bad_merges[] = {"ab", "a", "", " ", "a ", "  "};
    for (size_t i = 0; i < sizeof(bad_merges) / sizeof(bad_merges[0]); i++) {
        r = good;
        r.merges[1] = bad_merges[i];
        refused(r, MICA_BAD_FILE, "entry 1 of tokenizer.ggml.merges", "at byte");
    }
    r = good;
    r.tokens[7].type = 9;
    refused(r, MICA_BAD_FILE, "9 for token 7", "token_type");
    r = spm_recipe();
    r.no_scores = true;
    refused(r, MICA_BAD_FILE, "tokenizer.ggml.scores", "missing");
    r = good;
    r.keys[0] = "add_bos_token", r.values[0] = 1; /* without a BOS there is nothing to add */
    built *b = make_vocab(&r);
    assert_false(mica_vocab_special_tokens(b->o.vocab)->add_bos);
    free_vocab(b);
}

static void long_pieces_are_refused(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    char *piece = calloc(1, 4098);
    assert_non_null(piece);
    memset(piece, 'z', 4096);
    add_token(&r, piece, MICA_TOKEN_USER, 0);
    built *b = make_vocab(&r);
    assert_int_equal(b->status, MICA_OK);
    int32_t *ids;
    size_t n;
    assert_int_equal(mica_vocab_tokenize(b->o.vocab, piece, 4096, 0, &ids, &n, NULL), MICA_OK);
    assert_true(n == 1 && ids[0] == BPE_TOKENS);
    free(ids);
    free_vocab(b);
    piece[4096] = 'z';
    refused(r, MICA_BAD_FILE, "4097 bytes long", "tokenizer.ggml.tokens");
    free(piece);
}

/* 2^24 + 1 empty pieces. */
static void absurd_vocabularies_are_refused(void **state)
{
    (void)state;
    mica_buf b;
    const uint64_t count = (1 << 24) + 1;
    put_header(&b, 3, 0, 2);
    put_key(&b, "tokenizer.ggml.model", MICA_GGUF_STRING), put_str(&b, "gpt2");
    put_array(&b, "tokenizer.ggml.tokens", MICA_GGUF_STRING, count);
    size_t length = b.length + count * 8 + 32;
    uint8_t *bytes = calloc(1, length);
    assert_non_null(bytes);
    memcpy(bytes, b.data, b.length);
    mica_buf_free(&b);
    mica_gguf *g = NULL;
    mica_vocab *v = NULL;
    mica_error err = {0};
    if (mica_gguf_open_memory(bytes, length, "absurd.gguf", &g, &err) == MICA_OK) {
        assert_int_equal(mica_vocab_load(g, NULL, NULL, &v, &err), MICA_BAD_FILE);
        assert_non_null(strstr(err.message, "16777217"));
    } else {
        assert_int_equal(err.code, MICA_BAD_FILE); /* refused one layer below: as good */
    }
    mica_gguf_close(g);
    free(bytes);
}

static void arguments(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    built *b = make_vocab(&r);
    int32_t *ids = &(int32_t){0};
    size_t n = 7;
    mica_error err = {0};
    assert_int_equal(mica_vocab_tokenize(b->o.vocab, "a", 1, 4, &ids, &n, &err), MICA_INVALID_ARGUMENT);
    assert_true(!ids && n == 0 && strstr(err.message, "0x4"));
    assert_int_equal(mica_vocab_tokenize(b->o.vocab, "a", (size_t)1 << 40, 0, &ids, &n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_vocab_tokenize(b->o.vocab, "ab\xFF", 3, 0, &ids, &n, &err), MICA_BAD_TEXT);
    assert_true(err.position == 2 && !ids);
    assert_int_equal(mica_vocab_tokenize(b->o.vocab, NULL, 0, 0, &ids, &n, &err), MICA_OK);
    assert_true(ids && n == 0); /* nothing to free is still something to free() */
    free(ids);
    free_vocab(b);
    mica_vocab_free(NULL);
}

/* Random valid UTF-8, NUL and all, comes back byte for byte, and pieces never exceed what mica_vocab_bytes() says. */
static void random_round_trips(void **state)
{
    (void)state;
    static const uint32_t limits[] = {0x80, 0x800, 0x10000, 0x110000};
    recipe recipes[] = {bpe_recipe(), spm_recipe()};
    uint32_t random = 12345;
    for (size_t k = 0; k < 2; k++) {
        built *b = make_vocab(&recipes[k]);
        for (int round = 0; round < 400; round++) {
            char text[600];
            size_t n = 0, n_ids;
            while (n < (size_t)(round % 100) * 5) {
                random = random * 1664525u + 1013904223u;
                uint32_t code = (random >> 4) % limits[random >> 30];
                code = random >> 28 < 6 ? (uint32_t)"ab <u>[c|]\n "[(random >> 8) % 12] : code;
                if (code != 0x2581 && (code < 0xD800 || code > 0xDFFF)) {
                    n += mica_utf8_write(code, text + n);
                }
            }
            int32_t *ids;
            assert_int_equal(mica_vocab_tokenize(b->o.vocab, text, n, 0, &ids, &n_ids, NULL), MICA_OK);
            check_text(b->o.vocab, ids, n_ids, false, text, n, "random text");
            free(ids);
        }
        free_vocab(b);
    }
}

typedef struct job {
    const mica_vocab *v;
    const char *text;
    size_t length;
    int32_t *ids;
    size_t n;
    mica_status status;
} job;

static const char *long_text(size_t *length)
{
    static char text[60000];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = "abc ab <u>hi, x bcbc\n"[(i * 7 + i / 50) % 21];
    }
    *length = sizeof(text);
    return text;
}

static void *tokenise_often(void *user)
{
    job *j = user;
    for (int i = 0; i < 5 && !j->status; i++) {
        free(j->ids);
        j->ids = NULL;
        j->status = mica_vocab_tokenize(j->v, j->text, j->length, 0, &j->ids, &j->n, NULL);
    }
    return NULL;
}

static void threads_share_a_vocabulary(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    built *b = make_vocab(&r);
    pthread_t threads[4];
    size_t length;
    const char *text = long_text(&length);
    job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){.v = b->o.vocab, .text = text, .length = length};
        assert_int_equal(pthread_create(&threads[i], NULL, tokenise_often, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(jobs[i].status, MICA_OK);
        check_text(b->o.vocab, jobs[i].ids, jobs[i].n, false, text, length, "threads");
        assert_true(jobs[i].n == jobs[0].n && !memcmp(jobs[i].ids, jobs[0].ids, jobs[0].n * sizeof(int32_t)));
    }
    for (int i = 0; i < 4; i++) {
        free(jobs[i].ids);
    }
    free_vocab(b);
}

/* The cache of words must not change the result: a text over its threshold equals its parts taken one by one. */
static void word_cache(void **state)
{
    (void)state;
    recipe r = bpe_recipe();
    built *b = make_vocab(&r);
    size_t length, n, m = 0;
    const char *text = long_text(&length);
    int32_t *whole, *parts = malloc(length * sizeof(*parts));
    assert_non_null(parts);
    assert_int_equal(mica_vocab_tokenize(b->o.vocab, text, length, 0, &whole, &n, NULL), MICA_OK);
    for (size_t begin = 0, end; begin < length; begin = end) {
        for (end = begin + 1; end < length && text[end] != '\n'; end++) {
        }
        int32_t *ids;
        size_t k; /* a line break ends a word of the GPT-2 pattern when a letter or a mark follows it */
        assert_int_equal(mica_vocab_tokenize(b->o.vocab, text + begin, end - begin, 0, &ids, &k, NULL), MICA_OK);
        memcpy(parts + m, ids, k * sizeof(*ids));
        m += k;
        free(ids);
    }
    assert_int_equal(n, m);
    assert_memory_equal(whole, parts, n * sizeof(*whole));
    free(whole);
    free(parts);
    free_vocab(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpe_merges),
        cmocka_unit_test(added_tokens),
        cmocka_unit_test(added_tokens_of_half_characters),
        cmocka_unit_test(bos_and_eos),
        cmocka_unit_test(ends_of_generation),
        cmocka_unit_test(sentencepiece),
        cmocka_unit_test(space_prefix),
        cmocka_unit_test(no_byte_tokens),
        cmocka_unit_test(characters_with_merges),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(gguf_20_array_length_mismatch),
        cmocka_unit_test(gguf_21_special_id_out_of_range),
        cmocka_unit_test(broken_metadata),
        cmocka_unit_test(long_pieces_are_refused),
        cmocka_unit_test(absurd_vocabularies_are_refused),
        cmocka_unit_test(arguments),
        cmocka_unit_test(random_round_trips),
        cmocka_unit_test(threads_share_a_vocabulary),
        cmocka_unit_test(word_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
