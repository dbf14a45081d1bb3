/* What speculation rests on, without a model: the index of the history, and the estimate of how long a draft pays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "session/lookup.h"
#include "session/pace.h"

static mica_lookup open_lookup(int32_t n_ctx)
{
    mica_lookup l;
    assert_int_equal(mica_lookup_new(&l, n_ctx, NULL), MICA_OK);
    return l;
}

static void test_continuation(void **state)
{
    (void)state;
    static const int32_t text[] = {1, 2, 3, 4, 5, 9, 2, 3, 7, 8, 1, 2, 3};
    int32_t out[4];
    mica_lookup l = open_lookup(64);
    assert_int_equal(mica_lookup_find(&l, text, 2, 4, out), 0);
    assert_int_equal(mica_lookup_find(&l, text, 8, 4, out), 2); /* ... 2 3 */
    assert_int_equal(out[0], 4);
    assert_int_equal(out[3], 2);
    assert_int_equal(mica_lookup_find(&l, text, 13, 2, out), 3); /* 1 2 3 at the start beats the later 2 3 */
    assert_int_equal(out[0], 4);
    assert_int_equal(out[1], 5);
    mica_lookup_reset(&l);
    static const int32_t other[] = {4, 4, 6, 4, 4};
    assert_int_equal(mica_lookup_find(&l, other, 5, 3, out), 2);
    assert_int_equal(out[0], 6);
    assert_int_equal(out[1], 4);
    mica_lookup_free(&l);
}

/* "ab ab ab": the guess goes on in a circle beyond the end of the history. */
static void test_circle(void **state)
{
    (void)state;
    static const int32_t text[] = {7, 1, 2, 3, 1, 2, 3, 1, 2};
    int32_t out[10];
    mica_lookup l = open_lookup(64);
    assert_int_equal(mica_lookup_find(&l, text, 9, 10, out), 5);
    for (int i = 0; i < 10; i++)
        assert_int_equal(out[i], 1 + (i + 2) % 3);
    mica_lookup_free(&l);
}

/* The longest match of the end among the 16 latest places after its last pair, the latest of equal ones; by plain search. */
static int32_t search(const int32_t *t, int32_t n, int32_t *place)
{
    int32_t longest = 0;
    for (int32_t p = n - 1, seen = 0; p >= 2 && seen < MICA_LOOKUP_PLACES; p--) {
        int32_t length = 0;
        while (length < MICA_LOOKUP_MATCH && length < p && t[p - 1 - length] == t[n - 1 - length])
            length++;
        seen += length >= 2;
        if (length >= 2 && length > longest) {
            longest = length;
            *place = p;
        }
    }
    return longest;
}

static void test_against_search(void **state)
{
    (void)state;
    enum { LENGTH = 600 };
    int32_t text[LENGTH], out[8], place = 0, found = 0;
    mica_rng rng;
    mica_rng_seed(&rng, 5);
    for (int32_t kinds = 2; kinds < 40; kinds += 6) {
        mica_lookup l = open_lookup(1 << 16); /* so large a table that pairs do not share slots */
        for (int32_t n = 0; n < LENGTH; n++) {
            int32_t from = (int32_t)(mica_rng_next(&rng) % LENGTH); /* at times something is repeated */
            text[n] = n > 20 && n % 50 > 20 ? text[n - 20] : from % kinds;
            if (n < 3)
                continue;
            int32_t want = search(text, n + 1, &place), got = mica_lookup_find(&l, text, n + 1, 8, out);
            assert_int_equal(got, want);
            for (int32_t i = 0; i < 8 && got > 0 && place + i <= n; i++)
                assert_int_equal(out[i], text[place + i]);
            found += got > 0;
        }
        mica_lookup_free(&l);
    }
    assert_true(found > 1000);
}

