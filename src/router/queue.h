/* queue.h - the requests that wait for the network, on the disk: mica_held of mica_router.h. Private part, for queue_drain.c.
 *
 * Invariants
 *  1. A row goes WAITING -> SENDING, on the disk, before anything of it leaves; SENDING -> DONE in the transaction that stores
 * the reply; SENDING -> WAITING or FAILED when the attempt is known to be over.
 *  2. Rows are SENDING only while a process holds the lock FILE.lock, which ends with it: who takes the lock and finds such a
 * row knows that a crash left it, and that it may have arrived. It is sent again under its key.
 *  3. Only the owner may read the files: they have prompts and replies. */
#ifndef MICA_ROUTER_QUEUE_H
#define MICA_ROUTER_QUEUE_H
#include <sqlite3.h>

#include "base/error.h"
#include "mica/mica_router.h"

struct mica_held {
    sqlite3 *db;
    char *path;
};

mica_status mica_held_prepare(mica_held *held, const char *sql, sqlite3_stmt **out, mica_error *err);
/** Runs a statement that gives no rows, and finalises it. */
mica_status mica_held_run(mica_held *held, sqlite3_stmt *statement, mica_error *err);
/** A row of "SELECT *". Texts are borrowed until the next step. */
void mica_held_row_read(sqlite3_stmt *statement, mica_held_row *row);

#endif
