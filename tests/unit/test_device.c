/* The monitor: what trees become as one state, what an app reports over it, evidence of throttling, and use from many threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "device/device.h"
#include "device/pressure.h"
#include "fake_tree.h"

#define SECOND        INT64_C(1000000000)
#define ZONE(i, file) "sys/class/thermal/thermal_zone" #i "/" file
#define COOL(i, file) "sys/class/thermal/cooling_device" #i "/" file

static mica_device *open_tree(const fake_tree *t)
{
    mica_device_options o = mica_device_options_default();
    mica_device *d = NULL;
    o.sysroot = t->root;
    o.min_interval_ms = 0;
    assert_int_equal(mica_device_open(&o, &d, NULL), MICA_OK);
    return d;
}

static mica_device_state read_at(mica_device *d, int64_t now_ns)
{
    mica_device_state s;
    assert_int_equal(mica_device_read_at(d, now_ns, &s, NULL), MICA_OK);
    assert_int_equal(s.struct_size, sizeof s);
    assert_int_equal(s.time_ns, now_ns);
    return s;
}

static mica_device_state read_tree(const fake_tree *t)
{
    mica_device *d = open_tree(t);
    mica_device_state s = read_at(d, SECOND);
    mica_device_close(d);
    return s;
}

static void nothing_is_unknown(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_device_state s = read_tree(&t);
    assert_true(s.temp_max_mc == MICA_UNKNOWN_MC && s.temp_soc_mc == MICA_UNKNOWN_MC && s.temp_skin_mc == MICA_UNKNOWN_MC &&
                s.temp_battery_mc == MICA_UNKNOWN_MC);
    assert_int_equal(s.thermal, MICA_THERMAL_UNKNOWN);
    assert_true(isnan(s.headroom) && isnan(s.cooling) && isnan(s.clock) && isnan(s.clock_limit));
    assert_int_equal(s.throttle, 0);
    assert_true(isnan(s.battery_level) && isnan(s.battery_w) && s.battery == MICA_BATTERY_UNKNOWN);
    assert_true(s.on_mains == MICA_UNKNOWN && s.power_save == MICA_UNKNOWN && s.foreground == MICA_UNKNOWN);
    assert_true(isnan(s.energy_j) && isnan(s.energy_error) && s.energy_reason[0]);
    assert_string_equal(s.energy_source, "");
    assert_true(s.memory_total == -1 && s.memory_available == -1 && s.memory_limit == -1 && s.trim == MICA_TRIM_UNKNOWN);
    assert_true(isnan(s.psi_memory_some10) && isnan(s.psi_cpu_some10) && isnan(s.psi_io_some10) && isnan(s.cpu_quota));
    tree_free(&t);
}

static void units_of_zones(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t mc;
    } rows[] = {
        {"47250", 47250}, {"47", 47000},     {"472", 47200},        {"1000", 1000},    {"150", 150000},
        {"151", 15100},   {"999", 99900},    {"-5000", -5000},      {"-5", INT32_MIN}, {"-274000", INT32_MIN},
        {"0", INT32_MIN}, {"-1", INT32_MIN}, {"150000", INT32_MIN}, {"", INT32_MIN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_tree t = tree_new();
        tree_line(&t, ZONE(0, "type"), "cpu-0");
        tree_line(&t, ZONE(0, "temp"), rows[i].text);
        assert_int_equal(read_tree(&t).temp_soc_mc, rows[i].mc);
        tree_free(&t);
    }
}

static void kinds_of_zones(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, ZONE(0, "type"), "battery");
    tree_line(&t, ZONE(0, "temp"), "33000");
    tree_line(&t, ZONE(1, "type"), "BIG");
    tree_line(&t, ZONE(1, "temp"), "71000");
    tree_line(&t, ZONE(2, "type"), "VIRTUAL-SKIN");
    tree_line(&t, ZONE(2, "temp"), "39500");
    tree_line(&t, ZONE(3, "type"), "gpuss-0");
    tree_line(&t, ZONE(3, "temp"), "90000");
    tree_line(&t, ZONE(4, "type"), "skin-without-a-reading"); /* the file is not there */
    mica_device_state s = read_tree(&t);
    assert_int_equal(s.temp_battery_mc, 33000);
    assert_int_equal(s.temp_soc_mc, 71000);
    assert_int_equal(s.temp_skin_mc, 39500);
    assert_int_equal(s.temp_max_mc, 71000); /* the GPU is no concern of ours */
    tree_free(&t);
}

