/* host.h - what a record says of the machine and of the model's file. Called by measure.c. */
#ifndef MICA_BENCH_HOST_H
#define MICA_BENCH_HOST_H
#include <jansson.h>

#include "base/error.h"

/** CPU model, CPUs that may be used, memory, kernel, system: an object, the caller's. No names of hosts or users. */
json_t *mica_host_describe(const char *sysroot);

/** A text that is the same for the same kind of machine: the key of idle temperatures. */
void mica_host_key(const json_t *host, char out[160]);

/** SHA-256 of a file as 64 hexadecimal digits. `stop` (may be NULL) ends it with MICA_CANCELLED. */
mica_status mica_host_sha256(const char *path, bool (*stop)(void *user), void *user, char out[65], mica_error *err);

#endif
