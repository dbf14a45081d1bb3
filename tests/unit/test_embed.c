/* Embeddings: the definition of docs/numerics.md, worked out from single states; the states against logits and against
 * transformers; the same bits for all threads, chunks, kernel sets and cached prefixes; what they leave behind. */
#include "reply_util.h"

#include "random_model.h"

enum { MAX_EMBD = 576, CTX_EMBED = 200 };

static void embed(mica_session *s, const int32_t *tokens, size_t n, mica_pooling pooling, bool normalise, float *out)
{
    mica_error err;
    memset(out, 0xAA, MAX_EMBD * sizeof *out);
    if (mica_session_embed(s, tokens, n, pooling, normalise, out, &err))
        fail_msg("%s", err.message);
}

static void make_tokens(int32_t *tokens, int32_t n, int32_t first)
{
    for (int32_t i = 0; i < n; i++)
        tokens[i] = 3 + (first + i * 7919 + i * i * 31) % 280;
}

static size_t width_of(const mica_session *s) { return (size_t)s->model->weights.h.n_embd; }

static mica_model *tiny(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", name);
    return open_model(path, NULL);
}

static mica_model *random_model(mica_type type)
{
    char path[] = "/tmp/mica-embed-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(write_random_model(path, type));
    mica_model *model = open_model(path, NULL);
    unlink(path);
    return model;
}

/* ---- the values ---- */

/* The mean as docs/numerics.md has it, from the states of all prefixes. */
static void check_mean(mica_model *model, const char *name)
{
    int32_t tokens[40];
    float state[MAX_EMBD], want[MAX_EMBD], got[MAX_EMBD];
    double sum[MAX_EMBD] = {0.0}, squares = 0.0;
    mica_session *s = open_session(model, CTX_EMBED, 2, 16);
    size_t width = width_of(s);
    make_tokens(tokens, 40, 5);
    for (size_t n = 1; n <= 40; n++) {
        embed(s, tokens, n, MICA_POOLING_LAST, false, state);
        for (size_t i = 0; i < width; i++)
            sum[i] += (double)state[i];
    }
    for (size_t i = 0; i < width; i++) {
        want[i] = (float)(sum[i] / 40.0);
        squares += (double)want[i] * (double)want[i];
    }
    embed(s, tokens, 40, MICA_POOLING_MEAN, false, got);
    if (memcmp(got, want, width * sizeof *got) != 0)
        fail_msg("%s: the mean is not that of the states", name);
    for (size_t i = 0; i < width; i++)
        want[i] = (float)((double)want[i] / sqrt(squares));
    embed(s, tokens, 40, MICA_POOLING_MEAN, true, got);
    assert_memory_equal(got, want, width * sizeof *got);
    mica_session_free(s);
}

static void test_mean(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "qwen2", "gemma2", "gemma3", "phi3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mica_model *model = tiny(names[i]);
        check_mean(model, names[i]);
        mica_model_close(model);
    }
}

/* What the output matrix makes of a state. */
static void project(const mica_model *model, const float *x, float *logits)
{
    const mica_weight *w = &model->weights.output;
    const mica_kernels *kern = &model->kernels;
    int8_t q[MAX_EMBD];
    int16_t sum[MAX_EMBD / 16];
    float d[MAX_EMBD / 32];
    void *scratch = aligned_alloc(64, MICA_MATMUL_SCRATCH);
    mica_act a = {.n = 1, .k = w->cols, .block = mica_act_block(w->quant), .f = x, .q = q, .d = d, .sum = sum};
    if (a.block == 32)
        kern->quantize32(x, w->cols, q, d, sum);
    else if (a.block == 256)
        kern->quantize256(x, w->cols, q, d, sum);
    mica_matmul m = {.quant = w->quant, .w = w->data, .row_bytes = w->row_bytes, .x = &a, .out = logits, .out_stride = w->rows};
    mica_kernels_multiply(kern, &m, 0, w->rows, scratch);
    if (model->weights.h.final_softcap > 0.0f)
        kern->softcap(logits, model->weights.h.final_softcap, w->rows);
    free(scratch);
}

