/* tool_grammar.c - the texts that a reply may be, as a grammar: each call with the schema of its tool. */
#include <string.h>

#include "base/buf.h"
#include "constraint/regular.h"
#include "constraint/schema.h"
#include "session/constraint.h"
#include "tool/tools.h"

#define BLANKS     "[ \\n\\t\\r]*"
#define MAX_BLANKS 64 /* between two tokens of a call without a marker */

/* ---- Calls ---- */

static mica_gnode literal(mica_grammar *g, const char *text) { return mica_grammar_literal(g, text, strlen(text)); }

static mica_gnode sequence(mica_grammar *g, mica_gnode a, mica_gnode b) { return mica_grammar_seq(g, (mica_gnode[]){a, b}, 2); }

static mica_gnode blanks(mica_grammar *g)
{
    mica_byte_set set = {.bits = {1u << '\t' | 1u << '\n' | 1u << '\r', 1u}}; /* and ' ', bit 0 of the second word */
    return mica_grammar_repeat(g, mica_grammar_bytes(g, &set), 0, MAX_BLANKS);
}

/* A piece of JSON with blanks wherever JSON has them, instead of those that `text` has. */
static mica_gnode loose(mica_grammar *g, const char *text)
{
    mica_gnode node = mica_grammar_empty(g);
    for (; *text; text++) {
        bool closes = *text == '}' || *text == ']', opens = strchr("{[,:", *text) != NULL;
        if (*text == ' ' || *text == '\n')
            continue;
        if (closes)
            node = sequence(g, node, blanks(g));
        node = sequence(g, node, mica_grammar_literal(g, text, 1));
        if (opens)
            node = sequence(g, node, blanks(g));
    }
    return node;
}

/* The arguments of each tool that may be called; calls are made of them in one way or two. */
static mica_status add_arguments(const mica_tools *t, const mica_schema_options *options, mica_grammar *g,
                                 mica_gnode *arguments,
                                 mica_error *err)
{
    for (size_t i = 0; i < t->list.n; i++) {
        mica_error why = {.code = MICA_OK};
        const mica_tool *tool = &t->list.tool[i];
        if (t->named >= 0 && (size_t)t->named != i)
            continue;
        arguments[i] = mica_schema_into_grammar(g, tool->schema, tool->schema_length, options, &why);
        if (arguments[i] == MICA_GNODE_FAILED && why.code)
            return mica_fail(err, why.code, "tools[%zu] (%s): %s", i, tool->name, why.message);
    }
    return MICA_OK;
}

/* before NAME middle ARGUMENTS after; as they are written, or with any blanks. */
static mica_gnode add_call(const mica_tools *t, const mica_tool_format *f, mica_grammar *g, const mica_gnode *arguments,
                           mica_gnode (*text)(mica_grammar *g, const char *text))
{
    mica_gnode tools[MICA_TOOLS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < t->list.n; i++)
        if (t->named < 0 || (size_t)t->named == i)
            tools[n++] = mica_grammar_seq(g, (mica_gnode[]){literal(g, t->list.tool[i].name), text(g, f->middle), arguments[i]},
                                          3);
    int32_t rule = mica_grammar_new_rule(g, "call");
    mica_gnode parts[] = {text(g, f->before), mica_grammar_alt(g, tools, n), text(g, f->after)};
    mica_grammar_define(g, rule, mica_grammar_seq(g, parts, 3));
    return mica_grammar_call(g, rule);
}

/* One call without a marker, as models write it who do not keep to the form, with or without a fence. */
static mica_gnode add_bare_call(const mica_tools *t, mica_grammar *g, const mica_gnode *arguments)
{
    const mica_tool_format *f = t->format->marker_written ? t->format->unmarked : t->format;
    mica_gnode inner[] = {loose(g, f->first), add_call(t, f, g, arguments, loose), loose(g, f->last)};
    mica_gnode call = mica_grammar_seq(g, inner, 3), word = mica_grammar_repeat(g, literal(g, MICA_FENCE_WORD), 0, 1);
    mica_gnode parts[] = {literal(g, MICA_FENCE), word, blanks(g), call, blanks(g), literal(g, MICA_FENCE)};
    mica_gnode fenced = mica_grammar_seq(g, parts, sizeof parts / sizeof *parts);
    return sequence(g, blanks(g), mica_grammar_alt(g, (mica_gnode[]){call, fenced}, 2));
}

