/* prefix_file.h - the prefixes of a batch in a file, so that a process that starts again does not compute them again.
 *
 *     header | nodes | (nothing) | keys | values         the header and padding of a snapshot (snapshot.h), magic MICAPREF
 *
 * A node is 35 int32: the index of its parent, which comes before it, or -1; how many tokens it has; whether its windowed
 * layers follow; 32 tokens, unused ones 0. Nodes are in the order of their last use, the latest first, so that whoever has less
 * memory takes the first. Keys (and values): [node][layer][KV head][position][head_dim], windowed layers only of nodes that
 * have them. The header's n_tokens is the number of nodes, n_computed the sum of their tokens, `first` that of those whose
 * windowed layers are there. Restoring checks everything before it touches the tree.
 */
#ifndef MICA_SESSION_PREFIX_FILE_H
#define MICA_SESSION_PREFIX_FILE_H
#include "session/kv_blocks.h"
#include "session/snapshot.h"

/** What all of it belongs to; borrowed. */
typedef struct mica_prefix_owner {
    mica_model *model;
    const mica_exec *exec;
    mica_kv_blocks *blocks;
    int32_t n_ctx;
} mica_prefix_owner;

mica_status mica_prefix_save(const mica_prefix_owner *owner, const char *path, mica_error *err);

/** Adds the nodes that are not there yet, as far as there are free blocks; *n_tokens: of those that were added. */
mica_status mica_prefix_restore(const mica_prefix_owner *owner, const char *path, int64_t *n_tokens, mica_error *err);

#endif
