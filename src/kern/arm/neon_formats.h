/* neon_formats.h - how the ARM kernels read each weight format: 32 weights of a block as bytes, and the scales of a 256-weight
 * block. Included after MICA_TARGET_BEGIN: the functions are compiled for the set that includes them.
 *
 * unpack(block, j): weights 32j..32j+31 in order, as bytes. A constant offset `bias` may still be in them; they are then 0..63.
 * scales(block, sc, mn): sub-scales (and mins) of a 256-weight block: 16 of them, or 8 in sc[0] where one serves 32 weights.
 */
#ifndef MICA_KERN_ARM_NEON_FORMATS_H
#define MICA_KERN_ARM_NEON_FORMATS_H
#include <string.h>

#include "kern/arm/intrinsics.h"
#include "kern/kern.h"
#include "kern/target.h"
#include "quant/blocks.h"

/** All compile-time constants: the generic code is specialised for each format by inlining. */
typedef struct neon_format {
    int8x16x2_t (*unpack)(const uint8_t *block, int j);
    void (*scales)(const uint8_t *block, int16x8_t sc[2], int16x8_t mn[2]); /* 256-weight formats */
    int block, bytes;
    int bias;     /* subtract from every weight */
    bool wide;    /* weights to -128..127: an int16 holds two products only. Others are 0..63, and it holds four */
    bool sub16;   /* scales change every 16 weights rather than 32 */
    bool has_min;
    int d_offset; /* of the f16 scale in the block; m follows it where there is one */
} neon_format;

MICA_INLINE int8x16x2_t as_signed(uint8x16_t a, uint8x16_t b)
{
    return (int8x16x2_t){{vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)}};
}

MICA_INLINE uint8x16x2_t or_both(uint8x16x2_t a, uint8x16x2_t b)
{
    return (uint8x16x2_t){{vorrq_u8(a.val[0], b.val[0]), vorrq_u8(a.val[1], b.val[1])}};
}

MICA_INLINE uint8x16x2_t nibbles32(const uint8_t *qs)
{
    uint8x16_t packed = vld1q_u8(qs);
    return (uint8x16x2_t){{vandq_u8(packed, vdupq_n_u8(15)), vshrq_n_u8(packed, 4)}};
}

MICA_INLINE uint8x16x2_t nibbles_of_64(const uint8_t *qs, int high)
{
    uint8x16_t a = vld1q_u8(qs), b = vld1q_u8(qs + 16);
    return high ? (uint8x16x2_t){{vshrq_n_u8(a, 4), vshrq_n_u8(b, 4)}}
                : (uint8x16x2_t){{vandq_u8(a, vdupq_n_u8(15)), vandq_u8(b, vdupq_n_u8(15))}};
}

/* Bit i of the 32 bits at qh becomes 16 in byte i. */
MICA_INLINE uint8x16x2_t fifth_bits(const uint8_t *qh)
{
    uint32_t bits;
    memcpy(&bits, qh, 4);
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ull));
    const uint8x16_t pick = vcombine_u8(vdup_n_u8(0), vdup_n_u8(1));
    uint8x16_t all = vreinterpretq_u8_u32(vdupq_n_u32(bits)), sixteen = vdupq_n_u8(16);
    uint8x16_t a = vqtbl1q_u8(all, pick), b = vqtbl1q_u8(all, vaddq_u8(pick, vdupq_n_u8(2)));
    return (uint8x16x2_t){{vandq_u8(vtstq_u8(a, bit), sixteen), vandq_u8(vtstq_u8(b, bit), sixteen)}};
}

/* `value` in each byte whose bit j of the 32 bytes at p is set. */
MICA_INLINE uint8x16x2_t bit_plane(const uint8_t *p, int j, uint8_t value)
{
    uint8x16_t bit = vdupq_n_u8((uint8_t)(1 << j)), v = vdupq_n_u8(value);
    return (uint8x16x2_t){{vandq_u8(vtstq_u8(vld1q_u8(p), bit), v), vandq_u8(vtstq_u8(vld1q_u8(p + 16), bit), v)}};
}

/* Bits 2j, 2j + 1 of the 32 bytes at p, times 2^left. */
MICA_INLINE uint8x16x2_t two_bits(const uint8_t *p, int j, int left)
{
    uint8x16_t mask = vdupq_n_u8((uint8_t)(3 << (2 * j)));
    int8x16_t shift = vdupq_n_s8((int8_t)(left - 2 * j));
    return (uint8x16x2_t){{vshlq_u8(vandq_u8(vld1q_u8(p), mask), shift), vshlq_u8(vandq_u8(vld1q_u8(p + 16), mask), shift)}};
}

MICA_INLINE int8x16x2_t iq4_values(uint8x16x2_t nibbles)
{
    int8x16_t levels = vld1q_s8(mica_iq4_levels);
    return (int8x16x2_t){{vqtbl1q_s8(levels, nibbles.val[0]), vqtbl1q_s8(levels, nibbles.val[1])}};
}

