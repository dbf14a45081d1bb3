/* campaign_store.c - the tables campaign and shard of schema.sql. A result's blobs are those of campaign_pack.h. */
#include "bench/campaign_store.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "bench/campaign_pack.h"
#include "bench/store_sql.h"

/* ---- The lock ---- */

static mica_status open_lock(const char *path, int flags, int *fd, mica_error *err)
{
    char name[4200];
    if (snprintf(name, sizeof name, "%s.lock", path) >= (int)sizeof name)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the database is too long");
    *fd = open(name, flags | O_CLOEXEC, 0666);
    return *fd >= 0 ? MICA_OK : mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", mica_path_tail(name), strerror(errno));
}

mica_status mica_campaign_lock(const char *path, int *fd, mica_error *err)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    mica_status status = open_lock(path, O_RDWR | O_CREAT, fd, err);
    if (status || fcntl(*fd, F_OFD_SETLK, &whole) == 0)
        return status;
    int reason = errno;
    close(*fd);
    *fd = -1;
    return reason == EAGAIN || reason == EACCES
               ? mica_fail(err, MICA_INVALID_ARGUMENT, "another process runs a campaign in the database %s",
                           mica_path_tail(path))
               : mica_fail(err, MICA_IO_ERROR, "cannot lock the database %s: %s", mica_path_tail(path), strerror(reason));
}

bool mica_campaign_locked(const char *path)
{
    int fd;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (open_lock(path, O_RDWR, &fd, NULL))
        return false;
    bool held = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    close(fd);
    return held;
}

/* ---- SQLite ---- */

static mica_status prepare(mica_store *s, const char *sql, const char *id, sqlite3_stmt **out, mica_error *err)
{
    mica_status status = mica_store_prepare(s, sql, out, err);
    if (!status)
        mica_sql_bind_text(*out, 1, id);
    return status;
}

/* A database of results is written to the disk before it is told that they are there: a crash of the machine must not undo what
 * was reported. */
static mica_status finish(mica_store *s, sqlite3_stmt *statement, mica_error *err)
{
    sqlite3_exec(mica_store_connection(s), "PRAGMA synchronous=FULL", NULL, NULL, NULL);
    return mica_store_run(s, statement, err);
}

/* Parameters from `first` on. */
static void bind_numbers(sqlite3_stmt *statement, int first, const int64_t *values, int n)
{
    for (int i = 0; i < n; i++)
        sqlite3_bind_int64(statement, first + i, values[i]);
}

static bool bind_json(sqlite3_stmt *statement, int i, const json_t *value)
{
    char *text = mica_json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    return text && sqlite3_bind_text(statement, i, text, -1, free) == SQLITE_OK;
}

static json_t *column_object(sqlite3_stmt *statement, int i)
{
    const char *text = (const char *)sqlite3_column_text(statement, i);
    json_t *value = text ? mica_json_loadb(text, (size_t)sqlite3_column_bytes(statement, i), 0, NULL) : NULL;
    if (json_is_object(value))
        return value;
    json_decref(value);
    return NULL;
}

/* ---- Campaigns ---- */

mica_status mica_campaign_store_begin(mica_store *store, const mica_campaign *c, const char *id, const char *model_sha256,
                                      mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status =
        prepare(store, "INSERT OR IGNORE INTO campaign VALUES (?, CAST(strftime('%s', 'now') AS INTEGER), ?, ?, ?, ?)", id,
                &statement, err);
    if (status)
        return status;
    mica_sql_bind_text(statement, 2, c->name);
    mica_sql_bind_text(statement, 3, model_sha256);
    sqlite3_bind_int64(statement, 4, c->tokens);
    bind_json(statement, 5, c->source);
    return finish(store, statement, err);
}

static bool read_campaign(sqlite3_stmt *statement, mica_campaign_row *row)
{
    mica_sql_column_text(statement, 0, row->id, sizeof row->id);
    row->created = sqlite3_column_int64(statement, 1);
    mica_sql_column_text(statement, 2, row->name, sizeof row->name);
    mica_sql_column_text(statement, 3, row->model_sha256, sizeof row->model_sha256);
    row->tokens = sqlite3_column_int64(statement, 4);
    row->manifest = column_object(statement, 5);
    return row->manifest != NULL;
}

