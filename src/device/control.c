#include "device/control.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_S      0.3   /* after a change of threads: caches and clocks */
#define LEAST_TOKENS  4.0   /* of a rate */
#define STOP_PART     0.8   /* learning goes on to fewer cores while the rate is above this part of the best */
#define HEADROOM_C    30.0  /* degrees of a headroom of 1 (mica_device.h) */
#define CHIP_S        30.0  /* for so long the chip's own heat still comes through to the case */
#define TAU_S         180.0 /* time constant of a case; half as much again moves a decision by one level at most */
#define ROOM_C        0.4   /* margin from which a level is taken back that ends below the limit, */
#define MUCH_ROOM_C   0.9   /* and one that does not */
#define FORESEE_S     45.0
#define SURELY_C      4.0   /* beyond the limit */
#define FAR_C         8.0   /* another situation: what could not be kept is tried again */
#define RELEASE_C     2.0   /* a throttled case is let go so far below its limit, or further */
#define FLAT_C_S      0.004 /* slopes below are flat: a tenth of a degree in 25 s, what sensors can tell */
#define SLOW_PART     0.9   /* of its own rate: the machine slows down, though nothing says so */
#define SLOW_END_PART 0.95
/* In trial_s, the time in which a machine answers to another level: */
#define WINDOW        0.5  /* of a rate while a level is held */
#define SLOW_FOR      0.7  /* a rate that is too low so long is no accident */
#define KNOWN_AFTER   10.0 /* what has run so long is the level's rate */
#define LEAST_UP      5.0  /* wait before a level is taken back; doubled when that came too soon, */
#define MOST_UP       40.0
#define SOON          10.0 /* which is when it is given up again within this time */
#define COOLING_FOR   20.0 /* levels are given up for a throttled case to cool; what has not helped by then does not */
#define LEAST_WAIT    3.0  /* between trials; doubled by one that brought nothing */
#define MOST_WAIT     40.0
#define MUCH_BETTER   1.4  /* than what throttling leaves: cooling takes three to five minutes, and pays within ten */
#define LEARN_LIMIT_C 10.0  /* throttling further below the limit has another reason */
#define STEP_S        180.0 /* after which a throttled case is as slow as it gets: steps take 40 s, and a second may follow */
#define BETTER        1.015 /* a trial of more heat is kept if it is so much faster, */
#define AS_GOOD       0.995 /* one of less heat if it is not slower than this */
#define HOT_KEEP      0.94  /* of the best rate, by the level that runs while the machine is throttled */
#define DUTY_STEP     0.25
#define MOST_DUTY     0.75
#define FLOOR_S       20.0 /* below the floor for so long: another model would be better */

/* ---- levels ---- */

static void add_levels(mica_control *c, int32_t n, bool fast)
{
    while (n >= 1 && c->n_levels < MICA_LEVELS) {
        c->levels[c->n_levels++] = fast ? (mica_level){n, 0} : (mica_level){0, n};
        n -= n > 12 ? n / 8 : 1;
    }
}

static bool is_slow(const mica_control *c, int32_t level)
{
    return c->levels[level].n_fast == 0;
}

void mica_control_init(mica_control *c, const mica_policy *policy, int32_t n_fast, int32_t n_slow, int32_t start)
{
    memset(c, 0, sizeof *c);
    c->policy = *policy;
    if (n_slow > 0 && n_fast > 0)
        c->levels[c->n_levels++] = (mica_level){n_fast, n_slow};
    add_levels(c, n_fast, true);
    add_levels(c, n_slow, false);
    c->level = n_slow > 0 && n_fast > 0; /* the fast cores */
    for (int32_t i = 0; i < c->n_levels; i++)
        if (c->levels[i].n_fast >= start && start > 0 && c->levels[i].n_slow == 0)
            c->level = i;
    c->knee = c->level;
    c->objective = policy->objective;
    c->phase = MICA_LEARN;
    c->limit_c = c->margin = c->slope = c->clock_ref = NAN;
    c->up_s = c->trial_s = c->slow_s = c->below_floor_s = c->keep_s = -1;
    c->start_c = c->left = NAN;
    for (int32_t i = 0; i < MICA_LEVELS; i++)
        c->end_c[i] = NAN;
    c->up_wait = LEAST_UP;
    c->trial_wait = LEAST_WAIT;
    c->trial_step = 1;
    c->reason = "as it began";
}

