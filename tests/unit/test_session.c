/* Sessions on the scripted model (tests/data/cases/_common/scripted.py), whose replies are known exactly: streaming, stops,
 * cancellation, the context's end and its policies, log-probabilities, memory plan, errors. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "model_util.h"

#define SCRIPTED MICA_TEST_DATA "/cases/_common/scripted.gguf"

typedef struct stream {
    char text[4096];
    size_t length;
    int n_tokens, n_pieces, stop_after; /* stop_after > 0: veto at that token */
    int32_t tokens[1024];
    mica_token_event last;
    int32_t top[20];
    float logprobs[20];
    mica_session *cancel;
} stream;

static int on_text(void *user, const char *text, size_t n)
{
    stream *s = user;
    assert_true(s->length + n < sizeof s->text);
    memcpy(s->text + s->length, text, n);
    s->length += n;
    s->text[s->length] = '\0';
    s->n_pieces++;
    return 0;
}

static int on_token(void *user, const mica_token_event *e)
{
    stream *s = user;
    assert_int_equal(e->index, s->n_tokens);
    s->tokens[s->n_tokens++ % 1024] = e->token;
    s->last = *e;
    for (int i = 0; i < e->n_top; i++) {
        s->top[i] = e->top_tokens[i];
        s->logprobs[i] = e->top_logprobs[i];
    }
    if (s->cancel && s->n_tokens == 3)
        mica_session_cancel(s->cancel);
    return s->stop_after > 0 && s->n_tokens == s->stop_after;
}

static mica_generate_options greedy(stream *s)
{
    mica_generate_options o = mica_generate_options_default();
    memset(s, 0, sizeof *s);
    o.sampling.temperature = 0.0f;
    o.on_text = on_text;
    o.on_token = on_token;
    o.user = s;
    return o;
}

static mica_status reply(mica_session *s, const char *prompt, const mica_generate_options *o, mica_result *r, mica_error *err)
{
    mica_status status = mica_session_prompt(s, prompt, strlen(prompt), 0, err);
    return status ? status : mica_session_generate(s, o, r, err);
}

static void expect(mica_session *s, const char *prompt, const char *text, const char *reason)
{
    stream st;
    mica_result r;
    mica_error err;
    mica_generate_options o = greedy(&st);
    if (reply(s, prompt, &o, &r, &err))
        fail_msg("%s", err.message);
    assert_string_equal(st.text, text);
    assert_string_equal(r.stop_reason, reason);
    assert_int_equal(r.gen_n, st.n_tokens);
}

static void test_streaming(void **state)
{
    mica_session *s = open_session(*state, 64, 1, 8);
    expect(s, "E", "Hi \xF0\x9F\x99\x82!", "eos");
    expect(s, "V", "ok\xEF\xBF\xBDgo", "eos"); /* a lone FF byte: one U+FFFD */
    expect(s, "S", "alpha beta gamma delta", "eos");
    expect(s, "2", "two", "eos"); /* ends at <|eot|> */
    stream st;
    mica_result r;
    mica_error err;
    mica_generate_options o = greedy(&st);
    assert_int_equal(reply(s, "E", &o, &r, &err), MICA_OK);
    assert_true(st.n_pieces >= 3 && r.gen_n == 8); /* piece by piece; the four bytes of the emoji are one */
    assert_true(r.ttft_ms > 0 && r.tpot_ms > 0 && r.decode_tps > 0 && r.tpot_p95_ms >= r.tpot_p50_ms);
    assert_int_equal(r.prompt_n, 1);
    mica_session_free(s);
}

static void test_limits(void **state)
{
    mica_session *s = open_session(*state, 64, 1, 8);
    stream st;
    mica_result r;
    mica_error err;
    mica_generate_options o = greedy(&st);
    o.max_tokens = 0; /* generates no token */
    assert_int_equal(reply(s, "E", &o, &r, &err), MICA_OK);
    assert_int_equal(st.n_tokens, 0);
    assert_string_equal(r.stop_reason, "length");
    o = greedy(&st);
    o.max_tokens = 5; /* ends inside the emoji: what is held back is not lost */
    assert_int_equal(reply(s, "E", &o, &r, &err), MICA_OK);
    assert_string_equal(st.text, "Hi \xEF\xBF\xBD");
    assert_string_equal(r.stop_reason, "length");
    o = greedy(&st);
    o.ignore_eos = true;
    o.max_tokens = 12;
    assert_int_equal(reply(s, "2", &o, &r, &err), MICA_OK);
    assert_int_equal(r.gen_n, 12);
    o = greedy(&st);
    int32_t stop_token;
    assert_int_equal(reply(s, "S", &o, &r, &err), MICA_OK);
    stop_token = st.tokens[2];
    o = greedy(&st);
    o.stop_tokens = &stop_token;
    o.n_stop_tokens = 1;
    assert_int_equal(reply(s, "S", &o, &r, &err), MICA_OK);
    assert_int_equal(r.gen_n, 3);
    assert_string_equal(st.text, "alpha be");
    mica_session_free(s);
}

