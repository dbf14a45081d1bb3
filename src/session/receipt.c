/* receipt.c - following a reply: conditions before, while and after it is made. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "session/batch.h"
#include "session/receipt_impl.h"

#define MAX_CONDITIONS 32
#define WATCH_NS ((int64_t)250 << 20)  /* about four looks a second where a condition wants it: heat takes longer to rise */
#define LOOK_NS ((int64_t)20000000000) /* else: often enough that no energy counter wraps twice (256 kJ at 1 kW) */

/* ---- Making ---- */

mica_receipt_options mica_receipt_options_default(void)
{
    return (mica_receipt_options){.struct_size = sizeof(mica_receipt_options), .hashes = true};
}

static mica_status read_conditions(mica_receipt *r, const mica_receipt_options *o, mica_error *err)
{
    if (o->n_require > MAX_CONDITIONS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%zu conditions are required; at most %d are possible", o->n_require,
                         MAX_CONDITIONS);
    r->conditions = mica_new_array(o->n_require, sizeof *r->conditions);
    if (!r->conditions)
        return mica_fail_nomem(err, o->n_require * sizeof *r->conditions, "the conditions");
    for (size_t i = 0; i < o->n_require; i++) {
        mica_status status = mica_condition_parse(o->require[i], &r->conditions[i], err);
        if (status)
            return status;
        r->watches = r->watches || mica_condition_watches(&r->conditions[i]);
        r->n_conditions++;
    }
    return MICA_OK;
}

static bool wants_hashes(const mica_receipt *r)
{
    for (size_t i = 0; i < r->n_conditions; i++)
        if (r->conditions[i].kind == MICA_REQUIRE_MODEL || r->conditions[i].kind == MICA_REQUIRE_TEMPLATE)
            return true;
    return false;
}

static mica_status open_device(mica_receipt *r, const mica_receipt_options *o, mica_error *err)
{
    mica_device_options d = mica_device_options_default();
    d.sysroot = o->sysroot;
    d.min_interval_ms = 0;
    r->device = o->device;
    r->owns_device = !o->device;
    return o->device ? MICA_OK : mica_device_open(&d, &r->device, err);
}

mica_status mica_receipt_new(mica_model *model, const mica_receipt_options *options, mica_receipt **out, mica_error *err)
{
    mica_receipt_options o = options ? *options : mica_receipt_options_default();
    *out = NULL;
    mica_receipt *r = mica_new_array(1, sizeof *r);
    if (!r)
        return mica_fail_nomem(err, sizeof *r, "the receipt");
    mica_model_retain(model);
    r->model = model;
    mica_status status = read_conditions(r, &o, err);
    if (!status)
        status = open_device(r, &o, err);
    if (!status && (o.hashes || wants_hashes(r)))
        status = mica_model_identify(model, o.hash_cache, &r->identity, err);
    if (status) {
        mica_receipt_free(r);
        return status;
    }
    *out = r;
    return MICA_OK;
}

void mica_receipt_free(mica_receipt *r)
{
    if (!r)
        return;
    if (r->owns_device)
        mica_device_close(r->device);
    free(r->conditions);
    mica_model_close(r->model);
    free(r);
}

mica_status mica_session_set_receipt(mica_session *s, mica_receipt *r, mica_error *err)
{
    if (s->batch && mica_batch_has_request(s->batch, s))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "this session has a request under way: give it a receipt before or after");
    if (r && r->model != s->model)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the receipt was made for another model");
    s->receipt = r;
    if (r)
        r->begun = false;
    return MICA_OK;
}

/* ---- What is the case ---- */

const char *mica_receipt_kv_name(mica_kv_type type)
{
    static const char *const names[] = {[MICA_KV_F16] = "f16", [MICA_KV_Q8_0] = "q8_0", [MICA_KV_Q4_0] = "q4_0"};
    return names[type]; /* of a session that was made: in range */
}

int mica_state_throttled(const mica_device_state *d)
{
    bool tells = !isnan(d->cooling) || !isnan(d->clock_limit) || !isnan(d->headroom) || !isnan(d->cpu_quota) ||
                 d->thermal != MICA_THERMAL_UNKNOWN;
    return d->throttle ? MICA_YES : tells ? MICA_NO : MICA_UNKNOWN;
}

int mica_receipt_throttled(const mica_receipt *r)
{
    if (r->throttle)
        return MICA_YES;
    bool known = mica_state_throttled(&r->start) != MICA_UNKNOWN && mica_state_throttled(&r->end) != MICA_UNKNOWN;
    return known ? MICA_NO : MICA_UNKNOWN;
}

/* A monitor that others use, too, may give readings that are a little old: then they are not those of a short reply. */
static bool readings_fit(const mica_receipt *r)
{
    int64_t reply = r->ended_ns - r->started_ns, between = r->end.time_ns - r->start.time_ns;
    int64_t off = reply > between ? reply - between : between - reply;
    return r->owns_device || !r->ended || off <= reply / 10;
}

double mica_receipt_joules(const mica_receipt *r)
{
    return r->energy_whole && readings_fit(r) ? r->end.energy_j - r->start.energy_j : NAN;
}

/* Bits of the first reading that count since the one before it are about what was before this request. */
static unsigned of_now(unsigned throttle) { return throttle & ~(unsigned)(MICA_THROTTLE_COUNTER | MICA_THROTTLE_QUOTA); }

