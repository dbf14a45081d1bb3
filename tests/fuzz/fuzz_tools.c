/* libFuzzer target: what a model writes where tools may be called, in each format: the events are the same however the text
 * comes in pieces, and the arguments of a whole call are a JSON object. The same bytes as a list of tools. */
#include <jansson.h>

#include "base/buf.h"
#include "fuzz_util.h"
#include "mica/mica_tools.h"

#define TOOLS                                                                                                                  \
    "[{\"type\": \"function\", \"function\": {\"name\": \"add\", \"parameters\": {\"type\": \"object\", \"properties\": "      \
    "{\"a\": {\"type\": \"integer\"}}}}}, {\"type\": \"function\", \"function\": {\"name\": \"get_weather\"}}]"

/* How each format's template writes a call; the last one knows no tools. */
static const char *const templates[] = {
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>"
    "{% endfor %}{% endfor %}",
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{% if 'tool_calls' in m %}{\"name\": "
    "\"{{ m.tool_calls[0].function.name }}\", \"parameters\": {{ m.tool_calls[0].function.arguments | tojson }}}{% else %}"
    "{{ m.content }}{% endif %}{% endfor %}",
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<function={{ c.function.name }}>{{ c.function.arguments | tojson }}"
    "</function>{% endfor %}{% endfor %}",
    "{{ tools | tojson }}{% for m in messages %}{% if m.tool_calls %}[TOOL_CALLS][{% for c in m.tool_calls %}"
    "{{ (c.function | tojson)[:-1] }}, \"id\": \"{{ c.id }}\"}{{ ', ' if not loop.last }}{% endfor %}]{% else %}{{ m.content }}"
    "{% endif %}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% endfor %}",
};
#define N_FORMATS (sizeof templates / sizeof *templates)

/* Made once, for the life of the process. */
static const mica_tools *tools_of(size_t i)
{
    static mica_tools *made[N_FORMATS];
    if (!made[i]) {
        mica_tools_options o = mica_tools_options_default();
        mica_error err = {0};
        o.chat_template = templates[i];
        if (mica_tools_new(NULL, TOOLS, sizeof TOOLS - 1, &o, &made[i], &err)) {
            fprintf(stderr, "%s\n", err.message);
            abort();
        }
    }
    return made[i];
}

static int on_event(void *user, const mica_tool_event *e)
{
    mica_buf *log = user;
    bool piece = e->kind == MICA_TOOL_TEXT || e->kind == MICA_TOOL_ARGUMENTS;
    if (strlen(e->text) != e->length || (piece && e->length == 0))
        abort();
    if (e->kind == MICA_TOOL_CALL_END) {
        json_t *arguments = json_loadb(e->text, e->length, JSON_ALLOW_NUL, NULL);
        if (!json_is_object(arguments))
            abort();
        json_decref(arguments);
    }
    if (e->kind == MICA_TOOL_ARGUMENTS)
        return 0; /* how they are divided may differ, and their end has them whole */
    if (e->kind != MICA_TOOL_TEXT)
        mica_buf_printf(log, "\x01%d,%d,%s,%s:", (int)e->kind, (int)e->index, e->name, e->id);
    mica_buf_append(log, e->text, e->length);
    return 0;
}

static void parse(const mica_tools *tools, const char *text, size_t size, size_t piece, mica_buf *log)
{
    mica_tool_parser *parser;
    mica_error err = {0};
    if (mica_tool_parser_new(tools, 1, on_event, log, &parser, &err))
        abort();
    mica_status status = MICA_OK;
    for (size_t at = 0; at < size && !status; at += piece)
        status = mica_tool_parser_feed(parser, text + at, piece < size - at ? piece : size - at, &err);
    if (!status)
        status = mica_tool_parser_finish(parser, &err);
    fuzz_check(status, &err, !status);
    mica_tool_parser_free(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    mica_tools_options o = mica_tools_options_default();
    mica_tools *list = NULL;
    mica_error err = {0};
    if (size > 20000 || memchr(data, 0, size) || mica_utf8_check(text, size) != size)
        return 0; /* what a model says comes without zeros, and as UTF-8 (detok.c) */
    for (size_t i = 0; i < N_FORMATS; i++) {
        mica_buf one, all;
        mica_buf_init(&one, 1 << 24);
        mica_buf_init(&all, 1 << 24);
        parse(tools_of(i), text, size, 1, &one);
        parse(tools_of(i), text, size, size + 1, &all);
        if (one.length != all.length || (one.length > 0 && memcmp(one.data, all.data, one.length) != 0))
            abort(); /* where the text is cut makes a difference */
        mica_buf_free(&one);
        mica_buf_free(&all);
    }
    o.chat_template = templates[0];
    mica_status status = mica_tools_new(NULL, text, size, &o, &list, &err);
    fuzz_check(status, &err, list != NULL);
    mica_tools_free(list);
    return 0;
}
