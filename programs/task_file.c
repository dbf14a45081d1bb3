#include "task_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "interrupt.h"
#include "share.h"

enum { MAX_PATH = 4096, MAX_FOLDERS = 2, MAX_TASKS = 1000 };

/* ---- Folders ---- */

typedef struct folders {
    char path[MAX_FOLDERS][MAX_PATH];
    int n;
} folders;

static void find_folders(const mica_opts *o, folders *f)
{
    f->n = 0;
    if (o->tasks) {
        f->n = *o->tasks && snprintf(f->path[0], MAX_PATH, "%s", o->tasks) < MAX_PATH;
        return;
    }
    for (int i = 0; i < 2; i++)
        f->n += mica_share_place(i, "tasks", f->path[f->n]);
}

static bool is_path(const char *name)
{
    size_t n = strlen(name);
    return strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0);
}

static int find_definition(const mica_opts *o, const char *name, char path[MAX_PATH])
{
    folders f;
    if (is_path(name))
        return snprintf(path, MAX_PATH, "%s", name) < MAX_PATH ? CODE_OK : mica_term_error("the path of the task is too long");
    find_folders(o, &f);
    for (int i = 0; i < f.n; i++)
        if (snprintf(path, MAX_PATH, "%.*s/%s.json", MAX_PATH - 300, f.path[i], name) < MAX_PATH && access(path, R_OK) == 0)
            return CODE_OK;
    return mica_term_error(
        "there is no task %s in %s%s%s; mica task lists those that there are, --tasks DIR names another folder", name,
        f.n > 0 ? f.path[0] : "any folder", f.n > 1 ? " or " : "", f.n > 1 ? f.path[1] : "");
}

int mica_task_file_data(const mica_opts *o, const char *name, char path[MAX_PATH])
{
    char definition[MAX_PATH];
    int code = find_definition(o, name, definition);
    if (code != CODE_OK)
        return code;
    char *slash = strrchr(definition, '/'), *file = slash ? slash + 1 : definition;
    int folder = (int)(file - definition), stem = (int)strlen(file) - 5;
    if (snprintf(path, MAX_PATH, "%.*seval/%.*s.jsonl", folder, definition, stem > 0 ? stem : 0, file) < MAX_PATH &&
        access(path, R_OK) == 0)
        return CODE_OK;
    return mica_term_error("there is no labelled set for %s at %s; give one with --data", name, path);
}

/* ---- Definitions ---- */

static int read_definition(const char *path, json_t **definition)
{
    char *text;
    size_t length;
    json_error_t reason;
    int code = mica_load_file(path, &text, &length);
    if (code != CODE_OK)
        return code;
    *definition = mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    free(text);
    if (!*definition)
        return mica_term_error("%s is not JSON: line %d, column %d: %s", path, reason.line, reason.column, reason.text);
    if (!json_is_object(*definition)) {
        json_decref(*definition);
        *definition = NULL;
        return mica_term_error("%s is no task: it is not a JSON object", path);
    }
    return CODE_OK;
}

/* --schema takes a file, or the JSON itself. */
static int set_schema(const mica_opts *o, json_t *definition)
{
    char *text = NULL;
    size_t length = 0;
    json_error_t reason;
    const char *first = o->schema + strspn(o->schema, " \t\r\n");
    bool inline_text = *first == '{';
    int code = inline_text ? CODE_OK : mica_load_file(o->schema, &text, &length);
    if (code != CODE_OK)
        return code;
    json_t *schema = inline_text ? mica_json_loads(o->schema, JSON_REJECT_DUPLICATES, &reason)
                                 : mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    free(text);
    if (!schema)
        return mica_term_error("--schema is not JSON: line %d, column %d: %s", reason.line, reason.column, reason.text);
    json_object_set_new(definition, "schema", schema);
    json_object_del(json_object_get(definition, "prompt"), "examples"); /* they are of the other schema */
    return CODE_OK;
}

/* Labels of one's own make the definition's examples and calibration wrong for them. */
static void set_labels(const mica_opts *o, json_t *definition)
{
    json_t *labels = json_array();
    for (size_t i = 0; i < o->label.n; i++)
        json_array_append_new(labels, json_string(o->label.item[i]));
    json_object_set_new(definition, "labels", labels);
    json_object_del(json_object_get(definition, "prompt"), "examples");
}

