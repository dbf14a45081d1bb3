/* workspace.c - the memory of a step: sizes, and where each piece lies. */
#include <string.h>

#include "base/mem.h"
#include "model/attention.h"
#include "model/forward.h"
#include "model/rope.h"

unsigned mica_act_form(const mica_weight *w)
{
    return w->quant->block_weights == 1 ? MICA_ACT_FLOATS : w->quant->block_weights == 32 ? MICA_ACT_32 : MICA_ACT_256;
}

static unsigned all_forms(const mica_weights *w)
{
    unsigned mask = mica_act_form(&w->output);
    for (int32_t i = 0; i < w->h.n_layers; i++) {
        const mica_layer *l = &w->layers[i];
        mask |= mica_act_form(&l->q) | mica_act_form(&l->k) | mica_act_form(&l->v) | mica_act_form(&l->o);
        mask |= mica_act_form(&l->gate) | mica_act_form(&l->up) | mica_act_form(&l->down);
    }
    return mask;
}

static size_t max2(size_t a, size_t b) { return a > b ? a : b; }

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

static size_t query_elements(const mica_hparams *h) { return (size_t)h->n_heads * (size_t)h->head_dim; }

/* Activations of `rows` tokens in the forms that some weight reads; floats of at most `floats` elements. */
static void lay_out_act(const mica_weights *w, layout *l, size_t rows, size_t floats, mica_act_set *a)
{
    unsigned mask = all_forms(w);
    size_t widest = rows * max2(max2((size_t)w->h.n_embd, (size_t)w->h.n_ff), query_elements(&w->h));
    a->f = take(l, rows * floats, sizeof(float));
    a->q32 = take(l, mask & MICA_ACT_32 ? widest : 0, 1);
    a->d32 = take(l, mask & MICA_ACT_32 ? widest / 32 : 0, sizeof(float));
    a->sum32 = take(l, mask & MICA_ACT_32 ? widest / 16 : 0, sizeof(int16_t));
    a->q256 = take(l, mask & MICA_ACT_256 ? widest : 0, 1);
    a->d256 = take(l, mask & MICA_ACT_256 ? widest / 256 : 0, sizeof(float));
    a->sum256 = take(l, mask & MICA_ACT_256 ? widest / 16 : 0, sizeof(int16_t));
}

/* Everything that the threads share. */
static void lay_out_shared(mica_exec *e, layout *l)
{
    const mica_hparams *h = &e->w->h;
    size_t c = (size_t)e->chunk, embd = (size_t)h->n_embd, ff = (size_t)h->n_ff, rope = (size_t)h->rope_dim;
    size_t q = query_elements(h), kv = (size_t)h->n_kv_heads * (size_t)h->head_dim;
    e->rows = take(l, c, sizeof *e->rows);
    e->logit_rows = take(l, (size_t)e->logits_max, sizeof *e->logit_rows);
    e->head_rows = take(l, (size_t)h->n_heads + 2 * (size_t)h->n_kv_heads, sizeof *e->head_rows);
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
    lay_out_act(e->w, l, c, embd, &e->act);
    e->logits = take(l, (size_t)e->logits_max * (size_t)h->n_vocab, sizeof(float));
    e->own = take(l, MICA_MAX_THREADS, sizeof *e->own);
}

static void lay_out_own(const mica_weights *w, layout *l, mica_own *own)
{
    const mica_hparams *h = &w->h;
    size_t embd = (size_t)h->n_embd, rope = (size_t)h->rope_dim;
    own->scratch = take(l, max2(mica_attention_scratch(h), MICA_MATMUL_SCRATCH), 1);
    own->x = take(l, MICA_FEW_ROWS * embd, sizeof(float));
    own->branch = take(l, embd, sizeof(float));
    own->cs = take(l, MICA_FEW_ROWS * rope, sizeof(float));
    own->cs_window = take(l, MICA_FEW_ROWS * rope, sizeof(float));
    lay_out_act(w, l, MICA_FEW_ROWS, max2(embd, query_elements(h)), &own->act);
    l->used = mica_round_up(l->used, 128); /* two lines: x86 prefetches lines in pairs, which must not be another thread's */
}

size_t mica_exec_own_bytes(const mica_weights *w)
{
    mica_own own;
    layout l = {0};
    lay_out_own(w, &l, &own);
    return l.overflow ? 0 : l.used;
}

size_t mica_exec_bytes(const mica_weights *w, int32_t chunk, int32_t logits_max, int32_t n_threads)
{
    mica_exec e = {.w = w, .chunk = chunk, .logits_max = logits_max};
    layout l = {0};
    lay_out_shared(&e, &l);
    take(&l, (size_t)n_threads, mica_exec_own_bytes(w));
    return l.overflow || mica_exec_own_bytes(w) == 0 ? 0 : l.used;
}

void mica_exec_add_threads(mica_exec *e, void *memory, int32_t first, int32_t n)
{
    layout l = {.base = memory};
    for (int32_t i = first; i < first + n; i++)
        lay_out_own(e->w, &l, &e->own[i]);
}

void mica_exec_layout(mica_exec *e, void *memory, int32_t n_threads, int32_t n_ctx)
{
    const mica_hparams *h = &e->w->h;
    layout l = {.base = memory};
    lay_out_shared(e, &l);
    mica_exec_add_threads(e, l.base + l.used, 0, n_threads);
    memset(e->head_rows, 0, ((size_t)h->n_heads + 2 * (size_t)h->n_kv_heads) * sizeof *e->head_rows);
    mica_rope rope = h->rope;
    if (h->rope_long && h->rope_short)
        rope.factors = n_ctx > h->rope_original_ctx ? h->rope_long : h->rope_short;
    e->rope_magnitude = rope.magnitude;
    mica_rope_frequencies(&rope, h->rope_dim, e->freq);
    mica_rope window = h->has_rope_window ? h->rope_window : rope;
    e->rope_window_magnitude = window.magnitude;
    mica_rope_frequencies(&window, h->rope_dim, e->freq_window);
}
