/* quant_list.h - every weight format, one row each, in the order of the type ids.
 *
 * FLOAT(NAME, name, bytes of a weight)
 * BLOCK(NAME, name, weights of a block, has mins)
 *
 * A row FLOAT needs mica_NAME_decode() and mica_NAME_encode(); a row BLOCK needs struct mica_block_NAME in blocks.h and
 * mica_NAME_unpack() and mica_NAME_encode() in NAME.c.
 */
#define MICA_QUANT_LIST(FLOAT, BLOCK) \
    FLOAT(F32, f32, 4)                \
    FLOAT(F16, f16, 2)                \
    BLOCK(Q4_0, q4_0, 32, false)      \
    BLOCK(Q4_1, q4_1, 32, true)       \
    BLOCK(Q5_0, q5_0, 32, false)      \
    BLOCK(Q5_1, q5_1, 32, true)       \
    BLOCK(Q8_0, q8_0, 32, false)      \
    BLOCK(Q2_K, q2_k, 256, true)      \
    BLOCK(Q3_K, q3_k, 256, false)     \
    BLOCK(Q4_K, q4_k, 256, true)      \
    BLOCK(Q5_K, q5_k, 256, true)      \
    BLOCK(Q6_K, q6_k, 256, false)     \
    BLOCK(IQ4_NL, iq4_nl, 32, false)  \
    BLOCK(IQ4_XS, iq4_xs, 256, false) \
    FLOAT(BF16, bf16, 2)
