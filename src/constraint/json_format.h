/* json_format.h - the values of "format" that are enforced, as patterns.
 *
 * Where the rule of the standard is a regular language the pattern is exact; where it is not, or would need an automaton of
 * tens of thousands of states, the pattern is a part of it: what it matches is always valid. docs/structured.md lists these
 * places. */
#ifndef MICA_CONSTRAINT_JSON_FORMAT_H
#define MICA_CONSTRAINT_JSON_FORMAT_H
#include "constraint/regular.h"

/** The index of a format, or -1 if this name is not known. */
int mica_json_format_find(const char *name, size_t length);
int mica_json_format_count(void);
/** The language of a format by its index. */
mica_status mica_json_format_language(int index, mica_regular **out, mica_error *err);

#endif
