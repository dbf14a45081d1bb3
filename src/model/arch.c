#include "model/arch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/selection.h"

#define ARCH(name) extern const mica_arch mica_arch_##name;
#include "model/arch_list.h"
#undef ARCH

static const mica_arch *const archs[] = {
#define ARCH(name) MICA_ROW(ARCH_##name, &mica_arch_##name, )
#include "model/arch_list.h"
#undef ARCH
};

const mica_arch *mica_arch_find(mica_str name)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strlen(archs[i]->name) == name.length && memcmp(archs[i]->name, name.data, name.length) == 0)
            return archs[i];
    return NULL;
}

mica_status mica_arch_refuse(const char *path, mica_str name, mica_error *err)
{
    static const char *const all[] = {
#define ARCH(name) #name,
#include "model/arch_list.h"
#undef ARCH
    };
    int n = (int)(name.length < 60 ? name.length : 60);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]) == name.length && memcmp(all[i], name.data, name.length) == 0)
            return mica_fail(err, MICA_UNSUPPORTED,
                             "%s: this build has no architecture \"%.*s\": it was made with MICA_ARCHS=" MICA_CHOSEN_ARCHS, path, n, name.data);
    return mica_fail(err, MICA_UNSUPPORTED, "%s: architecture \"%.*s\" is not supported; this build runs %s", path, n, name.data,
                     mica_arch_names());
}

const char *mica_arch_names(void)
{
#define ARCH(name) MICA_ROW(ARCH_##name, #name ", ")
    return
#include "model/arch_list.h"
        "and nothing else";
#undef ARCH
}

/* "llama" + "." + suffix. Names in archs[] are short, suffixes are literals of this program. */
static void full_key(const mica_gguf *g, const char *suffix, char out[128])
{
    mica_str name = {0};
    mica_gguf_get_str(g, "general.architecture", true, &name, NULL);
    snprintf(out, 128, "%.*s.%s", (int)(name.length < 40 ? name.length : 40), name.data ? name.data : "", suffix);
}

mica_status mica_arch_get_i64(const mica_gguf *g, const char *suffix, bool required, int64_t min, int64_t max, int64_t *out,
                              mica_error *err)
{
    char key[128];
    full_key(g, suffix, key);
    return mica_gguf_get_i64(g, key, required, min, max, out, err);
}

mica_status mica_arch_get_f32(const mica_gguf *g, const char *suffix, bool required, float *out, mica_error *err)
{
    char key[128];
    full_key(g, suffix, key);
    mica_status status = mica_gguf_get_f32(g, key, required, out, err);
    if (!status && !isfinite(*out))
        return mica_fail(err, MICA_BAD_FILE, "%s: %s is not a finite number", mica_gguf_path(g), key);
    return status;
}

/* A count that may also be an array with one entry a layer: equal entries are one number, different ones are refused. */
static mica_status get_uniform(const mica_gguf *g, const char *suffix, int32_t n_layers, int64_t max, int64_t *out,
                               mica_error *err)
{
    char key[128];
    full_key(g, suffix, key);
    const mica_gguf_value *v = mica_gguf_find(g, key);
    if (!v || v->kind != MICA_GGUF_ARRAY)
        return mica_gguf_get_i64(g, key, false, 1, max, out, err);
    if (v->count != (uint64_t)n_layers || v->element == MICA_GGUF_STRING)
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)v->offset, "%s: %s must have %d numbers", mica_gguf_path(g), key, n_layers);
    int64_t first = mica_gguf_array_i64(v, 0);
    for (uint64_t i = 1; i < v->count; i++)
        if (mica_gguf_array_i64(v, i) != first)
            return mica_fail(err, MICA_UNSUPPORTED, "%s: %s differs between layers, which this build cannot run",
                             mica_gguf_path(g), key);
    if (first < 1 || first > max)
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)v->offset, "%s: %s is %lld, outside 1..%lld", mica_gguf_path(g), key,
                            (long long)first, (long long)max);
    *out = first;
    return MICA_OK;
}

mica_status mica_arch_window(const mica_gguf *g, mica_hparams *h, int32_t full_every, mica_error *err)
{
    int64_t window = 0;
    mica_status status = mica_arch_get_i64(g, "attention.sliding_window", false, 0, INT32_MAX, &window, err);
    if (status || window == 0)
        return status;
    h->window = (int32_t)window;
    char key[128];
    full_key(g, "attention.sliding_window_pattern", key);
    const mica_gguf_value *pattern = mica_gguf_find(g, key);
    bool listed = pattern && pattern->kind == MICA_GGUF_ARRAY && pattern->count == (uint64_t)h->n_layers &&
                  pattern->element != MICA_GGUF_STRING;
    int64_t every = full_every;
    if (pattern && !listed && (status = mica_gguf_get_i64(g, key, false, 1, INT32_MAX, &every, err)))
        return status;
    for (int32_t i = 0; i < h->n_layers; i++)
        h->windowed[i] = listed ? mica_gguf_array_i64(pattern, (uint64_t)i) != 0 : every == 0 || (i + 1) % every != 0;
    return MICA_OK;
}

