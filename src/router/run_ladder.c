/* run_ladder.c - the rungs of a decision in order: again where that makes sense, else the next one. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "router/predict.h"
#include "router/run_impl.h"

#define MS      ((int64_t)1000000)
#define LOOK_MS 20 /* how often a pause looks whether the request is still wanted */

/* What follows an attempt. */
typedef enum step { ANSWERED, NEXT_RUNG, OVER } step;

/* ---- Notes ---- */

static double since_ms(const mica_ask *ask, int64_t ns)
{
    return ns ? (double)(ns - ask->start_ns) / (double)MS : NAN;
}

/* Whether the message has words of a server, which may repeat what it was asked: they are for the caller, and for the log only
 * where the policy wants texts in it. */
static bool quotes(const mica_attempt *a)
{
    mica_failure f = a->t.failure;
    return f == MICA_FAILURE_HTTP || f == MICA_FAILURE_SERVER || f == MICA_FAILURE_GARBAGE ||
           (f == MICA_FAILURE_HOT && a->rung->kind == MICA_RUNG_REMOTE);
}

static void note(mica_ask *ask, const mica_attempt *a)
{
    mica_route_outcome *o = &ask->reply->outcome;
    if (a->rung->kind == MICA_RUNG_REMOTE && a->t.failure != MICA_FAILURE_BREAKER) {
        ask->n_remote++;
        ask->n_unreached += a->t.failure == MICA_FAILURE_NO_CONNECTION;
        ask->reply->may_have_arrived = ask->reply->may_have_arrived || a->t.may_have_arrived;
    }
    if (a->t.failure)
        mica_buf_printf(&ask->reasons, "%s%s: %s", ask->reasons.length ? "; " : "", a->rung->name, a->t.message);
    if (o->n_attempts == MICA_ROUTE_ATTEMPTS_MAX)
        return;
    mica_route_attempt *n = &o->attempts[o->n_attempts++];
    *n = (mica_route_attempt){.start_ms = since_ms(ask, a->t.start_ns),
                              .end_ms = since_ms(ask, a->t.end_ns),
                              .first_byte_ms = since_ms(ask, a->t.first_ns),
                              .output_tokens = a->t.output_tokens,
                              .hedge = a->hedge};
    snprintf(n->rung, sizeof n->rung, "%s", a->rung->name);
    mica_try_result(&a->t, n->result);
    if (ask->policy->log_text || !quotes(a))
        mica_try_copy(n->error, sizeof n->error, a->t.message);
}

/* A server's answer costs what its tokens cost; what ours cost nobody counted here. */
static double price(const mica_ask *ask, const mica_attempt *a)
{
    const mica_route_decision *d = &ask->reply->decision;
    mica_prediction p;
    if (a->rung->kind != MICA_RUNG_REMOTE || a->t.prompt_tokens < 0 || a->t.output_tokens < 0)
        return NAN;
    mica_predict(ask->policy, a->rung, &ask->rungs[a->index], ask->route.task ? ask->route.task : "", d->route_class,
                 a->t.prompt_tokens, a->t.output_tokens, &p);
    return p.usd;
}

static void take_reply(mica_ask *ask, mica_attempt *a)
{
    mica_run_reply *r = ask->reply;
    mica_route_outcome *o = &r->outcome;
    r->text = mica_buf_take(&a->said, &r->length);
    r->tool_calls = a->t.tool_calls ? mica_json_dumps(a->t.tool_calls, JSON_COMPACT) : NULL;
    snprintf(r->finish, sizeof r->finish, "%s", a->t.finish);
    snprintf(r->model, sizeof r->model, "%s", *a->t.model ? a->t.model : a->rung->name);
    o->ok = true;
    snprintf(o->rung, sizeof o->rung, "%s", a->rung->name);
    o->ttft_ms = since_ms(ask, a->t.first_ns);
    o->total_ms = since_ms(ask, a->t.end_ns);
    o->prompt_tokens = a->t.prompt_tokens;
    o->output_tokens = a->t.output_tokens;
    o->usd = price(ask, a);
}

