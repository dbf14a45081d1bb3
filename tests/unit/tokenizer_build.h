/* tokenizer_build.h - small vocabularies for tests, as GGUF bytes in memory. */
#ifndef MICA_TESTS_TOKENIZER_BUILD_H
#define MICA_TESTS_TOKENIZER_BUILD_H
#include "gguf_build.h"
#include "text/utf8.h"
#include "tokenizer_util.h"

typedef struct entry {
    const char *piece;
    int type;
    float score;
} entry;

/* What goes into the file; NULL or 0 leaves a key out. */
typedef struct recipe {
    const char *model, *pre;
    entry tokens[400];
    int n_tokens;
    const char *merges[32];
    int n_merges;
    int scores_less, types_less; /* entries that the arrays lack */
    bool no_tokens, no_scores, no_types, no_merges;
    const char *keys[8]; /* further keys, as u32 or, when they start with "add_", bool, under tokenizer.ggml. */
    uint32_t values[8];
} recipe;

static inline void add_token(recipe *r, const char *piece, int type, float score)
{
    r->tokens[r->n_tokens++] = (entry){piece, type, score};
}

/* The 256 letters of the byte-level alphabet, in the order of the bytes: ids 0..255 when called first. */
static inline void add_alphabet(recipe *r)
{
    static char letters[256][4];
    for (unsigned b = 0, extra = 0; b < 256; b++) {
        bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        unsigned n = mica_utf8_write(printable ? b : 256 + extra++, letters[b]);
        letters[b][n] = 0;
        add_token(r, letters[b], MICA_TOKEN_NORMAL, 0);
    }
}

static inline void add_byte_tokens(recipe *r)
{
    static char names[256][8];
    for (unsigned b = 0; b < 256; b++) {
        snprintf(names[b], sizeof(names[b]), "<0x%02X>", b);
        add_token(r, names[b], MICA_TOKEN_BYTE, 0);
    }
}

static inline void put_key_text(mica_buf *b, const char *key, const char *value, uint64_t *n)
{
    if (value) {
        put_key(b, key, MICA_GGUF_STRING);
        put_str(b, value);
        ++*n;
    }
}

static inline void put_token_arrays(mica_buf *b, const recipe *r, uint64_t *n)
{
    if (!r->no_tokens) {
        put_array(b, "tokenizer.ggml.tokens", MICA_GGUF_STRING, (uint64_t)r->n_tokens), ++*n;
        for (int i = 0; i < r->n_tokens; i++) {
            put_str(b, r->tokens[i].piece);
        }
    }
    if (!r->no_scores) {
        put_array(b, "tokenizer.ggml.scores", MICA_GGUF_F32, (uint64_t)(r->n_tokens - r->scores_less)), ++*n;
        for (int i = 0; i < r->n_tokens - r->scores_less; i++) {
            put_uint(b, bits_of(r->tokens[i].score), 4);
        }
    }
    if (!r->no_types) {
        put_array(b, "tokenizer.ggml.token_type", MICA_GGUF_I32, (uint64_t)(r->n_tokens - r->types_less)), ++*n;
        for (int i = 0; i < r->n_tokens - r->types_less; i++) {
            put_uint(b, (uint64_t)(uint32_t)r->tokens[i].type, 4);
        }
    }
    if (!r->no_merges) {
        put_array(b, "tokenizer.ggml.merges", MICA_GGUF_STRING, (uint64_t)r->n_merges), ++*n;
        for (int i = 0; i < r->n_merges; i++) {
            put_str(b, r->merges[i]);
        }
    }
}

static inline mica_buf build_vocab(const recipe *r)
{
    mica_buf b;
    uint64_t n = 0;
    put_header(&b, 3, 0, 0);
    put_key_text(&b, "general.architecture", "llama", &n);
    put_key_text(&b, "tokenizer.ggml.model", r->model, &n);
    put_key_text(&b, "tokenizer.ggml.pre", r->pre, &n);
    put_token_arrays(&b, r, &n);
    for (int i = 0; i < 8 && r->keys[i]; i++, n++) {
        char key[100];
        bool is_bool = !strncmp(r->keys[i], "add_", 4);
        snprintf(key, sizeof(key), "tokenizer.ggml.%s", r->keys[i]);
        put_number(&b, key, is_bool ? MICA_GGUF_BOOL : MICA_GGUF_U32, r->values[i], is_bool ? 1 : 4);
    }
    memcpy(b.data + 16, &n, sizeof(n)); /* the header's count of keys */
    while (b.length % 32) {
        mica_buf_putc(&b, 0);
    }
    return b;
}

/* A vocabulary and the bytes under it. */
typedef struct built {
    mica_buf bytes;
    opened o;
    mica_status status;
    mica_error err;
} built;

static inline built *make_vocab(const recipe *r)
{
    built *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    b->bytes = build_vocab(r);
    assert_false(b->bytes.failed);
    b->status = mica_gguf_open_memory(b->bytes.data, b->bytes.length, "small.gguf", &b->o.gguf, &b->err);
    if (b->status) {
        fail_msg("%s", b->err.message);
    }
    b->status = mica_vocab_load(b->o.gguf, note_warning, &b->o, &b->o.vocab, &b->err);
    return b;
}

static inline void free_vocab(built *b)
{
    close_vocab(&b->o);
    mica_buf_free(&b->bytes);
    free(b);
}

#endif
