/* bench_runtime.h - which runtimes --runtime names, and where their adapters are. Called by cmd_bench.c and cmd_compare.c.
 *
 * A runtime is "mica" (our engine, in this process), the name of a folder in --adapters DIR (else in share/mica/adapters), or a
 * path to an adapter's folder; with =FILE behind it, a model of its own. */
#ifndef MICA_PROGRAMS_BENCH_RUNTIME_H
#define MICA_PROGRAMS_BENCH_RUNTIME_H
#include "load.h"

enum { MICA_RUNTIMES_MAX = 16 };

typedef struct mica_runtime {
    char adapter[4096], model[4096]; /* model: absolute, where it is a file */
} mica_runtime;

typedef struct mica_runtimes {
    size_t n;
    mica_runtime item[MICA_RUNTIMES_MAX];
} mica_runtimes;

/** Of --runtime, names between commas. `model` is the file of those that name none. Returns an exit code. */
int mica_runtimes_find(const mica_opts *o, const char *model, mica_runtimes *out);

#endif
