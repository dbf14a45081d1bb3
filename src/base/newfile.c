#include "base/newfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"

#define BUFFER_BYTES ((size_t)64 << 10) /* enough that the system call costs less than the copy */
#define MAX_WRITE ((size_t)1 << 30)     /* Linux writes at most 2^31 - 4096 bytes at once, macOS 2^31 - 1 */
#define MARK ".tmp-"
#define LETTERS 6 /* after the mark */
#define TRIES 100

static mica_status fail_write(const mica_newfile *file, int error, mica_error *err)
{
    const char *name = mica_path_tail(file->path);
    if (error == ENOSPC || error == EDQUOT)
        return mica_fail(err, MICA_IO_ERROR, "cannot write %s: the disk is full (or the quota); what was there is unchanged",
                         name);
    return mica_fail(err, MICA_IO_ERROR, "cannot write %s: %s; what was there is unchanged", name, strerror(error));
}

/* The file that is to be replaced: a link stays a link, and devices, pipes and folders are not replaced. */
static mica_status resolve(const char *path, char **out, mica_error *err)
{
    struct stat st;
    const char *name = mica_path_tail(path);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        *out = realpath(path, NULL);
        if (!*out)
            return mica_fail(err, MICA_IO_ERROR, "cannot write %s: the link leads nowhere (%s)", name, strerror(errno));
    } else if (!(*out = strdup(path))) {
        return mica_fail_nomem(err, strlen(path) + 1, "a path");
    }
    if (stat(*out, &st) == 0 && !S_ISREG(st.st_mode))
        return mica_fail(err, MICA_IO_ERROR, "cannot write %s: it is %s, not a regular file", name,
                         S_ISDIR(st.st_mode) ? "a directory" : "a device or a pipe");
    return MICA_OK;
}

/* ---- The temporary file ---- */

