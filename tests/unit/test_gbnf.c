/* test_gbnf.c - llama.cpp's grammar notation: what it means, and what is refused where. */
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

static mica_grammar *parse(const char *text)
{
    mica_grammar *g;
    mica_error err = {.message = ""};
    if (mica_grammar_from_gbnf(text, strlen(text), &g, &err))
        fail_msg("%s\n%s", text, err.message);
    return g;
}

static const struct row {
    const char *grammar;
    const char *accept[8], *reject[8];
} table[] = {
    {"root ::= \"red\" | \"red fox\"", {"red", "red fox"}, {"", "re", "red "}},
    {"root::=\"a\"\"b\"[c]", {"abc"}, {"ab", "a b c"}},
    {"\n\n# first\nroot ::= a-1 B_2 # the root\n\n  \t\na-1 ::= \"x\"   # x\r\nB_2 ::= \"y\"\n# last", {"xy"}, {"x", "y"}},
    {"root ::= | \"a\"", {"", "a"}, {"b"}},
    {"root ::= \"\" ", {""}, {"a"}},
    {"root ::= \"a\" |\n  # comment\n  \"b\" |\r\n\"c\"", {"a", "b", "c"}, {"ab"}},
    {"root ::= \"a\"\n  | \"b\" # also here\n\n  | \"c\"\nx ::= root", {"a", "b", "c"}, {"", "ab"}},
    {"root ::= (\n  \"a\"\n  (\n\"b\" # comment )\n| \"c\")\n)\n", {"ab", "ac"}, {"a", "abc"}},
    {"root ::= ( \"a\"\n* \"b\"\n{2} )", {"bb", "aabb"}, {"b", "ab"}},
    {"root ::= \"ab\"* \"c\"+ \"d\"?", {"c", "ababccd"}, {"ab", "abbc", "cdd"}},
    {"root ::= \"a\"{2} [b]{1,} (\"c\" | \"d\"){0,2} \"e\"{,1} \"f\" { 1 , 2 }",
     {"aabf", "aabbbcdef", "aabff"}, {"abf", "aaf", "aabcdcf", "aabeef", "aabfff"}},
    {"root ::= \"a\"{0} \"b\"", {"b"}, {"ab"}},
    {"root ::= \"a\"{2}{2}", {"aaaa"}, {"aa", "aaa"}},
    {"root ::= [a]{1000000000,2000000000} | \"b\"{0,99999999999}", {"", "bbb"}, {"a"}},
    {"root ::= [a-c-] [^a-c\\n] [-x]", {"adx", "-é-"}, {"dax", "a\nx", "ada"}},
    {"root ::= [ぁ-ゟ]+ [^\\u3042-\\u3050] \"\\U0001F600\"", {"あx😀", "ぁゟ、😀"}, {NULL}},
    {"root ::= \"\\x41\\u00e9\\u20AC\\t\\n\\r\\\\\\\"\\[\\]\"", {"Aé€\t\n\r\\\"[]"}, {"A"}},
    {"root ::= [\\]\\[\\\\\"^] [^\\]]", {"]x", "[[", "\\\\", "\"a", "^a"}, {"a]", "]]"}},
    {"root ::= [^\\x00-\\x1F\\uD800-\\uDFFF]", {"a", "é", "😀"}, {"\x01", ""}},
    {"root ::= . .", {"ab", "\n\n", "é😀"}, {"a", "abc", "\xC3\xA9"}},
    {"root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"(x", "()"}},
    {"root ::= a b | c\na ::= \"1\"*\nb ::= a \"2\" c?\nc ::= \"3\"", {"2", "1123", "3"}, {"1", "33"}},
    {"a ::= \"x\"\nroot ::= a a", {"xx"}, {"x"}},
    /* gr-13-no-trailing-blank and gr-17-grammar-and-ignore-eos */
    {"root ::= \"\\\"\" [a-z]+ \"\\\"\"\n", {"\"a\"", "\"xyz\""}, {"\"\"", "\"a\" ", "\"a\"\n"}},
    {"root ::= \"zzz\"", {"zzz"}, {"zz", "zzzz"}},
};

static void test_table(void **state)
{
    (void)state;
    int n = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mica_grammar *g = parse(table[i].grammar);
        for (int k = 0; k < 8 && table[i].accept[k]; k++, n++)
            if (!grammar_matches(g, table[i].accept[k], strlen(table[i].accept[k])))
                fail_msg("%s\ndoes not match \"%s\"", table[i].grammar, table[i].accept[k]);
        for (int k = 0; k < 8 && table[i].reject[k]; k++, n++)
            if (grammar_matches(g, table[i].reject[k], strlen(table[i].reject[k])))
                fail_msg("%s\nmatches \"%s\"", table[i].grammar, table[i].reject[k]);
        mica_grammar_free(g);
    }
    assert_true(n > 70);
}

static const struct refused {
    const char *grammar;
    mica_status status;
    int64_t position;
    const char *words[3];
} refused[] = {
    {"", MICA_BAD_TEXT, -1, {"\"root\""}},
    {"# only a comment", MICA_BAD_TEXT, -1, {"\"root\""}},
    {"start ::= \"a\"", MICA_BAD_TEXT, -1, {"\"root\""}},
    {"root ::= a\nb ::= \"x\"\n", MICA_BAD_TEXT, 9, {"\"a\"", "not defined", "line 1, column 10"}},
    {"root ::= \"é\"\nx ::= root y", MICA_BAD_TEXT, 25, {"\"y\"", "line 2, column 12"}},
    {"root ::= \"a\"\nroot ::= \"b\"", MICA_BAD_TEXT, 13, {"\"root\"", "second", "line 2, column 1"}},
    {"root = \"a\"", MICA_BAD_TEXT, 5, {"::="}},
    {"root ::= \"a", MICA_BAD_TEXT, 9, {"never closed"}},
    {"root ::= [a", MICA_BAD_TEXT, 9, {"never closed"}},
    {"root ::= [a-", MICA_BAD_TEXT, 9, {"never closed"}},
    {"root ::= []", MICA_BAD_TEXT, 9, {"no characters"}},
    {"root ::= [z-a]", MICA_BAD_TEXT, 10, {"z-a", "out of order"}},
    {"root ::= (\"a\"", MICA_BAD_TEXT, 9, {"never closed"}},
    {"root ::= (\"a\" ; )", MICA_BAD_TEXT, 9, {"not understood"}},
    {"root ::= \"a\")", MICA_BAD_TEXT, 12, {"not understood"}},
    {"root ::= \"a\" 'b'", MICA_BAD_TEXT, 13, {"not understood", "column 14"}},
    {"root ::= * \"a\"", MICA_BAD_TEXT, 9, {"repeat"}},
    {"root ::= \"a\" | +", MICA_BAD_TEXT, 15, {"repeat"}},
    {"root ::= \"a\"{x}", MICA_BAD_TEXT, 12, {"{m,n}"}},
    {"root ::= \"a\"{,}", MICA_BAD_TEXT, 12, {"{m,n}"}},
    {"root ::= \"a\"{1,2", MICA_BAD_TEXT, 12, {"{m,n}"}},
    {"root ::= \"a\"{3,2}", MICA_BAD_TEXT, 12, {"{3,2}"}},
    {"root ::= \"\\q\"", MICA_BAD_TEXT, 10, {"\\q"}},
    {"root ::= [\\-]", MICA_BAD_TEXT, 10, {"\\-"}},
    {"root ::= \"\\", MICA_BAD_TEXT, 10, {"backslash"}},
    {"root ::= \"\\é\"", MICA_BAD_TEXT, 10, {"backslash"}},
    {"root ::= \"\\x4\"", MICA_BAD_TEXT, 10, {"2 hex"}},
    {"root ::= \"\\u12G4\"", MICA_BAD_TEXT, 10, {"4 hex"}},
    {"root ::= \"\\U00110000\"", MICA_BAD_TEXT, 10, {"U+110000"}},
    {"root ::= \"a\\uD800\"", MICA_BAD_TEXT, 11, {"surrogate"}},
    {"root ::= \"a\xFF\"", MICA_BAD_TEXT, 11, {"UTF-8"}},
    {"root ::= <[123]>", MICA_UNSUPPORTED, 9, {"tokens"}},
    {"root ::= \"a\" <think>", MICA_UNSUPPORTED, 13, {"tokens"}},
    {"root ::= !<[1]>*", MICA_UNSUPPORTED, 9, {"tokens"}},
    {"root ::= root \"a\" | \"b\"", MICA_UNSUPPORTED, -1, {"\"root\"", "left-recursive"}},
    {"root ::= \"x\" expr\nexpr ::= ws sum | \"1\"\nsum ::= expr \"+\" expr\nws ::= \" \"*", MICA_UNSUPPORTED, -1,
     {"\"expr\"", "left-recursive", "expr -> sum -> expr"}},
    {"root ::= \"a\" root", MICA_INVALID_ARGUMENT, -1, {"\"root\"", "never be completed"}},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const struct refused *t = &refused[i];
        mica_grammar *g = (mica_grammar *)1;
        mica_error err = {.message = ""};
        mica_status status = mica_grammar_from_gbnf(t->grammar, strlen(t->grammar), &g, &err);
        if (status != t->status || err.position != t->position)
            fail_msg("%s\n%s at %d: %s", t->grammar, mica_status_name(status), (int)err.position, err.message);
        for (int k = 0; k < 3 && t->words[k]; k++)
            if (!strstr(err.message, t->words[k]))
                fail_msg("%s\n\"%s\" is not in: %s", t->grammar, t->words[k], err.message);
        assert_null(g);
        assert_int_equal(mica_utf8_check(err.message, strlen(err.message)), strlen(err.message));
    }
}

