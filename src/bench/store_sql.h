/* store_sql.h - SQLite for the files that keep tables in a store: statements, and our kinds of columns. Called by store.c and
 * campaign_store.c. */
#ifndef MICA_BENCH_STORE_SQL_H
#define MICA_BENCH_STORE_SQL_H
#include <sqlite3.h>

#include "bench/store.h"

/** The connection. Borrowed until the store is closed. */
sqlite3 *mica_store_connection(mica_store *store);
/** An error of the connection as ours. */
mica_status mica_store_fail(const mica_store *store, mica_error *err);

mica_status mica_store_prepare(mica_store *store, const char *sql, sqlite3_stmt **out, mica_error *err);
/** Runs a statement that gives no rows, and finalises it. */
mica_status mica_store_run(mica_store *store, sqlite3_stmt *statement, mica_error *err);

/** Borrows the text until the statement has run. */
void mica_sql_bind_text(sqlite3_stmt *statement, int i, const char *text);
/** Packed (pack.c), as a blob of the statement's own. */
mica_status mica_sql_bind_ints(sqlite3_stmt *statement, int i, const int64_t *values, size_t n, mica_error *err);
/** Cut to the size. */
void mica_sql_column_text(sqlite3_stmt *statement, int i, char *out, size_t size);
/** Packed integers (pack.c); *values is the caller's. MICA_BAD_FILE, `empty`: there are none. */
mica_status mica_sql_column_ints(sqlite3_stmt *statement, int i, int64_t **values, size_t *n, const char *empty, mica_error *err);

#endif
