/* Which CPUs are found in /proc and /sys, and what is planned from them. Names carry the ids of the cases in data/cases. */
#include "device/cpulist.h"
#include "device/cpus.h"
#include "device/sysfile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_tree.h"

#define CASES MICA_TEST_DATA "/cases/"

static mica_thread_plan plan_all(const char *root)
{
    mica_thread_plan plan;
    mica_error err;
    if (mica_thread_plan_all(root, &plan, &err) != MICA_OK)
        fail_msg("%s", err.message);
    return plan;
}

static mica_thread_plan plan_default(const char *root)
{
    mica_thread_plan plan;
    mica_error err;
    if (mica_thread_plan_default(root, &plan, &err) != MICA_OK)
        fail_msg("%s", err.message);
    return plan;
}

static mica_cpu_set cpus_of(const fake_tree *t)
{
    mica_cpu_set set;
    mica_error err;
    if (mica_cpus_read(t->root, &set, &err) != MICA_OK)
        fail_msg("%s", err.message);
    return set;
}

/** The plan's CPUs are exactly cpus[0..n), in this order; the rest of the array is -1. */
static void check_cpus(const mica_thread_plan *plan, int n, const int *cpus)
{
    assert_int_equal(plan->n_threads, n);
    for (int i = 0; i < n; i++)
        if (plan->cpus[i] != cpus[i])
            fail_msg("thread %d is on CPU %d, expected %d (%s)", i, plan->cpus[i], cpus[i], plan->reason);
    for (int i = n; i < MICA_MAX_THREADS; i++)
        assert_int_equal(plan->cpus[i], -1);
}

#define CHECK_CPUS(plan, ...)                                                                                                  \
    check_cpus((plan), (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__})

static void check_says(const mica_thread_plan *plan, const char *part)
{
    if (!strstr(plan->reason, part))
        fail_msg("reason \"%s\" lacks \"%s\"", plan->reason, part);
}

static void check_unpinned(const mica_thread_plan *plan)
{
    for (int i = 0; i < MICA_MAX_THREADS; i++)
        assert_int_equal(plan->cpus[i], -1);
}

/* ---- Cases ----------------------------------------------------------------------------------------------------------- */

static void thr_01_cgroup2_quota(void **state)
{
    (void)state;
    mica_thread_plan plan = plan_all(CASES "thr-01-cgroup2-quota/tree");
    assert_int_equal(plan.n_threads, 4);
    assert_string_equal(plan.reason, "cpu.max allows 4 of 8 CPUs");
    plan = plan_all(CASES "thr-01-cgroup2-quota/max");
    CHECK_CPUS(&plan, 0, 1, 2, 3, 4, 5, 6, 7);
    assert_string_equal(plan.reason, "all 8 CPUs");
    plan = plan_all(CASES "thr-01-cgroup2-quota/half");
    assert_int_equal(plan.n_threads, 1);
    assert_string_equal(plan.reason, "cpu.max allows 0.5 of 8 CPUs");

    plan = plan_default(CASES "thr-01-cgroup2-quota/tree");
    assert_int_equal(plan.n_threads, 2);
    assert_string_equal(plan.reason, "cpu.max allows 4 of 8 CPUs; half of 4 cores");
    check_unpinned(&plan);
    assert_int_equal(plan_default(CASES "thr-01-cgroup2-quota/max").n_threads, 4);
    assert_int_equal(plan_default(CASES "thr-01-cgroup2-quota/half").n_threads, 1);
}

static void thr_03_big_little(void **state)
{
    (void)state;
    mica_thread_plan plan = plan_all(CASES "thr-03-big-little/tree");
    CHECK_CPUS(&plan, 7, 4, 5, 6);
    check_says(&plan, "4 of 8 cores are fast");
    plan = plan_all(CASES "thr-03-big-little/freq_only");
    CHECK_CPUS(&plan, 6, 7);
    check_says(&plan, "2 of 8 cores are fast");
    plan = plan_all(CASES "thr-03-big-little/flat");
    CHECK_CPUS(&plan, 0, 1, 2, 3, 4, 5, 6, 7);
    plan = plan_all(CASES "thr-03-big-little/bg");
    CHECK_CPUS(&plan, 0, 1, 2, 3);
    check_says(&plan, "affinity and cpuset allow 4 of 8 CPUs");

    plan = plan_default(CASES "thr-03-big-little/tree"); /* half of 8, and pinned, so that none strays to a slow core */
    CHECK_CPUS(&plan, 7, 4, 5, 6);
    plan = plan_default(CASES "thr-03-big-little/freq_only");
    CHECK_CPUS(&plan, 6, 7);
    plan = plan_default(CASES "thr-03-big-little/flat");
    assert_int_equal(plan.n_threads, 4);
    check_unpinned(&plan);
    plan = plan_default(CASES "thr-03-big-little/bg");
    assert_int_equal(plan.n_threads, 2);
    check_unpinned(&plan);
}

