/* automaton_impl.h - what a compiled grammar consists of. For the files automaton_*.c, mask*.c and trie.c only.
 *
 * Symbols are what an edge may call: rules, bodies of counted repetitions (rules without a name), and counters. Each rule and
 * each body has an automaton over bytes and calls for the texts of at least one byte that it matches: the empty text is dealt
 * with where a nullable symbol is called, by an edge past the call. So a call always reads something, and there is no left
 * recursion.
 *
 * Invariants of a finished automaton:
 *  1. The start state of a symbol is not final.
 *  2. From every state that an edge or a call leads to, a text can be completed (nothing is a dead end).
 *  3. Ranks are distinct, and a symbol that may be called at the start of another has the higher rank.
 */
#ifndef MICA_CONSTRAINT_AUTOMATON_IMPL_H
#define MICA_CONSTRAINT_AUTOMATON_IMPL_H
#include <string.h>

#include "base/mem.h"
#include "constraint/automaton.h"
#include "constraint/slice.h"

#define MICA_FA_MAX_STATES (1 << 20) /* of an automaton: 48 MB with its edges */
#define MICA_FA_MAX_EDGES (1 << 22)
#define MICA_FA_NO_LIMIT INT32_MAX /* of a counter: this many are always left */
#define MICA_FA_NEAR 12            /* few tokens have more bytes: of Qwen's 152,000 tokens 6,000 */
#define MICA_FA_WIDE 24            /* 424 */
#define MICA_FA_FAR (SIZE_MAX / 2) /* lengths saturate here */
#define MICA_FA_NEVER SIZE_MAX     /* length of what cannot be completed */

typedef struct mica_fa_edge {
    int32_t to;
    uint8_t low, high;
} mica_fa_edge;

typedef struct mica_fa_call {
    int32_t symbol, to; /* state after it */
} mica_fa_call;

typedef struct mica_fa_symbol {
    int32_t start; /* state; of a counter: of its body. -1: not built (not reachable) */
    int32_t rank;
    int32_t body;       /* counters: symbol of the body; else -1 */
    int32_t need, left; /* counters: least and most repetitions */
    size_t length;      /* bytes of the shortest text */
    mica_byte_set first, follow;
    uint8_t chars[MICA_SLICES]; /* as mica_automaton.chars, at the start */
    uint8_t counts; /* counters: bit s: each character of slice s is one repetition */
    uint8_t exact;  /* and nothing else, nor can one follow the last repetition: then no text has more of them */
    bool is_short;  /* counters and their bodies: tokens may well have several repetitions */
    int32_t name;               /* rule of the grammar that it belongs to, for messages */
    mica_gnode node;            /* while compiling: what to build it from */
} mica_fa_symbol;

struct mica_automaton {
    mica_fa_symbol *symbols; /* the grammar's rules come first */
    int32_t n_symbols, symbols_cap, n_rules;
    int32_t root;
    bool nullable;                  /* the empty text is one */
    int32_t *by_rank;               /* symbols */
    int32_t n_states, states_cap;   /* of the four arrays below, which have n_states + 1 entries */
    int32_t *first_edge, *first_call; /* of state s: [first[s], first[s + 1]), edges sorted by low */
    int32_t *owner;                 /* symbol that the state belongs to */
    bool *final;
    mica_fa_edge *edges;
    mica_fa_call *calls;
    int32_t n_edges, edges_cap, n_calls, calls_cap;
    size_t *shortest; /* [n_states] bytes from the state to the end of its symbol */
    size_t *going_on; /* [n_states] the same for texts that are not empty */
    /** [n_states] after how many characters of a slice, whichever they are, the state's symbol still goes on.
     * MICA_SLICE_ENDLESS: any number. A lower bound. */
    uint8_t (*chars)[MICA_SLICES];
    /** Two arrays [n_states]: the first state that does the same over the next MICA_FA_NEAR bytes, and MICA_FA_WIDE, up to the
     * symbol's end. */
    int32_t *same[2];
};

static inline bool mica_set_has(const mica_byte_set *set, unsigned byte) { return set->bits[byte / 32] >> byte % 32 & 1; }
static inline void mica_set_add(mica_byte_set *set, unsigned byte) { set->bits[byte / 32] |= 1u << byte % 32; }
/** Whether `to` grew. */
static inline bool mica_set_join(mica_byte_set *to, const mica_byte_set *from)
{
    uint32_t grown = 0;
    for (int i = 0; i < 8; i++) {
        grown |= from->bits[i] & ~to->bits[i];
        to->bits[i] |= from->bits[i];
    }
    return grown != 0;
}

