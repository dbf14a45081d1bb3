/* regular.h - regular languages over code points, as minimal deterministic automata that can be intersected and subtracted.
 *
 * Needed because JSON Schema combines conditions on one string (pattern and maxLength, two patterns, "any name but these") and
 * because a pattern is about the characters of a string while its JSON text is escaped. A language is built from patterns,
 * combined, and then written into a grammar in one of two encodings.
 *
 * Notation of patterns: ECMA-262 with flag u, as JSON Schema asks, as far as it is regular: | * + ? {m,n} (lazy forms mean the
 * same), groups ( (?: (?<name> , . [..] [^..] \d \w \s \D \W \S also inside brackets, \t \n \v \f \r \0 \cX \xHH \uHHHH \u{H..}
 * with surrogate pairs, escaped punctuation, ^ and $ where they are not contradictory, \p{..} for the general categories, Any,
 * Assigned, ASCII and ASCII_Hex_Digit. Back-references, look-around, \b \B are MICA_UNSUPPORTED; what is malformed ([z-a], an
 * open parenthesis) is MICA_BAD_TEXT; both with the byte offset and the construct in the message.
 *
 * Everything is bounded: MICA_REGULAR_MAX_STATES states, else MICA_INVALID_ARGUMENT ("too large").
 */
#ifndef MICA_CONSTRAINT_REGULAR_H
#define MICA_CONSTRAINT_REGULAR_H
#include "constraint/grammar.h"

#define MICA_REGULAR_MAX_STATES 20000

typedef struct mica_regular mica_regular; /* immutable */

typedef enum mica_pattern_scope {
    MICA_PATTERN_WHOLE,  /* the pattern matches from the start of the text to its end */
    MICA_PATTERN_SEARCH, /* the pattern is found somewhere in the text, as JSON Schema means it */
} mica_pattern_scope;

mica_status mica_regular_parse(const char *pattern, size_t length, mica_pattern_scope scope, mica_regular **out,
                               mica_error *err);
/** Exactly this UTF-8 text. */
mica_status mica_regular_text(const char *text, size_t length, mica_regular **out, mica_error *err);
/** Every text of min to max code points (max MICA_G_NO_LIMIT: no limit). States grow with the bounds. */
mica_status mica_regular_lengths(int32_t min, int32_t max, mica_regular **out, mica_error *err);
void mica_regular_free(mica_regular *r); /* NULL is fine */

/* New languages; the operands stay as they are. */
/** a and b */
mica_status mica_regular_both(const mica_regular *a, const mica_regular *b, mica_regular **out, mica_error *err);
/** a or b */
mica_status mica_regular_either(const mica_regular *a, const mica_regular *b, mica_regular **out, mica_error *err);
/** a, but not b */
mica_status mica_regular_without(const mica_regular *a, const mica_regular *b, mica_regular **out, mica_error *err);

bool mica_regular_is_empty(const mica_regular *r); /* no text at all */
bool mica_regular_matches(const mica_regular *r, const char *text, size_t length);
/** Shortest and longest text in code points; *longest is MICA_G_NO_LIMIT if there is none. */
void mica_regular_lengths_of(const mica_regular *r, int64_t *shortest, int64_t *longest);

typedef enum mica_encoding {
    MICA_ENCODE_UTF8,        /* the characters themselves */
    MICA_ENCODE_JSON_STRING, /* inside a JSON string, without the quotes: " and \ escaped, controls as \b \f \n \r \t or \u00xx
                                (lower case), all else as it is: one form for each character */
} mica_encoding;

/** The language as a node of a grammar (a deterministic FSM over bytes; MICA_G_NEVER if it is empty). */
mica_gnode mica_grammar_regular(mica_grammar *g, const mica_regular *r, mica_encoding encoding);

#endif
