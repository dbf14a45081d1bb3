/* avx512_matmul.c - quantised matrix products with AVX-512 VNNI: vpdpbusd adds four byte products to an int32 lane without
 * saturation, so the sums are exact without widening. Signed weights are shifted to unsigned by 128, which their bias takes off
 * again. Structure as in avx2_gemm.h; the tile has sixteen rows, [4 weights][16 rows]. One or two tokens keep 256-bit registers,
 * but for Q4_K and Q6_K: the others wait for memory, and wider vectors measured no faster (docs/performance.md).
 */
#if defined(__x86_64__)
#include "kern/fills.h"
#include "kern/x86/avx2.h"
#include "kern/x86/avx2_formats.h"
#include "kern/x86/avx512.h"

MICA_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

#include "kern/x86/avx2_gemv.h"
#include "kern/x86/avx512_rows.h"

MICA_INLINE int bias_of(const avx2_format *f) { return f->is_signed ? 128 : f->bias; } /* weights are made unsigned */

/* ---- one or two tokens ---- */

MICA_INLINE __m256i dot32(const avx2_format *f, __m256i w, __m256i x)
{
    __m256i unsigned_w = f->is_signed ? _mm256_xor_si256(w, _mm256_set1_epi8((char)0x80)) : w;
    return _mm256_dpbusd_epi32(_mm256_setzero_si256(), unsigned_w, x);
}

/* Q4_K with 512-bit registers: both nibbles of 32 bytes at once; vpdpwssd adds the products of 64 weights under two scales. */
MICA_INLINE __m256 gemv_rows_q4_k(const avx2_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                                  const float *d, const int16_t *sum)
{
    __m256 acc = _mm256_setzero_ps();
    const __m512i shift = _mm512_setr_epi64(0, 0, 0, 0, 4, 4, 4, 4), mask = _mm512_set1_epi8(15);
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        __m256i sums = even_odd_sums(sum + 16 * b), v[ROWS], mins[ROWS];
        prefetch_next(rows->row[0], ROWS, row_bytes, offset, (size_t)f->bytes);
        UNROLL for (int i = 0; i < ROWS; i++) {
            const uint8_t *block = rows->row[i] + offset;
            __m256i sc, mn;
            f->scales(block, &sc, &mn);
            __m512i scales = _mm512_inserti64x4(_mm512_castsi256_si512(sc), sc, 1), total = _mm512_setzero_si512();
            UNROLL for (int c = 0; c < 4; c++) {
                __m512i q = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(block + 16 + 32 * c)));
                q = _mm512_and_si512(_mm512_srlv_epi64(q, shift), mask);
                __m512i pick = _mm512_inserti64x4(_mm512_set1_epi16((int16_t)(4 * c | (4 * c + 1) << 8)),
                                                  _mm256_set1_epi16((int16_t)((4 * c + 2) | (4 * c + 3) << 8)), 1);
                __m512i xc = _mm512_loadu_si512(x + 256 * b + 64 * c);
                total = _mm512_dpwssd_epi32(total, _mm512_maddubs_epi16(q, xc), _mm512_shuffle_epi8(scales, pick));
            }
            v[i] = _mm256_add_epi32(_mm512_castsi512_si256(total), _mm512_extracti64x4_epi64(total, 1));
            mins[i] = _mm256_madd_epi16(mn, sums);
        }
        acc = chain8(acc, gather_f16(rows, offset), d[b], reduce8(v));
        acc = chain8(acc, gather_min(f, rows, offset), d[b], reduce8(mins));
    }
    return acc;
}

/* 64 of the weights, 0 to 63, with 64 activations under the four scales that `pick` finds in every 128 bits of `scales`. */
MICA_INLINE __m512i add_scaled_64(__m512i total, __m512i q, const int8_t *x, __m512i scales, __m512i pick)
{
    __m512i products = _mm512_maddubs_epi16(q, _mm512_loadu_si512(x)); /* at most 2 * 63 * 127 */
    return _mm512_dpwssd_epi32(total, products, _mm512_shuffle_epi8(scales, pick));
}

