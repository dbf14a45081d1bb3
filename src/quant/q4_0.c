/* q4_0.c - Q4_0: 32 weights in 18 bytes (4.5 bits a weight).
 *
 *     d      half
 *     qs[16] byte j: weight j in the low nibble, weight j + 16 in the high nibble
 *
 * weight = d * (nibble - 8). d is signed: the encoder gives the weight of largest magnitude the nibble 0 (-8), so the range is
 * used to its longer end.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = -8, .n_levels = 16, .group = 32,
                                        .start_lo = -1.0f, .start_hi = 3.0f, .start_step = 1.0f};

void mica_q4_0_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q4_0 *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = 0.0f;
    for (int i = 0; i < 16; i++) {
        out->q[i] = (int8_t)((b->qs[i] & 15) - 8);
        out->q[i + 16] = (int8_t)((b->qs[i] >> 4) - 8);
    }
    for (int i = 0; i < 2; i++)
        out->scale[i] = 1, out->min[i] = 0;
}

static void pack(const mica_block_ints *in, mica_block_q4_0 *b)
{
    b->d = mica_f32_to_f16(in->d);
    for (int i = 0; i < 16; i++)
        b->qs[i] = (uint8_t)((in->q[i] + 8) | (in->q[i + 16] + 8) << 4);
}

/* The reference rule: the product and the sum with 8.5 in double, rounded to float, then cut. */
static void quantize(const float *x, mica_block_ints *out)
{
    out->d = mica_search_largest(x, 32) / -8.0f;
    float inverse = out->d != 0.0f ? 1.0f / out->d : 0.0f;
    for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)(mica_search_level((float)((double)x[i] * (double)inverse + 8.5), 15) - 8);
}

void mica_q4_0_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q4_0 *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 32) {
        if (importance)
            mica_search_scaled(&shape, in + first, importance + first, &ints);
        else
            quantize(in + first, &ints);
        pack(&ints, b++);
    }
}
