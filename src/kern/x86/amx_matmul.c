/* amx_matmul.c - quantised products of many tokens with AMX: TDPB.. adds the products of 16 tokens with 16 rows over 64 weights (or
 * 32) to a tile of int32 sums, exactly. The weights lie in tiles as fill.h makes them, [4 weights][16 rows], which is AMX's own layout.
 *
 * 32-weight formats: one product of tiles a block, then the canonical float step of its sums.
 *
 * 256-weight formats: a weight times its sub-scale does not fit into a byte, but it is two digits that do: p = low + 2^DIGIT * high. So the
 * whole super-block is summed in two tiles, without leaving them for each sub-scale, and sum = low + (high << DIGIT): still exact.
 *   with mins (Q4_K, Q5_K: weights to 31, scales to 63): the digits of the scale, base 8: products to 31 * 7 = 217, unsigned
 *   without (Q6_K: |p| <= 32 * 128): the digits of the product, base 64: low -32..31, high -64..64
 */
#if defined(__x86_64__)
#include "kern/fills.h"
#include "kern/x86/avx2.h"
#include "kern/x86/amx_tiles.h"
#include "kern/x86/avx2_rows.h"
#include "kern/x86/avx512.h"

MICA_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")

#include "kern/x86/avx512_rows.h"

/* Fewer tokens than one tile of each format: AVX-512 is as fast, and needs no second expansion of 256-weight formats. */
#define AMX_FROM_32 16
#define AMX_FROM_256 32

#define TOKENS 16    /* of a tile */
#define UNROLL_TOKENS MICA_PRAGMA(GCC unroll 16) /* before a loop whose arrays are to live in registers */
#define MAX_TILES 16 /* tiles of tokens whose chains rest in the scratch memory at a time */

/* ---- tiles: sums in 0 to 3, tokens in 4, weights in 6 and 7, see amx_tiles.h ---- */

typedef struct sums { /* a tile of sums: [token][row] */
    __m512i of[TOKENS];
} sums;

typedef struct chains { /* the float chains of 16 tokens with 16 rows */
    __m512 of[TOKENS];
} chains;

/* ---- tokens: tile i has sixteen from first_token(i); the last tile begins earlier rather than having fewer, and what it computes
 * twice is the same ---- */

MICA_INLINE int64_t n_tiles(const mica_act *x) { return (x->n + TOKENS - 1) / TOKENS; }

MICA_INLINE int64_t first_token(const mica_act *x, int64_t tile)
{
    return TOKENS * (tile + 1) <= x->n ? TOKENS * tile : x->n - TOKENS;
}

MICA_INLINE void store_chains(const mica_matmul *m, const chains *acc, int64_t tile, int64_t r, int n_rows)
{
    float *out = m->out + first_token(m->x, tile) * m->out_stride + r;
    for (int i = 0; i < TOKENS; i++)
        _mm512_mask_storeu_ps(out + i * m->out_stride, row_mask(n_rows), acc->of[i]);
}

/* ---- 32-weight formats ---- */

#define PANEL 16 /* blocks: what is read for them again and again stays in the L1 cache */
#define AHEAD 3  /* blocks whose sums are under way while those of one go to the chains: a tile takes some hundred cycles from load to store */

typedef struct panel32 {
    __m512i w[PANEL][8]; /* signed, or with has_min unsigned */
    __m512 d[PANEL], m[PANEL];
    sums sum[AHEAD + 1]; /* in turn */
    float xsum[TOKENS][PANEL];
} panel32;

typedef struct scratch32 {
    panel32 panel;
    chains acc[MAX_TILES];
} scratch32;
_Static_assert(sizeof(scratch32) <= MICA_MATMUL_SCRATCH, "all of it is in the caller's scratch memory");

MICA_INLINE void fill_panel(const avx2_format *f, panel32 *p, const tile_rows *rows, size_t row_bytes, int64_t b0, int n)
{
    const __m512i bias = _mm512_set1_epi8((char)f->bias);
    for (int j = 0; j < n; j++) {
        size_t block = (size_t)(b0 + j) * (size_t)f->bytes;
        prefetch_next(rows->row[0], TILE_ROWS, row_bytes, block, (size_t)f->bytes);
        fill_weights(f, rows, block, (planes *)p->w[j]);
        for (int g = 0; f->bias && g < 8; g++)
            p->w[j][g] = _mm512_sub_epi8(p->w[j][g], bias);
        planes dm = fill_d_and_m(f, rows, block);
        p->d[j] = halves(dm, false);
        if (f->has_min)
            p->m[j] = halves(dm, true);
    }
}

