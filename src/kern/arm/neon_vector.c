/* neon_vector.c - quantisation, norms, activations, RoPE and attention with NEON. Each function does, lane by lane, the steps
 * of its portable twin in ref/vector.c; tails of fewer than four elements go through that twin. All of it is NEON of ARMv8.0,
 * and the sets above take it as it is.
 */
#if defined(__aarch64__)
#include <math.h>
#include <string.h>

#include "kern/arm/neon.h"
#include "kern/arm/neon_sum16.h"
#include "kern/fills.h"
#include "kern/fmath.h"
#include "kern/ref/scalar.h"
#include "quant/blocks.h"

/* ---- quantisation ---- */

MICA_INLINE uint32_t max_abs_bits(const float *x, int64_t n)
{
    const uint32x4_t mask = vdupq_n_u32(0x7FFFFFFFu);
    uint32x4_t max = vdupq_n_u32(0);
    for (int64_t i = 0; i < n; i += 4)
        max = vmaxq_u32(max, vandq_u32(mask, vreinterpretq_u32_f32(vld1q_f32(x + i))));
    return vmaxvq_u32(max);
}

/* Eight floats to int16; vcvtn rounds to the nearest even integer. */
MICA_INLINE int16x8_t round8(const float *x, float inverse)
{
    int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), inverse));
    int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4), inverse));
    return vmovn_high_s32(vmovn_s32(a), b);
}

MICA_INLINE void quantize_block(const float *x, int64_t block, int8_t *q, float *d, int16_t *sum)
{
    uint32_t max = max_abs_bits(x, block);
    if (mica_quantize_odd_block(max, block, q, d, sum))
        return;
    float amax = mica_bits_f32(max), inverse = 127.0f / amax;
    *d = amax / 127.0f;
    for (int64_t i = 0; i < block; i += 16) {
        int16x8_t a = round8(x + i, inverse), b = round8(x + i + 8, inverse);
        vst1q_s8(q + i, vmovn_high_s16(vmovn_s16(a), b));
        sum[i / 16] = vaddvq_s16(vaddq_s16(a, b)); /* at most 16 * 127 */
    }
}

#include "kern/quantize_blocks.h"

/* ---- halves ---- */

static void widen_f16(const void *in, float *out, int64_t n)
{
    const uint16_t *h = in;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(h + i))));
    for (; i < n; i++)
        out[i] = mica_f16_to_f32(h[i]);
}

/* 16 signed bytes times d. */
MICA_INLINE void widen_16(int8x16_t bytes, float d, float *out)
{
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    vst1q_f32(out, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), d));
    vst1q_f32(out + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(low)), d));
    vst1q_f32(out + 8, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), d));
    vst1q_f32(out + 12, vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(high)), d));
}

MICA_INLINE float half_to_float(uint16_t h)
{
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}

static void widen_q8_0(const void *in, float *out, int64_t n)
{
    const mica_block_q8_0 *b = in;
    for (int64_t i = 0; i < n; i += 32, b++) {
        float d = half_to_float(b->d);
        widen_16(vld1q_s8(b->qs), d, out + i);
        widen_16(vld1q_s8(b->qs + 16), d, out + i + 16);
    }
}

static void widen_q4_0(const void *in, float *out, int64_t n)
{
    const mica_block_q4_0 *b = in;
    const int8x16_t eight = vdupq_n_s8(8);
    for (int64_t i = 0; i < n; i += 32, b++) {
        uint8x16_t packed = vld1q_u8(b->qs);
        float d = half_to_float(b->d);
        widen_16(vsubq_s8(vreinterpretq_s8_u8(vandq_u8(packed, vdupq_n_u8(15))), eight), d, out + i);
        widen_16(vsubq_s8(vreinterpretq_s8_u8(vshrq_n_u8(packed, 4)), eight), d, out + i + 16);
    }
}

static void f32_to_f16(const float *in, uint16_t *out, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(out + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(in + i))));
    for (; i < n; i++)
        out[i] = mica_f32_to_f16(in[i]);
}

/* ---- element-wise ---- */

static void rmsnorm(const float *x, const float *w, float eps, float *out, int64_t n)
{
    float s = 1.0f / sqrtf(sum16_dot(x, x, n) / (float)n + eps);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vmulq_f32(vmulq_n_f32(vld1q_f32(x + i), s), vld1q_f32(w + i)));
    for (; i < n; i++)
        out[i] = (x[i] * s) * w[i];
}

static void add(float *x, const float *y, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i, vaddq_f32(vld1q_f32(x + i), vld1q_f32(y + i)));
    for (; i < n; i++)
        x[i] = x[i] + y[i];
}

