/* q6_k.c - Q6_K: 256 weights in 210 bytes (6.5625 bits a weight), groups of 16.
 *
 *     ql[128]    the low four bits: weight 128 h + 64 s + l is nibble s (0: low) of byte 64 h + l   (h 0..1, s 0..1, l 0..63)
 *     qh[64]     the high two bits: weight 128 h + 32 j + l is bits 2j, 2j+1 of byte 32 h + l   (j 0..3, l 0..31)
 *     scales[16] signed bytes
 *     d          half
 *
 * weight = d * scale * (six bits - 32).
 */
#include "quant/formats.h"
#include "quant/search.h"

static const mica_search_shape shape = {.level_lo = -32, .n_levels = 64, .group = 16, .scale_lo = -128, .scale_hi = 127,
                                        .start_lo = -1.0f, .start_hi = 2.0f, .start_step = 1.0f};

void mica_q6_k_unpack(const void *block, mica_block_ints *out)
{
    const mica_block_q6_k *b = block;
    out->d = mica_f16_to_f32(b->d);
    out->m = 0.0f;
    for (int g = 0; g < 16; g++) {
        out->scale[g] = b->scales[g];
        out->min[g] = 0;
    }
    for (int i = 0; i < 256; i++) {
        int low = b->ql[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        int high = b->qh[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
        out->q[i] = (int8_t)((low | high << 4) - 32);
    }
}

static void pack(const mica_block_ints *in, mica_block_q6_k *b)
{
    *b = (mica_block_q6_k){.d = mica_f32_to_f16(in->d)};
    for (int g = 0; g < 16; g++)
        b->scales[g] = (int8_t)in->scale[g];
    for (int i = 0; i < 256; i++) {
        int level = in->q[i] + 32;
        b->ql[i / 128 * 64 + i % 64] |= (uint8_t)((level & 15) << (i % 128 / 64 * 4));
        b->qh[i / 128 * 32 + i % 32] |= (uint8_t)((level >> 4) << (i % 128 / 32 * 2));
    }
}

void mica_q6_k_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    mica_block_q6_k *b = blocks;
    mica_block_ints ints;
    for (size_t first = 0; first < n; first += 256) {
        mica_search_super(&shape, in + first, importance ? importance + first : NULL, &ints);
        pack(&ints, b++);
    }
}
