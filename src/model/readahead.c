/* readahead.c - the first pass over a model reads it from the disk: each layer is asked for while the ones before it are computed. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/map.h"
#include "model/weights.h"

static void want(const mica_weight *m, uintptr_t page)
{
    uintptr_t start = (uintptr_t)m->data & ~(page - 1), end = (uintptr_t)m->data + (size_t)m->rows * m->row_bytes;
    (void)posix_madvise((void *)start, end - start, POSIX_MADV_WILLNEED); /* a hint: refused, the pages come when they are touched */
}

static void want_layer(const mica_weights *w, int32_t i, uintptr_t page)
{
    if (i == w->h.n_layers) {
        want(&w->output, page);
        return;
    }
    const mica_layer *l = &w->layers[i];
    const mica_weight *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        want(all[k], page);
}

void mica_weights_want(const mica_weights *w, int32_t layer)
{
    int32_t last = layer < w->h.n_layers ? layer : w->h.n_layers;
    int first = atomic_load_explicit(w->wanted, memory_order_relaxed);
    while (first <= last) {
        if (!atomic_compare_exchange_weak_explicit(w->wanted, &first, first + 1, memory_order_relaxed, memory_order_relaxed))
            continue; /* another session of the model was faster; `first` says how far it is */
        want_layer(w, first, (uintptr_t)sysconf(_SC_PAGESIZE));
        first++;
    }
}

void mica_weights_rows_read(const mica_weights *w, int32_t n)
{
    if (!w->rows_apart || atomic_fetch_add_explicit(&w->wanted[1], n, memory_order_relaxed) + n < MICA_ROWS_KEPT)
        return;
    atomic_store_explicit(&w->wanted[1], 0, memory_order_relaxed);
    mica_map_forget(w->embd.data, (size_t)w->embd.rows * w->embd.row_bytes);
}
