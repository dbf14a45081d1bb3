/* test_grammar.c - grammars as they are built: nodes, failures, the checks at the end, characters as bytes, choices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar_match.h"
#include "text/utf8.h"

static mica_grammar *new_grammar(void)
{
    mica_grammar *g;
    mica_error err;
    assert_int_equal(mica_grammar_new(&g, &err), MICA_OK);
    return g;
}

/* A grammar whose root is one node. */
static void finish_root(mica_grammar *g, mica_gnode node)
{
    mica_error err = {.message = ""};
    int32_t root = mica_grammar_rule(g, "root");
    mica_grammar_define(g, root, node);
    if (mica_grammar_finish(g, root, &err))
        fail_msg("%s", err.message);
}

static void expect_failure(mica_grammar *g, int32_t root, mica_status status, const char *const *words)
{
    mica_error err = {.message = ""};
    assert_int_equal(mica_grammar_finish(g, root, &err), status);
    assert_int_equal(err.code, status);
    for (; *words; words++)
        if (!strstr(err.message, *words))
            fail_msg("\"%s\" is not in: %s", *words, err.message);
    mica_grammar_free(g);
}
#define WORDS(...) (const char *const[]){__VA_ARGS__, NULL}

static mica_gkind kind_of(const mica_grammar *g, mica_gnode node) { return g->nodes[node].kind; }

static mica_gnode lit(mica_grammar *g, const char *text) { return mica_grammar_literal(g, text, strlen(text)); }
#define COUNT(...) (sizeof((const mica_gnode[]){__VA_ARGS__}) / sizeof(mica_gnode))
#define SEQ(g, ...) mica_grammar_seq(g, (const mica_gnode[]){__VA_ARGS__}, COUNT(__VA_ARGS__))
#define ALT(g, ...) mica_grammar_alt(g, (const mica_gnode[]){__VA_ARGS__}, COUNT(__VA_ARGS__))

static bool matches(const mica_grammar *g, const char *text) { return grammar_matches(g, text, strlen(text)); }

/* ---- Nodes ---- */

