#include "device/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "device/pagecache.h"
#include "device/sysfile.h"
#include "mica/mica_device.h"

enum { PIECE = 1 << 20, LEAST = 4 * PIECE, ALIGN = 4096 };

/** Where the block device of a file is described, and whether it turns. Partitions have that one folder up. */
static void describe_disk(dev_t device, mica_storage *out)
{
    char folder[64], target[256];
    int64_t rotational;
    snprintf(folder, sizeof folder, "/sys/dev/block/%u:%u", major(device), minor(device));
    ssize_t n = readlink(folder, target, sizeof target - 1);
    out->rotational = MICA_UNKNOWN;
    if (n <= 0)
        return;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(out->disk, sizeof out->disk, "%.31s", slash ? slash + 1 : target);
    if (mica_sysfile_int_in(NULL, folder, "queue/rotational", &rotational) ||
        mica_sysfile_int_in(NULL, folder, "../queue/rotational", &rotational))
        out->rotational = rotational ? MICA_YES : MICA_NO;
}

/** Opens past the page cache; where the file system cannot, drops the file's pages. */
static mica_status open_cold(const char *path, int *fd, mica_storage *out, mica_error *err)
{
    mica_status status = MICA_OK;
    out->still_cached = NAN;
    snprintf(out->method, sizeof out->method, "O_DIRECT");
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (*fd < 0 && errno == EINVAL) {
        snprintf(out->method, sizeof out->method, "fadvise");
        status = mica_pagecache_drop(path, &out->still_cached, err);
        *fd = status ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    }
    return status || *fd >= 0 ? status
                              : mica_fail(err, MICA_IO_ERROR, "cannot open %s: %s", mica_path_tail(path), strerror(errno));
}

static mica_status read_pieces(int fd, const char *path, int64_t size, double seconds, uint8_t *piece, mica_storage *out,
                               mica_error *err)
{
    int64_t start_ns = mica_now_ns(), whole = size & ~(int64_t)(PIECE - 1); /* O_DIRECT wants whole blocks */
    for (out->seconds = 0; out->bytes < whole && out->seconds < seconds;) {
        ssize_t n = pread(fd, piece, PIECE, (off_t)out->bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(path),
                             n < 0 ? strerror(errno) : "it became shorter");
        out->bytes += n;
        out->seconds = (double)(mica_now_ns() - start_ns) / 1e9;
    }
    out->bytes_per_s = out->seconds > 0 ? (double)out->bytes / out->seconds : NAN;
    return MICA_OK;
}

mica_status mica_storage_read(const char *path, double seconds, mica_storage *out, mica_error *err)
{
    struct stat info;
    *out = (mica_storage){.bytes_per_s = NAN};
    if (stat(path, &info) != 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot look at %s: %s", mica_path_tail(path), strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size < LEAST)
        return mica_fail(err, MICA_UNSUPPORTED, "%s is no file of at least %d MiB, which it takes to measure its disk",
                         mica_path_tail(path), LEAST >> 20);
    describe_disk(info.st_dev, out);
    int fd;
    mica_status status = open_cold(path, &fd, out, err);
    if (status)
        return status;
    uint8_t *piece = mica_new_aligned(ALIGN, PIECE);
    if (!piece)
        status = mica_fail_nomem(err, PIECE, "reading a file");
    else if (!isnan(out->still_cached) && out->still_cached > 0.05)
        status = mica_fail(err, MICA_UNSUPPORTED,
                           "%.0f %% of %s stay in memory (a process maps it): the disk would not be what is measured",
                           100.0 * out->still_cached, mica_path_tail(path));
    else
        status = read_pieces(fd, path, info.st_size, seconds, piece, out, err);
    close(fd);
    free(piece);
    return status;
}
