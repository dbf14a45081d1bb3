/* mica_ops.h - measuring, judging and pricing what a runtime does: `mica bench`, `mica compare` and `mica cost` call these.
 *
 *     mica_run run = {.accepted_ns = t0, .token_ns = times, .n_tokens = n, .n_prompt = 512};
 *     mica_run_figures f;  mica_throttle throttle;  mica_error err;
 *     mica_run_measure(&run, NULL, &f, &err);             // TTFT, TPOT, decode, cold and steady rate
 *     mica_throttle_detect(times, n, NULL, &throttle, &err);  // the step, if there is one
 *
 * A library of its own (mica_ops), not a part of libmica. The rules of mica.h hold, and two more:
 *  - A figure that cannot be told is NAN, never 0 and never infinite; JSON has null there.
 *  - What is computed from stored samples is computed by pure functions: the same samples, options and seed give the same bits.
 */
#ifndef MICA_MICA_OPS_H
#define MICA_MICA_OPS_H
#include "mica/mica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statistics ------------------------------------------------------------------------------------------------------ */

/** Of values in ascending order: the p-th part (0..1) by linear interpolation between ranks, h = (n - 1) p. NAN if n is 0. */
double mica_stat_percentile(const double *sorted, size_t n, double p);
#define MICA_STAT_PERCENTILE_RULE "linear interpolation, h = (n - 1) p" /* for outputs that name the rule */

/** NAN if n is 0. The median sorts a copy: NAN also without memory. */
double mica_stat_mean(const double *values, size_t n);
double mica_stat_median(const double *values, size_t n);
void mica_stat_sort(double *values, size_t n);

typedef enum mica_verdict {
    MICA_VERDICT_TOO_FEW = 0, /* fewer than MICA_STAT_MIN_PAIRS: no verdict */
    MICA_VERDICT_NOISE = 1,   /* the interval holds 1, or does not leave the margin: no difference shown */
    MICA_VERDICT_HIGHER = 2,  /* b is higher than a */
    MICA_VERDICT_LOWER = 3,
} mica_verdict;

/** "too few", "inside the noise", "higher", "lower". Static. */
const char *mica_verdict_name(mica_verdict verdict);

#define MICA_STAT_MIN_PAIRS 5 /* with fewer even the extremes of the sample are no 90 % interval: 1 - 2 / 2^5 = 94 % */

typedef struct mica_ratio {
    double ratio;     /* geometric mean of b[i] / a[i]; of unpaired samples exp(mean log b - mean log a) */
    double low, high; /* confidence interval; NAN below 2 pairs */
    double level;     /* its confidence, e.g. 0.95 */
    size_t n;         /* pairs; of unpaired samples the smaller number */
    mica_verdict verdict;
} mica_ratio;

typedef struct mica_ratio_options {
    size_t struct_size;
    double level;    /* 0.95 */
    double margin;   /* a difference is told only where the interval lies outside [1 / (1 + margin), 1 + margin]; 0 */
    int32_t resamples; /* of the bootstrap, 100..1000000; 9999 */
    uint64_t seed;   /* 1 */
} mica_ratio_options;

mica_ratio_options mica_ratio_options_default(void);

/** Runs measured in turn (A B B A ...), a[i] beside b[i], all above 0: the ratio b / a with a bootstrap interval of the mean
 * log ratio, expanded for small samples (src/bench/stats.c). */
mica_status mica_stat_paired_ratio(const double *a, const double *b, size_t n, const mica_ratio_options *options,
                                   mica_ratio *out, mica_error *err);
/** The same for samples that are not pairs (two stored sets of runs): each is resampled by itself. */
mica_status mica_stat_unpaired_ratio(const double *a, size_t n_a, const double *b, size_t n_b,
                                     const mica_ratio_options *options, mica_ratio *out, mica_error *err);

/* ---- Figures of a run ------------------------------------------------------------------------------------------------ */

/** What was recorded of one generation. */
typedef struct mica_run {
    int64_t accepted_ns;     /* the request was accepted, before tokenising */
    const int64_t *token_ns; /* when each generated token was handed over; tokens of one event share a time */
    size_t n_tokens;
    int64_t n_prompt;   /* tokens of the prompt, those from a prefix cache included */
    int64_t n_cached;   /* of those, from the cache */
    int64_t prefill_ns; /* time of computing the prompt; 0: the runtime does not tell it, the time to the first token counts */
} mica_run;

