/* Every kernel of every instruction set that this CPU runs against the portable one, by memcmp: all sizes and tails, extremes,
 * denormals, infinities and NaNs in the scales. In the manner of dav1d's checkasm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/rng.h"
#include "kern/kern.h"

static mica_rng rng;

static float uniform(float scale) { return (float)(mica_rng_unit(&rng) * 2.0 - 1.0) * scale; }

/* Mostly ordinary numbers, some hostile ones. */
static float hostile(int kind)
{
    static const float odd[] = {0.0f, -0.0f, 1e-38f, -1e-42f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN};
    size_t n = kind == 0 ? 0 : kind == 1 ? 6 : sizeof odd / sizeof *odd;
    if (n && mica_rng_next(&rng) % 16 == 0)
        return odd[mica_rng_next(&rng) % n];
    return uniform(mica_rng_next(&rng) % 4 == 0 ? 80.0f : 2.0f);
}

/* Bits are equal, or both are NaN (whose payload no law fixes). */
static bool same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, 4) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* Whether `set` is in the list "avxvnni,avx512:EMULATOR". */
static bool emulates(const char *list, const char *set)
{
    size_t n = strlen(set);
    for (const char *p = list; *p && *p != ':'; p += strcspn(p, ",:"), p += *p == ',')
        if (strncmp(p, set, n) == 0 && (p[n] == ',' || p[n] == ':'))
            return true;
    return false;
}

/* MICA_EMULATED names the emulator that this run is under, or is SET,...:EMULATOR where it serves some sets. */
static void report_run(const char *set)
{
    const char *by = getenv("MICA_EMULATED"), *colon = by ? strchr(by, ':') : NULL;
    if (by && (!colon || emulates(by, set)))
        print_message("%s: emulated (%s)\n", set, colon ? colon + 1 : by);
    else
        print_message("%s: native\n", set);
}

static void each_set(void (*test)(const mica_kernels *k, const mica_kernels *ref))
{
    mica_kernels ref, k;
    mica_error err;
    assert_int_equal(mica_kernels_choose("portable", &ref, &err), MICA_OK);
    for (size_t i = 1; i < mica_isa_count(); i++) {
        if (!mica_isa_at(i)->supported()) {
            print_message("%s: this CPU cannot run it\n", mica_isa_at(i)->name);
            continue;
        }
        mica_rng_seed(&rng, 7);
        if (mica_kernels_choose(mica_isa_at(i)->name, &k, &err))
            fail_msg("%s", err.message);
        report_run(k.name);
        test(&k, &ref);
    }
}

/* ---- matrix products ---- */

/* By kind: what every byte of a block is, apart from its scales. 0 stands for the kinds that are not extreme. */
static const uint8_t extremes[] = {0, 0xFF, 0, 0x80, 0x7F, 0x08, 0xF0};

static bool is_extreme(int kind) { return extremes[kind] != 0; }

typedef struct activations {
    float *f, *d;
    int8_t *q;
    int16_t *sum;
    mica_act act;
} activations;

/* The largest integer sums: of one sign in the first two of three tokens, of both in the third. Scales are ordinary, so that
 * the results are numbers. */
static void make_extreme(activations *a, size_t total, size_t k, size_t block)
{
    for (size_t i = 0; i < total; i++) {
        bool negative = i / k % 3 == 2 ? mica_rng_next(&rng) & 1 : i / k % 3 == 1;
        a->q[i] = negative ? -127 : 127;
    }
    for (size_t j = 0; j < total / 16; j++) {
        int s = 0;
        for (size_t i = 16 * j; i < 16 * j + 16; i++)
            s += a->q[i];
        a->sum[j] = (int16_t)s;
    }
    for (size_t b = 0; b < total / block; b++)
        a->d[b] = uniform(1.0f);
}

static activations make_activations(const mica_kernels *ref, int32_t n, int64_t k, int32_t block, int kind)
{
    activations a;
    size_t total = (size_t)n * (size_t)k;
    a.f = malloc(total * 4);
    a.d = malloc(total * 4);
    a.q = malloc(total);
    a.sum = malloc(total / 8 + 16);
    for (size_t i = 0; i < total; i++)
        a.f[i] = kind == 2 ? hostile(mica_rng_next(&rng) % 4096 == 0 ? 2 : 0) : hostile(kind);
    for (int64_t t = 0; t < n && block > 1; t++)
        (block == 32 ? ref->quantize32 : ref->quantize256)(a.f + t * k, k, a.q + t * k, a.d + t * k / block, a.sum + t * k / 16);
    if (is_extreme(kind) && block > 1)
        make_extreme(&a, total, (size_t)k, (size_t)block);
    a.act = (mica_act){.n = n, .k = k, .block = block, .f = a.f, .q = a.q, .d = a.d, .sum = a.sum};
    return a;
}

