#include "serve/tool_fields.h"

#include <stdlib.h>
#include <string.h>

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
static bool is_lenient(const json_t *tools)
{
    for (size_t i = 0; i < json_array_size(tools); i++)
        if (!json_is_true(json_object_get(json_object_get(json_array_get(tools, i), "function"), "strict")))
            return true;
    return false;
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
    char *text = json_dumps(tools, JSON_COMPACT);
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
    o.lenient = is_lenient(tools);
    return make(r, tools, &o, fault);
}

bool mica_tool_fields_constrain(mica_request *r, mica_fault *fault)
{
    const mica_constraint *calls = r->tools ? mica_tools_constraint(r->tools) : NULL;
    if (calls && r->constraint)
        return mica_fault_bad(fault, "response_format",
                              "\"response_format\" cannot be had together with \"tools\" that may be called");
    if (calls)
        r->options.constraint = calls;
    return true;
}
