/* forward.c - the transformer, top to bottom. forward_layer() is the paper; everything above it prepares its pieces.
 *
 * All threads run forward_thread() together (base/pool.h). They share each phase's items, and a barrier ends a phase that the
 * next one reads from: five in a layer of a step of few rows (MICA_FEW_ROWS), in which every thread prepares all rows for
 * itself, nine in others, in which they share the rows.
 */
#include "model/forward.h"

#include "model/attention.h"
#include "model/hadamard.h"
#include "model/rope.h"

#define LAYERS_AHEAD 2 /* read from the disk while a layer is computed, in a model's first step: one on its way, one to come */

typedef struct forward {
    mica_exec *e;
    const mica_span *spans;
    int32_t n_spans, n, n_logits; /* n tokens in all */
    bool few;                     /* every thread has its own residual stream and activations */
    bool states;                  /* the states after the last norm are wanted, not logits */
} forward;

/* One thread's view of the step. */
typedef struct worker {
    const forward *f;
    const mica_exec *e;
    int thread;
    void *scratch;
    float *x;                    /* [n][E], the step's or the thread's own */
    float *branch;               /* [E] room for a normed branch; NULL: it may be normed in place */
    float *cs, *cs_window;       /* [n][rope_dim] */
    const mica_act_set *act;
} worker;

/* ---- sharing rows ---- */

/* The next row that this thread prepares, from 0 for `previous` -1: each of them in steps of few rows, else the next that no
 * thread has. */
static int32_t next_row(const worker *w, int32_t previous)
{
    return w->f->few ? previous + 1 : (int32_t)mica_pool_next(w->e->pool, 1);
}

/* All rows are prepared, as far as this thread reads them. */
static void rows_done(const worker *w)
{
    if (!w->f->few)
        mica_pool_barrier(w->e->pool);
}

/* Quantises row `t` of `x` ([n][k] floats) into the forms in `mask`. */
static void prepare(const worker *w, const float *x, int64_t k, int32_t t, unsigned mask)
{
    const mica_act_set *a = w->act;
    if (mask & MICA_ACT_32)
        w->e->kern->quantize32(x, k, a->q32 + t * k, a->d32 + t * (k / 32), a->sum32 + t * (k / 16));
    if (mask & MICA_ACT_256)
        w->e->kern->quantize256(x, k, a->q256 + t * k, a->d256 + t * (k / 256), a->sum256 + t * (k / 16));
}

/* ---- products ---- */

/* Up to three matrices that read the same activations, as one list of rows: out[i] = w[i] x + bias[i]. */
typedef struct product {
    const mica_weight *w[3];
    float *out[3]; /* [n][rows] */
    const float *bias[3];
    int count;
    const float *floats; /* [n][cols], for float weights */
    int32_t n;
    /** Told of all rows that are computed; may be NULL. */
    void (*done)(const worker *w, int32_t layer, int matrix, int64_t r0, int64_t r1);
    int32_t layer; /* for `done` */
} product;

/* The prepared activations in the form that `m` reads. */
static mica_act prepared(const worker *w, const mica_weight *m, const float *floats, int32_t n)
{
    const mica_act_set *a = w->act;
    switch (mica_act_form(m)) {
    case MICA_ACT_32: return (mica_act){.n = n, .k = m->cols, .block = 32, .q = a->q32, .d = a->d32, .sum = a->sum32};
    case MICA_ACT_256: return (mica_act){.n = n, .k = m->cols, .block = 256, .q = a->q256, .d = a->d256, .sum = a->sum256};
    default: return (mica_act){.n = n, .k = m->cols, .block = 1, .f = floats};
    }
}

static void multiply_rows(const worker *w, const mica_weight *m, const float *floats, int32_t n, float *out, int64_t r0,
                          int64_t r1)
{
    mica_act x = prepared(w, m, floats, n);
    mica_matmul job = {.quant = m->quant, .w = m->data, .row_bytes = m->row_bytes, .x = &x, .out = out, .out_stride = m->rows};
    mica_kernels_multiply(w->e->kern, &job, r0, r1, w->scratch);
}

/* Rows that a thread takes at a time: whole groups of 16 for the kernels, eight helpings a thread for balance. */
static int64_t rows_step(const worker *w, int64_t rows)
{
    int64_t step = rows / (mica_pool_threads(w->e->pool) * 8);
    return step < 16 ? 16 : (step + 15) & ~(int64_t)15;
}

static void multiply_part(const worker *w, const product *p, int i, int64_t r0, int64_t r1)
{
    int64_t rows = p->w[i]->rows;
    multiply_rows(w, p->w[i], p->floats, p->n, p->out[i], r0, r1);
    for (int32_t t = 0; t < p->n && p->bias[i]; t++)
        w->e->kern->add(p->out[i] + t * rows + r0, p->bias[i] + r0, r1 - r0);
    if (p->done)
        p->done(w, p->layer, i, r0, r1);
}

