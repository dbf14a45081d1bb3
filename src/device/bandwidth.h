/* bandwidth.h - how many bytes a second a team of threads reads from memory. Called by bench/machine.c and probe. */
#ifndef MICA_DEVICE_BANDWIDTH_H
#define MICA_DEVICE_BANDWIDTH_H
#include "base/pool.h"

/** Reads a buffer of `bytes` (0: 512 MiB, several times the largest caches) again and again: at most `rounds`, until `seconds`
 * have passed, but at least 3 times. The rates in bytes a second, sorted, the least first, to rates[0..*n), which has room for
 * `rounds`. */
mica_status mica_bandwidth_read(mica_pool *pool, size_t bytes, int32_t rounds, double seconds, double *rates, int32_t *n,
                                mica_error *err);

/** The same for memory that is there, such as a mapped file: `data` at a multiple of 64 bytes, read once before. */
mica_status mica_bandwidth_read_from(mica_pool *pool, const void *data, size_t bytes, int32_t rounds, double seconds, double *rates, int32_t *n,
                                     mica_error *err);

#endif
