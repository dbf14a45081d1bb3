#include "bench/store_sql.h"

#include <inttypes.h>
#include <math.h>
#include <schema_sql.h> /* made from schema.sql by CMakeLists.txt */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/sqlite.h"

enum { VERSION = 1, APPLICATION = 0x6d696361 /* "mica" */, BUSY_MS = 10000 };

struct mica_store {
    sqlite3 *db;
    char path[256]; /* the end of it, for messages */
};

/* ---- SQLite, with our errors ---- */

sqlite3 *mica_store_connection(mica_store *store) { return store->db; }

mica_status mica_store_fail(const mica_store *s, mica_error *err)
{
    int code = sqlite3_errcode(s->db) & 0xff;
    mica_status status = code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? MICA_BAD_FILE
                         : code == SQLITE_NOMEM                          ? MICA_OUT_OF_MEMORY
                                                                         : MICA_IO_ERROR;
    return mica_fail(err, status, "the database %s: %.200s", s->path, mica_sqlite_why(s->db));
}

static mica_status exec(mica_store *s, const char *sql, mica_error *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? MICA_OK : mica_store_fail(s, err);
}

mica_status mica_store_prepare(mica_store *s, const char *sql, sqlite3_stmt **out, mica_error *err)
{
    return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) == SQLITE_OK ? MICA_OK : mica_store_fail(s, err);
}

mica_status mica_store_run(mica_store *s, sqlite3_stmt *statement, mica_error *err)
{
    int code = sqlite3_step(statement);
    mica_status status = code == SQLITE_DONE ? MICA_OK : mica_store_fail(s, err);
    sqlite3_finalize(statement);
    return status;
}

void mica_sql_bind_text(sqlite3_stmt *statement, int i, const char *text)
{
    sqlite3_bind_text(statement, i, text, -1, SQLITE_STATIC);
}

/* A copy of JSON as text; the statement frees it. */
static bool bind_json(sqlite3_stmt *statement, int i, const json_t *value)
{
    char *text = value ? mica_json_dumps(value, JSON_COMPACT) : NULL;
    if (!value)
        return sqlite3_bind_null(statement, i) == SQLITE_OK;
    return text && sqlite3_bind_text(statement, i, text, -1, free) == SQLITE_OK;
}

mica_status mica_sql_bind_ints(sqlite3_stmt *statement, int i, const int64_t *values, size_t n, mica_error *err)
{
    void *bytes;
    size_t length;
    mica_status status = mica_pack_ints(values, n, &bytes, &length, err);
    if (!status)
        sqlite3_bind_blob64(statement, i, bytes, length, free); /* which the statement calls */
    return status;
}

void mica_sql_column_text(sqlite3_stmt *statement, int i, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(statement, i);
    snprintf(out, size, "%s", text ? text : "");
}

mica_status mica_sql_column_ints(sqlite3_stmt *statement, int i, int64_t **values, size_t *n, const char *empty, mica_error *err)
{
    const void *bytes = sqlite3_column_blob(statement, i);
    int length = sqlite3_column_bytes(statement, i);
    if (!bytes || length < 1)
        return mica_fail(err, MICA_BAD_FILE, "%s", empty);
    return mica_unpack_ints(bytes, (size_t)length, values, n, err);
}

/* ---- Open ---- */

static mica_status read_number(mica_store *s, const char *sql, int64_t *value, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = mica_store_prepare(s, sql, &statement, err);
    if (status)
        return status;
    int code = sqlite3_step(statement);
    *value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    status = code == SQLITE_ROW || code == SQLITE_DONE ? MICA_OK : mica_store_fail(s, err);
    sqlite3_finalize(statement);
    return status;
}

