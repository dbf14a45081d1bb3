#include "bench/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "bench/json_file.h"
#include "bench/protocol.h"
#include "bench/sample_energy.h"
#include "mica/mica_ops.h"

typedef struct work {
    const mica_record *record;
    mica_protocol protocol;
    json_t *out, *problems, *flags;
    double ttft_shortest, ttft_longest; /* medians, ms; NAN */
    int32_t prompt_shortest, prompt_longest;
    mica_error *err;
} work;

/* ---- Small things ---- */

static void set_real(json_t *object, const char *name, double value)
{
    json_object_set_new(object, name, isfinite(value) ? json_real(value) : json_null());
}

static void set_bytes(json_t *object, const char *name, const json_t *value)
{
    bool known = json_is_integer(value) && json_integer_value(value) >= 0;
    json_object_set_new(object, name, known ? json_integer(json_integer_value(value)) : json_null());
}

/* ---- Joining ---- */

static size_t tokens_of(const mica_series *x)
{
    return x->exact ? x->n : x->n > 0 && x->gen_n > 0 ? (size_t)x->gen_n : 0;
}

static bool is_decode(const mica_series *x)
{
    return strcmp(x->phase, "decode") == 0 && x->n >= 2 && tokens_of(x) >= 2;
}

static void join_one(const mica_series *x, int64_t *at, int64_t *times, size_t *n)
{
    int64_t base = *at, length = x->times[x->n - 1] - x->times[0];
    size_t count = tokens_of(x);
    for (size_t i = 1; i < count; i++)
        times[(*n)++] =
            base + (x->exact ? x->times[i] - x->times[0] : (int64_t)((double)length * (double)i / (double)(count - 1)));
    *at = base + length;
}

mica_status mica_summary_join(const mica_record *record, int64_t **times, size_t *n, mica_error *err)
{
    size_t total = 1;
    int64_t at = 0;
    for (size_t i = 0; i < record->n_series; i++)
        if (is_decode(&record->series[i]) && !mica_add_size(total, tokens_of(&record->series[i]), &total))
            total = SIZE_MAX;
    if (total > MICA_SERIES_MAX)
        return mica_fail(err, MICA_BAD_FILE, "the record's decode has more than %zu tokens", MICA_SERIES_MAX);
    *times = mica_new_array(total, sizeof **times);
    if (!*times)
        return mica_fail_nomem(err, total * sizeof **times, "a decode's times");
    *n = 0;
    for (size_t i = 0; i < record->n_series; i++) {
        if (!is_decode(&record->series[i]))
            continue;
        if (*n == 0)
            (*times)[(*n)++] = 0;
        join_one(&record->series[i], &at, *times, n);
    }
    return MICA_OK;
}

/* ---- Time to first token ---- */

static void set_ttft(work *w, const char *phase, int32_t prompt, const double *ms, size_t n, double prefill_tps)
{
    char name[48];
    double median = mica_stat_percentile(ms, n, 0.5);
    snprintf(name, sizeof name, "%s_ms", phase);
    set_real(w->out, name, median);
    snprintf(name, sizeof name, "%s_p95_ms", phase);
    set_real(w->out, name, mica_stat_percentile(ms, n, 0.95));
    snprintf(name, sizeof name, "%s_n", phase);
    json_object_set_new(w->out, name, json_integer((json_int_t)n));
    snprintf(name, sizeof name, "prefill_%d_tps", prompt);
    set_real(w->out, name, prefill_tps);
    if (n > 0 && prompt < w->prompt_shortest) {
        w->prompt_shortest = prompt;
        w->ttft_shortest = median;
    }
    if (n > 0 && prompt > w->prompt_longest) {
        w->prompt_longest = prompt;
        w->ttft_longest = median;
    }
}