#define A_OR_B_AND_C 0xF8 /* of _mm512_ternarylogic_epi32() */

/* Q6_K with 512-bit registers: half a block is 64 low nibbles, then 64 high ones, and their bits 4 and 5 lie in 32 bytes. */
MICA_INLINE __m256 gemv_rows_q6_k(const avx2_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                                  const float *d, const int16_t *sum)
{
    __m256 acc = _mm256_setzero_ps();
    const __m512i up = _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2), down = _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2);
    const __m512i nibble = _mm512_set1_epi8(15), high = _mm512_set1_epi8(48);
    const int64_t first = 0x0100010001000100, next = 0x0202020202020202; /* bytes of int16 number 0; to the next one */
    const __m512i low_scales = _mm512_setr_epi64(first, first, first + next, first + next, first + 2 * next, first + 2 * next,
                                                 first + 3 * next, first + 3 * next);
    const __m512i high_scales = _mm512_add_epi8(low_scales, _mm512_set1_epi8(8));
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        __m256i sums = _mm256_loadu_si256((const __m256i *)(sum + 16 * b)), v[ROWS];
        prefetch_next(rows->row[0], ROWS, row_bytes, offset, (size_t)f->bytes);
        UNROLL for (int i = 0; i < ROWS; i++) {
            const mica_block_q6_k *block = (const mica_block_q6_k *)(rows->row[i] + offset);
            __m256i sc = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)block->scales));
            const __m128i sc_half[2] = {_mm256_castsi256_si128(sc), _mm256_extracti128_si256(sc, 1)};
            __m512i total = _mm512_setzero_si512();
            UNROLL for (int half = 0; half < 2; half++) {
                const int8_t *xh = x + 256 * b + 128 * half;
                __m512i scales = _mm512_broadcast_i32x4(sc_half[half]);
                __m512i q = _mm512_loadu_si512(block->ql + 64 * half);
                __m512i bits = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(block->qh + 32 * half)));
                __m512i low = _mm512_ternarylogic_epi32(_mm512_and_si512(q, nibble), _mm512_sllv_epi64(bits, up), high, A_OR_B_AND_C);
                q = _mm512_and_si512(_mm512_srli_epi16(q, 4), nibble);
                q = _mm512_ternarylogic_epi32(q, _mm512_srlv_epi64(bits, down), high, A_OR_B_AND_C);
                total = add_scaled_64(total, low, xh, scales, low_scales);
                total = add_scaled_64(total, q, xh + 64, scales, high_scales);
            }
            __m256i bias = _mm256_slli_epi32(_mm256_madd_epi16(sc, sums), 5); /* 32 in every weight */
            v[i] = _mm256_add_epi32(_mm512_castsi512_si256(total), _mm512_extracti64x4_epi64(total, 1));
            v[i] = _mm256_sub_epi32(v[i], bias);
        }
        acc = chain8(acc, gather_f16(rows, offset + (size_t)f->d_offset), d[b], reduce8(v));
    }
    return acc;
}

/* ---- many tokens: sixteen rows expanded into a tile, see fill.h ---- */

#define TOKENS 8 /* chains, sums and products of eight tokens fill the 32 registers */
#define TILES 2  /* a panel of 512 weights stays in the L1 cache beside the tokens' bytes */

typedef struct tile { /* 256 weights of sixteen rows: eight blocks of a 32-weight format, or one of 256 */
    __m512i w[64];     /* group g: weights 4g..4g+3 of the rows, unsigned */
    __m512i scale[16]; /* of 16 weights, int32, lane = row; formats with one for 32 have the even ones only */
    __m512i offset[8]; /* int16 pairs for 32 weights: mins, or -bias * scale: multiplies the sums of x */
    __m512 d[8], m[8];
} tile;
_Static_assert(TILES * sizeof(tile) <= MICA_MATMUL_SCRATCH, "the panel is in the caller's scratch memory");

