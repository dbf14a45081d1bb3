/* Registry files and header fields from outside: what is taken, and what is refused or counts as absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pull/entry.h"
#include "pull/head.h"

#define SUM  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD "\"schema\":1,\"name\":\"a\",\"urls\":[\"https://h/a\"],\"sha256\":\"" SUM "\""

static mica_status parse(const char *text, mica_pull_entry *entry, mica_error *err)
{
    return mica_pull_entry_parse(text, strlen(text), "f.json", entry, err);
}

static void test_good(void **state)
{
    (void)state;
    mica_pull_entry entry;
    mica_error err;
    assert_int_equal(parse("{" HEAD ",\"bytes\":65537,\"chunk_bytes\":65536,\"chunks\":[\"" SUM "\",\"" SUM
                           "\"],\"licence\":\"MIT\\nas is\"}",
                           &entry, &err),
                     MICA_OK);
    assert_string_equal(entry.name, "a");
    assert_string_equal(entry.licence, "MIT\nas is");
    assert_string_equal(entry.description, "");
    assert_int_equal(entry.bytes, 65537);
    assert_int_equal(entry.n_urls, 1);
    assert_int_equal(entry.n_chunks, 2);
    assert_string_equal(entry.chunk[1], SUM);
    mica_pull_entry_free(&entry);
    assert_int_equal(entry.n_urls, 0);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{}",
        "null",
        "{" HEAD "}",
        "{" HEAD ",\"bytes\":0}",
        "{" HEAD ",\"bytes\":-5}",
        "{" HEAD ",\"bytes\":1e3}",
        "{" HEAD ",\"bytes\":99999999999999999999}",
        "{" HEAD ",\"bytes\":1,\"bytes\":1}",
        "{" HEAD ",\"bytes\":1,\"size\":1}",
        "{" HEAD ",\"bytes\":1,\"\\n\":1}",
        "{" HEAD ",\"bytes\":1,\"licence\":\"a\\u0007\"}",
        "{" HEAD ",\"bytes\":1,\"chunk_bytes\":65536}",
        "{" HEAD ",\"bytes\":1,\"chunks\":[\"" SUM "\"]}",
        "{" HEAD ",\"bytes\":1,\"chunk_bytes\":65536,\"chunks\":[\"" SUM "\",\"" SUM "\"]}",
        "{" HEAD ",\"bytes\":70368744177664,\"chunk_bytes\":65536,\"chunks\":[\"" SUM "\"]}",
        "{\"schema\":1,\"name\":\"../a\",\"urls\":[\"https://h/a\"],\"sha256\":\"" SUM "\",\"bytes\":1}",
        "{\"schema\":1,\"name\":\"a\",\"urls\":[\"https://me@h/a\"],\"sha256\":\"" SUM "\",\"bytes\":1}",
        "{\"schema\":1,\"name\":\"a\",\"urls\":[\"https://h/a\\u0000b\"],\"sha256\":\"" SUM "\",\"bytes\":1}",
        "{\"schema\":1,\"name\":\"a\",\"urls\":[\"https://h/a\\r\\nX: y\"],\"sha256\":\"" SUM "\",\"bytes\":1}",
        "{\"schema\":1,\"name\":\"a\",\"urls\":[5],\"sha256\":\"" SUM "\",\"bytes\":1}",
        "{\"schema\":1,\"name\":\"a\",\"urls\":[\"https://h/a\"],\"sha256\":\"0\\u0000" SUM "\",\"bytes\":1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mica_pull_entry entry;
        mica_error err = {0};
        if (parse(bad[i], &entry, &err) != MICA_BAD_TEXT)
            fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(err.message, "f.json"));
        assert_int_equal(entry.n_urls, 0);
        assert_null(entry.chunk);
        mica_pull_entry_free(&entry);
    }
}

static void expect_name(const char *url, const char *name)
{
    mica_pull_entry entry;
    mica_status status = mica_pull_entry_from_url(url, NULL, NULL, &entry, NULL);
    if (name)
        assert_string_equal(entry.name, name);
    else
        assert_int_equal(status, MICA_INVALID_ARGUMENT);
    mica_pull_entry_free(&entry);
}

static void test_url(void **state)
{
    (void)state;
    expect_name("https://h/a/b.gguf", "b.gguf");
    expect_name("https://h/a/b.gguf?x=/y#z", "b.gguf");
    expect_name("https://h", "h");
    expect_name("https://h/", NULL);
    expect_name("https://h/..", NULL);
    expect_name("https://h/a%20b", NULL);
    expect_name("https://", NULL);
    expect_name("ftp://h/a", NULL);
    expect_name("https://me:you@h/a", NULL);
    expect_name("https://h/a@b/c", "c");
    expect_name("https://h/a b", NULL);
}

/* ---- Header fields ---- */

static mica_head head_of(const char *line)
{
    mica_head head = {.first = -1};
    mica_head_line(&head, line, strlen(line));
    return head;
}

static void expect_range(const char *value, int64_t first, int64_t last, int64_t total)
{
    char line[200];
    snprintf(line, sizeof line, "content-range: %s\r\n", value);
    mica_head head = head_of(line);
    if (!head.has_range || head.first != first || head.last != last || head.total != total)
        fail_msg("%s is %lld-%lld/%lld", value, (long long)head.first, (long long)head.last, (long long)head.total);
}

static void test_ranges(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "bytes",
                                      "bytes ",
                                      "bytes 5",
                                      "bytes 5-",
                                      "bytes 5-4/10",
                                      "bytes 5-9",
                                      "bytes 5-9/",
                                      "bytes 5-9/9",
                                      "bytes -5-9/10",
                                      "bytes 5-9/10x",
                                      "items 5-9/10",
                                      "bytes */*",
                                      "bytes */",
                                      "bytes 5-9/99999999999999999999",
                                      "bytes 99999999999999999999-5/6",
                                      "bytes  5-9/10"};
    expect_range("bytes 5-9/10", 5, 9, 10);
    expect_range("Bytes 0-0/1", 0, 0, 1);
    expect_range("bytes 5-9/*", 5, 9, -1);
    expect_range("bytes */10", -1, -1, 10);
    expect_range("bytes 0-999999999999999998/999999999999999999", 0, 999999999999999998, 999999999999999999);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[200];
        snprintf(line, sizeof line, "Content-Range: %s\r\n", bad[i]);
        if (head_of(line).has_range)
            fail_msg("%s was taken", bad[i]);
    }
}

static void test_fields(void **state)
{
    (void)state;
    mica_head head = head_of("ETAG:  \"a b\" \r\n");
    assert_string_equal(mica_head_validator(&head), "\"a b\"");
    head = head_of("ETag:"); /* nothing behind it: fuzzing read a byte there */
    assert_string_equal(mica_head_validator(&head), "");
    head = head_of("ETag: W/\"a\"\r\n");
    assert_string_equal(mica_head_validator(&head), "");
    head = head_of("ETag: \"a\nb\"");
    assert_string_equal(mica_head_validator(&head), "");
    head = head_of("Last-Modified: Tue\r\n");
    assert_string_equal(mica_head_validator(&head), "Tue");
    mica_head_line(&head, "HTTP/1.1 200 OK\r\n", 17);
    assert_string_equal(mica_head_validator(&head), "");
    assert_true(head_of("Content-Encoding: gzip\r\n").encoded);
    assert_false(head_of("Content-Encoding: identity\r\n").encoded);
    assert_false(head_of("Content-Encoding:\r\n").encoded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),   cmocka_unit_test(test_refused), cmocka_unit_test(test_url),
        cmocka_unit_test(test_ranges), cmocka_unit_test(test_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