/* A database that mica bench wrote before there were campaigns, opened to be read, has no such tables: it has no campaigns. */
static mica_status has_tables(mica_store *store, bool *there, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = prepare(store, "SELECT count(*) FROM sqlite_master WHERE name = ?", "campaign", &statement, err);
    if (status)
        return status;
    int code = sqlite3_step(statement);
    *there = code == SQLITE_ROW && sqlite3_column_int(statement, 0) > 0;
    status = code == SQLITE_ROW ? MICA_OK : mica_store_fail(store, err);
    sqlite3_finalize(statement);
    return status;
}

mica_status mica_campaign_store_list(mica_store *store, bool (*each)(void *user, const mica_campaign_row *row), void *user,
                                     mica_error *err)
{
    sqlite3_stmt *statement;
    int code = SQLITE_DONE;
    bool there = false, more = true;
    mica_status status = has_tables(store, &there, err);
    if (status || !there)
        return status;
    status =
        prepare(store, "SELECT id, created, name, model, tokens, manifest FROM campaign WHERE ?1 = '' ORDER BY created, rowid",
                "", &statement, err);
    if (status)
        return status;
    while (more && !status && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        mica_campaign_row row;
        if (!read_campaign(statement, &row))
            status = mica_fail(err, MICA_BAD_FILE, "the database has a campaign %.16s with a damaged manifest", row.id);
        else
            more = each(user, &row);
        json_decref(row.manifest);
    }
    if (!status && code != SQLITE_ROW && code != SQLITE_DONE)
        status = mica_store_fail(store, err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- What comes next ---- */

static void read_shard(sqlite3_stmt *statement, mica_shard *out)
{
    *out = (mica_shard){.seq = sqlite3_column_int64(statement, 0),
                        .first_item = sqlite3_column_int64(statement, 3),
                        .n_items = sqlite3_column_int64(statement, 4),
                        .before = sqlite3_column_int64(statement, 5),
                        .tokens = sqlite3_column_int64(statement, 6)};
    mica_sql_column_text(statement, 1, out->id, sizeof out->id);
    mica_sql_column_text(statement, 2, out->input, sizeof out->input);
}

mica_status mica_campaign_store_next(mica_store *store, const char *id, mica_shard *out, bool *pending, mica_error *err)
{
    sqlite3_stmt *statement;
    /* One row: the first pending shard, or where the shards end. */
    mica_status status = prepare(
        store,
        "SELECT * FROM (SELECT seq, id, input, first_item, n_items, before, planned FROM shard WHERE campaign = ?1 AND "
        "state = 'pending' UNION ALL SELECT count(*), '', '', coalesce(sum(n_items), 0), 0, coalesce(sum(planned), 0), 0 FROM "
        "shard WHERE campaign = ?1) ORDER BY n_items = 0, seq LIMIT 1",
        id, &statement, err);
    if (status)
        return status;
    if (sqlite3_step(statement) == SQLITE_ROW)
        read_shard(statement, out);
    else
        status = mica_store_fail(store, err);
    *pending = !status && out->n_items > 0;
    sqlite3_finalize(statement);
    return status;
}

mica_status mica_campaign_store_cut(mica_store *store, const char *id, const mica_shard *shard, mica_error *err)
{
    sqlite3_stmt *statement;
    const int64_t numbers[] = {shard->first_item, shard->n_items, shard->before, shard->tokens};
    mica_status status = prepare(store,
                                 "INSERT INTO shard (campaign, seq, id, input, first_item, n_items, before, planned, state) "
                                 "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending')",
                                 id, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 2, shard->seq);
    mica_sql_bind_text(statement, 3, shard->id);
    mica_sql_bind_text(statement, 4, shard->input);
    bind_numbers(statement, 5, numbers, 4);
    return finish(store, statement, err);
}

/* ---- A result ---- */

/* The statement frees the parts. */
static mica_status bind_parts(sqlite3_stmt *statement, int first, const mica_shard_result *r, mica_error *err)
{
    mica_packed_result packed;
    mica_status status = mica_shard_result_pack(r, &packed, err);
    for (int i = 0; i < MICA_PACKED_PARTS && !status; i++)
        sqlite3_bind_blob64(statement, first + i, packed.data[i], packed.length[i], free);
    return status;
}

static mica_status bind_result(sqlite3_stmt *statement, const mica_shard_result *r, const json_t *head, mica_error *err)
{
    mica_shard_sums sums = mica_shard_result_sum(r);
    const int64_t numbers[] = {r->started_unix, r->wall_ns, sums.prompt_tokens, sums.cached_tokens, sums.reply_tokens};
    bind_numbers(statement, 5, numbers, 5);
    if (isfinite(sums.joules))
        sqlite3_bind_double(statement, 10, sums.joules);
    if (!bind_json(statement, 11, head))
        return mica_fail_nomem(err, 0, "what computed a shard");
    return bind_parts(statement, 12, r, err);
}

mica_status mica_campaign_store_done(mica_store *store, const char *id, const mica_shard *shard,
                                     const mica_shard_result *result, const json_t *head, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = prepare(store,
                                 "UPDATE shard SET state = 'done', started = ?5, wall_ns = ?6, prompt_tokens = ?7, "
                                 "cached_tokens = ?8, reply_tokens = ?9, "
                                 "joules = ?10, head = ?11, answers = ?12, times = ?13, tokens = ?14, samples = ?15 "
                                 "WHERE campaign = ?1 AND seq = ?2 AND id = ?3 AND input = ?4 AND state = 'pending'",
                                 id, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 2, shard->seq);
    mica_sql_bind_text(statement, 3, shard->id);
    mica_sql_bind_text(statement, 4, shard->input);
    status = bind_result(statement, result, head, err);
    if (status) {
        sqlite3_finalize(statement);
        return status;
    }
    status = finish(store, statement, err);
    if (!status && sqlite3_changes(mica_store_connection(store)) != 1)
        status = mica_fail(err, MICA_INVALID_ARGUMENT, "shard %lld of the campaign waits for no result: it counts once",
                           (long long)shard->seq);
    return status;
}

/* ---- Sums ---- */

static void read_totals(sqlite3_stmt *statement, mica_campaign_totals *t)
{
    int64_t *const fields[] = {&t->shards,       &t->items,      &t->planned,        &t->prompt_tokens, &t->cached_tokens,
                               &t->reply_tokens, &t->wall_ns,    &t->first_unix,     &t->last_unix,     &t->recent_tokens,
                               &t->recent_ns,    &t->longest_ns, &t->measured_tokens};
    int n = (int)(sizeof fields / sizeof *fields);
    for (int i = 0; i < n; i++)
        *fields[i] = sqlite3_column_int64(statement, i);
    t->joules = sqlite3_column_type(statement, n) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, n);
    double machines = sqlite3_column_double(statement, n + 1);
    t->machines = machines > 1 ? machines : 1;
}

mica_status mica_campaign_store_totals(mica_store *store, const char *id, mica_campaign_totals *out, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status =
        prepare(store,
                "WITH done AS (SELECT * FROM shard WHERE campaign = ?1 AND state = 'done'), recent AS (SELECT prompt_tokens + "
                "reply_tokens "
                "AS tokens, wall_ns FROM done ORDER BY seq DESC LIMIT 5) SELECT count(*), sum(n_items), sum(planned), "
                "sum(prompt_tokens), sum(cached_tokens), sum(reply_tokens), sum(wall_ns), min(started), max(started), (SELECT "
                "sum(tokens) "
                "FROM recent), (SELECT sum(wall_ns) FROM recent), max(wall_ns), sum(CASE WHEN joules IS NULL THEN 0 ELSE "
                "prompt_tokens + "
                "reply_tokens END), sum(joules), "
                /* Their time by that of the clock, in which they began and ended: starts are whole seconds. */
                "(SELECT sum(wall_ns) / (max(started * 1e9 + wall_ns) - min(started) * 1e9 + 1e9) FROM (SELECT started, "
                "wall_ns FROM done ORDER BY started * 1e9 + wall_ns DESC LIMIT 64)) FROM done",
                id, &statement, err);
    if (status)
        return status;
    if (sqlite3_step(statement) == SQLITE_ROW)
        read_totals(statement, out);
    else
        status = mica_store_fail(store, err);
    sqlite3_finalize(statement);
    return status;
}

/* ---- Shards ---- */

static void read_row(sqlite3_stmt *statement, mica_shard_row *row)
{
    read_shard(statement, &row->shard);
    row->done = sqlite3_column_int(statement, 7) != 0;
    row->started_unix = sqlite3_column_int64(statement, 8);
    row->wall_ns = sqlite3_column_int64(statement, 9);
    row->sums = (mica_shard_sums){
        .prompt_tokens = sqlite3_column_int64(statement, 10),
        .cached_tokens = sqlite3_column_int64(statement, 11),
        .reply_tokens = sqlite3_column_int64(statement, 12),
        .joules = sqlite3_column_type(statement, 13) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, 13)};
    row->head = column_object(statement, 14);
}

