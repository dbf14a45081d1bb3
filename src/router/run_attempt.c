/* run_attempt.c - one attempt at one rung: its key, its form of the request, personal data out and back, the reply handed over,
 * what is learnt from it. */
#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "router/remote.h"
#include "router/run_check.h"
#include "router/run_impl.h"

#define KEY_MAX 4000

bool mica_ask_may_leave(const mica_ask *ask)
{
    return ask->policy->allow_egress && !ask->route.is_private && !ask->reply->decision.is_private;
}

bool mica_attempt_told(const mica_attempt *a)
{
    return a->said.length > 0 && !a->buffered && atomic_load(&a->ask->winner) == a;
}

void mica_attempt_free(mica_attempt *a)
{
    mica_try_free(&a->t);
    mica_buf_free(&a->said);
    mica_restore_free(&a->restore);
    json_decref(a->marks);
    a->marks = NULL;
}

/* ---- Handing over ---- */

/* Whether this attempt's reply is the one that counts; the first that asks wins. */
static bool wins(mica_attempt *a)
{
    mica_attempt *none = NULL;
    const mica_run_request *r = a->ask->request;
    if (atomic_compare_exchange_strong(&a->ask->winner, &none, a)) {
        if (r->on_rung)
            r->on_rung(r->user, a->rung->name, *a->t.model ? a->t.model : a->rung->name);
        return true;
    }
    return none == a;
}

static int hand_over(mica_attempt *a, const char *text, size_t length)
{
    const mica_run_request *r = a->ask->request;
    if (length == 0)
        return 0;
    if (!wins(a))
        return 1;
    return r->on_text ? r->on_text(r->user, text, length) : 0;
}

/* What comes from the rung, with `last` also what was held back. */
static int take_text(mica_attempt *a, const char *text, size_t length, bool last)
{
    size_t before = a->said.length;
    bool good =
        a->restores ? mica_restore_feed(&a->restore, text, length, last, &a->said) : mica_buf_append(&a->said, text, length);
    if (!good)
        return 1;
    return a->buffered ? 0 : hand_over(a, a->said.data + before, a->said.length - before);
}

static int on_text(void *user, const char *text, size_t length)
{
    return take_text(user, text, length, false);
}

static bool should_stop(void *user)
{
    mica_attempt *a = user;
    const mica_run_request *r = a->ask->request;
    const mica_attempt *winner = atomic_load(&a->ask->winner);
    return atomic_load(&a->stop) || (winner && winner != a) || (r->is_cancelled && r->is_cancelled(r->user));
}

/* ---- Keys ---- */

static bool is_key(const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < n; i++)
        if (key[i] <= ' ' || key[i] > '~')
            return false; /* it becomes a line of the request's head */
    return n > 0 && n < KEY_MAX;
}

static bool read_key_file(const char *path, char key[KEY_MAX], mica_try *t)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return mica_try_fail(t, MICA_FAILURE_NO_KEY, "cannot open the key file %.120s: %s", path, strerror(errno));
    size_t n = fread(key, 1, KEY_MAX - 1, file);
    fclose(file);
    key[n] = '\0';
    key[strcspn(key, "\r\n")] = '\0';
    return is_key(key) || mica_try_fail(t, MICA_FAILURE_NO_KEY, "the first line of %.120s is no key", path);
}

static bool find_key(const mica_attempt *a, char key[KEY_MAX], bool *has_key, mica_try *t)
{
    const mica_endpoint *e = &a->rung->endpoint;
    const mica_runner_options *o = &a->ask->runner->options;
    *has_key = *e->key_env || *e->key_file;
    if (*e->key_file)
        return read_key_file(e->key_file, key, t);
    if (!*e->key_env)
        return true;
    const char *value = o->get_env ? o->get_env(o->user, e->key_env) : NULL;
    if (!value || !is_key(value))
        return mica_try_fail(t, MICA_FAILURE_NO_KEY, "the environment variable %s has no key", e->key_env);
    strcpy(key, value);
    return true;
}

/* ---- Remote ---- */

static bool redact(mica_attempt *a, json_t *messages)
{
    mica_runner *r = a->ask->runner;
    mica_error err;
    if (a->rung->endpoint.redact == MICA_REDACT_OFF)
        return true;
    if (!r->redact)
        return mica_try_fail(&a->t, MICA_FAILURE_NOT_REDACTED, "there is no task that takes personal data out");
    pthread_mutex_lock(&r->redact_lock); /* a task belongs to one thread at a time */
    mica_status status = mica_redact_messages(r->redact, messages, &a->marks, &err);
    pthread_mutex_unlock(&r->redact_lock);
    if (status)
        return mica_try_fail(&a->t, MICA_FAILURE_NOT_REDACTED, "personal data could not be taken out: %s", err.message);
    a->restores = a->rung->endpoint.redact == MICA_REDACT_RESTORE;
    mica_restore_start(&a->restore, a->marks);
    return true;
}

