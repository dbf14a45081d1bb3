/* The circuit breaker, with a clock of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "router/breaker.h"

enum { LIMIT = 3, OPEN = 1000 };

static bool attempt(mica_breaker *b, mica_breaker_result result, int64_t now)
{
    if (!mica_breaker_begin(b, now))
        return false;
    mica_breaker_end(b, result, LIMIT, OPEN, now);
    return true;
}

static void test_opens_after_failures_in_a_row(void **state)
{
    (void)state;
    mica_breaker b = {.failures = 0};
    assert_true(attempt(&b, MICA_BREAKER_BAD, 0) && attempt(&b, MICA_BREAKER_BAD, 0));
    assert_true(attempt(&b, MICA_BREAKER_GOOD, 0)); /* counts anew */
    for (int i = 0; i < LIMIT; i++)
        assert_true(attempt(&b, MICA_BREAKER_BAD, 10));
    assert_true(mica_breaker_is_open(&b, 10));
    assert_false(attempt(&b, MICA_BREAKER_GOOD, 10 + OPEN - 1));
}

static void test_one_probe(void **state)
{
    (void)state;
    mica_breaker b = {.failures = 0};
    for (int i = 0; i < LIMIT; i++)
        attempt(&b, MICA_BREAKER_BAD, 0);
    assert_true(mica_breaker_begin(&b, OPEN));
    assert_int_equal(b.state, MICA_BREAKER_HALF_OPEN);
    assert_false(mica_breaker_begin(&b, OPEN)); /* while the probe runs */
    mica_breaker_end(&b, MICA_BREAKER_BAD, LIMIT, OPEN, OPEN + 5);
    assert_false(mica_breaker_begin(&b, OPEN + 5 + OPEN - 1)); /* open again, from then */
    assert_true(mica_breaker_begin(&b, OPEN + 5 + OPEN));
    mica_breaker_end(&b, MICA_BREAKER_GOOD, LIMIT, OPEN, OPEN + 5 + OPEN);
    assert_int_equal(b.state, MICA_BREAKER_CLOSED);
    assert_int_equal(b.failures, 0);
}

static void test_a_probe_that_says_nothing(void **state)
{
    (void)state;
    mica_breaker b = {.failures = 0};
    for (int i = 0; i < LIMIT; i++)
        attempt(&b, MICA_BREAKER_BAD, 0);
    assert_true(attempt(&b, MICA_BREAKER_NEITHER, OPEN)); /* cancelled: the next one probes */
    assert_true(mica_breaker_begin(&b, OPEN));
    assert_false(mica_breaker_begin(&b, OPEN));
}

static void test_pause_that_a_server_asks_for(void **state)
{
    (void)state;
    mica_breaker b = {.failures = 0};
    mica_breaker_wait(&b, 500);
    mica_breaker_wait(&b, 200); /* an earlier one does not shorten it */
    assert_false(mica_breaker_begin(&b, 499));
    assert_true(mica_breaker_begin(&b, 500));
}

/* Whatever happens: never two probes at once, never an attempt while it is open, and success always heals. */
static void test_random(void **state)
{
    (void)state;
    mica_rng rng;
    mica_breaker b = {.failures = 0};
    int running = 0;
    bool probing = false;
    int64_t now = 0;
    mica_rng_seed(&rng, 7);
    for (int i = 0; i < 200000; i++) {
        now += (int64_t)(mica_rng_next(&rng) % 300);
        if (mica_rng_next(&rng) % 2 || running == 0) {
            bool open = b.state == MICA_BREAKER_OPEN && now < b.until_ns;
            bool may = mica_breaker_begin(&b, now);
            assert_false(may && (open || probing));
            running += may;
            probing = probing || (may && b.state == MICA_BREAKER_HALF_OPEN);
        } else {
            mica_breaker_result result = (mica_breaker_result)(mica_rng_next(&rng) % 3);
            mica_breaker_end(&b, result, LIMIT, OPEN, now);
            running--;
            probing = b.state == MICA_BREAKER_HALF_OPEN && b.probing;
            assert_true(result != MICA_BREAKER_GOOD || b.state == MICA_BREAKER_CLOSED);
            assert_true(b.state != MICA_BREAKER_CLOSED || b.failures < LIMIT || result == MICA_BREAKER_NEITHER);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opens_after_failures_in_a_row),
        cmocka_unit_test(test_one_probe),
        cmocka_unit_test(test_a_probe_that_says_nothing),
        cmocka_unit_test(test_pause_that_a_server_asks_for),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
