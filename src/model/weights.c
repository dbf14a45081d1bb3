#include "model/weights.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/map_huge.h"
#include "base/mem.h"
#include "kern/kern.h"

typedef struct binder {
    const mica_gguf *g;
    mica_weights *w;
    uint8_t *used; /* one flag a tensor */
    mica_error *err;
    mica_status status; /* the first failure; later binds do nothing */
} binder;

/* The tensor blk.<layer>.<suffix>, or <suffix> for layer -1; NULL if absent. Marks it used. */
static const mica_gguf_tensor *find(binder *b, int32_t layer, const char *suffix, char name[80])
{
    if (layer >= 0)
        snprintf(name, 80, "blk.%d.%s", layer, suffix);
    else
        snprintf(name, 80, "%s", suffix);
    const mica_gguf_tensor *t = mica_gguf_tensor_find(b->g, name);
    if (t)
        b->used[t - mica_gguf_tensor_at(b->g, 0)] = 1;
    return t;
}

static void fail_missing(binder *b, const char *name)
{
    b->status = mica_fail(b->err, MICA_BAD_FILE, "%s: tensor %s not found: the file is not a complete %s model",
                          mica_gguf_path(b->g), name, b->w->arch->name);
}

static void fail_shape(binder *b, const mica_gguf_tensor *t, const char *name, int64_t cols, int64_t rows)
{
    b->status = mica_fail(b->err, MICA_BAD_FILE, "%s: tensor %s has shape %lld x %lld where %lld x %lld is needed",
                          mica_gguf_path(b->g), name, (long long)t->dims[0], (long long)t->dims[1], (long long)cols,
                          (long long)rows);
}

static void bind_matrix(binder *b, mica_weight *out, int32_t layer, const char *suffix, int64_t cols, int64_t rows, bool required)
{
    char name[80];
    if (b->status)
        return;
    const mica_gguf_tensor *t = find(b, layer, suffix, name);
    if (!t) {
        if (required)
            fail_missing(b, name);
        return;
    }
    if (t->dims[0] != cols || t->dims[1] != rows || t->dims[2] != 1 || t->dims[3] != 1) {
        fail_shape(b, t, name, cols, rows);
        return;
    }
    if (cols > MICA_MAX_K) {
        b->status = mica_fail(b->err, MICA_UNSUPPORTED, "%s: tensor %s has rows of %lld, more than %d", mica_gguf_path(b->g), name,
                              (long long)cols, MICA_MAX_K);
        return;
    }
    *out = (mica_weight){t->quant, t->data, rows, cols, mica_quant_bytes(t->quant, (size_t)cols)};
}

/* Norms and biases are F32 in every published file; another type would need a converted copy. */
static void bind_vector(binder *b, const float **out, int32_t layer, const char *suffix, int64_t n, bool required)
{
    char name[80];
    if (b->status)
        return;
    const mica_gguf_tensor *t = find(b, layer, suffix, name);
    if (!t) {
        if (required)
            fail_missing(b, name);
        return;
    }
    if (t->dims[0] != n || t->dims[1] != 1 || t->dims[2] != 1 || t->dims[3] != 1)
        fail_shape(b, t, name, n, 1);
    else if (t->quant->type != MICA_TYPE_F32)
        b->status = mica_fail(b->err, MICA_UNSUPPORTED, "%s: tensor %s is %s; norms and biases must be F32", mica_gguf_path(b->g),
                              name, t->quant->name);
    else
        *out = (const float *)(const void *)t->data;
}

/* Rows [first, first + rows) of a fused matrix. */
static mica_weight slice(const mica_weight *w, int64_t first, int64_t rows)
{
    mica_weight part = *w;
    part.data = w->data + (size_t)first * w->row_bytes;
    part.rows = rows;
    return part;
}

static void bind_attention(binder *b, int32_t i, mica_layer *l)
{
    const mica_hparams *h = &b->w->h;
    const mica_arch *arch = b->w->arch;
    int64_t nq = (int64_t)h->n_heads * h->head_dim, nkv = (int64_t)h->n_kv_heads * h->head_dim;
    bind_vector(b, &l->attn_norm, i, "attn_norm.weight", h->n_embd, true);
    if (arch->fused_qkv) {
        mica_weight all = {0};
        bind_matrix(b, &all, i, "attn_qkv.weight", h->n_embd, nq + 2 * nkv, true);
        l->q = slice(&all, 0, nq);
        l->k = slice(&all, nq, nkv);
        l->v = slice(&all, nq + nkv, nkv);
    } else {
        bind_matrix(b, &l->q, i, "attn_q.weight", h->n_embd, nq, true);
        bind_matrix(b, &l->k, i, "attn_k.weight", h->n_embd, nkv, true);
        bind_matrix(b, &l->v, i, "attn_v.weight", h->n_embd, nkv, true);
    }
    bind_vector(b, &l->q_bias, i, "attn_q.bias", nq, arch->qkv_bias);
    bind_vector(b, &l->k_bias, i, "attn_k.bias", nkv, arch->qkv_bias);
    bind_vector(b, &l->v_bias, i, "attn_v.bias", nkv, arch->qkv_bias);
    if (arch->qk_norm) {
        bind_vector(b, &l->q_norm, i, "attn_q_norm.weight", h->head_dim, true);
        bind_vector(b, &l->k_norm, i, "attn_k_norm.weight", h->head_dim, true);
    }
    bind_matrix(b, &l->o, i, "attn_output.weight", nq, h->n_embd, true);
    if (arch->post_norms)
        bind_vector(b, &l->post_attn_norm, i, "post_attention_norm.weight", h->n_embd, true);
}

