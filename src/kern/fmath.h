/* fmath.h - exp, log, sin, cos and friends from a fixed sequence of IEEE operations, so that results have the same bits on every
 * machine and every kernel set. The SIMD kernels repeat exactly these steps lane by lane. Never libm (except fmaf, sqrtf and
 * rintf, which IEEE 754 defines exactly).
 *
 * Sources: Cody & Waite range reduction; polynomial coefficients are minimax fits by Remez (accuracy is measured in
 * tests/unit/test_fmath.c against long double libm).
 */
#ifndef MICA_KERN_FMATH_H
#define MICA_KERN_FMATH_H
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float mica_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint32_t mica_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

#define MICA_EXP_MIN (-87.0f) /* below: 0 */
#define MICA_EXP_MAX (88.0f)  /* above: the value at 88 (softmax and silu never get there) */

/** e^x for x in [MICA_EXP_MIN, MICA_EXP_MAX]; 0 below, clamped above, NaN for NaN. Error below 2 ulp. */
static inline float mica_expf(float x)
{
    if (x < MICA_EXP_MIN)
        return 0.0f;
    float c = x > MICA_EXP_MAX ? MICA_EXP_MAX : x;
    /* x = n ln2 + r, |r| <= ln2/2; ln2 in two parts so that n * hi is exact */
    float n = rintf(c * 1.44269504f);
    float r = fmaf(n, -0.693359375f, c);
    r = fmaf(n, 2.12194440e-4f, r);
    float p = 1.98756912e-4f;
    p = fmaf(p, r, 1.39819994e-3f);
    p = fmaf(p, r, 8.33345205e-3f);
    p = fmaf(p, r, 4.16657962e-2f);
    p = fmaf(p, r, 1.66666657e-1f);
    p = fmaf(p, r, 5.00000000e-1f);
    p = fmaf(p, r * r, r);
    p = p + 1.0f;
    /* n is in [-126, 127]: the scale is a normal number. NaN went through p; keep the cast defined. */
    int32_t e = n == n ? (int32_t)n : 0;
    return p * mica_bits_f32((uint32_t)(e + 127) << 23);
}

/** Natural logarithm of a positive normal or denormal float, in double; -inf for 0, NaN for x < 0 and NaN. Relative error
 * below 1e-14: used for log-probabilities and set-up tables, never per weight. */
static inline double mica_log(double x)
{
    if (!(x > 0.0))
        return x == 0.0 ? -INFINITY : NAN;
    if (x == INFINITY)
        return x;
    uint64_t u;
    double scaled = x;
    int e = 0;
    memcpy(&u, &scaled, 8);
    if ((u >> 52) == 0) { /* denormal */
        scaled = x * 18014398509481984.0; /* 2^54 */
        e = -54;
        memcpy(&u, &scaled, 8);
    }
    e += (int)(u >> 52) - 1023;
    u = (u & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
    double m;
    memcpy(&m, &u, 8);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e += 1;
    }
    /* log m = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.1716: the series to s^23 leaves 2e-19 */
    double s = (m - 1.0) / (m + 1.0), z = s * s, p = 0.0;
    for (int k = 23; k >= 1; k -= 2)
        p = fma(p, z, 1.0 / (double)k);
    return fma((double)e, 0.69314718055994531, 2.0 * s * p);
}

/** e^x in double for |x| <= 700; relative error below 1e-14. For set-up tables and sampling. */
static inline double mica_exp(double x)
{
    if (!(x > -700.0))
        return x != x ? x : 0.0;
    if (x > 700.0)
        x = 700.0;
    double n = rint(x * 1.4426950408889634);
    double r = fma(n, -0.693147180369123816490, x);
    r = fma(n, -1.90821492927058770002e-10, r);
    double p = 1.0; /* Taylor by Horner to r^14 / 14!: |r| <= 0.3466 leaves 1e-19 */
    for (int k = 14; k >= 1; k--)
        p = fma(p * r, 1.0 / (double)k, 1.0);
    uint64_t u = (uint64_t)((int64_t)n + 1023) << 52;
    double scale;
    memcpy(&scale, &u, 8);
    return p * scale;
}

/** sin and cos together for 0 <= x < 2^31 in double (angles of RoPE: position * frequency). Absolute error below 1e-9 up to
 * x = 1e6, far under float's resolution. */
static inline void mica_sincos(double x, double *sine, double *cosine)
{
    double n = rint(x * 0.63661977236758134308); /* 2/pi */
    double r = fma(n, -1.57079632673412561417e+00, x);
    r = fma(n, -6.07710050630396597660e-11, r);
    r = fma(n, -2.02226624879595063154e-21, r);
    /* Horner on the Taylor series: sin r = r (1 - z/6 (1 - z/20 (...))), cos r = 1 - z/2 (1 - z/12 (...)); |r| <= pi/4 */
    double z = r * r, s = 1.0, c = 1.0;
    for (int k = 18; k >= 2; k -= 2) {
        s = fma(s, -z / (double)(k * (k + 1)), 1.0);
        c = fma(c, -z / (double)(k * (k - 1)), 1.0);
    }
    s *= r;
    switch ((int64_t)n & 3) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s; break;
    }
}

#endif
