#include "bench/campaign_figures.h"

#include <math.h>
#include <stdlib.h>

#include "mica/mica_ops.h"

/* Bins of equal ratio from 1 us to an hour. */
enum { BINS = 4096 };
#define FIRST_MS 1e-3
#define LAST_MS  3.6e6

#define MAX_SECONDS ((int64_t)400 * 86400) /* of computing, whose rates are kept: more than a year */

typedef struct histogram {
    uint64_t n, bin[BINS];
    double sum_ms;
} histogram;

typedef struct work {
    mica_store *store;
    const char *id;
    histogram ttft, itl;
    double *rates; /* tokens of replies in each second of computing, shard behind shard */
    size_t n_rates, capacity;
    int64_t base_ns; /* computing time of the shards before */
    int64_t tokens, reply_tokens, measured_tokens, peak_rss;
    double joules;
} work;

static void put(histogram *h, double ns)
{
    double ms = fmax(ns / 1e6, FIRST_MS);
    double at = log(ms / FIRST_MS) / log(LAST_MS / FIRST_MS) * BINS;
    h->bin[at < BINS - 1 ? (size_t)at : BINS - 1]++;
    h->n++;
    h->sum_ms += ms;
}

static double percentile(const histogram *h, double p)
{
    uint64_t rank = (uint64_t)ceil(p * (double)h->n), seen = 0;
    for (size_t i = 0; i < BINS && h->n > 0; i++)
        if ((seen += h->bin[i]) >= rank)
            return FIRST_MS * pow(LAST_MS / FIRST_MS, ((double)i + 0.5) / BINS);
    return NAN;
}

/* ---- Reading ---- */

/* For a further shard of wall_ns. */
static mica_status make_room(work *w, int64_t wall_ns, mica_error *err)
{
    if (wall_ns < 0 || wall_ns > MAX_SECONDS * 1000000000 - w->base_ns)
        return mica_fail(err, MICA_BAD_FILE, "the campaign's shards took more than %lld s of computing: that cannot be",
                         (long long)MAX_SECONDS);
    size_t n = (size_t)((w->base_ns + wall_ns) / 1000000000) + 1;
    if (n > w->capacity) {
        size_t capacity = 2 * n + 1024;
        double *grown = realloc(w->rates, capacity * sizeof *grown);
        if (!grown)
            return mica_fail_nomem(err, capacity * sizeof *grown, "a campaign's rate over time");
        w->rates = grown;
        w->capacity = capacity;
    }
    for (; w->n_rates < n; w->n_rates++)
        w->rates[w->n_rates] = 0.0;
    return MICA_OK;
}

static void add_answer(work *w, const mica_answer *a, const int64_t *times, int64_t origin_ns, int64_t wall_ns)
{
    for (size_t i = 0; i < a->n; i++) {
        double at_ns = (double)times[i] - (double)origin_ns; /* stored times are any: their difference might not fit */
        put(i == 0 ? &w->ttft : &w->itl, (double)times[i] - (double)(i == 0 ? a->started_ns : times[i - 1]));
        bool inside = at_ns >= 0.0 && at_ns <= (double)wall_ns;
        size_t second = inside ? (size_t)((w->base_ns + (int64_t)at_ns) / 1000000000) : SIZE_MAX;
        if (second < w->n_rates)
            w->rates[second] += 1.0;
    }
}

static void add_memory(work *w, const json_t *samples)
{
    json_t *sample;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)samples, i, sample)
    {
        int64_t rss = json_integer_value(json_object_get(sample, "rss_bytes"));
        w->peak_rss = rss > w->peak_rss ? rss : w->peak_rss;
    }
}

