/* Percentiles, ratios and their intervals, figures of a run, rates over time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "mica/mica_ops.h"
#include "trace_random.h"

static bool near(double a, double b, double part) { return fabs(a - b) <= part * fabs(b); }

/* ---- Percentiles ---- */

static void percentiles_interpolate(void **state)
{
    const double x[] = {10, 20, 30, 40};
    (void)state;
    assert_true(mica_stat_percentile(x, 4, 0) == 10 && mica_stat_percentile(x, 4, 1) == 40);
    assert_true(mica_stat_percentile(x, 4, 0.5) == 25);
    assert_true(near(mica_stat_percentile(x, 4, 0.95), 38.5, 1e-12)); /* h = 2.85 */
    assert_true(mica_stat_percentile(x, 1, 0.99) == 10);
    assert_true(isnan(mica_stat_percentile(x, 0, 0.5)) && isnan(mica_stat_percentile(x, 4, 1.01)) &&
                isnan(mica_stat_percentile(x, 4, NAN)));
}

static void medians_and_means(void **state)
{
    const double x[] = {5, 1, 4, 2}, y[] = {9};
    (void)state;
    assert_true(mica_stat_median(x, 4) == 3 && mica_stat_median(x, 3) == 4 && mica_stat_median(y, 1) == 9);
    assert_true(x[0] == 5 && x[3] == 2); /* a copy was sorted */
    assert_true(mica_stat_mean(x, 4) == 3);
    assert_true(isnan(mica_stat_mean(x, 0)) && isnan(mica_stat_median(x, 0)));
}

/* ---- Ratios ---- */

static mica_ratio paired(const double *a, const double *b, size_t n, double margin)
{
    mica_ratio_options o = mica_ratio_options_default();
    mica_ratio r;
    mica_error err = {0};
    o.margin = margin;
    if (mica_stat_paired_ratio(a, b, n, &o, &r, &err))
        fail_msg("%s", err.message);
    return r;
}

static void verdicts(void **state)
{
    const double a[] = {10, 11, 9, 10, 10.5, 9.5}, up[] = {12, 13.1, 10.9, 12.1, 12.5, 11.5},
                 same[] = {10.2, 10.7, 9.1, 9.9, 10.4, 9.7};
    (void)state;
    mica_ratio r = paired(a, up, 6, 0);
    assert_int_equal(r.verdict, MICA_VERDICT_HIGHER);
    assert_true(r.low > 1.19 && r.low < r.ratio && r.ratio < r.high && r.high < 1.23 && r.n == 6 && r.level == 0.95);
    assert_int_equal(paired(up, a, 6, 0).verdict, MICA_VERDICT_LOWER);
    assert_int_equal(paired(a, same, 6, 0).verdict, MICA_VERDICT_NOISE);
    assert_int_equal(paired(a, up, 6, 0.25).verdict, MICA_VERDICT_NOISE); /* less than what counts */
    assert_int_equal(paired(a, up, 4, 0).verdict, MICA_VERDICT_TOO_FEW);
    r = paired(a, up, 1, 0);
    assert_true(near(r.ratio, 1.2, 1e-12) && isnan(r.low) && isnan(r.high) && r.verdict == MICA_VERDICT_TOO_FEW);
    assert_string_equal(mica_verdict_name(MICA_VERDICT_NOISE), "inside the noise");
}

/* A pair's common noise cancels; without the pairing it hides the same difference. */
static void pairing_takes_common_noise_away(void **state)
{
    const double a[] = {10, 14, 7, 12, 9, 16, 8, 11}, b[] = {10.5, 14.6, 7.4, 12.6, 9.4, 16.9, 8.4, 11.5};
    mica_ratio r;
    (void)state;
    assert_int_equal(paired(a, b, 8, 0).verdict, MICA_VERDICT_HIGHER);
    assert_int_equal(mica_stat_unpaired_ratio(a, 8, b, 8, NULL, &r, NULL), MICA_OK);
    assert_int_equal(r.verdict, MICA_VERDICT_NOISE);
    assert_true(near(r.ratio, paired(a, b, 8, 0).ratio, 1e-12));
}

static void the_seed_decides(void **state)
{
    const double a[] = {10, 11, 9, 10, 10.5, 9.5}, b[] = {12, 11, 10, 12.5, 12, 9};
    mica_ratio_options o = mica_ratio_options_default();
    mica_ratio one, two, three;
    (void)state;
    assert_int_equal(mica_stat_paired_ratio(a, b, 6, &o, &one, NULL), MICA_OK);
    assert_int_equal(mica_stat_paired_ratio(a, b, 6, &o, &two, NULL), MICA_OK);
    o.seed = 2;
    assert_int_equal(mica_stat_paired_ratio(a, b, 6, &o, &three, NULL), MICA_OK);
    assert_true(one.low == two.low && one.high == two.high && one.ratio == three.ratio);
    assert_true(one.low != three.low || one.high != three.high);
    assert_true(near(one.low, three.low, 0.02) && near(one.high, three.high, 0.02));
}

