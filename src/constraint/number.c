/* number.c - automata of the numbers within bounds.
 *
 * A state says where in the text it stands (sign, in front of the point or behind it, digits read), how the digits read compare
 * with the same many digits of each bound, and the remainder that the digits leave. All reachable states are explored from the
 * start; then those from which no number can be completed are removed, and equal ones merged. Bounds of negative numbers are
 * those of the magnitude, exchanged. */
#include "constraint/number.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef enum phase { PHASE_START, PHASE_MINUS, PHASE_ZERO, PHASE_WHOLE, PHASE_POINT, PHASE_PLACES } phase;

/* One state. `low` and `high`: -1, 0, 1 as the digits so far are below, equal to, above those of the bound. */
typedef struct place {
    uint8_t negative, phase;
    int8_t low, high;
    uint16_t count; /* digits read on this side of the point */
    uint32_t rest;
} place;

typedef struct magnitudes {
    mica_decimal low, high;
    bool low_open, high_open, any;
    char beyond[1]; /* digit of a bound made here */
} magnitudes;

typedef struct explorer {
    const mica_number_spec *spec;
    magnitudes of[2]; /* not negative, negative */
    int32_t max_places;
    place *places;
    int32_t n, capacity;
    int32_t *slots; /* hash table: place + 1 */
    int32_t n_slots;
    int32_t (*next)[12]; /* successor by symbol, -1: none */
    bool failed;
} explorer;

enum { SYMBOL_MINUS = 10, SYMBOL_POINT = 11 };

/* ---- Bounds ---- */

static int32_t whole_digits(const mica_decimal *d)
{
    return d->point > 1 ? d->point : 1;
}

/* Digit i of the part before the point, from the left. */
static int whole_digit(const mica_decimal *d, int32_t i)
{
    return d->point > 0 && i < d->n ? d->digits[i] - '0' : 0;
}

static int place_digit(const mica_decimal *d, int32_t i)
{
    int64_t k = (int64_t)d->point + i;
    return k >= 0 && k < d->n ? d->digits[k] - '0' : 0;
}

/* Whether any digit behind the point, from the i-th on, is not zero. */
static bool more_places(const mica_decimal *d, int32_t i)
{
    return d->n > 0 && (int64_t)d->point + i < d->n;
}

static const mica_decimal zero = {.digits = ""};

/* The magnitudes of one sign; a missing upper bound becomes that of 64-bit integers, or more if the lower one is beyond. */
static void set_magnitudes(magnitudes *m, const mica_decimal *low, bool low_open, const mica_decimal *high, bool high_open,
                           bool negative)
{
    static const mica_decimal limits[2] = {{.digits = "9223372036854775807", .n = 19, .point = 19},
                                           {.digits = "9223372036854775808", .n = 19, .point = 19}};
    m->low = low ? *low : zero;
    m->low_open = low ? low_open : negative;
    m->low.negative = false;
    if (negative && m->low.n == 0)
        m->low_open = true; /* no minus zero */
    if (high) {
        m->high = *high;
        m->high.negative = false;
        m->high_open = high_open;
    } else {
        m->high = limits[negative];
        if (mica_decimal_compare(&m->low, &m->high) >= 0) {
            m->beyond[0] = '1';
            m->high = (mica_decimal){.digits = m->beyond, .n = 1, .point = m->low.point + 2};
            m->high_open = true;
        }
    }
    int order = mica_decimal_compare(&m->low, &m->high);
    m->any = order < 0 || (order == 0 && !m->low_open && !m->high_open);
}

/* Splits the range at zero. */
static void split_range(explorer *x)
{
    const mica_number_spec *s = x->spec;
    bool low_negative = !s->low || s->low->negative, high_negative = s->high && (s->high->negative || !s->high->n);
    if (!(s->high && s->high->negative)) {
        bool from_low = s->low && !s->low->negative;
        set_magnitudes(&x->of[0], from_low ? s->low : NULL, s->low_open, s->high, s->high_open, false);
    }
    if (low_negative)
        set_magnitudes(&x->of[1], high_negative ? s->high : NULL, s->high_open, s->low, s->low_open, true);
    x->max_places = s->integer ? 0 : MICA_NUMBER_PLACES;
    const mica_decimal *bounds[2] = {s->low, s->high};
    for (int i = 0; i < 2 && !s->integer; i++) {
        int32_t needed = bounds[i] && bounds[i]->n ? bounds[i]->n - bounds[i]->point + 2 : 0;
        x->max_places = needed > x->max_places ? needed : x->max_places;
    }
    if (s->step && s->places < x->max_places)
        x->max_places = s->places;
}

