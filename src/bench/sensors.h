/* sensors.h - what the machine tells about its state at one moment, as records keep it: zones, cooling, clocks, battery, load,
 * energy counters. The readers are those of src/device; here is what of theirs goes into a sample. What is absent is not there
 * in the result; nothing is estimated. Called by samples.c (each second) and cooldown.c. */
#ifndef MICA_BENCH_SENSORS_H
#define MICA_BENCH_SENSORS_H
#include <stdbool.h>
#include <stdint.h>

enum { MICA_ZONES = 128, MICA_CLOCKS = 64, MICA_COUNTERS = 8 };

typedef struct mica_zone {
    char name[32]; /* type and number: "x86_pkg_temp#2" */
    double celsius;
} mica_zone;

typedef struct mica_sensors {
    int n_zones;
    mica_zone zone[MICA_ZONES]; /* only readings that can be true: above -40 and below 150 degrees, and not 0 or -1 */
    int n_cooling,
        cooling_active; /* cooling devices of the processor; how many of them are above state 0. -1 active: none known */
    int n_clocks;
    int32_t mhz[MICA_CLOCKS];           /* scaling_cur_freq of each CPU that tells it */
    int64_t busy_ticks, total_ticks;    /* /proc/stat, all CPUs; -1 */
    int64_t swap_pages;                 /* pswpin + pswpout of /proc/vmstat; -1 */
    double psi_cpu, psi_memory, psi_io; /* "some avg10" of /proc/pressure, in %; NAN */
    char battery[16];                   /* status of the system battery: "Discharging"; "" if there is none */
    double battery_percent;             /* NAN */
    double battery_w; /* power out of the battery where it is the device's: it discharges, on no other power; NAN */
    double battery_j, battery_as, battery_v; /* energy and charge left in it, and its voltage, in the same case; NAN */
    int n_energy;                            /* RAPL counters that add up: packages, dram */
    char energy_name[MICA_COUNTERS][24];
    int64_t energy_uj[MICA_COUNTERS], energy_range_uj[MICA_COUNTERS];
} mica_sensors;

void mica_sensors_read(const char *sysroot, mica_sensors *out);

#endif
