/* q5_0.c - Q5_0: 32 weights in 22 bytes (5.5 bits a weight).
 *
 *     d      half
 *     qh[4]  a little-endian word: bit i is the fifth bit of weight i
 *     qs[16] byte j: the low four bits of weight j in the low nibble, of weight j + 16 in the high nibble
 *
 * weight = d * (five bits - 16). d is signed, as in Q4_0.
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = -16, .n_levels = 32, .group = 32,
                                        .start_lo = -1.0f, .start_hi = 3.0f, .start_step = 1.0f};

void mica_q5_0_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q5_0 *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = 0.0f;
    for (int i = 0; i < 32; i++) {
        int low = b->qs[i % 16] >> (i / 16 * 4) & 15, high = b->qh[i / 8] >> (i % 8) & 1;
        out->q[i] = (int8_t)((low | high << 4) - 16);
    }
    for (int i = 0; i < 2; i++)
        out->scale[i] = 1, out->min[i] = 0;
}

static void pack(const mica_block_ints *in, mica_block_q5_0 *b)
{
    *b = (mica_block_q5_0){.d = mica_f32_to_f16(in->d)};
    for (int i = 0; i < 32; i++) {
        int level = in->q[i] + 16;
        b->qs[i % 16] |= (uint8_t)((level & 15) << (i / 16 * 4));
        b->qh[i / 8] |= (uint8_t)((level >> 4) << (i % 8));
    }
}

/* The reference rule: the product and the sum with 16.5 in double, rounded to float, then cut. */
static void quantize(const float *x, mica_block_ints *out)
{
    out->d = mica_search_largest(x, 32) / -16.0f;
    float inverse = out->d != 0.0f ? 1.0f / out->d : 0.0f;
    for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)(mica_search_level((float)((double)x[i] * (double)inverse + 16.5), 31) - 16);
}

void mica_q5_0_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q5_0 *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 32) {
        if (importance)
            mica_search_scaled(&shape, in + first, importance + first, &ints);
        else
            quantize(in + first, &ints);
        pack(&ints, b++);
    }
}