/* Of 95 % intervals about 95 % hold the truth, for few pairs too: 300 experiments for each number of pairs. */
static void intervals_cover(void **state)
{
    static const size_t sizes[] = {5, 7, 10, 20};
    mica_rng rng;
    (void)state;
    mica_rng_seed(&rng, 20261130);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int covered = 0, experiments = 300;
        for (int e = 0; e < experiments; e++) {
            double a[20], b[20];
            mica_ratio_options o = mica_ratio_options_default();
            mica_ratio r;
            o.resamples = 999;
            o.seed = (uint64_t)e;
            for (size_t i = 0; i < sizes[k]; i++) {
                a[i] = 10 * exp(0.2 * draw_normal(&rng));
                b[i] = a[i] * 1.1 * exp(0.05 * draw_normal(&rng));
            }
            assert_int_equal(mica_stat_paired_ratio(a, b, sizes[k], &o, &r, NULL), MICA_OK);
            covered += r.low <= 1.1 && 1.1 <= r.high;
        }
        print_message("%zu pairs: %.1f %% of the intervals hold the truth\n", sizes[k], 100.0 * covered / experiments);
        assert_true(covered >= (sizes[k] < 6 ? 0.88 : 0.91) * experiments && covered <= 0.995 * experiments);
    }
}

