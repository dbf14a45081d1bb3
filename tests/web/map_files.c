/* map_files.c - base/map.h for tests that run where there are files (Node's WASI), but nothing to map them with: they are
 * read. */
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/map_huge.h"
#include "base/mem.h"

mica_status mica_map_open(const char *path, mica_map *map, mica_error *err)
{
    *map = (mica_map){0};
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s", path);
    size_t length = (size_t)ftell(f);
    void *memory = mica_new_aligned(64, length);
    rewind(f);
    bool whole = memory && fread(memory, 1, length, f) == length;
    fclose(f);
    if (!whole) {
        free(memory);
        return mica_fail(err, MICA_IO_ERROR, "cannot read the %zu bytes of %s", length, path);
    }
    *map = (mica_map){.data = memory, .length = length, .base = memory, .base_bytes = length};
    return MICA_OK;
}

mica_status mica_map_open_fd(int fd, uint64_t offset, uint64_t length, const char *name, mica_map *map, mica_error *err)
{
    (void)fd, (void)offset, (void)length, (void)map;
    return mica_fail(err, MICA_UNSUPPORTED, "cannot open %s by a descriptor here", name);
}

void mica_map_close(mica_map *map)
{
    free(map->base);
    *map = (mica_map){0};
}

void mica_map_forget(const void *data, size_t length) { (void)data, (void)length; }

bool mica_map_lock(const void *data, size_t length)
{
    (void)data, (void)length;
    return false;
}

int64_t mica_map_lock_limit(void) { return 0; }

const char *mica_path_tail(const char *path) { return path; }

void mica_memory_collapse(void *memory, size_t bytes) { (void)memory, (void)bytes; }

void mica_map_prefer_small(const void *data, size_t length) { (void)data, (void)length; }
