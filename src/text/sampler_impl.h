/* sampler_impl.h - what the files of the sampler share. Included by sampler.c, sampler_options.c, penalties.c, dry.c, topk.c,
 * filter.c, mass.c and the unit test; nobody else.
 *
 * Terms. Weight of a token: e^(logit - best logit), so the best has 1. Mass of a set: the sum of its weights. Candidates: an
 * array of (key, id), where a greater key comes first and equal keys go to the lower id.
 */
#ifndef MICA_TEXT_SAMPLER_IMPL_H
#define MICA_TEXT_SAMPLER_IMPL_H
#include "base/rng.h"
#include "kern/fmath.h"
#include "text/sampler.h"

/* ---- Logits in blocks (topk.c) --------------------------------------------------------------------------------------- */

/* Logits are scanned once, in blocks whose maxima are kept: later stages skip every block that cannot matter. 128 makes 1187
 * blocks of 151936 logits: few enough to select among, and short enough that 40 of them are quickly read again. */
#define MICA_BLOCK 128

typedef struct mica_scan {
    const float *logits;
    size_t n, n_blocks;
    const int32_t *block_max; /* per block, as order keys */
    int32_t max_key, min_key;
    float best;      /* the greatest logit ... */
    int32_t best_id; /* ... and the lowest id that has it; both only set when the scan is usable */
} mica_scan;

/* Order keys: floats as integers that compare alike, -0 equal to +0, positive NaNs above +inf and negative ones below -inf. */
#define MICA_KEY_INF 0x7F800000
#define MICA_KEY_MINUS_INF (-0x7F800001)

static inline int32_t mica_order_key(float x)
{
    int32_t bits = (int32_t)mica_f32_bits(x + 0.0f); /* -0 + 0 is +0 */
    return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}
static inline float mica_order_value(int32_t key) { return mica_bits_f32((uint32_t)(key ^ ((key >> 31) & 0x7FFFFFFF))); }

/** Reads all logits once. block_max has room for ceil(n / MICA_BLOCK) keys. True if every logit is finite or -inf and one at
 * least is finite. */
bool mica_scan_logits(const float *logits, size_t n, int32_t *block_max, mica_scan *scan);

/* ---- Candidates (topk.c) --------------------------------------------------------------------------------------------- */

typedef struct mica_cand {
    float key; /* the logit, unless a stage says otherwise */
    int32_t id;
} mica_cand;

/** The k best tokens, best first, to `out` (room for k). Never one with -inf, so there may be fewer; returns how many. */
size_t mica_top_k(const mica_scan *scan, size_t k, mica_cand *out);

/** Makes c[0..n) a heap with the first candidate at c[0]. */
void mica_heap_make(mica_cand *c, size_t n);
/** Swaps the first candidate to c[n-1] and makes c[0..n-1) a heap again. */
void mica_heap_pop(mica_cand *c, size_t n);

/* ---- Weights and masses over the whole vocabulary (mass.c) ----------------------------------------------------------- */

/* Weights below e^-64 count as 0: 2^18 of them together are below 2^-73 of the best token's. */
#define MICA_WEIGHT_REACH 64
#define MICA_WEIGHT_STEPS 64 /* table entries for one doubling */

typedef struct mica_weights {
    double table[MICA_WEIGHT_STEPS]; /* 2^(i/64) */
} mica_weights;

void mica_weights_init(mica_weights *w);

/** e^x for x in [-64, 0], 0 below; relative error under 1e-13. Only IEEE multiplications and additions in fixed order and a
 * table that comes from mica_exp: the same bits everywhere, and unlike mica_exp no fma, which is a library call on baseline
 * x86-64 and would make a pass over 150,000 logits take milliseconds. */
