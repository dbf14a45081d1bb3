/* regex.c - reads patterns: alternatives, sequences, quantifiers and groups. The notation is described in regular.h. Where
 * ECMA-262 without flag u gives a meaning to what is an error with it ({ } ] by themselves, a hyphen beside a class), that
 * meaning is taken, so that patterns written for other engines work; nothing is read in two ways. */
#include "constraint/regex_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/utf8.h"

#define MAX_PATTERN (1 << 16) /* bytes: far more than anybody writes, and bounds all else */

void mica_regex_fail(mica_regex_parser *p, mica_status code, size_t position, const char *format, ...)
{
    char what[256];
    va_list args;
    if (p->status)
        return;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    p->status = mica_fail_at(p->err, code, (int64_t)position, "%s (byte %zu of the pattern)", what, position);
}

static void fail_nomem(mica_regex_parser *p)
{
    if (!p->status)
        p->status = mica_regular_nomem(p->err);
}

int mica_regex_peek(const mica_regex_parser *p, size_t ahead)
{
    size_t left = p->at < p->length ? p->length - p->at : 0; /* after a failure, `at` may be behind the end */
    return left > ahead ? (unsigned char)p->pattern[p->at + ahead] : -1;
}

int mica_regex_hex(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* ---- Nodes and sets ---- */

static int32_t add_node(mica_regex_parser *p, mica_regex_node node)
{
    mica_regex *re = p->re;
    if (re->n_nodes == re->capacity) { /* a byte makes three nodes at most, so MAX_PATTERN bounds this */
        int32_t capacity = re->capacity ? re->capacity * 2 : 64;
        mica_regex_node *nodes = realloc(re->nodes, (size_t)capacity * sizeof *nodes);
        if (!nodes) {
            fail_nomem(p);
            return 0;
        }
        re->nodes = nodes;
        re->capacity = capacity;
    }
    node.sibling = -1;
    re->nodes[re->n_nodes] = node;
    return re->n_nodes++;
}

static uint32_t hash_set(const mica_ranges *set)
{
    uint32_t hash = 2166136261u; /* FNV-1a over words */
    for (size_t i = 0; i < set->n; i++) {
        hash = (hash ^ set->items[i].low) * 16777619u;
        hash = (hash ^ set->items[i].high) * 16777619u;
        hash ^= hash >> 15;
    }
    return hash;
}

/* The slot of this set, or the free one where it belongs. The table is never full. */
static int32_t *find_slot(const mica_regex *re, const mica_ranges *set)
{
    uint32_t mask = (uint32_t)re->n_slots - 1, i = hash_set(set) & mask;
    for (; re->table[i]; i = (i + 1) & mask) {
        const mica_ranges *other = &re->sets[re->table[i] - 1];
        if (other->n == set->n && (set->n == 0 || memcmp(other->items, set->items, set->n * sizeof *set->items) == 0))
            break;
    }
    return &re->table[i];
}

static bool grow_sets(mica_regex *re)
{
    int32_t capacity = re->sets_capacity ? re->sets_capacity * 2 : 16;
    mica_ranges *sets = realloc(re->sets, (size_t)capacity * sizeof *sets);
    int32_t *table = mica_new_array((size_t)capacity * 2, sizeof *table);
    re->sets = sets ? sets : re->sets;
    if (!sets || !table) {
        free(table);
        return false;
    }
    free(re->table);
    re->table = table;
    re->n_slots = capacity * 2;
    re->sets_capacity = capacity;
    for (int32_t i = 0; i < re->n_sets; i++)
        *find_slot(re, &sets[i]) = i + 1;
    return true;
}

/* A node that reads one character of a normalised set, which is taken over. */
static int32_t add_set(mica_regex_parser *p, mica_ranges *set)
{
    mica_regex *re = p->re;
    if (re->n_sets == re->sets_capacity && !grow_sets(re))
        fail_nomem(p);
    if (p->status) {
        mica_ranges_free(set);
        return 0;
    }
    int32_t *slot = find_slot(re, set);
    if (*slot)
        mica_ranges_free(set);
    else {
        re->sets[re->n_sets++] = *set;
        *slot = re->n_sets;
    }
    return add_node(p, (mica_regex_node){.kind = MICA_RE_SET, .child = -1, .set = *slot - 1});
}

static int32_t add_range_node(mica_regex_parser *p, uint32_t low, uint32_t high)
{
    mica_ranges set = {0};
    if (!mica_ranges_add(&set, low, high) || !mica_ranges_normalise(&set))
        fail_nomem(p);
    return add_set(p, &set);
}

/* ---- Quantifiers ---- */

/* Digits at p->at + *ahead; saturates, which is more than any limit. False: there is none. */
static bool read_number(const mica_regex_parser *p, size_t *ahead, int32_t *value)
{
    size_t start = *ahead;
    int64_t n = 0;
    for (int c; (c = mica_regex_peek(p, *ahead)) >= '0' && c <= '9'; (*ahead)++)
        n = n > INT32_MAX / 10 ? INT32_MAX : n * 10 + c - '0';
    *value = n > INT32_MAX ? INT32_MAX : (int32_t)n;
    return *ahead > start;
}

/* Reads {m}, {m,} or {m,n}; the length, or 0 if this is something else. */
static size_t read_counts(const mica_regex_parser *p, int32_t *min, int32_t *max)
{
    size_t ahead = 1;
    if (mica_regex_peek(p, 0) != '{' || !read_number(p, &ahead, min))
        return 0;
    *max = *min;
    if (mica_regex_peek(p, ahead) == ',') {
        ahead++;
        if (!read_number(p, &ahead, max))
            *max = MICA_G_NO_LIMIT;
    }
    return mica_regex_peek(p, ahead) == '}' ? ahead + 1 : 0;
}

/* The length of the quantifier at p->at, 0: there is none. */
static size_t read_quantifier(const mica_regex_parser *p, int32_t *min, int32_t *max)
{
    int c = mica_regex_peek(p, 0);
    *min = c == '+';
    *max = c == '?' ? 1 : MICA_G_NO_LIMIT;
    return c == '*' || c == '+' || c == '?' ? 1 : read_counts(p, min, max);
}

/* Applies the quantifier that follows a node, if there is one. */
static int32_t quantified(mica_regex_parser *p, int32_t node)
{
    int32_t min, max;
    size_t start = p->at, length = read_quantifier(p, &min, &max);
    if (length == 0 || p->status)
        return node;
    if (max != MICA_G_NO_LIMIT && max < min)
        mica_regex_fail(p, MICA_BAD_TEXT, start, "the counts of \"%.*s\" are out of order", length < 40 ? (int)length : 40,
                        p->pattern + start);
    p->at += length;
    if (mica_regex_peek(p, 0) == '?') /* lazy: which of the matches is found first makes no difference here */
        p->at++;
    return add_node(p, (mica_regex_node){.kind = MICA_RE_REPEAT, .child = node, .min = min, .max = max});
}

/* ---- Atoms ---- */

static int32_t read_dot(mica_regex_parser *p)
{
    mica_ranges set = {0};
    p->at++;
    if (!mica_ranges_add(&set, '\n', '\n') || !mica_ranges_add(&set, '\r', '\r') || !mica_ranges_add(&set, 0x2028, 0x2029) ||
        !mica_ranges_negate(&set))
        fail_nomem(p);
    return add_set(p, &set);
}

static int32_t read_escape(mica_regex_parser *p)
{
    mica_regex_item item = {0};
    mica_regex_escape(p, false, &item);
    return item.is_set ? add_set(p, &item.set) : add_range_node(p, item.code, item.code);
}

static int32_t read_character(mica_regex_parser *p)
{
    uint32_t code;
    p->at += mica_utf8_read(p->pattern + p->at, &code);
    return add_range_node(p, code, code);
}

/* Whether the pattern goes on with `text` at p->at. */
static bool is_at(const mica_regex_parser *p, const char *text)
{
    size_t n = strlen(text);
    return p->at < p->length && p->length - p->at >= n && memcmp(p->pattern + p->at, text, n) == 0;
}

/* Reads what opens a group. */
static void open_group(mica_regex_parser *p)
{
    static const struct refused {
        const char *opening, *name;
    } refused[] = {{"(?=", "look-ahead"}, {"(?!", "look-ahead"}, {"(?<=", "look-behind"}, {"(?<!", "look-behind"}};
    size_t start = p->at;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is_at(p, refused[i].opening))
            mica_regex_fail(p, MICA_UNSUPPORTED, start, "the %s \"%s\" cannot be enforced", refused[i].name,
                            refused[i].opening);
    if (!is_at(p, "(?")) {
        p->at += 1;
    } else if (is_at(p, "(?:")) {
        p->at += 3;
    } else if (is_at(p, "(?<")) {
        for (p->at += 3; mica_regex_peek(p, 0) >= 0 && !strchr("<>()[]{}|*+?^$. \\/", mica_regex_peek(p, 0)); p->at++) {
        }
        if (mica_regex_peek(p, 0) != '>' || p->at == start + 3)
            mica_regex_fail(p, MICA_BAD_TEXT, start, "the group \"(?<\" needs a name and \">\"");
        p->at++;
    } else
        mica_regex_fail(p, MICA_UNSUPPORTED, start,
                        "groups that begin with \"(?\" and something other than : or <name> cannot be used");
}