static void free_activations(activations *a)
{
    free(a->f);
    free(a->d);
    free(a->q);
    free(a->sum);
}

/* An ordinary number where the block has its f16 scale, and another where it has its min. */
static void set_scales(const mica_quant *quant, uint8_t *block)
{
    const uint16_t d = mica_f32_to_f16(uniform(1.0f)), m = mica_f32_to_f16(uniform(1.0f));
    uint8_t *at = block;
    if (quant->type == MICA_TYPE_Q2_K || quant->type == MICA_TYPE_Q3_K || quant->type == MICA_TYPE_Q6_K)
        at += quant->block_bytes - (quant->has_min ? 4 : 2);
    memcpy(at, &d, 2);
    if (quant->has_min)
        memcpy(at + 2, &m, 2);
}

/* kind 0: encoded from floats; 2: random bytes (any scale, inf and NaN too); others: extreme integers. */
static uint8_t *make_weights(const mica_quant *quant, int64_t rows, int64_t k, int kind)
{
    size_t row_bytes = mica_quant_bytes(quant, (size_t)k), bytes = (size_t)rows * row_bytes;
    uint8_t *w = malloc(bytes);
    float *row = malloc((size_t)k * 4);
    for (size_t i = 0; i < bytes; i++)
        w[i] = is_extreme(kind) ? extremes[kind] : (uint8_t)mica_rng_next(&rng);
    for (size_t i = 0; i < bytes && is_extreme(kind) && quant->block_weights > 1; i += (size_t)quant->block_bytes)
        set_scales(quant, w + i);
    for (int64_t r = 0; r < rows && kind == 0; r++) {
        for (int64_t i = 0; i < k; i++)
            row[i] = uniform(1.0f);
        quant->encode(row, NULL, w + (size_t)r * row_bytes, (size_t)k);
    }
    free(row);
    return w;
}

static void check_matmul(const mica_kernels *k, const mica_kernels *ref, const mica_quant *quant, int64_t rows, int64_t cols,
                         int32_t n, int kind)
{
    uint8_t *w = make_weights(quant, rows, cols, kind);
    activations a = make_activations(ref, n, cols, mica_act_block(quant), kind);
    size_t total = (size_t)n * (size_t)(rows + 3);
    float *got = malloc(total * 4), *want = malloc(total * 4);
    void *scratch = aligned_alloc(64, MICA_MATMUL_SCRATCH);
    for (size_t i = 0; i < total; i++)
        got[i] = want[i] = 123.0f; /* padding that must stay */
    mica_matmul m = {.quant = quant, .w = w, .row_bytes = mica_quant_bytes(quant, (size_t)cols), .x = &a.act, .out = want,
                     .out_stride = rows + 3};
    int64_t split = rows / 3; /* any split of the rows gives the same */
    ref->gemm[quant->type](&m, 0, rows, scratch);
    m.out = got;
    for (int few = 0; few < 2; few++) { /* both are right for any number of tokens */
        mica_matmul_fn product = (few ? k->gemv : k->gemm)[quant->type];
        product(&m, 0, split, scratch);
        product(&m, split, rows, scratch);
        if (!same(got, want, (int64_t)total))
            fail_msg("%s %s %s: %lld x %lld, %d tokens, kind %d differs from portable", k->name, few ? "gemv" : "gemm",
                     quant->name, (long long)rows, (long long)cols, n, kind);
        for (int64_t i = 0; i < (int64_t)n * (rows + 3); i++)
            got[i] = 123.0f;
    }
    free(w);
    free(got);
    free(want);
    free(scratch);
    free_activations(&a);
}

