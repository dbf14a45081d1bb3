/* avx2_formats.h - how AVX2 reads each weight format: 32 weights of a block as bytes, and the scales of a 256-weight block.
 *
 * unpack(block, j): weights 32j..32j+31 in order, as unsigned bytes with a constant offset `bias` still in them, or signed.
 * scales(block, sc, mn): sub-scales (and mins) of a 256-weight block, one int16 for 16 weights, even ones in the low half of
 * the register, odd ones in the high half: so shuffle pattern j gives both scales of the 32 weights j.
 */
#ifndef MICA_KERN_X86_AVX2_FORMATS_H
#define MICA_KERN_X86_AVX2_FORMATS_H
#include <immintrin.h>
#include <string.h>

#include "kern/kern.h"
#include "kern/target.h"
#include "quant/blocks.h"

MICA_TARGET_BEGIN("avx2,fma,f16c")

/** All compile-time constants: the generic code is specialised for each format by inlining. */
typedef struct avx2_format {
    __m256i (*unpack)(const uint8_t *block, int j);
    void (*scales)(const uint8_t *block, __m256i *sc, __m256i *mn); /* 256-weight formats */
    int type, block, bytes;
    int bias;       /* subtract from every weight */
    bool is_signed; /* bytes are signed: no bias */
    bool sub16;     /* scales change every 16 weights rather than 32 */
    bool has_min;
    int d_offset; /* of the f16 scale in the block; m follows it where there is one */
    int groups;   /* products of 4 weights that an int16 lane may sum: groups * 2 * 127 * max weight <= 32767 */
} avx2_format;

MICA_INLINE __m256i nibbles32(const uint8_t *qs)
{
    __m128i packed = _mm_loadu_si128((const __m128i *)qs);
    __m256i both = _mm256_set_m128i(_mm_srli_epi16(packed, 4), packed);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

MICA_INLINE __m256i nibbles_of_64(const uint8_t *qs, int high)
{
    __m256i packed = _mm256_loadu_si256((const __m256i *)qs);
    return _mm256_and_si256(high ? _mm256_srli_epi16(packed, 4) : packed, _mm256_set1_epi8(15));
}

/* Bit i of the 32 bits at qh becomes 16 in byte i. */
MICA_INLINE __m256i fifth_bits(const uint8_t *qh)
{
    int32_t bits;
    memcpy(&bits, qh, 4);
    const __m256i pick = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i mask = _mm256_set1_epi64x((int64_t)0x8040201008040201ull);
    __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), pick), mask);
    return _mm256_and_si256(_mm256_cmpeq_epi8(spread, mask), _mm256_set1_epi8(16));
}

MICA_INLINE __m256i iq4_values(__m256i nibbles)
{
    __m128i levels = _mm_loadu_si128((const __m128i *)mica_iq4_levels);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), nibbles);
}

MICA_INLINE __m256i unpack_q4_0(const uint8_t *b, int j) { (void)j; return nibbles32(b + 2); }
MICA_INLINE __m256i unpack_q4_1(const uint8_t *b, int j) { (void)j; return nibbles32(b + 4); }
MICA_INLINE __m256i unpack_q5_0(const uint8_t *b, int j) { (void)j; return _mm256_or_si256(nibbles32(b + 6), fifth_bits(b + 2)); }
MICA_INLINE __m256i unpack_q5_1(const uint8_t *b, int j) { (void)j; return _mm256_or_si256(nibbles32(b + 8), fifth_bits(b + 4)); }
MICA_INLINE __m256i unpack_q8_0(const uint8_t *b, int j) { (void)j; return _mm256_loadu_si256((const __m256i *)(b + 2)); }
MICA_INLINE __m256i unpack_iq4_nl(const uint8_t *b, int j) { (void)j; return iq4_values(nibbles32(b + 2)); }

MICA_INLINE __m256i unpack_q4_k(const uint8_t *b, int j)
{
    return nibbles_of_64(((const mica_block_q4_k *)b)->qs + 32 * (j / 2), j & 1);
}

MICA_INLINE __m256i unpack_q5_k(const uint8_t *b, int j)
{
    const mica_block_q5_k *block = (const mica_block_q5_k *)b;
    __m256i high = _mm256_loadu_si256((const __m256i *)block->qh);
    high = _mm256_and_si256(_mm256_slli_epi16(_mm256_srli_epi16(high, j), 4), _mm256_set1_epi8(16));
    return _mm256_or_si256(nibbles_of_64(block->qs + 32 * (j / 2), j & 1), high);
}

