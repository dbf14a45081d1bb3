/* pages.c - makes a program believe in larger pages, and in an address space with less room (LD_PRELOAD). Case mem-05.
 *
 *     MICA_TEST_PAGE_SIZE=65536      sysconf() and getpagesize() say so; maps of files begin at multiples of it, as they would
 *     MICA_TEST_MAP_LIMIT=1073741824 a map of more bytes fails, as in a process of 32 bits
 *     MICA_TEST_PAGES_LOG=FILE       a line for every mmap of a file, munmap and madvise, "BAD" before those that a kernel with
 * such pages would refuse */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset);

static size_t setting(const char *name, size_t otherwise)
{
    const char *value = getenv(name);
    return value ? (size_t)strtoull(value, NULL, 10) : otherwise;
}

static size_t page_size(void)
{
    return setting("MICA_TEST_PAGE_SIZE", 4096);
}

static void note(const char *call, uintptr_t where, size_t length, int good)
{
    const char *path = getenv("MICA_TEST_PAGES_LOG");
    char line[128];
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof line, "%s%s %#zx %zu\n", good ? "" : "BAD ", call, (size_t)where, length);
    if (write(fd, line, (size_t)n) != n)
        _exit(99);
    close(fd);
}

static void *real(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        _exit(98);
    return function;
}

typedef void *(*mmap_fn)(void *, size_t, int, int, int, off_t);
typedef int (*unmap_fn)(void *, size_t);
typedef int (*advise_fn)(void *, size_t, int);
typedef long (*sysconf_fn)(int);

long sysconf(int name)
{
    sysconf_fn next;
    void *found = real("sysconf");
    memcpy(&next, &found, sizeof next); /* C has no cast from a pointer to data to one to a function */
    return name == _SC_PAGESIZE ? (long)page_size() : next(name);
}

int getpagesize(void)
{
    return (int)page_size();
}

/** Maps at a multiple of the page size, as a kernel with such pages does: a larger piece is reserved, and the map put into it.
 */
static void *map_aligned(mmap_fn next, size_t length, int protection, int flags, int fd, off_t offset)
{
    size_t page = page_size(), room = length + 2 * page;
    char *piece = next(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED)
        return MAP_FAILED;
    char *at = (char *)(((uintptr_t)piece + page - 1) / page * page);
    return next(at, length, protection, flags | MAP_FIXED, fd, offset); /* what is left of the piece stays reserved */
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    mmap_fn next;
    void *found = real("mmap");
    memcpy(&next, &found, sizeof next);
    int fixed = (flags & MAP_FIXED) != 0;
    int good = (size_t)offset % page_size() == 0 && (!fixed || (uintptr_t)address % page_size() == 0);
    if (fd >= 0 || !good)
        note("mmap", (uintptr_t)offset, length, good);
    if (!good || length > setting("MICA_TEST_MAP_LIMIT", SIZE_MAX)) {
        errno = good ? ENOMEM : EINVAL;
        return MAP_FAILED;
    }
    return fixed ? next(address, length, protection, flags, fd, offset)
                 : map_aligned(next, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return mmap(address, length, protection, flags, fd, offset);
}

int munmap(void *address, size_t length)
{
    unmap_fn next;
    void *found = real("munmap");
    memcpy(&next, &found, sizeof next);
    note("munmap", (uintptr_t)address, length, (uintptr_t)address % page_size() == 0);
    return next(address, length);
}

int madvise(void *address, size_t length, int advice)
{
    advise_fn next;
    void *found = real("madvise");
    memcpy(&next, &found, sizeof next);
    note("madvise", (uintptr_t)address, length, (uintptr_t)address % page_size() == 0);
    if ((uintptr_t)address % page_size() != 0) {
        errno = EINVAL;
        return -1;
    }
    return next(address, length, advice);
}
