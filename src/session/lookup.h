/* lookup.h - guesses the next tokens from the history alone: where its end occurred before, what followed then may follow now.
 *
 * An index over pairs of tokens: a hash table of the last place after each pair, and from each place the one before it. Owns
 * its memory, sized by the context; allocates nothing after mica_lookup_new(). A history of n tokens is indexed in n steps in
 * all, a query costs at most MICA_LOOKUP_PLACES * MICA_LOOKUP_MATCH comparisons. Called by speculate.c.
 *
 * Invariant: places [2, n_indexed) are in the index; place p follows the pair (tokens[p - 2], tokens[p - 1]).
 */
#ifndef MICA_SESSION_LOOKUP_H
#define MICA_SESSION_LOOKUP_H
#include "base/error.h"

#define MICA_LOOKUP_PLACES 16 /* latest places that are compared; older ones are forgotten in favour of speed */
#define MICA_LOOKUP_MATCH 32  /* tokens; a longer match would not be trusted more */

typedef struct mica_lookup {
    int32_t *last;     /* [mask + 1] by hash of a pair; 0: none */
    int32_t *previous; /* [n_ctx] by place; 0: none */
    uint32_t mask;
    int32_t n_ctx, n_indexed;
} mica_lookup;

size_t mica_lookup_bytes(int32_t n_ctx);
mica_status mica_lookup_new(mica_lookup *l, int32_t n_ctx, mica_error *err);
void mica_lookup_free(mica_lookup *l);

/** Forgets all: the history is another one. */
void mica_lookup_reset(mica_lookup *l);

/** Writes `n` tokens that may follow tokens[0..n_tokens) to `out` and returns how many tokens of its end match the place they
 * come from, at least 2; 0 if there is no such place. Where the match reaches the end of the history it goes on in a circle.
 * tokens[0..n_indexed) are those of the call before. */
int32_t mica_lookup_find(mica_lookup *l, const int32_t *tokens, int32_t n_tokens, int32_t n, int32_t *out);

#endif
