#include "making.h"

#include "interrupt.h"
#include "load.h"

int mica_making_threads(const mica_opts *o, int *n)
{
    mica_thread_plan plan;
    mica_error err;
    *n = (int)o->threads;
    if (*n > 0)
        return CODE_OK;
    if (mica_thread_plan_all(o->sysroot, &plan, &err)) /* nobody waits for the machine otherwise */
        return mica_load_failed(&err);
    *n = plan.n_threads;
    return CODE_OK;
}

bool mica_making_progress(void *user, double done)
{
    mica_bar_show(user, done);
    return mica_interrupt_count() > 0;
}
