/* immintrin.h - stands in for the compiler's: the intrinsics of AVX-512 and AVX-VNNI from SIMDe, so that such kernels run where
 * there is only AVX2 (tests/emulated.py). The compiler must be given AVX2, FMA and F16C: SIMDe's own replacement of fma rounds twice. */
#ifndef MICA_TESTS_SIMDE_IMMINTRIN_H
#define MICA_TESTS_SIMDE_IMMINTRIN_H
#if !defined(__FMA__) || !defined(__F16C__) || defined(__AVX512F__)
#error "compile with -mavx2 -mfma -mf16c and without AVX-512"
#endif
#include_next <immintrin.h>
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <stdint.h>
#include <string.h>

#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32 simde_mm256_dpbusd_epi32 /* the same in the encoding of AVX-VNNI */
#undef _mm256_dpbusd_epi32
#define _mm256_dpbusd_epi32 simde_mm256_dpbusd_epi32

/* What SIMDe 0.7.4 (Debian 12) lacks, on arrays. A kernel that uses another such intrinsic fails to compile: "inlining failed
 * in call to always_inline _mm512_...". */
typedef union emulated_512 {
    simde__m512 f;
    simde__m512i i;
    __m128 f128[4];
    __m256 f256[2];
    __m256i i256[2];
    float lane[16];
    uint32_t word[16];
    uint64_t pair[8];
    __m128i i128[4];
} emulated_512;

static inline simde__m512 emulated_maskz_loadu_ps(uint16_t mask, const float *p)
{
    emulated_512 r;
    for (int i = 0; i < 16; i++)
        r.lane[i] = mask >> i & 1 ? p[i] : 0.0f;
    return r.f;
}
#define _mm512_maskz_loadu_ps emulated_maskz_loadu_ps

static inline void emulated_mask_storeu_ps(float *p, uint16_t mask, simde__m512 a)
{
    emulated_512 v = {.f = a};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            p[i] = v.lane[i];
}
#define _mm512_mask_storeu_ps emulated_mask_storeu_ps

static inline simde__m512 emulated_mask3_fmadd_ps(simde__m512 a, simde__m512 b, simde__m512 c, uint16_t mask)
{
    emulated_512 x = {.f = a}, y = {.f = b}, z = {.f = c};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            z.lane[i] = __builtin_fmaf(x.lane[i], y.lane[i], z.lane[i]);
    return z.f;
}
#define _mm512_mask3_fmadd_ps emulated_mask3_fmadd_ps

static inline simde__m512 emulated_cvtepi32_ps(simde__m512i a)
{
    emulated_512 v = {.i = a}, r;
    for (int i = 0; i < 2; i++)
        r.f256[i] = _mm256_cvtepi32_ps(v.i256[i]);
    return r.f;
}
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps

static inline simde__m512i emulated_cvtepi8_epi32(__m128i a)
{
    emulated_512 r = {.i256 = {_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8))}};
    return r.i;
}
#define _mm512_cvtepi8_epi32 emulated_cvtepi8_epi32

static inline simde__m512i emulated_cvtps_epi32(simde__m512 a)
{
    emulated_512 v = {.f = a}, r;
    for (int i = 0; i < 2; i++)
        r.i256[i] = _mm256_cvtps_epi32(v.f256[i]);
    return r.i;
}
#define _mm512_cvtps_epi32 emulated_cvtps_epi32

static inline simde__m512 emulated_cvtph_ps(__m256i a)
{
    emulated_512 r = {.f256 = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))}};
    return r.f;
}
#define _mm512_cvtph_ps emulated_cvtph_ps

static inline __m256 emulated_extractf32x8_ps(simde__m512 a, int half)
{
    emulated_512 v = {.f = a};
    return v.f256[half];
}
#define _mm512_extractf32x8_ps emulated_extractf32x8_ps

static inline simde__m512 emulated_shuffle_f32x4(simde__m512 a, simde__m512 b, int order)
{
    emulated_512 x = {.f = a}, y = {.f = b}, r;
    for (int i = 0; i < 4; i++)
        r.f128[i] = (i < 2 ? x : y).f128[order >> (2 * i) & 3];
    return r.f;
}
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4 emulated_shuffle_f32x4

/* The 4 bytes at `base` + each lane of `place`. */
static inline simde__m512i emulated_i32gather_epi32(simde__m512i place, const void *base)
{
    emulated_512 v = {.i = place}, r;
    for (int i = 0; i < 16; i++)
        memcpy(&r.word[i], (const char *)base + (int32_t)v.word[i], 4);
    return r.i;
}
#undef _mm512_i32gather_epi32
#define _mm512_i32gather_epi32(place, base, scale) emulated_i32gather_epi32(place, base)

static inline simde__m512i emulated_mask_broadcast_i32x4(simde__m512i a, uint16_t mask, __m128i b)
{
    emulated_512 r = {.i = a}, x = {.i128 = {b, b, b, b}};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1)
            r.word[i] = x.word[i];
    return r.i;
}
#undef _mm512_mask_broadcast_i32x4
#define _mm512_mask_broadcast_i32x4 emulated_mask_broadcast_i32x4

static inline __m256i emulated_cvtepi32_epi16(simde__m512i a)
{
    emulated_512 v = {.i = a};
    uint16_t r[16];
    for (int i = 0; i < 16; i++)
        r[i] = (uint16_t)v.word[i];
    return _mm256_loadu_si256((const __m256i *)(const void *)r);
}
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 emulated_cvtepi32_epi16

static inline simde__m512i emulated_unpack_epi32(simde__m512i a, simde__m512i b, int high)
{
    emulated_512 x = {.i = a}, y = {.i = b}, r;
    for (int i = 0; i < 16; i++)
        r.word[i] = (i & 1 ? y : x).word[(i & ~3) + 2 * high + (i & 2) / 2];
    return r.i;
}
#undef _mm512_unpacklo_epi32
#define _mm512_unpacklo_epi32(a, b) emulated_unpack_epi32(a, b, 0)
#undef _mm512_unpackhi_epi32
#define _mm512_unpackhi_epi32(a, b) emulated_unpack_epi32(a, b, 1)

static inline simde__m512i emulated_unpack_epi64(simde__m512i a, simde__m512i b, int high)
{
    emulated_512 x = {.i = a}, y = {.i = b}, r;
    for (int i = 0; i < 8; i++)
        r.pair[i] = (i & 1 ? y : x).pair[(i & ~1) + high];
    return r.i;
}
#undef _mm512_unpacklo_epi64
#define _mm512_unpacklo_epi64(a, b) emulated_unpack_epi64(a, b, 0)
#undef _mm512_unpackhi_epi64
#define _mm512_unpackhi_epi64(a, b) emulated_unpack_epi64(a, b, 1)

#endif