/* ---- One step ---- */

static int compare_digit(int so_far, int digit, int of_bound)
{
    return so_far ? so_far : (digit > of_bound) - (digit < of_bound);
}

static bool whole_step(const explorer *x, place *p, int digit)
{
    const magnitudes *m = &x->of[p->negative];
    if (p->phase == PHASE_ZERO || p->count >= whole_digits(&m->high))
        return false;
    p->low = (int8_t)(p->count < whole_digits(&m->low) ? compare_digit(p->low, digit, whole_digit(&m->low, p->count)) : 1);
    p->high = (int8_t)compare_digit(p->high, digit, whole_digit(&m->high, p->count));
    p->phase = p->phase != PHASE_WHOLE && digit == 0 ? PHASE_ZERO : PHASE_WHOLE;
    p->count++;
    return true;
}

static bool place_step(const explorer *x, place *p, int digit)
{
    const magnitudes *m = &x->of[p->negative];
    if (p->phase == PHASE_PLACES && p->count >= x->max_places)
        return false;
    p->low = (int8_t)compare_digit(p->low, digit, place_digit(&m->low, p->count));
    p->high = (int8_t)compare_digit(p->high, digit, place_digit(&m->high, p->count));
    p->phase = PHASE_PLACES;
    p->count++;
    return true;
}

/* Fewer digits before the point than the bound has: the number is below it. */
static void settle_whole(const magnitudes *m, place *p)
{
    p->low = (int8_t)(p->count < whole_digits(&m->low) ? -1 : p->low);
    p->high = (int8_t)(p->count < whole_digits(&m->high) ? -1 : p->high);
}

/* Moves *p by one symbol; false if that is not possible. */
static bool step_place(const explorer *x, place *p, int symbol)
{
    if (symbol == SYMBOL_MINUS) {
        if (p->phase != PHASE_START || !x->of[1].any)
            return false;
        *p = (place){.negative = 1, .phase = PHASE_MINUS};
        return true;
    }
    if (!x->of[p->negative].any)
        return false;
    if (symbol == SYMBOL_POINT) {
        if ((p->phase != PHASE_ZERO && p->phase != PHASE_WHOLE) || x->max_places <= 0)
            return false;
        settle_whole(&x->of[p->negative], p);
        p->phase = PHASE_POINT;
        p->count = 0;
        return true;
    }
    if (!(p->phase >= PHASE_POINT ? place_step(x, p, symbol) : whole_step(x, p, symbol)))
        return false;
    if (x->spec->step)
        p->rest = (uint32_t)(((uint64_t)p->rest * 10 + (unsigned)symbol) % x->spec->step);
    return true;
}

/* rest * 10^k is a multiple of the step. */
static bool is_multiple(const mica_number_spec *s, uint64_t rest, int32_t k)
{
    for (; k > 0 && rest; k--)
        rest = rest * 10 % s->step;
    return rest == 0;
}

static bool accepts_place(const explorer *x, place p)
{
    const magnitudes *m = &x->of[p.negative];
    if (p.phase != PHASE_ZERO && p.phase != PHASE_WHOLE && p.phase != PHASE_PLACES)
        return false;
    int32_t behind = p.phase == PHASE_PLACES ? p.count : 0;
    if (p.phase != PHASE_PLACES)
        settle_whole(m, &p);
    if (p.low == 0 && more_places(&m->low, behind))
        p.low = -1;
    if (p.high == 0 && more_places(&m->high, behind))
        p.high = -1;
    if (p.low < 0 || (p.low == 0 && m->low_open) || p.high > 0 || (p.high == 0 && m->high_open))
        return false;
    return !x->spec->step || is_multiple(x->spec, p.rest, x->spec->places - behind);
}

/* ---- Exploring ---- */

static uint64_t key_of(place p)
{
    return (uint64_t)p.rest << 32 | (uint64_t)p.count << 16 | (uint64_t)(p.low + 1) << 8 | (uint64_t)(p.high + 1) << 10 |
           (uint64_t)p.phase << 1 | p.negative;
}

