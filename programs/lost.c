#include "lost.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "guard.h"
#include "term.h"

/* A signal handler: nothing here allocates or formats. */

static const char *read_hex(const char *p, uintptr_t *value)
{
    *value = 0;
    for (;; p++) {
        int digit = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
        if (digit < 0)
            return p;
        *value = *value * 16 + (uintptr_t)digit;
    }
}

/* "FROM-TO rw-p OFFSET DEVICE INODE   PATH": the path, if the address is in it. */
static const char *path_at(const char *line, uintptr_t address)
{
    uintptr_t from, to;
    const char *p = read_hex(line, &from);
    if (*p != '-')
        return NULL;
    p = read_hex(p + 1, &to);
    return address >= from && address < to ? strchr(p, '/') : NULL;
}

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(CODE_FAILED); /* nobody to tell */
}

static atomic_flag told = ATOMIC_FLAG_INIT; /* several threads may read the file */

/* The path of what is mapped at the address, in `lines`, which is read into; NULL: not known. */
static const char *find_path(uintptr_t address, char *lines, size_t room)
{
    const char *found = NULL;
    size_t held = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found) {
        ssize_t n = read(fd, lines + held, room - held);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        held += (size_t)n;
        char *line = lines, *end;
        while (!found && (end = memchr(line, '\n', held - (size_t)(line - lines)))) {
            *end = '\0';
            found = path_at(line, address);
            line = end + 1;
        }
        held -= (size_t)(line - lines);
        if (!found)
            memmove(lines, line, held);
        if (held == room)
            break; /* no line is so long */
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    char lines[8192];
    (void)context;
    while (atomic_flag_test_and_set(&told))
        pause(); /* the process ends soon */
    if (info->si_code != BUS_ADRERR) { /* memory that is broken, or a fault of the program */
        signal(number, SIG_DFL);
        raise(number); /* delivered when this returns */
        return;
    }
    const char *path = find_path((uintptr_t)info->si_addr, lines, sizeof lines);
    say("mica: the file ");
    say(path ? path : "that was read");
    say(" was truncated or cannot be read any more\n");
    mica_guard_drop();
    _exit(CODE_FAILED);
}

void mica_lost_catch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
