/* q8_0.c - Q8_0: 32 weights in 34 bytes (8.5 bits a weight).
 *
 *     d      half
 *     qs[32] signed bytes
 *
 * weight = d * byte. The encoder uses -127..127; files of others may hold -128.
 */
#include "quant/formats.h"
#include "quant/search.h"
#include <math.h>
#include <string.h>

static const mica_search_shape shape = {.level_lo = -127, .n_levels = 255, .group = 32,
                                        .start_lo = -1.0f, .start_hi = 2.0f, .start_step = 0.5f};

void mica_q8_0_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q8_0 *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = 0.0f;
    memcpy(out->q, b->qs, sizeof b->qs);
    for (int i = 0; i < 2; i++)
        out->scale[i] = 1, out->min[i] = 0;
}

static void pack(const mica_block_ints *in, mica_block_q8_0 *b)
{
    b->d = mica_f32_to_f16(in->d);
    memcpy(b->qs, in->q, sizeof b->qs);
}

/* The reference rule: halves are rounded away from zero. The product may exceed 127 by rounding, and be NaN for weights
 * that are not finite. */
static void quantize(const float *x, mica_block_ints *out)
{
    out->d = fabsf(mica_search_largest(x, 32)) / 127.0f;
    float inverse = out->d != 0.0f ? 1.0f / out->d : 0.0f;
    for (int i = 0; i < 32; i++) {
        float v = x[i] * inverse;
        int level = mica_search_level(roundf(fabsf(v)), 127);
        out->q[i] = (int8_t)(v < 0.0f ? -level : level);
    }
}

void mica_q8_0_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q8_0 *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 32) {
        if (importance)
            mica_search_scaled(&shape, in + first, importance + first, &ints);
        else
            quantize(in + first, &ints);
        pack(&ints, b++);
    }
}
