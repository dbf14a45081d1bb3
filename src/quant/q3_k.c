/* q3_k.c - Q3_K: 256 weights in 110 bytes (3.4375 bits a weight), groups of 16.
 *
 *     hmask[32]  the third bit of a weight: weight 32 i + l is bit i of byte l   (i 0..7, l 0..31)
 *     qs[64]     its low two bits: weight 128 h + 32 j + l is bits 2j, 2j+1 of byte 32 h + l   (h 0..1, j 0..3)
 *     scales[12] 16 scales of six bits, stored as scale + 32: the low four bits of scale g are nibble g / 8 of byte g % 8,
 *                the high two bits are bits 2 (g / 4), + 1 of byte 8 + g % 4
 *     d          half
 *
 * weight = d * scale * (three bits - 4); that is, the low two bits, less 4 where the third bit is not set.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = -4, .n_levels = 8, .group = 16, .scale_lo = -32, .scale_hi = 31,
                                        .start_lo = -1.0f, .start_hi = 2.0f, .start_step = 0.5f};

void mica_q3_k_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q3_k *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = 0.0f;
    for (int g = 0; g < 16; g++) {
        int low = b->scales[g % 8] >> (g / 8 * 4) & 15, high = b->scales[8 + g % 4] >> (g / 4 * 2) & 3;
        out->scale[g] = (int16_t)((low | high << 4) - 32);
        out->min[g] = 0;
    }
    for (int i = 0; i < 256; i++) {
        int low = b->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3, high = b->hmask[i % 32] >> (i / 32) & 1;
        out->q[i] = (int8_t)((low | high << 2) - 4);
    }
}

static void pack(const mica_block_ints *in, mica_block_q3_k *b)
{
    *b = (mica_block_q3_k){.d = mica_f32_to_f16(in->d)};
    for (int g = 0; g < 16; g++) {
        int scale = in->scale[g] + 32;
        b->scales[g % 8] |= (uint8_t)((scale & 15) << (g / 8 * 4));
        b->scales[8 + g % 4] |= (uint8_t)((scale >> 4) << (g / 4 * 2));
    }
    for (int i = 0; i < 256; i++) {
        int level = in->q[i] + 4;
        b->qs[i / 128 * 32 + i % 32] |= (uint8_t)((level & 3) << (i % 128 / 32 * 2));
        b->hmask[i % 32] |= (uint8_t)((level >> 2) << (i / 32));
    }
}

void mica_q3_k_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q3_k *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 256) {
        mica_search_super(&shape, in + first, importance ? importance + first : NULL, &ints);
        pack(&ints, b++);
    }
}
