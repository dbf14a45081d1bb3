/* neon_gemv.h - quantised products for one or two tokens: eight rows are read in place, their integer products reduced by a
 * tree. Included after MICA_TARGET_BEGIN by each set, which defines how it multiplies bytes. */
#ifndef MICA_KERN_ARM_NEON_GEMV_H
#define MICA_KERN_ARM_NEON_GEMV_H
#include "kern/arm/neon_rows.h"

/* The products of 16 and of 32 weights with activations, summed to four lanes in any way. */
MICA_INLINE int32x4_t dot16(int8x16_t w, int8x16_t x);
MICA_INLINE int32x4_t dot32(bool wide, int8x16x2_t w, int8x16x2_t x);

MICA_INLINE f32x8 gemv_rows_32(const neon_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                               const float *d, const int16_t *sum)
{
    f32x8 acc = zero_f32x8();
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        int8x16x2_t xb = load32(x + 32 * b);
        int32x4_t v[ROWS];
        prefetch_next(rows, row_bytes, offset, (size_t)f->bytes);
        UNROLL for (int i = 0; i < ROWS; i++)
            v[i] = dot32(f->wide, f->unpack(rows->row[i] + offset, 0), xb);
        s32x8 isum = reduce8(v);
        int32_t xsum = sum[2 * b] + sum[2 * b + 1];
        if (f->bias) {
            int32x4_t off = vdupq_n_s32(f->bias * xsum);
            isum = (s32x8){vsubq_s32(isum.low, off), vsubq_s32(isum.high, off)};
        }
        acc = chain8(acc, gather_f16(rows, offset), d[b], isum);
        if (f->has_min)
            acc = chain8(acc, gather_min(f, rows, offset), d[b], same_s32x8(xsum));
    }
    return acc;
}

/* Scales or mins times the sums of the activations: the sum of the lanes. */
MICA_INLINE int32x4_t dot_sums(const neon_format *f, const int16x8_t s[2], const int16x8_t sums[2])
{
    int32x4_t v = vmlal_high_s16(vmull_s16(vget_low_s16(s[0]), vget_low_s16(sums[0])), s[0], sums[0]);
    if (f->sub16)
        v = vmlal_high_s16(vmlal_s16(v, vget_low_s16(s[1]), vget_low_s16(sums[1])), s[1], sums[1]);
    return v;
}

/* isum of one block of 256 weights, spread over four lanes, and msum. */
MICA_INLINE int32x4_t row_256(const neon_format *f, const uint8_t *block, const int8_t *x, const int16x8_t sums[2],
                              int32x4_t *mins)
{
    int16x8_t sc[2], mn[2];
    int32x4_t s[4] = {vdupq_n_s32(0)}, total = vdupq_n_s32(0);
    int halves = f->sub16 ? 2 : 1;
    f->scales(block, sc, mn);
    UNROLL for (int i = 0; i < halves; i++) {
        s[2 * i] = vmovl_s16(vget_low_s16(sc[i]));
        s[2 * i + 1] = vmovl_high_s16(sc[i]);
    }
    UNROLL for (int j = 0; j < 8; j++) {
        int8x16x2_t w = f->unpack(block, j), xj = load32(x + 32 * j);
        if (f->sub16) {
            total = mla_lane(total, dot16(w.val[0], xj.val[0]), s, 2 * j);
            total = mla_lane(total, dot16(w.val[1], xj.val[1]), s, 2 * j + 1);
        } else {
            total = mla_lane(total, dot32(f->wide, w, xj), s, j);
        }
    }
    if (f->bias)
        total = vmlsq_n_s32(total, dot_sums(f, sc, sums), f->bias);
    if (f->has_min)
        *mins = dot_sums(f, mn, sums);
    return total;
}

MICA_INLINE f32x8 gemv_rows_256(const neon_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                                const float *d, const int16_t *sum)
{
    f32x8 acc = zero_f32x8();
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        int16x8_t sums[2];
        int32x4_t v[ROWS], mins[ROWS];
        prefetch_next(rows, row_bytes, offset, (size_t)f->bytes);
        load_sums(f, sum + 16 * b, sums);
        for (int i = 0; i < ROWS; i++) /* not unrolled: the code of one row is long */
            v[i] = row_256(f, rows->row[i] + offset, x + 256 * b, sums, &mins[i]);
        acc = chain8(acc, gather_f16(rows, offset + (size_t)f->d_offset), d[b], reduce8(v));
        if (f->has_min)
            acc = chain8(acc, gather_min(f, rows, offset), d[b], reduce8(mins));
    }
    return acc;
}

MICA_INLINE void gemv(const neon_format *f, const mica_matmul *m, int64_t r0, int64_t r1)
{
    const mica_act *x = m->x;
    int64_t n_blocks = x->k / f->block;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int32_t t = 0; t < x->n; t++) {
            const int8_t *q = x->q + t * x->k;
            const float *d = x->d + t * n_blocks;
            const int16_t *sum = x->sum + t * x->k / 16;
            f32x8 acc = f->block == 32 ? gemv_rows_32(f, &rows, n_blocks, m->row_bytes, q, d, sum)
                                       : gemv_rows_256(f, &rows, n_blocks, m->row_bytes, q, d, sum);
            store_rows(m->out + t * m->out_stride + r, acc, rows.n);
        }
    }
}

#endif
