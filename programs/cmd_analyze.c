/* cmd_analyze.c - mica analyze: figures out of recorded traces (bench/trace.h), from whichever runtime they came. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/trace.h"
#include "commands.h"
#include "load.h"

typedef struct analysis {
    const char *path;
    mica_trace trace;
    mica_run_figures f;
    mica_throttle throttle;
} analysis;

/* ---- Finding out ---- */

static int analyse(const char *path, analysis *a)
{
    char *text;
    size_t length;
    mica_error err;
    a->path = path;
    int code = mica_load_file(path, &text, &length);
    if (code != CODE_OK)
        return code;
    mica_status status = mica_trace_read(text, length, path, &a->trace, &err);
    free(text);
    if (!status)
        status = mica_run_measure(&a->trace.run, NULL, &a->f, &err);
    if (!status)
        status = mica_throttle_detect(a->trace.times, a->trace.run.n_tokens, NULL, &a->throttle, &err);
    return status ? mica_load_failed(&err) : CODE_OK;
}

/* The rate that stands for a run: the steady one where there is one. */
static double headline(const analysis *a) { return isnan(a->f.steady_tps) ? a->f.decode_tps : a->f.steady_tps; }

static bool is_error(const analysis *a) { return a->trace.run.n_tokens == 0 || strcmp(a->trace.reason, "error") == 0; }

/* On a charger the battery's current says nothing about the device. */
static const char *energy_reason(const analysis *a)
{
    if (*a->trace.battery && strcmp(a->trace.battery, "Discharging") != 0)
        return "on external power: the battery's current is not the device's";
    return "the trace has no energy";
}

/* ---- JSON ---- */

static json_t *json_flags(const analysis *a)
{
    json_t *flags = json_array();
    if (a->f.few_tokens)
        json_array_append_new(flags, json_sprintf("too few tokens for a decode rate (at least %d)", MICA_RUN_MIN_TOKENS));
    if (!*a->trace.reason)
        json_array_append_new(flags, json_string("the trace has no end: it was cut"));
    if (*a->trace.battery && strcmp(a->trace.battery, "Discharging") != 0)
        json_array_append_new(flags, json_string("not on battery: no energy"));
    if (a->throttle.throttled)
        json_array_append_new(flags, json_string("throttled: the mean over the whole run is no steady rate"));
    return flags;
}

static json_t *json_change(const mica_level_change *c)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", mica_change_name(c->kind), "start_s",
                     mica_json_real(c->start_s), "end_s", mica_json_real(c->end_s), "before_tps", mica_json_real(c->before_tps),
                     "after_tps", mica_json_real(c->after_tps), "depth_percent", mica_json_real(c->depth * 100), "confidence",
                     mica_json_real(c->confidence));
}

static json_t *json_throttle(const mica_throttle *t)
{
    const mica_level_change *worst = t->throttled ? &t->changes[t->worst] : NULL;
    json_t *changes = json_array();
    for (int32_t i = 0; i < t->n_changes; i++)
        json_array_append_new(changes, json_change(&t->changes[i]));
    return json_pack("{s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "throttled", (int)t->throttled, "too_short", (int)t->too_short,
                     "start_s", mica_json_real(worst ? worst->start_s : NAN), "end_s",
                     mica_json_real(worst ? worst->end_s : NAN), "depth_percent",
                     mica_json_real(worst ? worst->depth * 100 : NAN), "confidence",
                     mica_json_real(worst ? worst->confidence : NAN), "changes", changes);
}

static json_t *json_run(const analysis *a)
{
    const mica_run_figures *f = &a->f;
    const mica_trace *t = &a->trace;
    json_t *itl =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "rule", MICA_STAT_PERCENTILE_RULE, "p50", mica_json_real(f->itl_p50_ms),
                  "p90", mica_json_real(f->itl_p90_ms), "p95", mica_json_real(f->itl_p95_ms), "p99",
                  mica_json_real(f->itl_p99_ms), "max", mica_json_real(f->itl_max_ms));
    json_t *all = json_pack("{s:o, s:s, s:o, s:I, s:I, s:o, s:o}", "trace", mica_json_text(a->path, strlen(a->path)), "status",
                            is_error(a) ? "error" : "ok", "reason", *t->reason ? json_string(t->reason) : json_null(),
                            "n_prompt", (json_int_t)t->run.n_prompt, "tokens", (json_int_t)t->run.n_tokens, "max_tokens",
                            t->max_tokens < 0 ? json_null() : json_integer(t->max_tokens), "itl_ms", itl);
    const struct { const char *name; double value; } numbers[] = {
        {"ttft_ms", f->ttft_ms}, {"prefill_tps", f->prefill_tps}, {"decode_tps", f->decode_tps}, {"tpot_ms", f->tpot_ms},
        {"decode_s", f->decode_s}, {"cold_tps", f->cold_tps}, {"steady_tps", f->steady_tps}, {"headline_tps", headline(a)},
        {"temperature_c", t->temperature_c}, {"energy_wh", NAN},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(all, numbers[i].name, mica_json_real(numbers[i].value));
    json_object_set_new(all, "temperature_reason", isnan(t->temperature_c) ? json_string("not readable") : json_null());
    json_object_set_new(all, "energy_reason", json_string(energy_reason(a)));
    json_object_set_new(all, "few_tokens", json_boolean(f->few_tokens));
    json_object_set_new(all, "throttle", json_throttle(&a->throttle));
    json_object_set_new(all, "flags", json_flags(a));
    return all;
}

