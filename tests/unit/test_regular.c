/* test_regular.c - patterns, the languages they stand for, their operations and encodings. Expected answers are written down
 * here or, for a few hundred random patterns, come from Python's re (data/regex/make.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "constraint/regular_impl.h"
#include "grammar_match.h"
#include "text/utf8.h"

static mica_regular *parse_n(const char *pattern, size_t length, mica_pattern_scope scope)
{
    mica_regular *r;
    mica_error err = {.message = ""};
    if (mica_regular_parse(pattern, length, scope, &r, &err))
        fail_msg("%s: %s", pattern, err.message);
    return r;
}

static mica_regular *parse(const char *pattern) { return parse_n(pattern, strlen(pattern), MICA_PATTERN_WHOLE); }
static mica_regular *search(const char *pattern) { return parse_n(pattern, strlen(pattern), MICA_PATTERN_SEARCH); }

static bool matches(const mica_regular *r, const char *text) { return mica_regular_matches(r, text, strlen(text)); }

/* The language as the whole of a grammar; NULL if it is empty. */
static mica_grammar *encoded(const mica_regular *r, mica_encoding encoding)
{
    mica_grammar *g;
    mica_error err;
    assert_int_equal(mica_grammar_new(&g, &err), MICA_OK);
    int32_t root = mica_grammar_rule(g, "root");
    mica_grammar_define(g, root, mica_grammar_regular(g, r, encoding));
    mica_status status = mica_grammar_finish(g, root, &err);
    assert_int_equal(status, mica_regular_is_empty(r) ? MICA_INVALID_ARGUMENT : MICA_OK);
    if (!status)
        return g;
    mica_grammar_free(g);
    return NULL;
}

/* ---- Tables ---- */

typedef struct row {
    const char *pattern;
    char scope; /* 'w' whole, 's' search */
    const char *accept[8], *reject[8];
} row;

