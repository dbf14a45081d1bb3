#include "text/tmpl_builtin.h"
#include "text/tmpl_iter.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_strfn.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <string.h>

/* Filters on text. */

#define FILTER(name) \
    static bool name(mica_run *run, const mica_val *v, const mica_args *args, const mica_val *bound, mica_val *out)

/* ---- Case, stripping ---- */

static bool soft_then(mica_run *run, const mica_val *v, bool (*fn)(mica_run *run, const mica_val *s, mica_val *out),
                      mica_val *out)
{
    mica_val s;
    return mica_text_soft(run, v, &s) && fn(run, &s, out);
}

FILTER(f_upper) { (void)args, (void)bound; return soft_then(run, v, mica_strfn_upper, out); }
FILTER(f_lower) { (void)args, (void)bound; return soft_then(run, v, mica_strfn_lower, out); }
FILTER(f_capitalize) { (void)args, (void)bound; return soft_then(run, v, mica_strfn_capitalize, out); }

FILTER(f_trim)
{
    (void)args;
    mica_val s, chars;
    if (!mica_text_soft(run, v, &s))
        return false;
    if (!mica_arg_given(&bound[0]) || bound[0].type == MICA_V_NONE)
        return mica_strfn_strip(run, &s, NULL, MICA_BOTH, out);
    return mica_arg_text(run, &bound[0], "chars", &chars) && mica_strfn_strip(run, &s, &chars, MICA_BOTH, out);
}

FILTER(f_center)
{
    (void)args;
    mica_val s, space = mica_val_literal(" ");
    int64_t width;
    return mica_arg_int(run, &bound[0], "width", 80, &width) && mica_text_soft(run, v, &s) &&
           mica_strfn_pad(run, &s, width, &space, MICA_BOTH, out);
}

static bool starts_word(uint32_t c)
{
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || mica_ustr_is_space(c);
}

/* One word: its first letter in upper case, the rest in lower case by itself. */
static bool title_word(mica_run *run, mica_buf *buf, const char *p, size_t n)
{
    size_t first;
    uint32_t upper[3], c = mica_ustr_decode(p, n, &first);
    char bytes[12];
    size_t length = 0, count = mica_ustr_to_upper(c, upper);
    for (size_t k = 0; k < count; k++)
        length += mica_ustr_encode(upper[k], bytes + length);
    mica_buf_append(buf, bytes, length);
    mica_val rest = mica_val_text(p + first, n - first);
    if (!mica_strfn_lower(run, &rest, &rest))
        return false;
    mica_buf_append(buf, rest.s, rest.len);
    return true;
}

static bool title_words(mica_run *run, mica_buf *buf, const mica_val *s)
{
    size_t i = 0, n = 0;
    while (i < s->len) {
        size_t start = i;
        bool separator = starts_word(mica_ustr_decode(s->s + i, s->len - i, &n));
        while (i < s->len && starts_word(mica_ustr_decode(s->s + i, s->len - i, &n)) == separator)
            i += n;
        if (separator)
            mica_buf_append(buf, s->s + start, i - start);
        else if (!title_word(run, buf, s->s + start, i - start))
            return false;
    }
    return true;
}

FILTER(f_title)
{
    (void)args, (void)bound;
    mica_val s;
    mica_buf buf;
    if (!mica_text_soft(run, v, &s))
        return false;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!title_words(run, &buf, &s)) {
        mica_buf_free(&buf);
        return false;
    }
    return mica_val_from_buf(run, &buf, out);
}

/* ---- Replacing, cutting, indenting ---- */

FILTER(f_replace)
{
    (void)args;
    mica_val s, old, new_text;
    int64_t most = -1;
    if (bound[2].type != MICA_V_NONE && !mica_arg_int(run, &bound[2], "count", -1, &most))
        return false;
    return mica_text_str(run, v, &s) && mica_text_str(run, &bound[0], &old) && mica_text_str(run, &bound[1], &new_text) &&
           mica_strfn_replace(run, &s, &old, &new_text, most, out);
}

