#include "session/kv_lease.h"

size_t mica_kv_lease_tables(int32_t n_ctx) { return (size_t)mica_kv_blocks_for(n_ctx) * MICA_KV_KINDS; }

void mica_kv_lease_init(mica_kv_lease *l, mica_kv_blocks *blocks, mica_kv *kv, int32_t n_ctx, int32_t *tables)
{
    *kv = blocks->kv;
    kv->n_ctx = n_ctx;
    kv->table[MICA_KV_FULL] = tables;
    kv->table[MICA_KV_WINDOWED] = tables + mica_kv_blocks_for(n_ctx);
    *l = (mica_kv_lease){.blocks = blocks, .kv = kv};
}

static int32_t *full_at(const mica_kv_lease *l, int32_t i) { return &l->kv->table[MICA_KV_FULL][i]; }
static int32_t *window_at(const mica_kv_lease *l, int32_t i) { return &l->kv->table[MICA_KV_WINDOWED][i]; }

/* The block from which windowed layers are needed to go on at position `pos`. */
static int32_t first_window(const mica_kv_lease *l, int32_t pos)
{
    int32_t first = pos - l->kv->h->window + 1;
    return l->blocks->has_windows && first > 0 ? first / MICA_KV_BLOCK : 0;
}

static void set_window0(mica_kv_lease *l, int32_t i)
{
    l->window0 = i;
    l->kv->first = i * MICA_KV_BLOCK;
}

/* ---- giving up ---- */

/* Keeps the first n blocks. */
static void cut(mica_kv_lease *l, int32_t n)
{
    for (; l->n > n; l->n--) {
        mica_kv_blocks_drop(l->blocks, MICA_KV_FULL, *full_at(l, l->n - 1));
        if (l->blocks->has_windows && l->n > l->window0)
            mica_kv_blocks_drop(l->blocks, MICA_KV_WINDOWED, *window_at(l, l->n - 1));
    }
    if (l->known > n)
        l->known = n;
    if (l->window0 > n)
        set_window0(l, n);
}

static void drop_windows(mica_kv_lease *l, int32_t until)
{
    if (until > l->n)
        until = l->n;
    for (int32_t i = l->window0; i < until; i++)
        mica_kv_blocks_drop(l->blocks, MICA_KV_WINDOWED, *window_at(l, i));
    if (until > l->window0)
        set_window0(l, until);
}

void mica_kv_lease_release(mica_kv_lease *l)
{
    cut(l, 0);
}

/* ---- blocks to write to ---- */

/* A full block for number i and, where windowed layers want it, one for those. */
static bool get_pair(mica_kv_lease *l, int32_t i, int32_t *full, int32_t *window)
{
    *window = MICA_KV_NONE;
    *full = mica_kv_blocks_get(l->blocks, MICA_KV_FULL);
    if (*full == MICA_KV_NONE)
        return false;
    if (!l->blocks->has_windows || i < l->window0)
        return true;
    *window = mica_kv_blocks_get(l->blocks, MICA_KV_WINDOWED);
    if (*window == MICA_KV_NONE)
        mica_kv_blocks_drop(l->blocks, MICA_KV_FULL, *full);
    return *window != MICA_KV_NONE;
}

static bool add_block(mica_kv_lease *l)
{
    int32_t full, window;
    if (!get_pair(l, l->n, &full, &window))
        return false;
    *full_at(l, l->n) = full;
    *window_at(l, l->n) = window;
    l->n++;
    return true;
}

static int32_t window_of(const mica_kv_lease *l, int32_t i)
{
    return l->blocks->has_windows && i >= l->window0 ? *window_at(l, i) : MICA_KV_NONE;
}

/* The first n positions of a pair become those of block i. */
static void copy_pair(const mica_kv_lease *l, int32_t full, int32_t window, int32_t i, int32_t n)
{
    mica_kv_copy_block(l->kv, MICA_KV_FULL, full, *full_at(l, i), n);
    if (window_of(l, i) != MICA_KV_NONE)
        mica_kv_copy_block(l->kv, MICA_KV_WINDOWED, window, *window_at(l, i), n);
}

