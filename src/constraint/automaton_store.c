/* automaton_store.c - nodes and configurations of an engine: interning, copying, forgetting. */
#include "constraint/automaton_engine.h"

static int compare_pairs(const void *a, const void *b)
{
    mica_fa_pair x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x.state != y.state ? (x.state > y.state) - (x.state < y.state) : (x.node > y.node) - (x.node < y.node);
}

static int32_t sort_pairs(mica_fa_pair *p, int32_t n)
{
    int32_t kept = 0;
    if (n == 2 && compare_pairs(&p[0], &p[1]) > 0) {
        mica_fa_pair first = p[1];
        p[1] = p[0];
        p[0] = first;
    } else if (n > 2) {
        qsort(p, (size_t)n, sizeof *p, compare_pairs);
    }
    for (int32_t i = 0; i < n; i++)
        if (kept == 0 || compare_pairs(&p[kept - 1], &p[i]))
            p[kept++] = p[i];
    return kept;
}

static uint32_t mix(uint32_t h, uint32_t v)
{
    h = (h ^ v) * 0x9E3779B1u;
    return h ^ h >> 15;
}

static uint32_t hash_pairs(uint32_t h, const mica_fa_pair *p, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        h = mix(mix(h, (uint32_t)p[i].state), (uint32_t)p[i].node);
    return mix(h, (uint32_t)n);
}

static bool pairs_equal(const mica_fa_pair *a, const mica_fa_pair *b, int32_t n)
{
    return n == 0 || !memcmp(a, b, (size_t)n * sizeof *a);
}

/* ---- Tables ---- */

