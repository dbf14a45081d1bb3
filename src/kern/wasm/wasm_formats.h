/* wasm_formats.h - how the WebAssembly kernels read each weight format: 32 weights of a block as bytes, and the scales of a
 * 256-weight block. Shifts are of 16-bit lanes, what they bring in from the byte beside is masked: there are no shifts of
 * bytes in the instruction sets below.
 *
 * unpack(block, j): weights 32j..32j+31 in order, as bytes. A constant offset `bias` may still be in them; they are then
 * 0..63. scales(block, sc, mn): sub-scales (and mins) of a 256-weight block, int16: 16 of them, or 8 in sc[0] where one
 * serves 32 weights.
 */
#ifndef MICA_KERN_WASM_WASM_FORMATS_H
#define MICA_KERN_WASM_WASM_FORMATS_H
#include <string.h>

#include "kern/wasm/wasm.h"
#include "quant/blocks.h"

/** All compile-time constants: the generic code is specialised for each format by inlining. */
typedef struct wasm_format {
    bytes32 (*unpack)(const uint8_t *block, int j);
    void (*scales)(const uint8_t *block, v128_t sc[2], v128_t mn[2]); /* 256-weight formats */
    int block, bytes;
    int bias;     /* subtract from every weight */
    bool wide;    /* weights to -128..127; others are 0..63 */
    bool sub16;   /* scales change every 16 weights rather than 32 */
    bool has_min;
    int d_offset; /* of the f16 scale in the block; m follows it where there is one */
} wasm_format;

MICA_INLINE v128_t bits_of(v128_t v, int right, uint8_t mask)
{
    return wasm_v128_and(wasm_u16x8_shr(v, (uint32_t)right), wasm_u8x16_splat(mask));
}

MICA_INLINE bytes32 or_both(bytes32 x, bytes32 y) { return (bytes32){wasm_v128_or(x.a, y.a), wasm_v128_or(x.b, y.b)}; }

MICA_INLINE bytes32 nibbles32(const uint8_t *qs)
{
    v128_t packed = wasm_v128_load(qs);
    return (bytes32){bits_of(packed, 0, 15), bits_of(packed, 4, 15)};
}

MICA_INLINE bytes32 nibbles_of_64(const uint8_t *qs, int high)
{
    return (bytes32){bits_of(wasm_v128_load(qs), 4 * high, 15), bits_of(wasm_v128_load(qs + 16), 4 * high, 15)};
}

/* `value` in each byte in which a bit of `bit` is set. */
MICA_INLINE v128_t where_set(v128_t v, v128_t bit, uint8_t value)
{
    return wasm_v128_and(wasm_i8x16_eq(wasm_v128_and(v, bit), bit), wasm_u8x16_splat(value));
}

