/* wasm_gemm.h - quantised products for many tokens: eight rows are expanded once, to what the set multiplies, and all tokens
 * use that. */
#ifndef MICA_KERN_WASM_WASM_GEMM_H
#define MICA_KERN_WASM_WASM_GEMM_H
#include "kern/wasm/wasm_rows.h"

#define TOKENS 2 /* computed together: the weights are loaded once for both */
#define TILES  2 /* a panel of the rows: 512 weights; with the tokens' bytes it stays in an L1 cache of 32 KiB */

typedef struct tile { /* 256 weights of eight rows: eight blocks of a 32-weight format, or one of 256 */
    v128_t w[8][ROWS][4]; /* weights 32j..32j+31 of each row, see vec32 */
    v128_t scale[ROWS][4], sc[ROWS][2], mn[ROWS][2]; /* of 256-weight blocks: int32, and int16 */
    pair8 d[8], m[8];     /* of the blocks */
} tile;
_Static_assert(TILES * sizeof(tile) <= MICA_MATMUL_SCRATCH, "the panel is in the caller's scratch memory");

typedef struct tokens { /* the activations computed together */
    const int8_t *q[TOKENS];
    const float *d[TOKENS];
    const int16_t *sum[TOKENS];
} tokens;

MICA_INLINE void fill_scales(const wasm_format *f, tile *t, const rows8 *rows, size_t offset)
{
    for (int i = 0; i < ROWS; i++) {
        v128_t s[4] = {0};
        f->scales(rows->row[i] + offset, t->sc[i], t->mn[i]);
        widen_scales(f, t->sc[i], s);
        UNROLL for (int j = 0; j < 4; j++)
            t->scale[i][j] = s[j];
    }
}

