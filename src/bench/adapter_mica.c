/* adapter_mica.c - our own engine as an adapter, in this process through the public interface: nothing lies between the token
 * and its time. The model's memory is this process's; its peak is reset when the model is loaded. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/adapter.h"

typedef struct engine {
    mica_adapter base;
    mica_model *model;
    mica_session *session;
    mica_model_info info;
    mica_adapter_reply *reply; /* of the call under way */
    int32_t wanted;
    bool no_memory;
} engine;

/* VmHWM counts from here. Where the kernel does not offer it, the peak is that of the whole process. */
static void reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t ignored = write(fd, "5", 1);
    (void)ignored;
    close(fd);
}

/* ---- load ---- */

static void tell_loaded(engine *e, const char *path, const mica_session_options *o)
{
    mica_adapter_loaded *l = &e->base.loaded;
    mica_memory_plan plan = {.n_ctx = 0};
    mica_session_plan(e->model, o, &plan, NULL);
    snprintf(l->backend, sizeof l->backend, "cpu");
    snprintf(l->kv_type, sizeof l->kv_type, "f16");
    snprintf(l->device, sizeof l->device, "%s kernels, %d thread%s", e->info.kernels, plan.n_threads,
             plan.n_threads == 1 ? "" : "s");
    snprintf(l->file, sizeof l->file, "%s", path);
    l->file_bytes = e->info.file_bytes;
    l->weight_bytes = e->info.weight_bytes;
    l->bits_per_weight = (double)e->info.weight_bytes * 8.0 / (double)e->info.n_params;
    l->context_limit = plan.n_ctx;
    l->threads = plan.n_threads;
    l->pid = getpid();
}

static mica_status engine_load(mica_adapter *a, const mica_adapter_load_request *request, mica_error *err)
{
    engine *e = (engine *)a;
    mica_model_options m = mica_model_options_default();
    mica_session_options o = mica_session_options_default();
    if (strcmp(request->backend, "cpu") != 0 && strcmp(request->backend, "default") != 0)
        return mica_adapter_fail(a, MICA_FAULT_REFUSED, err, MICA_UNSUPPORTED,
                                 "mica has no backend \"%.15s\"; it computes on the cpu", request->backend);
    m.kernels = a->options.kernels;
    o.n_ctx = request->n_ctx;
    o.n_threads = request->threads;
    o.sysroot = a->options.sysroot;
    reset_peak();
    a->loaded.start_ns = mica_now_ns();
    mica_status status = mica_model_open(request->model, &m, &e->model, err);
    if (!status)
        status = mica_session_new(e->model, &o, &e->session, err);
    a->loaded.end_ns = mica_now_ns();
    if (!status) {
        mica_model_get_info(e->model, &e->info);
        tell_loaded(e, request->model, &o);
    } else {
        snprintf(a->fault, sizeof a->fault, "%s", MICA_FAULT_REFUSED);
    }
    return status;
}

static mica_status engine_unload(mica_adapter *a, mica_error *err)
{
    engine *e = (engine *)a;
    (void)err;
    mica_session_free(e->session);
    mica_model_close(e->model);
    e->session = NULL;
    e->model = NULL;
    return MICA_OK;
}

/* Every matrix and every other operation runs in our kernels on the CPU: there is nothing to fall back to. */
static mica_status engine_partition(mica_adapter *a, mica_error *err)
{
    engine *e = (engine *)a;
    mica_adapter_partition *p = &a->partition;
    (void)err;
    p->known = true;
    p->total = e->info.n_layers;
    p->fallback = 0;
    p->parts = json_pack("[{s:s, s:i, s:s}]", "backend", "cpu", "n", (int)e->info.n_layers, "what", e->info.kernels);
    snprintf(p->unit, sizeof p->unit, "layers");
    return MICA_OK;
}

/* ---- generate ---- */

static int on_token(void *user, const mica_token_event *event)
{
    engine *e = user;
    if (!mica_adapter_reply_add(e->reply, event->token, event->time_ns))
        e->no_memory = true;
    return e->no_memory || mica_adapter_stopped(&e->base);
}

