/* cmd_plan.c - mica threads plan and mica kv plan: what would be used, without using it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "load.h"
#include "model/arch.h" /* which layers are windowed: mica.h tells only the width */

static int check_plan_word(const mica_opts *o, const char *command)
{
    if (strcmp(o->args[0], "plan") == 0)
        return CODE_OK;
    return mica_term_usage("mica %s knows only \"plan\", not \"%s\"", command, o->args[0]);
}

/* ---- threads plan ---- */

static json_t *json_plan(const mica_thread_plan *plan)
{
    json_t *cpus = json_array();
    for (int i = 0; i < plan->n_threads; i++)
        if (plan->cpus[i] >= 0)
            json_array_append_new(cpus, json_integer(plan->cpus[i]));
    return json_pack("{s:i, s:o, s:s}", "threads", plan->n_threads, "cpus", cpus, "reason", plan->reason);
}

static void print_plan(const char *name, const mica_thread_plan *plan)
{
    printf("%-8s %d thread%s", name, plan->n_threads, plan->n_threads == 1 ? "" : "s");
    if (plan->cpus[0] >= 0) {
        fputs(" on CPUs", stdout);
        for (int i = 0; i < plan->n_threads; i++)
            printf("%c%d", i ? ',' : ' ', plan->cpus[i]);
    }
    printf(": %s\n", plan->reason);
}

int mica_cmd_threads(const mica_opts *o)
{
    mica_thread_plan all, usual;
    mica_error err;
    int code = check_plan_word(o, "threads");
    if (code != CODE_OK)
        return code;
    if (mica_thread_plan_all(o->sysroot, &all, &err) || mica_thread_plan_default(o->sysroot, &usual, &err))
        return mica_load_failed(&err);
    if (o->json) {
        json_t *plan = json_plan(&all);
        json_object_set_new(plan, "default", json_plan(&usual));
        return mica_json_line(plan) ? CODE_OK : CODE_FAILED;
    }
    print_plan("most", &all);
    print_plan("default", &usual);
    return CODE_OK;
}

/* ---- kv plan ---- */

typedef struct kv_shape {
    int64_t n_ctx, n_layers, n_kv_heads, head_dim, bytes;
    const char *type_k, *type_v;
    int32_t window;
    int64_t kept; /* positions that windowed layers keep */
    const uint8_t *windowed; /* [n_layers]; NULL: none is */
} kv_shape;

/* Bytes of 32 elements. */
static int64_t bytes_of_32(const char *type) { return strcmp(type, "q8_0") == 0 ? 34 : strcmp(type, "q4_0") == 0 ? 18 : 64; }

/* False if the bytes are beyond 63 bits. Odd sizes exist in F16 only, where 32 elements are 64 bytes: nothing is rounded. */
static bool count_bytes(kv_shape *s)
{
    int64_t bytes = bytes_of_32(s->type_k) + bytes_of_32(s->type_v);
    bool fits = !__builtin_mul_overflow(bytes, s->n_layers, &bytes) && !__builtin_mul_overflow(bytes, s->n_kv_heads, &bytes) &&
                !__builtin_mul_overflow(bytes, s->head_dim, &bytes) && !__builtin_mul_overflow(bytes, s->n_ctx, &bytes);
    s->bytes = bytes / 32;
    return fits;
}

static json_t *json_windowed(const kv_shape *s)
{
    json_t *list = json_array();
    for (int64_t i = 0; s->windowed && i < s->n_layers; i++)
        if (s->windowed[i])
            json_array_append_new(list, json_integer(i));
    return list;
}

