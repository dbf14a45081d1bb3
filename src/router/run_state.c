/* run_state.c - what the runner knows of device and rungs, as a decision wants it. */
#include <math.h>
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

static void rung_state(mica_runner *r, const mica_rung *rung, mica_route_rung_state *out)
{
    char path[4096];
    *out = mica_route_rung_state_default(rung->name);
    if (rung->kind == MICA_RUNG_LOCAL) {
        bool there = mica_local_path(r->local, rung->file, path) && access(path, R_OK) == 0;
        out->file = there ? MICA_YES : MICA_NO;
        out->resident = mica_local_is_resident(r->local, rung->file) ? MICA_YES : MICA_NO;
    }
    pthread_mutex_lock(&r->lock);
    mica_rung_memory *m = mica_runner_memory(r, rung->name);
    if (m) {
        look_up(r, m, out->file == MICA_YES ? path : NULL);
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
        rung_state(r, &ladder->rungs[i], &ask->rungs[i]);
    ask->state.rungs = ask->rungs;
    ask->state.n_rungs = (size_t)ladder->n;
}
