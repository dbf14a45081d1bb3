/* run.c - the figures of one recorded generation, and its rate over time. Pure functions over token times. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "mica/mica_ops.h"

#define MAX_BINS ((size_t)1 << 22) /* 48 days of seconds; refuses a bin width that would ask for all memory */

mica_run_windows mica_run_windows_default(void)
{
    return (mica_run_windows){.cold_s = 60, .steady_s = 180, .steady_min_s = 480};
}

static mica_status check_times(const int64_t *t, size_t n, int64_t not_before, mica_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (t[i] < (i ? t[i - 1] : not_before))
            return mica_fail_at(err, MICA_INVALID_ARGUMENT, (int64_t)i,
                                "the clock went backwards at token %zu: %lld ns after %lld ns", i, (long long)t[i],
                                (long long)(i ? t[i - 1] : not_before));
    }
    return MICA_OK;
}

/* a / b, or NAN where that is no number. */
static double quotient(double a, double b) { return b > 0 ? a / b : NAN; }

/* Tokens later than `from` and not later than `to`, per second of that time. */
static double window_rate(const int64_t *t, size_t n, int64_t from, int64_t to)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += t[i] > from && t[i] <= to;
    return quotient((double)count, (double)(to - from) * 1e-9);
}

static void measure_gaps(const int64_t *t, size_t n_gaps, double *gaps, mica_run_figures *f)
{
    for (size_t i = 0; i < n_gaps; i++)
        gaps[i] = (double)(t[i + 1] - t[i]) * 1e-6;
    f->tpot_ms = mica_stat_mean(gaps, n_gaps);
    mica_stat_sort(gaps, n_gaps);
    f->itl_p50_ms = mica_stat_percentile(gaps, n_gaps, 0.50);
    f->itl_p90_ms = mica_stat_percentile(gaps, n_gaps, 0.90);
    f->itl_p95_ms = mica_stat_percentile(gaps, n_gaps, 0.95);
    f->itl_p99_ms = mica_stat_percentile(gaps, n_gaps, 0.99);
    f->itl_max_ms = mica_stat_percentile(gaps, n_gaps, 1);
}

static void measure_decode(const mica_run *run, const mica_run_windows *w, mica_run_figures *f)
{
    const int64_t *t = run->token_ns;
    int64_t first = t[0], last = t[run->n_tokens - 1];
    f->decode_s = (double)(last - first) * 1e-9;
    f->decode_tps = quotient((double)(run->n_tokens - 1), f->decode_s);
    if (f->decode_s >= w->cold_s)
        f->cold_tps = window_rate(t, run->n_tokens, first, first + (int64_t)(w->cold_s * 1e9));
    if (f->decode_s >= w->steady_min_s && f->decode_s >= w->steady_s)
        f->steady_tps = window_rate(t, run->n_tokens, last - (int64_t)(w->steady_s * 1e9), last);
}

mica_status mica_run_measure(const mica_run *run, const mica_run_windows *windows, mica_run_figures *out, mica_error *err)
{
    mica_run_windows w = windows ? *windows : mica_run_windows_default();
    *out = (mica_run_figures){.ttft_ms = NAN, .prefill_tps = NAN, .decode_tps = NAN, .tpot_ms = NAN, .itl_p50_ms = NAN,
                              .itl_p90_ms = NAN, .itl_p95_ms = NAN, .itl_p99_ms = NAN, .itl_max_ms = NAN, .cold_tps = NAN,
                              .steady_tps = NAN, .decode_s = NAN, .few_tokens = run->n_tokens < MICA_RUN_MIN_TOKENS};
    if (run->n_prompt < 0 || run->n_cached < 0 || run->n_cached > run->n_prompt || run->prefill_ns < 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a prompt of %lld tokens, %lld of them from a cache, in %lld ns cannot be",
                         (long long)run->n_prompt, (long long)run->n_cached, (long long)run->prefill_ns);
    if (!(w.cold_s > 0 && w.cold_s < 1e9 && w.steady_s > 0 && w.steady_s < 1e9 && w.steady_min_s >= 0))
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the windows of the cold and the steady rate must be above 0 s and below 1e9 s");
    mica_status status = check_times(run->token_ns, run->n_tokens, run->accepted_ns, err);
    if (status || run->n_tokens == 0)
        return status;
    int64_t ttft_ns = run->token_ns[0] - run->accepted_ns;
    out->ttft_ms = (double)ttft_ns * 1e-6;
    out->prefill_tps = run->n_prompt > run->n_cached ? quotient((double)(run->n_prompt - run->n_cached),
                                                                (double)(run->prefill_ns ? run->prefill_ns : ttft_ns) * 1e-9)
                                                     : NAN;
    size_t n_gaps = run->n_tokens - 1;
    double *gaps = mica_new_array(n_gaps, sizeof *gaps);
    if (!gaps)
        return mica_fail_nomem(err, n_gaps * sizeof *gaps, "the gaps between tokens");
    measure_gaps(run->token_ns, n_gaps, gaps, out);
    measure_decode(run, &w, out);
    free(gaps);
    return MICA_OK;
}

/* ---- Rate over time ---- */

/* Adds one token, spread over [from, to) seconds, to the bins. */
static void spread(double from, double to, double bin_s, double *rates, size_t count)
{
    size_t first = (size_t)(from / bin_s), last = (size_t)(to / bin_s);
    if (to <= from) { /* several tokens at one time */
        if (first < count)
            rates[first] += 1 / bin_s;
        return;
    }
    for (size_t i = first; i <= last && i < count; i++) {
        double low = (double)i * bin_s, high = low + bin_s;
        low = low > from ? low : from;
        high = high < to ? high : to;
        if (high > low)
            rates[i] += (high - low) / (to - from) / bin_s;
    }
}

mica_status mica_rate_series(const int64_t *token_ns, size_t n, double bin_s, double **rates, size_t *count, mica_error *err)
{
    *rates = NULL;
    *count = 0;
    if (!(bin_s > 0 && isfinite(bin_s)))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "bins of %g s: their width must be above 0", bin_s);
    mica_status status = n ? check_times(token_ns, n, token_ns[0], err) : MICA_OK;
    if (status)
        return status;
    double bins = n ? (double)(token_ns[n - 1] - token_ns[0]) * 1e-9 / bin_s : 0;
    if (bins > (double)MAX_BINS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "bins of %g s would be more than %zu", bin_s, MAX_BINS);
    /* A last bin that is full but for rounding counts: a token's last nanosecond must not cost a bin. */
    size_t whole = (size_t)(bins + 1e-9);
    *rates = mica_new_array(whole, sizeof **rates);
    if (!*rates)
        return mica_fail_nomem(err, whole * sizeof **rates, "the rate over time");
    for (size_t i = 1; i < n; i++)
        spread((double)(token_ns[i - 1] - token_ns[0]) * 1e-9, (double)(token_ns[i] - token_ns[0]) * 1e-9, bin_s, *rates,
               whole);
    *count = whole;
    return MICA_OK;
}
