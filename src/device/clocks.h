/* clocks.h - how fast the CPUs run, may run and could run. Reads /sys under a root prefix; changes nothing. Called by device.c
 * and probe. */
#ifndef MICA_DEVICE_CLOCKS_H
#define MICA_DEVICE_CLOCKS_H
#include "device/cpus.h"

/** In kHz; -1 for what is missing or no clock. */
typedef struct mica_clock {
    int32_t now, allowed, highest; /* scaling_cur_freq, scaling_max_freq, cpuinfo_max_freq */
} mica_clock;

/** Of one CPU. */
mica_clock mica_clock_read(const char *sysroot, int cpu);

/** Over the CPUs of a set that tell them, weighed by their capacity: the clock now, and the one allowed, as parts of the
 * highest, 0..1. NAN if none tells. */
void mica_clocks_read(const char *sysroot, const mica_cpu_set *cpus, double *now, double *allowed);

/** Events of throttling that the processor counted (x86), of the first 64 CPUs of the set; -1 if it counts none. */
int64_t mica_clocks_throttle_count(const char *sysroot, const mica_cpu_set *cpus);

#endif