static void test_nodes(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar();
    mica_byte_set vowels = {{0}};
    for (const char *c = "aeiou"; *c; c++)
        vowels.bits[*c / 32] |= 1u << *c % 32;
    mica_gnode vowel = mica_grammar_bytes(g, &vowels), x = lit(g, "x");
    finish_root(g, SEQ(g, lit(g, "<"), mica_grammar_repeat(g, ALT(g, vowel, lit(g, "yy")), 2, 4),
                       mica_grammar_repeat(g, x, 0, 1), mica_grammar_repeat(g, lit(g, "-"), 1, MICA_G_NO_LIMIT), lit(g, ">")));
    const char *const good[] = {"<ae->", "<yyyy->", "<aaaax-->", "<yyyyyyyy--------->"};
    const char *const bad[] = {"<a->", "<ayyxa->", "<aaaaa->", "<aeb->", "<aexx->", "<ae>", "<ae-", "ae->", "<yyy->", ""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(matches(g, good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(matches(g, bad[i]));
    mica_grammar_free(g);
    mica_grammar_free(NULL);
}

static void test_nodes_are_simplified(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar();
    mica_gnode a = lit(g, "a"), never = mica_grammar_never(g), empty = mica_grammar_empty(g);
    mica_byte_set none = {{0}};
    assert_int_equal(mica_grammar_seq(g, &a, 1), a);
    assert_int_equal(SEQ(g, empty, a, empty), a);
    assert_int_equal(ALT(g, never, a, never), a);
    assert_int_equal(mica_grammar_repeat(g, a, 1, 1), a);
    assert_int_equal(mica_grammar_repeat(g, never, 1, 5), never);
    assert_int_equal(kind_of(g, mica_grammar_seq(g, NULL, 0)), MICA_G_EMPTY);
    assert_int_equal(kind_of(g, mica_grammar_alt(g, NULL, 0)), MICA_G_NEVER);
    assert_int_equal(kind_of(g, mica_grammar_repeat(g, a, 0, 0)), MICA_G_EMPTY);
    assert_int_equal(kind_of(g, mica_grammar_repeat(g, never, 0, 5)), MICA_G_EMPTY);
    assert_int_equal(kind_of(g, mica_grammar_bytes(g, &none)), MICA_G_NEVER);
    assert_int_equal(kind_of(g, lit(g, "")), MICA_G_EMPTY);
    mica_grammar_free(g);
}

static void test_first_failure_stays(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar();
    mica_gnode a = lit(g, "a");
    assert_int_equal(mica_grammar_repeat(g, a, 3, 2), MICA_GNODE_FAILED);
    assert_int_equal(lit(g, "b"), MICA_GNODE_FAILED);
    assert_int_equal(mica_grammar_rule(g, "root"), MICA_GNODE_FAILED);
    assert_int_equal(mica_grammar_fail(g, MICA_BAD_TEXT, 7, "another"), MICA_GNODE_FAILED);
    mica_grammar_define(g, -1, -1);
    expect_failure(g, -1, MICA_INVALID_ARGUMENT, WORDS("3 to 2"));

    g = new_grammar();
    mica_error err;
    assert_int_equal(mica_grammar_fail(g, MICA_BAD_TEXT, 7, "a %s", "reason"), MICA_GNODE_FAILED);
    assert_int_equal(mica_grammar_finish(g, 0, &err), MICA_BAD_TEXT);
    assert_int_equal(err.position, 7);
    assert_string_equal(err.message, "a reason");
    mica_grammar_free(g);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        mica_grammar *g = new_grammar();
        mica_gnode a = lit(g, "a"), outside = 99;
        int32_t root = mica_grammar_rule(g, "root");
        mica_fsm_edge edge = {.from = 0, .to = 1, .low = 1, .high = 0};
        mica_fsm fsm = {.n_states = 2, .n_edges = 1, .edges = &edge, .accepts = (bool[]){false, true}};
        mica_grammar_define(g, root, a);
        if (i == 0)
            mica_grammar_seq(g, &outside, 1);
        else if (i == 1)
            mica_grammar_repeat(g, outside, 0, 1);
        else if (i == 2)
            mica_grammar_define(g, root, outside);
        else if (i == 3)
            mica_grammar_call(g, 1);
        else if (i == 4)
            mica_grammar_repeat(g, a, -1, 1);
        else if (i == 5)
            mica_grammar_fsm(g, &fsm);
        else if (i == 6)
            root = 1;
        else
            mica_grammar_fsm(g, &(mica_fsm){0});
        expect_failure(g, root, MICA_INVALID_ARGUMENT, WORDS(" "));
    }
    mica_grammar *g = new_grammar();
    int32_t root = mica_grammar_rule(g, "root");
    mica_grammar_define(g, root, lit(g, "a"));
    mica_grammar_define(g, root, lit(g, "b"));
    expect_failure(g, root, MICA_BAD_TEXT, WORDS("\"root\"", "twice"));
}

static void test_size_is_limited(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar();
    for (int i = 0; i <= MICA_G_MAX_NODES; i++)
        mica_grammar_empty(g);
    expect_failure(g, 0, MICA_INVALID_ARGUMENT, WORDS("too large"));
    g = new_grammar();
    size_t size = (size_t)17 << 20;
    char *text = calloc(size, 1);
    assert_non_null(text);
    mica_grammar_literal(g, text, size);
    free(text);
    expect_failure(g, 0, MICA_INVALID_ARGUMENT, WORDS("too large"));
}

static void test_rules(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar();
    char name[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "rule-%d", i);
        assert_int_equal(mica_grammar_rule(g, name), i);
    }
    assert_int_equal(mica_grammar_rule(g, "rule-617"), 617);
    assert_int_equal(mica_grammar_new_rule(g, "rule-617"), 1000); /* names need not differ here */
    assert_int_equal(mica_grammar_rule(g, "rule-617"), 617);
    assert_string_equal(g->rules[1000].name, "rule-617");
    mica_grammar_free(g);
}

/* ---- The checks at the end ---- */

static void test_undefined_rules(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar();
    int32_t root = mica_grammar_rule(g, "root"), caller = mica_grammar_rule(g, "caller");
    int32_t missing = mica_grammar_rule(g, "missing");
    mica_grammar_define(g, root, lit(g, "a"));
    mica_grammar_define(g, caller, mica_grammar_repeat(g, SEQ(g, lit(g, "a"), mica_grammar_call(g, missing)), 0, 1));
    expect_failure(g, root, MICA_BAD_TEXT, WORDS("\"missing\"", "\"caller\"", "not defined"));
    g = new_grammar();
    root = mica_grammar_rule(g, "root");
    expect_failure(g, root, MICA_BAD_TEXT, WORDS("\"root\"", "not defined"));
    /* A rule that nobody calls need not be defined; a node that no rule has may call anything. */
    g = new_grammar();
    mica_grammar_call(g, mica_grammar_rule(g, "unused"));
    finish_root(g, lit(g, "a"));
    mica_grammar_free(g);
    /* Names are cut at whole characters. */
    g = new_grammar();
    char name[300] = "x";
    for (int i = 0; i < 100; i++)
        strcat(name, "é");
    root = mica_grammar_rule(g, name);
    mica_error err;
    assert_int_equal(mica_grammar_finish(g, root, &err), MICA_BAD_TEXT);
    assert_int_equal(mica_utf8_check(err.message, strlen(err.message)), strlen(err.message));
    mica_grammar_free(g);
}

/* root ::= prefix a-call; a ::= prefix b-call; b ::= prefix a-call "x" | "y". */
static mica_grammar *cycle_behind(mica_gnode (*prefix)(mica_grammar *))
{
    mica_grammar *g = new_grammar();
    int32_t root = mica_grammar_rule(g, "root"), a = mica_grammar_rule(g, "a"), b = mica_grammar_rule(g, "b");
    mica_grammar_define(g, root, SEQ(g, lit(g, "r"), mica_grammar_call(g, a)));
    mica_grammar_define(g, a, SEQ(g, prefix(g), mica_grammar_call(g, b)));
    mica_grammar_define(g, b, ALT(g, SEQ(g, prefix(g), mica_grammar_call(g, a), lit(g, "x")), lit(g, "y")));
    return g;
}

static mica_gnode prefix_empty(mica_grammar *g) { return mica_grammar_empty(g); }
static mica_gnode prefix_optional(mica_grammar *g) { return mica_grammar_repeat(g, lit(g, "p"), 0, 3); }
static mica_gnode prefix_nullable_repeat(mica_grammar *g)
{
    return mica_grammar_repeat(g, ALT(g, lit(g, "p"), mica_grammar_empty(g)), 5, 5);
}
static mica_gnode prefix_literal(mica_grammar *g) { return lit(g, "p"); }
static mica_gnode prefix_fsm(mica_grammar *g)
{
    mica_fsm_edge edge = {.from = 0, .to = 0, .low = 'a', .high = 'b'};
    return mica_grammar_fsm(g, &(mica_fsm){.n_states = 1, .n_edges = 1, .edges = &edge, .accepts = (bool[]){true}});
}
static mica_gnode prefix_nullable_rule(mica_grammar *g)
{
    int32_t inner = mica_grammar_new_rule(g, "inner"), outer = mica_grammar_new_rule(g, "outer");
    mica_grammar_define(g, outer, SEQ(g, mica_grammar_call(g, inner), mica_grammar_call(g, inner)));
    mica_grammar_define(g, inner, mica_grammar_repeat(g, lit(g, "p"), 0, MICA_G_NO_LIMIT));
    return mica_grammar_call(g, outer);
}

static void test_left_recursion(void **state)
{
    (void)state;
    mica_gnode (*const prefixes[])(mica_grammar *) = {prefix_empty, prefix_optional, prefix_nullable_repeat, prefix_fsm,
                                                      prefix_nullable_rule};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        expect_failure(cycle_behind(prefixes[i]), 0, MICA_UNSUPPORTED, WORDS("left-recursive", "\"a\"", "a -> b -> a"));
    mica_grammar *g = cycle_behind(prefix_literal);
    mica_error err = {.message = ""};
    assert_int_equal(mica_grammar_finish(g, 0, &err), MICA_OK);
    assert_true(matches(g, "rpy") && matches(g, "rpppyx") && !matches(g, "rppyx"));
    mica_grammar_free(g);

    g = new_grammar(); /* root ::= root "a" | "b" */
    int32_t root = mica_grammar_rule(g, "root");
    mica_grammar_define(g, root, ALT(g, SEQ(g, mica_grammar_call(g, root), lit(g, "a")), lit(g, "b")));
    expect_failure(g, root, MICA_UNSUPPORTED, WORDS("\"root\"", "root -> root"));
    g = new_grammar(); /* root ::= root+ | "b" */
    root = mica_grammar_rule(g, "root");
    mica_grammar_define(g, root, ALT(g, mica_grammar_repeat(g, mica_grammar_call(g, root), 1, MICA_G_NO_LIMIT), lit(g, "b")));
    expect_failure(g, root, MICA_UNSUPPORTED, WORDS("\"root\""));
}

static void test_root_must_match_something(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar(); /* root ::= "a" other; other ::= "b" root | never */
    int32_t root = mica_grammar_rule(g, "root"), other = mica_grammar_rule(g, "other");
    mica_grammar_define(g, root, SEQ(g, lit(g, "a"), mica_grammar_call(g, other)));
    mica_grammar_define(g, other, ALT(g, SEQ(g, lit(g, "b"), mica_grammar_call(g, root)), mica_grammar_never(g)));
    expect_failure(g, root, MICA_INVALID_ARGUMENT, WORDS("\"root\"", "no text"));
}

static void test_dead_ends_are_removed(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar(); /* root ::= "a" (dead | "c") dead? ; dead ::= "b" dead */
    int32_t dead = mica_grammar_rule(g, "dead");
    mica_gnode call = mica_grammar_call(g, dead), optional = mica_grammar_repeat(g, call, 0, 1);
    mica_gnode branch = SEQ(g, lit(g, "q"), call);
    mica_grammar_define(g, dead, SEQ(g, lit(g, "b"), call));
    finish_root(g, SEQ(g, lit(g, "a"), ALT(g, branch, lit(g, "c")), optional));
    assert_int_equal(kind_of(g, branch), MICA_G_NEVER);
    assert_int_equal(kind_of(g, call), MICA_G_NEVER);
    assert_int_equal(kind_of(g, g->rules[dead].body), MICA_G_NEVER);
    assert_true(matches(g, "ac") && !matches(g, "a") && !matches(g, "acb"));
    mica_grammar_free(g);
}

/* No walk may use the C stack for the depth of the grammar. */
static void test_depth_is_no_matter(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    mica_grammar *g = new_grammar();
    mica_gnode node = lit(g, "x");
    for (int i = 0; i < DEPTH; i++)
        node = ALT(g, SEQ(g, lit(g, "("), node), lit(g, "x"));
    int32_t root = mica_grammar_rule(g, "root"), rule = root;
    for (int i = 0; i < DEPTH; i++) {
        int32_t next = mica_grammar_new_rule(g, "step");
        mica_grammar_define(g, rule, SEQ(g, mica_grammar_repeat(g, lit(g, "a"), 0, 1), mica_grammar_call(g, next)));
        rule = next;
    }
    mica_grammar_define(g, rule, node);
    mica_error err = {.message = ""};
    assert_int_equal(mica_grammar_finish(g, root, &err), MICA_OK);
    mica_grammar_free(g);
}

/* ---- Finite automata ---- */

static void test_fsm_is_trimmed(void **state)
{
    (void)state;
    /* 0 -a-> 1 -b-> 2 (accepts); 1 -c-> 3 (dead end, loops); 4 is not reached. Not sorted. */
    mica_fsm_edge edges[] = {{3, 3, 'd', 'd'}, {4, 2, 'e', 'e'}, {1, 2, 'b', 'b'}, {1, 3, 'c', 'c'}, {0, 1, 'a', 'a'}};
    mica_fsm fsm = {.n_states = 5, .n_edges = 5, .edges = edges, .accepts = (bool[]){false, false, true, false, true}};
    mica_grammar *g = new_grammar();
    finish_root(g, mica_grammar_fsm(g, &fsm));
    assert_int_equal(g->n_fsms, 1);
    assert_int_equal(g->fsms[0].n_states, 3);
    assert_int_equal(g->fsms[0].n_edges, 2);
    assert_int_equal(g->fsms[0].edges[0].from, 0);
    assert_true(matches(g, "ab") && !matches(g, "a") && !matches(g, "ac") && !matches(g, "abb"));
    mica_grammar_free(g);
    g = new_grammar();
    fsm.accepts = (bool[]){false, false, false, false, true};
    assert_int_equal(kind_of(g, mica_grammar_fsm(g, &fsm)), MICA_G_NEVER);
    fsm.accepts = (bool[]){true, false, false, false, false};
    assert_int_equal(kind_of(g, mica_grammar_fsm(g, &fsm)), MICA_G_EMPTY);
    mica_grammar_free(g);
}

/* ---- Characters ---- */

static bool in_ranges(const mica_char_range *ranges, size_t n, uint32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].low && code <= ranges[i].high)
            return true;
    return false;
}

