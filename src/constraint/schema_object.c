/* schema_object.c - objects: which properties there are by name, and what holds for all other names. */
#include "constraint/schema_impl.h"

#include <string.h>

#include "text/utf8.h"

/* ---- One member ---- */

/* What holds for names that one schema does not mention. NULL: anything. */
static const mica_jvalue *other_members(const mica_jvalue *atom)
{
    const mica_jvalue *v = mica_json_get(atom, "additionalProperties");
    return v || !mica_schema_is_plain(atom, false) ? v : mica_json_get(atom, "unevaluatedProperties");
}

/* The most schemas that can hold for one name. */
static int32_t most_schemas(const mica_sterm *term)
{
    int32_t n = 0;
    for (int32_t a = 0; a < term->n; a++) {
        const mica_jvalue *patterns = mica_json_get(term->atoms[a], "patternProperties");
        n += 1 + (patterns ? patterns->n : 0);
    }
    return n;
}

/* Adds those that hold for a name by one schema's keywords. */
static bool add_for_name(mica_schema_compiler *c, const mica_jvalue *atom, const char *name, size_t length,
                         const mica_jvalue **set, int32_t *n)
{
    const mica_jvalue *named = mica_json_get_n(mica_json_get(atom, "properties"), name, length);
    const mica_jvalue *patterns = mica_json_get(atom, "patternProperties");
    int32_t before = *n;
    if (named)
        set[(*n)++] = named;
    for (int32_t i = 0; patterns && i < patterns->n; i++) {
        const mica_jvalue *v = &patterns->items[i];
        const mica_regular *language = mica_schema_pattern(c, v, v->key, v->key_length, NULL);
        if (c->status)
            return false;
        if (language && mica_regular_matches(language, name, length))
            set[(*n)++] = v;
    }
    const mica_jvalue *other = *n == before ? other_members(atom) : NULL;
    if (other)
        set[(*n)++] = other;
    return true;
}

mica_sgoal *mica_schema_member_goal(mica_schema_compiler *c, const mica_sterm *term, const char *name, size_t length)
{
    int32_t n = 0;
    const mica_jvalue **set = mica_schema_alloc(c, (size_t)most_schemas(term), sizeof(*set));
    for (int32_t a = 0; set && a < term->n; a++)
        if (!add_for_name(c, term->atoms[a], name, length, set, &n))
            return NULL;
    return set ? mica_schema_goal(c, set, n) : NULL;
}

/* ---- The properties ---- */

static mica_sproperty *find_property(const mica_sshape *shape, const char *name, size_t length)
{
    for (int32_t i = 0; i < shape->n_properties; i++)
        if (shape->properties[i].length == length && memcmp(shape->properties[i].name, name, length) == 0)
            return &shape->properties[i];
    return NULL;
}

static bool add_property(mica_schema_compiler *c, mica_sshape *shape, const char *name, size_t length, bool required)
{
    mica_sproperty *p = find_property(shape, name, length);
    if (!p) {
        p = &shape->properties[shape->n_properties++];
        *p = (mica_sproperty){.name = name, .length = length, .goal = mica_schema_member_goal(c, shape->term, name, length)};
    }
    shape->n_required += required && !p->required;
    p->required |= required;
    return p->goal != NULL;
}

static bool check_object_keywords(mica_schema_compiler *c, mica_sshape *shape, const mica_jvalue *atom, int32_t *n_names)
{
    const mica_jvalue *properties, *patterns, *required;
    int64_t min, max;
    if (!mica_schema_member(c, atom, "properties", MICA_J_OBJECT, &properties) ||
        !mica_schema_member(c, atom, "patternProperties", MICA_J_OBJECT, &patterns) ||
        !mica_schema_member(c, atom, "required", MICA_J_ARRAY, &required) ||
        !mica_schema_count(c, atom, "minProperties", 0, &min) || !mica_schema_count(c, atom, "maxProperties", INT64_MAX, &max))
        return false;
    for (int32_t i = 0; required && i < required->n; i++)
        if (required->items[i].kind != MICA_J_STRING)
            return mica_schema_fail(c, MICA_BAD_TEXT, &required->items[i], NULL, "must be a string");
    shape->min_properties = min > shape->min_properties ? min : shape->min_properties;
    shape->max_properties = max < shape->max_properties ? max : shape->max_properties;
    *n_names += (properties ? properties->n : 0) + (required ? required->n : 0);
    return true;
}

