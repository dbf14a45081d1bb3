#include "device/cpus.h"
#include "device/cgroup.h"
#include "device/cpulist.h"
#include "base/map.h"
#include "device/sysfile.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* A list of 8192 CPUs in the worst form, "0,2,4,...", takes 20 KB; real ones a line. */
enum { LIST_BYTES = 24 * 1024, STATUS_BYTES = 64 * 1024 };

/* ---- Which CPUs ------------------------------------------------------------------------------------------------------ */

/** Reads a file that holds one CPU list. False if it is missing, damaged or empty. */
static bool read_list(const char *sysroot, const char *path, mica_cpu_bits *bits)
{
    char text[LIST_BYTES];
    return mica_sysfile_read(sysroot, path, text, sizeof text) && mica_cpulist_parse(text, bits) &&
           mica_cpu_bits_count(bits) > 0;
}

static bool read_online(const char *sysroot, mica_cpu_bits *bits)
{
    return read_list(sysroot, "/sys/devices/system/cpu/online", bits) ||
           read_list(sysroot, "/sys/devices/system/cpu/present", bits) ||
           read_list(sysroot, "/sys/devices/system/cpu/possible", bits);
}

/** The mask as the kernel answers it, for a system whose /proc cannot be read. */
static bool ask_affinity(mica_cpu_bits *bits)
{
    cpu_set_t mask[MICA_MAX_CPU_ID / CPU_SETSIZE];
    memset(bits, 0, sizeof *bits);
    if (sched_getaffinity(0, sizeof mask, mask) != 0)
        return false;
    for (size_t id = 0; id < MICA_MAX_CPU_ID; id++)
        if (CPU_ISSET_S(id, sizeof mask, mask))
            mica_cpu_bits_set(bits, (int)id);
    return true;
}

static bool read_affinity(const char *sysroot, mica_cpu_bits *bits)
{
    char text[STATUS_BYTES];
    const char *list = NULL;
    if (mica_sysfile_read(sysroot, "/proc/self/status", text, sizeof text))
        list = mica_text_field(text, "Cpus_allowed_list");
    if (list && mica_cpulist_parse(list, bits) && mica_cpu_bits_count(bits) > 0)
        return true;
    return (!sysroot || !*sysroot) && ask_affinity(bits);
}

/** Takes the first cpuset found on the way up. Only that one: it is what the kernel enforces, and an ancestor's effective
 * set excludes CPUs that it gave away to the child as a partition. */
static bool visit_cpuset(void *user, const char *sysroot, const char *folder)
{
    static const char *const names[] = {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[MICA_SYSPATH_MAX];
        int n = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (n > 0 && (size_t)n < sizeof path && read_list(sysroot, path, user))
            return true;
    }
    return false;
}

static void apply_cpuset(const char *sysroot, mica_cgroup_kind kind, mica_cpu_bits *usable)
{
    mica_cpu_bits cpuset = {{0}}, both = *usable;
    mica_cgroup_walk(sysroot, kind, visit_cpuset, &cpuset);
    /* An empty meeting means that the folder found is not ours (the host's root seen from a container): no limit. */
    if (mica_cpu_bits_and(&both, &cpuset) > 0)
        *usable = both;
}

/** What is left of the online CPUs; *n_online is their number before. */
static void find_usable(const char *sysroot, mica_cpu_bits *usable, int *n_online)
{
    mica_cpu_bits allowed;
    bool online_known = read_online(sysroot, usable);
    if (!online_known)
        memset(usable, 0, sizeof *usable);
    bool allowed_known = read_affinity(sysroot, &allowed);
    if (!online_known && allowed_known)
        *usable = allowed;
    *n_online = mica_cpu_bits_count(usable);
    if (allowed_known)
        mica_cpu_bits_and(usable, &allowed);
    apply_cpuset(sysroot, MICA_CGROUP_V2, usable);
    apply_cpuset(sysroot, MICA_CGROUP_V1_CPUSET, usable);
}

/* ---- What each is ---------------------------------------------------------------------------------------------------- */

