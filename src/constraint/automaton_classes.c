/* automaton_classes.c - states that short tokens cannot tell apart: the arrays mica_automaton.same.
 *
 * Bounded lengths make long chains of states (an e-mail address has 64 in its first part) that differ only in what comes
 * after more bytes than a token has. Masks of such states are found once. The classes are refined in rounds (E. F. Moore,
 * 1956): after round n + 1 states of one class do the same over n bytes, called symbols being the same. */
#include "constraint/automaton_impl.h"

#define MAX_EDGES (1 << 17) /* 24 rounds over so many take some 20 ms; in larger automata each state is a class */

typedef struct classes {
    const mica_automaton *a;
    int32_t *old, *now; /* [n_states] class: its first state */
    int32_t *slots;     /* hash of states: number + 1; 0: free */
    uint32_t mask;
    int bytes;
} classes;

static int capped(const classes *c, uint8_t chars) { return chars < c->bytes ? chars : c->bytes; }

static uint32_t mix(uint32_t h, uint32_t x)
{
    h = (h ^ x) * 0x9E3779B1u;
    return h ^ h >> 15;
}

static uint32_t hash_state(const classes *c, int32_t s)
{
    const mica_automaton *a = c->a;
    uint32_t h = mix((uint32_t)a->owner[s], a->final[s]);
    for (int slice = 0; slice < MICA_SLICES; slice++)
        h = mix(h, (uint32_t)capped(c, a->chars[s][slice]));
    for (int32_t i = a->first_edge[s]; i < a->first_edge[s + 1]; i++)
        h = mix(h, (uint32_t)c->old[a->edges[i].to] << 16 ^ (uint32_t)a->edges[i].low << 8 ^ a->edges[i].high);
    for (int32_t i = a->first_call[s]; i < a->first_call[s + 1]; i++)
        h = mix(h, (uint32_t)c->old[a->calls[i].to] << 16 ^ (uint32_t)a->calls[i].symbol);
    return h;
}

/* Whether two states look the same, what they lead to being told apart by class. */
static bool look_same(const classes *c, int32_t s, int32_t t)
{
    const mica_automaton *a = c->a;
    int32_t n_edges = a->first_edge[s + 1] - a->first_edge[s], n_calls = a->first_call[s + 1] - a->first_call[s];
    bool same = a->owner[s] == a->owner[t] && a->final[s] == a->final[t];
    same = same && n_edges == a->first_edge[t + 1] - a->first_edge[t] && n_calls == a->first_call[t + 1] - a->first_call[t];
    for (int slice = 0; slice < MICA_SLICES; slice++)
        same = same && capped(c, a->chars[s][slice]) == capped(c, a->chars[t][slice]);
    for (int32_t i = 0; same && i < n_edges; i++) { /* `edges` and `calls` are NULL where there are none */
        const mica_fa_edge *e = &a->edges[a->first_edge[s] + i], *f = &a->edges[a->first_edge[t] + i];
        same = e->low == f->low && e->high == f->high && c->old[e->to] == c->old[f->to];
    }
    for (int32_t i = 0; same && i < n_calls; i++) {
        const mica_fa_call *p = &a->calls[a->first_call[s] + i], *q = &a->calls[a->first_call[t] + i];
        same = p->symbol == q->symbol && c->old[p->to] == c->old[q->to];
    }
    return same;
}

/* One round; returns the number of classes. */
static int32_t refine(classes *c)
{
    int32_t n = 0;
    memset(c->slots, 0, ((size_t)c->mask + 1) * sizeof *c->slots);
    for (int32_t s = 0; s < c->a->n_states; s++) {
        uint32_t h = hash_state(c, s) & c->mask;
        while (c->slots[h] && !look_same(c, s, c->slots[h] - 1))
            h = (h + 1) & c->mask;
        if (!c->slots[h]) {
            c->slots[h] = s + 1;
            n++;
        }
        c->now[s] = c->slots[h] - 1;
    }
    return n;
}

static void find_classes(classes *c)
{
    memset(c->old, 0, (size_t)c->a->n_states * sizeof *c->old); /* all states are one class */
    for (int32_t round = 0, before = 0; round < c->bytes + 1; round++) {
        int32_t n = refine(c), *swap = c->old;
        c->old = c->now;
        c->now = swap;
        if (n == before)
            return; /* no byte tells more of them apart */
        before = n;
    }
}

mica_status mica_fa_find_classes(mica_automaton *a, int bytes, int32_t **same, mica_error *err)
{
    size_t n = (size_t)a->n_states;
    uint32_t size = 64;
    while (size < 2 * n)
        size *= 2;
    classes c = {.a = a, .mask = size - 1, .bytes = bytes};
    c.old = mica_new_array(n, sizeof *c.old);
    c.now = mica_new_array(n, sizeof *c.now);
    c.slots = mica_new_array(size, sizeof *c.slots);
    bool good = c.old && c.now && c.slots;
    if (good && a->n_edges + a->n_calls <= MAX_EDGES)
        find_classes(&c);
    else
        for (int32_t s = 0; good && s < a->n_states; s++)
            c.old[s] = s;
    *same = c.old;
    free(c.now);
    free(c.slots);
    return good ? MICA_OK : mica_fa_nomem(err);
}