/* The state of the last token is the one that the logits come from, bit for bit. */
static void check_projection(mica_model *model, const char *name)
{
    int32_t tokens[70];
    float last[MAX_EMBD], logits[288];
    mica_session *s = open_session(model, CTX_EMBED, 3, 32), *t = open_session(model, CTX_EMBED, 1, 64);
    mica_error err;
    assert_int_equal(model->weights.h.n_vocab, 288);
    make_tokens(tokens, 70, 11);
    for (size_t n = 1; n <= 70; n += n < 8 ? 1 : 31) {
        embed(s, tokens, n, MICA_POOLING_LAST, false, last);
        project(model, last, logits);
        assert_int_equal(mica_session_sync(t, tokens, n, &err), MICA_OK);
        if (memcmp(logits, mica_session_logits(t), sizeof logits) != 0)
            fail_msg("%s: the state of token %zu gives other logits", name, n);
    }
    mica_session_free(s);
    mica_session_free(t);
}

static void test_projection(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "llama3-rope", "mistral", "qwen2",    "qwen3",
                                        "gemma2", "gemma3",      "phi3",    "phi4-mini"};
    static const mica_type types[] = {MICA_TYPE_F16, MICA_TYPE_Q8_0, MICA_TYPE_Q4_1, MICA_TYPE_Q4_K};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mica_model *model = tiny(names[i]);
        check_projection(model, names[i]);
        mica_model_close(model);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        mica_model *model = random_model(types[i]);
        check_projection(model, mica_quant_of(types[i])->name);
        mica_model_close(model);
    }
}

/* The largest difference, as a part of the range of what is wanted. */
static float difference(const float *got, const json_t *want, size_t width)
{
    float worst = 0.0f, low = INFINITY, high = -INFINITY;
    assert_int_equal(json_array_size(want), width);
    for (size_t i = 0; i < width; i++) {
        float w = (float)json_number_value(json_array_get(want, i)), d = fabsf(got[i] - w);
        worst = d > worst || isnan(d) ? d : worst;
        low = w < low ? w : low;
        high = w > high ? w : high;
    }
    return worst / (high - low);
}

/* Against the states that transformers computed in float32 (tests/data/tiny/make_embeddings.py); the difference is the F16
 * cache's, as in test_tiny.c. */
static void test_transformers(void **state)
{
    (void)state;
    float got[MAX_EMBD];
    json_t *index = load_json(MICA_TEST_DATA "/tiny/index.json"), *all = load_json(MICA_TEST_DATA "/tiny/embeddings.json");
    json_t *entry, *run;
    size_t i, j, checked = 0;
    json_array_foreach(json_object_get(index, "models"), i, entry) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        mica_model *model = tiny(name);
        json_array_foreach(json_object_get(entry, "runs"), j, run) {
            int32_t *tokens;
            size_t n = int_array(json_object_get(run, "tokens"), &tokens);
            const json_t *want = json_array_get(json_object_get(all, name), j);
            mica_session *s = open_session(model, (int32_t)json_integer_value(json_object_get(run, "n_ctx")), 2, 16);
            embed(s, tokens, n, MICA_POOLING_MEAN, false, got);
            float mean = difference(got, json_object_get(want, "mean"), width_of(s));
            embed(s, tokens, n, MICA_POOLING_LAST, false, got);
            float last = difference(got, json_object_get(want, "last"), width_of(s));
            print_message("%s: mean %.2g, last %.2g of the range\n", name, (double)mean, (double)last);
            assert_true(mean <= 1e-3f && last <= 1e-3f);
            checked++;
            mica_session_free(s);
            free(tokens);
        }
        mica_model_close(model);
    }
    assert_true(checked >= 11);
    json_decref(index);
    json_decref(all);
}

/* ---- the same bits on every path ---- */

