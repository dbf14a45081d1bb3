/* Which sensor is believed, from fake trees of /sys. */
#include "device/thermal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_tree.h"

#define ZONE(i, file) "sys/class/thermal/thermal_zone" #i "/" file
#define CHIP(i, file) "sys/class/hwmon/hwmon" #i "/" file

static void put(fake_tree *t, const char *path, const char *text) { tree_bytes(t, path, text, strlen(text)); }

static void expect(fake_tree *t, double celsius, const char *source)
{
    double got;
    char name[32];
    bool found = mica_thermal_processor(t->root, &got, name);
    tree_free(t);
    assert_true(found);
    assert_string_equal(name, source);
    assert_true(got == celsius);
}

static void expect_none(fake_tree *t)
{
    double got;
    char name[32];
    bool found = mica_thermal_processor(t->root, &got, name);
    tree_free(t);
    assert_false(found);
}

static void without_sensors_there_is_none(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    expect_none(&t);
}

static void the_hottest_zone_of_the_processor(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    put(&t, ZONE(0, "type"), "battery\n");
    put(&t, ZONE(0, "temp"), "99000\n");
    put(&t, ZONE(1, "type"), "cpu-0-0-usr\n");
    put(&t, ZONE(1, "temp"), "51250\n");
    put(&t, ZONE(2, "type"), "cpu-1-0-usr\n");
    put(&t, ZONE(2, "temp"), "63500\n");
    put(&t, ZONE(90, "type"), "soc\n");
    put(&t, ZONE(90, "temp"), "48000\n");
    expect(&t, 63.5, "cpu-1-0-usr");
}

static void acpitz_alone_is_not_believed(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    put(&t, ZONE(0, "type"), "acpitz\n");
    put(&t, ZONE(0, "temp"), "27800\n");
    expect_none(&t);
}

static void chips_are_the_second_choice(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    put(&t, ZONE(0, "type"), "acpitz\n");
    put(&t, ZONE(0, "temp"), "27800\n");
    put(&t, CHIP(0, "name"), "nvme\n");
    put(&t, CHIP(0, "temp1_input"), "70000\n");
    put(&t, CHIP(3, "name"), "k10temp\n");
    put(&t, CHIP(3, "temp1_input"), "44125\n");
    expect(&t, 44.125, "k10temp");
}

static void absurd_values_are_left_out(void **state)
{
    (void)state;
    static const char *const values[] = {"0\n", "-274000\n", "200000\n", "9223372036854775807\n", "99999999999999999999\n", "warm\n", ""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fake_tree t = tree_new();
        put(&t, ZONE(0, "type"), "x86_pkg_temp\n");
        put(&t, ZONE(0, "temp"), values[i]);
        expect_none(&t);
    }
}

static void below_zero_is_possible(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    put(&t, ZONE(0, "type"), "soc-thermal\n");
    put(&t, ZONE(0, "temp"), "-5000\n");
    expect(&t, -5.0, "soc-thermal");
}

static void names_are_made_printable_and_short(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    put(&t, ZONE(0, "type"), "cpu\x01\xff-of-a-name-that-is-too-long-for-it\n");
    put(&t, ZONE(0, "temp"), "40000\n");
    expect(&t, 40.0, "cpu?" "?-of-a-name-that-is-too-lon");
}

static void a_name_that_does_not_fit_is_no_sensor(void **state)
{
    (void)state;
    char name[300];
    fake_tree t = tree_new();
    memset(name, 'x', sizeof name);
    memcpy(name, "cpu", 3);
    tree_bytes(&t, ZONE(0, "type"), name, sizeof name);
    put(&t, ZONE(0, "temp"), "40000\n");
    expect_none(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_sensors_there_is_none),
        cmocka_unit_test(the_hottest_zone_of_the_processor),
        cmocka_unit_test(acpitz_alone_is_not_believed),
        cmocka_unit_test(chips_are_the_second_choice),
        cmocka_unit_test(absurd_values_are_left_out),
        cmocka_unit_test(below_zero_is_possible),
        cmocka_unit_test(names_are_made_printable_and_short),
        cmocka_unit_test(a_name_that_does_not_fit_is_no_sensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
