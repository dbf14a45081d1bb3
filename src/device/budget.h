/* budget.h - how much memory a process may take: what is usable, the budget in it, and the hard limit that no budget exceeds.
 * Reads /proc and cgroup files under a root prefix; changes nothing. Called by session/fit.c and serve. docs/memory.md is its
 * page. */
#ifndef MICA_DEVICE_BUDGET_H
#define MICA_DEVICE_BUDGET_H
#include "base/error.h"

/* The parts of what is usable that are taken without being asked. The rest is for the system, for other programs, and for what
 * this one takes beside its models: at 70 % phones begin to end what is in the background. */
#define MICA_BUDGET_PERCENT 55
#define MICA_LIMIT_PERCENT  70

#define MICA_BOUND_SOURCE 128

typedef struct mica_memory_bounds {
    int64_t usable;                 /* bytes; -1: nothing says */
    int64_t budget, limit;          /* bytes, budget <= limit; INT64_MAX: none, as nothing says what is usable */
    char source[MICA_BOUND_SOURCE]; /* what decided `usable`: "MemTotal of /proc/meminfo"; "" if nothing did */
} mica_memory_bounds;

/** The least of MemTotal, the limits of all memory cgroups up to the root, this process's limits of address space and data, and
 * `app_limit` (0: none); and of that budget and limit: bytes, or MICA_PERCENT(); 0: the defaults above. MICA_INVALID_ARGUMENT
 * for a percentage that is none, and for a budget above the limit. */
mica_status mica_memory_bounds_read(const char *sysroot, int64_t app_limit, int64_t budget, int64_t limit,
                                    mica_memory_bounds *out, mica_error *err);

/** "1000 bytes", "12.5 MiB", "3.25 GiB". */
void mica_memory_text(int64_t bytes, char out[32]);

#endif