/* propertyNames of all schemas of the term; NULL: none. */
static bool find_names(mica_schema_compiler *c, mica_sshape *shape)
{
    int32_t n = 0;
    const mica_jvalue **set = mica_schema_alloc(c, (size_t)shape->term->n, sizeof(*set));
    for (int32_t a = 0; set && a < shape->term->n; a++) {
        const mica_jvalue *v = mica_json_get(shape->term->atoms[a], "propertyNames");
        if (v)
            set[n++] = v;
    }
    shape->names = set && n ? mica_schema_goal(c, set, n) : NULL;
    return set && (!n || shape->names);
}

/* Whether propertyNames allows a name. */
static bool allows_name(mica_schema_compiler *c, const mica_sshape *shape, const char *name, size_t length)
{
    mica_jvalue text = {.kind = MICA_J_STRING, .text = name, .length = length};
    return !shape->names || mica_schema_goal_allows(c, shape->names, &text);
}

/* Properties whose names may not be used: left out, or, if required, never satisfied. */
static bool drop_forbidden_names(mica_schema_compiler *c, mica_sshape *shape)
{
    int32_t n = 0;
    for (int32_t i = 0; shape->names && i < shape->n_properties; i++) {
        mica_sproperty p = shape->properties[i];
        bool allowed = allows_name(c, shape, p.name, p.length);
        if (c->status)
            return false;
        if (!allowed && p.required) {
            mica_schema_note_empty(c, shape->names->n ? shape->names->schemas[0] : c->values[0], NULL,
                                   "forbids a required name");
            shape->types &= ~(unsigned)MICA_T_OBJECT;
        }
        if (allowed)
            shape->properties[n++] = p;
    }
    shape->n_properties = shape->names ? n : shape->n_properties;
    return true;
}

bool mica_schema_object_shape(mica_schema_compiler *c, mica_sshape *shape)
{
    const mica_sterm *term = shape->term;
    int32_t n = 0;
    for (int32_t a = 0; a < term->n; a++)
        if (!check_object_keywords(c, shape, term->atoms[a], &n))
            return false;
    shape->properties = mica_schema_alloc(c, (size_t)n, sizeof *shape->properties);
    if (!shape->properties || !find_names(c, shape))
        return false;
    for (int32_t a = 0; a < term->n; a++) {
        const mica_jvalue *v = mica_json_get(term->atoms[a], "properties");
        for (int32_t i = 0; v && i < v->n; i++)
            if (!add_property(c, shape, v->items[i].key, v->items[i].key_length, false))
                return false;
    }
    for (int32_t a = 0; a < term->n; a++) {
        const mica_jvalue *v = mica_json_get(term->atoms[a], "required");
        for (int32_t i = 0; v && i < v->n; i++)
            if (!add_property(c, shape, v->items[i].text, v->items[i].length, true))
                return false;
    }
    return drop_forbidden_names(c, shape);
}

/* ---- All other names ---- */

/* A class while names are being divided: which members of patternProperties hold for it. */
typedef struct division {
    const mica_regular *names;
    bool *holds; /* [n_patterns] */
} division;

typedef struct divider {
    mica_schema_compiler *c;
    const mica_sshape *shape;
    const mica_jvalue **patterns; /* of all schemas of the term, one after another */
    int32_t *owner;               /* index of the schema */
    int32_t n_patterns;
    division parts[MICA_SCHEMA_MAX_CLASSES];
    int32_t n;
} divider;

