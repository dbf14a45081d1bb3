/* mask_walk.c - the walk over the trie: for each node one look into a table, as long as the engine has seen the place
 * before. */
#include "constraint/mask_impl.h"

enum { STEP_COST = 50 }; /* nodes that take as long as one step of the engine */

/* Frees the engine's space; the walk's configurations get new numbers. */
static mica_status flush(mica_walk *w, int depth, int base, mica_error *err)
{
    int32_t roots[MICA_TRIE_MAX_BYTES + 3];
    size_t n = (size_t)(depth - base + 1);
    roots[0] = w->start;
    memcpy(roots + 1, w->stack + base, n * sizeof *roots);
    mica_status status = mica_fa_engine_flush(w->engine, roots, n + 1, w->kept, w->n_kept, err);
    if (!status) {
        w->start = roots[0];
        memcpy(w->stack + base, roots + 1, n * sizeof *roots);
    }
    return status;
}

/* Notes a node at which the bottom was reached, if some token goes on from it as the grammar may. */
static mica_status note_open(mica_walk *w, int32_t node, mica_error *err)
{
    const mica_trie_node *nodes = w->trie->nodes;
    int32_t end = node + mica_trie_size(nodes[node]), child = node + 1;
    while (child < end && !mica_set_has(w->follow, mica_trie_byte(nodes[child])))
        child += mica_trie_size(nodes[child]);
    if (child >= end)
        return MICA_OK;
    if (!mica_room(&w->open, &w->open_cap, (int64_t)w->n_open + 1, sizeof *w->open))
        return mica_fa_nomem(err);
    w->open[w->n_open++] = node;
    return MICA_OK;
}

static mica_status unknown_step(mica_walk *w, mica_trie_node node, int base, mica_fa_cell *cell, mica_error *err)
{
    mica_status status = MICA_OK;
    int depth = mica_trie_depth(node);
    if (mica_fa_engine_full(w->engine))
        status = flush(w, depth, base, err);
    w->cost += STEP_COST;
    return status ? status : mica_fa_step(w->engine, w->stack[depth], mica_trie_byte(node), cell, err);
}

mica_status mica_walk_nodes(mica_walk *w, int32_t begin, int32_t end, int chars, mica_error *err)
{
    const mica_token_trie *t = w->trie;
    if (begin >= end)
        return MICA_OK;
    int base = mica_trie_depth(t->nodes[begin]);
    int64_t visited = 0;
    mica_status status = MICA_OK;
    w->stack[base] = w->start;
    for (int32_t i = begin; i < end && !status; visited++) {
        mica_trie_node node = t->nodes[i];
        int depth = mica_trie_depth(node);
        if (chars > 0 && t->chars[i] <= chars) {
            i += mica_trie_size(node);
            continue;
        }
        mica_fa_cell cell = w->engine->rows[(size_t)w->stack[depth] * MICA_FA_ROW + mica_trie_byte(node)];
        if (cell == MICA_FA_UNKNOWN)
            status = unknown_step(w, node, base, &cell, err);
        if (cell == MICA_FA_DEAD || status) {
            i += mica_trie_size(node);
            continue;
        }
        if (mica_trie_token(node) >= 0)
            w->tokens[w->n_tokens++] = mica_trie_token(node);
        if ((cell & MICA_FA_ENDED) && w->follow)
            status = note_open(w, i, err);
        w->stack[depth + 1] = mica_fa_cell_config(cell);
        i++;
    }
    w->cost += visited;
    return status;
}
