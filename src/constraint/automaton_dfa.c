/* automaton_dfa.c - from an NFA to the states of the automaton: the subset construction over bytes and calls. Where that grows
 * too much (it may grow exponentially), the states of the NFA are taken one by one, without their empty arcs: then a text has
 * several places at once, which the matcher can do anyway. */
#include "constraint/automaton_impl.h"

#define GROWTH 4 /* DFA states for one of the NFA's, beyond which it is not made deterministic */
#define GROWTH_FREE 2000
#define MAX_MEMBERS (1 << 24) /* of all sets together: 64 MB */

typedef struct maker {
    mica_fa_build *b;
    int32_t symbol;
    const mica_fa_nfa *nfa;
    int32_t *first_arc; /* [n_states + 1] into arcs, which are sorted by their origin, and then by kind and byte */
    mica_fa_arc *arcs;
    uint32_t *stamps, stamp; /* [n_states] of the search for empty arcs */
    int32_t *stack;
    int32_t *set, n_set; /* [n_states] the set at hand */
    /* Sets of NFA states, that is states of the new automaton. */
    int32_t *members, n_members, members_cap;
    int32_t *first_member, n_sets, sets_cap;
    int32_t *slots, slots_cap;
    /* Rows of the new automaton. */
    int32_t *first_edge, *first_call, edge_rows_cap, call_rows_cap;
    mica_fa_edge *edges;
    mica_fa_call *calls;
    int32_t n_edges, edges_cap, n_calls, calls_cap;
    const mica_fa_arc **bytes, **symbols; /* [n_arcs] arcs of the set at hand */
    int32_t n_bytes, n_symbols;
    bool *final;
    bool apart; /* one state for each of the NFA's */
    bool grew;  /* too much */
    mica_status status;
} maker;

static void fail_nomem(maker *m) { m->status = m->status ? m->status : mica_fa_nomem(m->b->err); }

/* ---- Sets ---- */

static int compare_ints(const void *a, const void *b)
{
    int32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void set_clear(maker *m)
{
    m->n_set = 0;
    m->stamp++;
}

/* Adds a state and what empty arcs lead to; only states that do something are kept. */
static void set_add(maker *m, int32_t state)
{
    int32_t n = 0;
    if (m->stamps[state] == m->stamp)
        return;
    m->stamps[state] = m->stamp;
    m->stack[n++] = state;
    while (n > 0) {
        int32_t s = m->stack[--n];
        bool acts = s == 1;
        for (int32_t i = m->first_arc[s]; i < m->first_arc[s + 1]; i++) {
            int32_t to = m->arcs[i].to;
            if (m->arcs[i].symbol != MICA_ARC_EMPTY) {
                acts = true;
            } else if (m->stamps[to] != m->stamp) {
                m->stamps[to] = m->stamp;
                m->stack[n++] = to;
            }
        }
        if (acts)
            m->set[m->n_set++] = s;
    }
}

static uint32_t hash_ints(const int32_t *v, int32_t n)
{
    uint32_t h = 0x811C9DC5u ^ (uint32_t)n;
    for (int32_t i = 0; i < n; i++)
        h = (h ^ (uint32_t)v[i]) * 0x9E3779B1u + (h >> 15);
    return h ^ h >> 13;
}

static uint32_t set_slot(const maker *m, const int32_t *set, int32_t n)
{
    uint32_t mask = (uint32_t)m->slots_cap - 1, i = hash_ints(set, n) & mask;
    for (;; i = (i + 1) & mask) {
        int32_t at = m->slots[i];
        if (at < 0)
            return i;
        int32_t first = m->first_member[at], count = m->first_member[at + 1] - first;
        if (count == n && (n == 0 || !memcmp(m->members + first, set, (size_t)n * sizeof *set)))
            return i;
    }
}

static bool sets_grow(maker *m)
{
    int32_t cap = m->slots_cap ? m->slots_cap * 2 : 64;
    int32_t *slots = mica_new_array((size_t)cap, sizeof *slots);
    if (!slots)
        return false;
    memset(slots, 0xFF, (size_t)cap * sizeof *slots);
    free(m->slots);
    m->slots = slots;
    m->slots_cap = cap;
    for (int32_t i = 0; i < m->n_sets; i++) {
        int32_t first = m->first_member[i];
        m->slots[set_slot(m, m->members + first, m->first_member[i + 1] - first)] = i;
    }
    return true;
}

/* The number of the set at hand; -1 after a failure or too much growth. */
static int32_t set_intern(maker *m)
{
    qsort(m->set, (size_t)m->n_set, sizeof *m->set, compare_ints);
    if (m->n_sets * 2 >= m->slots_cap && !sets_grow(m)) {
        fail_nomem(m);
        return -1;
    }
    uint32_t slot = set_slot(m, m->set, m->n_set);
    if (m->slots[slot] >= 0)
        return m->slots[slot];
    if (!m->apart && (m->n_sets > GROWTH * m->nfa->n_states + GROWTH_FREE || m->n_members > MAX_MEMBERS)) {
        m->grew = true;
        return -1;
    }
    if (m->n_sets >= MICA_FA_MAX_STATES || m->n_members > 2 * MAX_MEMBERS) {
        m->status = mica_fa_too_large(m->b, m->symbol, "states");
        return -1;
    }
    if (!mica_room(&m->members, &m->members_cap, (int64_t)m->n_members + m->n_set, sizeof *m->members) ||
        !mica_room(&m->first_member, &m->sets_cap, m->n_sets + 2, sizeof *m->first_member)) {
        fail_nomem(m);
        return -1;
    }
    if (m->n_set)
        memcpy(m->members + m->n_members, m->set, (size_t)m->n_set * sizeof *m->set);
    m->first_member[m->n_sets] = m->n_members;
    m->n_members += m->n_set;
    m->first_member[m->n_sets + 1] = m->n_members;
    m->slots[slot] = m->n_sets;
    return m->n_sets++;
}

/* ---- Rows ---- */

static void put_edge(maker *m, int32_t to, int low, int high)
{
    if (to < 0 || m->status)
        return;
    if (m->n_edges >= MICA_FA_MAX_EDGES) {
        m->status = mica_fa_too_large(m->b, m->symbol, "transitions");
        return;
    }
    if (!mica_room(&m->edges, &m->edges_cap, m->n_edges + 1, sizeof *m->edges)) {
        fail_nomem(m);
        return;
    }
    m->edges[m->n_edges++] = (mica_fa_edge){to, (uint8_t)low, (uint8_t)high};
}

static void put_call(maker *m, int32_t to, int32_t symbol)
{
    if (to < 0 || m->status)
        return;
    if (m->n_calls >= MICA_FA_MAX_EDGES) {
        m->status = mica_fa_too_large(m->b, m->symbol, "calls");
        return;
    }
    if (!mica_room(&m->calls, &m->calls_cap, m->n_calls + 1, sizeof *m->calls)) {
        fail_nomem(m);
        return;
    }
    m->calls[m->n_calls++] = (mica_fa_call){symbol, to};
}

static int compare_bytes(const void *a, const void *b)
{
    const mica_fa_arc *x, *y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x->low != y->low ? x->low - y->low : x->high - y->high;
}

static int compare_symbols(const void *a, const void *b)
{
    const mica_fa_arc *x, *y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x->symbol > y->symbol) - (x->symbol < y->symbol);
}