static mica_status read_sizes(const mica_gguf *g, mica_hparams *h, mica_error *err)
{
    int64_t layers = 0, embd = 0, heads = 0, kv = 0, ff = 0, ctx = 0, dim, value_dim, rope_dim;
    mica_status s;
    if ((s = mica_arch_get_i64(g, "block_count", true, 1, MICA_MAX_LAYERS, &layers, err)) ||
        (s = mica_arch_get_i64(g, "embedding_length", true, 1, 131072, &embd, err)) ||
        (s = mica_arch_get_i64(g, "attention.head_count", true, 1, 65536, &heads, err)) ||
        (s = mica_arch_get_i64(g, "context_length", true, 1, INT32_MAX, &ctx, err)) ||
        (s = get_uniform(g, "feed_forward_length", (int32_t)layers, 131072, &ff, err)))
        return s;
    kv = heads;
    dim = embd / heads;
    if ((s = get_uniform(g, "attention.head_count_kv", (int32_t)layers, 65536, &kv, err)) ||
        (s = mica_arch_get_i64(g, "attention.key_length", false, 1, 4096, &dim, err)))
        return s;
    value_dim = rope_dim = dim;
    if ((s = mica_arch_get_i64(g, "attention.value_length", false, 1, 4096, &value_dim, err)) ||
        (s = mica_arch_get_i64(g, "rope.dimension_count", false, 1, 4096, &rope_dim, err)))
        return s;
    if (ff == 0)
        return mica_fail(err, MICA_BAD_FILE, "%s: the key feed_forward_length is missing", mica_gguf_path(g));
    if (heads % kv != 0 || value_dim != dim || rope_dim > dim || rope_dim % 2 != 0 || dim < 2 || heads * dim > 131072)
        return mica_fail(err, MICA_UNSUPPORTED,
                         "%s: %lld heads of %lld values, %lld KV heads, value length %lld and rope dimension %lld do not fit together",
                         mica_gguf_path(g), (long long)heads, (long long)dim, (long long)kv, (long long)value_dim,
                         (long long)rope_dim);
    h->n_layers = (int32_t)layers;
    h->n_embd = (int32_t)embd;
    h->n_heads = (int32_t)heads;
    h->n_kv_heads = (int32_t)kv;
    h->head_dim = (int32_t)dim;
    h->n_ff = (int32_t)ff;
    h->n_ctx_train = (int32_t)ctx;
    h->rope_dim = (int32_t)rope_dim;
    return MICA_OK;
}

static bool is(mica_str s, const char *text) { return s.length == strlen(text) && memcmp(s.data, text, s.length) == 0; }

static mica_status read_rope(const mica_gguf *g, mica_hparams *h, mica_error *err)
{
    char key[128];
    mica_str type = {"none", 4};
    float factor = 1.0f, old_factor = 1.0f, magnitude = 1.0f;
    int64_t original = h->n_ctx_train;
    mica_status s;
    full_key(g, "rope.scaling.type", key);
    h->rope = (mica_rope){.base = 10000.0f, .scale = 1.0f, .magnitude = 1.0f};
    if ((s = mica_gguf_get_str(g, key, false, &type, err)) || (s = mica_arch_get_f32(g, "rope.freq_base", false, &h->rope.base, err)) ||
        (s = mica_arch_get_f32(g, "rope.scale_linear", false, &old_factor, err)) ||
        (s = mica_arch_get_f32(g, "rope.scaling.factor", false, &factor, err)) ||
        (s = mica_arch_get_f32(g, "rope.scaling.attn_factor", false, &magnitude, err)) ||
        (s = mica_arch_get_i64(g, "rope.scaling.original_context_length", false, 1, INT32_MAX, &original, err)))
        return s;
    if (!is(type, "none") && !is(type, "linear") && !is(type, "longrope"))
        return mica_fail(err, MICA_UNSUPPORTED, "%s: RoPE scaling \"%.*s\" is not supported (none, linear, longrope are)",
                         mica_gguf_path(g), (int)(type.length < 40 ? type.length : 40), type.data);
    if (!(factor > 0.0f) || !(old_factor > 0.0f) || !(h->rope.base > 0.0f))
        return mica_fail(err, MICA_BAD_FILE, "%s: RoPE base and scaling factors must be above 0", mica_gguf_path(g));
    if (is(type, "linear"))
        h->rope.scale = 1.0f / factor;
    else if (is(type, "none"))
        h->rope.scale = 1.0f / old_factor;
    h->rope.magnitude = magnitude;
    h->rope_original_ctx = (int32_t)original;
    return MICA_OK;
}

mica_status mica_arch_configure(const mica_arch *arch, const mica_gguf *g, mica_hparams *h, mica_error *err)
{
    memset(h, 0, sizeof *h);
    mica_status s;
    if ((s = read_sizes(g, h, err)) || (s = mica_arch_get_f32(g, "attention.layer_norm_rms_epsilon", true, &h->norm_eps, err)) ||
        (s = read_rope(g, h, err)))
        return s;
    h->attn_scale = 1.0f / sqrtf((float)h->head_dim);
    h->embd_scale = 1.0f;
    return arch->configure ? arch->configure(g, h, err) : MICA_OK;
}