static void ratios_refuse(void **state)
{
    const double a[] = {1, 2}, zero[] = {1, 0};
    mica_ratio_options o = mica_ratio_options_default();
    mica_ratio r;
    mica_error err = {0};
    (void)state;
    assert_int_equal(mica_stat_paired_ratio(a, zero, 2, NULL, &r, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "value 1 of b is 0"));
    assert_int_equal(mica_stat_paired_ratio(a, a, 0, NULL, &r, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_stat_unpaired_ratio(a, 2, a, 0, NULL, &r, &err), MICA_INVALID_ARGUMENT);
    o.level = 1;
    assert_int_equal(mica_stat_paired_ratio(a, a, 2, &o, &r, &err), MICA_INVALID_ARGUMENT);
    o = mica_ratio_options_default();
    o.resamples = 5;
    assert_int_equal(mica_stat_paired_ratio(a, a, 2, &o, &r, &err), MICA_INVALID_ARGUMENT);
    o = mica_ratio_options_default();
    o.margin = NAN;
    assert_int_equal(mica_stat_paired_ratio(a, a, 2, &o, &r, &err), MICA_INVALID_ARGUMENT);
}

/* ---- Figures of a run ---- */

#define MS (int64_t)1000000

static mica_run_figures measure(const mica_run *run)
{
    mica_run_figures f;
    mica_error err = {0};
    if (mica_run_measure(run, NULL, &f, &err))
        fail_msg("%s", err.message);
    return f;
}

static void figures_of_a_short_run(void **state)
{
    const int64_t t[] = {2000 * MS, 2100 * MS, 2200 * MS, 2400 * MS};
    (void)state;
    mica_run_figures f =
        measure(&(mica_run){.accepted_ns = 1000 * MS, .token_ns = t, .n_tokens = 4, .n_prompt = 100, .n_cached = 20});
    assert_true(near(f.ttft_ms, 1000, 1e-12) && near(f.prefill_tps, 80, 1e-12)); /* 80 tokens were computed */
    assert_true(near(f.decode_tps, 3 / 0.4, 1e-9) && near(f.tpot_ms, 400.0 / 3, 1e-9) && near(f.itl_p50_ms, 100, 1e-9));
    assert_true(near(f.itl_max_ms, 200, 1e-9) && f.few_tokens && isnan(f.cold_tps) && isnan(f.steady_tps));
    f = measure(&(mica_run){.token_ns = t, .n_tokens = 4, .n_prompt = 100, .prefill_ns = 500 * MS});
    assert_true(near(f.prefill_tps, 200, 1e-9)); /* the runtime's own time counts */
}

static void what_cannot_be_told_is_nan(void **state)
{
    const int64_t one[] = {5 * MS}, together[] = {5 * MS, 5 * MS};
    (void)state;
    mica_run_figures f = measure(&(mica_run){.n_prompt = 7});
    assert_true(isnan(f.ttft_ms) && isnan(f.decode_tps) && isnan(f.prefill_tps) && isnan(f.tpot_ms) && isnan(f.itl_p95_ms) &&
                f.few_tokens);
    f = measure(&(mica_run){.token_ns = one, .n_tokens = 1, .n_prompt = 7});
    assert_true(near(f.ttft_ms, 5, 1e-12) && isnan(f.decode_tps) && isnan(f.tpot_ms));
    f = measure(&(mica_run){.token_ns = together, .n_tokens = 2, .n_prompt = 7, .n_cached = 7});
    assert_true(isnan(f.decode_tps) && isnan(f.prefill_tps) && f.tpot_ms == 0); /* not infinite */
}

static void cold_and_steady(void **state)
{
    enum { N = 20 * 60 + 10 * 440 };
    static int64_t t[N + 1];
    (void)state;
    for (int i = 0; i <= N; i++) /* 20 a second for a minute, then 10 */
        t[i] = 3000 * MS + (i <= 1200 ? i * 50 * MS : 60000 * MS + (i - 1200) * 100 * MS);
    mica_run_figures f = measure(&(mica_run){.token_ns = t, .n_tokens = N + 1});
    assert_true(near(f.cold_tps, 20, 1e-9) && near(f.steady_tps, 10, 1e-9) && near(f.decode_s, 500, 1e-9));
    assert_true(near(f.decode_tps, N / 500.0, 1e-9));
    f = measure(&(mica_run){.token_ns = t, .n_tokens = N + 1 - 201}); /* 479.9 s: too short to be steady */
    assert_true(isnan(f.steady_tps) && near(f.cold_tps, 20, 1e-9));
    f = measure(&(mica_run){.token_ns = t, .n_tokens = N + 1 - 200});
    assert_true(near(f.steady_tps, 10, 1e-9));
}

static void runs_refuse(void **state)
{
    const int64_t t[] = {5, 6, 4};
    mica_run_figures f;
    mica_error err = {0};
    (void)state;
    assert_int_equal(mica_run_measure(&(mica_run){.token_ns = t, .n_tokens = 3}, NULL, &f, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "backwards at token 2"));
    assert_int_equal(mica_run_measure(&(mica_run){.accepted_ns = 6, .token_ns = t, .n_tokens = 2}, NULL, &f, &err),
                     MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_run_measure(&(mica_run){.token_ns = t, .n_tokens = 2, .n_prompt = 1, .n_cached = 2}, NULL, &f, &err),
                     MICA_INVALID_ARGUMENT);
    mica_run_windows w = {.cold_s = 0, .steady_s = 1, .steady_min_s = 1};
    assert_int_equal(mica_run_measure(&(mica_run){.token_ns = t, .n_tokens = 2}, &w, &f, &err), MICA_INVALID_ARGUMENT);
}

/* ---- Rate over time ---- */

static void rates_spread_tokens_over_gaps(void **state)
{
    const int64_t t[] = {0, 500 * MS, 2500 * MS, 2500 * MS, 3000 * MS};
    double *rates;
    size_t n;
    (void)state;
    assert_int_equal(mica_rate_series(t, 5, 1, &rates, &n, NULL), MICA_OK);
    assert_int_equal(n, 3);
    assert_true(near(rates[0], 1.25, 1e-9) && near(rates[1], 0.5, 1e-9) && near(rates[2], 2.25, 1e-9));
    assert_true(near(rates[0] + rates[1] + rates[2], 4, 1e-9)); /* no token is lost */
    free(rates);
}

static void rates_keep_the_mean(void **state)
{
    trace_truth x;
    size_t n, count;
    double *rates, sum = 0;
    int64_t *t = make_trace(5, SHAPE_FLAT, NOISE_GC | NOISE_HEAVY, &x, &n);
    (void)state;
    assert_non_null(t);
    assert_int_equal(mica_rate_series(t, n, 0.5, &rates, &count, NULL), MICA_OK);
    for (size_t i = 0; i < count; i++)
        sum += rates[i] * 0.5;
    assert_true(sum <= (double)(n - 1) + 1e-6 && sum >= (double)(n - 1) - x.rate); /* but for the last, broken bin */
    free(rates);
    free(t);
}

static void rates_refuse(void **state)
{
    const int64_t t[] = {0, INT64_MAX}, back[] = {2, 1};
    double *rates = NULL;
    size_t n;
    mica_error err = {0};
    (void)state;
    assert_int_equal(mica_rate_series(t, 2, 1e-3, &rates, &n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_rate_series(back, 2, 1, &rates, &n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_rate_series(t, 2, 0, &rates, &n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_rate_series(t, 2, NAN, &rates, &n, &err), MICA_INVALID_ARGUMENT);
    assert_null(rates);
    assert_int_equal(mica_rate_series(t, 1, 1, &rates, &n, &err), MICA_OK);
    assert_int_equal(n, 0);
    free(rates);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_interpolate), cmocka_unit_test(medians_and_means),
        cmocka_unit_test(verdicts), cmocka_unit_test(pairing_takes_common_noise_away),
        cmocka_unit_test(the_seed_decides), cmocka_unit_test(intervals_cover),
        cmocka_unit_test(ratios_refuse), cmocka_unit_test(figures_of_a_short_run),
        cmocka_unit_test(what_cannot_be_told_is_nan), cmocka_unit_test(cold_and_steady),
        cmocka_unit_test(runs_refuse), cmocka_unit_test(rates_spread_tokens_over_gaps),
        cmocka_unit_test(rates_keep_the_mean), cmocka_unit_test(rates_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
