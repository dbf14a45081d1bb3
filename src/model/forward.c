/* forward.c - the transformer, top to bottom. forward_layer() is the paper; everything above it prepares its pieces.
 *
 * All threads run forward_thread() together (base/pool.h) and share each phase's items; a barrier ends a phase that the next one
 * reads from.
 */
#include "model/forward.h"

#include "base/mem.h"
#include "model/attention.h"
#include "model/hadamard.h"
#include "model/rope.h"

typedef struct forward {
    mica_exec *e;
    const mica_span *spans;
    int32_t n_spans, n, n_logits; /* n tokens in all */
} forward;

/* ---- workspace ---- */

enum { WANTS_F = 1, WANTS_32 = 2, WANTS_256 = 4 };

static unsigned wants(const mica_weight *w)
{
    return w->quant->block_weights == 1 ? WANTS_F : w->quant->block_weights == 32 ? WANTS_32 : WANTS_256;
}

static unsigned all_wants(const mica_weights *w)
{
    unsigned mask = wants(&w->output);
    for (int32_t i = 0; i < w->h.n_layers; i++) {
        const mica_layer *l = &w->layers[i];
        mask |= wants(&l->q) | wants(&l->k) | wants(&l->v) | wants(&l->o) | wants(&l->gate) | wants(&l->up) | wants(&l->down);
    }
    return mask;
}

static size_t max3(size_t a, size_t b, size_t c) { return a > b ? (a > c ? a : c) : b > c ? b : c; }

/* Hands out 64-byte aligned pieces; with base NULL it only counts. */
typedef struct layout {
    char *base;
    size_t used;
    bool overflow;
} layout;

static void *take(layout *l, size_t count, size_t size)
{
    size_t bytes, end;
    if (!mica_mul_size(count, size, &bytes) || !mica_add_size(l->used, bytes, &end) || end > SIZE_MAX / 2) {
        l->overflow = true;
        return NULL;
    }
    void *piece = l->base ? l->base + l->used : NULL;
    l->used = mica_round_up(end, 64);
    return piece;
}

static void lay_out(mica_exec *e, layout *l, int32_t n_threads)
{
    const mica_hparams *h = &e->w->h;
    size_t c = (size_t)e->chunk, embd = (size_t)h->n_embd, ff = (size_t)h->n_ff, rope = (size_t)h->rope_dim;
    size_t q = (size_t)h->n_heads * (size_t)h->head_dim, kv = (size_t)h->n_kv_heads * (size_t)h->head_dim;
    size_t widest = c * max3(embd, q, ff);
    unsigned mask = all_wants(e->w);
    e->rows = take(l, c, sizeof *e->rows);
    e->logit_rows = take(l, (size_t)e->logits_max, sizeof *e->logit_rows);
    e->x = take(l, c * embd, sizeof(float));
    e->branch = take(l, c * embd, sizeof(float));
    e->q = take(l, c * q, sizeof(float));
    e->k = take(l, c * kv, sizeof(float));
    e->v = take(l, c * kv, sizeof(float));
    e->attn = take(l, c * q, sizeof(float));
    e->attn_parts = take(l, mica_attention_parts_bytes(h), 1);
    e->gate = take(l, c * ff, sizeof(float));
    e->up = take(l, c * ff, sizeof(float));
    e->cs = take(l, c * rope, sizeof(float));
    e->cs_window = take(l, c * rope, sizeof(float));
    e->freq = take(l, rope / 2, sizeof(double));
    e->freq_window = take(l, rope / 2, sizeof(double));
    e->act.f = take(l, c * embd, sizeof(float));
    e->act.q32 = take(l, mask & WANTS_32 ? widest : 0, 1);
    e->act.d32 = take(l, mask & WANTS_32 ? widest / 32 : 0, sizeof(float));
    e->act.sum32 = take(l, mask & WANTS_32 ? widest / 16 : 0, sizeof(int16_t));
    e->act.q256 = take(l, mask & WANTS_256 ? widest : 0, 1);
    e->act.d256 = take(l, mask & WANTS_256 ? widest / 256 : 0, sizeof(float));
    e->act.sum256 = take(l, mask & WANTS_256 ? widest / 16 : 0, sizeof(int16_t));
    e->logits = take(l, (size_t)e->logits_max * (size_t)h->n_vocab, sizeof(float));
    size_t scratch = mica_attention_scratch(h);
    e->scratch_stride = mica_round_up(scratch > MICA_MATMUL_SCRATCH ? scratch : MICA_MATMUL_SCRATCH, 64);
    e->scratch = take(l, (size_t)n_threads, e->scratch_stride);
    e->workspace_bytes = l->used;
}

