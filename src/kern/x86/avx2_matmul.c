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

#define GEMM_FROM 3 /* tokens from which expanding a tile pays (measured: docs/performance.md) */

/* 16 sums of two products; |w| <= 128 and |x| <= 127, so a lane is at most 32512. */
MICA_INLINE __m256i products(const avx2_format *f, __m256i w, __m256i x)
{
    return f->is_signed ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) : _mm256_maddubs_epi16(w, x);
}

/* ---- one token ---- */

MICA_INLINE __m256 gemv_rows_32(const avx2_format *f, const rows8 *rows, int64_t n_blocks, size_t row_bytes, const int8_t *x,
                                const float *d, const int16_t *sum)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256 acc = _mm256_setzero_ps();
    for (int64_t b = 0; b < n_blocks; b++) {
        size_t offset = (size_t)b * (size_t)f->bytes;
        __m256i xb = _mm256_loadu_si256((const __m256i *)(x + 32 * b)), v[ROWS];
        prefetch_next(rows, row_bytes, offset, (size_t)f->bytes);
        UNROLL for (int i = 0; i < ROWS; i++)
            v[i] = _mm256_madd_epi16(products(f, f->unpack(rows->row[i] + offset, 0), xb), ones);
        __m256i isum = reduce8(v);
        int32_t xsum = sum[2 * b] + sum[2 * b + 1];
        if (f->bias)
            isum = _mm256_sub_epi32(isum, _mm256_set1_epi32(f->bias * xsum));
        acc = chain8(acc, gather_f16(rows, offset), d[b], isum);
        if (f->has_min)
            acc = chain8(acc, gather_min(f, rows, offset), d[b], _mm256_set1_epi32(xsum));
    }
    return acc;
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
        prefetch_next(rows, row_bytes, offset, (size_t)f->bytes);
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

MICA_INLINE void gemv(const avx2_format *f, const mica_matmul *m, int64_t r0, int64_t r1)
{
    const mica_act *x = m->x;
    int64_t n_blocks = x->k / f->block;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int32_t t = 0; t < x->n; t++) {
            const int8_t *q = x->q + t * x->k;
            const float *d = x->d + t * n_blocks;
            const int16_t *sum = x->sum + t * x->k / 16;
            __m256 acc = f->block == 32 ? gemv_rows_32(f, &rows, n_blocks, m->row_bytes, q, d, sum)
                                        : gemv_rows_256(f, &rows, n_blocks, m->row_bytes, q, d, sum);
            store_rows(m->out + t * m->out_stride + r, acc, rows.n);
        }
    }
}

/* ---- many tokens ---- */

/* 256 weights of eight rows. Eight blocks of a 32-weight format, or one of a 256-weight format. */
typedef struct tile {
    __m256i w[64];      /* group g: weights 4g..4g+3 of the eight rows; of signed formats the absolute values */
    __m256i sign[64];   /* signed formats: the weights themselves */
    __m256i scale[16];  /* int16 pairs, the scale of 16 weights twice, for each row */
    __m256i offset[8];  /* int16 pairs for 32 weights of each row: mins, or -bias * scale: multiplies the sums of x */
    __m256 d[8], m[8];
} tile;

#define TILES 2 /* a panel of the rows: 512 weights; with the tokens' bytes it stays in the L1 cache */
_Static_assert(TILES * sizeof(tile) <= MICA_MATMUL_SCRATCH, "the panel is in the caller's scratch memory");

MICA_INLINE void fill_scales(const avx2_format *f, tile *t, const rows8 *rows, size_t offset)
{
    int16_t sc[ROWS][16], mn[ROWS][16]; /* even ones first */
    UNROLL for (int i = 0; i < ROWS; i++) {
        __m256i s, n = _mm256_setzero_si256();
        f->scales(rows->row[i] + offset, &s, &n);
        if (f->bias)
            n = _mm256_mullo_epi16(s, _mm256_set1_epi16((int16_t)-f->bias));
        _mm256_storeu_si256((__m256i *)sc[i], s);
        _mm256_storeu_si256((__m256i *)mn[i], n);
    }
    for (int j = 0; j < 8; j++) {
        int16_t *even = (int16_t *)&t->scale[2 * j], *odd = (int16_t *)&t->scale[2 * j + 1], *off = (int16_t *)&t->offset[j];
        UNROLL for (int i = 0; i < ROWS; i++) {
            even[2 * i] = even[2 * i + 1] = sc[i][j];
            odd[2 * i] = odd[2 * i + 1] = sc[i][8 + j];
            off[2 * i] = mn[i][j];
            off[2 * i + 1] = mn[i][8 + j];
        }
    }
}

/* Expands `parts` * 32 weights from weight `k` on. */
MICA_INLINE void fill_tile(const avx2_format *f, tile *t, const rows8 *rows, int64_t k, int parts)
{
    for (int j = 0; j < parts; j++) {
        size_t offset = (size_t)((k + 32 * j) / f->block) * (size_t)f->bytes;
        __m256i in[ROWS], out[8];
        UNROLL for (int i = 0; i < ROWS; i++)
            in[i] = f->unpack(rows->row[i] + offset, f->block == 32 ? 0 : j);
        transpose8(in, out);
        for (int g = 0; g < 8; g++) {
            t->w[8 * j + g] = f->is_signed ? _mm256_abs_epi8(out[g]) : out[g];
            if (f->is_signed)
                t->sign[8 * j + g] = out[g];
        }
        if (f->block == 32 || j == 0) {
            t->d[j] = gather_f16(rows, offset + (size_t)f->d_offset);
            if (f->has_min)
                t->m[j] = gather_min(f, rows, offset);
            if (f->block == 256)
                fill_scales(f, t, rows, offset);
        }
    }
}

