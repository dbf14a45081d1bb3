#include "router/run_body.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

#define MESSAGES_MAX 10000

static json_t *member(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

/* ---- Messages ---- */

static mica_status join_parts(json_t *message, size_t i, const json_t *parts, mica_error *err)
{
    mica_buf text;
    mica_status status = MICA_OK;
    mica_buf_init(&text, MICA_RUN_BODY_MAX);
    for (size_t k = 0; !status && k < json_array_size(parts); k++) {
        const json_t *said = json_object_get(json_array_get(parts, k), "text");
        if (!json_is_string(said))
            status = mica_fail(err, MICA_UNSUPPORTED, "part %zu of messages[%zu].content is no text", k, i);
        else if (!mica_buf_append(&text, json_string_value(said), json_string_length(said)))
            status = mica_fail_nomem(err, json_string_length(said), "a message");
    }
    if (!status && json_object_set_new(message, "content", json_stringn(text.data ? text.data : "", text.length)))
        status = mica_fail_nomem(err, text.length, "a message");
    mica_buf_free(&text);
    return status;
}

static mica_status read_message(mica_run_body *out, json_t *message, size_t i, mica_error *err)
{
    const json_t *role = member(message, "role"), *content = member(message, "content");
    bool calls = json_array_size(member(message, "tool_calls")) > 0;
    mica_status status = MICA_OK;
    if (!json_is_string(role))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "messages[%zu] has no \"role\"", i);
    if (!json_is_string(content) && !json_is_array(content) && !(calls && !content))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "messages[%zu].content must be a text or a list of texts", i);
    if (json_is_array(content))
        status = join_parts(message, i, content, err);
    content = member(message, "content");
    if (!status && content && strcmp(json_string_value(role), "user") == 0) {
        out->user_text = json_string_value(content);
        out->user_length = json_string_length(content);
    }
    return status;
}

static mica_status read_messages(mica_run_body *out, mica_error *err)
{
    mica_status status = MICA_OK;
    out->messages = member(out->request, "messages");
    size_t n = json_array_size(out->messages);
    if (n == 0 || n > MESSAGES_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "\"messages\" must be a list of 1 to %d messages", MESSAGES_MAX);
    for (size_t i = 0; !status && i < n; i++)
        status = read_message(out, json_array_get(out->messages, i), i, err);
    return status;
}

/* ---- The other fields that decide something here ---- */

static mica_status read_format(mica_run_body *out, mica_error *err)
{
    const json_t *format = member(out->request, "response_format"), *holder = member(format, "json_schema");
    const char *type = json_string_value(member(format, "type"));
    if (!format || (type && strcmp(type, "text") == 0))
        return MICA_OK;
    out->any_json = type && strcmp(type, "json_object") == 0;
    if (out->any_json)
        return MICA_OK;
    out->schema = type && strcmp(type, "json_schema") == 0 ? member(holder, "schema") : NULL;
    out->strict = json_is_true(member(holder, "strict"));
    return json_is_object(out->schema)
               ? MICA_OK
               : mica_fail(
                     err, MICA_INVALID_ARGUMENT,
                     "\"response_format\" must be of the type \"text\", \"json_object\", or \"json_schema\" with a \"schema\"");
}

static mica_status read_limits(mica_run_body *out, mica_error *err)
{
    static const char *const names[] = {"max_tokens", "max_completion_tokens"};
    const json_t *n = member(out->request, "n");
    out->max_tokens = -1;
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = member(out->request, names[i]);
        if (value && (!json_is_integer(value) || json_integer_value(value) < -1))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "\"%s\" must be a whole number, 0 or more", names[i]);
        if (value)
            out->max_tokens = json_integer_value(value);
    }
    if (n && (!json_is_integer(n) || json_integer_value(n) != 1))
        return mica_fail(err, MICA_UNSUPPORTED, "a routed request has one reply: \"n\" must be 1");
    if (json_is_true(member(out->request, "logprobs")))
        return mica_fail(err, MICA_UNSUPPORTED,
                         "a routed request gives no log-probabilities: rungs do not have the same tokens");
    return MICA_OK;
}

mica_status mica_run_body_read(const char *json, size_t length, mica_run_body *out, mica_error *err)
{
    json_error_t why;
    *out = (mica_run_body){.max_tokens = -1};
    if (length > MICA_RUN_BODY_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request has %zu bytes; at most %zu are taken", length,
                         MICA_RUN_BODY_MAX);
    out->request = mica_json_loadb(json, length, JSON_REJECT_DUPLICATES, &why);
    if (!out->request && mica_json_no_memory(&why))
        return mica_fail_nomem(err, length, "the request");
    if (!out->request)
        return mica_fail_at(err, MICA_BAD_TEXT, why.position, "the request is not valid JSON: line %d, column %d: %.200s",
                            why.line, why.column, why.text);
    mica_status status = json_is_object(out->request)
                             ? read_messages(out, err)
                             : mica_fail(err, MICA_INVALID_ARGUMENT, "the request must be a JSON object");
    if (!status)
        status = read_format(out, err);
    if (!status)
        status = read_limits(out, err);
    out->tools = status ? NULL : member(out->request, "tools");
    if (json_array_size(out->tools) == 0)
        out->tools = NULL;
    if (status)
        mica_run_body_free(out);
    return status;
}

void mica_run_body_free(mica_run_body *body)
{
    json_decref(body->request);
    *body = (mica_run_body){.max_tokens = -1};
}

/* ---- For a rung ---- */

json_t *mica_run_body_messages(const mica_run_body *body, const char *before)
{
    json_t *messages = json_deep_copy(body->messages);
    json_t *first = json_array_get(messages, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    if (!messages || !*before)
        return messages;
    bool good;
    if (role && strcmp(role, "system") == 0) { /* many templates take one system message, the first */
        json_t *joined = json_sprintf("%s\n\n%s", before, json_string_value(json_object_get(first, "content")));
        good = json_object_set_new(first, "content", joined) == 0;
    } else {
        good = json_array_insert_new(messages, 0, json_pack("{s:s, s:s}", "role", "system", "content", before)) == 0;
    }
    if (good)
        return messages;
    json_decref(messages);
    return NULL;
}

char *mica_run_body_remote(const mica_run_body *body, const mica_endpoint *endpoint, json_t *messages, int64_t max_tokens,
                           size_t *length)
{
    json_t *o = json_copy(body->request);
    json_object_del(o, "route"); /* these two are for us */
    json_object_del(o, "x_mica");
    json_object_set_new(o, "messages", messages);
    json_object_del(o, "stream_options");
    json_object_set_new(o, "stream", json_boolean(endpoint->stream));
    if (endpoint->stream)
        json_object_set_new(o, "stream_options", json_pack("{s:b}", "include_usage", 1));
    if (*endpoint->model)
        json_object_set_new(o, "model", json_string(endpoint->model));
    else
        json_object_del(o, "model");
    if (max_tokens >= 0) {
        bool newer = json_object_get(o, "max_completion_tokens") != NULL;
        json_object_set_new(o, newer ? "max_completion_tokens" : "max_tokens", json_integer(max_tokens));
    }
    char *text = o ? mica_json_dumps(o, JSON_COMPACT) : NULL;
    *length = text ? strlen(text) : 0;
    json_decref(o);
    return text;
}
