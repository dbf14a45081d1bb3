/* telemetry_queue.h - a bounded queue of pointers: any thread puts in, one takes out, nobody waits for a lock.
 *
 * The ring of D. Vyukov ("Bounded MPMC queue"): each cell carries the number of the turn that may use it next, so that a writer
 * claims a cell with one compare-and-swap and a reader sees only cells that are filled. Called by telemetry.c. */
#ifndef MICA_ROUTER_TELEMETRY_QUEUE_H
#define MICA_ROUTER_TELEMETRY_QUEUE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct mica_ring {
    struct mica_ring_cell {
        atomic_size_t turn;
        void *item;
    } *cells;
    size_t mask; /* cells - 1, a power of two - 1 */
    atomic_size_t head, tail; /* of the next to be put in, and taken out */
} mica_ring;

/** Room for `capacity` items or a few more. False: no memory. */
bool mica_ring_init(mica_ring *ring, size_t capacity);
void mica_ring_free(mica_ring *ring);
/** False: it is full. */
bool mica_ring_put(mica_ring *ring, void *item);
/** NULL: it is empty. By one thread. */
void *mica_ring_take(mica_ring *ring);

#endif
