/* roofline_file.c - what a token costs, from a model file. Reads the tensor list, not the weights. */
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "mica/mica_ops.h"
#include "model/arch.h"
#include "model/gguf.h"

#define EMBEDDINGS "token_embd.weight"
#define OUTPUT     "output.weight"

static bool is_name(const mica_gguf_tensor *t, const char *name)
{
    return strlen(name) == t->name.length && memcmp(t->name.data, name, t->name.length) == 0;
}

static bool begins(const mica_gguf_tensor *t, const char *prefix)
{
    return t->name.length >= strlen(prefix) && memcmp(t->name.data, prefix, strlen(prefix)) == 0;
}

/* A table of which a token reads one row: embeddings that are not the output matrix too (tied), and per-layer embeddings. */
static bool is_lookup(const mica_gguf_tensor *t, bool tied)
{
    return is_name(t, "per_layer_token_embd.weight") || (is_name(t, EMBEDDINGS) && !tied);
}

/* Matrices multiply; vectors (norms, biases) are read as well, but cost no products to speak of. */
static void add_tensor(const mica_gguf_tensor *t, bool tied, mica_model_cost *m)
{
    int64_t elements = t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]; /* within the file: cannot overflow */
    if (is_lookup(t, tied)) {
        m->lookup_bytes += (int64_t)t->n_bytes;
        m->lookup_row_bytes += (int64_t)t->n_bytes / (t->dims[1] > 0 ? t->dims[1] : 1);
        return;
    }
    m->streamed_bytes += (int64_t)t->n_bytes;
    if (is_name(t, OUTPUT) || is_name(t, EMBEDDINGS))
        m->output_weights += elements;
    else if (t->n_dims > 1 && begins(t, "blk."))
        m->layer_weights += elements;
}

static mica_status read_shape(const mica_gguf *g, mica_model_cost *m, mica_error *err)
{
    mica_str name = {"", 0};
    const mica_gguf_tensor *embeddings = mica_gguf_tensor_find(g, EMBEDDINGS);
    mica_status status = mica_gguf_get_str(g, "general.architecture", true, &name, err);
    const mica_arch *arch = status ? NULL : mica_arch_find(name);
    if (status)
        return status;
    if (!arch || !embeddings)
        return mica_fail(err, MICA_UNSUPPORTED, "%s: no model whose costs are known; known are %s", mica_gguf_path(g),
                         mica_arch_names());
    mica_hparams h = {.n_vocab = (int32_t)embeddings->dims[1]};
    status = mica_arch_configure(arch, g, &h, err);
    if (status)
        return status;
    m->n_layers = h.n_layers;
    m->window = h.window;
    for (int32_t i = 0; i < h.n_layers; i++)
        m->n_windowed += h.windowed[i] != 0;
    m->n_heads = h.n_heads;
    m->n_kv_heads = h.n_kv_heads;
    m->head_dim = h.head_dim;
    return MICA_OK;
}

mica_status mica_model_cost_read(const char *path, mica_model_cost *out, mica_error *err)
{
    mica_gguf *g = NULL;
    *out = (mica_model_cost){.kv_element_bytes = 2};
    mica_status status = mica_gguf_open(path, &g, err);
    if (!status)
        status = read_shape(g, out, err);
    if (!status) {
        bool tied = !mica_gguf_tensor_find(g, OUTPUT);
        out->file_bytes = (int64_t)mica_gguf_file_bytes(g);
        for (size_t i = 0; i < mica_gguf_tensor_count(g); i++)
            add_tensor(mica_gguf_tensor_at(g, i), tied, out);
    }
    mica_gguf_close(g);
    return status;
}
