#include "session/prefix_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct node_record {
    int32_t parent, n, has_window, tokens[MICA_KV_BLOCK];
} node_record;

/* ---- writing ---- */

typedef struct writer {
    const mica_prefix_owner *o;
    int32_t n_nodes;
    int32_t *order; /* [n_nodes] blocks in the order of the file */
    int32_t *place; /* [blocks] where in it */
} writer;

typedef struct sort_key {
    uint64_t last_used;
    int32_t depth, block;
} sort_key;

/* The latest first; a node was used whenever its children were. */
static int compare(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    if (x->last_used != y->last_used)
        return x->last_used > y->last_used ? -1 : 1;
    return x->depth != y->depth ? (x->depth > y->depth) - (x->depth < y->depth) : (x->block > y->block) - (x->block < y->block);
}

static bool has_window(const mica_prefix_owner *o, const mica_kv_block *b)
{
    return o->blocks->has_windows && b->window != MICA_KV_NONE;
}

static mica_status put_nodes(const writer *w, mica_sink *to, mica_error *err)
{
    mica_status status = MICA_OK;
    for (int32_t i = 0; i < w->n_nodes && !status; i++) {
        const mica_kv_block *b = &w->o->blocks->block[w->order[i]];
        node_record r = {b->parent == MICA_KV_NONE ? -1 : w->place[b->parent], b->n, has_window(w->o, b), {0}};
        memcpy(r.tokens, b->tokens, (size_t)b->n * sizeof *r.tokens);
        status = to->put(to, &r, sizeof r, err);
    }
    return status;
}

/* One node's keys (or values). */
static mica_status put_rows(const mica_kv_blocks *p, int32_t node, bool keys, mica_sink *to, mica_error *err)
{
    const mica_kv *kv = &p->kv;
    const mica_hparams *h = kv->h;
    const mica_kv_block *b = &p->block[node];
    size_t bytes = mica_quant_bytes(keys ? kv->k_quant : kv->v_quant, (size_t)b->n * (size_t)h->head_dim);
    mica_status status = MICA_OK;
    for (int32_t layer = 0; layer < h->n_layers; layer++) {
        int32_t block = h->windowed[layer] ? b->window : node;
        for (int32_t head = 0; head < h->n_kv_heads && block != MICA_KV_NONE && !status; head++) {
            size_t row = mica_kv_slot_row(kv, layer, head, block * MICA_KV_BLOCK);
            status = to->put(to, keys ? mica_kv_key(kv, row) : mica_kv_value(kv, row), bytes, err);
        }
    }
    return status;
}

static mica_status put_section(const void *owner, const mica_snapshot_header *h, int part, mica_sink *to, mica_error *err)
{
    const writer *w = owner;
    mica_status status = MICA_OK;
    (void)h;
    if (part == MICA_SNAPSHOT_TOKENS)
        return put_nodes(w, to, err);
    for (int32_t i = 0; part != MICA_SNAPSHOT_LOGITS && i < w->n_nodes && !status; i++)
        status = put_rows(w->o->blocks, w->order[i], part == MICA_SNAPSHOT_KEYS, to, err);
    return status;
}

static void lay_out(const mica_prefix_owner *o, mica_snapshot_header *h)
{
    const mica_kv *kv = &o->blocks->kv;
    uint64_t rows = mica_kv_rows(kv->h, h->n_computed - h->first, h->n_computed); /* windowed layers have `first` of them */
    h->sections[MICA_SNAPSHOT_TOKENS].bytes = (uint64_t)h->n_tokens * sizeof(node_record);
    h->sections[MICA_SNAPSHOT_LOGITS].bytes = 0;
    h->sections[MICA_SNAPSHOT_KEYS].bytes = rows * mica_quant_bytes(kv->k_quant, (size_t)kv->h->head_dim);
    h->sections[MICA_SNAPSHOT_VALUES].bytes = rows * mica_quant_bytes(kv->v_quant, (size_t)kv->h->head_dim);
    mica_snapshot_place(h);
}

