/* Files that are replaced in one step: content, permissions, links, what is refused, full disks and killed writers. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/newfile.h"
#include "snapshot_util.h"

static uint8_t pattern(size_t i) { return (uint8_t)((i * 31 + i / 251) % 256); }

/* Writes n bytes of the pattern in pieces of `step`. */
static mica_status write_pattern(const char *path, size_t n, size_t step, mica_error *err)
{
    mica_newfile f;
    uint8_t *data = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        data[i] = pattern(i);
    mica_status status = mica_newfile_open(path, MICA_NEWFILE_PRIVATE, &f, err);
    for (size_t i = 0; i < n && !status; i += step)
        status = mica_newfile_write(&f, data + i, n - i < step ? n - i : step, err);
    if (!status)
        status = mica_newfile_commit(&f, err);
    mica_newfile_discard(&f);
    mica_newfile_discard(&f); /* twice is fine */
    free(data);
    return status;
}

static void check_pattern(const char *path, size_t n)
{
    size_t got;
    uint8_t *data = load_bytes(path, &got);
    assert_int_equal(got, n);
    for (size_t i = 0; i < n; i++)
        if (data[i] != pattern(i))
            fail_msg("byte %zu of %zu is wrong", i, n);
    free(data);
}

static void test_content(void **state)
{
    static const size_t sizes[] = {0, 1, 1000, 65535, 65536, 65537, 200000}, steps[] = {7, 1000, 65535, 65536, 100000, 300000};
    folder *f = *state;
    mica_error err;
    struct stat st;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof steps / sizeof *steps; j++) {
            if (write_pattern(f->file, sizes[i], steps[j], &err))
                fail_msg("%s", err.message);
            check_pattern(f->file, sizes[i]);
        }
    assert_int_equal(stat(f->file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(folder_count(f, false), 1);
}

static void test_discard(void **state)
{
    folder *f = *state;
    mica_newfile file;
    mica_error err;
    assert_int_equal(write_pattern(f->file, 10, 10, &err), MICA_OK);
    assert_int_equal(mica_newfile_open(f->file, MICA_NEWFILE_PRIVATE, &file, &err), MICA_OK);
    assert_int_equal(mica_newfile_write(&file, "x", 1, &err), MICA_OK);
    assert_int_equal(folder_count(f, false), 2);
    mica_newfile_discard(&file);
    assert_int_equal(folder_count(f, false), 1);
    check_pattern(f->file, 10);
}

static void test_links(void **state)
{
    folder *f = *state;
    char link[256], dangling[256];
    mica_error err;
    struct stat st;
    snprintf(link, sizeof link, "%s/link", f->dir);
    snprintf(dangling, sizeof dangling, "%s/dangling", f->dir);
    assert_int_equal(write_pattern(f->file, 10, 10, &err), MICA_OK);
    assert_int_equal(symlink("state", link), 0);
    assert_int_equal(symlink("nowhere", dangling), 0);
    assert_int_equal(write_pattern(link, 20, 10, &err), MICA_OK);
    check_pattern(f->file, 20);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(write_pattern(dangling, 20, 10, &err), MICA_IO_ERROR);
    assert_non_null(strstr(err.message, "leads nowhere"));
}

static void check_error(const char *path, const char *says)
{
    mica_error err;
    assert_int_equal(write_pattern(path, 10, 10, &err), MICA_IO_ERROR);
    if (!strstr(err.message, says))
        fail_msg("%s", err.message);
}

static void test_refused(void **state)
{
    folder *f = *state;
    char path[256];
    mica_error err;
    check_error(f->dir, "is a directory");
    check_error("/dev/null", "a device or a pipe");
    snprintf(path, sizeof path, "%s/none/state", f->dir);
    check_error(path, strerror(ENOENT));
    assert_int_equal(write_pattern(f->file, 10, 10, &err), MICA_OK);
    snprintf(path, sizeof path, "%s/state/below", f->dir);
    check_error(path, strerror(ENOTDIR));
    assert_int_equal(mkfifo(strcat(strcpy(path, f->dir), "/pipe"), 0600), 0);
    check_error(path, "a device or a pipe");
    assert_int_equal(folder_count(f, false), 2);
}

/* The same in the current folder, where the path has no slash. */
static void test_bare_name(void **state)
{
    folder *f = *state;
    mica_error err;
    int back = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(f->dir), 0);
    mica_status status = write_pattern("state", 10, 10, &err);
    assert_int_equal(fchdir(back), 0);
    close(back);
    assert_int_equal(status, MICA_OK);
    check_pattern(f->file, 10);
}

