/* report_charts.c - what the page of a report draws of one run: rates over time, the histogram of times between tokens,
 * memory, the point under the roofline. All from the samples, by the functions that the summary uses; null is what is not
 * known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/json.h"
#include "bench/report_impl.h"
#include "bench/summary.h"

enum {
    MAX_BINS = 400,   /* of a rate, and points of a line: more than a chart has pixels to tell apart */
    PER_DECADE = 40,  /* bins of the histogram, each 5.9 % wider than the one before */
    LOWEST_BIN = -120 /* 1 us: tokens of one event share a time */
};

/* ---- Rates ---- */

/* The narrowest bin of a readable size that keeps to MAX_BINS. */
static double bin_of(double seconds)
{
    static const double sizes[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (seconds / sizes[i] <= MAX_BINS)
            return sizes[i];
    return seconds / MAX_BINS;
}

static mica_status rates_of(const int64_t *times, size_t n, json_t **out, mica_error *err)
{
    double *rates, bin_s;
    size_t count;
    *out = json_null();
    if (n < 2 || times[n - 1] <= 0)
        return MICA_OK;
    bin_s = bin_of((double)times[n - 1] / 1e9);
    mica_status status = mica_rate_series(times, n, bin_s, &rates, &count, err);
    if (status)
        return status;
    json_t *values = json_array();
    for (size_t i = 0; i < count; i++)
        mica_json_add(&values, isfinite(rates[i]) ? json_real(rates[i]) : json_null());
    mica_free(rates);
    if (count > 0)
        *out = json_pack("{s:f, s:o}", "bin_s", bin_s, "values", values);
    else
        json_decref(values);
    return MICA_OK;
}

/* ---- Times between tokens ---- */

static int bin_index(int64_t gap_ns)
{
    double ms = (double)gap_ns / 1e6;
    double at = ms > 0.0 ? floor(log10(ms) * PER_DECADE) : (double)LOWEST_BIN;
    return at < (double)LOWEST_BIN ? LOWEST_BIN : (int)at;
}

/* Bin k counts times from 10^((first + k) / per_decade) ms on. Of a runtime whose events are no tokens there is none. */
static mica_status histogram_of(const int64_t *times, size_t n, json_t **out, mica_error *err)
{
    enum { BINS = 13 * PER_DECADE }; /* up to 10^10 ms */
    *out = json_null();
    if (n < 2)
        return MICA_OK;
    int64_t *counts = mica_new_array(BINS, sizeof *counts);
    if (!counts)
        return mica_fail_nomem(err, BINS * sizeof *counts, "a histogram");
    int first = BINS - 1, last = 0;
    for (size_t i = 1; i < n; i++) {
        int k = bin_index(times[i] - times[i - 1]) - LOWEST_BIN;
        k = k < BINS ? k : BINS - 1;
        counts[k]++;
        first = k < first ? k : first;
        last = k > last ? k : last;
    }
    json_t *list = json_array();
    for (int k = first; k <= last; k++)
        mica_json_add(&list, json_integer((json_int_t)counts[k]));
    free(counts);
    *out = json_pack("{s:i, s:i, s:o}", "per_decade", PER_DECADE, "first", first + LOWEST_BIN, "counts", list);
    return MICA_OK;
}

static bool is_exact(const mica_record *record)
{
    bool exact = true;
    for (size_t i = 0; i < record->n_series; i++)
        exact &= record->series[i].exact;
    return exact;
}

/* ---- Memory ---- */

/* How many samples there are until the last reply was done; later ones are not of the model. All, if clocks differ. */
static size_t samples_of_replies(const mica_record *record)
{
    size_t n = json_array_size(record->samples);
    if (record->n_series == 0 || json_is_true(json_object_get(json_object_get(record->head, "runtime"), "other_clock")))
        return n;
    json_int_t end_ns = (json_int_t)record->series[record->n_series - 1].done_ns;
    while (n > 1 && json_integer_value(json_object_get(json_array_get(record->samples, n - 1), "t_ns")) > end_ns)
        n--;
    return n;
}

/* Resident bytes over the seconds since the first sample. Of several samples that fall on one point the highest counts. */
static json_t *memory_of(const mica_record *record)
{
    size_t n = samples_of_replies(record), stride = n / MAX_BINS + 1, held = 0;
    json_t *times = json_array(), *bytes = json_array(), *sample;
    json_int_t start_ns = json_integer_value(json_object_get(json_array_get(record->samples, 0), "t_ns"));
    json_int_t highest = -1, t_ns = 0;
    for (size_t i = 0; i < n; i++) {
        sample = json_array_get(record->samples, i);
        const json_t *rss = json_object_get(sample, "rss_bytes");
        if (json_is_integer(rss) && json_integer_value(rss) > highest) {
            highest = json_integer_value(rss);
            t_ns = json_integer_value(json_object_get(sample, "t_ns"));
        }
        if (++held < stride && i + 1 < n)
            continue;
        if (highest >= 0) {
            mica_json_add(&times, json_real(((double)t_ns - (double)start_ns) / 1e9));
            mica_json_add(&bytes, json_integer(highest));
        }
        held = 0;
        highest = -1;
    }
    if (json_array_size(times) > 0)
        return json_pack("{s:o, s:o}", "t_s", times, "rss_bytes", bytes);
    json_decref(times);
    json_decref(bytes);
    return json_null();
}

/* ---- The whole ---- */

static json_t *roofline_of(const json_t *figures)
{
    const json_t *rate = json_object_get(figures, "steady_tps"), *pct = json_object_get(figures, "roofline_pct");
    json_t *bytes = json_object_get(figures, "bytes_per_token"), *read = json_object_get(figures, "read_bytes_per_s");
    rate = json_is_number(rate) ? rate : json_object_get(figures, "decode_tps");
    if (!json_is_number(pct) || !json_is_number(rate) || !(json_number_value(rate) > 0.0))
        return json_null();
    return json_pack("{s:O, s:O, s:f}", "bytes_per_token", bytes, "read_bytes_per_s", read, "tps", json_number_value(rate));
}

mica_status mica_report_charts(const mica_record *record, const json_t *figures, json_t **charts, mica_error *err)
{
    int64_t *times;
    size_t n;
    json_t *rate = NULL, *itl = NULL, *throttle = json_object_get(figures, "throttle");
    mica_error own;
    mica_status status = mica_summary_join(record, &times, &n, &own);
    if (status == MICA_OUT_OF_MEMORY)
        return mica_fail(err, status, "%s", own.message);
    if (status) { /* samples that contradict themselves; the complaints say it */
        times = NULL;
        n = 0;
    }
    status = rates_of(times, n, &rate, &own);
    if (status == MICA_OUT_OF_MEMORY)
        mica_fail(err, status, "%s", own.message);
    else /* another failure: a clock that went backwards, of which there are no figures either */
        status = is_exact(record) ? histogram_of(times, n, &itl, err) : MICA_OK;
    free(times);
    if (status) {
        json_decref(rate);
        return status;
    }
    *charts = json_pack("{s:o, s:o, s:o, s:o, s:O}", "rate", rate, "itl", itl ? itl : json_null(), "memory", memory_of(record),
                        "roofline", roofline_of(figures), "throttle", throttle ? throttle : json_null());
    return *charts ? MICA_OK : mica_fail_nomem(err, 1024, "a report");
}
