#include "base/map_huge.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE = 2 << 20, LEAST = 4 * HUGE }; /* of smaller files the page tables stay in the caches */

#if defined(__linux__)
#include <sys/ioctl.h>

void *mica_map_place(int fd, off_t offset, size_t bytes)
{
    if (bytes < LEAST)
        return mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, offset);
    /* A huge page is one where file offset and address agree modulo its size: a place is reserved with room to choose. */
    uint8_t *room = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    size_t skip = ((uintptr_t)offset - (uintptr_t)room) % HUGE, page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *base = mmap(room + skip, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, offset);
    if (base == MAP_FAILED) {
        munmap(room, bytes + HUGE);
        return MAP_FAILED;
    }
    size_t used = (bytes + page - 1) / page * page;
    if (skip)
        munmap(room, skip);
    if (skip + used < bytes + HUGE)
        munmap(base + used, bytes + HUGE - skip - used);
    return base;
}

/* ---- which pages there are ---- */

/* The kernel's struct pm_scan_arg (since Linux 6.7), which older headers lack. */
typedef struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, inverted, wanted, any_of, returned;
} scan;
typedef struct scan_region {
    uint64_t start, end, categories;
} scan_region;
#define SCAN _IOWR('f', 16, scan)
#define PAGE_IS_HUGE (1u << 6)

static bool is_cached(void *chunk)
{
    enum { MOST = HUGE / 4096 };
    unsigned char there[MOST];
    size_t n = HUGE / (size_t)sysconf(_SC_PAGESIZE);
    if (n > MOST || mincore(chunk, HUGE, there) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!(there[i] & 1))
            return false;
    return true;
}

/* Whether a touched chunk is one huge page: 1, 0, or -1 where the kernel does not say. Unmaps it again. */
static int is_huge(int pagemap, void *chunk)
{
    scan_region found;
    scan s = {.size = sizeof s, .start = (uintptr_t)chunk, .end = (uintptr_t)chunk + HUGE, .vec = (uintptr_t)&found, .vec_len = 1,
              .wanted = PAGE_IS_HUGE, .returned = PAGE_IS_HUGE};
    (void)*(const volatile uint8_t *)chunk;
    int n = ioctl(pagemap, SCAN, &s);
    (void)madvise(chunk, HUGE, MADV_DONTNEED);
    return n < 0 ? -1 : n > 0;
}

/* A chunk that is cached in small pages, if most of those looked at are; else NULL. */
static uint8_t *small_chunk(int pagemap, uint8_t *first, size_t n_chunks)
{
    enum { LOOKS = 5 };
    uint8_t *found = NULL;
    int small = 0;
    for (size_t i = 0; i < LOOKS; i++) {
        uint8_t *chunk = first + n_chunks * i / LOOKS * HUGE;
        if (!is_cached(chunk) || is_huge(pagemap, chunk) != 0)
            continue;
        found = chunk;
        small++;
    }
    return 2 * small > LOOKS ? found : NULL;
}

bool mica_map_prefer_huge(int fd, off_t offset, void *base, size_t bytes)
{
    if (bytes < LEAST || madvise(base, bytes, MADV_HUGEPAGE) != 0)
        return false;
    uint8_t *first = (uint8_t *)(((uintptr_t)base + HUGE - 1) / HUGE * HUGE);
    size_t n_chunks = (bytes - (size_t)(first - (uint8_t *)base)) / HUGE;
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0)
        return false;
    uint8_t *chunk = small_chunk(pagemap, first, n_chunks);
    if (chunk) {
        (void)posix_fadvise(fd, offset + (chunk - (uint8_t *)base), HUGE, POSIX_FADV_DONTNEED);
        if (is_huge(pagemap, chunk) == 1)
            (void)posix_fadvise(fd, offset, (off_t)bytes, POSIX_FADV_DONTNEED);
    }
    bool huge = is_huge(pagemap, first) == 1;
    close(pagemap);
    return huge;
}

void mica_memory_collapse(void *memory, size_t bytes)
{
    enum { COLLAPSE = 25 }; /* MADV_COLLAPSE */
    if (bytes >= LEAST && madvise(memory, bytes, MADV_HUGEPAGE) == 0)
        (void)madvise(memory, bytes, COLLAPSE); /* else the kernel's own thread does it in time */
}

void mica_map_prefer_small(const void *data, size_t length)
{
    uintptr_t from = ((uintptr_t)data + HUGE - 1) / HUGE * HUGE, to = ((uintptr_t)data + length) / HUGE * HUGE;
    if (from < to)
        (void)madvise((void *)from, to - from, MADV_NOHUGEPAGE); /* a refusal costs memory, no more */
}

#else /* no huge pages for files */

void *mica_map_place(int fd, off_t offset, size_t bytes) { return mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, offset); }

bool mica_map_prefer_huge(int fd, off_t offset, void *base, size_t bytes)
{
    (void)fd, (void)offset, (void)base, (void)bytes;
    return false;
}

void mica_memory_collapse(void *memory, size_t bytes) { (void)memory, (void)bytes; }

void mica_map_prefer_small(const void *data, size_t length) { (void)data, (void)length; }
#endif