/* ---- Several runs ---- */

/* The mean of the headline rates from run `first` on; those that have none are left out and counted. */
static double mean_rate(const analysis *runs, int n, int first, int *counted)
{
    double sum = 0;
    *counted = 0;
    for (int i = first; i < n; i++) {
        if (isnan(headline(&runs[i])))
            continue;
        sum += headline(&runs[i]);
        ++*counted;
    }
    return *counted ? sum / *counted : NAN;
}

static int print_json(const analysis *runs, int n, int first)
{
    int counted;
    double mean = mean_rate(runs, n, first, &counted);
    if (n == 1)
        return mica_json_line(json_run(&runs[0])) ? CODE_OK : CODE_FAILED;
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *one = json_run(&runs[i]);
        json_object_set_new(one, "discarded", json_boolean(i < first));
        json_array_append_new(list, one);
    }
    return mica_json_line(json_pack("{s:o, s:i, s:i, s:o}", "mean_tps", mica_json_real(mean), "runs", counted, "discarded",
                                    first, "traces", list))
               ? CODE_OK
               : CODE_FAILED;
}

/* ---- Text ---- */

static void print_figure(const char *name, double value, const char *unit)
{
    if (isfinite(value))
        printf("  %-22s%12.2f %s\n", name, value, unit);
    else
        printf("  %-22s%12s\n", name, "-");
}

static void print_run(const analysis *a, bool discarded)
{
    const mica_run_figures *f = &a->f;
    printf("%s: %zu tokens after a prompt of %lld, %s%s\n", a->path, a->trace.run.n_tokens, (long long)a->trace.run.n_prompt,
           *a->trace.reason ? a->trace.reason : "cut", discarded ? " (first run: discarded)" : "");
    print_figure("time to first token", f->ttft_ms, "ms");
    print_figure("prefill", f->prefill_tps, "tokens/s");
    print_figure("decode, whole run", f->decode_tps, "tokens/s");
    print_figure("decode, first 60 s", f->cold_tps, "tokens/s");
    print_figure("decode, last 3 min", f->steady_tps, "tokens/s");
    print_figure("gap between tokens", f->tpot_ms, "ms");
    print_figure("  p50", f->itl_p50_ms, "ms");
    print_figure("  p95", f->itl_p95_ms, "ms");
    print_figure("  p99", f->itl_p99_ms, "ms");
    for (int32_t i = 0; i < a->throttle.n_changes; i++) {
        const mica_level_change *c = &a->throttle.changes[i];
        printf("  %s: from %.1f to %.1f tokens/s (%+.1f %%) between %.0f s and %.0f s, confidence %.3f\n",
               mica_change_name(c->kind), c->before_tps, c->after_tps, -100 * c->depth, c->start_s, c->end_s, c->confidence);
    }
    if (f->few_tokens)
        printf("  too few tokens for a decode rate (at least %d)\n", MICA_RUN_MIN_TOKENS);
}

static void print_text(const analysis *runs, int n, int first)
{
    int counted;
    double mean = mean_rate(runs, n, first, &counted);
    for (int i = 0; i < n; i++)
        print_run(&runs[i], i < first);
    if (n > 1 && isfinite(mean))
        printf("mean of %d runs: %.2f tokens/s, %d discarded\n", counted, mean, first);
}

int mica_cmd_analyze(const mica_opts *o)
{
    int first = o->n_args > 1 && !o->keep_first ? 1 : 0, code = CODE_OK;
    analysis *runs = calloc((size_t)o->n_args, sizeof *runs);
    if (!runs)
        return mica_term_error("not enough memory for %d traces", o->n_args);
    for (int i = 0; code == CODE_OK && i < o->n_args; i++)
        code = analyse(o->args[i], &runs[i]);
    if (code == CODE_OK && o->json)
        code = print_json(runs, o->n_args, first);
    else if (code == CODE_OK)
        print_text(runs, o->n_args, first);
    for (int i = 0; i < o->n_args; i++)
        mica_trace_free(&runs[i].trace);
    free(runs);
    return code;
}
