#include "text/tmpl_ast.h"
#include "text/tmpl_builtin.h"

#include <string.h>

/* Expressions, from the loosest operator to the tightest: if else, or, and, not, comparisons, + -, ~, * / // %, **, unary,
 * postfix, filters and tests. Every function returns NULL after a failure was reported. */

/* ---- Tokens and nodes ---- */

const mica_tmpl_token *mica_parse_peek(const mica_compiler *c, size_t ahead)
{
    size_t i = c->at + ahead;
    return &c->tokens[i < c->n_tokens ? i : c->n_tokens - 1];
}

const mica_tmpl_token *mica_parse_next(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    if (c->at + 1 < c->n_tokens)
        c->at++;
    return t;
}

bool mica_parse_is_name(const mica_compiler *c, size_t ahead, const char *name)
{
    const mica_tmpl_token *t = mica_parse_peek(c, ahead);
    return t->kind == MICA_T_NAME && mica_val_is(&t->value, name, strlen(name));
}

static mica_token_kind kind_of(const mica_compiler *c) { return mica_parse_peek(c, 0)->kind; }

bool mica_parse_skip(mica_compiler *c, mica_token_kind kind)
{
    if (kind_of(c) != kind)
        return false;
    mica_parse_next(c);
    return true;
}

bool mica_parse_skip_name(mica_compiler *c, const char *name)
{
    if (!mica_parse_is_name(c, 0, name))
        return false;
    mica_parse_next(c);
    return true;
}

bool mica_parse_unexpected(mica_compiler *c, const char *wanted)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    if (t->kind == MICA_T_END)
        return mica_compile_fail(c, t->offset, "the template ends where %s is expected", wanted);
    if (t->kind == MICA_T_STRING || t->kind == MICA_T_DATA)
        return mica_compile_fail(c, t->offset, "unexpected text where %s is expected", wanted);
    if (t->kind == MICA_T_NAME)
        return mica_compile_fail(c, t->offset, "unexpected '%.*s' where %s is expected", MICA_SHOW(&t->value), wanted);
    bool brace = t->kind >= MICA_T_OUTPUT_BEGIN && t->kind <= MICA_T_BLOCK_END;
    return mica_compile_fail(c, t->offset, "unexpected '%.*s' where %s is expected", brace ? 2 : 1, c->source + t->offset,
                             wanted);
}

bool mica_parse_expect(mica_compiler *c, mica_token_kind kind, const char *what)
{
    return mica_parse_skip(c, kind) || mica_parse_unexpected(c, what);
}

mica_node *mica_node_new(mica_compiler *c, mica_ntype type, const mica_tmpl_token *at, mica_node **kids, size_t n)
{
    mica_node *node = mica_compile_alloc(c, sizeof *node);
    mica_node **copy = n ? mica_compile_alloc(c, n * sizeof *copy) : NULL;
    if (!node || (n && !copy))
        return NULL;
    uint16_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        copy[i] = kids[i];
        if (kids[i] && kids[i]->depth > depth)
            depth = kids[i]->depth;
    }
    if (depth >= MICA_TMPL_MAX_NODE_DEPTH) {
        mica_compile_fail(c, at->offset, "the template is nested more than %d levels deep", MICA_TMPL_MAX_NODE_DEPTH);
        return NULL;
    }
    *node = (mica_node){.type = (uint8_t)type, .depth = (uint16_t)(depth + 1), .line = at->line, .offset = at->offset,
                        .n_kids = (uint32_t)n, .kids = copy};
    return node;
}

static mica_node *node1(mica_compiler *c, mica_ntype type, const mica_tmpl_token *at, mica_node *kid)
{
    return kid ? mica_node_new(c, type, at, &kid, 1) : NULL;
}

static mica_node *node2(mica_compiler *c, mica_ntype type, const mica_tmpl_token *at, mica_node *a, mica_node *b)
{
    return a && b ? mica_node_new(c, type, at, (mica_node *[]){a, b}, 2) : NULL;
}

bool mica_node_push(mica_compiler *c, mica_node_list *list, mica_node *node)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        mica_node **items = mica_compile_alloc(c, capacity * sizeof *items);
        if (!items)
            return false;
        if (list->n)
            memcpy(items, list->items, list->n * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->n++] = node;
    return true;
}