static void empty_window(mica_control *c)
{
    c->tokens = c->busy_s = c->energy_j = 0;
}

static void move(mica_control *c, int32_t level, const char *reason)
{
    if (level == c->level)
        return;
    c->level = level;
    c->changed_s = c->now_s;
    c->settled_s = c->now_s + SETTLE_S;
    c->last_rate = c->step_s = 0;
    c->slow_s = -1;
    c->changes++;
    c->reason = reason;
    empty_window(c);
}

static double best_rate(const mica_control *c)
{
    double best = 0;
    for (int32_t i = c->least_level; i < c->n_levels; i++)
        best = c->rate[i] > best ? c->rate[i] : best;
    return best;
}

/* Power of a level where nobody measures it, in fast cores: the memory and the rest of the machine take about as much as one,
 * efficient cores a third. */
static double usual_power(mica_level level)
{
    return 1.0 + level.n_fast + 0.35 * level.n_slow;
}

/* ---- what is sensed ---- */

static void note_end(mica_control *c);

/* Degrees a second, by least squares; NAN with less than 8 s of samples. */
static double slope_of(const mica_control *c)
{
    double n = c->n_temp, t = 0, x = 0, tt = 0, tx = 0, t0 = c->time[0];
    if (c->n_temp < 4 || c->time[c->n_temp - 1] - t0 < 8)
        return NAN;
    for (int32_t i = 0; i < c->n_temp; i++) {
        double s = c->time[i] - t0;
        t += s;
        x += c->temp[i];
        tt += s * s;
        tx += s * c->temp[i];
    }
    return (n * tx - t * x) / (n * tt - t * t);
}

/* One sample a second. After a change of level the old samples would tell of the old heat. */
static void note_temperature(mica_control *c, double temp)
{
    if (c->n_temp > 0 && c->now_s - c->time[c->n_temp - 1] < 1.0)
        return;
    int32_t drop = c->n_temp == MICA_SLOPE_SAMPLES ? 1 : 0;
    while (drop < c->n_temp && c->time[drop] < c->changed_s)
        drop++;
    c->n_temp -= drop;
    memmove(c->temp, c->temp + drop, (size_t)c->n_temp * sizeof *c->temp);
    memmove(c->time, c->time + drop, (size_t)c->n_temp * sizeof *c->time);
    c->temp[c->n_temp] = temp;
    c->time[c->n_temp++] = c->now_s;
}

static void sense_heat(mica_control *c, const mica_control_input *in)
{
    bool told = !isnan(in->headroom);
    double temp = told ? in->headroom * HEADROOM_C : in->skin_c, limit = told ? HEADROOM_C : c->policy.skin_c;
    c->hard_limit = in->hard_limit;
    if (isnan(temp)) {
        c->n_temp = 0;
        c->margin = c->slope = NAN;
        return;
    }
    note_temperature(c, temp);
    c->slope = slope_of(c);
    if (isnan(c->start_c))
        c->start_c = temp;
    note_end(c);
    if (c->limit_c < limit)
        limit = c->limit_c;
    c->margin = limit - temp - c->policy.margin_c;
}

/* The rate alone: where no sensor tells, or a quota does it. Judged by whole windows at levels whose rate is known; what has
 * run for a minute is known. */
static void sense_slowness(mica_control *c)
{
    double *known = &c->rate[c->level];
    if (c->last_rate <= 0)
        return;
    if (*known <= 0 && c->now_s - c->changed_s > KNOWN_AFTER * c->policy.trial_s)
        *known = c->last_rate;
    if (*known <= 0)
        return;
    bool below = c->last_rate < (c->slow ? SLOW_END_PART : SLOW_PART) * *known;
    if (below == c->slow)
        c->slow_s = -1;
    else if (c->slow_s < 0)
        c->slow_s = c->now_s;
    else if (c->now_s - c->slow_s >= SLOW_FOR * c->policy.trial_s)
        c->slow = below;
}

