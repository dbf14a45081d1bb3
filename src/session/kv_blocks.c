#include "session/kv_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- making ---- */

size_t mica_kv_blocks_list_bytes(const int32_t n[MICA_KV_KINDS])
{
    return (size_t)n[MICA_KV_FULL] * (sizeof(mica_kv_block) + sizeof(int32_t)) + (size_t)n[MICA_KV_WINDOWED] * 2 * sizeof(int32_t);
}

mica_status mica_kv_blocks_init(mica_kv_blocks *p, const mica_kv *kv, mica_error *err)
{
    *p = (mica_kv_blocks){.kv = *kv, .has_windows = kv->h->window > 0, .roots = MICA_KV_NONE};
    for (int kind = 0; kind < MICA_KV_KINDS; kind++) {
        p->n[kind] = p->n_free[kind] = kv->slots[kind] / MICA_KV_BLOCK;
        p->free[kind] = mica_new_array((size_t)p->n[kind], sizeof *p->free[kind]);
        for (int32_t i = 0; p->free[kind] && i < p->n[kind]; i++)
            p->free[kind][i] = p->n[kind] - 1 - i; /* the lowest is on top: neighbours are taken one after another */
    }
    p->block = mica_new_array((size_t)p->n[MICA_KV_FULL], sizeof *p->block);
    p->window_uses = mica_new_array((size_t)p->n[MICA_KV_WINDOWED], sizeof *p->window_uses);
    if (!p->free[MICA_KV_FULL] || !p->free[MICA_KV_WINDOWED] || !p->block || !p->window_uses)
        return mica_fail_nomem(err, mica_kv_blocks_list_bytes(p->n), "the list of blocks of the KV cache");
    return MICA_OK;
}

void mica_kv_blocks_free(mica_kv_blocks *p)
{
    for (int kind = 0; kind < MICA_KV_KINDS; kind++)
        free(p->free[kind]);
    free(p->block);
    free(p->window_uses);
}

/* ---- uses ---- */

static int32_t *uses_of(mica_kv_blocks *p, int kind, int32_t block)
{
    return kind == MICA_KV_FULL ? &p->block[block].uses : &p->window_uses[block];
}

void mica_kv_blocks_hold(mica_kv_blocks *p, int kind, int32_t block)
{
    if (block != MICA_KV_NONE)
        ++*uses_of(p, kind, block);
}

void mica_kv_blocks_drop(mica_kv_blocks *p, int kind, int32_t block)
{
    if (block != MICA_KV_NONE && --*uses_of(p, kind, block) == 0)
        p->free[kind][p->n_free[kind]++] = block;
}

/* ---- the tree ---- */

static int32_t *children(mica_kv_blocks *p, int32_t parent) { return parent == MICA_KV_NONE ? &p->roots : &p->block[parent].child; }

int32_t mica_kv_tree_find(const mica_kv_blocks *p, int32_t parent, const int32_t *tokens, int32_t n, int32_t *same)
{
    int32_t best = MICA_KV_NONE;
    *same = 0;
    for (int32_t i = parent == MICA_KV_NONE ? p->roots : p->block[parent].child; i != MICA_KV_NONE; i = p->block[i].next) {
        const mica_kv_block *b = &p->block[i];
        int32_t most = b->n < n ? b->n : n, k = 0;
        while (k < most && b->tokens[k] == tokens[k])
            k++;
        if (k > *same) {
            best = i;
            *same = k;
        }
    }
    return best;
}

/* The node, which has no children, is no node any more. */
static void remove_node(mica_kv_blocks *p, int32_t node)
{
    mica_kv_block *b = &p->block[node];
    int32_t *link = children(p, b->parent), window = b->window;
    while (*link != node)
        link = &p->block[*link].next;
    *link = b->next;
    b->n = 0;
    b->window = MICA_KV_NONE;
    p->n_nodes--;
    mica_kv_blocks_drop(p, MICA_KV_WINDOWED, window);
    mica_kv_blocks_drop(p, MICA_KV_FULL, node);
}

