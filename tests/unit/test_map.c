/* test_map.c - mapping files: what is refused, and with which words; parts of a file. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/map.h"

static char dir[64], path[128];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "%s/mica-test-map-XXXXXX", P_tmpdir);
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    rmdir(dir);
    return 0;
}

static void write_file(size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < n; i++)
        fputc((int)(i % 251), file);
    assert_int_equal(fclose(file), 0);
}

static void check_refused(const char *name, mica_status status, const char *says)
{
    mica_map map = {0};
    mica_error err;
    assert_int_equal(mica_map_open(name, &map, &err), status);
    assert_int_equal(err.code, status);
    if (!strstr(err.message, says) || !strstr(err.message, name))
        fail_msg("%s", err.message);
    assert_null(map.base);
    mica_map_close(&map);
}

static void test_whole_file(void **state)
{
    (void)state;
    mica_map map;
    write_file(10001);
    assert_int_equal(mica_map_open(path, &map, NULL), MICA_OK);
    assert_int_equal(map.length, 10001);
    for (size_t i = 0; i < map.length; i++)
        assert_int_equal(map.data[i], i % 251);
    mica_map_close(&map);
    assert_null(map.data);
    mica_map_close(&map);
}

static void test_part_of_a_file(void **state)
{
    (void)state;
    static const uint64_t offsets[] = {0, 4, 4092, 4096, 4100, 9996};
    write_file(10000);
    int fd = open(path, O_RDONLY);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (uint64_t length = 0; length <= 4; length += 4) {
            mica_map map;
            assert_int_equal(mica_map_open_fd(fd, offsets[i], length, "part", &map, NULL), MICA_OK);
            assert_int_equal(map.length, length ? length : 10000 - offsets[i]);
            assert_int_equal(map.data[0], offsets[i] % 251);
            assert_int_equal(map.data[map.length - 1], (offsets[i] + map.length - 1) % 251);
            mica_map_close(&map);
        }
    close(fd);
}

static void test_bad_ranges(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, length;
        const char *says;
    } ranges[] = {{2, 4, "multiple of 4"},    {10000, 0, "10000 bytes"},           {10004, 4, "10000 bytes"},
                  {9996, 5, "10000 bytes"},   {0, 10001, "10000 bytes"},           {UINT64_MAX - 3, 4, "10000 bytes"},
                  {4, UINT64_MAX, "map 18446744073709551615 bytes"}};
    write_file(10000);
    int fd = open(path, O_RDONLY);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        mica_map map = {0};
        mica_error err;
        assert_int_equal(mica_map_open_fd(fd, ranges[i].offset, ranges[i].length, "part", &map, &err), MICA_INVALID_ARGUMENT);
        if (!strstr(err.message, ranges[i].says) || !strstr(err.message, "part"))
            fail_msg("%s", err.message);
        assert_null(map.base);
    }
    close(fd);
}

static void test_not_a_regular_file(void **state)
{
    (void)state;
    check_refused(dir, MICA_IO_ERROR, "it is a directory");
    check_refused("/dev/null", MICA_IO_ERROR, "not a regular file");
    assert_int_equal(mkfifo(path, 0600), 0);
    check_refused(path, MICA_IO_ERROR, "it is a pipe"); /* and does not wait for a writer */
    unlink(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    check_refused(path, MICA_IO_ERROR, "not a regular file");
    close(fd);
}

static void test_missing_and_empty(void **state)
{
    (void)state;
    char inside[160];
    check_refused(path, MICA_IO_ERROR, "there is no such file");
    write_file(0);
    check_refused(path, MICA_BAD_FILE, "is empty (0 bytes); download it again");
    snprintf(inside, sizeof inside, "%s/x", path);
    check_refused(inside, MICA_IO_ERROR, "not a directory");
}

static void test_no_permission(void **state)
{
    (void)state;
    write_file(100);
    uid_t uid = geteuid();
    if (uid == 0) { /* root may read everything: be nobody for this */
        assert_int_equal(chmod(dir, 0755), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    if (uid != 0)
        assert_int_equal(chmod(path, 0), 0);
    else {
        assert_int_equal(seteuid(0), 0);
        assert_int_equal(chmod(path, 0), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    check_refused(path, MICA_IO_ERROR, "no permission to read it");
    if (uid == 0)
        assert_int_equal(seteuid(0), 0);
}

static void test_path_tail(void **state)
{
    (void)state;
    char name[400];
    assert_string_equal(mica_path_tail("a/b.gguf"), "a/b.gguf");
    memset(name, 'x', 399);
    name[399] = '\0';
    assert_int_equal(strlen(mica_path_tail(name)), 120);
    memcpy(name + 399 - 121, "\xC3\xA9", 2); /* the cut falls inside this character */
    assert_int_equal(strlen(mica_path_tail(name)), 119);
    assert_string_equal(mica_path_tail(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole_file, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_part_of_a_file, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_bad_ranges, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_not_a_regular_file, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_missing_and_empty, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_no_permission, make_dir, remove_dir),
        cmocka_unit_test(test_path_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
