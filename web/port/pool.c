/* pool.c - base/pool.h with a team of one: threads of a module need shared memory, which browsers give only to pages that
 * are served with two special headers. */
#include "base/pool.h"

#include <stdlib.h>

#include "base/mem.h"

struct mica_pool {
    int64_t next;
    unsigned phase;
};

static mica_status check_count(int n_threads, mica_error *err)
{
    if (n_threads == 1)
        return MICA_OK;
    return mica_fail(err, MICA_UNSUPPORTED, "%d threads asked for; there is one here", n_threads);
}

mica_status mica_pool_new(int n_threads, const int *cpus, mica_pool **out, mica_error *err)
{
    (void)cpus;
    *out = NULL;
    mica_status status = check_count(n_threads, err);
    if (!status && !(*out = mica_new_array(1, sizeof **out)))
        status = mica_fail_nomem(err, sizeof **out, "the thread pool");
    return status;
}

void mica_pool_free(mica_pool *pool) { free(pool); }

int mica_pool_threads(const mica_pool *pool)
{
    (void)pool;
    return 1;
}

mica_status mica_pool_resize(mica_pool *pool, int n_threads, const int *cpus, mica_error *err)
{
    (void)pool, (void)cpus;
    return check_count(n_threads, err);
}

unsigned mica_pool_barriers(const mica_pool *pool) { return pool->phase; }

void mica_pool_run(mica_pool *pool, mica_pool_fn fn, void *user)
{
    pool->next = 0;
    fn(user, 0, 1);
}

int64_t mica_pool_next(mica_pool *pool, int64_t step)
{
    int64_t at = pool->next;
    pool->next += step;
    return at;
}

void mica_pool_barrier(mica_pool *pool)
{
    pool->next = 0;
    pool->phase++;
}
