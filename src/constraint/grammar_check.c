/* grammar_check.c - what can only be seen when a grammar is complete. Vertices of the graphs here are the nodes and, behind
 * them, the rules (vertex n_nodes + rule). Children of a node were made before it, so every cycle leads through a rule. All
 * walks have explicit stacks or are worklists: linear in the size of the grammar, whatever its depth. */
#include "constraint/grammar_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SHOWN_RULES 4 /* of a cycle, in a message */

typedef struct checker {
    mica_grammar *g;
    int32_t n_vertices;
    bool *nullable, *productive; /* [n_vertices] */
} checker;

/* A vertex on a walk's stack and the next of its children to look at. */
typedef struct step {
    int32_t vertex, next;
} step;

static int32_t n_children_of(const mica_grammar *g, int32_t vertex)
{
    if (vertex >= g->n_nodes)
        return g->rules[vertex - g->n_nodes].body >= 0;
    const mica_gnode_data *node = &g->nodes[vertex];
    switch (node->kind) {
    case MICA_G_SEQ:
    case MICA_G_ALT:
    case MICA_G_REPEAT:
        return node->count;
    case MICA_G_CALL:
        return 1;
    default:
        return 0;
    }
}

static int32_t child_of(const mica_grammar *g, int32_t vertex, int32_t i)
{
    if (vertex >= g->n_nodes)
        return g->rules[vertex - g->n_nodes].body;
    const mica_gnode_data *node = &g->nodes[vertex];
    return node->kind == MICA_G_CALL ? g->n_nodes + node->first : g->children[node->first + i];
}

static void *new_array(checker *c, size_t count, size_t size)
{
    void *array = mica_new_array(count, size);
    if (!array)
        mica_grammar_nomem(c->g, count * size);
    return array;
}

/* ---- Undefined rules ---- */

/* Looks through the nodes of one rule that no earlier rule has. `stack` has room for each child of the grammar once. */
static bool check_calls(const mica_grammar *g, int32_t rule, int32_t *stack, bool *seen, int32_t *undefined)
{
    int32_t n = 0;
    stack[n++] = g->rules[rule].body;
    while (n) {
        int32_t vertex = stack[--n];
        if (seen[vertex])
            continue;
        seen[vertex] = true;
        const mica_gnode_data *node = &g->nodes[vertex];
        if (node->kind == MICA_G_CALL && g->rules[node->first].body < 0) {
            *undefined = node->first;
            return false;
        }
        for (int32_t i = n_children_of(g, vertex); node->kind != MICA_G_CALL && i > 0; i--)
            stack[n++] = child_of(g, vertex, i - 1);
    }
    return true;
}

static void check_defined(checker *c, int32_t root)
{
    mica_grammar *g = c->g;
    if (g->rules[root].body < 0) {
        mica_grammar_fail(g, MICA_BAD_TEXT, -1, "rule \"%.*s\" is not defined", MICA_CLIPPED(g->rules[root].name));
        return;
    }
    int32_t *stack = new_array(c, (size_t)g->n_children + 1, sizeof *stack), undefined;
    bool *seen = new_array(c, (size_t)g->n_nodes, sizeof *seen);
    for (int32_t r = 0; stack && seen && r < g->n_rules; r++)
        if (g->rules[r].body >= 0 && !check_calls(g, r, stack, seen, &undefined)) {
            mica_grammar_fail(g, MICA_BAD_TEXT, -1, "rule \"%.*s\" is not defined, and rule \"%.*s\" uses it",
                              MICA_CLIPPED(g->rules[undefined].name), MICA_CLIPPED(g->rules[r].name));
            break;
        }
    free(stack);
    free(seen);
}

/* ---- What may be empty, and what matches any text at all ---- */

static bool fsm_accepts_any(const mica_fsm *fsm)
{
    for (int32_t s = 0; s < fsm->n_states; s++)
        if (fsm->accepts[s])
            return true; /* states that the start does not reach were removed */
    return false;
}

