/* schema.c - JSON Schema to a grammar: the steps in order. See schema_impl.h. */
#include "constraint/schema.h"

#include <stdlib.h>

#include "base/mem.h"
#include "constraint/schema_impl.h"

static bool prepare(mica_schema_compiler *c, const char *text, size_t length)
{
    c->status = mica_json_parse(&c->arena, text, length, &c->values, &c->n_values, c->err);
    if (c->status)
        return false;
    c->checked = mica_schema_alloc(c, (size_t)c->n_values, 1);
    c->language_of = mica_schema_alloc(c, (size_t)c->n_values, sizeof(*c->language_of));
    c->language_of_format = mica_schema_alloc(c, (size_t)mica_json_format_count(), sizeof(*c->language_of_format));
    c->quote = c->character = MICA_GNODE_FAILED;
    c->string_rule = c->number_rule = c->integer_rule = -1;
    if (!c->checked || !c->language_of || !c->language_of_format)
        return false;
    if (!c->g)
        c->status = mica_grammar_new(&c->g, c->err);
    return !c->status && mica_schema_find_resources(c);
}

static bool fail_empty(mica_schema_compiler *c)
{
    if (c->status)
        return false;
    c->status = c->why_empty[0] ? mica_fail(c->err, MICA_INVALID_ARGUMENT, "nothing is valid for the schema: %s", c->why_empty)
                                : mica_fail(c->err, MICA_INVALID_ARGUMENT, "nothing is valid for the schema");
    return false;
}

/* Into c->g, or a new grammar. *rule is that of the whole schema. */
static bool emit(mica_schema_compiler *c, const char *text, size_t length, int32_t *rule)
{
    if (!prepare(c, text, length))
        return false;
    mica_sgoal *root = mica_schema_goal(c, (const mica_jvalue *[]){c->values[0]}, 1);
    if (!root)
        return false;
    if (mica_schema_goal_empty(c, root))
        return fail_empty(c);
    mica_schema_call(c, root);
    *rule = root->rule;
    return mica_schema_emit(c);
}

static bool compile(mica_schema_compiler *c, const char *text, size_t length)
{
    mica_error err = {0};
    int32_t rule;
    if (!emit(c, text, length, &rule))
        return false;
    mica_status status = mica_grammar_finish(c->g, rule, &err);
    if (status == MICA_INVALID_ARGUMENT) /* no text: values would have to contain themselves */
        return fail_empty(c);
    if (status)
        c->status = mica_fail(c->err, status, "the schema: %s", err.message);
    return !c->status;
}

static void release(mica_schema_compiler *c)
{
    for (int32_t i = 0; i < c->n_owned; i++)
        mica_regular_free(c->owned[i]);
    free(c->owned);
    mica_tarena_free(&c->arena);
}

mica_gnode mica_schema_into_grammar(mica_grammar *g, const char *text, size_t length, const mica_schema_options *options,
                                    mica_error *err)
{
    mica_schema_compiler c = {.err = err, .g = g};
    int32_t rule = -1;
    if (options)
        c.options = *options;
    mica_tarena_init(&c.arena, MICA_SCHEMA_MAX_BYTES);
    bool ok = emit(&c, text, length, &rule);
    release(&c);
    return ok ? mica_grammar_call(g, rule) : MICA_GNODE_FAILED;
}

mica_status mica_grammar_from_schema(const char *text, size_t length, const mica_schema_options *options, mica_grammar **out,
                                     mica_error *err)
{
    mica_schema_compiler c = {.err = err};
    *out = NULL;
    if (options)
        c.options = *options;
    mica_tarena_init(&c.arena, MICA_SCHEMA_MAX_BYTES);
    bool ok = compile(&c, text, length);
    release(&c);
    if (ok)
        *out = c.g;
    else
        mica_grammar_free(c.g);
    return c.status;
}

mica_status mica_grammar_any_json(const mica_schema_options *options, mica_grammar **out, mica_error *err)
{
    return mica_grammar_from_schema("true", 4, options, out, err);
}
