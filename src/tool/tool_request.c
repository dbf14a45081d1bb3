/* tool_request.c - a chat request in the form that the model's template wants. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "tool/tools.h"

static bool has_role(const json_t *message, const char *role)
{
    const char *text = json_string_value(json_object_get(message, "role"));
    return text && strcmp(text, role) == 0;
}

static mica_status no_memory(mica_error *err) { return mica_fail_nomem(err, 0, "a chat request"); }

/* The function of a call: {"function": {"name", "arguments"}}, or without that wrapping. */
static json_t *function_of(json_t *call)
{
    json_t *function = json_object_get(call, "function");
    return json_is_object(function) ? function : call;
}

/* ---- Templates with tools ---- */

/* The API has the arguments as text, most templates want what it says. Text that is no object stays text. */
static mica_status convert_arguments(const mica_tools *t, json_t *function, mica_error *err)
{
    json_t *arguments = json_object_get(function, "arguments"), *other = NULL;
    if (t->arguments_text && json_is_object(arguments)) {
        char *text;
        size_t length;
        mica_status status = mica_tool_dump(arguments, &text, &length, err);
        if (status)
            return status;
        other = json_stringn(text, length);
        free(text);
    } else if (!t->arguments_text && json_is_string(arguments)) {
        const char *text = json_string_length(arguments) ? json_string_value(arguments) : "{}";
        json_error_t why;
        other = mica_json_loads(text, JSON_ALLOW_NUL, &why);
        if (!other && mica_json_no_memory(&why))
            return no_memory(err);
        if (!json_is_object(other)) {
            json_decref(other);
            return MICA_OK;
        }
    } else {
        return MICA_OK;
    }
    return json_object_set_new(function, "arguments", other) ? no_memory(err) : MICA_OK;
}

/* Templates ask whether "tool_calls" is there, not whether there is something in it. */
static mica_status native_message(const mica_tools *t, json_t *message, mica_error *err)
{
    json_t *calls = json_object_get(message, "tool_calls"), *call;
    size_t i;
    mica_status status = MICA_OK;
    if (calls && json_array_size(calls) == 0) {
        json_object_del(message, "tool_calls");
        return MICA_OK;
    }
    json_array_foreach(calls, i, call) {
        if (!status && json_is_object(call))
            status = convert_arguments(t, function_of(call), err);
    }
    return status;
}

static mica_status native_request(const mica_tools *t, json_t *request, mica_error *err)
{
    size_t i;
    json_t *message;
    mica_status status = MICA_OK;
    if (t->choice != MICA_TOOL_NONE && json_object_set(request, "tools", t->list.json))
        return no_memory(err);
    json_array_foreach(json_object_get(request, "messages"), i, message) {
        if (!status)
            status = native_message(t, message, err);
    }
    return status;
}

/* ---- Templates without: tools, calls and results are ordinary text ---- */

/* Puts `text` in front of (or behind) a message's content, which may be text, a list of parts, or nothing. */
static bool join_content(json_t *message, const char *text, size_t n, bool behind, const char *gap)
{
    json_t *content = json_object_get(message, "content");
    if (json_array_size(content) > 0) {
        json_t *part = json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(text, n));
        return json_array_insert_new(content, behind ? json_array_size(content) : 0, part) == 0;
    }
    const char *old = json_is_string(content) ? json_string_value(content) : "";
    size_t n_old = json_string_length(content);
    mica_buf buf;
    mica_buf_init(&buf, 2 * MICA_TOOLS_MAX_TEXT);
    mica_buf_append(&buf, behind ? old : text, behind ? n_old : n);
    mica_buf_puts(&buf, n_old > 0 ? gap : "");
    mica_buf_append(&buf, behind ? text : old, behind ? n : n_old);
    bool done = !buf.failed && json_object_set_new(message, "content",
                                                   json_stringn(buf.length ? buf.data : "", buf.length)) == 0;
    mica_buf_free(&buf);
    return done;
}