static void check_stop(mica_session *s, const char *stop, const char *text, const char *reason)
{
    stream st;
    mica_result r;
    mica_error err;
    mica_generate_options o = greedy(&st);
    o.stop = &stop;
    o.n_stop = 1;
    assert_int_equal(reply(s, "S", &o, &r, &err), MICA_OK);
    assert_string_equal(st.text, text);
    assert_string_equal(r.stop_reason, reason);
}

static void test_stop_strings(void **state)
{
    mica_session *s = open_session(*state, 64, 1, 8);
    check_stop(s, "a be", "alph", "stop");           /* straddles two tokens */
    check_stop(s, "beta gamma", "alpha ", "stop");   /* and three */
    check_stop(s, "delta!", "alpha beta gamma delta", "eos"); /* nearly: nothing is lost */
    check_stop(s, "alpha", "", "stop");
    stream st;
    mica_error err;
    mica_result r;
    const char *empty = "";
    mica_generate_options o = greedy(&st);
    o.stop = &empty;
    o.n_stop = 1;
    assert_int_equal(reply(s, "S", &o, &r, &err), MICA_INVALID_ARGUMENT);
    assert_string_equal(r.stop_reason, "error");
    expect(s, "S", "alpha beta gamma delta", "eos"); /* the session stays usable */
    mica_session_free(s);
}

static void *cancel_soon(void *session)
{
    usleep(20000);
    mica_session_cancel(session);
    return NULL;
}

static void test_cancel(void **state)
{
    mica_session *s = open_session(*state, 512, 1, 8);
    stream st;
    mica_result r;
    mica_error err;
    mica_generate_options o = greedy(&st);
    o.max_tokens = 400;
    st.stop_after = 4;
    assert_int_equal(reply(s, "X", &o, &r, &err), MICA_CANCELLED);
    assert_string_equal(r.stop_reason, "cancelled");
    assert_int_equal(r.gen_n, 4);
    o = greedy(&st);
    st.cancel = s; /* during the third token: no fourth */
    assert_int_equal(reply(s, "X", &o, &r, &err), MICA_CANCELLED);
    assert_int_equal(r.gen_n, 3);
    expect(s, "E", "Hi \xF0\x9F\x99\x82!", "eos");
    pthread_t thread;
    o = greedy(&st);
    o.on_token = NULL;
    o.on_text = NULL;
    o.ignore_eos = true;
    assert_int_equal(mica_session_prompt(s, "X", 1, 0, &err), MICA_OK);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, s), 0);
    mica_status status = mica_session_generate(s, &o, &r, &err);
    assert_true(status == MICA_CANCELLED || status == MICA_CONTEXT_FULL); /* a very fast machine may fill the context first */
    pthread_join(thread, NULL);
    mica_session_free(s);
}

static int veto_prefill(void *user, int32_t done, int32_t total)
{
    int *calls = user;
    assert_true(done <= total);
    return ++*calls == 3;
}

static void test_cancel_prefill(void **state)
{
    mica_session *s;
    mica_error err;
    int calls = 0;
    char prompt[200];
    mica_session_options o = mica_session_options_default();
    o.n_ctx = 256;
    o.prefill_chunk = 16;
    o.n_threads = 1;
    o.on_prefill = veto_prefill;
    o.user = &calls;
    memset(prompt, 'x', sizeof prompt);
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_OK);
    assert_int_equal(mica_session_prompt(s, prompt, sizeof prompt, 0, &err), MICA_CANCELLED);
    assert_null(mica_session_logits(s));
    assert_int_equal(calls, 3);
    expect(s, "E", "Hi \xF0\x9F\x99\x82!", "eos");
    mica_session_free(s);
}

