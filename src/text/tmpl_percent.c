#include "text/tmpl_num.h"
#include "text/tmpl_text.h"
#include "text/tmpl_ustr.h"

#include <stdio.h>
#include <string.h>

typedef struct percent {
    mica_run *run;
    mica_buf buf;
    const mica_val *args; /* the right side of % */
    size_t next;          /* arguments that were taken */
    bool mapping, markup; /* the right side answers to names; the result is Markup, so strings are escaped */
} percent;

typedef struct spec {
    bool left, plus, space, alternate, zero;
    int width, precision; /* precision -1: none */
} spec;

static bool next_argument(percent *p, mica_val *out)
{
    if (p->args->type == MICA_V_TUPLE) {
        if (p->next >= p->args->seq->n)
            return mica_run_fail(p->run, "not enough arguments for format string");
        *out = p->args->seq->items[p->next++];
        return true;
    }
    if (p->next++)
        return mica_run_fail(p->run, "not enough arguments for format string");
    *out = *p->args;
    return true;
}

/* Pads to the width. `sign` bytes at the start of `text` stay in front of zeros. */
static void put_padded(percent *p, const spec *s, const char *text, size_t n, size_t sign, bool zeros)
{
    size_t count = mica_ustr_count(text, n), pad = s->width > 0 && (size_t)s->width > count ? (size_t)s->width - count : 0;
    zeros = zeros && !s->left;
    if (zeros)
        mica_buf_append(&p->buf, text, sign);
    for (size_t i = 0; i < pad && !s->left; i++)
        mica_buf_putc(&p->buf, zeros ? '0' : ' ');
    mica_buf_append(&p->buf, text + (zeros ? sign : 0), n - (zeros ? sign : 0));
    for (size_t i = 0; i < pad && s->left; i++)
        mica_buf_putc(&p->buf, ' ');
}

static bool put_text(percent *p, const spec *s, const mica_val *v, char conversion)
{
    mica_val text;
    mica_buf buf;
    if (conversion == 's') {
        if (!mica_text_soft(p->run, v, &text))
            return false;
    } else {
        mica_buf_init(&buf, MICA_TMPL_BUFFER);
        if (!mica_text_repr(p->run, &buf, v)) {
            mica_buf_free(&buf);
            return false;
        }
        if (!mica_val_from_buf(p->run, &buf, &text))
            return false;
    }
    if (p->markup && !mica_text_escape(p->run, &text, &text))
        return false;
    if (s->precision >= 0 && (size_t)s->precision < mica_val_count(&text))
        text = mica_val_sub(&text, 0, (size_t)s->precision);
    put_padded(p, s, text.s, text.len, 0, false);
    return true;
}

static bool put_integer(percent *p, const spec *s, const mica_val *v, char conversion)
{
    int64_t i;
    char digits[80], text[400];
    if (v->type == MICA_V_FLOAT && strchr("diu", conversion)) {
        if (mica_num_truncate(v->f, &i) != MICA_NUM_OK)
            return mica_run_fail(p->run, "cannot convert this float to a 64-bit integer");
    } else if (mica_val_is_int(v)) {
        i = mica_val_as_int(v);
    } else if (v->type == MICA_V_UNDEFINED) {
        return mica_run_fail_undefined(p->run, v);
    } else {
        return mica_run_fail(p->run, "%%%c format: a%s is required, not %s", conversion,
                             strchr("diu", conversion) ? " real number" : "n integer", mica_val_type_name(v));
    }
    unsigned long long magnitude = i < 0 ? 0 - (unsigned long long)i : (unsigned long long)i;
    const char *format = conversion == 'x' ? "%llx" : conversion == 'X' ? "%llX" : conversion == 'o' ? "%llo" : "%llu";
    int n_digits = snprintf(digits, sizeof digits, format, magnitude);
    int zeros = s->precision > n_digits ? s->precision - n_digits : 0;
    const char prefix[3] = {s->alternate && strchr("xXo", conversion) ? '0' : '\0', conversion, '\0'};
    const char *sign = i < 0 ? "-" : s->plus ? "+" : s->space ? " " : "";
    if (zeros > 300)
        return mica_run_fail(p->run, "a precision of more than 300 is not supported");
    int n = snprintf(text, sizeof text, "%s%s%0*d%s", sign, prefix, zeros, 0, digits);
    if (!zeros) /* %0*d prints at least one zero */
        n = snprintf(text, sizeof text, "%s%s%s", sign, prefix, digits);
    put_padded(p, s, text, (size_t)n, strlen(sign) + strlen(prefix), s->zero);
    return true;
}

static bool put_float(percent *p, const spec *s, const mica_val *v, char conversion)
{
    char text[MICA_NUM_TEXT + 1] = "";
    if (v->type == MICA_V_UNDEFINED)
        return mica_run_fail_undefined(p->run, v);
    if (!mica_val_is_number(v))
        return mica_run_fail(p->run, "must be real number, not %s", mica_val_type_name(v));
    if (s->precision > MICA_NUM_MAX_PRECISION)
        return mica_run_fail(p->run, "a precision of more than %d is not supported", MICA_NUM_MAX_PRECISION);
    double f = v->type == MICA_V_FLOAT ? v->f : (double)mica_val_as_int(v);
    size_t n = mica_num_format(f, conversion, s->precision < 0 ? 6 : s->precision, s->alternate, text + 1);
    char *start = text + 1;
    bool sign = *start == '-';
    if (!sign && (s->plus || s->space)) {
        *--start = s->plus ? '+' : ' ';
        n++;
        sign = true;
    }
    put_padded(p, s, start, n, sign, s->zero);
    return true;
}