MICA_INLINE __m256i unpack_q6_k(const uint8_t *b, int j)
{
    const mica_block_q6_k *block = (const mica_block_q6_k *)b;
    int half = j / 4, quarter = j % 4;
    __m256i high = _mm256_loadu_si256((const __m256i *)(block->qh + 32 * half));
    high = _mm256_and_si256(_mm256_slli_epi16(_mm256_srli_epi16(high, 2 * quarter), 4), _mm256_set1_epi8(48));
    return _mm256_or_si256(nibbles_of_64(block->ql + 64 * half + 32 * (quarter & 1), quarter / 2), high);
}

MICA_INLINE __m256i pairs_of_bits(const uint8_t *qs, int j)
{
    __m256i packed = _mm256_loadu_si256((const __m256i *)(qs + 32 * (j / 4)));
    return _mm256_and_si256(_mm256_srli_epi16(packed, 2 * (j % 4)), _mm256_set1_epi8(3));
}

MICA_INLINE __m256i unpack_q2_k(const uint8_t *b, int j) { return pairs_of_bits(((const mica_block_q2_k *)b)->qs, j); }

MICA_INLINE __m256i unpack_q3_k(const uint8_t *b, int j)
{
    const mica_block_q3_k *block = (const mica_block_q3_k *)b;
    __m256i high = _mm256_loadu_si256((const __m256i *)block->hmask);
    high = _mm256_and_si256(_mm256_slli_epi16(_mm256_srli_epi16(high, j), 2), _mm256_set1_epi8(4));
    return _mm256_or_si256(pairs_of_bits(block->qs, j), high);
}

MICA_INLINE __m256i unpack_iq4_xs(const uint8_t *b, int j)
{
    return iq4_values(nibbles32(((const mica_block_iq4_xs *)b)->qs + 16 * j));
}

/* 16 bytes, one for 16 weights, to int16 with the even ones low and the odd ones high. */
MICA_INLINE __m256i even_odd(__m128i bytes, bool is_signed)
{
    __m128i order = _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    return is_signed ? _mm256_cvtepi8_epi16(order) : _mm256_cvtepu8_epi16(order);
}

/* 8 bytes, one for 32 weights: both halves are the same. */
MICA_INLINE __m256i twice(uint64_t bytes)
{
    return _mm256_broadcastsi128_si256(_mm_cvtepu8_epi16(_mm_cvtsi64_si128((int64_t)bytes)));
}

/* Q4_K and Q5_K: eight 6-bit scales and eight 6-bit mins in 12 bytes. */
MICA_INLINE void scales_6bit(const uint8_t *packed, __m256i *sc, __m256i *mn)
{
    uint32_t a, b, c;
    memcpy(&a, packed, 4);
    memcpy(&b, packed + 4, 4);
    memcpy(&c, packed + 8, 4);
    uint32_t scale_low = a & 0x3F3F3F3Fu, min_low = b & 0x3F3F3F3Fu;
    uint32_t scale_high = (c & 0x0F0F0F0Fu) | ((a >> 2) & 0x30303030u);
    uint32_t min_high = ((c >> 4) & 0x0F0F0F0Fu) | ((b >> 2) & 0x30303030u);
    *sc = twice(scale_low | (uint64_t)scale_high << 32);
    *mn = twice(min_low | (uint64_t)min_high << 32);
}

MICA_INLINE void scales_q4_k(const uint8_t *b, __m256i *sc, __m256i *mn)
{
    scales_6bit(((const mica_block_q4_k *)b)->scales, sc, mn);
}

MICA_INLINE void scales_q5_k(const uint8_t *b, __m256i *sc, __m256i *mn)
{
    scales_6bit(((const mica_block_q5_k *)b)->scales, sc, mn);
}

MICA_INLINE void scales_q6_k(const uint8_t *b, __m256i *sc, __m256i *mn)
{
    (void)mn;
    *sc = even_odd(_mm_loadu_si128((const __m128i *)((const mica_block_q6_k *)b)->scales), true);
}

MICA_INLINE void scales_q2_k(const uint8_t *b, __m256i *sc, __m256i *mn)
{
    __m128i packed = _mm_loadu_si128((const __m128i *)((const mica_block_q2_k *)b)->scales);
    *sc = even_odd(_mm_and_si128(packed, _mm_set1_epi8(15)), false);
    *mn = even_odd(_mm_and_si128(_mm_srli_epi16(packed, 4), _mm_set1_epi8(15)), false);
}

