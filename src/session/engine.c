/* engine.c - opening, sharing and closing a model. */
#include "session/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "session/identity.h"
#include "session/plan.h"

const char *mica_version(void) { return "0.1.0"; }

int mica_numerics_version(void) { return 1; }

void mica_free(void *pointer) { free(pointer); }

mica_model_options mica_model_options_default(void) { return (mica_model_options){.struct_size = sizeof(mica_model_options)}; }

static char *copy_text(const char *data, size_t length)
{
    char *text = malloc(length + 1);
    if (text) {
        if (length)
            memcpy(text, data, length);
        text[length] = '\0';
    }
    return text;
}

static mica_status copy_str(const mica_gguf *g, const char *key, char **out, mica_error *err)
{
    mica_str s = {"", 0};
    mica_status status = mica_gguf_get_str(g, key, false, &s, err);
    if (status)
        return status;
    *out = copy_text(s.data, s.length);
    return *out ? MICA_OK : mica_fail_nomem(err, s.length + 1, key);
}

/* A template that does not compile leaves the model usable for everything but chat, and says so at once. */
static mica_status load_template(mica_model *m, const mica_model_options *o, mica_error *err)
{
    mica_status status = MICA_OK;
    if (o->chat_template) {
        m->chat_template = copy_text(o->chat_template, strlen(o->chat_template));
        if (!m->chat_template)
            return mica_fail_nomem(err, strlen(o->chat_template), "the chat template");
    } else if ((status = copy_str(m->gguf, "tokenizer.chat_template", &m->chat_template, err))) {
        return status;
    }
    if (!*m->chat_template)
        return MICA_OK;
    status = mica_template_compile(m->chat_template, strlen(m->chat_template), &m->compiled, &m->template_error);
    if (status == MICA_OUT_OF_MEMORY || (status && o->chat_template)) {
        if (err)
            *err = m->template_error;
        return status;
    }
    if (status && o->on_warning) {
        char message[600];
        snprintf(message, sizeof message, "the model's chat template cannot be used: %s", m->template_error.message);
        o->on_warning(o->user, message);
    }
    return MICA_OK;
}

static mica_status report(const mica_model_options *o, double done, mica_error *err)
{
    if (o->on_progress && o->on_progress(o->user, done))
        return mica_fail(err, MICA_CANCELLED, "opening the model was cancelled");
    return MICA_OK;
}

/* Chooses the kernels and proves those that this model's matrices need. */
static mica_status load_kernels(mica_model *m, const mica_model_options *o, mica_error *err)
{
    bool types[MICA_TYPE_COUNT] = {false};
    for (size_t i = 0; i < mica_gguf_tensor_count(m->gguf); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(m->gguf, i);
        types[t->quant->type] |= t->n_dims > 1;
    }
    mica_status status = mica_kernels_choose(o->kernels, &m->kernels, err);
    return status ? status : mica_kernels_check(&m->kernels, types, err);
}

static mica_status load_parts(mica_model *m, const mica_model_options *o, mica_error *err)
{
    mica_status s;
    if ((s = report(o, 0.2, err)) || (s = load_kernels(m, o, err)) ||
        (s = copy_str(m->gguf, "general.architecture", &m->architecture, err)) ||
        (s = copy_str(m->gguf, "general.name", &m->name, err)) ||
        (s = mica_vocab_load(m->gguf, o->on_warning, o->user, &m->vocab, err)) || (s = report(o, 0.8, err)) ||
        (s = mica_weights_bind(m->gguf, mica_vocab_size(m->vocab), o->on_warning, o->user, &m->weights, err)) ||
        (s = load_template(m, o, err)))
        return s;
    return report(o, 1.0, err);
}

/* What was locked before a refusal is let go when it is unmapped; the pages are wanted anyway. */
static void lock_files(mica_model *m, const mica_model_options *o)
{
    size_t i = 0, n = mica_gguf_file_count(m->gguf);
    while (i < n && mica_map_lock(mica_gguf_file_at(m->gguf, i).data, (size_t)mica_gguf_file_at(m->gguf, i).length))
        i++;
    m->locked = i == n;
    int reason = errno;
    int64_t limit = mica_map_lock_limit();
    char message[200], most[64] = "";
    if (m->locked || !o->on_warning)
        return;
    if (limit < INT64_MAX)
        snprintf(most, sizeof most, "; it may lock %lld (RLIMIT_MEMLOCK)", (long long)limit);
    snprintf(message, sizeof message, "the model is not kept in memory: the system refuses to lock %llu bytes (%s)%s",
             (unsigned long long)mica_gguf_file_bytes(m->gguf), strerror(reason), most);
    o->on_warning(o->user, message);
}

static void destroy(mica_model *m)
{
    mica_template_free(m->compiled);
    free(m->chat_template);
    free(m->architecture);
    free(m->name);
    mica_weights_free(&m->weights);
    mica_token_trie_free(atomic_load(&m->trie));
    mica_identity_free(atomic_load(&m->identity));
    mica_vocab_free(m->vocab);
    mica_gguf_close(m->gguf);
    free(m);
}

/* Takes over `g`. */
static mica_status open_gguf(mica_gguf *g, const mica_model_options *options, int64_t start_ns, int64_t base_bytes,
                             mica_model **out, mica_error *err)
{
    mica_model_options defaults = mica_model_options_default();
    mica_model *m = mica_new_array(1, sizeof *m);
    if (!m) {
        mica_gguf_close(g);
        return mica_fail_nomem(err, sizeof *m, "the model");
    }
    m->gguf = g;
    m->base_bytes = base_bytes;
    atomic_init(&m->references, 1);
    mica_status status = load_parts(m, options ? options : &defaults, err);
    if (status) {
        destroy(m);
        return status;
    }
    if (options && options->lock)
        lock_files(m, options);
    m->load_ms = (double)(mica_now_ns() - start_ns) / 1e6;
    *out = m;
    return MICA_OK;
}

mica_status mica_model_open(const char *path, const mica_model_options *options, mica_model **out, mica_error *err)
{
    int64_t start = mica_now_ns(), base = mica_plan_resident();
    mica_gguf *g = NULL;
    *out = NULL;
    mica_status status = mica_gguf_open(path, &g, err);
    return status ? status : open_gguf(g, options, start, base, out, err);
}

mica_status mica_model_open_fd(int fd, uint64_t offset, uint64_t length, const mica_model_options *options, mica_model **out,
                               mica_error *err)
{
    int64_t start = mica_now_ns(), base = mica_plan_resident();
    mica_gguf *g = NULL;
    *out = NULL;
    mica_status status = mica_gguf_open_fd(fd, offset, length, &g, err);
    return status ? status : open_gguf(g, options, start, base, out, err);
}

void mica_model_retain(mica_model *m) { atomic_fetch_add(&m->references, 1); }

void mica_model_close(mica_model *m)
{
    if (m && atomic_fetch_sub(&m->references, 1) == 1)
        destroy(m);
}
