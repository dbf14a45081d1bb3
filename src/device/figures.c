#include "device/figures.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/map.h"
#include "base/newfile.h"
#include "device/cpus.h"

enum { VERSION = 1, MAX_BYTES = 4 << 20, MAX_NAME = 255 };

/* ---- Context ---- */

void mica_figures_context_here(const char *sysroot, const char *kernels, mica_figures_context *out)
{
    mica_cpu_set *set = malloc(sizeof *set);
    char name[128];
    snprintf(out->build, sizeof out->build, "%s", mica_engine_id());
    mica_cpu_name(sysroot, name);
    int n = set && mica_cpus_read(sysroot, set, NULL) == MICA_OK ? set->n : 0;
    free(set);
    snprintf(out->cpu, sizeof out->cpu, "%.100s, %d usable", name, n);
    snprintf(out->kernels, sizeof out->kernels, "%s", kernels ? kernels : "");
}

bool mica_figures_hold(const mica_figures_context *made, const mica_figures_context *here)
{
    return strcmp(made->build, here->build) == 0 && strcmp(made->cpu, here->cpu) == 0 &&
           strcmp(made->kernels, here->kernels) == 0;
}

mica_status mica_figures_key(const char *model_path, char key[MICA_FIGURES_KEY], mica_error *err)
{
    struct stat info;
    const char *slash = strrchr(model_path, '/'), *name = slash ? slash + 1 : model_path;
    if (stat(model_path, &info) != 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot look at %s: %s", mica_path_tail(model_path), strerror(errno));
    if (!*name || strlen(name) > MAX_NAME)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%s has no file name of 1 to %d bytes", mica_path_tail(model_path),
                         MAX_NAME);
    snprintf(key, MICA_FIGURES_KEY, "%.255s@%lld", name, (long long)info.st_size);
    for (char *c = key; *c; c++) /* a name may hold anything; JSON wants UTF-8 */
        if (*c < 0x20 || *c > 0x7e)
            *c = '?';
    return MICA_OK;
}

/* ---- Fields ---- */

typedef enum field_kind { TEXT, REAL, COUNT, BYTES } field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    size_t offset, size; /* size: of a TEXT */
} field;

#define FIELD(type, member, name, kind)                                                                                        \
    {                                                                                                                          \
        name, kind, offsetof(type, member), sizeof(((type *)NULL)->member)                                                     \
    }

static const field model_fields[] = {
    FIELD(mica_figures, context.build, "build", TEXT),
    FIELD(mica_figures, context.cpu, "cpu", TEXT),
    FIELD(mica_figures, context.kernels, "kernels", TEXT),
    FIELD(mica_figures, source, "source", TEXT),
    FIELD(mica_figures, measured_unix, "measured_unix", BYTES),
    FIELD(mica_figures, threads, "threads", COUNT),
    FIELD(mica_figures, prefill_tps, "prefill_tps", REAL),
    FIELD(mica_figures, decode_tps, "decode_tps", REAL),
    FIELD(mica_figures, cold_tps, "cold_tps", REAL),
    FIELD(mica_figures, measured_s, "measured_s", REAL),
    FIELD(mica_figures, joules_per_token, "joules_per_token", REAL),
    FIELD(mica_figures, peak_rss_bytes, "peak_rss_bytes", BYTES),
    FIELD(mica_figures, tuned_threads, "tuned_threads", COUNT),
    FIELD(mica_figures, tuned_cold_tps, "tuned_cold_tps", REAL),
    FIELD(mica_figures, tuned_sustained_tps, "tuned_sustained_tps", REAL),
};

static const field machine_fields[] = {
    FIELD(mica_machine_figures, context.build, "build", TEXT),
    FIELD(mica_machine_figures, context.cpu, "cpu", TEXT),
    FIELD(mica_machine_figures, measured_unix, "measured_unix", BYTES),
    FIELD(mica_machine_figures, threads, "threads", COUNT),
    FIELD(mica_machine_figures, read_bytes_per_s, "read_bytes_per_s", REAL),
};

enum {
    MODEL_FIELDS = sizeof model_fields / sizeof *model_fields,
    MACHINE_FIELDS = sizeof machine_fields / sizeof *machine_fields
};

