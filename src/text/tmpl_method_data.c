#include "text/tmpl_attr.h"
#include "text/tmpl_builtin.h"
#include "text/tmpl_iter.h"
#include "text/tmpl_num.h"
#include "text/tmpl_ops.h"

/* Methods of dicts, lists, tuples, ranges, numbers and cyclers. */

#define METHOD(name) \
    static bool name(mica_run *run, const mica_val *self, const mica_args *args, const mica_val *bound, mica_val *out)
#define UNUSED (void)run, (void)args, (void)bound

/* ---- Dicts ---- */

static bool view(const mica_val *self, mica_view kind, mica_val *out)
{
    *out = (mica_val){.type = MICA_V_VIEW, .aux = (uint16_t)kind, .dict = self->dict};
    return true;
}

METHOD(d_keys) { UNUSED; return view(self, MICA_VIEW_KEYS, out); }
METHOD(d_values) { UNUSED; return view(self, MICA_VIEW_VALUES, out); }
METHOD(d_items) { UNUSED; return view(self, MICA_VIEW_ITEMS, out); }

METHOD(d_get)
{
    (void)args;
    const mica_val *found;
    if (!mica_dict_find(run, self->dict, &bound[0], &found))
        return false;
    *out = found ? *found : mica_arg_given(&bound[1]) ? bound[1] : MICA_NONE;
    return true;
}

METHOD(d_copy)
{
    UNUSED;
    *out = *self; /* dicts never change, so a copy is the same */
    return true;
}

const mica_method_def mica_dict_methods[] = {
    {"keys", d_keys, "", 0, false},     {"values", d_values, "", 0, false},  {"items", d_items, "", 0, false},
    {"get", d_get, "0,1", 1, false},    {"copy", d_copy, "", 0, false},      {"fromkeys", NULL, "", 0, false},
    {"clear", NULL, "", 0, true},       {"pop", NULL, "", 0, true},          {"popitem", NULL, "", 0, true},
    {"setdefault", NULL, "", 0, true},  {"update", NULL, "", 0, true},       {NULL, NULL, NULL, 0, false},
};

/* ---- Lists, tuples, ranges ---- */

static bool search(mica_run *run, const mica_val *self, const mica_val *wanted, int64_t from, int64_t to, int64_t *first,
                   int64_t *n)
{
    mica_iter it;
    mica_val item;
    bool done, same;
    *first = -1;
    *n = 0;
    if (!mica_iter_open(run, self, &it))
        return false;
    for (int64_t i = 0; i < to; i++) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            break;
        if (i < from)
            continue;
        if (!mica_val_equal(run, &item, wanted, &same))
            return false;
        if (same && *n == 0)
            *first = i;
        *n += same;
    }
    return true;
}

METHOD(l_count)
{
    (void)args;
    int64_t first, n;
    if (!search(run, self, &bound[0], 0, INT64_MAX, &first, &n))
        return false;
    *out = mica_val_int(n);
    return true;
}

METHOD(l_index)
{
    (void)args;
    int64_t length, from, to, first, n;
    if (!mica_val_length(run, self, &length) || !mica_arg_int(run, &bound[1], "start", 0, &from) ||
        !mica_arg_int(run, &bound[2], "stop", length, &to))
        return false;
    from = from < 0 ? (from < -length ? 0 : from + length) : from;
    to = to < 0 ? (to < -length ? 0 : to + length) : to;
    if (!search(run, self, &bound[0], from, to, &first, &n))
        return false;
    if (n == 0)
        return mica_run_fail(run, "the value is not in the %s", mica_val_type_name(self));
    *out = mica_val_int(first);
    return true;
}

METHOD(l_copy)
{
    UNUSED;
    *out = *self; /* lists never change either */
    return true;
}

const mica_method_def mica_list_methods[] = {
    {"count", l_count, "0", 1, false}, {"index", l_index, "0,1,2", 1, false}, {"copy", l_copy, "", 0, false},
    {"append", NULL, "", 0, true},     {"clear", NULL, "", 0, true},          {"extend", NULL, "", 0, true},
    {"insert", NULL, "", 0, true},     {"pop", NULL, "", 0, true},            {"remove", NULL, "", 0, true},
    {"reverse", NULL, "", 0, true},    {"sort", NULL, "", 0, true},           {NULL, NULL, NULL, 0, false},
};

const mica_method_def mica_tuple_methods[] = {
    {"count", l_count, "0", 1, false},
    {"index", l_index, "0,1,2", 1, false},
    {NULL, NULL, NULL, 0, false},
};

const mica_method_def mica_range_methods[] = {
    {"count", l_count, "0", 1, false},
    {"index", l_index, "0", 1, false},
    {NULL, NULL, NULL, 0, false},
};

/* ---- Numbers ---- */

METHOD(i_bit_length)
{
    UNUSED;
    int64_t i = mica_val_as_int(self);
    uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    *out = mica_val_int(magnitude ? 64 - __builtin_clzll(magnitude) : 0);
    return true;
}

METHOD(n_conjugate)
{
    UNUSED;
    *out = self->type == MICA_V_BOOL ? mica_val_int(self->b) : *self;
    return true;
}

METHOD(f_is_integer)
{
    UNUSED;
    *out = mica_val_bool(!mica_num_is_inf(self->f) && mica_num_floor(self->f) == self->f);
    return true;
}

const mica_method_def mica_int_methods[] = {
    {"as_integer_ratio", NULL, "", 0, false}, {"bit_count", NULL, "", 0, false},
    {"bit_length", i_bit_length, "", 0, false}, {"conjugate", n_conjugate, "", 0, false},
    {"from_bytes", NULL, "", 0, false},       {"to_bytes", NULL, "", 0, false},
    {NULL, NULL, NULL, 0, false},
};

const mica_method_def mica_float_methods[] = {
    {"as_integer_ratio", NULL, "", 0, false}, {"conjugate", n_conjugate, "", 0, false}, {"fromhex", NULL, "", 0, false},
    {"hex", NULL, "", 0, false}, {"is_integer", f_is_integer, "", 0, false}, {NULL, NULL, NULL, 0, false},
};

/* ---- Cyclers ---- */

METHOD(c_next)
{
    UNUSED;
    mica_cycler *c = self->cycler;
    *out = c->items[c->pos];
    c->pos = (c->pos + 1) % c->n;
    return true;
}

METHOD(c_reset)
{
    UNUSED;
    self->cycler->pos = 0;
    *out = MICA_NONE;
    return true;
}

const mica_method_def mica_cycler_methods[] = {{"next", c_next, "", 0, false}, {"reset", c_reset, "", 0, false}, {0}};
