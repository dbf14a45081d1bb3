/* campaign_adapter.c - shards through an adapter: text, cut to the length by the runtime's own tokenizer, and its own counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/campaign_engine.h"

typedef struct adapter_engine {
    mica_engine base;
    mica_adapter *adapter;
    mica_adapter_reply reply;
} adapter_engine;

/* Bytes of text for a token of the prompt: enough for any tokenizer on our texts; the runtime cuts. */
enum { BYTES_PER_TOKEN = 16 };

static mica_status keep(const adapter_engine *e, const mica_item *item, mica_answer *a, mica_shard_result *r, mica_error *err)
{
    const mica_adapter_reply *y = &e->reply;
    if (y->n_events > (size_t)item->reply_n)
        return mica_fail(err, MICA_UNSUPPORTED, "%s sent %zu events for %d tokens", e->adapter->hello.runtime, y->n_events,
                         item->reply_n);
    if (y->prompt_n < item->prompt_n)
        return mica_fail(err, MICA_UNSUPPORTED, "%s took %lld tokens of a prompt of %d", e->adapter->hello.runtime,
                         (long long)y->prompt_n, item->prompt_n);
    a->started_ns = y->started_ns;
    a->done_ns = y->done_ns;
    a->prompt_n = y->prompt_n;
    a->cached_n = y->cached_n;
    a->gen_n = y->gen_n;
    a->reason = mica_reason_of(y->reason);
    a->n = y->n_events;
    for (size_t i = 0; i < a->n; i++) {
        r->times[a->first + i] = y->token_ns[i];
        r->tokens[a->first + i] = y->tokens[i];
    }
    return MICA_OK;
}

static mica_status one_item(adapter_engine *e, const mica_item *item, mica_answer *a, mica_shard_result *r, mica_error *err)
{
    const mica_engine_options *o = e->base.options;
    const mica_campaign *c = o->campaign;
    mica_buf text;
    mica_buf_init(&text, (size_t)1 << 30);
    mica_status status = mica_item_text(item, o->prompts, (size_t)item->prompt_n * BYTES_PER_TOKEN, &text, err);
    mica_adapter_request request = {.text = text.data,
                                    .text_length = text.length,
                                    .prompt_n = item->prompt_n,
                                    .n = item->reply_n,
                                    .greedy = c->greedy,
                                    .ignore_eos = c->ignore_eos,
                                    .temperature = c->temperature,
                                    .top_p = c->top_p,
                                    .top_k = c->top_k,
                                    .seed = (int64_t)((c->seed + (uint64_t)item->index) & INT64_MAX)};
    if (!status)
        status = mica_adapter_generate(e->adapter, &request, &e->reply, err);
    mica_buf_free(&text);
    if (!status)
        status = keep(e, item, a, r, err);
    if (!status && o->on_tokens)
        o->on_tokens(o->user, a->prompt_n + a->gen_n);
    return status;
}

static mica_status run(mica_engine *base, const mica_shard *shard, mica_shard_result *result, mica_error *err)
{
    adapter_engine *e = (adapter_engine *)base;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < result->n && !status; i++)
        status = one_item(e, &shard->items[i], &result->answers[i], result, err);
    return status;
}

static void close_engine(mica_engine *base)
{
    adapter_engine *e = (adapter_engine *)base;
    mica_adapter_close(e->adapter);
    mica_adapter_reply_free(&e->reply);
    json_decref(e->base.head);
    free(e);
}

static mica_status load(adapter_engine *e, mica_error *err)
{
    const mica_engine_options *o = e->base.options;
    mica_adapter *a = e->adapter;
    char label[80];
    mica_adapter_load_request request = {
        .model = o->model, .backend = o->campaign->backend, .n_ctx = o->campaign->n_ctx, .threads = o->threads};
    mica_status status = mica_adapter_load(a, &request, err);
    if (!status && a->loaded.context_limit < o->campaign->n_ctx)
        status = mica_fail(err, MICA_CONTEXT_FULL, "%s has a context of %d tokens, the campaign needs %d", a->hello.runtime,
                           a->loaded.context_limit, o->campaign->n_ctx);
    if (!status)
        status = mica_adapter_ask_partition(a, err);
    if (!status)
        status = mica_adapter_confirm(a, o->campaign->backend, o->allow_fallback, label, err);
    if (status)
        return status;
    e->base.head =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "runtime", a->hello.runtime, "version", a->hello.version, "backend",
                  label, "device", a->loaded.device, "labels", a->hello.labels, "threads", (int)a->loaded.threads, "batch", 1);
    e->base.pid = a->loaded.pid;
    return e->base.head ? MICA_OK : mica_fail_nomem(err, 0, "what computes a campaign");
}

mica_status mica_engine_adapter_open(const mica_engine_options *options, mica_engine **out, mica_error *err)
{
    char fault[16];
    adapter_engine *e = calloc(1, sizeof *e);
    if (!e)
        return mica_fail_nomem(err, sizeof *e, "an engine");
    e->base = (mica_engine){.options = options, .run = run, .close = close_engine};
    mica_status status = mica_adapter_proc_open(options->adapter, &options->adapter_options, &e->adapter, fault, err);
    if (!status)
        status = load(e, err);
    if (status)
        close_engine(&e->base);
    else
        *out = &e->base;
    return status;
}
