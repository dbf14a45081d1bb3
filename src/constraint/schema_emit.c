/* schema_emit.c - from shapes to rules of the grammar: scalars, values, arrays. Objects: schema_emit_object.c. */
#include "constraint/schema_impl.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SPACES 64 /* of the indentation of one line */
#define MAX_TABS   16

#define SEQ(...) mica_grammar_seq(c->g, (mica_gnode[]){__VA_ARGS__}, sizeof((mica_gnode[]){__VA_ARGS__}) / sizeof(mica_gnode))
#define ALT(...) mica_grammar_alt(c->g, (mica_gnode[]){__VA_ARGS__}, sizeof((mica_gnode[]){__VA_ARGS__}) / sizeof(mica_gnode))

static mica_gnode literal(mica_schema_compiler *c, const char *text)
{
    return mica_grammar_literal(c->g, text, strlen(text));
}

/* ---- Marks between values ---- */

/* A new line and its indentation. */
static mica_gnode new_line(mica_schema_compiler *c)
{
    return SEQ(literal(c, "\n"), ALT(mica_grammar_repeat(c->g, literal(c, " "), 0, MAX_SPACES),
                                     mica_grammar_repeat(c->g, literal(c, "\t"), 1, MAX_TABS)));
}

static void make_marks(mica_schema_compiler *c)
{
    mica_gnode none = mica_grammar_empty(c->g);
    c->quote = literal(c, "\"");
    c->colon = literal(c, ":");
    c->comma = literal(c, ",");
    c->open = c->close = none;
    if (!c->options.whitespace)
        return;
    mica_gnode space = literal(c, " "), line = new_line(c);
    c->colon = SEQ(c->colon, ALT(none, space));
    c->comma = SEQ(c->comma, ALT(none, space, line));
    c->open = c->close = ALT(none, line);
}

/* ---- Strings ---- */

/* One character of a string. */
static mica_gnode character(mica_schema_compiler *c)
{
    mica_regular *r = NULL;
    mica_error err = {0};
    if (c->character < 0) {
        mica_status status = mica_regular_lengths(1, 1, &r, &err);
        const mica_regular *any = mica_schema_own(c, status, r, &err, c->values[0], NULL);
        c->character = any ? mica_grammar_regular(c->g, any, MICA_ENCODE_JSON_STRING) : MICA_GNODE_FAILED;
    }
    return c->character;
}

mica_gnode mica_schema_emit_language(mica_schema_compiler *c, const mica_regular *language)
{
    if (language)
        return SEQ(c->quote, mica_grammar_regular(c->g, language, MICA_ENCODE_JSON_STRING), c->quote);
    if (c->string_rule < 0) {
        c->string_rule = mica_grammar_new_rule(c->g, "string");
        mica_grammar_define(c->g, c->string_rule,
                            SEQ(c->quote, mica_grammar_repeat(c->g, character(c), 0, MICA_G_NO_LIMIT), c->quote));
    }
    return mica_grammar_call(c->g, c->string_rule);
}

static mica_gnode emit_string(mica_schema_compiler *c, const mica_sshape *shape)
{
    const mica_regular *language = mica_schema_language(c, shape);
    if (language)
        language = mica_schema_bounded(c, shape, language);
    if (c->status || language || (shape->min_length == 0 && shape->max_length == INT64_MAX))
        return c->status ? MICA_GNODE_FAILED : mica_schema_emit_language(c, language);
    if (shape->min_length > shape->max_length)
        return mica_grammar_never(c->g);
    int32_t max = shape->max_length == INT64_MAX ? MICA_G_NO_LIMIT : (int32_t)shape->max_length;
    return SEQ(c->quote, mica_grammar_repeat(c->g, character(c), (int32_t)shape->min_length, max), c->quote);
}

/* ---- Numbers ---- */

