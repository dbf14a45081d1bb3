/* cmd_models.c - mica models: what mica pull brought, and what it knows. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "interrupt.h"
#include "load.h"
#include "pull/cache.h"
#include "pull/entry.h"
#include "pulled.h"
#include "share.h"

static const char *const states[] = {[MICA_CACHE_GOOD] = "good",
                                     [MICA_CACHE_UNCHECKED] = "unchecked",
                                     [MICA_CACHE_MISSING] = "missing",
                                     [MICA_CACHE_FILE] = "file"};

/* ---- list ---- */

static json_t *as_json(const mica_cache_model *m)
{
    return json_pack("{s:o, s:I, s:o, s:s}", "name", mica_json_text(m->name, strlen(m->name)), "bytes", (json_int_t)m->bytes,
                     "sha256", *m->sha256 ? json_string(m->sha256) : json_null(), "state", states[m->state]);
}

static int print_json(const char *folder, const mica_cache_model *list, size_t n)
{
    json_t *models = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(models, as_json(&list[i]));
    return mica_json_line(json_pack("{s:o, s:o}", "folder", mica_json_text(folder, strlen(folder)), "models", models))
               ? CODE_OK
               : CODE_FAILED;
}

static int list_models(const mica_opts *o, const char *folder)
{
    mica_cache_model *list;
    size_t n;
    mica_error err;
    int code = CODE_OK;
    if (mica_cache_list(folder, &list, &n, &err))
        return mica_load_failed(&err);
    if (o->json) {
        code = print_json(folder, list, n);
    } else {
        if (n > 0)
            printf("%-44s %12s  %-12s  %s\n", "name", "bytes", "SHA-256", "state");
        for (size_t i = 0; i < n; i++)
            printf("%-44s %12lld  %-12.12s  %s\n", list[i].name, (long long)list[i].bytes,
                   *list[i].sha256 ? list[i].sha256 : "-", states[list[i].state]);
    }
    free(list);
    return code;
}

/* ---- verify ---- */

static int verify(const char *folder, const mica_cache_model *m)
{
    char path[4400];
    mica_pulled_progress progress;
    mica_error err;
    snprintf(path, sizeof path, "%s/%s", folder, m->name);
    if (m->state == MICA_CACHE_MISSING)
        return mica_term_error("%s: its file is missing; pull it again", m->name);
    if (m->state == MICA_CACHE_FILE) {
        printf("%s: was not pulled, so nothing says what its checksum should be\n", m->name);
        return CODE_OK;
    }
    mica_pull_options options = mica_pulled_options(&progress, m->name);
    mica_status status = mica_cache_verify(path, &options, &err);
    mica_bar_end(&progress.bar);
    if (status)
        return mica_load_failed(&err);
    printf("%s: good\n", m->name);
    return CODE_OK;
}

/* The file of a name, with or without ".gguf". */
static bool is_called(const mica_cache_model *m, const char *name)
{
    size_t n = strlen(name);
    return strncmp(m->name, name, n) == 0 && (!m->name[n] || strcmp(m->name + n, ".gguf") == 0);
}

static int verify_models(const mica_opts *o, const char *folder)
{
    mica_cache_model *list;
    size_t n, seen = 0;
    mica_error err;
    int code = CODE_OK;
    if (mica_cache_list(folder, &list, &n, &err))
        return mica_load_failed(&err);
    mica_interrupt_catch();
    for (size_t i = 0; i < n && code != CODE_INTERRUPTED; i++) {
        if (o->n_args > 1 && !is_called(&list[i], o->args[1]))
            continue;
        int one = verify(folder, &list[i]);
        code = one != CODE_OK ? one : code;
        seen++;
    }
    free(list);
    if (seen == 0 && o->n_args > 1)
        return mica_term_error("there is no model %s in %s", o->args[1], folder);
    return code;
}

/* ---- known ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of the registry files of a folder, added to the list. */
static bool add_names(const char *folder, char **names, size_t most, size_t *n)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && *n < most && (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (length <= 5 || strcmp(e->d_name + length - 5, ".json") != 0 || !mica_name_good(e->d_name))
            continue;
        if (!(names[*n] = strndup(e->d_name, length - 5)))
            break;
        ++*n;
    }
    if (dir)
        closedir(dir);
    return dir != NULL;
}

/* The file that mica pull NAME reads. One that is wrong is told, and the others are shown. */
static int print_known(const char *name)
{
    char file[300], path[4096];
    mica_pull_entry entry;
    mica_error err;
    snprintf(file, sizeof file, "registry/%s.json", name);
    if (!mica_share_find(file, path))
        return CODE_OK; /* gone since the folder was read */
    if (mica_pull_entry_open(path, &entry, &err))
        return mica_load_failed(&err);
    printf("%-44s %12lld  %s\n", name, (long long)entry.bytes, entry.description);
    mica_pull_entry_free(&entry);
    return CODE_OK;
}

static int list_known(void)
{
    enum { MOST = 1000 };
    char *names[MOST], folder[4096];
    size_t n = 0;
    int code = CODE_OK;
    for (int i = 0; i < 2; i++)
        if (mica_share_place(i, "registry", folder))
            (void)add_names(folder, names, MOST, &n);
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++) {
        if ((i == 0 || strcmp(names[i], names[i - 1]) != 0) && print_known(names[i]) != CODE_OK)
            code = CODE_FAILED;
    }
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    return code;
}

/* ---- rm, prune ---- */

static int take_away(const mica_opts *o, const char *folder)
{
    int64_t freed;
    mica_error err;
    mica_status status =
        o->n_args > 1 ? mica_cache_remove(folder, o->args[1], &freed, &err) : mica_cache_prune(folder, &freed, &err);
    if (status)
        return mica_load_failed(&err);
    printf("%lld bytes freed\n", (long long)freed);
    return CODE_OK;
}

int mica_cmd_models(const mica_opts *o)
{
    static const char usage[] = "mica models list | known | verify [NAME] | rm NAME | prune";
    char folder[4096];
    const char *what = o->n_args > 0 ? o->args[0] : "list";
    bool named = o->n_args > 1;
    int code = mica_pulled_folder(folder);
    if (code != CODE_OK)
        return code;
    if (strcmp(what, "verify") == 0)
        return verify_models(o, folder);
    if (strcmp(what, "rm") == 0 ? !named : named)
        return mica_term_usage("%s", usage);
    if (strcmp(what, "list") == 0)
        return list_models(o, folder);
    if (strcmp(what, "known") == 0)
        return list_known();
    if (strcmp(what, "rm") == 0 || strcmp(what, "prune") == 0)
        return take_away(o, folder);
    return mica_term_usage("mica models: there is no %s: %s", what, usage);
}