static mica_gnode add_calls(const mica_tools *t, mica_grammar *g, const mica_gnode *arguments)
{
    const mica_tool_format *f = t->format;
    mica_gnode call = add_call(t, f, g, arguments, literal);
    int32_t more = t->parallel && t->named < 0 && f->parallel ? MICA_TOOL_CALLS_MAX - 1 : 0;
    mica_gnode next = sequence(g, literal(g, f->between), call);
    mica_gnode parts[] = {literal(g, f->marker_written ? f->marker : ""), literal(g, f->first), call,
                          mica_grammar_repeat(g, next, 0, more), literal(g, f->last)};
    return mica_grammar_seq(g, parts, sizeof parts / sizeof *parts);
}

/* ---- Text beside them ---- */

static void escape_pattern(mica_buf *pattern, const char *text)
{
    for (; *text; text++) {
        if (strchr("^$\\.*+?()[]{}|/", *text))
            mica_buf_putc(pattern, '\\');
        mica_buf_putc(pattern, *text);
    }
}

/* Texts that the parser would take for the opening of a call: they have the marker, or begin with the bare opening. */
static void opening_pattern(const mica_tool_format *f, mica_buf *pattern)
{
    if (*f->marker) {
        mica_buf_puts(pattern, "[\\s\\S]*");
        escape_pattern(pattern, f->marker);
        mica_buf_puts(pattern, "[\\s\\S]*");
    }
    if (*f->marker && f->bare[0])
        mica_buf_puts(pattern, "|");
    if (f->bare[0])
        mica_buf_puts(pattern, BLANKS "(?:" MICA_FENCE "(?:" MICA_FENCE_WORD ")?)?");
    for (int i = 0; i < MICA_BARE_PARTS && f->bare[i]; i++) {
        mica_buf_puts(pattern, BLANKS);
        escape_pattern(pattern, f->bare[i]);
    }
    if (f->bare[0])
        mica_buf_puts(pattern, "[\\s\\S]*");
}

static mica_gnode add_text(const mica_tools *t, mica_grammar *g, mica_error *err)
{
    mica_regular *any = NULL, *opening = NULL, *text = NULL;
    mica_gnode node = MICA_GNODE_FAILED;
    mica_buf pattern;
    mica_buf_init(&pattern, 1024);
    opening_pattern(t->format, &pattern);
    mica_status status = pattern.failed ? mica_fail_nomem(err, 1024, "a pattern") : MICA_OK;
    if (!status)
        status = mica_regular_parse("[\\s\\S]*", 7, MICA_PATTERN_WHOLE, &any, err);
    if (!status)
        status = mica_regular_parse(pattern.data, pattern.length, MICA_PATTERN_WHOLE, &opening, err);
    if (!status)
        status = mica_regular_without(any, opening, &text, err);
    if (!status)
        node = mica_grammar_regular(g, text, MICA_ENCODE_UTF8);
    mica_regular_free(any);
    mica_regular_free(opening);
    mica_regular_free(text);
    mica_buf_free(&pattern);
    return node;
}

/* A marker opens calls behind any text, anything else only at the beginning. */
static mica_gnode add_reply(const mica_tools *t, mica_grammar *g, const mica_gnode *arguments, mica_error *err)
{
    mica_gnode calls = add_calls(t, g, arguments);
    if (t->choice != MICA_TOOL_AUTO)
        return calls;
    mica_gnode text = add_text(t, g, err);
    if (t->format->marker_written)
        calls = sequence(g, text, mica_grammar_repeat(g, calls, 0, 1));
    else
        calls = mica_grammar_alt(g, (mica_gnode[]){text, calls}, 2);
    return t->format->bare[0] ? mica_grammar_alt(g, (mica_gnode[]){calls, add_bare_call(t, g, arguments)}, 2) : calls;
}

static mica_status build(const mica_tools *t, const mica_schema_options *options, mica_grammar *g, mica_error *err)
{
    mica_gnode arguments[MICA_TOOLS_MAX];
    mica_error why = {.code = MICA_OK};
    mica_status status = add_arguments(t, options, g, arguments, err);
    if (status)
        return status;
    int32_t root = mica_grammar_rule(g, "reply");
    mica_gnode reply = add_reply(t, g, arguments, &why);
    if (why.code)
        return mica_fail(err, why.code, "the text beside calls: %s", why.message);
    mica_grammar_define(g, root, reply);
    return mica_grammar_finish(g, root, err);
}

mica_status mica_tools_constrain(mica_tools *t, const mica_tools_options *options, mica_error *err)
{
    const mica_schema_options schema = {.lenient = options->lenient, .whitespace = true, .on_warning = options->on_warning,
                                        .user = options->user};
    mica_grammar *g;
    mica_status status = mica_grammar_new(&g, err);
    if (status)
        return status;
    status = build(t, &schema, g, err);
    if (!status)
        return mica_constraint_from_grammar(t->model, g, &t->constraint, err);
    mica_grammar_free(g);
    return status;
}
