/* Speculation: the reply is that of plain decoding, token by token and bit by bit, whatever was guessed. */
#include "random_model.h"
#include "reply_util.h"

enum { CTX = 200, REQUESTS = 8 };

static mica_session *open_drafting(mica_model *model, mica_model *small, int threads, int32_t n_ctx, mica_full_policy policy)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    o.n_ctx = n_ctx;
    o.n_threads = threads;
    o.prefill_chunk = 16; /* less than the longest draft */
    o.draft_max = 20;
    o.draft_model = small;
    o.full_policy = policy;
    o.keep_first = n_ctx < 8 ? 0 : 4;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

/* As make_request(), but half of the prompts repeat themselves, so that lookups find something from the start. */
static request make_repeating(int i)
{
    request q = make_request(i);
    if (i % 2) {
        for (size_t j = 9; j < 80; j++)
            q.prompt[j] = q.prompt[j % 9] + (j % 31 == 0);
        q.n = 80;
    }
    q.o.max_tokens = 20 + i * 5;
    return q;
}

static void check_counts(const record *r)
{
    int32_t steps = r->n_tokens - r->result.accepted_n;
    assert_true(r->result.accepted_n >= 0 && r->result.accepted_n <= r->result.drafted_n);
    assert_true(r->n_tokens == 0 || steps > 0);
}

/* All requests with one way to speculate; returns how many tokens were accepted. */
static int check_kind(mica_session *s, const record *want, mica_speculation kind, int32_t draft_n, const char *name)
{
    static record got;
    char what[120];
    int accepted = 0;
    for (int i = 0; i < REQUESTS; i++) {
        request q = make_repeating(i);
        q.o.speculate = kind;
        q.o.draft_n = draft_n;
        got.cancel_at = got.veto_at = 0;
        run_alone(s, &q, &got);
        snprintf(what, sizeof what, "%s, request %d, kind %d, drafts of %d", name, i, (int)kind, draft_n);
        expect_same(&want[i], &got, what);
        check_counts(&got);
        accepted += got.result.accepted_n;
    }
    return accepted;
}

static void check_model(mica_model *model, mica_model *small, const char *name)
{
    static record want[REQUESTS];
    mica_session *plain = open_session(model, CTX, 1, 64);
    for (int i = 0; i < REQUESTS; i++) {
        request q = make_repeating(i);
        run_alone(plain, &q, &want[i]);
        assert_int_equal(want[i].result.drafted_n, 0);
    }
    mica_session_free(plain);
    static const int32_t lengths[] = {0, 1, 4, 20};
    mica_session *s = open_drafting(model, small, 1, CTX, MICA_FULL_ERROR);
    mica_session *two = open_drafting(model, small, 2, CTX, MICA_FULL_ERROR);
    assert_true(check_kind(two, want, MICA_SPECULATE_LOOKUP, 7, name) > 0);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_kind(s, want, MICA_SPECULATE_LOOKUP, lengths[i], name);
        if (small)
            check_kind(i % 2 ? s : two, want, i < 2 ? MICA_SPECULATE_BOTH : MICA_SPECULATE_MODEL, lengths[i], name);
    }
    mica_session_free(s);
    mica_session_free(two);
}

static void test_lookup(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "gemma3", "qwen2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[i]);
        mica_model *model = open_model(path, NULL);
        check_model(model, NULL, names[i]);
        mica_model_close(model);
    }
}

static mica_model *random_model(uint64_t seed)
{
    char path[] = "/tmp/mica-speculate-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(write_random_model_of(path, MICA_TYPE_Q4_0, seed));
    mica_model *model = open_model(path, NULL);
    unlink(path); /* the mapping keeps it */
    return model;
}

static void test_draft_model(void **state)
{
    (void)state;
    mica_model *model = random_model(1), *other = random_model(2);
    check_model(model, model, "its own draft model");
    check_model(model, other, "another draft model");
    mica_model_close(model);
    mica_model_close(other);
}

