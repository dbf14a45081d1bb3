/* detect_ip.c - IP addresses. Version 4: four decimal numbers up to 255 without leading zeros. Version 6: the text forms of RFC
 * 4291, section 2.2, an embedded IPv4 address included; one that is shortened with "::" must have a digit in it, because "::"
 * is also an operator. A prefix length or zone after the address is not part of it. */
#include "task/chars.h"
#include "task/detect.h"

static bool is_hex(char c)
{
    return mica_is_digit(c) || (mica_lower(c) >= 'a' && mica_lower(c) <= 'f');
}

/* The end of an IPv4 address at `at`; 0 if there is none. */
static size_t v4_end(const char *text, size_t length, size_t at)
{
    for (int part = 0; part < 4; part++) {
        size_t start = at;
        int value = 0;
        if (part > 0 && mica_byte_at(text, length, at) != '.')
            return 0;
        start = at += part > 0;
        while (at < length && at - start < 4 && mica_is_digit(text[at]))
            value = 10 * value + (text[at++] - '0');
        if (at == start || value > 255 || (text[start] == '0' && at - start > 1))
            return 0;
    }
    bool more = mica_byte_at(text, length, at) == '.' && mica_is_digit(mica_byte_at(text, length, at + 1));
    return more || mica_word_at(text, length, at) ? 0 : at;
}

/* State of reading an IPv6 address. */
typedef struct v6 {
    size_t at;
    int groups;       /* of 16 bits */
    bool gap, digits; /* a "::" was read */
} v6;

/* Reads "::", or ":" before a further group. False: the address ends here. */
static bool v6_colon(v6 *a, const char *text, size_t length)
{
    if (mica_byte_at(text, length, a->at) != ':')
        return false;
    if (mica_byte_at(text, length, a->at + 1) == ':') {
        if (a->gap)
            return false;
        a->gap = true;
        a->at += 2;
        return true;
    }
    if (a->groups == 0 || !is_hex(mica_byte_at(text, length, a->at + 1)))
        return false;
    a->at++;
    return true;
}

static bool v6_group(v6 *a, const char *text, size_t length)
{
    size_t start = a->at, v4 = a->groups > 0 || a->gap ? v4_end(text, length, start) : 0;
    if (v4 && a->groups <= 6) {
        a->groups += 2;
        a->digits = true;
        a->at = v4;
        return false; /* nothing follows it */
    }
    while (a->at < length && a->at - start < 4 && is_hex(text[a->at]))
        a->digits |= mica_is_digit(text[a->at++]);
    a->groups += a->at > start;
    return a->at > start;
}

/* The end of an IPv6 address at `at`; 0 if there is none. */
static size_t v6_end(const char *text, size_t length, size_t at)
{
    v6 a = {.at = at};
    if (text[at] != ':' && !v6_group(&a, text, length))
        return 0;
    while (a.groups < 8 && v6_colon(&a, text, length) && v6_group(&a, text, length))
        ;
    bool whole = a.gap ? a.groups >= 1 && a.groups < 8 && a.digits : a.groups == 8;
    char next = mica_byte_at(text, length, a.at), after = mica_byte_at(text, length, a.at + 1);
    if (!whole || mica_word_at(text, length, a.at) || (next == ':' && (is_hex(after) || after == ':')))
        return 0;
    return a.at;
}

void mica_detect_ip(const char *text, size_t length, mica_finds *finds)
{
    for (size_t at = 0; at < length; at++) {
        char before = at > 0 ? text[at - 1] : ' ';
        bool inside = before == ':' || (before == '.' && at > 1 && mica_is_digit(text[at - 2]));
        if ((!is_hex(text[at]) && text[at] != ':') || inside || mica_word_before(text, at))
            continue;
        size_t end = mica_is_digit(text[at]) ? v4_end(text, length, at) : 0;
        if (!end)
            end = v6_end(text, length, at);
        if (!end)
            continue;
        mica_finds_add(finds, (mica_find){.start = at, .end = end});
        at = end - 1;
    }
}
