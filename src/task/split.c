/* split.c - where a long text may be cut: behind a paragraph, a line, a sentence, a word, and as the last resort a character.
 */
#include "task/chars.h"
#include "task/task.h"

#include <string.h>

/* ---- Sentences ---- */

/* Abbreviations after which a capital may follow within a sentence. */
static const char *const abbreviations[] = {"mr",  "mrs", "ms",  "dr",  "prof", "st",  "vs",  "etc",    "e.g",  "i.e",
                                            "no",  "inc", "ltd", "co",  "jr",   "sr",  "fig", "approx", "dept", "est",
                                            "gen", "gov", "rev", "sen", "u.s",  "u.k", "bzw", "z.b"};

/* Whether the '.' at `at` ends an abbreviation or follows an initial ("J. Smith"). */
static bool abbreviates(const char *text, size_t at)
{
    size_t start = at;
    while (start > 0 && at - start < 8 && (mica_is_letter(text[start - 1]) || text[start - 1] == '.'))
        start--;
    size_t n = at - start;
    if (n == 1 && text[start] >= 'A' && text[start] <= 'Z')
        return true;
    for (size_t i = 0; i < sizeof abbreviations / sizeof *abbreviations; i++)
        if (strlen(abbreviations[i]) == n && strncasecmp(abbreviations[i], text + start, n) == 0)
            return true;
    return false;
}

/* Bytes of the mark at `at` that ends a sentence; 0 if there is none. */
static size_t end_mark(const char *text, size_t length, size_t at)
{
    uint32_t code;
    size_t n = mica_utf8_read(text + at, &code);
    if (code == '.')
        return abbreviates(text, at) ? 0 : n;
    return code == '!' || code == '?' || code == 0x2026 || code == 0x3002 || code == 0xFF01 || code == 0xFF1F ||
                   code == 0x61F || (code == '\n' && mica_byte_at(text, length, at + 1) == '\n')
               ? n
               : 0;
}

static bool is_closing(uint32_t code)
{
    return code == '.' || code == '!' || code == '?' || code == '"' || code == '\'' || code == ')' || code == ']' ||
           code == 0x2019 || code == 0x201D || code == 0xBB || code == 0x2026;
}

size_t mica_sentence_end(const char *text, size_t length, size_t from, bool *ended)
{
    uint32_t code;
    for (size_t at = from, n; at < length; at += n) {
        n = mica_utf8_read(text + at, &code);
        size_t mark = end_mark(text, length, at), end = at + mark;
        if (!mark)
            continue;
        while (end < length && (n = mica_utf8_read(text + end, &code), is_closing(code)))
            end += n;
        *ended = end == length || mica_is_blank(code) || mark > 1;
        if (*ended)
            return end;
        n = end - at;
    }
    *ended = false;
    return length;
}

/* ---- Places to cut ---- */

/* How good a cut at `at`, before which there is a character, is: 0 for none. Blanks belong to what is before them. */
static int quality(const char *text, size_t at)
{
    uint32_t before, code;
    bool ended;
    size_t last = mica_char_before(text, at);
    mica_utf8_read(text + last, &before);
    mica_utf8_read(text + at, &code);
    if (mica_is_blank(code) || !mica_is_blank(before))
        return 0;
    size_t blanks = at, lines = 0;
    while (blanks > 0 &&
           (text[blanks - 1] == '\n' || text[blanks - 1] == ' ' || text[blanks - 1] == '\r' || text[blanks - 1] == '\t'))
        lines += text[--blanks] == '\n';
    if (lines > 0)
        return lines > 1 ? 4 : 3;
    size_t start = blanks;
    for (int i = 0; i < 4 && start > 0; i++) /* the end mark and what closes behind it */
        start = mica_char_before(text, start);
    bool here = mica_sentence_end(text, blanks, start, &ended) == blanks;
    return ended && here ? 2 : 1;
}

size_t mica_text_split(const char *text, size_t length, size_t limit)
{
    size_t best = 0;
    int best_quality = 0;
    if (length <= limit)
        return length;
    size_t at = limit < 1 ? 1 : limit;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    size_t last = at;
    for (; at > 0 && at >= limit / 2; at = mica_char_before(text, at)) {
        int q = quality(text, at);
        if (q > best_quality) {
            best = at;
            best_quality = q;
        }
        if (q == 4)
            break;
    }
    if (best)
        return best;
    if (last > 0)
        return last;
    for (last = 1; last < length && ((unsigned char)text[last] & 0xC0) == 0x80;) /* the limit is less than one character */
        last++;
    return last;
}
