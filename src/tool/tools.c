#include "tool/tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

mica_tools_options mica_tools_options_default(void)
{
    return (mica_tools_options){.struct_size = sizeof(mica_tools_options), .parallel = true};
}

mica_status mica_tool_dump(const json_t *value, char **text, size_t *length, mica_error *err)
{
    *text = value ? mica_json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (!*text)
        return mica_fail_nomem(err, 0, "JSON text");
    *length = strlen(*text); /* NUL is written \u0000 */
    return MICA_OK;
}

static mica_status check_options(const mica_model *model, const mica_tools_options *o, mica_error *err)
{
    if (o->struct_size != sizeof *o)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "mica_tools_options.struct_size is %zu, not %zu: use mica_tools_options_default()",
                         o->struct_size, sizeof *o);
    if ((unsigned)o->choice > MICA_TOOL_NAMED)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "mica_tools_options.choice must be one of MICA_TOOL_*");
    if (o->choice == MICA_TOOL_NAMED && !o->name)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "MICA_TOOL_NAMED needs mica_tools_options.name");
    if (!model && !o->chat_template)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "without a model mica_tools_options.chat_template must be given");
    return MICA_OK;
}

static mica_status find_named(mica_tools *t, const char *name, mica_error *err)
{
    t->named = -1;
    if (t->choice != MICA_TOOL_NAMED)
        return MICA_OK;
    t->named = mica_tool_list_find(&t->list, name, strlen(name));
    return t->named >= 0 ? MICA_OK : mica_fail(err, MICA_INVALID_ARGUMENT, "there is no tool called %.*s", MICA_TOOL_NAME_MAX,
                                               name);
}

/* What the template pastes together must be there. */
static mica_status add_descriptions(mica_tools *t, mica_error *err)
{
    size_t i;
    json_t *item;
    if (!t->descriptions)
        return MICA_OK;
    json_array_foreach(t->list.json, i, item) {
        json_t *function = json_object_get(item, "function");
        if (!json_is_string(json_object_get(function, "description")) &&
            json_object_set_new(function, "description", json_string("")))
            return mica_fail_nomem(err, 0, "a tool's description");
    }
    return MICA_OK;
}

static mica_status fill(mica_tools *t, const char *text, size_t length, const mica_tools_options *o, mica_error *err)
{
    t->choice = o->choice;
    t->parallel = o->parallel;
    if (o->chat_template && !(t->chat_template = strdup(o->chat_template)))
        return mica_fail_nomem(err, strlen(o->chat_template), "a chat template");
    mica_status status = mica_tool_list_read(text, length, &t->list, err);
    if (!status)
        status = find_named(t, o->name, err);
    if (!status)
        status = mica_tools_probe(t, err);
    if (!status)
        status = add_descriptions(t, err);
    if (!status && t->choice != MICA_TOOL_NONE)
        status = mica_tools_constrain(t, o, err);
    return status;
}

mica_status mica_tools_new(mica_model *model, const char *tools_json, size_t length, const mica_tools_options *options,
                           mica_tools **out, mica_error *err)
{
    const mica_tools_options defaults = mica_tools_options_default();
    const mica_tools_options *o = options ? options : &defaults;
    *out = NULL;
    mica_status status = check_options(model, o, err);
    if (status)
        return status;
    mica_tools *t = mica_new_array(1, sizeof *t);
    if (!t)
        return mica_fail_nomem(err, sizeof *t, "tools");
    if (model)
        mica_model_retain(model);
    t->model = model;
    status = fill(t, tools_json, length, o, err);
    if (status)
        mica_tools_free(t);
    else
        *out = t;
    return status;
}

void mica_tools_free(mica_tools *t)
{
    if (!t)
        return;
    mica_constraint_free(t->constraint);
    mica_tool_list_free(&t->list);
    free(t->chat_template);
    mica_model_close(t->model);
    free(t);
}

const char *mica_tools_format(const mica_tools *t) { return t->format->name; }

const mica_constraint *mica_tools_constraint(const mica_tools *t) { return t->constraint; }
