/* automaton_plan.c - what is known of a grammar before its automaton is built: which nodes may match the empty text, how large
 * they are, and which rules are written out where they are called. Children come before their parents in the grammar, so one
 * pass upwards sees every node after its parts; only calls go elsewhere. */
#include "constraint/automaton_impl.h"

#define INLINE_FINITE 64 /* states of a rule without loops (a character class, a keyword) that is always written out */
#define INLINE_LOOP 12   /* of one with loops (blanks, digits). Larger ones are called, so that their masks are shared */
#define INLINE_ONCE 400  /* of a rule that is called from one place only */
#define INLINE_ROUNDS 8  /* rules inside rules inside ... */
#define UNROLL_STATES 96 /* a repetition that takes more is counted */

static int32_t sum(int32_t a, int64_t b)
{
    return a + b < INT32_MAX ? (int32_t)(a + b) : INT32_MAX;
}

/* The parts of a node: its children, or the body of the rule it calls. */
static int32_t part_count(const mica_grammar *g, mica_gnode n)
{
    const mica_gnode_data *d = &g->nodes[n];
    if (d->kind == MICA_G_SEQ || d->kind == MICA_G_ALT)
        return d->count;
    return d->kind == MICA_G_REPEAT || d->kind == MICA_G_CALL;
}

static mica_gnode part(const mica_grammar *g, mica_gnode n, int32_t i)
{
    const mica_gnode_data *d = &g->nodes[n];
    return d->kind == MICA_G_CALL ? g->rules[d->first].body : g->children[d->first + i];
}

static bool is_empty_leaf(const mica_grammar *g, mica_gnode n)
{
    const mica_gnode_data *d = &g->nodes[n];
    switch (d->kind) {
    case MICA_G_EMPTY:
        return true;
    case MICA_G_LITERAL:
    case MICA_G_SEQ:
        return d->count == 0;
    case MICA_G_REPEAT:
        return d->min == 0 || d->max == 0;
    case MICA_G_FSM:
        return g->fsms[d->first].n_states > 0 && g->fsms[d->first].accepts[0];
    default:
        return false;
    }
}

/* Scratch of the search for nullable nodes: who uses a node, and how many parts of a node must still turn out nullable. */
typedef struct nullable_search {
    int32_t *first_user, *users, *missing, *queue;
} nullable_search;

static void spread_nullable(const mica_grammar *g, bool *nullable, nullable_search *w)
{
    int32_t n_queue = 0;
    for (mica_gnode n = 0; n < g->n_nodes; n++) {
        w->missing[n] = g->nodes[n].kind == MICA_G_SEQ ? g->nodes[n].count : 1;
        nullable[n] = is_empty_leaf(g, n);
        if (nullable[n])
            w->queue[n_queue++] = n;
    }
    while (n_queue > 0) {
        mica_gnode n = w->queue[--n_queue];
        for (int32_t i = w->first_user[n]; i < w->first_user[n + 1]; i++) {
            mica_gnode user = w->users[i];
            if (nullable[user] || --w->missing[user] > 0)
                continue;
            nullable[user] = true;
            w->queue[n_queue++] = user; /* each node enters once */
        }
    }
}

static bool find_nullable(const mica_grammar *g, bool *nullable)
{
    size_t n = (size_t)g->n_nodes, total = 0;
    for (mica_gnode i = 0; i < g->n_nodes; i++)
        total += (size_t)part_count(g, i);
    nullable_search w = {mica_new_array(n + 2, sizeof(int32_t)), mica_new_array(total, sizeof(int32_t)),
                         mica_new_array(n, sizeof(int32_t)), mica_new_array(n, sizeof(int32_t))};
    bool ok = w.first_user && w.users && w.missing && w.queue;
    if (ok) {
        for (mica_gnode i = 0; i < g->n_nodes; i++)
            for (int32_t k = 0; k < part_count(g, i); k++)
                if (part(g, i, k) >= 0)
                    w.first_user[part(g, i, k) + 2]++;
        for (size_t i = 2; i < n + 2; i++)
            w.first_user[i] += w.first_user[i - 1];
        for (mica_gnode i = 0; i < g->n_nodes; i++)
            for (int32_t k = 0; k < part_count(g, i); k++)
                if (part(g, i, k) >= 0)
                    w.users[w.first_user[part(g, i, k) + 1]++] = i;
        spread_nullable(g, nullable, &w);
    }
    free(w.first_user);
    free(w.users);
    free(w.missing);
    free(w.queue);
    return ok;
}

bool mica_fa_unrolls(const mica_grammar *g, const mica_fa_plan *plan, const mica_gnode_data *repeat)
{
    int64_t times = repeat->max == MICA_G_NO_LIMIT ? repeat->min : repeat->max;
    int32_t size = plan->size[g->children[repeat->first]];
    return times <= 1 || (size > 0 ? size : 1) * times <= UNROLL_STATES;
}

typedef struct sizes {
    bool *loops;            /* [n_nodes] the node matches arbitrarily long texts */
    bool *open;             /* [n_nodes] the node calls a rule that is not inlined */
    int32_t *weight, *uses; /* [n_nodes], [n_rules] places that contain the node and call the rule, saturated */
} sizes;