static mica_status look(mica_receipt *r, mica_error *err)
{
    mica_status status = mica_device_read(r->device, &r->end, err);
    r->look_ns = mica_now_ns() + (r->watches ? WATCH_NS : LOOK_NS);
    if (status)
        return status;
    r->throttle |= r->end.throttle;
    r->energy_whole = r->energy_whole && !isnan(r->end.energy_j) && r->end.energy_epoch == r->start.energy_epoch;
    return MICA_OK;
}

/* `n_threads` 0: not known yet, and not looked at. */
static mica_status check_for(const mica_receipt *r, const mica_session_options *o, int32_t n_threads, int32_t dropped_n,
                             mica_error *err)
{
    mica_require_facts f = {.kernels = r->model->kernels.name,
                            .kv_k = mica_receipt_kv_name(o->kv_k),
                            .kv_v = mica_receipt_kv_name(o->kv_v),
                            .model = r->identity ? r->identity->model : "",
                            .chat_template = r->identity ? r->identity->chat_template : "",
                            .n_threads = n_threads,
                            .n_ctx = o->n_ctx,
                            .dropped_n = dropped_n,
                            .temp_mc = r->end.temp_max_mc,
                            .throttled = mica_receipt_throttled(r),
                            .throttle = r->throttle,
                            .joules = mica_receipt_joules(r),
                            .battery_level = r->end.battery_level,
                            .battery = r->end.battery,
                            .on_mains = r->end.on_mains};
    mica_status status = MICA_OK;
    for (size_t i = 0; i < r->n_conditions && !status; i++)
        if (n_threads > 0 || r->conditions[i].kind != MICA_REQUIRE_THREADS)
            status = mica_condition_check(&r->conditions[i], &f, err);
    return status;
}

static mica_status check(const mica_receipt *r, const mica_session *s, mica_error *err)
{
    return check_for(r, &s->options, mica_pool_threads(s->pool), s->dropped_n, err);
}

static void note_company(mica_receipt *r, const mica_session *s)
{
    int32_t n = mica_pool_threads(s->pool), replies = s->batch ? mica_batch_replies(s->batch) : 1;
    r->threads_least = n < r->threads_least ? n : r->threads_least;
    r->threads_most = n > r->threads_most ? n : r->threads_most;
    r->replies_most = replies > r->replies_most ? replies : r->replies_most;
}

/* ---- A reply ---- */

static mica_status look_first(mica_receipt *r, mica_error *err)
{
    mica_status status = mica_device_read(r->device, &r->start, err);
    if (status)
        return status;
    r->end = r->start;
    r->throttle = of_now(r->start.throttle);
    r->energy_whole = !isnan(r->start.energy_j);
    r->look_ns = mica_now_ns() + (r->watches ? WATCH_NS : LOOK_NS);
    return MICA_OK;
}

mica_status mica_receipt_foresee(mica_receipt *r, const mica_session_options *options, mica_error *err)
{
    mica_status status = r->n_conditions > 0 ? look_first(r, err) : MICA_OK;
    return status || r->n_conditions == 0 ? status : check_for(r, options, 0, 0, err);
}

mica_status mica_receipt_begin(mica_receipt *r, const mica_session *s, mica_error *err)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    r->started_unix_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    r->started_ns = s->request_ns;
    r->begun = r->ended = false;
    r->options = s->options;
    r->threads_least = r->threads_most = mica_pool_threads(s->pool);
    r->replies_most = 1;
    mica_status status = look_first(r, err);
    if (!status)
        status = check(r, s, err);
    r->begun = !status;
    return status;
}

mica_status mica_receipt_ensure(mica_receipt *r, const mica_session *s, mica_error *err)
{
    return r->begun ? MICA_OK : mica_receipt_begin(r, s, err);
}

mica_status mica_receipt_may_drop(const mica_receipt *r, mica_error *err)
{
    mica_require_facts f = {.dropped_n = 1};
    for (size_t i = 0; i < r->n_conditions; i++)
        if (r->conditions[i].kind == MICA_REQUIRE_NO_DROP)
            return mica_condition_check(&r->conditions[i], &f, err);
    return MICA_OK;
}

mica_status mica_receipt_tick(mica_receipt *r, const mica_session *s, mica_error *err)
{
    int32_t threads = r->threads_least;
    bool due = mica_now_ns() >= r->look_ns;
    note_company(r, s);
    mica_status status = due ? look(r, err) : MICA_OK;
    if (status || r->n_conditions == 0)
        return status;
    return due || threads != mica_pool_threads(s->pool) ? check(r, s, err) : MICA_OK;
}

mica_status mica_receipt_end(mica_receipt *r, const mica_session *s, mica_status status, const mica_result *result,
                             mica_error *err)
{
    mica_error unused;
    note_company(r, s);
    mica_status seen = look(r, status ? &unused : err);
    if (!seen && !status)
        seen = check(r, s, err);
    r->status = status ? status : seen;
    r->ended_ns = mica_now_ns();
    r->result = *result;
    r->threads = s->batch ? *mica_batch_threads(s->batch) : s->threads;
    r->speculate = s->reply.o.speculate;
    r->begun = false;
    r->ended = true;
    return r->status;
}

bool mica_receipt_get_figures(const mica_receipt *r, mica_receipt_figures *f)
{
    if (!r->ended)
        return false;
    double joules = mica_receipt_joules(r);
    *f = (mica_receipt_figures){.throttled = mica_receipt_throttled(r),
                                .throttle = r->throttle,
                                .joules = joules,
                                .energy_source = isnan(joules) ? "" : r->end.energy_source,
                                .temp_max_mc = r->end.temp_max_mc,
                                .total_ms = (double)(r->ended_ns - r->started_ns) / 1e6,
                                .started_unix_ms = r->started_unix_ms};
    return true;
}
