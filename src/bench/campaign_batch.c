/* campaign_batch.c - shards through mica_batch: as many replies at a time as the manifest says, the next item as soon as one is
 * done. Each reply is, bit for bit, the one that its prompt alone would give: a shard that is computed again after a crash has
 * the same tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/campaign_engine.h"
#include "mica/mica.h"

typedef struct batch_engine batch_engine;

/* One place in the batch. */
typedef struct slot {
    batch_engine *engine;
    mica_session *session;
    size_t item; /* of the shard */
    bool busy;
} slot;

struct batch_engine {
    mica_engine base;
    mica_model *model;
    mica_batch *batch;
    slot *slots;
    int32_t n_slots, active;
    /* of the shard under way */
    const mica_shard *shard;
    mica_shard_result *result;
    mica_status status;
    mica_error error;
};

/* ---- One reply ---- */

static int on_token(void *user, const mica_token_event *event)
{
    const slot *s = user;
    mica_shard_result *r = s->engine->result;
    mica_answer *a = &r->answers[s->item];
    if (a->n < (size_t)s->engine->shard->items[s->item].reply_n) {
        r->times[a->first + a->n] = event->time_ns;
        r->tokens[a->first + a->n++] = event->token;
    }
    return 0;
}

static void on_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    slot *s = user;
    batch_engine *e = s->engine;
    mica_answer *a = &e->result->answers[s->item];
    const mica_engine_options *o = e->base.options;
    a->done_ns = mica_now_ns();
    a->prompt_n = result->prompt_n;
    a->cached_n = result->cached_n;
    a->gen_n = result->gen_n;
    a->reason = mica_reason_of(result->stop_reason);
    s->busy = false;
    e->active--;
    if (status && !e->status) {
        e->status = status;
        e->error = *error;
    }
    if (!status && o->on_tokens)
        o->on_tokens(o->user, a->prompt_n + a->gen_n);
}

/* The first prompt_n tokens of the item's text. A token has a byte at least, most have several: more text is taken until it is
 * enough. */
static mica_status get_tokens(const batch_engine *e, const mica_item *item, int32_t **tokens, mica_error *err)
{
    mica_status status = MICA_OK;
    size_t n = 0;
    *tokens = NULL;
    for (size_t bytes = (size_t)item->prompt_n * 5; !status && n < (size_t)item->prompt_n; bytes *= 2) {
        mica_buf text;
        mica_free(*tokens);
        *tokens = NULL;
        mica_buf_init(&text, (size_t)1 << 30);
        status = mica_item_text(item, e->base.options->prompts, bytes, &text, err);
        if (!status)
            status = mica_model_tokenize(e->model, text.data, text.length, MICA_TOKENIZE_ADD_BOS, tokens, &n, err);
        mica_buf_free(&text);
    }
    return status;
}

static mica_status submit(batch_engine *e, slot *s, size_t i, mica_error *err)
{
    int32_t *tokens;
    const mica_campaign *c = e->base.options->campaign;
    const mica_item *item = &e->shard->items[i];
    mica_generate_options g = mica_generate_options_default();
    g.max_tokens = item->reply_n;
    g.ignore_eos = c->ignore_eos;
    g.on_token = on_token;
    g.on_done = on_done;
    g.user = s;
    g.sampling.temperature = c->greedy ? 0.0f : (float)c->temperature;
    g.sampling.seed = c->greedy ? 1 : (int64_t)((c->seed + (uint64_t)item->index) & INT64_MAX);
    if (!c->greedy) {
        g.sampling.top_k = c->top_k;
        g.sampling.top_p = (float)c->top_p;
    }
    mica_status status = get_tokens(e, item, &tokens, err);
    s->item = i;
    e->result->answers[i].started_ns = mica_now_ns();
    if (!status)
        status = mica_batch_submit(s->session, tokens, (size_t)item->prompt_n, &g, err);
    mica_free(tokens);
    s->busy = !status;
    e->active += !status;
    return status;
}

