/* formats.h - prototypes of the functions behind the rows of quant_list.h; included by NAME.c and quant.c only. */
#ifndef MICA_QUANT_FORMATS_H
#define MICA_QUANT_FORMATS_H
#include "quant/blocks.h"
#include "quant/quant.h"
#include "quant/quant_list.h"

#define MICA_DECLARE_FLOAT(NAME, name, bytes)                                                         \
    void mica_##name##_decode(const mica_quant *quant, const void *blocks, float *out, size_t n);     \
    void mica_##name##_encode(const float *in, const float *importance, void *blocks, size_t n);
#define MICA_DECLARE_BLOCK(NAME, name, weights, mins)                                                 \
    void mica_##name##_unpack(const void *block, mica_block_ints *out);                               \
    void mica_##name##_encode(const float *in, const float *importance, void *blocks, size_t n);

MICA_QUANT_LIST(MICA_DECLARE_FLOAT, MICA_DECLARE_BLOCK)

#undef MICA_DECLARE_FLOAT
#undef MICA_DECLARE_BLOCK

/** The 6-bit scales and mins of the eight groups of Q4_K and Q5_K in 12 bytes; the layout is explained in q4_k.c. */
void mica_q4_k_unpack_scales(const uint8_t packed[12], uint8_t scale[8], uint8_t min[8]);
void mica_q4_k_pack_scales(const uint8_t scale[8], const uint8_t min[8], uint8_t packed[12]);

/** The index of the highest of mica_iq4_levels that is not above `level`. */
int mica_iq4_index(int8_t level);

#endif
