/* pressure.h - how long tasks waited for memory, CPUs or disks (PSI), and how often control groups stopped this process. Reads
 * /proc and cgroup files under a root prefix; changes nothing. Called by device.c and bench/sensors. */
#ifndef MICA_DEVICE_PRESSURE_H
#define MICA_DEVICE_PRESSURE_H
#include <stdint.h>

/** Percent of the last 10 and 60 seconds; NAN: not told. */
typedef struct mica_pressure {
    double some10, full10, some60;
} mica_pressure;

/** /proc/pressure/NAME ("memory", "cpu", "io"). */
mica_pressure mica_pressure_read(const char *sysroot, const char *name);

/** The worse of the machine's memory pressure and that of this process's own group (memory.pressure): a group that is full
 * suffers alone. */
mica_pressure mica_pressure_memory(const char *sysroot);

/** nr_throttled of cpu.stat, of all groups that hold this process: periods in which a quota stopped it. -1: not told. */
int64_t mica_quota_stops(const char *sysroot);

#endif