static void matmuls(const mica_kernels *k, const mica_kernels *ref)
{
    static const int32_t tokens[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33};
    static const int64_t rows[] = {1, 7, 8, 16, 27, 40};
    static const int64_t blocks[] = {1, 2, 3, 5, 9};
    for (uint32_t type = 0; type < MICA_TYPE_COUNT; type++) {
        const mica_quant *quant = mica_quant_of(type);
        for (size_t i = 0; quant && i < 60; i++) {
            int64_t unit = quant->block_weights == 1 ? 13 : quant->block_weights;
            int64_t count = quant->block_weights == 32 ? blocks[i % 5] * 3 + (int64_t)i % 2 * 20 : blocks[i % 5];
            check_matmul(k, ref, quant, rows[i % 6], unit * count, tokens[i % 10], (int)(i % 3));
        }
        for (int kind = 1; quant && quant->unpack && kind < (int)sizeof extremes; kind++)
            for (int32_t n = 1; is_extreme(kind) && n < 42; n += n < 7 ? 2 : 15)
                check_matmul(k, ref, quant, 9, quant->block_weights * 6, n, kind);
        if (quant && quant->block_weights > 1) /* more tokens than any set keeps at hand, more blocks than a panel */
            check_matmul(k, ref, quant, 33, quant->block_weights * (quant->block_weights == 32 ? 17 : 2), 301, 0);
    }
}

static void test_matmul(void **state)
{
    (void)state;
    each_set(matmuls);
}

/* ---- vectors ---- */

#define MAX_N 700

typedef struct vectors {
    float a[MAX_N], b[MAX_N], w[MAX_N], got[MAX_N], want[MAX_N];
} vectors;

static void fill(vectors *v, int64_t n, int kind)
{
    for (int64_t i = 0; i < n; i++) {
        v->a[i] = hostile(kind);
        v->b[i] = hostile(kind);
        v->w[i] = uniform(2.0f);
    }
    memset(v->got, 0, sizeof v->got);
    memset(v->want, 0, sizeof v->want);
}

static void elementwise(const mica_kernels *k, const mica_kernels *ref)
{
    static vectors v;
    for (int64_t n = 1; n < 150; n++) {
        for (int kind = 0; kind < 3; kind++) {
            fill(&v, n, kind);
            k->rmsnorm(v.a, v.w, 1e-6f, v.got, n);
            ref->rmsnorm(v.a, v.w, 1e-6f, v.want, n);
            assert_true(same(v.got, v.want, MAX_N));
            k->silu_mul(v.a, v.b, v.got, n);
            ref->silu_mul(v.a, v.b, v.want, n);
            assert_true(same(v.got, v.want, MAX_N));
            k->gelu_mul(v.a, v.b, v.got, n);
            ref->gelu_mul(v.a, v.b, v.want, n);
            assert_true(same(v.got, v.want, MAX_N));
            k->add(v.got, v.b, n);
            ref->add(v.want, v.b, n);
            assert_true(same(v.got, v.want, MAX_N));
            k->scale(v.got, 0.37f, n);
            ref->scale(v.want, 0.37f, n);
            assert_true(same(v.got, v.want, MAX_N));
            float x = k->max(v.a, n), y = ref->max(v.a, n);
            assert_true(x == y || (isnan(x) && isnan(y))); /* the sign of a zero is not fixed */
        }
    }
}

static void test_elementwise(void **state)
{
    (void)state;
    each_set(elementwise);
}

static void quantisation(const mica_kernels *k, const mica_kernels *ref)
{
    static float x[1024];
    int8_t q[2][1024];
    float d[2][32];
    int16_t sum[2][64];
    for (int round = 0; round < 3000; round++) {
        float scale = ldexpf(1.0f, (int)(mica_rng_next(&rng) % 240) - 130);
        for (int i = 0; i < 1024; i++)
            x[i] = round % 3 == 2 && mica_rng_next(&rng) % 200 == 0 ? hostile(2) : uniform(scale);
        for (int i = 0; round % 5 == 0 && i < 1024; i++) /* exact ties */
            x[i] = (float)((int)(mica_rng_next(&rng) % 255) - 127) * 0.5f + (i % 32 == 0 ? 127.0f : 0.0f);
        for (int block = 32; block <= 256; block += 224) {
            memset(d, 0, sizeof d);
            (block == 32 ? k->quantize32 : k->quantize256)(x, 1024, q[0], d[0], sum[0]);
            (block == 32 ? ref->quantize32 : ref->quantize256)(x, 1024, q[1], d[1], sum[1]);
            assert_memory_equal(q[0], q[1], sizeof q[0]);
            assert_memory_equal(sum[0], sum[1], sizeof sum[0]);
            assert_true(same(d[0], d[1], 32));
        }
    }
}

