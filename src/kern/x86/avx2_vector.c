/* avx2_vector.c - quantisation, norms, activations, RoPE and attention with AVX2. Each function does, lane by lane, the steps of
 * its portable twin in ref/vector.c; tails of fewer than eight elements go through that twin. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kern/fmath.h"
#include "kern/ref/scalar.h"
#include "kern/target.h"
#include "kern/fills.h"
#include "kern/x86/avx2.h"
#include "kern/x86/avx2_sum16.h"
#include "quant/blocks.h"

MICA_TARGET_BEGIN("avx2,fma,f16c")

#define ROUND_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

/* ---- quantisation ---- */

MICA_INLINE uint32_t max_abs_bits(const float *x, int64_t n)
{
    const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i max = _mm256_setzero_si256();
    for (int64_t i = 0; i < n; i += 8)
        max = _mm256_max_epi32(max, _mm256_and_si256(mask, _mm256_loadu_si256((const __m256i *)(x + i))));
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

MICA_INLINE __m256i round8(const float *x, __m256 inverse)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

/* 32 floats to bytes, and the sums of each 16. */
MICA_INLINE void quantize_32_values(const float *x, __m256 inverse, int8_t *q, int16_t *sum)
{
    __m256i a = _mm256_packs_epi32(round8(x, inverse), round8(x + 8, inverse));
    __m256i b = _mm256_packs_epi32(round8(x + 16, inverse), round8(x + 24, inverse));
    __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)q, bytes);
    __m256i s = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
    s = _mm256_hadd_epi32(s, s);
    s = _mm256_hadd_epi32(s, s);
    sum[0] = (int16_t)_mm256_extract_epi32(s, 0);
    sum[1] = (int16_t)_mm256_extract_epi32(s, 4);
}

MICA_INLINE void quantize_block(const float *x, int64_t block, int8_t *q, float *d, int16_t *sum)
{
    uint32_t max = max_abs_bits(x, block);
    if (mica_quantize_odd_block(max, block, q, d, sum))
        return;
    float amax = mica_bits_f32(max);
    __m256 inverse = _mm256_set1_ps(127.0f / amax);
    *d = amax / 127.0f;
    for (int64_t i = 0; i < block; i += 32)
        quantize_32_values(x + i, inverse, q + i, sum + i / 16);
}

#include "kern/quantize_blocks.h"

/* ---- halves ---- */

static void widen_f16(const void *in, float *out, int64_t n)
{
    const uint16_t *h = in;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(h + i))));
    for (; i < n; i++)
        out[i] = mica_f16_to_f32(h[i]);
}

/* 16 signed bytes times d. */
MICA_INLINE void widen_16(__m128i bytes, __m256 d, float *out)
{
    _mm256_storeu_ps(out, _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))));
}

static void widen_q8_0(const void *in, float *out, int64_t n)
{
    const mica_block_q8_0 *b = in;
    for (int64_t i = 0; i < n; i += 32, b++) {
        __m256 d = _mm256_set1_ps(_cvtsh_ss(b->d));
        widen_16(_mm_loadu_si128((const __m128i *)b->qs), d, out + i);
        widen_16(_mm_loadu_si128((const __m128i *)(b->qs + 16)), d, out + i + 16);
    }
}

static void widen_q4_0(const void *in, float *out, int64_t n)
{
    const mica_block_q4_0 *b = in;
    const __m128i nibble = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
    for (int64_t i = 0; i < n; i += 32, b++) {
        __m256 d = _mm256_set1_ps(_cvtsh_ss(b->d));
        __m128i packed = _mm_loadu_si128((const __m128i *)b->qs);
        widen_16(_mm_sub_epi8(_mm_and_si128(packed, nibble), eight), d, out + i);
        widen_16(_mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(packed, 4), nibble), eight), d, out + i + 16);
    }
}

static void f32_to_f16(const float *in, uint16_t *out, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), ROUND_NEAREST));
    for (; i < n; i++)
        out[i] = mica_f32_to_f16(in[i]);
}

/* ---- element-wise ---- */

static void rmsnorm(const float *x, const float *w, float eps, float *out, int64_t n)
{
    float s = 1.0f / sqrtf(dot16(x, x, n) / (float)n + eps);
    __m256 sv = _mm256_set1_ps(s);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), sv), _mm256_loadu_ps(w + i)));
    for (; i < n; i++)
        out[i] = (x[i] * s) * w[i];
}

