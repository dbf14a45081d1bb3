/* tmpl_strfn.h - the operations on strings that methods and filters share. Markup stays Markup. */
#ifndef MICA_TEXT_TMPL_STRFN_H
#define MICA_TEXT_TMPL_STRFN_H
#include "text/tmpl_value.h"

typedef enum mica_side { MICA_LEFT = 1, MICA_RIGHT = 2, MICA_BOTH = 3 } mica_side;

bool mica_strfn_upper(mica_run *run, const mica_val *s, mica_val *out);
bool mica_strfn_lower(mica_run *run, const mica_val *s, mica_val *out);
bool mica_strfn_capitalize(mica_run *run, const mica_val *s, mica_val *out);
bool mica_strfn_title(mica_run *run, const mica_val *s, mica_val *out); /* str.title() */
bool mica_strfn_swapcase(mica_run *run, const mica_val *s, mica_val *out);
bool mica_strfn_casefold(mica_run *run, const mica_val *s, mica_val *out);
/** islower() or isupper(). */
bool mica_strfn_is_cased(mica_run *run, const mica_val *s, bool upper, mica_val *out);
/** chars NULL: white space. */
bool mica_strfn_strip(mica_run *run, const mica_val *s, const mica_val *chars, mica_side side, mica_val *out);
/** Fills up to `width` code points on the sides given. */
bool mica_strfn_pad(mica_run *run, const mica_val *s, int64_t width, const mica_val *fill, mica_side side, mica_val *out);
/** sep NULL: runs of white space. most < 0: no limit. Gives a list. */
bool mica_strfn_split(mica_run *run, const mica_val *s, const mica_val *sep, int64_t most, bool from_right, mica_val *out);
bool mica_strfn_splitlines(mica_run *run, const mica_val *s, bool keep_ends, mica_val *out);
/** most < 0: all. */
bool mica_strfn_replace(mica_run *run, const mica_val *s, const mica_val *old, const mica_val *new_text, int64_t most,
                        mica_val *out);
/** Byte offset of a match within the bytes [from, to), or -1. */
bool mica_strfn_find(mica_run *run, const mica_val *s, const mica_val *needle, size_t from, size_t to, bool from_right,
                     int64_t *at);
/** sep.join(items); strict: items that are not strings are an error, else str() is taken of them. */
bool mica_strfn_join(mica_run *run, const mica_val *sep, const mica_val *items, bool strict, mica_val *out);

#endif
