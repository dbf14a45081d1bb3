/* automaton_cost.c - the length of the shortest text from each state to the end of its symbol, by D. Knuth's generalisation of
 * Dijkstra's algorithm (Information Processing Letters 6, 1977): states are settled in the order of their lengths, and a call
 * counts once both the symbol and the state after it are settled. What is never settled cannot be completed, and is taken
 * out. */
#include "constraint/automaton_impl.h"

typedef struct entry {
    size_t length;
    int32_t state;
} entry;

typedef struct finder {
    mica_automaton *a;
    entry *heap;
    int32_t n_heap, heap_cap;
    /* Reversed: edges and calls by the state they lead to, calls by symbol, and counters by body. */
    int32_t *first_in, *in;           /* origins of edges */
    int32_t *first_return, *returns;  /* calls */
    int32_t *first_site, *sites;      /* calls */
    int32_t *first_counter, *counters;
    int32_t *origin; /* [n_calls] state that the call belongs to */
    bool *settled;   /* [n_states] */
    bool failed;
} finder;

static void heap_push(finder *f, size_t length, int32_t state)
{
    if (!mica_room(&f->heap, &f->heap_cap, (int64_t)f->n_heap + 1, sizeof *f->heap)) {
        f->failed = true;
        return;
    }
    int32_t i = f->n_heap++;
    for (; i > 0 && f->heap[(i - 1) / 2].length > length; i = (i - 1) / 2)
        f->heap[i] = f->heap[(i - 1) / 2];
    f->heap[i] = (entry){length, state};
}

static int32_t heap_pop(finder *f)
{
    int32_t state = f->heap[0].state, n = --f->n_heap, i = 0;
    entry last = f->heap[n];
    for (int32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && f->heap[child + 1].length < f->heap[child].length)
            child++;
        if (f->heap[child].length >= last.length)
            break;
        f->heap[i] = f->heap[child];
    }
    if (n > 0)
        f->heap[i] = last;
    return state;
}

static void relax(finder *f, int32_t state, size_t length)
{
    if (length >= f->a->shortest[state])
        return;
    f->a->shortest[state] = length;
    heap_push(f, length, state);
}

static size_t multiply(size_t length, int32_t times)
{
    size_t product;
    return mica_mul_size(length, (size_t)times, &product) && product < MICA_FA_FAR ? product : MICA_FA_FAR;
}

static void settle_symbol(finder *f, int32_t symbol, size_t length)
{
    mica_automaton *a = f->a;
    a->symbols[symbol].length = length;
    for (int32_t i = f->first_site[symbol]; i < f->first_site[symbol + 1]; i++) {
        int32_t call = f->sites[i], to = a->calls[call].to;
        if (f->settled[to])
            relax(f, f->origin[call], mica_sum_lengths(length, a->shortest[to]));
    }
}

static void settle(finder *f, int32_t s)
{
    mica_automaton *a = f->a;
    size_t length = a->shortest[s];
    int32_t symbol = a->owner[s];
    f->settled[s] = true;
    for (int32_t i = f->first_in[s]; i < f->first_in[s + 1]; i++)
        relax(f, f->in[i], mica_sum_lengths(length, 1));
    for (int32_t i = f->first_return[s]; i < f->first_return[s + 1]; i++) {
        int32_t call = f->returns[i];
        size_t inner = a->symbols[a->calls[call].symbol].length;
        if (inner < MICA_FA_NEVER)
            relax(f, f->origin[call], mica_sum_lengths(length, inner));
    }
    if (a->symbols[symbol].start != s)
        return;
    settle_symbol(f, symbol, length);
    for (int32_t i = f->first_counter[symbol]; i < f->first_counter[symbol + 1]; i++) {
        int32_t need = a->symbols[f->counters[i]].need;
        settle_symbol(f, f->counters[i], multiply(length, need > 0 ? need : 1));
    }
}

/* Groups the items 0..n by key[i] (-1: left out): first[k + 1] counts on entry of the second pass. */
static bool group(int32_t **first, int32_t **items, const int32_t *key, int32_t n, int32_t n_keys)
{
    *first = mica_new_array((size_t)n_keys + 2, sizeof **first);
    *items = mica_new_array((size_t)n, sizeof **items);
    if (!*first || !*items)
        return false;
    for (int32_t i = 0; i < n; i++)
        if (key[i] >= 0)
            (*first)[key[i] + 2]++;
    for (int32_t k = 2; k < n_keys + 2; k++)
        (*first)[k] += (*first)[k - 1];
    for (int32_t i = 0; i < n; i++)
        if (key[i] >= 0)
            (*items)[(*first)[key[i] + 1]++] = i;
    return true;
}

