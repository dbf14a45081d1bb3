/* avx2_float.c - matrix products with F32, F16 and BF16 weights: the 16 partial sums are two registers, four tokens at a time. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kern/target.h"
#include "kern/x86/avx2.h"
#include "kern/x86/avx2_sum16.h"

MICA_TARGET_BEGIN("avx2,fma,f16c")

#define PIECE 2048 /* weights decoded at a time: 8 KiB */

static void widen_f16(const uint8_t *w, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(w + 2 * i))));
}

static void widen_bf16(const uint8_t *w, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8) {
        __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(w + 2 * i)));
        _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
    }
}

/* Continues the partial sums of T tokens over n weights; n is a multiple of 16. */
MICA_INLINE void accumulate(const float *w, const float *x, int64_t stride, int64_t n, int T, sum16 p[])
{
    for (int64_t i = 0; i < n; i += 16) {
        __m256 a = _mm256_loadu_ps(w + i), b = _mm256_loadu_ps(w + i + 8);
        UNROLL for (int t = 0; t < T; t++) {
            p[t].low = _mm256_fmadd_ps(a, _mm256_loadu_ps(x + t * stride + i), p[t].low);
            p[t].high = _mm256_fmadd_ps(b, _mm256_loadu_ps(x + t * stride + i + 8), p[t].high);
        }
    }
}

MICA_INLINE void row_tokens(const mica_matmul *m, int64_t r, int32_t t0, int T, float *scratch)
{
    const mica_act *x = m->x;
    const uint8_t *w = m->w + (size_t)r * m->row_bytes;
    int bytes = m->quant->block_bytes;
    sum16 p[4];
    UNROLL for (int t = 0; t < T; t++)
        p[t] = sum16_zero();
    int64_t whole = x->k & ~(int64_t)15;
    for (int64_t i = 0; i < whole; i += PIECE) {
        int64_t n = whole - i < PIECE ? whole - i : PIECE;
        const float *piece = scratch;
        if (m->quant->type == MICA_TYPE_F16)
            widen_f16(w + bytes * i, scratch, n);
        else if (m->quant->type == MICA_TYPE_BF16)
            widen_bf16(w + bytes * i, scratch, n);
        else
            piece = (const float *)(const void *)(w + bytes * i);
        accumulate(piece, x->f + t0 * x->k + i, x->k, n, T, p);
    }
    if (whole < x->k)
        m->quant->decode(m->quant, w + bytes * whole, scratch, (size_t)(x->k - whole));
    UNROLL for (int t = 0; t < T; t++) {
        const float *rest = x->f + (t0 + t) * x->k + whole;
        m->out[(t0 + t) * m->out_stride + r] = sum16_finish(p[t], scratch, rest, x->k - whole);
    }
}

static void matmul_float(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch)
{
    for (int64_t r = r0; r < r1; r++) {
        int32_t t = 0;
        for (; t + 4 <= m->x->n; t += 4)
            row_tokens(m, r, t, 4, scratch);
        for (; t < m->x->n; t++)
            row_tokens(m, r, t, 1, scratch);
    }
}

MICA_TARGET_END

void mica_avx2_fill_float(mica_kernels *k)
{
    k->gemv[MICA_TYPE_F32] = k->gemm[MICA_TYPE_F32] = matmul_float;
    k->gemv[MICA_TYPE_F16] = k->gemm[MICA_TYPE_F16] = matmul_float;
    k->gemv[MICA_TYPE_BF16] = k->gemm[MICA_TYPE_BF16] = matmul_float;
}
#endif