/* A model that drafts for itself, greedily, is always right; one that is not related seldom is. */
static void test_counts(void **state)
{
    static record r;
    mica_model *model = random_model(1), *other = random_model(2);
    mica_session *self = open_drafting(model, model, 1, CTX, MICA_FULL_ERROR);
    mica_session *pair = open_drafting(model, other, 1, CTX, MICA_FULL_ERROR);
    request q = make_request(0);
    q.o.sampling = mica_generate_options_default().sampling;
    q.o.sampling.temperature = 0.0f;
    q.o.ignore_eos = true;
    q.o.max_tokens = 61;
    q.o.speculate = MICA_SPECULATE_MODEL;
    q.o.draft_n = 4;
    run_alone(self, &q, &r);
    assert_int_equal(r.n_tokens, 61); /* the first comes from the prompt; twelve steps of four drafted and one more */
    assert_int_equal(r.result.drafted_n, 48);
    assert_int_equal(r.result.accepted_n, 48);
    run_alone(pair, &q, &r);
    assert_int_equal(r.n_tokens, 61);
    assert_true(r.result.drafted_n > 150 && r.result.accepted_n < 20);
    mica_session_free(self);
    mica_session_free(pair);
    mica_model_close(model);
    mica_model_close(other);

    mica_session *s = open_drafting(*state, NULL, 1, CTX, MICA_FULL_ERROR);
    q = scripted_request(*state, "X"); /* x for ever: after three of them every guess is right */
    q.o.max_tokens = 100;
    q.o.speculate = MICA_SPECULATE_LOOKUP;
    q.o.draft_n = 7;
    run_alone(s, &q, &r);
    assert_int_equal(r.n_tokens, 100);
    assert_int_equal(r.result.accepted_n, r.result.drafted_n);
    assert_true(r.result.accepted_n >= 84);
    q.o.speculate = MICA_SPECULATE_OFF;
    q.o.draft_n = 0;
    run_alone(s, &q, &r);
    assert_int_equal(r.result.drafted_n, 0);
    mica_session_free(s);
}

/* The same request with and without speculation, on fresh sessions of one kind. */
static void check_pair(mica_model *model, mica_model *small, request q, int32_t n_ctx, mica_full_policy policy, int cancel,
                       int veto, const char *what)
{
    static record want, got;
    mica_session *s = open_drafting(model, small, 1, n_ctx, policy);
    mica_speculation kind = q.o.speculate;
    want.cancel_at = got.cancel_at = cancel;
    want.veto_at = got.veto_at = veto;
    q.o.speculate = MICA_SPECULATE_OFF;
    run_alone(s, &q, &want);
    mica_session_free(s);
    s = open_drafting(model, small, 1, n_ctx, policy);
    q.o.speculate = kind;
    q.o.draft_n = 6;
    run_alone(s, &q, &got);
    expect_same(&want, &got, what);
    if (got.n_tokens > 20 && got.text[0] == 'x') /* x after x: the guess is right */
        assert_true(got.result.accepted_n > 0);
    mica_session_free(s);
}

/* Ends of every kind in the middle of a run of accepted tokens. */
static void test_ends(void **state)
{
    mica_model *m = *state;
    static const char *const stop[] = {"xxxxxxxxxxxxxxxxx", "nothing"}, *const words[] = {"mma d"};
    request x = scripted_request(m, "X");
    x.o.speculate = MICA_SPECULATE_LOOKUP;
    x.o.max_tokens = 100;
    for (int n = 1; n < 30; n++) {
        request q = x;
        q.o.max_tokens = n;
        check_pair(m, NULL, q, CTX, MICA_FULL_ERROR, 0, 0, "max_tokens");
        check_pair(m, NULL, x, CTX, MICA_FULL_ERROR, n, 0, "cancelled");
        check_pair(m, NULL, x, CTX, MICA_FULL_ERROR, 0, n, "vetoed");
    }
    x.o.stop = stop;
    x.o.n_stop = 2;
    check_pair(m, NULL, x, CTX, MICA_FULL_ERROR, 0, 0, "stop string");
    x.o.n_stop = 0;
    for (int n = 2; n < 40; n++) {
        check_pair(m, NULL, x, n, MICA_FULL_ERROR, 0, 0, "context end");
        check_pair(m, NULL, x, n, MICA_FULL_STOP, 0, 0, "context end, policy stop");
        if (n >= 16)
            check_pair(m, NULL, x, n, MICA_FULL_SHIFT, 0, 0, "context end, policy shift");
    }
    request s = scripted_request(m, "S"); /* the model drafts for itself: through the end of the reply */
    s.o.speculate = MICA_SPECULATE_MODEL;
    check_pair(m, m, s, CTX, MICA_FULL_ERROR, 0, 0, "end of generation");
    s.o.stop = words;
    s.o.n_stop = 1;
    check_pair(m, m, s, CTX, MICA_FULL_ERROR, 0, 0, "stop string across drafted tokens");
    s.o.speculate = MICA_SPECULATE_BOTH;
    check_pair(m, m, s, CTX, MICA_FULL_ERROR, 0, 0, "stop string, both sources");
}

