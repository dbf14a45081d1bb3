/* avx512_vector.c - attention and norms with AVX-512: the 16 partial sums of the law are one register. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "kern/fmath.h"
#include "kern/kern.h"
#include "kern/target.h"
#include "kern/x86/avx512.h"
#include "quant/blocks.h"

MICA_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")

/* The tree of the law: p[i] + p[i + 8], then + 4, + 2, + 1. */
MICA_INLINE float tree16(__m512 p)
{
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

MICA_INLINE __mmask16 first(int64_t n) { return (__mmask16)((1u << n) - 1); }

/* A product that a masked-off lane does not take part in leaves the partial sum as it is. */
MICA_INLINE float dot16(const float *a, const float *b, int64_t n)
{
    __m512 p = _mm512_setzero_ps();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        p = _mm512_fmadd_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i), p);
    if (i < n)
        p = _mm512_mask3_fmadd_ps(_mm512_maskz_loadu_ps(first(n - i), a + i), _mm512_maskz_loadu_ps(first(n - i), b + i), p, first(n - i));
    return tree16(p);
}

static void widen_f16(const void *in, float *out, int64_t n)
{
    const uint16_t *h = in;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(h + i))));
    for (; i < n; i++)
        out[i] = mica_f16_to_f32(h[i]);
}

/* 16 signed bytes times d. */
MICA_INLINE void widen_16(__m128i bytes, __m512 d, float *out)
{
    _mm512_storeu_ps(out, _mm512_mul_ps(d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))));
}

static void widen_q8_0(const void *in, float *out, int64_t n)
{
    const mica_block_q8_0 *b = in;
    for (int64_t i = 0; i < n; i += 32, b++) {
        __m512 d = _mm512_set1_ps(_cvtsh_ss(b->d));
        widen_16(_mm_loadu_si128((const __m128i *)b->qs), d, out + i);
        widen_16(_mm_loadu_si128((const __m128i *)(b->qs + 16)), d, out + i + 16);
    }
}

static void widen_q4_0(const void *in, float *out, int64_t n)
{
    const mica_block_q4_0 *b = in;
    const __m128i nibble = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
    for (int64_t i = 0; i < n; i += 32, b++) {
        __m512 d = _mm512_set1_ps(_cvtsh_ss(b->d));
        __m128i packed = _mm_loadu_si128((const __m128i *)b->qs);
        widen_16(_mm_sub_epi8(_mm_and_si128(packed, nibble), eight), d, out + i);
        widen_16(_mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(packed, 4), nibble), eight), d, out + i + 16);
    }
}

static void rmsnorm(const float *x, const float *w, float eps, float *out, int64_t n)
{
    float s = 1.0f / sqrtf(dot16(x, x, n) / (float)n + eps);
    __m512 sv = _mm512_set1_ps(s);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), sv), _mm512_loadu_ps(w + i)));
    for (; i < n; i++)
        out[i] = (x[i] * s) * w[i];
}

/* ---- q k ---- */

/* Sums of 16 registers at once: lane t is tree16(p[t]). Each step adds the halves of the sums of two positions and puts them side by
 * side, so that it is the tree's own step. */
MICA_INLINE __m512 tree16_of_16(const __m512 p[16])
{
    __m512 a[8], b[4], c[2];
    UNROLL for (int i = 0; i < 8; i++) /* p[i] + p[i + 8]: 8 lanes of position i, 8 of position i + 8 */
        a[i] = _mm512_add_ps(_mm512_shuffle_f32x4(p[i], p[i + 8], 0x44), _mm512_shuffle_f32x4(p[i], p[i + 8], 0xEE));
    UNROLL for (int i = 0; i < 4; i++) /* 4 lanes each of i, i + 4, i + 8, i + 12, in the order i, i + 8, i + 4, i + 12 */
        b[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a[i], a[i + 4], 0x88), _mm512_shuffle_f32x4(a[i], a[i + 4], 0xDD));
    UNROLL for (int i = 0; i < 2; i++) /* within 128 bits: elements 0, 1 plus 2, 3 */
        c[i] = _mm512_add_ps(_mm512_shuffle_ps(b[i], b[i + 2], 0x44), _mm512_shuffle_ps(b[i], b[i + 2], 0xEE));
    __m512 d = _mm512_add_ps(_mm512_shuffle_ps(c[0], c[1], 0x88), _mm512_shuffle_ps(c[0], c[1], 0xDD));
    /* d: 128-bit lane L has positions x, x + 2, x + 1, x + 3 with x = 0, 8, 4, 12 */
    const __m512i order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
    return _mm512_permutexvar_ps(order, d);
}

