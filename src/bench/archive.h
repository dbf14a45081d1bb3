/* archive.h - a run as one JSON object that carries its raw samples: what --format json prints and mica verify reads. Nothing
 * in such a file is trusted. Called by programs. */
#ifndef MICA_BENCH_ARCHIVE_H
#define MICA_BENCH_ARCHIVE_H
#include "bench/record.h"

#define MICA_ARCHIVE_FORMAT "mica-bench-run"

/** The caller's: json_decref(). */
mica_status mica_archive_write(const mica_record *record, json_t **out, mica_error *err);
/** The record is initialised here; on a failure there is none. */
mica_status mica_archive_read(const json_t *archive, mica_record *out, mica_error *err);

#endif
