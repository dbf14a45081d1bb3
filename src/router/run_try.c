#include "router/run_try.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void mica_try_init(mica_try *t)
{
    *t = (mica_try){
        .retry_after_ms = -1, .prompt_tokens = -1, .output_tokens = -1, .decode_tps = NAN, .start_ns = mica_now_ns()};
    mica_buf_init(&t->text, MICA_RUN_REPLY_MAX);
}

void mica_try_free(mica_try *t)
{
    mica_buf_free(&t->text);
    json_decref(t->tool_calls);
    t->tool_calls = NULL;
}

/* Of a character that begins so; 0: none does. Overlong forms and surrogates begin like good ones and are told by what follows.
 */
static size_t length_of(const unsigned char *c)
{
    size_t n = c[0] < 0x80                   ? 1
               : c[0] >= 0xC2 && c[0] < 0xE0 ? 2
               : c[0] >= 0xE0 && c[0] < 0xF0 ? 3
               : c[0] >= 0xF0 && c[0] < 0xF5 ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((c[i] & 0xC0) != 0x80)
            return 0;
    bool bad = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] >= 0xA0) || (c[0] == 0xF0 && c[1] < 0x90) ||
               (c[0] == 0xF4 && c[1] >= 0x90);
    return bad ? 0 : n;
}

/* A server's words go to logs, terminals and JSON. */
static void scrub(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c;) {
        size_t n = length_of(c);
        if (n == 0)
            *c = '?';
        else if (*c < ' ' || *c == 127)
            *c = ' ';
        c += n ? n : 1;
    }
}

void mica_try_copy(char *out, size_t size, const char *text)
{
    size_t n = strlen(text);
    n = n < size ? n : size - 1;
    memcpy(out, text, n);
    out[n] = '\0';
    scrub(out);
}

bool mica_try_fail(mica_try *t, mica_failure failure, const char *format, ...)
{
    va_list args;
    if (t->failure)
        return false;
    t->failure = failure;
    va_start(args, format);
    vsnprintf(t->message, sizeof t->message, format, args);
    va_end(args);
    scrub(t->message);
    return false;
}

void mica_try_result(const mica_try *t, char out[24])
{
    static const char *const names[] = {"ok",           "cancelled",      "lost",         "no_connection", "bad_tls",
                                        "timeout",      "http",           "cut",          "garbage",       "too_long",
                                        "server_error", "invalid_output", "no_key",       "not_redacted",  "no_memory",
                                        "no_model",     "context_full",   "engine_error", "breaker_open",  "egress_denied",
                                        "hot"};
    _Static_assert(sizeof names / sizeof *names == MICA_FAILURE_HOT + 1, "a name for each");
    if (t->failure == MICA_FAILURE_HTTP)
        snprintf(out, 24, "http_%d", t->http_status);
    else
        snprintf(out, 24, "%s", names[t->failure]);
}

bool mica_try_text(mica_try *t, const mica_try_link *link, const char *text, size_t length)
{
    if (length == 0)
        return true;
    if (t->first_ns == 0)
        t->first_ns = mica_now_ns();
    if (!mica_buf_append(&t->text, text, length))
        return mica_try_fail(t, MICA_FAILURE_TOO_LONG, "the reply is longer than %zu bytes", MICA_RUN_REPLY_MAX);
    if (link->on_text && link->on_text(link->user, text, length))
        return mica_try_fail(t, MICA_FAILURE_CANCELLED, "the reader of the reply stopped it");
    return true;
}