static void sense_throttling(mica_control *c, const mica_control_input *in)
{
    if (isnan(c->clock_ref) && !in->cooling)
        c->clock_ref = in->clock_limit;
    sense_slowness(c);
    bool clocks = in->cooling || in->clock_limit < 0.95 * c->clock_ref, now = clocks || c->slow;
    if (now == c->throttled)
        return;
    c->throttled = now;
    c->throttled_s = c->now_s;
    empty_window(c);
    bool heat = clocks || isnan(in->clock_limit); /* where clocks are told, slowness alone is another program */
    if (!now || !heat || !c->hard_limit || !(c->slope > 0) || !(c->margin < LEARN_LIMIT_C))
        return;
    double limit = c->temp[c->n_temp - 1]; /* it begins here, whatever was told */
    c->limit_c = isnan(c->limit_c) || limit < c->limit_c ? limit : c->limit_c;
}

static bool window_full(const mica_control *c, double seconds)
{
    return c->busy_s >= seconds && c->tokens >= LEAST_TOKENS;
}

/* What is measured of a level: upwards at once, downwards slowly, as a longer context decodes slower. */
static void note_rate(mica_control *c)
{
    double rate = c->tokens / c->busy_s, *known = &c->rate[c->level];
    c->last_rate = rate;
    if (!c->throttled && (*known <= 0 || rate > SLOW_PART * *known)) {
        *known = *known <= 0 ? rate : *known + (rate - *known) * (rate > *known ? 0.3 : 0.1);
        if (c->energy_j > 0)
            c->joules[c->level] = c->energy_j / c->tokens;
    }
    empty_window(c);
}

static void sense_rate(mica_control *c, const mica_control_input *in)
{
    if (in->steps > 0)
        c->step_s = in->busy_s / in->steps;
    if (!in->same_work || c->now_s < c->settled_s) {
        empty_window(c);
        return;
    }
    c->tokens += in->tokens;
    c->busy_s += in->busy_s;
    c->energy_j += isnan(in->power_w) ? 0 : in->power_w * in->busy_s;
}

/* ---- learning ---- */

/* The next level to try, or -1. In a group of levels (fast, efficient) from the top until the rate is too low. */
static int32_t next_to_learn(const mica_control *c)
{
    bool thrifty = c->objective == MICA_OBJECTIVE_EFFICIENT;
    double enough = best_rate(c) * (thrifty ? c->policy.floor_part : STOP_PART);
    bool stopped = false;
    for (int32_t i = c->least_level; i < c->n_levels; i++) {
        bool slow = is_slow(c, i);
        if (slow && !thrifty)
            break;
        if (i > c->least_level && slow != is_slow(c, i - 1))
            stopped = false;
        if (c->rate[i] > 0)
            stopped = stopped || (c->rate[i] < enough && i > c->least_level);
        else if (!stopped)
            return i;
    }
    return -1;
}

static double joules_of(const mica_control *c, int32_t level, bool measured)
{
    return measured ? c->joules[level] : usual_power(c->levels[level]) / c->rate[level];
}

static int32_t most_efficient(const mica_control *c)
{
    double floor = best_rate(c) * c->policy.floor_part, least = INFINITY;
    int32_t found = c->level;
    bool measured = true;
    floor = c->policy.floor_tps > floor ? c->policy.floor_tps : floor;
    for (int32_t i = c->least_level; i < c->n_levels; i++)
        measured = measured && (c->rate[i] <= 0 || c->joules[i] > 0);
    for (int32_t i = c->least_level; i < c->n_levels; i++) {
        if (c->rate[i] <= 0 || c->rate[i] < floor || joules_of(c, i, measured) >= least)
            continue;
        least = joules_of(c, i, measured);
        found = i;
    }
    return found;
}

static int32_t find_knee(const mica_control *c)
{
    double enough = c->policy.keep * best_rate(c);
    int32_t knee = c->level;
    for (int32_t i = c->least_level; i < c->n_levels; i++)
        if (c->rate[i] > 0 && c->rate[i] >= enough)
            knee = i;
    return knee;
}

static void settle_on_knee(mica_control *c)
{
    bool thrifty = c->objective == MICA_OBJECTIVE_EFFICIENT;
    c->knee = thrifty ? most_efficient(c) : find_knee(c);
    c->phase = MICA_HOLD;
    move(c, c->knee, thrifty ? "fewest joules a token above the floor" : "least heat at nearly the best rate");
}

/* ---- heat ---- */

