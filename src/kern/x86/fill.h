/* fill.h - how the rows of each weight format are expanded into a tile of bytes, [4 weights][rows], for any width of vector.
 *
 * Sixteen bytes of each row are loaded together and transposed while they are still packed; what remains is the same for every byte, so
 * it is done on all rows at once, with the compiler's vector operators. Scales are read the same way, lane = row. A set defines before,
 * after MICA_TARGET_BEGIN:
 *
 *     tile_rows            pointers to the rows, `row[]`
 *     planes               vector of uint32_t, a lane for each row
 *     row_bytes_4()              lane = row: the 4 bytes at an offset of the rows
 *     row_bytes_16()             four planes: the 16 bytes at an offset of the rows
 *     look_up_bytes()      16 bytes of a table by the nibble in each byte
 */
#ifndef MICA_KERN_X86_FILL_H
#define MICA_KERN_X86_FILL_H
#include "kern/x86/avx2_formats.h"

enum { FILL_ROWS = sizeof(planes) / 4 };
typedef int32_t signed_planes __attribute__((vector_size(sizeof(planes)), may_alias));

/* `mask` of every byte after a shift to the right. */
MICA_INLINE planes bits(planes v, int shift, uint32_t mask) { return v >> shift & mask * 0x01010101u; }

/* ---- weights of one 32-weight block: w[0..7], as the format's unpack() gives them ---- */

MICA_INLINE void nibbles_of_16(const tile_rows *rows, size_t offset, planes *low, planes *high)
{
    planes v[4];
    row_bytes_16(rows, offset, v);
    UNROLL for (int g = 0; g < 4; g++) {
        low[g] = bits(v[g], 0, 15);
        high[g] = bits(v[g], 4, 15);
    }
}

/* Bits 4g..4g+3 of the rows' words become 16 in the four bytes of group g. */
MICA_INLINE void add_fifth_bits(const tile_rows *rows, size_t offset, planes w[8])
{
    planes all = row_bytes_4(rows, offset);
    UNROLL for (int g = 0; g < 8; g++) {
        planes spread = (all >> 4 * g & 15u) * 0x00204081u; /* bit i comes to bit 8i; the rest is masked */
        w[g] |= (spread & 0x01010101u) << 4;
    }
}

MICA_INLINE void look_up_iq4(planes w[8])
{
    UNROLL for (int g = 0; g < 8; g++)
        w[g] = look_up_bytes(mica_iq4_levels, w[g]);
}

MICA_INLINE void fill_q4_0(const tile_rows *rows, size_t block, planes *w) { nibbles_of_16(rows, block + 2, w, w + 4); }
MICA_INLINE void fill_q4_1(const tile_rows *rows, size_t block, planes *w) { nibbles_of_16(rows, block + 4, w, w + 4); }

MICA_INLINE void fill_q5_0(const tile_rows *rows, size_t block, planes *w)
{
    nibbles_of_16(rows, block + 6, w, w + 4);
    add_fifth_bits(rows, block + 2, w);
}

MICA_INLINE void fill_q5_1(const tile_rows *rows, size_t block, planes *w)
{
    nibbles_of_16(rows, block + 8, w, w + 4);
    add_fifth_bits(rows, block + 4, w);
}

MICA_INLINE void fill_q8_0(const tile_rows *rows, size_t block, planes *w)
{
    row_bytes_16(rows, block + 2, w);
    row_bytes_16(rows, block + 18, w + 4);
}

MICA_INLINE void fill_iq4_nl(const tile_rows *rows, size_t block, planes *w)
{
    nibbles_of_16(rows, block + 2, w, w + 4);
    look_up_iq4(w);
}

/* ---- weights of one 256-weight block: w[0..63] ---- */

/* Of 32 bytes the low nibbles are one 32-weight part, the high ones the next. */
MICA_INLINE void fill_q4_k(const tile_rows *rows, size_t block, planes *w)
{
    for (int i = 0; i < 8; i++) {
        planes *to = w + 16 * (i / 2) + 4 * (i & 1);
        nibbles_of_16(rows, block + offsetof(mica_block_q4_k, qs) + 16 * (size_t)i, to, to + 8);
    }
}

/* The same, and bit j of 32 further bytes belongs to part j. */
MICA_INLINE void fill_q5_k(const tile_rows *rows, size_t block, planes *w)
{
    for (int half = 0; half < 2; half++) {
        planes high[4];
        row_bytes_16(rows, block + offsetof(mica_block_q5_k, qh) + 16 * (size_t)half, high);
        UNROLL for (int c = 0; c < 4; c++) {
            planes *to = w + 16 * c + 4 * half;
            nibbles_of_16(rows, block + offsetof(mica_block_q5_k, qs) + (size_t)(32 * c + 16 * half), to, to + 8);
            UNROLL for (int g = 0; g < 4; g++) {
                to[g] |= bits(high[g], 2 * c, 1) << 4;
                to[8 + g] |= bits(high[g], 2 * c + 1, 1) << 4;
            }
        }
    }
}

