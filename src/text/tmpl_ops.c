#include "text/tmpl_ops.h"

#include "text/tmpl_iter.h"
#include "text/tmpl_num.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <string.h>

/* ---- Truth, length, hash ---- */

bool mica_val_truth(const mica_val *v)
{
    switch (v->type) {
    case MICA_V_MISSING: case MICA_V_UNDEFINED: case MICA_V_NONE:
        return false;
    case MICA_V_BOOL:
        return v->b;
    case MICA_V_INT:
        return v->i != 0;
    case MICA_V_FLOAT:
        return v->f != 0;
    case MICA_V_STR:
        return v->len != 0;
    case MICA_V_LIST: case MICA_V_TUPLE:
        return v->seq->n != 0;
    case MICA_V_DICT: case MICA_V_VIEW:
        return v->dict->n != 0;
    case MICA_V_RANGE:
        return v->range->n != 0;
    default:
        return true;
    }
}

bool mica_val_length(mica_run *run, const mica_val *v, int64_t *n)
{
    switch (v->type) {
    case MICA_V_UNDEFINED:
        *n = 0;
        return true;
    case MICA_V_STR:
        *n = (int64_t)mica_val_count(v);
        return mica_run_charge(run, v->len);
    case MICA_V_LIST: case MICA_V_TUPLE:
        *n = (int64_t)v->seq->n;
        return true;
    case MICA_V_DICT: case MICA_V_VIEW:
        *n = (int64_t)v->dict->n;
        return true;
    case MICA_V_RANGE:
        *n = v->range->n;
        return true;
    default:
        return mica_run_fail(run, "object of type '%s' has no len()", mica_val_type_name(v));
    }
}

static uint64_t mix(uint64_t h) { return (h ^ h >> 31) * 0x9E3779B97F4A7C15u; }

static bool hash_value(mica_run *run, const mica_val *v, int depth, uint64_t *hash)
{
    int64_t i;
    switch (v->type) {
    case MICA_V_STR:
        *hash = mica_ustr_hash(v->s, v->len, run->hash_seed);
        return mica_run_charge(run, v->len);
    case MICA_V_BOOL: case MICA_V_INT:
        *hash = mix((uint64_t)mica_val_as_int(v) + run->hash_seed);
        return true;
    case MICA_V_FLOAT: { /* 1.0 and 1 are the same key */
        uint64_t bits;
        memcpy(&bits, &v->f, sizeof bits);
        bool whole = mica_num_truncate(v->f, &i) == MICA_NUM_OK && (double)i == v->f;
        *hash = mix((whole ? (uint64_t)i : bits) + run->hash_seed);
        return true;
    }
    case MICA_V_TUPLE:
        if (depth > MICA_TMPL_MAX_NESTING)
            return mica_run_fail(run, "data is nested too deeply");
        *hash = v->seq->n;
        for (size_t k = 0; k < v->seq->n; k++) {
            uint64_t one = 0;
            if (!hash_value(run, &v->seq->items[k], depth + 1, &one) || !mica_run_charge(run, 0))
                return false;
            *hash = mix(*hash + one);
        }
        return true;
    case MICA_V_VIEW:
        if (v->aux == MICA_VIEW_VALUES) {
            *hash = mix((uint64_t)(uintptr_t)v->dict);
            return true;
        }
        return mica_run_fail(run, "unhashable type: '%s'", mica_val_type_name(v));
    case MICA_V_LIST: case MICA_V_DICT:
        return mica_run_fail(run, "unhashable type: '%s'", mica_val_type_name(v));
    case MICA_V_NONE: case MICA_V_UNDEFINED: case MICA_V_SELF:
        *hash = v->type;
        return true;
    case MICA_V_FUNCTION:
        *hash = v->aux;
        return true;
    default:
        *hash = mix((uint64_t)(uintptr_t)v->seq);
        return true;
    }
}

bool mica_val_hash(mica_run *run, const mica_val *v, uint64_t *hash) { return hash_value(run, v, 0, hash); }

/* ---- Comparison ---- */

/* -1, 0, 1, or 2 when one of them is not a number (NaN). Exact also where an integer has no double. */
static int compare_numbers(const mica_val *a, const mica_val *b)
{
    if (mica_val_is_int(a) && mica_val_is_int(b)) {
        int64_t x = mica_val_as_int(a), y = mica_val_as_int(b);
        return x < y ? -1 : x > y;
    }
    if (a->type == MICA_V_FLOAT && b->type == MICA_V_FLOAT)
        return a->f < b->f ? -1 : a->f > b->f ? 1 : a->f == b->f ? 0 : 2;
    if (a->type == MICA_V_FLOAT) {
        int c = compare_numbers(b, a);
        return c == 2 ? 2 : -c;
    }
    int64_t x = mica_val_as_int(a), whole;
    double f = b->f;
    if (mica_num_is_nan(f))
        return 2;
    double floor = mica_num_floor(f);
    if (mica_num_truncate(floor, &whole) != MICA_NUM_OK)
        return f > 0 ? -1 : 1;
    if (x != whole)
        return x < whole ? -1 : 1;
    return f > floor ? -1 : 0;
}

