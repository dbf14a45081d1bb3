/* fields.h - reads a JSON object into a structure by a table of its members, strictly: an unknown member, one of the wrong type
 * or out of range is an error that names file, JSON pointer and what is wanted. A misspelt "allow_egres" must not pass.
 *
 * The tables are the truth about the files; the test route_schemas compares them with share/mica/schemas. Called by ladder.c,
 * policy_read.c, rules.c, classifier.c and request.c. */
#ifndef MICA_ROUTER_FIELDS_H
#define MICA_ROUTER_FIELDS_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef enum mica_field_kind {
    MICA_FIELD_TEXT,   /* char[]; low..high bytes, without its end; no control characters but line ends and tabs */
    MICA_FIELD_NAME,   /* the same; letters, digits, '.', '_' and '-' only: it goes into messages, headers and file names */
    MICA_FIELD_INT,    /* int64_t */
    MICA_FIELD_REAL,   /* double */
    MICA_FIELD_FLAG,   /* bool */
    MICA_FIELD_ANSWER, /* int: MICA_YES, MICA_NO */
    MICA_FIELD_CHOICE, /* int32_t: low + index in `choices` */
    MICA_FIELD_PART,   /* an object, a list or whatever: the table's owner reads it */
} mica_field_kind;

typedef struct mica_field_row {
    const char *key;
    mica_field_kind kind;
    bool required;
    size_t offset;
    double low, high;           /* of numbers (exact up to 2^53) and of the length of texts; CHOICE: value of the first word */
    const char *const *choices; /* ends with NULL */
} mica_field_row;

/** A table with its name in messages and in the schema files. */
typedef struct mica_field_table {
    const char *name;
    const mica_field_row *field;
    size_t n;
    bool nullable; /* null is the same as absent: it says "unknown" */
} mica_field_table;

/* Rows of a table: the kind, the structure's type, its member, the key. */
#define MICA_TEXT_FIELD(type, member, key, least, required)                                                                    \
    {key, MICA_FIELD_TEXT, required, offsetof(type, member), least, sizeof(((type *)0)->member) - 1, NULL}
#define MICA_NAME_FIELD(type, member, key)                                                                                     \
    {key, MICA_FIELD_NAME, true, offsetof(type, member), 1, sizeof(((type *)0)->member) - 1, NULL}
#define MICA_INT_FIELD(type, member, key, low, high, required)                                                                 \
    {key, MICA_FIELD_INT, required, offsetof(type, member), low, high, NULL}
#define MICA_REAL_FIELD(type, member, key, low, high, required)                                                                \
    {key, MICA_FIELD_REAL, required, offsetof(type, member), low, high, NULL}
#define MICA_FLAG_FIELD(type, member, key) {key, MICA_FIELD_FLAG, false, offsetof(type, member), 0, 0, NULL}
#define MICA_ANSWER_FIELD(type, member, key) {key, MICA_FIELD_ANSWER, false, offsetof(type, member), 0, 0, NULL}
#define MICA_CHOICE_FIELD(type, member, key, first, words, required)                                                           \
    {key, MICA_FIELD_CHOICE, required, offsetof(type, member), first, 0, words}
#define MICA_PART_FIELD(key, required) {key, MICA_FIELD_PART, required, 0, 0, 0, NULL}
#define MICA_FIELD_TABLE(name, fields, nullable) {name, fields, sizeof(fields) / sizeof *(fields), nullable}

/** What is absent stays as it is in *out. `where` is "FILE: /pointer" (the pointer without its last '/'). */
mica_status mica_fields_read(const json_t *object, const char *where, const mica_field_table *table, void *out,
                             mica_error *err);

/** The object or list at `key`; NULL if absent. */
mica_status mica_field_part(const json_t *object, const char *where, const char *key, json_type type, size_t most,
                            const json_t **out, mica_error *err);

/** Text to JSON: duplicate members and nesting beyond jansson's limit are refused; `name` is for messages. */
mica_status mica_fields_load(const char *json, size_t length, const char *name, json_t **out, mica_error *err);

#endif
