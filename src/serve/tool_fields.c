#include "serve/tool_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "serve/fields.h"

static bool read_choice(const json_t *choice, mica_tools_options *o, mica_fault *fault)
{
    const char *word = json_string_value(choice);
    if (!choice)
        return true;
    if (json_is_object(choice)) {
        const json_t *function = json_object_get(choice, "function");
        o->choice = MICA_TOOL_NAMED;
        o->name = json_string_value(json_object_get(function ? function : choice, "name"));
        return o->name || mica_fault_bad(fault, "tool_choice", "\"tool_choice\" names no function");
    }
    if (word && strcmp(word, "auto") == 0)
        o->choice = MICA_TOOL_AUTO;
    else if (word && strcmp(word, "none") == 0)
        o->choice = MICA_TOOL_NONE;
    else if (word && strcmp(word, "required") == 0)
        o->choice = MICA_TOOL_REQUIRED;
    else
        return mica_fault_set(fault, 400, word ? "invalid_value" : "invalid_type", "tool_choice",
                              "\"tool_choice\" must be \"none\", \"auto\", \"required\" or a function");
    return true;
}

/* Unless every tool asks for "strict", a keyword of a schema that cannot be enforced is let pass, as OpenAI does. */
static bool read_strict(const json_t *tools, bool *lenient, mica_fault *fault)
{
    *lenient = false;
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *function = json_object_get(tool, "function");
        const json_t *strict = mica_field(function ? function : tool, "strict");
        char param[40];
        snprintf(param, sizeof param, "tools[%zu].strict", i);
        if (strict && !json_is_boolean(strict))
            return mica_fault_set(fault, 400, "invalid_type", param, "\"%s\" must be true or false", param);
        *lenient = *lenient || !json_is_true(strict);
    }
    return true;
}

/* All in the form {"type": "function", "function": {...}}: what the model is told of a tool does not depend on the route. What
 * is no tool stays as it is, for mica_tools_new() to say so. NULL: no memory. */
static json_t *in_one_form(const json_t *tools)
{
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(tools); i++) {
        json_t *tool = json_array_get(tools, i);
        const char *type = json_string_value(json_object_get(tool, "type"));
        if (type && strcmp(type, "function") == 0 && !json_object_get(tool, "function")) {
            json_t *function = json_copy(tool);
            json_object_del(function, "type");
            tool = json_pack("{s:s, s:o}", "type", type, "function", function);
        } else {
            json_incref(tool);
        }
        if (json_array_append_new(all, tool)) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

static void free_tools(void *tools)
{
    mica_tools_free(tools);
}

static bool no_memory(mica_fault *fault)
{
    return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the tools");
}

static bool make_new(mica_request *r, const char *text, const mica_tools_options *o, const mica_buf *key, mica_fault *fault)
{
    mica_tools *made;
    mica_error err;
    if (mica_tools_new(r->context->model, text, strlen(text), o, &made, &err))
        return mica_fault_engine(fault, &err, "tools");
    r->tools_entry = mica_cache_add(r->context->cache, key->data, key->length, made, free_tools);
    return r->tools_entry || no_memory(fault);
}

/* The key has all that the compiled tools depend on; its first letter is none of a schema's keys (params.c). */
static bool make(mica_request *r, const json_t *tools, const mica_tools_options *o, mica_fault *fault)
{
    json_t *all = in_one_form(tools);
    char *text = all ? mica_json_dumps(all, JSON_COMPACT) : NULL;
    mica_buf key;
    mica_buf_init(&key, 4 * MICA_SERVE_BODY_MAX);
    mica_buf_printf(&key, "T%d,%d,%d,%.200s\n", o->choice, o->parallel, o->lenient,
                    o->choice == MICA_TOOL_NAMED ? o->name : "");
    bool good = text && mica_buf_puts(&key, text) ? true : no_memory(fault);
    if (good)
        r->tools_entry = mica_cache_get(r->context->cache, key.data, key.length);
    good = good && (r->tools_entry || make_new(r, text, o, &key, fault));
    if (good)
        r->tools = mica_cache_object(r->tools_entry);
    mica_buf_free(&key);
    free(text);
    json_decref(all);
    return good;
}

bool mica_tool_fields_read(mica_request *r, mica_fault *fault)
{
    const json_t *tools = mica_field(r->body, "tools"), *choice = mica_field(r->body, "tool_choice");
    mica_tools_options o = mica_tools_options_default();
    if (tools && !json_is_array(tools))
        return mica_fault_set(fault, 400, "invalid_type", "tools", "\"tools\" must be a list of tools");
    if (!read_choice(choice, &o, fault) || !mica_field_bool(r->body, "parallel_tool_calls", &o.parallel, fault))
        return false;
    if (json_array_size(tools) == 0)
        return !choice || o.choice == MICA_TOOL_NONE || o.choice == MICA_TOOL_AUTO ||
               mica_fault_bad(fault, "tool_choice", "\"tool_choice\" asks for a call, but there are no \"tools\"");
    return read_strict(tools, &o.lenient, fault) && make(r, tools, &o, fault);
}

bool mica_tool_fields_constrain(mica_request *r, const char *format, mica_fault *fault)
{
    const mica_constraint *calls = r->tools ? mica_tools_constraint(r->tools) : NULL;
    if (calls && r->constraint)
        return mica_fault_bad(fault, format, "\"%s\" cannot be had together with \"tools\" that may be called", format);
    if (calls)
        r->options.constraint = calls;
    return true;
}
