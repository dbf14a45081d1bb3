/* The number of threads changes between tokens: the text does not. Idle threads cost nothing; a step of few rows has five
 * barriers a layer. */
#include <sys/resource.h>
#include <time.h>

#include "base/pool.h"
#include "model_util.h"
#include "session/session.h"

#define REPLY 60
#define PROMPT 30
#define MODEL MICA_TEST_DATA "/tiny/gemma3.gguf"

typedef struct reply {
    int32_t tokens[REPLY];
    int n;
    uint64_t logits;
    mica_session *s;   /* whose threads change with every token; NULL: they stay */
    mica_batch *batch; /* the same */
} reply;

static const int sizes[] = {1, 3, 2, 8, 5, 2, 4, 1, 1, 12};

static int change_threads(void *user, const mica_token_event *e)
{
    reply *r = user;
    mica_error err;
    int n = sizes[r->n % 10];
    assert_true(r->n < REPLY);
    r->tokens[r->n++] = e->token;
    r->logits = hash_bytes(r->logits, &e->logprob, sizeof e->logprob);
    if (r->s && mica_session_set_threads(r->s, n, NULL, &err))
        fail_msg("%s", err.message);
    if (r->batch && mica_batch_set_threads(r->batch, n, NULL, &err))
        fail_msg("%s", err.message);
    return 0;
}

static void prompt(int32_t tokens[PROMPT], int seed)
{
    for (int i = 0; i < PROMPT; i++)
        tokens[i] = 3 + (i * 7919 + i * i * 31 + seed * 101) % 280;
}

static mica_generate_options options_of(reply *r)
{
    mica_generate_options g = mica_generate_options_default();
    r->n = 0;
    r->logits = 1;
    g.max_tokens = REPLY;
    g.ignore_eos = true;
    g.top_logprobs = 3;
    g.sampling.seed = 5;
    g.on_token = change_threads;
    g.user = r;
    return g;
}

static mica_result run(mica_session *s, reply *r, int seed, mica_speculation how)
{
    int32_t tokens[PROMPT];
    mica_error err;
    mica_result result;
    mica_generate_options g = options_of(r);
    prompt(tokens, seed);
    g.speculate = how;
    assert_int_equal(mica_session_sync(s, tokens, PROMPT, &err), MICA_OK);
    if (mica_session_generate(s, &g, &result, &err))
        fail_msg("%s", err.message);
    return result;
}

static void same(const reply *a, const reply *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->tokens, b->tokens, sizeof a->tokens);
    assert_true(a->logits == b->logits);
}

static void test_every_token(void **state)
{
    (void)state;
    mica_model *model = open_model(MODEL, NULL);
    mica_session_options o = mica_session_options_default();
    mica_session *plain = open_session(model, 128, 1, 8), *s;
    mica_error err;
    o.n_ctx = 128;
    o.n_threads = 2;
    o.prefill_chunk = 8;
    o.draft_max = 7;
    o.draft_model = model;
    assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
    for (int how = MICA_SPECULATE_OFF; how <= MICA_SPECULATE_BOTH; how++) {
        reply expected = {.s = NULL}, got = {.s = s};
        run(plain, &expected, how, MICA_SPECULATE_OFF);
        mica_result result = run(s, &got, how, (mica_speculation)how);
        same(&expected, &got);
        assert_int_equal(result.n_threads, sizes[(REPLY - 1) % 10]);
    }
    mica_session_free(s);
    mica_session_free(plain);
    mica_model_close(model);
}

static void test_batch(void **state)
{
    (void)state;
    mica_model *model = open_model(MODEL, NULL);
    mica_session *plain = open_session(model, 128, 1, 8), *members[3];
    mica_batch_options o = mica_batch_options_default();
    mica_batch *batch;
    mica_error err;
    reply expected[3], got[3];
    o.max_sessions = 3;
    o.n_ctx = 128;
    o.n_threads = 2;
    o.step_tokens = 11;
    assert_int_equal(mica_batch_new(model, &o, &batch, &err), MICA_OK);
    for (int i = 0; i < 3; i++) {
        int32_t tokens[PROMPT];
        expected[i] = (reply){.s = NULL};
        got[i] = (reply){.batch = batch};
        run(plain, &expected[i], i, MICA_SPECULATE_OFF);
        mica_generate_options g = options_of(&got[i]);
        prompt(tokens, i);
        assert_int_equal(mica_batch_session_new(batch, NULL, &members[i], &err), MICA_OK);
        assert_int_equal(mica_session_set_threads(members[i], 2, NULL, &err), MICA_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "mica_batch_set_threads"));
        assert_int_equal(mica_batch_submit(members[i], tokens, PROMPT, &g, &err), MICA_OK);
    }
    while (mica_batch_step(batch) > 0)
        ;
    for (int i = 0; i < 3; i++)
        same(&expected[i], &got[i]);
    mica_batch_free(batch);
    mica_session_free(plain);
    mica_model_close(model);
}

typedef struct scoring {
    mica_session *s;
    uint64_t hash;
} scoring;

static int score_row(void *user, size_t position, const float *logits)
{
    scoring *c = user;
    mica_error err;
    c->hash = hash_bytes(c->hash, logits, 288 * sizeof *logits);
    if (c->s)
        assert_int_equal(mica_session_set_threads(c->s, sizes[position % 10], NULL, &err), MICA_OK);
    return 0;
}