/* ---- Again? ---- */

static bool is_passing(const mica_try *t)
{
    int s = t->http_status;
    if (t->failure == MICA_FAILURE_HTTP)
        return s == 408 || s == 429 || s == 500 || s == 502 || s == 503 || s == 504;
    return t->failure == MICA_FAILURE_NO_CONNECTION || t->failure == MICA_FAILURE_CUT || t->failure == MICA_FAILURE_GARBAGE ||
           t->failure == MICA_FAILURE_SERVER;
}

static int64_t backoff_ms(mica_ask *ask, int64_t n)
{
    pthread_mutex_lock(&ask->runner->lock);
    double chance = mica_rng_unit(&ask->runner->rng);
    pthread_mutex_unlock(&ask->runner->lock);
    return mica_run_backoff_ms(ask->settings, n, chance);
}

/* False: the request ended meanwhile, or would. */
static bool wait_ms(mica_ask *ask, int64_t ms)
{
    const mica_run_request *r = ask->request;
    int64_t until = mica_now_ns() + ms * MS;
    if (until >= ask->deadline_ns)
        return false;
    for (int64_t left; (left = until - mica_now_ns()) > 0;) {
        struct timespec t = {.tv_nsec = (long)(left < LOOK_MS * MS ? left : LOOK_MS * MS)};
        if (r->is_cancelled && r->is_cancelled(r->user))
            return false;
        nanosleep(&t, NULL);
    }
    return true;
}

/* Whether the same rung is asked again, after the pause that this makes. */
static bool again(mica_ask *ask, const mica_attempt *a, int64_t *n)
{
    const mica_run_settings *s = ask->settings;
    const mica_try *t = &a->t;
    bool loading = t->failure == MICA_FAILURE_HTTP && t->http_status == 503 && t->end_ns < ask->loading_ns;
    int64_t ms = t->retry_after_ms >= 0 ? t->retry_after_ms : backoff_ms(ask, *n);
    if (!is_passing(t))
        return false;
    if (loading)
        return wait_ms(ask, ms < s->backoff_max_ms ? ms : s->backoff_max_ms);
    if (*n >= s->retries || ask->retries >= s->retry_budget || ms > s->retry_after_max_ms)
        return false;
    ++*n;
    ask->retries++;
    return wait_ms(ask, ms);
}

/* ---- One rung ---- */

bool mica_ask_may_try(mica_ask *ask, int32_t index)
{
    mica_runner *r = ask->runner;
    pthread_mutex_lock(&r->lock);
    mica_rung_memory *m = mica_runner_memory(r, ask->policy->ladder->rungs[index].name);
    bool may = m && mica_breaker_begin(&m->breaker, mica_now_ns());
    pthread_mutex_unlock(&r->lock);
    return may;
}

static void note_skipped(mica_ask *ask, int32_t index, mica_failure failure, const char *why)
{
    mica_attempt a = {.ask = ask, .index = index, .rung = &ask->policy->ladder->rungs[index]};
    mica_try_init(&a.t);
    a.t.end_ns = a.t.start_ns;
    mica_try_fail(&a.t, failure, "%s", why);
    note(ask, &a);
    mica_attempt_free(&a);
}

static void note_open(mica_ask *ask, int32_t index)
{
    note_skipped(ask, index, MICA_FAILURE_BREAKER, "it failed too often lately, or asked for a pause");
}

/* A larger model would not keep a device cooler. True: it is passed over. */
static bool is_too_hot(mica_ask *ask, int32_t index)
{
    const mica_rung *rung = &ask->policy->ladder->rungs[index];
    char why[160];
    if (!ask->hot || rung->kind != MICA_RUNG_LOCAL || rung->weights_bytes < ask->hot->weights_bytes)
        return false;
    snprintf(why, sizeof why, "passed over: the device is too hot for %s, and this is no smaller", ask->hot->name);
    note_skipped(ask, index, MICA_FAILURE_HOT, why);
    return true;
}

