/* threads.c - the number of threads may change between any two steps: results do not depend on it (docs/numerics.md). */
#include "session/plan.h"
#include "session/session.h"

mica_status mica_threads_set(mica_pool *pool, mica_session_options *options, mica_thread_plan *threads, int32_t n_threads,
                             const int32_t *cpus, mica_error *err)
{
    mica_session_options wanted = *options;
    mica_thread_plan plan;
    wanted.n_threads = n_threads;
    wanted.cpus = cpus;
    mica_status status = mica_plan_threads(&wanted, &plan, err);
    if (!status)
        status = mica_pool_resize(pool, plan.n_threads, plan.cpus, err);
    if (status)
        return status;
    options->n_threads = plan.n_threads;
    *threads = plan;
    return MICA_OK;
}

mica_status mica_session_set_threads(mica_session *s, int32_t n_threads, const int32_t *cpus, mica_error *err)
{
    if (s->batch)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "this session uses its batch's threads: call mica_batch_set_threads()");
    return mica_threads_set(s->pool, &s->options, &s->threads, n_threads, cpus, err);
}
