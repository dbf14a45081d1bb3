/* Constraints on the real SmolLM2 (MICA_MODELS_DIR): cases gr-01 to gr-13 as replies, a classification, and what forced
 * runs save. */
#include <jansson.h>

#include "model_util.h"

#define CASES MICA_TEST_DATA "/cases/"

enum { CTX = 512, TEXT = 16384 };

typedef struct reply {
    char text[TEXT];
    size_t length;
    mica_result result;
} reply;

static int keep_text(void *user, const char *text, size_t n)
{
    reply *r = user;
    assert_true(r->length + n < TEXT);
    memcpy(r->text + r->length, text, n);
    r->length += n;
    r->text[r->length] = '\0';
    return 0;
}

static mica_constraint *make(mica_model *model, mica_constraint_kind kind, const char *text, bool lenient)
{
    mica_constraint_options o = mica_constraint_options_default();
    mica_constraint *c = NULL;
    mica_error err;
    o.kind = kind;
    o.text = text;
    o.length = strlen(text);
    o.lenient = lenient;
    if (mica_constraint_new(model, &o, &c, &err))
        fail_msg("%s", err.message);
    return c;
}

static mica_generate_options options_of(const mica_constraint *c, float temperature, int64_t seed, int32_t max_tokens)
{
    mica_generate_options o = mica_generate_options_default();
    o.constraint = c;
    o.sampling.temperature = temperature;
    o.sampling.seed = seed;
    o.max_tokens = max_tokens;
    o.on_text = keep_text;
    return o;
}

static void ask(mica_session *s, const char *prompt, mica_generate_options *o, reply *r)
{
    mica_error err;
    r->length = 0;
    r->text[0] = '\0';
    o->user = r;
    if (mica_session_prompt(s, prompt, strlen(prompt), MICA_TOKENIZE_PARSE_SPECIAL, &err) ||
        mica_session_generate(s, o, &r->result, &err))
        fail_msg("%s", err.message);
}

static void expect_match(const mica_constraint *c, const reply *r, const char *what)
{
    bool matches;
    mica_error err;
    assert_int_equal(mica_constraint_match(c, r->text, r->length, &matches, NULL, &err), MICA_OK);
    if (!matches)
        fail_msg("%s: not allowed: %s", what, r->text);
    json_t *value = json_loadb(r->text, r->length, JSON_DECODE_ANY, NULL);
    if (!value)
        fail_msg("%s: no JSON: %s", what, r->text);
    json_decref(value);
}

static const char json_prompt[] = "<|im_start|>user\nMake up an example as JSON.<|im_end|>\n<|im_start|>assistant\n";

/* Case gr-13: 50 seeds at temperature 1; the reply ends with the closing brace. */
static void test_no_trailing_blank(void **state)
{
    static reply r;
    size_t n;
    char *schema = load_bytes(CASES "gr-13-no-trailing-blank/schema.json", &n);
    schema[n] = '\0';
    mica_constraint *c = make(*state, MICA_CONSTRAINT_JSON_SCHEMA, schema, false);
    mica_session *s = open_session(*state, CTX, 2, 0);
    int stopped = 0;
    for (int seed = 0; seed < 50; seed++) {
        mica_generate_options o = options_of(c, 1.0f, seed, 400);
        ask(s, json_prompt, &o, &r);
        if (strcmp(r.result.stop_reason, "stop") != 0)
            continue; /* it did not close the object in time */
        stopped++;
        assert_int_equal(r.text[r.length - 1], '}');
        expect_match(c, &r, "gr-13");
    }
    assert_true(stopped >= 45);
    mica_session_free(s);
    mica_constraint_free(c);
    free(schema);
}