/* Where the temperature would end at a level, if the case were one node: T + slope * tau. What was not seen is in proportion to
 * the power, above where it all began. */
static double end_of(const mica_control *c, int32_t level)
{
    int32_t near = -1;
    for (int32_t i = 0; i < c->n_levels; i++)
        if (!isnan(c->end_c[i]) && (near < 0 || abs(i - level) < abs(near - level)))
            near = i;
    if (near < 0)
        return NAN;
    double part = usual_power(c->levels[level]) / usual_power(c->levels[near]);
    return c->start_c + (c->end_c[near] - c->start_c) * part;
}

/* Counts when the chip's own heat has come through. */
static void note_end(mica_control *c)
{
    if (!isnan(c->slope) && c->now_s - c->changed_s >= 3 * CHIP_S && !c->throttled && c->duty <= 0)
        c->end_c[c->level] = c->temp[c->n_temp - 1] + c->slope * TAU_S;
}

static double rate_of(const mica_control *c, int32_t level)
{
    double n = c->levels[level].n_fast + 0.4 * c->levels[level].n_slow;
    for (int32_t i = level; i >= 0; i--)
        if (c->rate[i] > 0 && is_slow(c, i) == is_slow(c, level))
            return c->rate[i] * fmin(1, n / (c->levels[i].n_fast + 0.4 * c->levels[i].n_slow));
    return best_rate(c) * fmin(1, n / (c->levels[c->knee].n_fast + 0.4 * c->levels[c->knee].n_slow));
}

/* The first level below this one that ends at `limit` or below; -1: none does. */
static int32_t level_below(const mica_control *c, double limit)
{
    for (int32_t i = c->level + 1; i < c->n_levels; i++)
        if (!(end_of(c, i) > limit))
            return i;
    return -1;
}

/* The rate that the limit allows for ever: of the level that fits, and a part of the one above it. */
static double lasting_rate(const mica_control *c, double limit)
{
    int32_t fits = level_below(c, limit);
    if (fits < 0)
        return 0;
    double low = end_of(c, fits), high = end_of(c, fits - 1);
    if (fits - 1 == c->level) /* or it would not be near */
        high = fmax(high, limit + 1);
    double part = high > limit && low < limit ? (limit - low) / (high - low) : 0;
    return rate_of(c, fits) + part * (rate_of(c, fits - 1) - rate_of(c, fits));
}

/* Whether staying below the limit gives more than what throttling leaves, or is expected to. */
static bool is_worth(const mica_control *c, double limit)
{
    return level_below(c, limit) >= 0 &&
           lasting_rate(c, limit) >= (isnan(c->left) ? c->policy.worth : c->left) * (c->keeps ? 0.7 : 1.0) * best_rate(c);
    /* 0.7: a decision that stays */
}

/* The limit, as note_temperature() counts. */
static double limit_of(const mica_control *c)
{
    return c->temp[c->n_temp - 1] + c->margin;
}

static bool is_near(const mica_control *c)
{
    double ahead = c->slope > 0 ? c->slope * CHIP_S : 0;
    return c->hard_limit && c->margin - ahead < 0;
}

static void learn(mica_control *c)
{
    bool hurry = c->throttled || is_near(c);
    if (!hurry && !window_full(c, c->policy.probe_s))
        return;
    if (!hurry)
        note_rate(c);
    int32_t next = hurry ? -1 : next_to_learn(c);
    if (next >= 0)
        move(c, next, "learning the rates");
    else
        settle_on_knee(c);
}

/* ---- holding ---- */

/* A level is given up: was it taken back too soon? */
static void judge_step_up(mica_control *c)
{
    bool soon = c->now_s - c->up_s < SOON * c->policy.trial_s;
    if (c->up_s >= 0)
        c->up_wait = soon ? fmin(2 * c->up_wait, MOST_UP) : fmax(0.7 * c->up_wait, LEAST_UP);
    c->up_s = -1;
}

/* Gives up heat: levels, then time; or time, where the level below loses more. */
static void step_down(mica_control *c, int32_t to, const char *reason)
{
    bool steep = to == c->level + 1 && rate_of(c, to) < (1 - DUTY_STEP) * rate_of(c, c->level) && c->duty < DUTY_STEP;
    if (to > c->level && !steep) {
        move(c, to, reason);
        c->duty = 0;
    } else if (c->duty < MOST_DUTY) {
        c->duty += DUTY_STEP;
        c->changed_s = c->now_s;
        c->reason = reason;
    }
    judge_step_up(c);
}

