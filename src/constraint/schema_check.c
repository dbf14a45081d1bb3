/* schema_check.c - whether shapes can be satisfied, and whether a value satisfies them. Recursion goes down the goals to a
 * limit, where the answer is "not known to be empty", or down a value, whose depth the parser has limited. */
#include "constraint/schema_impl.h"

#include <string.h>

#define MAX_EMPTY_DEPTH 40 /* beyond, a goal counts as one that can be satisfied */

/* ---- Emptiness ---- */

static const mica_jvalue *place_of(mica_schema_compiler *c, const mica_sshape *shape)
{
    return shape->term->n ? shape->term->atoms[0] : c->values[0];
}

static bool number_empty(mica_schema_compiler *c, const mica_sshape *shape)
{
    const mica_number_spec *s = &shape->number;
    mica_fsm fsm;
    mica_error err = {0};
    if (!s->low || !s->high)
        return false;
    mica_status status = mica_number_fsm(s, &fsm, &err);
    if (status)
        return !mica_schema_fail(c, status, place_of(c, shape), NULL, "%s", err.message);
    bool any = false;
    for (int32_t i = 0; i < fsm.n_states; i++)
        any |= fsm.accepts[i];
    mica_fsm_clear(&fsm);
    if (!any)
        mica_schema_note_empty(c, place_of(c, shape), NULL, "allows no number: the bounds exclude each other");
    return !any;
}

static bool string_empty(mica_schema_compiler *c, const mica_sshape *shape)
{
    const mica_regular *language = mica_schema_language(c, shape);
    int64_t shortest, longest;
    if (shape->min_length > shape->max_length) {
        mica_schema_note_empty(c, place_of(c, shape), NULL, "allows no string: minLength is above maxLength");
        return true;
    }
    if (!language)
        return c->status != MICA_OK;
    if (mica_regular_is_empty(language))
        return true;
    mica_regular_lengths_of(language, &shortest, &longest);
    if (shortest > shape->max_length || (longest != MICA_G_NO_LIMIT && longest < shape->min_length)) {
        mica_schema_note_empty(c, place_of(c, shape), NULL,
                               "allows no string: the pattern's lengths are outside of minLength and maxLength");
        return true;
    }
    language = mica_schema_bounded(c, shape, language);
    return !language || mica_regular_is_empty(language);
}

static bool array_empty(mica_schema_compiler *c, const mica_sshape *shape)
{
    if (shape->min_items > shape->max_items) {
        mica_schema_note_empty(c, place_of(c, shape), NULL, "allows no array: minItems is above maxItems");
        return true;
    }
    for (int32_t i = 0; i < shape->n_prefix && i < shape->min_items; i++)
        if (mica_schema_goal_empty(c, shape->prefix[i]))
            return true;
    return shape->min_items > shape->n_prefix && mica_schema_goal_empty(c, shape->rest);
}

static bool object_empty(mica_schema_compiler *c, const mica_sshape *shape)
{
    if (shape->n_required > shape->max_properties || shape->min_properties > shape->max_properties) {
        mica_schema_note_empty(c, place_of(c, shape), "maxProperties", "is below what is required");
        return true;
    }
    for (int32_t i = 0; i < shape->n_properties; i++)
        if (shape->properties[i].required && mica_schema_goal_empty(c, shape->properties[i].goal))
            return true;
    return false;
}

bool mica_schema_shape_empty(mica_schema_compiler *c, mica_sshape *shape)
{
    if (shape->has_values)
        return !mica_schema_values(c, shape) || shape->n_values == 0;
    return !((shape->types & (MICA_T_NULL | MICA_T_BOOLEAN)) || ((shape->types & MICA_T_NUMBER) && !number_empty(c, shape)) ||
             ((shape->types & MICA_T_STRING) && !string_empty(c, shape)) ||
             ((shape->types & MICA_T_ARRAY) && !array_empty(c, shape)) ||
             ((shape->types & MICA_T_OBJECT) && !object_empty(c, shape)));
}