static const row table[] = {
    {"", 'w', {""}, {"a"}},
    {"", 's', {"", "a", "\n"}, {NULL}},
    {"a|b|", 'w', {"a", "b", ""}, {"ab", "c"}},
    {"a*b+c?", 'w', {"b", "aab", "abbc"}, {"", "a", "c", "abcc", "ac"}},
    {"a*?b+?c??", 'w', {"b", "aab", "abbc"}, {"", "a", "c", "abcc"}},
    {"(ab){2}", 'w', {"abab"}, {"ab", "ababab", ""}},
    {"a{2,}", 'w', {"aa", "aaaaaaa"}, {"", "a", "aab"}},
    {"a{0,2}", 'w', {"", "a", "aa"}, {"aaa"}},
    {"a{0}b", 'w', {"b"}, {"ab", ""}},
    {"(a|b){1,2}?c", 'w', {"ac", "bbc"}, {"c", "abac"}},
    {"(){1000000000}a", 'w', {"a"}, {""}},
    {"(?:a|(b))(?<name>c)", 'w', {"ac", "bc"}, {"c", "abc"}},
    {".", 'w', {"a", "\x7F", "€", "😀", "\t", "\x0B", "\xC2\x85"}, {"\n", "\r", "\xE2\x80\xA8", "\xE2\x80\xA9", "", "ab"}},
    {"[^]", 'w', {"\n", "a", "😀"}, {""}},
    {"[]|x", 'w', {"x"}, {"", "[]", "]"}},
    {"[a-c\\d_-]", 'w', {"a", "c", "5", "_", "-"}, {"d", "\\", ""}},
    {"[-a]", 'w', {"-", "a"}, {"b"}},
    {"[\\w-.]", 'w', {"-", "a", "."}, {"/", "\\"}},
    {"[a-\\d]", 'w', {"-", "a", "7"}, {"b", "d"}},
    {"[^\\W_]", 'w', {"a", "Z", "9"}, {"_", "-", "é"}},
    {"[\\D]", 'w', {"a", "€"}, {"3"}},
    {"[\\b]", 'w', {"\b"}, {"b"}},
    {"[\\]\\[\\^\\\\]", 'w', {"]", "[", "^", "\\"}, {"a", ""}},
    {"[à-ÿ]", 'w', {"é", "à", "ÿ"}, {"e", "Ā"}},
    {"\\d\\D", 'w', {"1a", "1é"}, {"11", "a1", "\xD9\xA3" "a"}},
    {"\\w\\W", 'w', {"a ", "_é"}, {"é ", "aa"}},
    {"\\s", 'w', {" ", "\t", "\xC2\xA0", "\xEF\xBB\xBF", "\xE3\x80\x80", "\xE2\x80\xA8", "\v"},
     {"\xC2\x85", "\xE1\xA0\x8E", "a"}},
    {"\\S", 'w', {"a", "\xC2\x85"}, {" ", "\n"}},
    {"\\t\\n\\v\\f\\r\\0?", 'w', {"\t\n\v\f\r"}, {"tnvfr"}},
    {"\\cJ\\cj", 'w', {"\n\n"}, {"JJ"}},
    {"\\x41\\u00e9\\u{1F600}\\uD83D\\uDE00", 'w', {"Aé😀😀"}, {"A"}},
    {"[\\uD83D\\uDE00-\\u{1F64F}]", 'w', {"😀", "🙏"}, {"🚀"}},
    {"\\uD83Dx|y", 'w', {"y"}, {"x"}}, /* half a pair is in no text */
    {"\\/\\.\\-\\_\\ \\\"\\{\\}", 'w', {"/.-_ \"{}"}, {""}},
    {"{x}|]|}", 'w', {"{x}", "]", "}"}, {"x"}},
    {"^ab$", 'w', {"ab"}, {"ab\n", "cab"}},
    {"^ab$", 's', {"ab"}, {"ab\n", "xab", "abx", "\nab"}},
    {"ab", 's', {"ab", "xxabxx", "\nab\n"}, {"a", "a b", ""}},
    {"^ab", 's', {"ab", "abc"}, {"xab"}},
    {"ab$", 's', {"ab", "xab"}, {"abx"}},
    {"^a|b$", 's', {"a", "ax", "xb", "b"}, {"xa", "bx", ""}},
    {"(^a|b)c", 's', {"ac", "bc", "xbc"}, {"xac"}},
    {"x^a|b$x|c", 's', {"c", "xc"}, {"xa", "bx", "a"}},
    {"x*^a", 's', {"a", "ab"}, {"xa", "x"}},
    {"(^|,)a(,|$)", 's', {"a", "b,a", "a,b", "b,a,c"}, {"ba", "ab", ""}},
    {"(^a|b)*c$", 's', {"c", "abbc", "xc", "xbbc"}, {"cx", ""}},
    {"$^", 's', {""}, {"a"}},
    {"^$", 'w', {""}, {"a"}},
    {"($)*", 'w', {""}, {"a"}},
    {"^^a$$", 's', {"a"}, {"aa"}},
    {"(a*)*", 'w', {"", "aaa"}, {"b"}},
    {"(a?){3}", 'w', {"", "a", "aaa"}, {"aaaa"}},
    {"(a|ab)(c|bcd)(d*)", 'w', {"abcd", "abcdd", "ac"}, {"abd", "a"}},
    {"\\p{Lu}\\p{Letter}", 'w', {"Éa", "Aé", "ЖЯ"}, {"éa", "A1", "A"}},
    {"\\P{L}", 'w', {"1", "€"}, {"a", "é"}},
    {"[\\p{Nd}\\p{gc=Sc}x]", 'w', {"1", "\xD9\xA3", "€", "$", "x"}, {"a", "½"}},
    {"\\p{Any}\\p{ASCII}\\p{AHex}", 'w', {"éaF", "😀~0"}, {"aéF", "aag"}},
    {"\\p{Assigned}", 'w', {"a"}, {"\xF4\x8F\xBF\xBF"}},
    /* gr-01-pattern-classes and gr-02-pattern-escapes */
    {"^\\d+$", 's', {"123"}, {"12a", ""}},
    {"^[\\w-]+$", 's', {"a-b_9"}, {"a b"}},
    {"^\\S+\\s\\D$", 's', {"ab c", "a b"}, {"ab 7"}},
    {"^(https:\\/\\/)?(www\\.)?a-z\\.test\\/[a-z0-9_\\-\\.]{1,8}\\/?$", 's', {"https://www.a-z.test/ab.c-d/", "a-z.test/x"},
     {"https:/a-z.test/x", "a-z.test/", "a-z.test/123456789"}},
    {"^[\\]\\[\\^\\\\]$", 's', {"]", "\\", "^"}, {"a"}},
};

