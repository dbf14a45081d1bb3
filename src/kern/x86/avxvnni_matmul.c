/* avxvnni_matmul.c - quantised matrix products with AVX-VNNI (processors for laptops and small devices since 2021, which have
 * no AVX-512): vpdpbusd adds four byte products to an int32 lane without saturation, so sums are exact without widening. Signed
 * weights are shifted to unsigned by 128, which their bias takes off again. 256-weight formats keep AVX2 for few tokens: their
 * sub-scales want int16 sums, where vpdpbusd saves nothing.
 */
#if defined(__x86_64__)
#include "kern/fills.h"
#include "kern/x86/avx2.h"
#include "kern/x86/avx2_rows.h"

MICA_TARGET_BEGIN("avx2,fma,f16c,avxvnni")

struct tile {
    __m256i w[64];     /* group g: weights 4g..4g+3 of the eight rows, unsigned */
    __m256i scale[16]; /* of 16 weights, int32, lane = row */
    __m256i offset[8];
    __m256 d[8], m[8];
};

#include "kern/x86/avx2_gemm.h"
#include "kern/x86/avx2_gemv.h"

MICA_INLINE int bias_of(const avx2_format *f) { return f->is_signed ? 128 : f->bias; }

MICA_INLINE __m256i to_unsigned(const avx2_format *f, __m256i w)
{
    return f->is_signed ? _mm256_xor_si256(w, _mm256_set1_epi8((char)0x80)) : w;
}

MICA_INLINE __m256i dot32(const avx2_format *f, __m256i w, __m256i x)
{
    return _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), to_unsigned(f, w), x);
}

MICA_INLINE void finish_weights(const avx2_format *f, struct tile *t, int g, int n)
{
    for (int i = g; f->is_signed && i < g + n; i++)
        t->w[i] = to_unsigned(f, t->w[i]);
}

MICA_INLINE void finish_scales(struct tile *t) { (void)t; }

MICA_INLINE void add32(const avx2_format *f, const struct tile *t, int j, const int8_t *const x[], int64_t k, int T,
                       __m256i total[])
{
    int step = f->sub16 ? 4 : 8; /* groups under one scale */
    for (int g = 0; g < 8; g += step) {
        __m256i sum[TOKENS];
        UNROLL for (int i = 0; i < T; i++)
            sum[i] = f->block == 32 ? total[i] : _mm256_setzero_si256();
        UNROLL for (int h = g; h < g + step; h++) {
            UNROLL for (int i = 0; i < T; i++)
                sum[i] = _mm256_dpbusd_avx_epi32(sum[i], t->w[8 * j + h], broadcast4(x[i] + k + 32 * j + 4 * h));
        }
        UNROLL for (int i = 0; i < T; i++)
            total[i] = f->block == 32 ? sum[i]
                                      : _mm256_add_epi32(total[i], _mm256_mullo_epi32(sum[i], t->scale[2 * j + g / 4]));
    }
}

AVX2_FORMATS_32(AVX2_DEFINE_GEMV_32)
AVX2_COMMON(AVX2_DEFINE_GEMM)

MICA_TARGET_END

void mica_kernels_fill_avxvnni(mica_kernels *k)
{
    AVX2_FORMATS_32(AVX2_FILL_GEMV)
    AVX2_COMMON(AVX2_FILL_GEMM)
}
#endif
