/* avx2_sum16.h - the 16 partial sums of the numerics law in two registers, and the tree that ends them. */
#ifndef MICA_KERN_X86_AVX2_SUM16_H
#define MICA_KERN_X86_AVX2_SUM16_H
#include <immintrin.h>
#include <math.h>

#include "kern/target.h"

MICA_TARGET_BEGIN("avx2,fma,f16c")

typedef struct sum16 {
    __m256 low, high; /* partials 0-7, 8-15 */
} sum16;

MICA_INLINE sum16 sum16_zero(void) { return (sum16){_mm256_setzero_ps(), _mm256_setzero_ps()}; }

MICA_INLINE float sum16_tree(sum16 p)
{
    __m256 s8 = _mm256_add_ps(p.low, p.high);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* Adds the last n < 16 products, which go to partials 0, 1, ..., and ends the sum. */
MICA_INLINE float sum16_finish(sum16 p, const float *a, const float *b, int64_t n)
{
    if (n > 0) {
        float all[16];
        _mm256_storeu_ps(all, p.low);
        _mm256_storeu_ps(all + 8, p.high);
        for (int64_t i = 0; i < n; i++)
            all[i] = __builtin_fmaf(a[i], b[i], all[i]);
        p.low = _mm256_loadu_ps(all);
        p.high = _mm256_loadu_ps(all + 8);
    }
    return sum16_tree(p);
}

MICA_INLINE float dot16(const float *a, const float *b, int64_t n)
{
    sum16 p = sum16_zero();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        p.low = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), p.low);
        p.high = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), p.high);
    }
    return sum16_finish(p, a + i, b + i, n - i);
}

MICA_TARGET_END
#endif
