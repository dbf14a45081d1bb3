#include "device/thermal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/sysfile.h"

enum { CHIPS = 32, LOWEST_MC = -40000, HIGHEST_MC = 150000 };

/* ---- Names ---- */

/* Words in types of zones, as kernels and makers write them. A type is of the first row with a word that it begins with
 * ("anywhere": contains), in any case. */
typedef struct zone_word {
    const char *word;
    bool anywhere;
    mica_zone_kind kind;
} zone_word;

static const zone_word zone_words[] = {
    {"skin", true, MICA_ZONE_SKIN},        {"shell", true, MICA_ZONE_SKIN},        {"quiet-therm", true, MICA_ZONE_SKIN},
    {"quiet_therm", true, MICA_ZONE_SKIN}, {"batt", false, MICA_ZONE_BATTERY},     {"cpu", false, MICA_ZONE_SOC},
    {"soc", false, MICA_ZONE_SOC},         {"x86_pkg_temp", false, MICA_ZONE_SOC}, {"TCPU", false, MICA_ZONE_SOC},
    {"cluster", false, MICA_ZONE_SOC},     {"mtktscpu", false, MICA_ZONE_SOC},     {"apss", false, MICA_ZONE_SOC},
    {"big", false, MICA_ZONE_SOC},         {"little", false, MICA_ZONE_SOC},
};

static mica_zone_kind zone_kind(const char *type)
{
    for (size_t i = 0; i < sizeof zone_words / sizeof *zone_words; i++) {
        const zone_word *w = &zone_words[i];
        if (w->anywhere ? strcasestr(type, w->word) != NULL : strncasecmp(type, w->word, strlen(w->word)) == 0)
            return w->kind;
    }
    return MICA_ZONE_OTHER;
}

static bool is_processor_chip(const char *name)
{
    static const char *const names[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_processor_cooling(const char *type)
{
    static const char *const words[] = {"Processor", "cpufreq", "cpu", "intel_powerclamp"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(type, words[i]))
            return true;
    return false;
}

/* ---- Values ---- */

/** Whatever the unit, as thousandths; see the header. */
static int32_t milli_degrees(int64_t value)
{
    if (value <= LOWEST_MC || value >= HIGHEST_MC || (value > -1000 && value <= 0))
        return MICA_UNKNOWN_MC;
    if (value > 0 && value <= 150)
        value *= 1000;
    else if (value > 0 && value < 1000)
        value *= 100;
    return (int32_t)value;
}

static int32_t read_mc(const char *sysroot, const char *folder, const char *name)
{
    int64_t value;
    return mica_sysfile_int_in(sysroot, folder, name, &value) ? milli_degrees(value) : MICA_UNKNOWN_MC;
}

static void add_trip(mica_thermal_zone *zone, mica_trip_kind kind, int32_t mc)
{
    if (mc != MICA_UNKNOWN_MC && mc > 0 && zone->n_trips < MICA_THERMAL_TRIPS)
        zone->trip[zone->n_trips++] = (mica_trip){kind, mc};
}

static void read_trips(const char *sysroot, const char *folder, mica_thermal_zone *zone)
{
    static const char *const kinds[] = {"active", "passive", "hot", "critical"};
    for (int i = 0; i < MICA_THERMAL_TRIPS; i++) {
        char name[32], type[16];
        snprintf(name, sizeof name, "trip_point_%d_type", i);
        if (!mica_sysfile_word(sysroot, folder, name, type, sizeof type))
            return; /* they are numbered without gaps */
        snprintf(name, sizeof name, "trip_point_%d_temp", i);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (strcmp(type, kinds[k]) == 0)
                add_trip(zone, (mica_trip_kind)k, read_mc(sysroot, folder, name));
    }
}

/* ---- Folders ---- */

static void read_zones(const char *sysroot, bool trips, mica_thermal *t)
{
    for (int i = 0; i < MICA_THERMAL_ZONES; i++) {
        mica_thermal_zone *zone = &t->zone[t->n_zones];
        char folder[64];
        snprintf(folder, sizeof folder, "/sys/class/thermal/thermal_zone%d", i);
        *zone = (mica_thermal_zone){.index = i};
        if (!mica_sysfile_word(sysroot, folder, "type", zone->type, sizeof zone->type))
            continue;
        zone->kind = zone_kind(zone->type);
        zone->mc = read_mc(sysroot, folder, "temp");
        if (trips)
            read_trips(sysroot, folder, zone);
        t->n_zones++;
    }
}

static void read_chips(const char *sysroot, bool trips, mica_thermal *t)
{
    for (int i = 0; i < CHIPS && t->n_zones < MICA_THERMAL_ZONES; i++) {
        mica_thermal_zone *zone = &t->zone[t->n_zones];
        char folder[64];
        snprintf(folder, sizeof folder, "/sys/class/hwmon/hwmon%d", i);
        *zone = (mica_thermal_zone){.index = i, .chip = true, .kind = MICA_ZONE_SOC};
        if (!mica_sysfile_word(sysroot, folder, "name", zone->type, sizeof zone->type) || !is_processor_chip(zone->type))
            continue;
        zone->mc = read_mc(sysroot, folder, "temp1_input");
        if (trips) {
            /* temp1_max is what a fan aims at on some boards; only temp1_crit says that the processor slows down there. */
            add_trip(zone, MICA_TRIP_PASSIVE, read_mc(sysroot, folder, "temp1_crit"));
        }
        t->n_zones++;
    }
}

static int32_t read_state(const char *sysroot, const char *folder, const char *name)
{
    int64_t value;
    return mica_sysfile_int_in(sysroot, folder, name, &value) && value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

static void read_cooling(const char *sysroot, mica_thermal *t)
{
    for (int i = 0; i < MICA_THERMAL_COOLING; i++) {
        mica_cooling *c = &t->cooling[t->n_cooling];
        char folder[64];
        snprintf(folder, sizeof folder, "/sys/class/thermal/cooling_device%d", i);
        *c = (mica_cooling){.index = i};
        if (!mica_sysfile_word(sysroot, folder, "type", c->type, sizeof c->type))
            continue;
        c->processor = is_processor_cooling(c->type);
        c->state = read_state(sysroot, folder, "cur_state");
        c->highest = read_state(sysroot, folder, "max_state");
        t->n_cooling++;
    }
}

void mica_thermal_read(const char *sysroot, bool trips, mica_thermal *out)
{
    out->n_zones = out->n_cooling = 0;
    read_zones(sysroot, trips, out);
    if (!mica_thermal_hottest(out, MICA_ZONE_SOC))
        read_chips(sysroot, trips, out);
    read_cooling(sysroot, out);
}

const mica_thermal_zone *mica_thermal_hottest(const mica_thermal *t, mica_zone_kind kind)
{
    const mica_thermal_zone *best = NULL;
    for (int i = 0; i < t->n_zones; i++) {
        const mica_thermal_zone *zone = &t->zone[i];
        if (zone->kind == kind && zone->mc != MICA_UNKNOWN_MC && (!best || zone->mc > best->mc))
            best = zone;
    }
    return best;
}

bool mica_thermal_processor(const char *sysroot, double *celsius, char source[32])
{
    mica_thermal *t = malloc(sizeof *t); /* too large for the stack of a small thread */
    const mica_thermal_zone *zone = NULL;
    if (t) {
        mica_thermal_read(sysroot, false, t);
        zone = mica_thermal_hottest(t, MICA_ZONE_SOC);
    }
    if (zone) {
        *celsius = (double)zone->mc / 1000.0;
        snprintf(source, 32, "%s", zone->type);
    }
    free(t);
    return zone != NULL;
}