/* The last block, of which n positions stay, can be written to: if it is a node, a copy takes its place. */
static bool own_last(mica_kv_lease *l, int32_t n)
{
    int32_t i = l->n - 1, old = *full_at(l, i), old_window = window_of(l, i), full, window;
    if (l->blocks->block[old].n == 0)
        return true;
    if (!get_pair(l, i, &full, &window))
        return false;
    *full_at(l, i) = full;
    *window_at(l, i) = window;
    copy_pair(l, old, old_window, i, n);
    mica_kv_blocks_drop(l->blocks, MICA_KV_WINDOWED, old_window);
    mica_kv_blocks_drop(l->blocks, MICA_KV_FULL, old);
    return true;
}

bool mica_kv_lease_reserve(mica_kv_lease *l, int32_t n_computed, int32_t end)
{
    cut(l, mica_kv_blocks_for(n_computed));
    if (l->known > n_computed / MICA_KV_BLOCK)
        l->known = n_computed / MICA_KV_BLOCK;
    if (n_computed % MICA_KV_BLOCK && !own_last(l, n_computed % MICA_KV_BLOCK))
        return false;
    drop_windows(l, first_window(l, n_computed));
    while (l->n < mica_kv_blocks_for(end))
        if (!add_block(l))
            return false;
    return true;
}

bool mica_kv_lease_fill(mica_kv_lease *l, int32_t first, int32_t end)
{
    cut(l, 0);
    set_window0(l, first / MICA_KV_BLOCK);
    while (l->n < mica_kv_blocks_for(end))
        if (!add_block(l)) {
            cut(l, 0);
            return false;
        }
    l->kv->first = first; /* in the middle of a block */
    return true;
}

/* ---- what others have computed ---- */

/* Nodes [l->n, count) of a path are in the table. Whether windowed layers can go on behind them. */
static bool windows_are_there(const mica_kv_lease *l, int32_t count)
{
    for (int32_t i = first_window(l, count * MICA_KV_BLOCK); l->blocks->has_windows && i < count; i++)
        if (i < l->n ? i < l->window0 : l->blocks->block[*full_at(l, i)].window == MICA_KV_NONE)
            return false;
    return true;
}

static void take_nodes(mica_kv_lease *l, int32_t count)
{
    int32_t window0 = first_window(l, count * MICA_KV_BLOCK);
    drop_windows(l, window0);
    if (l->window0 < window0) /* beyond what is held */
        set_window0(l, window0);
    for (; l->n < count; l->n++) {
        int32_t node = *full_at(l, l->n);
        *window_at(l, l->n) = l->blocks->block[node].window;
        mica_kv_blocks_hold(l->blocks, MICA_KV_FULL, node);
        mica_kv_blocks_hold(l->blocks, MICA_KV_WINDOWED, window_of(l, l->n));
    }
    l->known = l->n;
    if (l->n > 0)
        mica_kv_tree_touch(l->blocks, *full_at(l, l->n - 1));
}

/* Adds a copy of the first n positions of a node, which is held meanwhile. */
static bool copy_node(mica_kv_lease *l, int32_t node, int32_t n)
{
    mica_kv_blocks *p = l->blocks;
    int32_t window = p->block[node].window;
    if (p->has_windows && window == MICA_KV_NONE)
        return false;
    mica_kv_tree_touch(p, node);
    mica_kv_blocks_hold(p, MICA_KV_FULL, node);
    mica_kv_blocks_hold(p, MICA_KV_WINDOWED, window);
    bool good = add_block(l);
    if (good)
        copy_pair(l, node, window, l->n - 1, n);
    mica_kv_blocks_drop(p, MICA_KV_WINDOWED, window);
    mica_kv_blocks_drop(p, MICA_KV_FULL, node);
    return good;
}

