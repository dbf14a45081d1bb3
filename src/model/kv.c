#include "model/kv.h"

#include <string.h>

#define RING_UNIT 512 /* a group of the numerics law: attention's tiles stay whole in a ring of such units */
/* Positions before the window that a ring keeps at least: an edit near the end of a history must not cost the whole prompt, and
 * mica_session_score() computes steps of 32 with whatever ring there is. */
#define REWIND 256

static int32_t count_windowed(const mica_hparams *h)
{
    int32_t n = 0;
    for (int32_t i = 0; i < h->n_layers; i++)
        n += h->windowed[i] != 0;
    return n;
}

int32_t mica_kv_ring(const mica_hparams *h, int32_t n_ctx, int32_t step)
{
    int64_t need = (int64_t)h->window + step + REWIND;
    int64_t ring = (need + RING_UNIT - 1) / RING_UNIT * RING_UNIT;
    return count_windowed(h) > 0 && ring < n_ctx ? (int32_t)ring : n_ctx;
}

size_t mica_kv_slot_bytes(const mica_hparams *h, const mica_quant *quant, const int32_t slots[MICA_KV_KINDS])
{
    size_t windowed = (size_t)count_windowed(h), full = (size_t)h->n_layers - windowed;
    size_t total = full * (size_t)slots[MICA_KV_FULL] + windowed * (size_t)slots[MICA_KV_WINDOWED]; /* < 2^(9 + 31) */
    size_t bytes = (size_t)h->n_kv_heads * mica_quant_bytes(quant, (size_t)h->head_dim);            /* <= 2^(16 + 14) */
    return __builtin_mul_overflow(bytes, total, &bytes) ? 0 : bytes;
}

size_t mica_kv_half_bytes(const mica_hparams *h, const mica_quant *quant, int32_t n_ctx, int32_t step)
{
    int32_t slots[MICA_KV_KINDS] = {n_ctx, mica_kv_ring(h, n_ctx, step)};
    return mica_kv_slot_bytes(h, quant, slots);
}

void mica_kv_lay_out(mica_kv *kv, const mica_hparams *h, const int32_t slots[MICA_KV_KINDS], const mica_quant *k_quant,
                     const mica_quant *v_quant, void *k, void *v)
{
    *kv = (mica_kv){.k = k, .v = v, .h = h, .k_quant = k_quant, .v_quant = v_quant};
    size_t row = 0;
    memcpy(kv->slots, slots, sizeof kv->slots);
    for (int32_t i = 0; i < h->n_layers; i++) {
        kv->row0[i] = row;
        row += (size_t)h->n_kv_heads * (size_t)slots[h->windowed[i]];
    }
}

void mica_kv_init(mica_kv *kv, const mica_hparams *h, int32_t n_ctx, int32_t step, const mica_quant *k_quant,
                  const mica_quant *v_quant, void *k, void *v)
{
    int32_t slots[MICA_KV_KINDS] = {n_ctx, mica_kv_ring(h, n_ctx, step)};
    mica_kv_lay_out(kv, h, slots, k_quant, v_quant, k, v);
    kv->n_ctx = n_ctx;
}

void mica_kv_copy_block(const mica_kv *kv, int kind, int32_t from, int32_t to, int32_t n)
{
    const mica_hparams *h = kv->h;
    size_t count = (size_t)n * (size_t)h->head_dim;
    for (int32_t layer = 0; layer < h->n_layers; layer++)
        for (int32_t head = 0; head < h->n_kv_heads && h->windowed[layer] == kind; head++) {
            size_t a = mica_kv_slot_row(kv, layer, head, from * MICA_KV_BLOCK);
            size_t b = mica_kv_slot_row(kv, layer, head, to * MICA_KV_BLOCK);
            memcpy(mica_kv_key(kv, b), mica_kv_key(kv, a), mica_quant_bytes(kv->k_quant, count));
            memcpy(mica_kv_value(kv, b), mica_kv_value(kv, a), mica_quant_bytes(kv->v_quant, count));
        }
}

void mica_kv_extend(mica_kv *kv, int32_t pos, int32_t n)
{
    if (kv->table[MICA_KV_WINDOWED])
        return; /* what a view keeps, its lease decides */
    if (pos == 0)
        kv->first = 0;
    if (pos + n - kv->slots[MICA_KV_WINDOWED] > kv->first)
        kv->first = pos + n - kv->slots[MICA_KV_WINDOWED];
}

bool mica_kv_can_resume(const mica_kv *kv, int32_t pos)
{
    return pos == 0 || kv->first == 0 || pos - kv->h->window + 1 >= kv->first;
}

/* Positions from `pos` on, n or some more, that lie in one piece. */
static int32_t contiguous(const mica_kv *kv, int kind, int32_t pos, int32_t n)
{
    const int32_t *table = kv->table[kind];
    if (!table)
        return kv->slots[kind] - pos % kv->slots[kind];
    int32_t i = pos / MICA_KV_BLOCK, room = MICA_KV_BLOCK - pos % MICA_KV_BLOCK;
    for (; room < n && table[i + 1] == table[i] + 1; i++)
        room += MICA_KV_BLOCK;
    return room;
}

mica_kv_range mica_kv_head(const mica_kv *kv, int32_t layer, int32_t head, int32_t pos, int32_t n)
{
    int32_t room = contiguous(kv, kv->h->windowed[layer], pos, n), part = n < room ? n : room;
    size_t row = mica_kv_row(kv, layer, head, pos), count = (size_t)part * (size_t)kv->h->head_dim;
    return (mica_kv_range){mica_kv_key(kv, row), mica_kv_value(kv, row), mica_quant_bytes(kv->k_quant, count),
                           mica_quant_bytes(kv->v_quant, count), part};
}

uint64_t mica_kv_rows(const mica_hparams *h, int32_t first, int32_t n)
{
    uint64_t windowed = (uint64_t)count_windowed(h), full = (uint64_t)h->n_layers - windowed;
    return (uint64_t)h->n_kv_heads * (full * (uint64_t)n + windowed * (uint64_t)(n - first));
}
