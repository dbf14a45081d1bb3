#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mica_buf_init(mica_buf *buf, size_t maximum) { *buf = (mica_buf){.maximum = maximum}; }

void mica_buf_free(mica_buf *buf)
{
    free(buf->data);
    *buf = (mica_buf){.maximum = buf->maximum};
}

/* Room for `extra` bytes and the terminator. */
static bool reserve(mica_buf *buf, size_t extra)
{
    if (buf->failed || extra > buf->maximum - buf->length) {
        buf->failed = true;
        return false;
    }
    size_t need = buf->length + extra + 1;
    if (need <= buf->capacity)
        return true;
    size_t capacity = buf->capacity ? buf->capacity : 64;
    while (capacity < need)
        capacity = capacity > buf->maximum / 2 ? buf->maximum + 1 : capacity * 2;
    char *data = realloc(buf->data, capacity);
    if (!data) {
        buf->failed = buf->no_memory = true;
        return false;
    }
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

bool mica_buf_append(mica_buf *buf, const void *data, size_t length)
{
    if (!reserve(buf, length))
        return false;
    if (length)
        memcpy(buf->data + buf->length, data, length);
    buf->length += length;
    buf->data[buf->length] = '\0';
    return true;
}

bool mica_buf_puts(mica_buf *buf, const char *text) { return mica_buf_append(buf, text, strlen(text)); }

bool mica_buf_putc(mica_buf *buf, char c) { return mica_buf_append(buf, &c, 1); }

bool mica_buf_printf(mica_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || !reserve(buf, (size_t)n))
        return false;
    va_start(args, format);
    vsnprintf(buf->data + buf->length, (size_t)n + 1, format, args);
    va_end(args);
    buf->length += (size_t)n;
    return true;
}

char *mica_buf_take(mica_buf *buf, size_t *length)
{
    if (!reserve(buf, 0)) {
        mica_buf_free(buf);
        return NULL;
    }
    char *data = buf->data;
    data[buf->length] = '\0';
    if (length)
        *length = buf->length;
    *buf = (mica_buf){.maximum = buf->maximum};
    return data;
}
