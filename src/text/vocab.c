/* vocab.c - loading a vocabulary from GGUF metadata, and the plain questions about it. */
#include "base/mem.h"
#include "text/utf8.h"
#include "text/vocab_impl.h"

#include <stdio.h>

/* The metadata key of an array that must have one entry a token; NULL in *out when it is absent. */
static mica_status token_array(const mica_vocab *v, const mica_gguf *g, const char *key, const mica_gguf_value **out,
                               mica_error *err)
{
    const mica_gguf_value *a = mica_gguf_find(g, key);
    *out = a;
    if (!a) {
        return MICA_OK;
    }
    if (a->kind != MICA_GGUF_ARRAY || a->element == MICA_GGUF_STRING || a->element == MICA_GGUF_BOOL) {
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)a->offset, "%s: %s is not an array of numbers (at byte %llu)",
                            mica_gguf_path(g), key, (unsigned long long)a->offset);
    }
    if (a->count != (uint64_t)v->n) {
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)a->offset,
                            "%s: %s has %llu entries but tokenizer.ggml.tokens has %d (at byte %llu)", mica_gguf_path(g), key,
                            (unsigned long long)a->count, v->n, (unsigned long long)a->offset);
    }
    return MICA_OK;
}

static mica_status load_types(mica_vocab *v, const mica_gguf *g, mica_error *err)
{
    const mica_gguf_value *a;
    mica_status status = token_array(v, g, "tokenizer.ggml.token_type", &a, err);
    if (status) {
        return status;
    }
    v->types = malloc((size_t)v->n);
    if (!v->types) {
        return mica_fail_nomem(err, (size_t)v->n, "the vocabulary");
    }
    memset(v->types, MICA_TOKEN_NORMAL, (size_t)v->n);
    if (a && (a->element == MICA_GGUF_F32 || a->element == MICA_GGUF_F64)) {
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)a->offset,
                            "%s: tokenizer.ggml.token_type holds floats, not integers (at byte %llu)", mica_gguf_path(g),
                            (unsigned long long)a->offset);
    }
    for (int32_t i = 0; a && i < v->n; i++) {
        int64_t type = mica_gguf_array_i64(a, (uint64_t)i);
        if (type < 0 || type > MICA_TOKEN_BYTE) {
            return mica_fail_at(err, MICA_BAD_FILE, (int64_t)a->offset,
                                "%s: tokenizer.ggml.token_type says %lld for token %d; types are 1 to 6 (at byte %llu)",
                                mica_gguf_path(g), (long long)type, i, (unsigned long long)a->offset);
        }
        v->types[i] = type ? (uint8_t)type : MICA_TOKEN_NORMAL; /* 0, "undefined", is written by some old converters */
    }
    return MICA_OK;
}

static mica_status load_scores(mica_vocab *v, const mica_gguf *g, mica_error *err)
{
    const mica_gguf_value *a;
    mica_status status = token_array(v, g, "tokenizer.ggml.scores", &a, err);
    if (status) {
        return status;
    }
    if (a && a->element != MICA_GGUF_F32) {
        return mica_fail_at(err, MICA_BAD_FILE, (int64_t)a->offset,
                            "%s: tokenizer.ggml.scores is not an array of 32-bit floats (at byte %llu)", mica_gguf_path(g),
                            (unsigned long long)a->offset);
    }
    if (!a && v->kind == MICA_VOCAB_SPM) {
        return mica_fail(err, MICA_BAD_FILE, "%s: tokenizer.ggml.scores is missing, but a SentencePiece vocabulary needs it",
                         mica_gguf_path(g));
    }
    v->scores = a ? a->data : NULL;
    return MICA_OK;
}

static mica_status load_pretok(mica_vocab *v, const mica_gguf *g, void (*on_warning)(void *, const char *), void *user,
                               mica_error *err)
{
    if (v->kind != MICA_VOCAB_BYTE_BPE) {
        return MICA_OK;
    }
    mica_str name = {"default", 7};
    if (!mica_gguf_find(g, "tokenizer.ggml.pre") && on_warning) {
        on_warning(user, "tokenizer.ggml.pre is missing: text is split as for files from before 2024, which may be wrong");
    }
    mica_status status = mica_gguf_get_str(g, "tokenizer.ggml.pre", false, &name, err);
    return status ? status : mica_pretok_new(name.data, name.length, true, &v->pretok, err);
}

