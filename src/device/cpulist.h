/* cpulist.h - sets of CPU numbers, and the kernel's lists of them ("0-3,8"). Called by cpus.c. */
#ifndef MICA_DEVICE_CPULIST_H
#define MICA_DEVICE_CPULIST_H
#include <stdbool.h>
#include <stdint.h>

/* Numbers beyond the kernel's largest NR_CPUS do not exist; lists that name them are read without them. */
#define MICA_MAX_CPU_ID 8192

typedef struct mica_cpu_bits {
    uint64_t word[MICA_MAX_CPU_ID / 64];
} mica_cpu_bits;

/** Reads a list to the end of its line. An empty list is valid. False (and an empty set) if it is anything else. */
bool mica_cpulist_parse(const char *text, mica_cpu_bits *bits);

void mica_cpu_bits_set(mica_cpu_bits *bits, int id);
bool mica_cpu_bits_has(const mica_cpu_bits *bits, int id);
int mica_cpu_bits_count(const mica_cpu_bits *bits);
/** Lowest member >= from, or -1. */
int mica_cpu_bits_next(const mica_cpu_bits *bits, int from);
/** a = a and b; returns how many remain. */
int mica_cpu_bits_and(mica_cpu_bits *a, const mica_cpu_bits *b);

#endif
