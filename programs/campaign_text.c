#include "campaign_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "term.h"

/* ---- While it runs ---- */

static double left_of(const mica_campaign_progress *p)
{
    return p->done >= p->total ? 0 : (double)(p->total - p->done - p->running) / p->tps;
}

/* A point of the sparkline every second: the rate since the point before. */
static void note_rate(mica_campaign_view *view, int64_t done, int64_t now_ns)
{
    double seconds = (double)(now_ns - view->rate_ns) / 1e9;
    if (view->start_ns == 0) {
        view->start_ns = view->rate_ns = now_ns;
        view->start_done = view->rate_done = done;
    } else if (seconds >= 1.0 && done > view->rate_done) { /* an adapter tells a reply at its end */
        mica_live_rate(&view->live, (double)(done - view->rate_done) / seconds);
        view->rate_ns = now_ns;
        view->rate_done = done;
    }
}

static void show_line(mica_campaign_view *view, const mica_campaign_progress *p)
{
    char rate[40] = "";
    int64_t now_ns = mica_now_ns();
    mica_campaign_progress now = *p;
    note_rate(view, p->done + p->running, now_ns);
    /* The rate since the program began: that of the last shard is minutes old. */
    if (now_ns - view->start_ns > 2000000000)
        now.tps = (double)(p->done + p->running - view->start_done) / ((double)(now_ns - view->start_ns) / 1e9);
    if (isfinite(now.tps))
        snprintf(rate, sizeof rate, "  %.1f tok/s", now.tps);
    mica_live_show(&view->live, (double)(p->done + p->running) / (double)p->total, left_of(&now), p->shard_done, "shard %lld%s",
                   (long long)p->shard + 1, rate);
}

void mica_campaign_view_show(mica_campaign_view *view, const mica_campaign_progress *p)
{
    char left[MICA_LIVE_TIME];
    if (view->live.terminal) {
        show_line(view, p);
    } else if (p->shard_done) {
        mica_live_duration(left_of(p), left);
        mica_term_note("shard %lld done in %.1f s, %.1f tok/s; %lld of %lld tokens, %.1f %%, %s left", (long long)p->shard + 1,
                       p->shard_s, p->tps, (long long)p->done, (long long)p->total, 100.0 * (double)p->done / (double)p->total,
                       left);
    }
}

/* ---- How far it is ---- */

/* One row of the table: a name and a text. */
typedef struct printer {
    bool markdown;
} printer;

static void row(const printer *p, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void row(const printer *p, const char *name, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf(p->markdown ? "| %s | %s |\n" : "  %-8s  %s\n", name, text);
}

static void print_energy(const printer *p, const mica_campaign_state *s)
{
    if (isnan(s->energy_wh))
        row(p, "energy", "unknown: this machine has no counter of it");
    else
        row(p, "energy", "%.3f Wh for %lld tokens (all that the machine's counters, or its battery, gave in that time)", s->energy_wh,
            (long long)s->totals.measured_tokens);
    if (isnan(s->usd))
        row(p, "cost", "unknown: it takes the energy or --watts, and a price of electricity");
    else
        row(p, "cost", "$%.6f so far: $%.6f energy, $%.6f hardware", s->usd, s->energy_usd, s->hardware_usd);
}

static void print_rates(const printer *p, const mica_campaign_state *s, const char *state)
{
    char left[MICA_LIVE_TIME], spent[MICA_LIVE_TIME];
    mica_live_duration(s->left_s, left);
    mica_live_duration((double)s->totals.wall_ns / 1e9, spent);
    if (s->tokens > 0)
        row(p, "rate", "%.1f tok/s over all, %.1f tok/s in the last shards", s->tps, s->recent_tps);
    row(p, "time", "%s computing", spent);
    if (s->totals.machines > 1.05)
        row(p, "machines", "%.1f at a time in the last shards; the rates are those of one", s->totals.machines);
    if (s->part < 1 && s->tokens == 0)
        row(p, "left", "all of it");
    else if (s->part < 1)
        row(p, "left", "%s%s", left, strcmp(state, "stopped") == 0 ? ", once it is started again" : "");
}

static void print_text(const printer *p, const mica_campaign_row *r, const mica_campaign_state *s, const char *state)
{
    char bar[MICA_LIVE_BAR + 1];
    const mica_campaign_totals *t = &s->totals;
    mica_live_bar(s->part, bar);
    if (p->markdown)
        printf("| %s | %s, %.1f %% |\n|---|---|\n", r->name, state, 100 * s->part);
    else if (isatty(STDOUT_FILENO))
        printf("%s  [%s] %.1f %%  %s\n", r->name, bar, 100 * s->part, state);
    else
        printf("%s  %.1f %%  %s\n", r->name, 100 * s->part, state);
    row(p, "id", "%.16s, model %.16s", r->id, r->model_sha256);
    row(p, "tokens", "%lld of %lld: %lld of prompts (%lld from a cache), %lld of replies", (long long)s->tokens,
        (long long)r->tokens, (long long)t->prompt_tokens, (long long)t->cached_tokens, (long long)t->reply_tokens);
    row(p, "shards", "%lld done, %lld requests, the longest took %.1f s", (long long)t->shards, (long long)t->items,
        (double)t->longest_ns / 1e9);
    print_rates(p, s, state);
    if (s->tokens > 0)
        print_energy(p, s);
}

int mica_campaign_print(const char *format, const mica_campaign_row *r, const mica_campaign_state *s, bool locked)
{
    printer p = {.markdown = strcmp(format, "md") == 0};
    if (strcmp(format, "json") == 0)
        return mica_json_line(mica_campaign_state_json(r, s, locked)) ? CODE_OK : CODE_FAILED;
    print_text(&p, r, s, mica_campaign_state_name(s, locked));
    return CODE_OK;
}
