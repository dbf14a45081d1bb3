/* f16.c - IEEE half and bfloat16 <-> float with integer operations, so that the bits are the same on every machine. They agree
 * with the conversion instructions of x86 (F16C) and ARM for every input, NaN included: a NaN keeps its sign and the upper bits
 * of its payload and becomes quiet. */
#include "quant/quant.h"
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float mica_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3FFu;
    if (exponent == 31) /* infinity or NaN, which becomes quiet */
        return float_of(sign | 0x7F800000u | mantissa << 13 | (mantissa ? 0x400000u : 0));
    if (exponent == 0) { /* zero or denormal: mantissa * 2^-24 is exact in float */
        float magnitude = (float)mantissa * 0x1p-24f;
        return float_of(sign | bits_of(magnitude));
    }
    return float_of(sign | (exponent + 112) << 23 | mantissa << 13); /* 112 = 127 - 15, the difference of the biases */
}

/* For 2^-25 < |f| < 2^-14, whose half is denormal: the mantissa in units of 2^-24, rounded. */
static uint16_t round_denormal(uint32_t magnitude)
{
    uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    uint32_t shift = 126 - (magnitude >> 23); /* 14..24: f = mantissa * 2^(exponent - 150) */
    uint32_t half = mantissa >> shift, rest = mantissa & ((1u << shift) - 1), middle = 1u << (shift - 1);
    return (uint16_t)(half + (rest > middle || (rest == middle && (half & 1))));
}

uint16_t mica_f32_to_f16(float f)
{
    uint32_t u = bits_of(f), magnitude = u & 0x7FFFFFFFu;
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    if (magnitude > 0x7F800000u)
        return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x477FF000u) /* 65520, half way from the largest half to 65536 */
        return (uint16_t)(sign | 0x7C00);
    if (magnitude >= 0x38800000u) { /* 2^-14, the smallest normal half; a carry into the exponent is right */
        magnitude += 0xFFF + (magnitude >> 13 & 1);
        return (uint16_t)(sign | (magnitude - 0x38000000u) >> 13);
    }
    if (magnitude <= 0x33000000u) /* 2^-25 is a tie, and 0 is even */
        return sign;
    return (uint16_t)(sign | round_denormal(magnitude));
}

float mica_bf16_to_f32(uint16_t h) { return float_of((uint32_t)h << 16); }

uint16_t mica_f32_to_bf16(float f)
{
    uint32_t u = bits_of(f);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7FFF + (u >> 16 & 1)) >> 16); /* at most 0x7F800000 + 0x7FFF: no overflow */
}
