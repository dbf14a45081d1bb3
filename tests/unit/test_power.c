/* Which supply is the battery, and what its numbers mean: the cases pow-01, pow-03 and pow-05, and what else gauges do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "device/power.h"
#include "fake_tree.h"

#define POW_01 MICA_TEST_DATA "/cases/pow-01-sign-conventions/"
#define POW_03 MICA_TEST_DATA "/cases/pow-03-read-errors/"
#define POW_05 MICA_TEST_DATA "/cases/pow-05-which-supply/"

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 0.001 * fabs(want)))
        fail_msg("%.9g is not within 0.1 %% of %.9g", got, want);
}

static mica_power read_case(const char *root)
{
    mica_power p;
    mica_power_read(root, &p);
    return p;
}

static void pow_01_sign_conventions(void **state)
{
    (void)state;
    static const char *const discharging[] = {POW_01 "kernel_abi", POW_01 "unsigned"};
    static const char *const charging[] = {POW_01 "inverted_charging", POW_01 "abi_charging"};
    for (size_t i = 0; i < 2; i++) {
        mica_power p = read_case(discharging[i]);
        near(p.draw_w, 4.1433);
        assert_int_equal(p.status, MICA_BATTERY_DISCHARGING);
        assert_string_equal(p.reason, "");
        p = read_case(charging[i]);
        near(p.flow_w, 6.6789);
        assert_int_equal(p.status, MICA_BATTERY_CHARGING);
        assert_true(isnan(p.draw_w));
        assert_non_null(strstr(p.reason, "external power"));
    }
    mica_power p = read_case(POW_01 "full_on_usb");
    assert_true(fabs(p.flow_w - 0.0037) < 0.00005);
    assert_int_equal(p.external, MICA_YES);
    assert_true(isnan(p.draw_w));
    assert_non_null(strstr(p.reason, "on external power (usb)"));
}

static void pow_03_read_errors(void **state)
{
    (void)state;
    static const char *const names[] = {"absent", "blank", "empty_dir", "mains_only", "no_dir", "overflow", "text"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char root[512];
        snprintf(root, sizeof root, "%s%s", POW_03, names[i]);
        mica_power p = read_case(root);
        assert_true(isnan(p.draw_w) && isnan(p.flow_w)); /* null, never 0 */
        assert_true(p.reason[0] != '\0');
        assert_string_equal(p.source, "");
    }
    assert_int_equal(read_case(POW_03 "mains_only").status, MICA_BATTERY_NONE);
    assert_int_equal(read_case(POW_03 "empty_dir").status, MICA_BATTERY_UNKNOWN);
    assert_int_equal(read_case(POW_03 "no_dir").external, MICA_UNKNOWN);
}

static void pow_05_which_supply(void **state)
{
    (void)state;
    mica_power p = read_case(POW_05 "tree");
    assert_int_equal(p.n_batteries, 2); /* neither the mouse nor the port */
    near(p.draw_w, 8.5);
    assert_int_equal(p.external, MICA_NO);
    p = read_case(POW_05 "bms");
    assert_int_equal(p.n_batteries, 1); /* the same cell under two names */
    near(p.draw_w, 4.0);
    assert_string_equal(p.source, "battery/current_now");
}

/* ---- Made here ---- */

#define BATTERY(file) "sys/class/power_supply/battery/" file
#define BAT0(file)    "sys/class/power_supply/BAT0/" file
#define BAT1(file)    "sys/class/power_supply/BAT1/" file

static fake_tree phone(const char *status, const char *current)
{
    fake_tree t = tree_new();
    tree_line(&t, BATTERY("type"), "Battery");
    tree_line(&t, BATTERY("status"), status);
    tree_line(&t, BATTERY("voltage_now"), "4000000");
    if (current)
        tree_line(&t, BATTERY("current_now"), current);
    return t;
}

static mica_power read_and_free(fake_tree *t)
{
    mica_power p;
    mica_power_read(t->root, &p);
    tree_free(t);
    return p;
}

static void milliamperes_are_found_out(void **state)
{
    (void)state;
    fake_tree t = phone("Discharging", "-2125"); /* as uA it would be 8.5 mW: no machine that computes */
    near(read_and_free(&t).draw_w, 8.5);
    t = phone("Discharging", "-2125000");
    near(read_and_free(&t).draw_w, 8.5);
    t = phone("Discharging", "0"); /* a gauge that is off */
    assert_true(isnan(read_and_free(&t).draw_w));
    t = phone("Full", "976"); /* rests: microamperes are possible */
    near(read_and_free(&t).flow_w, 0.003904);
}

static void the_average_stands_in_for_the_moment(void **state)
{
    (void)state;
    fake_tree t = phone("Discharging", NULL);
    tree_line(&t, BATTERY("current_avg"), "500000");
    mica_power p = read_and_free(&t);
    near(p.draw_w, 2.0);
    assert_string_equal(p.source, "battery/current_avg");
}