/* With a context that shifts, for a model whose text is not one letter. */
static void test_shift(void **state)
{
    (void)state;
    mica_model *model = random_model(1), *other = random_model(3);
    for (int i = 0; i < 6; i++) {
        request q = make_repeating(i);
        q.n = q.n < 40 ? q.n : 40;
        q.o.max_tokens = 150;
        q.o.ignore_eos = true;
        q.o.n_stop = 0;
        q.o.speculate = i % 2 ? MICA_SPECULATE_LOOKUP : MICA_SPECULATE_BOTH;
        check_pair(model, i % 2 ? NULL : i % 4 ? other : model, q, 64, MICA_FULL_SHIFT, 0, 0, "shifting context");
    }
    mica_model_close(model);
    mica_model_close(other);
}

/* The model fails behind an accepted token: as it does without speculation. */
static void test_non_finite(void **state)
{
    static record r;
    char path[] = "/tmp/mica-speculate-XXXXXX";
    mica_model *broken = poisoned("\xE2\x96\x81" "fox", path);
    request q = scripted_request(broken, "R");
    q.o.speculate = MICA_SPECULATE_MODEL;
    check_pair(broken, *state, q, CTX, MICA_FULL_ERROR, 0, 0, "NaN");
    mica_session *s = open_drafting(broken, *state, 1, CTX, MICA_FULL_ERROR);
    q.o.draft_n = 4;
    run_alone(s, &q, &r);
    assert_int_equal(r.status, MICA_NON_FINITE);
    assert_string_equal(r.text, "red fox");
    assert_int_equal(r.result.accepted_n, 1);
    mica_error err;
    start_record(&r, s);
    mica_generate_options o = recorded(&q, &r);
    assert_int_equal(mica_session_generate(s, &o, NULL, &err), MICA_NON_FINITE);
    assert_int_equal(r.n_tokens, 0); /* nothing was chosen from what was left over */
    q = scripted_request(broken, "E");
    q.o.speculate = MICA_SPECULATE_BOTH;
    run_alone(s, &q, &r); /* the session stays usable */
    assert_string_equal(r.text, "Hi \xF0\x9F\x99\x82!");
    mica_session_free(s);
    mica_model_close(broken);
    unlink(path);
}

/* A reply that goes on where max_tokens ended it, without a sync between. */
static void test_going_on(void **state)
{
    (void)state;
    static record want, got;
    mica_model *model = random_model(1);
    mica_session *plain = open_session(model, CTX, 1, 16), *s = open_drafting(model, model, 1, CTX, MICA_FULL_ERROR);
    for (int part = 0; part < 6; part++) {
        request q = make_repeating(3);
        mica_error err;
        mica_result result;
        q.o.ignore_eos = true;
        q.o.n_stop = 0;
        q.o.max_tokens = 7 + part;
        if (part == 0) {
            run_alone(plain, &q, &want);
            q.o.speculate = MICA_SPECULATE_BOTH;
            run_alone(s, &q, &got);
        } else {
            start_record(&want, plain);
            mica_generate_options o = recorded(&q, &want);
            assert_int_equal(mica_session_generate(plain, &o, &result, &err), MICA_OK);
            record_end(&want, plain, MICA_OK, &result, "");
            start_record(&got, s);
            o = recorded(&q, &got);
            o.speculate = MICA_SPECULATE_BOTH;
            o.draft_n = part;
            assert_int_equal(mica_session_generate(s, &o, &result, &err), MICA_OK);
            record_end(&got, s, MICA_OK, &result, "");
        }
        expect_same(&want, &got, "going on");
    }
    mica_session_free(plain);
    mica_session_free(s);
    mica_model_close(model);
}

static int ignore_logits(void *user, size_t position, const float *logits)
{
    (void)user, (void)position, (void)logits;
    return 0;
}