static bool grow(explorer *x)
{
    if (x->n < x->capacity)
        return true;
    int32_t capacity = x->capacity ? x->capacity * 2 : 256;
    place *places = realloc(x->places, (size_t)capacity * sizeof *places);
    if (places)
        x->places = places;
    int32_t(*next)[12] = realloc(x->next, (size_t)capacity * sizeof *next);
    if (next)
        x->next = next;
    int32_t *slots = mica_new_array((size_t)capacity * 4, sizeof *slots);
    if (!places || !next || !slots) {
        free(slots);
        x->failed = true;
        return false;
    }
    free(x->slots);
    x->slots = slots;
    x->n_slots = capacity * 4;
    x->capacity = capacity;
    for (int32_t i = 0; i < x->n; i++) {
        uint64_t h = key_of(x->places[i]) * 0x9E3779B97F4A7C15u;
        size_t slot = (size_t)(h >> 32) & (size_t)(x->n_slots - 1);
        while (x->slots[slot])
            slot = (slot + 1) & (size_t)(x->n_slots - 1);
        x->slots[slot] = i + 1;
    }
    return true;
}

/* The number of a place, new if it was not seen; -1 without memory. */
static int32_t find_place(explorer *x, place p)
{
    if (!grow(x))
        return -1;
    uint64_t key = key_of(p);
    size_t slot = (size_t)(key * 0x9E3779B97F4A7C15u >> 32) & (size_t)(x->n_slots - 1);
    for (; x->slots[slot]; slot = (slot + 1) & (size_t)(x->n_slots - 1))
        if (key_of(x->places[x->slots[slot] - 1]) == key)
            return x->slots[slot] - 1;
    x->places[x->n] = p;
    x->slots[slot] = x->n + 1;
    return x->n++;
}

/* False: no memory (failed), or too many states. */
static bool explore(explorer *x)
{
    find_place(x, (place){.phase = PHASE_START});
    for (int32_t i = 0; i < x->n && !x->failed; i++) {
        if (x->n > MICA_NUMBER_MAX_STATES)
            return false;
        for (int symbol = 0; symbol < 12; symbol++) {
            place p = x->places[i];
            int32_t to = step_place(x, &p, symbol) ? find_place(x, p) : -1;
            if (x->failed)
                return false;
            x->next[i][symbol] = to;
        }
    }
    return !x->failed;
}

/* ---- The automaton ----
 *
 * Every step leads to a place further on (phase and count only grow), so the graph has no cycles, and going through it
 * backwards finds in one pass the places that lead to a number, and of those the ones from which the same texts follow: they
 * become one state. */

typedef struct merging {
    const explorer *x;
    uint64_t *order; /* rank_of() << 32 | place, the last first */
    int32_t *state;  /* by place: the place that stands for it, or -1: leads nowhere */
    int32_t *number; /* by place: its state in the automaton, or -1 */
    int32_t *slots;
    size_t n_slots; /* a power of two */
} merging;

static uint32_t rank_of(place p)
{
    return (p.phase == PHASE_WHOLE ? PHASE_ZERO : p.phase) * 65536u + p.count;
}

static int descending(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x < y) - (x > y);
}

/* Replaces the successors of a place by those that stand for them; whether it leads anywhere. */
static bool settle_successors(const merging *m, int32_t i)
{
    bool useful = accepts_place(m->x, m->x->places[i]);
    for (int s = 0; s < 12; s++) {
        int32_t *next = &m->x->next[i][s];
        *next = *next < 0 ? -1 : m->state[*next];
        useful |= *next >= 0;
    }
    return useful;
}

static bool same_future(const explorer *x, int32_t i, int32_t k)
{
    return accepts_place(x, x->places[i]) == accepts_place(x, x->places[k]) &&
           memcmp(x->next[i], x->next[k], sizeof x->next[i]) == 0;
}

static void merge_places(const merging *m)
{
    for (int32_t o = 0; o < m->x->n; o++) {
        int32_t i = (int32_t)(m->order[o] & INT32_MAX);
        uint64_t hash = 0;
        m->state[i] = -1;
        if (!settle_successors(m, i))
            continue;
        for (int s = 0; s < 12; s++)
            hash = (hash ^ (uint32_t)m->x->next[i][s]) * 0x9E3779B97F4A7C15u;
        size_t slot = (size_t)(hash >> 32) & (m->n_slots - 1);
        while (m->slots[slot] && !same_future(m->x, m->slots[slot] - 1, i))
            slot = (slot + 1) & (m->n_slots - 1);
        if (!m->slots[slot])
            m->slots[slot] = i + 1;
        m->state[i] = m->slots[slot] - 1;
    }
}

