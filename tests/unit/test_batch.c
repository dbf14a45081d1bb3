/* Batches: every reply is the one that a session alone gives, whoever shares its steps, joins, leaves or fails. */
#include <pthread.h>
#include <unistd.h>

#include "reply_util.h"

enum { N = 8, CTX = 200 };

static mica_batch *open_batch_of(mica_model *model, int32_t n_ctx, int sessions, int threads, int step)
{
    mica_batch_options o = mica_batch_options_default();
    mica_batch *b;
    mica_error err;
    o.max_sessions = sessions;
    o.n_threads = threads;
    o.n_ctx = n_ctx;
    o.step_tokens = step;
    if (mica_batch_new(model, &o, &b, &err))
        fail_msg("%s", err.message);
    return b;
}

static mica_batch *open_batch(mica_model *model, int sessions, int threads, int step)
{
    return open_batch_of(model, CTX, sessions, threads, step);
}

static mica_session *join(mica_batch *b)
{
    mica_session *s;
    mica_error err;
    if (mica_batch_session_new(b, NULL, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

static void submit(mica_session *s, const request *q, record *r)
{
    mica_error err;
    start_record(r, s);
    mica_generate_options o = recorded(q, r);
    if (mica_batch_submit(s, q->prompt, q->n, &o, &err))
        fail_msg("%s", err.message);
}

static void finish_all(mica_batch *b)
{
    while (mica_batch_step(b) > 0)
        ;
}

/* ---- equality ---- */

/* What N + N requests say when each runs alone: the second half follows in the sessions of the first. */
static void expected(mica_model *model, record out[2 * N])
{
    for (int i = 0; i < N; i++) {
        mica_session *s = open_session(model, CTX, 1, 64);
        request first = make_request(i), second = make_request(N + i);
        run_alone(s, &first, &out[i]);
        run_alone(s, &second, &out[N + i]);
        mica_session_free(s);
    }
}

/* n sessions come and go at different times; each sends its second request as soon as the first is answered. */
static void check_batch(mica_model *model, const record want[2 * N], int n, int threads, int step, const char *name)
{
    static record got[2 * N];
    request queries[2 * N];
    mica_session *sessions[N] = {0};
    char what[100];
    int done = 0;
    mica_batch *b = open_batch(model, n, threads, step);
    memset(got, 0, sizeof got);
    for (int i = 0; i < 2 * N; i++)
        queries[i] = make_request(i);
    for (int turn = 0; done < n; turn++) {
        assert_true(turn < 2000);
        if (turn % 3 == 0 && turn / 3 < n) {
            sessions[turn / 3] = join(b);
            submit(sessions[turn / 3], &queries[turn / 3], &got[turn / 3]);
        }
        mica_batch_step(b);
        for (int i = 0; i < n; i++) {
            if (got[i].done && !got[N + i].session)
                submit(sessions[i], &queries[N + i], &got[N + i]);
            if (!got[N + i].done || !sessions[i])
                continue;
            mica_session_free(sessions[i]);
            sessions[i] = NULL;
            done++;
        }
    }
    for (int i = 0; i < 2 * N; i++) {
        if (i % N >= n)
            continue;
        snprintf(what, sizeof what, "%s, request %d of %d sessions, %d threads, steps of %d", name, i, n, threads, step);
        expect_same(&want[i], &got[i], what);
        if (model->weights.h.window == 0) /* windows are given up earlier; beginnings that others had are found */
            assert_true(got[i].result.cached_n >= want[i].result.cached_n);
    }
    mica_batch_free(b);
}

static void test_equality(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3-longrope"};
    static record want[2 * N];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[i]);
        mica_model *model = open_model(path, NULL);
        expected(model, want);
        for (int threads = 1; threads <= 3; threads++)
            check_batch(model, want, 8, threads, threads == 2 ? 11 : 64, names[i]);
        for (int n = 1; n < 8 && i % 3 == 0; n += 2)
            check_batch(model, want, n, 1 + n % 3, n < 4 ? 8 : 256, names[i]);
        mica_model_close(model);
    }
}

/* With memory for two contexts and a bit, replies are suspended, and the same. */
static void test_little_memory(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "gemma3"};
    static record want[2 * N], got[2 * N];
    for (int i = 0; i < 4; i++) {
        char path[512], what[100];
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[i % 2]);
        mica_model *model = open_model(path, NULL);
        mica_batch_options o = mica_batch_options_default();
        mica_batch_info info;
        mica_session *sessions[N];
        mica_batch *b;
        mica_error err;
        expected(model, want);
        o.max_sessions = N;
        o.n_threads = 2;
        o.n_ctx = CTX;
        o.step_tokens = i < 2 ? 40 : 256;
        o.kv_tokens = CTX + 60;
        assert_int_equal(mica_batch_new(model, &o, &b, &err), MICA_OK);
        for (int turn = 0; turn < 2; turn++) {
            for (int k = 0; k < N; k++) {
                request q = make_request(turn * N + k);
                if (turn == 0)
                    sessions[k] = join(b);
                submit(sessions[k], &q, &got[turn * N + k]);
            }
            finish_all(b);
        }
        for (int k = 0; k < 2 * N; k++) {
            snprintf(what, sizeof what, "%s, request %d, little memory", names[i % 2], k);
            expect_same(&want[k], &got[k], what);
        }
        mica_batch_get_info(b, &info);
        assert_int_equal(info.kv_tokens, (CTX + 60 + 31) / 32 * 32);
        assert_true(info.suspensions > 0 && info.evictions > 0);
        assert_true(info.kv_held + info.kv_cached <= info.kv_tokens);
        mica_batch_free(b);
        mica_model_close(model);
    }
}