/* Case ctx-01: a window of 64; prompts of 200, 64 and 63 tokens. */
static void test_context_ctx_01(void **state)
{
    mica_session *s = open_session(*state, 64, 1, 8);
    mica_error err;
    mica_result r;
    stream st;
    char prompt[200];
    mica_generate_options o = greedy(&st);
    memset(prompt, 'x', 199);
    prompt[199] = 'E';
    assert_int_equal(mica_session_prompt(s, prompt, 200, 0, &err), MICA_CONTEXT_FULL);
    assert_non_null(strstr(err.message, "200"));
    assert_non_null(strstr(err.message, "64"));
    assert_int_equal(mica_session_prompt(s, prompt + 136, 64, 0, &err), MICA_CONTEXT_FULL);
    assert_int_equal(mica_session_prompt(s, prompt + 137, 63, 0, &err), MICA_OK);
    assert_int_equal(mica_session_generate(s, &o, &r, &err), MICA_CONTEXT_FULL);
    assert_string_equal(st.text, "Hi");
    assert_string_equal(r.stop_reason, "context");
    assert_int_equal(r.gen_n, 1);
    assert_int_equal(r.needed_n, 65);
    assert_int_equal(mica_session_generate(s, &o, &r, &err), MICA_CONTEXT_FULL); /* again: there is no room for a token */
    assert_string_equal(r.stop_reason, "context");
    assert_int_equal(r.gen_n, 0);
    o = greedy(&st);
    o.max_tokens = 1;
    assert_int_equal(mica_session_prompt(s, prompt + 137, 63, 0, &err), MICA_OK);
    assert_int_equal(mica_session_generate(s, &o, &r, &err), MICA_OK);
    assert_string_equal(r.stop_reason, "length");
    mica_session_free(s);
}

typedef struct policy_log {
    int events, dropped, inserted;
} policy_log;

static void note_event(void *user, const mica_context_event *e)
{
    policy_log *log = user;
    log->events++;
    log->dropped += e->dropped_count;
    log->inserted += e->inserted_count;
    assert_int_equal(e->dropped_from, 4);
}

static int32_t summarise(void *user, const int32_t *tokens, int32_t n, int32_t *summary, int32_t capacity)
{
    (void)user;
    assert_true(n > 0 && capacity > 0);
    summary[0] = tokens[0];
    return 1;
}

static void check_policy(mica_model *model, mica_full_policy policy, const char *reason, int gen)
{
    mica_session *s;
    mica_error err;
    mica_result r;
    stream st;
    policy_log log = {0};
    mica_session_options o = mica_session_options_default();
    o.n_ctx = 32;
    o.n_threads = 1;
    o.keep_first = 4;
    o.full_policy = policy;
    o.on_context_event = note_event;
    o.on_summarise = summarise;
    o.user = &log;
    mica_generate_options g = greedy(&st);
    g.max_tokens = 100;
    assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
    if (reply(s, "abcX", &g, &r, &err))
        fail_msg("%s", err.message);
    assert_string_equal(r.stop_reason, reason);
    assert_int_equal(r.gen_n, gen);
    assert_int_equal(st.length, (size_t)gen); /* every token is an x */
    assert_int_equal(r.dropped_n, log.dropped);
    assert_int_equal(log.events > 0, policy != MICA_FULL_STOP);
    assert_int_equal(log.inserted, policy == MICA_FULL_SUMMARISE ? log.events : 0);
    char longer[100];
    memset(longer, 'x', sizeof longer);
    mica_status status = mica_session_prompt(s, longer, sizeof longer, 0, &err); /* a prompt that does not fit */
    assert_int_equal(status, policy == MICA_FULL_STOP ? MICA_CONTEXT_FULL : MICA_OK);
    mica_session_free(s);
}

static void test_policies(void **state)
{
    check_policy(*state, MICA_FULL_STOP, "context", 28);
    check_policy(*state, MICA_FULL_SHIFT, "length", 100);
    check_policy(*state, MICA_FULL_SUMMARISE, "length", 100);
}

static void test_logprobs(void **state)
{
    mica_session *s = open_session(*state, 64, 1, 8);
    stream st;
    mica_result r;
    mica_error err;
    mica_generate_options o = greedy(&st);
    o.max_tokens = 1;
    o.top_logprobs = 3;
    assert_int_equal(reply(s, "D", &o, &r, &err), MICA_OK);
    assert_string_equal(st.text, "p1");
    assert_int_equal(st.last.n_top, 3);
    assert_int_equal(st.top[0], st.last.token);
    assert_true(fabs((double)st.logprobs[0] - log(0.6)) < 1e-3);
    assert_true(fabs((double)st.logprobs[1] - log(0.3)) < 1e-3);
    assert_true(fabs((double)st.logprobs[2] - log(0.1)) < 1e-3);
    assert_true(st.last.logprob == st.logprobs[0]);
    mica_session_free(s);
}

