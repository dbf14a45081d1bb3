/* q2_k.c - Q2_K: 256 weights in 84 bytes (2.625 bits a weight), groups of 16.
 *
 *     scales[16] byte g: the scale of group g in the low nibble, its min in the high nibble
 *     qs[64]     two bits a weight: weight 128 h + 32 j + l is bits 2j, 2j+1 of byte 32 h + l   (h 0..1, j 0..3, l 0..31)
 *     d, dmin    halves
 *
 * weight = d * scale * (two bits) - dmin * min.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = 0, .n_levels = 4, .group = 16, .scale_lo = 0, .scale_hi = 15, .min_hi = 15,
                                        .start_lo = -0.5f, .start_hi = 1.5f, .start_step = 0.5f};

void mica_q2_k_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q2_k *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = -mica_f16_to_f32(b->dmin);
    for (int g = 0; g < 16; g++) {
        out->scale[g] = b->scales[g] & 15;
        out->min[g] = b->scales[g] >> 4;
    }
    for (int i = 0; i < 256; i++)
        out->q[i] = (int8_t)(b->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
}

static void pack(const mica_block_ints *in, mica_block_q2_k *b)
{
    *b = (mica_block_q2_k){.d = mica_f32_to_f16(in->d), .dmin = mica_f32_to_f16(0.0f - in->m)};
    for (int g = 0; g < 16; g++)
        b->scales[g] = (uint8_t)(in->scale[g] | in->min[g] << 4);
    for (int i = 0; i < 256; i++)
        b->qs[i / 128 * 32 + i % 32] |= (uint8_t)(in->q[i] << (i % 128 / 32 * 2));
}

void mica_q2_k_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q2_k *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 256) {
        mica_search_super(&shape, in + first, importance ? importance + first : NULL, &ints);
        pack(&ints, b++);
    }
}
