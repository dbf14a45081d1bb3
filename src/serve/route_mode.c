#include "serve/route_mode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"

#define N_WORKERS 8  /* requests that are carried out at the same time; most of them wait for a server */
#define DRAIN_S   30 /* how often what waits for the network is tried */

typedef struct header {
    struct header *next;
    char line[MICA_ROUTE_NAME_MAX + 24];
} header;

struct mica_route_mode {
    mica_server *server;
    pthread_t workers[N_WORKERS], drainer;
    int n_workers;
    bool drains, holds, drain_now; /* the last two: with the lock held */
    atomic_bool stopping;
    pthread_mutex_t lock;
    pthread_cond_t news;
    mica_job *first, *last; /* with the lock held, as all below */
    header *headers;
};

bool mica_route_mode_stops(const mica_route_mode *m)
{
    return atomic_load(&m->stopping);
}

/* ---- Threads ---- */

static mica_job *take(mica_route_mode *m)
{
    mica_job *job = m->first;
    if (job) {
        m->first = job->next;
        m->last = m->first ? m->last : NULL;
    }
    return job;
}

static void *work(void *user)
{
    mica_route_mode *m = user;
    pthread_mutex_lock(&m->lock);
    while (!atomic_load(&m->stopping)) {
        mica_job *job = take(m);
        if (!job) {
            pthread_cond_wait(&m->news, &m->lock);
            continue;
        }
        pthread_mutex_unlock(&m->lock);
        mica_route_mode_answer(m, m->server, job);
        mica_job_release(job);
        pthread_mutex_lock(&m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

static void drain_once(mica_route_mode *m)
{
    const mica_server_options *o = &m->server->options;
    int64_t n_done, n_left;
    mica_error err;
    mica_status status = mica_runner_drain(o->runner, o->network, &n_done, &n_left, &err);
    if (status && status != MICA_CANCELLED)
        mica_server_log(m->server, "the queue is not drained: %s", err.message);
    else if (!status && n_done > 0)
        mica_server_log(m->server, "the queue: %lld answered, %lld waiting", (long long)n_done, (long long)n_left);
}

static void *drain(void *user)
{
    mica_route_mode *m = user;
    pthread_mutex_lock(&m->lock);
    while (!atomic_load(&m->stopping)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += DRAIN_S;
        pthread_mutex_unlock(&m->lock);
        drain_once(m);
        pthread_mutex_lock(&m->lock);
        while (!atomic_load(&m->stopping) && !m->drain_now && pthread_cond_timedwait(&m->news, &m->lock, &until) == 0) {
        }
        m->drain_now = false;
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

mica_status mica_route_mode_new(mica_server *s, mica_route_mode **out, mica_error *err)
{
    pthread_condattr_t attributes;
    mica_run_engine engine;
    mica_route_mode *m = mica_new_array(1, sizeof *m);
    *out = NULL;
    if (!m)
        return mica_fail_nomem(err, sizeof *m, "the router's threads");
    m->server = s;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&m->news, &attributes);
    pthread_condattr_destroy(&attributes);
    mica_status status = mica_route_mode_engine(s, &engine, err);
    if (!status)
        mica_runner_set_engine(s->options.runner, &engine);
    while (m->n_workers < N_WORKERS && pthread_create(&m->workers[m->n_workers], NULL, work, m) == 0)
        m->n_workers++;
    m->drains = m->n_workers == N_WORKERS && s->options.drain && pthread_create(&m->drainer, NULL, drain, m) == 0;
    if (!status && (m->n_workers < N_WORKERS || m->drains != s->options.drain))
        status = mica_fail(err, MICA_OUT_OF_MEMORY, "the system refuses another thread");
    if (status)
        mica_route_mode_free(m);
    else
        *out = m;
    return status;
}

void mica_route_mode_free(mica_route_mode *m)
{
    mica_fault fault;
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    atomic_store(&m->stopping, true);
    pthread_cond_broadcast(&m->news);
    pthread_mutex_unlock(&m->lock);
    for (int i = 0; i < m->n_workers; i++)
        pthread_join(m->workers[i], NULL);
    if (m->drains)
        pthread_join(m->drainer, NULL);
    mica_fault_set(&fault, 503, "shutting_down", NULL, "the server is shutting down");
    for (mica_job *job; (job = take(m)); mica_job_release(job))
        mica_job_fail(job, &fault);
    for (header *h = m->headers, *next; h; h = next) {
        next = h->next;
        free(h);
    }
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->news);
    free(m);
}

/* ---- Requests ---- */

bool mica_route_mode_take(mica_route_mode *m, mica_job *job)
{
    json_t *body = mica_json_loadb(job->body, job->length, JSON_REJECT_DUPLICATES, NULL);
    const char *model = json_string_value(json_object_get(body, "model"));
    bool served = body && model && strcmp(model, m->server->context.name) == 0;
    json_decref(body);
    if (!body || served)
        return false; /* what cannot be read is told by who reads it anyway */
    pthread_mutex_lock(&m->lock);
    job->next = NULL;
    mica_job_retain(job);
    if (m->last)
        m->last->next = job;
    else
        m->first = job;
    m->last = job;
    pthread_cond_broadcast(&m->news); /* the drainer waits for it, too */
    pthread_mutex_unlock(&m->lock);
    return true;
}

void mica_route_mode_held(mica_route_mode *m)
{
    pthread_mutex_lock(&m->lock);
    m->holds = true;
    pthread_mutex_unlock(&m->lock);
}

void mica_route_mode_reached(mica_route_mode *m)
{
    pthread_mutex_lock(&m->lock);
    m->drain_now = m->holds;
    m->holds = false;
    if (m->drain_now)
        pthread_cond_broadcast(&m->news);
    pthread_mutex_unlock(&m->lock);
}

void mica_route_mode_reload(mica_route_mode *m)
{
    mica_error err;
    if (mica_router_reload(m->server->options.router, &err))
        mica_server_log(m->server, "the policy stays as it was: %s", err.message);
    else
        mica_server_log(m->server, "the policy was reloaded");
}

/* ---- What is shown ---- */

const char *mica_route_mode_header(mica_route_mode *m, const char *rung)
{
    char line[sizeof m->headers->line];
    snprintf(line, sizeof line, "x-mica-rung: %s\r\n", rung);
    pthread_mutex_lock(&m->lock);
    header *h = m->headers;
    while (h && strcmp(h->line, line) != 0)
        h = h->next;
    if (!h && (h = mica_new_array(1, sizeof *h))) {
        memcpy(h->line, line, sizeof line);
        h->next = m->headers;
        m->headers = h;
    }
    pthread_mutex_unlock(&m->lock);
    return h ? h->line : NULL;
}

void mica_route_mode_metrics(const mica_route_mode *m, mica_buf *out)
{
    mica_runner *runner = m->server->options.runner;
    mica_runner_rung rung;
    mica_buf_puts(
        out,
        "# HELP mica_rung_attempts_total Attempts at a rung, by how they ended.\n# TYPE mica_rung_attempts_total counter\n");
    for (size_t i = 0; mica_runner_rung_at(runner, i, &rung); i++)
        mica_buf_printf(out,
                        "mica_rung_attempts_total{rung=\"%s\",result=\"answered\"} %llu\n"
                        "mica_rung_attempts_total{rung=\"%s\",result=\"failed\"} %llu\n",
                        rung.name, (unsigned long long)rung.answered, rung.name, (unsigned long long)rung.failed);
    mica_buf_puts(out, "# HELP mica_rung_tokens_total Tokens of a rung's replies.\n# TYPE mica_rung_tokens_total counter\n");
    for (size_t i = 0; mica_runner_rung_at(runner, i, &rung); i++)
        mica_buf_printf(out, "mica_rung_tokens_total{rung=\"%s\"} %llu\n", rung.name, (unsigned long long)rung.output_tokens);
    mica_buf_puts(
        out, "# HELP mica_rung_open 1: the rung failed too often and is left alone for now.\n# TYPE mica_rung_open gauge\n");
    for (size_t i = 0; mica_runner_rung_at(runner, i, &rung); i++)
        mica_buf_printf(out, "mica_rung_open{rung=\"%s\"} %d\n", rung.name, rung.open);
}

static json_t *model_json(const mica_route_mode *m, const char *name)
{
    return json_pack("{s:s, s:s, s:I, s:s}", "id", name, "object", "model", "created", (json_int_t)m->server->context.created,
                     "owned_by", "mica");
}

void mica_route_mode_models(const mica_route_mode *m, json_t *list)
{
    mica_route_policy *policy = mica_router_policy(m->server->options.router);
    mica_route_policy_info info;
    mica_route_rung rung;
    mica_route_policy_get_info(policy, &info);
    json_array_append_new(list, model_json(m, "auto"));
    for (int32_t i = 0; i < info.n_rungs; i++)
        if (mica_route_rung_get(policy, i, &rung, NULL) == MICA_OK && strcmp(rung.name, m->server->context.name) != 0)
            json_array_append_new(list, model_json(m, rung.name));
    mica_route_policy_release(policy);
}
