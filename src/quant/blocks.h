/* blocks.h - the bytes of a block of each format, as they lie in a GGUF file. Read by NAME.c of this folder and by the SIMD
 * kernels of src/kern. How the fields make up weights is explained in NAME.c.
 *
 * Invariants: little-endian (as all GGUF files that the reader accepts); every struct is a multiple of 2 bytes with
 * alignment 2, which the reader's alignment of tensors guarantees. Scales `d` and offsets `m`, `dmin` are IEEE halves.
 */
#ifndef MICA_QUANT_BLOCKS_H
#define MICA_QUANT_BLOCKS_H
#include <assert.h>
#include <stdint.h>

typedef struct mica_block_q4_0 {
    uint16_t d;
    uint8_t qs[16];
} mica_block_q4_0;

typedef struct mica_block_q4_1 {
    uint16_t d, m;
    uint8_t qs[16];
} mica_block_q4_1;

typedef struct mica_block_q5_0 {
    uint16_t d;
    uint8_t qh[4], qs[16];
} mica_block_q5_0;

typedef struct mica_block_q5_1 {
    uint16_t d, m;
    uint8_t qh[4], qs[16];
} mica_block_q5_1;

typedef struct mica_block_q8_0 {
    uint16_t d;
    int8_t qs[32];
} mica_block_q8_0;

typedef struct mica_block_q2_k {
    uint8_t scales[16], qs[64];
    uint16_t d, dmin;
} mica_block_q2_k;

typedef struct mica_block_q3_k {
    uint8_t hmask[32], qs[64], scales[12];
    uint16_t d;
} mica_block_q3_k;

typedef struct mica_block_q4_k {
    uint16_t d, dmin;
    uint8_t scales[12], qs[128];
} mica_block_q4_k;

typedef struct mica_block_q5_k {
    uint16_t d, dmin;
    uint8_t scales[12], qh[32], qs[128];
} mica_block_q5_k;

typedef struct mica_block_q6_k {
    uint8_t ql[128], qh[64];
    int8_t scales[16];
    uint16_t d;
} mica_block_q6_k;

typedef struct mica_block_iq4_nl {
    uint16_t d;
    uint8_t qs[16];
} mica_block_iq4_nl;

typedef struct mica_block_iq4_xs {
    uint16_t d, scales_h;
    uint8_t scales_l[4], qs[128];
} mica_block_iq4_xs;

static_assert(sizeof(mica_block_q4_0) == 18, "Q4_0 is 18 bytes for 32 weights");
static_assert(sizeof(mica_block_q4_1) == 20, "Q4_1 is 20 bytes for 32 weights");
static_assert(sizeof(mica_block_q5_0) == 22, "Q5_0 is 22 bytes for 32 weights");
static_assert(sizeof(mica_block_q5_1) == 24, "Q5_1 is 24 bytes for 32 weights");
static_assert(sizeof(mica_block_q8_0) == 34, "Q8_0 is 34 bytes for 32 weights");
static_assert(sizeof(mica_block_q2_k) == 84, "Q2_K is 84 bytes for 256 weights");
static_assert(sizeof(mica_block_q3_k) == 110, "Q3_K is 110 bytes for 256 weights");
static_assert(sizeof(mica_block_q4_k) == 144, "Q4_K is 144 bytes for 256 weights");
static_assert(sizeof(mica_block_q5_k) == 176, "Q5_K is 176 bytes for 256 weights");
static_assert(sizeof(mica_block_q6_k) == 210, "Q6_K is 210 bytes for 256 weights");
static_assert(sizeof(mica_block_iq4_nl) == 18, "IQ4_NL is 18 bytes for 32 weights");
static_assert(sizeof(mica_block_iq4_xs) == 136, "IQ4_XS is 136 bytes for 256 weights");

/** The 16 levels of IQ4_NL and IQ4_XS, ascending: denser near 0, where the weights of a trained model are. */
extern const int8_t mica_iq4_levels[16];

#endif
