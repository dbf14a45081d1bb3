/* neon_gemm.h - quantised products for many tokens: eight rows are expanded once into tiles of bytes that all tokens use.
 * Included after MICA_TARGET_BEGIN by each set, which defines before:
 *
 *     struct tile    256 weights of eight rows (eight blocks of a 32-weight format, or one of 256), with at least
 *                    f32x8 d[8], m[8];        of the blocks
 *                    int16x8_t mn[16];        mins, lane = row; 8 where one serves 32 weights
 *     TOKENS, TAIL   tokens computed together, and of those that remain. With TAIL > 1 the last token may be computed twice
 *
 * and after, the functions declared below. The weights in a tile are signed, their bias taken off.
 */
#ifndef MICA_KERN_ARM_NEON_GEMM_H
#define MICA_KERN_ARM_NEON_GEMM_H
#include "kern/arm/neon_rows.h"

#define TILES 2 /* a panel of the rows: 512 weights; with the tokens' bytes it stays in an L1 cache of 32 KiB */
_Static_assert(TILES * sizeof(struct tile) <= MICA_MATMUL_SCRATCH, "the panel is in the caller's scratch memory");

typedef struct tokens { /* the activations computed together */
    const int8_t *q[TOKENS];
    const float *d[TOKENS];
    const int16_t *sum[TOKENS];
} tokens;

/* Weights 32j..32j+31 of eight rows, and the 16 (or 8) sub-scales of each row, into the tile. */
MICA_INLINE void place_weights(struct tile *t, int j, const int8x16x2_t w[ROWS]);
MICA_INLINE void place_scales(struct tile *t, const int16_t sc[ROWS][16]);
/* Continues the chains of T tokens: `parts` blocks of 32 weights, or one of 256. */
MICA_INLINE void tile_32(const neon_format *f, const struct tile *t, int parts, const tokens *x, int64_t k, int T, f32x8 acc[]);
MICA_INLINE void tile_256(const neon_format *f, const struct tile *t, const tokens *x, int64_t k, int T, f32x8 acc[]);

MICA_INLINE void fill_scales(const neon_format *f, struct tile *t, const rows8 *rows, size_t offset)
{
    int16_t sc[ROWS][16] = {{0}}, mn[ROWS][16] = {{0}};
    int halves = f->sub16 ? 2 : 1;
    for (int i = 0; i < ROWS; i++) {
        int16x8_t s[2], n[2];
        f->scales(rows->row[i] + offset, s, n);
        UNROLL for (int h = 0; h < halves; h++) {
            vst1q_s16(sc[i] + 8 * h, s[h]);
            if (f->has_min)
                vst1q_s16(mn[i] + 8 * h, n[h]);
        }
    }
    place_scales(t, (const int16_t(*)[16])sc);
    for (int j = 0; j < 8 * halves && f->has_min; j++) {
        int16_t lanes[ROWS];
        for (int i = 0; i < ROWS; i++)
            lanes[i] = mn[i][j];
        t->mn[j] = vld1q_s16(lanes);
    }
}

/* Expands `parts` * 32 weights from weight `k` on. */
MICA_INLINE void fill_tile(const neon_format *f, struct tile *t, const rows8 *rows, size_t row_bytes, int64_t k, int parts)
{
    const int8x16_t bias = vdupq_n_s8((int8_t)f->bias);
    for (int j = 0; j < parts; j++) {
        size_t offset = (size_t)((k + 32 * j) / f->block) * (size_t)f->bytes;
        int8x16x2_t w[ROWS];
        if (f->block == 32 || j == 0)
            prefetch_next(rows, row_bytes, offset, (size_t)f->bytes);
        UNROLL for (int i = 0; i < ROWS; i++) {
            w[i] = f->unpack(rows->row[i] + offset, f->block == 32 ? 0 : j);
            if (f->bias)
                w[i] = (int8x16x2_t){{vsubq_s8(w[i].val[0], bias), vsubq_s8(w[i].val[1], bias)}};
        }
        place_weights(t, j, w);
        if (f->block == 32 || j == 0) {
            t->d[j] = gather_f16(rows, offset + (size_t)f->d_offset);
            if (f->has_min)
                t->m[j] = gather_min(f, rows, offset);
            if (f->block == 256)
                fill_scales(f, t, rows, offset);
        }
    }
}

