/* Joules by a clock of the test's own: which source, when an epoch ends, counters that wrap, charge that goes in steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "device/energy.h"
#include "fake_tree.h"

#define SECOND INT64_C(1000000000)

static mica_rapl no_counters(void)
{
    mica_rapl r;
    memset(&r, 0, sizeof r);
    return r;
}

static mica_rapl package(int64_t uj, int64_t range)
{
    mica_rapl r = no_counters();
    r.n = 1;
    r.domain[0] = (mica_rapl_domain){.name = "package-0", .zone = "intel-rapl:0", .counted = true, .uj = uj, .range = range};
    return r;
}

/* A phone by its battery: draw and charge (in ampere-seconds, at 4 V), NAN where it does not tell. */
static mica_power on_battery(double watts, double charge)
{
    mica_power p;
    memset(&p, 0, sizeof p);
    p.n_batteries = 1;
    p.status = MICA_BATTERY_DISCHARGING;
    p.external = MICA_NO;
    p.draw_w = watts;
    p.charge_as = charge;
    p.energy_j = NAN;
    p.volts = 4.0;
    return p;
}

static mica_power on_charger(void)
{
    mica_power p = on_battery(NAN, 9000);
    p.status = MICA_BATTERY_CHARGING;
    p.external = MICA_YES;
    snprintf(p.reason, sizeof p.reason, "on external power (usb): the battery's current is not the device's");
    return p;
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12))
        fail_msg("%.12g is not %.12g", got, want);
}

static void steps_of_counters(void **state)
{
    (void)state;
    assert_int_equal(mica_rapl_step(10, 25, 100), 15);
    assert_int_equal(mica_rapl_step(90, 5, 100), 15); /* wrapped */
    assert_int_equal(mica_rapl_step(90, 5, -1), -1);  /* by how much is unknown */
    assert_int_equal(mica_rapl_step(90, 5, 80), -1);  /* a range that the counter exceeds is none */
    assert_int_equal(mica_rapl_step(-1, 5, 100), -1);
    assert_int_equal(mica_rapl_step(7, 7, 100), 0);
}

static void counters_are_added_up_across_a_wrap(void **state)
{
    (void)state;
    mica_energy e;
    mica_power none = on_battery(NAN, NAN);
    mica_energy_init(&e);
    mica_rapl r = package(900000000, 1000000000);
    mica_energy_add(&e, SECOND, &r, &none);
    assert_string_equal(e.source, "rapl:package");
    near(e.joules, 0);
    r = package(960000000, 1000000000);
    mica_energy_add(&e, 2 * SECOND, &r, &none);
    r = package(40000000, 1000000000);
    mica_energy_add(&e, 3 * SECOND, &r, &none);
    near(e.joules, 140);
    assert_int_equal(e.epoch, 0);
}

static void a_counter_that_may_have_wrapped_twice_is_not_believed(void **state)
{
    (void)state;
    mica_energy e;
    mica_power none = on_battery(NAN, NAN);
    mica_energy_init(&e);
    mica_rapl r = package(1000, 1000000000); /* 1000 J: at 400 W that is 2.5 s */
    mica_energy_add(&e, SECOND, &r, &none);
    r = package(2000000, 1000000000);
    mica_energy_add(&e, 5 * SECOND, &r, &none);
    near(e.joules, 0);
    assert_int_equal(e.epoch, 1);
}

static void power_is_integrated(void **state)
{
    (void)state;
    mica_energy e;
    mica_rapl none = no_counters();
    mica_energy_init(&e);
    mica_power p = on_battery(4.0, 10000);
    mica_energy_add(&e, SECOND, &none, &p);
    assert_string_equal(e.source, "battery:power");
    p = on_battery(8.0, 9990);
    mica_energy_add(&e, 3 * SECOND, &none, &p);
    near(e.joules, 12);
    assert_string_equal(e.reason, "");
    p = on_battery(8.0, 9000); /* 31 s later: what was between is unknown */
    mica_energy_add(&e, 34 * SECOND, &none, &p);
    near(e.joules, 12);
    assert_int_equal(e.epoch, 1);
    mica_energy_add(&e, 35 * SECOND, &none, &p);
    near(e.joules, 20);
    assert_int_equal(e.epoch, 1);
}