static mica_status sort_nodes(writer *w, mica_snapshot_header *h, mica_error *err)
{
    const mica_kv_blocks *p = w->o->blocks;
    size_t n = (size_t)p->n[MICA_KV_FULL];
    sort_key *keys = mica_new_array(n, sizeof *keys);
    w->order = mica_new_array(n, sizeof *w->order);
    w->place = mica_new_array(n, sizeof *w->place);
    if (!keys || !w->order || !w->place) {
        free(keys);
        return mica_fail_nomem(err, n * (sizeof *keys + 2 * sizeof *w->order), "the order of the prefixes");
    }
    for (int32_t i = 0; i < p->n[MICA_KV_FULL]; i++)
        if (p->block[i].n > 0)
            keys[w->n_nodes++] = (sort_key){p->block[i].last_used, p->block[i].depth, i};
    qsort(keys, (size_t)w->n_nodes, sizeof *keys, compare);
    for (int32_t i = 0; i < w->n_nodes; i++) {
        const mica_kv_block *b = &p->block[keys[i].block];
        w->order[i] = keys[i].block;
        w->place[keys[i].block] = i;
        h->n_computed += b->n;
        h->first += has_window(w->o, b) ? b->n : 0;
    }
    h->n_tokens = w->n_nodes;
    free(keys);
    return MICA_OK;
}

mica_status mica_prefix_save(const mica_prefix_owner *o, const char *path, mica_error *err)
{
    mica_snapshot_header h;
    writer w = {.o = o};
    mica_snapshot_identify(o->model, o->exec, &o->blocks->kv, o->n_ctx, MICA_SNAPSHOT_PREFIXES, &h);
    mica_status status = sort_nodes(&w, &h, err);
    if (!status) {
        lay_out(o, &h);
        status = mica_snapshot_write_file(&w, &h, put_section, path, err);
    }
    free(w.order);
    free(w.place);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    const mica_prefix_owner *o;
    const char *name;
    const uint8_t *data;
    mica_snapshot_header h, own;
    const node_record *nodes;
    int32_t *block; /* [n_tokens] that a node has become; MICA_KV_NONE: it was left out */
} reader;

static mica_status check_layout(const reader *in, mica_error *err)
{
    mica_snapshot_header expected = in->h;
    if (in->h.n_tokens < 0 || in->h.n_computed < 0 || in->h.first < 0 || in->h.first > in->h.n_computed)
        return mica_fail(err, MICA_BAD_FILE, "%s is damaged: it says that it has %d nodes with %d tokens, and windows of %d",
                         in->name, in->h.n_tokens, in->h.n_computed, in->h.first);
    lay_out(in->o, &expected);
    return mica_snapshot_check_sections(&in->h, &expected, in->name, err);
}

static bool is_good_node(const reader *in, int32_t i)
{
    const node_record *r = &in->nodes[i];
    if (r->parent < -1 || r->parent >= i || r->n < 1 || r->n > MICA_KV_BLOCK || r->has_window < 0 ||
        r->has_window > in->o->blocks->has_windows || (r->parent >= 0 && in->nodes[r->parent].n != MICA_KV_BLOCK))
        return false;
    for (int32_t k = 0; k < r->n; k++)
        if (r->tokens[k] < 0 || r->tokens[k] >= in->o->model->weights.h.n_vocab)
            return false;
    return true;
}

static mica_status check_nodes(const reader *in, mica_error *err)
{
    int64_t tokens = 0, windows = 0;
    for (int32_t i = 0; i < in->h.n_tokens; i++) {
        if (!is_good_node(in, i))
            return mica_fail(err, MICA_BAD_FILE, "%s is damaged: its node %d is impossible", in->name, i);
        tokens += in->nodes[i].n;
        windows += in->nodes[i].has_window ? in->nodes[i].n : 0;
    }
    if (tokens != in->h.n_computed || windows != in->h.first)
        return mica_fail(err, MICA_BAD_FILE, "%s is damaged: its nodes have %lld tokens where %d belong", in->name,
                         (long long)tokens, in->h.n_computed);
    return MICA_OK;
}

/* The rows of node i from *at on, which moves behind them, into blocks; MICA_KV_NONE: they are left out. */
static void take_rows(const reader *in, int32_t i, int32_t full, int32_t window, bool keys, const uint8_t **at)
{
    const mica_kv *kv = &in->o->blocks->kv;
    const mica_hparams *h = kv->h;
    const node_record *r = &in->nodes[i];
    size_t bytes = mica_quant_bytes(keys ? kv->k_quant : kv->v_quant, (size_t)r->n * (size_t)h->head_dim);
    for (int32_t layer = 0; layer < h->n_layers; layer++) {
        if (h->windowed[layer] && !r->has_window)
            continue;
        int32_t block = h->windowed[layer] ? window : full;
        for (int32_t head = 0; head < h->n_kv_heads; head++, *at += bytes) {
            if (block == MICA_KV_NONE)
                continue;
            size_t row = mica_kv_slot_row(kv, layer, head, block * MICA_KV_BLOCK);
            memcpy(keys ? mica_kv_key(kv, row) : mica_kv_value(kv, row), *at, bytes);
        }
    }
}