static void note_heat(mica_ask *ask, const mica_attempt *a)
{
    bool hot = a->t.failure == MICA_FAILURE_HOT && a->rung->kind == MICA_RUNG_LOCAL;
    if (hot && (!ask->hot || a->rung->weights_bytes < ask->hot->weights_bytes))
        ask->hot = a->rung;
}

static step judge(mica_ask *ask, mica_attempt *a)
{
    note(ask, a);
    note_heat(ask, a);
    if (!a->t.failure) {
        take_reply(ask, a);
        return ANSWERED;
    }
    bool over = a->t.failure == MICA_FAILURE_CANCELLED || mica_attempt_told(a) || mica_now_ns() >= ask->deadline_ns;
    return over ? OVER : NEXT_RUNG;
}

static step climb_rung(mica_ask *ask, int32_t index, bool *told)
{
    int64_t n = 0;
    ask->loading_ns = mica_now_ns() + ask->policy->ladder->rungs[index].endpoint.loading_ms * MS;
    for (;;) {
        mica_attempt a;
        if (!mica_ask_may_try(ask, index)) {
            note_open(ask, index);
            return NEXT_RUNG;
        }
        mica_attempt_run(&a, ask, index, false);
        step s = judge(ask, &a);
        *told = *told || mica_attempt_told(&a);
        bool repeat = s == NEXT_RUNG && again(ask, &a, &n);
        mica_attempt_free(&a);
        if (!repeat)
            return s;
    }
}

/* The first two at once; *n: how many of the order are done with. */
static step climb_race(mica_ask *ask, int32_t *n, bool *told)
{
    mica_attempt tries[2];
    step s = NEXT_RUNG;
    if (!mica_ask_may_try(ask, ask->reply->decision.order[0])) {
        note_open(ask, ask->reply->decision.order[0]);
        *n = 1;
        return NEXT_RUNG;
    }
    *n = mica_ask_race(ask, tries);
    for (int32_t i = 0; i < *n; i++) {
        step one = judge(ask, &tries[i]);
        *told = *told || mica_attempt_told(&tries[i]);
        if (one == ANSWERED || (one == OVER && s != ANSWERED))
            s = one;
        mica_attempt_free(&tries[i]);
    }
    return s;
}

/* ---- The ladder ---- */

static mica_status explain(mica_ask *ask, bool told, mica_error *err)
{
    const mica_run_request *r = ask->request;
    char reasons[380];
    mica_try_copy(reasons, sizeof reasons, ask->reasons.length ? ask->reasons.data : "no rung was tried");
    ask->reply->unreached = ask->n_remote > 0 && ask->n_unreached == ask->n_remote;
    if (r->is_cancelled && r->is_cancelled(r->user))
        return mica_fail(err, MICA_CANCELLED, "the request was cancelled");
    if (told)
        return mica_fail(err, MICA_IO_ERROR, "the reply broke off, and no other rung can go on with it: %s", reasons);
    return mica_fail(err, MICA_IO_ERROR, "no rung answered: %s", reasons);
}

mica_status mica_ask_climb(mica_ask *ask, mica_error *err)
{
    const mica_route_decision *d = &ask->reply->decision;
    bool told = false, fallback = ask->settings->fallback;
    step s = NEXT_RUNG;
    int32_t i = 0;
    if (ask->settings->hedge_ms > 0 && d->n_order > 1 && fallback)
        s = climb_race(ask, &i, &told);
    for (; s == NEXT_RUNG && i < d->n_order; i++) {
        if (is_too_hot(ask, d->order[i]))
            continue;
        s = climb_rung(ask, d->order[i], &told);
        if (!fallback)
            break;
    }
    return s == ANSWERED ? MICA_OK : explain(ask, told, err);
}
