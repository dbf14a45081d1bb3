/* The throttle detector against 700 traces whose truth is known, and against its definition in plain traces. None of the
 * seeds from FIRST_SEED on was tried while the detector and the tolerances were chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "mica/mica_ops.h"
#include "trace_random.h"

#ifndef FIRST_SEED
#define FIRST_SEED 52000000
#endif
enum { STEPS = 400, OTHERS = 300 };

typedef struct score {
    int steps, deep, found_deep, matched, wrong, false_in[SHAPE_COUNT];
    double start_off[STEPS], end_off[STEPS], depth_off[STEPS];
} score;

static mica_throttle detect(const int64_t *times, size_t n)
{
    mica_throttle t;
    mica_error err = {0};
    if (mica_throttle_detect(times, n, NULL, &t, &err))
        fail_msg("%s", err.message);
    return t;
}

/* Right is: the middle of the ramp within 15 s, the depth within 3 points. Slow noise of 2 % hides the ends of a ramp of 15 %
 * over 90 s for longer than that now and then. */
static bool is_match(const mica_level_change *c, const trace_truth *x)
{
    double middle = x->start_s + x->ramp_s / 2;
    return fabs((c->start_s + c->end_s) / 2 - middle) <= 15 && fabs(c->depth - x->depth) <= 0.03;
}

static void count_step(score *s, const mica_throttle *t, const trace_truth *x)
{
    bool found = false;
    for (int32_t i = 0; i < t->n_changes; i++) {
        const mica_level_change *c = &t->changes[i];
        if (c->kind != MICA_CHANGE_THROTTLE)
            continue;
        if (is_match(c, x) && !found) {
            found = true;
            s->start_off[s->matched] = fabs(c->start_s - x->start_s);
            s->end_off[s->matched] = fabs(c->end_s - x->start_s - x->ramp_s);
            s->depth_off[s->matched++] = fabs(c->depth - x->depth);
        } else {
            s->wrong++;
        }
    }
    s->steps++;
    s->deep += x->depth >= 0.15;
    s->found_deep += x->depth >= 0.15 && found;
    if (found || x->depth < 0.15)
        return;
    print_message("  missed: depth %.3f, %.0f to %.0f of %.0f s, rate %.1f, noise %u; told:", x->depth, x->start_s,
                  x->start_s + x->ramp_s, x->length_s, x->rate, x->noise);
    for (int32_t i = 0; i < t->n_changes; i++)
        print_message(" %s %.3f, %.0f to %.0f s", mica_change_name(t->changes[i].kind), t->changes[i].depth,
                      t->changes[i].start_s, t->changes[i].end_s);
    print_message("\n");
}

static void count_other(score *s, const mica_throttle *t, const trace_truth *x)
{
    for (int32_t i = 0; i < t->n_changes; i++) {
        const mica_level_change *c = &t->changes[i];
        if (c->kind != MICA_CHANGE_THROTTLE)
            continue;
        s->wrong++;
        s->false_in[x->shape]++;
        print_message("  false: shape %d depth %.3f over %.0f s from %.0f of %.0f s, rate %.1f, noise %u: told depth %.3f, "
                      "%.0f to %.0f s\n",
                      x->shape, x->depth, x->ramp_s, x->start_s, x->length_s, x->rate, x->noise, c->depth, c->start_s,
                      c->end_s);
    }
}

static void run_one(score *s, uint64_t seed, trace_shape shape, unsigned noise)
{
    trace_truth x;
    size_t n;
    int64_t *times = make_trace(seed, shape, noise, &x, &n);
    assert_non_null(times);
    mica_throttle t = detect(times, n);
    if (shape == SHAPE_STEP)
        count_step(s, &t, &x);
    else
        count_other(s, &t, &x);
    free(times);
}

static void precision_and_recall(void **state)
{
    static score s;
    (void)state;
    memset(&s, 0, sizeof s);
    for (int i = 0; i < STEPS; i++)
        run_one(&s, (uint64_t)(FIRST_SEED + i), SHAPE_STEP, (unsigned)i % 32);
    for (int i = 0; i < OTHERS; i++) {
        static const trace_shape shapes[] = {SHAPE_FLAT, SHAPE_DRIFT, SHAPE_LATE_DRIFT, SHAPE_DECAY};
        run_one(&s, (uint64_t)(FIRST_SEED + STEPS + i), shapes[i % 4], (unsigned)(i / 4) % 32);
    }
    mica_stat_sort(s.start_off, (size_t)s.matched);
    mica_stat_sort(s.end_off, (size_t)s.matched);
    mica_stat_sort(s.depth_off, (size_t)s.matched);
    double recall = (double)s.found_deep / s.deep, precision = (double)s.matched / (s.matched + s.wrong);
    print_message("%d steps (%d of at least 15 %%), %d without: recall %.4f, precision %.4f; off by at p50, p95: start %.1f, "
                  "%.1f s; end %.1f, "
                  "%.1f s; depth %.2f, %.2f points\n",
                  s.steps, s.deep, OTHERS, recall, precision, mica_stat_percentile(s.start_off, (size_t)s.matched, 0.5),
                  mica_stat_percentile(s.start_off, (size_t)s.matched, 0.95),
                  mica_stat_percentile(s.end_off, (size_t)s.matched, 0.5),
                  mica_stat_percentile(s.end_off, (size_t)s.matched, 0.95),
                  100 * mica_stat_percentile(s.depth_off, (size_t)s.matched, 0.5),
                  100 * mica_stat_percentile(s.depth_off, (size_t)s.matched, 0.95));
    assert_true(s.deep >= 300 && s.steps + OTHERS >= 500);
    assert_true(recall >= 0.98);
    assert_true(precision >= 0.98);
    assert_true(mica_stat_percentile(s.start_off, (size_t)s.matched, 0.5) <= 5);
}

