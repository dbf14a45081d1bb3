/* tools.h - the inside of mica_tools: a list of tools in the form of one model's chat template. Immutable once made. */
#ifndef MICA_TOOL_TOOLS_H
#define MICA_TOOL_TOOLS_H
#include <jansson.h>

#include "base/error.h"
#include "mica/mica_tools.h"
#include "tool/tool_format.h"

#define MICA_TOOLS_MAX_TEXT ((size_t)16 << 20) /* of a list, a request, a call */

typedef struct mica_tool {
    char name[MICA_TOOL_NAME_MAX + 1];
    char *schema; /* of its arguments: "parameters" as given, with what a call needs stated */
    size_t schema_length;
} mica_tool;

typedef struct mica_tool_list {
    mica_tool *tool;
    size_t n;
    json_t *json; /* [{"type": "function", "function": {...}}, ...] */
} mica_tool_list;

struct mica_tools {
    mica_model *model;   /* a reference; NULL: none */
    char *chat_template; /* the caller's; NULL: the model's */
    mica_tool_list list;
    const mica_tool_format *format;
    bool arguments_text; /* the template wants the arguments of earlier calls as text */
    bool descriptions;   /* the template fails on tools without a description */
    bool system_role;    /* the template takes a system message */
    mica_tool_choice choice;
    int32_t named;       /* index of the one tool that may be called; -1: any */
    bool parallel;
    mica_constraint *constraint; /* NULL: MICA_TOOL_NONE */
};

/** tool_list.c. Fills *list, which is freed by the second also after a failure. */
mica_status mica_tool_list_read(const char *text, size_t length, mica_tool_list *list, mica_error *err);
void mica_tool_list_free(mica_tool_list *list);
/** Index of a tool, or -1. */
int32_t mica_tool_list_find(const mica_tool_list *list, const char *name, size_t length);

/** tool_probe.c. Finds out by rendering how the template writes calls: sets format and what follows it. A template that
 * fails on tools is one without them. */
mica_status mica_tools_probe(mica_tools *tools, mica_error *err);

/** tool_grammar.c. Makes tools->constraint. */
mica_status mica_tools_constrain(mica_tools *tools, const mica_tools_options *options, mica_error *err);

/** JSON text of a value, *text from malloc and terminated. */
mica_status mica_tool_dump(const json_t *value, char **text, size_t *length, mica_error *err);

#endif