/* A small table: pairs share slots, and a guess is still a real continuation. */
static void test_collisions(void **state)
{
    (void)state;
    enum { LENGTH = 64 };
    int32_t text[LENGTH], out[1];
    mica_rng rng;
    mica_rng_seed(&rng, 6);
    for (int round = 0; round < 200; round++) {
        mica_lookup l = open_lookup(LENGTH);
        for (int32_t n = 0; n < LENGTH; n++)
            text[n] = (int32_t)(mica_rng_next(&rng) % 12);
        for (int32_t n = 2; n <= LENGTH; n++) {
            bool real = false;
            if (mica_lookup_find(&l, text, n, 1, out) == 0)
                continue;
            for (int32_t p = 2; p < n; p++)
                real |= text[p - 2] == text[n - 2] && text[p - 1] == text[n - 1] && text[p] == out[0];
            assert_true(real);
        }
        mica_lookup_free(&l);
    }
}

static void test_pace_learns(void **state)
{
    (void)state;
    mica_pace p;
    mica_pace_init(&p, 0.2);
    for (int i = 0; i < 20; i++)
        mica_pace_step(&p, 1, 10000000);
    assert_int_equal(mica_pace_choose(&p, 0, 31), 0); /* two tokens that match promise little */
    int32_t before = mica_pace_choose(&p, 3, 31);
    assert_true(before >= 3);
    for (int i = 0; i < 10; i++)
        mica_pace_judge(&p, 3, 7, false);
    int32_t after = mica_pace_choose(&p, 3, 31);
    assert_true(after > before);
    assert_true(mica_pace_choose(&p, 3, 5) <= 5);
    assert_int_equal(mica_pace_choose(&p, 3, 0), 0);
    for (int i = 0; i < 40; i++)
        mica_pace_judge(&p, 3, 0, true);
    assert_int_equal(mica_pace_choose(&p, 3, 31), 0); /* always wrong: no more */
    for (int i = 0; i < 60; i++)
        mica_pace_judge(&p, 3, 1, false);
    assert_true(mica_pace_choose(&p, 3, 31) > 0); /* and judged without being tried, it comes back */
}

/* Costs decide: where a step of many tokens takes as long as that many steps nothing is drafted, however often it is right. */
static void test_pace_costs(void **state)
{
    (void)state;
    mica_pace cheap, dear;
    mica_pace_init(&cheap, 0.0);
    mica_pace_init(&dear, 0.0);
    for (int round = 0; round < 60; round++) {
        mica_pace_judge(&cheap, 2, 9, true);
        mica_pace_judge(&dear, 2, 9, true);
        for (int32_t n = 1; n <= 64; n *= 2) {
            mica_pace_step(&cheap, n, 1000000 + 10000 * n);
            mica_pace_step(&dear, n, 1000000 * n);
        }
    }
    assert_int_equal(mica_pace_choose(&dear, 2, 63), 0);
    assert_true(mica_pace_choose(&cheap, 2, 63) >= 15);
    int32_t long_before = mica_pace_choose(&cheap, 2, 63);
    mica_pace_step(&cheap, 16, 900000000); /* the machine did something else for once */
    mica_pace_step(&cheap, 32, 900000000);
    assert_true(mica_pace_choose(&cheap, 2, 63) >= long_before / 2);
}

/* A draft model costs its own time. */
static void test_pace_model(void **state)
{
    (void)state;
    mica_pace p;
    mica_pace_init(&p, 0.1);
    for (int i = 0; i < 30; i++) {
        mica_pace_step(&p, 1, 1000000);
        mica_pace_judge(&p, MICA_PACE_MODEL, 3, i % 3 == 0);
    }
    assert_true(mica_pace_choose(&p, MICA_PACE_MODEL, 15) > 0);
    for (int i = 0; i < 60; i++)
        mica_pace_drafted(&p, 3, 6000000);
    assert_int_equal(mica_pace_choose(&p, MICA_PACE_MODEL, 15), 0); /* two steps a token: slower than the model itself */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_continuation), cmocka_unit_test(test_circle),      cmocka_unit_test(test_against_search),
        cmocka_unit_test(test_collisions),   cmocka_unit_test(test_pace_learns), cmocka_unit_test(test_pace_costs),
        cmocka_unit_test(test_pace_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
