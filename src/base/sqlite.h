/* sqlite.h - why a call of SQLite failed, in words. Of an error of I/O it says no more than that it was one; the system knows
 * which. Called by the stores. */
#ifndef MICA_BASE_SQLITE_H
#define MICA_BASE_SQLITE_H
#include <errno.h>
#include <sqlite3.h>
#include <string.h>

/** Of the connection's last error; valid until its next call. */
static inline const char *mica_sqlite_why(sqlite3 *db)
{
    int code = sqlite3_errcode(db) & 0xff, error = sqlite3_system_errno(db);
    if (error == 0 || (code != SQLITE_IOERR && code != SQLITE_CANTOPEN))
        return sqlite3_errmsg(db);
    return error == ENOSPC || error == EDQUOT ? "the disk is full (or the quota)" : strerror(error);
}

#endif
