/* cmd_inspect.c - mica inspect: any valid GGUF file, whether this build can run it or not. Reads it with model/gguf.h, because
 * the public API opens only what it can run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "load.h"
#include "model/gguf.h"

#define MAX_ELEMENTS 16 /* of an array that are printed */

/* What there is to tell about memory. */
typedef struct budget {
    bool runnable;
    mica_memory_plan plan;
    mica_error err; /* why it cannot be run */
} budget;

/* ---- Finding out ---- */

/* The version of the file's own header; it was read and checked before. */
static int version_of(const char *path)
{
    unsigned char head[8] = {0};
    FILE *in = fopen(path, "rb");
    size_t n = in ? fread(head, 1, sizeof head, in) : 0;
    if (in)
        fclose(in);
    return n == sizeof head ? head[4] | head[5] << 8 : 0;
}

/* A file that cannot be run is still worth looking at; options that are wrong are errors. */
static int find_budget(const mica_opts *o, const char *path, budget *b)
{
    int32_t cpus[MICA_MAX_THREADS];
    mica_session_options options;
    mica_model *model = NULL;
    memset(b, 0, sizeof *b);
    int code = mica_load_session_options(o, cpus, &options);
    if (code != CODE_OK)
        return code;
    mica_model_options how = mica_model_options_default();
    how.kernels = mica_load_kernels(o);
    how.on_warning = mica_term_warning;
    if (mica_model_open(path, &how, &model, &b->err) == MICA_OK) {
        code = mica_load_check_context(o, model);
        if (code == CODE_OK && mica_session_plan(model, &options, &b->plan, &b->err))
            code = mica_load_failed(&b->err);
        b->runnable = code == CODE_OK;
    }
    mica_model_close(model);
    return code;
}

typedef struct type_sum {
    const mica_quant *quant;
    int64_t count;
    uint64_t bytes;
} type_sum;

/* Sums by format, in the order of first use; returns how many. */
static size_t sum_types(const mica_gguf *g, type_sum sums[MICA_TYPE_COUNT])
{
    size_t n = 0;
    for (size_t i = 0; i < mica_gguf_tensor_count(g); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(g, i);
        size_t at = 0;
        while (at < n && sums[at].quant != t->quant)
            at++;
        if (at == n)
            sums[n++] = (type_sum){t->quant, 0, 0};
        sums[at].count++;
        sums[at].bytes += t->n_bytes;
    }
    return n;
}

/* ---- JSON ---- */

static json_t *json_number(const mica_gguf_value *v, uint64_t i)
{
    switch (v->element) {
    case MICA_GGUF_F32:
    case MICA_GGUF_F64:
        return mica_json_real(mica_gguf_array_f64(v, i));
    case MICA_GGUF_BOOL:
        return json_boolean(mica_gguf_array_i64(v, i) != 0);
    case MICA_GGUF_U64: /* beyond 63 bits array_i64 saturates: a real keeps the size */
        return mica_gguf_array_i64(v, i) == INT64_MAX ? mica_json_real(mica_gguf_array_f64(v, i))
                                                      : json_integer(mica_gguf_array_i64(v, i));
    default:
        return json_integer(mica_gguf_array_i64(v, i));
    }
}

static json_t *json_elements(const mica_gguf_value *v)
{
    json_t *list = json_array();
    uint64_t cursor = 0;
    for (uint64_t i = 0; i < v->count && i < MAX_ELEMENTS; i++) {
        if (v->element == MICA_GGUF_STRING) {
            mica_str s = mica_gguf_array_str(v, &cursor);
            json_array_append_new(list, mica_json_text(s.data, s.length));
        } else {
            json_array_append_new(list, json_number(v, i));
        }
    }
    return list;
}

