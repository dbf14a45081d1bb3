/* grammar_match.h - a reference matcher for grammars, straight from their definition and with nothing in common with the
 * automaton: a node maps a set of positions in the text to the set of positions behind what it reads there. For texts of up
 * to 63 bytes. */
#ifndef MICA_TESTS_GRAMMAR_MATCH_H
#define MICA_TESTS_GRAMMAR_MATCH_H
#include <stdlib.h>
#include <string.h>

#include "constraint/grammar.h"

#define GRAMMAR_MATCH_MAX 63

typedef struct grammar_text {
    const mica_grammar *g;
    const unsigned char *bytes;
    int n;
} grammar_text;

static uint64_t grammar_ends(const grammar_text *t, mica_gnode node, uint64_t from);

static inline uint64_t grammar_ends_fsm(const grammar_text *t, const mica_fsm *fsm, uint64_t from)
{
    uint64_t ends = 0, *at = calloc((size_t)fsm->n_states, sizeof *at);
    at[0] = from;
    for (int pos = 0; pos <= t->n; pos++) {
        for (int32_t s = 0; s < fsm->n_states; s++)
            if (fsm->accepts[s])
                ends |= at[s] & (uint64_t)1 << pos;
        for (int32_t e = 0; pos < t->n && e < fsm->n_edges; e++) {
            const mica_fsm_edge *edge = &fsm->edges[e];
            if ((at[edge->from] >> pos & 1) && t->bytes[pos] >= edge->low && t->bytes[pos] <= edge->high)
                at[edge->to] |= (uint64_t)1 << (pos + 1);
        }
    }
    free(at);
    return ends;
}

static inline uint64_t grammar_ends_repeat(const grammar_text *t, const mica_gnode_data *node, uint64_t from)
{
    mica_gnode child = t->g->children[node->first];
    /* After 64 rounds nothing changes any more: either each reads a byte, or the child may be empty and the set only grows. */
    for (int32_t i = 0; i < node->min && i < 64; i++)
        from = grammar_ends(t, child, from);
    for (int32_t i = node->min; (node->max == MICA_G_NO_LIMIT || i < node->max); i++) {
        uint64_t more = from | grammar_ends(t, child, from);
        if (more == from)
            break;
        from = more;
    }
    return from;
}

static inline uint64_t grammar_ends_bytes(const grammar_text *t, const mica_gnode_data *node, uint64_t from)
{
    uint64_t ends = 0;
    int n = node->kind == MICA_G_SET ? 1 : node->count;
    for (int pos = 0; pos + n <= t->n; pos++) {
        if (!(from >> pos & 1))
            continue;
        bool fits = node->kind == MICA_G_SET
                        ? t->g->sets[node->first].bits[t->bytes[pos] / 32] >> t->bytes[pos] % 32 & 1
                        : memcmp(t->bytes + pos, t->g->bytes + node->first, (size_t)n) == 0;
        ends |= fits ? (uint64_t)1 << (pos + n) : 0;
    }
    return ends;
}

static uint64_t grammar_ends(const grammar_text *t, mica_gnode node, uint64_t from)
{
    const mica_gnode_data *data = &t->g->nodes[node];
    uint64_t ends = 0;
    if (!from)
        return 0;
    switch (data->kind) {
    case MICA_G_EMPTY:
        return from;
    case MICA_G_NEVER:
        return 0;
    case MICA_G_SET:
    case MICA_G_LITERAL:
        return grammar_ends_bytes(t, data, from);
    case MICA_G_SEQ:
        for (int32_t i = 0; i < data->count; i++)
            from = grammar_ends(t, t->g->children[data->first + i], from);
        return from;
    case MICA_G_ALT:
        for (int32_t i = 0; i < data->count; i++)
            ends |= grammar_ends(t, t->g->children[data->first + i], from);
        return ends;
    case MICA_G_REPEAT:
        return grammar_ends_repeat(t, data, from);
    case MICA_G_CALL:
        return grammar_ends(t, t->g->rules[data->first].body, from);
    case MICA_G_FSM:
        return grammar_ends_fsm(t, &t->g->fsms[data->first], from);
    }
    return 0;
}

/* Whether the grammar's root matches the whole text. */
static inline bool grammar_matches(const mica_grammar *g, const char *text, size_t length)
{
    grammar_text t = {.g = g, .bytes = (const unsigned char *)text, .n = (int)length};
    return length <= GRAMMAR_MATCH_MAX && grammar_ends(&t, g->rules[g->root].body, 1) >> length & 1;
}

#endif
