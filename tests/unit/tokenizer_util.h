/* tokenizer_util.h - what the tokenizer tests share: opening a vocabulary, reading files, comparing ids. */
#ifndef MICA_TESTS_TOKENIZER_UTIL_H
#define MICA_TESTS_TOKENIZER_UTIL_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "text/vocab.h"

typedef struct opened {
    mica_gguf *gguf;
    mica_vocab *vocab;
    char warnings[1000];
} opened;

static inline void note_warning(void *user, const char *message)
{
    opened *o = user;
    size_t n = strlen(o->warnings);
    snprintf(o->warnings + n, sizeof(o->warnings) - n, "%s\n", message);
}

static inline opened open_vocab(const char *path)
{
    opened o = {0};
    mica_error err = {0};
    if (mica_gguf_open(path, &o.gguf, &err) || mica_vocab_load(o.gguf, note_warning, &o, &o.vocab, &err)) {
        fail_msg("%s: %s", path, err.message);
    }
    return o;
}

static inline void close_vocab(opened *o)
{
    mica_vocab_free(o->vocab);
    mica_gguf_close(o->gguf);
}

/* A file's bytes, terminated; the test fails if it cannot be read. */
static inline char *read_bytes(const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fail_msg("cannot open %s", path);
    }
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *data = malloc((size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, f), size);
    fclose(f);
    data[size] = 0;
    *length = (size_t)size;
    return data;
}

/* "1 2 3" of the first ids, for messages. */
static inline const char *show_ids(const int32_t *ids, size_t n, char *out, size_t room)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < n && at + 16 < room; i++) {
        at += (size_t)snprintf(out + at, room - at, "%d ", ids[i]);
    }
    return out;
}

/* Fails with both id lists unless the text tokenises to exactly `want`. */
static inline void check_ids(const mica_vocab *v, const char *text, size_t length, unsigned flags, const int32_t *want,
                             size_t n_want, const char *what)
{
    int32_t *got = NULL;
    size_t n = 0;
    mica_error err = {0};
    char a[400], b[400];
    if (mica_vocab_tokenize(v, text, length, flags, &got, &n, &err)) {
        fail_msg("%s: %s", what, err.message);
    }
    if (n != n_want || memcmp(got, want, n * sizeof(*got)) != 0) {
        fail_msg("%s: \"%.60s\" gives %zu ids: %s; wanted %zu: %s", what, text, n, show_ids(got, n, a, sizeof(a)), n_want,
                 show_ids(want, n_want, b, sizeof(b)));
    }
    free(got);
}

/* The ids of a JSON array of integers; malloc'ed. */
static inline int32_t *json_ids(const json_t *array, size_t *n)
{
    *n = json_array_size(array);
    int32_t *ids = malloc((*n + 1) * sizeof(*ids));
    assert_non_null(ids);
    for (size_t i = 0; i < *n; i++) {
        ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    }
    return ids;
}

/* Fails unless the ids come back as exactly `want`. */
static inline void check_text(const mica_vocab *v, const int32_t *ids, size_t n, bool show_special, const char *want,
                              size_t n_want, const char *what)
{
    char *text = NULL;
    size_t length = 0;
    mica_error err = {0};
    if (mica_vocab_detokenize(v, ids, n, show_special, &text, &length, &err)) {
        fail_msg("%s: %s", what, err.message);
    }
    if (length != n_want || memcmp(text, want, length) != 0) {
        fail_msg("%s: detokenised to \"%s\", wanted \"%s\"", what, text, want);
    }
    free(text);
}

#endif
