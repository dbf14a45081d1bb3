/* info.c - what a model is: the read-only questions of mica.h, and its text functions. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "session/engine.h"

void mica_model_get_info(const mica_model *m, mica_model_info *info)
{
    const mica_hparams *h = &m->weights.h;
    const mica_vocab_special *s = mica_vocab_special_tokens(m->vocab);
    *info = (mica_model_info){
        .architecture = m->architecture, .name = m->name, .kernels = m->kernels.name, .n_params = m->weights.n_params,
        .weight_bytes = m->weights.n_bytes, .file_bytes = (int64_t)mica_gguf_file_bytes(m->gguf), .n_layers = h->n_layers,
        .n_embd = h->n_embd, .n_heads = h->n_heads, .n_kv_heads = h->n_kv_heads, .head_dim = h->head_dim, .n_ff = h->n_ff,
        .n_vocab = h->n_vocab, .n_ctx_train = h->n_ctx_train, .sliding_window = h->window, .bos_token = s->bos,
        .eos_token = s->eos, .eot_token = s->eot, .pad_token = s->pad, .add_bos = s->add_bos,
        .has_chat_template = m->compiled != NULL, .chat_template = m->chat_template, .load_ms = m->load_ms, .locked = m->locked};
}

size_t mica_model_metadata_count(const mica_model *m) { return mica_gguf_value_count(m->gguf); }

static char *copy_key(mica_str key, mica_buf *buf)
{
    mica_buf_init(buf, 1 << 20);
    mica_buf_append(buf, key.data, key.length);
    return mica_buf_take(buf, NULL);
}

mica_status mica_model_metadata(const mica_model *m, size_t i, char **key, char **value, mica_error *err)
{
    if (i >= mica_model_metadata_count(m))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "metadata entry %zu does not exist; there are %zu", i,
                         mica_model_metadata_count(m));
    const mica_gguf_value *v = mica_gguf_value_at(m->gguf, i);
    mica_buf buf;
    *key = copy_key(v->key, &buf);
    *value = mica_gguf_value_text(v);
    if (*key && *value)
        return MICA_OK;
    free(*key);
    free(*value);
    *key = *value = NULL;
    return mica_fail_nomem(err, v->key.length, "a metadata entry");
}

size_t mica_model_tensor_count(const mica_model *m) { return mica_gguf_tensor_count(m->gguf); }

void mica_model_tensor(const mica_model *m, size_t i, mica_tensor_info *info)
{
    const mica_gguf_tensor *t = mica_gguf_tensor_at(m->gguf, i);
    memset(info, 0, sizeof *info);
    memcpy(info->name, t->name.data, t->name.length < sizeof info->name ? t->name.length : sizeof info->name - 1);
    info->type = t->quant->name;
    info->n_dims = t->n_dims;
    memcpy(info->dims, t->dims, sizeof info->dims);
    info->bytes = (int64_t)t->n_bytes;
}

/* "blk.12.ffn_up.weight" and "blk.3.ffn_up.weight" are one role. */
static void role_of(mica_str name, char role[80])
{
    size_t i = 0, n = 0;
    bool layer = name.length > 4 && memcmp(name.data, "blk.", 4) == 0;
    if (layer) {
        memcpy(role, "blk.*", 5);
        n = 5;
        for (i = 4; i < name.length && name.data[i] >= '0' && name.data[i] <= '9'; i++)
            ;
    }
    for (; i < name.length && n < 79; i++)
        role[n++] = name.data[i];
    role[n] = '\0';
}

/* A matrix is multiplied with, unless it only holds the embeddings: of those rows are decoded, which is no kernel's work. */
static void explain_matrix(const mica_model *m, const mica_gguf_tensor *t, const char *role, char line[160])
{
    const mica_kernels *k = &m->kernels;
    size_t type = t->quant->type;
    if (t->data == m->weights.embd.data && m->weights.output.data != m->weights.embd.data) {
        snprintf(line, 160, "%s %s: rows decoded by portable code\n", role, t->quant->name);
        return;
    }
    const char *gemv = mica_kernels_origin(k, offsetof(mica_kernels, gemv) + type * sizeof *k->gemv);
    const char *gemm = mica_kernels_origin(k, offsetof(mica_kernels, gemm) + type * sizeof *k->gemm);
    snprintf(line, 160, "%s %s: GEMM %s, GEMV %s\n", role, t->quant->name, gemm ? gemm : "none", gemv ? gemv : "none");
}

mica_status mica_model_explain_kernels(const mica_model *m, char **text, mica_error *err)
{
    mica_buf buf;
    char line[160], role[80];
    mica_buf_init(&buf, 1 << 20);
    mica_kernels_describe(&m->kernels, &buf);
    for (size_t i = 0; i < mica_gguf_tensor_count(m->gguf); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(m->gguf, i);
        if (t->n_dims < 2)
            continue;
        role_of(t->name, role);
        explain_matrix(m, t, role, line);
        if (!buf.data || !strstr(buf.data, line))
            mica_buf_puts(&buf, line);
    }
    *text = mica_buf_take(&buf, NULL);
    return *text ? MICA_OK : mica_fail_nomem(err, 1 << 16, "the list of kernels");
}

mica_status mica_model_tokenize(const mica_model *m, const char *text, size_t length, unsigned flags, int32_t **tokens,
                                size_t *n_tokens, mica_error *err)
{
    return mica_vocab_tokenize(m->vocab, text, length, flags, tokens, n_tokens, err);
}

mica_status mica_model_detokenize(const mica_model *m, const int32_t *tokens, size_t n_tokens, bool show_special, char **text,
                                  size_t *length, mica_error *err)
{
    return mica_vocab_detokenize(m->vocab, tokens, n_tokens, show_special, text, length, err);
}

/* The text of a special token, terminated, in `out`; NULL if the model has none. */
static const char *token_text(const mica_vocab *v, int32_t id, char out[256])
{
    if (id < 0)
        return NULL;
    size_t n = mica_vocab_bytes(v, id, true, out, 255);
    if (n > 255)
        return NULL;
    out[n] = '\0';
    return out;
}

static mica_status check_template(const mica_model *m, mica_error *err)
{
    if (!*m->chat_template)
        return mica_fail(err, MICA_BAD_TEMPLATE, "%s has no chat template; give one with --chat-template or use --no-chat",
                         mica_gguf_path(m->gguf));
    if (!m->compiled && err)
        *err = m->template_error;
    return m->compiled ? MICA_OK : m->template_error.code;
}

mica_status mica_model_chat_run(const mica_model *m, json_t *root, int64_t now_unix, char **text, size_t *length,
                                mica_error *err)
{
    char bos[256], eos[256];
    const mica_vocab_special *s = mica_vocab_special_tokens(m->vocab);
    const mica_chat_request request = {.bos_token = token_text(m->vocab, s->bos, bos),
                                       .eos_token = token_text(m->vocab, s->eos, eos), .now_unix = now_unix};
    mica_status status = check_template(m, err);
    return status ? status : mica_template_run_json(m->compiled, &request, root, text, length, err);
}

mica_status mica_model_chat_render(const mica_model *m, const char *request_json, size_t length, int64_t now_unix, char **text,
                                   size_t *text_length, mica_error *err)
{
    json_t *root;
    *text = NULL;
    *text_length = 0;
    mica_status status = check_template(m, err);
    if (!status)
        status = mica_chat_request_read(request_json, length, &root, err);
    if (status)
        return status;
    status = mica_model_chat_run(m, root, now_unix, text, text_length, err);
    json_decref(root);
    return status;
}
