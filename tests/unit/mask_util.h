/* mask_util.h - masks against brute force: a token is allowed if a matcher takes all its bytes. */
#ifndef MICA_TESTS_MASK_UTIL_H
#define MICA_TESTS_MASK_UTIL_H
#include "tokenizer_util.h"

#include "base/rng.h"
#include "constraint/mask_impl.h"

/* A constraint ready for masks. */
typedef struct masked {
    const mica_vocab *vocab;
    mica_token_trie *trie;
    mica_automaton *a;
    mica_masks *masks;
    mica_matcher *m, *spare;
    uint32_t *mask;
} masked;

/* Takes the grammar. */
static inline masked open_masked(const mica_vocab *vocab, mica_grammar *g)
{
    masked k = {.vocab = vocab};
    mica_error err = {0};
    if (mica_automaton_new(g, &k.a, &err) || mica_token_trie_new(vocab, &k.trie, &err) ||
        mica_masks_new(k.a, k.trie, &k.masks, &err) || mica_matcher_new(k.a, &k.m, &err) ||
        mica_matcher_new(k.a, &k.spare, &err)) {
        fail_msg("%s", err.message);
    }
    k.mask = malloc(MICA_MASK_WORDS(mica_vocab_size(vocab)) * sizeof *k.mask);
    assert_non_null(k.mask);
    mica_grammar_free(g);
    return k;
}

static inline masked open_gbnf(const mica_vocab *vocab, const char *text)
{
    mica_grammar *g;
    mica_error err = {0};
    if (mica_grammar_from_gbnf(text, strlen(text), &g, &err)) {
        fail_msg("%s", err.message);
    }
    return open_masked(vocab, g);
}

static inline void close_masked(masked *k)
{
    free(k->mask);
    mica_matcher_free(k->m);
    mica_matcher_free(k->spare);
    mica_masks_free(k->masks);
    mica_automaton_free(k->a);
    mica_token_trie_free(k->trie);
}

static inline bool is_allowed(const masked *k, int32_t token) { return k->mask[token / 32] >> token % 32 & 1; }

static inline bool takes(masked *k, int32_t token)
{
    char bytes[2048];
    size_t taken, n = mica_vocab_bytes(k->vocab, token, false, bytes, sizeof bytes);
    mica_error err;
    assert_true(n <= sizeof bytes);
    if (n == 0) {
        return false;
    }
    if (mica_matcher_push(k->spare, bytes, n, &taken, &err)) {
        fail_msg("%s", err.message);
    }
    if (taken == n) { /* else it has not moved */
        assert_int_equal(mica_matcher_copy(k->spare, k->m, NULL), MICA_OK);
    }
    return taken == n;
}

/* The mask where k->m stands; returns how many tokens it allows. `what` is for messages. */
static inline int32_t check_mask(masked *k, const char *what)
{
    int32_t n_allowed, n = 0;
    mica_error err = {0};
    memset(k->mask, 0xA5, MICA_MASK_WORDS(mica_vocab_size(k->vocab)) * sizeof *k->mask);
    if (mica_masks_fill(k->masks, k->m, k->mask, &n_allowed, &err)) {
        fail_msg("%s: %s", what, err.message);
    }
    assert_int_equal(mica_matcher_copy(k->spare, k->m, NULL), MICA_OK);
    for (int32_t t = 0; t < mica_vocab_size(k->vocab); t++) {
        bool allowed = is_allowed(k, t), want = takes(k, t);
        n += want;
        if (allowed != want) {
            mica_str piece = mica_vocab_piece(k->vocab, t);
            fail_msg("%s: token %d \"%.*s\" is %s", what, t, (int)piece.length, piece.data, allowed ? "allowed" : "missing");
        }
    }
    assert_int_equal(n, n_allowed);
    for (size_t t = (size_t)mica_vocab_size(k->vocab); t % 32; t++) {
        assert_false(is_allowed(k, (int32_t)t)); /* bits after the last token */
    }
    return n;
}

/* A text of random allowed tokens, all masks on the way checked; returns how many tokens it has. */
static inline int random_text(masked *k, mica_rng *rng, int most, const char *what)
{
    char text[4096] = "", bytes[2048], message[4200];
    size_t length = 0;
    mica_matcher_reset(k->m);
    for (int i = 0; i < most; i++) {
        snprintf(message, sizeof message, "%s, after \"%s\"", what, text);
        int32_t n = check_mask(k, message);
        assert_true(n > 0 || mica_matcher_may_end(k->m));
        if (n == 0) {
            return i;
        }
        int32_t token = -1;
        for (int32_t skip = (int32_t)(mica_rng_next(rng) % (uint64_t)n); skip >= 0; skip--) {
            do {
                token++;
            } while (!is_allowed(k, token));
        }
        size_t taken, got = mica_vocab_bytes(k->vocab, token, false, bytes, sizeof bytes);
        assert_int_equal(mica_matcher_push(k->m, bytes, got, &taken, NULL), MICA_OK);
        assert_int_equal(taken, got);
        if (length + got < sizeof text) {
            memcpy(text + length, bytes, got);
            length += got;
            text[length] = 0;
        }
    }
    return most;
}

#endif
