/* test_cache.c - the cache of compiled things: shared while in use, kept after it, given up oldest first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/cache.h"

static int freed[10];

static void note(void *object)
{
    freed[(int *)object - freed]++;
}

static mica_cache_entry *add(mica_cache *c, const char *key, int i)
{
    return mica_cache_add(c, key, 1, &freed[i], note);
}

static void test_cache(void **state)
{
    mica_cache *c = mica_cache_new(2);
    (void)state;
    assert_null(mica_cache_get(c, "a", 1));
    mica_cache_entry *a = add(c, "a", 0);
    assert_ptr_equal(mica_cache_object(a), &freed[0]);
    assert_ptr_equal(mica_cache_get(c, "a", 1), a); /* two uses */
    mica_cache_give_back(add(c, "b", 1));
    mica_cache_give_back(add(c, "c", 2)); /* a is in use: b gives way */
    assert_int_equal(freed[1], 1);
    assert_null(mica_cache_get(c, "b", 1));
    mica_cache_entry *held = mica_cache_get(c, "c", 1), *extra = add(c, "d", 3); /* no place is left */
    assert_null(mica_cache_get(c, "d", 1));
    mica_cache_give_back(extra);
    assert_int_equal(freed[3], 1);
    mica_cache_give_back(a);
    mica_cache_give_back(add(c, "e", 4)); /* a has one use more */
    assert_int_equal(freed[0] + freed[2] + freed[4], 1);
    assert_int_equal(freed[4], 1);
    mica_cache_give_back(a);
    mica_cache_give_back(held);
    mica_cache_give_back(add(c, "f", 5));
    assert_int_equal(freed[0], 1); /* longer unused than c */
    mica_cache_free(c);
    assert_int_equal(freed[2], 1);
    assert_int_equal(freed[5], 1);
    mica_cache_free(NULL);
    mica_cache_give_back(NULL);
}

static void test_without_a_cache(void **state)
{
    (void)state;
    assert_null(mica_cache_get(NULL, "a", 1));
    mica_cache_entry *e = add(NULL, "a", 6);
    mica_cache_give_back(e);
    assert_int_equal(freed[6], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cache), cmocka_unit_test(test_without_a_cache)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
