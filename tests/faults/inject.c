/* inject.c - makes one call of a program fail: a library that stands before libc, with LD_PRELOAD or linked. A fault is
 * decided by a counter and a plan (inject.h), so that a run can be repeated with every call in turn.
 *
 * Only regular files and folders are concerned: what comes over sockets and pipes is tested elsewhere. Streams of stdio call
 * libc's own read and write, which nothing can stand before; so fopen() gives a stream over ours. Only processes whose name
 * begins with "mica" or "test_" are concerned: what they start is not theirs. Linux with glibc. */
#include "inject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* glibc's own, under the names that stay when malloc is replaced */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t align, size_t bytes);
extern void __libc_free(void *memory);

/* The libc function that `name` stands before. */
#define REAL(name) ((__typeof__(&name))real(#name))

/* How a replaced function is declared: visible, whatever the build's default is. */
#define FRONT __attribute__((visibility("default")))

static mica_fault_plan own_plan;
static mica_fault_plan *_Atomic plan;
static _Atomic int64_t blocks, mapped;

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

/* ---- The plan ---- */

static bool is_ours(void)
{
    return strncmp(program_invocation_short_name, "mica", 4) == 0 || strncmp(program_invocation_short_name, "test_", 5) == 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("MICA_FAULTS_STATE");
    int fd = path && is_ours() ? REAL(open)(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = REAL(mmap)(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REAL(close)(fd);
    if (memory != MAP_FAILED)
        atomic_store(&plan, memory);
}

mica_fault_plan *mica_faults_plan(void)
{
    if (!atomic_load(&plan))
        atomic_store(&plan, &own_plan);
    return atomic_load(&plan);
}

mica_faults_live mica_faults_live_now(void)
{
    return (mica_faults_live){atomic_load(&blocks), atomic_load(&mapped)};
}

static void name_of(int fd, char path[256])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, 255);
    path[n > 0 ? n : 0] = '\0';
}

/* Is this call to fail? fd and path (-1, NULL: it has none) are for the report. */
static bool strikes(int kind, const char *call, int fd, const char *path)
{
    mica_fault_plan *p = atomic_load_explicit(&plan, memory_order_relaxed);
    if (!p || !(p->mask & 1u << kind))
        return false;
    int64_t number = atomic_fetch_add(&p->seen, 1) + 1;
    if (p->first == 0 || number < p->first || number > p->last)
        return false;
    if (atomic_fetch_add(&p->hit, 1) == 0) {
        strncpy(p->call, call, sizeof p->call - 1);
        if (fd >= 0)
            name_of(fd, p->path);
        else if (path)
            strncpy(p->path, path, sizeof p->path - 1);
    }
    if (p->error == FAULT_KILL)
        kill(getpid(), SIGKILL);
    return true;
}

/* Errors are numbers of errno; those that are none concern reads and writes alone. */
static bool fails(int kind, const char *call, int fd, const char *path)
{
    int kept = errno;
    bool now = strikes(kind, call, fd, path);
    errno = now && atomic_load(&plan)->error > 0 ? atomic_load(&plan)->error : kept;
    return now && atomic_load(&plan)->error > 0;
}

static bool refused(int kind, const char *call)
{
    bool now = strikes(kind, call, -1, NULL);
    if (now)
        errno = ENOMEM;
    return now;
}

/* A regular file, or a folder. */
static bool is_file(int fd)
{
    struct stat st;
    int kept = errno;
    bool is = atomic_load_explicit(&plan, memory_order_relaxed) && REAL(fstat)(fd, &st) == 0 &&
              (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    errno = kept;
    return is;
}

/* For reads and writes: false, and the number of bytes that may be done; or true: fail with errno. */
static bool cut(int kind, const char *call, int fd, size_t *bytes)
{
    if (!is_file(fd) || !strikes(kind, call, fd, NULL))
        return false;
    int error = atomic_load(&plan)->error;
    if (error > 0)
        errno = error;
    else if (*bytes > 1)
        *bytes /= 2;
    return error > 0;
}

/* ---- Memory ---- */

static void *counted(void *memory)
{
    if (memory)
        atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
    return memory;
}

FRONT void *malloc(size_t bytes)
{
    return refused(CALL_ALLOC, "malloc") ? NULL : counted(__libc_malloc(bytes));
}

FRONT void *calloc(size_t n, size_t bytes)
{
    return refused(CALL_ALLOC, "calloc") ? NULL : counted(__libc_calloc(n, bytes));
}

FRONT void free(void *memory)
{
    if (memory)
        atomic_fetch_sub_explicit(&blocks, 1, memory_order_relaxed);
    __libc_free(memory);
}

FRONT void *realloc(void *old, size_t bytes)
{
    if (bytes == 0 && old) { /* as glibc has it */
        free(old);
        return NULL;
    }
    if (refused(CALL_ALLOC, "realloc"))
        return NULL;
    return old ? __libc_realloc(old, bytes) : counted(__libc_realloc(NULL, bytes));
}

FRONT void *reallocarray(void *old, size_t n, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, all);
}

