/* gguf_build.h - writes GGUF bytes for tests. Nothing here validates: broken files are the point. */
#ifndef MICA_TESTS_GGUF_BUILD_H
#define MICA_TESTS_GGUF_BUILD_H
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/gguf.h"

static inline void put_uint(mica_buf *b, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        mica_buf_putc(b, (char)(v >> (8 * i) & 0xFF));
}

static inline void put_bytes(mica_buf *b, const char *s, size_t n)
{
    put_uint(b, n, 8);
    mica_buf_append(b, s, n);
}

static inline void put_str(mica_buf *b, const char *s) { put_bytes(b, s, strlen(s)); }

static inline void put_header(mica_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_keys)
{
    mica_buf_init(b, (size_t)1 << 30);
    mica_buf_append(b, "GGUF", 4);
    put_uint(b, version, 4);
    put_uint(b, n_tensors, 8);
    put_uint(b, n_keys, 8);
}

static inline void put_key(mica_buf *b, const char *key, uint32_t kind)
{
    put_str(b, key);
    put_uint(b, kind, 4);
}

static inline void put_number(mica_buf *b, const char *key, uint32_t kind, uint64_t v, int bytes)
{
    put_key(b, key, kind);
    put_uint(b, v, bytes);
}

static inline void put_array(mica_buf *b, const char *key, uint32_t element, uint64_t count)
{
    put_key(b, key, MICA_GGUF_ARRAY);
    put_uint(b, element, 4);
    put_uint(b, count, 8);
}

static inline void put_tensor(mica_buf *b, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *dims,
                              uint64_t offset)
{
    put_str(b, name);
    put_uint(b, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++)
        put_uint(b, dims[i], 8);
    put_uint(b, type, 4);
    put_uint(b, offset, 8);
}

/* Zeros up to a multiple of `align`, then n data bytes. */
static inline void put_data(mica_buf *b, size_t align, size_t n)
{
    while (b->length % align != 0)
        mica_buf_putc(b, 0);
    for (size_t i = 0; i < n; i++)
        mica_buf_putc(b, (char)(i * 7 + 1));
}

static inline uint64_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline uint64_t bits_of_double(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

/* A small valid file with every kind of value and three tensors; the last byte of the last tensor is the last of the file.
 * *header: bytes before the data. */
static inline mica_buf build_sample(size_t *header)
{
    mica_buf b;
    put_header(&b, 3, 3, 18);
    put_key(&b, "general.architecture", MICA_GGUF_STRING), put_str(&b, "llama");
    put_number(&b, "general.alignment", MICA_GGUF_U32, 64, 4);
    put_number(&b, "t.u8", MICA_GGUF_U8, 200, 1), put_number(&b, "t.i8", MICA_GGUF_I8, 0x80, 1);
    put_number(&b, "t.u16", MICA_GGUF_U16, 65535, 2), put_number(&b, "t.i16", MICA_GGUF_I16, 0x8000, 2);
    put_number(&b, "t.u32", MICA_GGUF_U32, 4294967295u, 4), put_number(&b, "t.i32", MICA_GGUF_I32, 0x80000000u, 4);
    put_number(&b, "t.u64", MICA_GGUF_U64, UINT64_MAX, 8), put_number(&b, "t.i64", MICA_GGUF_I64, (uint64_t)INT64_MIN, 8);
    put_number(&b, "t.f32", MICA_GGUF_F32, bits_of(1e-5f), 4);
    put_number(&b, "t.f64", MICA_GGUF_F64, bits_of_double(0.1), 8);
    put_number(&b, "t.true", MICA_GGUF_BOOL, 1, 1), put_number(&b, "t.false", MICA_GGUF_BOOL, 0, 1);
    put_array(&b, "t.words", MICA_GGUF_STRING, 3), put_str(&b, "one"), put_str(&b, ""), put_str(&b, "\xFF\n");
    put_array(&b, "t.i16s", MICA_GGUF_I16, 10);
    for (int i = 0; i < 10; i++)
        put_uint(&b, (uint64_t)(uint16_t)(i - 5), 2);
    put_array(&b, "t.bools", MICA_GGUF_BOOL, 2), put_uint(&b, 0x0100, 2);
    put_array(&b, "t.none", MICA_GGUF_F32, 0);
    put_tensor(&b, "a.weight", MICA_TYPE_F32, 1, (uint64_t[]){3}, 0);
    put_tensor(&b, "b.weight", MICA_TYPE_Q4_0, 2, (uint64_t[]){32, 2}, 64);
    put_tensor(&b, "c.weight", MICA_TYPE_F16, 4, (uint64_t[]){1, 2, 1, 2}, 128);
    put_data(&b, 64, 0);
    *header = b.length;
    put_data(&b, 64, 136);
    return b;
}

/* Opens a copy of exactly `length` bytes, so that a read behind them is seen by a sanitizer. *copy is to be freed. */
static inline mica_status open_copy(const void *data, size_t length, void **copy, mica_gguf **g, mica_error *err)
{
    *copy = malloc(length ? length : 1);
    if (!*copy)
        return MICA_OUT_OF_MEMORY;
    if (length)
        memcpy(*copy, data, length);
    return mica_gguf_open_memory(*copy, length, "sample.gguf", g, err);
}

#endif
