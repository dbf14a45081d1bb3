/* queue_drain.c - sending what waits: one process at a time, each request once, whatever happens between. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "router/queue.h"

/* ---- The lock ---- */

/* Of the open file: it ends with the process, however that ends. */
static mica_status take_lock(const mica_held *held, int *fd, mica_error *err)
{
    char name[4200];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (snprintf(name, sizeof name, "%s.lock", held->path) >= (int)sizeof name)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the queue is too long");
    *fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", mica_path_tail(name), strerror(errno));
    if (fcntl(*fd, F_OFD_SETLK, &whole) == 0)
        return MICA_OK;
    int reason = errno;
    close(*fd);
    return reason == EAGAIN || reason == EACCES
               ? mica_fail(err, MICA_CANCELLED, "another process drains the queue %s", mica_path_tail(held->path))
               : mica_fail(err, MICA_IO_ERROR, "cannot lock the queue %s: %s", mica_path_tail(held->path), strerror(reason));
}

/* ---- Steps on the disk ---- */

static void told(const mica_held_drain *drain, const char *step, int64_t id)
{
    if (drain->on_step)
        drain->on_step(drain->user, step, id);
}

static mica_status run(mica_held *held, const char *sql, int64_t id, const char *text, const char *note, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = mica_held_prepare(held, sql, &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, id);
    if (text)
        sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
    if (note)
        sqlite3_bind_text(statement, 3, note, -1, SQLITE_STATIC);
    return mica_held_run(held, statement, err);
}

/* What a crash left behind: it may have arrived. */
static mica_status take_over(mica_held *held, mica_error *err)
{
    return run(
        held,
        "UPDATE held SET state = 0, maybe_sent = 1, note = 'a process ended while it sent this' WHERE ?1 = 0 AND state = 1", 0,
        NULL, NULL, err);
}

static mica_status settle(mica_held *held, int64_t id, mica_held_verdict verdict, bool maybe_sent, const char *reply,
                          const char *note, mica_error *err)
{
    const char *sent = maybe_sent ? "1" : "0";
    if (verdict == MICA_HELD_ANSWERED)
        return run(held, "UPDATE held SET state = 2, reply = ?2, note = ?3 WHERE id = ?1 AND state = 1", id, reply, note, err);
    if (verdict == MICA_HELD_NEVER)
        return run(held,
                   "UPDATE held SET state = 3, maybe_sent = max(maybe_sent, CAST(?2 AS INTEGER)), note = ?3 WHERE id = ?1", id,
                   sent, note, err);
    return run(held, "UPDATE held SET state = 0, maybe_sent = max(maybe_sent, CAST(?2 AS INTEGER)), note = ?3 WHERE id = ?1",
               id, sent, note, err);
}

/* ---- One request ---- */

typedef struct copy {
    int64_t after; /* the row wanted is the next one */
    mica_held_row row;
    char *body, key[65];
} copy;

/* The oldest waiting row after one; row.id 0: there is none. Copied, so that no statement is open while it is sent. */
static mica_status next(mica_held *held, copy *c, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status =
        mica_held_prepare(held, "SELECT * FROM held WHERE state = 0 AND id > ? ORDER BY id LIMIT 1", &statement, err);
    if (status)
        return status;
    sqlite3_bind_int64(statement, 1, c->after);
    c->row.id = 0;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        mica_held_row_read(statement, &c->row);
        c->body = strdup(c->row.body);
        snprintf(c->key, sizeof c->key, "%s", c->row.key);
        c->row.body = c->body;
        c->row.key = c->key;
        c->row.reply = NULL;
        c->row.note = "";
        if (!c->body)
            status = mica_fail_nomem(err, c->row.length, "a request");
    }
    sqlite3_finalize(statement);
    return status;
}

static mica_status send_one(mica_held *held, mica_held_drain *drain, copy *c, mica_held_verdict *verdict, mica_error *err)
{
    char *reply = NULL, note[160] = "";
    bool maybe_sent = false;
    int64_t id = c->row.id;
    mica_status status =
        run(held, "UPDATE held SET state = 1, attempts = attempts + 1 WHERE id = ?1 AND state = 0", id, NULL, NULL, err);
    if (status)
        return status;
    told(drain, "taken", id);
    *verdict = drain->send(drain->user, &c->row, &reply, &maybe_sent, note);
    told(drain, "answered", id);
    if (*verdict == MICA_HELD_ANSWERED && !reply) {
        *verdict = MICA_HELD_AGAIN;
        snprintf(note, sizeof note, "no memory for the reply");
    }
    status = settle(held, id, *verdict, maybe_sent, reply, note, err);
    free(reply);
    if (!status)
        told(drain, "stored", id);
    return status;
}

static mica_status count_left(mica_held *held, int64_t *n, mica_error *err)
{
    sqlite3_stmt *statement;
    mica_status status = mica_held_prepare(held, "SELECT count(*) FROM held WHERE state < 2", &statement, err);
    if (status)
        return status;
    *n = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    return MICA_OK;
}

mica_status mica_held_drain_all(mica_held *held, mica_held_drain *drain, mica_error *err)
{
    mica_held_verdict verdict = MICA_HELD_AGAIN;
    copy c = {.after = 0};
    int lock;
    drain->n_done = drain->n_left = 0;
    mica_status status = take_lock(held, &lock, err);
    if (status)
        return status;
    status = take_over(held, err);
    while (!status && verdict != MICA_HELD_STOP) {
        status = next(held, &c, err);
        if (status || c.row.id == 0)
            break;
        status = send_one(held, drain, &c, &verdict, err);
        drain->n_done += !status && verdict == MICA_HELD_ANSWERED;
        c.after = c.row.id;
        free(c.body);
        c.body = NULL;
    }
    free(c.body);
    if (!status)
        status = count_left(held, &drain->n_left, err);
    close(lock); /* and the lock with it */
    return status;
}
