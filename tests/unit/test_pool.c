/* The thread pool: every item runs once, barriers hold, workers sleep when idle and wake again, nothing leaks. */
#include "base/clock.h"
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#if defined(__SANITIZE_THREAD__)
#define SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLOW_BUILD 1
#endif
#endif
#ifndef SLOW_BUILD
#define SLOW_BUILD 0
#endif

enum { ROUNDS = SLOW_BUILD ? 5000 : 100000 };

static mica_pool *pool_of(int n_threads)
{
    mica_error err;
    mica_pool *pool = NULL;
    if (mica_pool_new(n_threads, NULL, &pool, &err) != MICA_OK)
        fail_msg("%s", err.message);
    assert_int_equal(mica_pool_threads(pool), n_threads);
    return pool;
}

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static int64_t cpu_ns(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* ---- Items: each is taken once --------------------------------------------------------------------------------------- */

enum { N_ITEMS = 1000 };

typedef struct items {
    mica_pool *pool;
    int64_t step;
    int taken[N_ITEMS];      /* plain ints: two threads on one item would be a race that ThreadSanitizer sees */
    int calls[MICA_MAX_THREADS];
    atomic_bool wrong_team;
} items;

static void take_items(void *user, int thread, int n_threads)
{
    items *it = user;
    it->wrong_team |= thread >= n_threads || n_threads != mica_pool_threads(it->pool);
    it->calls[thread]++;
    for (int64_t i; (i = mica_pool_next(it->pool, it->step)) < N_ITEMS;)
        for (int64_t k = i; k < i + it->step && k < N_ITEMS; k++)
            it->taken[k]++;
}

static void every_item_once(void **state)
{
    (void)state;
    static const int teams[] = {1, 2, 3, 8};
    for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
        items it = {.pool = pool_of(teams[t])};
        for (int run = 0; run < 50; run++) {
            it.step = 1 + run % 7;
            mica_pool_run(it.pool, take_items, &it);
        }
        for (int i = 0; i < N_ITEMS; i++)
            assert_int_equal(it.taken[i], 50);
        for (int i = 0; i < teams[t]; i++)
            assert_int_equal(it.calls[i], 50);
        assert_false(it.wrong_team);
        mica_pool_free(it.pool);
    }
}

/* ---- Barriers: a ring in which each thread reads what its neighbour wrote in the round before ------------------------ */

typedef struct ring {
    mica_pool *pool;
    int rounds;
    int64_t cell[2][MICA_MAX_THREADS * 16]; /* 128 bytes apart */
    int64_t wrong[MICA_MAX_THREADS];
    int64_t taken[MICA_MAX_THREADS];
} ring;

static void run_ring(void *user, int thread, int n_threads)
{
    ring *r = user;
    int64_t wrong = 0, taken = 0;
    for (int round = 1; round <= r->rounds; round++) {
        int64_t *now = r->cell[round % 2], *before = r->cell[(round + 1) % 2];
        wrong += before[(thread + 1) % n_threads * 16] != round - 1;
        now[thread * 16] = round;
        while (mica_pool_next(r->pool, 1) < 5)
            taken++;
        mica_pool_barrier(r->pool);
    }
    r->wrong[thread] = wrong;
    r->taken[thread] = taken;
}

static void check_ring(int n_threads)
{
    ring *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->pool = pool_of(n_threads);
    r->rounds = ROUNDS;
    int64_t began = mica_now_ns(), taken = 0;
    mica_pool_run(r->pool, run_ring, r);
    print_message("%d threads: %.2f us a phase\n", n_threads, (double)(mica_now_ns() - began) / 1e3 / ROUNDS);
    for (int i = 0; i < n_threads; i++) {
        assert_int_equal(r->wrong[i], 0);
        taken += r->taken[i];
    }
    assert_int_equal(taken, 5 * (int64_t)ROUNDS); /* the counter was 0 at the start of every round, and only then */
    mica_pool_free(r->pool);
    free(r);
}