/* The folder of a path; NULL without memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static bool is_named(const char *name, const char *target)
{
    size_t n = strlen(target), mark = sizeof MARK - 1;
    return strncmp(name, target, n) == 0 && strncmp(name + n, MARK, mark) == 0 && strlen(name + n + mark) == LETTERS;
}

/* Whoever writes a temporary file has its lock, which ends with the process: one without is of a process that was killed. */
static void sweep(const char *path)
{
    const char *slash = strrchr(path, '/'), *target = slash ? slash + 1 : path;
    char *folder = folder_of(path);
    DIR *dir = folder ? opendir(folder) : NULL;
    free(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!is_named(e->d_name, target))
            continue;
        int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(dir), e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Between making and locking it another process may take it for a dead one's: then it is made again. */
static bool is_ours(int fd, const char *name)
{
    struct stat here, named;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK; /* a file system without locks: nobody sweeps there */
    if (fstat(fd, &here) != 0)
        return true; /* nothing says that it is not */
    return stat(name, &named) == 0 ? here.st_ino == named.st_ino && here.st_dev == named.st_dev : errno != ENOENT;
}

/* Not mkstemp(), which always makes it the owner's alone. Returns the descriptor, or -1 with errno. */
static int make_temporary(char *name, mode_t mode)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    uint64_t bits = (uint64_t)mica_now_ns() ^ (uint64_t)getpid() << 20;
    char *end = name + strlen(name);
    for (int i = 0; i < TRIES; i++, bits += 0x9E3779B97F4A7C15u) {
        for (int k = 0; k < LETTERS; k++)
            end[k - LETTERS] = letters[bits >> (5 * k) & 31];
        int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0 && is_ours(fd, name))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* A file of others' to read keeps the permissions that it had. */
static void keep_mode(const mica_newfile *file, mode_t mode)
{
    struct stat st;
    if (mode != MICA_NEWFILE_PRIVATE && stat(file->path, &st) == 0)
        (void)fchmod(file->fd, st.st_mode & 0777);
}

mica_status mica_newfile_open(const char *path, mode_t mode, mica_newfile *file, mica_error *err)
{
    *file = (mica_newfile){.fd = -1};
    mica_status status = resolve(path, &file->path, err);
    if (status)
        return status;
    size_t size = strlen(file->path) + sizeof MARK + LETTERS;
    file->temporary = malloc(size);
    file->buffer = malloc(BUFFER_BYTES);
    if (!file->temporary || !file->buffer) {
        free(file->temporary); /* no file of that name is ours */
        file->temporary = NULL;
        return mica_fail_nomem(err, BUFFER_BYTES + size, "writing a file");
    }
    sweep(file->path);
    snprintf(file->temporary, size, "%s" MARK "%*s", file->path, LETTERS, "");
    file->fd = make_temporary(file->temporary, mode);
    if (file->fd >= 0) {
        keep_mode(file, mode);
        return MICA_OK;
    }
    int error = errno;
    free(file->temporary);
    file->temporary = NULL;
    return mica_fail(err, MICA_IO_ERROR, "cannot create a file beside %s: %s", mica_path_tail(path), strerror(error));
}

/* ---- Writing ---- */

static mica_status write_all(const mica_newfile *file, const uint8_t *data, size_t length, mica_error *err)
{
    while (length > 0) {
        ssize_t n = write(file->fd, data, length < MAX_WRITE ? length : MAX_WRITE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_write(file, n < 0 ? errno : ENOSPC, err);
        data += n;
        length -= (size_t)n;
    }
    return MICA_OK;
}

static mica_status flush(mica_newfile *file, mica_error *err)
{
    mica_status status = write_all(file, file->buffer, file->held, err);
    file->held = 0;
    return status;
}

mica_status mica_newfile_write(mica_newfile *file, const void *data, size_t length, mica_error *err)
{
    if (length > BUFFER_BYTES - file->held) {
        mica_status status = flush(file, err);
        if (status)
            return status;
    }
    if (length >= BUFFER_BYTES)
        return write_all(file, data, length, err);
    if (length > 0)
        memcpy(file->buffer + file->held, data, length);
    file->held += length;
    return MICA_OK;
}

static int sync_fd(int fd)
{
    int result;
    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result;
}

/* Makes the new name last. A folder that may not be read, or a file system that cannot sync folders, is no reason to fail: the
 * file is in place, and only a power cut in the next seconds could bring the old one back. */
static mica_status sync_folder(const mica_newfile *file, const char *folder, mica_error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = fd >= 0 && sync_fd(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (error == EIO)
        return mica_fail(err, MICA_IO_ERROR, "%s is written, but its folder could not be brought to the disk: %s",
                         mica_path_tail(file->path), strerror(error));
    return MICA_OK;
}

/* The disk has it: gives it its name. */
static mica_status commit_in(mica_newfile *file, const char *folder, mica_error *err)
{
    if (sync_fd(file->fd) != 0)
        return fail_write(file, errno, err);
    int keeps_lock = fcntl(file->fd, F_DUPFD_CLOEXEC, 0); /* until the file has its name; -1: nobody may sweep just now */
    int error = close(file->fd) != 0 && errno != EINTR ? errno : 0; /* network file systems may report a full disk only here */
    file->fd = -1;
    if (!error && rename(file->temporary, file->path) != 0)
        error = errno;
    if (keeps_lock >= 0)
        close(keeps_lock);
    if (error)
        return fail_write(file, error, err);
    free(file->temporary);
    file->temporary = NULL;
    return sync_folder(file, folder, err);
}

mica_status mica_newfile_commit(mica_newfile *file, mica_error *err)
{
    mica_status status = flush(file, err);
    if (status)
        return status;
    char *folder = folder_of(file->path);
    status = folder ? commit_in(file, folder, err) : mica_fail_nomem(err, strlen(file->path) + 1, "a path");
    free(folder);
    return status;
}

void mica_newfile_discard(mica_newfile *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    free(file->buffer);
    *file = (mica_newfile){.fd = -1};
}

mica_status mica_newfile_put(const char *path, mode_t mode, const void *data, size_t length, mica_error *err)
{
    mica_newfile file;
    mica_status status = mica_newfile_open(path, mode, &file, err);
    if (!status)
        status = mica_newfile_write(&file, data, length, err);
    if (!status)
        status = mica_newfile_commit(&file, err);
    mica_newfile_discard(&file);
    return status;
}
