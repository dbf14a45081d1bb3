/* cmd_pull.c - mica pull: from a name, an address or a registry file to a model on this disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "commands.h"
#include "interrupt.h"
#include "load.h"
#include "pull/cache.h"
#include "pull/pull.h"
#include "pulled.h"
#include "share.h"

/* The first of these variables that says something. The upper-case HTTP_PROXY is not among them: a web server sets it from a
 * request's header "Proxy". */
static const char *environment(const char *a, const char *b, const char *c, const char *d)
{
    const char *names[] = {a, b, c, d};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = names[i] ? getenv(names[i]) : NULL;
        if (value && *value)
            return value;
    }
    return NULL;
}

static void set_options(const mica_opts *o, const char *token, mica_pull_options *options)
{
    options->token = token ? token : environment("MICA_PULL_TOKEN", NULL, NULL, NULL);
    options->proxy_http = environment("http_proxy", "all_proxy", "ALL_PROXY", NULL);
    options->proxy_https = environment("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY");
    options->no_proxy = environment("no_proxy", "NO_PROXY", NULL, NULL);
    options->ca_file = environment("SSL_CERT_FILE", NULL, NULL, NULL);
    options->retries = (int32_t)o->retries;
    options->stall_s = (int32_t)o->stall;
}

/* ---- What is to be pulled ---- */

static int open_name(const char *name, mica_pull_entry *entry, mica_error *err)
{
    char file[256], path[4096];
    if (!mica_name_good(name))
        return mica_term_usage(
            "mica pull: \"%s\" is neither the name of a model, an address (http://, https://) nor a file (.json)", name);
    snprintf(file, sizeof file, "registry/%s.json", name);
    if (!mica_share_find(file, path))
        return mica_term_error("no model %s is known: mica models known lists those that are; others by their address", name);
    return mica_pull_entry_open(path, entry, err) ? mica_load_failed(err) : CODE_OK;
}

static bool is_file(const char *word)
{
    size_t n = strlen(word);
    return strchr(word, '/') || (n > 5 && strcmp(word + n - 5, ".json") == 0);
}

static int open_entry(const mica_opts *o, mica_pull_entry *entry)
{
    const char *word = o->args[0];
    mica_error err;
    *entry = (mica_pull_entry){.bytes = -1};
    if (strstr(word, "://"))
        return mica_pull_entry_from_url(word, o->pull_name, o->sha256, entry, &err) ? mica_load_failed(&err) : CODE_OK;
    if (o->sha256 || o->pull_name)
        return mica_term_usage("--sha256 and --name go with an address: a registry file says both itself");
    if (!is_file(word))
        return open_name(word, entry, &err);
    return mica_pull_entry_open(word, entry, &err) ? mica_load_failed(&err) : CODE_OK;
}

/* ---- Where to ---- */

static mica_status pull_to_cache(const mica_pull_entry *entry, const mica_pull_options *options, char path[4096],
                                 char sum[MICA_SHA256_TEXT], mica_error *err)
{
    char folder[4096], file[4096];
    if (mica_load_fetched("blobs", file) != CODE_OK || mica_pulled_folder(folder) != CODE_OK || !mica_share_make_folders(file))
        return mica_fail(err, MICA_IO_ERROR, "the folder of models, %s, cannot be made", mica_path_tail(file));
    mica_status status = mica_pull_model(entry, folder, options, path, err);
    if (!status && !mica_cache_is_blob(path, sum)) /* a file that was there by other means, and is the same */
        memcpy(sum, entry->sha256, MICA_SHA256_TEXT);
    return status;
}

static int pull(const mica_opts *o, const mica_pull_entry *entry, const char *token)
{
    char path[4096] = "", sum[MICA_SHA256_TEXT] = "";
    mica_pulled_progress progress;
    mica_error err;
    mica_status status;
    mica_pull_options options = mica_pulled_options(&progress, entry->name);
    set_options(o, token, &options);
    if (*entry->licence)
        mica_term_note("%s: licence: %s", entry->name, entry->licence);
    mica_interrupt_catch();
    if (o->out)
        status = mica_pull_file(entry, o->out, &options, sum, &err);
    else
        status = pull_to_cache(entry, &options, path, sum, &err);
    mica_bar_end(&progress.bar);
    if (status)
        return mica_load_failed(&err);
    if (!*entry->sha256)
        mica_term_note("%s: nothing said what its SHA-256 should be; it is %s", entry->name, sum);
    printf("%s\n", o->out ? o->out : path);
    return CODE_OK;
}

int mica_cmd_pull(const mica_opts *o)
{
    mica_pull_entry entry;
    char *token = NULL;
    int code = mica_load_secret(o->pull_token_file, &token);
    if (code == CODE_OK) {
        code = open_entry(o, &entry);
        if (code == CODE_OK)
            code = pull(o, &entry, token);
        mica_pull_entry_free(&entry);
    }
    free(token);
    return code;
}
