/* tmpl_value.h - the values of a template, and the state of one rendering.
 *
 * A value is 16 bytes and copied freely; what it points to lives in the arena of the rendering (or of the compiled template)
 * and is never changed after it was published, except for namespaces, generators, loops, cyclers and joiners: sharing is safe.
 *
 * Invariants:
 *  1. A string is valid UTF-8 of at most MICA_TMPL_MAX_TEXT bytes. Positions that templates see count code points.
 *  2. Data may be nested deeper than the C stack allows, so every recursive walk over data stops at MICA_TMPL_MAX_NESTING.
 *  3. A function that returns false has called mica_run_fail() (or a function that did), and *out is then unspecified.
 */
#ifndef MICA_TEXT_TMPL_VALUE_H
#define MICA_TEXT_TMPL_VALUE_H
#include "base/buf.h"
#include "base/error.h"
#include "text/tmpl_arena.h"

/* Limits. A template of a published model stays below a thousandth of each. */
#define MICA_TMPL_MAX_SOURCE ((size_t)1 << 20)  /* bytes of template text */
#define MICA_TMPL_MAX_TEXT ((size_t)16 << 20)   /* bytes of one string, and of the output */
#define MICA_TMPL_BUFFER (8 * MICA_TMPL_MAX_TEXT) /* maximum of buffers: no string grows more than 7 times before its check */
#define MICA_TMPL_MAX_MEMORY ((size_t)128 << 20) /* bytes of one rendering */
#define MICA_TMPL_MAX_STEPS 10000000            /* evaluated nodes, iterations, and 64-byte units of work on text */
#define MICA_TMPL_MAX_DEPTH 700                 /* nested evaluations: nesting of the template times macro recursion */
#define MICA_TMPL_MAX_NODE_DEPTH 200            /* nesting of one template */
#define MICA_TMPL_MAX_NESTING 200               /* nesting of data */
#define MICA_TMPL_MAX_RANGE 100000              /* items of range(); jinja2's sandbox has the same */

typedef enum mica_vtype {
    MICA_V_MISSING, /* no value: an argument that was not given, a variable that was not set. Templates never see it */
    MICA_V_UNDEFINED,
    MICA_V_NONE,
    MICA_V_BOOL,
    MICA_V_INT,
    MICA_V_FLOAT,
    MICA_V_STR,
    MICA_V_LIST,
    MICA_V_TUPLE,
    MICA_V_DICT,
    MICA_V_NAMESPACE,
    MICA_V_RANGE,
    MICA_V_GEN,      /* an iterator: can be walked once */
    MICA_V_VIEW,     /* keys(), values() or items() of a dict; aux is a mica_view */
    MICA_V_FUNCTION, /* a global function; aux is a mica_function */
    MICA_V_METHOD,   /* a method bound to its object */
    MICA_V_MACRO,
    MICA_V_LOOP,
    MICA_V_CYCLER,
    MICA_V_JOINER,
    MICA_V_SELF, /* the name `self`: blocks of a template, of which there are none */
} mica_vtype;

enum {
    MICA_VF_ASCII = 1,  /* string: every byte is one code point */
    MICA_VF_MARKUP = 2, /* string: markupsafe's Markup, which escapes what is added to it */
    MICA_VF_GROUP = 4,  /* tuple: made by groupby, has .grouper and .list */
};

typedef enum mica_view { MICA_VIEW_KEYS, MICA_VIEW_VALUES, MICA_VIEW_ITEMS } mica_view;

/* aux of an undefined value: how its error message reads. `s` is the name or the whole message. */
typedef enum mica_undef { MICA_UNDEF_NAME, MICA_UNDEF_ATTR, MICA_UNDEF_HINT } mica_undef;

struct mica_seq;
struct mica_dict;
struct mica_range;
struct mica_iter;
struct mica_method;
struct mica_macro;
struct mica_loop;
struct mica_cycler;

typedef struct mica_val {
    uint8_t type, flags;
    uint16_t aux;
    uint32_t len; /* strings and names: bytes */
    union {
        bool b;
        int64_t i;
        double f;
        const char *s;
        struct mica_seq *seq;
        struct mica_dict *dict; /* also of namespaces and views */
        struct mica_range *range;
        struct mica_iter *iter;
        struct mica_method *method;
        struct mica_macro *macro;
        struct mica_loop *loop;
        struct mica_cycler *cycler; /* also of joiners */
    };
} mica_val;

typedef struct mica_seq {
    size_t n, capacity;
    mica_val *items;
} mica_seq;

typedef struct mica_pair {
    mica_val key, value;
    uint64_t hash;
} mica_pair;

/* Keeps insertion order. Up to 8 pairs are searched in order, more through `index` (pair number + 1, open addressing). */
typedef struct mica_dict {
    size_t n, capacity;
    mica_pair *pairs;
    uint32_t *index;
    size_t n_index; /* a power of two, or 0 */
} mica_dict;

typedef struct mica_range {
    int64_t start, stop, step, n;
} mica_range;

typedef struct mica_method {
    mica_val self;
    const struct mica_method_def *def;
} mica_method;

typedef struct mica_cycler {
    mica_val *items;
    size_t n, pos;
    mica_val separator; /* joiner */
    bool used;          /* joiner */
} mica_cycler;

/* The free room behind a string that was made by appending to another one. Who appends to the string that ends at `end` may use
 * it: strings that share the bytes before stay what they are. So `s = s ~ piece` in a loop is linear. */
typedef struct mica_tail {
    char *end;
    size_t room;
} mica_tail;

