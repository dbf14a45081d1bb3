/* bench_runtime.h - which runtimes --runtime names, and where their adapters are. Called by cmd_bench.c, cmd_compare.c,
 * cmd_campaign.c and cmd_worker.c.
 *
 * A runtime is "mica" (our engine, in this process), the name of a folder in --adapters DIR (else in share/mica/adapters), or a
 * path to an adapter's folder; with =FILE behind it, a model of its own. */
#ifndef MICA_PROGRAMS_BENCH_RUNTIME_H
#define MICA_PROGRAMS_BENCH_RUNTIME_H
#include "bench/adapter.h"
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

/** What the command line says to every adapter, ours among them; `stop` is asked with `user`. */
mica_adapter_options mica_runtime_options(const mica_opts *o, bool (*stop)(void *user), void *user);

#endif