static int32_t next_level(const mica_control *c)
{
    return c->level + 1 < c->n_levels ? c->level + 1 : c->level;
}

/* The first level of efficient cores alone; -1: there is none, or there are no others. */
static int32_t efficient_level(const mica_control *c)
{
    for (int32_t i = c->least_level + 1; i < c->n_levels; i++)
        if (is_slow(c, i) && !is_slow(c, i - 1))
            return i;
    return -1;
}

static void step_up(mica_control *c, const char *reason)
{
    c->up_s = c->now_s;
    if (c->duty > 0) {
        c->duty -= DUTY_STEP;
        c->changed_s = c->now_s;
        c->reason = reason;
    } else {
        bool jumped = !c->hard_limit && c->level == efficient_level(c); /* by a trial, from far above */
        move(c, jumped ? c->knee : c->level - 1, reason);
    }
}

static void begin_trial(mica_control *c)
{
    int32_t to = c->level + c->trial_step, slow = efficient_level(c);
    if (slow > c->level && (c->rate[slow] <= 0 || c->rate[slow] > c->last_rate)) {
        to = slow; /* much less heat, for what may be little less speed */
    } else if (to < c->least_level || to >= c->n_levels || (is_slow(c, to) && !is_slow(c, c->level))) {
        c->trial_step = -c->trial_step;
        to = c->level + c->trial_step;
        if (to < c->least_level || to >= c->n_levels)
            return;
    }
    c->trial_base = c->last_rate;
    c->trial_from = c->level;
    c->phase = MICA_TRIAL;
    move(c, to, "trying a neighbour");
    c->settled_s = c->now_s + c->policy.trial_s;
}

static void end_trial(mica_control *c)
{
    if (!window_full(c, c->policy.trial_s))
        return;
    note_rate(c);
    bool less_heat = c->level > c->trial_from;
    bool keep = c->last_rate > c->trial_base * (less_heat ? AS_GOOD : BETTER);
    c->phase = MICA_HOLD;
    c->trial_s = c->now_s;
    if (keep) {
        c->trial_wait = LEAST_WAIT;
        if (less_heat)
            judge_step_up(c);
        if (c->level == efficient_level(c)) /* a step up is a large one: it must last */
            c->up_wait = fmax(c->up_wait, 2 * LEAST_UP);
        return;
    }
    move(c, c->trial_from, "the neighbour was slower");
    c->trial_step = -c->trial_step;
    c->trial_wait = fmin(2 * c->trial_wait, MOST_WAIT);
}

/* Where it goes is known, or must be guessed; at a level that is to fit, the heat of the one before may still be coming
 * through. */
static bool has_dwelt(const mica_control *c)
{
    double here = c->now_s - c->changed_s, least = c->policy.dwell_s;
    if (isnan(c->slope))
        least *= 2;
    if (c->keeps && end_of(c, c->level) <= limit_of(c) && c->margin > -0.4 * c->policy.margin_c)
        least = 2 * CHIP_S;
    return here >= least;
}

static bool may_try(const mica_control *c)
{
    double t = c->policy.trial_s;
    return c->last_rate > 0 && c->now_s - c->changed_s > t && c->now_s - c->throttled_s > t &&
           (c->trial_s < 0 || c->now_s - c->trial_s >= c->trial_wait * t);
}

/* The level with the least heat at a little less than the best rate, for when the knee does not last. */
static int32_t hot_level(const mica_control *c)
{
    double enough = HOT_KEEP * best_rate(c);
    int32_t found = c->knee;
    for (int32_t i = c->knee; i < c->n_levels; i++)
        if (c->rate[i] > 0 && c->rate[i] >= enough)
            found = i;
    return found;
}

/* Long before the limit is near it may be clear that it will be. */
static bool foresees(mica_control *c)
{
    bool known = c->hard_limit && !isnan(c->slope) && c->now_s - c->changed_s >= FORESEE_S && c->level == c->knee;
    if (!known || c->temp[c->n_temp - 1] + c->slope * TAU_S <= limit_of(c) + SURELY_C || hot_level(c) == c->level)
        return false;
    c->knee = hot_level(c);
    move(c, c->knee, "this would not last");
    return true;
}