/* Cases gr-01 to gr-11: three seeds at temperature 1, 200 tokens, closed where that is not enough. */
static void test_schemas(void **state)
{
    static const char *const names[] = {"gr-01-pattern-classes", "gr-02-pattern-escapes", "gr-03-enum-behind-ref",
                                        "gr-05-recursive-tree", "gr-06-max-length-threshold", "gr-08-const-with-quotes",
                                        "gr-09-integer-ranges", "gr-10-additional-properties", "gr-11-items-and-unique"};
    static reply r;
    mica_session *s = open_session(*state, CTX, 2, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        size_t n;
        snprintf(path, sizeof path, CASES "%s/schema.json", names[i]);
        char *schema = load_bytes(path, &n);
        schema[n] = '\0';
        mica_constraint *c = make(*state, MICA_CONSTRAINT_JSON_SCHEMA, schema, true);
        for (int seed = 1; seed <= 3; seed++) {
            mica_generate_options o = options_of(c, 1.0f, seed, 200);
            o.close = true;
            ask(s, json_prompt, &o, &r);
            expect_match(c, &r, names[i]);
        }
        mica_constraint_free(c);
        free(schema);
    }
    mica_session_free(s);
}

static void test_classification(void **state)
{
    static const struct {
        const char *text, *label;
    } items[] = {{"I love this wonderful phone, it is great!", "positive"},
                 {"Terrible. It broke after a day and I hate it.", "negative"}};
    static reply r;
    mica_constraint *c = make(*state, MICA_CONSTRAINT_CHOICES, "[\"positive\",\"negative\"]", false);
    mica_session *s = open_session(*state, CTX, 2, 0);
    for (int i = 0; i < 2; i++) {
        char prompt[400];
        snprintf(prompt, sizeof prompt,
                 "Review: The food was awful.\nSentiment: negative\nReview: What a lovely day we had!\nSentiment: positive\n"
                 "Review: %s\nSentiment: ", items[i].text);
        mica_generate_options o = options_of(c, 0.0f, 1, 20);
        o.token_healing = true; /* the prompt ends with a space */
        ask(s, prompt, &o, &r);
        assert_string_equal(r.text, items[i].label);
        assert_string_equal(r.result.stop_reason, "stop");
    }
    mica_session_free(s);
    mica_constraint_free(c);
}

/* Long keys cost no steps: the forced tokens are computed with those that are chosen, and the reply is that of single steps. */
static void test_forced_runs(void **state)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"customer_full_name\":{\"type\":\"string\",\"maxLength\":20},"
        "\"preferred_contact_method\":{\"enum\":[\"email\",\"telephone\"]},\"number_of_previous_orders\":{\"type\":\"integer\","
        "\"minimum\":0,\"maximum\":99}},\"required\":[\"customer_full_name\",\"preferred_contact_method\","
        "\"number_of_previous_orders\"],\"additionalProperties\":false}";
    static reply fast, slow;
    mica_constraint *c = make(*state, MICA_CONSTRAINT_JSON_SCHEMA, schema, false);
    mica_session *s = open_session(*state, CTX, 2, 0);
    mica_generate_options o = options_of(c, 0.0f, 1, 200);
    ask(s, json_prompt, &o, &fast);
    o.top_logprobs = 1; /* one at a time */
    ask(s, json_prompt, &o, &slow);
    assert_string_equal(fast.text, slow.text);
    assert_int_equal(fast.result.gen_n, slow.result.gen_n);
    expect_match(c, &fast, "long keys");
    printf("%s\n%d tokens, of which %d were not chosen: %d steps\n", fast.text, fast.result.gen_n, fast.result.forced_n,
           fast.result.gen_n - fast.result.forced_n);
    assert_true(fast.result.forced_n * 2 > fast.result.gen_n);
    mica_session_free(s);
    mica_constraint_free(c);
}

int main(void)
{
    const char *dir = getenv("MICA_MODELS_DIR");
    char path[512] = "";
    if (dir)
        snprintf(path, sizeof path, "%s/smollm2-135m-instruct-q4_1.gguf", dir);
    FILE *f = dir ? fopen(path, "rb") : NULL;
    if (!f) {
        printf("skipped: MICA_MODELS_DIR has no smollm2-135m-instruct-q4_1.gguf\n");
        return 77;
    }
    fclose(f);
    mica_model *model = open_model(path, NULL);
#define TEST(name) cmocka_unit_test_prestate(name, model)
    const struct CMUnitTest tests[] = {TEST(test_classification), TEST(test_forced_runs), TEST(test_no_trailing_blank),
                                       TEST(test_schemas)};
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mica_model_close(model);
    return failed;
}