static int32_t read_alternatives(mica_regex_parser *p, int depth);

static int32_t read_group(mica_regex_parser *p, int depth)
{
    size_t start = p->at;
    if (depth >= MICA_RE_MAX_DEPTH)
        mica_regex_fail(p, MICA_INVALID_ARGUMENT, start, "groups are nested more than %d deep", MICA_RE_MAX_DEPTH);
    open_group(p);
    int32_t node = p->status ? 0 : read_alternatives(p, depth + 1);
    if (!p->status && mica_regex_peek(p, 0) != ')')
        mica_regex_fail(p, MICA_BAD_TEXT, start, "the parenthesis \"(\" is never closed");
    p->at++;
    return node;
}

/* One atom with its quantifier. */
static int32_t read_term(mica_regex_parser *p, int depth)
{
    int32_t min, max;
    size_t length = read_quantifier(p, &min, &max);
    if (length == 0 && is_at(p, "{,")) /* other engines take {,n} for {0,n} */
        mica_regex_fail(p, MICA_BAD_TEXT, p->at,
                        "\"{,\" needs a first number: {0,n}; a brace that stands for itself is written \\{");
    if (length)
        mica_regex_fail(p, MICA_BAD_TEXT, p->at, "there is nothing that \"%.*s\" could repeat", length < 40 ? (int)length : 40,
                        p->pattern + p->at);
    if (p->status)
        return 0;
    switch (p->pattern[p->at]) {
    case '^':
        p->at++;
        return add_node(p, (mica_regex_node){.kind = MICA_RE_START, .child = -1});
    case '$':
        p->at++;
        return add_node(p, (mica_regex_node){.kind = MICA_RE_END, .child = -1});
    case '(':
        return quantified(p, read_group(p, depth));
    case '[': {
        mica_ranges set = {0};
        mica_regex_class(p, &set);
        return quantified(p, add_set(p, &set));
    }
    case '.':
        return quantified(p, read_dot(p));
    case '\\':
        return quantified(p, read_escape(p));
    default:
        return quantified(p, read_character(p));
    }
}