static void scale(float *x, float a, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i, vmulq_n_f32(vld1q_f32(x + i), a));
    for (; i < n; i++)
        x[i] = x[i] * a;
}

/* mica_expf() for four lanes. */
MICA_INLINE float32x4_t exp4(float32x4_t x)
{
    uint32x4_t below = vcltq_f32(x, vdupq_n_f32(MICA_EXP_MIN));
    float32x4_t most = vdupq_n_f32(MICA_EXP_MAX);
    float32x4_t c = vbslq_f32(vcgtq_f32(x, most), most, x); /* NaN stays NaN */
    float32x4_t n = vrndnq_f32(vmulq_n_f32(c, 1.44269504f));
    float32x4_t r = vfmaq_f32(c, n, vdupq_n_f32(-0.693359375f));
    r = vfmaq_f32(r, n, vdupq_n_f32(2.12194440e-4f));
    float32x4_t p = vdupq_n_f32(1.98756912e-4f);
    p = vfmaq_f32(vdupq_n_f32(1.39819994e-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(8.33345205e-3f), p, r);
    p = vfmaq_f32(vdupq_n_f32(4.16657962e-2f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.66666657e-1f), p, r);
    p = vfmaq_f32(vdupq_n_f32(5.00000000e-1f), p, r);
    p = vfmaq_f32(r, p, vmulq_f32(r, r));
    p = vaddq_f32(p, vdupq_n_f32(1.0f));
    /* vcvt makes 0 of NaN; lanes below the minimum may be anything, they become 0 */
    int32x4_t e = vshlq_n_s32(vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127)), 23);
    float32x4_t y = vmulq_f32(p, vreinterpretq_f32_s32(e));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(y), below));
}

MICA_INLINE float32x4_t tanh4(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    return vsubq_f32(one, vdivq_f32(vdupq_n_f32(2.0f), vaddq_f32(exp4(vaddq_f32(x, x)), one)));
}

static void silu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t g = vld1q_f32(gate + i), s = vdivq_f32(g, vaddq_f32(one, exp4(vnegq_f32(g))));
        vst1q_f32(out + i, vmulq_f32(s, vld1q_f32(up + i)));
    }
    for (; i < n; i++)
        out[i] = mica_silu_mul_element(gate[i], up[i]);
}

static void gelu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t x = vld1q_f32(gate + i);
        float32x4_t cubic = vfmaq_f32(one, vmulq_n_f32(x, 0.044715f), x);
        float32x4_t inner = vmulq_n_f32(vmulq_f32(x, cubic), 0.797884561f);
        float32x4_t half = vmulq_f32(vmulq_n_f32(x, 0.5f), vaddq_f32(one, tanh4(inner)));
        vst1q_f32(out + i, vmulq_f32(half, vld1q_f32(up + i)));
    }
    for (; i < n; i++)
        out[i] = mica_gelu_mul_element(gate[i], up[i]);
}

MICA_INLINE float32x4x2_t rotate4(float32x4_t u, float32x4_t v, float32x4_t c, float32x4_t s)
{
    return (float32x4x2_t){{vfmaq_f32(vnegq_f32(vmulq_f32(v, s)), u, c), vfmaq_f32(vmulq_f32(v, c), u, s)}};
}

static void rope(float *x, const float *cs, int64_t n, bool neox)
{
    int64_t half = n / 2, i = 0;
    for (; i + 4 <= half; i += 4) {
        float32x4_t c = vld1q_f32(cs + i), s = vld1q_f32(cs + half + i);
        if (neox) {
            float32x4x2_t r = rotate4(vld1q_f32(x + i), vld1q_f32(x + half + i), c, s);
            vst1q_f32(x + i, r.val[0]);
            vst1q_f32(x + half + i, r.val[1]);
        } else {
            float32x4x2_t pairs = vld2q_f32(x + 2 * i);
            vst2q_f32(x + 2 * i, rotate4(pairs.val[0], pairs.val[1], c, s));
        }
    }
    for (; i < half; i++)
        mica_rope_pair(x, cs, i, half, neox);
}

/* ---- attention ---- */

static void qk_one(const float *q, const float *k, int64_t n_t, int64_t dim, float factor, float *s)
{
    int64_t t = 0;
    if (dim % 16 == 0) {
        for (; t + 4 <= n_t; t += 4) { /* four positions hide the latency of the chains; their sums are 16 registers */
            sum16 p[4] = {sum16_zero(), sum16_zero(), sum16_zero(), sum16_zero()};
            for (int64_t i = 0; i < dim; i += 16)
                UNROLL for (int j = 0; j < 4; j++)
                    p[j] = sum16_add(p[j], q + i, k + (t + j) * dim + i);
            UNROLL for (int j = 0; j < 4; j++)
                s[t + j] = sum16_tree(p[j]) * factor;
        }
    }
    for (; t < n_t; t++)
        s[t] = sum16_dot(q, k + t * dim, dim) * factor;
}

