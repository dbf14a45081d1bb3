/* pin.h - binds threads to CPUs, through the kernel's affinity masks. CPU numbers may exceed 1023. Called by pool.c. */
#ifndef MICA_BASE_PIN_H
#define MICA_BASE_PIN_H
#include <stdbool.h>
#include <stddef.h>

/** A set of CPUs, a bit each. */
typedef struct mica_pin_mask {
    _Alignas(size_t) unsigned char bits[8192 / 8]; /* the kernel's largest NR_CPUS */
    bool known;
} mica_pin_mask;

/** The CPUs that the calling thread may run on; not known if the system refuses. */
void mica_pin_get(mica_pin_mask *mask);
/** Lets the calling thread run on those again. */
void mica_pin_set(const mica_pin_mask *mask);

/** Binds the calling thread to one CPU; false if the system refuses. */
bool mica_pin_self(int cpu);

/** Moves the calling thread to a CPU and gives it its own mask back at once: it stays there until the scheduler has a
 * reason to move it. Costs a few nanoseconds if it runs there already. False if the system refuses. */
bool mica_pin_visit(int cpu);

/** How many CPUs the calling thread may run on; at least 1. */
int mica_pin_count(void);

#endif