/* The sums of the tokens' blocks as floats: exact, they are at most 32 * 127. */
MICA_INLINE void sum_tokens(panel32 *p, const mica_act *x, int64_t t0, int64_t b0, int n)
{
    __mmask16 there = row_mask(n);
    for (int i = 0; i < TOKENS; i++) {
        const int16_t *sum = x->sum + (t0 + i) * (x->k / 16) + 2 * b0; /* two for each block */
        __m512i pairs = _mm512_castps_si512(_mm512_maskz_loadu_ps(there, sum));
        __m512i total = _mm512_dpwssd_epi32(_mm512_setzero_si512(), pairs, _mm512_set1_epi16(1));
        _mm512_storeu_ps(p->xsum[i], _mm512_cvtepi32_ps(total));
    }
}

MICA_INLINE void multiply_block(const avx2_format *f, const int8_t *q, int64_t k, const __m512i *w, sums *out)
{
    TILE_LOAD(4, q, k);
    TILE_LOAD(6, w, 64);
    TILE_ZERO(0);
    if (f->has_min)
        TILE_ADD(su, 0, 6);
    else
        TILE_ADD(ss, 0, 6);
    TILE_STORE(0, out);
}

MICA_INLINE void add_block(const avx2_format *f, const panel32 *p, int j, const sums *sum, const float *dx, int64_t stride, __m512 acc[])
{
    UNROLL_TOKENS for (int i = 0; i < TOKENS; i++) {
        __m512 scale = _mm512_set1_ps(dx[i * stride]);
        acc[i] = _mm512_fmadd_ps(_mm512_mul_ps(p->d[j], scale), _mm512_cvtepi32_ps(sum->of[i]), acc[i]);
        if (f->has_min)
            acc[i] = _mm512_fmadd_ps(_mm512_mul_ps(p->m[j], scale), _mm512_set1_ps(p->xsum[i][j]), acc[i]);
    }
}

/* n blocks from b0 of one tile of tokens. */
MICA_INLINE void multiply_panel(const avx2_format *f, panel32 *p, const mica_act *x, int64_t t0, int64_t b0, int n, chains *chain)
{
    const int8_t *q = x->q + t0 * x->k + 32 * b0;
    const float *dx = x->d + t0 * (x->k / 32) + b0;
    __m512 acc[TOKENS];
    if (f->has_min)
        sum_tokens(p, x, t0, b0, n);
    UNROLL_TOKENS for (int i = 0; i < TOKENS; i++)
        acc[i] = b0 ? chain->of[i] : _mm512_setzero_ps();
    for (int j = 0; j < n + AHEAD; j++) {
        if (j < n)
            multiply_block(f, q + 32 * j, x->k, p->w[j], &p->sum[j % (AHEAD + 1)]);
        if (j >= AHEAD)
            add_block(f, p, j - AHEAD, &p->sum[(j - AHEAD) % (AHEAD + 1)], dx + j - AHEAD, x->k / 32, acc);
    }
    UNROLL_TOKENS for (int i = 0; i < TOKENS; i++)
        chain->of[i] = acc[i];
}

MICA_INLINE void gemm_32(const avx2_format *f, const mica_matmul *m, int64_t r0, int64_t r1, scratch32 *s)
{
    int64_t blocks = m->x->k / 32, all = n_tiles(m->x);
    tiles_configure(32);
    for (int64_t r = r0; r < r1; r += TILE_ROWS) {
        tile_rows rows = tile_rows_at(m, r, r1);
        for (int64_t first = 0; first < all; first += MAX_TILES) {
            int64_t end = first + MAX_TILES < all ? first + MAX_TILES : all;
            for (int64_t b = 0; b < blocks; b += PANEL) {
                int n = blocks - b < PANEL ? (int)(blocks - b) : PANEL;
                fill_panel(f, &s->panel, &rows, m->row_bytes, b, n);
                for (int64_t t = first; t < end; t++)
                    multiply_panel(f, &s->panel, m->x, first_token(m->x, t), b, n, &s->acc[t - first]);
            }
            for (int64_t t = first; t < end; t++)
                store_chains(m, &s->acc[t - first], t, r, rows.n);
        }
    }
    tiles_release();
}