/* A beginning that another session computes, or has computed before it was freed, is not computed again. */
static void test_shared_beginning(void **state)
{
    static record got[4];
    mica_batch *b = open_batch(*state, 4, 2, 64);
    mica_batch_info info;
    request q[4];
    mica_session *s[4];
    for (int i = 0; i < 4; i++) {
        q[i] = make_request(0);
        q[i].n = 150;
        for (int k = 0; k < 150; k++)
            q[i].prompt[k] = 20 + k % 90 + (k >= 140 ? i : 0);
        q[i].o.max_tokens = 3;
    }
    for (int i = 0; i < 3; i++)
        submit(s[i] = join(b), &q[i], &got[i]);
    finish_all(b);
    assert_int_equal(got[0].result.cached_n, 0);
    for (int i = 1; i < 3; i++) /* four blocks, at least */
        assert_true(got[i].result.cached_n >= 128 && got[i].result.cached_n <= 140);
    for (int i = 0; i < 3; i++)
        mica_session_free(s[i]);
    mica_batch_get_info(b, &info);
    assert_true(info.kv_held == 0 && info.kv_cached > 0);
    submit(s[3] = join(b), &q[3], &got[3]);
    finish_all(b);
    assert_int_equal(got[3].result.cached_n, 140); /* 12 of them copied out of a block that goes on differently */
    mica_session *alone = open_session(*state, CTX, 1, 64);
    record want;
    run_alone(alone, &q[3], &want);
    expect_same(&want, &got[3], "a shared beginning");
    mica_session_free(alone);
    mica_batch_free(b);
}

/* The reply of `want` up to its n-th token. */
static void expect_start(const record *want, const record *got, int n)
{
    assert_int_equal(got->n_tokens, n);
    assert_memory_equal(want->tokens, got->tokens, (size_t)n * sizeof *want->tokens);
    assert_memory_equal(want->text, got->text, got->length);
}

