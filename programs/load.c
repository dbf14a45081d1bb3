#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "constrain.h"
#include "interrupt.h"
#include "pulled.h"

#define MAX_FILE      ((size_t)1 << 30) /* prompts, templates, texts */
#define MAX_CTX       (1 << 26)         /* the engine's own limit */
#define DEFAULT_MODEL "smollm2-135m-instruct-q4_1.gguf"

/* ---- Files and texts ---- */

static int read_stream(FILE *in, const char *name, char **data, size_t *length)
{
    mica_buf buf;
    char block[65536];
    mica_buf_init(&buf, MAX_FILE);
    do { /* an interrupted read of a file goes on; one of standard input ends, as Ctrl-C wants it */
        clearerr(in);
        for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
            mica_buf_append(&buf, block, n);
    } while (ferror(in) && errno == EINTR && in != stdin);
    int reason = errno;
    *data = NULL;
    if (ferror(in)) {
        mica_buf_free(&buf);
        return mica_term_error("cannot read %s: %s", name, strerror(reason));
    }
    *data = mica_buf_take(&buf, length);
    mica_buf_free(&buf);
    if (!*data)
        return mica_term_error("%s is larger than %zu bytes, or there is no memory for it", name, MAX_FILE);
    return CODE_OK;
}

int mica_load_file(const char *path, char **data, size_t *length)
{
    *data = NULL;
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", data, length);
    FILE *in = fopen(path, "rb");
    if (!in)
        return mica_term_error("cannot open %s: %s", path, strerror(errno));
    int code = read_stream(in, path, data, length);
    fclose(in);
    return code;
}

int mica_load_secret(const char *path, char **out)
{
    size_t length;
    *out = NULL;
    if (!path)
        return CODE_OK;
    int code = mica_load_file(path, out, &length);
    if (code != CODE_OK)
        return code;
    (*out)[strcspn(*out, "\r\n")] = '\0';
    return **out ? CODE_OK : mica_term_error("%s has no secret in its first line", path);
}

int mica_load_text(const mica_opts *o, char **text, size_t *length)
{
    *text = NULL;
    if ((o->prompt != NULL) + (o->file != NULL) + o->from_stdin > 1)
        return mica_term_usage("give the text once: with --prompt, with --file, or on standard input");
    if (!o->prompt && !o->file && isatty(STDIN_FILENO))
        mica_term_note("reading the text from standard input; Ctrl-D ends it");
    if (!o->prompt)
        return mica_load_file(o->file ? o->file : "-", text, length);
    *length = strlen(o->prompt);
    *text = strdup(o->prompt);
    return *text ? CODE_OK : mica_term_error("not enough memory for the prompt");
}

int mica_load_ids(const char *text, const char *option, int32_t **ids, size_t *n)
{
    size_t room = strlen(text) / 2 + 2; /* a number and its separator take two bytes at least */
    const char *p = text + strspn(text, " \t\r\n[");
    *n = 0;
    *ids = malloc(room * sizeof **ids);
    if (!*ids)
        return mica_term_error("not enough memory for the token ids");
    while (*p && *p != ']') {
        char number[16] = "";
        size_t digits = strspn(p, "-0123456789");
        int64_t id;
        if (digits < sizeof number)
            memcpy(number, p, digits);
        if (!mica_opt_read_int(number, INT32_MIN, INT32_MAX, &id)) {
            free(*ids);
            *ids = NULL;
            return mica_term_usage("%s: token id %zu of the list, \"%.12s\", is not a whole number of 32 bits", option, *n, p);
        }
        (*ids)[(*n)++] = (int32_t)id;
        p += digits;
        p += strspn(p, ", \t\r\n");
    }
    return CODE_OK;
}

