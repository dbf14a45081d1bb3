/* tools_util.h - small chat templates that write calls in each format, and a log of a parser's events as one line of text. */
#ifndef MICA_TESTS_TOOLS_UTIL_H
#define MICA_TESTS_TOOLS_UTIL_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "mica/mica_tools.h"

#define HERMES_TEMPLATE \
    "{% if tools %}[system]Tools:{% for t in tools %}\n{{ t | tojson }}{% endfor %}\n{% endif %}" \
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}\n<tool_call>\n" \
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}{% " \
    "endfor %}"
#define LLAMA3_TEMPLATE \
    "{% for t in tools or [] %}{{ t | tojson(indent=4) }}\n{% endfor %}{% for m in messages %}[{{ m.role }}]" \
    "{% if 'tool_calls' in m %}{% if m.tool_calls | length != 1 %}{{ raise_exception('one call') }}{% endif %}" \
    "{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"parameters\": {{ m.tool_calls[0].function.arguments | tojson }}}" \
    "{% else %}{{ m.content }}{% endif %}{% endfor %}"
#define FUNCTIONARY_TEMPLATE \
    "{% for t in tools or [] %}{{ 'Use ' + t.function.name + ' to ' + t.function.description }}{% endfor %}" \
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}" \
    "<function={{ c.function.name }}>{{ c.function.arguments | tojson }}</function>{% endfor %}{% endfor %}"
#define MISTRAL_TEMPLATE \
    "{{ tools | tojson }}{% for m in messages %}{% if m.tool_calls %}[TOOL_CALLS][{% for c in m.tool_calls %}" \
    "{% if c.id | length != 9 %}{{ raise_exception('ids have nine letters') }}{% endif %}" \
    "{{ (c.function | tojson)[:-1] }}, \"id\": \"{{ c.id }}\"}{{ ', ' if not loop.last }}{% endfor %}]" \
    "{% else %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}"
/* Arguments as text, as the API has them. */
#define TEXT_TEMPLATE \
    "{{ tools | tojson }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>" \
    "{{ '{\"name\": \"' + c.function.name + '\", \"arguments\": ' + c.function.arguments + '}' }}</tool_call>{% endfor %}{% " \
    "endfor %}"
/* No tools; the second takes no system message and wants roles to alternate. */
#define PLAIN_TEMPLATE "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
#define STRICT_TEMPLATE \
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" \
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}" \
    "[{{ m.role }}]{{ m.content }}{% endfor %}"

#define TWO_TOOLS \
    "[{\"type\": \"function\", \"function\": {\"name\": \"add\", \"description\": \"adds two numbers\", \"parameters\": " \
    "{\"type\": " \
    "\"object\", \"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {\"type\": \"integer\"}}, \"required\": [\"a\", " \
    "\"b\"]}}}, " \
    "{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"parameters\": {\"type\": \"object\", " \
    "\"properties\": {" \
    "\"city\": {\"type\": \"string\"}, \"unit\": {\"enum\": [\"C\", \"F\"]}}, \"required\": [\"city\"]}}}]"

static inline mica_tools *make_tools(const char *template_text, const char *tools_json, mica_tool_choice choice,
                                     const char *name)
{
    mica_tools_options o = mica_tools_options_default();
    mica_tools *tools;
    mica_error err = {.message = ""};
    o.chat_template = template_text;
    o.choice = choice;
    o.name = name;
    if (mica_tools_new(NULL, tools_json, strlen(tools_json), &o, &tools, &err))
        fail_msg("%s", err.message);
    return tools;
}

/* Events as "T(text) B0(name) A(arguments) E0(arguments) X-1(raw)"; pieces that follow each other are one. */
typedef struct event_log {
    mica_buf line;
    mica_buf arguments; /* of the call under way, joined */
    mica_tool_event_kind last;
    bool any;
    int stop_after; /* events; 0: never */
    char id[64];
} event_log;

static inline void log_init(event_log *log)
{
    memset(log, 0, sizeof *log);
    mica_buf_init(&log->line, 1 << 24);
    mica_buf_init(&log->arguments, 1 << 24);
}

static inline void log_free(event_log *log)
{
    mica_buf_free(&log->line);
    mica_buf_free(&log->arguments);
}

static inline void log_piece(event_log *log, const mica_tool_event *e, char letter)
{
    if (log->any && log->last == e->kind)
        log->line.length--; /* the bracket */
    else
        mica_buf_printf(&log->line, "%s%c(", log->any ? " " : "", letter);
    mica_buf_append(&log->line, e->text, e->length);
    mica_buf_putc(&log->line, ')');
}

static inline int log_event(void *user, const mica_tool_event *e)
{
    event_log *log = user;
    assert_int_equal(strlen(e->text), e->length);
    switch (e->kind) {
    case MICA_TOOL_TEXT:
        assert_true(e->length > 0 && e->index == -1);
        log_piece(log, e, 'T');
        break;
    case MICA_TOOL_CALL_BEGIN:
        log->arguments.length = 0;
        snprintf(log->id, sizeof log->id, "%s", e->id);
        mica_buf_printf(&log->line, "%sB%d(%s)", log->any ? " " : "", (int)e->index, e->name);
        break;
    case MICA_TOOL_ARGUMENTS:
        assert_true(e->length > 0);
        assert_string_equal(e->id, log->id);
        mica_buf_append(&log->arguments, e->text, e->length);
        log_piece(log, e, 'A');
        break;
    case MICA_TOOL_CALL_END:
        assert_string_equal(e->id, log->id);
        assert_int_equal(log->arguments.length, e->length);
        assert_memory_equal(log->arguments.data, e->text, e->length);
        mica_buf_printf(&log->line, " E%d", (int)e->index);
        break;
    case MICA_TOOL_ERROR:
        assert_true(*e->message);
        mica_buf_printf(&log->line, "%sX%d(%s)", log->any ? " " : "", (int)e->index, e->text);
        break;
    }
    log->any = true;
    log->last = e->kind;
    return log->stop_after > 0 && --log->stop_after == 0;
}

#endif
