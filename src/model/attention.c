#include "model/attention.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kern/fmath.h"
#include "model/hadamard.h"

/* The law (docs/numerics.md): positions fall into tiles of 64 and groups of 512, at fixed absolute places. Within a group the online
 * softmax (Milakov & Gimelshein 2018) is updated tile by tile from nothing; the groups' results are joined in order. So groups may
 * be computed by different threads. */
#define GROUP (8 * MICA_ATTN_TILE)
#define QUERY_BLOCK 16  /* rows that share a widened tile; bounds the state kept in scratch */
#define SPLIT_PARTS 256 /* a step of at most so many (row, group) pairs is split over groups too; the parts are in the workspace */

/* Softmax of one query head over some positions: sum_t e^(s_t - max) v_t and the sum of the weights. */
typedef struct attn_state {
    float max, sum;
} attn_state;

typedef struct attn_scratch {
    float *k, *v;      /* [TILE][head_dim], widened */
    float *scores;     /* [heads of an item][TILE] */
    float *alpha;      /* [heads of an item] */
    attn_state *state; /* [QUERY_BLOCK][heads of an item]: of the group */
    attn_state *total; /* the same: of the groups before it */
    float *out;        /* [QUERY_BLOCK][heads of an item][head_dim]: of the group */
} attn_scratch;

/* One piece of work: query heads [head0, head0 + heads), which share a KV head, for rows [t0, t1) of the step, which belong to one
 * sequence; row t is at position t + shift. Positions from `from` on and below `to`, multiples of GROUP (or the end). */
typedef struct attn_item {
    const mica_kv *kv;
    int32_t layer, kv_head, head0, heads, t0, t1, shift, from, to;
} attn_item;

static size_t group_of(const mica_hparams *h) { return (size_t)(h->n_heads / h->n_kv_heads); }

/* One part of a step that is split: the states of all heads, then their outputs. */
static size_t part_floats(const mica_hparams *h)
{
    return (size_t)h->n_heads * ((size_t)h->head_dim + sizeof(attn_state) / sizeof(float));
}

size_t mica_attention_parts_bytes(const mica_hparams *h) { return SPLIT_PARTS * part_floats(h) * sizeof(float); }

size_t mica_attention_scratch(const mica_hparams *h)
{
    size_t states = QUERY_BLOCK * group_of(h), tile = MICA_ATTN_TILE * (size_t)h->head_dim;
    size_t scores = group_of(h) * (MICA_ATTN_TILE + 1);
    return (2 * tile + scores + states * (size_t)h->head_dim) * sizeof(float) + 2 * states * sizeof(attn_state) + 7 * 64;
}

static attn_scratch scratch_layout(const mica_hparams *h, void *memory)
{
    size_t states = QUERY_BLOCK * group_of(h), tile = mica_round_up(MICA_ATTN_TILE * (size_t)h->head_dim, 16);
    attn_scratch s;
    s.k = memory;
    s.v = s.k + tile;
    s.scores = s.v + tile;
    s.alpha = s.scores + group_of(h) * MICA_ATTN_TILE;
    s.out = s.alpha + mica_round_up(group_of(h), 16);
    s.state = (attn_state *)(void *)(s.out + mica_round_up(states * (size_t)h->head_dim, 16));
    s.total = s.state + states;
    return s;
}

/* First position that the query at `pos` sees. */
static int32_t first_visible(const mica_hparams *h, int32_t layer, int32_t pos)
{
    return h->windowed[layer] && pos >= h->window ? pos - h->window + 1 : 0;
}

static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

static const float *query(const mica_exec *e, int32_t row, int32_t head)
{
    return e->q + ((size_t)row * (size_t)e->w->h.n_heads + (size_t)head) * (size_t)e->w->h.head_dim;
}

static float *output(const mica_exec *e, int32_t row, int32_t head)
{
    return e->attn + ((size_t)row * (size_t)e->w->h.n_heads + (size_t)head) * (size_t)e->w->h.head_dim;
}

