/* tokenize.c - text to ids: added tokens are found in the raw text first, what lies between goes to BPE or SentencePiece. */
#include "base/mem.h"
#include "text/standin.h"
#include "text/utf8.h"
#include "text/vocab_impl.h"

/* Texts below this are not worth the word cache. */
#define CACHE_FROM 2048

/* Room for n more tokens. */
static bool reserve(mica_tokenizing *t, size_t n)
{
    int32_t *bigger = realloc(t->tokens, (t->room + n) * sizeof(*bigger));
    if (!bigger) {
        return false;
    }
    t->tokens = bigger;
    t->room += n;
    return true;
}

bool mica_tokenizing_push(mica_tokenizing *t, int32_t id)
{
    if (t->n_tokens == t->room && !reserve(t, t->room + 16)) {
        return false;
    }
    t->tokens[t->n_tokens++] = id;
    return true;
}

mica_status mica_tokenizing_nomem(mica_tokenizing *t)
{
    return mica_fail_nomem(t->err, (t->room + t->merger.room) * sizeof(int32_t), "tokenising text");
}

/* One symbol without a token: its bytes, or the unknown token if they have none (once, and never a control token). */
static bool push_bytes(mica_tokenizing *t, const char *bytes, size_t n)
{
    const mica_vocab *v = t->v;
    for (size_t i = 0; i < n; i++) {
        int32_t id = v->byte_ids[(unsigned char)bytes[i]];
        if (id < 0) {
            int32_t unk = v->special.unk;
            return unk < 0 || v->types[unk] == MICA_TOKEN_CONTROL || mica_tokenizing_push(t, unk);
        }
        if (!mica_tokenizing_push(t, id)) {
            return false;
        }
    }
    return true;
}

mica_status mica_tokenizing_push_symbols(mica_tokenizing *t, const char *text)
{
    const mica_symbol *symbols = t->merger.symbols;
    for (uint32_t i = 0; i != MICA_MERGE_NONE; i = symbols[i].next) {
        bool pushed = symbols[i].id >= 0 ? mica_tokenizing_push(t, symbols[i].id)
                                         : push_bytes(t, text + symbols[i].start, symbols[i].length);
        if (!pushed) {
            return mica_tokenizing_nomem(t);
        }
    }
    return MICA_OK;
}

/* Text in which no added token occurs. It starts the text or follows an added token, which is where SentencePiece vocabularies
 * that ask for a leading space get it. */
static mica_status add_fragment(mica_tokenizing *t, const char *text, size_t n)
{
    if (n == 0) {
        return MICA_OK;
    }
    switch (t->v->kind) {
    case MICA_VOCAB_BYTE_BPE:
        return mica_bpe_tokenize(t, text, n);
    case MICA_VOCAB_CHAR_BPE:
        return mica_char_bpe_tokenize(t, text, n);
    default:
        return mica_spm_tokenize(t, text, n, t->v->special.add_space_prefix);
    }
}

static mica_status add_text(mica_tokenizing *t, const char *text, size_t n, bool special);

/* What lies between the added tokens of a rendered text. Where characters come back, user-defined tokens may be spelt, but no
 * others are looked for: the second round is without `special`, and the last. */
static mica_status add_between(mica_tokenizing *t, const char *text, size_t n, bool special)
{
    if (!special || !t->standins || !mica_standins_any(t->standins, text, n)) {
        return add_fragment(t, text, n);
    }
    mica_buf plain;
    mica_buf_init(&plain, MICA_TEXT_MAX);
    bool restored = mica_standins_restore(t->standins, text, n, &plain);
    mica_status status = restored ? add_text(t, plain.data, plain.length, false) : mica_tokenizing_nomem(t);
    mica_buf_free(&plain);
    return status;
}

static mica_status add_text(mica_tokenizing *t, const char *text, size_t n, bool special)
{
    size_t begin = 0, at = 0;
    while (at < n) {
        size_t length = 0;
        int32_t id = mica_vocab_match_added(t->v, text + at, n - at, special, &length);
        if (id < 0) {
            at++;
            continue;
        }
        mica_status status = add_between(t, text + begin, at - begin, special);
        if (status) {
            return status;
        }
        if (!mica_tokenizing_push(t, id)) {
            return mica_tokenizing_nomem(t);
        }
        begin = at += length;
    }
    return add_between(t, text + begin, n - begin, special);
}

/* The whole text with BOS and EOS as the flags and the metadata ask; neither is doubled when the text spells it itself. */
static mica_status run(mica_tokenizing *t, const char *text, size_t n, unsigned flags)
{
    const mica_vocab_special *s = &t->v->special;
    bool special = flags & MICA_TOKENIZE_PARSE_SPECIAL, wrap = flags & MICA_TOKENIZE_ADD_BOS;
    size_t spelt = 0;
    if (wrap && s->add_bos) {
        bool doubled = special && n && mica_vocab_match_added(t->v, text, n, true, &spelt) == s->bos;
        if (!doubled && !mica_tokenizing_push(t, s->bos)) {
            return mica_tokenizing_nomem(t);
        }
    }
    if (n >= CACHE_FROM && t->v->kind == MICA_VOCAB_BYTE_BPE) {
        t->words = mica_new_array(MICA_WORD_CACHE, sizeof(*t->words)); /* without it everything works, only slower */
    }
    mica_status status = add_text(t, text, n, special);
    if (!status && wrap && s->add_eos) {
        bool doubled = special && t->n_tokens && t->tokens[t->n_tokens - 1] == s->eos;
        if (!doubled && !mica_tokenizing_push(t, s->eos)) {
            status = mica_tokenizing_nomem(t);
        }
    }
    return status;
}

static mica_status tokenize(const mica_vocab *v, const mica_standins *s, const char *text, size_t length, unsigned flags,
                            int32_t **tokens, size_t *n_tokens, mica_error *err)
{
    *tokens = NULL;
    *n_tokens = 0;
    if (flags & ~(unsigned)(MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL)) {
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tokenise: flags 0x%x has bits that mean nothing", flags);
    }
    if (length > MICA_TEXT_MAX) {
        return mica_fail(err, MICA_INVALID_ARGUMENT, "tokenise: the text has %zu bytes; at most %d are taken at once", length,
                         MICA_TEXT_MAX);
    }
    size_t valid = mica_utf8_check(text, length);
    if (valid < length) {
        return mica_fail_at(err, MICA_BAD_TEXT, (int64_t)valid, "invalid UTF-8 at byte %zu of the text", valid);
    }
    mica_tokenizing t = {.v = v, .standins = s, .err = err};
    mica_status status = reserve(&t, length / 4 + 16) ? run(&t, text, length, flags) : mica_tokenizing_nomem(&t);
    mica_merger_free(&t.merger);
    mica_pretok_run_free(&t.pretok);
    free(t.words);
    if (status) {
        free(t.tokens);
        return status;
    }
    *tokens = t.tokens;
    *n_tokens = t.n_tokens;
    return MICA_OK;
}

mica_status mica_vocab_tokenize(const mica_vocab *v, const char *text, size_t length, unsigned flags, int32_t **tokens,
                                size_t *n_tokens, mica_error *err)
{
    return tokenize(v, NULL, text, length, flags, tokens, n_tokens, err);
}

mica_status mica_standins_tokenize(const mica_standins *s, const char *text, size_t length, unsigned flags, int32_t **tokens,
                                   size_t *n_tokens, mica_error *err)
{
    return tokenize(s->vocab, s, text, length, flags | MICA_TOKENIZE_PARSE_SPECIAL, tokens, n_tokens, err);
}
