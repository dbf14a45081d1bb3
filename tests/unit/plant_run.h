/* plant_run.h - ten minutes on a simulated machine: with fixed cores, by a schedule, by a thermostat that knows the limit, and
 * with the governor's own rules (device/control.h), which know none of the parameters. */
#ifndef MICA_TESTS_PLANT_RUN_H
#define MICA_TESTS_PLANT_RUN_H
#include "device/control.h"
#include "plant.h"

#define PLANT_RUN_S 600

/* What is taken away from the governor. */
enum {
    NO_HEADROOM = 1 << 0, /* the distance to the limit is not told: only the temperature */
    NO_SKIN = 1 << 1,     /* nor that */
    NO_CLOCK = 1 << 2,    /* nor clocks and cooling */
    NO_RATE = 1 << 3,     /* the token rate */
    NO_POWER = 1 << 4,    /* power is not measured */
    NO_THREADS = 1 << 5,  /* threads stay */
    NO_SLOW = 1 << 6,     /* efficient cores are not used */
    NO_PAUSE = 1 << 7,
    NO_SLOPE = 1 << 8, /* the temperature, but not where it goes */
};

typedef struct plant_result {
    double tokens, joules, throttled_s, case_c; /* case_c: the highest */
    int64_t changes;
} plant_result;

static inline void plant_note(plant_result *r, const plant *p, double seconds)
{
    r->tokens++;
    r->joules = p->joules;
    r->throttled_s += p->cap < 0.97 ? seconds : 0;
    r->case_c = p->case_c > r->case_c ? p->case_c : r->case_c;
}

/* Level a until t1, then b. */
static inline plant_result plant_scheduled(const plant_set *s, double ambient, mica_level a, double t1, mica_level b)
{
    plant p;
    plant_result r = {.tokens = 0};
    plant_init(&p, s, ambient);
    while (p.now_s < PLANT_RUN_S) {
        mica_level l = p.now_s < t1 ? a : b;
        double before = p.now_s;
        plant_token(&p, l.n_fast, l.n_slow, 0);
        plant_note(&r, &p, p.now_s - before);
    }
    return r;
}

static inline plant_result plant_fixed(const plant_set *s, double ambient, mica_level l)
{
    return plant_scheduled(s, ambient, l, 0, l);
}

/* Level a below the limit, b from 0.1 degrees below it until it is 0.3 below. */
static inline plant_result plant_thermostat(const plant_set *s, double ambient, mica_level a, mica_level b)
{
    plant p;
    plant_result r = {.tokens = 0};
    bool hot = false;
    plant_init(&p, s, ambient);
    while (p.now_s < PLANT_RUN_S) {
        double before = p.now_s, limit = s->style == PLANT_STEP ? p.case_c - s->trip_c : p.chip_c - s->trip_c;
        hot = limit > (hot ? -0.3 : -0.1);
        mica_level l = hot ? b : a;
        plant_token(&p, l.n_fast, l.n_slow, 0);
        plant_note(&r, &p, p.now_s - before);
    }
    return r;
}

/* What a phone tells has steps of a tenth of a degree; trip points are told, of the case of a phone, of the chip elsewhere. */
static inline void plant_sense(plant *p, unsigned without, mica_control_input *in)
{
    const plant_set *s = &p->set;
    bool phone = s->style == PLANT_STEP, heat = phone || s->style == PLANT_CLOCK;
    double skin = round(10 * (p->case_c + 0.05 * plant_noise(p))) / 10, chip = round(p->chip_c);
    *in = (mica_control_input){.now_s = p->now_s,
                               .same_work = true,
                               .skin_c = NAN,
                               .headroom = NAN,
                               .clock_limit = NAN,
                               .status = MICA_THERMAL_UNKNOWN,
                               .power_w = NAN,
                               .battery = NAN,
                               .hard_limit = phone};
    if (phone && !(without & NO_SKIN))
        in->skin_c = skin;
    if (heat && !(without & (NO_HEADROOM | NO_SKIN)))
        in->headroom = 1 + ((phone ? skin : chip) - s->trip_c) / 30;
    in->hard_limit = phone && !(without & NO_SKIN);
    if (!(without & NO_CLOCK)) {
        in->clock_limit = s->style == PLANT_LIMIT ? NAN : p->cap; /* a power limit does not show there */
        in->cooling = s->style != PLANT_LIMIT && p->cap < 0.97;
    }
}

