#include "text/tmpl_attr.h"
#include "text/tmpl_builtin.h"
#include "text/tmpl_iter.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_strfn.h"
#include "text/tmpl_text.h"

#include <string.h>

/* Filters on sequences. What Python's generators give is a generator here: it can be walked once and has no length. */

#define FILTER(name) \
    static bool name(mica_run *run, const mica_val *v, const mica_args *args, const mica_val *bound, mica_val *out)

/* ---- Keys ---- */

/* The value at `path`; strings in lower case unless case matters. */
static bool key_of(mica_run *run, const mica_val *item, const mica_val *path, const mica_val *fallback, bool case_sensitive,
                   mica_val *out)
{
    if (!mica_attr_path(run, item, path, fallback, out))
        return false;
    return case_sensitive || out->type != MICA_V_STR || mica_strfn_lower(run, out, out);
}

/* The key of sort: a list with the values of all paths in "a,b.c". */
static bool sort_key(mica_run *run, const mica_val *item, const mica_val *paths, bool case_sensitive, mica_val *out)
{
    mica_val key, value;
    if (!mica_seq_new(run, MICA_V_LIST, 1, &key))
        return false;
    if (paths->type != MICA_V_STR) {
        if (!key_of(run, item, paths, NULL, case_sensitive, &value) || !mica_seq_push(run, &key, &value))
            return false;
        *out = key;
        return true;
    }
    for (size_t at = 0; at <= paths->len; at++) {
        size_t end = at;
        while (end < paths->len && paths->s[end] != ',')
            end++;
        mica_val path = mica_val_text(paths->s + at, end - at);
        if (!key_of(run, item, &path, NULL, case_sensitive, &value) || !mica_seq_push(run, &key, &value))
            return false;
        at = end;
    }
    *out = key;
    return true;
}

static bool new_keys(mica_run *run, size_t n, mica_val **keys)
{
    *keys = mica_tarena_array(&run->arena, n, sizeof **keys);
    return *keys || mica_run_no_memory(run);
}

/* ---- Sorting and grouping ---- */

FILTER(f_sort)
{
    (void)args;
    mica_val list, *keys;
    bool case_sensitive = mica_val_truth(&bound[1]);
    if (!mica_list_of(run, v, &list) || !new_keys(run, list.seq->n, &keys))
        return false;
    for (size_t i = 0; i < list.seq->n; i++) {
        if (!sort_key(run, &list.seq->items[i], &bound[2], case_sensitive, &keys[i]))
            return false;
    }
    *out = list;
    return mica_val_sort(run, list.seq->items, keys, list.seq->n, mica_val_truth(&bound[0]));
}

FILTER(f_dictsort)
{
    (void)args;
    mica_val view, list, *keys, by = mica_val_literal("key");
    bool case_sensitive = mica_val_truth(&bound[0]);
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (v->type != MICA_V_DICT)
        return mica_run_fail(run, "dictsort needs a mapping, not %s", mica_val_type_name(v));
    if (mica_arg_given(&bound[1]) && !mica_arg_text(run, &bound[1], "by", &by))
        return false;
    if (!mica_val_is(&by, "key", 3) && !mica_val_is(&by, "value", 5))
        return mica_run_fail(run, "You can only sort by either \"key\" or \"value\"");
    view = (mica_val){.type = MICA_V_VIEW, .aux = MICA_VIEW_ITEMS, .dict = v->dict};
    if (!mica_list_of(run, &view, &list) || !new_keys(run, list.seq->n, &keys))
        return false;
    for (size_t i = 0; i < list.seq->n; i++) {
        mica_val none = MICA_NONE;
        if (!key_of(run, &list.seq->items[i].seq->items[by.len == 5], &none, NULL, case_sensitive, &keys[i]))
            return false;
    }
    *out = list;
    return mica_val_sort(run, list.seq->items, keys, list.seq->n, mica_val_truth(&bound[2]));
}