static void test_table(void **state)
{
    (void)state;
    int n = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const row *t = &table[i];
        mica_regular *r = t->scope == 'w' ? parse(t->pattern) : search(t->pattern);
        mica_grammar *g = encoded(r, MICA_ENCODE_UTF8);
        for (int k = 0; k < 8 && t->accept[k]; k++, n++)
            if (!matches(r, t->accept[k]) || !grammar_matches(g, t->accept[k], strlen(t->accept[k])))
                fail_msg("%s does not match \"%s\"", t->pattern, t->accept[k]);
        for (int k = 0; k < 8 && t->reject[k]; k++, n++)
            if (matches(r, t->reject[k]) || grammar_matches(g, t->reject[k], strlen(t->reject[k])))
                fail_msg("%s matches \"%s\"", t->pattern, t->reject[k]);
        mica_grammar_free(g);
        mica_regular_free(r);
    }
    assert_true(n > 200);
}

/* ---- What is refused ---- */

static const struct refused {
    const char *pattern;
    mica_status status;
    int64_t position;
    const char *word;
} refused[] = {
    {"^a(?=b)$", MICA_UNSUPPORTED, 2, "look-ahead"}, /* the first four: gr-15-fail-closed */
    {"^(a\\1)$", MICA_UNSUPPORTED, 3, "back-reference"},
    {"^[z-a]$", MICA_BAD_TEXT, 2, "z-a"},
    {"(", MICA_BAD_TEXT, 0, "never closed"},
    {"a(?!b)", MICA_UNSUPPORTED, 1, "look-ahead"},
    {"(?<=a)b", MICA_UNSUPPORTED, 0, "look-behind"},
    {"(?<!a)b", MICA_UNSUPPORTED, 0, "look-behind"},
    {"a\\b", MICA_UNSUPPORTED, 1, "word boundary"},
    {"\\B", MICA_UNSUPPORTED, 0, "word boundary"},
    {"(?<n>a)\\k<n>", MICA_UNSUPPORTED, 7, "back-reference"},
    {"(?i)a", MICA_UNSUPPORTED, 0, "(?"},
    {"(?P<n>a)", MICA_UNSUPPORTED, 0, "(?"},
    {"\\p{Script=Greek}", MICA_UNSUPPORTED, 0, "Script=Greek"},
    {"x\\p{gc=Any}", MICA_UNSUPPORTED, 1, "gc=Any"},
    {"\\p", MICA_BAD_TEXT, 0, "braces"},
    {"\\p{L", MICA_BAD_TEXT, 0, "braces"},
    {"é)", MICA_BAD_TEXT, 2, "never opened"},
    {"a(b|c", MICA_BAD_TEXT, 1, "never closed"},
    {"a[bc", MICA_BAD_TEXT, 1, "never closed"},
    {"[a\\", MICA_BAD_TEXT, 2, "backslash"},
    {"a\\", MICA_BAD_TEXT, 1, "backslash"},
    {"\\é", MICA_BAD_TEXT, 0, "backslash"},
    {"*a", MICA_BAD_TEXT, 0, "repeat"},
    {"a|+", MICA_BAD_TEXT, 2, "repeat"},
    {"(?)", MICA_UNSUPPORTED, 0, "(?"},
    {"a**", MICA_BAD_TEXT, 2, "repeat"},
    {"a++", MICA_BAD_TEXT, 2, "repeat"},
    {"^*", MICA_BAD_TEXT, 1, "repeat"},
    {"a{2}{3}", MICA_BAD_TEXT, 4, "{3}"},
    {"a{3,2}", MICA_BAD_TEXT, 1, "{3,2}"},
    {"a{,2}", MICA_BAD_TEXT, 1, "{0,n}"},
    {"(?<>a)", MICA_BAD_TEXT, 0, "name"},
    {"(?<a", MICA_BAD_TEXT, 0, "name"},
    {"\\q", MICA_BAD_TEXT, 0, "\\q"},
    {"\\A", MICA_BAD_TEXT, 0, "\\A"},
    {"\\01", MICA_BAD_TEXT, 0, "\\0"},
    {"\\c1", MICA_BAD_TEXT, 0, "\\c"},
    {"\\x4", MICA_BAD_TEXT, 0, "two"},
    {"\\u00g0", MICA_BAD_TEXT, 0, "four"},
    {"\\u{}", MICA_BAD_TEXT, 0, "braces"},
    {"\\u{110000}", MICA_BAD_TEXT, 0, "10FFFF"},
    {"[\\1]", MICA_BAD_TEXT, 1, "\\1"},
    {"[\\B]", MICA_BAD_TEXT, 1, "\\B"},
    {"ab\xC3", MICA_BAD_TEXT, 2, "UTF-8"},
    {"a{100000}", MICA_INVALID_ARGUMENT, -1, "too large"},
    {"((a{1000}){1000}){1000}", MICA_INVALID_ARGUMENT, -1, "too large"},
    {"(a|b)*a(a|b){30}", MICA_INVALID_ARGUMENT, -1, "too large"},
    {"a{99999999999999999999}", MICA_INVALID_ARGUMENT, -1, "too large"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct refused *t = &refused[i];
        mica_regular *r = (mica_regular *)1;
        mica_error err = {.message = ""};
        mica_status status = mica_regular_parse(t->pattern, strlen(t->pattern), MICA_PATTERN_SEARCH, &r, &err);
        if (status != t->status || err.code != status || err.position != t->position || !strstr(err.message, t->word))
            fail_msg("%s: %s at %d: %s", t->pattern, mica_status_name(status), (int)err.position, err.message);
        assert_null(r);
        assert_int_equal(mica_utf8_check(err.message, strlen(err.message)), strlen(err.message));
    }
}