static int prefill_step(void *user, int32_t done, int32_t total)
{
    scoring *c = user;
    mica_error err;
    (void)total;
    if (c->s)
        assert_int_equal(mica_session_set_threads(c->s, sizes[done % 10], NULL, &err), MICA_OK);
    return 0;
}

/* In prefill and while a text is scored. */
static void test_other_callbacks(void **state)
{
    (void)state;
    mica_model *model = open_model(MODEL, NULL);
    int32_t tokens[120];
    uint64_t hashes[2][2];
    mica_error err;
    for (int i = 0; i < 120; i++)
        tokens[i] = 3 + i % 250;
    for (int i = 0; i < 2; i++) {
        mica_session_options o = mica_session_options_default();
        scoring c = {.hash = 1};
        mica_session *s;
        o.n_ctx = 128;
        o.n_threads = 1;
        o.prefill_chunk = 3;
        o.on_prefill = prefill_step;
        o.user = &c;
        assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
        c.s = i ? s : NULL;
        assert_int_equal(mica_session_score(s, tokens, 120, 10, score_row, &c, &err), MICA_OK);
        hashes[i][0] = c.hash;
        assert_int_equal(mica_session_sync(s, tokens + 1, 119, &err), MICA_OK);
        hashes[i][1] = hash_bytes(1, mica_session_logits(s), 288 * sizeof(float));
        mica_session_free(s);
    }
    assert_memory_equal(hashes[0], hashes[1], sizeof hashes[0]);
    mica_model_close(model);
}

static void test_refusals(void **state)
{
    (void)state;
    static const int32_t cpus[] = {0};
    mica_model *model = open_model(MODEL, NULL);
    mica_session *s = open_session(model, 128, 2, 8);
    mica_thread_plan plan;
    mica_error err;
    assert_int_equal(mica_session_set_threads(s, -1, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_session_set_threads(s, MICA_MAX_THREADS + 1, NULL, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "between 0 and 64"));
    assert_int_equal(mica_session_set_threads(s, 0, cpus, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_pool_threads(s->pool), 2);
    assert_int_equal(mica_session_set_threads(s, 1, cpus, &err), MICA_OK);
    assert_int_equal(mica_pool_threads(s->pool), 1);
    assert_int_equal(mica_session_set_threads(s, 0, NULL, &err), MICA_OK);
    assert_int_equal(mica_thread_plan_default(NULL, &plan, &err), MICA_OK);
    assert_int_equal(mica_pool_threads(s->pool), plan.n_threads);
    assert_int_equal(mica_session_set_threads(s, MICA_MAX_THREADS, NULL, &err), MICA_OK);
    assert_int_equal(mica_pool_threads(s->pool), MICA_MAX_THREADS);
    mica_session_free(s);
    mica_model_close(model);
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Of 0.4 s in which nobody asks for anything, the threads of three sessions spend nothing: those in the team and those left
 * over. */
static void test_idle(void **state)
{
    (void)state;
    mica_model *model = open_model(MODEL, NULL);
    mica_session *s[3];
    mica_error err;
    for (int i = 0; i < 3; i++) {
        reply r = {.s = NULL};
        s[i] = open_session(model, 128, 4, 8);
        run(s[i], &r, 1, MICA_SPECULATE_OFF);
    }
    assert_int_equal(mica_session_set_threads(s[1], 2, NULL, &err), MICA_OK);
    assert_int_equal(mica_session_set_threads(s[2], 1, NULL, &err), MICA_OK);
    double before = cpu_seconds();
    nanosleep(&(struct timespec){0, 400000000}, NULL);
    double spent = cpu_seconds() - before;
    if (spent > 0.02)
        fail_msg("%.3f s of processor time in 0.4 s of doing nothing", spent);
    for (int i = 0; i < 3; i++)
        mica_session_free(s[i]);
    mica_model_close(model);
}

/* Barriers that a step of n tokens after `from` passes. */
static unsigned barriers_of(mica_session *s, int from, int n)
{
    int32_t tokens[PROMPT];
    mica_error err;
    prompt(tokens, 0);
    tokens[0] = 3 + from + 40 * n; /* another history */
    assert_int_equal(mica_session_sync(s, tokens, (size_t)from, &err), MICA_OK);
    unsigned before = mica_pool_barriers(s->pool);
    assert_int_equal(mica_session_sync(s, tokens, (size_t)(from + n), &err), MICA_OK);
    return mica_pool_barriers(s->pool) - before;
}

static void test_barriers(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "gemma2", "gemma3", "qwen3", "phi3"};
    for (int i = 0; i < 5; i++) {
        char path[512];
        mica_model_info info;
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[i]);
        mica_model *model = open_model(path, NULL);
        mica_session *s = open_session(model, 64, 2, 16);
        mica_model_get_info(model, &info);
        for (int n = 1; n <= MICA_FEW_ROWS; n++)
            assert_int_equal(barriers_of(s, 10, n), 5 * info.n_layers);
        assert_int_equal(barriers_of(s, 10, MICA_FEW_ROWS + 1), 9 * info.n_layers + 2);
        mica_session_free(s);
        mica_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_token), cmocka_unit_test(test_batch),
                                       cmocka_unit_test(test_other_callbacks), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_idle), cmocka_unit_test(test_barriers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
