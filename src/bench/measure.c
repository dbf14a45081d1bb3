#include "bench/measure.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "bench/build_id.h"
#include "bench/host.h"
#include "device/pagecache.h"
#include "bench/procmem.h"
#include "bench/samples.h"
#include "bench/sensors.h"
#include "bench/summary.h"
#include "bench/words.h"
#include "mica/mica_device.h"
#include "mica/mica_ops.h"

enum { EMPTY_REPLIES = 20 }; /* so many replies without two tokens in a row, and the decode phase gives up */
#define FLUSH_S 10.0         /* between writes of samples to the store */
#define TICK_NS 250000000    /* between progress calls within a reply: too few to be felt */

typedef struct run {
    const mica_measure_options *options;
    const mica_protocol *protocol;
    mica_record *record;
    mica_adapter *adapter;
    mica_sampler_thread *sampler;
    mica_adapter_reply reply;
    uint64_t seed; /* of the next prompt */
    int64_t flushed_ns, ticked_ns;
    const mica_phase *decode; /* while it runs */
    double decoded_s;         /* in it, of the replies that are done */
    mica_measure_progress progress;
    char fault[16];
    mica_error *err;
} run;

static void tell(run *r, double done, const char *note)
{
    r->progress.done = done < 0.0 ? 0.0 : done > 1.0 ? 1.0 : done;
    r->progress.note = note;
    if (r->options->on_progress)
        r->options->on_progress(r->options->progress_user, &r->progress);
}

static bool stopped(const run *r)
{
    const mica_adapter_options *o = &r->options->adapter_options;
    return o->stop && o->stop(o->user);
}

/* How far the decode phase is, `seconds` of decoding into a reply: it ends with a whole one. */
static double decode_done(const run *r, double seconds)
{
    const mica_phase *phase = r->decode;
    double reply_s = seconds * (phase->reply - 1) / (double)(r->reply.n_events - 1);
    double replies = ceil((phase->min_s - r->decoded_s) / reply_s);
    return (r->decoded_s + seconds) / (r->decoded_s + fmax(replies, 1.0) * reply_s);
}

/* The rate of the last second of a reply under way, and how far the phase is with it. */
static void tick(run *r)
{
    const mica_adapter_reply *y = &r->reply;
    size_t last = y->n_events, first = last;
    int64_t now_ns = mica_now_ns();
    if (!r->options->on_progress || now_ns - r->ticked_ns < TICK_NS)
        return;
    r->ticked_ns = now_ns;
    while (first > 1 && y->token_ns[last - 1] - y->token_ns[first - 1] < 1000000000)
        first--;
    double seconds = first < last && first > 0 ? (double)(y->token_ns[last - 1] - y->token_ns[first - 1]) / 1e9 : 0.0;
    if (r->decode && r->adapter->hello.exact && seconds > 0.0) {
        r->progress.tps = (double)(last - first) / seconds;
        tell(r, decode_done(r, (double)(y->token_ns[last - 1] - y->token_ns[0]) / 1e9), "");
    } else {
        tell(r, r->progress.done, r->progress.note);
    }
}

/* What adapters ask while they wait, and after each token. */
static bool on_stop(void *user)
{
    run *r = user;
    tick(r);
    return stopped(r);
}

static void set(run *r, const char *name, json_t *value)
{
    json_object_set_new(r->record->head, name, value);
}

/* Waits; false when the user wants to stop. */
static bool pause_s(const run *r, double seconds)
{
    int64_t until_ns = mica_now_ns() + (int64_t)(seconds * 1e9);
    for (int64_t left_ns; (left_ns = until_ns - mica_now_ns()) > 0 && !stopped(r);)
        poll(NULL, 0, left_ns < 100000000 ? (int)(left_ns / 1000000) + 1 : 100);
    return !stopped(r);
}

/* ---- Samples ---- */