/* Q3_K: low 4 bits of 16 scales in 8 bytes, high 2 bits in 4 bytes; 32 is subtracted. */
MICA_INLINE void scales_q3_k(const uint8_t *b, __m256i *sc, __m256i *mn)
{
    (void)mn;
    uint64_t low;
    uint32_t high;
    memcpy(&low, ((const mica_block_q3_k *)b)->scales, 8);
    memcpy(&high, ((const mica_block_q3_k *)b)->scales + 8, 4);
    __m128i nibbles = _mm_and_si128(_mm_set_epi64x((int64_t)(low >> 4), (int64_t)low), _mm_set1_epi8(15));
    __m128i bits = _mm_setr_epi32((int)high, (int)(high >> 2), (int)(high >> 4), (int)(high >> 6));
    bits = _mm_slli_epi16(_mm_and_si128(bits, _mm_set1_epi8(3)), 4);
    *sc = even_odd(_mm_sub_epi8(_mm_or_si128(nibbles, bits), _mm_set1_epi8(32)), true);
}

MICA_INLINE void scales_iq4_xs(const uint8_t *b, __m256i *sc, __m256i *mn)
{
    (void)mn;
    const mica_block_iq4_xs *block = (const mica_block_iq4_xs *)b;
    int8_t s[8];
    for (int j = 0; j < 8; j++)
        s[j] = (int8_t)(((block->scales_l[j / 2] >> (4 * (j % 2)) & 15) | (block->scales_h >> (2 * j) & 3) << 4) - 32);
    int64_t bytes;
    memcpy(&bytes, s, 8);
    *sc = _mm256_broadcastsi128_si256(_mm_cvtepi8_epi16(_mm_cvtsi64_si128(bytes)));
}

static const avx2_format format_q4_0 = {.type = MICA_TYPE_Q4_0, .unpack = unpack_q4_0, .block = 32, .bytes = 18, .bias = 8, .groups = 8};
static const avx2_format format_q4_1 = {.type = MICA_TYPE_Q4_1, .unpack = unpack_q4_1, .block = 32, .bytes = 20, .has_min = true, .groups = 8};
static const avx2_format format_q5_0 = {.type = MICA_TYPE_Q5_0, .unpack = unpack_q5_0, .block = 32, .bytes = 22, .bias = 16, .groups = 4};
static const avx2_format format_q5_1 = {.type = MICA_TYPE_Q5_1, .unpack = unpack_q5_1, .block = 32, .bytes = 24, .has_min = true, .groups = 4};
static const avx2_format format_q8_0 = {.type = MICA_TYPE_Q8_0, .unpack = unpack_q8_0, .block = 32, .bytes = 34, .is_signed = true, .groups = 1};
static const avx2_format format_iq4_nl = {.type = MICA_TYPE_IQ4_NL, .unpack = unpack_iq4_nl, .block = 32, .bytes = 18, .is_signed = true, .groups = 1};
static const avx2_format format_q2_k = {.type = MICA_TYPE_Q2_K, .unpack = unpack_q2_k, .scales = scales_q2_k, .block = 256, .bytes = 84, .sub16 = true,
                                        .has_min = true, .d_offset = 80, .groups = 8};
static const avx2_format format_q3_k = {.type = MICA_TYPE_Q3_K, .unpack = unpack_q3_k, .scales = scales_q3_k, .block = 256, .bytes = 110, .bias = 4,
                                        .sub16 = true, .d_offset = 108, .groups = 8};
static const avx2_format format_q4_k = {.type = MICA_TYPE_Q4_K, .unpack = unpack_q4_k, .scales = scales_q4_k, .block = 256, .bytes = 144,
                                        .has_min = true, .groups = 8};
static const avx2_format format_q5_k = {.type = MICA_TYPE_Q5_K, .unpack = unpack_q5_k, .scales = scales_q5_k, .block = 256, .bytes = 176,
                                        .has_min = true, .groups = 4};
static const avx2_format format_q6_k = {.type = MICA_TYPE_Q6_K, .unpack = unpack_q6_k, .scales = scales_q6_k, .block = 256, .bytes = 210, .bias = 32,
                                        .sub16 = true, .d_offset = 208, .groups = 2};
static const avx2_format format_iq4_xs = {.type = MICA_TYPE_IQ4_XS, .unpack = unpack_iq4_xs, .scales = scales_iq4_xs, .block = 256, .bytes = 136,
                                          .is_signed = true, .groups = 1};

MICA_TARGET_END
#endif
