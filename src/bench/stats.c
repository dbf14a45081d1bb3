/* stats.c - percentiles, ratios with their intervals, and the figures of a run. Pure functions.
 *
 * Ratios: the geometric mean, because a ratio and its inverse are then equally far from 1. The interval is the percentile
 * bootstrap (B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13) of the mean log ratio, with the
 * expanded percentiles of T. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69(4),
 * 2015, section 3.2: the plain one is too narrow for a handful of pairs, by sqrt((n - 1) / n) and by a normal in place of
 * Student's t.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/rng.h"
#include "mica/mica_ops.h"

/* ---- Order ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void mica_stat_sort(double *values, size_t n)
{
    if (n > 1)
        qsort(values, n, sizeof *values, ascending);
}

double mica_stat_percentile(const double *sorted, size_t n, double p)
{
    if (n == 0 || !(p >= 0 && p <= 1))
        return NAN;
    double h = (double)(n - 1) * p;
    size_t low = (size_t)h;
    if (low + 1 >= n)
        return sorted[n - 1];
    return sorted[low] + (h - (double)low) * (sorted[low + 1] - sorted[low]);
}

double mica_stat_mean(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return n ? sum / (double)n : NAN;
}

double mica_stat_median(const double *values, size_t n)
{
    double *copy = n ? malloc(n * sizeof *copy) : NULL;
    if (!copy)
        return NAN;
    memcpy(copy, values, n * sizeof *copy);
    mica_stat_sort(copy, n);
    double median = mica_stat_percentile(copy, n, 0.5);
    free(copy);
    return median;
}

/* ---- Student's t ---- */

/* P(|T| <= t) for whole degrees of freedom, a finite sum: Abramowitz and Stegun, 26.7.3 and 26.7.4. */
static double t_within(double t, int64_t df)
{
    double angle = atan(t / sqrt((double)df)), c = cos(angle), s = sin(angle), term, sum;
    if (df % 2 == 1) {
        term = df > 1 ? c : 0;
        sum = term;
        for (int64_t k = 3; k <= df - 2; k += 2) {
            term *= (double)(k - 1) / (double)k * c * c;
            sum += term;
        }
        return 2 / M_PI * (angle + s * sum);
    }
    term = sum = 1;
    for (int64_t k = 2; k <= df - 2; k += 2) {
        term *= (double)(k - 1) / (double)k * c * c;
        sum += term;
    }
    return s * sum;
}

/* t with P(|T| <= t) = level, by halving; 60 halvings of [0, 1e6] are more than double can tell apart. */
static double t_quantile(double level, int64_t df)
{
    double low = 0, high = 1e6;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (t_within(middle, df) < level)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* The percentile that stands for (1 - level) / 2 with n values. Beyond 500 the correction is below the bootstrap's own noise.
 */
static double expanded_tail(double level, size_t n)
{
    if (n < 2 || n > 500)
        return (1 - level) / 2;
    double z = t_quantile(level, (int64_t)n - 1) * sqrt((double)n / (double)(n - 1));
    return erfc(z / M_SQRT2) / 2;
}

/* ---- Ratios ---- */

mica_ratio_options mica_ratio_options_default(void)
{
    return (mica_ratio_options){.struct_size = sizeof(mica_ratio_options), .level = 0.95, .resamples = 9999, .seed = 1};
}

const char *mica_verdict_name(mica_verdict verdict)
{
    switch (verdict) {
    case MICA_VERDICT_TOO_FEW: return "too few";
    case MICA_VERDICT_NOISE: return "inside the noise";
    case MICA_VERDICT_HIGHER: return "higher";
    case MICA_VERDICT_LOWER: return "lower";
    }
    return "too few";
}

static mica_status check_options(const mica_ratio_options *o, mica_error *err)
{
    if (!(o->level > 0.5 && o->level < 1))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the confidence level is %g, outside 0.5..1", o->level);
    if (!(o->margin >= 0 && o->margin < 10))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the margin is %g, outside 0..10", o->margin);
    if (o->resamples < 100 || o->resamples > 1000000)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%d resamples are outside 100..1000000", (int)o->resamples);
    return MICA_OK;
}

static mica_status take_logs(const double *values, size_t n, const char *name, double *out, mica_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!(values[i] > 0 && isfinite(values[i])))
            return mica_fail_at(err, MICA_INVALID_ARGUMENT, (int64_t)i,
                                "value %zu of %s is %g: only numbers above 0 have ratios", i, name, values[i]);
        out[i] = log(values[i]);
    }
    return MICA_OK;
}

