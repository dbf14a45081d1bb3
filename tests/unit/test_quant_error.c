/* test_quant_error.c - how much of the weights the encoders keep. Prints a table of it. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "quant/quant.h"

enum { N = 256 * 64 };

/* Everything a test of one format needs; sized once. */
static float weights[N], importance[N], decoded[N];
static _Alignas(16) uint8_t blocks[4 * N];

/* Error relative to the size of Gaussian weights that may not be exceeded: 0.5 % above what the encoders reach. `lo`, `levels`:
 * what the plain rule that the encoders are compared with rounds to; 0 levels: IQ4's table. */
typedef struct bound {
    const char *name;
    double gaussian;
    int group, lo, levels;
} bound;

static const bound bounds[] = {
    {"Q4_0", 0.0861, 32, -8, 16}, {"Q4_1", 0.0791, 32, 0, 16},   {"Q5_0", 0.0426, 32, -16, 32}, {"Q5_1", 0.0380, 32, 0, 32},
    {"Q8_0", 0.0054, 32, -127, 255}, {"Q2_K", 0.2642, 16, 0, 4},    {"Q3_K", 0.1436, 16, -4, 8},   {"Q4_K", 0.0705, 32, 0, 16},
    {"Q5_K", 0.0348, 32, 0, 32},  {"Q6_K", 0.0171, 16, -32, 64}, {"IQ4_NL", 0.0731, 32, 0, 0}, {"IQ4_XS", 0.0737, 32, 0, 0},
};
enum { N_BOUNDS = sizeof bounds / sizeof *bounds };

static uint64_t random_state;

static double uniform(void)
{
    random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
    return ((double)(random_state >> 11) + 0.5) * 0x1p-53;
}

static double gaussian(void) { return sqrt(-2.0 * log(uniform())) * cos(6.28318530717958648 * uniform()); }

typedef enum kind { GAUSSIAN, HEAVY_TAILS, UNEVEN_GROUPS, WITH_OFFSET, N_KINDS } kind;
static const char *const kind_names[] = {"Gaussian", "heavy tails", "uneven groups", "with offset"};

static void fill(kind what)
{
    random_state = 88172645463325252u;
    double scale = 0.02;
    for (int i = 0; i < N; i++) {
        double g = gaussian();
        if (what == UNEVEN_GROUPS && i % 16 == 0)
            scale = 0.02 * exp(gaussian());
        if (what == HEAVY_TAILS)
            g *= fabs(g);
        weights[i] = (float)(scale * g + (what == WITH_OFFSET ? 0.03 : 0.0));
        double activation = gaussian();
        importance[i] = (float)(1e-3 + activation * activation);
    }
}

/* Weighted error of `decoded`, relative to the weights. */
static double relative_error(const float *w)
{
    double error = 0.0, size = 0.0;
    for (int i = 0; i < N; i++) {
        double miss = (double)decoded[i] - (double)weights[i], weight = w ? (double)w[i] : 1.0;
        error += weight * miss * miss;
        size += weight * (double)weights[i] * (double)weights[i];
    }
    return sqrt(error / size);
}

static void encode_decode(const mica_quant *quant, const float *w)
{
    quant->encode(weights, w, blocks, N);
    quant->decode(quant, blocks, decoded, N);
}

/* The plain rule: extremes of the group to the ends of the levels, nearest level, scale and offset not even rounded. */
static double plain_error(const bound *b, bool has_min)
{
    static const int8_t iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    for (int first = 0; first < N; first += b->group) {
        const float *x = weights + first;
        double lo = 0.0, hi = 0.0, extreme = 0.0;
        for (int i = 0; i < b->group; i++) {
            lo = fmin(lo, (double)x[i]);
            hi = fmax(hi, (double)x[i]);
            extreme = fabs((double)x[i]) > fabs(extreme) ? (double)x[i] : extreme;
        }
        double scale = has_min ? (hi - lo) / (b->levels - 1) : extreme / (b->levels ? b->lo : -127);
        double offset = has_min ? lo : 0.0;
        for (int i = 0; i < b->group; i++) {
            double y = ((double)x[i] - offset) / scale, level = fmax(b->lo, fmin(b->lo + b->levels - 1, rint(y)));
            for (int k = 0; !b->levels && k < 16; k++)
                level = k == 0 || fabs(y - iq4[k]) < fabs(y - level) ? iq4[k] : level;
            decoded[first + i] = (float)(level * scale + offset);
        }
    }
    return relative_error(NULL);
}

static void errors_are_bounded(void **state)
{
    (void)state;
    for (int what = 0; what < N_KINDS; what++) {
        fill((kind)what);
        print_message("%s\n", kind_names[what]);
        for (size_t k = 0; k < N_BOUNDS; k++) {
            const mica_quant *quant = mica_quant_by_name(bounds[k].name);
            double plain = plain_error(&bounds[k], quant->has_min);
            encode_decode(quant, NULL);
            double error = relative_error(NULL);
            print_message("  %-7s %.4f bits/weight  error %.5f  (plain rule %.5f)\n", quant->name,
                          8.0 * quant->block_bytes / quant->block_weights, error, plain);
            assert_true(error <= 1.02 * plain);
            assert_true(error > 1e-4); /* no format is that good: the test would be broken */
            if (what == GAUSSIAN)
                assert_true(error <= bounds[k].gaussian);
        }
    }
}

