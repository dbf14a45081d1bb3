/* pool.c - see pool.h. Invariants:
 *  1. `fn`, `user`, `next` and `unfinished` are set by the caller alone, before it bumps `start`, and only while every
 *     worker waits for `start` to change. A worker therefore never misses or repeats a run.
 *  2. `arrived` is 0 whenever no thread is between its arrival at a barrier and the release: the last to arrive resets it (and
 *     `next`) before it bumps `phase`, and nobody can arrive again before having seen that.
 *  3. Workers 0..n_threads-2 are in the team and wait for `start`; the others are on the bench and wait for their own `call`.
 *     They change sides only between runs: to the bench in a run of leave_or_stay(), which all of the team see; back through
 *     `call`, with the number of the last run in `seen`, so that the next one is theirs. `seen`, `cpu` and `index` of a worker
 *     are the caller's to change while it waits.
 *  4. A thread sleeps on a word only after it has announced itself in `sleepers` and looked at the word once more; whoever
 *     changes the word looks at `sleepers` afterwards. Both are sequentially consistent, so one of the two sees the other.
 */
#include "base/pool.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/pin.h"
#include "base/relax.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

/* Two 64-byte lines: x86 prefetches lines in pairs, and some ARM cores have 128-byte lines. */
enum { LINE = 128 };

/* How a thread waits: it spins (the answer usually comes within a few µs), then offers its CPU to others between looks, then
 * sleeps. A sleeper costs its waker a system call and itself about 50 µs, so waiting much longer than that while awake gains
 * nothing. With more threads than CPUs whoever spins keeps the awaited thread from running: a short look, then the offer. */
enum {
    SPIN_NS = 20000,
    SPIN_CROWDED_NS = 500,
    AWAKE_NS = 80000,
    PAUSES_PER_LOOK_AT_CLOCK = 32,
};

/** Where threads sleep. One for workers between runs, one for threads inside a run, one for those on the bench, so that none
 * wakes the others. */
typedef struct parking {
    alignas(LINE) atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} parking;

typedef struct worker {
    mica_pool *pool;
    pthread_t thread;
    int index, cpu, pinned; /* the CPU wanted, and the one it is on; -1: any */
    unsigned seen;          /* number of the last run that it knows of */
    bool benched;           /* its own to read */
    atomic_uint call;       /* bumped to call it from the bench */
} worker;

struct mica_pool {
    int n_threads, n_started; /* n_started: workers to join; at least n_threads - 1 once the pool is complete */
    int next_threads;         /* of the team after leave_or_stay() */
    int caller_cpu;           /* -1: the caller is left where it is */
    mica_pin_mask everywhere; /* where unpinned workers may run: what the pool's maker might */
    _Atomic int64_t spin_ns;
    mica_pool_fn fn;
    void *user;
    alignas(LINE) atomic_uint start;      /* number of the run; bumped to begin one */
    atomic_bool stop;                     /* set before the last bump */
    alignas(LINE) atomic_uint unfinished; /* workers still inside the run */
    alignas(LINE) atomic_uint arrived;    /* threads at the barrier */
    alignas(LINE) atomic_uint phase;      /* number of barriers passed */
    alignas(LINE) atomic_llong next;      /* counter of mica_pool_next() */
    parking between_runs, inside_run, bench;
    worker workers[MICA_MAX_THREADS];
};

/* ---- Waiting --------------------------------------------------------------------------------------------------------- */

/** What a thread waits for: *word equal to value, or different from it. */
typedef struct condition {
    atomic_uint *word;
    unsigned value;
    bool equal;
} condition;

static inline bool is_met(condition c) { return (atomic_load_explicit(c.word, memory_order_acquire) == c.value) == c.equal; }

static void sleep_until(parking *place, condition c)
{
    pthread_mutex_lock(&place->mutex);
    atomic_fetch_add(&place->sleepers, 1);
    while ((atomic_load(c.word) == c.value) != c.equal)
        pthread_cond_wait(&place->changed, &place->mutex);
    atomic_fetch_sub(&place->sleepers, 1);
    pthread_mutex_unlock(&place->mutex);
}

/** Called after a word has been changed by a sequentially consistent operation. */
static void wake_sleepers(parking *place)
{
    if (atomic_load(&place->sleepers) == 0)
        return;
    pthread_mutex_lock(&place->mutex);
    pthread_cond_broadcast(&place->changed);
    pthread_mutex_unlock(&place->mutex);
}

