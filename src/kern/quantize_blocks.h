/* quantize_blocks.h - a row of activations to blocks, by the set's own quantize_block(). Included behind it, inside the set's target. */
#ifndef MICA_KERN_QUANTIZE_BLOCKS_H
#define MICA_KERN_QUANTIZE_BLOCKS_H

static void quantize32(const float *x, int64_t k, int8_t *q, float *d, int16_t *sum)
{
    for (int64_t i = 0; i < k; i += 32)
        quantize_block(x + i, 32, q + i, d + i / 32, sum + i / 16);
}

static void quantize256(const float *x, int64_t k, int8_t *q, float *d, int16_t *sum)
{
    for (int64_t i = 0; i < k; i += 256)
        quantize_block(x + i, 256, q + i, d + i / 256, sum + i / 16);
}

#endif