static mica_node *constant(mica_compiler *c, const mica_tmpl_token *at, mica_val value)
{
    mica_node *node = mica_node_new(c, MICA_N_CONST, at, NULL, 0);
    if (node)
        node->text = value;
    return node;
}

/* Parser recursion passes here once for each level of brackets, unary operator or else branch. */
static bool enter(mica_compiler *c)
{
    if (c->depth < MICA_TMPL_MAX_NODE_DEPTH) {
        c->depth++;
        return true;
    }
    return mica_compile_fail(c, mica_parse_peek(c, 0)->offset, "the template is nested more than %d levels deep",
                             MICA_TMPL_MAX_NODE_DEPTH);
}

/* ---- Primaries ---- */

static mica_node *parse_name(mica_compiler *c, bool namespaces)
{
    const mica_tmpl_token *t = mica_parse_next(c);
    const mica_val *name = &t->value;
    if (mica_val_is(name, "true", 4) || mica_val_is(name, "True", 4))
        return constant(c, t, mica_val_bool(true));
    if (mica_val_is(name, "false", 5) || mica_val_is(name, "False", 5))
        return constant(c, t, mica_val_bool(false));
    if (mica_val_is(name, "none", 4) || mica_val_is(name, "None", 4))
        return constant(c, t, MICA_NONE);
    bool ns = namespaces && kind_of(c) == MICA_T_DOT;
    mica_node *node = mica_node_new(c, ns ? MICA_N_NSREF : MICA_N_NAME, t, NULL, 0);
    if (!node || !mica_compile_symbol(c, name, &node->symbol))
        return NULL;
    node->text = *name;
    if (ns) {
        mica_parse_next(c);
        if (kind_of(c) != MICA_T_NAME) {
            mica_parse_unexpected(c, "the name of an attribute");
            return NULL;
        }
        node->text = mica_parse_next(c)->value;
    }
    return node;
}

/* Adjacent strings are one. */
static mica_node *parse_string(mica_compiler *c)
{
    const mica_tmpl_token *first = mica_parse_next(c);
    size_t n = first->value.len, count = 1;
    for (; mica_parse_peek(c, count - 1)->kind == MICA_T_STRING; count++)
        n += mica_parse_peek(c, count - 1)->value.len;
    if (count == 1)
        return constant(c, first, first->value);
    char *text = mica_compile_alloc(c, n ? n : 1);
    if (!text)
        return NULL;
    size_t at = first->value.len;
    memcpy(text, first->value.s, first->value.len);
    for (; count > 1; count--) {
        const mica_tmpl_token *t = mica_parse_next(c);
        memcpy(text + at, t->value.s, t->value.len);
        at += t->value.len;
    }
    return constant(c, first, mica_val_text(text, n));
}

static mica_node *parse_list(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_next(c);
    mica_node_list items = {0};
    while (kind_of(c) != MICA_T_RBRACKET) {
        if (items.n && !mica_parse_expect(c, MICA_T_COMMA, "',' or ']'"))
            return NULL;
        if (kind_of(c) == MICA_T_RBRACKET)
            break;
        mica_node *item = mica_parse_expression(c, true);
        if (!item || !mica_node_push(c, &items, item))
            return NULL;
    }
    mica_parse_next(c);
    return mica_node_new(c, MICA_N_LIST, t, items.items, items.n);
}

static mica_node *parse_dict(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_next(c);
    mica_node_list items = {0};
    while (kind_of(c) != MICA_T_RBRACE) {
        if (items.n && !mica_parse_expect(c, MICA_T_COMMA, "',' or '}'"))
            return NULL;
        if (kind_of(c) == MICA_T_RBRACE)
            break;
        mica_node *key = mica_parse_expression(c, true);
        if (!key || !mica_node_push(c, &items, key) || !mica_parse_expect(c, MICA_T_COLON, "':'"))
            return NULL;
        mica_node *value = mica_parse_expression(c, true);
        if (!value || !mica_node_push(c, &items, value))
            return NULL;
    }
    mica_parse_next(c);
    return mica_node_new(c, MICA_N_DICT, t, items.items, items.n);
}