static bool put_char(percent *p, const spec *s, const mica_val *v)
{
    char bytes[4];
    if (v->type == MICA_V_STR && mica_val_count(v) == 1) {
        put_padded(p, s, v->s, v->len, 0, false);
        return true;
    }
    if (!mica_val_is_int(v))
        return mica_run_fail(p->run, "%%c requires int or char");
    int64_t c = mica_val_as_int(v);
    if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return mica_run_fail(p->run, "%%c arg not in range(0x110000)");
    put_padded(p, s, bytes, mica_ustr_encode((uint32_t)c, bytes), 0, false);
    return true;
}

static bool put_conversion(percent *p, const spec *s, const mica_val *v, char conversion)
{
    switch (conversion) {
    case 's': case 'r':
        return put_text(p, s, v, conversion);
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
        return put_integer(p, s, v, conversion);
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
        return put_float(p, s, v, conversion);
    case 'c':
        return put_char(p, s, v);
    default:
        return mica_run_fail(p->run, "unsupported format character '%c'", (unsigned char)conversion < 0x80 ? conversion : '?');
    }
}

/* A number of the format, or * for the next argument. */
static bool read_number(percent *p, const char **at, const char *end, int *out)
{
    if (*at < end && **at == '*') {
        mica_val v;
        ++*at;
        if (!next_argument(p, &v))
            return false;
        if (!mica_val_is_int(&v) || mica_val_as_int(&v) > 100000 || mica_val_as_int(&v) < -100000)
            return mica_run_fail(p->run, "* wants int");
        *out = (int)mica_val_as_int(&v);
        return true;
    }
    int n = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
        n = n * 10 + (**at - '0');
        if (n > 100000)
            return mica_run_fail(p->run, "the width of a format is more than 100000");
    }
    *out = n;
    return true;
}

/* `(name)` of a mapping key; names may contain balanced parentheses. */
static bool read_key(percent *p, const char **at, const char *end, mica_val *out)
{
    int depth = 1;
    const char *start = ++*at;
    const mica_val *found = NULL;
    for (; *at < end; ++*at) {
        if (**at == '(')
            depth++;
        else if (**at == ')' && --depth == 0)
            break;
    }
    if (*at >= end)
        return mica_run_fail(p->run, "incomplete format key");
    mica_val key = mica_val_text(start, (size_t)(*at - start));
    ++*at;
    if (p->args->type != MICA_V_DICT)
        return mica_run_fail(p->run, "format requires a mapping");
    if (!mica_dict_find(p->run, p->args->dict, &key, &found))
        return false;
    if (!found)
        return mica_run_fail(p->run, "the format has the key '%.*s', which the mapping lacks", MICA_SHOW(&key));
    *out = *found;
    return true;
}

/* One conversion; *at is behind the percent sign. */
static bool convert(percent *p, const char **at, const char *end)
{
    spec s = {.precision = -1};
    mica_val v = MICA_MISSING;
    if (*at < end && **at == '(' && !read_key(p, at, end, &v))
        return false;
    for (; *at < end; ++*at) {
        if (**at == '-')
            s.left = true;
        else if (**at == '+')
            s.plus = true;
        else if (**at == ' ')
            s.space = true;
        else if (**at == '#')
            s.alternate = true;
        else if (**at == '0')
            s.zero = true;
        else
            break;
    }
    if (!read_number(p, at, end, &s.width))
        return false;
    if (s.width < 0) {
        s.left = true;
        s.width = -s.width;
    }
    if (*at < end && **at == '.') {
        ++*at;
        if (!read_number(p, at, end, &s.precision))
            return false;
        if (s.precision < 0)
            s.precision = 0;
    }
    if (*at < end && (**at == 'h' || **at == 'l' || **at == 'L'))
        ++*at;
    if (*at >= end)
        return mica_run_fail(p->run, "incomplete format");
    char conversion = *(*at)++;
    if (conversion == '%') {
        mica_buf_putc(&p->buf, '%');
        return true;
    }
    if (v.type == MICA_V_MISSING && !next_argument(p, &v))
        return false;
    return mica_run_charge(p->run, (size_t)s.width) && put_conversion(p, &s, &v, conversion);
}

static bool run_format(percent *p, const mica_val *format)
{
    const char *at = format->s, *end = at + format->len;
    while (at < end) {
        const char *sign = memchr(at, '%', (size_t)(end - at));
        mica_buf_append(&p->buf, at, (size_t)((sign ? sign : end) - at));
        if (!sign)
            break;
        at = sign + 1;
        if (!convert(p, &at, end))
            return false;
        if (!mica_text_ok(p->run, &p->buf))
            return false;
    }
    size_t given = p->args->type == MICA_V_TUPLE ? p->args->seq->n : 1;
    if (p->next < given && !p->mapping)
        return mica_run_fail(p->run, "not all arguments converted during string formatting");
    return true;
}

bool mica_text_percent(mica_run *run, const mica_val *format, const mica_val *args, mica_val *out)
{
    percent p = {.run = run, .args = args, .markup = (format->flags & MICA_VF_MARKUP) != 0};
    /* Python calls every value with elements a mapping, except tuples and strings. */
    p.mapping = args->type == MICA_V_DICT || args->type == MICA_V_LIST || args->type == MICA_V_RANGE ||
                args->type == MICA_V_UNDEFINED;
    mica_buf_init(&p.buf, MICA_TMPL_BUFFER);
    if (!run_format(&p, format)) {
        mica_buf_free(&p.buf);
        return false;
    }
    if (!mica_val_from_buf(run, &p.buf, out))
        return false;
    if (p.markup)
        out->flags |= MICA_VF_MARKUP;
    return true;
}
