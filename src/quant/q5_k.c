/* q5_k.c - Q5_K: 256 weights in 176 bytes (5.5 bits a weight), groups of 32.
 *
 *     d, dmin    halves
 *     scales[12] scales and mins as in Q4_K
 *     qh[32]     the fifth bit: weight 32 i + l is bit i of byte l   (i 0..7, l 0..31)
 *     qs[128]    the low four bits: weight 64 c + l in the low nibble, weight 64 c + 32 + l in the high nibble of byte 32 c + l
 *
 * weight = d * scale * (five bits) - dmin * min.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = 0, .n_levels = 32, .group = 32, .scale_lo = 0, .scale_hi = 63, .min_hi = 63,
                                        .start_lo = -1.0f, .start_hi = 2.0f, .start_step = 0.5f};

void mica_q5_k_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q5_k *b = block;
    uint8_t scale[8], min[8];
    mica_q4_k_unpack_scales(b->scales, scale, min);
    out->d = mica_f16_to_f32(b->d);
    out->m = -mica_f16_to_f32(b->dmin);
    for (int g = 0; g < 16; g++) {
        out->scale[g] = scale[g / 2];
        out->min[g] = min[g / 2];
    }
    for (int i = 0; i < 256; i++) {
        int low = b->qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15, high = b->qh[i % 32] >> (i / 32) & 1;
        out->q[i] = (int8_t)(low | high << 4);
    }
}

static void pack(const mica_block_ints *in, mica_block_q5_k *b)
{
    uint8_t scale[8], min[8];
    for (int g = 0; g < 8; g++) {
        scale[g] = (uint8_t)in->scale[2 * g];
        min[g] = (uint8_t)in->min[2 * g];
    }
    *b = (mica_block_q5_k){.d = mica_f32_to_f16(in->d), .dmin = mica_f32_to_f16(0.0f - in->m)};
    mica_q4_k_pack_scales(scale, min, b->scales);
    for (int i = 0; i < 256; i++) {
        b->qs[i / 64 * 32 + i % 32] |= (uint8_t)((in->q[i] & 15) << (i % 64 / 32 * 4));
        b->qh[i % 32] |= (uint8_t)((in->q[i] >> 4) << (i / 32));
    }
}

void mica_q5_k_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q5_k *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 256) {
        mica_search_super(&shape, in + first, importance ? importance + first : NULL, &ints);
        pack(&ints, b++);
    }
}
