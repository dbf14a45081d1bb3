/* neon_matmul.c - quantised matrix products with the NEON that every 64-bit ARM has: bytes are multiplied to int16, of which
 * two or four are summed before they are widened. Vector lanes of the float chains hold different rows; those of the integers
 * run along the weights, since this NEON has no product that would leave them in place.
 */
#if defined(__aarch64__)
#include "kern/arm/neon.h"
#include "kern/arm/neon_rows.h"

struct tile {
    int8x16x2_t w[8][ROWS]; /* weights 32j..32j+31 of each row */
    int32_t scale[ROWS][16];
    int16x8_t mn[16];
    f32x8 d[8], m[8];
};

#define TOKENS 2 /* eight sums each fill half of the registers */
#define TAIL 1
#include "kern/arm/neon_gemm.h"
#include "kern/arm/neon_gemv.h"

/* |w| <= 128 and |x| <= 127: a lane is at most 2 * 128 * 127 = 32512. */
MICA_INLINE int16x8_t products16(int8x16_t w, int8x16_t x)
{
    return vmlal_high_s8(vmull_s8(vget_low_s8(w), vget_low_s8(x)), w, x);
}

MICA_INLINE int32x4_t dot16(int8x16_t w, int8x16_t x) { return vpaddlq_s16(products16(w, x)); }

MICA_INLINE int32x4_t dot32(bool wide, int8x16x2_t w, int8x16x2_t x)
{
    int16x8_t p = products16(w.val[0], x.val[0]);
    if (wide)
        return vpadalq_s16(vpaddlq_s16(p), products16(w.val[1], x.val[1]));
    /* |w| <= 63: at most 4 * 63 * 127 = 32004 */
    p = vmlal_s8(p, vget_low_s8(w.val[1]), vget_low_s8(x.val[1]));
    return vpaddlq_s16(vmlal_high_s8(p, w.val[1], x.val[1]));
}

MICA_INLINE void place_weights(struct tile *t, int j, const int8x16x2_t w[ROWS])
{
    UNROLL for (int i = 0; i < ROWS; i++)
        t->w[j][i] = w[i];
}

MICA_INLINE void place_scales(struct tile *t, const int16_t sc[ROWS][16])
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 16; j++)
            t->scale[i][j] = sc[i][j];
}

MICA_INLINE void tile_32(const neon_format *f, const struct tile *t, int parts, const tokens *x, int64_t k, int T, f32x8 acc[])
{
    for (int j = 0; j < parts; j++) {
        int32x4_t v[TOKENS][ROWS];
        int8x16x2_t xj[TOKENS];
        UNROLL for (int i = 0; i < T; i++)
            xj[i] = load32(x->q[i] + k + 32 * j);
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int i = 0; i < T; i++)
                v[i][r] = dot32(f->wide, t->w[j][r], xj[i]);
        UNROLL for (int i = 0; i < T; i++)
            acc[i] = join_32(f, t, j, x, i, k / 32 + j, reduce8(v[i]), acc[i]);
    }
}

MICA_INLINE void tile_256(const neon_format *f, const struct tile *t, const tokens *x, int64_t k, int T, f32x8 acc[])
{
    int32x4_t v[TOKENS][ROWS];
    for (int r = 0; r < ROWS; r++) {
        int32x4_t total[TOKENS], s[4];
        UNROLL for (int i = 0; i < 4; i++)
            s[i] = vld1q_s32(t->scale[r] + 4 * i);
        UNROLL for (int i = 0; i < T; i++)
            total[i] = vdupq_n_s32(0);
        UNROLL for (int j = 0; j < 8; j++) {
            int8x16x2_t w = t->w[j][r];
            UNROLL for (int i = 0; i < T; i++) {
                int8x16x2_t xj = load32(x->q[i] + k + 32 * j);
                if (f->sub16) {
                    total[i] = mla_lane(total[i], dot16(w.val[0], xj.val[0]), s, 2 * j);
                    total[i] = mla_lane(total[i], dot16(w.val[1], xj.val[1]), s, 2 * j + 1);
                } else {
                    total[i] = mla_lane(total[i], dot32(f->wide, w, xj), s, j);
                }
            }
        }
        UNROLL for (int i = 0; i < T; i++)
            v[i][r] = total[i];
    }
    UNROLL for (int i = 0; i < T; i++)
        acc[i] = join_256(f, t, x, i, k, reduce8(v[i]), acc[i]);
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

void mica_neon_fill_matmul(mica_kernels *k)
{
#define FILL(type, name)                     \
    k->gemv[MICA_TYPE_##type] = gemv_##name; \
    k->gemm[MICA_TYPE_##type] = gemm_##name;
    NEON_FORMATS(FILL)
#undef FILL
}
#endif
