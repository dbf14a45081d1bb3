/* The estimate of the time that is left: it counts down to nothing, learns from replies, and takes a phase's own pace once it
 * has one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/eta.h"

#define S INT64_C(1000000000)

static const char text[] = "{\"version\": 1, \"name\": \"e\", \"description\": \"e\", \"n_ctx\": 1024, \"cold_s\": 60, "
                           "\"steady_s\": 180, \"phases\": ["
                           "{\"kind\": \"load\", \"cache\": \"warm\"},"
                           "{\"kind\": \"cooldown\", \"within_c\": 2, \"settle_s\": 60, \"max_s\": 1800, \"blind_s\": 60},"
                           "{\"kind\": \"warmup\", \"prompt\": 128, \"reply\": 128, \"repeat\": 1},"
                           "{\"kind\": \"ttft\", \"prompt\": 512, \"reply\": 2, \"repeat\": 7},"
                           "{\"kind\": \"decode\", \"prompt\": 32, \"reply\": 480, \"min_s\": 480},"
                           "{\"kind\": \"bandwidth\", \"repeat\": 9}]}";

static mica_protocol open_protocol(void)
{
    mica_protocol p;
    mica_error err;
    if (mica_protocol_read(text, strlen(text), &p, &err))
        fail_msg("%s", err.message);
    return p;
}

/* A run whose phases take so many seconds each, looked at every second: what is left is never far from the truth once the
 * warm-up is over, and the part that is done only grows in a phase. */
static void test_a_whole_run(void **state)
{
    static const double seconds[] = {1, 60, 7.2, 23, 490, 1.8}; /* 144 tokens' weight in the warm-up: 0.05 s each */
    mica_protocol p = open_protocol();
    mica_eta eta;
    double all = 0.0, before = 0.0;
    int64_t now = 77 * S;
    (void)state;
    for (size_t i = 0; i < 6; i++)
        all += seconds[i];
    mica_eta_begin(&eta, &p, now);
    for (int32_t at = 0; at < 6; at++) {
        double last = -1.0;
        for (double t = 0.0; t < seconds[at]; t += 1.0) {
            double part, left = mica_eta_left(&eta, at, t / seconds[at], now + (int64_t)((before + t) * 1e9), &part);
            double truth = all - before - t;
            assert_true(left >= 0.0 && part >= 0.0 && part < 1.0);
            if (at >= 3)
                assert_true(fabs(left - truth) < 0.15 * all);
            if (at >= 3 && t > 0.2 * seconds[at])
                assert_true(part >= last - 0.02);
            last = part;
        }
        before += seconds[at];
    }
    mica_protocol_free(&p);
}

/* A runtime ten times as slow: its warm-up says so, and the phases behind it are expected to take longer. */
static void test_it_learns(void **state)
{
    mica_protocol p = open_protocol();
    double left[2], part;
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        mica_eta eta;
        int64_t warm_s = slow ? 72 : 7;
        mica_eta_begin(&eta, &p, 0);
        mica_eta_left(&eta, 1, 0.5, 30 * S, &part);
        mica_eta_left(&eta, 2, 0.0, 60 * S, &part);
        left[slow] = mica_eta_left(&eta, 3, 0.0, (60 + warm_s) * S, &part);
    }
    assert_true(left[1] > left[0] + 100.0); /* 7 prompts of 512 tokens */
    assert_true(left[1] < left[0] + 400.0);
    mica_protocol_free(&p);
}

/* Stuck in the middle of a phase: what is left grows with the time that it takes. */
static void test_a_slow_phase(void **state)
{
    mica_protocol p = open_protocol();
    mica_eta eta;
    double part, left;
    (void)state;
    mica_eta_begin(&eta, &p, 0);
    left = mica_eta_left(&eta, 4, 0.0, 100 * S, &part);
    assert_true(left > 480.0 && left < 600.0);
    left = mica_eta_left(&eta, 4, 0.5, 1100 * S, &part);
    assert_true(fabs(left - 1001.8) < 1.0); /* as long again, and the reads of memory behind it */
    mica_protocol_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_run),
        cmocka_unit_test(test_it_learns),
        cmocka_unit_test(test_a_slow_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