static void test_cancel(void **state)
{
    static record want[2 * N], got[N];
    mica_batch *b = open_batch(*state, N, 2, 32);
    expected(*state, want);
    for (int i = 0; i < N; i++) {
        request q = make_request(i);
        memset(&got[i], 0, sizeof got[i]);
        got[i].cancel_at = i == 2 ? 3 : 0;
        got[i].veto_at = i == 5 ? 2 : 0;
        submit(join(b), &q, &got[i]);
    }
    mica_session_cancel(got[1].session); /* before its first step */
    finish_all(b);
    for (int i = 0; i < N; i++) {
        assert_true(got[i].done);
        if (i == 1 || i == 2 || i == 5) {
            assert_int_equal(got[i].status, MICA_CANCELLED);
            assert_string_equal(got[i].reason, "cancelled");
            expect_start(&want[i], &got[i], i == 1 ? 0 : i == 2 ? 3 : 2);
        } else {
            expect_same(&want[i], &got[i], "beside cancelled ones");
        }
    }
    request again = make_request(2); /* a cancelled session is as good as new */
    got[2].cancel_at = 0;
    submit(got[2].session, &again, &got[2]);
    finish_all(b);
    expect_same(&want[2], &got[2], "after a cancel");
    mica_batch_free(b);
}

static void *cancel_soon(void *session)
{
    usleep(3000);
    mica_session_cancel(session);
    return NULL;
}

static void test_cancel_from_thread(void **state)
{
    static record want[2 * N], got[3];
    pthread_t thread;
    mica_batch *b = open_batch(*state, 3, 2, 32);
    expected(*state, want);
    memset(got, 0, sizeof got);
    for (int i = 0; i < 3; i++) {
        request q = make_request(i);
        submit(join(b), &q, &got[i]);
    }
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, got[1].session), 0);
    finish_all(b);
    pthread_join(thread, NULL);
    expect_same(&want[0], &got[0], "beside one cancelled from a thread");
    expect_same(&want[2], &got[2], "beside one cancelled from a thread");
    assert_memory_equal(want[1].tokens, got[1].tokens, (size_t)got[1].n_tokens * sizeof *got[1].tokens);
    assert_true(got[1].status == MICA_CANCELLED || got[1].n_tokens == want[1].n_tokens);
    mica_batch_free(b);
}

/* Sessions are freed at any time between steps; nobody hears of their requests again. */
static void test_leaving(void **state)
{
    static record want[2 * N], got[N];
    mica_batch *b = open_batch(*state, N, 1, 16);
    expected(*state, want);
    memset(got, 0, sizeof got);
    for (int i = 0; i < N; i++) {
        request q = make_request(i);
        submit(join(b), &q, &got[i]);
    }
    for (int turn = 0; turn < 4; turn++) {
        mica_batch_step(b);
        if (!got[2 * turn].done)
            mica_session_free(got[2 * turn].session);
        else
            got[2 * turn].session = NULL;
    }
    finish_all(b);
    for (int i = 1; i < N; i += 2)
        expect_same(&want[i], &got[i], "beside some that left");
    for (int i = 0; i < N; i += 2)
        assert_int_equal(got[i].done, !got[i].session);
    mica_batch_free(b);
}

/* ---- two conversations at once (case ctx-10) ---- */

typedef struct client {
    const char *prompt;
    int32_t max_tokens;
    bool leaves; /* after its first token */
} client;

