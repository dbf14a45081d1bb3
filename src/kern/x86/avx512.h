/* avx512.h - parts of the AVX-512 kernel set that fill each other. */
#ifndef MICA_KERN_X86_AVX512_H
#define MICA_KERN_X86_AVX512_H
#include "kern/kern.h"

void mica_avx512_fill_vector(mica_kernels *k);

#endif