static mica_gnode emit_range(mica_schema_compiler *c, const mica_number_spec *spec, const mica_jvalue *at)
{
    mica_fsm fsm;
    mica_error err = {0};
    mica_status status = mica_number_fsm(spec, &fsm, &err);
    if (status) {
        mica_schema_fail(c, status, at, NULL, "%s", err.message);
        return MICA_GNODE_FAILED;
    }
    mica_gnode node = fsm.n_edges ? mica_grammar_fsm(c->g, &fsm) : mica_grammar_never(c->g);
    mica_fsm_clear(&fsm);
    return node;
}

static mica_gnode emit_number(mica_schema_compiler *c, const mica_sshape *shape)
{
    const mica_number_spec *spec = &shape->number;
    const mica_jvalue *at = shape->term->n ? shape->term->atoms[0] : c->values[0];
    if (spec->low || spec->high || spec->step)
        return emit_range(c, spec, at);
    int32_t *rule = spec->integer ? &c->integer_rule : &c->number_rule;
    if (*rule < 0) {
        *rule = mica_grammar_new_rule(c->g, spec->integer ? "integer" : "number");
        mica_grammar_define(c->g, *rule, emit_range(c, spec, at));
    }
    return mica_grammar_call(c->g, *rule);
}

/* ---- Values of enum and const ---- */

/* Where blanks are allowed the canonical text is cut at its marks. */
static mica_gnode with_blanks(mica_schema_compiler *c, const char *text, size_t length)
{
    mica_gnode node = mica_grammar_empty(c->g), mark;
    size_t start = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (quoted && text[i] == '\\')
            i++;
        if (quoted || !strchr(",:[{]}", text[i]))
            continue;
        bool opens = text[i] == '[' || text[i] == '{', closes = text[i] == ']' || text[i] == '}';
        if ((opens && strchr("]}", text[i + 1])) || (closes && strchr("[{", text[i - 1])))
            continue;
        mica_gnode before = mica_grammar_literal(c->g, text + start, i - start), byte = mica_grammar_literal(c->g, text + i, 1);
        mark = opens ? SEQ(byte, c->open) : closes ? SEQ(c->close, byte) : text[i] == ':' ? c->colon : c->comma;
        node = SEQ(node, before, mark);
        start = i + 1;
    }
    return SEQ(node, mica_grammar_literal(c->g, text + start, length - start));
}

static mica_gnode emit_value(mica_schema_compiler *c, const mica_jvalue *value)
{
    mica_buf text;
    mica_gnode node = MICA_GNODE_FAILED;
    mica_buf_init(&text, 64u << 20);
    mica_json_print(&text, value);
    if (text.failed)
        mica_schema_fail(c, MICA_OUT_OF_MEMORY, value, NULL, "out of memory for the text of this value");
    else if (c->options.whitespace && value->kind >= MICA_J_ARRAY)
        node = with_blanks(c, text.data, text.length);
    else
        node = mica_grammar_literal(c->g, text.data, text.length);
    mica_buf_free(&text);
    return node;
}

/* ---- Arrays ---- */

/* Items behind the fixed places, each with its comma, if n are there already. */
static mica_gnode more_items(mica_schema_compiler *c, const mica_sshape *shape, int64_t n)
{
    int64_t min = shape->min_items > n ? shape->min_items - n : 0, max = shape->max_items - n;
    if (max <= 0 || mica_schema_goal_empty(c, shape->rest))
        return min ? mica_grammar_never(c->g) : mica_grammar_empty(c->g);
    mica_gnode item = SEQ(c->comma, mica_schema_call(c, shape->rest));
    return mica_grammar_repeat(c->g, item, (int32_t)min, shape->max_items == INT64_MAX ? MICA_G_NO_LIMIT : (int32_t)max);
}

