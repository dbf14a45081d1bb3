/* test_task_detect.c - the rules that find personal data: what they find, what they must leave, and that they are linear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "task/detect.h"
#include "text/utf8.h"

enum { ALL = MICA_DETECT_EMAIL | MICA_DETECT_PHONE | MICA_DETECT_IBAN | MICA_DETECT_CARD | MICA_DETECT_IP | MICA_DETECT_DATE };

static void find_all(const char *text, size_t length, mica_finds *finds)
{
    *finds = (mica_finds){.item = NULL};
    mica_detect(text, length, ALL, finds);
    mica_finds_settle(finds);
    assert_false(finds->failed);
}

/* `marked` has what must be found in <TYPE:...>; nothing else may be. */
static void expect(const char *marked)
{
    char text[1024];
    mica_finds wanted = {.item = NULL}, found;
    size_t n = 0, start = 0;
    char type[16] = "";
    for (const char *p = marked; *p; p++) {
        int skip = 0;
        if (*p == '<' && sscanf(p, "<%15[A-Z]:%n", type, &skip) == 1 && skip > 0) {
            start = n;
            p += skip - 1;
        } else if (*p == '>' && *type) {
            mica_finds_add(&wanted, (mica_find){.start = start, .end = n});
            *type = '\0';
        } else {
            text[n++] = *p;
        }
    }
    text[n] = '\0';
    find_all(text, n, &found);
    bool same = found.n == wanted.n;
    for (size_t i = 0; i < found.n && same; i++) {
        char head[32];
        same = found.item[i].start == wanted.item[i].start && found.item[i].end == wanted.item[i].end;
        snprintf(head, sizeof head, "<%s:", found.item[i].type);
        same = same && strstr(marked, head) != NULL;
    }
    if (!same) {
        for (size_t i = 0; i < found.n; i++)
            print_message("found %s \"%.*s\"\n", found.item[i].type, (int)(found.item[i].end - found.item[i].start),
                          text + found.item[i].start);
        fail_msg("not as marked: %s", marked);
    }
    mica_finds_free(&wanted);
    mica_finds_free(&found);
}

static void expect_each(const char *const *cases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect(cases[i]);
}

#define EXPECT_EACH(...)                                                                                                       \
    do {                                                                                                                       \
        static const char *const cases[] = {__VA_ARGS__};                                                                      \
        expect_each(cases, sizeof cases / sizeof *cases);                                                                      \
    } while (0)

static void test_email(void **state)
{
    (void)state;
    EXPECT_EACH("<EMAIL:a@b.de>", "mail <EMAIL:john.doe+tag@sub.example.co.uk>.", "(<EMAIL:x_1@example.com>)",
                "'<EMAIL:o'neil@example.com>'", "mailto:<EMAIL:jane@example.com>", "<EMAIL:büro@beispiel.de>, ja",
                "<EMAIL:a@xn--bcher-kva.xn--p1ai>", "<EMAIL:a@b.com>,<EMAIL:c@d.org>;", "<EMAIL:a@b.com>/", "not@domain",
                "@handle", "a@b.c", "a@@b.com", "a@-b.com", "a@b.123", "1@2", "a@.com", "..@b.com", "<EMAIL:b@c.com>@d.com",
                "«<EMAIL:я@почта.рф>»", "a@b_c.com", "<EMAIL:me@a.museum>!", "@", "a@", "x=<EMAIL:y@z.io>");
}

static void test_ip(void **state)
{
    (void)state;
    EXPECT_EACH("<IP:1.2.3.4>", "to <IP:255.255.255.255>.", "<IP:10.0.0.1>:8080", "<IP:10.0.0.0>/8", "[<IP:::1>]",
                "<IP:fe80::1>%eth0", "<IP:2001:db8::8a2e:370:7334>", "<IP:2001:0db8:0000:0000:0000:ff00:0042:8329>",
                "<IP:::ffff:192.0.2.128>", "<IP:64:ff9b::192.0.2.33>", "256.1.1.1", "1.2.3", "1.2.3.4.5", "01.2.3.4",
                "v1.2.3.4", "1.2.3.4a", "12:30:45", "std::vector", "a::b", "::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
                "2001:db8:::1", "00:14:22:01:23:45", "dead::beef", "<IP:fe80::>", "g::1", "1::2::3", "Section 4.3.2.");
}