/* ---- The definition, without noise ---- */

enum { SECONDS = 600 };

static mica_throttle find(const double *rates, size_t n)
{
    mica_throttle t;
    mica_error err = {0};
    if (mica_throttle_find(rates, n, 1, NULL, &t, &err))
        fail_msg("%s", err.message);
    return t;
}

/* `from` until `start`, straight to `to` at `end`. */
static void fill(double *rates, size_t n, double from, double to, double start, double end)
{
    for (size_t i = 0; i < n; i++) {
        double t = (double)i + 0.5, part = end > start ? (t - start) / (end - start) : t > start;
        rates[i] = from + (to - from) * (part < 0 ? 0 : part > 1 ? 1 : part);
    }
}

static void a_step_is_told_exactly(void **state)
{
    double rates[SECONDS];
    (void)state;
    fill(rates, SECONDS, 22, 15, 240, 280);
    mica_throttle t = find(rates, SECONDS);
    assert_true(t.throttled && t.n_changes == 1 && t.worst == 0 && !t.too_short);
    const mica_level_change *c = &t.changes[0];
    assert_true(fabs(c->start_s - 240) <= 1 && fabs(c->end_s - 280) <= 1);
    assert_true(fabs(c->before_tps - 22) < 0.05 && fabs(c->after_tps - 15) < 0.05 && fabs(c->depth - 7.0 / 22) < 0.003);
    assert_true(c->confidence >= 0.99 && c->confidence < 1);
}