/* Of one ttft phase. Replies whose prompt came from a cache do not count. */
static mica_status sum_ttft(work *w, const mica_phase *phase)
{
    size_t n = 0, cached = 0;
    double *ms = mica_new_array(w->record->n_series, sizeof *ms), *tps = mica_new_array(w->record->n_series, sizeof *tps);
    if (!ms || !tps) {
        free(ms);
        free(tps);
        return mica_fail_nomem(w->err, w->record->n_series * sizeof *ms, "times to first token");
    }
    for (size_t i = 0; i < w->record->n_series; i++) {
        const mica_series *x = &w->record->series[i];
        if (strcmp(x->phase, phase->name) != 0 || x->n == 0)
            continue;
        double t_ms = (double)(x->times[0] - x->started_ns) / 1e6;
        cached += x->cached_n > 0;
        if (x->cached_n > 0 || !(t_ms > 0.0))
            continue;
        tps[n] = (double)x->prompt_n / t_ms * 1e3;
        ms[n++] = t_ms;
    }
    mica_stat_sort(ms, n);
    set_ttft(w, phase->name, phase->prompt, ms, n, mica_stat_median(tps, n));
    if (cached > 0)
        mica_json_say(w->flags, "%zu prompts of %d tokens came from a cache in part; their times do not count", cached,
                      phase->prompt);
    if (n == 0 && cached > 0)
        mica_json_say(w->problems, "every prompt of %d tokens came from a cache: there is no time to first token",
                      phase->prompt);
    free(ms);
    free(tps);
    return MICA_OK;
}

static mica_status sum_ttfts(work *w)
{
    w->prompt_shortest = INT32_MAX;
    w->ttft_shortest = w->ttft_longest = NAN;
    for (int32_t i = 0; i < w->protocol.n_phases; i++) {
        mica_status status = w->protocol.phase[i].kind == MICA_PHASE_TTFT ? sum_ttft(w, &w->protocol.phase[i]) : MICA_OK;
        if (status)
            return status;
    }
    double ratio = w->ttft_longest / w->ttft_shortest;
    if (w->prompt_longest > w->prompt_shortest && isfinite(ratio) && ratio < w->protocol.ttft_ratio)
        mica_json_say(w->problems,
                      "the time to first token after %d tokens is %.2f times that after %d, less than %.2f: something is "
                      "cached, or it is not measured",
                      w->prompt_longest, ratio, w->prompt_shortest, w->protocol.ttft_ratio);
    return MICA_OK;
}

/* ---- Decode ---- */

static void set_throttle(work *w, const int64_t *times, size_t n)
{
    mica_throttle t;
    json_t *step = json_null();
    double depth = NAN;
    mica_status status = n >= 2 ? mica_throttle_detect(times, n, NULL, &t, NULL) : MICA_INVALID_ARGUMENT;
    if (!status && !t.too_short)
        depth = 0.0;
    if (!status && t.throttled) {
        const mica_level_change *c = &t.changes[t.worst];
        depth = 100.0 * c->depth;
        step = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "start_s", c->start_s, "end_s", c->end_s, "before_tps",
                         c->before_tps, "after_tps", c->after_tps, "depth_pct", depth, "confidence", c->confidence);
        mica_json_say(w->flags, "throttled: %.1f %% slower from %.0f s of decoding on", depth, c->start_s);
    }
    json_object_set_new(w->out, "throttle", step);
    set_real(w->out, "throttle_depth_pct", depth);
}

static void set_decode(work *w, const mica_run_figures *f, size_t n, bool exact)
{
    json_object_set_new(w->out, "decode_tokens", json_integer((json_int_t)n));
    set_real(w->out, "decode_s", f->decode_s);
    set_real(w->out, "decode_tps", f->decode_tps);
    set_real(w->out, "cold_tps", f->cold_tps);
    set_real(w->out, "steady_tps", f->steady_tps);
    set_real(w->out, "tpot_ms", f->tpot_ms);
    set_real(w->out, "itl_p50_ms", exact ? f->itl_p50_ms : NAN);
    set_real(w->out, "itl_p95_ms", exact ? f->itl_p95_ms : NAN);
    set_real(w->out, "itl_p99_ms", exact ? f->itl_p99_ms : NAN);
    set_real(w->out, "itl_max_ms", exact ? f->itl_max_ms : NAN);
    json_object_set_new(w->out, "percentile_rule", json_string(MICA_STAT_PERCENTILE_RULE));
    if (n > 0 && f->few_tokens)
        mica_json_say(w->flags, "too few tokens for a decode rate: %zu, at least %d are wanted", n, MICA_RUN_MIN_TOKENS);
    if (!exact)
        mica_json_say(w->flags,
                      "the runtime's events are not tokens: rates come from its own count, times of single tokens are unknown");
}