static void barriers_1(void **state) { (void)state; check_ring(1); }
static void barriers_2(void **state) { (void)state; check_ring(2); }
static void barriers_3(void **state) { (void)state; check_ring(3); }
static void barriers_8(void **state) { (void)state; check_ring(8); }

/* ---- Runs ------------------------------------------------------------------------------------------------------------ */

typedef struct tally {
    int64_t count[MICA_MAX_THREADS * 16];
} tally;

static void count_call(void *user, int thread, int n_threads)
{
    (void)n_threads;
    ((tally *)user)->count[thread * 16]++;
}

/** Nothing but an empty function: the cost of a run. What each thread wrote is visible to the caller afterwards. */
static void many_runs(void **state)
{
    (void)state;
    static const int teams[] = {1, 2, 3, 8};
    for (size_t t = 0; t < sizeof teams / sizeof *teams; t++) {
        mica_pool *pool = pool_of(teams[t]);
        tally sum = {{0}};
        int runs = teams[t] > 3 ? ROUNDS / 10 : ROUNDS;
        int64_t began = mica_now_ns();
        for (int i = 1; i <= runs; i++) {
            mica_pool_run(pool, count_call, &sum);
            for (int k = 0; k < teams[t]; k++)
                if (sum.count[k * 16] != i)
                    fail_msg("thread %d ran %d times in %d runs", k, (int)sum.count[k * 16], i);
        }
        print_message("%d threads: %.2f us a run\n", teams[t], (double)(mica_now_ns() - began) / 1e3 / runs);
        mica_pool_free(pool);
    }
}

static void parked_workers_wake(void **state)
{
    (void)state;
    mica_pool *pool = pool_of(3);
    tally sum = {{0}};
    for (int i = 1; i <= 30; i++) {
        mica_pool_run(pool, count_call, &sum);
        sleep_ms(i % 3 ? 1 : 5); /* far beyond the time that workers stay awake */
    }
    for (int k = 0; k < 3; k++)
        assert_int_equal(sum.count[k * 16], 30);
    mica_pool_free(pool);
}

static void idle_workers_cost_nothing(void **state)
{
    (void)state;
    mica_pool *pool = pool_of(4);
    tally sum = {{0}};
    mica_pool_run(pool, count_call, &sum);
    sleep_ms(20);
    int64_t before = cpu_ns();
    sleep_ms(200);
    int64_t spent = cpu_ns() - before;
    mica_pool_free(pool);
    if (spent > 5000000)
        fail_msg("three idle workers used %.1f ms of CPU time in 200 ms", (double)spent / 1e6);
}

/** One thread works for 50 ms while the others wait for it at a barrier, then at the end: they must sleep meanwhile. */
static void one_works(void *user, int thread, int n_threads)
{
    (void)n_threads;
    for (int phase = 0; phase < 2; phase++) {
        if (thread == (phase == 0 ? 0 : 1))
            sleep_ms(50);
        if (phase == 0)
            mica_pool_barrier(user);
    }
}

static void waiting_threads_sleep(void **state)
{
    (void)state;
    mica_pool *pool = pool_of(4);
    int64_t before = cpu_ns(), began = mica_now_ns();
    mica_pool_run(pool, one_works, pool);
    int64_t spent = cpu_ns() - before;
    assert_true(mica_now_ns() - began >= 100000000);
    mica_pool_free(pool);
    if (spent > 8000000)
        fail_msg("three waiting threads used %.1f ms of CPU time in 100 ms", (double)spent / 1e6);
}

/* ---- Making and ending ----------------------------------------------------------------------------------------------- */

static void cycles_leave_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        mica_pool *pool = pool_of(1 + i % 4);
        if (i % 2 == 0) {
            tally sum = {{0}};
            mica_pool_run(pool, count_call, &sum);
        }
        if (i % 100 == 0)
            sleep_ms(1); /* free while parked */
        mica_pool_free(pool);
    }
    mica_pool_free(NULL);
}

