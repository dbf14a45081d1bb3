/* quant.h - weight formats: layout, the integers inside a block, decode and encode.
 *
 * A format is one row of quant_list.h and one file NAME.c. Block formats are described by one function, unpack(), which gives
 * the canonical integers of a block; decoding, the portable dot product and the tests are built on it:
 *
 *     weight[i] = (d * scale[i/16]) * q[i] + m * min[i/16]          (each operation rounded to float, no fma)
 *
 * The canonical dot product of a block with activations x (int8, one float scale dx for the block, see kern/kern.h):
 *
 *     isum = sum_i scale[i/16] * q[i] * x[i]          exact in int32
 *     msum = sum_j min[j] * (sum of x in the 16 elements j)          exact in int32
 *     acc  = fma(d * dx, (float)isum, acc);  if has_min: acc = fma(m * dx, (float)msum, acc)
 *
 * Layouts follow ggml (ggml-common.h, ggml-quants.c describe them; gguf-py's quants.py is the test oracle).
 */
#ifndef MICA_QUANT_QUANT_H
#define MICA_QUANT_QUANT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mica_type { /* numbered as in GGUF files */
    MICA_TYPE_F32 = 0, MICA_TYPE_F16 = 1, MICA_TYPE_Q4_0 = 2, MICA_TYPE_Q4_1 = 3, MICA_TYPE_Q5_0 = 6, MICA_TYPE_Q5_1 = 7,
    MICA_TYPE_Q8_0 = 8, MICA_TYPE_Q2_K = 10, MICA_TYPE_Q3_K = 11, MICA_TYPE_Q4_K = 12, MICA_TYPE_Q5_K = 13,
    MICA_TYPE_Q6_K = 14, MICA_TYPE_IQ4_NL = 20, MICA_TYPE_IQ4_XS = 23, MICA_TYPE_BF16 = 30,
    MICA_TYPE_COUNT = 31,
} mica_type;

/** The integers of one block. For 32-weight formats only the first 32 q and 2 scale/min are used. */
typedef struct mica_block_ints {
    float d, m;        /* m is 0 without mins */
    int8_t q[256];     /* offset already subtracted where it is a constant (Q4_0: -8..7); -128..127 */
    int16_t scale[16]; /* one for 16 weights; 1 in formats without sub-scales */
    int16_t min[16];   /* one for 16 weights; 0 without mins, 1 in Q4_1 and Q5_1. The sign is in m (Q4_K: m = -dmin) */
} mica_block_ints;

typedef struct mica_quant {
    mica_type type;
    const char *name;     /* "Q4_K" */
    int32_t block_weights; /* 1 for float formats, 32 or 256 */
    int32_t block_bytes;
    bool has_min;
    /** Integers of one block; NULL for float formats. */
    void (*unpack)(const void *block, mica_block_ints *out);
    /** n weights (a multiple of block_weights) to float. Block formats share mica_quant_decode_blocks. */
    void (*decode)(const struct mica_quant *quant, const void *blocks, float *out, size_t n);
    /** n floats (a multiple of block_weights) to blocks. `importance` (n weights >= 0) may be NULL. */
    void (*encode)(const float *in, const float *importance, void *blocks, size_t n);
} mica_quant;

/** The format of a GGUF type id, or NULL if this build cannot read it. */
const mica_quant *mica_quant_of(uint32_t type);
/** The name of a type id that a build may have, whether this one has it or not; NULL: of none. Static. */
const char *mica_quant_known(uint32_t type);
/** By name ("Q4_K", case-insensitive); NULL if unknown. */
const mica_quant *mica_quant_by_name(const char *name);
/** The names of all readable formats, separated by ", "; for messages. Static. */
const char *mica_quant_names(void);

/** Bytes of n weights; n is a multiple of block_weights and was checked against overflow. */
static inline size_t mica_quant_bytes(const mica_quant *quant, size_t n)
{
    return n / (size_t)quant->block_weights * (size_t)quant->block_bytes;
}

void mica_quant_decode_blocks(const mica_quant *quant, const void *blocks, float *out, size_t n);

/* IEEE half and bfloat16 <-> float, round to nearest even, denormals kept, NaN stays NaN. Portable and exact. */
float mica_f16_to_f32(uint16_t h);
uint16_t mica_f32_to_f16(float f);
float mica_bf16_to_f32(uint16_t h);
uint16_t mica_f32_to_bf16(float f);

#endif