static void test_quantisation(void **state)
{
    (void)state;
    each_set(quantisation);
}

static void halves(const mica_kernels *k, const mica_kernels *ref)
{
    static uint16_t h[65536], back[65536], want_h[65536];
    static float f[65536], want[65536];
    for (int i = 0; i < 65536; i++)
        h[i] = (uint16_t)i;
    k->widen[MICA_TYPE_F16](h, f, 65535);
    ref->widen[MICA_TYPE_F16](h, want, 65535);
    assert_true(same(f, want, 65535));
    for (int i = 0; i < 2; i++) { /* any bytes are blocks */
        mica_type type = i ? MICA_TYPE_Q8_0 : MICA_TYPE_Q4_0;
        k->widen[type](h, f, 3200);
        ref->widen[type](h, want, 3200);
        assert_true(same(f, want, 3200));
    }
    for (int i = 0; i < 65536; i++)
        f[i] = mica_rng_next(&rng) & 1 ? hostile(2) : ldexpf(uniform(1.0f), (int)(mica_rng_next(&rng) % 60) - 40);
    k->f32_to_f16(f, back, 65533);
    ref->f32_to_f16(f, want_h, 65533);
    for (int i = 0; i < 65533; i++)
        assert_true(back[i] == want_h[i] || isnan(f[i]));
}

static void test_halves(void **state)
{
    (void)state;
    each_set(halves);
}

static void ropes(const mica_kernels *k, const mica_kernels *ref)
{
    static vectors v;
    for (int64_t n = 2; n <= 256; n += 2) {
        for (int neox = 0; neox < 2; neox++) {
            fill(&v, n, 0);
            memcpy(v.got, v.a, sizeof v.a);
            memcpy(v.want, v.a, sizeof v.a);
            k->rope(v.got, v.b, n, neox);
            ref->rope(v.want, v.b, n, neox);
            assert_true(same(v.got, v.want, n));
        }
    }
}

static void test_rope(void **state)
{
    (void)state;
    each_set(ropes);
}

static void attention(const mica_kernels *k, const mica_kernels *ref)
{
    static const int64_t dims[] = {8, 16, 20, 32, 64, 72, 80, 96, 128, 256};
    static float q[8 * 256], kv[64 * 256], s[2][8 * MICA_ATTN_TILE], o[2][8 * 256], alpha[8];
    for (int round = 0; round < 400; round++) {
        int64_t dim = dims[round % 10], n = 1 + (int64_t)(mica_rng_next(&rng) % 64), n_q = 1 + round % 8;
        for (int64_t i = 0; i < n_q * dim; i++) {
            q[i] = hostile(round % 3);
            o[0][i] = o[1][i] = uniform(1.0f);
        }
        for (int64_t i = 0; i < n * dim; i++)
            kv[i] = uniform(2.0f);
        k->qk(q, n_q, kv, n, dim, 0.125f, s[0]);
        ref->qk(q, n_q, kv, n, dim, 0.125f, s[1]);
        for (int64_t j = 0; j < n_q; j++)
            assert_true(same(s[0] + j * MICA_ATTN_TILE, s[1] + j * MICA_ATTN_TILE, n));
        k->softcap(s[0], 50.0f, n);
        ref->softcap(s[1], 50.0f, n);
        assert_true(same(s[0], s[1], n));
        float max = ref->max(s[1], n), a = k->exp_sum(s[0], max, n), b = ref->exp_sum(s[1], max, n);
        assert_true(same(&a, &b, 1));
        assert_true(same(s[0], s[1], n));
        for (int64_t j = 0; j < n_q; j++)
            alpha[j] = uniform(1.0f);
        k->pv(o[0], n_q, alpha, s[0], kv, n, dim);
        ref->pv(o[1], n_q, alpha, s[1], kv, n, dim);
        assert_true(same(o[0], o[1], n_q * dim));
    }
}

static void test_attention(void **state)
{
    (void)state;
    each_set(attention);
}

static void test_choosing(void **state)
{
    (void)state;
    mica_kernels k;
    mica_error err;
    assert_int_equal(mica_kernels_choose("sse9", &k, &err), MICA_BAD_KERNELS);
    assert_non_null(strstr(err.message, "portable"));
    assert_int_equal(mica_kernels_choose(NULL, &k, &err), MICA_OK);
    for (uint32_t type = 0; type < MICA_TYPE_COUNT; type++)
        assert_true((mica_quant_of(type) != NULL) == (k.gemv[type] != NULL && k.gemm[type] != NULL));
}

