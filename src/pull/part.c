#include "pull/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "base/newfile.h"

#define BLOCK_BYTES ((size_t)1 << 20)
#define SPARE_BYTES ((int64_t)16 << 20) /* left free on the disk: the small files beside it, and everybody else's */
#define WAIT_MS     100

static mica_status fail_part(const mica_part *part, const char *what, int error, mica_error *err)
{
    return mica_fail(err, MICA_IO_ERROR, "cannot %s %s: %s", what, mica_path_tail(part->path), strerror(error));
}

/* ---- Lock ---- */

static mica_status wait_for_lock(const mica_part *part, const mica_pull_options *o, mica_error *err)
{
    bool told = false;
    while (flock(part->fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail_part(part, "lock", errno, err);
        if (!told && o->on_note)
            o->on_note(o->user, "waiting for another mica pull that fetches the same file");
        told = true;
        if (mica_pull_cancelled(o, "waiting", 0, -1))
            return mica_fail(err, MICA_CANCELLED, "cancelled while another mica pull fetched the same file");
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    }
    return MICA_OK;
}

/* Whoever had the lock before may have renamed or removed the file that we waited for: then there is another, or none, of that
 * name. */
static mica_status open_locked(mica_part *part, const mica_pull_options *o, mica_error *err)
{
    struct stat here, named;
    for (;;) {
        part->fd = open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (part->fd < 0)
            return fail_part(part, "open", errno, err);
        mica_status status = wait_for_lock(part, o, err);
        if (status)
            return status;
        if (fstat(part->fd, &here) != 0 || !S_ISREG(here.st_mode))
            return mica_fail(err, MICA_IO_ERROR, "%s is not a regular file", mica_path_tail(part->path));
        if (stat(part->path, &named) == 0 && named.st_ino == here.st_ino && named.st_dev == here.st_dev)
            return MICA_OK;
        close(part->fd);
    }
}

/* ---- Hashes ---- */

static void start_hashes(mica_part *part)
{
    part->size = 0;
    mica_sha256_start(&part->whole);
    mica_sha256_start(&part->chunk);
    part->whole_before = part->whole;
}

/* Bytes up to the end of the current chunk; INT64_MAX if chunks have no hashes, or this is beyond the last. */
static int64_t left_of_chunk(const mica_part *part)
{
    const mica_pull_entry *e = part->entry;
    if (e->n_chunks == 0 || part->size >= e->bytes)
        return INT64_MAX;
    int64_t end = (part->size / e->chunk_bytes + 1) * e->chunk_bytes;
    return (end < e->bytes ? end : e->bytes) - part->size;
}

/* Takes bytes that are in the file, none beyond the current chunk. False: they end a chunk, and it is wrong. */
static bool take(mica_part *part, const void *data, size_t length)
{
    char sum[MICA_SHA256_TEXT];
    bool ends = (int64_t)length == left_of_chunk(part);
    mica_sha256_add(&part->whole, data, length);
    if (part->entry->n_chunks > 0)
        mica_sha256_add(&part->chunk, data, length);
    part->size += (int64_t)length;
    if (!ends)
        return true;
    mica_sha256_text(&part->chunk, sum);
    mica_sha256_start(&part->chunk);
    if (strcmp(sum, part->entry->chunk[(part->size - 1) / part->entry->chunk_bytes]) != 0)
        return false;
    part->whole_before = part->whole;
    return true;
}

/* Back to the start of the chunk that has just ended. */
static mica_status cut_chunk(mica_part *part, mica_error *err)
{
    int64_t number = (part->size - 1) / part->entry->chunk_bytes;
    part->size = number * part->entry->chunk_bytes;
    part->whole = part->whole_before;
    if (ftruncate(part->fd, part->size) != 0 || lseek(part->fd, part->size, SEEK_SET) < 0)
        return fail_part(part, "shorten", errno, err);
    return mica_fail_at(err, MICA_BAD_FILE, part->size, "chunk %lld of the file has the wrong hash", (long long)number + 1);
}

/* What an earlier pull left. A wrong chunk is no failure: the file ends before it then. */
static mica_status hash_block(mica_part *part, const uint8_t *data, size_t length, bool *cut, mica_error *err)
{
    for (size_t at = 0; at < length && !*cut;) {
        int64_t left = left_of_chunk(part);
        size_t n = (int64_t)(length - at) < left ? length - at : (size_t)left;
        if (!take(part, data + at, n)) {
            *cut = true;
            if (cut_chunk(part, err) == MICA_IO_ERROR)
                return MICA_IO_ERROR;
        }
        at += n;
    }
    return MICA_OK;
}

static mica_status hash_rest(mica_part *part, const mica_pull_options *o, mica_error *err)
{
    struct stat st;
    bool cut = false;
    mica_status status = fstat(part->fd, &st) == 0 ? MICA_OK : fail_part(part, "look at", errno, err);
    uint8_t *block = malloc(BLOCK_BYTES);
    if (!block)
        return mica_fail_nomem(err, BLOCK_BYTES, "reading a file");
    while (!status && !cut) {
        ssize_t n = read(part->fd, block, BLOCK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            status = n < 0 ? fail_part(part, "read", errno, err) : MICA_OK;
            break;
        }
        status = hash_block(part, block, (size_t)n, &cut, err);
        if (!status && mica_pull_cancelled(o, "checking", part->size, st.st_size))
            status = mica_fail(err, MICA_CANCELLED, "cancelled while the part of the file that is here was read");
    }
    free(block);
    return status;
}

void mica_part_sum(const mica_part *part, char out[MICA_SHA256_TEXT])
{
    mica_sha256 copy = part->whole;
    mica_sha256_text(&copy, out);
}

bool mica_part_is_whole(const mica_part *part)
{
    char sum[MICA_SHA256_TEXT];
    if (!*part->entry->sha256 || (part->entry->bytes >= 0 && part->size != part->entry->bytes))
        return false;
    mica_part_sum(part, sum);
    return strcmp(sum, part->entry->sha256) == 0;
}

/* ---- Origin ---- */

/* Two lines. A file that is missing or cut says nothing, and then only a checksum lets the part be continued. */
static void read_origin(mica_part *part)
{
    char text[sizeof part->url + sizeof part->validator];
    int fd = open(part->from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *second = strchr(text, '\n');
    char *end = second ? strchr(second + 1, '\n') : NULL;
    if (!end || end[1] || strlen(text) != (size_t)n)
        return;
    *second++ = *end = '\0';
    if (strlen(text) < sizeof part->url && strlen(second) < sizeof part->validator) {
        memcpy(part->url, text, strlen(text) + 1);
        memcpy(part->validator, second, strlen(second) + 1);
    }
}

mica_status mica_part_origin(mica_part *part, const char *url, const char *validator, mica_error *err)
{
    char text[sizeof part->url + sizeof part->validator + 3];
    snprintf(part->url, sizeof part->url, "%s", url);
    snprintf(part->validator, sizeof part->validator, "%s", validator);
    int n = snprintf(text, sizeof text, "%s\n%s\n", part->url, part->validator);
    return mica_newfile_put(part->from, MICA_NEWFILE_PRIVATE, text, (size_t)n, err);
}

/* ---- Life ---- */

static void release(mica_part *part)
{
    if (part->fd >= 0)
        close(part->fd);
    free(part->path);
    free(part->from);
    *part = (mica_part){.fd = -1};
}

mica_status mica_part_open(const char *target, const mica_pull_entry *entry, const mica_pull_options *o, mica_part *part,
                           mica_error *err)
{
    *part = (mica_part){.fd = -1, .entry = entry};
    if (asprintf(&part->path, "%s.part", target) < 0)
        part->path = NULL;
    if (asprintf(&part->from, "%s.part.from", target) < 0)
        part->from = NULL;
    if (!part->path || !part->from) {
        release(part);
        return mica_fail_nomem(err, strlen(target), "a path");
    }
    start_hashes(part);
    mica_status status = open_locked(part, o, err);
    if (!status)
        status = hash_rest(part, o, err);
    if (!status)
        read_origin(part);
    if (status)
        release(part);
    return status;
}

mica_status mica_part_restart(mica_part *part, mica_error *err)
{
    start_hashes(part);
    part->url[0] = part->validator[0] = '\0';
    return ftruncate(part->fd, 0) == 0 && lseek(part->fd, 0, SEEK_SET) == 0 ? MICA_OK : fail_part(part, "empty", errno, err);
}

static mica_status write_all(mica_part *part, const uint8_t *data, size_t length, mica_error *err)
{
    while (length > 0) {
        ssize_t n = write(part->fd, data, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT))
            return mica_fail(err, MICA_IO_ERROR,
                             "the disk is full (or the quota); what has come is kept: make room and pull again");
        if (n < 0)
            return fail_part(part, "write", errno, err);
        data += n;
        length -= (size_t)n;
    }
    return MICA_OK;
}

mica_status mica_part_append(mica_part *part, const void *data, size_t length, mica_error *err)
{
    const uint8_t *p = data;
    while (length > 0) {
        int64_t left = left_of_chunk(part);
        size_t n = (int64_t)length < left ? length : (size_t)left;
        mica_status status = write_all(part, p, n, err);
        if (status) { /* a piece of it may be in the file: invariant 2 */
            (void)!ftruncate(part->fd, part->size);
            (void)lseek(part->fd, part->size, SEEK_SET);
            return status;
        }
        if (!take(part, p, n))
            return cut_chunk(part, err);
        p += n;
        length -= n;
    }
    return MICA_OK;
}

mica_status mica_part_check_space(const mica_part *part, int64_t bytes, mica_error *err)
{
    struct statvfs fs;
    if (fstatvfs(part->fd, &fs) != 0)
        return MICA_OK; /* the file system does not tell; a full disk is found when it is full */
    double need = (double)bytes + (double)SPARE_BYTES, there = (double)fs.f_bavail * (double)fs.f_frsize;
    if (need <= there)
        return MICA_OK;
    return mica_fail(err, MICA_IO_ERROR, "not enough space for %s: %.0f MB are needed and %.0f MB are free",
                     mica_path_tail(part->path), need / 1e6, there / 1e6);
}

/* A file system that cannot sync folders is no reason to fail: the file is in place (as base/newfile.c has it). */
static void sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

mica_status mica_part_commit(mica_part *part, const char *target, mica_error *err)
{
    struct stat st;
    if (stat(target, &st) == 0 && !S_ISREG(st.st_mode))
        return mica_fail(err, MICA_IO_ERROR, "%s is there and is not a regular file", mica_path_tail(target));
    if (fsync(part->fd) != 0)
        return fail_part(part, "bring to the disk", errno, err);
    if (rename(part->path, target) != 0)
        return fail_part(part, "rename", errno, err);
    unlink(part->from);
    sync_folder_of(target);
    release(part);
    return MICA_OK;
}

void mica_part_close(mica_part *part)
{
    if (part->fd >= 0 && part->size == 0) { /* under the lock, and in this order: a part without its origin is known for one */
        unlink(part->from);
        unlink(part->path);
    }
    release(part);
}
