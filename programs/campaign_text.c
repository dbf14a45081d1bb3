#include "campaign_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "term.h"

enum { BAR = 30 };
#define REDRAW_NS 200000000 /* five times a second */

static void draw_bar(double part, char out[BAR + 1])
{
    int full = part >= 1 ? BAR : part > 0 ? (int)(part * BAR) : 0;
    memset(out, '#', (size_t)full);
    memset(out + full, '-', (size_t)(BAR - full));
    out[BAR] = '\0';
}

/* "2 d 3 h", "26 min 15 s" */
static void duration(double seconds, char out[48])
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    int i = 0;
    if (!isfinite(seconds) || seconds > 1e12) {
        snprintf(out, 48, "unknown");
        return;
    }
    seconds = ceil(seconds);
    while (i < 3 && seconds < units[i].seconds)
        i++;
    double whole = floor(seconds / units[i].seconds);
    if (i == 3)
        snprintf(out, 48, "%.0f s", seconds);
    else
        snprintf(out, 48, "%.0f %s %.0f %s", whole, units[i].name,
                 floor((seconds - whole * units[i].seconds) / units[i + 1].seconds), units[i + 1].name);
}

/* ---- While it runs ---- */

static double left_of(const mica_campaign_progress *p)
{
    return p->done >= p->total ? 0 : (double)(p->total - p->done - p->running) / p->tps;
}

static void show_line(mica_campaign_view *view, const mica_campaign_progress *p)
{
    char bar[BAR + 1], left[48];
    double part = (double)(p->done + p->running) / (double)p->total;
    int64_t now_ns = mica_now_ns();
    if (now_ns - view->last_ns < REDRAW_NS && !p->shard_done)
        return;
    if (view->start_ns == 0) {
        view->start_ns = now_ns;
        view->start_done = p->done + p->running;
    }
    /* The rate since the program began: that of the last shard is minutes old. */
    mica_campaign_progress now = *p;
    if (now_ns - view->start_ns > 2000000000)
        now.tps = (double)(p->done + p->running - view->start_done) / ((double)(now_ns - view->start_ns) / 1e9);
    view->last_ns = now_ns;
    draw_bar(part, bar);
    duration(left_of(&now), left);
    fprintf(stderr, "\r\033[K[%s] %5.1f %%  shard %lld", bar, 100 * part, (long long)p->shard + 1);
    if (isfinite(now.tps))
        fprintf(stderr, "  %.1f tok/s  %s left", now.tps, left);
    fflush(stderr);
}

void mica_campaign_view_show(mica_campaign_view *view, const mica_campaign_progress *p)
{
    char left[48];
    if (view->terminal) {
        show_line(view, p);
    } else if (p->shard_done) {
        duration(left_of(p), left);
        mica_term_note("shard %lld done in %.1f s, %.1f tok/s; %lld of %lld tokens, %.1f %%, %s left", (long long)p->shard + 1,
                       p->shard_s, p->tps, (long long)p->done, (long long)p->total, 100.0 * (double)p->done / (double)p->total,
                       left);
    }
}

void mica_campaign_view_end(const mica_campaign_view *view)
{
    if (view->terminal)
        fputs("\r\033[K", stderr);
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
        row(p, "energy", "%.3f Wh for %lld tokens (RAPL: processor packages, the whole machine's)", s->energy_wh,
            (long long)s->totals.measured_tokens);
    if (isnan(s->usd))
        row(p, "cost", "unknown: it takes the energy or --watts, and a price of electricity");
    else
        row(p, "cost", "$%.6f so far: $%.6f energy, $%.6f hardware", s->usd, s->energy_usd, s->hardware_usd);
}

static void print_rates(const printer *p, const mica_campaign_state *s, const char *state)
{
    char left[48], spent[48];
    duration(s->left_s, left);
    duration((double)s->totals.wall_ns / 1e9, spent);
    if (s->tokens > 0)
        row(p, "rate", "%.1f tok/s over all, %.1f tok/s in the last shards", s->tps, s->recent_tps);
    row(p, "time", "%s computing", spent);
    if (s->part < 1 && s->tokens == 0)
        row(p, "left", "all of it");
    else if (s->part < 1)
        row(p, "left", "%s%s", left, strcmp(state, "stopped") == 0 ? ", once it is started again" : "");
}

static void print_text(const printer *p, const mica_campaign_row *r, const mica_campaign_state *s, const char *state)
{
    char bar[BAR + 1];
    const mica_campaign_totals *t = &s->totals;
    draw_bar(s->part, bar);
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