/* ---- A shard ---- */

static mica_status fill(batch_engine *e, size_t *next, mica_error *err)
{
    mica_status status = MICA_OK;
    for (int32_t i = 0; i < e->n_slots && *next < e->result->n && !status; i++)
        if (!e->slots[i].busy)
            status = submit(e, &e->slots[i], (*next)++, err);
    return status;
}

static mica_status run(mica_engine *base, const mica_shard *shard, mica_shard_result *result, mica_error *err)
{
    batch_engine *e = (batch_engine *)base;
    const mica_adapter_options *o = &base->options->adapter_options;
    size_t next = 0;
    e->shard = shard;
    e->result = result;
    e->status = MICA_OK;
    mica_status status = fill(e, &next, err);
    while (!status && e->active > 0) {
        if (o->stop && o->stop(o->user))
            return mica_fail(err, MICA_CANCELLED, "shard %lld was given up; it begins again with the next mica campaign run",
                             (long long)shard->seq);
        mica_batch_step(e->batch);
        status = e->status;
        if (status && err)
            *err = e->error;
        if (!status)
            status = fill(e, &next, err);
    }
    return status;
}

/* ---- Begin and end ---- */

static void close_engine(mica_engine *base)
{
    batch_engine *e = (batch_engine *)base;
    mica_batch_free(e->batch); /* and its sessions: replies under way are dropped */
    mica_model_close(e->model);
    free(e->slots);
    json_decref(e->base.head);
    free(e);
}

static mica_status open_slots(batch_engine *e, mica_error *err)
{
    mica_status status = MICA_OK;
    e->slots = calloc((size_t)e->n_slots, sizeof *e->slots);
    if (!e->slots)
        return mica_fail_nomem(err, (size_t)e->n_slots * sizeof *e->slots, "the places of a batch");
    for (int32_t i = 0; i < e->n_slots && !status; i++) {
        e->slots[i].engine = e;
        status = mica_batch_session_new(e->batch, NULL, &e->slots[i].session, err);
    }
    return status;
}

static mica_status open_batch(batch_engine *e, mica_error *err)
{
    const mica_engine_options *o = e->base.options;
    mica_model_options m = mica_model_options_default();
    mica_batch_options b = mica_batch_options_default();
    mica_memory_plan plan = {.n_threads = 0};
    mica_model_info info;
    m.kernels = o->adapter_options.kernels;
    b.max_sessions = o->campaign->batch;
    b.n_ctx = o->campaign->n_ctx;
    b.n_threads = o->threads;
    b.sysroot = o->adapter_options.sysroot;
    mica_status status = mica_model_open(o->model, &m, &e->model, err);
    if (!status)
        status = mica_batch_plan(e->model, &b, &plan, err);
    if (!status)
        status = mica_batch_new(e->model, &b, &e->batch, err);
    if (status)
        return status;
    mica_model_get_info(e->model, &info);
    e->base.head = json_pack("{s:s, s:s, s:i, s:s, s:s, s:i, s:i}", "runtime", "mica", "version", mica_version(), "numerics",
                             mica_numerics_version(), "backend", "cpu", "kernels", info.kernels, "threads", plan.n_threads,
                             "batch", (int)b.max_sessions);
    e->base.pid = getpid();
    return e->base.head ? open_slots(e, err) : mica_fail_nomem(err, 0, "what computes a campaign");
}

mica_status mica_engine_batch_open(const mica_engine_options *options, mica_engine **out, mica_error *err)
{
    batch_engine *e = calloc(1, sizeof *e);
    if (!e)
        return mica_fail_nomem(err, sizeof *e, "an engine");
    e->base = (mica_engine){.options = options, .run = run, .close = close_engine};
    e->n_slots = options->campaign->batch;
    mica_status status = open_batch(e, err);
    if (status)
        close_engine(&e->base);
    else
        *out = &e->base;
    return status;
}