static void test_conversations_ctx_10(void **state)
{
    static const client clients[8] = {{"S", -1, false}, {"X", 400, false}, {"S", -1, false},  {"X", 400, true},
                                      {"S", -1, false}, {"X", 400, false}, {"X", 400, true}, {"S", -1, false}};
    static record got[8];
    mica_batch *b = open_batch_of(*state, 512, 2, 2, 32);
    mica_session *slots[2] = {join(b), join(b)};
    int exact_s = 0, exact_x = 0;
    for (int round = 0; round < 20; round++) {
        int owner[2] = {-1, -1}, next = 0, done = 0;
        memset(got, 0, sizeof got);
        while (done < 8) {
            for (int i = 0; i < 2; i++) {
                if (owner[i] >= 0 && got[owner[i]].done) {
                    owner[i] = -1;
                    done++;
                }
                if (owner[i] >= 0 || next == 8)
                    continue;
                request q = scripted_request(*state, clients[next].prompt);
                q.o.max_tokens = clients[next].max_tokens;
                got[next].cancel_at = clients[next].leaves;
                submit(slots[i], &q, &got[next]);
                owner[i] = next++;
            }
            mica_batch_step(b);
        }
        for (int i = 0; i < 8; i++) {
            exact_s += clients[i].prompt[0] == 'S' && strcmp(got[i].text, "alpha beta gamma delta") == 0;
            exact_x += clients[i].prompt[0] == 'X' && !clients[i].leaves && strspn(got[i].text, "x") == 400 &&
                       got[i].length == 400;
            assert_int_equal(got[i].n_tokens == 1, clients[i].leaves);
        }
    }
    assert_int_equal(exact_s, 80);
    assert_int_equal(exact_x, 40);
    mica_batch_free(b);
}

/* ---- failing ---- */

static void test_failing(void **state)
{
    (void)state;
    static record got[4];
    char path[] = "/tmp/mica-batch-XXXXXX";
    mica_model *model = poisoned("red", path);
    mica_batch *b = open_batch(model, 4, 2, 16);
    static const char *const prompts[] = {"S", "R", "X", "E"};
    memset(got, 0, sizeof got);
    for (int i = 0; i < 4; i++) {
        request q = scripted_request(model, prompts[i]);
        submit(join(b), &q, &got[i]);
    }
    finish_all(b);
    assert_string_equal(got[0].text, "alpha beta gamma delta");
    assert_string_equal(got[1].text, "red");
    assert_int_equal(got[1].status, MICA_NON_FINITE);
    assert_string_equal(got[1].reason, "error");
    assert_non_null(strstr(got[1].message, "logit"));
    assert_int_equal(got[2].status, MICA_CONTEXT_FULL); /* goes on for ever: its own end, at its own context's */
    assert_string_equal(got[2].reason, "context");
    assert_int_equal(got[2].length, CTX - 1);
    assert_int_equal(got[2].result.needed_n, CTX + 1);
    assert_string_equal(got[3].text, "Hi \xF0\x9F\x99\x82!");
    mica_batch_free(b);
    mica_model_close(model);
    unlink(path);
}

/* A context policy in the middle of a batch: what is to be computed again comes in pieces, as prompts do. */
static void test_shift(void **state)
{
    static record want[2], got[2];
    mica_session_options o = mica_session_options_default();
    mica_session *alone, *s[2];
    mica_error err;
    mica_batch *b = open_batch(*state, 2, 2, 7);
    o.n_ctx = 48;
    o.n_threads = 1;
    o.keep_first = 4;
    o.full_policy = MICA_FULL_SHIFT;
    memset(got, 0, sizeof got);
    for (int i = 0; i < 2; i++) {
        request q = make_request(3 * i + 1);
        q.o.max_tokens = 120;
        q.o.ignore_eos = true;
        q.o.n_stop = 0;
        assert_int_equal(mica_session_new(*state, &o, &alone, &err), MICA_OK);
        run_alone(alone, &q, &want[i]);
        mica_session_free(alone);
        assert_int_equal(mica_batch_session_new(b, &o, &s[i], &err), MICA_OK);
        submit(s[i], &q, &got[i]);
    }
    finish_all(b);
    for (int i = 0; i < 2; i++) {
        assert_true(got[i].result.dropped_n > 0);
        expect_same(&want[i], &got[i], "with a shifting context");
    }
    mica_batch_free(b);
}

/* ---- the schedule ---- */

