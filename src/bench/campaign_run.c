#include "bench/campaign_run.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

/* A machine that gets slower by a third during a shard still ends it in the time that the manifest gives. */
#define PART        0.8
#define GROWTH      8.0
#define FIRST_ITEMS 4 /* at least, of the first shard */

typedef struct run {
    const mica_campaign_run_options *options;
    const mica_campaign *campaign;
    mica_prompts prompts;
    mica_engine_options engine_options;
    mica_engine *engine; /* opened when the first shard is there to be computed */
    json_t *head;        /* of the shards: the engine's and the machine */
    mica_campaign_outcome *outcome;
    mica_campaign_progress progress;
    mica_shard_row last; /* the last shard that is done; n_items 0: none */
    int64_t start_ns;
} run;

static void tell(run *r)
{
    if (r->options->on_progress)
        r->options->on_progress(r->options->user, &r->progress);
}

static void on_tokens(void *user, int64_t tokens)
{
    run *r = user;
    r->progress.running += tokens;
    tell(r);
}

/* ---- How much ---- */

int64_t mica_campaign_target(const mica_campaign *c, const mica_shard_row *last, double limit_s)
{
    int64_t items = c->batch > FIRST_ITEMS ? c->batch : FIRST_ITEMS, longest = c->prompt.longest + c->reply.longest;
    if (c->shard_tokens > 0)
        return c->shard_tokens;
    if (!last || last->wall_ns <= 0)
        return items * longest;
    double tokens = (double)(last->sums.prompt_tokens + last->sums.reply_tokens), seconds = c->shard_s * PART;
    double target = tokens / ((double)last->wall_ns / 1e9) * (limit_s > 0 && limit_s < seconds ? limit_s : seconds);
    target = target < GROWTH * tokens ? target : GROWTH * tokens;
    return target < (double)longest ? longest : target < (double)c->tokens ? (int64_t)target : c->tokens;
}

static mica_status keep_last(void *user, const mica_shard_row *row, mica_error *err)
{
    run *r = user;
    (void)err;
    if (!row->done)
        return MICA_OK;
    r->last = *row;
    r->last.head = NULL;
    r->progress.done += row->shard.tokens;
    return MICA_OK;
}

/* Seconds that are left; 0: there is no limit. */
static double left_s(const run *r)
{
    double left = r->options->limit_s - (double)(mica_now_ns() - r->start_ns) / 1e9;
    return r->options->limit_s <= 0 ? 0 : left > 0.001 ? left : 0.001;
}

/* ---- One shard ---- */

static mica_status open_engine(run *r, mica_error *err)
{
    const mica_campaign_run_options *o = r->options;
    r->engine_options = (mica_engine_options){.campaign = r->campaign,
                                              .prompts = &r->prompts,
                                              .model = o->model,
                                              .adapter = o->adapter,
                                              .threads = o->threads,
                                              .allow_fallback = o->allow_fallback,
                                              .adapter_options = o->adapter_options,
                                              .on_tokens = on_tokens,
                                              .user = r};
    return mica_engine_open(&r->engine_options, &r->engine, &r->head, err);
}

/* The pending shard again, or a new one, which is stored as pending. */
static mica_status get_shard(run *r, mica_shard *begin, bool pending, mica_shard *out, mica_error *err)
{
    const char *id = r->outcome->id;
    int64_t target = mica_campaign_target(r->campaign, r->last.shard.n_items > 0 ? &r->last : NULL, left_s(r));
    mica_status status = mica_shard_cut(r->campaign, id, r->prompts.n, begin, target, out, err);
    if (status)
        return status;
    if (!pending)
        status = mica_campaign_store_cut(r->options->store, id, out, err);
    else if (strcmp(begin->id, out->id) != 0 || strcmp(begin->input, out->input) != 0)
        status = mica_fail(err, MICA_BAD_FILE, "the stored shard %lld was cut from other items than the manifest gives",
                           (long long)out->seq);
    if (status)
        mica_shard_free(out);
    return status;
}