static fake_tree with_trips(const char *temp)
{
    fake_tree t = tree_new();
    tree_line(&t, ZONE(7, "type"), "VIRTUAL-SKIN");
    tree_line(&t, ZONE(7, "temp"), temp);
    tree_line(&t, ZONE(7, "trip_point_0_type"), "active");
    tree_line(&t, ZONE(7, "trip_point_0_temp"), "20000");
    tree_line(&t, ZONE(7, "trip_point_1_type"), "passive");
    tree_line(&t, ZONE(7, "trip_point_1_temp"), "43000");
    tree_line(&t, ZONE(7, "trip_point_2_type"), "hot");
    tree_line(&t, ZONE(7, "trip_point_2_temp"), "53000");
    tree_line(&t, ZONE(7, "trip_point_3_type"), "critical");
    tree_line(&t, ZONE(7, "trip_point_3_temp"), "58000");
    tree_line(&t, ZONE(7, "trip_point_4_type"), "passive");
    tree_line(&t, ZONE(7, "trip_point_4_temp"), "-274000"); /* switched off */
    return t;
}

static void trips_make_the_status(void **state)
{
    (void)state;
    static const struct {
        const char *temp;
        mica_thermal_status status;
        double headroom;
    } rows[] = {{"28000", MICA_THERMAL_NONE, 0.5},
                {"42999", MICA_THERMAL_NONE, 1.0},
                {"43000", MICA_THERMAL_MODERATE, 1.0},
                {"53000", MICA_THERMAL_SEVERE, 1.333},
                {"58500", MICA_THERMAL_SHUTDOWN, 1.517}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fake_tree t = with_trips(rows[i].temp);
        mica_device_state s = read_tree(&t);
        assert_int_equal(s.thermal, rows[i].status);
        assert_true(fabs(s.headroom - rows[i].headroom) < 0.001);
        assert_int_equal(!!(s.throttle & MICA_THROTTLE_TRIP), rows[i].status > MICA_THERMAL_NONE);
        tree_free(&t);
    }
}

static void cooling_devices(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, COOL(0, "type"), "thermal-cpufreq-0");
    tree_line(&t, COOL(0, "cur_state"), "0");
    tree_line(&t, COOL(0, "max_state"), "12");
    tree_line(&t, COOL(1, "type"), "intel_powerclamp");
    tree_line(&t, COOL(1, "cur_state"), "-1");
    tree_line(&t, COOL(1, "max_state"), "50");
    tree_line(&t, COOL(2, "type"), "fan");
    tree_line(&t, COOL(2, "cur_state"), "3");
    tree_line(&t, COOL(2, "max_state"), "3");
    mica_device_state s = read_tree(&t);
    assert_true(s.cooling == 0.0 && s.thermal == MICA_THERMAL_NONE && s.throttle == 0);
    tree_line(&t, COOL(0, "cur_state"), "3");
    s = read_tree(&t);
    assert_true(s.cooling == 0.25 && s.thermal == MICA_THERMAL_LIGHT && s.throttle == MICA_THROTTLE_COOLING);
    tree_free(&t);
}

static void clocks_weigh_by_capacity(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 2);
    tree_cpu(&t, 0, "cpu_capacity", "256");
    tree_cpu(&t, 1, "cpu_capacity", "768");
    tree_cpu(&t, 0, "cpufreq/scaling_cur_freq", "1000000");
    tree_cpu(&t, 0, "cpufreq/scaling_max_freq", "1000000");
    tree_cpu(&t, 0, "cpufreq/cpuinfo_max_freq", "1000000");
    tree_cpu(&t, 1, "cpufreq/scaling_cur_freq", "1000000");
    tree_cpu(&t, 1, "cpufreq/scaling_max_freq", "1500000");
    tree_cpu(&t, 1, "cpufreq/cpuinfo_max_freq", "2000000");
    mica_device_state s = read_tree(&t);
    assert_true(fabs(s.clock - (0.25 + 0.75 * 0.5)) < 1e-9);
    assert_true(fabs(s.clock_limit - (0.25 + 0.75 * 0.75)) < 1e-9);
    assert_int_equal(s.throttle, MICA_THROTTLE_LIMIT);
    tree_cpu(&t, 0, "cpufreq/scaling_cur_freq", "1300000"); /* boost */
    assert_true(read_tree(&t).clock <= 1.0);
    tree_cpu(&t, 0, "cpufreq/scaling_cur_freq", "0");
    tree_cpu(&t, 1, "cpufreq/scaling_cur_freq", "x");
    assert_true(isnan(read_tree(&t).clock));
    tree_free(&t);
}

