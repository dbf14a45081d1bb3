/* measure.h - carries one runtime through a protocol: phases in order, everything recorded as it comes. The record is there in
 * every case: of a run that failed or was stopped it has what was measured until then, and why it ended.
 *
 *     mica_measure_options o = {.adapter = a_or_folder, .model = path, .backend = "default", .protocol = &p, .store = store};
 *     mica_status status = mica_measure_run(&o, &record, &err);      // record.summary has the figures
 *     mica_record_free(&record);
 *
 * Called by programs/cmd_bench.c and compare.c. */
#ifndef MICA_BENCH_MEASURE_H
#define MICA_BENCH_MEASURE_H
#include "bench/adapter.h"
#include "bench/protocol.h"
#include "bench/record.h"
#include "bench/store.h"

typedef struct mica_measure_progress {
    const char *name;  /* of the runtime */
    const char *phase; /* "ttft_512" */
    const char *note;  /* "x86_pkg_temp#0 has 61.0 C"; "" */
    int32_t at, n;     /* phase `at` of n */
    double done;       /* of the phase, 0..1 */
    double tps;        /* decode rate: of the last second while a reply is made, of all of it at its end; NAN */
} mica_measure_progress;

typedef struct mica_measure_options {
    const char *adapter; /* "mica": our own engine, in this process; else a folder with a manifest.json */
    const char *model, *backend;
    bool allow_fallback;
    int32_t threads; /* 0: the runtime's choice */
    const mica_protocol *protocol;
    mica_adapter_options adapter_options; /* stop and user are asked between phases too */
    mica_store *store;                    /* NULL: kept in the record alone */
    const char *sysroot;
    const json_t *conditions; /* what no sensor tells, from the user: an object; NULL: not asked */
    bool no_hash;             /* do not compute the model's SHA-256 */
    void (*on_progress)(void *user, const mica_measure_progress *progress); /* a few times a second at most */
    void *progress_user;
} mica_measure_options;

/** The status is that of the run: MICA_CANCELLED if it was stopped. */
mica_status mica_measure_run(const mica_measure_options *options, mica_record *record, mica_error *err);

#endif
