/* fills.h - the fill function of every instruction set that this build has. */
#ifndef MICA_KERN_FILLS_H
#define MICA_KERN_FILLS_H
#include "kern/kern.h"

void mica_kernels_fill_portable(mica_kernels *k);

#if defined(__x86_64__)
void mica_kernels_fill_avx2(mica_kernels *k);
void mica_kernels_fill_avxvnni(mica_kernels *k);
void mica_kernels_fill_avx512(mica_kernels *k);
void mica_kernels_fill_amx(mica_kernels *k);
#elif defined(__aarch64__)
void mica_kernels_fill_neon(mica_kernels *k);
void mica_kernels_fill_neon_dotprod(mica_kernels *k);
void mica_kernels_fill_neon_i8mm(mica_kernels *k);
#elif defined(__wasm_simd128__)
void mica_kernels_fill_simd128(mica_kernels *k);
void mica_kernels_fill_relaxed(mica_kernels *k); /* of a module with relaxed instructions */
#endif

#endif
