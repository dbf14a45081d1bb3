/* merge.c - see merge.h. */
#include "text/merge.h"

#include "base/mem.h"

bool mica_merger_reserve(mica_merger *m, size_t n)
{
    if (n <= m->room) {
        return true;
    }
    size_t room = n < 64 ? 64 : n + n / 2;
    /* n - 1 pairs at first, and each of at most n - 1 merges takes one entry and adds two: never more than 2 n. */
    mica_symbol *symbols = malloc(room * sizeof(*symbols));
    uint64_t *heap = malloc(2 * room * sizeof(*heap));
    if (!symbols || !heap) {
        free(symbols);
        free(heap);
        return false;
    }
    mica_merger_free(m);
    m->symbols = symbols;
    m->heap = heap;
    m->room = room;
    return true;
}

void mica_merger_free(mica_merger *m)
{
    free(m->symbols);
    free(m->heap);
    *m = (mica_merger){0};
}

static void push(mica_merger *m, uint64_t entry)
{
    size_t i = m->n_heap++;
    while (i > 0 && m->heap[(i - 1) / 2] > entry) {
        m->heap[i] = m->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    m->heap[i] = entry;
}

static uint64_t pop(mica_merger *m)
{
    uint64_t best = m->heap[0], last = m->heap[--m->n_heap];
    size_t i = 0, n = m->n_heap;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && m->heap[child + 1] < m->heap[child];
        if (m->heap[child] >= last) {
            break;
        }
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = last;
    return best;
}

/* Looks at symbol i and its right neighbour again. */
static void look(mica_merger *m, uint32_t i, mica_pair_fn pair, const void *user)
{
    mica_symbol *s = &m->symbols[i];
    s->key = s->next == MICA_MERGE_NONE ? MICA_MERGE_NONE : pair(user, s, &m->symbols[s->next], &s->merged);
    if (s->key != MICA_MERGE_NONE) {
        push(m, (uint64_t)s->key << 32 | i);
    }
}

void mica_merger_run(mica_merger *m, size_t n, mica_pair_fn pair, const void *user)
{
    mica_symbol *symbols = m->symbols;
    m->n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        symbols[i].prev = i ? (uint32_t)i - 1 : MICA_MERGE_NONE;
        symbols[i].next = i + 1 < n ? (uint32_t)i + 1 : MICA_MERGE_NONE;
    }
    for (size_t i = 0; i < n; i++) {
        look(m, (uint32_t)i, pair, user);
    }
    while (m->n_heap) {
        uint64_t entry = pop(m);
        uint32_t i = (uint32_t)entry;
        mica_symbol *left = &symbols[i];
        if (left->key != entry >> 32) {
            continue; /* stale */
        }
        mica_symbol *right = &symbols[left->next];
        left->id = left->merged;
        left->length += right->length;
        left->next = right->next;
        right->key = MICA_MERGE_NONE; /* gone: what the heap has of it is stale */
        if (left->next != MICA_MERGE_NONE) {
            symbols[left->next].prev = i;
        }
        if (left->prev != MICA_MERGE_NONE) {
            look(m, left->prev, pair, user);
        }
        look(m, i, pair, user);
    }
}
