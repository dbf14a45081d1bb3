/* spans.c - where a text is found in another, in bytes and in characters. Linear in the text for each needle, but for texts
 * made to repeat the needle's beginning; needles are at most MAX_NEEDLE bytes where letter case is ignored. */
#include "task/chars.h"
#include "task/task.h"

#include <string.h>

enum { MAX_NEEDLE = 4096 };

static bool whole_words(const char *text, size_t length, size_t start, size_t end)
{
    bool inside_before = mica_word_before(text, start) && mica_word_at(text, length, start);
    return !inside_before && !(mica_word_before(text, end) && mica_word_at(text, length, end));
}

/* ---- Exact ---- */

static bool find_exact(const char *text, size_t length, size_t from, const char *needle, size_t n, bool words, size_t *start)
{
    while (from < length) {
        const char *at = memmem(text + from, length - from, needle, n);
        if (!at)
            return false;
        *start = (size_t)(at - text);
        if (!words || whole_words(text, length, *start, *start + n))
            return true;
        from = *start + 1;
    }
    return false;
}

/* ---- Loose ---- */

/* The next character, letter case folded, every run of blanks as one space. Returns its bytes. */
static size_t next_folded(const char *text, size_t length, size_t at, uint32_t *code)
{
    size_t n = mica_utf8_read(text + at, code);
    if (!mica_is_blank(*code)) {
        *code = (uint32_t)utf8proc_tolower((utf8proc_int32_t)*code);
        return n;
    }
    for (uint32_t more; at + n < length; n += mica_utf8_read(text + at + n, &more)) {
        mica_utf8_read(text + at + n, &more);
        if (!mica_is_blank(more))
            break;
    }
    *code = ' ';
    return n;
}

/* The end of the needle at `at`; 0 if it is not there. */
static size_t loose_end(const char *text, size_t length, size_t at, const char *needle, size_t n)
{
    uint32_t a, b;
    for (size_t k = 0; k < n;) {
        if (at >= length)
            return 0;
        at += next_folded(text, length, at, &a);
        k += next_folded(needle, n, k, &b);
        if (a != b)
            return 0;
    }
    return at;
}

static bool find_loose(const char *text, size_t length, size_t from, const char *needle, size_t n, bool words, size_t *start,
                       size_t *end)
{
    uint32_t code;
    for (size_t at = from; at < length; at += mica_utf8_read(text + at, &code)) {
        size_t stop = loose_end(text, length, at, needle, n);
        if (!stop || (words && !whole_words(text, length, at, stop)))
            continue;
        *start = at;
        *end = stop;
        return true;
    }
    return false;
}

static void trim(const char **text, size_t *n)
{
    while (*n > 0 && ((unsigned char)**text <= ' ')) {
        (*text)++;
        (*n)--;
    }
    while (*n > 0 && (unsigned char)(*text)[*n - 1] <= ' ')
        (*n)--;
}

mica_match mica_text_find(const char *text, size_t length, size_t from, const char *needle, size_t n, size_t *start,
                          size_t *end)
{
    trim(&needle, &n);
    if (n == 0 || from >= length)
        return MICA_MATCH_NONE;
    for (int words = 1; words >= 0; words--) {
        if (find_exact(text, length, from, needle, n, words, start)) {
            *end = *start + n;
            return MICA_MATCH_EXACT;
        }
        if (n <= MAX_NEEDLE && find_loose(text, length, from, needle, n, words, start, end))
            return MICA_MATCH_LOOSE;
    }
    return MICA_MATCH_NONE;
}

bool mica_text_find_words(const char *text, size_t length, size_t from, const char *needle, size_t n, size_t *start,
                          size_t *end)
{
    trim(&needle, &n);
    return n > 0 && n <= MAX_NEEDLE && find_loose(text, length, from, needle, n, true, start, end);
}

/* ---- Offsets ---- */

/* Characters before `at`, counted on from the last call where that is possible. */
static size_t chars_before(const char *text, size_t at, mica_char_counter *counter)
{
    if (at < counter->at)
        *counter = (mica_char_counter){0, 0};
    for (; counter->at < at; counter->at++)
        counter->chars += ((unsigned char)text[counter->at] & 0xC0) != 0x80;
    return counter->chars;
}

bool mica_set_span(json_t *object, const char *text, size_t start, size_t end, mica_char_counter *counter)
{
    size_t char_start = chars_before(text, start, counter), char_end = chars_before(text, end, counter);
    return json_object_set_new(object, "start", json_integer((json_int_t)start)) == 0 &&
           json_object_set_new(object, "end", json_integer((json_int_t)end)) == 0 &&
           json_object_set_new(object, "char_start", json_integer((json_int_t)char_start)) == 0 &&
           json_object_set_new(object, "char_end", json_integer((json_int_t)char_end)) == 0;
}
