/* tmpl_attr.h - attributes, elements and slices: what the sandbox lets a template see. */
#ifndef MICA_TEXT_TMPL_ATTR_H
#define MICA_TEXT_TMPL_ATTR_H
#include "text/tmpl_value.h"

struct mica_args;

/** A method of a builtin type. call NULL: Python has it, this interpreter does not: calling it is an error that names it. */
typedef struct mica_method_def {
    const char *name;
    bool (*call)(mica_run *run, const mica_val *self, const struct mica_args *args, const mica_val *bound, mica_val *out);
    const char *params; /* as of a filter, see tmpl_builtin.h; NULL: the method looks at args itself */
    uint8_t required;
    bool mutates; /* refused by the immutable sandbox: the attribute is undefined */
} mica_method_def;

/** object.name: attributes first, then elements. */
bool mica_attr_get(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out);
/** object[key]: elements first, then attributes. */
bool mica_attr_item(mica_run *run, const mica_val *object, const mica_val *key, mica_val *out);
/** The filter attr: attributes, never elements. */
bool mica_attr_only(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out);
/** object[start:stop:step]; NONE where left out. */
bool mica_attr_slice(mica_run *run, const mica_val *object, const mica_val *start, const mica_val *stop, const mica_val *step,
                     mica_val *out);
/** As the filters that take attribute="a.b.0": each part by mica_attr_item; none: the object itself. `fallback` (or NULL)
 * replaces undefined values. */
bool mica_attr_path(mica_run *run, const mica_val *object, const mica_val *path, const mica_val *fallback, mica_val *out);

extern const mica_method_def mica_str_methods[], mica_dict_methods[], mica_list_methods[], mica_tuple_methods[],
    mica_range_methods[], mica_int_methods[], mica_float_methods[], mica_loop_methods[], mica_cycler_methods[];

#endif
