/* calls.h - tools on the command line: --tools and --tool-choice, the calls of a reply, and how they are shown. Each function
 * that returns an exit code has printed one line when that is not CODE_OK. Called by reply.c, prompt.c and cmd_chat.c. */
#ifndef MICA_PROGRAMS_CALLS_H
#define MICA_PROGRAMS_CALLS_H
#include "base/buf.h"
#include "load.h"
#include "mica/mica_tools.h"

typedef struct mica_calls {
    mica_tools *tools;        /* NULL: --tools was not given */
    mica_tools *tools_after;  /* for replies to results, where the model need not call again; may be `tools` */
    bool after_results;       /* the next reply is such a one */
    bool block;               /* calls are shown for people, else as JSON lines */
    bool quiet;               /* nothing is shown */
    mica_tool_parser *parser; /* of the reply under way */
    mica_buf content;         /* what the reply says beside calls */
    json_t *made;             /* its calls, as a message has them in "tool_calls" */
    bool failed;              /* output or memory */
    bool in_line;             /* the last thing written was no line end */
} mica_calls;

/** Refuses options that do not go together. */
int mica_calls_check(const mica_opts *o);
/** Reads the tools, once the model is there. */
int mica_calls_load(mica_calls *c, const mica_opts *o, mica_model *model);
void mica_calls_free(mica_calls *c);

/** The tools that count for the next reply, or NULL. */
const mica_tools *mica_calls_tools(const mica_calls *c);

/** A reply: begin, its text as it comes, its end. The two last are false when output or memory failed. */
int mica_calls_begin(mica_calls *c, int64_t seed);
bool mica_calls_feed(mica_calls *c, const char *text, size_t length);
bool mica_calls_end(mica_calls *c);

#endif
