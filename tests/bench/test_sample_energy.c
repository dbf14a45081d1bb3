/* Joules from samples: which source, wraps, chargers, charge in steps, and how far they may be off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "../unit/fake_tree.h"
#include "bench/sample_energy.h"
#include "bench/sensors.h"

#define S INT64_C(1000000000)

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want)))
        fail_msg("%.12g is not %.12g", got, want);
}

static json_t *counters(int64_t t, int64_t package, int64_t dram)
{
    return json_pack("{s:I, s:[I, I], s:[I, I], s:[s, s]}", "t_ns", (json_int_t)t, "energy_uj", (json_int_t)package,
                     (json_int_t)dram, "energy_range_uj", (json_int_t)10000000, (json_int_t)10000000, "energy_domains",
                     "package-0", "dram");
}

static mica_sample_energy of(json_t *samples)
{
    mica_sample_energy e;
    mica_sample_energy_of(samples, INT64_MIN, INT64_MAX, &e);
    return e;
}

static void counters_add_up(void **state)
{
    (void)state;
    json_t *samples = json_pack("[o, o, o]", counters(S, 1000000, 9900000), counters(2 * S, 2000000, 100000),
                                counters(3 * S, 4000000, 300000));
    mica_sample_energy e = of(samples);
    near(e.joules, 3.0 + 0.4);
    assert_true(e.first_ns == S && e.last_ns == 3 * S);
    assert_non_null(strstr(e.source, "RAPL, processor packages and memory"));
    near(e.error, 0.05);
    mica_sample_energy_of(samples, 2 * S, 3 * S, &e);
    near(e.joules, 2.2);
    mica_sample_energy_of(samples, 3 * S, 3 * S, &e);
    assert_true(isnan(e.joules)); /* one sample is no time */
    json_decref(samples);
}

static void a_source_must_be_there_all_the_time(void **state)
{
    (void)state;
    json_t *samples = json_pack("[o, {s:I}, o]", counters(S, 1, 1), "t_ns", (json_int_t)(2 * S), counters(3 * S, 5, 5));
    assert_true(isnan(of(samples).joules));
    json_decref(samples);
    samples = json_pack("[{s:I, s:f}, {s:I, s:f}, {s:I}]", "t_ns", (json_int_t)S, "battery_w", 8.0, "t_ns", (json_int_t)(2 * S),
                        "battery_w", 8.0, "t_ns", (json_int_t)(3 * S)); /* the charger came */
    assert_true(isnan(of(samples).joules));
    assert_string_equal(of(samples).source, "");
    json_decref(samples);
    assert_true(isnan(of(NULL).joules));
}

static void battery_power_is_integrated(void **state)
{
    (void)state;
    json_t *samples = json_pack("[{s:I, s:f}, {s:I, s:f}, {s:I, s:f}]", "t_ns", (json_int_t)S, "battery_w", 4.0, "t_ns",
                                (json_int_t)(2 * S), "battery_w", 8.0, "t_ns", (json_int_t)(4 * S), "battery_w", 8.0);
    mica_sample_energy e = of(samples);
    near(e.joules, 6 + 16);
    assert_non_null(strstr(e.source, "power out of it"));
    json_decref(samples);
}

static json_t *charge(int64_t t, double as)
{
    return json_pack("{s:I, s:f, s:f}", "t_ns", (json_int_t)t, "battery_as", as, "battery_v", 4.0);
}

static void charge_counts_between_its_steps(void **state)
{
    (void)state;
    json_t *samples = json_array();
    for (int64_t i = 0; i <= 100; i++) /* 2 W: a step of 10 As, 40 J, each 20 s, from second 5 on */
        json_array_append_new(samples, charge(S + i * S, 1000.0 - 10.0 * (double)((i + 15) / 20)));
    mica_sample_energy e = of(samples);
    near(e.joules, 200); /* 160 J in 80 s between the first and the last step, for 100 s */
    assert_non_null(strstr(e.source, "steps of the charge"));
    near(e.error, sqrt(0.05 * 0.05 + 40.0 * 40.0 / 6 / (200 * 200)));
    json_decref(samples);
    samples = json_pack("[o, o, o]", charge(S, 100), charge(2 * S, 100),
                        charge(3 * S, 90)); /* one step: how long it took is unknown */
    assert_true(isnan(of(samples).joules));
    json_decref(samples);
}

static void old_records_read_as_before(void **state)
{
    (void)state;
    json_t *samples = json_pack("[{s:i, s:[i], s:[i]}, {s:i, s:[i], s:[i]}]", "t_ns", 1, "energy_uj", 900000, "energy_range_uj",
                                1000000, "t_ns", 2, "energy_uj", 100000, "energy_range_uj", 1000000);
    mica_sample_energy e = of(samples);
    near(e.joules, 0.2);
    assert_true(isnan(e.error));
    assert_string_equal(e.source, "RAPL, processor packages of the whole machine; memory, board and supply are not in it");
    json_decref(samples);
}

static void a_charger_leaves_nothing_to_count_with(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_sensors s;
    tree_line(&t, "sys/class/power_supply/battery/type", "Battery");
    tree_line(&t, "sys/class/power_supply/battery/status", "Discharging");
    tree_line(&t, "sys/class/power_supply/battery/voltage_now", "4000000");
    tree_line(&t, "sys/class/power_supply/battery/current_now", "-2000000");
    tree_line(&t, "sys/class/power_supply/battery/charge_counter", "3000000");
    mica_sensors_read(t.root, &s);
    assert_true(s.battery_w == 8.0 && s.battery_as == 10800.0 && s.battery_v == 4.0 && isnan(s.battery_j));
    assert_string_equal(s.battery, "Discharging");
    tree_line(&t, "sys/class/power_supply/usb/type", "USB");
    tree_line(&t, "sys/class/power_supply/usb/online", "1");
    mica_sensors_read(t.root, &s);
    assert_true(isnan(s.battery_w) && isnan(s.battery_as) && isnan(s.battery_v) && isnan(s.battery_j));
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_add_up),
        cmocka_unit_test(a_source_must_be_there_all_the_time),
        cmocka_unit_test(battery_power_is_integrated),
        cmocka_unit_test(charge_counts_between_its_steps),
        cmocka_unit_test(old_records_read_as_before),
        cmocka_unit_test(a_charger_leaves_nothing_to_count_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