static bool reverse_all(finder *f)
{
    mica_automaton *a = f->a;
    int32_t most = a->n_edges > a->n_calls ? a->n_edges : a->n_calls;
    int32_t *key = mica_new_array((size_t)(most > a->n_symbols ? most : a->n_symbols), sizeof *key);
    int32_t *from = mica_new_array((size_t)a->n_edges, sizeof *from);
    bool ok = key && from;
    for (int32_t i = 0; ok && i < a->n_edges; i++)
        key[i] = a->edges[i].to;
    ok = ok && group(&f->first_in, &f->in, key, a->n_edges, a->n_states);
    for (int32_t s = 0; ok && s < a->n_states; s++) {
        for (int32_t i = a->first_edge[s]; i < a->first_edge[s + 1]; i++)
            from[i] = s;
        for (int32_t i = a->first_call[s]; i < a->first_call[s + 1]; i++)
            f->origin[i] = s;
    }
    for (int32_t i = 0; ok && i < a->n_edges; i++)
        f->in[i] = from[f->in[i]];
    for (int32_t i = 0; ok && i < a->n_calls; i++)
        key[i] = a->calls[i].to;
    ok = ok && group(&f->first_return, &f->returns, key, a->n_calls, a->n_states);
    for (int32_t i = 0; ok && i < a->n_calls; i++)
        key[i] = a->calls[i].symbol;
    ok = ok && group(&f->first_site, &f->sites, key, a->n_calls, a->n_symbols);
    for (int32_t i = 0; ok && i < a->n_symbols; i++)
        key[i] = a->symbols[i].body;
    ok = ok && group(&f->first_counter, &f->counters, key, a->n_symbols, a->n_symbols);
    free(key);
    free(from);
    return ok;
}

/* Takes out edges and calls that lead to what cannot be completed. */
static void prune(mica_automaton *a)
{
    int32_t n_edges = 0, n_calls = 0;
    for (int32_t s = 0; s < a->n_states; s++) {
        int32_t edge = a->first_edge[s], edge_end = a->first_edge[s + 1];
        int32_t call = a->first_call[s], call_end = a->first_call[s + 1];
        a->first_edge[s] = n_edges; /* the next state's entries are read before they are written */
        a->first_call[s] = n_calls;
        for (; edge < edge_end; edge++)
            if (a->shortest[a->edges[edge].to] < MICA_FA_NEVER)
                a->edges[n_edges++] = a->edges[edge];
        for (; call < call_end; call++)
            if (a->shortest[a->calls[call].to] < MICA_FA_NEVER && a->symbols[a->calls[call].symbol].length < MICA_FA_NEVER)
                a->calls[n_calls++] = a->calls[call];
    }
    a->first_edge[a->n_states] = a->n_edges = n_edges;
    a->first_call[a->n_states] = a->n_calls = n_calls;
}

static void find_going_on(mica_automaton *a)
{
    for (int32_t s = 0; s < a->n_states; s++) {
        size_t least = MICA_FA_NEVER;
        for (int32_t i = a->first_edge[s]; i < a->first_edge[s + 1]; i++) {
            size_t length = mica_sum_lengths(1, a->shortest[a->edges[i].to]);
            least = length < least ? length : least;
        }
        for (int32_t i = a->first_call[s]; i < a->first_call[s + 1]; i++) {
            size_t length = mica_sum_lengths(a->symbols[a->calls[i].symbol].length, a->shortest[a->calls[i].to]);
            least = length < least ? length : least;
        }
        a->going_on[s] = least;
    }
}

mica_status mica_fa_find_costs(mica_automaton *a, mica_error *err)
{
    finder f = {.a = a};
    f.origin = mica_new_array((size_t)a->n_calls, sizeof *f.origin);
    f.settled = mica_new_array((size_t)a->n_states, sizeof *f.settled);
    a->shortest = mica_new_array((size_t)a->n_states, sizeof *a->shortest);
    a->going_on = mica_new_array((size_t)a->n_states, sizeof *a->going_on);
    f.failed = !f.origin || !f.settled || !a->shortest || !a->going_on || !reverse_all(&f);
    for (int32_t i = 0; i < a->n_symbols; i++)
        a->symbols[i].length = MICA_FA_NEVER;
    for (int32_t s = 0; !f.failed && s < a->n_states; s++)
        a->shortest[s] = MICA_FA_NEVER;
    for (int32_t s = 0; !f.failed && s < a->n_states; s++)
        if (a->final[s])
            relax(&f, s, 0);
    while (f.n_heap > 0 && !f.failed) {
        int32_t s = heap_pop(&f);
        if (!f.settled[s])
            settle(&f, s);
    }
    if (!f.failed) {
        prune(a);
        find_going_on(a);
    }
    free(f.heap);
    free(f.first_in);
    free(f.in);
    free(f.first_return);
    free(f.returns);
    free(f.first_site);
    free(f.sites);
    free(f.first_counter);
    free(f.counters);
    free(f.origin);
    free(f.settled);
    return f.failed ? mica_fa_nomem(err) : MICA_OK;
}