static mica_status check_kind(mica_store *s, mica_error *err)
{
    int64_t application = 0, version = 0, tables = 0;
    mica_status status = read_number(s, "PRAGMA application_id", &application, err);
    if (!status)
        status = read_number(s, "PRAGMA user_version", &version, err);
    if (!status)
        status = read_number(s, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (!status && tables > 0 && application != APPLICATION)
        return mica_fail(err, MICA_BAD_FILE, "%s is a database of another program", s->path);
    if (!status && version > VERSION)
        return mica_fail(err, MICA_UNSUPPORTED, "the database %s has version %" PRId64 " of its schema; this build knows %d",
                         s->path, version, VERSION);
    return status;
}

static mica_status make_schema(mica_store *s, mica_error *err)
{
    char pragmas[128];
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d;", APPLICATION, VERSION);
    mica_status status =
        exec(s, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; BEGIN IMMEDIATE;", err);
    if (status)
        return status;
    status = exec(s, mica_schema_sql, err);
    if (!status)
        status = exec(s, pragmas, err);
    mica_status ended = exec(s, status ? "ROLLBACK" : "COMMIT", status ? NULL : err);
    return status ? status : ended;
}

static mica_status open_store(const char *path, int flags, mica_store **out, mica_error *err)
{
    mica_store *s = calloc(1, sizeof *s);
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "a database");
    snprintf(s->path, sizeof s->path, "%s", mica_path_tail(path));
    mica_status status = sqlite3_open_v2(path, &s->db, flags, NULL) == SQLITE_OK ? MICA_OK : mica_store_fail(s, err);
    if (!status) {
        sqlite3_busy_timeout(s->db, BUSY_MS);
        sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL); /* a file of someone else runs nothing */
        status = check_kind(s, err);
    }
    if (!status && flags & SQLITE_OPEN_READWRITE)
        status = make_schema(s, err);
    if (status)
        mica_store_close(s);
    else
        *out = s;
    return status;
}

mica_status mica_store_open(const char *path, mica_store **out, mica_error *err)
{
    return open_store(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, out, err);
}

mica_status mica_store_open_readonly(const char *path, mica_store **out, mica_error *err)
{
    return open_store(path, SQLITE_OPEN_READONLY, out, err);
}

void mica_store_close(mica_store *store)
{
    if (!store)
        return;
    sqlite3_close(store->db);
    free(store);
}

/* ---- Write ---- */

static const char *name_of(const mica_record *record)
{
    const char *name = json_string_value(json_object_get(record->head, "name"));
    return name ? name : "";
}

mica_status mica_store_begin(mica_store *store, const mica_record *record, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status =
        mica_store_prepare(store, "INSERT INTO run (id, created, name, state, head) VALUES (?, ?, ?, 'running', ?)", &statement, err);
    if (status)
        return status;
    mica_sql_bind_text(statement, 1, record->id);
    sqlite3_bind_int64(statement, 2, json_integer_value(json_object_get(record->head, "created_unix")));
    mica_sql_bind_text(statement, 3, name_of(record));
    bind_json(statement, 4, record->head);
    return mica_store_run(store, statement, err);
}

static void bind_series(sqlite3_stmt *statement, const char *id, sqlite3_int64 seq, const mica_series *x)
{
    const int64_t numbers[] = {x->exact,   x->prompt_asked, x->n_asked,  (int64_t)x->seed, x->started_ns,
                               x->done_ns, x->prompt_n,     x->cached_n, x->gen_n};
    mica_sql_bind_text(statement, 1, id);
    sqlite3_bind_int64(statement, 2, seq);
    mica_sql_bind_text(statement, 3, x->phase);
    for (int i = 0; i < 9; i++)
        sqlite3_bind_int64(statement, 4 + i, numbers[i]);
    mica_sql_bind_text(statement, 13, x->reason);
}

mica_status mica_store_add_series(mica_store *store, const mica_record *record, mica_error *err)
{
    sqlite3_stmt *statement;
    const mica_series *x = &record->series[record->n_series - 1];
    mica_status status =
        mica_store_prepare(store, "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", &statement, err);
    if (status)
        return status;
    bind_series(statement, record->id, (sqlite3_int64)record->n_series - 1, x);
    status = mica_sql_bind_ints(statement, 14, x->times, x->n, err);
    if (!status)
        status = mica_sql_bind_ints(statement, 15, x->tokens, x->n, err);
    if (!status)
        return mica_store_run(store, statement, err);
    sqlite3_finalize(statement);
    return status;
}

