/* cmd_tune.c - mica tune: which cores decode this model fastest here, and how fast that stays. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "commands.h"
#include "device/figures.h"
#include "device/governor.h"
#include "governing.h"
#include "interrupt.h"
#include "load.h"
#include "tune_search.h"

enum { PROMPT = 32, CONTEXT = 2048, LEAST_TOKENS = 4, SKIP_TOKENS = 2 };
#define PROBE_S     0.5
#define SUSTAINED_S 4.0
#define TAIL_S      2.5  /* of that: the end, which counts */
#define BUDGET_S    20.0 /* of all probing */

typedef struct tune {
    const mica_opts *o;
    mica_model *model;
    mica_session *session;
    mica_governor *governor; /* knows the cores */
    mica_tune search;
    int32_t prompt[PROMPT];
    int64_t begin_ns, end_ns; /* of all probing */
    double sustained;
} tune;

/* ---- a probe ---- */

typedef struct probe {
    double skip_s, seconds; /* what does not count at first, and what does */
    int64_t limit_ns;
    int64_t start_ns, last_ns; /* of the reply that runs; its last token */
    int64_t spent_ns, counted_ns;
    int seen, counted;
    bool over;
} probe;

/* The first tokens of a reply still run on clocks and caches of what was before. */
static int count_token(void *user, const mica_token_event *e)
{
    probe *p = user;
    int64_t took = p->seen > 0 ? e->time_ns - p->last_ns : 0;
    p->last_ns = e->time_ns;
    p->spent_ns += took;
    if (++p->seen > SKIP_TOKENS && (double)p->spent_ns * 1e-9 >= p->skip_s) {
        p->counted_ns += took;
        p->counted++;
    }
    bool enough = p->counted >= LEAST_TOKENS && (double)p->counted_ns * 1e-9 >= p->seconds;
    p->over = enough || e->time_ns >= p->limit_ns || mica_interrupt_count() > 0;
    return p->over;
}

static mica_status use_level(tune *t, int32_t level, mica_error *err)
{
    mica_level l = t->search.levels[level];
    int32_t cpus[MICA_MAX_THREADS];
    mica_governor_output out = {.n_fast = l.n_fast, .n_slow = l.n_slow};
    mica_governor_cpus(t->governor, &out, cpus);
    return mica_session_set_threads(t->session, l.n_fast + l.n_slow, cpus, err);
}

/* A reply from the same beginning each time. MICA_CANCELLED is count_token()'s doing. */
static mica_status reply(tune *t, probe *p, mica_error *err)
{
    mica_generate_options g = mica_generate_options_default();
    g.sampling.temperature = 0;
    g.ignore_eos = true;
    g.on_token = count_token;
    g.user = p;
    p->seen = 0;
    mica_status status = mica_session_sync(t->session, t->prompt, PROMPT, err);
    if (!status)
        status = mica_session_generate(t->session, &g, NULL, err);
    return status == MICA_CANCELLED ? MICA_OK : status;
}

/* Tokens a second of a level; 0 if the time was over before. A fast model reaches the end of its context and begins again. */
static mica_status measure(tune *t, int32_t level, double skip_s, double seconds, double *rate, mica_error *err)
{
    probe p = {.skip_s = skip_s, .seconds = seconds, .limit_ns = t->begin_ns + (int64_t)(BUDGET_S * 1e9)};
    mica_status status = use_level(t, level, err);
    while (!status && !p.over && mica_interrupt_count() == 0 && mica_now_ns() < p.limit_ns)
        status = reply(t, &p, err);
    *rate = p.counted > 0 ? p.counted * 1e9 / (double)p.counted_ns : 0;
    if (mica_interrupt_count() > 0)
        return mica_fail(err, MICA_CANCELLED, "interrupted: nothing was kept");
    return status;
}

static double spent_s(const tune *t)
{
    return (double)(mica_now_ns() - t->begin_ns) * 1e-9;
}

static mica_status search(tune *t, mica_error *err)
{
    double rate = 0;
    mica_status status = measure(t, 0, 0, PROBE_S, &rate, err); /* discarded: pages are read, clocks go up */
    for (int32_t level;
         !status && (level = mica_tune_next(&t->search)) >= 0 && spent_s(t) < BUDGET_S - SUSTAINED_S - 2 * PROBE_S;) {
        status = measure(t, level, 0, PROBE_S, &rate, err);
        if (!status)
            mica_tune_note(&t->search, level, rate);
    }
    if (!status && !(t->search.rate[mica_tune_best(&t->search)] > 0))
        return mica_fail(err, MICA_UNSUPPORTED, "no token came within %.0f s: the model is too large to be tuned here",
                         BUDGET_S);
    if (!status)
        status = measure(t, mica_tune_chosen(&t->search), SUSTAINED_S - TAIL_S, TAIL_S, &t->sustained, err);
    t->end_ns = mica_now_ns();
    return status;
}

/* ---- making ---- */

/* Ids that are ordinary text in any vocabulary; their meaning does not matter to the time. */
static void make_prompt(tune *t)
{
    mica_model_info info;
    mica_model_get_info(t->model, &info);
    for (int32_t i = 0; i < PROMPT; i++)
        t->prompt[i] = (int32_t)((int64_t)info.n_vocab / 2 + i * 7) % info.n_vocab;
}