static void thr_05_smt_siblings(void **state)
{
    (void)state;
    mica_thread_plan plan = plan_all(CASES "thr-05-smt-siblings/pairs");
    CHECK_CPUS(&plan, 0, 1, 2, 3);
    assert_string_equal(plan.reason, "8 CPUs share 4 cores");
    plan = plan_all(CASES "thr-05-smt-siblings/adjacent");
    CHECK_CPUS(&plan, 0, 2, 4, 6);
    plan = plan_all(CASES "thr-05-smt-siblings/masked");
    CHECK_CPUS(&plan, 1, 3, 5);
    plan = plan_all(CASES "thr-05-smt-siblings/hybrid");
    CHECK_CPUS(&plan, 0, 2);
    check_says(&plan, "2 of 6 cores are fast");

    assert_int_equal(plan_default(CASES "thr-05-smt-siblings/pairs").n_threads, 2);
    assert_int_equal(plan_default(CASES "thr-05-smt-siblings/masked").n_threads, 2);
    plan = plan_default(CASES "thr-05-smt-siblings/hybrid");
    CHECK_CPUS(&plan, 0, 2);
}

/* ---- Limits ---------------------------------------------------------------------------------------------------------- */

static void quota_is_the_least_along_the_path(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 16);
    tree_line(&t, "proc/self/cgroup", "0::/a.slice/b.scope/c");
    tree_line(&t, "sys/fs/cgroup/a.slice/cpu.max", "350000 100000");
    tree_line(&t, "sys/fs/cgroup/a.slice/b.scope/cpu.max", "800000 100000");
    tree_line(&t, "sys/fs/cgroup/a.slice/b.scope/c/cpu.max", "max 100000");
    tree_line(&t, "sys/fs/cgroup/other/cpu.max", "1000 100000"); /* not on the path */
    mica_cpu_set set = cpus_of(&t);
    assert_true(set.quota == 3.5);
    assert_string_equal(set.quota_source, "/sys/fs/cgroup/a.slice/cpu.max");
    mica_thread_plan plan = plan_all(t.root);
    CHECK_CPUS(&plan, 0, 1, 2);
    assert_string_equal(plan.reason, "cpu.max allows 3.5 of 16 CPUs");
    assert_int_equal(plan_default(t.root).n_threads, 2); /* half of 3, rounded up */
    tree_line(&t, "sys/fs/cgroup/cpu.max", "100000"); /* the root of a container's own namespace; default period */
    assert_true(cpus_of(&t).quota == 1.0);
    tree_free(&t);
}

static void quota_of_cgroup_v1(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 8);
    tree_line(&t, "proc/self/cgroup", "5:cpuset:/ci\n4:cpu,cpuacct:/ci/job7\n1:name=systemd:/x\n0::/");
    tree_line(&t, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
    tree_line(&t, "sys/fs/cgroup/cpu,cpuacct/ci/cpu.cfs_quota_us", "120000");
    tree_line(&t, "sys/fs/cgroup/cpu,cpuacct/ci/cpu.cfs_period_us", "50000");
    tree_line(&t, "sys/fs/cgroup/cpu,cpuacct/ci/job7/cpu.cfs_quota_us", "-1");
    mica_cpu_set set = cpus_of(&t);
    assert_true(set.quota == 2.4);
    assert_string_equal(set.quota_source, "/sys/fs/cgroup/cpu,cpuacct/ci/cpu.cfs_quota_us");
    mica_thread_plan plan = plan_all(t.root);
    assert_int_equal(plan.n_threads, 2);
    assert_string_equal(plan.reason, "cpu.cfs_quota_us allows 2.4 of 8 CPUs");
    tree_free(&t);
}