mica_status mica_store_add_samples(mica_store *store, const char *id, const json_t *samples, mica_error *err)
{
    sqlite3_stmt *statement;
    void *bytes;
    size_t length;
    if (json_array_size(samples) == 0)
        return MICA_OK;
    char *text = mica_json_dumps(samples, JSON_COMPACT);
    mica_status status = text ? mica_pack_text(text, strlen(text), &bytes, &length, err) : mica_fail_nomem(err, 0, "samples");
    free(text);
    if (status)
        return status;
    status =
        mica_store_prepare(store, "INSERT INTO samples SELECT ?1, (SELECT count(*) FROM samples WHERE run = ?1), ?2", &statement, err);
    if (status) {
        free(bytes);
        return status;
    }
    mica_sql_bind_text(statement, 1, id);
    sqlite3_bind_blob64(statement, 2, bytes, length, free);
    return mica_store_run(store, statement, err);
}

mica_status mica_store_finish(mica_store *store, const mica_record *record, const char *state, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status =
        mica_store_prepare(store, "UPDATE run SET name = ?, state = ?, head = ?, summary = ? WHERE id = ?", &statement, err);
    if (status)
        return status;
    mica_sql_bind_text(statement, 1, name_of(record));
    mica_sql_bind_text(statement, 2, state);
    bind_json(statement, 3, record->head);
    bind_json(statement, 4, record->summary);
    mica_sql_bind_text(statement, 5, record->id);
    return mica_store_run(store, statement, err);
}

/* ---- Read ---- */

/* A column that must hold JSON of this kind. NULL: it does not. */
static json_t *column_json(sqlite3_stmt *statement, int i, json_type type)
{
    const char *text = (const char *)sqlite3_column_text(statement, i);
    json_t *value = text ? mica_json_loadb(text, (size_t)sqlite3_column_bytes(statement, i), JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (value && json_typeof(value) == type)
        return value;
    json_decref(value);
    return NULL;
}

static mica_status read_run(mica_store *s, const char *id, mica_record *out, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = mica_store_prepare(s, "SELECT head, summary, state FROM run WHERE id = ?", &statement, err);
    if (status)
        return status;
    mica_sql_bind_text(statement, 1, id);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW) {
        json_t *head = column_json(statement, 0, JSON_OBJECT);
        json_decref(out->head);
        out->head = head;
        out->summary = column_json(statement, 1, JSON_OBJECT);
        if (head) /* a run that was killed has its state in the row alone */
            json_object_set_new(head, "state", json_string((const char *)sqlite3_column_text(statement, 2)));
        status = head ? MICA_OK : mica_fail(err, MICA_BAD_FILE, "the run %.32s in %s has a damaged head", id, s->path);
    } else {
        status = code == SQLITE_DONE ? mica_fail(err, MICA_INVALID_ARGUMENT, "there is no run %.32s in %s", id, s->path)
                                     : mica_store_fail(s, err);
    }
    sqlite3_finalize(statement);
    snprintf(out->id, sizeof out->id, "%s", id);
    return status;
}

static mica_status read_one_series(sqlite3_stmt *statement, mica_record *out, mica_error *err)
{
    static const char empty[] = "a stored series is empty";
    mica_series x = {.times = NULL};
    size_t n_tokens = 0;
    mica_sql_column_text(statement, 0, x.phase, sizeof x.phase);
    x.exact = sqlite3_column_int(statement, 1) != 0;
    x.prompt_asked = sqlite3_column_int(statement, 2);
    x.n_asked = sqlite3_column_int(statement, 3);
    x.seed = (uint64_t)sqlite3_column_int64(statement, 4);
    x.started_ns = sqlite3_column_int64(statement, 5);
    x.done_ns = sqlite3_column_int64(statement, 6);
    x.prompt_n = sqlite3_column_int64(statement, 7);
    x.cached_n = sqlite3_column_int64(statement, 8);
    x.gen_n = sqlite3_column_int64(statement, 9);
    mica_sql_column_text(statement, 10, x.reason, sizeof x.reason);
    mica_status status = mica_sql_column_ints(statement, 11, &x.times, &x.n, empty, err);
    if (!status)
        status = mica_sql_column_ints(statement, 12, &x.tokens, &n_tokens, empty, err);
    if (!status && n_tokens != x.n)
        status = mica_fail(err, MICA_BAD_FILE, "a stored series has %zu times and %zu tokens", x.n, n_tokens);
    if (!status)
        status = mica_record_add(out, &x, err);
    mica_series_free(&x);
    return status;
}

