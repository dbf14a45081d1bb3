/* mask.c - the mask of a text's place: for each of its pairs what the state takes by itself, and where tokens run past the
 * state's symbol, what the stack says. */
#include "constraint/mask.h"

#include "base/clock.h"
#include "constraint/mask_impl.h"

#define MANY_PAIRS 24 /* of one configuration */

/* Nodes of the trie are two to three a token; an engine with its usual rows, pairs and nodes, once for the masks and twice for
 * the matchers of a reply, takes a few MiB. */
size_t mica_masks_most_bytes(int32_t n_vocab)
{
    size_t n = (size_t)n_vocab, levels = (size_t)MICA_SLICES * MICA_TRIE_LONG_BYTES * MICA_MASK_WORDS(n) * sizeof(uint32_t);
    return MICA_MASK_MAX_BYTES + ((size_t)12 << 20) + 3 * n * (sizeof(mica_trie_node) + 1) + n * sizeof(int32_t) + levels;
}

mica_status mica_masks_new(const mica_automaton *a, const mica_token_trie *t, mica_masks **out, mica_error *err)
{
    mica_masks *k = mica_new_array(1, sizeof *k);
    *out = NULL;
    if (!k)
        return mica_fa_nomem(err);
    if (pthread_mutex_init(&k->lock, NULL)) {
        free(k);
        return mica_fa_nomem(err);
    }
    k->automaton = a;
    k->trie = t;
    k->id = (uint64_t)mica_now_ns();
    mica_status status = mica_fa_engine_init(&k->engine, a, 0, err);
    k->walk = (mica_walk){.engine = &k->engine, .trie = t, .tokens = mica_new_array((size_t)t->n_vocab, sizeof(int32_t))};
    if (!status && !k->walk.tokens)
        status = mica_fa_nomem(err);
    if (!status)
        status = mica_mask_places_prepare(k, err);
    if (status)
        mica_masks_free(k);
    else
        *out = k;
    return status;
}

void mica_masks_free(mica_masks *k)
{
    if (!k)
        return;
    mica_mask_places_clear(k);
    mica_fa_engine_free(&k->engine);
    free(k->walk.tokens);
    free(k->walk.open);
    free(k->places);
    free(k->slots);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

/* ---- What open nodes give ---- */

void mica_mask_memo_free(struct mica_mask_memo *memo)
{
    if (memo)
        free(memo->tokens);
    free(memo);
}

static void memo_clear(struct mica_mask_memo *memo)
{
    memset(memo->entries, 0, sizeof memo->entries);
    memo->used = memo->n_tokens = 0;
}

/* The matcher's memo, empty if it is another engine's or vocabulary's. NULL: no memory. */
static struct mica_mask_memo *memo_of(mica_masks *k, mica_matcher *m)
{
    if (!m->memo) {
        m->memo = mica_new_array(1, sizeof *m->memo);
        if (!m->memo)
            return NULL;
    }
    if (m->memo->owner != k->id || m->memo->epoch != m->engine.epoch) {
        memo_clear(m->memo);
        m->memo->owner = k->id;
        m->memo->epoch = m->engine.epoch;
    }
    return m->memo;
}

static mica_mask_memo_entry *memo_find(struct mica_mask_memo *memo, uint32_t serial, int32_t config)
{
    uint32_t h = (serial * 0x9E3779B1u ^ (uint32_t)config) * 0x85EBCA6Bu;
    for (h ^= h >> 15;; h++) {
        mica_mask_memo_entry *entry = &memo->entries[h % MICA_MEMO_SLOTS];
        if (!entry->serial || (entry->serial == serial && entry->config == config))
            return entry;
    }
}

static mica_status memo_keep(struct mica_mask_memo *memo, uint32_t serial, int32_t config, const mica_walk *w, mica_error *err)
{
    if (memo->used >= MICA_MEMO_SLOTS / 2 || memo->n_tokens > MICA_MEMO_TOKENS)
        memo_clear(memo);
    if (!mica_room(&memo->tokens, &memo->tokens_cap, (int64_t)memo->n_tokens + w->n_tokens, sizeof *memo->tokens))
        return mica_fa_nomem(err);
    mica_mask_memo_entry *entry = memo_find(memo, serial, config);
    *entry = (mica_mask_memo_entry){serial, config, memo->n_tokens, w->n_tokens};
    if (w->n_tokens)
        memcpy(memo->tokens + memo->n_tokens, w->tokens, (size_t)w->n_tokens * sizeof *w->tokens);
    memo->n_tokens += w->n_tokens;
    memo->used++;
    return MICA_OK;
}

static void set_tokens(uint32_t *mask, const int32_t *tokens, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        mask[tokens[i] / 32] |= 1u << tokens[i] % 32;
}

/* Goes on from the place's open nodes with what is really under it. */
static mica_status add_open(mica_masks *k, mica_matcher *m, const mica_mask_place *p, int32_t node, uint32_t *mask,
                            mica_error *err)
{
    const mica_trie_node *nodes = k->trie->nodes;
    mica_walk *w = &k->walk;
    int32_t under;
    mica_status status = mica_fa_leave(&m->engine, node, p->symbol < 0, &under, err);
    if (status || m->engine.configs[under].count == 0)
        return status;
    struct mica_mask_memo *memo = memo_of(k, m);
    if (!memo)
        return mica_fa_nomem(err);
    const mica_mask_memo_entry *known = memo_find(memo, p->serial, under);
    if (known->serial) {
        set_tokens(mask, memo->tokens + known->first, known->count);
        return MICA_OK;
    }
    mica_walk real = {.engine = &m->engine, .kept = m->kept, .n_kept = 2, .trie = k->trie, .start = under, .tokens = w->tokens};
    for (int32_t i = 0; i < p->n_open && !status; i++) {
        int32_t open = p->open[i];
        if (real.n_tokens + mica_trie_size(nodes[open]) > k->trie->n_vocab) { /* subtrees of open nodes may overlap */
            set_tokens(mask, real.tokens, real.n_tokens);
            real.n_tokens = 0;
            memo = NULL;
        }
        status = mica_walk_nodes(&real, open + 1, open + mica_trie_size(nodes[open]), 0, err);
    }
    if (status)
        return status;
    set_tokens(mask, real.tokens, real.n_tokens);
    if (memo && memo->epoch == m->engine.epoch)
        status = memo_keep(memo, p->serial, under, &real, err);
    return status;
}

/* ---- Masks ---- */

static void add_mask(uint32_t *mask, const uint32_t *other, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++)
        mask[i] |= other[i];
}

