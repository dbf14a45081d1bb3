/* gguf_split.c - models in several files. The convention (of the tool that splits them): files are named
 * STEM-00001-of-0000N.gguf, counted from 1; each has the keys split.no (counted from 0) and split.count; the first has
 * split.tensors.count, the number of tensors in all of them. */
#include "model/gguf_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SUFFIX_LENGTH 20  /* "-00001-of-00002.gguf" */
#define MAX_PARTS     99999 /* five digits; split.count is a u16 in files seen so far */

/* Five decimal digits; -1 if they are not. */
static int64_t five_digits(const char *p)
{
    int64_t n = 0;
    for (int i = 0; i < 5; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        n = n * 10 + (p[i] - '0');
    }
    return n;
}

/* Length of STEM and the two numbers of the name; false if it is not named like a part. */
static bool parse_name(const char *path, size_t *stem, int64_t *number, int64_t *count)
{
    size_t length = strlen(path);
    if (length < SUFFIX_LENGTH)
        return false;
    const char *p = path + length - SUFFIX_LENGTH;
    *stem = length - SUFFIX_LENGTH;
    *number = five_digits(p + 1);
    *count = five_digits(p + 10);
    return p[0] == '-' && memcmp(p + 6, "-of-", 4) == 0 && strcmp(p + 15, ".gguf") == 0 && *number > 0 && *count > 0;
}

/* STEM-0000i-of-0000n.gguf; NULL when out of memory. */
static char *part_path(const char *path, size_t stem, int64_t number, int64_t count)
{
    char *name = malloc(stem + SUFFIX_LENGTH + 1);
    if (!name)
        return NULL;
    memcpy(name, path, stem);
    snprintf(name + stem, SUFFIX_LENGTH + 1, "-%05d-of-%05d.gguf", (int)number, (int)count);
    return name;
}

/* A reader for a message about a key that is there. */
static mica_gguf_reader at_key(const mica_gguf_part *part, const char *key, mica_error *err)
{
    const mica_gguf_value *v = mica_gguf_part_find(part, key);
    return (mica_gguf_reader){.part = part, .at = v->offset, .item = "key", .name = v->key, .err = err};
}

static mica_status fail_key(const mica_gguf_part *part, const char *key, int64_t want, const char *why, mica_error *err)
{
    mica_gguf_reader r = at_key(part, key, err);
    return mica_gguf_reader_fail(&r, MICA_BAD_FILE, r.at, "is %" PRId64 " and must be %" PRId64 " %s",
                                 mica_gguf_array_i64(mica_gguf_part_find(part, key), 0), want, why);
}

/* split.count, 1 if absent; and split.no when there is more than one. */
static mica_status split_keys(const mica_gguf_part *part, int64_t *no, int64_t *count, mica_error *err)
{
    *no = 0;
    *count = 1;
    mica_status status = mica_gguf_part_get_i64(part, "split.count", false, 0, MAX_PARTS, count, err);
    if (status == MICA_OK && *count > 1)
        status = mica_gguf_part_get_i64(part, "split.no", true, 0, *count - 1, no, err);
    return status;
}

mica_status mica_gguf_split_refuse(const mica_gguf_part *part, mica_error *err)
{
    int64_t no, count;
    mica_status status = split_keys(part, &no, &count, err);
    if (status != MICA_OK || count <= 1)
        return status;
    mica_gguf_reader r = at_key(part, "split.count", err);
    return mica_gguf_reader_fail(&r, MICA_UNSUPPORTED, r.at,
                                 "says that this is part %" PRId64 " of %" PRId64
                                 " of a split model, which can be opened only by a path: the others are found by their names",
                                 no + 1, count);
}

/* The part that was named: its file name must agree with its keys, or the others cannot be found. */
static mica_status check_name(const mica_gguf_part *part, int64_t no, int64_t count, size_t *stem, mica_error *err)
{
    int64_t named_number, named_count;
    if (!parse_name(part->path, stem, &named_number, &named_count)) {
        const char *slash = strrchr(part->path, '/'), *name = mica_path_tail(slash ? slash + 1 : part->path);
        size_t length = strlen(name);
        int keep = (int)(length >= 5 && strcmp(name + length - 5, ".gguf") == 0 ? length - 5 : length);
        mica_gguf_reader r = at_key(part, "split.count", err);
        return mica_gguf_reader_fail(&r, MICA_BAD_FILE, r.at,
                                     "says that this is part %" PRId64 " of %" PRId64
                                     ", but the file name does not: %.*s-%05d-of-%05d.gguf is expected, the others beside it",
                                     no + 1, count, keep, name, (int)(no + 1), (int)count);
    }
    if (named_count != count)
        return fail_key(part, "split.count", named_count, "as the file name says", err);
    if (named_number != no + 1)
        return fail_key(part, "split.no", named_number - 1, "as the file name says (it counts from 1, the key from 0)", err);
    return MICA_OK;
}

