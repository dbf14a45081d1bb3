/* avx2.h - parts of the AVX2 kernel set that fill each other. */
#ifndef MICA_KERN_X86_AVX2_H
#define MICA_KERN_X86_AVX2_H
#include "base/selection.h"
#include "kern/kern.h"

/** Type id and name of the formats of avx2_formats.h. */
#define AVX2_FORMATS_32(F) F(Q4_0, q4_0) F(Q4_1, q4_1) F(Q5_0, q5_0) F(Q5_1, q5_1) F(Q8_0, q8_0) F(IQ4_NL, iq4_nl)
#define AVX2_FORMATS_256(F) F(Q2_K, q2_k) F(Q3_K, q3_k) F(Q4_K, q4_k) F(Q5_K, q5_k) F(Q6_K, q6_k) F(IQ4_XS, iq4_xs)
#define AVX2_FORMATS(F) AVX2_FORMATS_32(F) AVX2_FORMATS_256(F)
/* Those that files mostly hold. The others' products of many tokens have no version for AVX-VNNI and AMX: 37 KB for what is rare, and the
 * level below does them. */
#define AVX2_COMMON_32(F) F(Q4_0, q4_0) F(Q4_1, q4_1) F(Q5_0, q5_0) F(Q8_0, q8_0) F(IQ4_NL, iq4_nl)
#define AVX2_COMMON_256(F) F(Q4_K, q4_k) F(Q5_K, q5_k) F(Q6_K, q6_k)
#define AVX2_COMMON(F) AVX2_COMMON_32(F) AVX2_COMMON_256(F)

/* A set's functions for one format, made of its own gemv(), rows and gemm(), and their places in the table; nothing for formats that a
 * build leaves out. */
#define AVX2_DEFINE_GEMV(name, rows)                                                                    \
    MICA_ROW(PRODUCT_##name, static void gemv_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                                   \
        (void)scratch;                                                                                  \
        gemv(&format_##name, rows, m, r0, r1);                                                          \
    })
#define AVX2_DEFINE_GEMV_32(type, name) AVX2_DEFINE_GEMV(name, gemv_rows_32)
#define AVX2_DEFINE_GEMM(type, name)                                                                    \
    MICA_ROW(PRODUCT_##name, static void gemm_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                                   \
        gemm(&format_##name, m, r0, r1, scratch);                                                       \
    })
#define AVX2_FILL_GEMV(type, name) MICA_ROW(PRODUCT_##name, k->gemv[MICA_TYPE_##type] = gemv_##name;)
#define AVX2_GEMM_ENTRY(type, name) MICA_ROW(PRODUCT_##name, [MICA_TYPE_##type] = gemm_##name, )
#define AVX2_FILL_GEMM(type, name) MICA_ROW(PRODUCT_##name, k->gemm[MICA_TYPE_##type] = gemm_##name;)

void mica_avx2_fill_matmul(mica_kernels *k);
void mica_avx2_fill_float(mica_kernels *k);

#endif
