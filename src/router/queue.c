#include "router/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sqlite.h"

#define FORMAT  1    /* PRAGMA user_version */
#define BUSY_MS 5000 /* another process writes for milliseconds */
#define KEY_MAX 64

static const char tables[] =
    "CREATE TABLE held (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, "
    "created_ms INTEGER NOT NULL, state INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, "
    "maybe_sent INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL, reply TEXT, note TEXT NOT NULL DEFAULT '') "
    "STRICT; CREATE INDEX held_state ON held (state); PRAGMA user_version=1;";

const char *mica_held_state_name(mica_held_state state)
{
    static const char *const names[] = {"waiting", "sending", "done", "failed"};
    return names[state];
}

static mica_status fail(const mica_held *held, mica_error *err)
{
    int code = sqlite3_errcode(held->db);
    mica_status status = code == SQLITE_NOMEM                              ? MICA_OUT_OF_MEMORY
                         : code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? MICA_BAD_FILE
                                                                           : MICA_IO_ERROR;
    return mica_fail(err, status, "the queue %s: %s", mica_path_tail(held->path), mica_sqlite_why(held->db));
}

mica_status mica_held_prepare(mica_held *held, const char *sql, sqlite3_stmt **out, mica_error *err)
{
    *out = NULL;
    return sqlite3_prepare_v2(held->db, sql, -1, out, NULL) == SQLITE_OK ? MICA_OK : fail(held, err);
}

mica_status mica_held_run(mica_held *held, sqlite3_stmt *statement, mica_error *err)
{
    int code = sqlite3_step(statement);
    mica_status status = code == SQLITE_DONE || code == SQLITE_ROW ? MICA_OK : fail(held, err);
    sqlite3_finalize(statement);
    return status;
}

static mica_status execute(mica_held *held, const char *sql, mica_error *err)
{
    return sqlite3_exec(held->db, sql, NULL, NULL, NULL) == SQLITE_OK ? MICA_OK : fail(held, err);
}

/* ---- The file ---- */

static mica_status read_format(mica_held *held, int *format, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = mica_held_prepare(held, "PRAGMA user_version", &statement, err);
    if (!status && sqlite3_step(statement) != SQLITE_ROW)
        status = fail(held, err);
    *format = status ? 0 : sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return status;
}

