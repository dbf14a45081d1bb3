#include "text/tmpl_ast.h"
#include "text/tmpl_builtin.h"

#include <string.h>

/* Statements. Every function returns NULL after a failure was reported. */

#define MAX_PARAMETERS 255

/* Names of tags that end the body being parsed. */
typedef struct ends {
    const char *names[3];
} ends;

static mica_node *parse_body(mica_compiler *c, const ends *until);

static bool at_end_tag(const mica_compiler *c, const ends *until)
{
    for (size_t i = 0; i < 3 && until->names[i]; i++) {
        if (mica_parse_is_name(c, 0, until->names[i]))
            return true;
    }
    return false;
}

static bool expect_block_end(mica_compiler *c) { return mica_parse_expect(c, MICA_T_BLOCK_END, "'%}'"); }

/* `%}` body `{% end`: stops at the name of the end tag. `:` before %} is allowed, as in Python. */
static mica_node *parse_statements(mica_compiler *c, ends until)
{
    mica_parse_skip(c, MICA_T_COLON);
    return expect_block_end(c) ? parse_body(c, &until) : NULL;
}

/* The same, and takes the (only possible) name of the end tag. */
static mica_node *parse_whole(mica_compiler *c, const char *end)
{
    mica_node *body = parse_statements(c, (ends){{end}});
    if (body)
        mica_parse_next(c);
    return body;
}

/* ---- set, with, filter, print ---- */

static mica_node *parse_set(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_node *target = mica_parse_target(c, NULL, true);
    if (!target)
        return NULL;
    if (mica_parse_skip(c, MICA_T_ASSIGN)) {
        mica_node *value = mica_parse_tuple(c, true, NULL, false);
        return value ? mica_node_new(c, MICA_N_SET, t, (mica_node *[]){target, value}, 2) : NULL;
    }
    mica_node *filter = NULL;
    if (mica_parse_peek(c, 0)->kind == MICA_T_PIPE) {
        filter = mica_parse_filters(c, NULL, false);
        if (!filter)
            return NULL;
    }
    mica_node *body = parse_whole(c, "endset");
    return body ? mica_node_new(c, MICA_N_SETBLOCK, t, (mica_node *[]){target, body, filter}, 3) : NULL;
}

static mica_node *parse_with(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_node_list kids = {0};
    if (!mica_node_push(c, &kids, NULL)) /* place of the body */
        return NULL;
    while (mica_parse_peek(c, 0)->kind != MICA_T_BLOCK_END) {
        if (kids.n > 1 && !mica_parse_expect(c, MICA_T_COMMA, "','"))
            return NULL;
        mica_node *target = mica_parse_target(c, NULL, false);
        if (!target || !mica_parse_expect(c, MICA_T_ASSIGN, "'='"))
            return NULL;
        mica_node *value = mica_parse_expression(c, true);
        if (!value || !mica_node_push(c, &kids, target) || !mica_node_push(c, &kids, value))
            return NULL;
    }
    kids.items[0] = parse_whole(c, "endwith");
    return kids.items[0] ? mica_node_new(c, MICA_N_WITH, t, kids.items, kids.n) : NULL;
}

static mica_node *parse_filter_block(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_node *filter = mica_parse_filters(c, NULL, true);
    mica_node *body = filter ? parse_whole(c, "endfilter") : NULL;
    return body ? mica_node_new(c, MICA_N_FILTERBLOCK, t, (mica_node *[]){body, filter}, 2) : NULL;
}

static mica_node *parse_print(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_node_list items = {0};
    while (mica_parse_peek(c, 0)->kind != MICA_T_BLOCK_END) {
        if (items.n && !mica_parse_expect(c, MICA_T_COMMA, "','"))
            return NULL;
        mica_node *value = mica_parse_expression(c, true);
        mica_node *item = value ? mica_node_new(c, MICA_N_OUTPUT, t, &value, 1) : NULL;
        if (!item || !mica_node_push(c, &items, item))
            return NULL;
    }
    return mica_node_new(c, MICA_N_BODY, t, items.items, items.n);
}

/* ---- if, for ---- */