/** The windows of "cold" and "steady". */
typedef struct mica_run_windows {
    double cold_s;       /* 60 */
    double steady_s;     /* 180 */
    double steady_min_s; /* 480: a shorter decode has no steady rate */
} mica_run_windows;

mica_run_windows mica_run_windows_default(void);

#define MICA_RUN_MIN_TOKENS 32 /* a decode rate of fewer is flagged */

typedef struct mica_run_figures {
    double ttft_ms;
    double prefill_tps; /* tokens really computed / prefill time */
    double decode_tps;  /* (n - 1) / (last - first); NAN for 1 token */
    double tpot_ms;     /* mean gap between tokens */
    double itl_p50_ms, itl_p90_ms, itl_p95_ms, itl_p99_ms, itl_max_ms;
    double cold_tps;   /* rate of the first cold_s of decode; NAN if it is shorter */
    double steady_tps; /* rate of the last steady_s of a decode of at least steady_min_s; else NAN */
    double decode_s;   /* last - first token */
    bool few_tokens;   /* fewer than MICA_RUN_MIN_TOKENS */
} mica_run_figures;

/** `windows` may be NULL. MICA_INVALID_ARGUMENT if a clock went backwards or a count is negative. */
mica_status mica_run_measure(const mica_run *run, const mica_run_windows *windows, mica_run_figures *out, mica_error *err);

/** Tokens per second in bins of bin_s from the first token on; each token is spread evenly over the gap before it, so that a
 * bin need not hold whole tokens. Whole bins only. *rates is yours. */
mica_status mica_rate_series(const int64_t *token_ns, size_t n, double bin_s, double **rates, size_t *count, mica_error *err);

/* ---- Throttling ------------------------------------------------------------------------------------------------------ */

/** A throttle is: flat, then a drop of at least min_depth reached within max_ramp_s, then flat. A slow drift, a stall and
 * noise are none. Times are seconds from the first token (or bin). */
typedef struct mica_throttle_options {
    size_t struct_size;
    double min_depth;      /* 0.10 */
    double max_ramp_s;     /* 90; a fitted ramp may be longer by what its ends are uncertain, at most by half */
    double min_flat_s;     /* 45: what counts as flat, on both sides */
    double cell_s;         /* 5: the search works on medians of such cells, which spikes and short stalls do not move */
    double min_confidence; /* 0.99 */
    int32_t permutations;  /* 199 */
    uint64_t seed;         /* 1 */
} mica_throttle_options;

mica_throttle_options mica_throttle_options_default(void);

typedef enum mica_change {
    MICA_CHANGE_THROTTLE = 0, /* a drop as defined */
    MICA_CHANGE_RISE = 1,     /* the same upwards: a recovery */
    MICA_CHANGE_SMALL = 2,    /* less than min_depth */
    MICA_CHANGE_DRIFT = 3,    /* slower than max_ramp_s, or not flat before or after */
    MICA_CHANGE_SHORT = 4,    /* flat for too short a time before or after to tell */
} mica_change;

/** "throttle", "rise", "small", "drift", "short". Static. */
const char *mica_change_name(mica_change change);

typedef struct mica_level_change {
    mica_change kind;
    double start_s, end_s;           /* the ramp */
    double before_tps, after_tps;    /* the levels */
    double depth;                    /* 1 - after / before: a part, 0.25 for 25 %; negative for a rise */
    double confidence;               /* 1 - p of a permutation test against "no change" */
} mica_level_change;

#define MICA_THROTTLE_MAX_CHANGES 16

typedef struct mica_throttle {
    bool throttled;
    int32_t worst; /* index of the deepest throttle, -1: none */
    int32_t n_changes;
    mica_level_change changes[MICA_THROTTLE_MAX_CHANGES]; /* in order of time */
    bool too_short; /* the trace is too short for any throttle to be seen */
} mica_throttle;

