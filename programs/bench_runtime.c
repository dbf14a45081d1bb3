#include "bench_runtime.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "share.h"

/* Adapters get absolute paths. What is no file here (a name that a server knows) stays as it is. */
static void absolute(const char *path, char out[4096])
{
    char *full = realpath(path, NULL);
    snprintf(out, 4096, "%s", full && strlen(full) < 4096 ? full : path);
    free(full);
}

static int find_adapter(const mica_opts *o, const char *name, char out[4096])
{
    char path[4096] = "", manifest[4200], below[300];
    if (strcmp(name, "mica") == 0) {
        snprintf(out, 4096, "mica");
        return CODE_OK;
    }
    snprintf(below, sizeof below, "adapters/%.200s", name);
    if (strchr(name, '/'))
        snprintf(path, sizeof path, "%s", name);
    else if (o->adapters)
        snprintf(path, sizeof path, "%.3800s/%.200s", o->adapters, name);
    else if (!mica_share_find(below, path))
        return mica_term_error(
            "there is no adapter %s in share/mica/adapters beside the program; --adapters DIR names another folder", name);
    snprintf(manifest, sizeof manifest, "%s/manifest.json", path);
    if (access(manifest, R_OK) != 0)
        return mica_term_error("there is no adapter at %s: it has no manifest.json", path);
    absolute(path, out);
    return CODE_OK;
}

static int add(const mica_opts *o, char *word, const char *model, mica_runtimes *out)
{
    char *equals = strchr(word, '=');
    if (out->n == MICA_RUNTIMES_MAX)
        return mica_term_usage("--runtime: at most %d runtimes are possible", MICA_RUNTIMES_MAX);
    if (equals)
        *equals = '\0';
    if (!*word || (equals && !equals[1]))
        return mica_term_usage("--runtime: a name is empty; write NAME or NAME=FILE, with commas between them");
    absolute(equals ? equals + 1 : model, out->item[out->n].model);
    return find_adapter(o, word, out->item[out->n++].adapter);
}

int mica_runtimes_find(const mica_opts *o, const char *model, mica_runtimes *out)
{
    int code = CODE_OK;
    char *text = strdup(o->runtime);
    if (!text)
        return mica_term_error("not enough memory");
    for (char *word = text, *next; word && code == CODE_OK; word = next) {
        next = strchr(word, ',');
        if (next)
            *next++ = '\0';
        code = add(o, word, model, out);
    }
    free(text);
    return code;
}

mica_adapter_options mica_runtime_options(const mica_opts *o, bool (*stop)(void *user), void *user)
{
    mica_adapter_options out = mica_adapter_options_default();
    out.stop = stop;
    out.user = user;
    out.sysroot = o->sysroot;
    out.kernels = mica_load_kernels(o);
    return out;
}