size_t mica_exec_bytes(const mica_weights *w, int32_t chunk, int32_t logits_max, int32_t n_threads)
{
    mica_exec e = {.w = w, .chunk = chunk, .logits_max = logits_max};
    layout l = {0};
    lay_out(&e, &l, n_threads);
    return l.overflow ? 0 : l.used;
}

void mica_exec_layout(mica_exec *e, void *memory, int32_t n_threads, int32_t n_ctx)
{
    const mica_hparams *h = &e->w->h;
    layout l = {.base = memory};
    lay_out(e, &l, n_threads);
    mica_rope rope = h->rope;
    if (h->rope_long && h->rope_short)
        rope.factors = n_ctx > h->rope_original_ctx ? h->rope_long : h->rope_short;
    e->rope_magnitude = rope.magnitude;
    mica_rope_frequencies(&rope, h->rope_dim, e->freq);
    mica_rope window = h->has_rope_window ? h->rope_window : rope;
    e->rope_window_magnitude = window.magnitude;
    mica_rope_frequencies(&window, h->rope_dim, e->freq_window);
}

/* ---- pieces ---- */

static void *scratch_of(const mica_exec *e, int thread) { return e->scratch + (size_t)thread * e->scratch_stride; }

/* Quantises token t of `x` ([n][k] floats) into the forms in `mask`. */
static void prepare(const mica_exec *e, const float *x, int64_t k, int32_t t, unsigned mask)
{
    const mica_act_set *a = &e->act;
    if (mask & WANTS_32)
        e->kern->quantize32(x + t * k, k, a->q32 + t * k, a->d32 + t * (k / 32), a->sum32 + t * (k / 16));
    if (mask & WANTS_256)
        e->kern->quantize256(x + t * k, k, a->q256 + t * k, a->d256 + t * (k / 256), a->sum256 + t * (k / 16));
}

/* The prepared activations in the form that `w` reads. */
static mica_act prepared(const mica_exec *e, const mica_weight *w, const float *floats, int32_t n)
{
    const mica_act_set *a = &e->act;
    switch (wants(w)) {
    case WANTS_32: return (mica_act){.n = n, .k = w->cols, .block = 32, .q = a->q32, .d = a->d32, .sum = a->sum32};
    case WANTS_256: return (mica_act){.n = n, .k = w->cols, .block = 256, .q = a->q256, .d = a->d256, .sum = a->sum256};
    default: return (mica_act){.n = n, .k = w->cols, .block = 1, .f = floats};
    }
}

static void multiply_rows(const mica_exec *e, const mica_weight *w, const float *floats, int32_t n, float *out, int64_t r0,
                          int64_t r1, int thread)
{
    mica_act x = prepared(e, w, floats, n);
    mica_matmul m = {.quant = w->quant, .w = w->data, .row_bytes = w->row_bytes, .x = &x, .out = out, .out_stride = w->rows};
    e->kern->matmul[w->quant->type](&m, r0, r1, scratch_of(e, thread));
}

static void add_bias(const mica_exec *e, const float *bias, float *out, int64_t rows, int64_t r0, int64_t r1, int32_t n)
{
    for (int32_t t = 0; t < n && bias; t++)
        e->kern->add(out + t * rows + r0, bias + r0, r1 - r0);
}

/* Rows that a thread takes at a time: whole groups of 16 for the kernels, eight helpings a thread for balance. */
static int64_t rows_step(const mica_exec *e, int64_t rows)
{
    int64_t step = rows / (mica_pool_threads(e->pool) * 8);
    return step < 16 ? 16 : (step + 15) & ~(int64_t)15;
}

/* out[i] = w[i] x for up to three matrices that read the same activations, as one list of rows. */
static void multiply(const mica_exec *e, const mica_weight *const w[], float *const out[], const float *const bias[], int count,
                     const float *floats, int32_t n, int thread)
{
    int64_t total = 0;
    for (int i = 0; i < count; i++)
        total += w[i]->rows;
    int64_t step = mica_pool_threads(e->pool) == 1 ? total : rows_step(e, total);
    for (int64_t from; (from = mica_pool_next(e->pool, step)) < total;) {
        int64_t to = from + step < total ? from + step : total, first = 0;
        for (int i = 0; i < count; first += w[i]->rows, i++) {
            int64_t r0 = from > first ? from - first : 0, r1 = to - first < w[i]->rows ? to - first : w[i]->rows;
            if (r0 >= r1)
                continue;
            multiply_rows(e, w[i], floats, n, out[i], r0, r1, thread);
            if (bias)
                add_bias(e, bias[i], out[i], w[i]->rows, r0, r1, n);
        }
    }
}

/* ---- phases: each is shared by all threads; tokens or rows are the items ---- */

