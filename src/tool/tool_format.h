/* tool_format.h - how models write calls of tools: one row a format, data only.
 *
 * A reply's calls are: marker first CALL (between CALL)* last, and a CALL is: before NAME middle ARGUMENTS after.
 */
#ifndef MICA_TOOL_TOOL_FORMAT_H
#define MICA_TOOL_TOOL_FORMAT_H
#include <stdbool.h>
#include <stddef.h>

#define MICA_BARE_PARTS 4
#define MICA_FENCE      "```"
#define MICA_FENCE_WORD "json"

typedef enum mica_call_shape {
    MICA_CALL_OBJECT, /* a JSON object with "name" and "arguments" or "parameters" */
    MICA_CALL_TAG,    /* the name, '>', the arguments */
} mica_call_shape;

typedef struct mica_tool_format {
    const char *name;
    /* As they are written: by the constraint, and by a template that renders earlier calls. */
    const char *marker, *first, *before, *middle, *after, *between, *last;
    /* As they are read, with any blanks around them. */
    mica_call_shape shape;
    bool marker_written;               /* false: the marker is understood, but not needed */
    const char *bare[MICA_BARE_PARTS]; /* what opens a call without a marker, if only calls came before it; NULL: nothing does.
                                          May stand in a fence: models do not keep to JSON without one */
    int object_part;                   /* the call's object begins with this part of bare; -1: after all of them */
    bool list;                         /* calls stand in [ ], with commas */
    const char *close;                 /* what follows the call, "" if nothing; after a bare one only if no marker is written */
    bool parallel;
    int id_digits;     /* of ids, which are then nothing but that; 0: "call_" and 24 */
    const struct mica_tool_format *unmarked; /* the row for vocabularies where the marker is a control token, which has no bytes
                                                */
} mica_tool_format;

/** Rows that a template may have, most specific first; NULL after the last. */
const mica_tool_format *mica_tool_format_at(size_t i);
/** For templates without. */
const mica_tool_format *mica_tool_format_generic(void);

#endif