FILTER(f_truncate)
{
    (void)args;
    int64_t length, leeway = 5; /* policies["truncate.leeway"] */
    mica_val end = mica_val_literal("..."), parts, space = mica_val_literal(" ");
    int64_t n;
    if (!mica_val_length(run, v, &n) || !mica_arg_int(run, &bound[0], "length", 255, &length) ||
        (bound[3].type != MICA_V_NONE && !mica_arg_int(run, &bound[3], "leeway", 5, &leeway)))
        return false;
    if (mica_arg_given(&bound[2]) && !mica_arg_text(run, &bound[2], "end", &end))
        return false;
    int64_t n_end = (int64_t)mica_val_count(&end);
    if (length < n_end || leeway < 0)
        return mica_run_fail(run, length < n_end ? "truncate: length is shorter than end" : "truncate: leeway is negative");
    *out = *v;
    if (n <= leeway || n - leeway <= length) /* which lists and mappings may be, too */
        return true;
    if (v->type != MICA_V_STR)
        return mica_run_fail(run, "truncate needs a string, not %s", mica_val_type_name(v));
    mica_val cut = mica_val_sub(v, 0, (size_t)(length - n_end > n ? n : length - n_end));
    if (!mica_val_truth(&bound[1])) {
        if (!mica_strfn_split(run, &cut, &space, 1, true, &parts))
            return false;
        cut = parts.seq->items[0];
    }
    return mica_op_binary(run, MICA_OP_ADD, &cut, &end, out);
}

/* The indentation: spaces, or a string of the caller's. */
static bool indent_text(mica_run *run, const mica_val *width, mica_val *out)
{
    int64_t n;
    mica_val space = mica_val_literal(" "), count;
    if (width->type == MICA_V_STR) {
        *out = *width;
        return true;
    }
    if (!mica_arg_int(run, width, "width", 4, &n))
        return false;
    count = mica_val_int(n);
    return mica_op_binary(run, MICA_OP_MUL, &space, &count, out);
}

FILTER(f_indent)
{
    (void)args;
    mica_val indent, newline = mica_val_literal("\n"), lines, s;
    mica_buf buf;
    bool first = mica_val_truth(&bound[1]), blank = mica_val_truth(&bound[2]);
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(run, v);
    if (v->type != MICA_V_STR)
        return mica_run_fail(run, "indent needs a string, not %s", mica_val_type_name(v));
    if (!indent_text(run, &bound[0], &indent) || !mica_val_concat(run, v, &newline, &s) ||
        !mica_strfn_splitlines(run, &s, false, &lines))
        return false;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    for (size_t i = 0; i < lines.seq->n; i++) {
        const mica_val *line = &lines.seq->items[i];
        if (i)
            mica_buf_putc(&buf, '\n');
        if (i ? blank || line->len : first)
            mica_buf_append(&buf, indent.s, indent.len);
        mica_buf_append(&buf, line->s, line->len);
        if (!mica_text_ok(run, &buf)) {
            mica_buf_free(&buf);
            return false;
        }
    }
    if (!mica_val_from_buf(run, &buf, out))
        return false;
    out->flags |= v->flags & MICA_VF_MARKUP;
    return true;
}

FILTER(f_format)
{
    (void)bound;
    mica_val s, values;
    if (args->n_pos && args->n_kw)
        return mica_run_fail(run, "can't handle positional and keyword arguments at the same time");
    if (!mica_text_soft(run, v, &s))
        return false;
    if (args->n_kw) {
        if (!mica_dict_new(run, MICA_V_DICT, args->n_kw, &values))
            return false;
        for (size_t i = 0; i < args->n_kw; i++) {
            if (!mica_dict_set(run, values.dict, &args->kw[i].name, &args->kw[i].value))
                return false;
        }
    } else if (!mica_tuple_new(run, args->pos, args->n_pos, &values)) {
        return false;
    }
    return mica_text_percent(run, &s, &values, out);
}

FILTER(f_wordcount)
{
    (void)args, (void)bound;
    mica_val s;
    int64_t words = 0;
    bool inside = false;
    size_t n;
    if (!mica_text_soft(run, v, &s))
        return false;
    for (size_t i = 0; i < s.len; i += n) {
        bool word = mica_ustr_is_word(mica_ustr_decode(s.s + i, s.len - i, &n));
        words += word && !inside;
        inside = word;
    }
    *out = mica_val_int(words);
    return mica_run_charge(run, s.len);
}

/* ---- Markup, URLs ---- */

FILTER(f_string) { (void)args, (void)bound; return mica_text_soft(run, v, out); }
FILTER(f_escape) { (void)args, (void)bound; return mica_text_escape(run, v, out); }

FILTER(f_forceescape)
{
    (void)args, (void)bound;
    mica_val s;
    return mica_text_str(run, v, &s) && mica_text_escape(run, &s, out);
}

FILTER(f_safe)
{
    (void)args, (void)bound;
    if (!mica_text_soft(run, v, out))
        return false;
    out->flags |= MICA_VF_MARKUP;
    return true;
}

