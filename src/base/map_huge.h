/* map_huge.h - large files are mapped with huge pages where the system has them for files: decode reads all weights for each token, and
 * with small pages the processor waits for page tables as much as for memory (docs/performance.md). Called by map.c and weights.c. */
#ifndef MICA_BASE_MAP_HUGE_H
#define MICA_BASE_MAP_HUGE_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** Maps `bytes` of `fd` from `offset` (whole pages), read-only and shared, where huge pages fit. MAP_FAILED with errno, as mmap. */
void *mica_map_place(int fd, off_t offset, size_t bytes);

/** Asks for huge pages. What the system's cache holds of the file in small pages is dropped from it if it then comes back in huge ones,
    which is tried on 2 MiB first: so the first load after a file was written may read it from the disk again, and later ones find it.
    For a fresh mapping, nothing of which was read. True if its beginning is in huge pages now: then touching a page brings 2 MiB, and to
    ask for a range beforehand (POSIX_MADV_WILLNEED) would only bring it in small ones. */
bool mica_map_prefer_huge(int fd, off_t offset, void *base, size_t bytes);

/** Brings used anonymous memory into huge pages, at once where the kernel can (Linux 6.1). Untouched parts become resident. */
void mica_memory_collapse(void *memory, size_t bytes);

/** Small pages again for data[0..length): of a matrix from which single rows are read, each would bring 2 MiB into memory. */
void mica_map_prefer_small(const void *data, size_t length);

#endif
