/* sys/syscall.h - the one call that base/rng.h makes. */
#ifndef MICA_WEB_SYS_SYSCALL_H
#define MICA_WEB_SYS_SYSCALL_H
#include <stddef.h>
#include <unistd.h>

#define SYS_getrandom 1

static inline long syscall(long number, void *buffer, size_t bytes, int flags)
{
    (void)flags;
    return number == SYS_getrandom && getentropy(buffer, bytes) == 0 ? (long)bytes : -1;
}

#endif
