/* gbnf.c - reads llama.cpp's grammar notation, as docs/grammars.md describes it. What is an error there and has a
 * meaning here: a line that begins with | goes on with the rule before it, and {,n} is {0,n}. */
#include "constraint/grammar.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "text/utf8.h"

#define MAX_DEPTH 200      /* parentheses within parentheses: bounds recursion */
#define MAX_NAME 100       /* bytes */
#define MAX_TEXT (1 << 24) /* bytes */

typedef struct parser {
    const char *text;
    size_t length, at;
    mica_grammar *g;
    mica_gnode *items; /* a stack: the elements of all sequences and alternatives that are open */
    size_t n_items, items_capacity;
    size_t *called_at; /* for each rule, where its name was met first */
    int32_t n_called, called_capacity;
    mica_buf literal;
} parser;

/* ---- Failure ---- */

/* Lines are counted from 1, columns too, in characters. */
static void find_place(const parser *p, size_t position, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < position; i++) {
        if (p->text[i] == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)p->text[i] & 0xC0) != 0x80)
            ++*column;
    }
}

static mica_gnode fail_at(parser *p, mica_status code, size_t position, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static mica_gnode fail_at(parser *p, mica_status code, size_t position, const char *format, ...)
{
    char what[320];
    size_t line, column;
    va_list args;
    if (p->g->failure)
        return MICA_GNODE_FAILED;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    find_place(p, position, &line, &column);
    return mica_grammar_fail(p->g, code, (int64_t)position, "%s (line %zu, column %zu of the grammar)", what, line, column);
}

static bool failed(const parser *p) { return p->g->failure != MICA_OK; }

static void fail_nomem(parser *p, size_t bytes)
{
    mica_grammar_fail(p->g, MICA_OUT_OF_MEMORY, -1, "out of memory: the system refused %zu bytes for a grammar", bytes);
}

/* ---- Characters and blanks ---- */

/* The byte at p->at + ahead, or -1 behind the end, where `at` may be after a failure. */
static int peek(const parser *p, size_t ahead)
{
    size_t left = p->at < p->length ? p->length - p->at : 0;
    return left > ahead ? (unsigned char)p->text[p->at + ahead] : -1;
}

static bool is_at(const parser *p, const char *text)
{
    size_t n = strlen(text);
    return p->at < p->length && p->length - p->at >= n && memcmp(p->text + p->at, text, n) == 0;
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static bool is_word(int c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'; }

static void skip_blanks(parser *p, bool newlines)
{
    for (int c; (c = peek(p, 0)) == ' ' || c == '\t' || c == '#' || (newlines && (c == '\r' || c == '\n'));) {
        if (c != '#')
            p->at++;
        while (c == '#' && peek(p, 0) >= 0 && peek(p, 0) != '\r' && peek(p, 0) != '\n')
            p->at++;
    }
}

static int hex_value(int c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* \xHH, \uHHHH, \UHHHHHHHH: a code point. p->at is at the backslash. */
static uint32_t read_hex_escape(parser *p, size_t n)
{
    size_t start = p->at;
    uint64_t code = 0;
    p->at += 2;
    for (size_t i = 0; i < n; i++, p->at++) {
        int digit = hex_value(peek(p, 0));
        if (digit < 0) {
            fail_at(p, MICA_BAD_TEXT, start, "the escape \"\\%c\" needs %zu hexadecimal digits", p->text[start + 1], n);
            return 0;
        }
        code = code * 16 + (uint64_t)digit;
    }
    if (code > 0x10FFFF)
        fail_at(p, MICA_BAD_TEXT, start, "U+%llX is not a character: the last is U+10FFFF", (unsigned long long)code);
    return (uint32_t)code;
}

/* One character of a literal or a class; there is one. */
static uint32_t read_character(parser *p)
{
    uint32_t code;
    size_t start = p->at;
    if (p->text[start] != '\\') {
        p->at += mica_utf8_read(p->text + start, &code);
        return code;
    }
    int c = peek(p, 1);
    switch (c) {
    case 'x':
        return read_hex_escape(p, 2);
    case 'u':
        return read_hex_escape(p, 4);
    case 'U':
        return read_hex_escape(p, 8);
    case 'n':
    case 'r':
    case 't':
    case '\\':
    case '"':
    case '[':
    case ']':
        p->at += 2;
        return c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : (uint32_t)c;
    default:
        if (c > ' ' && c < 0x7F)
            fail_at(p, MICA_BAD_TEXT, start,
                    "the escape \"\\%c\" has no meaning: \\n \\r \\t \\\\ \\\" \\[ \\] \\x \\u \\U have", c);
        else
            fail_at(p, MICA_BAD_TEXT, start, "a backslash must be followed by n r t \\ \" [ ] x u or U");
        return 0;
    }
}

/* ---- Elements ---- */

static mica_gnode read_literal(parser *p)
{
    size_t start = p->at++;
    p->literal.length = 0;
    while (!failed(p) && peek(p, 0) >= 0 && peek(p, 0) != '"') {
        char bytes[4];
        size_t at = p->at;
        uint32_t code = read_character(p);
        if (code >= 0xD800 && code < 0xE000)
            fail_at(p, MICA_BAD_TEXT, at,
                    "U+%04X is half of a surrogate pair: write the character or \\U with its code point", code);
        else if (!mica_buf_append(&p->literal, bytes, mica_utf8_write(code, bytes)))
            fail_nomem(p, p->literal.length);
    }
    if (peek(p, 0) != '"')
        fail_at(p, MICA_BAD_TEXT, start, "the quotation mark is never closed");
    p->at++;
    return mica_grammar_literal(p->g, p->literal.data, p->literal.length);
}

/* One member of a class: a character or a range. */
static void read_range(parser *p, mica_char_range *out)
{
    size_t start = p->at;
    out->low = out->high = read_character(p);
    if (failed(p) || peek(p, 0) != '-' || peek(p, 1) == ']' || peek(p, 1) < 0)
        return;
    p->at++;
    out->high = read_character(p);
    if (out->high < out->low)
        fail_at(p, MICA_BAD_TEXT, start, "the range \"%.*s\" in a class is out of order",
                p->at - start < 40 ? (int)(p->at - start) : 0, p->text + start);
}

static mica_gnode read_class(parser *p)
{
    size_t start = p->at++, n = 0, capacity = 0;
    mica_char_range *ranges = NULL;
    bool negate = peek(p, 0) == '^';
    p->at += negate;
    while (!failed(p) && peek(p, 0) >= 0 && peek(p, 0) != ']') {
        if (n == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            mica_char_range *bigger = realloc(ranges, capacity * sizeof *ranges);
            if (!bigger) {
                fail_nomem(p, capacity * sizeof *ranges);
                break;
            }
            ranges = bigger;
        }
        read_range(p, &ranges[n++]);
    }
    if (peek(p, 0) != ']')
        fail_at(p, MICA_BAD_TEXT, start, "the bracket \"[\" is never closed");
    else if (n == 0)
        fail_at(p, MICA_BAD_TEXT, start, "the class has no characters");
    p->at++;
    mica_gnode node = failed(p) ? MICA_GNODE_FAILED : mica_grammar_chars(p->g, ranges, n, negate);
    free(ranges);
    return node;
}

/* The rule of the name at p->at. */
static int32_t read_name(parser *p)
{
    char name[MAX_NAME + 1];
    size_t start = p->at, n;
    while (is_word(peek(p, 0)))
        p->at++;
    n = p->at - start;
    if (n == 0 || n > MAX_NAME)
        return fail_at(p, MICA_BAD_TEXT, start, n ? "the name of a rule is too long" : "the name of a rule is expected here");
    memcpy(name, p->text + start, n);
    name[n] = '\0';
    int32_t rule = mica_grammar_rule(p->g, name);
    if (rule < p->n_called)
        return rule;
    if (rule == p->called_capacity) {
        int32_t capacity = p->called_capacity ? p->called_capacity * 2 : 64;
        size_t *called_at = realloc(p->called_at, (size_t)capacity * sizeof *called_at);
        if (!called_at) {
            fail_nomem(p, (size_t)capacity * sizeof *called_at);
            return MICA_GNODE_FAILED;
        }
        p->called_at = called_at;
        p->called_capacity = capacity;
    }
    p->called_at[p->n_called++] = start;
    return rule;
}

static mica_gnode read_alternatives(parser *p, int depth);

static mica_gnode read_group(parser *p, int depth)
{
    size_t start = p->at++;
    if (depth >= MAX_DEPTH)
        return fail_at(p, MICA_INVALID_ARGUMENT, start, "parentheses are nested more than %d deep", MAX_DEPTH);
    skip_blanks(p, true);
    mica_gnode node = read_alternatives(p, depth + 1);
    if (peek(p, 0) != ')')
        fail_at(p, MICA_BAD_TEXT, start,
                "the parenthesis \"(\" is never closed, or something before its end is not understood");
    p->at++;
    return node;
}

/* An element; false if what follows is none: the sequence is over. */
static bool read_element(parser *p, int depth, mica_gnode *out)
{
    int c = peek(p, 0);
    if (c == '"')
        *out = read_literal(p);
    else if (c == '[')
        *out = read_class(p);
    else if (c == '(')
        *out = read_group(p, depth);
    else if (is_word(c))
        *out = mica_grammar_call(p->g, read_name(p));
    else if (c == '.') {
        p->at++;
        *out = mica_grammar_chars(p->g, NULL, 0, true);
    } else if (c == '<' || (c == '!' && peek(p, 1) == '<'))
        *out = fail_at(p, MICA_UNSUPPORTED, p->at,
                       "a grammar is about text here: tokens such as <[123]> or !<...> cannot be named");
    else
        return false;
    return true;
}

/* ---- Repetition ---- */

/* A number at p->at; saturates: any such bound is as good as none. False: there is no digit. */
static bool read_number(parser *p, int32_t *value)
{
    int64_t n = 0;
    if (!is_digit(peek(p, 0)))
        return false;
    for (; is_digit(peek(p, 0)); p->at++)
        n = n > INT32_MAX ? n : n * 10 + peek(p, 0) - '0';
    *value = n > INT32_MAX ? INT32_MAX : (int32_t)n;
    return true;
}

/* {m}, {m,} and {m,n}, also {,n}; p->at is at the brace. */
static void read_counts(parser *p, bool newlines, int32_t *min, int32_t *max)
{
    size_t start = p->at++;
    skip_blanks(p, newlines);
    bool has_min = read_number(p, min);
    if (!has_min)
        *min = 0;
    *max = *min;
    skip_blanks(p, newlines);
    if (peek(p, 0) == ',') {
        p->at++;
        skip_blanks(p, newlines);
        if (!read_number(p, max)) {
            *max = MICA_G_NO_LIMIT;
            has_min = has_min || peek(p, 0) != '}';
        } else
            has_min = true;
        skip_blanks(p, newlines);
    }
    if (peek(p, 0) != '}' || !has_min)
        fail_at(p, MICA_BAD_TEXT, start, "a repetition is written {m}, {m,} or {m,n}");
    else if (*max != MICA_G_NO_LIMIT && *max < *min)
        fail_at(p, MICA_BAD_TEXT, start, "the counts {%d,%d} are out of order", *min, *max);
    p->at++;
}

/* The repetitions behind an element. */
static mica_gnode read_repetitions(parser *p, mica_gnode node, bool newlines)
{
    for (int c; !failed(p) && ((c = peek(p, 0)) == '*' || c == '+' || c == '?' || c == '{');) {
        int32_t min = c == '+', max = c == '?' ? 1 : MICA_G_NO_LIMIT;
        if (c == '{')
            read_counts(p, newlines, &min, &max);
        else
            p->at++;
        node = mica_grammar_repeat(p->g, node, min, max);
        skip_blanks(p, newlines);
    }
    return node;
}

/* ---- Sequences, alternatives, rules ---- */

static void push(parser *p, mica_gnode node)
{
    if (p->n_items == p->items_capacity) {
        size_t capacity = p->items_capacity ? p->items_capacity * 2 : 64;
        mica_gnode *items = realloc(p->items, capacity * sizeof *items);
        if (!items) {
            fail_nomem(p, capacity * sizeof *items);
            return;
        }
        p->items = items;
        p->items_capacity = capacity;
    }
    p->items[p->n_items++] = node;
}

static mica_gnode read_sequence(parser *p, int depth)
{
    size_t first = p->n_items;
    mica_gnode node;
    while (!failed(p) && read_element(p, depth, &node)) {
        skip_blanks(p, depth > 0);
        push(p, read_repetitions(p, node, depth > 0));
    }
    int c = peek(p, 0);
    if (c == '*' || c == '+' || c == '?' || c == '{')
        fail_at(p, MICA_BAD_TEXT, p->at, "there is nothing that \"%c\" could repeat", c);
    node = mica_grammar_seq(p->g, p->items + first, p->n_items - first);
    p->n_items = first;
    return node;
}

/* Whether the next line goes on with | ; then p->at is moved there. */
static bool continues(parser *p)
{
    size_t at = p->at;
    skip_blanks(p, true);
    if (peek(p, 0) == '|')
        return true;
    p->at = at;
    return false;
}

/* Recursion: one level a parenthesis, see MAX_DEPTH. */
static mica_gnode read_alternatives(parser *p, int depth)
{
    size_t first = p->n_items;
    push(p, read_sequence(p, depth));
    while (!failed(p) && continues(p)) {
        p->at++;
        skip_blanks(p, true);
        push(p, read_sequence(p, depth));
    }
    mica_gnode node = mica_grammar_alt(p->g, p->items + first, p->n_items - first);
    p->n_items = first;
    return node;
}

static void read_rule(parser *p)
{
    size_t start = p->at;
    int32_t rule = read_name(p);
    skip_blanks(p, false);
    if (!is_at(p, "::="))
        fail_at(p, MICA_BAD_TEXT, p->at, "\"::=\" is expected behind the name of a rule");
    if (failed(p))
        return;
    if (p->g->rules[rule].body >= 0)
        fail_at(p, MICA_BAD_TEXT, start, "rule \"%s\" is defined a second time", p->g->rules[rule].name);
    p->at += 3;
    skip_blanks(p, true);
    mica_grammar_define(p->g, rule, read_alternatives(p, 0));
    if (peek(p, 0) >= 0 && peek(p, 0) != '\n' && peek(p, 0) != '\r')
        fail_at(p, MICA_BAD_TEXT, p->at, "this is not understood here: an element, \"|\" or the end of the line is expected");
    skip_blanks(p, true);
}

/* Reads all rules. The root's rule, or -1 if the grammar has failed. */
static int32_t read_rules(parser *p)
{
    mica_grammar *g = p->g;
    skip_blanks(p, true);
    while (!failed(p) && p->at < p->length)
        read_rule(p);
    for (int32_t r = 0; r < g->n_rules && !failed(p); r++)
        if (g->rules[r].body < 0)
            fail_at(p, MICA_BAD_TEXT, p->called_at[r], "rule \"%s\" is used but not defined", g->rules[r].name);
    int32_t n_rules = g->n_rules, root = mica_grammar_rule(g, "root");
    if (!failed(p) && root == n_rules)
        mica_grammar_fail(g, MICA_BAD_TEXT, -1, "the grammar has no rule \"root\", which is where texts begin");
    return root;
}

mica_status mica_grammar_from_gbnf(const char *text, size_t length, mica_grammar **out, mica_error *err)
{
    parser p = {.text = text, .length = length};
    *out = NULL;
    if (length > MAX_TEXT)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the grammar is too large: %zu bytes, where at most %d are allowed",
                         length, MAX_TEXT);
    size_t good = mica_utf8_check(text, length);
    if (good != length)
        return mica_fail_at(err, MICA_BAD_TEXT, (int64_t)good, "the grammar is not valid UTF-8 at byte %zu", good);
    mica_status status = mica_grammar_new(&p.g, err);
    if (status)
        return status;
    mica_buf_init(&p.literal, MAX_TEXT);
    push(&p, 0); /* so that `items` is never NULL */
    int32_t root = failed(&p) ? -1 : read_rules(&p);
    status = mica_grammar_finish(p.g, root, err);
    free(p.items);
    free(p.called_at);
    mica_buf_free(&p.literal);
    if (status) {
        mica_grammar_free(p.g);
        return status;
    }
    *out = p.g;
    return MICA_OK;
}