/** `rates` in bins of bin_s (cell_s must be a multiple of at least 1). Sees every sample: offline only. */
mica_status mica_throttle_find(const double *rates, size_t n, double bin_s, const mica_throttle_options *options,
                               mica_throttle *out, mica_error *err);
/** The same from token times; bins are cell_s / 5. */
mica_status mica_throttle_detect(const int64_t *token_ns, size_t n, const mica_throttle_options *options, mica_throttle *out,
                                 mica_error *err);

/* ---- Roofline -------------------------------------------------------------------------------------------------------- */

/** What a token of a model costs in bytes and operations: from the file, or filled by hand. */
typedef struct mica_model_cost {
    int64_t file_bytes;
    int64_t streamed_bytes;   /* weights read whole for each step: all matrices that multiply */
    int64_t lookup_bytes;     /* tables of which a token reads one row: embeddings of untied models, per-layer embeddings */
    int64_t lookup_row_bytes; /* those rows together */
    int64_t layer_weights;    /* elements of the layers' matrices: each multiplies once a token */
    int64_t output_weights;   /* of the output matrix: once for each token whose logits are wanted */
    int32_t n_layers, n_windowed, window; /* layers that see only the last `window` tokens */
    int32_t n_heads, n_kv_heads, head_dim;
    double kv_element_bytes; /* of keys and values, the mean: 2 for F16, 34/32 for Q8_0 */
} mica_model_cost;

/** From a GGUF file that this build knows; F16 cache. */
mica_status mica_model_cost_read(const char *path, mica_model_cost *out, mica_error *err);

/** Bytes read for the next token after `depth` tokens: weights, rows of tables, keys and values. */
double mica_model_decode_bytes(const mica_model_cost *m, int64_t depth);
/** Bytes of keys and values that `depth` tokens take; windowed layers keep no more than their window. */
double mica_model_kv_bytes(const mica_model_cost *m, int64_t depth);

/** Operations (a multiplication and an addition are two) of computing a prompt of n tokens at once: products with weights,
 * linear in n, and attention, n (n + 1) / 2 pairs a head. The logits of the last token only. */
typedef struct mica_prefill_ops {
    double linear, attention, total;
} mica_prefill_ops;

mica_prefill_ops mica_model_prefill_ops(const mica_model_cost *m, int64_t n);

/** What a machine does at its best with some number of threads. */
typedef struct mica_machine {
    int32_t n_threads;
    double read_bytes_per_s; /* plain reads of what no cache holds, sustained */
    double int8_ops_per_s;   /* our Q8_0 product of 64 tokens, weights in the cache */
    double f32_ops_per_s;    /* our F32 product, likewise */
} mica_machine;

/** Measures for about `seconds` (0: 3), with `buffer_bytes` (0: 512 MiB) to read; `kernels` NULL: the best set. */
mica_status mica_machine_measure(int32_t n_threads, const char *kernels, size_t buffer_bytes, double seconds, mica_machine *out,
                                 mica_error *err);
/** The first of those figures alone: bytes per second of each of `rounds` rounds, sorted, in rounds_out[rounds]. */
mica_status mica_machine_read(int32_t n_threads, size_t buffer_bytes, int32_t rounds, double *rounds_out, mica_error *err);

/** What the roofline allows. */
typedef struct mica_roofline {
    double decode_bytes;       /* a token at that depth */
    double decode_ceiling_tps; /* bandwidth / decode_bytes */
    double prefill_ops;        /* a prompt of that length */
    double prefill_ceiling_tps;
    double prefill_ceiling_ms; /* the longer of computing it and of reading the weights once */
    double crossover_tokens;   /* prompts from this length on are bound by arithmetic, shorter ones by memory */
} mica_roofline;

/** `ops_per_s` of products with weights: the int8 figure for quantised ones, the f32 one for float ones. `float_ops_per_s` of
 * attention, which is computed in floats whatever the weights are. */
mica_roofline mica_roofline_of(const mica_model_cost *m, double read_bytes_per_s, double ops_per_s, double float_ops_per_s,
                               int64_t depth, int64_t prompt);

