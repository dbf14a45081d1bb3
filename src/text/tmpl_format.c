#include "text/tmpl_attr.h"
#include "text/tmpl_num.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <stdio.h>
#include <string.h>

/* str.format(): replacement fields {name.attr[item]!conversion:spec}. */

typedef struct formatter {
    mica_run *run;
    const mica_val *args;
    size_t n_args;
    const mica_dict *kwargs;
    size_t automatic; /* next number of {} */
    bool saw_automatic, saw_manual, markup;
} formatter;

typedef struct spec {
    char fill[4];
    size_t n_fill;
    char align, sign, grouping, type; /* 0: not given */
    bool alternate, zero;
    int width, precision; /* -1: not given */
} spec;

static bool bad_spec(mica_run *run, const mica_val *text, const mica_val *v)
{
    return mica_run_fail(run, "the format specifier '%.*s' does not suit a value of type %s",
                         MICA_SHOW(text), mica_val_type_name(v));
}

static bool is_align(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

static bool spec_number(const char **p, const char *end, int *out)
{
    if (*p >= end || **p < '0' || **p > '9')
        return true;
    for (*out = 0; *p < end && **p >= '0' && **p <= '9'; ++*p) {
        *out = *out * 10 + (**p - '0');
        if (*out > 100000)
            return false;
    }
    return true;
}

static bool parse_spec(const mica_val *text, spec *s)
{
    const char *p = text->s, *end = p + text->len;
    size_t n = 0;
    *s = (spec){.fill = " ", .n_fill = 1, .width = -1, .precision = -1};
    if (p < end)
        mica_ustr_decode(p, text->len, &n);
    if (n && p + n < end && is_align(p[n])) {
        memcpy(s->fill, p, n);
        s->n_fill = n;
        s->align = p[n];
        p += n + 1;
    } else if (p < end && is_align(*p)) {
        s->align = *p++;
    }
    if (p < end && (*p == '+' || *p == '-' || *p == ' '))
        s->sign = *p++;
    if (p < end && *p == '#') {
        s->alternate = true;
        p++;
    }
    if (p < end && *p == '0') {
        s->zero = true;
        p++;
    }
    if (!spec_number(&p, end, &s->width))
        return false;
    if (p < end && (*p == ',' || *p == '_'))
        s->grouping = *p++;
    if (p < end && *p == '.') {
        p++;
        if (!spec_number(&p, end, &s->precision) || s->precision < 0)
            return false;
    }
    if (p < end)
        s->type = *p++;
    return p == end;
}

static void put_fill(mica_buf *buf, const spec *s, size_t n, bool zeros)
{
    for (size_t i = 0; i < n; i++) {
        if (zeros)
            mica_buf_putc(buf, '0');
        else
            mica_buf_append(buf, s->fill, s->n_fill);
    }
}

/* `prefix` is the sign and 0x; = aligns between it and the rest. */
static void put_aligned(mica_buf *buf, const spec *s, const char *prefix, const char *text, size_t n, char align)
{
    size_t n_prefix = strlen(prefix), count = n_prefix + mica_ustr_count(text, n);
    size_t pad = s->width > 0 && (size_t)s->width > count ? (size_t)s->width - count : 0;
    bool zeros = s->zero && !s->align;
    if (s->align)
        align = s->align;
    else if (zeros)
        align = '=';
    size_t before = align == '>' ? pad : align == '^' ? pad / 2 : 0;
    put_fill(buf, s, before, zeros);
    mica_buf_append(buf, prefix, n_prefix);
    if (align == '=')
        put_fill(buf, s, pad, zeros || s->zero);
    mica_buf_append(buf, text, n);
    if (align == '<' || align == '^')
        put_fill(buf, s, pad - before, zeros);
}

/* Inserts the grouping sign into the digits before the point. */
static size_t group(const char *digits, size_t n, const spec *s, int every, char *out)
{
    size_t whole = 0, at = 0;
    while (whole < n && ((digits[whole] >= '0' && digits[whole] <= '9') || (digits[whole] | 32) >= 'a'))
        whole++;
    for (size_t i = 0; i < n; i++) {
        if (s->grouping && i && i < whole && (whole - i) % (size_t)every == 0)
            out[at++] = s->grouping;
        out[at++] = digits[i];
    }
    return at;
}

static const char *sign_of(const spec *s, bool negative)
{
    return negative ? "-" : s->sign == '+' ? "+" : s->sign == ' ' ? " " : "";
}

static bool format_float(mica_run *run, mica_buf *buf, const spec *s, const mica_val *text, const mica_val *v)
{
    char number[MICA_NUM_TEXT], grouped[2 * MICA_NUM_TEXT];
    double f = v->type == MICA_V_FLOAT ? v->f : (double)mica_val_as_int(v);
    char type = s->type;
    size_t n;
    if ((type && !strchr("eEfFgG%", type)) || s->precision > MICA_NUM_MAX_PRECISION || (s->zero && s->grouping))
        return bad_spec(run, text, v);
    bool negative = __builtin_signbit(f) && !mica_num_is_nan(f);
    f = negative ? -f : f;
    if (!type && s->precision < 0) {
        n = mica_num_repr(f, number);
    } else if (type == '%') {
        n = mica_num_format(f * 100, 'f', s->precision < 0 ? 6 : s->precision, s->alternate, number);
        number[n++] = '%';
    } else {
        n = mica_num_format(f, type ? type : 'g', s->precision < 0 ? 6 : s->precision, s->alternate, number);
        if (!type && !memchr(number, '.', n) && !memchr(number, 'e', n) && n < (size_t)s->precision + 1 && number[0] <= '9') {
            memcpy(number + n, ".0", 2);
            n += 2;
        }
    }
    n = group(number, n, s, 3, grouped);
    put_aligned(buf, s, sign_of(s, negative), grouped, n, '>');
    return true;
}

static bool format_int(mica_run *run, mica_buf *buf, const spec *s, const mica_val *text, const mica_val *v)
{
    char digits[80], grouped[160], prefix[4], bytes[4];
    int64_t i = mica_val_as_int(v);
    unsigned long long magnitude = i < 0 ? 0 - (unsigned long long)i : (unsigned long long)i;
    char type = s->type ? s->type : 'd';
    size_t n = 0;
    if (strchr("eEfFgG%", type))
        return format_float(run, buf, s, text, v);
    if (s->precision >= 0 || !strchr("bcdoxXn", type) || (s->zero && s->grouping) ||
        (s->grouping == ',' && !strchr("dn", type)))
        return bad_spec(run, text, v);
    if (type == 'c') {
        if (i < 0 || i > 0x10FFFF || (i >= 0xD800 && i < 0xE000))
            return mica_run_fail(run, "%%c arg not in range(0x110000)");
        n = mica_ustr_encode((uint32_t)i, bytes);
        put_aligned(buf, s, "", bytes, n, '<');
        return true;
    }
    if (type == 'b') {
        for (unsigned long long m = magnitude; m || !n; m >>= 1)
            digits[sizeof digits - ++n] = (char)('0' + (m & 1));
        memmove(digits, digits + sizeof digits - n, n);
    } else {
        const char *format = type == 'x' ? "%llx" : type == 'X' ? "%llX" : type == 'o' ? "%llo" : "%llu";
        n = (size_t)snprintf(digits, sizeof digits, format, magnitude);
    }
    snprintf(prefix, sizeof prefix, "%s%s", sign_of(s, i < 0),
             !s->alternate || strchr("dn", type) ? "" : type == 'x' ? "0x" : type == 'X' ? "0X" : type == 'o' ? "0o" : "0b");
    n = group(digits, n, s, strchr("dn", type) ? 3 : 4, grouped);
    put_aligned(buf, s, prefix, grouped, n, '>');
    return true;
}

/* format(v, spec) */
static bool format_value(mica_run *run, mica_buf *buf, const mica_val *v, const mica_val *text)
{
    spec s;
    if (text->len == 0)
        return mica_text_write(run, buf, v);
    if (!parse_spec(text, &s))
        return bad_spec(run, text, v);
    if (!mica_run_charge(run, s.width > 0 ? (size_t)s.width : 0))
        return false;
    if (mica_val_is_int(v))
        return format_int(run, buf, &s, text, v);
    if (v->type == MICA_V_FLOAT)
        return format_float(run, buf, &s, text, v);
    if (v->type != MICA_V_STR || (s.type && s.type != 's') || s.sign || s.alternate || s.grouping || s.align == '=')
        return bad_spec(run, text, v);
    mica_val cut = *v;
    if (s.precision >= 0 && (size_t)s.precision < mica_val_count(v))
        cut = mica_val_sub(v, 0, (size_t)s.precision);
    if (s.zero && !s.align) { /* since Python 3.10 a zero fills strings on the right */
        s.align = '<';
        s.fill[0] = '0';
        s.n_fill = 1;
    }
    put_aligned(buf, &s, "", cut.s, cut.len, '<');
    return true;
}

/* ---- Fields ---- */

/* The first part of a field's name: empty, a number, or a name. */
static bool first_value(formatter *f, const char *name, size_t n, mica_val *out)
{
    bool number = n > 0;
    size_t index = 0;
    for (size_t i = 0; i < n && number; i++) {
        number = name[i] >= '0' && name[i] <= '9' && index < 100000;
        index = index * 10 + (size_t)(name[i] - '0');
    }
    if (n == 0 || number) {
        f->saw_automatic |= n == 0;
        f->saw_manual |= n != 0;
        if (f->saw_automatic && f->saw_manual)
            return mica_run_fail(f->run, "cannot mix numbered and automatic fields in format()");
        if (n == 0)
            index = f->automatic++;
        if (index >= f->n_args)
            return mica_run_fail(f->run, "Replacement index %zu out of range for positional args tuple", index);
        *out = f->args[index];
        return true;
    }
    const mica_val *found = mica_dict_get(f->run, f->kwargs, name, n), shown = mica_val_text(name, n);
    if (!found)
        return mica_run_fail(f->run, "format() has no argument named '%.*s'", MICA_SHOW(&shown));
    *out = *found;
    return true;
}

/* name(.attribute | [element])* */
static bool field_value(formatter *f, const char *p, const char *end, mica_val *out)
{
    const char *start = p;
    while (p < end && *p != '.' && *p != '[')
        p++;
    if (!first_value(f, start, (size_t)(p - start), out))
        return false;
    while (p < end) {
        bool element = *p++ == '[';
        start = p;
        while (p < end && (element ? *p != ']' : *p != '.' && *p != '['))
            p++;
        mica_val object = *out, name = mica_val_text(start, (size_t)(p - start));
        int64_t i;
        if (name.len == 0 || (element && p == end))
            return mica_run_fail(f->run, "Empty attribute in format string");
        if (element && mica_num_parse_int(name.s, name.len, 10, &i) == MICA_NUM_OK && i >= 0 && name.s[0] != '+')
            name = mica_val_int(i);
        if (!(element ? mica_attr_item(f->run, &object, &name, out) : mica_attr_get(f->run, &object, &name, out)))
            return false;
        if (element && ++p < end && *p != '.' && *p != '[')
            return mica_run_fail(f->run, "Only '.' or '[' may follow ']' in format field specifier");
    }
    return true;
}

static bool apply_conversion(formatter *f, char conversion, mica_val *v)
{
    if (conversion == 's')
        return mica_text_str(f->run, v, v);
    if (conversion != 'r')
        return mica_run_fail(f->run, "conversion '!%c' of format() is not supported",
                             (unsigned char)conversion < 0x80 ? conversion : '?');
    mica_buf buf;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!mica_text_repr(f->run, &buf, v)) {
        mica_buf_free(&buf);
        return false;
    }
    return mica_val_from_buf(f->run, &buf, v);
}

