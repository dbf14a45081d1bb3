/* wasm_rows.h - eight rows at once: reading their scales, reducing their integer sums, the float chain. */
#ifndef MICA_KERN_WASM_WASM_ROWS_H
#define MICA_KERN_WASM_WASM_ROWS_H
#include "kern/wasm/wasm_formats.h"

#define ROWS 8

typedef struct rows8 { /* the last row stands in for rows past the end: computed, not stored */
    const uint8_t *row[ROWS];
    int n;
} rows8;

typedef struct pair8 { /* lane = row: floats or int32 */
    v128_t low, high;
} pair8;

MICA_INLINE rows8 rows_at(const mica_matmul *m, int64_t r, int64_t r1)
{
    rows8 rows = {.n = r1 - r < ROWS ? (int)(r1 - r) : ROWS};
    for (int i = 0; i < ROWS; i++)
        rows.row[i] = m->w + (size_t)(r + (i < rows.n ? i : rows.n - 1)) * m->row_bytes;
    return rows;
}

MICA_INLINE pair8 zero8(void) { return (pair8){wasm_i32x4_const_splat(0), wasm_i32x4_const_splat(0)}; }
MICA_INLINE pair8 same8(int32_t v) { return (pair8){wasm_i32x4_splat(v), wasm_i32x4_splat(v)}; }
MICA_INLINE pair8 minus8(pair8 a, pair8 b) { return (pair8){wasm_i32x4_sub(a.low, b.low), wasm_i32x4_sub(a.high, b.high)}; }

MICA_INLINE void store_rows(float *out, pair8 v, int n)
{
    if (n == ROWS) {
        wasm_v128_store(out, v.low);
        wasm_v128_store(out + 4, v.high);
    } else {
        float all[ROWS];
        wasm_v128_store(all, v.low);
        wasm_v128_store(all + 4, v.high);
        memcpy(out, all, (size_t)n * sizeof *out);
    }
}

MICA_INLINE pair8 load_rows(const float *in, int n)
{
    if (n == ROWS)
        return (pair8){wasm_v128_load(in), wasm_v128_load(in + 4)};
    float all[ROWS] = {0};
    memcpy(all, in, (size_t)n * sizeof *in);
    return (pair8){wasm_v128_load(all), wasm_v128_load(all + 4)};
}

/* Four f16 numbers, each in the low half of an int32 lane. The bits of exponent and fraction, moved to where a float has
 * them, are a float that is 2^112 too small, denormals too; the product is exact. Infinity and NaN get the largest exponent. */
MICA_INLINE v128_t half_to_float(v128_t h)
{
    const v128_t infinity = wasm_i32x4_const_splat(0x7C00 << 13), largest = wasm_i32x4_const_splat(0x7F800000);
    v128_t bits = wasm_i32x4_shl(wasm_v128_and(h, wasm_i32x4_const_splat(0x7FFF)), 13);
    v128_t number = wasm_f32x4_mul(bits, wasm_f32x4_const_splat(0x1p112f));
    v128_t odd = wasm_v128_and(wasm_i32x4_ge(bits, infinity), largest);
    v128_t sign = wasm_i32x4_shl(wasm_v128_and(h, wasm_i32x4_const_splat(0x8000)), 16);
    return wasm_v128_or(wasm_v128_or(number, odd), sign);
}

/* f16 number at `offset` of the rows' blocks, as floats. */
MICA_INLINE pair8 gather_f16(const rows8 *rows, size_t offset)
{
    v128_t h = wasm_v128_load16_splat(rows->row[0] + offset);
    h = wasm_v128_load16_lane(rows->row[1] + offset, h, 1);
    h = wasm_v128_load16_lane(rows->row[2] + offset, h, 2);
    h = wasm_v128_load16_lane(rows->row[3] + offset, h, 3);
    h = wasm_v128_load16_lane(rows->row[4] + offset, h, 4);
    h = wasm_v128_load16_lane(rows->row[5] + offset, h, 5);
    h = wasm_v128_load16_lane(rows->row[6] + offset, h, 6);
    h = wasm_v128_load16_lane(rows->row[7] + offset, h, 7);
    return (pair8){half_to_float(wasm_u32x4_extend_low_u16x8(h)), half_to_float(wasm_u32x4_extend_high_u16x8(h))};
}