/* The mean of n values drawn from x with replacement. 53 random bits for an index: the bias is below n / 2^53. */
static double resampled_mean(const double *x, size_t n, mica_rng *rng)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[(size_t)(mica_rng_unit(rng) * (double)n)];
    return sum / (double)n;
}

static mica_verdict judge(const mica_ratio *r, double margin)
{
    if (r->n < MICA_STAT_MIN_PAIRS)
        return MICA_VERDICT_TOO_FEW;
    if (r->low > 1 + margin)
        return MICA_VERDICT_HIGHER;
    if (r->high < 1 / (1 + margin))
        return MICA_VERDICT_LOWER;
    return MICA_VERDICT_NOISE;
}

/* The ratio e^(mean y - mean x), x being optional: [n_x] and [n_y] logarithms. */
static mica_status bootstrap(const double *x, size_t n_x, const double *y, size_t n_y, const mica_ratio_options *o,
                             mica_ratio *out, mica_error *err)
{
    size_t n = x && n_x < n_y ? n_x : n_y, resamples = (size_t)o->resamples;
    double *means = mica_new_array(resamples, sizeof *means);
    if (!means)
        return mica_fail_nomem(err, resamples * sizeof *means, "the bootstrap");
    mica_rng rng;
    mica_rng_seed(&rng, o->seed);
    *out = (mica_ratio){.level = o->level, .n = n, .low = NAN, .high = NAN};
    out->ratio = exp(mica_stat_mean(y, n_y) - (x ? mica_stat_mean(x, n_x) : 0));
    if (n >= 2) {
        for (size_t i = 0; i < resamples; i++)
            means[i] = resampled_mean(y, n_y, &rng) - (x ? resampled_mean(x, n_x, &rng) : 0);
        mica_stat_sort(means, resamples);
        double tail = expanded_tail(o->level, n);
        out->low = exp(mica_stat_percentile(means, resamples, tail));
        out->high = exp(mica_stat_percentile(means, resamples, 1 - tail));
    }
    out->verdict = judge(out, o->margin);
    free(means);
    return MICA_OK;
}

mica_status mica_stat_paired_ratio(const double *a, const double *b, size_t n, const mica_ratio_options *options,
                                   mica_ratio *out, mica_error *err)
{
    mica_ratio_options o = options ? *options : mica_ratio_options_default();
    mica_status status = check_options(&o, err);
    if (status)
        return status;
    if (n == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there are no pairs to compare");
    double *logs = mica_new_array(n, 2 * sizeof *logs);
    if (!logs)
        return mica_fail_nomem(err, n * 2 * sizeof *logs, "the comparison");
    status = take_logs(a, n, "a", logs, err);
    if (!status)
        status = take_logs(b, n, "b", logs + n, err);
    for (size_t i = 0; !status && i < n; i++)
        logs[i] = logs[n + i] - logs[i];
    if (!status)
        status = bootstrap(NULL, 0, logs, n, &o, out, err);
    free(logs);
    return status;
}

mica_status mica_stat_unpaired_ratio(const double *a, size_t n_a, const double *b, size_t n_b,
                                     const mica_ratio_options *options, mica_ratio *out, mica_error *err)
{
    mica_ratio_options o = options ? *options : mica_ratio_options_default();
    mica_status status = check_options(&o, err);
    size_t n;
    if (status)
        return status;
    if (n_a == 0 || n_b == 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is nothing to compare: %zu values of a, %zu of b", n_a, n_b);
    double *logs = mica_add_size(n_a, n_b, &n) ? mica_new_array(n, sizeof *logs) : NULL;
    if (!logs)
        return mica_fail_nomem(err, (n_a + n_b) * sizeof *logs, "the comparison");
    status = take_logs(a, n_a, "a", logs, err);
    if (!status)
        status = take_logs(b, n_b, "b", logs + n_a, err);
    if (!status)
        status = bootstrap(logs, n_a, logs + n_a, n_b, &o, out, err);
    free(logs);
    return status;
}
