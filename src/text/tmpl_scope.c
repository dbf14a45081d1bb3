#include "text/tmpl_ast.h"

#include <stdlib.h>
#include <string.h>

/* Names to slots, by the rules of jinja2's compiler:
 *  - The template, a loop's body, test and else part, a macro, a call, filter, set or with block are scopes. An `if` is not.
 *  - A name that a scope assigns lives in it. On entry it takes the value of the same name outside (ALIAS), else is unset
 *    (UNDEFINED); but if it is assigned only inside of an `if`, an outside value of the request shows through (RESOLVE).
 *  - A name that is only read is looked up outwards, else in the request (RESOLVE).
 * Analysis of a scope first walks all of it except for inner scopes (`collect`), then resolves its names and goes into the
 * inner scopes (`resolve`). Recursion is bounded by the depth of the nodes. */

#define NO_ENTRY UINT32_MAX

typedef struct entry {
    uint32_t symbol, slot;
    mica_load action;
    bool stored;
} entry;

typedef struct scope {
    struct scope *up;
    mica_compiler *c;
    entry *entries; /* entry i has slot i */
    size_t n, capacity;
    uint32_t *index; /* hash of symbols to entry + 1 */
    size_t n_index;
    uint32_t *stored; /* entries in the order of their first assignment: an `if` looks at those that it added */
    size_t n_stored;
} scope;

static bool collect(scope *s, mica_node *node);
static bool resolve(scope *s, mica_node *node);

/* ---- The table of one scope ---- */

static size_t index_of(const scope *s, uint32_t symbol)
{
    size_t at = (symbol * 2654435761u) & (s->n_index - 1);
    while (s->index[at] && s->entries[s->index[at] - 1].symbol != symbol)
        at = (at + 1) & (s->n_index - 1);
    return at;
}

static bool grow(scope *s)
{
    size_t capacity = s->capacity ? s->capacity * 2 : 16;
    entry *entries = realloc(s->entries, capacity * sizeof *entries);
    if (entries)
        s->entries = entries;
    uint32_t *stored = realloc(s->stored, capacity * sizeof *stored);
    if (stored)
        s->stored = stored;
    uint32_t *index = calloc(capacity * 2, sizeof *index);
    if (!entries || !stored || !index) {
        free(index);
        return mica_compile_no_memory(s->c);
    }
    free(s->index);
    s->index = index;
    s->n_index = capacity * 2;
    s->capacity = capacity;
    for (size_t i = 0; i < s->n; i++)
        s->index[index_of(s, s->entries[i].symbol)] = (uint32_t)i + 1;
    return true;
}

static void scope_free(scope *s)
{
    free(s->entries);
    free(s->index);
    free(s->stored);
}

static entry *find(const scope *s, uint32_t symbol)
{
    if (!s->n_index)
        return NULL;
    uint32_t i = s->index[index_of(s, symbol)];
    return i ? &s->entries[i - 1] : NULL;
}

static bool add(scope *s, uint32_t symbol, mica_load action, entry **out)
{
    if (s->n == s->capacity && !grow(s))
        return false;
    s->entries[s->n] = (entry){.symbol = symbol, .slot = (uint32_t)s->n, .action = action};
    s->index[index_of(s, symbol)] = (uint32_t)s->n + 1;
    *out = &s->entries[s->n++];
    return true;
}

static bool known_outside(const scope *s, uint32_t symbol)
{
    for (const scope *o = s->up; o; o = o->up) {
        if (find(o, symbol))
            return true;
    }
    return false;
}

static void mark_stored(scope *s, entry *e)
{
    if (e->stored)
        return;
    e->stored = true;
    s->stored[s->n_stored++] = (uint32_t)(e - s->entries);
}

static bool load_name(scope *s, uint32_t symbol)
{
    entry *e;
    return find(s, symbol) || known_outside(s, symbol) || add(s, symbol, MICA_LOAD_RESOLVE, &e);
}

static bool store_name(scope *s, uint32_t symbol)
{
    entry *e = find(s, symbol);
    if (!e && !add(s, symbol, known_outside(s, symbol) ? MICA_LOAD_ALIAS : MICA_LOAD_UNDEFINED, &e))
        return false;
    mark_stored(s, e);
    return true;
}

static bool declare(scope *s, uint32_t symbol, uint32_t *slot)
{
    entry *e = find(s, symbol);
    if (!e && !add(s, symbol, MICA_LOAD_PARAMETER, &e))
        return false;
    e->action = MICA_LOAD_PARAMETER;
    mark_stored(s, e);
    if (slot)
        *slot = e->slot;
    return true;
}

static bool declare_text(scope *s, const char *name, uint32_t *slot)
{
    mica_val text = mica_val_literal(name);
    uint32_t symbol;
    return mica_compile_symbol(s->c, &text, &symbol) && declare(s, symbol, slot);
}

/* ---- First walk: which names a scope has ---- */

static bool collect_kids(scope *s, mica_node *node, uint32_t from)
{
    for (uint32_t i = from; i < node->n_kids; i++) {
        if (!collect(s, node->kids[i]))
            return false;
    }
    return true;
}

