/* Masks over small vocabularies against brute force: random grammars, the shapes of structured text, counters near their
 * bounds, tokens that begin and end inside characters, very long tokens, tokens with the same bytes, and a cache that
 * forgets. */
#include "mask_util.h"

#include "grammar_random.h"
#include "tokenizer_build.h"

enum { GIANT = 300 };

/* Bytes as pieces of a byte-level vocabulary. */
static const char *spell(const char *bytes, size_t n)
{
    static char pool[200000];
    static size_t used;
    char *piece = pool + used;
    for (size_t i = 0; i < n; i++) {
        unsigned b = (uint8_t)bytes[i], extra = 0;
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        for (unsigned c = 0; c < b; c++)
            extra += !((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174);
        used += mica_utf8_write(printable ? b : 256 + extra, pool + used);
    }
    pool[used++] = 0;
    assert_true(used < sizeof pool);
    return piece;
}

static void add_text(recipe *r, const char *text) { add_token(r, spell(text, strlen(text)), MICA_TOKEN_NORMAL, 0); }

/* All bytes; texts of a, b and c; pieces of JSON and of characters; long tokens, one of them a giant. */
static built *make_small_vocab(bool giants)
{
    static const char *const PIECES[] = {
        "\"", "\",", "\":", "\",\"", "\"}", "{\"", "{\"a", "[[", "]]", "],", "]}", "},{", "\": \"", "a\":", "ab\"", "abc\":[",
        "\\n", "\\\"", "\\u", "00", "12", "1,", "23]", "0.5", "-1", "e+", "true", "tr", "false}", "null,", " a", "  ", " \"",
        "\n", "\n\n", "\xC3", "\xBC", "\xC3\xBC", "\xC3\xBC\xC3", "\xE6\x9D", "\x9D\xB1", "\xB1\"", "\xE6\x9D\xB1\xE4\xBA\xAC",
        "\xF0\x9F\x98\x80", "\xF0\x9F", "\x98\x80\"", "a\xF0\x9F\x98", "\xED\xA0\x80", "\xC0\x80", "\x7F", "Abc", "xyzzy",
        "ABcd-_",
        "hello", "hello,", "hell", " world", "world\"", "12:30", "2024-01", "-01-", "ab\\", "a\x01",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "----------------------------------------", "aaaaaaaaaaaaaaaaaaaaaaaa",
        "aaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaa", "aaaaaaaaaaaaa", "aaaaaaaaaaaa\"", "aaaaaaaaaaaaaaa.aa",
        "abcabcabcabcabcabc\",", "bbbbbbbbbbbbbbbbbbbb",
    };
    recipe r = {.model = "gpt2", .pre = "gpt-2", .no_scores = true};
    mica_rng rng;
    char giant[GIANT];
    mica_rng_seed(&rng, 3);
    add_alphabet(&r);
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++)
        add_text(&r, PIECES[i]);
    while (r.n_tokens < 380) {
        char text[16];
        size_t n = 2 + (size_t)pick(&rng, 9);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)('a' + (pick(&rng, 8) ? pick(&rng, 2) : 2));
        add_token(&r, spell(text, n), MICA_TOKEN_NORMAL, 0);
    }
    memset(giant, 'a', GIANT);
    for (int i = 0; i < 2 && giants; i++) {
        add_token(&r, spell(giant, GIANT), MICA_TOKEN_NORMAL, 0);
        giant[GIANT - 1] = '"';
    }
    add_token(&r, "<|end|>", MICA_TOKEN_CONTROL, 0);
    r.merges[0] = "a b";
    r.n_merges = 1;
    built *b = make_vocab(&r);
    if (b->status) {
        fail_msg("%s", b->err.message);
    }
    return b;
}

static built *small_vocab(void) { return make_small_vocab(true); }

static void check_texts(const mica_vocab *v, const char *grammar, int texts, int tokens)
{
    mica_rng rng;
    mica_rng_seed(&rng, 11);
    masked k = open_gbnf(v, grammar);
    for (int i = 0; i < texts; i++)
        random_text(&k, &rng, tokens, grammar);
    close_masked(&k);
}

