/* schema_json.h - a JSON text as a tree that knows its parents, the order of keys and the exact digits of numbers.
 *
 * jansson reads and checks the text; what it does not keep (digits, place in the document) is added here. Everything lies in an
 * arena that the caller owns. Called by schema*.c. */
#ifndef MICA_CONSTRAINT_SCHEMA_JSON_H
#define MICA_CONSTRAINT_SCHEMA_JSON_H
#include "base/buf.h"
#include "constraint/number.h"
#include "text/tmpl_arena.h"

#define MICA_JSON_MAX_DEPTH  256     /* of arrays and objects: what walks a value may recurse */
#define MICA_JSON_MAX_VALUES 1000000 /* of a schema */

typedef enum mica_jkind {
    MICA_J_NULL,
    MICA_J_FALSE,
    MICA_J_TRUE,
    MICA_J_NUMBER,
    MICA_J_STRING,
    MICA_J_ARRAY,
    MICA_J_OBJECT,
} mica_jkind;

typedef struct mica_jvalue mica_jvalue;
struct mica_jvalue {
    mica_jkind kind;
    int32_t id;                /* 0 .. n_values - 1, the root has 0 */
    int32_t index;             /* in the parent */
    int32_t n;                 /* items */
    const mica_jvalue *parent; /* NULL: the root */
    const mica_jvalue *items;  /* of an array or object, in order */
    const char *key;           /* in an object; terminated, may hold NUL */
    size_t key_length;
    const char *text; /* string: its characters; number: as written. Terminated */
    size_t length;
    mica_decimal number;
};

/** *values (in the arena): by id. MICA_BAD_TEXT with the byte offset for what is not JSON (a key twice is an error too). */
mica_status mica_json_parse(mica_tarena *arena, const char *text, size_t length, const mica_jvalue ***values, int32_t *n_values,
                            mica_error *err);

/** The member of an object, or NULL; also NULL where `object` is none. */
const mica_jvalue *mica_json_get(const mica_jvalue *object, const char *key);
const mica_jvalue *mica_json_get_n(const mica_jvalue *object, const char *key, size_t length);
bool mica_json_is_text(const mica_jvalue *value, const char *text);
/** As JSON Schema means it: 1 and 1.0 are equal, the order of keys does not matter. */
bool mica_json_equal(const mica_jvalue *a, const mica_jvalue *b);
/** Canonical text: no blanks, numbers without exponent (if of moderate length), strings as mica_json_print_string(). */
void mica_json_print(mica_buf *out, const mica_jvalue *value);
/** With quotes, escaped as MICA_ENCODE_JSON_STRING does. */
void mica_json_print_string(mica_buf *out, const char *text, size_t length);
/** "#/properties/age", in `out` (terminated, cut in front if longer). `keyword` (may be NULL) is one more step. */
void mica_json_pointer(const mica_jvalue *value, const char *keyword, char *out, size_t capacity);

#endif
