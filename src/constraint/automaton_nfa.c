/* automaton_nfa.c - a symbol's node as a nondeterministic automaton over bytes and calls (K. Thompson's construction), by a
 * worklist: nothing here recurses. What is too large to write out becomes a call. */
#include "constraint/automaton_impl.h"

#define MAX_ARCS (1 << 21) /* 32 MB; of one symbol */

/* "A text of `node` leads from state `from` to `to`." */
typedef struct task {
    mica_gnode node;
    int32_t from, to;
} task;

typedef struct maker {
    mica_fa_build *b;
    mica_fa_nfa *nfa;
    int32_t symbol;
    task *tasks;
    int32_t n_tasks, tasks_cap;
    mica_status status;
} maker;

static void fail_nomem(maker *m) { m->status = m->status ? m->status : mica_fa_nomem(m->b->err); }

static void add_arc(maker *m, mica_fa_arc arc)
{
    if (m->status)
        return;
    if (m->nfa->n_arcs >= MAX_ARCS)
        m->status = mica_fa_too_large(m->b, m->symbol, "transitions");
    else if (!mica_room(&m->nfa->arcs, &m->nfa->arcs_cap, m->nfa->n_arcs + 1, sizeof arc))
        fail_nomem(m);
    else
        m->nfa->arcs[m->nfa->n_arcs++] = arc;
}

static void add_empty(maker *m, int32_t from, int32_t to) { add_arc(m, (mica_fa_arc){from, to, MICA_ARC_EMPTY, 0, 0}); }
static void add_bytes(maker *m, int32_t from, int32_t to, uint8_t low, uint8_t high)
{
    add_arc(m, (mica_fa_arc){from, to, MICA_ARC_BYTE, low, high});
}

static void add_task(maker *m, mica_gnode node, int32_t from, int32_t to)
{
    if (m->status)
        return;
    if (m->n_tasks >= MAX_ARCS)
        m->status = mica_fa_too_large(m->b, m->symbol, "parts");
    else if (!mica_room(&m->tasks, &m->tasks_cap, m->n_tasks + 1, sizeof *m->tasks))
        fail_nomem(m);
    else
        m->tasks[m->n_tasks++] = (task){node, from, to};
}

static int32_t new_state(maker *m) { return m->nfa->n_states++; } /* fewer than arcs and tasks, which are counted */

/* ---- Symbols ---- */

static void queue_symbol(maker *m, int32_t symbol)
{
    mica_fa_build *b = m->b;
    if (b->a->symbols[symbol].start != -1)
        return; /* queued already, or built */
    if (!mica_room(&b->queue, &b->queue_cap, b->n_queue + 1, sizeof *b->queue)) {
        fail_nomem(m);
        return;
    }
    b->a->symbols[symbol].start = -2;
    b->queue[b->n_queue++] = symbol;
}

static int32_t new_symbol(maker *m, mica_fa_symbol symbol)
{
    mica_automaton *a = m->b->a;
    if (!mica_room(&a->symbols, &a->symbols_cap, a->n_symbols + 1, sizeof symbol)) {
        fail_nomem(m);
        return -1;
    }
    symbol.name = a->symbols[m->symbol].name;
    a->symbols[a->n_symbols] = symbol;
    return a->n_symbols++;
}

static int32_t body_symbol(maker *m, mica_gnode node)
{
    int32_t *body = &m->b->plan.bodies[node];
    if (*body < 0) {
        *body = new_symbol(m, (mica_fa_symbol){.start = -1, .body = -1, .node = node});
        if (*body >= 0)
            queue_symbol(m, *body);
    }
    return *body;
}

static uint32_t counter_slot(const mica_fa_build *b, int32_t body, int32_t need, int32_t left)
{
    uint32_t hash = ((uint32_t)body * 0x9E3779B1u ^ (uint32_t)need) * 0x85EBCA6Bu ^ (uint32_t)left;
    hash = (hash ^ hash >> 15) * 0x9E3779B1u;
    for (uint32_t mask = (uint32_t)b->counters_cap - 1, i = hash >> 7 & mask;; i = (i + 1) & mask) {
        int32_t at = b->counters[i];
        if (at < 0)
            return i;
        const mica_fa_symbol *s = &b->a->symbols[at];
        if (s->body == body && s->need == need && s->left == left)
            return i;
    }
}

static bool grow_counters(mica_fa_build *b)
{
    int32_t *old = b->counters, old_cap = b->counters_cap, cap = old_cap ? old_cap * 2 : 64;
    b->counters = mica_new_array((size_t)cap, sizeof *b->counters);
    if (!b->counters) {
        b->counters = old;
        return false;
    }
    b->counters_cap = cap;
    memset(b->counters, 0xFF, (size_t)cap * sizeof *b->counters);
    for (int32_t i = 0; i < old_cap; i++)
        if (old[i] >= 0) {
            const mica_fa_symbol *s = &b->a->symbols[old[i]];
            b->counters[counter_slot(b, s->body, s->need, s->left)] = old[i];
        }
    free(old);
    return true;
}

static int32_t counter_symbol(maker *m, int32_t body, int32_t need, int32_t left)
{
    mica_fa_build *b = m->b;
    if (b->n_counters * 2 >= b->counters_cap && !grow_counters(b)) {
        fail_nomem(m);
        return -1;
    }
    int32_t *slot = &b->counters[counter_slot(b, body, need, left)];
    if (*slot < 0) {
        *slot = new_symbol(m, (mica_fa_symbol){.start = -1, .body = body, .need = need, .left = left});
        b->n_counters++;
    }
    return *slot;
}

/* ---- Nodes ---- */

