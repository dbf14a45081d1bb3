/* map.c - base/map.h where there are no files: a model is bytes that lie in the module's memory already, and its path says
 * where, "memory:ADDRESS+BYTES". They belong to whoever put them there (engine.c). */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/map_huge.h"

static const char scheme[] = "memory:";

mica_status mica_map_open(const char *path, mica_map *map, mica_error *err)
{
    char *end = NULL;
    *map = (mica_map){0};
    if (strncmp(path, scheme, sizeof scheme - 1) != 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: a model is one file here, which is loaded into memory", path);
    uintptr_t address = strtoul(path + sizeof scheme - 1, &end, 10);
    size_t length = *end == '+' ? strtoul(end + 1, &end, 10) : 0;
    if (*end || length == 0)
        return mica_fail_at(err, MICA_BAD_FILE, 0, "the file is empty (0 bytes); download it again");
    *map = (mica_map){.data = (const uint8_t *)address, .length = length};
    return MICA_OK;
}

mica_status mica_map_open_fd(int fd, uint64_t offset, uint64_t length, const char *name, mica_map *map, mica_error *err)
{
    (void)fd, (void)offset, (void)length;
    *map = (mica_map){0};
    return mica_fail(err, MICA_UNSUPPORTED, "cannot open %s: there are no file descriptors here", name);
}

void mica_map_close(mica_map *map) { *map = (mica_map){0}; }

void mica_map_forget(const void *data, size_t length) { (void)data, (void)length; }

/* It is in memory, and no system call would keep it from being swapped. */
bool mica_map_lock(const void *data, size_t length)
{
    (void)data, (void)length;
    return false;
}

int64_t mica_map_lock_limit(void) { return 0; }

const char *mica_path_tail(const char *path) { return path; } /* all are short */

/* ---- map_huge.h: the engine that runs the module chooses its pages ---- */

void mica_memory_collapse(void *memory, size_t bytes) { (void)memory, (void)bytes; }

void mica_map_prefer_small(const void *data, size_t length) { (void)data, (void)length; }
