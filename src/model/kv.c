#include "model/kv.h"

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

size_t mica_kv_half_bytes(const mica_hparams *h, const mica_quant *quant, int32_t n_ctx, int32_t step)
{
    size_t windowed = (size_t)count_windowed(h), full = (size_t)h->n_layers - windowed;
    size_t slots = full * (size_t)n_ctx + windowed * (size_t)mica_kv_ring(h, n_ctx, step); /* < 2^(9 + 31) */
    size_t bytes = (size_t)h->n_kv_heads * mica_quant_bytes(quant, (size_t)h->head_dim);   /* <= 2^(16 + 14) */
    return __builtin_mul_overflow(bytes, slots, &bytes) ? 0 : bytes;
}

void mica_kv_init(mica_kv *kv, const mica_hparams *h, int32_t n_ctx, int32_t step, const mica_quant *k_quant,
                  const mica_quant *v_quant, void *k, void *v)
{
    *kv = (mica_kv){.k = k, .v = v, .h = h, .k_quant = k_quant, .v_quant = v_quant, .n_ctx = n_ctx,
                    .ring = mica_kv_ring(h, n_ctx, step)};
    size_t row = 0;
    for (int32_t i = 0; i < h->n_layers; i++) {
        kv->row0[i] = row;
        row += (size_t)h->n_kv_heads * (size_t)mica_kv_slots(kv, i);
    }
}

void mica_kv_extend(mica_kv *kv, int32_t pos, int32_t n)
{
    if (pos == 0)
        kv->first = 0;
    if (pos + n - kv->ring > kv->first)
        kv->first = pos + n - kv->ring;
}

bool mica_kv_can_resume(const mica_kv *kv, int32_t pos)
{
    return pos == 0 || kv->first == 0 || pos - kv->h->window + 1 >= kv->first;
}

mica_kv_range mica_kv_head(const mica_kv *kv, int32_t layer, int32_t head, int32_t pos, int32_t n)
{
    int32_t room = mica_kv_slots(kv, layer) - pos % mica_kv_slots(kv, layer), part = n < room ? n : room;
    size_t row = mica_kv_row(kv, layer, head, pos), count = (size_t)part * (size_t)kv->h->head_dim;
    return (mica_kv_range){mica_kv_key(kv, row), mica_kv_value(kv, row), mica_quant_bytes(kv->k_quant, count),
                           mica_quant_bytes(kv->v_quant, count), part};
}

uint64_t mica_kv_rows(const mica_hparams *h, int32_t first, int32_t n)
{
    uint64_t windowed = (uint64_t)count_windowed(h), full = (uint64_t)h->n_layers - windowed;
    return (uint64_t)h->n_kv_heads * (full * (uint64_t)n + windowed * (uint64_t)(n - first));
}