/** The lowest sibling's number; the CPU's own if the lists are missing, damaged, or do not name the CPU itself. */
static int read_core(const char *sysroot, int id)
{
    static const char *const names[] = {"thread_siblings_list", "core_cpus_list"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        mica_cpu_bits siblings;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", id, names[i]);
        if (read_list(sysroot, path, &siblings) && mica_cpu_bits_has(&siblings, id))
            return mica_cpu_bits_next(&siblings, 0);
    }
    return id;
}

/** Reads one number a CPU into cpu[].capacity; false unless all usable CPUs have a sane one: half-known speeds would make
 * the unknown half look fast or slow. */
static bool read_speeds(const char *sysroot, const char *name, int64_t largest, mica_cpu_set *set)
{
    for (int i = 0; i < set->n; i++) {
        char path[128];
        int64_t value;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", set->cpu[i].id, name);
        if (!mica_sysfile_int(sysroot, path, &value) || value < 1 || value > largest)
            return false;
        set->cpu[i].capacity = (int)value;
    }
    return set->n > 0;
}

static void read_capacities(const char *sysroot, mica_cpu_set *set)
{
    /* The kernel scales cpu_capacity to 1024; a THz in kHz is beyond any clock. */
    if (read_speeds(sysroot, "cpu_capacity", 1 << 16, set))
        return;
    set->from_frequency = read_speeds(sysroot, "cpufreq/cpuinfo_max_freq", 1000000000, set);
    int64_t fastest = 1;
    for (int i = 0; i < set->n; i++)
        fastest = set->cpu[i].capacity > fastest ? set->cpu[i].capacity : fastest;
    for (int i = 0; i < set->n; i++)
        set->cpu[i].capacity = set->from_frequency ? (int)(set->cpu[i].capacity * INT64_C(1024) / fastest) : 1024;
}

/* ---- Quota ----------------------------------------------------------------------------------------------------------- */

static void lower_quota(mica_cpu_set *set, int64_t quota, int64_t period, const char *source)
{
    if (quota <= 0 || period <= 0)
        return;
    double cpus = (double)quota / (double)period;
    if (set->quota > 0 && cpus >= set->quota)
        return;
    set->quota = cpus;
    snprintf(set->quota_source, sizeof set->quota_source, "%s", mica_path_tail(source));
}

/** cpu.max: "QUOTA PERIOD" in µs, "max PERIOD" for none; the period may be left out and is 100 ms then. */
static bool visit_quota_v2(void *user, const char *sysroot, const char *folder)
{
    char path[MICA_SYSPATH_MAX], text[256];
    const char *rest;
    int64_t quota, period = 100000;
    int n = snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (n > 0 && (size_t)n < sizeof path && mica_sysfile_read(sysroot, path, text, sizeof text) &&
        mica_text_int(text, &quota, &rest) && (rest[strspn(rest, " \t\r\n")] == '\0' || mica_text_int(rest, &period, NULL)))
        lower_quota(user, quota, period, path);
    return false;
}

/** cpu.cfs_quota_us is -1 for none. */
static bool visit_quota_v1(void *user, const char *sysroot, const char *folder)
{
    char path[MICA_SYSPATH_MAX];
    int64_t quota, period;
    int n = snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (n < 0 || (size_t)n >= sizeof path || !mica_sysfile_int(sysroot, path, &period))
        period = 100000; /* the kernel's default */
    n = snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (n > 0 && (size_t)n < sizeof path && mica_sysfile_int(sysroot, path, &quota))
        lower_quota(user, quota, period, path);
    return false;
}

mica_status mica_cpus_read(const char *sysroot, mica_cpu_set *set, mica_error *err)
{
    mica_status status = mica_sysroot_check(sysroot, err);
    if (status != MICA_OK)
        return status;
    memset(set, 0, sizeof *set);
    mica_cpu_bits usable;
    find_usable(sysroot, &usable, &set->n_online);
    for (int id = mica_cpu_bits_next(&usable, 0); id >= 0 && set->n < MICA_MAX_CPUS; id = mica_cpu_bits_next(&usable, id + 1))
        set->cpu[set->n++] = (mica_cpu){.id = id, .core = read_core(sysroot, id)};
    read_capacities(sysroot, set);
    mica_cgroup_walk(sysroot, MICA_CGROUP_V2, visit_quota_v2, set);
    mica_cgroup_walk(sysroot, MICA_CGROUP_V1_CPU, visit_quota_v1, set);
    return MICA_OK;
}
