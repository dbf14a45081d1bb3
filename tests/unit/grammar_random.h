/* grammar_random.h - random small grammars over "ab", and a name for what failed. */
#ifndef MICA_TESTS_GRAMMAR_RANDOM_H
#define MICA_TESTS_GRAMMAR_RANDOM_H
#include <string.h>

#include "base/rng.h"
#include "constraint/grammar.h"

static inline int32_t pick(mica_rng *rng, int32_t n) { return (int32_t)(mica_rng_next(rng) % (uint64_t)n); }

static inline mica_gnode random_leaf(mica_grammar *g, mica_rng *rng, int32_t n_rules)
{
    static const char *const TEXTS[] = {"a", "b", "ab", "ba", "aab", "", "bb"};
    const char *text;
    mica_byte_set both = {{0}};
    both.bits['a' / 32] |= 3u << 'a' % 32;
    switch (pick(rng, 8)) {
    case 0:
        return mica_grammar_bytes(g, &both);
    case 1:
        return mica_grammar_empty(g);
    case 2:
    case 3:
    case 4:
        return mica_grammar_call(g, pick(rng, n_rules));
    default:
        text = TEXTS[pick(rng, 7)];
        return mica_grammar_literal(g, text, strlen(text));
    }
}

static inline mica_gnode random_fsm(mica_grammar *g, mica_rng *rng)
{
    mica_fsm_edge edges[12];
    bool accepts[4];
    mica_fsm f = {.n_states = 1 + pick(rng, 4), .edges = edges, .accepts = accepts};
    for (int32_t s = 0; s < f.n_states; s++) {
        accepts[s] = pick(rng, 3) == 0;
        for (int32_t i = pick(rng, 4); i > 0; i--) {
            uint8_t low = (uint8_t)('a' + pick(rng, 2));
            uint8_t high = low == 'b' ? low : (uint8_t)(low + pick(rng, 2));
            edges[f.n_edges++] = (mica_fsm_edge){s, pick(rng, f.n_states), low, high};
        }
    }
    return mica_grammar_fsm(g, &f);
}

/* A node that takes so many states that repetitions of it are counted, however few; what is added is too long to matter. */
static inline mica_gnode heavy(mica_grammar *g, mica_gnode node)
{
    char text[100];
    memset(text, 'c', sizeof text);
    return mica_grammar_alt(g, (mica_gnode[]){mica_grammar_literal(g, text, sizeof text), node}, 2);
}

static inline mica_gnode random_repeat(mica_grammar *g, mica_rng *rng, mica_gnode node)
{
    int32_t min = pick(rng, 4), max;
    switch (pick(rng, 5)) {
    case 0:
        max = MICA_G_NO_LIMIT;
        break;
    case 1:
        max = INT32_MAX;
        break;
    default:
        max = min + pick(rng, 4);
        break;
    }
    return mica_grammar_repeat(g, pick(rng, 2) ? heavy(g, node) : node, min, max);
}

static inline mica_gnode random_node(mica_grammar *g, mica_rng *rng, int32_t n_rules, int depth)
{
    mica_gnode parts[3];
    int n = 1 + pick(rng, 3);
    int kind = depth > 0 ? pick(rng, 7) : 6;
    if (kind < 5)
        for (int i = 0; i < n; i++)
            parts[i] = random_node(g, rng, n_rules, depth - 1);
    switch (kind) {
    case 0:
    case 1:
        return mica_grammar_seq(g, parts, (size_t)n);
    case 2:
    case 3:
        return mica_grammar_alt(g, parts, (size_t)n);
    case 4:
        return random_repeat(g, rng, parts[0]);
    case 5:
        return random_fsm(g, rng);
    default:
        return random_leaf(g, rng, n_rules);
    }
}

/* NULL if the grammar that came out is none: left-recursive, or without any text. */
static inline mica_grammar *random_grammar(uint64_t seed)
{
    static const char *const NAMES[] = {"root", "r1", "r2", "r3"};
    mica_grammar *g;
    mica_rng rng;
    mica_rng_seed(&rng, seed);
    int32_t n_rules = 1 + pick(&rng, 4);
    if (mica_grammar_new(&g, NULL))
        return NULL;
    for (int32_t r = 0; r < n_rules; r++)
        mica_grammar_rule(g, NAMES[r]);
    for (int32_t r = 0; r < n_rules; r++)
        mica_grammar_define(g, r, random_node(g, &rng, n_rules, 3));
    if (mica_grammar_finish(g, 0, NULL)) {
        mica_grammar_free(g);
        return NULL;
    }
    return g;
}

#endif
