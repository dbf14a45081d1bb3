/* loads.c - remembers loads that died: a note, a small file, for each load under way. Its name tells the model and context (a
 * hash) and the process; a note whose process is gone is of a load that died. So nothing is ever changed in place, and
 * processes need no lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/xxh64.h"
#include "device/budget.h"
#include "device/sysfile.h"
#include "mica/mica_memory.h"

#define MAX_PATH   4096
#define HASH_CHARS 16

struct mica_load {
    char folder[MAX_PATH], note[MAX_PATH], hash[HASH_CHARS + 1];
};

/* ---- Processes ---- */

/* Since the machine's start, in the kernel's ticks; 0 if it does not tell. Numbers of processes come again, with another start.
 */
static uint64_t start_of(int64_t pid)
{
    char path[64], text[2048];
    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    const char *p = mica_sysfile_read(NULL, path, text, sizeof text) ? strrchr(text, ')') : NULL; /* a name may have blanks */
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

static bool is_alive(int64_t pid, uint64_t start)
{
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return false;
    uint64_t now = start_of(pid);
    return now == 0 || start == 0 || now == start;
}

/* ---- Notes ---- */

/* The file itself and not its name: another one under the same name is another load. */
static bool hash_of(const char *path, int32_t n_ctx, char hash[HASH_CHARS + 1], int64_t *bytes)
{
    struct stat st;
    char text[256];
    if (stat(path, &st) != 0)
        return false;
    int n =
        snprintf(text, sizeof text, "%llu %llu %lld %lld.%09ld %" PRId32, (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino, (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, n_ctx);
    snprintf(hash, HASH_CHARS + 1, "%016" PRIx64, mica_xxh64_of(text, (size_t)n));
    *bytes = st.st_size;
    return true;
}

/* "HASH-PID-START": whether it is of this load and of a process that is gone. */
static bool is_death(const mica_load *l, const char *name)
{
    char *end;
    if (strncmp(name, l->hash, HASH_CHARS) != 0 || name[HASH_CHARS] != '-')
        return false;
    int64_t pid = strtoll(name + HASH_CHARS + 1, &end, 10);
    return *end == '-' && pid > 0 && pid <= INT32_MAX && !is_alive(pid, strtoull(end + 1, NULL, 10));
}

/* Counts deaths, or takes their notes away. */
static int deaths(const mica_load *l, bool forget)
{
    int n = 0;
    DIR *folder = opendir(l->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!is_death(l, entry->d_name))
            continue;
        n++;
        if (forget)
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder)
        closedir(folder);
    return n;
}

static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700); /* the last one decides */
        *slash = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* A process that dies leaves a file behind that is in the system's cache. Where the model is large enough to take the whole
 * machine down the note must be on the disk, which may take milliseconds. */
static bool may_take_all(int64_t bytes)
{
    mica_memory_bounds b;
    return mica_memory_bounds_read(NULL, 0, 0, 0, &b, NULL) || b.usable < 0 || bytes >= b.usable / 4;
}

static mica_status write_note(const mica_load *l, const char *model_path, bool durable, mica_error *err)
{
    int fd = open(l->note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return mica_fail(err, MICA_IO_ERROR, "cannot note the load in %s: %s", mica_path_tail(l->note), strerror(errno));
    size_t length = strlen(model_path);
    bool good = write(fd, model_path, length) == (ssize_t)length && (!durable || fsync(fd) == 0);
    int reason = errno;
    close(fd);
    int folder = good && durable ? open(l->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder >= 0) {
        (void)fsync(folder); /* some file systems cannot, and keep the name all the same */
        close(folder);
    }
    if (!good)
        unlink(l->note);
    return good ? MICA_OK
                : mica_fail(err, MICA_IO_ERROR, "cannot note the load in %s: %s", mica_path_tail(l->note), strerror(reason));
}

static mica_status begin(mica_load *l, const char *folder, const char *model_path, int64_t bytes, bool force, mica_error *err)
{
    int64_t pid = getpid();
    int n = snprintf(l->folder, sizeof l->folder, "%s", folder);
    int m = snprintf(l->note, sizeof l->note, "%s/%s-%" PRId64 "-%" PRIu64, folder, l->hash, pid, start_of(pid));
    if (n < 1 || (size_t)n >= sizeof l->folder || m < 0 || (size_t)m >= sizeof l->note)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the folder for notes of loads has a path of %d bytes, which is not between 1 and %d", n,
                         MAX_PATH - 64);
    if (!make_folders(l->folder))
        return mica_fail(err, MICA_IO_ERROR, "cannot make the folder %s: %s", mica_path_tail(l->folder), strerror(errno));
    int died = deaths(l, false);
    if (died >= MICA_LOAD_DEATHS && !force)
        return mica_fail(err, MICA_OVER_BUDGET,
                         "the last %d loads of %s with this context were killed before their first token, probably for lack of "
                         "memory; use a "
                         "smaller context or model, or force it (--force-load)",
                         died, mica_path_tail(model_path));
    return write_note(l, model_path, may_take_all(bytes), err);
}

/* ---- Interface ---- */

mica_status mica_load_begin(const char *folder, const char *model_path, int32_t n_ctx, bool force, mica_load **out,
                            mica_error *err)
{
    int64_t bytes;
    *out = NULL;
    mica_load *l = mica_new_array(1, sizeof *l);
    if (!l)
        return mica_fail_nomem(err, sizeof *l, "the note of the load");
    mica_status status = hash_of(model_path, n_ctx, l->hash, &bytes)
                             ? begin(l, folder, model_path, bytes, force, err)
                             : mica_fail(err, MICA_IO_ERROR, "cannot read %s: %s", mica_path_tail(model_path), strerror(errno));
    if (status)
        free(l);
    else
        *out = l;
    return status;
}

const char *mica_load_note(const mica_load *l)
{
    return l->note;
}

void mica_load_end(mica_load *l, bool good)
{
    if (!l)
        return;
    unlink(l->note);
    if (good)
        deaths(l, true);
    free(l);
}
