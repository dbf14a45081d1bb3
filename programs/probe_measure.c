/* probe_measure.c - what mica probe measures rather than reads: memory, the model's disk, the model's own rates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/pool.h"
#include "device/bandwidth.h"
#include "device/memory.h"
#include "device/storage.h"
#include "interrupt.h"
#include "load.h"
#include "mica/mica_device.h"
#include "probe.h"

enum { ROUNDS = 64, PROMPT_TOKENS = 256, REPLY_TOKENS = 384, CONTEXT = PROMPT_TOKENS + REPLY_TOKENS + 1, MAX_TOKENS = 1 << 20 };
#define BANDWIDTH_SECONDS 1.0
#define STORAGE_SECONDS   1.0
#define MOST_BUFFER       ((int64_t)512 << 20)
#define LEAST_BUFFER      ((int64_t)64 << 20)
#define WARM_UP_NS        INT64_C(2000000000)
#define COLD_PART         0.2 /* of the time: the first part of decoding is called cold, and the */
#define STEADY_PART       0.5 /* last one sustained */

/* ---- Memory ---- */

/** An eighth of what is available, which is several times the caches on any machine that runs a model; not more than is needed.
 */
static size_t buffer_bytes(void)
{
    int64_t available;
    if (mica_memory_available(NULL, &available, NULL, NULL) || available / 8 > MOST_BUFFER)
        return (size_t)MOST_BUFFER;
    return (size_t)(available / 8 < LEAST_BUFFER ? LEAST_BUFFER : available / 8);
}

static mica_status measure_bandwidth(mica_machine_figures *f, mica_error *err)
{
    mica_thread_plan plan;
    mica_pool *pool = NULL;
    double rates[ROUNDS];
    int32_t n = 0;
    mica_status status = mica_thread_plan_all(NULL, &plan, err);
    bool was_free = mica_interrupt_hold();
    if (!status)
        status = mica_pool_new(plan.n_threads, NULL, &pool, err);
    mica_interrupt_release(was_free);
    if (!status)
        status = mica_bandwidth_read(pool, buffer_bytes(), ROUNDS, BANDWIDTH_SECONDS, rates, &n, err);
    mica_pool_free(pool);
    if (status)
        return status;
    f->threads = plan.n_threads;
    f->read_bytes_per_s = rates[n / 2];
    f->measured_unix = (int64_t)time(NULL);
    return MICA_OK;
}

int mica_probe_bandwidth(const mica_opts *o, const char *store, json_t **out)
{
    mica_machine_figures f = {.read_bytes_per_s = NAN};
    mica_figures_context here;
    mica_error err;
    mica_figures_context_here(NULL, NULL, &here);
    if (store && mica_figures_load_machine(store, &f, &err))
        return mica_load_failed(&err);
    bool held = mica_figures_hold(&f.context, &here);
    if (!o->no_measure && (o->measure || !held)) {
        f = (mica_machine_figures){.context = here};
        if (measure_bandwidth(&f, &err) || (store && mica_figures_save_machine(store, &f, &err)))
            return mica_load_failed(&err);
        held = true;
    }
    *out = isfinite(f.read_bytes_per_s) ? json_pack("{s:f, s:i, s:I, s:b}", "read_bytes_per_s", f.read_bytes_per_s, "threads",
                                                    (int)f.threads, "measured_unix", (json_int_t)f.measured_unix, "holds", held)
                                        : json_null();
    return CODE_OK;
}

/* ---- The disk ---- */

int mica_probe_storage(const char *model_path, json_t **out)
{
    mica_storage s;
    mica_error err;
    mica_status status = mica_storage_read(model_path, STORAGE_SECONDS, &s, &err);
    if (status && status != MICA_UNSUPPORTED)
        return mica_load_failed(&err);
    *out = json_pack("{s:o, s:I, s:f, s:s, s:o, s:o, s:o}", "bytes_per_s", mica_json_real(status ? NAN : s.bytes_per_s),
                     "bytes", (json_int_t)s.bytes, "seconds", s.seconds, "method", s.method, "disk",
                     *s.disk ? json_string(s.disk) : json_null(), "rotational",
                     s.rotational == MICA_UNKNOWN ? json_null() : json_boolean(s.rotational), "reason",
                     status ? json_string(err.message) : json_null());
    return CODE_OK;
}

/* ---- The model ---- */

typedef struct watch {
    int64_t start_ns, spent_ns; /* of the reply that runs; decoding before it */
    int64_t limit_ns;
    int64_t *times; /* of each token, in nanoseconds spent decoding; the prompts between replies are left out */
    size_t n;
    bool counting; /* the first token of a reply begins its clock */
    mica_device *device;
    mica_device_state state;
} watch;

