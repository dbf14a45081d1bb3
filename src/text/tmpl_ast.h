/* tmpl_ast.h - a compiled template: nodes in one arena, names resolved to slots of frames. Immutable after compilation.
 *
 * Names follow jinja2's rules, which differ from a plain dynamic lookup: each scope (template, loop body, macro, block) is
 * analysed as a whole, and a name that is assigned anywhere in it belongs to it. tmpl_scope.c turns that into slots; a frame is
 * entered by running the `loads` of its scope.
 */
#ifndef MICA_TEXT_TMPL_AST_H
#define MICA_TEXT_TMPL_AST_H
#include "text/chat.h"
#include "text/tmpl_ops.h"
#include "text/tmpl_value.h"

typedef enum mica_ntype {
    /* expressions */
    MICA_N_CONST, MICA_N_NAME, MICA_N_NSREF, MICA_N_TUPLE, MICA_N_LIST,
    MICA_N_DICT,    /* kids: key, value, key, value ... */
    MICA_N_GETATTR, /* kid 0 . text */
    MICA_N_GETITEM, /* kid 0 [ kid 1 ] */
    MICA_N_SLICE,   /* kids: start, stop, step; each may be NULL. Only below GETITEM */
    MICA_N_CALL,    /* kid 0: the callee; then arguments */
    MICA_N_FILTER,  /* kid 0: the value (NULL in a filter block); then arguments */
    MICA_N_TEST,    /* kid 0: the value; then arguments */
    MICA_N_KEYWORD, /* argument text = kid 0 */
    MICA_N_STAR, MICA_N_DSTAR, /* argument *kid 0, **kid 0 */
    MICA_N_UNARY, MICA_N_BINARY, MICA_N_AND, MICA_N_OR, MICA_N_NOT,
    MICA_N_COMPARE, /* kid 0: first operand; then OPERANDs */
    MICA_N_OPERAND, /* op kid 0 */
    MICA_N_CONCAT,
    MICA_N_COND,    /* kids: test, value, other value or NULL */
    /* statements */
    MICA_N_BODY, MICA_N_DATA, /* text */
    MICA_N_OUTPUT,  /* kid 0 */
    MICA_N_IF,      /* kids: test, body, test, body ... and the else body last when their number is odd */
    MICA_N_FOR,     /* kids: target, iterated, test or NULL, body, else body or NULL */
    MICA_N_BREAK, MICA_N_CONTINUE,
    MICA_N_SET,     /* kids: target, value */
    MICA_N_SETBLOCK, /* kids: target, body, filter or NULL */
    MICA_N_MACRO,    /* kids: body, then defaults of the last parameters; text: the name */
    MICA_N_CALLBLOCK, /* kids: body, call, then defaults */
    MICA_N_FILTERBLOCK, /* kids: body, filter */
    MICA_N_WITH,    /* kids: body, then target, value ... */
} mica_ntype;

struct mica_filter_def;
struct mica_test_def;

typedef struct mica_ref {
    uint32_t hops, slot; /* frames outwards, place in the frame */
} mica_ref;

typedef enum mica_load { MICA_LOAD_PARAMETER, MICA_LOAD_RESOLVE, MICA_LOAD_ALIAS, MICA_LOAD_UNDEFINED } mica_load;

typedef struct mica_slot_load {
    mica_load action;
    uint32_t symbol; /* RESOLVE: the name outside of the template */
    mica_ref from;   /* ALIAS: counted from this frame */
} mica_slot_load;

typedef struct mica_scope {
    size_t n_slots;
    mica_slot_load *loads; /* one for each slot */
} mica_scope;

typedef struct mica_for {
    mica_scope body, other, test;
    bool recursive, extended; /* extended: the body mentions `loop`, in slot loop_slot */
    uint32_t loop_slot;
} mica_for;

typedef struct mica_macro_def {
    mica_scope scope;
    mica_val name; /* NONE: a call block */
    size_t n_params;
    mica_val *param_names;
    uint32_t *param_symbols, *param_slots;
    bool wants_caller, wants_kwargs, wants_varargs; /* beyond the declared parameters */
    uint32_t caller_slot, kwargs_slot, varargs_slot;
} mica_macro_def;

typedef struct mica_node {
    uint8_t type, op;  /* op: a mica_op */
    bool store;        /* NAME: a target of an assignment */
    bool soft;         /* FILTER, TEST: inside an if, where an unknown name fails only when reached */
    uint16_t depth;    /* 1 + the largest of the kids */
    uint32_t line, offset;
    uint32_t n_kids;
    uint32_t symbol;   /* NAME, NSREF, MACRO */
    mica_ref ref;      /* NAME, NSREF, MACRO */
    struct mica_node **kids;
    mica_val text;     /* constant, data, name of an attribute, keyword, filter, test */
    union {
        const struct mica_filter_def *filter;
        const struct mica_test_def *test;
        mica_for *loop;
        mica_macro_def *macro;
        mica_scope *scope; /* SETBLOCK, FILTERBLOCK, WITH */
    };
} mica_node;