static mica_status keep_samples(run *r, json_t *samples)
{
    mica_status status = MICA_OK;
    if (r->options->store)
        status = mica_store_add_samples(r->options->store, r->record->id, samples, r->err);
    json_array_extend(r->record->samples, samples);
    json_decref(samples);
    return status;
}

static mica_status flush_samples(run *r, bool at_once)
{
    int64_t now_ns = mica_now_ns();
    if (!r->sampler || (!at_once && (double)(now_ns - r->flushed_ns) < FLUSH_S * 1e9))
        return MICA_OK;
    r->flushed_ns = now_ns;
    json_t *samples = mica_samples_take(r->sampler);
    return samples ? keep_samples(r, samples) : mica_fail_nomem(r->err, 0, "samples of the machine");
}

static void read_memory(run *r)
{
    mica_procmem m;
    int64_t pid = r->adapter->loaded.pid;
    if (pid < 1 || mica_procmem_read(r->options->sysroot, pid, &m, NULL))
        return;
    set(r, "memory",
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "peak_bytes", (json_int_t)m.usage.peak_bytes, "rss_bytes",
                  (json_int_t)m.usage.rss_bytes, "anon_bytes", (json_int_t)m.usage.anon_bytes, "file_bytes",
                  (json_int_t)m.usage.file_bytes, "shared_bytes", (json_int_t)m.shared_bytes, "pss_bytes",
                  (json_int_t)m.pss_bytes, "private_bytes", (json_int_t)m.private_bytes, "swap_bytes",
                  (json_int_t)m.swap_bytes));
}

/* ---- Loading ---- */

static json_t *json_bytes(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static json_t *json_finite(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void note_loaded(run *r, const mica_phase *phase, double resident)
{
    const mica_adapter_loaded *l = &r->adapter->loaded;
    json_t *loads = json_object_get(r->record->head, "loads");
    json_array_append_new(loads, json_pack("{s:s, s:f, s:f, s:o}", "cache", phase->cold ? "cold" : "warm", "ms",
                                           (double)(l->usable_ns - l->asked_ns) / 1e6, "own_ms",
                                           (double)(l->end_ns - l->start_ns) / 1e6, "resident_before", json_finite(resident)));
    set(r, "loaded",
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:i}", "backend", l->backend, "device", l->device, "kv_type",
                  l->kv_type, "file", l->file, "file_bytes", json_bytes(l->file_bytes), "weight_bytes",
                  json_bytes(l->weight_bytes), "bits_per_weight", json_finite(l->bits_per_weight), "context_limit",
                  (int)l->context_limit, "threads", (int)l->threads));
}

/* What ran where, and whether that is what was asked for: once, after the first load. */
static mica_status confirm(run *r)
{
    char label[80] = "", name[160];
    mica_adapter *a = r->adapter;
    mica_status status = mica_adapter_ask_partition(a, r->err);
    if (status)
        return status;
    const mica_adapter_partition *p = &a->partition;
    set(r, "partition",
        p->known ? json_pack("{s:b, s:s, s:I, s:I, s:O, s:s}", "known", 1, "unit", p->unit, "total", (json_int_t)p->total,
                             "fallback", (json_int_t)p->fallback, "parts", p->parts, "note", p->note)
                 : json_pack("{s:b, s:s}", "known", 0, "note", p->note));
    status = mica_adapter_confirm(a, r->options->backend, r->options->allow_fallback, label, r->err);
    snprintf(name, sizeof name, "%s %s", a->hello.runtime, label);
    set(r, "name", json_string(name));
    set(r, "fallback", json_boolean(strcmp(label, a->loaded.backend) != 0));
    return status;
}

