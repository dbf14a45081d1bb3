/* neon_rows.h - eight rows at once: reading their scales, reducing their integer sums, the float chain. Included after
 * MICA_TARGET_BEGIN. */
#ifndef MICA_KERN_ARM_NEON_ROWS_H
#define MICA_KERN_ARM_NEON_ROWS_H
#include "kern/arm/neon_formats.h"

#define ROWS 8

typedef struct rows8 { /* the last row stands in for rows past the end: computed, not stored */
    const uint8_t *row[ROWS];
    int n;
} rows8;

typedef struct f32x8 { /* lane = row */
    float32x4_t low, high;
} f32x8;

typedef struct s32x8 {
    int32x4_t low, high;
} s32x8;

MICA_INLINE rows8 rows_at(const mica_matmul *m, int64_t r, int64_t r1)
{
    rows8 rows = {.n = r1 - r < ROWS ? (int)(r1 - r) : ROWS};
    for (int i = 0; i < ROWS; i++)
        rows.row[i] = m->w + (size_t)(r + (i < rows.n ? i : rows.n - 1)) * m->row_bytes;
    return rows;
}

MICA_INLINE f32x8 zero_f32x8(void) { return (f32x8){vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)}; }
MICA_INLINE s32x8 same_s32x8(int32_t v) { return (s32x8){vdupq_n_s32(v), vdupq_n_s32(v)}; }

MICA_INLINE void store_rows(float *out, f32x8 v, int n)
{
    if (n == ROWS) {
        vst1q_f32(out, v.low);
        vst1q_f32(out + 4, v.high);
    } else {
        float all[ROWS];
        vst1q_f32(all, v.low);
        vst1q_f32(all + 4, v.high);
        memcpy(out, all, (size_t)n * sizeof *out);
    }
}

MICA_INLINE f32x8 load_rows(const float *in, int n)
{
    if (n == ROWS)
        return (f32x8){vld1q_f32(in), vld1q_f32(in + 4)};
    float all[ROWS] = {0};
    memcpy(all, in, (size_t)n * sizeof *in);
    return (f32x8){vld1q_f32(all), vld1q_f32(all + 4)};
}

MICA_INLINE uint16_t load16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, 2);
    return v;
}

/* f16 number at `offset` of the rows' blocks, as floats. */
MICA_INLINE f32x8 gather_f16(const rows8 *rows, size_t offset)
{
    uint16x8_t h = vdupq_n_u16(load16(rows->row[0] + offset));
    h = vsetq_lane_u16(load16(rows->row[1] + offset), h, 1);
    h = vsetq_lane_u16(load16(rows->row[2] + offset), h, 2);
    h = vsetq_lane_u16(load16(rows->row[3] + offset), h, 3);
    h = vsetq_lane_u16(load16(rows->row[4] + offset), h, 4);
    h = vsetq_lane_u16(load16(rows->row[5] + offset), h, 5);
    h = vsetq_lane_u16(load16(rows->row[6] + offset), h, 6);
    h = vsetq_lane_u16(load16(rows->row[7] + offset), h, 7);
    float16x8_t f = vreinterpretq_f16_u16(h);
    return (f32x8){vcvt_f32_f16(vget_low_f16(f)), vcvt_high_f32_f16(f)};
}

/* m of the canonical block: Q4_1 and Q5_1 add it, the K formats subtract it. */
MICA_INLINE f32x8 gather_min(const neon_format *f, const rows8 *rows, size_t offset)
{
    f32x8 m = gather_f16(rows, offset + (size_t)f->d_offset + 2);
    return f->block == 256 ? (f32x8){vnegq_f32(m.low), vnegq_f32(m.high)} : m;
}

/* Lane r of the result: the sum of the lanes of v[r]. */
MICA_INLINE s32x8 reduce8(const int32x4_t v[ROWS])
{
    return (s32x8){vpaddq_s32(vpaddq_s32(v[0], v[1]), vpaddq_s32(v[2], v[3])),
                   vpaddq_s32(vpaddq_s32(v[4], v[5]), vpaddq_s32(v[6], v[7]))};
}

MICA_INLINE f32x8 chain8(f32x8 acc, f32x8 d, float dx, s32x8 isum)
{
    return (f32x8){vfmaq_f32(acc.low, vmulq_n_f32(d.low, dx), vcvtq_f32_s32(isum.low)),
                   vfmaq_f32(acc.high, vmulq_n_f32(d.high, dx), vcvtq_f32_s32(isum.high))};
}

MICA_INLINE int8x16x2_t load32(const int8_t *x) { return (int8x16x2_t){{vld1q_s8(x), vld1q_s8(x + 16)}}; }

/* acc + part * (number j of the sixteen in s). The lane of a multiplication is part of the instruction; with a constant j, one
 * of the four is left. */
MICA_INLINE int32x4_t mla_lane(int32x4_t acc, int32x4_t part, const int32x4_t s[4], int j)
{
    switch (j & 3) {
    case 0: return vmlaq_laneq_s32(acc, part, s[j >> 2], 0);
    case 1: return vmlaq_laneq_s32(acc, part, s[j >> 2], 1);
    case 2: return vmlaq_laneq_s32(acc, part, s[j >> 2], 2);
    default: return vmlaq_laneq_s32(acc, part, s[j >> 2], 3);
    }
}

/* The sums of a token's 256 activations that belong to the scales: 16, or 8 of 32 elements each (at most 32 * 127). */
MICA_INLINE void load_sums(const neon_format *f, const int16_t *sum, int16x8_t out[2])
{
    int16x8_t a = vld1q_s16(sum), b = vld1q_s16(sum + 8);
    out[0] = f->sub16 ? a : vpaddq_s16(a, b);
    out[1] = b;
}

/* Eight rows are eight streams, too many for a hardware prefetcher. But they lie one after another, and so do the next eight:
 * while these are computed, the next are fetched as the one stream that they are. A share for each block. */
MICA_INLINE void prefetch_next(const rows8 *rows, size_t row_bytes, size_t done, size_t bytes)
{
    const char *next = (const char *)rows->row[0] + ROWS * row_bytes + ROWS * done;
    for (size_t i = 0; i < ROWS * bytes; i += 64)
        __builtin_prefetch(next + i);
}

#endif
