/* vector.c - the definition of everything in the forward pass that is not a matrix product. */
#include <math.h>
#include <string.h>

#include "kern/fills.h"
#include "kern/fmath.h"
#include "kern/ref/dot16.h"
#include "kern/ref/ref.h"
#include "kern/ref/scalar.h"

/* The largest |x| as bits: an integer maximum is exact in any order and sees NaN and infinity as the largest values. */
static uint32_t max_abs_bits(const float *x, int64_t n)
{
    uint32_t max = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = mica_f32_bits(x[i]) & 0x7FFFFFFFu;
        max = bits > max ? bits : max;
    }
    return max;
}

static void quantize_block(const float *x, int64_t block, int8_t *q, float *d, int16_t *sum)
{
    uint32_t max = max_abs_bits(x, block);
    if (mica_quantize_odd_block(max, block, q, d, sum))
        return;
    float amax = mica_bits_f32(max), inverse = 127.0f / amax;
    *d = amax / 127.0f;
    for (int64_t j = 0; j < block / 16; j++) {
        int32_t s = 0;
        for (int64_t i = 16 * j; i < 16 * j + 16; i++) {
            int32_t v = (int32_t)rintf(x[i] * inverse); /* |v| <= 127: the product rounds to at most 127.00001 */
            q[i] = (int8_t)v;
            s += v;
        }
        sum[j] = (int16_t)s;
    }
}

#include "kern/quantize_blocks.h"

static void widen_f16(const void *in, float *out, int64_t n)
{
    const uint16_t *h = in;
    for (int64_t i = 0; i < n; i++)
        out[i] = mica_f16_to_f32(h[i]);
}

static void widen_q8_0(const void *in, float *out, int64_t n)
{
    const mica_quant *quant = mica_quant_of(MICA_TYPE_Q8_0);
    quant->decode(quant, in, out, (size_t)n);
}

static void widen_q4_0(const void *in, float *out, int64_t n)
{
    const mica_quant *quant = mica_quant_of(MICA_TYPE_Q4_0);
    quant->decode(quant, in, out, (size_t)n);
}

static void f32_to_f16(const float *in, uint16_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = mica_f32_to_f16(in[i]);
}

static void rmsnorm(const float *x, const float *w, float eps, float *out, int64_t n)
{
    float s = 1.0f / sqrtf(mica_dot16(x, x, n) / (float)n + eps);
    for (int64_t i = 0; i < n; i++)
        out[i] = (x[i] * s) * w[i];
}

static void add(float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] + y[i];
}

static void silu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = mica_silu_mul_element(gate[i], up[i]);
}

static void gelu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = mica_gelu_mul_element(gate[i], up[i]);
}

static void rope(float *x, const float *cs, int64_t n, bool neox)
{
    int64_t half = n / 2;
    for (int64_t i = 0; i < half; i++)
        mica_rope_pair(x, cs, i, half, neox);
}

static void qk(const float *q, int64_t n_q, const float *k, int64_t n_t, int64_t dim, float scale, float *s)
{
    for (int64_t j = 0; j < n_q; j++)
        for (int64_t t = 0; t < n_t; t++)
            s[j * MICA_ATTN_TILE + t] = mica_dot16(q + j * dim, k + t * dim, dim) * scale;
}

static void softcap(float *s, float cap, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        s[i] = mica_softcap_element(s[i], cap);
}

static float exp_sum(float *s, float max, int64_t n)
{
    float p[16] = {0};
    for (int64_t i = 0; i < n; i++) {
        s[i] = mica_expf(s[i] - max);
        p[i & 15] = p[i & 15] + s[i];
    }
    return mica_tree16(p);
}

static void pv(float *o, int64_t n_q, const float *alpha, const float *p, const float *v, int64_t n_t, int64_t dim)
{
    for (int64_t j = 0; j < n_q; j++, o += dim, p += MICA_ATTN_TILE)
        for (int64_t i = 0; i < dim; i++) {
            float acc = o[i] * alpha[j];
            for (int64_t t = 0; t < n_t; t++)
                acc = fmaf(p[t], v[t * dim + i], acc);
            o[i] = acc;
        }
}

static void scale(float *x, float a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] * a;
}

static float max(const float *x, int64_t n)
{
    float best = x[0];
    for (int64_t i = 1; i < n; i++)
        best = x[i] > best || best != best ? x[i] : best;
    return best;
}

void mica_kernels_fill_portable(mica_kernels *k)
{
    *k = (mica_kernels){.name = "portable", .quantize32 = quantize32, .quantize256 = quantize256, .widen[MICA_TYPE_F16] = widen_f16,
                        .widen[MICA_TYPE_Q8_0] = widen_q8_0, .widen[MICA_TYPE_Q4_0] = widen_q4_0, .f32_to_f16 = f32_to_f16, .rmsnorm = rmsnorm, .add = add, .silu_mul = silu_mul, .gelu_mul = gelu_mul,
                        .rope = rope, .qk = qk, .softcap = softcap, .exp_sum = exp_sum, .pv = pv, .scale = scale, .max = max};
    mica_ref_fill_matmul(k);
}
