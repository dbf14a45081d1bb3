/* embed.h - what a session keeps for embeddings. Made by the first mica_session_embed(), freed with the session.
 *
 * A mean needs the states of all tokens, and the KV cache has none. So that texts with a common beginning (an instruction, say)
 * do not compute it again, the sum over one prefix is kept beside its tokens.
 *
 * Invariant: prefix_sum is the sum of the states of prefix[0..prefix_n), added in the order of docs/numerics.md. It depends on
 * nothing else, so it stays true whatever happens to the session's history.
 */
#ifndef MICA_SESSION_EMBED_H
#define MICA_SESSION_EMBED_H
#include "session/session.h"

struct mica_embedder {
    double *sum;        /* [n_embd] of the text that is being computed */
    double *prefix_sum; /* [n_embd] */
    int32_t *prefix;    /* [n_ctx] */
    int32_t prefix_n;
};

void mica_embedder_free(mica_embedder *m); /* NULL is fine */

#endif