/* {"tool_call": {"name": ..., "arguments": ...}}, as the reply had it. */
static mica_status write_call(const mica_tools *t, json_t *message, json_t *call, mica_error *err)
{
    json_t *function = function_of(call), *arguments;
    mica_status status = json_is_object(call) ? convert_arguments(t, function, err) : MICA_OK;
    if (status)
        return status;
    arguments = json_object_get(function, "arguments");
    json_t *written = json_pack("{s:{s:O*, s:O*}}", "tool_call", "name", json_object_get(function, "name"), "arguments",
                                arguments);
    char *text;
    size_t n;
    status = mica_tool_dump(written, &text, &n, err);
    json_decref(written);
    if (status)
        return status;
    if (!join_content(message, text, n, true, "\n"))
        status = no_memory(err);
    free(text);
    return status;
}

static mica_status write_calls(const mica_tools *t, json_t *message, mica_error *err)
{
    json_t *calls = json_object_get(message, "tool_calls"), *call;
    size_t i;
    mica_status status = MICA_OK;
    json_array_foreach(calls, i, call) {
        if (!status)
            status = write_call(t, message, call, err);
    }
    json_object_del(message, "tool_calls");
    return status;
}

/* The name that the call with this id had, in messages[0..before). */
static const char *name_of_call(const json_t *messages, size_t before, const char *id)
{
    for (size_t i = before; id && i-- > 0;) {
        const json_t *calls = json_object_get(json_array_get(messages, i), "tool_calls");
        for (size_t k = 0; k < json_array_size(calls); k++) {
            json_t *call = json_array_get(calls, k);
            const char *other = json_string_value(json_object_get(call, "id"));
            if (other && strcmp(other, id) == 0)
                return json_string_value(json_object_get(function_of(call), "name"));
        }
    }
    return NULL;
}

/* "Result of NAME: CONTENT", said by the user; results that follow each other are one message, because roles must alternate. */
static mica_status write_result(json_t *out, const json_t *messages, size_t i, mica_error *err)
{
    const json_t *message = json_array_get(messages, i), *content = json_object_get(message, "content");
    const char *name = json_string_value(json_object_get(message, "name"));
    char *dumped = NULL;
    size_t n = json_string_length(content);
    if (!name)
        name = name_of_call(messages, i, json_string_value(json_object_get(message, "tool_call_id")));
    mica_status status = content && !json_is_string(content) ? mica_tool_dump(content, &dumped, &n, err) : MICA_OK;
    if (status)
        return status;
    mica_buf buf;
    mica_buf_init(&buf, 2 * MICA_TOOLS_MAX_TEXT);
    mica_buf_printf(&buf, "Result of %s: ", name ? name : "the call");
    mica_buf_append(&buf, dumped ? dumped : json_is_string(content) ? json_string_value(content) : "", n);
    json_t *last = json_array_get(out, json_array_size(out) - 1);
    bool follows = i > 0 && has_role(json_array_get(messages, i - 1), "tool") && last;
    bool done = !buf.failed && (follows ? join_content(last, buf.data, buf.length, true, "\n")
                                        : json_array_append_new(out, json_pack("{s:s, s:o}", "role", "user", "content",
                                                                               json_stringn(buf.data, buf.length))) == 0);
    mica_buf_free(&buf);
    free(dumped);
    return done ? MICA_OK : no_memory(err);
}

