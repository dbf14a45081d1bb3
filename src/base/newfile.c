#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"

#define BUFFER_BYTES ((size_t)64 << 10) /* enough that the system call costs less than the copy */
#define MAX_WRITE ((size_t)1 << 30)     /* Linux writes at most 2^31 - 4096 bytes at once, macOS 2^31 - 1 */

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

mica_status mica_newfile_open(const char *path, mica_newfile *file, mica_error *err)
{
    static const char suffix[] = ".tmp-XXXXXX";
    *file = (mica_newfile){.fd = -1};
    mica_status status = resolve(path, &file->path, err);
    if (status)
        return status;
    size_t length = strlen(file->path);
    file->temporary = malloc(length + sizeof suffix);
    file->buffer = malloc(BUFFER_BYTES);
    if (!file->temporary || !file->buffer) {
        free(file->temporary); /* no file of that name is ours */
        file->temporary = NULL;
        return mica_fail_nomem(err, BUFFER_BYTES + length, "writing a file");
    }
    memcpy(file->temporary, file->path, length);
    memcpy(file->temporary + length, suffix, sizeof suffix);
    file->fd = mkostemp(file->temporary, O_CLOEXEC);
    if (file->fd >= 0)
        return MICA_OK;
    int error = errno;
    free(file->temporary);
    file->temporary = NULL;
    return mica_fail(err, MICA_IO_ERROR, "cannot create a file beside %s: %s", mica_path_tail(path), strerror(error));
}

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
static mica_status sync_folder(const mica_newfile *file, mica_error *err)
{
    const char *slash = strrchr(file->path, '/');
    char *folder = slash ? strndup(file->path, slash == file->path ? 1 : (size_t)(slash - file->path)) : strdup(".");
    if (!folder)
        return mica_fail_nomem(err, strlen(file->path) + 1, "a path");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    int error = fd >= 0 && sync_fd(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (error == EIO)
        return mica_fail(err, MICA_IO_ERROR, "%s is written, but its folder could not be brought to the disk: %s",
                         mica_path_tail(file->path), strerror(error));
    return MICA_OK;
}

mica_status mica_newfile_commit(mica_newfile *file, mica_error *err)
{
    mica_status status = flush(file, err);
    if (status)
        return status;
    if (sync_fd(file->fd) != 0)
        return fail_write(file, errno, err);
    int closed = close(file->fd); /* network file systems may report a full disk only here */
    file->fd = -1;
    if ((closed != 0 && errno != EINTR) || rename(file->temporary, file->path) != 0)
        return fail_write(file, errno, err);
    free(file->temporary);
    file->temporary = NULL;
    return sync_folder(file, err);
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
