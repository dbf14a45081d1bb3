/* telemetry.c - the sinks of a process: a queue and a thread for each. Owns both. */
#include "router/telemetry.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "router/telemetry_queue.h"

#define MAX_QUEUE 65536
#define LEAST_BYTES 65536 /* of a file: some hundred events, so that the older one is worth keeping */

typedef struct sink {
    mica_telemetry *telemetry;
    const mica_sink_kind *kind;
    void *state; /* the kind's own */
    mica_ring queue;
    sem_t news;
    pthread_t thread;
    bool started;
    _Atomic uint64_t taken, written, lost, dropped;
    pthread_mutex_t lock; /* of `error` */
    char error[200];
} sink;

struct mica_telemetry {
    size_t n_sinks;
    sink sinks[MICA_TELEMETRY_SINKS];
    bool text;
    int32_t close_ms;
    _Atomic int64_t in_flight; /* bytes of events */
    _Atomic int64_t deadline;  /* 0: goes on */
};

mica_telemetry_options mica_telemetry_options_default(void)
{
    return (mica_telemetry_options){.struct_size = sizeof(mica_telemetry_options), .queue = 1024, .close_ms = 2000,
                                    .max_bytes = 64 << 20};
}

mica_telemetry_event mica_telemetry_event_default(void)
{
    return (mica_telemetry_event){.struct_size = sizeof(mica_telemetry_event),
                                  .max_tokens = -1,
                                  .ttft_ms = NAN,
                                  .tpot_ms = NAN,
                                  .tpot_p50_ms = NAN,
                                  .tpot_p95_ms = NAN,
                                  .peak_rss_bytes = -1,
                                  .throttled = MICA_UNKNOWN,
                                  .joules = NAN};
}

bool mica_deadline_is_over(const _Atomic int64_t *deadline)
{
    int64_t at = atomic_load(deadline);
    return at != 0 && mica_now_ns() >= at;
}

/* ---- A sink's thread ---- */

static void note_error(sink *s, const char *message)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->error, sizeof s->error, "%.199s", message);
    pthread_mutex_unlock(&s->lock);
}

static void write_batch(sink *s, mica_event **events, size_t n)
{
    mica_error err;
    size_t written = 0;
    if (s->kind->write(s->state, events, n, &s->telemetry->deadline, &written, &err))
        note_error(s, err.message);
    atomic_fetch_add(&s->written, written);
    atomic_fetch_add(&s->lost, n - written);
    for (size_t i = 0; i < n; i++)
        mica_event_release(events[i]);
}

/* Until there is news, for at most `ms`, whatever becomes of the time of day. */
static void wait_news(sink *s, int32_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)sem_clockwait(&s->news, CLOCK_MONOTONIC, &until); /* whatever woke it, the queue is looked at */
}

static bool is_closing(const sink *s) { return atomic_load(&s->telemetry->deadline) != 0; }

/* Takes what there is, waiting a while for more once there is something. */
static size_t gather(sink *s, mica_event **events)
{
    size_t n = 0;
    int64_t until = 0;
    while (n < MICA_TELEMETRY_BATCH) {
        mica_event *event = mica_ring_take(&s->queue);
        int64_t now = mica_now_ns();
        if (event) {
            events[n++] = event;
            until = n == 1 ? now + s->kind->gather_ms * INT64_C(1000000) : until;
        } else if (is_closing(s) || (n > 0 && now >= until)) {
            break;
        } else {
            wait_news(s, n > 0 ? (int32_t)((until - now) / 1000000) + 1 : 60000);
        }
    }
    return n;
}

static void *run(void *user)
{
    sink *s = user;
    mica_event *events[MICA_TELEMETRY_BATCH];
    for (size_t n; (n = gather(s, events)) > 0 || !is_closing(s);)
        if (n > 0)
            write_batch(s, events, n);
    return NULL;
}

/* ---- Making ---- */

static bool ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static const mica_sink_kind *kind_of(const char *target)
{
    if (strncmp(target, "http://", 7) == 0 || strncmp(target, "https://", 8) == 0)
        return &mica_sink_otlp;
    return ends_in(target, ".db") || ends_in(target, ".sqlite") ? &mica_sink_sqlite : &mica_sink_jsonl;
}

