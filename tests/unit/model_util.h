/* model_util.h - what the tests of whole models share. */
#ifndef MICA_TESTS_MODEL_UTIL_H
#define MICA_TESTS_MODEL_UTIL_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "mica/mica.h"

static inline const char *test_path(char out[512], const char *folder, const char *name)
{
    snprintf(out, 512, "%s/%s", folder, name);
    return out;
}

static inline mica_model *open_model(const char *path, const char *kernels)
{
    mica_model_options o = mica_model_options_default();
    mica_model *model = NULL;
    mica_error err;
    o.kernels = kernels;
    if (mica_model_open(path, &o, &model, &err))
        fail_msg("%s", err.message);
    return model;
}

static inline mica_session *open_session(mica_model *model, int32_t n_ctx, int32_t threads, int32_t chunk)
{
    mica_session_options o = mica_session_options_default();
    mica_session *session = NULL;
    mica_error err;
    o.n_ctx = n_ctx;
    o.n_threads = threads;
    o.prefill_chunk = chunk;
    if (mica_session_new(model, &o, &session, &err))
        fail_msg("%s", err.message);
    return session;
}

/* The integers of a JSON array; *tokens is malloc'ed. */
static inline size_t int_array(const json_t *array, int32_t **tokens)
{
    size_t n = json_array_size(array);
    *tokens = malloc((n + 1) * sizeof **tokens);
    for (size_t i = 0; i < n; i++)
        (*tokens)[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return n;
}

static inline json_t *load_json(const char *path)
{
    json_error_t why;
    json_t *root = json_load_file(path, 0, &why);
    if (!root)
        fail_msg("%s: %s", path, why.text);
    return root;
}

static inline void *load_bytes(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    void *data = malloc(*n + 1);
    if (fread(data, 1, *n, f) != *n)
        fail_msg("cannot read %s", path);
    fclose(f);
    return data;
}

/* FNV-1a over bytes: all logits of a run in one number. */
static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001B3ull;
    return h;
}

#endif
