#include "bench/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/campaign_nats_wire.h"
#include "bench/record.h"
#include "bench/worker_beat.h"

enum { MAX_CAMPAIGNS = 64, FETCH_MS = 2000, AGAIN_MS = 5000, MAX_FAILURES = 3, ACK_TRIES = 20 };
#define REFUSE_S 60.0 /* what a machine cannot compute it may be able to a minute later: a model is there then, or memory */
#define FAULT_S  3.0  /* after a fault of the queue, or of a disk */

/* A campaign, by the tag of its subjects. */
typedef struct listed {
    char tag[MICA_NATS_TAG];
    int64_t until_ns; /* not before that */
} listed;

typedef struct worker {
    const mica_worker_options *options;
    mica_worker_stats *stats;
    mica_nats_link link;
    mica_worker_probe *probe;
    listed campaigns[MAX_CAMPAIGNS], refused[MAX_CAMPAIGNS];
    size_t n_campaigns, n_refused;
    int64_t worked_ns; /* when there was work last */
    /* the campaign at hand */
    char tag[MICA_NATS_TAG];
    mica_notice notice;
    mica_prompts prompts;
    char model[4096], adapter[4096];
    mica_engine_options engine_options;
    mica_engine *engine;
    json_t *head;
    natsSubscription *work;
    mica_beat beat;
    bool beating;
    int failures; /* in a row */
} worker;

static void note(const worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(const worker *w, const char *format, ...)
{
    char text[600];
    va_list args;
    if (!w->options->on_note)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->options->on_note(w->options->user, text);
}

static bool gives_up(void *user)
{
    const worker *w = user;
    const mica_adapter_options *o = &w->options->adapter_options;
    return o->stop && o->stop(o->user);
}

static bool finishes(const worker *w)
{
    return w->options->finish && w->options->finish(w->options->user);
}

/* ---- Whether this machine can ---- */

/* Asked between the steps of our own engine; of an adapter while it is waited for, which is no progress. */
static bool engine_stop(void *user)
{
    worker *w = user;
    if (w->beating && !w->engine_options.adapter)
        mica_beat_move(&w->beat);
    return gives_up(w);
}

static void engine_tokens(void *user, int64_t tokens)
{
    worker *w = user;
    (void)tokens;
    if (w->beating)
        mica_beat_move(&w->beat);
}

static mica_status get_prompts(worker *w, mica_error *err)
{
    void *packed;
    char *text;
    size_t length;
    mica_status status = mica_nats_blob_get(&w->link, w->tag, &w->notice.prompts, &packed, err);
    if (status)
        return status;
    status = mica_unpack_text(packed, w->notice.prompts.bytes, &text, &length, err);
    free(packed);
    if (status)
        return status;
    status = mica_prompts_read(text, length, "the queue's set of prompts", w->notice.campaign.prompts_sha256, &w->prompts, err);
    free(text);
    return status;
}

static mica_status find_runtime(worker *w, mica_error *err)
{
    const char *name = w->notice.campaign.runtime;
    /* A path would let whoever may write to the queue run what he likes here. */
    if (strchr(name, '/') || strchr(name, '=') || strchr(name, ','))
        return mica_fail(err, MICA_UNSUPPORTED, "its runtime \"%.60s\" is no name of an adapter", name);
    if (!w->options->find_runtime(w->options->user, name, w->adapter))
        return mica_fail(err, MICA_UNSUPPORTED, "the runtime \"%.60s\" is not here", name);
    return MICA_OK;
}

static mica_status open_engine(worker *w, mica_error *err)
{
    const mica_worker_options *o = w->options;
    w->engine_options = (mica_engine_options){.campaign = &w->notice.campaign,
                                              .prompts = &w->prompts,
                                              .model = w->model,
                                              .adapter = *w->adapter ? w->adapter : NULL,
                                              .threads = o->threads,
                                              .allow_fallback = o->allow_fallback,
                                              .adapter_options = o->adapter_options,
                                              .on_tokens = engine_tokens,
                                              .user = w};
    w->engine_options.adapter_options.stop = engine_stop;
    w->engine_options.adapter_options.user = w;
    mica_status status = mica_engine_open(&w->engine_options, &w->engine, &w->head, err);
    if (!status && json_object_set_new(w->head, "worker", json_string(o->name)) != 0)
        status = mica_fail_nomem(err, 0, "what computes a campaign");
    return status;
}

/* From cheap to dear; the engine last: once it is open, shards can be computed. */
static mica_status probe(worker *w, mica_error *err)
{
    const mica_campaign *c = &w->notice.campaign;
    mica_status status = find_runtime(w, err);
    if (!status)
        status = mica_worker_model_find(w->probe, w->options, c->model, w->notice.model_sha256, w->model, err);
    if (!status)
        status = mica_worker_memory_check(w->options, w->model, err);
    if (!status)
        status = get_prompts(w, err);
    return status ? status : open_engine(w, err);
}

static mica_status read_notice(worker *w, bool *there, mica_error *err)
{
    char subject[MICA_NATS_SUBJECT];
    natsMsg *msg;
    snprintf(subject, sizeof subject, "mica.campaign.%s", w->tag);
    mica_status status = mica_nats_last(&w->link, MICA_STREAM_DATA, subject, &msg, err);
    *there = !status && msg;
    if (*there && !w->notice.campaign.source)
        status = mica_notice_read(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg), &w->notice, err);
    natsMsg_Destroy(msg);
    return status;
}

