/* cpus.h - which CPUs this process may and should use. Reads /proc and /sys under a root prefix; changes nothing.
 * mica_thread_plan_default() and mica_thread_plan_all() of mica.h are implemented here.
 */
#ifndef MICA_DEVICE_CPUS_H
#define MICA_DEVICE_CPUS_H
#include "base/error.h"

#define MICA_MAX_CPUS 1024

typedef struct mica_cpu {
    int id;
    int capacity; /* cpu_capacity, or derived from cpuinfo_max_freq; 1024 for the fastest; 1024 if unknown */
    int core;     /* CPUs with the same value share a physical core: the lowest sibling's id */
} mica_cpu;

/** CPUs that are online and allowed by the affinity mask (proc/self/status Cpus_allowed_list) and the cpuset cgroup. */
typedef struct mica_cpu_set {
    int n;        /* 0 if nothing could be found out */
    int n_online; /* before affinity and cpuset; n if unknown */
    mica_cpu cpu[MICA_MAX_CPUS]; /* by id */
    bool from_frequency;         /* capacities come from cpuinfo_max_freq, which hides that slow cores also do less a cycle */
    double quota;                /* CPUs that cgroup cpu.max / cfs_quota allows, the least along the path; 0: none */
    char quota_source[160];      /* file that said so, for messages */
} mica_cpu_set;

/** Missing and damaged files count as "unknown", not as errors: only a system root that is no folder is one. Of more than
 * MICA_MAX_CPUS usable CPUs the first ones are taken. */
mica_status mica_cpus_read(const char *sysroot, mica_cpu_set *set, mica_error *err);

/** One CPU of each physical core of a set, the fastest first, then by number; n_fast of them are fast enough to work in one team
 * (thread_plan.c). */
typedef struct mica_core_list {
    int n, n_fast;
    mica_cpu core[MICA_MAX_CPUS];
} mica_core_list;

void mica_cores_find(const mica_cpu_set *set, mica_core_list *cores);

/** What the CPU is called in /proc/cpuinfo; "unknown". */
void mica_cpu_name(const char *sysroot, char out[128]);

#endif
