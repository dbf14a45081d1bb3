#include "text/tmpl_attr.h"

#include "text/tmpl_exec.h"
#include "text/tmpl_num.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_ustr.h"

#include <stdio.h>
#include <string.h>

/* ---- Attributes that Python's objects have ---- */

static const mica_method_def *methods_of(const mica_val *v)
{
    switch (v->type) {
    case MICA_V_STR:
        return mica_str_methods;
    case MICA_V_DICT:
        return mica_dict_methods;
    case MICA_V_LIST:
        return mica_list_methods;
    case MICA_V_TUPLE:
        return mica_tuple_methods;
    case MICA_V_RANGE:
        return mica_range_methods;
    case MICA_V_BOOL: case MICA_V_INT:
        return mica_int_methods;
    case MICA_V_FLOAT:
        return mica_float_methods;
    case MICA_V_LOOP:
        return mica_loop_methods;
    case MICA_V_CYCLER:
        return mica_cycler_methods;
    default:
        return NULL;
    }
}

static bool unsafe(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out)
{
    char text[200];
    snprintf(text, sizeof text, "access to attribute '%.*s' of '%s' object is unsafe.", MICA_SHOW(name),
             mica_val_type_name(object));
    if (!mica_val_copy(run, text, strlen(text), out))
        return false;
    out->type = MICA_V_UNDEFINED;
    out->flags = 0;
    out->aux = MICA_UNDEF_HINT;
    return true;
}

static bool in_list(const char *const *names, const mica_val *name)
{
    for (; *names; names++) {
        if (mica_val_is(name, *names, strlen(*names)))
            return true;
    }
    return false;
}

/* Attributes that Python's objects have and the sandbox hides: those of every object, of dicts, of jinja2's Undefined. Where an
 * object lacks such a name, an element of that name can be reached. */
static bool is_internal_name(const mica_val *object, const mica_val *name)
{
    static const char *const all[] = {
        "__class__", "__delattr__", "__dir__", "__doc__", "__eq__", "__format__", "__ge__", "__getattribute__", "__getstate__",
        "__gt__", "__hash__", "__init__", "__init_subclass__", "__le__", "__lt__", "__ne__", "__new__", "__reduce__",
        "__reduce_ex__", "__repr__", "__setattr__", "__sizeof__", "__str__", "__subclasshook__", NULL};
    static const char *const dict[] = {"__class_getitem__", "__contains__", "__delitem__", "__getitem__", "__ior__", "__iter__",
                                       "__len__", "__or__", "__reversed__", "__ror__", "__setitem__", NULL};
    static const char *const undefined[] = {
        "__add__", "__bool__", "__call__", "__complex__", "__div__", "__float__", "__floordiv__", "__getattr__", "__getitem__",
        "__int__", "__iter__", "__len__", "__mod__", "__module__", "__mul__", "__neg__", "__pos__", "__pow__", "__radd__",
        "__rdiv__", "__rfloordiv__", "__rmod__", "__rmul__", "__rpow__", "__rsub__", "__rtruediv__", "__slots__", "__sub__",
        "__truediv__", "_fail_with_undefined_error", "_undefined_exception", "_undefined_hint", "_undefined_message",
        "_undefined_name", "_undefined_obj", "__aiter__", NULL};
    if (name->len < 5 || name->s[0] != '_')
        return false;
    return in_list(all, name) || (object->type == MICA_V_DICT && in_list(dict, name)) ||
           (object->type == MICA_V_UNDEFINED && in_list(undefined, name));
}

static bool bind_method(mica_run *run, const mica_val *object, const mica_method_def *def, const mica_val *name, mica_val *out)
{
    if (def->mutates)
        return unsafe(run, object, name, out);
    mica_method *m = mica_tarena_alloc(&run->arena, sizeof *m);
    if (!m)
        return mica_run_no_memory(run);
    *m = (mica_method){.self = *object, .def = def};
    *out = (mica_val){.type = MICA_V_METHOD, .method = m};
    return true;
}

/* Attributes that are values. */
static bool data_attribute(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out, bool *found)
{
    *found = true;
    switch (object->type) {
    case MICA_V_LOOP:
        return mica_loop_attr(run, object, name, out, found);
    case MICA_V_MACRO:
        return mica_macro_attr(run, object->macro, name, out, found);
    case MICA_V_NAMESPACE: {
        const mica_val *v = mica_dict_get(run, object->dict, name->s, name->len);
        *found = v != NULL;
        if (v && name->len && name->s[0] == '_')
            return unsafe(run, object, name, out);
        if (v)
            *out = *v;
        return true;
    }
    case MICA_V_CYCLER:
        *found = mica_val_is(name, "current", 7);
        if (*found)
            *out = object->cycler->items[object->cycler->pos];
        return true;
    case MICA_V_TUPLE:
        if ((object->flags & MICA_VF_GROUP) && (mica_val_is(name, "grouper", 7) || mica_val_is(name, "list", 4))) {
            *out = object->seq->items[name->len == 4];
            return true;
        }
        break;
    case MICA_V_RANGE:
        if (mica_val_is(name, "start", 5) || mica_val_is(name, "stop", 4) || mica_val_is(name, "step", 4)) {
            const mica_range *r = object->range;
            *out = mica_val_int(name->len == 5 ? r->start : name->s[2] == 'o' ? r->stop : r->step);
            return true;
        }
        break;
    case MICA_V_BOOL: case MICA_V_INT: case MICA_V_FLOAT: {
        bool is_float = object->type == MICA_V_FLOAT;
        if (mica_val_is(name, "real", 4) || (!is_float && mica_val_is(name, "numerator", 9))) {
            *out = is_float ? *object : mica_val_int(mica_val_as_int(object));
            return true;
        }
        if (mica_val_is(name, "imag", 4) || (!is_float && mica_val_is(name, "denominator", 11))) {
            *out = is_float ? mica_val_float(0) : mica_val_int(name->len == 11);
            return true;
        }
        break;
    }
    default:
        break;
    }
    *found = false;
    return true;
}