/* The mask of the characters that the configuration takes whichever they are: as many of each slice as the best of its
 * pairs. */
static void set_slices(const mica_masks *k, const mica_matcher *m, uint32_t *mask, int chars[MICA_SLICES])
{
    const mica_token_trie *t = k->trie;
    const mica_fa_engine *e = &m->engine;
    const mica_fa_config *c = &e->configs[m->kept[0]];
    int larger = 0;
    memset(chars, 0, MICA_SLICES * sizeof *chars);
    for (int32_t i = 0; i < c->count; i++) {
        int own[MICA_SLICES];
        mica_fa_pair pair = e->config_pairs[c->first + i];
        mica_mask_chars(k->automaton, pair.state, e->nodes[pair.node].symbol, e->nodes[pair.node].left, own, NULL);
        for (int slice = 0; slice < MICA_SLICES; slice++)
            chars[slice] = own[slice] > chars[slice] ? own[slice] : chars[slice];
    }
    for (int slice = MICA_SLICES - 1; slice >= 0; slice--) {
        int level = chars[slice] < MICA_TRIE_LONG_BYTES ? chars[slice] : MICA_TRIE_LONG_BYTES;
        if (level <= larger)
            continue; /* a larger slice's mask has them */
        if (larger == 0)
            memcpy(mask, mica_trie_level_mask(t, slice, level), t->n_words * sizeof *mask);
        else
            add_mask(mask, mica_trie_level_mask(t, slice, level), t->n_words);
        larger = level;
    }
    if (larger == 0)
        memset(mask, 0, t->n_words * sizeof *mask);
    for (int32_t i = 0; larger > 0 && i < t->n_texts; i++)
        if (t->texts[i].chars <= chars[t->texts[i].slice])
            set_tokens(mask, &t->texts[i].token, 1);
}

