#include "bench/campaign_nats.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/map.h"
#include "bench/campaign_nats_open.h"
#include "bench/campaign_nats_wire.h"
#include "bench/campaign_postgres.h"
#include "bench/record.h"
#include "bench/store_sql.h"

enum { FETCH = 16, FETCH_MS = 250, MAX_FAILURES = 5, FIRST_AHEAD = 64, TOGETHER = 256, MAX_WAITING = 65536 };
#define LOOK_S   30.0 /* between two looks at what the queue still has, at most; at least every ack_wait_s */
#define RESULT_S 20.0 /* a coordinator that fetched a result and stored it not within this time is dead */

typedef struct run {
    const mica_campaign_nats_options *options;
    const mica_campaign *campaign;
    mica_prompts prompts;
    mica_nats_link link;
    natsSubscription *results;
    mica_notice notice;
    mica_open_shards open;
    mica_mirror *mirror; /* NULL: none */
    mica_campaign_outcome *outcome;
    mica_campaign_nats_stats *stats;
    char tag[MICA_NATS_TAG];
    int64_t start_ns, look_ns; /* look_ns: when to look next */
    int64_t tokens;            /* made in this run */
    int losses;                /* of the connection, that we have acted upon */
    bool announced;
} run;

/* ---- Telling ---- */

