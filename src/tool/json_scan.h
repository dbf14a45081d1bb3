/* json_scan.h - finds the end of a JSON value byte by byte, and whether it is one. Holds no text; strict (RFC 8259), nesting up
 * to MICA_JSON_SCAN_DEPTH. Called by tool_parser, tool_list. */
#ifndef MICA_TOOL_JSON_SCAN_H
#define MICA_TOOL_JSON_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MICA_JSON_SCAN_DEPTH 512

typedef enum mica_json_step {
    MICA_JSON_MORE,   /* taken; the value goes on */
    MICA_JSON_END,    /* taken; the value ends with this byte */
    MICA_JSON_BEFORE, /* not taken: the value (a number) ended before this byte */
    MICA_JSON_BAD,    /* no JSON */
} mica_json_step;

typedef struct mica_json_scan {
    uint8_t state;
    uint8_t digits;   /* of \u still to come */
    const char *word; /* rest of true, false, null */
    int depth;
    bool key;         /* the string is a name */
    uint32_t object[MICA_JSON_SCAN_DEPTH / 32]; /* bit: the container is an object */
} mica_json_scan;

void mica_json_scan_init(mica_json_scan *s);
mica_json_step mica_json_scan_push(mica_json_scan *s, char c);

static inline bool mica_json_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/** Length of the value at the start of text[0..n), 0 if there is none. Blanks around it are not part of it. */
size_t mica_json_value_length(const char *text, size_t n);

/** The next member of the object (or element of the array: then the key is empty) text[0..n), which is known to be valid JSON.
 * *at begins with 0. False: there are no more. Keys are without quotes, and with their escapes. */
typedef struct mica_json_member {
    const char *key, *value;
    size_t key_length, value_length;
} mica_json_member;
bool mica_json_next(const char *text, size_t n, size_t *at, mica_json_member *member);

#endif
