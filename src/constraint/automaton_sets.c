/* automaton_sets.c - the order in which symbols are called at the start of one another, the bytes with which their texts begin,
 * and those that may come after them. */
#include "constraint/automaton_impl.h"

/* Calls at the start of a symbol, as a range of a->calls. */
static int32_t start_calls(const mica_automaton *a, int32_t symbol, int32_t *end)
{
    int32_t s = a->symbols[symbol].start;
    *end = s < 0 ? 0 : a->first_call[s + 1];
    return s < 0 ? 0 : a->first_call[s];
}

/* Symbols in topological order (A. Kahn), or too few of them where there is left recursion, which grammars have been refused
 * for. */
static mica_status find_ranks(mica_automaton *a, const mica_grammar *g, mica_error *err)
{
    int32_t n = 0, end, *waiting = mica_new_array((size_t)a->n_symbols, sizeof *waiting);
    a->by_rank = mica_new_array((size_t)a->n_symbols, sizeof *a->by_rank);
    if (!waiting || !a->by_rank) {
        free(waiting);
        return mica_fa_nomem(err);
    }
    for (int32_t s = 0; s < a->n_symbols; s++)
        for (int32_t i = start_calls(a, s, &end); i < end; i++)
            waiting[a->calls[i].symbol]++;
    for (int32_t s = 0; s < a->n_symbols; s++)
        if (waiting[s] == 0)
            a->by_rank[n++] = s;
    for (int32_t k = 0; k < n; k++) {
        a->symbols[a->by_rank[k]].rank = k;
        for (int32_t i = start_calls(a, a->by_rank[k], &end); i < end; i++)
            if (--waiting[a->calls[i].symbol] == 0)
                a->by_rank[n++] = a->calls[i].symbol;
    }
    mica_status status = MICA_OK;
    for (int32_t s = 0; s < a->n_symbols && n < a->n_symbols && !status; s++)
        if (waiting[s] > 0)
            status = mica_fail(err, MICA_INVALID_ARGUMENT, "the rule \"%.100s\" is left-recursive",
                               g->rules[a->symbols[s].name].name);
    free(waiting);
    return status;
}

void mica_fa_next_bytes(const mica_automaton *a, int32_t s, mica_byte_set *set)
{
    memset(set, 0, sizeof *set);
    for (int32_t i = a->first_edge[s]; i < a->first_edge[s + 1]; i++)
        for (unsigned b = a->edges[i].low; b <= a->edges[i].high; b++)
            mica_set_add(set, b);
    for (int32_t i = a->first_call[s]; i < a->first_call[s + 1]; i++)
        mica_set_join(set, &a->symbols[a->calls[i].symbol].first);
}

/* What a call adds to the set that follows its symbol; the same for the bodies of counters. */
static bool follow_round(mica_automaton *a, const mica_byte_set *next)
{
    bool grew = false;
    for (int32_t s = 0; s < a->n_states; s++)
        for (int32_t i = a->first_call[s]; i < a->first_call[s + 1]; i++) {
            mica_fa_symbol *called = &a->symbols[a->calls[i].symbol];
            grew |= mica_set_join(&called->follow, &next[a->calls[i].to]);
            if (a->final[a->calls[i].to])
                grew |= mica_set_join(&called->follow, &a->symbols[a->owner[s]].follow);
        }
    for (int32_t s = 0; s < a->n_symbols; s++)
        if (a->symbols[s].body >= 0) {
            mica_fa_symbol *body = &a->symbols[a->symbols[s].body];
            grew |= mica_set_join(&body->follow, &body->first);
            grew |= mica_set_join(&body->follow, &a->symbols[s].follow);
        }
    return grew;
}

mica_status mica_fa_find_sets(mica_automaton *a, const mica_grammar *g, mica_error *err)
{
    mica_status status = find_ranks(a, g, err);
    if (status)
        return status;
    for (int32_t k = a->n_symbols - 1; k >= 0; k--) {
        mica_fa_symbol *s = &a->symbols[a->by_rank[k]];
        if (s->start >= 0)
            mica_fa_next_bytes(a, s->start, &s->first);
    }
    mica_byte_set *next = mica_new_array((size_t)a->n_states, sizeof *next);
    if (!next)
        return mica_fa_nomem(err);
    for (int32_t s = 0; s < a->n_states; s++)
        mica_fa_next_bytes(a, s, &next[s]);
    while (follow_round(a, next)) {
    }
    free(next);
    return MICA_OK;
}
