/* run_hedge.c - two rungs at once: the second one begins when the first has said nothing for a while. Whichever has a piece to
 * say first is the reply (run_impl.h, invariant 1); the other one sees that and ends. */
#include <string.h>
#include <time.h>

#include "router/run_impl.h"

typedef struct race {
    pthread_mutex_t lock;
    pthread_cond_t news;
} race;

typedef struct runner_up {
    race *race;
    mica_attempt *attempt;
    mica_ask *ask;
    int32_t index;
    bool hedge, done; /* done: with the lock held */
    pthread_t thread;
} runner_up;

static void *run(void *user)
{
    runner_up *u = user;
    mica_attempt_run(u->attempt, u->ask, u->index, u->hedge);
    pthread_mutex_lock(&u->race->lock);
    u->done = true;
    pthread_cond_signal(&u->race->news);
    pthread_mutex_unlock(&u->race->lock);
    return NULL;
}

/* False: it ended, or its reply began, within the pause. */
static bool is_silent(runner_up *u, int64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&u->race->lock);
    while (!u->done && pthread_cond_timedwait(&u->race->news, &u->race->lock, &until) == 0) {
    }
    bool silent = !u->done && !atomic_load(&u->ask->winner);
    pthread_mutex_unlock(&u->race->lock);
    return silent;
}

int32_t mica_ask_race(mica_ask *ask, mica_attempt tries[2])
{
    const mica_route_decision *d = &ask->reply->decision;
    pthread_condattr_t attributes;
    race r;
    runner_up first = {&r, &tries[0], ask, d->order[0], false, false, 0};
    int32_t n = 1;
    pthread_mutex_init(&r.lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&r.news, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&first.thread, NULL, run, &first)) {
        run(&first); /* without a thread there is no second one */
    } else {
        if (is_silent(&first, ask->settings->hedge_ms) && mica_ask_may_try(ask, d->order[1])) {
            mica_attempt_run(&tries[1], ask, d->order[1], true);
            n = 2;
        }
        pthread_join(first.thread, NULL);
    }
    pthread_cond_destroy(&r.news);
    pthread_mutex_destroy(&r.lock);
    return n;
}
