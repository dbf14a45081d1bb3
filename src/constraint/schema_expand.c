/* schema_expand.c - from schemas that hold together to terms: all ways to choose branches of their anyOf and oneOf.
 *
 * Worked off with a list of unfinished terms, each with the schemas that are still to be taken into it; a choice makes copies.
 * One that no type satisfies is dropped at once. A schema that is met again inside of itself, without any step into the value,
 * would never end. */
#include "constraint/schema_impl.h"

#include <string.h>

/* The applicators that led to a schema. */
typedef struct trail {
    const mica_jvalue *schema;
    const struct trail *up;
    int depth;
} trail;

/* A schema to be taken in, or an array of branches of which one is. */
typedef struct pending {
    const mica_jvalue *what;
    const trail *under;
    bool choice;
} pending;

typedef struct partial {
    struct partial *next;
    unsigned types;
    int32_t n_atoms, atoms_capacity;
    const mica_jvalue **atoms;
    int32_t first, n_pending, pending_capacity;
    pending *pending;
} partial;

typedef struct expansion {
    mica_schema_compiler *c;
    const mica_jvalue *base;
    partial *open;
    int32_t n_made;
    mica_sterm *terms;
    int32_t n_terms, capacity;
} expansion;

/* ---- Growing arrays in the arena ---- */

static bool push_pending(mica_schema_compiler *c, partial *p, pending item)
{
    if (p->n_pending == p->pending_capacity) {
        int32_t capacity = p->pending_capacity ? p->pending_capacity * 2 : 8;
        pending *items = mica_schema_alloc(c, (size_t)capacity, sizeof *items);
        if (!items)
            return false;
        if (p->n_pending)
            memcpy(items, p->pending, (size_t)p->n_pending * sizeof *items);
        p->pending = items;
        p->pending_capacity = capacity;
    }
    p->pending[p->n_pending++] = item;
    return true;
}

static bool push_atom(mica_schema_compiler *c, partial *p, const mica_jvalue *schema)
{
    if (p->n_atoms == p->atoms_capacity) {
        int32_t capacity = p->atoms_capacity ? p->atoms_capacity * 2 : 4;
        const mica_jvalue **atoms = mica_schema_alloc(c, (size_t)capacity, sizeof(*atoms));
        if (!atoms)
            return false;
        if (p->n_atoms)
            memcpy(atoms, p->atoms, (size_t)p->n_atoms * sizeof(*atoms));
        p->atoms = atoms;
        p->atoms_capacity = capacity;
    }
    p->atoms[p->n_atoms++] = schema;
    return true;
}

static partial *copy_partial(mica_schema_compiler *c, const partial *from)
{
    partial *p = mica_schema_alloc(c, 1, sizeof *p);
    if (!p)
        return NULL;
    *p = *from;
    p->atoms = NULL;
    p->n_atoms = p->atoms_capacity = 0;
    p->pending = NULL;
    p->first = p->n_pending = p->pending_capacity = 0;
    for (int32_t i = 0; i < from->n_atoms; i++)
        if (!push_atom(c, p, from->atoms[i]))
            return NULL;
    for (int32_t i = from->first; i < from->n_pending; i++)
        if (!push_pending(c, p, from->pending[i]))
            return NULL;
    return p;
}

/* ---- oneOf ---- */

/* Whether a value could satisfy both branches, as far as can be told. */
static bool may_overlap(mica_schema_compiler *c, const mica_jvalue *schema, const mica_jvalue *a, const mica_jvalue *b)
{
    mica_sterm *terms;
    int32_t n;
    if (!mica_schema_expand(c, (const mica_jvalue *const[]){a, b}, 2, schema, &terms, &n))
        return true;
    for (int32_t i = 0; i < n; i++) {
        mica_sshape shape;
        if (!mica_schema_make_shape(c, &terms[i], &shape) || !mica_schema_shape_empty(c, &shape))
            return true;
    }
    return false;
}

/* oneOf is anyOf where no value satisfies two branches. Checked once for each schema. */
static bool check_one_of(mica_schema_compiler *c, const mica_jvalue *schema, const mica_jvalue *branches)
{
    if (c->checked[schema->id] & MICA_S_ONE_OF)
        return true;
    c->checked[schema->id] |= MICA_S_ONE_OF;
    char kept[sizeof c->why_empty];
    memcpy(kept, c->why_empty, sizeof kept); /* that branches contradict each other is as it should be */
    for (int32_t i = 0; i < branches->n; i++)
        for (int32_t k = i + 1; k < branches->n; k++) {
            if (!may_overlap(c, schema, &branches->items[i], &branches->items[k]))
                continue;
            if (c->status)
                return false;
            return mica_schema_unenforced(
                c, branches, NULL,
                "the branches %d and %d are not certain to exclude each other, which oneOf asks: use anyOf, or "
                "give each a property of its own that is required and const",
                i, k);
        }
    memcpy(c->why_empty, kept, sizeof kept);
    return true;
}

/* ---- Taking in one schema ---- */

static bool check_array(mica_schema_compiler *c, const mica_jvalue *v)
{
    return v->kind == MICA_J_ARRAY && v->n > 0
               ? true
               : mica_schema_fail(c, MICA_BAD_TEXT, v, NULL, "must be an array of schemas, not empty");
}

static const trail *follow(mica_schema_compiler *c, const mica_jvalue *schema, const trail *under)
{
    int depth = under ? under->depth + 1 : 0;
    for (const trail *t = under; t; t = t->up)
        if (t->schema == schema) {
            mica_schema_fail(c, MICA_BAD_TEXT, schema, NULL,
                             "the schema refers to itself, with no property or item in between");
            return NULL;
        }
    if (depth > MICA_SCHEMA_MAX_DEPTH) {
        mica_schema_fail(c, MICA_INVALID_ARGUMENT, schema, NULL, "more than %d references and branches inside each other",
                         MICA_SCHEMA_MAX_DEPTH);
        return NULL;
    }
    trail *t = mica_schema_alloc(c, 1, sizeof *t);
    if (t)
        *t = (trail){.schema = schema, .up = under, .depth = depth};
    return t;
}