static mica_node *parse_primary(mica_compiler *c, bool namespaces)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node *node = NULL;
    if (!enter(c))
        return NULL;
    switch (t->kind) {
    case MICA_T_NAME:
        node = parse_name(c, namespaces);
        break;
    case MICA_T_STRING:
        node = parse_string(c);
        break;
    case MICA_T_INT: case MICA_T_FLOAT:
        mica_parse_next(c);
        node = constant(c, t, t->value);
        break;
    case MICA_T_LPAREN:
        mica_parse_next(c);
        node = mica_parse_tuple(c, true, NULL, true);
        if (node && !mica_parse_expect(c, MICA_T_RPAREN, "')'"))
            node = NULL;
        break;
    case MICA_T_LBRACKET:
        node = parse_list(c);
        break;
    case MICA_T_LBRACE:
        node = parse_dict(c);
        break;
    default:
        mica_parse_unexpected(c, "an expression");
    }
    c->depth--;
    return node;
}

static bool at_tuple_end(const mica_compiler *c, const char *end)
{
    mica_token_kind kind = kind_of(c);
    return kind == MICA_T_OUTPUT_END || kind == MICA_T_BLOCK_END || kind == MICA_T_RPAREN ||
           (end && mica_parse_is_name(c, 0, end));
}

/* Items with commas between and, for a tuple, perhaps one at the end. `targets`: only names and literals. */
static mica_node *parse_items(mica_compiler *c, bool targets, bool with_condition, const char *end, bool in_parentheses,
                              bool namespaces)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node_list items = {0};
    bool is_tuple = false;
    for (;;) {
        if (items.n && !mica_parse_expect(c, MICA_T_COMMA, "','"))
            return NULL;
        if (at_tuple_end(c, end))
            break;
        mica_node *item = targets ? parse_primary(c, namespaces) : mica_parse_expression(c, with_condition);
        if (!item || !mica_node_push(c, &items, item))
            return NULL;
        if (kind_of(c) != MICA_T_COMMA)
            break;
        is_tuple = true;
    }
    if (!is_tuple && items.n)
        return items.items[0];
    if (!is_tuple && !in_parentheses) {
        mica_parse_unexpected(c, "an expression");
        return NULL;
    }
    return mica_node_new(c, MICA_N_TUPLE, t, items.items, items.n);
}

mica_node *mica_parse_tuple(mica_compiler *c, bool with_condition, const char *end, bool in_parentheses)
{
    return parse_items(c, false, with_condition, end, in_parentheses, false);
}

/* Marks names as assigned; everything else that is not a tuple cannot be a target. */
static bool mark_target(mica_compiler *c, mica_node *node)
{
    if (node->type == MICA_N_NAME || node->type == MICA_N_NSREF) {
        node->store = node->type == MICA_N_NAME;
        return true;
    }
    if (node->type != MICA_N_TUPLE)
        return mica_compile_fail(c, node->offset, "this cannot be assigned to");
    for (uint32_t i = 0; i < node->n_kids; i++) {
        if (!mark_target(c, node->kids[i]))
            return false;
    }
    return true;
}

mica_node *mica_parse_target(mica_compiler *c, const char *end, bool namespaces)
{
    mica_node *node = parse_items(c, true, true, end, false, namespaces);
    return node && mark_target(c, node) ? node : NULL;
}

/* ---- Calls, filters, tests, subscripts ---- */

#define MAX_ARGUMENTS 255 /* of one call; keeps the search for duplicates short */

static bool duplicate_keyword(const mica_node_list *args, const mica_val *name)
{
    for (size_t i = 0; i < args->n; i++) {
        const mica_node *a = args->items[i];
        if (a && a->type == MICA_N_KEYWORD && mica_val_same_text(&a->text, name))
            return true;
    }
    return false;
}