/* Makes the list that begins with `first` a node; one alone stays what it is. */
static int32_t make_list(mica_regex_parser *p, mica_regex_kind kind, int32_t first)
{
    if (first < 0)
        return add_node(p, (mica_regex_node){.kind = MICA_RE_EMPTY, .child = -1});
    if (p->status || p->re->nodes[first].sibling < 0)
        return first;
    return add_node(p, (mica_regex_node){.kind = kind, .child = first});
}

/* Recursion: one level a group, see MICA_RE_MAX_DEPTH. */
static int32_t read_alternatives(mica_regex_parser *p, int depth)
{
    int32_t branches = -1;
    for (;;) {
        int32_t terms = -1;
        for (int c; !p->status && (c = mica_regex_peek(p, 0)) >= 0 && c != '|' && c != ')';) {
            int32_t term = read_term(p, depth);
            if (p->status)
                return 0;
            p->re->nodes[term].sibling = terms; /* the list is to run from the last to the first */
            terms = term;
        }
        int32_t branch = make_list(p, MICA_RE_SEQ, terms);
        if (p->status)
            return 0;
        p->re->nodes[branch].sibling = branches;
        branches = branch;
        if (mica_regex_peek(p, 0) != '|')
            return make_list(p, MICA_RE_ALT, branches);
        p->at++;
    }
}

/* ---- Patterns ---- */

mica_status mica_regex_parse(const char *pattern, size_t length, mica_regex *out, mica_error *err)
{
    mica_regex_parser p = {.pattern = pattern, .length = length, .re = out, .err = err};
    *out = (mica_regex){0};
    if (length > MAX_PATTERN)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the pattern is too large: %zu bytes, where at most %d are allowed",
                         length, MAX_PATTERN);
    size_t good = mica_utf8_check(pattern, length);
    if (good != length)
        mica_regex_fail(&p, MICA_BAD_TEXT, good, "the pattern is not valid UTF-8");
    else
        add_range_node(&p, 0, MICA_MAX_CODE); /* set 0 */
    if (!p.status)
        out->root = read_alternatives(&p, 0);
    if (!p.status && p.at < length)
        mica_regex_fail(&p, MICA_BAD_TEXT, p.at, "the parenthesis \")\" was never opened");
    free(p.runs);
    return p.status;
}

void mica_regex_free(mica_regex *re)
{
    for (int32_t i = 0; i < re->n_sets; i++)
        mica_ranges_free(&re->sets[i]);
    free(re->nodes);
    free(re->sets);
    free(re->table);
    *re = (mica_regex){0};
}

mica_status mica_regular_parse(const char *pattern, size_t length, mica_pattern_scope scope, mica_regular **out,
                               mica_error *err)
{
    mica_regex re;
    *out = NULL;
    mica_status status = mica_regex_parse(pattern, length, &re, err);
    if (!status)
        status = mica_regular_of_regex(&re, scope, out, err);
    mica_regex_free(&re);
    return status;
}

mica_status mica_grammar_from_regex(const char *pattern, size_t length, mica_grammar **out, mica_error *err)
{
    mica_regular *r;
    mica_grammar *g = NULL;
    *out = NULL;
    mica_status status = mica_regular_parse(pattern, length, MICA_PATTERN_WHOLE, &r, err);
    if (!status && mica_regular_is_empty(r))
        status = mica_fail(err, MICA_INVALID_ARGUMENT, "no text matches the pattern");
    if (!status)
        status = mica_grammar_new(&g, err);
    if (!status) {
        int32_t root = mica_grammar_rule(g, "root");
        mica_grammar_define(g, root, mica_grammar_regular(g, r, MICA_ENCODE_UTF8));
        status = mica_grammar_finish(g, root, err);
    }
    mica_regular_free(r);
    if (status) {
        mica_grammar_free(g);
        return status;
    }
    *out = g;
    return MICA_OK;
}