/* Signals are for the threads of the program. */
static mica_status start_thread(sink *s, mica_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* a mapped file that was truncated: of the thread that reads it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->started = pthread_create(&s->thread, NULL, run, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->started ? MICA_OK : mica_fail(err, MICA_OUT_OF_MEMORY, "the system refuses another thread");
}

static mica_status make_sink(mica_telemetry *t, const mica_telemetry_options *o, const char *target, mica_error *err)
{
    struct timespec now;
    sink *s = &t->sinks[t->n_sinks];
    clock_gettime(CLOCK_REALTIME, &now);
    mica_sink_setup setup = {.target = target,
                             .headers = o->headers,
                             .service = o->service ? o->service : "mica",
                             .started_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
                             .max_bytes = o->max_bytes};
    if (!*target)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a telemetry sink has no name: give a file or the address of a receiver");
    s->telemetry = t;
    s->kind = kind_of(target);
    if (!mica_ring_init(&s->queue, (size_t)o->queue))
        return mica_fail_nomem(err, (size_t)o->queue * sizeof(void *), "a telemetry queue");
    sem_init(&s->news, 0, 0);
    pthread_mutex_init(&s->lock, NULL);
    t->n_sinks++;
    mica_status status = s->kind->open(&setup, &s->state, err);
    return status ? status : start_thread(s, err);
}

mica_status mica_telemetry_new(const mica_telemetry_options *options, mica_telemetry **out, mica_error *err)
{
    mica_telemetry_options o = options ? *options : mica_telemetry_options_default();
    *out = NULL;
    if (o.n_sinks > MICA_TELEMETRY_SINKS)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%zu telemetry sinks; at most %d are possible", o.n_sinks,
                         MICA_TELEMETRY_SINKS);
    if (o.queue < 1 || o.queue > MAX_QUEUE || o.close_ms < 0)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the telemetry queue is %d; it must be between 1 and %d, and close_ms not below 0", o.queue,
                         MAX_QUEUE);
    if (o.max_bytes != 0 && o.max_bytes < LEAST_BYTES)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the limit of telemetry files is %lld bytes; it must be at least %d, or 0",
                         (long long)o.max_bytes, LEAST_BYTES);
    mica_telemetry *t = mica_new_array(1, sizeof *t);
    if (!t)
        return mica_fail_nomem(err, sizeof *t, "the telemetry");
    t->text = o.text;
    t->close_ms = o.close_ms;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < o.n_sinks && !status; i++)
        status = make_sink(t, &o, o.sinks[i], err);
    if (status) {
        mica_telemetry_free(t);
        return status;
    }
    *out = t;
    return MICA_OK;
}

/* What nobody took any more. */
static void drop_rest(sink *s)
{
    for (mica_event *event; s->queue.cells && (event = mica_ring_take(&s->queue));) {
        atomic_fetch_add(&s->lost, 1);
        mica_event_release(event);
    }
}

void mica_telemetry_close(mica_telemetry *t)
{
    int64_t none = 0;
    atomic_compare_exchange_strong(&t->deadline, &none, mica_now_ns() + t->close_ms * INT64_C(1000000));
    for (size_t i = 0; i < t->n_sinks; i++)
        if (t->sinks[i].started)
            sem_post(&t->sinks[i].news);
    for (size_t i = 0; i < t->n_sinks; i++) {
        if (t->sinks[i].started)
            pthread_join(t->sinks[i].thread, NULL);
        t->sinks[i].started = false;
        drop_rest(&t->sinks[i]);
    }
}

void mica_telemetry_free(mica_telemetry *t)
{
    if (!t)
        return;
    mica_telemetry_close(t);
    for (size_t i = 0; i < t->n_sinks; i++) {
        sink *s = &t->sinks[i];
        if (s->state)
            s->kind->close(s->state);
        mica_ring_free(&s->queue);
        sem_destroy(&s->news);
        pthread_mutex_destroy(&s->lock);
    }
    free(t);
}

/* ---- Events ---- */

static bool put(sink *s, mica_event *event)
{
    atomic_fetch_add(&event->references, 1);
    if (mica_ring_put(&s->queue, event)) {
        atomic_fetch_add(&s->taken, 1);
        sem_post(&s->news);
        return true;
    }
    atomic_fetch_add(&s->dropped, 1);
    mica_event_release(event);
    return false;
}

bool mica_telemetry_add(mica_telemetry *t, const mica_telemetry_event *event)
{
    mica_event *copy = t->n_sinks > 0 ? mica_event_copy(event, t->text, &t->in_flight) : NULL;
    bool all = copy || t->n_sinks == 0;
    for (size_t i = 0; i < t->n_sinks; i++) {
        if (copy)
            all = put(&t->sinks[i], copy) && all;
        else
            atomic_fetch_add(&t->sinks[i].dropped, 1);
    }
    if (copy)
        mica_event_release(copy);
    return all;
}

size_t mica_telemetry_sink_count(const mica_telemetry *t) { return t->n_sinks; }

void mica_telemetry_sink(mica_telemetry *t, size_t i, mica_telemetry_sink_info *info)
{
    sink *s = &t->sinks[i];
    *info = (mica_telemetry_sink_info){.kind = s->kind->name,
                                       .taken = atomic_load(&s->taken),
                                       .written = atomic_load(&s->written),
                                       .lost = atomic_load(&s->lost),
                                       .dropped = atomic_load(&s->dropped)};
    pthread_mutex_lock(&s->lock);
    memcpy(info->error, s->error, sizeof info->error);
    pthread_mutex_unlock(&s->lock);
}