static int prepare(tune *t, char path[4096])
{
    mica_session_options options = mica_session_options_default();
    mica_governor_options g = mica_governor_options_default();
    const mica_level *levels;
    mica_model_info info;
    mica_error err;
    int code = mica_load_path(t->o, NULL, path);
    if (code == CODE_OK)
        code = mica_load_model(t->o, path, &t->model);
    if (code != CODE_OK)
        return code;
    g.sysroot = t->o->sysroot;
    if (mica_governor_new(&g, &t->governor, &err))
        return mica_load_failed(&err);
    int32_t n = mica_governor_levels(t->governor, &levels);
    mica_tune_init(&t->search, levels, n);
    mica_model_get_info(t->model, &info);
    options.n_ctx = info.n_ctx_train > 0 && info.n_ctx_train < CONTEXT ? info.n_ctx_train : CONTEXT;
    options.n_threads = levels[0].n_fast + levels[0].n_slow;
    options.full_policy = MICA_FULL_STOP;
    options.sysroot = t->o->sysroot;
    bool was_free = mica_interrupt_hold(); /* the session's threads are not to get Ctrl-C */
    mica_status status = mica_session_new(t->model, &options, &t->session, &err);
    mica_interrupt_release(was_free);
    make_prompt(t);
    return status ? mica_load_failed(&err) : CODE_OK;
}

/* ---- keeping and telling ---- */

static int keep(const tune *t, const char *path, const char *store)
{
    char key[MICA_FIGURES_KEY];
    mica_figures f;
    mica_model_info info;
    mica_error err;
    mica_level l = t->search.levels[mica_tune_chosen(&t->search)];
    mica_governor_output out = {.n_fast = l.n_fast, .n_slow = l.n_slow};
    int32_t cpus[MICA_MAX_THREADS];
    mica_model_get_info(t->model, &info);
    mica_figures_clear(&f);
    mica_figures_context_here(t->o->sysroot, info.kernels, &f.context);
    snprintf(f.source, sizeof f.source, "tune");
    f.measured_unix = (int64_t)time(NULL);
    f.tuned_threads = l.n_fast + l.n_slow;
    f.tuned_cold_tps = t->search.rate[mica_tune_chosen(&t->search)];
    f.tuned_sustained_tps = t->sustained;
    mica_governor_cpus(t->governor, &out, cpus);
    f.n_tuned_cpus = cpus[0] >= 0 ? f.tuned_threads : 0;
    for (int32_t i = 0; i < f.n_tuned_cpus; i++)
        f.tuned_cpus[i] = cpus[i];
    if (mica_figures_key(path, key, &err) || mica_figures_save(store, key, &f, &err))
        return mica_load_failed(&err);
    return CODE_OK;
}

static int print_json(const tune *t)
{
    const mica_tune *s = &t->search;
    json_t *list = json_array();
    for (int32_t i = 0; i < s->n; i++)
        if (s->probes[i] > 0)
            json_array_append_new(list, json_pack("{s:i, s:i, s:i, s:f}", "fast", s->levels[i].n_fast, "efficient",
                                                  s->levels[i].n_slow, "probes", s->probes[i], "tps", s->rate[i]));
    int32_t chosen = mica_tune_chosen(s), best = mica_tune_best(s);
    json_t *all = json_pack("{s:o, s:{s:i, s:i, s:f}, s:{s:i, s:i, s:f, s:f}, s:f}", "levels", list, "fastest", "fast",
                            s->levels[best].n_fast, "efficient", s->levels[best].n_slow, "tps", s->rate[best], "chosen", "fast",
                            s->levels[chosen].n_fast, "efficient", s->levels[chosen].n_slow, "cold_tps", s->rate[chosen],
                            "sustained_tps", t->sustained, "probing_s", (double)(t->end_ns - t->begin_ns) * 1e-9);
    return mica_json_line(all) ? CODE_OK : CODE_FAILED;
}

static void name_level(mica_level l, char out[64])
{
    if (l.n_slow == 0)
        snprintf(out, 64, "%d thread%s", l.n_fast, l.n_fast == 1 ? "" : "s");
    else
        snprintf(out, 64, "%d on fast, %d on efficient cores", l.n_fast, l.n_slow);
}

static int print_text(const tune *t)
{
    const mica_tune *s = &t->search;
    char name[64];
    for (int32_t i = 0; i < s->n; i++) {
        name_level(s->levels[i], name);
        if (s->probes[i] > 0)
            printf("%-36s %8.2f tokens/s\n", name, s->rate[i]);
    }
    int32_t chosen = mica_tune_chosen(s);
    name_level(s->levels[chosen], name);
    printf("%s: %.2f tokens/s cold, %.2f after that; found in %.1f s, and used from now on (--no-tuned: not)\n", name,
           s->rate[chosen], t->sustained, (double)(t->end_ns - t->begin_ns) * 1e-9);
    return CODE_OK;
}

int mica_cmd_tune(const mica_opts *o)
{
    tune t = {.o = o};
    char path[4096], store[4096];
    mica_error err;
    int code = mica_governing_figures(store);
    if (code == CODE_OK)
        code = prepare(&t, path);
    if (code == CODE_OK) {
        mica_interrupt_catch();
        mica_interrupt_watch(t.session);
        t.begin_ns = mica_now_ns();
        code = search(&t, &err) ? mica_load_failed(&err) : CODE_OK;
        mica_interrupt_watch(NULL);
    }
    if (code == CODE_OK)
        code = keep(&t, path, store);
    if (code == CODE_OK)
        code = o->json ? print_json(&t) : print_text(&t);
    mica_session_free(t.session);
    mica_governor_free(t.governor);
    mica_model_close(t.model);
    return code;
}
