/* check.c - the self-check: every entry of a table against the portable one, bit by bit, on a few numbers. Run whenever a model
 * is opened, so it must cost microseconds; tests/unit/test_kernels.c does it thoroughly. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kern/fills.h"
#include "kern/kern.h"

/* Sizes reach the widest path of every set and its tails: 16 rows and 3; two tiles of 16 tokens and 1; positions likewise; 4 heads, 2 and 1. */
enum { ROWS = 19, TOKENS = 33, K = 512, N = 83, POSITIONS = 19, DIM = 136, HEADS = 7, MAX_ROW = 332 /* F32 */ };

typedef struct inputs {
    float a[K * TOKENS], b[DIM], kv[POSITIONS * DIM];
    _Alignas(4) uint8_t bytes[ROWS * MAX_ROW]; /* random weights of any format, and cache rows */
} inputs;

/* What a kernel writes; cleared before, so that all of it can be compared. */
typedef union outputs {
    float f[HEADS * DIM];
    uint16_t h[N];
    struct {
        int8_t q[K];
        float d[K / 32];
        int16_t sum[K / 16];
    } act;
} outputs;

typedef struct activations {
    int8_t q[K * TOKENS];
    float d[K / 32 * TOKENS];
    int16_t sum[K / 16 * TOKENS];
} activations;

typedef struct memory {
    inputs in;
    outputs got, want;
    activations act;
    _Alignas(64) char scratch[MICA_MATMUL_SCRATCH];
} memory;

static uint32_t next_random(uint64_t *state) /* 32 good bits of a linear congruential generator */
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static void fill_floats(float *x, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)next_random(seed) * 0x1p-30f; /* -2..2 */
}

/* Blocks and rows of every format have an even size and their scales stand at even places: without bit 6 of the odd bytes no
 * scale is infinite or NaN, and no float is large. */
static void fill_inputs(inputs *in)
{
    uint64_t seed = 1;
    fill_floats(in->a, sizeof in->a / sizeof *in->a, &seed);
    fill_floats(in->b, sizeof in->b / sizeof *in->b, &seed);
    fill_floats(in->kv, sizeof in->kv / sizeof *in->kv, &seed);
    for (size_t i = 0; i + 4 <= sizeof in->bytes; i += 4) {
        uint32_t four = next_random(&seed);
        for (size_t j = 0; j < 4; j++)
            in->bytes[i + j] = (uint8_t)(four >> 8 * j & (j % 2 ? 0xBF : 0xFF));
    }
}

/* ---- entries that are no products ---- */

static void run_rmsnorm(const mica_kernels *k, const inputs *in, outputs *o) { k->rmsnorm(in->a, in->b, 1e-6f, o->f, N); }
static void run_silu_mul(const mica_kernels *k, const inputs *in, outputs *o) { k->silu_mul(in->a, in->b, o->f, N); }
static void run_gelu_mul(const mica_kernels *k, const inputs *in, outputs *o) { k->gelu_mul(in->a, in->b, o->f, N); }
static void run_qk(const mica_kernels *k, const inputs *in, outputs *o) 
{
    k->qk(in->a, HEADS, in->kv, POSITIONS, 128, 0.1f, o->f);
}
static void run_max(const mica_kernels *k, const inputs *in, outputs *o) { o->f[0] = k->max(in->a, N); }
static void run_f32_to_f16(const mica_kernels *k, const inputs *in, outputs *o) { k->f32_to_f16(in->a, o->h, N); }
static void run_widen_f16(const mica_kernels *k, const inputs *in, outputs *o) { k->widen[MICA_TYPE_F16](in->bytes, o->f, N); }
static void run_widen_q8_0(const mica_kernels *k, const inputs *in, outputs *o)
{
    k->widen[MICA_TYPE_Q8_0](in->bytes, o->f, 96);
}
static void run_widen_q4_0(const mica_kernels *k, const inputs *in, outputs *o)
{
    k->widen[MICA_TYPE_Q4_0](in->bytes, o->f, 96);
}

static void run_add(const mica_kernels *k, const inputs *in, outputs *o)
{
    memcpy(o->f, in->a, N * sizeof *o->f);
    k->add(o->f, in->b, N);
}

static void run_scale(const mica_kernels *k, const inputs *in, outputs *o)
{
    memcpy(o->f, in->a, N * sizeof *o->f);
    k->scale(o->f, 0.37f, N);
}

static void run_quantize32(const mica_kernels *k, const inputs *in, outputs *o)
{
    k->quantize32(in->a, 96, o->act.q, o->act.d, o->act.sum);
}

static void run_quantize256(const mica_kernels *k, const inputs *in, outputs *o)
{
    k->quantize256(in->a, 512, o->act.q, o->act.d, o->act.sum);
}

static void run_rope(const mica_kernels *k, const inputs *in, outputs *o)
{
    for (int neox = 0; neox < 2; neox++) {
        memcpy(o->f + neox * 64, in->a, 46 * sizeof *o->f);
        k->rope(o->f + neox * 64, in->b, 46, neox);
    }
}

static void run_softcap(const mica_kernels *k, const inputs *in, outputs *o)
{
    memcpy(o->f, in->a, N * sizeof *o->f);
    k->softcap(o->f, 1.5f, N);
}

