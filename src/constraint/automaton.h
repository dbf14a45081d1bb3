/* automaton.h - a compiled grammar, and where one text stands in it.
 *
 * Compiling turns each rule into a small deterministic automaton over bytes and calls of other rules, with rules that do not
 * recurse inlined as far as a size limit allows. A text's place is a set of (state, stack) pairs; stacks are shared, hashed
 * nodes, so that ambiguity and depth cost little; a counted repetition is a stack node with its count. Calls at the end of a
 * rule push nothing.
 *
 * An automaton is immutable after mica_automaton_new() and may be used by any number of matchers in any threads. A matcher
 * belongs to one thread at a time.
 */
#ifndef MICA_CONSTRAINT_AUTOMATON_H
#define MICA_CONSTRAINT_AUTOMATON_H
#include "constraint/grammar.h"

typedef struct mica_automaton mica_automaton;
typedef struct mica_matcher mica_matcher;

/** Compiles a finished grammar, which may be freed afterwards. MICA_INVALID_ARGUMENT if it is too large; the message names the
 * rule. */
mica_status mica_automaton_new(const mica_grammar *g, mica_automaton **out, mica_error *err);
void mica_automaton_free(mica_automaton *a); /* NULL is fine; no matcher may be left */

/** At the start of the text. The automaton is borrowed. */
mica_status mica_matcher_new(const mica_automaton *a, mica_matcher **out, mica_error *err);
void mica_matcher_free(mica_matcher *m);
void mica_matcher_reset(mica_matcher *m);
/** Makes `to` stand where `from` stands (same automaton): to try something and come back. */
mica_status mica_matcher_copy(mica_matcher *to, const mica_matcher *from, mica_error *err);

/** Reads bytes. *taken (may be NULL) is how many were possible; where that is fewer than n the matcher has not moved at all.
 * MICA_OUT_OF_MEMORY, or MICA_INVALID_ARGUMENT where the text's place became too complex (a limit on pairs and stack nodes). */
mica_status mica_matcher_push(mica_matcher *m, const void *bytes, size_t n, size_t *taken, mica_error *err);

/** Whether the text may end here; whether it must (no byte can follow). */
bool mica_matcher_may_end(const mica_matcher *m);
bool mica_matcher_must_end(const mica_matcher *m);

/** The bytes with which every continuation begins, at most `capacity`; none where the text may end or the next byte is open. */
size_t mica_matcher_forced(mica_matcher *m, char *out, size_t capacity);

/** One of the shortest texts that complete what was read; returns its length (which may exceed `capacity`: then nothing is
 * written). Sums saturate at SIZE_MAX / 2, which it also returns where memory is refused. */
size_t mica_matcher_shortest_end(mica_matcher *m, char *out, size_t capacity);

#endif