static mica_status run_load(run *r, const mica_phase *phase)
{
    const mica_measure_options *o = r->options;
    mica_adapter *a = r->adapter;
    double resident = NAN;
    bool first = json_array_size(json_object_get(r->record->head, "loads")) == 0;
    mica_adapter_load_request request = {
        .model = o->model, .backend = o->backend, .n_ctx = r->protocol->n_ctx, .threads = o->threads};
    mica_status status = a->is_loaded ? mica_adapter_unload(a, r->err) : MICA_OK;
    /* A runtime may read another file than the one that was named: known once it has been loaded. */
    if (!status && phase->cold && mica_pagecache_drop(*a->loaded.file ? a->loaded.file : o->model, &resident, NULL))
        resident = NAN;
    if (!status)
        status = mica_adapter_load(a, &request, r->err);
    if (status)
        return status;
    note_loaded(r, phase, resident);
    if (a->loaded.context_limit < r->protocol->n_ctx)
        return mica_adapter_fail(a, MICA_FAULT_COUNT, r->err, MICA_CONTEXT_FULL,
                                 "%s has a context of %d tokens, the protocol %s needs %d", a->hello.runtime,
                                 a->loaded.context_limit, r->protocol->name, r->protocol->n_ctx);
    if (first)
        status = confirm(r);
    if (!status && !r->sampler)
        status = mica_samples_start(o->sysroot, a->loaded.pid, r->protocol->sample_s, &r->sampler, r->err);
    return status;
}

/* ---- Cooling down ---- */

static mica_status run_cooldown(run *r, const mica_phase *phase)
{
    char key[160];
    mica_cooldown c;
    mica_sensors now;
    mica_cooldown_state state;
    mica_store *store = r->options->store;
    mica_status status = MICA_OK;
    mica_cooldown_begin(&c, &phase->cooldown);
    mica_host_key(json_object_get(r->record->head, "machine"), key);
    if (store)
        status = mica_store_know_zones(store, key, &c, r->err);
    int64_t start_ns = mica_now_ns();
    while (!status) {
        mica_sensors_read(r->options->sysroot, &now);
        state = mica_cooldown_step(&c, &now, mica_now_ns());
        double waited_s = (double)(mica_now_ns() - start_ns) / 1e9;
        tell(r, waited_s / (now.n_zones ? c.rules.max_s : c.rules.blind_s), c.why);
        if (state != MICA_COOLDOWN_WAIT) {
            set(r, "cooldown",
                json_pack("{s:s, s:s, s:f}", "state", mica_cooldown_state_name(state), "why", c.why, "waited_s", waited_s));
            r->progress.note = ""; /* it was c.why */
            return store ? mica_store_keep_zones(store, key, &c, r->err) : MICA_OK;
        }
        if (!pause_s(r, c.rules.poll_s))
            status = mica_fail(r->err, MICA_CANCELLED, "stopped while the machine cooled down");
    }
    return status;
}

/* ---- Replies ---- */

static mica_status keep_reply(run *r, const mica_phase *phase, uint64_t seed)
{
    const mica_adapter_reply *y = &r->reply;
    mica_series x = {.exact = r->adapter->hello.exact,
                     .prompt_asked = phase->prompt,
                     .n_asked = phase->reply,
                     .seed = seed,
                     .started_ns = y->started_ns,
                     .done_ns = y->done_ns,
                     .prompt_n = y->prompt_n,
                     .cached_n = y->cached_n,
                     .gen_n = y->gen_n,
                     .n = y->n_events,
                     .times = y->token_ns};
    snprintf(x.phase, sizeof x.phase, "%s", phase->name);
    snprintf(x.reason, sizeof x.reason, "%s", y->reason);
    x.tokens = malloc((y->n_events + 1) * sizeof *x.tokens);
    if (!x.tokens)
        return mica_fail_nomem(r->err, y->n_events * sizeof *x.tokens, "a reply");
    for (size_t i = 0; i < y->n_events; i++)
        x.tokens[i] = y->tokens[i];
    mica_status status = mica_record_add(r->record, &x, r->err);
    free(x.tokens);
    if (!status && r->options->store)
        status = mica_store_add_series(r->options->store, r->record, r->err);
    return status ? status : flush_samples(r, false);
}

