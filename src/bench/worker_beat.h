/* worker_beat.h - tells the queue at intervals that a shard is in work, from a thread of its own, for as long as the work gets
 * on. Owns the thread; borrows the message, which nobody else touches meanwhile. Called by worker.c. */
#ifndef MICA_BENCH_WORKER_BEAT_H
#define MICA_BENCH_WORKER_BEAT_H
#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"

typedef struct mica_beat {
    natsMsg *msg;
    double interval_s, stall_s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ended;
    atomic_llong moved_ns; /* when the work last got on */
} mica_beat;

/** Beats every interval_s seconds, until the work has not got on for stall_s. */
mica_status mica_beat_start(mica_beat *beat, natsMsg *msg, double interval_s, double stall_s, mica_error *err);
/** The work gets on. From any thread. */
void mica_beat_move(mica_beat *beat);
void mica_beat_end(mica_beat *beat);

#endif
