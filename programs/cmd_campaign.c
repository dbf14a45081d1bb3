/* cmd_campaign.c - mica campaign: run carries a workload on, status says how far it is, export hands out what was measured. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_runtime.h"
#include "campaign_lead.h"
#include "campaign_text.h"
#include "commands.h"
#include "interrupt.h"
#include "load.h"
#include "prices.h"
#include "share.h"
#include "slo_file.h"

enum { MAX_PATH = 4096 };

static int database(const mica_opts *o, char path[MAX_PATH])
{
    if (!o->db && !mica_share_own("bench.db", path))
        return mica_term_error("there is no place for the database: neither XDG_DATA_HOME nor HOME is set; give one with --db");
    if (o->db && snprintf(path, MAX_PATH, "%s", o->db) >= MAX_PATH)
        return mica_term_error("the path of the database is longer than 4095 bytes");
    return CODE_OK;
}

/* ---- How far campaigns are ---- */

typedef struct listing {
    const mica_opts *o;
    mica_store *store;
    const char *wanted; /* a name, or the beginning of an id; NULL: all */
    json_t *slo;        /* limits that each must keep; NULL: none */
    mica_device_cost_input price;
    bool locked, broken;
    size_t n;
    int code;
} listing;

static bool is_wanted(const listing *l, const mica_campaign_row *row)
{
    return !l->wanted || strcmp(l->wanted, row->name) == 0 ||
           (*l->wanted && strncmp(l->wanted, row->id, strlen(l->wanted)) == 0);
}

static bool print_one(void *user, const mica_campaign_row *row)
{
    listing *l = user;
    mica_campaign_state state;
    mica_error err;
    if (!is_wanted(l, row))
        return true;
    if (l->n++ > 0 && strcmp(l->o->format, "json") != 0)
        putchar('\n');
    if (mica_campaign_state_read(l->store, row, &l->price, &state, &err))
        l->code = mica_load_failed(&err);
    else
        l->code = mica_campaign_print(l->o->format, row, &state, l->locked);
    if (l->code == CODE_OK && mica_slo_file_judge_campaign(l->slo, l->store, row->id, row->name) != CODE_OK)
        l->broken = true; /* the others are shown all the same */
    return l->code == CODE_OK;
}

static double given(double value)
{
    return value < 0 ? NAN : value;
}

static int read_price(const mica_opts *o, mica_device_cost_input *price)
{
    *price = (mica_device_cost_input){.power.v = given(o->watts),
                                      .idle_power.v = o->idle_watts,
                                      .device.v = o->device_usd,
                                      .life.v = o->years,
                                      .duty.v = o->duty,
                                      .battery.v = NAN,
                                      .measured_energy.v = NAN};
    return mica_prices_electricity(o, &price->electricity, NULL);
}

static int print_all(const mica_opts *o, mica_store *store, const char *path, const char *wanted, bool locked)
{
    listing l = {.o = o, .store = store, .wanted = wanted, .locked = locked, .code = CODE_OK};
    mica_error err;
    l.code = read_price(o, &l.price);
    if (l.code == CODE_OK)
        l.code = mica_slo_file_open(o, &l.slo);
    if (l.code == CODE_OK && mica_campaign_store_list(store, print_one, &l, &err))
        l.code = mica_load_failed(&err);
    else if (l.code == CODE_OK && l.n == 0)
        l.code = wanted ? mica_term_error("there is no campaign %s in %s", wanted, path)
                        : mica_term_error("there is no campaign in %s", path);
    json_decref(l.slo);
    return l.code == CODE_OK && l.broken ? CODE_FAILED : l.code;
}

static int show_status(const mica_opts *o, const char *wanted)
{
    char path[MAX_PATH];
    mica_store *store;
    mica_error err;
    int code = database(o, path);
    if (strcmp(o->format, "csv") == 0)
        return mica_term_usage("--format csv is for mica campaign export, which lists shards");
    if (code != CODE_OK)
        return code;
    if (mica_store_open_readonly(path, &store, &err))
        return mica_load_failed(&err);
    code = print_all(o, store, path, wanted, mica_campaign_locked(path));
    mica_store_close(store);
    return code;
}