/* "(?:name|other)", all but letters and digits as \u{..}. The empty alternative stands for the empty name. */
static void print_names(mica_buf *out, const mica_sshape *shape)
{
    mica_buf_puts(out, "(?:");
    for (int32_t i = 0; i < shape->n_properties; i++) {
        const mica_sproperty *p = &shape->properties[i];
        if (i)
            mica_buf_putc(out, '|');
        for (size_t k = 0; k < p->length;) {
            uint32_t code;
            k += mica_utf8_read(p->name + k, &code);
            bool plain = (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9');
            mica_buf_printf(out, plain ? "%c" : "\\u{%x}", (unsigned)code);
        }
    }
    mica_buf_putc(out, ')');
}

/* All names but those of the properties. */
static const mica_regular *other_names(mica_schema_compiler *c, const mica_sshape *shape)
{
    mica_regular *all = NULL, *named = NULL, *rest = NULL;
    mica_error err = {0};
    mica_buf pattern;
    mica_status status = mica_regular_lengths(0, MICA_G_NO_LIMIT, &all, &err);
    mica_buf_init(&pattern, 16 << 20);
    if (!status && shape->n_properties) {
        print_names(&pattern, shape);
        status = pattern.no_memory ? mica_fail_nomem(&err, pattern.length, "the names of the properties")
                 : pattern.failed
                     ? mica_fail(&err, MICA_INVALID_ARGUMENT, "the names of the properties are too long together")
                     : mica_regular_parse(pattern.data, pattern.length, MICA_PATTERN_WHOLE, &named, &err);
        if (!status)
            status = mica_regular_without(all, named, &rest, &err);
        mica_regular_free(all);
        mica_regular_free(named);
        all = rest;
    }
    mica_buf_free(&pattern);
    const mica_jvalue *at = shape->term->n ? shape->term->atoms[0] : c->values[0];
    return mica_schema_own(c, status, all, &err, at, "properties");
}

static bool collect_patterns(divider *d)
{
    const mica_sterm *term = d->shape->term;
    int32_t most = most_schemas(term);
    d->patterns = mica_schema_alloc(d->c, (size_t)most, sizeof(*d->patterns));
    d->owner = mica_schema_alloc(d->c, (size_t)most, sizeof *d->owner);
    for (int32_t a = 0; d->patterns && d->owner && a < term->n; a++) {
        const mica_jvalue *v = mica_json_get(term->atoms[a], "patternProperties");
        for (int32_t i = 0; v && i < v->n; i++) {
            if (!mica_schema_pattern(d->c, &v->items[i], v->items[i].key, v->items[i].key_length, NULL) && !d->c->status)
                continue; /* not enforced, and the user was told */
            d->patterns[d->n_patterns] = &v->items[i];
            d->owner[d->n_patterns++] = a;
        }
    }
    return !d->c->status;
}

/* Divides each part by one pattern: what matches it, and what does not. */
static bool divide(divider *d, int32_t pattern)
{
    mica_schema_compiler *c = d->c;
    const mica_jvalue *v = d->patterns[pattern];
    const mica_regular *language = c->language_of[v->id];
    mica_error err = {0};
    for (int32_t i = 0, n = d->n; i < n; i++) {
        mica_regular *in = NULL, *out = NULL;
        division *part = &d->parts[i];
        mica_status status = mica_regular_both(part->names, language, &in, &err);
        const mica_regular *inside = mica_schema_own(c, status, in, &err, v, NULL);
        if (!inside || mica_regular_is_empty(inside)) {
            if (!inside)
                return false;
            continue;
        }
        status = mica_regular_without(part->names, language, &out, &err);
        const mica_regular *outside = mica_schema_own(c, status, out, &err, v, NULL);
        bool *holds = mica_schema_alloc(c, (size_t)d->n_patterns, sizeof *holds);
        if (!outside || !holds)
            return false;
        memcpy(holds, part->holds, (size_t)d->n_patterns * sizeof *holds);
        holds[pattern] = true;
        if (mica_regular_is_empty(outside)) {
            *part = (division){.names = inside, .holds = holds};
            continue;
        }
        if (d->n == MICA_SCHEMA_MAX_CLASSES)
            return mica_schema_fail(c, MICA_INVALID_ARGUMENT, v, NULL,
                                    "the patterns of patternProperties overlap in more than %d ways", MICA_SCHEMA_MAX_CLASSES);
        part->names = outside;
        d->parts[d->n++] = (division){.names = inside, .holds = holds};
    }
    return true;
}

/* What holds for the values of one part. */
static mica_sgoal *part_goal(divider *d, const division *part)
{
    const mica_sterm *term = d->shape->term;
    const mica_jvalue **set = mica_schema_alloc(d->c, (size_t)most_schemas(term), sizeof(*set));
    int32_t n = 0;
    for (int32_t a = 0; set && a < term->n; a++) {
        int32_t before = n;
        for (int32_t i = 0; i < d->n_patterns; i++)
            if (d->owner[i] == a && part->holds[i])
                set[n++] = d->patterns[i];
        const mica_jvalue *other = n == before ? other_members(term->atoms[a]) : NULL;
        if (other)
            set[n++] = other;
    }
    return set ? mica_schema_goal(d->c, set, n) : NULL;
}

/* Whether no pattern can let a name through that additionalProperties: false refuses; then no language is needed. */
static bool is_closed(const divider *d)
{
    for (int32_t a = 0; a < d->shape->term->n; a++) {
        const mica_jvalue *other = other_members(d->shape->term->atoms[a]);
        bool patterns = false;
        for (int32_t i = 0; i < d->n_patterns; i++)
            patterns |= d->owner[i] == a;
        if (other && other->kind == MICA_J_FALSE && !patterns)
            return true;
    }
    return false;
}

static bool first_part(divider *d)
{
    mica_schema_compiler *c = d->c;
    const mica_regular *names = other_names(c, d->shape), *allowed;
    mica_error err = {0};
    if (names && d->shape->names) {
        mica_regular *r = NULL;
        if (!mica_schema_strings(c, d->shape->names, &allowed))
            return false;
        if (allowed) {
            mica_status status = mica_regular_both(names, allowed, &r, &err);
            names = mica_schema_own(c, status, r, &err, d->shape->term->atoms[0], "propertyNames");
        }
    }
    bool *holds = mica_schema_alloc(c, (size_t)d->n_patterns, sizeof *holds);
    if (!names || !holds)
        return false;
    d->n = !mica_regular_is_empty(names);
    d->parts[0] = (division){.names = names, .holds = holds};
    return true;
}

bool mica_schema_classes(mica_schema_compiler *c, const mica_sshape *shape, mica_sclass **classes, int32_t *n)
{
    divider d = {.c = c, .shape = shape};
    *classes = NULL;
    *n = 0;
    if (!collect_patterns(&d))
        return false;
    if (is_closed(&d))
        return true;
    if (!first_part(&d))
        return false;
    for (int32_t i = 0; i < d.n_patterns; i++)
        if (!divide(&d, i))
            return false;
    mica_sclass *made = mica_schema_alloc(c, (size_t)d.n, sizeof *made);
    bool any = shape->n_properties == 0 && !shape->names && d.n_patterns == 0;
    for (int32_t i = 0; made && i < d.n; i++) {
        mica_sgoal *goal = part_goal(&d, &d.parts[i]);
        bool empty = !goal || mica_schema_goal_empty(c, goal);
        if (c->status)
            return false;
        if (!empty)
            made[(*n)++] = (mica_sclass){.names = d.parts[i].names, .any = any, .goal = goal};
    }
    *classes = made;
    return made != NULL;
}
