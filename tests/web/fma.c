/* Fused multiply-add as WebAssembly has to make it up: fmaf() of web/port and that of each kernel set (through pv, whose
 * step it is) against sums in 113 bits, where those are exact. Numbers of few bits, so that halfway cases are many;
 * denormals, too. */
#include <cmocka.h>
#include <math.h>

#include "base/rng.h"
#include "kern/kern.h"

enum { ROUNDS = 300000, LANES = 4 };

typedef struct four {
    float a[LANES], b[LANES], c[LANES];
} four;

static mica_rng rng;

static int below(int n) { return (int)(mica_rng_next(&rng) % (uint64_t)n); }

/* 1 to 24 bits long, with some bits only in the middle. */
static float mantissa(void)
{
    uint32_t bits = (uint32_t)mica_rng_next(&rng) & 0xFFFFFFu;
    switch (below(4)) {
    case 0: bits &= 0xF0000Fu; break;
    case 1: bits = 0x800000u | 1u << below(24); break;
    case 2: bits = (1u << (1 + below(23))) - 1; break;
    default: break;
    }
    return (float)((int)bits | 1) * (below(2) ? 1.0f : -1.0f);
}

/* a * b and c are near enough to one another that their sum has at most 113 bits. */
static void make(four *x)
{
    for (int i = 0; i < LANES; i++) {
        int scale = below(3) ? below(60) - 30 : -150 + below(30), half = scale / 2 - 24;
        x->a[i] = ldexpf(mantissa(), half);
        x->b[i] = ldexpf(mantissa(), scale - half - 48);
        x->c[i] = ldexpf(mantissa(), scale - 24 + below(60) - 30);
    }
}

static float exactly(float a, float b, float c) { return (float)((long double)a * (long double)b + (long double)c); }

static void compare(const char *what, float got, float a, float b, float c)
{
    float want = exactly(a, b, c);
    if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%s: %a * %a + %a gives %a, not %a", what, (double)a, (double)b, (double)c, (double)got, (double)want);
}

static void each_kernel_set(const four *x)
{
    for (size_t i = 0; i < mica_isa_count(); i++) {
        mica_kernels k;
        float alpha = 1.0f, o[LANES];
        if (!mica_isa_at(i)->supported() || mica_kernels_choose(mica_isa_at(i)->name, &k, NULL))
            continue;
        for (int lane = 0; lane < LANES; lane++) { /* all lanes of the vector are multiplied by the same number */
            memcpy(o, x->c, sizeof o);
            k.pv(o, 1, &alpha, &x->a[lane], x->b, 1, LANES);
            compare(k.name, o[lane], x->a[lane], x->b[lane], x->c[lane]);
        }
    }
}

static void test_many(void **state)
{
    (void)state;
    four x;
    mica_rng_seed(&rng, 5);
    for (int i = 0; i < ROUNDS; i++) {
        make(&x);
        for (int lane = 0; lane < LANES; lane++)
            compare("fmaf", fmaf(x.a[lane], x.b[lane], x.c[lane]), x.a[lane], x.b[lane], x.c[lane]);
        each_kernel_set(&x);
    }
}

/* 641 * 6700417 = 2^32 + 1: the sum is a little more than halfway between two denormal floats, and in double just halfway. */
static void test_denormal(void **state)
{
    (void)state;
    four x;
    for (int i = 0; i < LANES; i++) {
        x.a[i] = ldexpf(641.0f, -91);
        x.b[i] = ldexpf(6700417.0f, -91);
        x.c[i] = 0x1p-127f;
    }
    assert_true(fmaf(x.a[0], x.b[0], x.c[0]) == 0x1p-127f + 0x1p-149f);
    each_kernel_set(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many), cmocka_unit_test(test_denormal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