static void kinds_of_changes(void **state)
{
    static const struct {
        double from, to, start, end;
        mica_change kind;
    } cases[] = {
        {20, 16, 200, 200, MICA_CHANGE_THROTTLE}, {20, 16, 200, 290, MICA_CHANGE_THROTTLE},
        {20, 16, 200, 330, MICA_CHANGE_DRIFT},    {20, 16, 0, 600, MICA_CHANGE_DRIFT},
        {16, 20, 200, 240, MICA_CHANGE_RISE},     {20, 18.4, 200, 240, MICA_CHANGE_SMALL},
        {20, 16, 20, 40, MICA_CHANGE_SHORT},      {20, 17.8, 300, 310, MICA_CHANGE_THROTTLE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double rates[SECONDS];
        fill(rates, SECONDS, cases[i].from, cases[i].to, cases[i].start, cases[i].end);
        mica_throttle t = find(rates, SECONDS);
        if (t.n_changes != 1 || t.changes[0].kind != cases[i].kind)
            fail_msg("case %zu: %d changes, the first %s", i, (int)t.n_changes,
                     t.n_changes ? mica_change_name(t.changes[0].kind) : "-");
        assert_int_equal(t.throttled, cases[i].kind == MICA_CHANGE_THROTTLE);
        assert_int_equal(t.worst, t.throttled ? 0 : -1);
    }
}

static void what_is_flat_or_stalls_has_no_change(void **state)
{
    double rates[SECONDS];
    (void)state;
    fill(rates, SECONDS, 20, 20, 0, 0);
    assert_int_equal(find(rates, SECONDS).n_changes, 0);
    for (size_t i = 300; i < 320; i++)
        rates[i] = 0.1;
    assert_int_equal(find(rates, SECONDS).n_changes, 0);
    memset(rates, 0, sizeof rates);
    assert_int_equal(find(rates, SECONDS).n_changes, 0);
}

static void two_steps_and_a_recovery(void **state)
{
    double rates[1200], second[1200];
    (void)state;
    fill(rates, 1200, 24, 20, 200, 220);
    fill(second, 1200, 0, 6, 500, 560);
    for (size_t i = 0; i < 1200; i++)
        rates[i] -= second[i];
    fill(second, 1200, 0, 10, 900, 910);
    for (size_t i = 0; i < 1200; i++)
        rates[i] += second[i];
    mica_throttle t = find(rates, 1200);
    assert_int_equal(t.n_changes, 3);
    assert_int_equal(t.changes[0].kind, MICA_CHANGE_THROTTLE);
    assert_int_equal(t.changes[1].kind, MICA_CHANGE_THROTTLE);
    assert_int_equal(t.changes[2].kind, MICA_CHANGE_RISE);
    assert_int_equal(t.worst, 1);
    assert_true(fabs(t.changes[1].depth - 0.3) < 0.01 && fabs(t.changes[1].start_s - 500) < 3 &&
                fabs(t.changes[1].end_s - 560) < 3);
}

static void the_same_trace_gives_the_same_bits(void **state)
{
    trace_truth x;
    size_t n;
    int64_t *times = make_trace(42, SHAPE_STEP, 31, &x, &n);
    (void)state;
    assert_non_null(times);
    mica_throttle a = detect(times, n), b = detect(times, n);
    assert_int_equal(a.n_changes, b.n_changes);
    for (int32_t i = 0; i < a.n_changes; i++) {
        assert_true(a.changes[i].start_s == b.changes[i].start_s && a.changes[i].depth == b.changes[i].depth);
        assert_true(a.changes[i].confidence == b.changes[i].confidence);
    }
    free(times);
}

/* Seconds are a convention: a trace ten times as fast, with the times of the definition divided by ten, gives the same. */
static void times_scale(void **state)
{
    double rates[SECONDS];
    mica_throttle_options o = mica_throttle_options_default();
    mica_throttle t;
    mica_error err = {0};
    (void)state;
    o.max_ramp_s /= 10;
    o.min_flat_s /= 10;
    o.cell_s /= 10;
    fill(rates, SECONDS, 22, 15, 240, 280);
    assert_int_equal(mica_throttle_find(rates, SECONDS, 0.1, &o, &t, &err), MICA_OK);
    assert_true(t.throttled && fabs(t.changes[0].start_s - 24) <= 0.11 && fabs(t.changes[0].end_s - 28) <= 0.11);
}

static void refusals_and_small_traces(void **state)
{
    double rates[SECONDS];
    mica_throttle_options o = mica_throttle_options_default();
    mica_throttle t;
    mica_error err = {0};
    (void)state;
    fill(rates, SECONDS, 22, 15, 30, 40);
    for (size_t n = 0; n < 90; n++) {
        assert_int_equal(mica_throttle_find(rates, n, 1, NULL, &t, &err), MICA_OK);
        assert_true(t.too_short && !t.throttled && t.n_changes == 0);
    }
    assert_int_equal(mica_throttle_detect(NULL, 0, NULL, &t, &err), MICA_OK);
    assert_true(t.too_short);
    rates[7] = NAN;
    assert_int_equal(mica_throttle_find(rates, SECONDS, 1, NULL, &t, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "rate 7"));
    rates[7] = -1;
    assert_int_equal(mica_throttle_find(rates, SECONDS, 1, NULL, &t, &err), MICA_INVALID_ARGUMENT);
    rates[7] = 1;
    assert_int_equal(mica_throttle_find(rates, SECONDS, 0, NULL, &t, &err), MICA_INVALID_ARGUMENT);
    o.min_depth = 1;
    assert_int_equal(mica_throttle_find(rates, SECONDS, 1, &o, &t, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_throttle_find(rates, ((size_t)1 << 20) + 1, 1, NULL, &t, &err), MICA_INVALID_ARGUMENT);
    int64_t back[] = {5, 4};
    assert_int_equal(mica_throttle_detect(back, 2, NULL, &t, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "backwards"));
}

/* Hours: the search coarsens its cells and still finds the step. */
static void a_long_trace(void **state)
{
    enum { HOURS = 4 };
    size_t n = HOURS * 3600;
    double *rates = malloc(n * sizeof *rates);
    mica_rng rng;
    (void)state;
    assert_non_null(rates);
    mica_rng_seed(&rng, 3);
    fill(rates, n, 20, 15, 5000, 5060);
    for (size_t i = 0; i < n; i++)
        rates[i] *= 1 + 0.05 * draw_normal(&rng);
    mica_throttle t = find(rates, n);
    assert_int_equal(t.n_changes, 1);
    assert_true(t.throttled && fabs(t.changes[0].start_s - 5000) < 20 && fabs(t.changes[0].depth - 0.25) < 0.01);
    free(rates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_told_exactly),
        cmocka_unit_test(kinds_of_changes),
        cmocka_unit_test(what_is_flat_or_stalls_has_no_change),
        cmocka_unit_test(two_steps_and_a_recovery),
        cmocka_unit_test(the_same_trace_gives_the_same_bits),
        cmocka_unit_test(times_scale),
        cmocka_unit_test(refusals_and_small_traces),
        cmocka_unit_test(a_long_trace),
        cmocka_unit_test(precision_and_recall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
