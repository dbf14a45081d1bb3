/* run.c - runners, and a request through one: understood, decided, carried out, recorded. */
#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "router/run_check.h"
#include "router/run_impl.h"
#include "router/telemetry.h"

#define NO_DEADLINE_MS 3600000 /* an hour: no request runs for ever */

mica_runner_options mica_runner_options_default(void)
{
    return (mica_runner_options){.struct_size = sizeof(mica_runner_options), .seed = -1};
}

mica_run_request mica_run_request_default(void)
{
    return (mica_run_request){.struct_size = sizeof(mica_run_request), .network = MICA_UNKNOWN, .metered = MICA_UNKNOWN};
}

/* ---- Runners ---- */

static mica_status copy_texts(mica_runner *r, mica_error *err)
{
    const char **texts[] = {&r->options.queue_path, &r->options.models_dir, &r->options.redact_task, &r->options.sysroot,
                            &r->options.figures, &r->options.governor};
    mica_status status = MICA_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (*texts[i] && !(*texts[i] = strdup(*texts[i])))
            status = mica_fail_nomem(err, 0, "a runner's options");
    }
    return status;
}

static mica_status open_device(mica_runner *r, mica_error *err)
{
    mica_device_options o = mica_device_options_default();
    o.sysroot = r->options.sysroot;
    return mica_device_open(&o, &r->device, err);
}

static mica_status open_parts(mica_runner *r, mica_error *err)
{
    const mica_runner_options *o = &r->options;
    int64_t seed = o->seed;
    if (seed < 0 && !mica_rng_fresh_seed(&seed))
        return mica_fail(err, MICA_IO_ERROR, "the system gives no random numbers");
    mica_rng_seed(&r->rng, (uint64_t)seed);
    mica_status status = open_device(r, err);
    if (!status)
        status = mica_local_new(o->models_dir, o->sysroot, o->memory_budget, o->n_threads, &r->local, err);
    if (!status && o->governor)
        status = mica_local_govern(r->local, o->governor, r->device, err);
    if (!status && o->redact_task)
        status = mica_redact_rules(o->redact_task, &r->redact, err);
    if (!status && o->queue_path)
        status = mica_held_open(o->queue_path, &r->held, err);
    return status;
}

mica_status mica_runner_new(const mica_runner_options *options, mica_runner **out, mica_error *err)
{
    *out = NULL;
    if (options->struct_size != sizeof *options || !options->router)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the options of a runner come from mica_runner_options_default(), with a router");
    mica_runner *r = mica_new_array(1, sizeof *r);
    if (!r)
        return mica_fail_nomem(err, sizeof *r, "a runner");
    r->options = *options;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->redact_lock, NULL);
    mica_status status = copy_texts(r, err);
    if (!status)
        status = open_parts(r, err);
    if (status)
        mica_runner_free(r);
    else
        *out = r;
    return status;
}

void mica_runner_free(mica_runner *r)
{
    if (!r)
        return;
    for (mica_rung_memory *m = r->rungs, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    mica_local_free(r->local);
    mica_device_close(r->device);
    mica_held_close(r->held);
    mica_task_free(r->redact);
    if (r->has_curl)
        curl_global_cleanup();
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->redact_lock);
    const char *texts[] = {r->options.queue_path, r->options.models_dir, r->options.redact_task, r->options.sysroot,
                           r->options.figures, r->options.governor};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free((void *)(uintptr_t)texts[i]);
    free(r);
}

void mica_runner_set_engine(mica_runner *r, const mica_run_engine *engine)
{
    r->engine = *engine;
    mica_local_reserve(r->local, engine->bytes);
}

mica_rung_memory *mica_runner_memory(mica_runner *r, const char *name)
{
    mica_rung_memory **at = &r->rungs;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    if (!*at && (*at = mica_new_array(1, sizeof **at))) {
        snprintf((*at)->name, sizeof(*at)->name, "%s", name);
        (*at)->decode_tps = (*at)->busy_ms = (*at)->guess_ms = NAN;
    }
    return *at;
}

