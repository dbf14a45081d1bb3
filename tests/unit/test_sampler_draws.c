/* test_sampler_draws.c - the distribution of draws after each filter against a naive version (full sort, libm, long loops), by
 * chi-square; and golden tokens, which must be the same on every machine and with every compiler.
 */
#include "sampler_testing.h"

enum { N = 400, DRAWS = 20000 };

static void make_logits(uint64_t seed, double grain, float *x)
{
    mica_rng rng;
    mica_rng_seed(&rng, seed);
    random_logits(&rng, x, N, 2.0, grain);
}

/* ---- The naive distribution ------------------------------------------------------------------------------------------ */

typedef struct entry {
    double rank, p, logit;
    int id;
} entry;

static int by_rank(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank > y->rank ? -1 : 1;
    return x->id - y->id;
}

static void normalise(entry *e, int n)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += e[i].p;
    for (int i = 0; i < n; i++)
        e[i].p /= sum;
}

static int cut_at_mass(entry *e, int n, double mass)
{
    double sum = 0.0;
    int kept = 0;
    while (kept < n && (kept == 0 || sum < mass))
        sum += e[kept++].p;
    return kept;
}

static int sort_by_logit(entry *e, int n)
{
    for (int i = 0; i < n; i++)
        e[i].rank = e[i].logit;
    qsort(e, (size_t)n, sizeof *e, by_rank);
    return n;
}

static int naive_typical(entry *e, int n, double typical_p)
{
    double entropy = 0.0;
    for (int i = 0; i < n; i++)
        entropy -= e[i].p > 0.0 ? e[i].p * log(e[i].p) : 0.0;
    for (int i = 0; i < n; i++)
        e[i].rank = (float)-fabs(-log(e[i].p) - entropy);
    qsort(e, (size_t)n, sizeof *e, by_rank);
    return cut_at_mass(e, n, typical_p);
}

/* p[id] of the distribution that the options ask for, by the documented order of the stages. */
static void naive_distribution(const mica_sampling *o, const float *x, double *p)
{
    static entry e[N];
    int n = N;
    for (int i = 0; i < N; i++)
        e[i] = (entry){.p = exp((double)x[i]), .logit = (double)x[i], .id = i};
    sort_by_logit(e, n);
    if (o->top_k > 0 && o->top_k < n)
        n = o->top_k;
    normalise(e, n);
    if (o->typical_p < 1.0f)
        n = naive_typical(e, n, (double)o->typical_p);
    sort_by_logit(e, n);
    normalise(e, n);
    if (o->top_p < 1.0f)
        n = cut_at_mass(e, n, (double)o->top_p);
    normalise(e, n);
    while (n > 1 && e[n - 1].p < (double)o->min_p * e[0].p)
        n--;
    for (int i = 0; i < n; i++)
        e[i].p = exp((e[i].logit - e[0].logit) / (double)o->temperature);
    normalise(e, n);
    memset(p, 0, N * sizeof *p);
    for (int i = 0; i < n; i++)
        p[e[i].id] = e[i].p;
}

/* ---- Chi-square ------------------------------------------------------------------------------------------------------ */

/* The statistic as standard normal deviations (Wilson and Hilferty). Bins that expect fewer than 8 are joined. */
static double deviation(const int *count, const double *p)
{
    double chi = 0.0, rest_expected = 0.0, rest_count = 0.0;
    int bins = 0;
    for (int i = 0; i < N; i++) {
        double expected = p[i] * DRAWS;
        if (expected < 8.0) {
            rest_expected += expected;
            rest_count += count[i];
            continue;
        }
        chi += (count[i] - expected) * (count[i] - expected) / expected;
        bins++;
    }
    if (rest_expected >= 8.0) {
        chi += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
        bins++;
    }
    if (bins < 2)
        return 0.0;
    double df = bins - 1, v = 2.0 / (9.0 * df);
    return (cbrt(chi / df) - (1.0 - v)) / sqrt(v);
}

static void draw_many(mica_sampling o, const float *x, int *count)
{
    mica_sampler *s = make(N);
    o.seed = 20231130;
    start(s, o);
    memset(count, 0, N * sizeof *count);
    for (int i = 0; i < DRAWS; i++)
        count[pick(s, x)]++;
    mica_sampler_free(s);
}