FRONT void *aligned_alloc(size_t align, size_t bytes)
{
    return refused(CALL_ALLOC, "aligned_alloc") ? NULL : counted(__libc_memalign(align, bytes));
}

FRONT void *memalign(size_t align, size_t bytes);
FRONT void *memalign(size_t align, size_t bytes) { return aligned_alloc(align, bytes); }

FRONT int posix_memalign(void **out, size_t align, size_t bytes)
{
    int kept = errno;
    void *memory = aligned_alloc(align, bytes);
    errno = kept;
    if (memory)
        *out = memory;
    return memory ? 0 : ENOMEM;
}

static int64_t pages(size_t bytes)
{
    return (int64_t)((bytes + 4095) / 4096 * 4096);
}

FRONT void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    bool file = fd >= 0 && is_file(fd);
    if (flags & MAP_ANONYMOUS ? refused(CALL_ALLOC, "mmap") : file && fails(CALL_MAP, "mmap", fd, NULL))
        return MAP_FAILED;
    void *memory = REAL(mmap)(at, bytes, protection, flags, fd, offset);
    if (memory != MAP_FAILED && !(flags & MAP_FIXED)) /* else it takes the place of what is counted */
        atomic_fetch_add(&mapped, pages(bytes));
    return memory;
}

FRONT int munmap(void *memory, size_t bytes)
{
    atomic_fetch_sub(&mapped, pages(bytes));
    return REAL(munmap)(memory, bytes);
}

FRONT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *user)
{
    return strikes(CALL_THREAD, "pthread_create", -1, NULL) ? EAGAIN : REAL(pthread_create)(thread, attributes, start, user);
}

/* ---- Opening ---- */

static mode_t mode_of(int flags, va_list args)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(args, int) : 0;
}

/* /proc and /sys tell of the machine; that they may be missing is tested with other roots. */
static bool counts(const char *path)
{
    return strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/", 5) != 0 && strncmp(path, "/dev/", 5) != 0;
}

FRONT int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return counts(path) && fails(CALL_OPEN, "open", -1, path) ? -1 : REAL(open)(path, flags, mode);
}

FRONT int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return open(path, flags, mode);
}

FRONT int openat(int folder, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    return counts(path) && fails(CALL_OPEN, "openat", -1, path) ? -1 : REAL(openat)(folder, path, flags, mode);
}

/* What <fcntl.h> makes of open() with _FORTIFY_SOURCE. */
FRONT int __open_2(const char *path, int flags);
FRONT int __open_2(const char *path, int flags) { return open(path, flags); }
FRONT int __open64_2(const char *path, int flags);
FRONT int __open64_2(const char *path, int flags) { return open(path, flags); }

FRONT int mkostemp(char *name, int flags)
{
    return fails(CALL_OPEN, "mkostemp", -1, name) ? -1 : REAL(mkostemp)(name, flags);
}

FRONT DIR *opendir(const char *path)
{
    return counts(path) && fails(CALL_OPEN, "opendir", -1, path) ? NULL : REAL(opendir)(path);
}

FRONT int close(int fd)
{
    bool failing = is_file(fd) && fails(CALL_CLOSE, "close", fd, NULL);
    int error = errno, result = REAL(close)(fd);
    if (!failing)
        return result;
    errno = error; /* it is closed all the same */
    return -1;
}

/* ---- Reading and writing ---- */

static void end_if_half(void)
{
    if (atomic_load(&plan)->error == FAULT_KILL_HALF)
        kill(getpid(), SIGKILL);
}

FRONT ssize_t read(int fd, void *data, size_t bytes)
{
    return cut(CALL_READ, "read", fd, &bytes) ? -1 : REAL(read)(fd, data, bytes);
}

FRONT ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
    return cut(CALL_READ, "pread", fd, &bytes) ? -1 : REAL(pread)(fd, data, bytes, at);
}

FRONT ssize_t pread64(int fd, void *data, size_t bytes, off64_t at) { return pread(fd, data, bytes, at); }

FRONT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room);
FRONT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room) { return read(fd, data, bytes < room ? bytes : room); }
FRONT ssize_t __pread_chk(int fd, void *data, size_t bytes, off_t at, size_t room);
FRONT ssize_t __pread_chk(int fd, void *data, size_t bytes, off_t at, size_t room)
{
    return pread(fd, data, bytes < room ? bytes : room, at);
}
FRONT ssize_t __pread64_chk(int fd, void *data, size_t bytes, off64_t at, size_t room);
FRONT ssize_t __pread64_chk(int fd, void *data, size_t bytes, off64_t at, size_t room)
{
    return __pread_chk(fd, data, bytes, at, room);
}

FRONT ssize_t write(int fd, const void *data, size_t bytes)
{
    size_t wanted = bytes;
    if (cut(CALL_WRITE, "write", fd, &bytes))
        return -1;
    ssize_t n = REAL(write)(fd, data, bytes);
    if (bytes < wanted)
        end_if_half();
    return n;
}

