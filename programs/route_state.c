#include "route_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "route.h"
#include "router/speeds.h"
#include "share.h"

enum { MAX_PATH = 4096 };

/* Where a rung's model is: --models DIR, else where scripts/fetch-models puts it. */
static bool model_path(const mica_opts *o, const char *file, char path[MAX_PATH])
{
    if (*file == '/' || o->worker_models)
        return snprintf(path, MAX_PATH, "%s%s%s", *file == '/' ? "" : o->worker_models, *file == '/' ? "" : "/",
                        file) < MAX_PATH;
    return mica_load_fetched(file, path) == CODE_OK;
}

/* What a rung would take here. */
static void weigh_rung(const mica_local *local, const mica_route_rung *rung, const char *path, char refusal[MICA_REFUSAL_MAX],
                       mica_route_rung_state *out)
{
    mica_rung_weight weight;
    mica_local_weigh(local, path, rung->context, &weight);
    out->memory_bytes = weight.peak_bytes;
    out->free_bytes = weight.free_bytes;
    memcpy(refusal, weight.refusal, MICA_REFUSAL_MAX);
    out->refusal = refusal;
}

static void read_rung(const mica_opts *o, const mica_local *local, const mica_route_rung *rung, const char *figures,
                      char refusal[MICA_REFUSAL_MAX], mica_route_rung_state *out)
{
    char path[MAX_PATH];
    *out = mica_route_rung_state_default(rung->name);
    if (rung->remote)
        return;
    out->file = model_path(o, rung->file, path) && access(path, R_OK) == 0 ? MICA_YES : MICA_NO;
    out->resident = MICA_NO; /* nothing is loaded in a program that only decides */
    if (out->file == MICA_YES)
        weigh_rung(local, rung, path, refusal, out);
    if (out->file == MICA_YES && figures)
        mica_route_speeds(figures, path, o->sysroot, out);
}

static int read_device(const mica_opts *o, mica_route_device *out)
{
    mica_device_options options = mica_device_options_default();
    mica_device *device;
    mica_device_state reading;
    mica_error err;
    options.sysroot = o->sysroot;
    mica_status status = mica_device_open(&options, &device, &err);
    if (status)
        return mica_load_failed(&err);
    status = mica_device_read(device, &reading, &err);
    mica_device_close(device);
    if (status)
        return mica_load_failed(&err);
    mica_route_device_of(&reading, out);
    return CODE_OK;
}

static int open_local(const mica_opts *o, mica_local **local)
{
    int64_t budget;
    mica_error err;
    *local = NULL;
    int code = mica_load_part(o->memory_budget, "memory-budget", &budget);
    if (code == CODE_OK && mica_local_new(NULL, o->sysroot, budget, (int32_t)o->threads, local, &err))
        code = mica_load_failed(&err);
    return code;
}

static int read_rungs(const mica_opts *o, const mica_route_policy *policy, const mica_local *local, mica_routing_state *out)
{
    char store[MAX_PATH];
    mica_route_policy_info info;
    mica_error err;
    const char *figures = mica_share_place(0, "device.json", store) ? store : NULL;
    mica_route_policy_get_info(policy, &info);
    for (int32_t i = 0; i < info.n_rungs; i++) {
        mica_route_rung rung;
        if (mica_route_rung_get(policy, i, &rung, &err))
            return mica_load_failed(&err);
        read_rung(o, local, &rung, figures, out->refusals[i], &out->rungs[i]);
    }
    out->state.rungs = out->rungs;
    out->state.n_rungs = (size_t)info.n_rungs;
    return CODE_OK;
}

static int read_here(const mica_opts *o, const mica_route_policy *policy, mica_routing_state *out)
{
    struct timespec now;
    mica_local *local;
    int code = read_device(o, &out->state.device);
    if (code != CODE_OK)
        return code;
    clock_gettime(CLOCK_REALTIME, &now);
    out->state.time_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    out->state.network = mica_routing_network(o);
    out->state.metered = o->metered ? MICA_YES : MICA_UNKNOWN;
    code = open_local(o, &local);
    if (code == CODE_OK)
        code = read_rungs(o, policy, local, out);
    mica_local_free(local);
    return code;
}

int mica_routing_state_read(const mica_opts *o, const mica_route_policy *policy, mica_routing_state *out)
{
    char *text;
    size_t length;
    mica_error err;
    out->state = mica_route_state_default();
    out->file = NULL;
    if (!o->route_state)
        return read_here(o, policy, out);
    int code = mica_load_file(o->route_state, &text, &length);
    if (code != CODE_OK)
        return code;
    mica_status status = mica_route_state_parse(text, length, &out->file, &err);
    free(text);
    if (status)
        return mica_load_failed(&err);
    out->state = *mica_route_state_of(out->file);
    return CODE_OK;
}

void mica_routing_state_free(mica_routing_state *state) { mica_route_state_free(state->file); }
