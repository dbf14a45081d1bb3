/* Every architecture against transformers: tiny random models whose float32 logits were recorded by tests/data/tiny/make_tiny.py.
 * The difference stays under 1e-3 of the range of the logits. Most of it comes from the F16 cache: against the logits of an
 * independent forward pass that rounds keys and values too (forward.py), it stays under 2e-4. */
#include <math.h>

#include "model_util.h"

typedef struct comparison {
    const float *want;
    size_t vocab;
    float worst, lowest, highest;
} comparison;

static int compare_row(void *user, size_t position, const float *logits)
{
    comparison *c = user;
    const float *want = c->want + position * c->vocab;
    for (size_t i = 0; i < c->vocab; i++) {
        float d = fabsf(logits[i] - want[i]);
        c->worst = d > c->worst || isnan(d) ? d : c->worst;
        c->lowest = want[i] < c->lowest ? want[i] : c->lowest;
        c->highest = want[i] > c->highest ? want[i] : c->highest;
    }
    return 0;
}

static void check_greedy(mica_session *s, const int32_t *tokens, size_t n, const json_t *greedy)
{
    mica_error err;
    mica_generate_options o = mica_generate_options_default();
    mica_result result;
    o.sampling.temperature = 0.0f;
    o.ignore_eos = true;
    o.max_tokens = (int32_t)json_array_size(greedy);
    assert_int_equal(mica_session_sync(s, tokens, n, &err), MICA_OK);
    if (mica_session_generate(s, &o, &result, &err))
        fail_msg("%s", err.message);
    size_t total;
    const int32_t *all = mica_session_tokens(s, &total);
    assert_int_equal(total, n + json_array_size(greedy));
    for (size_t i = 0; i < json_array_size(greedy); i++)
        assert_int_equal(all[n + i], json_integer_value(json_array_get(greedy, i)));
}

static void score_run(mica_session *s, const int32_t *tokens, size_t n, const float *want, size_t vocab, float bound, const char *name)
{
    comparison c = {.want = want, .vocab = vocab, .lowest = want[0], .highest = want[0]};
    mica_error err;
    if (mica_session_score(s, tokens, n, 0, compare_row, &c, &err))
        fail_msg("%s: %s", name, err.message);
    float part = c.worst / (c.highest - c.lowest);
    print_message("%s: worst difference %.2g of the range, bound %.2g\n", name, (double)part, (double)bound);
    assert_true(part <= bound);
}

static size_t check_run(mica_model *model, const json_t *run, const float *want, const float *want_kv16, size_t vocab, const char *name)
{
    int32_t *tokens;
    size_t n = int_array(json_object_get(run, "tokens"), &tokens);
    mica_session *s = open_session(model, (int32_t)json_integer_value(json_object_get(run, "n_ctx")), 2, 16);
    score_run(s, tokens, n, want, vocab, 1e-3f, name);
    score_run(s, tokens, n, want_kv16, vocab, 2e-4f, name);
    if (json_object_get(run, "greedy"))
        check_greedy(s, tokens, n, json_object_get(run, "greedy"));
    mica_session_free(s);
    free(tokens);
    return n;
}

static void test_logits(void **state)
{
    (void)state;
    const char *folder = MICA_TEST_DATA "/tiny";
    char path[512];
    json_t *index = load_json(MICA_TEST_DATA "/tiny/index.json"), *entry, *run;
    size_t i, j, bytes;
    json_array_foreach(json_object_get(index, "models"), i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        size_t vocab = (size_t)json_integer_value(json_object_get(entry, "vocab")), row = 0;
        float *want = load_bytes(test_path(path, folder, json_string_value(json_object_get(entry, "logits"))), &bytes);
        char rounded[64];
        snprintf(rounded, sizeof rounded, "%s.kv16.bin", name);
        float *want_kv16 = load_bytes(test_path(path, folder, rounded), &bytes);
        mica_model *model = open_model(test_path(path, folder, json_string_value(json_object_get(entry, "file"))), NULL);
        json_array_foreach(json_object_get(entry, "runs"), j, run)
            row += check_run(model, run, want + row * vocab, want_kv16 + row * vocab, vocab, name);
        assert_int_equal(row * vocab * sizeof(float), bytes);
        mica_model_close(model);
        free(want);
        free(want_kv16);
    }
    assert_true(i >= 8);
    json_decref(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_logits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