bool mica_runner_rung_at(mica_runner *r, size_t i, mica_runner_rung *out)
{
    char file[256] = "";
    pthread_mutex_lock(&r->lock);
    const mica_rung_memory *m = r->rungs;
    while (m && i-- > 0)
        m = m->next;
    if (m) {
        *out = (mica_runner_rung){.answered = m->answered,
                                  .failed = m->failed,
                                  .output_tokens = m->output_tokens,
                                  .open = mica_breaker_is_open(&m->breaker, mica_now_ns())};
        snprintf(out->name, sizeof out->name, "%s", m->name);
        snprintf(file, sizeof file, "%s", m->file);
    }
    pthread_mutex_unlock(&r->lock);
    if (m)
        out->resident = *file && mica_local_is_resident(r->local, file);
    return m != NULL;
}

/* ---- A request ---- */

static mica_status understand(mica_ask *ask, mica_error *err)
{
    const mica_run_request *request = ask->request;
    mica_status status = mica_run_body_read(request->body, request->length, &ask->body, err);
    if (!status)
        status = mica_route_request_parse(request->body, request->length, &ask->route_file, err);
    if (!status)
        status = mica_check_new(&ask->body, &ask->check, err);
    if (!status)
        status = mica_route_new_id(ask->id, err);
    if (status)
        return status;
    ask->route = *mica_route_request_of(ask->route_file);
    if (!ask->route.id || !*ask->route.id)
        ask->route.id = ask->id;
    if (request->idempotency_key && strlen(request->idempotency_key) >= sizeof ask->key)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "an idempotency key has at most %zu bytes", sizeof ask->key - 1);
    snprintf(ask->key, sizeof ask->key, "%s", request->idempotency_key ? request->idempotency_key : ask->id);
    int64_t wanted = ask->route.deadline_ms, ms = wanted >= 0 && wanted < NO_DEADLINE_MS ? wanted : NO_DEADLINE_MS;
    ask->deadline_ns = ask->start_ns + ms * 1000000;
    return MICA_OK;
}

static mica_status decide(mica_ask *ask, mica_error *err)
{
    return mica_route_decide(ask->policy, &ask->route, &ask->state, &ask->reply->decision, err);
}

/* Whether the policy lets the request wait if no server can be reached. Those that are left alone because they could not be,
 * are none that failed. */
static bool may_wait(mica_ask *ask)
{
    mica_route_decision other;
    mica_route_state state = ask->state;
    mica_route_rung_state rungs[MICA_ROUTE_RUNGS_MAX];
    for (size_t i = 0; i < state.n_rungs; i++) {
        rungs[i] = state.rungs[i];
        if (ask->policy->ladder->rungs[i].kind == MICA_RUNG_REMOTE)
            rungs[i].healthy = MICA_UNKNOWN;
    }
    state.rungs = rungs;
    state.network = MICA_NO;
    return mica_route_decide(ask->policy, &ask->route, &state, &other, NULL) == MICA_OK && other.action == MICA_ROUTE_QUEUE;
}

/* Whether some server is left alone because it could not be reached. */
static bool is_out_of_reach(mica_ask *ask)
{
    bool found = false;
    pthread_mutex_lock(&ask->runner->lock);
    for (int32_t i = 0; i < ask->policy->ladder->n; i++) {
        const mica_rung_memory *m = mica_runner_memory(ask->runner, ask->policy->ladder->rungs[i].name);
        found = found || (m && m->unreached && mica_breaker_is_open(&m->breaker, mica_now_ns()));
    }
    pthread_mutex_unlock(&ask->runner->lock);
    return found;
}

/* For the record: the last thing that was tried is to wait. */
static void note_held(mica_ask *ask)
{
    mica_route_outcome *o = &ask->reply->outcome;
    double now_ms = (double)(mica_now_ns() - ask->start_ns) / 1e6;
    o->held = ask->reply->held;
    if (o->n_attempts == MICA_ROUTE_ATTEMPTS_MAX)
        o->n_attempts--;
    mica_route_attempt *a = &o->attempts[o->n_attempts++];
    *a = (mica_route_attempt){
        .rung = "queue", .result = "held", .start_ms = now_ms, .end_ms = now_ms, .first_byte_ms = NAN, .output_tokens = -1};
    snprintf(a->error, sizeof a->error, "it waits for the network as number %lld", (long long)ask->reply->held);
}