/* MICA_OK without w->work: it is not there yet, or no longer. */
static mica_status subscribe(worker *w, mica_error *err)
{
    char name[MICA_NATS_SUBJECT], filter[MICA_NATS_SUBJECT];
    jsSubOptions options;
    jsSubOptions_Init(&options);
    snprintf(name, sizeof name, "work-%s", w->tag);
    snprintf(filter, sizeof filter, "mica.work.%s.*", w->tag);
    options.Stream = MICA_STREAM_WORK;
    options.Consumer = name;
    natsStatus s = js_PullSubscribe(&w->work, w->link.js, filter, name, NULL, &options, NULL);
    if (s == NATS_OK || s == NATS_NOT_FOUND || mica_nats_transient(&w->link, s))
        return MICA_OK;
    return mica_nats_fail(&w->link, s, "the shards of a campaign cannot be asked for", err);
}

/* To open an engine takes seconds: with several campaigns not for one whose shards are all done. */
static bool has_work(const worker *w)
{
    char name[MICA_NATS_SUBJECT];
    jsConsumerInfo *info = NULL;
    if (w->n_campaigns < 2)
        return true;
    snprintf(name, sizeof name, "work-%s", w->tag);
    natsStatus s = js_GetConsumerInfo(&info, w->link.js, MICA_STREAM_WORK, name, NULL, NULL);
    bool some = s == NATS_OK && (info->NumPending > 0 || info->NumAckPending > 0);
    jsConsumerInfo_Destroy(info);
    return some;
}

static void close_campaign(worker *w)
{
    natsSubscription_Destroy(w->work);
    if (w->engine)
        w->engine->close(w->engine);
    json_decref(w->head);
    mica_prompts_free(&w->prompts);
    mica_notice_free(&w->notice);
    w->work = NULL;
    w->engine = NULL;
    w->head = NULL;
    w->failures = 0;
}

/* ---- One shard ---- */

static mica_status send_outcome(worker *w, const mica_outcome *outcome, mica_error *err)
{
    char subject[MICA_NATS_SUBJECT], id[40], *word;
    mica_nats_blob blob;
    void *data;
    size_t length;
    mica_status status = mica_outcome_write(outcome, &data, &length, err);
    if (status)
        return status;
    snprintf(subject, sizeof subject, "mica.result.%s.%lld", w->tag, (long long)outcome->seq);
    if (!mica_record_new_id(id)) {
        status = mica_fail(err, MICA_IO_ERROR, "the system gives no random numbers");
    } else if (length <= mica_nats_room(&w->link)) {
        status = mica_nats_publish(&w->link, subject, id, data, length, NULL, err);
    } else {
        status = mica_nats_blob_put(&w->link, w->tag, data, length, &blob, err);
        if (!status)
            status = mica_blob_word_write(&blob, &word, err);
        if (!status) {
            status = mica_nats_publish(&w->link, subject, id, word, strlen(word), NULL, err);
            free(word);
        }
    }
    free(data);
    return status;
}

static void fill_outcome(const worker *w, const mica_shard *shard, mica_outcome *o)
{
    *o = (mica_outcome){.seq = shard->seq, .head = w->head};
    snprintf(o->campaign, sizeof o->campaign, "%s", w->notice.id);
    snprintf(o->id, sizeof o->id, "%s", shard->id);
    snprintf(o->input, sizeof o->input, "%s", shard->input);
}

/* The server must know that the work is done; if it does not learn it, another worker computes it once more, for nothing. */
static void acknowledge(const worker *w, natsMsg *msg)
{
    for (int i = 0; i < ACK_TRIES; i++) {
        natsStatus s = natsMsg_AckSync(msg, NULL, NULL);
        if (s == NATS_OK || !mica_nats_transient(&w->link, s) || !mica_nats_pause(&w->link))
            return;
    }
}