/* Each half of 128 weights: 64 bytes of low nibbles, 32 bytes with two high bits for each quarter. */
MICA_INLINE void fill_q6_k(const tile_rows *rows, size_t block, planes *w)
{
    for (int i = 0; i < 4; i++) { /* half i / 2, bytes 16 * (i % 2) of its quarters */
        planes high[4], *to = w + 32 * (i / 2) + 4 * (i & 1);
        size_t low = block + offsetof(mica_block_q6_k, ql) + (size_t)(64 * (i / 2) + 16 * (i & 1));
        row_bytes_16(rows, block + offsetof(mica_block_q6_k, qh) + 16 * (size_t)i, high);
        nibbles_of_16(rows, low, to, to + 16);
        nibbles_of_16(rows, low + 32, to + 8, to + 24);
        UNROLL for (int quarter = 0; quarter < 4; quarter++)
            UNROLL for (int g = 0; g < 4; g++)
                to[8 * quarter + g] |= bits(high[g], 2 * quarter, 3) << 4;
    }
}

/* 64 bytes: each half of 128 weights has 32 bytes with two bits for each quarter. */
MICA_INLINE void fill_pairs(const tile_rows *rows, size_t qs, planes *w)
{
    for (int i = 0; i < 4; i++) {
        planes v[4], *to = w + 32 * (i / 2) + 4 * (i & 1);
        row_bytes_16(rows, qs + 16 * (size_t)i, v);
        UNROLL for (int quarter = 0; quarter < 4; quarter++)
            UNROLL for (int g = 0; g < 4; g++)
                to[8 * quarter + g] = bits(v[g], 2 * quarter, 3);
    }
}

MICA_INLINE void fill_q2_k(const tile_rows *rows, size_t block, planes *w) { fill_pairs(rows, block + offsetof(mica_block_q2_k, qs), w); }

MICA_INLINE void fill_q3_k(const tile_rows *rows, size_t block, planes *w)
{
    fill_pairs(rows, block + offsetof(mica_block_q3_k, qs), w);
    for (int half = 0; half < 2; half++) {
        planes high[4];
        row_bytes_16(rows, block + offsetof(mica_block_q3_k, hmask) + 16 * (size_t)half, high);
        for (int j = 0; j < 8; j++)
            UNROLL for (int g = 0; g < 4; g++)
                w[8 * j + 4 * half + g] |= bits(high[g], j, 1) << 2;
    }
}

MICA_INLINE void fill_iq4_xs(const tile_rows *rows, size_t block, planes *w)
{
    for (int j = 0; j < 8; j++) {
        nibbles_of_16(rows, block + offsetof(mica_block_iq4_xs, qs) + 16 * (size_t)j, w + 8 * j, w + 8 * j + 4);
        look_up_iq4(w + 8 * j);
    }
}

/* ---- scales of a 256-weight block: scale[i] of weights 16i..16i+15 (of formats with one for 32, the even ones only); offset[j], what
 * multiplies the sums of the activations: the mins of weights 32j.., or -bias * scale, as int16 pairs ---- */

MICA_INLINE planes pair16(planes low, planes high) { return (low & 0xFFFFu) | high << 16; }
MICA_INLINE planes byte_at(planes v, int i) { return v >> 8 * i & 255u; }
MICA_INLINE planes signed_byte_at(planes v, int i) { return (planes)((signed_planes)(v << (24 - 8 * i)) >> 24); }

/* Q4_K and Q5_K: d and m, then 12 bytes; see scales_6bit(). */
MICA_INLINE void fill_scales_6bit(const tile_rows *rows, size_t block, planes scale[16], planes offset[8])
{
    planes head[4];
    row_bytes_16(rows, block, head);
    planes a = head[1], b = head[2], c = head[3];
    planes sc[2] = {bits(a, 0, 63), bits(c, 0, 15) | (a >> 2 & 0x30303030u)};
    planes mn[2] = {bits(b, 0, 63), bits(c, 4, 15) | (b >> 2 & 0x30303030u)};
    UNROLL for (int j = 0; j < 8; j++) {
        planes m = byte_at(mn[j / 4], j % 4);
        scale[2 * j] = byte_at(sc[j / 4], j % 4);
        offset[j] = pair16(m, m);
    }
}

