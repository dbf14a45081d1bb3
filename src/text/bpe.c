/* bpe.c - byte pair encoding: words of bytes (gpt2 and its descendants), and runs of characters with byte fallback (gemma4).
 *
 * A byte that the vocabulary has no token for (SmolLM2 lacks a few control characters) gives nothing, as in the models' own
 * tokenizers: there is no token that could stand for it, and the unknown token of such files is a control token.
 */
#include "base/mem.h"
#include "text/nfc.h"
#include "text/utf8.h"
#include "text/vocab_impl.h"

static uint32_t find_pair(const void *user, const mica_symbol *left, const mica_symbol *right, int32_t *merged)
{
    if (left->id < 0 || right->id < 0) {
        return MICA_MERGE_NONE;
    }
    int64_t rank = mica_vocab_find_merge(user, left->id, right->id, merged);
    return rank < 0 ? MICA_MERGE_NONE : (uint32_t)rank;
}

/* The token that is spelt exactly as word[0..n), or -1. */
static int32_t find_whole_word(const mica_vocab *v, const char *word, size_t n)
{
    char piece[MICA_VOCAB_MAX_PIECE];
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t byte = v->byte_ids[(unsigned char)word[i]];
        if (byte < 0 || length + 2 > sizeof(piece) || length > v->max_piece) {
            return -1;
        }
        mica_str letter = mica_strings_get(&v->pieces, (uint32_t)byte); /* one character of the alphabet: 1 or 2 bytes */
        memcpy(piece + length, letter.data, letter.length);
        length += letter.length;
    }
    int32_t id = mica_vocab_find(v, piece, length);
    return id >= 0 && mica_vocab_mergeable(v, id) ? id : -1;
}

static mica_status merge_word(mica_tokenizing *t, const char *word, size_t n)
{
    const mica_vocab *v = t->v;
    if (mica_pretok_flags(v->pretok) & MICA_PRETOK_WHOLE_WORDS) {
        int32_t id = find_whole_word(v, word, n);
        if (id >= 0) {
            return mica_tokenizing_push(t, id) ? MICA_OK : mica_tokenizing_nomem(t);
        }
    }
    if (!mica_merger_reserve(&t->merger, n)) {
        return mica_tokenizing_nomem(t);
    }
    mica_symbol *symbols = t->merger.symbols;
    for (size_t i = 0; i < n; i++) {
        symbols[i] = (mica_symbol){.start = (uint32_t)i, .length = 1, .id = v->byte_ids[(unsigned char)word[i]]};
    }
    mica_merger_run(&t->merger, n, find_pair, v);
    for (uint32_t i = 0; i != MICA_MERGE_NONE; i = symbols[i].next) {
        if (symbols[i].id >= 0 && !mica_tokenizing_push(t, symbols[i].id)) {
            return mica_tokenizing_nomem(t);
        }
    }
    return MICA_OK;
}

/* Tokenises one word, out of the cache if the same word came before: its tokens are in the output already. */
static mica_status add_word(mica_tokenizing *t, const char *text, size_t at, size_t n)
{
    if (!t->words || n > MICA_WORD_CACHE_BYTES) {
        return merge_word(t, text + at, n);
    }
    mica_word *w = &t->words[mica_hash_bytes(text + at, n) & (MICA_WORD_CACHE - 1)];
    if (w->epoch == t->epoch && w->length == n && !memcmp(text + w->text_at, text + at, n)) {
        for (uint32_t i = 0; i < w->n_tokens; i++) {
            if (!mica_tokenizing_push(t, t->tokens[w->tokens_at + i])) {
                return mica_tokenizing_nomem(t);
            }
        }
        return MICA_OK;
    }
    size_t first = t->n_tokens;
    mica_status status = merge_word(t, text + at, n);
    *w = (mica_word){(uint32_t)at, (uint32_t)n, (uint32_t)first, (uint32_t)(t->n_tokens - first), t->epoch};
    return status;
}

static mica_status add_words(mica_tokenizing *t, const char *text, size_t n)
{
    size_t n_words = 0, begin = 0;
    mica_status status = mica_pretok_split(t->v->pretok, &t->pretok, text, n, &n_words, t->err);
    t->epoch++;
    for (size_t i = 0; i < n_words && !status; i++) {
        size_t end = t->pretok.ends[i];
        status = add_word(t, text, begin, end - begin);
        begin = end;
    }
    return status;
}

mica_status mica_bpe_tokenize(mica_tokenizing *t, const char *text, size_t n)
{
    char *normal = NULL;
    size_t length = n;
    if (mica_pretok_flags(t->v->pretok) & MICA_PRETOK_NFC) {
        mica_status status = mica_nfc(text, n, &normal, &length, t->err);
        if (status) {
            return status;
        }
    }
    mica_status status = add_words(t, normal ? normal : text, length);
    free(normal);
    return status;
}

mica_status mica_char_bpe_tokenize(mica_tokenizing *t, const char *text, size_t n)
{
    const mica_vocab *v = t->v;
    if (!mica_merger_reserve(&t->merger, n)) {
        return mica_tokenizing_nomem(t);
    }
    mica_symbol *symbols = t->merger.symbols;
    size_t count = 0;
    for (size_t at = 0; at < n;) {
        unsigned length = mica_utf8_length((unsigned char)text[at]);
        bool space = text[at] == ' ';
        int32_t id = mica_vocab_find(v, space ? MICA_SPM_SPACE : text + at, space ? MICA_SPM_SPACE_BYTES : length);
        id = id >= 0 && mica_vocab_mergeable(v, id) ? id : -1;
        symbols[count++] = (mica_symbol){.start = (uint32_t)at, .length = length, .id = id};
        at += length;
    }
    mica_merger_run(&t->merger, count, find_pair, v);
    return mica_tokenizing_push_symbols(t, text);
}