/* -1, 0, 1: the bytes of UTF-8 are in the order of the code points. */
static int compare_text(const mica_val *a, const mica_val *b)
{
    size_t n = a->len < b->len ? a->len : b->len;
    int c = n ? memcmp(a->s, b->s, n) : 0;
    if (c)
        return c < 0 ? -1 : 1;
    return a->len < b->len ? -1 : a->len > b->len;
}

static bool equal(mica_run *run, const mica_val *a, const mica_val *b, int depth, bool *out);

static bool equal_seqs(mica_run *run, const mica_seq *a, const mica_seq *b, int depth, bool *out)
{
    *out = a == b;
    if (*out || a->n != b->n)
        return true;
    *out = true;
    for (size_t i = 0; i < a->n && *out; i++) {
        if (!equal(run, &a->items[i], &b->items[i], depth, out))
            return false;
    }
    return true;
}

static bool equal_dicts(mica_run *run, const mica_dict *a, const mica_dict *b, int depth, bool *out)
{
    *out = a == b;
    if (*out || a->n != b->n)
        return true;
    *out = true;
    for (size_t i = 0; i < a->n && *out; i++) {
        const mica_val *other;
        if (!mica_dict_find(run, b, &a->pairs[i].key, &other))
            return false;
        if (!other)
            *out = false;
        else if (!equal(run, &a->pairs[i].value, other, depth, out))
            return false;
    }
    return true;
}

