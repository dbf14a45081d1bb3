#include "convert/quantize.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "convert/encode.h"

/* What becomes of one tensor. */
typedef struct plan {
    const mica_gguf_tensor *from;
    const mica_quant *to;
    const float *importance; /* [dims[0]]; NULL: none */
} plan;

typedef struct quantizer {
    const mica_gguf *in;
    const mica_quantize_options *options;
    mica_quantize_result *result;
    mica_gguf_writer *writer;
    plan *plans; /* one a tensor */
    size_t n;
    int64_t widest; /* row */
} quantizer;

static int64_t rows_of(const mica_gguf_tensor *t) { return t->dims[1] * t->dims[2] * t->dims[3]; }

/* ---- Planning ---- */

static bool is_tied(const mica_gguf *g) { return !mica_gguf_tensor_find(g, "output.weight"); }

/* 0 where the file does not tell: recipes then take every layer for one behind the first. */
static int32_t layers_of(const mica_gguf *g)
{
    mica_str arch = {0};
    char key[96];
    int64_t n = 0;
    if (mica_gguf_get_str(g, "general.architecture", true, &arch, NULL))
        return 0;
    snprintf(key, sizeof key, "%.*s.block_count", (int)(arch.length < 64 ? arch.length : 64), arch.data);
    return mica_gguf_get_i64(g, key, false, 0, INT32_MAX / 8, &n, NULL) ? 0 : (int32_t)n;
}

static const mica_quant *wanted_type(const quantizer *q, const mica_gguf_tensor *t, int32_t n_layers, bool tied)
{
    const mica_quantize_options *o = q->options;
    if (!mica_recipe_is_matrix(t))
        return mica_quant_of(MICA_TYPE_F32);
    for (size_t i = 0; i < o->n_overrides; i++)
        if (mica_recipe_match(o->overrides[i].pattern, t->name))
            return mica_recipe_fit(o->overrides[i].quant, t->dims[0]);
    return mica_recipe_type(o->recipe, t, n_layers, tied);
}

static mica_status find_importance(const quantizer *q, plan *p, mica_error *err)
{
    const mica_gguf_tensor *t = p->from;
    int64_t n = 0;
    if (!q->options->imatrix || p->to->block_weights == 1 || p->to->type == MICA_TYPE_Q8_0) /* nothing to gain at eight bits */
        return MICA_OK;
    p->importance = mica_imatrix_find(q->options->imatrix, t->name, &n);
    if (p->importance && n != t->dims[0])
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the importance matrix has %lld columns for %.*s, which has %lld: it is of another model",
                         (long long)n, (int)t->name.length, t->name.data, (long long)t->dims[0]);
    if (!p->importance && t->name.length > 4 && memcmp(t->name.data, "blk.", 4) == 0)
        q->result->n_unweighted++;
    return MICA_OK;
}

static mica_status check_overrides(const quantizer *q, mica_error *err)
{
    for (size_t i = 0; i < q->options->n_overrides; i++) {
        bool fits = false;
        for (size_t k = 0; k < q->n && !fits; k++)
            fits = mica_recipe_is_matrix(q->plans[k].from) && mica_recipe_match(q->options->overrides[i].pattern, q->plans[k].from->name);
        if (!fits)
            return mica_fail(err, MICA_INVALID_ARGUMENT, "no matrix has a name that fits \"%s\" (mica inspect --tensors lists the names)",
                             q->options->overrides[i].pattern);
    }
    return MICA_OK;
}

/* Asked for a block of 256, got another. */
static bool has_short_rows(const quantizer *q, const plan *p, int32_t n_layers, bool tied)
{
    mica_gguf_tensor wide = *p->from;
    wide.dims[0] = 256;
    return wanted_type(q, &wide, n_layers, tied) != p->to;
}

