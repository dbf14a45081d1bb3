/* gguf_values.c - reads the metadata of a file: keys, scalars, strings and arrays, none of them copied. */
#include "model/gguf_parse.h"

#include <inttypes.h>
#include <string.h>

/* The specification: 32 without the key, and always a multiple of 8. */
#define DEFAULT_ALIGNMENT 32
#define MIN_ALIGNMENT 8

size_t mica_gguf_kind_bytes(uint32_t kind)
{
    static const uint8_t bytes[] = {
        [MICA_GGUF_U8] = 1,  [MICA_GGUF_I8] = 1,  [MICA_GGUF_U16] = 2,  [MICA_GGUF_I16] = 2, [MICA_GGUF_U32] = 4,
        [MICA_GGUF_I32] = 4, [MICA_GGUF_F32] = 4, [MICA_GGUF_BOOL] = 1, [MICA_GGUF_U64] = 8, [MICA_GGUF_I64] = 8,
        [MICA_GGUF_F64] = 8,
    };
    return kind < sizeof bytes ? bytes[kind] : 0;
}

/* Every string of an array is walked once: the accessors later rely on it. */
static mica_status read_strings(mica_gguf_reader *r, uint64_t count)
{
    const uint8_t *data = r->part->data;
    const uint64_t length = r->part->length;
    uint64_t at = r->at;
    for (uint64_t i = 0; i < count; i++) {
        if (length - at < 8) {
            r->at = at;
            return mica_gguf_reader_fail_short(r, 8, "value (a string's length)");
        }
        uint64_t n = mica_gguf_le64(data + at);
        at += 8;
        if (n > length - at) {
            r->at = at;
            return mica_gguf_reader_fail_short(r, n, "value (a string)");
        }
        at += n;
    }
    r->at = at;
    return MICA_OK;
}

static mica_status check_bools(const mica_gguf_reader *r, const mica_gguf_value *v)
{
    for (uint64_t i = 0; i < v->count; i++)
        if (v->data[i] > 1)
            return mica_gguf_reader_fail(r, MICA_BAD_FILE, v->offset + i, "has the bool byte %d, which must be 0 or 1",
                                         v->data[i]);
    return MICA_OK;
}

/* The elements of a value whose `element` and `count` are known. */
static mica_status read_elements(mica_gguf_reader *r, mica_gguf_value *v)
{
    uint64_t bytes;
    v->offset = r->at;
    v->data = r->part->data + r->at;
    if (v->element == MICA_GGUF_STRING)
        return read_strings(r, v->count);
    if (__builtin_mul_overflow(v->count, (uint64_t)mica_gguf_kind_bytes(v->element), &bytes))
        bytes = UINT64_MAX;
    const uint8_t *ignored;
    mica_status status = mica_gguf_take(r, bytes, "value", &ignored);
    if (status == MICA_OK && v->element == MICA_GGUF_BOOL)
        status = check_bools(r, v);
    return status;
}

static mica_status read_kind(mica_gguf_reader *r, const char *field, mica_gguf_kind *out)
{
    uint32_t kind = 0;
    mica_status status = mica_gguf_take_u32(r, field, &kind);
    if (status != MICA_OK)
        return status;
    if (kind > MICA_GGUF_F64)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, r->at - 4, "has the %s %" PRIu32 ", which GGUF does not define", field,
                                     kind);
    *out = (mica_gguf_kind)kind;
    return MICA_OK;
}

static mica_status read_array_head(mica_gguf_reader *r, mica_gguf_value *v)
{
    mica_status status = read_kind(r, "element type", &v->element);
    if (status != MICA_OK)
        return status;
    if (v->element == MICA_GGUF_ARRAY)
        return mica_gguf_reader_fail(r, MICA_UNSUPPORTED, r->at - 4, "is an array of arrays, which is not read");
    status = mica_gguf_take_u64(r, "number of elements", &v->count);
    if (status != MICA_OK)
        return status;
    uint64_t each = v->element == MICA_GGUF_STRING ? 8 : mica_gguf_kind_bytes(v->element);
    if (v->count > (r->part->length - r->at) / each)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, r->at - 8,
                                     "promises %" PRIu64 " elements of type %s, but the %" PRIu64
                                     " bytes after it do not hold them; the file is damaged or cut short, download it again",
                                     v->count, mica_gguf_kind_name(v->element), r->part->length - r->at);
    return MICA_OK;
}

static mica_status read_value(mica_gguf_reader *r, mica_gguf_value *v)
{
    mica_status status = mica_gguf_take_name(r, MICA_GGUF_KEY_MAX, &v->key);
    if (status == MICA_OK)
        status = read_kind(r, "value type", &v->kind);
    if (status != MICA_OK)
        return status;
    v->element = v->kind;
    v->count = 1;
    if (v->kind == MICA_GGUF_ARRAY)
        status = read_array_head(r, v);
    return status == MICA_OK ? read_elements(r, v) : status;
}

static mica_status index_keys(mica_gguf_reader *r, mica_gguf_part *part)
{
    size_t item = 0;
    mica_gguf_table_result result =
        mica_gguf_table_build(&part->keys, part->values, sizeof *part->values, part->n_values, &item);
    if (result == MICA_GGUF_TABLE_OK)
        return MICA_OK;
    if (result == MICA_GGUF_TABLE_NOMEM)
        return mica_fail_nomem(r->err, item, "the index of the metadata");
    r->name = part->values[item].key;
    uint64_t at = (uint64_t)((const uint8_t *)r->name.data - part->data);
    if (result == MICA_GGUF_TABLE_TWICE)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at, "is there twice");
    return mica_gguf_reader_fail(r, MICA_BAD_FILE, at, "is one of too many that collide in the index");
}

static mica_status read_alignment(mica_gguf_reader *r, mica_gguf_part *part)
{
    const mica_gguf_value *v = mica_gguf_part_find(part, "general.alignment");
    part->alignment = DEFAULT_ALIGNMENT;
    if (!v)
        return MICA_OK;
    r->name = v->key;
    if (v->kind != MICA_GGUF_U32)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, v->offset, "has the type %s and must have u32",
                                     mica_gguf_value_kind_name(v));
    part->alignment = mica_gguf_le32(v->data);
    if (part->alignment < MIN_ALIGNMENT || (part->alignment & (part->alignment - 1)) != 0)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, v->offset, "is %" PRIu32 " and must be a power of two, %d or more",
                                     part->alignment, MIN_ALIGNMENT);
    return MICA_OK;
}

mica_status mica_gguf_read_values(mica_gguf_reader *r, mica_gguf_part *part, uint64_t count)
{
    size_t capacity = 0;
    r->item = "key";
    r->count = count;
    for (r->index = 0; r->index < count; r->index++) {
        void *items = part->values;
        r->name = (mica_str){0};
        mica_status status =
            mica_gguf_grow(&items, part->n_values, &capacity, sizeof *part->values, "the index of the metadata", r->err);
        part->values = items;
        mica_gguf_value v = {0};
        if (status == MICA_OK)
            status = read_value(r, &v);
        if (status != MICA_OK)
            return status;
        part->values[part->n_values++] = v;
    }
    mica_status status = index_keys(r, part);
    return status == MICA_OK ? read_alignment(r, part) : status;
}