/* Depth and length have limits; below them nothing overflows. */
static void test_limits(void **state)
{
    (void)state;
    enum { DEPTH = 150 };
    char nested[2 * 70000 + 2];
    mica_regular *r;
    mica_error err;
    memset(nested, '(', DEPTH);
    nested[DEPTH] = 'a';
    memset(nested + DEPTH + 1, ')', DEPTH);
    r = parse_n(nested, 2 * DEPTH + 1, MICA_PATTERN_WHOLE);
    assert_true(matches(r, "a") && !matches(r, "aa"));
    mica_regular_free(r);
    memset(nested, '(', sizeof nested);
    assert_int_equal(mica_regular_parse(nested, 1000, MICA_PATTERN_WHOLE, &r, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "nested"));
    assert_int_equal(mica_regular_parse(nested, sizeof nested, MICA_PATTERN_WHOLE, &r, &err), MICA_INVALID_ARGUMENT);
    memset(nested, 'a', sizeof nested);
    r = parse_n(nested, 15000, MICA_PATTERN_WHOLE);
    assert_true(mica_regular_matches(r, nested, 15000) && !mica_regular_matches(r, nested, 14999));
    mica_regular_free(r);
    mica_regular_free(NULL);
}

/* ---- Operations ---- */

static const char *const samples[] = {"", "a", "b", "ab", "ba", "aa", "abc", "abab",
                                      "é", "€a", "a€", "xyz", "\n", "a\n", "😀", "1a"};
static const char *const operands[] = {"a*", "[^a]*", "(a|b)*", "ab|ba|abc", ".{1,2}", "[a-z]+",
                                       "", "\\D*", "[]", "[^]*", "[ab€]{2}", "é|😀|a"};

