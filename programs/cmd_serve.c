/* cmd_serve.c - mica serve: options, the model, the server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "account.h"
#include "commands.h"
#include "guard.h"
#include "load.h"
#ifdef MICA_HAVE_ROUTER
#include "mica/mica_device.h"
#include "route.h"
#endif
#include "serve/server.h"

/* ---- Options ---- */

/* Every connection is a file descriptor; many systems give 1,024 unless asked. */
static void raise_file_limit(int64_t connections)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)connections + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        mica_term_note("the system allows fewer open files than --connections needs");
}

static int batch_options(const mica_opts *o, int32_t *cpus, mica_batch_options *b)
{
    mica_session_options s;
    int code = mica_load_session_options(o, cpus, &s);
    *b = mica_batch_options_default();
    b->max_sessions = (int32_t)o->parallel;
    b->n_ctx = s.n_ctx;
    b->kv_tokens = (int32_t)o->kv_tokens;
    b->step_tokens = (int32_t)(o->chunk > 0 && o->chunk < o->parallel ? o->parallel : o->chunk);
    b->n_threads = s.n_threads;
    b->cpus = s.cpus;
    b->memory_budget = s.memory_budget;
    b->memory_limit = s.memory_limit;
    b->constrained = true; /* any request may have one */
    b->sysroot = s.sysroot;
    b->kv_k = s.kv_k;
    b->kv_v = s.kv_v;
    return code;
}

/* The file's name without folders and .gguf. */
static void model_name(const mica_opts *o, const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%s", o->alias ? o->alias : slash ? slash + 1 : path);
    size_t n = strlen(out);
    if (!o->alias && n > 5 && strcmp(out + n - 5, ".gguf") == 0)
        out[n - 5] = '\0';
}

static void on_log(void *user, const char *line)
{
    (void)user;
    mica_term_note("%s", line);
}

static void on_settled(void *user)
{
    (void)user;
    mica_guard_end(true);
}

/* Telemetry, receipts and the conditions of --require, which are checked now and not with the first request. */
static int account_options(const mica_opts *o, mica_model *model, char cache[4096], mica_server_options *options)
{
    mica_receipt_options r = mica_receipt_options_default();
    mica_receipt *receipt;
    mica_error err;
    r.require = options->require = o->require.item;
    r.n_require = options->n_require = o->require.n;
    r.hashes = false;
    r.hash_cache = options->hash_cache = mica_account_hash_cache(cache);
    if (o->require.n > 0 && mica_receipt_new(model, &r, &receipt, &err))
        return mica_load_failed(&err);
    if (o->require.n > 0)
        mica_receipt_free(receipt);
    options->telemetry_text = o->telemetry_text;
#ifdef MICA_HAVE_ROUTER
    if (o->require.n > 0 && o->route_policy)
        return mica_term_usage("--require is for the model that is served; rungs of --route would not keep it");
    return mica_account_open_telemetry(o, &options->telemetry);
#else
    return CODE_OK;
#endif
}

#ifdef MICA_HAVE_ROUTER
/* --route: the policy's rungs beside the model. */
static int route_options(const mica_opts *o, const char *path, mica_routing *routing, mica_server_options *options)
{
    routing->telemetry = options->telemetry;
    int code = mica_routing_open(o, o->route_policy, routing);
    options->router = routing->router;
    options->runner = routing->runner;
    options->model_path = path;
    options->network = mica_routing_network(o);
    options->metered = o->metered ? MICA_YES : MICA_UNKNOWN;
    options->drain = true;
    return code;
}
#endif

/* ---- The command ---- */

static int serve(const mica_server_options *options)
{
    mica_server *server;
    mica_error err;
    if (mica_server_new(options, &server, &err))
        return mica_load_failed(&err);
    mica_term_note("%s is served at %s", options->name, mica_server_address(server));
    mica_status status = mica_server_run(server, &err);
    mica_server_free(server);
    return status ? mica_load_failed(&err) : CODE_OK;
}

int mica_cmd_serve(const mica_opts *o)
{
    char path[4096], name[4096], cache[4096];
    int32_t cpus[MICA_MAX_THREADS];
    const char *key = getenv("MICA_API_KEY");
    mica_server_options options = mica_server_options_default();
    mica_model *model = NULL;
    mica_governing governing = {.device = NULL};
#ifdef MICA_HAVE_ROUTER
    mica_routing routing = {.router = NULL};
#endif
    int code = mica_load_path(o, o->n_args > 0 ? o->args[0] : NULL, path);
    if (code == CODE_OK)
        code = batch_options(o, cpus, &options.batch);
    if (code == CODE_OK)
        code = mica_guard_begin(o, path);
    if (code == CODE_OK)
        code = mica_load_model(o, path, &model);
    if (code == CODE_OK)
        code = mica_load_check_context(o, model);
    if (code == CODE_OK)
        code = mica_governing_begin(o, path, model, &governing);
    if (code == CODE_OK)
        code = account_options(o, model, cache, &options);
#ifdef MICA_HAVE_ROUTER
    if (code == CODE_OK && o->route_policy)
        code = route_options(o, path, &routing, &options);
#endif
    if (code == CODE_OK) {
        mica_governing_apply(&governing, &options.batch.n_threads, &options.batch.cpus, &options.batch.governor);
        mica_governing_explain(&governing);
        model_name(o, path, name, sizeof name);
        options.model = model;
        options.name = name;
        options.host = o->host;
        options.port = (int)o->port;
        options.key_file = o->api_key_file;
        options.key = o->api_key_file || !key || !*key ? NULL : key;
        options.cors_origin = o->cors_origin;
        options.think = strcmp(o->reasoning, "split") == 0;
        options.queue = (int)o->queue;
        options.connections = (int)o->connections;
        options.time_s = (int)o->timeout;
        options.prefix_file = o->prefixes;
        options.on_log = on_log;
        options.on_settled = on_settled;
        raise_file_limit(o->connections);
        code = serve(&options);
    }
#ifdef MICA_HAVE_ROUTER
    mica_routing_close(&routing);
    mica_account_close_telemetry(options.telemetry);
#endif
    mica_guard_end(false);
    mica_governing_end(&governing);
    mica_model_close(model);
    return code;
}
