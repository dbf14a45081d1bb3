/* transfer.h - one request for a file, or for what is missing of it, with its redirects. Called by pull.c. */
#ifndef MICA_PULL_TRANSFER_H
#define MICA_PULL_TRANSFER_H
#include "pull/part.h"

typedef enum mica_transfer_end {
    MICA_END_WHOLE,   /* by what the server says, the part is the whole file now */
    MICA_END_AGAIN,   /* it broke off, or the server is busy: ask for the rest */
    MICA_END_RESTART, /* the server's file cannot continue this part: begin with the first byte */
    MICA_END_REFUSED, /* this address will not do */
    MICA_END_STOP,    /* the trouble is here: the disk, or the user's wish */
} mica_transfer_end;

/** Asks for what the part lacks and appends it. For every end but WHOLE and RESTART *err says why. *wait_ms: how long the
 * server wants to be left alone (Retry-After); 0: it did not say. */
mica_transfer_end mica_transfer_run(const mica_pull_options *o, const char *url, mica_part *part, int64_t *wait_ms,
                                    mica_error *err);

#endif
