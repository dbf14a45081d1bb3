#include "tune_search.h"

#include <string.h>

#define CLOSE        0.94 /* of the best rate: measured again, as it may be the best */
#define CLOSE_PROBES 3
#define MOST_CLOSE   4 /* levels that are measured again */

void mica_tune_init(mica_tune *t, const mica_level *levels, int32_t n)
{
    memset(t, 0, sizeof *t);
    t->levels = levels;
    t->n = n;
}

void mica_tune_note(mica_tune *t, int32_t level, double rate)
{
    t->probes[level]++;
    t->rate[level] = rate > t->rate[level] ? rate : t->rate[level];
}

/* All cores, fast ones, efficient ones: kinds of teams that are searched one by one. */
static int kind_of(mica_level l)
{
    return l.n_fast > 0 && l.n_slow > 0 ? 0 : l.n_fast > 0 ? 1 : 2;
}

static bool same_kind(const mica_tune *t, int32_t a, int32_t b)
{
    return kind_of(t->levels[a]) == kind_of(t->levels[b]);
}

int32_t mica_tune_best(const mica_tune *t)
{
    int32_t best = 0;
    for (int32_t i = 1; i < t->n; i++)
        if (t->rate[i] > t->rate[best])
            best = i;
    return best;
}

int32_t mica_tune_chosen(const mica_tune *t)
{
    int32_t chosen = mica_tune_best(t);
    double enough = MICA_TUNE_KEEP * t->rate[chosen];
    for (int32_t i = chosen; i < t->n; i++)
        if (t->rate[i] > 0 && t->rate[i] >= enough)
            chosen = i;
    return chosen;
}

/* The ends of each kind, where nothing is known; -1: they are. */
static int32_t next_end(const mica_tune *t)
{
    for (int32_t i = 0; i < t->n; i++) {
        bool first = i == 0 || !same_kind(t, i, i - 1), last = i == t->n - 1 || !same_kind(t, i, i + 1);
        if ((first || last) && t->probes[i] == 0)
            return i;
    }
    return -1;
}

/* The best of a kind. */
static int32_t best_like(const mica_tune *t, int32_t level)
{
    int32_t best = level;
    for (int32_t i = 0; i < t->n; i++)
        if (same_kind(t, i, level) && t->rate[i] > t->rate[best])
            best = i;
    return best;
}

/* The middle of the wider gap beside `level`, between what was measured; -1: its neighbours were. */
static int32_t next_beside(const mica_tune *t, int32_t level)
{
    int32_t left = level, right = level;
    do {
        left--;
    } while (left >= 0 && same_kind(t, left, level) && t->probes[left] == 0);
    do {
        right++;
    } while (right < t->n && same_kind(t, right, level) && t->probes[right] == 0);
    int32_t below = level - left - 1, above = right - level - 1; /* levels between that were not measured */
    if (below <= 0 && above <= 0)
        return -1;
    return above >= below ? level + (above + 1) / 2 : level - (below + 1) / 2;
}

/* Of the levels close to the best the one that was measured least. */
static int32_t next_close(const mica_tune *t)
{
    double enough = CLOSE * t->rate[mica_tune_best(t)];
    int32_t least = -1, n = 0;
    for (int32_t i = t->n - 1; i >= 0 && n < MOST_CLOSE; i--) {
        if (t->rate[i] < enough || t->probes[i] == 0)
            continue;
        n++;
        if (t->probes[i] < CLOSE_PROBES && (least < 0 || t->probes[i] < t->probes[least]))
            least = i;
    }
    return least;
}

int32_t mica_tune_next(const mica_tune *t)
{
    int32_t next = next_end(t);
    for (int32_t i = 0; next < 0 && i < t->n; i++)
        if (i == 0 || !same_kind(t, i, i - 1))
            next = next_beside(t, best_like(t, i));
    return next >= 0 ? next : next_close(t);
}