/* ---- What was measured ---- */

/* A row of numbers a shard, those that are not done too. */
static mica_status export_row(void *user, const mica_shard_row *row, mica_error *err)
{
    const mica_shard_sums *sums = &row->sums;
    (void)user;
    (void)err;
    printf("%s,%lld,%s,%lld,%lld,%lld,%.3f,%lld,%lld,%lld,", row->shard.id, (long long)row->shard.seq,
           row->done ? "done" : "pending", (long long)row->shard.n_items, (long long)row->shard.tokens,
           (long long)row->started_unix, (double)row->wall_ns / 1e9, (long long)sums->prompt_tokens,
           (long long)sums->cached_tokens, (long long)sums->reply_tokens);
    if (isfinite(sums->joules))
        printf("%.3f", sums->joules);
    putchar('\n');
    return MICA_OK;
}

typedef struct exporting {
    mica_store *store;
    const char *id;
} exporting;

static mica_status export_samples(void *user, const mica_shard_row *row, mica_error *err)
{
    const exporting *e = user;
    mica_shard_result result;
    if (!row->done)
        return MICA_OK;
    mica_status status = mica_campaign_store_result(e->store, e->id, row, &result, err);
    if (status)
        return status;
    if (!mica_json_line(mica_campaign_shard_json(row, &result)))
        status = mica_fail(err, MICA_IO_ERROR, "shard %lld could not be written", (long long)row->shard.seq);
    mica_shard_result_free(&result);
    return status;
}

static bool export_one(void *user, const mica_campaign_row *row)
{
    listing *l = user;
    mica_error err;
    mica_campaign_state state;
    exporting e = {.store = l->store, .id = row->id};
    bool csv = strcmp(l->o->format, "csv") == 0;
    if (!is_wanted(l, row))
        return true;
    mica_status status = MICA_OK;
    l->n++;
    if (csv)
        puts("id,shard,state,requests,planned_tokens,started_unix,seconds,prompt_tokens,cached_tokens,reply_tokens,joules");
    else
        status = mica_campaign_state_read(l->store, row, &l->price, &state, &err);
    if (!status && !csv && !mica_json_line(mica_campaign_state_json(row, &state, l->locked)))
        l->code = CODE_FAILED;
    if (!status && l->code == CODE_OK)
        status = mica_campaign_store_shards(l->store, row->id, csv ? export_row : export_samples, &e, &err);
    if (status)
        l->code = mica_load_failed(&err);
    return l->code == CODE_OK;
}

static int export_all(const mica_opts *o, const char *wanted)
{
    char path[MAX_PATH];
    mica_error err;
    listing l = {.o = o, .wanted = wanted};
    if (strcmp(o->format, "md") == 0)
        return mica_term_usage("--format md is for mica campaign status; export prints json or csv");
    if (o->slo)
        return mica_term_usage("--slo is for mica campaign run and status");
    l.code = database(o, path);
    if (l.code == CODE_OK)
        l.code = read_price(o, &l.price);
    if (l.code != CODE_OK)
        return l.code;
    if (mica_store_open_readonly(path, &l.store, &err))
        return mica_load_failed(&err);
    l.locked = mica_campaign_locked(path);
    if (mica_campaign_store_list(l.store, export_one, &l, &err))
        l.code = mica_load_failed(&err);
    else if (l.code == CODE_OK && l.n == 0)
        l.code = mica_term_error("there is no campaign%s%s in %s", wanted ? " " : "", wanted ? wanted : "", path);
    mica_store_close(l.store);
    return l.code;
}

/* ---- Running ---- */

