/* neon_dotprod.c - quantised matrix products with FEAT_DotProd (ARMv8.2: Cortex-A55, A75 and later): sdot adds four products of
 * signed bytes to an int32 lane. For many tokens the tile is [4 weights][8 rows], so that lanes are rows.
 */
#if defined(__aarch64__)
#include <string.h>

#include "kern/arm/intrinsics.h"
#include "kern/arm/neon.h"
#include "kern/fills.h"
#include "kern/target.h"
#include "quant/blocks.h"

MICA_TARGET_BEGIN(MICA_TARGET_DOTPROD)
#include "kern/arm/neon_rows.h"

struct tile {
    int8x16_t w[64][2];     /* group g: weights 4g..4g+3 of rows 0-3 and 4-7 */
    int32x4_t scale[16][2]; /* lane = row; 8 where one serves 32 weights */
    int16x8_t mn[16];
    f32x8 d[8], m[8];
};

#define TOKENS 4 /* products and sums of four tokens take 16 registers, their chains 8 */
#define TAIL 1
#include "kern/arm/neon_gemm.h"
#include "kern/arm/neon_gemv.h"

MICA_INLINE int32x4_t dot16(int8x16_t w, int8x16_t x) { return vdotq_s32(vdupq_n_s32(0), w, x); }

MICA_INLINE int32x4_t dot32(bool wide, int8x16x2_t w, int8x16x2_t x)
{
    (void)wide;
    return vdotq_s32(dot16(w.val[0], x.val[0]), w.val[1], x.val[1]);
}

/* Four rows of four 32-bit groups to four groups of four rows. */
MICA_INLINE void transpose4(const int8x16_t in[4], int8x16_t out[4][2], int half)
{
    int32x4_t a = vreinterpretq_s32_s8(in[0]), b = vreinterpretq_s32_s8(in[1]);
    int32x4_t c = vreinterpretq_s32_s8(in[2]), d = vreinterpretq_s32_s8(in[3]);
    int64x2_t ab_even = vreinterpretq_s64_s32(vtrn1q_s32(a, b)), ab_odd = vreinterpretq_s64_s32(vtrn2q_s32(a, b));
    int64x2_t cd_even = vreinterpretq_s64_s32(vtrn1q_s32(c, d)), cd_odd = vreinterpretq_s64_s32(vtrn2q_s32(c, d));
    out[0][half] = vreinterpretq_s8_s64(vtrn1q_s64(ab_even, cd_even));
    out[1][half] = vreinterpretq_s8_s64(vtrn1q_s64(ab_odd, cd_odd));
    out[2][half] = vreinterpretq_s8_s64(vtrn2q_s64(ab_even, cd_even));
    out[3][half] = vreinterpretq_s8_s64(vtrn2q_s64(ab_odd, cd_odd));
}

MICA_INLINE void place_weights(struct tile *t, int j, const int8x16x2_t w[ROWS])
{
    UNROLL for (int h = 0; h < 4; h++) {
        int first = 4 * (h / 2);
        int8x16_t in[4] = {w[first].val[h % 2], w[first + 1].val[h % 2], w[first + 2].val[h % 2], w[first + 3].val[h % 2]};
        transpose4(in, t->w + 8 * j + 4 * (h % 2), h / 2);
    }
}

MICA_INLINE void place_scales(struct tile *t, const int16_t sc[ROWS][16])
{
    for (int j = 0; j < 16; j++) {
        int32_t lanes[ROWS];
        for (int i = 0; i < ROWS; i++)
            lanes[i] = sc[i][j];
        t->scale[j][0] = vld1q_s32(lanes);
        t->scale[j][1] = vld1q_s32(lanes + 4);
    }
}

/* Adds the products of weights 16h..16h+15 of the tile, which are weights k.. of the row. */
MICA_INLINE void add16(const struct tile *t, int h, const tokens *x, int64_t k, int T, s32x8 sum[])
{
    int8x16_t xv[TOKENS];
    UNROLL for (int i = 0; i < T; i++)
        xv[i] = vld1q_s8(x->q[i] + k);
#define GROUP(l)                                                                          \
    UNROLL for (int i = 0; i < T; i++) {                                                  \
        sum[i].low = vdotq_laneq_s32(sum[i].low, t->w[4 * h + l][0], xv[i], l);           \
        sum[i].high = vdotq_laneq_s32(sum[i].high, t->w[4 * h + l][1], xv[i], l);         \
    }
    GROUP(0) GROUP(1) GROUP(2) GROUP(3)
#undef GROUP
}

MICA_INLINE void tile_32(const neon_format *f, const struct tile *t, int parts, const tokens *x, int64_t k, int T, f32x8 acc[])
{
    for (int j = 0; j < parts; j++) {
        s32x8 total[TOKENS];
        UNROLL for (int i = 0; i < T; i++)
            total[i] = same_s32x8(0);
        add16(t, 2 * j, x, k + 32 * j, T, total);
        add16(t, 2 * j + 1, x, k + 32 * j + 16, T, total);
        UNROLL for (int i = 0; i < T; i++)
            acc[i] = join_32(f, t, j, x, i, k / 32 + j, total[i], acc[i]);
    }
}

MICA_INLINE void tile_256(const neon_format *f, const struct tile *t, const tokens *x, int64_t k, int T, f32x8 acc[])
{
    s32x8 total[TOKENS];
    int step = f->sub16 ? 1 : 2; /* 16 weights under one scale, or twice that */
    UNROLL for (int i = 0; i < T; i++)
        total[i] = same_s32x8(0);
    for (int j = 0; j < 16 / step; j++) {
        s32x8 part[TOKENS];
        UNROLL for (int i = 0; i < T; i++)
            part[i] = same_s32x8(0);
        UNROLL for (int h = 0; h < step; h++)
            add16(t, step * j + h, x, k + 16 * (step * j + h), T, part);
        UNROLL for (int i = 0; i < T; i++) {
            total[i].low = vmlaq_s32(total[i].low, part[i].low, t->scale[j][0]);
            total[i].high = vmlaq_s32(total[i].high, part[i].high, t->scale[j][1]);
        }
    }
    UNROLL for (int i = 0; i < T; i++)
        acc[i] = join_256(f, t, x, i, k, total[i], acc[i]);
}

#define MATMUL(type, name)                                                               \
    static void gemv_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                    \
        (void)scratch;                                                                   \
        gemv(&format_##name, m, r0, r1);                                                 \
    }                                                                                    \
    static void gemm_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                    \
        gemm(&format_##name, m, r0, r1, scratch);                                        \
    }
NEON_FORMATS(MATMUL)
#undef MATMUL

MICA_TARGET_END

void mica_kernels_fill_neon_dotprod(mica_kernels *k)
{
#define FILL(type, name)                     \
    k->gemv[MICA_TYPE_##type] = gemv_##name; \
    k->gemm[MICA_TYPE_##type] = gemm_##name;
    NEON_FORMATS(FILL)
#undef FILL
}
#endif