MICA_INLINE void fill_scales_q6_k(const tile_rows *rows, size_t block, int bias, planes scale[16], planes offset[8])
{
    planes v[4];
    row_bytes_16(rows, block + offsetof(mica_block_q6_k, scales), v);
    UNROLL for (int j = 0; j < 8; j++) {
        scale[2 * j] = signed_byte_at(v[j / 2], 2 * (j % 2));
        scale[2 * j + 1] = signed_byte_at(v[j / 2], 2 * (j % 2) + 1);
        offset[j] = pair16(scale[2 * j] * (uint32_t)-bias, scale[2 * j + 1] * (uint32_t)-bias);
    }
}

MICA_INLINE void fill_scales_q2_k(const tile_rows *rows, size_t block, planes scale[16], planes offset[8])
{
    planes v[4];
    row_bytes_16(rows, block + offsetof(mica_block_q2_k, scales), v);
    UNROLL for (int j = 0; j < 8; j++) {
        planes sc = bits(v[j / 2], 0, 15), mn = bits(v[j / 2], 4, 15);
        scale[2 * j] = byte_at(sc, 2 * (j % 2));
        scale[2 * j + 1] = byte_at(sc, 2 * (j % 2) + 1);
        offset[j] = pair16(byte_at(mn, 2 * (j % 2)), byte_at(mn, 2 * (j % 2) + 1));
    }
}

/* Any format, row by row. */
MICA_INLINE void fill_scales_by_row(const avx2_format *f, const tile_rows *rows, size_t block, int bias, planes scale[16], planes offset[8])
{
    for (int i = 0; i < FILL_ROWS; i++) {
        __m256i s, n = _mm256_setzero_si256();
        int16_t sc[16], off[16]; /* even ones first */
        f->scales(rows->row[i] + block, &s, &n);
        if (bias)
            n = _mm256_mullo_epi16(s, _mm256_set1_epi16((int16_t)-bias)); /* |scale| <= 128, bias <= 128: fits */
        _mm256_storeu_si256((__m256i *)sc, s);
        _mm256_storeu_si256((__m256i *)off, n);
        for (int j = 0; j < 8; j++) {
            ((int32_t *)&scale[2 * j])[i] = sc[j];
            ((int32_t *)&scale[2 * j + 1])[i] = sc[8 + j];
            ((int16_t *)&offset[j])[2 * i] = off[j];
            ((int16_t *)&offset[j])[2 * i + 1] = off[8 + j];
        }
    }
}

/* ---- any format; f is a compile-time constant ---- */

MICA_INLINE void fill_weights(const avx2_format *f, const tile_rows *rows, size_t block, planes *w)
{
    switch (f->type) {
    case MICA_TYPE_Q4_0: fill_q4_0(rows, block, w); break;
    case MICA_TYPE_Q4_1: fill_q4_1(rows, block, w); break;
    case MICA_TYPE_Q5_0: fill_q5_0(rows, block, w); break;
    case MICA_TYPE_Q5_1: fill_q5_1(rows, block, w); break;
    case MICA_TYPE_Q8_0: fill_q8_0(rows, block, w); break;
    case MICA_TYPE_IQ4_NL: fill_iq4_nl(rows, block, w); break;
    case MICA_TYPE_Q2_K: fill_q2_k(rows, block, w); break;
    case MICA_TYPE_Q3_K: fill_q3_k(rows, block, w); break;
    case MICA_TYPE_Q4_K: fill_q4_k(rows, block, w); break;
    case MICA_TYPE_Q5_K: fill_q5_k(rows, block, w); break;
    case MICA_TYPE_Q6_K: fill_q6_k(rows, block, w); break;
    case MICA_TYPE_IQ4_XS: fill_iq4_xs(rows, block, w); break;
    }
}

/* `bias` is that of the weights in the tile. */
MICA_INLINE void fill_scales(const avx2_format *f, const tile_rows *rows, size_t block, int bias, planes scale[16], planes offset[8])
{
    switch (f->type) {
    case MICA_TYPE_Q4_K:
    case MICA_TYPE_Q5_K: fill_scales_6bit(rows, block, scale, offset); break;
    case MICA_TYPE_Q6_K: fill_scales_q6_k(rows, block, bias, scale, offset); break;
    case MICA_TYPE_Q2_K: fill_scales_q2_k(rows, block, scale, offset); break;
    default: fill_scales_by_row(f, rows, block, bias, scale, offset); break;
    }
}

/* d and, where the format has it, m of the block: f16 numbers in the low and the high half of the lanes. m follows d; of the formats
 * without, d may be the last two bytes of the block, which nothing may be read behind. */
MICA_INLINE planes fill_d_and_m(const avx2_format *f, const tile_rows *rows, size_t block)
{
    bool last = f->d_offset + 2 == f->bytes;
    planes v = row_bytes_4(rows, block + (size_t)f->d_offset - (last ? 2 : 0));
    return last ? v >> 16 : v;
}

#endif
