#include "text/chat.h"

#include "base/json.h"
#include "text/tmpl_exec.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <jansson.h>
#include <string.h>
#include <time.h>

/* ---- The request as values ---- */

static bool from_json(mica_run *run, json_t *json, int depth, mica_val *out);

static bool from_array(mica_run *run, json_t *json, int depth, mica_val *out)
{
    mica_val item;
    if (!mica_seq_new(run, MICA_V_LIST, json_array_size(json), out))
        return false;
    for (size_t i = 0; i < json_array_size(json); i++) {
        if (!from_json(run, json_array_get(json, i), depth + 1, &item) || !mica_seq_push(run, out, &item))
            return false;
    }
    return true;
}

/* Jansson walks an object in the order in which the keys came. Keys and strings are borrowed: the request outlives the run. */
static bool from_object(mica_run *run, json_t *json, int depth, mica_val *out)
{
    if (!mica_dict_new(run, MICA_V_DICT, json_object_size(json), out))
        return false;
    for (void *it = json_object_iter(json); it; it = json_object_iter_next(json, it)) {
        const char *name = json_object_iter_key(it);
        mica_val key = mica_val_literal(name), value;
        if (!from_json(run, json_object_iter_value(it), depth + 1, &value) || !mica_dict_set(run, out->dict, &key, &value))
            return false;
    }
    return true;
}

static bool from_json(mica_run *run, json_t *json, int depth, mica_val *out)
{
    if (depth > MICA_TMPL_MAX_NESTING)
        return mica_run_fail(run, "the request is nested more than %d levels deep", MICA_TMPL_MAX_NESTING);
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return from_object(run, json, depth, out);
    case JSON_ARRAY:
        return from_array(run, json, depth, out);
    case JSON_STRING:
        if (json_string_length(json) > MICA_TMPL_MAX_TEXT)
            return mica_run_fail(run, "a string of the request is longer than %zu MiB", MICA_TMPL_MAX_TEXT >> 20);
        *out = mica_val_text(json_string_value(json), json_string_length(json));
        return true;
    case JSON_INTEGER:
        *out = mica_val_int(json_integer_value(json));
        return true;
    case JSON_REAL:
        *out = mica_val_float(json_real_value(json));
        return true;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = mica_val_bool(json_is_true(json));
        return true;
    case JSON_NULL:
        *out = MICA_NONE;
        return true;
    }
    return mica_run_fail(run, "the request has a value of an unknown type");
}

static bool set_variable(mica_run *run, const char *name, const mica_val *value)
{
    mica_val key = mica_val_literal(name);
    return mica_dict_set(run, run->variables, &key, value);
}

/* What transformers passes although nobody asked for it, then the request, then chat_template_kwargs: the last one wins. */
static bool make_variables(mica_run *run, const mica_chat_request *request, json_t *root)
{
    mica_val dict, yes = mica_val_bool(true), none = MICA_NONE, text;
    if (!mica_dict_new(run, MICA_V_DICT, json_object_size(root) + 8, &dict))
        return false;
    run->variables = dict.dict;
    if (!set_variable(run, "tools", &none) || !set_variable(run, "documents", &none) ||
        !set_variable(run, "add_generation_prompt", &yes))
        return false;
    const char *const texts[] = {request->bos_token, request->eos_token}, *const names[] = {"bos_token", "eos_token"};
    for (int i = 0; i < 2; i++) {
        if (!texts[i])
            continue;
        text = mica_val_literal(texts[i]);
        if (!set_variable(run, names[i], &text))
            return false;
    }
    json_t *kwargs = json_object_get(root, "chat_template_kwargs"), *sources[] = {root, kwargs};
    for (int i = 0; i < 2; i++) {
        if (!json_is_object(sources[i]))
            continue;
        for (void *it = json_object_iter(sources[i]); it; it = json_object_iter_next(sources[i], it)) {
            const char *name = json_object_iter_key(it);
            mica_val value;
            if (i == 0 && strcmp(name, "chat_template_kwargs") == 0)
                continue;
            if (!from_json(run, json_object_iter_value(it), 1, &value) || !set_variable(run, name, &value))
                return false;
        }
    }
    return true;
}

/* ---- Reading and checking the request ---- */