mica_status mica_campaign_store_shards(mica_store *store, const char *id,
                                       mica_status (*each)(void *user, const mica_shard_row *row, mica_error *err), void *user,
                                       mica_error *err)
{
    sqlite3_stmt *statement;
    int code = SQLITE_DONE;
    mica_status status =
        prepare(store,
                "SELECT seq, id, input, first_item, n_items, before, planned, state = 'done', started, wall_ns, prompt_tokens, "
                "cached_tokens, reply_tokens, joules, head FROM shard WHERE campaign = ? ORDER BY seq",
                id, &statement, err);
    if (status)
        return status;
    while (!status && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        mica_shard_row row;
        read_row(statement, &row);
        status = each(user, &row, err);
        json_decref(row.head);
    }
    if (!status && code != SQLITE_DONE)
        status = mica_store_fail(store, err);
    sqlite3_finalize(statement);
    return status;
}

/* Borrows the columns. */
static mica_status column_result(sqlite3_stmt *statement, size_t n, mica_shard_result *out, mica_error *err)
{
    mica_packed_result packed;
    for (int i = 0; i < MICA_PACKED_PARTS; i++) {
        packed.data[i] = (void *)(uintptr_t)sqlite3_column_blob(statement, i);
        packed.length[i] = (size_t)sqlite3_column_bytes(statement, i);
    }
    return mica_shard_result_unpack(&packed, n, out, err);
}

