#include "tool/tool_call.h"

#include <string.h>

#include "base/json.h"

enum { OPEN, KEY_OR_CLOSE, KEY, IN_KEY, COLON, VALUE, COMMA_OR_CLOSE, TAG_NAME, TAG_VALUE };
enum { OTHER, NAME, ARGUMENTS };

void mica_call_init(mica_call *c)
{
    memset(c, 0, sizeof *c);
    mica_buf_init(&c->arguments, MICA_TOOLS_MAX_TEXT);
}

void mica_call_free(mica_call *c) { mica_buf_free(&c->arguments); }

void mica_call_start(mica_call *c, const mica_tool_list *tools, mica_call_shape shape)
{
    c->tools = tools;
    c->state = shape == MICA_CALL_TAG ? TAG_NAME : OPEN;
    c->member = OTHER;
    c->n_text = 0;
    c->tool = -1;
    if (c->arguments.failed)
        mica_buf_free(&c->arguments);
    c->arguments.length = 0;
    c->has_arguments = c->begun = false;
    c->why = "";
    mica_json_scan_init(&c->scan);
}

static mica_call_step bad(mica_call *c, const char *why)
{
    c->why = why;
    return MICA_CALL_BAD;
}

static mica_call_step go(mica_call *c, int state)
{
    c->state = state;
    return MICA_CALL_MORE;
}

static void keep(mica_call *c, char byte)
{
    if (c->n_text < sizeof c->text)
        c->text[c->n_text] = byte;
    c->n_text++;
}

static bool is_text(const mica_call *c, const char *text)
{
    return c->n_text == strlen(text) && c->n_text <= sizeof c->text && memcmp(c->text, text, c->n_text) == 0;
}

/* ---- Values ---- */

static mica_call_step name_known(mica_call *c, const char *name, size_t n)
{
    c->tool = c->n_text <= sizeof c->text ? mica_tool_list_find(c->tools, name, n) : -1;
    if (c->tool < 0)
        return bad(c, "the call names no tool of the list");
    c->begun = c->has_arguments && c->arguments.length > 0 && c->arguments.data[0] == '{';
    return MICA_CALL_MORE;
}

static mica_call_step append(mica_call *c, char byte)
{
    if (!mica_buf_putc(&c->arguments, byte))
        return c->arguments.length >= MICA_TOOLS_MAX_TEXT - 1 ? bad(c, "the arguments are too long") : MICA_CALL_NO_MEMORY;
    return MICA_CALL_MORE;
}

/* Blanks in front of the arguments are no part of them. */
static mica_call_step take_argument(mica_call *c, char byte)
{
    if (c->arguments.length == 0 && mica_json_blank(byte))
        return MICA_CALL_MORE;
    if (c->arguments.length == 0 && byte != '{' && byte != '"')
        return bad(c, "the arguments are no JSON object");
    mica_call_step step = append(c, byte);
    c->begun = c->begun || (c->tool >= 0 && c->arguments.data[0] == '{');
    return step;
}

static mica_call_step take(mica_call *c, char byte)
{
    if (c->member == ARGUMENTS)
        return take_argument(c, byte);
    if (c->member == NAME && !(c->n_text == 0 && mica_json_blank(byte)))
        keep(c, byte);
    return MICA_CALL_MORE;
}