static mica_status read_series(mica_store *s, const char *id, mica_record *out, mica_error *err)
{
    sqlite3_stmt *statement;
    int code = SQLITE_DONE;
    mica_status status =
        mica_store_prepare(s,
                "SELECT phase, exact, prompt_asked, n_asked, seed, started_ns, done_ns, prompt_n, cached_n, gen_n, reason, "
                "times, tokens FROM series WHERE run = ? ORDER BY seq",
                &statement, err);
    if (status)
        return status;
    mica_sql_bind_text(statement, 1, id);
    while (!status && (code = sqlite3_step(statement)) == SQLITE_ROW)
        status = read_one_series(statement, out, err);
    if (!status && code != SQLITE_DONE)
        status = mica_store_fail(s, err);
    sqlite3_finalize(statement);
    return status;
}

static mica_status read_block(sqlite3_stmt *statement, mica_record *out, mica_error *err)
{
    char *text;
    size_t length;
    const void *bytes = sqlite3_column_blob(statement, 0);
    mica_status status = mica_unpack_text(bytes, (size_t)sqlite3_column_bytes(statement, 0), &text, &length, err);
    if (status)
        return status;
    json_t *block = mica_json_loadb(text, length, 0, NULL);
    free(text);
    if (!json_is_array(block) || json_array_extend(out->samples, block) != 0)
        status = mica_fail(err, MICA_BAD_FILE, "stored samples of the machine are damaged");
    json_decref(block);
    return status;
}

static mica_status read_samples(mica_store *s, const char *id, mica_record *out, mica_error *err)
{
    sqlite3_stmt *statement;
    int code = SQLITE_DONE;
    mica_status status = mica_store_prepare(s, "SELECT data FROM samples WHERE run = ? ORDER BY seq", &statement, err);
    if (status)
        return status;
    mica_sql_bind_text(statement, 1, id);
    while (!status && (code = sqlite3_step(statement)) == SQLITE_ROW)
        status = read_block(statement, out, err);
    if (!status && code != SQLITE_DONE)
        status = mica_store_fail(s, err);
    sqlite3_finalize(statement);
    return status;
}

mica_status mica_store_read(mica_store *store, const char *id, mica_record *out, mica_error *err)
{
    mica_status status = mica_record_init(out, err);
    if (status)
        return status;
    status = read_run(store, id, out, err);
    if (!status)
        status = read_series(store, id, out, err);
    if (!status)
        status = read_samples(store, id, out, err);
    if (status)
        mica_record_free(out);
    return status;
}

mica_status mica_store_list(mica_store *store, bool (*each)(void *user, const char *id), void *user, mica_error *err)
{
    sqlite3_stmt *statement;
    int code = SQLITE_DONE;
    mica_status status = mica_store_prepare(store, "SELECT id FROM run ORDER BY created, rowid", &statement, err);
    if (status)
        return status;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *id = (const char *)sqlite3_column_text(statement, 0);
        if (id && !each(user, id))
            break;
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = mica_store_fail(store, err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- Idle readings ---- */

mica_status mica_store_know_zones(mica_store *store, const char *machine, mica_cooldown *c, mica_error *err)
{
    sqlite3_stmt *statement;
    int code;
    mica_status status = mica_store_prepare(store, "SELECT zone, celsius FROM idle_zone WHERE machine = ?", &statement, err);
    if (status)
        return status;
    mica_sql_bind_text(statement, 1, machine);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        mica_cooldown_know(c, (const char *)sqlite3_column_text(statement, 0), sqlite3_column_double(statement, 1));
    if (code != SQLITE_DONE)
        status = mica_store_fail(store, err);
    sqlite3_finalize(statement);
    return status;
}

mica_status mica_store_keep_zones(mica_store *store, const char *machine, const mica_cooldown *c, mica_error *err)
{
    mica_status status = MICA_OK;
    for (int i = 0; i < c->n_zones && !status; i++) {
        sqlite3_stmt *statement;
        if (isnan(c->zone[i].idle_c))
            continue;
        status = mica_store_prepare(
            store, "INSERT INTO idle_zone VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET celsius = min(celsius, excluded.celsius)",
            &statement, err);
        if (status)
            return status;
        mica_sql_bind_text(statement, 1, machine);
        mica_sql_bind_text(statement, 2, c->zone[i].name);
        sqlite3_bind_double(statement, 3, c->zone[i].idle_c);
        status = mica_store_run(store, statement, err);
    }
    return status;
}