/** decode_tps as a part of what bandwidth allows: 0.7 for 70 %. */
double mica_roofline_decode_part(const mica_model_cost *m, double read_bytes_per_s, int64_t depth, double decode_tps);
/** bytes x tokens/s: what a decode rate says of the memory, in bytes per second. */
double mica_roofline_implied(double bytes_per_token, double decode_tps);

/** What a published figure says, given a device's peak memory rate. */
typedef enum mica_plausibility {
    MICA_PLAUSIBLE_DENSE = 0,   /* 62 to 74 % of the peak: where dense models on phones lie */
    MICA_PLAUSIBLE_BELOW = 1,   /* less: something else bounds it (arithmetic, launch costs, heat) */
    MICA_PLAUSIBLE_HIGH = 2,    /* 74 to 100 %: more than phones are known to reach */
    MICA_IMPOSSIBLE_STREAM = 3, /* above the peak: not all bytes of the file can have been read for each token */
} mica_plausibility;

mica_plausibility mica_roofline_judge(double implied_bytes_per_s, double peak_bytes_per_s);
/** A sentence on it. Static. */
const char *mica_plausibility_text(mica_plausibility p);
/** The most bytes that a token can have read at that rate: what must be looked up rather than streamed is the rest. */
double mica_roofline_streamed_at_most(double peak_bytes_per_s, double decode_tps);

/* ---- Units ----------------------------------------------------------------------------------------------------------- */

/* A type for each unit: one cannot be handed where another is wanted, and only the functions below turn one into another. */
typedef struct { double v; } mica_watts;
typedef struct { double v; } mica_joules;
typedef struct { double v; } mica_watt_hours;
typedef struct { double v; } mica_usd;
typedef struct { double v; } mica_usd_per_kwh;
typedef struct { double v; } mica_tokens;
typedef struct { double v; } mica_tokens_per_s;
typedef struct { double v; } mica_joules_per_token;
typedef struct { double v; } mica_wh_per_million;  /* of tokens */
typedef struct { double v; } mica_usd_per_million; /* of tokens */
typedef struct { double v; } mica_seconds;
typedef struct { double v; } mica_years; /* of 365 days */
typedef struct { double v; } mica_part;  /* 0..1 */
typedef struct { double v; } mica_charges;

#define MICA_SECONDS_PER_YEAR (365.0 * 86400.0)

mica_watt_hours mica_wh_of_joules(mica_joules j);                                             /* / 3600 */
mica_joules_per_token mica_energy_per_token(mica_watts power, mica_tokens_per_s rate);        /* W / (tok/s) */
mica_wh_per_million mica_wh_of_token(mica_joules_per_token j);                                /* x 1e6 / 3600 */
mica_usd_per_million mica_usd_of_energy(mica_wh_per_million wh, mica_usd_per_kwh price);      /* / 1000 x price */
mica_charges mica_charges_of(mica_wh_per_million wh, mica_tokens tokens, mica_watt_hours battery);
mica_usd mica_usd_of_tokens(mica_usd_per_million price, mica_tokens tokens);
mica_seconds mica_time_of_tokens(mica_tokens tokens, mica_tokens_per_s rate, mica_part duty);
/** What a device makes in its life. */
mica_tokens mica_lifetime_tokens(mica_tokens_per_s rate, mica_years life, mica_part duty);
mica_usd_per_million mica_usd_of_device(mica_usd price, mica_tokens lifetime);
/** Input and output tokens at their prices, per million of both together, in the proportion in : out. */
mica_usd_per_million mica_usd_blend(mica_usd_per_million in, mica_usd_per_million out, mica_tokens n_in, mica_tokens n_out);

/* ---- Cost ------------------------------------------------------------------------------------------------------------ */

/** What tokens of an own device cost. What is NAN is unknown, and so is what follows from it. */
typedef struct mica_device_cost_input {
    mica_tokens_per_s rate;     /* sustained */
    mica_watts power;           /* while it generates */
    mica_watts idle_power;      /* of a dedicated device, while it does not; 0: it is used for something else */
    mica_usd_per_kwh electricity;
    mica_usd device;            /* its price; 0: there anyway */
    mica_years life;
    mica_part duty;             /* the part of the time in which it generates */
    mica_watt_hours battery;
    mica_wh_per_million measured_energy; /* instead of power / rate: measured */
} mica_device_cost_input;

