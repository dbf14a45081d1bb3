#include "kern/kern.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kern/cpu.h"
#include "kern/fills.h"

static const mica_isa isas[] = {
#define ISA(name, supported, fill) {name, supported, fill},
#include "kern/isa_list.h"
#undef ISA
};

size_t mica_isa_count(void) { return sizeof isas / sizeof *isas; }

const mica_isa *mica_isa_at(size_t i) { return &isas[i]; }

/* Deterministic filler for the self-check. */
static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

#define CHECK_ROWS 19
#define CHECK_K 512
#define CHECK_N 5

/* Random bytes make valid blocks of every format, but their f16 scales may be inf or NaN: the encoder makes sane ones. */
static bool check_matmul(const mica_kernels *k, const mica_kernels *ref, const mica_quant *quant, void *memory)
{
    uint8_t *w = memory;
    size_t row_bytes = mica_quant_bytes(quant, CHECK_K);
    float *x = (float *)((char *)memory + CHECK_ROWS * CHECK_K * 4);
    int8_t *q = (int8_t *)(x + CHECK_N * CHECK_K);
    float *d = (float *)(q + CHECK_N * CHECK_K);
    int16_t *sum = (int16_t *)(d + CHECK_N * CHECK_K / 16);
    float *got = (float *)(sum + CHECK_N * CHECK_K / 16), *want = got + CHECK_ROWS * CHECK_N;
    void *scratch = (void *)mica_round_up((size_t)(want + CHECK_ROWS * CHECK_N), 64);
    uint32_t seed = 1;
    for (int i = 0; i < CHECK_N * CHECK_K; i++)
        x[i] = (float)(int32_t)next_random(&seed) * 1e-9f;
    for (int r = 0; r < CHECK_ROWS; r++) { /* four kinds of row: encoding costs more than all else here */
        if (r < 4)
            quant->encode(x + r * CHECK_K / 4, NULL, w + (size_t)r * row_bytes, CHECK_K);
        else
            memcpy(w + (size_t)r * row_bytes, w + (size_t)(r % 4) * row_bytes, row_bytes);
    }
    int32_t block = mica_act_block(quant);
    for (int t = 0; t < CHECK_N && block > 1; t++)
        (block == 32 ? k->quantize32 : k->quantize256)(x + t * CHECK_K, CHECK_K, q + t * CHECK_K, d + t * CHECK_K / block,
                                                       sum + t * CHECK_K / 16);
    mica_act act = {.n = CHECK_N, .k = CHECK_K, .block = block, .f = x, .q = q, .d = d, .sum = sum};
    mica_matmul m = {.quant = quant, .w = w, .row_bytes = row_bytes, .x = &act, .out = got, .out_stride = CHECK_ROWS};
    k->matmul[quant->type](&m, 0, CHECK_ROWS, scratch);
    m.out = want;
    ref->matmul[quant->type](&m, 0, CHECK_ROWS, scratch);
    return memcmp(got, want, CHECK_ROWS * CHECK_N * sizeof *got) == 0;
}

static mica_status self_check(const mica_kernels *k, mica_error *err)
{
    size_t bytes = CHECK_ROWS * CHECK_K * 4 + CHECK_N * CHECK_K * 8 + CHECK_ROWS * CHECK_N * 8 + MICA_MATMUL_SCRATCH + 4096;
    void *memory = malloc(bytes);
    if (!memory)
        return mica_fail_nomem(err, bytes, "the kernels' self-check");
    mica_kernels ref;
    mica_kernels_fill_portable(&ref);
    mica_status status = MICA_OK;
    for (uint32_t type = 0; type < MICA_TYPE_COUNT && !status; type++) {
        const mica_quant *quant = mica_quant_of(type);
        if (quant && k->matmul[type] != ref.matmul[type] && !check_matmul(k, &ref, quant, memory))
            status = mica_fail(err, MICA_BAD_KERNELS,
                               "the %s kernel for %s gives other results than the portable one on this CPU; use --kernels portable",
                               k->name, quant->name);
    }
    free(memory);
    return status;
}

static void fill_up_to(size_t last, mica_kernels *k)
{
    memset(k, 0, sizeof *k);
    for (size_t i = 0; i <= last; i++)
        if (isas[i].supported())
            isas[i].fill(k);
    k->name = isas[last].name;
}

/* The set by its name, or the last that this CPU runs. */
static mica_status find_set(const char *name, size_t *chosen, mica_error *err)
{
    size_t n = mica_isa_count();
    *chosen = 0;
    for (size_t i = 0; i < n && !name; i++)
        if (isas[i].supported())
            *chosen = i;
    if (!name)
        return MICA_OK;
    while (*chosen < n && strcmp(name, isas[*chosen].name) != 0)
        ++*chosen;
    if (*chosen == n)
        return mica_fail(err, MICA_BAD_KERNELS, "unknown kernel set \"%s\"; this build has: " MICA_ISA_NAMES, name);
    if (!isas[*chosen].supported())
        return mica_fail(err, MICA_BAD_KERNELS, "this CPU cannot run the kernel set \"%s\"", name);
    return MICA_OK;
}

mica_status mica_kernels_choose(const char *name, mica_kernels *k, mica_error *err)
{
    size_t chosen;
    mica_status status = find_set(name, &chosen, err);
    if (status)
        return status;
    fill_up_to(chosen, k);
    return chosen == 0 ? MICA_OK : self_check(k, err);
}

const char *mica_kernels_matmul_origin(const mica_kernels *k, mica_type type)
{
    mica_kernels level;
    const char *origin = "portable";
    memset(&level, 0, sizeof level);
    for (size_t i = 0; i < mica_isa_count(); i++) {
        mica_matmul_fn before = level.matmul[type];
        isas[i].fill(&level);
        if (level.matmul[type] != before && level.matmul[type] == k->matmul[type])
            origin = isas[i].name;
    }
    return origin;
}