/* Made with the first remote attempt: who sends nothing loads no certificates. libcurl counts, so that others may do the same.
 */
static bool start_curl(mica_runner *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->has_curl)
        r->has_curl = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    bool good = r->has_curl;
    pthread_mutex_unlock(&r->lock);
    return good;
}

static void run_remote(mica_attempt *a, const mica_try_link *link, json_t *messages)
{
    char key[KEY_MAX];
    bool has_key;
    size_t length;
    if (!mica_ask_may_leave(a->ask)) {
        mica_try_fail(&a->t, MICA_FAILURE_EGRESS, "the request may not leave the device");
        json_decref(messages);
        return;
    }
    if (!find_key(a, key, &has_key, &a->t) || !redact(a, messages)) {
        json_decref(messages);
        return;
    }
    char *body =
        mica_run_body_remote(&a->ask->body, &a->rung->endpoint, messages, a->ask->reply->decision.output_tokens, &length);
    mica_remote_call call = {.endpoint = &a->rung->endpoint,
                             .key = has_key ? key : NULL,
                             .idempotency_key = a->ask->key,
                             .body = body,
                             .length = length,
                             .link = link};
    if (!body || !start_curl(a->ask->runner))
        mica_try_fail(&a->t, MICA_FAILURE_NO_MEMORY, "no memory for the request");
    else
        mica_remote_run(&call, &a->t);
    free(body);
    explicit_bzero(key, sizeof key);
}

/* ---- Local ---- */

/* What the decision expects of this reply, beside the waiting: for the queue of a rung that has answered nothing yet. */
static void note_guess(const mica_attempt *a)
{
    mica_runner *r = a->ask->runner;
    const mica_ask *ask = a->ask;
    double wait = ask->rungs[a->index].wait_ms, total = ask->reply->decision.candidates[a->index].total_ms;
    pthread_mutex_lock(&r->lock);
    mica_rung_memory *m = mica_runner_memory(r, a->rung->name);
    if (m && isnan(m->guess_ms))
        m->guess_ms = total - (isnan(wait) ? 0 : wait);
    pthread_mutex_unlock(&r->lock);
}

static void run_local(mica_attempt *a, const mica_try_link *link, json_t *messages)
{
    mica_route_rung rung;
    mica_runner *r = a->ask->runner;
    const mica_run_settings *s = a->ask->settings;
    mica_error err;
    note_guess(a);
    if (mica_route_rung_get(a->ask->policy, a->index, &rung, &err)) {
        mica_try_fail(&a->t, MICA_FAILURE_ENGINE, "%s", err.message);
    } else {
        mica_local_call call = {.rung = &rung,
                                .body = &a->ask->body,
                                .messages = messages,
                                .max_tokens = a->ask->reply->decision.output_tokens,
                                .first_ms = s->first_ms,
                                .total_ms = s->total_ms,
                                .link = link};
        if (!r->engine.run || !r->engine.run(r->engine.user, &call, &a->t))
            mica_local_run(r->local, &call, &a->t);
    }
    json_decref(messages);
}

/* ---- The attempt ---- */

/* The reply is whole: what was held back goes out, unless it is not what was asked for. */
static void finish(mica_attempt *a)
{
    if (!a->t.failure && take_text(a, "", 0, true))
        mica_try_fail(&a->t, MICA_FAILURE_CANCELLED, "the reader of the reply stopped it");
    if (!a->t.failure && a->ask->check && a->rung->kind == MICA_RUNG_REMOTE)
        mica_check_reply(a->ask->check, a->ask->body.schema, a->said.data ? a->said.data : "", a->said.length, &a->t);
    if (a->t.failure)
        return;
    if (!wins(a))
        mica_try_fail(&a->t, MICA_FAILURE_LOST, "another rung was faster");
    else if (a->buffered && hand_over(a, a->said.data, a->said.length))
        mica_try_fail(&a->t, MICA_FAILURE_CANCELLED, "the reader of the reply stopped it");
}

