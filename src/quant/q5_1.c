/* q5_1.c - Q5_1: 32 weights in 24 bytes (6 bits a weight).
 *
 *     d, m   halves
 *     qh[4]  a little-endian word: bit i is the fifth bit of weight i
 *     qs[16] byte j: the low four bits of weight j in the low nibble, of weight j + 16 in the high nibble
 *
 * weight = d * (five bits) + m. The encoder spreads the 32 levels over the range of the weights: m is the smallest.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = 0, .n_levels = 32, .group = 32,
                                        .start_lo = -1.0f, .start_hi = 3.0f, .start_step = 0.5f};

void mica_q5_1_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q5_1 *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = mica_f16_to_f32(b->m);
    for (int i = 0; i < 32; i++) {
        int low = b->qs[i % 16] >> (i / 16 * 4) & 15, high = b->qh[i / 8] >> (i % 8) & 1;
        out->q[i] = (int8_t)(low | high << 4);
    }
    for (int i = 0; i < 2; i++)
        out->scale[i] = out->min[i] = 1;
}

static void pack(const mica_block_ints *in, mica_block_q5_1 *b)
{
    *b = (mica_block_q5_1){.d = mica_f32_to_f16(in->d), .m = mica_f32_to_f16(in->m)};
    for (int i = 0; i < 32; i++) {
        b->qs[i % 16] |= (uint8_t)((in->q[i] & 15) << (i / 16 * 4));
        b->qh[i / 8] |= (uint8_t)((in->q[i] >> 4) << (i % 8));
    }
}

/* The reference rule, all in float. */
static void quantize(const float *x, mica_block_ints *out)
{
    float lo, hi;
    mica_search_range(x, 32, &lo, &hi);
    out->d = (hi - lo) / 31.0f;
    out->m = lo;
    float inverse = out->d != 0.0f ? 1.0f / out->d : 0.0f;
    for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)mica_search_level((x[i] - lo) * inverse + 0.5f, 31);
}

void mica_q5_1_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q5_1 *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 32) {
        if (importance)
            mica_search_offset(&shape, in + first, importance + first, &ints);
        else
            quantize(in + first, &ints);
        pack(&ints, b++);
    }
}