/* What a child process does that may write `limit` bytes; `deadly`: writing more kills it. */
static int write_limited(const char *path, rlim_t limit, bool deadly)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit few = {limit, limit}, none = {0, 0};
        mica_error err = {.code = MICA_OK};
        setrlimit(RLIMIT_CORE, &none);
        setrlimit(RLIMIT_FSIZE, &few);
        signal(SIGXFSZ, deadly ? SIG_DFL : SIG_IGN);
        mica_status status = write_pattern(path, 300000, 1000, &err);
        _exit(status == MICA_IO_ERROR && strstr(err.message, "unchanged") ? 1 : status ? 2 : 0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    return how;
}

static void test_full_disk(void **state)
{
    folder *f = *state;
    mica_error err;
    assert_int_equal(write_pattern(f->file, 10, 10, &err), MICA_OK);
    for (rlim_t limit = 0; limit < 300000; limit += 77777) { /* short writes before the error */
        int how = write_limited(f->file, limit, false);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 1);
        check_pattern(f->file, 10);
        assert_int_equal(folder_count(f, false), 1);
    }
    int how = write_limited(f->file, 300000, false);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    check_pattern(f->file, 300000);
}

/* What another process writes at the moment is no rest of a dead one. */
static void test_two_writers(void **state)
{
    folder *f = *state;
    mica_newfile other;
    mica_error err;
    assert_int_equal(mica_newfile_open(f->file, MICA_NEWFILE_SHARED, &other, &err), MICA_OK);
    assert_int_equal(mica_newfile_write(&other, "x", 1, &err), MICA_OK);
    assert_int_equal(write_pattern(f->file, 20, 10, &err), MICA_OK);
    check_pattern(f->file, 20);
    assert_int_equal(mica_newfile_commit(&other, &err), MICA_OK);
    mica_newfile_discard(&other);
    assert_int_equal(folder_count(f, false), 1);
}

/* A file for others has what the umask leaves, and keeps what it had. */
static void test_permissions(void **state)
{
    folder *f = *state;
    mica_error err;
    struct stat st;
    mode_t before = umask(027);
    mica_status status = mica_newfile_put(f->file, MICA_NEWFILE_SHARED, "x", 1, &err);
    umask(before);
    assert_int_equal(status, MICA_OK);
    assert_int_equal(stat(f->file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(chmod(f->file, 0604), 0);
    assert_int_equal(mica_newfile_put(f->file, MICA_NEWFILE_SHARED, "y", 1, &err), MICA_OK);
    assert_int_equal(stat(f->file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604);
}

static void test_killed(void **state)
{
    folder *f = *state;
    mica_error err;
    assert_int_equal(write_pattern(f->file, 10, 10, &err), MICA_OK);
    int how = write_limited(f->file, 100000, true);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGXFSZ);
    check_pattern(f->file, 10);
    assert_int_equal(folder_count(f, false), 2); /* what the dead process left behind */
    assert_int_equal(write_pattern(f->file, 20, 10, &err), MICA_OK);
    check_pattern(f->file, 20);
    assert_int_equal(folder_count(f, false), 1); /* is taken away */
}

static int setup(void **state)
{
    folder *f = calloc(1, sizeof *f);
    folder_make(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    folder_remove(*state);
    free(*state);
    return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(test_content), TEST(test_discard),   TEST(test_links),     TEST(test_refused),
                                       TEST(test_killed),  TEST(test_full_disk), TEST(test_bare_name),
                                       TEST(test_two_writers), TEST(test_permissions)};
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