MICA_INLINE __m256i broadcast4(const void *p)
{
    int32_t v;
    memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
}

/* Adds 32 weights of eight rows times T tokens to total[]: int16 sums of at most f->groups products, then widened and scaled. */
MICA_INLINE void tile_part(const avx2_format *f, const tile *t, int j, const int8_t *const x[], int64_t k, int T, __m256i total[])
{
    int step = f->sub16 && f->groups > 4 ? 4 : f->groups;
    for (int g = 0; g < 8; g += step) {
        __m256i scale = f->block == 32 ? _mm256_set1_epi16(1) : t->scale[2 * j + g / 4], sum[4];
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

typedef struct tokens { /* T tokens of the activations */
    const int8_t *q[4];
    const float *d[4];
    const int16_t *sum[4];
} tokens;

MICA_INLINE void tile_32(const avx2_format *f, const tile *t, int parts, const tokens *x, int64_t k, int T, __m256 acc[])
{
    for (int j = 0; j < parts; j++) {
        __m256i total[4];
        int64_t b = k / 32 + j;
        UNROLL for (int i = 0; i < T; i++)
            total[i] = _mm256_setzero_si256();
        tile_part(f, t, j, x->q, k, T, total);
        UNROLL for (int i = 0; i < T; i++) {
            int32_t xsum = x->sum[i][2 * b] + x->sum[i][2 * b + 1];
            if (f->bias)
                total[i] = _mm256_sub_epi32(total[i], _mm256_set1_epi32(f->bias * xsum));
            acc[i] = chain8(acc[i], t->d[j], x->d[i][b], total[i]);
            if (f->has_min)
                acc[i] = chain8(acc[i], t->m[j], x->d[i][b], _mm256_set1_epi32(xsum));
        }
    }
}

MICA_INLINE void tile_256(const avx2_format *f, const tile *t, const tokens *x, int64_t k, int T, __m256 acc[])
{
    __m256i total[4], offset[4];
    UNROLL for (int i = 0; i < T; i++)
        total[i] = offset[i] = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++)
        tile_part(f, t, j, x->q, k, T, total);
    for (int j = 0; j < 8 && (f->bias || f->has_min); j++)
        UNROLL for (int i = 0; i < T; i++)
            offset[i] = _mm256_add_epi32(offset[i], _mm256_madd_epi16(t->offset[j], broadcast4(x->sum[i] + k / 16 + 2 * j)));
    UNROLL for (int i = 0; i < T; i++) {
        float dx = x->d[i][k / 256];
        if (f->bias)
            total[i] = _mm256_add_epi32(total[i], offset[i]);
        acc[i] = chain8(acc[i], t->d[0], dx, total[i]);
        if (f->has_min)
            acc[i] = chain8(acc[i], t->m[0], dx, offset[i]);
    }
}

/* T tokens from t0 through the tiles of one panel. The chains rest in `out` between panels. */
MICA_INLINE void panel_tokens(const avx2_format *f, const mica_matmul *m, const tile *tiles, int64_t k0, int64_t k1, int32_t t0,
                              int T, int64_t r, int n_rows)
{
    const mica_act *act = m->x;
    tokens x = {0};
    __m256 acc[4];
    float tail[ROWS];
    UNROLL for (int i = 0; i < T; i++) {
        int64_t t = t0 + i;
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
        store_rows(m->out + (t0 + i) * m->out_stride + r, acc[i], n_rows);
}

MICA_INLINE void gemm(const avx2_format *f, const mica_matmul *m, int64_t r0, int64_t r1, tile *tiles)
{
    int64_t k_end = m->x->k;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int64_t k0 = 0; k0 < k_end; k0 += 256 * TILES) {
            int64_t k1 = k_end - k0 < 256 * TILES ? k_end : k0 + 256 * TILES;
            for (int64_t k = k0; k < k1; k += 256)
                fill_tile(f, tiles + (k - k0) / 256, &rows, k, k1 - k < 256 ? (int)(k1 - k) / 32 : 8);
            int32_t t = 0;
            for (; t + 4 <= m->x->n; t += 4)
                panel_tokens(f, m, tiles, k0, k1, t, 4, r, rows.n);
            for (; t < m->x->n; t++)
                panel_tokens(f, m, tiles, k0, k1, t, 1, r, rows.n);
        }
    }
}

/* ---- one function a format ---- */

#define MATMUL(type, name)                                                                   \
    void mica_avx2_matmul_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                        \
        if (m->x->n < GEMM_FROM)                                                             \
            gemv(&format_##name, m, r0, r1);                                                 \
        else                                                                                 \
            gemm(&format_##name, m, r0, r1, scratch);                                        \
    }
AVX2_FORMATS(MATMUL)
#undef MATMUL

MICA_TARGET_END

void mica_avx2_fill_matmul(mica_kernels *k)
{
#define FILL(type, name) k->matmul[MICA_TYPE_##type] = mica_avx2_matmul_##name;
    AVX2_FORMATS(FILL)
#undef FILL
}
#endif
