#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "governing.h"
#include "load.h"
#include "mica/mica_device.h"
#include "route.h"
#include "share.h"

enum { MAX_PATH = 4096 };

int mica_routing_policy(const char *name, char path[4096])
{
    char inner[300];
    if (access(name, R_OK) == 0 && snprintf(path, MAX_PATH, "%s", name) < MAX_PATH)
        return CODE_OK;
    if (!strchr(name, '/') && snprintf(inner, sizeof inner, "router/policies/%s.json", name) < (int)sizeof inner &&
        mica_share_find(inner, path))
        return CODE_OK;
    return mica_term_error("there is no policy %s: neither a file that can be read, nor one that comes with the program", name);
}

int mica_routing_queue(const mica_opts *o, char path[4096])
{
    if (o->queue_file)
        return snprintf(path, MAX_PATH, "%s", o->queue_file) < MAX_PATH ? CODE_OK
                                                                        : mica_term_error("the path of the queue is too long");
    return mica_share_own("queue.db", path)
               ? CODE_OK
               : mica_term_error("there is no folder for the queue: set XDG_DATA_HOME, or give --queue-file");
}

/* ---- The network ---- */

/* Lines of a table of routes that lead anywhere but to this machine. Reading it opens no socket. */
static bool has_route(const char *path, bool v6)
{
    char line[512], device[64], to[64];
    unsigned flags;
    bool found = false;
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file)) {
        bool read = v6 ? sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %x %63s", &flags, device) == 2
                       : sscanf(line, "%63s %63s %*s %x", device, to, &flags) == 3;
        found = read && strcmp(device, "lo") != 0 && (flags & 1) != 0 && (flags & 0x200) == 0; /* RTF_UP, RTF_REJECT */
    }
    fclose(file);
    return found;
}

/* Without a route the answer is unknown, not no: a server may be on this machine. */
int mica_routing_network(const mica_opts *o)
{
    if (strcmp(o->network, "auto") != 0)
        return strcmp(o->network, "up") == 0 ? MICA_YES : MICA_NO;
    return has_route("/proc/net/route", false) || has_route("/proc/net/ipv6_route", true) ? MICA_YES : MICA_UNKNOWN;
}

/* ---- The runner ---- */

static const char *get_env(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

static void on_record(void *user, const char *line, size_t length)
{
    mica_routing *r = user;
    mica_error err;
    if (r->log && mica_route_log_append(r->log, line, length, &err)) {
        mica_term_error("%s", err.message);
        r->log_failed = true;
    }
}

static int models_folder(const mica_opts *o, char path[MAX_PATH])
{
    if (o->worker_models)
        return snprintf(path, MAX_PATH, "%s", o->worker_models) < MAX_PATH
                   ? CODE_OK
                   : mica_term_error("the path of --models is too long");
    int code = mica_load_fetched("", path);
    size_t n = strlen(path);
    if (code == CODE_OK && n > 1 && path[n - 1] == '/')
        path[n - 1] = '\0';
    return code;
}

static int open_runner(const mica_opts *o, mica_routing *r)
{
    char models[MAX_PATH], redact[MAX_PATH], figures[MAX_PATH];
    char *task = NULL, *governor = NULL;
    size_t length;
    mica_error err;
    mica_runner_options options = mica_runner_options_default();
    int code = models_folder(o, models);
    if (code == CODE_OK && mica_share_find("tasks/redact.json", redact))
        code = mica_load_file(redact, &task, &length);
    if (code == CODE_OK)
        code = mica_load_part(o->memory_budget, "memory-budget", &options.memory_budget);
    if (code == CODE_OK && strcmp(o->governor, "off") != 0)
        code = mica_governing_policy(o->governor, &governor, &length);
    options.router = r->router;
    options.queue_path = r->queue;
    options.models_dir = models;
    options.redact_task = task;
    options.governor = governor;
    options.n_threads = (int32_t)o->threads;
    options.sysroot = o->sysroot;
    options.figures = mica_share_place(0, "device.json", figures) ? figures : NULL;
    options.get_env = get_env;
    options.on_record = on_record;
    options.telemetry = r->telemetry;
    options.user = r;
    if (code == CODE_OK && mica_runner_new(&options, &r->runner, &err))
        code = mica_load_failed(&err);
    free(task);
    free(governor);
    return code;
}

int mica_routing_open(const mica_opts *o, const char *policy, mica_routing *r)
{
    char path[MAX_PATH], share[MAX_PATH];
    mica_error err;
    const char *name = policy ? policy : o->policy;
    *r = (mica_routing){.log = o->log, .telemetry = r->telemetry};
    if (!name)
        return mica_term_usage("a policy is needed: --policy FILE, or the name of one that comes with the program");
    int code = mica_routing_policy(name, path);
    if (code == CODE_OK)
        code = mica_routing_queue(o, r->queue);
    if (code == CODE_OK && mica_router_new(path, mica_share_place(1, "", share) ? share : NULL, &r->router, &err))
        code = mica_load_failed(&err);
    return code == CODE_OK ? open_runner(o, r) : code;
}

void mica_routing_close(mica_routing *r)
{
    mica_runner_free(r->runner);
    mica_router_free(r->router);
}