static void gather_arcs(maker *m, int32_t set)
{
    m->n_bytes = m->n_symbols = 0;
    for (int32_t k = m->first_member[set]; k < m->first_member[set + 1]; k++)
        for (int32_t s = m->members[k], i = m->first_arc[s]; i < m->first_arc[s + 1]; i++) {
            if (m->arcs[i].symbol == MICA_ARC_BYTE)
                m->bytes[m->n_bytes++] = &m->arcs[i];
            else if (m->arcs[i].symbol >= 0)
                m->symbols[m->n_symbols++] = &m->arcs[i];
        }
    qsort(m->bytes, (size_t)m->n_bytes, sizeof *m->bytes, compare_bytes);
    qsort(m->symbols, (size_t)m->n_symbols, sizeof *m->symbols, compare_symbols);
}

/* Bytes fall into segments in which the same arcs apply. */
static void make_byte_rows(maker *m)
{
    bool cut[257] = {false};
    int32_t first_edge = m->n_edges;
    for (int32_t i = 0; i < m->n_bytes; i++)
        cut[m->bytes[i]->low] = cut[m->bytes[i]->high + 1] = true;
    for (int low = 0, high; low < 256 && !m->status && !m->grew; low = high + 1) {
        for (high = low; high < 255 && !cut[high + 1];)
            high++;
        set_clear(m);
        for (int32_t i = 0; i < m->n_bytes && m->bytes[i]->low <= low; i++)
            if (m->bytes[i]->high >= low)
                set_add(m, m->bytes[i]->to);
        if (m->n_set == 0)
            continue;
        int32_t to = set_intern(m);
        mica_fa_edge *last = m->n_edges > first_edge ? &m->edges[m->n_edges - 1] : NULL;
        if (last && last->to == to && last->high + 1 == low)
            last->high = (uint8_t)high;
        else
            put_edge(m, to, low, high);
    }
}

static void make_call_rows(maker *m)
{
    for (int32_t i = 0, k; i < m->n_symbols && !m->status && !m->grew; i = k) {
        set_clear(m);
        for (k = i; k < m->n_symbols && m->symbols[k]->symbol == m->symbols[i]->symbol; k++)
            set_add(m, m->symbols[k]->to);
        if (m->n_set > 0)
            put_call(m, set_intern(m), m->symbols[i]->symbol);
    }
}

static void make_rows_apart(maker *m)
{
    for (int32_t i = 0; i < m->n_bytes + m->n_symbols && !m->status; i++) {
        const mica_fa_arc *arc = i < m->n_bytes ? m->bytes[i] : m->symbols[i - m->n_bytes];
        set_clear(m);
        set_add(m, arc->to);
        if (m->n_set == 0)
            continue;
        if (i < m->n_bytes)
            put_edge(m, set_intern(m), arc->low, arc->high);
        else
            put_call(m, set_intern(m), arc->symbol);
    }
}

