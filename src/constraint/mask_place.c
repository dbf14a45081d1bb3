/* mask_place.c - what a place takes by itself, whatever is under it on the stack: found once by a walk with an unknown bottom,
 * and kept.
 *
 * A counter of short texts on top of the stack is a part of the place, because tokens have several of them. No token can count
 * further than it has bytes, so all places with more left than that are one, and so are states that differ only beyond. */
#include "constraint/mask_impl.h"

#define PREPARE_COST 2000000 /* nodes: some 10 ms */

void mica_mask_chars(const mica_automaton *a, int32_t state, int32_t symbol, int32_t left, int chars[MICA_SLICES],
                     unsigned *whole)
{
    const mica_fa_symbol *sym = symbol >= 0 && state == a->symbols[symbol].start ? &a->symbols[symbol] : NULL;
    if (whole)
        *whole = sym ? sym->exact : 0;
    for (int slice = 0; slice < MICA_SLICES; slice++) {
        chars[slice] = a->chars[state][slice];
        if (sym && sym->counts >> slice & 1 && left > chars[slice])
            chars[slice] = left < MICA_SLICE_ENDLESS ? left : MICA_SLICE_ENDLESS;
        if (whole && chars[slice] == MICA_SLICE_ENDLESS)
            *whole |= 1u << slice;
    }
}

static uint32_t place_slot(const mica_masks *k, const mica_mask_place *p)
{
    uint32_t h = (uint32_t)p->state * 0x9E3779B1u ^ (uint32_t)p->symbol * 0x85EBCA6Bu;
    h = (h ^ h >> 15 ^ (uint32_t)p->need * 4 ^ (uint32_t)p->range) * 0xC2B2AE35u;
    h = (h ^ h >> 13 ^ (uint32_t)p->left) * 0x9E3779B1u;
    for (h ^= h >> 16;; h++) {
        h &= k->slots_mask;
        if (!k->slots[h])
            return h;
        const mica_mask_place *q = &k->places[k->slots[h] - 1];
        if (q->state == p->state && q->symbol == p->symbol && q->need == p->need && q->left == p->left &&
            q->range == p->range)
            return h;
    }
}

void mica_mask_places_clear(mica_masks *k)
{
    for (int32_t i = 0; i < k->n_places; i++) {
        free(k->places[i].tokens);
        free(k->places[i].bits);
        free(k->places[i].open);
    }
    k->n_places = 0;
    k->bytes = 0;
    if (k->slots)
        memset(k->slots, 0, ((size_t)k->slots_mask + 1) * sizeof *k->slots);
}

static bool grow_slots(mica_masks *k)
{
    uint32_t size = k->slots ? (k->slots_mask + 1) * 2 : 256;
    int32_t *slots = mica_new_array(size, sizeof *slots);
    if (!slots)
        return false;
    free(k->slots);
    k->slots = slots;
    k->slots_mask = size - 1;
    for (int32_t i = 0; i < k->n_places; i++)
        k->slots[place_slot(k, &k->places[i])] = i + 1;
    return true;
}

/* The walk's start: the place alone, on the bottom or on its counter. */
static mica_status start_walk(mica_masks *k, const mica_mask_place *p, mica_error *err)
{
    mica_fa_engine *e = &k->engine;
    mica_fa_pair end = {MICA_FA_END, MICA_FA_BOTTOM}, pair = {p->state, MICA_FA_BOTTOM};
    if (mica_fa_engine_full(e)) {
        mica_status status = mica_fa_engine_flush(e, NULL, 0, NULL, 0, err);
        if (status)
            return status;
    }
    if (p->symbol >= 0)
        pair.node = mica_fa_node_intern(e, (mica_fa_node){.symbol = p->symbol, .need = p->need, .left = p->left}, &end, 1);
    k->walk.start = pair.node < 0 ? -1 : mica_fa_config_intern(e, &pair, 1, false);
    if (k->walk.start < 0)
        return mica_fa_engine_fail(e, err);
    int32_t follower = p->symbol >= 0 ? p->symbol : k->automaton->owner[p->state];
    k->walk.follow = &k->automaton->symbols[follower].follow;
    k->walk.n_tokens = k->walk.n_open = 0;
    return MICA_OK;
}

/* What the place takes whole is added to each mask anyway, and left out here. */
static mica_status walk_parts(mica_masks *k, const mica_mask_place *p, mica_error *err)
{
    const int32_t *begin = k->trie->begin + p->range * MICA_TRIE_RANGE_PARTS;
    int chars[MICA_SLICES];
    unsigned whole;
    mica_status status = MICA_OK;
    mica_mask_chars(k->automaton, p->state, p->symbol, p->left, chars, &whole);
    for (int slice = 0; slice < MICA_SLICES && !status; slice++)
        if (!(whole >> slice & 1))
            status = mica_walk_nodes(&k->walk, begin[slice], begin[slice + 1], chars[slice], err);
    return status ? status : mica_walk_nodes(&k->walk, begin[MICA_TRIE_REST], begin[MICA_TRIE_REST + 1], 0, err);
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = mica_new_array(bytes, 1);
    if (copy && bytes)
        memcpy(copy, data, bytes);
    return copy;
}