/* Names that a branch assigns may stay unassigned: then what is outside shows through. */
static bool collect_if(scope *s, mica_node *node)
{
    size_t before = s->n_stored;
    if (!collect_kids(s, node, 0))
        return false;
    for (size_t i = before; i < s->n_stored; i++) {
        entry *e = &s->entries[s->stored[i]];
        e->action = known_outside(s, e->symbol) ? MICA_LOAD_ALIAS : MICA_LOAD_RESOLVE;
    }
    return true;
}

/* Targets of a loop or a with block are parameters of the scope. */
static bool declare_targets(scope *s, mica_node *target)
{
    if (target->type == MICA_N_NAME)
        return declare(s, target->symbol, NULL);
    if (target->type == MICA_N_NSREF)
        return load_name(s, target->symbol);
    for (uint32_t i = 0; i < target->n_kids; i++) {
        if (!declare_targets(s, target->kids[i]))
            return false;
    }
    return true;
}

static bool collect(scope *s, mica_node *node)
{
    if (!node)
        return true;
    switch (node->type) {
    case MICA_N_NAME:
        return node->store ? store_name(s, node->symbol) : load_name(s, node->symbol);
    case MICA_N_NSREF:
        return load_name(s, node->symbol);
    case MICA_N_MACRO:
        return store_name(s, node->symbol);
    case MICA_N_IF:
        return collect_if(s, node);
    case MICA_N_FOR: /* only what is iterated belongs to the outer scope */
        return collect(s, node->kids[1]);
    case MICA_N_SET: /* the value is read before the target is assigned */
        return collect(s, node->kids[1]) && collect(s, node->kids[0]);
    case MICA_N_SETBLOCK:
        return collect(s, node->kids[0]);
    case MICA_N_CALLBLOCK:
        return collect(s, node->kids[1]);
    case MICA_N_FILTERBLOCK:
        return collect(s, node->kids[1]);
    case MICA_N_WITH:
        for (uint32_t i = 2; i < node->n_kids; i += 2) {
            if (!collect(s, node->kids[i]))
                return false;
        }
        return true;
    default:
        return collect_kids(s, node, 0);
    }
}

/* ---- Whether a body mentions a special name that it does not assign first ---- */

typedef struct mentions {
    const char *names[3];
    bool gone[3], found[3];
} mentions;

static void look_for(mentions *m, const mica_node *node)
{
    if (!node)
        return;
    if (node->type == MICA_N_NAME) {
        for (size_t i = 0; i < 3 && m->names[i]; i++) {
            if (!mica_val_is(&node->text, m->names[i], strlen(m->names[i])))
                continue;
            if (node->store)
                m->gone[i] = true;
            else if (!m->gone[i])
                m->found[i] = true;
        }
        return;
    }
    for (uint32_t i = 0; i < node->n_kids; i++)
        look_for(m, node->kids[i]);
}

/* ---- Second walk: names to places ---- */

/* Every name was collected before it is placed. */
static bool place(scope *s, uint32_t symbol, mica_ref *ref)
{
    uint32_t hops = 0;
    for (scope *o = s; o; o = o->up, hops++) {
        const entry *e = find(o, symbol);
        if (e) {
            *ref = (mica_ref){.hops = hops, .slot = e->slot};
            return true;
        }
    }
    return mica_compile_fail(s->c, 0, "the name '%.*s' was not analysed", (int)s->c->tmpl->symbols[symbol].len,
                             s->c->tmpl->symbols[symbol].s);
}

/* Writes the finished table into the template. */
static bool publish(scope *s, mica_scope *out)
{
    out->n_slots = s->n;
    out->loads = mica_compile_alloc(s->c, s->n * sizeof *out->loads);
    if (!out->loads)
        return false;
    for (size_t i = 0; i < s->n; i++) {
        const entry *e = &s->entries[i];
        out->loads[i] = (mica_slot_load){.action = e->action, .symbol = e->symbol};
        if (e->action == MICA_LOAD_ALIAS) {
            if (!place(s->up, e->symbol, &out->loads[i].from))
                return false;
            out->loads[i].from.hops++; /* counted from the inner frame */
        }
    }
    return true;
}

static bool resolve_kids(scope *s, mica_node *node)
{
    for (uint32_t i = 0; i < node->n_kids; i++) {
        if (!resolve(s, node->kids[i]))
            return false;
    }
    return true;
}

/* Collects, resolves and publishes an inner scope that consists of one node and has no parameters. */
static bool inner_scope(scope *up, mica_node *node, mica_node *more, mica_scope *out)
{
    scope s = {.up = up, .c = up->c};
    bool ok = collect(&s, node) && collect(&s, more) && resolve(&s, node) && resolve(&s, more) && publish(&s, out);
    scope_free(&s);
    return ok;
}