static mica_status sum_decode(work *w)
{
    int64_t *times;
    size_t n;
    bool exact = true;
    mica_run_figures f = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, false};
    const mica_phase *phase = mica_protocol_decode(&w->protocol);
    mica_run_windows windows = {.cold_s = w->protocol.cold_s,
                                .steady_s = w->protocol.steady_s,
                                .steady_min_s = phase ? phase->min_s : w->protocol.steady_s};
    mica_status status = mica_summary_join(w->record, &times, &n, w->err);
    if (status)
        return status;
    for (size_t i = 0; i < w->record->n_series; i++)
        exact &= w->record->series[i].exact;
    mica_run run = {.accepted_ns = 0, .token_ns = times, .n_tokens = n, .n_prompt = 0};
    if (n > 0)
        status = mica_run_measure(&run, &windows, &f, w->err);
    if (!status) {
        set_decode(w, &f, n, exact);
        set_throttle(w, times, n);
        if (phase && !(f.decode_s >= phase->min_s))
            mica_json_say(w->flags, "decoded for %.1f s of %.1f s", n > 0 ? f.decode_s : 0.0, phase->min_s);
    }
    free(times);
    return status;
}

/* ---- The machine ---- */

/* When the decode phase ran, on our clock; false if the runtime's clock is another one. */
static bool decode_span(const work *w, int64_t *from, int64_t *to)
{
    bool any = false;
    if (json_is_true(json_object_get(json_object_get(w->record->head, "runtime"), "other_clock")))
        return false;
    for (size_t i = 0; i < w->record->n_series; i++) {
        const mica_series *x = &w->record->series[i];
        if (strcmp(x->phase, "decode") != 0)
            continue;
        if (!any)
            *from = x->started_ns;
        *to = x->done_ns;
        any = true;
    }
    return any;
}

typedef struct machine_sums {
    double other, other_s; /* CPU seconds of others in so many seconds */
    double hottest;
    int64_t swap_first, swap_last;
    char battery[16];
} machine_sums;

static void sum_sample(machine_sums *m, const json_t *before, const json_t *sample)
{
    const char *zone;
    json_t *value;
    const json_t *other = json_object_get(sample, "cpu_other"), *swap = json_object_get(sample, "swap_pages");
    const char *battery = json_string_value(json_object_get(sample, "battery"));
    if (json_is_number(other) && before) { /* it is of the time since the sample before */
        double seconds = (double)(json_integer_value(json_object_get(sample, "t_ns")) -
                                  json_integer_value(json_object_get(before, "t_ns"))) /
                         1e9;
        m->other += json_number_value(other) * seconds;
        m->other_s += seconds;
    }
    if (json_is_integer(swap)) {
        m->swap_first = m->swap_first < 0 ? json_integer_value(swap) : m->swap_first;
        m->swap_last = json_integer_value(swap);
    }
    json_object_foreach(json_object_get(sample, "temp_c"), zone, value) if (!(json_number_value(value) <= m->hottest))
        m->hottest = json_number_value(value);
    if (battery && !*m->battery)
        snprintf(m->battery, sizeof m->battery, "%s", battery);
}

/* Tokens of the decode phase handed over in (from, to]; of a runtime whose events are no tokens, in the proportion of its
 * events. */
static double tokens_between(const work *w, int64_t from, int64_t to)
{
    double tokens = 0.0;
    for (size_t i = 0; i < w->record->n_series; i++) {
        const mica_series *x = &w->record->series[i];
        size_t inside = 0;
        if (strcmp(x->phase, "decode") != 0 || x->n == 0)
            continue;
        for (size_t k = 0; k < x->n; k++)
            inside += x->times[k] > from && x->times[k] <= to;
        tokens += (double)inside * (x->exact ? 1.0 : (double)x->gen_n / (double)x->n);
    }
    return tokens;
}

/* Between the first and the last sample of the phase: energy and tokens of the same time. */
static void set_energy(work *w, int64_t from, int64_t to)
{
    mica_sample_energy e;
    mica_sample_energy_of(w->record->samples, from, to, &e);
    double tokens = tokens_between(w, e.first_ns, e.last_ns), seconds = (double)(e.last_ns - e.first_ns) / 1e9;
    bool known = isfinite(e.joules) && e.joules > 0.0 && seconds > 0.0 && tokens > 0.0;
    set_real(w->out, "energy_wh_per_1k", known ? mica_wh_of_joules((mica_joules){e.joules}).v * 1000.0 / tokens : NAN);
    set_real(w->out, "power_w", known ? e.joules / seconds : NAN);
    json_object_set_new(w->out, "energy_source", known ? json_string(e.source) : json_null());
    if (known && isfinite(e.error)) /* summaries of before it was told stay as they were */
        set_real(w->out, "energy_error_pct", 100.0 * e.error);
}

