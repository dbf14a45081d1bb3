/* avx2.h - parts of the AVX2 kernel set that fill each other. */
#ifndef MICA_KERN_X86_AVX2_H
#define MICA_KERN_X86_AVX2_H
#include "kern/kern.h"

void mica_avx2_fill_matmul(mica_kernels *k);
void mica_avx2_fill_float(mica_kernels *k);

#endif