static mica_node *parse_if_parts(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_node_list kids = {0};
    for (;;) {
        mica_node *test = mica_parse_tuple(c, false, NULL, false);
        mica_node *body = test ? parse_statements(c, (ends){{"elif", "else", "endif"}}) : NULL;
        if (!body || !mica_node_push(c, &kids, test) || !mica_node_push(c, &kids, body))
            return NULL;
        if (mica_parse_skip_name(c, "elif"))
            continue;
        if (mica_parse_skip_name(c, "else")) {
            body = parse_whole(c, "endif");
            if (!body || !mica_node_push(c, &kids, body))
                return NULL;
        } else {
            mica_parse_next(c);
        }
        return mica_node_new(c, MICA_N_IF, t, kids.items, kids.n);
    }
}

static mica_node *parse_if(mica_compiler *c, const mica_tmpl_token *t)
{
    c->n_soft++;
    mica_node *node = parse_if_parts(c, t);
    c->n_soft--;
    return node;
}

/* jinja2 refuses to assign to `loop` anywhere inside of a loop. */
static bool assigns_loop(const mica_node *node, const mica_node **where)
{
    if (!node)
        return false;
    if (node->type == MICA_N_NAME && node->store && mica_val_is(&node->text, "loop", 4)) {
        *where = node;
        return true;
    }
    for (uint32_t i = 0; i < node->n_kids; i++) {
        if (assigns_loop(node->kids[i], where))
            return true;
    }
    return false;
}

static mica_node *parse_for(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_node *kids[5] = {NULL, NULL, NULL, NULL, NULL};
    mica_for *loop = mica_compile_alloc(c, sizeof *loop);
    kids[0] = loop ? mica_parse_target(c, "in", false) : NULL;
    if (!kids[0])
        return NULL;
    if (!mica_parse_skip_name(c, "in")) {
        mica_parse_unexpected(c, "'in'");
        return NULL;
    }
    kids[1] = mica_parse_tuple(c, false, "recursive", false);
    if (!kids[1])
        return NULL;
    if (mica_parse_skip_name(c, "if")) {
        kids[2] = mica_parse_expression(c, true);
        if (!kids[2])
            return NULL;
    }
    loop->recursive = mica_parse_skip_name(c, "recursive");
    c->n_loops++;
    kids[3] = parse_statements(c, (ends){{"endfor", "else"}});
    c->n_loops--;
    if (!kids[3])
        return NULL;
    if (mica_parse_is_name(c, 0, "else")) {
        mica_parse_next(c);
        kids[4] = parse_whole(c, "endfor");
        if (!kids[4])
            return NULL;
    } else {
        mica_parse_next(c);
    }
    const mica_node *where;
    mica_node *node = mica_node_new(c, MICA_N_FOR, t, kids, 5);
    if (!node)
        return NULL;
    node->loop = loop;
    if (c->n_loops == 0 && assigns_loop(node, &where)) { /* the outermost loop looks through all */
        mica_compile_fail(c, where->offset, "'loop' cannot be assigned to inside of a loop");
        return NULL;
    }
    return node;
}

static mica_node *parse_loop_control(mica_compiler *c, const mica_tmpl_token *t, mica_ntype type)
{
    if (c->n_loops == 0) {
        mica_compile_fail(c, t->offset, "'%.*s' outside of a loop", MICA_SHOW(&t->value));
        return NULL;
    }
    return mica_node_new(c, type, t, NULL, 0);
}

/* ---- macro, call, generation ---- */

static mica_node *parse_name(mica_compiler *c, const char *wanted)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    if (t->kind != MICA_T_NAME) {
        mica_parse_unexpected(c, wanted);
        return NULL;
    }
    mica_parse_next(c);
    mica_node *node = mica_node_new(c, MICA_N_NAME, t, NULL, 0);
    if (!node || !mica_compile_symbol(c, &t->value, &node->symbol))
        return NULL;
    node->text = t->value;
    node->store = true;
    return node;
}

