/* schema_impl.h - what the files of the schema compiler share. Called by schema*.c only.
 *
 * The steps, and what lies between them:
 *   1. The schema is a tree of values (schema_json.h).
 *   2. A *goal* is a set of schemas that one value has to satisfy together: one for each property, item or reference. The same
 * set is the same goal, so recursion and repeated references end. (schema_goal.c)
 *   3. A goal is expanded into *terms*: $ref and allOf add schemas to the set, anyOf and oneOf choose one. A value satisfies
 * the goal if it satisfies one of its terms. (schema_expand.c, references: schema_ref.c, keywords: schema_keywords.c)
 *   4. The schemas of a term are merged into a *shape*: type by type, what a value may be, with goals for what is inside of it.
 *      (schema_shape.c, schema_object.c, schema_string.c). Shapes tell whether they can be satisfied, and whether a given value
 * does (schema_check.c).
 *   5. Each goal that is reached becomes one rule of the grammar. (schema_emit.c, schema_emit_object.c)
 *
 * Everything lies in the arena of the compiler, but for languages, which are in a list. A function that returns false or NULL
 * has failed and left the reason in c->status; after that nothing matters any more. */
#ifndef MICA_CONSTRAINT_SCHEMA_IMPL_H
#define MICA_CONSTRAINT_SCHEMA_IMPL_H
#include "constraint/json_format.h"
#include "constraint/number.h"
#include "constraint/regular.h"
#include "constraint/schema.h"
#include "constraint/schema_json.h"

#define MICA_SCHEMA_MAX_BYTES   (256u << 20) /* of the arena */
#define MICA_SCHEMA_MAX_DEPTH   128          /* of references and applicators for one value, and of checks inside checks */
#define MICA_SCHEMA_MAX_TERMS   4096         /* combinations of anyOf branches for one value, tried and kept */
#define MICA_SCHEMA_MAX_GOALS   100000
#define MICA_SCHEMA_MAX_CLASSES 64 /* kinds of names that patternProperties make */

typedef enum mica_stype {
    MICA_T_NULL = 1,
    MICA_T_BOOLEAN = 2,
    MICA_T_INTEGER = 4,
    MICA_T_FRACTION = 8, /* numbers, written with or without a point */
    MICA_T_STRING = 16,
    MICA_T_ARRAY = 32,
    MICA_T_OBJECT = 64,
    MICA_T_NUMBER = MICA_T_INTEGER | MICA_T_FRACTION,
    MICA_T_ALL = 127,
} mica_stype;

typedef struct mica_sgoal mica_sgoal;

/** Schemas (objects) whose own keywords all hold; $ref, allOf, anyOf and oneOf of them are resolved. */
typedef struct mica_sterm {
    const mica_jvalue **atoms;
    int32_t n;
    unsigned types;
} mica_sterm;

typedef struct mica_sproperty {
    const char *name;
    size_t length;
    mica_sgoal *goal;
    bool required;
} mica_sproperty;

/** What a value of a term may be; what does not belong to `types` is not set. */
typedef struct mica_sshape {
    const mica_sterm *term;
    unsigned types;
    bool has_values;            /* enum or const: only these */
    bool values_made;           /* by mica_schema_values() */
    const mica_jvalue **values; /* those that the other keywords allow */
    int32_t n_values;
    mica_number_spec number;
    int64_t min_length, max_length;
    bool has_language;             /* pattern or format */
    const mica_regular **language; /* where mica_schema_language() keeps it */
    mica_sgoal **prefix;           /* items at fixed places */
    int32_t n_prefix;
    mica_sgoal *rest; /* all other items */
    int64_t min_items, max_items;
    mica_sproperty *properties; /* those that are named, in order */
    int32_t n_properties, n_required;
    int64_t min_properties, max_properties;
    mica_sgoal *names; /* propertyNames; NULL: none */
} mica_sshape;

/** The names of an object that are not among the properties and are treated alike. */
typedef struct mica_sclass {
    const mica_regular *names;
    bool any; /* all names there are */
    mica_sgoal *goal;
} mica_sclass;

