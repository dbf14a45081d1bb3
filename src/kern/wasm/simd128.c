/* simd128.c - the set of what every engine with vectors has: 128 bits, no fused multiply-add and no products of bytes. Bytes
 * are multiplied as int16; a * b + c is rounded once by way of double.
 */
#if defined(__wasm_simd128__)
#include <math.h>

#include "kern/fills.h"
#include "kern/wasm/wasm.h"

/* Rare, and so out of the way: fmaf() of four lanes. */
static __attribute__((noinline)) v128_t fma4_exactly(v128_t a, v128_t b, v128_t c)
{
    float x[4], y[4], z[4];
    wasm_v128_store(x, a);
    wasm_v128_store(y, b);
    wasm_v128_store(z, c);
    for (int i = 0; i < 4; i++)
        z[i] = fmaf(x[i], y[i], z[i]);
    return wasm_v128_load(z);
}

/* Of the two lower lanes, in double. The product is exact, the sum rounded to 53 bits. */
MICA_INLINE v128_t fma2(v128_t a, v128_t b, v128_t c)
{
    return wasm_f64x2_add(wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(a), wasm_f64x2_promote_low_f32x4(b)),
                          wasm_f64x2_promote_low_f32x4(c));
}

MICA_INLINE v128_t upper(v128_t v) { return wasm_i64x2_shuffle(v, v, 1, 1); }

/* To round a sum a second time, to 24 bits, changes it only if the first time ended halfway between two floats: the other 29
 * bits are 1000... Between floats up to 2^-126, which have fewer bits, halfway is elsewhere: there all results are made
 * anew. */
MICA_INLINE v128_t fma4(v128_t a, v128_t b, v128_t c)
{
    const v128_t rest = wasm_i64x2_const_splat(0x1FFFFFFF), half = wasm_i64x2_const_splat(0x10000000);
    v128_t low = fma2(a, b, c), high = fma2(upper(a), upper(b), upper(c));
    v128_t r = wasm_i64x2_shuffle(wasm_f32x4_demote_f64x2_zero(low), wasm_f32x4_demote_f64x2_zero(high), 0, 2);
    v128_t half_low = wasm_i64x2_eq(wasm_v128_and(low, rest), half), half_high = wasm_i64x2_eq(wasm_v128_and(high, rest), half);
    v128_t magnitude = wasm_i32x4_sub(wasm_i32x4_shl(r, 1), wasm_i32x4_const_splat(1)); /* of 0: the largest */
    v128_t tiny = wasm_u32x4_lt(magnitude, wasm_i32x4_const_splat(0x01000000));
    if (__builtin_expect(wasm_v128_any_true(wasm_v128_or(wasm_v128_or(half_low, half_high), tiny)), 0))
        return fma4_exactly(a, b, c);
    return r;
}

MICA_INLINE int vectors_of(bool wide)
{
    (void)wide;
    return 4;
}

MICA_INLINE vec32 weights32(bool wide, bytes32 w) { return wide ? signed_words(w) : unsigned_words(w); }

MICA_INLINE vec32 acts32(bool wide, const int8_t *x)
{
    (void)wide;
    return signed_words(load32(x));
}

MICA_INLINE v128_t dot16(bool wide, const vec32 *w, const vec32 *x, int h)
{
    (void)wide;
    return words_dot16(w, x, h);
}

MICA_INLINE v128_t dot32(bool wide, const vec32 *w, const vec32 *x)
{
    (void)wide;
    return wasm_i32x4_add(words_dot16(w, x, 0), words_dot16(w, x, 1));
}

#include "kern/wasm/wasm_fill.h"

void mica_kernels_fill_simd128(mica_kernels *k) { fill(k); }
#endif
