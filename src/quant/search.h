/* search.h - how encoders choose scales, mins and levels. Called by NAME.c of this folder only.
 *
 * A quantised group is x[i] ~ scale * level[i] + offset, the levels being integers of a fixed set. The search minimises
 *
 *     sum_i w[i] * (x[i] - scale * level[i] - offset)^2
 *
 * with w = importance, or 1 for all without it. Two facts make that cheap: for given levels the best scale and offset are a
 * linear least-squares solution, and for a given scale and offset the best levels are the nearest ones. So a set of start
 * scales is tried, and from the best one the two steps alternate until nothing changes (Lloyd's method for scalar quantisers).
 *
 * Super-blocks (search_super.c) then round the scales and offsets of the groups to small integers times two halves d and m, and
 * repeat the same alternation one storey up: integers given d and m, then d and m given the integers.
 *
 * All inputs give a valid block. Weights that are not finite, or exceed what a half can scale, give unspecified levels.
 */
#ifndef MICA_QUANT_SEARCH_H
#define MICA_QUANT_SEARCH_H
#include "quant/quant.h"

/** What a format can express. */
typedef struct mica_search_shape {
    const int8_t *table;    /* the levels, ascending; NULL: level_lo, level_lo + 1, ... */
    int level_lo, n_levels; /* lowest level and number of levels, 4..255; with a table 16 */
    int group;              /* weights that share a scale: 16 or 32 */
    int scale_lo, scale_hi; /* range of the integer sub-scales of a super-block, scale_lo <= 0 */
    int min_hi;             /* sub-mins are 0..min_hi and stand for an offset <= 0; 0: no mins, the offset is 0 */
    /* Start scales: the extreme of x is put start_lo..start_hi beyond the end of the levels, in units of levels (in a search
     * with an offset: the range of x is spread over as much more than the range of levels). Measured on Gaussian weights:
     * half the step lowers the error by less than 1.7 % and takes up to twice the time. */
    float start_lo, start_hi, start_step;
} mica_search_shape;

/** 256 weights of a format with sub-scales. out->m <= 0 unless it is 0. */
void mica_search_super(const mica_search_shape *shape, const float *x, const float *importance, mica_block_ints *out);

/** 32 weights with one scale, offset 0: fills d, q, and scale and min with 1 and 0. */
void mica_search_scaled(const mica_search_shape *shape, const float *x, const float *importance, mica_block_ints *out);

/** 32 weights with one scale and one offset of any sign: fills d, m, q, and scale and min with 1. */
void mica_search_offset(const mica_search_shape *shape, const float *x, const float *importance, mica_block_ints *out);

/* ---- Parts, shared by search.c and search_super.c ---------------------------------------------------------------------- */

typedef struct mica_search_fit {
    float scale, offset;
} mica_search_fit;

/** Four lanes, as every processor has them; an extension of C that gcc and clang have. Each lane sums for itself, and lanes are added
 * in one fixed order: the same weights give the same blocks everywhere. */
typedef float mica_lanes __attribute__((vector_size(16)));
enum { MICA_LANES = 4 };

/** One group as the search sees it: n = shape->group weights, in units of the whole block (mica_search_load), so that sums of floats
 * are exact enough whatever the weights' size. What does not depend on levels is summed once. */
typedef struct mica_search_group {
    mica_lanes x[8], w[8];
    float sum_w, sum_x, sum_xx; /* of w, w x, w x^2 */
} mica_search_group;

/** Copies n weights to n / shape->group groups, divided by a power of two that makes the largest about 1, which is returned. An
 * importance is divided by its mean, and raised to at least a millionth, so that weights that do not count are still encoded sensibly;
 * one that is all zero, or not finite, is as none. */
double mica_search_load(const mica_search_shape *shape, const float *x, const float *importance, int n,
                        mica_search_group *groups);

/** Best real scale with offset 0, of either sign. */
mica_search_fit mica_search_fit_scale(const mica_search_shape *shape, const mica_search_group *group);
/** Best real scale >= 0 and offset; the offset is at most 0 unless `any_sign`. */
mica_search_fit mica_search_fit_offset(const mica_search_shape *shape, const mica_search_group *group, bool any_sign);

/** Weighted squared error of the group with the nearest levels. */
float mica_search_error(const mica_search_shape *shape, const mica_search_group *group, mica_search_fit fit);
/** The nearest levels. */
void mica_search_levels(const mica_search_shape *shape, const mica_search_group *group, mica_search_fit fit, int8_t *q);

/** Rounded to a half, but a finite one, and not 0 unless x is 0 (a scale of 0 would lose the whole block). */
float mica_search_half(double x);

/* ---- The simple rules that formats of 32 weights use without importance, exactly as the reference encoder -------------- */

/** The first of the n weights with the largest magnitude, with its sign. */
float mica_search_largest(const float *x, int n);
/** Smallest and largest of n weights. */
void mica_search_range(const float *x, int n, float *lo, float *hi);
/** v without its fraction, as an integer of 0..hi; 0 for NaN. */
int mica_search_level(float v, int hi);

#endif
