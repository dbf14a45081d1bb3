/* rapl.h - the energy counters of Intel and AMD processors, as the kernel's powercap class shows them. Reads /sys under a root
 * prefix; changes nothing. Called by energy.c and bench/sensors.
 *
 * The domains overlap: a package holds its cores, uncore and, on most client parts, not the memory; psys holds the package.
 * Only what does not overlap is counted: the packages, and dram beside them; psys where there is no package. Since 2020 only
 * root may read the counters (CVE-2020-8694). */
#ifndef MICA_DEVICE_RAPL_H
#define MICA_DEVICE_RAPL_H
#include <stdbool.h>
#include <stdint.h>

enum { MICA_RAPL_DOMAINS = 16 };

typedef struct mica_rapl_domain {
    char name[24];     /* "package-0", "dram", "psys" */
    char zone[40];     /* "intel-rapl:0:2" */
    bool counted;      /* it is one of those that are added up */
    int64_t uj, range; /* the counter in microjoules and where it wraps; -1: unknown */
} mica_rapl_domain;

typedef struct mica_rapl {
    int n;
    bool denied; /* there are counters, and this user may not read them */
    mica_rapl_domain domain[MICA_RAPL_DOMAINS];
} mica_rapl;

void mica_rapl_read(const char *sysroot, mica_rapl *out);

/** How far a counter went in microjoules: across one wrap at most. -1 if that cannot be told. */
int64_t mica_rapl_step(int64_t before, int64_t after, int64_t range);

#endif