/* The step cannot be avoided, or not at a price that is worth it: let it come. */
static void let_it_come(mica_control *c, const char *reason)
{
    c->duty = 0;
    c->keeps = false;
    if (c->cooling != MICA_COOL_NO)
        move(c, hot_level(c), reason);
    c->cooling = MICA_COOL_NO;
}

/* Throttled by the case: a level that lets it cool is taken, if there is one, and time to do so. Else the rate decides. */
static bool waits_to_cool(mica_control *c)
{
    if (!c->hard_limit || isnan(c->margin) || c->cooling == MICA_COOL_NO)
        return false;
    double limit = limit_of(c) - RELEASE_C;
    if (c->cooling == MICA_COOL_NEW && is_worth(c, limit)) {
        c->cooling = MICA_COOL_YES;
        move(c, level_below(c, limit), "cooling down, to be let go");
    } else if (c->cooling == MICA_COOL_NEW || (c->now_s - c->changed_s > COOLING_FOR * c->policy.trial_s &&
                                               !(c->slope < -FLAT_C_S && !isnan(c->left)))) {
        let_it_come(c, "it cannot cool: the fastest, then");
    }
    return c->cooling == MICA_COOL_YES;
}

static void stay_below(mica_control *c)
{
    double limit = limit_of(c);
    if (isnan(end_of(c, c->level))) /* a hot day: the limit was near before a slope counted */
        c->end_c[c->level] = c->temp[c->n_temp - 1] + c->slope * TAU_S;
    int32_t to = c->up_s >= 0 ? next_level(c) : level_below(c, limit); /* the level that was left */
    if (!is_worth(c, limit) && c->duty <= 0)
        let_it_come(c, "the limit cannot be kept");
    if (c->cooling == MICA_COOL_NO)
        return;
    if (!c->keeps)
        c->keep_s = c->now_s;
    c->keeps = true;
    if (to > c->level + 1 && c->margin > MUCH_ROOM_C) /* there is time for the level above */
        to--;
    step_down(c, to < 0 ? next_level(c) : to, "the limit is near");
}

static void take_back(mica_control *c)
{
    double here = c->now_s - c->changed_s;
    bool warm = c->hard_limit && !isnan(c->margin);
    if ((c->level <= c->knee && c->duty <= 0) || here < c->up_wait * c->policy.trial_s)
        return;
    if (!warm) {
        step_up(c, "as fast again");
        return;
    }
    if (isnan(c->slope) || c->slope > FLAT_C_S || !(c->margin > ROOM_C))
        return;
    double end = c->duty > 0 ? NAN : end_of(c, c->level - 1);
    if (end <= limit_of(c) || c->margin > MUCH_ROOM_C)
        step_up(c, "there is room again");
}

/* What throttling leaves is not known before it is seen, and seeing it costs minutes: so it is seen once, where the limit
 * allows no more than it may leave, and late. */
static bool explores(mica_control *c)
{
    bool due = c->keep_s >= 0 && c->now_s - c->keep_s >= c->policy.explore_s && isnan(c->left);
    if (!c->keeps || !due || lasting_rate(c, limit_of(c)) >= c->policy.surely * best_rate(c))
        return false;
    c->keep_s = -1;
    let_it_come(c, "to see what throttling leaves");
    return true;
}

static void note_left(mica_control *c)
{
    bool settled = c->hard_limit && c->now_s - c->throttled_s >= STEP_S && c->now_s - c->changed_s >= STEP_S / 2;
    if (!isnan(c->left) || !settled || c->last_rate <= 0 || best_rate(c) <= 0)
        return;
    c->left = c->last_rate / best_rate(c);
    if (lasting_rate(c, limit_of(c) - RELEASE_C) >= MUCH_BETTER * c->last_rate) /* back below it, then */
        c->cooling = MICA_COOL_NEW;
}

