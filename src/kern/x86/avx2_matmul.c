/* avx2_matmul.c - quantised matrix products with AVX2: vector lanes hold eight different rows, so each element keeps the one
 * float chain of the numerics law while its integer sums are formed in any order.
 *
 * Few tokens (decode): eight rows are read in place, their integer products reduced by a tree (gemv). Many tokens (prefill):
 * eight rows are expanded once into a tile of bytes, [4 weights][8 rows], that all tokens use (gemm).
 */
#if defined(__x86_64__)
#include "kern/x86/avx2.h"
#include "kern/x86/avx2_rows.h"

MICA_TARGET_BEGIN("avx2,fma,f16c")

struct tile {
    __m256i w[64];     /* group g: weights 4g..4g+3 of the eight rows; of signed formats the absolute values */
    __m256i sign[64];  /* signed formats: the weights themselves */
    __m256i scale[16]; /* int16 pairs, the scale of 16 weights twice, for each row */
    __m256i offset[8];
    __m256 d[8], m[8];
};

#include "kern/x86/avx2_gemm.h"
#include "kern/x86/avx2_gemv.h"

MICA_INLINE int bias_of(const avx2_format *f) { return f->bias; }

/* 16 sums of two products; |w| <= 128 and |x| <= 127, so a lane is at most 32512. */
MICA_INLINE __m256i products(const avx2_format *f, __m256i w, __m256i x)
{
    return f->is_signed ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) : _mm256_maddubs_epi16(w, x);
}

/* ---- one or two tokens ---- */

MICA_INLINE __m256i dot32(const avx2_format *f, __m256i w, __m256i x)
{
    return _mm256_madd_epi16(products(f, w, x), _mm256_set1_epi16(1));
}

/* Both scales of the 32 weights j, each eight times. */
MICA_INLINE __m256i scale_pair(__m256i even_odd_scales, int j)
{
    return _mm256_shuffle_epi8(even_odd_scales, _mm256_set1_epi16((int16_t)(2 * j | (2 * j + 1) << 8)));
}

MICA_INLINE __m256 gemv_rows_256(const avx2_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                                 const float *d, const int16_t *sum)
{
    __m256 acc = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        __m256i sums = even_odd_sums(sum + 16 * b), v[ROWS], mins[ROWS];
        prefetch_next(rows->row[0], ROWS, row_bytes, offset, (size_t)f->bytes);
        UNROLL for (int i = 0; i < ROWS; i++) {
            const uint8_t *block = rows->row[i] + offset;
            __m256i sc, mn = _mm256_setzero_si256(), total = _mm256_setzero_si256();
            f->scales(block, &sc, &mn);
            UNROLL for (int j = 0; j < 8; j++) {
                __m256i xj = _mm256_loadu_si256((const __m256i *)(x + 256 * b + 32 * j));
                total = _mm256_add_epi32(total, _mm256_madd_epi16(products(f, f->unpack(block, j), xj), scale_pair(sc, j)));
            }
            if (f->bias)
                total = _mm256_sub_epi32(total, _mm256_mullo_epi32(_mm256_madd_epi16(sc, sums), _mm256_set1_epi32(f->bias)));
            v[i] = total;
            if (f->has_min)
                mins[i] = _mm256_madd_epi16(mn, sums);
        }
        acc = chain8(acc, gather_f16(rows, offset + (size_t)f->d_offset), d[b], reduce8(v));
        if (f->has_min)
            acc = chain8(acc, gather_min(f, rows, offset), d[b], reduce8(mins));
    }
    return acc;
}

/* ---- many tokens ---- */

MICA_INLINE void finish_weights(const avx2_format *f, struct tile *t, int g, int n)
{
    for (int i = g; f->is_signed && i < g + n; i++) {
        t->sign[i] = t->w[i];
        t->w[i] = _mm256_abs_epi8(t->w[i]);
    }
}

MICA_INLINE void finish_scales(struct tile *t)
{
    UNROLL for (int i = 0; i < 16; i++)
        t->scale[i] = (__m256i)pair16((planes)t->scale[i], (planes)t->scale[i]);
}

/* int16 sums of at most f->groups products, then widened and scaled. */
MICA_INLINE void add32(const avx2_format *f, const struct tile *t, int j, const int8_t *const x[], int64_t k, int T, __m256i total[])
{
    int step = f->sub16 && f->groups > 4 ? 4 : f->groups;
    for (int g = 0; g < 8; g += step) {
        __m256i scale = f->block == 32 ? _mm256_set1_epi16(1) : t->scale[2 * j + (f->sub16 ? g / 4 : 0)], sum[TOKENS];
        UNROLL for (int i = 0; i < T; i++)
            sum[i] = _mm256_setzero_si256();
        for (int h = g; h < g + step; h++) {
            __m256i w = t->w[8 * j + h];
            UNROLL for (int i = 0; i < T; i++) {
                __m256i xv = broadcast4(x[i] + k + 32 * j + 4 * h);
                if (f->is_signed)
                    xv = _mm256_sign_epi8(xv, t->sign[8 * j + h]);
                sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(w, xv));
            }
        }
        UNROLL for (int i = 0; i < T; i++)
            total[i] = _mm256_add_epi32(total[i], _mm256_madd_epi16(sum[i], scale));
    }
}

/* ---- one function a format ---- */

#define AVX2_DEFINE_GEMV_256(type, name) AVX2_DEFINE_GEMV(name, gemv_rows_256)
AVX2_FORMATS_32(AVX2_DEFINE_GEMV_32)
AVX2_FORMATS_256(AVX2_DEFINE_GEMV_256)
AVX2_FORMATS(AVX2_DEFINE_GEMM)

MICA_TARGET_END

void mica_avx2_fill_matmul(mica_kernels *k)
{
    AVX2_FORMATS(AVX2_FILL_GEMV)
    AVX2_FORMATS(AVX2_FILL_GEMM)
}
#endif