static bool is_idle_leaf(const mica_kv_block *b) { return b->n > 0 && b->uses == 1 && b->child == MICA_KV_NONE; }

static void drop_repeated(mica_kv_blocks *p, int32_t parent, const int32_t *tokens, int32_t n)
{
    for (int32_t i = *children(p, parent), next; i != MICA_KV_NONE; i = next) {
        const mica_kv_block *b = &p->block[i];
        next = b->next;
        if (b->n <= n && is_idle_leaf(b) && memcmp(b->tokens, tokens, (size_t)b->n * sizeof *tokens) == 0)
            remove_node(p, i);
    }
}

void mica_kv_tree_add(mica_kv_blocks *p, int32_t parent, int32_t block, int32_t window, const int32_t *tokens, int32_t n)
{
    mica_kv_block *b = &p->block[block];
    drop_repeated(p, parent, tokens, n);
    b->n = n;
    b->window = window;
    b->parent = parent;
    b->depth = parent == MICA_KV_NONE ? 0 : p->block[parent].depth + 1;
    b->child = MICA_KV_NONE;
    b->next = *children(p, parent);
    memcpy(b->tokens, tokens, (size_t)n * sizeof *tokens);
    *children(p, parent) = block;
    p->n_nodes++;
    mica_kv_blocks_hold(p, MICA_KV_FULL, block);
    mica_kv_blocks_hold(p, MICA_KV_WINDOWED, window);
    mica_kv_tree_touch(p, block);
}

void mica_kv_tree_touch(mica_kv_blocks *p, int32_t node)
{
    uint64_t now = ++p->clock;
    for (; node != MICA_KV_NONE; node = p->block[node].parent)
        p->block[node].last_used = now;
}

/* From each leaf upwards: what becomes a leaf by that goes, too. */
void mica_kv_tree_empty(mica_kv_blocks *p)
{
    for (int32_t i = 0; i < p->n[MICA_KV_FULL]; i++)
        for (int32_t node = i; node != MICA_KV_NONE && is_idle_leaf(&p->block[node]);) {
            int32_t parent = p->block[node].parent;
            remove_node(p, node);
            p->evictions++;
            node = parent;
        }
}

/* ---- lack of memory ---- */

static bool evict_node(mica_kv_blocks *p)
{
    int32_t oldest = MICA_KV_NONE;
    for (int32_t i = 0; i < p->n[MICA_KV_FULL]; i++)
        if (is_idle_leaf(&p->block[i]) && (oldest == MICA_KV_NONE || p->block[i].last_used < p->block[oldest].last_used))
            oldest = i;
    if (oldest == MICA_KV_NONE)
        return false;
    remove_node(p, oldest);
    p->evictions++;
    return true;
}

/* Of nodes used at the same time the one nearest to the root: it is the end of a text that is continued. */
static bool evict_window(mica_kv_blocks *p)
{
    mica_kv_block *oldest = NULL;
    for (int32_t i = 0; i < p->n[MICA_KV_FULL]; i++) {
        mica_kv_block *b = &p->block[i];
        if (b->n == 0 || b->window == MICA_KV_NONE || p->window_uses[b->window] > 1)
            continue;
        if (!oldest || b->last_used < oldest->last_used || (b->last_used == oldest->last_used && b->depth < oldest->depth))
            oldest = b;
    }
    if (!oldest)
        return false;
    mica_kv_blocks_drop(p, MICA_KV_WINDOWED, oldest->window);
    oldest->window = MICA_KV_NONE;
    p->evictions++;
    return true;
}

int32_t mica_kv_blocks_get(mica_kv_blocks *p, int kind)
{
    while (p->n_free[kind] == 0)
        if (!(kind == MICA_KV_FULL ? evict_node(p) : evict_window(p)))
            return MICA_KV_NONE;
    int32_t block = p->free[kind][--p->n_free[kind]];
    *uses_of(p, kind, block) = 1;
    return block;
}
