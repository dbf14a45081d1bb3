/* regular_min.c - minimisation: J. Hopcroft's partition refinement ("An n log n algorithm for minimizing states in a finite
 * automaton", 1971) on partial automata, then the same for the alphabet's classes. */
#include "constraint/regular_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A partition of the states into blocks; each block is a piece of `order`. Within a block the marked states come first. */
typedef struct refiner {
    const mica_regular *r;
    int32_t *order, *place, *block; /* place and block of each state */
    int32_t *first, *size, *marked; /* of each block */
    int32_t n_blocks;
    int32_t *sources, *first_source; /* who goes to state s by class c: see list_sources() */
    int32_t *waiting, n_waiting;     /* blocks to split by */
    bool *is_waiting;
    int32_t *touched, *snapshot;
} refiner;

static size_t table_size(const mica_regular *r) { return (size_t)r->n_states * (size_t)r->alphabet.n_classes; }

/* ---- States that lead nowhere ---- */

/* Lists the sources of each state, all classes together (by_class: for each class): those of key k, which is the state
 * (by_class: class * n_states + state), are sources[first[k + 1] .. first[k + 2]). */
static void list_sources(const mica_regular *r, int32_t *first, int32_t *sources, bool by_class)
{
    size_t n = (size_t)r->n_states, c = (size_t)r->alphabet.n_classes, n_keys = by_class ? n * c : n;
    for (size_t i = 0; i < n * c; i++)
        if (r->next[i] >= 0)
            first[(by_class ? i % c * n : 0) + (size_t)r->next[i] + 1]++;
    for (size_t k = 0; k < n_keys; k++)
        first[k + 1] += first[k];
    first[n_keys + 1] = first[n_keys];
    for (size_t i = n * c; i-- > 0;) /* fills each list from its end, so that first[k + 1] comes to rest on its start */
        if (r->next[i] >= 0)
            sources[--first[(by_class ? i % c * n : 0) + (size_t)r->next[i] + 1]] = (int32_t)(i / c);
}

static void mark_live(const mica_regular *r, const int32_t *first, const int32_t *sources, int32_t *work, bool *live)
{
    int32_t n = 0;
    for (int32_t s = 0; s < r->n_states; s++)
        if ((live[s] = r->accepts[s]))
            work[n++] = s;
    while (n) {
        int32_t s = work[--n];
        for (int32_t i = first[s + 1]; i < first[s + 2]; i++)
            if (!live[sources[i]]) {
                live[sources[i]] = true;
                work[n++] = sources[i];
            }
    }
}

/* Removes the states that lead to no accepting one; the start always stays. */
static bool trim(mica_regular *r)
{
    size_t n = (size_t)r->n_states, c = (size_t)r->alphabet.n_classes;
    int32_t *first = mica_new_array(n + 2, sizeof *first), *sources = mica_new_array(n * c, sizeof *sources);
    int32_t *number = mica_new_array(n, sizeof *number), n_live = 0;
    bool *live = mica_new_array(n, sizeof *live), ok = first && sources && number && live;
    if (ok) {
        list_sources(r, first, sources, false);
        mark_live(r, first, sources, number, live);
        for (size_t s = 0; s < n; s++)
            number[s] = live[s] || s == 0 ? n_live++ : -1;
        for (size_t s = 0; s < n; s++) {
            if (number[s] < 0)
                continue;
            for (size_t k = 0; k < c; k++) {
                int32_t to = r->next[s * c + k];
                r->next[(size_t)number[s] * c + k] = to >= 0 && live[to] ? number[to] : -1;
            }
            r->accepts[number[s]] = r->accepts[s];
        }
        r->n_states = n_live;
    }
    free(first);
    free(sources);
    free(number);
    free(live);
    return ok;
}

/* ---- Equal states ---- */

static bool refiner_new(refiner *f, const mica_regular *r)
{
    size_t n = (size_t)r->n_states;
    *f = (refiner){.r = r};
    f->order = mica_new_array(9 * n, sizeof *f->order);
    f->first_source = mica_new_array(table_size(r) + 2, sizeof *f->first_source);
    f->sources = mica_new_array(table_size(r), sizeof *f->sources);
    f->is_waiting = mica_new_array(n, sizeof *f->is_waiting);
    if (!f->order || !f->first_source || !f->sources || !f->is_waiting)
        return false;
    f->place = f->order + n;
    f->block = f->order + 2 * n;
    f->first = f->order + 3 * n;
    f->size = f->order + 4 * n;
    f->marked = f->order + 5 * n;
    f->waiting = f->order + 6 * n;
    f->touched = f->order + 7 * n;
    f->snapshot = f->order + 8 * n;
    list_sources(r, f->first_source, f->sources, true);
    return true;
}

