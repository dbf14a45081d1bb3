/* wasm_vector.h - quantisation, norms, activations, RoPE and attention. Each function does, lane by lane, the steps of its
 * portable twin in ref/vector.c; tails of fewer than four elements go through that twin.
 */
#ifndef MICA_KERN_WASM_WASM_VECTOR_H
#define MICA_KERN_WASM_WASM_VECTOR_H
#include <math.h>
#include <string.h>

#include "kern/fmath.h"
#include "kern/ref/scalar.h"
#include "kern/wasm/wasm_float.h"

/* ---- quantisation ---- */

MICA_INLINE uint32_t max_abs_bits(const float *x, int64_t n)
{
    const v128_t mask = wasm_i32x4_const_splat(0x7FFFFFFF);
    v128_t max = wasm_i32x4_const_splat(0);
    for (int64_t i = 0; i < n; i += 4)
        max = wasm_i32x4_max(max, wasm_v128_and(mask, wasm_v128_load(x + i)));
    max = wasm_i32x4_max(max, wasm_i32x4_shuffle(max, max, 2, 3, 0, 1));
    max = wasm_i32x4_max(max, wasm_i32x4_shuffle(max, max, 1, 0, 3, 2));
    return (uint32_t)wasm_i32x4_extract_lane(max, 0);
}

/* Four floats to int32, rounded to the nearest even integer. */
MICA_INLINE v128_t round4(const float *x, v128_t inverse)
{
    return wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(wasm_f32x4_mul(wasm_v128_load(x), inverse)));
}

MICA_INLINE void quantize_block(const float *x, int64_t block, int8_t *q, float *d, int16_t *sum)
{
    uint32_t max = max_abs_bits(x, block);
    if (mica_quantize_odd_block(max, block, q, d, sum))
        return;
    float amax = mica_bits_f32(max);
    v128_t inverse = wasm_f32x4_splat(127.0f / amax);
    *d = amax / 127.0f;
    for (int64_t i = 0; i < block; i += 16) {
        v128_t a = round4(x + i, inverse), b = round4(x + i + 4, inverse);
        v128_t c = round4(x + i + 8, inverse), e = round4(x + i + 12, inverse);
        wasm_v128_store(q + i, wasm_i8x16_narrow_i16x8(wasm_i16x8_narrow_i32x4(a, b), wasm_i16x8_narrow_i32x4(c, e)));
        v128_t s = wasm_i32x4_add(wasm_i32x4_add(a, b), wasm_i32x4_add(c, e));
        s = wasm_i32x4_add(s, wasm_i32x4_shuffle(s, s, 2, 3, 0, 1));
        sum[i / 16] = (int16_t)(wasm_i32x4_extract_lane(s, 0) + wasm_i32x4_extract_lane(s, 1)); /* at most 16 * 127 */
    }
}

#include "kern/quantize_blocks.h"

static void widen_f16(const void *in, float *out, int64_t n)
{
    const uint16_t *h = in;
    int64_t whole = n & ~(int64_t)3;
    widen_halves(in, out, whole);
    for (int64_t i = whole; i < n; i++)
        out[i] = mica_f16_to_f32(h[i]);
}

/* ---- element-wise ---- */

static void rmsnorm(const float *x, const float *w, float eps, float *out, int64_t n)
{
    float s = 1.0f / sqrtf(sum16_dot(x, x, n) / (float)n + eps);
    v128_t factor = wasm_f32x4_splat(s);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(out + i, wasm_f32x4_mul(wasm_f32x4_mul(wasm_v128_load(x + i), factor), wasm_v128_load(w + i)));
    for (; i < n; i++)
        out[i] = (x[i] * s) * w[i];
}

static void add(float *x, const float *y, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(x + i, wasm_f32x4_add(wasm_v128_load(x + i), wasm_v128_load(y + i)));
    for (; i < n; i++)
        x[i] = x[i] + y[i];
}

static void scale(float *x, float a, int64_t n)
{
    v128_t factor = wasm_f32x4_splat(a);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(x + i, wasm_f32x4_mul(wasm_v128_load(x + i), factor));
    for (; i < n; i++)
        x[i] = x[i] * a;
}