FRONT ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    size_t wanted = bytes;
    if (cut(CALL_WRITE, "pwrite", fd, &bytes))
        return -1;
    ssize_t n = REAL(pwrite)(fd, data, bytes, at);
    if (bytes < wanted)
        end_if_half();
    return n;
}

FRONT ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) { return pwrite(fd, data, bytes, at); }

/* A short one writes half of the first part. */
FRONT ssize_t writev(int fd, const struct iovec *parts, int n)
{
    size_t first = n > 0 ? parts[0].iov_len : 0, bytes = first;
    if (n > 0 && cut(CALL_WRITE, "writev", fd, &bytes))
        return -1;
    if (bytes == first)
        return REAL(writev)(fd, parts, n);
    ssize_t done = REAL(write)(fd, parts[0].iov_base, bytes);
    end_if_half();
    return done;
}

/* ---- The rest ---- */

FRONT int fsync(int fd) { return is_file(fd) && fails(CALL_SYNC, "fsync", fd, NULL) ? -1 : REAL(fsync)(fd); }
FRONT int fdatasync(int fd) { return is_file(fd) && fails(CALL_SYNC, "fdatasync", fd, NULL) ? -1 : REAL(fdatasync)(fd); }

FRONT int rename(const char *from, const char *to)
{
    return fails(CALL_RENAME, "rename", -1, to) ? -1 : REAL(rename)(from, to);
}

FRONT int ftruncate(int fd, off_t length)
{
    return is_file(fd) && fails(CALL_TRUNCATE, "ftruncate", fd, NULL) ? -1 : REAL(ftruncate)(fd, length);
}

FRONT int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }

FRONT int fstat(int fd, struct stat *st)
{
    return is_file(fd) && fails(CALL_STAT, "fstat", fd, NULL) ? -1 : REAL(fstat)(fd, st);
}

FRONT int fstat64(int fd, struct stat64 *st)
{
    return is_file(fd) && fails(CALL_STAT, "fstat", fd, NULL) ? -1 : REAL(fstat64)(fd, st);
}

FRONT off_t lseek(int fd, off_t at, int whence)
{
    return is_file(fd) && fails(CALL_SEEK, "lseek", fd, NULL) ? -1 : REAL(lseek)(fd, at, whence);
}

FRONT off64_t lseek64(int fd, off64_t at, int whence) { return lseek(fd, at, whence); }

FRONT int unlink(const char *path) { return fails(CALL_UNLINK, "unlink", -1, path) ? -1 : REAL(unlink)(path); }
FRONT int unlinkat(int folder, const char *path, int flags)
{
    return fails(CALL_UNLINK, "unlinkat", -1, path) ? -1 : REAL(unlinkat)(folder, path, flags);
}

/* ---- Streams ---- */

static ssize_t stream_read(void *fd, char *data, size_t bytes) { return read((int)(intptr_t)fd, data, bytes); }
static ssize_t stream_write(void *fd, const char *data, size_t bytes)
{
    ssize_t n = write((int)(intptr_t)fd, data, bytes);
    return n < 0 ? 0 : n; /* as fopencookie() wants it */
}
static int stream_seek(void *fd, off64_t *at, int whence)
{
    off_t now = lseek((int)(intptr_t)fd, *at, whence);
    *at = now;
    return now < 0 ? -1 : 0;
}
static int stream_close(void *fd) { return close((int)(intptr_t)fd); }

static int flags_of(const char *mode)
{
    int both = strchr(mode, '+') ? O_RDWR : 0, end = strchr(mode, 'e') ? O_CLOEXEC : 0;
    if (*mode == 'r')
        return both | end;
    return (both ? both : O_WRONLY) | O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC) | end;
}

FRONT FILE *fopen(const char *path, const char *mode)
{
    static const cookie_io_functions_t calls = {stream_read, stream_write, stream_seek, stream_close};
    if (!atomic_load(&plan) || !counts(path))
        return REAL(fopen)(path, mode);
    int fd = open(path, flags_of(mode), 0666);
    if (fd < 0 || !is_file(fd)) {
        if (fd >= 0)
            REAL(close)(fd);
        return fd < 0 ? NULL : REAL(fopen)(path, mode);
    }
    FILE *stream = fopencookie((void *)(intptr_t)fd, mode, calls);
    if (!stream)
        REAL(close)(fd);
    return stream;
}

FRONT FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

/* ---- The time of day ---- */

static int64_t jumped(void)
{
    mica_fault_plan *p = atomic_load(&plan);
    return p && strikes(CALL_CLOCK, "clock", -1, NULL) ? p->jump_s : 0;
}

FRONT int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = REAL(clock_gettime)(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += jumped();
    return result;
}

FRONT time_t time(time_t *out)
{
    time_t now = REAL(time)(NULL) + jumped();
    if (out)
        *out = now;
    return now;
}

FRONT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    int result = REAL(gettimeofday)(now, zone);
    if (result == 0)
        now->tv_sec += jumped();
    return result;
}
