/* How much memory is available and used, from fake and damaged /proc and cgroup files. */
#include "device/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_tree.h"

#define MEM_01 MICA_TEST_DATA "/cases/mem-01-status-parsing/"
#define KIB(n) ((int64_t)(n)*1024)

/* ---- Used ------------------------------------------------------------------------------------------------------------ */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    char *text = calloc(1, 4096);
    assert_non_null(text);
    assert_in_range(fread(text, 1, 4096, f), 0, 4095);
    fclose(f);
    return text;
}

static void mem_01_status_parsing(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t peak, rss, anon, file;
    } cases[] = {
        {"normal", 670024704, KIB(543210), 146647040, 409600000},
        {"no_newline", 670024704, KIB(543210), 146647040, 409600000},
        {"spaces", 670024704, KIB(543210), 146647040, 409600000},
        {"name_trick", 670024704, KIB(543210), 146647040, 409600000},
        {"no_hwm", -1, KIB(543210), 146647040, 409600000},
        {"empty", -1, -1, -1, -1},
        {"hwm_below_rss", KIB(543210), KIB(543210), 146647040, 409600000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", MEM_01, cases[i].name);
        char *text = read_file(path);
        mica_memory_usage usage;
        assert_int_equal(mica_memory_usage_parse(text, &usage, NULL), MICA_OK);
        if (usage.peak_bytes != cases[i].peak || usage.rss_bytes != cases[i].rss || usage.anon_bytes != cases[i].anon ||
            usage.file_bytes != cases[i].file)
            fail_msg("%s: peak %lld rss %lld anon %lld file %lld", cases[i].name, (long long)usage.peak_bytes,
                     (long long)usage.rss_bytes, (long long)usage.anon_bytes, (long long)usage.file_bytes);
        fake_tree t = tree_new();
        tree_bytes(&t, "proc/self/status", text, strlen(text));
        assert_int_equal(mica_memory_peak_rss(t.root), cases[i].peak);
        tree_free(&t);
        free(text);
    }
}

static void mem_01_huge_is_an_error(void **state)
{
    (void)state;
    char *text = read_file(MEM_01 "huge");
    mica_memory_usage usage;
    mica_error err;
    assert_int_equal(mica_memory_usage_parse(text, &usage, &err), MICA_BAD_FILE);
    assert_non_null(strstr(err.message, "VmHWM"));
    assert_int_equal(err.position, strstr(text, "9999") - text);
    assert_int_equal(usage.peak_bytes, -1);
    assert_int_equal(usage.rss_bytes, -1);
    fake_tree t = tree_new();
    tree_bytes(&t, "proc/self/status", text, strlen(text));
    assert_int_equal(mica_memory_peak_rss(t.root), -1);
    tree_free(&t);
    free(text);
}

static void damaged_status_lines(void **state)
{
    (void)state;
    static const char *const bad[] = {"VmHWM:", "VmHWM:\tkB", "VmHWM:\t12", "VmHWM:\t12 MB", "VmHWM:\t-5 kB", "VmHWM:\t1x kB",
                                      "VmHWM:\t9007199254740992 kB", "VmHWM:\n12 kB"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mica_memory_usage usage;
        if (mica_memory_usage_parse(bad[i], &usage, NULL) != MICA_BAD_FILE)
            fail_msg("\"%s\" was accepted: %lld", bad[i], (long long)usage.peak_bytes);
    }
    mica_memory_usage usage;
    assert_int_equal(mica_memory_usage_parse("XVmHWM: 1 kB\n VmHWM: 2 kB\nVmHWMX: 3 kB\nVmHWM: 0 kB", &usage, NULL), MICA_OK);
    assert_int_equal(usage.peak_bytes, 0);
    assert_int_equal(mica_memory_usage_parse("VmHWM: 9007199254740991 kB", &usage, NULL), MICA_OK);
    assert_int_equal(usage.peak_bytes, INT64_C(9007199254740991) * 1024);
}

static void missing_status(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_memory_usage usage;
    mica_error err;
    assert_int_equal(mica_memory_usage_read(t.root, &usage, &err), MICA_IO_ERROR);
    assert_non_null(strstr(err.message, "/proc/self/status"));
    assert_int_equal(mica_memory_peak_rss(t.root), -1);
    tree_free(&t);
    assert_int_equal(mica_memory_peak_rss(t.root), -1); /* the root is gone */
}

