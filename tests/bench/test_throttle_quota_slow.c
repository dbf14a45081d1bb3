/* A real trace: a process that computes is slowed in mid-run, by the CPU quota of a control group where one can be made, else
 * by stopping it for a part of every 20 ms. The detector must find the step within 2 s and 3 points. Its times are a fifth of
 * the usual ones, so that the test takes a minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mica/mica_ops.h"

enum { MAX_TOKENS = 200000, PERIOD_US = 20000, FAST_US = 8000, SLOW_US = 5600, BEFORE_S = 30, AFTER_S = 30 };

typedef struct board { /* shared with the child */
    _Atomic uint64_t n;
    _Atomic uint64_t sink;
    int64_t times[MAX_TOKENS];
} board;

typedef struct brake {
    char folder[400];
    bool v2, stopping; /* stopping: no group could be made */
} brake;

/* ---- The process ---- */

/* About a millisecond of arithmetic that nothing can shorten. */
static uint64_t work(uint64_t x)
{
    for (int i = 0; i < 400000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

static pid_t start_worker(board *b)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (uint64_t n = 0, x = 1; n < MAX_TOKENS; n++) {
        x = work(x);
        b->sink = x;
        b->times[n] = mica_now_ns();
        b->n = n + 1;
    }
    pause();
    _exit(0);
}

/* ---- Control groups ---- */

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[500];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY);
    if (fd < 0)
        return false;
    bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return close(fd) == 0 && written;
}

static bool set_quota(const brake *k, int quota_us)
{
    char text[64];
    if (k->v2) {
        snprintf(text, sizeof text, "%d %d", quota_us, PERIOD_US);
        return write_file(k->folder, "cpu.max", text);
    }
    snprintf(text, sizeof text, "%d", PERIOD_US);
    if (!write_file(k->folder, "cpu.cfs_period_us", text))
        return false;
    snprintf(text, sizeof text, "%d", quota_us);
    return write_file(k->folder, "cpu.cfs_quota_us", text);
}

/* The group of this process in the hierarchy whose line of /proc/self/cgroup has `controller` ("" for version 2). */
static bool own_group(const char *controller, char out[300])
{
    char line[512], controllers[200];
    FILE *in = fopen("/proc/self/cgroup", "r");
    bool found = false;
    while (in && !found && fgets(line, sizeof line, in)) {
        char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
        if (!second)
            continue;
        snprintf(controllers, sizeof controllers, ",%.*s,", (int)(second - first - 1), first + 1);
        char wanted[40];
        snprintf(wanted, sizeof wanted, ",%s,", controller);
        found = *controller ? strstr(controllers, wanted) != NULL : strcmp(controllers, ",,") == 0;
        second[strcspn(second, "\n")] = '\0';
        snprintf(out, 300, "%s", second + 1);
    }
    if (in)
        fclose(in);
    return found;
}

static bool try_group(brake *k, const char *mount, const char *controller, pid_t pid)
{
    char group[300], text[32];
    if (!own_group(controller, group))
        return false;
    snprintf(k->folder, sizeof k->folder, "%s%s/mica-test-%d", mount, strcmp(group, "/") == 0 ? "" : group, (int)getpid());
    k->v2 = !*controller;
    snprintf(text, sizeof text, "%d", (int)pid);
    if (mkdir(k->folder, 0755) == 0 && set_quota(k, FAST_US) && write_file(k->folder, "cgroup.procs", text))
        return true;
    rmdir(k->folder);
    return false;
}

static void brake_make(brake *k, pid_t pid)
{
    memset(k, 0, sizeof *k);
    if (try_group(k, "/sys/fs/cgroup", "", pid) || try_group(k, "/sys/fs/cgroup/cpu", "cpu", pid) ||
        try_group(k, "/sys/fs/cgroup/cpu,cpuacct", "cpu", pid))
        return;
    k->stopping = true;
}

/* ---- The run ---- */

static void nap(int us)
{
    struct timespec t = {.tv_nsec = us * 1000L};
    nanosleep(&t, NULL);
}

/* Lets the process run for `quota_us` of every period, for so many seconds. */
static void run_for(const brake *k, pid_t pid, int quota_us, int seconds)
{
    int64_t end = mica_now_ns() + (int64_t)seconds * 1000000000;
    if (!k->stopping)
        assert_true(set_quota(k, quota_us));
    while (mica_now_ns() < end) {
        if (!k->stopping) {
            nap(PERIOD_US);
            continue;
        }
        kill(pid, SIGCONT);
        nap(quota_us);
        kill(pid, SIGSTOP);
        nap(PERIOD_US - quota_us);
    }
}

static void a_quota_changed_in_mid_run(void **state)
{
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    brake k;
    mica_throttle t;
    mica_error err = {0};
    (void)state;
    assert_true(b != MAP_FAILED);
    pid_t pid = start_worker(b);
    assert_true(pid > 0);
    brake_make(&k, pid);
    run_for(&k, pid, FAST_US, 1); /* its first second is not looked at */
    uint64_t from = b->n;
    run_for(&k, pid, FAST_US, BEFORE_S);
    int64_t changed = mica_now_ns();
    run_for(&k, pid, SLOW_US, AFTER_S);
    uint64_t to = b->n;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (!k.stopping)
        rmdir(k.folder);

    assert_true(to > from + 1000 && to <= MAX_TOKENS);
    mica_throttle_options o = mica_throttle_options_default();
    o.cell_s /= 5;
    o.min_flat_s /= 5;
    o.max_ramp_s /= 5;
    if (mica_throttle_detect(b->times + from, (size_t)(to - from), &o, &t, &err))
        fail_msg("%s", err.message);
    double truth_s = (double)(changed - b->times[from]) * 1e-9, truth = 1 - (double)SLOW_US / FAST_US;
    print_message("slowed by %s: %.1f %% at %.1f s; ",
                  k.stopping ? "stopping the process (no control group can be made here)" : "the quota of a control group",
                  100 * truth, truth_s);
    for (int32_t i = 0; i < t.n_changes; i++)
        print_message("told %s of %.1f %% from %.1f to %.1f s, confidence %.3f; ", mica_change_name(t.changes[i].kind),
                      100 * t.changes[i].depth, t.changes[i].start_s, t.changes[i].end_s, t.changes[i].confidence);
    print_message("%d changes\n", (int)t.n_changes);
    assert_true(t.throttled);
    const mica_level_change *c = &t.changes[t.worst];
    assert_true(fabs(c->start_s - truth_s) <= 2 && fabs(c->end_s - truth_s) <= 2);
    assert_true(fabs(c->depth - truth) <= 0.03);
    munmap(b, sizeof *b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_quota_changed_in_mid_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