static bool spin_until(int64_t spin_ns, condition c)
{
    int64_t began = 0, waited = 0; /* the clock is read only once the first pauses are over: most waits are shorter */
    while (waited < AWAKE_NS) {
        int pauses = waited < spin_ns ? PAUSES_PER_LOOK_AT_CLOCK : 1;
        for (int i = 0; i < pauses; i++) {
            if (is_met(c))
                return true;
            mica_cpu_relax();
        }
        if (waited >= spin_ns)
            sched_yield();
        int64_t now = mica_now_ns();
        began = began ? began : now;
        waited = now - began;
    }
    return is_met(c);
}

static inline void wait_until(const mica_pool *pool, parking *place, condition c)
{
    if (!is_met(c) && !spin_until(atomic_load_explicit(&pool->spin_ns, memory_order_relaxed), c))
        sleep_until(place, c);
}

/* ---- Running --------------------------------------------------------------------------------------------------------- */

void mica_pool_run(mica_pool *pool, mica_pool_fn fn, void *user)
{
    if (pool->caller_cpu >= 0 && !mica_pin_visit(pool->caller_cpu))
        pool->caller_cpu = -1;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    if (pool->n_threads == 1) {
        fn(user, 0, 1);
        return;
    }
    pool->fn = fn;
    pool->user = user;
    atomic_store_explicit(&pool->unfinished, (unsigned)pool->n_threads - 1, memory_order_relaxed);
    atomic_fetch_add(&pool->start, 1);
    wake_sleepers(&pool->between_runs);
    fn(user, 0, pool->n_threads);
    wait_until(pool, &pool->inside_run, (condition){&pool->unfinished, 0, true});
}

static void go_to_cpu(worker *self)
{
    if (self->cpu == self->pinned)
        return;
    if (self->cpu < 0)
        mica_pin_set(&self->pool->everywhere);
    else
        mica_pin_self(self->cpu); /* refused: runs where the system likes */
    self->pinned = self->cpu;
}

static void sit_on_bench(worker *self)
{
    sleep_until(&self->pool->bench, (condition){&self->call, 0, false});
    atomic_store_explicit(&self->call, 0, memory_order_relaxed);
    self->benched = false;
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    mica_pool *pool = self->pool;
    for (;;) {
        if (self->benched)
            sit_on_bench(self);
        wait_until(pool, &pool->between_runs, (condition){&pool->start, self->seen, false});
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed))
            return NULL;
        self->seen++;
        go_to_cpu(self);
        pool->fn(pool->user, self->index, pool->n_threads);
        if (atomic_fetch_sub(&pool->unfinished, 1) == 1)
            wake_sleepers(&pool->inside_run);
    }
}

int64_t mica_pool_next(mica_pool *pool, int64_t step)
{
    /* Relaxed: what the items read was published by the start of the run or the barrier before. */
    return atomic_fetch_add_explicit(&pool->next, step, memory_order_relaxed);
}

void mica_pool_barrier(mica_pool *pool)
{
    unsigned phase = atomic_load_explicit(&pool->phase, memory_order_relaxed); /* cannot change before this thread arrives */
    unsigned before = atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel);
    if (before + 1 == (unsigned)pool->n_threads) {
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
        atomic_fetch_add(&pool->phase, 1);
        wake_sleepers(&pool->inside_run);
    } else {
        wait_until(pool, &pool->inside_run, (condition){&pool->phase, phase, false});
    }
}

int mica_pool_threads(const mica_pool *pool) { return pool->n_threads; }

unsigned mica_pool_barriers(const mica_pool *pool) { return atomic_load_explicit(&pool->phase, memory_order_relaxed); }

/* ---- Making and ending ----------------------------------------------------------------------------------------------- */

static bool parking_init(parking *place)
{
    atomic_init(&place->sleepers, 0);
    if (pthread_mutex_init(&place->mutex, NULL) != 0)
        return false;
    if (pthread_cond_init(&place->changed, NULL) == 0)
        return true;
    pthread_mutex_destroy(&place->mutex);
    return false;
}

static void parking_destroy(parking *place)
{
    pthread_cond_destroy(&place->changed);
    pthread_mutex_destroy(&place->mutex);
}

/** CPUs that the team has for itself: the different ones among those it is pinned to, else all that the process may use. */
static int count_cpus(int n_threads, const int *cpus)
{
    int different = 0;
    for (int i = 0; i < n_threads; i++) {
        if (!cpus || cpus[i] < 0)
            return mica_pin_count();
        int same = 0;
        while (cpus[same] != cpus[i])
            same++;
        different += same == i;
    }
    return different;
}

/* Where the threads are to run from their next run on. */
static void set_places(mica_pool *pool, int n_threads, const int *cpus)
{
    pool->caller_cpu = cpus ? cpus[0] : -1;
    int64_t spin_ns = n_threads > count_cpus(n_threads, cpus) ? SPIN_CROWDED_NS : SPIN_NS;
    atomic_store_explicit(&pool->spin_ns, spin_ns, memory_order_relaxed);
    for (int i = 1; i < n_threads; i++)
        pool->workers[i - 1].cpu = cpus ? cpus[i] : -1;
}

