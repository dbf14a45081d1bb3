/* trie.c - a vocabulary as byte tries, one for each part: tokens of ordinary characters by slice, very long ones, and the
 * rest. */
#include "constraint/mask_impl.h"

/* A token while the trie is built. */
typedef struct item {
    uint64_t key; /* first eight bytes, big-endian: decides most comparisons */
    const uint8_t *bytes;
    int32_t length, token;
    uint8_t part, chars;
} item;

typedef struct maker {
    mica_token_trie *t;
    const mica_vocab *vocab;
    item *items;
    int32_t n_items, n_long;
    uint8_t *bytes;
    int32_t path[MICA_TRIE_MAX_BYTES + 1]; /* open nodes of the last token */
    int32_t depth;
} maker;

static int compare_items(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->part != y->part)
        return x->part - y->part;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    int order = memcmp(x->bytes, y->bytes, (size_t)(x->length < y->length ? x->length : y->length));
    if (order == 0)
        order = (x->length > y->length) - (x->length < y->length);
    return order ? order : (x->token > y->token) - (x->token < y->token);
}

static int range_of(int32_t length)
{
    return length > MICA_TRIE_LONG_BYTES ? MICA_TRIE_LONG : length > MICA_TRIE_SHORT_BYTES ? MICA_TRIE_MIDDLE : MICA_TRIE_SHORT;
}

/* The first slice that a token belongs to, or REST; and its characters. */
static void classify(item *it)
{
    int base = range_of(it->length) * MICA_TRIE_RANGE_PARTS;
    for (int slice = 0; slice < MICA_SLICES; slice++) {
        int state = 0, chars = 0;
        for (int32_t i = 0; i < it->length && state >= 0; i++) {
            state = mica_slice_step(slice, state, it->bytes[i]);
            chars += state == 0;
        }
        if (state == 0) {
            it->part = (uint8_t)(base + slice);
            it->chars = (uint8_t)chars;
            return;
        }
    }
    it->part = (uint8_t)(base + MICA_TRIE_REST);
}

static void set_key(item *it)
{
    it->key = 0;
    for (int32_t i = 0; i < 8; i++)
        it->key = it->key << 8 | (i < it->length ? it->bytes[i] : 0);
}

static mica_status add_giant(maker *m, int32_t token, size_t length, size_t *used, mica_error *err)
{
    mica_token_trie *t = m->t;
    mica_trie_giant *giants = realloc(t->giants, ((size_t)t->n_giants + 1) * sizeof *giants);
    if (giants)
        t->giants = giants;
    uint8_t *bytes = realloc(t->giant_bytes, *used + length);
    if (bytes)
        t->giant_bytes = bytes;
    if (!giants || !bytes)
        return mica_fa_nomem(err);
    mica_vocab_bytes(m->vocab, token, false, (char *)bytes + *used, length);
    giants[t->n_giants++] = (mica_trie_giant){token, *used, length};
    *used += length;
    return MICA_OK;
}

static mica_status gather(maker *m, mica_error *err)
{
    mica_token_trie *t = m->t;
    size_t total = 0, at = 0, giant_bytes = 0;
    for (int32_t i = 0; i < t->n_vocab; i++) {
        size_t length = mica_vocab_bytes(m->vocab, i, false, NULL, 0);
        total += length <= MICA_TRIE_MAX_BYTES ? length : 0;
    }
    m->bytes = mica_new_array(total, 1);
    m->items = mica_new_array((size_t)t->n_vocab, sizeof *m->items);
    if (!m->bytes || !m->items)
        return mica_fa_nomem(err);
    for (int32_t i = 0; i < t->n_vocab; i++) {
        size_t length = mica_vocab_bytes(m->vocab, i, false, (char *)m->bytes + at, total - at);
        if (length == 0)
            continue;
        if (length > MICA_TRIE_MAX_BYTES) {
            mica_status status = add_giant(m, i, length, &giant_bytes, err);
            if (status)
                return status;
            continue;
        }
        item *it = &m->items[m->n_items++];
        *it = (item){.bytes = m->bytes + at, .length = (int32_t)length, .token = i};
        at += length;
        classify(it);
        set_key(it);
    }
    qsort(m->items, (size_t)m->n_items, sizeof *m->items, compare_items);
    return MICA_OK;
}