static void counters_show_throttling_for_a_while(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 1);
    tree_cpu(&t, 0, "thermal_throttle/core_throttle_count", "41");
    tree_line(&t, "proc/self/cgroup", "0::/app");
    tree_line(&t, "sys/fs/cgroup/app/cpu.stat", "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 7");
    mica_device *d = open_tree(&t);
    assert_int_equal(read_at(d, SECOND).throttle, 0); /* 41 events of before */
    assert_int_equal(read_at(d, 2 * SECOND).throttle, 0);
    tree_cpu(&t, 0, "thermal_throttle/core_throttle_count", "42");
    assert_int_equal(read_at(d, 3 * SECOND).throttle, MICA_THROTTLE_COUNTER);
    assert_int_equal(read_at(d, 4 * SECOND).throttle, MICA_THROTTLE_COUNTER);
    tree_line(&t, "sys/fs/cgroup/app/cpu.stat", "nr_periods 20\nnr_throttled 4\n");
    assert_int_equal(read_at(d, 6 * SECOND).throttle, MICA_THROTTLE_QUOTA);
    assert_int_equal(read_at(d, 9 * SECOND).throttle, 0);
    mica_device_close(d);
    tree_free(&t);
}

static void memory_and_pressure(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, "proc/meminfo", "MemTotal:       8000000 kB\nMemAvailable:   5000000 kB");
    tree_line(&t, "proc/self/cgroup", "0::/app");
    tree_line(&t, "sys/fs/cgroup/app/memory.max", "2147483648");
    tree_line(&t, "sys/fs/cgroup/app/memory.current", "1073741824");
    tree_line(&t, "proc/pressure/memory",
              "some avg10=1.50 avg60=0.70 avg300=0.00 total=5\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=2");
    tree_line(&t, "proc/pressure/cpu", "some avg10=101.00 avg60=1.00 avg300=0.00 total=5");
    mica_device_state s = read_tree(&t);
    assert_int_equal(s.memory_total, INT64_C(8000000) * 1024);
    assert_int_equal(s.memory_limit, INT64_C(2147483648));
    assert_int_equal(s.memory_available, 1073741824);
    assert_true(s.psi_memory_some10 == 1.5 && s.psi_memory_full10 == 0.25);
    assert_true(isnan(s.psi_cpu_some10)); /* more than all of the time is absurd */
    tree_line(&t, "sys/fs/cgroup/app/memory.pressure",
              "some avg10=12.00 avg60=3.00 avg300=0.00 total=5\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=2");
    s = read_tree(&t);
    assert_true(s.psi_memory_some10 == 12.0 && s.psi_memory_full10 == 9.0); /* the group suffers, the machine does not */
    assert_true(mica_pressure_memory(t.root).some60 == 3.0);
    tree_line(&t, "sys/fs/cgroup/app/memory.max", "max");
    assert_int_equal(read_tree(&t).memory_limit, -1);
    tree_free(&t);
}

static void power_savers(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, "sys/firmware/acpi/platform_profile", "low-power");
    assert_int_equal(read_tree(&t).power_save, MICA_YES);
    tree_line(&t, "sys/firmware/acpi/platform_profile", "balanced");
    assert_int_equal(read_tree(&t).power_save, MICA_NO);
    tree_free(&t);
}

/* ---- Reports ---- */

