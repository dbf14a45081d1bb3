/* governor.h - what a session or batch asks of its governor between two steps. Owned by the caller of mica_governor_new(); used
 * by one thread. Called by session/govern.c. */
#ifndef MICA_DEVICE_GOVERNOR_H
#define MICA_DEVICE_GOVERNOR_H
#include "device/control.h"

/** A step was computed: `n` tokens of as many replies (0: of a prompt, or of a draft, whose rate says nothing) in `busy_ns`. A
 * few nanoseconds, but once in a period, when the device is read and a decision is made. */
void mica_governor_note(mica_governor *g, int64_t now_ns, int32_t n, int64_t busy_ns);

/** What holds for the next step. Borrowed until the next call. */
const mica_governor_output *mica_governor_next(mica_governor *g);

/** The sets of cores that it chooses from (control.h); how many. Borrowed. */
int32_t mica_governor_levels(const mica_governor *g, const mica_level **levels);

/** The CPUs that n_fast + n_slow threads are to be pinned to, -1: wherever the system puts them. */
void mica_governor_cpus(const mica_governor *g, const mica_governor_output *out, int32_t cpus[MICA_MAX_THREADS]);

#endif