static void multiply(const worker *w, const product *p)
{
    int64_t total = 0;
    for (int i = 0; i < p->count; i++)
        total += p->w[i]->rows;
    int64_t step = mica_pool_threads(w->e->pool) == 1 ? total : rows_step(w, total);
    for (int64_t from; (from = mica_pool_next(w->e->pool, step)) < total;) {
        int64_t to = from + step < total ? from + step : total, first = 0;
        for (int i = 0; i < p->count; first += p->w[i]->rows, i++) {
            int64_t r0 = from > first ? from - first : 0, r1 = to - first < p->w[i]->rows ? to - first : p->w[i]->rows;
            if (r0 < r1)
                multiply_part(w, p, i, r0, r1);
        }
    }
}

/* ---- phases ---- */

static void embed(const worker *w)
{
    const mica_exec *e = w->e;
    const mica_hparams *h = &e->w->h;
    const mica_weight *m = &e->w->embd;
    for (int32_t t = -1; (t = next_row(w, t)) < w->f->n;) {
        float *x = w->x + (int64_t)t * h->n_embd;
        m->quant->decode(m->quant, m->data + (size_t)e->rows[t].token * m->row_bytes, x, (size_t)h->n_embd);
        if (h->embd_scale != 1.0f)
            e->kern->scale(x, h->embd_scale, h->n_embd);
        int32_t pos = e->rows[t].pos;
        mica_rope_angles(e->freq, e->rope_magnitude, h->rope_dim, pos, w->cs + (int64_t)t * h->rope_dim);
        if (h->window)
            mica_rope_angles(e->freq_window, e->rope_window_magnitude, h->rope_dim, pos,
                             w->cs_window + (int64_t)t * h->rope_dim);
    }
    rows_done(w);
    if (w->thread == 0)
        mica_weights_rows_read(e->w, w->f->n);
}

/* Adds the branch to the residual stream of row t (after its own norm, where there is one), then norms it into row i of the
 * activations and quantises for the next matrices. `branch_norm` NULL: no norm; `branch` false: nothing to add yet. */
static void add_norm_row(const worker *w, int32_t t, int32_t i, bool branch, const float *branch_norm, const float *norm,
                         unsigned mask)
{
    const mica_exec *e = w->e;
    int64_t n = e->w->h.n_embd;
    float eps = e->w->h.norm_eps, *x = w->x + t * n, *b = e->branch + t * n;
    if (branch && branch_norm) {
        float *normed = w->branch ? w->branch : b;
        e->kern->rmsnorm(b, branch_norm, eps, normed, n);
        b = normed;
    }
    if (branch)
        e->kern->add(x, b, n);
    e->kern->rmsnorm(x, norm, eps, w->act->f + i * n, n);
    prepare(w, w->act->f + i * n, n, i, mask);
}

static void add_norm(const worker *w, bool branch, const float *branch_norm, const float *norm, unsigned mask)
{
    for (int32_t t = -1; (t = next_row(w, t)) < w->f->n;)
        add_norm_row(w, t, t, branch, branch_norm, norm, mask);
    rows_done(w);
}

/* One head of keys or values into the cache. */
static void store(const mica_exec *e, const mica_quant *quant, const float *x, void *out)
{
    if (quant->type == MICA_TYPE_F16)
        e->kern->f32_to_f16(x, out, e->w->h.head_dim);
    else
        quant->encode(x, NULL, out, (size_t)e->w->h.head_dim);
}

/* A head of q (matrix 0) or k (1) of row t is normed and rotated; k and v (2) go into the cache. */
static void finish_head(const worker *w, int32_t layer, int matrix, int32_t head, int32_t t)
{
    const mica_exec *e = w->e;
    const mica_hparams *h = &e->w->h;
    const mica_layer *l = &e->w->layers[layer];
    const mica_row *row = &e->rows[t];
    int64_t heads = matrix == 0 ? h->n_heads : h->n_kv_heads, dim = h->head_dim;
    float *x = (matrix == 0 ? e->q : matrix == 1 ? e->k : e->v) + (t * heads + head) * dim;
    const float *norm = matrix == 0 ? l->q_norm : l->k_norm, *angles = h->windowed[layer] ? w->cs_window : w->cs;
    if (matrix < 2) {
        if (norm)
            e->kern->rmsnorm(x, norm, h->norm_eps, x, dim);
        e->kern->rope(x, angles + (int64_t)t * h->rope_dim, h->rope_dim, e->w->arch->rope_neox);
        if (mica_kv_rotates(row->kv))
            mica_hadamard(x, (int32_t)dim);
    }
    if (matrix == 0)
        return;
    size_t at = mica_kv_row(row->kv, layer, head, row->pos);
    store(e, matrix == 1 ? row->kv->k_quant : row->kv->v_quant, x, (matrix == 1 ? mica_kv_key : mica_kv_value)(row->kv, at));
}