/* Takes the parameters into the definition and the defaults into `kids`. */
static bool parse_signature(mica_compiler *c, mica_macro_def *m, mica_node_list *kids)
{
    mica_node_list params = {0};
    bool defaults = false;
    mica_parse_next(c);
    while (mica_parse_peek(c, 0)->kind != MICA_T_RPAREN) {
        if (params.n && !mica_parse_expect(c, MICA_T_COMMA, "',' or ')'"))
            return false;
        const mica_tmpl_token *t = mica_parse_peek(c, 0);
        mica_node *name = parse_name(c, "the name of a parameter");
        if (!name)
            return false;
        if (params.n >= MAX_PARAMETERS)
            return mica_compile_fail(c, t->offset, "a macro has more than %d parameters", MAX_PARAMETERS);
        if (mica_parse_skip(c, MICA_T_ASSIGN)) {
            mica_node *value = mica_parse_expression(c, true);
            if (!value || !mica_node_push(c, kids, value))
                return false;
            defaults = true;
        } else if (defaults) {
            return mica_compile_fail(c, t->offset, "a parameter without default follows one with a default");
        }
        for (size_t i = 0; i < params.n; i++) {
            if (mica_val_same_text(&params.items[i]->text, &name->text))
                return mica_compile_fail(c, t->offset, "the parameter '%.*s' appears twice", MICA_SHOW(&name->text));
        }
        if (!mica_node_push(c, &params, name))
            return false;
    }
    mica_parse_next(c);
    m->n_params = params.n;
    m->param_names = mica_compile_alloc(c, params.n * sizeof *m->param_names);
    m->param_symbols = mica_compile_alloc(c, params.n * sizeof *m->param_symbols);
    m->param_slots = mica_compile_alloc(c, params.n * sizeof *m->param_slots);
    if (!m->param_names || !m->param_symbols || !m->param_slots)
        return false;
    for (size_t i = 0; i < params.n; i++) {
        m->param_names[i] = params.items[i]->text;
        m->param_symbols[i] = params.items[i]->symbol;
    }
    return true;
}

/* The body of a macro is a function of its own: loops outside of it do not count for break. */
static mica_node *parse_macro_body(mica_compiler *c, const char *end)
{
    int loops = c->n_loops;
    c->n_loops = 0;
    mica_node *body = parse_whole(c, end);
    c->n_loops = loops;
    return body;
}

static mica_node *parse_macro(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_macro_def *m = mica_compile_alloc(c, sizeof *m);
    mica_node_list kids = {0};
    if (!m || !mica_node_push(c, &kids, NULL))
        return NULL;
    mica_node *name = parse_name(c, "the name of the macro");
    if (!name)
        return NULL;
    if (mica_parse_peek(c, 0)->kind != MICA_T_LPAREN) {
        mica_parse_unexpected(c, "'('");
        return NULL;
    }
    m->name = name->text;
    if (!parse_signature(c, m, &kids))
        return NULL;
    kids.items[0] = parse_macro_body(c, "endmacro");
    mica_node *node = kids.items[0] ? mica_node_new(c, MICA_N_MACRO, t, kids.items, kids.n) : NULL;
    if (!node)
        return NULL;
    node->symbol = name->symbol;
    node->text = name->text;
    node->macro = m;
    return node;
}

static mica_node *parse_call_block(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_macro_def *m = mica_compile_alloc(c, sizeof *m);
    mica_node_list kids = {0};
    if (!m || !mica_node_push(c, &kids, NULL) || !mica_node_push(c, &kids, NULL))
        return NULL;
    m->name = MICA_NONE;
    if (mica_parse_peek(c, 0)->kind == MICA_T_LPAREN && !parse_signature(c, m, &kids))
        return NULL;
    kids.items[1] = mica_parse_expression(c, true);
    if (!kids.items[1])
        return NULL;
    if (kids.items[1]->type != MICA_N_CALL) {
        mica_compile_fail(c, t->offset, "a call is expected behind 'call'");
        return NULL;
    }
    kids.items[0] = parse_macro_body(c, "endcall");
    mica_node *node = kids.items[0] ? mica_node_new(c, MICA_N_CALLBLOCK, t, kids.items, kids.n) : NULL;
    if (node)
        node->macro = m;
    return node;
}

/* {% generation %} marks what a model wrote, for training. transformers makes it a call block whose call returns the body, so
 * it has a scope of its own; here that is a call block without a call. */