static void get_field(const json_t *from, const field *f, void *to)
{
    const json_t *value = json_object_get(from, f->name);
    void *at = (char *)to + f->offset;
    json_int_t n = json_integer_value(value);
    if (f->kind == TEXT && json_is_string(value))
        snprintf(at, f->size, "%s", json_string_value(value));
    else if (f->kind == REAL)
        *(double *)at = json_is_number(value) && json_number_value(value) >= 0 ? json_number_value(value) : NAN;
    else if (f->kind == COUNT)
        *(int32_t *)at = n > 0 && n <= INT32_MAX ? (int32_t)n : 0;
    else if (f->kind == BYTES && json_is_integer(value) && n >= 0)
        *(int64_t *)at = n;
}

/** Writes a field that is known. */
static void set_field(json_t *to, const field *f, const void *from)
{
    const void *at = (const char *)from + f->offset;
    json_t *value = NULL;
    if (f->kind == TEXT && *(const char *)at)
        value = json_string(at);
    else if (f->kind == REAL && isfinite(*(const double *)at))
        value = json_real(*(const double *)at);
    else if (f->kind == COUNT && *(const int32_t *)at > 0)
        value = json_integer(*(const int32_t *)at);
    else if (f->kind == BYTES && *(const int64_t *)at > 0)
        value = json_integer(*(const int64_t *)at);
    if (value)
        json_object_set_new(to, f->name, value);
}

/* tuned_cpus is an array: the one member that is none of the kinds above. */
static void get_cpus(const json_t *from, mica_figures *f)
{
    const json_t *list = json_object_get(from, "tuned_cpus"), *value;
    size_t i;
    f->n_tuned_cpus = 0;
    if (json_array_size(list) != (size_t)f->tuned_threads || f->tuned_threads > MICA_FIGURES_CPUS)
        return;
    json_array_foreach((json_t *)(uintptr_t)list, i, value)
    {
        json_int_t cpu = json_is_integer(value) ? json_integer_value(value) : -1;
        if (cpu < 0 || cpu > INT32_MAX)
            return;
        f->tuned_cpus[i] = (int32_t)cpu;
    }
    f->n_tuned_cpus = f->tuned_threads;
}

static void set_cpus(json_t *to, const mica_figures *f)
{
    if (f->tuned_threads == 0)
        return;
    json_t *list = json_array();
    for (int32_t i = 0; i < f->n_tuned_cpus && i < MICA_FIGURES_CPUS; i++)
        json_array_append_new(list, json_integer(f->tuned_cpus[i]));
    json_object_set_new(to, "tuned_cpus", list);
}

void mica_figures_clear(mica_figures *f)
{
    memset(f, 0, sizeof *f);
    f->prefill_tps = f->decode_tps = f->cold_tps = f->measured_s = f->joules_per_token = NAN;
    f->tuned_cold_tps = f->tuned_sustained_tps = NAN;
    f->peak_rss_bytes = -1;
}

static void get_model(const json_t *from, mica_figures *f)
{
    mica_figures_clear(f);
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        get_field(from, &model_fields[i], f);
    get_cpus(from, f);
}

/* ---- The file ---- */

/** Its bytes; *out is malloc'ed. A file that becomes shorter meanwhile gives what it has. */
static mica_status read_text(int fd, const char *path, size_t size, char **out, size_t *length, mica_error *err)
{
    char *text = *out = malloc(size + 1);
    *length = 0;
    if (!text)
        return mica_fail_nomem(err, size, "the figures of this device");
    while (*length < size) {
        ssize_t n = read(fd, text + *length, size - *length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(path), strerror(errno));
        if (n == 0)
            break;
        *length += (size_t)n;
    }
    return MICA_OK;
}

/** What is not JSON is *out NULL. */
static mica_status parse_file(int fd, const char *path, json_t **out, mica_error *err)
{
    json_error_t fault;
    struct stat info;
    char *text = NULL;
    size_t length;
    if (fstat(fd, &info) != 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot look at %s: %s", mica_path_tail(path), strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size > MAX_BYTES)
        return MICA_OK;
    mica_status status = read_text(fd, path, (size_t)info.st_size, &text, &length, err);
    if (!status) {
        *out = mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, &fault);
        if (!*out && mica_json_no_memory(&fault))
            status = mica_fail_nomem(err, length, "the figures of this device");
    }
    free(text);
    return status;
}