static void run_exp_sum(const mica_kernels *k, const inputs *in, outputs *o)
{
    memcpy(o->f, in->a, N * sizeof *o->f);
    o->f[N] = k->exp_sum(o->f, 2.0f, N);
}

static void run_pv(const mica_kernels *k, const inputs *in, outputs *o)
{
    memcpy(o->f, in->a, HEADS * DIM * sizeof *o->f);
    k->pv(o->f, HEADS, in->b, in->a, in->kv, POSITIONS, DIM);
}

static const struct check {
    const char *name;
    size_t offset;
    void (*run)(const mica_kernels *k, const inputs *in, outputs *out);
} checks[] = {
#define ENTRY(group, field, run) {#field, offsetof(mica_kernels, field), run},
#include "kern/entries.h"
#undef ENTRY
};

enum { N_CHECKS = sizeof checks / sizeof *checks };
_Static_assert(sizeof(mica_kernels) == sizeof(void *) * (1 + N_CHECKS - 3 + 3 * MICA_TYPE_COUNT),
               "entries.h has a row for every entry: three of those by type are caches, the others products");

/* ---- */

static bool same_entry(const mica_kernels *k, const mica_kernels *ref, size_t offset)
{
    return memcmp((const char *)k + offset, (const char *)ref + offset, sizeof(void (*)(void))) == 0;
}

static mica_status differs(const mica_kernels *k, size_t offset, const char *entry, const char *format, mica_error *err)
{
    const char *set = mica_kernels_origin(k, offset);
    return mica_fail(err, MICA_BAD_KERNELS,
                     "the kernel %s%s%s of the set %s gives other results than the portable one on this CPU; "
                     "use --kernels portable",
                     entry, format ? " for " : "", format ? format : "", set ? set : k->name);
}

static mica_status check_entries(const mica_kernels *k, const mica_kernels *ref, memory *m, mica_error *err)
{
    for (size_t i = 0; i < N_CHECKS; i++) {
        if (same_entry(k, ref, checks[i].offset))
            continue;
        memset(&m->got, 0, sizeof m->got);
        memset(&m->want, 0, sizeof m->want);
        checks[i].run(k, &m->in, &m->got);
        checks[i].run(ref, &m->in, &m->want);
        if (memcmp(&m->got, &m->want, sizeof m->got) != 0)
            return differs(k, checks[i].offset, checks[i].name, NULL, err);
    }
    return MICA_OK;
}

/* One product with `n` tokens. */
static bool same_product(mica_matmul_fn fn, mica_matmul_fn ref, const mica_quant *quant, int32_t n, memory *m)
{
    int32_t block = mica_act_block(quant);
    int64_t cols = block == 32 ? 288 : block == 256 ? 256 : N; /* a whole tile and a part of one; a block; a tail */
    size_t row_bytes = mica_quant_bytes(quant, (size_t)cols);
    mica_act x = {.n = n, .k = cols, .block = block, .f = m->in.a, .q = m->act.q, .d = m->act.d, .sum = m->act.sum};
    mica_matmul p = {.quant = quant, .w = m->in.bytes, .row_bytes = row_bytes, .x = &x, .out = m->got.f, .out_stride = ROWS};
    memset(&m->got, 0, sizeof m->got);
    memset(&m->want, 0, sizeof m->want);
    fn(&p, 0, ROWS, m->scratch);
    p.out = m->want.f;
    ref(&p, 0, ROWS, m->scratch);
    return memcmp(&m->got, &m->want, sizeof m->got) == 0;
}

static mica_status check_products(const mica_kernels *k, const mica_kernels *ref, const mica_quant *quant, memory *m,
                                  mica_error *err)
{
    mica_type type = quant->type;
    if (mica_act_block(quant) > 1) /* several tokens are as good as one long one */
        (mica_act_block(quant) == 32 ? ref->quantize32 : ref->quantize256)(m->in.a, K * TOKENS, m->act.q, m->act.d, m->act.sum);
    if (k->gemv[type] != ref->gemv[type] && !same_product(k->gemv[type], ref->gemv[type], quant, 1, m))
        return differs(k, offsetof(mica_kernels, gemv) + type * sizeof *k->gemv, "gemv", quant->name, err);
    if (k->gemm[type] != ref->gemm[type] && !same_product(k->gemm[type], ref->gemm[type], quant, TOKENS, m))
        return differs(k, offsetof(mica_kernels, gemm) + type * sizeof *k->gemm, "gemm", quant->name, err);
    return MICA_OK;
}

mica_status mica_kernels_check(const mica_kernels *k, const bool *types, mica_error *err)
{
    mica_kernels ref;
    mica_kernels_fill_portable(&ref);
    memory *m = mica_new_aligned(64, sizeof *m);
    if (!m)
        return mica_fail_nomem(err, sizeof *m, "the kernels' self-check");
    fill_inputs(&m->in);
    mica_status status = check_entries(k, &ref, m, err);
    for (uint32_t type = 0; type < MICA_TYPE_COUNT && !status; type++) {
        const mica_quant *quant = mica_quant_of(type);
        if (quant && (!types || types[type]))
            status = check_products(k, &ref, quant, m, err);
    }
    free(m);
    return status;
}
