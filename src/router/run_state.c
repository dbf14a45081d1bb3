/* run_state.c - what the runner knows of device and rungs, as a decision wants it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "router/run_impl.h"
#include "router/speeds.h"

/* Once for a rung: the file changes when somebody measures, not while requests come. */
static void look_up(mica_runner *r, mica_rung_memory *m, const char *model_path)
{
    if (m->looked_up)
        return;
    m->kept = mica_route_rung_state_default(m->name);
    m->looked_up = true;
    if (model_path && r->options.figures)
        mica_route_speeds(r->options.figures, model_path, r->options.sysroot, &m->kept);
}

/* ---- Memory ---- */

static bool is_weighed(const mica_rung_memory *m, const mica_rung *rung)
{
    return m && m->weighed_context == rung->context && strcmp(m->weighed, rung->file) == 0;
}

/* Reads the file's tables when a rung is met, and with the lock open. */
static void weigh(mica_runner *r, const mica_rung *rung, const char *path, mica_rung_weight *out)
{
    pthread_mutex_lock(&r->lock);
    mica_rung_memory *m = mica_runner_memory(r, rung->name);
    bool known = is_weighed(m, rung);
    if (known)
        *out = m->weight;
    pthread_mutex_unlock(&r->lock);
    if (known)
        return;
    mica_local_weigh(r->local, path, rung->context, out);
    pthread_mutex_lock(&r->lock);
    m = mica_runner_memory(r, rung->name);
    if (m) {
        m->weight = *out;
        m->weighed_context = rung->context;
        snprintf(m->weighed, sizeof m->weighed, "%s", rung->file);
    }
    pthread_mutex_unlock(&r->lock);
}

/* ---- Waiting ---- */

/* Until those that were there before are done, at the pace of the rung's replies so far. */
static void wait_for_own(mica_runner *r, const mica_rung *rung, const char *path, double busy_ms, mica_route_rung_state *out)
{
    int64_t n;
    double ran_ms;
    mica_local_queue(r->local, path, rung->context, &n, &ran_ms);
    if (n > 0)
        out->wait_ms = fmax(0, (double)n * busy_ms - fmin(ran_ms, busy_ms));
}

/* A new one waits for as many ends as there are before it, and ends come as often as there are slots. */
static void wait_for_engine(const mica_engine_load *load, double busy_ms, mica_route_rung_state *out)
{
    if (load->n_slots > 0 && load->n_running + load->n_waiting >= load->n_slots)
        out->wait_ms = (double)(load->n_waiting + 1) * busy_ms / (double)load->n_slots;
}

/* ---- The whole ---- */

static void local_state(mica_runner *r, const mica_rung *rung, char refusal[MICA_REFUSAL_MAX], mica_route_rung_state *out)
{
    char path[4096];
    mica_rung_weight weight = {.peak_bytes = -1, .free_bytes = -1};
    mica_engine_load engine;
    bool there = mica_local_path(r->local, rung->file, path) && access(path, R_OK) == 0;
    bool served = there && r->engine.load && r->engine.load(r->engine.user, path, &engine);
    out->file = there ? MICA_YES : MICA_NO;
    out->resident = served || mica_local_is_resident(r->local, rung->file) ? MICA_YES : MICA_NO;
    if (served)
        weight.free_bytes = 0; /* it is not unloaded for another */
    else if (there)
        weigh(r, rung, path, &weight);
    out->memory_bytes = weight.peak_bytes;
    out->free_bytes = weight.free_bytes;
    memcpy(refusal, weight.refusal, MICA_REFUSAL_MAX);
    out->refusal = refusal;
    pthread_mutex_lock(&r->lock);
    mica_rung_memory *m = mica_runner_memory(r, rung->name);
    double busy_ms = !m ? NAN : m->busy_ms > 0 ? m->busy_ms : m->guess_ms;
    if (m)
        look_up(r, m, there ? path : NULL);
    if (m && m->hot_until_ns > mica_now_ns())
        out->hot = MICA_YES;
    pthread_mutex_unlock(&r->lock);
    if (served)
        wait_for_engine(&engine, busy_ms, out);
    else if (there)
        wait_for_own(r, rung, path, busy_ms, out);
}

static void rung_state(mica_runner *r, const mica_rung *rung, char refusal[MICA_REFUSAL_MAX], mica_route_rung_state *out)
{
    *out = mica_route_rung_state_default(rung->name);
    if (rung->kind == MICA_RUNG_LOCAL)
        local_state(r, rung, refusal, out);
    pthread_mutex_lock(&r->lock);
    mica_rung_memory *m = mica_runner_memory(r, rung->name);
    if (m) {
        look_up(r, m, NULL);
        out->healthy = mica_breaker_is_open(&m->breaker, mica_now_ns()) ? MICA_NO : MICA_UNKNOWN;
        out->prefill_tps = m->kept.prefill_tps;
        out->watts = m->kept.watts;
        out->decode_tps = m->decode_tps > 0 ? m->decode_tps : m->kept.decode_tps;
    }
    pthread_mutex_unlock(&r->lock);
}

void mica_ask_state(mica_ask *ask)
{
    mica_runner *r = ask->runner;
    const mica_ladder *ladder = ask->policy->ladder;
    mica_device_state device;
    struct timespec now;
    ask->state = mica_route_state_default();
    clock_gettime(CLOCK_REALTIME, &now);
    ask->state.time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    ask->state.network = ask->request->network;
    ask->state.metered = ask->request->metered;
    if (mica_device_read(r->device, &device, NULL) == MICA_OK)
        mica_route_device_of(&device, &ask->state.device);
    for (int32_t i = 0; i < ladder->n; i++)
        rung_state(r, &ladder->rungs[i], ask->refusals[i], &ask->rungs[i]);
    ask->state.rungs = ask->rungs;
    ask->state.n_rungs = (size_t)ladder->n;
}
