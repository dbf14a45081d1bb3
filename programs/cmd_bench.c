/* cmd_bench.c - mica bench: runtimes, one after the other, through a protocol. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/eta.h"
#include "bench/keep.h"
#include "bench/measure.h"
#include "bench_print.h"
#include "bench_runtime.h"
#include "commands.h"
#include "conditions.h"
#include "interrupt.h"
#include "live.h"
#include "load.h"
#include "share.h"
#include "slo_file.h"

/* ---- Progress ---- */

/* A line on a terminal, rewritten; else a line a phase. */
typedef struct progress {
    mica_live live;
    mica_eta eta;
    size_t at, n; /* of the runtimes */
    char last[24];
    double last_done; /* of the phase */
} progress;

static void show_live(progress *s, const mica_measure_progress *p)
{
    char rate[40] = "", which[48] = "";
    double part, left_s = mica_eta_left(&s->eta, p->at, p->done, mica_now_ns(), &part);
    bool decodes = strcmp(p->phase, "decode") == 0;
    if (decodes && p->done != s->last_done)
        mica_live_rate(&s->live, p->tps);
    s->last_done = p->done;
    if (decodes && isfinite(p->tps))
        snprintf(rate, sizeof rate, "  %.1f tok/s", p->tps);
    if (s->n > 1)
        snprintf(which, sizeof which, "%zu of %zu: ", s->at + 1, s->n);
    /* What comes after this runtime is not known: the time that is left is this one's. */
    mica_live_show(&s->live, part, left_s, false, "%s%s  %s%s%s%s", which, p->name, p->phase, rate, *p->note ? "  " : "",
                   p->note);
}

static void on_progress(void *user, const mica_measure_progress *p)
{
    progress *s = user;
    if (s->live.terminal)
        show_live(s, p);
    else if (strcmp(s->last, p->phase) != 0)
        mica_term_note("%s: %d of %d, %s", p->name, p->at + 1, p->n, p->phase);
    snprintf(s->last, sizeof s->last, "%s", p->phase);
}

static bool on_stop(void *user)
{
    (void)user;
    return mica_interrupt_count() > 0;
}

/* ---- Files ---- */

static int open_protocol(const mica_opts *o, mica_protocol *protocol)
{
    char name[300], path[4096];
    mica_error err;
    bool is_path =
        strchr(o->protocol, '/') || (strlen(o->protocol) > 5 && strcmp(o->protocol + strlen(o->protocol) - 5, ".json") == 0);
    snprintf(name, sizeof name, "protocols/%.200s.json", o->protocol);
    if (!is_path && !mica_share_find(name, path))
        return mica_term_error("there is no protocol %s in share/mica/protocols beside the program; name one by its path",
                               o->protocol);
    return mica_protocol_open(is_path ? o->protocol : path, protocol, &err) ? mica_load_failed(&err) : CODE_OK;
}

static int open_store(const mica_opts *o, mica_store **store)
{
    char path[4096];
    mica_error err;
    if (!o->db && !mica_share_own("bench.db", path))
        return mica_term_error("there is no place for the database: neither XDG_DATA_HOME nor HOME is set; give one with --db");
    return mica_store_open(o->db ? o->db : path, store, &err) ? mica_load_failed(&err) : CODE_OK;
}

/* ---- Running ---- */

typedef struct bench {
    const mica_opts *o;
    mica_protocol protocol;
    mica_store *store;
    json_t *conditions, *slo;
    mica_runtimes runtimes;
    mica_record runs[MICA_RUNTIMES_MAX];
    size_t n_runs;
} bench;

/* A sustained run of our own engine is what others want to know of this device. */
static int keep_figures(const bench *b, const mica_runtime *runtime, const mica_record *run)
{
    char store[4096];
    mica_error err;
    bool elsewhere = b->o->sysroot && *b->o->sysroot;
    if (elsewhere || !mica_bench_keeps(run) || !mica_share_own("device.json", store))
        return CODE_OK;
    return mica_bench_keep(run, runtime->model, store, &err) ? mica_load_failed(&err) : CODE_OK;
}