static void note(const run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const run *r, const char *format, ...)
{
    char text[600];
    va_list args;
    if (!r->options->on_note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->options->on_note(r->options->user, text);
}

static bool stopped(void *user)
{
    const run *r = user;
    return r->options->finish && r->options->finish(r->options->user);
}

static double seconds_since(int64_t ns)
{
    return (double)(mica_now_ns() - ns) / 1e9;
}

static void tell(const run *r, const mica_shard_row *row)
{
    mica_campaign_progress p = {.total = r->campaign->tokens,
                                .done = r->open.done_tokens,
                                .shard = row->shard.seq,
                                .tps = (double)r->tokens / seconds_since(r->start_ns),
                                .shard_done = true,
                                .shard_s = (double)row->wall_ns / 1e9};
    if (r->options->on_progress)
        r->options->on_progress(r->options->user, &p);
}

/* ---- Consumers: they outlive us, so that results wait for the next coordinator and work for the next worker ---- */

static natsStatus make_consumer(run *r, const char *stream, const char *kind, double wait_s)
{
    char name[MICA_NATS_SUBJECT], filter[MICA_NATS_SUBJECT];
    jsConsumerConfig config;
    jsErrCode code = 0;
    jsConsumerConfig_Init(&config);
    snprintf(name, sizeof name, "%s-%s", kind, r->tag);
    snprintf(filter, sizeof filter, "mica.%s.%s.*", kind, r->tag);
    config.Durable = name;
    config.FilterSubject = filter;
    config.AckPolicy = js_AckExplicit;
    config.AckWait = (int64_t)(wait_s * 1e9);
    config.MaxAckPending = -1; /* as many as there are workers */
    config.MaxWaiting = MAX_WAITING;
    natsStatus s = js_AddConsumer(NULL, r->link.js, stream, &config, NULL, &code);
    return s == NATS_ERR ? js_UpdateConsumer(NULL, r->link.js, stream, &config, NULL, &code) : s;
}

static mica_status subscribe(run *r, mica_error *err)
{
    char name[MICA_NATS_SUBJECT], filter[MICA_NATS_SUBJECT];
    jsSubOptions options;
    natsStatus s = make_consumer(r, MICA_STREAM_WORK, "work", r->options->ack_wait_s);
    if (s == NATS_OK)
        s = make_consumer(r, MICA_STREAM_RESULT, "result", RESULT_S);
    if (s == NATS_OK && !r->results) {
        jsSubOptions_Init(&options);
        snprintf(name, sizeof name, "result-%s", r->tag);
        snprintf(filter, sizeof filter, "mica.result.%s.*", r->tag);
        options.Stream = MICA_STREAM_RESULT;
        options.Consumer = name;
        s = js_PullSubscribe(&r->results, r->link.js, filter, name, NULL, &options, NULL);
    }
    if (s == NATS_OK)
        return MICA_OK;
    /* The server went away meanwhile: the next look at the queue makes up for it. */
    return mica_nats_transient(&r->link, s) && mica_nats_pause(&r->link)
               ? MICA_OK
               : mica_nats_fail(&r->link, s, "the queue has no consumers for the campaign", err);
}

static mica_status put_prompts(run *r, mica_error *err)
{
    mica_map map;
    void *packed = NULL;
    size_t length = 0;
    mica_status status = mica_map_open(r->options->prompts, &map, err);
    if (!status)
        status = mica_pack_text((const char *)map.data, map.length, &packed, &length, err);
    mica_map_close(&map);
    if (!status)
        status = mica_nats_blob_put(&r->link, r->tag, packed, length, &r->notice.prompts, err);
    free(packed);
    return status;
}

/* What workers must know: at the beginning, and when the server has lost it. */
static mica_status announce(run *r, mica_error *err)
{
    char subject[MICA_NATS_SUBJECT], *text;
    natsMsg *there = NULL;
    snprintf(subject, sizeof subject, "mica.campaign.%s", r->tag);
    mica_status status = r->announced ? mica_nats_last(&r->link, MICA_STREAM_DATA, subject, &there, err) : MICA_OK;
    bool known = there != NULL;
    natsMsg_Destroy(there);
    if (status || known)
        return status;
    status = put_prompts(r, err);
    if (!status)
        status = mica_notice_write(&r->notice, r->campaign->source, &text, err);
    if (status)
        return status;
    r->announced = true;
    status = mica_nats_publish(&r->link, subject, NULL, text, strlen(text), NULL, err);
    free(text);
    return status;
}

/* ---- Work into the queue ---- */

static mica_status queue_shard(run *r, mica_open_shard *s, mica_error *err)
{
    char subject[MICA_NATS_SUBJECT], id[64], *text;
    bool duplicate = false;
    mica_status status = mica_work_write(&s->shard, &text, err);
    if (status)
        return status;
    snprintf(subject, sizeof subject, "mica.work.%s.%lld", r->tag, (long long)s->shard.seq);
    /* The server takes a message of the same id only once in two minutes: of one that is lost, another. */
    snprintf(id, sizeof id, s->before ? "%s-%lld" : "%s", s->shard.id, (long long)mica_now_ns());
    status = mica_nats_publish(&r->link, subject, id, text, strlen(text), &duplicate, err);
    free(text);
    s->queued = !status;
    r->stats->queued += !status && !duplicate;
    r->stats->again += !status && !duplicate && s->before;
    s->before = true;
    return status;
}

static mica_status cut_one(run *r, int64_t target, mica_error *err)
{
    mica_shard shard;
    const char *id = r->outcome->id;
    mica_status status = mica_shard_cut(r->campaign, id, r->prompts.n, &r->open.end, target, &shard, err);
    if (status)
        return status;
    status = mica_campaign_store_cut(r->options->store, id, &shard, err);
    if (!status)
        status = mica_open_shards_add(&r->open, &shard, err);
    mica_shard_free(&shard);
    return status;
}

/* Cuts as many as are wanted, in one transaction: they are on the disk before any of them is in the queue. */
static mica_status cut_more(run *r, size_t wanted, mica_error *err)
{
    const mica_shard_row *slowest = mica_open_shards_slowest(&r->open);
    double limit = r->options->limit_s, left = limit > 0 ? limit - seconds_since(r->start_ns) : 0;
    int64_t target = mica_campaign_target(r->campaign, slowest, limit > 0 && left < 0.001 ? 0.001 : left);
    sqlite3 *db = mica_store_connection(r->options->store);
    mica_status status = MICA_OK;
    /* Beside a transaction of the connection mica_campaign_store_cut() cannot ask for it. */
    if (sqlite3_exec(db, "PRAGMA synchronous=FULL; BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return mica_store_fail(r->options->store, err);
    while (!status && r->open.n < wanted && r->open.end.before < r->campaign->tokens)
        status = cut_one(r, target, err);
    if (sqlite3_exec(db, status ? "ROLLBACK" : "COMMIT", NULL, NULL, NULL) != SQLITE_OK && !status)
        status = mica_store_fail(r->options->store, err);
    return status;
}

static bool over_limit(const run *r)
{
    return r->options->limit_s > 0 && seconds_since(r->start_ns) >= r->options->limit_s;
}

/* Keeps `ahead` shards in hand; fewer while nothing is known of the rate and the shards are small. */
static mica_status top_up(run *r, mica_error *err)
{
    bool known = r->open.n_recent > 0 || r->campaign->shard_tokens > 0;
    size_t ahead = (size_t)r->options->ahead, wanted = known || ahead < FIRST_AHEAD ? ahead : FIRST_AHEAD;
    size_t together = wanted / 2 < TOGETHER ? wanted / 2 : TOGETHER; /* one transaction for so many */
    mica_status status = MICA_OK;
    if (r->open.n + together <= wanted && r->open.n < wanted && r->open.end.before < r->campaign->tokens && !over_limit(r))
        status = cut_more(r, wanted, err);
    for (size_t i = 0; i < r->open.n && !status; i++)
        if (!r->open.item[i].queued)
            status = queue_shard(r, &r->open.item[i], err);
    return status;
}

/* ---- What the queue still has ---- */

static void mark(void *user, const char *word)
{
    run *r = user;
    mica_open_shard *s = mica_open_shards_find(&r->open, strtoll(word, NULL, 10));
    if (s)
        s->queued = true;
}

/* What is pending and neither work nor a result there is lost. Work first: a worker sends its result before it gives the work
 * back, so that a shard on its way is seen in one of both. */
static mica_status look(run *r, mica_error *err)
{
    char filter[MICA_NATS_SUBJECT];
    mica_status status = mica_nats_streams_make(&r->link, err);
    if (!status)
        status = subscribe(r, err);
    if (!status)
        status = announce(r, err);
    for (size_t i = 0; i < r->open.n; i++)
        r->open.item[i].queued = false;
    snprintf(filter, sizeof filter, "mica.work.%s.*", r->tag);
    if (!status)
        status = mica_nats_subjects(&r->link, MICA_STREAM_WORK, filter, mark, r, err);
    snprintf(filter, sizeof filter, "mica.result.%s.*", r->tag);
    if (!status)
        status = mica_nats_subjects(&r->link, MICA_STREAM_RESULT, filter, mark, r, err);
    double wait_s = r->options->ack_wait_s < 1 ? 1 : r->options->ack_wait_s < LOOK_S ? r->options->ack_wait_s : LOOK_S;
    r->look_ns = mica_now_ns() + (int64_t)(wait_s * 1e9);
    return status;
}

/* ---- Results ---- */

enum { AROUND = 64 }; /* tokens that a runtime puts around a prompt by itself: one, begin-of-text, of those that we know */

/* Only what the shard asks for: as many answers, and no more tokens. */
static mica_status check_answers(const mica_shard *shard, const mica_shard_result *result, mica_error *err)
{
    for (size_t i = 0; i < result->n; i++) {
        const mica_answer *a = &result->answers[i];
        const mica_item *item = &shard->items[i];
        if (a->prompt_n < item->prompt_n || a->prompt_n > item->prompt_n + AROUND || a->gen_n < 0 || a->gen_n > item->reply_n ||
            a->n > (size_t)item->reply_n || a->cached_n < -1 || a->cached_n > a->prompt_n ||
            a->done_ns < a->started_ns)
            return mica_fail(err, MICA_BAD_FILE, "request %lld of it has other lengths than were asked for",
                             (long long)item->index);
    }
    return MICA_OK;
}

static mica_status store_result(run *r, mica_open_shard *s, const mica_outcome *o, const mica_shard *shard, mica_error *err)
{
    mica_shard_result result = {.started_unix = o->started_unix, .wall_ns = o->wall_ns};
    mica_status status = mica_shard_result_unpack(&o->packed, (size_t)shard->n_items, &result, err);
    if (!status)
        status = check_answers(shard, &result, err);
    if (!status) {
        status = mica_campaign_store_done(r->options->store, r->outcome->id, shard, &result, o->head, err);
        status = status == MICA_BAD_FILE ? MICA_IO_ERROR : status; /* our database, not the result */
    }
    if (!status) {
        mica_shard_row row = {.shard = *shard, .done = true, .wall_ns = o->wall_ns, .sums = mica_shard_result_sum(&result)};
        r->tokens += row.sums.prompt_tokens + row.sums.reply_tokens;
        r->outcome->shards++;
        mica_open_shards_remove(&r->open, s, &row);
        tell(r, &row);
    }
    mica_shard_result_free(&result);
    return status;
}

/* MICA_BAD_FILE: the result is wrong, which ends nothing. */
static mica_status take_result(run *r, mica_open_shard *s, const mica_outcome *o, mica_error *err)
{
    mica_shard shard;
    if (strcmp(o->campaign, r->outcome->id) != 0 || strcmp(o->id, s->shard.id) != 0 || strcmp(o->input, s->shard.input) != 0)
        return mica_fail(err, MICA_BAD_FILE, "it was computed from other requests");
    mica_status status = mica_shard_cut(r->campaign, r->outcome->id, r->prompts.n, &s->shard, 0, &shard, err);
    if (status)
        return status;
    if (strcmp(shard.input, s->shard.input) != 0)
        status = mica_fail(err, MICA_INVALID_ARGUMENT,
                           "the stored shard %lld was cut from other items than the manifest gives", (long long)shard.seq);
    if (!status)
        status = store_result(r, s, o, &shard, err);
    mica_shard_free(&shard);
    return status;
}

static mica_status take_failure(run *r, mica_open_shard *s, const mica_outcome *o, mica_error *err)
{
    r->stats->failures++;
    note(r, "a worker could not compute shard %lld: %s", (long long)o->seq, o->error);
    if (++s->failures < MAX_FAILURES)
        return MICA_OK;
    return mica_fail(err, MICA_UNSUPPORTED, "workers failed %d times to compute shard %lld: %s", s->failures,
                     (long long)o->seq, o->error);
}

static mica_status take_outcome(run *r, const mica_outcome *o, mica_error *err)
{
    mica_open_shard *s = mica_open_shards_find(&r->open, o->seq);
    if (s && *o->error)
        return take_failure(r, s, o, err);
    if (s)
        return take_result(r, s, o, err);
    r->stats->duplicates += !*o->error;
    return MICA_OK;
}

/* A message with all of it, or one that says where it is. */
static mica_status take_message(run *r, natsMsg *msg, mica_error *err)
{
    mica_outcome outcome;
    mica_nats_blob blob;
    void *bytes = NULL;
    const void *data = natsMsg_GetData(msg);
    size_t length = (size_t)natsMsg_GetDataLength(msg);
    mica_status status = MICA_OK;
    bool elsewhere = mica_blob_word_read(data, length, &blob);
    if (elsewhere) {
        status = mica_nats_blob_get(&r->link, r->tag, &blob, &bytes, err);
        data = bytes;
        length = blob.bytes;
    }
    if (!status)
        status = mica_outcome_read(data, length, &outcome, err);
    if (!status) {
        status = take_outcome(r, &outcome, err);
        mica_outcome_free(&outcome);
    }
    free(bytes);
    if (status && status != MICA_BAD_FILE)
        return status;
    if (status) {
        r->stats->refused++;
        note(r, "a result was refused: %s", err->message);
        r->look_ns = 0;
    }
    natsMsg_Ack(msg, NULL); /* if it is lost, the message comes again and is a duplicate */
    return elsewhere ? mica_nats_blob_remove(&r->link, r->tag, &blob, err) : MICA_OK;
}

static mica_status take_messages(run *r, mica_error *err)
{
    natsMsgList list = {NULL, 0};
    mica_status status = MICA_OK;
    natsStatus s = r->results ? natsSubscription_Fetch(&list, r->results, FETCH, FETCH_MS, NULL) : NATS_TIMEOUT;
    for (int i = 0; i < list.Count && !status; i++)
        status = take_message(r, list.Msgs[i], err);
    natsMsgList_Destroy(&list);
    if (status || s == NATS_OK || s == NATS_TIMEOUT)
        return status;
    if (natsConnection_IsClosed(r->link.connection))
        return mica_nats_fail(&r->link, s, "results cannot be fetched", err);
    mica_nats_pause(&r->link); /* away, or without our consumer: look() makes it anew */
    r->look_ns = r->look_ns < mica_now_ns() + 1000000000 ? r->look_ns : mica_now_ns() + 1000000000;
    return MICA_OK;
}

/* ---- The copy ---- */

/* While it runs a copy that fails is only told: nothing is lost by it. */
static void mirror_now_and_then(run *r)
{
    mica_error err;
    int64_t copied;
    if (r->mirror && mica_mirror_update(r->mirror, r->options->store, r->outcome->id, &copied, &err))
        note(r, "the copy of the results will be made later: %s", err.message);
}

static mica_status mirror_in_the_end(run *r, mica_error *err)
{
    int64_t copied;
    return r->mirror ? mica_mirror_update(r->mirror, r->options->store, r->outcome->id, &copied, err) : MICA_OK;
}

/* ---- All of it ---- */

static mica_status run_shards(run *r, mica_error *err)
{
    mica_status status = MICA_OK;
    r->outcome->end = MICA_CAMPAIGN_STOPPED;
    while (!status && !stopped(r)) {
        int losses = atomic_load(&r->link.losses);
        if (r->open.n == 0 && r->open.end.before >= r->campaign->tokens) {
            r->outcome->end = MICA_CAMPAIGN_DONE;
            break;
        }
        if (r->open.n == 0 && over_limit(r)) {
            r->outcome->end = MICA_CAMPAIGN_LIMIT;
            break;
        }
        if (losses != r->losses || mica_now_ns() >= r->look_ns) {
            r->losses = losses;
            status = look(r, err);
            mirror_now_and_then(r);
        }
        if (!status)
            status = top_up(r, err);
        if (!status)
            status = take_messages(r, err);
    }
    /* Stopped in the middle of a call that waited for the server: that is no failure. */
    return status == MICA_CANCELLED && stopped(r) ? MICA_OK : status;
}

/* Nothing of a campaign that is done stays in the queue. */
static mica_status tidy(run *r, mica_error *err)
{
    static const struct {
        const char *stream, *format;
    } all[] = {{MICA_STREAM_DATA, "mica.campaign.%s"},
               {MICA_STREAM_DATA, "mica.data.%s.>"},
               {MICA_STREAM_WORK, "mica.work.%s.*"},
               {MICA_STREAM_RESULT, "mica.result.%s.*"}};
    char name[MICA_NATS_SUBJECT];
    mica_status status = MICA_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && !status; i++) {
        snprintf(name, sizeof name, all[i].format, r->tag);
        status = mica_nats_purge(&r->link, all[i].stream, name, err);
    }
    snprintf(name, sizeof name, "work-%s", r->tag);
    js_DeleteConsumer(r->link.js, MICA_STREAM_WORK, name, NULL, NULL);
    snprintf(name, sizeof name, "result-%s", r->tag);
    js_DeleteConsumer(r->link.js, MICA_STREAM_RESULT, name, NULL, NULL);
    return status;
}

static mica_status model_hash(const run *r, char out[65], mica_error *err)
{
    const mica_campaign *c = r->campaign;
    if (!r->options->model) {
        snprintf(out, 65, "%s", c->model_sha256);
        return *out ? MICA_OK
                    : mica_fail(err, MICA_INVALID_ARGUMENT,
                                "the manifest does not name the SHA-256 of the model, and its file is not here");
    }
    mica_status status = mica_campaign_model_sha256(r->options->model, r->options->finish, r->options->user, out, err);
    if (!status && *c->model_sha256 && strcmp(out, c->model_sha256) != 0)
        status = mica_fail(err, MICA_BAD_FILE, "the model is not the one that the manifest names: its SHA-256 is %s", out);
    return status;
}

static mica_status prepare(run *r, mica_error *err)
{
    const mica_campaign_nats_options *o = r->options;
    mica_notice *n = &r->notice;
    mica_status status = model_hash(r, n->model_sha256, err);
    if (!status)
        status = mica_prompts_open(o->prompts, r->campaign->prompts_sha256, &r->prompts, err);
    if (!status)
        status = mica_campaign_id(r->campaign, n->model_sha256, n->id, err);
    if (!status)
        status = mica_campaign_store_begin(o->store, r->campaign, n->id, n->model_sha256, err);
    if (!status)
        status = mica_open_shards_read(o->store, n->id, &r->open, err);
    if (status)
        return status;
    snprintf(r->outcome->id, sizeof r->outcome->id, "%s", n->id);
    mica_nats_tag(n->id, r->tag);
    n->ack_wait_s = o->ack_wait_s;
    r->link.stop = stopped;
    r->link.user = r;
    status = o->postgres ? mica_mirror_open(o->postgres, &r->mirror, err) : MICA_OK;
    return status ? status : mica_nats_open(&o->nats, &r->link, err);
}

mica_status mica_campaign_nats_run(const mica_campaign_nats_options *options, mica_campaign_outcome *out,
                                   mica_campaign_nats_stats *stats, mica_error *err)
{
    mica_error own;
    *out = (mica_campaign_outcome){.end = MICA_CAMPAIGN_STOPPED};
    *stats = (mica_campaign_nats_stats){.queued = 0};
    run *r = calloc(1, sizeof *r);
    if (!r)
        return mica_fail_nomem(err, sizeof *r, "a campaign");
    r->options = options;
    r->campaign = options->campaign;
    r->outcome = out;
    r->stats = stats;
    r->start_ns = mica_now_ns();
    err = err ? err : &own;
    mica_status status = prepare(r, err);
    if (!status)
        status = run_shards(r, err);
    if (!status && out->end == MICA_CAMPAIGN_DONE)
        status = tidy(r, err);
    if (!status)
        status = mirror_in_the_end(r, err);
    mica_mirror_close(r->mirror);
    natsSubscription_Destroy(r->results);
    mica_nats_close(&r->link);
    mica_open_shards_free(&r->open);
    mica_prompts_free(&r->prompts);
    free(r);
    return status;
}
