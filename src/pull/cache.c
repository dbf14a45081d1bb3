#include "pull/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/newfile.h"
#include "pull/entry.h"

#define BLOCK_BYTES ((size_t)1 << 20)
#define PREFIX      "sha256-"
#define PREFIX_N    (sizeof PREFIX - 1)

/* ---- Paths ---- */

bool mica_cache_blob(const char *folder, const char *sum, char path[4096])
{
    return snprintf(path, 4096, "%s/blobs/" PREFIX "%s", folder, sum) < 4096;
}

mica_status mica_cache_make(const char *folder, mica_error *err)
{
    char blobs[4096];
    if (snprintf(blobs, sizeof blobs, "%s/blobs", folder) >= (int)sizeof blobs)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the folder of models is too long");
    const char *made = mkdir(folder, 0777) != 0 && errno != EEXIST  ? folder
                       : mkdir(blobs, 0777) != 0 && errno != EEXIST ? blobs
                                                                    : NULL;
    return made ? mica_fail(err, MICA_IO_ERROR, "cannot make the folder %s: %s", mica_path_tail(made), strerror(errno))
                : MICA_OK;
}

bool mica_cache_is_blob(const char *path, char sum[MICA_SHA256_TEXT])
{
    char *real = realpath(path, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    bool good = slash && strncmp(slash + 1, PREFIX, PREFIX_N) == 0 && mica_sha256_good(slash + 1 + PREFIX_N);
    if (good)
        memcpy(sum, slash + 1 + PREFIX_N, MICA_SHA256_TEXT);
    free(real);
    return good;
}

bool mica_cache_find(const char *folder, const char *name, char path[4096])
{
    struct stat st;
    for (int i = 0; i < 2 && mica_name_good(name); i++)
        if (snprintf(path, 4096, "%s/%s%s", folder, name, i == 0 ? "" : ".gguf") < 4096 && lstat(path, &st) == 0 &&
            !S_ISDIR(st.st_mode))
            return true;
    return false;
}

/* ---- Checksums ---- */

mica_status mica_cache_hash(const char *path, const mica_pull_options *o, char sum[MICA_SHA256_TEXT], mica_error *err)
{
    mica_sha256 h;
    struct stat st;
    int64_t done = 0;
    mica_status status = MICA_OK;
    uint8_t *block = malloc(BLOCK_BYTES);
    int fd = block ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (!block)
        return mica_fail_nomem(err, BLOCK_BYTES, "reading a file");
    if (fd < 0 || fstat(fd, &st) != 0)
        status = mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(path), strerror(errno));
    mica_sha256_start(&h);
    while (!status) {
        ssize_t n = read(fd, block, BLOCK_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(path), strerror(errno));
        if (n <= 0)
            break;
        mica_sha256_add(&h, block, (size_t)n);
        if (mica_pull_cancelled(o, "checking", done += n, st.st_size))
            status = mica_fail(err, MICA_CANCELLED, "cancelled while the checksum was computed");
    }
    mica_sha256_text(&h, sum);
    if (fd >= 0)
        close(fd);
    free(block);
    return status;
}

/* What a blob's .ok must say. False: there is no such file. */
static bool stamp_text(const char *blob, char out[64])
{
    struct stat st;
    if (stat(blob, &st) != 0)
        return false;
    snprintf(out, 64, "%lld %lld.%09ld\n", (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    return true;
}

void mica_cache_stamp(const char *blob)
{
    char path[4200], text[64];
    if (!stamp_text(blob, text) || snprintf(path, sizeof path, "%s.ok", blob) >= (int)sizeof path)
        return;
    /* a folder that cannot be written costs a hash each time, nothing else */
    (void)mica_newfile_put(path, MICA_NEWFILE_PRIVATE, text, strlen(text), NULL);
}

static bool blob_is_stamped(const char *blob)
{
    char path[4200], text[64], found[64] = "";
    if (!stamp_text(blob, text) || snprintf(path, sizeof path, "%s.ok", blob) >= (int)sizeof path)
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, found, sizeof found - 1) : 0;
    if (fd >= 0)
        close(fd);
    return n > 0 && strcmp(found, text) == 0;
}

/* A blob's real path; "" if the path leads to none. */
static void real_blob(const char *path, char blob[4096], char sum[MICA_SHA256_TEXT])
{
    char *real = mica_cache_is_blob(path, sum) ? realpath(path, NULL) : NULL;
    if (!real || snprintf(blob, 4096, "%s", real) >= 4096)
        blob[0] = '\0';
    free(real);
}

bool mica_cache_is_stamped(const char *path)
{
    char blob[4096], sum[MICA_SHA256_TEXT];
    real_blob(path, blob, sum);
    return *blob && blob_is_stamped(blob);
}

mica_status mica_cache_verify(const char *path, const mica_pull_options *o, mica_error *err)
{
    char blob[4096], sum[MICA_SHA256_TEXT], found[MICA_SHA256_TEXT];
    real_blob(path, blob, sum);
    if (!*blob)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%s was not pulled: nothing says what its checksum should be",
                         mica_path_tail(path));
    mica_status status = mica_cache_hash(blob, o, found, err);
    if (!status && strcmp(found, sum) != 0)
        return mica_fail(err, MICA_BAD_FILE, "%s is damaged: its SHA-256 is %.16s..., and %.16s... was pulled; pull it again",
                         mica_path_tail(path), found, sum);
    if (!status)
        mica_cache_stamp(blob);
    return status;
}

mica_status mica_cache_check(const char *path, const mica_pull_options *o, mica_error *err)
{
    char blob[4096], sum[MICA_SHA256_TEXT];
    real_blob(path, blob, sum);
    return !*blob || blob_is_stamped(blob) ? MICA_OK : mica_cache_verify(path, o, err);
}

/* ---- Links ---- */

/* NAME.gguf.tmp-PID: of a pull that was killed before it gave the link its name. */
static void drop_dead_links(const char *folder, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    size_t n = strlen(name);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *end;
        if (strncmp(e->d_name, name, n) != 0 || strncmp(e->d_name + n, ".tmp-", 5) != 0)
            continue;
        long pid = strtol(e->d_name + n + 5, &end, 10);
        if (*end == '\0' && pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
            unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

mica_status mica_cache_link(const char *folder, const char *name, const char *sum, char path[4096], mica_error *err)
{
    char target[128], temporary[4200];
    struct stat st;
    size_t n = strlen(name);
    bool ends = n > 5 && strcmp(name + n - 5, ".gguf") == 0;
    snprintf(target, sizeof target, "blobs/" PREFIX "%s", sum);
    if (snprintf(path, 4096, "%s/%s%s", folder, name, ends ? "" : ".gguf") >= 4096)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the folder of models is too long");
    if (lstat(path, &st) == 0 && !S_ISLNK(st.st_mode)) { /* fetched by other means: it stays if it is the same */
        char found[MICA_SHA256_TEXT];
        mica_pull_options quiet = mica_pull_options_default();
        if (S_ISREG(st.st_mode) && mica_cache_hash(path, &quiet, found, NULL) == MICA_OK && strcmp(found, sum) == 0)
            return MICA_OK;
        return mica_fail(err, MICA_IO_ERROR, "%s is there and was not pulled: move it away, or give another name",
                         mica_path_tail(path));
    }
    snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    drop_dead_links(folder, path);
    unlink(temporary);
    if (symlink(target, temporary) != 0 || rename(temporary, path) != 0) {
        int reason = errno;
        unlink(temporary);
        return mica_fail(err, MICA_IO_ERROR, "cannot make the link %s: %s", mica_path_tail(path), strerror(reason));
    }
    return MICA_OK;
}
