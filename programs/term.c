#include "term.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

/* ---- Messages ---- */

static void print_line(const char *prefix, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static void print_line(const char *prefix, const char *format, va_list args)
{
    char line[4096]; /* a library message has 488 bytes, a path at most 4096; what is longer is cut */
    vsnprintf(line, sizeof line, format, args);
    for (char *p = line; *p; p++)
        if (*p == '\n' || *p == '\r' || *p == '\t')
            *p = ' ';
        else if ((unsigned char)*p < 0x20 || *p == 0x7F)
            *p = '?';
    fprintf(stderr, "%s%s\n", prefix, line);
}

int mica_term_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("mica: ", format, args);
    va_end(args);
    return CODE_FAILED;
}

int mica_term_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("mica: ", format, args);
    va_end(args);
    return CODE_USAGE;
}

void mica_term_note(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("mica: ", format, args);
    va_end(args);
}

static void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line("mica: warning: ", format, args);
    va_end(args);
}

void mica_term_warning(void *user, const char *message)
{
    (void)user;
    warn("%s", message);
}

/* ---- Progress ---- */

enum { BAR_WIDTH = 30, BAR_DELAY_MS = 300, BAR_EVERY_MS = 50 };

void mica_bar_show(mica_bar *bar, double done)
{
    int64_t now = mica_now_ns();
    if (!isatty(STDERR_FILENO))
        return;
    if (!bar->start_ns)
        bar->start_ns = now;
    if (now - bar->start_ns < BAR_DELAY_MS * 1000000LL || (bar->last_ns && now - bar->last_ns < BAR_EVERY_MS * 1000000LL))
        return;
    bar->last_ns = now;
    int filled = (int)(done * BAR_WIDTH + 0.5);
    filled = filled < 0 ? 0 : filled > BAR_WIDTH ? BAR_WIDTH : filled;
    fprintf(stderr, "\r[%.*s%*s] %3.0f %% %s", filled, "##############################", BAR_WIDTH - filled, "",
            done * 100, bar->what);
    fflush(stderr);
}

void mica_bar_end(mica_bar *bar)
{
    if (bar->last_ns)
        fputs("\r\033[K", stderr); /* to the line's start, and erase it */
    bar->start_ns = bar->last_ns = 0;
}

/* ---- Standard output ---- */

static int output_errno; /* why standard output failed first; 0: it has not, as far as we looked */

static bool note_output(bool written)
{
    if (!written && !output_errno)
        output_errno = errno ? errno : EIO;
    return written;
}

/* Not through stdio: after Ctrl-C, whose handler does not restart calls, it would give up in the middle of a piece. */
bool mica_term_write(const char *data, size_t length)
{
    errno = 0;
    if (!note_output(fflush(stdout) == 0))
        return false;
    while (length > 0) {
        ssize_t n = write(STDOUT_FILENO, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return note_output(false);
        data += n;
        length -= (size_t)n;
    }
    return true;
}

int mica_term_finish(int code)
{
    errno = 0;
    note_output(fflush(stdout) == 0 && !ferror(stdout));
    return output_errno ? mica_term_error("cannot write to standard output: %s", strerror(output_errno)) : code;
}

/* ---- JSON ---- */

/* An object whose member could not be made is there without it: only the refusal tells. */
static atomic_bool json_lost;

static void *json_memory(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        atomic_store(&json_lost, true);
    return memory;
}

void mica_json_watch(void) { json_set_alloc_funcs(json_memory, free); }

/* Bytes of the character at data; 0 if none is valid there. jansson's own check decides. */
static size_t character_bytes(const char *data, size_t length)
{
    for (size_t n = 1; n <= 4 && n <= length; n++) {
        json_t *s = json_stringn(data, n);
        if (s) {
            json_decref(s);
            return n;
        }
    }
    return 0;
}

json_t *mica_json_text(const char *data, size_t length)
{
    json_t *s = json_stringn(length ? data : "", length);
    if (s)
        return s;
    mica_buf buf;
    mica_buf_init(&buf, 4 * length + 1);
    for (size_t i = 0; i < length;) {
        size_t n = character_bytes(data + i, length - i);
        if (n > 0)
            mica_buf_append(&buf, data + i, n);
        else
            mica_buf_printf(&buf, "\\x%02x", (unsigned char)data[i]);
        i += n > 0 ? n : 1;
    }
    s = buf.failed ? NULL : json_stringn(buf.data, buf.length);
    mica_buf_free(&buf);
    return s;
}

json_t *mica_json_real(double value) { return isfinite(value) ? json_real(value) : json_null(); }

bool mica_json_line(json_t *object)
{
    if (!object || atomic_load(&json_lost)) {
        json_decref(object);
        mica_term_error("not enough memory for the JSON output");
        return false;
    }
    errno = 0;
    bool done = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 && putc('\n', stdout) != EOF &&
                fflush(stdout) == 0;
    json_decref(object);
    return note_output(done);
}
