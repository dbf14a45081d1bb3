/* samples.h - the state of the machine and of the measured process, once a second while a run lasts: a thread of its own that
 * wakes, reads (well below a millisecond) and sleeps. Owns the thread and the samples.
 *
 * A sample is a JSON object: t_ns, cpu_busy (CPUs), cpu_process, cpu_other (what neither the process nor we took), rss_bytes,
 * and of temp_c, mhz, cooling, psi, swap_pages, battery, battery_percent, energy_uj (with energy_range_uj and energy_domains), battery_w,
 * battery_j, battery_as, battery_v those that the machine tells. Members may be added; readers pass over what they do not know. Called by measure.c. */
#ifndef MICA_BENCH_SAMPLES_H
#define MICA_BENCH_SAMPLES_H
#include <jansson.h>

#include "base/error.h"

typedef struct mica_sampler_thread mica_sampler_thread;

/** `pid` -1: no process of this machine. Interval in seconds, above 0. */
mica_status mica_samples_start(const char *sysroot, int64_t pid, double interval_s, mica_sampler_thread **out, mica_error *err);
/** Takes the samples since the last call, an array; the caller's. NULL only without memory. From any thread. */
json_t *mica_samples_take(mica_sampler_thread *s);
/** Ends the thread; a last sample is taken. Samples not taken are in *rest (may be NULL), the caller's. Frees. NULL is fine. */
void mica_samples_stop(mica_sampler_thread *s, json_t **rest);

#endif