static void sum_machine(work *w)
{
    machine_sums m = {.hottest = NAN, .swap_first = -1, .swap_last = -1};
    int64_t from = 0, to = 0;
    const json_t *before = NULL;
    json_t *sample;
    size_t i;
    bool span = decode_span(w, &from, &to);
    json_array_foreach(w->record->samples, i, sample)
    {
        int64_t t = json_integer_value(json_object_get(sample, "t_ns"));
        if (!span || t < from || t > to)
            continue;
        sum_sample(&m, before, sample);
        before = sample;
    }
    set_energy(w, span ? from : INT64_MAX, span ? to : INT64_MIN);
    double other = m.other_s > 0.0 ? m.other / m.other_s : NAN;
    set_real(w->out, "other_cpu", other);
    set_real(w->out, "hottest_c", m.hottest);
    if (other > 0.05)
        mica_json_say(w->flags, "other processes took %.0f %% of a CPU", 100.0 * other);
    if (m.swap_last > m.swap_first)
        mica_json_say(w->flags, "the machine swapped %" PRId64 " pages", m.swap_last - m.swap_first);
    if (*m.battery && strcmp(m.battery, "Discharging") != 0 && strcmp(m.battery, "Full") != 0)
        mica_json_say(w->flags, "the battery was in the state %s", m.battery);
}

/* ---- What the head says ---- */

static void sum_loads(work *w)
{
    json_t *load;
    size_t i;
    json_object_set_new(w->out, "load_cold_ms", json_null());
    json_object_set_new(w->out, "load_warm_ms", json_null());
    json_array_foreach(json_object_get(w->record->head, "loads"), i, load)
    {
        const char *cache = json_string_value(json_object_get(load, "cache"));
        double ms = json_number_value(json_object_get(load, "ms"));
        const json_t *resident = json_object_get(load, "resident_before");
        bool cold = cache && strcmp(cache, "cold") == 0;
        if (cold && json_is_number(resident) && json_number_value(resident) > 0.01)
            mica_json_say(w->flags, "%.0f %% of the model's file stayed in memory: the cold load was not cold",
                          100.0 * json_number_value(resident));
        if (cold && !json_is_number(resident))
            mica_json_say(w->flags, "the model's file could not be dropped from memory: the cold load was not cold");
        set_real(w->out, cold ? "load_cold_ms" : "load_warm_ms", ms);
    }
}

static void sum_conditions(work *w)
{
    const json_t *head = w->record->head, *memory = json_object_get(head, "memory"), *loaded = json_object_get(head, "loaded");
    const char *labels = json_string_value(json_object_get(json_object_get(head, "runtime"), "labels"));
    const char *cooldown = json_string_value(json_object_get(json_object_get(head, "cooldown"), "state"));
    const char *cool_why = json_string_value(json_object_get(json_object_get(head, "cooldown"), "why"));
    const char *missing = NULL;
    bool sustained = mica_protocol_sustained(&w->protocol, &missing);
    set_bytes(w->out, "peak_rss_bytes", json_object_get(memory, "peak_bytes"));
    set_bytes(w->out, "rss_anon_bytes", json_object_get(memory, "anon_bytes"));
    set_bytes(w->out, "rss_file_bytes", json_object_get(memory, "file_bytes"));
    set_bytes(w->out, "rss_shared_bytes", json_object_get(memory, "shared_bytes"));
    set_bytes(w->out, "file_bytes", json_object_get(loaded, "file_bytes"));
    set_bytes(w->out, "weight_bytes", json_object_get(loaded, "weight_bytes"));
    set_real(w->out, "bits_per_weight",
             json_is_number(json_object_get(loaded, "bits_per_weight"))
                 ? json_number_value(json_object_get(loaded, "bits_per_weight"))
                 : NAN);
    if (labels && *labels)
        mica_json_say(w->flags, "%s", labels);
    if (cooldown && strcmp(cooldown, "timeout") == 0)
        mica_json_say(w->flags, "hot at the start: %s", cool_why ? cool_why : "");
    if (cooldown && strcmp(cooldown, "blind") == 0)
        mica_json_say(w->flags, "%s", cool_why ? cool_why : "");
    if (!sustained)
        mica_json_say(w->flags, "not sustained figures: the protocol %s: %s", w->protocol.name, missing);
    if (json_is_true(json_object_get(head, "power_save")))
        mica_json_say(w->flags, "the system was in its power saver");
    if (json_is_true(json_object_get(head, "fallback")))
        mica_json_say(w->flags, "not the backend that was asked for");
    json_object_set_new(w->out, "sustained",
                        json_boolean(sustained && json_object_get(w->out, "steady_tps") &&
                                     json_is_number(json_object_get(w->out, "steady_tps"))));
}