static bool may_follow(const mica_grammar *g, int32_t state, uint8_t byte, int32_t *to)
{
    for (int32_t e = 0; e < g->fsms[0].n_edges; e++) {
        const mica_fsm_edge *edge = &g->fsms[0].edges[e];
        if (edge->from == state && byte >= edge->low && byte <= edge->high) {
            *to = edge->to;
            return true;
        }
    }
    return false;
}

/* How many byte strings lead from a state to acceptance; the automaton is deterministic and has no cycle. */
static uint64_t count_texts(const mica_fsm *fsm, int32_t state)
{
    uint64_t n = fsm->accepts[state];
    for (int32_t e = 0; e < fsm->n_edges; e++)
        if (fsm->edges[e].from == state)
            n += (uint64_t)(fsm->edges[e].high - fsm->edges[e].low + 1) * count_texts(fsm, fsm->edges[e].to);
    return n;
}

/* All code points of the set are matched, and the number of byte strings is that of the code points: so nothing else is. */
static void check_chars(const mica_char_range *ranges, size_t n, bool negate)
{
    mica_grammar *g = new_grammar();
    uint64_t expected = 0;
    finish_root(g, mica_grammar_chars(g, ranges, n, negate));
    assert_int_equal(g->n_fsms, 1);
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[4];
        int32_t at = 0;
        bool is_in = true;
        if (code >= 0xD800 && code < 0xE000)
            continue;
        unsigned length = mica_utf8_write(code, text);
        for (unsigned i = 0; i < length && is_in; i++)
            is_in = may_follow(g, at, (uint8_t)text[i], &at);
        is_in = is_in && g->fsms[0].accepts[at];
        if (is_in != (in_ranges(ranges, n, code) != negate))
            fail_msg("U+%04X: %d", code, is_in);
        expected += is_in;
    }
    assert_true(count_texts(&g->fsms[0], 0) == expected);
    mica_grammar_free(g);
}