static void bad_thread_counts(void **state)
{
    (void)state;
    static const int bad[] = {0, -1, MICA_MAX_THREADS + 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mica_error err;
        mica_pool *pool = (mica_pool *)(uintptr_t)1;
        assert_int_equal(mica_pool_new(bad[i], NULL, &pool, &err), MICA_INVALID_ARGUMENT);
        assert_null(pool);
        assert_non_null(strstr(err.message, "between 1 and 64"));
        assert_int_equal(mica_pool_new(bad[i], NULL, &pool, NULL), MICA_INVALID_ARGUMENT);
    }
    mica_pool *most = pool_of(MICA_MAX_THREADS);
    tally sum = {{0}};
    mica_pool_run(most, count_call, &sum);
    for (int k = 0; k < MICA_MAX_THREADS; k++)
        assert_int_equal(sum.count[k * 16], 1);
    mica_pool_free(most);
}

/** Makes the system refuse the later ones of many threads, by a limit on address space that a few stacks exhaust. */
static void refused_threads_are_an_error(void **state)
{
    (void)state;
    if (getenv("MICA_EMULATED")) /* qemu-user keeps no limit on address space */
        skip();
    enum { STACK = 256 << 20 };
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld", &pages), 1);
    fclose(f);
    pthread_attr_t usual, large;
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_getattr_default_np(&large), 0);
    assert_int_equal(pthread_attr_setstacksize(&large, STACK), 0);
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + 4 * (rlim_t)STACK;
    assert_int_equal(pthread_setattr_default_np(&large), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
    mica_error err;
    mica_pool *pool = NULL;
    mica_status status = mica_pool_new(32, NULL, &pool, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    pthread_attr_destroy(&usual);
    pthread_attr_destroy(&large);
    assert_int_equal(status, MICA_OUT_OF_MEMORY);
    assert_null(pool);
    int which = 0;
    assert_int_equal(sscanf(err.message, "the system refused thread %d of 32", &which), 1);
    assert_in_range(which, 3, 6); /* some had been started, and were ended again */
}

/* ---- Pinning --------------------------------------------------------------------------------------------------------- */

typedef struct places {
    int cpu[MICA_MAX_THREADS];
    int allowed[MICA_MAX_THREADS];
} places;

static void note_place(void *user, int thread, int n_threads)
{
    (void)n_threads;
    places *p = user;
    cpu_set_t mask;
    p->allowed[thread] = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : -1;
    p->cpu[thread] = sched_getcpu();
}

static void threads_go_where_told(void **state)
{
    (void)state;
    cpu_set_t own, after;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    int first = -1, last = -1;
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET((size_t)c, &own)) {
            first = first < 0 ? c : first;
            last = c;
        }
    const int cpus[3] = {last, first, -1};
    mica_pool *pool;
    assert_int_equal(mica_pool_new(3, cpus, &pool, NULL), MICA_OK);
    places p;
    mica_pool_run(pool, note_place, &p);
    assert_int_equal(p.cpu[1], first);
    assert_int_equal(p.allowed[1], 1);
    assert_int_equal(p.allowed[2], CPU_COUNT(&own));
    assert_int_equal(p.allowed[0], CPU_COUNT(&own)); /* the caller is moved, not pinned */
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&own, &after));
    mica_pool_free(pool);
}

static void refused_pinning_is_ignored(void **state)
{
    (void)state;
    const int cpus[3] = {100000, 8191, 1500}; /* beyond any kernel, and two beyond this machine */
    mica_pool *pool;
    cpu_set_t own, after;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    assert_int_equal(mica_pool_new(3, cpus, &pool, NULL), MICA_OK);
    tally sum = {{0}};
    for (int i = 0; i < 3; i++)
        mica_pool_run(pool, count_call, &sum);
    for (int k = 0; k < 3; k++)
        assert_int_equal(sum.count[k * 16], 3);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&own, &after));
    mica_pool_free(pool);
}

/* ---- Resizing -------------------------------------------------------------------------------------------------------- */