/* 16 sums: `heads` queries that share the keys of 16 / heads positions, so that a key is loaded once for all of them. */
MICA_INLINE void qk_16(const float *q, const float *k, int64_t dim, float factor, float *s, int heads)
{
    __m512 p[16];
    const int n_t = 16 / heads;
    UNROLL for (int j = 0; j < 8; j++)
        p[j] = p[j + 8] = _mm512_setzero_ps();
    for (int64_t i = 0; i < dim; i += 16) {
        __m512 a[4];
        UNROLL for (int h = 0; h < heads; h++)
            a[h] = _mm512_loadu_ps(q + h * dim + i);
        UNROLL for (int t = 0; t < n_t; t++) {
            __m512 b = _mm512_loadu_ps(k + t * dim + i);
            UNROLL for (int h = 0; h < heads; h++)
                p[h * n_t + t] = _mm512_fmadd_ps(a[h], b, p[h * n_t + t]);
        }
    }
    float sums[16];
    _mm512_storeu_ps(sums, _mm512_mul_ps(tree16_of_16(p), _mm512_set1_ps(factor)));
    UNROLL for (int h = 0; h < heads; h++)
        memcpy(s + h * MICA_ATTN_TILE, sums + h * n_t, (size_t)n_t * sizeof *sums);
}

MICA_INLINE void qk_heads(const float *q, const float *k, int64_t n_t, int64_t dim, float factor, float *s, int heads)
{
    int64_t t = 0, step = 16 / heads;
    for (; dim % 16 == 0 && t + step <= n_t; t += step)
        qk_16(q, k + t * dim, dim, factor, s + t, heads);
    if (heads == 3 && t > 0 && t < n_t) { /* five do not divide a tile: some positions once more */
        t = n_t - step;
        qk_16(q, k + t * dim, dim, factor, s + t, heads);
        t = n_t;
    }
    for (; t < n_t; t++)
        UNROLL for (int h = 0; h < heads; h++)
            s[h * MICA_ATTN_TILE + t] = dot16(q + h * dim, k + t * dim, dim) * factor;
}

static void qk(const float *q, int64_t n_q, const float *k, int64_t n_t, int64_t dim, float factor, float *s)
{
    int64_t j = 0;
    for (; j + 4 <= n_q; j += 4)
        qk_heads(q + j * dim, k, n_t, dim, factor, s + j * MICA_ATTN_TILE, 4);
    for (; j + 3 <= n_q; j += 3)
        qk_heads(q + j * dim, k, n_t, dim, factor, s + j * MICA_ATTN_TILE, 3);
    for (; j + 2 <= n_q; j += 2)
        qk_heads(q + j * dim, k, n_t, dim, factor, s + j * MICA_ATTN_TILE, 2);
    if (j < n_q)
        qk_heads(q + j * dim, k, n_t, dim, factor, s + j * MICA_ATTN_TILE, 1);
}

/* ---- softmax ---- */

/* mica_expf() for 16 lanes. */
MICA_INLINE __m512 exp16(__m512 x)
{
    __mmask16 live = _mm512_cmp_ps_mask(x, _mm512_set1_ps(MICA_EXP_MIN), _CMP_NLT_UQ);
    __m512 c = _mm512_min_ps(_mm512_set1_ps(MICA_EXP_MAX), x); /* NaN stays NaN */
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(c, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0.693359375f), c);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.98756912e-4f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.39819994e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.33345205e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.16657962e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.66666657e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.00000000e-1f));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1.0f));
    __m512i e = _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23);
    return _mm512_maskz_mul_ps(live, p, _mm512_castsi512_ps(e));
}