static void make_literal(maker *m, const mica_gnode_data *d, task t)
{
    if (d->count == 0)
        add_empty(m, t.from, t.to);
    for (int32_t i = 0; i < d->count; i++) {
        int32_t to = i + 1 == d->count ? t.to : new_state(m);
        uint8_t byte = m->b->g->bytes[d->first + i];
        add_bytes(m, t.from, to, byte, byte);
        t.from = to;
    }
}

static void make_set(maker *m, const mica_gnode_data *d, task t)
{
    const mica_byte_set *set = &m->b->g->sets[d->first];
    for (unsigned low = 0; low < 256; low++) {
        unsigned high = low;
        if (!mica_set_has(set, low))
            continue;
        while (high < 255 && mica_set_has(set, high + 1))
            high++;
        add_bytes(m, t.from, t.to, (uint8_t)low, (uint8_t)high);
        low = high;
    }
}

static void make_seq(maker *m, const mica_gnode_data *d, task t)
{
    if (d->count == 0)
        add_empty(m, t.from, t.to);
    for (int32_t i = 0; i < d->count && !m->status; i++) {
        int32_t to = i + 1 == d->count ? t.to : new_state(m);
        add_task(m, m->b->g->children[d->first + i], t.from, to);
        t.from = to;
    }
}

static void make_fsm(maker *m, const mica_gnode_data *d, task t)
{
    const mica_fsm *f = &m->b->g->fsms[d->first];
    int32_t base = m->nfa->n_states;
    if (f->n_states == 0)
        return;
    m->nfa->n_states += f->n_states;
    add_empty(m, t.from, base);
    for (int32_t i = 0; i < f->n_states; i++)
        if (f->accepts[i])
            add_empty(m, base + i, t.to);
    for (int32_t i = 0; i < f->n_edges && !m->status; i++)
        add_bytes(m, base + f->edges[i].from, base + f->edges[i].to, f->edges[i].low, f->edges[i].high);
}

static void make_call(maker *m, const mica_gnode_data *d, task t)
{
    mica_gnode body = m->b->g->rules[d->first].body;
    if (m->b->plan.inlined[d->first]) {
        add_task(m, body, t.from, t.to);
        return;
    }
    queue_symbol(m, d->first);
    add_arc(m, (mica_fa_arc){t.from, t.to, d->first, 0, 0});
    if (m->b->plan.nullable[body])
        add_empty(m, t.from, t.to);
}

/* Counted: where the body may be empty, no repetition is needed, and repetitions that read nothing need not be counted. */
static void make_counter(maker *m, const mica_gnode_data *d, task t)
{
    mica_gnode node = m->b->g->children[d->first];
    int32_t need = m->b->plan.nullable[node] ? 0 : d->min;
    int32_t body = body_symbol(m, node);
    int32_t counter = m->status ? -1 : counter_symbol(m, body, need, d->max == MICA_G_NO_LIMIT ? MICA_FA_NO_LIMIT : d->max);
    if (counter < 0)
        return;
    add_arc(m, (mica_fa_arc){t.from, t.to, counter, 0, 0});
    if (need == 0)
        add_empty(m, t.from, t.to);
}

static void make_repeat(maker *m, const mica_gnode_data *d, task t)
{
    mica_gnode node = m->b->g->children[d->first];
    if (!mica_fa_unrolls(m->b->g, &m->b->plan, d)) {
        make_counter(m, d, t);
        return;
    }
    bool endless = d->max == MICA_G_NO_LIMIT;
    int32_t times = endless ? d->min : d->max;
    if (endless) { /* an arc back must not lead to a state that others start from */
        int32_t from = new_state(m);
        add_empty(m, t.from, from);
        t.from = from;
    }
    for (int32_t i = 0; i < times && !m->status; i++) {
        int32_t to = new_state(m);
        if (i >= d->min)
            add_empty(m, t.from, t.to);
        add_task(m, node, t.from, to);
        if (endless && i + 1 == times)
            add_empty(m, to, t.from); /* the last one loops */
        t.from = to;
    }
    if (endless && times == 0)
        add_task(m, node, t.from, t.from);
    add_empty(m, t.from, t.to);
}

static void make_node(maker *m, task t)
{
    const mica_gnode_data *d = &m->b->g->nodes[t.node];
    switch (d->kind) {
    case MICA_G_EMPTY:
        add_empty(m, t.from, t.to);
        break;
    case MICA_G_NEVER:
        break;
    case MICA_G_SET:
        make_set(m, d, t);
        break;
    case MICA_G_LITERAL:
        make_literal(m, d, t);
        break;
    case MICA_G_SEQ:
        make_seq(m, d, t);
        break;
    case MICA_G_ALT:
        for (int32_t i = 0; i < d->count && !m->status; i++)
            add_task(m, m->b->g->children[d->first + i], t.from, t.to);
        break;
    case MICA_G_REPEAT:
        make_repeat(m, d, t);
        break;
    case MICA_G_CALL:
        make_call(m, d, t);
        break;
    case MICA_G_FSM:
        make_fsm(m, d, t);
        break;
    }
}

mica_status mica_fa_nfa_make(mica_fa_build *b, int32_t symbol, mica_fa_nfa *nfa)
{
    maker m = {.b = b, .nfa = nfa, .symbol = symbol};
    nfa->n_arcs = 0;
    nfa->n_states = 2;
    add_task(&m, b->a->symbols[symbol].node, 0, 1);
    while (m.n_tasks > 0 && !m.status) {
        make_node(&m, m.tasks[--m.n_tasks]);
        if (nfa->n_states > MAX_ARCS)
            m.status = mica_fa_too_large(b, symbol, "states");
    }
    free(m.tasks);
    return m.status;
}
