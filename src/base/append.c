#include "base/append.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/map.h"

/* In one call where the system takes it whole, as it does but for full disks and signals. Returns 0, or an errno. */
static int write_parts(int fd, struct iovec part[3])
{
    for (int i = 0; i < 3;) {
        ssize_t n = writev(fd, part + i, 3 - i);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        for (; i < 3 && (size_t)n >= part[i].iov_len; i++)
            n -= (ssize_t)part[i].iov_len;
        if (i < 3) {
            part[i].iov_base = (char *)part[i].iov_base + n;
            part[i].iov_len -= (size_t)n;
        }
    }
    return 0;
}

/* Does the file end in the middle of a line? One that cannot be read is not asked. */
static bool is_torn(int fd, off_t size)
{
    char last = '\n';
    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

static void lock_file(int fd, int how)
{
    while (flock(fd, how) != 0 && errno == EINTR)
        ;
}

int mica_append_line_fd(int fd, const char *line, size_t length)
{
    struct stat st;
    static const char end = '\n';
    struct iovec parts[3] = {{(void *)(uintptr_t)&end, 0}, {(void *)(uintptr_t)line, length}, {(void *)(uintptr_t)&end, 1}};
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    if (!regular)
        return write_parts(fd, parts);
    lock_file(fd, LOCK_EX);
    int error = fstat(fd, &st) == 0 ? 0 : errno;
    parts[0].iov_len = !error && is_torn(fd, st.st_size);
    if (!error)
        error = write_parts(fd, parts);
    if (error)
        (void)!ftruncate(fd, st.st_size); /* invariant 2 */
    lock_file(fd, LOCK_UN);
    return error;
}

mica_status mica_append_line(const char *path, const char *what, const char *line, size_t length, mica_error *err)
{
    int flags = O_APPEND | O_CREAT | O_CLOEXEC, fd = open(path, O_RDWR | flags, 0600);
    if (fd < 0 && (errno == EACCES || errno == ENXIO || errno == EINVAL)) /* one that may only be written */
        fd = open(path, O_WRONLY | flags, 0600);
    if (fd < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot open %s %s: %s", what, mica_path_tail(path), strerror(errno));
    int error = mica_append_line_fd(fd, line, length);
    if (close(fd) != 0 && !error && errno != EINTR)
        error = errno;
    if (error == ENOSPC || error == EDQUOT)
        return mica_fail(err, MICA_IO_ERROR, "cannot write to %s %s: the disk is full (or the quota)", what,
                         mica_path_tail(path));
    if (error)
        return mica_fail(err, MICA_IO_ERROR, "cannot write to %s %s: %s", what, mica_path_tail(path), strerror(error));
    return MICA_OK;
}
