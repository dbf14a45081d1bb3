/* probe_machine.c - what the files of /proc and /sys say of this machine, as JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "device/budget.h"
#include "device/clocks.h"
#include "device/cpus.h"
#include "device/device.h"
#include "device/energy.h"
#include "device/memory.h"
#include "device/pressure.h"
#include "device/sysfile.h"
#include "device/thermal.h"
#include "kern/kern.h"
#include "probe.h"
#include "term.h"

enum { INFO_BYTES = 1 << 20 };

static json_t *count_or_null(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}
static json_t *text_or_null(const char *text)
{
    return *text ? json_string(text) : json_null();
}
static json_t *celsius(int32_t mc)
{
    return mc == MICA_UNKNOWN_MC ? json_null() : json_real(mc / 1000.0);
}
static json_t *answer(int value)
{
    return value == MICA_UNKNOWN ? json_null() : json_boolean(value);
}

/* ---- CPU ---- */

/* What decides over kernels, and what a maker might look for; in the kernel's words, x86 and ARM. */
static const char *const features[] = {
    "sse4_1",   "sse4_2",   "avx",         "f16c",        "fma",         "avx2",     "avx_vnni", "avx512f",
    "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8", "amx_bf16", "asimd",
    "fphp",     "asimdhp",  "asimddp",     "i8mm",        "bf16",        "sve",      "sve2",     "sme",
};

static bool has_word(const char *line, const char *end, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = line; (at = strstr(at, word)) && at < end; at += n)
        if (at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
            return true;
    return false;
}

static json_t *read_features(const char *sysroot)
{
    char *text = malloc(INFO_BYTES);
    json_t *list = NULL;
    if (text && mica_sysfile_read(sysroot, "/proc/cpuinfo", text, INFO_BYTES)) {
        const char *line = strstr(text, "\nflags");
        line = line ? line : strstr(text, "\nFeatures");
        line = line ? strchr(line, ':') : NULL;
        const char *end = line ? line + strcspn(line, "\n") : NULL;
        list = line ? json_array() : NULL;
        for (size_t i = 0; line && i < sizeof features / sizeof *features; i++)
            if (has_word(line, end, features[i]))
                json_array_append_new(list, json_string(features[i]));
    }
    free(text);
    return list ? list : json_null();
}

static json_t *kernel_sets(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < mica_isa_count(); i++)
        if (mica_isa_at(i)->supported())
            json_array_append_new(list, json_string(mica_isa_at(i)->name));
    return list;
}

static json_t *each_cpu(const char *sysroot, const mica_cpu_set *set)
{
    json_t *list = json_array();
    for (int i = 0; i < set->n; i++) {
        mica_clock c = mica_clock_read(sysroot, set->cpu[i].id);
        json_array_append_new(list, json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "cpu", set->cpu[i].id, "core", set->cpu[i].core,
                                              "capacity", set->cpu[i].capacity, "khz", count_or_null(c.now), "khz_allowed",
                                              count_or_null(c.allowed), "khz_highest", count_or_null(c.highest)));
    }
    return list;
}

json_t *mica_probe_cpu(const char *sysroot, const char *kernels)
{
    mica_cpu_set *set = malloc(sizeof *set);
    mica_thread_plan all, usual;
    char name[128];
    double now, allowed;
    struct utsname system;
    if (!set || mica_cpus_read(sysroot, set, NULL) || mica_thread_plan_all(sysroot, &all, NULL) ||
        mica_thread_plan_default(sysroot, &usual, NULL)) {
        free(set);
        return NULL;
    }
    mica_cpu_name(sysroot, name);
    mica_clocks_read(sysroot, set, &now, &allowed);
    bool here = (!sysroot || !*sysroot) && uname(&system) == 0;
    json_t *cpu = json_pack("{s:s, s:o, s:o, s:s, s:o, s:i, s:i, s:o, s:o}", "name", name, "architecture",
                            here ? json_string(system.machine) : json_null(), "features", read_features(sysroot), "kernels",
                            kernels, "kernel_sets", kernel_sets(), "online", set->n_online, "usable", set->n, "quota",
                            mica_json_real(set->quota > 0 ? set->quota : NAN), "quota_source", text_or_null(set->quota_source));
    json_object_update_new(cpu, json_pack("{s:i, s:i, s:s, s:o, s:o, s:o}", "threads_most", all.n_threads, "threads_default",
                                          usual.n_threads, "threads_reason", usual.reason, "clock", mica_json_real(now),
                                          "clock_allowed", mica_json_real(allowed), "cpus", each_cpu(sysroot, set)));
    free(set);
    return cpu;
}

/* ---- Memory ---- */

static json_t *pressure(mica_pressure p)
{
    if (isnan(p.some10))
        return json_null();
    return json_pack("{s:o, s:o, s:o}", "some10", mica_json_real(p.some10), "full10", mica_json_real(p.full10), "some60",
                     mica_json_real(p.some60));
}

