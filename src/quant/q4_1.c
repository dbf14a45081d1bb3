/* q4_1.c - Q4_1: 32 weights in 20 bytes (5 bits a weight).
 *
 *     d, m   halves
 *     qs[16] byte j: weight j in the low nibble, weight j + 16 in the high nibble
 *
 * weight = d * nibble + m. The encoder spreads the nibbles over the range of the weights: m is the smallest.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = 0, .n_levels = 16, .group = 32,
                                        .start_lo = -1.0f, .start_hi = 3.0f, .start_step = 0.5f};

void mica_q4_1_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q4_1 *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = mica_f16_to_f32(b->m);
    for (int i = 0; i < 16; i++) {
        out->q[i] = (int8_t)(b->qs[i] & 15);
        out->q[i + 16] = (int8_t)(b->qs[i] >> 4);
    }
    for (int i = 0; i < 2; i++)
        out->scale[i] = out->min[i] = 1;
}

static void pack(const mica_block_ints *in, mica_block_q4_1 *b)
{
    b->d = mica_f32_to_f16(in->d);
    b->m = mica_f32_to_f16(in->m);
    for (int i = 0; i < 16; i++)
        b->qs[i] = (uint8_t)(in->q[i] | in->q[i + 16] << 4);
}

/* The reference rule, all in float. */
static void quantize(const float *x, mica_block_ints *out)
{
    float lo, hi;
    mica_search_range(x, 32, &lo, &hi);
    out->d = (hi - lo) / 15.0f;
    out->m = lo;
    float inverse = out->d != 0.0f ? 1.0f / out->d : 0.0f;
    for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)mica_search_level((x[i] - lo) * inverse + 0.5f, 15);
}

void mica_q4_1_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q4_1 *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 32) {
        if (importance)
            mica_search_offset(&shape, in + first, importance + first, &ints);
        else
            quantize(in + first, &ints);
        pack(&ints, b++);
    }
}