static void embed(const forward *f)
{
    const mica_exec *e = f->e;
    const mica_hparams *h = &e->w->h;
    const mica_weight *w = &e->w->embd;
    for (int64_t t; (t = mica_pool_next(e->pool, 1)) < f->n;) {
        float *x = e->x + t * h->n_embd;
        w->quant->decode(w->quant, w->data + (size_t)e->rows[t].token * w->row_bytes, x, (size_t)h->n_embd);
        if (h->embd_scale != 1.0f)
            e->kern->scale(x, h->embd_scale, h->n_embd);
        int32_t pos = e->rows[t].pos;
        mica_rope_angles(e->freq, e->rope_magnitude, h->rope_dim, pos, e->cs + t * h->rope_dim);
        if (h->window)
            mica_rope_angles(e->freq_window, e->rope_window_magnitude, h->rope_dim, pos, e->cs_window + t * h->rope_dim);
    }
}

/* Adds the branch to the residual stream of row t (after its own norm, where there is one), then norms it into row i of the
 * activations and quantises for the next matrices. `branch_norm` NULL: no norm; `branch` false: nothing to add yet. */
static void add_norm_row(const mica_exec *e, int32_t t, int32_t i, bool branch, const float *branch_norm, const float *norm,
                         unsigned mask)
{
    int64_t n = e->w->h.n_embd;
    float eps = e->w->h.norm_eps, *x = e->x + t * n, *b = e->branch + t * n;
    if (branch && branch_norm)
        e->kern->rmsnorm(b, branch_norm, eps, b, n);
    if (branch)
        e->kern->add(x, b, n);
    e->kern->rmsnorm(x, norm, eps, e->act.f + i * n, n);
    prepare(e, e->act.f, n, i, mask);
}

static void add_norm(const forward *f, bool branch, const float *branch_norm, const float *norm, unsigned mask)
{
    for (int64_t t; (t = mica_pool_next(f->e->pool, 1)) < f->n;)
        add_norm_row(f->e, (int32_t)t, (int32_t)t, branch, branch_norm, norm, mask);
}

/* One head of keys or values into the cache. */
static void store(const mica_exec *e, const mica_quant *quant, const float *x, void *out)
{
    if (quant->type == MICA_TYPE_F16)
        e->kern->f32_to_f16(x, out, e->w->h.head_dim);
    else
        quant->encode(x, NULL, out, (size_t)e->w->h.head_dim);
}

/* Norms and rotates the heads of q and k, and stores k and v in the cache. Items: (token, head of q or k). */
static void rotate_store(const forward *f, int32_t layer)
{
    mica_exec *e = f->e;
    const mica_hparams *h = &e->w->h;
    const mica_layer *l = &e->w->layers[layer];
    const float *angles = h->windowed[layer] ? e->cs_window : e->cs;
    int32_t heads = h->n_heads + h->n_kv_heads, dim = h->head_dim;
    for (int64_t i; (i = mica_pool_next(e->pool, 4)) < (int64_t)f->n * heads;) {
        for (int64_t j = i; j < i + 4 && j < (int64_t)f->n * heads; j++) {
            int32_t t = (int32_t)(j / heads), head = (int32_t)(j % heads), kv_head = head - h->n_heads;
            bool is_key = kv_head >= 0;
            float *x = is_key ? e->k + ((int64_t)t * h->n_kv_heads + kv_head) * dim : e->q + ((int64_t)t * h->n_heads + head) * dim;
            const float *norm = is_key ? l->k_norm : l->q_norm;
            if (norm)
                e->kern->rmsnorm(x, norm, h->norm_eps, x, dim);
            e->kern->rope(x, angles + (int64_t)t * h->rope_dim, h->rope_dim, e->w->arch->rope_neox);
            const mica_row *row = &e->rows[t];
            if (mica_kv_rotates(row->kv))
                mica_hadamard(x, dim);
            if (!is_key)
                continue;
            size_t at = mica_kv_row(row->kv, layer, kv_head, row->pos);
            store(e, row->kv->k_quant, x, mica_kv_key(row->kv, at));
            store(e, row->kv->v_quant, e->v + ((int64_t)t * h->n_kv_heads + kv_head) * dim, mica_kv_value(row->kv, at));
        }
    }
}

static void prepare_attention(const forward *f, int32_t layer, const mica_weight *reader)
{
    for (int64_t t; (t = mica_pool_next(f->e->pool, 1)) < f->n;) {
        mica_attention_join(f->e, layer, (int32_t)t, f->n);
        prepare(f->e, f->e->attn, reader->cols, (int32_t)t, wants(reader));
    }
}

static void prepare_feed_forward(const forward *f, const mica_weight *reader)
{
    for (int64_t t; (t = mica_pool_next(f->e->pool, 1)) < f->n;)
        prepare(f->e, f->e->gate, reader->cols, (int32_t)t, wants(reader));
}