/* Rows [r0, r1) of q, k or v are computed. Whoever completes a head finishes it: no barrier needed. */
static void count_heads(const worker *w, int32_t layer, int matrix, int64_t r0, int64_t r1)
{
    const mica_exec *e = w->e;
    const mica_hparams *h = &e->w->h;
    int32_t dim = h->head_dim, first = matrix == 0 ? 0 : matrix == 1 ? h->n_heads : h->n_heads + h->n_kv_heads;
    for (int32_t head = (int32_t)(r0 / dim); head * (int64_t)dim < r1; head++) {
        int64_t from = head * (int64_t)dim, to = from + dim;
        int part = (int)((to < r1 ? to : r1) - (from > r0 ? from : r0));
        /* acquire: the rows that others wrote; release: mine */
        if (atomic_fetch_add_explicit(&e->head_rows[first + head], part, memory_order_acq_rel) + part != dim)
            continue;
        atomic_store_explicit(&e->head_rows[first + head], 0, memory_order_relaxed); /* for the next layer, behind a barrier */
        for (int32_t t = 0; t < w->f->n; t++)
            finish_head(w, layer, matrix, head, t);
    }
}

static void project(const worker *w, int32_t layer)
{
    const mica_exec *e = w->e;
    const mica_layer *l = &e->w->layers[layer];
    product p = {.w = {&l->q, &l->k, &l->v}, .out = {e->q, e->k, e->v}, .bias = {l->q_bias, l->k_bias, l->v_bias}, .count = 3,
                 .floats = w->act->f, .n = w->f->n, .done = count_heads, .layer = layer};
    multiply(w, &p);
}

/* branch = m x, for prepared activations. */
static void into_branch(const worker *w, const mica_weight *m, const float *floats)
{
    product p = {.w = {m}, .out = {w->e->branch}, .count = 1, .floats = floats, .n = w->f->n};
    multiply(w, &p);
}

/* The output of attention, quantised for `reader`. Returns its floats. */
static const float *prepare_attention(const worker *w, int32_t layer, const mica_weight *reader)
{
    const mica_exec *e = w->e;
    float *joined = w->f->few ? w->act->f : e->attn;
    const float *first = e->attn;
    for (int32_t t = -1; (t = next_row(w, t)) < w->f->n;) {
        const float *row = mica_attention_join(e, layer, t, w->f->n, joined + t * reader->cols);
        prepare(w, row, reader->cols, t, mica_act_form(reader));
        first = row - t * reader->cols;
    }
    rows_done(w);
    return first;
}

static void prepare_feed_forward(const worker *w, const mica_weight *reader)
{
    for (int32_t t = -1; (t = next_row(w, t)) < w->f->n;)
        prepare(w, w->e->gate + t * reader->cols, reader->cols, t, mica_act_form(reader));
    rows_done(w);
}

/* gate = act(gate x) * (up x), rows of both matrices together. */
static void gate_up(const worker *w, const mica_layer *l)
{
    const mica_exec *e = w->e;
    int64_t rows = l->gate.rows, step = mica_pool_threads(e->pool) == 1 ? 256 : rows_step(w, rows);
    for (int64_t r0; (r0 = mica_pool_next(e->pool, step)) < rows;) {
        int64_t r1 = r0 + step < rows ? r0 + step : rows;
        multiply_rows(w, &l->gate, w->act->f, w->f->n, e->gate, r0, r1);
        multiply_rows(w, &l->up, w->act->f, w->f->n, e->up, r0, r1);
        for (int32_t t = 0; t < w->f->n; t++) {
            float *g = e->gate + t * rows + r0;
            (e->w->arch->activation == MICA_ACT_GELU ? e->kern->gelu_mul : e->kern->silu_mul)(g, e->up + t * rows + r0, g, r1 - r0);
        }
    }
}

/* Rows of the output matrix are computed. */
static void soft_cap(const worker *w, int32_t layer, int matrix, int64_t r0, int64_t r1)
{
    (void)layer;
    (void)matrix;
    for (int32_t i = 0; i < w->f->n_logits; i++)
        w->e->kern->softcap(w->e->logits + (int64_t)i * w->e->w->h.n_vocab + r0, w->e->w->h.final_softcap, r1 - r0);
}

/* Rows that are prepared stay as they are until the barrier behind their product, which this thread passes too. */
static void observe(const worker *w, const mica_weight *m, const float *x)
{
    if (w->e->observe && w->thread == 0)
        w->e->observe(w->e->observe_user, m, x, w->f->n);
}

