/* snapshot_util.h - what the tests of snapshots share. */
#ifndef MICA_TESTS_SNAPSHOT_UTIL_H
#define MICA_TESTS_SNAPSHOT_UTIL_H
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model_util.h"

#define SCRIPTED MICA_TEST_DATA "/cases/_common/scripted.gguf"

typedef struct bytes {
    void *data;
    size_t n;
} bytes;

static inline bytes snapshot(const mica_session *s)
{
    bytes b;
    mica_error err;
    if (mica_session_snapshot(s, &b.data, &b.n, &err))
        fail_msg("%s", err.message);
    assert_int_equal(b.n, mica_session_snapshot_bytes(s));
    return b;
}

static inline void restore(mica_session *s, bytes b)
{
    mica_error err;
    if (mica_session_restore_memory(s, b.data, b.n, &err))
        fail_msg("%s", err.message);
}

static inline bool same_bytes(bytes a, bytes b) { return a.n == b.n && memcmp(a.data, b.data, a.n) == 0; }

static inline void sync_tokens(mica_session *s, const int32_t *tokens, size_t n)
{
    mica_error err;
    if (mica_session_sync(s, tokens, n, &err))
        fail_msg("%s", err.message);
}

/* Ids that every test model has. */
static inline void some_tokens(int32_t *tokens, int n)
{
    for (int i = 0; i < n; i++)
        tokens[i] = 3 + (i * 7919 + i * i * 31) % 280;
}

/* The bytes must be refused with this status and these words, and the session must be what it was. */
static inline void check_refused(mica_session *s, bytes b, mica_status status, const char *says)
{
    mica_error err = {.code = MICA_OK};
    bytes before = snapshot(s);
    mica_status got = mica_session_restore_memory(s, b.data, b.n, &err);
    if (got != status || err.code != status || !strstr(err.message, says))
        fail_msg("status %s, expected %s \"%s\": %s", mica_status_name(got), mica_status_name(status), says, err.message);
    bytes after = snapshot(s);
    assert_true(same_bytes(before, after));
    free(before.data);
    free(after.data);
}

/* A folder of the test's own, and a path in it. */
typedef struct folder {
    char dir[128], file[160];
} folder;

static inline void folder_make(folder *f)
{
    snprintf(f->dir, sizeof f->dir, "%s/mica-snapshot-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->file, sizeof f->file, "%s/state", f->dir);
}

/* Number of files in the folder; `remove` deletes them. */
static inline int folder_count(const folder *f, bool remove)
{
    char path[512];
    int count = 0;
    DIR *dir = opendir(f->dir);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        count++;
        snprintf(path, sizeof path, "%s/%s", f->dir, e->d_name);
        if (remove)
            unlink(path);
    }
    closedir(dir);
    return count;
}

static inline void folder_remove(folder *f)
{
    folder_count(f, true);
    assert_int_equal(rmdir(f->dir), 0);
}

#endif
