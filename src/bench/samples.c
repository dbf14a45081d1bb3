#include "bench/samples.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench/procmem.h"
#include "bench/sensors.h"

struct mica_sampler_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending;
    const char *sysroot;
    int64_t pid, interval_ns;
    json_t *samples; /* under the lock */
    /* of the sample before; -1: unknown. Only the thread uses them */
    int64_t before_ns, busy, process, own;
    long ticks_per_s;
    mica_sensors sensors;
};

/* ---- One sample ---- */

static void set_real(json_t *sample, const char *name, double value)
{
    if (isfinite(value))
        json_object_set_new(sample, name, json_real(value));
}

/* CPUs' worth of time between two readings of a counter. */
static double rate_of(const mica_sampler_thread *s, int64_t now, int64_t before, int64_t now_ns)
{
    double seconds = (double)(now_ns - s->before_ns) / 1e9;
    return s->before_ns && now >= 0 && before >= 0 && seconds > 0.0 ? (double)(now - before) / (double)s->ticks_per_s / seconds
                                                                    : NAN;
}

static void add_load(mica_sampler_thread *s, json_t *sample, int64_t now_ns)
{
    int64_t process = -1, own = -1;
    bool us = s->pid == getpid();
    if (s->pid > 0 && !mica_proc_ticks(s->sysroot, s->pid, &process))
        process = -1;
    if (us)
        own = 0;
    else if (!mica_proc_ticks(s->sysroot, getpid(), &own))
        own = -1;
    double busy = rate_of(s, s->sensors.busy_ticks, s->busy, now_ns), mine = rate_of(s, own, s->own, now_ns);
    double measured = rate_of(s, process, s->process, now_ns), other = busy - (isfinite(measured) ? measured : 0.0) - mine;
    set_real(sample, "cpu_busy", busy);
    set_real(sample, "cpu_process", measured);
    if (s->pid > 0 && isfinite(measured)) /* ticks are counted in hundredths: a little below 0 is 0 */
        set_real(sample, "cpu_other", other > 0.0 ? other : isnan(other) ? NAN : 0.0);
    s->before_ns = now_ns;
    s->busy = s->sensors.busy_ticks;
    s->process = process;
    s->own = own;
}

static void add_heat(const mica_sensors *m, json_t *sample)
{
    if (m->n_zones > 0) {
        json_t *zones = json_object();
        for (int i = 0; i < m->n_zones; i++)
            mica_json_set(&zones, m->zone[i].name, json_real(m->zone[i].celsius));
        json_object_set_new(sample, "temp_c", zones);
    }
    if (m->cooling_active >= 0)
        json_object_set_new(sample, "cooling", json_integer(m->cooling_active));
    if (m->n_clocks > 0) {
        json_t *clocks = json_array();
        for (int i = 0; i < m->n_clocks; i++)
            mica_json_add(&clocks, json_integer(m->mhz[i]));
        json_object_set_new(sample, "mhz", clocks);
    }
}

static void add_rest(const mica_sensors *m, json_t *sample)
{
    set_real(sample, "psi_cpu", m->psi_cpu);
    set_real(sample, "psi_memory", m->psi_memory);
    set_real(sample, "psi_io", m->psi_io);
    if (m->swap_pages >= 0)
        json_object_set_new(sample, "swap_pages", json_integer(m->swap_pages));
    if (*m->battery)
        json_object_set_new(sample, "battery", json_string(m->battery));
    set_real(sample, "battery_percent", m->battery_percent);
    set_real(sample, "battery_w", m->battery_w);
    set_real(sample, "battery_j", m->battery_j);
    set_real(sample, "battery_as", m->battery_as);
    set_real(sample, "battery_v", m->battery_v);
    if (m->n_energy == 0)
        return;
    json_t *counters = json_array(), *ranges = json_array(), *names = json_array();
    for (int i = 0; i < m->n_energy; i++) {
        mica_json_add(&counters, json_integer(m->energy_uj[i]));
        mica_json_add(&ranges, json_integer(m->energy_range_uj[i]));
        mica_json_add(&names, json_string(m->energy_name[i]));
    }
    json_object_set_new(sample, "energy_domains", names);
    json_object_set_new(sample, "energy_uj", counters);
    json_object_set_new(sample, "energy_range_uj", ranges);
}