/* getattr(): *found false where Python raises AttributeError. */
static bool attribute(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out, bool *found)
{
    if (!data_attribute(run, object, name, out, found) || *found)
        return !run->failed;
    const mica_method_def *def = methods_of(object);
    for (; def && def->name; def++) {
        if (mica_val_is(name, def->name, strlen(def->name))) {
            *found = true;
            return bind_method(run, object, def, name, out);
        }
    }
    *found = object->type != MICA_V_NAMESPACE && is_internal_name(object, name);
    return !*found || unsafe(run, object, name, out);
}

/* ---- Elements ---- */

static bool element(mica_run *run, const mica_val *object, const mica_val *key, mica_val *out, bool *found)
{
    int64_t n, i;
    *found = false;
    if (object->type == MICA_V_DICT) {
        if (key->type == MICA_V_LIST || key->type == MICA_V_DICT)
            return true;
        const mica_val *v;
        if (!mica_dict_find(run, object->dict, key, &v))
            return false;
        *found = v != NULL;
        if (v)
            *out = *v;
        return true;
    }
    bool indexed = object->type == MICA_V_STR || object->type == MICA_V_LIST || object->type == MICA_V_TUPLE ||
                   object->type == MICA_V_RANGE;
    if (!indexed || !mica_val_is_int(key))
        return true;
    if (!mica_val_length(run, object, &n))
        return false;
    i = mica_val_as_int(key);
    if (i < 0)
        i += n;
    if (i < 0 || i >= n)
        return true;
    *found = true;
    if (object->type == MICA_V_STR)
        *out = mica_val_sub(object, (size_t)i, (size_t)i + 1);
    else if (object->type == MICA_V_RANGE)
        *out = mica_val_int(object->range->start + i * object->range->step);
    else
        *out = object->seq->items[i];
    return true;
}

bool mica_attr_get(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out)
{
    bool found;
    if (!attribute(run, object, name, out, &found))
        return false;
    if (found)
        return true;
    if (object->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, object);
    if (!element(run, object, name, out, &found))
        return false;
    return found || mica_val_undefined_attr(run, object, name, out);
}

bool mica_attr_only(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out)
{
    bool found;
    if (object->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, object);
    if (!attribute(run, object, name, out, &found))
        return false;
    return found || mica_val_undefined_attr(run, object, name, out);
}

bool mica_attr_item(mica_run *run, const mica_val *object, const mica_val *key, mica_val *out)
{
    bool found;
    if (object->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, object);
    if (!element(run, object, key, out, &found))
        return false;
    if (found)
        return true;
    if (key->type == MICA_V_STR && !attribute(run, object, key, out, &found))
        return false;
    return found || mica_val_undefined_attr(run, object, key, out);
}

/* ---- Slices ---- */

static bool slice_part(mica_run *run, const mica_val *v, int64_t standard, int64_t *out)
{
    *out = standard;
    if (v->type == MICA_V_NONE)
        return true;
    if (!mica_val_is_int(v))
        return mica_run_fail(run, "slice indices must be integers or None, not %s", mica_val_type_name(v));
    *out = mica_val_as_int(v);
    return true;
}

/* Python's bounds: negative counts from the end, then clipped to [low, high]. */
static int64_t clip(int64_t i, int64_t n, int64_t low, int64_t high)
{
    if (i < 0)
        i = i < -n ? low : i + n;
    return i < low ? low : i > high ? high : i;
}

static bool slice_text(mica_run *run, const mica_val *s, int64_t start, int64_t step, int64_t count, mica_val *out)
{
    char *bytes;
    if (step == 1) {
        *out = mica_val_sub(s, (size_t)start, (size_t)(start + count));
        return true;
    }
    /* Byte offsets of all code points, then the chosen ones in order. */
    size_t n = mica_val_count(s), total = 0;
    uint32_t *at = mica_tarena_alloc(&run->arena, (n + 1) * sizeof *at);
    if (!at)
        return mica_run_no_memory(run);
    for (size_t i = 0, k = 0, length; i < s->len; i += length) {
        at[k++] = (uint32_t)i;
        mica_ustr_decode(s->s + i, s->len - i, &length);
    }
    at[n] = s->len;
    for (int64_t k = 0; k < count; k++)
        total += at[start + k * step + 1] - at[start + k * step];
    if (!mica_val_new_text(run, total, &bytes, out))
        return false;
    for (int64_t k = 0; k < count; k++) {
        int64_t i = start + k * step;
        memcpy(bytes, s->s + at[i], at[i + 1] - at[i]);
        bytes += at[i + 1] - at[i];
    }
    out->flags = s->flags & MICA_VF_MARKUP;
    mica_val_scan(out);
    return true;
}

