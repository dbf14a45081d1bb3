#include "text/tmpl_ustr.h"

#include <string.h>
#include <utf8proc.h>

/* ---- Code points ---- */

bool mica_ustr_is_ascii(const char *s, size_t n)
{
    uint64_t word;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        memcpy(&word, s + i, 8);
        if (word & 0x8080808080808080u)
            return false;
    }
    for (; i < n; i++) {
        if ((unsigned char)s[i] & 0x80)
            return false;
    }
    return true;
}

/* Length of the valid sequence at s, or 0. */
static size_t valid_sequence(const unsigned char *s, size_t n)
{
    unsigned c = s[0];
    if (c < 0x80)
        return 1;
    size_t length = c >= 0xC2 && c < 0xE0 ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    if (!length || length > n)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    }
    if ((c == 0xE0 && s[1] < 0xA0) || (c == 0xED && s[1] >= 0xA0) || (c == 0xF0 && s[1] < 0x90) || (c == 0xF4 && s[1] >= 0x90))
        return 0;
    return length;
}

size_t mica_ustr_validate(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t length = valid_sequence((const unsigned char *)s + i, n - i);
        if (!length)
            return i;
        i += length;
    }
    return n;
}

static bool is_start(char c) { return ((unsigned char)c & 0xC0) != 0x80; }

size_t mica_ustr_count(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += is_start(s[i]);
    return count;
}

size_t mica_ustr_offset(const char *s, size_t n, size_t count)
{
    size_t i = 0;
    for (; i < n && count; count--) {
        i++;
        while (i < n && !is_start(s[i]))
            i++;
    }
    return i;
}

