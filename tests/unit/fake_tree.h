/* fake_tree.h - makes folders that look like /proc and /sys, for tests of src/device. Each fails the test on error. */
#ifndef MICA_TESTS_FAKE_TREE_H
#define MICA_TESTS_FAKE_TREE_H
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fake_tree {
    char root[256];
} fake_tree;

static inline fake_tree tree_new(void)
{
    fake_tree t;
    const char *tmp = getenv("TMPDIR");
    snprintf(t.root, sizeof t.root, "%.200s/mica-tree-XXXXXX", tmp && *tmp ? tmp : P_tmpdir);
    if (!mkdtemp(t.root))
        fail_msg("cannot make %s: %s", t.root, strerror(errno));
    return t;
}

/** Makes the folders above root/path and gives the full path. */
static inline void tree_parents(const fake_tree *t, const char *path, char *full, size_t capacity)
{
    int n = snprintf(full, capacity, "%s/%s", t->root, path);
    assert_true(n > 0 && (size_t)n < capacity);
    for (char *p = full + strlen(t->root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        if (mkdir(full, 0755) != 0 && errno != EEXIST)
            fail_msg("cannot make %s: %s", full, strerror(errno));
        *p = '/';
    }
}

static inline void tree_bytes(const fake_tree *t, const char *path, const void *data, size_t length)
{
    char full[4096];
    tree_parents(t, path, full, sizeof full);
    FILE *f = fopen(full, "wb");
    if (!f)
        fail_msg("cannot write %s: %s", full, strerror(errno));
    assert_int_equal(fwrite(data, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

/** One line, as the kernel writes it. */
static inline void tree_line(const fake_tree *t, const char *path, const char *text)
{
    char line[8192];
    int n = snprintf(line, sizeof line, "%s\n", text);
    assert_true(n > 0 && (size_t)n < sizeof line);
    tree_bytes(t, path, line, (size_t)n);
}

/** A file of one CPU: sys/devices/system/cpu/cpuN/name. */
static inline void tree_cpu(const fake_tree *t, int cpu, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/%s", cpu, name);
    tree_line(t, path, text);
}

/** n equal CPUs that the process may all use. */
static inline void tree_flat(const fake_tree *t, int n)
{
    char list[64];
    snprintf(list, sizeof list, n > 1 ? "0-%d" : "%d", n - 1);
    tree_line(t, "sys/devices/system/cpu/online", list);
    char status[128];
    snprintf(status, sizeof status, "Name:\tmica\nCpus_allowed_list:\t%s", list);
    tree_line(t, "proc/self/status", status);
}

static inline void tree_remove(const fake_tree *t, const char *path)
{
    char full[4096];
    tree_parents(t, path, full, sizeof full);
    assert_int_equal(remove(full), 0);
}

static inline int tree_remove_entry(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

static inline void tree_free(fake_tree *t)
{
    assert_int_equal(nftw(t->root, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