static float exp_sum(float *s, float max, int64_t n)
{
    __m512 m = _mm512_set1_ps(max), p = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 part = n - i < 16 ? first(n - i) : (__mmask16)0xFFFF;
        __m512 e = exp16(_mm512_sub_ps(_mm512_maskz_loadu_ps(part, s + i), m));
        _mm512_mask_storeu_ps(s + i, part, e);
        p = _mm512_mask_add_ps(p, part, p, e);
    }
    return tree16(p);
}

/* ---- p v ---- */

/* `count` registers of the output of each of `heads` queries through all positions: eight or so hide the latency of the chains. */
MICA_INLINE void pv_columns(float *o, const float *alpha, const float *p, const float *v, int64_t n_t, int64_t dim, int heads,
                            int count)
{
    __m512 acc[4][8];
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int j = 0; j < count; j++)
            acc[h][j] = _mm512_mul_ps(_mm512_loadu_ps(o + h * dim + 16 * j), _mm512_set1_ps(alpha[h]));
    for (int64_t t = 0; t < n_t; t++) {
        __m512 pt[4];
        UNROLL for (int h = 0; h < heads; h++)
            pt[h] = _mm512_set1_ps(p[h * MICA_ATTN_TILE + t]);
        UNROLL for (int j = 0; j < count; j++) {
            __m512 vt = _mm512_loadu_ps(v + t * dim + 16 * j);
            UNROLL for (int h = 0; h < heads; h++)
                acc[h][j] = _mm512_fmadd_ps(pt[h], vt, acc[h][j]);
        }
    }
    UNROLL for (int h = 0; h < heads; h++)
        UNROLL for (int j = 0; j < count; j++)
            _mm512_storeu_ps(o + h * dim + 16 * j, acc[h][j]);
}

/* Columns the registers do not divide. */
static void pv_rest(float *o, float alpha, const float *p, const float *v, int64_t n_t, int64_t dim, int64_t i)
{
    for (; i < dim; i++) {
        float acc = o[i] * alpha;
        for (int64_t t = 0; t < n_t; t++)
            acc = fmaf(p[t], v[t * dim + i], acc);
        o[i] = acc;
    }
}

MICA_INLINE void pv_heads(float *o, const float *alpha, const float *p, const float *v, int64_t n_t, int64_t dim, int heads,
                          int wide)
{
    int64_t i = 0;
    for (; i + 16 * wide <= dim; i += 16 * wide)
        pv_columns(o + i, alpha, p, v + i, n_t, dim, heads, wide);
    for (; wide > 4 && i + 64 <= dim; i += 64)
        pv_columns(o + i, alpha, p, v + i, n_t, dim, heads, 4);
    for (; i + 16 <= dim; i += 16)
        pv_columns(o + i, alpha, p, v + i, n_t, dim, heads, 1);
    for (int h = 0; h < heads; h++)
        pv_rest(o + h * dim, alpha[h], p + h * MICA_ATTN_TILE, v, n_t, dim, i);
}

static void pv(float *o, int64_t n_q, const float *alpha, const float *p, const float *v, int64_t n_t, int64_t dim)
{
    int64_t j = 0;
    for (; j + 4 <= n_q; j += 4)
        pv_heads(o + j * dim, alpha + j, p + j * MICA_ATTN_TILE, v, n_t, dim, 4, 4);
    for (; j + 3 <= n_q; j += 3)
        pv_heads(o + j * dim, alpha + j, p + j * MICA_ATTN_TILE, v, n_t, dim, 3, 4);
    for (; j + 2 <= n_q; j += 2)
        pv_heads(o + j * dim, alpha + j, p + j * MICA_ATTN_TILE, v, n_t, dim, 2, 4);
    if (j < n_q)
        pv_heads(o + j * dim, alpha + j, p + j * MICA_ATTN_TILE, v, n_t, dim, 1, 8);
    _mm256_zeroupper(); /* gcc 12 forgets it behind the call of pv_rest(), and code without AVX is ten times as slow until the next one */
}

MICA_TARGET_END

void mica_avx512_fill_vector(mica_kernels *k)
{
    k->widen[MICA_TYPE_F16] = widen_f16;
    k->widen[MICA_TYPE_Q8_0] = widen_q8_0;
    k->widen[MICA_TYPE_Q4_0] = widen_q4_0;
    k->rmsnorm = rmsnorm;
    k->qk = qk;
    k->exp_sum = exp_sum;
    k->pv = pv;
}
#endif