bool mica_schema_goal_empty(mica_schema_compiler *c, mica_sgoal *goal)
{
    if (c->status)
        return true;
    if (goal->empty != MICA_UNKNOWN || c->depth >= MAX_EMPTY_DEPTH)
        return goal->empty == MICA_YES;
    goal->empty = MICA_ASKED; /* asked again below: "no", as a value that needs itself is left to the grammar's own check */
    c->depth++;
    bool empty = mica_schema_shapes(c, goal);
    for (int32_t i = 0; i < goal->n_shapes && empty; i++)
        empty = mica_schema_shape_empty(c, &goal->shapes[i]);
    c->depth--;
    goal->empty = empty ? MICA_YES : MICA_NO;
    return empty || c->status;
}

/* ---- Values ---- */

/* enum and const of each schema. */
static bool is_listed(const mica_sterm *term, const mica_jvalue *value)
{
    for (int32_t a = 0; a < term->n; a++) {
        const mica_jvalue *single = mica_json_get(term->atoms[a], "const"), *list = mica_json_get(term->atoms[a], "enum");
        bool found = !list;
        if (single && !mica_json_equal(single, value))
            return false;
        for (int32_t i = 0; list && i < list->n && !found; i++)
            found = mica_json_equal(&list->items[i], value);
        if (!found)
            return false;
    }
    return true;
}

static bool allows_string(mica_schema_compiler *c, const mica_sshape *shape, const mica_jvalue *value)
{
    int64_t n = 0;
    for (size_t i = 0; i < value->length; i++)
        n += ((unsigned char)value->text[i] & 0xC0) != 0x80;
    if (n < shape->min_length || n > shape->max_length)
        return false;
    const mica_regular *language = mica_schema_language(c, shape);
    return language ? mica_regular_matches(language, value->text, value->length) : !c->status;
}

static bool allows_array(mica_schema_compiler *c, const mica_sshape *shape, const mica_jvalue *value)
{
    if (value->n < shape->min_items || value->n > shape->max_items)
        return false;
    for (int32_t i = 0; i < value->n; i++)
        if (!mica_schema_goal_allows(c, i < shape->n_prefix ? shape->prefix[i] : shape->rest, &value->items[i]))
            return false;
    return true;
}

static bool allows_object(mica_schema_compiler *c, const mica_sshape *shape, const mica_jvalue *value)
{
    if (value->n < shape->min_properties || value->n > shape->max_properties)
        return false;
    for (int32_t i = 0; i < shape->n_properties; i++)
        if (shape->properties[i].required && !mica_json_get_n(value, shape->properties[i].name, shape->properties[i].length))
            return false;
    for (int32_t i = 0; i < value->n; i++) {
        const mica_jvalue *item = &value->items[i];
        mica_jvalue name = {.kind = MICA_J_STRING, .text = item->key, .length = item->key_length};
        if (shape->names && !mica_schema_goal_allows(c, shape->names, &name))
            return false;
        mica_sgoal *goal = mica_schema_member_goal(c, shape->term, item->key, item->key_length);
        if (!goal || !mica_schema_goal_allows(c, goal, item))
            return false;
    }
    return true;
}

bool mica_schema_shape_allows(mica_schema_compiler *c, const mica_sshape *shape, const mica_jvalue *value)
{
    static const unsigned types[] = {
        [MICA_J_NULL] = MICA_T_NULL,     [MICA_J_FALSE] = MICA_T_BOOLEAN, [MICA_J_TRUE] = MICA_T_BOOLEAN,
        [MICA_J_NUMBER] = MICA_T_NUMBER, [MICA_J_STRING] = MICA_T_STRING, [MICA_J_ARRAY] = MICA_T_ARRAY,
        [MICA_J_OBJECT] = MICA_T_OBJECT};
    if (!(shape->types & types[value->kind]) || !is_listed(shape->term, value))
        return false;
    switch (value->kind) {
    case MICA_J_NUMBER:
        return mica_number_allows(&shape->number, &value->number);
    case MICA_J_STRING:
        return allows_string(c, shape, value);
    case MICA_J_ARRAY:
        return allows_array(c, shape, value);
    case MICA_J_OBJECT:
        return allows_object(c, shape, value);
    default:
        return true;
    }
}

bool mica_schema_goal_allows(mica_schema_compiler *c, mica_sgoal *goal, const mica_jvalue *value)
{
    if (!mica_schema_shapes(c, goal))
        return false;
    for (int32_t i = 0; i < goal->n_shapes; i++)
        if (mica_schema_shape_allows(c, &goal->shapes[i], value))
            return true;
    return false;
}