/* ---- the model ---- */

static void forward_layer(const worker *w, int32_t i)
{
    const mica_exec *e = w->e;
    const mica_layer *l = &e->w->layers[i];
    if (w->thread == 0)
        mica_weights_want(e->w, i + LAYERS_AHEAD);
    const float *ffn_norm_before = i > 0 ? e->w->layers[i - 1].post_ffn_norm : NULL;

    add_norm(w, i > 0, ffn_norm_before, l->attn_norm, mica_act_form(&l->q) | mica_act_form(&l->k) | mica_act_form(&l->v));
    observe(w, &l->q, w->act->f);
    observe(w, &l->k, w->act->f);
    observe(w, &l->v, w->act->f);
    project(w, i);
    mica_pool_barrier(e->pool);
    mica_attention(e, i, w->f->spans, w->f->n_spans, w->f->n, w->scratch);
    mica_pool_barrier(e->pool);
    const float *attention = prepare_attention(w, i, &l->o);
    observe(w, &l->o, attention);
    into_branch(w, &l->o, attention);
    mica_pool_barrier(e->pool);
    add_norm(w, true, l->post_attn_norm, l->ffn_norm, mica_act_form(&l->gate) | mica_act_form(&l->up));
    observe(w, &l->gate, w->act->f);
    observe(w, &l->up, w->act->f);
    gate_up(w, l);
    mica_pool_barrier(e->pool);
    prepare_feed_forward(w, &l->down);
    observe(w, &l->down, e->gate);
    into_branch(w, &l->down, e->gate);
    mica_pool_barrier(e->pool);
}

static void forward_logits(const worker *w)
{
    const mica_exec *e = w->e;
    const mica_weights *m = e->w;
    for (int32_t i = -1; (i = next_row(w, i)) < w->f->n_logits;)
        add_norm_row(w, e->logit_rows[i], i, true, m->layers[m->h.n_layers - 1].post_ffn_norm, m->output_norm,
                     mica_act_form(&m->output));
    rows_done(w);
    product p = {.w = {&m->output}, .out = {e->logits}, .count = 1, .floats = w->act->f, .n = w->f->n_logits,
                 .done = m->h.final_softcap > 0.0f ? soft_cap : NULL};
    multiply(w, &p);
}

/* Into the activations that the threads share, also in steps of few rows, where every thread has all rows: one writes each. */
static void forward_states(const worker *w)
{
    const mica_weights *m = w->e->w;
    worker shared = *w;
    shared.act = &w->e->act;
    for (int32_t t; (t = (int32_t)mica_pool_next(w->e->pool, 1)) < w->f->n;)
        add_norm_row(&shared, t, t, true, m->layers[m->h.n_layers - 1].post_ffn_norm, m->output_norm, 0);
}

static void forward_thread(void *user, int thread, int n_threads)
{
    (void)n_threads;
    const forward *f = user;
    const mica_own *own = &f->e->own[thread];
    worker w = {.f = f, .e = f->e, .thread = thread, .scratch = own->scratch, .x = f->e->x, .cs = f->e->cs,
                .cs_window = f->e->cs_window, .act = &f->e->act};
    if (f->few) {
        w.x = own->x;
        w.branch = own->branch;
        w.cs = own->cs;
        w.cs_window = own->cs_window;
        w.act = &own->act;
    }
    embed(&w);
    for (int32_t i = 0; i < f->e->w->h.n_layers; i++)
        forward_layer(&w, i);
    if (f->states)
        forward_states(&w);
    else if (f->n_logits > 0)
        forward_logits(&w);
}

static void run(mica_exec *e, const mica_span *spans, int32_t n_spans, bool states)
{
    forward f = {.e = e, .spans = spans, .n_spans = n_spans, .states = states};
    for (int32_t s = 0; s < n_spans; s++) {
        const mica_span *span = &spans[s];
        mica_kv_extend(span->kv, span->pos, span->n);
        for (int32_t i = 0; i < span->n; i++, f.n++) {
            e->rows[f.n] = (mica_row){span->kv, span->tokens[i], span->pos + i};
            if (i >= span->n - span->n_logits)
                e->logit_rows[f.n_logits++] = f.n;
        }
    }
    f.few = f.n <= MICA_FEW_ROWS;
    mica_pool_run(e->pool, forward_thread, &f);
}

void mica_forward(mica_exec *e, const mica_span *spans, int32_t n_spans) { run(e, spans, n_spans, false); }

const float *mica_forward_states(mica_exec *e, const mica_span *spans, int32_t n_spans)
{
    run(e, spans, n_spans, true);
    return e->act.f;
}
