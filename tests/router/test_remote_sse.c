/* Event streams: the same events however the bytes are cut, and nothing without a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router/remote_sse.h"

typedef struct events {
    char text[512];
    int n, stop_at;
} events;

static int on_event(void *user, const char *data, size_t length)
{
    events *e = user;
    assert_int_equal(strlen(data), length);
    strcat(e->text, data);
    strcat(e->text, "|");
    return ++e->n == e->stop_at;
}

static void feed_in_pieces(const char *stream, size_t piece, const char *wanted)
{
    events e = {.n = 0};
    mica_sse sse;
    mica_sse_init(&sse, 64);
    for (size_t at = 0, n = strlen(stream); at < n; at += piece)
        assert_int_equal(mica_sse_feed(&sse, stream + at, piece < n - at ? piece : n - at, on_event, &e, NULL), MICA_OK);
    assert_string_equal(e.text, wanted);
    mica_sse_free(&sse);
}

static void check(const char *stream, const char *wanted)
{
    for (size_t piece = 1; piece <= strlen(stream); piece++)
        feed_in_pieces(stream, piece, wanted);
}

static void test_events(void **state)
{
    (void)state;
    check("data: a\n\ndata: b\n\n", "a|b|");
    check("data:a\n\n", "a|");
    check("data:  a\n\n", " a|"); /* one blank is the form's */
    check("data: a\ndata: b\n\n", "a\nb|");
    check("data\n\n", "|");
    check("data:\n\n", "|");
    check("data\ndata\n\n", "\n|");
    check("event: x\nid: 7\nretry: 5\ndata: a\n\n", "a|");
    check("datax: a\n\n", "");
    check(": comment\n\n", "");
    check("\n\n\n", "");
    check("data: a\n", ""); /* no end: no event */
    check("\xEF\xBB\xBF"
          "data: a\n\n",
          "a|");
}

static void test_line_ends(void **state)
{
    (void)state;
    check("data: a\r\n\r\ndata: b\r\n\r\n", "a|b|");
    check("data: a\r\rdata: b\r\r", "a|b|");
    check("data: a\r\n\ndata: b\n\r\n", "a|b|");
}

static void test_limit(void **state)
{
    (void)state;
    char line[80] = "data: ";
    mica_error err;
    events e = {.n = 0};
    mica_sse sse;
    memset(line + 6, 'x', 70);
    mica_sse_init(&sse, 64);
    assert_int_equal(mica_sse_feed(&sse, line, 76, on_event, &e, &err), MICA_BAD_TEXT);
    assert_non_null(strstr(err.message, "64 bytes"));
    mica_sse_free(&sse);
    mica_sse_init(&sse, 64); /* lines that are short, of an event that is long */
    mica_status status = MICA_OK;
    for (int i = 0; i < 10 && !status; i++)
        status = mica_sse_feed(&sse, "data: 0123456789\n", 17, on_event, &e, &err);
    assert_int_equal(status, MICA_BAD_TEXT);
    assert_int_equal(e.n, 0);
    mica_sse_free(&sse);
}

static void test_reader_stops(void **state)
{
    (void)state;
    events e = {.stop_at = 2};
    mica_sse sse;
    mica_sse_init(&sse, 64);
    assert_int_equal(mica_sse_feed(&sse, "data: a\n\ndata: b\n\ndata: c\n\n", 27, on_event, &e, NULL), MICA_CANCELLED);
    assert_string_equal(e.text, "a|b|");
    mica_sse_free(&sse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_reader_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
