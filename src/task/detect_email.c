/* detect_email.c - e-mail addresses: LOCAL@DOMAIN.
 *
 * LOCAL: 1 to 64 bytes of word characters and . _ % + ' -, beginning and ending with a word character, no two dots in a row;
 * the quoted forms of RFC 5322 and its rarer signs are left out, because in prose they are punctuation around an address.
 * DOMAIN: labels of word characters and '-', at least two; the last has two letters or more and no digits (or begins with
 * xn--). */
#include "task/chars.h"
#include "task/detect.h"

#include <string.h>

enum { MAX_LOCAL = 64, MAX_DOMAIN = 255, MAX_LABEL = 63 };

static bool is_local(const char *text, size_t at)
{
    uint32_t code;
    mica_utf8_read(text + at, &code);
    return mica_is_word(code) || (code < 0x80 && strchr(".%+'-", (int)code) && code);
}

/* Where the local part before the '@' at `at` begins; `at` if there is none. */
static size_t local_start(const char *text, size_t at)
{
    size_t start = at, first_word = at;
    if (!mica_word_before(text, at))
        return at;
    while (start > 0 && at - start < MAX_LOCAL) {
        size_t before = mica_char_before(text, start);
        if (!is_local(text, before) || (text[before] == '.' && text[start] == '.') || at - before > MAX_LOCAL)
            break;
        start = before;
        if (mica_word_at(text, at, start) && !mica_word_before(text, start))
            first_word = start;
    }
    return first_word;
}

/* The end of the label that begins at `at`; `at` if there is none. *ends_name: it may be the last one. */
static size_t label_end(const char *text, size_t length, size_t at, bool *ends_name)
{
    size_t end = at, letters = 0;
    bool digits = false;
    while (end < length && (mica_word_at(text, length, end) || text[end] == '-') && text[end] != '_') {
        uint32_t code;
        unsigned n = mica_utf8_read(text + end, &code);
        digits |= code < 0x80 && mica_is_digit((char)code);
        letters += code >= 0x80 || mica_is_letter((char)code);
        if (end + n - at > MAX_LABEL)
            return at;
        end += n;
    }
    bool coded = end - at > 4 && strncasecmp(text + at, "xn--", 4) == 0;
    *ends_name = (letters >= 2 && !digits) || coded;
    if (end > at && (text[at] == '-' || text[end - 1] == '-'))
        return at;
    return end;
}

/* The end of the domain that begins at `at`; 0 if there is none. */
static size_t domain_end(const char *text, size_t length, size_t at)
{
    size_t best = 0, label = at;
    for (int n = 1; label - at < MAX_DOMAIN; n++) {
        bool ends_name = false;
        size_t end = label_end(text, length, label, &ends_name);
        if (end == label || end - at > MAX_DOMAIN)
            break;
        if (n > 1 && ends_name && mica_byte_at(text, length, end) != '_')
            best = end;
        if (mica_byte_at(text, length, end) != '.')
            break;
        label = end + 1;
    }
    return best;
}

void mica_detect_email(const char *text, size_t length, mica_finds *finds)
{
    const char *end = text + length;
    size_t last = 0; /* end of the last find: the domain of one is not the local part of another */
    for (const char *sign = text; length && (sign = memchr(sign, '@', (size_t)(end - sign))); sign++) {
        size_t at = (size_t)(sign - text), start = local_start(text, at), stop = domain_end(text, length, at + 1);
        if (start == at || start < last || !stop)
            continue;
        mica_finds_add(finds, (mica_find){.start = start, .end = stop});
        last = stop;
    }
}
