/* Masks over the vocabulary of a real model, every token of 152,000 against brute force, and how long they take. The models'
 * folder comes from MICA_MODELS_DIR; without it the program reports that it was skipped (77). */
#include "mask_util.h"

#include <unistd.h>

#include "base/clock.h"

static opened model;

static const char JSON[] = "root ::= value\n"
                           "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
                           "object ::= \"{\" (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\"\n"
                           "array ::= \"[\" (value (\",\" ws value)*)? \"]\"\n"
                           "string ::= \"\\\"\" ([^\"\\\\\\x7F\\x00-\\x1F] |"
                           " \"\\\\\" ([\"\\\\/bfnrt] | \"u\" [0-9a-fA-F]{4}))* \"\\\"\"\n"
                           "number ::= \"-\"? (\"0\" | [1-9] [0-9]*) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)?\n"
                           "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";
#define CHAR "[^\"\\\\\\x7F\\x00-\\x1F]"
static const char BOUNDED[] = "root ::= \"{\\\"name\\\":\\\"\" " CHAR "{1,30} \"\\\",\\\"id\\\":\\\"\" [a-z]{3,8} "
                              "\"\\\",\\\"text\\\":\\\"\" " CHAR "{0,200} \"\\\"}\"";

static void check_along(const char *grammar, const char *text)
{
    int32_t *tokens;
    size_t n;
    assert_int_equal(mica_vocab_tokenize(model.vocab, text, strlen(text), 0, &tokens, &n, NULL), MICA_OK);
    masked k = open_gbnf(model.vocab, grammar);
    for (size_t i = 0; i < n; i++) {
        char bytes[256], what[40];
        size_t taken, length = mica_vocab_bytes(model.vocab, tokens[i], false, bytes, sizeof bytes);
        snprintf(what, sizeof what, "token %zu", i);
        check_mask(&k, what);
        assert_true(is_allowed(&k, tokens[i]));
        assert_int_equal(mica_matcher_push(k.m, bytes, length, &taken, NULL), MICA_OK);
    }
    assert_true(mica_matcher_may_end(k.m));
    free(tokens);
    close_masked(&k);
}

static void test_json(void **state)
{
    (void)state;
    check_along(JSON, "{\"name\": \"Zo\xC3\xAB \\\"Z\\\" \xE6\x9D\xB1\", \"n\": [1, -2.5e7], "
                      "\"ok\": true, \"x\": {\"y\": []}}");
}

static void test_bounded(void **state)
{
    (void)state;
    check_along(BOUNDED, "{\"name\":\"Alice Johnson of Springfield\",\"id\":\"abcdefg\",\"text\":\"She likes to walk.\"}");
}

/* A bound that only a broken cache exceeds, on a slow machine under load too; bench/masks measures. */
static void test_time(void **state)
{
    (void)state;
    enum { TIMES = 2000 };
    masked k = open_gbnf(model.vocab, JSON);
    assert_int_equal(mica_matcher_push(k.m, "{\"a\": \"b", 8, NULL, NULL), MICA_OK);
    int64_t start = mica_now_ns();
    for (int i = 0; i < TIMES; i++)
        assert_int_equal(mica_masks_fill(k.masks, k.m, k.mask, NULL, NULL), MICA_OK);
    double us = (double)(mica_now_ns() - start) * 1e-3 / TIMES;
    printf("a mask inside a string: %.2f us\n", us);
    assert_true(us < 200);
    close_masked(&k);
}

static const char *model_path(void)
{
    static char path[1200];
    const char *folder = getenv("MICA_MODELS_DIR");
    snprintf(path, sizeof path, "%s/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", folder ? folder : "");
    return folder && !access(path, R_OK) ? path : NULL;
}

static int open_model(void **state)
{
    (void)state;
    model = open_vocab(model_path());
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    close_vocab(&model);
    return 0;
}

int main(void)
{
    if (!model_path()) {
        puts("skipped: MICA_MODELS_DIR has no qwen2.5-coder-0.5b-instruct-q4_k_m.gguf");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
