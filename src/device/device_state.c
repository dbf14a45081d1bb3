/* device_state.c - what readings and reports mean for a state. Pure functions. */
#include <math.h>

#include "device/device.h"
#include "device/thermal.h"

/* Android's headroom: 0 is so many degrees below the point where severe throttling begins, 1 that point. */
#define HEADROOM_MC 30000

mica_app_report mica_app_report_default(void)
{
    return (mica_app_report){.struct_size = sizeof(mica_app_report),
                             .thermal = MICA_THERMAL_UNKNOWN,
                             .headroom = NAN,
                             .power_save = MICA_UNKNOWN,
                             .foreground = MICA_UNKNOWN,
                             .trim = MICA_TRIM_UNKNOWN,
                             .battery_level = NAN,
                             .battery = MICA_BATTERY_UNKNOWN,
                             .on_mains = MICA_UNKNOWN};
}

void mica_device_state_clear(mica_device_state *s)
{
    *s = (mica_device_state){.struct_size = sizeof *s,
                             .temp_max_mc = MICA_UNKNOWN_MC,
                             .temp_soc_mc = MICA_UNKNOWN_MC,
                             .temp_skin_mc = MICA_UNKNOWN_MC,
                             .temp_battery_mc = MICA_UNKNOWN_MC,
                             .thermal = MICA_THERMAL_UNKNOWN,
                             .headroom = NAN,
                             .cooling = NAN,
                             .clock = NAN,
                             .clock_limit = NAN,
                             .battery_level = NAN,
                             .battery_w = NAN,
                             .battery = MICA_BATTERY_UNKNOWN,
                             .on_mains = MICA_UNKNOWN,
                             .power_save = MICA_UNKNOWN,
                             .foreground = MICA_UNKNOWN,
                             .energy_j = NAN,
                             .energy_error = NAN,
                             .energy_step_j = NAN,
                             .energy_source = "",
                             .memory_total = -1,
                             .memory_available = -1,
                             .memory_limit = -1,
                             .trim = MICA_TRIM_UNKNOWN,
                             .psi_memory_some10 = NAN,
                             .psi_memory_full10 = NAN,
                             .psi_cpu_some10 = NAN,
                             .psi_io_some10 = NAN,
                             .cpu_quota = NAN};
}

/* ---- Heat ---- */

static void raise_status(mica_device_state *s, mica_thermal_status status)
{
    if (status > s->thermal)
        s->thermal = status;
}

/** What the trip points of one zone say. */
static void judge_trips(const mica_thermal_zone *zone, mica_device_state *s)
{
    static const mica_thermal_status reached[] = {MICA_THERMAL_NONE, MICA_THERMAL_MODERATE, MICA_THERMAL_SEVERE,
                                                  MICA_THERMAL_SHUTDOWN};
    for (int i = 0; i < zone->n_trips; i++) {
        const mica_trip *trip = &zone->trip[i];
        if (trip->kind == MICA_TRIP_ACTIVE)
            continue;
        bool there = zone->mc >= trip->mc;
        raise_status(s, there ? reached[trip->kind] : MICA_THERMAL_NONE);
        s->throttle |= there ? MICA_THROTTLE_TRIP : 0u;
        if (trip->kind == MICA_TRIP_PASSIVE)
            s->headroom = fmax(s->headroom, 1.0 - (double)(trip->mc - zone->mc) / HEADROOM_MC); /* fmax() passes over NAN */
    }
}

static void judge_cooling(const mica_thermal *t, mica_device_state *s)
{
    for (int i = 0; i < t->n_cooling; i++) {
        const mica_cooling *c = &t->cooling[i];
        if (!c->processor || c->state < 0 || c->highest <= 0)
            continue;
        s->cooling = fmax(s->cooling, fmin((double)c->state / c->highest, 1.0));
        raise_status(s, c->state > 0 ? MICA_THERMAL_LIGHT : MICA_THERMAL_NONE);
        s->throttle |= c->state > 0 ? MICA_THROTTLE_COOLING : 0u;
    }
}

static int32_t hottest_mc(const mica_thermal *t, mica_zone_kind kind)
{
    const mica_thermal_zone *zone = mica_thermal_hottest(t, kind);
    return zone ? zone->mc : MICA_UNKNOWN_MC;
}

static int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
} /* MICA_UNKNOWN_MC is below every temperature */

void mica_device_judge_heat(const mica_thermal *t, mica_device_state *s)
{
    s->temp_soc_mc = hottest_mc(t, MICA_ZONE_SOC);
    s->temp_skin_mc = hottest_mc(t, MICA_ZONE_SKIN);
    s->temp_battery_mc = larger(s->temp_battery_mc, hottest_mc(t, MICA_ZONE_BATTERY));
    s->temp_max_mc = larger(larger(s->temp_soc_mc, s->temp_skin_mc), s->temp_battery_mc);
    for (int i = 0; i < t->n_zones; i++)
        if (t->zone[i].kind != MICA_ZONE_OTHER && t->zone[i].mc != MICA_UNKNOWN_MC)
            judge_trips(&t->zone[i], s);
    judge_cooling(t, s);
}

/* ---- Reports ---- */

void mica_device_merge(const mica_app_report *report, int64_t reported_ns, mica_device_state *s)
{
    s->reported_ns = reported_ns;
    raise_status(s, report->thermal);
    s->throttle |= report->thermal >= MICA_THERMAL_MODERATE ? MICA_THROTTLE_REPORTED : 0u;
    if (!isnan(report->headroom)) /* the system knows its own limits better than its trip points tell them */
        s->headroom = report->headroom;
    if (report->power_save != MICA_UNKNOWN)
        s->power_save = report->power_save;
    s->foreground = report->foreground;
    s->trim = report->trim;
    if (isnan(s->battery_level))
        s->battery_level = report->battery_level;
    if (s->battery == MICA_BATTERY_UNKNOWN)
        s->battery = report->battery;
    if (s->on_mains == MICA_UNKNOWN)
        s->on_mains = report->on_mains;
}

/* ---- Names ---- */

/** names[0] is of -1, "unknown", which stands for all that is out of range, too. */
static const char *name_of(const char *const *names, size_t n, int value)
{
    return value >= 0 && (size_t)value + 1 < n ? names[value + 1] : names[0];
}

const char *mica_thermal_status_name(mica_thermal_status status)
{
    static const char *const names[] = {"unknown", "none", "light", "moderate", "severe", "critical", "emergency", "shutdown"};
    return name_of(names, sizeof names / sizeof *names, status);
}

const char *mica_battery_status_name(mica_battery_status status)
{
    static const char *const names[] = {"unknown", "none", "discharging", "charging", "full", "idle"};
    return name_of(names, sizeof names / sizeof *names, status);
}

const char *mica_trim_level_name(mica_trim_level level)
{
    static const char *const names[] = {"unknown", "none", "moderate", "low", "critical"};
    return name_of(names, sizeof names / sizeof *names, level);
}
