/* hf_merges.c - the merges of a BPE tokenizer: as they are, or as scores of pieces.
 *
 * SentencePiece joins the two neighbours whose joined piece has the best score, wherever the joined piece exists. Merges say the same
 * if (1) all merges that give one piece stand together, so that its rank is one number, and (2) every way to put a piece together from
 * two others is a merge. Both are checked; a score is then the negative rank, exact in a float up to 2^24 merges. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "convert/hf_json.h"
#include "convert/hf_tokenizer.h"

#define MAX_MERGES (1u << 24)
#define MAX_PIECE 4096 /* bytes, as the engine's reader has it */

typedef struct merge {
    const char *left, *right;
    size_t n_left, n_right;
} merge;

typedef struct ranks {
    uint32_t *first, *count; /* [n] of each piece: its first merge + 1, and how many there are */
    bool apart;              /* merges of one piece do not stand together */
} ranks;

/* "left right" or ["left", "right"]. */
static mica_status read_merge(const json_t *entry, size_t index, merge *m, mica_error *err)
{
    const char *text = json_string_value(entry), *space = text && *text ? strchr(text + 1, ' ') : NULL;
    *m = (merge){0};
    if (space) {
        *m = (merge){text, space + 1, (size_t)(space - text), strlen(space + 1)};
    } else if (json_array_size(entry) == 2) {
        const char *left = json_string_value(json_array_get(entry, 0)), *right = json_string_value(json_array_get(entry, 1));
        if (left && right)
            *m = (merge){left, right, strlen(left), strlen(right)};
    }
    if (m->n_left == 0 || m->n_right == 0 || m->n_left + m->n_right >= MAX_PIECE)
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_TOKENIZER ": merge %zu is not a pair of pieces", index);
    return MICA_OK;
}

static int64_t id_of(const mica_hf_tokenizer *t, const char *piece, size_t length)
{
    const json_t *id = json_object_getn(t->vocab, piece, length);
    return id ? json_integer_value(id) : -1;
}

/* ---- As they are ---- */

static mica_status copy_merges(const json_t *merges, char **texts, mica_error *err)
{
    for (size_t i = 0; i < json_array_size(merges); i++) {
        merge m;
        mica_status status = read_merge(json_array_get(merges, i), i, &m, err);
        if (status)
            return status;
        if (memchr(m.left, ' ', m.n_left) || memchr(m.right, ' ', m.n_right))
            return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_TOKENIZER ": merge %zu has a piece with a space in it, which a GGUF file cannot say", i);
        if (asprintf(&texts[i], "%.*s %.*s", (int)m.n_left, m.left, (int)m.n_right, m.right) < 0) {
            texts[i] = NULL;
            return mica_fail_nomem(err, m.n_left + m.n_right, "a merge");
        }
    }
    return MICA_OK;
}

static mica_status write_merges(const json_t *merges, mica_gguf_writer *w, mica_error *err)
{
    size_t n = json_array_size(merges);
    char **texts = mica_new_array(n, sizeof *texts);
    mica_status status = texts ? copy_merges(merges, texts, err) : mica_fail_nomem(err, n * sizeof *texts, "merges");
    if (!status)
        mica_gguf_writer_texts(w, "tokenizer.ggml.merges", (const char *const *)texts, n);
    for (size_t i = 0; texts && i < n; i++)
        free(texts[i]);
    free(texts);
    return status;
}

/* ---- As scores ---- */

static mica_status rank_pieces(const mica_hf_tokenizer *t, const json_t *merges, ranks *r, mica_error *err)
{
    char piece[MAX_PIECE];
    int64_t before = -1;
    for (size_t i = 0; i < json_array_size(merges); i++) {
        merge m;
        mica_status status = read_merge(json_array_get(merges, i), i, &m, err);
        if (status)
            return status;
        memcpy(piece, m.left, m.n_left);
        memcpy(piece + m.n_left, m.right, m.n_right);
        int64_t id = id_of(t, piece, m.n_left + m.n_right);
        if (id < 0 || id_of(t, m.left, m.n_left) < 0 || id_of(t, m.right, m.n_right) < 0)
            return mica_fail(err, MICA_BAD_FILE, MICA_HF_TOKENIZER ": merge %zu is about pieces that the vocabulary does not have", i);
        r->apart |= id != before && r->first[id];
        r->first[id] = r->first[id] ? r->first[id] : (uint32_t)i + 1;
        r->count[id]++;
        before = id;
    }
    return MICA_OK;
}

/* Whether the merges of token `id` are all ways to put it together. Those with an added token are in some files and not in others:
 * added tokens are found before anything is joined. */
static bool has_all_merges(const mica_hf_tokenizer *t, const ranks *r, size_t id)
{
    const char *piece = t->pieces[id];
    size_t n = strlen(piece);
    uint32_t plain = 0, all = 0;
    for (size_t k = 1; k < n; k++) {
        if (((unsigned char)piece[k] & 0xC0) == 0x80) /* inside a code point */
            continue;
        int64_t left = id_of(t, piece, k), right = id_of(t, piece + k, n - k);
        if (left < 0 || right < 0)
            continue;
        all++;
        plain += t->types[left] == MICA_HF_NORMAL && t->types[right] == MICA_HF_NORMAL;
    }
    return r->count[id] >= plain && r->count[id] <= all;
}

/* True if scores say the same as the merges. */
static bool fill_scores(mica_hf_tokenizer *t, const ranks *r, size_t n_merges)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->types[i] != MICA_HF_NORMAL)
            continue;
        if (!has_all_merges(t, r, i))
            return false;
        t->scores[i] = -(float)(r->first[i] ? r->first[i] - 1 : n_merges); /* what nothing is joined to comes last; no one asks */
    }
    return !r->apart;
}

static mica_status score_pieces(mica_hf_tokenizer *t, const json_t *merges, bool *same, mica_error *err)
{
    ranks r = {.first = mica_new_array(t->n, sizeof *r.first), .count = mica_new_array(t->n, sizeof *r.count)};
    mica_status status = r.first && r.count ? rank_pieces(t, merges, &r, err) : mica_fail_nomem(err, t->n * 8, "ranks of pieces");
    if (!status)
        *same = fill_scores(t, &r, json_array_size(merges));
    free(r.first);
    free(r.count);
    return status;
}

mica_status mica_hf_merges_write(mica_hf_tokenizer *t, mica_gguf_writer *w, const char **model, mica_error *err)
{
    const json_t *merges = json_object_get(t->model, "merges");
    bool same = false;
    mica_status status = MICA_OK;
    if (!json_is_array(merges) || json_array_size(merges) >= MAX_MERGES)
        return mica_fail(err, MICA_BAD_FILE, MICA_HF_TOKENIZER ": the model has no merges, or more than %u", MAX_MERGES);
    if (!t->bytes)
        status = score_pieces(t, merges, &same, err);
    if (status)
        return status;
    *model = t->bytes ? "gpt2" : same ? "llama" : "gemma4";
    if (!t->bytes && !same && t->space_prefix)
        return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_TOKENIZER ": its merges are not those of a SentencePiece vocabulary, and a space is put before a "
                                                                  "text: a GGUF file cannot say both");
    return same ? MICA_OK : write_merges(merges, w, err);
}
