#include "convert/hf_tensors.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define MAX_NAME 160 /* of a tensor that is looked for */

typedef enum size_kind { ONE, EMBD, Q, KV, HEAD, FF, QKV, TWO_FF, VOCAB } size_kind;
typedef enum change_kind { AS_IS, NORM, Q_HEADS, K_HEADS } change_kind;

/* When a row counts, by the architecture. */
typedef enum when_kind { ALWAYS, MAYBE, SPLIT_QKV, FUSED_QKV, QKV_BIAS, QK_NORM, SPLIT_FF, FUSED_FF, TWO_NORMS, FOUR_NORMS } when_kind;

typedef struct row {
    const char *hf, *gguf;
    size_kind rows, cols; /* ONE column: a vector */
    when_kind when;
    change_kind change;
} row;

static const row layer_rows[] = {
    {"input_layernorm.weight", "attn_norm.weight", EMBD, ONE, ALWAYS, NORM},
    {"self_attn.q_proj.weight", "attn_q.weight", Q, EMBD, SPLIT_QKV, Q_HEADS},
    {"self_attn.k_proj.weight", "attn_k.weight", KV, EMBD, SPLIT_QKV, K_HEADS},
    {"self_attn.v_proj.weight", "attn_v.weight", KV, EMBD, SPLIT_QKV, AS_IS},
    {"self_attn.q_proj.bias", "attn_q.bias", Q, ONE, QKV_BIAS, Q_HEADS},
    {"self_attn.k_proj.bias", "attn_k.bias", KV, ONE, QKV_BIAS, K_HEADS},
    {"self_attn.v_proj.bias", "attn_v.bias", KV, ONE, QKV_BIAS, AS_IS},
    {"self_attn.qkv_proj.weight", "attn_qkv.weight", QKV, EMBD, FUSED_QKV, AS_IS},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", HEAD, ONE, QK_NORM, NORM},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", HEAD, ONE, QK_NORM, NORM},
    {"self_attn.o_proj.weight", "attn_output.weight", EMBD, Q, ALWAYS, AS_IS},
    {"post_attention_layernorm.weight", "ffn_norm.weight", EMBD, ONE, TWO_NORMS, NORM},
    {"post_attention_layernorm.weight", "post_attention_norm.weight", EMBD, ONE, FOUR_NORMS, NORM},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight", EMBD, ONE, FOUR_NORMS, NORM},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight", EMBD, ONE, FOUR_NORMS, NORM},
    {"mlp.gate_proj.weight", "ffn_gate.weight", FF, EMBD, SPLIT_FF, AS_IS},
    {"mlp.up_proj.weight", "ffn_up.weight", FF, EMBD, SPLIT_FF, AS_IS},
    {"mlp.gate_up_proj.weight", "ffn_up.weight", TWO_FF, EMBD, FUSED_FF, AS_IS},
    {"mlp.down_proj.weight", "ffn_down.weight", EMBD, FF, ALWAYS, AS_IS},
};

static const row embedding = {"embed_tokens.weight", "token_embd.weight", VOCAB, EMBD, ALWAYS, AS_IS};
static const row last_norm = {"norm.weight", "output_norm.weight", EMBD, ONE, ALWAYS, NORM};
static const row output = {"lm_head.weight", "output.weight", VOCAB, EMBD, MAYBE, AS_IS};
static const row own_output = {"lm_head.weight", "output.weight", VOCAB, EMBD, ALWAYS, AS_IS}; /* where config.json says that there is one */

#define N_LAYER_ROWS (sizeof layer_rows / sizeof *layer_rows)
#define N_OTHERS 6 /* embedding, norm, output, three sets of RoPE factors */

/* Where the language model is, and its output matrix: alone; with a part for images, before and since transformers 5. */
static const struct {
    const char *body, *head;
} prefixes[] = {{"model.", ""}, {"language_model.model.", "language_model."}, {"model.language_model.", ""}};

typedef struct planner {
    const mica_safetensors *s;
    mica_hf_config *c;
    const char *body, *head;
    mica_hf_out *out;
    size_t n;
    uint8_t *used; /* one flag a tensor of the folder */
    mica_error *err;
} planner;