static inline size_t mica_sum_lengths(size_t a, size_t b)
{
    return b < MICA_FA_FAR && a < MICA_FA_FAR - b ? a + b : MICA_FA_FAR;
}

/** Whether nothing can follow in the state's own symbol. */
static inline bool mica_fa_is_last(const mica_automaton *a, int32_t s)
{
    return a->first_edge[s] == a->first_edge[s + 1] && a->first_call[s] == a->first_call[s + 1];
}

/** Makes room for `need` items in a growing array, at least doubling it. */
static inline bool mica_room(void *array, int32_t *cap, int64_t need, size_t size)
{
    if (need <= *cap)
        return true;
    int64_t more = need > (int64_t)*cap * 2 ? need : (int64_t)*cap * 2;
    more = more < 16 ? 16 : more;
    if (more > INT32_MAX)
        return false;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, (size_t)more * size);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *cap = (int32_t)more;
    return true;
}

/* ---- Compiling ---- */

/** What is known of a grammar before anything is built. automaton_plan.c */
typedef struct mica_fa_plan {
    bool *nullable;  /* [n_nodes] */
    int32_t *size;   /* [n_nodes] states that the node takes, inlined rules included; saturates at INT32_MAX */
    bool *inlined;   /* [n_rules] calls of the rule are replaced by its body */
    int32_t *bodies; /* [n_nodes] symbol made of the node as a body of a counter, or -1 */
} mica_fa_plan;
mica_status mica_fa_plan_make(const mica_grammar *g, mica_fa_plan *plan, mica_error *err);
void mica_fa_plan_free(mica_fa_plan *plan);

/** Whether a repetition is written out as often as it says, rather than counted. */
bool mica_fa_unrolls(const mica_grammar *g, const mica_fa_plan *plan, const mica_gnode_data *repeat);

/** An arc of a nondeterministic automaton. */
typedef struct mica_fa_arc {
    int32_t from, to;
    int32_t symbol; /* called; or one of these */
    uint8_t low, high;
} mica_fa_arc;
#define MICA_ARC_EMPTY (-1)
#define MICA_ARC_BYTE (-2)

typedef struct mica_fa_nfa {
    mica_fa_arc *arcs;
    int32_t n_arcs, arcs_cap;
    int32_t n_states; /* 0 is the start, 1 the end */
} mica_fa_nfa;

typedef struct mica_fa_build {
    const mica_grammar *g;
    mica_automaton *a;
    mica_fa_plan plan;
    int32_t *queue; /* symbols to build, once each */
    int32_t n_queue, queue_cap;
    int32_t *counters; /* hash of (body, least, most) to symbol, -1: free */
    int32_t n_counters, counters_cap;
    mica_error *err;
} mica_fa_build;

/** The symbol's node as an NFA. Symbols called for the first time are queued. automaton_nfa.c */
mica_status mica_fa_nfa_make(mica_fa_build *b, int32_t symbol, mica_fa_nfa *nfa);
/** Adds the NFA's language but for the empty text to the automaton, as deterministic as it can be afforded. automaton_dfa.c */
mica_status mica_fa_dfa_add(mica_fa_build *b, int32_t symbol, const mica_fa_nfa *nfa);
/** States of one symbol, numbered from 0. */
typedef struct mica_fa_rows {
    int32_t n, start;
    const int32_t *first_edge, *first_call; /* [n + 1] */
    const mica_fa_edge *edges;
    const mica_fa_call *calls;
    const bool *final;
} mica_fa_rows;
/** Appends them, with equal ones merged. automaton_merge.c */
mica_status mica_fa_rows_add(mica_fa_build *b, int32_t symbol, const mica_fa_rows *rows);
/** Shortest texts; afterwards what cannot be completed is gone. automaton_cost.c */
mica_status mica_fa_find_costs(mica_automaton *a, mica_error *err);
/** Ranks, first and follow sets. automaton_sets.c */
mica_status mica_fa_find_sets(mica_automaton *a, const mica_grammar *g, mica_error *err);
/** The array `chars`. automaton_chars.c */
mica_status mica_fa_find_chars(mica_automaton *a, mica_error *err);
/** One of the arrays `same`. automaton_classes.c */
mica_status mica_fa_find_classes(mica_automaton *a, int bytes, int32_t **same, mica_error *err);
/** Bytes that may come next in state s. */
void mica_fa_next_bytes(const mica_automaton *a, int32_t s, mica_byte_set *set);

/** A message that names the symbol's rule. */
mica_status mica_fa_too_large(mica_fa_build *b, int32_t symbol, const char *what);
mica_status mica_fa_nomem(mica_error *err);

#endif