typedef enum mica_sanswer { MICA_UNKNOWN, MICA_ASKED, MICA_YES, MICA_NO } mica_sanswer;

struct mica_sgoal {
    const mica_jvalue **schemas; /* sorted by id */
    int32_t n;
    int32_t rule; /* of the grammar; -1: not reached yet */
    bool making;  /* its shapes are being made */
    mica_sanswer empty;
    mica_sshape *shapes; /* one a term; NULL: not expanded yet */
    int32_t n_shapes;
    mica_sgoal *next; /* to be made into a rule */
};

/** A schema with an identity of its own: $id, with the base against which references inside it are resolved. */
typedef struct mica_sresource {
    const mica_jvalue *schema;
    const char *uri; /* absolute, without fragment; "" for a root without $id */
} mica_sresource;

typedef struct mica_schema_compiler {
    mica_schema_options options;
    mica_tarena arena;
    const mica_jvalue **values;
    int32_t n_values;
    mica_grammar *g;
    mica_error *err;
    mica_status status;
    char why_empty[320]; /* the first contradiction seen: why a schema has no values */

    mica_sgoal **goals; /* hash table, open addressing */
    int32_t n_goals, n_goal_slots;
    mica_sgoal *queue, *queue_end;
    mica_sresource *resources;
    int32_t n_resources;
    uint8_t *checked;                 /* by id: MICA_S_... */
    const mica_regular **language_of; /* by id: of a pattern, or of the key of a member of patternProperties */
    const mica_regular **language_of_format;
    mica_regular **owned;
    int32_t n_owned, owned_capacity;
    int depth; /* of checks inside checks */

    /* Nodes that are used again and again; -1: not made yet. */
    mica_gnode quote, colon, comma, open, close, character;
    int32_t string_rule, number_rule, integer_rule;
} mica_schema_compiler;

enum { MICA_S_KEYWORDS = 1, MICA_S_ONE_OF = 2, MICA_S_WARNED = 4, MICA_S_NO_PATTERN = 8 };

/* ---- schema_goal.c: memory, failure, goals ---- */

void *mica_schema_alloc(mica_schema_compiler *c, size_t count, size_t size);
/** Fails, with the place in front of the message. `keyword` may be NULL. Returns false. */
bool mica_schema_fail(mica_schema_compiler *c, mica_status code, const mica_jvalue *at, const char *keyword, const char *format,
                      ...) __attribute__((format(printf, 5, 6)));