/* One argument, appended. Order: positional, keywords or *list, then **dict. */
static bool parse_argument(mica_compiler *c, mica_node_list *args, mica_ntype *last)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_ntype type = t->kind == MICA_T_MUL ? MICA_N_STAR : t->kind == MICA_T_POW ? MICA_N_DSTAR : MICA_N_CONST;
    if (t->kind == MICA_T_NAME && mica_parse_peek(c, 1)->kind == MICA_T_ASSIGN)
        type = MICA_N_KEYWORD;
    bool order = type == MICA_N_CONST  ? *last == MICA_N_CONST
                 : type == MICA_N_STAR ? *last == MICA_N_CONST || *last == MICA_N_KEYWORD
                                       : *last != MICA_N_DSTAR;
    if (!order)
        return mica_compile_fail(c, t->offset, "the arguments of this call are in a wrong order");
    if (type == MICA_N_KEYWORD && duplicate_keyword(args, &t->value))
        return mica_compile_fail(c, t->offset, "the argument '%.*s' is given twice", MICA_SHOW(&t->value));
    if (args->n > MAX_ARGUMENTS)
        return mica_compile_fail(c, t->offset, "more than %d arguments", MAX_ARGUMENTS);
    if (type != MICA_N_CONST)
        mica_parse_next(c);
    if (type == MICA_N_KEYWORD)
        mica_parse_next(c);
    mica_node *value = mica_parse_expression(c, true);
    if (type == MICA_N_CONST)
        return value && mica_node_push(c, args, value);
    mica_node *node = node1(c, type, t, value);
    if (!node)
        return false;
    node->text = t->value;
    *last = type;
    return mica_node_push(c, args, node);
}

/* The arguments behind an opening parenthesis; appended to args. */
static bool parse_arguments(mica_compiler *c, mica_node_list *args)
{
    mica_ntype last = MICA_N_CONST;
    bool first = true;
    mica_parse_next(c);
    while (kind_of(c) != MICA_T_RPAREN) {
        if (!first && !mica_parse_expect(c, MICA_T_COMMA, "',' or ')'"))
            return false;
        if (!first && kind_of(c) == MICA_T_RPAREN)
            break;
        if (!parse_argument(c, args, &last))
            return false;
        first = false;
    }
    mica_parse_next(c);
    return true;
}

static mica_node *parse_call(mica_compiler *c, mica_node *callee)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node_list kids = {0};
    if (!mica_node_push(c, &kids, callee) || !parse_arguments(c, &kids))
        return NULL;
    return mica_node_new(c, MICA_N_CALL, t, kids.items, kids.n);
}

/* [start:stop:step], or an expression. */
static mica_node *parse_subscribed(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node *parts[3] = {NULL, NULL, NULL};
    if (kind_of(c) != MICA_T_COLON) {
        parts[0] = mica_parse_expression(c, true);
        if (!parts[0] || kind_of(c) != MICA_T_COLON)
            return parts[0];
    }
    for (int i = 1; i < 3 && mica_parse_skip(c, MICA_T_COLON); i++) {
        mica_token_kind kind = kind_of(c);
        if (kind == MICA_T_COLON || kind == MICA_T_RBRACKET || kind == MICA_T_COMMA)
            continue;
        parts[i] = mica_parse_expression(c, true);
        if (!parts[i])
            return NULL;
    }
    return mica_node_new(c, MICA_N_SLICE, t, parts, 3);
}

static mica_node *parse_brackets(mica_compiler *c, mica_node *object)
{
    const mica_tmpl_token *t = mica_parse_next(c);
    mica_node_list items = {0};
    while (kind_of(c) != MICA_T_RBRACKET) {
        if (items.n && !mica_parse_expect(c, MICA_T_COMMA, "',' or ']'"))
            return NULL;
        mica_node *item = parse_subscribed(c);
        if (!item || !mica_node_push(c, &items, item))
            return NULL;
        if (items.n > 1 && (item->type == MICA_N_SLICE || items.items[0]->type == MICA_N_SLICE)) {
            mica_compile_fail(c, item->offset, "a slice among other subscripts is not supported");
            return NULL;
        }
    }
    mica_parse_next(c);
    mica_node *key = items.n == 1 ? items.items[0] : mica_node_new(c, MICA_N_TUPLE, t, items.items, items.n);
    return node2(c, MICA_N_GETITEM, t, object, key);
}

