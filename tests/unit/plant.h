/* plant.h - a simulated machine for the governor: cores, memory, heat and what throttles it. One call is one token.
 *
 * Speed. A token needs arithmetic, which n cores do at their clocks, and the weights from memory; the slower of the two decides
 * (a norm of order 4 rounds the corner). Cores of different kinds in one team lose a little to waiting for each other.
 * Power. A busy core takes w f v^2, v = 0.6 + 0.4 f, and 55 % of that while it waits for memory; leakage grows by e every 40
 * degrees.
 * Heat. Two nodes: the chip, and the case to the air.
 * Throttling. STEP: as phones do, at `trip_c` of the case the clocks are taken down over `ramp_s` to a cap, further where the case
 * gets more than 2 degrees hotter all the same, and given back only below `release_c`. CLOCK: the chip's own limit, kept by the
 * clocks as finely as needed. LIMIT: a power limit after some seconds.
 *
 * plant_fit() makes a set of parameters give the published rate after ten minutes with all cores; the rest of the parameters
 * are assumptions, the same kind for all sets. */
#ifndef MICA_TESTS_PLANT_H
#define MICA_TESTS_PLANT_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum plant_style { PLANT_STEP, PLANT_CLOCK, PLANT_LIMIT, PLANT_COOL } plant_style;

typedef struct plant_set {
    const char *name, *source;
    plant_style style;
    double burst_tps, later_tps; /* all cores: at first, and after ten minutes at 25 degrees */
    int32_t n_fast, n_slow;
    double slow_speed; /* of an efficient core, in fast ones */
    double compute;    /* what all fast cores compute, in tokens that memory allows */
    double core_w, slow_w;                 /* W: a busy core of each kind */
    double memory_w, base_w, leak_w;       /* memory at its limit, the rest, leakage at 60 C */
    double r_chip, c_chip, r_case, c_case; /* K/W and J/K: chip to case, case to air */
    double trip_c, release_c, ramp_s, cap; /* STEP; CLOCK: trip_c of the chip */
    double memory_share;                   /* how much of the cap the memory's clock feels, 0..1 */
    double limit_w, after_s;               /* LIMIT */
} plant_set;

typedef struct plant {
    plant_set set;
    double ambient, now_s, chip_c, case_c, cap, joules, scale;
    double since_s; /* STEP: when the walk down began; < 0: it did not */
    bool latched;
    uint32_t noise;
} plant;

/* ---- speed and power ---- */

static inline double plant_speed(const plant_set *s, int32_t n_fast, int32_t n_slow)
{
    double sum = n_fast + s->slow_speed * n_slow, team = n_fast + n_slow;
    return sum / (1 + 0.015 * (team - 1)) * (n_fast > 0 && n_slow > 0 ? 0.92 : 1.0);
}

static inline double plant_memory(const plant_set *s, double cap)
{
    return 1 - s->memory_share * (1 - cap);
}

/* In tokens that memory allows at full clocks: what the cores could compute, and what comes out. */
static inline double plant_compute(const plant_set *s, int32_t n_fast, int32_t n_slow, double cap)
{
    return s->compute * cap * plant_speed(s, n_fast, n_slow) / plant_speed(s, s->n_fast, 0);
}

static inline double plant_rate(const plant_set *s, int32_t n_fast, int32_t n_slow, double cap)
{
    double c = plant_compute(s, n_fast, n_slow, cap), m = plant_memory(s, cap);
    return 1 / sqrt(sqrt(1 / (c * c * c * c) + 1 / (m * m * m * m)));
}

static inline double plant_power(const plant_set *s, int32_t n_fast, int32_t n_slow, double cap, double chip_c)
{
    double v = 0.6 + 0.4 * cap, rate = plant_rate(s, n_fast, n_slow, cap), busy = rate / plant_compute(s, n_fast, n_slow, cap);
    double cores = (n_fast * s->core_w + n_slow * s->slow_w) * cap * v * v * (0.55 + 0.45 * busy);
    return cores + s->memory_w * rate + s->base_w + s->leak_w * exp((chip_c - 60) / 40);
}

static inline double plant_idle_power(const plant_set *s, double chip_c)
{
    return s->base_w + s->leak_w * exp((chip_c - 60) / 40);
}

/* ---- time ---- */

static inline void plant_init(plant *p, const plant_set *s, double ambient)
{
    *p = (plant){
        .set = *s, .ambient = ambient, .chip_c = ambient + 4, .case_c = ambient + 3, .cap = 1, .since_s = -1, .noise = 1};
    p->scale = s->burst_tps / plant_rate(s, s->n_fast, s->n_slow, 1);
}

static inline double plant_noise(plant *p) /* -1..1 */
{
    p->noise = p->noise * 1664525u + 1013904223u;
    return (double)(p->noise >> 8) / 8388608.0 - 1;
}

