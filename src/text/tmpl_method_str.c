#include "text/tmpl_attr.h"
#include "text/tmpl_builtin.h"
#include "text/tmpl_iter.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_strfn.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <string.h>

/* Methods of str. `bound` follows the parameter list of the table at the end; parameters called 0, 1, 2 have no name. */

#define METHOD(name) \
    static bool name(mica_run *run, const mica_val *self, const mica_args *args, const mica_val *bound, mica_val *out)
#define UNUSED (void)args, (void)bound

/* ---- Case ---- */

METHOD(m_upper) { UNUSED; return mica_strfn_upper(run, self, out); }
METHOD(m_lower) { UNUSED; return mica_strfn_lower(run, self, out); }
METHOD(m_capitalize) { UNUSED; return mica_strfn_capitalize(run, self, out); }
METHOD(m_title) { UNUSED; return mica_strfn_title(run, self, out); }
METHOD(m_swapcase) { UNUSED; return mica_strfn_swapcase(run, self, out); }
METHOD(m_casefold) { UNUSED; return mica_strfn_casefold(run, self, out); }

/* ---- Stripping and padding ---- */

static bool strip(mica_run *run, const mica_val *self, const mica_val *bound, mica_side side, mica_val *out)
{
    if (mica_arg_given(bound) && bound->type != MICA_V_NONE && bound->type != MICA_V_STR)
        return mica_run_fail(run, "strip arg must be None or str, not %s", mica_val_type_name(bound));
    return mica_strfn_strip(run, self, bound->type == MICA_V_STR ? bound : NULL, side, out);
}

METHOD(m_strip) { (void)args; return strip(run, self, bound, MICA_BOTH, out); }
METHOD(m_lstrip) { (void)args; return strip(run, self, bound, MICA_LEFT, out); }
METHOD(m_rstrip) { (void)args; return strip(run, self, bound, MICA_RIGHT, out); }

static bool pad(mica_run *run, const mica_val *self, const mica_val *bound, mica_side side, mica_val *out)
{
    int64_t width;
    mica_val fill = mica_val_literal(" ");
    if (!mica_arg_int(run, &bound[0], "width", 0, &width))
        return false;
    if (mica_arg_given(&bound[1]) && !mica_arg_text(run, &bound[1], "fillchar", &fill))
        return false;
    if (mica_val_count(&fill) != 1)
        return mica_run_fail(run, "The fill character must be exactly one character long");
    return mica_strfn_pad(run, self, width, &fill, side, out);
}

METHOD(m_center) { (void)args; return pad(run, self, bound, MICA_BOTH, out); }
METHOD(m_ljust) { (void)args; return pad(run, self, bound, MICA_RIGHT, out); }
METHOD(m_rjust) { (void)args; return pad(run, self, bound, MICA_LEFT, out); }

METHOD(m_zfill)
{
    (void)args;
    int64_t width;
    mica_val zero = mica_val_literal("0"), rest;
    if (!mica_arg_int(run, &bound[0], "width", 0, &width))
        return false;
    bool sign = self->len && (self->s[0] == '-' || self->s[0] == '+');
    if (!sign)
        return mica_strfn_pad(run, self, width, &zero, MICA_LEFT, out);
    mica_val first = mica_val_sub(self, 0, 1), tail = mica_val_sub(self, 1, mica_val_count(self));
    return mica_strfn_pad(run, &tail, width - 1, &zero, MICA_LEFT, &rest) && mica_val_concat(run, &first, &rest, out);
}

static bool remove_affix(mica_run *run, const mica_val *self, const mica_val *bound, bool prefix, mica_val *out)
{
    mica_val affix;
    if (!mica_arg_text(run, &bound[0], "affix", &affix))
        return false;
    *out = *self;
    if (affix.len > self->len || memcmp(self->s + (prefix ? 0 : self->len - affix.len), affix.s, affix.len) != 0)
        return true;
    out->s += prefix ? affix.len : 0;
    out->len -= affix.len;
    mica_val_scan(out);
    return true;
}

METHOD(m_removeprefix) { (void)args; return remove_affix(run, self, bound, true, out); }
METHOD(m_removesuffix) { (void)args; return remove_affix(run, self, bound, false, out); }

/* ---- Splitting and joining ---- */

