#include "convert/hf_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "convert/hf_json.h"

typedef enum window_kind { WINDOW_NONE, WINDOW_PATTERN, WINDOW_ALL } window_kind;

/* A model_type of transformers. Numbers are what its configuration class takes where config.json is silent; 0: it must not be. */
struct mica_hf_kind {
    const char *model_type, *arch;
    const char *activation;
    window_kind window;
    int32_t full_every;   /* WINDOW_PATTERN: each so many-th layer has no window */
    int32_t square_layers; /* a model with so many layers scales attention by its width per head, not by the head's size */
    bool norm_plus, halves;
    int32_t heads, kv_heads, head_dim, n_ctx;
};

static const mica_hf_kind kinds[] = {
    {.model_type = "llama", .arch = "llama", .activation = "silu", .halves = true},
    {.model_type = "mistral", .arch = "llama", .activation = "silu", .halves = true},
    {.model_type = "qwen2", .arch = "qwen2", .activation = "silu"},
    {.model_type = "qwen3", .arch = "qwen3", .activation = "silu", .head_dim = 128},
    {.model_type = "gemma2", .arch = "gemma2", .activation = "gelu_pytorch_tanh", .window = WINDOW_PATTERN, .full_every = 2, .square_layers = 46,
     .norm_plus = true, .heads = 8, .kv_heads = 4, .head_dim = 256, .n_ctx = 8192},
    {.model_type = "gemma3_text", .arch = "gemma3", .activation = "gelu_pytorch_tanh", .window = WINDOW_PATTERN, .full_every = 6,
     .square_layers = 62, .norm_plus = true, .heads = 8, .kv_heads = 4, .head_dim = 256, .n_ctx = 131072},
    {.model_type = "phi3", .arch = "phi3", .activation = "silu", .window = WINDOW_ALL},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

static mica_status unsupported(mica_error *err, const char *what)
{
    return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": %s, which the engine cannot compute", what);
}

static mica_status find_kind(mica_hf_config *c, mica_error *err)
{
    const char *type = mica_hf_text(c->file, "model_type");
    c->text = c->file;
    if (type && strcmp(type, "gemma3") == 0) { /* with a part for images, which is left out */
        c->text = json_object_get(c->file, "text_config");
        type = "gemma3_text";
        if (!json_is_object(c->text))
            return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": the key text_config is missing");
    }
    for (size_t i = 0; type && i < N_KINDS; i++)
        if (strcmp(kinds[i].model_type, type) == 0)
            c->kind = &kinds[i];
    if (!c->kind)
        return mica_fail(err, MICA_UNSUPPORTED,
                         MICA_HF_CONFIG ": the model_type \"%.60s\" cannot be converted; llama, mistral, qwen2, qwen3, gemma2, gemma3, gemma3_text and "
                         "phi3 can", type ? type : "");
    c->arch = mica_arch_find((mica_str){c->kind->arch, strlen(c->kind->arch)});
    c->norm_plus = c->kind->norm_plus;
    c->halves = c->kind->halves;
    return c->arch ? MICA_OK : mica_arch_refuse(MICA_HF_CONFIG, (mica_str){c->kind->arch, strlen(c->kind->arch)}, err);
}

static mica_status get_i64(const mica_hf_config *c, const char *key, int64_t max, int64_t *out, mica_error *err)
{
    return mica_hf_get_i64(MICA_HF_CONFIG, c->text, key, *out == 0, 1, max, out, err);
}

static mica_status read_shape(mica_hf_config *c, mica_error *err)
{
    mica_status s;
    c->n_heads = c->kind->heads;
    c->n_ctx = c->kind->n_ctx;
    c->norm_eps = 1e-6;
    if ((s = get_i64(c, "num_hidden_layers", MICA_MAX_LAYERS, &c->n_layers, err)) || (s = get_i64(c, "hidden_size", 131072, &c->n_embd, err)) ||
        (s = get_i64(c, "num_attention_heads", 65536, &c->n_heads, err)) || (s = get_i64(c, "intermediate_size", 131072, &c->n_ff, err)) ||
        (s = get_i64(c, "max_position_embeddings", INT32_MAX, &c->n_ctx, err)) ||
        (s = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "rms_norm_eps", false, &c->norm_eps, err)))
        return s;
    c->n_kv_heads = c->kind->kv_heads ? c->kind->kv_heads : c->n_heads;
    c->head_dim = c->kind->head_dim ? c->kind->head_dim : c->n_embd / c->n_heads;
    if (c->head_dim == 0)
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": hidden_size is smaller than num_attention_heads");
    if ((s = get_i64(c, "num_key_value_heads", 65536, &c->n_kv_heads, err)) || (s = get_i64(c, "head_dim", 4096, &c->head_dim, err)))
        return s;
    if (c->n_heads % c->n_kv_heads != 0 || c->head_dim % 2 != 0)
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": %lld heads of %lld values and %lld key-value heads do not fit together",
                         (long long)c->n_heads, (long long)c->head_dim, (long long)c->n_kv_heads);
    const json_t *tied = mica_hf_get(c->text, "tie_word_embeddings");
    tied = tied ? tied : mica_hf_get(c->file, "tie_word_embeddings");
    c->tied = json_is_true(tied);
    c->untied = json_is_false(tied);
    return MICA_OK;
}

