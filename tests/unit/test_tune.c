/* The search of mica tune against an exhaustive one, on simulated machines and on random ones: within 3 %, with few probes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "plant_run.h"
#include "tune_search.h"

enum { MOST_PROBES = 24 }; /* of half a second and a little: 14 s */

static uint32_t state_of_noise = 5;

static double noise(void) /* 0..1 */
{
    state_of_noise = state_of_noise * 1664525u + 1013904223u;
    return (double)(state_of_noise >> 8) / 16777216.0;
}

/* Searches with measurements that are up to `error` too low. */
static void check(const mica_level *levels, int32_t n, const double *rate, double error, int32_t *most)
{
    mica_tune t;
    double best = 0;
    int32_t probes = 0;
    for (int32_t i = 0; i < n; i++)
        best = rate[i] > best ? rate[i] : best;
    mica_tune_init(&t, levels, n);
    for (int32_t level; (level = mica_tune_next(&t)) >= 0; probes++) {
        assert_in_range(level, 0, n - 1);
        assert_true(probes < 100);
        mica_tune_note(&t, level, rate[level] * (1 - error * noise()));
    }
    double found = rate[mica_tune_best(&t)], chosen = rate[mica_tune_chosen(&t)];
    if (found < 0.97 * best)
        fail_msg("%d levels: found %.2f, the best is %.2f", (int)n, found, best);
    if (chosen < 0.96 * best)
        fail_msg("%d levels: chose %.2f, the best is %.2f", (int)n, chosen, best);
    *most = probes > *most ? probes : *most;
}

static void test_plants(void **state)
{
    (void)state;
    int32_t most = 0;
    for (int i = 0; i < PLANT_SETS; i++) {
        const plant_set *s = &plant_sets[i];
        mica_level levels[MICA_LEVELS];
        double rate[MICA_LEVELS];
        int32_t n = plant_levels(s, levels);
        for (int32_t k = 0; k < n; k++)
            rate[k] = s->burst_tps * plant_rate(s, levels[k].n_fast, levels[k].n_slow, 1);
        for (int round = 0; round < 100; round++)
            check(levels, n, rate, 0.02, &most);
    }
    print_message("at most %d probes\n", (int)most);
    assert_true(most <= MOST_PROBES);
}

/* Rates that rise with the number of cores and fall from some number on, of machines with and without efficient cores. */
static void test_random(void **state)
{
    (void)state;
    int32_t most = 0;
    for (int i = 0; i < 20000; i++) {
        int32_t n_fast = 1 + (int32_t)(noise() * 20), n_slow = noise() < 0.5 ? 0 : 1 + (int32_t)(noise() * 8);
        double peak = 1 + noise() * n_fast, sharp = 0.3 + noise() * 2, slow = 0.2 + 0.6 * noise(), rate[MICA_LEVELS];
        mica_control c;
        mica_policy policy;
        mica_policy_init(&policy, MICA_OBJECTIVE_SUSTAINED);
        mica_control_init(&c, &policy, n_fast, n_slow, 0);
        for (int32_t k = 0; k < c.n_levels; k++) {
            double x = (c.levels[k].n_fast + slow * c.levels[k].n_slow) / peak;
            rate[k] = 10 * pow(x * exp(1 - x), sharp) * (c.levels[k].n_fast == 0 ? slow : 1);
        }
        check(c.levels, c.n_levels, rate, 0.01, &most);
    }
    print_message("at most %d probes\n", (int)most);
    assert_true(most <= MOST_PROBES);
}

static void test_single(void **state)
{
    (void)state;
    static const mica_level one[] = {{1, 0}};
    static const double rate[] = {3};
    int32_t most = 0;
    check(one, 1, rate, 0.02, &most);
    assert_in_range(most, 1, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plants), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_single)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
