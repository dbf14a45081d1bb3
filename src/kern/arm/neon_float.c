/* neon_float.c - products with F32, F16 and BF16 weights: the 16 partial sums are four registers, four tokens at a time. */
#if defined(__aarch64__)
#include <string.h>

#include "kern/arm/neon.h"
#include "kern/arm/neon_sum16.h"

#define PIECE 2048 /* weights decoded at a time: 8 KiB */
#define TOKENS 4

static void widen_f16(const uint8_t *w, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(w + 2 * i));
        vst1q_f32(out + i, vcvt_f32_f16(vget_low_f16(h)));
        vst1q_f32(out + i + 4, vcvt_high_f32_f16(h));
    }
}

static void widen_bf16(const uint8_t *w, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8) {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(w + 2 * i));
        vst1q_f32(out + i, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16)));
        vst1q_f32(out + i + 4, vreinterpretq_f32_u32(vshll_high_n_u16(h, 16)));
    }
}

/* Continues the partial sums of T tokens over n weights; n is a multiple of 16. */
MICA_INLINE void accumulate(const float *w, const float *x, int64_t stride, int64_t n, int T, sum16 s[])
{
    for (int64_t i = 0; i < n; i += 16)
        UNROLL for (int t = 0; t < T; t++)
            s[t] = sum16_add(s[t], w + i, x + t * stride + i);
}

MICA_INLINE void row_tokens(const mica_matmul *m, int64_t r, int32_t t0, int T, float *scratch)
{
    const mica_act *x = m->x;
    const uint8_t *w = m->w + (size_t)r * m->row_bytes;
    int bytes = m->quant->block_bytes;
    sum16 s[TOKENS];
    UNROLL for (int t = 0; t < T; t++)
        s[t] = sum16_zero();
    int64_t whole = x->k & ~(int64_t)15;
    for (int64_t i = 0; i < whole; i += PIECE) {
        int64_t n = whole - i < PIECE ? whole - i : PIECE;
        const float *piece = scratch;
        if (m->quant->type == MICA_TYPE_F16)
            widen_f16(w + bytes * i, scratch, n);
        else if (m->quant->type == MICA_TYPE_BF16)
            widen_bf16(w + bytes * i, scratch, n);
        else
            piece = (const float *)(const void *)(w + bytes * i);
        accumulate(piece, x->f + t0 * x->k + i, x->k, n, T, s);
    }
    if (whole < x->k)
        m->quant->decode(m->quant, w + bytes * whole, scratch, (size_t)(x->k - whole));
    UNROLL for (int t = 0; t < T; t++) {
        const float *rest = x->f + (t0 + t) * x->k + whole;
        m->out[(t0 + t) * m->out_stride + r] = sum16_finish(s[t], scratch, rest, x->k - whole);
    }
}

static void matmul_float(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch)
{
    for (int64_t r = r0; r < r1; r++) {
        int32_t t = 0;
        for (; t + TOKENS <= m->x->n; t += TOKENS)
            row_tokens(m, r, t, TOKENS, scratch);
        for (; t < m->x->n; t++)
            row_tokens(m, r, t, 1, scratch);
    }
}

void mica_neon_fill_float(mica_kernels *k)
{
    k->gemv[MICA_TYPE_F32] = k->gemm[MICA_TYPE_F32] = matmul_float;
    k->gemv[MICA_TYPE_F16] = k->gemm[MICA_TYPE_F16] = matmul_float;
    k->gemv[MICA_TYPE_BF16] = k->gemm[MICA_TYPE_BF16] = matmul_float;
}
#endif
