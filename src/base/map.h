/* map.h - a file, or a part of one, mapped read-only and shared. Owns the mapping, not the descriptor. Called by model/gguf. */
#ifndef MICA_BASE_MAP_H
#define MICA_BASE_MAP_H
#include "base/error.h"

typedef struct mica_map {
    const uint8_t *data; /* the bytes asked for: `offset` of the file is data[0] */
    size_t length;
    void *base;        /* page-aligned start of the mapping */
    size_t base_bytes; /* its length */
} mica_map;

/** Maps the whole of a regular file. The errors say: missing, a directory, empty, not a regular file, no permission. */
mica_status mica_map_open(const char *path, mica_map *map, mica_error *err);

/** Maps `length` bytes (0: to the end) from `offset` of `fd`; `name` is for messages. The offset need not be page-aligned,
 * but must be a multiple of 4 (tensor data is read in place); range checked against the file's size. */
mica_status mica_map_open_fd(int fd, uint64_t offset, uint64_t length, const char *name, mica_map *map, mica_error *err);

/** Unmaps, and zeroes *map. A zeroed map is fine. */
void mica_map_close(mica_map *map);

/** The path, or the last 120 bytes of a longer one: the part that messages show. */
const char *mica_path_tail(const char *path);

#endif
