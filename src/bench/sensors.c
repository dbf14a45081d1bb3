#include "bench/sensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/power.h"
#include "device/pressure.h"
#include "device/rapl.h"
#include "device/clocks.h"
#include "device/sysfile.h"
#include "device/thermal.h"

enum { FILE_BYTES = 65536 };

/* ---- Heat ---- */

static void add_zone(const mica_thermal_zone *z, mica_sensors *s)
{
    if (z->mc == MICA_UNKNOWN_MC || s->n_zones == MICA_ZONES)
        return;
    s->zone[s->n_zones].celsius = (double)z->mc / 1000.0;
    snprintf(s->zone[s->n_zones++].name, sizeof s->zone[0].name, "%.20s#%s%d", z->type, z->chip ? "hwmon" : "", z->index);
}

static void read_heat(const char *sysroot, mica_sensors *s)
{
    mica_thermal t;
    s->cooling_active = -1;
    mica_thermal_read(sysroot, false, &t);
    for (int i = 0; i < t.n_zones; i++)
        add_zone(&t.zone[i], s);
    for (int i = 0; i < t.n_cooling; i++) {
        if (!t.cooling[i].processor || t.cooling[i].state < 0)
            continue;
        s->n_cooling++;
        s->cooling_active = (s->cooling_active < 0 ? 0 : s->cooling_active) + (t.cooling[i].state > 0);
    }
}

static void read_clocks(const char *sysroot, mica_sensors *s)
{
    for (int i = 0; i < MICA_CLOCKS; i++) {
        int32_t khz = mica_clock_read(sysroot, i).now;
        if (khz > 0)
            s->mhz[s->n_clocks++] = khz / 1000;
    }
}

/* ---- Load ---- */

/* "cpu  user nice system idle iowait irq softirq steal ...": guest time is in user already. */
static void read_stat(const char *sysroot, mica_sensors *s, char *text)
{
    int64_t total = 0, idle = 0;
    s->busy_ticks = s->total_ticks = -1;
    if (!mica_sysfile_read(sysroot, "/proc/stat", text, FILE_BYTES) || strncmp(text, "cpu ", 4) != 0)
        return;
    const char *at = text + 4;
    for (int i = 0; i < 8; i++) {
        int64_t value;
        if (!mica_text_int(at, &value, &at) || value < 0 || value > INT64_MAX / 16)
            return;
        total += value;
        idle += i == 3 || i == 4 ? value : 0;
    }
    s->total_ticks = total;
    s->busy_ticks = total - idle;
}

static void read_swap(const char *sysroot, mica_sensors *s, char *text)
{
    int64_t in, out;
    s->swap_pages = -1;
    if (!mica_sysfile_read(sysroot, "/proc/vmstat", text, FILE_BYTES))
        return;
    const char *a = strstr(text, "\npswpin "), *b = strstr(text, "\npswpout ");
    if (a && b && mica_text_int(a + 8, &in, NULL) && mica_text_int(b + 9, &out, NULL) && in >= 0 && out >= 0 &&
        in < INT64_MAX - out)
        s->swap_pages = in + out;
}

/* ---- Power ---- */

static void read_battery(const char *sysroot, mica_sensors *s)
{
    static const char *const words[] = {[MICA_BATTERY_DISCHARGING] = "Discharging",
                                        [MICA_BATTERY_CHARGING] = "Charging",
                                        [MICA_BATTERY_FULL] = "Full",
                                        [MICA_BATTERY_IDLE] = "Not charging"};
    mica_power p;
    mica_power_read(sysroot, &p);
    s->battery_percent = p.level * 100.0;
    s->battery_w = p.draw_w;
    s->battery_j = s->battery_as = s->battery_v = NAN;
    if (p.n_batteries > 0)
        snprintf(s->battery, sizeof s->battery, "%s", p.status > MICA_BATTERY_NONE ? words[p.status] : "Unknown");
    if (p.status != MICA_BATTERY_DISCHARGING || p.external == MICA_YES)
        return;
    s->battery_j = p.energy_j;
    s->battery_as = p.charge_as;
    s->battery_v = p.volts;
}

static void read_energy(const char *sysroot, mica_sensors *s)
{
    mica_rapl rapl;
    mica_rapl_read(sysroot, &rapl);
    for (int i = 0; i < rapl.n && s->n_energy < MICA_COUNTERS; i++) {
        const mica_rapl_domain *d = &rapl.domain[i];
        if (!d->counted)
            continue;
        snprintf(s->energy_name[s->n_energy], sizeof s->energy_name[0], "%s", d->name);
        s->energy_range_uj[s->n_energy] = d->range > 0 ? d->range : 0;
        s->energy_uj[s->n_energy++] = d->uj;
    }
}

void mica_sensors_read(const char *sysroot, mica_sensors *out)
{
    char text[FILE_BYTES];
    memset(out, 0, sizeof *out);
    read_heat(sysroot, out);
    read_clocks(sysroot, out);
    read_stat(sysroot, out, text);
    read_swap(sysroot, out, text);
    out->psi_cpu = mica_pressure_read(sysroot, "cpu").some10;
    out->psi_memory = mica_pressure_memory(sysroot).some10;
    out->psi_io = mica_pressure_read(sysroot, "io").some10;
    read_battery(sysroot, out);
    read_energy(sysroot, out);
}
