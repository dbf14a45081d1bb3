/* test_version.c - the version that the library reports is the one that the build files declare. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mica/mica.h"

static void version_is_the_projects(void **state)
{
    (void)state;
    assert_string_equal(mica_version(), MICA_PROJECT_VERSION);
}

static void numerics_version_is_positive(void **state)
{
    (void)state;
    assert_true(mica_numerics_version() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(version_is_the_projects), cmocka_unit_test(numerics_version_is_positive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