static void make_all_rows(maker *m)
{
    m->n_sets = m->n_members = m->n_edges = m->n_calls = 0;
    m->grew = false;
    if (m->slots)
        memset(m->slots, 0xFF, (size_t)m->slots_cap * sizeof *m->slots);
    set_clear(m);
    set_add(m, 0);
    set_intern(m);
    for (int32_t s = 0; s < m->n_sets && !m->status && !m->grew; s++) {
        if (!mica_room(&m->first_edge, &m->edge_rows_cap, s + 3, sizeof *m->first_edge) ||
            !mica_room(&m->first_call, &m->call_rows_cap, s + 3, sizeof *m->first_call)) {
            fail_nomem(m);
            return;
        }
        m->first_edge[s] = m->n_edges;
        m->first_call[s] = m->n_calls;
        gather_arcs(m, s);
        if (m->apart) {
            make_rows_apart(m);
        } else {
            make_byte_rows(m);
            make_call_rows(m);
        }
        m->first_edge[s + 1] = m->n_edges;
        m->first_call[s + 1] = m->n_calls;
    }
}

/* ---- The start, which must not be final ---- */

static bool leads_to_start(const maker *m)
{
    for (int32_t i = 0; i < m->n_edges; i++)
        if (m->edges[i].to == 0)
            return true;
    for (int32_t i = 0; i < m->n_calls; i++)
        if (m->calls[i].to == 0)
            return true;
    return false;
}

/* Marks final states; returns the start, a new state where the first one is both final and used. */
static int32_t finish_states(maker *m)
{
    m->final = mica_new_array((size_t)m->n_sets + 1, sizeof *m->final);
    if (!m->final) {
        fail_nomem(m);
        return 0;
    }
    for (int32_t s = 0; s < m->n_sets; s++)
        for (int32_t k = m->first_member[s]; k < m->first_member[s + 1]; k++)
            m->final[s] |= m->members[k] == 1;
    if (!m->final[0] || !leads_to_start(m)) {
        m->final[0] = false;
        return 0;
    }
    int32_t start = m->n_sets++; /* make_all_rows() left room in the two arrays */
    for (int32_t i = m->first_edge[0]; i < m->first_edge[1]; i++)
        put_edge(m, m->edges[i].to, m->edges[i].low, m->edges[i].high);
    for (int32_t i = m->first_call[0]; i < m->first_call[1]; i++)
        put_call(m, m->calls[i].to, m->calls[i].symbol);
    m->first_edge[start + 1] = m->n_edges;
    m->first_call[start + 1] = m->n_calls;
    return start;
}

/* ---- All together ---- */

static bool sort_arcs(maker *m)
{
    const mica_fa_nfa *nfa = m->nfa;
    size_t n = (size_t)nfa->n_states, n_arcs = (size_t)nfa->n_arcs;
    m->first_arc = mica_new_array(n + 2, sizeof *m->first_arc);
    m->arcs = mica_new_array(n_arcs, sizeof *m->arcs);
    m->stamps = mica_new_array(n, sizeof *m->stamps);
    m->stack = mica_new_array(n, sizeof *m->stack);
    m->set = mica_new_array(n, sizeof *m->set);
    m->bytes = mica_new_array(n_arcs, sizeof(void *));
    m->symbols = mica_new_array(n_arcs, sizeof(void *));
    if (!m->first_arc || !m->arcs || !m->stamps || !m->stack || !m->set || !m->bytes || !m->symbols)
        return false;
    for (size_t i = 0; i < n_arcs; i++)
        m->first_arc[nfa->arcs[i].from + 2]++;
    for (size_t i = 2; i < n + 2; i++)
        m->first_arc[i] += m->first_arc[i - 1];
    for (size_t i = 0; i < n_arcs; i++)
        m->arcs[m->first_arc[nfa->arcs[i].from + 1]++] = nfa->arcs[i];
    return true;
}

static void maker_free(maker *m)
{
    free(m->first_arc);
    free(m->arcs);
    free(m->stamps);
    free(m->stack);
    free(m->set);
    free(m->bytes);
    free(m->symbols);
    free(m->members);
    free(m->first_member);
    free(m->slots);
    free(m->first_edge);
    free(m->first_call);
    free(m->edges);
    free(m->calls);
    free(m->final);
}

mica_status mica_fa_dfa_add(mica_fa_build *b, int32_t symbol, const mica_fa_nfa *nfa)
{
    maker m = {.b = b, .symbol = symbol, .nfa = nfa};
    if (!sort_arcs(&m))
        fail_nomem(&m);
    if (!m.status)
        make_all_rows(&m);
    if (!m.status && m.grew) {
        m.apart = true;
        make_all_rows(&m);
    }
    int32_t start = m.status ? 0 : finish_states(&m);
    if (!m.status) {
        mica_fa_rows rows = {m.n_sets, start, m.first_edge, m.first_call, m.edges, m.calls, m.final};
        m.status = mica_fa_rows_add(b, symbol, &rows);
    }
    maker_free(&m);
    return m.status;
}