/* One reply to a prompt that nobody has seen before. */
static mica_status one_reply(run *r, const mica_phase *phase)
{
    mica_buf text;
    uint64_t seed = r->seed++;
    mica_buf_init(&text, (size_t)phase->prompt * 16 + 4096);
    mica_status status = mica_words_text(seed, phase->prompt + 8, &text, r->err);
    mica_adapter_request request = {.text = text.data,
                                    .text_length = text.length,
                                    .prompt_n = phase->prompt,
                                    .n = phase->reply,
                                    .greedy = true,
                                    .ignore_eos = true};
    if (!status)
        status = mica_adapter_generate(r->adapter, &request, &r->reply, r->err);
    mica_buf_free(&text);
    return status ? status : keep_reply(r, phase, seed);
}

static double decode_s_of(const mica_adapter_reply *y)
{
    return y->n_events > 1 ? (double)(y->token_ns[y->n_events - 1] - y->token_ns[0]) / 1e9 : 0.0;
}

static mica_status run_repeats(run *r, const mica_phase *phase)
{
    mica_status status = MICA_OK;
    for (int32_t i = 0; i < phase->repeat && !status; i++) {
        tell(r, (double)i / phase->repeat, "");
        status = one_reply(r, phase);
    }
    return status;
}

static mica_status run_decode(run *r, const mica_phase *phase)
{
    int empty = 0;
    int64_t start_ns = mica_now_ns();
    mica_status status = MICA_OK;
    r->decode = phase;
    while (!status && r->decoded_s < phase->min_s && (double)(mica_now_ns() - start_ns) < phase->max_s * 1e9) {
        tell(r, r->decoded_s / phase->min_s, "");
        status = one_reply(r, phase);
        double seconds = status ? 0.0 : decode_s_of(&r->reply);
        r->decoded_s += seconds;
        empty = seconds > 0.0 ? 0 : empty + 1;
        r->progress.tps = seconds > 0.0 ? (double)(r->reply.gen_n - 1) / seconds : r->progress.tps;
        if (!status && empty == EMPTY_REPLIES)
            status = mica_adapter_fail(r->adapter, MICA_FAULT_COUNT, r->err, MICA_UNSUPPORTED,
                                       "%s ended %d replies in a row before their second token: there is no decode rate",
                                       r->adapter->hello.runtime, EMPTY_REPLIES);
    }
    r->decode = NULL;
    return status;
}

/* ---- Bandwidth ---- */

/* What memory gives to as many threads as the runtime had, and what a token reads of it. */
static mica_status run_bandwidth(run *r, const mica_phase *phase)
{
    double rounds[64];
    int32_t n = phase->repeat < 64 ? phase->repeat : 64, threads = r->adapter->loaded.threads;
    mica_model_cost cost;
    const mica_phase *decode = mica_protocol_decode(r->protocol);
    int64_t depth = decode ? decode->prompt + decode->reply / 2 : 0;
    mica_status status = r->adapter->is_loaded ? mica_adapter_unload(r->adapter, r->err) : MICA_OK;
    if (status)
        return status;
    tell(r, 0.0, "");
    status = mica_machine_read(threads > 0 ? threads : 1, 0, n, rounds, r->err);
    if (status)
        return status;
    json_t *roofline = json_pack("{s:f, s:i, s:n}", "read_bytes_per_s", rounds[n / 2] /* sorted: the median */, "threads",
                                 threads > 0 ? (int)threads : 1, "decode_bytes");
    /* Only the file that was measured tells what a token reads of it; another format's file is not known here. */
    if (strcmp(r->adapter->loaded.file, r->options->model) == 0 &&
        mica_model_cost_read(r->options->model, &cost, NULL) == MICA_OK) {
        json_object_set_new(roofline, "decode_bytes", json_real(mica_model_decode_bytes(&cost, depth)));
        json_object_set_new(roofline, "depth", json_integer(depth));
    }
    set(r, "roofline", roofline);
    return MICA_OK;
}