/* mica_expf() for four lanes. */
MICA_INLINE v128_t exp4(v128_t x)
{
    v128_t below = wasm_f32x4_lt(x, wasm_f32x4_const_splat(MICA_EXP_MIN)), most = wasm_f32x4_const_splat(MICA_EXP_MAX);
    v128_t c = wasm_v128_bitselect(most, x, wasm_f32x4_gt(x, most)); /* NaN stays NaN */
    v128_t n = wasm_f32x4_nearest(wasm_f32x4_mul(c, wasm_f32x4_const_splat(1.44269504f)));
    v128_t r = fma4(n, wasm_f32x4_const_splat(-0.693359375f), c);
    r = fma4(n, wasm_f32x4_const_splat(2.12194440e-4f), r);
    v128_t p = wasm_f32x4_const_splat(1.98756912e-4f);
    p = fma4(p, r, wasm_f32x4_const_splat(1.39819994e-3f));
    p = fma4(p, r, wasm_f32x4_const_splat(8.33345205e-3f));
    p = fma4(p, r, wasm_f32x4_const_splat(4.16657962e-2f));
    p = fma4(p, r, wasm_f32x4_const_splat(1.66666657e-1f));
    p = fma4(p, r, wasm_f32x4_const_splat(5.00000000e-1f));
    p = fma4(p, wasm_f32x4_mul(r, r), r);
    p = wasm_f32x4_add(p, wasm_f32x4_const_splat(1.0f));
    /* the conversion makes 0 of NaN; lanes below the minimum may be anything, they become 0 */
    v128_t e = wasm_i32x4_shl(wasm_i32x4_add(wasm_i32x4_trunc_sat_f32x4(n), wasm_i32x4_const_splat(127)), 23);
    return wasm_v128_andnot(wasm_f32x4_mul(p, e), below);
}

MICA_INLINE v128_t tanh4(v128_t x)
{
    const v128_t one = wasm_f32x4_const_splat(1.0f);
    return wasm_f32x4_sub(one, wasm_f32x4_div(wasm_f32x4_const_splat(2.0f), wasm_f32x4_add(exp4(wasm_f32x4_add(x, x)), one)));
}

static void silu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    const v128_t one = wasm_f32x4_const_splat(1.0f);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        v128_t g = wasm_v128_load(gate + i), s = wasm_f32x4_div(g, wasm_f32x4_add(one, exp4(wasm_f32x4_neg(g))));
        wasm_v128_store(out + i, wasm_f32x4_mul(s, wasm_v128_load(up + i)));
    }
    for (; i < n; i++)
        out[i] = mica_silu_mul_element(gate[i], up[i]);
}

static void gelu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    const v128_t one = wasm_f32x4_const_splat(1.0f);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        v128_t x = wasm_v128_load(gate + i);
        v128_t cubic = fma4(wasm_f32x4_mul(x, wasm_f32x4_const_splat(0.044715f)), x, one);
        v128_t inner = wasm_f32x4_mul(wasm_f32x4_mul(x, cubic), wasm_f32x4_const_splat(0.797884561f));
        v128_t half = wasm_f32x4_mul(wasm_f32x4_mul(x, wasm_f32x4_const_splat(0.5f)), wasm_f32x4_add(one, tanh4(inner)));
        wasm_v128_store(out + i, wasm_f32x4_mul(half, wasm_v128_load(up + i)));
    }
    for (; i < n; i++)
        out[i] = mica_gelu_mul_element(gate[i], up[i]);
}

/* One side of four rotated pairs: u * c - v * s, or u * s + v * c. */
MICA_INLINE v128_t rotated_u(v128_t u, v128_t v, v128_t c, v128_t s)
{
    return fma4(u, c, wasm_f32x4_neg(wasm_f32x4_mul(v, s)));
}

MICA_INLINE v128_t rotated_v(v128_t u, v128_t v, v128_t c, v128_t s) { return fma4(u, s, wasm_f32x4_mul(v, c)); }

static void rope(float *x, const float *cs, int64_t n, bool neox)
{
    int64_t half = n / 2, i = 0;
    for (; i + 4 <= half; i += 4) {
        v128_t c = wasm_v128_load(cs + i), s = wasm_v128_load(cs + half + i);
        if (neox) {
            v128_t u = wasm_v128_load(x + i), v = wasm_v128_load(x + half + i);
            wasm_v128_store(x + i, rotated_u(u, v, c, s));
            wasm_v128_store(x + half + i, rotated_v(u, v, c, s));
        } else {
            v128_t a = wasm_v128_load(x + 2 * i), b = wasm_v128_load(x + 2 * i + 4);
            v128_t u = wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), v = wasm_i32x4_shuffle(a, b, 1, 3, 5, 7);
            v128_t ru = rotated_u(u, v, c, s), rv = rotated_v(u, v, c, s);
            wasm_v128_store(x + 2 * i, wasm_i32x4_shuffle(ru, rv, 0, 4, 1, 5));
            wasm_v128_store(x + 2 * i + 4, wasm_i32x4_shuffle(ru, rv, 2, 6, 3, 7));
        }
    }
    for (; i < half; i++)
        mica_rope_pair(x, cs, i, half, neox);
}

