/* regex_class.c - reads escapes and bracketed classes of patterns. */
#include "constraint/regex_impl.h"

#include <string.h>

#include "text/utf8.h"

static const mica_char_range digits[] = {{'0', '9'}};
static const mica_char_range word[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
/* WhiteSpace and LineTerminator of ECMA-262 (12.2, 12.3). */
static const mica_char_range blanks[] = {
    {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF},
};
#define N_OF(array) (sizeof(array) / sizeof *(array))

static void fail_nomem(mica_regex_parser *p)
{
    if (!p->status)
        p->status = mica_regular_nomem(p->err);
}

/* ---- Escapes ---- */

/* The named class that an escape's letter stands for; false if it is none. */
static bool class_escape(mica_regex_parser *p, int letter, mica_regex_item *out)
{
    int lower = letter | 0x20;
    if (lower != 'd' && lower != 'w' && lower != 's')
        return false;
    bool ok = mica_ranges_add_all(&out->set, lower == 'd' ? digits : lower == 'w' ? word : blanks,
                                  lower == 'd' ? N_OF(digits) : lower == 'w' ? N_OF(word) : N_OF(blanks));
    if (ok && letter != lower)
        ok = mica_ranges_negate(&out->set);
    if (!ok)
        fail_nomem(p);
    out->is_set = true;
    p->at += 2;
    return true;
}

/* \p{name} and \P{name}. */
static void property_escape(mica_regex_parser *p, mica_regex_item *out)
{
    size_t start = p->at;
    bool negate = mica_regex_peek(p, 1) == 'P';
    out->is_set = true;
    const char *name = p->pattern + start + 3, *end = NULL;
    if (mica_regex_peek(p, 2) == '{')
        end = memchr(name, '}', p->length - start - 3);
    if (!end) {
        mica_regex_fail(p, MICA_BAD_TEXT, start, "\"\\%c\" needs a property in braces, as in \\p{L}", p->pattern[start + 1]);
        return;
    }
    mica_regex_property(p, start, name, (size_t)(end - name), &out->set);
    if (negate && !p->status && !mica_ranges_negate(&out->set))
        fail_nomem(p);
    p->at = (size_t)(end - p->pattern) + 1;
}

/* n hexadecimal digits from p->at + ahead on; -1: there are fewer. */
static int64_t read_hex(const mica_regex_parser *p, size_t ahead, int n)
{
    int64_t value = 0;
    for (int i = 0; i < n; i++) {
        int digit = mica_regex_hex(mica_regex_peek(p, ahead + (size_t)i));
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The digits of \u{...}; p->at is moved behind it. -1: malformed. */
static int64_t braced_hex(mica_regex_parser *p)
{
    int64_t value = 0;
    size_t ahead = 3;
    for (int digit; (digit = mica_regex_hex(mica_regex_peek(p, ahead))) >= 0 && value <= MICA_MAX_CODE; ahead++)
        value = value * 16 + digit;
    if (ahead == 3 || value > MICA_MAX_CODE || mica_regex_peek(p, ahead) != '}')
        return -1;
    p->at += ahead + 1;
    return value;
}

/* \uHHHH, two of them as a surrogate pair, or \u{H...}. A surrogate by itself is no character of any text: it matches
 * nothing. */
static void unicode_escape(mica_regex_parser *p, mica_regex_item *out)
{
    size_t start = p->at;
    int64_t code, low = -1;
    if (mica_regex_peek(p, 2) == '{')
        code = braced_hex(p);
    else if ((code = read_hex(p, 2, 4)) >= 0)
        p->at += 6;
    if (code < 0) {
        mica_regex_fail(p, MICA_BAD_TEXT, start, "\"\\u\" needs four hexadecimal digits, or up to 10FFFF in braces");
        return;
    }
    bool is_high = code >= 0xD800 && code < 0xDC00 && p->pattern[start + 2] != '{';
    if (is_high && mica_regex_peek(p, 0) == '\\' && mica_regex_peek(p, 1) == 'u')
        low = read_hex(p, 2, 4);
    if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        p->at += 6;
    }
    out->code = (uint32_t)code;
}

/* An escaped letter or digit that stands for one character; otherwise fails. p->at is at the backslash. */
static void letter_escape(mica_regex_parser *p, int letter, bool in_class, mica_regex_item *out)
{
    static const char *const controls = "t\tn\nv\vf\fr\r";
    size_t start = p->at;
    const char *control = strchr("tnvfr", letter) ? strchr(controls, letter) : NULL;
    int next = mica_regex_peek(p, 2);
    int64_t code = -1;
    p->at += 2;
    if (control)
        code = control[1];
    else if (letter == 'b' && in_class)
        code = '\b';
    else if (letter == '0' && !(next >= '0' && next <= '9'))
        code = 0;
    else if (letter == 'c' && ((next | 0x20) >= 'a' && (next | 0x20) <= 'z')) {
        code = next % 32;
        p->at++;
    } else if (letter == 'x') {
        p->at = start;
        code = read_hex(p, 2, 2);
        p->at += 4;
        if (code < 0)
            mica_regex_fail(p, MICA_BAD_TEXT, start, "\"\\x\" needs two hexadecimal digits");
    } else if (!in_class && (letter == 'b' || letter == 'B'))
        mica_regex_fail(p, MICA_UNSUPPORTED, start, "the word boundary \"\\%c\" cannot be enforced", letter);
    else if (!in_class && ((letter >= '1' && letter <= '9') || letter == 'k'))
        mica_regex_fail(p, MICA_UNSUPPORTED, start, "the back-reference \"\\%c\" cannot be enforced", letter);
    if (code < 0)
        mica_regex_fail(p, MICA_BAD_TEXT, start, "the escape \"\\%c\" has no meaning", letter);
    out->code = (uint32_t)code;
}

void mica_regex_escape(mica_regex_parser *p, bool in_class, mica_regex_item *out)
{
    size_t start = p->at;
    int letter = mica_regex_peek(p, 1);
    *out = (mica_regex_item){0};
    if (letter < 0 || letter >= 0x80)
        mica_regex_fail(p, MICA_BAD_TEXT, start, letter < 0 ? "the pattern ends with a backslash"
                                                            : "a character that needs no escape has a backslash before it");
    else if (class_escape(p, letter, out))
        return;
    else if (letter == 'p' || letter == 'P')
        property_escape(p, out);
    else if (letter == 'u')
        unicode_escape(p, out);
    else if ((letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z'))
        letter_escape(p, letter, in_class, out);
    else { /* punctuation */
        out->code = (uint32_t)letter;
        p->at += 2;
    }
}

/* ---- Classes ---- */

static void read_item(mica_regex_parser *p, mica_regex_item *out)
{
    *out = (mica_regex_item){0};
    if (p->pattern[p->at] == '\\')
        mica_regex_escape(p, true, out);
    else
        p->at += mica_utf8_read(p->pattern + p->at, &out->code);
}

/* An item, or a range of two. A hyphen beside a set or a bracket stands for itself. */
static void read_member(mica_regex_parser *p, mica_ranges *set)
{
    size_t start = p->at;
    mica_regex_item first, last;
    read_item(p, &first);
    if (!p->status && first.is_set && !mica_ranges_add_all(set, first.set.items, first.set.n))
        fail_nomem(p);
    mica_ranges_free(&first.set);
    if (p->status || first.is_set)
        return;
    int next = mica_regex_peek(p, 1);
    bool is_range = mica_regex_peek(p, 0) == '-' && next >= 0 && next != ']';
    if (is_range) {
        size_t hyphen = p->at++;
        read_item(p, &last);
        mica_ranges_free(&last.set);
        if (last.is_set) {
            is_range = false;
            p->at = hyphen;
        }
    }
    uint32_t high = is_range ? last.code : first.code;
    if (high < first.code)
        mica_regex_fail(p, MICA_BAD_TEXT, start, "the range \"%.*s\" in a class is out of order",
                        p->at - start < 40 ? (int)(p->at - start) : 0, p->pattern + start);
    if (!p->status && !mica_ranges_add(set, first.code, high))
        fail_nomem(p);
}

void mica_regex_class(mica_regex_parser *p, mica_ranges *out)
{
    size_t start = p->at++;
    bool negate = mica_regex_peek(p, 0) == '^';
    p->at += negate;
    while (!p->status && mica_regex_peek(p, 0) >= 0 && mica_regex_peek(p, 0) != ']')
        read_member(p, out);
    if (mica_regex_peek(p, 0) != ']')
        mica_regex_fail(p, MICA_BAD_TEXT, start, "the bracket \"[\" is never closed");
    p->at++;
    if (!p->status && !(negate ? mica_ranges_negate(out) : mica_ranges_normalise(out)))
        fail_nomem(p);
}
