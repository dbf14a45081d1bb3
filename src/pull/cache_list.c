/* cache_list.c - what is in the folder of models, and taking things away from it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "pull/cache.h"
#include "pull/entry.h"

#define MODELS_MAX ((size_t)100000)

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

int mica_cache_lock(const char *folder, bool alone)
{
    char path[4096];
    int fd = snprintf(path, sizeof path, "%s/blobs/.lock", folder) < (int)sizeof path
                 ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)
                 : -1;
    while (fd >= 0 && flock(fd, alone ? LOCK_EX : LOCK_SH) != 0 && errno == EINTR)
        ;
    return fd;
}

/* ---- List ---- */

static void look_at(const char *folder, mica_cache_model *m)
{
    char path[4096];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/%s", folder, m->name) >= (int)sizeof path)
        return;
    bool there = stat(path, &st) == 0;
    m->bytes = there ? (int64_t)st.st_size : 0;
    if (!there) {
        char target[256];
        ssize_t n = readlink(path, target, sizeof target - 1);
        const char *sum = n > 0 ? (target[n] = '\0', strrchr(target, '-')) : NULL;
        m->state = MICA_CACHE_MISSING;
        if (sum && mica_sha256_good(sum + 1))
            memcpy(m->sha256, sum + 1, sizeof m->sha256);
    } else if (mica_cache_is_blob(path, m->sha256)) {
        m->state = mica_cache_is_stamped(path) ? MICA_CACHE_GOOD : MICA_CACHE_UNCHECKED;
    } else {
        m->state = MICA_CACHE_FILE;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const mica_cache_model *)a)->name, ((const mica_cache_model *)b)->name);
}

static bool add(mica_cache_model **list, size_t *n, const char *name)
{
    if ((*n & (*n - 1)) == 0) { /* full at every power of two */
        mica_cache_model *more = realloc(*list, (*n ? 2 * *n : 1) * sizeof **list);
        if (!more)
            return false;
        *list = more;
    }
    mica_cache_model *m = &(*list)[(*n)++];
    *m = (mica_cache_model){.bytes = 0};
    memcpy(m->name, name, strlen(name) + 1);
    return true;
}

mica_status mica_cache_list(const char *folder, mica_cache_model **list, size_t *n, mica_error *err)
{
    DIR *dir = opendir(folder);
    bool good = true;
    *list = NULL;
    *n = 0;
    if (!dir)
        return errno == ENOENT ? MICA_OK
                               : mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(folder), strerror(errno));
    for (struct dirent *e; good && *n < MODELS_MAX && (e = readdir(dir));)
        if (e->d_name[0] != '.' && ends_with(e->d_name, ".gguf") && strlen(e->d_name) < sizeof((mica_cache_model *)0)->name)
            good = add(list, n, e->d_name);
    closedir(dir);
    if (!good) {
        free(*list);
        *list = NULL;
        *n = 0;
        return mica_fail_nomem(err, sizeof **list, "the list of models");
    }
    for (size_t i = 0; i < *n; i++)
        look_at(folder, &(*list)[i]);
    if (*n > 0)
        qsort(*list, *n, sizeof **list, by_name);
    return MICA_OK;
}

/* ---- Take away ---- */

static void drop_file(int blobs, const char *name, int64_t *freed)
{
    struct stat st;
    if (fstatat(blobs, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && unlinkat(blobs, name, 0) == 0)
        *freed += (int64_t)st.st_size;
}

static bool is_named(const mica_cache_model *list, size_t n, const char *sum)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].sha256, sum) == 0)
            return true;
    return false;
}

/* A download that has no lock is nobody's at the moment. */
static void drop_part(int blobs, const char *name, int64_t *freed)
{
    char from[300];
    int fd = openat(blobs, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && snprintf(from, sizeof from, "%s.from", name) < (int)sizeof from) {
        drop_file(blobs, from, freed);
        drop_file(blobs, name, freed);
    }
    close(fd);
}

static void drop_blob(int blobs, const char *sum, int64_t *freed)
{
    char name[96];
    snprintf(name, sizeof name, "sha256-%s", sum);
    drop_file(blobs, name, freed);
    snprintf(name, sizeof name, "sha256-%s.ok", sum);
    drop_file(blobs, name, freed);
}

static void drop_entry(int blobs, const char *name, const mica_cache_model *list, size_t n, bool parts, int64_t *freed)
{
    const char *sum = strncmp(name, "sha256-", 7) == 0 ? name + 7 : "";
    if (parts && ends_with(name, ".part"))
        drop_part(blobs, name, freed);
    else if (mica_sha256_good(sum) && !is_named(list, n, sum))
        drop_blob(blobs, sum, freed);
}

/* With `parts` the downloads, too. Under the folder's lock, as between a blob and its link there is a moment. */
static mica_status sweep(const char *folder, bool parts, int64_t *freed, mica_error *err)
{
    mica_cache_model *list;
    size_t n;
    char path[4096];
    if (snprintf(path, sizeof path, "%s/blobs", folder) >= (int)sizeof path)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the folder of models is too long");
    mica_status status = mica_cache_list(folder, &list, &n, err);
    DIR *dir = status ? NULL : opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        drop_entry(dirfd(dir), e->d_name, list, n, parts, freed);
    if (dir)
        closedir(dir);
    free(list);
    return status;
}

static mica_status remove_name(const char *folder, const char *name, mica_error *err)
{
    char path[4096];
    struct stat st;
    if (!mica_cache_find(folder, name, path))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "there is no model %s in %s", mica_name_good(name) ? name : "of that name",
                         mica_path_tail(folder));
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%s was not pulled: remove the file itself", mica_path_tail(path));
    return unlink(path) == 0 ? MICA_OK
                             : mica_fail(err, MICA_IO_ERROR, "cannot remove %s: %s", mica_path_tail(path), strerror(errno));
}

mica_status mica_cache_remove(const char *folder, const char *name, int64_t *freed, mica_error *err)
{
    *freed = 0;
    int lock = mica_cache_lock(folder, true);
    mica_status status = remove_name(folder, name, err);
    if (!status)
        status = sweep(folder, false, freed, err);
    if (lock >= 0)
        close(lock);
    return status;
}

mica_status mica_cache_prune(const char *folder, int64_t *freed, mica_error *err)
{
    *freed = 0;
    int lock = mica_cache_lock(folder, true);
    mica_status status = sweep(folder, true, freed, err);
    if (lock >= 0)
        close(lock);
    return status;
}