/* What the model is told; docs/tools.md shows it. */
static bool describe(const mica_tools *t, mica_buf *buf)
{
    mica_buf_puts(buf, "You can call these functions, each described by a JSON object:\n");
    for (size_t i = 0; i < t->list.n; i++) {
        char *text = mica_json_dumps(json_object_get(json_array_get(t->list.json, i), "function"), 0);
        if (!text)
            return false;
        if (t->named < 0 || (size_t)t->named == i)
            mica_buf_printf(buf, "%s\n", text);
        free(text);
    }
    mica_buf_puts(buf,
                  t->choice == MICA_TOOL_AUTO ? "\nTo call a function, reply with nothing but a JSON object of this form:\n"
                                                   : "\nReply with nothing but a call, a JSON object of this form:\n");
    mica_buf_puts(buf, "{\"tool_call\": {\"name\": NAME, \"arguments\": ARGUMENTS}}");
    if (t->choice == MICA_TOOL_AUTO)
        mica_buf_puts(buf, "\nIf no function is of use, reply with ordinary text.");
    return !buf->failed;
}

/* Into the system message where the template takes one, else in front of the first message of the user. */
static bool inject(const mica_tools *t, json_t *messages, const mica_buf *text)
{
    size_t i = 0;
    if (t->system_role && !has_role(json_array_get(messages, 0), "system"))
        return json_array_insert_new(messages, 0, json_pack("{s:s, s:s}", "role", "system", "content", text->data)) == 0;
    while (!t->system_role && i + 1 < json_array_size(messages) && !has_role(json_array_get(messages, i), "user"))
        i++;
    json_t *message = json_array_get(messages, i);
    return !message || join_content(message, text->data, text->length, t->system_role, "\n\n");
}

static mica_status generic_request(const mica_tools *t, json_t *request, mica_error *err)
{
    json_t *messages = json_object_get(request, "messages"), *original = json_deep_copy(messages), *out = json_array();
    mica_status status = original && out ? MICA_OK : no_memory(err);
    for (size_t i = 0; i < json_array_size(messages) && !status; i++) {
        json_t *message = json_array_get(messages, i);
        if (has_role(message, "tool"))
            status = write_result(out, original, i, err);
        else if (json_array_append(out, message))
            status = no_memory(err);
        else
            status = write_calls(t, message, err);
    }
    mica_buf text;
    mica_buf_init(&text, MICA_TOOLS_MAX_TEXT);
    if (!status && t->choice != MICA_TOOL_NONE && !(describe(t, &text) && inject(t, out, &text)))
        status = no_memory(err);
    mica_buf_free(&text);
    json_decref(original);
    if (!status && json_object_set(request, "messages", out))
        status = no_memory(err);
    json_decref(out);
    return status;
}

/* ---- */

static mica_status check_request(const json_t *request, mica_error *err)
{
    size_t i;
    const json_t *message, *messages = json_object_get(request, "messages");
    if (!json_is_array(messages))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request must have \"messages\", an array of messages");
    json_array_foreach(messages, i, message) {
        const json_t *calls = json_object_get(message, "tool_calls");
        if (!json_is_object(message))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "messages[%zu] must be an object", i);
        if (calls && !json_is_array(calls) && !json_is_null(calls))
            return mica_fail(err, MICA_INVALID_ARGUMENT, "messages[%zu]: \"tool_calls\" must be an array", i);
    }
    return MICA_OK;
}

mica_status mica_tools_request(const mica_tools *t, const char *request_json, size_t length, char **out, size_t *out_length,
                               mica_error *err)
{
    json_error_t why;
    *out = NULL;
    if (length > MICA_TOOLS_MAX_TEXT)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request is longer than %zu MiB", MICA_TOOLS_MAX_TEXT >> 20);
    json_t *request = mica_json_loadb(request_json, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!request && mica_json_no_memory(&why))
        return mica_fail_nomem(err, length, "the request");
    if (!request)
        return mica_fail_at(err, MICA_BAD_TEXT, why.position, "the request is not JSON: %s at line %d, column %d", why.text,
                            why.line,
                            why.column);
    mica_status status = check_request(request, err);
    json_object_del(request, "tools");
    if (!status)
        status = t->format == mica_tool_format_generic() ? generic_request(t, request, err) : native_request(t, request, err);
    if (!status)
        status = mica_tool_dump(request, out, out_length, err);
    json_decref(request);
    return status;
}
