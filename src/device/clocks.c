#include "device/clocks.h"

#include <math.h>
#include <stdio.h>

#include "device/sysfile.h"

enum { COUNTED_CPUS = 64, HIGHEST_KHZ = 100000000 };

static int32_t read_khz(const char *sysroot, const char *folder, const char *name)
{
    int64_t khz;
    return mica_sysfile_int_in(sysroot, folder, name, &khz) && khz > 0 && khz < HIGHEST_KHZ ? (int32_t)khz : -1;
}

mica_clock mica_clock_read(const char *sysroot, int cpu)
{
    char folder[80];
    snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d/cpufreq", cpu);
    return (mica_clock){.now = read_khz(sysroot, folder, "scaling_cur_freq"),
                        .allowed = read_khz(sysroot, folder, "scaling_max_freq"),
                        .highest = read_khz(sysroot, folder, "cpuinfo_max_freq")};
}

/** Boost clocks are above what cpuinfo_max_freq says on some machines: that is 1, too. */
static void add_part(int32_t clock, int32_t highest, int capacity, double *sum, double *weight)
{
    if (clock < 0 || highest < 0)
        return;
    *sum += capacity * fmin((double)clock / (double)highest, 1.0);
    *weight += capacity;
}

void mica_clocks_read(const char *sysroot, const mica_cpu_set *cpus, double *now, double *allowed)
{
    double sum_now = 0, weight_now = 0, sum_allowed = 0, weight_allowed = 0;
    for (int i = 0; i < cpus->n; i++) {
        mica_clock c = mica_clock_read(sysroot, cpus->cpu[i].id);
        add_part(c.now, c.highest, cpus->cpu[i].capacity, &sum_now, &weight_now);
        add_part(c.allowed, c.highest, cpus->cpu[i].capacity, &sum_allowed, &weight_allowed);
    }
    *now = weight_now > 0 ? sum_now / weight_now : NAN;
    *allowed = weight_allowed > 0 ? sum_allowed / weight_allowed : NAN;
}

int64_t mica_clocks_throttle_count(const char *sysroot, const mica_cpu_set *cpus)
{
    int64_t sum = -1;
    for (int i = 0; i < cpus->n && i < COUNTED_CPUS; i++) {
        static const char *const names[] = {"core_throttle_count", "package_throttle_count"};
        char folder[80];
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%d/thermal_throttle", cpus->cpu[i].id);
        for (size_t k = 0; k < 2; k++) {
            int64_t count;
            if (mica_sysfile_int_in(sysroot, folder, names[k], &count) && count >= 0 && count < INT64_MAX / 256)
                sum = (sum < 0 ? 0 : sum) + count;
        }
    }
    return sum;
}
