#include "router/remote_sse.h"

#include <string.h>

void mica_sse_init(mica_sse *sse, size_t event_max)
{
    *sse = (mica_sse){.has_data = false};
    mica_buf_init(&sse->line, event_max);
    mica_buf_init(&sse->data, event_max);
}

void mica_sse_free(mica_sse *sse)
{
    mica_buf_free(&sse->line);
    mica_buf_free(&sse->data);
}

/* Empties the text and keeps its memory: a stream has thousands of events. */
static void clear(mica_buf *buf)
{
    buf->length = 0;
    if (buf->data)
        buf->data[0] = '\0';
}

/* "data: x" adds x and, between two such lines, a line feed. */
static bool take_field(mica_sse *sse)
{
    const char *line = sse->line.data;
    size_t length = sse->line.length, skip = 4;
    if (length < 4 || memcmp(line, "data", 4) != 0 || (length > 4 && line[4] != ':'))
        return true;
    skip += length > 4;
    skip += length > 5 && line[5] == ' ';
    bool good = !sse->has_data || mica_buf_putc(&sse->data, '\n');
    sse->has_data = true;
    return good && mica_buf_append(&sse->data, line + skip, length - skip);
}

static int end_line(mica_sse *sse, int (*on_event)(void *, const char *, size_t), void *user, bool *too_long)
{
    int code = 0;
    if (!sse->begun && sse->line.length >= 3 && memcmp(sse->line.data, "\xEF\xBB\xBF", 3) == 0) {
        memmove(sse->line.data, sse->line.data + 3, sse->line.length - 2); /* with the terminator */
        sse->line.length -= 3;
    }
    sse->begun = true;
    if (sse->line.length > 0) {
        *too_long = !take_field(sse);
    } else {
        if (sse->has_data)
            code = on_event(user, sse->data.data ? sse->data.data : "", sse->data.length);
        sse->has_data = false;
        clear(&sse->data);
    }
    clear(&sse->line);
    return code;
}

mica_status mica_sse_feed(mica_sse *sse, const char *bytes, size_t length,
                          int (*on_event)(void *user, const char *data, size_t length), void *user, mica_error *err)
{
    bool too_long = false;
    int code = 0;
    for (size_t i = 0; i < length && !code && !too_long;) {
        size_t n = 0;
        while (i + n < length && bytes[i + n] != '\n' && bytes[i + n] != '\r')
            n++;
        if (n > 0) {
            sse->after_cr = false;
            too_long = !mica_buf_append(&sse->line, bytes + i, n);
            i += n;
            continue;
        }
        bool second = sse->after_cr && bytes[i] == '\n';
        sse->after_cr = bytes[i++] == '\r';
        if (!second)
            code = end_line(sse, on_event, user, &too_long);
    }
    if (too_long)
        return mica_fail(err, MICA_BAD_TEXT, "an event of the stream is longer than %zu bytes", sse->line.maximum);
    return code ? mica_fail(err, MICA_CANCELLED, "the reader of the stream stopped it") : MICA_OK;
}
