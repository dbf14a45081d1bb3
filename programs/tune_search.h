/* tune_search.h - which set of cores decodes fastest: a search that measures few of many. Knows no clock and no model: the
 * caller measures what it asks for. Called by cmd_tune.c, and by its test with simulated machines.
 *
 *     mica_tune_init(&t, levels, n);
 *     for (int32_t level; (level = mica_tune_next(&t)) >= 0;)
 *         mica_tune_note(&t, level, measure(level));
 *     best = mica_tune_best(&t);  chosen = mica_tune_chosen(&t);
 *
 * Within a kind of cores the rate rises with their number and then falls, so the search halves the gap around the best; what is
 * close to the best is measured again. Other programs only ever slow a measurement, so the fastest of a level's counts. */
#ifndef MICA_PROGRAMS_TUNE_SEARCH_H
#define MICA_PROGRAMS_TUNE_SEARCH_H
#include "device/control.h"

#define MICA_TUNE_KEEP 0.98 /* of the best rate, by the level with the least heat */

typedef struct mica_tune {
    const mica_level *levels; /* borrowed */
    int32_t n;
    double rate[MICA_LEVELS]; /* 0: not measured */
    int32_t probes[MICA_LEVELS];
} mica_tune;

void mica_tune_init(mica_tune *t, const mica_level *levels, int32_t n);
/** The level to measure next; -1: no more is needed. */
int32_t mica_tune_next(const mica_tune *t);
void mica_tune_note(mica_tune *t, int32_t level, double rate);

/** The fastest, and the one with the least heat that is nearly as fast. Both were measured. */
int32_t mica_tune_best(const mica_tune *t);
int32_t mica_tune_chosen(const mica_tune *t);

#endif
