/* pack.c - series of integers and texts as few bytes, without loss (record.h). */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/mem.h"
#include "bench/record.h"

enum { LEVEL = 6, VARINT = 10, TEXT_MAX = 256 << 20 };

/* ---- zstd ---- */

static mica_status compress(const void *data, size_t length, void **bytes, size_t *packed, mica_error *err)
{
    size_t room = ZSTD_compressBound(length);
    *bytes = malloc(room);
    if (!*bytes)
        return mica_fail_nomem(err, room, "packed samples");
    *packed = ZSTD_compress(*bytes, room, data, length, LEVEL);
    if (!ZSTD_isError(*packed))
        return MICA_OK;
    free(*bytes);
    return mica_fail(err, MICA_OUT_OF_MEMORY, "samples cannot be packed: %s", ZSTD_getErrorName(*packed));
}

/* One byte more than the content, for a terminator. */
static mica_status expand(const void *bytes, size_t packed, size_t most, uint8_t **data, size_t *length, mica_error *err)
{
    unsigned long long size = ZSTD_getFrameContentSize(bytes, packed);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR || size > most)
        return mica_fail(err, MICA_BAD_FILE, "packed samples are damaged, or claim to be larger than %zu bytes", most);
    *data = malloc((size_t)size + 1);
    if (!*data)
        return mica_fail_nomem(err, (size_t)size + 1, "unpacked samples");
    *length = ZSTD_decompress(*data, (size_t)size, bytes, packed);
    if (!ZSTD_isError(*length) && *length == size) {
        (*data)[size] = 0;
        return MICA_OK;
    }
    free(*data);
    return mica_fail(err, MICA_BAD_FILE, "packed samples are damaged");
}

mica_status mica_pack_text(const char *text, size_t length, void **bytes, size_t *packed, mica_error *err)
{
    return compress(text, length, bytes, packed, err);
}

mica_status mica_unpack_text(const void *bytes, size_t packed, char **text, size_t *length, mica_error *err)
{
    uint8_t *data;
    mica_status status = expand(bytes, packed, TEXT_MAX, &data, length, err);
    *text = status ? NULL : (char *)data;
    return status;
}

/* ---- Integers ---- */

static size_t put_varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

/* Bytes taken; 0 if they end too early or do not fit 64 bits. */
static size_t get_varint(const uint8_t *in, size_t left, uint64_t *value)
{
    *value = 0;
    for (size_t n = 0; n < left && n < VARINT; n++) {
        uint64_t bits = in[n] & 0x7f;
        if (n == VARINT - 1 && bits > 1)
            return 0;
        *value |= bits << (7 * n);
        if (!(in[n] & 0x80))
            return n + 1;
    }
    return 0;
}

/* Differences wrap around, so that any two integers have one; small ones of either sign become small numbers. */
static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (uint64_t) - (int64_t)(difference >> 63);
}
static uint64_t unzigzag(uint64_t value)
{
    return value >> 1 ^ (uint64_t) - (int64_t)(value & 1);
}

mica_status mica_pack_ints(const int64_t *values, size_t n, void **bytes, size_t *length, mica_error *err)
{
    size_t room, at = 0;
    if (n > MICA_SERIES_MAX || !mica_mul_size(n + 1, VARINT, &room))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a series of %zu events is too long to be stored; at most %zu are", n,
                         MICA_SERIES_MAX);
    uint8_t *plain = malloc(room);
    if (!plain)
        return mica_fail_nomem(err, room, "packed samples");
    at += put_varint(plain, n);
    for (size_t i = 0; i < n; i++)
        at += put_varint(plain + at, zigzag((uint64_t)values[i] - (i ? (uint64_t)values[i - 1] : 0)));
    mica_status status = compress(plain, at, bytes, length, err);
    free(plain);
    return status;
}

static mica_status read_ints(const uint8_t *plain, size_t size, int64_t **values, size_t *n, mica_error *err)
{
    uint64_t count, value, sum = 0;
    size_t at = get_varint(plain, size, &count);
    /* Each number takes a byte at least: a count beyond that is a lie, and no memory is taken for it. */
    if (at == 0 || count > size - at || count > MICA_SERIES_MAX)
        return mica_fail(err, MICA_BAD_FILE, "a packed series is damaged: its count cannot be");
    *values = mica_new_array((size_t)count, sizeof **values);
    if (!*values)
        return mica_fail_nomem(err, (size_t)count * sizeof **values, "unpacked samples");
    for (size_t i = 0; i < count; i++) {
        size_t taken = get_varint(plain + at, size - at, &value);
        at += taken;
        sum += unzigzag(value);
        (*values)[i] = (int64_t)sum;
        if (taken == 0) {
            free(*values);
            return mica_fail_at(err, MICA_BAD_FILE, (int64_t)at, "a packed series is damaged at number %zu", i);
        }
    }
    *n = (size_t)count;
    if (at == size)
        return MICA_OK;
    free(*values);
    return mica_fail_at(err, MICA_BAD_FILE, (int64_t)at, "a packed series has bytes after its end");
}

mica_status mica_unpack_ints(const void *bytes, size_t length, int64_t **values, size_t *n, mica_error *err)
{
    uint8_t *plain;
    size_t size;
    *values = NULL;
    mica_status status = expand(bytes, length, MICA_SERIES_MAX * VARINT, &plain, &size, err);
    if (status)
        return status;
    status = read_ints(plain, size, values, n, err);
    if (status)
        *values = NULL; /* of a damaged series nothing is left to be freed */
    free(plain);
    return status;
}
