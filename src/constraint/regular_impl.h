/* regular_impl.h - the inside of regular languages: sets of code points, alphabets, automata. Called by regular*.c and regex*.c
 * only.
 *
 * A regular language is a partial deterministic automaton over classes of code points that the automaton does not tell apart,
 * so that \p{L}, hundreds of ranges, is one column. Invariants of every mica_regular that functions hand out:
 *  1. It is minimal: all states are reached, differ, and lead to an accepting one (but for state 0 of the empty language).
 *  2. No two classes have the same column, and none has a column without a target.
 *  3. Ranges are sorted, do not overlap, touch only where the class changes, and hold no surrogates.
 */
#ifndef MICA_CONSTRAINT_REGULAR_IMPL_H
#define MICA_CONSTRAINT_REGULAR_IMPL_H
#include "constraint/regular.h"

#define MICA_MAX_CODE 0x10FFFFu
#define MICA_FIRST_SURROGATE 0xD800u
#define MICA_LAST_SURROGATE 0xDFFFu

/* Entries of a transition table: 16 MiB. Bounds memory and the time of minimisation, whatever the pattern. */
#define MICA_REGULAR_MAX_TABLE (4 << 20)
/* States before minimisation. */
#define MICA_REGULAR_MAX_RAW_STATES (4 * MICA_REGULAR_MAX_STATES)

/* ---- Sets of code points; regular_ranges.c ---- */

typedef struct mica_ranges {
    mica_char_range *items;
    size_t n, capacity;
} mica_ranges;

/** These return false if memory is refused. */
bool mica_ranges_add(mica_ranges *set, uint32_t low, uint32_t high);
bool mica_ranges_add_all(mica_ranges *set, const mica_char_range *items, size_t n);
/** Sorted, merged, without surrogates and without what is above U+10FFFF. */
bool mica_ranges_normalise(mica_ranges *set);
/** All other code points. The set is normalised before and after. */
bool mica_ranges_negate(mica_ranges *set);
void mica_ranges_free(mica_ranges *set);

/* ---- Alphabets; regular_alphabet.c ---- */

typedef struct mica_class_range {
    uint32_t low, high;
    int32_t class;
} mica_class_range;

/** Code points in no range are in no class. */
typedef struct mica_alphabet {
    mica_class_range *ranges;
    int32_t n_ranges, n_classes;
} mica_alphabet;

/** The coarsest classes of which each of the sets (normalised) is a union. */
mica_status mica_alphabet_of_sets(const mica_ranges *sets, size_t n, mica_alphabet *out, mica_error *err);
/** The classes that two alphabets make together: pairs[2 * class] and pairs[2 * class + 1] are those of a and b, -1: none.
 * *pairs is yours. */
mica_status mica_alphabet_of_two(const mica_alphabet *a, const mica_alphabet *b, mica_alphabet *out, int32_t **pairs,
                                 mica_error *err);
int32_t mica_alphabet_class(const mica_alphabet *a, uint32_t code); /* -1: none */
void mica_alphabet_free(mica_alphabet *a);

/* ---- Automata ---- */

struct mica_regular {
    mica_alphabet alphabet;
    int32_t n_states;
    int32_t *next; /* [n_states][n_classes]; -1: none. State 0 is the start */
    bool *accepts; /* [n_states] */
    int64_t shortest, longest; /* see mica_regular_lengths_of() */
};

/** An automaton without transitions; ranges and acceptance are to be filled in. NULL: no memory. */
mica_regular *mica_regular_new(int32_t n_states, int32_t n_classes, int32_t n_ranges);
/** Fills `shortest` and `longest`; false if memory is refused. All states lead to an accepting one, but for the empty
 * language. */
bool mica_regular_measure(mica_regular *r);

/** "out of memory" for a regular language. */
mica_status mica_regular_nomem(mica_error *err);
mica_status mica_regular_too_large(mica_error *err);
/** Establishes the invariants above on an automaton whose states are all reached; takes it over, also on failure.
 * regular_min.c */
mica_status mica_regular_minimise(mica_regular *raw, mica_regular **out, mica_error *err);

/* ---- Patterns as trees; made by regex*.c, read by regular_nfa.c ---- */

typedef enum mica_regex_kind {
    MICA_RE_EMPTY,
    MICA_RE_SET,    /* sets[set] */
    MICA_RE_SEQ,    /* the children, which are listed from the last to the first */
    MICA_RE_ALT,    /* one of the children */
    MICA_RE_REPEAT, /* the child, min to max times */
    MICA_RE_START,  /* ^ */
    MICA_RE_END,    /* $ */
} mica_regex_kind;

typedef struct mica_regex_node {
    mica_regex_kind kind;
    int32_t child, sibling; /* -1: none */
    int32_t min, max, set;
} mica_regex_node;

/** Groups within groups. Each makes at most three levels of nodes, so that the tree may be walked with recursion. */
#define MICA_RE_MAX_DEPTH 200

typedef struct mica_regex {
    mica_regex_node *nodes;
    int32_t n_nodes, capacity, root;
    mica_ranges *sets; /* normalised, no two equal. Set 0 has all characters */
    int32_t n_sets, sets_capacity;
    int32_t *table; /* of sets by content, open addressing: index + 1, or 0 */
    int32_t n_slots;
} mica_regex;

/** *out is to be freed in any case. */
mica_status mica_regex_parse(const char *pattern, size_t length, mica_regex *out, mica_error *err);
void mica_regex_free(mica_regex *re);
/** The language of a pattern; regular_nfa.c */
mica_status mica_regular_of_regex(const mica_regex *re, mica_pattern_scope scope, mica_regular **out, mica_error *err);

#endif
