#include "convert/convert.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "convert/hf_config.h"
#include "convert/hf_tensors.h"
#include "convert/hf_tokenizer.h"
#include "convert/safetensors.h"

typedef struct converter {
    const char *dir;
    const mica_convert_options *options;
    mica_convert_result *result;
    mica_safetensors *weights;
    mica_hf_config config;
    mica_hf_out *tensors;
    size_t n;
    mica_gguf_writer *writer;
    int64_t widest;
} converter;

/* ---- Types ---- */

static const mica_recipe *stored_recipe(const converter *k) { return mica_recipe_find(k->tensors[0].job.from->name); }

static mica_gguf_tensor as_gguf(const mica_hf_out *o)
{
    mica_gguf_tensor t = {.name = {o->name, strlen(o->name)}, .n_dims = o->n_dims};
    memcpy(t.dims, o->dims, sizeof t.dims);
    return t;
}

static const mica_quant *type_of(const converter *k, const mica_recipe *recipe, const mica_gguf_tensor *t)
{
    bool tied = strcmp(k->tensors[k->n - 1].name, "output.weight") != 0;
    return mica_recipe_is_matrix(t) ? mica_recipe_type(recipe, t, (int32_t)k->config.n_layers, tied) : mica_quant_of(MICA_TYPE_F32);
}

static void choose_types(converter *k, const mica_recipe *recipe)
{
    mica_convert_result *r = k->result;
    double bits = 0.0;
    for (size_t i = 0; i < k->n; i++) {
        mica_encode_job *job = &k->tensors[i].job;
        mica_gguf_tensor t = as_gguf(&k->tensors[i]), wide = t;
        wide.dims[0] = 256; /* whole blocks of every format */
        job->to = type_of(k, recipe, &t);
        k->widest = job->cols > k->widest ? job->cols : k->widest;
        if (!mica_recipe_is_matrix(&t))
            continue;
        r->n_short_rows += type_of(k, recipe, &wide) != job->to;
        r->weights += job->rows * job->cols;
        bits += 8.0 * (double)job->to->block_bytes / job->to->block_weights * (double)job->rows * (double)job->cols;
    }
    r->bits = r->weights ? bits / (double)r->weights : NAN;
    r->n_tensors = k->n;
}

/* ---- Writing ---- */

/* The folder's own name. */
static void write_name(const converter *k)
{
    size_t n = strlen(k->dir);
    while (n > 1 && k->dir[n - 1] == '/')
        n--;
    size_t from = n;
    while (from > 0 && k->dir[from - 1] != '/')
        from--;
    char *name = strndup(k->dir + from, n - from);
    if (name && *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, "/") != 0)
        mica_gguf_writer_text(k->writer, "general.name", name);
    free(name);
}

static mica_status write_header(converter *k, const mica_recipe *recipe, mica_error *err)
{
    mica_hf_config_write(&k->config, k->writer);
    write_name(k);
    mica_gguf_writer_u32(k->writer, "general.file_type", (uint32_t)recipe->file_type);
    if (mica_quant_of(recipe->base)->block_weights > 1)
        mica_gguf_writer_u32(k->writer, "general.quantization_version", 2); /* the K formats as they are since 2023 */
    mica_status status = mica_hf_tokenizer_write(k->dir, &k->config, k->writer, err);
    if (status)
        return status;
    for (size_t i = 0; i < k->n; i++) {
        const mica_hf_out *o = &k->tensors[i];
        mica_gguf_writer_tensor(k->writer, (mica_str){o->name, strlen(o->name)}, o->job.to, o->n_dims, o->dims);
    }
    k->result->bytes_out = mica_gguf_writer_bytes(k->writer);
    return mica_gguf_writer_begin(k->writer, err);
}

static uint64_t input_bytes(const converter *k)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < k->n; i++)
        bytes += (uint64_t)k->tensors[i].job.rows * mica_quant_bytes(k->tensors[i].job.from, (size_t)k->tensors[i].job.cols);
    return bytes;
}

static mica_status write_tensors(converter *k, mica_error *err)
{
    mica_encoder *encoder = NULL;
    mica_status status = mica_encoder_new(k->options->n_threads, k->widest, &encoder, err);
    if (!status)
        mica_encoder_tell(encoder, k->options->on_progress, k->options->user, input_bytes(k));
    for (size_t i = 0; i < k->n && !status; i++)
        status = mica_encoder_write(encoder, &k->tensors[i].job, k->writer, err);
    mica_encoder_free(encoder);
    return status;
}

static mica_status convert(converter *k, const char *out, mica_error *err)
{
    mica_status s = mica_hf_tensors_plan(k->weights, &k->config, &k->tensors, &k->n, err);
    if (s)
        return s;
    const mica_recipe *recipe = k->options->recipe ? k->options->recipe : stored_recipe(k);
    choose_types(k, recipe);
    k->result->arch = k->config.arch->name;
    k->result->type = recipe->name;
    k->result->bytes_in = mica_safetensors_bytes(k->weights);
    if ((s = mica_gguf_writer_new(out, &k->writer, err)) || (s = write_header(k, recipe, err)) || (s = write_tensors(k, err)))
        return s;
    return mica_gguf_writer_finish(k->writer, err);
}

mica_status mica_convert(const char *dir, const char *out, const mica_convert_options *options, mica_convert_result *result, mica_error *err)
{
    converter k = {.dir = dir, .options = options, .result = result};
    memset(result, 0, sizeof *result);
    mica_status status = mica_hf_config_read(dir, &k.config, err);
    if (!status)
        status = mica_safetensors_open(dir, &k.weights, err);
    if (!status)
        status = convert(&k, out, err);
    mica_gguf_writer_free(k.writer);
    free(k.tensors);
    mica_safetensors_close(k.weights);
    mica_hf_config_free(&k.config);
    return status;
}
