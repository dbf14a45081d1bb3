/* What is read of a machine: a fake tree in, numbers out; readings that cannot be true are none; samples come once an interval.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "../unit/fake_tree.h"
#include "base/clock.h"
#include "bench/host.h"
#include "device/pagecache.h"
#include "bench/procmem.h"
#include "bench/samples.h"
#include "bench/sensors.h"

static void zone(const fake_tree *t, int i, const char *type, const char *temp)
{
    char path[128];
    snprintf(path, sizeof path, "sys/class/thermal/thermal_zone%d/type", i);
    tree_line(t, path, type);
    snprintf(path, sizeof path, "sys/class/thermal/thermal_zone%d/temp", i);
    tree_line(t, path, temp);
}

static void test_nothing(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_sensors s;
    mica_sensors_read(t.root, &s);
    assert_true(s.n_zones == 0 && s.n_clocks == 0 && s.n_energy == 0 && s.cooling_active == -1);
    assert_true(s.busy_ticks == -1 && s.total_ticks == -1 && s.swap_pages == -1 && isnan(s.psi_cpu) &&
                isnan(s.battery_percent));
    assert_string_equal(s.battery, "");
    tree_free(&t);
}

static void test_everything(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_sensors s;
    zone(&t, 0, "x86_pkg_temp", "61500");
    zone(&t, 1, "battery", "-1");
    zone(&t, 2, "modem", "0");
    zone(&t, 3, "skin", "250000");
    zone(&t, 4, "gpu\" <x>", "44000");
    zone(&t, 5, "text", "warm");
    tree_line(&t, "sys/class/thermal/cooling_device0/type", "Processor");
    tree_line(&t, "sys/class/thermal/cooling_device0/cur_state", "0");
    tree_line(&t, "sys/class/thermal/cooling_device1/type", "thermal-cpufreq-4");
    tree_line(&t, "sys/class/thermal/cooling_device1/cur_state", "3");
    tree_line(&t, "sys/class/thermal/cooling_device2/type", "fan");
    tree_line(&t, "sys/class/thermal/cooling_device2/cur_state", "9");
    tree_cpu(&t, 0, "cpufreq/scaling_cur_freq", "1800000");
    tree_cpu(&t, 1, "cpufreq/scaling_cur_freq", "600000");
    tree_line(&t, "proc/stat", "cpu  100 1 20 1000 50 3 4 5 7 0\ncpu0 1 1 1 1");
    tree_line(&t, "proc/vmstat", "nr_free_pages 1\npswpin 10\npswpout 32");
    tree_line(&t, "proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=5");
    tree_line(&t, "sys/class/power_supply/BAT0/type", "Battery");
    tree_line(&t, "sys/class/power_supply/BAT0/status", "Discharging");
    tree_line(&t, "sys/class/power_supply/BAT0/capacity", "83");
    tree_line(&t, "sys/class/powercap/intel-rapl:0/name", "package-0");
    tree_line(&t, "sys/class/powercap/intel-rapl:0/energy_uj", "123456");
    tree_line(&t, "sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850");
    mica_sensors_read(t.root, &s);
    assert_int_equal(s.n_zones, 2);
    assert_string_equal(s.zone[0].name, "x86_pkg_temp#0");
    assert_true(s.zone[0].celsius == 61.5 && s.zone[1].celsius == 44.0);
    assert_null(strpbrk(s.zone[1].name, "\"\\"));
    assert_true(s.n_cooling == 2 && s.cooling_active == 1);
    assert_true(s.n_clocks == 2 && s.mhz[0] == 1800 && s.mhz[1] == 600);
    assert_true(s.total_ticks == 1183 && s.busy_ticks == 133);
    assert_int_equal(s.swap_pages, 42);
    assert_true(s.psi_cpu == 12.5 && isnan(s.psi_io));
    assert_string_equal(s.battery, "Discharging");
    assert_true(s.battery_percent == 83.0);
    assert_true(s.n_energy == 1 && s.energy_uj[0] == 123456 && s.energy_range_uj[0] == 262143328850);
    tree_free(&t);
}

static void test_process(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_procmem m;
    int64_t ticks;
    mica_error err;
    tree_line(&t, "proc/77/status",
              "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nRssAnon:\t 512 kB\nRssFile:\t 448 kB\nRssShmem:\t 64 "
              "kB\nVmSwap:\t 8 kB");
    tree_line(&t, "proc/77/smaps_rollup",
              "00-ff ---p 0 0:0 0 [rollup]\nRss: 1024 kB\nPss: 700 kB\nPrivate_Clean: 100 kB\nPrivate_Dirty: 500 kB");
    tree_line(&t, "proc/77/stat", "77 (a ) b) S 12 77 77 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 2 0 99 1 1");
    tree_line(&t, "proc/12/stat", "12 (sh) S 5 12 12 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 1 1 1");
    assert_int_equal(mica_procmem_read(t.root, 77, &m, &err), MICA_OK);
    assert_true(m.usage.peak_bytes == 2048 << 10 && m.usage.anon_bytes == 512 << 10 && m.shared_bytes == 64 << 10 &&
                m.swap_bytes == 8 << 10);
    assert_true(m.pss_bytes == 700 << 10 && m.private_bytes == 600 << 10);
    assert_true(mica_proc_ticks(t.root, 77, &ticks));
    assert_int_equal(ticks, 300); /* in spite of the bracket in its name */
    assert_true(mica_proc_descends(t.root, 77, 12) && mica_proc_descends(t.root, 77, 5));
    assert_false(mica_proc_descends(t.root, 77, 6));
    assert_false(mica_proc_ticks(t.root, 78, &ticks));
    tree_free(&t);
}