static mica_status check_request(json_t *root, mica_error *err)
{
    json_t *messages = json_object_get(root, "messages"), *tools = json_object_get(root, "tools");
    json_t *kwargs = json_object_get(root, "chat_template_kwargs"), *prompt = json_object_get(root, "add_generation_prompt");
    if (!json_is_array(messages))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request must have \"messages\", an array of messages");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        if (!json_is_object(json_array_get(messages, i)))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "messages[%zu] must be an object", i);
    }
    if (tools && !json_is_array(tools) && !json_is_null(tools))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "\"tools\" must be an array or null");
    if (prompt && !json_is_boolean(prompt))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "\"add_generation_prompt\" must be true or false");
    if (kwargs && !json_is_object(kwargs) && !json_is_null(kwargs))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "\"chat_template_kwargs\" must be an object");
    if (json_object_get(kwargs, "messages"))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "\"chat_template_kwargs\" must not have \"messages\"");
    return MICA_OK;
}

mica_status mica_chat_request_read(const char *json, size_t length, json_t **root, mica_error *err)
{
    json_error_t e;
    *root = mica_json_loadb(json, length, JSON_ALLOW_NUL, &e);
    if (!*root && mica_json_no_memory(&e))
        return mica_fail_nomem(err, length, "the request");
    if (!*root)
        return mica_fail_at(err, MICA_BAD_TEXT, e.position, "the request is not valid JSON: %s at byte %d", e.text, e.position);
    mica_status status = json_is_object(*root) ? check_request(*root, err)
                                               : mica_fail(err, MICA_INVALID_ARGUMENT, "the request must be a JSON object");
    if (status != MICA_OK) {
        json_decref(*root);
        *root = NULL;
    }
    return status;
}

/* ---- Rendering ---- */

static mica_status report(const mica_run *run, mica_error *err)
{
    if (run->code == MICA_OUT_OF_MEMORY)
        return mica_fail(err, MICA_OUT_OF_MEMORY, "out of memory while rendering the chat template");
    if (!run->line)
        return mica_fail(err, run->code, "chat template: %s", run->message);
    return mica_fail_at(err, run->code, run->tmpl->exact_offsets ? (int64_t)run->offset : -1, "chat template, line %u: %s",
                        run->line,
                        run->message);
}

mica_status mica_template_run_json(const mica_template *t, const mica_chat_request *request, json_t *root, char **text,
                                   size_t *length, mica_error *err)
{
    mica_status status = MICA_OK;
    *text = NULL;
    *length = 0;
    mica_run run = {.tmpl = t, .now_unix = request->now_unix >= 0 ? request->now_unix : (int64_t)time(NULL)};
    /* The address differs from run to run, so nobody can choose keys that all collide. Order never depends on it. */
    run.hash_seed = (uint64_t)(uintptr_t)root * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)&run;
    mica_tarena_init(&run.arena, MICA_TMPL_MAX_MEMORY);
    mica_buf_init(&run.out, MICA_TMPL_BUFFER);
    bool ok = make_variables(&run, request, root) && mica_exec_template(&run);
    if (ok) {
        *text = mica_buf_take(&run.out, length);
        if (!*text) {
            run.arena.refused = true;
            ok = mica_run_no_memory(&run);
        }
    }
    if (!ok)
        status = report(&run, err);
    mica_buf_free(&run.out);
    mica_tarena_free(&run.arena);
    return status;
}

mica_status mica_template_run(const mica_template *t, const mica_chat_request *request, char **text, size_t *length,
                              mica_error *err)
{
    json_t *root;
    *text = NULL;
    *length = 0;
    mica_status status = mica_chat_request_read(request->json, request->length, &root, err);
    if (status != MICA_OK)
        return status;
    status = mica_template_run_json(t, request, root, text, length, err);
    json_decref(root);
    return status;
}

mica_status mica_template_render(const char *template_text, size_t template_length, const char *request_json, size_t length,
                                 const char *bos, const char *eos, int64_t now_unix, char **text, size_t *text_length,
                                 mica_error *err)
{
    mica_template *t;
    mica_chat_request request = {.json = request_json, .length = length, .bos_token = bos, .eos_token = eos,
                                 .now_unix = now_unix};
    if (!template_text || !request_json || !text || !text_length)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a template, a request and a place for the text are needed");
    *text = NULL;
    *text_length = 0;
    mica_status status = mica_template_compile(template_text, template_length, &t, err);
    if (status != MICA_OK)
        return status;
    status = mica_template_run(t, &request, text, text_length, err);
    mica_template_free(t);
    return status;
}