static bool equal_ranges(const mica_range *a, const mica_range *b)
{
    return a->n == b->n && (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

static bool equal(mica_run *run, const mica_val *a, const mica_val *b, int depth, bool *out)
{
    if (depth > MICA_TMPL_MAX_NESTING)
        return mica_run_fail(run, "data is nested too deeply");
    if (!mica_run_charge(run, 0))
        return false;
    if (mica_val_is_number(a) && mica_val_is_number(b)) {
        *out = compare_numbers(a, b) == 0;
        return true;
    }
    *out = false;
    if (a->type != b->type)
        return true;
    switch (a->type) {
    case MICA_V_STR:
        *out = mica_val_same_text(a, b);
        return mica_run_charge(run, *out ? a->len : 0);
    case MICA_V_LIST: case MICA_V_TUPLE:
        return equal_seqs(run, a->seq, b->seq, depth + 1, out);
    case MICA_V_DICT:
        return equal_dicts(run, a->dict, b->dict, depth + 1, out);
    case MICA_V_RANGE:
        *out = equal_ranges(a->range, b->range);
        return true;
    case MICA_V_NONE: case MICA_V_UNDEFINED: case MICA_V_SELF:
        *out = true;
        return true;
    case MICA_V_FUNCTION:
        *out = a->aux == b->aux;
        return true;
    case MICA_V_METHOD: /* of one object: that is as close as identity needs to be here */
        *out = a->method->def == b->method->def && a->method->self.seq == b->method->self.seq;
        return true;
    default:
        *out = a->seq == b->seq && a->aux == b->aux;
        return true;
    }
}

bool mica_val_equal(mica_run *run, const mica_val *a, const mica_val *b, bool *out) { return equal(run, a, b, 0, out); }

/* <, <=, >, >= of two values. */
static bool ordered(mica_run *run, mica_op op, const mica_val *a, const mica_val *b, int depth, bool *out)
{
    static const char *const signs[] = {[MICA_OP_LT] = "<", [MICA_OP_LE] = "<=", [MICA_OP_GT] = ">", [MICA_OP_GE] = ">="};
    int c;
    if (depth > MICA_TMPL_MAX_NESTING)
        return mica_run_fail(run, "data is nested too deeply");
    if (!mica_run_charge(run, 0))
        return false;
    if (a->type == MICA_V_UNDEFINED || b->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, a->type == MICA_V_UNDEFINED ? a : b);
    if (mica_val_is_number(a) && mica_val_is_number(b)) {
        c = compare_numbers(a, b);
    } else if (a->type == MICA_V_STR && b->type == MICA_V_STR) {
        c = compare_text(a, b);
        if (!mica_run_charge(run, a->len < b->len ? a->len : b->len))
            return false;
    } else if (a->type == b->type && (a->type == MICA_V_LIST || a->type == MICA_V_TUPLE)) {
        const mica_seq *x = a->seq, *y = b->seq;
        size_t n = x->n < y->n ? x->n : y->n;
        for (size_t i = 0; i < n; i++) {
            bool same;
            if (!equal(run, &x->items[i], &y->items[i], depth + 1, &same))
                return false;
            if (!same)
                return ordered(run, op, &x->items[i], &y->items[i], depth + 1, out);
        }
        c = x->n < y->n ? -1 : x->n > y->n;
    } else {
        return mica_run_fail(run, "'%s' not supported between instances of '%s' and '%s'", signs[op], mica_val_type_name(a),
                             mica_val_type_name(b));
    }
    bool less = op == MICA_OP_LT || op == MICA_OP_LE, or_equal = op == MICA_OP_LE || op == MICA_OP_GE;
    *out = c != 2 && ((or_equal && c == 0) || (less ? c < 0 : c > 0));
    return true;
}

bool mica_val_less(mica_run *run, const mica_val *a, const mica_val *b, bool *out)
{
    return ordered(run, MICA_OP_LT, a, b, 0, out);
}

bool mica_val_contains(mica_run *run, const mica_val *container, const mica_val *item, bool *out)
{
    const mica_val *found;
    mica_iter it;
    mica_val v;
    bool done;
    *out = false;
    if (container->type == MICA_V_STR) {
        if (item->type != MICA_V_STR)
            return mica_run_fail(run, "'in <string>' requires string as left operand, not %s", mica_val_type_name(item));
        *out = mica_ustr_find(container->s, container->len, item->s, item->len, 0) >= 0;
        return mica_run_charge(run, (size_t)container->len + item->len);
    }
    if (container->type == MICA_V_DICT || (container->type == MICA_V_VIEW && container->aux == MICA_VIEW_KEYS)) {
        if (!mica_dict_find(run, container->dict, item, &found))
            return false;
        *out = found != NULL;
        return true;
    }
    if (!mica_val_is_iterable(container))
        return mica_run_fail(run, "argument of type '%s' is not iterable", mica_val_type_name(container));
    if (!mica_iter_open(run, container, &it))
        return false;
    for (;;) {
        if (!mica_iter_next(run, &it, &v, &done))
            return false;
        if (done || *out)
            return true;
        if (!mica_val_equal(run, &v, item, out))
            return false;
        if (*out)
            return true;
    }
}

bool mica_op_compare(mica_run *run, mica_op op, const mica_val *a, const mica_val *b, bool *out)
{
    switch (op) {
    case MICA_OP_EQ: case MICA_OP_NE:
        if (!mica_val_equal(run, a, b, out))
            return false;
        *out ^= op == MICA_OP_NE;
        return true;
    case MICA_OP_IN: case MICA_OP_NOT_IN:
        if (!mica_val_contains(run, b, a, out))
            return false;
        *out ^= op == MICA_OP_NOT_IN;
        return true;
    default:
        return ordered(run, op, a, b, 0, out);
    }
}

/* ---- Sorting ---- */

typedef struct sorter {
    mica_run *run;
    mica_val *keys, *items, *spare_keys, *spare_items;
    bool reverse;
} sorter;

/* Merges [a, b) and [b, c). The right one goes first only if it is strictly before the left one: stable in both directions. */
static bool merge(sorter *s, size_t a, size_t b, size_t c)
{
    size_t left = a, right = b;
    for (size_t k = a; k < c; k++) {
        bool take_right = left >= b;
        if (left < b && right < c) {
            const mica_val *x = s->reverse ? &s->keys[left] : &s->keys[right];
            const mica_val *y = s->reverse ? &s->keys[right] : &s->keys[left];
            if (!mica_val_less(s->run, x, y, &take_right))
                return false;
        }
        size_t from = take_right ? right++ : left++;
        s->spare_keys[k] = s->keys[from];
        s->spare_items[k] = s->items[from];
    }
    memcpy(s->keys + a, s->spare_keys + a, (c - a) * sizeof *s->keys);
    memcpy(s->items + a, s->spare_items + a, (c - a) * sizeof *s->items);
    return true;
}

bool mica_val_sort(mica_run *run, mica_val *items, mica_val *keys, size_t n, bool reverse)
{
    sorter s = {.run = run, .items = items, .reverse = reverse};
    s.keys = keys ? keys : mica_tarena_array(&run->arena, n, sizeof *items);
    s.spare_keys = mica_tarena_array(&run->arena, n, sizeof *items);
    s.spare_items = mica_tarena_array(&run->arena, n, sizeof *items);
    if (!s.keys || !s.spare_keys || !s.spare_items)
        return mica_run_no_memory(run);
    if (!keys && n)
        memcpy(s.keys, items, n * sizeof *items);
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t a = 0; a + width < n; a += 2 * width) {
            size_t end = a + 2 * width < n ? a + 2 * width : n;
            if (!merge(&s, a, a + width, end))
                return false;
        }
    }
    return true;
}