static mica_node *parse_dot(mica_compiler *c, mica_node *object)
{
    const mica_tmpl_token *dot = mica_parse_next(c), *t = mica_parse_next(c);
    if (t->kind == MICA_T_INT)
        return node2(c, MICA_N_GETITEM, dot, object, constant(c, t, t->value));
    if (t->kind != MICA_T_NAME) {
        mica_compile_fail(c, t->offset, "a name or number is expected behind '.'");
        return NULL;
    }
    mica_node *node = node1(c, MICA_N_GETATTR, dot, object);
    if (node)
        node->text = t->value;
    return node;
}

static mica_node *parse_postfix(mica_compiler *c, mica_node *node)
{
    while (node) {
        mica_token_kind kind = kind_of(c);
        if (kind == MICA_T_DOT)
            node = parse_dot(c, node);
        else if (kind == MICA_T_LBRACKET)
            node = parse_brackets(c, node);
        else if (kind == MICA_T_LPAREN)
            node = parse_call(c, node);
        else
            break;
    }
    return node;
}

/* The name of a filter or test; dotted names exist in jinja2 but none of its own has one. */
static const mica_tmpl_token *parse_dotted(mica_compiler *c, const char *what)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    if (t->kind != MICA_T_NAME) {
        mica_parse_unexpected(c, what);
        return NULL;
    }
    mica_parse_next(c);
    if (kind_of(c) == MICA_T_DOT) {
        mica_compile_fail(c, t->offset, "dotted names of filters and tests are not supported");
        return NULL;
    }
    return t;
}

mica_node *mica_parse_filters(mica_compiler *c, mica_node *node, bool inline_start)
{
    while (inline_start || kind_of(c) == MICA_T_PIPE) {
        if (!inline_start)
            mica_parse_next(c);
        inline_start = false;
        const mica_tmpl_token *t = parse_dotted(c, "the name of a filter");
        mica_node_list kids = {0};
        if (!t || !mica_node_push(c, &kids, node))
            return NULL;
        if (kind_of(c) == MICA_T_LPAREN && !parse_arguments(c, &kids))
            return NULL;
        node = mica_node_new(c, MICA_N_FILTER, t, kids.items, kids.n);
        if (!node)
            return NULL;
        node->text = t->value;
        node->filter = mica_filter_find(t->value.s, t->value.len);
        node->soft = c->n_soft > 0;
        if (!node->filter && !node->soft) {
            mica_compile_fail(c, t->offset, "there is no filter named '%.*s'", MICA_SHOW(&t->value));
            return NULL;
        }
    }
    return node;
}

/* Whether the token can start the one argument of a test that has no parentheses. */
static bool starts_argument(const mica_compiler *c)
{
    switch (kind_of(c)) {
    case MICA_T_NAME:
        return !mica_parse_is_name(c, 0, "else") && !mica_parse_is_name(c, 0, "or") && !mica_parse_is_name(c, 0, "and");
    case MICA_T_STRING: case MICA_T_INT: case MICA_T_FLOAT: case MICA_T_LBRACKET: case MICA_T_LBRACE:
        return true;
    default:
        return false;
    }
}

static mica_node *parse_test(mica_compiler *c, mica_node *value)
{
    const mica_tmpl_token *is = mica_parse_next(c);
    bool negated = mica_parse_skip_name(c, "not");
    const mica_tmpl_token *t = parse_dotted(c, "the name of a test");
    mica_node_list kids = {0};
    if (!t || !mica_node_push(c, &kids, value))
        return NULL;
    if (kind_of(c) == MICA_T_LPAREN) {
        if (!parse_arguments(c, &kids))
            return NULL;
    } else if (starts_argument(c)) {
        if (mica_parse_is_name(c, 0, "is")) {
            mica_compile_fail(c, mica_parse_peek(c, 0)->offset, "tests with 'is' cannot be chained");
            return NULL;
        }
        mica_node *arg = parse_postfix(c, parse_primary(c, false));
        if (!arg || !mica_node_push(c, &kids, arg))
            return NULL;
    }
    mica_node *node = mica_node_new(c, MICA_N_TEST, t, kids.items, kids.n);
    if (!node)
        return NULL;
    node->text = t->value;
    node->test = mica_test_find(t->value.s, t->value.len);
    node->soft = c->n_soft > 0;
    if (!node->test && !node->soft) {
        mica_compile_fail(c, t->offset, "there is no test named '%.*s'", MICA_SHOW(&t->value));
        return NULL;
    }
    return negated ? node1(c, MICA_N_NOT, is, node) : node;
}