typedef struct session {
    const mica_opts *o;
    mica_campaign campaign;
    mica_runtimes runtime;
    char manifest[MAX_PATH], model[MAX_PATH], prompts[MAX_PATH], db[MAX_PATH];
    mica_campaign_view view;
} session;

/* The first Ctrl-C ends the run after the running shard, the second one gives that up. Asked all the time. */
static bool on_stop(void *user)
{
    session *s = user;
    if (mica_interrupt_count() > 0 && !s->view.told) {
        mica_live_end(&s->view.live);
        mica_term_note("stopping after the running shard; Ctrl-C again gives it up");
        s->view.told = true;
    }
    return mica_interrupt_count() > 1;
}

static bool on_finish(void *user)
{
    (void)user;
    return mica_interrupt_count() > 0;
}

static void on_progress(void *user, const mica_campaign_progress *progress)
{
    session *s = user;
    mica_campaign_view_show(&s->view, progress);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

/* A manifest by its path, or by its name: share/mica/campaigns/NAME.json. */
static int find_manifest(const char *word, char path[MAX_PATH])
{
    char name[300];
    bool is_path = strchr(word, '/') || ends_with(word, ".json");
    snprintf(name, sizeof name, "campaigns/%.200s.json", word);
    if (!is_path && !mica_share_find(name, path))
        return mica_term_error(
            "there is no campaign %s in share/mica/campaigns beside the program; name a manifest by its path", word);
    if (is_path && snprintf(path, MAX_PATH, "%s", word) >= MAX_PATH)
        return mica_term_error("the path of the manifest is longer than 4095 bytes");
    return CODE_OK;
}

/* A file that the manifest names, seen from the manifest's folder. */
static int beside(const char *manifest, const char *file, char path[MAX_PATH])
{
    const char *slash = strrchr(manifest, '/');
    int folder = *file != '/' && slash ? (int)(slash - manifest) + 1 : 0;
    if (snprintf(path, MAX_PATH, "%.*s%s", folder, manifest, file) >= MAX_PATH)
        return mica_term_error("the path of %s is longer than 4095 bytes", file);
    return CODE_OK;
}

static int find_runtime(session *s)
{
    mica_opts own = *s->o;
    own.runtime = s->campaign.runtime;
    int code = mica_runtimes_find(&own, s->model, &s->runtime);
    if (code == CODE_OK && (s->runtime.n != 1 || strchr(s->campaign.runtime, '=')))
        code = mica_term_error("the manifest's runtime \"%s\" is not one name", s->campaign.runtime);
    return code;
}

/* Who leads workers needs neither the runtime nor the model, whose hash the manifest may name. */
static int find_files(session *s)
{
    bool leads = s->o->nats != NULL;
    int code = beside(s->manifest, s->campaign.prompts, s->prompts);
    if (code == CODE_OK && s->o->model)
        code = mica_load_path(s->o, NULL, s->model);
    else if (code == CODE_OK)
        code = beside(s->manifest, s->campaign.model, s->model);
    if (code == CODE_OK && !s->o->model && access(s->model, R_OK) != 0)
        code = mica_load_fetched(s->campaign.model, s->model);
    bool there = code == CODE_OK && (s->o->model || access(s->model, R_OK) == 0);
    if (code == CODE_OK && !there && leads && *s->campaign.model_sha256)
        *s->model = '\0';
    else if (code == CODE_OK && !there)
        code = mica_term_error("the model %s is neither beside the manifest nor at %s; give it with -m FILE", s->campaign.model,
                               s->model);
    return code == CODE_OK && !leads ? find_runtime(s) : code;
}

static int compute_here(session *s, mica_store *store, mica_campaign_outcome *outcome)
{
    const mica_opts *o = s->o;
    mica_error err;
    bool own = strcmp(s->runtime.item[0].adapter, "mica") == 0;
    mica_campaign_run_options r = {.campaign = &s->campaign,
                                   .store = store,
                                   .model = s->model,
                                   .prompts = s->prompts,
                                   .adapter = own ? NULL : s->runtime.item[0].adapter,
                                   .threads = (int32_t)o->threads,
                                   .allow_fallback = o->allow_fallback,
                                   .adapter_options = mica_runtime_options(o, on_stop, s),
                                   .finish = on_finish,
                                   .limit_s = o->limit_seconds,
                                   .on_progress = on_progress,
                                   .user = s};
    mica_status status = mica_campaign_run(&r, outcome, &err);
    mica_live_end(&s->view.live);
    return status ? mica_load_failed(&err) : CODE_OK;
}

static int lead_workers(session *s, mica_store *store, mica_campaign_outcome *outcome)
{
    mica_campaign_lead lead = {.o = s->o,
                               .campaign = &s->campaign,
                               .store = store,
                               .model = *s->model ? s->model : NULL,
                               .prompts = s->prompts,
                               .view = &s->view};
    return mica_campaign_lead_run(&lead, outcome);
}

static int carry_on(session *s, mica_store *store)
{
    const mica_opts *o = s->o;
    mica_campaign_outcome outcome;
    s->view.live = mica_live_begin();
    int code = o->nats ? lead_workers(s, store, &outcome) : compute_here(s, store, &outcome);
    bool good = code == CODE_OK;
    if (good && outcome.end != MICA_CAMPAIGN_DONE)
        mica_term_note("%s; the same command goes on from here",
                       outcome.end == MICA_CAMPAIGN_LIMIT ? "the time limit is reached" : "stopped");
    if (good && outcome.end == MICA_CAMPAIGN_STOPPED)
        code = CODE_INTERRUPTED;
    /* How far it is, in the end: an error and Ctrl-C are told after it by the exit code. */
    int printed = *outcome.id ? print_all(o, store, s->db, outcome.id, false) : CODE_OK;
    return code != CODE_OK ? code : printed;
}

static int run_in(session *s)
{
    int lock = -1;
    mica_store *store = NULL;
    mica_error err;
    mica_status status = mica_campaign_lock(s->db, &lock, &err);
    if (!status)
        status = mica_store_open(s->db, &store, &err);
    int code = status ? mica_load_failed(&err) : carry_on(s, store);
    mica_store_close(store);
    if (lock >= 0)
        close(lock);
    return code;
}

/* A fault in the limits is told before hours of work, at whose end they are read. */
static int check_limits(const mica_opts *o)
{
    json_t *slo;
    int code = mica_slo_file_open(o, &slo);
    json_decref(slo);
    return code;
}

static int run_campaign(const mica_opts *o)
{
    mica_error err;
    if (strcmp(o->format, "csv") == 0)
        return mica_term_usage("--format csv is for mica campaign export, which lists shards");
    session *s = calloc(1, sizeof *s);
    if (!s)
        return mica_term_error("not enough memory");
    s->o = o;
    mica_interrupt_catch();
    int code = check_limits(o);
    if (code == CODE_OK)
        code = find_manifest(o->args[1], s->manifest);
    if (code == CODE_OK && mica_campaign_open(s->manifest, &s->campaign, &err))
        code = mica_load_failed(&err);
    if (code == CODE_OK)
        code = find_files(s);
    if (code == CODE_OK)
        code = database(o, s->db);
    if (code == CODE_OK)
        code = run_in(s);
    mica_campaign_free(&s->campaign);
    free(s);
    return code;
}

int mica_cmd_campaign(const mica_opts *o)
{
    const char *verb = o->args[0], *word = o->n_args > 1 ? o->args[1] : NULL;
    if (strcmp(verb, "run") == 0 && word)
        return run_campaign(o);
    if (strcmp(verb, "status") == 0)
        return show_status(o, word);
    if (strcmp(verb, "export") == 0)
        return export_all(o, word);
    return strcmp(verb, "run") == 0 ? mica_term_usage("mica campaign run: the manifest is missing")
                                    : mica_term_usage("mica campaign %s: the verbs are run, status and export", verb);
}
