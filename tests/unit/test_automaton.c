/* Compiled grammars and matchers: random small grammars against the language found by brute force, counters at their bounds,
 * depth, ambiguity, what is forced, and shortest completions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "constraint/automaton_engine.h"
#include "grammar_random.h"
#include "grammar_reference.h"

static mica_automaton *compile(const mica_grammar *g)
{
    mica_automaton *a;
    mica_error err = {0};
    if (mica_automaton_new(g, &a, &err))
        fail_msg("%s", err.message);
    return a;
}

static mica_automaton *from_gbnf(const char *text)
{
    mica_grammar *g;
    mica_error err = {0};
    if (mica_grammar_from_gbnf(text, strlen(text), &g, &err))
        fail_msg("%s", err.message);
    mica_automaton *a = compile(g);
    mica_grammar_free(g);
    return a;
}

static mica_matcher *matcher(const mica_automaton *a)
{
    mica_matcher *m;
    assert_int_equal(mica_matcher_new(a, &m, NULL), MICA_OK);
    return m;
}

static size_t push(mica_matcher *m, const char *text, size_t n)
{
    size_t taken;
    mica_error err;
    if (mica_matcher_push(m, text, n, &taken, &err))
        fail_msg("%s", err.message);
    return taken;
}

/* Whether the whole text is one of the grammar's. */
static bool accepts(const mica_automaton *a, const char *text)
{
    mica_matcher *m = matcher(a);
    bool whole = push(m, text, strlen(text)) == strlen(text) && mica_matcher_may_end(m);
    mica_matcher_free(m);
    return whole;
}

/* ---- Against the language ---- */

/* Length of the shortest continuation of text `t` in the language, as far as the reference knows; -1 if it knows none. */
static int reference_shortest(const ref_set *language, int t)
{
    int least = -1;
    for (int u = 0; u < REF_TEXTS; u++) {
        int whole = ref_join(t, u);
        if (whole >= 0 && language->has[whole] && (least < 0 || ref_length(u) < least))
            least = ref_length(u);
    }
    return least;
}

static int reference_next(const ref_set *language, int t, char letter)
{
    int after = ref_join(t, ref_number(&letter, 1));
    return after < 0 ? -1 : reference_shortest(language, after);
}

static void check_completion(uint64_t seed, const ref_set *language, int t, mica_matcher *m, const mica_matcher *at)
{
    char text[REF_LENGTH + 1], end[4096];
    int known = reference_shortest(language, t), room = REF_LENGTH - ref_length(t);
    ref_spell(t, text);
    size_t length = mica_matcher_shortest_end(m, end, sizeof end);
    if (known >= 0 ? length != (size_t)known : length <= (size_t)room)
        fail_msg("seed %d, after \"%s\": shortest end %zu, known %d", (int)seed, text, length, known);
    if (length <= sizeof end) {
        if (push(m, end, length) != length || !mica_matcher_may_end(m))
            fail_msg("seed %d, after \"%s\": \"%.*s\" does not complete it", (int)seed, text, (int)length, end);
        assert_int_equal(mica_matcher_copy(m, at, NULL), MICA_OK);
    }
}

/* Forced bytes: no known text goes on otherwise. */
static void check_forced(uint64_t seed, const ref_set *language, int t, mica_matcher *m, const mica_matcher *at)
{
    char text[REF_LENGTH + 1], forced[REF_LENGTH];
    size_t room = (size_t)(REF_LENGTH - ref_length(t)), n = mica_matcher_forced(m, forced, room);
    ref_spell(t, text);
    for (size_t i = 0; i < n; i++) {
        int number = ref_number(&forced[i], 1);
        for (int k = 1; k <= 2; k++)
            if (language->has[t] || (k != number && reference_next(language, t, k == 1 ? 'a' : 'b') >= 0))
                fail_msg("seed %d, after \"%s\": '%c' is not forced", (int)seed, text, forced[i]);
        if (number < 0)
            return; /* letter c begins what is too long for the reference */
        t = ref_join(t, number);
    }
    int choices = 0;
    for (char c = 'a'; c <= 'c'; c++) {
        assert_int_equal(mica_matcher_copy(m, at, NULL), MICA_OK);
        choices += push(m, forced, n) == n && push(m, &c, 1) == 1;
    }
    if (n < room && choices == 1 && !language->has[t])
        fail_msg("seed %d, after \"%s\": only %zu bytes are forced", (int)seed, text, n);
}

