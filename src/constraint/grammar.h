/* grammar.h - what every kind of constraint becomes before it is compiled: a context-free grammar over bytes.
 *
 * The front ends (JSON Schema, GBNF, regular expression, choices) build one with the functions below; constraint/automaton.h
 * compiles it. Terminals are bytes, never code points or tokens, so that a token may end anywhere, even inside a character.
 *
 *     mica_grammar_new(&g, err);
 *     root = mica_grammar_rule(g, "root");
 *     mica_grammar_define(g, root, mica_grammar_seq(g, (mica_gnode[]){a, b}, 2));
 *     status = mica_grammar_finish(g, root, err);     // the first failure of any call above comes out here
 *
 * A failed call returns MICA_GNODE_FAILED and the grammar remembers why; nodes made from failed ones fail too, so one check at
 * the end is enough. Nodes are values: one may be used in several places.
 */
#ifndef MICA_CONSTRAINT_GRAMMAR_H
#define MICA_CONSTRAINT_GRAMMAR_H
#include "base/error.h"

typedef int32_t mica_gnode; /* index into nodes */
#define MICA_GNODE_FAILED (-1)
#define MICA_G_NO_LIMIT (-1)
#define MICA_G_MAX_NODES (1 << 20) /* beyond: MICA_INVALID_ARGUMENT, "too large" */

typedef enum mica_gkind {
    MICA_G_EMPTY,   /* the empty text */
    MICA_G_NEVER,   /* no text at all */
    MICA_G_SET,     /* one byte out of sets[first] */
    MICA_G_LITERAL, /* bytes[first .. first + count) */
    MICA_G_SEQ,     /* children[first .. first + count), one after another */
    MICA_G_ALT,     /* one of children[first .. first + count) */
    MICA_G_REPEAT,  /* children[first], min to max times (max MICA_G_NO_LIMIT: any number) */
    MICA_G_CALL,    /* rules[first] */
    MICA_G_FSM,     /* fsms[first]: a finite automaton over bytes */
} mica_gkind;

typedef struct mica_gnode_data {
    mica_gkind kind;
    int32_t first, count;
    int32_t min, max;
} mica_gnode_data;

typedef struct mica_byte_set {
    uint32_t bits[8]; /* byte b: bits[b / 32] >> b % 32 & 1 */
} mica_byte_set;

/** An edge of a finite automaton: any byte from low to high leads from `from` to `to`. */
typedef struct mica_fsm_edge {
    int32_t from, to;
    uint8_t low, high;
} mica_fsm_edge;

/** State 0 is the start. Several edges for one byte are allowed. */
typedef struct mica_fsm {
    int32_t n_states, n_edges;
    mica_fsm_edge *edges; /* sorted by from */
    bool *accepts;        /* [n_states] */
} mica_fsm;

typedef struct mica_grule {
    char *name;      /* for messages */
    mica_gnode body; /* MICA_GNODE_FAILED until defined */
} mica_grule;

/** Read-only for all but grammar.c. */
typedef struct mica_grammar {
    mica_gnode_data *nodes;
    int32_t n_nodes;
    mica_gnode *children;
    int32_t n_children;
    uint8_t *bytes;
    int32_t n_bytes;
    mica_byte_set *sets;
    int32_t n_sets;
    mica_fsm *fsms;
    int32_t n_fsms;
    mica_grule *rules;
    int32_t n_rules;
    int32_t root;        /* rule; set by mica_grammar_finish() */
    mica_status failure; /* of the first call that failed */
    mica_error error;
} mica_grammar;

mica_status mica_grammar_new(mica_grammar **out, mica_error *err);
void mica_grammar_free(mica_grammar *g); /* NULL is fine */

mica_gnode mica_grammar_empty(mica_grammar *g);
mica_gnode mica_grammar_never(mica_grammar *g);
mica_gnode mica_grammar_literal(mica_grammar *g, const void *bytes, size_t n);
mica_gnode mica_grammar_bytes(mica_grammar *g, const mica_byte_set *set);
/** One well-formed UTF-8 character out of the code point ranges (sorted or not, overlapping or not; surrogates are left out),
 * or, with `negate`, one that is in none of them. */
typedef struct mica_char_range {
    uint32_t low, high;
} mica_char_range;
mica_gnode mica_grammar_chars(mica_grammar *g, const mica_char_range *ranges, size_t n, bool negate);
mica_gnode mica_grammar_seq(mica_grammar *g, const mica_gnode *nodes, size_t n);
mica_gnode mica_grammar_alt(mica_grammar *g, const mica_gnode *nodes, size_t n);
/** Bounds up to INT32_MAX cost nothing: they are counted, not unrolled. */
mica_gnode mica_grammar_repeat(mica_grammar *g, mica_gnode node, int32_t min, int32_t max);
/** Copies the automaton, without states that are not on a way from the start to acceptance. */
mica_gnode mica_grammar_fsm(mica_grammar *g, const mica_fsm *fsm);

/** The rule of this name, new if there is none yet: a rule may be called before it is defined. */
int32_t mica_grammar_rule(mica_grammar *g, const char *name);
/** A new rule whose name is only for messages (names need not differ). */
int32_t mica_grammar_new_rule(mica_grammar *g, const char *name);
void mica_grammar_define(mica_grammar *g, int32_t rule, mica_gnode body);
mica_gnode mica_grammar_call(mica_grammar *g, int32_t rule);

/** Makes the grammar fail with this message, unless it has failed already; for front ends. Returns MICA_GNODE_FAILED. */
mica_gnode mica_grammar_fail(mica_grammar *g, mica_status code, int64_t position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Checks what can only be seen at the end: every called rule is defined, none is left-recursive (directly, through others,
 * or behind nodes that may be empty), and the root can match some text. The message names the rule. No recursion on the
 * grammar's depth. Nodes that no text matches become MICA_G_NEVER, so that a reply cannot run into them. */
mica_status mica_grammar_finish(mica_grammar *g, int32_t root, mica_error *err);

/* ---- Front ends: text in, finished grammar out (*out is yours). On failure *out is NULL and `position` is the byte offset
 * in the text where that makes sense. ---- */

/** llama.cpp's notation (its grammars/README.md): root ::= ..., literals, classes, groups, ? * + {m,n}, comments, \x \u \U
 * escapes. gbnf.c */
mica_status mica_grammar_from_gbnf(const char *text, size_t length, mica_grammar **out, mica_error *err);
/** One of n texts, exactly. choices.c */
mica_status mica_grammar_from_choices(const char *const *texts, const size_t *lengths, size_t n, mica_grammar **out,
                                      mica_error *err);
/** A whole text that the pattern matches from start to end; see constraint/regular.h for the notation. regex.c */
mica_status mica_grammar_from_regex(const char *pattern, size_t length, mica_grammar **out, mica_error *err);

#endif
