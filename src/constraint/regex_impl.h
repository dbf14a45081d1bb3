/* regex_impl.h - what the files that read patterns share. Called by regex*.c only. */
#ifndef MICA_CONSTRAINT_REGEX_IMPL_H
#define MICA_CONSTRAINT_REGEX_IMPL_H
#include "constraint/regular_impl.h"

/* A run of code points of one general category, and the bits below. */
typedef struct mica_category_run {
    uint32_t low, high;
    uint8_t category; /* utf8proc's number */
} mica_category_run;

typedef struct mica_regex_parser {
    const char *pattern;
    size_t length, at;
    mica_regex *re;
    mica_error *err;
    mica_status status;      /* of the first failure; all parsing stops then */
    mica_category_run *runs; /* all of Unicode; NULL until the first \p */
    size_t n_runs;
} mica_regex_parser;

/** Fails at byte `position`, unless it has failed already. The sentence is completed by the place. */
void mica_regex_fail(mica_regex_parser *p, mica_status code, size_t position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/** The byte at p->at + ahead, or -1 behind the end. */
int mica_regex_peek(const mica_regex_parser *p, size_t ahead);
/** Hexadecimal value of a byte, -1: none. */
int mica_regex_hex(int c);

/** What an escape or a class stands for. */
typedef struct mica_regex_item {
    bool is_set;
    uint32_t code;   /* one character */
    mica_ranges set; /* or a set of them */
} mica_regex_item;

/** Reads an escape; p->at is at the backslash. regex_class.c */
void mica_regex_escape(mica_regex_parser *p, bool in_class, mica_regex_item *out);
/** Reads [...]; p->at is at the bracket. The set is normalised. regex_class.c */
void mica_regex_class(mica_regex_parser *p, mica_ranges *out);
/** The property in \p{name}; the set is normalised. `position` is that of the escape. regex_unicode.c */
void mica_regex_property(mica_regex_parser *p, size_t position, const char *name, size_t length, mica_ranges *out);

#endif
