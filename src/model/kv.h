/* kv.h - the key-value cache: keys (after RoPE) and values of every position, F16.
 *
 * Layout: [layer][kv head][position][head_dim], so that a tile of positions of one head is contiguous.
 * Invariant: positions [0, n) hold what the current history computed; what lies beyond is never read. Owned by the session.
 */
#ifndef MICA_MODEL_KV_H
#define MICA_MODEL_KV_H
#include <stdint.h>

#include "model/arch.h"

typedef struct mica_kv {
    uint16_t *k, *v;
    int32_t n_ctx, n_kv_heads, head_dim;
} mica_kv;

/** Bytes of the keys (or of the values) for n_ctx positions; 0 if it does not fit size_t. */
static inline size_t mica_kv_half_bytes(const mica_hparams *h, int32_t n_ctx)
{
    size_t bytes = (size_t)h->n_layers * (size_t)h->n_kv_heads * (size_t)h->head_dim * sizeof(uint16_t); /* <= 2^9+16+12+1 */
    return __builtin_mul_overflow(bytes, (size_t)n_ctx, &bytes) ? 0 : bytes;
}

/** Index of position `pos` of a head in k and v. */
static inline size_t mica_kv_at(const mica_kv *kv, int32_t layer, int32_t head, int32_t pos)
{
    size_t row = ((size_t)layer * (size_t)kv->n_kv_heads + (size_t)head) * (size_t)kv->n_ctx + (size_t)pos;
    return row * (size_t)kv->head_dim;
}

#endif
