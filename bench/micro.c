/* micro.c - speed of the matrix-product kernels alone: every weight format, every kernel set that this CPU runs.
 *
 *     micro [-k KERNELS] [-f FORMAT] [-m MEGABYTES]
 *
 * Per line: decode (one token) from cache and from memory in GB/s of weights, prefill (256 tokens) in GMAC/s, on one thread, best of
 * several rounds of processor time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/map_huge.h"
#include "kern/kern.h"

enum { K = 2048, TOKENS = 256, ROUNDS = 7, HUGE = 2 << 20 };

typedef struct setup {
    const mica_kernels *kern;
    const mica_quant *quant;
    uint8_t *w;
    int64_t rows;
    float *x, *d, *out;
    int8_t *q;
    int16_t *sum;
    void *scratch;
} setup;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *get(size_t bytes)
{
    size_t align = bytes < HUGE ? 64 : HUGE, room = (bytes + align - 1) & ~(align - 1);
    void *p = aligned_alloc(align, room);
    if (!p)
        exit(1);
    mica_memory_collapse(p, room); /* large ones in huge pages, as weights are mapped */
    return p;
}

/* Seconds for one product of all rows with n tokens. */
static double measure(const setup *s, int32_t n, int64_t rows)
{
    int32_t block = mica_act_block(s->quant);
    mica_act act = {.n = n, .k = K, .block = block, .f = s->x, .q = s->q, .d = s->d, .sum = s->sum};
    mica_matmul m = {.quant = s->quant, .w = s->w, .row_bytes = mica_quant_bytes(s->quant, K), .x = &act, .out = s->out, .out_stride = rows};
    double best = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
        int repeat = 0;
        double start = now_s(), end;
        do {
            mica_kernels_multiply(s->kern, &m, 0, rows, s->scratch);
            repeat++;
            end = now_s();
        } while (end - start < 0.02);
        best = (end - start) / repeat < best ? (end - start) / repeat : best;
    }
    return best;
}

/* GB/s of a plain sum over the buffer: what memory gives one thread in this minute. */
static double read_bandwidth(const uint8_t *data, size_t bytes)
{
    double best = 1e9;
    volatile uint64_t sink;
    for (int r = 0; r < ROUNDS; r++) {
        const uint64_t *p = (const uint64_t *)(const void *)data;
        uint64_t sum[8] = {0};
        double start = now_s();
        for (size_t i = 0; i + 8 <= bytes / 8; i += 8)
            for (int j = 0; j < 8; j++)
                sum[j] ^= p[i + (size_t)j];
        double t = now_s() - start;
        sink = sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
        best = t < best ? t : best;
    }
    (void)sink;
    return (double)bytes / best * 1e-9;
}

static void report(setup *s, size_t bytes)
{
    size_t row = mica_quant_bytes(s->quant, K);
    for (size_t i = 0; i + row <= bytes; i += row) { /* a sane row, again and again */
        if (i == 0)
            s->quant->encode(s->x, NULL, s->w, K);
        else
            memcpy(s->w + i, s->w, row);
    }
    int64_t cached = (int64_t)((size_t)256 * 1024 / row) & ~(int64_t)15, all = (int64_t)(bytes / row) & ~(int64_t)15;
    int32_t block = mica_act_block(s->quant);
    for (int64_t t = 0; t < TOKENS && block > 1; t++)
        (block == 32 ? s->kern->quantize32 : s->kern->quantize256)(s->x + t * K, K, s->q + t * K, s->d + t * K / block, s->sum + t * K / 16);
    double hot = measure(s, 1, cached), cold = measure(s, 1, all), many = measure(s, TOKENS, cached);
    printf("%-9s %-7s decode %6.2f GB/s cached, %6.2f GB/s from memory; prefill %7.2f GMAC/s\n", s->kern->name, s->quant->name,
           (double)cached * (double)row / hot * 1e-9, (double)all * (double)row / cold * 1e-9, (double)cached * K * TOKENS / many * 1e-9);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *only_set = NULL, *only_format = NULL;
    size_t bytes = (size_t)128 << 20;
    for (int c; (c = getopt(argc, argv, "k:f:m:")) != -1;) {
        if (c == 'k')
            only_set = optarg;
        else if (c == 'f')
            only_format = optarg;
        else if (c == 'm')
            bytes = (size_t)atoi(optarg) << 20;
        else
            return 2;
    }
    setup s = {.w = get(bytes), .x = get(TOKENS * K * 4), .d = get(TOKENS * K), .q = get(TOKENS * K), .sum = get(TOKENS * K),
               .scratch = get(MICA_MATMUL_SCRATCH)};
    s.out = get(TOKENS * (bytes / 512) * 4 + 64);
    for (size_t i = 0; i < TOKENS * K; i++)
        s.x[i] = (float)(rand() % 2001 - 1000) * 1e-3f;
    memset(s.w, 1, bytes);
    printf("read bandwidth of one thread: %.2f GB/s\n", read_bandwidth(s.w, bytes));
    for (size_t i = 1; i < mica_isa_count(); i++) {
        mica_kernels kern;
        mica_error err;
        if (!mica_isa_at(i)->supported() || (only_set && strcmp(only_set, mica_isa_at(i)->name) != 0))
            continue;
        if (mica_kernels_choose(mica_isa_at(i)->name, &kern, &err)) {
            fprintf(stderr, "micro: %s\n", err.message);
            return 1;
        }
        s.kern = &kern;
        for (uint32_t type = 0; type < MICA_TYPE_COUNT; type++) {
            s.quant = mica_quant_of(type);
            if (s.quant && (!only_format || strcmp(only_format, s.quant->name) == 0))
                report(&s, bytes);
        }
    }
    return 0;
}