static void test_chars(void **state)
{
    (void)state;
    const mica_char_range quotes[] = {{'\\', '\\'}, {'"', '"'}};
    const mica_char_range mixed[] = {{0x3040, 0x309F}, {'a', 'z'}, {0x1F600, 0x1F64F}, {'m', 0x101}};
    const mica_char_range edges[] = {{0x7F, 0x80}, {0x7FF, 0x800}, {0xFFFF, 0x10000}, {0x10FFFF, 0x10FFFF}, {0xD7FF, 0xE000}};
    const mica_char_range above[] = {{0x10FFFE, 0xFFFFFFFF}};
    const mica_char_range pieces[] = {{0xFFF, 0x1001}, {0x3F040, 0x4003F}, {0xE0FF, 0xF000}};
    check_chars(quotes, 2, true);
    check_chars(NULL, 0, true);
    check_chars(mixed, 4, false);
    check_chars(mixed, 4, true);
    check_chars(edges, 5, false);
    check_chars(edges, 5, true);
    check_chars(above, 1, false);
    check_chars(pieces, 3, false);
    check_chars(pieces, 3, true);
}

static void test_chars_kinds(void **state)
{
    (void)state;
    mica_grammar *g = new_grammar();
    const mica_char_range ascii[] = {{'a', 'c'}, {'x', 'x'}}, one[] = {{0x20AC, 0x20AC}}, surrogates[] = {{0xD800, 0xDFFF}},
                          backwards[] = {{5, 4}};
    mica_gnode set = mica_grammar_chars(g, ascii, 2, false), euro = mica_grammar_chars(g, one, 1, false);
    assert_int_equal(kind_of(g, set), MICA_G_SET);
    assert_int_equal(kind_of(g, euro), MICA_G_LITERAL);
    assert_memory_equal(g->bytes + g->nodes[euro].first, "\xE2\x82\xAC", 3);
    assert_int_equal(kind_of(g, mica_grammar_chars(g, surrogates, 1, false)), MICA_G_NEVER);
    assert_int_equal(kind_of(g, mica_grammar_chars(g, backwards, 1, false)), MICA_G_NEVER);
    assert_int_equal(kind_of(g, mica_grammar_chars(g, NULL, 0, false)), MICA_G_NEVER);
    mica_gnode any = mica_grammar_chars(g, NULL, 0, true);
    finish_root(g, any);
    const char *const bad[] = {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                               "\xF4\x90\x80\x80", "\xFF", "\xE2\x82", "ab", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(matches(g, bad[i]));
    assert_true(matches(g, "a") && matches(g, "é") && matches(g, "€") && matches(g, "😀") && grammar_matches(g, "\0", 1));
    mica_grammar_free(g);
}

/* ---- Choices ---- */

static void test_choices(void **state)
{
    (void)state;
    const char *const texts[] = {"red", "red fox", "", "gr\0n", "rot"};
    const size_t lengths[] = {3, 7, 0, 4, 3};
    mica_grammar *g;
    mica_error err = {.message = ""};
    assert_int_equal(mica_grammar_from_choices(texts, lengths, 5, &g, &err), MICA_OK);
    for (int i = 0; i < 5; i++)
        assert_true(grammar_matches(g, texts[i], lengths[i]));
    assert_false(matches(g, "re") || matches(g, "red ") || matches(g, "gr") || matches(g, "redrot"));
    mica_grammar_free(g);
    assert_int_equal(mica_grammar_from_choices(texts, lengths, 0, &g, &err), MICA_INVALID_ARGUMENT);
    assert_null(g);
    const char *const bad[] = {"a", "\xFF"};
    assert_int_equal(mica_grammar_from_choices(bad, (const size_t[]){1, 1}, 2, &g, &err), MICA_BAD_TEXT);
    assert_non_null(strstr(err.message, "choice 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_nodes_are_simplified),
        cmocka_unit_test(test_first_failure_stays),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_size_is_limited),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_undefined_rules),
        cmocka_unit_test(test_left_recursion),
        cmocka_unit_test(test_root_must_match_something),
        cmocka_unit_test(test_dead_ends_are_removed),
        cmocka_unit_test(test_depth_is_no_matter),
        cmocka_unit_test(test_fsm_is_trimmed),
        cmocka_unit_test(test_chars),
        cmocka_unit_test(test_chars_kinds),
        cmocka_unit_test(test_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