static mica_status add_shard(void *user, const mica_shard_row *row, mica_error *err)
{
    work *w = user;
    mica_shard_result result;
    if (!row->done)
        return MICA_OK;
    mica_status status = mica_campaign_store_result(w->store, w->id, row, &result, err);
    if (status)
        return status;
    int64_t tokens = row->sums.prompt_tokens + row->sums.reply_tokens, origin_ns = result.n ? result.answers[0].started_ns : 0;
    status = make_room(w, row->wall_ns, err);
    for (size_t i = 0; i < result.n && !status; i++)
        add_answer(w, &result.answers[i], result.times + result.answers[i].first, origin_ns, row->wall_ns);
    add_memory(w, result.samples);
    mica_shard_result_free(&result);
    w->base_ns += status ? 0 : row->wall_ns;
    w->tokens += tokens;
    w->reply_tokens += row->sums.reply_tokens;
    if (isfinite(row->sums.joules)) {
        w->joules += row->sums.joules;
        w->measured_tokens += tokens;
    }
    return status;
}

/* ---- Telling ---- */

static void set(json_t *figures, const char *name, double value)
{
    json_object_set_new(figures, name, isfinite(value) ? json_real(value) : json_null());
}

/* Tokens a second in [from, from + n) of the whole seconds. */
static double mean_rate(const work *w, size_t whole, size_t from, size_t n)
{
    return n > 0 && from + n <= whole ? mica_stat_mean(w->rates + from, n) : NAN;
}

static mica_status tell_rates(const work *w, json_t *figures, mica_error *err)
{
    mica_throttle t = {.too_short = true};
    double seconds = (double)w->base_ns / 1e9, depth = NAN;
    size_t whole = (size_t)(w->base_ns / 1000000000); /* the last second is not a whole one */
    mica_status status = whole > 0 ? mica_throttle_find(w->rates, whole, 1.0, NULL, &t, err) : MICA_OK;
    if (status)
        return status;
    if (!t.too_short)
        depth = t.throttled ? 100.0 * t.changes[t.worst].depth : 0.0;
    set(figures, "tps", seconds > 0.0 ? (double)w->tokens / seconds : NAN);
    set(figures, "decode_tps", seconds > 0.0 ? (double)w->reply_tokens / seconds : NAN);
    set(figures, "cold_tps", mean_rate(w, whole, 0, 60));
    set(figures, "steady_tps", whole >= 480 ? mean_rate(w, whole, whole - 180, 180) : NAN);
    set(figures, "throttle_depth_pct", depth);
    return MICA_OK;
}

static mica_status tell(const work *w, json_t *figures, mica_error *err)
{
    double wh = mica_wh_of_joules((mica_joules){w->joules}).v;
    set(figures, "ttft_p50_ms", percentile(&w->ttft, 0.50));
    set(figures, "ttft_p95_ms", percentile(&w->ttft, 0.95));
    set(figures, "itl_p50_ms", percentile(&w->itl, 0.50));
    set(figures, "itl_p95_ms", percentile(&w->itl, 0.95));
    set(figures, "itl_p99_ms", percentile(&w->itl, 0.99));
    set(figures, "tpot_ms", w->itl.n > 0 ? w->itl.sum_ms / (double)w->itl.n : NAN);
    set(figures, "peak_rss_bytes", w->peak_rss > 0 ? (double)w->peak_rss : NAN);
    set(figures, "energy_wh_per_1k",
        w->measured_tokens > 0 && w->joules > 0.0 ? wh * 1000.0 / (double)w->measured_tokens : NAN);
    return tell_rates(w, figures, err);
}

mica_status mica_campaign_figures(mica_store *store, const char *id, json_t **figures, mica_error *err)
{
    work *w = calloc(1, sizeof *w);
    *figures = json_object();
    if (!w || !*figures) {
        free(w);
        json_decref(*figures);
        *figures = NULL;
        return mica_fail_nomem(err, sizeof *w, "a campaign's figures");
    }
    w->store = store;
    w->id = id;
    mica_status status = mica_campaign_store_shards(store, id, add_shard, w, err);
    if (!status)
        status = tell(w, *figures, err);
    if (status) {
        json_decref(*figures);
        *figures = NULL;
    }
    free(w->rates);
    free(w);
    return status;
}