static bool expand(formatter *f, mica_buf *buf, const char *p, const char *end, int depth);

/* The end of a field that starts at p (behind its brace): the matching brace, or NULL. */
static const char *field_end(const char *p, const char *end)
{
    int depth = 1;
    bool in_element = false;
    for (; p < end; p++) {
        if (*p == '[' && depth == 1)
            in_element = true;
        else if (*p == ']')
            in_element = false;
        else if (in_element)
            continue;
        else if (*p == '{')
            depth++;
        else if (*p == '}' && --depth == 0)
            return p;
    }
    return NULL;
}

static bool put_field(formatter *f, mica_buf *buf, const char *p, const char *end, int depth)
{
    const char *name_end = p;
    mica_val v, text = mica_val_literal("");
    for (bool element = false; name_end < end && (element || (*name_end != '!' && *name_end != ':')); name_end++)
        element = *name_end == '[' || (element && *name_end != ']');
    if (!field_value(f, p, name_end, &v))
        return false;
    if (name_end < end && *name_end == '!') {
        if (end - name_end < 2 || (end - name_end > 2 && name_end[2] != ':'))
            return mica_run_fail(f->run, "expected ':' after conversion specifier");
        if (!apply_conversion(f, name_end[1], &v))
            return false;
        name_end += 2;
    }
    if (name_end < end) {
        mica_buf inner;
        mica_buf_init(&inner, MICA_TMPL_BUFFER);
        if (!expand(f, &inner, name_end + 1, end, depth + 1)) {
            mica_buf_free(&inner);
            return false;
        }
        if (!mica_val_from_buf(f->run, &inner, &text))
            return false;
    }
    if (!f->markup || depth)
        return format_value(f->run, buf, &v, &text);
    mica_buf plain;
    mica_buf_init(&plain, MICA_TMPL_BUFFER);
    bool safe = v.type == MICA_V_STR && (v.flags & MICA_VF_MARKUP) && text.len == 0;
    if (!format_value(f->run, &plain, &v, &text)) {
        mica_buf_free(&plain);
        return false;
    }
    if (!mica_val_from_buf(f->run, &plain, &v) || (!safe && !mica_text_escape(f->run, &v, &v)))
        return false;
    return mica_text_write(f->run, buf, &v);
}