static void expect_distribution(mica_sampling o, const char *name)
{
    const double grains[] = {0.0, 0.5};
    for (int round = 0; round < 2; round++) {
        static float x[N];
        static double p[N];
        static int count[N];
        make_logits((uint64_t)round + 10, grains[round], x);
        naive_distribution(&o, x, p);
        draw_many(o, x, count);
        for (int i = 0; i < N; i++) {
            if (p[i] == 0.0 && count[i] > 0)
                fail_msg("%s, round %d: token %d is filtered, but was drawn %d times", name, round, i, count[i]);
            if (p[i] * DRAWS > 30.0 && count[i] == 0) /* e^-30 */
                fail_msg("%s, round %d: token %d has p %g, but was never drawn", name, round, i, p[i]);
        }
        double z = deviation(count, p);
        if (z > 4.0) /* one in 30,000; the draws are fixed by the seed */
            fail_msg("%s, round %d: the draws are %.1f deviations from the distribution", name, round, z);
    }
}

static void test_no_filter(void **state)
{
    (void)state;
    mica_sampling o = plain();
    expect_distribution(o, "none");
    const float temperatures[] = {0.1f, 0.5f, 2.0f, 100.0f};
    for (int i = 0; i < 4; i++) {
        o.temperature = temperatures[i];
        expect_distribution(o, "temperature");
    }
}

static void test_top_k(void **state)
{
    (void)state;
    mica_sampling o = plain();
    const int32_t k[] = {1, 2, 3, 10, 40, N - 1, N, 100000};
    for (int i = 0; i < 8; i++) {
        o.top_k = k[i];
        expect_distribution(o, "top_k");
    }
}

static void test_top_p(void **state)
{
    (void)state;
    mica_sampling o = plain();
    const float p[] = {0.0f, 0.05f, 0.3f, 0.9f, 0.95f, 0.999f, 0x1.fffffep-1f};
    for (int i = 0; i < 7; i++) {
        o.top_p = p[i];
        o.top_k = 0;
        expect_distribution(o, "top_p");
        o.top_k = 30;
        expect_distribution(o, "top_k, top_p");
    }
}

static void test_min_p(void **state)
{
    (void)state;
    mica_sampling o = plain();
    const float p[] = {0.001f, 0.05f, 0.5f, 1.0f};
    for (int i = 0; i < 4; i++) {
        o.min_p = p[i];
        o.top_k = 0;
        expect_distribution(o, "min_p");
        o.top_k = 30;
        expect_distribution(o, "top_k, min_p");
    }
}

static void test_typical(void **state)
{
    (void)state;
    mica_sampling o = plain();
    const float p[] = {0.01f, 0.2f, 0.5f, 0.95f};
    for (int i = 0; i < 4; i++) {
        o.typical_p = p[i];
        o.top_k = 0;
        o.top_p = 1.0f;
        expect_distribution(o, "typical");
        o.top_p = 0.7f;
        expect_distribution(o, "typical, top_p");
        o.top_k = 30;
        expect_distribution(o, "top_k, typical, top_p");
    }
}

static void test_all_together(void **state)
{
    (void)state;
    mica_sampling o = plain();
    o.temperature = 0.8f;
    o.top_k = 40;
    o.top_p = 0.95f;
    o.min_p = 0.05f;
    expect_distribution(o, "defaults"); /* the temperature comes last: filters see the distribution at 1 */
    o.typical_p = 0.9f;
    o.temperature = 1.7f;
    expect_distribution(o, "all");
    o.top_k = 0;
    expect_distribution(o, "all but top_k");
}