/* Appends the group that starts at item `from`: (value of its first item, items). */
static bool push_group(mica_run *run, mica_val *groups, const mica_val *items, size_t from, size_t to, const mica_val *bound)
{
    mica_val members, pair, grouper;
    if (!mica_seq_new(run, MICA_V_LIST, to - from, &members) ||
        !mica_attr_path(run, &items[from], &bound[0], &bound[1], &grouper))
        return false;
    memcpy(members.seq->items, items + from, (to - from) * sizeof *items);
    members.seq->n = to - from;
    if (!mica_tuple_new(run, (mica_val[]){grouper, members}, 2, &pair))
        return false;
    pair.flags |= MICA_VF_GROUP;
    return mica_seq_push(run, groups, &pair);
}

FILTER(f_groupby)
{
    (void)args;
    mica_val list, groups, *keys;
    bool case_sensitive = mica_val_truth(&bound[2]), same;
    if (!mica_list_of(run, v, &list) || !new_keys(run, list.seq->n, &keys) || !mica_seq_new(run, MICA_V_LIST, 4, &groups))
        return false;
    for (size_t i = 0; i < list.seq->n; i++) {
        if (!key_of(run, &list.seq->items[i], &bound[0], &bound[1], case_sensitive, &keys[i]))
            return false;
    }
    if (!mica_val_sort(run, list.seq->items, keys, list.seq->n, false))
        return false;
    for (size_t i = 0, from = 0; i < list.seq->n; i++) {
        same = i + 1 < list.seq->n;
        if (same && !mica_val_equal(run, &keys[i], &keys[i + 1], &same))
            return false;
        if (same)
            continue;
        if (!push_group(run, &groups, list.seq->items, from, i + 1, bound))
            return false;
        from = i + 1;
    }
    *out = groups;
    return true;
}

FILTER(f_unique)
{
    (void)args;
    mica_val seen, list, item, key;
    mica_iter it;
    bool done;
    if (!mica_iter_open(run, v, &it) || !mica_dict_new(run, MICA_V_DICT, 4, &seen) || !mica_seq_new(run, MICA_V_LIST, 4, &list))
        return false;
    for (;;) {
        const mica_val *found;
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            return mica_gen_of_list(run, &list, out);
        if (!key_of(run, &item, &bound[1], NULL, mica_val_truth(&bound[0]), &key) ||
            !mica_dict_find(run, seen.dict, &key, &found))
            return false;
        if (!found && (!mica_dict_set(run, seen.dict, &key, &item) || !mica_seq_push(run, &list, &item)))
            return false;
    }
}

/* ---- Aggregates ---- */

static bool extreme(mica_run *run, const mica_val *v, const mica_val *bound, bool largest, mica_val *out)
{
    mica_iter it;
    mica_val item, key, best_key = MICA_MISSING;
    bool done, better;
    *out = mica_val_undefined_hint("No aggregated item, sequence was empty.");
    if (!mica_iter_open(run, v, &it))
        return false;
    for (;;) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            return true;
        if (!key_of(run, &item, &bound[1], NULL, mica_val_truth(&bound[0]), &key))
            return false;
        better = !mica_arg_given(&best_key);
        if (!better && !mica_op_compare(run, largest ? MICA_OP_GT : MICA_OP_LT, &key, &best_key, &better))
            return false;
        if (better) {
            best_key = key;
            *out = item;
        }
    }
}

FILTER(f_min) { (void)args; return extreme(run, v, bound, false, out); }
FILTER(f_max) { (void)args; return extreme(run, v, bound, true, out); }

FILTER(f_sum)
{
    (void)args;
    mica_iter it;
    mica_val item, total = mica_arg_given(&bound[1]) ? bound[1] : mica_val_int(0);
    bool done;
    if (total.type == MICA_V_STR)
        return mica_run_fail(run, "sum() can't sum strings");
    if (!mica_iter_open(run, v, &it))
        return false;
    for (;;) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            break;
        if (!mica_attr_path(run, &item, &bound[0], NULL, &item))
            return false;
        mica_val before = total;
        if (!mica_op_binary(run, MICA_OP_ADD, &before, &item, &total))
            return false;
    }
    *out = total;
    return true;
}

FILTER(f_length)
{
    (void)args, (void)bound;
    int64_t n;
    if (v->type == MICA_V_LOOP)
        return mica_run_fail(run, "the length of the loop is loop.length");
    if (!mica_val_length(run, v, &n))
        return false;
    *out = mica_val_int(n);
    return true;
}

