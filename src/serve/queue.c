#include "serve/queue.h"

void mica_queue_init(mica_queue *q)
{
    *q = (mica_queue){NULL, &q->first};
}

void mica_queue_add(mica_queue *q, mica_request *r)
{
    r->next = NULL;
    *q->end = r;
    q->end = &r->next;
}

void mica_queue_move(mica_queue *to, mica_queue *from)
{
    if (!from->first)
        return;
    *to->end = from->first;
    to->end = from->end;
    mica_queue_init(from);
}

void mica_queue_remove(mica_queue *q, mica_request *r)
{
    mica_request **at = &q->first;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    if (!r->next)
        q->end = at;
    r->next = NULL;
}

bool mica_queue_has(const mica_queue *q, const mica_request *r)
{
    const mica_request *at = q->first;
    while (at && at != r)
        at = at->next;
    return at != NULL;
}

static int64_t level_of(const mica_request *r, int64_t now_ns)
{
    return r->priority + (now_ns - r->job->arrived_ns) / ((int64_t)MICA_SERVE_AGE_S * 1000000000);
}

mica_request *mica_queue_next(const mica_queue *q, int64_t now_ns, int32_t (*running)(const void *user, uint64_t client),
                              const void *user)
{
    mica_request *best = NULL;
    int64_t best_level = INT64_MIN;
    int32_t best_running = 0;
    for (mica_request *r = q->first; r; r = r->next) {
        int64_t level = level_of(r, now_ns);
        if (level < best_level)
            continue;
        int32_t n = running(user, r->client);
        if (level > best_level || n < best_running) {
            best = r;
            best_level = level;
            best_running = n;
        }
    }
    return best;
}
