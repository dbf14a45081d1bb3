/* thread_plan.c - how many threads, and on which CPUs. Pure rules over what cpus.c found; docs/threads.md explains them. */
#include "base/error.h"
#include "device/cpus.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cores that are at least this fast, in percent of the fastest, join the team. All threads get equal shares of the work, so the
 * slowest sets the pace: below one half, a slow core costs the team more than it brings. Frequencies hide that slow designs
 * also do less in each cycle (1.8 beside 2.2 GHz is a small beside a big core), so there a small difference must do; the
 * favourite cores of a uniform desktop part stay within 10 % of the others. */
enum { FAST_PERCENT = 50, FAST_PERCENT_BY_FREQUENCY = 90 };

static void say(mica_thread_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Adds one part to the reason. */
static void say(mica_thread_plan *plan, const char *format, ...)
{
    size_t used = strlen(plan->reason);
    va_list args;
    va_start(args, format);
    if (used > 0)
        used += (size_t)snprintf(plan->reason + used, sizeof plan->reason - used, "; ");
    if (used < sizeof plan->reason)
        vsnprintf(plan->reason + used, sizeof plan->reason - used, format, args);
    va_end(args);
}

static int by_speed(const void *a, const void *b)
{
    const mica_cpu *x = a, *y = b;
    if (x->capacity != y->capacity)
        return x->capacity > y->capacity ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_core(const void *a, const void *b)
{
    const mica_cpu *x = a, *y = b;
    return x->core != y->core ? (x->core < y->core ? -1 : 1) : by_speed(a, b);
}

void mica_cores_find(const mica_cpu_set *set, mica_core_list *cores)
{
    cores->n = cores->n_fast = 0;
    memcpy(cores->core, set->cpu, (size_t)set->n * sizeof *set->cpu);
    qsort(cores->core, (size_t)set->n, sizeof *cores->core, by_core);
    for (int i = 0; i < set->n; i++)
        if (i == 0 || cores->core[i].core != cores->core[cores->n - 1].core)
            cores->core[cores->n++] = cores->core[i];
    qsort(cores->core, (size_t)cores->n, sizeof *cores->core, by_speed);
    int percent = set->from_frequency ? FAST_PERCENT_BY_FREQUENCY : FAST_PERCENT;
    while (cores->n_fast < cores->n && cores->core[cores->n_fast].capacity * 100 >= cores->core[0].capacity * percent)
        cores->n_fast++;
}

/** Cores that may run at the same time under the quota. It rounds down: a thread too many is stopped for the rest of every
 * period, and all others wait for it. */
static int limit_by_quota(const mica_cpu_set *set, int n, mica_thread_plan *plan)
{
    if (set->quota <= 0 || set->quota >= n)
        return n;
    const char *slash = strrchr(set->quota_source, '/');
    say(plan, "%.40s allows %.3g of %d CPUs", slash ? slash + 1 : set->quota_source, set->quota, set->n);
    return set->quota < 1 ? 1 : (int)set->quota;
}

/** Takes `n` cores for the plan. `pin`: the threads must stay on them. */
static void take_cores(const mica_core_list *cores, int n, bool pin, mica_thread_plan *plan)
{
    if (n > MICA_MAX_THREADS) {
        n = MICA_MAX_THREADS;
        say(plan, "at most %d threads", MICA_MAX_THREADS);
    }
    plan->n_threads = n;
    for (int i = 0; i < n; i++)
        plan->cpus[i] = pin ? cores->core[i].id : -1;
}

static int smaller(int a, int b) { return a < b ? a : b; }

static void plan_from(const mica_cpu_set *set, bool half, mica_thread_plan *plan)
{
    mica_core_list cores;
    mica_cores_find(set, &cores);
    if (cores.n == 0) {
        say(plan, "no usable CPU found under /proc and /sys");
        plan->n_threads = 1;
        return;
    }
    if (set->n < set->n_online)
        say(plan, "affinity and cpuset allow %d of %d CPUs", set->n, set->n_online);
    if (cores.n < set->n)
        say(plan, "%d CPUs share %d cores", set->n, cores.n);
    int n = limit_by_quota(set, cores.n, plan);
    if (half) {
        say(plan, "half of %d core%s", n, n == 1 ? "" : "s");
        n = (n + 1) / 2;
    }
    if (cores.n_fast < n)
        say(plan, "%d of %d cores are fast", cores.n_fast, cores.n);
    /* By default threads are tied to CPUs only to keep them off slow cores. Elsewhere the scheduler places them better: two
     * programs that each take "the first half" would share it and leave the other half idle. */
    take_cores(&cores, smaller(n, cores.n_fast), !half || cores.n_fast < cores.n, plan);
    if (!plan->reason[0])
        say(plan, "all %d CPUs", set->n);
}

static mica_status make_plan(const char *sysroot, bool half, mica_thread_plan *plan, mica_error *err)
{
    mica_cpu_set set;
    mica_status status = mica_cpus_read(sysroot, &set, err);
    if (status != MICA_OK)
        return status;
    memset(plan, 0, sizeof *plan);
    for (int i = 0; i < MICA_MAX_THREADS; i++)
        plan->cpus[i] = -1;
    plan_from(&set, half, plan);
    return MICA_OK;
}

mica_status mica_thread_plan_default(const char *sysroot, mica_thread_plan *plan, mica_error *err)
{
    return make_plan(sysroot, true, plan, err);
}

mica_status mica_thread_plan_all(const char *sysroot, mica_thread_plan *plan, mica_error *err)
{
    return make_plan(sysroot, false, plan, err);
}
