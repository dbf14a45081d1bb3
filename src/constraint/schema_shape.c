/* schema_shape.c - merges the schemas of a term, type by type. Objects: schema_object.c. */
#include "constraint/schema_impl.h"

#include <string.h>

/* ---- Numbers ---- */

static bool number_at(mica_schema_compiler *c, const mica_jvalue *atom, const char *keyword, const mica_jvalue **out)
{
    const mica_jvalue *v = mica_json_get(atom, keyword);
    *out = v;
    if (v && (v->kind == MICA_J_TRUE || v->kind == MICA_J_FALSE) && strncmp(keyword, "exclusive", 9) == 0)
        return mica_schema_fail(c, MICA_BAD_TEXT, v, NULL, "must be a number (true and false are of draft 4)");
    return !v || v->kind == MICA_J_NUMBER || mica_schema_fail(c, MICA_BAD_TEXT, v, NULL, "must be a number");
}

static void raise_low(mica_number_spec *spec, const mica_decimal *low, bool open)
{
    int order = spec->low ? mica_decimal_compare(low, spec->low) : 1;
    if (order > 0)
        spec->low_open = false;
    if (order >= 0) {
        spec->low = low;
        spec->low_open |= open;
    }
}

static void cut_high(mica_number_spec *spec, const mica_decimal *high, bool open)
{
    int order = spec->high ? mica_decimal_compare(high, spec->high) : -1;
    if (order < 0)
        spec->high_open = false;
    if (order <= 0) {
        spec->high = high;
        spec->high_open |= open;
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Multiples of both: the least common multiple, over the finer power of ten. False: too large. */
static bool add_step(mica_number_spec *spec, const mica_decimal *d)
{
    int32_t exponent = d->point - d->n, places = exponent < 0 ? -exponent : 0;
    uint64_t step = 0, old = spec->step;
    for (int32_t i = 0; i < d->n + (exponent > 0 ? exponent : 0); i++) {
        step = step * 10 + (uint64_t)(i < d->n ? d->digits[i] - '0' : 0);
        if (step > MICA_NUMBER_MAX_STEP)
            return false;
    }
    int32_t finest = spec->step && spec->places > places ? spec->places : places;
    for (; places < finest; places++, step *= 10)
        if (step > MICA_NUMBER_MAX_STEP)
            return false;
    for (int32_t i = spec->places; old && i < finest; i++, old *= 10)
        if (old > MICA_NUMBER_MAX_STEP)
            return false;
    step = old ? step / common_divisor(step, old) * old : step;
    spec->step = (uint32_t)step;
    spec->places = finest;
    return step <= MICA_NUMBER_MAX_STEP;
}

static bool take_step(mica_schema_compiler *c, mica_number_spec *spec, const mica_jvalue *atom)
{
    const mica_jvalue *v;
    mica_number_spec old = *spec;
    if (!number_at(c, atom, "multipleOf", &v))
        return false;
    if (!v)
        return true;
    if (v->number.negative || !v->number.n)
        return mica_schema_fail(c, MICA_BAD_TEXT, v, NULL, "must be above 0");
    if (add_step(spec, &v->number))
        return true;
    *spec = old;
    return mica_schema_unenforced(c, v, NULL, "the digits of multipleOf make more than %u, which needs too large an automaton",
                                  MICA_NUMBER_MAX_STEP);
}

static bool unknown_format(mica_schema_compiler *c, const mica_jvalue *format)
{
    return mica_schema_unenforced(c, format, NULL, "the format \"%.60s\" is not known, so it cannot be enforced", format->text);
}

/* Formats of numbers, of OpenAPI; they say nothing about strings. */
static bool is_number_format(const mica_jvalue *format)
{
    return mica_json_is_text(format, "int32") || mica_json_is_text(format, "int64") || mica_json_is_text(format, "float") ||
           mica_json_is_text(format, "double");
}

static bool take_number_format(mica_schema_compiler *c, mica_sshape *shape, const mica_jvalue *format)
{
    static const mica_decimal limits[4] = {
        {.digits = "2147483648", .n = 10, .point = 10, .negative = true},
        {.digits = "2147483647", .n = 10, .point = 10},
        {.digits = "9223372036854775808", .n = 19, .point = 19, .negative = true},
        {.digits = "9223372036854775807", .n = 19, .point = 19},
    };
    bool small = mica_json_is_text(format, "int32");
    if (small || mica_json_is_text(format, "int64")) {
        raise_low(&shape->number, &limits[small ? 0 : 2], false);
        cut_high(&shape->number, &limits[small ? 1 : 3], false);
        return true;
    }
    return is_number_format(format) || (shape->types & MICA_T_STRING) ||
           mica_json_format_find(format->text, format->length) >= 0 || unknown_format(c, format);
}

static bool take_number(mica_schema_compiler *c, mica_sshape *shape, const mica_jvalue *atom)
{
    const mica_jvalue *v[4], *format;
    mica_number_spec *spec = &shape->number;
    if (!number_at(c, atom, "minimum", &v[0]) || !number_at(c, atom, "exclusiveMinimum", &v[1]) ||
        !number_at(c, atom, "maximum", &v[2]) || !number_at(c, atom, "exclusiveMaximum", &v[3]) ||
        !mica_schema_member(c, atom, "format", MICA_J_STRING, &format))
        return false;
    for (int i = 0; i < 2; i++) {
        if (v[i])
            raise_low(spec, &v[i]->number, i == 1);
        if (v[i + 2])
            cut_high(spec, &v[i + 2]->number, i == 1);
    }
    return take_step(c, spec, atom) && (!format || take_number_format(c, shape, format));
}

/* ---- Strings ---- */

static bool take_string(mica_schema_compiler *c, mica_sshape *shape, const mica_jvalue *atom)
{
    const mica_jvalue *pattern, *format;
    int64_t min, max;
    if (!mica_schema_count(c, atom, "minLength", 0, &min) || !mica_schema_count(c, atom, "maxLength", INT64_MAX, &max) ||
        !mica_schema_member(c, atom, "pattern", MICA_J_STRING, &pattern) ||
        !mica_schema_member(c, atom, "format", MICA_J_STRING, &format))
        return false;
    shape->min_length = min > shape->min_length ? min : shape->min_length;
    shape->max_length = max < shape->max_length ? max : shape->max_length;
    if (format && mica_json_format_find(format->text, format->length) < 0) {
        if (!is_number_format(format) && !unknown_format(c, format))
            return false;
        format = NULL;
    }
    shape->has_language |= pattern || format;
    return true;
}

/* ---- Arrays ---- */

/* The items of one schema: those at fixed places, and the schema of the rest (NULL: any). The older form, with an array in
 * "items", says the same. */
static bool item_keywords(mica_schema_compiler *c, const mica_jvalue *atom, const mica_jvalue **prefix,
                          const mica_jvalue **rest)
{
    const mica_jvalue *items = mica_json_get(atom, "items");
    if (!mica_schema_member(c, atom, "prefixItems", MICA_J_ARRAY, prefix))
        return false;
    *rest = items;
    if (items && items->kind == MICA_J_ARRAY) {
        if (*prefix)
            return mica_schema_fail(c, MICA_BAD_TEXT, items, NULL, "must be a schema where there is prefixItems");
        *prefix = items;
        *rest = mica_json_get(atom, "additionalItems");
    }
    if (!*rest && mica_schema_is_plain(atom, true))
        *rest = mica_json_get(atom, "unevaluatedItems");
    return true;
}

static bool make_items(mica_schema_compiler *c, mica_sshape *shape)
{
    const mica_sterm *term = shape->term;
    const mica_jvalue *prefix, *rest, **set = mica_schema_alloc(c, (size_t)term->n, sizeof(*set));
    for (int32_t a = 0; set && a < term->n; a++) {
        if (!item_keywords(c, term->atoms[a], &prefix, &rest))
            return false;
        shape->n_prefix = prefix && prefix->n > shape->n_prefix ? prefix->n : shape->n_prefix;
    }
    shape->prefix = mica_schema_alloc(c, (size_t)shape->n_prefix, sizeof(*shape->prefix));
    if (!set || !shape->prefix)
        return false;
    for (int32_t i = 0; i <= shape->n_prefix; i++) {
        int32_t n = 0;
        for (int32_t a = 0; a < term->n; a++) {
            item_keywords(c, term->atoms[a], &prefix, &rest);
            const mica_jvalue *schema = prefix && i < prefix->n ? &prefix->items[i] : rest;
            if (schema)
                set[n++] = schema;
        }
        mica_sgoal *goal = mica_schema_goal(c, set, n);
        if (!goal)
            return false;
        *(i < shape->n_prefix ? &shape->prefix[i] : &shape->rest) = goal;
    }
    return true;
}

static bool take_array(mica_schema_compiler *c, mica_sshape *shape, const mica_jvalue *atom)
{
    int64_t min, max;
    if (!mica_schema_count(c, atom, "minItems", 0, &min) || !mica_schema_count(c, atom, "maxItems", INT64_MAX, &max))
        return false;
    shape->min_items = min > shape->min_items ? min : shape->min_items;
    shape->max_items = max < shape->max_items ? max : shape->max_items;
    return true;
}

/* ---- enum and const ---- */

static bool find_lists(mica_schema_compiler *c, const mica_sterm *term, const mica_jvalue **single, const mica_jvalue **list)
{
    const mica_jvalue *v;
    *single = *list = NULL;
    for (int32_t a = 0; a < term->n; a++) {
        if (!mica_schema_member(c, term->atoms[a], "enum", MICA_J_ARRAY, &v))
            return false;
        *list = *list ? *list : v;
        *single = *single ? *single : mica_json_get(term->atoms[a], "const");
    }
    return true;
}

/* From the first list of the term; the others, and all other keywords, only take values away. */
bool mica_schema_values(mica_schema_compiler *c, mica_sshape *shape)
{
    const mica_jvalue *single, *list;
    if (shape->values_made)
        return true;
    if (!find_lists(c, shape->term, &single, &list))
        return false;
    int32_t n = single ? 1 : list->n;
    shape->values = mica_schema_alloc(c, (size_t)n, sizeof(*shape->values));
    for (int32_t i = 0; shape->values && i < n; i++) {
        const mica_jvalue *v = single ? single : &list->items[i];
        if (mica_schema_shape_allows(c, shape, v))
            shape->values[shape->n_values++] = v;
    }
    if (!shape->n_values)
        mica_schema_note_empty(c, single ? single : list, NULL, "has no value that the other keywords allow");
    shape->values_made = true;
    return !c->status;
}

bool mica_schema_make_shape(mica_schema_compiler *c, const mica_sterm *term, mica_sshape *out)
{
    *out = (mica_sshape){
        .term = term, .types = term->types, .max_length = INT64_MAX, .max_items = INT64_MAX, .max_properties = INT64_MAX};
    const mica_jvalue *single, *list;
    out->number.integer = !(term->types & MICA_T_FRACTION);
    out->language = mica_schema_alloc(c, 1, sizeof(*out->language));
    if (!out->language || !find_lists(c, term, &single, &list))
        return false;
    out->has_values = single || list;
    for (int32_t a = 0; a < term->n; a++) {
        const mica_jvalue *atom = term->atoms[a];
        if (((term->types & MICA_T_NUMBER) && !take_number(c, out, atom)) ||
            ((term->types & MICA_T_STRING) && !take_string(c, out, atom)) ||
            ((term->types & MICA_T_ARRAY) && !take_array(c, out, atom)))
            return false;
    }
    if ((term->types & MICA_T_ARRAY) && !make_items(c, out))
        return false;
    if ((term->types & MICA_T_OBJECT) && !mica_schema_object_shape(c, out))
        return false;
    return true;
}

bool mica_schema_shapes(mica_schema_compiler *c, mica_sgoal *goal)
{
    mica_sterm *terms;
    int32_t n;
    if (goal->shapes)
        return true;
    if (goal->making)
        return mica_schema_fail(c, MICA_UNSUPPORTED, goal->n ? goal->schemas[0] : c->values[0], NULL,
                                "the names that the schema allows depend on the schema itself");
    goal->making = true;
    if (!mica_schema_expand(c, goal->schemas, goal->n, NULL, &terms, &n))
        return false;
    mica_sshape *shapes = mica_schema_alloc(c, (size_t)n, sizeof *shapes);
    if (!shapes)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!mica_schema_make_shape(c, &terms[i], &shapes[i]))
            return false;
    goal->shapes = shapes;
    goal->n_shapes = n;
    return true;
}