/* The query heads of row t meet positions [from, to) of the widened tile at `base`. */
static void update(const mica_exec *e, const attn_scratch *s, const attn_item *it, int32_t t, int32_t base, int32_t from,
                   int32_t to)
{
    const mica_hparams *h = &e->w->h;
    const mica_kernels *kern = e->kern;
    size_t dim = (size_t)h->head_dim, j = (size_t)(t - it->t0) * (size_t)it->heads, at = (size_t)(from - base) * dim;
    float scale = mica_kv_rotates(it->kv) ? h->attn_scale / MICA_HADAMARD : h->attn_scale;
    int32_t n = to - from;
    kern->qk(query(e, t, it->head0), it->heads, s->k + at, n, h->head_dim, scale, s->scores);
    for (int32_t i = 0; i < it->heads; i++) {
        float *scores = s->scores + i * MICA_ATTN_TILE;
        attn_state *state = &s->state[j + (size_t)i];
        if (h->attn_softcap > 0.0f)
            kern->softcap(scores, h->attn_softcap, n);
        float highest = kern->max(scores, n), max = highest > state->max ? highest : state->max;
        s->alpha[i] = mica_expf(state->max - max);
        state->sum = fmaf(state->sum, s->alpha[i], kern->exp_sum(scores, max, n));
        state->max = max;
    }
    kern->pv(s->out + j * dim, it->heads, s->alpha, s->scores, s->v + at, n, h->head_dim);
}

/* Positions [lo, hi) of the tile at `base` become floats. */
static void widen_tile(const mica_exec *e, const attn_scratch *s, const attn_item *it, int32_t base, int32_t lo, int32_t hi)
{
    int64_t dim = e->w->h.head_dim;
    while (lo < hi) {
        mica_kv_range in = mica_kv_head(it->kv, it->layer, it->kv_head, lo, hi - lo);
        e->kern->widen[it->kv->k_quant->type](in.k, s->k + (lo - base) * dim, in.n * dim);
        e->kern->widen[it->kv->v_quant->type](in.v, s->v + (lo - base) * dim, in.n * dim);
        lo += in.n;
    }
}

/* All queries of the item meet the tile at `base`. */
static void attend_tile(const mica_exec *e, const attn_scratch *s, const attn_item *it, int32_t base)
{
    const mica_hparams *h = &e->w->h;
    int32_t lo = larger(first_visible(h, it->layer, it->t0 + it->shift), base);
    int32_t hi = smaller(it->t1 + it->shift, base + MICA_ATTN_TILE); /* of any query of the item */
    if (lo >= hi)
        return;
    widen_tile(e, s, it, base, lo, hi);
    for (int32_t t = it->t0; t < it->t1; t++) {
        int32_t from = larger(first_visible(h, it->layer, t + it->shift), base);
        int32_t to = smaller(t + it->shift + 1, base + MICA_ATTN_TILE);
        if (from < to)
            update(e, s, it, t, base, from, to);
    }
}

/* The group at `base`, from nothing: s->state and s->out. */
static void attend_group(const mica_exec *e, const attn_scratch *s, const attn_item *it, int32_t base)
{
    int32_t n = (it->t1 - it->t0) * it->heads;
    for (int32_t j = 0; j < n; j++)
        s->state[j] = (attn_state){-INFINITY, 0.0f};
    memset(s->out, 0, (size_t)n * (size_t)e->w->h.head_dim * sizeof(float));
    for (int32_t tile = base; tile < smaller(base + GROUP, it->t1 + it->shift); tile += MICA_ATTN_TILE)
        attend_tile(e, s, it, tile);
}

/* total += part: both become relative to the larger maximum. The first part is taken as it is. */
static void join(const mica_exec *e, attn_state *total, float *out, const attn_state *part, const float *part_out)
{
    int64_t dim = e->w->h.head_dim;
    if (total->sum == 0.0f && total->max == -INFINITY) {
        *total = *part;
        memcpy(out, part_out, (size_t)dim * sizeof *out);
        return;
    }
    float max = part->max > total->max ? part->max : total->max;
    float a = mica_expf(total->max - max), b = mica_expf(part->max - max);
    total->sum = fmaf(total->sum, a, part->sum * b);
    total->max = max;
    e->kern->pv(out, 1, &a, &b, part_out, 1, dim);
}

/* The whole of an item's positions: group after group into e->attn. */
static void attend(const mica_exec *e, const attn_scratch *s, const attn_item *it)
{
    size_t dim = (size_t)e->w->h.head_dim;
    int32_t n = (it->t1 - it->t0) * it->heads;
    for (int32_t j = 0; j < n; j++)
        s->total[j] = (attn_state){-INFINITY, 0.0f};
    for (int32_t base = it->from; base < it->to; base += GROUP) {
        attend_group(e, s, it, base);
        for (int32_t j = 0; j < n; j++)
            if (s->state[j].sum != 0.0f) /* a group before a row's window gave nothing; NaN is not 0 */
                join(e, &s->total[j], output(e, it->t0 + j / it->heads, it->head0 + j % it->heads), &s->state[j], s->out + (size_t)j * dim);
    }
    for (int32_t j = 0; j < n; j++)
        e->kern->scale(output(e, it->t0 + j / it->heads, it->head0 + j % it->heads), 1.0f / s->total[j].sum, (int64_t)dim);
}

