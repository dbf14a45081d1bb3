#include "serve/chat_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "serve/fields.h"

static bool no_memory(mica_fault *fault)
{
    return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the conversation");
}

/* ---- Messages ---- */

/* A list of parts becomes the text of them all; only texts can be read here. */
static json_t *join_parts(const json_t *parts, const char *param, mica_fault *fault)
{
    mica_buf text;
    mica_buf_init(&text, MICA_SERVE_BODY_MAX);
    bool good = json_array_size(parts) > 0 || mica_fault_bad(fault, param, "\"%s\" is an empty list", param);
    for (size_t i = 0; good && i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *said = json_object_get(part, type && strcmp(type, "refusal") == 0 ? "refusal" : "text");
        if (!type || (strcmp(type, "text") != 0 && strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0 &&
                      strcmp(type, "refusal") != 0))
            good = mica_fault_bad(fault, param, "part %zu of \"%s\" is no text; this model reads nothing else", i, param);
        else if (!json_is_string(said))
            good = mica_fault_bad(fault, param, "part %zu of \"%s\" has no \"text\"", i, param);
        else
            good = mica_buf_append(&text, json_string_value(said), json_string_length(said)) || no_memory(fault);
    }
    json_t *joined = good ? json_stringn(text.data ? text.data : "", text.length) : NULL;
    mica_buf_free(&text);
    return joined;
}

static bool check_role(json_t *message, const char *param, mica_fault *fault)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool", "function"};
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!role)
        return mica_fault_bad(fault, param, "\"%s.role\" must be a string", param);
    if (strcmp(role, "developer") == 0)
        return json_object_set_new(message, "role", json_string("system")) == 0;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return true;
    return mica_fault_set(fault, 400, "invalid_value", param,
                          "\"%s.role\" is \"%.40s\"; it must be system, developer, user, assistant or tool", param, role);
}

static bool check_message(json_t *message, size_t i, mica_fault *fault)
{
    char param[64], place[48];
    snprintf(place, sizeof place, "messages[%zu]", i);
    snprintf(param, sizeof param, "%s.content", place);
    if (!json_is_object(message))
        return mica_fault_set(fault, 400, "invalid_type", place, "\"%s\" must be an object", place);
    if (!check_role(message, place, fault))
        return false;
    json_t *content = json_object_get(message, "content");
    if (json_is_string(content))
        return true;
    if (json_is_array(content)) {
        json_t *joined = join_parts(content, param, fault);
        return joined && json_object_set_new(message, "content", joined) == 0;
    }
    bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
    if (calls && (!content || json_is_null(content)))
        return json_object_set_new(message, "content", json_null()) == 0;
    return mica_fault_set(fault, 400, "invalid_type", param, "\"%s\" must be a string or a list of parts", param);
}

json_t *mica_chat_messages(const json_t *body, mica_fault *fault)
{
    const json_t *given = json_object_get(body, "messages");
    size_t n = json_array_size(given);
    if (!json_is_array(given)) {
        mica_fault_set(fault, 400, given ? "invalid_type" : "missing_required_parameter", "messages",
                       "\"messages\" must be a list of messages");
        return NULL;
    }
    if (n == 0 || n > MICA_SERVE_MESSAGES_MAX) {
        mica_fault_bad(fault, "messages", "\"messages\" has %zu messages; it must have 1 to %d", n, MICA_SERVE_MESSAGES_MAX);
        return NULL;
    }
    json_t *messages = json_deep_copy(given);
    bool good = messages || no_memory(fault);
    for (size_t i = 0; good && i < n; i++)
        good = check_message(json_array_get(messages, i), i, fault);
    if (good)
        return messages;
    json_decref(messages);
    return NULL;
}

/* ---- The template ---- */

/* The request that the template gets, as JSON text: malloc'ed; NULL: *fault. */
static char *request_json(const json_t *body, const json_t *messages, mica_fault *fault)
{
    json_t *kwargs = mica_field(body, "chat_template_kwargs");
    if (kwargs && !json_is_object(kwargs)) {
        mica_fault_set(fault, 400, "invalid_type", "chat_template_kwargs", "\"chat_template_kwargs\" must be an object");
        return NULL;
    }
    json_t *request = json_pack("{s:O, s:b, s:O*}", "messages", messages, "add_generation_prompt", 1, "chat_template_kwargs",
                                kwargs);
    char *json = request ? mica_json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!json)
        no_memory(fault);
    return json;
}

bool mica_chat_prompt(const mica_serve_context *context, const json_t *body, const json_t *messages, char **text,
                      size_t *length, mica_fault *fault)
{
    mica_error err;
    char *json = request_json(body, messages, fault);
    if (!json)
        return false;
    mica_status status = mica_model_chat_render(context->model, json, strlen(json), -1, text, length, &err);
    free(json);
    return status ? mica_fault_engine(fault, &err, "messages") : true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool ends_thinking(const char *text, size_t length)
{
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    return length >= 7 && memcmp(text + length - 7, "<think>", 7) == 0;
}

bool mica_chat_tokens(const mica_serve_context *context, const json_t *body, const json_t *messages, const mica_tools *tools,
                      mica_prompt *prompt, bool *thinks, mica_fault *fault)
{
    mica_error err;
    mica_chat_options options = mica_chat_options_default();
    char *json = request_json(body, messages, fault), *text;
    size_t length;
    *prompt = (mica_prompt){.n = 0};
    *thinks = false;
    if (!json)
        return false;
    options.tools = tools;
    mica_status status = mica_chat_tokenize(context->model, json, strlen(json), &options, &prompt->tokens, &prompt->n, &text,
                                            &length, &err);
    free(json);
    if (status)
        return mica_fault_engine(fault, &err, "messages");
    *thinks = ends_thinking(text, length);
    mica_free(text);
    return true;
}
