/* spm.c - SentencePiece: U+2581 for spaces, the best-scored neighbours merge first, bytes for what no piece covers. */
#include "base/mem.h"
#include "text/utf8.h"
#include "text/vocab_impl.h"

/* A piece of text that merging may give, or -1. */
static int32_t find_piece(const mica_vocab *v, const char *text, size_t n)
{
    int32_t id = mica_vocab_find(v, text, n);
    return id >= 0 && mica_vocab_mergeable(v, id) ? id : -1;
}

/* Orders scores as unsigned integers, the best one lowest. */
static uint32_t score_key(float score)
{
    uint32_t bits;
    score += 0.0f; /* -0 counts as 0 */
    memcpy(&bits, &score, sizeof(bits));
    uint32_t key = bits >> 31 ? bits : ~(bits | 0x80000000u);
    return key < MICA_MERGE_NONE ? key : MICA_MERGE_NONE - 1;
}

static uint32_t find_pair(const void *user, const mica_symbol *left, const mica_symbol *right, int32_t *merged)
{
    const mica_tokenizing *t = user;
    *merged = find_piece(t->v, t->text + left->start, (size_t)left->length + right->length);
    return *merged < 0 ? MICA_MERGE_NONE : score_key(mica_vocab_score(t->v, *merged));
}

/* Writes text with U+2581 for each space, and one more in front with `prefix`; returns the length. */
static size_t escape_spaces(const char *text, size_t n, bool prefix, char *out)
{
    size_t length = 0;
    for (size_t i = prefix ? SIZE_MAX : 0; i == SIZE_MAX || i < n; i++) {
        if (i == SIZE_MAX || text[i] == ' ') {
            memcpy(out + length, MICA_SPM_SPACE, MICA_SPM_SPACE_BYTES);
            length += MICA_SPM_SPACE_BYTES;
        } else {
            out[length++] = text[i];
        }
    }
    return length;
}

mica_status mica_spm_tokenize(mica_tokenizing *t, const char *text, size_t n, bool prefix)
{
    char *escaped = malloc(MICA_SPM_SPACE_BYTES * (n + 1));
    if (!escaped || !mica_merger_reserve(&t->merger, n + 1)) {
        free(escaped);
        return mica_tokenizing_nomem(t);
    }
    size_t length = escape_spaces(text, n, prefix, escaped), count = 0;
    for (size_t at = 0; at < length;) {
        unsigned bytes = mica_utf8_length((unsigned char)escaped[at]);
        int32_t id = find_piece(t->v, escaped + at, bytes);
        t->merger.symbols[count++] = (mica_symbol){.start = (uint32_t)at, .length = bytes, .id = id};
        at += bytes;
    }
    t->text = escaped;
    mica_merger_run(&t->merger, count, find_pair, t);
    mica_status status = mica_tokenizing_push_symbols(t, escaped);
    free(escaped);
    t->text = NULL;
    return status;
}
