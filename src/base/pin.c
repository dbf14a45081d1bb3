#include "base/pin.h"

#include <sched.h>
#include <stddef.h>

/* The kernel's largest NR_CPUS; sched_getaffinity() fails on a mask shorter than the kernel's own. */
enum { MAX_CPU_ID = 8192 };

/** Sets the calling thread's mask to one CPU. sched_* with pid 0 is the calling thread, and exists on Android too, where
 * pthread_setaffinity_np() does not. */
static bool set_one(int cpu)
{
    if (cpu < 0 || cpu >= MAX_CPU_ID)
        return false;
    size_t bytes = CPU_ALLOC_SIZE(MAX_CPU_ID);
    cpu_set_t mask[MAX_CPU_ID / CPU_SETSIZE];
    CPU_ZERO_S(bytes, mask);
    CPU_SET_S((size_t)cpu, bytes, mask);
    return sched_setaffinity(0, bytes, mask) == 0;
}

void mica_pin_get(mica_pin_mask *mask)
{
    mask->known = sched_getaffinity(0, sizeof mask->bits, (cpu_set_t *)(void *)mask->bits) == 0;
}

void mica_pin_set(const mica_pin_mask *mask)
{
    if (mask->known)
        (void)sched_setaffinity(0, sizeof mask->bits, (const cpu_set_t *)(const void *)mask->bits);
}

bool mica_pin_self(int cpu) { return set_one(cpu); }

bool mica_pin_visit(int cpu)
{
    if (sched_getcpu() == cpu)
        return true;
    size_t bytes = CPU_ALLOC_SIZE(MAX_CPU_ID);
    cpu_set_t own[MAX_CPU_ID / CPU_SETSIZE];
    CPU_ZERO_S(bytes, own);
    if (sched_getaffinity(0, bytes, own) != 0 || !set_one(cpu))
        return false;
    return sched_setaffinity(0, bytes, own) == 0;
}

int mica_pin_count(void)
{
    size_t bytes = CPU_ALLOC_SIZE(MAX_CPU_ID);
    cpu_set_t own[MAX_CPU_ID / CPU_SETSIZE];
    CPU_ZERO_S(bytes, own);
    if (sched_getaffinity(0, bytes, own) != 0)
        return 1;
    int n = CPU_COUNT_S(bytes, own);
    return n > 0 ? n : 1;
}
