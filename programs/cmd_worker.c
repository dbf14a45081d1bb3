/* cmd_worker.c - mica worker: computes shards of campaigns that other machines lead. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/record.h"
#include "bench/worker.h"
#include "bench_runtime.h"
#include "commands.h"
#include "interrupt.h"
#include "load.h"
#include "nats_login.h"

typedef struct session {
    const mica_opts *o;
    bool told;
} session;

/* The first Ctrl-C lets the shard in work end, the second one gives it to another worker. Asked all the time. */
static bool on_stop(void *user)
{
    session *s = user;
    if (mica_interrupt_count() > 0 && !s->told) {
        mica_term_note("stopping after the shard in work; Ctrl-C again gives it to another worker");
        s->told = true;
    }
    return mica_interrupt_count() > 1;
}

static bool on_finish(void *user)
{
    (void)user;
    return mica_interrupt_count() > 0;
}

static void on_note(void *user, const char *text)
{
    (void)user;
    mica_term_note("%s", text);
}

/* A name that is looked up where --runtime would. */
static bool find_runtime(void *user, const char *runtime, char out[4096])
{
    const session *s = user;
    mica_opts own = *s->o;
    mica_runtimes found = {.n = 0};
    own.runtime = runtime;
    if (mica_runtimes_find(&own, "", &found) != CODE_OK || found.n != 1)
        return false;
    snprintf(out, 4096, "%s", strcmp(found.item[0].adapter, "mica") == 0 ? "" : found.item[0].adapter);
    return true;
}

/* Of letters that are the same everywhere; eight random digits if none is given. */
static int name_of(const mica_opts *o, char out[64])
{
    char id[40];
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    if (o->worker_name) {
        if (strlen(o->worker_name) > 40 || strspn(o->worker_name, letters) != strlen(o->worker_name))
            return mica_term_usage("--name: 1 to 40 letters, digits, dots, hyphens and underscores");
        snprintf(out, 64, "%s", o->worker_name);
        return CODE_OK;
    }
    if (!mica_record_new_id(id))
        return mica_term_error("the system gives no random numbers");
    snprintf(out, 64, "%.8s", id);
    return CODE_OK;
}

/* --models, or the folder into which scripts/fetch-models puts models. */
static int models_folder(const mica_opts *o, char out[4096])
{
    if (o->worker_models)
        return snprintf(out, 4096, "%s", o->worker_models) < 4096 ? CODE_OK
                                                                  : mica_term_error("the path of --models is too long");
    int code = mica_load_fetched("x", out);
    if (code == CODE_OK)
        out[strlen(out) - 2] = '\0';
    return code;
}

static int work(session *s, const mica_nats_login *login, const char *name, const char *models)
{
    const mica_opts *o = s->o;
    mica_worker_stats stats;
    mica_error err;
    mica_worker_options w = {.nats = login->options,
                             .name = name,
                             .model = o->model,
                             .models = models,
                             .threads = (int32_t)o->threads,
                             .allow_fallback = o->allow_fallback,
                             .adapter_options = mica_runtime_options(o, on_stop, s),
                             .find_runtime = find_runtime,
                             .finish = on_finish,
                             .idle_s = o->idle_exit,
                             .on_note = on_note,
                             .user = s};
    mica_status status = mica_worker_run(&w, &stats, &err);
    printf("worker %s: %lld shards, %lld tokens, %lld failed\n", name, (long long)stats.shards, (long long)stats.tokens,
           (long long)stats.failed);
    return status ? mica_load_failed(&err) : mica_interrupt_count() > 0 ? CODE_INTERRUPTED : CODE_OK;
}

int mica_cmd_worker(const mica_opts *o)
{
    char name[64], models[4096];
    mica_nats_login login = {.password = NULL};
    session s = {.o = o};
    if (!o->nats)
        return mica_term_usage("mica worker: --nats URL is missing");
    mica_interrupt_catch();
    int code = name_of(o, name);
    if (code == CODE_OK)
        code = models_folder(o, models);
    if (code == CODE_OK)
        code = mica_nats_login_read(o, name, &login);
    if (code == CODE_OK)
        code = work(&s, &login, name, models);
    mica_nats_login_free(&login);
    return code;
}
