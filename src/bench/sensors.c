#include "bench/sensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/sysfile.h"

enum { COOLING = 64, SUPPLIES = 8, FILE_BYTES = 65536 };

static bool read_word(const char *sysroot, const char *path, char *out, size_t size)
{
    char text[256];
    if (!mica_sysfile_read(sysroot, path, text, sizeof text))
        return false;
    text[strcspn(text, "\r\n")] = '\0';
    for (char *c = text; *c; c++) /* a fake tree may hold anything */
        if (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\')
            *c = '?';
    snprintf(out, size, "%.*s", (int)size - 1, text);
    return *out != '\0';
}

/* ---- Heat ---- */

/* A sensor that is off reports 0, -1 or something absurd: no reading. */
static void read_zones(const char *sysroot, mica_sensors *s)
{
    for (int i = 0; i < MICA_ZONES; i++) {
        char path[80], type[24];
        int64_t value;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/temp", i);
        if (!mica_sysfile_int(sysroot, path, &value) || value <= -40000 || value == 0 || value == -1 || value >= 150000)
            continue;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/type", i);
        if (!read_word(sysroot, path, type, sizeof type))
            snprintf(type, sizeof type, "zone");
        s->zone[s->n_zones].celsius = (double)value / 1000.0;
        snprintf(s->zone[s->n_zones++].name, sizeof s->zone[0].name, "%s#%d", type, i);
    }
}

static bool is_processor(const char *type)
{
    static const char *const words[] = {"Processor", "cpufreq", "cpu", "intel_powerclamp"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(type, words[i]))
            return true;
    return false;
}

static void read_cooling(const char *sysroot, mica_sensors *s)
{
    s->cooling_active = -1;
    for (int i = 0; i < COOLING; i++) {
        char path[80], type[64];
        int64_t state;
        snprintf(path, sizeof path, "/sys/class/thermal/cooling_device%d/type", i);
        if (!read_word(sysroot, path, type, sizeof type) || !is_processor(type))
            continue;
        snprintf(path, sizeof path, "/sys/class/thermal/cooling_device%d/cur_state", i);
        if (!mica_sysfile_int(sysroot, path, &state))
            continue;
        s->n_cooling++;
        s->cooling_active = (s->cooling_active < 0 ? 0 : s->cooling_active) + (state > 0);
    }
}

static void read_clocks(const char *sysroot, mica_sensors *s)
{
    for (int i = 0; i < MICA_CLOCKS; i++) {
        char path[96];
        int64_t khz;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i);
        if (mica_sysfile_int(sysroot, path, &khz) && khz > 0 && khz < 100000000)
            s->mhz[s->n_clocks++] = (int32_t)(khz / 1000);
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

static double read_pressure(const char *sysroot, const char *name, char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/pressure/%s", name);
    const char *at = mica_sysfile_read(sysroot, path, text, FILE_BYTES) ? strstr(text, "some avg10=") : NULL;
    return at ? strtod(at + strlen("some avg10="), NULL) : NAN;
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
    static const char *const names[] = {"BAT0", "BAT1", "battery", "macsmc-battery"};
    s->battery_percent = NAN;
    for (size_t i = 0; i < sizeof names / sizeof *names && !*s->battery; i++) {
        char path[96];
        int64_t percent;
        snprintf(path, sizeof path, "/sys/class/power_supply/%s/status", names[i]);
        if (!read_word(sysroot, path, s->battery, sizeof s->battery))
            continue;
        snprintf(path, sizeof path, "/sys/class/power_supply/%s/capacity", names[i]);
        if (mica_sysfile_int(sysroot, path, &percent) && percent >= 0 && percent <= 100)
            s->battery_percent = (double)percent;
    }
}

/* Package domains only: cores and memory controllers below them are in their count. */
static void read_energy(const char *sysroot, mica_sensors *s)
{
    for (int i = 0; i < MICA_COUNTERS; i++) {
        char path[96];
        int64_t value, range;
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/energy_uj", i);
        if (!mica_sysfile_int(sysroot, path, &value) || value < 0)
            continue;
        snprintf(path, sizeof path, "/sys/class/powercap/intel-rapl:%d/max_energy_range_uj", i);
        s->energy_range_uj[s->n_energy] = mica_sysfile_int(sysroot, path, &range) && range > 0 ? range : 0;
        s->energy_uj[s->n_energy++] = value;
    }
}

void mica_sensors_read(const char *sysroot, mica_sensors *out)
{
    char text[FILE_BYTES];
    memset(out, 0, sizeof *out);
    read_zones(sysroot, out);
    read_cooling(sysroot, out);
    read_clocks(sysroot, out);
    read_stat(sysroot, out, text);
    read_swap(sysroot, out, text);
    out->psi_cpu = read_pressure(sysroot, "cpu", text);
    out->psi_memory = read_pressure(sysroot, "memory", text);
    out->psi_io = read_pressure(sysroot, "io", text);
    read_battery(sysroot, out);
    read_energy(sysroot, out);
}
