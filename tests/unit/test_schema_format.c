/* Formats of strings: dates against the calendar, the others by examples of what their RFCs allow and what they do not. */
#include "schema_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "constraint/json_format.h"

static int days_of(int year, int month)
{
    static const int days[] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month < 1 || month > 12 ? 0 : days[month] + (month == 2 && leap);
}

/* Every year; every month and day that two digits can name, around the edges. */
static void test_dates(void **state)
{
    (void)state;
    mica_regular *date;
    int valid = 0, wrong = 0;
    assert_int_equal(mica_json_format_language(mica_json_format_find("date", 4), &date, NULL), MICA_OK);
    for (int year = 0; year < 10000; year++)
        for (int month = 0; month < 14; month++)
            for (int day = 0; day < 34; day = day == 1 ? 28 : day + 1) {
                char text[40];
                snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                bool expected = day >= 1 && day <= days_of(year, month);
                wrong += mica_regular_matches(date, text, 10) != expected;
                valid += expected;
            }
    mica_regular_free(date);
    assert_int_equal(wrong, 0);
    /* day 1 and 28 of each month, 29 to 31 of seven, 29 and 30 of four, and 29 February of 2425 years */
    assert_int_equal(valid, 10000 * (2 * 12 + 3 * 7 + 2 * 4) + 2425);
}

static const struct format_row {
    const char *format;
    const char *yes[10], *no[12];
} rows[] = {
    {"date", {"2024-02-29", "1999-12-31"}, {"2023-02-29", "24-02-29", "2024-2-29", "2024-02-29 ", "2024/02/29", ""}},
    {"time",
     {"00:00:00Z", "23:59:59+23:59", "12:30:45.123456789-08:00", "23:59:60Z", "23:59:60.5+00:00", "08:00:00z"},
     {"24:00:00Z", "12:60:00Z", "12:00:61Z", "12:00:60Z", "12:00:00", "12:00Z", "12:00:00+24:00", "12:00:00.Z",
      "12:00:00+0000"}},
    {"date-time",
     {"2024-02-29T12:00:00Z", "2024-02-29t12:00:00.5+01:00"},
     {"2023-02-29T12:00:00Z", "2024-02-29 12:00:00Z", "2024-02-29T12:00:00", "2024-02-29"}},
    {"duration",
     {"P1Y2M3DT4H5M6S", "P4W", "PT0S", "P1YT1S", "PT36H"},
     {"P", "PT", "P1S", "P1Y2W", "PT1D", "1Y", "P1YT", "P2D1Y"}},
    {"uuid",
     {"2EB8AA08-aa98-11EA-b4aa-73B441D16380"},
     {"2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638g"}},
    {"email",
     {"a@b.c", "a.b+c@x-y.example", "o'neil@localhost", "!#$%&'*+/=?^_`{|}~-@x.y"},
     {"a", "a@", "@b.c", ".a@b.c", "a.@b.c", "a..b@c.d", "a b@c.d", "a@-b.c", "a@b-.c", "a@b..c", "a@b.c.", "a@b@c"}},
    {"ipv4",
     {"0.0.0.0", "255.255.255.255", "1.20.199.249"},
     {"256.0.0.0", "01.2.3.4", "1.2.3", "1.2.3.4.5", "1.2.3.4 ", "a.2.3.4"}},
    {"ipv6",
     {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7::"},
     {":", ":::", "1:2:3:4:5:6:7", "1::2::3", "12345::", "g::", "::1.2.3", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:1.2.3.4",
      "::1%eth0"}},
    {"uri",
     {"http://a", "https://u:p@[::1]:80/p/a?q=1&r#f", "urn:isbn:1", "mailto:a@b.c", "file:///x", "a:", "x+y-z.1:/a%20b"},
     {"", "a", "/a", "//a/b", "http://a b", "http://a/%2", "http://[::g]", "1http://a", "http://a#b#c", "http://\xC3\xA9",
      "h<>:a"}},
};

static void test_examples(void **state)
{
    (void)state;
    int wrong = 0, n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char schema[80], text[80];
        snprintf(schema, sizeof schema, "{\"type\":\"string\",\"format\":\"%s\"}", rows[i].format);
        schema_test t = schema_compile(schema);
        if (t.status)
            fail_msg("%s: %s", rows[i].format, t.err.message);
        for (int k = 0; k < 22; k++) {
            bool expected = k < 10;
            const char *value = expected ? rows[i].yes[k] : rows[i].no[k - 10];
            if (!value)
                continue;
            n++;
            snprintf(text, sizeof text, "\"%s\"", value);
            if (schema_accepts(&t, text) != expected) {
                fprintf(stderr, "%s: %s should %sbe allowed\n", rows[i].format, text, expected ? "" : "not ");
                wrong++;
            }
        }
        schema_free(&t);
    }
    printf("%d texts\n", n);
    assert_int_equal(sizeof rows / sizeof *rows, (size_t)mica_json_format_count());
    assert_int_equal(wrong, 0);
}

/* The first part of an address has 64 characters at most, a domain 253. */
static void test_email_lengths(void **state)
{
    (void)state;
    char text[400];
    mica_regular *email;
    int64_t shortest, longest;
    assert_int_equal(mica_json_format_language(mica_json_format_find("email", 5), &email, NULL), MICA_OK);
    for (int n = 60; n < 70; n++) {
        memset(text, 'a', (size_t)n);
        memcpy(text + n, "@b.c", 5);
        assert_int_equal(mica_regular_matches(email, text, strlen(text)), n <= 64);
    }
    mica_regular_lengths_of(email, &shortest, &longest);
    assert_int_equal(shortest, 3);
    assert_true(longest != MICA_G_NO_LIMIT && longest <= 64 + 1 + 253);
    mica_regular_free(email);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_email_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