/* Without giants: some of these grammars are so ambiguous that 300 letters are too complex. */
static void test_random_grammars(void **state)
{
    (void)state;
    built *b = make_small_vocab(false);
    mica_rng rng;
    mica_rng_seed(&rng, 7);
    int made = 0;
    for (uint64_t seed = 5000; made < 120; seed++) {
        char name[40];
        mica_grammar *g = random_grammar(seed);
        if (!g)
            continue;
        snprintf(name, sizeof name, "seed %d", (int)seed);
        masked k = open_masked(b->o.vocab, g);
        random_text(&k, &rng, 12, name);
        random_text(&k, &rng, 6, name);
        close_masked(&k);
        made++;
    }
    free_vocab(b);
}

static const char JSON[] = "root ::= value\n"
                           "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
                           "object ::= \"{\" (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\"\n"
                           "array ::= \"[\" (value (\",\" ws value)*)? \"]\"\n"
                           "string ::= \"\\\"\" ([^\"\\\\\\x7F\\x00-\\x1F] |"
                           " \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\"\n"
                           "number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)?\n"
                           "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";

static const char *const SHAPES[] = {
    JSON,
    "root ::= \"\\\"\" [^\"\\\\\\x7F\\x00-\\x1F]{0,200} \"\\\"\" [,}]",
    "root ::= \"[\" s (\",\" s)* \"]\"\ns ::= \"\\\"\" [^\"\\\\\\x00-\\x1F]{2,9} \"\\\"\"",
    "root ::= s s s\ns ::= \"\\\"\" [a-zA-Z]{0,3} \"\\\"\" | [ab]{30,} \"c\" | ([^\\n] [^\\n]){7,300} \"\\n\"",
    "root ::= [a-z]{3} | [a-c]{4,6} \"\\\"\" | ([a-z]{2,5} \" \"?)+",
    "root ::= (\"ab\" | \"abc\" | \"a\")* \"c\" | \"hello\" (\",\" | \" world\") root",
    "root ::= [^\\r\\n\\x85\\u2028\\u2029]+ \"\\n\"",
    "root ::= x{26} \"\\\"\"\nx ::= [a-c] | \"(\" root \")\" | \"ab\"",
    "root ::= x{24,40} \"\\\"\"\nx ::= [^\"\\\\\\x00-\\x1F] | \"[\" root \"]\"",
    "root ::= [A-Za-z]* [^\"\\\\\\x7F\\x00-\\x1F]{0,100} [a-z]{0,120} \"\\n\"",
    "root ::= \"\\\"\" ([a-z]+ \"\\\\\"?)* \"\\\"\" | \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" [a]{0,300} \"\\\"\"",
};

static void test_shapes(void **state)
{
    (void)state;
    built *b = small_vocab();
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        check_texts(b->o.vocab, SHAPES[i], 12, 40);
    free_vocab(b);
}

/* Every count of a bounded string, in particular those near its end. */
static void test_counter_bounds(void **state)
{
    (void)state;
    built *b = small_vocab();
    masked k = open_gbnf(b->o.vocab, "root ::= \"\\\"\" [^\"\\\\\\x7F\\x00-\\x1F]{70,400} \"\\\"\" \"]\"*");
    char name[40];
    check_mask(&k, "start");
    assert_int_equal(mica_matcher_push(k.m, "\"", 1, NULL, NULL), MICA_OK);
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "after %d", i);
        check_mask(&k, name);
        assert_int_equal(mica_matcher_push(k.m, "q", 1, NULL, NULL), MICA_OK);
    }
    assert_int_equal(check_mask(&k, "full"), 2); /* the quote, as a byte and as a piece */
    close_masked(&k);
    free_vocab(b);
}

/* Chains of states, which tokens of different lengths tell apart at different distances from their ends. */
static void test_chains(void **state)
{
    (void)state;
    static const char *const PATTERNS[] = {
        "\"(?:[ab.]{1,60}b|[a-c]{0,40})\"", "(?:[a-c.]{0,28}[a.]{9,17}\"|[ab]{1,52}c{3}),?",
        "\"[^\"\\\\\\n]{5,50}\",\"[a-z]{30}\"",
    };
    built *b = small_vocab();
    char name[100];
    for (size_t p = 0; p < sizeof PATTERNS / sizeof *PATTERNS; p++) {
        mica_grammar *g;
        mica_error err;
        size_t taken = 1;
        if (mica_grammar_from_regex(PATTERNS[p], strlen(PATTERNS[p]), &g, &err))
            fail_msg("%s", err.message);
        masked k = open_masked(b->o.vocab, g);
        bool shared = false;
        for (int32_t s = 0; s < k.a->n_states; s++)
            shared |= k.a->same[0][s] != s && k.a->same[1][s] == s;
        assert_true(shared); /* some states are one to short tokens only */
        assert_int_equal(mica_matcher_push(k.m, "\"", 1, NULL, NULL), MICA_OK);
        for (int i = 0; taken == 1; i++) {
            snprintf(name, sizeof name, "pattern %zu after %d", p, i);
            check_mask(&k, name);
            assert_int_equal(mica_matcher_push(k.m, i % 9 == 7 ? "b" : "a", 1, &taken, NULL), MICA_OK);
        }
        mica_rng rng;
        mica_rng_seed(&rng, 5);
        for (int i = 0; i < 20; i++)
            random_text(&k, &rng, 40, PATTERNS[p]);
        close_masked(&k);
    }
    free_vocab(b);
}