static void refiner_free(refiner *f)
{
    free(f->order);
    free(f->first_source);
    free(f->sources);
    free(f->is_waiting);
}

static void wait_for(refiner *f, int32_t block)
{
    f->is_waiting[block] = true;
    f->waiting[f->n_waiting++] = block;
}

/* The first partition: by acceptance. Both blocks wait, because the automaton is partial. */
static void split_by_acceptance(refiner *f)
{
    int32_t n = 0;
    for (int accepting = 0; accepting < 2; accepting++) {
        int32_t start = n;
        for (int32_t s = 0; s < f->r->n_states; s++)
            if (f->r->accepts[s] == (accepting != 0)) {
                f->order[n] = s;
                f->place[s] = n++;
                f->block[s] = f->n_blocks;
            }
        if (n == start)
            continue;
        f->first[f->n_blocks] = start;
        f->size[f->n_blocks] = n - start;
        wait_for(f, f->n_blocks++);
    }
}

/* Moves a state to the marked part of its block. */
static int32_t mark(refiner *f, int32_t state, int32_t n_touched)
{
    int32_t block = f->block[state], from = f->place[state], to = f->first[block] + f->marked[block];
    if (from < to)
        return n_touched;
    int32_t other = f->order[to];
    f->order[to] = state;
    f->order[from] = other;
    f->place[state] = to;
    f->place[other] = from;
    if (f->marked[block]++ == 0)
        f->touched[n_touched++] = block;
    return n_touched;
}

/* Makes the marked states of a block a block of their own. */
static void split(refiner *f, int32_t block)
{
    int32_t n = f->marked[block], made = f->n_blocks;
    f->marked[block] = 0;
    if (n == f->size[block])
        return;
    f->first[made] = f->first[block];
    f->size[made] = n;
    f->first[block] += n;
    f->size[block] -= n;
    f->n_blocks++;
    for (int32_t i = f->first[made]; i < f->first[made] + n; i++)
        f->block[f->order[i]] = made;
    if (f->is_waiting[block] || n <= f->size[block])
        wait_for(f, made);
    else
        wait_for(f, block);
}

static void refine(refiner *f)
{
    size_t n = (size_t)f->r->n_states;
    split_by_acceptance(f);
    while (f->n_waiting) {
        int32_t by = f->waiting[--f->n_waiting], count = f->size[by];
        f->is_waiting[by] = false;
        memcpy(f->snapshot, f->order + f->first[by], (size_t)count * sizeof *f->snapshot); /* it may be split itself */
        for (size_t c = 0; c < (size_t)f->r->alphabet.n_classes; c++) {
            int32_t n_touched = 0;
            for (int32_t i = 0; i < count; i++) {
                const int32_t *range = &f->first_source[c * n + (size_t)f->snapshot[i] + 1];
                for (int32_t k = range[0]; k < range[1]; k++)
                    n_touched = mark(f, f->sources[k], n_touched);
            }
            for (int32_t i = 0; i < n_touched; i++)
                split(f, f->touched[i]);
        }
    }
}

/* The blocks as states, numbered as the start reaches them. `number` has room for one int32_t a block, `queue` too. */
static mica_regular *quotient(refiner *f)
{
    const mica_regular *r = f->r;
    size_t c = (size_t)r->alphabet.n_classes;
    mica_regular *q = calloc(1, sizeof *q);
    int32_t *number = f->touched, *queue = f->snapshot, n = 0;
    if (!q)
        return NULL;
    q->next = mica_new_array((size_t)f->n_blocks * c, sizeof *q->next);
    q->accepts = mica_new_array((size_t)f->n_blocks, sizeof *q->accepts);
    if (!q->next || !q->accepts) {
        mica_regular_free(q);
        return NULL;
    }
    memset(number, -1, (size_t)f->n_blocks * sizeof *number);
    number[f->block[0]] = n;
    queue[n++] = 0;
    for (int32_t i = 0; i < n; i++) {
        q->accepts[i] = r->accepts[queue[i]];
        for (size_t k = 0; k < c; k++) {
            int32_t to = r->next[(size_t)queue[i] * c + k];
            if (to >= 0 && number[f->block[to]] < 0) {
                number[f->block[to]] = n;
                queue[n++] = to;
            }
            q->next[(size_t)i * c + k] = to < 0 ? -1 : number[f->block[to]];
        }
    }
    q->n_states = n;
    return q;
}

