/* mask_impl.h - the vocabulary's trie and the kept masks. For trie.c and mask*.c only. */
#ifndef MICA_CONSTRAINT_MASK_IMPL_H
#define MICA_CONSTRAINT_MASK_IMPL_H
#include <pthread.h>

#include "constraint/automaton_engine.h"
#include "constraint/mask.h"

/* The parts of the vocabulary, each a trie of its own: for each range of lengths one of each slice and one of the other tokens.
 * The shorter tokens are, the more places are the same to them. */
enum {
    MICA_TRIE_SHORT,  /* at most MICA_TRIE_SHORT_BYTES bytes */
    MICA_TRIE_MIDDLE, /* at most MICA_TRIE_LONG_BYTES bytes */
    MICA_TRIE_LONG,
    MICA_TRIE_RANGES,
    MICA_TRIE_REST = MICA_SLICES, /* tokens of no slice */
    MICA_TRIE_RANGE_PARTS,        /* part p is of range p / this, and of slice, or REST, p % this */
    MICA_TRIE_PARTS = MICA_TRIE_RANGES * MICA_TRIE_RANGE_PARTS,
};
#define MICA_TRIE_SHORT_BYTES MICA_FA_NEAR
#define MICA_TRIE_LONG_BYTES MICA_FA_WIDE
#define MICA_TRIE_MAX_BYTES 255 /* longer ones ("giants") are in no trie and tried one by one */

/** Nodes are in preorder: the first child follows its parent, and the next sibling comes after the whole subtree. */
typedef struct mica_trie_node {
    uint32_t size_byte;   /* nodes of the subtree, this one included << 8 | byte that leads here */
    uint32_t token_depth; /* token + 1, or 0 << 8 | number of bytes before this one */
} mica_trie_node;
static inline int32_t mica_trie_size(mica_trie_node n) { return (int32_t)(n.size_byte >> 8); }
static inline uint8_t mica_trie_byte(mica_trie_node n) { return (uint8_t)n.size_byte; }
static inline int32_t mica_trie_token(mica_trie_node n) { return (int32_t)(n.token_depth >> 8) - 1; }
static inline int mica_trie_depth(mica_trie_node n) { return (int)(n.token_depth & 0xFF); }

typedef struct mica_trie_twin {
    int32_t token, twin; /* the same bytes; only `token` is in the trie */
} mica_trie_twin;

typedef struct mica_trie_giant {
    int32_t token;
    size_t first, length; /* in giant_bytes */
} mica_trie_giant;

/** A long token of a slice. */
typedef struct mica_trie_text {
    int32_t token;
    uint8_t slice, chars;
} mica_trie_text;

struct mica_token_trie {
    int32_t n_vocab, n_nodes, n_twins, n_giants, n_texts;
    size_t n_words;  /* of a mask */
    int32_t longest; /* bytes of a token that is in the trie */
    mica_trie_node *nodes;
    uint8_t *chars;                     /* [n_nodes] in slices: most characters of a token in the subtree */
    int32_t begin[MICA_TRIE_PARTS + 1]; /* part p: nodes[begin[p] .. begin[p + 1]) */
    mica_trie_twin *twins;
    mica_trie_giant *giants;
    uint8_t *giant_bytes;
    mica_trie_text *texts;
    /** [MICA_SLICES][MICA_TRIE_LONG_BYTES][n_words]: tokens of a slice, and of those in it, with at most 1, 2, ...
     * characters. */
    uint32_t *level_masks;
};
static inline uint32_t *mica_trie_level_mask(const mica_token_trie *t, int slice, int chars)
{
    return t->level_masks + ((size_t)slice * MICA_TRIE_LONG_BYTES + (size_t)chars - 1) * t->n_words;
}

/* ---- Walks ---- */

/* A walk over a part of the trie with an engine. */
typedef struct mica_walk {
    mica_fa_engine *engine;
    int32_t *kept; /* configurations that are kept over a flush besides the walk's own; may be NULL */
    size_t n_kept;
    const mica_token_trie *trie;
    const mica_byte_set *follow; /* bytes with which a text may go on below the bottom; NULL: there is nothing below */
    int32_t start;               /* configuration before the first byte */
    int32_t stack[MICA_TRIE_MAX_BYTES + 2];
    int32_t *tokens; /* [n_vocab] found */
    int32_t n_tokens;
    int32_t *open; /* trie nodes at which the bottom was reached and tokens go on */
    int32_t n_open, open_cap;
    int64_t cost; /* nodes visited, and 50 for each step that was not known */
} mica_walk;

/** Walks the nodes begin..end, siblings and their subtrees, from w->start. Nodes below which no token has more than `chars`
 * characters are left out. mask_walk.c */
mica_status mica_walk_nodes(mica_walk *w, int32_t begin, int32_t end, int chars, mica_error *err);

/* ---- Places ---- */

/* A place: a state and, on top of the stack, a counter or anything else. What tokens it takes on its own. */
typedef struct mica_mask_place {
    int32_t state, symbol, need, left; /* symbol -1: no counter */
    int range;                         /* of tokens' lengths */
    uint32_t serial;
    int32_t *tokens, n_tokens; /* those allowed, unless there are too many */
    uint32_t *bits;            /* then: a mask; else NULL */
    int32_t *open, n_open;     /* trie nodes from which the stack under the place decides */
} mica_mask_place;

#define MICA_MASK_MAX_PLACES 65536
#define MICA_MASK_MAX_BYTES (32u << 20) /* of all places; beyond, all are forgotten */

struct mica_masks {
    const mica_automaton *automaton;
    const mica_token_trie *trie;
    pthread_mutex_t lock;
    uint64_t id; /* tells apart masks that had the same address */
    mica_fa_engine engine;
    mica_walk walk; /* with scratch */
    mica_mask_place *places;
    int32_t n_places, places_cap;
    int32_t *slots; /* hash of places: number + 1 */
    uint32_t slots_mask;
    uint32_t serial; /* of the last place made */
    size_t bytes;
};

/** The kept place, or a new one. Borrowed until the next call. The lock is held. mask_place.c */
mica_status mica_mask_place_get(mica_masks *k, int32_t state, const mica_fa_node *top, int range,
                                const mica_mask_place **out, mica_error *err);
/** Makes places in advance, as far as a budget goes. */
mica_status mica_mask_places_prepare(mica_masks *k, mica_error *err);
void mica_mask_places_clear(mica_masks *k);
/** How many characters of each slice the place takes, whichever they are; at most MICA_SLICE_ENDLESS. *whole (may be NULL): bit
 * s: and no more than that. */
void mica_mask_chars(const mica_automaton *a, int32_t state, int32_t symbol, int32_t left, int chars[MICA_SLICES],
                     unsigned *whole);

/* ---- Memo of a matcher ---- */

/* What a place's open nodes gave with a certain configuration under it. */
typedef struct mica_mask_memo_entry {
    uint32_t serial;
    int32_t config, first, count; /* tokens */
} mica_mask_memo_entry;

#define MICA_MEMO_SLOTS 4096
#define MICA_MEMO_TOKENS (1 << 18) /* 1 MB; beyond, all are forgotten */

struct mica_mask_memo {
    uint64_t owner; /* id of the masks */
    uint32_t epoch; /* of the engine */
    int32_t used;
    mica_mask_memo_entry entries[MICA_MEMO_SLOTS]; /* hash; serial 0: free */
    int32_t *tokens, n_tokens, tokens_cap;
};

#endif
