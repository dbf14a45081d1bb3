#include "constraint/regular_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/utf8.h"

mica_status mica_regular_nomem(mica_error *err)
{
    return mica_fail(err, MICA_OUT_OF_MEMORY, "out of memory: the system refused memory for a regular expression");
}

mica_status mica_regular_too_large(mica_error *err)
{
    return mica_fail(err, MICA_INVALID_ARGUMENT,
                     "the pattern is too large (its automaton may have %d states): use smaller counts or fewer alternatives, "
                     "or hold it with ^ and $",
                     MICA_REGULAR_MAX_STATES);
}

void mica_regular_free(mica_regular *r)
{
    if (!r)
        return;
    mica_alphabet_free(&r->alphabet);
    free(r->next);
    free(r->accepts);
    free(r);
}

mica_regular *mica_regular_new(int32_t n_states, int32_t n_classes, int32_t n_ranges)
{
    mica_regular *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    size_t size = (size_t)n_states * (size_t)n_classes;
    r->n_states = n_states;
    r->alphabet.n_classes = n_classes;
    r->alphabet.n_ranges = n_ranges;
    r->alphabet.ranges = mica_new_array((size_t)n_ranges, sizeof *r->alphabet.ranges);
    r->next = mica_new_array(size, sizeof *r->next);
    r->accepts = mica_new_array((size_t)n_states, sizeof *r->accepts);
    if (!r->alphabet.ranges || !r->next || !r->accepts) {
        mica_regular_free(r);
        return NULL;
    }
    memset(r->next, -1, size * sizeof *r->next);
    return r;
}

/* Hands over an automaton that is minimal as it was made. */
static mica_status hand_over(mica_regular *r, mica_regular **out, mica_error *err)
{
    if (!mica_regular_measure(r)) {
        mica_regular_free(r);
        return mica_regular_nomem(err);
    }
    *out = r;
    return MICA_OK;
}

mica_status mica_regular_lengths(int32_t min, int32_t max, mica_regular **out, mica_error *err)
{
    *out = NULL;
    if (min < 0 || (max != MICA_G_NO_LIMIT && max < min))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "a length of %d to %d characters is not possible", min, max);
    int32_t last = max == MICA_G_NO_LIMIT ? min : max;
    if (last >= MICA_REGULAR_MAX_STATES)
        return mica_regular_too_large(err);
    int32_t n_classes = last > 0 || max == MICA_G_NO_LIMIT; /* the empty text alone needs none */
    mica_regular *r = mica_regular_new(last + 1, n_classes, 2 * n_classes);
    if (!r)
        return mica_regular_nomem(err);
    if (n_classes) {
        r->alphabet.ranges[0] = (mica_class_range){.low = 0, .high = MICA_FIRST_SURROGATE - 1};
        r->alphabet.ranges[1] = (mica_class_range){.low = MICA_LAST_SURROGATE + 1, .high = MICA_MAX_CODE};
        r->next[last] = max == MICA_G_NO_LIMIT ? last : -1;
    }
    for (int32_t s = 0; s < last; s++)
        r->next[s] = s + 1;
    for (int32_t s = min; s <= last; s++)
        r->accepts[s] = true;
    return hand_over(r, out, err);
}

/* ---- One text ---- */

static int compare_codes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the codes and drops what is there twice. */
static int32_t unique_codes(uint32_t *codes, int32_t n)
{
    int32_t kept = 0;
    if (n)
        qsort(codes, (size_t)n, sizeof *codes, compare_codes);
    for (int32_t i = 0; i < n; i++)
        if (kept == 0 || codes[i] != codes[kept - 1])
            codes[kept++] = codes[i];
    return kept;
}

/* A chain of n + 1 states; `letters` are its n_letters different characters. */
static mica_status chain(const char *text, int32_t n, const uint32_t *letters, int32_t n_letters, mica_regular **out,
                         mica_error *err)
{
    if ((int64_t)(n + 1) * n_letters > MICA_REGULAR_MAX_TABLE)
        return mica_regular_too_large(err);
    mica_regular *r = mica_regular_new(n + 1, n_letters, n_letters);
    if (!r)
        return mica_regular_nomem(err);
    for (int32_t i = 0; i < n_letters; i++)
        r->alphabet.ranges[i] = (mica_class_range){letters[i], letters[i], i};
    for (int32_t s = 0; s < n; s++) {
        uint32_t code;
        text += mica_utf8_read(text, &code);
        r->next[s * n_letters + mica_alphabet_class(&r->alphabet, code)] = s + 1;
    }
    r->accepts[n] = true;
    return hand_over(r, out, err);
}

