/* iq4_nl.c - IQ4_NL: 32 weights in 18 bytes (4.5 bits a weight), with uneven levels.
 *
 *     d      half
 *     qs[16] byte j: weight j in the low nibble, weight j + 16 in the high nibble
 *
 * weight = d * level[nibble].
 */
#include "quant/formats.h"
#include "quant/search.h"

/* Part of the format: written in every file's decoder. */
const int8_t mica_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static const mica_search_shape shape = {.table = mica_iq4_levels, .level_lo = -127, .n_levels = 16, .group = 32,
                                        .start_lo = -36.0f, .start_hi = 36.0f, .start_step = 9.0f};

void mica_iq4_nl_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_iq4_nl *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = 0.0f;
    for (int i = 0; i < 16; i++) {
        out->q[i] = mica_iq4_levels[b->qs[i] & 15];
        out->q[i + 16] = mica_iq4_levels[b->qs[i] >> 4];
    }
    for (int i = 0; i < 2; i++)
        out->scale[i] = 1, out->min[i] = 0;
}

static void pack(const mica_block_ints *in, mica_block_iq4_nl *b)
{
    b->d = mica_f32_to_f16(in->d);
    for (int i = 0; i < 16; i++)
        b->qs[i] = (uint8_t)(mica_iq4_index(in->q[i]) | mica_iq4_index(in->q[i + 16]) << 4);
}

int mica_iq4_index(int8_t level)
{
    int k = 0;
    for (int i = 1; i < 16; i++)
        k += level >= mica_iq4_levels[i];
    return k;
}

void mica_iq4_nl_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_iq4_nl *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 32) {
        mica_search_scaled(&shape, in + first, importance ? importance + first : NULL, &ints);
        pack(&ints, b++);
    }
}