/** A container without cgroup namespace sees its host's path but only its own mount. */
static void quota_when_the_path_is_the_hosts(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 8);
    tree_line(&t, "proc/self/cgroup", "3:cpu:/docker/0123456789abcdef");
    tree_line(&t, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000");
    assert_true(cpus_of(&t).quota == 2.0);
    tree_line(&t, "proc/self/cgroup", "3:cpu:/../../elsewhere");
    tree_line(&t, "sys/fs/elsewhere/cpu.cfs_quota_us", "1000"); /* must not be reached through ".." */
    assert_true(cpus_of(&t).quota == 2.0);
    tree_free(&t);
}

static void damaged_quotas_are_ignored(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "0 100000", "-5 100000", "400000 0", "400000 -1", "400000x 100000", "400000 10z",
                                      "99999999999999999999 100000", "max", "NaN", "\x80\xff"};
    fake_tree t = tree_new();
    tree_flat(&t, 8);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tree_line(&t, "sys/fs/cgroup/cpu.max", bad[i]);
        if (cpus_of(&t).quota != 0)
            fail_msg("\"%s\" was taken for a quota of %g", bad[i], cpus_of(&t).quota);
    }
    tree_line(&t, "sys/fs/cgroup/cpu.max", "9000000000000000000 1"); /* no limit in effect */
    assert_int_equal(plan_all(t.root).n_threads, 8);
    tree_line(&t, "sys/fs/cgroup/cpu.max", "1 9000000000000000000"); /* nearly nothing: still one thread */
    assert_int_equal(plan_all(t.root).n_threads, 1);
    tree_free(&t);
}

static void cpuset_of_the_nearest_group(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 8);
    tree_line(&t, "proc/self/cgroup", "0::/a/b");
    tree_line(&t, "sys/fs/cgroup/a/cpuset.cpus.effective", "2-5");
    tree_line(&t, "sys/fs/cgroup/cpuset.cpus.effective", "0-1"); /* the root lost 2-5 to the partition a */
    mica_thread_plan plan = plan_all(t.root);
    CHECK_CPUS(&plan, 2, 3, 4, 5);
    assert_string_equal(plan.reason, "affinity and cpuset allow 4 of 8 CPUs");
    tree_line(&t, "sys/fs/cgroup/a/b/cpuset.cpus.effective", ""); /* empty: the parent's holds */
    assert_int_equal(cpus_of(&t).n, 4);
    tree_line(&t, "sys/fs/cgroup/a/b/cpuset.cpus.effective", "100-101"); /* not this machine's */
    assert_int_equal(cpus_of(&t).n, 8);
    tree_line(&t, "proc/self/cgroup", "2:cpuset:/top-app");
    tree_line(&t, "sys/fs/cgroup/cpuset.cpus.effective", "0-7");
    tree_line(&t, "sys/fs/cgroup/cpuset/top-app/cpuset.cpus", "6-7");
    plan = plan_all(t.root);
    CHECK_CPUS(&plan, 6, 7);
    tree_free(&t);
}

/* ---- CPUs ------------------------------------------------------------------------------------------------------------ */

static void offline_cpus_and_holes(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, "sys/devices/system/cpu/online", "0,2-3,7,20-21");
    tree_line(&t, "sys/devices/system/cpu/present", "0-31");
    tree_line(&t, "proc/self/status", "Name:\tCpus_allowed_list:\t9\nCpus_allowed_list:\t0-127");
    mica_thread_plan plan = plan_all(t.root);
    CHECK_CPUS(&plan, 0, 2, 3, 7, 20, 21);
    assert_string_equal(plan.reason, "all 6 CPUs");
    tree_line(&t, "proc/self/status", "Cpus_allowed_list:\t1-2,21");
    plan = plan_all(t.root);
    CHECK_CPUS(&plan, 2, 21);
    tree_free(&t);
}

