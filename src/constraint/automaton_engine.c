/* automaton_engine.c - one byte's step from a configuration. Calls at the place are followed in the order of their ranks, so
 * that all callers of a symbol are known when its node is made; ended symbols are popped by a worklist. */
#include "constraint/automaton_engine.h"

static bool step_room(mica_fa_engine *e, void *array, int32_t *cap, int32_t n, size_t size)
{
    if (e->status || n > MICA_FA_MAX_LANDINGS)
        e->status = e->status ? e->status : MICA_INVALID_ARGUMENT;
    else if (!mica_room(array, cap, (int64_t)n + 1, size))
        e->status = MICA_OUT_OF_MEMORY;
    return !e->status;
}

static void add_out(mica_fa_engine *e, int32_t state, int32_t node)
{
    if (step_room(e, &e->out, &e->out_cap, e->n_out, sizeof *e->out))
        e->out[e->n_out++] = (mica_fa_pair){state, node};
}

static void add_landing(mica_fa_engine *e, int32_t state, int32_t node)
{
    struct mica_fa_trace *trace = &e->traces[node];
    if (trace->landed == e->step && trace->state == state)
        return; /* the most frequent of repetitions */
    trace->landed = e->step;
    trace->state = state;
    if (step_room(e, &e->landing, &e->landing_cap, e->n_landing, sizeof *e->landing))
        e->landing[e->n_landing++] = (mica_fa_pair){state, node};
}

static void return_from(mica_fa_engine *e, int32_t node)
{
    for (int32_t i = 0; i < e->nodes[node].count && !e->status; i++) {
        mica_fa_pair p = e->node_pairs[e->nodes[node].first + i];
        add_landing(e, p.state, p.node);
    }
}

/* One repetition is done: another one may follow, or, if no more are needed, what is behind them. */
static void count(mica_fa_engine *e, int32_t node)
{
    mica_fa_node next = e->nodes[node];
    int32_t n = next.count;
    if (next.need <= 1)
        return_from(e, node);
    next.need = next.need > 1 ? next.need - 1 : 1;
    if (next.left != MICA_FA_NO_LIMIT)
        next.left--;
    if (next.left <= 0 || !step_room(e, &e->out, &e->out_cap, e->n_out + n, sizeof *e->out))
        return;
    memcpy(e->out + e->n_out, e->node_pairs + next.first, (size_t)n * sizeof *e->out); /* interning may move the node's own */
    int32_t number = mica_fa_node_intern(e, next, e->out + e->n_out, n);
    if (number >= 0)
        add_out(e, e->a->symbols[next.symbol].start, number);
}

static void pop(mica_fa_engine *e, int32_t node)
{
    if (e->traces[node].popped == e->step)
        return;
    e->traces[node].popped = e->step;
    if (node == MICA_FA_BOTTOM)
        e->ended = true;
    else if (e->nodes[node].symbol >= 0)
        count(e, node);
    else
        return_from(e, node);
}

/* Works through the landings: "the text stands in this state, on this node". */
static void land(mica_fa_engine *e)
{
    const mica_automaton *a = e->a;
    while (e->n_landing > 0 && !e->status) {
        mica_fa_pair p = e->landing[--e->n_landing];
        if (p.state == MICA_FA_END) {
            e->ended = true;
            continue;
        }
        if (!mica_fa_is_last(a, p.state))
            add_out(e, p.state, p.node);
        if (a->final[p.state])
            pop(e, p.node);
    }
}

static void add_pending(mica_fa_engine *e, mica_fa_pending p)
{
    int32_t low = 0, high = e->n_pending;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        const mica_fa_pending *q = &e->pending[mid];
        bool before = q->rank != p.rank ? q->rank < p.rank : q->state != p.state ? q->state < p.state : q->node < p.node;
        if (before)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < e->n_pending && !memcmp(&e->pending[low], &p, sizeof p))
        return;
    if (!step_room(e, &e->pending, &e->pending_cap, e->n_pending, sizeof p))
        return;
    memmove(e->pending + low + 1, e->pending + low, (size_t)(e->n_pending - low) * sizeof p);
    e->pending[low] = p;
    e->n_pending++;
}

/* Follows the byte from one state, and keeps the range of bytes that would do the same. */
static void take(mica_fa_engine *e, int32_t state, int32_t node, int byte)
{
    const mica_automaton *a = e->a;
    for (int32_t i = a->first_edge[state]; i < a->first_edge[state + 1]; i++) {
        const mica_fa_edge *edge = &a->edges[i];
        if (edge->low > byte) {
            e->high = edge->low - 1 < e->high ? edge->low - 1 : e->high;
        } else if (edge->high < byte) {
            e->low = edge->high + 1 > e->low ? edge->high + 1 : e->low;
        } else {
            e->low = edge->low > e->low ? edge->low : e->low;
            e->high = edge->high < e->high ? edge->high : e->high;
            add_landing(e, edge->to, node);
            land(e);
        }
    }
    for (int32_t i = a->first_call[state]; i < a->first_call[state + 1]; i++) {
        const mica_fa_symbol *sym = &a->symbols[a->calls[i].symbol];
        if (mica_set_has(&sym->first, (unsigned)byte)) {
            add_pending(e, (mica_fa_pending){sym->rank, a->calls[i].to, node});
        } else {
            for (int b = byte - 1; b >= e->low; b--)
                if (mica_set_has(&sym->first, (unsigned)b))
                    e->low = b + 1;
            for (int b = byte + 1; b <= e->high; b++)
                if (mica_set_has(&sym->first, (unsigned)b))
                    e->high = b - 1;
        }
    }
}