static void check_operation(const mica_regular *a, const mica_regular *b, int operation)
{
    mica_regular *out, *again;
    mica_error err = {.message = ""};
    mica_status status = operation == 0   ? mica_regular_both(a, b, &out, &err)
                         : operation == 1 ? mica_regular_either(a, b, &out, &err)
                                          : mica_regular_without(a, b, &out, &err);
    assert_int_equal(status, MICA_OK);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        bool in_a = matches(a, samples[i]), in_b = matches(b, samples[i]);
        bool expected = operation == 0 ? in_a && in_b : operation == 1 ? in_a || in_b : in_a && !in_b;
        assert_int_equal(matches(out, samples[i]), expected);
    }
    /* The result is minimal: joined with itself it keeps its size. */
    assert_int_equal(mica_regular_either(out, out, &again, &err), MICA_OK);
    assert_int_equal(again->n_states, out->n_states);
    assert_int_equal(again->alphabet.n_classes, out->alphabet.n_classes);
    assert_int_equal(again->alphabet.n_ranges, out->alphabet.n_ranges);
    assert_int_equal(mica_regular_is_empty(again), mica_regular_is_empty(out));
    mica_regular_free(again);
    mica_regular_free(out);
}

static void test_operations(void **state)
{
    (void)state;
    const size_t n = sizeof operands / sizeof *operands;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            mica_regular *a = parse(operands[i]), *b = parse(operands[k]);
            for (int operation = 0; operation < 3; operation++)
                check_operation(a, b, operation);
            mica_regular_free(a);
            mica_regular_free(b);
        }
}

/* De Morgan's laws hold as equality of languages: nothing is left of either side without the other. */
static void test_equalities(void **state)
{
    (void)state;
    mica_error err;
    mica_regular *all = parse("[^]*"), *a = parse("(ab|c[^x])*"), *b = search("b[0-9]|é");
    mica_regular *not_a, *not_b, *either, *left, *right, *rest;
    assert_int_equal(mica_regular_without(all, a, &not_a, &err), MICA_OK);
    assert_int_equal(mica_regular_without(all, b, &not_b, &err), MICA_OK);
    assert_int_equal(mica_regular_either(a, b, &either, &err), MICA_OK);
    assert_int_equal(mica_regular_without(all, either, &left, &err), MICA_OK);
    assert_int_equal(mica_regular_both(not_a, not_b, &right, &err), MICA_OK);
    assert_int_equal(mica_regular_without(left, right, &rest, &err), MICA_OK);
    assert_true(mica_regular_is_empty(rest) && !mica_regular_is_empty(left));
    mica_regular_free(rest);
    assert_int_equal(mica_regular_without(right, left, &rest, &err), MICA_OK);
    assert_true(mica_regular_is_empty(rest));
    mica_regular *const used[] = {all, a, b, not_a, not_b, either, left, right, rest};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        mica_regular_free(used[i]);
}

static void test_minimal(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        int32_t states, classes;
    } rows[] = {{"a|b|c", 2, 1},       {"(a|b)*", 1, 1},        {"ab|cb", 3, 2},          {"[]", 1, 0}, {"", 1, 0},
                {"a(b|c)|d(b|c)", 3, 2}, {"\\p{L}*", 1, 1},     {"a{5}", 6, 1},           {"(aa)*", 2, 1},
                {"(a|b)*abb", 4, 2},   {"foo|foobar|foox", 7, 6}, {"(a|b)(a|b)|a{2}", 3, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mica_regular *r = parse(rows[i].pattern);
        if (r->n_states != rows[i].states || r->alphabet.n_classes != rows[i].classes)
            fail_msg("%s: %d states, %d classes", rows[i].pattern, r->n_states, r->alphabet.n_classes);
        mica_regular_free(r);
    }
}

