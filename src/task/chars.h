/* chars.h - characters of checked UTF-8 text as the tasks see them: what is a digit, what belongs to a word. Called by the
 * detectors, the span finder and the splitter of this folder. */
#ifndef MICA_TASK_CHARS_H
#define MICA_TASK_CHARS_H
#include <stdbool.h>
#include <stddef.h>
#include <utf8proc.h>

#include "text/utf8.h"

static inline bool mica_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline bool mica_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline char mica_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/** Letters, digits and marks of any script, and the underscore. */
static inline bool mica_is_word(uint32_t code)
{
    if (code < 0x80)
        return mica_is_digit((char)code) || mica_is_letter((char)code) || code == '_';
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NO);
}

/** White space of Unicode, line ends included. */
static inline bool mica_is_blank(uint32_t code)
{
    return code == ' ' || (code >= 9 && code <= 13) || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
           code == 0x3000;
}

/** Start of the character before `at`, which is > 0. */
static inline size_t mica_char_before(const char *text, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
    return at;
}

/** Whether a word reaches up to `at` from the left, or begins or goes on at `at`. */
static inline bool mica_word_before(const char *text, size_t at)
{
    uint32_t code;
    if (at == 0)
        return false;
    mica_utf8_read(text + mica_char_before(text, at), &code);
    return mica_is_word(code);
}

static inline bool mica_word_at(const char *text, size_t length, size_t at)
{
    uint32_t code;
    if (at >= length)
        return false;
    mica_utf8_read(text + at, &code);
    return mica_is_word(code);
}

/** The byte at `at`, 0 beyond the end (texts may contain NUL; no rule of this folder gives NUL a meaning). */
static inline char mica_byte_at(const char *text, size_t length, size_t at)
{
    return at < length ? text[at] : '\0';
}

#endif
