/* sys/mman.h - memory as the engine asks for it, from the allocator: a module's memory is one array, nothing can be mapped
 * in it. */
#ifndef MICA_WEB_SYS_MMAN_H
#define MICA_WEB_SYS_MMAN_H
#include <stddef.h>
#include <sys/types.h>

#define PROT_READ            1
#define PROT_WRITE           2
#define MAP_SHARED           1
#define MAP_PRIVATE          2
#define MAP_ANONYMOUS        32
#define MAP_FAILED           ((void *)-1)
#define POSIX_MADV_WILLNEED  3

/* Zig's C library has an emulation of these, whose memory begins at no useful multiple: ours have names of their own. */
#define mmap          mica_web_mmap
#define munmap        mica_web_munmap
#define posix_madvise mica_web_madvise

/** Anonymous memory only: zeros, at a multiple of 4096. */
void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
/** The whole of it only. */
int munmap(void *address, size_t length);
/** There is nothing to advise. */
int posix_madvise(void *address, size_t length, int advice);

#endif