/* Scoring leaves a history that is computed, but no logits to go on from: the reply is as after a sync. */
static void test_after_scoring(void **state)
{
    (void)state;
    static record want, got;
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
    mica_session *s = open_drafting(model, NULL, 1, CTX, MICA_FULL_ERROR);
    mica_error err;
    mica_result result;
    for (int kind = 0; kind < 2; kind++) {
        request q = make_repeating(3), other = make_request(6);
        q.o.speculate = kind ? MICA_SPECULATE_LOOKUP : MICA_SPECULATE_OFF;
        run_alone(s, &q, &want);
        run_alone(s, &other, &got);
        start_record(&got, s);
        mica_generate_options o = recorded(&q, &got);
        assert_int_equal(mica_session_score(s, q.prompt, q.n, 0, ignore_logits, NULL, &err), MICA_OK);
        assert_int_equal(mica_session_generate(s, &o, &result, &err), MICA_OK);
        record_end(&got, s, MICA_OK, &result, "");
        expect_same(&want, &got, "after scoring");
    }
    mica_session_free(s);
    mica_model_close(model);
}

static void test_plan(void **state)
{
    mica_session_options o = mica_session_options_default();
    mica_memory_plan without, lookup, model;
    mica_error err;
    o.n_ctx = 128;
    o.n_threads = 1;
    assert_int_equal(mica_session_plan(*state, &o, &without, &err), MICA_OK);
    o.draft_max = 10;
    assert_int_equal(mica_session_plan(*state, &o, &lookup, &err), MICA_OK);
    assert_int_equal(lookup.kv_bytes, without.kv_bytes);
    int64_t logits = 10 * (int64_t)((mica_model *)*state)->weights.h.n_vocab * 4;
    assert_true(lookup.workspace_bytes >= without.workspace_bytes + logits);
    o.draft_model = *state;
    assert_int_equal(mica_session_plan(*state, &o, &model, &err), MICA_OK);
    assert_int_equal(model.kv_bytes, 2 * without.kv_bytes);
    assert_int_equal(model.weights_bytes, 2 * without.weights_bytes);
    assert_int_equal(model.workspace_bytes, lookup.workspace_bytes + without.workspace_bytes);
}

static void refuse(mica_model *m, const mica_session_options *o, const char *says)
{
    mica_session *s;
    mica_error err;
    assert_int_equal(mica_session_new(m, o, &s, &err), MICA_INVALID_ARGUMENT);
    assert_null(s);
    if (!strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

static void test_refusals(void **state)
{
    mica_session_options o = mica_session_options_default();
    mica_model *a = random_model(1), *llama = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
    mica_error err;
    o.n_threads = 1;
    o.n_ctx = 64;
    o.draft_max = 64;
    refuse(*state, &o, "draft_max");
    o.draft_max = 0;
    o.draft_model = *state;
    refuse(*state, &o, "draft_max");
    o.draft_max = 4;
    refuse(a, &o, "288"); /* another size */
    o.draft_model = llama;
    refuse(a, &o, "token 0 is");
    mica_session *s = open_session(*state, 64, 1, 8), *lookup = open_drafting(*state, NULL, 1, 64, MICA_FULL_ERROR);
    request q = scripted_request(*state, "X");
    assert_int_equal(mica_session_sync(s, q.prompt, q.n, &err), MICA_OK);
    assert_int_equal(mica_session_sync(lookup, q.prompt, q.n, &err), MICA_OK);
    q.o.speculate = MICA_SPECULATE_LOOKUP;
    assert_int_equal(mica_session_generate(s, &q.o, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "draft_max"));
    q.o.speculate = MICA_SPECULATE_BOTH;
    assert_int_equal(mica_session_generate(lookup, &q.o, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "draft_model"));
    q.o.speculate = MICA_SPECULATE_LOOKUP;
    q.o.draft_n = 21;
    assert_int_equal(mica_session_generate(lookup, &q.o, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "draft_n"));
    q.o.draft_n = 0;
    q.o.speculate = (mica_speculation)4;
    assert_int_equal(mica_session_generate(lookup, &q.o, NULL, &err), MICA_INVALID_ARGUMENT);
    mica_session_free(s);
    mica_session_free(lookup);
    mica_model_close(a);
    mica_model_close(llama);
}

int main(void)
{
    mica_model *model = open_model(SCRIPTED, NULL);
#define TEST(f) cmocka_unit_test_prestate(f, model)
    const struct CMUnitTest tests[] = {
        TEST(test_lookup),     TEST(test_draft_model), TEST(test_counts), TEST(test_ends), TEST(test_shift),
        TEST(test_non_finite), TEST(test_going_on),    TEST(test_after_scoring), TEST(test_plan), TEST(test_refusals),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mica_model_close(model);
    return failed;
}
