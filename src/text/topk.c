/* topk.c - the scan over the logits, and the k best of them without sorting the rest.
 *
 * The k-th greatest of the blocks' maxima is a lower bound of the k-th greatest logit (k blocks have one that great), so only
 * about k blocks are read a second time. That leaves the time of one vectorised pass.
 */
#include "text/sampler_impl.h"

/* ---- Scan ------------------------------------------------------------------------------------------------------------ */

/* Two functions, so that the usual one has a constant count: gcc vectorises that even at -O2. */
static void range_of_block(const float *x, int32_t *max, int32_t *min)
{
    int32_t hi = INT32_MIN, lo = INT32_MAX;
    for (int i = 0; i < MICA_BLOCK; i++) {
        int32_t key = mica_order_key(x[i]);
        hi = key > hi ? key : hi;
        lo = key < lo ? key : lo;
    }
    *max = hi;
    *min = lo;
}

static void range_of_tail(const float *x, size_t n, int32_t *max, int32_t *min)
{
    *max = INT32_MIN;
    *min = INT32_MAX;
    for (size_t i = 0; i < n; i++) {
        int32_t key = mica_order_key(x[i]);
        *max = key > *max ? key : *max;
        *min = key < *min ? key : *min;
    }
}

static int32_t first_with_key(const mica_scan *scan, size_t block, int32_t key)
{
    size_t i = block * MICA_BLOCK;
    while (i + 1 < scan->n && mica_order_key(scan->logits[i]) != key)
        i++;
    return (int32_t)i;
}

bool mica_scan_logits(const float *logits, size_t n, int32_t *block_max, mica_scan *scan)
{
    size_t n_blocks = (n + MICA_BLOCK - 1) / MICA_BLOCK, best_block = 0;
    int32_t max = INT32_MIN, min = INT32_MAX;
    for (size_t b = 0; b < n_blocks; b++) {
        size_t from = b * MICA_BLOCK;
        int32_t hi, lo;
        if (n - from >= MICA_BLOCK)
            range_of_block(logits + from, &hi, &lo);
        else
            range_of_tail(logits + from, n - from, &hi, &lo);
        block_max[b] = hi;
        min = lo < min ? lo : min;
        if (hi > max) { /* strictly: the first block with the maximum has its lowest id */
            max = hi;
            best_block = b;
        }
    }
    *scan = (mica_scan){.logits = logits, .n = n, .n_blocks = n_blocks, .block_max = block_max, .max_key = max, .min_key = min};
    if (min < MICA_KEY_MINUS_INF || max >= MICA_KEY_INF || max <= MICA_KEY_MINUS_INF)
        return false;
    scan->best = mica_order_value(max);
    scan->best_id = first_with_key(scan, best_block, max);
    return true;
}

/* ---- Heaps ----------------------------------------------------------------------------------------------------------- */

static inline bool before(mica_cand a, mica_cand b) { return a.key > b.key || (a.key == b.key && a.id < b.id); }

/* `worst` chooses which end of the order is at the root; a constant at each call. */
static inline bool above(mica_cand a, mica_cand b, bool worst) { return worst ? before(b, a) : before(a, b); }

static inline void sift_down(mica_cand *c, size_t n, size_t i, bool worst)
{
    mica_cand item = c[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && above(c[child + 1], c[child], worst))
            child++;
        if (!above(c[child], item, worst))
            break;
        c[i] = c[child];
        i = child;
    }
    c[i] = item;
}

static inline void sift_up(mica_cand *c, size_t i, bool worst)
{
    mica_cand item = c[i];
    for (; i > 0 && above(item, c[(i - 1) / 2], worst); i = (i - 1) / 2)
        c[i] = c[(i - 1) / 2];
    c[i] = item;
}

void mica_heap_make(mica_cand *c, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(c, n, i, false);
}

void mica_heap_pop(mica_cand *c, size_t n)
{
    mica_cand first = c[0];
    c[0] = c[n - 1];
    c[n - 1] = first;
    sift_down(c, n - 1, 0, false);
}

/* ---- Top-k ----------------------------------------------------------------------------------------------------------- */

/* The k best of what is offered: a heap with the worst of them at the root. */
static void offer(mica_cand *heap, size_t *n, size_t k, mica_cand c)
{
    if (*n < k) {
        heap[*n] = c;
        sift_up(heap, (*n)++, true);
    } else if (before(c, heap[0])) {
        heap[0] = c;
        sift_down(heap, k, 0, true);
    }
}

/* The k-th greatest block maximum, or -inf if there are not so many blocks. `scratch` has room for k. */
static float kth_block_max(const mica_scan *scan, size_t k, mica_cand *scratch)
{
    if (k > scan->n_blocks)
        return -INFINITY;
    size_t n = 0;
    for (size_t b = 0; b < scan->n_blocks; b++)
        offer(scratch, &n, k, (mica_cand){mica_order_value(scan->block_max[b]), (int32_t)b});
    return scratch[0].key;
}

size_t mica_top_k(const mica_scan *scan, size_t k, mica_cand *out)
{
    if (k == 0)
        return 0;
    float bound = kth_block_max(scan, k, out);
    int32_t bound_key = mica_order_key(bound);
    size_t n = 0;
    for (size_t b = 0; b < scan->n_blocks; b++) {
        if (scan->block_max[b] < bound_key)
            continue;
        size_t from = b * MICA_BLOCK, to = from + MICA_BLOCK < scan->n ? from + MICA_BLOCK : scan->n;
        for (size_t i = from; i < to; i++)
            if (scan->logits[i] >= bound && scan->logits[i] != -INFINITY)
                offer(out, &n, k, (mica_cand){scan->logits[i], (int32_t)i});
    }
    for (size_t left = n; left > 1; left--) { /* heap sort: the worst goes last */
        mica_cand worst = out[0];
        out[0] = out[left - 1];
        out[left - 1] = worst;
        sift_down(out, left - 1, 0, true);
    }
    return n;
}