static mica_node *parse_filter_expr(mica_compiler *c, mica_node *node)
{
    while (node) {
        if (kind_of(c) == MICA_T_PIPE)
            node = mica_parse_filters(c, node, false);
        else if (mica_parse_is_name(c, 0, "is"))
            node = parse_test(c, node);
        else if (kind_of(c) == MICA_T_LPAREN)
            node = parse_call(c, node);
        else
            break;
    }
    return node;
}

/* ---- Operators ---- */

static mica_node *parse_unary(mica_compiler *c, bool with_filter)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node *node;
    if (t->kind == MICA_T_SUB || t->kind == MICA_T_ADD) {
        if (!enter(c))
            return NULL;
        mica_parse_next(c);
        node = node1(c, MICA_N_UNARY, t, parse_unary(c, false));
        c->depth--;
        if (node)
            node->op = t->kind == MICA_T_SUB ? MICA_OP_NEG : MICA_OP_POS;
    } else {
        node = parse_primary(c, false);
    }
    node = parse_postfix(c, node);
    return with_filter ? parse_filter_expr(c, node) : node;
}

static mica_node *binary(mica_compiler *c, const mica_tmpl_token *t, mica_op op, mica_node *a, mica_node *b)
{
    mica_node *node = node2(c, MICA_N_BINARY, t, a, b);
    if (node)
        node->op = (uint8_t)op;
    return node;
}

static mica_node *parse_pow(mica_compiler *c)
{
    mica_node *left = parse_unary(c, true);
    while (left && kind_of(c) == MICA_T_POW) {
        const mica_tmpl_token *t = mica_parse_next(c);
        left = binary(c, t, MICA_OP_POW, left, parse_unary(c, true));
    }
    return left;
}

static mica_node *parse_product(mica_compiler *c)
{
    mica_node *left = parse_pow(c);
    while (left) {
        mica_token_kind kind = kind_of(c);
        if (kind != MICA_T_MUL && kind != MICA_T_DIV && kind != MICA_T_FLOORDIV && kind != MICA_T_MOD)
            break;
        const mica_tmpl_token *t = mica_parse_next(c);
        mica_op op = kind == MICA_T_MUL   ? MICA_OP_MUL
                     : kind == MICA_T_DIV ? MICA_OP_DIV
                     : kind == MICA_T_MOD ? MICA_OP_MOD
                                          : MICA_OP_FLOORDIV;
        left = binary(c, t, op, left, parse_pow(c));
    }
    return left;
}

static mica_node *parse_concat(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node *first = parse_product(c);
    if (!first || kind_of(c) != MICA_T_TILDE)
        return first;
    mica_node_list parts = {0};
    if (!mica_node_push(c, &parts, first))
        return NULL;
    while (mica_parse_skip(c, MICA_T_TILDE)) {
        mica_node *part = parse_product(c);
        if (!part || !mica_node_push(c, &parts, part))
            return NULL;
    }
    return mica_node_new(c, MICA_N_CONCAT, t, parts.items, parts.n);
}

static mica_node *parse_sum(mica_compiler *c)
{
    mica_node *left = parse_concat(c);
    while (left && (kind_of(c) == MICA_T_ADD || kind_of(c) == MICA_T_SUB)) {
        const mica_tmpl_token *t = mica_parse_next(c);
        left = binary(c, t, t->kind == MICA_T_ADD ? MICA_OP_ADD : MICA_OP_SUB, left, parse_concat(c));
    }
    return left;
}