static bool loop_scope(scope *up, mica_node *node, bool is_test)
{
    scope s = {.up = up, .c = up->c};
    mica_for *loop = node->loop;
    mica_node *inside = node->kids[is_test ? 2 : 3];
    /* Both scopes declare the targets first, so the places of the targets are the same in both. */
    bool ok = declare_targets(&s, node->kids[0]);
    if (!is_test && loop->extended)
        ok = ok && declare_text(&s, "loop", &loop->loop_slot);
    ok = ok && collect(&s, inside) && resolve(&s, inside);
    if (!is_test)
        ok = ok && resolve(&s, node->kids[0]);
    ok = ok && publish(&s, is_test ? &loop->test : &loop->body);
    scope_free(&s);
    return ok;
}

static bool resolve_for(scope *s, mica_node *node)
{
    mica_for *loop = node->loop;
    mentions m = {.names = {"loop"}};
    look_for(&m, node->kids[3]);
    loop->extended = loop->recursive || m.found[0];
    if (!resolve(s, node->kids[1]))
        return false;
    if (node->kids[2] && !loop_scope(s, node, true))
        return false;
    if (!loop_scope(s, node, false))
        return false;
    return !node->kids[4] || inner_scope(s, node->kids[4], NULL, &loop->other);
}

/* kids[first_default ...] are the defaults. */
static bool macro_scope(scope *up, mica_node *node, uint32_t first_default)
{
    mica_macro_def *m = node->macro;
    scope s = {.up = up, .c = up->c};
    mentions special = {.names = {"caller", "kwargs", "varargs"}};
    bool ok = true, caller_given = false, kwargs_given = false, varargs_given = false;
    for (size_t i = 0; i < m->n_params && ok; i++) {
        ok = declare(&s, m->param_symbols[i], &m->param_slots[i]);
        caller_given |= mica_val_is(&m->param_names[i], "caller", 6);
        kwargs_given |= mica_val_is(&m->param_names[i], "kwargs", 6);
        varargs_given |= mica_val_is(&m->param_names[i], "varargs", 7);
        if (mica_val_is(&m->param_names[i], "caller", 6) && i + (node->n_kids - first_default) < m->n_params) {
            look_for(&special, node->kids[0]);
            if (special.found[0])
                ok = mica_compile_fail(up->c, node->offset, "the parameter 'caller' of a macro must have a default");
        }
    }
    look_for(&special, node->kids[0]);
    m->wants_caller = special.found[0] && !caller_given;
    m->wants_kwargs = special.found[1] && !kwargs_given;
    m->wants_varargs = special.found[2] && !varargs_given;
    ok = ok && collect_kids(&s, node, first_default) && collect(&s, node->kids[0]);
    if (ok && m->wants_caller)
        ok = declare_text(&s, "caller", &m->caller_slot);
    if (ok && m->wants_kwargs)
        ok = declare_text(&s, "kwargs", &m->kwargs_slot);
    if (ok && m->wants_varargs)
        ok = declare_text(&s, "varargs", &m->varargs_slot);
    for (uint32_t i = first_default; i < node->n_kids && ok; i++)
        ok = resolve(&s, node->kids[i]);
    ok = ok && resolve(&s, node->kids[0]) && publish(&s, &m->scope);
    scope_free(&s);
    return ok;
}

static bool with_scope(scope *up, mica_node *node)
{
    scope s = {.up = up, .c = up->c};
    bool ok = true;
    for (uint32_t i = 1; i < node->n_kids && ok; i += 2)
        ok = declare_targets(&s, node->kids[i]) && resolve(up, node->kids[i + 1]);
    for (uint32_t i = 1; i < node->n_kids && ok; i += 2)
        ok = resolve(&s, node->kids[i]);
    ok = ok && collect(&s, node->kids[0]) && resolve(&s, node->kids[0]) && publish(&s, node->scope);
    scope_free(&s);
    return ok;
}

static bool resolve_block(scope *s, mica_node *node)
{
    node->scope = mica_compile_alloc(s->c, sizeof *node->scope);
    if (!node->scope)
        return false;
    switch (node->type) {
    case MICA_N_WITH:
        return with_scope(s, node);
    case MICA_N_FILTERBLOCK:
        return inner_scope(s, node->kids[0], node->kids[1], node->scope);
    default: /* SETBLOCK: the target belongs to the outer scope */
        return resolve(s, node->kids[0]) && inner_scope(s, node->kids[1], node->kids[2], node->scope);
    }
}

static bool resolve(scope *s, mica_node *node)
{
    if (!node)
        return true;
    switch (node->type) {
    case MICA_N_NAME: case MICA_N_NSREF:
        return place(s, node->symbol, &node->ref);
    case MICA_N_MACRO:
        return place(s, node->symbol, &node->ref) && macro_scope(s, node, 1);
    case MICA_N_CALLBLOCK:
        return resolve(s, node->kids[1]) && macro_scope(s, node, 2);
    case MICA_N_FOR:
        return resolve_for(s, node);
    case MICA_N_WITH: case MICA_N_FILTERBLOCK: case MICA_N_SETBLOCK:
        return resolve_block(s, node);
    default:
        return resolve_kids(s, node);
    }
}

bool mica_scope_analyse(mica_compiler *c)
{
    scope s = {.c = c};
    bool ok = collect(&s, c->tmpl->root) && resolve(&s, c->tmpl->root) && publish(&s, &c->tmpl->scope);
    scope_free(&s);
    return ok;
}
