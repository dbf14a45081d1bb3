/* kv.h - the key-value cache: keys (after RoPE) and values of every position, in F16, Q8_0 or Q4_0.
 *
 * Layout: [layer][kv head][position][head_dim], so that a tile of positions of one head is contiguous; a row of head_dim elements is
 * whole blocks of its format. Quantised keys, and the queries that meet them, are rotated by a Hadamard transform: it spreads a
 * few large elements over all, which rounding to 4 or 8 bits needs (Ashkboos et al. 2024, QuaRot).
 * Invariant: positions [0, n) hold what the current history computed; what lies beyond is never read. Owned by the session.
 */
#ifndef MICA_MODEL_KV_H
#define MICA_MODEL_KV_H
#include <stdint.h>

#include "model/arch.h"

typedef struct mica_kv {
    uint8_t *k, *v;
    const mica_quant *k_quant, *v_quant;
    int32_t n_ctx, n_kv_heads, head_dim;
} mica_kv;

/** Whether a head of this size is whole blocks of the format. */
static inline bool mica_kv_fits(const mica_hparams *h, const mica_quant *quant) { return h->head_dim % quant->block_weights == 0; }

/** Bytes of the keys (or of the values) for n_ctx positions; 0 if it does not fit size_t. */
static inline size_t mica_kv_half_bytes(const mica_hparams *h, const mica_quant *quant, int32_t n_ctx)
{
    size_t row = mica_quant_bytes(quant, (size_t)h->head_dim);
    size_t bytes = (size_t)h->n_layers * (size_t)h->n_kv_heads * row; /* <= 2^(9 + 16 + 13) */
    return __builtin_mul_overflow(bytes, (size_t)n_ctx, &bytes) ? 0 : bytes;
}

/** Index, in rows, of position `pos` of a head. */
static inline size_t mica_kv_row(const mica_kv *kv, int32_t layer, int32_t head, int32_t pos)
{
    return ((size_t)layer * (size_t)kv->n_kv_heads + (size_t)head) * (size_t)kv->n_ctx + (size_t)pos;
}

static inline uint8_t *mica_kv_key(const mica_kv *kv, size_t row)
{
    return kv->k + row * mica_quant_bytes(kv->k_quant, (size_t)kv->head_dim);
}

static inline uint8_t *mica_kv_value(const mica_kv *kv, size_t row)
{
    return kv->v + row * mica_quant_bytes(kv->v_quant, (size_t)kv->head_dim);
}

/** Whether keys and queries are rotated. */
static inline bool mica_kv_rotates(const mica_kv *kv) { return kv->k_quant->block_weights > 1; }

/** Element types of the keys and of the values. */
static inline mica_type mica_kv_k_type(const mica_kv *kv) { return kv->k_quant->type; }
static inline mica_type mica_kv_v_type(const mica_kv *kv) { return kv->v_quant->type; }

/** Where positions [0, n) of a head lie: contiguous, and as many bytes in a cache of any n_ctx >= n. */
typedef struct mica_kv_range {
    void *k, *v;
    size_t k_bytes, v_bytes;
} mica_kv_range;

static inline mica_kv_range mica_kv_head(const mica_kv *kv, int32_t layer, int32_t head, int32_t n)
{
    size_t row = mica_kv_row(kv, layer, head, 0), count = (size_t)n * (size_t)kv->head_dim;
    return (mica_kv_range){mica_kv_key(kv, row), mica_kv_value(kv, row), mica_quant_bytes(kv->k_quant, count),
                           mica_quant_bytes(kv->v_quant, count)};
}

#endif