/* Long arrays become an object with their length and first elements. */
static json_t *json_value(const mica_gguf_value *v)
{
    uint64_t cursor = 0;
    if (v->kind == MICA_GGUF_STRING) {
        mica_str s = mica_gguf_array_str(v, &cursor);
        return mica_json_text(s.data, s.length);
    }
    if (v->kind != MICA_GGUF_ARRAY)
        return json_number(v, 0);
    if (v->count <= MAX_ELEMENTS)
        return json_elements(v);
    return json_pack("{s:I, s:o}", "count", (json_int_t)v->count, "first", json_elements(v));
}

/* Sets object[key] for a key of any bytes, up to a NUL. */
static void set_text_key(json_t *object, mica_str key, json_t *value)
{
    json_t *name = mica_json_text(key.data, key.length);
    if (name)
        json_object_set_new(object, json_string_value(name), value);
    else
        json_decref(value);
    json_decref(name);
}

static json_t *json_metadata(const mica_gguf *g)
{
    json_t *all = json_object();
    for (size_t i = 0; i < mica_gguf_value_count(g); i++)
        set_text_key(all, mica_gguf_value_at(g, i)->key, json_value(mica_gguf_value_at(g, i)));
    return all;
}

static json_t *json_tensors(const mica_gguf *g, bool full)
{
    json_t *list = json_array();
    for (size_t i = 0; i < mica_gguf_tensor_count(g); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(g, i);
        json_t *name = mica_json_text(t->name.data, t->name.length), *dims = full ? json_array() : NULL;
        for (int32_t k = 0; full && k < t->n_dims; k++)
            json_array_append_new(dims, json_integer(t->dims[k]));
        json_array_append_new(list, full ? json_pack("{s:o, s:s, s:o, s:I}", "name", name, "type", t->quant->name, "dims", dims,
                                                     "bytes", (json_int_t)t->n_bytes)
                                         : name);
    }
    return list;
}

static json_t *json_types(const mica_gguf *g)
{
    type_sum sums[MICA_TYPE_COUNT];
    size_t n = sum_types(g, sums);
    json_t *types = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(types, sums[i].quant->name,
                            json_pack("{s:I, s:I}", "count", (json_int_t)sums[i].count, "bytes", (json_int_t)sums[i].bytes));
    return types;
}

static json_t *json_memory(const budget *b)
{
    const mica_memory_plan *p = &b->plan;
    if (!b->runnable)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i}", "weights_bytes", (json_int_t)p->weights_bytes, "kv_bytes",
                     (json_int_t)p->kv_bytes, "workspace_bytes", (json_int_t)p->workspace_bytes, "total_bytes",
                     (json_int_t)p->total_bytes, "touched_bytes", (json_int_t)p->touched_bytes, "fixed_bytes",
                     (json_int_t)p->fixed_bytes, "peak_bytes", (json_int_t)p->peak_bytes, "n_ctx", (int)p->n_ctx, "prefill_chunk", (int)p->prefill_chunk, "n_threads",
                     (int)p->n_threads);
}

static int print_json(const mica_opts *o, const char *path, const mica_gguf *g, const budget *b)
{
    json_t *all = json_pack("{s:o, s:i, s:I, s:o, s:o, s:o, s:b, s:o}", "file", mica_json_text(path, strlen(path)), "version",
                            version_of(path), "file_bytes", (json_int_t)mica_gguf_file_bytes(g), "metadata", json_metadata(g),
                            "tensors", json_tensors(g, o->tensors), "types", json_types(g), "runnable", (int)b->runnable,
                            "memory", json_memory(b));
    if (all && !b->runnable)
        json_object_set_new(all, "reason", mica_json_text(b->err.message, strlen(b->err.message)));
    return mica_json_line(all) ? CODE_OK : CODE_FAILED;
}

/* ---- Text ---- */

static void print_bytes(const char *what, int64_t bytes)
{
    printf("  %-12s %15" PRId64 "  (%.1f MiB)\n", what, bytes, (double)bytes / 1048576.0);
}