struct mica_template {
    mica_tarena arena;
    mica_node *root;
    mica_scope scope;
    mica_val *symbols; /* names by number */
    size_t n_symbols;
    bool exact_offsets; /* no line ending was rewritten: offsets in nodes are offsets in the caller's text */
};

/* ---- Compilation: lexer, parser and scope analysis share this ---- */

typedef enum mica_token_kind {
    MICA_T_END, MICA_T_DATA, MICA_T_OUTPUT_BEGIN, MICA_T_OUTPUT_END, MICA_T_BLOCK_BEGIN, MICA_T_BLOCK_END,
    MICA_T_NAME, MICA_T_STRING, MICA_T_INT, MICA_T_FLOAT,
    MICA_T_ADD, MICA_T_SUB, MICA_T_MUL, MICA_T_DIV, MICA_T_FLOORDIV, MICA_T_MOD, MICA_T_POW, MICA_T_TILDE,
    MICA_T_EQ, MICA_T_NE, MICA_T_LT, MICA_T_LE, MICA_T_GT, MICA_T_GE,
    MICA_T_ASSIGN, MICA_T_DOT, MICA_T_COLON, MICA_T_PIPE, MICA_T_COMMA, MICA_T_SEMICOLON,
    MICA_T_LPAREN, MICA_T_RPAREN, MICA_T_LBRACKET, MICA_T_RBRACKET, MICA_T_LBRACE, MICA_T_RBRACE,
} mica_token_kind;

typedef struct mica_tmpl_token {
    mica_token_kind kind;
    uint32_t line, offset;
    mica_val value; /* DATA, NAME, STRING: text; INT, FLOAT: the number */
} mica_tmpl_token;

typedef struct mica_compiler {
    struct mica_template *tmpl;
    const char *source; /* with line feeds only, without the last one */
    size_t n_source;
    mica_tmpl_token *tokens;
    size_t n_tokens, cap_tokens;
    size_t at;   /* parser: the current token */
    int depth;   /* parser: nesting */
    int n_loops, n_soft; /* parser: loops and ifs around the current place, within the macro */
    uint32_t *symbol_index; /* hash of names to symbol number + 1 */
    size_t n_index, cap_symbols;
    mica_error *err;
    bool failed;
    mica_status code;
} mica_compiler;

/** Reports a failure at a place of the source (with line and column) and returns false. The first failure stays. */
bool mica_compile_fail(mica_compiler *c, uint32_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool mica_compile_no_memory(mica_compiler *c);
/** Memory of the template; NULL after mica_compile_no_memory(). */
void *mica_compile_alloc(mica_compiler *c, size_t size);
/** The number of a name. */
bool mica_compile_symbol(mica_compiler *c, const mica_val *name, uint32_t *symbol);

bool mica_lex(mica_compiler *c);
bool mica_parse(mica_compiler *c);
/** Resolves all names. */
bool mica_scope_analyse(mica_compiler *c);

/* Between tmpl_parse.c (statements) and tmpl_parse_expr.c. */
mica_node *mica_node_new(mica_compiler *c, mica_ntype type, const mica_tmpl_token *at, mica_node **kids, size_t n);
typedef struct mica_node_list {
    mica_node **items;
    size_t n, capacity;
} mica_node_list;
bool mica_node_push(mica_compiler *c, mica_node_list *list, mica_node *node);
const mica_tmpl_token *mica_parse_peek(const mica_compiler *c, size_t ahead);
const mica_tmpl_token *mica_parse_next(mica_compiler *c);
bool mica_parse_is_name(const mica_compiler *c, size_t ahead, const char *name);
bool mica_parse_skip(mica_compiler *c, mica_token_kind kind);
bool mica_parse_skip_name(mica_compiler *c, const char *name);
bool mica_parse_expect(mica_compiler *c, mica_token_kind kind, const char *what);
bool mica_parse_unexpected(mica_compiler *c, const char *wanted);
mica_node *mica_parse_expression(mica_compiler *c, bool with_condition);
/** Expressions with commas; `end` (may be NULL) is a name that also ends a tuple. */
mica_node *mica_parse_tuple(mica_compiler *c, bool with_condition, const char *end, bool in_parentheses);
/** Target of an assignment: a name, a tuple, with `namespaces` also name.attribute. */
mica_node *mica_parse_target(mica_compiler *c, const char *end, bool namespaces);
/** `| name(args) | ...` after `node` (may be NULL); `inline_start`: the first name has no bar. */
mica_node *mica_parse_filters(mica_compiler *c, mica_node *node, bool inline_start);

#endif
