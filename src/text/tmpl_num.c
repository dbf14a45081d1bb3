#include "text/tmpl_num.h"

#include "text/tmpl_ustr.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value is 0.d1d2d3... * 10^point: `point` digits stand before the decimal point. */
typedef struct decimal {
    char digits[32];
    int n, point;
} decimal;

/* strtod and printf use the locale's decimal point, so numbers cross them as an integer with an exponent. */
static double decimal_value(const decimal *d)
{
    char text[64];
    snprintf(text, sizeof text, "%.*se%d", d->n, d->digits, d->point - d->n);
    return strtod(text, NULL);
}

/* The first `n` significant digits of f > 0, trailing zeros removed. */
static decimal decimal_of(double f, int n)
{
    char text[64];
    decimal d = {0};
    snprintf(text, sizeof text, "%.*e", n - 1, f);
    const char *p = text;
    for (; *p && *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9' && d.n < (int)sizeof d.digits)
            d.digits[d.n++] = *p;
    }
    d.point = (int)strtol(p + 1, NULL, 10) + 1;
    while (d.n > 1 && d.digits[d.n - 1] == '0')
        d.n--;
    return d;
}

/* A decimal of at most 15 digits survives the way to a normal double and back, so 15 digits find it. */
static decimal shortest(double f)
{
    decimal d;
    int n = f < DBL_MIN ? 1 : 15;
    do
        d = decimal_of(f, n);
    while (n++ < 17 && decimal_value(&d) != f);
    return d;
}

static size_t put_special(double f, char *out)
{
    const char *text = mica_num_is_nan(f) ? "nan" : f > 0 ? "inf" : "-inf";
    strcpy(out, text);
    return strlen(text);
}

size_t mica_num_repr(double f, char out[MICA_NUM_TEXT])
{
    char *p = out;
    if (mica_num_is_nan(f) || mica_num_is_inf(f))
        return put_special(f, out);
    if (__builtin_signbit(f))
        *p++ = '-';
    f = __builtin_fabs(f);
    if (f == 0) {
        strcpy(p, "0.0");
        return (size_t)(p - out) + 3;
    }
    decimal d = shortest(f);
    if (d.point > 16 || d.point < -3) {
        *p++ = d.digits[0];
        if (d.n > 1) {
            *p++ = '.';
            memcpy(p, d.digits + 1, (size_t)d.n - 1);
            p += d.n - 1;
        }
        p += sprintf(p, "e%c%02d", d.point > 0 ? '+' : '-', abs(d.point - 1));
        return (size_t)(p - out);
    }
    int i = 0;
    if (d.point <= 0)
        *p++ = '0';
    for (; i < d.point; i++)
        *p++ = i < d.n ? d.digits[i] : '0';
    *p++ = '.';
    for (int zeros = d.point; zeros < 0; zeros++)
        *p++ = '0';
    if (i >= d.n)
        *p++ = '0';
    for (; i < d.n; i++)
        *p++ = d.digits[i];
    *p = '\0';
    return (size_t)(p - out);
}

size_t mica_num_format(double f, char conversion, int precision, bool alternate, char out[MICA_NUM_TEXT])
{
    if (mica_num_is_nan(f) || mica_num_is_inf(f)) {
        size_t n = put_special(f, out);
        for (size_t i = 0; i < n && conversion < 'a'; i++)
            out[i] = (char)(out[i] >= 'a' && out[i] <= 'z' ? out[i] - 32 : out[i]);
        return n;
    }
    char format[8] = {'%', alternate ? '#' : '.', alternate ? '.' : '*', alternate ? '*' : conversion, conversion, 0};
    format[alternate ? 5 : 4] = '\0';
    char text[MICA_NUM_TEXT];
    snprintf(text, sizeof text, format, precision, f);
    /* Whatever stands for the decimal point becomes a point. */
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e' || *p == 'E';
        if (plain)
            out[n++] = *p;
        else if (n == 0 || out[n - 1] != '.')
            out[n++] = '.';
    }
    out[n] = '\0';
    return n;
}

/* ---- Reading ---- */

