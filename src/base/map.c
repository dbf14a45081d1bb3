#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map_huge.h"

/* A message holds 488 bytes: of a longer path the end says most. */
#define PATH_TAIL 120

const char *mica_path_tail(const char *path)
{
    size_t length = strlen(path);
    if (length <= PATH_TAIL)
        return path;
    path += length - PATH_TAIL;
    while (((unsigned char)*path & 0xC0) == 0x80) /* not into the middle of a UTF-8 character */
        path++;
    return path;
}

static mica_status refuse_open(const char *path, int error, mica_error *err)
{
    const char *name = mica_path_tail(path);
    switch (error) {
    case ENOENT:
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: there is no such file", name);
    case ENOTDIR:
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: a part of the path is not a directory", name);
    case EACCES:
    case EPERM:
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: no permission to read it", name);
    case ENXIO: /* a socket, or a device that is not there */
        return mica_fail(err, MICA_IO_ERROR, "cannot map %s: it is not a regular file", name);
    default:
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", name, strerror(error));
    }
}

/* The size of a regular file that fits the address space. */
static mica_status regular_size(int fd, const char *path, uint64_t *size, int64_t *modified_ns, mica_error *err)
{
    struct stat st;
    const char *name = mica_path_tail(path);
    if (fstat(fd, &st) != 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot read the size of %s: %s", name, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return mica_fail(err, MICA_IO_ERROR, "cannot map %s: it is a directory, name a file in it", name);
    if (S_ISFIFO(st.st_mode))
        return mica_fail(err, MICA_IO_ERROR, "cannot map %s: it is a pipe, and a model must be a regular file", name);
    if (!S_ISREG(st.st_mode))
        return mica_fail(err, MICA_IO_ERROR, "cannot map %s: it is not a regular file", name);
    if (st.st_size <= 0)
        return mica_fail_at(err, MICA_BAD_FILE, 0, "%s is empty (0 bytes); download it again", name);
    *size = (uint64_t)st.st_size;
    *modified_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (*size > SIZE_MAX / 2)
        return mica_fail(err, MICA_IO_ERROR, "cannot map %s: %llu bytes exceed the address space", name,
                         (unsigned long long)*size);
    return MICA_OK;
}

static mica_status check_range(uint64_t offset, uint64_t *length, uint64_t size, const char *path, mica_error *err)
{
    const char *name = mica_path_tail(path);
    if (offset % 4 != 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "cannot map %s from offset %llu: it must be a multiple of 4", name,
                         (unsigned long long)offset);
    if (offset >= size || *length > size - offset)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "cannot map %llu bytes of %s from offset %llu: it has %llu bytes",
                         (unsigned long long)*length, name, (unsigned long long)offset, (unsigned long long)size);
    if (*length == 0)
        *length = size - offset;
    return MICA_OK;
}

mica_status mica_map_open_fd(int fd, uint64_t offset, uint64_t length, const char *name, mica_map *map, mica_error *err)
{
    uint64_t size = 0;
    int64_t modified_ns = 0;
    mica_status status = regular_size(fd, name, &size, &modified_ns, err);
    if (status == MICA_OK)
        status = check_range(offset, &length, size, name, err);
    if (status != MICA_OK)
        return status;
    size_t lead = (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE)); /* mmap wants whole pages */
    size_t bytes = (size_t)length + lead;
    void *base = mica_map_place(fd, (off_t)(offset - lead), bytes);
    if (base == MAP_FAILED)
        return mica_fail(err, MICA_IO_ERROR, "cannot map %llu bytes of %s: %s", (unsigned long long)length,
                         mica_path_tail(name), strerror(errno));
    bool huge = mica_map_prefer_huge(fd, (off_t)(offset - lead), base, bytes);
    *map = (mica_map){
        .data = (const uint8_t *)base + lead, .length = (size_t)length, .base = base, .base_bytes = bytes, .huge = huge,
        .modified_ns = modified_ns};
    return MICA_OK;
}

mica_status mica_map_open(const char *path, mica_map *map, mica_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* O_NONBLOCK: a pipe must not hang here */
    if (fd < 0)
        return refuse_open(path, errno, err);
    mica_status status = mica_map_open_fd(fd, 0, 0, path, map, err);
    close(fd);
    return status;
}

void mica_map_forget(const void *data, size_t length)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)data + page - 1) / page * page;
    uintptr_t to = ((uintptr_t)data + length) / page * page;
    if (from < to)
        (void)madvise((void *)from, to - from, MADV_DONTNEED); /* a refusal costs memory, no more */
}

bool mica_map_lock(const void *data, size_t length)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)data / page * page;
    return mlock((const void *)from, (uintptr_t)data + length - from) == 0;
}

int64_t mica_map_lock_limit(void)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return known && limit.rlim_cur < INT64_MAX ? (int64_t)limit.rlim_cur : INT64_MAX;
}

void mica_map_close(mica_map *map)
{
    if (map->base)
        munmap(map->base, map->base_bytes);
    *map = (mica_map){0};
}
