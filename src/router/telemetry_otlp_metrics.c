/* telemetry_otlp_metrics.c - histograms and sums of replies, cumulated since the process began, for each operation, model and
 * kind of error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/json.h"
#include "router/telemetry_otlp.h"

enum { CUMULATIVE = 2 }; /* AggregationTemporality of opentelemetry.proto.metrics.v1 */

#define SERIES 32
#define NAME_BYTES 128
#define MAX_BOUNDS 16

/* The conventions give each histogram its bounds. */
static const double token_bounds[] = {1,     4,     16,     64,      256,     1024,     4096,
                                      16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864};
static const double duration_bounds[] = {0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                         1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
static const double ttft_bounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                     0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10.0};
static const double tpot_bounds[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5};

typedef enum histogram_id { TOKENS_IN, TOKENS_OUT, DURATION, TTFT, TPOT, N_HISTOGRAMS } histogram_id;

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct definition {
    const char *name, *unit, *description;
    const char *token_type; /* gen_ai.token.type; NULL: none */
    const double *bounds;
    size_t n_bounds;
} definitions[N_HISTOGRAMS] = {
    [TOKENS_IN] = {"gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", "input", token_bounds,
                   COUNT(token_bounds)},
    [TOKENS_OUT] = {"gen_ai.client.token.usage", "{token}", "", "output", token_bounds, COUNT(token_bounds)},
    [DURATION] = {"gen_ai.client.operation.duration", "s", "GenAI operation duration.", NULL, duration_bounds,
                  COUNT(duration_bounds)},
    [TTFT] = {"gen_ai.server.time_to_first_token", "s", "Time to generate first token for successful responses.", NULL,
              ttft_bounds, COUNT(ttft_bounds)},
    [TPOT] = {"gen_ai.server.time_per_output_token", "s",
              "Time per output token generated after the first token for successful responses.", NULL, tpot_bounds,
              COUNT(tpot_bounds)},
};

typedef struct histogram {
    uint64_t counts[MAX_BOUNDS + 1], n;
    double sum, least, most;
} histogram;

typedef struct series {
    char operation[NAME_BYTES], model[NAME_BYTES], error[NAME_BYTES];
    histogram histograms[N_HISTOGRAMS];
    double joules;
    uint64_t n_joules, throttled;
    int64_t peak_rss_bytes;
} series;

struct mica_otlp_metrics {
    int64_t started_unix_ns;
    size_t n;
    series series[SERIES];
};

mica_otlp_metrics *mica_otlp_metrics_new(int64_t started_unix_ns)
{
    mica_otlp_metrics *m = mica_new_array(1, sizeof *m);
    if (m)
        m->started_unix_ns = started_unix_ns;
    return m;
}

void mica_otlp_metrics_free(mica_otlp_metrics *m) { free(m); }

/* ---- Counting ---- */

static void count(histogram *h, const struct definition *d, double value)
{
    size_t i = 0;
    if (!isfinite(value))
        return;
    while (i < d->n_bounds && value > d->bounds[i])
        i++;
    h->counts[i]++;
    h->least = h->n == 0 || value < h->least ? value : h->least;
    h->most = h->n == 0 || value > h->most ? value : h->most;
    h->sum += value;
    h->n++;
}

/* The last series is for all that there is no other for. */
static series *series_of(mica_otlp_metrics *m, const mica_telemetry_event *e)
{
    char model[NAME_BYTES], operation[NAME_BYTES], error[NAME_BYTES];
    snprintf(operation, sizeof operation, "%s", e->operation);
    snprintf(model, sizeof model, "%s", e->model);
    snprintf(error, sizeof error, "%s", e->error);
    for (size_t i = 0; i < m->n; i++) {
        series *s = &m->series[i];
        if (strcmp(s->model, model) == 0 && strcmp(s->operation, operation) == 0 && strcmp(s->error, error) == 0)
            return s;
    }
    if (m->n == SERIES)
        return &m->series[SERIES - 1];
    series *s = &m->series[m->n++];
    bool last = m->n == SERIES;
    snprintf(s->operation, sizeof s->operation, "%s", last ? "other" : operation);
    snprintf(s->model, sizeof s->model, "%s", last ? "other" : model);
    snprintf(s->error, sizeof s->error, "%s", last ? "" : error);
    return s;
}

void mica_otlp_metrics_add(mica_otlp_metrics *m, const mica_telemetry_event *e)
{
    series *s = series_of(m, e);
    bool good = !*e->error;
    const double values[N_HISTOGRAMS] = {[TOKENS_IN] = e->prompt_n,
                                         [TOKENS_OUT] = e->gen_n,
                                         [DURATION] = e->duration_ms / 1e3,
                                         [TTFT] = good ? e->ttft_ms / 1e3 : NAN,
                                         [TPOT] = good && e->gen_n > 1 ? e->tpot_ms / 1e3 : NAN};
    for (int i = 0; i < N_HISTOGRAMS; i++)
        count(&s->histograms[i], &definitions[i], values[i]);
    s->throttled += e->throttled == MICA_YES;
    if (isfinite(e->joules)) {
        s->joules += e->joules;
        s->n_joules++;
    }
    s->peak_rss_bytes = e->peak_rss_bytes > s->peak_rss_bytes ? e->peak_rss_bytes : s->peak_rss_bytes;
}

/* ---- JSON ---- */

