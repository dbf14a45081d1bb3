#include "calls.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CONTENT ((size_t)1 << 30)

int mica_calls_check(const mica_opts *o)
{
    if (o->tool_choice && !o->tools)
        return mica_term_usage("--tool-choice needs --tools");
    if (o->tools && o->no_chat)
        return mica_term_usage("--tools needs the chat template, which --no-chat leaves out");
    if (o->tools && o->token_ids)
        return mica_term_usage("--tools needs the chat template, which --token-ids leaves out");
    if (o->tools && (o->schema || o->any_json || o->grammar || o->regex || o->choice.n > 0))
        return mica_term_usage("--tools says what the reply may be: it goes with no other constraint");
    return CODE_OK;
}

/* ---- Loading ---- */

static mica_tool_choice choice_of(const char *text)
{
    if (!text || strcmp(text, "auto") == 0)
        return MICA_TOOL_AUTO;
    return strcmp(text, "none") == 0 ? MICA_TOOL_NONE : strcmp(text, "required") == 0 ? MICA_TOOL_REQUIRED : MICA_TOOL_NAMED;
}

static int make(const mica_opts *o, mica_model *model, mica_tool_choice choice, const char *text, size_t length,
                mica_tools **out)
{
    mica_tools_options options = mica_tools_options_default();
    mica_error err;
    options.choice = choice;
    options.name = o->tool_choice;
    options.parallel = choice == MICA_TOOL_AUTO; /* a small model that has to call does not stop calling */
    options.lenient = o->schema_lenient;
    options.on_warning = mica_term_warning;
    if (!mica_tools_new(model, text, length, &options, out, &err))
        return CODE_OK;
    return err.code == MICA_OUT_OF_MEMORY ? mica_load_failed(&err) : mica_term_usage("--tools: %s", err.message);
}

int mica_calls_load(mica_calls *c, const mica_opts *o, mica_model *model)
{
    char *text = NULL;
    size_t length = 0;
    if (!o->tools)
        return CODE_OK;
    mica_tool_choice choice = choice_of(o->tool_choice);
    mica_buf_init(&c->content, MAX_CONTENT);
    int code = mica_load_file(o->tools, &text, &length);
    if (code == CODE_OK)
        code = make(o, model, choice, text, length, &c->tools);
    c->tools_after = c->tools;
    if (code == CODE_OK && (choice == MICA_TOOL_REQUIRED || choice == MICA_TOOL_NAMED))
        code = make(o, model, MICA_TOOL_AUTO, text, length, &c->tools_after);
    free(text);
    return code;
}

void mica_calls_free(mica_calls *c)
{
    mica_tool_parser_free(c->parser);
    if (c->tools_after != c->tools)
        mica_tools_free(c->tools_after);
    mica_tools_free(c->tools);
    mica_buf_free(&c->content);
    json_decref(c->made);
    *c = (mica_calls){.tools = NULL};
}

const mica_tools *mica_calls_tools(const mica_calls *c) { return c->after_results ? c->tools_after : c->tools; }

/* ---- A reply ---- */

static bool show(mica_calls *c, const char *text, size_t length)
{
    if (length > 0)
        c->in_line = text[length - 1] != '\n';
    return c->quiet || mica_term_write(text, length);
}

static bool take_text(mica_calls *c, const char *text, size_t length)
{
    return mica_buf_append(&c->content, text, length) && show(c, text, length);
}

/* JSON on one line: line ends, which it has between its elements only, go with the blanks after them. */
static void append_line(mica_buf *line, const char *json, size_t length)
{
    bool skips = false;
    for (size_t i = 0; i < length; i++) {
        bool ends = (unsigned char)json[i] < 0x20;
        skips = ends || (skips && json[i] == ' ');
        if (!skips)
            mica_buf_putc(line, json[i]);
    }
}

static bool show_call(mica_calls *c, const mica_tool_event *e)
{
    mica_buf line;
    mica_buf_init(&line, e->length + 512);
    mica_buf_puts(&line, c->in_line ? "\n" : "");
    mica_buf_printf(&line, c->block ? "[call %s " : "{\"tool_call\": {\"id\": \"%s\", ", c->block ? e->name : e->id);
    if (!c->block)
        mica_buf_printf(&line, "\"name\": \"%s\", \"arguments\": ", e->name);
    append_line(&line, e->text, e->length);
    mica_buf_puts(&line, c->block ? "]\n" : "}}\n");
    bool shown = !line.failed && show(c, line.data, line.length);
    mica_buf_free(&line);
    return shown;
}

static bool take_call(mica_calls *c, const mica_tool_event *e)
{
    json_t *call = json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", e->id, "type", "function", "function", "name", e->name,
                             "arguments",
                             json_stringn(e->text, e->length));
    return json_array_append_new(c->made, call) == 0 && show_call(c, e);
}

static int on_event(void *user, const mica_tool_event *e)
{
    mica_calls *c = user;
    bool done = true;
    if (e->kind == MICA_TOOL_TEXT)
        done = take_text(c, e->text, e->length);
    else if (e->kind == MICA_TOOL_CALL_END)
        done = take_call(c, e);
    else if (e->kind == MICA_TOOL_ERROR) {
        done = take_text(c, e->text, e->length);
        mica_term_note("the reply has a malformed call: %s", e->message);
    }
    c->failed = c->failed || !done;
    return !done;
}

int mica_calls_begin(mica_calls *c, int64_t seed)
{
    mica_error err;
    mica_tool_parser_free(c->parser);
    c->parser = NULL;
    json_decref(c->made);
    c->made = json_array();
    mica_buf_free(&c->content);
    c->failed = c->in_line = false;
    if (!c->made)
        return mica_term_error("not enough memory for the calls");
    return mica_tool_parser_new(mica_calls_tools(c), seed, on_event, c, &c->parser, &err) ? mica_load_failed(&err) : CODE_OK;
}

bool mica_calls_feed(mica_calls *c, const char *text, size_t length)
{
    return !mica_tool_parser_feed(c->parser, text, length, NULL) && !c->failed;
}

bool mica_calls_end(mica_calls *c) { return !mica_tool_parser_finish(c->parser, NULL) && !c->failed; }