/* m of the canonical block: Q4_1 and Q5_1 add it, the K formats subtract it. */
MICA_INLINE pair8 gather_min(const wasm_format *f, const rows8 *rows, size_t offset)
{
    pair8 m = gather_f16(rows, offset + (size_t)f->d_offset + 2);
    return f->block == 256 ? (pair8){wasm_f32x4_neg(m.low), wasm_f32x4_neg(m.high)} : m;
}

/* Lane r of the result: the sum of the lanes of v[r]. */
MICA_INLINE v128_t reduce4(const v128_t v[4])
{
    v128_t ab = wasm_i32x4_add(wasm_i32x4_shuffle(v[0], v[1], 0, 4, 1, 5), wasm_i32x4_shuffle(v[0], v[1], 2, 6, 3, 7));
    v128_t cd = wasm_i32x4_add(wasm_i32x4_shuffle(v[2], v[3], 0, 4, 1, 5), wasm_i32x4_shuffle(v[2], v[3], 2, 6, 3, 7));
    return wasm_i32x4_add(wasm_i64x2_shuffle(ab, cd, 0, 2), wasm_i64x2_shuffle(ab, cd, 1, 3));
}

MICA_INLINE pair8 reduce8(const v128_t v[ROWS]) { return (pair8){reduce4(v), reduce4(v + 4)}; }

MICA_INLINE pair8 chain8(pair8 acc, pair8 d, float dx, pair8 isum)
{
    v128_t x = wasm_f32x4_splat(dx);
    return (pair8){fma4(wasm_f32x4_mul(d.low, x), wasm_f32x4_convert_i32x4(isum.low), acc.low),
                   fma4(wasm_f32x4_mul(d.high, x), wasm_f32x4_convert_i32x4(isum.high), acc.high)};
}

/* acc + part * (number j of the sixteen in s). A shuffle's lanes are part of the instruction; with a constant j, one of the
 * four is left. */
MICA_INLINE v128_t add_scaled(v128_t acc, v128_t part, const v128_t s[4], int j)
{
    v128_t v = s[j >> 2];
    switch (j & 3) {
    case 0: v = wasm_i32x4_shuffle(v, v, 0, 0, 0, 0); break;
    case 1: v = wasm_i32x4_shuffle(v, v, 1, 1, 1, 1); break;
    case 2: v = wasm_i32x4_shuffle(v, v, 2, 2, 2, 2); break;
    default: v = wasm_i32x4_shuffle(v, v, 3, 3, 3, 3); break;
    }
    return wasm_i32x4_add(acc, wasm_i32x4_mul(part, v));
}

/* The int16 sub-scales of a block as int32. */
MICA_INLINE void widen_scales(const wasm_format *f, const v128_t sc[2], v128_t out[4])
{
    out[0] = wasm_i32x4_extend_low_i16x8(sc[0]);
    out[1] = wasm_i32x4_extend_high_i16x8(sc[0]);
    if (f->sub16) {
        out[2] = wasm_i32x4_extend_low_i16x8(sc[1]);
        out[3] = wasm_i32x4_extend_high_i16x8(sc[1]);
    }
}

/* The sums of a token's 256 activations that belong to the scales: 16, or 8 of 32 elements each (at most 32 * 127). */
MICA_INLINE void load_sums(const wasm_format *f, const int16_t *sum, v128_t out[2])
{
    v128_t a = wasm_v128_load(sum), b = wasm_v128_load(sum + 8);
    out[0] = f->sub16 ? a
                      : wasm_i16x8_add(wasm_i16x8_shuffle(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
                                       wasm_i16x8_shuffle(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
    out[1] = b;
}

/* Scales or mins times the sums of the activations: the sum of the lanes. */
MICA_INLINE v128_t dot_sums(const wasm_format *f, const v128_t s[2], const v128_t sums[2])
{
    v128_t v = wasm_i32x4_dot_i16x8(s[0], sums[0]);
    return f->sub16 ? wasm_i32x4_add(v, wasm_i32x4_dot_i16x8(s[1], sums[1])) : v;
}

#endif