static void a_charger_ends_the_epoch_and_gives_a_reason(void **state)
{
    (void)state;
    mica_energy e;
    mica_rapl none = no_counters();
    mica_energy_init(&e);
    mica_power p = on_battery(4.0, 10000), c = on_charger();
    mica_energy_add(&e, SECOND, &none, &p);
    mica_energy_add(&e, 2 * SECOND, &none, &c);
    assert_int_equal(e.kind, MICA_ENERGY_NONE);
    assert_non_null(strstr(e.reason, "on external power"));
    assert_int_equal(e.epoch, 1);
    mica_energy_add(&e, 3 * SECOND, &none, &c);
    assert_int_equal(e.epoch, 1);
    mica_energy_add(&e, 4 * SECOND, &none, &p);
    assert_int_equal(e.epoch, 2);
    near(e.joules, 0);
    mica_energy_add(&e, 5 * SECOND, &none, &p);
    near(e.joules, 4);
}

static void charge_goes_in_steps(void **state)
{
    (void)state;
    mica_energy e;
    mica_rapl none = no_counters();
    mica_energy_init(&e);
    double charge[] = {1000, 1000, 990, 990, 970, 970};
    for (size_t i = 0; i < 6; i++) {
        mica_power p = on_battery(NAN, charge[i]);
        mica_energy_add(&e, (int64_t)(i + 1) * SECOND, &none, &p);
    }
    assert_string_equal(e.source, "battery:charge");
    near(e.joules, 30 * 4.0);
    near(e.step_j, 10 * 4.0);
    mica_power p = on_battery(NAN, 975); /* it gains while it discharges: recalibrated */
    mica_energy_add(&e, 7 * SECOND, &none, &p);
    assert_int_equal(e.epoch, 1);
}

static void energy_goes_before_charge(void **state)
{
    (void)state;
    near(mica_energy_of_charge(100, 90, 50, 40, 4), 10);
    near(mica_energy_of_charge(NAN, 90, 50, 40, 4), 40);
    assert_true(isnan(mica_energy_of_charge(NAN, NAN, 50, 40, NAN)));
}

/* ---- Counters of a tree ---- */

static void domain(const fake_tree *t, const char *zone, const char *name, const char *uj)
{
    char path[128];
    snprintf(path, sizeof path, "sys/class/powercap/%s/name", zone);
    tree_line(t, path, name);
    snprintf(path, sizeof path, "sys/class/powercap/%s/energy_uj", zone);
    tree_line(t, path, uj);
    snprintf(path, sizeof path, "sys/class/powercap/%s/max_energy_range_uj", zone);
    tree_line(t, path, "262143328850");
}

static void domains_that_overlap_are_not_added(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_rapl r;
    domain(&t, "intel-rapl:0", "package-0", "100");
    domain(&t, "intel-rapl:0:0", "core", "70");
    domain(&t, "intel-rapl:0:1", "dram", "10");
    domain(&t, "intel-rapl:1", "package-1", "200");
    domain(&t, "intel-rapl:2", "psys", "500");
    mica_rapl_read(t.root, &r);
    assert_int_equal(r.n, 5);
    int64_t sum = 0;
    for (int i = 0; i < r.n; i++)
        sum += r.domain[i].counted ? r.domain[i].uj : 0;
    assert_int_equal(sum, 310);
    tree_free(&t);
    t = tree_new();
    domain(&t, "intel-rapl:1", "psys", "500");
    mica_rapl_read(t.root, &r);
    assert_true(r.n == 1 && r.domain[0].counted);
    tree_free(&t);
}

static void absurd_counters_are_unknown(void **state)
{
    (void)state;
    static const char *const values[] = {"-5", "x", "", "99999999999999999999"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fake_tree t = tree_new();
        mica_rapl r;
        domain(&t, "intel-rapl:0", "package-0", values[i]);
        mica_rapl_read(t.root, &r);
        assert_true(r.n == 1 && r.domain[0].uj == -1 && !r.domain[0].counted && !r.denied);
        tree_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_counters),
        cmocka_unit_test(counters_are_added_up_across_a_wrap),
        cmocka_unit_test(a_counter_that_may_have_wrapped_twice_is_not_believed),
        cmocka_unit_test(power_is_integrated),
        cmocka_unit_test(a_charger_ends_the_epoch_and_gives_a_reason),
        cmocka_unit_test(charge_goes_in_steps),
        cmocka_unit_test(energy_goes_before_charge),
        cmocka_unit_test(domains_that_overlap_are_not_added),
        cmocka_unit_test(absurd_counters_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