static bool table_grow(mica_fa_table *t, const void *first_hash, size_t stride)
{
    uint32_t size = t->slots ? (t->mask + 1) * 2 : 256;
    int32_t *slots = mica_new_array(size, sizeof *slots);
    if (!slots)
        return false;
    for (int32_t n = 0; n < t->used; n++) {
        uint32_t hash, i;
        memcpy(&hash, (const char *)first_hash + (size_t)n * stride, sizeof hash);
        for (i = hash & (size - 1); slots[i]; i = (i + 1) & (size - 1)) {
        }
        slots[i] = n + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->mask = size - 1;
    return true;
}

static bool table_has_room(const mica_fa_table *t) { return t->slots && (uint32_t)t->used * 2 <= t->mask; }

static int32_t out_of_memory(mica_fa_engine *e)
{
    e->status = MICA_OUT_OF_MEMORY;
    return -1;
}

static int32_t too_complex(mica_fa_engine *e)
{
    e->status = MICA_INVALID_ARGUMENT;
    return -1;
}

mica_status mica_fa_engine_fail(mica_fa_engine *e, mica_error *err)
{
    mica_status status = e->status;
    e->status = MICA_OK;
    if (status == MICA_OUT_OF_MEMORY)
        return mica_fa_nomem(err);
    return mica_fail(err, status,
                     "the text stands at too many places of the grammar at once, or too deep: more than %d pairs or %d levels",
                     MICA_FA_MAX_PAIRS, MICA_FA_MAX_NODES);
}

/* ---- Nodes ---- */

static size_t node_up(const mica_fa_engine *e, const mica_fa_node *node, const mica_fa_pair *returns)
{
    size_t least = node->count ? MICA_FA_FAR : 0, inner = 0;
    for (int32_t i = 0; i < node->count; i++) {
        size_t up = returns[i].state == MICA_FA_END
                        ? 0
                        : mica_sum_lengths(e->a->shortest[returns[i].state], e->nodes[returns[i].node].up);
        least = up < least ? up : least;
    }
    if (node->symbol >= 0 && node->need > 1) {
        size_t body = e->a->shortest[e->a->symbols[node->symbol].start];
        if (!mica_mul_size(body, (size_t)(node->need - 1), &inner) || inner > MICA_FA_FAR)
            inner = MICA_FA_FAR;
    }
    return mica_sum_lengths(least, inner);
}

static int32_t node_append(mica_fa_engine *e, mica_fa_node node, const mica_fa_pair *returns)
{
    if (node.count > MICA_FA_MAX_PAIRS || e->n_nodes >= 2 * MICA_FA_MAX_NODES)
        return too_complex(e);
    if (!mica_room(&e->nodes, &e->nodes_cap, e->n_nodes + 1, sizeof *e->nodes) ||
        !mica_room(&e->traces, &e->traces_cap, e->nodes_cap, sizeof *e->traces) ||
        !mica_room(&e->node_pairs, &e->node_pairs_cap, (int64_t)e->n_node_pairs + node.count, sizeof *e->node_pairs))
        return out_of_memory(e);
    node.up = node_up(e, &node, returns);
    node.first = e->n_node_pairs;
    if (node.count)
        memcpy(e->node_pairs + e->n_node_pairs, returns, (size_t)node.count * sizeof *returns);
    e->n_node_pairs += node.count;
    e->traces[e->n_nodes] = (struct mica_fa_trace){0};
    e->nodes[e->n_nodes] = node;
    return e->n_nodes++;
}

int32_t mica_fa_node_intern(mica_fa_engine *e, mica_fa_node node, mica_fa_pair *returns, int32_t n)
{
    mica_fa_table *t = &e->node_table;
    if (e->status)
        return -1;
    node.count = n = sort_pairs(returns, n);
    node.hash = mix(hash_pairs(0x51ED27u, returns, n), (uint32_t)node.symbol);
    node.hash = mix(mix(node.hash, (uint32_t)node.need), (uint32_t)node.left);
    if (!table_has_room(t) && !table_grow(t, &e->nodes->hash, sizeof *e->nodes))
        return out_of_memory(e);
    uint32_t i = node.hash & t->mask;
    for (; t->slots[i]; i = (i + 1) & t->mask) {
        const mica_fa_node *old = &e->nodes[t->slots[i] - 1];
        if (old->hash == node.hash && old->symbol == node.symbol && old->need == node.need && old->left == node.left &&
            old->count == n && pairs_equal(e->node_pairs + old->first, returns, n))
            return t->slots[i] - 1;
    }
    int32_t number = node_append(e, node, returns);
    if (number >= 0) {
        t->slots[i] = number + 1;
        t->used++;
    }
    return number;
}

/* ---- Configurations ---- */

/* Whether, after x, texts can do all that they can after y: the same counter, with all that is needed done, and more left. */
static bool covers(const mica_fa_engine *e, mica_fa_pair x, mica_fa_pair y)
{
    const mica_fa_node *p = &e->nodes[x.node], *q = &e->nodes[y.node];
    return p->symbol >= 0 && p->symbol == q->symbol && p->need == 1 && q->need == 1 && p->left >= q->left &&
           p->count == q->count && pairs_equal(e->node_pairs + p->first, e->node_pairs + q->first, p->count);
}

/* Takes out pairs that others cover, so that an ambiguous repetition does not pile up counts. */
static int32_t thin_out(const mica_fa_engine *e, mica_fa_pair *p, int32_t n)
{
    enum { MOST = 64 }; /* a group is thinned at every step and so stays small */
    int32_t kept = 0, group = 0;
    for (int32_t i = 0; i < n; i++) {
        bool covered = false;
        if (kept > 0 && p[kept - 1].state != p[i].state)
            group = kept;
        bool counts = e->nodes[p[i].node].symbol >= 0;
        for (int32_t k = group; counts && k < kept && k < group + MOST && !covered; k++) {
            covered = covers(e, p[k], p[i]);
            if (!covered && covers(e, p[i], p[k])) {
                memmove(p + k, p + k + 1, (size_t)(kept - k - 1) * sizeof *p);
                kept--;
                k--;
            }
        }
        if (!covered)
            p[kept++] = p[i];
    }
    return kept;
}

static int32_t config_append(mica_fa_engine *e, mica_fa_config c, const mica_fa_pair *pairs)
{
    int64_t rows = ((int64_t)e->n_configs + 1) * MICA_FA_ROW;
    if (c.count > MICA_FA_MAX_PAIRS || e->n_configs >= MICA_FA_MAX_CONFIGS)
        return too_complex(e);
    if (!mica_room(&e->configs, &e->configs_cap, e->n_configs + 1, sizeof *e->configs) ||
        !mica_room(&e->rows, &e->rows_cap, rows, sizeof *e->rows) ||
        !mica_room(&e->config_pairs, &e->config_pairs_cap, (int64_t)e->n_config_pairs + c.count, sizeof *e->config_pairs))
        return out_of_memory(e);
    c.first = e->n_config_pairs;
    if (c.count)
        memcpy(e->config_pairs + e->n_config_pairs, pairs, (size_t)c.count * sizeof *pairs);
    e->n_config_pairs += c.count;
    memset(e->rows + rows - MICA_FA_ROW, 0, MICA_FA_ROW * sizeof *e->rows);
    e->configs[e->n_configs] = c;
    return e->n_configs++;
}

int32_t mica_fa_config_intern(mica_fa_engine *e, mica_fa_pair *pairs, int32_t n, bool ended)
{
    mica_fa_table *t = &e->config_table;
    if (e->status)
        return -1;
    n = sort_pairs(pairs, n);
    if (n > 1)
        n = thin_out(e, pairs, n);
    mica_fa_config c = {.count = n, .ended = ended, .hash = hash_pairs(ended, pairs, n)};
    if (!table_has_room(t) && !table_grow(t, &e->configs->hash, sizeof *e->configs))
        return out_of_memory(e);
    uint32_t i = c.hash & t->mask;
    for (; t->slots[i]; i = (i + 1) & t->mask) {
        const mica_fa_config *old = &e->configs[t->slots[i] - 1];
        if (old->hash == c.hash && old->ended == ended && old->count == n &&
            pairs_equal(e->config_pairs + old->first, pairs, n))
            return t->slots[i] - 1;
    }
    int32_t number = config_append(e, c, pairs);
    if (number >= 0) {
        t->slots[i] = number + 1;
        t->used++;
    }
    return number;
}

/* ---- Engines ---- */

mica_status mica_fa_engine_init(mica_fa_engine *e, const mica_automaton *a, int32_t configs, mica_error *err)
{
    *e = (mica_fa_engine){.a = a, .limit_nodes = MICA_FA_NODES, .limit_pool = MICA_FA_POOL};
    e->keep_configs = e->limit_configs = configs > 0 ? configs : MICA_FA_CONFIGS;
    if (!table_grow(&e->node_table, NULL, 0) || !table_grow(&e->config_table, NULL, 0))
        return mica_fa_nomem(err);
    return mica_fa_node_intern(e, (mica_fa_node){.symbol = -1}, NULL, 0) < 0 ? mica_fa_engine_fail(e, err) : MICA_OK;
}

void mica_fa_engine_free(mica_fa_engine *e)
{
    free(e->nodes);
    free(e->node_pairs);
    free(e->configs);
    free(e->config_pairs);
    free(e->rows);
    free(e->node_table.slots);
    free(e->config_table.slots);
    free(e->out);
    free(e->landing);
    free(e->pending);
    free(e->traces);
    memset(e, 0, sizeof *e);
}

/* Scratch of an import: the nodes to bring over, and their new numbers. */
typedef struct import {
    mica_fa_engine *to;
    const mica_fa_engine *from;
    int32_t *number; /* [from->n_nodes] in `to`; -1: not needed, -2: needed */
    mica_fa_pair *pairs;
    int32_t pairs_cap;
} import;

/* Marks the nodes that pairs need. Nodes are higher than what they need, so one pass downwards sees all. */
static void mark_needed(import *im, const int32_t *roots, size_t n_roots)
{
    const mica_fa_engine *f = im->from;
    int32_t highest = 0;
    memset(im->number, 0xFF, (size_t)f->n_nodes * sizeof *im->number);
    for (size_t k = 0; k < n_roots; k++)
        for (int32_t i = 0; i < f->configs[roots[k]].count; i++) {
            int32_t node = f->config_pairs[f->configs[roots[k]].first + i].node;
            im->number[node] = -2;
            highest = node > highest ? node : highest;
        }
    for (int32_t n = highest; n > 0; n--)
        for (int32_t i = 0; im->number[n] == -2 && i < f->nodes[n].count; i++)
            im->number[f->node_pairs[f->nodes[n].first + i].node] = -2;
}

/* Copies pairs with the new numbers of their nodes into im->pairs. */
static bool translate(import *im, const mica_fa_pair *pairs, int32_t n)
{
    if (!mica_room(&im->pairs, &im->pairs_cap, n, sizeof *im->pairs)) {
        im->to->status = MICA_OUT_OF_MEMORY;
        return false;
    }
    for (int32_t i = 0; i < n; i++)
        im->pairs[i] = (mica_fa_pair){pairs[i].state, im->number[pairs[i].node]};
    return true;
}

/* Brings configurations over; the numbers in `roots` become those of `to`. */
static mica_status import_all(mica_fa_engine *to, const mica_fa_engine *from, int32_t *roots, size_t n_roots, mica_error *err)
{
    import im = {to, from, mica_new_array((size_t)from->n_nodes, sizeof(int32_t)), NULL, 0};
    if (!im.number)
        return mica_fa_nomem(err);
    mark_needed(&im, roots, n_roots);
    im.number[MICA_FA_BOTTOM] = MICA_FA_BOTTOM;
    for (int32_t n = 1; n < from->n_nodes && !to->status; n++)
        if (im.number[n] == -2 && translate(&im, from->node_pairs + from->nodes[n].first, from->nodes[n].count))
            im.number[n] = mica_fa_node_intern(to, from->nodes[n], im.pairs, from->nodes[n].count);
    for (size_t k = 0; k < n_roots && !to->status; k++) {
        const mica_fa_config *c = &from->configs[roots[k]];
        if (translate(&im, from->config_pairs + c->first, c->count))
            roots[k] = mica_fa_config_intern(to, im.pairs, c->count, c->ended);
    }
    free(im.number);
    free(im.pairs);
    return to->status ? mica_fa_engine_fail(to, err) : MICA_OK;
}

mica_status mica_fa_engine_import(mica_fa_engine *e, const mica_fa_engine *from, int32_t config, int32_t *out, mica_error *err)
{
    int32_t root = config;
    mica_status status = import_all(e, from, &root, 1, err);
    if (!status)
        *out = root;
    return status;
}

static void replace(mica_fa_engine *e, mica_fa_engine *fresh)
{
    fresh->limit_configs = e->keep_configs > fresh->n_configs + 8 ? e->keep_configs : fresh->n_configs + 8;
    fresh->limit_nodes = fresh->n_nodes > MICA_FA_NODES / 2 ? fresh->n_nodes * 2 : MICA_FA_NODES;
    int32_t pairs = fresh->n_config_pairs > fresh->n_node_pairs ? fresh->n_config_pairs : fresh->n_node_pairs;
    fresh->limit_pool = pairs > MICA_FA_POOL / 2 ? pairs * 2 : MICA_FA_POOL;
    fresh->keep_configs = e->keep_configs;
    fresh->epoch = e->epoch + 1;
    mica_fa_engine_free(e);
    *e = *fresh;
}

mica_status mica_fa_engine_flush(mica_fa_engine *e, int32_t *a, size_t n_a, int32_t *b, size_t n_b, mica_error *err)
{
    mica_fa_engine fresh;
    int32_t *roots = mica_new_array(n_a + n_b, sizeof *roots);
    mica_status status = roots ? mica_fa_engine_init(&fresh, e->a, e->keep_configs, err) : mica_fa_nomem(err);
    if (!roots)
        return status;
    if (n_a)
        memcpy(roots, a, n_a * sizeof *a);
    if (n_b)
        memcpy(roots + n_a, b, n_b * sizeof *b);
    if (!status)
        status = import_all(&fresh, e, roots, n_a + n_b, err);
    if (!status && (fresh.n_nodes > MICA_FA_MAX_NODES || fresh.n_config_pairs > MICA_FA_MAX_POOL ||
                    fresh.n_node_pairs > MICA_FA_MAX_POOL)) {
        fresh.status = MICA_INVALID_ARGUMENT;
        status = mica_fa_engine_fail(&fresh, err);
    }
    if (status) {
        mica_fa_engine_free(&fresh);
    } else {
        if (n_a)
            memcpy(a, roots, n_a * sizeof *a);
        if (n_b)
            memcpy(b, roots + n_a, n_b * sizeof *b);
        replace(e, &fresh);
    }
    free(roots);
    return status;
}
