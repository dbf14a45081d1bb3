/* detect_phone.c - telephone numbers. Digits in groups with single separators (space, no-break space, '-', '.', '/') or
 * parentheses around a group. One of these makes them a telephone number:
 *
 *  - a '+' or "00" before a country code, and as many digits as numbers of that country have
 *  - a '0' or '(' in front, several groups, 9 to 11 digits
 *  - ten digits as 3-3-4, or eleven as 1-3-3-4, with separators
 *  - 7 to 15 digits, and in the 24 bytes before a word such as "call", "tel", "phone"
 *
 * Where a longer and a shorter run of groups are possible, the longer is taken. */
#include "task/chars.h"
#include "task/detect.h"

#include <string.h>

enum { MAX_DIGITS = 15, MAX_GROUPS = 9, CONTEXT = 24 };

typedef struct number {
    char digits[MAX_DIGITS];
    int n;                  /* digits */
    int groups;             /* complete ones */
    int size[MAX_GROUPS];   /* digits of each */
    size_t end[MAX_GROUPS]; /* where each ends, its closing parenthesis included */
    bool plus, parenthesis; /* what it begins with */
    bool dot;               /* behind the first group */
} number;

/* Country codes and how many digits follow them. Others: 6 to 12. */
static const struct country {
    const char *code;
    int least, most;
} countries[] = {
    {"1", 10, 10},  {"7", 10, 10},  {"20", 8, 10},  {"27", 9, 9},   {"30", 10, 10}, {"31", 9, 9},   {"32", 8, 9},
    {"33", 9, 9},   {"34", 9, 9},   {"351", 9, 9},  {"352", 6, 9},  {"353", 7, 9},  {"358", 6, 11}, {"36", 8, 9},
    {"380", 9, 9},  {"39", 8, 11},  {"40", 9, 9},   {"41", 9, 9},   {"420", 9, 9},  {"421", 9, 9},  {"43", 7, 12},
    {"44", 9, 10},  {"45", 8, 8},   {"46", 7, 9},   {"47", 8, 8},   {"48", 9, 9},   {"49", 7, 12},  {"52", 10, 10},
    {"54", 10, 11}, {"55", 10, 11}, {"56", 9, 9},   {"57", 10, 10}, {"60", 8, 10},  {"61", 9, 9},   {"62", 8, 11},
    {"63", 10, 10}, {"64", 8, 10},  {"65", 8, 8},   {"66", 8, 9},   {"81", 9, 10},  {"82", 8, 10},  {"84", 9, 10},
    {"86", 10, 11}, {"90", 10, 10}, {"91", 10, 10}, {"92", 10, 10}, {"971", 8, 9},  {"972", 8, 9},  {"974", 8, 8},
};

static const char *const context_words[] = {
    "call",  "cell",   "contact", "dial", "fax",       "handy", "landline", "line",    "mobile",    "mobil", "number",
    "phone", "phoned", "rang",    "ring", "rufnummer", "sms",   "tel",      "telefon", "telephone", "text",  "whatsapp"};

/* Bytes of the separator at `at`, 0 if there is none. */
static size_t separator_at(const char *text, size_t length, size_t at)
{
    char c = mica_byte_at(text, length, at);
    if (c == ' ' || c == '-' || c == '.' || c == '/')
        return 1;
    if (length - at >= 2 && memcmp(text + at, "\xC2\xA0", 2) == 0)
        return 2; /* no-break space */
    return length - at >= 3 && (memcmp(text + at, "\xE2\x80\x91", 3) == 0 || memcmp(text + at, "\xE2\x80\xAF", 3) == 0) ? 3 : 0;
}

/* Reads a group at `at`, with its parentheses. Returns its end, 0 if there is none. */
static size_t read_group(number *p, const char *text, size_t length, size_t at)
{
    bool open = mica_byte_at(text, length, at) == '(';
    int n = p->n;
    at += open;
    while (at < length && mica_is_digit(text[at])) {
        if (n == MAX_DIGITS)
            return 0;
        p->digits[n++] = text[at++];
    }
    if (n == p->n || (open && mica_byte_at(text, length, at) != ')'))
        return 0;
    at += open;
    p->size[p->groups] = n - p->n;
    p->end[p->groups++] = at;
    p->n = n;
    return at;
}