/* gate = act(gate x) * (up x), rows of both matrices together. */
static void gate_up(const forward *f, const mica_layer *l, int thread)
{
    const mica_exec *e = f->e;
    int64_t rows = l->gate.rows, step = mica_pool_threads(e->pool) == 1 ? 256 : rows_step(e, rows);
    for (int64_t r0; (r0 = mica_pool_next(e->pool, step)) < rows;) {
        int64_t r1 = r0 + step < rows ? r0 + step : rows;
        multiply_rows(e, &l->gate, e->act.f, f->n, e->gate, r0, r1, thread);
        multiply_rows(e, &l->up, e->act.f, f->n, e->up, r0, r1, thread);
        for (int32_t t = 0; t < f->n; t++) {
            float *g = e->gate + t * rows + r0;
            (e->w->arch->activation == MICA_ACT_GELU ? e->kern->gelu_mul : e->kern->silu_mul)(g, e->up + t * rows + r0, g, r1 - r0);
        }
    }
}

/* ---- the model ---- */

static void forward_layer(const forward *f, int32_t i, int thread)
{
    mica_exec *e = f->e;
    const mica_layer *l = &e->w->layers[i];
    const float *ffn_norm_before = i > 0 ? e->w->layers[i - 1].post_ffn_norm : NULL;

    add_norm(f, i > 0, ffn_norm_before, l->attn_norm, wants(&l->q) | wants(&l->k) | wants(&l->v));
    mica_pool_barrier(e->pool);
    multiply(e, (const mica_weight *const[]){&l->q, &l->k, &l->v}, (float *const[]){e->q, e->k, e->v},
             (const float *const[]){l->q_bias, l->k_bias, l->v_bias}, 3, e->act.f, f->n, thread);
    mica_pool_barrier(e->pool);
    rotate_store(f, i);
    mica_pool_barrier(e->pool);
    mica_attention(e, i, f->spans, f->n_spans, f->n, scratch_of(e, thread));
    mica_pool_barrier(e->pool);
    prepare_attention(f, i, &l->o);
    mica_pool_barrier(e->pool);
    multiply(e, (const mica_weight *const[]){&l->o}, (float *const[]){e->branch}, NULL, 1, e->attn, f->n, thread);
    mica_pool_barrier(e->pool);
    add_norm(f, true, l->post_attn_norm, l->ffn_norm, wants(&l->gate) | wants(&l->up));
    mica_pool_barrier(e->pool);
    gate_up(f, l, thread);
    mica_pool_barrier(e->pool);
    prepare_feed_forward(f, &l->down);
    mica_pool_barrier(e->pool);
    multiply(e, (const mica_weight *const[]){&l->down}, (float *const[]){e->branch}, NULL, 1, e->gate, f->n, thread);
    mica_pool_barrier(e->pool);
}

static void forward_logits(const forward *f, int thread)
{
    mica_exec *e = f->e;
    const mica_weights *w = e->w;
    for (int64_t i; (i = mica_pool_next(e->pool, 1)) < f->n_logits;)
        add_norm_row(e, e->logit_rows[i], (int32_t)i, true, w->layers[w->h.n_layers - 1].post_ffn_norm, w->output_norm,
                     wants(&w->output));
    mica_pool_barrier(e->pool);
    multiply(e, (const mica_weight *const[]){&w->output}, (float *const[]){e->logits}, NULL, 1, e->act.f, f->n_logits, thread);
    if (w->h.final_softcap <= 0.0f)
        return;
    mica_pool_barrier(e->pool);
    int64_t total = (int64_t)f->n_logits * w->h.n_vocab, step = 4096;
    for (int64_t i; (i = mica_pool_next(e->pool, step)) < total;)
        e->kern->softcap(e->logits + i, w->h.final_softcap, total - i < step ? total - i : step);
}

static void forward_thread(void *user, int thread, int n_threads)
{
    (void)n_threads;
    const forward *f = user;
    embed(f);
    mica_pool_barrier(f->e->pool);
    for (int32_t i = 0; i < f->e->w->h.n_layers; i++)
        forward_layer(f, i, thread);
    if (f->n_logits > 0)
        forward_logits(f, thread);
}

void mica_forward(mica_exec *e, const mica_span *spans, int32_t n_spans)
{
    forward f = {.e = e, .spans = spans, .n_spans = n_spans};
    for (int32_t s = 0; s < n_spans; s++) {
        const mica_span *span = &spans[s];
        for (int32_t i = 0; i < span->n; i++, f.n++) {
            e->rows[f.n] = (mica_row){span->kv, span->tokens[i], span->pos + i};
            if (i >= span->n - span->n_logits)
                e->logit_rows[f.n_logits++] = f.n;
        }
    }
    mica_pool_run(e->pool, forward_thread, &f);
}
