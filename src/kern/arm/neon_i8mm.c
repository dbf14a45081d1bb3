/* neon_i8mm.c - quantised matrix products with FEAT_I8MM (ARMv8.6: Cortex-A510, A710, X2, Neoverse V1 and later): smmla
 * multiplies 2 rows x 8 weights by 8 activations x 2 tokens, 32 products an instruction. One or two tokens stay with sdot:
 * those wait for memory.
 */
#if defined(__aarch64__)
#include <string.h>

#include "kern/arm/intrinsics.h"
#include "kern/arm/neon.h"
#include "kern/fills.h"
#include "kern/target.h"
#include "quant/blocks.h"

MICA_TARGET_BEGIN(MICA_TARGET_I8MM)
#include "kern/arm/neon_rows.h"

#define PAIRS (ROWS / 2)

struct tile {
    int8x16_t w[32][PAIRS];     /* group g: weights 8g..8g+7 of the two rows of a pair */
    int32x4_t scale[16][PAIRS]; /* of the two rows, each twice: as smmla leaves its sums. 8 where one serves 32 weights */
    int16x8_t mn[16];
    f32x8 d[8], m[8];
};

#define TOKENS 4 /* products and sums of two pairs take 16 registers, their chains 8 */
#define TAIL 2
#include "kern/arm/neon_gemm.h"

/* Sums of two tokens: {row 0 token 0, row 0 token 1, row 1 token 0, row 1 token 1} of each pair of rows. */
typedef struct sums2 {
    int32x4_t pair[PAIRS];
} sums2;

MICA_INLINE sums2 zero_sums2(void)
{
    sums2 s;
    UNROLL for (int p = 0; p < PAIRS; p++)
        s.pair[p] = vdupq_n_s32(0);
    return s;
}

/* The sums of the first or second token, lane = row. */
MICA_INLINE s32x8 rows_of(const sums2 *s, int token)
{
    return token == 0 ? (s32x8){vuzp1q_s32(s->pair[0], s->pair[1]), vuzp1q_s32(s->pair[2], s->pair[3])}
                      : (s32x8){vuzp2q_s32(s->pair[0], s->pair[1]), vuzp2q_s32(s->pair[2], s->pair[3])};
}

/* The first, or last, eight bytes of both. */
MICA_INLINE int8x16_t join_low(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}
MICA_INLINE int8x16_t join_high(int8x16_t a, int8x16_t b)
{
    return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(a), vreinterpretq_s64_s8(b)));
}

MICA_INLINE void place_weights(struct tile *t, int j, const int8x16x2_t w[ROWS])
{
    UNROLL for (int p = 0; p < PAIRS; p++) {
        UNROLL for (int h = 0; h < 2; h++) {
            t->w[4 * j + 2 * h][p] = join_low(w[2 * p].val[h], w[2 * p + 1].val[h]);
            t->w[4 * j + 2 * h + 1][p] = join_high(w[2 * p].val[h], w[2 * p + 1].val[h]);
        }
    }
}

MICA_INLINE void place_scales(struct tile *t, const int16_t sc[ROWS][16])
{
    for (int j = 0; j < 16; j++) {
        for (int p = 0; p < PAIRS; p++) {
            int32_t lanes[4] = {sc[2 * p][j], sc[2 * p][j], sc[2 * p + 1][j], sc[2 * p + 1][j]};
            t->scale[j][p] = vld1q_s32(lanes);
        }
    }
}

/* Adds the products of weights 16h..16h+15 of the tile, which are weights k.. of the row; `n` pairs of tokens. */
MICA_INLINE void add16(const struct tile *t, int h, const tokens *x, int64_t k, int n, sums2 sum[])
{
    int8x16_t low[TOKENS / 2], high[TOKENS / 2];
    UNROLL for (int i = 0; i < n; i++) {
        int8x16_t a = vld1q_s8(x->q[2 * i] + k), b = vld1q_s8(x->q[2 * i + 1] + k);
        low[i] = join_low(a, b);
        high[i] = join_high(a, b);
    }
    UNROLL for (int p = 0; p < PAIRS; p++)
        UNROLL for (int i = 0; i < n; i++)
            sum[i].pair[p] = vmmlaq_s32(sum[i].pair[p], t->w[2 * h][p], low[i]);
    UNROLL for (int p = 0; p < PAIRS; p++)
        UNROLL for (int i = 0; i < n; i++)
            sum[i].pair[p] = vmmlaq_s32(sum[i].pair[p], t->w[2 * h + 1][p], high[i]);
}

MICA_INLINE void tile_32(const neon_format *f, const struct tile *t, int parts, const tokens *x, int64_t k, int T, f32x8 acc[])
{
    for (int j = 0; j < parts; j++) {
        sums2 total[TOKENS / 2];
        UNROLL for (int i = 0; i < T / 2; i++)
            total[i] = zero_sums2();
        add16(t, 2 * j, x, k + 32 * j, T / 2, total);
        add16(t, 2 * j + 1, x, k + 32 * j + 16, T / 2, total);
        UNROLL for (int i = 0; i < T; i++)
            acc[i] = join_32(f, t, j, x, i, k / 32 + j, rows_of(&total[i / 2], i % 2), acc[i]);
    }
}

MICA_INLINE void tile_256(const neon_format *f, const struct tile *t, const tokens *x, int64_t k, int T, f32x8 acc[])
{
    sums2 total[TOKENS / 2];
    int step = f->sub16 ? 1 : 2; /* 16 weights under one scale, or twice that */
    UNROLL for (int i = 0; i < T / 2; i++)
        total[i] = zero_sums2();
    for (int j = 0; j < 16 / step; j++) {
        sums2 part[TOKENS / 2];
        UNROLL for (int i = 0; i < T / 2; i++)
            part[i] = zero_sums2();
        UNROLL for (int h = 0; h < step; h++)
            add16(t, step * j + h, x, k + 16 * (step * j + h), T / 2, part);
        UNROLL for (int i = 0; i < T / 2; i++)
            UNROLL for (int p = 0; p < PAIRS; p++)
                total[i].pair[p] = vmlaq_s32(total[i].pair[p], part[i].pair[p], t->scale[j][p]);
    }
    UNROLL for (int i = 0; i < T; i++)
        acc[i] = join_256(f, t, x, i, k, rows_of(&total[i / 2], i % 2), acc[i]);
}

#define MATMUL(type, name)                                                               \
    static void gemm_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                    \
        gemm(&format_##name, m, r0, r1, scratch);                                        \
    }
NEON_FORMATS(MATMUL)
#undef MATMUL

MICA_TARGET_END

void mica_kernels_fill_neon_i8mm(mica_kernels *k)
{
#define FILL(type, name) k->gemm[MICA_TYPE_##type] = gemm_##name;
    NEON_FORMATS(FILL)
#undef FILL
}
#endif