static void test_text_and_lengths(void **state)
{
    (void)state;
    mica_regular *r;
    mica_error err;
    assert_int_equal(mica_regular_text("aé😀a", strlen("aé😀a"), &r, &err), MICA_OK);
    assert_true(matches(r, "aé😀a") && !matches(r, "aé😀") && !matches(r, "aé😀aa") && !matches(r, "aaaa"));
    assert_false(mica_regular_matches(r, "a\xC3", 2));
    mica_regular_free(r);
    assert_int_equal(mica_regular_text("", 0, &r, &err), MICA_OK);
    assert_true(matches(r, "") && !matches(r, "a") && !mica_regular_is_empty(r));
    mica_regular_free(r);
    assert_int_equal(mica_regular_text("ab\xFF", 3, &r, &err), MICA_BAD_TEXT);
    assert_int_equal(err.position, 2);
    assert_int_equal(mica_regular_lengths(2, 3, &r, &err), MICA_OK);
    assert_true(matches(r, "a\n") && matches(r, "😀é€") && !matches(r, "a") && !matches(r, "abcd"));
    mica_regular_free(r);
    assert_int_equal(mica_regular_lengths(0, 0, &r, &err), MICA_OK);
    assert_true(matches(r, "") && !matches(r, "a"));
    mica_regular_free(r);
    assert_int_equal(mica_regular_lengths(0, MICA_G_NO_LIMIT, &r, &err), MICA_OK);
    assert_true(matches(r, "") && matches(r, "anything\n") && r->n_states == 1);
    mica_regular_free(r);
    assert_int_equal(mica_regular_lengths(1, MICA_REGULAR_MAX_STATES, &r, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_regular_lengths(3, 2, &r, &err), MICA_INVALID_ARGUMENT);
    assert_null(r);
}

static void test_lengths_of(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        int64_t shortest, longest;
    } rows[] = {{"", 0, 0},      {"a|bcd", 1, 3},       {"a{2,7}b?", 2, 8},      {"a+", 1, -1},      {"(ab)*", 0, -1},
                {"é😀", 2, 2}, {"(a|bb){3}", 3, 6}, {"a(b*|c)d", 2, -1}, {"abc|a{5,9}", 3, 9}, {"[]", 0, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t shortest, longest;
        mica_regular *r = parse(rows[i].pattern);
        mica_regular_lengths_of(r, &shortest, &longest);
        if (shortest != rows[i].shortest || longest != rows[i].longest)
            fail_msg("%s: %d to %d", rows[i].pattern, (int)shortest, (int)longest);
        mica_regular_free(r);
    }
}

/* ---- Encodings ---- */

/* Whether no byte leads from a state to two. */
static bool is_deterministic(const mica_fsm *fsm)
{
    for (int32_t e = 1; e < fsm->n_edges; e++)
        for (int32_t d = e; d-- > 0 && fsm->edges[d].from == fsm->edges[e].from;)
            if (fsm->edges[d].low <= fsm->edges[e].high && fsm->edges[e].low <= fsm->edges[d].high)
                return false;
    return true;
}

/* The canonical JSON form of one code point: written anew here. */
static size_t json_form(uint32_t code, char out[8])
{
    static const char shorts[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *s = shorts; *s; s += 2)
        if (code == (uint8_t)s[0]) {
            out[0] = '\\';
            out[1] = s[1];
            return 2;
        }
    return code < 0x20 ? (size_t)snprintf(out, 8, "\\u%04x", code) : mica_utf8_write(code, out);
}

static void test_json_encoding(void **state)
{
    (void)state;
    mica_regular *any = parse("[^]"), *some = parse("[\\0-\\x05\"\\\\\\n\\x1f-aé]");
    mica_grammar *g = encoded(any, MICA_ENCODE_JSON_STRING), *g2 = encoded(some, MICA_ENCODE_JSON_STRING);
    assert_true(is_deterministic(&g->fsms[0]) && is_deterministic(&g2->fsms[0]));
    for (uint32_t code = 0; code < 0x300; code++) {
        char json[8];
        size_t n = json_form(code, json);
        bool in_some = code <= 5 || code == '\n' || (code >= 0x1F && code <= 'a') || code == 0xE9; /* " and \ are within */
        assert_true(grammar_matches(g, json, n));
        assert_int_equal(grammar_matches(g2, json, n), in_some);
    }
    /* No other form, and nothing that must be escaped as it is. */
    const char *const bad[] = {"\"", "\\", "\n", "\x1F", "\\u0041", "\\u000a", "\\u000A",
                               "\\u001F", "\\/", "\\u0022", "\\u00e9", "\\n\\n", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(grammar_matches(g, bad[i], strlen(bad[i])));
    assert_false(grammar_matches(g, "\0", 1));
    mica_regular_free(any);
    mica_regular_free(some);
    mica_grammar_free(g);
    mica_grammar_free(g2);
}

static void test_encodings_are_small(void **state)
{
    (void)state;
    mica_regular *any = parse("[^]*"), *letter = parse("\\p{L}"), *letters = parse("\\p{L}{20}");
    mica_grammar *g = encoded(any, MICA_ENCODE_UTF8), *g1 = encoded(letter, MICA_ENCODE_UTF8);
    mica_grammar *g2 = encoded(letters, MICA_ENCODE_UTF8);
    assert_true(g->fsms[0].n_states == 8 && is_deterministic(&g->fsms[0])); /* one, and 7 inside of characters */
    assert_true(is_deterministic(&g2->fsms[0]));
    assert_in_range(g1->fsms[0].n_states, 2, 400); /* of 646 ranges */
    assert_int_equal(g2->fsms[0].n_states - 1, 20 * (g1->fsms[0].n_states - 1));
    mica_regular_free(any);
    mica_regular_free(letter);
    mica_regular_free(letters);
    mica_grammar_free(g);
    mica_grammar_free(g1);
    mica_grammar_free(g2);
}

/* ---- Against Python ---- */

/* Each line of the data: a pattern, the texts that it matches as a whole (encoded in UTF-8 and as JSON), those it is found
 * in. The first line has the texts. */
static void check_python_row(const json_t *line, const json_t *texts, size_t *n)
{
    const char *pattern = json_string_value(json_array_get(line, 0));
    for (int scope = 0; scope < 2; scope++) {
        mica_regular *r = scope ? search(pattern) : parse(pattern);
        mica_grammar *utf8 = encoded(r, MICA_ENCODE_UTF8), *json = encoded(r, MICA_ENCODE_JSON_STRING);
        const char *expected = json_string_value(json_array_get(line, (size_t)scope + 1));
        for (size_t i = 0; i < json_array_size(texts); i++, ++*n) {
            const json_t *text = json_array_get(texts, i);
            const char *plain = json_string_value(json_array_get(text, 0));
            const char *quoted = json_string_value(json_array_get(text, 1));
            size_t length = json_string_length(json_array_get(text, 0));
            bool want = expected[i] == '1';
            if (mica_regular_matches(r, plain, length) != want || (utf8 && grammar_matches(utf8, plain, length)) != want ||
                (json && grammar_matches(json, quoted, strlen(quoted))) != want)
                fail_msg("%s %s \"%s\": Python says %d", pattern, scope ? "in" : "as", quoted, want);
        }
        mica_grammar_free(utf8);
        mica_grammar_free(json);
        mica_regular_free(r);
    }
}

static void test_python(void **state)
{
    (void)state;
    json_error_t why;
    json_t *data = json_load_file(MICA_TEST_DATA "/regex/python.json", JSON_ALLOW_NUL, &why);
    if (!data)
        fail_msg("%s", why.text);
    size_t n = 0;
    const json_t *rows = json_object_get(data, "patterns"), *texts = json_object_get(data, "texts");
    for (size_t i = 0; i < json_array_size(rows); i++)
        check_python_row(json_array_get(rows, i), texts, &n);
    assert_true(n >= 20000);
    json_decref(data);
}

/* ---- Whole grammars ---- */

static void test_grammar_from_regex(void **state)
{
    (void)state;
    mica_grammar *g;
    mica_error err;
    assert_int_equal(mica_grammar_from_regex("(ab|é)+", strlen("(ab|é)+"), &g, &err), MICA_OK);
    assert_true(grammar_matches(g, "abéab", 6) && !grammar_matches(g, "aba", 3) && !grammar_matches(g, "xab", 3));
    mica_grammar_free(g);
    assert_int_equal(mica_grammar_from_regex("a$b", 3, &g, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "no text"));
    assert_null(g);
    assert_int_equal(mica_grammar_from_regex("a(", 2, &g, &err), MICA_BAD_TEXT);
    assert_int_equal(err.position, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_equalities),
        cmocka_unit_test(test_minimal),
        cmocka_unit_test(test_text_and_lengths),
        cmocka_unit_test(test_lengths_of),
        cmocka_unit_test(test_json_encoding),
        cmocka_unit_test(test_encodings_are_small),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_grammar_from_regex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
