/* avx2_gemm.h - quantised products for many tokens with 256-bit registers: eight rows are expanded once into tiles of bytes,
 * [4 weights][8 rows], that all tokens use. Included after MICA_TARGET_BEGIN by each set, which defines before:
 *
 *     struct tile    256 weights of eight rows (eight blocks of a 32-weight format, or one of 256), with at least
 *                    __m256 d[8], m[8];     of the blocks
 *                    __m256i w[64], scale[16];
 *                    __m256i offset[8];     int16 pairs for 32 weights of each row: mins, or -bias * scale: multiplies the sums of x
 *
 * and after, the functions declared below.
 */
#ifndef MICA_KERN_X86_AVX2_GEMM_H
#define MICA_KERN_X86_AVX2_GEMM_H
#include "kern/x86/avx2_rows.h"

#define TOKENS 4 /* computed together: their chains, sums and products fill the 16 registers */
#define TILES 2  /* a panel of the rows: 512 weights; with the tokens' bytes it stays in the L1 cache */
_Static_assert(TILES * sizeof(struct tile) <= MICA_MATMUL_SCRATCH, "the panel is in the caller's scratch memory");

/* What finish_weights() leaves in every weight. */
MICA_INLINE int bias_of(const avx2_format *f);
/* Groups g to g + n of the tile, as unpack() gives them, become what add32() wants. */
MICA_INLINE void finish_weights(const avx2_format *f, struct tile *t, int g, int n);
/* The same for the scales, which are int32, lane = row. */
MICA_INLINE void finish_scales(struct tile *t);
/* Adds weights 32j..32j+31 of eight rows times T tokens to total[], with their scales in a 256-weight format. */
MICA_INLINE void add32(const avx2_format *f, const struct tile *t, int j, const int8_t *const x[], int64_t k, int T, __m256i total[]);

/* ---- eight rows expanded into a tile: see fill.h ---- */

typedef rows8 tile_rows;
typedef uint32_t planes __attribute__((vector_size(32), may_alias));

MICA_INLINE planes row_bytes_4(const rows8 *rows, size_t offset)
{
    return (planes)_mm256_set_m128i(four_rows_4(rows->row + 4, offset), four_rows_4(rows->row, offset));
}

MICA_INLINE void row_bytes_16(const rows8 *rows, size_t offset, planes out[4])
{
    __m256i v[4];
    UNROLL for (int i = 0; i < 4; i++) /* 128-bit lane l: row 4l + i */
        v[i] = _mm256_set_m128i(_mm_loadu_si128((const __m128i *)(rows->row[4 + i] + offset)),
                                _mm_loadu_si128((const __m128i *)(rows->row[i] + offset)));
    __m256i a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
    __m256i c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    out[0] = (planes)_mm256_unpacklo_epi64(a, c);
    out[1] = (planes)_mm256_unpackhi_epi64(a, c);
    out[2] = (planes)_mm256_unpacklo_epi64(b, d);
    out[3] = (planes)_mm256_unpackhi_epi64(b, d);
}

MICA_INLINE planes look_up_bytes(const void *table, planes index)
{
    return (planes)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(table)), (__m256i)index);
}

#include "kern/x86/fill.h"