static bool split(mica_run *run, const mica_val *self, const mica_val *bound, bool from_right, mica_val *out)
{
    int64_t most;
    if (!mica_arg_int(run, &bound[1], "maxsplit", -1, &most))
        return false;
    if (mica_arg_given(&bound[0]) && bound[0].type != MICA_V_NONE && bound[0].type != MICA_V_STR)
        return mica_run_fail(run, "must be str or None, not %s", mica_val_type_name(&bound[0]));
    return mica_strfn_split(run, self, bound[0].type == MICA_V_STR ? &bound[0] : NULL, most, from_right, out);
}

METHOD(m_split) { (void)args; return split(run, self, bound, false, out); }
METHOD(m_rsplit) { (void)args; return split(run, self, bound, true, out); }

METHOD(m_splitlines)
{
    (void)args;
    return mica_strfn_splitlines(run, self, mica_val_truth(&bound[0]), out);
}

static bool partition(mica_run *run, const mica_val *self, const mica_val *bound, bool from_right, mica_val *out)
{
    mica_val sep, parts[3];
    int64_t at;
    if (!mica_arg_text(run, &bound[0], "sep", &sep))
        return false;
    if (sep.len == 0)
        return mica_run_fail(run, "empty separator");
    if (!mica_strfn_find(run, self, &sep, 0, self->len, from_right, &at))
        return false;
    parts[0] = parts[1] = parts[2] = mica_val_sub(self, 0, 0);
    if (at < 0) {
        parts[from_right ? 2 : 0] = *self;
    } else {
        size_t end = (size_t)at + sep.len;
        parts[0] = mica_val_text(self->s, (size_t)at);
        parts[1] = sep;
        parts[2] = mica_val_text(self->s + end, self->len - end);
        for (int i = 0; i < 3; i++)
            parts[i].flags = (uint8_t)((parts[i].flags & MICA_VF_ASCII) | (self->flags & MICA_VF_MARKUP));
    }
    return mica_tuple_new(run, parts, 3, out);
}

METHOD(m_partition) { (void)args; return partition(run, self, bound, false, out); }
METHOD(m_rpartition) { (void)args; return partition(run, self, bound, true, out); }

METHOD(m_join)
{
    (void)args;
    return mica_strfn_join(run, self, &bound[0], true, out);
}

METHOD(m_replace)
{
    (void)args;
    mica_val old, new_text;
    int64_t most;
    bool markup = (self->flags & MICA_VF_MARKUP) != 0; /* which escapes whatever it is given */
    if (!mica_arg_text(run, &bound[0], "old", &old) || !mica_arg_int(run, &bound[2], "count", -1, &most))
        return false;
    if (!(markup ? mica_text_escape(run, &bound[1], &new_text) : mica_arg_text(run, &bound[1], "new", &new_text)))
        return false;
    return mica_strfn_replace(run, self, &old, &new_text, most, out);
}

METHOD(m_format)
{
    (void)bound;
    mica_val kwargs;
    if (!mica_dict_new(run, MICA_V_DICT, args->n_kw, &kwargs))
        return false;
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!mica_dict_set(run, kwargs.dict, &args->kw[i].name, &args->kw[i].value))
            return false;
    }
    return mica_text_format(run, self, args->pos, args->n_pos, kwargs.dict, out);
}

/* ---- Searching ---- */

/* The part [start, end) of self in bytes, from arguments in code points. False: start is behind the end, nothing is found. */
static bool window(mica_run *run, const mica_val *self, const mica_val *bound, size_t *from, size_t *to, bool *valid)
{
    int64_t n = (int64_t)mica_val_count(self), a = 0, b = n;
    if (bound[0].type != MICA_V_NONE && !mica_arg_int(run, &bound[0], "start", 0, &a))
        return false;
    if (bound[1].type != MICA_V_NONE && !mica_arg_int(run, &bound[1], "end", n, &b))
        return false;
    if (a < 0)
        a = a < -n ? 0 : a + n;
    if (b < 0)
        b = b < -n ? 0 : b + n;
    b = b > n ? n : b;
    *valid = a <= b;
    if (*valid) {
        mica_val part = mica_val_sub(self, (size_t)a, (size_t)b);
        *from = (size_t)(part.s - self->s);
        *to = *from + part.len;
    }
    return true;
}