/* A name of the file: bytes that are no text, and controls, as \xNN; they must not reach a terminal. */
static void print_name(mica_str name)
{
    json_t *valid = mica_json_text(name.data, name.length);
    const unsigned char *p = (const unsigned char *)(valid ? json_string_value(valid) : "?");
    for (; *p; p++)
        if (*p < 0x20 || *p == 0x7F || (*p == 0xC2 && p[1] < 0xA0)) /* C0, DEL; C1 is C2 80 to C2 9F */
            printf("\\x%02x", *p == 0xC2 ? *++p : *p);
        else
            putchar(*p);
    json_decref(valid);
}

/* One line; a chat template is shortened. */
static void print_value(const mica_gguf_value *v)
{
    char *text = mica_gguf_value_text(v);
    size_t length = text ? strlen(text) : 0, shown = length > 100 ? 100 : length;
    while (shown < length && shown > 0 && ((unsigned char)text[shown] & 0xC0) == 0x80)
        shown--; /* not inside a character */
    for (size_t i = 0; i < shown; i++)
        if (text[i] == '\n')
            fputs("\\n", stdout);
        else
            putchar(text[i]);
    puts(shown < length ? "..." : "");
    free(text);
}

static void print_tensors(const mica_gguf *g)
{
    puts("\nTensors");
    for (size_t i = 0; i < mica_gguf_tensor_count(g); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(g, i);
        printf("  %-6s ", t->quant->name);
        print_name(t->name);
        for (int32_t k = 0; k < t->n_dims; k++)
            printf("%s%" PRId64, k ? " x " : "  ", t->dims[k]);
        printf("  %" PRIu64 " bytes\n", t->n_bytes);
    }
}

static void print_memory(const budget *b)
{
    const mica_memory_plan *p = &b->plan;
    if (!b->runnable) {
        printf("\nNot runnable here: %s\n", b->err.message);
        return;
    }
    printf("\nMemory for a context of %d tokens, chunks of %d, %d thread%s\n", p->n_ctx, p->prefill_chunk, p->n_threads,
           p->n_threads == 1 ? "" : "s");
    print_bytes("weights", p->weights_bytes);
    print_bytes("KV cache", p->kv_bytes);
    print_bytes("workspace", p->workspace_bytes);
    print_bytes("total", p->total_bytes);
    print_bytes("peak", p->peak_bytes);
}

static int print_text(const mica_opts *o, const char *path, const mica_gguf *g, const budget *b)
{
    type_sum sums[MICA_TYPE_COUNT];
    size_t n = sum_types(g, sums);
    printf("%s: GGUF version %d, %" PRIu64 " bytes\n\nMetadata\n", path, version_of(path), mica_gguf_file_bytes(g));
    for (size_t i = 0; i < mica_gguf_value_count(g); i++) {
        fputs("  ", stdout);
        print_name(mica_gguf_value_at(g, i)->key);
        fputs(" = ", stdout);
        print_value(mica_gguf_value_at(g, i));
    }
    printf("\nTensors by format (%zu in all)\n", mica_gguf_tensor_count(g));
    for (size_t i = 0; i < n; i++)
        printf("  %-6s %5" PRId64 " tensors %15" PRIu64 " bytes\n", sums[i].quant->name, sums[i].count, sums[i].bytes);
    if (o->tensors)
        print_tensors(g);
    print_memory(b);
    return CODE_OK;
}

int mica_cmd_inspect(const mica_opts *o)
{
    char path[4096];
    mica_gguf *g = NULL;
    mica_error err;
    budget b;
    int code = mica_load_path(o, o->n_args > 0 ? o->args[0] : NULL, path);
    if (code != CODE_OK)
        return code;
    code = find_budget(o, path, &b); /* first: the predicted peak counts what the process has already */
    if (code != CODE_OK)
        return code;
    if (mica_gguf_open(path, &g, &err))
        return mica_load_failed(&err);
    code = o->json ? print_json(o, path, g, &b) : print_text(o, path, g, &b);
    mica_gguf_close(g);
    return code;
}
