/* wasm_sum16.h - the 16 partial sums of the numerics law in four vectors, and the tree that ends them. */
#ifndef MICA_KERN_WASM_WASM_SUM16_H
#define MICA_KERN_WASM_WASM_SUM16_H
#include <math.h>

#include "kern/wasm/wasm.h"

typedef struct sum16 {
    v128_t p[4]; /* partials 4i..4i+3 */
} sum16;

MICA_INLINE sum16 sum16_zero(void)
{
    v128_t zero = wasm_f32x4_const_splat(0.0f);
    return (sum16){{zero, zero, zero, zero}};
}

MICA_INLINE sum16 sum16_add(sum16 s, const float *a, const float *b)
{
    UNROLL for (int i = 0; i < 4; i++)
        s.p[i] = fma4(wasm_v128_load(a + 4 * i), wasm_v128_load(b + 4 * i), s.p[i]);
    return s;
}

MICA_INLINE float sum16_tree(sum16 s)
{
    v128_t s4 = wasm_f32x4_add(wasm_f32x4_add(s.p[0], s.p[2]), wasm_f32x4_add(s.p[1], s.p[3]));
    v128_t s2 = wasm_f32x4_add(s4, wasm_i32x4_shuffle(s4, s4, 2, 3, 0, 1));
    return wasm_f32x4_extract_lane(s2, 0) + wasm_f32x4_extract_lane(s2, 1);
}

/* Adds the last n < 16 products, which go to partials 0, 1, ..., and ends the sum. */
MICA_INLINE float sum16_finish(sum16 s, const float *a, const float *b, int64_t n)
{
    if (n > 0) {
        float all[16];
        UNROLL for (int i = 0; i < 4; i++)
            wasm_v128_store(all + 4 * i, s.p[i]);
        for (int64_t i = 0; i < n; i++)
            all[i] = fmaf(a[i], b[i], all[i]);
        UNROLL for (int i = 0; i < 4; i++)
            s.p[i] = wasm_v128_load(all + 4 * i);
    }
    return sum16_tree(s);
}

MICA_INLINE float sum16_dot(const float *a, const float *b, int64_t n)
{
    sum16 s = sum16_zero();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        s = sum16_add(s, a + i, b + i);
    return sum16_finish(s, a + i, b + i, n - i);
}

#endif