/** What cannot be enforced: fails (MICA_UNSUPPORTED), or, if lenient, warns once a schema and returns true. */
bool mica_schema_unenforced(mica_schema_compiler *c, const mica_jvalue *at, const char *keyword, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/** Remembers why there are no values, if nothing was remembered yet. */
void mica_schema_note_empty(mica_schema_compiler *c, const mica_jvalue *at, const char *keyword, const char *why);
/** Takes over a language that a function of regular.h made; `status` is what that returned. NULL on failure. */
const mica_regular *mica_schema_own(mica_schema_compiler *c, mica_status status, mica_regular *r, const mica_error *err,
                                    const mica_jvalue *at, const char *keyword);
/** The goal of these schemas (in any order, repetitions allowed). */
mica_sgoal *mica_schema_goal(mica_schema_compiler *c, const mica_jvalue **schemas, int32_t n);

/* ---- schema_keywords.c, schema_ref.c, schema_expand.c ---- */

/** Checks once that all keywords of a schema are known. */
bool mica_schema_check_keywords(mica_schema_compiler *c, const mica_jvalue *schema);
/** The one schema that this says the same as, being nothing but a reference to it; else NULL. */
bool mica_schema_stands_for(mica_schema_compiler *c, const mica_jvalue *schema, const mica_jvalue **target);
/** Whether the schema's unevaluatedProperties (unevaluatedItems) means the same as additionalProperties (items). */
bool mica_schema_is_plain(const mica_jvalue *schema, bool items);
/** A count: an integer from 0. Absent: `absent`. Above INT32_MAX it is INT32_MAX. */
bool mica_schema_count(mica_schema_compiler *c, const mica_jvalue *schema, const char *keyword, int64_t absent, int64_t *out);
/** The member of a schema if it is there and of this kind; another kind fails. */
bool mica_schema_member(mica_schema_compiler *c, const mica_jvalue *schema, const char *keyword, mica_jkind kind,
                        const mica_jvalue **out);
/** The types of "type" and "nullable"; all if there is none. */
bool mica_schema_types(mica_schema_compiler *c, const mica_jvalue *schema, unsigned *out);

/** Finds all $id. */
bool mica_schema_find_resources(mica_schema_compiler *c);
/** The schema that the string `ref` ("$ref" of a schema) names; NULL: failed. */
const mica_jvalue *mica_schema_resolve(mica_schema_compiler *c, const mica_jvalue *ref);

/** Terms of schemas that hold together. `base` (may be NULL) takes part with its own keywords but not with its applicators. */
bool mica_schema_expand(mica_schema_compiler *c, const mica_jvalue *const *schemas, int32_t n, const mica_jvalue *base,
                        mica_sterm **terms, int32_t *n_terms);

/* ---- schema_shape.c, schema_string.c, schema_object.c, schema_check.c ---- */

/** Expands a goal and makes its shapes, once. */
bool mica_schema_shapes(mica_schema_compiler *c, mica_sgoal *goal);
bool mica_schema_make_shape(mica_schema_compiler *c, const mica_sterm *term, mica_sshape *out);
/** Finds the values of a shape that has_values. Not part of making a shape: it asks other goals, perhaps this one, about them.
 */
bool mica_schema_values(mica_schema_compiler *c, mica_sshape *shape);
/** The object part of a shape. */
bool mica_schema_object_shape(mica_schema_compiler *c, mica_sshape *shape);
/** What a member of this name has to satisfy. NULL: failed. */
mica_sgoal *mica_schema_member_goal(mica_schema_compiler *c, const mica_sterm *term, const char *name, size_t length);
/** All other names, in classes whose goal is not known to be empty. */
bool mica_schema_classes(mica_schema_compiler *c, const mica_sshape *shape, mica_sclass **classes, int32_t *n);

/** The language of a "pattern" or of the key of a member of patternProperties (`at`). NULL: failed, or (if lenient, and
 * c->status is MICA_OK) not enforced. */
const mica_regular *mica_schema_pattern(mica_schema_compiler *c, const mica_jvalue *at, const char *text, size_t length,
                                        const char *keyword);
/** The strings of a shape, lengths aside: patterns and formats together. NULL: failed, or no condition. */
const mica_regular *mica_schema_language(mica_schema_compiler *c, const mica_sshape *shape);
/** A language with the lengths of a shape. */
const mica_regular *mica_schema_bounded(mica_schema_compiler *c, const mica_sshape *shape, const mica_regular *language);
/** The strings that a goal allows; *out NULL: all. */
bool mica_schema_strings(mica_schema_compiler *c, mica_sgoal *goal, const mica_regular **out);

/** Whether nothing is known to satisfy it. "No" may be wrong, "yes" is not. Check c->status afterwards. */
bool mica_schema_goal_empty(mica_schema_compiler *c, mica_sgoal *goal);
bool mica_schema_shape_empty(mica_schema_compiler *c, mica_sshape *shape);
/** Whether a value satisfies it. */
bool mica_schema_goal_allows(mica_schema_compiler *c, mica_sgoal *goal, const mica_jvalue *value);
bool mica_schema_shape_allows(mica_schema_compiler *c, const mica_sshape *shape, const mica_jvalue *value);

/* ---- schema_emit.c, schema_emit_object.c ---- */

/** A call of the goal's rule, which is queued to be made if it is new. */
mica_gnode mica_schema_call(mica_schema_compiler *c, mica_sgoal *goal);
/** Makes the rules of all queued goals. */
bool mica_schema_emit(mica_schema_compiler *c);
mica_gnode mica_schema_emit_object(mica_schema_compiler *c, const mica_sshape *shape);
/** A string of a language (NULL: any) with its quotes. */
mica_gnode mica_schema_emit_language(mica_schema_compiler *c, const mica_regular *language);

#endif
