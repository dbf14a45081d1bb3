/* schema_string.c - the languages of strings: patterns, formats, lengths, names. */
#include "constraint/schema_impl.h"

#include <string.h>

const mica_regular *mica_schema_pattern(mica_schema_compiler *c, const mica_jvalue *at, const char *text, size_t length,
                                        const char *keyword)
{
    mica_regular *r = NULL;
    mica_error err = {0};
    if (c->language_of[at->id] || (c->checked[at->id] & MICA_S_NO_PATTERN))
        return c->language_of[at->id];
    mica_status status = mica_regular_parse(text, length, MICA_PATTERN_SEARCH, &r, &err);
    if (status == MICA_UNSUPPORTED && mica_schema_unenforced(c, at, keyword, "%s", err.message)) {
        c->checked[at->id] |= MICA_S_NO_PATTERN;
        return NULL;
    }
    return c->language_of[at->id] = mica_schema_own(c, status, r, &err, at, keyword);
}

static const mica_regular *format_language(mica_schema_compiler *c, const mica_jvalue *at, int index)
{
    mica_regular *r = NULL;
    mica_error err = {0};
    if (c->language_of_format[index])
        return c->language_of_format[index];
    mica_status status = mica_json_format_language(index, &r, &err);
    return c->language_of_format[index] = mica_schema_own(c, status, r, &err, at, NULL);
}

/* a and b; one of them may be NULL: any string. */
static const mica_regular *both(mica_schema_compiler *c, const mica_regular *a, const mica_regular *b, const mica_jvalue *at)
{
    mica_regular *r = NULL;
    mica_error err = {0};
    if (!a || !b || a == b)
        return a ? a : b;
    mica_status status = mica_regular_both(a, b, &r, &err);
    return mica_schema_own(c, status, r, &err, at, NULL);
}

const mica_regular *mica_schema_language(mica_schema_compiler *c, const mica_sshape *shape)
{
    const mica_regular *all = NULL;
    if (!shape->has_language || *shape->language)
        return *shape->language;
    for (int32_t a = 0; a < shape->term->n && !c->status; a++) {
        const mica_jvalue *atom = shape->term->atoms[a], *pattern = mica_json_get(atom, "pattern");
        const mica_jvalue *format = mica_json_get(atom, "format");
        int index = format ? mica_json_format_find(format->text, format->length) : -1;
        if (pattern)
            all = both(c, all, mica_schema_pattern(c, pattern, pattern->text, pattern->length, NULL), pattern);
        if (index >= 0 && !c->status)
            all = both(c, all, format_language(c, format, index), format);
    }
    if (!c->status && all && mica_regular_is_empty(all))
        mica_schema_note_empty(c, shape->term->atoms[0], NULL, "has patterns that no string matches");
    return *shape->language = c->status ? NULL : all;
}

const mica_regular *mica_schema_bounded(mica_schema_compiler *c, const mica_sshape *shape, const mica_regular *language)
{
    int64_t shortest, longest;
    mica_regular *lengths = NULL;
    mica_error err = {0};
    const mica_jvalue *at = shape->term->n ? shape->term->atoms[0] : c->values[0];
    if (mica_regular_is_empty(language))
        return language;
    mica_regular_lengths_of(language, &shortest, &longest);
    bool low = shape->min_length > shortest;
    bool high = shape->max_length != INT64_MAX && (longest == MICA_G_NO_LIMIT || longest > shape->max_length);
    if (!low && !high)
        return language;
    mica_status status = mica_regular_lengths(low ? (int32_t)shape->min_length : 0,
                                              high ? (int32_t)shape->max_length : MICA_G_NO_LIMIT, &lengths, &err);
    const mica_regular *bounds = mica_schema_own(c, status, lengths, &err, at, low ? "minLength" : "maxLength");
    return bounds ? both(c, language, bounds, at) : NULL;
}

/* ---- The strings of a goal, for propertyNames ---- */

static const mica_regular *of_values(mica_schema_compiler *c, mica_sshape *shape, const mica_regular *so_far)
{
    mica_error err = {0};
    if (!mica_schema_values(c, shape))
        return NULL;
    for (int32_t i = 0; i < shape->n_values && so_far; i++) {
        mica_regular *one = NULL, *sum = NULL;
        if (shape->values[i]->kind != MICA_J_STRING)
            continue;
        mica_status status = mica_regular_text(shape->values[i]->text, shape->values[i]->length, &one, &err);
        if (!status)
            status = mica_regular_either(so_far, one, &sum, &err);
        mica_regular_free(one);
        so_far = mica_schema_own(c, status, sum, &err, shape->values[i], NULL);
    }
    return so_far;
}

/* so_far, or a string of this shape. */
static const mica_regular *of_shape(mica_schema_compiler *c, mica_sshape *shape, const mica_regular *so_far)
{
    mica_regular *any = NULL, *sum = NULL;
    mica_error err = {0};
    if (shape->has_values)
        return of_values(c, shape, so_far);
    const mica_jvalue *at = shape->term->n ? shape->term->atoms[0] : c->values[0];
    const mica_regular *language = mica_schema_language(c, shape);
    mica_status status = MICA_OK;
    if (!language && !c->status) {
        status = mica_regular_lengths(0, MICA_G_NO_LIMIT, &any, &err);
        language = mica_schema_own(c, status, any, &err, at, NULL);
    }
    if (language)
        language = mica_schema_bounded(c, shape, language);
    if (!language)
        return NULL;
    status = mica_regular_either(so_far, language, &sum, &err);
    return mica_schema_own(c, status, sum, &err, at, NULL);
}

bool mica_schema_strings(mica_schema_compiler *c, mica_sgoal *goal, const mica_regular **out)
{
    mica_regular *empty_text = NULL, *none = NULL;
    mica_error err = {0};
    *out = NULL;
    if (!mica_schema_shapes(c, goal))
        return false;
    for (int32_t i = 0; i < goal->n_shapes; i++) {
        const mica_sshape *s = &goal->shapes[i];
        if ((s->types & MICA_T_STRING) && !s->has_values && !s->has_language && s->min_length == 0 &&
            s->max_length == INT64_MAX)
            return true; /* any */
    }
    mica_status status = mica_regular_lengths(0, 0, &empty_text, &err);
    if (!status)
        status = mica_regular_without(empty_text, empty_text, &none, &err);
    mica_regular_free(empty_text);
    const mica_regular *sum = mica_schema_own(c, status, none, &err, goal->n ? goal->schemas[0] : c->values[0], NULL);
    for (int32_t i = 0; i < goal->n_shapes && sum; i++)
        if (goal->shapes[i].types & MICA_T_STRING)
            sum = of_shape(c, &goal->shapes[i], sum);
    *out = sum;
    return sum != NULL;
}
