/* What every message has in common: it is UTF-8, however what it quotes was cut or written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "text/utf8.h"

static void check_utf8(const mica_error *err)
{
    assert_int_equal(mica_utf8_check(err->message, strlen(err->message)), strlen(err->message));
}

static void test_good_text_stays(void **state)
{
    (void)state;
    static const char text[] =
        "a \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf";
    mica_error err;
    assert_int_equal(mica_fail(&err, MICA_BAD_TEXT, "%s", text), MICA_BAD_TEXT);
    assert_string_equal(err.message, text);
    assert_int_equal(err.position, -1);
}

static void test_broken_text_is_marked(void **state)
{
    (void)state;
    static const struct {
        const char *said, *shown;
    } rows[] = {
        {"a\xff"
         "b",
         "a?b"},
        {"\x80", "?"},
        {"\xc0\xaf", "??"},
        {"\xc3", "?"},
        {"\xe2\x82", "??"},
        {"\xe0\x9f\xbf", "???"},
        {"\xed\xa0\x80", "???"},
        {"\xf0\x8f\xbf\xbf", "????"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xf5\x80\x80\x80", "????"},
        {"\xc3\xa9\xc3", "\xc3\xa9?"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mica_error err;
        assert_int_equal(mica_fail_at(&err, MICA_BAD_FILE, 7, "%s", rows[i].said), MICA_BAD_FILE);
        assert_string_equal(err.message, rows[i].shown);
        assert_int_equal(err.position, 7);
    }
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    char text[2 * sizeof(((mica_error *)0)->message) + 4];
    for (size_t at = 0; at < 4; at++) { /* the end of the message falls on each byte of a character */
        mica_error err;
        memset(text, 'x', at);
        for (size_t i = at; i + 4 < sizeof text; i += 4)
            memcpy(text + i, "\xf0\x9f\x99\x82", 5);
        mica_fail(&err, MICA_BAD_TEXT, "%s", text);
        check_utf8(&err);
        mica_fail(&err, MICA_BAD_TEXT, "%.*s", (int)(at + 9), text);
        check_utf8(&err);
    }
}

static void test_random_bytes(void **state)
{
    (void)state;
    mica_rng rng;
    mica_rng_seed(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        char text[9] = "";
        mica_error err;
        for (size_t k = 0; k < sizeof text - 1; k++)
            text[k] = (char)(mica_rng_next(&rng) % 3 ? 0x80 | mica_rng_next(&rng) % 128 : 1 + mica_rng_next(&rng) % 255);
        mica_fail(&err, MICA_BAD_TEXT, "%s", text);
        check_utf8(&err);
        assert_int_equal(strlen(err.message), strlen(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_text_stays),
        cmocka_unit_test(test_broken_text_is_marked),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