static void large_machines(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, "sys/devices/system/cpu/online", "1020-1031,4095,8191,8192,99999999999");
    tree_line(&t, "proc/self/status", "Cpus_allowed_list:\t1022-1025,2000-4294967295");
    mica_thread_plan plan = plan_all(t.root);
    CHECK_CPUS(&plan, 1022, 1023, 1024, 1025, 4095, 8191);
    tree_line(&t, "sys/devices/system/cpu/online", "0-4095");
    tree_line(&t, "proc/self/status", "Cpus_allowed_list:\t0-4095");
    mica_cpu_set set = cpus_of(&t);
    assert_int_equal(set.n, MICA_MAX_CPUS);
    assert_int_equal(set.n_online, 4096);
    plan = plan_all(t.root);
    assert_int_equal(plan.n_threads, MICA_MAX_THREADS);
    check_says(&plan, "at most 64 threads");
    tree_free(&t);
}

static void damaged_siblings(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 6);
    tree_cpu(&t, 0, "topology/thread_siblings_list", "");      /* empty */
    tree_cpu(&t, 1, "topology/thread_siblings_list", "4-5");   /* does not name itself */
    tree_cpu(&t, 2, "topology/thread_siblings_list", "0,2,");  /* not a list */
    tree_cpu(&t, 3, "topology/thread_siblings_list", "9-3");   /* backwards */
    tree_cpu(&t, 4, "topology/core_cpus_list", "4-5");         /* the newer name */
    tree_cpu(&t, 5, "topology/core_cpus_list", "4-5");
    mica_cpu_set set = cpus_of(&t);
    static const int cores[] = {0, 1, 2, 3, 4, 4};
    for (int i = 0; i < 6; i++)
        assert_int_equal(set.cpu[i].core, cores[i]);
    mica_thread_plan plan = plan_all(t.root);
    CHECK_CPUS(&plan, 0, 1, 2, 3, 4);
    tree_free(&t);
}

static void speeds(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 4);
    for (int i = 0; i < 3; i++)
        tree_cpu(&t, i, "cpufreq/cpuinfo_max_freq", i == 2 ? "5000000" : "4800000");
    mica_cpu_set set = cpus_of(&t);
    assert_false(set.from_frequency); /* one is unknown: no speed is believed */
    assert_int_equal(set.cpu[0].capacity, 1024);
    tree_cpu(&t, 3, "cpufreq/cpuinfo_max_freq", "5000000");
    set = cpus_of(&t);
    assert_true(set.from_frequency);
    assert_int_equal(set.cpu[2].capacity, 1024);
    assert_int_equal(set.cpu[0].capacity, 983);
    mica_thread_plan plan = plan_all(t.root); /* favourite cores first, but all four are of one kind */
    CHECK_CPUS(&plan, 2, 3, 0, 1);
    for (int i = 0; i < 4; i++)
        tree_cpu(&t, i, "cpu_capacity", i == 1 ? "1024" : "511");
    plan = plan_all(t.root); /* capacity goes before frequency */
    CHECK_CPUS(&plan, 1);
    plan = plan_default(t.root);
    CHECK_CPUS(&plan, 1);
    tree_cpu(&t, 0, "cpu_capacity", "512"); /* just half as fast */
    plan = plan_all(t.root);
    CHECK_CPUS(&plan, 1, 0);
    static const char *const bad[] = {"0", "-1", "99999999999", "fast", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tree_cpu(&t, 1, "cpu_capacity", bad[i]);
        assert_true(cpus_of(&t).from_frequency);
    }
    tree_free(&t);
}

/** The fastest sibling stands for its core, and quota, mask and speeds work together. */
static void everything_at_once(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 12);
    tree_line(&t, "proc/self/status", "Cpus_allowed_list:\t1-11");
    for (int i = 0; i < 12; i++) {
        char pair[32];
        snprintf(pair, sizeof pair, "%d-%d", i & ~1, i | 1);
        tree_cpu(&t, i, "topology/thread_siblings_list", i < 8 ? pair : "");
        tree_cpu(&t, i, "cpu_capacity", i >= 8 ? "400" : i == 5 ? "1024" : "1000");
    }
    tree_line(&t, "sys/fs/cgroup/cpu.max", "300000 100000");
    mica_thread_plan plan = plan_all(t.root);
    CHECK_CPUS(&plan, 5, 1, 2);
    assert_string_equal(plan.reason,
                        "affinity and cpuset allow 11 of 12 CPUs; 11 CPUs share 8 cores; cpu.max allows 3 of 11 CPUs");
    plan = plan_default(t.root);
    CHECK_CPUS(&plan, 5, 1);
    tree_free(&t);
}