static int change_definition(const mica_opts *o, json_t *definition)
{
    const char *kind = json_string_value(json_object_get(definition, "kind"));
    bool labelled = kind && (strcmp(kind, "classify") == 0 || strcmp(kind, "route") == 0);
    if (o->label.n > 0 && !labelled)
        return mica_term_usage("--label is for tasks of the kinds classify and route");
    if (o->threshold >= 0.0 && !(kind && strcmp(kind, "route") == 0))
        return mica_term_usage("--threshold is for tasks of the kind route");
    if (o->schema && !(kind && strcmp(kind, "extract") == 0))
        return mica_term_usage("--schema is for tasks of the kind extract");
    if (o->label.n > 0)
        set_labels(o, definition);
    if (o->threshold >= 0.0)
        json_object_set_new(definition, "threshold", json_real(o->threshold));
    if (o->rules_only)
        json_object_del(definition, "model");
    return o->schema ? set_schema(o, definition) : CODE_OK;
}

/* Whether only rules are needed: then no model is loaded. */
static bool needs_no_model(const json_t *definition)
{
    const char *kind = json_string_value(json_object_get(definition, "kind"));
    return kind && strcmp(kind, "redact") == 0 && !json_object_get(definition, "model");
}

/* ---- The task ---- */

static int open_task(const mica_opts *o, const char *path, const json_t *definition, mica_task_file *file)
{
    char model[4096];
    mica_error err;
    int code = CODE_OK;
    char *text = mica_json_dumps(definition, JSON_COMPACT);
    if (!text)
        return mica_term_error("%s is no task: a text in it is not valid UTF-8", path);
    if (!needs_no_model(definition)) {
        code = mica_load_path(o, NULL, model);
        if (code == CODE_OK)
            code = mica_load_model(o, model, &file->model);
    }
    if (code == CODE_OK && mica_task_new(file->model, text, strlen(text), &file->task, &err))
        code = mica_term_error("%s: %s", path, err.message);
    free(text);
    if (code == CODE_OK && file->model)
        code = mica_load_session(o, file->model, NULL, &file->session);
    if (code == CODE_OK)
        mica_task_get_info(file->task, &file->info);
    return code;
}

int mica_task_file_open(const mica_opts *o, const char *name, mica_task_file *file)
{
    char path[MAX_PATH];
    json_t *definition = NULL;
    memset(file, 0, sizeof *file);
    int code = find_definition(o, name, path);
    if (code == CODE_OK)
        code = read_definition(path, &definition);
    if (code == CODE_OK)
        code = change_definition(o, definition);
    if (code == CODE_OK)
        code = open_task(o, path, definition, file);
    json_decref(definition);
    return code;
}

void mica_task_file_close(mica_task_file *file)
{
    mica_task_free(file->task);
    mica_session_free(file->session);
    mica_model_close(file->model);
}

int mica_task_file_run(mica_task_file *file, const mica_task_input *input, json_t **result)
{
    mica_error err;
    char *text = NULL;
    size_t length = 0;
    mica_interrupt_watch(file->session);
    mica_status status = mica_task_run(file->task, file->session, input, &text, &length, &err);
    mica_interrupt_watch(NULL);
    if (status)
        return mica_load_failed(&err);
    *result = mica_json_loadb(text, length, JSON_ALLOW_NUL, NULL);
    mica_free(text);
    return *result ? CODE_OK : mica_term_error("not enough memory for the result");
}

/* ---- The list ---- */

typedef struct names {
    char *item[MAX_TASKS];
    size_t n;
} names;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_names(const char *folder, names *list)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t n = strlen(e->d_name), i = 0;
        if (n <= 5 || strcmp(e->d_name + n - 5, ".json") != 0 || list->n == MAX_TASKS)
            continue;
        char *name = strndup(e->d_name, n - 5);
        while (name && i < list->n && strcmp(list->item[i], name) != 0)
            i++;
        if (name && i == list->n)
            list->item[list->n++] = name;
        else
            free(name);
    }
    if (dir)
        closedir(dir);
}

static void print_task(const mica_opts *o, const char *name)
{
    char path[MAX_PATH];
    json_t *definition = NULL;
    if (find_definition(o, name, path) != CODE_OK || read_definition(path, &definition) != CODE_OK)
        return;
    const char *kind = json_string_value(json_object_get(definition, "kind"));
    const char *description = json_string_value(json_object_get(definition, "description"));
    printf("%-12s %-10s %s\n", name, kind ? kind : "?", description ? description : "");
    json_decref(definition);
}

int mica_task_file_list(const mica_opts *o)
{
    folders f;
    names list = {.n = 0};
    find_folders(o, &f);
    for (int i = 0; i < f.n; i++)
        add_names(f.path[i], &list);
    if (list.n > 1)
        qsort(list.item, list.n, sizeof *list.item, by_name);
    for (size_t i = 0; i < list.n; i++) {
        print_task(o, list.item[i]);
        free(list.item[i]);
    }
    if (list.n > 0)
        return CODE_OK;
    return mica_term_error("there are no tasks in %s%s%s; --tasks DIR names another folder", f.n > 0 ? f.path[0] : "any folder",
                           f.n > 1 ? " or " : "", f.n > 1 ? f.path[1] : "");
}