/* The node for a symbol that is called by pending[from..to); a single call at the end of a symbol needs none. */
static int32_t call_node(mica_fa_engine *e, int32_t symbol, int32_t from, int32_t to)
{
    const mica_automaton *a = e->a;
    const mica_fa_symbol *sym = &a->symbols[symbol];
    mica_fa_pending *p = e->pending + from;
    int32_t n = to - from;
    if (n == 1 && sym->body < 0 && a->final[p->state] && mica_fa_is_last(a, p->state))
        return p->node;
    if (!step_room(e, &e->out, &e->out_cap, e->n_out + n, sizeof *e->out))
        return -1;
    for (int32_t i = 0; i < n; i++)
        e->out[e->n_out + i] = (mica_fa_pair){p[i].state, p[i].node};
    mica_fa_node node = {.symbol = -1};
    if (sym->body >= 0)
        node = (mica_fa_node){.symbol = symbol, .need = sym->need > 1 ? sym->need : 1, .left = sym->left};
    return mica_fa_node_intern(e, node, e->out + e->n_out, n);
}

static void follow_calls(mica_fa_engine *e, int byte)
{
    for (int32_t from = 0, to; from < e->n_pending && !e->status; from = to) {
        int32_t rank = e->pending[from].rank, symbol = e->a->by_rank[rank];
        for (to = from; to < e->n_pending && e->pending[to].rank == rank;)
            to++;
        int32_t node = call_node(e, symbol, from, to);
        if (node >= 0)
            take(e, e->a->symbols[symbol].start, node, byte); /* adds calls of higher ranks only */
    }
}

static void step_begin(mica_fa_engine *e)
{
    e->n_out = e->n_landing = e->n_pending = 0;
    e->ended = false;
    e->low = 0;
    e->high = 255;
    if (++e->step == 0) { /* once in 2^32 steps */
        memset(e->traces, 0, (size_t)e->traces_cap * sizeof *e->traces);
        e->step = 1;
    }
}

mica_status mica_fa_step(mica_fa_engine *e, int32_t config, uint8_t byte, mica_fa_cell *cell, mica_error *err)
{
    mica_fa_config c = e->configs[config];
    step_begin(e);
    for (int32_t i = 0; i < c.count && !e->status; i++)
        take(e, e->config_pairs[c.first + i].state, e->config_pairs[c.first + i].node, byte);
    follow_calls(e, byte);
    *cell = MICA_FA_DEAD;
    if (!e->status && (e->n_out > 0 || e->ended)) {
        int32_t to = mica_fa_config_intern(e, e->out, e->n_out, e->ended);
        if (to >= 0)
            *cell = (mica_fa_cell)((to + 2) | (e->ended ? MICA_FA_ENDED : 0));
    }
    if (e->status)
        return mica_fa_engine_fail(e, err);
    for (int b = e->low; b <= e->high; b++)
        e->rows[(size_t)config * MICA_FA_ROW + (size_t)b] = *cell;
    return MICA_OK;
}

mica_status mica_fa_leave(mica_fa_engine *e, int32_t node, bool once, int32_t *config, mica_error *err)
{
    step_begin(e);
    if (node == MICA_FA_BOTTOM || once)
        pop(e, node);
    else
        return_from(e, node);
    land(e);
    int32_t to = mica_fa_config_intern(e, e->out, e->n_out, e->ended);
    if (to < 0)
        return mica_fa_engine_fail(e, err);
    *config = to;
    return MICA_OK;
}

mica_status mica_fa_start(mica_fa_engine *e, int32_t *config, mica_error *err)
{
    const mica_automaton *a = e->a;
    mica_fa_pair root = {a->symbols[a->root].start, MICA_FA_BOTTOM};
    int32_t to = mica_fa_config_intern(e, &root, mica_fa_is_last(a, root.state) ? 0 : 1, a->nullable);
    if (to < 0)
        return mica_fa_engine_fail(e, err);
    *config = to;
    return MICA_OK;
}

void mica_fa_config_bytes(const mica_fa_engine *e, int32_t config, mica_byte_set *set)
{
    const mica_fa_config *c = &e->configs[config];
    memset(set, 0, sizeof *set);
    for (int32_t i = 0; i < c->count; i++) {
        mica_byte_set one;
        mica_fa_next_bytes(e->a, e->config_pairs[c->first + i].state, &one);
        mica_set_join(set, &one);
    }
}
