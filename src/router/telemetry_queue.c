#include "router/telemetry_queue.h"

#include <stdint.h>

#include "base/mem.h"

bool mica_ring_init(mica_ring *ring, size_t capacity)
{
    size_t n = 2;
    while (n < capacity)
        n *= 2;
    ring->cells = mica_new_array(n, sizeof *ring->cells);
    ring->mask = n - 1;
    atomic_init(&ring->head, 0);
    atomic_init(&ring->tail, 0);
    for (size_t i = 0; ring->cells && i < n; i++)
        atomic_init(&ring->cells[i].turn, i);
    return ring->cells != NULL;
}

void mica_ring_free(mica_ring *ring)
{
    free(ring->cells);
    ring->cells = NULL;
}

bool mica_ring_put(mica_ring *ring, void *item)
{
    size_t at = atomic_load_explicit(&ring->head, memory_order_relaxed);
    for (;;) {
        struct mica_ring_cell *cell = &ring->cells[at & ring->mask];
        size_t turn = atomic_load_explicit(&cell->turn, memory_order_acquire);
        intptr_t ahead = (intptr_t)(turn - at);
        if (ahead < 0)
            return false; /* not taken out yet since the last time round */
        if (ahead == 0 &&
            atomic_compare_exchange_weak_explicit(&ring->head, &at, at + 1, memory_order_relaxed, memory_order_relaxed)) {
            cell->item = item;
            atomic_store_explicit(&cell->turn, at + 1, memory_order_release);
            return true;
        }
        if (ahead > 0)
            at = atomic_load_explicit(&ring->head, memory_order_relaxed); /* another thread was faster */
    }
}

void *mica_ring_take(mica_ring *ring)
{
    size_t at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    struct mica_ring_cell *cell = &ring->cells[at & ring->mask];
    if (atomic_load_explicit(&cell->turn, memory_order_acquire) != at + 1)
        return NULL;
    void *item = cell->item;
    atomic_store_explicit(&ring->tail, at + 1, memory_order_relaxed);
    atomic_store_explicit(&cell->turn, at + ring->mask + 1, memory_order_release);
    return item;
}
