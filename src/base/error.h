/* error.h - how every layer reports failure. Called by all. */
#ifndef MICA_BASE_ERROR_H
#define MICA_BASE_ERROR_H
#include "mica/mica.h"

/** Fills *err (may be NULL) with code, position -1 and a formatted sentence; returns `code` so that callers can write
 * `return mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", path, reason)`. */
mica_status mica_fail(mica_error *err, mica_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** The same with a byte position. */
mica_status mica_fail_at(mica_error *err, mica_status code, int64_t position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** The one sentence for a refused allocation of `bytes` for `what`. */
mica_status mica_fail_nomem(mica_error *err, size_t bytes, const char *what);

#endif
