/* control.h - the governor's rules: a state machine without a clock, a file or memory of its own, so that the same inputs give
 * the same outputs anywhere, tests with simulated machines among them. Called by governor.c; bench/governor and the tests call
 * it too.
 *
 * A *level* is a set of cores: all of them, the fast ones from all to one, the efficient ones. The higher its number, the less
 * heat. mica_control_step() takes what happened since the step before and says which level runs next:
 *
 *  learn    cold, each level from the top is tried for a second or two until the rate falls: decoding is limited by memory, so
 *           the last cores bring little and heat as much as the first. The level with the least heat that keeps `keep` of the
 *           best rate is the *knee*, and runs.
 *  margin   where a limit of the case is near (phones answer with a step that lasts for minutes), levels are given up before it
 *           is reached, and taken back when there is room. A step up that came too soon doubles the wait before the next one.
 *  trial    where the machine slows its clocks by itself, a neighbouring level, or the efficient cores, is tried and kept if
 *           it is faster.
 *
 * Invariants
 *  1. 0 <= level < n_levels; every output is within policy and limits.
 *  2. Learning takes at most n_levels + 1 changes in a row. After that a level that is given up for heat has run for `dwell_s`, one
 *     that is taken back was away for 5 `trial_s` or more, and a trial takes 2 `trial_s`.
 *  3. Nothing is computed between decisions but two sums; a decision is some hundred operations. */
#ifndef MICA_DEVICE_CONTROL_H
#define MICA_DEVICE_CONTROL_H
#include "mica/mica_governor.h"

#define MICA_LEVELS        32 /* sets of cores; of many cores not every number is a level */
#define MICA_SLOPE_SAMPLES 24 /* temperatures of the last half minute */

/** A policy: docs/governor.md has the fields. */
typedef struct mica_policy {
    char name[48];
    mica_objective objective;
    double period_s;    /* between decisions */
    double probe_s;     /* for a rate that counts */
    double keep;        /* of the best rate, at the knee */
    double dwell_s;     /* at a level before it is given up */
    double trial_s;     /* in which the machine answers to another level: what is judged by the rate alone waits so long, and
                           measures so long */
    double margin_c;    /* kept below the limit */
    double worth;       /* of the best rate: slower levels are no way to avoid throttling, */
    double surely;      /* and what is always one. Between the two */
    double explore_s;   /* a limit is kept for so long, then let go once, to see what throttling leaves */
    double skin_c;      /* limit of the case where the machine tells none */
    double floor_part;  /* efficient: of the best rate; */
    double floor_tps;   /* and in tokens a second. Below it a lower rung is wished for */
    double battery_low; /* 0..1; below it, and without external power: */
    mica_objective battery_objective;
    int32_t max_tokens;        /* cap on replies; -1: none */
    int32_t severe_max_tokens; /* the same from SEVERE on */
    int32_t severe_refuse;     /* from SEVERE on, replies that may be longer are refused; -1: none */
    int32_t yield_us;          /* pause after each step */
    int32_t hot_chunk;         /* prefill chunk near the limit; 0: as ever */
    int32_t hot_draft;         /* longest draft near the limit, and of `efficient`; -1: as ever */
} mica_policy;

/** The usual policy of an objective. */
void mica_policy_init(mica_policy *policy, mica_objective objective);
/** Reads JSON over the usual policy of the objective that it names (policy.c). */
mica_status mica_policy_parse(mica_policy *policy, const char *json, size_t length, mica_error *err);

typedef struct mica_level {
    int32_t n_fast, n_slow;
} mica_level;

/** What is known at a decision. Unknown: NAN, or MICA_UNKNOWN. */
typedef struct mica_control_input {
    double now_s;
    double tokens, steps, busy_s; /* since the last decision: decoded, in so many steps, which took so long without pauses */
    bool same_work;               /* all steps were of one kind, that of the decision before: rates can be compared */
    double skin_c, headroom;
    bool hard_limit;    /* the limit is of the case: crossing it costs minutes */
    double clock_limit; /* 0..1 */
    bool cooling;       /* a cooling device works, a counter of throttling grew, or the app reported MODERATE */
    mica_thermal_status status;
    double power_w; /* of the device; NAN: unknown */
    double battery; /* 0..1 */
    bool on_battery, power_save;
} mica_control_input;

/** Of a throttled case: not asked yet whether it may cool, it may, it may not. */
typedef enum mica_cooling { MICA_COOL_NEW, MICA_COOL_YES, MICA_COOL_NO } mica_cooling;

typedef enum mica_control_phase { MICA_LEARN, MICA_HOLD, MICA_TRIAL } mica_control_phase;

typedef struct mica_control {
    mica_policy policy;
    mica_level levels[MICA_LEVELS];
    int32_t n_levels, least_level; /* levels [least_level, n_levels) may be used */
    mica_objective objective;      /* in force */
    mica_control_phase phase;
    int32_t level, knee;
    double rate[MICA_LEVELS];   /* tokens a second without throttling; 0: not measured */
    double joules[MICA_LEVELS]; /* a token; 0: not measured */
    double duty;                /* part of the time that is paused, beyond the last level */

    double now_s, changed_s, settled_s; /* when the level changed; since when its rate counts */
    double tokens, busy_s, energy_j;    /* of the window that is being measured */
    double last_rate;                   /* of a whole window at this level; 0: none */
    double step_s;                      /* of a step, the last ones; 0: unknown */

    double temp[MICA_SLOPE_SAMPLES], time[MICA_SLOPE_SAMPLES];
    int32_t n_temp;
    double limit_c;                   /* learned: where it throttled; NAN */
    double margin, slope;             /* degrees to the limit, less margin_c; degrees a second; NAN: unknown */
    double end_c[MICA_LEVELS]; /* where the temperature would end; NAN: not seen */
    double start_c;            /* where it began */
    bool keeps;                /* the limit is being kept, */
    double keep_s;             /* since when; < 0: it is not, or was let go already to see */
    double left;               /* what throttling leaves of the best rate; NAN: not seen */
    mica_cooling cooling;
    double clock_ref;                 /* clock limit at first; NAN */
    bool throttled, hard_limit, slow; /* slow: by the rate alone */
    double throttled_s;               /* since when, or since when not */
    double slow_s;                    /* since when the rate contradicts `slow`; < 0: it does not */

    double up_wait, up_s;       /* wait before a step up, in policy.trial_s; when the last one was; < 0: none */
    double trial_wait, trial_s; /* the same of trials */
    double trial_base;          /* rate before it */
    int32_t trial_from, trial_step;
    double below_floor_s; /* since when the rate is below the floor; < 0: it is not */
    int64_t changes;
    const char *reason;
} mica_control;

/** `n_fast` and `n_slow` cores; `start`: fast cores to begin with, 0: all of them. */
void mica_control_init(mica_control *c, const mica_policy *policy, int32_t n_fast, int32_t n_slow, int32_t start);

/** One decision. *out is complete in any case; true if the level changed. */
bool mica_control_step(mica_control *c, const mica_control_input *in, mica_governor_output *out);

#endif