/* Opens part number `index` (from 0) of the model that `named` is a part of. */
static mica_status open_other(const mica_gguf_part *named, size_t stem, int64_t index, int64_t count, mica_gguf_part *out,
                              mica_error *err)
{
    mica_error inner;
    int64_t no, its_count;
    char *name = part_path(named->path, stem, index + 1, count);
    if (!name)
        return mica_fail_nomem(err, stem + SUFFIX_LENGTH + 1, "a file name");
    mica_status status = mica_gguf_part_open(name, out, &inner);
    free(name);
    if (status == MICA_IO_ERROR) {
        mica_gguf_reader r = at_key(named, "split.count", err);
        return mica_gguf_reader_fail(&r, status, r.at,
                                     "makes it one of %" PRId64 " parts, and part %" PRId64 " cannot be used: %.240s", count,
                                     index + 1, inner.message);
    }
    if (status != MICA_OK)
        return mica_fail_at(err, status, inner.position, "%s", inner.message);
    status = split_keys(out, &no, &its_count, err);
    if (status == MICA_OK && its_count != count)
        status = mica_gguf_part_find(out, "split.count")
                     ? fail_key(out, "split.count", count, "as in the other parts", err)
                     : mica_fail(err, MICA_BAD_FILE, "%s: key split.count is missing, so it is no part of the split model",
                                 mica_path_tail(out->path));
    if (status == MICA_OK && no != index)
        status = fail_key(out, "split.no", index, "as the file name says (it counts from 1, the key from 0)", err);
    if (status != MICA_OK)
        mica_gguf_part_close(out);
    return status;
}

static mica_status check_total(const mica_gguf_part *parts, size_t n_parts, mica_error *err)
{
    int64_t promised = 0, found = 0;
    mica_status status = mica_gguf_part_get_i64(&parts[0], "split.tensors.count", true, 0, INT64_MAX, &promised, err);
    for (size_t i = 0; i < n_parts; i++)
        found += (int64_t)parts[i].n_tensors;
    if (status == MICA_OK && found != promised)
        return fail_key(&parts[0], "split.tensors.count", found,
                        "as the number of tensors found in all parts; a part is not the right one", err);
    return status;
}

static void close_parts(mica_gguf_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mica_gguf_part_close(&parts[i]);
    free(parts);
}

/* All parts in order; `first` takes its place among them. The array grows with the files that are really there. */
static mica_status open_all(mica_gguf_part *first, int64_t no, int64_t count, size_t stem, mica_gguf_part **out,
                            mica_error *err)
{
    mica_gguf_part *parts = NULL;
    size_t n = 0, capacity = 0;
    bool taken = false;
    mica_status status = MICA_OK;
    while (status == MICA_OK && (int64_t)n < count) {
        void *items = parts;
        status = mica_gguf_grow(&items, n, &capacity, sizeof *parts, "the parts of the model", err);
        parts = items;
        if (status != MICA_OK)
            break;
        if ((int64_t)n == no) {
            parts[n] = *first;
            taken = true;
        } else {
            status = open_other(taken ? &parts[no] : first, stem, (int64_t)n, count, &parts[n], err);
        }
        n += status == MICA_OK;
    }
    if (status == MICA_OK)
        status = check_total(parts, n, err);
    if (status == MICA_OK) {
        *out = parts;
        return MICA_OK;
    }
    if (!taken)
        mica_gguf_part_close(first);
    close_parts(parts, n);
    return status;
}

mica_status mica_gguf_split_open(mica_gguf_part *first, mica_gguf_part **parts, size_t *n_parts, mica_error *err)
{
    int64_t no, count;
    size_t stem = 0;
    mica_status status = split_keys(first, &no, &count, err);
    if (status == MICA_OK && count > 1)
        status = check_name(first, no, count, &stem, err);
    if (status != MICA_OK) {
        mica_gguf_part_close(first);
        return status;
    }
    *n_parts = count > 1 ? (size_t)count : 1;
    if (count > 1)
        return open_all(first, no, count, stem, parts, err);
    *parts = malloc(sizeof **parts);
    if (!*parts) {
        mica_gguf_part_close(first);
        return mica_fail_nomem(err, sizeof **parts, "the index of the model");
    }
    **parts = *first;
    return MICA_OK;
}