/* An empty cache for the prompt: a history of one token that the prompt does not begin with. */
static mica_status empty_cache(engine *e, int32_t first, mica_error *err)
{
    size_t n;
    const int32_t *history = mica_session_tokens(e->session, &n);
    int32_t other = first == 0 ? 1 : 0;
    return n > 0 && history[0] == first ? mica_session_sync(e->session, &other, 1, err) : MICA_OK;
}

/* The prompt's tokens: those given, or the first prompt_n of the text. *owned: to be freed with mica_free(). */
static mica_status get_tokens(engine *e, const mica_adapter_request *q, const int32_t **tokens, int32_t **owned, size_t *n,
                              mica_error *err)
{
    *owned = NULL;
    *tokens = q->tokens;
    *n = (size_t)q->prompt_n;
    if (q->tokens)
        return MICA_OK;
    mica_status status = mica_model_tokenize(e->model, q->text, q->text_length, MICA_TOKENIZE_ADD_BOS, owned, n, err);
    *tokens = *owned;
    if (!status && q->prompt_n > 0 && *n > (size_t)q->prompt_n)
        *n = (size_t)q->prompt_n;
    return status;
}

static void tell_reply(engine *e, const mica_result *result)
{
    mica_adapter_reply *r = e->reply;
    r->done_ns = mica_now_ns();
    r->read_ns = r->done_ns;
    r->prompt_n = result->prompt_n;
    r->cached_n = result->cached_n;
    r->gen_n = result->gen_n;
    snprintf(r->reason, sizeof r->reason, "%s", strcmp(result->stop_reason, "stop") == 0 ? "eos" : result->stop_reason);
}

static mica_status engine_generate(mica_adapter *a, const mica_adapter_request *q, mica_adapter_reply *reply, mica_error *err)
{
    engine *e = (engine *)a;
    const int32_t *tokens;
    int32_t *owned;
    size_t n;
    mica_generate_options g = mica_generate_options_default();
    mica_result result = {.stop_reason = "error"};
    e->reply = reply;
    /* Tokens whose time counts are computed again below: this only says what the first one is. */
    mica_status status = get_tokens(e, q, &tokens, &owned, &n, err);
    if (!status && n > 0)
        status = empty_cache(e, tokens[0], err);
    mica_free(owned);
    if (status)
        return status;
    g.max_tokens = q->n;
    g.ignore_eos = q->ignore_eos;
    g.on_token = on_token;
    g.user = e;
    g.sampling.temperature = q->greedy ? 0.0f : (float)q->temperature;
    g.sampling.seed = q->greedy ? 1 : q->seed;
    if (!q->greedy) {
        g.sampling.top_k = q->top_k;
        g.sampling.top_p = (float)q->top_p;
    }
    reply->sent_ns = reply->started_ns = mica_now_ns();
    status = get_tokens(e, q, &tokens, &owned, &n, err);
    if (!status)
        status = mica_session_sync(e->session, tokens, n, err);
    if (!status)
        status = mica_session_generate(e->session, &g, &result, err);
    mica_free(owned);
    tell_reply(e, &result);
    if (!status && e->no_memory)
        status = mica_fail_nomem(err, reply->n_events * 12, "the tokens of a reply");
    if (status == MICA_CANCELLED || (!status && mica_adapter_stopped(a)))
        return mica_adapter_fail(a, MICA_FAULT_STOPPED, err, MICA_CANCELLED, "stopped during a reply");
    return status;
}

/* ---- Begin and end ---- */

static void engine_close(mica_adapter *a)
{
    engine_unload(a, NULL);
    free(a);
}

mica_status mica_adapter_mica_open(const mica_adapter_options *options, mica_adapter **out, mica_error *err)
{
    static const mica_adapter_ops ops = {engine_load, engine_partition, engine_generate, engine_unload, engine_close};
    engine *e = calloc(1, sizeof *e);
    if (!e)
        return mica_fail_nomem(err, sizeof *e, "an adapter");
    e->base.ops = &ops;
    e->base.options = *options;
    e->base.hello = (mica_adapter_hello){.adapter = "mica",
                                         .runtime = "mica",
                                         .takes_tokens = true,
                                         .takes_text = true,
                                         .exact = true,
                                         .can_cancel = true,
                                         .can_seed = true};
    snprintf(e->base.hello.version, sizeof e->base.hello.version, "%s, numerics %d", mica_version(), mica_numerics_version());
    *out = &e->base;
    return MICA_OK;
}
