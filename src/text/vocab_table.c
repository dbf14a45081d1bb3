/* vocab_table.c - the hash tables of a vocabulary: pieces to ids, pairs of pieces to merges. Built in one pass over the file's
 * arrays, since the product's start waits for it: nothing is copied, and a merge's result is guessed before it is looked up.
 */
#include "base/mem.h"
#include "text/vocab_impl.h"

/* Finds where each string of an array starts; none may be longer than `limit` bytes. */
static mica_status index_strings(mica_strings *s, const mica_gguf_value *v, size_t limit, const char *path, mica_error *err)
{
    uint64_t at = 0;
    s->base = v->data;
    s->count = (uint32_t)v->count;
    s->at = mica_new_array(s->count, sizeof(*s->at));
    if (!s->at) {
        return mica_fail_nomem(err, s->count * sizeof(*s->at), "the vocabulary");
    }
    for (uint32_t i = 0; i < s->count; i++) {
        uint64_t length;
        memcpy(&length, s->base + at, sizeof(length));
        if (length > limit) {
            return mica_fail_at(err, MICA_BAD_FILE, (int64_t)(v->offset + at),
                                "%s: entry %u of %.*s is %llu bytes long; the limit is %zu (at byte %llu)", path, i,
                                (int)v->key.length, v->key.data, (unsigned long long)length, limit,
                                (unsigned long long)(v->offset + at));
        }
        s->at[i] = (uint32_t)at;
        at += sizeof(length) + length;
        if (at > UINT32_MAX) {
            return mica_fail_at(err, MICA_BAD_FILE, (int64_t)v->offset, "%s: %.*s takes more than 4 GiB (at byte %llu)", path,
                                (int)v->key.length, v->key.data, (unsigned long long)v->offset);
        }
    }
    return MICA_OK;
}

static uint64_t table_slots(uint64_t count)
{
    uint64_t slots = 16;
    while (slots * 2 < count * 3) {
        slots *= 2;
    }
    return slots;
}

size_t mica_vocab_heap_bytes(const mica_gguf *g)
{
    const mica_gguf_value *tokens = mica_gguf_find(g, "tokenizer.ggml.tokens");
    const mica_gguf_value *merges = mica_gguf_find(g, "tokenizer.ggml.merges");
    uint64_t n = tokens && tokens->count <= MICA_VOCAB_MAX_TOKENS ? tokens->count : 0;
    uint64_t m = merges && merges->count <= 4 * (uint64_t)MICA_VOCAB_MAX_TOKENS ? merges->count : 0;
    uint64_t token = sizeof(uint32_t) + sizeof(uint64_t) + 2; /* where it starts, its hash, two flags */
    uint64_t bytes = n * token + table_slots(n) * sizeof(mica_slot);
    return (size_t)(m ? bytes + m * (sizeof(uint32_t) + sizeof(int32_t)) + table_slots(m) * sizeof(mica_slot) : bytes);
}

static mica_status new_table(mica_table *t, uint32_t count, mica_error *err)
{
    uint64_t slots = table_slots(count);
    t->slots = mica_new_array((size_t)slots, sizeof(*t->slots));
    t->mask = (uint32_t)(slots - 1);
    t->budget = (uint64_t)count * 32 + 4096; /* good hashing at 2/3 full takes about 2 probes an entry */
    return t->slots ? MICA_OK : mica_fail_nomem(err, (size_t)slots * sizeof(*t->slots), "the vocabulary");
}

static mica_status fail_crafted(const mica_gguf_value *v, const char *path, mica_error *err)
{
    return mica_fail_at(err, MICA_BAD_FILE, (int64_t)v->offset,
                        "%s: the strings of %.*s all hash alike, which only a file made for it does (at byte %llu)", path,
                        (int)v->key.length, v->key.data, (unsigned long long)v->offset);
}

/* Slots are all over a table of megabytes, so entries are hashed and their slots fetched ahead in blocks of this many before
 * they are entered: twice as fast. */
#define BLOCK 32

static void fetch_slot(const mica_table *t, uint64_t hash) { __builtin_prefetch(&t->slots[(uint32_t)hash & t->mask], 1); }

/* Enters index `i` of `strings` under `hash` unless an equal string is there. False when the budget is used up. */
static bool insert(mica_table *t, const mica_strings *strings, uint32_t i, uint64_t hash)
{
    uint32_t mark = (uint32_t)(hash >> 32), at = (uint32_t)hash & t->mask;
    while (t->slots[at].value) {
        if (t->slots[at].mark == mark) {
            mica_str mine = mica_strings_get(strings, i);
            if (mica_str_equal(mica_strings_get(strings, t->slots[at].value - 1), mine.data, mine.length)) {
                return true; /* a duplicate: the first one counts */
            }
        }
        if (!t->budget) {
            return false;
        }
        t->budget--;
        at = (at + 1) & t->mask;
    }
    t->slots[at] = (mica_slot){mark, i + 1};
    return true;
}