/* ---- the self-check ---- */

static void accepted(const mica_kernels *k, const mica_kernels *ref)
{
    (void)ref;
    mica_error err;
    if (mica_kernels_check(k, NULL, &err))
        fail_msg("%s", err.message);
}

static void test_check_accepts(void **state)
{
    (void)state;
    each_set(accepted);
}

/* Wrong in one element, as a faulty CPU would be. */
static const mica_kernels *right;

static void wrong_rmsnorm(const float *x, const float *w, float eps, float *out, int64_t n)
{
    right->rmsnorm(x, w, eps, out, n);
    out[n - 1] = nextafterf(out[n - 1], 9.0f);
}
static void wrong_add(float *x, const float *y, int64_t n) { right->add(x, y, n - 1); }
static void wrong_scale(float *x, float a, int64_t n) { right->scale(x, a, n - 1); }
static void wrong_silu_mul(const float *gate, const float *up, float *out, int64_t n) { right->silu_mul(up, gate, out, n); }
static void wrong_gelu_mul(const float *gate, const float *up, float *out, int64_t n) { right->silu_mul(gate, up, out, n); }
static void wrong_quantize32(const float *x, int64_t k, int8_t *q, float *d, int16_t *sum)
{
    right->quantize32(x, k, q, d, sum);
    sum[k / 16 - 1]++;
}
static void wrong_quantize256(const float *x, int64_t k, int8_t *q, float *d, int16_t *sum)
{
    right->quantize256(x, k, q, d, sum);
    q[k - 1]++;
}
static void wrong_rope(float *x, const float *cs, int64_t n, bool neox) { right->rope(x, cs, n, neox || true); }
static void wrong_qk(const float *q, int64_t n_q, const float *k, int64_t n_t, int64_t dim, float scale, float *s)
{
    right->qk(q, n_q, k, n_t, dim, scale, s);
    s[n_t - 1] = 0.0f;
}
static void wrong_softcap(float *s, float cap, int64_t n) { right->softcap(s, nextafterf(cap, 9.0f), n); }
static float wrong_max(const float *x, int64_t n) { return x[n - 1]; }
static float wrong_exp_sum(float *s, float max, int64_t n) { return right->exp_sum(s, max, n - 1); }
static void wrong_pv(float *o, int64_t n_q, const float *alpha, const float *p, const float *v, int64_t n_t, int64_t dim)
{
    right->pv(o, n_q, alpha, p, v, n_t - 1, dim);
}
static void wrong_f32_to_f16(const float *in, uint16_t *out, int64_t n)
{
    right->f32_to_f16(in, out, n);
    out[n - 1] ^= 1;
}
static void wrong_widen(const void *in, float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = ((const uint8_t *)in)[i];
}
static void wrong_product(const mica_matmul *m, int64_t r0, int64_t r1, void *scratch)
{
    (m->x->n == 1 ? right->gemv : right->gemm)[m->quant->type](m, r0, r1, scratch);
    float *last = &m->out[(m->x->n - 1) * m->out_stride + r1 - 1];
    *last = nextafterf(*last, 1e9f);
}

static void refused(const mica_kernels *k, const bool *types, const char *kernel)
{
    mica_error err;
    if (mica_kernels_check(k, types, &err) != MICA_BAD_KERNELS)
        fail_msg("a wrong %s was accepted", kernel);
    if (!strstr(err.message, kernel) || !strstr(err.message, k->name))
        fail_msg("a wrong %s of %s is reported as: %s", kernel, k->name, err.message);
}