static int32_t common_prefix(const item *a, const item *b)
{
    int32_t n = 0;
    while (n < a->length && n < b->length && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

/* Nodes that the sorted items need, and how many items repeat the one before. */
static void count_nodes(maker *m)
{
    for (int32_t i = 0; i < m->n_items; i++) {
        const item *it = &m->items[i], *last = it - 1;
        bool fresh = i == 0 || last->part != it->part;
        int32_t shared = fresh ? 0 : common_prefix(last, it);
        m->t->n_nodes += it->length - shared;
        m->t->n_twins += !fresh && shared == it->length && last->length == it->length;
        m->n_long += it->length > MICA_TRIE_LONG_BYTES;
        m->t->longest = it->length > m->t->longest ? it->length : m->t->longest;
    }
}

/* Closes open nodes down to `depth`: their subtrees end here. */
static void close_nodes(maker *m, int32_t depth, int32_t end)
{
    for (; m->depth > depth; m->depth--) {
        int32_t n = m->path[m->depth - 1];
        m->t->nodes[n].size_byte |= (uint32_t)(end - n) << 8;
        if (m->depth > 1 && m->t->chars[m->path[m->depth - 2]] < m->t->chars[n])
            m->t->chars[m->path[m->depth - 2]] = m->t->chars[n];
    }
}

static void make_nodes(maker *m)
{
    mica_token_trie *t = m->t;
    int32_t n = 0, n_twins = 0, part = 0;
    for (int32_t i = 0; i < m->n_items; i++) {
        const item *it = &m->items[i];
        bool fresh = i == 0 || it[-1].part != it->part;
        int32_t shared = fresh ? 0 : common_prefix(it - 1, it);
        close_nodes(m, shared, n);
        while (part < it->part)
            t->begin[++part] = n;
        if (shared == it->length) { /* no node is new: the item before had the same bytes */
            int32_t token = mica_trie_token(t->nodes[m->path[m->depth - 1]]);
            t->twins[n_twins++] = (mica_trie_twin){token, it->token};
            continue;
        }
        for (int32_t d = shared; d < it->length; d++) {
            m->path[m->depth++] = n;
            t->nodes[n++] = (mica_trie_node){it->bytes[d], (uint32_t)d};
        }
        t->nodes[n - 1].token_depth |= (uint32_t)(it->token + 1) << 8;
        t->chars[n - 1] = it->chars;
    }
    close_nodes(m, 0, n);
    while (part < MICA_TRIE_PARTS)
        t->begin[++part] = n;
}

static void make_masks(maker *m)
{
    mica_token_trie *t = m->t;
    for (int32_t i = 0; i < m->n_items; i++) {
        const item *it = &m->items[i];
        int first = it->part % MICA_TRIE_RANGE_PARTS;
        bool is_long = it->part / MICA_TRIE_RANGE_PARTS == MICA_TRIE_LONG;
        if (is_long && first != MICA_TRIE_REST)
            t->texts[t->n_texts++] = (mica_trie_text){it->token, (uint8_t)first, it->chars};
        for (int slice = first; !is_long && slice < MICA_SLICES; slice++)
            for (int chars = it->chars; chars <= MICA_TRIE_LONG_BYTES; chars++)
                mica_trie_level_mask(t, slice, chars)[it->token / 32] |= 1u << it->token % 32;
    }
}

static mica_status make(maker *m, mica_error *err)
{
    mica_token_trie *t = m->t;
    mica_status status = gather(m, err);
    if (status)
        return status;
    count_nodes(m);
    if (t->n_nodes >= 1 << 24 || t->n_vocab >= (1 << 24) - 1)
        return mica_fail(err, MICA_UNSUPPORTED, "the vocabulary is too large for constraints: %d tokens, %d bytes that differ",
                         t->n_vocab, t->n_nodes);
    t->nodes = mica_new_array((size_t)t->n_nodes, sizeof *t->nodes);
    t->chars = mica_new_array((size_t)t->n_nodes, 1);
    t->twins = mica_new_array((size_t)t->n_twins, sizeof *t->twins);
    t->texts = mica_new_array((size_t)m->n_long, sizeof *t->texts);
    t->level_masks = mica_new_array((size_t)MICA_SLICES * MICA_TRIE_LONG_BYTES * t->n_words, sizeof *t->level_masks);
    if (!t->nodes || !t->chars || !t->twins || !t->texts || !t->level_masks)
        return mica_fa_nomem(err);
    make_nodes(m);
    make_masks(m);
    return MICA_OK;
}

mica_status mica_token_trie_new(const mica_vocab *vocab, mica_token_trie **out, mica_error *err)
{
    maker m = {.t = mica_new_array(1, sizeof(mica_token_trie)), .vocab = vocab};
    *out = NULL;
    if (!m.t)
        return mica_fa_nomem(err);
    m.t->n_vocab = mica_vocab_size(vocab);
    m.t->n_words = MICA_MASK_WORDS(m.t->n_vocab);
    mica_status status = make(&m, err);
    if (status)
        mica_token_trie_free(m.t);
    else
        *out = m.t;
    free(m.bytes);
    free(m.items);
    return status;
}

void mica_token_trie_free(mica_token_trie *t)
{
    if (!t)
        return;
    free(t->nodes);
    free(t->chars);
    free(t->twins);
    free(t->giants);
    free(t->giant_bytes);
    free(t->texts);
    free(t->level_masks);
    free(t);
}

int32_t mica_token_trie_n_vocab(const mica_token_trie *t) { return t->n_vocab; }