/* Takes a comparison operator if there is one. */
static bool comparison(mica_compiler *c, mica_op *op)
{
    static const struct {
        mica_token_kind kind;
        mica_op op;
    } table[] = {{MICA_T_EQ, MICA_OP_EQ}, {MICA_T_NE, MICA_OP_NE}, {MICA_T_LT, MICA_OP_LT},
                 {MICA_T_LE, MICA_OP_LE}, {MICA_T_GT, MICA_OP_GT}, {MICA_T_GE, MICA_OP_GE}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (mica_parse_skip(c, table[i].kind)) {
            *op = table[i].op;
            return true;
        }
    }
    if (mica_parse_skip_name(c, "in")) {
        *op = MICA_OP_IN;
        return true;
    }
    if (mica_parse_is_name(c, 0, "not") && mica_parse_is_name(c, 1, "in")) {
        mica_parse_next(c);
        mica_parse_next(c);
        *op = MICA_OP_NOT_IN;
        return true;
    }
    return false;
}

static mica_node *parse_compare(mica_compiler *c)
{
    const mica_tmpl_token *t = mica_parse_peek(c, 0);
    mica_node *first = parse_sum(c);
    mica_node_list kids = {0};
    mica_op op;
    if (!first)
        return NULL;
    for (const mica_tmpl_token *sign = mica_parse_peek(c, 0); comparison(c, &op); sign = mica_parse_peek(c, 0)) {
        if (!kids.n && !mica_node_push(c, &kids, first))
            return NULL;
        mica_node *operand = node1(c, MICA_N_OPERAND, sign, parse_sum(c));
        if (!operand || !mica_node_push(c, &kids, operand))
            return NULL;
        operand->op = (uint8_t)op;
    }
    return kids.n ? mica_node_new(c, MICA_N_COMPARE, t, kids.items, kids.n) : first;
}

static mica_node *parse_not(mica_compiler *c)
{
    if (!mica_parse_is_name(c, 0, "not"))
        return parse_compare(c);
    if (!enter(c))
        return NULL;
    const mica_tmpl_token *t = mica_parse_next(c);
    mica_node *node = node1(c, MICA_N_NOT, t, parse_not(c));
    c->depth--;
    return node;
}

static mica_node *parse_and(mica_compiler *c)
{
    mica_node *left = parse_not(c);
    while (left && mica_parse_is_name(c, 0, "and")) {
        const mica_tmpl_token *t = mica_parse_next(c);
        left = node2(c, MICA_N_AND, t, left, parse_not(c));
    }
    return left;
}

static mica_node *parse_or(mica_compiler *c)
{
    mica_node *left = parse_and(c);
    while (left && mica_parse_is_name(c, 0, "or")) {
        const mica_tmpl_token *t = mica_parse_next(c);
        left = node2(c, MICA_N_OR, t, left, parse_and(c));
    }
    return left;
}

/* A filter inside of a conditional expression may be unknown as long as it is not reached; whether it is inside is known only
 * behind it, so the filters and tests of the value are checked when the condition turns out to be missing. */
static bool check_known(mica_compiler *c, const mica_node *node)
{
    if (!node || node->type == MICA_N_COND)
        return true;
    if (node->type == MICA_N_FILTER && !node->filter)
        return mica_compile_fail(c, node->offset, "there is no filter named '%.*s'", MICA_SHOW(&node->text));
    if (node->type == MICA_N_TEST && !node->test)
        return mica_compile_fail(c, node->offset, "there is no test named '%.*s'", MICA_SHOW(&node->text));
    for (uint32_t i = 0; i < node->n_kids; i++) {
        if (!check_known(c, node->kids[i]))
            return false;
    }
    return true;
}

mica_node *mica_parse_expression(mica_compiler *c, bool with_condition)
{
    if (!with_condition)
        return parse_or(c);
    if (!enter(c))
        return NULL;
    c->n_soft++;
    mica_node *node = parse_or(c);
    bool conditional = false;
    while (node && mica_parse_is_name(c, 0, "if")) {
        const mica_tmpl_token *t = mica_parse_next(c);
        conditional = true;
        mica_node *test = parse_or(c), *other = NULL;
        bool has_else = test && mica_parse_skip_name(c, "else");
        if (has_else)
            other = mica_parse_expression(c, true);
        if (!test || (has_else && !other)) {
            node = NULL;
            break;
        }
        node = mica_node_new(c, MICA_N_COND, t, (mica_node *[]){test, node, other}, 3);
    }
    c->n_soft--;
    c->depth--;
    if (node && !conditional && c->n_soft == 0 && !check_known(c, node))
        return NULL;
    return node;
}