static bool same_sums(const mica_shard_sums *a, const mica_shard_sums *b)
{
    bool same_joules = isnan(a->joules) ? isnan(b->joules) : fabs(a->joules - b->joules) <= 1e-9 * fabs(a->joules);
    return a->prompt_tokens == b->prompt_tokens && a->cached_tokens == b->cached_tokens && a->reply_tokens == b->reply_tokens &&
           same_joules;
}

mica_status mica_campaign_store_result(mica_store *store, const char *id, const mica_shard_row *row, mica_shard_result *out,
                                       mica_error *err)
{
    sqlite3_stmt *statement;
    *out = (mica_shard_result){.started_unix = row->started_unix, .wall_ns = row->wall_ns};
    if (row->shard.n_items < 1 || row->shard.n_items > MICA_SHARD_MAX_ITEMS)
        return mica_fail(err, MICA_BAD_FILE, "a stored shard has %lld items", (long long)row->shard.n_items);
    mica_status status =
        prepare(store, "SELECT answers, times, tokens, samples FROM shard WHERE campaign = ? AND seq = ? AND state = 'done'",
                id, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 2, row->shard.seq);
    if (sqlite3_step(statement) == SQLITE_ROW)
        status = column_result(statement, (size_t)row->shard.n_items, out, err);
    else
        status = mica_fail(err, MICA_INVALID_ARGUMENT, "shard %lld has no result yet", (long long)row->shard.seq);
    sqlite3_finalize(statement);
    mica_shard_sums sums = {.joules = NAN};
    if (!status)
        sums = mica_shard_result_sum(out);
    if (!status && !same_sums(&sums, &row->sums))
        status =
            mica_fail(err, MICA_BAD_FILE, "the sums of shard %lld are not those of its raw samples", (long long)row->shard.seq);
    if (status)
        mica_shard_result_free(out);
    return status;
}