typedef struct mica_device_cost {
    mica_joules_per_token energy_per_token;
    mica_wh_per_million wh;           /* with the idle energy */
    mica_wh_per_million idle_wh;      /* that part of it */
    mica_usd_per_million energy;
    mica_tokens lifetime;
    mica_usd_per_million hardware;
    mica_usd_per_million total;
    mica_charges charges_per_million;
} mica_device_cost;

/** MICA_INVALID_ARGUMENT names the input that is negative, zero where it divides, or no number. */
mica_status mica_cost_device(const mica_device_cost_input *in, mica_device_cost *out, mica_error *err);

/** Where an own device costs as much as `cloud` does, one input changed and the others as they are. NAN: nowhere. */
typedef struct mica_break_even {
    mica_part duty;            /* from this duty on it is cheaper; NAN: not even at 100 % */
    mica_tokens_per_s rate;    /* from this rate on, at the same power */
    mica_usd device;           /* up to this price */
    mica_usd_per_million price; /* the cloud's price at which both cost the same: the device's total */
} mica_break_even;

mica_status mica_cost_break_even(const mica_device_cost_input *in, mica_usd_per_million cloud, mica_break_even *out,
                                 mica_error *err);

#define MICA_PRICE_ROWS_MAX 64

typedef struct mica_price_row {
    char name[64], provider[64], date[16], source[160];
    mica_usd_per_million in, out;
} mica_price_row;

/** A price table with its date: share/mica/prices.json. */
typedef struct mica_prices {
    char date[16], note[240];
    double blend_in, blend_out; /* 3 : 1 */
    mica_usd_per_kwh electricity;
    size_t n;
    mica_price_row rows[MICA_PRICE_ROWS_MAX];
} mica_prices;

/** Reads the JSON text of a price table; MICA_BAD_TEXT says what is wrong in it. *out is yours: mica_free(). */
mica_status mica_prices_read(const char *json, size_t length, mica_prices **out, mica_error *err);

/* ---- Measuring ------------------------------------------------------------------------------------------------------- */

typedef struct mica_bench_progress {
    const char *name;  /* of the runtime */
    const char *phase; /* "ttft_512" */
    const char *note;  /* what is waited for; "" */
    int32_t at, n;     /* phase `at` of n */
    double done;       /* of the phase, 0..1 */
    double tps;        /* decode rate: of the last second while a reply is made, of all of it at its end; NAN */
} mica_bench_progress;

typedef struct mica_bench_options {
    size_t struct_size;
    const char *adapter;  /* "mica", the default: our engine in this process; else a folder (docs/adapter-protocol.md) */
    const char *model;    /* absolute path */
    const char *backend;  /* "default", "cpu", "gpu", "npu" */
    bool allow_fallback;  /* measure a runtime that does not run as asked, under a name that says so */
    int32_t threads;      /* 0: the runtime's choice */
    const char *protocol; /* JSON text; share/mica/protocols has some */
    size_t protocol_length;
    const char *db;         /* SQLite file in which the run is kept too; NULL: none */
    const char *conditions; /* JSON object of what no sensor tells; NULL: none */
    const char *sysroot;    /* prefix for /proc and /sys; NULL for the real ones */
    bool (*stop)(void *user); /* asked about ten times a second; true ends the run. NULL: never */
    void (*on_progress)(void *user, const mica_bench_progress *progress); /* may be NULL */
    void *user;
} mica_bench_options;

mica_bench_options mica_bench_options_default(void);

/** Carries a runtime through a protocol. *archive (JSON, terminated; yours) has the raw samples, the conditions and the
 * figures: of runs that failed or were stopped too, with the reason; it is NULL only where nothing began. The status is that
 * of the run. */
mica_status mica_bench_run(const mica_bench_options *options, char **archive, mica_error *err);

/** Computes the figures of such an archive again. *complaints (a JSON array of texts; yours) is empty if every one is right. */
mica_status mica_bench_verify(const char *archive, size_t length, char **complaints, mica_error *err);

#ifdef __cplusplus
}
#endif
#endif