/** NULL with MICA_OK: there is no file yet. */
static mica_status read_file(const char *path, json_t **out, mica_error *err)
{
    json_t *all = NULL;
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return MICA_OK;
    if (fd < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", mica_path_tail(path), strerror(errno));
    mica_status status = parse_file(fd, path, &all, err);
    close(fd);
    if (status)
        return status;
    if (json_integer_value(json_object_get(all, "version")) != VERSION) {
        json_decref(all);
        return mica_fail(err, MICA_BAD_FILE,
                         "%s is no file of figures of version %d; remove it, and what was measured is measured again",
                         mica_path_tail(path), VERSION);
    }
    *out = all;
    return MICA_OK;
}

mica_status mica_figures_load(const char *path, const char *key, mica_figures *out, mica_error *err)
{
    json_t *all;
    mica_figures_clear(out);
    mica_status status = read_file(path, &all, err);
    if (!status)
        get_model(json_object_get(json_object_get(all, "models"), key), out);
    json_decref(all);
    return status;
}

mica_status mica_figures_load_machine(const char *path, mica_machine_figures *out, mica_error *err)
{
    json_t *all;
    *out = (mica_machine_figures){.read_bytes_per_s = NAN};
    mica_status status = read_file(path, &all, err);
    for (size_t i = 0; !status && i < MACHINE_FIELDS; i++)
        get_field(json_object_get(all, "machine"), &machine_fields[i], out);
    json_decref(all);
    return status;
}

mica_status mica_figures_visit(const char *path, void (*visit)(void *user, const char *key, const mica_figures *figures),
                               void *user, mica_error *err)
{
    json_t *all, *model;
    const char *key;
    mica_status status = read_file(path, &all, err);
    json_object_foreach(json_object_get(all, "models"), key, model)
    {
        mica_figures f;
        get_model(model, &f);
        visit(user, key, &f);
    }
    json_decref(all);
    return status;
}

/** A descriptor that holds the lock until it is closed; -1. */
static int lock_file(const char *path, mica_error *err)
{
    char name[4096];
    int n = snprintf(name, sizeof name, "%s.lock", path);
    int fd = n > 0 && (size_t)n < sizeof name ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && flock(fd, LOCK_EX) == 0)
        return fd;
    mica_fail(err, MICA_IO_ERROR, "cannot lock %s: %s", mica_path_tail(path), strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static mica_status write_file(const char *path, const json_t *all, mica_error *err)
{
    char *text = mica_json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    if (!text)
        return mica_fail_nomem(err, 4096, "the figures of this device");
    size_t length = strlen(text);
    text[length] = '\n'; /* instead of its end */
    mica_status status = mica_newfile_put(path, MICA_NEWFILE_PRIVATE, text, length + 1, err);
    free(text);
    return status;
}

/** The object `name` of `in`, made if it is not there; NULL only without memory. */
static json_t *member(json_t *in, const char *name)
{
    json_t *found = json_object_get(in, name);
    if (json_is_object(found))
        return found;
    found = json_object();
    return json_object_set_new(in, name, found) == 0 ? found : NULL;
}

/** What changes the document. `data` is the figures. */
typedef bool (*change_fn)(json_t *all, const char *key, const void *data);

static mica_status change(const char *path, const char *key, change_fn fn, const void *data, mica_error *err)
{
    json_t *all = NULL;
    int lock = lock_file(path, err);
    if (lock < 0)
        return MICA_IO_ERROR;
    mica_status status = read_file(path, &all, err);
    if (!status && !all)
        all = json_pack("{s:i}", "version", VERSION);
    if (!status && !(all && fn(all, key, data)))
        status = mica_fail_nomem(err, 4096, "the figures of this device");
    if (!status)
        status = write_file(path, all, err);
    json_decref(all);
    close(lock);
    return status;
}

static bool change_model(json_t *all, const char *key, const void *data)
{
    const mica_figures *f = data;
    json_t *models = member(all, "models"), *model = models ? member(models, key) : NULL;
    mica_figures before;
    if (!model)
        return false;
    get_model(model, &before);
    if (!mica_figures_hold(&before.context, &f->context))
        json_object_clear(model);
    for (size_t i = 0; i < MODEL_FIELDS; i++)
        set_field(model, &model_fields[i], f);
    set_cpus(model, f);
    return true;
}

static bool change_machine(json_t *all, const char *key, const void *data)
{
    json_t *machine = member(all, "machine");
    (void)key;
    if (!machine)
        return false;
    json_object_clear(machine);
    for (size_t i = 0; i < MACHINE_FIELDS; i++)
        set_field(machine, &machine_fields[i], data);
    return true;
}

mica_status mica_figures_save(const char *path, const char *key, const mica_figures *figures, mica_error *err)
{
    return change(path, key, change_model, figures, err);
}

mica_status mica_figures_save_machine(const char *path, const mica_machine_figures *figures, mica_error *err)
{
    return change(path, "", change_machine, figures, err);
}
