#include "serve/http_parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES 256 /* a chunk's size with extensions, or all trailer lines together times 16 */

void mica_http_start(mica_http_parse *p, size_t body_max)
{
    memset(p, 0, sizeof *p);
    p->body_max = body_max;
    mica_buf_init(&p->head, MICA_SERVE_HEAD_MAX + 1);
    mica_buf_init(&p->body, body_max);
}

void mica_http_end(mica_http_parse *p)
{
    mica_buf_free(&p->head);
    mica_buf_free(&p->body);
}

/* Returns false, for callers to return. */
static bool refuse(mica_http_parse *p, int status, const char *code, const char *why)
{
    mica_fault_set(&p->fault, status, code, NULL, "%s", why);
    p->state = MICA_HTTP_BAD;
    return false;
}

static bool malformed(mica_http_parse *p, const char *why)
{
    return refuse(p, 400, "bad_request", why);
}

const char *mica_http_header_of(const mica_http_parse *p, const char *name)
{
    for (size_t i = 0; i < p->n_headers; i++)
        if (strcasecmp(p->headers[i].name, name) == 0)
            return p->headers[i].value;
    return NULL;
}

static size_t count_of(const mica_http_parse *p, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_headers; i++)
        n += strcasecmp(p->headers[i].name, name) == 0;
    return n;
}

/* ---- The head ---- */

/* A token of RFC 9110, section 5.6.2. */
static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c <= 0x20 || c >= 0x7F || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return n > 0;
}

static bool is_printable(const char *s, bool blanks)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 ? !(blanks && c == '\t') : c == 0x7F || (c == ' ' && !blanks))
            return false;
    }
    return true;
}

/* "GET /path?query HTTP/1.1"; a target with scheme and host, which proxies send, is cut to its path. */
static bool read_request_line(mica_http_parse *p, char *line)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version || !is_token(line, (size_t)(target - line)))
        return malformed(p, "the request line is not METHOD PATH HTTP/1.1");
    *target++ = '\0';
    *version++ = '\0';
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        bool other = strncmp(version, "HTTP/", 5) == 0;
        return other ? refuse(p, 505, "http_version", "only HTTP/1.1 and HTTP/1.0 are spoken here")
                     : malformed(p, "the request line is not METHOD PATH HTTP/1.1");
    }
    char *path = strncasecmp(target, "http://", 7) == 0 ? strchr(target + 7, '/') : NULL;
    target = path ? path : target;
    if ((*target != '/' && strcmp(target, "*") != 0) || !is_printable(target, false))
        return malformed(p, "the request's path does not begin with a slash");
    p->http10 = version[7] == '0';
    p->method = line;
    p->path = target;
    char *mark = strchr(target, '?');
    p->query = mark ? mark + 1 : "";
    if (mark)
        *mark = '\0';
    return true;
}

static bool read_header(mica_http_parse *p, char *line)
{
    char *colon = strchr(line, ':');
    if (p->n_headers == MICA_SERVE_HEADERS_MAX)
        return refuse(p, 431, "headers_too_large", "the request has more than 64 header lines");
    if (!colon || !is_token(line, (size_t)(colon - line)))
        return malformed(p, "a header line is not NAME: VALUE");
    *colon++ = '\0';
    colon += strspn(colon, " \t");
    for (size_t n = strlen(colon); n > 0 && strchr(" \t", colon[n - 1]); n--)
        colon[n - 1] = '\0';
    if (!is_printable(colon, true))
        return malformed(p, "a header's value has a control character");
    p->headers[p->n_headers++] = (mica_http_header){line, colon};
    return true;
}

static bool read_length(mica_http_parse *p)
{
    const char *length = mica_http_header_of(p, "content-length"), *coding = mica_http_header_of(p, "transfer-encoding");
    if (count_of(p, "content-length") > 1 || count_of(p, "transfer-encoding") > 1 || (length && coding))
        return malformed(p, "the request says more than once how long its body is");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return refuse(p, 501, "transfer_encoding", "of the transfer encodings only chunked is known here");
    p->chunked = coding != NULL;
    if (!length)
        return true;
    if (!*length || strspn(length, "0123456789") != strlen(length))
        return malformed(p, "Content-Length is not a number");
    p->left = strlen(length) > 18 ? SIZE_MAX : (size_t)strtoull(length, NULL, 10);
    return true;
}

static bool read_meaning(mica_http_parse *p)
{
    const char *connection = mica_http_header_of(p, "connection"), *expect = mica_http_header_of(p, "expect");
    if (count_of(p, "host") > 1 || (!p->http10 && count_of(p, "host") == 0))
        return malformed(p, "the request needs one Host header");
    if (expect && strcasecmp(expect, "100-continue") != 0)
        return refuse(p, 417, "expectation", "of Expect only 100-continue is known here");
    p->expects = expect != NULL && !p->http10;
    p->keep_alive =
        p->http10 ? connection && strcasestr(connection, "keep-alive") : !(connection && strcasestr(connection, "close"));
    if (!read_length(p))
        return false;
    if (p->left > p->body_max)
        return refuse(p, 413, "body_too_large", "the body is larger than the server's limit");
    return true;
}

