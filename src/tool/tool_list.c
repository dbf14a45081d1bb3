/* tool_list.c - reads and checks OpenAI's "tools". */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "tool/json_scan.h"
#include "tool/tools.h"

void mica_tool_list_free(mica_tool_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->tool[i].schema);
    free(list->tool);
    json_decref(list->json);
    *list = (mica_tool_list){.tool = NULL};
}

int32_t mica_tool_list_find(const mica_tool_list *list, const char *name, size_t length)
{
    for (size_t i = 0; i < list->n; i++)
        if (strlen(list->tool[i].name) == length && memcmp(list->tool[i].name, name, length) == 0)
            return (int32_t)i;
    return -1;
}

static bool is_name(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= MICA_TOOL_NAME_MAX &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") == n;
}

/* The text of a member: a number keeps its digits there, which a parsed value would not. */
static bool member_of(const char *text, size_t n, const char *key, mica_json_member *out)
{
    size_t at = 0;
    while (mica_json_next(text, n, &at, out))
        if (out->key_length == strlen(key) && memcmp(out->key, key, out->key_length) == 0)
            return true;
    return false;
}

/* "parameters" describes an object, also where it does not say so. Where it lists properties and says nothing of others, there
 * are none: unlike a document, a call has no use for arguments that its tool does not know. */
static bool wants_closing(const json_t *parameters)
{
    static const char *const others[] = {"additionalProperties", "patternProperties", "unevaluatedProperties", "$ref",
                                         "$dynamicRef",
                                         "allOf", "anyOf", "oneOf", "if"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (json_object_get(parameters, others[i]))
            return false;
    return json_object_get(parameters, "properties") != NULL;
}

static mica_status make_schema(mica_tool *tool, const json_t *parameters, const mica_json_member *text, mica_error *err)
{
    static const char none[] = "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";
    mica_buf buf;
    mica_buf_init(&buf, MICA_TOOLS_MAX_TEXT);
    if (!text) {
        mica_buf_puts(&buf, none);
    } else {
        const char *inside = text->value + 1;
        const char *comma = json_object_size(parameters) > 0 ? "," : "";
        bool typed = json_object_get(parameters, "type") != NULL, closed = !wants_closing(parameters);
        mica_buf_puts(&buf, "{");
        if (!typed)
            mica_buf_printf(&buf, "\"type\":\"object\"%s", !closed ? "," : comma);
        if (!closed)
            mica_buf_printf(&buf, "\"additionalProperties\":false%s", comma);
        mica_buf_append(&buf, inside, text->value_length - 1);
    }
    tool->schema = mica_buf_take(&buf, &tool->schema_length);
    mica_buf_free(&buf);
    return tool->schema ? MICA_OK : mica_fail_nomem(err, 0, "the schema of a tool");
}

static mica_status read_parameters(mica_tool *tool, size_t i, const json_t *function, const mica_json_member *text,
                                   mica_error *err)
{
    const json_t *parameters = json_object_get(function, "parameters");
    mica_json_member member;
    if (!parameters || json_is_null(parameters))
        return make_schema(tool, NULL, NULL, err);
    const json_t *type = json_object_get(parameters, "type");
    if (!json_is_object(parameters))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu] (%s): \"parameters\" must be an object, a JSON Schema", i,
                         tool->name);
    if (type && !(json_is_string(type) && strcmp(json_string_value(type), "object") == 0))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu] (%s): the \"type\" of \"parameters\" must be \"object\"", i,
                         tool->name);
    if (!member_of(text->value, text->value_length, "parameters", &member))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu] (%s): the key \"parameters\" must be written without escapes",
                         i,
                         tool->name);
    return make_schema(tool, parameters, &member, err);
}

/* {"type": "function", "function": {...}}, or what stands in "function" alone. */
static mica_status read_tool(mica_tool_list *list, size_t i, json_t *item, mica_json_member text, mica_error *err)
{
    json_t *function = json_object_get(item, "function"), *type = json_object_get(item, "type");
    if (!json_is_object(item))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu] must be an object", i);
    if (type && !(json_is_string(type) && strcmp(json_string_value(type), "function") == 0))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu]: the \"type\" of a tool must be \"function\"", i);
    if (function && !(json_is_object(function) && member_of(text.value, text.value_length, "function", &text)))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu]: \"function\" must be an object", i);
    function = function ? function : item;
    const char *name = json_string_value(json_object_get(function, "name"));
    const json_t *description = json_object_get(function, "description");
    if (!name || !is_name(name))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu]: \"name\" must be 1 to %d letters, digits, '_', '-' or '.'", i,
                         MICA_TOOL_NAME_MAX);
    if (description && !json_is_string(description) && !json_is_null(description))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu] (%s): \"description\" must be a text", i, name);
    if (mica_tool_list_find(list, name, strlen(name)) >= 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu]: there is another tool called %s", i, name);
    mica_tool *tool = &list->tool[i];
    memcpy(tool->name, name, strlen(name) + 1);
    list->n++;
    json_t *wrapped = json_pack("{s:s, s:O}", "type", "function", "function", function);
    if (json_array_append_new(list->json, wrapped))
        return mica_fail_nomem(err, text.value_length, "a tool");
    return read_parameters(tool, i, function, &text, err);
}

static mica_status read_tools(mica_tool_list *list, const char *text, size_t length, json_t *all, mica_error *err)
{
    size_t n = json_array_size(all), at = 0;
    mica_json_member member;
    mica_status status = MICA_OK;
    if (!json_is_array(all) || n == 0 || n > MICA_TOOLS_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the tools must be an array of 1 to %d tools", MICA_TOOLS_MAX);
    list->tool = mica_new_array(n, sizeof *list->tool);
    list->json = json_array();
    if (!list->tool || !list->json)
        return mica_fail_nomem(err, n * sizeof *list->tool, "the list of tools");
    for (size_t i = 0; i < n && !status; i++)
        status = mica_json_next(text, length, &at, &member)
                     ? read_tool(list, i, json_array_get(all, i), member, err)
                     : mica_fail(err, MICA_INVALID_ARGUMENT, "tools[%zu] is nested more than %d levels deep", i,
                                 MICA_JSON_SCAN_DEPTH);
    return status;
}

mica_status mica_tool_list_read(const char *text, size_t length, mica_tool_list *list, mica_error *err)
{
    json_error_t why;
    *list = (mica_tool_list){.tool = NULL};
    if (length > MICA_TOOLS_MAX_TEXT)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the tools are longer than %zu MiB", MICA_TOOLS_MAX_TEXT >> 20);
    json_t *all = mica_json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (!all && mica_json_no_memory(&why))
        return mica_fail_nomem(err, length, "the tools");
    if (!all)
        return mica_fail_at(err, MICA_BAD_TEXT, why.position, "the tools are not JSON: %s at line %d, column %d", why.text,
                            why.line,
                            why.column);
    mica_status status = read_tools(list, text, length, all, err);
    json_decref(all);
    return status;
}
