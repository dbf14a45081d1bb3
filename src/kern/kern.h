/* kern.h - one table of function pointers per instruction set: everything the forward pass computes.
 *
 * Every entry gives the same bits in every set (docs/numerics.md). The portable set (ref/) is the definition; an instruction set
 * fills what it does better and takes the rest from the level below, so every entry falls back alone, and
 * mica_kernels_describe() says which did. Tests compare each entry with the portable one by memcmp, and opening a model does so
 * on a few numbers (check.c).
 *
 * Conventions: n, k count elements; rows are weight rows; pointers do not overlap unless said; no entry allocates.
 */
#ifndef MICA_KERN_KERN_H
#define MICA_KERN_KERN_H
#include "base/buf.h"
#include "base/error.h"
#include "quant/quant.h"

/** Activations of `n` tokens, as the matmuls read them. Quantised to int8 in blocks of `block` elements (32 or 256), or plain
 * floats for float weights. The quantised form: x[i] ~ d[i / block] * q[i]; a block with a non-finite value has d = NaN, q = 0,
 * so that it poisons the result instead of hiding. */
typedef struct mica_act {
    int32_t n;          /* tokens */
    int64_t k;          /* elements of a token, a multiple of `block` */
    int32_t block;      /* 32, 256, or 1: floats */
    const float *f;     /* [n][k], block == 1 */
    const int8_t *q;    /* [n][k] */
    const float *d;     /* [n][k / block] */
    const int16_t *sum; /* [n][k / 16]: sums of 16 consecutive q */
} mica_act;

/** out[t * out_stride + r] = sum_k w[r][k] * x[t][k] */
typedef struct mica_matmul {
    const mica_quant *quant;
    const uint8_t *w; /* [rows][row_bytes], in the file's mapping */
    size_t row_bytes;
    const mica_act *x;
    float *out;
    int64_t out_stride;
} mica_matmul;

/** Rows [r0, r1) for all tokens. `scratch` is 64-byte aligned, MICA_MATMUL_SCRATCH bytes for the calling thread alone. */
typedef void (*mica_matmul_fn)(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch);
#define MICA_MATMUL_SCRATCH (64 * 1024)
#define MICA_MAX_K 131072 /* longest row: bounded so that no int32 block sum can overflow and scratch suffices */

/* Tokens from which expanding weights into a tile pays: measured on x86 (docs/performance.md), taken over on ARM. */
#define MICA_GEMM_FROM 3

#define MICA_ATTN_TILE 64 /* positions; fixed by the numerics law: the online softmax is updated tile by tile */

/** A new entry that is no product needs a row in entries.h as well. */
typedef struct mica_kernels {
    const char *name; /* of the set that was chosen */

    /* q, d and sum of one token, see mica_act; k is a multiple of 32 or 256 */
    void (*quantize32)(const float *x, int64_t k, int8_t *q, float *d, int16_t *sum);
    void (*quantize256)(const float *x, int64_t k, int8_t *q, float *d, int16_t *sum);

    /* By weight type: meant for fewer tokens than MICA_GEMM_FROM, and for as many or more; right for any number */
    mica_matmul_fn gemv[MICA_TYPE_COUNT], gemm[MICA_TYPE_COUNT];

    /* A row of the KV cache to floats, by its type: F16, Q8_0, Q4_0; NULL for others. Blocks are whole. */
    void (*widen[MICA_TYPE_COUNT])(const void *in, float *out, int64_t n);
    void (*f32_to_f16)(const float *in, uint16_t *out, int64_t n);

    /* out may be x. out[i] = (x[i] * (1 / sqrt(mean of squares + eps))) * w[i] */
    void (*rmsnorm)(const float *x, const float *w, float eps, float *out, int64_t n);
    void (*add)(float *x, const float *y, int64_t n);                       /* x += y */
    void (*silu_mul)(const float *gate, const float *up, float *out, int64_t n); /* gate / (1 + e^-gate) * up */
    void (*gelu_mul)(const float *gate, const float *up, float *out, int64_t n); /* the tanh form of GELU, times up */

    /* Rotates n/2 pairs of one head. neox: pairs (i, i + n/2); else pairs (2i, 2i + 1). cs: cosines, then sines, n/2 each. */
    void (*rope)(float *x, const float *cs, int64_t n, bool neox);

    /* Attention over one tile of at most 64 cache positions, see model/attention.c.
     * s[j][t] = (q[j] . k[t]) * scale with the 16-partial dot product; q is [n_q][dim], k is [n_t][dim], s has rows of
     * MICA_ATTN_TILE */
    void (*qk)(const float *q, int64_t n_q, const float *k, int64_t n_t, int64_t dim, float scale, float *s);
    /* s[t] = cap * tanh(s[t] / cap) */
    void (*softcap)(float *s, float cap, int64_t n);
    /* s[t] = e^(s[t] - max); returns their 16-partial sum */
    float (*exp_sum)(float *s, float max, int64_t n);
    /* o[j][i] = o[j][i] * alpha[j], then o[j][i] = fma(p[j][t], v[t][i], o[j][i]) for t in order; o is [n_q][dim], v is
     * [n_t][dim], p has rows of MICA_ATTN_TILE */
    void (*pv)(float *o, int64_t n_q, const float *alpha, const float *p, const float *v, int64_t n_t, int64_t dim);
    void (*scale)(float *x, float a, int64_t n); /* x *= a */
    float (*max)(const float *x, int64_t n);     /* largest of n >= 1 values; NaNs are ignored unless all are */
} mica_kernels;

/** A set and whether this CPU runs it. */
typedef struct mica_isa {
    const char *name;
    bool (*supported)(void);
    void (*fill)(mica_kernels *k); /* overwrites the entries it does better; called in the order of isa_list.h */
} mica_isa;

size_t mica_isa_count(void);
const mica_isa *mica_isa_at(size_t i); /* 0 is "portable"; the last supported one is the default */

/** Fills the table for the set `name` (NULL: best supported). MICA_BAD_KERNELS if there is none, or this CPU cannot run it. */
mica_status mica_kernels_choose(const char *name, mica_kernels *k, mica_error *err);

/** Compares every entry that is not the portable one with it on a few numbers, products for the weight types in `types`
 * ([MICA_TYPE_COUNT]; NULL: all), so that a wrong feature flag or a faulty CPU is an error and not garbage. Takes well below a
 * millisecond for the types of one model. */
mica_status mica_kernels_check(const mica_kernels *k, const bool *types, mica_error *err);

/** Which set the entry at `offset` of the table came from: found by comparing pointers. NULL if from none of this build. */
const char *mica_kernels_origin(const mica_kernels *k, size_t offset);

/** One line for each group of entries but the products: which set does what. */
void mica_kernels_describe(const mica_kernels *k, mica_buf *buf);

/** Rows [r0, r1) for all tokens of `m`, with the entry for as many. */
static inline void mica_kernels_multiply(const mica_kernels *k, const mica_matmul *m, int64_t r0, int64_t r1, void *scratch)
{
    (m->x->n < MICA_GEMM_FROM ? k->gemv : k->gemm)[m->quant->type](m, r0, r1, scratch);
}

/** Elements in an activation block for weights of this format: 32, 256 or 1 (floats). */
static inline int32_t mica_act_block(const mica_quant *quant) { return quant->block_weights; }

#endif