/* The whole head is in p->head, its last CRLF CRLF included. */
static void read_head(mica_http_parse *p)
{
    char *line = p->head.data, *end = line + p->head.length;
    bool first = true, good = memchr(line, '\0', p->head.length) == NULL;
    if (!good)
        malformed(p, "the headers have a NUL byte");
    while (good && line < end - 2) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        stop[-1] = '\0'; /* the CR: feed_head() has seen it in front of every LF */
        good = first ? read_request_line(p, line) : read_header(p, line);
        first = false;
        line = stop + 1;
    }
    if (good && read_meaning(p))
        p->state = MICA_HTTP_HEAD_DONE;
}

/* Byte by byte, so that the end of the head is found wherever the pieces are cut. */
static size_t feed_head(mica_http_parse *p, const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p->head.length == 0 && (data[i] == '\r' || data[i] == '\n'))
            continue; /* empty lines before a request are ignored (RFC 9112, 2.2) */
        if (p->head.length == MICA_SERVE_HEAD_MAX) {
            refuse(p, 431, "headers_too_large", "the request line and headers are larger than 16 KiB");
            return i;
        }
        if (!mica_buf_putc(&p->head, data[i])) {
            refuse(p, 503, "out_of_memory", "the server has no memory for the request");
            return i;
        }
        const char *tail = p->head.data + p->head.length;
        if (data[i] == '\n' && (p->head.length < 2 || tail[-2] != '\r')) {
            malformed(p, "a line of the headers does not end in CR LF");
            return i + 1;
        }
        if (data[i] == '\n' && p->head.length >= 4 && memcmp(tail - 4, "\r\n\r\n", 4) == 0) {
            read_head(p);
            return i + 1;
        }
    }
    return n;
}

/* ---- The body ---- */

void mica_http_want_body(mica_http_parse *p)
{
    p->state = p->chunked ? MICA_HTTP_CHUNK_SIZE : p->left > 0 ? MICA_HTTP_BODY : MICA_HTTP_WHOLE;
    p->line = 0;
}

static size_t feed_data(mica_http_parse *p, const char *data, size_t n, mica_http_state next)
{
    size_t part = n < p->left ? n : p->left;
    if (!mica_buf_append(&p->body, data, part)) {
        refuse(p, 503, "out_of_memory", "the server has no memory for the request");
        return 0;
    }
    p->left -= part;
    if (p->left == 0)
        p->state = next;
    return part;
}

/* The hexadecimal size; an extension behind ';' is skipped. */
static void read_size(mica_http_parse *p)
{
    size_t digits = strspn(p->size_line, "0123456789abcdefABCDEF");
    const char *rest = p->size_line + digits;
    rest += strspn(rest, " \t");
    if (digits == 0 || (*rest && *rest != ';')) {
        malformed(p, "the size of a chunk is not a hexadecimal number");
        return;
    }
    p->left = digits > 15 ? SIZE_MAX : (size_t)strtoull(p->size_line, NULL, 16);
    p->line = 0;
    if (p->left > p->body_max - p->body.length)
        refuse(p, 413, "body_too_large", "the body is larger than the server's limit");
    else
        p->state = p->left > 0 ? MICA_HTTP_CHUNK_DATA : MICA_HTTP_TRAILER;
}

static void feed_size(mica_http_parse *p, char c)
{
    size_t room = sizeof p->size_line - 1;
    bool after_cr = p->after_cr;
    p->after_cr = c == '\r';
    if (c == '\n' && after_cr) {
        p->size_line[p->line < room ? p->line : room] = '\0';
        read_size(p);
    } else if (c == '\n' || c == '\0' || after_cr || p->line == LINE_MAX_BYTES) {
        malformed(p, "the size line of a chunk is malformed");
    } else if (c != '\r') {
        if (p->line < room) /* more digits than a size can have are enough to refuse it */
            p->size_line[p->line] = c;
        p->line++;
    }
}

static void feed_chunk_end(mica_http_parse *p, char c)
{
    p->line++;
    if (c != (p->line == 1 ? '\r' : '\n')) {
        malformed(p, "a chunk is longer than its size says");
    } else if (p->line == 2) {
        p->line = 0;
        p->state = MICA_HTTP_CHUNK_SIZE;
    }
}

/* Trailer lines are read and dropped; `left` counts all of them, `line` those of the present one. */
static void feed_trailer(mica_http_parse *p, char c)
{
    if (++p->left > (size_t)16 * LINE_MAX_BYTES) {
        malformed(p, "the lines behind the body are too long");
        return;
    }
    if (c == '\n' && p->line == 0)
        p->state = MICA_HTTP_WHOLE;
    else if (c == '\n')
        p->line = 0;
    else if (c != '\r')
        p->line++;
}

size_t mica_http_feed(mica_http_parse *p, const char *data, size_t n)
{
    size_t at = 0;
    while (at < n) {
        switch (p->state) {
        case MICA_HTTP_HEAD:
            at += feed_head(p, data + at, n - at);
            break;
        case MICA_HTTP_BODY:
            at += feed_data(p, data + at, n - at, MICA_HTTP_WHOLE);
            break;
        case MICA_HTTP_CHUNK_DATA:
            at += feed_data(p, data + at, n - at, MICA_HTTP_CHUNK_END);
            break;
        case MICA_HTTP_CHUNK_SIZE:
            feed_size(p, data[at++]);
            break;
        case MICA_HTTP_CHUNK_END:
            feed_chunk_end(p, data[at++]);
            break;
        case MICA_HTTP_TRAILER:
            feed_trailer(p, data[at++]);
            break;
        case MICA_HTTP_HEAD_DONE:
        case MICA_HTTP_WHOLE:
        case MICA_HTTP_BAD:
            return at;
        }
    }
    return at;
}