static mica_status load_kind(mica_vocab *v, const mica_gguf *g, mica_error *err)
{
    mica_str model = {"", 0};
    mica_status status = mica_gguf_get_str(g, "tokenizer.ggml.model", true, &model, err);
    if (status) {
        return status;
    }
    if (mica_str_equal(model, "gpt2", 4)) {
        v->kind = MICA_VOCAB_BYTE_BPE;
    } else if (mica_str_equal(model, "gemma4", 6)) {
        v->kind = MICA_VOCAB_CHAR_BPE;
    } else if (mica_str_equal(model, "llama", 5)) {
        v->kind = MICA_VOCAB_SPM;
    } else {
        return mica_fail(err, MICA_UNSUPPORTED, "%s: tokenizers of the kind \"%.*s\" (tokenizer.ggml.model) are not supported",
                         mica_gguf_path(g), (int)(model.length < 64 ? model.length : 64), model.data);
    }
    return MICA_OK;
}

/* The byte-level alphabet (GPT-2's) writes the 188 printable Latin-1 characters as themselves and the other bytes, in order, as
 * U+0100 and on. */
static bool is_printable_byte(unsigned b)
{
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
}

int mica_vocab_alphabet_byte(uint32_t code)
{
    if (code < 0x100) {
        return is_printable_byte(code) ? (int)code : -1;
    }
    code -= 0x100; /* 0x00..0x20, 0x7F..0xA0, 0xAD */
    return code < 33 ? (int)code : code < 67 ? (int)code - 33 + 0x7F : code == 67 ? 0xAD : -1;
}

/* The other way: the code point that stands for byte b. */
static uint32_t alphabet_code(unsigned b)
{
    return is_printable_byte(b) ? b : b <= 0x20 ? 0x100 + b : b == 0xAD ? 0x143 : 0x100 + 33 + b - 0x7F;
}

static void load_bytes(mica_vocab *v)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        int id;
        if (v->kind == MICA_VOCAB_BYTE_BPE) {
            id = mica_vocab_find(v, name, mica_utf8_write(alphabet_code(b), name));
            v->byte_ids[b] = id >= 0 && v->types[id] == MICA_TOKEN_NORMAL ? id : -1;
        } else {
            id = mica_vocab_find(v, name, (size_t)snprintf(name, sizeof(name), "<0x%02X>", b));
            v->byte_ids[b] = id >= 0 && v->types[id] == MICA_TOKEN_BYTE ? id : -1;
        }
    }
}

static mica_status load(mica_vocab *v, const mica_gguf *g, void (*on_warning)(void *, const char *), void *user,
                        mica_error *err)
{
    mica_status status = load_kind(v, g, err);
    if (!status) {
        status = mica_vocab_index_pieces(v, g, err);
    }
    if (!status) {
        status = load_types(v, g, err);
    }
    if (!status) {
        status = load_scores(v, g, err);
    }
    if (!status) {
        status = load_pretok(v, g, on_warning, user, err);
    }
    if (!status && v->kind != MICA_VOCAB_SPM) {
        status = mica_vocab_index_merges(v, g, err);
    }
    if (!status) {
        load_bytes(v);
        status = mica_vocab_load_special(v, g, on_warning, user, err);
    }
    return status ? status : mica_vocab_index_added(v, err);
}

mica_status mica_vocab_load(const mica_gguf *g, void (*on_warning)(void *user, const char *message), void *user,
                            mica_vocab **out, mica_error *err)
{
    *out = NULL;
    mica_vocab *v = mica_new_array(1, sizeof(*v));
    if (!v) {
        return mica_fail_nomem(err, sizeof(*v), "the vocabulary");
    }
    mica_status status = load(v, g, on_warning, user, err);
    if (status) {
        mica_vocab_free(v);
        return status;
    }
    *out = v;
    return MICA_OK;
}

void mica_vocab_free(mica_vocab *v)
{
    if (!v) {
        return;
    }
    mica_pretok_free(v->pretok);
    free(v->pieces.at);
    free(v->types);
    free(v->hashes);
    free(v->ids.slots);
    free(v->merges.at);
    free(v->merged);
    free(v->pairs.slots);
    free(v->added);
    free(v->ends_generation);
    free(v);
}

int32_t mica_vocab_size(const mica_vocab *v) { return v->n; }

static bool is_id(const mica_vocab *v, int32_t id) { return id >= 0 && id < v->n; }

mica_str mica_vocab_piece(const mica_vocab *v, int32_t id)
{
    return is_id(v, id) ? mica_strings_get(&v->pieces, (uint32_t)id) : (mica_str){"", 0};
}

mica_token_type mica_vocab_type(const mica_vocab *v, int32_t id)
{
    return is_id(v, id) ? (mica_token_type)v->types[id] : MICA_TOKEN_UNKNOWN;
}

const mica_vocab_special *mica_vocab_special_tokens(const mica_vocab *v) { return &v->special; }

bool mica_vocab_ends_generation(const mica_vocab *v, int32_t id) { return is_id(v, id) && v->ends_generation[id]; }
