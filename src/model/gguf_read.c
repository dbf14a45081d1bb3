/* gguf_read.c - the bounded reader, its messages, and the header of a file. */
#include "model/gguf_parse.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"

/* 32-bit indexes in the name table; a real file has some hundreds of keys and tensors. */
#define MAX_ITEMS (UINT32_MAX / 4)

/* ---- Messages -------------------------------------------------------------------------------------------------------- */

/* What a message is about: "the header", "tensor 3 of 290", "tensor blk.0.ffn_up.weight". */
static void subject(const mica_gguf_reader *r, char *out, size_t size)
{
    char name[104]; /* tensor names (64 bytes) whole, keys shortened */
    if (!r->item) {
        snprintf(out, size, "the header");
    } else if (r->name.length == 0) {
        snprintf(out, size, "%s %" PRIu64 " of %" PRIu64, r->item, r->index + 1, r->count);
    } else {
        mica_gguf_show(r->name, name, sizeof name);
        snprintf(out, size, "%s %s", r->item, name);
    }
}

mica_status mica_gguf_reader_fail(const mica_gguf_reader *r, mica_status code, uint64_t at, const char *format, ...)
{
    char what[128], text[360];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    subject(r, what, sizeof what);
    return mica_fail_at(r->err, code, (int64_t)at, "%s: %s %s (byte %" PRIu64 ")", mica_path_tail(r->part->path), what, text,
                        at);
}

mica_status mica_gguf_reader_fail_short(const mica_gguf_reader *r, uint64_t need, const char *field)
{
    return mica_gguf_reader_fail(r, MICA_BAD_FILE, r->at,
                                 "ends inside its %s: %" PRIu64 " bytes are needed and %" PRIu64
                                 " left; the file is damaged or cut short, download it again",
                                 field, need, r->part->length - r->at);
}

/* ---- Bounded reads --------------------------------------------------------------------------------------------------- */

mica_status mica_gguf_take(mica_gguf_reader *r, uint64_t bytes, const char *field, const uint8_t **out)
{
    if (bytes > r->part->length - r->at)
        return mica_gguf_reader_fail_short(r, bytes, field);
    *out = r->part->data + r->at;
    r->at += bytes;
    return MICA_OK;
}

mica_status mica_gguf_take_u32(mica_gguf_reader *r, const char *field, uint32_t *out)
{
    const uint8_t *p = NULL;
    mica_status status = mica_gguf_take(r, 4, field, &p);
    if (status == MICA_OK)
        *out = mica_gguf_le32(p);
    return status;
}

mica_status mica_gguf_take_u64(mica_gguf_reader *r, const char *field, uint64_t *out)
{
    const uint8_t *p = NULL;
    mica_status status = mica_gguf_take(r, 8, field, &p);
    if (status == MICA_OK)
        *out = mica_gguf_le64(p);
    return status;
}

static bool valid_utf8(const uint8_t *p, uint64_t length)
{
    while (length > 0) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate(p, length < 4 ? (utf8proc_ssize_t)length : 4, &c);
        if (n <= 0)
            return false;
        p += n;
        length -= (uint64_t)n;
    }
    return true;
}

mica_status mica_gguf_take_name(mica_gguf_reader *r, uint64_t max, mica_str *out)
{
    uint64_t at = r->at, length = 0;
    const uint8_t *p = NULL;
    mica_status status = mica_gguf_take_u64(r, "name's length", &length);
    if (status != MICA_OK)
        return status;
    if (length > r->part->length - r->at)
        return mica_gguf_reader_fail_short(r, length, "name");
    if (length == 0)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at, "has an empty name");
    if (length > max)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at, "has a name of %" PRIu64 " bytes, and %" PRIu64 " are allowed",
                                     length, max);
    status = mica_gguf_take(r, length, "name", &p);
    if (status != MICA_OK)
        return status;
    *out = r->name = (mica_str){.data = (const char *)p, .length = (size_t)length};
    if (!valid_utf8(p, length))
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at + 8, "has a name that is not valid UTF-8");
    return MICA_OK;
}

mica_status mica_gguf_grow(void **items, size_t count, size_t *capacity, size_t size, const char *what, mica_error *err)
{
    if (count < *capacity)
        return MICA_OK;
    size_t more = *capacity ? *capacity * 2 : 64; /* cannot overflow: every item came from 14 bytes or more of a mapping */
    size_t bytes;
    void *p = mica_mul_size(more, size, &bytes) ? realloc(*items, bytes) : NULL;
    if (!p)
        return mica_fail_nomem(err, bytes, what);
    *items = p;
    *capacity = more;
    return MICA_OK;
}