/* The f16 numbers in the low or the high halves of the lanes. */
MICA_INLINE __m256 halves(planes v, bool high)
{
    __m256i w = (__m256i)(high ? (planes)(v >> 16) : (planes)(v & 0xFFFFu)), packed = _mm256_packus_epi32(w, w);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

/* Expands the blocks with weights k to k_end, at most a tile. */
MICA_INLINE void fill_tile(const avx2_format *f, struct tile *t, const rows8 *rows, size_t row_bytes, int64_t k, int64_t k_end)
{
    for (int j = 0; j < 8 && k + 32 * j < k_end; j += f->block / 32) {
        size_t block = (size_t)((k + 32 * j) / f->block) * (size_t)f->bytes;
        prefetch_next(rows->row[0], ROWS, row_bytes, block, (size_t)f->bytes);
        fill_weights(f, rows, block, (planes *)t->w + 8 * j);
        finish_weights(f, t, 8 * j, f->block / 4);
        planes dm = fill_d_and_m(f, rows, block);
        t->d[j] = halves(dm, false);
        if (f->has_min) /* the K formats subtract it */
            t->m[j] = f->block == 256 ? _mm256_xor_ps(halves(dm, true), _mm256_set1_ps(-0.0f)) : halves(dm, true);
        if (f->block == 256) {
            fill_scales(f, rows, block, bias_of(f), (planes *)t->scale, (planes *)t->offset);
            finish_scales(t);
        }
    }
}

MICA_INLINE __m256i broadcast4(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
}

typedef struct tokens { /* T tokens of the activations */
    const int8_t *q[TOKENS];
    const float *d[TOKENS];
    const int16_t *sum[TOKENS];
} tokens;

MICA_INLINE void tile_32(const avx2_format *f, const struct tile *t, int parts, const tokens *x, int64_t k, int T, __m256 acc[])
{
    for (int j = 0; j < parts; j++) {
        __m256i total[TOKENS];
        int64_t b = k / 32 + j;
        UNROLL for (int i = 0; i < T; i++)
            total[i] = _mm256_setzero_si256();
        add32(f, t, j, x->q, k, T, total);
        UNROLL for (int i = 0; i < T; i++) {
            int32_t xsum = x->sum[i][2 * b] + x->sum[i][2 * b + 1];
            if (bias_of(f))
                total[i] = _mm256_sub_epi32(total[i], _mm256_set1_epi32(bias_of(f) * xsum));
            acc[i] = chain8(acc[i], t->d[j], x->d[i][b], total[i]);
            if (f->has_min)
                acc[i] = chain8(acc[i], t->m[j], x->d[i][b], _mm256_set1_epi32(xsum));
        }
    }
}

MICA_INLINE void tile_256(const avx2_format *f, const struct tile *t, const tokens *x, int64_t k, int T, __m256 acc[])
{
    __m256i total[TOKENS], offset[TOKENS];
    UNROLL for (int i = 0; i < T; i++)
        total[i] = offset[i] = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++)
        add32(f, t, j, x->q, k, T, total);
    for (int j = 0; j < 8 && (bias_of(f) || f->has_min); j++)
        UNROLL for (int i = 0; i < T; i++)
            offset[i] = _mm256_add_epi32(offset[i], _mm256_madd_epi16(t->offset[j], broadcast4(x->sum[i] + k / 16 + 2 * j)));
    UNROLL for (int i = 0; i < T; i++) {
        float dx = x->d[i][k / 256];
        if (bias_of(f))
            total[i] = _mm256_add_epi32(total[i], offset[i]);
        acc[i] = chain8(acc[i], t->d[0], dx, total[i]);
        if (f->has_min)
            acc[i] = chain8(acc[i], t->m[0], dx, offset[i]);
    }
}

/* T tokens from t0 through the tiles of one panel; past the last, that one again. The chains rest in `out` between panels. */
MICA_INLINE void panel_tokens(const avx2_format *f, const mica_matmul *m, const struct tile *tiles, int64_t k0, int64_t k1, int32_t t0,
                              int T, int64_t r, int n_rows)
{
    const mica_act *act = m->x;
    tokens x = {0};
    __m256 acc[TOKENS];
    float tail[ROWS];
    UNROLL for (int i = 0; i < T; i++) {
        int64_t t = t0 + i < act->n ? t0 + i : act->n - 1;
        x.q[i] = act->q + t * act->k;
        x.d[i] = act->d + t * (act->k / f->block);
        x.sum[i] = act->sum + t * (act->k / 16);
        const float *out = m->out + t * m->out_stride + r;
        if (k0 == 0) {
            acc[i] = _mm256_setzero_ps();
        } else if (n_rows == ROWS) {
            acc[i] = _mm256_loadu_ps(out);
        } else {
            memset(tail, 0, sizeof tail);
            memcpy(tail, out, (size_t)n_rows * sizeof *out);
            acc[i] = _mm256_loadu_ps(tail);
        }
    }
    for (int64_t k = k0; k < k1; k += 256) {
        if (f->block == 32)
            tile_32(f, tiles + (k - k0) / 256, k1 - k < 256 ? (int)(k1 - k) / 32 : 8, &x, k, T, acc);
        else
            tile_256(f, tiles + (k - k0) / 256, &x, k, T, acc);
    }
    UNROLL for (int i = 0; i < T; i++)
        if (t0 + i < act->n)
            store_rows(m->out + (t0 + i) * m->out_stride + r, acc[i], n_rows);
}

MICA_INLINE void gemm(const avx2_format *f, const mica_matmul *m, int64_t r0, int64_t r1, struct tile *tiles)
{
    int64_t k_end = m->x->k;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int64_t k0 = 0; k0 < k_end; k0 += 256 * TILES) {
            int64_t k1 = k_end - k0 < 256 * TILES ? k_end : k0 + 256 * TILES;
            for (int64_t k = k0; k < k1; k += 256)
                fill_tile(f, tiles + (k - k0) / 256, &rows, m->row_bytes, k, k1);
            for (int32_t t = 0; t < m->x->n; t += TOKENS)
                panel_tokens(f, m, tiles, k0, k1, t, TOKENS, r, rows.n);
        }
    }
}

#endif
