/* mem.h - overflow-checked sizes and allocation. Called by all. */
#ifndef MICA_BASE_MEM_H
#define MICA_BASE_MEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool mica_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool mica_add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }

/** count * size bytes, zeroed; NULL on overflow or refusal. Freed with free(). Never returns NULL for count 0. */
static inline void *mica_new_array(size_t count, size_t size) { return calloc(count ? count : 1, size ? size : 1); }

/** bytes at a multiple of `align`, a power of two; NULL on refusal. Freed with free(). Android has aligned_alloc() only since API
 * level 28. */
static inline void *mica_new_aligned(size_t align, size_t bytes)
{
    void *memory;
    return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

/** Rounds up to a multiple of `to`, a power of two. The caller knows that it cannot overflow. */
static inline size_t mica_round_up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

#endif
