/* device.c - the monitor: reads the machine, keeps what the app reported, and gives both as one state.
 *
 * Invariants
 *  1. `reading` guards what belongs to readings (machine, energy, counters, scratch); `reporting` guards the report. A thread
 * holds at most one of them, so a report never waits for a slow sensor.
 *  2. machine is what was read, without reports: they are merged into each copy that is handed out, so that a report is seen at
 *     once, though the reading is kept for min_interval. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/budget.h"
#include "device/clocks.h"
#include "device/cpus.h"
#include "device/device.h"
#include "device/energy.h"
#include "device/memory.h"
#include "device/pressure.h"
#include "device/sysfile.h"
#include "device/thermal.h"

enum { DEFAULT_INTERVAL_MS = 200, MAX_INTERVAL_MS = 3600000 };
#define COUNTER_NS INT64_C(2000000000) /* how long an event that was counted is told */

/** A counter of events, and when it last grew. */
typedef struct watched {
    int64_t count, grew_ns; /* -1: unknown; 0: never */
} watched;

struct mica_device {
    char *sysroot; /* "" for the real one */
    int64_t interval_ns;
    pthread_mutex_t reading, reporting;
    mica_device_state machine;
    mica_energy energy;
    watched throttles, stops;
    mica_cpu_set cpus;
    mica_thermal thermal;
    mica_app_report report;
    int64_t reported_ns;
};

/* ---- Reading ---- */

static unsigned watch(watched *w, int64_t count, int64_t now_ns, unsigned bit)
{
    if (w->count >= 0 && count > w->count)
        w->grew_ns = now_ns;
    w->count = count;
    return w->grew_ns > 0 && now_ns - w->grew_ns <= COUNTER_NS ? bit : 0u;
}

/** "low-power" and its kin of the firmware's profiles; desktops tell it there. */
static int read_power_save(const char *sysroot)
{
    char profile[32];
    if (!mica_sysfile_word(sysroot, "/sys/firmware/acpi", "platform_profile", profile, sizeof profile))
        return MICA_UNKNOWN;
    return strcmp(profile, "low-power") == 0 || strcmp(profile, "quiet") == 0 || strcmp(profile, "cool") == 0 ? MICA_YES
                                                                                                              : MICA_NO;
}

static void read_memory(const char *sysroot, mica_device_state *s)
{
    mica_memory_bounds bounds;
    s->memory_total = mica_memory_total(sysroot);
    if (mica_memory_available(sysroot, &s->memory_available, NULL, NULL))
        s->memory_available = -1;
    if (mica_memory_bounds_read(sysroot, 0, 0, 0, &bounds, NULL) == MICA_OK && bounds.usable >= 0 &&
        (s->memory_total < 0 || bounds.usable < s->memory_total))
        s->memory_limit = bounds.usable;
    mica_pressure memory = mica_pressure_memory(sysroot);
    s->psi_memory_some10 = memory.some10;
    s->psi_memory_full10 = memory.full10;
    s->psi_cpu_some10 = mica_pressure_read(sysroot, "cpu").some10;
    s->psi_io_some10 = mica_pressure_read(sysroot, "io").some10;
}

static void read_power(mica_device *d, int64_t now_ns, mica_device_state *s)
{
    mica_power power;
    mica_rapl rapl;
    mica_power_read(d->sysroot, &power);
    mica_rapl_read(d->sysroot, &rapl);
    mica_energy_add(&d->energy, now_ns, &rapl, &power);
    s->battery = power.status;
    s->battery_level = power.level;
    s->battery_w = power.draw_w;
    s->on_mains = power.external;
    s->temp_battery_mc = power.temp_mc;
    s->energy_epoch = d->energy.epoch;
    s->energy_source = d->energy.source;
    s->energy_error = mica_energy_error(d->energy.kind);
    s->energy_step_j = d->energy.step_j;
    s->energy_j = d->energy.kind == MICA_ENERGY_NONE ? NAN : d->energy.joules;
    memcpy(s->energy_reason, d->energy.reason, sizeof s->energy_reason);
}

/** Under `reading`. */
static void read_machine(mica_device *d, int64_t now_ns)
{
    mica_device_state *s = &d->machine;
    mica_device_state_clear(s);
    s->time_ns = now_ns;
    read_power(d, now_ns, s);
    mica_thermal_read(d->sysroot, true, &d->thermal);
    mica_device_judge_heat(&d->thermal, s);
    mica_clocks_read(d->sysroot, &d->cpus, &s->clock, &s->clock_limit);
    s->throttle |= s->clock_limit < 0.995 ? MICA_THROTTLE_LIMIT : 0u; /* limits are rounded to steps of the clock */
    s->throttle |= watch(&d->throttles, mica_clocks_throttle_count(d->sysroot, &d->cpus), now_ns, MICA_THROTTLE_COUNTER);
    s->throttle |= watch(&d->stops, mica_quota_stops(d->sysroot), now_ns, MICA_THROTTLE_QUOTA);
    s->power_save = read_power_save(d->sysroot);
    read_memory(d->sysroot, s);
    s->cpu_quota = d->cpus.quota > 0 ? d->cpus.quota : NAN;
}

static void merge_report(mica_device *d, mica_device_state *state)
{
    pthread_mutex_lock(&d->reporting);
    mica_device_merge(&d->report, d->reported_ns, state);
    pthread_mutex_unlock(&d->reporting);
}