static void bind_feed_forward(binder *b, int32_t i, mica_layer *l)
{
    const mica_hparams *h = &b->w->h;
    bind_vector(b, &l->ffn_norm, i, "ffn_norm.weight", h->n_embd, true);
    if (b->w->arch->fused_gate_up) {
        mica_weight both = {0};
        bind_matrix(b, &both, i, "ffn_up.weight", h->n_embd, 2 * (int64_t)h->n_ff, true);
        l->gate = slice(&both, 0, h->n_ff);
        l->up = slice(&both, h->n_ff, h->n_ff);
    } else {
        bind_matrix(b, &l->gate, i, "ffn_gate.weight", h->n_embd, h->n_ff, true);
        bind_matrix(b, &l->up, i, "ffn_up.weight", h->n_embd, h->n_ff, true);
    }
    bind_matrix(b, &l->down, i, "ffn_down.weight", h->n_ff, h->n_embd, true);
    if (b->w->arch->post_norms)
        bind_vector(b, &l->post_ffn_norm, i, "post_ffw_norm.weight", h->n_embd, true);
}

/* Frequency factors: one set for all contexts (Llama 3.x), or a short and a long one (longrope). Some files repeat them in each
 * layer; the copies are equal. */
static void bind_rope(binder *b)
{
    mica_hparams *h = &b->w->h;
    bind_vector(b, &h->rope.factors, -1, "rope_freqs.weight", h->rope_dim / 2, false);
    bind_vector(b, &h->rope_long, -1, "rope_factors_long.weight", h->rope_dim / 2, false);
    bind_vector(b, &h->rope_short, -1, "rope_factors_short.weight", h->rope_dim / 2, false);
    for (int32_t i = 0; i < h->n_layers && !b->status; i++) {
        char name[80];
        find(b, i, "rope_freqs.weight", name);
        find(b, i, "rope_factors_long.weight", name);
        find(b, i, "rope_factors_short.weight", name);
    }
}

static void report_unused(binder *b, void (*on_warning)(void *user, const char *message), void *user)
{
    for (size_t i = 0; i < mica_gguf_tensor_count(b->g) && on_warning; i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(b->g, i);
        if (b->used[i])
            continue;
        char message[160];
        snprintf(message, sizeof message, "tensor %.*s is not used by the %s architecture", (int)t->name.length, t->name.data,
                 b->w->arch->name);
        on_warning(user, message);
    }
}

static void bind_all(binder *b)
{
    mica_weights *w = b->w;
    const mica_hparams *h = &w->h;
    bind_matrix(b, &w->embd, -1, "token_embd.weight", h->n_embd, h->n_vocab, true);
    bind_vector(b, &w->output_norm, -1, "output_norm.weight", h->n_embd, true);
    bind_matrix(b, &w->output, -1, "output.weight", h->n_embd, h->n_vocab, false);
    if (!w->output.data)
        w->output = w->embd;
    for (int32_t i = 0; i < h->n_layers && !b->status; i++) {
        bind_attention(b, i, &w->layers[i]);
        bind_feed_forward(b, i, &w->layers[i]);
    }
    bind_rope(b);
    bool apart = w->output.data != w->embd.data;
    w->rows_apart = apart && mica_gguf_file_at(b->g, 0).modified_ns != 0;
    if (w->rows_apart)
        mica_map_prefer_small(w->embd.data, (size_t)w->embd.rows * w->embd.row_bytes);
    w->n_read = apart && !b->status ? -(int64_t)((size_t)w->embd.rows * w->embd.row_bytes) : 0;
    if (mica_gguf_file_at(b->g, 0).huge) /* reading ahead is done by the pages' size */
        atomic_store(&w->wanted[0], h->n_layers + 1);
    for (size_t i = 0; i < mica_gguf_tensor_count(b->g); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(b->g, i);
        w->n_bytes += (int64_t)t->n_bytes;
        w->n_read += b->used[i] ? (int64_t)t->n_bytes : 0;
        w->n_params += (int64_t)(t->n_bytes / (uint64_t)t->quant->block_bytes) * t->quant->block_weights;
    }
}

mica_status mica_weights_bind(const mica_gguf *g, int32_t n_vocab, void (*on_warning)(void *user, const char *message),
                              void *user, mica_weights *out, mica_error *err)
{
    memset(out, 0, sizeof *out);
    mica_str name = {0};
    mica_status status = mica_gguf_get_str(g, "general.architecture", true, &name, err);
    if (status)
        return status;
    out->arch = mica_arch_find(name);
    if (!out->arch)
        return mica_arch_refuse(mica_gguf_path(g), name, err);
    status = mica_arch_configure(out->arch, g, &out->h, err);
    if (status)
        return status;
    out->h.n_vocab = n_vocab;
    out->layers = mica_new_array((size_t)out->h.n_layers, sizeof *out->layers);
    out->wanted = mica_new_array(2, sizeof *out->wanted);
    size_t n_tensors = mica_gguf_tensor_count(g);
    binder b = {.g = g, .w = out, .used = mica_new_array(n_tensors, 1), .err = err};
    if (!out->layers || !out->wanted || !b.used)
        b.status = mica_fail_nomem(err, n_tensors + (size_t)out->h.n_layers * sizeof *out->layers, "the table of tensors");
    if (!b.status)
        bind_all(&b);
    if (!b.status)
        report_unused(&b, on_warning, user);
    free(b.used);
    if (b.status)
        mica_weights_free(out);
    return b.status;
}

void mica_weights_free(mica_weights *w)
{
    free(w->layers);
    free(w->wanted);
    memset(w, 0, sizeof *w);
}
