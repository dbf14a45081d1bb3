/* manifest.h - what adapters/NAME/manifest.json says: how the adapter is started, and its time limits. Called by
 * adapter_proc.c. */
#ifndef MICA_BENCH_MANIFEST_H
#define MICA_BENCH_MANIFEST_H
#include "bench/adapter.h"

#define MICA_MANIFEST_WORDS 16

typedef struct mica_manifest {
    char name[64];
    char *argv[MICA_MANIFEST_WORDS + 1]; /* argv[0] made a path where it began with "./"; freed by mica_manifest_free() */
    mica_adapter_limits limits;          /* those given, with the manifest's changes */
} mica_manifest;

mica_status mica_manifest_read(const char *folder, const mica_adapter_limits *limits, mica_manifest *out, mica_error *err);
void mica_manifest_free(mica_manifest *manifest);

#endif
