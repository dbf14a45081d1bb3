/* automaton.c - from a grammar to an automaton: builds every symbol that the root reaches, then what is known of all of
 * them. */
#include "constraint/automaton.h"

#include "constraint/automaton_impl.h"

mica_status mica_fa_nomem(mica_error *err)
{
    return mica_fail(err, MICA_OUT_OF_MEMORY, "out of memory: the system refused what a constraint needs");
}

mica_status mica_fa_too_large(mica_fa_build *b, int32_t symbol, const char *what)
{
    return mica_fail(b->err, MICA_INVALID_ARGUMENT, "the rule \"%.100s\" is too large: it needs too many %s",
                     b->g->rules[b->a->symbols[symbol].name].name, what);
}

static mica_status start_build(mica_fa_build *b)
{
    const mica_grammar *g = b->g;
    mica_automaton *a = b->a;
    if (!mica_room(&a->symbols, &a->symbols_cap, (int64_t)g->n_rules + 1, sizeof *a->symbols) ||
        !mica_room(&b->queue, &b->queue_cap, 1, sizeof *b->queue))
        return mica_fa_nomem(b->err);
    a->n_symbols = a->n_rules = g->n_rules;
    for (int32_t r = 0; r < g->n_rules; r++)
        a->symbols[r] = (mica_fa_symbol){.start = -1, .body = -1, .name = r, .node = g->rules[r].body};
    a->root = g->root;
    a->symbols[a->root].start = -2; /* queued */
    b->queue[b->n_queue++] = a->root;
    return mica_fa_plan_make(g, &b->plan, b->err);
}

static mica_status build_symbols(mica_fa_build *b)
{
    mica_fa_nfa nfa = {0};
    mica_status status = MICA_OK;
    for (int32_t i = 0; i < b->n_queue && !status; i++) {
        status = mica_fa_nfa_make(b, b->queue[i], &nfa);
        if (!status)
            status = mica_fa_dfa_add(b, b->queue[i], &nfa);
    }
    free(nfa.arcs);
    mica_automaton *a = b->a;
    for (int32_t s = 0; s < a->n_symbols && !status; s++)
        if (a->symbols[s].body >= 0)
            a->symbols[s].start = a->symbols[a->symbols[s].body].start;
    return status;
}

mica_status mica_automaton_new(const mica_grammar *g, mica_automaton **out, mica_error *err)
{
    mica_fa_build b = {.g = g, .a = mica_new_array(1, sizeof(mica_automaton)), .err = err};
    *out = NULL;
    if (!b.a)
        return mica_fa_nomem(err);
    mica_status status = start_build(&b);
    if (!status)
        status = build_symbols(&b);
    if (!status)
        status = mica_fa_find_costs(b.a, err);
    if (!status)
        status = mica_fa_find_sets(b.a, g, err);
    if (!status)
        status = mica_fa_find_chars(b.a, err);
    if (!status)
        status = mica_fa_find_classes(b.a, MICA_FA_NEAR, &b.a->same[0], err);
    if (!status)
        status = mica_fa_find_classes(b.a, MICA_FA_WIDE, &b.a->same[1], err);
    if (!status) {
        b.a->nullable = b.plan.nullable[g->rules[g->root].body];
        *out = b.a;
    } else {
        mica_automaton_free(b.a);
    }
    mica_fa_plan_free(&b.plan);
    free(b.queue);
    free(b.counters);
    return status;
}

void mica_automaton_free(mica_automaton *a)
{
    if (!a)
        return;
    free(a->symbols);
    free(a->by_rank);
    free(a->first_edge);
    free(a->first_call);
    free(a->owner);
    free(a->final);
    free(a->edges);
    free(a->calls);
    free(a->shortest);
    free(a->going_on);
    free(a->chars);
    free(a->same[0]);
    free(a->same[1]);
    free(a);
}