static mica_breaker_result verdict(const mica_attempt *a)
{
    switch (a->t.failure) {
    case MICA_FAILURE_NONE:
    case MICA_FAILURE_INVALID_OUTPUT:
        return MICA_BREAKER_GOOD;
    case MICA_FAILURE_HTTP:
        if (a->t.http_status == 503 && a->t.end_ns < a->ask->loading_ns)
            return MICA_BREAKER_NEITHER; /* it is waited for */
        return a->t.http_status >= 500 ? MICA_BREAKER_BAD : MICA_BREAKER_NEITHER;
    case MICA_FAILURE_TIMEOUT: /* the request's own limit says nothing of the rung */
        return a->t.end_ns >= a->ask->deadline_ns ? MICA_BREAKER_NEITHER : MICA_BREAKER_BAD;
    case MICA_FAILURE_NO_CONNECTION:
    case MICA_FAILURE_BAD_TLS:
    case MICA_FAILURE_CUT:
    case MICA_FAILURE_GARBAGE:
    case MICA_FAILURE_TOO_LONG:
    case MICA_FAILURE_SERVER:
    case MICA_FAILURE_NO_MODEL:
        return MICA_BREAKER_BAD;
    default:
        return MICA_BREAKER_NEITHER;
    }
}

static void mean(double *of, double value)
{
    *of = *of > 0 ? 0.7 * *of + 0.3 * value : value;
}

/* How hot the device is for a local rung, and how long a reply keeps it busy. */
static void learn_local(const mica_attempt *a, mica_rung_memory *m, int64_t now)
{
    if (a->t.failure == MICA_FAILURE_HOT || a->t.lower_rung)
        m->hot_until_ns = now + a->ask->settings->hot_ms * 1000000;
    else if (!a->t.failure)
        m->hot_until_ns = 0;
    if (!a->t.failure && a->t.work_ns && a->t.end_ns > a->t.work_ns)
        mean(&m->busy_ms, (double)(a->t.end_ns - a->t.work_ns) / 1e6);
}

static void learn(mica_attempt *a)
{
    mica_runner *r = a->ask->runner;
    const mica_run_settings *s = a->ask->settings;
    int64_t now = mica_now_ns(), ms = 1000000;
    pthread_mutex_lock(&r->lock);
    mica_rung_memory *m = mica_runner_memory(r, a->rung->name);
    if (m) {
        mica_breaker_end(&m->breaker, verdict(a), (int32_t)s->breaker_failures, s->breaker_open_ms * ms, now);
        if (a->t.failure == MICA_FAILURE_HTTP && a->t.retry_after_ms > s->retry_after_max_ms)
            mica_breaker_wait(&m->breaker, now + a->t.retry_after_ms * ms);
        *(a->t.failure ? &m->failed : &m->answered) += 1;
        if (a->t.failure == MICA_FAILURE_NO_CONNECTION || a->t.may_have_arrived)
            m->unreached = !a->t.may_have_arrived;
        if (a->t.output_tokens > 0)
            m->output_tokens += (uint64_t)a->t.output_tokens;
        if (a->t.decode_tps > 0)
            mean(&m->decode_tps, a->t.decode_tps);
        if (a->rung->kind == MICA_RUNG_LOCAL)
            learn_local(a, m, now);
        snprintf(m->file, sizeof m->file, "%s", a->rung->file);
    }
    pthread_mutex_unlock(&r->lock);
}

void mica_attempt_run(mica_attempt *a, mica_ask *ask, int32_t index, bool hedge)
{
    const char *before = ask->reply->decision.degraded ? ask->policy->degraded_prompt : "";
    *a = (mica_attempt){.ask = ask, .index = index, .rung = &ask->policy->ladder->rungs[index], .hedge = hedge};
    bool remote = a->rung->kind == MICA_RUNG_REMOTE;
    a->buffered = ask->settings->buffer || (remote && ask->check);
    mica_try_init(&a->t);
    mica_buf_init(&a->said, 2 * MICA_RUN_REPLY_MAX);
    json_t *messages = mica_run_body_messages(&ask->body, before);
    mica_try_link link = {.deadline_ns = ask->deadline_ns, .stop = should_stop, .on_text = on_text, .user = a};
    if (remote)
        snprintf(a->t.model, sizeof a->t.model, "%s", a->rung->endpoint.model);
    if (!messages)
        mica_try_fail(&a->t, MICA_FAILURE_NO_MEMORY, "no memory for the request");
    else if (remote)
        run_remote(a, &link, messages);
    else
        run_local(a, &link, messages);
    finish(a);
    const mica_attempt *winner = atomic_load(&ask->winner);
    if (a->t.failure == MICA_FAILURE_CANCELLED && winner && winner != a)
        a->t.failure = MICA_FAILURE_LOST;
    if (!a->t.end_ns)
        a->t.end_ns = mica_now_ns();
    learn(a);
}
