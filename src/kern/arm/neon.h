/* neon.h - parts of the ARM kernel sets that fill each other. */
#ifndef MICA_KERN_ARM_NEON_H
#define MICA_KERN_ARM_NEON_H
#include "base/selection.h"
#include "kern/kern.h"

/** Type id and name of the formats of neon_formats.h. */
#define NEON_FORMATS(F) \
    NEON_ROW(F, Q4_0, q4_0) NEON_ROW(F, Q4_1, q4_1) NEON_ROW(F, Q5_0, q5_0) NEON_ROW(F, Q5_1, q5_1) NEON_ROW(F, Q8_0, q8_0) \
    NEON_ROW(F, IQ4_NL, iq4_nl) NEON_ROW(F, Q2_K, q2_k) NEON_ROW(F, Q3_K, q3_k) NEON_ROW(F, Q4_K, q4_k) NEON_ROW(F, Q5_K, q5_k) \
    NEON_ROW(F, Q6_K, q6_k) NEON_ROW(F, IQ4_XS, iq4_xs)
#define NEON_ROW(F, type, name) MICA_ROW(PRODUCT_##name, F(type, name)) /* unless the build leaves it out */

void mica_neon_fill_matmul(mica_kernels *k);
void mica_neon_fill_float(mica_kernels *k);

#endif