/* ---- The whole ---- */

static mica_status run_phase(run *r, const mica_phase *phase)
{
    switch (phase->kind) {
    case MICA_PHASE_LOAD:
        return run_load(r, phase);
    case MICA_PHASE_COOLDOWN:
        return run_cooldown(r, phase);
    case MICA_PHASE_WARMUP:
    case MICA_PHASE_TTFT:
        return run_repeats(r, phase);
    case MICA_PHASE_DECODE:
        return run_decode(r, phase);
    case MICA_PHASE_BANDWIDTH:
        return run_bandwidth(r, phase);
    }
    return MICA_OK;
}

static mica_status run_phases(run *r)
{
    mica_status status = MICA_OK;
    for (int32_t i = 0; i < r->protocol->n_phases && !status; i++) {
        const mica_phase *phase = &r->protocol->phase[i];
        r->progress.phase = phase->name;
        r->progress.at = i;
        tell(r, 0.0, "");
        if (stopped(r))
            return mica_fail(r->err, MICA_CANCELLED, "stopped before the phase %s", phase->name);
        status = run_phase(r, phase);
        if (r->adapter->is_loaded)
            read_memory(r);
        if (!status)
            status = flush_samples(r, true);
    }
    return status;
}

static mica_status open_adapter(run *r)
{
    const mica_measure_options *o = r->options;
    mica_adapter_options own = o->adapter_options;
    own.stop = on_stop;
    own.user = r;
    mica_status status = strcmp(o->adapter, "mica") == 0
                             ? mica_adapter_mica_open(&own, &r->adapter, r->err)
                             : mica_adapter_proc_open(o->adapter, &own, &r->adapter, r->fault, r->err);
    if (status)
        return status;
    const mica_adapter_hello *h = &r->adapter->hello;
    r->progress.name = h->runtime;
    set(r, "name", json_string(h->runtime));
    set(r, "runtime",
        json_pack("{s:s, s:s, s:s, s:s, s:b, s:b}", "adapter", h->adapter, "name", h->runtime, "version", h->version, "labels",
                  h->labels, "exact", (int)h->exact, "other_clock", (int)h->other_clock));
    return MICA_OK;
}

static mica_status describe_model(run *r)
{
    char digest[65];
    const mica_measure_options *o = r->options;
    mica_status status = MICA_OK;
    json_t *model = json_pack("{s:s, s:n}", "path", o->model, "sha256");
    set(r, "model", model);
    if (!model)
        return mica_fail(r->err, MICA_BAD_TEXT, "the model's path is not valid UTF-8");
    if (o->no_hash)
        return MICA_OK;
    tell(r, 0.0, "SHA-256 of the model's file");
    status = mica_host_sha256(o->model, o->adapter_options.stop, o->adapter_options.user, digest, r->err);
    if (!status)
        json_object_set_new(model, "sha256", json_string(digest));
    /* A folder, or a name that only the runtime understands: no digest. */
    return status == MICA_CANCELLED ? status : MICA_OK;
}

/* Whether the system is in its power saver: true, false, or null where nothing tells. */
static json_t *read_power_save(const char *sysroot)
{
    mica_device_options options = mica_device_options_default();
    mica_device_state state = {.power_save = MICA_UNKNOWN};
    mica_device *device = NULL;
    options.sysroot = sysroot;
    if (mica_device_open(&options, &device, NULL) || mica_device_read(device, &state, NULL))
        state.power_save = MICA_UNKNOWN;
    mica_device_close(device);
    return state.power_save == MICA_UNKNOWN ? json_null() : json_boolean(state.power_save == MICA_YES);
}