static bool find(mica_run *run, const mica_val *self, const mica_val *bound, bool from_right, bool must, mica_val *out)
{
    mica_val needle;
    size_t from, to;
    int64_t at = -1;
    bool valid;
    if (!mica_arg_text(run, &bound[0], "sub", &needle) || !window(run, self, &bound[1], &from, &to, &valid))
        return false;
    if (valid && !mica_strfn_find(run, self, &needle, from, to, from_right, &at))
        return false;
    if (at < 0 && must)
        return mica_run_fail(run, "substring not found");
    *out = mica_val_int(at < 0 ? -1 : (int64_t)mica_ustr_count(self->s, (size_t)at));
    return true;
}

METHOD(m_find) { (void)args; return find(run, self, bound, false, false, out); }
METHOD(m_rfind) { (void)args; return find(run, self, bound, true, false, out); }
METHOD(m_index) { (void)args; return find(run, self, bound, false, true, out); }
METHOD(m_rindex) { (void)args; return find(run, self, bound, true, true, out); }

METHOD(m_count)
{
    (void)args;
    mica_val needle;
    size_t from, to;
    int64_t n = 0;
    bool valid;
    if (!mica_arg_text(run, &bound[0], "sub", &needle) || !window(run, self, &bound[1], &from, &to, &valid))
        return false;
    if (valid && needle.len == 0)
        n = (int64_t)mica_ustr_count(self->s + from, to - from) + 1;
    while (valid && needle.len) {
        int64_t at;
        if (!mica_strfn_find(run, self, &needle, from, to, false, &at))
            return false;
        if (at < 0)
            break;
        n++;
        from = (size_t)at + needle.len;
    }
    *out = mica_val_int(n);
    return true;
}

/* startswith and endswith take one string or a tuple of them. */
static bool has_affix(mica_run *run, const mica_val *self, const mica_val *bound, bool prefix, mica_val *out)
{
    size_t from, to;
    bool valid, found = false;
    const mica_val *affixes = &bound[0];
    size_t n = 1;
    if (affixes->type == MICA_V_TUPLE) {
        n = affixes->seq->n;
        affixes = affixes->seq->items;
    }
    if (!window(run, self, &bound[1], &from, &to, &valid))
        return false;
    for (size_t i = 0; i < n && !found; i++) {
        mica_val affix;
        if (!mica_arg_text(run, &affixes[i], prefix ? "prefix" : "suffix", &affix))
            return false;
        found = valid && affix.len <= to - from &&
                (affix.len == 0 || memcmp(self->s + (prefix ? from : to - affix.len), affix.s, affix.len) == 0);
    }
    *out = mica_val_bool(found);
    return true;
}

METHOD(m_startswith) { (void)args; return has_affix(run, self, bound, true, out); }
METHOD(m_endswith) { (void)args; return has_affix(run, self, bound, false, out); }

/* ---- Classes ---- */

/* Whether the string is not empty and every code point is of the class. */
static bool all_of(mica_run *run, const mica_val *self, bool (*is)(uint32_t c), mica_val *out)
{
    bool all = self->len > 0;
    size_t n;
    for (size_t i = 0; i < self->len && all; i += n)
        all = is(mica_ustr_decode(self->s + i, self->len - i, &n));
    *out = mica_val_bool(all);
    return mica_run_charge(run, self->len);
}

static bool is_alnum(uint32_t c) { return mica_ustr_is_alpha(c) || mica_ustr_is_numeric(c); }

METHOD(m_isalpha) { UNUSED; return all_of(run, self, mica_ustr_is_alpha, out); }
METHOD(m_isalnum) { UNUSED; return all_of(run, self, is_alnum, out); }
METHOD(m_isdecimal) { UNUSED; return all_of(run, self, mica_ustr_is_decimal, out); }
METHOD(m_isdigit) { UNUSED; return all_of(run, self, mica_ustr_is_digit, out); }
METHOD(m_isnumeric) { UNUSED; return all_of(run, self, mica_ustr_is_numeric, out); }
METHOD(m_isspace) { UNUSED; return all_of(run, self, mica_ustr_is_space, out); }