/* ---- Equal classes ---- */

static bool same_column(const mica_regular *r, size_t a, size_t b)
{
    size_t c = (size_t)r->alphabet.n_classes;
    for (size_t s = 0; s < (size_t)r->n_states; s++)
        if (r->next[s * c + a] != r->next[s * c + b])
            return false;
    return true;
}

/* For each class the number of its column, -1 if that has no target; hashes first, because there may be thousands. */
static int32_t number_columns(const mica_regular *r, uint64_t *hash, int32_t *number, int32_t *table, size_t n_slots)
{
    size_t c = (size_t)r->alphabet.n_classes;
    int32_t n = 0;
    for (size_t k = 0; k < c; k++) {
        bool has_target = false;
        uint64_t h = 0;
        for (size_t s = 0; s < (size_t)r->n_states; s++) {
            has_target |= r->next[s * c + k] >= 0;
            h = (h ^ (uint64_t)(r->next[s * c + k] + 1)) * 0x9E3779B97F4A7C15u;
            h ^= h >> 29;
        }
        hash[k] = h;
        number[k] = -1;
        size_t slot = (size_t)h & (n_slots - 1);
        while (has_target && table[slot] && !(hash[table[slot] - 1] == h && same_column(r, (size_t)table[slot] - 1, k)))
            slot = (slot + 1) & (n_slots - 1);
        if (!has_target)
            continue;
        if (!table[slot]) {
            table[slot] = (int32_t)k + 1;
            number[k] = n++;
        } else
            number[k] = number[table[slot] - 1];
    }
    return n;
}

/* Gives q the alphabet of `from` with the classes renumbered, and its table the columns that are left. */
static void take_alphabet(mica_regular *q, const int32_t *number, int32_t n_classes)
{
    mica_alphabet *a = &q->alphabet;
    size_t c = (size_t)a->n_classes, n = (size_t)n_classes;
    int32_t n_ranges = 0;
    for (size_t s = 0; s < (size_t)q->n_states; s++) /* in place: a row never moves behind its old start */
        for (size_t k = 0, column = 0; k < c; k++)
            if (number[k] == (int32_t)column && column < n)
                q->next[s * n + column++] = q->next[s * c + k];
    for (int32_t i = 0; i < a->n_ranges; i++) {
        mica_class_range r = a->ranges[i], *last = n_ranges ? &a->ranges[n_ranges - 1] : NULL;
        r.class = number[r.class];
        if (r.class < 0)
            continue;
        if (last && last->class == r.class && last->high + 1 == r.low)
            last->high = r.high;
        else
            a->ranges[n_ranges++] = r;
    }
    a->n_ranges = n_ranges;
    a->n_classes = n_classes;
}

static bool merge_classes(mica_regular *q)
{
    size_t c = (size_t)q->alphabet.n_classes, n_slots = 16;
    while (n_slots < 2 * c)
        n_slots *= 2;
    uint64_t *hash = mica_new_array(c, sizeof *hash);
    int32_t *number = mica_new_array(c, sizeof *number), *table = mica_new_array(n_slots, sizeof *table);
    bool ok = hash && number && table;
    if (ok)
        take_alphabet(q, number, number_columns(q, hash, number, table, n_slots));
    free(hash);
    free(number);
    free(table);
    return ok;
}

mica_status mica_regular_minimise(mica_regular *raw, mica_regular **out, mica_error *err)
{
    refiner f = {0};
    mica_regular *q = NULL;
    mica_status status = MICA_OK;
    *out = NULL;
    if (trim(raw) && refiner_new(&f, raw)) {
        refine(&f);
        q = quotient(&f);
    }
    refiner_free(&f);
    if (q) {
        q->alphabet = raw->alphabet;
        raw->alphabet = (mica_alphabet){0};
    }
    mica_regular_free(raw);
    if (!q || !merge_classes(q) || !mica_regular_measure(q))
        status = mica_regular_nomem(err);
    else if (q->n_states > MICA_REGULAR_MAX_STATES)
        status = mica_regular_too_large(err);
    else {
        *out = q;
        return MICA_OK;
    }
    mica_regular_free(q);
    return status;
}
