/* regular_product.c - and, or, and-not of two regular languages: both automata side by side. */
#include "constraint/regular_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef enum product_kind { BOTH, EITHER, WITHOUT } product_kind;

/* The pairs of states found so far, numbered in the order in which they were met. State -1: that automaton has failed. */
typedef struct product {
    const mica_regular *a, *b;
    product_kind kind;
    int32_t *pairs; /* [n][2] */
    int32_t n, capacity;
    int32_t *table; /* open addressing: number + 1, or 0 */
    int32_t n_slots;
    bool failed;
} product;

static int32_t *find_slot(const product *p, int32_t a, int32_t b)
{
    uint32_t mask = (uint32_t)p->n_slots - 1;
    uint32_t i = (uint32_t)(((uint64_t)(uint32_t)(a + 1) << 32 | (uint32_t)(b + 1)) * 0x9E3779B97F4A7C15u >> 32) & mask;
    for (; p->table[i]; i = (i + 1) & mask) {
        const int32_t *pair = &p->pairs[2 * (p->table[i] - 1)];
        if (pair[0] == a && pair[1] == b)
            break;
    }
    return &p->table[i];
}

/* Doubles the room. The table stays at most half full. */
static bool grow(product *p)
{
    int32_t capacity = p->capacity ? p->capacity * 2 : 64;
    int32_t *pairs = realloc(p->pairs, (size_t)capacity * 2 * sizeof *pairs);
    int32_t *table = mica_new_array(2 * (size_t)capacity, sizeof *table);
    if (pairs)
        p->pairs = pairs;
    if (!pairs || !table) {
        free(table);
        return false;
    }
    free(p->table);
    p->table = table;
    p->capacity = capacity;
    p->n_slots = 2 * capacity;
    for (int32_t i = 0; i < p->n; i++)
        *find_slot(p, pairs[2 * i], pairs[2 * i + 1]) = i + 1;
    return true;
}

/* The number of a pair; -1 if no text can be completed from it, or without memory (`failed`). */
static int32_t number_of(product *p, int32_t a, int32_t b)
{
    if ((a < 0 && (b < 0 || p->kind != EITHER)) || (b < 0 && p->kind == BOTH))
        return -1;
    if (p->n == p->capacity && !grow(p)) {
        p->failed = true;
        return -1;
    }
    int32_t *slot = find_slot(p, a, b);
    if (*slot)
        return *slot - 1;
    p->pairs[2 * p->n] = a;
    p->pairs[2 * p->n + 1] = b;
    *slot = ++p->n;
    return p->n - 1;
}

static bool accepts(const product *p, int32_t a, int32_t b)
{
    bool in_a = a >= 0 && p->a->accepts[a], in_b = b >= 0 && p->b->accepts[b];
    return p->kind == BOTH ? in_a && in_b : p->kind == EITHER ? in_a || in_b : in_a && !in_b;
}

static int32_t step(const mica_regular *r, int32_t state, int32_t class)
{
    return state < 0 || class < 0 ? -1 : r->next[(size_t)state * (size_t)r->alphabet.n_classes + (size_t)class];
}

/* Fills r->next and r->accepts from all pairs that the start reaches. `classes` are those of both operands for each class of
 * r. */
static mica_status explore(product *p, const int32_t *classes, mica_regular *r, mica_error *err)
{
    size_t c = (size_t)r->alphabet.n_classes, room = 0;
    number_of(p, 0, 0);
    for (int32_t i = 0; i < p->n && !p->failed; i++) {
        if (i >= MICA_REGULAR_MAX_RAW_STATES || (size_t)(i + 1) * c > MICA_REGULAR_MAX_TABLE)
            return mica_regular_too_large(err);
        if ((size_t)i == room) {
            room = room ? room * 2 : 64;
            int32_t *next = realloc(r->next, (room * c + 1) * sizeof *next);
            r->next = next ? next : r->next;
            bool *accepting = realloc(r->accepts, room * sizeof *accepting);
            r->accepts = accepting ? accepting : r->accepts;
            if (!next || !accepting)
                return mica_regular_nomem(err);
        }
        int32_t a = p->pairs[2 * i], b = p->pairs[2 * i + 1];
        r->accepts[i] = accepts(p, a, b);
        for (size_t k = 0; k < c; k++)
            r->next[(size_t)i * c + k] = number_of(p, step(p->a, a, classes[2 * k]), step(p->b, b, classes[2 * k + 1]));
    }
    r->n_states = p->n;
    return p->failed ? mica_regular_nomem(err) : MICA_OK;
}

static mica_status combine(product_kind kind, const mica_regular *a, const mica_regular *b, mica_regular **out, mica_error *err)
{
    product p = {.a = a, .b = b, .kind = kind};
    mica_regular *r = calloc(1, sizeof *r);
    int32_t *classes = NULL;
    *out = NULL;
    mica_status status = r ? mica_alphabet_of_two(&a->alphabet, &b->alphabet, &r->alphabet, &classes, err)
                           : mica_regular_nomem(err);
    if (!status)
        status = explore(&p, classes, r, err);
    free(p.pairs);
    free(p.table);
    free(classes);
    if (!status)
        return mica_regular_minimise(r, out, err);
    mica_regular_free(r);
    return status;
}

mica_status mica_regular_both(const mica_regular *a, const mica_regular *b, mica_regular **out, mica_error *err)
{
    return combine(BOTH, a, b, out, err);
}

mica_status mica_regular_either(const mica_regular *a, const mica_regular *b, mica_regular **out, mica_error *err)
{
    return combine(EITHER, a, b, out, err);
}

mica_status mica_regular_without(const mica_regular *a, const mica_regular *b, mica_regular **out, mica_error *err)
{
    return combine(WITHOUT, a, b, out, err);
}
