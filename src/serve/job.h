/* job.h - one request on its way through the server, and what comes back of it.
 *
 * The HTTP thread makes a job of a complete request and hands it to the preparing thread, which hands it to the scheduler; each
 * of them, and the connection, holds a reference. What the workers say goes into the job's `out` and, through the outbox, wakes
 * the HTTP thread.
 *
 * Invariants
 *  1. Fields marked (out) are touched with the outbox's lock held; `connection` by the HTTP thread alone; the rest by who has
 * the job.
 *  2. A job ends once: after mica_job_reply, _fail or _end nothing more is said.
 *  3. `gone` is set by the HTTP thread when nobody reads any more; the workers stop at their next look. */
#ifndef MICA_SERVE_JOB_H
#define MICA_SERVE_JOB_H
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "serve/fault.h"

typedef struct mica_job mica_job;

/** Jobs with news for the HTTP thread. `wake` is an eventfd. */
typedef struct mica_outbox {
    pthread_mutex_t lock;
    mica_job *first, *last;
    int wake;
} mica_outbox;

struct mica_job {
    atomic_int references;
    atomic_bool gone;
    size_t route; /* row of the route table */
    int64_t arrived_ns, deadline_ns;
    char *body; /* owned, terminated */
    size_t length;
    char if_none_match[64]; /* the header, for routes whose answers have an ETag; "" without, or if it is longer */
    char idempotency_key[65]; /* the header, for routed requests; "" likewise */
    mica_outbox *outbox;
    uint64_t client;        /* a hash of its API key, or of its address */
    bool has_key;           /* the former */
    struct mica_connection *connection;
    mica_buf out;                /* (out) bytes for the client, framing aside */
    int status;                  /* (out) 0: nothing was said */
    const char *type;            /* (out) static: the content type */
    const char *headers;         /* static: further lines for the answer's head, set before it is given; NULL: none */
    int retry_after;             /* (out) seconds; 0: no such header */
    bool streams, ended, listed; /* (out) */
    mica_job *next_news;         /* (out) */
    mica_job *next;              /* in a worker's queue */
    _Atomic int64_t *in_flight;  /* counted down when the job is gone; NULL: not counted */
    _Atomic int64_t started_ns;  /* when its first reply got a slot; 0: not yet */
};

mica_status mica_outbox_init(mica_outbox *box, mica_error *err);
void mica_outbox_close(mica_outbox *box);
/** Lets `wake` be quiet until the next news; before mica_outbox_take(). */
void mica_outbox_woken(mica_outbox *box);
/** The first of the jobs with news, with a reference; NULL: no more. */
mica_job *mica_outbox_take(mica_outbox *box);

/** One reference. Takes `body` over (from malloc), also when it fails (NULL). */
mica_job *mica_job_new(mica_outbox *box, size_t route, char *body, size_t length);
mica_job *mica_job_retain(mica_job *job);
void mica_job_release(mica_job *job);

/** A whole answer. `data` may be NULL (no memory: it becomes a 500); not taken over. */
void mica_job_reply(mica_job *job, int status, const char *type, const char *data, size_t length);
/** An error: a whole answer, or the last event of a stream that has begun. */
void mica_job_fail(mica_job *job, const mica_fault *fault);
/** A stream of events: begins, says, ends. */
void mica_job_stream(mica_job *job);
void mica_job_send(mica_job *job, const char *data, size_t length);
void mica_job_end(mica_job *job);

#endif
