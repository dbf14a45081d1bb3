/* store.h - runs in an SQLite database. Owns the connection; rows outlive the process.
 *
 *     mica_store_open(path, &store, &err);
 *     mica_store_begin(store, &record, &err);                     // head and id: the run exists, "running"
 *     mica_store_add_series(store, &record, &err);                // the last one of the record; as each reply ends
 *     mica_store_add_samples(store, record.id, array, &err);      // from time to time
 *     mica_store_finish(store, &record, "done", &err);            // head and summary as they are now
 *     mica_store_close(store);
 *
 * WAL, and each call above is a transaction: after kill -9 everything before the last call is there. One thread at a time.
 * Called by measure.c, and by programs. */
#ifndef MICA_BENCH_STORE_H
#define MICA_BENCH_STORE_H
#include "bench/cooldown.h"
#include "bench/record.h"

typedef struct mica_store mica_store;

/** Makes the file if it is not there. MICA_UNSUPPORTED: a newer version wrote it; MICA_BAD_FILE: not such a database. */
mica_status mica_store_open(const char *path, mica_store **out, mica_error *err);
/** One that is only read; it must be there. */
mica_status mica_store_open_readonly(const char *path, mica_store **out, mica_error *err);
void mica_store_close(mica_store *store);

mica_status mica_store_begin(mica_store *store, const mica_record *record, mica_error *err);
mica_status mica_store_add_series(mica_store *store, const mica_record *record, mica_error *err);
mica_status mica_store_add_samples(mica_store *store, const char *id, const json_t *samples, mica_error *err);
mica_status mica_store_finish(mica_store *store, const mica_record *record, const char *state, mica_error *err);

/** Reads a run whole. The record is initialised here. */
mica_status mica_store_read(mica_store *store, const char *id, mica_record *out, mica_error *err);
/** Calls `each` with the id of every run, the oldest first, until it returns false. */
mica_status mica_store_list(mica_store *store, bool (*each)(void *user, const char *id), void *user, mica_error *err);

/** The idle readings of this machine, into a cooldown; and those that a cooldown has found, back. */
mica_status mica_store_know_zones(mica_store *store, const char *machine, mica_cooldown *c, mica_error *err);
mica_status mica_store_keep_zones(mica_store *store, const char *machine, const mica_cooldown *c, mica_error *err);

#endif