static void test_fairness(void **state)
{
    static record runs, first, second;
    mica_batch *b = open_batch(*state, 3, 1, 8);
    request stream = scripted_request(*state, "X"), longer = make_request(0);
    stream.o.max_tokens = 100;
    longer.n = 70;
    for (size_t i = 0; i < longer.n; i++)
        longer.prompt[i] = 5;
    longer.o.max_tokens = 1;
    submit(join(b), &stream, &runs);
    mica_batch_step(b);
    submit(join(b), &longer, &first);
    submit(join(b), &longer, &second);
    for (int turn = 1; turn <= 10; turn++) {
        mica_batch_step(b);
        assert_int_equal(runs.n_tokens, 1 + turn); /* a token every step, whatever the others read */
        assert_int_equal(first.done, turn == 10);  /* seven tokens of a step are for the first prompt, */
        assert_false(second.done);
    }
    assert_int_equal(second.session->prefill_n, 0); /* and none for the second, which came later and takes what the first has */
    finish_all(b);
    assert_true(second.done && runs.done);
    assert_int_equal(second.tokens[0], first.tokens[0]);
    mica_batch_free(b);
}

typedef struct reading {
    int calls, veto; /* veto > 0: stops at that call */
    int32_t last;
} reading;

static int count_prefill(void *user, int32_t done, int32_t total)
{
    reading *r = user;
    assert_true(done <= total && total == 70 && (done > r->last || r->calls == 0));
    r->last = done;
    return ++r->calls == r->veto;
}

static void test_prefill_progress(void **state)
{
    static record r;
    reading progress = {.veto = 4};
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    mica_batch *b = open_batch(*state, 1, 1, 16);
    request q = make_request(0);
    q.n = 70;
    for (size_t i = 0; i < q.n; i++)
        q.prompt[i] = 5;
    o.on_prefill = count_prefill;
    o.user = &progress;
    assert_int_equal(mica_batch_session_new(b, &o, &s, &err), MICA_OK);
    submit(s, &q, &r);
    finish_all(b);
    assert_int_equal(r.status, MICA_CANCELLED);
    assert_int_equal(r.n_tokens, 0);
    assert_int_equal(s->n_computed, 48); /* three pieces */
    progress = (reading){0};
    q.prompt[0]++;
    submit(s, &q, &r);
    finish_all(b);
    assert_int_equal(r.status, MICA_OK);
    assert_true(r.n_tokens > 1);
    assert_int_equal(progress.calls, 6); /* before five pieces and after the last; not for tokens of the reply */
    assert_int_equal(progress.last, 70);
    assert_int_equal(r.result.cached_n, 0);
    mica_batch_free(b);
}

typedef struct relay {
    record r;
    mica_model *model;
    int left;
} relay;

/* Sends the next request, or frees the session, from on_done. */
static void relay_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    relay *x = user;
    mica_error err;
    assert_null(error);
    assert_int_equal(status, MICA_OK);
    assert_string_equal(result->stop_reason, "eos");
    assert_string_equal(x->r.text, "two");
    if (x->left-- == 0) {
        mica_session_free(x->r.session);
        x->r.session = NULL;
        return;
    }
    start_record(&x->r, x->r.session);
    request q = scripted_request(x->model, "2");
    mica_generate_options o = recorded(&q, &x->r);
    o.on_done = relay_done;
    assert_int_equal(mica_batch_submit(x->r.session, q.prompt, q.n, &o, &err), MICA_OK);
}

static void test_on_done(void **state)
{
    static relay x[3];
    mica_batch *b = open_batch(*state, 3, 1, 16);
    mica_error err;
    for (int i = 0; i < 3; i++) {
        request q = scripted_request(*state, "2");
        memset(&x[i], 0, sizeof x[i]);
        x[i].model = *state;
        x[i].left = i;
        start_record(&x[i].r, join(b));
        mica_generate_options o = recorded(&q, &x[i].r);
        o.on_done = relay_done;
        assert_int_equal(mica_batch_submit(x[i].r.session, q.prompt, q.n, &o, &err), MICA_OK);
    }
    finish_all(b);
    for (int i = 0; i < 3; i++)
        assert_null(x[i].r.session);
    assert_int_equal(mica_batch_step(b), 0);
    mica_batch_free(b);
}