static void what_is_not_said_stays(void **state)
{
    (void)state;
    fake_tree t = with_trips("28000");
    mica_device *d = open_tree(&t);
    mica_app_report r = mica_app_report_default();
    assert_int_equal(read_at(d, SECOND).reported_ns, 0);
    r.thermal = MICA_THERMAL_SEVERE;
    r.headroom = 0.9;
    r.foreground = MICA_YES;
    r.battery = MICA_BATTERY_CHARGING;
    r.battery_level = 0.18;
    assert_int_equal(mica_device_report(d, &r, NULL), MICA_OK);
    mica_device_state s = read_at(d, 2 * SECOND);
    assert_true(s.thermal == MICA_THERMAL_SEVERE && s.headroom == 0.9 && s.foreground == MICA_YES && s.reported_ns > 0);
    assert_true(s.throttle & MICA_THROTTLE_REPORTED);
    assert_true(s.battery == MICA_BATTERY_CHARGING && s.battery_level == 0.18 && s.trim == MICA_TRIM_UNKNOWN);
    r = mica_app_report_default();
    r.trim = MICA_TRIM_LOW;
    r.power_save = MICA_YES;
    assert_int_equal(mica_device_report(d, &r, NULL), MICA_OK);
    s = read_at(d, 3 * SECOND);
    assert_true(s.thermal == MICA_THERMAL_SEVERE && s.trim == MICA_TRIM_LOW && s.power_save == MICA_YES);
    r = mica_app_report_default();
    r.thermal = MICA_THERMAL_NONE;
    r.trim = MICA_TRIM_NONE;
    assert_int_equal(mica_device_report(d, &r, NULL), MICA_OK);
    s = read_at(d, 4 * SECOND);
    assert_true(s.thermal == MICA_THERMAL_NONE && s.trim == MICA_TRIM_NONE && s.power_save == MICA_YES);
    tree_line(&t, ZONE(7, "temp"), "44000"); /* the trip point knows better */
    assert_int_equal(read_at(d, 5 * SECOND).thermal, MICA_THERMAL_MODERATE);
    mica_device_close(d);
    tree_free(&t);
}

static void files_go_before_reports_of_the_battery(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, "sys/class/power_supply/BAT0/type", "Battery");
    tree_line(&t, "sys/class/power_supply/BAT0/status", "Discharging");
    tree_line(&t, "sys/class/power_supply/BAT0/capacity", "50");
    mica_device *d = open_tree(&t);
    mica_app_report r = mica_app_report_default();
    r.battery = MICA_BATTERY_CHARGING;
    r.battery_level = 0.9;
    r.on_mains = MICA_YES;
    assert_int_equal(mica_device_report(d, &r, NULL), MICA_OK);
    mica_device_state s = read_at(d, SECOND);
    assert_true(s.battery == MICA_BATTERY_DISCHARGING && s.battery_level == 0.5 && s.on_mains == MICA_NO);
    mica_device_close(d);
    tree_free(&t);
}

