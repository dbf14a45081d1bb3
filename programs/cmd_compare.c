/* cmd_compare.c - mica compare: two runtimes side by side, or two files of stored runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/compare.h"
#include "bench_runtime.h"
#include "commands.h"
#include "interrupt.h"
#include "live.h"
#include "load.h"
#include "runs_file.h"

/* ---- Output ---- */

static const char *verdict_text(const mica_compare_metric *m)
{
    switch (mica_compare_better(m)) {
    case 'a':
        return "A is better";
    case 'b':
        return "B is better";
    case '=':
        return "inside the noise";
    default:
        return "too few values";
    }
}

static void print_text(const mica_comparison *c)
{
    printf("A: %s\nB: %s\n\n%-14s %12s %12s %8s %18s\n", c->name[0], c->name[1], "", "A median", "B median", "B / A",
           "95 % interval");
    for (size_t i = 0; i < c->n; i++) {
        const mica_compare_metric *m = &c->metric[i];
        char interval[40] = "-";
        if (isfinite(m->ratio.low))
            snprintf(interval, sizeof interval, "%.3f to %.3f", m->ratio.low, m->ratio.high);
        printf("%-14s %12.2f %12.2f %8.3f %18s  %s (%zu%s)\n", m->name, mica_stat_median(m->a, m->n_a),
               mica_stat_median(m->b, m->n_b), m->ratio.ratio, interval, verdict_text(m), m->n_a < m->n_b ? m->n_a : m->n_b,
               c->paired ? " pairs" : " values at least");
    }
}

static json_t *list_of(const double *values, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, mica_json_real(values[i]));
    return list;
}

static int print_json(const mica_comparison *c)
{
    json_t *metrics = json_array();
    for (size_t i = 0; i < c->n; i++) {
        const mica_compare_metric *m = &c->metric[i];
        char better[2] = {mica_compare_better(m), '\0'};
        json_array_append_new(metrics,
                              json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:f, s:s, s:s}", "metric", m->name,
                                        "higher_is_better", (int)m->higher_is_better, "a", list_of(m->a, m->n_a), "b",
                                        list_of(m->b, m->n_b), "ratio", mica_json_real(m->ratio.ratio), "low",
                                        mica_json_real(m->ratio.low), "high", mica_json_real(m->ratio.high), "level",
                                        m->ratio.level, "verdict", mica_verdict_name(m->ratio.verdict), "better", better));
    }
    bool done = mica_json_line(
        json_pack("{s:s, s:s, s:b, s:o}", "a", c->name[0], "b", c->name[1], "paired", (int)c->paired, "metrics", metrics));
    return done ? CODE_OK : CODE_FAILED;
}

/* With --fail-if-worse a regression is an exit code. */
static int print(const mica_opts *o, const mica_comparison *c)
{
    int code = CODE_OK;
    if (o->json)
        code = print_json(c);
    else
        print_text(c);
    for (size_t i = 0; o->fail_if_worse && i < c->n; i++)
        if (mica_compare_better(&c->metric[i]) == 'a')
            code = mica_term_error("%s of B is worse: %.1f %% (interval %.1f to %.1f %%)", c->metric[i].name,
                                   100.0 * (c->metric[i].ratio.ratio - 1.0), 100.0 * (c->metric[i].ratio.low - 1.0),
                                   100.0 * (c->metric[i].ratio.high - 1.0));
    return code;
}

/* ---- Stored runs ---- */

typedef struct stored {
    mica_comparison c;
    int side;
    size_t n;
} stored;

static int add_run(void *user, mica_record *run, const char *id, const char *why)
{
    stored *s = user;
    mica_error err;
    const char *state = run ? json_string_value(json_object_get(run->head, "state")) : NULL;
    if (!run)
        return mica_term_error("the run %s cannot be read: %s", id, why);
    if (!state || strcmp(state, "done") != 0) /* half a run is no comparison */
        return CODE_OK;
    s->n++;
    return mica_compare_add(&s->c, s->side, run, &err) ? mica_load_failed(&err) : CODE_OK;
}