/* ---- 256-weight formats: two times sixteen rows, so that a token's bytes are fetched for 32 of them ---- */

#define PAIR 2

typedef struct block256 { /* of sixteen rows */
    __m512i low[64], high[64]; /* digits of weight * scale */
    __m512i offset[8];         /* mins, as int16 pairs for 32 weights */
    __m512 d, m;
} block256;

typedef struct scratch256 {
    block256 block[PAIR];
    sums low[PAIR], high[PAIR];
    chains acc[MAX_TILES][PAIR];
} scratch256;
_Static_assert(sizeof(scratch256) <= MICA_MATMUL_SCRATCH, "all of it is in the caller's scratch memory");

MICA_INLINE int digit_bits(const avx2_format *f) { return f->has_min ? 3 : 6; }

/* Four weights and their scale (int16, twice in a lane) to digits: of the scale. A product is below 256: two bytes in one multiplication. */
MICA_INLINE void digits_unsigned(__m512i w, __m512i scale, __m512i *low, __m512i *high)
{
    *low = _mm512_mullo_epi16(w, _mm512_and_si512(scale, _mm512_set1_epi16(7)));
    *high = _mm512_mullo_epi16(w, _mm512_srli_epi16(scale, 3));
}

/* The same with digits of the products of signed weights. */
MICA_INLINE void digits_signed(__m512i w, __m512i scale, __m512i *low, __m512i *high)
{
    __m512i even = _mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8), scale);
    __m512i odd = _mm512_mullo_epi16(_mm512_srai_epi16(w, 8), scale);
    const __m512i half = _mm512_set1_epi16(32);
    __m512i even_high = _mm512_srai_epi16(_mm512_add_epi16(even, half), 6), odd_high = _mm512_srai_epi16(_mm512_add_epi16(odd, half), 6);
    even = _mm512_sub_epi16(even, _mm512_slli_epi16(even_high, 6));
    odd = _mm512_sub_epi16(odd, _mm512_slli_epi16(odd_high, 6));
    const __mmask64 odd_bytes = 0xAAAAAAAAAAAAAAAA;
    *low = _mm512_mask_blend_epi8(odd_bytes, even, _mm512_slli_epi16(odd, 8));
    *high = _mm512_mask_blend_epi8(odd_bytes, even_high, _mm512_slli_epi16(odd_high, 8));
}

MICA_INLINE void fill_block(const avx2_format *f, block256 *t, const tile_rows *rows, size_t row_bytes, int64_t b)
{
    size_t block = (size_t)b * (size_t)f->bytes;
    __m512i scale[16];
    const __m512i bias = _mm512_set1_epi8((char)f->bias);
    prefetch_next(rows->row[0], TILE_ROWS, row_bytes, block, (size_t)f->bytes);
    fill_weights(f, rows, block, (planes *)t->low);
    fill_scales(f, rows, block, 0, (planes *)scale, (planes *)t->offset);
    for (int i = 0; i < 16; i++) {
        __m512i s = scale[f->sub16 ? i : i & ~1];
        s = (__m512i)pair16((planes)s, (planes)s);
        for (int g = 4 * i; g < 4 * i + 4; g++) {
            if (f->has_min)
                digits_unsigned(t->low[g], s, &t->low[g], &t->high[g]);
            else
                digits_signed(_mm512_sub_epi8(t->low[g], bias), s, &t->low[g], &t->high[g]);
        }
    }
    planes dm = fill_d_and_m(f, rows, block);
    t->d = halves(dm, false);
    if (f->has_min) /* the K formats subtract it */
        t->m = _mm512_xor_ps(halves(dm, true), _mm512_set1_ps(-0.0f));
}

#define ADD_DIGITS(op, block, low_sums, high_sums)  \
    TILE_LOAD(6, (block).low + 16 * part, 64);      \
    TILE_LOAD(7, (block).high + 16 * part, 64);     \
    TILE_ADD(op, low_sums, 6);                      \
    TILE_ADD(op, high_sums, 7)

