/* schema.h - JSON Schema (draft 2020-12, the subset of docs/structured.md) to a grammar of the JSON texts that are valid.
 *
 * The JSON is canonical: no blanks unless asked for, one form of each string, properties in the order of the schema (additional
 * ones after them). A keyword that is not enforced is an error, so that a schema is never looser than it says; `lenient`
 * reports it through on_warning and goes on. Errors name the place as a JSON pointer ("#/properties/age/minimum").
 */
#ifndef MICA_CONSTRAINT_SCHEMA_H
#define MICA_CONSTRAINT_SCHEMA_H
#include "constraint/grammar.h"

typedef struct mica_schema_options {
    bool lenient;    /* keywords that cannot be enforced are warnings */
    bool whitespace; /* one optional space after ':' and ',' and single newlines with indentation, bounded: no endless blanks */
    void (*on_warning)(void *user, const char *message);
    void *user;
} mica_schema_options;

/** `text` is the schema (an object, true or false). NULL options: all false. *out is yours. */
mica_status mica_grammar_from_schema(const char *text, size_t length, const mica_schema_options *options, mica_grammar **out,
                                     mica_error *err);
/** The values of the schema as a node of a grammar that is being built, which may have several of them. On failure *err is
 * filled, and MICA_GNODE_FAILED comes back; the grammar itself need not have failed. */
mica_gnode mica_schema_into_grammar(mica_grammar *g, const char *text, size_t length, const mica_schema_options *options,
                                    mica_error *err);
/** Any JSON value. */
mica_status mica_grammar_any_json(const mica_schema_options *options, mica_grammar **out, mica_error *err);

#endif
