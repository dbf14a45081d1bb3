/* float.c - the formats without blocks: F32 (IEEE single), F16 (IEEE half) and BF16 (the upper half of a single). A row is its
 * weights one after another, little-endian. Rounding leaves no choice, so `importance` is not used. */
#include "quant/formats.h"
#include <string.h>

void mica_f32_decode(const mica_quant *quant, const void *blocks, float *out, size_t n)
{
    (void)quant;
    if (n)
        memcpy(out, blocks, n * sizeof *out);
}

void mica_f32_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    (void)importance;
    if (n)
        memcpy(blocks, in, n * sizeof *in);
}

void mica_f16_decode(const mica_quant *quant, const void *blocks, float *out, size_t n)
{
    (void)quant;
    const uint16_t *halves = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = mica_f16_to_f32(halves[i]);
}

void mica_f16_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    (void)importance;
    uint16_t *halves = blocks;
    for (size_t i = 0; i < n; i++)
        halves[i] = mica_f32_to_f16(in[i]);
}

void mica_bf16_decode(const mica_quant *quant, const void *blocks, float *out, size_t n)
{
    (void)quant;
    const uint16_t *halves = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = mica_bf16_to_f32(halves[i]);
}

void mica_bf16_encode(const float *in, const float *importance, void *blocks, size_t n)
{
    (void)importance;
    uint16_t *halves = blocks;
    for (size_t i = 0; i < n; i++)
        halves[i] = mica_f32_to_bf16(in[i]);
}
