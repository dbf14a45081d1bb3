/* automaton_engine.h - places of texts in an automaton, interned, with the places that bytes lead to remembered: a
 * deterministic automaton that is made as texts need it. Used by matchers (one engine each) and by masks. Not for several
 * threads at once.
 *
 * A node is a set of returns, (state, node) pairs: where texts go on when the symbol on top ends, and what is under that.
 * Symbols that are called at the same byte by several callers share one node, as in generalised LL parsing (E. Scott, A.
 * Johnstone, 2010), so that ambiguity costs polynomial space. A node of a counter has what is left to count, too. A
 * configuration is a set of (state, node) pairs and whether the text may end. Equal nodes and equal configurations have equal
 * numbers, until the next flush.
 *
 * Invariants: 1. The returns of a node lead to nodes with lower numbers; node 0 is the bottom, where the text ends. 2. Pairs
 * are sorted and distinct. 3. From every pair something can follow.
 */
#ifndef MICA_CONSTRAINT_AUTOMATON_ENGINE_H
#define MICA_CONSTRAINT_AUTOMATON_ENGINE_H
#include "constraint/automaton_impl.h"

typedef struct mica_fa_pair {
    int32_t state, node;
} mica_fa_pair;
#define MICA_FA_BOTTOM 0
#define MICA_FA_END (-1) /* as the state of a return: the text ends. Only masks make such nodes */

typedef struct mica_fa_node {
    int32_t first, count; /* returns, in node_pairs */
    int32_t symbol;       /* a counter; else -1 */
    int32_t need, left;   /* a counter: least (1 if none is) and most repetitions, the one at hand included */
    uint32_t hash;
    size_t up; /* bytes of the shortest text from the end of the symbol on top */
} mica_fa_node;

typedef struct mica_fa_config {
    int32_t first, count; /* pairs, in config_pairs */
    uint32_t hash;
    bool ended;
} mica_fa_config;

/* What a byte leads to: MICA_FA_UNKNOWN, MICA_FA_DEAD, or a configuration's number + 2, with a bit that says whether it is
 * ended. */
typedef uint16_t mica_fa_cell;
enum { MICA_FA_UNKNOWN = 0, MICA_FA_DEAD = 1, MICA_FA_ENDED = 0x8000, MICA_FA_MAX_CONFIGS = 0x7F00 };
static inline int32_t mica_fa_cell_config(mica_fa_cell c) { return (c & ~MICA_FA_ENDED) - 2; }

#define MICA_FA_ROW 256
#define MICA_FA_CONFIGS 4096 /* configurations that are kept, by default: 2 MB of rows */
#define MICA_FA_MAX_LANDINGS (1 << 20) /* at a time */
#define MICA_FA_NODES 65536
#define MICA_FA_MAX_NODES (1 << 22) /* that one place may have: 160 MB */
#define MICA_FA_MAX_PAIRS 4096      /* of one configuration or node */
#define MICA_FA_POOL (1 << 18)      /* pairs of all configurations; grows if one place needs it */
#define MICA_FA_MAX_POOL (1 << 24)

/** A table of numbers by hash, open addressing. */
typedef struct mica_fa_table {
    int32_t *slots; /* number + 1; 0: free */
    uint32_t mask;
    int32_t used;
} mica_fa_table;

/* A call that was seen in a step and is yet to be followed. Sorted. */
typedef struct mica_fa_pending {
    int32_t rank, state, node;
} mica_fa_pending;

typedef struct mica_fa_engine {
    const mica_automaton *a;
    mica_fa_node *nodes;
    mica_fa_pair *node_pairs;
    mica_fa_config *configs;
    mica_fa_pair *config_pairs;
    mica_fa_cell *rows; /* [n_configs][256] */
    int32_t n_nodes, nodes_cap, n_node_pairs, node_pairs_cap;
    int32_t n_configs, configs_cap, rows_cap, n_config_pairs, config_pairs_cap;
    mica_fa_table node_table, config_table;
    int32_t limit_configs, limit_nodes, limit_pool; /* beyond: full */
    int32_t keep_configs;                           /* what limit_configs is without need; tests make it small */
    uint32_t epoch;                                 /* counts flushes */
    /* Scratch of one step. */
    mica_fa_pair *out, *landing;
    int32_t n_out, out_cap, n_landing, landing_cap;
    mica_fa_pending *pending;
    int32_t n_pending, pending_cap;
    struct mica_fa_trace {
        uint32_t popped; /* number of the step that popped the node last */
        uint32_t landed; /* and of the step that last came to it, in this state */
        int32_t state;
    } *traces; /* [nodes_cap] */
    int32_t traces_cap;
    uint32_t step;
    bool ended;
    int low, high; /* bytes for which the step would give the same */
    mica_status status;
} mica_fa_engine;

/** Empty, with node 0. configs: how many to keep; 0: MICA_FA_CONFIGS. Frees nothing on failure: call _free(). */
mica_status mica_fa_engine_init(mica_fa_engine *e, const mica_automaton *a, int32_t configs, mica_error *err);
void mica_fa_engine_free(mica_fa_engine *e);

/** Whether a flush is due before the next step. */
static inline bool mica_fa_engine_full(const mica_fa_engine *e)
{
    return e->n_configs >= e->limit_configs || e->n_nodes >= e->limit_nodes || e->n_config_pairs >= e->limit_pool ||
           e->n_node_pairs >= e->limit_pool;
}
/** Forgets all but some configurations, whose numbers change: those in a[0..n_a) and b[0..n_b). */
mica_status mica_fa_engine_flush(mica_fa_engine *e, int32_t *a, size_t n_a, int32_t *b, size_t n_b, mica_error *err);
/** Adds another engine's configuration. */
mica_status mica_fa_engine_import(mica_fa_engine *e, const mica_fa_engine *from, int32_t config, int32_t *out, mica_error *err);

/** The node with these returns, which are sorted on the way; symbol -1: no counter. -1 on failure: e->status. */
int32_t mica_fa_node_intern(mica_fa_engine *e, mica_fa_node node, mica_fa_pair *returns, int32_t n);
/** The configuration of these pairs, which are sorted and thinned out on the way. -1 on failure: e->status. */
int32_t mica_fa_config_intern(mica_fa_engine *e, mica_fa_pair *pairs, int32_t n, bool ended);

/** The configuration at the start of a text. */
mica_status mica_fa_start(mica_fa_engine *e, int32_t *config, mica_error *err);
/** Where a byte leads, also entered in the row. */
mica_status mica_fa_step(mica_fa_engine *e, int32_t config, uint8_t byte, mica_fa_cell *cell, mica_error *err);
/** The configuration after the symbol on top of `node` has ended; of a counter's node: after its last repetition, or with
 * `once` after the one at hand. */
mica_status mica_fa_leave(mica_fa_engine *e, int32_t node, bool once, int32_t *config, mica_error *err);
/** Bytes that may come next. */
void mica_fa_config_bytes(const mica_fa_engine *e, int32_t config, mica_byte_set *set);

/** The error of e->status. */
mica_status mica_fa_engine_fail(mica_fa_engine *e, mica_error *err);

struct mica_matcher {
    mica_fa_engine engine;
    int32_t kept[2]; /* the text's configuration; that of the start */
    struct mica_mask_memo *memo; /* of mask.c, which finds masks again by it; NULL: none yet */
};
void mica_mask_memo_free(struct mica_mask_memo *memo);

#endif