static void add(float *x, const float *y, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    for (; i < n; i++)
        x[i] = x[i] + y[i];
}

static void scale(float *x, float a, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(a)));
    for (; i < n; i++)
        x[i] = x[i] * a;
}

/* mica_expf() for eight lanes. */
MICA_INLINE __m256 exp8(__m256 x)
{
    __m256 below = _mm256_cmp_ps(x, _mm256_set1_ps(MICA_EXP_MIN), _CMP_LT_OQ);
    /* minps returns its second operand when either is NaN: NaN stays NaN */
    __m256 c = _mm256_min_ps(_mm256_set1_ps(MICA_EXP_MAX), x);
    __m256 n = _mm256_round_ps(_mm256_mul_ps(c, _mm256_set1_ps(1.44269504f)), ROUND_NEAREST);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0.693359375f), c);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.98756912e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.39819994e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.33345205e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.16657962e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.66666657e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.00000000e-1f));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));
    __m256i e = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_andnot_ps(below, _mm256_mul_ps(p, _mm256_castsi256_ps(e)));
}

MICA_INLINE __m256 tanh8(__m256 x)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    return _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), _mm256_add_ps(exp8(_mm256_add_ps(x, x)), one)));
}

static void silu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    const __m256 one = _mm256_set1_ps(1.0f), minus = _mm256_set1_ps(-0.0f);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 g = _mm256_loadu_ps(gate + i);
        __m256 s = _mm256_div_ps(g, _mm256_add_ps(one, exp8(_mm256_xor_ps(g, minus))));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(s, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; i++)
        out[i] = mica_silu_mul_element(gate[i], up[i]);
}

static void gelu_mul(const float *gate, const float *up, float *out, int64_t n)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 x = _mm256_loadu_ps(gate + i);
        __m256 cubic = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(0.044715f), x), x, one);
        __m256 inner = _mm256_mul_ps(_mm256_set1_ps(0.797884561f), _mm256_mul_ps(x, cubic));
        __m256 half = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), x), _mm256_add_ps(one, tanh8(inner)));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(half, _mm256_loadu_ps(up + i)));
    }
    for (; i < n; i++)
        out[i] = mica_gelu_mul_element(gate[i], up[i]);
}

MICA_INLINE void rotate8(__m256 u, __m256 v, __m256 c, __m256 s, __m256 *a, __m256 *b)
{
    *a = _mm256_fmsub_ps(u, c, _mm256_mul_ps(v, s)); /* fma(u, c, -(v s)) */
    *b = _mm256_fmadd_ps(u, s, _mm256_mul_ps(v, c));
}

/* Pairs (2i, 2i + 1), eight of them. */
MICA_INLINE void rope_adjacent8(float *x, __m256 c, __m256 s)
{
    __m256 lo = _mm256_loadu_ps(x), hi = _mm256_loadu_ps(x + 8), a, b;
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    __m256 u = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(lo, hi, 0x88), order);
    __m256 v = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(lo, hi, 0xDD), order);
    rotate8(u, v, c, s, &a, &b);
    __m256 even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);
    _mm256_storeu_ps(x, _mm256_permute2f128_ps(even, odd, 0x20));
    _mm256_storeu_ps(x + 8, _mm256_permute2f128_ps(even, odd, 0x31));
}

static void rope(float *x, const float *cs, int64_t n, bool neox)
{
    int64_t half = n / 2, i = 0;
    for (; i + 8 <= half; i += 8) {
        __m256 c = _mm256_loadu_ps(cs + i), s = _mm256_loadu_ps(cs + half + i), a, b;
        if (neox) {
            rotate8(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + half + i), c, s, &a, &b);
            _mm256_storeu_ps(x + i, a);
            _mm256_storeu_ps(x + half + i, b);
        } else {
            rope_adjacent8(x + 2 * i, c, s);
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
        for (; t + 4 <= n_t; t += 4) { /* four positions hide the latency of the chains */
            sum16 p[4] = {sum16_zero(), sum16_zero(), sum16_zero(), sum16_zero()};
            for (int64_t i = 0; i < dim; i += 16) {
                __m256 a = _mm256_loadu_ps(q + i), b = _mm256_loadu_ps(q + i + 8);
                UNROLL for (int j = 0; j < 4; j++) {
                    const float *row = k + (t + j) * dim + i;
                    p[j].low = _mm256_fmadd_ps(a, _mm256_loadu_ps(row), p[j].low);
                    p[j].high = _mm256_fmadd_ps(b, _mm256_loadu_ps(row + 8), p[j].high);
                }
            }
            UNROLL for (int j = 0; j < 4; j++)
                s[t + j] = sum16_tree(p[j]) * factor;
        }
    }
    for (; t < n_t; t++)
        s[t] = dot16(q, k + t * dim, dim) * factor;
}