MICA_INLINE int8x16x2_t plain(uint8x16x2_t w) { return as_signed(w.val[0], w.val[1]); }

MICA_INLINE int8x16x2_t five_bits(const uint8_t *qs, const uint8_t *qh)
{
    return plain(or_both(nibbles32(qs), fifth_bits(qh)));
}

MICA_INLINE int8x16x2_t unpack_q4_0(const uint8_t *b, int j) { (void)j; return plain(nibbles32(b + 2)); }
MICA_INLINE int8x16x2_t unpack_q4_1(const uint8_t *b, int j) { (void)j; return plain(nibbles32(b + 4)); }
MICA_INLINE int8x16x2_t unpack_q5_0(const uint8_t *b, int j) { (void)j; return five_bits(b + 6, b + 2); }
MICA_INLINE int8x16x2_t unpack_q5_1(const uint8_t *b, int j) { (void)j; return five_bits(b + 8, b + 4); }
MICA_INLINE int8x16x2_t unpack_q8_0(const uint8_t *b, int j) { (void)j; return as_signed(vld1q_u8(b + 2), vld1q_u8(b + 18)); }
MICA_INLINE int8x16x2_t unpack_iq4_nl(const uint8_t *b, int j) { (void)j; return iq4_values(nibbles32(b + 2)); }

MICA_INLINE int8x16x2_t unpack_q2_k(const uint8_t *b, int j)
{
    return plain(two_bits(((const mica_block_q2_k *)b)->qs + 32 * (j / 4), j % 4, 0));
}

MICA_INLINE int8x16x2_t unpack_q3_k(const uint8_t *b, int j)
{
    const mica_block_q3_k *block = (const mica_block_q3_k *)b;
    return plain(or_both(two_bits(block->qs + 32 * (j / 4), j % 4, 0), bit_plane(block->hmask, j, 4)));
}

MICA_INLINE int8x16x2_t unpack_q4_k(const uint8_t *b, int j)
{
    return plain(nibbles_of_64(((const mica_block_q4_k *)b)->qs + 32 * (j / 2), j & 1));
}

MICA_INLINE int8x16x2_t unpack_q5_k(const uint8_t *b, int j)
{
    const mica_block_q5_k *block = (const mica_block_q5_k *)b;
    return plain(or_both(nibbles_of_64(block->qs + 32 * (j / 2), j & 1), bit_plane(block->qh, j, 16)));
}

MICA_INLINE int8x16x2_t unpack_q6_k(const uint8_t *b, int j)
{
    const mica_block_q6_k *block = (const mica_block_q6_k *)b;
    int half = j / 4, quarter = j % 4;
    return plain(or_both(nibbles_of_64(block->ql + 64 * half + 32 * (quarter & 1), quarter / 2),
                         two_bits(block->qh + 32 * half, quarter, 4)));
}

MICA_INLINE int8x16x2_t unpack_iq4_xs(const uint8_t *b, int j)
{
    return iq4_values(nibbles32(((const mica_block_iq4_xs *)b)->qs + 16 * j));
}

MICA_INLINE int16x8_t widen_u8(uint8x8_t v) { return vreinterpretq_s16_u16(vmovl_u8(v)); }

/* Q4_K and Q5_K: eight 6-bit scales and eight 6-bit mins in 12 bytes. */
MICA_INLINE void scales_6bit(const uint8_t *packed, int16x8_t sc[2], int16x8_t mn[2])
{
    uint32_t a, b, c;
    memcpy(&a, packed, 4);
    memcpy(&b, packed + 4, 4);
    memcpy(&c, packed + 8, 4);
    uint32_t scale_low = a & 0x3F3F3F3Fu, min_low = b & 0x3F3F3F3Fu;
    uint32_t scale_high = (c & 0x0F0F0F0Fu) | ((a >> 2) & 0x30303030u);
    uint32_t min_high = ((c >> 4) & 0x0F0F0F0Fu) | ((b >> 2) & 0x30303030u);
    sc[0] = widen_u8(vcreate_u8(scale_low | (uint64_t)scale_high << 32));
    mn[0] = widen_u8(vcreate_u8(min_low | (uint64_t)min_high << 32));
}

MICA_INLINE void scales_q4_k(const uint8_t *b, int16x8_t sc[2], int16x8_t mn[2])
{
    scales_6bit(((const mica_block_q4_k *)b)->scales, sc, mn);
}

MICA_INLINE void scales_q5_k(const uint8_t *b, int16x8_t sc[2], int16x8_t mn[2])
{
    scales_6bit(((const mica_block_q5_k *)b)->scales, sc, mn);
}

