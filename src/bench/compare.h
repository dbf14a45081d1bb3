/* compare.h - is B faster than A? Two runtimes (or models, or stored sets of runs) side by side, with an interval for each
 * ratio.
 *
 * Live: both are loaded, and answer the same prompts in turn, A B B A A B ...: what changes slowly on the machine hits both
 * alike, and each round gives a pair. Stored: the replies of runs that are there already, without pairs. Called by
 * programs/cmd_compare.c. */
#ifndef MICA_BENCH_COMPARE_H
#define MICA_BENCH_COMPARE_H
#include "bench/adapter.h"
#include "bench/record.h"
#include "mica/mica_ops.h"

enum { MICA_COMPARE_METRICS = 8 };

typedef struct mica_compare_metric {
    char name[32]; /* "ttft_512_ms" */
    bool higher_is_better;
    size_t n_a, n_b, capacity_a, capacity_b;
    double *a, *b;    /* pairs where the comparison was live */
    mica_ratio ratio; /* b / a; its verdict is TOO_FEW where nothing can be told */
} mica_compare_metric;

typedef struct mica_comparison {
    char name[2][160]; /* "llama.cpp cpu" */
    bool paired;
    size_t n;
    mica_compare_metric metric[MICA_COMPARE_METRICS];
} mica_comparison;

typedef struct mica_compare_options {
    const char *adapter[2], *model[2], *backend;
    bool allow_fallback;
    int32_t threads, rounds;                  /* rounds: 1..1000 */
    int32_t long_prompt, short_prompt, reply; /* tokens; 512, 32, 64 */
    mica_adapter_options adapter_options;
    mica_ratio_options ratio;
    /* After each round; `so_far` has its values, without ratios. May be NULL */
    void (*on_round)(void *user, int32_t done, int32_t rounds, const mica_comparison *so_far);
    void *user;
} mica_compare_options;

mica_compare_options mica_compare_options_default(void);

/** *out is to be freed in every case. */
mica_status mica_compare_live(const mica_compare_options *options, mica_comparison *out, mica_error *err);

/** Adds the replies of a stored run to side 0 or 1 of a zeroed comparison; then the ratios. */
mica_status mica_compare_add(mica_comparison *c, int side, const mica_record *run, mica_error *err);
mica_status mica_compare_judge(mica_comparison *c, const mica_ratio_options *options, mica_error *err);

void mica_comparison_free(mica_comparison *c);

/** 'b', 'a', or '=' where the difference is inside the noise, '?' with too few values. */
char mica_compare_better(const mica_compare_metric *metric);

#endif
