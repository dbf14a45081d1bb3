/* pool.h - a fixed team of threads that run one function together. Owns its threads; made with the session, freed with it.
 *
 * mica_pool_run() is a fork-join: every thread (the caller is thread 0) runs fn once; it returns when all are done. Inside, the
 * threads may share work through mica_pool_next(). Workers spin for a short while after a run and then sleep (futex through
 * pthread condition variables), so that an idle session burns no CPU. No allocation and no lock on the fast path.
 */
#ifndef MICA_BASE_POOL_H
#define MICA_BASE_POOL_H
#include "base/error.h"

typedef struct mica_pool mica_pool;
typedef void (*mica_pool_fn)(void *user, int thread, int n_threads);

/** n_threads >= 1. cpus: n_threads CPU numbers to pin to, -1 or NULL: not pinned. Pinning that the system refuses is ignored.
 * The calling thread is pinned only while it runs mica_pool_run(), never permanently. */
mica_status mica_pool_new(int n_threads, const int *cpus, mica_pool **out, mica_error *err);
void mica_pool_free(mica_pool *pool);
int mica_pool_threads(const mica_pool *pool);

void mica_pool_run(mica_pool *pool, mica_pool_fn fn, void *user);

/** Inside fn: the first index of the next piece of `step` items, or >= the total when the caller should stop. The counter is
 * set to 0 at the start of each run and by mica_pool_barrier(). */
int64_t mica_pool_next(mica_pool *pool, int64_t step);
/** Inside fn: all threads wait for one another; afterwards the counter of mica_pool_next is 0. Spins, then sleeps. */
void mica_pool_barrier(mica_pool *pool);

#endif
