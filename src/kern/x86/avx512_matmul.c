/* avx512_matmul.c - quantised matrix products with AVX-512 VNNI: vpdpbusd adds four byte products to an int32 lane without
 * saturation, so the sums are exact without widening. Signed weights are shifted to unsigned by 128, which their bias takes off
 * again. Structure as in avx2_matmul.c; the tile has sixteen rows, [4 weights][16 rows]. One or two tokens stay with the AVX2
 * kernels: those wait for memory, and wider vectors measured no faster (docs/performance.md).
 */
#if defined(__x86_64__)
#include "kern/fills.h"
#include "kern/x86/avx2.h"
#include "kern/x86/avx2_formats.h"
#include "kern/x86/avx512.h"
#include "kern/x86/avx2_rows.h"

MICA_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

#define GEMM_FROM 3 /* tokens from which expanding a tile pays (measured: docs/performance.md) */

/* What is to be taken off each weight once it is unsigned. */
MICA_INLINE int bias_of(const avx2_format *f) { return f->is_signed ? 128 : f->bias; }

/* ---- many tokens: sixteen rows expanded into a tile ---- */

#define TILE_ROWS 16
#define TOKENS 8 /* chains, sums and products of eight tokens fill the 32 registers */

typedef struct tile { /* 256 weights of sixteen rows: eight blocks of a 32-weight format, or one of 256 */
    __m512i w[64];     /* group g: weights 4g..4g+3 of the rows, unsigned */
    __m512i scale[16]; /* of 16 weights, int32, lane = row */
    __m512i offset[8]; /* int16 pairs for 32 weights: mins, or -bias * scale: multiplies the sums of x */
    __m512 d[8], m[8];
} tile;

#define TILES 2 /* a panel of 512 weights stays in the L1 cache beside the tokens' bytes */
_Static_assert(TILES * sizeof(tile) <= MICA_MATMUL_SCRATCH, "the panel is in the caller's scratch memory");

typedef struct rows16 {
    rows8 low, high;
    int n;
} rows16;

MICA_INLINE rows16 rows16_at(const mica_matmul *m, int64_t r, int64_t r1)
{
    rows16 rows = {.low = rows_at(m, r, r1), .n = r1 - r < TILE_ROWS ? (int)(r1 - r) : TILE_ROWS};
    rows.high = r + ROWS < r1 ? rows_at(m, r + ROWS, r1) : rows.low;
    return rows;
}

MICA_INLINE __mmask16 row_mask(int n) { return (__mmask16)((1u << n) - 1); }

MICA_INLINE __m512 both_halves(__m256 low, __m256 high) { return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1); }

MICA_INLINE void fill_half_scales(const avx2_format *f, tile *t, const rows8 *rows, size_t offset, int half)
{
    for (int i = 0; i < ROWS; i++) {
        __m256i s, n = _mm256_setzero_si256();
        int16_t sc[16], off[16]; /* even ones first */
        f->scales(rows->row[i] + offset, &s, &n);
        if (bias_of(f))
            n = _mm256_mullo_epi16(s, _mm256_set1_epi16((int16_t)-bias_of(f))); /* |scale| <= 128, bias <= 128: fits */
        _mm256_storeu_si256((__m256i *)sc, s);
        _mm256_storeu_si256((__m256i *)off, n);
        for (int j = 0; j < 8; j++) {
            int row = ROWS * half + i;
            ((int32_t *)&t->scale[2 * j])[row] = sc[j];
            ((int32_t *)&t->scale[2 * j + 1])[row] = sc[8 + j];
            ((int16_t *)&t->offset[j])[2 * row] = off[j];
            ((int16_t *)&t->offset[j])[2 * row + 1] = off[8 + j];
        }
    }
}

MICA_INLINE void fill_half(const avx2_format *f, tile *t, const rows8 *rows, size_t offset, int j, int half)
{
    __m256i in[ROWS], out[8];
    for (int i = 0; i < ROWS; i++)
        in[i] = f->unpack(rows->row[i] + offset, f->block == 32 ? 0 : j);
    transpose8(in, out);
    for (int g = 0; g < 8; g++) {
        __m256i w = f->is_signed ? _mm256_xor_si256(out[g], _mm256_set1_epi8((char)0x80)) : out[g];
        _mm256_store_si256((__m256i *)&t->w[8 * j + g] + half, w);
    }
}

