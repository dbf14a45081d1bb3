/* kv.h - the key-value cache: keys (after RoPE) and values, in F16, Q8_0 or Q4_0. docs/memory.md is its page.
 *
 * Layout: [layer][kv head][slot][head_dim]; a row of head_dim elements is whole blocks of its format. A layer of full
 * attention has n_ctx slots. A windowed layer has a ring of them: position p lies in slot p mod its size, which is a multiple
 * of 512 (or n_ctx, if that is less: then nothing wraps), so that a tile of 64 positions (docs/numerics.md) of one head is
 * contiguous in any cache. Quantised keys, and the queries that meet them, are rotated by a Hadamard transform: it spreads a
 * few large elements over all, which rounding to 4 or 8 bits needs (Ashkboos et al. 2024, QuaRot).
 *
 * The caches of a batch's sessions are views of one memory instead (kv_blocks.h): there, tables say in which block of
 * MICA_KV_BLOCK slots 32 positions lie.
 *
 * Invariants:
 *  1. Layers of full attention hold positions [0, n) of the current history, windowed ones [first, n) of them, where n is the
 *     owner's to know. What lies beyond is never read.
 *  2. A step of at most `step` tokens, the number the ring was made for, never overwrites what one of its tokens sees.
 *  3. Only mica_kv_extend(), called by the forward pass, restoring a snapshot and a view's lease (kv_lease.h) change `first`.
 * Owned by the session.
 */
#ifndef MICA_MODEL_KV_H
#define MICA_MODEL_KV_H
#include <stdint.h>

#include "model/arch.h"

#define MICA_KV_BLOCK 32 /* positions of a block; half a tile of attention (docs/numerics.md) */

/** Blocks that n >= 0 positions take. */
static inline int32_t mica_kv_blocks_for(int32_t n) { return n / MICA_KV_BLOCK + (n % MICA_KV_BLOCK != 0); }

enum { MICA_KV_FULL, MICA_KV_WINDOWED, MICA_KV_KINDS }; /* of layers: the kind of layer i is h->windowed[i] */

typedef struct mica_kv {
    uint8_t *k, *v;
    const mica_hparams *h;
    const mica_quant *k_quant, *v_quant;
    int32_t n_ctx;
    int32_t slots[MICA_KV_KINDS];  /* of a head in a layer of each kind */
    int32_t *table[MICA_KV_KINDS]; /* a view: [n_ctx / MICA_KV_BLOCK, rounded up] the blocks of the positions; else NULL */
    int32_t first; /* windowed layers: the lowest position that is still there */
    size_t row0[MICA_MAX_LAYERS]; /* index, in rows, of the first slot of a layer */
} mica_kv;

/** Whether a head of this size is whole blocks of the format. */
static inline bool mica_kv_fits(const mica_hparams *h, const mica_quant *quant) { return h->head_dim % quant->block_weights == 0; }

/** Slots of a windowed layer in a context of n_ctx that is computed in steps of at most `step` tokens. */
int32_t mica_kv_ring(const mica_hparams *h, int32_t n_ctx, int32_t step);

/** Bytes of the keys (or of the values) with so many slots for each kind of layer; 0 if they do not fit size_t. */
size_t mica_kv_slot_bytes(const mica_hparams *h, const mica_quant *quant, const int32_t slots[MICA_KV_KINDS]);

/** The same for a cache of one sequence. */
size_t mica_kv_half_bytes(const mica_hparams *h, const mica_quant *quant, int32_t n_ctx, int32_t step);

/** An empty cache in `k` and `v`, mica_kv_half_bytes() each. Borrows h and the formats. */
void mica_kv_init(mica_kv *kv, const mica_hparams *h, int32_t n_ctx, int32_t step, const mica_quant *k_quant,
                  const mica_quant *v_quant, void *k, void *v);

/** Places the layers' slots in `k` and `v`, mica_kv_slot_bytes() each: the part that all views of one memory share. */
void mica_kv_lay_out(mica_kv *kv, const mica_hparams *h, const int32_t slots[MICA_KV_KINDS], const mica_quant *k_quant,
                     const mica_quant *v_quant, void *k, void *v);

/** Copies the first n positions of a block to another one, in all layers of a kind. */
void mica_kv_copy_block(const mica_kv *kv, int kind, int32_t from, int32_t to, int32_t n);

/** Positions [pos, pos + n) are about to be written; pos 0 begins anew. */
void mica_kv_extend(mica_kv *kv, int32_t pos, int32_t n);

/** Whether what a token at `pos` sees, itself not counted, is all there, given that positions up to pos were computed. */
bool mica_kv_can_resume(const mica_kv *kv, int32_t pos);

/** Index, in rows, of a slot of a head. */
static inline size_t mica_kv_slot_row(const mica_kv *kv, int32_t layer, int32_t head, int32_t slot)
{
    return kv->row0[layer] + (size_t)head * (size_t)kv->slots[kv->h->windowed[layer]] + (size_t)slot;
}

/** Index, in rows, of position `pos` of a head. */
static inline size_t mica_kv_row(const mica_kv *kv, int32_t layer, int32_t head, int32_t pos)
{
    int kind = kv->h->windowed[layer];
    const int32_t *table = kv->table[kind];
    int32_t slot = table ? table[pos / MICA_KV_BLOCK] * MICA_KV_BLOCK + pos % MICA_KV_BLOCK : pos % kv->slots[kind];
    return mica_kv_slot_row(kv, layer, head, slot);
}

static inline uint8_t *mica_kv_key(const mica_kv *kv, size_t row)
{
    return kv->k + row * mica_quant_bytes(kv->k_quant, (size_t)kv->h->head_dim);
}

static inline uint8_t *mica_kv_value(const mica_kv *kv, size_t row)
{
    return kv->v + row * mica_quant_bytes(kv->v_quant, (size_t)kv->h->head_dim);
}

/** Whether keys and queries are rotated. */
static inline bool mica_kv_rotates(const mica_kv *kv) { return kv->k_quant->block_weights > 1; }

/** Element types of the keys and of the values. */
static inline mica_type mica_kv_k_type(const mica_kv *kv) { return kv->k_quant->type; }
static inline mica_type mica_kv_v_type(const mica_kv *kv) { return kv->v_quant->type; }

/** First of the positions below n that a layer is asked to keep: `first` for a windowed one. */
static inline int32_t mica_kv_first(const mica_hparams *h, int32_t layer, int32_t first)
{
    return h->windowed[layer] ? first : 0;
}

/** Where positions [pos, pos + n) of a head lie; n is cut to what is contiguous. As many bytes in any cache of these
 * formats. */
typedef struct mica_kv_range {
    void *k, *v;
    size_t k_bytes, v_bytes;
    int32_t n;
} mica_kv_range;

mica_kv_range mica_kv_head(const mica_kv *kv, int32_t layer, int32_t head, int32_t pos, int32_t n);

/** Rows of the keys (or values) of positions [0, n), of which windowed layers have [first, n): 0 <= first <= n. */
uint64_t mica_kv_rows(const mica_hparams *h, int32_t first, int32_t n);

#endif