static int compare_stored(const mica_opts *o, mica_ratio_options ratio)
{
    stored s = {.side = 0};
    mica_error err;
    int code = CODE_OK;
    for (; s.side < 2 && code == CODE_OK; s.side++) {
        s.n = 0;
        code = mica_runs_each(o->args[s.side], add_run, &s);
        if (code == CODE_OK && s.n == 0)
            code = mica_term_error("%s has no run that is done", o->args[s.side]);
    }
    if (code == CODE_OK && mica_compare_judge(&s.c, &ratio, &err))
        code = mica_load_failed(&err);
    if (code == CODE_OK)
        code = print(o, &s.c);
    mica_comparison_free(&s.c);
    return code;
}

/* ---- Live ---- */

/* What is shown meanwhile: the decode rates of the last round, and B / A round by round as a sparkline. */
typedef struct watch {
    mica_live live;
    int64_t first_ns; /* when it began: loading is counted to the first round */
    int32_t done, rounds;
    double a, b; /* tokens/s; NAN */
} watch;

static void show(watch *w, bool at_once)
{
    char rates[80] = "";
    double seconds = (double)(mica_now_ns() - w->first_ns) / 1e9;
    if (isfinite(w->a) && isfinite(w->b))
        snprintf(rates, sizeof rates, "  A %.1f, B %.1f tok/s", w->a, w->b);
    if (w->done == 0)
        mica_live_show(&w->live, 0, NAN, at_once, "loading, round 1 of %d", w->rounds);
    else
        mica_live_show(&w->live, (double)w->done / w->rounds, seconds / w->done * (w->rounds - w->done), at_once,
                       "round %d of %d%s", w->done < w->rounds ? w->done + 1 : w->rounds, w->rounds, rates);
}

static bool on_stop(void *user)
{
    show(user, false);
    return mica_interrupt_count() > 0;
}

static void on_round(void *user, int32_t done, int32_t rounds, const mica_comparison *so_far)
{
    watch *w = user;
    w->done = done;
    w->rounds = rounds;
    for (size_t i = 0; i < so_far->n; i++) {
        const mica_compare_metric *m = &so_far->metric[i];
        if (strcmp(m->name, "decode_tps") != 0 || m->n_a == 0 || m->n_b == 0)
            continue;
        w->a = m->a[m->n_a - 1];
        w->b = m->b[m->n_b - 1];
        mica_live_rate(&w->live, w->b / w->a);
    }
    show(w, true);
}

static int compare_live(const mica_opts *o, mica_ratio_options ratio)
{
    char path[4096];
    watch w = {.live = mica_live_begin(), .first_ns = mica_now_ns(), .rounds = (int32_t)o->rounds, .a = NAN, .b = NAN};
    mica_compare_options c = mica_compare_options_default();
    mica_comparison out = {.n = 0};
    mica_runtimes runtimes = {.n = 0};
    mica_error err;
    int code = mica_load_path(o, NULL, path);
    if (code == CODE_OK)
        code = mica_runtimes_find(o, path, &runtimes);
    if (code == CODE_OK && runtimes.n != 2)
        code = mica_term_usage(
            "mica compare wants two runtimes: --runtime A,B (each may have =FILE behind it), or two files of stored runs");
    if (code != CODE_OK)
        return code;
    for (int i = 0; i < 2; i++) {
        c.adapter[i] = runtimes.item[i].adapter;
        c.model[i] = runtimes.item[i].model;
    }
    c.backend = o->backend;
    c.allow_fallback = o->allow_fallback;
    c.threads = (int32_t)o->threads;
    c.rounds = (int32_t)o->rounds;
    c.ratio = ratio;
    c.adapter_options = mica_runtime_options(o, on_stop, &w);
    c.on_round = on_round;
    c.user = &w;
    mica_interrupt_catch();
    mica_status status = mica_compare_live(&c, &out, &err);
    mica_live_end(&w.live);
    code = status ? mica_load_failed(&err) : print(o, &out);
    mica_comparison_free(&out);
    return code;
}

int mica_cmd_compare(const mica_opts *o)
{
    mica_ratio_options ratio = mica_ratio_options_default();
    ratio.margin = o->margin / 100.0;
    if (o->n_args == 1)
        return mica_term_usage("mica compare: a second file is missing");
    return o->n_args == 2 ? compare_stored(o, ratio) : compare_live(o, ratio);
}
