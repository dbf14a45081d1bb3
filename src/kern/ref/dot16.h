/* dot16.h - the float sum of the numerics law: 16 partial sums, element i goes to partial i mod 16, then one fixed tree. Lanes of
 * any SIMD width of 4, 8 or 16 do the same additions. */
#ifndef MICA_KERN_REF_DOT16_H
#define MICA_KERN_REF_DOT16_H
#include <math.h>
#include <stdint.h>

static inline float mica_tree16(const float p[16])
{
    float s8[8], s4[4];
    for (int i = 0; i < 8; i++)
        s8[i] = p[i] + p[i + 8];
    for (int i = 0; i < 4; i++)
        s4[i] = s8[i] + s8[i + 4];
    return (s4[0] + s4[2]) + (s4[1] + s4[3]);
}

static inline float mica_dot16(const float *a, const float *b, int64_t n)
{
    float p[16] = {0};
    for (int64_t i = 0; i < n; i++)
        p[i & 15] = fmaf(a[i], b[i], p[i & 15]);
    return mica_tree16(p);
}

#endif