uint32_t mica_ustr_decode(const char *s, size_t n, size_t *length)
{
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80 || n < 2) {
        *length = 1;
        return p[0];
    }
    if (p[0] < 0xE0 || n < 3) {
        *length = 2;
        return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0 || n < 4) {
        *length = 3;
        return (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    }
    *length = 4;
    return (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

uint32_t mica_ustr_decode_last(const char *s, size_t n, size_t *length)
{
    size_t start = n - 1;
    while (start > 0 && !is_start(s[start]))
        start--;
    return mica_ustr_decode(s + start, n - start, length);
}

size_t mica_ustr_encode(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

uint64_t mica_ustr_hash(const char *s, size_t n, uint64_t seed)
{
    uint64_t h = seed ^ n * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001B3u; /* FNV-1a */
    return h ^ h >> 29;
}

int64_t mica_ustr_find(const char *s, size_t n, const char *needle, size_t n_needle, size_t from)
{
    if (from > n || n_needle > n - from)
        return -1;
    if (!n_needle)
        return (int64_t)from;
    const char *p = n_needle == 1 ? memchr(s + from, needle[0], n - from) : memmem(s + from, n - from, needle, n_needle);
    return p ? p - s : -1;
}

int64_t mica_ustr_rfind(const char *s, const char *needle, size_t n_needle, size_t to, int64_t *budget)
{
    if (n_needle > to)
        return -1;
    if (!n_needle)
        return (int64_t)to;
    *budget -= (int64_t)((to - n_needle) >> 6);
    for (size_t i = to - n_needle + 1; i-- > 0;) {
        if (s[i] != needle[0] || s[i + n_needle - 1] != needle[n_needle - 1])
            continue;
        if (memcmp(s + i, needle, n_needle) == 0)
            return (int64_t)i;
        *budget -= 1 + (int64_t)(n_needle >> 6);
        if (*budget < 0)
            return -2;
    }
    return -1;
}

/* ---- Classes ---- */

bool mica_ustr_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

bool mica_ustr_is_line_end(uint32_t c)
{
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static utf8proc_category_t category(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c); }

bool mica_ustr_is_printable(uint32_t c)
{
    if (c < 0x7F)
        return c >= 0x20;
    switch (category(c)) {
    case UTF8PROC_CATEGORY_CN: case UTF8PROC_CATEGORY_CC: case UTF8PROC_CATEGORY_CF: case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO: case UTF8PROC_CATEGORY_ZS: case UTF8PROC_CATEGORY_ZL: case UTF8PROC_CATEGORY_ZP:
        return false;
    default:
        return true;
    }
}

bool mica_ustr_is_alpha(uint32_t c)
{
    switch (category(c)) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT: case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return true;
    default:
        return false;
    }
}

bool mica_ustr_is_decimal(uint32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND; }
bool mica_ustr_is_digit(uint32_t c) { return mica_ustr_is_decimal(c) || (c >= 0x80 && mica_ucase_is_digit(c)); }
bool mica_ustr_is_numeric(uint32_t c) { return mica_ustr_is_digit(c) || (c >= 0x80 && mica_ucase_is_numeric(c)); }
bool mica_ustr_is_title(uint32_t c) { return c >= 0x80 && category(c) == UTF8PROC_CATEGORY_LT; }

/* Other_Lowercase and Other_Uppercase of the Unicode Character Database: modifier letters, Roman numerals, circled letters. */
static bool other_lower(uint32_t c)
{
    return c == 0xAA || c == 0xBA || (c >= 0x2B0 && c <= 0x2B8) || c == 0x2C0 || c == 0x2C1 || (c >= 0x2E0 && c <= 0x2E4) ||
           c == 0x345 || c == 0x37A || (c >= 0x1D2C && c <= 0x1D6A) || c == 0x1D78 || (c >= 0x1D9B && c <= 0x1DBF) ||
           c == 0x2071 || c == 0x207F || (c >= 0x2090 && c <= 0x209C) || (c >= 0x2170 && c <= 0x217F) ||
           (c >= 0x24D0 && c <= 0x24E9) || c == 0x2C7C || c == 0x2C7D || c == 0xA69C || c == 0xA69D || c == 0xA770 ||
           c == 0xA7F8 || c == 0xA7F9 || (c >= 0xAB5C && c <= 0xAB5F) || c == 0x10780 || (c >= 0x10783 && c <= 0x10785) ||
           (c >= 0x10787 && c <= 0x107B0) || (c >= 0x107B2 && c <= 0x107BA);
}

static bool other_upper(uint32_t c)
{
    return (c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF) || (c >= 0x1F130 && c <= 0x1F149) ||
           (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool mica_ustr_is_lower(uint32_t c)
{
    if (c < 0x80)
        return c >= 'a' && c <= 'z';
    return category(c) == UTF8PROC_CATEGORY_LL || other_lower(c);
}

bool mica_ustr_is_upper(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z';
    return category(c) == UTF8PROC_CATEGORY_LU || other_upper(c);
}

bool mica_ustr_is_word(uint32_t c) { return c == '_' || mica_ustr_is_alpha(c) || mica_ustr_is_numeric(c); }

bool mica_ustr_is_name_start(uint32_t c)
{
    if (c < 0x80)
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return mica_ustr_is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool mica_ustr_is_name(uint32_t c)
{
    if (c < 0x80)
        return mica_ustr_is_name_start(c) || (c >= '0' && c <= '9');
    utf8proc_category_t k = category(c);
    return mica_ustr_is_name_start(c) || k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC ||
           k == UTF8PROC_CATEGORY_PC;
}

int mica_ustr_digit_value(uint32_t c)
{
    if (c < 0x80)
        return c >= '0' && c <= '9' ? (int)(c - '0') : -1;
    if (!mica_ustr_is_decimal(c))
        return -1;
    if (c >= 0x1D7CE && c <= 0x1D7FF) /* five adjacent runs of mathematical digits */
        return (int)((c - 0x1D7CE) % 10);
    /* Elsewhere decimal digits stand in separate runs of ten: count back to the start of the run. */
    uint32_t first = c;
    while (c - first < 9 && mica_ustr_is_decimal(first - 1))
        first--;
    return (int)(c - first);
}

/* ---- Case ---- */

static size_t copy_case(const mica_ucase *row, uint32_t out[3])
{
    size_t n = 0;
    for (; n < 3 && row->to[n]; n++)
        out[n] = row->to[n];
    return n;
}

size_t mica_ustr_to_upper(uint32_t c, uint32_t out[3])
{
    if (c < 0x80) {
        out[0] = c >= 'a' && c <= 'z' ? c - 32 : c;
        return 1;
    }
    const mica_ucase *row = mica_ucase_upper(c);
    if (row)
        return copy_case(row, out);
    out[0] = (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
    return 1;
}

size_t mica_ustr_to_title(uint32_t c, uint32_t out[3])
{
    const mica_ucase *row = c < 0x80 ? NULL : mica_ucase_title(c);
    return row ? copy_case(row, out) : mica_ustr_to_upper(c, out);
}

size_t mica_ustr_to_lower(uint32_t c, uint32_t out[3])
{
    if (c < 0x80) {
        out[0] = c >= 'A' && c <= 'Z' ? c + 32 : c;
        return 1;
    }
    if (c == 0x130) { /* the only full lower case of two code points */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    return 1;
}

size_t mica_ustr_casefold(uint32_t c, uint32_t out[3])
{
    utf8proc_int32_t folded[4];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, folded, 4, UTF8PROC_CASEFOLD, &boundary);
    if (n < 1 || n > 3) {
        out[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++)
        out[i] = (uint32_t)folded[i];
    return (size_t)n;
}

/* Case_Ignorable, as far as it occurs next to a sigma: marks, modifiers, and the apostrophes and dots inside words. */
static bool is_case_ignorable(uint32_t c)
{
    if (c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xA8 || c == 0xAD || c == 0xAF || c == 0xB4 ||
        c == 0xB7 || c == 0xB8 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027)
        return true;
    switch (category(c)) {
    case UTF8PROC_CATEGORY_MN: case UTF8PROC_CATEGORY_ME: case UTF8PROC_CATEGORY_CF: case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default:
        return false;
    }
}

static bool is_cased(uint32_t c) { return mica_ustr_is_lower(c) || mica_ustr_is_upper(c) || mica_ustr_is_title(c); }

bool mica_ustr_is_final_sigma(const char *s, size_t n, size_t at)
{
    size_t length;
    size_t i = at;
    bool before = false;
    while (i > 0) {
        uint32_t c = mica_ustr_decode_last(s, i, &length);
        i -= length;
        if (is_case_ignorable(c))
            continue;
        before = is_cased(c);
        break;
    }
    if (!before)
        return false;
    i = at + 2; /* U+03A3 takes two bytes */
    while (i < n) {
        uint32_t c = mica_ustr_decode(s + i, n - i, &length);
        i += length;
        if (!is_case_ignorable(c))
            return !is_cased(c);
    }
    return true;
}