/* Block j of token i of a 32-weight format joins the chain. */
MICA_INLINE f32x8 join_32(const neon_format *f, const struct tile *t, int j, const tokens *x, int i, int64_t b, s32x8 isum,
                          f32x8 acc)
{
    acc = chain8(acc, t->d[j], x->d[i][b], isum);
    if (f->has_min)
        acc = chain8(acc, t->m[j], x->d[i][b], same_s32x8(x->sum[i][2 * b] + x->sum[i][2 * b + 1]));
    return acc;
}

MICA_INLINE s32x8 msum_256(const neon_format *f, const struct tile *t, const int16_t *sum)
{
    s32x8 total = same_s32x8(0);
    int16x8_t sums[2];
    int halves = f->sub16 ? 2 : 1;
    load_sums(f, sum, sums);
    UNROLL for (int h = 0; h < halves; h++) {
#define LANE(l)                                                                                        \
    total.low = vmlal_laneq_s16(total.low, vget_low_s16(t->mn[8 * h + l]), sums[h], l);                \
    total.high = vmlal_high_laneq_s16(total.high, t->mn[8 * h + l], sums[h], l);
        LANE(0) LANE(1) LANE(2) LANE(3) LANE(4) LANE(5) LANE(6) LANE(7)
#undef LANE
    }
    return total;
}

MICA_INLINE f32x8 join_256(const neon_format *f, const struct tile *t, const tokens *x, int i, int64_t k, s32x8 isum, f32x8 acc)
{
    float dx = x->d[i][k / 256];
    acc = chain8(acc, t->d[0], dx, isum);
    return f->has_min ? chain8(acc, t->m[0], dx, msum_256(f, t, x->sum[i] + k / 16)) : acc;
}

/* T tokens from t0 through the tiles of one panel. The chains rest in `out` between panels. */
MICA_INLINE void panel_tokens(const neon_format *f, const mica_matmul *m, const struct tile *tiles, int64_t k0, int64_t k1,
                              int32_t t0, int T, int64_t r, int n_rows)
{
    const mica_act *act = m->x;
    tokens x;
    f32x8 acc[TOKENS];
    float *out[TOKENS];
    UNROLL for (int i = 0; i < T; i++) {
        int64_t t = t0 + i < act->n ? t0 + i : act->n - 1;
        x.q[i] = act->q + t * act->k;
        x.d[i] = act->d + t * (act->k / f->block);
        x.sum[i] = act->sum + t * (act->k / 16);
        out[i] = m->out + t * m->out_stride + r;
        acc[i] = k0 == 0 ? zero_f32x8() : load_rows(out[i], n_rows);
    }
    for (int64_t k = k0; k < k1; k += 256) {
        if (f->block == 32)
            tile_32(f, tiles + (k - k0) / 256, k1 - k < 256 ? (int)(k1 - k) / 32 : 8, &x, k, T, acc);
        else
            tile_256(f, tiles + (k - k0) / 256, &x, k, T, acc);
    }
    UNROLL for (int i = 0; i < T; i++)
        store_rows(out[i], acc[i], n_rows);
}

MICA_INLINE void gemm(const neon_format *f, const mica_matmul *m, int64_t r0, int64_t r1, struct tile *tiles)
{
    int64_t k_end = m->x->k;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int64_t k0 = 0; k0 < k_end; k0 += 256 * TILES) {
            int64_t k1 = k_end - k0 < 256 * TILES ? k_end : k0 + 256 * TILES;
            for (int64_t k = k0; k < k1; k += 256)
                fill_tile(f, tiles + (k - k0) / 256, &rows, m->row_bytes, k, k1 - k < 256 ? (int)(k1 - k) / 32 : 8);
            int32_t t = 0;
            for (; t + TOKENS <= m->x->n; t += TOKENS)
                panel_tokens(f, m, tiles, k0, k1, t, TOKENS, r, rows.n);
            for (; t < m->x->n; t += TAIL)
                panel_tokens(f, m, tiles, k0, k1, t, TAIL, r, rows.n);
        }
    }
}

#endif
