/* regular_alphabet.c - classes of code points: made from the sets of a pattern, or from the classes of two automata. */
#include "constraint/regular_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void mica_alphabet_free(mica_alphabet *a)
{
    free(a->ranges);
    *a = (mica_alphabet){0};
}

int32_t mica_alphabet_class(const mica_alphabet *a, uint32_t code)
{
    int32_t low = 0, high = a->n_ranges;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (a->ranges[middle].high < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->n_ranges && a->ranges[low].low <= code ? a->ranges[low].class : -1;
}

/* ---- From sets ---- */

static int compare_codes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The places where any set begins or ends, sorted, each once: cell i is cuts[i] .. cuts[i + 1] - 1. Yours; NULL: no memory. */
static uint32_t *find_cuts(const mica_ranges *sets, size_t n, size_t *n_cuts)
{
    size_t total = 0, count = 0;
    for (size_t i = 0; i < n; i++)
        total += sets[i].n;
    uint32_t *cuts = mica_new_array(2 * total, sizeof *cuts);
    total = 0;
    for (size_t i = 0; cuts && i < n; i++)
        for (size_t k = 0; k < sets[i].n; k++) {
            cuts[total++] = sets[i].items[k].low;
            cuts[total++] = sets[i].items[k].high + 1;
        }
    if (total)
        qsort(cuts, total, sizeof *cuts, compare_codes);
    for (size_t i = 0; i < total; i++)
        if (count == 0 || cuts[i] != cuts[count - 1])
            cuts[count++] = cuts[i];
    *n_cuts = count;
    return cuts;
}

/* Cells looked at for all sets of a pattern together: bounds the time to a fraction of a second. */
#define MAX_CELL_VISITS 100000000

/* A partition of the cells. Class 0 is what no set has touched yet. */
typedef struct partition {
    const uint32_t *cuts;
    size_t n_cells;
    int32_t *class; /* of each cell */
    int32_t *size, *touched, *split_to; /* of each class: cells; those in the current set; the class they move to */
    int32_t *touched_list;
    int32_t n_classes;
    size_t visits;
} partition;

static size_t cell_at(const partition *p, uint32_t code)
{
    size_t low = 0, high = p->n_cells;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (p->cuts[middle] <= code)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Tells the cells of the set from those outside it. Time: the cells of the set. */
static void refine(partition *p, const mica_ranges *set)
{
    int32_t n_touched = 0;
    for (size_t k = 0; k < set->n; k++)
        for (size_t c = cell_at(p, set->items[k].low); c < p->n_cells && p->cuts[c] <= set->items[k].high; c++, p->visits++)
            if (p->touched[p->class[c]]++ == 0)
                p->touched_list[n_touched++] = p->class[c];
    for (int32_t i = 0; i < n_touched; i++) {
        int32_t class = p->touched_list[i];
        p->split_to[class] = class;
        if (class == 0 || p->touched[class] < p->size[class]) {
            p->split_to[class] = p->n_classes;
            p->size[class] -= p->touched[class];
            p->size[p->n_classes++] = p->touched[class];
        }
    }
    for (size_t k = 0; k < set->n; k++)
        for (size_t c = cell_at(p, set->items[k].low); c < p->n_cells && p->cuts[c] <= set->items[k].high; c++)
            p->class[c] = p->split_to[p->class[c]];
    for (int32_t i = 0; i < n_touched; i++)
        p->touched[p->touched_list[i]] = 0;
}

/* The cells as ranges; classes that were emptied on the way get no number. */
static mica_status collect(const partition *p, mica_alphabet *out, mica_error *err)
{
    int32_t n = 0, n_classes = 0;
    int32_t *number = p->touched; /* all zero */
    out->ranges = mica_new_array(p->n_cells, sizeof *out->ranges);
    if (!out->ranges)
        return mica_regular_nomem(err);
    for (size_t c = 0; c < p->n_cells; c++) {
        int32_t class = p->class[c];
        if (class == 0)
            continue;
        if (!number[class])
            number[class] = ++n_classes;
        mica_class_range *last = n ? &out->ranges[n - 1] : NULL;
        if (last && last->class == number[class] - 1 && last->high + 1 == p->cuts[c])
            last->high = p->cuts[c + 1] - 1;
        else
            out->ranges[n++] = (mica_class_range){p->cuts[c], p->cuts[c + 1] - 1, number[class] - 1};
    }
    out->n_ranges = n;
    out->n_classes = n_classes;
    return MICA_OK;
}

mica_status mica_alphabet_of_sets(const mica_ranges *sets, size_t n, mica_alphabet *out, mica_error *err)
{
    size_t n_cuts = 0, room;
    mica_status status = MICA_OK;
    *out = (mica_alphabet){0};
    uint32_t *cuts = find_cuts(sets, n, &n_cuts);
    partition p = {.cuts = cuts, .n_cells = n_cuts ? n_cuts - 1 : 0, .n_classes = 1};
    /* Every split makes a class with a cell more, except those of class 0, at most one a set. */
    room = p.n_cells + n + 2;
    p.class = mica_new_array(p.n_cells, sizeof *p.class);
    p.size = mica_new_array(4 * room, sizeof *p.size);
    if (!cuts || !p.class || !p.size)
        status = mica_regular_nomem(err);
    else {
        p.touched = p.size + room;
        p.split_to = p.size + 2 * room;
        p.touched_list = p.size + 3 * room;
        p.size[0] = (int32_t)p.n_cells;
        for (size_t i = 0; i < n && p.visits <= MAX_CELL_VISITS; i++)
            refine(&p, &sets[i]);
        status = p.visits > MAX_CELL_VISITS ? mica_regular_too_large(err) : collect(&p, out, err);
    }
    free(cuts);
    free(p.class);
    free(p.size);
    return status;
}

/* ---- From two alphabets ---- */

/* A piece of the overlay of two alphabets: within it neither changes its class. */
typedef struct piece {
    uint32_t low, high;
    int32_t a, b;
} piece;

static int compare_pairs(const void *x, const void *y)
{
    const piece *p = x, *q = y;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    if (p->b != q->b)
        return p->b < q->b ? -1 : 1;
    return p->low < q->low ? -1 : p->low > q->low;
}

static int compare_class_ranges(const void *x, const void *y)
{
    const mica_class_range *p = x, *q = y;
    return p->low < q->low ? -1 : p->low > q->low;
}

/* Cuts both alphabets at each other's borders. `pieces` has room for 2 * (a + b) + 1. */
static int32_t overlay(const mica_alphabet *a, const mica_alphabet *b, piece *pieces)
{
    int32_t i = 0, k = 0, n = 0;
    uint32_t at = 0;
    while (i < a->n_ranges || k < b->n_ranges) {
        const mica_class_range *x = i < a->n_ranges ? &a->ranges[i] : NULL, *y = k < b->n_ranges ? &b->ranges[k] : NULL;
        bool in_x = x && x->low <= at, in_y = y && y->low <= at;
        uint32_t end = MICA_MAX_CODE;
        if (x && (in_x ? x->high : x->low - 1) < end)
            end = in_x ? x->high : x->low - 1;
        if (y && (in_y ? y->high : y->low - 1) < end)
            end = in_y ? y->high : y->low - 1;
        if (in_x || in_y)
            pieces[n++] = (piece){at, end, in_x ? x->class : -1, in_y ? y->class : -1};
        i += in_x && x->high == end;
        k += in_y && y->high == end;
        at = end + 1;
    }
    return n;
}

mica_status mica_alphabet_of_two(const mica_alphabet *a, const mica_alphabet *b, mica_alphabet *out, int32_t **pairs,
                                 mica_error *err)
{
    size_t room = 2 * ((size_t)a->n_ranges + (size_t)b->n_ranges) + 1;
    piece *pieces = mica_new_array(room, sizeof *pieces);
    *out = (mica_alphabet){.ranges = mica_new_array(room, sizeof *out->ranges)};
    *pairs = mica_new_array(2 * room, sizeof **pairs);
    if (!pieces || !out->ranges || !*pairs) {
        free(pieces);
        mica_alphabet_free(out);
        free(*pairs);
        *pairs = NULL;
        return mica_regular_nomem(err);
    }
    int32_t n = overlay(a, b, pieces);
    if (n)
        qsort(pieces, (size_t)n, sizeof *pieces, compare_pairs);
    for (int32_t i = 0; i < n; i++) {
        if (i == 0 || pieces[i].a != pieces[i - 1].a || pieces[i].b != pieces[i - 1].b) {
            (*pairs)[2 * out->n_classes] = pieces[i].a;
            (*pairs)[2 * out->n_classes + 1] = pieces[i].b;
            out->n_classes++;
        }
        out->ranges[i] = (mica_class_range){pieces[i].low, pieces[i].high, out->n_classes - 1};
    }
    out->n_ranges = n;
    if (n)
        qsort(out->ranges, (size_t)n, sizeof *out->ranges, compare_class_ranges);
    free(pieces);
    return MICA_OK;
}