/* Bit i of the 32 bits at qh becomes 16 in byte i. */
MICA_INLINE bytes32 fifth_bits(const uint8_t *qh)
{
    const v128_t bit = wasm_i64x2_const_splat((int64_t)0x8040201008040201ull);
    v128_t all = wasm_v128_load32_splat(qh);
    v128_t a = wasm_i8x16_shuffle(all, all, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    v128_t b = wasm_i8x16_shuffle(all, all, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    return (bytes32){where_set(a, bit, 16), where_set(b, bit, 16)};
}

/* `value` in each byte whose bit j of the 32 bytes at p is set. */
MICA_INLINE bytes32 bit_plane(const uint8_t *p, int j, uint8_t value)
{
    v128_t bit = wasm_u8x16_splat((uint8_t)(1 << j));
    return (bytes32){where_set(wasm_v128_load(p), bit, value), where_set(wasm_v128_load(p + 16), bit, value)};
}

/* Bits 2j, 2j + 1 of the 32 bytes at p, times 2^left. */
MICA_INLINE bytes32 two_bits(const uint8_t *p, int j, int left)
{
    return (bytes32){wasm_i16x8_shl(bits_of(wasm_v128_load(p), 2 * j, 3), (uint32_t)left),
                     wasm_i16x8_shl(bits_of(wasm_v128_load(p + 16), 2 * j, 3), (uint32_t)left)};
}

MICA_INLINE bytes32 iq4_values(bytes32 nibbles)
{
    v128_t levels = wasm_v128_load(mica_iq4_levels);
    return (bytes32){wasm_i8x16_swizzle(levels, nibbles.a), wasm_i8x16_swizzle(levels, nibbles.b)};
}

MICA_INLINE bytes32 unpack_q4_0(const uint8_t *b, int j) { (void)j; return nibbles32(b + 2); }
MICA_INLINE bytes32 unpack_q4_1(const uint8_t *b, int j) { (void)j; return nibbles32(b + 4); }
MICA_INLINE bytes32 unpack_q5_0(const uint8_t *b, int j) { (void)j; return or_both(nibbles32(b + 6), fifth_bits(b + 2)); }
MICA_INLINE bytes32 unpack_q5_1(const uint8_t *b, int j) { (void)j; return or_both(nibbles32(b + 8), fifth_bits(b + 4)); }
MICA_INLINE bytes32 unpack_q8_0(const uint8_t *b, int j) { (void)j; return load32((const int8_t *)b + 2); }
MICA_INLINE bytes32 unpack_iq4_nl(const uint8_t *b, int j) { (void)j; return iq4_values(nibbles32(b + 2)); }

MICA_INLINE bytes32 unpack_q2_k(const uint8_t *b, int j)
{
    return two_bits(((const mica_block_q2_k *)b)->qs + 32 * (j / 4), j % 4, 0);
}

MICA_INLINE bytes32 unpack_q3_k(const uint8_t *b, int j)
{
    const mica_block_q3_k *block = (const mica_block_q3_k *)b;
    return or_both(two_bits(block->qs + 32 * (j / 4), j % 4, 0), bit_plane(block->hmask, j, 4));
}

MICA_INLINE bytes32 unpack_q4_k(const uint8_t *b, int j)
{
    return nibbles_of_64(((const mica_block_q4_k *)b)->qs + 32 * (j / 2), j & 1);
}

MICA_INLINE bytes32 unpack_q5_k(const uint8_t *b, int j)
{
    const mica_block_q5_k *block = (const mica_block_q5_k *)b;
    return or_both(nibbles_of_64(block->qs + 32 * (j / 2), j & 1), bit_plane(block->qh, j, 16));
}

MICA_INLINE bytes32 unpack_q6_k(const uint8_t *b, int j)
{
    const mica_block_q6_k *block = (const mica_block_q6_k *)b;
    int half = j / 4, quarter = j % 4;
    return or_both(nibbles_of_64(block->ql + 64 * half + 32 * (quarter & 1), quarter / 2),
                   two_bits(block->qh + 32 * half, quarter, 4));
}

MICA_INLINE bytes32 unpack_iq4_xs(const uint8_t *b, int j)
{
    return iq4_values(nibbles32(((const mica_block_iq4_xs *)b)->qs + 16 * j));
}

/* Q4_K and Q5_K: eight 6-bit scales and eight 6-bit mins in 12 bytes. */
MICA_INLINE void scales_6bit(const uint8_t *packed, v128_t sc[2], v128_t mn[2])
{
    uint32_t a, b, c;
    memcpy(&a, packed, 4);
    memcpy(&b, packed + 4, 4);
    memcpy(&c, packed + 8, 4);
    uint32_t scale_low = a & 0x3F3F3F3Fu, min_low = b & 0x3F3F3F3Fu;
    uint32_t scale_high = (c & 0x0F0F0F0Fu) | ((a >> 2) & 0x30303030u);
    uint32_t min_high = ((c >> 4) & 0x0F0F0F0Fu) | ((b >> 2) & 0x30303030u);
    sc[0] = wasm_u16x8_extend_low_u8x16(wasm_u64x2_splat(scale_low | (uint64_t)scale_high << 32));
    mn[0] = wasm_u16x8_extend_low_u8x16(wasm_u64x2_splat(min_low | (uint64_t)min_high << 32));
}

MICA_INLINE void scales_q4_k(const uint8_t *b, v128_t sc[2], v128_t mn[2])
{
    scales_6bit(((const mica_block_q4_k *)b)->scales, sc, mn);
}

MICA_INLINE void scales_q5_k(const uint8_t *b, v128_t sc[2], v128_t mn[2])
{
    scales_6bit(((const mica_block_q5_k *)b)->scales, sc, mn);
}

MICA_INLINE void scales_q6_k(const uint8_t *b, v128_t sc[2], v128_t mn[2])
{
    (void)mn;
    v128_t s = wasm_v128_load(((const mica_block_q6_k *)b)->scales);
    sc[0] = wasm_i16x8_extend_low_i8x16(s);
    sc[1] = wasm_i16x8_extend_high_i8x16(s);
}

MICA_INLINE void scales_q2_k(const uint8_t *b, v128_t sc[2], v128_t mn[2])
{
    bytes32 s = nibbles32(((const mica_block_q2_k *)b)->scales);
    sc[0] = wasm_u16x8_extend_low_u8x16(s.a);
    sc[1] = wasm_u16x8_extend_high_u8x16(s.a);
    mn[0] = wasm_u16x8_extend_low_u8x16(s.b);
    mn[1] = wasm_u16x8_extend_high_u8x16(s.b);
}

/* Q3_K: low 4 bits of 16 scales in 8 bytes, high 2 bits in 4 bytes; 32 is subtracted. */
MICA_INLINE void scales_q3_k(const uint8_t *b, v128_t sc[2], v128_t mn[2])
{
    (void)mn;
    const mica_block_q3_k *block = (const mica_block_q3_k *)b;
    uint32_t bits;
    memcpy(&bits, block->scales + 8, 4);
    v128_t packed = wasm_v128_load64_zero(block->scales);
    v128_t low = wasm_i64x2_shuffle(bits_of(packed, 0, 15), bits_of(packed, 4, 15), 0, 2);
    v128_t high = wasm_v128_and(wasm_u32x4_make(bits, bits >> 2, bits >> 4, bits >> 6), wasm_u8x16_const_splat(3));
    v128_t s = wasm_i8x16_sub(wasm_v128_or(low, wasm_i16x8_shl(high, 4)), wasm_i8x16_const_splat(32));
    sc[0] = wasm_i16x8_extend_low_i8x16(s);
    sc[1] = wasm_i16x8_extend_high_i8x16(s);
}

MICA_INLINE void scales_iq4_xs(const uint8_t *b, v128_t sc[2], v128_t mn[2])
{
    (void)mn;
    const mica_block_iq4_xs *block = (const mica_block_iq4_xs *)b;
    uint32_t low, high = block->scales_h;
    memcpy(&low, block->scales_l, 4);
#define SCALE(g) (int16_t)(((low >> 4 * g & 15) | (high >> 2 * g & 3) << 4) - 32)
    sc[0] = wasm_i16x8_make(SCALE(0), SCALE(1), SCALE(2), SCALE(3), SCALE(4), SCALE(5), SCALE(6), SCALE(7));
#undef SCALE
}

static const wasm_format format_q4_0 = {.unpack = unpack_q4_0, .block = 32, .bytes = 18, .bias = 8};
static const wasm_format format_q4_1 = {.unpack = unpack_q4_1, .block = 32, .bytes = 20, .has_min = true};
static const wasm_format format_q5_0 = {.unpack = unpack_q5_0, .block = 32, .bytes = 22, .bias = 16};
static const wasm_format format_q5_1 = {.unpack = unpack_q5_1, .block = 32, .bytes = 24, .has_min = true};
static const wasm_format format_q8_0 = {.unpack = unpack_q8_0, .block = 32, .bytes = 34, .wide = true};
static const wasm_format format_iq4_nl = {.unpack = unpack_iq4_nl, .block = 32, .bytes = 18, .wide = true};
static const wasm_format format_q2_k = {.unpack = unpack_q2_k, .scales = scales_q2_k, .block = 256, .bytes = 84, .sub16 = true,
                                        .has_min = true, .d_offset = 80};
static const wasm_format format_q3_k = {.unpack = unpack_q3_k, .scales = scales_q3_k, .block = 256, .bytes = 110, .bias = 4,
                                        .sub16 = true, .d_offset = 108};
static const wasm_format format_q4_k = {.unpack = unpack_q4_k, .scales = scales_q4_k, .block = 256, .bytes = 144,
                                        .has_min = true};
static const wasm_format format_q5_k = {.unpack = unpack_q5_k, .scales = scales_q5_k, .block = 256, .bytes = 176,
                                        .has_min = true};
static const wasm_format format_q6_k = {.unpack = unpack_q6_k, .scales = scales_q6_k, .block = 256, .bytes = 210, .bias = 32,
                                        .sub16 = true, .d_offset = 208};
static const wasm_format format_iq4_xs = {.unpack = unpack_iq4_xs, .scales = scales_iq4_xs, .block = 256, .bytes = 136,
                                          .wide = true};

#endif