/* Expands `parts` * 32 weights from weight `k` on. */
MICA_INLINE void fill_tile(const avx2_format *f, tile *t, const rows16 *rows, int64_t k, int parts)
{
    for (int j = 0; j < parts; j++) {
        size_t offset = (size_t)((k + 32 * j) / f->block) * (size_t)f->bytes;
        fill_half(f, t, &rows->low, offset, j, 0);
        fill_half(f, t, &rows->high, offset, j, 1);
        if (f->block == 256 && j > 0)
            continue;
        t->d[j] = both_halves(gather_f16(&rows->low, offset + (size_t)f->d_offset), gather_f16(&rows->high, offset + (size_t)f->d_offset));
        if (f->has_min)
            t->m[j] = both_halves(gather_min(f, &rows->low, offset), gather_min(f, &rows->high, offset));
        if (f->block == 256) {
            fill_half_scales(f, t, &rows->low, offset, 0);
            fill_half_scales(f, t, &rows->high, offset, 1);
        }
    }
}

MICA_INLINE __m512i broadcast4(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

MICA_INLINE __m512 chain16(__m512 acc, __m512 d, float dx, __m512i isum)
{
    return _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(dx)), _mm512_cvtepi32_ps(isum), acc);
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

/* T tokens from t0 through the tiles of one panel. The chains rest in `out` between panels. */
MICA_INLINE void panel_tokens(const avx2_format *f, const mica_matmul *m, const tile *tiles, int64_t k0, int64_t k1, int32_t t0,
                              int T, int64_t r, int n_rows)
{
    const mica_act *act = m->x;
    tokens x;
    __m512 acc[TOKENS];
    UNROLL for (int i = 0; i < T; i++) {
        int64_t t = t0 + i;
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
        _mm512_mask_storeu_ps(m->out + (t0 + i) * m->out_stride + r, row_mask(n_rows), acc[i]);
}

MICA_INLINE void gemm(const avx2_format *f, const mica_matmul *m, int64_t r0, int64_t r1, tile *tiles)
{
    int64_t k_end = m->x->k;
    for (int64_t r = r0; r < r1; r += TILE_ROWS) {
        rows16 rows = rows16_at(m, r, r1);
        for (int64_t k0 = 0; k0 < k_end; k0 += 256 * TILES) {
            int64_t k1 = k_end - k0 < 256 * TILES ? k_end : k0 + 256 * TILES;
            for (int64_t k = k0; k < k1; k += 256)
                fill_tile(f, tiles + (k - k0) / 256, &rows, k, k1 - k < 256 ? (int)(k1 - k) / 32 : 8);
            int32_t t = 0;
            for (; t + TOKENS <= m->x->n; t += TOKENS)
                panel_tokens(f, m, tiles, k0, k1, t, TOKENS, r, rows.n);
            for (; t + 4 <= m->x->n; t += 4)
                panel_tokens(f, m, tiles, k0, k1, t, 4, r, rows.n);
            for (; t < m->x->n; t++)
                panel_tokens(f, m, tiles, k0, k1, t, 1, r, rows.n);
        }
    }
}

/* ---- one function a format ---- */

#define MATMUL(type, name)                                                                 \
    static void matmul_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                      \
        if (m->x->n < GEMM_FROM)                                                           \
            mica_avx2_matmul_##name(m, r0, r1, scratch);                                   \
        else                                                                               \
            gemm(&format_##name, m, r0, r1, scratch);                                      \
    }
AVX2_FORMATS(MATMUL)
#undef MATMUL

MICA_TARGET_END

void mica_kernels_fill_avx512(mica_kernels *k)
{
#define FILL(type, name) k->matmul[MICA_TYPE_##type] = matmul_##name;
    AVX2_FORMATS(FILL)
#undef FILL
    mica_avx512_fill_vector(k);
}
#endif
