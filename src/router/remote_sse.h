/* remote_sse.h - event streams (text/event-stream, WHATWG HTML 9.2) from a server that is not trusted: bytes in, the data of
 * whole events out. Event names, ids and comments are dropped. Called by remote.c. */
#ifndef MICA_ROUTER_REMOTE_SSE_H
#define MICA_ROUTER_REMOTE_SSE_H
#include "base/buf.h"
#include "base/error.h"

typedef struct mica_sse {
    mica_buf line, data;
    bool has_data; /* the event has a data line, an empty one too */
    bool after_cr; /* a line feed that comes next belongs to the line end before it */
    bool begun;    /* the stream's first line is over, or known to have no byte order mark */
} mica_sse;

/** No event may be longer than `event_max` bytes. */
void mica_sse_init(mica_sse *sse, size_t event_max);
void mica_sse_free(mica_sse *sse);

/** The stream's next bytes, cut anywhere. Non-zero from on_event ends the call: MICA_CANCELLED. MICA_BAD_TEXT: a line or an
 * event is longer than event_max. `data` is terminated, and borrowed for the call. */
mica_status mica_sse_feed(mica_sse *sse, const char *bytes, size_t length,
                          int (*on_event)(void *user, const char *data, size_t length), void *user, mica_error *err);

#endif
