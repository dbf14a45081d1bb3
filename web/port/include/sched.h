/* sched.h - sets of CPUs, of which nothing is known here. */
#ifndef MICA_WEB_SCHED_H
#define MICA_WEB_SCHED_H
#include_next <sched.h>

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#define CPU_SETSIZE 1024
typedef struct cpu_set_t {
    unsigned char bits[CPU_SETSIZE / 8];
} cpu_set_t;
#define CPU_ISSET_S(cpu, bytes, set) ((cpu) < 8 * (bytes) && ((set)->bits[(cpu) / 8] >> (cpu) % 8 & 1))

static inline int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set)
{
    (void)process, (void)bytes, (void)set;
    errno = ENOSYS;
    return -1;
}

#endif