MICA_INLINE void scales_q6_k(const uint8_t *b, int16x8_t sc[2], int16x8_t mn[2])
{
    (void)mn;
    int8x16_t s = vld1q_s8(((const mica_block_q6_k *)b)->scales);
    sc[0] = vmovl_s8(vget_low_s8(s));
    sc[1] = vmovl_high_s8(s);
}

MICA_INLINE void scales_q2_k(const uint8_t *b, int16x8_t sc[2], int16x8_t mn[2])
{
    uint8x16x2_t s = nibbles32(((const mica_block_q2_k *)b)->scales);
    sc[0] = widen_u8(vget_low_u8(s.val[0]));
    sc[1] = widen_u8(vget_high_u8(s.val[0]));
    mn[0] = widen_u8(vget_low_u8(s.val[1]));
    mn[1] = widen_u8(vget_high_u8(s.val[1]));
}

/* Q3_K: low 4 bits of 16 scales in 8 bytes, high 2 bits in 4 bytes; 32 is subtracted. */
MICA_INLINE void scales_q3_k(const uint8_t *b, int16x8_t sc[2], int16x8_t mn[2])
{
    (void)mn;
    uint32_t bits;
    memcpy(&bits, ((const mica_block_q3_k *)b)->scales + 8, 4);
    uint8x8_t packed = vld1_u8(((const mica_block_q3_k *)b)->scales);
    uint8x16_t low = vcombine_u8(vand_u8(packed, vdup_n_u8(15)), vshr_n_u8(packed, 4));
    const int32x4_t right = {0, -2, -4, -6};
    uint8x16_t high = vandq_u8(vreinterpretq_u8_u32(vshlq_u32(vdupq_n_u32(bits), right)), vdupq_n_u8(3));
    int8x16_t s = vsubq_s8(vreinterpretq_s8_u8(vorrq_u8(low, vshlq_n_u8(high, 4))), vdupq_n_s8(32));
    sc[0] = vmovl_s8(vget_low_s8(s));
    sc[1] = vmovl_high_s8(s);
}

MICA_INLINE void scales_iq4_xs(const uint8_t *b, int16x8_t sc[2], int16x8_t mn[2])
{
    (void)mn;
    const mica_block_iq4_xs *block = (const mica_block_iq4_xs *)b;
    uint32_t bits;
    memcpy(&bits, block->scales_l, 4);
    uint8x8_t packed = vreinterpret_u8_u32(vdup_n_u32(bits));
    uint8x8_t low = vzip1_u8(vand_u8(packed, vdup_n_u8(15)), vshr_n_u8(packed, 4));
    const int16x8_t right = {0, -2, -4, -6, -8, -10, -12, -14};
    uint16x8_t high = vandq_u16(vshlq_u16(vdupq_n_u16(block->scales_h), right), vdupq_n_u16(3));
    sc[0] = vsubq_s16(vreinterpretq_s16_u16(vorrq_u16(vmovl_u8(low), vshlq_n_u16(high, 4))), vdupq_n_s16(32));
}

static const neon_format format_q4_0 = {.unpack = unpack_q4_0, .block = 32, .bytes = 18, .bias = 8};
static const neon_format format_q4_1 = {.unpack = unpack_q4_1, .block = 32, .bytes = 20, .has_min = true};
static const neon_format format_q5_0 = {.unpack = unpack_q5_0, .block = 32, .bytes = 22, .bias = 16};
static const neon_format format_q5_1 = {.unpack = unpack_q5_1, .block = 32, .bytes = 24, .has_min = true};
static const neon_format format_q8_0 = {.unpack = unpack_q8_0, .block = 32, .bytes = 34, .wide = true};
static const neon_format format_iq4_nl = {.unpack = unpack_iq4_nl, .block = 32, .bytes = 18, .wide = true};
static const neon_format format_q2_k = {.unpack = unpack_q2_k, .scales = scales_q2_k, .block = 256, .bytes = 84, .sub16 = true,
                                        .has_min = true, .d_offset = 80};
static const neon_format format_q3_k = {.unpack = unpack_q3_k, .scales = scales_q3_k, .block = 256, .bytes = 110, .bias = 4,
                                        .sub16 = true, .d_offset = 108};
static const neon_format format_q4_k = {.unpack = unpack_q4_k, .scales = scales_q4_k, .block = 256, .bytes = 144,
                                        .has_min = true};
static const neon_format format_q5_k = {.unpack = unpack_q5_k, .scales = scales_q5_k, .block = 256, .bytes = 176,
                                        .has_min = true};
static const neon_format format_q6_k = {.unpack = unpack_q6_k, .scales = scales_q6_k, .block = 256, .bytes = 210, .bias = 32,
                                        .sub16 = true, .d_offset = 208};
static const neon_format format_iq4_xs = {.unpack = unpack_iq4_xs, .scales = scales_iq4_xs, .block = 256, .bytes = 136,
                                          .wide = true};

#endif