mica_status mica_regular_text(const char *text, size_t length, mica_regular **out, mica_error *err)
{
    size_t good = mica_utf8_check(text, length);
    int32_t n = 0;
    *out = NULL;
    if (good != length)
        return mica_fail_at(err, MICA_BAD_TEXT, (int64_t)good, "a text is not valid UTF-8 at byte %zu", good);
    if (length / 4 >= MICA_REGULAR_MAX_STATES)
        return mica_regular_too_large(err);
    uint32_t *codes = mica_new_array(length, sizeof *codes);
    if (!codes)
        return mica_regular_nomem(err);
    for (size_t i = 0; i < length; n++)
        i += mica_utf8_read(text + i, &codes[n]);
    mica_status status = n >= MICA_REGULAR_MAX_STATES ? mica_regular_too_large(err)
                                                      : chain(text, n, codes, unique_codes(codes, n), out, err);
    free(codes);
    return status;
}

/* ---- Questions ---- */

bool mica_regular_is_empty(const mica_regular *r) { return !r->accepts[0] && r->alphabet.n_classes == 0; }

bool mica_regular_matches(const mica_regular *r, const char *text, size_t length)
{
    int32_t state = 0;
    if (mica_utf8_check(text, length) != length)
        return false;
    for (size_t i = 0; i < length;) {
        uint32_t code;
        i += mica_utf8_read(text + i, &code);
        int32_t class = mica_alphabet_class(&r->alphabet, code);
        if (class < 0 || (state = r->next[(size_t)state * (size_t)r->alphabet.n_classes + (size_t)class]) < 0)
            return false;
    }
    return r->accepts[state];
}

/* Distances from the start, breadth first; `queue` has room for all states. */
static int64_t shortest_text(const mica_regular *r, int32_t *queue, int32_t *distance)
{
    int32_t n = 0, c = r->alphabet.n_classes;
    memset(distance, -1, (size_t)r->n_states * sizeof *distance);
    distance[0] = 0;
    queue[n++] = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t s = queue[i];
        if (r->accepts[s])
            return distance[s];
        for (int32_t k = 0; k < c; k++) {
            int32_t to = r->next[s * c + k];
            if (to >= 0 && distance[to] < 0) {
                distance[to] = distance[s] + 1;
                queue[n++] = to;
            }
        }
    }
    return 0;
}

/* The longest way in a topological order; MICA_G_NO_LIMIT if there is a cycle, for every state is on the way to an end. */
static int64_t longest_text(const mica_regular *r, int32_t *queue, int32_t *distance, int32_t *incoming)
{
    int32_t n = 0, c = r->alphabet.n_classes;
    int64_t longest = 0;
    memset(distance, 0, (size_t)r->n_states * sizeof *distance);
    for (int32_t i = 0; i < r->n_states * c; i++)
        if (r->next[i] >= 0)
            incoming[r->next[i]]++;
    if (incoming[0])
        return MICA_G_NO_LIMIT;
    queue[n++] = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t s = queue[i];
        if (r->accepts[s] && distance[s] > longest)
            longest = distance[s];
        for (int32_t k = 0; k < c; k++) {
            int32_t to = r->next[s * c + k];
            if (to < 0)
                continue;
            if (distance[to] <= distance[s])
                distance[to] = distance[s] + 1;
            if (--incoming[to] == 0)
                queue[n++] = to;
        }
    }
    return n < r->n_states ? MICA_G_NO_LIMIT : longest;
}

bool mica_regular_measure(mica_regular *r)
{
    size_t n = (size_t)r->n_states;
    int32_t *work = mica_new_array(3 * n, sizeof *work);
    if (!work)
        return false;
    r->shortest = shortest_text(r, work, work + n);
    r->longest = longest_text(r, work, work + n, work + 2 * n);
    free(work);
    return true;
}

void mica_regular_lengths_of(const mica_regular *r, int64_t *shortest, int64_t *longest)
{
    *shortest = r->shortest;
    *longest = r->longest;
}
