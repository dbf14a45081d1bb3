/* schema_emit_object.c - objects as sequences of members.
 *
 * Members come in the order of the properties; those that are not required may be left out. rest(i) is what may follow once a
 * member was written: the members from i on, each behind a comma. The first member is chosen among those up to the first
 * required one, so that the places of commas are right, and rest(i) is shared by all choices: the grammar grows linearly.
 *
 * Where a number of properties is asked, rest(i, n) also knows how many were written. Names that are not properties may repeat
 * in the text, so they count once at most towards a minimum. */
#include "constraint/schema_impl.h"

#include <string.h>

#define MAX_COUNTED 20000 /* rules for one object that counts its members */

#define SEQ(...) mica_grammar_seq(c->g, (mica_gnode[]){__VA_ARGS__}, sizeof((mica_gnode[]){__VA_ARGS__}) / sizeof(mica_gnode))
#define ALT(...) mica_grammar_alt(c->g, (mica_gnode[]){__VA_ARGS__}, sizeof((mica_gnode[]){__VA_ARGS__}) / sizeof(mica_gnode))

typedef struct members {
    mica_schema_compiler *c;
    mica_gnode *nodes; /* "name":value of each property */
    bool *required;
    int32_t n;
    mica_gnode other; /* a member with another name */
    bool has_other;
    int64_t min, max; /* of their number; 0 and INT64_MAX where it does not matter */
    int32_t n_required;
} members;

/* ---- Members ---- */

static mica_gnode emit_property(mica_schema_compiler *c, const mica_sproperty *p)
{
    mica_buf name;
    mica_gnode node = MICA_GNODE_FAILED;
    mica_buf_init(&name, 64u << 20);
    mica_json_print_string(&name, p->name, p->length);
    if (name.failed)
        mica_schema_fail(c, MICA_OUT_OF_MEMORY, c->values[0], NULL, "out of memory for the name of a property");
    else
        node = SEQ(mica_grammar_literal(c->g, name.data, name.length), c->colon, mica_schema_call(c, p->goal));
    mica_buf_free(&name);
    return node;
}

static bool collect_properties(members *m, const mica_sshape *shape)
{
    mica_schema_compiler *c = m->c;
    m->nodes = mica_schema_alloc(c, (size_t)shape->n_properties, sizeof *m->nodes);
    m->required = mica_schema_alloc(c, (size_t)shape->n_properties, sizeof *m->required);
    if (!m->nodes || !m->required)
        return false;
    for (int32_t i = 0; i < shape->n_properties && !c->status; i++) {
        const mica_sproperty *p = &shape->properties[i];
        bool empty = mica_schema_goal_empty(c, p->goal);
        if (empty && !p->required)
            continue;
        m->nodes[m->n] = empty ? mica_grammar_never(c->g) : emit_property(c, p);
        m->required[m->n++] = p->required;
        m->n_required += p->required;
    }
    return !c->status;
}

static bool collect_others(members *m, const mica_sshape *shape)
{
    mica_schema_compiler *c = m->c;
    mica_sclass *classes;
    int32_t n;
    if (!mica_schema_classes(c, shape, &classes, &n))
        return false;
    mica_gnode *nodes = mica_schema_alloc(c, (size_t)n, sizeof *nodes);
    for (int32_t i = 0; nodes && i < n; i++) {
        mica_gnode name = mica_schema_emit_language(c, classes[i].any ? NULL : classes[i].names);
        nodes[i] = SEQ(name, c->colon, mica_schema_call(c, classes[i].goal));
    }
    m->has_other = n > 0;
    m->other = nodes ? mica_grammar_alt(c->g, nodes, (size_t)n) : MICA_GNODE_FAILED;
    return nodes != NULL;
}

/* Bounds that the properties keep anyway are dropped. Those that a grammar cannot keep are an error. */
static bool set_bounds(members *m, const mica_sshape *shape)
{
    m->min = shape->min_properties > m->n_required ? shape->min_properties : 0;
    m->max = m->has_other || shape->max_properties < m->n ? shape->max_properties : INT64_MAX;
    if (m->min && m->has_other && m->min - m->n_required > 1) {
        if (!mica_schema_unenforced(m->c, shape->term->atoms[0], "minProperties",
                                    "%lld properties of any name cannot be enforced, as names might repeat: use required, or "
                                    "additionalProperties: false",
                                    (long long)(m->min - m->n_required)))
            return false;
        m->min = m->n_required + 1;
    }
    return true;
}

/* Other members, each behind a comma, after n members. */
static mica_gnode other_members(const members *m, int64_t n)
{
    mica_schema_compiler *c = m->c;
    int64_t min = m->min > n ? m->min - n : 0, max = m->max == INT64_MAX ? INT64_MAX : m->max - n;
    if (max < min || (min && !m->has_other))
        return mica_grammar_never(c->g);
    if (!m->has_other || max == 0)
        return mica_grammar_empty(c->g);
    return mica_grammar_repeat(c->g, SEQ(c->comma, m->other), (int32_t)min, max == INT64_MAX ? MICA_G_NO_LIMIT : (int32_t)max);
}