static mica_status check_activation(const mica_hf_config *c, mica_error *err)
{
    const char *name = mica_hf_text(c->text, "hidden_activation"), *want = c->kind->activation;
    name = name ? name : mica_hf_text(c->text, "hidden_act");
    if (!name || strcmp(name, want) == 0 || (strcmp(want, "silu") == 0 && strcmp(name, "swish") == 0))
        return MICA_OK;
    return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": the activation is \"%.40s\"; the engine computes %s for this architecture", name, want);
}

/* query_pre_attn_scalar, where there is one, is what the engine scales by. */
static mica_status check_scale(const mica_hf_config *c, mica_error *err)
{
    double scalar = 256.0, want = (double)c->head_dim;
    if (!c->kind->norm_plus)
        return MICA_OK;
    mica_status status = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "query_pre_attn_scalar", false, &scalar, err);
    if (c->n_layers == c->kind->square_layers)
        want = (double)c->n_embd / (double)c->n_heads;
    if (status || scalar == want)
        return status;
    return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": query_pre_attn_scalar is %g; the engine computes with %g", scalar, want);
}

static mica_status read_softcaps(mica_hf_config *c, mica_error *err)
{
    bool gemma2 = strcmp(c->arch->name, "gemma2") == 0;
    c->attn_softcap = gemma2 ? 50.0 : 0.0;
    c->final_softcap = gemma2 ? 30.0 : 0.0;
    mica_status status = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "attn_logit_softcapping", false, &c->attn_softcap, err);
    if (!status)
        status = mica_hf_get_f64(MICA_HF_CONFIG, c->text, "final_logit_softcapping", false, &c->final_softcap, err);
    if (!status && c->attn_softcap != 0.0 && !gemma2)
        return unsupported(err, "attn_logit_softcapping is set");
    if (!status && c->final_softcap != 0.0 && !c->kind->norm_plus)
        return unsupported(err, "final_logit_softcapping is set");
    return status;
}

/* ---- Windows ---- */

static bool is_usual(const mica_hf_config *c, int64_t layer)
{
    return c->kind->window == WINDOW_ALL || (layer + 1) % c->kind->full_every != 0;
}

static mica_status read_layer_types(mica_hf_config *c, const json_t *types, mica_error *err)
{
    if (json_array_size(types) != (size_t)c->n_layers)
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_CONFIG ": layer_types does not have one entry for each of the %lld layers", (long long)c->n_layers);
    for (int64_t i = 0; i < c->n_layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        c->windowed[i] = type && strcmp(type, "sliding_attention") == 0;
        if (!type || (!c->windowed[i] && strcmp(type, "full_attention") != 0))
            return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_CONFIG ": layer %lld is of the type \"%.40s\", which the engine cannot compute", (long long)i,
                             type ? type : "");
    }
    return MICA_OK;
}

static mica_status mark_windows(mica_hf_config *c, mica_error *err)
{
    const json_t *types = mica_hf_get(c->text, "layer_types");
    int64_t every = c->kind->full_every;
    mica_status status = MICA_OK;
    if (types && c->kind->window == WINDOW_PATTERN) {
        status = read_layer_types(c, types, err);
    } else {
        status = mica_hf_get_i64(MICA_HF_CONFIG, c->text, "sliding_window_pattern", false, 1, INT32_MAX, &every, err);
        for (int64_t i = 0; i < c->n_layers; i++)
            c->windowed[i] = c->kind->window == WINDOW_ALL || (i + 1) % every != 0;
    }
    c->usual_window = true;
    for (int64_t i = 0; i < c->n_layers; i++)
        c->usual_window &= c->windowed[i] == is_usual(c, i);
    return status;
}