static mica_gnode emit_array(mica_schema_compiler *c, const mica_sshape *shape)
{
    mica_gnode none = mica_grammar_empty(c->g), never = mica_grammar_never(c->g), items = never;
    int64_t n = shape->n_prefix < shape->max_items ? shape->n_prefix : shape->max_items;
    if (shape->min_items > shape->max_items)
        return never;
    if (shape->n_prefix == 0 && shape->max_items > 0 && !mica_schema_goal_empty(c, shape->rest))
        items = SEQ(mica_schema_call(c, shape->rest), more_items(c, shape, 1));
    mica_gnode tail = n == shape->n_prefix ? more_items(c, shape, n) : none;
    for (int64_t i = n - 1; i >= 0 && !c->status; i--) {
        mica_gnode one = mica_schema_goal_empty(c, shape->prefix[i]) ? never : mica_schema_call(c, shape->prefix[i]);
        if (i == 0)
            items = SEQ(one, tail);
        else
            tail = ALT(shape->min_items <= i ? none : never, SEQ(c->comma, one, tail));
    }
    mica_gnode full = SEQ(literal(c, "["), c->open, items, c->close, literal(c, "]"));
    return shape->min_items == 0 ? ALT(literal(c, "[]"), full) : full;
}

/* ---- Goals ---- */

mica_gnode mica_schema_call(mica_schema_compiler *c, mica_sgoal *goal)
{
    char name[100];
    if (goal->rule < 0) {
        mica_json_pointer(goal->n ? goal->schemas[0] : NULL, NULL, name, sizeof name);
        goal->rule = mica_grammar_new_rule(c->g, goal->n ? name : "any");
        goal->next = NULL;
        *(c->queue_end ? &c->queue_end->next : &c->queue) = goal;
        c->queue_end = goal;
    }
    return mica_grammar_call(c->g, goal->rule);
}

static mica_gnode emit_shape(mica_schema_compiler *c, mica_sshape *shape)
{
    mica_gnode parts[7];
    size_t n = 0;
    if (shape->has_values) {
        mica_gnode *values = mica_schema_values(c, shape) ? calloc((size_t)shape->n_values + 1, sizeof *values) : NULL;
        for (int32_t i = 0; values && i < shape->n_values; i++)
            values[i] = emit_value(c, shape->values[i]);
        mica_gnode node = values ? mica_grammar_alt(c->g, values, (size_t)shape->n_values) : MICA_GNODE_FAILED;
        if (!values && !c->status)
            c->status = mica_fail_nomem(c->err, (size_t)shape->n_values * sizeof *values, "the values of an enum");
        free(values);
        return node;
    }
    if (shape->types & MICA_T_NULL)
        parts[n++] = literal(c, "null");
    if (shape->types & MICA_T_BOOLEAN)
        parts[n++] = ALT(literal(c, "true"), literal(c, "false"));
    if (shape->types & MICA_T_NUMBER)
        parts[n++] = emit_number(c, shape);
    if (shape->types & MICA_T_STRING)
        parts[n++] = emit_string(c, shape);
    if (shape->types & MICA_T_ARRAY)
        parts[n++] = emit_array(c, shape);
    if (shape->types & MICA_T_OBJECT)
        parts[n++] = mica_schema_emit_object(c, shape);
    return c->status ? MICA_GNODE_FAILED : mica_grammar_alt(c->g, parts, n);
}

static mica_gnode emit_goal(mica_schema_compiler *c, mica_sgoal *goal)
{
    if (!mica_schema_shapes(c, goal))
        return MICA_GNODE_FAILED;
    mica_gnode *nodes = mica_schema_alloc(c, (size_t)goal->n_shapes, sizeof *nodes);
    for (int32_t i = 0; nodes && i < goal->n_shapes && !c->status; i++)
        nodes[i] = emit_shape(c, &goal->shapes[i]);
    return c->status ? MICA_GNODE_FAILED : mica_grammar_alt(c->g, nodes, (size_t)goal->n_shapes);
}

bool mica_schema_emit(mica_schema_compiler *c)
{
    if (c->quote < 0)
        make_marks(c);
    while (c->queue && !c->status && !c->g->failure) {
        mica_sgoal *goal = c->queue;
        c->queue = goal->next;
        if (!c->queue)
            c->queue_end = NULL;
        mica_gnode body = emit_goal(c, goal);
        if (!c->status)
            mica_grammar_define(c->g, goal->rule, body);
    }
    if (c->g->failure && !c->status)
        c->status = mica_fail(c->err, c->g->failure, "the schema: %s", c->g->error.message);
    return !c->status;
}