/* Strips white space and copies code points that are decimal digits as ASCII; other non-ASCII is invalid. */
static bool plain_text(const char *text, size_t length, char *out, size_t size, size_t *n)
{
    size_t step, to = length, from = 0;
    while (from < to && mica_ustr_is_space(mica_ustr_decode(text + from, to - from, &step)))
        from += step;
    while (to > from && mica_ustr_is_space(mica_ustr_decode_last(text + from, to - from, &step)))
        to -= step;
    *n = 0;
    while (from < to && *n < size) {
        uint32_t c = mica_ustr_decode(text + from, to - from, &step);
        int digit = mica_ustr_digit_value(c);
        if (c >= 0x80 && digit < 0)
            return false;
        out[(*n)++] = c < 0x80 ? (char)c : (char)('0' + digit);
        from += step;
    }
    return from == to && *n > 0;
}

static bool equals_ignoring_case(const char *s, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++) {
        if (!word[i] || (s[i] | 32) != word[i])
            return false;
    }
    return word[n] == '\0';
}

/* Digits with single underscores between them; appended to d (after the first significant one), counted in *point. */
static const char *read_digits(const char *p, const char *end, char *mantissa, size_t room, size_t *n, int *point, bool *any)
{
    *any = false;
    while (p < end) {
        if (*p == '_' && *any && p + 1 < end && p[-1] != '_' && p[1] >= '0' && p[1] <= '9') {
            p++;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        *any = true;
        if (*n < room && (*n || *p != '0'))
            mantissa[(*n)++] = *p;
        else if (*n)
            mantissa[room - 1] = (char)(*p != '0' ? '1' : mantissa[room - 1]); /* sticky: more digits were not zero */
        else if (point)
            (*point)--; /* a leading zero: compensated by the caller's count */
        if (point)
            (*point)++;
        p++;
    }
    return p;
}

bool mica_num_parse_float(const char *text, size_t length, double *out)
{
    /* 800 digits decide the rounding of any double. */
    char plain[1024], mantissa[800];
    size_t n;
    if (!plain_text(text, length, plain, sizeof plain, &n))
        return false;
    const char *p = plain, *end = plain + n;
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    size_t rest = (size_t)(end - p);
    double value;
    if (equals_ignoring_case(p, rest, "inf") || equals_ignoring_case(p, rest, "infinity")) {
        value = __builtin_inf();
    } else if (equals_ignoring_case(p, rest, "nan")) {
        value = __builtin_nan("");
    } else {
        size_t digits = 0;
        int point = 0;
        bool whole, fraction = false;
        p = read_digits(p, end, mantissa, sizeof mantissa - 1, &digits, &point, &whole);
        if (p < end && *p == '.') {
            const char *start = ++p;
            size_t before = digits;
            p = read_digits(p, end, mantissa, sizeof mantissa - 1, &digits, NULL, &fraction);
            if (!before) { /* zeros after the point and before the first digit */
                for (const char *q = start; q < p && (*q == '0' || *q == '_'); q++)
                    point -= *q == '0';
            }
        }
        if (!whole && !fraction)
            return false;
        long exponent = 0;
        if (p < end && (*p | 32) == 'e') {
            bool minus = ++p < end && *p == '-';
            if (p < end && (*p == '-' || *p == '+'))
                p++;
            char e[16];
            size_t n_e = 0;
            bool any;
            p = read_digits(p, end, e, sizeof e - 1, &n_e, NULL, &any);
            if (!any)
                return false;
            e[n_e] = '\0';
            exponent = n_e > 8 ? 100000000 : n_e ? strtol(e, NULL, 10) : 0;
            if (minus)
                exponent = -exponent;
        }
        if (p != end)
            return false;
        char number[sizeof mantissa + 32];
        snprintf(number, sizeof number, "%.*se%ld", digits ? (int)digits : 1, digits ? mantissa : "0",
                 exponent + point - (long)digits);
        value = strtod(number, NULL);
    }
    *out = negative ? -value : value;
    return true;
}

static int digit_in_base(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

/* Skips 0b, 0o, 0x where `base` (0: any) allows it; returns the base of the digits. */
static int skip_prefix(const char **p, const char *end, int base, bool *prefixed)
{
    *prefixed = false;
    if (end - *p < 2 || **p != '0')
        return base ? base : 10;
    int named = ((*p)[1] | 32) == 'x' ? 16 : ((*p)[1] | 32) == 'o' ? 8 : ((*p)[1] | 32) == 'b' ? 2 : 0;
    if (!named || (base && base != named))
        return base ? base : 10;
    *p += 2;
    *prefixed = true;
    return named;
}

mica_num_status mica_num_parse_int(const char *text, size_t length, int base, int64_t *out)
{
    char plain[512];
    size_t n;
    if (!plain_text(text, length, plain, sizeof plain, &n))
        return length > sizeof plain ? MICA_NUM_TOO_BIG : MICA_NUM_INVALID;
    const char *p = plain, *end = plain + n;
    bool negative = *p == '-', prefixed, big = false, previous = false, nonzero = false;
    if (*p == '-' || *p == '+')
        p++;
    bool decimal_zero = base == 0 && p < end && *p == '0';
    base = skip_prefix(&p, end, base, &prefixed);
    int64_t value = 0;
    if (p < end && *p == '_' && prefixed)
        p++;
    for (; p < end; p++) {
        if (*p == '_' && previous && p + 1 < end) {
            previous = false;
            continue;
        }
        int digit = digit_in_base(*p);
        if (digit >= base)
            return MICA_NUM_INVALID;
        previous = true;
        nonzero |= digit > 0;
        /* Built on the negative side, which has the larger range. */
        big |= __builtin_mul_overflow(value, (int64_t)base, &value) || __builtin_sub_overflow(value, (int64_t)digit, &value);
    }
    if (!previous || (decimal_zero && !prefixed && nonzero))
        return MICA_NUM_INVALID;
    if (big || (!negative && value == INT64_MIN))
        return MICA_NUM_TOO_BIG;
    *out = negative ? value : -value;
    return MICA_NUM_OK;
}

/* ---- Arithmetic ---- */

mica_num_status mica_num_truncate(double f, int64_t *out)
{
    if (mica_num_is_nan(f))
        return MICA_NUM_INVALID;
    if (!(f > -9223372036854777856.0 && f < 9223372036854775808.0)) /* the double below -2^63; 2^63 */
        return MICA_NUM_TOO_BIG;
    *out = (int64_t)f;
    return MICA_NUM_OK;
}

double mica_num_floor(double f)
{
    if (!(__builtin_fabs(f) < 4503599627370496.0)) /* 2^52: no fraction left */
        return f;
    double t = (double)(int64_t)f;
    if (t > f)
        t -= 1;
    return t == 0 ? __builtin_copysign(0.0, f) : t;
}

double mica_num_fmod(double a, double b)
{
    double x = __builtin_fabs(a), y = __builtin_fabs(b);
    if (mica_num_is_nan(a) || mica_num_is_nan(b) || mica_num_is_inf(a))
        return __builtin_nan("");
    if (mica_num_is_inf(b))
        return a;
    /* Each step takes off the largest y * 2^k that fits; every product and difference is exact. */
    while (x >= y) {
        double t = y;
        while (t <= x / 2)
            t *= 2;
        x -= t;
    }
    return __builtin_copysign(x, a);
}

double mica_num_round(double f, int64_t digits)
{
    char text[MICA_NUM_TEXT];
    double value;
    if (mica_num_is_nan(f) || mica_num_is_inf(f) || f == 0 || digits > 323)
        return f;
    if (digits < -308)
        return __builtin_copysign(0.0, f);
    if (digits >= 0) {
        int precision = digits > MICA_NUM_MAX_PRECISION ? MICA_NUM_MAX_PRECISION : (int)digits;
        size_t n = mica_num_format(f, 'f', precision, false, text);
        (void)mica_num_parse_float(text, n, &value);
        return value;
    }
    /* The place 10^-digits as a significant digit of f; before the first digit only a carry can remain. */
    decimal d = decimal_of(__builtin_fabs(f), 17);
    int place = d.point + (int)digits;
    if (place < 0)
        return __builtin_copysign(0.0, f);
    if (place > 0) {
        size_t n = mica_num_format(f, 'e', place - 1, false, text);
        (void)mica_num_parse_float(text, n, &value);
        return value;
    }
    decimal half = {.digits = "5", .n = 1, .point = (int)-digits}, one = {.digits = "1", .n = 1, .point = (int)-digits + 1};
    value = __builtin_fabs(f) > decimal_value(&half) ? decimal_value(&one) : 0.0;
    return __builtin_copysign(value, f);
}

double mica_num_power(double f, int64_t n)
{
    long double base = f, result = 1;
    uint64_t k = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    for (; k; k >>= 1, base *= base) {
        if (k & 1)
            result *= base;
    }
    return (double)(n < 0 ? 1 / result : result);
}