static uint64_t embed_hash(mica_session *s, const int32_t *tokens, size_t n)
{
    float out[MAX_EMBD];
    uint64_t h = 0xCBF29CE484222325ull;
    for (int pooling = 0; pooling < 2; pooling++)
        for (int normalise = 0; normalise < 2; normalise++) {
            embed(s, tokens, n, (mica_pooling)pooling, normalise, out);
            h = hash_bytes(h, out, width_of(s) * sizeof *out);
        }
    return h;
}

static void check_paths(const char *path, const char *name)
{
    static const int threads[] = {1, 2, 3, 8}, chunks[] = {1, 3, 7, 64, 512};
    int32_t tokens[150];
    uint64_t want = 0;
    make_tokens(tokens, 150, 1);
    for (size_t set = 0; set < mica_isa_count(); set++) {
        if (!mica_isa_at(set)->supported())
            continue;
        mica_model *model = open_model(path, mica_isa_at(set)->name);
        for (int t = 0; t < 4; t++)
            for (int c = 0; c < 5; c++) {
                if (set == 0 ? t + c != 4 : (t + c + (int)set) % 3 != 0) /* some of the pairs */
                    continue;
                if (threads[t] == 8 && chunks[c] < 7) /* hundreds of steps of threads that wait for one another */
                    continue;
                mica_session *s = open_session(model, CTX_EMBED, threads[t], chunks[c]);
                uint64_t h = embed_hash(s, tokens, 110);
                want = want ? want : h;
                if (h != want)
                    fail_msg("%s: %s, %d threads, chunk %d differ", name, mica_isa_at(set)->name, threads[t], chunks[c]);
                mica_session_free(s);
            }
        mica_model_close(model);
    }
}

static void test_paths(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "qwen3", "gemma2", "gemma3", "phi3-longrope"};
    static const mica_type types[] = {MICA_TYPE_Q8_0, MICA_TYPE_Q4_K};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[i]);
        check_paths(path, names[i]);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char path[] = "/tmp/mica-embed-XXXXXX";
        close(mkstemp(path));
        assert_true(write_random_model(path, types[i]));
        check_paths(path, mica_quant_of(types[i])->name);
        unlink(path);
    }
}

/* ---- many texts ---- */

typedef struct counted {
    int32_t computed; /* tokens of the last text */
    int32_t cancel_at;
} counted;

static int count_tokens(void *user, int32_t done, int32_t total)
{
    counted *c = user;
    c->computed = total;
    return c->cancel_at > 0 && done >= c->cancel_at;
}

static mica_session *counting_session(mica_model *model, counted *c, int32_t chunk)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s = NULL;
    mica_error err;
    o.n_ctx = CTX_EMBED;
    o.n_threads = 2;
    o.prefill_chunk = chunk;
    o.on_prefill = count_tokens;
    o.user = c;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

/* Embeds with the long-lived session and compares with a fresh one; returns how many tokens were computed. */
static int32_t embed_again(mica_session *s, counted *c, const int32_t *tokens, size_t n, mica_pooling pooling)
{
    float got[MAX_EMBD], want[MAX_EMBD];
    mica_session *fresh = open_session(s->model, CTX_EMBED, 1, 64);
    embed(fresh, tokens, n, pooling, true, want);
    embed(s, tokens, n, pooling, true, got);
    assert_memory_equal(got, want, width_of(s) * sizeof *got);
    mica_session_free(fresh);
    return c->computed;
}

/* An instruction of 40 tokens before texts of 10 to 30. */
static size_t instructed(int32_t *tokens, int32_t i)
{
    int32_t n = 10 + i * 7 % 21;
    make_tokens(tokens, 40, 2);
    make_tokens(tokens + 40, n, 50 + i * 17);
    tokens[40] = 10 + i; /* nothing more in common */
    return 40 + (size_t)n;
}