static void test_card(void **state)
{
    (void)state;
    EXPECT_EACH("<CARD:4111111111111111>", "<CARD:4111 1111 1111 1111> 123", "<CARD:5500-0000-0000-0004>,",
                "<CARD:378282246310005>", "<CARD:3782 822463 10005>", "<CARD:6011111111111117>", "<CARD:30569309025904>",
                "<CARD:3530111333300000>", "<CARD:4222222222222>", "4111111111111112", "4111 1111-1111 1111",
                "x4111111111111111", "4111111111111111x", "41111111111111110000", "1234567812345670", "0000000000000000",
                "4111-1111-1111-1111-9");
}

static void test_iban(void **state)
{
    (void)state;
    EXPECT_EACH("<IBAN:DE89370400440532013000>", "<IBAN:DE89 3704 0044 0532 0130 00>.", "<IBAN:GB29 NWBK 6016 1331 9268 19>",
                "<IBAN:de89 3704 0044 0532 0130 00>", "<IBAN:NO93 8601 1117 947>", "<IBAN:MT84MALT011000012345MTLCAST001S>",
                "IBAN:<IBAN:FR14-2004-1010-0505-0001-3M02-606>", "DE88370400440532013000", "DE8937040044053201300",
                "DE893704004405320130000", "XX89370400440532013000", "XDE89370400440532013000", "NO93  8601 1117 947", "DE",
                "DE89", "<IBAN:BE68 5390 0754 7034> and more");
}

static void test_phone(void **state)
{
    (void)state;
    EXPECT_EACH("<PHONE:+44 20 7946 0958>", "<PHONE:+1-212-555-0187>", "<PHONE:(555) 123-4567>", "<PHONE:555-123-4567>",
                "<PHONE:1-800-555-0199>.", "<PHONE:+49 (0)30 901820>", "<PHONE:0049 30 901820>", "<PHONE:030 1234567>",
                "<PHONE:0171/1234567>", "<PHONE:+33612345678>", "<PHONE:+33 6 12 34 56 78> 10 am", "call <PHONE:555 0142>",
                "Tel.: <PHONE:901 8200>", "x <PHONE:(030) 901 820>", "<PHONE:08-123 456 78>", "<PHONE:+45 32 12 34 56> now",
                "555-0142", "1234567", "12,345,678", "0.123456789", "+1", "+12345", "2023118845", "978-3-16-148410-0",
                "+1 212 555 01877", "ab0171 1234567", "3.14159265358979", "100 200 300", "$030 1234567", "order 4711 from 2019",
                "64-bit 128 256 512", "(030", "a+49 30 901820");
}

static void test_date(void **state)
{
    (void)state;
    EXPECT_EACH("<DATE:2024-02-29>", "<DATE:2021/3/4>", "<DATE:14.03.2021>", "<DATE:3/14/2021>", "<DATE:14/3/21>",
                "<DATE:14-03-2021>", "<DATE:2024-05-21>T10:00:00Z", "<DATE:March 14, 2021>", "<DATE:Mar 14th 2021>",
                "<DATE:14 March 2021>", "<DATE:14th of March 2021>", "<DATE:3. Oktober 2024>", "14 juillet 1789",
                "<DATE:14 July> 1789", "<DATE:5 de mayo de 1862>", "<DATE:24. Dezember>!", "on <DATE:June 6>, no",
                "<DATE:12 août 1999>", "<DATE:3-Mar-2020>", "<DATE:Sept. 1, 2020>", "<DATE:29 February 1988>", "2023-02-29",
                "31/04/2023", "00.01.2020", "13/13/2013", "1.2.3", "12-14", "2021-03", "March 2021", "may 3 people", "in March",
                "10:30", "<DATE:5 March> madness 40", "2024-05-211", "v2024-05-21-3", "19.12.", "3.14.15926", "1/2/3");
}

