/* detect_iban.c - international bank account numbers (ISO 13616): country, two check digits, the length that the country has,
 * and the remainder 1 modulo 97. Written in one piece or with single spaces or '-' between groups, in capitals or not. */
#include "task/chars.h"
#include "task/detect.h"

enum { MAX_IBAN = 34 };

/* Country and length, from the IBAN registry. */
static const char registry[] =
    "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL"
    "18"
    "GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO"
    "15"
    "OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30";

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
}

/* 0 if the country has no IBAN. */
static size_t length_of(const char *country)
{
    for (const char *p = registry; *p; p += 4)
        if (p[0] == upper(country[0]) && p[1] == upper(country[1]))
            return (size_t)(10 * (p[2] - '0') + (p[3] - '0'));
    return 0;
}

/* The number with its first four characters moved to the end, letters as 10..35. */
static bool checks(const char *iban, size_t n)
{
    int rest = 0;
    for (size_t i = 0; i < n; i++) {
        char c = upper(iban[(i + 4) % n]);
        rest = mica_is_digit(c) ? (10 * rest + (c - '0')) % 97 : (100 * rest + (c - 'A' + 10)) % 97;
    }
    return rest == 1;
}

static size_t iban_end(const char *text, size_t length, size_t at)
{
    char iban[MAX_IBAN];
    size_t n = 0, wanted = length_of(text + at);
    while (at < length && n < wanted && (mica_is_digit(text[at]) || mica_is_letter(text[at]))) {
        if ((n == 2 || n == 3) && !mica_is_digit(text[at]))
            return 0;
        iban[n++] = text[at++];
        char next = mica_byte_at(text, length, at), after = mica_byte_at(text, length, at + 1);
        if (n < wanted && n >= 4 && (next == ' ' || next == '-') && (mica_is_digit(after) || mica_is_letter(after)))
            at++;
    }
    return n == wanted && n > 4 && !mica_word_at(text, length, at) && checks(iban, n) ? at : 0;
}

void mica_detect_iban(const char *text, size_t length, mica_finds *finds)
{
    for (size_t at = 0; at + 4 < length; at++) {
        if (!mica_is_letter(text[at]) || !mica_is_letter(text[at + 1]) || !mica_is_digit(text[at + 2]) ||
            mica_word_before(text, at))
            continue;
        size_t end = iban_end(text, length, at);
        if (end)
            mica_finds_add(finds, (mica_find){.start = at, .end = end});
    }
}