static void peak_of_this_process(void **state)
{
    (void)state;
    enum { BYTES = 32 << 20 };
    int64_t before = mica_memory_peak_rss(NULL);
    assert_true(before > 0);
    char *block = malloc(BYTES);
    assert_non_null(block);
    memset(block, 1, BYTES);
    char sum = 0;
    for (size_t i = 0; i < BYTES; i += 4096)
        sum = (char)(sum + ((volatile char *)block)[i]);
    free(block);
    int64_t after = mica_memory_peak_rss("");
    assert_true(sum == 0 && after >= before && after > BYTES);
}

/* ---- Available ------------------------------------------------------------------------------------------------------- */

static void meminfo(const fake_tree *t, const char *total_kb, const char *available_kb)
{
    char text[512];
    snprintf(text, sizeof text, "MemTotal:       %s kB\nMemFree:        1000 kB\nMemAvailable:   %s kB\nCached:   2000 kB",
             total_kb, available_kb);
    tree_line(t, "proc/meminfo", text);
}

static void check_available(const fake_tree *t, int64_t bytes, const char *reason)
{
    mica_error err;
    int64_t got = -7;
    char why[MICA_MEMORY_REASON];
    if (mica_memory_available(t->root, &got, why, &err) != MICA_OK)
        fail_msg("%s", err.message);
    if (got != bytes || strcmp(why, reason) != 0)
        fail_msg("%lld bytes (%s), expected %lld (%s)", (long long)got, why, (long long)bytes, reason);
    assert_int_equal(mica_memory_available(t->root, &got, NULL, NULL), MICA_OK);
    assert_int_equal(got, bytes);
}

static void available_without_limits(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    meminfo(&t, "24600000", "20000000");
    check_available(&t, KIB(20000000), "MemAvailable of /proc/meminfo leaves 19531 MiB");
    tree_line(&t, "proc/self/cgroup", "0::/app.slice");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.max", "max");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.high", "max");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.current", "500000000");
    check_available(&t, KIB(20000000), "MemAvailable of /proc/meminfo leaves 19531 MiB");
    tree_line(&t, "proc/meminfo", "MemFree: 1000 kB\nCached: 2000 kB"); /* an old kernel */
    check_available(&t, KIB(3000), "MemFree and Cached of /proc/meminfo leaves 2 MiB");
    tree_free(&t);
}

static void available_under_cgroup_v2(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    meminfo(&t, "24600000", "20000000");
    tree_line(&t, "proc/self/cgroup", "0::/app.slice/unit");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.max", "2147483648");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.high", "max");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.current", "1900000000");
    check_available(&t, 247483648, "/sys/fs/cgroup/app.slice/memory.max leaves 236 MiB");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.high", "2000000000");
    check_available(&t, 100000000, "/sys/fs/cgroup/app.slice/memory.high leaves 95 MiB");
    tree_line(&t, "sys/fs/cgroup/app.slice/unit/memory.max", "1050000000"); /* the inner group is tighter */
    tree_line(&t, "sys/fs/cgroup/app.slice/unit/memory.current", "1000000000");
    check_available(&t, 50000000, "/sys/fs/cgroup/app.slice/unit/memory.max leaves 47 MiB");
    tree_line(&t, "sys/fs/cgroup/app.slice/unit/memory.stat", "anon 600000000\nfile 400000000\ninactive_file 300000000");
    check_available(&t, 100000000, "/sys/fs/cgroup/app.slice/memory.high leaves 95 MiB");
    tree_line(&t, "sys/fs/cgroup/app.slice/unit/memory.stat", "inactive_file 99999999999"); /* more than is used */
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.current", "2500000000");                 /* over the limit */
    check_available(&t, 0, "/sys/fs/cgroup/app.slice/memory.max leaves 0 MiB");
    tree_free(&t);
}

