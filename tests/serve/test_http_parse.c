/* test_http_parse.c - HTTP requests from bytes: examples, limits, every way to cut, and damaged inputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "serve/http_parse.h"

#define BODY_MAX 1000

/* Feeds in pieces of `step` bytes until the request is whole or bad; returns how many bytes were taken. */
static size_t feed(mica_http_parse *p, const char *data, size_t n, size_t step)
{
    size_t at = 0;
    mica_http_start(p, BODY_MAX);
    while (at < n && p->state != MICA_HTTP_WHOLE && p->state != MICA_HTTP_BAD) {
        size_t part = n - at < step ? n - at : step;
        size_t taken = mica_http_feed(p, data + at, part);
        assert_true(taken <= part);
        at += taken;
        if (p->state == MICA_HTTP_HEAD_DONE)
            mica_http_want_body(p);
        else
            assert_true(taken == part || p->state >= MICA_HTTP_WHOLE);
    }
    return at;
}

static void expect(const char *data, const char *method, const char *path, const char *query, const char *body, size_t rest)
{
    size_t n = strlen(data);
    for (size_t step = 1; step <= n; step++) {
        mica_http_parse p;
        size_t taken = feed(&p, data, n, step);
        assert_int_equal(p.state, MICA_HTTP_WHOLE);
        assert_int_equal(taken, n - rest);
        assert_string_equal(p.method, method);
        assert_string_equal(p.path, path);
        assert_string_equal(p.query, query);
        assert_int_equal(p.body.length, strlen(body));
        assert_memory_equal(p.body.length ? p.body.data : "", body, strlen(body));
        mica_http_end(&p);
    }
}

static void test_requests(void **state)
{
    (void)state;
    expect("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", "", "", 0);
    expect("\r\n\r\nGET /a?b=c?d HTTP/1.1\r\nHost: a\r\n\r\nGET", "GET", "/a", "b=c?d", "", 3);
    expect("POST /x HTTP/1.1\r\nhost:a\r\nContent-Length: 5\r\n\r\nhello, too much", "POST", "/x", "", "hello", 10);
    expect("POST http://b/x HTTP/1.1\r\nHost: \t b \r\nContent-Length: 0\r\n\r\n", "POST", "/x", "", "", 0);
    expect("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
           "5;a=b\r\nhello\r\n1 \r\n!\r\n000\r\nX: y\r\n\r\nZ",
           "POST", "/x", "", "hello!", 1);
    expect("GET / HTTP/1.0\r\n\r\n", "GET", "/", "", "", 0);
}

static void test_meaning(void **state)
{
    static const struct {
        const char *data;
        bool keep, expects, http10;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true, false, false},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n", false, false, false},
        {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", false, false, true},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, false, true},
        {"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n", true, true, false},
        {"GET / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", false, false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mica_http_parse p;
        feed(&p, cases[i].data, strlen(cases[i].data), 7);
        assert_int_equal(p.state, MICA_HTTP_WHOLE);
        assert_int_equal(p.keep_alive, cases[i].keep);
        assert_int_equal(p.expects, cases[i].expects);
        assert_int_equal(p.http10, cases[i].http10);
        assert_null(mica_http_header_of(&p, "x"));
        mica_http_end(&p);
    }
}

static void refused(const char *data, size_t n, int status)
{
    size_t steps[] = {1, 3, n};
    for (size_t i = 0; i < 3; i++) {
        mica_http_parse p;
        feed(&p, data, n, steps[i]);
        assert_int_equal(p.state, MICA_HTTP_BAD);
        assert_int_equal(p.fault.status, status);
        assert_int_equal(mica_http_feed(&p, "x", 1), 0);
        mica_http_end(&p);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *data;
        int status;
    } cases[] = {
        {"GET\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 505},
        {"GET / HTTP/3\r\nHost: a\r\n\r\n", 505},
        {"GET / FTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET / HTTP/1.1\nHost: a\n\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 501},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n", 413},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", 413},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\n", 413},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\n", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\rx", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab", 400},
        {"GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", 417},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].data, strlen(cases[i].data), cases[i].status);
    static const char with_nul[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    refused(with_nul, sizeof with_nul - 1, 400);
}

/* A line that never ends, and too many lines. */
static void test_limits(void **state)
{
    (void)state;
    mica_buf b;
    mica_buf_init(&b, 100000);
    mica_buf_puts(&b, "GET /");
    while (b.length < MICA_SERVE_HEAD_MAX + 1)
        mica_buf_putc(&b, 'a');
    refused(b.data, b.length, 431);
    mica_buf_free(&b);
    mica_buf_puts(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < MICA_SERVE_HEADERS_MAX; i++)
        mica_buf_puts(&b, "a: b\r\n");
    mica_buf_puts(&b, "\r\n");
    refused(b.data, b.length, 431);
    mica_buf_free(&b);
    mica_buf_puts(&b, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    for (int i = 0; i < 5000; i++)
        mica_buf_putc(&b, 'a');
    refused(b.data, b.length, 400);
    mica_buf_free(&b);
}

/* Damaged requests: whatever comes of them is the same however they are cut. */
static void test_damaged(void **state)
{
    static const char *const seeds[] = {
        "POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n",
    };
    static const char bytes[] = "\r\n\t :;/?0159aAfF\0\x7F\xFF";
    mica_rng rng;
    int whole = 0;
    (void)state;
    mica_rng_seed(&rng, 1);
    for (int round = 0; round < 30000; round++) {
        char data[160];
        const char *seed = seeds[round % 2];
        size_t n = strlen(seed);
        memcpy(data, seed, n);
        for (uint64_t k = 1 + mica_rng_next(&rng) % 3; k > 0; k--)
            data[mica_rng_next(&rng) % n] = bytes[mica_rng_next(&rng) % (sizeof bytes - 1)];
        mica_http_parse once, twice;
        size_t a = feed(&once, data, n, n), b = feed(&twice, data, n, 1 + mica_rng_next(&rng) % 9);
        assert_int_equal(once.state, twice.state);
        assert_int_equal(once.fault.status, twice.fault.status);
        if (once.state == MICA_HTTP_WHOLE) {
            assert_int_equal(a, b);
            assert_int_equal(once.body.length, twice.body.length);
            assert_memory_equal(once.body.length ? once.body.data : "", twice.body.length ? twice.body.data : "",
                                once.body.length);
            whole++;
        }
        mica_http_end(&once);
        mica_http_end(&twice);
    }
    assert_in_range(whole, 1000, 29000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_requests), cmocka_unit_test(test_meaning),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_damaged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