static inline double mica_weight(const mica_weights *w, double x)
{
    /* x = k ln2/64 + r; adding 1.5 * 2^52 rounds to an integer that the low bits then hold in two's complement */
    double shifted = x * (MICA_WEIGHT_STEPS / 0.69314718055994530942) + 0x1.8p52;
    double r = x - (shifted - 0x1.8p52) * (0.69314718055994530942 / MICA_WEIGHT_STEPS);
    uint64_t k, bits;
    memcpy(&k, &shifted, 8);
    /* |r| <= 0.0055: the series to r^4 leaves 4e-14 */
    double p = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0))));
    double value = w->table[k % MICA_WEIGHT_STEPS] * p;
    memcpy(&bits, &value, 8);
    bits += (k / MICA_WEIGHT_STEPS) << 52; /* exponent -93 at the least: stays a normal number */
    memcpy(&value, &bits, 8);
    return x >= -MICA_WEIGHT_REACH ? value : 0.0;
}

/** Mass of the vocabulary with logits scaled by `inverse_t`, block by block to block_mass; returns the total. */
double mica_mass_total(const mica_weights *w, const mica_scan *scan, double inverse_t, double *block_mass);
/** The token at `point` in [0, total) of the line that mica_mass_total() measured, in order of ids. */
int32_t mica_mass_find(const mica_weights *w, const mica_scan *scan, double inverse_t, const double *block_mass, double point);
/** All tokens that have weight, in order of ids, to `out` (room for n). */
size_t mica_mass_collect(const mica_scan *scan, mica_cand *out);
/** The smallest set of most probable tokens that holds top_p of the vocabulary's mass, to `out` (room for n). */
size_t mica_mass_top_p(const mica_weights *w, const mica_scan *scan, double top_p, mica_cand *out);

/* ---- Filters over candidates (filter.c) ------------------------------------------------------------------------------ */

/** Keeps the first candidates by key, as many as it takes to reach the mass `target`, at least one. n >= 1. */
size_t mica_keep_mass(const mica_weights *w, const mica_scan *scan, mica_cand *c, size_t n, double target);
size_t mica_filter_typical(const mica_weights *w, const mica_scan *scan, double typical_p, mica_cand *c, size_t n);
size_t mica_filter_top_p(const mica_weights *w, const mica_scan *scan, double top_p, mica_cand *c, size_t n);
size_t mica_filter_min_p(double min_p, mica_cand *c, size_t n);
/** Every token at or above best + log(min_p), in order of ids. */
size_t mica_collect_min_p(const mica_scan *scan, double min_p, mica_cand *out);
/** One of c[0..n), with probability in proportion to e^(key / T); u in [0, 1). */
int32_t mica_draw(const mica_weights *w, double inverse_t, const mica_cand *c, size_t n, double u);

/* ---- Edits of the logits (penalties.c, dry.c) ------------------------------------------------------------------------ */

/* Edits keep finite logits finite: only a ban or the model makes a logit -inf. Non-finite ones pass unchanged. */
static inline float mica_edit_logit(float before, double after)
{
    const double limit = 3.4e38; /* just under FLT_MAX */
    if (!(before - before == 0.0f))
        return before;
    return (float)(after > limit ? limit : after < -limit ? -limit : after);
}

/** The last `last_n` (-1: all) of n tokens: how many. */
static inline size_t mica_window(int32_t last_n, size_t n) { return last_n < 0 || (size_t)last_n > n ? n : (size_t)last_n; }

void mica_bias_apply(const mica_logit_bias *bias, size_t n_bias, float *logits);
/** Repetition, frequency and presence penalties. `mark` (one a token id) is all zero before and after. */
void mica_penalties_apply(const mica_sampling *o, const int32_t *history, size_t n, int32_t *mark, float *logits);
/** `mark` as above; z has room for n. */
void mica_dry_apply(const mica_sampling *o, const int32_t *history, size_t n, int32_t *mark, int32_t *z, float *logits);

/* ---- Options (sampler_options.c) ------------------------------------------------------------------------------------- */

mica_status mica_sampling_check(const mica_sampling *o, int32_t n_vocab, mica_error *err);

#endif
