#include "session/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A power of two of at least n_ctx, so that chains of different pairs seldom mix. */
static size_t slots(int32_t n_ctx)
{
    size_t n = 64;
    while (n < (size_t)n_ctx)
        n *= 2;
    return n;
}

size_t mica_lookup_bytes(int32_t n_ctx) { return (slots(n_ctx) + (size_t)n_ctx) * sizeof(int32_t); }

mica_status mica_lookup_new(mica_lookup *l, int32_t n_ctx, mica_error *err)
{
    size_t n = slots(n_ctx);
    *l = (mica_lookup){.mask = (uint32_t)(n - 1), .n_ctx = n_ctx, .n_indexed = 2};
    l->last = mica_new_array(n, sizeof *l->last);
    l->previous = mica_new_array((size_t)n_ctx, sizeof *l->previous);
    return l->last && l->previous ? MICA_OK : mica_fail_nomem(err, mica_lookup_bytes(n_ctx), "the index of the history");
}

void mica_lookup_free(mica_lookup *l)
{
    free(l->last);
    free(l->previous);
}

void mica_lookup_reset(mica_lookup *l)
{
    memset(l->last, 0, ((size_t)l->mask + 1) * sizeof *l->last);
    l->n_indexed = 2;
}

/* The slot of the pair before place p. */
static int32_t *slot_of(const mica_lookup *l, const int32_t *tokens, int32_t p)
{
    uint64_t pair = (uint64_t)(uint32_t)tokens[p - 2] << 32 | (uint32_t)tokens[p - 1];
    uint64_t h = pair * 0x9E3779B97F4A7C15u; /* Fibonacci hashing: the high bits are mixed best */
    return &l->last[(uint32_t)(h >> 40) & l->mask];
}

/* Tokens before place p that equal those at the end. */
static int32_t match_length(const int32_t *tokens, int32_t n_tokens, int32_t p)
{
    int32_t n = 0;
    while (n < MICA_LOOKUP_MATCH && n < p && tokens[p - 1 - n] == tokens[n_tokens - 1 - n])
        n++;
    return n;
}

int32_t mica_lookup_find(mica_lookup *l, const int32_t *tokens, int32_t n_tokens, int32_t n, int32_t *out)
{
    for (int32_t *slot; l->n_indexed < n_tokens; l->n_indexed++) {
        slot = slot_of(l, tokens, l->n_indexed);
        l->previous[l->n_indexed] = *slot;
        *slot = l->n_indexed;
    }
    if (n_tokens < 3)
        return 0;
    int32_t best = 0, longest = 1, place = *slot_of(l, tokens, n_tokens);
    for (int i = 0; i < MICA_LOOKUP_PLACES && place > 0; i++, place = l->previous[place]) {
        int32_t length = match_length(tokens, n_tokens, place);
        if (length > longest) {
            longest = length;
            best = place;
        }
    }
    if (best == 0)
        return 0;
    for (int32_t i = 0; i < n; i++)
        out[i] = best + i < n_tokens ? tokens[best + i] : out[best + i - n_tokens];
    return longest;
}