/* Reads as many groups as there are. */
static void read_number(number *p, const char *text, size_t length, size_t at)
{
    *p = (number){.plus = text[at] == '+', .parenthesis = text[at] == '('};
    at += p->plus;
    while (p->groups < MAX_GROUPS && (at = read_group(p, text, length, at)) != 0) {
        size_t gap = separator_at(text, length, at);
        char next = mica_byte_at(text, length, at + gap);
        bool joined = text[at - 1] == ')' ? mica_is_digit(next) : gap > 0 && (mica_is_digit(next) || next == '(');
        if (!joined && !(gap == 0 && next == '(' && mica_is_digit(mica_byte_at(text, length, at + 1))))
            break;
        if (p->groups == 1)
            p->dot = text[at] == '.';
        at += gap;
    }
}

static bool is_international(const char *digits, int n)
{
    for (size_t i = 0; i < sizeof countries / sizeof *countries; i++) {
        int code = (int)strlen(countries[i].code);
        if (n <= code || memcmp(digits, countries[i].code, (size_t)code) != 0)
            continue;
        int rest = n - code; /* one '0' more where the trunk prefix was written too: +44 (0)20 ... */
        return (rest >= countries[i].least && rest <= countries[i].most) ||
               (digits[code] == '0' && rest == countries[i].most + 1);
    }
    return digits[0] != '0' && n >= 8 && n <= MAX_DIGITS;
}

/* Whether the first g groups, n digits, are a telephone number by their shape. */
static bool has_shape(const number *p, int g, int n)
{
    const int *size = p->size;
    if (p->plus)
        return is_international(p->digits, n);
    if (p->digits[0] == '0' && p->digits[1] == '0' && n > 2)
        return is_international(p->digits + 2, n - 2) && g > 1;
    if (g == 3 && size[0] == 3 && size[1] == 3 && size[2] == 4)
        return true;
    if (g == 4 && size[0] == 1 && p->digits[0] == '1' && size[1] == 3 && size[2] == 3 && size[3] == 4)
        return true;
    int least = p->dot ? 3 : 2; /* groups: 0.123456789 is no telephone number */
    return (p->digits[0] == '0' || p->parenthesis) && g >= least && n >= 9 && n <= 11;
}

/* Whether one of the context words ends the text before `at`, or is in the CONTEXT bytes before. */
static bool has_context(const char *text, size_t at)
{
    size_t from = at > CONTEXT ? at - CONTEXT : 0;
    for (size_t i = from; i < at; i++) {
        if (!mica_is_letter(text[i]) || (i > 0 && mica_is_letter(text[i - 1])))
            continue;
        size_t end = i;
        while (end < at && mica_is_letter(text[end]))
            end++;
        for (size_t k = 0; k < sizeof context_words / sizeof *context_words; k++)
            if (strlen(context_words[k]) == end - i && strncasecmp(context_words[k], text + i, end - i) == 0)
                return true;
        i = end;
    }
    return false;
}

/* Whether a number may end at `at`: no word, no further digits behind a sign that joins numbers. */
static bool may_end(const char *text, size_t length, size_t at)
{
    char c = mica_byte_at(text, length, at);
    bool joins = c == '.' || c == ',' || c == '-' || c == '/' || c == ':';
    return !mica_word_at(text, length, at) && !(joins && mica_is_digit(mica_byte_at(text, length, at + 1))) && c != '%';
}

static size_t phone_end(const char *text, size_t length, size_t at)
{
    number p;
    read_number(&p, text, length, at);
    bool context = has_context(text, at);
    for (int g = p.groups, n = p.n; g > 0; n -= p.size[--g]) {
        bool told = context && n >= 7 && (p.plus || n <= 12) && p.size[g - 1] >= 2;
        if (may_end(text, length, p.end[g - 1]) && (has_shape(&p, g, n) || told))
            return p.end[g - 1];
    }
    return 0;
}

/* Whether a number may begin at `at`. */
static bool may_start(const char *text, size_t at)
{
    char before = at > 0 ? text[at - 1] : ' ';
    bool joins =
        before == '.' || before == ',' || before == '-' || before == '/' || before == ':' || before == '+' || before == '#';
    bool money = before == '$' || before == '='; /* prices, assignments */
    return !mica_word_before(text, at) && !money &&
           !(joins && (at < 2 || before == '+' || before == '#' || mica_is_digit(text[at - 2])));
}

void mica_detect_phone(const char *text, size_t length, mica_finds *finds)
{
    for (size_t at = 0; at < length; at++) {
        if ((!mica_is_digit(text[at]) && text[at] != '+' && text[at] != '(') || !may_start(text, at))
            continue;
        size_t end = phone_end(text, length, at);
        if (!end) { /* "(+49) ..." is tried again behind the parenthesis */
            while (at + 1 < length && mica_is_digit(text[at]) && mica_is_digit(text[at + 1]))
                at++;
            continue;
        }
        mica_finds_add(finds, (mica_find){.start = at, .end = end});
        at = end - 1;
    }
}