/* Whether a vertex matches the empty text (`empty`) or some text, as far as that does not depend on its children. */
static bool holds_alone(const mica_grammar *g, int32_t vertex, bool empty)
{
    if (vertex >= g->n_nodes)
        return false;
    const mica_gnode_data *node = &g->nodes[vertex];
    switch (node->kind) {
    case MICA_G_EMPTY:
        return true;
    case MICA_G_SET:
    case MICA_G_LITERAL:
        return !empty;
    case MICA_G_REPEAT:
        return node->min == 0;
    case MICA_G_FSM:
        return empty ? g->fsms[node->first].accepts[0] : fsm_accepts_any(&g->fsms[node->first]);
    default:
        return false;
    }
}

/* For each vertex those that have it as a child: parents[first[v] .. first[v + 1]). */
static bool list_parents(checker *c, int32_t **first_out, int32_t **parents_out)
{
    const mica_grammar *g = c->g;
    size_t n_edges = 0;
    int32_t *first = new_array(c, (size_t)c->n_vertices + 2, sizeof *first);
    for (int32_t v = 0; first && v < c->n_vertices; v++)
        for (int32_t i = 0, n = n_children_of(g, v); i < n; i++, n_edges++)
            first[child_of(g, v, i) + 2]++;
    int32_t *parents = first ? new_array(c, n_edges, sizeof *parents) : NULL;
    *first_out = first;
    *parents_out = parents;
    if (!parents)
        return false;
    for (int32_t v = 0; v < c->n_vertices; v++)
        first[v + 2] += first[v + 1];
    for (int32_t v = 0; v < c->n_vertices; v++) /* first[child + 1] runs from the start of child's list to its end */
        for (int32_t i = 0, n = n_children_of(g, v); i < n; i++)
            parents[first[child_of(g, v, i) + 1]++] = v;
    return true;
}

/* Finds the vertices that match the empty text (`empty`) or some text: the least set in which a sequence needs all its
 * children and everything else one. Each edge is followed once. */
static bool solve(checker *c, bool empty, bool *holds)
{
    const mica_grammar *g = c->g;
    int32_t *first = NULL, *parents = NULL, n = 0, *missing = new_array(c, (size_t)c->n_vertices, sizeof *missing);
    int32_t *work = new_array(c, (size_t)c->n_vertices, sizeof *work);
    bool ok = missing && work && list_parents(c, &first, &parents);
    for (int32_t v = 0; ok && v < c->n_vertices; v++) {
        missing[v] = v < g->n_nodes && g->nodes[v].kind == MICA_G_SEQ ? g->nodes[v].count : 1;
        if (holds_alone(g, v, empty)) {
            holds[v] = true;
            work[n++] = v;
        }
    }
    while (ok && n) {
        int32_t v = work[--n];
        for (int32_t i = first[v]; i < first[v + 1]; i++) {
            int32_t parent = parents[i];
            if (holds[parent] || --missing[parent] > 0)
                continue;
            holds[parent] = true;
            work[n++] = parent;
        }
    }
    free(first);
    free(parents);
    free(missing);
    free(work);
    return ok;
}

/* ---- Left recursion ---- */

/* Whether the i-th child of a vertex may stand at its very start. */
static bool is_leftmost(const checker *c, int32_t vertex, int32_t i)
{
    if (i == 0 || vertex >= c->g->n_nodes || c->g->nodes[vertex].kind != MICA_G_SEQ)
        return true;
    return c->nullable[child_of(c->g, vertex, i - 1)]; /* and those before it, or this one would not have been reached */
}

