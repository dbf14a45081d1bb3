#include "convert/hf_tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "convert/hf_json.h"

#define SPACE "\xE2\x96\x81" /* U+2581 */

static mica_status bad(mica_error *err, const char *what) { return mica_fail(err, MICA_BAD_FILE, MICA_HF_TOKENIZER ": %s", what); }

static mica_status load(mica_hf_tokenizer *t, const char *dir, mica_error *err)
{
    mica_status s;
    if ((s = mica_hf_load(dir, MICA_HF_TOKENIZER, true, false, &t->file, err)) ||
        (s = mica_hf_load(dir, "tokenizer_config.json", false, true, &t->settings, err)) ||
        (s = mica_hf_load(dir, "generation_config.json", false, false, &t->generation, err)))
        return s;
    t->model = json_object_get(t->file, "model");
    t->vocab = json_object_get(t->model, "vocab");
    const char *type = mica_hf_text(t->model, "type");
    if (!type && json_is_object(t->vocab) && json_is_array(json_object_get(t->model, "merges")))
        type = "BPE"; /* old files do not say it */
    if (!type || strcmp(type, "BPE") != 0)
        return mica_fail(err, MICA_UNSUPPORTED, MICA_HF_TOKENIZER ": the tokenizer is of the type \"%.40s\"; only BPE can be converted",
                         type ? type : "");
    return json_is_object(t->vocab) ? MICA_OK : bad(err, "the model has no vocab");
}

static mica_status allocate(mica_hf_tokenizer *t, mica_error *err)
{
    t->pieces = mica_new_array(t->n, sizeof *t->pieces);
    t->made = mica_new_array(t->n, sizeof *t->made);
    t->types = mica_new_array(t->n, sizeof *t->types);
    t->scores = mica_new_array(t->n, sizeof *t->scores);
    t->given = mica_new_array(t->n, sizeof *t->given);
    return t->pieces && t->made && t->types && t->scores && t->given ? MICA_OK : mica_fail_nomem(err, t->n * 29, "the vocabulary");
}

static bool is_byte(const char *piece)
{
    unsigned byte;
    char again[8];
    if (strlen(piece) != 6 || sscanf(piece, "<0x%2X>", &byte) != 1)
        return false;
    snprintf(again, sizeof again, "<0x%02X>", byte);
    return strcmp(piece, again) == 0;
}

static mica_status read_vocab(mica_hf_tokenizer *t, mica_error *err)
{
    const char *piece, *unknown = mica_hf_text(t->model, "unk_token");
    json_t *id;
    json_object_foreach((json_t *)(uintptr_t)t->vocab, piece, id) {
        json_int_t i = json_integer_value(id);
        if (!json_is_integer(id) || i < 0)
            return mica_fail(err, MICA_BAD_FILE, MICA_HF_TOKENIZER ": the id of the token \"%.60s\" is no number", piece);
        if ((uint64_t)i >= t->n)
            return mica_fail(err, MICA_BAD_FILE, MICA_HF_TOKENIZER ": the token \"%.60s\" has the id %lld, but the embedding has %zu rows", piece,
                             (long long)i, t->n);
        if (t->pieces[i])
            return mica_fail(err, MICA_BAD_FILE, MICA_HF_TOKENIZER ": the tokens \"%.60s\" and \"%.60s\" both have the id %lld", t->pieces[i], piece,
                             (long long)i);
        t->pieces[i] = piece;
        t->types[i] = t->bytes ? MICA_HF_NORMAL : unknown && strcmp(piece, unknown) == 0 ? MICA_HF_UNKNOWN : is_byte(piece) ? MICA_HF_BYTE : MICA_HF_NORMAL;
    }
    return MICA_OK;
}

/* A copy with spaces for U+2581: user-defined tokens are found in a text before its spaces are replaced. */
static char *with_spaces(const char *piece)
{
    char *copy = strdup(piece), *to = copy;
    for (const char *p = copy; p && *p;) {
        bool space = strncmp(p, SPACE, 3) == 0;
        *to++ = space ? ' ' : *p;
        p += space ? 3 : 1;
    }
    if (copy)
        *to = '\0';
    return copy;
}