static mica_status plan_tensors(quantizer *q, mica_error *err)
{
    int32_t n_layers = layers_of(q->in);
    bool tied = is_tied(q->in);
    mica_quantize_result *r = q->result;
    double bits = 0.0;
    for (size_t i = 0; i < q->n; i++) {
        plan *p = &q->plans[i];
        const mica_gguf_tensor *t = p->from = mica_gguf_tensor_at(q->in, i);
        p->to = wanted_type(q, t, n_layers, tied);
        q->widest = t->dims[0] > q->widest ? t->dims[0] : q->widest;
        mica_status status = find_importance(q, p, err);
        if (status)
            return status;
        *(p->to == t->quant ? &r->n_copied : &r->n_encoded) += 1;
        if (!mica_recipe_is_matrix(t))
            continue;
        r->n_short_rows += has_short_rows(q, p, n_layers, tied);
        r->was_quantized |= p->to != t->quant && p->to->block_weights > 1 && t->quant->block_weights > 1 && t->quant->type != MICA_TYPE_Q8_0;
        r->weights += t->dims[0] * rows_of(t);
        bits += 8.0 * (double)p->to->block_bytes / p->to->block_weights * (double)t->dims[0] * (double)rows_of(t);
    }
    r->bits = r->weights ? bits / (double)r->weights : NAN;
    return check_overrides(q, err);
}

/* ---- The header ---- */

static bool is_key(const mica_gguf_value *v, const char *key)
{
    return v->key.length == strlen(key) && memcmp(v->key.data, key, v->key.length) == 0;
}

/* Keys that say how a file is laid out, not what the model is. */
static bool is_layout(const mica_gguf_value *v)
{
    return is_key(v, "general.alignment") || is_key(v, "general.file_type") || is_key(v, "general.quantization_version") ||
           (v->key.length > 6 && memcmp(v->key.data, "split.", 6) == 0);
}

static mica_status write_header(quantizer *q, mica_error *err)
{
    for (size_t i = 0; i < mica_gguf_value_count(q->in); i++)
        if (!is_layout(mica_gguf_value_at(q->in, i)))
            mica_gguf_writer_copy(q->writer, mica_gguf_value_at(q->in, i));
    mica_gguf_writer_u32(q->writer, "general.file_type", (uint32_t)q->options->recipe->file_type);
    mica_gguf_writer_u32(q->writer, "general.quantization_version", 2); /* the K formats as they are since 2023 */
    for (size_t i = 0; i < q->n; i++) {
        const mica_gguf_tensor *t = q->plans[i].from;
        mica_gguf_writer_tensor(q->writer, t->name, q->plans[i].to, t->n_dims, t->dims);
    }
    q->result->bytes_in = mica_gguf_file_bytes(q->in);
    q->result->bytes_out = mica_gguf_writer_bytes(q->writer);
    return mica_gguf_writer_begin(q->writer, err);
}

/* ---- The data ---- */

static mica_status write_tensor(const quantizer *q, mica_encoder *encoder, const plan *p, mica_error *err)
{
    const mica_gguf_tensor *t = p->from;
    mica_encode_job job = {.file = mica_gguf_path(q->in), .name = t->name, .from = t->quant, .to = p->to, .data = t->data,
                           .rows = rows_of(t), .cols = t->dims[0], .importance = p->importance};
    return mica_encoder_write(encoder, &job, q->writer, err);
}

static mica_status write_tensors(quantizer *q, mica_error *err)
{
    const mica_quantize_options *o = q->options;
    mica_encoder *encoder = NULL;
    mica_status status = mica_encoder_new(o->n_threads, q->widest, &encoder, err);
    if (!status)
        mica_encoder_tell(encoder, o->on_progress, o->user, q->result->bytes_in);
    for (size_t i = 0; i < q->n && !status; i++)
        status = write_tensor(q, encoder, &q->plans[i], err);
    mica_encoder_free(encoder);
    return status;
}

static mica_status write_model(quantizer *q, const char *out, mica_error *err)
{
    mica_status status = mica_gguf_writer_new(out, &q->writer, err);
    if (!status)
        status = write_header(q, err);
    if (!status)
        status = write_tensors(q, err);
    return status ? status : mica_gguf_writer_finish(q->writer, err);
}

mica_status mica_quantize(const mica_gguf *in, const char *out, const mica_quantize_options *options, mica_quantize_result *result,
                          mica_error *err)
{
    quantizer q = {.in = in, .options = options, .result = result, .n = mica_gguf_tensor_count(in)};
    memset(result, 0, sizeof *result);
    if (q.n == 0)
        return mica_fail(err, MICA_BAD_FILE, "%s holds no tensors", mica_gguf_path(in));
    q.plans = mica_new_array(q.n, sizeof *q.plans);
    mica_status status = q.plans ? plan_tensors(&q, err) : mica_fail_nomem(err, q.n * sizeof *q.plans, "the list of tensors");
    if (!status)
        status = write_model(&q, out, err);
    mica_gguf_writer_free(q.writer);
    free(q.plans);
    return status;
}