#define MICA_N_TAILS 4 /* strings that grow at the same time, the oldest is given up */

/* One rendering. */
typedef struct mica_run {
    mica_tarena arena;
    mica_buf out;
    const struct mica_template *tmpl;
    mica_val *resolved; /* by symbol: what the name means outside of the template; MISSING until looked up, see tmpl_exec.c */
    uint8_t *is_resolved;
    mica_dict *variables; /* of the request */
    int64_t now_unix;
    uint64_t hash_seed;
    mica_tail tails[MICA_N_TAILS];
    unsigned next_tail;
    int64_t steps;
    int depth;
    bool failed;
    mica_status code;
    uint32_t line, offset; /* of the failure; line 0: not known yet, the evaluator fills it in */
    char message[400];
} mica_run;

/** Records a failure; the first one stays. */
void mica_run_record(mica_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The same as an expression that is false, visibly so for the compiler's analysis of what is initialised. */
#define mica_run_fail(...) (mica_run_record(__VA_ARGS__), false)
/** The failure after the arena or the output gave nothing. Returns false. */
void mica_run_record_no_memory(mica_run *run);
static inline bool mica_run_no_memory(mica_run *run)
{
    mica_run_record_no_memory(run);
    return false;
}
/** Counts work; false when the limit is reached. `bytes` is the text that was looked at. */
bool mica_run_charge(mica_run *run, size_t bytes);

#define MICA_MISSING ((mica_val){.type = MICA_V_MISSING})
#define MICA_NONE ((mica_val){.type = MICA_V_NONE})

static inline mica_val mica_val_bool(bool b) { return (mica_val){.type = MICA_V_BOOL, .b = b}; }
static inline mica_val mica_val_int(int64_t i) { return (mica_val){.type = MICA_V_INT, .i = i}; }
static inline mica_val mica_val_float(double f) { return (mica_val){.type = MICA_V_FLOAT, .f = f}; }
static inline bool mica_val_is_str(const mica_val *v) { return v->type == MICA_V_STR; }
static inline bool mica_val_is_int(const mica_val *v) { return v->type == MICA_V_INT || v->type == MICA_V_BOOL; }
static inline bool mica_val_is_number(const mica_val *v) { return mica_val_is_int(v) || v->type == MICA_V_FLOAT; }
static inline int64_t mica_val_as_int(const mica_val *v) { return v->type == MICA_V_BOOL ? (int64_t)v->b : v->i; }
/** Name of the type as Python has it, for messages. */
const char *mica_val_type_name(const mica_val *v);

/* Strings. The text is borrowed by mica_val_text (it must live as long as the rendering) and copied by mica_val_copy. */
mica_val mica_val_text(const char *text, size_t length);
mica_val mica_val_literal(const char *text);
bool mica_val_copy(mica_run *run, const char *text, size_t length, mica_val *out);
/** `length` writable bytes that become the string *out; flags other than ASCII are the caller's. Fails over the maximum. */
bool mica_val_new_text(mica_run *run, size_t length, char **bytes, mica_val *out);
/** Sets the ASCII flag according to the bytes. */
void mica_val_scan(mica_val *s);
/** Takes the bytes of `buf`, frees it, and makes the string. */
bool mica_val_from_buf(mica_run *run, mica_buf *buf, mica_val *out);
bool mica_val_concat(mica_run *run, const mica_val *a, const mica_val *b, mica_val *out);
/** n >= 1 strings one after the other, as plain text. */
bool mica_val_join(mica_run *run, const mica_val *parts, size_t n, mica_val *out);
bool mica_val_same_text(const mica_val *a, const mica_val *b);
static inline bool mica_val_is(const mica_val *s, const char *text, size_t n)
{
    return s->len == n && __builtin_memcmp(s->s, text, n) == 0;
}
/** For "%.*s" in messages: the start of a string, cut at a character. */
int mica_val_shown(const mica_val *s);
#define MICA_SHOW(v) mica_val_shown(v), (v)->s
/** Code points. */
size_t mica_val_count(const mica_val *s);
/** Code points [from, to) with 0 <= from <= to <= count; shares the bytes. */
mica_val mica_val_sub(const mica_val *s, size_t from, size_t to);

/* Undefined values. */
mica_val mica_val_undefined_name(const mica_val *name);
bool mica_val_undefined_attr(mica_run *run, const mica_val *object, const mica_val *name, mica_val *out);
mica_val mica_val_undefined_hint(const char *hint);
/** The failure that using `v` (undefined) is. Returns false. */
void mica_run_record_undefined(mica_run *run, const mica_val *v);
static inline bool mica_run_fail_undefined(mica_run *run, const mica_val *v)
{
    mica_run_record_undefined(run, v);
    return false;
}

/* Lists and tuples: made, filled, then published. */
bool mica_seq_new(mica_run *run, mica_vtype type, size_t capacity, mica_val *out);
bool mica_seq_push(mica_run *run, mica_val *list, const mica_val *item);
bool mica_tuple_new(mica_run *run, const mica_val *items, size_t n, mica_val *out);

/* Dicts (and namespaces). */
bool mica_dict_new(mica_run *run, mica_vtype type, size_t capacity, mica_val *out);
/** Fails for a key that cannot be hashed (list, dict, ...). */
bool mica_dict_set(mica_run *run, mica_dict *dict, const mica_val *key, const mica_val *value);
bool mica_dict_find(mica_run *run, const mica_dict *dict, const mica_val *key, const mica_val **value);
/** By text; never fails. */
const mica_val *mica_dict_get(const mica_run *run, const mica_dict *dict, const char *key, size_t length);

#endif