/* ---- steps of few rows: one item a group, joined afterwards ---- */

static int32_t first_group(const mica_exec *e, int32_t layer, int32_t row)
{
    return first_visible(&e->w->h, layer, e->rows[row].pos) / GROUP;
}

static int32_t groups_of_row(const mica_exec *e, int32_t layer, int32_t row)
{
    return e->rows[row].pos / GROUP - first_group(e, layer, row) + 1;
}

/* Where the parts of a row begin: they lie row after row, group after group. */
static float *parts_of(const mica_exec *e, int32_t layer, int32_t row)
{
    int32_t before = 0;
    for (int32_t r = 0; r < row; r++)
        before += groups_of_row(e, layer, r);
    return e->attn_parts + (size_t)before * part_floats(&e->w->h);
}

static bool is_split(const mica_exec *e, int32_t layer, int32_t n_rows)
{
    int32_t parts = 0;
    for (int32_t r = 0; r < n_rows && parts <= SPLIT_PARTS; r++)
        parts += groups_of_row(e, layer, r);
    return n_rows <= QUERY_BLOCK && parts <= SPLIT_PARTS;
}

static void attend_part(const mica_exec *e, const attn_scratch *s, const attn_item *it)
{
    size_t dim = (size_t)e->w->h.head_dim, heads = (size_t)e->w->h.n_heads;
    attend_group(e, s, it, it->from);
    for (int32_t t = it->t0; t < it->t1; t++) {
        int32_t group = it->from / GROUP - first_group(e, it->layer, t);
        if (group < 0 || group >= groups_of_row(e, it->layer, t))
            continue; /* seen by another row of the item only */
        float *part = parts_of(e, it->layer, t) + (size_t)group * part_floats(&e->w->h);
        size_t j = (size_t)(t - it->t0) * (size_t)it->heads;
        memcpy((attn_state *)(void *)part + it->head0, s->state + j, (size_t)it->heads * sizeof(attn_state));
        memcpy(part + heads * 2 + (size_t)it->head0 * dim, s->out + j * dim, (size_t)it->heads * dim * sizeof(float));
    }
}

const float *mica_attention_join(const mica_exec *e, int32_t layer, int32_t row, int32_t n_rows, float *out)
{
    const mica_hparams *h = &e->w->h;
    if (!is_split(e, layer, n_rows))
        return output(e, row, 0);
    const float *parts = parts_of(e, layer, row);
    int32_t groups = groups_of_row(e, layer, row);
    for (int32_t head = 0; head < h->n_heads; head++) {
        float *o = out + (size_t)head * (size_t)h->head_dim;
        attn_state total = {-INFINITY, 0.0f};
        for (int32_t g = 0; g < groups; g++) {
            const float *part = parts + (size_t)g * part_floats(h);
            const attn_state *state = (const attn_state *)(const void *)part + head;
            if (state->sum != 0.0f)
                join(e, &total, o, state, part + (size_t)h->n_heads * 2 + (size_t)head * (size_t)h->head_dim);
        }
        e->kern->scale(o, 1.0f / total.sum, h->head_dim);
    }
    return out;
}

/* ---- the items of a step ---- */

typedef struct attn_plan {
    int32_t layer, heads, per_group; /* query heads of an item; items for one block of rows and one group */
    bool split;
} attn_plan;

static int32_t blocks_of(const mica_span *span) { return (span->n + QUERY_BLOCK - 1) / QUERY_BLOCK; }

/* Rows of a block of a span, and the groups they see. */
static attn_item block_item(const mica_exec *e, int32_t layer, const mica_span *span, int32_t first_row, int32_t block)
{
    int32_t t0 = block * QUERY_BLOCK, t1 = smaller(t0 + QUERY_BLOCK, span->n);
    attn_item it = {.kv = span->kv, .layer = layer, .t0 = first_row + t0, .t1 = first_row + t1, .shift = span->pos - first_row};
    it.from = first_visible(&e->w->h, layer, span->pos + t0) / GROUP * GROUP;
    it.to = span->pos + t1;
    return it;
}

