/* neon.h - parts of the ARM kernel sets that fill each other. */
#ifndef MICA_KERN_ARM_NEON_H
#define MICA_KERN_ARM_NEON_H
#include "kern/kern.h"

/** Type id and name of the formats of neon_formats.h. */
#define NEON_FORMATS(F) \
    F(Q4_0, q4_0) F(Q4_1, q4_1) F(Q5_0, q5_0) F(Q5_1, q5_1) F(Q8_0, q8_0) F(IQ4_NL, iq4_nl) \
    F(Q2_K, q2_k) F(Q3_K, q3_k) F(Q4_K, q4_k) F(Q5_K, q5_k) F(Q6_K, q6_k) F(IQ4_XS, iq4_xs)

void mica_neon_fill_matmul(mica_kernels *k);
void mica_neon_fill_float(mica_kernels *k);

#endif