static void hold(mica_control *c)
{
    if (window_full(c, WINDOW * c->policy.trial_s))
        note_rate(c);
    if (c->throttled) {
        note_left(c);
        if (!waits_to_cool(c) && !c->hard_limit && may_try(c)) /* what is faster now only gets hotter there */
            begin_trial(c);
        return;
    }
    if (c->margin > FAR_C || c->cooling == MICA_COOL_YES)
        c->cooling = MICA_COOL_NEW;
    if (explores(c))
        return;
    if (!is_near(c)) {
        if (!foresees(c))
            take_back(c);
        return;
    }
    if (has_dwelt(c) && !(c->slope < -FLAT_C_S)) /* else it cools already */
        stay_below(c);
}

/* ---- objectives ---- */

static mica_objective objective_of(const mica_control *c, const mica_control_input *in)
{
    bool low = (in->on_battery && in->battery < c->policy.battery_low) || in->power_save;
    return low && c->policy.objective != MICA_OBJECTIVE_OFF ? c->policy.battery_objective : c->policy.objective;
}

static void obey_status(mica_control *c, mica_thermal_status status)
{
    if (status >= MICA_THERMAL_CRITICAL && c->duty < 2 * DUTY_STEP) {
        c->phase = MICA_HOLD;
        move(c, c->n_levels - 1, "the device reports a critical heat");
        c->duty = 2 * DUTY_STEP;
    } else if (status >= MICA_THERMAL_SEVERE && c->now_s - c->changed_s >= c->policy.dwell_s) {
        c->phase = MICA_HOLD;
        step_down(c, next_level(c), "the device reports a severe heat");
    }
}

static void control(mica_control *c, const mica_control_input *in)
{
    mica_objective wanted = objective_of(c, in);
    if (wanted != c->objective) {
        c->objective = wanted;
        c->phase = MICA_LEARN;
        empty_window(c);
    }
    if (c->objective == MICA_OBJECTIVE_OFF || (c->objective == MICA_OBJECTIVE_BURST && in->status < MICA_THERMAL_CRITICAL)) {
        c->duty = 0;
        return;
    }
    if (in->status >= MICA_THERMAL_SEVERE)
        obey_status(c, in->status);
    else if (c->phase == MICA_LEARN)
        learn(c);
    else if (c->phase == MICA_TRIAL)
        end_trial(c);
    else
        hold(c);
}

static bool is_below_floor(mica_control *c)
{
    bool below = c->policy.floor_tps > 0 && c->last_rate > 0 && c->last_rate * (1 - c->duty) < c->policy.floor_tps;
    if (!below)
        c->below_floor_s = -1;
    else if (c->below_floor_s < 0)
        c->below_floor_s = c->now_s;
    return below && c->now_s - c->below_floor_s >= FLOOR_S;
}

static int32_t least_of(int32_t a, int32_t b)
{
    return a < 0 ? b : b < 0 || a < b ? a : b;
}

static void fill_output(mica_control *c, mica_thermal_status status, mica_governor_output *out)
{
    const mica_policy *p = &c->policy;
    bool severe = status >= MICA_THERMAL_SEVERE;
    bool hot = severe || (c->hard_limit && (c->throttled || c->margin < 1.5));
    bool off = c->objective == MICA_OBJECTIVE_OFF;
    *out = (mica_governor_output){
        .n_fast = c->levels[c->level].n_fast,
        .n_slow = c->levels[c->level].n_slow,
        .draft_max = -1,
        .max_tokens = severe ? least_of(p->max_tokens, p->severe_max_tokens) : p->max_tokens,
        .refuse_above = severe ? p->severe_refuse : -1,
        .pause_us = off ? 0 : p->yield_us,
        .lower_rung = severe || is_below_floor(c),
    };
    if (off) {
        out->n_fast = out->n_slow = 0;
        return;
    }
    if (c->duty > 0)
        out->pause_us += (int32_t)fmin(1e6, 1e6 * c->step_s * c->duty / (1 - c->duty));
    out->prefill_chunk = hot ? p->hot_chunk : 0;
    out->draft_max = hot || c->objective == MICA_OBJECTIVE_EFFICIENT ? p->hot_draft : -1;
}

bool mica_control_step(mica_control *c, const mica_control_input *in, mica_governor_output *out)
{
    int64_t before = c->changes;
    c->now_s = in->now_s;
    sense_heat(c, in);
    sense_rate(c, in);
    sense_throttling(c, in);
    control(c, in);
    fill_output(c, in->status, out);
    return c->changes != before;
}