/* ---- Header ---------------------------------------------------------------------------------------------------------- */

static mica_status check_magic(mica_gguf_reader *r)
{
    const mica_gguf_part *part = r->part;
    const char *file = mica_path_tail(part->path);
    const uint8_t *p = part->data;
    if (part->length >= 4 && memcmp(p, "GGUF", 4) == 0) {
        r->at = 4;
        return MICA_OK;
    }
    if (part->length >= 4 && memcmp(p, "FUGG", 4) == 0)
        return mica_fail_at(r->err, MICA_UNSUPPORTED, 0,
                            "%s is a big-endian GGUF file (its magic is reversed), which is not read; convert it, or "
                            "download the little-endian file (byte 0)",
                            file);
    const char *look = mica_gguf_sniff(p, part->length);
    if (look)
        return mica_fail_at(r->err, MICA_BAD_FILE, 0, "%s is %s (byte 0)", file, look);
    if (part->length < 4)
        return mica_fail_at(r->err, MICA_BAD_FILE, 0,
                            "%s is not GGUF: its %d bytes do not hold the magic GGUF; download it again (byte 0)", file,
                            (int)part->length);
    return mica_fail_at(r->err, MICA_BAD_FILE, 0,
                        "%s is not GGUF: it begins with the bytes %02x %02x %02x %02x instead of the magic GGUF; "
                        "download it again (byte 0)",
                        file, p[0], p[1], p[2], p[3]);
}

static mica_status check_version(mica_gguf_reader *r)
{
    uint32_t version = 0;
    mica_status status = mica_gguf_take_u32(r, "version", &version);
    if (status != MICA_OK || version == 2 || version == 3)
        return status;
    if (version == 1)
        return mica_gguf_reader_fail(r, MICA_UNSUPPORTED, 4,
                                     "gives version 1, an old version that is no longer read; convert the file to version 3, "
                                     "or download a newer one");
    uint32_t swapped = __builtin_bswap32(version);
    if (swapped >= 1 && swapped <= 3)
        return mica_gguf_reader_fail(r, MICA_UNSUPPORTED, 4,
                                     "is big-endian (the version reads as 0x%08" PRIx32
                                     "), which is not read; convert the file, or download the little-endian one",
                                     version);
    return mica_gguf_reader_fail(r, MICA_UNSUPPORTED, 4, "gives the unknown version %" PRIu32 "; versions 2 and 3 are read",
                                 version);
}

/* A count is believed only as far as the file can hold that many of `min_bytes` each. */
static mica_status check_count(const mica_gguf_reader *r, uint64_t at, const char *what, uint64_t count, uint64_t min_bytes)
{
    uint64_t left = r->part->length - r->at;
    if (count > left / min_bytes)
        return mica_gguf_reader_fail(r, MICA_BAD_FILE, at,
                                     "promises %" PRIu64 " %s, but the %" PRIu64
                                     " bytes after it hold %" PRIu64
                                     " at most; the file is damaged or cut short, download it again",
                                     count, what, left, left / min_bytes);
    if (count > MAX_ITEMS)
        return mica_gguf_reader_fail(r, MICA_UNSUPPORTED, at, "promises %" PRIu64 " %s, and %" PRIu32 " at most are read",
                                     count, what, MAX_ITEMS);
    return MICA_OK;
}

mica_status mica_gguf_part_read(mica_gguf_part *part, mica_error *err)
{
    mica_gguf_reader r = {.part = part, .err = err};
    uint64_t n_tensors = 0, n_keys = 0;
    mica_status status = check_magic(&r);
    if (status == MICA_OK)
        status = check_version(&r);
    if (status == MICA_OK)
        status = mica_gguf_take_u64(&r, "number of tensors", &n_tensors);
    if (status == MICA_OK)
        status = mica_gguf_take_u64(&r, "number of keys", &n_keys);
    if (status == MICA_OK) /* name length and 1 byte, number of dimensions, one dimension, type, offset */
        status = check_count(&r, 8, "tensors", n_tensors, 8 + 1 + 4 + 8 + 4 + 8);
    if (status == MICA_OK) /* name length, type and 1 byte */
        status = check_count(&r, 16, "keys", n_keys, 8 + 4 + 1);
    if (status == MICA_OK)
        status = mica_gguf_read_values(&r, part, n_keys);
    if (status == MICA_OK)
        status = mica_gguf_read_tensors(&r, part, n_tensors);
    return status;
}