static void test_prefixes(void **state)
{
    (void)state;
    counted c = {0};
    int32_t tokens[100];
    mica_model *model = tiny("llama");
    mica_session *s = counting_session(model, &c, 16);
    for (int32_t i = 0; i < 12; i++) {
        size_t n = instructed(tokens, i);
        assert_int_equal(embed_again(s, &c, tokens, n, MICA_POOLING_MEAN), i < 2 ? n : n - 40);
    }
    for (int32_t i = 0; i < 4; i++) { /* the last state needs no sum */
        size_t n = instructed(tokens, 20 + i);
        assert_int_equal(embed_again(s, &c, tokens, n, MICA_POOLING_LAST), n - 40);
    }
    size_t n = instructed(tokens, 30);
    assert_int_equal(embed_again(s, &c, tokens, n, MICA_POOLING_MEAN), n - 40);
    for (int i = 0; i < 3; i++) /* the same text: of the prefix that it has with itself only the last token is not used */
        embed_again(s, &c, tokens, n, MICA_POOLING_MEAN);
    assert_int_equal(c.computed, n - 40);
    tokens[0] ^= 1;
    assert_int_equal(embed_again(s, &c, tokens, n, MICA_POOLING_MEAN), n); /* nothing in common */
    embed_again(s, &c, tokens, 1, MICA_POOLING_MEAN);
    embed_again(s, &c, tokens, 1, MICA_POOLING_LAST);
    mica_session_free(s);
    mica_model_close(model);
}

/* Any texts in any order, with other uses of the session between: the sum that is kept never becomes wrong. */
static void test_mixture(void **state)
{
    (void)state;
    static const char *const names[] = {"qwen3", "gemma3"}; /* the second forgets what is behind its windows */
    for (size_t m = 0; m < 2; m++) {
        counted c = {0};
        int32_t tokens[CTX_EMBED];
        mica_rng rng;
        mica_error err;
        mica_model *model = tiny(names[m]);
        mica_session *s = counting_session(model, &c, 24);
        mica_rng_seed(&rng, 7 + m);
        for (int i = 0; i < 150; i++) {
            int32_t n = 1 + (int32_t)(mica_rng_unit(&rng) * CTX_EMBED), fork = (int32_t)(mica_rng_unit(&rng) * n), kind = i % 5;
            make_tokens(tokens, n, 4);
            for (int32_t k = fork; k < n; k++)
                tokens[k] = 3 + (tokens[k] + i * 13) % 280;
            if (kind < 4)
                embed_again(s, &c, tokens, (size_t)n, kind < 3 ? MICA_POOLING_MEAN : MICA_POOLING_LAST);
            else
                assert_int_equal(mica_session_sync(s, tokens, (size_t)(n < CTX_EMBED ? n : n - 1), &err), MICA_OK);
        }
        mica_session_free(s);
        mica_model_close(model);
    }
}

/* ---- what is left behind ---- */

static void test_history(void **state)
{
    (void)state;
    int32_t tokens[CTX_EMBED];
    float out[MAX_EMBD];
    size_t n;
    mica_error err;
    mica_model *model = tiny("qwen2");
    mica_session *s = open_session(model, CTX_EMBED, 2, 32), *t = open_session(model, CTX_EMBED, 1, 32);
    make_tokens(tokens, CTX_EMBED, 9);
    assert_int_equal(mica_session_sync(s, tokens, 30, &err), MICA_OK);
    embed(s, tokens, 100, MICA_POOLING_MEAN, true, out);
    assert_null(mica_session_logits(s));
    assert_memory_equal(mica_session_tokens(s, &n), tokens, 100 * sizeof *tokens);
    assert_int_equal(n, 100);
    assert_int_equal(s->n_computed, 100);
    for (size_t k = 100; k <= 101; k++) { /* the same history, and a longer one */
        assert_int_equal(mica_session_sync(s, tokens, k, &err), MICA_OK);
        assert_int_equal(mica_session_sync(t, tokens, k, &err), MICA_OK);
        assert_int_equal(s->prefill_n, 1);
        assert_memory_equal(mica_session_logits(s), mica_session_logits(t), 288 * sizeof(float));
    }
    embed(s, tokens, 101, MICA_POOLING_LAST, false, out); /* a history with logits loses them */
    assert_null(mica_session_logits(s));
    mica_generate_options o = mica_generate_options_default();
    o.max_tokens = 3;
    o.ignore_eos = true;
    o.sampling.temperature = 0.0f;
    assert_int_equal(mica_session_generate(s, &o, NULL, &err), MICA_OK);
    assert_int_equal(mica_session_generate(t, &o, NULL, &err), MICA_OK);
    assert_memory_equal(mica_session_tokens(s, &n), mica_session_tokens(t, &n), 104 * sizeof *tokens);
    embed(s, tokens, CTX_EMBED, MICA_POOLING_MEAN, true, out); /* the whole context */
    mica_session_free(s);
    mica_session_free(t);
    mica_model_close(model);
}