json_t *mica_probe_memory(const char *sysroot)
{
    int64_t total = mica_memory_total(sysroot), available;
    char reason[MICA_MEMORY_REASON] = "";
    mica_memory_bounds bounds;
    if (mica_memory_available(sysroot, &available, reason, NULL))
        available = -1;
    if (mica_memory_bounds_read(sysroot, 0, 0, 0, &bounds, NULL))
        bounds = (mica_memory_bounds){.usable = -1};
    bool limited = bounds.usable >= 0 && (total < 0 || bounds.usable < total);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "total_bytes", count_or_null(total), "available_bytes",
                     count_or_null(available), "available_reason", text_or_null(available < 0 ? "" : reason), "limit_bytes",
                     count_or_null(limited ? bounds.usable : -1), "limit_source", text_or_null(limited ? bounds.source : ""),
                     "pressure", pressure(mica_pressure_memory(sysroot)), "pressure_cpu",
                     pressure(mica_pressure_read(sysroot, "cpu")), "pressure_io", pressure(mica_pressure_read(sysroot, "io")));
}

/* ---- Heat ---- */

static json_t *trips_of(const mica_thermal_zone *zone)
{
    static const char *const kinds[] = {"active", "passive", "hot", "critical"};
    json_t *list = json_array();
    for (int i = 0; i < zone->n_trips; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:f}", "kind", kinds[zone->trip[i].kind], "celsius", zone->trip[i].mc / 1000.0));
    return list;
}

static json_t *zones_of(const mica_thermal *t)
{
    static const char *const kinds[] = {"other", "soc", "skin", "battery"};
    json_t *list = json_array();
    for (int i = 0; i < t->n_zones; i++) {
        const mica_thermal_zone *z = &t->zone[i];
        char file[48];
        snprintf(file, sizeof file, z->chip ? "hwmon%d" : "thermal_zone%d", z->index);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", z->type, "file", file, "kind",
                                              kinds[z->kind], "celsius", celsius(z->mc), "trips", trips_of(z)));
    }
    return list;
}

static json_t *cooling_of(const mica_thermal *t)
{
    json_t *list = json_array();
    for (int i = 0; i < t->n_cooling; i++) {
        const mica_cooling *c = &t->cooling[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:b, s:o, s:o}", "name", c->type, "index", c->index, "processor",
                                        c->processor, "state", count_or_null(c->state), "highest", count_or_null(c->highest)));
    }
    return list;
}

static json_t *throttle_words(unsigned throttle)
{
    static const char *const words[] = {"cooling", "limit", "trip", "counter", "reported", "quota"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (throttle >> i & 1)
            json_array_append_new(list, json_string(words[i]));
    return list;
}

json_t *mica_probe_thermal(const char *sysroot)
{
    mica_device_options options = mica_device_options_default();
    mica_device *device = NULL;
    mica_device_state s;
    mica_thermal *t = malloc(sizeof *t);
    json_t *out = NULL;
    options.sysroot = sysroot;
    if (t && mica_device_open(&options, &device, NULL) == MICA_OK && mica_device_read(device, &s, NULL) == MICA_OK) {
        mica_thermal_read(sysroot, true, t);
        out = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "status", mica_thermal_status_name(s.thermal),
                        "headroom", mica_json_real(s.headroom), "throttle", throttle_words(s.throttle), "soc_celsius",
                        celsius(s.temp_soc_mc), "skin_celsius", celsius(s.temp_skin_mc), "battery_celsius",
                        celsius(s.temp_battery_mc), "power_save", answer(s.power_save), "zones", zones_of(t), "cooling",
                        cooling_of(t));
    }
    mica_device_close(device);
    free(t);
    return out;
}

/* ---- Power ---- */

static json_t *battery_of(const mica_battery *b)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", b->name, "status", mica_battery_status_name(b->status),
                     "level", mica_json_real(b->level), "volts", mica_json_real(b->volts), "watts", mica_json_real(b->watts),
                     "source", text_or_null(isnan(b->watts) ? "" : b->source), "celsius", celsius(b->temp_mc));
}

json_t *mica_probe_power(const char *sysroot)
{
    mica_power p;
    json_t *list = json_array();
    mica_power_read(sysroot, &p);
    for (int i = 0; i < p.n_batteries; i++)
        json_array_append_new(list, battery_of(&p.battery[i]));
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "battery", mica_battery_status_name(p.status), "level",
                     mica_json_real(p.level), "external", answer(p.external), "external_name", text_or_null(p.external_name),
                     "watts", mica_json_real(p.draw_w), "flow_watts", mica_json_real(p.flow_w), "source",
                     text_or_null(isnan(p.flow_w) ? "" : p.source), "reason", text_or_null(p.reason), "batteries", list);
}

json_t *mica_probe_energy(const char *sysroot)
{
    mica_rapl rapl;
    mica_power power;
    mica_energy energy;
    json_t *list = json_array();
    mica_rapl_read(sysroot, &rapl);
    mica_power_read(sysroot, &power);
    mica_energy_init(&energy);
    mica_energy_add(&energy, 1, &rapl, &power);
    for (int i = 0; i < rapl.n; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b, s:o}", "name", rapl.domain[i].name, "zone", rapl.domain[i].zone,
                                        "counted", rapl.domain[i].counted, "microjoules", count_or_null(rapl.domain[i].uj)));
    return json_pack("{s:o, s:o, s:o, s:o}", "source", text_or_null(energy.source), "error",
                     mica_json_real(mica_energy_error(energy.kind)), "reason", text_or_null(energy.reason), "counters", list);
}
