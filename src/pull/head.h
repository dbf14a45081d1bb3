/* head.h - the header fields of a download's answer, and what they mean for a part. From outside: everything is checked, what
 * is not understood counts as absent. Called by transfer.c. */
#ifndef MICA_PULL_HEAD_H
#define MICA_PULL_HEAD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mica_head {
    char etag[256];             /* strong ones only; "": none */
    char modified[64];          /* Last-Modified */
    bool has_range;             /* Content-Range: bytes first-last/total, or bytes * /total with first = -1 */
    int64_t first, last, total; /* total -1: "*" */
    bool encoded;               /* Content-Encoding that is not "identity" */
} mica_head;

/** A line as it came, not terminated; one that begins a new answer (HTTP/...) empties *head. */
void mica_head_line(mica_head *head, const char *line, size_t length);
/** What If-Range may say of this answer; "" if nothing. Borrowed from *head. */
const char *mica_head_validator(const mica_head *head);

#endif
