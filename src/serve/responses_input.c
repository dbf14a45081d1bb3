#include "serve/responses_input.h"

#include <stdio.h>
#include <string.h>

#include "serve/chat_prompt.h"
#include "serve/fields.h"
#include "serve/limits.h"

static bool no_memory(mica_fault *fault)
{
    return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the input");
}

/* ---- Items ---- */

/* Says "input[1].content" in place of "messages[0].content". */
static void replace(char *text, size_t room, const char *before, const char *after)
{
    char copy[sizeof((mica_fault *)0)->message];
    const char *at = strstr(text, before);
    if (!at)
        return;
    snprintf(copy, sizeof copy, "%.*s%s%s", (int)(at - text), text, after, at + strlen(before));
    snprintf(text, room, "%s", copy);
}

/* The check of one message, the item `place`, whose content the API calls `content`. Takes it over; NULL: *fault. */
static json_t *checked(json_t *message, const char *place, const char *content, mica_fault *fault)
{
    char own[64];
    json_t *body = json_pack("{s:[o]}", "messages", message), *list = body ? mica_chat_messages(body, fault) : NULL;
    json_t *one = json_incref(json_array_get(list, 0));
    if (!body)
        no_memory(fault);
    json_decref(body);
    json_decref(list);
    if (one)
        return one;
    snprintf(own, sizeof own, "%s.%s", place, content);
    replace(fault->param, sizeof fault->param, "messages[0].content", own);
    replace(fault->message, sizeof fault->message, "messages[0].content", own);
    replace(fault->param, sizeof fault->param, "messages[0]", place);
    replace(fault->message, sizeof fault->message, "messages[0]", place);
    return NULL;
}

static bool add(json_t *messages, json_t *message, mica_fault *fault)
{
    return json_array_append_new(messages, message) == 0 || no_memory(fault);
}

static bool add_message(json_t *messages, const json_t *item, const char *place, mica_fault *fault)
{
    json_t *message =
        json_pack("{s:O*, s:O*}", "role", json_object_get(item, "role"), "content", json_object_get(item, "content"));
    if (!message)
        return no_memory(fault);
    message = checked(message, place, "content", fault);
    return message && add(messages, message, fault);
}

/* A member that must be a text. */
static const char *text_of(const json_t *item, const char *name, const char *place, mica_fault *fault)
{
    char param[96];
    const char *text = json_string_value(json_object_get(item, name));
    snprintf(param, sizeof param, "%s.%s", place, name);
    if (!text)
        mica_fault_set(fault, 400, "invalid_type", param, "\"%s\" must be a string", param);
    return text;
}

/* Calls of one turn are one message, with what the assistant said before them. */
static bool add_call(json_t *messages, const json_t *item, const char *place, mica_fault *fault)
{
    const char *id = text_of(item, "call_id", place, fault), *name = id ? text_of(item, "name", place, fault) : NULL;
    const char *arguments = name ? text_of(item, "arguments", place, fault) : NULL;
    if (!arguments)
        return false;
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    json_t *call =
        json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", id, "type", "function", "function", "name", name, "arguments", arguments);
    if (!role || strcmp(role, "assistant") != 0) {
        last = json_pack("{s:s, s:n}", "role", "assistant", "content");
        if (!add(messages, last, fault)) {
            json_decref(call);
            return false;
        }
    }
    if (!json_object_get(last, "tool_calls"))
        json_object_set_new(last, "tool_calls", json_array());
    return json_array_append_new(json_object_get(last, "tool_calls"), call) == 0 || no_memory(fault);
}

static bool add_output(json_t *messages, const json_t *item, const char *place, mica_fault *fault)
{
    const char *id = text_of(item, "call_id", place, fault);
    const json_t *output = json_object_get(item, "output");
    char param[96];
    snprintf(param, sizeof param, "%s.output", place);
    if (!id)
        return false;
    if (!json_is_string(output) && !json_is_array(output))
        return mica_fault_set(fault, 400, "invalid_type", param, "\"%s\" must be a string or a list of parts", param);
    json_t *message = json_pack("{s:s, s:s, s:O}", "role", "tool", "tool_call_id", id, "content", output);
    if (!message)
        return no_memory(fault);
    message = checked(message, place, "output", fault);
    return message && add(messages, message, fault);
}

static bool add_item(json_t *messages, const json_t *item, size_t i, mica_fault *fault)
{
    char place[32], param[40];
    const json_t *type = json_object_get(item, "type");
    const char *word = type ? json_string_value(type) : "message"; /* clients leave that out */
    snprintf(place, sizeof place, "input[%zu]", i);
    snprintf(param, sizeof param, "%s.type", place);
    if (!json_is_object(item))
        return mica_fault_set(fault, 400, "invalid_type", place, "\"%s\" must be an object", place);
    if (!word)
        return mica_fault_set(fault, 400, "invalid_type", param, "\"%s\" must be a string", param);
    if (strcmp(word, "message") == 0)
        return add_message(messages, item, place, fault);
    if (strcmp(word, "function_call") == 0)
        return add_call(messages, item, place, fault);
    if (strcmp(word, "function_call_output") == 0)
        return add_output(messages, item, place, fault);
    if (strcmp(word, "reasoning") == 0) /* of an earlier turn: no model wants it back */
        return true;
    return mica_fault_set(fault, 400, "invalid_value", param,
                          "\"%s\" is \"%.40s\"; it must be message, function_call, function_call_output or reasoning", param,
                          word);
}

/* ---- The whole ---- */

static bool add_all(json_t *messages, const json_t *body, mica_fault *fault)
{
    json_t *input = mica_field(body, "input");
    const char *instructions = NULL;
    size_t n = json_array_size(input);
    if (!mica_field_text(body, "instructions", &instructions, fault))
        return false;
    if (instructions && !add(messages, json_pack("{s:s, s:s}", "role", "system", "content", instructions), fault))
        return false;
    if (json_is_string(input))
        return add(messages, json_pack("{s:s, s:O}", "role", "user", "content", input), fault);
    if (!json_is_array(input))
        return mica_fault_set(fault, 400, input ? "invalid_type" : "missing_required_parameter", "input",
                              "\"input\" must be a string or a list of items");
    if (n == 0 || n > MICA_SERVE_MESSAGES_MAX)
        return mica_fault_bad(fault, "input", "\"input\" has %zu items; it must have 1 to %d", n, MICA_SERVE_MESSAGES_MAX);
    for (size_t i = 0; i < n; i++)
        if (!add_item(messages, json_array_get(input, i), i, fault))
            return false;
    return true;
}

json_t *mica_responses_messages(const json_t *body, mica_fault *fault)
{
    json_t *messages = json_array();
    if (messages && add_all(messages, body, fault))
        return messages;
    if (!messages)
        no_memory(fault);
    json_decref(messages);
    return NULL;
}