static mica_status send_result(worker *w, const mica_shard *shard, mica_shard_result *result, mica_error *err)
{
    mica_outcome o;
    bool there;
    mica_shard_sums sums = mica_shard_result_sum(result);
    fill_outcome(w, shard, &o);
    o.started_unix = result->started_unix;
    o.wall_ns = result->wall_ns;
    mica_status status = read_notice(w, &there, err);
    if (status || !there) { /* the campaign ended meanwhile: someone else computed the shard, too */
        note(w, "shard %lld is not wanted any more", (long long)shard->seq);
        return status;
    }
    status = mica_shard_result_pack(result, &o.packed, err);
    if (!status)
        status = send_outcome(w, &o, err);
    mica_packed_result_free(&o.packed);
    if (status)
        return status;
    w->stats->shards++;
    w->stats->tokens += sums.prompt_tokens + sums.reply_tokens;
    note(w, "shard %lld done in %.1f s, %.1f tok/s", (long long)shard->seq + 1, (double)result->wall_ns / 1e9,
         (double)(sums.prompt_tokens + sums.reply_tokens) / ((double)result->wall_ns / 1e9));
    return MICA_OK;
}

/* Another worker may do better. */
static mica_status send_failure(worker *w, natsMsg *msg, const mica_shard *shard, const mica_error *why, mica_error *err)
{
    mica_outcome o;
    fill_outcome(w, shard, &o);
    snprintf(o.error, sizeof o.error, "%.300s", why->message);
    for (char *c = o.error; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c; /* whatever it is, it goes through JSON */
    note(w, "shard %lld could not be computed: %s", (long long)shard->seq + 1, why->message);
    w->stats->failed++;
    w->failures++;
    mica_status status = send_outcome(w, &o, err);
    natsMsg_NakWithDelay(msg, AGAIN_MS, NULL);
    return status;
}

static mica_status compute(worker *w, natsMsg *msg, const mica_shard *shard, mica_error *err)
{
    mica_shard_result result;
    mica_error why;
    mica_status status = mica_shard_result_init(shard, &result, err);
    if (status)
        return status;
    status = mica_beat_start(&w->beat, msg, w->notice.ack_wait_s / 3, MICA_WORKER_STALL_S, err);
    w->beating = !status;
    if (!status) {
        mica_status computed = mica_engine_compute(w->engine, shard, &result, &why);
        if (!computed)
            status = send_result(w, shard, &result, err);
        w->beating = false;
        mica_beat_end(&w->beat);
        if (computed == MICA_CANCELLED)
            status = mica_fail(err, computed, "shard %lld was given up; another worker gets it", (long long)shard->seq + 1);
        else if (computed)
            status = send_failure(w, msg, shard, &why, err);
        else if (!status)
            acknowledge(w, msg);
        w->failures = computed ? w->failures : 0;
    }
    if (status == MICA_CANCELLED)
        natsMsg_Nak(msg, NULL);
    mica_shard_result_free(&result);
    return status;
}

/* MICA_UNSUPPORTED: this worker cuts other shards than the coordinator does, they are of different versions. */
static mica_status take(worker *w, natsMsg *msg, mica_error *err)
{
    mica_shard begin, shard;
    mica_status status = mica_work_read(natsMsg_GetData(msg), (size_t)natsMsg_GetDataLength(msg), &begin, err);
    if (!status)
        status = mica_shard_cut(&w->notice.campaign, w->notice.id, w->prompts.n, &begin, 0, &shard, err);
    if (!status && (strcmp(begin.id, shard.id) != 0 || strcmp(begin.input, shard.input) != 0)) {
        mica_shard_free(&shard);
        status = MICA_BAD_FILE;
    }
    if (status) {
        natsMsg_NakWithDelay(msg, AGAIN_MS, NULL);
        return mica_fail(err, MICA_UNSUPPORTED, "its shards are not cut as this version of mica cuts them");
    }
    status = compute(w, msg, &shard, err);
    mica_shard_free(&shard);
    return status;
}

/* ---- One campaign ---- */

static bool idle_too_long(const worker *w)
{
    return w->options->idle_s > 0 && (double)(mica_now_ns() - w->worked_ns) > w->options->idle_s * 1e9;
}

static int64_t fetch_ms(const worker *w)
{
    return w->options->idle_s > 0 && w->options->idle_s * 1000 < FETCH_MS ? (int64_t)(w->options->idle_s * 1000) + 1 : FETCH_MS;
}

/* *more: there may be work of it soon. */
static mica_status one_shard(worker *w, bool *more, mica_error *err)
{
    natsMsgList list = {NULL, 0};
    bool there;
    natsStatus s = natsSubscription_Fetch(&list, w->work, 1, fetch_ms(w), NULL);
    mica_status status = MICA_OK;
    if (s == NATS_OK && list.Count > 0) {
        status = take(w, list.Msgs[0], err);
        natsMsgList_Destroy(&list);
        w->worked_ns = mica_now_ns();
        *more = w->failures < MAX_FAILURES;
        if (!status && !*more)
            status = mica_fail(err, MICA_UNSUPPORTED, "%d of its shards failed one after the other", w->failures);
        return status;
    }
    natsMsgList_Destroy(&list);
    if (natsConnection_IsClosed(w->link.connection))
        return mica_nats_fail(&w->link, s, "no more shards can be asked for", err);
    if (s != NATS_TIMEOUT && !mica_nats_pause(&w->link))
        return MICA_OK;
    status = read_notice(w, &there, err);
    *more = there && w->n_campaigns == 1 && (s == NATS_TIMEOUT || mica_nats_transient(&w->link, s));
    return status;
}

static void refuse(worker *w, const char *why, double seconds)
{
    listed *r = &w->refused[w->n_refused < MAX_CAMPAIGNS ? w->n_refused++ : 0];
    memcpy(r->tag, w->tag, sizeof r->tag);
    r->until_ns = mica_now_ns() + (int64_t)(seconds * 1e9);
    note(w, "not campaign %s: %s", w->tag, why);
}

/* What speaks against a campaign ends only the work on that one; what speaks against the queue ends all. */
static mica_status judge(worker *w, mica_status status, mica_error *err)
{
    if (status == MICA_CANCELLED || natsConnection_IsClosed(w->link.connection))
        return status;
    if (status)
        refuse(w, err->message, status == MICA_IO_ERROR ? FAULT_S : REFUSE_S);
    return MICA_OK;
}

static mica_status work_on(worker *w, const listed *campaign, mica_error *err)
{
    bool there, more = true;
    memcpy(w->tag, campaign->tag, sizeof w->tag);
    mica_status status = read_notice(w, &there, err);
    there = there && has_work(w);
    if (!status && there)
        status = probe(w, err);
    if (!status && there)
        status = subscribe(w, err);
    if (w->work) {
        note(w, "campaign %s (%s): %s", w->tag, w->notice.campaign.name, w->model);
        w->worked_ns = mica_now_ns(); /* to open an engine is work, too */
    }
    while (!status && w->work && more && !finishes(w) && !idle_too_long(w))
        status = one_shard(w, &more, err);
    status = judge(w, status, err);
    close_campaign(w);
    return status;
}

/* ---- All ---- */

static void add_campaign(void *user, const char *word)
{
    worker *w = user;
    if (w->n_campaigns < MAX_CAMPAIGNS && strlen(word) < MICA_NATS_TAG)
        snprintf(w->campaigns[w->n_campaigns++].tag, MICA_NATS_TAG, "%s", word);
}

static bool is_refused(worker *w, const char *tag)
{
    for (size_t i = 0; i < w->n_refused; i++)
        if (strcmp(w->refused[i].tag, tag) == 0) {
            if (mica_now_ns() < w->refused[i].until_ns)
                return true;
            w->refused[i] = w->refused[--w->n_refused];
            return false;
        }
    return false;
}

static mica_status run_all(worker *w, mica_error *err)
{
    mica_status status = MICA_OK;
    w->worked_ns = mica_now_ns();
    while (!status && !finishes(w) && !idle_too_long(w)) {
        w->n_campaigns = 0;
        status = mica_nats_subjects(&w->link, MICA_STREAM_DATA, "mica.campaign.*", add_campaign, w, err);
        for (size_t i = 0; i < w->n_campaigns && !status && !finishes(w) && !idle_too_long(w); i++)
            if (!is_refused(w, w->campaigns[i].tag))
                status = work_on(w, &w->campaigns[i], err);
        if (!status && !mica_nats_pause(&w->link))
            break;
    }
    return status;
}

mica_status mica_worker_run(const mica_worker_options *options, mica_worker_stats *stats, mica_error *err)
{
    mica_error own;
    *stats = (mica_worker_stats){.shards = 0};
    worker *w = calloc(1, sizeof *w);
    if (!w)
        return mica_fail_nomem(err, sizeof *w, "a worker");
    w->options = options;
    w->stats = stats;
    w->link.stop = gives_up;
    w->link.user = w;
    w->probe = mica_worker_probe_new();
    err = err ? err : &own;
    mica_status status = w->probe ? mica_nats_open(&options->nats, &w->link, err) : mica_fail_nomem(err, 0, "a worker");
    if (!status)
        status = run_all(w, err);
    mica_nats_close(&w->link);
    mica_worker_probe_free(w->probe);
    free(w);
    return status;
}