/* Teams of changing size, at once and after a while, each with barriers and items, each on other CPUs. */
static void teams_change(void **state)
{
    (void)state;
    static const int teams[] = {1, 4, 2, 8, 8, 3, 1, 2, 12, 5, 12, 1, 7};
    ring *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->pool = pool_of(3);
    r->rounds = 20;
    for (int i = 0; i < 300; i++) {
        int n = teams[i % 13], cpus[MICA_MAX_THREADS];
        int64_t taken = 0;
        for (int k = 0; k < n; k++)
            cpus[k] = i % 3 ? -1 : 0;
        if (i % 5 != 4) /* sometimes twice before a run */
            assert_int_equal(mica_pool_resize(r->pool, 13 - n, NULL, NULL), MICA_OK);
        assert_int_equal(mica_pool_resize(r->pool, n, cpus, NULL), MICA_OK);
        assert_int_equal(mica_pool_threads(r->pool), n);
        if (i % 50 == 49)
            sleep_ms(5); /* all are asleep */
        memset(r->cell, 0, sizeof r->cell);
        memset(r->wrong, -1, sizeof r->wrong);
        mica_pool_run(r->pool, run_ring, r);
        for (int k = 0; k < n; k++) {
            assert_int_equal(r->wrong[k], 0);
            taken += r->taken[k];
        }
        assert_int_equal(taken, 5 * 20);
        assert_true(n == MICA_MAX_THREADS || r->wrong[n] == -1); /* nobody else ran */
    }
    mica_pool_free(r->pool);
    free(r);
}

/* Pinned, elsewhere, free again. */
static void teams_move(void **state)
{
    (void)state;
    cpu_set_t own;
    assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
    int first = 0;
    while (!CPU_ISSET((size_t)first, &own))
        first++;
    mica_pool *pool = pool_of(2);
    places p;
    mica_pool_run(pool, note_place, &p);
    assert_int_equal(p.allowed[1], CPU_COUNT(&own));
    assert_int_equal(mica_pool_resize(pool, 3, (int[]){-1, first, first}, NULL), MICA_OK);
    mica_pool_run(pool, note_place, &p);
    assert_int_equal(p.allowed[1], 1);
    assert_int_equal(p.cpu[2], first);
    assert_int_equal(mica_pool_resize(pool, 1, NULL, NULL), MICA_OK);
    assert_int_equal(mica_pool_resize(pool, 3, NULL, NULL), MICA_OK);
    mica_pool_run(pool, note_place, &p);
    assert_int_equal(p.allowed[1], CPU_COUNT(&own));
    assert_int_equal(p.allowed[2], CPU_COUNT(&own));
    mica_error err;
    assert_int_equal(mica_pool_resize(pool, 0, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_pool_resize(pool, MICA_MAX_THREADS + 1, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_pool_threads(pool), 3);
    mica_pool_free(pool);
}

/* Threads that are left over cost nothing, awake team or not. */
static void benched_workers_cost_nothing(void **state)
{
    (void)state;
    mica_pool *pool = pool_of(8);
    tally sum = {{0}};
    mica_pool_run(pool, count_call, &sum);
    assert_int_equal(mica_pool_resize(pool, 1, NULL, NULL), MICA_OK);
    int64_t before = cpu_ns();
    for (int i = 0; i < 40; i++) {
        mica_pool_run(pool, count_call, &sum);
        sleep_ms(10);
    }
    assert_in_range(cpu_ns() - before, 0, 20000000);
    mica_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_once),       cmocka_unit_test(barriers_1),
        cmocka_unit_test(barriers_2),            cmocka_unit_test(barriers_3),
        cmocka_unit_test(barriers_8),            cmocka_unit_test(many_runs),
        cmocka_unit_test(parked_workers_wake),   cmocka_unit_test(idle_workers_cost_nothing),
        cmocka_unit_test(waiting_threads_sleep), cmocka_unit_test(cycles_leave_nothing),
        cmocka_unit_test(bad_thread_counts),     cmocka_unit_test(threads_go_where_told),
        cmocka_unit_test(refused_pinning_is_ignored), cmocka_unit_test(refused_threads_are_an_error),
        cmocka_unit_test(teams_change),          cmocka_unit_test(teams_move),
        cmocka_unit_test(benched_workers_cost_nothing),
    };
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