/* Blocks for node i, where it is not in the tree and there is room; else it stands for the one that is there, or is left out. */
static void choose_blocks(const reader *in, int32_t i, int32_t *full, int32_t *window)
{
    mica_kv_blocks *p = in->o->blocks;
    const node_record *r = &in->nodes[i];
    int32_t parent = r->parent < 0 ? MICA_KV_NONE : in->block[r->parent], same;
    *full = *window = MICA_KV_NONE;
    in->block[i] = MICA_KV_NONE;
    if (r->parent >= 0 && parent == MICA_KV_NONE)
        return;
    int32_t there = mica_kv_tree_find(p, parent, r->tokens, r->n, &same);
    if (same == r->n) {
        in->block[i] = p->block[there].n == r->n ? there : MICA_KV_NONE;
        return;
    }
    if (p->n_free[MICA_KV_FULL] == 0)
        return;
    *full = in->block[i] = mica_kv_blocks_get(p, MICA_KV_FULL);
    if (r->has_window && p->n_free[MICA_KV_WINDOWED] > 0)
        *window = mica_kv_blocks_get(p, MICA_KV_WINDOWED);
}

/* The first in the file get the latest time of use. */
static int64_t take_nodes(const reader *in)
{
    mica_kv_blocks *p = in->o->blocks;
    const uint8_t *keys = in->data + in->h.sections[MICA_SNAPSHOT_KEYS].offset;
    const uint8_t *values = in->data + in->h.sections[MICA_SNAPSHOT_VALUES].offset;
    uint64_t now = p->clock + (uint64_t)in->h.n_tokens; /* adding takes less */
    int64_t taken = 0;
    for (int32_t i = 0; i < in->h.n_tokens; i++) {
        const node_record *r = &in->nodes[i];
        int32_t full, window;
        choose_blocks(in, i, &full, &window);
        take_rows(in, i, full, window, true, &keys);
        take_rows(in, i, full, window, false, &values);
        if (full == MICA_KV_NONE)
            continue;
        mica_kv_tree_add(p, r->parent < 0 ? MICA_KV_NONE : in->block[r->parent], full, window, r->tokens, r->n);
        mica_kv_blocks_drop(p, MICA_KV_FULL, full); /* the tree's use stays */
        mica_kv_blocks_drop(p, MICA_KV_WINDOWED, window);
        taken += r->n;
    }
    for (int32_t i = 0; i < in->h.n_tokens; i++)
        if (in->block[i] != MICA_KV_NONE && p->block[in->block[i]].n > 0)
            p->block[in->block[i]].last_used = now - (uint64_t)i;
    p->clock = now;
    return taken;
}

static mica_status restore(reader *in, const mica_map *map, int64_t *n_tokens, mica_error *err)
{
    const mica_prefix_owner *o = in->o;
    in->data = map->data;
    mica_status status = mica_snapshot_decode(map->data, map->length, MICA_SNAPSHOT_PREFIXES, in->name, &in->h, err);
    if (status)
        return status;
    mica_snapshot_identify(o->model, o->exec, &o->blocks->kv, o->n_ctx, MICA_SNAPSHOT_PREFIXES, &in->own);
    if ((status = mica_snapshot_check_origin(&in->h, &in->own, in->name, err)) || (status = check_layout(in, err)) ||
        (status = mica_snapshot_check_content(&in->h, in->data, in->name, err)))
        return status;
    size_t bytes = (size_t)in->h.sections[MICA_SNAPSHOT_TOKENS].bytes;
    node_record *nodes = malloc(bytes + 1);
    in->block = mica_new_array((size_t)in->h.n_tokens + 1, sizeof *in->block);
    if (!nodes || !in->block)
        status = mica_fail_nomem(err, bytes, "the list of prefixes");
    if (!status) {
        memcpy(nodes, in->data + in->h.sections[MICA_SNAPSHOT_TOKENS].offset, bytes); /* checked here: a file could change */
        in->nodes = nodes;
        status = check_nodes(in, err);
    }
    if (!status)
        *n_tokens = take_nodes(in);
    free(nodes);
    free(in->block);
    return status;
}

mica_status mica_prefix_restore(const mica_prefix_owner *owner, const char *path, int64_t *n_tokens, mica_error *err)
{
    mica_map map;
    reader in = {.o = owner, .name = mica_path_tail(path)};
    *n_tokens = 0;
    mica_status status = mica_snapshot_map(path, &map, err);
    if (status)
        return status;
    status = restore(&in, &map, n_tokens, err);
    mica_map_close(&map);
    return status;
}