static void test_samples(void **state)
{
    (void)state;
    mica_sampler_thread *s;
    mica_error err;
    json_t *first, *rest, *sample;
    size_t i;
    int64_t before = 0;
    volatile double work = 0;
    assert_int_equal(mica_samples_start(NULL, getpid(), 0.05, &s, &err), MICA_OK);
    for (int64_t end_ns = mica_now_ns() + 2000000000; mica_now_ns() < end_ns;)
        for (int k = 0; k < 100000; k++)
            work += k;
    assert_true(work > 0.0);
    first = mica_samples_take(s);
    mica_samples_stop(s, &rest);
    assert_true(json_array_size(first) >= 5);
    assert_true(json_array_size(rest) >= 1); /* the last one */
    json_array_extend(first, rest);
    double process = 0.0;
    json_array_foreach(first, i, sample)
    {
        int64_t t = json_integer_value(json_object_get(sample, "t_ns"));
        assert_true(t > before);
        before = t;
        assert_true(json_integer_value(json_object_get(sample, "rss_bytes")) > 100000);
        process = fmax(process, json_number_value(json_object_get(sample, "cpu_process")));
    }
    assert_true(process > 0.05); /* it worked all the time, as far as the machine let it */
    json_decref(first);
    json_decref(rest);
    mica_samples_stop(NULL, NULL);
}

static void test_host(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char key[160], digest[65], path[600];
    mica_error err;
    tree_flat(&t, 4);
    tree_line(&t, "proc/cpuinfo", "processor\t: 0\nmodel name\t: Imaginary CPU @ 3 GHz\nflags\t: a b");
    tree_line(&t, "proc/meminfo", "MemTotal:       1024 kB\nMemAvailable:    512 kB");
    json_t *host = mica_host_describe(t.root);
    assert_string_equal(json_string_value(json_object_get(host, "cpu")), "Imaginary CPU @ 3 GHz");
    assert_int_equal(json_integer_value(json_object_get(host, "memory_bytes")), 1024 * 1024);
    mica_host_key(host, key);
    assert_string_equal(key, "Imaginary CPU @ 3 GHz, 1048576 bytes");
    json_decref(host);
    tree_bytes(&t, "abc", "abc", 3);
    snprintf(path, sizeof path, "%s/abc", t.root);
    assert_int_equal(mica_host_sha256(path, NULL, NULL, digest, &err), MICA_OK);
    assert_string_equal(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); /* FIPS 180-2, B.1 */
    snprintf(path, sizeof path, "%s/absent", t.root);
    assert_int_equal(mica_host_sha256(path, NULL, NULL, digest, &err), MICA_IO_ERROR);
    tree_free(&t);
}

/* Whether pages can be dropped is the file system's affair: that what is told is true is what counts. */
static void test_page_cache(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char path[600];
    double part;
    mica_error err;
    char *data = calloc(1, 1 << 20);
    tree_bytes(&t, "file", data, 1 << 20);
    snprintf(path, sizeof path, "%s/file", t.root);
    assert_int_equal(mica_pagecache_resident(path, &part, &err), MICA_OK);
    assert_true(part > 0.99); /* just written */
    assert_int_equal(mica_pagecache_drop(path, &part, &err), MICA_OK);
    assert_true(part >= 0.0 && part <= 1.0);
    double again;
    assert_int_equal(mica_pagecache_resident(path, &again, &err), MICA_OK);
    assert_true(again == part);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(data, 1, 1 << 20, f), 1 << 20);
    fclose(f);
    assert_int_equal(mica_pagecache_resident(path, &part, &err), MICA_OK);
    assert_true(part > 0.99);
    tree_bytes(&t, "folder/a", data, 1 << 20);
    tree_bytes(&t, "folder/empty", data, 0);
    snprintf(path, sizeof path, "%s/folder", t.root);
    assert_int_equal(mica_pagecache_resident(path, &part, &err), MICA_OK);
    assert_true(part > 0.99);
    assert_int_equal(mica_pagecache_drop(path, &part, &err), MICA_OK);
    snprintf(path, sizeof path, "%s/absent", t.root);
    assert_int_equal(mica_pagecache_resident(path, &part, &err), MICA_IO_ERROR);
    free(data);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_everything), cmocka_unit_test(test_process),
        cmocka_unit_test(test_samples), cmocka_unit_test(test_host),       cmocka_unit_test(test_page_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