/* In one transaction: of several processes that find a new file, one makes the tables. */
static mica_status make_tables(mica_held *held, mica_error *err)
{
    int format;
    mica_status status = execute(held, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; BEGIN IMMEDIATE", err);
    if (status)
        return status;
    status = read_format(held, &format, err);
    if (!status && format == 0)
        status = execute(held, tables, err);
    else if (!status && format != FORMAT)
        status = mica_fail(err, MICA_UNSUPPORTED, "the queue %s is of format %d, which this version does not know",
                           mica_path_tail(held->path), format);
    if (!status)
        return execute(held, "COMMIT", err);
    sqlite3_exec(held->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* For its owner only, which SQLite gives to the files beside it, too. */
static mica_status make_file(const char *path, mica_error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot open the queue %s: %s", mica_path_tail(path), strerror(errno));
    close(fd);
    return MICA_OK;
}

mica_status mica_held_open(const char *path, mica_held **out, mica_error *err)
{
    *out = NULL;
    mica_status status = make_file(path, err);
    if (status)
        return status;
    mica_held *held = mica_new_array(1, sizeof *held);
    if (!held || !(held->path = strdup(path))) {
        free(held);
        return mica_fail_nomem(err, sizeof *held, "the queue");
    }
    int code = sqlite3_open_v2(path, &held->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL);
    status = code == SQLITE_OK
                 ? MICA_OK
                 : mica_fail(err, MICA_IO_ERROR, "cannot open the queue %s: %s", mica_path_tail(path), sqlite3_errstr(code));
    if (!status) {
        sqlite3_busy_timeout(held->db, BUSY_MS);
        status = make_tables(held, err);
    }
    if (status)
        mica_held_close(held);
    else
        *out = held;
    return status;
}

void mica_held_close(mica_held *held)
{
    if (!held)
        return;
    sqlite3_close(held->db);
    free(held->path);
    free(held);
}

/* ---- Rows ---- */

void mica_held_row_read(sqlite3_stmt *s, mica_held_row *row)
{
    *row = (mica_held_row){.id = sqlite3_column_int64(s, 0),
                           .key = (const char *)sqlite3_column_text(s, 1),
                           .created_ms = sqlite3_column_int64(s, 2),
                           .state = (mica_held_state)sqlite3_column_int(s, 3),
                           .attempts = sqlite3_column_int64(s, 4),
                           .maybe_sent = sqlite3_column_int(s, 5) != 0,
                           .body = (const char *)sqlite3_column_text(s, 6),
                           .length = (size_t)sqlite3_column_bytes(s, 6),
                           .reply = (const char *)sqlite3_column_text(s, 7),
                           .note = (const char *)sqlite3_column_text(s, 8)};
    if (row->state > MICA_HELD_FAILED)
        row->state = MICA_HELD_FAILED;
}

static mica_status query_int(mica_held *held, const char *sql, const char *key, int64_t *out, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = mica_held_prepare(held, sql, &statement, err);
    if (status)
        return status;
    if (key)
        sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    *out = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = fail(held, err);
    sqlite3_finalize(statement);
    return status;
}

static mica_status insert(mica_held *held, const char *key, const char *body, size_t length, mica_error *err)
{
    struct timespec now;
    sqlite3_stmt *statement;
    clock_gettime(CLOCK_REALTIME, &now);
    mica_status status =
        mica_held_prepare(held, "INSERT OR IGNORE INTO held (key, created_ms, body) VALUES (?, ?, ?)", &statement, err);
    if (status)
        return status;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 2, (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    sqlite3_bind_text64(statement, 3, body, length, SQLITE_STATIC, SQLITE_UTF8);
    return mica_held_run(held, statement, err);
}

mica_status mica_held_put(mica_held *held, const char *key, const char *body, size_t length, int64_t limit, int64_t *id,
                          mica_error *err)
{
    int64_t waiting = 0;
    if (!*key || strlen(key) > KEY_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a request's key has 1 to %d bytes", KEY_MAX);
    mica_status status = execute(held, "BEGIN IMMEDIATE", err);
    if (status)
        return status;
    status = query_int(held, "SELECT id FROM held WHERE key = ?", key, id, err);
    if (!status && *id == 0) {
        status = query_int(held, "SELECT count(*) FROM held WHERE state < 2", NULL, &waiting, err);
        if (!status && waiting >= limit)
            status = mica_fail(err, MICA_OVER_BUDGET, "%lld requests wait in the queue already, as many as the policy allows",
                               (long long)waiting);
        if (!status)
            status = insert(held, key, body, length, err);
        if (!status)
            *id = sqlite3_last_insert_rowid(held->db);
    }
    if (!status)
        return execute(held, "COMMIT", err);
    sqlite3_exec(held->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

mica_status mica_held_list(mica_held *held, int64_t id, int (*on_row)(void *user, const mica_held_row *row), void *user,
                           mica_error *err)
{
    sqlite3_stmt *statement;
    mica_held_row row;
    int code = SQLITE_ROW;
    mica_status status = mica_held_prepare(held, "SELECT * FROM held WHERE ?1 = 0 OR id = ?1 ORDER BY id", &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        mica_held_row_read(statement, &row);
        if (on_row(user, &row))
            break;
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = fail(held, err);
    sqlite3_finalize(statement);
    return status;
}

mica_status mica_held_drop(mica_held *held, int64_t id, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = mica_held_prepare(held, "DELETE FROM held WHERE id = ? AND state <> 1", &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    status = mica_held_run(held, statement, err);
    if (!status && sqlite3_changes(held->db) == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no request %lld in the queue, or it is being sent",
                         (long long)id);
    return status;
}