static void softcap(float *s, float cap, int64_t n)
{
    __m256 c = _mm256_set1_ps(cap);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(s + i, _mm256_mul_ps(c, tanh8(_mm256_div_ps(_mm256_loadu_ps(s + i), c))));
    for (; i < n; i++)
        s[i] = mica_softcap_element(s[i], cap);
}

static float exp_sum(float *s, float max, int64_t n)
{
    __m256 m = _mm256_set1_ps(max);
    sum16 p = sum16_zero();
    float rest[16], one[16];
    int64_t i = 0, tail = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 a = exp8(_mm256_sub_ps(_mm256_loadu_ps(s + i), m)), b = exp8(_mm256_sub_ps(_mm256_loadu_ps(s + i + 8), m));
        _mm256_storeu_ps(s + i, a);
        _mm256_storeu_ps(s + i + 8, b);
        p.low = _mm256_add_ps(p.low, a);
        p.high = _mm256_add_ps(p.high, b);
    }
    for (; i < n; i++, tail++) {
        s[i] = mica_expf(s[i] - max);
        rest[tail] = s[i];
        one[tail] = 1.0f; /* fma(x, 1, p) is x + p */
    }
    return sum16_finish(p, rest, one, tail);
}

/* `count` registers of the output through all positions. */
MICA_INLINE void pv_columns(float *o, __m256 alpha, const float *p, const float *v, int64_t n_t, int64_t dim, int count)
{
    __m256 acc[8];
    UNROLL for (int j = 0; j < count; j++)
        acc[j] = _mm256_mul_ps(_mm256_loadu_ps(o + 8 * j), alpha);
    for (int64_t t = 0; t < n_t; t++) {
        __m256 pt = _mm256_set1_ps(p[t]);
        UNROLL for (int j = 0; j < count; j++)
            acc[j] = _mm256_fmadd_ps(pt, _mm256_loadu_ps(v + t * dim + 8 * j), acc[j]);
    }
    UNROLL for (int j = 0; j < count; j++)
        _mm256_storeu_ps(o + 8 * j, acc[j]);
}

static void pv_one(float *o, float alpha, const float *p, const float *v, int64_t n_t, int64_t dim)
{
    __m256 a = _mm256_set1_ps(alpha);
    int64_t i = 0;
    for (; i + 64 <= dim; i += 64)
        pv_columns(o + i, a, p, v + i, n_t, dim, 8);
    for (; i + 8 <= dim; i += 8)
        pv_columns(o + i, a, p, v + i, n_t, dim, 1);
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
    if (n < 8) {
        float best = x[0];
        for (int64_t i = 1; i < n; i++)
            best = x[i] > best || best != best ? x[i] : best;
        return best;
    }
    /* maxps(x, best) is best when x is NaN: a NaN is ignored unless it is first, so NaNs start as -infinity */
    __m256 best = _mm256_set1_ps(-INFINITY);
    for (int64_t i = 0; i + 8 <= n; i += 8)
        best = _mm256_max_ps(_mm256_loadu_ps(x + i), best);
    best = _mm256_max_ps(_mm256_loadu_ps(x + n - 8), best);
    float all[8], result = -INFINITY;
    bool number = false;
    _mm256_storeu_ps(all, best);
    for (int i = 0; i < 8; i++)
        result = all[i] > result ? all[i] : result;
    for (int64_t i = 0; i < n && result == -INFINITY && !number; i++)
        number = x[i] == x[i];
    return result > -INFINITY || number ? result : NAN;
}

MICA_TARGET_END

void mica_kernels_fill_avx2(mica_kernels *k)
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
    mica_avx2_fill_matmul(k);
    mica_avx2_fill_float(k);
}
#endif