/* Expands `parts` * 32 weights from weight `k` on. */
MICA_INLINE void fill_tile(const wasm_format *f, tile *t, const rows8 *rows, int64_t k, int parts)
{
    for (int j = 0; j < parts; j++) {
        size_t offset = (size_t)((k + 32 * j) / f->block) * (size_t)f->bytes;
        for (int i = 0; i < ROWS; i++) {
            vec32 w = weights32(f->wide, f->unpack(rows->row[i] + offset, f->block == 32 ? 0 : j));
            UNROLL for (int v = 0; v < vectors_of(f->wide); v++)
                t->w[j][i][v] = w.v[v];
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

MICA_INLINE vec32 tile_weights(const wasm_format *f, const tile *t, int j, int r)
{
    vec32 w;
    UNROLL for (int v = 0; v < vectors_of(f->wide); v++)
        w.v[v] = t->w[j][r][v];
    return w;
}

/* Block j of each token of a 32-weight format joins the chains. */
MICA_INLINE void tile_32(const wasm_format *f, const tile *t, int j, const tokens *x, int64_t k, int T, pair8 acc[])
{
    int64_t b = k / 32 + j;
    v128_t v[TOKENS][ROWS];
    vec32 xj[TOKENS];
    UNROLL for (int i = 0; i < T; i++)
        xj[i] = acts32(f->wide, x->q[i] + 32 * b);
    UNROLL for (int r = 0; r < ROWS; r++) {
        vec32 w = tile_weights(f, t, j, r);
        UNROLL for (int i = 0; i < T; i++)
            v[i][r] = dot32(f->wide, &w, &xj[i]);
    }
    UNROLL for (int i = 0; i < T; i++) {
        int32_t xsum = x->sum[i][2 * b] + x->sum[i][2 * b + 1];
        pair8 isum = reduce8(v[i]);
        if (f->bias)
            isum = minus8(isum, same8(f->bias * xsum));
        acc[i] = chain8(acc[i], t->d[j], x->d[i][b], isum);
        if (f->has_min)
            acc[i] = chain8(acc[i], t->m[j], x->d[i][b], same8(xsum));
    }
}

/* isum of row r for each token, spread over four lanes. */
MICA_INLINE void row_tokens_256(const wasm_format *f, const tile *t, int r, const tokens *x, int64_t k, int T, v128_t total[])
{
    UNROLL for (int i = 0; i < T; i++)
        total[i] = wasm_i32x4_const_splat(0);
    UNROLL for (int j = 0; j < 8; j++) {
        vec32 w = tile_weights(f, t, j, r);
        UNROLL for (int i = 0; i < T; i++) {
            vec32 xj = acts32(f->wide, x->q[i] + k + 32 * j);
            if (f->sub16) {
                total[i] = add_scaled(total[i], dot16(f->wide, &w, &xj, 0), t->scale[r], 2 * j);
                total[i] = add_scaled(total[i], dot16(f->wide, &w, &xj, 1), t->scale[r], 2 * j + 1);
            } else {
                total[i] = add_scaled(total[i], dot32(f->wide, &w, &xj), t->scale[r], j);
            }
        }
    }
}

MICA_INLINE void tile_256(const wasm_format *f, const tile *t, const tokens *x, int64_t k, int T, pair8 acc[])
{
    v128_t v[TOKENS][ROWS], mins[TOKENS][ROWS], sums[TOKENS][2];
    const v128_t bias = wasm_i32x4_splat(f->bias);
    UNROLL for (int i = 0; i < T; i++)
        load_sums(f, x->sum[i] + k / 16, sums[i]);
    for (int r = 0; r < ROWS; r++) {
        v128_t total[TOKENS];
        row_tokens_256(f, t, r, x, k, T, total);
        UNROLL for (int i = 0; i < T; i++) {
            v[i][r] = f->bias ? wasm_i32x4_sub(total[i], wasm_i32x4_mul(dot_sums(f, t->sc[r], sums[i]), bias)) : total[i];
            if (f->has_min)
                mins[i][r] = dot_sums(f, t->mn[r], sums[i]);
        }
    }
    UNROLL for (int i = 0; i < T; i++) {
        float dx = x->d[i][k / 256];
        acc[i] = chain8(acc[i], t->d[0], dx, reduce8(v[i]));
        if (f->has_min)
            acc[i] = chain8(acc[i], t->m[0], dx, reduce8(mins[i]));
    }
}

/* T tokens from t0 through the tiles of one panel. The chains rest in `out` between panels. */
MICA_INLINE void panel_tokens(const wasm_format *f, const mica_matmul *m, const tile *tiles, int64_t k0, int64_t k1, int32_t t0,
                              int T, int64_t r, int n_rows)
{
    const mica_act *act = m->x;
    tokens x;
    pair8 acc[TOKENS];
    UNROLL for (int i = 0; i < T; i++) {
        int64_t t = t0 + i;
        x.q[i] = act->q + t * act->k;
        x.d[i] = act->d + t * (act->k / f->block);
        x.sum[i] = act->sum + t * (act->k / 16);
        acc[i] = k0 == 0 ? zero8() : load_rows(m->out + t * m->out_stride + r, n_rows);
    }
    for (int64_t k = k0; k < k1; k += 256) {
        const tile *t = tiles + (k - k0) / 256;
        int parts = k1 - k < 256 ? (int)(k1 - k) / 32 : 8;
        if (f->block == 256)
            tile_256(f, t, &x, k, T, acc);
        else
            for (int j = 0; j < parts; j++)
                tile_32(f, t, j, &x, k, T, acc);
    }
    UNROLL for (int i = 0; i < T; i++)
        store_rows(m->out + (t0 + i) * m->out_stride + r, acc[i], n_rows);
}

MICA_INLINE void gemm(const wasm_format *f, const mica_matmul *m, int64_t r0, int64_t r1, tile *tiles)
{
    int64_t k_end = m->x->k;
    for (int64_t r = r0; r < r1; r += ROWS) {
        rows8 rows = rows_at(m, r, r1);
        for (int64_t k0 = 0; k0 < k_end; k0 += 256 * TILES) {
            int64_t k1 = k_end - k0 < 256 * TILES ? k_end : k0 + 256 * TILES;
            for (int64_t k = k0; k < k1; k += 256)
                fill_tile(f, tiles + (k - k0) / 256, &rows, k, k1 - k < 256 ? (int)(k1 - k) / 32 : 8);
            int32_t t = 0;
            for (; t + TOKENS <= m->x->n; t += TOKENS)
                panel_tokens(f, m, tiles, k0, k1, t, TOKENS, r, rows.n);
            for (; t < m->x->n; t++)
                panel_tokens(f, m, tiles, k0, k1, t, 1, r, rows.n);
        }
    }
}

#endif