FILTER(f_first)
{
    (void)args, (void)bound;
    mica_iter it;
    bool done;
    if (!mica_iter_open(run, v, &it) || !mica_iter_next(run, &it, out, &done))
        return false;
    if (done)
        *out = mica_val_undefined_hint("No first item, sequence was empty.");
    return true;
}

static bool can_reverse(const mica_val *v)
{
    return mica_val_is_iterable(v) && v->type != MICA_V_GEN && v->type != MICA_V_LOOP;
}

FILTER(f_last)
{
    (void)args, (void)bound;
    mica_val list;
    if (!can_reverse(v))
        return mica_run_fail(run, "'%s' object is not reversible", mica_val_type_name(v));
    if (v->type == MICA_V_STR) {
        size_t n = mica_val_count(v);
        *out = n ? mica_val_sub(v, n - 1, n) : mica_val_undefined_hint("No last item, sequence was empty.");
        out->flags &= (uint8_t)(n ? ~MICA_VF_MARKUP : 0xFF);
        return true;
    }
    if (v->type == MICA_V_LIST || v->type == MICA_V_TUPLE)
        list = *v;
    else if (!mica_list_of(run, v, &list))
        return false;
    *out = list.seq->n ? list.seq->items[list.seq->n - 1] : mica_val_undefined_hint("No last item, sequence was empty.");
    return true;
}

FILTER(f_reverse)
{
    (void)args, (void)bound;
    mica_val list, none = MICA_NONE, back = mica_val_int(-1);
    if (v->type == MICA_V_STR)
        return mica_attr_slice(run, v, &none, &none, &back, out);
    if (!mica_val_is_iterable(v))
        return mica_run_fail(run, "argument must be iterable");
    if (!mica_list_of(run, v, &list) || !mica_attr_slice(run, &list, &none, &none, &back, &list))
        return false;
    if (!can_reverse(v)) {
        *out = list;
        return true;
    }
    return mica_gen_of_list(run, &list, out);
}

FILTER(f_list) { (void)args, (void)bound; return mica_list_of(run, v, out); }

FILTER(f_items)
{
    (void)args, (void)bound;
    mica_val source = *v;
    if (v->type != MICA_V_UNDEFINED && v->type != MICA_V_DICT)
        return mica_run_fail(run, "Can only get item pairs from a mapping.");
    if (v->type == MICA_V_DICT) {
        source.type = MICA_V_VIEW;
        source.aux = MICA_VIEW_ITEMS;
    }
    return mica_gen_of_list(run, &source, out);
}

/* ---- Cutting into pieces ---- */

static bool push_piece(mica_run *run, mica_val *pieces, const mica_val *items, size_t n, size_t fill, const mica_val *with)
{
    mica_val piece;
    if (!mica_seq_new(run, MICA_V_LIST, n + fill, &piece))
        return false;
    if (n)
        memcpy(piece.seq->items, items, n * sizeof *items);
    for (size_t i = 0; i < fill; i++)
        piece.seq->items[n + i] = *with;
    piece.seq->n = n + fill;
    return mica_seq_push(run, pieces, &piece);
}

FILTER(f_batch)
{
    (void)args;
    mica_val list, pieces;
    int64_t count;
    if (!mica_arg_int(run, &bound[0], "linecount", 0, &count) || !mica_list_of(run, v, &list) ||
        !mica_seq_new(run, MICA_V_LIST, 4, &pieces))
        return false;
    size_t n = list.seq->n, at = 0;
    if (count == 0 && n && !push_piece(run, &pieces, list.seq->items, 0, 0, NULL)) /* what the loop of jinja2 does with 0 */
        return false;
    bool fills = mica_arg_given(&bound[1]) && bound[1].type != MICA_V_NONE;
    while (at < n) {
        size_t piece = count > 0 && (uint64_t)count < n - at ? (size_t)count : n - at;
        size_t fill = fills && count > 0 && (uint64_t)count > piece ? (size_t)count - piece : 0;
        if (fill > MICA_TMPL_MAX_STEPS || !mica_run_charge(run, fill * 64))
            return mica_run_fail(run, "batch: the line is too long");
        if (!push_piece(run, &pieces, list.seq->items + at, piece, fill, &bound[1]))
            return false;
        at += piece;
    }
    return mica_gen_of_list(run, &pieces, out);
}