/* ---- Nothing, or nonsense -------------------------------------------------------------------------------------------- */

static void check_one_thread(const char *root)
{
    mica_thread_plan plans[2] = {plan_all(root), plan_default(root)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(plans[i].n_threads, 1);
        check_unpinned(&plans[i]);
        assert_string_equal(plans[i].reason, "no usable CPU found under /proc and /sys");
    }
}

static void no_files_at_all(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    check_one_thread(t.root);
    tree_line(&t, "sys/devices/system/cpu/online", "0-3");
    tree_line(&t, "proc/self/status", "Cpus_allowed_list:\t4-7"); /* they contradict each other */
    check_one_thread(t.root);
    tree_line(&t, "proc/self/status", "Name:\tmica"); /* no mask: all online ones */
    assert_int_equal(plan_all(t.root).n_threads, 4);
    tree_remove(&t, "sys/devices/system/cpu/online");
    check_one_thread(t.root);
    tree_line(&t, "proc/self/status", "Cpus_allowed_list:\t0-2"); /* the mask alone */
    mica_thread_plan plan = plan_all(t.root);
    CHECK_CPUS(&plan, 0, 1, 2);
    tree_free(&t);
}

static void nonsense_in_every_file(void **state)
{
    (void)state;
    static const char *const paths[] = {"proc/self/status", "proc/self/cgroup", "sys/devices/system/cpu/online",
                                        "sys/devices/system/cpu/present", "sys/devices/system/cpu/possible",
                                        "sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpuset.cpus.effective"};
    static const char *const texts[] = {"", "\n\n\n", ":::::", "0::", "0::x", "-", "0-", ",", "0,,1", "3-0", "0x3", "\xff\xfe",
                                        "9:cpu", "Cpus_allowed_list:", "Cpus_allowed_list", "1 2 3", "0-3 garbage"};
    fake_tree t = tree_new();
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
            tree_bytes(&t, paths[i], texts[k], strlen(texts[k]));
        check_one_thread(t.root);
    }
    char *much = malloc(1 << 20); /* far more than any real file: not read */
    assert_non_null(much);
    memset(much, '1', 1 << 20);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        tree_bytes(&t, paths[i], much, 1 << 20);
    check_one_thread(t.root);
    free(much);
    tree_free(&t);
}

/** Things that are no regular files where files should be; a FIFO without writer would block a careless open for ever. */
static void folders_and_fifos(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char full[4096];
    tree_line(&t, "proc/self/status/x", "a folder");
    tree_parents(&t, "sys/devices/system/cpu/online", full, sizeof full);
    assert_int_equal(mkfifo(full, 0600), 0);
    tree_parents(&t, "proc/self/cgroup", full, sizeof full);
    assert_int_equal(symlink("cgroup", full), 0); /* points to itself */
    check_one_thread(t.root);
    tree_free(&t);
}

static void deep_and_long_cgroup_paths(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 4);
    char line[8192] = "0::";
    for (size_t n = 3; n + 3 < 3000; n += 2)
        memcpy(line + n, "/d", 3);
    tree_line(&t, "proc/self/cgroup", line);
    tree_line(&t, "sys/fs/cgroup/cpu.max", "200000 100000");
    assert_true(cpus_of(&t).quota == 2.0);
    memset(line + 3, 'x', sizeof line - 10);
    line[3] = '/';
    tree_line(&t, "proc/self/cgroup", line); /* longer than any path: the root alone */
    assert_true(cpus_of(&t).quota == 2.0);
    tree_line(&t, "proc/self/cgroup", "0::/a//b/");
    tree_line(&t, "sys/fs/cgroup/a/cpu.max", "100000 100000");
    assert_true(cpus_of(&t).quota == 1.0);
    tree_free(&t);
}