/* ---- memory and arguments ---- */

static void test_plan(void **state)
{
    mica_batch_options o = mica_batch_options_default();
    mica_session_options one = mica_session_options_default();
    mica_memory_plan plan, single;
    mica_batch *b;
    mica_error err;
    o.max_sessions = 5;
    o.n_ctx = one.n_ctx = 128;
    o.n_threads = one.n_threads = 1;
    assert_int_equal(mica_batch_plan(*state, &o, &plan, &err), MICA_OK);
    assert_int_equal(mica_session_plan(*state, &one, &single, &err), MICA_OK);
    assert_int_equal(plan.kv_bytes, 5 * single.kv_bytes);
    assert_int_equal(plan.prefill_chunk, 256);
    assert_int_equal(plan.total_bytes, plan.weights_bytes + plan.kv_bytes + plan.workspace_bytes);
    o.memory_limit = plan.peak_bytes - 1;
    assert_int_equal(mica_batch_new(*state, &o, &b, &err), MICA_OVER_BUDGET);
    assert_null(b);
    o.memory_limit++;
    assert_int_equal(mica_batch_new(*state, &o, &b, &err), MICA_OK);
    mica_batch_free(b);
    o.workspace_limit = 1000;
    assert_int_equal(mica_batch_new(*state, &o, &b, &err), MICA_OVER_BUDGET);
    assert_non_null(strstr(err.message, "fewer sessions"));
    o = mica_batch_options_default();
    o.max_sessions = 257;
    assert_int_equal(mica_batch_plan(*state, &o, &plan, &err), MICA_INVALID_ARGUMENT);
    o.max_sessions = 16;
    o.step_tokens = 15;
    assert_int_equal(mica_batch_plan(*state, &o, &plan, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "step_tokens"));
    mica_batch_free(NULL);
}

static void expect_refusal(mica_status got, mica_status want, const mica_error *err, const char *says)
{
    assert_int_equal(got, want);
    if (!strstr(err->message, says))
        fail_msg("\"%s\" does not say \"%s\"", err->message, says);
}

