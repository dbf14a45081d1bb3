/* avx2_rows.h - eight rows at once: reading their scales, reducing their integer sums, the float chain. For AVX2 and above. */
#ifndef MICA_KERN_X86_AVX2_ROWS_H
#define MICA_KERN_X86_AVX2_ROWS_H
#include "kern/x86/avx2_formats.h"

MICA_TARGET_BEGIN("avx2,fma,f16c")

#define ROWS 8

typedef struct rows8 { /* the last row stands in for rows past the end: computed, not stored */
    const uint8_t *row[ROWS];
    int n;
} rows8;

MICA_INLINE rows8 rows_at(const mica_matmul *m, int64_t r, int64_t r1)
{
    rows8 rows = {.n = r1 - r < ROWS ? (int)(r1 - r) : ROWS};
    for (int i = 0; i < ROWS; i++)
        rows.row[i] = m->w + (size_t)(r + (i < rows.n ? i : rows.n - 1)) * m->row_bytes;
    return rows;
}

MICA_INLINE void store_rows(float *out, __m256 v, int n)
{
    if (n == ROWS) {
        _mm256_storeu_ps(out, v);
    } else {
        float all[ROWS];
        _mm256_storeu_ps(all, v);
        memcpy(out, all, (size_t)n * sizeof *out);
    }
}

MICA_INLINE uint16_t load16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

MICA_INLINE int32_t load32(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* The 4 bytes at `offset` of four rows. No gather: some CPUs take hundreds of cycles for one. */
MICA_INLINE __m128i four_rows_4(const uint8_t *const *row, size_t offset)
{
    __m128i v = _mm_cvtsi32_si128(load32(row[0] + offset));
    v = _mm_insert_epi32(v, load32(row[1] + offset), 1);
    v = _mm_insert_epi32(v, load32(row[2] + offset), 2);
    return _mm_insert_epi32(v, load32(row[3] + offset), 3);
}

/* f16 number at `offset` of the rows' blocks, as floats, lane = row. */
MICA_INLINE __m256 gather_f16(const rows8 *rows, size_t offset)
{
    __m128i h = _mm_cvtsi32_si128(load16(rows->row[0] + offset));
    h = _mm_insert_epi16(h, load16(rows->row[1] + offset), 1);
    h = _mm_insert_epi16(h, load16(rows->row[2] + offset), 2);
    h = _mm_insert_epi16(h, load16(rows->row[3] + offset), 3);
    h = _mm_insert_epi16(h, load16(rows->row[4] + offset), 4);
    h = _mm_insert_epi16(h, load16(rows->row[5] + offset), 5);
    h = _mm_insert_epi16(h, load16(rows->row[6] + offset), 6);
    h = _mm_insert_epi16(h, load16(rows->row[7] + offset), 7);
    return _mm256_cvtph_ps(h);
}

/* m of the canonical block: Q4_1 and Q5_1 add it, the K formats subtract it. */
MICA_INLINE __m256 gather_min(const avx2_format *f, const rows8 *rows, size_t offset)
{
    __m256 m = gather_f16(rows, offset + (size_t)f->d_offset + 2);
    return f->block == 256 ? _mm256_xor_ps(m, _mm256_set1_ps(-0.0f)) : m;
}

/* Lane r of the result: the sum of the eight lanes of v[r]. */
MICA_INLINE __m256i reduce8(const __m256i v[ROWS])
{
    __m256i a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

MICA_INLINE __m256 chain8(__m256 acc, __m256 d, float dx, __m256i isum)
{
    return _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(dx)), _mm256_cvtepi32_ps(isum), acc);
}

/* The 16 sums of a token's block in the even-odd order of the scales. */
MICA_INLINE __m256i even_odd_sums(const int16_t *sum)
{
    const __m256i pick = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6,
                                          7, 10, 11, 14, 15);
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)sum), pick), 0xD8);
}

/* Eight rows are eight streams, too many for the hardware prefetcher. But they lie one after another, and so do the next ones: while these
 * are computed, others are fetched as the one stream that they are, a share for each block. Three groups of n rows ahead and into the L2
 * cache: with huge pages that measured up to 12 % faster than the next group into L1 (docs/performance.md). */
MICA_INLINE void prefetch_next(const uint8_t *row0, size_t n, size_t row_bytes, size_t done, size_t bytes)
{
    const char *next = (const char *)row0 + 3 * n * row_bytes + n * done;
    for (size_t i = 0; i < n * bytes; i += 64)
        _mm_prefetch(next + i, _MM_HINT_T1);
}

MICA_TARGET_END
#endif
