/* The three real models against llama.cpp's CPU build (tests/data/gold): greedy continuations up to the first close decision,
 * log-probabilities, perplexity. Engines quantise activations differently; llama.cpp differs from itself by as much as is allowed
 * here. The tight checks are test_tiny and test_reference. */
#include <math.h>

#include "model_util.h"

#define CLOSE_MARGIN 0.6     /* decisions closer than this may fall either way */
#define MEAN_LOGPROB 0.15    /* mean |difference| of the top-10 log-probabilities */
#define PERPLEXITY_PART 0.01 /* relative */
#define WINDOW 512
#define WINDOWS 8 /* of the text; the whole text takes minutes: bench/perplexity */

static const char *const models[] = {"smollm2-135m-instruct-q4_1", "qwen2.5-coder-0.5b-instruct-q4_k_m", "gemma-3-270m-q4_k_m"};

static double log_sum_exp(const float *logits, int32_t n)
{
    double max = (double)logits[0], sum = 0.0;
    for (int32_t i = 1; i < n; i++)
        max = (double)logits[i] > max ? (double)logits[i] : max;
    for (int32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    return max + log(sum);
}

/* Forces the gold continuation and compares each step. Returns the sum of |difference| over *count log-probabilities. */
static double check_prompt(mica_session *s, const json_t *p, int32_t n_vocab, size_t *count, int *steps)
{
    int32_t *prompt, *greedy;
    mica_error err;
    size_t n = int_array(json_object_get(p, "ids_prompt"), &prompt), m = int_array(json_object_get(p, "greedy_ids"), &greedy);
    const json_t *margins = json_object_get(p, "top1_top2_logit_margin"), *tops = json_object_get(p, "top10_logprobs_first8");
    double sum = 0.0;
    prompt = realloc(prompt, (n + m + 1) * sizeof *prompt);
    for (size_t i = 0; i < m && n > 0; i++) { /* an empty prompt of a model without BOS has nothing to continue */
        if (mica_session_sync(s, prompt, n + i, &err))
            fail_msg("%s", err.message);
        const float *logits = mica_session_logits(s);
        double lse = log_sum_exp(logits, n_vocab);
        for (size_t k = 0; i < json_array_size(tops) && k < 10; k++) {
            const json_t *pair = json_array_get(json_array_get(tops, i), k);
            sum += fabs((double)logits[json_integer_value(json_array_get(pair, 0))] - lse - json_number_value(json_array_get(pair, 1)));
            ++*count;
        }
        if (json_number_value(json_array_get(margins, i)) < CLOSE_MARGIN)
            break;
        int32_t best = 0;
        for (int32_t v = 1; v < n_vocab; v++)
            best = logits[v] > logits[best] ? v : best;
        if (best != greedy[i])
            fail_msg("%s: step %zu gives token %d, gold has %d with a margin of %.2f", json_string_value(json_object_get(p, "name")), i,
                     best, greedy[i], json_number_value(json_array_get(margins, i)));
        prompt[n + i] = greedy[i];
        ++*steps;
    }
    free(prompt);
    free(greedy);
    return sum;
}

typedef struct scoring {
    const int32_t *tokens;
    int32_t n_vocab;
    double nll;
    size_t n;
} scoring;

static int score_row(void *user, size_t position, const float *logits)
{
    scoring *s = user;
    if (position + 1 == WINDOW)
        return 0;
    s->nll += log_sum_exp(logits, s->n_vocab) - (double)logits[s->tokens[position + 1]];
    s->n++;
    return 0;
}

static void check_perplexity(mica_model *model, mica_session *s, const json_t *nll, const mica_model_info *info)
{
    size_t length, n;
    int32_t *tokens;
    mica_error err;
    char *text = load_bytes(MICA_TEST_DATA "/gold/ppl-text.txt", &length);
    double got = 0.0, want = 0.0;
    if (mica_model_tokenize(model, text, length, MICA_TOKENIZE_ADD_BOS, &tokens, &n, &err))
        fail_msg("%s", err.message);
    assert_int_equal(n, json_integer_value(json_object_get(nll, "n_tokens")));
    for (size_t w = 0; w < WINDOWS; w++) {
        scoring sc = {.tokens = tokens + w * WINDOW, .n_vocab = info->n_vocab};
        int32_t first = tokens[w * WINDOW];
        if (info->add_bos)
            tokens[w * WINDOW] = info->bos_token;
        if (mica_session_score(s, tokens + w * WINDOW, WINDOW, WINDOW / 2, score_row, &sc, &err))
            fail_msg("%s", err.message);
        tokens[w * WINDOW] = first;
        got += sc.nll / (double)sc.n;
        want += json_number_value(json_array_get(json_object_get(nll, "chunks"), w));
    }
    double ratio = exp((got - want) / WINDOWS);
    print_message("  perplexity %.4f, gold %.4f over the first %d windows (ratio %.5f)\n", exp(got / WINDOWS), exp(want / WINDOWS),
                  WINDOWS, ratio);
    assert_true(fabs(ratio - 1.0) <= PERPLEXITY_PART);
    mica_free(tokens);
    free(text);
}

static void check_model(const char *folder, const char *name)
{
    char path[512], file[128];
    snprintf(file, sizeof file, "%s.gguf", name);
    mica_model *model = open_model(test_path(path, folder, file), NULL);
    snprintf(file, sizeof file, "logits-%s.json", name);
    json_t *gold = load_json(test_path(path, MICA_TEST_DATA "/gold", file)), *p;
    mica_model_info info;
    mica_model_get_info(model, &info);
    mica_session *s = open_session(model, 1024, 2, 256);
    double sum = 0.0;
    size_t i, count = 0;
    int steps = 0;
    json_array_foreach(json_object_get(gold, "prompts"), i, p)
        sum += check_prompt(s, p, info.n_vocab, &count, &steps);
    print_message("%s: %d greedy steps equal, mean |log-probability difference| %.4f over %zu\n", name, steps, sum / (double)count, count);
    assert_true(i >= 20 && steps >= 30);
    assert_true(sum / (double)count <= MEAN_LOGPROB);
    check_perplexity(model, s, json_object_get(gold, "nll"), &info);
    mica_session_free(s);
    mica_model_close(model);
    json_decref(gold);
}

static void test_gold(void **state)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        check_model(*state, models[i]);
}

int main(void)
{
    const char *folder = getenv("MICA_MODELS_DIR");
    char path[512];
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char file[128];
        snprintf(file, sizeof file, "%s.gguf", models[i]);
        FILE *f = folder ? fopen(test_path(path, folder, file), "rb") : NULL;
        if (!f) {
            print_message("skipped: MICA_MODELS_DIR has no %s\n", file);
            return 77;
        }
        fclose(f);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_gold, (void *)(uintptr_t)folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