mica_status mica_device_read_at(mica_device *device, int64_t now_ns, mica_device_state *state, mica_error *err)
{
    if (!device || !state)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "reading a device needs a device and room for its state");
    pthread_mutex_lock(&device->reading);
    read_machine(device, now_ns);
    *state = device->machine;
    pthread_mutex_unlock(&device->reading);
    merge_report(device, state);
    return MICA_OK;
}

mica_status mica_device_read(mica_device *device, mica_device_state *state, mica_error *err)
{
    if (!device || !state)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "reading a device needs a device and room for its state");
    pthread_mutex_lock(&device->reading);
    int64_t now_ns = mica_now_ns();
    if (device->interval_ns == 0 || now_ns - device->machine.time_ns >= device->interval_ns)
        read_machine(device, now_ns);
    *state = device->machine;
    pthread_mutex_unlock(&device->reading);
    merge_report(device, state);
    return MICA_OK;
}

/* ---- Reports ---- */

static mica_status check_report(const mica_app_report *r, mica_error *err)
{
    if (r->struct_size != sizeof *r)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "struct_size of the report is %zu, not %zu: begin with mica_app_report_default()", r->struct_size,
                         sizeof *r);
    if (r->thermal < MICA_THERMAL_UNKNOWN || r->thermal > MICA_THERMAL_SHUTDOWN)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%d is no thermal status", (int)r->thermal);
    if (r->trim < MICA_TRIM_UNKNOWN || r->trim > MICA_TRIM_CRITICAL)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%d is no trim level", (int)r->trim);
    if (r->battery < MICA_BATTERY_UNKNOWN || r->battery > MICA_BATTERY_IDLE)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%d is no status of a battery", (int)r->battery);
    if (r->battery_level < 0.0 || r->battery_level > 1.0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the battery's level is %g, not from 0 to 1", r->battery_level);
    if (isinf(r->headroom))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the headroom is no finite number");
    return MICA_OK;
}

static int answer(int now, int before)
{
    return now == MICA_UNKNOWN ? before : now != MICA_NO;
}

mica_status mica_device_report(mica_device *device, const mica_app_report *report, mica_error *err)
{
    if (!device || !report)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a report needs a device and the report");
    mica_status status = check_report(report, err);
    if (status)
        return status;
    pthread_mutex_lock(&device->reporting);
    mica_app_report *r = &device->report;
    r->thermal = report->thermal == MICA_THERMAL_UNKNOWN ? r->thermal : report->thermal;
    r->headroom = isnan(report->headroom) ? r->headroom : report->headroom;
    r->power_save = answer(report->power_save, r->power_save);
    r->foreground = answer(report->foreground, r->foreground);
    r->trim = report->trim == MICA_TRIM_UNKNOWN ? r->trim : report->trim;
    r->battery_level = isnan(report->battery_level) ? r->battery_level : report->battery_level;
    r->battery = report->battery == MICA_BATTERY_UNKNOWN ? r->battery : report->battery;
    r->on_mains = answer(report->on_mains, r->on_mains);
    device->reported_ns = mica_now_ns();
    pthread_mutex_unlock(&device->reporting);
    return MICA_OK;
}

/* ---- Opening ---- */

mica_device_options mica_device_options_default(void)
{
    return (mica_device_options){.struct_size = sizeof(mica_device_options), .min_interval_ms = DEFAULT_INTERVAL_MS};
}

static mica_status check_options(const mica_device_options *o, mica_error *err)
{
    if (o->struct_size != sizeof *o)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "struct_size of the options is %zu, not %zu: begin with mica_device_options_default()", o->struct_size,
                         sizeof *o);
    if (o->min_interval_ms < 0 || o->min_interval_ms > MAX_INTERVAL_MS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "min_interval_ms is %d, not from 0 to %d", (int)o->min_interval_ms,
                         MAX_INTERVAL_MS);
    return mica_sysroot_check(o->sysroot, err);
}

mica_status mica_device_open(const mica_device_options *options, mica_device **out, mica_error *err)
{
    mica_device_options usual = mica_device_options_default();
    const mica_device_options *o = options ? options : &usual;
    *out = NULL;
    mica_status status = check_options(o, err);
    if (status)
        return status;
    mica_device *d = calloc(1, sizeof *d);
    if (!d || !(d->sysroot = strdup(o->sysroot ? o->sysroot : ""))) {
        free(d);
        return mica_fail_nomem(err, sizeof *d, "the monitor of the device");
    }
    d->interval_ns = (int64_t)o->min_interval_ms * 1000000;
    d->throttles.count = d->stops.count = -1;
    d->report = mica_app_report_default();
    pthread_mutex_init(&d->reading, NULL);
    pthread_mutex_init(&d->reporting, NULL);
    mica_energy_init(&d->energy);
    if (mica_cpus_read(d->sysroot, &d->cpus,
                       NULL)) /* the root is a folder, so there is nothing else that it could complain of */
        d->cpus.n = 0;
    *out = d;
    return MICA_OK;
}

void mica_device_close(mica_device *device)
{
    if (!device)
        return;
    pthread_mutex_destroy(&device->reading);
    pthread_mutex_destroy(&device->reporting);
    free(device->sysroot);
    free(device);
}