/* Some models write the arguments as the API has them: a string that holds JSON. */
static mica_call_step unwrap_arguments(mica_call *c)
{
    json_t *text = mica_json_loadb(c->arguments.data, c->arguments.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    const char *inside = json_string_value(text);
    size_t n = json_string_length(text);
    bool object = inside && n > 0 && inside[0] == '{' && mica_json_value_length(inside, n) == n;
    c->arguments.length = 0;
    bool done = object && mica_buf_append(&c->arguments, inside, n);
    json_decref(text);
    c->begun = done && c->tool >= 0;
    return done ? MICA_CALL_MORE : object ? MICA_CALL_NO_MEMORY : bad(c, "the arguments are no JSON object");
}

static mica_call_step value_done(mica_call *c)
{
    c->state = COMMA_OR_CLOSE;
    if (c->member == ARGUMENTS && c->arguments.data[0] == '"')
        return unwrap_arguments(c);
    if (c->member != NAME)
        return MICA_CALL_MORE;
    if (c->n_text < 2 || c->text[0] != '"')
        return bad(c, "the call's name is no text");
    return name_known(c, c->text + 1, c->n_text - 2);
}

static mica_call_step after_value(mica_call *c, char byte)
{
    if (mica_json_blank(byte))
        return MICA_CALL_MORE;
    if (byte == ',')
        return go(c, KEY);
    if (byte != '}')
        return bad(c, "the call is no JSON object");
    if (c->tool < 0)
        return bad(c, "the call has no name");
    if (!c->has_arguments && !mica_buf_append(&c->arguments, "{}", 2))
        return MICA_CALL_NO_MEMORY;
    c->begun = true;
    return MICA_CALL_END;
}

static mica_call_step in_value(mica_call *c, char byte)
{
    mica_json_step step = mica_json_scan_push(&c->scan, byte);
    if (step == MICA_JSON_BAD)
        return bad(c, "the call is not JSON");
    if (step == MICA_JSON_BEFORE) {
        mica_call_step done = value_done(c);
        return done == MICA_CALL_MORE ? after_value(c, byte) : done;
    }
    mica_call_step taken = take(c, byte);
    return taken == MICA_CALL_MORE && step == MICA_JSON_END ? value_done(c) : taken;
}

/* ---- The object around them ---- */

static mica_call_step key_done(mica_call *c)
{
    bool arguments = is_text(c, "arguments") || is_text(c, "parameters");
    c->member = is_text(c, "name") ? NAME : arguments ? ARGUMENTS : OTHER;
    if ((c->member == NAME && c->tool >= 0) || (arguments && c->has_arguments))
        return bad(c, "the call has a member twice");
    c->has_arguments = c->has_arguments || arguments;
    c->n_text = 0;
    return go(c, COLON);
}

static mica_call_step in_key(mica_call *c, char byte)
{
    if (byte == '"')
        return key_done(c);
    if (byte == '\\' || (unsigned char)byte < 0x20)
        return bad(c, "the call has a member that is not of its form");
    keep(c, byte);
    return MICA_CALL_MORE;
}

static mica_call_step in_object(mica_call *c, char byte)
{
    if (mica_json_blank(byte))
        return MICA_CALL_MORE;
    switch (c->state) {
    case OPEN:
        return byte == '{' ? go(c, KEY_OR_CLOSE) : bad(c, "the call is no JSON object");
    case KEY_OR_CLOSE:
    case KEY:
        c->n_text = 0;
        return byte == '"' ? go(c, IN_KEY) : bad(c, byte == '}' ? "the call has no name" : "the call is no JSON object");
    case COLON:
        mica_json_scan_init(&c->scan);
        return byte == ':' ? go(c, VALUE) : bad(c, "the call is no JSON object");
    }
    return after_value(c, byte);
}

/* ---- NAME>ARGUMENTS ---- */

static mica_call_step in_tag(mica_call *c, char byte)
{
    if (byte != '>') {
        keep(c, byte);
        return c->n_text <= MICA_TOOL_NAME_MAX ? MICA_CALL_MORE : bad(c, "the call names no tool of the list");
    }
    c->member = ARGUMENTS;
    c->state = TAG_VALUE;
    return name_known(c, c->text, c->n_text);
}

static mica_call_step in_tag_value(mica_call *c, char byte)
{
    mica_json_step step = mica_json_scan_push(&c->scan, byte);
    if (step == MICA_JSON_BAD || step == MICA_JSON_BEFORE)
        return bad(c, "the arguments are not JSON");
    mica_call_step taken = take(c, byte);
    if (taken == MICA_CALL_MORE && step == MICA_JSON_END && c->arguments.data[0] == '"')
        taken = unwrap_arguments(c);
    return taken == MICA_CALL_MORE && step == MICA_JSON_END ? MICA_CALL_END : taken;
}

mica_call_step mica_call_push(mica_call *c, char byte)
{
    switch (c->state) {
    case IN_KEY:
        return in_key(c, byte);
    case VALUE:
        return in_value(c, byte);
    case TAG_NAME:
        return in_tag(c, byte);
    case TAG_VALUE:
        return in_tag_value(c, byte);
    }
    return in_object(c, byte);
}