static int print_kv(const kv_shape *s, bool json)
{
    json_t *windowed = json_windowed(s);
    if (json)
        return mica_json_line(json_pack("{s:I, s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:I, s:o}", "n_ctx",
                                        (json_int_t)s->n_ctx, "bytes", (json_int_t)s->bytes, "type_k", s->type_k, "type_v", s->type_v, "layers",
                                        (json_int_t)s->n_layers, "kv_heads", (json_int_t)s->n_kv_heads, "head_dim", (json_int_t)s->head_dim,
                                        "bytes_per_token", (json_int_t)(s->bytes / s->n_ctx), "window", (int)s->window,
                                        "window_ctx", (json_int_t)s->kept, "windowed_layers", windowed))
                   ? CODE_OK
                   : CODE_FAILED;
    printf("%" PRId64 " bytes (%.1f MiB) for %" PRId64 " tokens, keys in %s, values in %s: %" PRId64 " layers, %" PRId64
           " key-value heads of %" PRId64 "; %" PRId64 " bytes a token\n",
           s->bytes, (double)s->bytes / 1048576.0, s->n_ctx, s->type_k, s->type_v, s->n_layers, s->n_kv_heads, s->head_dim, s->bytes / s->n_ctx);
    if (json_array_size(windowed) > 0)
        printf("%zu of the layers see only the last %d tokens and keep %" PRId64 " positions\n", json_array_size(windowed),
               s->window, s->kept);
    json_decref(windowed);
    return CODE_OK;
}

/* Marks the windowed layers of a model that the engine has opened already. */
static mica_status find_windows(const char *path, mica_hparams *h, mica_error *err)
{
    mica_gguf *g = NULL;
    mica_str name = {"", 0};
    mica_status status = mica_gguf_open(path, &g, err);
    if (!status)
        status = mica_gguf_get_str(g, "general.architecture", true, &name, err);
    const mica_arch *arch = status ? NULL : mica_arch_find(name);
    if (arch)
        status = mica_arch_configure(arch, g, h, err);
    mica_gguf_close(g);
    return status;
}

static int plan_model(const mica_opts *o, const char *path, mica_model *model)
{
    int32_t cpus[MICA_MAX_THREADS];
    mica_session_options options;
    mica_memory_plan plan;
    mica_model_info info;
    mica_error err;
    int code = mica_load_session_options(o, cpus, &options);
    if (code == CODE_OK)
        code = mica_load_check_context(o, model);
    if (code != CODE_OK)
        return code;
    mica_model_get_info(model, &info);
    mica_hparams h = {.n_vocab = info.n_vocab};
    if (mica_session_plan(model, &options, &plan, &err) || find_windows(path, &h, &err))
        return mica_load_failed(&err);
    kv_shape s = {.n_ctx = plan.n_ctx, .n_layers = info.n_layers, .n_kv_heads = info.n_kv_heads, .head_dim = info.head_dim,
                  .bytes = plan.kv_bytes, .type_k = o->type_k, .type_v = o->type_v, .window = info.sliding_window, .kept = plan.window_ctx,
                  .windowed = h.windowed};
    return print_kv(&s, o->json);
}

static int plan_shape(const mica_opts *o)
{
    kv_shape s = {.n_ctx = o->ctx, .n_layers = o->layers, .n_kv_heads = o->kv_heads, .head_dim = o->head_dim,
                  .kept = o->ctx, .type_k = o->type_k, .type_v = o->type_v};
    if (!o->layers || !o->kv_heads || !o->head_dim || !o->ctx || o->model)
        return mica_term_usage("give either --model, or all of --layers, --kv-heads, --head-dim and --ctx");
    if (o->head_dim % 32 != 0 && (strcmp(o->type_k, "f16") != 0 || strcmp(o->type_v, "f16") != 0))
        return mica_term_error("a quantised cache needs heads of a multiple of 32 elements, not %lld: use f16", (long long)o->head_dim);
    if (!count_bytes(&s))
        return mica_term_error("the KV cache of this shape does not fit in 64 bits");
    return print_kv(&s, o->json);
}

int mica_cmd_kv(const mica_opts *o)
{
    char path[4096];
    mica_model *model = NULL;
    int code = check_plan_word(o, "kv");
    if (code != CODE_OK)
        return code;
    if (o->layers || o->kv_heads || o->head_dim)
        return plan_shape(o);
    code = mica_load_path(o, NULL, path);
    if (code == CODE_OK)
        code = mica_load_model(o, path, &model);
    if (code == CODE_OK)
        code = plan_model(o, path, model);
    mica_model_close(model);
    return code;
}
