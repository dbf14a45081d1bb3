/* matmul.c - the definition of the matrix product: for every weight format, through its canonical integers (quant/quant.h). */
#include <string.h>

#include "base/mem.h"
#include "kern/fills.h"
#include "kern/ref/dot16.h"
#include "kern/ref/ref.h"

/* One block times one token's block: adds to the chain *acc. `parts` is block_weights / 16. */
static float block_dot(const mica_block_ints *b, bool has_min, int parts, const int8_t *x, const int16_t *sum, float dx, float acc)
{
    int32_t isum = 0, msum = 0;
    for (int j = 0; j < parts; j++) {
        int32_t part = 0;
        for (int i = 16 * j; i < 16 * j + 16; i++)
            part += b->q[i] * x[i];
        isum += b->scale[j] * part;
        msum += b->min[j] * sum[j];
    }
    acc = fmaf(b->d * dx, (float)isum, acc);
    return has_min ? fmaf(b->m * dx, (float)msum, acc) : acc;
}

#define TOKENS 64 /* tokens whose chains are kept side by side, so that a block is unpacked once for all of them */

static void matmul_blocks(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch)
{
    (void)scratch;
    const mica_act *x = m->x;
    int size = m->quant->block_weights, parts = size / 16;
    int64_t n_blocks = x->k / size;
    float acc[TOKENS];
    for (int64_t r = r0; r < r1; r++) {
        for (int32_t t0 = 0; t0 < x->n; t0 += TOKENS) {
            int32_t n = x->n - t0 < TOKENS ? x->n - t0 : TOKENS;
            memset(acc, 0, sizeof acc);
            for (int64_t b = 0; b < n_blocks; b++) {
                mica_block_ints ints;
                m->quant->unpack(m->w + (size_t)r * m->row_bytes + (size_t)b * (size_t)m->quant->block_bytes, &ints);
                for (int32_t t = 0; t < n; t++) {
                    int64_t row = t0 + t;
                    acc[t] = block_dot(&ints, m->quant->has_min, parts, x->q + row * x->k + b * size,
                                       x->sum + (row * x->k + b * size) / 16, x->d[row * n_blocks + b], acc[t]);
                }
            }
            for (int32_t t = 0; t < n; t++)
                m->out[(t0 + t) * m->out_stride + r] = acc[t];
        }
    }
}

/* Float weights: decoded in pieces of 1024 whose partial sums continue, so that scratch stays small. */
static void matmul_floats(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch)
{
    float *w = scratch;
    const int64_t piece = 1024;
    const mica_act *x = m->x;
    for (int64_t r = r0; r < r1; r++) {
        for (int32_t t = 0; t < x->n; t++) {
            float p[16] = {0};
            for (int64_t i = 0; i < x->k; i += piece) {
                int64_t n = x->k - i < piece ? x->k - i : piece;
                m->quant->decode(m->quant, m->w + (size_t)r * m->row_bytes + (size_t)i * (size_t)m->quant->block_bytes, w, (size_t)n);
                for (int64_t j = 0; j < n; j++)
                    p[j & 15] = fmaf(w[j], x->f[t * x->k + i + j], p[j & 15]);
            }
            m->out[t * m->out_stride + r] = mica_tree16(p);
        }
    }
}

void mica_ref_fill_matmul(mica_kernels *k)
{
    for (uint32_t type = 0; type < MICA_TYPE_COUNT; type++) {
        const mica_quant *quant = mica_quant_of(type);
        if (quant)
            k->gemv[type] = k->gemm[type] = quant->unpack ? matmul_blocks : matmul_floats;
    }
}
