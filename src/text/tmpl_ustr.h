/* tmpl_ustr.h - Unicode for templates: code points, classes and case as Python's str has them. Pure functions, valid UTF-8. */
#ifndef MICA_TEXT_TMPL_USTR_H
#define MICA_TEXT_TMPL_USTR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool mica_ustr_is_ascii(const char *s, size_t n);
/** Byte offset of the first invalid sequence (also surrogates, overlong forms), or n. */
size_t mica_ustr_validate(const char *s, size_t n);
size_t mica_ustr_count(const char *s, size_t n);
/** Bytes that the first `count` code points take (n if there are fewer). */
size_t mica_ustr_offset(const char *s, size_t n, size_t count);
/** The code point at s; *length gets its bytes (n > 0). */
uint32_t mica_ustr_decode(const char *s, size_t n, size_t *length);
/** The last code point of s[0, n), n > 0. */
uint32_t mica_ustr_decode_last(const char *s, size_t n, size_t *length);
/** At most 4 bytes; returns how many. */
size_t mica_ustr_encode(uint32_t c, char *out);
uint64_t mica_ustr_hash(const char *s, size_t n, uint64_t seed);
/** First occurrence of `needle` at or after `from`, or -1. Linear in n. */
int64_t mica_ustr_find(const char *s, size_t n, const char *needle, size_t n_needle, size_t from);
/** Last occurrence that ends at or before `to`, or -1. Quadratic at worst, so it counts work: -2 when *budget is spent. */
int64_t mica_ustr_rfind(const char *s, const char *needle, size_t n_needle, size_t to, int64_t *budget);

bool mica_ustr_is_space(uint32_t c);     /* str.isspace, and \s of a regular expression */
bool mica_ustr_is_line_end(uint32_t c);  /* str.splitlines */
bool mica_ustr_is_printable(uint32_t c); /* str.isprintable: what repr() leaves alone */
bool mica_ustr_is_alpha(uint32_t c);
bool mica_ustr_is_decimal(uint32_t c);
bool mica_ustr_is_digit(uint32_t c);
bool mica_ustr_is_numeric(uint32_t c);
bool mica_ustr_is_lower(uint32_t c);
bool mica_ustr_is_upper(uint32_t c);
bool mica_ustr_is_title(uint32_t c); /* titlecase letters such as U+01C5 */
bool mica_ustr_is_word(uint32_t c);  /* \w */
bool mica_ustr_is_name_start(uint32_t c);
bool mica_ustr_is_name(uint32_t c);
/** 0 to 9, or -1 if c is not a decimal digit. */
int mica_ustr_digit_value(uint32_t c);

/** Full case mappings: at most 3 code points; returns how many. */
size_t mica_ustr_to_upper(uint32_t c, uint32_t out[3]);
size_t mica_ustr_to_lower(uint32_t c, uint32_t out[3]);
size_t mica_ustr_to_title(uint32_t c, uint32_t out[3]);
size_t mica_ustr_casefold(uint32_t c, uint32_t out[3]);
/** Whether U+03A3 at byte `at` ends a word, where lower() gives U+03C2. */
bool mica_ustr_is_final_sigma(const char *s, size_t n, size_t at);

/* tmpl_case.c: what utf8proc lacks, generated from the Unicode Character Database. */
typedef struct mica_ucase {
    uint32_t c, to[3]; /* unused places are 0 */
} mica_ucase;
const mica_ucase *mica_ucase_upper(uint32_t c);
const mica_ucase *mica_ucase_title(uint32_t c);
/** Numeric_Type=Digit outside of Nd; Numeric_Type=Numeric outside of the digits. */
bool mica_ucase_is_digit(uint32_t c);
bool mica_ucase_is_numeric(uint32_t c);

#endif