static mica_pool *pool_alloc(int n_threads, const int *cpus)
{
    mica_pool *pool = mica_new_aligned(LINE, sizeof *pool);
    if (!pool)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->n_threads = n_threads;
    mica_pin_get(&pool->everywhere);
    set_places(pool, n_threads, cpus);
    atomic_init(&pool->start, 0);
    atomic_init(&pool->stop, false);
    atomic_init(&pool->unfinished, 0);
    atomic_init(&pool->arrived, 0);
    atomic_init(&pool->phase, 0);
    atomic_init(&pool->next, 0);
    parking *const places[] = {&pool->between_runs, &pool->inside_run, &pool->bench};
    for (int i = 0; i < 3; i++) {
        if (parking_init(places[i]))
            continue;
        while (i-- > 0)
            parking_destroy(places[i]);
        free(pool);
        return NULL;
    }
    return pool;
}

/** Starts what is missing of n workers; returns 0 or the error of pthread_create(). Workers block all signals: the host's
 * handlers run on the host's threads. */
static int start_workers(mica_pool *pool, int n, bool benched)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a mapped file that was truncated: of the thread that reads it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    while (pool->n_started < n && error == 0) {
        worker *w = &pool->workers[pool->n_started];
        w->pool = pool;
        w->index = pool->n_started + 1;
        w->pinned = -1;
        w->benched = benched;
        w->seen = atomic_load_explicit(&pool->start, memory_order_relaxed);
        atomic_init(&w->call, 0);
        error = pthread_create(&w->thread, NULL, worker_main, w);
        pool->n_started += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static mica_status check_count(int n_threads, mica_error *err)
{
    if (n_threads >= 1 && n_threads <= MICA_MAX_THREADS)
        return MICA_OK;
    return mica_fail(err, MICA_INVALID_ARGUMENT, "%d threads asked for; the number must be between 1 and %d", n_threads,
                     MICA_MAX_THREADS);
}

static mica_status fail_refused(int started, int n_threads, int error, mica_error *err)
{
    return mica_fail(err, MICA_OUT_OF_MEMORY, "the system refused thread %d of %d (%s); ask for fewer threads", started + 2,
                     n_threads, strerror(error));
}

mica_status mica_pool_new(int n_threads, const int *cpus, mica_pool **out, mica_error *err)
{
    *out = NULL;
    mica_status status = check_count(n_threads, err);
    if (status)
        return status;
    mica_pool *pool = pool_alloc(n_threads, cpus);
    if (!pool)
        return mica_fail_nomem(err, sizeof *pool, "the thread pool");
    int error = start_workers(pool, n_threads - 1, false);
    if (error != 0) {
        int started = pool->n_started;
        mica_pool_free(pool);
        return fail_refused(started, n_threads, error, err);
    }
    *out = pool;
    return MICA_OK;
}

/* A run in which the team becomes smaller. */
static void leave_or_stay(void *user, int thread, int n_threads)
{
    mica_pool *pool = user;
    (void)n_threads;
    if (thread == 0)
        return;
    pool->workers[thread - 1].benched = thread >= pool->next_threads;
}

mica_status mica_pool_resize(mica_pool *pool, int n_threads, const int *cpus, mica_error *err)
{
    mica_status status = check_count(n_threads, err);
    if (status)
        return status;
    int error = start_workers(pool, n_threads - 1, true), before = pool->n_threads;
    if (error != 0)
        return fail_refused(pool->n_started, n_threads, error, err);
    set_places(pool, n_threads, cpus);
    pool->next_threads = n_threads;
    mica_pool_run(pool, leave_or_stay, pool);
    pool->n_threads = n_threads;
    for (int i = before; i < n_threads; i++) {
        worker *w = &pool->workers[i - 1];
        w->seen = atomic_load_explicit(&pool->start, memory_order_relaxed);
        atomic_store(&w->call, 1);
    }
    if (n_threads > before)
        wake_sleepers(&pool->bench);
    return MICA_OK;
}

void mica_pool_free(mica_pool *pool)
{
    if (!pool)
        return;
    atomic_store_explicit(&pool->stop, true, memory_order_relaxed);
    atomic_fetch_add(&pool->start, 1);
    wake_sleepers(&pool->between_runs);
    for (int i = 0; i < pool->n_started; i++) /* from the bench they find `stop`; for the others it means nothing */
        atomic_store(&pool->workers[i].call, 1);
    wake_sleepers(&pool->bench);
    for (int i = 0; i < pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    parking_destroy(&pool->between_runs);
    parking_destroy(&pool->inside_run);
    parking_destroy(&pool->bench);
    free(pool);
}
