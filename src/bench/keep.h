/* keep.h - what a run of our own engine leaves in the figures of this device (device/figures.h), where the router and others
 * find how fast a model is here. Called by cmd_bench.c. */
#ifndef MICA_BENCH_KEEP_H
#define MICA_BENCH_KEEP_H
#include "bench/record.h"

/** Whether the run is one to keep: of our engine, done, without problems, and sustained. */
bool mica_bench_keeps(const mica_record *record);

/** Writes its figures to `store`, whose folder must be there. */
mica_status mica_bench_keep(const mica_record *record, const char *model_path, const char *store, mica_error *err);

#endif
