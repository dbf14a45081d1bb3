/* hf_special.c - special tokens by their parts, what is added to a text, and chat templates. */
#include <stdio.h>
#include <string.h>

#include "convert/hf_json.h"
#include "convert/hf_tokenizer.h"

static int64_t find_token(const mica_hf_tokenizer *t, const char *content)
{
    const json_t *id = json_object_get(t->vocab, content), *added = mica_hf_get(t->file, "added_tokens");
    for (size_t i = 0; i < json_array_size(added) && !id; i++) {
        const char *other = mica_hf_text(json_array_get(added, i), "content");
        if (other && strcmp(other, content) == 0)
            id = json_object_get(json_array_get(added, i), "id");
    }
    return json_is_integer(id) && (uint64_t)json_integer_value(id) < t->n ? json_integer_value(id) : -1;
}

/* A number, or the first of some. */
static int64_t first_id(const mica_hf_tokenizer *t, const json_t *object, const char *key)
{
    const json_t *id = mica_hf_get(object, key);
    id = json_is_array(id) ? json_array_get(id, 0) : id;
    return json_is_integer(id) && json_integer_value(id) >= 0 && (uint64_t)json_integer_value(id) < t->n ? json_integer_value(id) : -1;
}

/* tokenizer_config.json's "bos_token", a text or an object; else config.json's "bos_token_id". -1: neither. */
static int64_t special_id(const mica_hf_tokenizer *t, const mica_hf_config *c, const char *part)
{
    char key[32];
    snprintf(key, sizeof key, "%s_token", part);
    const json_t *token = mica_hf_get(t->settings, key);
    const char *content = json_is_object(token) ? mica_hf_text(token, "content") : json_string_value(token);
    int64_t id = content ? find_token(t, content) : -1;
    snprintf(key, sizeof key, "%s_token_id", part);
    if (id < 0)
        id = first_id(t, c->text, key);
    if (id < 0)
        id = first_id(t, c->file, key);
    return id < 0 ? first_id(t, t->generation, key) : id;
}

static int64_t write_id(const mica_hf_tokenizer *t, const mica_hf_config *c, mica_gguf_writer *w, const char *part, const char *key)
{
    int64_t id = special_id(t, c, part);
    if (id >= 0)
        mica_gguf_writer_u32(w, key, (uint32_t)id);
    return id;
}

/* A second token that ends replies, by generation_config.json, and that is not the padding: the end of a turn. Where there are more,
 * the engine knows them by their texts. */
static void write_end_of_turn(const mica_hf_tokenizer *t, mica_gguf_writer *w, int64_t eos, int64_t pad)
{
    const json_t *ids = mica_hf_get(t->generation, "eos_token_id");
    int64_t other = -1;
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        json_int_t id = json_integer_value(json_array_get(ids, i));
        if (id < 0 || (uint64_t)id >= t->n || id == eos || id == pad)
            continue;
        other = id;
        n++;
    }
    if (n == 1)
        mica_gguf_writer_u32(w, "tokenizer.ggml.eot_token_id", (uint32_t)other);
}

/* ---- What is added to a text ---- */

/* The TemplateProcessing among the steps behind the model, or NULL. */
static const json_t *find_template(const json_t *post)
{
    const json_t *steps = json_object_get(post, "processors");
    const char *type = mica_hf_text(post, "type");
    if (type && strcmp(type, "TemplateProcessing") == 0)
        return post;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        type = mica_hf_text(json_array_get(steps, i), "type");
        if (type && strcmp(type, "TemplateProcessing") == 0)
            return json_array_get(steps, i);
    }
    return NULL;
}

/* Whether the template of one text has `token` at that place. */
static bool adds(const mica_hf_tokenizer *t, const json_t *single, size_t at, int64_t token)
{
    const char *content = mica_hf_text(mica_hf_get(json_array_get(single, at), "SpecialToken"), "id");
    return content && token >= 0 && find_token(t, content) == token;
}

/* tokenizer_config.json has the last word: transformers makes the template anew from it. */
static void write_added(const mica_hf_tokenizer *t, mica_gguf_writer *w, int64_t bos, int64_t eos)
{
    const json_t *single = mica_hf_get(find_template(mica_hf_get(t->file, "post_processor")), "single");
    const json_t *add_bos = json_object_get(t->settings, "add_bos_token"), *add_eos = json_object_get(t->settings, "add_eos_token");
    size_t n = json_array_size(single);
    mica_gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", json_is_boolean(add_bos) ? json_is_true(add_bos) : adds(t, single, 0, bos));
    mica_gguf_writer_bool(w, "tokenizer.ggml.add_eos_token",
                          json_is_boolean(add_eos) ? json_is_true(add_eos) : n > 1 && adds(t, single, n - 1, eos));
}

/* ---- Chat templates ---- */

#define TEMPLATE_KEY "tokenizer.chat_template"

/* [{"name": ..., "template": ...}]: the one called "default" is the model's, the others get keys of their own. */
static void write_named(const json_t *list, mica_gguf_writer *w)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char key[96];
        const char *name = mica_hf_text(json_array_get(list, i), "name"), *text = mica_hf_text(json_array_get(list, i), "template");
        if (!name || !text)
            continue;
        bool main = strcmp(name, "default") == 0;
        snprintf(key, sizeof key, TEMPLATE_KEY "%s%.60s", main ? "" : ".", main ? "" : name);
        mica_gguf_writer_text(w, key, text);
    }
}

static mica_status write_templates(const mica_hf_tokenizer *t, const char *dir, mica_gguf_writer *w, mica_error *err)
{
    char *text;
    json_t *file = NULL;
    mica_status status = mica_hf_text_file(dir, "chat_template.jinja", &text, err);
    if (!status && !text)
        status = mica_hf_load(dir, "chat_template.json", false, false, &file, err);
    if (!status) {
        const json_t *settings = mica_hf_get(t->settings, "chat_template");
        const char *only = text ? text : json_is_string(settings) ? json_string_value(settings) : mica_hf_text(file, "chat_template");
        if (only)
            mica_gguf_writer_text(w, TEMPLATE_KEY, only);
        else
            write_named(settings, w);
    }
    free(text);
    json_decref(file);
    return status;
}

mica_status mica_hf_special_write(const mica_hf_tokenizer *t, const char *dir, const mica_hf_config *c, mica_gguf_writer *w, mica_error *err)
{
    int64_t bos = write_id(t, c, w, "bos", "tokenizer.ggml.bos_token_id");
    int64_t eos = write_id(t, c, w, "eos", "tokenizer.ggml.eos_token_id");
    int64_t pad = write_id(t, c, w, "pad", "tokenizer.ggml.padding_token_id");
    write_id(t, c, w, "unk", "tokenizer.ggml.unknown_token_id");
    write_end_of_turn(t, w, eos, pad);
    write_added(t, w, bos, eos);
    return write_templates(t, dir, w, err);
}