static void wrong_entries(const mica_kernels *k, const mica_kernels *ref)
{
    (void)ref;
    right = k;
#define WRONG(entry, function, name)      \
    {                                     \
        mica_kernels copy = *k;           \
        copy.entry = function;            \
        refused(&copy, NULL, name);       \
    }
#define WRONG_NAMED(entry) WRONG(entry, wrong_##entry, #entry)
    WRONG_NAMED(rmsnorm) WRONG_NAMED(add) WRONG_NAMED(scale) WRONG_NAMED(silu_mul) WRONG_NAMED(gelu_mul)
    WRONG_NAMED(quantize32) WRONG_NAMED(quantize256) WRONG_NAMED(rope) WRONG_NAMED(qk) WRONG_NAMED(softcap) WRONG_NAMED(max)
    WRONG_NAMED(exp_sum) WRONG_NAMED(pv) WRONG_NAMED(f32_to_f16)
    WRONG(widen[MICA_TYPE_F16], wrong_widen, "F16") WRONG(widen[MICA_TYPE_Q8_0], wrong_widen, "Q8_0")
    WRONG(widen[MICA_TYPE_Q4_0], wrong_widen, "Q4_0")
    for (uint32_t type = 0; type < MICA_TYPE_COUNT; type++) {
        if (!mica_quant_of(type))
            continue;
        WRONG(gemv[type], wrong_product, "gemv") WRONG(gemm[type], wrong_product, "gemm")
        WRONG(gemm[type], wrong_product, mica_quant_of(type)->name)
    }
}

static void test_check_refuses(void **state)
{
    (void)state;
    each_set(wrong_entries);
}

/* Only the weight types that a model has are tried. */
static void test_check_types(void **state)
{
    (void)state;
    mica_kernels k;
    mica_error err;
    bool types[MICA_TYPE_COUNT] = {[MICA_TYPE_Q8_0] = true};
    assert_int_equal(mica_kernels_choose("portable", &k, &err), MICA_OK);
    mica_kernels portable = k;
    right = &portable;
    k.gemm[MICA_TYPE_Q4_K] = wrong_product;
    assert_int_equal(mica_kernels_check(&k, types, &err), MICA_OK);
    types[MICA_TYPE_Q4_K] = true;
    refused(&k, types, "Q4_K");
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Not a measurement of speed: a check that took milliseconds would be felt at every start. */
static void check_time(const mica_kernels *k, const mica_kernels *ref)
{
    (void)ref;
    mica_error err;
    bool types[MICA_TYPE_COUNT] = {[MICA_TYPE_F32] = true, [MICA_TYPE_Q4_K] = true, [MICA_TYPE_Q6_K] = true};
    double best = 1e9;
    for (int i = 0; i < 20; i++) {
        double start = now_us();
        assert_int_equal(mica_kernels_check(k, types, &err), MICA_OK);
        best = fmin(best, now_us() - start);
    }
    print_message("%s: the self-check takes %.0f us for a Q4_K_M model\n", k->name, best);
}

static void test_check_time(void **state)
{
    (void)state;
    each_set(check_time);
}

/* What is said about a table is what is in it. */
static void test_origins(void **state)
{
    (void)state;
    for (size_t i = 0; i < mica_isa_count(); i++) {
        mica_kernels k, level;
        mica_error err;
        if (!mica_isa_at(i)->supported())
            continue;
        memset(&level, 0, sizeof level);
        mica_isa_at(i)->fill(&level);
        assert_int_equal(mica_kernels_choose(mica_isa_at(i)->name, &k, &err), MICA_OK);
        for (size_t offset = sizeof k.name; offset < sizeof k; offset += sizeof k.add) {
            static const char none[sizeof k.add];
            const char *origin = mica_kernels_origin(&k, offset);
            bool has = memcmp((char *)&k + offset, none, sizeof none) != 0;
            bool own = memcmp((char *)&level + offset, none, sizeof none) != 0;
            assert_true(has == (origin != NULL));
            assert_true(own == (origin && strcmp(origin, k.name) == 0));
        }
        mica_buf buf;
        mica_buf_init(&buf, 1 << 16);
        mica_kernels_describe(&k, &buf);
        char norms[80];
        snprintf(norms, sizeof norms, ": %s (rmsnorm", mica_kernels_origin(&k, offsetof(mica_kernels, rmsnorm)));
        assert_non_null(strstr(buf.data, norms));
        assert_non_null(strstr(buf.data, "widen Q8_0"));
        mica_buf_free(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul), cmocka_unit_test(test_elementwise), cmocka_unit_test(test_quantisation),
        cmocka_unit_test(test_halves), cmocka_unit_test(test_rope), cmocka_unit_test(test_attention),
        cmocka_unit_test(test_choosing), cmocka_unit_test(test_check_accepts), cmocka_unit_test(test_check_refuses),
        cmocka_unit_test(test_check_types), cmocka_unit_test(test_check_time), cmocka_unit_test(test_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