int32_t mica_vocab_find(const mica_vocab *v, const char *piece, size_t length)
{
    if (length > v->max_piece) {
        return -1;
    }
    uint64_t hash = mica_hash_bytes(piece, length);
    uint32_t mark = (uint32_t)(hash >> 32), at = (uint32_t)hash & v->ids.mask;
    for (; v->ids.slots[at].value; at = (at + 1) & v->ids.mask) {
        uint32_t id = v->ids.slots[at].value - 1;
        if (v->ids.slots[at].mark == mark && mica_str_equal(mica_strings_get(&v->pieces, id), piece, length)) {
            return (int32_t)id;
        }
    }
    return -1;
}

static bool index_piece_block(mica_vocab *v, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        mica_str piece = mica_strings_get(&v->pieces, i);
        v->hashes[i] = mica_hash_bytes(piece.data, piece.length);
        v->max_piece = piece.length > v->max_piece ? (uint32_t)piece.length : v->max_piece;
        fetch_slot(&v->ids, v->hashes[i]);
    }
    for (uint32_t i = from; i < to; i++) {
        if (!insert(&v->ids, &v->pieces, i, v->hashes[i])) {
            return false;
        }
    }
    return true;
}

mica_status mica_vocab_index_pieces(mica_vocab *v, const mica_gguf *g, mica_error *err)
{
    const char *path = mica_gguf_path(g);
    const mica_gguf_value *tokens = mica_gguf_find(g, "tokenizer.ggml.tokens");
    if (!tokens || tokens->kind != MICA_GGUF_ARRAY || tokens->element != MICA_GGUF_STRING) {
        return mica_fail(err, MICA_BAD_FILE, "%s: tokenizer.ggml.tokens is %s", path,
                         tokens ? "not an array of strings" : "missing");
    }
    if (tokens->count < 1 || tokens->count > MICA_VOCAB_MAX_TOKENS) {
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)tokens->offset,
                            "%s: tokenizer.ggml.tokens has %llu entries, which is not between 1 and %d (at byte %llu)", path,
                            (unsigned long long)tokens->count, MICA_VOCAB_MAX_TOKENS, (unsigned long long)tokens->offset);
    }
    v->n = (int32_t)tokens->count;
    mica_status status = index_strings(&v->pieces, tokens, MICA_VOCAB_MAX_PIECE, path, err);
    if (!status) {
        status = new_table(&v->ids, v->pieces.count, err);
    }
    v->hashes = malloc(v->pieces.count * sizeof(*v->hashes));
    if (!status && !v->hashes) {
        status = mica_fail_nomem(err, v->pieces.count * sizeof(*v->hashes), "the vocabulary");
    }
    for (uint32_t i = 0; i < v->pieces.count && !status; i += BLOCK) {
        if (!index_piece_block(v, i, v->pieces.count - i < BLOCK ? v->pieces.count : i + BLOCK)) {
            status = fail_crafted(tokens, path, err);
        }
    }
    return status;
}

/* Offset of the space between the two pieces of a merge; the left one may itself start with a space. 0 if there is none. */
static size_t merge_space(mica_str merge)
{
    const char *space = merge.length > 2 ? memchr(merge.data + 1, ' ', merge.length - 2) : NULL;
    return space ? (size_t)(space - merge.data) : 0;
}

static bool is_joined(mica_str piece, mica_str merge, size_t space)
{
    return piece.length + 1 == merge.length && !memcmp(piece.data, merge.data, space) &&
           !memcmp(piece.data + space, merge.data + space + 1, merge.length - space - 1);
}

/* The token that a merge gives, or -1. Vocabularies list tokens in the order of their merges, so `guess` (the token after the
 * previous merge's) and the one before it are nearly always right and save a look-up in the table. */
static int32_t merge_result(const mica_vocab *v, mica_str merge, size_t space, int32_t guess)
{
    char joined[2 * MICA_VOCAB_MAX_PIECE + 1];
    for (int32_t id = guess; id >= 0 && id > guess - 2; id--) {
        if (id < v->n && is_joined(mica_strings_get(&v->pieces, (uint32_t)id), merge, space)) {
            return id;
        }
    }
    memcpy(joined, merge.data, space);
    memcpy(joined + space, merge.data + space + 1, merge.length - space - 1);
    return mica_vocab_find(v, joined, merge.length - 1);
}