static inline void plant_throttle(plant *p, double dt, double power)
{
    const plant_set *s = &p->set;
    double walk = dt / s->ramp_s;
    if (s->style == PLANT_STEP) {
        p->latched = p->case_c >= s->trip_c || (p->latched && p->case_c > s->release_c);
        double over = fmax(0, p->case_c - s->trip_c - 2); /* the limit is kept: further down, if need be */
        double target = p->latched ? fmax(0.1, s->cap - 0.25 * over) : 1;
        walk *= 1 - s->cap;
        p->cap = p->cap > target ? fmax(target, p->cap - walk) : fmin(target, p->cap + walk);
    } else if (s->style == PLANT_CLOCK) {
        double step = 0.05 * dt * (p->chip_c > s->trip_c ? -fmin(4, p->chip_c - s->trip_c) : fmin(1, s->trip_c - p->chip_c));
        p->cap = fmin(1, fmax(0.2, p->cap + step));
    } else if (s->style == PLANT_LIMIT && p->now_s >= s->after_s) {
        p->cap = fmin(1, fmax(0.2, p->cap + 0.5 * dt * (s->limit_w - power) / s->limit_w));
    }
}

static inline void plant_heat(plant *p, double seconds, double power)
{
    const plant_set *s = &p->set;
    while (seconds > 0) {
        double dt = seconds < 0.1 ? seconds : 0.1, flow = (p->chip_c - p->case_c) / s->r_chip;
        p->chip_c += dt * (power - flow) / s->c_chip;
        p->case_c += dt * (flow - (p->case_c - p->ambient) / s->r_case) / s->c_case;
        p->now_s += dt;
        p->joules += dt * power;
        plant_throttle(p, dt, power);
        seconds -= dt;
    }
}

/* Computes a token and pauses; returns the seconds of computing. A token's time varies by 2 %. */
static inline double plant_token(plant *p, int32_t n_fast, int32_t n_slow, double pause_s)
{
    double seconds = (1 + 0.02 * plant_noise(p)) / (p->scale * plant_rate(&p->set, n_fast, n_slow, p->cap));
    plant_heat(p, seconds, plant_power(&p->set, n_fast, n_slow, p->cap, p->chip_c));
    plant_heat(p, pause_s, plant_idle_power(&p->set, p->chip_c));
    return seconds;
}

/* ---- fitting ---- */

static inline double plant_later_rate(const plant_set *s)
{
    plant p;
    double tokens = 0, from = 0;
    plant_init(&p, s, 25);
    while (p.now_s < 600) {
        plant_token(&p, s->n_fast, s->n_slow, 0);
        from = p.now_s < 540 ? p.now_s : from;
        tokens += p.now_s >= 540;
    }
    return tokens / (p.now_s - from);
}

/* STEP: the cap; CLOCK: the resistance of the case; LIMIT: the power. Each makes the later rate fall or rise monotonically. */
static inline plant_set plant_fit(const plant_set *given)
{
    plant_set s = *given;
    double *knob = s.style == PLANT_STEP ? &s.cap : s.style == PLANT_CLOCK ? &s.r_case : &s.limit_w;
    double low = s.style == PLANT_CLOCK ? 0.05 : 0.02, high = s.style == PLANT_STEP ? 1 : s.style == PLANT_CLOCK ? 8 : 100;
    if (s.style == PLANT_COOL)
        return s;
    for (int i = 0; i < 24; i++) {
        *knob = (low + high) / 2;
        bool slow = plant_later_rate(&s) < s.later_tps;
        if (slow == (s.style != PLANT_CLOCK))
            low = *knob;
        else
            high = *knob;
    }
    return s;
}

/* ---- sets ---- */

/* The published rates are those of GPUs and neural engines as well as of CPUs: what is taken from them is how far a device
 * falls in ten minutes, not how its cores work. */