/* ---- attention ---- */

static void qk_one(const float *q, const float *k, int64_t n_t, int64_t dim, float factor, float *s)
{
    int64_t t = 0;
    if (dim % 16 == 0) {
        for (; t + 2 <= n_t; t += 2) { /* two positions: their chains are half of 16 registers */
            sum16 p[2] = {sum16_zero(), sum16_zero()};
            for (int64_t i = 0; i < dim; i += 16)
                UNROLL for (int j = 0; j < 2; j++)
                    p[j] = sum16_add(p[j], q + i, k + (t + j) * dim + i);
            UNROLL for (int j = 0; j < 2; j++)
                s[t + j] = sum16_tree(p[j]) * factor;
        }
    }
    for (; t < n_t; t++)
        s[t] = sum16_dot(q, k + t * dim, dim) * factor;
}

static void softcap(float *s, float cap, int64_t n)
{
    v128_t c = wasm_f32x4_splat(cap);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        wasm_v128_store(s + i, wasm_f32x4_mul(c, tanh4(wasm_f32x4_div(wasm_v128_load(s + i), c))));
    for (; i < n; i++)
        s[i] = mica_softcap_element(s[i], cap);
}

static float exp_sum(float *s, float max, int64_t n)
{
    v128_t m = wasm_f32x4_splat(max);
    sum16 sum = sum16_zero();
    float rest[16], one[16];
    int64_t i = 0, tail = 0;
    for (; i + 16 <= n; i += 16) {
        UNROLL for (int j = 0; j < 4; j++) {
            v128_t e = exp4(wasm_f32x4_sub(wasm_v128_load(s + i + 4 * j), m));
            wasm_v128_store(s + i + 4 * j, e);
            sum.p[j] = wasm_f32x4_add(sum.p[j], e);
        }
    }
    for (; i < n; i++, tail++) {
        s[i] = mica_expf(s[i] - max);
        rest[tail] = s[i];
        one[tail] = 1.0f; /* fma(x, 1, p) is x + p */
    }
    return sum16_finish(sum, rest, one, tail);
}

/* `count` vectors of the output through all positions. */
MICA_INLINE void pv_columns(float *o, float alpha, const float *p, const float *v, int64_t n_t, int64_t dim, int count)
{
    v128_t acc[8], a = wasm_f32x4_splat(alpha);
    UNROLL for (int j = 0; j < count; j++)
        acc[j] = wasm_f32x4_mul(wasm_v128_load(o + 4 * j), a);
    for (int64_t t = 0; t < n_t; t++) {
        v128_t pt = wasm_f32x4_splat(p[t]);
        UNROLL for (int j = 0; j < count; j++)
            acc[j] = fma4(pt, wasm_v128_load(v + t * dim + 4 * j), acc[j]);
    }
    UNROLL for (int j = 0; j < count; j++)
        wasm_v128_store(o + 4 * j, acc[j]);
}

static void pv_one(float *o, float alpha, const float *p, const float *v, int64_t n_t, int64_t dim)
{
    int64_t i = 0;
    for (; i + 32 <= dim; i += 32)
        pv_columns(o + i, alpha, p, v + i, n_t, dim, 8);
    for (; i + 4 <= dim; i += 4)
        pv_columns(o + i, alpha, p, v + i, n_t, dim, 1);
    for (; i < dim; i++) {
        float acc = o[i] * alpha;
        for (int64_t t = 0; t < n_t; t++)
            acc = fmaf(p[t], v[t * dim + i], acc);
        o[i] = acc;
    }
}

#include "kern/each_query.h"

static float max(const float *x, int64_t n)
{
    float all[4], result = -INFINITY;
    bool number = false;
    v128_t best = wasm_f32x4_const_splat(-INFINITY);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) /* a comparison with NaN is false: NaNs are passed over */
        best = wasm_f32x4_pmax(best, wasm_v128_load(x + i));
    wasm_v128_store(all, best);
    for (int j = 0; j < 4; j++)
        result = all[j] > result ? all[j] : result;
    for (; i < n; i++)
        result = x[i] > result ? x[i] : result;
    for (i = 0; i < n && result == -INFINITY && !number; i++)
        number = x[i] == x[i];
    return result > -INFINITY || number ? result : NAN;
}

#endif