static mica_gnode as_rule(mica_schema_compiler *c, mica_gnode node)
{
    int32_t rule = mica_grammar_new_rule(c->g, "members");
    mica_grammar_define(c->g, rule, node);
    return mica_grammar_call(c->g, rule);
}

/* ---- Without counting ---- */

/* The first member that has to be there, or n. */
static int32_t first_required(const members *m)
{
    int32_t i = 0;
    while (i < m->n && !m->required[i])
        i++;
    return i;
}

/* All of the object's members, one at least. */
static mica_gnode plain_members(const members *m)
{
    mica_schema_compiler *c = m->c;
    int32_t first = first_required(m), n_parts = 0, n_choices = 0;
    mica_gnode *parts = mica_schema_alloc(c, (size_t)m->n + 1, sizeof *parts);
    mica_gnode *choices = mica_schema_alloc(c, (size_t)m->n + 1, sizeof *choices);
    if (!parts || !choices)
        return MICA_GNODE_FAILED;
    for (int32_t i = first + 1; i < m->n; i++) {
        mica_gnode member = SEQ(c->comma, m->nodes[i]);
        parts[n_parts++] = m->required[i] ? member : mica_grammar_repeat(c->g, member, 0, 1);
    }
    parts[n_parts++] = other_members(m, m->n);
    mica_gnode rest = mica_grammar_seq(c->g, parts, (size_t)n_parts); /* rest(first + 1) */
    if (first == m->n && m->has_other)
        choices[n_choices++] = SEQ(m->other, rest);
    for (int32_t i = first < m->n ? first : m->n - 1; i >= 0; i--) {
        if (first > 0)
            rest = as_rule(c, rest); /* here it is rest(i + 1), which is used twice */
        choices[n_choices++] = SEQ(m->nodes[i], rest);
        mica_gnode member = SEQ(c->comma, m->nodes[i]);
        rest = SEQ(m->required[i] ? member : mica_grammar_repeat(c->g, member, 0, 1), rest);
    }
    return mica_grammar_alt(c->g, choices, (size_t)n_choices);
}

/* ---- With counting ---- */

/* rests[n]: rest(i, n) becomes rest(i - 1, n). Counts above `cap` are all alike. */
static void step_back(const members *m, int32_t i, mica_gnode *rests, int32_t cap)
{
    mica_schema_compiler *c = m->c;
    mica_gnode member = SEQ(c->comma, m->nodes[i]);
    for (int32_t n = 0; n <= cap; n++) {
        mica_gnode with = SEQ(member, rests[n < cap ? n + 1 : cap]);
        rests[n] = as_rule(c, m->required[i] ? with : ALT(with, rests[n]));
    }
}

static mica_gnode counted_members(const members *m)
{
    mica_schema_compiler *c = m->c;
    int32_t first = first_required(m), n_choices = 0;
    int64_t largest = m->max != INT64_MAX && m->max > m->min ? m->max : m->min;
    int32_t cap = largest < m->n ? (int32_t)largest + 1 : m->n; /* more than `largest` are too many, or as good as that many */
    if ((int64_t)cap * m->n > MAX_COUNTED) {
        mica_schema_fail(c, MICA_INVALID_ARGUMENT, c->values[0], NULL,
                         "an object with %d properties and a bound on their number needs too large a grammar", m->n);
        return MICA_GNODE_FAILED;
    }
    mica_gnode *rests = mica_schema_alloc(c, (size_t)cap + 1, sizeof *rests);
    mica_gnode *choices = mica_schema_alloc(c, (size_t)m->n + 1, sizeof *choices);
    if (!rests || !choices)
        return MICA_GNODE_FAILED;
    for (int32_t n = 0; n <= cap; n++)
        rests[n] = other_members(m, n);
    if (first == m->n && m->has_other)
        choices[n_choices++] = SEQ(m->other, other_members(m, 1));
    for (int32_t i = m->n - 1; i >= 0; i--) { /* then n and cap are 1 at least */
        if (i <= first)
            choices[n_choices++] = SEQ(m->nodes[i], rests[1]);
        step_back(m, i, rests, cap);
    }
    return mica_grammar_alt(c->g, choices, (size_t)n_choices);
}

mica_gnode mica_schema_emit_object(mica_schema_compiler *c, const mica_sshape *shape)
{
    members m = {.c = c};
    if (!collect_properties(&m, shape) || !collect_others(&m, shape) || !set_bounds(&m, shape))
        return MICA_GNODE_FAILED;
    mica_gnode brace = mica_grammar_literal(c->g, "{", 1), end = mica_grammar_literal(c->g, "}", 1), list;
    if (m.max == 0)
        list = mica_grammar_never(c->g);
    else
        list = m.min || m.max != INT64_MAX ? counted_members(&m) : plain_members(&m);
    if (c->status)
        return MICA_GNODE_FAILED;
    mica_gnode full = SEQ(brace, c->open, list, c->close, end);
    return m.n_required == 0 && m.min == 0 ? ALT(mica_grammar_literal(c->g, "{}", 2), full) : full;
}