/* Repetitions of what is too long to be a part of a place, the count being on the stack only. */
static void test_long_bodies(void **state)
{
    (void)state;
    static const char *const GRAMMARS[] = {
        "root ::= (\"{\\\"abc\\\":\" [0-9]{1,3} \",\\\"hello\\\":\\\"\" [a-c]{1,9} \"\\\"}\" \",\"?){4,70} \"]\"",
        "root ::= item{3,400} \"\\n\"\nitem ::= \"hello\" [ab]{1,8} \" world\" ([a-c]{8} | \"(\" root \")\")",
        "root ::= (([a-c]{12,15} \"\\\"\"){5,9} \",\"){6,80}",
    };
    built *b = small_vocab();
    for (size_t i = 0; i < sizeof GRAMMARS / sizeof *GRAMMARS; i++) {
        masked k = open_gbnf(b->o.vocab, GRAMMARS[i]);
        bool is_long = false;
        for (int32_t s = 0; s < k.a->n_symbols; s++)
            is_long |= k.a->symbols[s].body >= 0 && k.a->symbols[s].start >= 0 && !k.a->symbols[s].is_short;
        if (!is_long)
            fail_msg("%s: no long body", GRAMMARS[i]);
        close_masked(&k);
        check_texts(b->o.vocab, GRAMMARS[i], 12, 60);
    }
    free_vocab(b);
}

/* SentencePiece: 'a' is a token, and <0x61> is another. */
static void test_twins(void **state)
{
    (void)state;
    recipe r = {.model = "llama", .pre = "default", .no_merges = true};
    add_token(&r, "<unk>", MICA_TOKEN_UNKNOWN, 0);
    add_token(&r, "<s>", MICA_TOKEN_CONTROL, 0);
    add_token(&r, "</s>", MICA_TOKEN_CONTROL, 0);
    add_byte_tokens(&r);
    static const char *const PIECES[] = {
        "\xE2\x96\x81", "a", "b", "ab", ("\xE2\x96\x81" "a"), "\xE2\x96\x81\xE2\x96\x81", "\"", "{", "}", "{\"", "\":",
        "\xC3\xBC", "1", ",", "[", "]",
    };
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++)
        add_token(&r, PIECES[i], MICA_TOKEN_NORMAL, -9);
    built *b = make_vocab(&r);
    assert_int_equal(b->status, MICA_OK);
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        check_texts(b->o.vocab, SHAPES[i], 3, 25);
    masked k = open_gbnf(b->o.vocab, "root ::= \"a\"");
    assert_int_equal(k.trie->n_twins, 10); /* pieces of one byte, the space too */
    assert_int_equal(check_mask(&k, "a"), 2);
    close_masked(&k);
    free_vocab(b);
}

/* Engines that keep three configurations, and places that are forgotten after each mask. */
static void test_small_caches(void **state)
{
    (void)state;
    built *b = small_vocab();
    mica_rng rng;
    mica_rng_seed(&rng, 2);
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        masked k = open_gbnf(b->o.vocab, SHAPES[i]);
        k.m->engine.keep_configs = k.m->engine.limit_configs = 3;
        k.masks->engine.keep_configs = k.masks->engine.limit_configs = 3;
        for (int n = 0; n < 3; n++) {
            mica_mask_places_clear(k.masks);
            random_text(&k, &rng, 20, SHAPES[i]);
        }
        assert_true(k.m->engine.epoch > 0 || k.m->engine.n_configs <= 3);
        close_masked(&k);
    }
    free_vocab(b);
}

