/* merge.h - greedy merging of neighbours, best pair first, leftmost among equals: the loop that BPE and SentencePiece share.
 *
 *     fill m->symbols[0..n) after mica_merger_reserve(m, n); mica_merger_run(m, n, pair, user);
 *     for (uint32_t i = 0; i != MICA_MERGE_NONE; i = m->symbols[i].next) use(m->symbols[i].id);
 *
 * Invariant: an entry of the heap is current exactly if its key equals its symbol's `key`, the key of the pair that the symbol
 * forms with its right neighbour; others are stale and skipped. n log n in the number of symbols.
 */
#ifndef MICA_TEXT_MERGE_H
#define MICA_TEXT_MERGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MICA_MERGE_NONE UINT32_MAX

typedef struct mica_symbol {
    uint32_t start, length; /* bytes of the fragment */
    int32_t id;             /* token, or -1 */
    uint32_t prev, next;    /* MICA_MERGE_NONE at the ends */
    uint32_t key;           /* of the pair with `next`; MICA_MERGE_NONE: does not merge */
    int32_t merged;         /* token that the pair becomes */
} mica_symbol;

/** The key (smaller is better, below MICA_MERGE_NONE) and result of merging two neighbours, or MICA_MERGE_NONE. */
typedef uint32_t (*mica_pair_fn)(const void *user, const mica_symbol *left, const mica_symbol *right, int32_t *merged);

typedef struct mica_merger {
    mica_symbol *symbols;
    uint64_t *heap; /* key << 32 | index of the left symbol */
    size_t n_heap, room;
} mica_merger;

/** Room for n symbols; false when out of memory. */
bool mica_merger_reserve(mica_merger *m, size_t n);
void mica_merger_free(mica_merger *m);
/** Merges symbols[0..n), n >= 1, whose start, length and id are set. */
void mica_merger_run(mica_merger *m, size_t n, mica_pair_fn pair, const void *user);

#endif