/* Edges of one place: digits with the same successor are one edge. */
static void add_edges(const merging *m, int32_t i, mica_fsm *fsm)
{
    static const uint8_t bytes[12] = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-', '.'};
    int32_t from = m->number[i], first = fsm->n_edges;
    for (int s = 0; s < 12; s++) {
        int32_t next = m->x->next[i][s];
        if (next < 0)
            continue;
        mica_fsm_edge *last = fsm->n_edges > first ? &fsm->edges[fsm->n_edges - 1] : NULL;
        if (s < SYMBOL_MINUS && last && last->to == m->number[next] && last->high + 1 == bytes[s])
            last->high = bytes[s];
        else
            fsm->edges[fsm->n_edges++] =
                (mica_fsm_edge){.from = from, .to = m->number[next], .low = bytes[s], .high = bytes[s]};
    }
}

static mica_status make_fsm(const merging *m, mica_fsm *out, mica_error *err)
{
    int32_t n = 1;
    for (int32_t i = 1; i < m->x->n; i++) /* nothing leads back to the start, so it stands for itself alone, and is state 0 */
        m->number[i] = m->state[i] == i ? n++ : -1;
    m->number[0] = 0;
    out->accepts = mica_new_array((size_t)n, sizeof *out->accepts);
    out->edges = mica_new_array((size_t)n * 12, sizeof *out->edges);
    if (!out->accepts || !out->edges) {
        mica_fsm_clear(out);
        return mica_fail_nomem(err, (size_t)n * 12 * sizeof *out->edges, "an automaton of numbers");
    }
    out->n_states = n;
    for (int32_t i = 0; i < m->x->n; i++) {
        if (m->number[i] < 0)
            continue;
        out->accepts[m->number[i]] = accepts_place(m->x, m->x->places[i]);
        add_edges(m, i, out);
    }
    return MICA_OK;
}

static mica_status merge(const explorer *x, mica_fsm *out, mica_error *err)
{
    size_t n = (size_t)x->n, n_slots = 64;
    while (n_slots < n * 2)
        n_slots *= 2;
    merging m = {.x = x,
                 .n_slots = n_slots,
                 .order = mica_new_array(n, sizeof *m.order),
                 .state = mica_new_array(n, sizeof *m.state),
                 .number = mica_new_array(n, sizeof *m.number),
                 .slots = mica_new_array(n_slots, sizeof *m.slots)};
    mica_status status = MICA_OK;
    if (!m.order || !m.state || !m.number || !m.slots) {
        status = mica_fail_nomem(err, n_slots * sizeof *m.slots, "an automaton of numbers");
    } else {
        for (int32_t i = 0; i < x->n; i++)
            m.order[i] = (uint64_t)rank_of(x->places[i]) << 32 | (uint64_t)i;
        qsort(m.order, n, sizeof *m.order, descending);
        merge_places(&m);
        status = make_fsm(&m, out, err);
    }
    free(m.order);
    free(m.state);
    free(m.number);
    free(m.slots);
    return status;
}

mica_status mica_number_fsm(const mica_number_spec *spec, mica_fsm *out, mica_error *err)
{
    explorer x = {.spec = spec};
    mica_status status;
    *out = (mica_fsm){0};
    split_range(&x);
    if (explore(&x))
        status = merge(&x, out, err);
    else if (x.failed)
        status = mica_fail_nomem(err, (size_t)x.capacity * 2 * sizeof *x.next, "an automaton of numbers");
    else
        status = mica_fail(err, MICA_INVALID_ARGUMENT,
                           "the numbers need an automaton of more than %d states: use a smaller multipleOf "
                           "or narrower bounds",
                           MICA_NUMBER_MAX_STATES);
    free(x.places);
    free(x.next);
    free(x.slots);
    return status;
}

void mica_fsm_clear(mica_fsm *fsm)
{
    free(fsm->edges);
    free(fsm->accepts);
    *fsm = (mica_fsm){0};
}

bool mica_number_allows(const mica_number_spec *s, const mica_decimal *value)
{
    if (s->integer && !mica_decimal_is_integer(value))
        return false;
    int low = s->low ? mica_decimal_compare(value, s->low) : 1, high = s->high ? mica_decimal_compare(value, s->high) : -1;
    if (low < 0 || (low == 0 && s->low_open) || high > 0 || (high == 0 && s->high_open))
        return false;
    if (!s->step || !value->n)
        return true;
    int32_t zeros = value->point - value->n + s->places; /* behind the digits, once the value is scaled by 10^places */
    uint64_t rest = 0;
    for (int32_t i = 0; i < value->n; i++)
        rest = (rest * 10 + (uint64_t)(value->digits[i] - '0')) % s->step;
    return zeros >= 0 && is_multiple(s, rest, zeros);
}
