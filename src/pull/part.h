/* part.h - the file that a download grows in: TARGET.part, and beside it TARGET.part.from, which says where its bytes came
 * from.
 *
 * Invariants
 * 1. Who has a mica_part has the lock (flock) on that file, and the file has that name. A second pull of the same target waits.
 * 2. All `size` bytes of the file went through `whole` (and, of the current chunk, through `chunk`), whoever wrote them.
 * 3. Bytes of a chunk whose hash is known are in the file past the chunk's end only if the hash is right.
 * 4. `url` and `validator` tell about every byte of the file: they are written after it was emptied and before the first byte.
 * 5. TARGET appears by rename, of a file that is on the disk. Killed at any moment, a pull leaves invariants 1 to 5.
 *
 * Called by pull.c and transfer.c. */
#ifndef MICA_PULL_PART_H
#define MICA_PULL_PART_H
#include "pull/entry.h"
#include "pull/options.h"

typedef struct mica_part {
    int fd;
    char *path, *from;            /* TARGET.part, TARGET.part.from */
    const mica_pull_entry *entry; /* borrowed */
    int64_t size;
    mica_sha256 whole, chunk, whole_before; /* whole_before: up to the start of the current chunk */
    char url[2048];                         /* "": not known */
    char validator[512];                    /* ETag or Last-Modified as If-Range wants it; "": none */
} mica_part;

/** Opens or makes the part of a target, waits for its lock, hashes what it has, cuts off chunks that are wrong. */
mica_status mica_part_open(const char *target, const mica_pull_entry *entry, const mica_pull_options *o, mica_part *part,
                           mica_error *err);
/** Empties it. */
mica_status mica_part_restart(mica_part *part, mica_error *err);
/** Of an empty part: where its bytes will come from. */
mica_status mica_part_origin(mica_part *part, const char *url, const char *validator, mica_error *err);
/** MICA_BAD_FILE: a chunk's hash was wrong, and the file was cut back to that chunk's start. */
mica_status mica_part_append(mica_part *part, const void *data, size_t length, mica_error *err);
/** The SHA-256 of what it has. */
void mica_part_sum(const mica_part *part, char out[MICA_SHA256_TEXT]);
/** Is the entry's checksum known, and is it that of what is there? */
bool mica_part_is_whole(const mica_part *part);
/** To the disk, and to its place. The part is gone then. */
mica_status mica_part_commit(mica_part *part, const char *target, mica_error *err);
/** Unlocks it; an empty one is removed. */
void mica_part_close(mica_part *part);

/** MICA_IO_ERROR unless `bytes` more fit into the file system of `path`, and a little is left. */
mica_status mica_part_check_space(const mica_part *part, int64_t bytes, mica_error *err);

#endif
