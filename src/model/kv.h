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

/** Element types of the keys and of the values. */
static inline mica_type mica_kv_k_type(const mica_kv *kv) { return (void)kv, MICA_TYPE_F16; }
static inline mica_type mica_kv_v_type(const mica_kv *kv) { return (void)kv, MICA_TYPE_F16; }

/** Where positions [0, n) of a head lie: contiguous, and as many bytes in a cache of any n_ctx >= n. */
typedef struct mica_kv_range {
    void *k, *v;
    size_t k_bytes, v_bytes;
} mica_kv_range;

static inline mica_kv_range mica_kv_head(const mica_kv *kv, int32_t layer, int32_t head, int32_t n)
{
    size_t at = mica_kv_at(kv, layer, head, 0), bytes = (size_t)n * (size_t)kv->head_dim * sizeof *kv->k;
    return (mica_kv_range){kv->k + at, kv->v + at, bytes, bytes};
}

#endif