/* Expands the blocks with weights k to k_end, at most a tile. */
MICA_INLINE void fill_tile(const avx2_format *f, tile *t, const tile_rows *rows, size_t row_bytes, int64_t k, int64_t k_end)
{
    for (int j = 0; j < 8 && k + 32 * j < k_end; j += f->block / 32) {
        size_t block = (size_t)((k + 32 * j) / f->block) * (size_t)f->bytes;
        planes *w = (planes *)t->w + 8 * j, dm;
        prefetch_next(rows->row[0], TILE_ROWS, row_bytes, block, (size_t)f->bytes);
        fill_weights(f, rows, block, w);
        for (int g = 0; f->is_signed && g < f->block / 4; g++)
            w[g] ^= 0x80808080u;
        dm = fill_d_and_m(f, rows, block);
        t->d[j] = halves(dm, false);
        if (f->has_min) /* the K formats subtract it */
            t->m[j] = f->block == 256 ? _mm512_xor_ps(halves(dm, true), _mm512_set1_ps(-0.0f)) : halves(dm, true);
        if (f->block == 256)
            fill_scales(f, rows, block, bias_of(f), (planes *)t->scale, (planes *)t->offset);
    }
}

typedef struct tokens { /* T tokens of the activations */
    const int8_t *q[TOKENS];
    const float *d[TOKENS];
    const int16_t *sum[TOKENS];
} tokens;

MICA_INLINE void tile_32(const avx2_format *f, const tile *t, int parts, const tokens *x, int64_t k, int T, __m512 acc[])
{
    for (int j = 0; j < parts; j++) {
        int64_t b = k / 32 + j;
        __m512i total[TOKENS];
        int32_t xsum[TOKENS];
        UNROLL for (int i = 0; i < T; i++) {
            xsum[i] = x->sum[i][2 * b] + x->sum[i][2 * b + 1];
            total[i] = _mm512_set1_epi32(-bias_of(f) * xsum[i]);
        }
        UNROLL for (int g = 0; g < 8; g++)
            UNROLL for (int i = 0; i < T; i++)
                total[i] = _mm512_dpbusd_epi32(total[i], t->w[8 * j + g], broadcast4(x->q[i] + k + 32 * j + 4 * g));
        UNROLL for (int i = 0; i < T; i++) {
            acc[i] = chain16(acc[i], t->d[j], x->d[i][b], total[i]);
            if (f->has_min)
                acc[i] = chain16(acc[i], t->m[j], x->d[i][b], _mm512_set1_epi32(xsum[i]));
        }
    }
}

MICA_INLINE void tile_256(const avx2_format *f, const tile *t, const tokens *x, int64_t k, int T, __m512 acc[])
{
    __m512i total[TOKENS], offset[TOKENS];
    int step = f->sub16 ? 4 : 8; /* groups under one scale */
    UNROLL for (int i = 0; i < T; i++)
        total[i] = offset[i] = _mm512_setzero_si512();
    for (int g = 0; g < 64; g += step) {
        __m512i part[TOKENS];
        UNROLL for (int i = 0; i < T; i++)
            part[i] = _mm512_setzero_si512();
        for (int h = g; h < g + step; h++)
            UNROLL for (int i = 0; i < T; i++)
                part[i] = _mm512_dpbusd_epi32(part[i], t->w[h], broadcast4(x->q[i] + k + 4 * h));
        UNROLL for (int i = 0; i < T; i++)
            total[i] = _mm512_add_epi32(total[i], _mm512_mullo_epi32(part[i], t->scale[g / 4]));
    }
    for (int j = 0; j < 8 && (bias_of(f) || f->has_min); j++)
        UNROLL for (int i = 0; i < T; i++)
            offset[i] = _mm512_dpwssd_epi32(offset[i], t->offset[j], broadcast4(x->sum[i] + k / 16 + 2 * j));
    UNROLL for (int i = 0; i < T; i++) {
        float dx = x->d[i][k / 256];
        acc[i] = chain16(acc[i], t->d[0], dx, bias_of(f) ? _mm512_add_epi32(total[i], offset[i]) : total[i]);
        if (f->has_min)
            acc[i] = chain16(acc[i], t->m[0], dx, offset[i]);
    }
}

