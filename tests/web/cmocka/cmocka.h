/* cmocka.h - what tests/unit/test_kernels.c uses of cmocka, where nothing can jump out of a test: the first failure ends the
 * program. */
#ifndef MICA_TESTS_WEB_CMOCKA_H
#define MICA_TESTS_WEB_CMOCKA_H
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*run)(void **state);
};

#define cmocka_unit_test(function) {#function, function}

__attribute__((format(printf, 3, 4), noreturn)) static inline void cmocka_fail(const char *file, int line, const char *format,
                                                                               ...)
{
    va_list args;
    va_start(args, format);
    printf("%s:%d: ", file, line);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    exit(1);
}

#define fail_msg(...)              cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)
#define print_message(...)         printf(__VA_ARGS__)
#define assert_true(x)             ((x) ? (void)0 : cmocka_fail(__FILE__, __LINE__, "not true: %s", #x))
#define assert_false(x)            assert_true(!(x))
#define assert_non_null(x)         assert_true((x) != NULL)
#define assert_null(x)             assert_true((x) == NULL)
#define assert_int_equal(a, b)     assert_true((a) == (b))
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)
#define cmocka_run_group_tests(tests, setup, teardown) cmocka_run(tests, sizeof tests / sizeof *tests)

static inline int cmocka_run(const struct CMUnitTest *tests, size_t n)
{
    void *state = NULL;
    for (size_t i = 0; i < n; i++) {
        tests[i].run(&state);
        printf("passed: %s\n", tests[i].name);
    }
    return 0;
}

#endif