/* One matcher, two constraints' worth of masks: what it remembers of one is not used for the other. */
static void test_two_masks(void **state)
{
    (void)state;
    built *b = small_vocab();
    masked k = open_gbnf(b->o.vocab, JSON);
    mica_masks *first = k.masks, *second;
    assert_int_equal(mica_masks_new(k.a, k.trie, &second, NULL), MICA_OK);
    assert_int_equal(mica_matcher_push(k.m, "{\"a\":[\"b", 8, NULL, NULL), MICA_OK);
    for (int i = 0; i < 6; i++) {
        k.masks = i % 2 ? second : first;
        check_mask(&k, "two masks");
    }
    k.masks = first;
    mica_masks_free(second);
    close_masked(&k);
    free_vocab(b);
}

typedef struct reader {
    const masked *k;
    mica_matcher *m;
    uint32_t *mask;
    uint64_t sum; /* of all masks */
    bool failed;
} reader;

static void *read_masks(void *user)
{
    static const char TEXT[] = "{\"a\":[\"hello, \\n\",-12.5,true],\"abc\":{\"b\": null}}";
    reader *r = user;
    r->sum = 0;
    mica_matcher_reset(r->m);
    for (size_t i = 0; TEXT[i]; i++) {
        size_t taken = 0;
        r->failed |= mica_masks_fill(r->k->masks, r->m, r->mask, NULL, NULL) != MICA_OK;
        for (size_t w = 0; w < r->k->trie->n_words; w++)
            r->sum = (r->sum ^ r->mask[w]) * UINT64_C(0x9E3779B97F4A7C15);
        r->failed |= mica_matcher_push(r->m, TEXT + i, 1, &taken, NULL) != MICA_OK || taken != 1;
    }
    return NULL;
}

/* Matchers of several threads share the masks: all see the same. */
static void test_threads(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    built *b = small_vocab();
    masked k = open_gbnf(b->o.vocab, JSON);
    reader readers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        readers[i] = (reader){.k = &k, .mask = malloc(k.trie->n_words * sizeof(uint32_t))};
        assert_int_equal(mica_matcher_new(k.a, &readers[i].m, NULL), MICA_OK);
    }
    read_masks(&readers[0]);
    uint64_t want = readers[0].sum;
    mica_mask_places_clear(k.masks); /* the threads find them again */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_masks, &readers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_false(readers[i].failed);
        assert_true(readers[i].sum == want);
        mica_matcher_free(readers[i].m);
        free(readers[i].mask);
    }
    close_masked(&k);
    free_vocab(b);
}

/* Nothing is allowed where the text must end. */
static void test_end(void **state)
{
    (void)state;
    built *b = small_vocab();
    masked k = open_gbnf(b->o.vocab, "root ::= \"ab\" | \"\"");
    check_mask(&k, "start");
    assert_int_equal(mica_matcher_push(k.m, "ab", 2, NULL, NULL), MICA_OK);
    assert_int_equal(check_mask(&k, "end"), 0);
    close_masked(&k);
    free_vocab(b);
}

/* The parts of the trie: every token with bytes is in exactly one of them. */
static void test_trie(void **state)
{
    (void)state;
    built *b = small_vocab();
    mica_token_trie *t;
    int found = 0, with_bytes = 0;
    assert_int_equal(mica_token_trie_new(b->o.vocab, &t, NULL), MICA_OK);
    for (int32_t i = 0; i < t->n_nodes; i++) {
        found += mica_trie_token(t->nodes[i]) >= 0;
        assert_in_range(mica_trie_size(t->nodes[i]), 1, t->n_nodes - i);
    }
    for (int32_t i = 0; i < t->n_vocab; i++)
        with_bytes += mica_vocab_bytes(b->o.vocab, i, false, NULL, 0) > 0;
    assert_int_equal(found + t->n_twins + t->n_giants, with_bytes);
    assert_int_equal(t->n_giants, 2);
    assert_int_equal(t->longest, 63);
    assert_int_equal(mica_token_trie_n_vocab(t), mica_vocab_size(b->o.vocab));
    mica_token_trie_free(t);
    free_vocab(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trie),           cmocka_unit_test(test_end),   cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_counter_bounds), cmocka_unit_test(test_twins), cmocka_unit_test(test_random_grammars),
        cmocka_unit_test(test_chains),         cmocka_unit_test(test_long_bodies),
        cmocka_unit_test(test_small_caches),   cmocka_unit_test(test_two_masks), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
