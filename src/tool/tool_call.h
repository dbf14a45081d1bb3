/* tool_call.h - reads one call as a model writes it, byte by byte: {"name": ..., "arguments": ...}, with any blanks, members in
 * any order and further ones; or NAME>ARGUMENTS. Arguments that come after the name can be told while they grow. Called by
 * tool_parser. */
#ifndef MICA_TOOL_TOOL_CALL_H
#define MICA_TOOL_TOOL_CALL_H
#include "base/buf.h"
#include "tool/json_scan.h"
#include "tool/tools.h"

typedef enum mica_call_step {
    MICA_CALL_MORE,
    MICA_CALL_END, /* the call ends with this byte */
    MICA_CALL_BAD, /* `why` says what is wrong */
    MICA_CALL_NO_MEMORY,
} mica_call_step;

typedef struct mica_call {
    const mica_tool_list *tools;
    int state, member;
    mica_json_scan scan;
    char text[MICA_TOOL_NAME_MAX + 16]; /* key or name being read, with its quotes */
    size_t n_text;                      /* may exceed its room: then it is none that matters */
    int32_t tool;                       /* index; -1: no name yet */
    mica_buf arguments;
    bool has_arguments;
    bool begun;      /* name and an opening brace are known: `arguments` may be told as far as it is */
    const char *why; /* static */
} mica_call;

void mica_call_init(mica_call *c);
void mica_call_free(mica_call *c);
/** Ready for a call of this shape. */
void mica_call_start(mica_call *c, const mica_tool_list *tools, mica_call_shape shape);
/** At the end `tool` and `arguments`, a JSON object, are whole. */
mica_call_step mica_call_push(mica_call *c, char byte);

#endif