static bool slice_seq(mica_run *run, const mica_val *list, int64_t start, int64_t step, int64_t count, mica_val *out)
{
    mica_val result;
    if (!mica_seq_new(run, list->type, (size_t)count, &result) || !mica_run_charge(run, (size_t)count * 16))
        return false;
    for (int64_t k = 0; k < count; k++)
        result.seq->items[k] = list->seq->items[start + k * step];
    result.seq->n = (size_t)count;
    *out = result;
    return true;
}

static bool slice_range(mica_run *run, const mica_val *v, int64_t start, int64_t stop, int64_t step, int64_t count,
                        mica_val *out)
{
    mica_range *r = mica_tarena_alloc(&run->arena, sizeof *r);
    if (!r)
        return mica_run_no_memory(run);
    const mica_range *from = v->range;
    /* Bounded by the size of a range and by its own step; a product that does not fit is an error. */
    bool big = __builtin_mul_overflow(step, from->step, &r->step) || __builtin_mul_overflow(start, from->step, &r->start) ||
               __builtin_add_overflow(r->start, from->start, &r->start) || __builtin_mul_overflow(stop, from->step, &r->stop) ||
               __builtin_add_overflow(r->stop, from->start, &r->stop);
    if (big)
        return mica_run_fail(run, "the slice of a range does not fit 64 bits");
    r->n = count;
    *out = (mica_val){.type = MICA_V_RANGE, .range = r};
    return true;
}

bool mica_attr_slice(mica_run *run, const mica_val *object, const mica_val *start, const mica_val *stop, const mica_val *step,
                     mica_val *out)
{
    int64_t from, to, by, n;
    if (object->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, object);
    if (object->type != MICA_V_STR && object->type != MICA_V_LIST && object->type != MICA_V_TUPLE &&
        object->type != MICA_V_RANGE)
        return mica_run_fail(run, "'%s' object cannot be sliced", mica_val_type_name(object));
    if (!slice_part(run, step, 1, &by) || !mica_val_length(run, object, &n))
        return false;
    if (by == 0)
        return mica_run_fail(run, "slice step cannot be zero");
    const int64_t far = (int64_t)MICA_TMPL_MAX_TEXT * 2; /* beyond any string or list, and cannot overflow */
    by = by < -far ? -far : by > far ? far : by;
    int64_t low = by < 0 ? -1 : 0, high = by < 0 ? n - 1 : n;
    if (!slice_part(run, start, 0, &from) || !slice_part(run, stop, 0, &to))
        return false;
    from = start->type == MICA_V_NONE ? (by < 0 ? high : low) : clip(from, n, low, high);
    to = stop->type == MICA_V_NONE ? (by < 0 ? low : high) : clip(to, n, low, high);
    int64_t count = by > 0 ? (to > from ? (to - from - 1) / by + 1 : 0) : (from > to ? (from - to - 1) / -by + 1 : 0);
    if (object->type == MICA_V_RANGE)
        return slice_range(run, object, from, to, by, count, out);
    if (count == 0)
        from = 0;
    if (object->type == MICA_V_STR)
        return slice_text(run, object, from, by, count, out);
    return slice_seq(run, object, from, by, count, out);
}

/* ---- Paths of filters ---- */

static mica_val path_part(const char *p, size_t n)
{
    int64_t i;
    bool digits = n > 0;
    for (size_t k = 0; k < n; k++)
        digits &= p[k] >= '0' && p[k] <= '9';
    if (digits && mica_num_parse_int(p, n, 10, &i) == MICA_NUM_OK)
        return mica_val_int(i);
    return mica_val_text(p, n);
}

bool mica_attr_path(mica_run *run, const mica_val *object, const mica_val *path, const mica_val *fallback, mica_val *out)
{
    mica_val v = *object, part, next;
    bool text = path->type == MICA_V_STR;
    if (path->type == MICA_V_MISSING || path->type == MICA_V_NONE) {
        *out = v;
        return true;
    }
    for (size_t at = 0; at <= (text ? path->len : 0); at++) {
        part = *path;
        if (text) {
            size_t end = at;
            while (end < path->len && path->s[end] != '.')
                end++;
            part = path_part(path->s + at, end - at);
            at = end;
        }
        if (!mica_attr_item(run, &v, &part, &next))
            return false;
        v = next.type == MICA_V_UNDEFINED && fallback && mica_arg_given(fallback) &&
            fallback->type != MICA_V_NONE ? *fallback : next;
    }
    *out = v;
    return true;
}