static bool expand(formatter *f, mica_buf *buf, const char *p, const char *end, int depth)
{
    if (depth > 1)
        return mica_run_fail(f->run, "Max string recursion exceeded");
    while (p < end) {
        if ((*p == '{' || *p == '}') && p + 1 < end && p[1] == *p && (depth == 0 || *p == '}')) {
            mica_buf_putc(buf, *p);
            p += 2;
        } else if (*p == '}') {
            return mica_run_fail(f->run, "Single '}' encountered in format string");
        } else if (*p == '{') {
            const char *close = field_end(p + 1, end);
            if (!close)
                return mica_run_fail(f->run, "Single '{' encountered in format string");
            if (!mica_run_charge(f->run, 0) || !put_field(f, buf, p + 1, close, depth))
                return false;
            p = close + 1;
        } else {
            const char *start = p;
            while (p < end && *p != '{' && *p != '}')
                p++;
            mica_buf_append(buf, start, (size_t)(p - start));
        }
        if (!mica_text_ok(f->run, buf))
            return false;
    }
    return true;
}

bool mica_text_format(mica_run *run, const mica_val *format, const mica_val *args, size_t n_args, const mica_dict *kwargs,
                      mica_val *out)
{
    formatter f = {.run = run, .args = args, .n_args = n_args, .kwargs = kwargs};
    f.markup = (format->flags & MICA_VF_MARKUP) != 0;
    mica_buf buf;
    mica_buf_init(&buf, MICA_TMPL_BUFFER);
    if (!expand(&f, &buf, format->s, format->s + format->len, 0)) {
        mica_buf_free(&buf);
        return false;
    }
    if (!mica_val_from_buf(run, &buf, out))
        return false;
    if (f.markup)
        out->flags |= MICA_VF_MARKUP;
    return true;
}
