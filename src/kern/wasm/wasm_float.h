/* wasm_float.h - products with F32, F16 and BF16 weights: the 16 partial sums are four vectors, two tokens at a time. */
#ifndef MICA_KERN_WASM_WASM_FLOAT_H
#define MICA_KERN_WASM_WASM_FLOAT_H
#include "kern/wasm/wasm_rows.h"
#include "kern/wasm/wasm_sum16.h"

#define PIECE        2048 /* weights decoded at a time: 8 KiB */
#define FLOAT_TOKENS 2

static void widen_halves(const uint8_t *w, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 4)
        wasm_v128_store(out + i, half_to_float(wasm_u32x4_load16x4(w + 2 * i)));
}

static void widen_bf16(const uint8_t *w, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i += 4)
        wasm_v128_store(out + i, wasm_i32x4_shl(wasm_u32x4_load16x4(w + 2 * i), 16));
}

/* The next n weights as floats; n is a multiple of 16. In `scratch`, or where they are. */
static const float *float_weights(mica_type type, const uint8_t *w, int64_t n, float *scratch)
{
    if (type == MICA_TYPE_F32)
        return (const float *)(const void *)w;
    (type == MICA_TYPE_F16 ? widen_halves : widen_bf16)(w, scratch, n);
    return scratch;
}

MICA_INLINE void row_tokens(const mica_matmul *m, int64_t r, int32_t t0, int T, float *scratch)
{
    const mica_act *x = m->x;
    const uint8_t *w = m->w + (size_t)r * m->row_bytes;
    int64_t bytes = m->quant->block_bytes, whole = x->k & ~(int64_t)15;
    sum16 s[FLOAT_TOKENS];
    UNROLL for (int t = 0; t < T; t++)
        s[t] = sum16_zero();
    for (int64_t i = 0; i < whole; i += PIECE) {
        int64_t n = whole - i < PIECE ? whole - i : PIECE;
        const float *piece = float_weights(m->quant->type, w + bytes * i, n, scratch);
        for (int64_t j = 0; j < n; j += 16)
            UNROLL for (int t = 0; t < T; t++)
                s[t] = sum16_add(s[t], piece + j, x->f + (t0 + t) * x->k + i + j);
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
        for (; t + FLOAT_TOKENS <= m->x->n; t += FLOAT_TOKENS)
            row_tokens(m, r, t, FLOAT_TOKENS, scratch);
        for (; t < m->x->n; t++)
            row_tokens(m, r, t, 1, scratch);
    }
}

#endif
