/* grammar_reference.h - the language of a small grammar, by brute force: for each node the set of all texts over "ab" of at
 * most REF_LENGTH letters that it matches, as the least fixed point. */
#ifndef MICA_TESTS_GRAMMAR_REFERENCE_H
#define MICA_TESTS_GRAMMAR_REFERENCE_H
#include <stdlib.h>
#include <string.h>

#include "constraint/grammar.h"

enum { REF_LENGTH = 6, REF_TEXTS = (2 << REF_LENGTH) - 1 };

/* Text i: with length n and letters as the bits of v (the first is the highest), i = 2^n - 1 + v. */
typedef struct ref_set {
    uint8_t has[REF_TEXTS];
} ref_set;

static inline int ref_length(int text) { return 31 - __builtin_clz((unsigned)text + 1); }
static inline int ref_join(int a, int b)
{
    int n = ref_length(a), m = ref_length(b);
    return n + m > REF_LENGTH ? -1 : (1 << (n + m)) - 1 + ((a + 1 - (1 << n)) << m) + (b + 1 - (1 << m));
}
static inline void ref_spell(int text, char *out)
{
    int n = ref_length(text), v = text + 1 - (1 << n);
    for (int i = 0; i < n; i++)
        out[i] = v >> (n - 1 - i) & 1 ? 'b' : 'a';
    out[n] = 0;
}
/* -1: another letter, or too long. */
static inline int ref_number(const char *text, size_t n)
{
    int v = 0;
    if (n > REF_LENGTH)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != 'a' && text[i] != 'b')
            return -1;
        v = v * 2 + (text[i] == 'b');
    }
    return (1 << n) - 1 + v;
}

static inline void ref_concat(const ref_set *a, const ref_set *b, ref_set *out)
{
    ref_set r = {{0}};
    for (int i = 0; i < REF_TEXTS; i++)
        for (int k = 0, end = (2 << (REF_LENGTH - ref_length(i))) - 1; a->has[i] && k < end; k++)
            r.has[ref_join(i, k)] |= b->has[k];
    *out = r;
}

static inline void ref_union(ref_set *to, const ref_set *from)
{
    for (int i = 0; i < REF_TEXTS; i++)
        to->has[i] |= from->has[i];
}

static inline void ref_repeat(const ref_set *one, int32_t min, int32_t max, ref_set *out)
{
    ref_set power = {{1}};
    *out = (ref_set){{0}};
    /* Powers of a set grow to a fixed point, or to nothing, within REF_LENGTH + 1 steps, or alternate in nothing that
     * matters. */
    int64_t end = max < 0 ? (int64_t)min + REF_LENGTH + 1 : max;
    for (int64_t k = 0; k <= end; k++) {
        if (k >= min)
            ref_union(out, &power);
        if (k > (int64_t)min + REF_LENGTH + 1)
            break;
        ref_set next;
        ref_concat(&power, one, &next);
        if (!memcmp(&next, &power, sizeof next) && k < min) {
            ref_union(out, &power);
            break;
        }
        power = next;
    }
}

static inline void ref_fsm(const mica_fsm *f, ref_set *out)
{
    *out = (ref_set){{0}};
    for (int t = 0; t < REF_TEXTS; t++) {
        char text[REF_LENGTH + 1];
        uint64_t now = 1;
        ref_spell(t, text);
        for (int i = 0; text[i]; i++) {
            uint64_t next = 0;
            for (int32_t e = 0; e < f->n_edges; e++)
                if (now >> f->edges[e].from & 1 && (uint8_t)text[i] >= f->edges[e].low && (uint8_t)text[i] <= f->edges[e].high)
                    next |= UINT64_C(1) << f->edges[e].to;
            now = next;
        }
        for (int32_t s = 0; s < f->n_states; s++)
            out->has[t] |= now >> s & 1 && f->accepts[s];
    }
}

static inline void ref_node(const mica_grammar *g, const ref_set *sets, mica_gnode n, ref_set *out)
{
    const mica_gnode_data *d = &g->nodes[n];
    int number;
    *out = (ref_set){{0}};
    switch (d->kind) {
    case MICA_G_EMPTY:
        out->has[0] = 1;
        break;
    case MICA_G_NEVER:
        break;
    case MICA_G_SET:
        for (int b = 0; b < 2; b++)
            out->has[1 + b] = g->sets[d->first].bits[('a' + b) / 32] >> ('a' + b) % 32 & 1;
        break;
    case MICA_G_LITERAL:
        number = ref_number((const char *)g->bytes + d->first, (size_t)d->count);
        if (number >= 0)
            out->has[number] = 1;
        break;
    case MICA_G_SEQ:
        out->has[0] = 1;
        for (int32_t i = 0; i < d->count; i++)
            ref_concat(out, &sets[g->children[d->first + i]], out);
        break;
    case MICA_G_ALT:
        for (int32_t i = 0; i < d->count; i++)
            ref_union(out, &sets[g->children[d->first + i]]);
        break;
    case MICA_G_REPEAT:
        ref_repeat(&sets[g->children[d->first]], d->min, d->max, out);
        break;
    case MICA_G_CALL:
        *out = sets[g->rules[d->first].body];
        break;
    case MICA_G_FSM:
        ref_fsm(&g->fsms[d->first], out);
        break;
    }
}

/* All texts of the root, in `out`. */
static inline void ref_language(const mica_grammar *g, ref_set *out)
{
    ref_set *sets = calloc((size_t)g->n_nodes, sizeof *sets), now;
    for (bool changed = true; changed;) {
        changed = false;
        for (mica_gnode n = 0; n < g->n_nodes; n++) {
            ref_node(g, sets, n, &now);
            if (memcmp(&now, &sets[n], sizeof now)) {
                sets[n] = now;
                changed = true;
            }
        }
    }
    *out = sets[g->rules[g->root].body];
    free(sets);
}

#endif