/* A battery's power is read once a second, so that its integral is one. */
static int count_token(void *user, const mica_token_event *token)
{
    watch *w = user;
    if (!w->counting)
        w->start_ns = token->time_ns;
    else if (w->n < MAX_TOKENS)
        w->times[w->n++] = w->spent_ns + token->time_ns - w->start_ns;
    w->counting = true;
    if (token->time_ns - w->state.time_ns > INT64_C(1000000000))
        (void)mica_device_read(w->device, &w->state, NULL);
    return w->spent_ns + token->time_ns - w->start_ns >= w->limit_ns || mica_interrupt_count() > 0;
}

/** A prompt that no prefix of another reply helps with: ids that are ordinary text in any vocabulary, in an order of the
 * reply's own. */
static void write_prompt(int32_t *tokens, int32_t n_vocab, int32_t bos, int reply)
{
    uint64_t x = (uint64_t)reply + 1;
    int32_t low = n_vocab > 4096 ? 1024 : n_vocab / 4, span = n_vocab / 2 > 0 ? n_vocab / 2 : 1;
    for (int i = 0; i < PROMPT_TOKENS; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        tokens[i] = low + (int32_t)((x >> 33) % (uint64_t)span);
    }
    if (bos >= 0)
        tokens[0] = bos;
}

static mica_status run_reply(mica_session *session, const mica_model_info *info, int reply, watch *w, mica_result *result,
                             mica_error *err)
{
    int32_t tokens[PROMPT_TOKENS];
    mica_generate_options options = mica_generate_options_default();
    write_prompt(tokens, info->n_vocab, info->bos_token, reply);
    mica_status status = mica_session_sync(session, tokens, PROMPT_TOKENS, err);
    if (status)
        return status;
    options.max_tokens = REPLY_TOKENS;
    options.sampling.temperature = 0;
    options.ignore_eos = true;
    options.on_token = count_token;
    options.user = w;
    w->counting = false;
    status = mica_session_generate(session, &options, result, err);
    w->spent_ns = w->n ? w->times[w->n - 1] : w->spent_ns;
    return status;
}

/** Tokens a second between two moments of the time spent decoding. */
static double rate_between(const watch *w, double from, double to)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        n += (double)w->times[i] > from && (double)w->times[i] <= to;
    return to > from && n > 0 ? (double)n / (to - from) * 1e9 : NAN;
}

static void take_figures(const watch *w, const mica_device_state *before, mica_figures *f)
{
    double all = (double)w->spent_ns, joules = w->state.energy_j - before->energy_j;
    f->measured_s = all / 1e9;
    f->cold_tps = rate_between(w, 0, COLD_PART * all);
    f->decode_tps = rate_between(w, STEADY_PART * all, all);
    /* of the replies' whole time, prompts included: what a token of such replies takes */
    f->joules_per_token = w->state.energy_epoch == before->energy_epoch && joules > 0 && w->n > 0 ? joules / (double)w->n : NAN;
    f->peak_rss_bytes = mica_memory_peak_rss(NULL);
    f->measured_unix = (int64_t)time(NULL);
    snprintf(f->source, sizeof f->source, "probe");
}

static mica_status decode_for(mica_session *session, const mica_model_info *info, double seconds, mica_figures *f,
                              mica_error *err)
{
    watch w = {.limit_ns = (int64_t)(seconds * 1e9), .times = malloc(MAX_TOKENS * sizeof *w.times)};
    mica_device_state before;
    mica_result result = {.prefill_tps = NAN};
    mica_status status =
        w.times ? mica_device_open(NULL, &w.device, err) : mica_fail_nomem(err, MAX_TOKENS * sizeof *w.times, "token times");
    w.limit_ns = w.limit_ns < WARM_UP_NS ? w.limit_ns : WARM_UP_NS;
    if (!status)
        status = run_reply(session, info, 0, &w, &result, err); /* discarded: pages are read, clocks go up */
    status = status == MICA_CANCELLED && mica_interrupt_count() == 0 ? MICA_OK : status; /* its time was over */
    w.limit_ns = (int64_t)(seconds * 1e9);
    w.n = 0;
    w.spent_ns = 0;
    if (!status)
        status = mica_device_read(w.device, &w.state, err);
    before = w.state;
    for (int reply = 1; !status && w.spent_ns < w.limit_ns && w.n < MAX_TOKENS && mica_interrupt_count() == 0; reply++) {
        status = run_reply(session, info, reply, &w, &result, err);
        f->prefill_tps = reply == 1 ? result.prefill_tps : f->prefill_tps;
    }
    if (status == MICA_CANCELLED && w.spent_ns >= w.limit_ns)
        status = MICA_OK; /* the time was over in the middle of a reply */
    if (!status && mica_interrupt_count() > 0)
        status = mica_fail(err, MICA_CANCELLED, "interrupted: nothing was kept");
    if (!status)
        status = mica_device_read(w.device, &w.state, err);
    if (!status)
        take_figures(&w, &before, f);
    mica_device_close(w.device);
    free(w.times);
    return status;
}

