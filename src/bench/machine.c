/* machine.c - what this machine does at its best: bytes read per second (device/bandwidth.h), and operations per second of our own
 * products. Shared with bench/bandwidth. Memory is shared with other machines on many hosts: compare a rate only with a figure of the same
 * minute. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "device/bandwidth.h"
#include "kern/kern.h"
#include "mica/mica_ops.h"

enum { LINE = 64, MAX_ROUNDS = 999, WEIGHTS = 256 * 1024, COLUMNS = 2048, TOKENS = 64 };
#define DEFAULT_SECONDS 3.0

mica_status mica_machine_read(int32_t n_threads, size_t buffer_bytes, int32_t rounds, double *rounds_out, mica_error *err)
{
    mica_pool *pool = NULL;
    int32_t n;
    if (rounds < 1 || rounds > MAX_ROUNDS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%d rounds are outside 1..%d", (int)rounds, MAX_ROUNDS);
    mica_status status = mica_pool_new(n_threads, NULL, &pool, err);
    if (!status)
        status = mica_bandwidth_read(pool, buffer_bytes, rounds, INFINITY, rounds_out, &n, err);
    mica_pool_free(pool);
    return status;
}

/* ---- Products ---- */

static double timed(mica_pool *pool, mica_pool_fn fn, void *user)
{
    int64_t start = mica_now_ns();
    mica_pool_run(pool, fn, user);
    return (double)(mica_now_ns() - start) * 1e-9;
}

/* What a thread multiplies: WEIGHTS bytes, which stay in its cache, with TOKENS tokens. */
typedef struct product {
    mica_act act;
    mica_matmul m;
    int64_t rows;
    void *memory, *scratch;
} product;

typedef struct multiplier {
    const mica_kernels *kern;
    product *products; /* one a thread */
    int32_t repeats;
} multiplier;

static void multiply_thread(void *user, int thread, int n_threads)
{
    multiplier *x = user;
    product *p = &x->products[thread];
    (void)n_threads;
    for (int32_t i = 0; i < x->repeats; i++)
        mica_kernels_multiply(x->kern, &p->m, 0, p->rows, p->scratch);
}

/* The tokens' activations in the form that the weights want: floats, or bytes with scales and sums behind the floats. */
static void fill_activations(const mica_kernels *kern, product *p, float *f, float *d, int16_t *sum, int8_t *q)
{
    mica_rng rng;
    int32_t block = p->act.block;
    mica_rng_seed(&rng, 1);
    for (int64_t i = 0; i < (int64_t)TOKENS * COLUMNS; i++)
        f[i] = (float)(mica_rng_unit(&rng) * 2 - 1);
    for (int64_t t = 0; t < TOKENS && block == 32; t++)
        kern->quantize32(f + t * COLUMNS, COLUMNS, q + t * COLUMNS, d + t * COLUMNS / 32, sum + t * COLUMNS / 16);
    p->act.f = f;
    p->act.q = q;
    p->act.d = d;
    p->act.sum = sum;
}

static mica_status product_make(const mica_kernels *kern, const mica_quant *quant, product *p, mica_error *err)
{
    size_t row = mica_quant_bytes(quant, COLUMNS), n = (size_t)TOKENS * COLUMNS;
    p->rows = (int64_t)(WEIGHTS / row) & ~(int64_t)15;
    size_t weights = (size_t)p->rows * row, out = mica_round_up((size_t)p->rows * TOKENS * sizeof(float), LINE);
    size_t total = MICA_MATMUL_SCRATCH + weights + out + n * (2 * sizeof(float) + sizeof(int16_t) + 1);
    uint8_t *at = aligned_alloc(LINE, mica_round_up(total, LINE));
    p->memory = at;
    if (!at)
        return mica_fail_nomem(err, total, "the product that is measured");
    p->scratch = at;
    uint8_t *w = at + MICA_MATMUL_SCRATCH;
    float *f = (float *)(void *)(w + weights), *d = f + n, *y = d + n;
    int16_t *sum = (int16_t *)(void *)((uint8_t *)y + out);
    p->act = (mica_act){.n = TOKENS, .k = COLUMNS, .block = mica_act_block(quant)};
    fill_activations(kern, p, f, d, sum, (int8_t *)(sum + n));
    for (int64_t i = 0; i < p->rows; i++)
        quant->encode(f, NULL, w + (size_t)i * row, COLUMNS);
    p->m = (mica_matmul){.quant = quant, .w = w, .row_bytes = row, .x = &p->act, .out = y, .out_stride = p->rows};
    return MICA_OK;
}

/* The best of several rounds of about a tenth of the time: what disturbs only takes away. */
static double best_rate(mica_pool *pool, multiplier *x, double seconds)
{
    double ops = 2.0 * (double)x->products[0].rows * COLUMNS * TOKENS * mica_pool_threads(pool), best = 0, spent = 0;
    x->repeats = 1;
    mica_pool_run(pool, multiply_thread, x);
    double once = timed(pool, multiply_thread, x), repeats = once > 0 ? seconds / 10 / once : 1;
    x->repeats = repeats < 1 ? 1 : repeats > 1e6 ? 1000000 : (int32_t)repeats;
    for (int i = 0; i < 3 || (i < 1000 && spent < seconds); i++) {
        double t = timed(pool, multiply_thread, x), rate = t > 0 ? ops * x->repeats / t : 0;
        best = rate > best ? rate : best;
        spent += t;
    }
    return best;
}

static mica_status measure_products(mica_pool *pool, const mica_kernels *kern, mica_type type, double seconds,
                                    double *ops_per_s, mica_error *err)
{
    const mica_quant *quant = mica_quant_of((uint32_t)type);
    size_t threads = (size_t)mica_pool_threads(pool);
    multiplier x = {.kern = kern, .products = mica_new_array(threads, sizeof(product))};
    mica_status status =
        x.products ? MICA_OK : mica_fail_nomem(err, threads * sizeof(product), "the products that are measured");
    for (size_t i = 0; !status && i < threads; i++)
        status = product_make(kern, quant, &x.products[i], err);
    if (!status)
        *ops_per_s = best_rate(pool, &x, seconds);
    for (size_t i = 0; x.products && i < threads; i++)
        free(x.products[i].memory);
    free(x.products);
    return status;
}

/* ---- All of it ---- */

mica_status mica_machine_measure(int32_t n_threads, const char *kernels, size_t buffer_bytes, double seconds, mica_machine *out,
                                 mica_error *err)
{
    mica_pool *pool = NULL;
    mica_kernels kern;
    double rates[MAX_ROUNDS], third = (seconds > 0 ? seconds : DEFAULT_SECONDS) / 3;
    int32_t n = 0;
    *out = (mica_machine){.n_threads = n_threads, .read_bytes_per_s = NAN, .int8_ops_per_s = NAN, .f32_ops_per_s = NAN};
    if (!(third < 1e4))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%g s are too long a time to measure", seconds);
    mica_status status = mica_kernels_choose(kernels, &kern, err);
    if (!status)
        status = mica_pool_new(n_threads, NULL, &pool, err);
    if (!status)
        status = mica_bandwidth_read(pool, buffer_bytes, MAX_ROUNDS, third, rates, &n, err);
    if (!status) {
        out->read_bytes_per_s = mica_stat_percentile(rates, (size_t)n, 0.5);
        status = measure_products(pool, &kern, MICA_TYPE_Q8_0, third, &out->int8_ops_per_s, err);
    }
    if (!status)
        status = measure_products(pool, &kern, MICA_TYPE_F32, third, &out->f32_ops_per_s, err);
    mica_pool_free(pool);
    return status;
}