static int64_t size_of(const mica_hf_config *c, size_kind size)
{
    int64_t q = c->n_heads * c->head_dim, kv = c->n_kv_heads * c->head_dim;
    const int64_t sizes[] = {[ONE] = 1, [EMBD] = c->n_embd, [Q] = q, [KV] = kv, [HEAD] = c->head_dim, [FF] = c->n_ff, [QKV] = q + 2 * kv,
                             [TWO_FF] = 2 * c->n_ff, [VOCAB] = c->n_vocab};
    return sizes[size];
}

/* 1: must be there, 0: may be, -1: has no place. */
static int wanted(const mica_arch *a, when_kind when)
{
    switch (when) {
    case SPLIT_QKV: return a->fused_qkv ? -1 : 1;
    case FUSED_QKV: return a->fused_qkv ? 1 : -1;
    case QKV_BIAS: return a->qkv_bias ? 1 : a->fused_qkv ? -1 : 0;
    case QK_NORM: return a->qk_norm ? 1 : -1;
    case SPLIT_FF: return a->fused_gate_up ? -1 : 1;
    case FUSED_FF: return a->fused_gate_up ? 1 : -1;
    case TWO_NORMS: return a->post_norms ? -1 : 1;
    case FOUR_NORMS: return a->post_norms ? 1 : -1;
    case MAYBE: return 0;
    case ALWAYS: break;
    }
    return 1;
}

static mica_status check_tensor(const planner *p, const mica_hf_tensor *t, int64_t rows, int64_t cols, bool vector)
{
    if (!t->quant)
        return mica_fail(p->err, MICA_UNSUPPORTED, "%s: tensor %.100s is %s; F32, F16 and BF16 can be converted", mica_safetensors_path(p->s, t),
                         t->name, t->dtype);
    if (t->n_dims == (vector ? 1 : 2) && t->dims[0] == rows && (vector || t->dims[1] == cols))
        return MICA_OK;
    return mica_fail(p->err, MICA_BAD_FILE, "%s: tensor %.100s has the shape %lld x %lld (%d dimensions) where %lld x %lld is needed",
                     mica_safetensors_path(p->s, t), t->name, (long long)(t->n_dims > 0 ? t->dims[0] : 1), (long long)(t->n_dims > 1 ? t->dims[1] : 1),
                     t->n_dims, (long long)rows, (long long)cols);
}

static void add_job(planner *p, const mica_hf_tensor *t, int64_t rows, int64_t cols, change_kind change)
{
    const mica_hf_config *c = p->c;
    mica_hf_out *o = &p->out[p->n++];
    bool vector = cols == 1;
    o->n_dims = vector ? 1 : 2;
    o->dims[0] = vector ? rows : cols;
    o->dims[1] = vector ? 1 : rows;
    o->dims[2] = o->dims[3] = 1;
    o->job = (mica_encode_job){.file = mica_safetensors_path(p->s, t), .name = {t->name, strlen(t->name)}, .from = t->quant, .data = t->data,
                               .rows = rows, .cols = cols, .head = c->halves && change >= Q_HEADS ? c->head_dim : 0,
                               .add = c->norm_plus && change == NORM ? 1.0f : 0.0f, .checked = true};
}

/* The tensor of a row; layer -1: not of a layer. */
static mica_status add_row(planner *p, const row *r, const char *prefix, int64_t layer)
{
    char name[MAX_NAME];
    int want = wanted(p->c->arch, r->when);
    int64_t rows = size_of(p->c, r->rows), cols = size_of(p->c, r->cols);
    if (want < 0)
        return MICA_OK;
    if (layer >= 0)
        snprintf(name, sizeof name, "%slayers.%lld.%s", prefix, (long long)layer, r->hf);
    else
        snprintf(name, sizeof name, "%s%s", prefix, r->hf);
    const mica_hf_tensor *t = mica_safetensors_find(p->s, name);
    if (!t)
        return want ? mica_fail(p->err, MICA_BAD_FILE, "tensor %s is missing: the weights are not those of a complete %s model", name,
                                p->c->arch->name)
                    : MICA_OK;
    mica_status status = check_tensor(p, t, rows, cols, r->cols == ONE);
    if (status)
        return status;
    char *out = p->out[p->n].name;
    if (layer >= 0)
        snprintf(out, sizeof p->out->name, "blk.%lld.%s", (long long)layer, r->gguf);
    else
        snprintf(out, sizeof p->out->name, "%s", r->gguf);
    add_job(p, t, rows, cols, r->change);
    p->used[t - mica_safetensors_at(p->s, 0)] = 1;
    return MICA_OK;
}