static void available_under_cgroup_v1(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    meminfo(&t, "24600000", "20000000");
    tree_line(&t, "proc/self/cgroup", "4:memory:/ci/job7\n1:cpu:/\n0::/");
    tree_line(&t, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    tree_line(&t, "sys/fs/cgroup/memory/ci/job7/memory.limit_in_bytes", "4294967296");
    check_available(&t, 4294967296, "/sys/fs/cgroup/memory/ci/job7/memory.limit_in_bytes leaves 4096 MiB");
    tree_line(&t, "sys/fs/cgroup/memory/ci/job7/memory.usage_in_bytes", "3294967296");
    tree_line(&t, "sys/fs/cgroup/memory/ci/job7/memory.stat", "inactive_file 7\ntotal_inactive_file 500000000");
    check_available(&t, 1500000000, "/sys/fs/cgroup/memory/ci/job7/memory.limit_in_bytes leaves 1430 MiB");
    tree_free(&t);
}

static void limits_without_meminfo(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, "sys/fs/cgroup/memory.max", "1000000000"); /* inside a container, no /proc/self/cgroup */
    check_available(&t, 1000000000, "/sys/fs/cgroup/memory.max leaves 953 MiB");
    tree_free(&t);
}

static void long_path_in_the_reason(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char name[201], path[512], line[512], why[MICA_MEMORY_REASON];
    memset(name, 'n', 200);
    name[200] = '\0';
    snprintf(line, sizeof line, "0::/%s", name);
    tree_line(&t, "proc/self/cgroup", line);
    snprintf(path, sizeof path, "sys/fs/cgroup/%s/memory.max", name);
    tree_line(&t, path, "1048576");
    int64_t bytes;
    assert_int_equal(mica_memory_available(t.root, &bytes, why, NULL), MICA_OK);
    assert_int_equal(bytes, 1048576);
    assert_non_null(strstr(why, "nnn/memory.max leaves 1 MiB"));
    tree_free(&t);
}

static void nothing_known_is_an_error(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "MemAvailable:", "MemAvailable: -1 kB", "MemAvailable: 9999999999999999999 kB",
                                        "MemAvailable: 5 GB", "MemFree: 1 kB", "\xff\xff\n\n", "max", "-1", "12z"};
    fake_tree t = tree_new();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t bytes = -7;
        mica_error err;
        tree_line(&t, "proc/meminfo", texts[i]);
        tree_line(&t, "sys/fs/cgroup/memory.max", texts[i]);
        tree_line(&t, "sys/fs/cgroup/memory.high", texts[i]);
        tree_line(&t, "sys/fs/cgroup/memory.current", "5");
        tree_line(&t, "sys/fs/cgroup/memory/memory.limit_in_bytes", texts[i]);
        if (mica_memory_available(t.root, &bytes, NULL, &err) != MICA_IO_ERROR)
            fail_msg("\"%s\" gave %lld bytes", texts[i], (long long)bytes);
        assert_int_equal(bytes, -7);
        assert_non_null(strstr(err.message, "cannot tell how much memory is available"));
    }
    tree_free(&t);
    mica_error err;
    int64_t bytes;
    assert_int_equal(mica_memory_available(t.root, &bytes, NULL, &err), MICA_IO_ERROR);
    assert_non_null(strstr(err.message, "as system root"));
}

static void available_on_this_machine(void **state)
{
    (void)state;
    int64_t bytes = 0;
    char why[MICA_MEMORY_REASON];
    mica_error err;
    if (mica_memory_available(NULL, &bytes, why, &err) != MICA_OK)
        fail_msg("%s", err.message);
    assert_true(bytes > 1 << 20 && bytes < INT64_C(1) << 50);
    print_message("%s\n", why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mem_01_status_parsing),
        cmocka_unit_test(mem_01_huge_is_an_error),
        cmocka_unit_test(damaged_status_lines),
        cmocka_unit_test(missing_status),
        cmocka_unit_test(peak_of_this_process),
        cmocka_unit_test(available_without_limits),
        cmocka_unit_test(available_under_cgroup_v2),
        cmocka_unit_test(available_under_cgroup_v1),
        cmocka_unit_test(limits_without_meminfo),
        cmocka_unit_test(long_path_in_the_reason),
        cmocka_unit_test(nothing_known_is_an_error),
        cmocka_unit_test(available_on_this_machine),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
