/* iq4_xs.c - IQ4_XS: 256 weights in 136 bytes (4.25 bits a weight), groups of 32, with the uneven levels of IQ4_NL.
 *
 *     d           half
 *     scales_h    bits 2g, 2g+1: the high two bits of scale g   (g 0..7)
 *     scales_l[4] nibble g % 2 (0: low) of byte g / 2: the low four bits of scale g
 *     qs[128]     weight 32 g + l in the low nibble, weight 32 g + 16 + l in the high nibble of byte 16 g + l   (l 0..15)
 *
 * weight = d * (scale - 32) * level[nibble].
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.table = mica_iq4_levels, .level_lo = -127, .n_levels = 16, .group = 32,
                                        .scale_lo = -32, .scale_hi = 31,
                                        .start_lo = -36.0f, .start_hi = 36.0f, .start_step = 9.0f};

void mica_iq4_xs_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_iq4_xs *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = 0.0f;
    for (int i = 0; i < 16; i++) {
        int g = i / 2, low = b->scales_l[g / 2] >> (g % 2 * 4) & 15, high = b->scales_h >> (2 * g) & 3;
        out->scale[i] = (int16_t)((low | high << 4) - 32);
        out->min[i] = 0;
    }
    for (int g = 0; g < 8; g++)
        for (int l = 0; l < 16; l++) {
            out->q[32 * g + l] = mica_iq4_levels[b->qs[16 * g + l] & 15];
            out->q[32 * g + 16 + l] = mica_iq4_levels[b->qs[16 * g + l] >> 4];
        }
}

static void pack(const mica_block_ints *in, mica_block_iq4_xs *b)
{
    *b = (mica_block_iq4_xs){.d = mica_f32_to_f16(in->d)};
    for (int g = 0; g < 8; g++) {
        int scale = in->scale[2 * g] + 32;
        b->scales_l[g / 2] |= (uint8_t)((scale & 15) << (g % 2 * 4));
        b->scales_h = (uint16_t)(b->scales_h | (scale >> 4) << (2 * g));
        for (int l = 0; l < 16; l++)
            b->qs[16 * g + l] =
                (uint8_t)(mica_iq4_index(in->q[32 * g + l]) | mica_iq4_index(in->q[32 * g + 16 + l]) << 4);
    }
}

void mica_iq4_xs_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_iq4_xs *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 256) {
        mica_search_super(&shape, in + first, importance ? importance + first : NULL, &ints);
        pack(&ints, b++);
    }
}
