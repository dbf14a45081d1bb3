#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at s, which ends with a zero; 0: there is none (RFC 3629, section 4). */
static size_t character(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    if (n > 1 && (s[1] < low || s[1] > high))
        return 0;
    for (size_t i = 2; i < n; i++)
        if (s[i] < 0x80 || s[i] > 0xBF)
            return 0;
    return n;
}

/* Messages name files and quote what was read. Both may be cut, or never have been UTF-8; who shows a message relies on it. */
static void make_utf8(char *text)
{
    for (size_t n; *text; text += n) {
        n = character((const unsigned char *)text);
        if (n == 0) {
            *text = '?';
            n = 1;
        }
    }
}

static mica_status fail_v(mica_error *err, mica_status code, int64_t position, const char *format, va_list args)
{
    if (err) {
        err->code = code;
        err->position = position;
        vsnprintf(err->message, sizeof err->message, format, args);
        make_utf8(err->message);
    }
    return code;
}

mica_status mica_fail(mica_error *err, mica_status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_v(err, code, -1, format, args);
    va_end(args);
    return code;
}

mica_status mica_fail_at(mica_error *err, mica_status code, int64_t position, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_v(err, code, position, format, args);
    va_end(args);
    return code;
}

mica_status mica_fail_nomem(mica_error *err, size_t bytes, const char *what)
{
    return mica_fail(err, MICA_OUT_OF_MEMORY, "out of memory: the system refused %zu bytes for %s", bytes, what);
}

const char *mica_status_name(mica_status status)
{
    static const char *const names[] = {
        [MICA_OK] = "MICA_OK",
        [MICA_INVALID_ARGUMENT] = "MICA_INVALID_ARGUMENT",
        [MICA_OUT_OF_MEMORY] = "MICA_OUT_OF_MEMORY",
        [MICA_IO_ERROR] = "MICA_IO_ERROR",
        [MICA_BAD_FILE] = "MICA_BAD_FILE",
        [MICA_UNSUPPORTED] = "MICA_UNSUPPORTED",
        [MICA_CONTEXT_FULL] = "MICA_CONTEXT_FULL",
        [MICA_CANCELLED] = "MICA_CANCELLED",
        [MICA_NON_FINITE] = "MICA_NON_FINITE",
        [MICA_BAD_TEMPLATE] = "MICA_BAD_TEMPLATE",
        [MICA_BAD_TEXT] = "MICA_BAD_TEXT",
        [MICA_OVER_BUDGET] = "MICA_OVER_BUDGET",
        [MICA_BAD_KERNELS] = "MICA_BAD_KERNELS",
        [MICA_REFUSED] = "MICA_REFUSED",
        [MICA_TOO_HOT] = "MICA_TOO_HOT",
    };
    size_t i = (size_t)status;
    return i < sizeof names / sizeof *names && names[i] ? names[i] : "unknown status";
}