/* Reads merge i: its result, and the hash of its pair into *hash. */
static mica_status read_merge(mica_vocab *v, uint32_t i, int32_t *guess, uint64_t *hash, const mica_gguf_value *merges,
                              const char *path, mica_error *err)
{
    mica_str merge = mica_strings_get(&v->merges, i);
    size_t space = merge_space(merge);
    if (!space) {
        uint64_t at = merges->offset + v->merges.at[i];
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)at,
                            "%s: entry %u of tokenizer.ggml.merges is not two pieces with a space between (at byte %llu)", path,
                            i, (unsigned long long)at);
    }
    int32_t id = merge_result(v, merge, space, *guess);
    *guess = id + 1;
    v->merged[i] = id >= 0 && mica_vocab_mergeable(v, id) ? id : -1;
    *hash = mica_hash_pair(mica_hash_bytes(merge.data, space),
                           mica_hash_bytes(merge.data + space + 1, merge.length - space - 1));
    return MICA_OK;
}

static mica_status index_merge_block(mica_vocab *v, uint32_t from, uint32_t to, int32_t *guess, const mica_gguf_value *merges,
                                     const char *path, mica_error *err)
{
    uint64_t hashes[BLOCK];
    for (uint32_t i = from; i < to; i++) {
        mica_status status = read_merge(v, i, guess, &hashes[i - from], merges, path, err);
        if (status) {
            return status;
        }
        fetch_slot(&v->pairs, hashes[i - from]);
    }
    for (uint32_t i = from; i < to; i++) {
        if (!insert(&v->pairs, &v->merges, i, hashes[i - from])) {
            return fail_crafted(merges, path, err);
        }
    }
    return MICA_OK;
}

mica_status mica_vocab_index_merges(mica_vocab *v, const mica_gguf *g, mica_error *err)
{
    const char *path = mica_gguf_path(g);
    const mica_gguf_value *merges = mica_gguf_find(g, "tokenizer.ggml.merges");
    if (!merges || merges->kind != MICA_GGUF_ARRAY || merges->element != MICA_GGUF_STRING) {
        return mica_fail(err, MICA_BAD_FILE, "%s: tokenizer.ggml.merges is %s, but a BPE vocabulary needs it", path,
                         merges ? "not an array of strings" : "missing");
    }
    if (merges->count > 4 * (uint64_t)MICA_VOCAB_MAX_TOKENS) {
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)merges->offset,
                            "%s: tokenizer.ggml.merges has %llu entries, more than %d (at byte %llu)", path,
                            (unsigned long long)merges->count, 4 * MICA_VOCAB_MAX_TOKENS,
                            (unsigned long long)merges->offset);
    }
    mica_status status = index_strings(&v->merges, merges, 2 * MICA_VOCAB_MAX_PIECE + 1, path, err);
    if (!status) {
        status = new_table(&v->pairs, v->merges.count, err);
    }
    v->merged = mica_new_array(v->merges.count, sizeof(*v->merged));
    if (!status && !v->merged) {
        status = mica_fail_nomem(err, v->merges.count * sizeof(*v->merged), "the vocabulary");
    }
    int32_t guess = 0;
    for (uint32_t i = 0; i < v->merges.count && !status; i += BLOCK) {
        uint32_t to = v->merges.count - i < BLOCK ? v->merges.count : i + BLOCK;
        status = index_merge_block(v, i, to, &guess, merges, path, err);
    }
    return status;
}

int64_t mica_vocab_find_merge(const mica_vocab *v, int32_t left, int32_t right, int32_t *merged)
{
    uint64_t hash = mica_hash_pair(v->hashes[left], v->hashes[right]);
    uint32_t mark = (uint32_t)(hash >> 32), at = (uint32_t)hash & v->pairs.mask;
    for (; v->pairs.slots[at].value; at = (at + 1) & v->pairs.mask) {
        if (v->pairs.slots[at].mark != mark) {
            continue;
        }
        uint32_t rank = v->pairs.slots[at].value - 1;
        mica_str merge = mica_strings_get(&v->merges, rank);
        mica_str l = mica_strings_get(&v->pieces, (uint32_t)left), r = mica_strings_get(&v->pieces, (uint32_t)right);
        if (l.length + 1 + r.length == merge.length && !memcmp(merge.data, l.data, l.length) &&
            !memcmp(merge.data + l.length + 1, r.data, r.length)) {
            *merged = v->merged[rank];
            return *merged < 0 ? -1 : (int64_t)rank;
        }
    }
    return -1;
}
