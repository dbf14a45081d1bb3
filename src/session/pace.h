/* pace.h - how long a draft pays: what a step costs by its number of tokens, measured, and how often each source of drafts is
 * right, counted. Decides only how fast a reply comes, never what it says. Called by speculate.c; no state but the struct.
 *
 * A step of 1 + k tokens of which each is right with probability p gives 1 + p + p^2 + ... + p^k tokens; it is worth while if
 * that is more than its cost in steps of one token. Costs are kept for steps of 1, 2, 4, ... 64 tokens, and drafts are as long
 * as such steps want, because the kernels work on groups of tokens.
 */
#ifndef MICA_SESSION_PACE_H
#define MICA_SESSION_PACE_H
#include <stdbool.h>
#include <stdint.h>

#define MICA_PACE_LEVELS 7  /* steps of 2^level tokens */
#define MICA_PACE_SOURCES 5 /* lookups by length of the match: 2, 3.., 6.., 12..; the draft model */
#define MICA_PACE_MODEL 4

typedef struct mica_pace {
    double step_ns;                    /* of one token; 0: not known yet */
    double relative[MICA_PACE_LEVELS]; /* cost of a step, in steps of one token */
    double draft;                      /* of a token of the draft model, likewise */
    double hits[MICA_PACE_SOURCES], trials[MICA_PACE_SOURCES];
} mica_pace;

/** Usual costs and chances; `draft` is the size of the draft model in parts of the model's. */
void mica_pace_init(mica_pace *p, double draft);

/** Before a reply: what is known of the chances counts half as much as it did, as the text is another one. */
void mica_pace_start(mica_pace *p);

/** The source that a lookup with a match of this many tokens counts as. */
int mica_pace_source(int32_t match);

/** Tokens to draft, at most `room`; 0: plain decoding is faster. */
int32_t mica_pace_choose(const mica_pace *p, int source, int32_t room);

/** A step of n tokens took so long; n tokens of the draft model did. */
void mica_pace_step(mica_pace *p, int32_t n, int64_t ns);
void mica_pace_drafted(mica_pace *p, int32_t n, int64_t ns);

/** Of a draft, `right` tokens were, one after another; `wrong`: the next one was not. */
void mica_pace_judge(mica_pace *p, int source, int32_t right, bool wrong);

#endif
