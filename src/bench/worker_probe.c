#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/map.h"
#include "bench/worker.h"
#include "device/memory.h"

enum { MAX_KNOWN = 64 };

/* A file that has not changed since is not read again. */
typedef struct known {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
    char sha256[65];
} known;

struct mica_worker_probe {
    known files[MAX_KNOWN]; /* the oldest is overwritten */
    size_t n;
};

mica_worker_probe *mica_worker_probe_new(void)
{
    return calloc(1, sizeof(mica_worker_probe));
}

void mica_worker_probe_free(mica_worker_probe *probe)
{
    free(probe);
}

static bool same_file(const known *k, const struct stat *st)
{
    return k->device == st->st_dev && k->inode == st->st_ino && k->size == st->st_size &&
           k->changed.tv_sec == st->st_mtim.tv_sec && k->changed.tv_nsec == st->st_mtim.tv_nsec;
}

static mica_status hash_of(mica_worker_probe *probe, const mica_worker_options *o, const char *path, char out[65],
                           mica_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return mica_fail(err, MICA_IO_ERROR, "%s is not there", mica_path_tail(path));
    for (size_t i = 0; S_ISREG(st.st_mode) && i < probe->n && i < MAX_KNOWN; i++)
        if (same_file(&probe->files[i], &st)) {
            memcpy(out, probe->files[i].sha256, 65);
            return MICA_OK;
        }
    mica_status status =
        mica_campaign_model_sha256(path, o->adapter_options.stop, o->adapter_options.user, out, err);
    if (status || !S_ISREG(st.st_mode))
        return status;
    known *k = &probe->files[probe->n++ % MAX_KNOWN];
    *k = (known){.device = st.st_dev, .inode = st.st_ino, .size = st.st_size, .changed = st.st_mtim};
    memcpy(k->sha256, out, 65);
    return MICA_OK;
}

/* MICA_OK and *found, or MICA_CANCELLED. A file that cannot be read is not the one. */
static mica_status try_file(mica_worker_probe *probe, const mica_worker_options *o, const char *path, const char *sha256,
                            char out[4096], bool *found, mica_error *err)
{
    char hash[65];
    mica_status status = hash_of(probe, o, path, hash, err);
    if (status == MICA_CANCELLED)
        return status;
    if (!status && strcmp(hash, sha256) == 0 && strlen(path) < 4096) {
        snprintf(out, 4096, "%s", path);
        *found = true;
    }
    return MICA_OK;
}

static bool is_model(const char *name)
{
    size_t n = strlen(name);
    return name[0] != '.' && n > 5 && strcmp(name + n - 5, ".gguf") == 0;
}

static mica_status try_folder(mica_worker_probe *probe, const mica_worker_options *o, const char *sha256, char out[4096],
                              bool *found, mica_error *err)
{
    char path[4096];
    struct dirent *entry;
    mica_status status = MICA_OK;
    DIR *dir = opendir(o->models);
    while (dir && !status && !*found && (entry = readdir(dir)))
        if (is_model(entry->d_name) && snprintf(path, sizeof path, "%s/%s", o->models, entry->d_name) < (int)sizeof path)
            status = try_file(probe, o, path, sha256, out, found, err);
    if (dir)
        closedir(dir);
    return status;
}

mica_status mica_worker_model_find(mica_worker_probe *probe, const mica_worker_options *o, const char *file, const char *sha256,
                                   char out[4096], mica_error *err)
{
    char path[4096];
    bool found = false;
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file; /* another machine's folders mean nothing here */
    mica_status status = MICA_OK;
    if (o->model)
        status = try_file(probe, o, o->model, sha256, out, &found, err);
    if (!status && !found && o->models && *name && *name != '.' &&
        snprintf(path, sizeof path, "%s/%s", o->models, name) < (int)sizeof path)
        status = try_file(probe, o, path, sha256, out, &found, err);
    if (!status && !found && o->models)
        status = try_folder(probe, o, sha256, out, &found, err);
    return status || found ? status
                           : mica_fail(err, MICA_UNSUPPORTED, "the model %.100s with SHA-256 %.16s is not here", name, sha256);
}

mica_status mica_worker_memory_check(const mica_worker_options *o, const char *model, mica_error *err)
{
    struct stat st;
    int64_t free_bytes;
    char reason[MICA_MEMORY_REASON];
    if (stat(model, &st) != 0 || !S_ISREG(st.st_mode))
        return MICA_OK; /* a folder: what of it is loaded, the runtime alone knows */
    mica_status status = mica_memory_available(o->adapter_options.sysroot, &free_bytes, reason, err);
    if (!status && st.st_size > free_bytes)
        status = mica_fail(err, MICA_OUT_OF_MEMORY, "the model has %lld bytes, and %lld are free (%s)", (long long)st.st_size,
                           (long long)free_bytes, reason);
    return status;
}