FILTER(f_slice)
{
    (void)args;
    mica_val list, pieces;
    int64_t slices;
    if (!mica_arg_int(run, &bound[0], "slices", 0, &slices) || !mica_list_of(run, v, &list) ||
        !mica_seq_new(run, MICA_V_LIST, 4, &pieces))
        return false;
    if (slices == 0)
        return mica_run_fail(run, "integer division or modulo by zero");
    int64_t n = (int64_t)list.seq->n, per = slices > 0 ? n / slices : 0, extra = slices > 0 ? n % slices : 0, at = 0;
    bool fills = mica_arg_given(&bound[1]) && bound[1].type != MICA_V_NONE;
    for (int64_t i = 0; i < slices; i++) {
        int64_t size = per + (i < extra);
        if (!mica_run_charge(run, 0) ||
            !push_piece(run, &pieces, list.seq->items + at, (size_t)size, fills && i >= extra, &bound[1]))
            return false;
        at += size;
    }
    return mica_gen_of_list(run, &pieces, out);
}

FILTER(f_join)
{
    (void)args;
    mica_val sep = mica_val_literal(""), source = *v, item;
    if (mica_arg_given(&bound[0]) && !mica_text_str(run, &bound[0], &sep))
        return false;
    if (mica_arg_given(&bound[1]) && bound[1].type != MICA_V_NONE) {
        if (!mica_list_of(run, v, &source))
            return false;
        for (size_t i = 0; i < source.seq->n; i++) {
            item = source.seq->items[i];
            if (!mica_attr_path(run, &item, &bound[1], NULL, &source.seq->items[i]))
                return false;
        }
    }
    return mica_strfn_join(run, &sep, &source, false, out);
}

/* ---- map, select, reject: lazy, as in Python, so that what is not asked for cannot fail ---- */

typedef struct stage {
    const mica_filter_def *filter; /* map: the filter, or NULL for an attribute */
    const mica_test_def *test;     /* select: the test, or NULL for the truth */
    mica_val path, fallback;       /* MISSING: the item itself */
    mica_args args;                /* of the filter or test */
    bool reject;
} stage;

static bool step_map(mica_run *run, void *user, mica_val *item, bool *keep)
{
    const stage *s = user;
    mica_val from = *item;
    (void)keep;
    if (!s->filter)
        return mica_attr_path(run, &from, &s->path, &s->fallback, item);
    return mica_filter_apply(run, s->filter, &from, &s->args, item);
}

static bool step_select(mica_run *run, void *user, mica_val *item, bool *keep)
{
    const stage *s = user;
    mica_val value;
    bool result;
    if (!mica_attr_path(run, item, &s->path, NULL, &value))
        return false;
    if (!s->test)
        result = mica_val_truth(&value);
    else if (!mica_test_apply(run, s->test, &value, &s->args, &result))
        return false;
    *keep = result != s->reject;
    return true;
}

static bool new_stage(mica_run *run, stage **out)
{
    *out = mica_tarena_array(&run->arena, 1, sizeof **out);
    return *out || mica_run_no_memory(run);
}

/* The name of a filter or test, given as an argument. */
static bool check_name(mica_run *run, const mica_val *v, const char *what)
{
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (v->type != MICA_V_STR)
        return mica_run_fail(run, "the name of a %s must be a string, not %s", what, mica_val_type_name(v));
    return true;
}

static bool unknown_name(mica_run *run, const char *what, const mica_val *name)
{
    return mica_run_fail(run, "there is no %s named '%.*s'", what, MICA_SHOW(name));
}

static bool map_attribute(mica_run *run, const mica_args *args, stage *s)
{
    for (size_t i = 0; i < args->n_kw; i++) {
        const mica_kwarg *kw = &args->kw[i];
        if (mica_val_is(&kw->name, "attribute", 9))
            s->path = kw->value;
        else if (mica_val_is(&kw->name, "default", 7))
            s->fallback = kw->value;
        else
            return mica_run_fail(run, "map got an unexpected keyword argument '%.*s'", MICA_SHOW(&kw->name));
    }
    return true;
}

