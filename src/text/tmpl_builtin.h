/* tmpl_builtin.h - arguments of calls, and the tables of filters, tests and global functions. */
#ifndef MICA_TEXT_TMPL_BUILTIN_H
#define MICA_TEXT_TMPL_BUILTIN_H
#include "text/tmpl_value.h"

typedef struct mica_kwarg {
    mica_val name, value;
} mica_kwarg;

/* Evaluated arguments of one call. */
typedef struct mica_args {
    const mica_val *pos;
    size_t n_pos;
    const mica_kwarg *kw;
    size_t n_kw;
} mica_args;

#define MICA_MAX_PARAMS 8

/** Sorts arguments by a list of parameter names such as "d,attribute": the first `required` must be given; the others are
 * MISSING where they are not. Parameters that have no name in Python are called 0, 1, 2. Errors name `what`. */
bool mica_args_bind(mica_run *run, const mica_args *args, const char *what, const char *params, size_t required,
                    mica_val out[MICA_MAX_PARAMS]);

typedef struct mica_filter_def {
    const char *name;
    bool (*call)(mica_run *run, const mica_val *value, const mica_args *args, const mica_val *bound, mica_val *out);
    const char *params; /* NULL: the filter looks at args itself, bound is NULL */
    size_t required;
} mica_filter_def;

typedef struct mica_test_def {
    const char *name;
    bool (*call)(mica_run *run, const mica_val *value, const mica_val *bound, bool *out);
    const char *params;
    size_t required;
} mica_test_def;

/** NULL if there is none. */
const mica_filter_def *mica_filter_find(const char *name, size_t length);
const mica_test_def *mica_test_find(const char *name, size_t length);
bool mica_filter_apply(mica_run *run, const mica_filter_def *filter, const mica_val *value, const mica_args *args,
                       mica_val *out);
bool mica_test_apply(mica_run *run, const mica_test_def *test, const mica_val *value, const mica_args *args, bool *out);

/* The tables: text, sequences; tmpl_filter.c joins them. Each ends with a NULL name. */
extern const mica_filter_def mica_filters_text[], mica_filters_seq[], mica_filters_value[];

typedef enum mica_function {
    MICA_F_RANGE, MICA_F_DICT, MICA_F_NAMESPACE, MICA_F_CYCLER, MICA_F_JOINER, MICA_F_LIPSUM, MICA_F_RAISE, MICA_F_STRFTIME,
} mica_function;

/** The global of this name, or false. */
bool mica_function_find(const char *name, size_t length, mica_val *out);
bool mica_function_call(mica_run *run, mica_function function, const mica_args *args, mica_val *out);

/** Calls any callable value (tmpl_call.c). */
bool mica_call(mica_run *run, const mica_val *callee, const mica_args *args, mica_val *out);

/* Small conversions of bound arguments; they fail with a message that names the argument. MISSING gives the default. */
bool mica_arg_int(mica_run *run, const mica_val *v, const char *name, int64_t standard, int64_t *out);
bool mica_arg_text(mica_run *run, const mica_val *v, const char *name, mica_val *out);
static inline bool mica_arg_given(const mica_val *v) { return v->type != MICA_V_MISSING; }

#endif
