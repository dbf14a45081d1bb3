/* map.h - a file, or a part of one, mapped read-only and shared. Owns the mapping, not the descriptor. Called by model/gguf. */
#ifndef MICA_BASE_MAP_H
#define MICA_BASE_MAP_H
#include <stdbool.h>

#include "base/error.h"

typedef struct mica_map {
    const uint8_t *data; /* the bytes asked for: `offset` of the file is data[0] */
    size_t length;
    void *base;        /* page-aligned start of the mapping */
    size_t base_bytes; /* its length */
    bool huge;         /* in huge pages, see map_huge.h */
    int64_t modified_ns; /* of the file, when it was mapped; Unix time */
} mica_map;

/** Maps the whole of a regular file. The errors say: missing, a directory, empty, not a regular file, no permission. */
mica_status mica_map_open(const char *path, mica_map *map, mica_error *err);

/** Maps `length` bytes (0: to the end) from `offset` of `fd`; `name` is for messages. The offset need not be page-aligned,
 * but must be a multiple of 4 (tensor data is read in place); range checked against the file's size. */
mica_status mica_map_open_fd(int fd, uint64_t offset, uint64_t length, const char *name, mica_map *map, mica_error *err);

/** Unmaps, and zeroes *map. A zeroed map is fine. */
void mica_map_close(mica_map *map);

/** Lets whole pages of a mapped file in data[0..length) go: they stay in the system's cache, and come back when they are read. */
void mica_map_forget(const void *data, size_t length);

/** Brings data[0..length) of a mapped file into memory and keeps it there (mlock). False: the system does not allow it (errno). */
bool mica_map_lock(const void *data, size_t length);
/** The most bytes that this process may lock; INT64_MAX: as many as there are. */
int64_t mica_map_lock_limit(void);

/** The path, or the last 120 bytes of a longer one: the part that messages show. */
const char *mica_path_tail(const char *path);

#endif