static void check_text(uint64_t seed, const ref_set *language, int t, mica_matcher *m, mica_matcher *spare)
{
    char text[REF_LENGTH + 1];
    ref_spell(t, text);
    size_t n = strlen(text);
    mica_matcher_reset(m);
    if (push(m, text, n) < n) {
        if (reference_shortest(language, t) >= 0)
            fail_msg("seed %d: \"%s\" was refused", (int)seed, text);
        return;
    }
    if (mica_matcher_may_end(m) != (language->has[t] != 0))
        fail_msg("seed %d: \"%s\" %s end", (int)seed, text, language->has[t] ? "must be able to" : "must not");
    bool goes_on = push(m, "a", 1) || push(m, "b", 1) || push(m, "c", 1);
    mica_matcher_reset(m);
    push(m, text, n);
    if (mica_matcher_must_end(m) == goes_on)
        fail_msg("seed %d: \"%s\" must end %d, goes on %d", (int)seed, text, !goes_on, goes_on);
    assert_int_equal(mica_matcher_copy(spare, m, NULL), MICA_OK);
    check_completion(seed, language, t, spare, m);
    check_forced(seed, language, t, spare, m);
}

static void check_grammar(uint64_t seed, const mica_grammar *g, int32_t configs)
{
    ref_set language;
    ref_language(g, &language);
    mica_automaton *a = compile(g);
    mica_matcher *m = matcher(a), *spare = matcher(a);
    if (configs) {
        m->engine.keep_configs = m->engine.limit_configs = configs;
        spare->engine.keep_configs = spare->engine.limit_configs = configs;
    }
    for (int t = 0; t < REF_TEXTS; t++)
        check_text(seed, &language, t, m, spare);
    assert_true(!configs || m->engine.n_configs <= configs + 16);
    mica_matcher_free(m);
    mica_matcher_free(spare);
    mica_automaton_free(a);
}

static void check_random(uint64_t from, int want, int32_t configs)
{
    int made = 0;
    for (uint64_t seed = from; made < want; seed++) {
        mica_grammar *g = random_grammar(seed);
        if (!g)
            continue;
        check_grammar(seed, g, configs);
        mica_grammar_free(g);
        made++;
    }
}

static void test_random_grammars(void **state)
{
    (void)state;
    check_random(1, 1500, 0);
}

/* The same with an engine that forgets all but a few configurations again and again. */
static void test_flushes(void **state)
{
    (void)state;
    check_random(100000, 300, 3);
}

/* ---- Counters ---- */

static mica_automaton *counted(int32_t min, int32_t max)
{
    mica_grammar *g;
    mica_byte_set any = {{0}};
    assert_int_equal(mica_grammar_new(&g, NULL), MICA_OK);
    for (int b = 'a'; b <= 'z'; b++)
        any.bits[b / 32] |= 1u << b % 32;
    int32_t root = mica_grammar_rule(g, "root");
    mica_gnode body = mica_grammar_repeat(g, mica_grammar_bytes(g, &any), min, max);
    mica_grammar_define(g, root, mica_grammar_seq(g, (mica_gnode[]){body, mica_grammar_literal(g, ".", 1)}, 2));
    assert_int_equal(mica_grammar_finish(g, root, NULL), MICA_OK);
    mica_automaton *a = compile(g);
    mica_grammar_free(g);
    return a;
}