typedef struct writer {
    const mica_otlp_metrics *m;
    int64_t now_ns;
    json_t *metrics;
} writer;

static json_t *attributes_of(const series *s, const char *token_type)
{
    json_t *a = json_array();
    mica_otlp_text(a, "gen_ai.operation.name", s->operation);
    mica_otlp_text(a, "gen_ai.provider.name", "mica");
    mica_otlp_text(a, "gen_ai.request.model", s->model);
    mica_otlp_text(a, "error.type", s->error);
    if (token_type)
        mica_otlp_text(a, "gen_ai.token.type", token_type);
    return a;
}

static json_t *histogram_point(const writer *w, const series *s, histogram_id id)
{
    const struct definition *d = &definitions[id];
    const histogram *h = &s->histograms[id];
    json_t *counts = json_array(), *bounds = json_array();
    for (size_t i = 0; i <= d->n_bounds; i++)
        mica_json_add(&counts, mica_otlp_int64((int64_t)h->counts[i]));
    for (size_t i = 0; i < d->n_bounds; i++)
        mica_json_add(&bounds, json_real(d->bounds[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:f, s:f}", "attributes", attributes_of(s, d->token_type),
                     "startTimeUnixNano", mica_otlp_int64(w->m->started_unix_ns), "timeUnixNano", mica_otlp_int64(w->now_ns),
                     "count", mica_otlp_int64((int64_t)h->n), "sum", h->sum, "bucketCounts", counts, "explicitBounds", bounds,
                     "min", h->least, "max", h->most);
}

/* Points of `also` are of the same metric. */
static void add_histogram(writer *w, histogram_id id, histogram_id also)
{
    json_t *points = json_array();
    for (size_t i = 0; i < w->m->n; i++) {
        const series *s = &w->m->series[i];
        if (s->histograms[id].n > 0)
            mica_json_add(&points, histogram_point(w, s, id));
        if (also != id && s->histograms[also].n > 0)
            mica_json_add(&points, histogram_point(w, s, also));
    }
    if (json_array_size(points) == 0) {
        json_decref(points);
        return;
    }
    json_array_append_new(w->metrics, json_pack("{s:s, s:s, s:s, s:{s:i, s:o}}", "name", definitions[id].name, "unit",
                                                definitions[id].unit, "description", definitions[id].description, "histogram",
                                                "aggregationTemporality", CUMULATIVE, "dataPoints", points));
}

static json_t *number_point(const writer *w, const series *s, const char *type, json_t *value)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "attributes", s ? attributes_of(s, NULL) : json_array(), "startTimeUnixNano",
                     mica_otlp_int64(w->m->started_unix_ns), "timeUnixNano", mica_otlp_int64(w->now_ns), type, value);
}

/* Takes the points over. */
static void add_sum(writer *w, const char *name, const char *unit, const char *description, json_t *points)
{
    json_array_append_new(w->metrics, json_pack("{s:s, s:s, s:s, s:{s:i, s:b, s:o}}", "name", name, "unit", unit, "description",
                                                description, "sum", "aggregationTemporality", CUMULATIVE, "isMonotonic", 1,
                                                "dataPoints", points));
}

static void add_own(writer *w, uint64_t lost)
{
    json_t *joules = json_array(), *throttled = json_array(), *memory = json_array();
    for (size_t i = 0; i < w->m->n; i++) {
        const series *s = &w->m->series[i];
        if (s->n_joules > 0)
            mica_json_add(&joules, number_point(w, s, "asDouble", json_real(s->joules)));
        mica_json_add(&throttled, number_point(w, s, "asInt", mica_otlp_int64((int64_t)s->throttled)));
        if (s->peak_rss_bytes > 0)
            mica_json_add(&memory, number_point(w, s, "asInt", mica_otlp_int64(s->peak_rss_bytes)));
    }
    if (json_array_size(joules) > 0)
        add_sum(w, "mica.energy", "J", "Energy of the machine while replies were made.", joules);
    else
        json_decref(joules);
    add_sum(w, "mica.replies.throttled", "{reply}", "Replies during which the machine was throttled.", throttled);
    if (json_array_size(memory) > 0)
        json_array_append_new(w->metrics,
                              json_pack("{s:s, s:s, s:s, s:{s:o}}", "name", "mica.peak_rss", "unit", "By", "description",
                                        "The most memory that the process had resident.", "gauge", "dataPoints", memory));
    else
        json_decref(memory);
    add_sum(w, "mica.telemetry.lost", "{event}", "Events that did not get here.",
            json_pack("[o]", number_point(w, NULL, "asInt", mica_otlp_int64((int64_t)lost))));
}

json_t *mica_otlp_metrics_json(const mica_otlp_metrics *m, const char *service, const char *instance, uint64_t lost)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    writer w = {.m = m, .now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, .metrics = json_array()};
    add_histogram(&w, TOKENS_IN, TOKENS_OUT);
    add_histogram(&w, DURATION, DURATION);
    add_histogram(&w, TTFT, TTFT);
    add_histogram(&w, TPOT, TPOT);
    add_own(&w, lost);
    return json_pack("{s:[{s:o, s:[{s:o, s:o}]}]}", "resourceMetrics", "resource", mica_otlp_resource(service, instance),
                     "scopeMetrics", "scope", mica_otlp_scope(), "metrics", w.metrics);
}
