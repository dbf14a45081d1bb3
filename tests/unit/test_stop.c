/* test_stop.c - the stop-string matcher: examples, limits, and a property test against a naive search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "text/sampler.h"

#define TEXT_MAX 6000

static int setup(void **state)
{
    mica_stop *m;
    mica_error err;
    assert_int_equal(mica_stop_new(&m, &err), MICA_OK);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    mica_stop_free(*state);
    mica_stop_free(NULL);
    return 0;
}

static void start(mica_stop *m, const char *const *stop, size_t n)
{
    mica_error err = {.message = ""};
    if (mica_stop_start(m, stop, n, &err) != MICA_OK)
        fail_msg("%s", err.message);
}

/* Pushes one piece and compares what comes out. */
static void expect_push(mica_stop *m, const char *piece, const char *emitted, bool expected_hit)
{
    const char *out;
    bool hit;
    size_t n = mica_stop_push(m, piece, strlen(piece), &out, &hit);
    assert_int_equal(n, strlen(emitted));
    assert_memory_equal(out, emitted, n);
    assert_int_equal(hit, expected_hit);
}

static void expect_finish(mica_stop *m, const char *emitted)
{
    const char *out;
    size_t n = mica_stop_finish(m, &out);
    assert_int_equal(n, strlen(emitted));
    assert_memory_equal(out, emitted, n);
}

static void test_straddles_tokens(void **state)
{
    mica_stop *m = *state;
    start(m, (const char *[]){"beta gamma"}, 1);
    expect_push(m, "alpha", "alpha", false);
    expect_push(m, " be", " ", false);
    expect_push(m, "ta ga", "", false);
    expect_push(m, "mma", "", true);
    expect_push(m, " delta", "", true);
    expect_finish(m, "");
}

static void test_holds_back_only_what_could_match(void **state)
{
    mica_stop *m = *state;
    start(m, (const char *[]){"\nUser:", "###"}, 2);
    expect_push(m, "Hello", "Hello", false);
    expect_push(m, "\nUs", "", false);
    expect_push(m, "age#", "\nUsage", false);
    expect_push(m, "#", "", false);
    expect_push(m, " x", "## x", false);
    expect_push(m, "y\nUser", "y", false);
    expect_finish(m, "\nUser");
    expect_finish(m, "");
}

static void test_hit_drops_the_rest(void **state)
{
    mica_stop *m = *state;
    start(m, (const char *[]){"END"}, 1);
    expect_push(m, "abcE", "abc", false);
    expect_push(m, "NDdef", "", true);
    expect_push(m, "more", "", true);
    expect_finish(m, "");
    start(m, (const char *[]){"END"}, 1); /* a new reply forgets the old one */
    expect_push(m, "ND", "ND", false);
}

static void test_restart_forgets_a_partial_match(void **state)
{
    mica_stop *m = *state;
    start(m, (const char *[]){"abc"}, 1);
    expect_push(m, "ab", "", false);
    start(m, (const char *[]){"abc"}, 1);
    expect_push(m, "c", "c", false);
    expect_finish(m, "");
}

static void test_earliest_end_wins_then_longest(void **state)
{
    mica_stop *m = *state;
    start(m, (const char *[]){"bcdef", "cd"}, 2); /* "cd" is complete first, although "bcdef" began earlier */
    expect_push(m, "abcdef", "ab", true);
    start(m, (const char *[]){"d", "bcd", "cd"}, 3); /* all end together: the longest */
    expect_push(m, "abcd", "a", true);
    start(m, (const char *[]){"aa"}, 1);
    expect_push(m, "baaa", "b", true);
}

static void test_no_stop_strings(void **state)
{
    mica_stop *m = *state;
    start(m, NULL, 0);
    expect_push(m, "anything", "anything", false);
    expect_push(m, "", "", false);
    expect_finish(m, "");
}

static void test_bytes_are_not_text(void **state)
{
    mica_stop *m = *state;
    const char *out;
    bool hit;
    start(m, (const char *[]){"\xF0\x9F\x99\x82"}, 1); /* in pieces, as byte tokens deliver it; and NUL in the text */
    assert_int_equal(mica_stop_push(m, "a\0b\xF0\x9F", 5, &out, &hit), 3);
    assert_memory_equal(out, "a\0b", 3);
    expect_push(m, "\x99", "", false);
    expect_push(m, "\x82", "", true);
}

static void test_longest_allowed(void **state)
{
    mica_stop *m = *state;
    static char stop[MICA_STOP_MAX_BYTES + 2], piece[MICA_STOP_MAX_BYTES + 1];
    memset(stop, 'a', MICA_STOP_MAX_BYTES);
    stop[MICA_STOP_MAX_BYTES - 1] = 'b';
    const char *stops[MICA_STOP_MAX];
    for (size_t i = 0; i < MICA_STOP_MAX; i++)
        stops[i] = stop;
    start(m, stops, MICA_STOP_MAX);
    memset(piece, 'a', MICA_STOP_MAX_BYTES);
    const char *out;
    bool hit;
    /* 1024 a: the last 1023 may begin the stop string; then 1024 more push 1024 out; then "b" completes it */
    assert_int_equal(mica_stop_push(m, piece, MICA_STOP_MAX_BYTES, &out, &hit), 1);
    assert_int_equal(mica_stop_push(m, piece, MICA_STOP_MAX_BYTES, &out, &hit), MICA_STOP_MAX_BYTES);
    assert_memory_equal(out, piece, MICA_STOP_MAX_BYTES);
    assert_int_equal(mica_stop_push(m, "b", 1, &out, &hit), 0);
    assert_true(hit);
}

