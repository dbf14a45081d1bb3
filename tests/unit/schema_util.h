/* schema_util.h - compiles a schema for a test and asks whether texts are what it allows. */
#ifndef SCHEMA_UTIL_H
#define SCHEMA_UTIL_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "constraint/automaton.h"
#include "constraint/schema.h"

typedef struct schema_test {
    mica_status status; /* of the compilation */
    mica_error err;
    mica_automaton *automaton;
    mica_matcher *matcher;
} schema_test;

static inline schema_test schema_compile_n(const char *text, size_t length, const mica_schema_options *options)
{
    schema_test t = {0};
    mica_grammar *g = NULL;
    t.status = mica_grammar_from_schema(text, length, options, &g, &t.err);
    if (!t.status)
        t.status = mica_automaton_new(g, &t.automaton, &t.err);
    mica_grammar_free(g);
    if (!t.status)
        t.status = mica_matcher_new(t.automaton, &t.matcher, &t.err);
    return t;
}

static inline schema_test schema_compile(const char *text)
{
    return schema_compile_n(text, strlen(text), NULL);
}

static inline void schema_free(schema_test *t)
{
    mica_matcher_free(t->matcher);
    mica_automaton_free(t->automaton);
    t->matcher = NULL;
    t->automaton = NULL;
}

/* Whether the whole text is allowed. */
static inline bool schema_accepts_n(schema_test *t, const char *text, size_t length)
{
    size_t taken;
    mica_error err = {0};
    mica_matcher_reset(t->matcher);
    mica_status status = mica_matcher_push(t->matcher, text, length, &taken, &err);
    if (status) {
        fprintf(stderr, "matcher: %s\n", err.message);
        abort();
    }
    return taken == length && mica_matcher_may_end(t->matcher);
}

static inline bool schema_accepts(schema_test *t, const char *text)
{
    return schema_accepts_n(t, text, strlen(text));
}

/* A schema with texts that it allows and that it does not; NULL ends the lists. Returns how many answers are wrong, and says
 * which. */
typedef struct schema_row {
    const char *schema;
    const char *yes[12], *no[12];
} schema_row;

static inline int schema_check_row(const schema_row *row, const mica_schema_options *options, int *n)
{
    schema_test t = schema_compile_n(row->schema, strlen(row->schema), options);
    int wrong = 0;
    if (t.status) {
        fprintf(stderr, "%s\n  is refused: %s\n", row->schema, t.err.message);
        return 1;
    }
    for (int i = 0; i < 12 && row->yes[i]; i++, ++*n)
        if (!schema_accepts(&t, row->yes[i])) {
            fprintf(stderr, "%s\n  does not allow %s\n", row->schema, row->yes[i]);
            wrong++;
        }
    for (int i = 0; i < 12 && row->no[i]; i++, ++*n)
        if (schema_accepts(&t, row->no[i])) {
            fprintf(stderr, "%s\n  allows %s\n", row->schema, row->no[i]);
            wrong++;
        }
    schema_free(&t);
    return wrong;
}

#endif