/* T tokens from t0 through the tiles of one panel; past the last, that one again. The chains rest in `out` between panels. */
MICA_INLINE void panel_tokens(const avx2_format *f, const mica_matmul *m, const tile *tiles, int64_t k0, int64_t k1, int32_t t0,
                              int T, int64_t r, int n_rows)
{
    const mica_act *act = m->x;
    tokens x;
    __m512 acc[TOKENS];
    UNROLL for (int i = 0; i < T; i++) {
        int64_t t = t0 + i < act->n ? t0 + i : act->n - 1;
        x.q[i] = act->q + t * act->k;
        x.d[i] = act->d + t * (act->k / f->block);
        x.sum[i] = act->sum + t * (act->k / 16);
        acc[i] = k0 == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(row_mask(n_rows), m->out + t * m->out_stride + r);
    }
    for (int64_t k = k0; k < k1; k += 256) {
        if (f->block == 32)
            tile_32(f, tiles + (k - k0) / 256, k1 - k < 256 ? (int)(k1 - k) / 32 : 8, &x, k, T, acc);
        else
            tile_256(f, tiles + (k - k0) / 256, &x, k, T, acc);
    }
    UNROLL for (int i = 0; i < T; i++)
        if (t0 + i < act->n)
            _mm512_mask_storeu_ps(m->out + (t0 + i) * m->out_stride + r, row_mask(n_rows), acc[i]);
}

MICA_INLINE void gemm(const avx2_format *f, const mica_matmul *m, int64_t r0, int64_t r1, tile *tiles)
{
    int64_t k_end = m->x->k;
    for (int64_t r = r0; r < r1; r += TILE_ROWS) {
        tile_rows rows = tile_rows_at(m, r, r1);
        for (int64_t k0 = 0; k0 < k_end; k0 += 256 * TILES) {
            int64_t k1 = k_end - k0 < 256 * TILES ? k_end : k0 + 256 * TILES;
            for (int64_t k = k0; k < k1; k += 256)
                fill_tile(f, tiles + (k - k0) / 256, &rows, m->row_bytes, k, k1);
            int32_t t = 0, n = m->x->n;
            for (; t + TOKENS <= n; t += TOKENS)
                panel_tokens(f, m, tiles, k0, k1, t, TOKENS, r, rows.n);
            for (; t < n; t += 4)
                panel_tokens(f, m, tiles, k0, k1, t, 4, r, rows.n);
        }
    }
}

/* ---- one function a format ---- */

AVX2_FORMATS_32(AVX2_DEFINE_GEMV_32)
AVX2_DEFINE_GEMV(q4_k, gemv_rows_q4_k)
AVX2_DEFINE_GEMV(q6_k, gemv_rows_q6_k)
AVX2_FORMATS(AVX2_DEFINE_GEMM)

void mica_avx512_gemm(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch)
{
    static const mica_matmul_fn functions[MICA_TYPE_COUNT] = {AVX2_FORMATS(AVX2_GEMM_ENTRY)};
    functions[m->quant->type](m, r0, r1, scratch);
}

MICA_TARGET_END

void mica_kernels_fill_avx512(mica_kernels *k)
{
    AVX2_FORMATS_32(AVX2_FILL_GEMV)
    AVX2_FILL_GEMV(Q4_K, q4_k)
    AVX2_FILL_GEMV(Q6_K, q6_k)
    AVX2_FORMATS(AVX2_FILL_GEMM)
    mica_avx512_fill_vector(k);
}
#endif