static bool take_applicators(expansion *x, partial *p, const mica_jvalue *schema, const trail *under)
{
    mica_schema_compiler *c = x->c;
    const mica_jvalue *ref, *all = mica_json_get(schema, "allOf"), *target;
    if (!mica_schema_member(c, schema, "$ref", MICA_J_STRING, &ref))
        return false;
    if (ref && (!(target = mica_schema_resolve(c, ref)) || !push_pending(c, p, (pending){.what = target, .under = under})))
        return false;
    if (all && !check_array(c, all))
        return false;
    for (int32_t i = 0; all && i < all->n; i++)
        if (!push_pending(c, p, (pending){.what = &all->items[i], .under = under}))
            return false;
    const mica_jvalue *choices[2] = {mica_json_get(schema, "anyOf"), mica_json_get(schema, "oneOf")};
    for (int i = 0; i < 2; i++)
        if (choices[i] &&
            (!check_array(c, choices[i]) || !push_pending(c, p, (pending){.what = choices[i], .under = under, .choice = true})))
            return false;
    return !choices[1] || check_one_of(c, schema, choices[1]);
}

static bool has_atom(const partial *p, const mica_jvalue *schema)
{
    for (int32_t i = 0; i < p->n_atoms; i++)
        if (p->atoms[i] == schema)
            return true;
    return false;
}

/* False: failed. A partial whose types become 0 is dead. */
static bool take_schema(expansion *x, partial *p, const mica_jvalue *schema, const trail *under)
{
    mica_schema_compiler *c = x->c;
    unsigned types;
    if (schema->kind == MICA_J_TRUE)
        return true;
    if (schema->kind == MICA_J_FALSE) {
        mica_schema_note_empty(c, schema, NULL, "is false");
        p->types = 0;
        return true;
    }
    if (schema->kind != MICA_J_OBJECT)
        return mica_schema_fail(c, MICA_BAD_TEXT, schema, NULL, "a schema must be an object, true or false");
    under = follow(c, schema, under);
    if (!under)
        return false;
    if (has_atom(p, schema))
        return true;
    if (!mica_schema_check_keywords(c, schema) || !mica_schema_types(c, schema, &types) || !push_atom(c, p, schema))
        return false;
    p->types &= types;
    if (!p->types)
        mica_schema_note_empty(c, schema, "type", "leaves no type");
    return schema == x->base || !p->types || take_applicators(x, p, schema, under);
}

/* ---- All of it ---- */

static bool choose(expansion *x, partial *p, const pending *choice)
{
    for (int32_t i = choice->what->n - 1; i >= 0; i--) { /* the last first: the list is a stack */
        partial *branch = copy_partial(x->c, p);
        if (++x->n_made > MICA_SCHEMA_MAX_TERMS)
            return mica_schema_fail(x->c, MICA_INVALID_ARGUMENT, choice->what, NULL,
                                    "more than %d combinations of the branches of anyOf and oneOf", MICA_SCHEMA_MAX_TERMS);
        if (!branch || !push_pending(x->c, branch, (pending){.what = &choice->what->items[i], .under = choice->under}))
            return false;
        branch->next = x->open;
        x->open = branch;
    }
    return true;
}

static bool add_term(expansion *x, const partial *p)
{
    if (x->n_terms == x->capacity) {
        int32_t capacity = x->capacity ? x->capacity * 2 : 4;
        mica_sterm *terms = mica_schema_alloc(x->c, (size_t)capacity, sizeof *terms);
        if (!terms)
            return false;
        if (x->n_terms)
            memcpy(terms, x->terms, (size_t)x->n_terms * sizeof *terms);
        x->terms = terms;
        x->capacity = capacity;
    }
    x->terms[x->n_terms++] = (mica_sterm){.atoms = p->atoms, .n = p->n_atoms, .types = p->types};
    return true;
}

/* Takes in what is pending, in order, until a choice; then the copies are in the list. */
static bool finish_partial(expansion *x, partial *p)
{
    while (p->types && p->first < p->n_pending) {
        pending next = p->pending[p->first++];
        if (next.choice)
            return choose(x, p, &next);
        if (!take_schema(x, p, next.what, next.under))
            return false;
    }
    return !p->types || add_term(x, p);
}

bool mica_schema_expand(mica_schema_compiler *c, const mica_jvalue *const *schemas, int32_t n, const mica_jvalue *base,
                        mica_sterm **terms, int32_t *n_terms)
{
    expansion x = {.c = c, .base = base};
    partial *p = mica_schema_alloc(c, 1, sizeof *p);
    if (!p)
        return false;
    if (++c->depth > MICA_SCHEMA_MAX_DEPTH) {
        c->depth--;
        return mica_schema_fail(c, MICA_INVALID_ARGUMENT, n ? schemas[0] : base, NULL, "the schema is too deep to be checked");
    }
    p->types = MICA_T_ALL;
    x.open = p;
    bool ok = !base || push_pending(c, p, (pending){.what = base});
    for (int32_t i = 0; i < n && ok; i++)
        ok = push_pending(c, p, (pending){.what = schemas[i]});
    while (ok && x.open) {
        p = x.open;
        x.open = p->next;
        ok = finish_partial(&x, p);
    }
    c->depth--;
    *terms = x.terms;
    *n_terms = x.n_terms;
    return ok && !c->status;
}
