#include "serve/pressure.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"
#include "device/budget.h"
#include "device/memory.h"
#include "mica/mica_memory.h"
#include "serve/http.h"

#define SETTLED_S 10 /* a load that was not killed by then, nor by its first reply, went well */

/* `shed` runs on the scheduler's thread; in between everything belongs to the HTTP thread. */
struct mica_pressure_watch {
    mica_server *server;
    mica_device *device;
    struct event *timer;
    mica_shedding shedding;
    int64_t budget_bytes, limit_bytes;
    char reason[120];
    int seconds;
    bool settled;
    mica_schedule_task task;
    atomic_bool busy;      /* the task is under way */
    mica_shed_level level; /* the task's */
    atomic_bool saved;     /* the task sets it: what was cached is in the prefix file, and not in memory */
};

/* ---- On the scheduler's thread ---- */

static void restore(mica_pressure_watch *w)
{
    mica_error err;
    int64_t n;
    atomic_store(&w->saved, false);
    if (mica_batch_restore_prefixes(mica_schedule_batch(w->server->schedule), w->server->options.prefix_file, &n, &err))
        mica_server_log(w->server, "the prefixes that were saved for lack of memory are lost: %s", err.message);
}

static void shed(mica_schedule_task *task, bool stopping)
{
    mica_pressure_watch *w = (mica_pressure_watch *)(void *)((char *)task - offsetof(mica_pressure_watch, task));
    mica_server *s = w->server;
    mica_error err;
    int64_t n = 0;
    if (stopping) {
        atomic_store(&w->busy, false);
        return;
    }
    if (w->level == MICA_SHED_NOTHING && atomic_load(&w->saved))
        restore(w);
    if (w->level >= MICA_SHED_IDLE)
        mica_side_shed(s->side, &s->side);
    const char *path = atomic_load(&w->saved) ? NULL : s->options.prefix_file; /* once: what comes later is little */
    if (w->level > MICA_SHED_NOTHING && mica_batch_shed(mica_schedule_batch(s->schedule), w->level, path, &n, &err))
        mica_server_log(s, "cached prefixes are given up without being saved: %s", err.message);
    else if (w->level > MICA_SHED_NOTHING && path)
        atomic_store(&w->saved, true);
    atomic_fetch_add(&s->metrics.shed_tokens, (uint64_t)(n > 0 ? n : 0));
    mica_schedule_look(s->schedule); /* it counts anew what there is */
    atomic_store(&w->busy, false);
}

/* ---- On the HTTP thread ---- */

static void tell(mica_pressure_watch *w, mica_shed_level before)
{
    static const char *const doing[] = {"memory pressure is over: all is as before", "cached prefixes are given up",
                                        "what is idle is given up, too", "new requests are refused"};
    mica_shed_level now = w->shedding.level;
    if (now > before)
        mica_server_log(w->server, "%s: %s", w->reason, doing[now]);
    else
        mica_server_log(w->server, "%s", now > MICA_SHED_NOTHING ? "memory pressure eases" : doing[0]);
}

/* Above 0 it is done again every second: what ends meanwhile is cached anew. */
static void act(mica_pressure_watch *w, mica_shed_level before)
{
    bool idle = false;
    mica_shed_level now = w->shedding.level;
    atomic_store(&w->server->metrics.shed_level, now);
    if (now != before)
        tell(w, before);
    if ((now == MICA_SHED_NOTHING && !atomic_load(&w->saved)) || !atomic_compare_exchange_strong(&w->busy, &idle, true))
        return;
    w->level = now;
    w->task = (mica_schedule_task){.run = shed};
    mica_schedule_add(w->server->schedule, &w->task);
}

static void settle(mica_pressure_watch *w)
{
    mica_server *s = w->server;
    w->seconds++;
    if (w->settled || (w->seconds < SETTLED_S && atomic_load(&s->metrics.generated_tokens) == 0))
        return;
    w->settled = true;
    if (s->options.on_settled)
        s->options.on_settled(s->options.user);
}

static void on_second(evutil_socket_t fd, short what, void *user)
{
    mica_pressure_watch *w = user;
    mica_device_state state;
    mica_memory_usage usage;
    mica_shed_level before = w->shedding.level;
    (void)fd;
    (void)what;
    settle(w);
    if (mica_device_read(w->device, &state, NULL))
        return;
    (void)mica_memory_usage_read(NULL, &usage, NULL); /* this process, whatever the system root; -1 is above no bound */
    mica_shedding_update(&w->shedding, &state, usage.rss_bytes, w->budget_bytes, w->limit_bytes, w->reason);
    act(w, before);
}

bool mica_pressure_refuses(const mica_pressure_watch *w, mica_fault *fault)
{
    if (w->shedding.level < MICA_SHED_REFUSE)
        return false;
    mica_fault_set(fault, 503, "memory_pressure", NULL,
                   "the machine is short of memory, and new requests wait until that is over; try again later (%s)", w->reason);
    return true;
}

bool mica_pressure_has_saved(const mica_pressure_watch *w)
{
    return w && atomic_load(&w->saved);
}

/* ---- Making ---- */

static mica_status make(mica_pressure_watch *w, mica_error *err)
{
    const mica_batch_options *b = &w->server->options.batch;
    mica_device_options o = mica_device_options_default();
    mica_memory_bounds bounds;
    struct timeval second = {.tv_sec = 1};
    o.sysroot = b->sysroot;
    mica_status status = mica_device_open(&o, &w->device, err);
    if (!status)
        status = mica_memory_bounds_read(b->sysroot, b->app_limit, b->memory_budget, b->memory_limit, &bounds, err);
    if (status)
        return status;
    w->budget_bytes = bounds.budget;
    w->limit_bytes = bounds.limit;
    w->timer = event_new(w->server->base, -1, EV_PERSIST, on_second, w);
    if (!w->timer || event_add(w->timer, &second))
        return mica_fail(err, MICA_OUT_OF_MEMORY, "the system refuses a timer");
    return MICA_OK;
}

mica_status mica_pressure_watch_new(mica_server *s, mica_pressure_watch **out, mica_error *err)
{
    mica_pressure_watch *w = mica_new_array(1, sizeof *w);
    *out = NULL;
    if (!w)
        return mica_fail_nomem(err, sizeof *w, "the watch over memory");
    w->server = s;
    atomic_init(&w->busy, false);
    atomic_init(&w->saved, false);
    mica_status status = make(w, err);
    if (status)
        mica_pressure_watch_free(w);
    else
        *out = w;
    return status;
}

void mica_pressure_watch_free(mica_pressure_watch *w)
{
    if (!w)
        return;
    if (w->timer)
        event_free(w->timer);
    mica_device_close(w->device);
    free(w);
}

mica_device *mica_pressure_device(const mica_pressure_watch *w)
{
    return w ? w->device : NULL;
}
