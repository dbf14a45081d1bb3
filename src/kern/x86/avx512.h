/* avx512.h - parts of the AVX-512 kernel set that fill each other. */
#ifndef MICA_KERN_X86_AVX512_H
#define MICA_KERN_X86_AVX512_H
#include "kern/kern.h"

/** A product of a format of avx2_formats.h for many tokens. */
void mica_avx512_gemm(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch);
void mica_avx512_fill_vector(mica_kernels *k);

#endif