/* ---- failing ---- */

static void refused(mica_session *s, const int32_t *tokens, size_t n, int pooling, mica_status want, const char *says)
{
    mica_error err;
    float out[MAX_EMBD], before[MAX_EMBD];
    memset(out, 0x55, sizeof out);
    memcpy(before, out, sizeof out);
    assert_int_equal(mica_session_embed(s, tokens, n, (mica_pooling)pooling, true, out, &err), want);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    assert_memory_equal(out, before, sizeof out);
}

static void test_refusals(void **state)
{
    (void)state;
    counted c = {0};
    int32_t tokens[CTX_EMBED + 1];
    mica_error err;
    mica_model *model = tiny("llama");
    mica_session *s = counting_session(model, &c, 16), *member = NULL;
    mica_batch *batch = NULL;
    make_tokens(tokens, CTX_EMBED + 1, 3);
    refused(s, tokens, 0, MICA_POOLING_MEAN, MICA_INVALID_ARGUMENT, "no tokens");
    refused(s, tokens, CTX_EMBED + 1, MICA_POOLING_MEAN, MICA_CONTEXT_FULL, "201 tokens");
    refused(s, tokens, 5, 2, MICA_INVALID_ARGUMENT, "pooling is 2");
    tokens[3] = 288;
    refused(s, tokens, 5, MICA_POOLING_LAST, MICA_INVALID_ARGUMENT, "token 288 at index 3");
    make_tokens(tokens, CTX_EMBED, 3);
    c.cancel_at = 33;
    refused(s, tokens, 150, MICA_POOLING_MEAN, MICA_CANCELLED, "48 of 150");
    c.cancel_at = 0;
    assert_int_equal(embed_again(s, &c, tokens, 150, MICA_POOLING_MEAN), 150);
    assert_int_equal(mica_batch_new(model, NULL, &batch, &err), MICA_OK);
    assert_int_equal(mica_batch_session_new(batch, NULL, &member, &err), MICA_OK);
    refused(member, tokens, 5, MICA_POOLING_MEAN, MICA_INVALID_ARGUMENT, "batch");
    mica_batch_free(batch);
    mica_session_free(s);
    mica_model_close(model);
}

static void test_non_finite(void **state)
{
    (void)state;
    char path[] = "/tmp/mica-embed-XXXXXX";
    int32_t *tokens;
    size_t n;
    float out[MAX_EMBD];
    mica_error err;
    mica_model *model = poisoned("red", path);
    mica_session *s = open_session(model, CTX_EMBED, 1, 32);
    assert_int_equal(mica_model_tokenize(model, "E", 1, 0, &tokens, &n, &err), MICA_OK);
    embed(s, tokens, n, MICA_POOLING_MEAN, true, out);
    int32_t broken[2] = {tokens[0], mica_vocab_find(model->vocab, "red", 3)};
    refused(s, broken, 2, MICA_POOLING_MEAN, MICA_NON_FINITE, "not finite");
    refused(s, broken, 2, MICA_POOLING_LAST, MICA_NON_FINITE, "not finite");
    embed(s, tokens, n, MICA_POOLING_MEAN, true, out); /* as before */
    mica_free(tokens);
    unlink(path);
    mica_session_free(s);
    mica_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),     cmocka_unit_test(test_projection), cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_paths),    cmocka_unit_test(test_prefixes),   cmocka_unit_test(test_mixture),
        cmocka_unit_test(test_history),  cmocka_unit_test(test_refusals),   cmocka_unit_test(test_non_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
