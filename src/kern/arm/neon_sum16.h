/* neon_sum16.h - the 16 partial sums of the numerics law in four registers, and the tree that ends them. */
#ifndef MICA_KERN_ARM_NEON_SUM16_H
#define MICA_KERN_ARM_NEON_SUM16_H
#include "kern/arm/intrinsics.h"
#include "kern/target.h"

typedef struct sum16 {
    float32x4_t p[4]; /* partials 4i..4i+3 */
} sum16;

MICA_INLINE sum16 sum16_zero(void)
{
    float32x4_t zero = vdupq_n_f32(0.0f);
    return (sum16){{zero, zero, zero, zero}};
}

MICA_INLINE sum16 sum16_add(sum16 s, const float *a, const float *b)
{
    UNROLL for (int i = 0; i < 4; i++)
        s.p[i] = vfmaq_f32(s.p[i], vld1q_f32(a + 4 * i), vld1q_f32(b + 4 * i));
    return s;
}

MICA_INLINE float sum16_tree(sum16 s)
{
    float32x4_t s4 = vaddq_f32(vaddq_f32(s.p[0], s.p[2]), vaddq_f32(s.p[1], s.p[3]));
    float32x2_t s2 = vadd_f32(vget_low_f32(s4), vget_high_f32(s4));
    return vget_lane_f32(s2, 0) + vget_lane_f32(s2, 1);
}

/* Adds the last n < 16 products, which go to partials 0, 1, ..., and ends the sum. */
MICA_INLINE float sum16_finish(sum16 s, const float *a, const float *b, int64_t n)
{
    if (n > 0) {
        float all[16];
        UNROLL for (int i = 0; i < 4; i++)
            vst1q_f32(all + 4 * i, s.p[i]);
        for (int64_t i = 0; i < n; i++)
            all[i] = __builtin_fmaf(a[i], b[i], all[i]);
        UNROLL for (int i = 0; i < 4; i++)
            s.p[i] = vld1q_f32(all + 4 * i);
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
