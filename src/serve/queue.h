/* queue.h - the requests that wait for a slot, and which of them is next. The scheduler's.
 *
 * Next is the one with the highest level: its priority, and one more for every MICA_SERVE_AGE_S that it has waited, so that
 * none waits for ever. Of the same level it is the one whose client has the fewest replies under way, so that many requests of
 * one client do not keep another one waiting. Of those again the first that came. */
#ifndef MICA_SERVE_QUEUE_H
#define MICA_SERVE_QUEUE_H
#include "serve/request.h"

typedef struct mica_queue {
    mica_request *first, **end; /* in the order of arrival */
} mica_queue;

void mica_queue_init(mica_queue *q);
void mica_queue_add(mica_queue *q, mica_request *r);
/** All of `from`, behind those that are there. */
void mica_queue_move(mica_queue *to, mica_queue *from);
/** It must be there. */
void mica_queue_remove(mica_queue *q, mica_request *r);
bool mica_queue_has(const mica_queue *q, const mica_request *r);

/** The next one; it stays in the queue. NULL: none waits. `running` says how many replies of a client are under way. */
mica_request *mica_queue_next(const mica_queue *q, int64_t now_ns, int32_t (*running)(const void *user, uint64_t client),
                              const void *user);

#endif
