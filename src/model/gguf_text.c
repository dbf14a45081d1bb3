/* gguf_text.c - names and values as text for people: bytes of a file never reach a terminal or JSON as they are. */
#include "model/gguf_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/buf.h"

#define MAX_STRING   (1 << 20) /* bytes of a string value that are shown; chat templates are below 64 KiB */
#define MAX_ELEMENTS 8         /* of an array */
#define MAX_ELEMENT  64        /* bytes of a string in an array */

/* ---- Escapes --------------------------------------------------------------------------------------------------------- */

/* Controls (C0, DEL, C1), and what reorders or hides text in a terminal. */
static bool is_unsafe(utf8proc_int32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || (c >= 0x202A && c <= 0x202E) ||
           (c >= 0x2066 && c <= 0x2069);
}

size_t mica_gguf_show_char(const char *text, size_t length, bool keep_lines, char out[16], size_t *written)
{
    static const char hex[] = "0123456789abcdef";
    utf8proc_int32_t c;
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text, length < 4 ? (utf8proc_ssize_t)length : 4, &c);
    bool line = n == 1 && (c == '\n' || c == '\t');
    if (n > 0 && (!is_unsafe(c) || (line && keep_lines))) {
        memcpy(out, text, (size_t)n);
        *written = (size_t)n;
        return (size_t)n;
    }
    if (line) {
        memcpy(out, c == '\n' ? "\\n" : "\\t", 2);
        *written = 2;
        return 1;
    }
    size_t bytes = n > 0 ? (size_t)n : 1;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char b = (unsigned char)text[i];
        memcpy(out + 4 * i, (char[4]){'\\', 'x', hex[b >> 4], hex[b & 15]}, 4);
    }
    *written = 4 * bytes;
    return bytes;
}

void mica_gguf_show(mica_str name, char *out, size_t size)
{
    size_t used = 0, at = 0;
    while (at < name.length) {
        char c[16];
        size_t written, consumed = mica_gguf_show_char(name.data + at, name.length - at, false, c, &written);
        if (used + written + sizeof "..." > size && at + consumed < name.length) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (used + written + 1 > size)
            break;
        memcpy(out + used, c, written);
        used += written;
        at += consumed;
    }
    out[used] = '\0';
}

static void append_text(mica_buf *buf, mica_str s, size_t maximum, bool keep_lines)
{
    size_t at = 0, end = s.length < maximum ? s.length : maximum;
    while (at < end) {
        char c[16];
        size_t written;
        at += mica_gguf_show_char(s.data + at, s.length - at, keep_lines, c, &written);
        if (!mica_buf_append(buf, c, written))
            return;
    }
    if (at < s.length)
        mica_buf_printf(buf, "... (%zu bytes)", s.length);
}

/* ---- Values ---------------------------------------------------------------------------------------------------------- */

/* The shortest decimal that reads back as the same number; with a point whatever the locale. */
static void append_float(mica_buf *buf, double d, bool single)
{
    char text[40];
    for (int digits = single ? 6 : 15; digits <= (single ? 9 : 17); digits++) {
        snprintf(text, sizeof text, "%.*g", digits, d);
        double back = strtod(text, NULL);
        if (single ? (float)back == (float)d : back == d)
            break;
    }
    for (char *p = text; *p; p++)
        if (*p == ',')
            *p = '.';
    mica_buf_puts(buf, text);
}

/* Element i of a number or bool. */
static void append_number(mica_buf *buf, const mica_gguf_value *v, uint64_t i)
{
    switch (v->element) {
    case MICA_GGUF_F32:
    case MICA_GGUF_F64:
        append_float(buf, mica_gguf_array_f64(v, i), v->element == MICA_GGUF_F32);
        return;
    case MICA_GGUF_BOOL:
        mica_buf_puts(buf, mica_gguf_array_i64(v, i) ? "true" : "false");
        return;
    case MICA_GGUF_U64: /* array_i64 saturates */
        mica_buf_printf(buf, "%" PRIu64, mica_gguf_le64(v->data + i * 8));
        return;
    default:
        mica_buf_printf(buf, "%" PRId64, mica_gguf_array_i64(v, i));
    }
}

static void append_array(mica_buf *buf, const mica_gguf_value *v)
{
    uint64_t cursor = 0;
    mica_buf_putc(buf, '[');
    for (uint64_t i = 0; i < v->count && i < MAX_ELEMENTS; i++) {
        if (i > 0)
            mica_buf_puts(buf, ", ");
        if (v->element == MICA_GGUF_STRING) {
            mica_buf_putc(buf, '"');
            append_text(buf, mica_gguf_array_str(v, &cursor), MAX_ELEMENT, false);
            mica_buf_putc(buf, '"');
        } else {
            append_number(buf, v, i);
        }
    }
    if (v->count > MAX_ELEMENTS)
        mica_buf_printf(buf, ", ... (%" PRIu64 " in all)", v->count);
    mica_buf_putc(buf, ']');
}

char *mica_gguf_value_text(const mica_gguf_value *v)
{
    mica_buf buf;
    uint64_t cursor = 0;
    mica_buf_init(&buf, (size_t)MAX_STRING * 4 + 4096); /* every byte may need four */
    if (v->kind == MICA_GGUF_ARRAY)
        append_array(&buf, v);
    else if (v->kind == MICA_GGUF_STRING)
        append_text(&buf, mica_gguf_array_str(v, &cursor), MAX_STRING, true);
    else
        append_number(&buf, v, 0);
    return mica_buf_take(&buf, NULL);
}