METHOD(m_isprintable)
{
    UNUSED;
    bool ok = all_of(run, self, mica_ustr_is_printable, out);
    out->b |= self->len == 0;
    return ok;
}

METHOD(m_isascii)
{
    UNUSED;
    (void)run;
    *out = mica_val_bool((self->flags & MICA_VF_ASCII) != 0);
    return true;
}

METHOD(m_isidentifier)
{
    UNUSED;
    size_t n = 0;
    bool start = self->len && mica_ustr_is_name_start(mica_ustr_decode(self->s, self->len, &n));
    if (!all_of(run, self, mica_ustr_is_name, out))
        return false;
    out->b = out->b && start;
    return true;
}

METHOD(m_islower) { UNUSED; return mica_strfn_is_cased(run, self, false, out); }
METHOD(m_isupper) { UNUSED; return mica_strfn_is_cased(run, self, true, out); }

/* Upper and title case start words, lower case goes on. */
METHOD(m_istitle)
{
    UNUSED;
    bool cased = false, inside = false;
    size_t n;
    *out = mica_val_bool(false);
    for (size_t i = 0; i < self->len; i += n) {
        uint32_t c = mica_ustr_decode(self->s + i, self->len - i, &n);
        bool starts = mica_ustr_is_upper(c) || mica_ustr_is_title(c), lower = mica_ustr_is_lower(c);
        if ((starts && inside) || (lower && !inside))
            return true;
        inside = starts || lower;
        cased |= inside;
    }
    out->b = cased;
    return mica_run_charge(run, self->len);
}

const mica_method_def mica_str_methods[] = {
    {"capitalize", m_capitalize, "", 0, false},
    {"casefold", m_casefold, "", 0, false},
    {"center", m_center, "0,1", 1, false},
    {"count", m_count, "0,1,2", 1, false},
    {"encode", NULL, "", 0, false},
    {"endswith", m_endswith, "0,1,2", 1, false},
    {"expandtabs", NULL, "", 0, false},
    {"find", m_find, "0,1,2", 1, false},
    {"format", m_format, NULL, 0, false},
    {"format_map", NULL, "", 0, false},
    {"index", m_index, "0,1,2", 1, false},
    {"isalnum", m_isalnum, "", 0, false},
    {"isalpha", m_isalpha, "", 0, false},
    {"isascii", m_isascii, "", 0, false},
    {"isdecimal", m_isdecimal, "", 0, false},
    {"isdigit", m_isdigit, "", 0, false},
    {"isidentifier", m_isidentifier, "", 0, false},
    {"islower", m_islower, "", 0, false},
    {"isnumeric", m_isnumeric, "", 0, false},
    {"isprintable", m_isprintable, "", 0, false},
    {"isspace", m_isspace, "", 0, false},
    {"istitle", m_istitle, "", 0, false},
    {"isupper", m_isupper, "", 0, false},
    {"join", m_join, "0", 1, false},
    {"ljust", m_ljust, "0,1", 1, false},
    {"lower", m_lower, "", 0, false},
    {"lstrip", m_lstrip, "0", 0, false},
    {"maketrans", NULL, "", 0, false},
    {"partition", m_partition, "0", 1, false},
    {"removeprefix", m_removeprefix, "0", 1, false},
    {"removesuffix", m_removesuffix, "0", 1, false},
    {"replace", m_replace, "0,1,2", 2, false},
    {"rfind", m_rfind, "0,1,2", 1, false},
    {"rindex", m_rindex, "0,1,2", 1, false},
    {"rjust", m_rjust, "0,1", 1, false},
    {"rpartition", m_rpartition, "0", 1, false},
    {"rsplit", m_rsplit, "sep,maxsplit", 0, false},
    {"rstrip", m_rstrip, "0", 0, false},
    {"split", m_split, "sep,maxsplit", 0, false},
    {"splitlines", m_splitlines, "keepends", 0, false},
    {"startswith", m_startswith, "0,1,2", 1, false},
    {"strip", m_strip, "0", 0, false},
    {"swapcase", m_swapcase, "", 0, false},
    {"title", m_title, "", 0, false},
    {"translate", NULL, "", 0, false},
    {"upper", m_upper, "", 0, false},
    {"zfill", m_zfill, "0", 1, false},
    {NULL, NULL, NULL, 0, false},
};
