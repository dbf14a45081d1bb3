/* snapshot_io.c - writing and mapping what has the form of a snapshot. */
#include <sys/mman.h>
#include <sys/stat.h>

#include <string.h>

#include "session/snapshot.h"

static mica_status put_hash(mica_sink *to, const void *data, size_t length, mica_error *err)
{
    (void)err;
    mica_xxh64_add(&to->hash, data, length);
    return MICA_OK;
}

static mica_status put_memory(mica_sink *to, const void *data, size_t length, mica_error *err)
{
    (void)err;
    if (length > 0)
        memcpy(to->memory, data, length);
    to->memory += length;
    return MICA_OK;
}

static mica_status put_file(mica_sink *to, const void *data, size_t length, mica_error *err)
{
    return mica_newfile_write(to->file, data, length, err);
}

/* A section and its padding. */
static mica_status put_padded(const void *owner, const mica_snapshot_header *h, int part, mica_snapshot_put put, mica_sink *to,
                              mica_error *err)
{
    static const uint8_t zeros[MICA_SNAPSHOT_ALIGN];
    uint64_t bytes = h->sections[part].bytes;
    mica_status status = put(owner, h, part, to, err);
    return status ? status : to->put(to, zeros, (size_t)(mica_snapshot_padded(bytes) - bytes), err);
}

static void seal(const void *owner, mica_snapshot_header *h, mica_snapshot_put put, uint8_t header[MICA_SNAPSHOT_HEADER])
{
    for (int i = 0; i < MICA_SNAPSHOT_PARTS; i++) {
        mica_sink to = {.put = put_hash};
        mica_xxh64_start(&to.hash, 0);
        (void)put_padded(owner, h, i, put, &to, NULL); /* hashing cannot fail */
        h->sections[i].checksum = mica_xxh64_value(&to.hash);
    }
    mica_snapshot_encode(h, header);
}

static mica_status put_all(const void *owner, mica_snapshot_header *h, mica_snapshot_put put, mica_sink *to, mica_error *err)
{
    uint8_t header[MICA_SNAPSHOT_HEADER];
    seal(owner, h, put, header);
    mica_status status = to->put(to, header, MICA_SNAPSHOT_HEADER, err);
    for (int i = 0; i < MICA_SNAPSHOT_PARTS && !status; i++)
        status = put_padded(owner, h, i, put, to, err);
    return status;
}

mica_status mica_snapshot_write_memory(const void *owner, mica_snapshot_header *h, mica_snapshot_put put, uint8_t *out, mica_error *err)
{
    mica_sink to = {.put = put_memory, .memory = out};
    return put_all(owner, h, put, &to, err);
}

mica_status mica_snapshot_write_file(const void *owner, mica_snapshot_header *h, mica_snapshot_put put, const char *path,
                                     mica_error *err)
{
    mica_newfile file;
    mica_status status = mica_newfile_open(path, MICA_NEWFILE_PRIVATE, &file, err);
    mica_sink to = {.put = put_file, .file = &file};
    if (!status)
        status = put_all(owner, h, put, &to, err);
    if (!status)
        status = mica_newfile_commit(&file, err);
    mica_newfile_discard(&file);
    return status;
}

/* mica_map_open() speaks of models; an empty file, here, is what is left of a snapshot that was never written. */
mica_status mica_snapshot_map(const char *path, mica_map *map, mica_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        return mica_fail_at(err, MICA_BAD_FILE, 0, "%s is not a snapshot: it is empty (0 bytes)", mica_path_tail(path));
    mica_status status = mica_map_open(path, map, err);
    if (!status)
        (void)posix_madvise(map->base, map->base_bytes, POSIX_MADV_WILLNEED); /* all of it is read twice */
    return status;
}
