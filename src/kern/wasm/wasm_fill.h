/* wasm_fill.h - the end of a set: one function a format, and the table. */
#ifndef MICA_KERN_WASM_WASM_FILL_H
#define MICA_KERN_WASM_WASM_FILL_H
#include "kern/wasm/wasm_gemm.h"
#include "kern/wasm/wasm_gemv.h"
#include "kern/wasm/wasm_vector.h"

#define MATMUL(type, name)                                                               \
    static void gemv_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                    \
        (void)scratch;                                                                   \
        gemv(&format_##name, m, r0, r1);                                                 \
    }                                                                                    \
    static void gemm_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                    \
        gemm(&format_##name, m, r0, r1, scratch);                                        \
    }
WASM_FORMATS(MATMUL)
#undef MATMUL

/* All but the cache's other formats, which are read through the portable entries. */
static void fill(mica_kernels *k)
{
#define FILL(type, name)                     \
    k->gemv[MICA_TYPE_##type] = gemv_##name; \
    k->gemm[MICA_TYPE_##type] = gemm_##name;
    WASM_FORMATS(FILL)
#undef FILL
    k->gemv[MICA_TYPE_F32] = k->gemm[MICA_TYPE_F32] = matmul_float;
    k->gemv[MICA_TYPE_F16] = k->gemm[MICA_TYPE_F16] = matmul_float;
    k->gemv[MICA_TYPE_BF16] = k->gemm[MICA_TYPE_BF16] = matmul_float;
    k->quantize32 = quantize32;
    k->quantize256 = quantize256;
    k->widen[MICA_TYPE_F16] = widen_f16;
    k->rmsnorm = rmsnorm;
    k->add = add;
    k->scale = scale;
    k->silu_mul = silu_mul;
    k->gelu_mul = gelu_mul;
    k->rope = rope;
    k->qk = qk;
    k->softcap = softcap;
    k->exp_sum = exp_sum;
    k->pv = pv;
    k->max = max;
}

#endif
