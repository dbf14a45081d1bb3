/* mask.h - which tokens of a vocabulary may come next.
 *
 * The vocabulary is a byte trie, walked with the automaton. What depends on the place in the grammar only, and not on the stack
 * under it, is computed once for each place and kept; tokens that run past the end of the place's rule are walked with the real
 * stack each time. Long runs of ordinary string characters are sliced off the trie in advance, so that a place inside a string
 * does not visit most of the vocabulary.
 *
 * Targets: mean 30 us, p99 200 us a mask at a vocabulary of 152,000.
 */
#ifndef MICA_CONSTRAINT_MASK_H
#define MICA_CONSTRAINT_MASK_H
#include "constraint/automaton.h"
#include "text/vocab.h"

/* The byte trie of a vocabulary: immutable, one for a model, shared by all constraints. Tokens without bytes (control tokens)
 * are not in it. */
typedef struct mica_token_trie mica_token_trie;
mica_status mica_token_trie_new(const mica_vocab *vocab, mica_token_trie **out, mica_error *err);
void mica_token_trie_free(mica_token_trie *t);
int32_t mica_token_trie_n_vocab(const mica_token_trie *t);

/* Masks of one automaton over one vocabulary: holds the cache, which is bounded, and a lock for it. May be used from any
 * threads. */
typedef struct mica_masks mica_masks;
/** About the most that one constraint keeps over a vocabulary of so many tokens: its masks, its engine and the vocabulary's trie. */
size_t mica_masks_most_bytes(int32_t n_vocab);
mica_status mica_masks_new(const mica_automaton *a, const mica_token_trie *t, mica_masks **out, mica_error *err);
void mica_masks_free(mica_masks *k);

#define MICA_MASK_WORDS(n_vocab) (((size_t)(n_vocab) + 31) / 32)
/** Sets bit t % 32 of mask[t / 32] for each token t all of whose bytes may follow, and clears all others (also those that end
 * the text: the caller asks mica_matcher_may_end()). *n_allowed (may be NULL) is their number. */
mica_status mica_masks_fill(mica_masks *k, mica_matcher *m, uint32_t *mask, int32_t *n_allowed, mica_error *err);

#endif
