/* telemetry_sqlite.c - the sink that is a database: a row a reply in the table `replies`. */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sqlite.h"
#include "router/telemetry.h"

#define SCHEMA 1      /* user_version of the database */
#define BUSY_MS 200   /* of waiting for another writer, */
#define BUSY_TRIES 25 /* and so often: between them the deadline is looked at */

/* Columns in the order of bind_event(). */
static const char create_table[] =
    "CREATE TABLE IF NOT EXISTS replies (id INTEGER PRIMARY KEY, time_unix_ms INTEGER NOT NULL, operation TEXT, model TEXT,"
    " reply_id TEXT, rung TEXT, reason TEXT, stop_reason TEXT, error TEXT, prompt_n INTEGER, cached_n INTEGER, gen_n INTEGER,"
    " duration_ms REAL, ttft_ms REAL, tpot_ms REAL, tpot_p50_ms REAL, tpot_p95_ms REAL, peak_rss_bytes INTEGER,"
    " throttled_flag INTEGER, joules REAL, energy_source TEXT, receipt TEXT, prompt TEXT, reply TEXT);"
    "CREATE INDEX IF NOT EXISTS replies_by_time ON replies (time_unix_ms);"
    "PRAGMA user_version = 1";

static const char insert_row[] =
    "INSERT INTO replies (time_unix_ms, operation, model, reply_id, rung, reason, stop_reason, error, prompt_n, cached_n,"
    " gen_n, duration_ms, ttft_ms, tpot_ms, tpot_p50_ms, tpot_p95_ms, peak_rss_bytes, throttled_flag, joules, energy_source,"
    " receipt, prompt, reply) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23)";

typedef struct database {
    sqlite3 *db;
    sqlite3_stmt *insert;
    char *path;
    int64_t limit; /* bytes; 0: none */
} database;

static mica_status fail(const database *d, mica_error *err)
{
    return mica_fail(err, MICA_IO_ERROR, "cannot write telemetry to %s: %.160s", mica_path_tail(d->path),
                     d->db ? mica_sqlite_why(d->db) : "out of memory");
}

static void close_database(void *sink)
{
    database *d = sink;
    sqlite3_finalize(d->insert);
    sqlite3_close(d->db);
    free(d->path);
    free(d);
}

static int version_of(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    int version = -1;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        version = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return version;
}

