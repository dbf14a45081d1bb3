#include "device/pressure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cgroup.h"

/** The number after "key=" in the line that begins with `line`; NAN if there is none from 0 to 100. */
static double field(const char *text, const char *line, const char *key)
{
    const char *at = strstr(text, line), *end = at ? at + strcspn(at, "\n") : NULL;
    const char *found = at ? strstr(at, key) : NULL;
    if (!found || found > end)
        return NAN;
    char *stop;
    double value = strtod(found + strlen(key), &stop);
    return stop > found + strlen(key) && value >= 0.0 && value <= 100.0 ? value : NAN;
}

static mica_pressure read_file(const char *sysroot, const char *path)
{
    char text[512];
    if (!mica_sysfile_read(sysroot, path, text, sizeof text))
        return (mica_pressure){NAN, NAN, NAN};
    return (mica_pressure){field(text, "some ", "avg10="), field(text, "full ", "avg10="), field(text, "some ", "avg60=")};
}

mica_pressure mica_pressure_read(const char *sysroot, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/pressure/%.20s", name);
    return read_file(sysroot, path);
}

/** Takes the first group with a file: the process's own, or the nearest above it. The root has none, but /proc's. */
static bool visit_pressure(void *user, const char *sysroot, const char *folder)
{
    char path[MICA_SYSPATH_MAX];
    mica_pressure *own = user;
    int n = snprintf(path, sizeof path, "%s/memory.pressure", folder);
    if (n > 0 && (size_t)n < sizeof path)
        *own = read_file(sysroot, path);
    return !isnan(own->some10);
}

mica_pressure mica_pressure_memory(const char *sysroot)
{
    mica_pressure all = mica_pressure_read(sysroot, "memory"), own = {NAN, NAN, NAN};
    mica_cgroup_walk(sysroot, MICA_CGROUP_V2, visit_pressure, &own);
    return (mica_pressure){fmax(all.some10, own.some10), fmax(all.full10, own.full10), fmax(all.some60, own.some60)};
}

static bool visit_stops(void *user, const char *sysroot, const char *folder)
{
    char path[MICA_SYSPATH_MAX], text[4096];
    int64_t *sum = user, value;
    int n = snprintf(path, sizeof path, "%s/cpu.stat", folder);
    if (n < 0 || (size_t)n >= sizeof path || !mica_sysfile_read(sysroot, path, text, sizeof text))
        return false;
    const char *at = strstr(text, "nr_throttled ");
    if (at && mica_text_int(at + strlen("nr_throttled "), &value, NULL) && value >= 0 && value < INT64_MAX / 4096)
        *sum = (*sum < 0 ? 0 : *sum) + value;
    return false;
}

int64_t mica_quota_stops(const char *sysroot)
{
    int64_t sum = -1;
    mica_cgroup_walk(sysroot, MICA_CGROUP_V2, visit_stops, &sum);
    mica_cgroup_walk(sysroot, MICA_CGROUP_V1_CPU, visit_stops, &sum);
    return sum;
}