static int measure_model(const mica_opts *o, const char *path, mica_figures *f)
{
    mica_model *model = NULL;
    mica_session *session = NULL;
    mica_session_options options = mica_session_options_default();
    mica_model_info info;
    mica_error err;
    mica_interrupt_catch();
    int code = mica_load_model(o, path, &model);
    if (code != CODE_OK)
        return code;
    mica_model_get_info(model, &info);
    options.n_ctx = CONTEXT;
    options.n_threads = (int32_t)o->threads;
    bool was_free = mica_interrupt_hold();
    mica_status status = mica_session_new(model, &options, &session, &err);
    mica_interrupt_release(was_free);
    mica_interrupt_watch(session);
    if (!status)
        status = decode_for(session, &info, o->measure_seconds, f, &err);
    mica_interrupt_watch(NULL);
    if (!status) {
        mica_thread_plan plan;
        f->threads = o->threads ? (int32_t)o->threads : mica_thread_plan_default(NULL, &plan, NULL) ? 0 : plan.n_threads;
    }
    mica_session_free(session);
    mica_model_close(model);
    return status ? mica_load_failed(&err) : CODE_OK;
}

static json_t *figures_json(const char *key, const mica_figures *f, bool holds)
{
    json_t *out =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:s, s:s, s:I, s:b}", "model", key, "prefill_tps",
                  mica_json_real(f->prefill_tps), "decode_tps", mica_json_real(f->decode_tps), "cold_tps",
                  mica_json_real(f->cold_tps), "measured_s", mica_json_real(f->measured_s), "joules_per_token",
                  mica_json_real(f->joules_per_token), "threads", (int)f->threads, "kernels", f->context.kernels, "build",
                  f->context.build, "source", f->source, "measured_unix", (json_int_t)f->measured_unix, "holds", holds);
    json_object_set_new(out, "peak_rss_bytes", f->peak_rss_bytes < 0 ? json_null() : json_integer(f->peak_rss_bytes));
    json_object_set_new(out, "tuned_threads", f->tuned_threads ? json_integer(f->tuned_threads) : json_null());
    return out;
}

int mica_probe_model(const mica_opts *o, const char *store, const char *model_path, json_t **out)
{
    char key[MICA_FIGURES_KEY];
    mica_figures f;
    mica_figures_context here;
    mica_error err;
    mica_figures_clear(&f);
    mica_figures_context_here(NULL, mica_probe_kernels(o), &here);
    if (mica_figures_key(model_path, key, &err) || (store && mica_figures_load(store, key, &f, &err)))
        return mica_load_failed(&err);
    bool holds = mica_figures_hold(&f.context, &here) && isfinite(f.decode_tps);
    if (!o->no_measure && (o->measure || !holds)) {
        mica_figures_clear(&f);
        int code = measure_model(o, model_path, &f);
        f.context = here;
        if (code == CODE_OK && store && mica_figures_save(store, key, &f, &err))
            code = mica_load_failed(&err);
        if (code != CODE_OK)
            return code;
        holds = true;
    }
    *out = isfinite(f.decode_tps) ? figures_json(key, &f, holds) : json_null();
    return CODE_OK;
}

/* ---- The store ---- */

typedef struct listing {
    json_t *list;
    mica_figures_context here;
} listing;

static void add_model(void *user, const char *key, const mica_figures *f)
{
    listing *l = user;
    snprintf(l->here.kernels, sizeof l->here.kernels, "%s",
             f->context.kernels); /* which set a model gets is not known without it */
    json_array_append_new(l->list, figures_json(key, f, mica_figures_hold(&f->context, &l->here)));
}

json_t *mica_probe_models(const char *store)
{
    listing l = {.list = json_array()};
    mica_error err;
    mica_figures_context_here(NULL, NULL, &l.here);
    if (store && mica_figures_visit(store, add_model, &l, &err))
        mica_term_warning(NULL, err.message);
    return l.list;
}