static mica_status add_token(mica_hf_tokenizer *t, const json_t *token, mica_error *err)
{
    const json_t *id = json_object_get(token, "id");
    const char *content = mica_hf_text(token, "content");
    json_int_t i = json_integer_value(id);
    if (!json_is_integer(id) || i < 0 || !content || !*content)
        return bad(err, "an entry of added_tokens has no id or no content");
    if ((uint64_t)i >= t->n) /* like those for images, which the language model never gets */
        return MICA_OK;
    t->given[i] = true;
    t->pieces[i] = content;
    if (t->types[i] == MICA_HF_UNKNOWN)
        return MICA_OK;
    t->types[i] = json_is_true(json_object_get(token, "special")) ? MICA_HF_CONTROL : MICA_HF_USER;
    if (t->bytes || t->types[i] != MICA_HF_USER || !strstr(content, SPACE))
        return MICA_OK;
    free(t->made[i]);
    t->made[i] = with_spaces(content);
    t->pieces[i] = t->made[i];
    return t->made[i] ? MICA_OK : mica_fail_nomem(err, strlen(content), "the vocabulary");
}

static mica_status read_added(mica_hf_tokenizer *t, mica_error *err)
{
    const json_t *added = mica_hf_get(t->file, "added_tokens");
    mica_status status = MICA_OK;
    for (size_t i = 0; i < json_array_size(added) && !status; i++)
        status = add_token(t, json_array_get(added, i), err);
    return status;
}

/* Rows of the embedding that no token has: tables are often padded to a round size. */
static mica_status fill(mica_hf_tokenizer *t, mica_error *err)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->pieces[i])
            continue;
        if (asprintf(&t->made[i], "[PAD%zu]", i) < 0) {
            t->made[i] = NULL;
            return mica_fail_nomem(err, t->n * 16, "the vocabulary");
        }
        t->pieces[i] = t->made[i];
        t->types[i] = MICA_HF_UNUSED;
    }
    return MICA_OK;
}

static mica_status write_all(mica_hf_tokenizer *t, const char *dir, const mica_hf_config *c, mica_gguf_writer *w, mica_error *err)
{
    const char *model = NULL;
    mica_status status = mica_hf_merges_write(t, w, &model, err);
    if (status)
        return status;
    mica_gguf_writer_text(w, "tokenizer.ggml.model", model);
    mica_gguf_writer_text(w, "tokenizer.ggml.pre", t->pre);
    mica_gguf_writer_texts(w, "tokenizer.ggml.tokens", t->pieces, t->n);
    mica_gguf_writer_array(w, "tokenizer.ggml.token_type", MICA_GGUF_I32, t->types, t->n);
    if (strcmp(model, "llama") == 0)
        mica_gguf_writer_array(w, "tokenizer.ggml.scores", MICA_GGUF_F32, t->scores, t->n);
    if (!t->bytes)
        mica_gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", t->space_prefix);
    return mica_hf_special_write(t, dir, c, w, err);
}

static void free_all(mica_hf_tokenizer *t)
{
    for (size_t i = 0; t->made && i < t->n; i++)
        free(t->made[i]);
    free(t->made);
    free(t->pieces);
    free(t->types);
    free(t->scores);
    free(t->given);
    json_decref(t->file);
    json_decref(t->settings);
    json_decref(t->generation);
}

mica_status mica_hf_tokenizer_write(const char *dir, const mica_hf_config *c, mica_gguf_writer *w, mica_error *err)
{
    mica_hf_tokenizer t = {.n = (size_t)c->n_vocab};
    mica_status s = load(&t, dir, err);
    if (!s)
        s = mica_hf_pretok_find(&t, err);
    if (!s && !(s = allocate(&t, err)) && !(s = read_vocab(&t, err)) && !(s = read_added(&t, err)))
        s = fill(&t, err);
    if (!s)
        s = write_all(&t, dir, c, w, err);
    free_all(&t);
    return s;
}
