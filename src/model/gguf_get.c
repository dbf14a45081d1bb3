/* gguf_get.c - typed access to metadata, with range checks. */
#include "model/gguf_parse.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *mica_gguf_kind_name(mica_gguf_kind kind)
{
    static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

const char *mica_gguf_value_kind_name(const mica_gguf_value *v)
{
    static const char *const arrays[] = {"array of u8",   "array of i8",     "array of u16",   "array of i16", "array of u32",
                                         "array of i32",  "array of f32",    "array of bool",  "array of string",
                                         "array of array", "array of u64",   "array of i64",   "array of f64"};
    if (v->kind == MICA_GGUF_ARRAY && (unsigned)v->element < sizeof arrays / sizeof *arrays)
        return arrays[v->element];
    return mica_gguf_kind_name(v->kind);
}

/* ---- Numbers --------------------------------------------------------------------------------------------------------- */

static bool is_integer(mica_gguf_kind kind)
{
    return kind <= MICA_GGUF_I32 || kind == MICA_GGUF_U64 || kind == MICA_GGUF_I64;
}

/* Element at p of an integer or bool kind; above INT64_MAX it saturates. */
static int64_t load_integer(mica_gguf_kind kind, const uint8_t *p)
{
    switch (kind) {
    case MICA_GGUF_U8:
    case MICA_GGUF_BOOL:
        return p[0];
    case MICA_GGUF_I8:
        return (int8_t)p[0];
    case MICA_GGUF_U16:
        return (uint16_t)(p[0] | p[1] << 8);
    case MICA_GGUF_I16:
        return (int16_t)(p[0] | p[1] << 8);
    case MICA_GGUF_U32:
        return mica_gguf_le32(p);
    case MICA_GGUF_I32:
        return (int32_t)mica_gguf_le32(p);
    case MICA_GGUF_I64:
        return (int64_t)mica_gguf_le64(p);
    default: {
        uint64_t u = mica_gguf_le64(p);
        return u > INT64_MAX ? INT64_MAX : (int64_t)u;
    }
    }
}

static double load_float(mica_gguf_kind kind, const uint8_t *p)
{
    if (kind == MICA_GGUF_F32) {
        uint32_t bits = mica_gguf_le32(p);
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    uint64_t bits = mica_gguf_le64(p);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static int64_t saturate(double d)
{
    if (isnan(d))
        return 0;
    if (d >= 9223372036854775808.0) /* 2^63, exact in a double */
        return INT64_MAX;
    return d <= -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}

int64_t mica_gguf_array_i64(const mica_gguf_value *v, uint64_t i)
{
    size_t bytes = mica_gguf_kind_bytes(v->element);
    if (bytes == 0)
        return 0;
    const uint8_t *p = v->data + i * bytes;
    if (v->element == MICA_GGUF_F32 || v->element == MICA_GGUF_F64)
        return saturate(load_float(v->element, p));
    return load_integer(v->element, p);
}

double mica_gguf_array_f64(const mica_gguf_value *v, uint64_t i)
{
    size_t bytes = mica_gguf_kind_bytes(v->element);
    if (bytes == 0)
        return 0;
    const uint8_t *p = v->data + i * bytes;
    if (v->element == MICA_GGUF_F32 || v->element == MICA_GGUF_F64)
        return load_float(v->element, p);
    if (v->element == MICA_GGUF_U64)
        return (double)mica_gguf_le64(p);
    return (double)load_integer(v->element, p);
}

mica_str mica_gguf_array_str(const mica_gguf_value *v, uint64_t *cursor)
{
    const uint8_t *p = v->data + *cursor;
    uint64_t length = mica_gguf_le64(p); /* inside the file: read_strings() walked it */
    *cursor += 8 + length;
    return (mica_str){.data = (const char *)p + 8, .length = (size_t)length};
}

/* ---- Getters --------------------------------------------------------------------------------------------------------- */

const mica_gguf_value *mica_gguf_part_find(const mica_gguf_part *part, const char *key)
{
    size_t i = mica_gguf_table_find(&part->keys, key, strlen(key));
    return i == SIZE_MAX ? NULL : &part->values[i];
}

static mica_status fail_missing(const mica_gguf_part *part, const char *key, mica_error *err)
{
    return mica_fail(err, MICA_BAD_FILE, "%s: key %s is missing from the metadata", mica_path_tail(part->path), key);
}

static mica_status fail_kind(const mica_gguf_part *part, const mica_gguf_value *v, const char *wanted, mica_error *err)
{
    mica_gguf_reader r = {.part = part, .item = "key", .name = v->key, .err = err};
    return mica_gguf_reader_fail(&r, MICA_BAD_FILE, v->offset, "has the type %s and must be %s", mica_gguf_value_kind_name(v),
                                 wanted);
}

mica_status mica_gguf_part_get_i64(const mica_gguf_part *part, const char *key, bool required, int64_t min, int64_t max,
                                   int64_t *out, mica_error *err)
{
    const mica_gguf_value *v = mica_gguf_part_find(part, key);
    if (!v)
        return required ? fail_missing(part, key, err) : MICA_OK;
    if (!is_integer(v->kind))
        return fail_kind(part, v, "an integer", err);
    mica_gguf_reader r = {.part = part, .item = "key", .name = v->key, .err = err};
    if (v->kind == MICA_GGUF_U64 && mica_gguf_le64(v->data) > INT64_MAX)
        return mica_gguf_reader_fail(&r, MICA_BAD_FILE, v->offset, "is %" PRIu64 " and must be %" PRId64 " to %" PRId64,
                                     mica_gguf_le64(v->data), min, max);
    int64_t value = load_integer(v->kind, v->data);
    if (value < min || value > max)
        return mica_gguf_reader_fail(&r, MICA_BAD_FILE, v->offset, "is %" PRId64 " and must be %" PRId64 " to %" PRId64, value,
                                     min, max);
    *out = value;
    return MICA_OK;
}

mica_status mica_gguf_get_i64(const mica_gguf *g, const char *key, bool required, int64_t min, int64_t max, int64_t *out,
                              mica_error *err)
{
    return mica_gguf_part_get_i64(&g->parts[0], key, required, min, max, out, err);
}

mica_status mica_gguf_get_f32(const mica_gguf *g, const char *key, bool required, float *out, mica_error *err)
{
    const mica_gguf_part *part = &g->parts[0];
    const mica_gguf_value *v = mica_gguf_part_find(part, key);
    if (!v)
        return required ? fail_missing(part, key, err) : MICA_OK;
    if (v->kind != MICA_GGUF_F32 && v->kind != MICA_GGUF_F64)
        return fail_kind(part, v, "a float", err);
    double value = load_float(v->kind, v->data);
    if (!(fabs(value) <= (double)FLT_MAX)) { /* NaN too */
        mica_gguf_reader r = {.part = part, .item = "key", .name = v->key, .err = err};
        return mica_gguf_reader_fail(&r, MICA_BAD_FILE, v->offset, "is %g and must be a finite 32-bit float", value);
    }
    *out = (float)value;
    return MICA_OK;
}

mica_status mica_gguf_get_bool(const mica_gguf *g, const char *key, bool required, bool *out, mica_error *err)
{
    const mica_gguf_part *part = &g->parts[0];
    const mica_gguf_value *v = mica_gguf_part_find(part, key);
    if (!v)
        return required ? fail_missing(part, key, err) : MICA_OK;
    if (v->kind != MICA_GGUF_BOOL)
        return fail_kind(part, v, "a bool", err);
    *out = v->data[0] != 0;
    return MICA_OK;
}

mica_status mica_gguf_get_str(const mica_gguf *g, const char *key, bool required, mica_str *out, mica_error *err)
{
    const mica_gguf_part *part = &g->parts[0];
    const mica_gguf_value *v = mica_gguf_part_find(part, key);
    if (!v)
        return required ? fail_missing(part, key, err) : MICA_OK;
    if (v->kind != MICA_GGUF_STRING)
        return fail_kind(part, v, "a string", err);
    uint64_t cursor = 0;
    *out = mica_gguf_array_str(v, &cursor);
    return MICA_OK;
}

uint64_t mica_gguf_value_bytes(const mica_gguf_value *v)
{
    mica_gguf_kind element = v->kind == MICA_GGUF_ARRAY ? v->element : v->kind;
    if (element != MICA_GGUF_STRING)
        return v->count * mica_gguf_kind_bytes(element);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < v->count; i++)
        mica_gguf_array_str(v, &bytes);
    return bytes;
}