static json_t *take_sample(mica_sampler_thread *s)
{
    mica_procmem memory;
    int64_t now_ns = mica_now_ns();
    json_t *sample = json_pack("{s:I}", "t_ns", (json_int_t)now_ns);
    if (!sample)
        return NULL;
    mica_sensors_read(s->sysroot, &s->sensors);
    add_load(s, sample, now_ns);
    if (s->pid > 0 && mica_procmem_read(s->sysroot, s->pid, &memory, NULL) == MICA_OK && memory.usage.rss_bytes >= 0)
        json_object_set_new(sample, "rss_bytes", json_integer(memory.usage.rss_bytes));
    add_heat(&s->sensors, sample);
    add_rest(&s->sensors, sample);
    return sample;
}

/* ---- The thread ---- */

static void wait_until(mica_sampler_thread *s, int64_t when_ns)
{
    struct timespec when = {.tv_sec = (time_t)(when_ns / 1000000000), .tv_nsec = (long)(when_ns % 1000000000)};
    while (!s->ending && pthread_cond_timedwait(&s->wake, &s->lock, &when) != ETIMEDOUT)
        continue;
}

static void *run(void *user)
{
    mica_sampler_thread *s = user;
    int64_t next_ns = mica_now_ns();
    pthread_mutex_lock(&s->lock);
    for (bool last = false; !last;) {
        last = s->ending;
        pthread_mutex_unlock(&s->lock);
        json_t *sample = take_sample(s);
        pthread_mutex_lock(&s->lock);
        json_array_append_new(s->samples, sample);
        /* A machine that is busy may wake us late: samples that were missed are left out, rates need an interval to be rates.
         */
        int64_t soonest_ns = mica_now_ns() + s->interval_ns / 2;
        next_ns = next_ns + s->interval_ns > soonest_ns ? next_ns + s->interval_ns : soonest_ns;
        if (!last)
            wait_until(s, next_ns);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool start_thread(mica_sampler_thread *s)
{
    pthread_condattr_t attributes;
    sigset_t all, before;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all); /* signals are the main thread's */
    sigdelset(&all, SIGBUS); /* a mapped file that was truncated: of the thread that reads it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = pthread_create(&s->thread, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reason == 0;
}

static void free_all(mica_sampler_thread *s)
{
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    json_decref(s->samples);
    free(s);
}

mica_status mica_samples_start(const char *sysroot, int64_t pid, double interval_s, mica_sampler_thread **out, mica_error *err)
{
    mica_sampler_thread *s = calloc(1, sizeof *s);
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "the samples of a run");
    s->sysroot = sysroot;
    s->pid = pid;
    s->interval_ns = (int64_t)(interval_s * 1e9);
    s->busy = s->process = s->own = -1;
    s->ticks_per_s = sysconf(_SC_CLK_TCK);
    s->samples = json_array();
    if (!s->samples || !start_thread(s)) {
        free_all(s);
        return mica_fail(err, MICA_OUT_OF_MEMORY, "the system starts no thread for the samples of a run");
    }
    *out = s;
    return MICA_OK;
}

json_t *mica_samples_take(mica_sampler_thread *s)
{
    json_t *fresh = json_array();
    if (!fresh)
        return NULL;
    pthread_mutex_lock(&s->lock);
    json_t *samples = s->samples;
    s->samples = fresh;
    pthread_mutex_unlock(&s->lock);
    return samples;
}

void mica_samples_stop(mica_sampler_thread *s, json_t **rest)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->ending = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    if (rest)
        *rest = json_incref(s->samples);
    free_all(s);
}