static bool has_keyword(const mica_args *args, const char *name)
{
    for (size_t i = 0; i < args->n_kw; i++) {
        if (mica_val_is(&args->kw[i].name, name, strlen(name)))
            return true;
    }
    return false;
}

static bool no_items(mica_run *run, mica_val *out)
{
    mica_val none;
    return mica_seq_new(run, MICA_V_LIST, 0, &none) && mica_gen_of_list(run, &none, out);
}

FILTER(f_map)
{
    (void)bound;
    stage *s;
    if (!mica_val_truth(v)) /* jinja2 does not even look at the arguments */
        return no_items(run, out);
    if (!new_stage(run, &s))
        return false;
    if (args->n_pos == 0) {
        if (!has_keyword(args, "attribute"))
            return mica_run_fail(run, "map requires a filter argument");
        return map_attribute(run, args, s) && mica_gen_lazy(run, v, step_map, s, out);
    }
    if (!check_name(run, &args->pos[0], "filter"))
        return false;
    s->filter = mica_filter_find(args->pos[0].s, args->pos[0].len);
    if (!s->filter)
        return unknown_name(run, "filter", &args->pos[0]);
    s->args = (mica_args){.pos = args->pos + 1, .n_pos = args->n_pos - 1, .kw = args->kw, .n_kw = args->n_kw};
    return mica_gen_lazy(run, v, step_map, s, out);
}

static bool select_items(mica_run *run, const mica_val *v, const mica_args *args, bool attribute, bool reject, mica_val *out)
{
    stage *s;
    size_t at = attribute;
    if (!mica_val_truth(v))
        return no_items(run, out);
    if (!new_stage(run, &s))
        return false;
    s->reject = reject;
    if (attribute && args->n_pos == 0)
        return mica_run_fail(run, "Missing parameter for attribute name");
    if (attribute)
        s->path = args->pos[0];
    if (args->n_pos > at) {
        if (!check_name(run, &args->pos[at], "test"))
            return false;
        s->test = mica_test_find(args->pos[at].s, args->pos[at].len);
        if (!s->test)
            return unknown_name(run, "test", &args->pos[at]);
        at++;
        s->args = (mica_args){.pos = args->pos + at, .n_pos = args->n_pos - at, .kw = args->kw, .n_kw = args->n_kw};
    }
    return mica_gen_lazy(run, v, step_select, s, out);
}

FILTER(f_select) { (void)bound; return select_items(run, v, args, false, false, out); }
FILTER(f_reject) { (void)bound; return select_items(run, v, args, false, true, out); }
FILTER(f_selectattr) { (void)bound; return select_items(run, v, args, true, false, out); }
FILTER(f_rejectattr) { (void)bound; return select_items(run, v, args, true, true, out); }

const mica_filter_def mica_filters_seq[] = {
    {"batch", f_batch, "linecount,fill_with", 1},
    {"count", f_length, "", 0},
    {"dictsort", f_dictsort, "case_sensitive,by,reverse", 0},
    {"first", f_first, "", 0},
    {"groupby", f_groupby, "attribute,default,case_sensitive", 1},
    {"items", f_items, "", 0},
    {"join", f_join, "d,attribute", 0},
    {"last", f_last, "", 0},
    {"length", f_length, "", 0},
    {"list", f_list, "", 0},
    {"map", f_map, NULL, 0},
    {"max", f_max, "case_sensitive,attribute", 0},
    {"min", f_min, "case_sensitive,attribute", 0},
    {"reject", f_reject, NULL, 0},
    {"rejectattr", f_rejectattr, NULL, 0},
    {"reverse", f_reverse, "", 0},
    {"select", f_select, NULL, 0},
    {"selectattr", f_selectattr, NULL, 0},
    {"slice", f_slice, "slices,fill_with", 1},
    {"sort", f_sort, "reverse,case_sensitive,attribute", 0},
    {"sum", f_sum, "attribute,start", 0},
    {"unique", f_unique, "case_sensitive,attribute", 0},
    {NULL, NULL, NULL, 0},
};
