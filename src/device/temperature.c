#include "device/temperature.h"

#include <stdio.h>
#include <string.h>

#include "device/sysfile.h"

/* Zones of batteries, modems and chargers are of no interest, and "acpitz" is a constant on many boards. */
static const char *const zone_types[] = {"cpu", "soc", "x86_pkg_temp", "TCPU", "cluster"};
static const char *const hwmon_names[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu"};

/* Phones have up to about 100 zones; a hwmon chip is a device of its own. */
enum { ZONES = 128, CHIPS = 32 };

static bool read_name(const char *sysroot, const char *path, char *name, size_t size)
{
    if (!mica_sysfile_read(sysroot, path, name, size))
        return false;
    name[strcspn(name, "\r\n")] = '\0';
    for (char *c = name; *c; c++) /* a fake tree may hold anything */
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
    return true;
}

/* The file is in thousandths of a degree. A sensor that is off reports 0 or something absurd. */
static void consider(const char *sysroot, const char *path, const char *name, mica_temperature *best, bool *found)
{
    int64_t value;
    if (!mica_sysfile_int(sysroot, path, &value) || value <= -40000 || value == 0 || value >= 150000)
        return;
    if (*found && (double)value / 1000.0 <= best->celsius)
        return;
    *found = true;
    best->celsius = (double)value / 1000.0;
    snprintf(best->source, sizeof best->source, "%.31s", name);
}

static bool read_zones(const char *sysroot, mica_temperature *out)
{
    bool found = false;
    for (int i = 0; i < ZONES; i++) {
        char path[64], name[64];
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/type", i);
        if (!read_name(sysroot, path, name, sizeof name))
            continue;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%d/temp", i);
        for (size_t k = 0; k < sizeof zone_types / sizeof *zone_types; k++)
            if (strncmp(name, zone_types[k], strlen(zone_types[k])) == 0)
                consider(sysroot, path, name, out, &found);
    }
    return found;
}

static bool read_chips(const char *sysroot, mica_temperature *out)
{
    bool found = false;
    for (int i = 0; i < CHIPS; i++) {
        char path[64], name[64];
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/name", i);
        if (!read_name(sysroot, path, name, sizeof name))
            continue;
        snprintf(path, sizeof path, "/sys/class/hwmon/hwmon%d/temp1_input", i);
        for (size_t k = 0; k < sizeof hwmon_names / sizeof *hwmon_names; k++)
            if (strcmp(name, hwmon_names[k]) == 0)
                consider(sysroot, path, name, out, &found);
    }
    return found;
}

bool mica_temperature_read(const char *sysroot, mica_temperature *out)
{
    *out = (mica_temperature){.celsius = 0.0};
    return read_zones(sysroot, out) || read_chips(sysroot, out);
}
