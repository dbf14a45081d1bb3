/* memory.c - see include/sys/mman.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    (void)address, (void)protection, (void)offset;
    void *memory;
    if (!(flags & MAP_ANONYMOUS) || fd != -1 || length == 0) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (posix_memalign(&memory, 4096, length) != 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    memset(memory, 0, length); /* the allocator gives memory a second time */
    return memory;
}

int munmap(void *address, size_t length)
{
    (void)length;
    free(address);
    return 0;
}

int posix_madvise(void *address, size_t length, int advice)
{
    (void)address, (void)length, (void)advice;
    return 0;
}
