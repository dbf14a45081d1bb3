/* cmd_bench.c - mica bench: runtimes, one after the other, through a protocol. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/slo.h"
#include "bench_print.h"
#include "bench_runtime.h"
#include "commands.h"
#include "interrupt.h"
#include "load.h"
#include "share.h"

/* ---- Progress ---- */

/* One line on a terminal, rewritten; else a line a phase. */
typedef struct progress {
    bool terminal;
    char last[24];
} progress;

static void on_progress(void *user, const mica_measure_progress *p)
{
    progress *s = user;
    char rate[40] = "";
    if (isfinite(p->tps))
        snprintf(rate, sizeof rate, "  %.1f tok/s", p->tps);
    if (s->terminal) {
        fprintf(stderr, "\r\033[K%s  %d/%d %s  %3.0f %%%s  %s", p->name, p->at + 1, p->n, p->phase, 100.0 * p->done, rate,
                p->note);
        fflush(stderr);
    } else if (strcmp(s->last, p->phase) != 0) {
        mica_term_note("%s: %d of %d, %s", p->name, p->at + 1, p->n, p->phase);
    }
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

static int open_slo(const mica_opts *o, json_t **slo)
{
    json_error_t reason;
    mica_error err;
    if (!o->slo)
        return CODE_OK;
    *slo = json_load_file(o->slo, JSON_REJECT_DUPLICATES, &reason);
    if (!*slo)
        return mica_term_error("%s: line %d: %s", o->slo, reason.line, reason.text);
    return mica_slo_check(*slo, &err) ? mica_term_error("%s: %s", o->slo, err.message) : CODE_OK;
}

static int open_store(const mica_opts *o, mica_store **store)
{
    char path[4096];
    mica_error err;
    if (!o->db && !mica_share_own("bench.db", path))
        return mica_term_error("there is no place for the database: neither XDG_DATA_HOME nor HOME is set; give one with --db");
    return mica_store_open(o->db ? o->db : path, store, &err) ? mica_load_failed(&err) : CODE_OK;
}

/* --condition NAME=TEXT */
static int read_conditions(const mica_opts *o, json_t **conditions)
{
    *conditions = o->condition.n > 0 ? json_object() : NULL;
    for (size_t i = 0; i < o->condition.n; i++) {
        const char *text = o->condition.item[i], *equals = strchr(text, '=');
        char name[64];
        if (!equals || equals == text || (size_t)(equals - text) >= sizeof name)
            return mica_term_usage("--condition: \"%s\" is not NAME=TEXT", text);
        snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
        if (json_object_set_new(*conditions, name, json_string(equals + 1)) != 0)
            return mica_term_usage("--condition: \"%s\" is not valid UTF-8", text);
    }
    return CODE_OK;
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

static int run_one(bench *b, const mica_runtime *runtime)
{
    progress shown = {.terminal = isatty(STDERR_FILENO)};
    mica_error err;
    mica_measure_options m = {.adapter = runtime->adapter,
                              .model = runtime->model,
                              .backend = b->o->backend,
                              .allow_fallback = b->o->allow_fallback,
                              .threads = (int32_t)b->o->threads,
                              .protocol = &b->protocol,
                              .adapter_options = mica_adapter_options_default(),
                              .store = b->store,
                              .sysroot = b->o->sysroot,
                              .conditions = b->conditions,
                              .on_progress = on_progress,
                              .progress_user = &shown};
    m.adapter_options.stop = on_stop;
    m.adapter_options.sysroot = b->o->sysroot;
    m.adapter_options.kernels = mica_load_kernels(b->o);
    mica_status status = mica_measure_run(&m, &b->runs[b->n_runs], &err);
    b->n_runs += b->runs[b->n_runs].head != NULL;
    if (shown.terminal)
        fputs("\r\033[K", stderr);
    return status ? mica_load_failed(&err) : CODE_OK;
}

/* A runtime that fails does not keep the others from being measured; Ctrl-C does. */
static int run_all(bench *b)
{
    int code = CODE_OK;
    for (size_t i = 0; i < b->runtimes.n && code != CODE_INTERRUPTED; i++) {
        int one = run_one(b, &b->runtimes.item[i]);
        code = one != CODE_OK ? one : code;
    }
    return code;
}

static int judge(const bench *b)
{
    int code = CODE_OK;
    for (size_t i = 0; b->slo && i < b->n_runs; i++) {
        const char *name = json_string_value(json_object_get(b->runs[i].head, "name"));
        json_t *broken = json_array(), *text;
        size_t k;
        if (!mica_slo_judge(b->slo, b->runs[i].summary, broken))
            code = CODE_FAILED;
        json_array_foreach(broken, k, text) mica_term_error("%s breaks a limit: %s", name, json_string_value(text));
        json_decref(broken);
    }
    return code;
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
        code = open_slo(b->o, &b->slo);
    if (code == CODE_OK)
        code = read_conditions(b->o, &b->conditions);
    return code == CODE_OK ? open_store(b->o, &b->store) : code;
}

int mica_cmd_bench(const mica_opts *o)
{
    bench *b = calloc(1, sizeof *b);
    if (!b)
        return mica_term_error("not enough memory");
    b->o = o;
    int code = prepare(b);
    if (code == CODE_OK) {
        mica_interrupt_catch();
        code = run_all(b);
        int printed = mica_bench_print(o->format, b->runs, b->n_runs), kept = judge(b);
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
