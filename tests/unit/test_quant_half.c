/* test_quant_half.c - half and bfloat16 conversions against a slow reference that only compares distances in double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "quant/quant.h"

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

/* Value of a half without its sign; the one after the largest is 65536, which stands for infinity when rounding. */
static double half_value(unsigned h)
{
    int exponent = (int)(h >> 10), mantissa = (int)(h & 0x3FF);
    return exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
}

/* The same for a bfloat16; 0x7F80 gives 2^128. */
static double brain_value(unsigned h)
{
    int exponent = (int)(h >> 7), mantissa = (int)(h & 0x7F);
    return exponent ? ldexp(128 + mantissa, exponent - 134) : ldexp(mantissa, -133);
}

/* Nearest of the codes 0..last, whose values ascend; ties to the even code. */
static unsigned nearest_code(double magnitude, double (*value)(unsigned), unsigned last)
{
    unsigned lo = 0, hi = last;
    while (lo < hi) { /* the highest code not above */
        unsigned middle = (lo + hi + 1) / 2;
        if (value(middle) <= magnitude)
            lo = middle;
        else
            hi = middle - 1;
    }
    if (lo == last)
        return last;
    double below = magnitude - value(lo), above = value(lo + 1) - magnitude;
    return below < above || (below == above && lo % 2 == 0) ? lo : lo + 1;
}

static void check_f16(uint32_t u)
{
    float f = float_of(u);
    uint16_t got = mica_f32_to_f16(f), sign = (uint16_t)(u >> 16 & 0x8000);
    uint16_t want = isnan(f) ? (uint16_t)(sign | 0x7E00 | (u >> 13 & 0x3FF))
                             : (uint16_t)(sign | nearest_code(fabs((double)f), half_value, 0x7C00));
    if (got != want)
        fail_msg("f32 %08x to f16: %04x, expected %04x", u, got, want);
}

static void check_bf16(uint32_t u)
{
    float f = float_of(u);
    uint16_t got = mica_f32_to_bf16(f), sign = (uint16_t)(u >> 16 & 0x8000);
    uint16_t want = isnan(f) ? (uint16_t)(u >> 16 | 0x40)
                             : (uint16_t)(sign | nearest_code(fabs((double)f), brain_value, 0x7F80));
    if (got != want)
        fail_msg("f32 %08x to bf16: %04x, expected %04x", u, got, want);
}

static void all_halves(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = mica_f16_to_f32((uint16_t)h);
        uint32_t u = bits_of(f);
        assert_int_equal(u >> 31, h >> 15);
        if ((h & 0x7FFF) > 0x7C00) { /* quiet, the payload kept */
            assert_int_equal(u, (h & 0x8000) << 16 | 0x7FC00000u | (h & 0x3FF) << 13);
            assert_int_equal(mica_f32_to_f16(f), h | 0x200);
            continue;
        }
        if ((h & 0x7FFF) == 0x7C00)
            assert_true(isinf(f));
        else
            assert_true(fabs((double)f) == half_value(h & 0x7FFF));
        assert_int_equal(mica_f32_to_f16(f), h);
    }
}

static void all_brain_floats(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = mica_bf16_to_f32((uint16_t)h);
        assert_int_equal(bits_of(f), h << 16);
        assert_int_equal(mica_f32_to_bf16(f), (h & 0x7FFF) > 0x7F80 ? h | 0x40 : h);
    }
}

/* Around every half, and every midpoint of two: the float itself and its neighbours, of both signs. */
static void rounding_boundaries(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7C00; h++) {
        uint32_t here = bits_of((float)half_value(h)), middle = bits_of((float)((half_value(h) + half_value(h + 1)) / 2));
        for (int step = -2; step <= 2; step++) {
            uint32_t around_here = h || step > 0 ? here + (uint32_t)step : here, around_middle = middle + (uint32_t)step;
            check_f16(around_here);
            check_f16(around_here | 0x80000000u);
            check_f16(around_middle);
            check_f16(around_middle | 0x80000000u);
        }
    }
    for (uint32_t h = 0; h < 0x7F80; h++)
        for (uint32_t low = 0x7FFE; low <= 0x8002; low++) {
            check_bf16(h << 16 | low);
            check_bf16(h << 16 | low | 0x80000000u);
        }
}

static void special_values(void **state)
{
    (void)state;
    static const uint32_t hard[] = {
        0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, /* zero and float denormals */
        0x33000000, 0x33000001, 0x32FFFFFF, 0x33800000, /* 2^-25, the tie between 0 and the smallest half */
        0x387FDFFF, 0x387FE000, 0x387FE001, 0x38800000, /* largest denormal half and smallest normal one */
        0x477FE000, 0x477FEFFF, 0x477FF000, 0x477FF001, 0x47800000, /* 65504, just below 65520, 65520: infinity */
        0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF, 0x7F800000, /* largest floats round to infinity */
        0x7F800001, 0x7F801FFF, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, /* NaN with payloads that the cut would lose */
    };
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        check_f16(hard[i]);
        check_f16(hard[i] | 0x80000000u);
        check_bf16(hard[i]);
        check_bf16(hard[i] | 0x80000000u);
    }
    assert_int_equal(mica_f32_to_f16(65519.996f), 0x7BFF);
    assert_int_equal(mica_f32_to_f16(65520.0f), 0x7C00);
    assert_int_equal(mica_f32_to_f16(-0.0f), 0x8000);
}

static void random_bits(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 400000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17; /* xorshift64 */
        uint32_t u = (uint32_t)(x >> 32);
        check_f16(u);
        check_bf16(u);
        /* an exponent that halves have: -26..16 */
        check_f16((u & 0x807FFFFFu) | (101 + (uint32_t)(x & 0xFFFF) % 43) << 23);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_halves),     cmocka_unit_test(all_brain_floats), cmocka_unit_test(rounding_boundaries),
        cmocka_unit_test(special_values), cmocka_unit_test(random_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
