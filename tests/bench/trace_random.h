/* trace_random.h - token times with a known truth: a step or none, under noise of several kinds. Everything follows from the
 * seed. */
#ifndef MICA_TESTS_BENCH_TRACE_RANDOM_H
#define MICA_TESTS_BENCH_TRACE_RANDOM_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/rng.h"

typedef enum trace_shape { SHAPE_FLAT, SHAPE_STEP, SHAPE_DRIFT, SHAPE_LATE_DRIFT, SHAPE_DECAY, SHAPE_COUNT } trace_shape;

enum { NOISE_GC = 1, NOISE_STALL = 2, NOISE_PERIODIC = 4, NOISE_HEAVY = 8, NOISE_WANDER = 16 };

typedef struct trace_truth {
    trace_shape shape;
    unsigned noise;
    double rate, length_s, depth, start_s, ramp_s;
} trace_truth;

typedef struct trace_maker {
    trace_truth truth;
    mica_rng rng;
    double jitter, gc_every, gc_pause, stall_at, stall_s, wave, wave_s, wander, drawn_at;
} trace_maker;

static double draw(mica_rng *rng, double low, double high) { return low + (high - low) * mica_rng_unit(rng); }

/* Box and Muller. */
static double draw_normal(mica_rng *rng)
{
    double u = 1 - mica_rng_unit(rng), v = mica_rng_unit(rng);
    return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979 * v);
}

/* What is left of the full rate at time t. */
static double level(const trace_truth *x, double t)
{
    double since = t - x->start_s;
    if (x->shape == SHAPE_FLAT || since <= 0)
        return 1;
    if (x->shape == SHAPE_DECAY)
        return 1 - x->depth * (1 - exp(-since / x->ramp_s));
    return 1 - x->depth * (since < x->ramp_s ? since / x->ramp_s : 1);
}

static void choose_shape(trace_maker *m)
{
    trace_truth *x = &m->truth;
    mica_rng *r = &m->rng;
    x->rate = exp(draw(r, log(4), log(60)));
    x->length_s = draw(r, 480, 900);
    x->depth = draw(r, 0.10, 0.40);
    switch (x->shape) {
    case SHAPE_STEP:
        x->ramp_s = draw(r, 5, 90);
        x->start_s = draw(r, 70, x->length_s - x->ramp_s - 70);
        break;
    case SHAPE_DRIFT: /* all the time */
        x->ramp_s = x->length_s;
        break;
    case SHAPE_LATE_DRIFT: /* twice as slow as a throttle may be, and slower */
        x->ramp_s = draw(r, 180, x->length_s - 140);
        x->start_s = draw(r, 60, x->length_s - x->ramp_s - 60);
        break;
    case SHAPE_DECAY: /* fast at first, but never flat before */
        x->ramp_s = draw(r, 150, 400);
        break;
    default:
        x->depth = 0;
    }
}

static void choose_noise(trace_maker *m)
{
    mica_rng *r = &m->rng;
    m->jitter = draw(r, 0.01, 0.12);
    m->gc_every = draw(r, 8, 40);
    m->gc_pause = draw(r, 0.05, 0.8);
    m->stall_at = draw(r, 10, m->truth.length_s - 40);
    m->stall_s = draw(r, 2, 25);
    m->wave = draw(r, 0.02, 0.08);
    m->wave_s = draw(r, 4, 45);
}

/* Slow noise: an autoregression, one value a second, 2 % of standard deviation. */
static double wander_at(trace_maker *m, double t)
{
    for (; m->drawn_at < t; m->drawn_at += 1)
        m->wander = 0.9 * m->wander + 0.0087 * draw_normal(&m->rng);
    return m->wander;
}

static double gap_at(trace_maker *m, double t)
{
    const trace_truth *x = &m->truth;
    double speed = level(x, t), gap;
    if (x->noise & NOISE_PERIODIC)
        speed *= 1 + m->wave * sin(2 * 3.14159265358979 * t / m->wave_s);
    if (x->noise & NOISE_WANDER)
        speed *= 1 + wander_at(m, t);
    gap = exp(m->jitter * draw_normal(&m->rng)) / (x->rate * speed);
    if ((x->noise & NOISE_HEAVY) && mica_rng_unit(&m->rng) < 0.02) /* Pareto, alpha 1.5, at most 30-fold */
        gap *= fmin(30, pow(1 - mica_rng_unit(&m->rng), -1 / 1.5));
    if ((x->noise & NOISE_GC) && floor((t + gap) / m->gc_every) > floor(t / m->gc_every))
        gap += m->gc_pause * draw(&m->rng, 0.5, 1.5);
    if ((x->noise & NOISE_STALL) && t < m->stall_at && t + gap >= m->stall_at)
        gap += m->stall_s;
    return gap;
}

/* Token times of a trace; free() them. */
static int64_t *make_trace(uint64_t seed, trace_shape shape, unsigned noise, trace_truth *truth, size_t *n)
{
    trace_maker m = {.truth = {.shape = shape, .noise = noise}};
    mica_rng_seed(&m.rng, seed);
    choose_shape(&m);
    choose_noise(&m);
    size_t capacity = (size_t)(m.truth.rate * m.truth.length_s * 1.5) + 100;
    int64_t *times = malloc(capacity * sizeof *times);
    double t = 0;
    *n = 0;
    *truth = m.truth;
    while (times && t < m.truth.length_s && *n < capacity) {
        times[(*n)++] = (int64_t)(t * 1e9) + 123456789;
        t += gap_at(&m, t);
    }
    return times;
}

#endif
