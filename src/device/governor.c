/* governor.c - the governor as an object: the machine's cores and state around the rules of control.c. */
#include "device/governor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "device/cpus.h"

struct mica_governor {
    mica_control control;
    mica_governor_options options; /* policy and sysroot are not kept */
    mica_governor_output decided, next;
    mica_device *device;
    bool pinned;                    /* the machine has efficient cores: threads must stay where they are meant to be */
    int32_t cpus[MICA_MAX_THREADS]; /* the fast ones, then the efficient ones */
    int32_t n_fast, n_slow;
    int64_t start_ns, due_ns, period_ns;
    /* since the last decision */
    int64_t busy_ns, tokens, steps;
    int32_t width; /* replies in a step; -1: it changed */
    int32_t last_width;
    double energy_j; /* at the last reading; NAN */
    int64_t energy_ns;
    int32_t energy_epoch;
    bool device_failed;
};

mica_governor_options mica_governor_options_default(void)
{
    return (mica_governor_options){.struct_size = sizeof(mica_governor_options), .objective = MICA_OBJECTIVE_SUSTAINED};
}

/* ---- making ---- */

/* Efficient cores count only where nothing limits the number of threads: a quota is used best by the fast ones. */
static mica_status find_cores(mica_governor *g, const char *sysroot, mica_error *err)
{
    struct scratch {
        mica_cpu_set set;
        mica_core_list cores;
    } *s = mica_new_array(1, sizeof *s);
    mica_thread_plan all;
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "the list of cores");
    mica_status status = mica_thread_plan_all(sysroot, &all, err);
    if (!status)
        status = mica_cpus_read(sysroot, &s->set, err);
    if (!status) {
        mica_cores_find(&s->set, &s->cores);
        g->n_fast = all.n_threads;
        for (int i = 0; i < all.n_threads; i++)
            g->cpus[i] = all.cpus[i];
        if (all.n_threads == s->cores.n_fast)
            for (int i = s->cores.n_fast; i < s->cores.n && g->n_fast + g->n_slow < MICA_MAX_THREADS; i++)
                g->cpus[g->n_fast + g->n_slow++] = s->cores.core[i].id;
        g->pinned = g->n_slow > 0;
    }
    free(s);
    return status;
}

static mica_status make(mica_governor *g, const mica_governor_options *o, mica_error *err)
{
    mica_policy policy;
    if ((int)o->objective < MICA_OBJECTIVE_OFF || o->objective > MICA_OBJECTIVE_EFFICIENT)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the objective is %d; it must be one of mica_objective",
                         (int)o->objective);
    if (o->n_threads < 0 || o->n_threads > MICA_MAX_THREADS || o->max_threads < 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the governor's threads (%d, at most %d) must be between 0 and %d",
                         o->n_threads, o->max_threads, MICA_MAX_THREADS);
    mica_policy_init(&policy, o->objective);
    mica_status status = o->policy ? mica_policy_parse(&policy, o->policy, o->policy_length, err) : MICA_OK;
    if (!status)
        status = find_cores(g, o->sysroot, err);
    if (status)
        return status;
    if (o->max_threads > 0 && g->n_fast >= o->max_threads) {
        g->n_fast = o->max_threads;
        g->n_slow = 0;
    }
    g->options = *o;
    g->options.policy = g->options.sysroot = NULL;
    g->device = o->device;
    g->start_ns = mica_now_ns();
    g->period_ns = (int64_t)(policy.period_s * 1e9);
    g->energy_j = NAN;
    g->last_width = 1;
    mica_control_init(&g->control, &policy, g->n_fast, g->n_slow, o->n_threads);
    mica_governor_note(g, g->start_ns, 0, 0);
    return MICA_OK;
}

mica_status mica_governor_new(const mica_governor_options *options, mica_governor **out, mica_error *err)
{
    mica_governor_options o = options ? *options : mica_governor_options_default();
    *out = NULL;
    if (o.struct_size != sizeof o)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "mica_governor_options.struct_size is %zu, not %zu: use mica_governor_options_default()",
                         o.struct_size, sizeof o);
    mica_governor *g = mica_new_array(1, sizeof *g);
    if (!g)
        return mica_fail_nomem(err, sizeof *g, "the governor");
    mica_status status = make(g, &o, err);
    if (status)
        free(g);
    else
        *out = g;
    return status;
}

void mica_governor_free(mica_governor *g)
{
    free(g);
}

/* ---- deciding ---- */