static void expect_refused(mica_stop *m, const char *const *stop, size_t n, const char *word)
{
    mica_error err = {.message = ""};
    assert_int_equal(mica_stop_start(m, stop, n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(err.code, MICA_INVALID_ARGUMENT);
    if (!strstr(err.message, word))
        fail_msg("'%s' does not say '%s'", err.message, word);
}

static void test_smp_10_refused(void **state)
{
    mica_stop *m = *state;
    static char longer[MICA_STOP_MAX_BYTES + 2];
    memset(longer, 'q', MICA_STOP_MAX_BYTES + 1);
    const char *many[MICA_STOP_MAX + 1];
    for (size_t i = 0; i <= MICA_STOP_MAX; i++)
        many[i] = "a";
    start(m, (const char *[]){"xyz"}, 1);
    expect_push(m, "x", "", false);
    expect_refused(m, (const char *[]){""}, 1, "stop string 1 of 1 is empty");
    expect_refused(m, (const char *[]){"a", "b", ""}, 3, "stop string 3 of 3 is empty");
    expect_refused(m, (const char *[]){"a", longer}, 2, "stop string 2 of 2 (\"qqqqqqqqqqqqqqqqqqqq...\") is longer than 1024");
    expect_refused(m, many, MICA_STOP_MAX + 1, "33 strings, but at most 32");
    expect_refused(m, (const char *[]){NULL}, 1, "is NULL");
    expect_refused(m, NULL, 2, "is NULL");
    assert_int_equal(mica_stop_start(m, many, MICA_STOP_MAX + 1, NULL), MICA_INVALID_ARGUMENT);
    expect_push(m, "yz", "", true); /* a refused start leaves the running reply as it was */
}

/* ---- Property: against a naive search -------------------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t n, const char *stop, size_t length)
{
    return length <= n && memcmp(text + n - length, stop, length) == 0;
}

/* The length of the longest stop string that ends at text[n), or 0. */
static size_t naive_hit(const char *text, size_t n, char stop[][32], size_t n_stop)
{
    size_t best = 0;
    for (size_t i = 0; i < n_stop; i++) {
        size_t length = strlen(stop[i]);
        if (length > best && ends_with(text, n, stop[i], length))
            best = length;
    }
    return best;
}

/* The longest suffix of text[0..n) that is a proper prefix of a stop string. */
static size_t naive_hold(const char *text, size_t n, char stop[][32], size_t n_stop)
{
    size_t best = 0;
    for (size_t i = 0; i < n_stop; i++)
        for (size_t length = 1; length < strlen(stop[i]); length++)
            if (length > best && ends_with(text, n, stop[i], length))
                best = length;
    return best;
}

static size_t below(mica_rng *rng, size_t n) { return (size_t)(mica_rng_next(rng) % n); }

static void one_random_case(mica_stop *m, mica_rng *rng, size_t *hits)
{
    static char text[TEXT_MAX], got[TEXT_MAX];
    char stop[MICA_STOP_MAX][32];
    const char *stops[MICA_STOP_MAX];
    size_t letters = 1 + below(rng, 3), n = below(rng, 200), n_stop = below(rng, 6), longest = 1 + below(rng, 12);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + below(rng, letters));
    for (size_t i = 0; i < n_stop; i++) {
        size_t length = 1 + below(rng, longest);
        for (size_t j = 0; j < length; j++)
            stop[i][j] = (char)('a' + below(rng, letters));
        stop[i][length] = 0;
        stops[i] = stop[i];
    }
    start(m, stops, n_stop);
    size_t end = 0, length = 0; /* of the first complete stop string */
    while (end < n && !(length = naive_hit(text, ++end, stop, n_stop)))
        ;
    const char *out;
    size_t emitted = 0, piece_max = 1 + below(rng, 40);
    bool hit = false;
    for (size_t at = 0; at < n && !hit;) {
        size_t piece = below(rng, piece_max + 1);
        piece = piece > n - at ? n - at : piece;
        size_t k = mica_stop_push(m, text + at, piece, &out, &hit);
        memcpy(got + emitted, out, k);
        emitted += k;
        at += piece;
        assert_int_equal(hit, length > 0 && at >= end);
        if (!hit)
            assert_int_equal(emitted, at - naive_hold(text, at, stop, n_stop));
    }
    size_t k = mica_stop_finish(m, &out);
    memcpy(got + emitted, out, k);
    emitted += k;
    assert_int_equal(emitted, length > 0 ? end - length : n);
    assert_memory_equal(got, text, emitted);
    *hits += length > 0;
}

static void test_property_against_naive(void **state)
{
    mica_rng rng;
    mica_rng_seed(&rng, 20240607);
    size_t hits = 0;
    for (int i = 0; i < 20000; i++)
        one_random_case(*state, &rng, &hits);
    assert_in_range(hits, 4000, 16000); /* both outcomes were exercised */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_straddles_tokens),
        cmocka_unit_test(test_holds_back_only_what_could_match),
        cmocka_unit_test(test_hit_drops_the_rest),
        cmocka_unit_test(test_restart_forgets_a_partial_match),
        cmocka_unit_test(test_earliest_end_wins_then_longest),
        cmocka_unit_test(test_no_stop_strings),
        cmocka_unit_test(test_bytes_are_not_text),
        cmocka_unit_test(test_longest_allowed),
        cmocka_unit_test(test_smp_10_refused),
        cmocka_unit_test(test_property_against_naive),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