static mica_status hold(mica_ask *ask, mica_error *err)
{
    mica_runner *r = ask->runner;
    if (ask->request->no_queue || !r->held) {
        char why[320];
        ask->reply->unreached = true;
        mica_try_copy(why, sizeof why, ask->reasons.length ? ask->reasons.data : ask->reply->decision.message);
        return mica_fail(err, MICA_IO_ERROR, "there is no network, and %s: %s",
                         r->held ? "the request is not to wait" : "no queue in which the request could wait", why);
    }
    char *text = mica_json_dumps(ask->body.request, JSON_COMPACT);
    mica_status status =
        text ? mica_held_put(r->held, ask->key, text, strlen(text), ask->settings->queue_max, &ask->reply->held, err)
             : mica_fail_nomem(err, 0, "a request that waits");
    free(text);
    if (!status)
        note_held(ask);
    return status;
}

static mica_status carry_out(mica_ask *ask, mica_error *err)
{
    const mica_route_decision *d = &ask->reply->decision;
    if (d->action == MICA_ROUTE_QUEUE)
        return hold(ask, err);
    if (d->action == MICA_ROUTE_REFUSE)
        return is_out_of_reach(ask) && may_wait(ask) ? hold(ask, err) : mica_fail(err, MICA_UNSUPPORTED, "%s", d->message);
    mica_status status = mica_ask_climb(ask, err);
    return status == MICA_IO_ERROR && ask->reply->unreached && may_wait(ask) ? hold(ask, err) : status;
}

static mica_status record(mica_ask *ask, mica_error *err)
{
    mica_run_reply *r = ask->reply;
    mica_status status =
        mica_route_record(ask->policy, &r->decision, &ask->route, &ask->state, &r->outcome, &r->record, &r->record_length, err);
    const mica_runner_options *o = &ask->runner->options;
    r->decision.degraded_prompt = "";
    if (!status && o->on_record)
        o->on_record(o->user, r->record, r->record_length);
    return status;
}

static mica_status ask_with(mica_ask *ask, mica_error *err)
{
    mica_error second;
    mica_status status = understand(ask, err);
    if (status)
        return status;
    ask->policy = mica_router_policy(ask->runner->options.router);
    ask->settings = &ask->policy->run;
    mica_ask_state(ask);
    status = decide(ask, err);
    if (!status) {
        status = carry_out(ask, err);
        if (isnan(ask->reply->outcome.total_ms))
            ask->reply->outcome.total_ms = (double)(mica_now_ns() - ask->start_ns) / 1e6;
        mica_status recorded = record(ask, &second);
        if (recorded && !status)
            status = mica_fail(err, recorded, "%s", second.message);
    }
    mica_route_policy_release(ask->policy);
    return status;
}

mica_status mica_runner_ask(mica_runner *runner, const mica_run_request *request, mica_run_reply *reply, mica_error *err)
{
    mica_ask ask = {.runner = runner, .request = request, .reply = reply, .start_ns = mica_now_ns()};
    *reply = (mica_run_reply){.outcome = mica_route_outcome_default()};
    mica_buf_init(&ask.reasons, 4000);
    mica_status status =
        request->struct_size == sizeof *request
            ? ask_with(&ask, err)
            : mica_fail(err, MICA_INVALID_ARGUMENT, "a request to a runner comes from mica_run_request_default()");
    mica_run_body_free(&ask.body);
    mica_route_request_free(ask.route_file);
    mica_constraint_free(ask.check);
    mica_buf_free(&ask.reasons);
    if (runner->options.telemetry && reply->record)
        mica_telemetry_routed(runner->options.telemetry, reply, status);
    return status;
}

void mica_run_reply_free(mica_run_reply *reply)
{
    free(reply->text);
    free(reply->tool_calls);
    mica_free(reply->record);
    reply->text = reply->tool_calls = reply->record = NULL;
}
