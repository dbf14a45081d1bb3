/* test_cache_rows.c - what quantised keys go through on their way into the cache: the Hadamard transform, whose additions have
 * one order, and the encoders of Q8_0 and Q4_0 behind it. No instruction set has versions of them, so that the kernels'
 * self-check has nothing to compare; here is what holds them. (The encoders by themselves: test_quant.c, against another
 * implementation.) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "model/hadamard.h"
#include "quant/quant.h"

enum { N = MICA_HADAMARD, ROW = 128, ROWS = 200 };

static mica_rng seeded(uint64_t seed)
{
    mica_rng rng;
    mica_rng_seed(&rng, seed);
    return rng;
}

/* Of all magnitudes that activations have, so that the order of additions shows in the last bits. */
static void fill(mica_rng *rng, float *x, int n)
{
    for (int i = 0; i < n; i++) {
        int32_t bits = (int32_t)(mica_rng_next(rng) >> 40) - (1 << 23);
        x[i] = ldexpf((float)bits, -23 - (int)(mica_rng_next(rng) % 12));
    }
}

/* By the definition: element j of a unit vector's transform is (-1) to the number of bits that i and j share. */
static void test_definition(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        float x[N] = {0};
        x[i] = 1.0f;
        mica_hadamard_block(x);
        for (unsigned j = 0; j < N; j++)
            assert_true(x[j] == (__builtin_popcount(i & j) % 2 ? -1.0f : 1.0f));
    }
}

/* One output, from the top down: the sum or the difference of two outputs of half the elements. */
static float output_of(const float *x, int level, int j)
{
    if (level == 0)
        return x[j];
    int bit = 1 << (level - 1);
    float a = output_of(x, level - 1, j & ~bit), b = output_of(x, level - 1, j | bit);
    return j & bit ? a - b : a + b;
}

static void test_order_of_additions(void **state)
{
    mica_rng rng = seeded(1);
    (void)state;
    for (int k = 0; k < ROWS; k++) {
        float x[ROW], y[ROW];
        fill(&rng, x, ROW);
        memcpy(y, x, sizeof y);
        mica_hadamard(y, ROW);
        for (int i = 0; i < ROW; i++) {
            float want = output_of(x + i / N * N, 5, i % N);
            assert_memory_equal(&y[i], &want, sizeof want);
        }
    }
}

/* Exact for whole numbers, whose sums all fit a float. */
static void test_twice_is_32_times(void **state)
{
    mica_rng rng = seeded(2);
    (void)state;
    for (int k = 0; k < ROWS; k++) {
        float x[N], y[N];
        for (int i = 0; i < N; i++)
            x[i] = (float)((int32_t)(mica_rng_next(&rng) % 16384) - 8192);
        memcpy(y, x, sizeof y);
        mica_hadamard_block(y);
        mica_hadamard_block(y);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == 32.0f * x[i]);
    }
}

static void test_what_is_not_finite_stays_so(void **state)
{
    float x[N] = {0};
    (void)state;
    x[7] = INFINITY;
    x[9] = 1.0f;
    mica_hadamard_block(x);
    for (int i = 0; i < N; i++)
        assert_true(isinf(x[i]));
    x[3] = NAN;
    mica_hadamard_block(x);
    for (int i = 0; i < N; i++)
        assert_true(isnan(x[i]));
}

/* The squared error of a row that went through the cache, with or without the transform. */
static double trip(const mica_quant *quant, const float *x, int rotate)
{
    float y[ROW];
    uint8_t bytes[ROW / 32 * 34];
    double sum = 0.0;
    memcpy(y, x, sizeof y);
    if (rotate)
        mica_hadamard(y, ROW);
    quant->encode(y, NULL, bytes, ROW);
    quant->decode(quant, bytes, y, ROW);
    if (rotate)
        mica_hadamard(y, ROW);
    for (int i = 0; i < ROW; i++) {
        double d = (double)(rotate ? y[i] / 32.0f : y[i]) - (double)x[i];
        sum += d * d;
    }
    return sum;
}

/* What the transform is for: a few large elements cost the small ones beside them less. */
static void test_outliers_cost_less(void **state)
{
    static const mica_type types[] = {MICA_TYPE_Q8_0, MICA_TYPE_Q4_0};
    mica_rng rng = seeded(3);
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        double plain = 0.0, rotated = 0.0, norm = 0.0;
        for (int k = 0; k < ROWS; k++) {
            float x[ROW];
            for (int i = 0; i < ROW; i++)
                x[i] = (float)((int32_t)(mica_rng_next(&rng) >> 40) - (1 << 23)) * 0x1p-23f;
            x[5] = 24.0f; /* the same channel in every row, as keys have it */
            plain += trip(mica_quant_of(types[t]), x, 0);
            rotated += trip(mica_quant_of(types[t]), x, 1);
            for (int i = 0; i < ROW; i++)
                norm += (double)x[i] * (double)x[i];
        }
        assert_true(rotated < 0.7 * plain);
        assert_true(rotated < (t == 0 ? 1e-4 : 2e-2) * norm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),         cmocka_unit_test(test_order_of_additions),
        cmocka_unit_test(test_twice_is_32_times),  cmocka_unit_test(test_what_is_not_finite_stays_so),
        cmocka_unit_test(test_outliers_cost_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