static mica_status begin(run *r)
{
    const mica_measure_options *o = r->options;
    char created[32], build[65];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (!mica_record_new_id(r->record->id))
        return mica_fail(r->err, MICA_IO_ERROR, "the system gives no random numbers for the run's id");
    set(r, "record_version", json_integer(MICA_RECORD_VERSION));
    set(r, "id", json_string(r->record->id));
    set(r, "created", json_string(created));
    set(r, "created_unix", json_integer((json_int_t)now));
    set(r, "state", json_string("running"));
    set(r, "name", json_string(r->progress.name)); /* the runtime tells its own in hello */
    set(r, "harness",
        json_pack("{s:s, s:s?, s:i}", "mica", mica_version(), "build", mica_build_id(build) ? build : NULL, "numerics",
                  mica_numerics_version()));
    set(r, "backend", json_string(o->backend));
    set(r, "machine", mica_host_describe(o->sysroot));
    set(r, "power_save", read_power_save(o->sysroot));
    set(r, "protocol", json_incref(r->protocol->source));
    set(r, "loads", json_array());
    set(r, "conditions", o->conditions ? json_deep_copy(o->conditions) : json_null());
    return o->store ? mica_store_begin(o->store, r->record, r->err) : MICA_OK;
}

/* The end of the record: state and reason, then the summary, which may find that the figures cannot stand. */
static mica_status end(run *r, mica_status status)
{
    const mica_error *e = r->err;
    mica_error own;
    const char *state = status == MICA_OK ? "done" : status == MICA_CANCELLED ? "interrupted" : "failed";
    const char *fault = *r->fault ? r->fault : r->adapter && *r->adapter->fault ? r->adapter->fault : mica_status_name(status);
    set(r, "fault", status ? json_string(fault) : json_null());
    set(r, "reason", status ? json_string(e->message) : json_null());
    if (mica_summary_make(r->record, &r->record->summary, &own) && !status)
        status = mica_fail(r->err, own.code, "%s", own.message);
    const json_t *problem = json_array_get(json_object_get(r->record->summary, "problems"), 0);
    if (!status && problem) {
        state = "failed";
        set(r, "fault", json_string("figures"));
        set(r, "reason", json_incref((json_t *)(uintptr_t)problem));
        status = mica_fail(r->err, MICA_UNSUPPORTED, "%s", json_string_value(problem));
    }
    set(r, "state", json_string(state));
    mica_status stored = r->options->store ? mica_store_finish(r->options->store, r->record, state, &own) : MICA_OK;
    return status ? status : stored ? mica_fail(r->err, stored, "%s", own.message) : MICA_OK;
}

/* What an adapter is called before it has said so: the last part of its folder's path. */
static const char *name_of(const char *adapter)
{
    const char *slash = strrchr(adapter, '/');
    return slash && slash[1] ? slash + 1 : adapter;
}

mica_status mica_measure_run(const mica_measure_options *options, mica_record *record, mica_error *err)
{
    mica_error own;
    run r = {.options = options,
             .protocol = options->protocol,
             .record = record,
             .seed = options->protocol->seed * 1000003u,
             .progress = {.name = name_of(options->adapter),
                          .n = options->protocol->n_phases,
                          .note = "",
                          .phase = "hello",
                          .tps = NAN},
             .err = err ? err : &own};
    mica_status status = mica_record_init(record, r.err);
    if (status)
        return status;
    status = begin(&r);
    if (!status)
        status = describe_model(&r);
    if (!status)
        status = open_adapter(&r);
    if (!status)
        status = run_phases(&r);
    json_t *rest = NULL;
    mica_samples_stop(r.sampler, &rest);
    r.sampler = NULL;
    mica_error kept = *r.err;
    if (rest)
        keep_samples(&r, rest);
    if (status)
        *r.err = kept;
    status = end(&r, status);
    mica_adapter_reply_free(&r.reply);
    mica_adapter_close(r.adapter);
    return status;
}