static const plant_set plant_sets[] = {
    {.name = "phone",
     .source = "step of 30 % at 43 C of the case, 8.5 W (tests/device/fakesys.py)",
     .style = PLANT_STEP,
     .burst_tps = 20,
     .later_tps = 14,
     .n_fast = 4,
     .n_slow = 4,
     .slow_speed = 0.35,
     .compute = 2.0,
     .core_w = 1.35,
     .slow_w = 0.3,
     .memory_w = 1.6,
     .base_w = 0.9,
     .leak_w = 0.5,
     .r_chip = 4.5,
     .c_chip = 6,
     .r_case = 3.2,
     .c_case = 55,
     .trip_c = 43,
     .release_c = 39,
     .ramp_s = 40,
     .memory_share = 0.9},
    {.name = "iphone17pro-ane",
     .source = "Gemma-4-E2B, CoreML: 33 to 22 tok/s (published)",
     .style = PLANT_STEP,
     .burst_tps = 33,
     .later_tps = 22,
     .n_fast = 6,
     .n_slow = 0,
     .compute = 2.2,
     .core_w = 1.1,
     .memory_w = 1.8,
     .base_w = 0.9,
     .leak_w = 0.5,
     .r_chip = 3.5,
     .c_chip = 8,
     .r_case = 3.0,
     .c_case = 60,
     .trip_c = 43,
     .release_c = 39,
     .ramp_s = 40,
     .memory_share = 0.9},
    {.name = "iphone17pro-mlx",
     .source = "Gemma-4-E2B, MLX: 48 to 18 tok/s (published)",
     .style = PLANT_STEP,
     .burst_tps = 48,
     .later_tps = 18,
     .n_fast = 6,
     .n_slow = 0,
     .compute = 1.9,
     .core_w = 1.7,
     .memory_w = 2.2,
     .base_w = 0.9,
     .leak_w = 0.6,
     .r_chip = 3.5,
     .c_chip = 8,
     .r_case = 3.0,
     .c_case = 60,
     .trip_c = 43,
     .release_c = 36,
     .ramp_s = 40,
     .memory_share = 0.95},
    {.name = "iphone17pro-litert",
     .source = "Gemma-4-E2B, LiteRT GPU: 56 to 27 tok/s (published)",
     .style = PLANT_STEP,
     .burst_tps = 56,
     .later_tps = 27,
     .n_fast = 6,
     .n_slow = 0,
     .compute = 1.7,
     .core_w = 1.6,
     .memory_w = 2.2,
     .base_w = 0.9,
     .leak_w = 0.6,
     .r_chip = 3.5,
     .c_chip = 8,
     .r_case = 3.0,
     .c_case = 60,
     .trip_c = 43,
     .release_c = 33,
     .ramp_s = 40,
     .memory_share = 0.95},
    {.name = "iphone16pro",
     .source = "Qwen2.5-1.5B: loses half in two runs of twenty (published)",
     .style = PLANT_STEP,
     .burst_tps = 40,
     .later_tps = 20,
     .n_fast = 6,
     .n_slow = 0,
     .compute = 2.0,
     .core_w = 1.9,
     .memory_w = 2.2,
     .base_w = 0.9,
     .leak_w = 0.6,
     .r_chip = 3.5,
     .c_chip = 7,
     .r_case = 3.4,
     .c_case = 40,
     .trip_c = 43,
     .release_c = 35,
     .ramp_s = 40,
     .memory_share = 0.95},
    {.name = "m4-air",
     .source = "fan-less MacBook Air: 21.1 to 17.5 tok/s (published)",
     .style = PLANT_CLOCK,
     .burst_tps = 21.1,
     .later_tps = 17.5,
     .n_fast = 4,
     .n_slow = 6,
     .slow_speed = 0.4,
     .compute = 1.8,
     .core_w = 4.2,
     .slow_w = 0.6,
     .memory_w = 3,
     .base_w = 2,
     .leak_w = 1,
     .r_chip = 1.6,
     .c_chip = 8,
     .c_case = 120,
     .trip_c = 95,
     .ramp_s = 1,
     .memory_share = 0.4},
    {.name = "laptop",
     .source = "45 W for 28 s, then 28 W (tests/device/fakesys.py)",
     .style = PLANT_LIMIT,
     .burst_tps = 18,
     .later_tps = 13.5,
     .n_fast = 8,
     .n_slow = 0,
     .compute = 1.9,
     .core_w = 5,
     .memory_w = 4,
     .base_w = 3,
     .leak_w = 1.5,
     .r_chip = 0.8,
     .c_chip = 15,
     .r_case = 0.35,
     .c_case = 200,
     .ramp_s = 1,
     .after_s = 28,
     .memory_share = 0.2},
    {.name = "server",
     .source = "never throttles",
     .style = PLANT_COOL,
     .burst_tps = 25,
     .later_tps = 25,
     .n_fast = 16,
     .n_slow = 0,
     .compute = 2.5,
     .core_w = 5,
     .memory_w = 10,
     .base_w = 20,
     .leak_w = 3,
     .r_chip = 0.2,
     .c_chip = 60,
     .r_case = 0.1,
     .c_case = 300,
     .ramp_s = 1},
    {.name = "compute",
     .source = "never throttles; every core counts",
     .style = PLANT_COOL,
     .burst_tps = 25,
     .later_tps = 25,
     .n_fast = 8,
     .n_slow = 0,
     .compute = 0.7,
     .core_w = 5,
     .memory_w = 10,
     .base_w = 20,
     .leak_w = 3,
     .r_chip = 0.2,
     .c_chip = 60,
     .r_case = 0.1,
     .c_case = 300,
     .ramp_s = 1},
};

enum { PLANT_SETS = sizeof plant_sets / sizeof *plant_sets };

#endif