static int run_one(bench *b, size_t i)
{
    const mica_runtime *runtime = &b->runtimes.item[i];
    progress shown = {.live = mica_live_begin(), .at = i, .n = b->runtimes.n};
    mica_error err;
    mica_eta_begin(&shown.eta, &b->protocol, mica_now_ns());
    mica_measure_options m = {.adapter = runtime->adapter,
                              .model = runtime->model,
                              .backend = b->o->backend,
                              .allow_fallback = b->o->allow_fallback,
                              .threads = (int32_t)b->o->threads,
                              .protocol = &b->protocol,
                              .adapter_options = mica_runtime_options(b->o, on_stop, NULL),
                              .store = b->store,
                              .sysroot = b->o->sysroot,
                              .conditions = b->conditions,
                              .on_progress = on_progress,
                              .progress_user = &shown};
    mica_status status = mica_measure_run(&m, &b->runs[b->n_runs], &err);
    b->n_runs += b->runs[b->n_runs].head != NULL;
    mica_live_end(&shown.live);
    return status ? mica_load_failed(&err) : keep_figures(b, runtime, &b->runs[b->n_runs - 1]);
}

/* A runtime that fails does not keep the others from being measured; Ctrl-C does. */
static int run_all(bench *b)
{
    int code = CODE_OK;
    for (size_t i = 0; i < b->runtimes.n && code != CODE_INTERRUPTED; i++) {
        int one = run_one(b, i);
        code = one != CODE_OK ? one : code;
    }
    return code;
}

static int judge(const bench *b)
{
    int code = CODE_OK;
    for (size_t i = 0; i < b->n_runs; i++) {
        const char *name = json_string_value(json_object_get(b->runs[i].head, "name"));
        int one = mica_slo_file_judge(b->slo, name, b->runs[i].summary);
        code = one != CODE_OK ? one : code;
    }
    return code;
}

/* Where the machine has to be cool, what no sensor tells counts as well. */
static bool cools_down(const mica_protocol *p)
{
    for (int32_t i = 0; i < p->n_phases; i++)
        if (p->phase[i].kind == MICA_PHASE_COOLDOWN)
            return true;
    return false;
}

static int prepare(bench *b)
{
    char path[4096];
    int code = mica_load_path(b->o, NULL, path);
    if (code == CODE_OK)
        code = mica_runtimes_find(b->o, path, &b->runtimes);
    if (code == CODE_OK)
        code = open_protocol(b->o, &b->protocol);
    if (code == CODE_OK)
        code = mica_slo_file_open(b->o, &b->slo);
    if (code == CODE_OK)
        code = mica_conditions_read(b->o, cools_down(&b->protocol), &b->conditions);
    return code == CODE_OK ? open_store(b->o, &b->store) : code;
}

/* mica bench analyze TRACE...: another way to write mica analyze TRACE... */
static int analyze(const mica_opts *o)
{
    mica_opts traces = *o;
    traces.args++;
    traces.n_args--;
    if (strcmp(o->args[0], "analyze") != 0)
        return mica_term_usage("mica bench: \"%s\" is one word too many (see mica help bench)", o->args[0]);
    return o->n_args > 1 ? mica_cmd_analyze(&traces) : mica_term_usage("mica bench analyze: a trace is missing");
}

int mica_cmd_bench(const mica_opts *o)
{
    if (o->n_args > 0)
        return analyze(o);
    if (o->keep_first)
        return mica_term_usage("--keep-first is for mica bench analyze, and mica analyze");
    bench *b = calloc(1, sizeof *b);
    if (!b)
        return mica_term_error("not enough memory");
    b->o = o;
    int code = prepare(b);
    if (code == CODE_OK) {
        mica_interrupt_catch();
        code = run_all(b);
        int printed = mica_bench_print(o->json ? "json" : o->format, b->runs, b->n_runs), kept = judge(b);
        code = code != CODE_OK ? code : printed != CODE_OK ? printed : kept;
    }
    for (size_t i = 0; i < b->n_runs; i++)
        mica_record_free(&b->runs[i]);
    mica_store_close(b->store);
    mica_protocol_free(&b->protocol);
    json_decref(b->conditions);
    json_decref(b->slo);
    free(b);
    return code;
}