/* An importance must lower the error that it weighs, for every format. */
static void importance_is_used(void **state)
{
    (void)state;
    for (int what = 0; what < N_KINDS; what++) {
        fill((kind)what);
        for (size_t k = 0; k < N_BOUNDS; k++) {
            const mica_quant *quant = mica_quant_by_name(bounds[k].name);
            encode_decode(quant, NULL);
            double without = relative_error(importance);
            encode_decode(quant, importance);
            assert_true(relative_error(importance) < 0.99 * without);
        }
    }
}

/* An importance that says nothing (all equal, all zero, or not numbers) is as none; a weight that alone
 * counts, one in 32, is met much better than otherwise. */
static void odd_importance(void **state)
{
    (void)state;
    static uint8_t again[4 * N];
    static const float nothing[] = {1.0f, 4.0f, 0.0f, -1.0f, NAN, INFINITY};
    fill(GAUSSIAN);
    for (size_t k = 0; k < N_BOUNDS; k++) {
        const mica_quant *quant = mica_quant_by_name(bounds[k].name);
        for (size_t j = 0; j < sizeof nothing / sizeof *nothing; j++) {
            float same[N];
            for (int i = 0; i < N; i++)
                same[i] = nothing[j];
            quant->encode(weights, same, j ? again : blocks, N);
            if (j)
                assert_memory_equal(again, blocks, mica_quant_bytes(quant, N));
        }
        float one[N] = {0};
        for (int i = 3; i < N; i += 32)
            one[i] = 1.0f;
        encode_decode(quant, NULL);
        double without = relative_error(one);
        encode_decode(quant, one);
        assert_true(relative_error(one) < 0.5 * without);
    }
}

/* Zeros stay zeros; one value for all is kept as exactly as the product of a half and a sub-scale allows. */
static void constant_blocks(void **state)
{
    (void)state;
    static const float values[] = {0.0f, 1.0f, -1.0f, 0.0123f, -0.3f, 1000.0f, -60000.0f};
    for (size_t k = 0; k < N_BOUNDS; k++)
        for (size_t j = 0; j < sizeof values / sizeof *values; j++) {
            const mica_quant *quant = mica_quant_by_name(bounds[k].name);
            for (int i = 0; i < N; i++)
                weights[i] = values[j];
            for (int weighted = 0; weighted < 2; weighted++) {
                encode_decode(quant, weighted ? importance : NULL);
                for (int i = 0; i < N; i++)
                    if (fabsf(decoded[i] - values[j]) > 0.01f * fabsf(values[j]))
                        fail_msg("%s: %g became %g", quant->name, (double)values[j], (double)decoded[i]);
            }
        }
}

/* Any input gives a block that decodes without undefined behaviour (the sanitizers see it); weights within a half's reach stay
 * within the range of the input. */
static void hostile_inputs(void **state)
{
    (void)state;
    static const float sizes[] = {1e-45f, 1e-40f, 1e-30f, 1e-12f, 1e-7f, 1e-5f, 1.0f, 1e4f, 1e6f, 1e30f, FLT_MAX};
    static const float poison[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < N_BOUNDS; k++) {
        const mica_quant *quant = mica_quant_by_name(bounds[k].name);
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            random_state = 1234567 + j;
            for (int i = 0; i < N; i++)
                weights[i] = (float)(2.0 * uniform() - 1.0) * sizes[j];
            for (int weighted = 0; weighted < 2; weighted++) {
                encode_decode(quant, weighted ? importance : NULL);
                for (int i = 0; i < N && sizes[j] <= 1e4f; i++)
                    if (!(fabsf(decoded[i] - weights[i]) <= sizes[j] + 1e-6f))
                        fail_msg("%s: %g became %g", quant->name, (double)weights[i], (double)decoded[i]);
            }
        }
        for (size_t j = 0; j < sizeof poison / sizeof *poison; j++)
            for (int stride = 1; stride <= 64; stride += 63) {
                for (int i = 0; i < N; i++)
                    weights[i] = i % stride == 0 ? poison[j] : 0.5f;
                encode_decode(quant, NULL);
                encode_decode(quant, importance);
            }
    }
}

/* Weights that a format can express survive a second trip: nearly, as the encoder may find another way to write them. */
static void second_trip(void **state)
{
    (void)state;
    fill(UNEVEN_GROUPS);
    for (size_t k = 0; k < N_BOUNDS; k++) {
        const mica_quant *quant = mica_quant_by_name(bounds[k].name);
        fill(UNEVEN_GROUPS);
        encode_decode(quant, NULL);
        double first = relative_error(NULL);
        memcpy(weights, decoded, sizeof weights);
        encode_decode(quant, NULL);
        double second = relative_error(NULL);
        print_message("%-7s first trip %.5f, second %.5f\n", quant->name, first, second);
        assert_true(second <= 0.5 * first);
    }
}

static int set_up(void **state)
{
    (void)state;
    fill(GAUSSIAN); /* an importance for the tests that make their own weights */
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(importance_is_used),
        cmocka_unit_test(odd_importance),
        cmocka_unit_test_setup(constant_blocks, set_up),
        cmocka_unit_test_setup(hostile_inputs, set_up),
        cmocka_unit_test(second_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