static mica_status prepare(database *d, mica_error *err)
{
    sqlite3_busy_timeout(d->db, BUSY_MS * 10);
    int version = version_of(d->db);
    if (version > SCHEMA)
        return mica_fail(err, MICA_UNSUPPORTED,
                         "%s is a database of version %d, and telemetry here is of version %d: name another file",
                         mica_path_tail(d->path), version, SCHEMA);
    /* A reply that is lost with the power is no loss worth a sync of the disk each time. */
    if (sqlite3_exec(d->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(d->db, create_table, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(d->db, insert_row, -1, &d->insert, NULL) != SQLITE_OK)
        return fail(d, err);
    sqlite3_busy_timeout(d->db, BUSY_MS);
    return MICA_OK;
}

static mica_status open_database(const mica_sink_setup *setup, void **out, mica_error *err)
{
    database *d = mica_new_array(1, sizeof *d);
    if (!d || !(d->path = strdup(setup->target))) {
        free(d);
        return mica_fail_nomem(err, strlen(setup->target) + sizeof *d, "a telemetry sink");
    }
    d->limit = setup->max_bytes;
    mica_status status = MICA_OK;
    if (sqlite3_open_v2(d->path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL) != SQLITE_OK)
        status = fail(d, err);
    if (!status)
        status = prepare(d, err);
    if (status) {
        close_database(d);
        return status;
    }
    *out = d;
    return MICA_OK;
}

/* ---- Rows ---- */

static void bind_text(sqlite3_stmt *s, int i, const char *text, size_t length)
{
    if (length > 0)
        sqlite3_bind_text(s, i, text, (int)length, SQLITE_STATIC);
    else
        sqlite3_bind_null(s, i);
}

static void bind_real(sqlite3_stmt *s, int i, double value)
{
    if (isfinite(value))
        sqlite3_bind_double(s, i, value);
    else
        sqlite3_bind_null(s, i);
}

static void bind_known(sqlite3_stmt *s, int i, int64_t value)
{
    if (value >= 0)
        sqlite3_bind_int64(s, i, value);
    else
        sqlite3_bind_null(s, i);
}

static void bind_event(sqlite3_stmt *s, const mica_telemetry_event *e)
{
    const char *texts[] = {e->operation, e->model, e->id, e->rung, e->reason, e->stop_reason, e->error};
    const double reals[] = {e->duration_ms, e->ttft_ms, e->tpot_ms, e->tpot_p50_ms, e->tpot_p95_ms};
    int i = 1;
    sqlite3_bind_int64(s, i++, e->started_unix_ns / 1000000);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        bind_text(s, i++, texts[k], strlen(texts[k]));
    bind_known(s, i++, e->prompt_n);
    bind_known(s, i++, e->cached_n);
    bind_known(s, i++, e->gen_n);
    for (size_t k = 0; k < sizeof reals / sizeof *reals; k++)
        bind_real(s, i++, reals[k]);
    bind_known(s, i++, e->peak_rss_bytes);
    bind_known(s, i++, e->throttled);
    bind_real(s, i++, e->joules);
    bind_text(s, i++, e->energy_source, strlen(e->energy_source));
    bind_text(s, i++, e->receipt, strlen(e->receipt));
    bind_text(s, i++, e->prompt, e->prompt_length);
    bind_text(s, i, e->reply, e->reply_length);
}

/* A step that may meet another writer. */
static int exec_patiently(const database *d, const char *sql, const _Atomic int64_t *deadline)
{
    int code = SQLITE_BUSY;
    for (int i = 0; i < BUSY_TRIES && code == SQLITE_BUSY && (i == 0 || !mica_deadline_is_over(deadline)); i++)
        code = sqlite3_exec(d->db, sql, NULL, NULL, NULL);
    return code;
}

/* ---- The limit ---- */

static int64_t bytes_of(const database *d)
{
    static const char sql[] = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(),"
                              " pragma_freelist_count(), pragma_page_size()";
    sqlite3_stmt *s = NULL;
    int64_t bytes = 0;
    if (sqlite3_prepare_v2(d->db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
        bytes = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return bytes;
}

static int attach_older(const database *d)
{
    sqlite3_stmt *s = NULL;
    char *path = sqlite3_mprintf("%s.1", d->path);
    int code = path ? sqlite3_prepare_v2(d->db, "ATTACH ?1 AS older", -1, &s, NULL) : SQLITE_NOMEM;
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(s, 1, path, -1, sqlite3_free);
    else
        sqlite3_free(path);
    if (code == SQLITE_OK)
        code = sqlite3_step(s) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(d->db);
    sqlite3_finalize(s);
    return code;
}

/* First the copy, then what was copied goes: a crash between leaves rows twice, never none. Other writers wait meanwhile. */
static int move_rows(const database *d, const _Atomic int64_t *deadline)
{
    static const char copy[] = "DROP TABLE IF EXISTS older.replies; CREATE TABLE older.replies AS SELECT * FROM main.replies;"
                               "PRAGMA older.user_version = 1; COMMIT";
    static const char drop[] = "DELETE FROM main.replies WHERE id <= (SELECT max(id) FROM older.replies)";
    int code = exec_patiently(d, "BEGIN IMMEDIATE", deadline);
    if (code == SQLITE_OK && bytes_of(d) <= d->limit) /* another process was faster */
        return sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(d->db, copy, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = exec_patiently(d, drop, deadline);
    return code;
}

/* Pages that are given up are used again, so that the file stays as large as it is. */
static mica_status make_room(const database *d, const _Atomic int64_t *deadline, mica_error *err)
{
    if (d->limit == 0 || bytes_of(d) <= d->limit)
        return MICA_OK;
    int code = attach_older(d);
    if (code == SQLITE_OK)
        code = move_rows(d, deadline);
    mica_status status =
        code == SQLITE_OK ? MICA_OK
                          : mica_fail(err, MICA_IO_ERROR, "%s is full, and its rows cannot go to %s.1: %.120s",
                                      mica_path_tail(d->path), mica_path_tail(d->path), sqlite3_errmsg(d->db));
    if (!sqlite3_get_autocommit(d->db))
        (void)sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    (void)sqlite3_exec(d->db, "DETACH older; PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    return status;
}

/* All of a batch, or nothing. */
static mica_status write_events(void *sink, mica_event *const *events, size_t n, const _Atomic int64_t *deadline,
                                size_t *written, mica_error *err)
{
    database *d = sink;
    *written = 0;
    mica_status full = make_room(d, deadline, err);
    if (full)
        return full;
    int code = exec_patiently(d, "BEGIN IMMEDIATE", deadline);
    for (size_t i = 0; i < n && (code == SQLITE_OK || code == SQLITE_DONE); i++) {
        bind_event(d->insert, &events[i]->e);
        code = sqlite3_step(d->insert);
        sqlite3_reset(d->insert);
    }
    if (code == SQLITE_OK || code == SQLITE_DONE)
        code = exec_patiently(d, "COMMIT", deadline);
    if (code == SQLITE_OK) {
        *written = n;
        return MICA_OK;
    }
    mica_status status = fail(d, err);
    if (!sqlite3_get_autocommit(d->db))
        (void)sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

const mica_sink_kind mica_sink_sqlite = {"sqlite", 100, open_database, write_events, close_database};