int32_t mica_kv_lease_find(mica_kv_lease *l, const int32_t *tokens, int32_t n, int32_t n_computed)
{
    int32_t count = n_computed / MICA_KV_BLOCK, same, node;
    if (n_computed % MICA_KV_BLOCK || l->known < count)
        return n_computed;
    cut(l, count); /* blocks that were made ready for what may be found instead */
    for (;;) {
        int32_t parent = count > 0 ? *full_at(l, count - 1) : MICA_KV_NONE, at = count * MICA_KV_BLOCK;
        node = mica_kv_tree_find(l->blocks, parent, tokens + at, n - at, &same);
        if (same < MICA_KV_BLOCK)
            break;
        *full_at(l, count++) = node;
    }
    int32_t whole = count;
    while (count > l->n && !windows_are_there(l, count))
        count--;
    if (count > l->n)
        take_nodes(l, count);
    bool copied = count == whole && node != MICA_KV_NONE && copy_node(l, node, same);
    return count * MICA_KV_BLOCK + (copied ? same : 0);
}

/* ---- what others may use ---- */

/* The block of windowed layers that a node can have. Where a cache was filled from within a block on, that one is not whole. */
static int32_t whole_window(const mica_kv_lease *l, int32_t i)
{
    return i * MICA_KV_BLOCK >= l->kv->first ? window_of(l, i) : MICA_KV_NONE;
}

/* Block i is a node already, which takes the place of this one: what is computed from the same tokens has the same bits. */
static void use_node(mica_kv_lease *l, int32_t i, int32_t node)
{
    mica_kv_blocks *p = l->blocks;
    mica_kv_block *b = &p->block[node];
    int32_t own = window_of(l, i);
    if (b->window == MICA_KV_NONE) {
        b->window = whole_window(l, i);
        mica_kv_blocks_hold(p, MICA_KV_WINDOWED, b->window);
    }
    if (own != MICA_KV_NONE && b->window != MICA_KV_NONE && own != b->window) {
        mica_kv_blocks_hold(p, MICA_KV_WINDOWED, b->window);
        mica_kv_blocks_drop(p, MICA_KV_WINDOWED, own);
        *window_at(l, i) = b->window;
    }
    mica_kv_blocks_hold(p, MICA_KV_FULL, node);
    mica_kv_blocks_drop(p, MICA_KV_FULL, *full_at(l, i));
    *full_at(l, i) = node;
}

static void publish_block(mica_kv_lease *l, int32_t i, const int32_t *tokens, int32_t n)
{
    int32_t parent = i > 0 ? *full_at(l, i - 1) : MICA_KV_NONE, same;
    int32_t node = mica_kv_tree_find(l->blocks, parent, tokens, n, &same);
    if (same < n)
        mica_kv_tree_add(l->blocks, parent, *full_at(l, i), whole_window(l, i), tokens, n);
    else if (n == MICA_KV_BLOCK)
        use_node(l, i, node);
}

void mica_kv_lease_publish(mica_kv_lease *l, const int32_t *tokens, int32_t n_computed)
{
    for (; (l->known + 1) * MICA_KV_BLOCK <= n_computed; l->known++)
        publish_block(l, l->known, tokens + l->known * MICA_KV_BLOCK, MICA_KV_BLOCK);
}

void mica_kv_lease_rest(mica_kv_lease *l, const int32_t *tokens, int32_t n_computed)
{
    int32_t rest = n_computed % MICA_KV_BLOCK;
    mica_kv_lease_publish(l, tokens, n_computed);
    cut(l, mica_kv_blocks_for(n_computed));
    if (rest > 0 && l->blocks->block[*full_at(l, l->n - 1)].n == 0)
        publish_block(l, l->known, tokens + l->known * MICA_KV_BLOCK, rest);
    if (l->known > 0)
        mica_kv_tree_touch(l->blocks, *full_at(l, l->known - 1));
}