/* "0-3,8" */
static int read_cpus(const char *list, int32_t *cpus, int64_t *n)
{
    const char *p = list;
    *n = 0;
    while (*p) {
        char *end;
        bool digit = *p >= '0' && *p <= '9';
        long first = digit ? strtol(p, &end, 10) : -1, last = first;
        if (digit && *end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtol(end + 1, &end, 10);
        if (!digit || last < first || last > 8191 || (*end && *end != ',') || (*end == ',' && !end[1]))
            return mica_term_usage("--cpus: \"%s\" is not a list of CPUs like 0-3,8", list);
        for (long cpu = first; cpu <= last; cpu++) {
            if (*n == MICA_MAX_THREADS)
                return mica_term_usage("--cpus: more than %d CPUs", MICA_MAX_THREADS);
            cpus[(*n)++] = (int32_t)cpu;
        }
        p = *end ? end + 1 : end;
    }
    return CODE_OK;
}

/* ---- Model ---- */

const char *mica_load_kernels(const mica_opts *o)
{
    const char *forced = getenv("MICA_KERNELS");
    return o->kernels ? o->kernels : forced && *forced ? forced : NULL;
}

int mica_load_failed(const mica_error *err)
{
    mica_term_error("%s", err->message);
    return err->code == MICA_CANCELLED ? CODE_INTERRUPTED : CODE_FAILED;
}

int mica_load_fetched(const char *name, char out[4096])
{
    const char *folder = getenv("MICA_MODELS_DIR"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (folder && *folder)
        n = snprintf(out, 4096, "%s/%s", folder, name);
    else if (cache && *cache)
        n = snprintf(out, 4096, "%s/mica/models/%s", cache, name);
    else
        n = snprintf(out, 4096, "%s/.cache/mica/models/%s", home ? home : "", name);
    return n < 4096 ? CODE_OK : mica_term_error("the path of the model is longer than 4095 bytes");
}

int mica_load_path(const mica_opts *o, const char *path, char out[4096])
{
    int code = CODE_OK;
    if (o->model && path)
        return mica_term_usage("the model is named twice: %s and --model %s", path, o->model);
    if (!o->model && !path)
        code = mica_load_fetched(DEFAULT_MODEL, out);
    else if (snprintf(out, 4096, "%s", path ? path : o->model) >= 4096)
        code = mica_term_error("the path of the model is longer than 4095 bytes");
    if (code == CODE_OK && !o->model && !path && access(out, R_OK) != 0)
        return mica_term_error("no model was named and the default one is not at %s; give one with -m FILE, or run "
                               "scripts/fetch-models",
                               out);
    return code == CODE_OK ? mica_pulled_resolve(out) : code;
}

static int show_loading(void *user, double done)
{
    mica_bar_show(user, done);
    return mica_interrupt_count() > 0;
}

int mica_load_model(const mica_opts *o, const char *path, mica_model **model)
{
    mica_bar bar = {.what = "loading"};
    mica_model_options options = mica_model_options_default();
    mica_error err;
    char *template = NULL;
    size_t length = 0;
    int64_t n_cpus;
    int32_t cpus[MICA_MAX_THREADS];
    int code = o->cpus ? read_cpus(o->cpus, cpus, &n_cpus) : CODE_OK; /* a wrong command line must not cost a loading */
    *model = NULL;
    if (code == CODE_OK && o->chat_template)
        code = mica_load_file(o->chat_template, &template, &length);
    if (code != CODE_OK)
        return code;
    if (template && strlen(template) != length) {
        free(template);
        return mica_term_error("%s is no chat template: it has a NUL byte", o->chat_template);
    }
    options.kernels = mica_load_kernels(o);
    options.chat_template = template;
    options.on_progress = show_loading;
    options.on_warning = mica_term_warning;
    options.user = &bar;
    options.lock = o->mlock;
    mica_status status = mica_model_open(path, &options, model, &err);
    mica_bar_end(&bar);
    free(template);
    return status ? mica_load_failed(&err) : CODE_OK;
}

/* ---- Session ---- */

static mica_kv_type kv_type(const char *name)
{
    return strcmp(name, "q8_0") == 0 ? MICA_KV_Q8_0 : strcmp(name, "q4_0") == 0 ? MICA_KV_Q4_0 : MICA_KV_F16;
}

int mica_load_part(const char *text, const char *option, int64_t *part)
{
    char number[24] = "";
    size_t length = text ? strlen(text) : 0, digits = length > 0 && text[length - 1] == '%' ? length - 1 : length;
    *part = 0;
    if (!text)
        return CODE_OK;
    if (digits < sizeof number)
        memcpy(number, text, digits);
    if (!mica_opt_read_int(number, 1, digits < length ? 100 : INT64_MAX, part))
        return mica_term_usage("--%s: \"%s\" is neither a number of bytes nor a percentage like 55%%", option, text);
    if (digits < length)
        *part = MICA_PERCENT(*part);
    return CODE_OK;
}

int mica_load_session_options(const mica_opts *o, int32_t *cpus, mica_session_options *options)
{
    int64_t threads = o->threads, n_cpus = 0;
    *options = mica_session_options_default();
    int parts = mica_load_part(o->memory_budget, "memory-budget", &options->memory_budget);
    if (parts == CODE_OK)
        parts = mica_load_part(o->memory_limit, "memory-limit", &options->memory_limit);
    if (parts != CODE_OK)
        return parts;
    if (o->cpus) {
        int code = read_cpus(o->cpus, cpus, &n_cpus);
        if (code != CODE_OK)
            return code;
        if (threads && threads != n_cpus)
            return mica_term_usage("--cpus names %lld CPUs, but --threads is %lld: they must agree", (long long)n_cpus,
                                   (long long)threads);
        threads = n_cpus;
        options->cpus = cpus;
    }
    options->n_ctx = (int32_t)(o->ctx < MAX_CTX ? o->ctx : MAX_CTX);
    options->n_threads = (int32_t)threads;
    options->prefill_chunk = (int32_t)o->chunk;
    options->full_policy = strcmp(o->full, "error") == 0   ? MICA_FULL_ERROR
                           : strcmp(o->full, "shift") == 0 ? MICA_FULL_SHIFT
                                                           : MICA_FULL_STOP;
    options->keep_first = (int32_t)o->keep;
    options->sysroot = o->sysroot;
    options->draft_max = strcmp(o->speculate, "off") == 0 ? 0 : (int32_t)o->draft_max;
    options->kv_k = kv_type(o->type_k);
    options->kv_v = kv_type(o->type_v);
    return CODE_OK;
}

/* Above the engine's limit the answer is a number of bytes, as it is for any other context that is too long. */
int mica_load_check_context(const mica_opts *o, const mica_model *model)
{
    mica_session_options small = mica_session_options_default();
    mica_memory_plan plan;
    mica_error err;
    if (o->ctx <= MAX_CTX)
        return CODE_OK;
    small.n_ctx = 1024;
    small.sysroot = o->sysroot;
    if (mica_session_plan(model, &small, &plan, &err))
        return mica_load_failed(&err);
    return mica_term_error("a context of %lld tokens needs %.0f bytes for its KV cache; at most %d tokens are possible: use a "
                           "smaller --ctx",
                           (long long)o->ctx, (double)plan.kv_bytes / 1024.0 * (double)o->ctx, MAX_CTX);
}

static void tell_context_event(void *user, const mica_context_event *event)
{
    (void)user;
    mica_term_note("context full: dropped %d tokens from position %d", event->dropped_count, event->dropped_from);
}

static int show_prefill(void *user, int32_t done, int32_t total)
{
    mica_bar *bar = user;
    if (done == total)
        mica_bar_end(bar);
    else
        mica_bar_show(bar, (double)done / total);
    return mica_interrupt_count() > 0;
}

static mica_bar prefill_bar = {.what = "reading the prompt"}; /* outlives the session, as its callbacks must */

static int load_draft(const mica_opts *o, mica_model **model)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s", o->draft_model) >= (int)sizeof path)
        return mica_term_error("the path of the model is longer than 4095 bytes");
    int code = mica_pulled_resolve(path);
    return code == CODE_OK ? mica_load_model(o, path, model) : code;
}

int mica_load_session(const mica_opts *o, mica_model *model, const mica_governing *governing, mica_session **session)
{
    int32_t cpus[MICA_MAX_THREADS];
    mica_session_options options;
    mica_error err;
    *session = NULL;
    int code = mica_load_session_options(o, cpus, &options);
    if (code == CODE_OK)
        code = mica_load_check_context(o, model);
    if (code != CODE_OK)
        return code;
    if (o->draft_model && (code = load_draft(o, &options.draft_model)) != CODE_OK)
        return code;
    options.constrained = o->tools || mica_constrain_asked(o);
    if (governing)
        mica_governing_apply(governing, &options.n_threads, &options.cpus, &options.governor);
    options.on_context_event = tell_context_event;
    options.on_prefill = show_prefill;
    options.user = &prefill_bar;
    bool was_free = mica_interrupt_hold(); /* the session's threads are not to get Ctrl-C */
    mica_status status = mica_session_new(model, &options, session, &err);
    mica_interrupt_release(was_free);
    mica_model_close(options.draft_model); /* the session holds it */
    return status ? mica_load_failed(&err) : CODE_OK;
}