static void check_count(const mica_automaton *a, int32_t n, bool ends, bool goes_on)
{
    mica_matcher *m = matcher(a);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(push(m, "q", 1), 1);
    mica_matcher *other = matcher(a);
    assert_int_equal(mica_matcher_copy(other, m, NULL), MICA_OK);
    assert_int_equal(push(m, "q", 1), goes_on);
    assert_int_equal(push(other, ".", 1), ends);
    assert_int_equal(mica_matcher_must_end(other), ends);
    mica_matcher_free(m);
    mica_matcher_free(other);
}

static void test_counters(void **state)
{
    (void)state;
    static const struct {
        int32_t min, max;
    } bounds[] = {{0, 1}, {0, 100}, {1, 97}, {3, 200}, {200, 200}, {0, 5000}, {4999, 5000}, {5000, MICA_G_NO_LIMIT},
                  {0, INT32_MAX}, {130, INT32_MAX}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        int32_t min = bounds[i].min, max = bounds[i].max;
        mica_automaton *a = counted(min, max);
        assert_true(a->n_states < 120);
        int32_t counts[] = {0, 1, min - 1, min, min + 1, max - 1, max};
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            int32_t n = counts[k];
            if (n >= 0 && n <= 6000 && (max < 0 || n <= max))
                check_count(a, n, n >= min, max < 0 || n < max);
        }
        mica_automaton_free(a);
    }
}

