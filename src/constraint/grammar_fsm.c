/* grammar_fsm.c - finite automata as nodes of a grammar: copied, sorted, and without states that lead nowhere. */
#include "constraint/grammar_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_FSM_EDGES (16 * MICA_G_MAX_NODES) /* of all automata of one grammar together */

/* Working space: one automaton, its edges by origin and by target, and what is known of its states. */
typedef struct trimmer {
    const mica_fsm *fsm;
    int32_t *first, *order; /* edges of state s: order[first[s] .. first[s + 1]) */
    int32_t *work;
    bool *reached, *useful;
    int32_t *renumbered;
} trimmer;

static bool is_well_formed(const mica_fsm *fsm)
{
    if (fsm->n_states < 1 || fsm->n_states > MAX_FSM_EDGES || fsm->n_edges < 0)
        return false;
    for (int32_t i = 0; i < fsm->n_edges; i++) {
        const mica_fsm_edge *e = &fsm->edges[i];
        if (e->from < 0 || e->from >= fsm->n_states || e->to < 0 || e->to >= fsm->n_states || e->low > e->high)
            return false;
    }
    return true;
}

static bool trimmer_new(trimmer *t, const mica_fsm *fsm)
{
    size_t states = (size_t)fsm->n_states;
    *t = (trimmer){.fsm = fsm};
    t->first = mica_new_array(states + 2, sizeof *t->first);
    t->order = mica_new_array((size_t)fsm->n_edges, sizeof *t->order);
    t->work = mica_new_array(states, sizeof *t->work);
    t->reached = mica_new_array(states, sizeof *t->reached);
    t->useful = mica_new_array(states, sizeof *t->useful);
    t->renumbered = mica_new_array(states, sizeof *t->renumbered);
    return t->first && t->order && t->work && t->reached && t->useful && t->renumbered;
}

static void trimmer_free(trimmer *t)
{
    free(t->first);
    free(t->order);
    free(t->work);
    free(t->reached);
    free(t->useful);
    free(t->renumbered);
}

/* Sorts the edges by origin (or by target). Stable. */
static void order_edges(trimmer *t, bool by_target)
{
    const mica_fsm *fsm = t->fsm;
    memset(t->first, 0, ((size_t)fsm->n_states + 2) * sizeof *t->first);
    for (int32_t i = 0; i < fsm->n_edges; i++)
        t->first[(by_target ? fsm->edges[i].to : fsm->edges[i].from) + 2]++;
    for (int32_t s = 0; s < fsm->n_states; s++)
        t->first[s + 2] += t->first[s + 1];
    for (int32_t i = 0; i < fsm->n_edges; i++)
        t->order[t->first[(by_target ? fsm->edges[i].to : fsm->edges[i].from) + 1]++] = i;
}

/* Marks all states that the first n of `work` (marked already) reach, along the edges or against them. */
static void spread(trimmer *t, int32_t n, bool backwards, bool *marks)
{
    order_edges(t, backwards);
    while (n) {
        int32_t s = t->work[--n];
        for (int32_t i = t->first[s]; i < t->first[s + 1]; i++) {
            const mica_fsm_edge *e = &t->fsm->edges[t->order[i]];
            int32_t to = backwards ? e->from : e->to;
            if (!marks[to]) {
                marks[to] = true;
                t->work[n++] = to;
            }
        }
    }
}

/* Finds the states between the start and an accepting state. The edges are left in order of their origin. */
static int32_t find_useful(trimmer *t)
{
    int32_t n = 0, n_useful = 0;
    for (int32_t s = 0; s < t->fsm->n_states; s++)
        if (t->fsm->accepts[s]) {
            t->useful[s] = true;
            t->work[n++] = s;
        }
    spread(t, n, true, t->useful);
    t->reached[0] = true;
    t->work[0] = 0;
    spread(t, 1, false, t->reached);
    for (int32_t s = 0; s < t->fsm->n_states; s++) {
        t->useful[s] = t->useful[s] && t->reached[s];
        t->renumbered[s] = t->useful[s] ? n_useful++ : -1;
    }
    return n_useful;
}

/* Copies the useful states and edges. */
static bool copy_useful(const trimmer *t, int32_t n_states, mica_fsm *out)
{
    *out = (mica_fsm){.n_states = n_states};
    out->edges = mica_new_array((size_t)t->fsm->n_edges, sizeof *out->edges);
    out->accepts = mica_new_array((size_t)n_states, sizeof *out->accepts);
    if (!out->edges || !out->accepts)
        return false;
    for (int32_t s = 0; s < t->fsm->n_states; s++)
        if (t->useful[s])
            out->accepts[t->renumbered[s]] = t->fsm->accepts[s];
    for (int32_t i = 0; i < t->fsm->n_edges; i++) {
        mica_fsm_edge e = t->fsm->edges[t->order[i]];
        e.from = t->renumbered[e.from];
        e.to = t->renumbered[e.to];
        if (e.from >= 0 && e.to >= 0)
            out->edges[out->n_edges++] = e;
    }
    return true;
}

mica_gnode mica_grammar_fsm(mica_grammar *g, const mica_fsm *fsm)
{
    mica_grammar_builder *b = (mica_grammar_builder *)g;
    trimmer t;
    mica_fsm copy = {0};
    mica_gnode node = MICA_GNODE_FAILED;
    if (g->failure)
        return node;
    if (!is_well_formed(fsm))
        return mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "a finite automaton has an edge that is out of range");
    if ((b->n_fsm_edges += fsm->n_edges) > MAX_FSM_EDGES)
        return mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1,
                                 "the grammar is too large: more than %d edges of finite automata", MAX_FSM_EDGES);
    bool ok = trimmer_new(&t, fsm);
    int32_t n_useful = ok ? find_useful(&t) : 0;
    if (ok && !t.useful[0])
        node = mica_grammar_never(g);
    else if (!ok || !copy_useful(&t, n_useful, &copy))
        node = mica_grammar_nomem(g, (size_t)fsm->n_edges * sizeof *fsm->edges);
    else if (copy.n_edges == 0)
        node = mica_grammar_empty(g);
    else if (mica_grammar_reserve(g, &g->fsms, g->n_fsms, 1, sizeof *g->fsms)) {
        g->fsms[g->n_fsms] = copy;
        copy = (mica_fsm){0};
        node = mica_grammar_node(g, (mica_gnode_data){.kind = MICA_G_FSM, .first = g->n_fsms++});
    }
    trimmer_free(&t);
    free(copy.edges);
    free(copy.accepts);
    return node;
}
