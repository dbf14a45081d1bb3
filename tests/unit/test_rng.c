/* test_rng.c - base/rng.h against published vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

/* The vectors that implementations of xoshiro256** and SplitMix64 share: state 1, 2, 3, 4 and seed 1234567. */
static void test_xoshiro_vector(void **state)
{
    (void)state;
    const uint64_t expected[] = {11520u, 0u, 1509978240u, 1215971899390074240u, 1216172134540287360u};
    mica_rng rng = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(mica_rng_next(&rng) == expected[i]);
}

static void test_splitmix_vector(void **state)
{
    (void)state;
    const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u,
                                 16408922859458223821u};
    uint64_t x = 1234567;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_true(mica_splitmix64(&x) == expected[i]);
    mica_rng rng;
    mica_rng_seed(&rng, 1234567);
    for (int i = 0; i < 4; i++)
        assert_true(rng.state[i] == expected[i]);
}

static void test_unit_range_and_mean(void **state)
{
    (void)state;
    mica_rng rng;
    mica_rng_seed(&rng, 0);
    double sum = 0.0, least = 1.0, most = 0.0;
    for (int i = 0; i < 100000; i++) {
        double u = mica_rng_unit(&rng);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        least = u < least ? u : least;
        most = u > most ? u : most;
    }
    assert_true(sum / 100000 > 0.4963 && sum / 100000 < 0.5037); /* 4 standard errors */
    assert_true(least < 1e-3 && most > 1 - 1e-3);
}

static void test_fresh_seeds_differ(void **state)
{
    (void)state;
    int64_t seeds[16];
    for (int i = 0; i < 16; i++) {
        assert_true(mica_rng_fresh_seed(&seeds[i]));
        assert_true(seeds[i] >= 0 && seeds[i] < (int64_t)1 << 53);
        for (int j = 0; j < i; j++)
            assert_true(seeds[i] != seeds[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xoshiro_vector),
        cmocka_unit_test(test_splitmix_vector),
        cmocka_unit_test(test_unit_range_and_mean),
        cmocka_unit_test(test_fresh_seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