static void wrong_reports_change_nothing(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_device *d = open_tree(&t);
    mica_error err;
    mica_app_report bad[6];
    for (size_t i = 0; i < 6; i++) {
        bad[i] = mica_app_report_default();
        bad[i].foreground = MICA_YES;
    }
    bad[0].struct_size = 8;
    bad[1].thermal = (mica_thermal_status)7;
    bad[2].trim = (mica_trim_level)-2;
    bad[3].battery = (mica_battery_status)5;
    bad[4].battery_level = 1.5;
    bad[5].headroom = INFINITY;
    for (size_t i = 0; i < 6; i++) {
        err.message[0] = '\0';
        assert_int_equal(mica_device_report(d, &bad[i], &err), MICA_INVALID_ARGUMENT);
        assert_true(strlen(err.message) > 10);
    }
    assert_int_equal(mica_device_report(NULL, &bad[0], &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_device_report(d, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_device_read(NULL, NULL, &err), MICA_INVALID_ARGUMENT);
    mica_device_state s = read_at(d, SECOND);
    assert_true(s.foreground == MICA_UNKNOWN && s.reported_ns == 0);
    mica_device_close(d);
    tree_free(&t);
}

/* ---- Opening, intervals, threads ---- */

static void opening(void **state)
{
    (void)state;
    mica_device *d = NULL;
    mica_error err;
    mica_device_options o = mica_device_options_default();
    fake_tree t = tree_new();
    char absent[300];
    snprintf(absent, sizeof absent, "%s/absent", t.root);
    o.sysroot = absent;
    assert_int_equal(mica_device_open(&o, &d, &err), MICA_IO_ERROR);
    assert_null(d);
    tree_free(&t);
    o = mica_device_options_default();
    o.min_interval_ms = -1;
    assert_int_equal(mica_device_open(&o, &d, &err), MICA_INVALID_ARGUMENT);
    o = mica_device_options_default();
    o.struct_size--;
    assert_int_equal(mica_device_open(&o, &d, &err), MICA_INVALID_ARGUMENT);
    mica_device_close(NULL);
    assert_int_equal(mica_device_open(NULL, &d, &err), MICA_OK); /* this machine */
    mica_device_state s;
    assert_int_equal(mica_device_read(d, &s, &err), MICA_OK);
    assert_true(s.memory_total > 0 && s.memory_available > 0 && s.time_ns > 0);
    mica_device_close(d);
}

static void young_readings_are_given_again_with_new_reports(void **state)
{
    (void)state;
    fake_tree t = with_trips("28000");
    mica_device *d;
    mica_device_options o = mica_device_options_default();
    mica_device_state a, b;
    o.sysroot = t.root;
    o.min_interval_ms = 3600000;
    assert_int_equal(mica_device_open(&o, &d, NULL), MICA_OK);
    assert_int_equal(mica_device_read(d, &a, NULL), MICA_OK);
    tree_line(&t, ZONE(7, "temp"), "55000");
    mica_app_report r = mica_app_report_default();
    r.foreground = MICA_NO;
    assert_int_equal(mica_device_report(d, &r, NULL), MICA_OK);
    assert_int_equal(mica_device_read(d, &b, NULL), MICA_OK);
    assert_int_equal(a.time_ns, b.time_ns);
    assert_int_equal(b.temp_skin_mc, 28000);
    assert_int_equal(b.foreground, MICA_NO);
    mica_device_close(d);
    tree_free(&t);
}

typedef struct crowd {
    mica_device *device;
    atomic_int wrong, next;
} crowd;

/* Each reports both of two fields with the same meaning; nobody may ever see one without the other. */
static void *report_and_read(void *user)
{
    crowd *c = user;
    int me = atomic_fetch_add(&c->next, 1);
    for (int i = 0; i < 200; i++) {
        mica_app_report r = mica_app_report_default();
        mica_device_state s;
        bool hot = (i + me) % 2;
        r.thermal = hot ? MICA_THERMAL_SEVERE : MICA_THERMAL_NONE;
        r.trim = hot ? MICA_TRIM_CRITICAL : MICA_TRIM_NONE;
        if (mica_device_report(c->device, &r, NULL) || mica_device_read(c->device, &s, NULL) ||
            (s.thermal == MICA_THERMAL_SEVERE) != (s.trim == MICA_TRIM_CRITICAL))
            atomic_fetch_add(&c->wrong, 1);
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    pthread_t thread[4];
    crowd c = {.device = open_tree(&t)};
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, report_and_read, &c), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(atomic_load(&c.wrong), 0);
    mica_device_close(c.device);
    tree_free(&t);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(mica_thermal_status_name(MICA_THERMAL_UNKNOWN), "unknown");
    assert_string_equal(mica_thermal_status_name(MICA_THERMAL_NONE), "none");
    assert_string_equal(mica_thermal_status_name(MICA_THERMAL_SHUTDOWN), "shutdown");
    assert_string_equal(mica_thermal_status_name((mica_thermal_status)99), "unknown");
    assert_string_equal(mica_battery_status_name(MICA_BATTERY_IDLE), "idle");
    assert_string_equal(mica_battery_status_name((mica_battery_status)5), "unknown");
    assert_string_equal(mica_trim_level_name(MICA_TRIM_CRITICAL), "critical");
    assert_string_equal(mica_trim_level_name((mica_trim_level)-7), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_unknown),
        cmocka_unit_test(units_of_zones),
        cmocka_unit_test(kinds_of_zones),
        cmocka_unit_test(trips_make_the_status),
        cmocka_unit_test(cooling_devices),
        cmocka_unit_test(clocks_weigh_by_capacity),
        cmocka_unit_test(counters_show_throttling_for_a_while),
        cmocka_unit_test(memory_and_pressure),
        cmocka_unit_test(power_savers),
        cmocka_unit_test(what_is_not_said_stays),
        cmocka_unit_test(files_go_before_reports_of_the_battery),
        cmocka_unit_test(wrong_reports_change_nothing),
        cmocka_unit_test(opening),
        cmocka_unit_test(young_readings_are_given_again_with_new_reports),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
