/* regular_ranges.c - sets of code points as lists of ranges. */
#include "constraint/regular_impl.h"

#include <stdlib.h>
#include <string.h>

bool mica_ranges_add(mica_ranges *set, uint32_t low, uint32_t high)
{
    if (set->n == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 8;
        mica_char_range *items = realloc(set->items, capacity * sizeof *items);
        if (!items)
            return false;
        set->items = items;
        set->capacity = capacity;
    }
    set->items[set->n++] = (mica_char_range){low, high};
    return true;
}

bool mica_ranges_add_all(mica_ranges *set, const mica_char_range *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!mica_ranges_add(set, items[i].low, items[i].high))
            return false;
    return true;
}

static int compare_ranges(const void *a, const void *b)
{
    const mica_char_range *x = a, *y = b;
    if (x->low != y->low)
        return x->low < y->low ? -1 : 1;
    return x->high < y->high ? -1 : x->high > y->high;
}

/* Sorts, and merges what overlaps or touches; drops ranges that are empty. */
static void merge(mica_ranges *set)
{
    size_t n = 0;
    if (set->n)
        qsort(set->items, set->n, sizeof *set->items, compare_ranges);
    for (size_t i = 0; i < set->n; i++) {
        mica_char_range r = set->items[i];
        if (r.high > MICA_MAX_CODE)
            r.high = MICA_MAX_CODE;
        if (r.low > r.high)
            continue;
        if (n && r.low <= set->items[n - 1].high + 1) {
            if (r.high > set->items[n - 1].high)
                set->items[n - 1].high = r.high;
        } else
            set->items[n++] = r;
    }
    set->n = n;
}

bool mica_ranges_normalise(mica_ranges *set)
{
    merge(set);
    for (size_t i = 0; i < set->n; i++) { /* at most one range crosses the surrogates, in one of four ways */
        mica_char_range r = set->items[i];
        if (r.high < MICA_FIRST_SURROGATE || r.low > MICA_LAST_SURROGATE)
            continue;
        set->items[i] = (mica_char_range){1, 0};
        if (r.low < MICA_FIRST_SURROGATE && !mica_ranges_add(set, r.low, MICA_FIRST_SURROGATE - 1))
            return false;
        if (r.high > MICA_LAST_SURROGATE && !mica_ranges_add(set, MICA_LAST_SURROGATE + 1, r.high))
            return false;
    }
    merge(set);
    return true;
}

bool mica_ranges_negate(mica_ranges *set)
{
    mica_ranges rest = {0};
    uint32_t next = 0;
    bool ok = mica_ranges_normalise(set);
    for (size_t i = 0; ok && i < set->n; i++) {
        if (set->items[i].low > next)
            ok = mica_ranges_add(&rest, next, set->items[i].low - 1);
        next = set->items[i].high + 1;
    }
    if (ok && next <= MICA_MAX_CODE)
        ok = mica_ranges_add(&rest, next, MICA_MAX_CODE);
    ok = ok && mica_ranges_normalise(&rest);
    mica_ranges_free(set);
    *set = rest;
    return ok;
}

void mica_ranges_free(mica_ranges *set)
{
    free(set->items);
    *set = (mica_ranges){0};
}