static mica_status read_window(mica_hf_config *c, mica_error *err)
{
    int64_t window = c->kind->window == WINDOW_PATTERN ? 4096 : 0;
    const json_t *use = json_object_get(c->text, "use_sliding_window");
    mica_status status = mica_hf_get_i64(MICA_HF_CONFIG, c->text, "sliding_window", c->kind->window == WINDOW_PATTERN, 0, INT32_MAX, &window, err);
    if (status || window == 0 || json_is_false(use))
        return status;
    if (c->kind->window == WINDOW_NONE) /* transformers' Qwen uses its window only where it is asked to */
        return window >= c->n_ctx || (!use && c->kind->arch[0] == 'q') ? MICA_OK : unsupported(err, "attention sees a sliding window of the context");
    c->window = window;
    return mark_windows(c, err);
}

mica_status mica_hf_config_read(const char *dir, mica_hf_config *c, mica_error *err)
{
    memset(c, 0, sizeof *c);
    mica_status s = mica_hf_load(dir, MICA_HF_CONFIG, true, false, &c->file, err);
    if (s || (s = find_kind(c, err)) || (s = read_shape(c, err)) || (s = check_activation(c, err)) || (s = check_scale(c, err)) ||
        (s = read_softcaps(c, err)) || (s = read_window(c, err)) || (s = mica_hf_rope_read(c, err)))
        mica_hf_config_free(c);
    return s;
}

void mica_hf_config_free(mica_hf_config *c)
{
    json_decref(c->file);
    free(c->rope.freqs);
    free(c->rope.longs);
    free(c->rope.shorts);
    memset(c, 0, sizeof *c);
}

/* ---- Keys ---- */

#define MAX_KEY 96 /* architectures have short names, suffixes are literals */

static void make_key(const mica_hf_config *c, const char *suffix, char out[MAX_KEY]) { snprintf(out, MAX_KEY, "%s.%s", c->arch->name, suffix); }

void mica_hf_put_u32(const mica_hf_config *c, mica_gguf_writer *w, const char *suffix, int64_t value)
{
    char key[MAX_KEY];
    make_key(c, suffix, key);
    mica_gguf_writer_u32(w, key, (uint32_t)value);
}

void mica_hf_put_f32(const mica_hf_config *c, mica_gguf_writer *w, const char *suffix, double value)
{
    char key[MAX_KEY];
    make_key(c, suffix, key);
    mica_gguf_writer_f32(w, key, (float)value);
}

void mica_hf_put_text(const mica_hf_config *c, mica_gguf_writer *w, const char *suffix, const char *value)
{
    char key[MAX_KEY];
    make_key(c, suffix, key);
    mica_gguf_writer_text(w, key, value);
}

static void write_window(const mica_hf_config *c, mica_gguf_writer *w)
{
    char key[MAX_KEY];
    if (!c->window)
        return;
    mica_hf_put_u32(c, w, "attention.sliding_window", c->window);
    make_key(c, "attention.sliding_window_pattern", key);
    if (!c->usual_window)
        mica_gguf_writer_array(w, key, MICA_GGUF_BOOL, c->windowed, (size_t)c->n_layers);
}

void mica_hf_config_write(const mica_hf_config *c, mica_gguf_writer *w)
{
    mica_gguf_writer_text(w, "general.architecture", c->arch->name);
    mica_hf_put_u32(c, w, "block_count", c->n_layers);
    mica_hf_put_u32(c, w, "context_length", c->n_ctx);
    mica_hf_put_u32(c, w, "embedding_length", c->n_embd);
    mica_hf_put_u32(c, w, "feed_forward_length", c->n_ff);
    mica_hf_put_u32(c, w, "attention.head_count", c->n_heads);
    mica_hf_put_u32(c, w, "attention.head_count_kv", c->n_kv_heads);
    mica_hf_put_u32(c, w, "attention.key_length", c->head_dim);
    mica_hf_put_u32(c, w, "attention.value_length", c->head_dim);
    mica_hf_put_f32(c, w, "attention.layer_norm_rms_epsilon", c->norm_eps);
    mica_hf_put_u32(c, w, "vocab_size", c->n_vocab);
    if (c->attn_softcap != 0.0)
        mica_hf_put_f32(c, w, "attn_logit_softcapping", c->attn_softcap);
    if (c->final_softcap != 0.0)
        mica_hf_put_f32(c, w, "final_logit_softcapping", c->final_softcap);
    write_window(c, w);
    mica_hf_rope_write(c, w);
}
