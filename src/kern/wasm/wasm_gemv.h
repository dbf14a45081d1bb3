/* wasm_gemv.h - quantised products for one or two tokens: eight rows are read in place, their integer products reduced by a
 * tree. */
#ifndef MICA_KERN_WASM_WASM_GEMV_H
#define MICA_KERN_WASM_WASM_GEMV_H
#include "kern/wasm/wasm_rows.h"

MICA_INLINE pair8 gemv_rows_32(const wasm_format *f, const rows8 *rows, int64_t n_blocks, const int8_t *x, const float *d,
                               const int16_t *sum)
{
    pair8 acc = zero8();
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        vec32 xb = acts32(f->wide, x + 32 * b);
        v128_t v[ROWS];
        UNROLL for (int i = 0; i < ROWS; i++) {
            vec32 w = weights32(f->wide, f->unpack(rows->row[i] + offset, 0));
            v[i] = dot32(f->wide, &w, &xb);
        }
        pair8 isum = reduce8(v);
        int32_t xsum = sum[2 * b] + sum[2 * b + 1];
        if (f->bias)
            isum = minus8(isum, same8(f->bias * xsum));
        acc = chain8(acc, gather_f16(rows, offset), d[b], isum);
        if (f->has_min)
            acc = chain8(acc, gather_min(f, rows, offset), d[b], same8(xsum));
    }
    return acc;
}

/* isum of one block of 256 weights, spread over four lanes, and msum. */
MICA_INLINE v128_t row_256(const wasm_format *f, const uint8_t *block, const int8_t *x, const v128_t sums[2], v128_t *mins)
{
    v128_t sc[2], mn[2], s[4], total = wasm_i32x4_const_splat(0);
    f->scales(block, sc, mn);
    widen_scales(f, sc, s);
    UNROLL for (int j = 0; j < 8; j++) {
        vec32 w = weights32(f->wide, f->unpack(block, j)), xj = acts32(f->wide, x + 32 * j);
        if (f->sub16) {
            total = add_scaled(total, dot16(f->wide, &w, &xj, 0), s, 2 * j);
            total = add_scaled(total, dot16(f->wide, &w, &xj, 1), s, 2 * j + 1);
        } else {
            total = add_scaled(total, dot32(f->wide, &w, &xj), s, j);
        }
    }
    if (f->bias)
        total = wasm_i32x4_sub(total, wasm_i32x4_mul(dot_sums(f, sc, sums), wasm_i32x4_splat(f->bias)));
    if (f->has_min)
        *mins = dot_sums(f, mn, sums);
    return total;
}

MICA_INLINE pair8 gemv_rows_256(const wasm_format *f, const rows8 *rows, int64_t n_blocks, const int8_t *x, const float *d,
                                const int16_t *sum)
{
    pair8 acc = zero8();
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        v128_t sums[2], v[ROWS], mins[ROWS];
        load_sums(f, sum + 16 * b, sums);
        for (int i = 0; i < ROWS; i++) /* not unrolled: the code of one row is long */
            v[i] = row_256(f, rows->row[i] + offset, x + 256 * b, sums, &mins[i]);
        acc = chain8(acc, gather_f16(rows, offset + (size_t)f->d_offset), d[b], reduce8(v));
        if (f->has_min)
            acc = chain8(acc, gather_min(f, rows, offset), d[b], reduce8(mins));
    }
    return acc;
}

MICA_INLINE void gemv(const wasm_format *f, const mica_matmul *m, int64_t r0, int64_t r1)
{
    const mica_act *x = m->x;
    int64_t n_blocks = x->k / f->block;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int32_t t = 0; t < x->n; t++) {
            const int8_t *q = x->q + t * x->k;
            const float *d = x->d + t * n_blocks;
            const int16_t *sum = x->sum + t * x->k / 16;
            pair8 acc = f->block == 32 ? gemv_rows_32(f, &rows, n_blocks, q, d, sum)
                                       : gemv_rows_256(f, &rows, n_blocks, q, d, sum);
            store_rows(m->out + t * m->out_stride + r, acc, rows.n);
        }
    }
}

#endif
