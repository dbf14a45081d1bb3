/* detect_card.c - payment card numbers: 13 to 19 digits in one piece or in groups with one kind of separator (a space or '-'),
 * that begin as an issuer's numbers do (ISO/IEC 7812), have one of its lengths and pass the Luhn check. */
#include "task/chars.h"
#include "task/detect.h"

enum { MIN_DIGITS = 13, MAX_DIGITS = 19 };

typedef struct issuer {
    int first, last;  /* range of the first four digits */
    uint32_t lengths; /* bit n: n digits are possible */
} issuer;

#define LENGTH(n) (1u << (n))
#define UP_TO_19  (LENGTH(16) | LENGTH(17) | LENGTH(18) | LENGTH(19))

static const issuer issuers[] = {
    {4000, 4999, LENGTH(13) | LENGTH(16) | LENGTH(19)},
    {5100, 5599, LENGTH(16)},
    {2221, 2720, LENGTH(16)},
    {3400, 3499, LENGTH(15)},
    {3700, 3799, LENGTH(15)},
    {6011, 6011, UP_TO_19},
    {6440, 6599, UP_TO_19},
    {3000, 3059, LENGTH(14) | UP_TO_19},
    {3600, 3699, LENGTH(14) | UP_TO_19},
    {3800, 3999, LENGTH(14) | UP_TO_19},
    {3528, 3589, UP_TO_19},
    {6200, 6299, UP_TO_19},
    {2200, 2204, UP_TO_19},
    {5000, 5099, LENGTH(13) | LENGTH(14) | LENGTH(15) | UP_TO_19},
    {5600, 5899, LENGTH(13) | LENGTH(14) | LENGTH(15) | UP_TO_19},
    {6300, 6399, LENGTH(13) | LENGTH(14) | LENGTH(15) | UP_TO_19},
    {6700, 6799, LENGTH(13) | LENGTH(14) | LENGTH(15) | UP_TO_19},
};

static bool luhn(const char *digits, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        int digit = digits[n - 1 - i] - '0';
        if (i % 2 == 1)
            digit = digit > 4 ? 2 * digit - 9 : 2 * digit;
        sum += digit;
    }
    return sum % 10 == 0;
}

static bool is_card(const char *digits, int n)
{
    int first = 0;
    for (int i = 0; i < 4; i++)
        first = 10 * first + (digits[i] - '0');
    for (size_t i = 0; i < sizeof issuers / sizeof *issuers; i++)
        if (first >= issuers[i].first && first <= issuers[i].last && issuers[i].lengths & LENGTH(n))
            return luhn(digits, n);
    return false;
}

/* The end of a card number that begins at `at`; 0 if there is none. */
static size_t card_end(const char *text, size_t length, size_t at)
{
    char digits[MAX_DIGITS], separator = '\0';
    size_t end = 0;
    int n = 0;
    while (at < length && n < MAX_DIGITS && mica_is_digit(text[at])) {
        digits[n++] = text[at++];
        char next = mica_byte_at(text, length, at);
        bool joined = (next == ' ' || next == '-') && mica_is_digit(mica_byte_at(text, length, at + 1));
        bool runs_on = joined && next == '-' && n < MAX_DIGITS; /* a blank may be followed by another number, '-' not */
        if (n >= MIN_DIGITS && !runs_on && !mica_word_at(text, length, at) && is_card(digits, n))
            end = at; /* the longest wins */
        if (!joined)
            continue;
        if (separator && separator != next)
            break;
        separator = next;
        at++;
    }
    return end;
}

void mica_detect_card(const char *text, size_t length, mica_finds *finds)
{
    for (size_t at = 0; at < length; at++) {
        bool inside = at > 1 && (text[at - 1] == '-' || text[at - 1] == '.') && mica_is_digit(text[at - 2]);
        if (!mica_is_digit(text[at]) || inside || mica_word_before(text, at))
            continue;
        size_t end = card_end(text, length, at);
        if (!end)
            continue;
        mica_finds_add(finds, (mica_find){.start = at, .end = end});
        at = end - 1;
    }
}