static void test_seeds(void **state)
{
    mica_session *s = open_session(*state, 64, 1, 8);
    stream a, b;
    mica_result r;
    mica_error err;
    int kinds = 0, seen[3] = {0};
    for (int seed = 0; seed < 30; seed++) {
        mica_generate_options o = greedy(&a);
        o.sampling.temperature = 1.0f;
        o.sampling.seed = seed;
        o.max_tokens = 1;
        assert_int_equal(reply(s, "D", &o, &r, &err), MICA_OK);
        assert_int_equal(r.seed, seed);
        o.user = &b;
        memset(&b, 0, sizeof b);
        assert_int_equal(reply(s, "D", &o, &r, &err), MICA_OK);
        assert_string_equal(a.text, b.text);
        seen[a.text[1] - '1'] = 1;
    }
    for (int i = 0; i < 3; i++)
        kinds += seen[i];
    assert_true(kinds >= 2);
    mica_session_free(s);
}

static void test_prefix_reuse(void **state)
{
    mica_session *s = open_session(*state, 64, 1, 8);
    stream st;
    mica_result r;
    mica_error err;
    mica_generate_options o = greedy(&st);
    assert_int_equal(reply(s, "abcdefgS", &o, &r, &err), MICA_OK);
    assert_int_equal(r.cached_n, 0);
    memset(&st, 0, sizeof st);
    assert_int_equal(reply(s, "abcdefgE", &o, &r, &err), MICA_OK);
    assert_int_equal(r.cached_n, 7);
    assert_string_equal(st.text, "Hi \xF0\x9F\x99\x82!");
    size_t n;
    const int32_t *history = mica_session_tokens(s, &n);
    assert_int_equal(n, 8 + 8);
    assert_int_equal(history[n - 1], 2); /* </s> */
    mica_session_free(s);
}

static void test_plan_and_budget(void **state)
{
    mica_session_options o = mica_session_options_default();
    mica_memory_plan plan;
    mica_session *s;
    mica_error err;
    o.n_ctx = 256;
    o.n_threads = 1;
    assert_int_equal(mica_session_plan(*state, &o, &plan, &err), MICA_OK);
    assert_int_equal(plan.kv_bytes, 2 * 1 * 4 * 32 * 256 * 2); /* K and V, layers, heads, head size, positions, F16 */
    assert_int_equal(plan.total_bytes, plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
    assert_int_equal(plan.peak_bytes, plan.touched_bytes + plan.kv_bytes + plan.workspace_bytes + plan.fixed_bytes + plan.guide_bytes);
    o.memory_limit = plan.peak_bytes - 1;
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_OVER_BUDGET);
    assert_null(s);
    o.memory_limit++;
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_OK);
    mica_session_free(s);
    o.workspace_limit = 1000;
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_OVER_BUDGET);
    o = mica_session_options_default();
    o.n_threads = 1;
    assert_int_equal(mica_session_plan(*state, &o, &plan, &err), MICA_OK);
    assert_int_equal(plan.n_ctx, 512); /* the trained length */
    o.n_ctx = 1 << 26;
    o.memory_limit = 1 << 30;
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_OVER_BUDGET);
}

static void test_bad_arguments(void **state)
{
    mica_session *s;
    mica_error err;
    mica_session_options o = mica_session_options_default();
    int32_t bad = 1 << 20;
    o.n_ctx = -1;
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "n_ctx"));
    o.n_ctx = 1;
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_INVALID_ARGUMENT);
    o.n_ctx = 64;
    o.n_threads = 1000;
    assert_int_equal(mica_session_new(*state, &o, &s, &err), MICA_INVALID_ARGUMENT);
    s = open_session(*state, 64, 1, 8);
    assert_int_equal(mica_session_generate(s, NULL, NULL, &err), MICA_INVALID_ARGUMENT); /* no prompt */
    assert_int_equal(mica_session_sync(s, &bad, 1, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_session_sync(s, &bad, 0, &err), MICA_INVALID_ARGUMENT);
    mica_session_free(s);
    mica_session_free(NULL);
    mica_model_close(NULL);
}

int main(void)
{
    mica_model *model = open_model(SCRIPTED, NULL);
#define TEST(f) cmocka_unit_test_prestate(f, model)
    const struct CMUnitTest tests[] = {
        TEST(test_streaming), TEST(test_limits),   TEST(test_stop_strings),  TEST(test_cancel),       TEST(test_cancel_prefill),
        TEST(test_policies),  TEST(test_logprobs), TEST(test_context_ctx_01), TEST(test_seeds),        TEST(test_prefix_reuse),
        TEST(test_plan_and_budget), TEST(test_bad_arguments),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mica_model_close(model);
    return failed;
}