/* The sums of a tile of tokens with one super-block of all rows. */
MICA_INLINE void multiply_digits(const avx2_format *f, scratch256 *s, const int8_t *q, int64_t k, int n)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int part = 0; part < 4; part++) {
        TILE_LOAD(4, q + 64 * part, k);
        if (f->has_min) {
            ADD_DIGITS(su, s->block[0], 0, 1);
        } else {
            ADD_DIGITS(ss, s->block[0], 0, 1);
        }
        if (n == 1)
            continue;
        if (f->has_min) {
            ADD_DIGITS(su, s->block[1], 2, 3);
        } else {
            ADD_DIGITS(ss, s->block[1], 2, 3);
        }
    }
    TILE_STORE(0, &s->low[0]);
    TILE_STORE(1, &s->high[0]);
    TILE_STORE(2, &s->low[1]);
    TILE_STORE(3, &s->high[1]);
}

/* Adds super-block b of sixteen tokens from t0 to the chains of sixteen rows. */
MICA_INLINE void add_super_block(const avx2_format *f, const block256 *block, const sums *low, const sums *high, const mica_act *x,
                                 int64_t t0, int64_t b, chains *chain)
{
    for (int i = 0; i < TOKENS; i++) {
        __m512 acc = b ? chain->of[i] : _mm512_setzero_ps();
        float dx = x->d[(t0 + i) * (x->k / 256) + b];
        acc = chain16(acc, block->d, dx, _mm512_add_epi32(low->of[i], _mm512_slli_epi32(high->of[i], (unsigned)digit_bits(f))));
        if (f->has_min) {
            const int16_t *sum = x->sum + (t0 + i) * (x->k / 16) + 16 * b;
            __m512i mins = _mm512_setzero_si512();
            UNROLL for (int j = 0; j < 8; j++)
                mins = _mm512_dpwssd_epi32(mins, block->offset[j], broadcast4(sum + 2 * j));
            acc = chain16(acc, block->m, dx, mins);
        }
        chain->of[i] = acc;
    }
}

MICA_INLINE void gemm_256(const avx2_format *f, const mica_matmul *m, int64_t r0, int64_t r1, scratch256 *s)
{
    const mica_act *x = m->x;
    int64_t blocks = x->k / 256, all = n_tiles(x);
    tiles_configure(64);
    for (int64_t r = r0; r < r1; r += PAIR * TILE_ROWS) {
        int n = r1 - r > TILE_ROWS ? PAIR : 1;
        tile_rows rows[PAIR];
        for (int i = 0; i < n; i++)
            rows[i] = tile_rows_at(m, r + i * TILE_ROWS, r1);
        for (int64_t first = 0; first < all; first += MAX_TILES) {
            int64_t end = first + MAX_TILES < all ? first + MAX_TILES : all;
            for (int64_t b = 0; b < blocks; b++) {
                for (int i = 0; i < n; i++)
                    fill_block(f, &s->block[i], &rows[i], m->row_bytes, b);
                for (int64_t t = first; t < end; t++) {
                    int64_t t0 = first_token(x, t);
                    multiply_digits(f, s, x->q + t0 * x->k + 256 * b, x->k, n);
                    for (int i = 0; i < n; i++)
                        add_super_block(f, &s->block[i], &s->low[i], &s->high[i], x, t0, b, &s->acc[t - first][i]);
                }
            }
            for (int64_t t = first; t < end; t++)
                for (int i = 0; i < n; i++)
                    store_chains(m, &s->acc[t - first][i], t, r + i * TILE_ROWS, rows[i].n);
        }
    }
    tiles_release();
}

/* ---- one function a format ---- */

#define AMX_DEFINE_GEMM(type, name, bits)                                                               \
    MICA_ROW(PRODUCT_##name, static void gemm_##name(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch) \
    {                                                                                                   \
        if (m->x->n < AMX_FROM_##bits)                                                                  \
            mica_avx512_gemm(m, r0, r1, scratch);                                                       \
        else                                                                                            \
            gemm_##bits(&format_##name, m, r0, r1, scratch);                                            \
    })
#define AMX_DEFINE_GEMM_32(type, name) AMX_DEFINE_GEMM(type, name, 32)
#define AMX_DEFINE_GEMM_256(type, name) AMX_DEFINE_GEMM(type, name, 256)

AVX2_COMMON_32(AMX_DEFINE_GEMM_32)
AVX2_COMMON_256(AMX_DEFINE_GEMM_256)

MICA_TARGET_END

void mica_kernels_fill_amx(mica_kernels *k)
{
    AVX2_COMMON(AVX2_FILL_GEMM)
}
#endif
