/* kv_blocks.h - the KV memory of a batch: blocks of MICA_KV_BLOCK positions that its sessions share, and the tree of the prefixes
 * that they hold. kv_lease.h is what one session does with it; docs/memory.md is its page.
 *
 * Each node of the tree is one block with up to MICA_KV_BLOCK tokens, and stands for the text from the root to its end: a radix
 * tree whose edges are cut to blocks. Models with windowed layers have a second kind of block for those, which a node holds as
 * long as memory lasts; a text can be continued from a place whose window is there.
 *
 * Invariants:
 *  1. A block's `uses` are the leases that hold it, and one more if it is a node (for windowed blocks: if a node holds it). A
 *     block without uses is in the list of free ones, and the other way round.
 *  2. A node's parent is full (n == MICA_KV_BLOCK). Siblings that are full differ. A lease that holds a node holds its parents.
 *  3. The positions of a node are computed and never written again: who wants to write into its block takes a copy.
 *  4. Only nodes that no lease holds and that have no children leave the tree: for lack of free ones the one unused longest first
 *     (mica_kv_blocks_get()), for lack of memory all (mica_kv_tree_empty()).
 * Everything is allocated at the start. Belongs to a batch, and its thread.
 */
#ifndef MICA_SESSION_KV_BLOCKS_H
#define MICA_SESSION_KV_BLOCKS_H
#include <stdbool.h>

#include "mica/mica.h"
#include "model/kv.h"

#define MICA_KV_NONE (-1) /* no block; as a parent: the root */

typedef struct mica_kv_block {
    int32_t uses;
    int32_t n;      /* tokens; 0: not a node */
    int32_t window; /* a node's block of windowed layers; MICA_KV_NONE: it is gone, or the model has none */
    int32_t depth, parent, child, next; /* of a node; `next` is a sibling */
    uint64_t last_used;
    int32_t tokens[MICA_KV_BLOCK];
} mica_kv_block;

typedef struct mica_kv_blocks {
    mica_kv kv; /* the memory, without tables: what views are made of */
    bool has_windows;
    int32_t n[MICA_KV_KINDS], n_free[MICA_KV_KINDS];
    int32_t *free[MICA_KV_KINDS]; /* [n] a stack */
    mica_kv_block *block;         /* [n[MICA_KV_FULL]] */
    int32_t *window_uses;         /* [n[MICA_KV_WINDOWED]] */
    int32_t roots;                /* first node of depth 0 */
    int32_t n_nodes;
    uint64_t clock;
    int64_t evictions;
} mica_kv_blocks;

/** `kv` is laid out over the memory, whole blocks of each kind. */
mica_status mica_kv_blocks_init(mica_kv_blocks *p, const mica_kv *kv, mica_error *err);
void mica_kv_blocks_free(mica_kv_blocks *p);

/** Bytes of the lists for so many blocks. */
size_t mica_kv_blocks_list_bytes(const int32_t n[MICA_KV_KINDS]);

/** A block with one use; where none is free, what was unused longest leaves the tree. MICA_KV_NONE: all are held. */
int32_t mica_kv_blocks_get(mica_kv_blocks *p, int kind);
/** One more use, and one less. MICA_KV_NONE is fine. */
void mica_kv_blocks_hold(mica_kv_blocks *p, int kind, int32_t block);
void mica_kv_blocks_drop(mica_kv_blocks *p, int kind, int32_t block);

/** The child of `parent` that shares most tokens with tokens[0..n), *same of them, at least 1; MICA_KV_NONE if there is none. */
int32_t mica_kv_tree_find(const mica_kv_blocks *p, int32_t parent, const int32_t *tokens, int32_t n, int32_t *same);

/** Makes the block (of no node yet) a node with tokens[0..n), and its windowed one, which may be MICA_KV_NONE. Shorter nodes that
 * it repeats, unless someone holds them, are dropped. */
void mica_kv_tree_add(mica_kv_blocks *p, int32_t parent, int32_t block, int32_t window, const int32_t *tokens, int32_t n);

/** Marks a node and its parents as used now. */
void mica_kv_tree_touch(mica_kv_blocks *p, int32_t node);

/** Every node that no lease holds leaves the tree. */
void mica_kv_tree_empty(mica_kv_blocks *p);

/** Gives the memory of free blocks back to the system, whole pages of it; what is in them is lost. shed.c */
void mica_kv_blocks_give_back(const mica_kv_blocks *p);

#endif
