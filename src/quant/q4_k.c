/* q4_k.c - Q4_K: 256 weights in 144 bytes (4.5 bits a weight), groups of 32.
 *
 *     d, dmin    halves
 *     scales[12] a six-bit scale and a six-bit min for each of eight groups; for g = 0..3, bits from the highest:
 *                byte g:      hhSSSSSS   S: scale g          hh: the high two bits of scale g + 4
 *                byte g + 4:  hhMMMMMM   M: min g            hh: the high two bits of min g + 4
 *                byte g + 8:  mmmmssss   the low four bits of min g + 4 and of scale g + 4
 *     qs[128]    weight 64 c + l in the low nibble, weight 64 c + 32 + l in the high nibble of byte 32 c + l   (l 0..31)
 *
 * weight = d * scale * nibble - dmin * min.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = 0, .n_levels = 16, .group = 32, .scale_lo = 0, .scale_hi = 63, .min_hi = 63,
                                        .start_lo = -1.0f, .start_hi = 2.0f, .start_step = 0.5f};

void mica_q4_k_unpack_scales(const uint8_t packed[12], uint8_t scale[8], uint8_t min[8])
{
    for (int g = 0; g < 4; g++) {
        scale[g] = packed[g] & 63;
        min[g] = packed[g + 4] & 63;
        scale[g + 4] = (uint8_t)((packed[g + 8] & 15) | packed[g] >> 6 << 4);
        min[g + 4] = (uint8_t)(packed[g + 8] >> 4 | packed[g + 4] >> 6 << 4);
    }
}

void mica_q4_k_pack_scales(const uint8_t scale[8], const uint8_t min[8], uint8_t packed[12])
{
    for (int g = 0; g < 4; g++) {
        packed[g] = (uint8_t)(scale[g] | scale[g + 4] >> 4 << 6);
        packed[g + 4] = (uint8_t)(min[g] | min[g + 4] >> 4 << 6);
        packed[g + 8] = (uint8_t)((scale[g + 4] & 15) | (min[g + 4] & 15) << 4);
    }
}

void mica_q4_k_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q4_k *b = block;
    uint8_t scale[8], min[8];
    mica_q4_k_unpack_scales(b->scales, scale, min);
    out->d = mica_f16_to_f32(b->d);
    out->m = -mica_f16_to_f32(b->dmin);
    for (int g = 0; g < 16; g++) {
        out->scale[g] = scale[g / 2];
        out->min[g] = min[g / 2];
    }
    for (int c = 0; c < 4; c++)
        for (int l = 0; l < 32; l++) {
            out->q[64 * c + l] = (int8_t)(b->qs[32 * c + l] & 15);
            out->q[64 * c + 32 + l] = (int8_t)(b->qs[32 * c + l] >> 4);
        }
}

static void pack(const mica_block_ints *in, mica_block_q4_k *b)
{
    uint8_t scale[8], min[8];
    for (int g = 0; g < 8; g++) {
        scale[g] = (uint8_t)in->scale[2 * g];
        min[g] = (uint8_t)in->min[2 * g];
    }
    b->d = mica_f32_to_f16(in->d);
    b->dmin = mica_f32_to_f16(0.0f - in->m); /* not -m: no mins is +0 */
    mica_q4_k_pack_scales(scale, min, b->scales);
    for (int c = 0; c < 4; c++)
        for (int l = 0; l < 32; l++)
            b->qs[32 * c + l] = (uint8_t)(in->q[64 * c + l] | in->q[64 * c + 32 + l] << 4);
}

void mica_q4_k_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q4_k *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 256) {
        mica_search_super(&shape, in + first, importance ? importance + first : NULL, &ints);
        pack(&ints, b++);
    }
}
