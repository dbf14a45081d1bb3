/* gguf_touch.h - reads everything that a file opened by mica_gguf_open*() offers, so that a sanitizer sees every access.
 * Used by the tests and the fuzz target. */
#ifndef MICA_TESTS_GGUF_TOUCH_H
#define MICA_TESTS_GGUF_TOUCH_H
#include <stdlib.h>
#include <string.h>

#include "model/gguf.h"

static inline uint64_t touch_bytes(const void *data, uint64_t n)
{
    const unsigned char *p = data;
    uint64_t sum = n;
    for (uint64_t i = 0; i < n; i++)
        sum += p[i];
    return sum;
}

static inline uint64_t touch_value(const mica_gguf_value *v)
{
    uint64_t sum = touch_bytes(v->key.data, v->key.length), cursor = 0;
    for (uint64_t i = 0; i < v->count; i++) {
        if (v->element == MICA_GGUF_STRING) {
            mica_str s = mica_gguf_array_str(v, &cursor);
            sum += touch_bytes(s.data, s.length);
        } else {
            double d = mica_gguf_array_f64(v, i);
            sum += (uint64_t)mica_gguf_array_i64(v, i) + (d > 0);
        }
    }
    char *text = mica_gguf_value_text(v);
    if (text)
        sum += strlen(text);
    free(text);
    return sum;
}

static inline uint64_t touch_getters(const mica_gguf *g, const char *key)
{
    mica_error err;
    int64_t i = 0;
    float f = 0;
    bool b = false;
    mica_str s = {"", 0};
    uint64_t sum = (uint64_t)mica_gguf_get_i64(g, key, true, 0, 1000000, &i, &err);
    sum += (uint64_t)mica_gguf_get_f32(g, key, true, &f, &err);
    sum += (uint64_t)mica_gguf_get_bool(g, key, true, &b, &err);
    sum += (uint64_t)mica_gguf_get_str(g, key, true, &s, &err);
    return sum + (uint64_t)i + (f > 0) + b + touch_bytes(s.data, s.length);
}

/* A terminated copy, since names in a file are not. */
static inline char *touch_copy(mica_str s)
{
    char *copy = calloc(s.length + 1, 1);
    if (copy && s.length)
        memcpy(copy, s.data, s.length);
    return copy;
}

/* false: the index does not find an item under its own name. */
static inline bool touch_all(const mica_gguf *g, uint64_t *sum)
{
    bool found = true;
    *sum = mica_gguf_file_bytes(g) + strlen(mica_gguf_path(g));
    for (size_t i = 0; i < mica_gguf_value_count(g); i++) {
        const mica_gguf_value *v = mica_gguf_value_at(g, i);
        char *key = touch_copy(v->key);
        *sum += touch_value(v);
        if (key && strlen(key) == v->key.length) { /* not if it has a NUL inside */
            found = found && mica_gguf_find(g, key) == v;
            *sum += touch_getters(g, key);
        }
        free(key);
    }
    for (size_t i = 0; i < mica_gguf_tensor_count(g); i++) {
        const mica_gguf_tensor *t = mica_gguf_tensor_at(g, i);
        char *name = touch_copy(t->name);
        *sum += touch_bytes(t->data, t->n_bytes) + strlen(t->quant->name);
        if (name && strlen(name) == t->name.length)
            found = found && mica_gguf_tensor_find(g, name) == t;
        free(name);
    }
    return found;
}

#endif