/* Four equal tokens and top_p 1/2: the mass is reached exactly, by the two lowest ids. */
static void test_top_p_reached_exactly(void **state)
{
    (void)state;
    const float x[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    mica_sampler *s = make(4);
    mica_sampling o = plain();
    o.top_p = 0.5f;
    for (o.top_k = 0; o.top_k <= 3; o.top_k += 3) { /* of three equal tokens, half takes two as well */
        int count[4] = {0};
        start(s, o);
        for (int i = 0; i < 100; i++)
            count[pick(s, x)]++;
        assert_true(count[0] > 25 && count[1] > 25 && count[0] + count[1] == 100);
    }
    mica_sampler_free(s);
}

/* The test itself: a temperature that is off by 10 % must be noticed, and so must a tail that is cut off. */
static void test_the_statistic_has_power(void **state)
{
    (void)state;
    static float x[N];
    static double p[N];
    static int count[N];
    mica_sampling o = plain(), other = plain();
    make_logits(10, 0.0, x);
    naive_distribution(&o, x, p);
    other.temperature = 0.9f;
    draw_many(other, x, count);
    assert_true(deviation(count, p) > 4.0);
    other = plain();
    other.top_k = 100;
    draw_many(other, x, count);
    assert_true(deviation(count, p) > 4.0);
}

/* ---- Golden ---------------------------------------------------------------------------------------------------------- */

enum { GOLDEN_VOCAB = 5000, GOLDEN_DRAWS = 10 };

typedef struct golden {
    float temperature;
    int32_t top_k;
    float top_p, min_p, typical_p;
    int64_t seed;
    int32_t tokens[GOLDEN_DRAWS];
} golden;

/* From an independent model of the sampler in Python (full sorts, math.exp, its own generator). */
static const golden goldens[] = {
    {1.0f, 0, 1.0f, 0.0f, 1.0f, 1, {3304, 2413, 2514, 1956, 3275, 655, 342, 1907, 4267, 2414}},
    {0.8f, 40, 0.95f, 0.05f, 1.0f, 42, {3539, 4985, 1524, 2413, 2413, 3193, 1524, 2209, 3193, 3504}},
    {2.0f, 0, 1.0f, 0.0f, 1.0f, 0, {2960, 3748, 481, 2094, 3689, 4999, 2146, 2612, 4363, 4604}},
    {0.3f, 0, 1.0f, 0.0f, 1.0f, INT64_MAX, {1426, 1524, 2413, 1113, 1426, 2413, 2413, 1509, 2413, 2209}},
    {1.0f, 7, 1.0f, 0.0f, 1.0f, 3, {2204, 1524, 2413, 3193, 3193, 2209, 2413, 2204, 3504, 2413}},
    {1.0f, 0, 0.9f, 0.0f, 1.0f, 4, {1509, 4466, 2209, 4979, 1128, 2717, 2276, 3314, 262, 1563}},
    {1.0f, 0, 1.0f, 0.1f, 1.0f, 5, {1524, 2414, 2589, 3504, 2276, 3314, 2209, 3380, 1545, 1742}},
    {1.0f, 0, 1.0f, 0.0f, 0.5f, 6, {4427, 4432, 2514, 4929, 987, 4985, 4985, 285, 3314, 4541}},
    {1.5f, 0, 0.8f, 0.01f, 0.9f, 7, {4985, 1059, 1509, 2413, 2413, 1524, 3820, 4652, 410, 1591}},
    {0.7f, 0, 0.95f, 0.02f, 1.0f, 4294967295, {1591, 1534, 2413, 410, 4267, 2209, 1059, 410, 4499, 2413}},
};

static void test_golden_tokens(void **state)
{
    (void)state;
    static float x[GOLDEN_VOCAB];
    mica_rng rng;
    mica_rng_seed(&rng, 77);
    for (int i = 0; i < GOLDEN_VOCAB; i++) { /* exact in float: no rounding that could differ */
        uint64_t r = mica_rng_next(&rng);
        x[i] = (float)((int)((r & 0xFFFF) + ((r >> 16) & 0xFFFF) + ((r >> 32) & 0xFFFF)) - 98304) / 8192.0f;
    }
    mica_sampler *s = make(GOLDEN_VOCAB);
    for (size_t g = 0; g < sizeof goldens / sizeof *goldens; g++) {
        mica_sampling o = plain();
        o.temperature = goldens[g].temperature;
        o.top_k = goldens[g].top_k;
        o.top_p = goldens[g].top_p;
        o.min_p = goldens[g].min_p;
        o.typical_p = goldens[g].typical_p;
        o.seed = goldens[g].seed;
        start(s, o);
        for (int i = 0; i < GOLDEN_DRAWS; i++) {
            int32_t token = pick(s, x);
            if (token != goldens[g].tokens[i])
                fail_msg("golden %zu, draw %d: %d instead of %d", g, i, (int)token, (int)goldens[g].tokens[i]);
        }
    }
    mica_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_filter),
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_min_p),
        cmocka_unit_test(test_typical),
        cmocka_unit_test(test_all_together),
        cmocka_unit_test(test_top_p_reached_exactly),
        cmocka_unit_test(test_the_statistic_has_power),
        cmocka_unit_test(test_golden_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
