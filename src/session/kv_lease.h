/* kv_lease.h - the blocks that one session holds of its batch's KV memory, and through them its cache.
 *
 * Invariants, with n_computed the session's:
 *  1. table[MICA_KV_FULL][0..n) are held, and cover every computed position; of windowed layers table[MICA_KV_WINDOWED][window0..n).
 *     kv->first is the first position of window0.
 *  2. The first `known` of them are full nodes of the tree, each the parent of the next.
 *  3. A block that is no node is held by this lease alone: only such are written to.
 */
#ifndef MICA_SESSION_KV_LEASE_H
#define MICA_SESSION_KV_LEASE_H
#include "session/kv_blocks.h"

typedef struct mica_kv_lease {
    mica_kv_blocks *blocks; /* NULL: the session has a cache of its own, and no lease */
    mica_kv *kv;            /* the session's view */
    int32_t n, known, window0;
} mica_kv_lease;

/** Makes *kv a view, in which nothing is computed, of n_ctx positions; `tables` has mica_kv_lease_tables(n_ctx) numbers. All are
 * borrowed. */
void mica_kv_lease_init(mica_kv_lease *l, mica_kv_blocks *blocks, mica_kv *kv, int32_t n_ctx, int32_t *tables);
size_t mica_kv_lease_tables(int32_t n_ctx);

/** Takes what others have computed of tokens[0..n) behind the n_computed positions that are there, where those are whole blocks of
 * the tree; a block of which only a part fits is copied. Returns how many positions are computed now. */
int32_t mica_kv_lease_find(mica_kv_lease *l, const int32_t *tokens, int32_t n, int32_t n_computed);

/** Makes positions [n_computed, end) ready to be written, and gives up what lies behind, and what windowed layers do not see any
 * more. False: there is no memory for all of it; the call can be repeated. */
bool mica_kv_lease_reserve(mica_kv_lease *l, int32_t n_computed, int32_t end);

/** The same for a cache that is filled from elsewhere: windowed layers from `first` on. */
bool mica_kv_lease_fill(mica_kv_lease *l, int32_t first, int32_t end);

/** Puts the full blocks of tokens[0..n_computed) into the tree. */
void mica_kv_lease_publish(mica_kv_lease *l, const int32_t *tokens, int32_t n_computed);

/** The same, with the rest that fills no block: nothing is written for a while. */
void mica_kv_lease_rest(mica_kv_lease *l, const int32_t *tokens, int32_t n_computed);

/** Gives everything up. Whoever wants it to stay in the tree calls mica_kv_lease_rest() before. */
void mica_kv_lease_release(mica_kv_lease *l);

#endif