static void sum_roofline(work *w)
{
    const json_t *roofline = json_object_get(w->record->head, "roofline");
    double bandwidth = json_number_value(json_object_get(roofline, "read_bytes_per_s"));
    double bytes = json_number_value(json_object_get(roofline, "decode_bytes"));
    const json_t *rate = json_object_get(w->out, "steady_tps");
    rate = json_is_number(rate) ? rate : json_object_get(w->out, "decode_tps");
    bool known = bandwidth > 0.0 && bytes > 0.0 && json_is_number(rate);
    set_real(w->out, "read_bytes_per_s", bandwidth > 0.0 ? bandwidth : NAN);
    set_real(w->out, "bytes_per_token", bytes > 0.0 ? bytes : NAN);
    double part = known ? 100.0 * mica_roofline_implied(bytes, json_number_value(rate)) / bandwidth : NAN;
    set_real(w->out, "roofline_pct", part);
    if (part > 100.0)
        mica_json_say(w->flags,
                      "decode was faster than the read bandwidth measured after it allows: the machine was busy then, or a "
                      "cache holds the weights");
}

/* ---- The whole ---- */

static mica_status read_protocol(work *w)
{
    char *text = mica_json_dumps(json_object_get(w->record->head, "protocol"), JSON_COMPACT);
    if (!text)
        return mica_fail(w->err, MICA_BAD_FILE, "the record has no protocol");
    mica_status status = mica_protocol_read(text, strlen(text), &w->protocol, w->err);
    free(text);
    return status;
}

mica_status mica_summary_make(const mica_record *record, json_t **summary, mica_error *err)
{
    work w = {.record = record, .err = err, .out = json_object(), .problems = json_array(), .flags = json_array()};
    mica_status status = w.out && w.problems && w.flags ? read_protocol(&w) : mica_fail_nomem(err, 1024, "a summary");
    if (!status) {
        json_object_set_new(w.out, "version", json_integer(1));
        sum_loads(&w);
        status = sum_ttfts(&w);
    }
    if (!status)
        status = sum_decode(&w);
    if (!status) {
        sum_roofline(&w);
        sum_machine(&w);
        sum_conditions(&w);
        json_object_set(w.out, "problems", w.problems);
        json_object_set(w.out, "flags", w.flags);
    }
    mica_protocol_free(&w.protocol);
    json_decref(w.problems);
    json_decref(w.flags);
    if (status)
        json_decref(w.out);
    else
        *summary = w.out;
    return status;
}

/* ---- Comparing ---- */

static bool same_value(const json_t *a, const json_t *b, int depth)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return fabs(x - y) <= 1e-9 * fmax(fabs(x), fabs(y));
    }
    if (!a || !b || json_typeof(a) != json_typeof(b) || depth == 0)
        return false;
    if (json_is_object(a)) {
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)a, key,
                            value) if (!same_value(value, json_object_get(b, key), depth - 1)) return false;
        return json_object_size(a) == json_object_size(b);
    }
    return json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b);
}

static void complain(json_t *complaints, const char *key, const json_t *stored, const json_t *computed)
{
    char *a = stored ? mica_json_dumps(stored, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL,
         *b = computed ? mica_json_dumps(computed, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    mica_json_say(complaints, "%.60s: reported %.120s, computed %.120s", key, a ? a : "nothing", b ? b : "nothing");
    free(a);
    free(b);
}

bool mica_summary_same(const json_t *stored, const json_t *computed, json_t *complaints)
{
    const char *key;
    json_t *value;
    size_t before = json_array_size(complaints);
    json_object_foreach((json_t *)(uintptr_t)computed, key, value) if (!same_value(json_object_get(stored, key), value, 4))
        complain(complaints, key, json_object_get(stored, key), value);
    json_object_foreach((json_t *)(uintptr_t)stored, key, value) if (!json_object_get(computed, key))
        complain(complaints, key, value, NULL);
    return json_array_size(complaints) == before;
}
