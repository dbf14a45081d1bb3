/* number_decimal.c - reading, comparing and writing exact decimals. */
#include "constraint/number.h"

#include <string.h>

/* The exponent behind 'e', clamped to what certainly is too large. */
static int32_t read_exponent(const char *text, size_t length)
{
    size_t i = 0;
    bool negative = length && text[0] == '-';
    int32_t value = 0;
    if (length && (text[0] == '-' || text[0] == '+'))
        i++;
    for (; i < length; i++)
        value = value < 100000 ? value * 10 + (text[i] - '0') : value;
    return negative ? -value : value;
}

bool mica_decimal_read(const char *text, size_t length, char *digits, mica_decimal *out)
{
    size_t i = text[0] == '-', n = 0, skipped = 0;
    int64_t point = 0;
    bool behind = false;
    for (; i < length && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.') {
            behind = true;
            continue;
        }
        point += !behind;
        if (n == 0 && text[i] == '0')
            skipped++;
        else
            digits[n++] = text[i];
    }
    if (i < length)
        point += read_exponent(text + i + 1, length - i - 1);
    point -= (int64_t)skipped;
    while (n && digits[n - 1] == '0')
        n--;
    if (n > MICA_DECIMAL_MAX_DIGITS || (n && (point > MICA_DECIMAL_MAX_DIGITS || point < -MICA_DECIMAL_MAX_DIGITS)))
        return false;
    *out = (mica_decimal){.digits = digits, .n = (int32_t)n, .point = n ? (int32_t)point : 0, .negative = n && text[0] == '-'};
    return true;
}

static int compare_magnitude(const mica_decimal *a, const mica_decimal *b)
{
    if (!a->n || !b->n)
        return (a->n > 0) - (b->n > 0);
    if (a->point != b->point)
        return a->point < b->point ? -1 : 1;
    int32_t n = a->n < b->n ? a->n : b->n;
    int order = memcmp(a->digits, b->digits, (size_t)n);
    if (order)
        return order < 0 ? -1 : 1;
    return (a->n > b->n) - (a->n < b->n);
}

int mica_decimal_compare(const mica_decimal *a, const mica_decimal *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? compare_magnitude(b, a) : compare_magnitude(a, b);
}

bool mica_decimal_is_integer(const mica_decimal *a)
{
    return a->point >= a->n;
}

size_t mica_decimal_print(const mica_decimal *a, char *out, size_t capacity)
{
    int32_t whole = a->point > 0 ? a->point : 1, places = a->n > a->point ? a->n - a->point : 0;
    size_t n = 0, need = (size_t)a->negative + (size_t)whole + (places ? (size_t)places + 1 : 0);
    if (need + 1 > capacity)
        return 0;
    if (a->negative)
        out[n++] = '-';
    int32_t first =
        a->point > 0 ? 0 : a->point - 1; /* index of the first digit written: zeros before digit 0 and behind the last */
    for (int32_t i = first; i < first + whole + places; i++) {
        if (i == first + whole)
            out[n++] = '.';
        out[n++] = i >= 0 && i < a->n ? a->digits[i] : '0';
    }
    out[n] = '\0';
    return n;
}