static void absurd_voltages_give_no_power(void **state)
{
    (void)state;
    static const char *const volts[] = {"0", "-1", "4000", "4000000000", "x", ""};
    for (size_t i = 0; i < sizeof volts / sizeof *volts; i++) {
        fake_tree t = phone("Discharging", "-1000000");
        tree_line(&t, BATTERY("voltage_now"), volts[i]);
        mica_power p = read_and_free(&t);
        assert_true(isnan(p.draw_w) && isnan(p.volts));
        assert_non_null(strstr(p.reason, "battery"));
    }
}

static void levels(void **state)
{
    (void)state;
    fake_tree t = phone("Discharging", "-1000000");
    assert_true(isnan(read_and_free(&t).level));
    t = phone("Discharging", "-1000000");
    tree_line(&t, BATTERY("capacity"), "101");
    assert_true(isnan(read_and_free(&t).level));
    t = phone("Discharging", "-1000000");
    tree_line(&t, BATTERY("charge_counter"), "2000000");
    tree_line(&t, BATTERY("charge_full"), "5000000");
    mica_power p = read_and_free(&t);
    near(p.level, 0.4);
    near(p.charge_as, 7200);
    t = phone("Discharging", "-1000000");
    tree_line(&t, BATTERY("charge_counter"), "2000000");
    tree_line(&t, BATTERY("charge_full"), "5000000");
    tree_line(&t, BATTERY("capacity"), "37");
    near(read_and_free(&t).level, 0.37); /* what the machine shows to its user */
}

static void two_batteries_weigh_by_what_they_hold(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, BAT0("type"), "Battery");
    tree_line(&t, BAT0("status"), "Unknown"); /* it rests while the other one works */
    tree_line(&t, BAT0("energy_now"), "20000000");
    tree_line(&t, BAT0("energy_full"), "20000000");
    tree_line(&t, BAT1("type"), "Battery");
    tree_line(&t, BAT1("status"), "Discharging");
    tree_line(&t, BAT1("energy_now"), "10000000");
    tree_line(&t, BAT1("energy_full"), "40000000");
    tree_line(&t, BAT1("power_now"), "7500000");
    mica_power p = read_and_free(&t);
    near(p.level, 0.5);
    near(p.draw_w, 7.5);
    near(p.energy_j, 30 * 3600);
    assert_int_equal(p.status, MICA_BATTERY_DISCHARGING);
}

static void a_weak_charger_makes_the_figure_worthless(void **state)
{
    (void)state;
    fake_tree t = phone("Discharging", "-1000000");
    tree_line(&t, "sys/class/power_supply/usb/type", "USB");
    tree_line(&t, "sys/class/power_supply/usb/online", "1");
    mica_power p = read_and_free(&t);
    assert_true(isnan(p.draw_w));
    near(p.flow_w, 4.0);
    t = phone("Discharging", "-1000000");
    tree_line(&t, "sys/class/power_supply/usb/type", "USB");
    tree_line(&t, "sys/class/power_supply/usb/online", "0");
    p = read_and_free(&t);
    near(p.draw_w, 4.0);
    assert_int_equal(p.external, MICA_NO);
}

static void temperatures_are_tenths(void **state)
{
    (void)state;
    fake_tree t = phone("Discharging", "-1000000");
    tree_line(&t, BATTERY("temp"), "315");
    assert_int_equal(read_and_free(&t).temp_mc, 31500);
    t = phone("Discharging", "-1000000");
    tree_line(&t, BATTERY("temp"), "0");
    assert_int_equal(read_and_free(&t).temp_mc, MICA_UNKNOWN_MC);
}

static void names_and_numbers_have_limits(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    for (int i = 0; i < 50; i++) { /* of more supplies than there is room for, the first ones */
        char path[128];
        snprintf(path, sizeof path, "sys/class/power_supply/BAT%02d/type", i);
        tree_line(&t, path, "Battery");
    }
    mica_power p = read_and_free(&t);
    assert_int_equal(p.n_batteries, MICA_POWER_BATTERIES);
    assert_string_equal(p.battery[0].name, "BAT00");
    assert_string_equal(p.battery[3].name, "BAT03");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pow_01_sign_conventions),
        cmocka_unit_test(pow_03_read_errors),
        cmocka_unit_test(pow_05_which_supply),
        cmocka_unit_test(milliamperes_are_found_out),
        cmocka_unit_test(the_average_stands_in_for_the_moment),
        cmocka_unit_test(absurd_voltages_give_no_power),
        cmocka_unit_test(levels),
        cmocka_unit_test(two_batteries_weigh_by_what_they_hold),
        cmocka_unit_test(a_weak_charger_makes_the_figure_worthless),
        cmocka_unit_test(temperatures_are_tenths),
        cmocka_unit_test(names_and_numbers_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