/* `told` may be NULL: gets every decision that changed something. */
static inline plant_result plant_governed_for(double seconds, const plant_set *s, double ambient, const mica_policy *policy,
                                              unsigned without, void (*told)(const plant *p, const mica_control *c))
{
    plant p;
    mica_control c;
    mica_governor_output out;
    mica_control_input in;
    plant_result r = {.tokens = 0};
    double due = 0, tokens = 0, busy = 0, joules = 0, since = 0;
    plant_init(&p, s, ambient);
    mica_control_init(&c, policy, s->n_fast, without & NO_SLOW ? 0 : s->n_slow, 0);
    plant_sense(&p, without, &in);
    mica_control_step(&c, &in, &out);
    while (p.now_s < seconds) {
        double before = p.now_s;
        bool stay = without & NO_THREADS;
        busy +=
            plant_token(&p, stay ? s->n_fast : out.n_fast, stay ? 0 : out.n_slow, without & NO_PAUSE ? 0 : out.pause_us * 1e-6);
        tokens++;
        plant_note(&r, &p, p.now_s - before);
        if (p.now_s < due)
            continue;
        plant_sense(&p, without, &in);
        in.tokens = in.steps = without & NO_RATE ? 0 : tokens;
        in.busy_s = without & NO_RATE ? 0 : busy;
        in.power_w = without & NO_POWER ? NAN : (p.joules - joules) / (p.now_s - since);
        if (without & NO_SLOPE)
            c.n_temp = 0; /* no sample before this one */
        double duty = c.duty;
        if ((mica_control_step(&c, &in, &out) || c.duty != duty) && told)
            told(&p, &c);
        due = p.now_s + policy->period_s;
        tokens = busy = 0;
        joules = p.joules;
        since = p.now_s;
    }
    r.changes = c.changes;
    return r;
}

static inline plant_result plant_governed(const plant_set *s, double ambient, const mica_policy *policy, unsigned without,
                                          void (*told)(const plant *p, const mica_control *c))
{
    return plant_governed_for(PLANT_RUN_S, s, ambient, policy, without, told);
}

/* ---- the best of what knows everything ---- */

/* All levels that the governor has. */
static inline int32_t plant_levels(const plant_set *s, mica_level levels[MICA_LEVELS])
{
    mica_control c;
    mica_policy policy;
    mica_policy_init(&policy, MICA_OBJECTIVE_SUSTAINED);
    mica_control_init(&c, &policy, s->n_fast, s->n_slow, 0);
    memcpy(levels, c.levels, sizeof c.levels);
    return c.n_levels;
}

static inline double plant_best_fixed(const plant_set *s, double ambient, mica_level *which)
{
    mica_level levels[MICA_LEVELS];
    double best = 0;
    for (int32_t i = 0, n = plant_levels(s, levels); i < n; i++) {
        double tokens = plant_fixed(s, ambient, levels[i]).tokens;
        if (tokens > best && which)
            *which = levels[i];
        best = tokens > best ? tokens : best;
    }
    return best;
}

/* Fixed, two levels with a change at any of twelve times, and thermostats between any two levels. */
static inline double plant_oracle(const plant_set *s, double ambient)
{
    mica_level l[MICA_LEVELS];
    int32_t n = plant_levels(s, l);
    double best = plant_best_fixed(s, ambient, NULL);
    for (int32_t a = 0; a < n; a++) {
        for (int32_t b = a + 1; b < n; b++) {
            for (double t = 30; t < PLANT_RUN_S; t += 50)
                best = fmax(best, plant_scheduled(s, ambient, l[a], t, l[b]).tokens);
            if (s->style == PLANT_STEP || s->style == PLANT_CLOCK)
                best = fmax(best, plant_thermostat(s, ambient, l[a], l[b]).tokens);
        }
    }
    return best;
}

/* ---- what it costs to see what throttling leaves ---- */

/* Fast cores `first` until the step has come and is 40 s old; `cool` cores with a pause after each token until the machine lets
 * go; then a thermostat between `high` and `low` below the limit, and `first` while it is cool. 0: the step never came. */
static inline double plant_seen(const plant_set *s, double ambient, int first, int cool, double pause_s, int high, int low)
{
    plant p;
    double tokens = 0, since = -1;
    bool released = false, hot = false;
    plant_init(&p, s, ambient);
    while (p.now_s < PLANT_RUN_S) {
        double limit = p.case_c - s->trip_c;
        since = since < 0 && p.latched ? p.now_s : since;
        released = released || (since >= 0 && !p.latched);
        bool cooling = since >= 0 && !released && p.now_s - since >= 40;
        hot = limit > (hot ? -0.6 : -0.4);
        int n = cooling ? cool : !released || limit < -0.8 ? first : hot ? low : high;
        plant_token(&p, n, 0, cooling ? pause_s : 0);
        tokens++;
    }
    return since < 0 ? 0 : tokens;
}

/* The best of these: what somebody gets at most who lets the step come to see it, and knows everything from then on. */
static inline double plant_best_seen(const plant_set *s, double ambient)
{
    double best = 0;
    for (int first = 2; first <= s->n_fast; first++)
        for (int cool = 1; cool <= s->n_fast; cool++)
            for (int pause = 0; pause < 3; pause++)
                for (int high = 2; high <= 4; high++)
                    for (int low = 1; low < high; low++)
                        best = fmax(best, plant_seen(s, ambient, first, cool, 0.1 * pause, high, low));
    return best;
}

#endif
