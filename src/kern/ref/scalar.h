/* scalar.h - the steps of one element, for the portable kernels and for the tails of the SIMD ones: the law is written once. */
#ifndef MICA_KERN_REF_SCALAR_H
#define MICA_KERN_REF_SCALAR_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kern/fmath.h"

/* tanh(x) = 1 - 2 / (e^2x + 1): loses relative accuracy near 0 only, where softcap and GELU do not need it. */
static inline float mica_tanh_element(float x) { return 1.0f - 2.0f / (mica_expf(x + x) + 1.0f); }

static inline float mica_softcap_element(float s, float cap) { return cap * mica_tanh_element(s / cap); }

static inline float mica_silu_mul_element(float gate, float up) { return gate / (1.0f + mica_expf(-gate)) * up; }

static inline float mica_gelu_mul_element(float gate, float up)
{
    float inner = 0.797884561f * (gate * fmaf(0.044715f * gate, gate, 1.0f)); /* sqrt(2/pi) (x + 0.044715 x^3) */
    return ((0.5f * gate) * (1.0f + mica_tanh_element(inner))) * up;
}

/** Rotates pair i of `half`: (i, i + half), or (2i, 2i + 1). cs: `half` cosines, then sines. */
static inline void mica_rope_pair(float *x, const float *cs, int64_t i, int64_t half, bool neox)
{
    float *a = neox ? x + i : x + 2 * i, *b = neox ? x + i + half : x + 2 * i + 1;
    float u = *a, v = *b, c = cs[i], s = cs[half + i];
    *a = fmaf(u, c, -(v * s));
    *b = fmaf(u, s, v * c);
}

/* Blocks smaller than this quantise to zero: 127 / amax must not overflow. */
#define MICA_TINY_BITS 0x0B000000u /* 2.5e-32 */

/** Quantises a block that has no scale: one with a non-finite value (d = NaN) or of next to nothing (d = 0). `max` is the largest
 * |x| as bits. False for any other block, which is left alone. */
static inline bool mica_quantize_odd_block(uint32_t max, int64_t block, int8_t *q, float *d, int16_t *sum)
{
    bool finite = max < 0x7F800000u;
    if (finite && max >= MICA_TINY_BITS)
        return false;
    memset(q, 0, (size_t)block);
    memset(sum, 0, (size_t)block / 16 * sizeof *sum);
    *d = finite ? 0.0f : mica_bits_f32(0x7FC00000u);
    return true;
}

#endif