static void bad_roots_are_errors(void **state)
{
    (void)state;
    mica_thread_plan plan;
    mica_error err;
    fake_tree t = tree_new();
    char path[8192];
    snprintf(path, sizeof path, "%s/absent", t.root);
    assert_int_equal(mica_thread_plan_all(path, &plan, &err), MICA_IO_ERROR);
    assert_non_null(strstr(err.message, "absent as system root"));
    tree_line(&t, "file", "x");
    snprintf(path, sizeof path, "%s/file", t.root);
    assert_int_equal(mica_thread_plan_default(path, &plan, &err), MICA_IO_ERROR);
    assert_non_null(strstr(err.message, "not a folder"));
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(mica_thread_plan_all(path, &plan, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_thread_plan_all(path, &plan, NULL), MICA_INVALID_ARGUMENT);
    tree_free(&t);
}

static void this_machine(void **state)
{
    (void)state;
    mica_thread_plan all = plan_all(NULL), half = plan_default(""), again = plan_all("");
    assert_memory_equal(&all, &again, sizeof all);
    assert_in_range(all.n_threads, 1, MICA_MAX_THREADS);
    assert_in_range(half.n_threads, 1, (all.n_threads + 1) / 2 > 1 ? all.n_threads : 1);
    assert_true(all.reason[0] && half.reason[0]);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    assert_true(all.n_threads <= online);
    print_message("all: %d (%s); default: %d (%s)\n", all.n_threads, all.reason, half.n_threads, half.reason);
}

/* ---- The parsers ----------------------------------------------------------------------------------------------------- */

static void lists(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int n; /* -1: refused */
    } cases[] = {
        {"0", 1},      {"0-3,8", 5},  {"0-3,8\n", 5}, {" 1 \n2", 1}, {"", 0},     {"\n", 0},     {"5-5", 1},
        {"7,7,7", 1},  {"8191", 1},   {"8192", 0},    {"0-9999", 8192}, {"1,", -1}, {",1", -1},   {"1-", -1},
        {"-1", -1},    {"2-1", -1},   {"1;2", -1},    {"a", -1},     {"1 2", -1}, {"0-1-2", -1}, {"0-7:2/4", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mica_cpu_bits bits;
        bool good = mica_cpulist_parse(cases[i].text, &bits);
        if (good != (cases[i].n >= 0) || mica_cpu_bits_count(&bits) != (good ? cases[i].n : 0))
            fail_msg("\"%s\": %d CPUs", cases[i].text, good ? mica_cpu_bits_count(&bits) : -1);
    }
    mica_cpu_bits bits;
    assert_true(mica_cpulist_parse("3,63-65,8191", &bits));
    static const int ids[] = {3, 63, 64, 65, 8191, -1};
    for (int i = 0, from = 0; i < 6; i++, from = ids[i - 1] + 1)
        assert_int_equal(mica_cpu_bits_next(&bits, from), ids[i]);
    assert_false(mica_cpu_bits_has(&bits, -1) || mica_cpu_bits_has(&bits, 8192) || mica_cpu_bits_has(&bits, 4));
}

static void numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } cases[] = {
        {"0", true, 0},           {" \t42 kB", true, 42},       {"-7\n", true, -7}, {"9223372036854775807", true, INT64_MAX},
        {"max", false, 0},        {"9223372036854775808", false, 0}, {"", false, 0}, {"-", false, 0},
        {"12a", false, 0},        {"+5", false, 0},             {"\n5", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        if (mica_text_int(cases[i].text, &value, NULL) != cases[i].good || value != cases[i].value)
            fail_msg("\"%s\" gives %lld", cases[i].text, (long long)value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thr_01_cgroup2_quota),
        cmocka_unit_test(thr_03_big_little),
        cmocka_unit_test(thr_05_smt_siblings),
        cmocka_unit_test(quota_is_the_least_along_the_path),
        cmocka_unit_test(quota_of_cgroup_v1),
        cmocka_unit_test(quota_when_the_path_is_the_hosts),
        cmocka_unit_test(damaged_quotas_are_ignored),
        cmocka_unit_test(cpuset_of_the_nearest_group),
        cmocka_unit_test(offline_cpus_and_holes),
        cmocka_unit_test(large_machines),
        cmocka_unit_test(damaged_siblings),
        cmocka_unit_test(speeds),
        cmocka_unit_test(everything_at_once),
        cmocka_unit_test(no_files_at_all),
        cmocka_unit_test(nonsense_in_every_file),
        cmocka_unit_test(folders_and_fifos),
        cmocka_unit_test(deep_and_long_cgroup_paths),
        cmocka_unit_test(bad_roots_are_errors),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(lists),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests_name("cpus", tests, NULL, NULL);
}