static int32_t items_of(const attn_item *it, const attn_plan *plan)
{
    return plan->per_group * (plan->split ? (it->to - it->from + GROUP - 1) / GROUP : 1);
}

/* Narrows a block to its item number `i`. */
static void pick_item(const mica_exec *e, attn_item *it, const attn_plan *plan, int32_t i)
{
    it->heads = plan->heads;
    it->head0 = i % plan->per_group * plan->heads;
    it->kv_head = it->head0 / (e->w->h.n_heads / e->w->h.n_kv_heads);
    if (plan->split) {
        it->from += i / plan->per_group * GROUP;
        it->to = smaller(it->from + GROUP, it->to);
    }
}

static int32_t count_items(const mica_exec *e, const mica_span *spans, int32_t n_spans, const attn_plan *plan)
{
    int32_t count = 0;
    for (int32_t s = 0, row = 0; s < n_spans; row += spans[s].n, s++)
        for (int32_t b = 0; b < blocks_of(&spans[s]); b++) {
            attn_item it = block_item(e, plan->layer, &spans[s], row, b);
            count += items_of(&it, plan);
        }
    return count;
}

/* How long the threads take for the items, each given to the one that is free first: a position costs its widening, and each
 * query head. */
static int64_t duration(const mica_exec *e, const mica_span *spans, int32_t n_spans, const attn_plan *plan)
{
    int64_t busy[MICA_MAX_THREADS] = {0}, longest = 0;
    int threads = mica_pool_threads(e->pool);
    for (int32_t s = 0, row = 0; s < n_spans; row += spans[s].n, s++)
        for (int32_t b = 0; b < blocks_of(&spans[s]); b++) {
            attn_item block = block_item(e, plan->layer, &spans[s], row, b);
            for (int32_t i = 0; i < items_of(&block, plan); i++) {
                attn_item it = block;
                int first = 0;
                pick_item(e, &it, plan, i);
                int32_t seen = it.to - larger(it.from, first_visible(&e->w->h, plan->layer, it.t0 + it.shift));
                for (int k = 1; k < threads; k++)
                    first = busy[k] < busy[first] ? k : first;
                busy[first] += (int64_t)seen * (1 + (it.t1 - it.t0) * it.heads);
                longest = busy[first] > longest ? busy[first] : longest;
            }
        }
    return longest;
}

/* A tile is widened once for all query heads that share it, unless fewer heads an item keep the threads better at work: the last
 * and the first group of a window have few positions. */
static attn_plan make_plan(const mica_exec *e, int32_t layer, const mica_span *spans, int32_t n_spans, int32_t rows)
{
    const mica_hparams *h = &e->w->h;
    int32_t group = h->n_heads / h->n_kv_heads, threads = mica_pool_threads(e->pool);
    attn_plan best = {layer, group, h->n_kv_heads, is_split(e, layer, rows)};
    if (threads == 1 || count_items(e, spans, n_spans, &best) >= 4 * threads)
        return best;
    int64_t shortest = duration(e, spans, n_spans, &best);
    for (int32_t heads = group / 2; heads >= 1; heads--) {
        attn_plan plan = {layer, heads, h->n_heads / heads, best.split};
        int64_t needed;
        if (group % heads == 0 && (needed = duration(e, spans, n_spans, &plan)) < shortest) {
            best = plan;
            shortest = needed;
        }
    }
    return best;
}

void mica_attention(const mica_exec *e, int32_t layer, const mica_span *spans, int32_t n_spans, int32_t n_rows, void *scratch)
{
    attn_scratch s = scratch_layout(&e->w->h, scratch);
    attn_plan plan = make_plan(e, layer, spans, n_spans, n_rows);
    int64_t next = mica_pool_next(e->pool, 1), item = 0;
    for (int32_t i = 0, row = 0; i < n_spans; row += spans[i].n, i++) {
        for (int32_t b = 0; b < blocks_of(&spans[i]); b++) {
            attn_item block = block_item(e, layer, &spans[i], row, b);
            int32_t count = items_of(&block, &plan);
            for (; next < item + count; next = mica_pool_next(e->pool, 1)) {
                attn_item it = block;
                pick_item(e, &it, &plan, (int32_t)(next - item));
                (plan.split ? attend_part : attend)(e, &s, &it);
            }
            item += count;
        }
    }
}
