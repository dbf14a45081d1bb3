/* test_map_huge.c - large files in huge pages (base/map_huge.h): the bytes are right wherever the mapping begins, again and again, while the
 * system's cache is dropped and filled. Whether pages are huge is the system's matter: printed, and required of nobody. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/map.h"
#include "base/map_huge.h"

enum { MIB = 1 << 20, SIZE = 21 * MIB + 4096 + 52 };

static uint8_t byte_at(size_t i) { return (uint8_t)(i * 2654435761u >> 13); }

static int make_file(char *path)
{
    int fd = mkstemp(path);
    uint8_t *bytes = malloc(SIZE);
    assert_true(fd >= 0 && bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(write(fd, bytes, SIZE), SIZE);
    assert_int_equal(fsync(fd), 0); /* pages that wait to be written cannot be dropped */
    free(bytes);
    return fd;
}

static void check_map(int fd, uint64_t offset, uint64_t length)
{
    mica_map map;
    mica_error err;
    if (mica_map_open_fd(fd, offset, length, "test", &map, &err))
        fail_msg("%s", err.message);
    assert_int_equal(map.length, length ? length : SIZE - offset);
    for (size_t i = 0; i < map.length; i++)
        if (map.data[i] != byte_at(i + offset))
            fail_msg("byte %zu from offset %llu differs", i, (unsigned long long)offset);
    mica_map_prefer_small(map.data + 3 * MIB + 7, 9 * MIB);
    assert_int_equal(map.data[4 * MIB], byte_at(4 * MIB + offset));
    print_message("offset %llu, %zu bytes: %s pages\n", (unsigned long long)offset, map.length, map.huge ? "huge" : "small");
    mica_map_close(&map);
    assert_null(map.data);
}

static void test_contents(void **state)
{
    char path[] = "map_huge_XXXXXX";
    int fd = make_file(path);
    (void)state;
    for (int again = 0; again < 3; again++) {
        check_map(fd, 0, 0);
        check_map(fd, 52, 0);
        check_map(fd, 4096 + 8, 12 * MIB);
        check_map(fd, 2 * MIB, 16 * MIB);
        check_map(fd, 13 * MIB + 4, 8 * MIB + 48); /* just large enough */
    }
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_contents)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