static mica_node *parse_generation(mica_compiler *c, const mica_tmpl_token *t)
{
    mica_macro_def *m = mica_compile_alloc(c, sizeof *m);
    if (!m)
        return NULL;
    m->name = MICA_NONE;
    mica_node *body = parse_macro_body(c, "endgeneration");
    mica_node *node = body ? mica_node_new(c, MICA_N_CALLBLOCK, t, (mica_node *[]){body, NULL}, 2) : NULL;
    if (node)
        node->macro = m;
    return node;
}

/* ---- Dispatch ---- */

static mica_node *unknown_tag(mica_compiler *c, const mica_tmpl_token *t)
{
    static const char *const refused[] = {"include", "import", "from", "extends", "block", "autoescape"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (mica_val_is(&t->value, refused[i], strlen(refused[i]))) {
            mica_compile_fail(c, t->offset, "the tag '%s' is not supported in a chat template", refused[i]);
            return NULL;
        }
    }
    mica_compile_fail(c, t->offset, "unknown or misplaced tag '%.*s'", MICA_SHOW(&t->value));
    return NULL;
}

static mica_node *parse_statement(mica_compiler *c)
{
    static const struct {
        const char *name;
        mica_node *(*parse)(mica_compiler *c, const mica_tmpl_token *t);
    } table[] = {{"if", parse_if}, {"for", parse_for}, {"set", parse_set}, {"macro", parse_macro}, {"call", parse_call_block},
                 {"generation", parse_generation}, {"with", parse_with}, {"filter", parse_filter_block},
                     {"print", parse_print}};
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    if (t->kind != MICA_T_NAME) {
        mica_parse_unexpected(c, "the name of a tag");
        return NULL;
    }
    mica_parse_next(c);
    if (mica_val_is(&t->value, "break", 5))
        return parse_loop_control(c, t, MICA_N_BREAK);
    if (mica_val_is(&t->value, "continue", 8))
        return parse_loop_control(c, t, MICA_N_CONTINUE);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (mica_val_is(&t->value, table[i].name, strlen(table[i].name)))
            return table[i].parse(c, t);
    }
    return unknown_tag(c, t);
}

static mica_node *parse_output(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_next(c);
    mica_node *value = mica_parse_tuple(c, true, NULL, false);
    if (!value || !mica_parse_expect(c, MICA_T_OUTPUT_END, "'}}'"))
        return NULL;
    return mica_node_new(c, MICA_N_OUTPUT, t, &value, 1);
}

static mica_node *parse_data(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_next(c);
    mica_node *node = mica_node_new(c, MICA_N_DATA, t, NULL, 0);
    if (node)
        node->text = t->value;
    return node;
}

/* One piece of a body. *ended: the end tag was reached, its name is the current token. */
static mica_node *parse_piece(mica_compiler *c, const ends *until, bool *ended)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    if (t->kind == MICA_T_DATA)
        return parse_data(c);
    if (t->kind == MICA_T_OUTPUT_BEGIN)
        return parse_output(c);
    if (t->kind != MICA_T_BLOCK_BEGIN) {
        const char *wanted = until && until->names[0] ? until->names[0] : "text";
        mica_parse_unexpected(c, wanted);
        return NULL;
    }
    mica_parse_next(c);
    if (until && at_end_tag(c, until)) {
        *ended = true;
        return NULL;
    }
    mica_node *node = parse_statement(c);
    return node && expect_block_end(c) ? node : NULL;
}

static mica_node *parse_body(mica_compiler *c, const ends *until)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node_list items = {0};
    bool ended = false;
    if (c->depth >= MICA_TMPL_MAX_NODE_DEPTH) {
        mica_compile_fail(c, t->offset, "the template is nested more than %d levels deep", MICA_TMPL_MAX_NODE_DEPTH);
        return NULL;
    }
    c->depth++;
    while (until || mica_parse_peek(c, 0)->kind != MICA_T_END) {
        mica_node *node = parse_piece(c, until, &ended);
        if (ended)
            break;
        if (!node || !mica_node_push(c, &items, node))
            return NULL;
    }
    c->depth--;
    return mica_node_new(c, MICA_N_BODY, t, items.items, items.n);
}

bool mica_parse(mica_compiler *c)
{
    c->tmpl->root = parse_body(c, NULL);
    return c->tmpl->root != NULL;
}