static void test_refusals(void **state)
{
    static record r;
    mica_session_options o = mica_session_options_default();
    mica_batch *b = open_batch(*state, 2, 1, 16);
    mica_session *s = join(b), *t, *own = open_session(*state, 64, 1, 8);
    mica_result result;
    mica_error err;
    request q = scripted_request(*state, "X");
    int32_t many[CTX] = {0};
    o.n_ctx = CTX + 1;
    expect_refusal(mica_batch_session_new(b, &o, &t, &err), MICA_INVALID_ARGUMENT, &err, "201");
    o = mica_session_options_default();
    o.draft_max = 4;
    expect_refusal(mica_batch_session_new(b, &o, &t, &err), MICA_UNSUPPORTED, &err, "speculate");
    t = join(b);
    expect_refusal(mica_batch_session_new(b, NULL, &t, &err), MICA_INVALID_ARGUMENT, &err, "2 sessions");
    assert_null(t);
    expect_refusal(mica_session_sync(s, q.prompt, 1, &err), MICA_INVALID_ARGUMENT, &err, "batch");
    expect_refusal(mica_session_prompt(s, "X", 1, 0, &err), MICA_INVALID_ARGUMENT, &err, "batch");
    expect_refusal(mica_session_generate(s, &q.o, &result, &err), MICA_INVALID_ARGUMENT, &err, "batch");
    assert_string_equal(result.stop_reason, "error");
    expect_refusal(mica_session_score(s, q.prompt, 1, 0, NULL, NULL, &err), MICA_INVALID_ARGUMENT, &err, "batch");
    expect_refusal(mica_batch_submit(own, q.prompt, 1, &q.o, &err), MICA_INVALID_ARGUMENT, &err, "no batch");
    expect_refusal(mica_batch_submit(s, q.prompt, 0, &q.o, &err), MICA_INVALID_ARGUMENT, &err, "no tokens");
    expect_refusal(mica_batch_submit(s, many, CTX, &q.o, &err), MICA_CONTEXT_FULL, &err, "200");
    q.o.max_tokens = -2;
    expect_refusal(mica_batch_submit(s, q.prompt, 1, &q.o, &err), MICA_INVALID_ARGUMENT, &err, "max_tokens");
    assert_int_equal(mica_batch_step(b), 0); /* what was refused is not queued */
    q.o.max_tokens = 3;
    submit(s, &q, &r);
    expect_refusal(mica_batch_submit(s, q.prompt, 1, &q.o, &err), MICA_INVALID_ARGUMENT, &err, "under way");
    void *snapshot;
    size_t length;
    assert_int_equal(mica_session_snapshot(s, &snapshot, &length, &err), MICA_OK);
    expect_refusal(mica_session_restore_memory(s, snapshot, length, &err), MICA_INVALID_ARGUMENT, &err, "under way");
    assert_null(mica_session_logits(s));
    finish_all(b);
    assert_int_equal(mica_session_restore_memory(s, snapshot, length, &err), MICA_OK);
    mica_free(snapshot);
    assert_string_equal(r.text, "xxx");
    assert_string_equal(r.reason, "length");
    q.o.max_tokens = 0; /* only computes the prompt */
    submit(s, &q, &r);
    finish_all(b);
    assert_true(r.done && r.n_tokens == 0);
    assert_string_equal(r.reason, "length");
    mica_session_free(own);
    mica_batch_free(b);
}

/* A model whose rotary frequencies depend on the length of the context has one set a batch. */
static void test_longrope_contexts(void **state)
{
    (void)state;
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/phi3-longrope.gguf", NULL);
    int32_t limit = model->weights.h.rope_original_ctx;
    mica_batch_options o = mica_batch_options_default();
    mica_session_options one = mica_session_options_default();
    mica_batch *b;
    mica_session *s;
    mica_error err;
    o.n_threads = 1;
    o.n_ctx = limit + 1;
    one.n_ctx = limit;
    assert_int_equal(mica_batch_new(model, &o, &b, &err), MICA_OK);
    expect_refusal(mica_batch_session_new(b, &one, &s, &err), MICA_INVALID_ARGUMENT, &err, "another way");
    mica_batch_free(b);
    o.n_ctx = limit;
    one.n_ctx = limit / 2;
    assert_int_equal(mica_batch_new(model, &o, &b, &err), MICA_OK);
    assert_int_equal(mica_batch_session_new(b, &one, &s, &err), MICA_OK);
    mica_batch_free(b);
    mica_model_close(model);
}

/* An argument is a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    mica_model *model = open_model(SCRIPTED, NULL), *tiny = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
#define TEST(f, m) cmocka_unit_test_prestate(f, m)
    const struct CMUnitTest tests[] = {
        TEST(test_equality, NULL),          TEST(test_cancel, tiny),      TEST(test_cancel_from_thread, tiny),
        TEST(test_leaving, tiny),           TEST(test_failing, NULL),     TEST(test_conversations_ctx_10, model),
        TEST(test_shift, tiny),             TEST(test_fairness, model),   TEST(test_prefill_progress, tiny),
        TEST(test_on_done, model),          TEST(test_plan, model),       TEST(test_refusals, model),
        TEST(test_longrope_contexts, NULL), TEST(test_little_memory, NULL), TEST(test_shared_beginning, tiny),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mica_model_close(model);
    mica_model_close(tiny);
    return failed;
}