static void test_limits(void **state)
{
    (void)state;
    enum { DEPTH = 150, ROOM = 4096 };
    char text[ROOM] = "root ::= ";
    mica_grammar *g;
    mica_error err;
    size_t n = strlen(text);
    memset(text + n, '(', DEPTH);
    text[n + DEPTH] = '.';
    memset(text + n + DEPTH + 1, ')', DEPTH);
    g = parse(text);
    assert_true(grammar_matches(g, "x", 1));
    mica_grammar_free(g);
    memset(text + n, '(', ROOM - n);
    assert_int_equal(mica_grammar_from_gbnf(text, ROOM, &g, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "nested"));
    memset(text + n, 'x', ROOM - n);
    assert_int_equal(mica_grammar_from_gbnf(text, ROOM, &g, &err), MICA_BAD_TEXT);
    assert_non_null(strstr(err.message, "too long"));
}

/* Every beginning of a grammar with everything in it ends with a grammar or an error, and reads no byte behind its end. */
static void test_beginnings(void **state)
{
    (void)state;
    const char *text = "root ::= \"a\\x41\\\"\" [^a-c\\]é]{1,3} ( x | . # c\n )* |\n x\n"
                       "x ::= \"\\u00e9\\U0001F600\"+ [ぁ-ゟ]? \"b\"{2}\n";
    for (size_t n = 0; n <= strlen(text); n++) {
        char *copy = malloc(n + 1); /* exact, so that sanitizers see what is read behind it */
        assert_non_null(copy);
        memcpy(copy, text, n);
        char *exact = realloc(copy, n ? n : 1);
        mica_grammar *g;
        mica_error err = {.message = ""};
        mica_status status = mica_grammar_from_gbnf(exact, n, &g, &err);
        assert_int_equal(status == MICA_OK, g != NULL);
        assert_true(status == MICA_OK || err.message[0]);
        mica_grammar_free(g);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_beginnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