static void note_done(run *r, const mica_shard *shard, const mica_shard_result *result)
{
    r->last =
        (mica_shard_row){.shard = *shard, .done = true, .wall_ns = result->wall_ns, .sums = mica_shard_result_sum(result)};
    r->last.shard.items = NULL;
    r->outcome->shards++;
    r->progress.done += shard->tokens;
    r->progress.running = 0;
    r->progress.shard_s = (double)result->wall_ns / 1e9;
    r->progress.tps = (double)(r->last.sums.prompt_tokens + r->last.sums.reply_tokens) / r->progress.shard_s;
    r->progress.shard_done = true;
    tell(r);
    r->progress.shard_done = false;
}

static mica_status run_shard(run *r, mica_shard *begin, bool pending, mica_error *err)
{
    mica_shard shard;
    mica_shard_result result;
    mica_status status = r->engine ? MICA_OK : open_engine(r, err);
    if (!status)
        status = get_shard(r, begin, pending, &shard, err);
    if (status)
        return status;
    r->progress.shard = shard.seq;
    r->progress.running = 0;
    status = mica_shard_result_init(&shard, &result, err);
    if (!status) {
        status = mica_engine_compute(r->engine, &shard, &result, err);
        if (!status)
            status = mica_campaign_store_done(r->options->store, r->outcome->id, &shard, &result, r->head, err);
        if (!status)
            note_done(r, &shard, &result);
        mica_shard_result_free(&result);
    }
    mica_shard_free(&shard);
    return status;
}

/* ---- All of them ---- */

static bool ends(run *r)
{
    const mica_campaign_run_options *o = r->options;
    if (o->finish && o->finish(o->user))
        r->outcome->end = MICA_CAMPAIGN_STOPPED;
    else if (o->limit_s > 0 && (double)(mica_now_ns() - r->start_ns) >= o->limit_s * 1e9)
        r->outcome->end = MICA_CAMPAIGN_LIMIT;
    else
        return false;
    return true;
}

static mica_status run_shards(run *r, mica_error *err)
{
    mica_status status = MICA_OK;
    for (;;) {
        mica_shard begin;
        bool pending;
        status = mica_campaign_store_next(r->options->store, r->outcome->id, &begin, &pending, err);
        if (status)
            return status;
        if (!pending && begin.before >= r->campaign->tokens) {
            r->outcome->end = MICA_CAMPAIGN_DONE;
            return MICA_OK;
        }
        if (ends(r))
            return MICA_OK;
        status = run_shard(r, &begin, pending, err);
        if (status)
            return status;
    }
}

/* What decides the results must be what the manifest says: the model's bytes and those of the prompts. */
static mica_status prepare(run *r, mica_error *err)
{
    const mica_campaign_run_options *o = r->options;
    const mica_campaign *c = r->campaign;
    char sha256[65];
    mica_status status = mica_campaign_model_sha256(o->model, o->adapter_options.stop, o->adapter_options.user, sha256, err);
    if (!status && *c->model_sha256 && strcmp(sha256, c->model_sha256) != 0)
        status = mica_fail(err, MICA_BAD_FILE, "the model is not the one that the manifest names: its SHA-256 is %s", sha256);
    if (!status)
        status = mica_prompts_open(o->prompts, c->prompts_sha256, &r->prompts, err);
    if (!status)
        status = mica_campaign_id(c, sha256, r->outcome->id, err);
    if (!status)
        status = mica_campaign_store_begin(o->store, c, r->outcome->id, sha256, err);
    if (!status)
        status = mica_campaign_store_shards(o->store, r->outcome->id, keep_last, r, err);
    return status;
}

mica_status mica_campaign_run(const mica_campaign_run_options *options, mica_campaign_outcome *out, mica_error *err)
{
    *out = (mica_campaign_outcome){.end = MICA_CAMPAIGN_STOPPED};
    run r = {.options = options,
             .campaign = options->campaign,
             .outcome = out,
             .progress = {.total = options->campaign->tokens, .tps = NAN},
             .start_ns = mica_now_ns()};
    mica_status status = prepare(&r, err);
    if (!status)
        status = run_shards(&r, err);
    if (r.engine)
        r.engine->close(r.engine);
    json_decref(r.head);
    mica_prompts_free(&r.prompts);
    return status;
}