static void test_overlaps(void **state)
{
    (void)state;
    EXPECT_EACH("<IBAN:DE89 3704 0044 0532 0130 00>, <CARD:4111 1111 1111 1111>, <IP:10.0.0.1>, <DATE:2020-01-02>, <PHONE:+44 "
                "20 7946 0958>",
                "phone <CARD:4111 1111 1111 1111>", "call <DATE:14-03-2021>", "fax <IP:192.168.100.200>");
    mica_finds f = {.item = NULL};
    mica_finds_add(&f, (mica_find){.start = 5, .end = 9, .rank = 2});
    mica_finds_add(&f, (mica_find){.start = 0, .end = 6, .rank = 3});
    mica_finds_add(&f, (mica_find){.start = 8, .end = 20, .rank = 1});
    mica_finds_add(&f, (mica_find){.start = 20, .end = 21, .rank = 9});
    mica_finds_settle(&f);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.item[0].start, 8);
    assert_int_equal(f.item[1].start, 20);
    mica_finds_free(&f);
}

/* Finds are in order, apart, within the text, and on boundaries of characters, whatever the text. */
static void check_order(const char *text, size_t n)
{
    mica_finds f;
    size_t at = 0;
    find_all(text, n, &f);
    for (size_t i = 0; i < f.n; i++) {
        assert_true(f.item[i].start >= at && f.item[i].start < f.item[i].end && f.item[i].end <= n);
        at = f.item[i].end;
        assert_true(((unsigned char)text[f.item[i].start] & 0xC0) != 0x80);
        assert_true(at == n || ((unsigned char)text[at] & 0xC0) != 0x80);
    }
    mica_finds_free(&f);
}

static void test_random_texts(void **state)
{
    static const char *const parts[] = {"@",  ".",        ":",   "::",   "-",  "/",    " ",       "+",    "(",
                                        ")",  "0",        "00",  "1",    "42", "4111", "1111",    "555",  "2024",
                                        "12", "March",    "Mai", "DE89", "a",  "fe80", "example", ".com", "ü",
                                        "日", "\xC2\xA0", "_",   "'",    "",   "call", "\n"};
    char *text = malloc(400 * 8);
    mica_rng rng;
    (void)state;
    mica_rng_seed(&rng, 7);
    for (int round = 0; round < 3000; round++) {
        size_t n = 0, count = mica_rng_next(&rng) % 60;
        for (size_t i = 0; i < count; i++) {
            const char *part = parts[mica_rng_next(&rng) % (sizeof parts / sizeof *parts)];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        char *exact = malloc(n + 1); /* so that a sanitizer sees a read behind the end */
        memcpy(exact, text, n);
        assert_int_equal(mica_utf8_check(exact, n), n);
        check_order(exact, n);
        free(exact);
    }
    free(text);
}

/* A quarter of a megabyte of what a backtracking matcher would choke on; the test's time limit is the check. */
static void test_linear(void **state)
{
    static const char *const units[] = {"a",        "a.",     "a@",     "a@b.",  "1", "1 ", "1-",   "1.",    "11 ",
                                        "4111 ",    "+1",     "(1)",    "(",     ":", "a:", "1:",   "::1",   "DE89 ",
                                        "DE893704", "1 Mar ", "Mar 1 ", "call ", "'", "ü",  "1/1/", "+4420 "};
    size_t n = (size_t)1 << 18;
    char *text = malloc(n);
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t unit = strlen(units[i]), whole = n - n % unit;
        for (size_t k = 0; k < whole; k++)
            text[k] = units[i][k % unit];
        check_order(text, whole);
    }
    free(text);
}

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(mica_detector_of("iban"), MICA_DETECT_IBAN);
    assert_int_equal(mica_detector_of("date"), MICA_DETECT_DATE);
    assert_int_equal(mica_detector_of("IBAN"), 0);
    mica_finds f = {.item = NULL};
    mica_detect("a@b.de 10.0.0.1", 15, MICA_DETECT_IP, &f);
    assert_int_equal(f.n, 1);
    assert_string_equal(f.item[0].type, "IP");
    assert_string_equal(f.item[0].source, "rule");
    mica_finds_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_email),    cmocka_unit_test(test_ip),           cmocka_unit_test(test_card),
        cmocka_unit_test(test_iban),     cmocka_unit_test(test_phone),        cmocka_unit_test(test_date),
        cmocka_unit_test(test_overlaps), cmocka_unit_test(test_random_texts), cmocka_unit_test(test_linear),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
