/* pool.h - a team of threads that run one function together. Owns its threads; made with the session, freed with it.
 *
 * mica_pool_run() is a fork-join: every thread (the caller is thread 0) runs fn once; it returns when all are done. Inside, the
 * threads may share work through mica_pool_next(). Workers spin for a short while after a run and then sleep (futex through
 * pthread condition variables), so that an idle session burns no CPU. No allocation and no lock on the fast path.
 *
 * Rules: one thread at a time calls mica_pool_run(), mica_pool_resize() or mica_pool_free() on a pool. fn must not call any of
 * them on its own pool (it would wait for itself for ever). Every thread of a run passes mica_pool_barrier() equally often.
 */
#ifndef MICA_BASE_POOL_H
#define MICA_BASE_POOL_H
#include "base/error.h"

typedef struct mica_pool mica_pool;
typedef void (*mica_pool_fn)(void *user, int thread, int n_threads);

/** n_threads in 1..MICA_MAX_THREADS. cpus: n_threads CPU numbers to pin to, -1 or NULL: not pinned. Pinning that the system
 * refuses is ignored. Workers stay pinned until a resize. The thread that calls mica_pool_run() is moved to cpus[0] if it is
 * elsewhere and keeps its own affinity mask: pinning it for each run would cost two system calls a run, moving it costs
 * nothing when it is there already. */
mica_status mica_pool_new(int n_threads, const int *cpus, mica_pool **out, mica_error *err);
void mica_pool_free(mica_pool *pool);
int mica_pool_threads(const mica_pool *pool);

/** Makes it a team of n_threads, pinned as in mica_pool_new() (NULL: not pinned). Threads that are left over sleep until they
 * are wanted again; only a team that was never so large starts new ones. On an error the pool is what it was. */
mica_status mica_pool_resize(mica_pool *pool, int n_threads, const int *cpus, mica_error *err);

/** How many barriers its runs have passed so far, modulo 2^32. Between runs. */
unsigned mica_pool_barriers(const mica_pool *pool);

void mica_pool_run(mica_pool *pool, mica_pool_fn fn, void *user);

/** Inside fn: the first index of the next piece of `step` items, or >= the total when the caller should stop. The counter is
 * set to 0 at the start of each run and by mica_pool_barrier(). */
int64_t mica_pool_next(mica_pool *pool, int64_t step);
/** Inside fn: all threads wait for one another; afterwards the counter of mica_pool_next is 0. Spins, then sleeps. */
void mica_pool_barrier(mica_pool *pool);

#endif