static void softcap(float *s, float cap, int64_t n)
{
    float32x4_t c = vdupq_n_f32(cap);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(s + i, vmulq_f32(c, tanh4(vdivq_f32(vld1q_f32(s + i), c))));
    for (; i < n; i++)
        s[i] = mica_softcap_element(s[i], cap);
}

static float exp_sum(float *s, float max, int64_t n)
{
    float32x4_t m = vdupq_n_f32(max);
    sum16 sum = sum16_zero();
    float rest[16], one[16];
    int64_t i = 0, tail = 0;
    for (; i + 16 <= n; i += 16) {
        UNROLL for (int j = 0; j < 4; j++) {
            float32x4_t e = exp4(vsubq_f32(vld1q_f32(s + i + 4 * j), m));
            vst1q_f32(s + i + 4 * j, e);
            sum.p[j] = vaddq_f32(sum.p[j], e);
        }
    }
    for (; i < n; i++, tail++) {
        s[i] = mica_expf(s[i] - max);
        rest[tail] = s[i];
        one[tail] = 1.0f; /* fma(x, 1, p) is x + p */
    }
    return sum16_finish(sum, rest, one, tail);
}

/* `count` registers of the output through all positions. */
MICA_INLINE void pv_columns(float *o, float alpha, const float *p, const float *v, int64_t n_t, int64_t dim, int count)
{
    float32x4_t acc[8];
    UNROLL for (int j = 0; j < count; j++)
        acc[j] = vmulq_n_f32(vld1q_f32(o + 4 * j), alpha);
    for (int64_t t = 0; t < n_t; t++) {
        float32x4_t pt = vdupq_n_f32(p[t]);
        UNROLL for (int j = 0; j < count; j++)
            acc[j] = vfmaq_f32(acc[j], pt, vld1q_f32(v + t * dim + 4 * j));
    }
    UNROLL for (int j = 0; j < count; j++)
        vst1q_f32(o + 4 * j, acc[j]);
}

static void pv_one(float *o, float alpha, const float *p, const float *v, int64_t n_t, int64_t dim)
{
    int64_t i = 0;
    for (; i + 32 <= dim; i += 32)
        pv_columns(o + i, alpha, p, v + i, n_t, dim, 8);
    for (; i + 4 <= dim; i += 4)
        pv_columns(o + i, alpha, p, v + i, n_t, dim, 1);
    for (; i < dim; i++) {
        float acc = o[i] * alpha;
        for (int64_t t = 0; t < n_t; t++)
            acc = fmaf(p[t], v[t * dim + i], acc);
        o[i] = acc;
    }
}

#include "kern/each_query.h"

static float max(const float *x, int64_t n)
{
    float all[4], result = -INFINITY;
    bool number = false;
    /* a comparison with NaN is false: NaNs are passed over */
    float32x4_t best = vdupq_n_f32(-INFINITY);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t v = vld1q_f32(x + i);
        best = vbslq_f32(vcgtq_f32(v, best), v, best);
    }
    vst1q_f32(all, best);
    for (int j = 0; j < 4; j++)
        result = all[j] > result ? all[j] : result;
    for (; i < n; i++)
        result = x[i] > result ? x[i] : result;
    for (i = 0; i < n && result == -INFINITY && !number; i++)
        number = x[i] == x[i];
    return result > -INFINITY || number ? result : NAN;
}

void mica_kernels_fill_neon(mica_kernels *k)
{
    k->quantize32 = quantize32;
    k->quantize256 = quantize256;
    k->widen[MICA_TYPE_F16] = widen_f16;
    k->widen[MICA_TYPE_Q8_0] = widen_q8_0;
    k->widen[MICA_TYPE_Q4_0] = widen_q4_0;
    k->f32_to_f16 = f32_to_f16;
    k->rmsnorm = rmsnorm;
    k->add = add;
    k->scale = scale;
    k->silu_mul = silu_mul;
    k->gelu_mul = gelu_mul;
    k->rope = rope;
    k->qk = qk;
    k->softcap = softcap;
    k->exp_sum = exp_sum;
    k->pv = pv;
    k->max = max;
    mica_neon_fill_matmul(k);
    mica_neon_fill_float(k);
}
#endif