static void find_uses(const mica_grammar *g, sizes *w)
{
    for (int32_t r = 0; r < g->n_rules; r++)
        if (g->rules[r].body >= 0)
            w->weight[g->rules[r].body]++;
    for (mica_gnode n = g->n_nodes - 1; n >= 0; n--) {
        if (g->nodes[n].kind == MICA_G_CALL)
            w->uses[g->nodes[n].first] = sum(w->uses[g->nodes[n].first], w->weight[n]);
        else
            for (int32_t i = 0; i < part_count(g, n); i++)
                w->weight[part(g, n, i)] = sum(w->weight[part(g, n, i)], w->weight[n]);
    }
}

static int32_t repeat_size(const mica_grammar *g, const mica_fa_plan *plan, sizes *w, mica_gnode n)
{
    const mica_gnode_data *d = &g->nodes[n];
    if (!mica_fa_unrolls(g, plan, d)) {
        w->loops[n] = true;
        return INLINE_LOOP + 1; /* a rule with a counter is called */
    }
    w->loops[n] |= d->max == MICA_G_NO_LIMIT;
    int64_t times = d->max == MICA_G_NO_LIMIT ? d->min : d->max;
    return sum(1, plan->size[g->children[d->first]] * (times > 0 ? times : 1));
}

static int32_t node_size(const mica_grammar *g, const mica_fa_plan *plan, sizes *w, mica_gnode n)
{
    const mica_gnode_data *d = &g->nodes[n];
    int32_t total = 0;
    switch (d->kind) {
    case MICA_G_SET:
        return 1;
    case MICA_G_LITERAL:
        return d->count;
    case MICA_G_FSM:
        w->loops[n] = true;
        return g->fsms[d->first].n_states;
    case MICA_G_CALL:
        if (!plan->inlined[d->first]) {
            w->open[n] = true;
            return 1;
        }
        w->loops[n] = w->loops[g->rules[d->first].body];
        return plan->size[g->rules[d->first].body];
    case MICA_G_SEQ:
    case MICA_G_ALT:
    case MICA_G_REPEAT:
        for (int32_t i = 0; i < d->count; i++) {
            mica_gnode child = g->children[d->first + i];
            w->loops[n] |= w->loops[child];
            w->open[n] |= w->open[child];
            total = sum(total, plan->size[child]);
        }
        return d->kind == MICA_G_REPEAT ? repeat_size(g, plan, w, n) : total;
    default:
        return 0;
    }
}

static bool is_worth_inlining(const mica_grammar *g, const mica_fa_plan *plan, const sizes *w, int32_t rule)
{
    mica_gnode body = g->rules[rule].body;
    if (body < 0 || rule == g->root || w->open[body])
        return false;
    int32_t most = w->uses[rule] <= 1 ? INLINE_ONCE : w->loops[body] ? INLINE_LOOP : INLINE_FINITE;
    return plan->size[body] <= most;
}

/* A rule is inlined when all rules that it calls are: so no recursion is ever unfolded. */
static void choose_inlined(const mica_grammar *g, mica_fa_plan *plan, sizes *w)
{
    bool changed = true;
    find_uses(g, w);
    for (int round = 0; changed; round++) {
        memset(w->loops, 0, (size_t)g->n_nodes * sizeof *w->loops);
        memset(w->open, 0, (size_t)g->n_nodes * sizeof *w->open);
        for (mica_gnode n = 0; n < g->n_nodes; n++)
            plan->size[n] = node_size(g, plan, w, n);
        changed = false;
        for (int32_t r = 0; r < g->n_rules && round < INLINE_ROUNDS; r++) {
            if (plan->inlined[r] || !is_worth_inlining(g, plan, w, r))
                continue;
            plan->inlined[r] = changed = true;
        }
    }
}

mica_status mica_fa_plan_make(const mica_grammar *g, mica_fa_plan *plan, mica_error *err)
{
    size_t n = (size_t)g->n_nodes, n_rules = (size_t)g->n_rules;
    *plan = (mica_fa_plan){mica_new_array(n, sizeof(bool)), mica_new_array(n, sizeof(int32_t)),
                           mica_new_array(n_rules, sizeof(bool)), mica_new_array(n, sizeof(int32_t))};
    sizes w = {mica_new_array(n, sizeof(bool)), mica_new_array(n, sizeof(bool)), mica_new_array(n, sizeof(int32_t)),
               mica_new_array(n_rules, sizeof(int32_t))};
    bool ok = plan->nullable && plan->size && plan->inlined && plan->bodies && w.loops && w.open && w.weight && w.uses;
    ok = ok && find_nullable(g, plan->nullable);
    if (ok) {
        choose_inlined(g, plan, &w);
        for (size_t i = 0; i < n; i++)
            plan->bodies[i] = -1;
    }
    free(w.loops);
    free(w.open);
    free(w.weight);
    free(w.uses);
    return ok ? MICA_OK : mica_fa_nomem(err);
}

void mica_fa_plan_free(mica_fa_plan *plan)
{
    free(plan->nullable);
    free(plan->size);
    free(plan->inlined);
    free(plan->bodies);
}