/* 2^31 - 1 repetitions are needed: memory and time do not depend on it. */
static void test_huge_counter(void **state)
{
    (void)state;
    char end[16];
    mica_automaton *a = counted(INT32_MAX, INT32_MAX);
    mica_matcher *m = matcher(a);
    assert_int_equal(mica_matcher_shortest_end(m, end, sizeof end), (size_t)INT32_MAX + 1);
    assert_int_equal(push(m, "abc.", 4), 3);
    assert_int_equal(push(m, "abc", 3), 3);
    assert_int_equal(mica_matcher_shortest_end(m, end, sizeof end), (size_t)INT32_MAX - 2);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

/* Counters in counters: lengths saturate, and nothing is multiplied out. */
static void test_nested_counters(void **state)
{
    (void)state;
    mica_grammar *g;
    assert_int_equal(mica_grammar_new(&g, NULL), MICA_OK);
    int32_t root = mica_grammar_rule(g, "root");
    mica_gnode node = mica_grammar_literal(g, "x", 1);
    for (int i = 0; i < 4; i++)
        node = mica_grammar_repeat(g, node, 2000000000, INT32_MAX);
    mica_grammar_define(g, root, node);
    assert_int_equal(mica_grammar_finish(g, root, NULL), MICA_OK);
    mica_automaton *a = compile(g);
    mica_grammar_free(g);
    mica_matcher *m = matcher(a);
    assert_true(mica_matcher_shortest_end(m, NULL, 0) == SIZE_MAX / 2);
    assert_int_equal(push(m, "xxxxxxxx", 8), 8);
    assert_true(mica_matcher_shortest_end(m, NULL, 0) == SIZE_MAX / 2);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

/* How often `a` was counted is not known: the counts that others cover are dropped. */
static void test_ambiguous_counter(void **state)
{
    (void)state;
    mica_automaton *a = from_gbnf("root ::= (\"a\" | \"aa\" | \"aaa\"){0,100000} \"b\"");
    mica_matcher *m = matcher(a);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(push(m, "a", 1), 1);
        assert_in_range(m->engine.configs[m->kept[0]].count, 1, 16);
    }
    assert_int_equal(push(m, "b", 1), 1);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

/* ---- Depth and ambiguity ---- */

static const char NESTED[] = "root ::= value\n"
                             "value ::= \"[\" (value (\",\" value)*)? \"]\" |"
                             " \"{\" (key value (\",\" key value)*)? \"}\" | [0-9]+\n"
                             "key ::= \"\\\"\" [a-z]* \"\\\":\"\n";

static void test_depth(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    mica_automaton *a = from_gbnf(NESTED);
    mica_matcher *m = matcher(a), *copy = matcher(a);
    char *open = malloc(DEPTH), *close = malloc(DEPTH);
    memset(open, '[', DEPTH);
    memset(close, ']', DEPTH);
    for (int i = 1; i < DEPTH - 6; i += 7)
        memcpy(open + i, "{\"ab\":[", 7);
    size_t depth = 0;
    for (int i = DEPTH - 1; i >= 0; i--)
        if (open[i] == '[' || open[i] == '{')
            close[depth++] = open[i] == '[' ? ']' : '}';
    assert_int_equal(push(m, open, DEPTH), DEPTH);
    assert_int_equal(mica_matcher_copy(copy, m, NULL), MICA_OK);
    char *end = malloc(DEPTH);
    assert_int_equal(mica_matcher_shortest_end(copy, end, DEPTH), depth);
    assert_memory_equal(end, close, depth);
    assert_int_equal(push(m, close, depth), depth);
    assert_true(mica_matcher_must_end(m));
    assert_int_equal(push(m, "]", 1), 0);
    assert_int_equal(push(copy, close, depth - 1), depth - 1);
    assert_false(mica_matcher_may_end(copy));
    free(open);
    free(close);
    free(end);
    mica_matcher_free(m);
    mica_matcher_free(copy);
    mica_automaton_free(a);
}

/* Calls at the end of a rule keep the stack flat. */
static void test_tail_calls(void **state)
{
    (void)state;
    mica_automaton *a = from_gbnf("root ::= item more\nmore ::= \"\" | \",\" item more\n"
                                  "item ::= \"(\" root \")\" | [0-9a-f] [0-9a-f] [0-9a-f] | \"-\" item");
    mica_matcher *m = matcher(a);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(push(m, "-abc,", 5), 5);
    assert_in_range(m->engine.n_nodes, 1, 8);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

/* Two rules that could each have been called at every letter: 2^n stacks, few nodes. */
static void test_ambiguity(void **state)
{
    (void)state;
    mica_automaton *a = from_gbnf("root ::= x | y\nx ::= \"a\" x \"c\" | \"a\" y \"d\" | \"a\"\n"
                                  "y ::= \"a\" x \"e\" | \"a\" y \"f\" | \"a\"");
    mica_matcher *m = matcher(a);
    char text[400];
    memset(text, 'a', sizeof text);
    assert_int_equal(push(m, text, 200), 200);
    assert_in_range(m->engine.configs[m->kept[0]].count, 1, 10);
    assert_in_range(m->engine.n_nodes, 200, 1000);
    assert_int_equal(push(m, "cedf", 4), 3); /* the rule that f ends was called by y, c to d ended in x */
    assert_int_equal(push(m, "cedcedfec", 9), 6);
    assert_int_equal(push(m, "ceffed", 6), 4);
    mica_matcher_free(m);
    mica_automaton_free(a);
    a = from_gbnf("root ::= e\ne ::= \"x\" | \"(\" e \")\" | \"x\" (\"+\" e)* | \"x+\" e");
    assert_true(accepts(a, "x+x+(x+x)"));
    m = matcher(a);
    for (int i = 0; i < 300; i++)
        assert_int_equal(push(m, "x+", 2), 2);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

/* The deterministic automaton would have 2^25 states. */
static void test_no_explosion(void **state)
{
    (void)state;
    mica_automaton *a = from_gbnf("root ::= [ab]* \"a\" [ab]{24} \"c\"");
    char text[128];
    assert_in_range(a->n_states, 10, 200);
    memset(text, 'b', sizeof text);
    text[40] = 'a';
    strcpy(text + 65, "c");
    assert_true(accepts(a, text));
    text[40] = 'b';
    assert_false(accepts(a, text));
    mica_automaton_free(a);
}

static void test_too_complex(void **state)
{
    (void)state;
    mica_error err = {0};
    size_t taken;
    mica_automaton *a = from_gbnf("root ::= \"a\" root \"b\"? | \"a\"");
    mica_matcher *m = matcher(a);
    mica_status status = MICA_OK;
    int n = 0;
    for (; !status && n < 100000; n++)
        status = mica_matcher_push(m, "a", 1, &taken, &err);
    assert_int_equal(status, MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "too many places"));
    assert_true(n > 1000);
    assert_true(mica_matcher_may_end(m)); /* it stands where it stood */
    mica_matcher_free(m);
    mica_automaton_free(a);
}

static void test_too_large(void **state)
{
    (void)state;
    mica_grammar *g;
    mica_automaton *a;
    mica_error err = {0};
    assert_int_equal(mica_grammar_new(&g, NULL), MICA_OK);
    int32_t root = mica_grammar_rule(g, "root"), big = mica_grammar_rule(g, "the-big-one");
    mica_gnode node = mica_grammar_literal(g, "abcdefgh", 8);
    for (int i = 0; i < 20; i++)
        node = mica_grammar_seq(g, (mica_gnode[]){node, node}, 2); /* 2^20 times 8 states, from 20 nodes */
    mica_grammar_define(g, big, node);
    mica_grammar_define(g, root, mica_grammar_call(g, big));
    assert_int_equal(mica_grammar_finish(g, root, NULL), MICA_OK);
    assert_int_equal(mica_automaton_new(g, &a, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "\"the-big-one\" is too large"));
    assert_null(a);
    mica_grammar_free(g);
}

/* ---- The rest of the contract ---- */

static void test_push_is_all_or_nothing(void **state)
{
    (void)state;
    mica_automaton *a = from_gbnf("root ::= \"abc\" [0-9]+ | \"abd\"");
    mica_matcher *m = matcher(a);
    assert_int_equal(push(m, "abx", 3), 2);
    assert_int_equal(push(m, "c", 1), 0); /* it is still at the start */
    assert_int_equal(push(m, "ab", 2), 2);
    assert_int_equal(push(m, "c1x", 3), 2);
    assert_int_equal(push(m, "d", 1), 1);
    assert_true(mica_matcher_must_end(m));
    assert_int_equal(push(m, "", 0), 0);
    mica_matcher_reset(m);
    assert_false(mica_matcher_may_end(m));
    assert_int_equal(push(m, "abc7", 4), 4);
    assert_true(mica_matcher_may_end(m) && !mica_matcher_must_end(m));
    mica_matcher_free(m);
    mica_automaton_free(a);
}

static void test_forced(void **state)
{
    (void)state;
    char out[64];
    mica_automaton *a = from_gbnf("root ::= \"{\\\"name\\\": \\\"\" [a-z]+ \"\\\", \\\"n\\\": 1}\" (\"!\" \"!\")?");
    mica_matcher *m = matcher(a);
    assert_int_equal(mica_matcher_forced(m, out, sizeof out), 10);
    assert_memory_equal(out, "{\"name\": \"", 10);
    assert_int_equal(mica_matcher_forced(m, out, 3), 3);
    assert_int_equal(push(m, "{\"name\": \"", 10), 10);
    assert_int_equal(mica_matcher_forced(m, out, sizeof out), 0);
    assert_int_equal(push(m, "al\"", 3), 3);
    assert_int_equal(mica_matcher_forced(m, out, sizeof out), 9);
    assert_int_equal(push(m, out, 9), 9);
    assert_int_equal(mica_matcher_forced(m, out, sizeof out), 0); /* it may end */
    assert_int_equal(push(m, "!", 1), 1);
    assert_int_equal(mica_matcher_forced(m, out, sizeof out), 1);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

/* Bytes, not characters: a text may be cut anywhere. */
static void test_split_characters(void **state)
{
    (void)state;
    static const char TEXT[] = "\"Z\xC3\xBCrich \xE6\x9D\xB1\xE4\xBA\xAC \xF0\x9F\x98\x80\"";
    mica_automaton *a = from_gbnf("root ::= \"\\\"\" [^\"\\\\\\x00-\\x1F]* \"\\\"\"");
    mica_matcher *m = matcher(a);
    for (size_t i = 0; TEXT[i]; i++)
        assert_int_equal(push(m, TEXT + i, 1), 1);
    assert_true(mica_matcher_must_end(m));
    mica_matcher_reset(m);
    assert_int_equal(push(m, "\"\xE6\x9D", 3), 3);
    assert_int_equal(push(m, "\"", 1), 0);
    assert_int_equal(push(m, "\xC3", 1), 0);
    assert_int_equal(mica_matcher_shortest_end(m, NULL, 0), 2);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

static void test_empty_text(void **state)
{
    (void)state;
    mica_automaton *a = from_gbnf("root ::= \"\"");
    mica_matcher *m = matcher(a);
    assert_true(mica_matcher_may_end(m) && mica_matcher_must_end(m));
    assert_int_equal(mica_matcher_shortest_end(m, NULL, 0), 0);
    assert_int_equal(push(m, "x", 1), 0);
    mica_matcher_free(m);
    mica_automaton_free(a);
}

/* What a string with ordinary characters takes at once: found for loops, chains of states and counters alike. */
static void test_chars(void **state)
{
    (void)state;
    static const struct {
        const char *grammar;
        uint8_t lower, word, ascii, text;
    } cases[] = {
        {"root ::= [^\"\\\\\\x7F\\x00-\\x1F]* \"\\\"\"", 255, 255, 255, 255},
        {"root ::= [a-zA-Z]* \"\\\"\"", 255, 255, 0, 0},
        {"root ::= [ -~]* \"\\n\"", 255, 255, 255, 0},
        {"root ::= [^\"\\\\\\x7F\\x00-\\x1F]{0,7} \"\\\"\"", 7, 7, 7, 7},
        {"root ::= [^\"\\\\\\x7F\\x00-\\x1F]{0,77} \"\\\"\"", 77, 77, 77, 77},
        {"root ::= [^\"\\\\\\x7F\\x00-\\x1F]{5,100000} \"\\\"\"", 254, 254, 254, 254},
        {"root ::= ([^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\\\\\" [nt]){50,} \"\\\"\"", 255, 255, 255, 255},
        {"root ::= [a-z]* \"\\\"\"", 255, 0, 0, 0},
        {"root ::= [^a]* \"\\\"\"", 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mica_automaton *a = from_gbnf(cases[i].grammar);
        const uint8_t *chars = a->chars[a->symbols[a->root].start];
        assert_int_equal(chars[MICA_SLICE_LOWER], cases[i].lower);
        assert_int_equal(chars[MICA_SLICE_WORD], cases[i].word);
        assert_int_equal(chars[MICA_SLICE_ASCII], cases[i].ascii);
        assert_int_equal(chars[MICA_SLICE_TEXT], cases[i].text);
        mica_automaton_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_grammars), cmocka_unit_test(test_flushes),
        cmocka_unit_test(test_counters),        cmocka_unit_test(test_huge_counter),
        cmocka_unit_test(test_nested_counters), cmocka_unit_test(test_ambiguous_counter),
        cmocka_unit_test(test_depth),           cmocka_unit_test(test_tail_calls),
        cmocka_unit_test(test_ambiguity),       cmocka_unit_test(test_no_explosion),
        cmocka_unit_test(test_too_complex),     cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_push_is_all_or_nothing), cmocka_unit_test(test_forced),
        cmocka_unit_test(test_split_characters), cmocka_unit_test(test_empty_text),
        cmocka_unit_test(test_chars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