/* One part of the vocabulary for pair i of the matcher's configuration; a flush on the way keeps the order of the pairs. */
static mica_status add_place(mica_masks *k, mica_matcher *m, int32_t i, int range, uint32_t *mask, mica_error *err)
{
    mica_fa_engine *e = &m->engine;
    const mica_mask_place *p;
    if (mica_fa_engine_full(e)) {
        mica_status status = mica_fa_engine_flush(e, m->kept, 2, NULL, 0, err);
        if (status)
            return status;
    }
    mica_fa_pair pair = e->config_pairs[e->configs[m->kept[0]].first + i];
    mica_status status = mica_mask_place_get(k, pair.state, &e->nodes[pair.node], range, &p, err);
    if (status)
        return status;
    if (p->bits)
        add_mask(mask, p->bits, k->trie->n_words);
    else
        set_tokens(mask, p->tokens, p->n_tokens);
    return p->n_open > 0 ? add_open(k, m, p, pair.node, mask, err) : MICA_OK;
}

/* Whether all bytes of a very long token may follow. */
static mica_status try_giant(mica_masks *k, mica_matcher *m, const mica_trie_giant *giant, uint32_t *mask, mica_error *err)
{
    mica_fa_engine *e = &m->engine;
    int32_t config = m->kept[0];
    for (size_t i = 0; i < giant->length; i++) {
        mica_status status = MICA_OK;
        mica_fa_cell cell = MICA_FA_UNKNOWN;
        if (mica_fa_engine_full(e))
            status = mica_fa_engine_flush(e, m->kept, 2, &config, 1, err);
        if (!status)
            status = mica_fa_step(e, config, k->trie->giant_bytes[giant->first + i], &cell, err);
        if (status || cell == MICA_FA_DEAD)
            return status;
        config = mica_fa_cell_config(cell);
    }
    set_tokens(mask, &giant->token, 1);
    return MICA_OK;
}

/* All pairs at once, by one walk from the configuration: for places so ambiguous that pair by pair would take longer. chars:
 * those in the mask already. */
static mica_status add_directly(mica_masks *k, mica_matcher *m, const int chars[MICA_SLICES], uint32_t *mask, mica_error *err)
{
    const mica_token_trie *t = k->trie;
    mica_walk real = {.engine = &m->engine, .kept = m->kept, .n_kept = 2, .trie = t, .tokens = k->walk.tokens};
    mica_status status = MICA_OK;
    for (int part = 0; part < MICA_TRIE_PARTS && !status; part++) {
        int slice = part % MICA_TRIE_RANGE_PARTS;
        real.start = m->kept[0];
        status = mica_walk_nodes(&real, t->begin[part], t->begin[part + 1], slice < MICA_SLICES ? chars[slice] : 0, err);
    }
    if (!status)
        set_tokens(mask, real.tokens, real.n_tokens);
    return status;
}

static mica_status fill(mica_masks *k, mica_matcher *m, uint32_t *mask, mica_error *err)
{
    const mica_token_trie *t = k->trie;
    int32_t n = m->engine.configs[m->kept[0]].count;
    int chars[MICA_SLICES];
    mica_status status = MICA_OK;
    set_slices(k, m, mask, chars);
    if (n > MANY_PAIRS)
        status = add_directly(k, m, chars, mask, err);
    for (int32_t i = 0; i < n && n <= MANY_PAIRS && !status; i++)
        for (int range = 0; range < MICA_TRIE_RANGES && !status; range++)
            status = add_place(k, m, i, range, mask, err);
    for (int32_t i = 0; i < t->n_giants && !status; i++)
        status = try_giant(k, m, &t->giants[i], mask, err);
    for (int32_t i = 0; i < t->n_twins; i++)
        if (mask[t->twins[i].token / 32] >> t->twins[i].token % 32 & 1)
            set_tokens(mask, &t->twins[i].twin, 1);
    return status;
}

static int32_t count_bits(const uint32_t *mask, size_t n)
{
    int32_t total = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t x = mask[i];
        x -= x >> 1 & 0x55555555u;
        x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
        x = (x + (x >> 4)) & 0x0F0F0F0Fu;
        total += (int32_t)(x * 0x01010101u >> 24);
    }
    return total;
}

mica_status mica_masks_fill(mica_masks *k, mica_matcher *m, uint32_t *mask, int32_t *n_allowed, mica_error *err)
{
    pthread_mutex_lock(&k->lock);
    mica_status status = fill(k, m, mask, err);
    pthread_mutex_unlock(&k->lock);
    if (!status && n_allowed)
        *n_allowed = count_bits(mask, k->trie->n_words);
    return status;
}
