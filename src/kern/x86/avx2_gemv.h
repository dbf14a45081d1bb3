/* avx2_gemv.h - quantised products for one or two tokens with 256-bit registers: eight rows are read in place, their integer
 * products reduced by a tree. Included after MICA_TARGET_BEGIN by each set, which defines how it multiplies bytes. */
#ifndef MICA_KERN_X86_AVX2_GEMV_H
#define MICA_KERN_X86_AVX2_GEMV_H
#include "kern/x86/avx2_rows.h"

/* What dot32() leaves in every weight. */
MICA_INLINE int bias_of(const avx2_format *f);
/* The products of 32 weights, as unpack() gives them, with activations, summed to eight lanes in any way. */
MICA_INLINE __m256i dot32(const avx2_format *f, __m256i w, __m256i x);

/* Eight rows with one token, of `n_blocks` blocks: gemv_rows_32(), or what the set has for 256-weight formats. */
typedef __m256 gemv_rows(const avx2_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                         const float *d, const int16_t *sum);

MICA_INLINE __m256 gemv_rows_32(const avx2_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                                const float *d, const int16_t *sum)
{
    __m256 acc = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        __m256i xb = _mm256_loadu_si256((const __m256i *)(x + 32 * b)), v[ROWS];
        prefetch_next(rows->row[0], ROWS, row_bytes, offset, (size_t)f->bytes);
        UNROLL for (int i = 0; i < ROWS; i++)
            v[i] = dot32(f, f->unpack(rows->row[i] + offset, 0), xb);
        __m256i isum = reduce8(v);
        int32_t xsum = sum[2 * b] + sum[2 * b + 1];
        if (bias_of(f))
            isum = _mm256_sub_epi32(isum, _mm256_set1_epi32(bias_of(f) * xsum));
        acc = chain8(acc, gather_f16(rows, offset), d[b], isum);
        if (f->has_min)
            acc = chain8(acc, gather_min(f, rows, offset), d[b], _mm256_set1_epi32(xsum));
    }
    return acc;
}

MICA_INLINE void gemv(const avx2_format *f, gemv_rows *rows_of_format, const mica_matmul *m, int64_t r0, int64_t r1)
{
    const mica_act *x = m->x;
    int64_t n_blocks = x->k / f->block;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int32_t t = 0; t < x->n; t++) {
            const int8_t *q = x->q + t * x->k;
            const float *d = x->d + t * n_blocks;
            const int16_t *sum = x->sum + t * x->k / 16;
            __m256 acc = rows_of_format(f, &rows, n_blocks, m->row_bytes, q, d, sum);
            store_rows(m->out + t * m->out_stride + r, acc, rows.n);
        }
    }
}

#endif
