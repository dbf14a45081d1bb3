#include "model/attention.h"

#include <math.h>
#include <string.h>

#include "kern/fmath.h"

#define QUERY_BLOCK 16 /* tokens that share a widened tile; bounds the running state kept in scratch */

typedef struct attn_scratch {
    float *k, *v;  /* [TILE][head_dim], widened */
    float *scores; /* [TILE] */
    float *max, *sum; /* [QUERY_BLOCK * heads of an item]: online softmax */
} attn_scratch;

/* One piece of work: query heads [head0, head0 + heads), which share a KV head, for rows [t0, t1) of the step, which belong to one
 * sequence; row t is at position t + shift. */
typedef struct attn_item {
    const mica_kv *kv;
    int32_t layer, kv_head, head0, heads, t0, t1, shift;
} attn_item;

size_t mica_attention_scratch(const mica_hparams *h)
{
    size_t group = (size_t)(h->n_heads / h->n_kv_heads);
    return (2 * MICA_ATTN_TILE * (size_t)h->head_dim + MICA_ATTN_TILE + 2 * QUERY_BLOCK * group) * sizeof(float);
}

static attn_scratch scratch_layout(const mica_hparams *h, void *memory)
{
    attn_scratch s;
    size_t tile = MICA_ATTN_TILE * (size_t)h->head_dim;
    s.k = memory;
    s.v = s.k + tile;
    s.scores = s.v + tile;
    s.max = s.scores + MICA_ATTN_TILE;
    s.sum = s.max + QUERY_BLOCK * (size_t)(h->n_heads / h->n_kv_heads);
    return s;
}

/* First position that the query at `pos` sees. */
static int32_t first_visible(const mica_hparams *h, int32_t layer, int32_t pos)
{
    return h->windowed[layer] && pos >= h->window ? pos - h->window + 1 : 0;
}

/* One query head meets the positions [from, to) of the tile that starts at `base`. */
static void update(const mica_exec *e, const attn_scratch *s, const float *q, float *out, int32_t base, int32_t from, int32_t to,
                   float *max, float *sum)
{
    const mica_hparams *h = &e->w->h;
    const mica_kernels *kern = e->kern;
    int64_t n = to - from, skip = (int64_t)(from - base) * h->head_dim;
    kern->qk(q, s->k + skip, n, h->head_dim, h->attn_scale, s->scores);
    if (h->attn_softcap > 0.0f)
        kern->softcap(s->scores, h->attn_softcap, n);
    float highest = kern->max(s->scores, n), new_max = highest > *max ? highest : *max;
    float alpha = mica_expf(*max - new_max);
    *sum = fmaf(*sum, alpha, kern->exp_sum(s->scores, new_max, n));
    *max = new_max;
    kern->pv(out, alpha, s->scores, s->v + skip, n, h->head_dim);
}

/* All queries of the item meet the tile. */
static void attend_tile(const mica_exec *e, const attn_scratch *s, const attn_item *it, int32_t base)
{
    const mica_hparams *h = &e->w->h;
    int32_t lo = first_visible(h, it->layer, it->t0 + it->shift), hi = it->t1 + it->shift; /* of any query of the item */
    lo = lo > base ? lo : base;
    hi = hi < base + MICA_ATTN_TILE ? hi : base + MICA_ATTN_TILE;
    size_t at = mica_kv_at(it->kv, it->layer, it->kv_head, lo);
    int64_t skip = (int64_t)(lo - base) * h->head_dim, count = (int64_t)(hi - lo) * h->head_dim;
    e->kern->f16_to_f32(it->kv->k + at, s->k + skip, count);
    e->kern->f16_to_f32(it->kv->v + at, s->v + skip, count);
    for (int32_t t = it->t0; t < it->t1; t++) {
        int32_t from = first_visible(h, it->layer, t + it->shift), to = t + it->shift + 1;
        from = from > base ? from : base;
        to = to < base + MICA_ATTN_TILE ? to : base + MICA_ATTN_TILE;
        for (int32_t i = 0; i < it->heads && from < to; i++) {
            size_t offset = ((size_t)t * (size_t)h->n_heads + (size_t)(it->head0 + i)) * (size_t)h->head_dim;
            int32_t state = (t - it->t0) * it->heads + i;
            update(e, s, e->q + offset, e->attn + offset, base, from, to, &s->max[state], &s->sum[state]);
        }
    }
}

static void attend(const mica_exec *e, const attn_scratch *s, const attn_item *it)
{
    const mica_hparams *h = &e->w->h;
    for (int32_t i = 0; i < (it->t1 - it->t0) * it->heads; i++) {
        s->max[i] = -INFINITY;
        s->sum[i] = 0.0f;
    }
    for (int32_t t = it->t0; t < it->t1; t++)
        memset(e->attn + ((size_t)t * (size_t)h->n_heads + (size_t)it->head0) * (size_t)h->head_dim, 0,
               (size_t)it->heads * (size_t)h->head_dim * sizeof(float));
    int32_t first = first_visible(h, it->layer, it->t0 + it->shift) / MICA_ATTN_TILE * MICA_ATTN_TILE;
    for (int32_t base = first; base < it->t1 + it->shift; base += MICA_ATTN_TILE)
        attend_tile(e, s, it, base);
    for (int32_t t = it->t0; t < it->t1; t++)
        for (int32_t i = 0; i < it->heads; i++)
            e->kern->scale(e->attn + ((size_t)t * (size_t)h->n_heads + (size_t)(it->head0 + i)) * (size_t)h->head_dim,
                           1.0f / s->sum[(t - it->t0) * it->heads + i], h->head_dim);
}

static int32_t blocks_of(const mica_span *span) { return (span->n + QUERY_BLOCK - 1) / QUERY_BLOCK; }

/* A tile is widened once for all query heads of its group, unless that leaves threads without work. */
static int32_t heads_of_item(const mica_exec *e, int32_t blocks)
{
    int32_t items = blocks * e->w->h.n_kv_heads, threads = mica_pool_threads(e->pool);
    return items % threads == 0 || items >= 8 * threads ? e->w->h.n_heads / e->w->h.n_kv_heads : 1;
}

void mica_attention(const mica_exec *e, int32_t layer, const mica_span *spans, int32_t n_spans, void *scratch)
{
    const mica_hparams *h = &e->w->h;
    attn_scratch s = scratch_layout(h, scratch);
    int32_t blocks = 0, group = h->n_heads / h->n_kv_heads;
    for (int32_t i = 0; i < n_spans; i++)
        blocks += blocks_of(&spans[i]);
    int32_t heads = heads_of_item(e, blocks), per_block = h->n_heads / heads;
    for (int64_t i; (i = mica_pool_next(e->pool, 1)) < (int64_t)blocks * per_block;) {
        int32_t block = (int32_t)(i / per_block), head0 = (int32_t)(i % per_block) * heads, first = 0;
        const mica_span *span = spans;
        for (; block >= blocks_of(span); span++) {
            block -= blocks_of(span);
            first += span->n;
        }
        int32_t t0 = block * QUERY_BLOCK, t1 = t0 + QUERY_BLOCK < span->n ? t0 + QUERY_BLOCK : span->n;
        attn_item it = {span->kv, layer, head0 / group, head0, heads, first + t0, first + t1, span->pos - first};
        attend(e, &s, &it);
    }
}