/* Keeps what the walk found, as a list or as a mask, whichever is smaller. */
static mica_status store(mica_masks *k, mica_mask_place *p, mica_error *err)
{
    const mica_walk *w = &k->walk;
    size_t list = (size_t)w->n_tokens * sizeof *p->tokens, mask = k->trie->n_words * sizeof *p->bits;
    p->n_tokens = w->n_tokens;
    p->n_open = w->n_open;
    p->open = copy_of(w->open, (size_t)w->n_open * sizeof *p->open);
    if (list > mask) {
        p->bits = mica_new_array(k->trie->n_words, sizeof *p->bits);
        for (int32_t i = 0; i < w->n_tokens && p->bits; i++)
            p->bits[w->tokens[i] / 32] |= 1u << w->tokens[i] % 32;
    } else {
        p->tokens = copy_of(w->tokens, list);
    }
    if (!p->open || (!p->bits && !p->tokens)) {
        free(p->open);
        free(p->bits);
        free(p->tokens);
        return mica_fa_nomem(err);
    }
    k->bytes += sizeof *p + (size_t)w->n_open * sizeof *p->open + (list > mask ? mask : list);
    return MICA_OK;
}

static mica_status make_place(mica_masks *k, mica_mask_place *p, mica_error *err)
{
    mica_status status = start_walk(k, p, err);
    if (!status)
        status = walk_parts(k, p, err);
    if (status)
        return status;
    if (k->bytes > MICA_MASK_MAX_BYTES || k->n_places >= MICA_MASK_MAX_PLACES)
        mica_mask_places_clear(k);
    if (((uint32_t)k->n_places * 2 >= k->slots_mask && !grow_slots(k)) ||
        !mica_room(&k->places, &k->places_cap, k->n_places + 1, sizeof *k->places))
        return mica_fa_nomem(err);
    status = store(k, p, err);
    if (status)
        return status;
    p->serial = ++k->serial ? k->serial : ++k->serial; /* never 0 */
    k->places[k->n_places++] = *p;
    k->slots[place_slot(k, p)] = k->n_places;
    return MICA_OK;
}

static int32_t at_most(int32_t value, int32_t most) { return value < most ? value : most; }

mica_status mica_mask_place_get(mica_masks *k, int32_t state, const mica_fa_node *top, int range,
                                const mica_mask_place **out, mica_error *err)
{
    mica_mask_place p = {.state = state, .symbol = top->symbol, .range = range};
    if (p.symbol >= 0 && !k->automaton->symbols[p.symbol].is_short)
        p.symbol = -1;
    if (p.symbol < 0 && range < MICA_TRIE_LONG)
        p.state = k->automaton->same[range][state];
    if (p.symbol >= 0) {
        const int32_t longest[MICA_TRIE_RANGES] = {MICA_TRIE_SHORT_BYTES, MICA_TRIE_LONG_BYTES, k->trie->longest};
        int32_t most = 1 + longest[range];
        p.need = at_most(top->need, most);
        p.left = at_most(top->left, most);
    }
    if (!k->slots && !grow_slots(k))
        return mica_fa_nomem(err);
    uint32_t slot = place_slot(k, &p);
    if (!k->slots[slot]) {
        mica_status status = make_place(k, &p, err);
        if (status)
            return status;
        slot = place_slot(k, &p);
    }
    *out = &k->places[k->slots[slot] - 1];
    return MICA_OK;
}

/* The place that is reached after one repetition, where another one may follow. */
static mica_status prepare_counter(mica_masks *k, const mica_fa_symbol *sym, int32_t symbol, mica_error *err)
{
    mica_fa_node top = {.symbol = symbol, .need = sym->need > 2 ? sym->need - 1 : 1};
    top.left = sym->left == MICA_FA_NO_LIMIT ? sym->left : sym->left - 1;
    const mica_mask_place *unused;
    mica_status status = MICA_OK;
    for (int range = 0; range < MICA_TRIE_RANGES && top.left > 0 && !status; range++)
        status = mica_mask_place_get(k, sym->start, &top, range, &unused, err);
    return status;
}

static bool is_over_budget(const mica_masks *k)
{
    return k->walk.cost > PREPARE_COST || k->bytes > MICA_MASK_MAX_BYTES / 2;
}

/* States that take ordinary characters come first: they take longest. */
mica_status mica_mask_places_prepare(mica_masks *k, mica_error *err)
{
    const mica_automaton *a = k->automaton;
    const mica_mask_place *unused;
    const mica_fa_node plain = {.symbol = -1};
    mica_status status = MICA_OK;
    k->walk.cost = 0;
    for (int32_t i = a->n_rules; i < a->n_symbols && !status && !is_over_budget(k); i++)
        if (a->symbols[i].body >= 0 && a->symbols[i].is_short)
            status = prepare_counter(k, &a->symbols[i], i, err);
    for (int pass = 0; pass < 2; pass++)
        for (int32_t s = 0; s < a->n_states && !status && !is_over_budget(k); s++) {
            bool costly = a->chars[s][MICA_SLICE_LOWER] > 0;
            if (costly != (pass == 0) || mica_fa_is_last(a, s) || a->symbols[a->owner[s]].is_short)
                continue; /* bodies of counters are never on anything else */
            for (int range = 0; range < MICA_TRIE_RANGES && !status; range++)
                status = mica_mask_place_get(k, s, &plain, range, &unused, err);
        }
    return status;
}
