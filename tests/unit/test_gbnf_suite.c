/* test_gbnf_suite.c - the grammars that llama.cpp ships: each is read, and matches the texts it is for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar_match.h"

static const struct row {
    const char *file;
    const char *accept[4], *reject[4];
} table[] = {
    {"arithmetic", {"1+2*x=3\n", "(a -1) *2 = 7 \n1=1\n"}, {"1+=2\n", "1=2", "=\n"}},
    {"c", {"", "int f(){return x;}", "int main(){int x = 1;//c\n}"}, {"int f({}", "return x;"}},
    {"chess", {"1. e4 e5\n2. Nf3 Nc6\n", "1. d4 d5\n2. c4 dxc4\n3. O-O-O Qxa1+\n"}, {"1. e4 e5\n", "1. e9 e5\n2. a1 a2\n"}},
    {"english", {"Hello, world!", "a\tb [c] \\ ]"}, {"", "caf\xC3\xA9"}},
    {"japanese", {"ひらがな カタカナ", "日本語。"}, {"abc", " 日"}},
    {"json", {"{\"a\": [1, -2.5e3, \"x\\n\\u00e9\"]}", "{}"}, {"[]", "{\"a\":}", "{\"a\":01}", "{\"a\":\"\n\"}"}},
    {"json_arr", {"[\n{\"a\":1},\n\"b\"]", "[\n]"}, {"[]", "[\n1,]"}},
    {"list", {"- a\n", "- a\n- b c\n"}, {"- a", "-a\n", "- \n"}},
};

static const char *folder(void) { return getenv("MICA_SUITES_DIR"); }

static size_t read_grammar(const char *name, char *text, size_t capacity)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/grammars/%s.gbnf", folder(), name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    size_t n = fread(text, 1, capacity, file);
    fclose(file);
    return n;
}

static void test_suite(void **state)
{
    (void)state;
    static char text[1 << 16];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        mica_grammar *g;
        mica_error err = {.message = ""};
        if (mica_grammar_from_gbnf(text, read_grammar(table[i].file, text, sizeof text), &g, &err))
            fail_msg("%s: %s", table[i].file, err.message);
        for (int k = 0; k < 4 && table[i].accept[k]; k++)
            if (!grammar_matches(g, table[i].accept[k], strlen(table[i].accept[k])))
                fail_msg("%s does not match \"%s\"", table[i].file, table[i].accept[k]);
        for (int k = 0; k < 4 && table[i].reject[k]; k++)
            if (grammar_matches(g, table[i].reject[k], strlen(table[i].reject[k])))
                fail_msg("%s matches \"%s\"", table[i].file, table[i].reject[k]);
        mica_grammar_free(g);
    }
}

int main(void)
{
    if (!folder()) {
        puts("MICA_SUITES_DIR is not set: skipped");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_suite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