static void add_factors(planner *p, const char *name, const float *factors)
{
    int64_t n = p->c->rope.dim / 2;
    if (!factors)
        return;
    mica_hf_out *o = &p->out[p->n++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->n_dims = 1;
    o->dims[0] = n;
    o->dims[1] = o->dims[2] = o->dims[3] = 1;
    o->job = (mica_encode_job){.file = MICA_HF_CONFIG, .name = {o->name, strlen(o->name)}, .from = mica_quant_of(MICA_TYPE_F32),
                               .data = (const uint8_t *)factors, .rows = n, .cols = 1, .kept = true};
}

/* Also finds out how many tokens there are. */
static mica_status find_prefix(planner *p)
{
    char name[MAX_NAME];
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        snprintf(name, sizeof name, "%s%s", prefixes[i].body, embedding.hf);
        const mica_hf_tensor *t = mica_safetensors_find(p->s, name);
        if (!t)
            continue;
        p->body = prefixes[i].body;
        p->head = prefixes[i].head;
        p->c->n_vocab = t->n_dims > 0 ? t->dims[0] : 0;
        return p->c->n_vocab > 0 && p->c->n_vocab <= INT32_MAX
                   ? MICA_OK
                   : mica_fail(p->err, MICA_BAD_FILE, "%s: tensor %s has no rows", mica_safetensors_path(p->s, t), name);
    }
    return mica_fail(p->err, MICA_BAD_FILE, "tensor model.embed_tokens.weight is missing: these are not the weights of a language model");
}

static mica_status add_output(planner *p)
{
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%s%s", p->head, output.hf);
    const mica_hf_tensor *t = mica_safetensors_find(p->s, name);
    if (!p->c->tied)
        return add_row(p, p->c->untied ? &own_output : &output, p->head, -1);
    if (t) /* the embedding once more */
        p->used[t - mica_safetensors_at(p->s, 0)] = 1;
    return MICA_OK;
}

static mica_status add_all(planner *p)
{
    mica_status status = add_row(p, &embedding, p->body, -1);
    add_factors(p, "rope_freqs.weight", p->c->rope.freqs);
    add_factors(p, "rope_factors_long.weight", p->c->rope.longs);
    add_factors(p, "rope_factors_short.weight", p->c->rope.shorts);
    for (int64_t i = 0; i < p->c->n_layers; i++)
        for (size_t k = 0; k < N_LAYER_ROWS && !status; k++)
            status = add_row(p, &layer_rows[k], p->body, i);
    if (!status)
        status = add_row(p, &last_norm, p->body, -1);
    return status ? status : add_output(p);
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* Frequencies that follow from config.json, and what is not of the language model. */
static bool is_left_out(const planner *p, const char *name)
{
    if (has_suffix(name, ".rotary_emb.inv_freq"))
        return true;
    return p->body != prefixes[0].body && strncmp(name, p->body, strlen(p->body)) != 0;
}

static mica_status check_used(const planner *p)
{
    for (size_t i = 0; i < mica_safetensors_count(p->s); i++) {
        const mica_hf_tensor *t = mica_safetensors_at(p->s, i);
        if (!p->used[i] && !is_left_out(p, t->name))
            return mica_fail(p->err, MICA_UNSUPPORTED, "%s: tensor %.100s has no place in the architecture %s with %lld layers",
                             mica_safetensors_path(p->s, t), t->name, p->c->arch->name, (long long)p->c->n_layers);
    }
    return MICA_OK;
}

mica_status mica_hf_tensors_plan(const mica_safetensors *s, mica_hf_config *c, mica_hf_out **out, size_t *n, mica_error *err)
{
    size_t most = (size_t)c->n_layers * N_LAYER_ROWS + N_OTHERS;
    planner p = {.s = s, .c = c, .err = err, .out = mica_new_array(most, sizeof *p.out), .used = mica_new_array(mica_safetensors_count(s), 1)};
    mica_status status = p.out && p.used ? find_prefix(&p) : mica_fail_nomem(err, most * sizeof *p.out, "the list of tensors");
    if (!status)
        status = add_all(&p);
    if (!status)
        status = check_used(&p);
    free(p.used);
    if (status)
        free(p.out);
    *out = status ? NULL : p.out;
    *n = status ? 0 : p.n;
    return status;
}
