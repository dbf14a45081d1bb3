#include "router/remote_reply.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

static void copy_text(char *out, size_t size, const json_t *value)
{
    if (json_is_string(value))
        mica_try_copy(out, size, json_string_value(value));
}

static void read_usage(mica_try *t, const json_t *usage)
{
    const json_t *in = json_object_get(usage, "prompt_tokens"), *out = json_object_get(usage, "completion_tokens");
    if (json_is_integer(in) && json_integer_value(in) >= 0)
        t->prompt_tokens = json_integer_value(in);
    if (json_is_integer(out) && json_integer_value(out) >= 0)
        t->output_tokens = json_integer_value(out);
}

/* ---- Tool calls ---- */

static json_t *call_at(mica_try *t, const json_t *piece)
{
    const json_t *index = json_object_get(piece, "index");
    size_t n = json_array_size(t->tool_calls), at = json_is_integer(index) ? (size_t)json_integer_value(index) : n;
    if (at > n || at >= MICA_RUN_CALLS_MAX)
        return NULL; /* they come in order */
    if (!t->tool_calls)
        t->tool_calls = json_array();
    if (at == n)
        json_array_append_new(t->tool_calls, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", "", "type", "function", "function",
                                                       "name", "", "arguments", ""));
    return json_array_get(t->tool_calls, at);
}

/* Adds a string to the one that is there. */
static bool extend(json_t *object, const char *name, const json_t *more)
{
    if (!json_is_string(more) || json_string_length(more) == 0)
        return true;
    const json_t *old = json_object_get(object, name);
    mica_buf joined;
    mica_buf_init(&joined, MICA_RUN_REPLY_MAX / 16);
    mica_buf_append(&joined, json_string_value(old), json_string_length(old));
    mica_buf_append(&joined, json_string_value(more), json_string_length(more));
    bool good = !joined.failed && json_object_set_new(object, name, json_stringn(joined.data, joined.length)) == 0;
    mica_buf_free(&joined);
    return good;
}

static bool read_calls(mica_try *t, const json_t *calls)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *piece = json_array_get(calls, i), *said = json_object_get(piece, "function");
        json_t *call = call_at(t, piece), *function = json_object_get(call, "function");
        if (!call || !extend(call, "id", json_object_get(piece, "id")) ||
            !extend(function, "name", json_object_get(said, "name")) ||
            !extend(function, "arguments", json_object_get(said, "arguments")))
            return mica_try_fail(t, MICA_FAILURE_GARBAGE, "the server's tool calls are malformed, or too many");
    }
    return true;
}

/* ---- Pieces ---- */

/* A whole reply must say why it ended; that is looked at before its text is handed on. */
static bool read_choice(mica_try *t, const mica_try_link *link, const json_t *choice, const char *part, bool whole)
{
    const json_t *message = json_object_get(choice, part), *content = json_object_get(message, "content");
    if (!json_is_object(message))
        return mica_try_fail(t, MICA_FAILURE_GARBAGE, "the server's reply has a choice without \"%s\"", part);
    if (content && !json_is_string(content) && !json_is_null(content))
        return mica_try_fail(t, MICA_FAILURE_GARBAGE, "the server's \"content\" is no text");
    copy_text(t->finish, sizeof t->finish, json_object_get(choice, "finish_reason"));
    if (whole && !*t->finish)
        return mica_try_fail(t, MICA_FAILURE_GARBAGE, "the server's reply has no \"finish_reason\"");
    if (!read_calls(t, json_object_get(message, "tool_calls")))
        return false;
    return !json_is_string(content) || mica_try_text(t, link, json_string_value(content), json_string_length(content));
}

static void error_text(const json_t *error, char *out, size_t size)
{
    const json_t *message = json_is_object(error) ? json_object_get(error, "message") : error;
    out[0] = '\0';
    copy_text(out, size, message);
}

static bool read_reply(mica_try *t, const mica_try_link *link, const char *json, size_t length, bool whole)
{
    char said[160];
    json_error_t why;
    json_t *o = mica_json_loadb(json, length, 0, &why);
    const json_t *error = json_object_get(o, "error"), *choices = json_object_get(o, "choices");
    bool good = true;
    if (!json_is_object(o)) {
        good = mica_try_fail(t, MICA_FAILURE_GARBAGE, "the server's reply is no JSON object: %.80s", o ? "" : why.text);
    } else if (error && !json_is_null(error)) {
        const char *code = json_string_value(json_object_get(error, "code"));
        bool hot = code && strcmp(code, "device_too_hot") == 0; /* as our own server says it */
        error_text(error, said, sizeof said);
        good = mica_try_fail(t, hot ? MICA_FAILURE_HOT : MICA_FAILURE_SERVER, "the server ended the reply with an error: %s",
                             said);
    } else if (!json_is_array(choices) || (whole && json_array_size(choices) == 0)) {
        good = mica_try_fail(t, MICA_FAILURE_GARBAGE, "the server's reply has no \"choices\"");
    } else {
        copy_text(t->model, sizeof t->model, json_object_get(o, "model"));
        read_usage(t, json_object_get(o, "usage"));
        if (json_array_size(choices) > 0)
            good = read_choice(t, link, json_array_get(choices, 0), whole ? "message" : "delta", whole);
    }
    json_decref(o);
    return good;
}

bool mica_remote_chunk(mica_try *t, const mica_try_link *link, const char *json, size_t length)
{
    return read_reply(t, link, json, length, false);
}

bool mica_remote_whole(mica_try *t, const mica_try_link *link, const char *json, size_t length)
{
    return read_reply(t, link, json, length, true);
}

void mica_remote_error_text(const char *json, size_t length, char *out, size_t size)
{
    json_t *o = mica_json_loadb(json, length, 0, NULL);
    error_text(json_object_get(o, "error"), out, size);
    json_decref(o);
}
