/* eval_score.h - how good the results of a task are against a labelled set. Called by cmd_eval.c.
 *
 * What an item must have besides "input" (and "suffix"), and when it counts as right:
 *   classify, route  "label"     the same label
 *   extract          "data"      every field of it has the same value in the result
 *   redact           "spans"     [{"start", "end", "type"}] in bytes: exactly these were found
 *   summarise        "facts"     [[TEXT, ...], ...]: the share of lists of which the summary has one text, in any
 *                                letter case
 *   complete         "expected"  the completion begins with it
 */
#ifndef MICA_PROGRAMS_EVAL_SCORE_H
#define MICA_PROGRAMS_EVAL_SCORE_H
#include <jansson.h>

#include "mica/mica_tasks.h"

/* Right and wrong answers of a class: a label, a field, a type. */
typedef struct mica_eval_class {
    char *name;
    int64_t hits, wrong, missed; /* true positives, false positives, false negatives */
} mica_eval_class;

typedef struct mica_eval_score {
    mica_eval_class *classes;
    size_t n_classes;
    int64_t n;                 /* items */
    double right;              /* sum of 0 to 1 an item */
    int64_t bounded;           /* summarise: summaries within max_sentences that max_tokens did not cut */
    double words, input_words; /* summarise: sums */
    double *ms;                /* [n] */
    bool failed;               /* no memory */
} mica_eval_score;

/** Adds an item and its result. False: the item lacks what its kind must have; *missing names it. */
bool mica_eval_add(mica_eval_score *s, mica_task_kind kind, const json_t *item, const json_t *result, double ms,
                   const char **missing);
void mica_eval_free(mica_eval_score *s);

double mica_eval_precision(const mica_eval_class *c);
double mica_eval_recall(const mica_eval_class *c);
double mica_eval_f1(const mica_eval_class *c);
/** The classes' sums as one. */
mica_eval_class mica_eval_total(const mica_eval_score *s);
/** The time that the share `q` of items needed at most. Sorts the times. */
double mica_eval_quantile(mica_eval_score *s, double q);

#endif
