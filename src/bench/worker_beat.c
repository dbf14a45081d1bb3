#include "bench/worker_beat.h"

#include <string.h>

#include "base/clock.h"

static void *beats(void *user)
{
    mica_beat *b = user;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&b->lock);
    while (!b->ended) {
        int64_t ns = next.tv_nsec + (int64_t)(b->interval_s * 1e9);
        next.tv_sec += (time_t)(ns / 1000000000);
        next.tv_nsec = (long)(ns % 1000000000);
        while (!b->ended && pthread_cond_timedwait(&b->wake, &b->lock, &next) == 0)
            ;
        if (!b->ended && (double)(mica_now_ns() - atomic_load(&b->moved_ns)) < b->stall_s * 1e9)
            natsMsg_InProgress(b->msg, NULL); /* while the server is away it fails, which changes nothing */
    }
    pthread_mutex_unlock(&b->lock);
    nats_ReleaseThreadMemory();
    return NULL;
}

mica_status mica_beat_start(mica_beat *beat, natsMsg *msg, double interval_s, double stall_s, mica_error *err)
{
    pthread_condattr_t attributes;
    *beat = (mica_beat){.msg = msg, .interval_s = interval_s, .stall_s = stall_s};
    atomic_init(&beat->moved_ns, mica_now_ns());
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&beat->lock, NULL);
    pthread_cond_init(&beat->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    int code = pthread_create(&beat->thread, NULL, beats, beat);
    if (code == 0)
        return MICA_OK;
    pthread_cond_destroy(&beat->wake);
    pthread_mutex_destroy(&beat->lock);
    return mica_fail(err, MICA_IO_ERROR, "the thread that tells the queue of a shard in work cannot be started: %s",
                     strerror(code));
}

void mica_beat_move(mica_beat *beat)
{
    atomic_store(&beat->moved_ns, mica_now_ns());
}

void mica_beat_end(mica_beat *beat)
{
    pthread_mutex_lock(&beat->lock);
    beat->ended = true;
    pthread_cond_signal(&beat->wake);
    pthread_mutex_unlock(&beat->lock);
    pthread_join(beat->thread, NULL);
    pthread_cond_destroy(&beat->wake);
    pthread_mutex_destroy(&beat->lock);
}