static bool put_quoted(mica_run *run, mica_buf *buf, const mica_val *v, bool query)
{
    mica_val s;
    if (!mica_text_str(run, v, &s))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.s[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
                     c == '-' || c == '~' || (c == '/' && !query);
        if (plain)
            mica_buf_putc(buf, (char)c);
        else if (c == ' ' && query)
            mica_buf_putc(buf, '+');
        else
            mica_buf_printf(buf, "%%%02X", c);
    }
    return true;
}

static bool put_query(mica_run *run, mica_buf *buf, const mica_val *v)
{
    mica_val source = *v, item, pair;
    mica_iter it;
    bool done;
    if (v->type == MICA_V_DICT) {
        source.type = MICA_V_VIEW;
        source.aux = MICA_VIEW_ITEMS;
    }
    if (!mica_iter_open(run, &source, &it))
        return false;
    for (bool first = true;; first = false) {
        if (!mica_iter_next(run, &it, &item, &done))
            return false;
        if (done)
            return true;
        if (!mica_list_of(run, &item, &pair))
            return false;
        if (pair.seq->n != 2)
            return mica_run_fail(run, "urlencode needs pairs, not %zu values", pair.seq->n);
        if (!first)
            mica_buf_putc(buf, '&');
        if (!put_quoted(run, buf, &pair.seq->items[0], true))
            return false;
        mica_buf_putc(buf, '=');
        if (!put_quoted(run, buf, &pair.seq->items[1], true) || !mica_text_ok(run, buf))
            return false;
    }
}

FILTER(f_urlencode)
{
    (void)args, (void)bound;
    mica_buf buf;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    bool single = v->type == MICA_V_STR || !mica_val_is_iterable(v);
    if (!(single ? put_quoted(run, &buf, v, false) : put_query(run, &buf, v))) {
        mica_buf_free(&buf);
        return false;
    }
    return mica_val_from_buf(run, &buf, out);
}

static bool put_attribute(mica_run *run, mica_buf *buf, const mica_pair *p)
{
    mica_val key, value;
    if (p->key.type != MICA_V_STR)
        return mica_run_fail(run, "xmlattr needs string keys");
    for (size_t i = 0; i < p->key.len; i++) {
        if (p->key.s[i] && strchr(" \t\n\r\f\v/>=", p->key.s[i]))
            return mica_run_fail(run, "Invalid character in attribute name");
    }
    if (!mica_text_escape(run, &p->key, &key) || !mica_text_escape(run, &p->value, &value))
        return false;
    mica_buf_append(buf, key.s, key.len);
    mica_buf_puts(buf, "=\"");
    mica_buf_append(buf, value.s, value.len);
    mica_buf_putc(buf, '"');
    return true;
}

FILTER(f_xmlattr)
{
    (void)args;
    mica_buf buf;
    bool space = !mica_arg_given(&bound[0]) || mica_val_truth(&bound[0]), any = false;
    if (v->type != MICA_V_DICT)
        return mica_run_fail(run, "xmlattr needs a mapping, not %s", mica_val_type_name(v));
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    for (size_t i = 0; i < v->dict->n; i++) {
        const mica_pair *p = &v->dict->pairs[i];
        if (p->value.type == MICA_V_NONE || p->value.type == MICA_V_UNDEFINED)
            continue;
        if (any || space)
            mica_buf_putc(&buf, ' ');
        any = true;
        if (!put_attribute(run, &buf, p) || !mica_text_ok(run, &buf)) {
            mica_buf_free(&buf);
            return false;
        }
    }
    return mica_val_from_buf(run, &buf, out);
}

const mica_filter_def mica_filters_text[] = {
    {"capitalize", f_capitalize, "", 0},
    {"center", f_center, "width", 0},
    {"e", f_escape, "", 0},
    {"escape", f_escape, "", 0},
    {"forceescape", f_forceescape, "", 0},
    {"format", f_format, NULL, 0},
    {"indent", f_indent, "width,first,blank", 0},
    {"lower", f_lower, "", 0},
    {"replace", f_replace, "old,new,count", 2},
    {"safe", f_safe, "", 0},
    {"string", f_string, "", 0},
    {"title", f_title, "", 0},
    {"trim", f_trim, "chars", 0},
    {"truncate", f_truncate, "length,killwords,end,leeway", 0},
    {"upper", f_upper, "", 0},
    {"urlencode", f_urlencode, "", 0},
    {"wordcount", f_wordcount, "", 0},
    {"xmlattr", f_xmlattr, "autospace", 0},
    {NULL, NULL, NULL, 0},
};