/* Fails the grammar for a cycle that the steps make, from that at `vertex` to the last. */
static void fail_cycle(checker *c, const step *steps, int32_t n, int32_t vertex)
{
    const mica_grammar *g = c->g;
    char names[SHOWN_RULES * 44];
    size_t length = 0;
    int32_t i = n - 1, first = -1, shown = 0;
    while (steps[i].vertex != vertex)
        i--;
    for (; i < n; i++) {
        if (steps[i].vertex < g->n_nodes)
            continue;
        const char *name = g->rules[steps[i].vertex - g->n_nodes].name;
        first = first < 0 ? steps[i].vertex - g->n_nodes : first;
        int size = mica_grammar_clip(name) < 40 ? mica_grammar_clip(name) : 0;
        if (shown++ < SHOWN_RULES && size) {
            memcpy(names + length, name, (size_t)size);
            memcpy(names + length + size, " -> ", 4);
            length += (size_t)size + 4;
        }
    }
    const char *name = g->rules[first].name;
    mica_grammar_fail(c->g, MICA_UNSUPPORTED, -1,
                      "rule \"%.*s\" is left-recursive (%.*s%s%.*s): write it as a repetition, for example a ::= b (\"+\" b)*",
                      MICA_CLIPPED(name), (int)length, names, shown > SHOWN_RULES ? "... -> " : "", MICA_CLIPPED(name));
}

/* Walks from one vertex along what may stand at the start of it. marks: 1 on the stack, 2 done. */
static bool walk_left(checker *c, int32_t from, uint8_t *marks, step *steps)
{
    int32_t n = 0;
    steps[n++] = (step){.vertex = from};
    marks[from] = 1;
    while (n) {
        step *s = &steps[n - 1];
        if (s->next >= n_children_of(c->g, s->vertex) || !is_leftmost(c, s->vertex, s->next)) {
            marks[s->vertex] = 2;
            n--;
            continue;
        }
        int32_t child = child_of(c->g, s->vertex, s->next++);
        if (marks[child] == 1) {
            fail_cycle(c, steps, n, child);
            return false;
        }
        if (marks[child] == 0) {
            marks[child] = 1;
            steps[n++] = (step){.vertex = child};
        }
    }
    return true;
}

static void check_left_recursion(checker *c)
{
    uint8_t *marks = new_array(c, (size_t)c->n_vertices, sizeof *marks);
    step *steps = new_array(c, (size_t)c->n_vertices, sizeof *steps);
    for (int32_t r = 0; marks && steps && r < c->g->n_rules; r++) {
        int32_t vertex = c->g->n_nodes + r;
        if (marks[vertex] == 0 && !walk_left(c, vertex, marks, steps))
            break;
    }
    free(marks);
    free(steps);
}

/* ---- Dead ends ---- */

/* Turns all that matches no text into MICA_G_NEVER, so that a constrained reply cannot run into it. */
static void remove_dead_ends(checker *c, int32_t root)
{
    mica_grammar *g = c->g;
    if (!c->productive[g->n_nodes + root]) {
        mica_grammar_fail(g, MICA_INVALID_ARGUMENT, -1, "no text satisfies the grammar: rule \"%.*s\" can never be completed",
                          MICA_CLIPPED(g->rules[root].name));
        return;
    }
    for (int32_t v = 0; v < g->n_nodes; v++)
        if (!c->productive[v])
            g->nodes[v] = (mica_gnode_data){.kind = MICA_G_NEVER};
}

void mica_grammar_check(mica_grammar *g, int32_t root)
{
    checker c = {.g = g, .n_vertices = g->n_nodes + g->n_rules};
    check_defined(&c, root);
    if (g->failure)
        return;
    c.nullable = new_array(&c, (size_t)c.n_vertices, sizeof *c.nullable);
    c.productive = new_array(&c, (size_t)c.n_vertices, sizeof *c.productive);
    if (c.nullable && c.productive && solve(&c, true, c.nullable) && solve(&c, false, c.productive)) {
        check_left_recursion(&c);
        if (!g->failure)
            remove_dead_ends(&c, root);
    }
    free(c.nullable);
    free(c.productive);
}
