/* http_parse.h - bytes of a connection to HTTP/1.1 requests. Owns the head and the body of one request; knows no sockets.
 *
 *     mica_http_parse p;  mica_http_start(&p, body_max);
 *     n = mica_http_feed(&p, bytes, length);          // takes n of them; again until the state says something
 *
 * Strict where leniency lets two programs read one request differently (RFC 9112, sections 2.2, 5.1, 6): lines end in CRLF, no
 * blank before a colon, no folded lines, one Content-Length or "chunked" but not both, one Host. No recursion, no look-back;
 * every byte is looked at once. Called by http.c. */
#ifndef MICA_SERVE_HTTP_PARSE_H
#define MICA_SERVE_HTTP_PARSE_H
#include "base/buf.h"
#include "serve/fault.h"
#include "serve/limits.h"

typedef enum mica_http_state {
    MICA_HTTP_HEAD = 0,      /* not all of the headers are here */
    MICA_HTTP_HEAD_DONE = 1, /* they are: look at them, then mica_http_want_body() or refuse */
    MICA_HTTP_BODY = 2,
    MICA_HTTP_CHUNK_SIZE = 3, /* chunked bodies: the line with a size, the data, its CRLF, the lines at the end */
    MICA_HTTP_CHUNK_DATA = 4,
    MICA_HTTP_CHUNK_END = 5,
    MICA_HTTP_TRAILER = 6,
    MICA_HTTP_WHOLE = 7, /* the request is complete */
    MICA_HTTP_BAD = 8,   /* `fault` says why; nothing more can be read from this connection */
} mica_http_state;

typedef struct mica_http_header {
    const char *name, *value; /* in `head`, terminated */
} mica_http_header;

typedef struct mica_http_parse {
    mica_http_state state;
    mica_buf head, body;
    size_t body_max, left; /* bytes of the body, or of the chunk, to come */
    size_t line;           /* bytes of the size line or trailer so far */
    char size_line[20];
    const char *method, *path, *query; /* query: behind the '?', or "" */
    bool http10, keep_alive, expects, chunked, after_cr;
    size_t n_headers;
    mica_http_header headers[MICA_SERVE_HEADERS_MAX];
    mica_fault fault;
} mica_http_parse;

void mica_http_start(mica_http_parse *p, size_t body_max);
/** Frees the head and the body. A zeroed parser is fine. */
void mica_http_end(mica_http_parse *p);

/** Takes bytes, stops where the state is HEAD_DONE, WHOLE or BAD; returns how many it took. */
size_t mica_http_feed(mica_http_parse *p, const char *data, size_t n);
/** After HEAD_DONE: goes on to the body; WHOLE if there is none. */
void mica_http_want_body(mica_http_parse *p);

/** The value of a header, by its name in lower case; NULL if there is none. */
const char *mica_http_header_of(const mica_http_parse *p, const char *name);

#endif