/* Watts since the last reading, from what counts joules, else what flows out of the battery. */
static double power_of(mica_governor *g, const mica_device_state *s)
{
    double power = s->battery_w;
    bool counted = !isnan(s->energy_j) && s->energy_epoch == g->energy_epoch && s->time_ns > g->energy_ns;
    if (counted && !isnan(g->energy_j))
        power = (s->energy_j - g->energy_j) / ((double)(s->time_ns - g->energy_ns) * 1e-9);
    g->energy_j = s->energy_j;
    g->energy_ns = s->time_ns;
    g->energy_epoch = s->energy_epoch;
    return power;
}

static double celsius(int32_t thousandths)
{
    return thousandths == MICA_UNKNOWN_MC ? NAN : thousandths / 1000.0;
}

/* The limit of a case (a phone) is enforced in a step that lasts; a chip's own limit, by the clocks, as finely as needed. */
static void read_device(mica_governor *g, mica_control_input *in)
{
    mica_device_state s;
    if (!g->device || (g->device_failed = mica_device_read(g->device, &s, NULL) != MICA_OK))
        return;
    in->skin_c = celsius(s.temp_skin_mc);
    in->headroom = s.headroom;
    in->hard_limit = s.temp_skin_mc != MICA_UNKNOWN_MC || (s.reported_ns > 0 && s.thermal >= MICA_THERMAL_NONE);
    in->clock_limit = s.clock_limit;
    in->cooling = s.cooling > 0 || (s.throttle & (MICA_THROTTLE_COOLING | MICA_THROTTLE_COUNTER | MICA_THROTTLE_REPORTED));
    in->status = s.thermal;
    in->power_w = power_of(g, &s);
    in->battery = s.battery_level;
    in->on_battery = s.battery == MICA_BATTERY_DISCHARGING && s.on_mains != MICA_YES;
    in->power_save = s.power_save == MICA_YES;
}

static void decide(mica_governor *g, int64_t now_ns)
{
    mica_control_input in = {.now_s = (double)(now_ns - g->start_ns) * 1e-9,
                             .tokens = (double)g->tokens,
                             .steps = (double)g->steps,
                             .busy_s = (double)g->busy_ns * 1e-9,
                             .same_work = g->width == g->last_width,
                             .skin_c = NAN,
                             .headroom = NAN,
                             .clock_limit = NAN,
                             .status = MICA_THERMAL_UNKNOWN,
                             .power_w = NAN,
                             .battery = NAN};
    read_device(g, &in);
    mica_control_step(&g->control, &in, &g->decided);
    if (g->width > 0)
        g->last_width = g->width;
    g->busy_ns = g->tokens = g->steps = g->width = 0;
    g->due_ns = now_ns + g->period_ns;
}

void mica_governor_note(mica_governor *g, int64_t now_ns, int32_t n, int64_t busy_ns)
{
    if (n > 0) {
        g->width = g->width == 0 || g->width == n ? n : -1;
        g->tokens += n;
        g->steps++;
        g->busy_ns += busy_ns;
    }
    if (now_ns >= g->due_ns)
        decide(g, now_ns);
}

const mica_governor_output *mica_governor_next(mica_governor *g)
{
    g->next = g->decided;
    if (g->options.on_output)
        g->options.on_output(g->options.user, &g->next);
    return &g->next;
}

void mica_governor_cpus(const mica_governor *g, const mica_governor_output *out, int32_t cpus[MICA_MAX_THREADS])
{
    for (int32_t i = 0; i < MICA_MAX_THREADS; i++)
        cpus[i] = -1;
    if (!g->pinned)
        return;
    for (int32_t i = 0; i < out->n_fast && i < g->n_fast; i++)
        cpus[i] = g->cpus[i];
    for (int32_t i = 0; i < out->n_slow && i < g->n_slow && out->n_fast + i < MICA_MAX_THREADS; i++)
        cpus[out->n_fast + i] = g->cpus[g->n_fast + i];
}

int32_t mica_governor_levels(const mica_governor *g, const mica_level **levels)
{
    *levels = g->control.levels;
    return g->control.n_levels;
}

void mica_governor_get_info(const mica_governor *g, mica_governor_info *info)
{
    const mica_control *c = &g->control;
    *info = (mica_governor_info){.objective = c->objective,
                                 .output = g->next,
                                 .changes = c->changes,
                                 .rate_tps = c->last_rate > 0        ? c->last_rate
                                             : c->rate[c->level] > 0 ? c->rate[c->level]
                                                                     : NAN,
                                 .margin_c = c->margin,
                                 .throttled = c->throttled,
                                 .reason = c->reason,
                                 .policy = c->policy.name};
}
