/* grammar_impl.h - what the files that build grammars share. Called by grammar.c, grammar_fsm.c and grammar_check.c only.
 *
 * The arrays of a mica_grammar have no capacity of their own: it is the power of two that follows from the count
 * (capacity_for()), so that readers of grammar.h see nothing they must not touch. */
#ifndef MICA_CONSTRAINT_GRAMMAR_IMPL_H
#define MICA_CONSTRAINT_GRAMMAR_IMPL_H
#include "constraint/grammar.h"

/** A grammar and what only its builder needs. */
typedef struct mica_grammar_builder {
    mica_grammar g;     /* first: the address of one is that of the other */
    int32_t *by_name;   /* hash table of named rules, open addressing: rule + 1, or 0 */
    int32_t n_slots;    /* a power of two, or 0 */
    int32_t n_named;
    int64_t n_fsm_edges; /* of all automata together */
} mica_grammar_builder;

/** Adds one node. */
mica_gnode mica_grammar_node(mica_grammar *g, mica_gnode_data data);
/** Room for `extra` more items of `size` bytes behind `count`; false if the grammar has failed (now or before). */
bool mica_grammar_reserve(mica_grammar *g, void *array, int32_t count, size_t extra, size_t size);
/** The grammar's failure for a refused allocation. */
mica_gnode mica_grammar_nomem(mica_grammar *g, size_t bytes);

/** How many bytes of a name a message shows: at most 100, whole characters. */
int mica_grammar_clip(const char *name);
#define MICA_CLIPPED(name) mica_grammar_clip(name), (name) /* for %.*s */

/** The checks of mica_grammar_finish(), on a grammar that has not failed; grammar_check.c. Fails the grammar. */
void mica_grammar_check(mica_grammar *g, int32_t root);

#endif
