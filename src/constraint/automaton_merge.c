/* automaton_merge.c - adds a symbol's states to the automaton, and merges on the way those whose rows are equal, until there
 * are no more: common endings of texts become one. Not minimal where two loops do the same in different places, which costs
 * space only. */
#include "constraint/automaton_impl.h"

#define MAX_ROUNDS 8

typedef struct merger {
    const mica_fa_rows *r;
    int32_t *same;  /* [n] a state equal to this one; itself: none known */
    int32_t *slots; /* hash of rows */
    uint32_t mask;
} merger;

static int32_t find_same(merger *m, int32_t s)
{
    while (m->same[s] != s) {
        m->same[s] = m->same[m->same[s]];
        s = m->same[s];
    }
    return s;
}

/* Where an edge of s leads; loops to itself are alike in all states. */
static int32_t target(merger *m, int32_t s, int32_t to)
{
    to = find_same(m, to);
    return to == s ? -1 : to;
}

static uint32_t hash_row(merger *m, int32_t s)
{
    const mica_fa_rows *r = m->r;
    uint32_t h = r->final[s] ? 0x12345u : 0x54321u;
    for (int32_t i = r->first_edge[s]; i < r->first_edge[s + 1]; i++) {
        h = (h ^ (uint32_t)target(m, s, r->edges[i].to)) * 0x9E3779B1u;
        h = (h ^ h >> 15 ^ (uint32_t)r->edges[i].low << 8 ^ r->edges[i].high) * 0x85EBCA6Bu;
    }
    for (int32_t i = r->first_call[s]; i < r->first_call[s + 1]; i++) {
        h = (h ^ (uint32_t)target(m, s, r->calls[i].to)) * 0x9E3779B1u;
        h = (h ^ h >> 15 ^ (uint32_t)r->calls[i].symbol) * 0xC2B2AE35u;
    }
    return h ^ h >> 14;
}

static bool rows_equal(merger *m, int32_t s, int32_t t)
{
    const mica_fa_rows *r = m->r;
    int32_t n_edges = r->first_edge[s + 1] - r->first_edge[s], n_calls = r->first_call[s + 1] - r->first_call[s];
    if (r->final[s] != r->final[t] || n_edges != r->first_edge[t + 1] - r->first_edge[t] ||
        n_calls != r->first_call[t + 1] - r->first_call[t])
        return false;
    for (int32_t i = 0; i < n_edges; i++) { /* `edges` and `calls` are NULL where there are none */
        const mica_fa_edge *a = &r->edges[r->first_edge[s] + i], *b = &r->edges[r->first_edge[t] + i];
        if (a->low != b->low || a->high != b->high || target(m, s, a->to) != target(m, t, b->to))
            return false;
    }
    for (int32_t i = 0; i < n_calls; i++) {
        const mica_fa_call *a = &r->calls[r->first_call[s] + i], *b = &r->calls[r->first_call[t] + i];
        if (a->symbol != b->symbol || target(m, s, a->to) != target(m, t, b->to))
            return false;
    }
    return true;
}

/* Later states first: most edges lead forward, so that common endings merge in one round. */
static bool merge_round(merger *m)
{
    bool merged = false;
    memset(m->slots, 0xFF, ((size_t)m->mask + 1) * sizeof *m->slots);
    for (int32_t s = m->r->n - 1; s >= 0; s--) {
        if (m->same[s] != s)
            continue;
        uint32_t i = hash_row(m, s) & m->mask;
        while (m->slots[i] >= 0 && !rows_equal(m, s, m->slots[i]))
            i = (i + 1) & m->mask;
        if (m->slots[i] >= 0) {
            m->same[s] = m->slots[i];
            merged = true;
        } else {
            m->slots[i] = s;
        }
    }
    return merged;
}

static mica_status reserve(mica_fa_build *b, int32_t symbol, const mica_fa_rows *r)
{
    mica_automaton *a = b->a;
    int64_t n = (int64_t)a->n_states + r->n, n_edges = (int64_t)a->n_edges + r->first_edge[r->n];
    int64_t n_calls = (int64_t)a->n_calls + r->first_call[r->n];
    int32_t caps[3] = {a->states_cap, a->states_cap, a->states_cap}; /* the four arrays grow alike */
    if (n > MICA_FA_MAX_STATES)
        return mica_fa_too_large(b, symbol, "states");
    if (n_edges > MICA_FA_MAX_EDGES || n_calls > MICA_FA_MAX_EDGES)
        return mica_fa_too_large(b, symbol, "transitions");
    if (!mica_room(&a->first_edge, &caps[0], n + 1, sizeof *a->first_edge) ||
        !mica_room(&a->first_call, &caps[1], n + 1, sizeof *a->first_call) ||
        !mica_room(&a->owner, &caps[2], n + 1, sizeof *a->owner) ||
        !mica_room(&a->final, &a->states_cap, n + 1, sizeof *a->final) ||
        !mica_room(&a->edges, &a->edges_cap, n_edges, sizeof *a->edges) ||
        !mica_room(&a->calls, &a->calls_cap, n_calls, sizeof *a->calls))
        return mica_fa_nomem(b->err);
    return MICA_OK;
}

/* `at` is scratch: the new number of each state that stays. */
static void append(mica_fa_build *b, int32_t symbol, merger *m, int32_t *at)
{
    mica_automaton *a = b->a;
    const mica_fa_rows *r = m->r;
    int32_t n = a->n_states;
    for (int32_t s = 0; s < r->n; s++)
        if (m->same[s] == s)
            at[s] = n++;
    for (int32_t s = 0; s < r->n; s++) {
        if (m->same[s] != s)
            continue;
        a->owner[a->n_states] = symbol;
        a->final[a->n_states] = r->final[s];
        a->first_edge[a->n_states] = a->n_edges;
        a->first_call[a->n_states] = a->n_calls;
        for (int32_t i = r->first_edge[s]; i < r->first_edge[s + 1]; i++)
            a->edges[a->n_edges++] = (mica_fa_edge){at[find_same(m, r->edges[i].to)], r->edges[i].low, r->edges[i].high};
        for (int32_t i = r->first_call[s]; i < r->first_call[s + 1]; i++)
            a->calls[a->n_calls++] = (mica_fa_call){r->calls[i].symbol, at[find_same(m, r->calls[i].to)]};
        a->n_states++;
    }
    a->first_edge[a->n_states] = a->n_edges;
    a->first_call[a->n_states] = a->n_calls;
    a->symbols[symbol].start = at[find_same(m, r->start)];
}

mica_status mica_fa_rows_add(mica_fa_build *b, int32_t symbol, const mica_fa_rows *r)
{
    uint32_t slots = 16;
    while (slots < (uint32_t)r->n * 2)
        slots *= 2;
    merger m = {r, mica_new_array((size_t)r->n, sizeof(int32_t)), mica_new_array(slots, sizeof(int32_t)), slots - 1};
    int32_t *at = mica_new_array((size_t)r->n, sizeof *at);
    mica_status status = m.same && m.slots && at ? reserve(b, symbol, r) : mica_fa_nomem(b->err);
    if (!status) {
        for (int32_t s = 0; s < r->n; s++)
            m.same[s] = s;
        for (int round = 0; round < MAX_ROUNDS && merge_round(&m); round++) {
        }
        append(b, symbol, &m, at);
    }
    free(m.same);
    free(m.slots);
    free(at);
    return status;
}
