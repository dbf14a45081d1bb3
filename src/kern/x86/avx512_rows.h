/* avx512_rows.h - sixteen weight rows as 512-bit vectors, lane = row, for the AVX-512 and AMX sets; with what fill.h asks for.
 *
 * Included after MICA_TARGET_BEGIN with at least AVX-512 F, BW, VL, DQ.
 */
#ifndef MICA_KERN_X86_AVX512_ROWS_H
#define MICA_KERN_X86_AVX512_ROWS_H
#include "kern/x86/avx2_rows.h"

#define TILE_ROWS 16

typedef struct tile_rows { /* the last row stands in for rows past the end: computed, not stored */
    const uint8_t *row[TILE_ROWS];
    int n;
} tile_rows;

MICA_INLINE tile_rows tile_rows_at(const mica_matmul *m, int64_t r, int64_t r1)
{
    tile_rows rows = {.n = r1 - r < TILE_ROWS ? (int)(r1 - r) : TILE_ROWS};
    for (int i = 0; i < TILE_ROWS; i++)
        rows.row[i] = m->w + (size_t)(r + (i < rows.n ? i : rows.n - 1)) * m->row_bytes;
    return rows;
}

typedef uint32_t planes __attribute__((vector_size(64), may_alias));

MICA_INLINE planes row_bytes_4(const tile_rows *rows, size_t offset)
{
    __m256i low = _mm256_set_m128i(four_rows_4(rows->row + 4, offset), four_rows_4(rows->row, offset));
    __m256i high = _mm256_set_m128i(four_rows_4(rows->row + 12, offset), four_rows_4(rows->row + 8, offset));
    return (planes)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

MICA_INLINE void row_bytes_16(const tile_rows *rows, size_t offset, planes out[4])
{
    __m512i v[4];
    UNROLL for (int i = 0; i < 4; i++) { /* 128-bit lane l: row 4l + i */
        __m512i a = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(rows->row[i] + offset)));
        a = _mm512_mask_broadcast_i32x4(a, 0x00F0, _mm_loadu_si128((const __m128i *)(rows->row[4 + i] + offset)));
        a = _mm512_mask_broadcast_i32x4(a, 0x0F00, _mm_loadu_si128((const __m128i *)(rows->row[8 + i] + offset)));
        v[i] = _mm512_mask_broadcast_i32x4(a, 0xF000, _mm_loadu_si128((const __m128i *)(rows->row[12 + i] + offset)));
    }
    __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]);
    __m512i c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    out[0] = (planes)_mm512_unpacklo_epi64(a, c);
    out[1] = (planes)_mm512_unpackhi_epi64(a, c);
    out[2] = (planes)_mm512_unpacklo_epi64(b, d);
    out[3] = (planes)_mm512_unpackhi_epi64(b, d);
}

MICA_INLINE planes look_up_bytes(const void *table, planes index)
{
    return (planes)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table)), (__m512i)index);
}

#include "kern/x86/fill.h"

/* The f16 numbers in the low or the high halves of the lanes. */
MICA_INLINE __m512 halves(planes v, bool high)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)(high ? (planes)(v >> 16) : v)));
}

MICA_INLINE __mmask16 row_mask(int n) { return (__mmask16)((1u << n) - 1); }

MICA_INLINE __m512i broadcast4(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

MICA_INLINE __m512 chain16(__m512 acc, __m512 d, float dx, __m512i isum)
{
    return _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(dx)), _mm512_cvtepi32_ps(isum), acc);
}

#endif
