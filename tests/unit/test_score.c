/* Scoring a text: the same logits from every first position; others get their turn between chunks, and can stop it; what it leaves
 * behind is a history like any other. */
#include "reply_util.h"

enum { N = 150, CTX_SCORE = 200, CHUNK = 16, ROWS = 32 }; /* ROWS: positions that are scored at once, as in session/score.c */

typedef struct watch {
    uint64_t hash[N]; /* of the logits at each position */
    int32_t n_logits, n_calls, last_done, stop_at;
    bool behind; /* the calls came in order, each after the logits of what was done */
} watch;

static int on_prefill(void *user, int32_t done, int32_t total)
{
    watch *w = user;
    assert_int_equal(total, N);
    w->behind = w->behind && done > w->last_done;
    w->last_done = done;
    w->n_calls++;
    return w->stop_at >= 0 && done >= w->stop_at;
}

static int on_logits(void *user, size_t position, const float *logits)
{
    watch *w = user;
    w->hash[position] = hash_bytes(1, logits, 288 * sizeof *logits);
    w->n_logits++;
    return 0;
}

static mica_session *watched(mica_model *model, watch *w)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    *w = (watch){.last_done = -1, .stop_at = -1, .behind = true};
    o.n_ctx = CTX_SCORE;
    o.prefill_chunk = CHUNK;
    o.n_threads = 1;
    o.on_prefill = on_prefill;
    o.user = w;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

static void make_text(int32_t *tokens)
{
    for (int32_t i = 0; i < N; i++)
        tokens[i] = 3 + (i * 7919 + i * i * 31) % 280;
}

static void test_chunks(void **state)
{
    static const int32_t firsts[] = {0, 1, 40, N - 1};
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
    int32_t tokens[N];
    uint64_t all[N];
    watch w;
    mica_error err;
    (void)state;
    make_text(tokens);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        int32_t first = firsts[i], rest = N - first;
        mica_session *s = watched(model, &w);
        assert_int_equal(mica_session_score(s, tokens, N, (size_t)first, on_logits, &w, &err), MICA_OK);
        assert_int_equal(w.n_logits, rest);
        assert_int_equal(w.n_calls, (first + CHUNK - 1) / CHUNK + (rest + ROWS - 1) / ROWS + 1); /* before each chunk, and at the end */
        assert_true(w.behind && w.last_done == N);
        if (first == 0)
            memcpy(all, w.hash, sizeof all);
        assert_memory_equal(w.hash + first, all + first, (size_t)rest * sizeof *all);
        mica_session_free(s);
    }
    mica_model_close(model);
}

/* Wherever it is stopped, the session is as good as before. */
static void test_stopped(void **state)
{
    static const int32_t stops[] = {0, 20, 60, 100};
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
    int32_t tokens[N];
    uint64_t want[N];
    watch w;
    mica_error err;
    (void)state;
    make_text(tokens);
    mica_session *s = watched(model, &w);
    assert_int_equal(mica_session_score(s, tokens, N, 0, on_logits, &w, &err), MICA_OK);
    memcpy(want, w.hash, sizeof want);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        w = (watch){.last_done = -1, .stop_at = stops[i], .behind = true};
        assert_int_equal(mica_session_score(s, tokens, N, 50, on_logits, &w, &err), MICA_CANCELLED);
        assert_true(w.last_done >= stops[i] && w.n_logits == (w.last_done > 50 ? w.last_done - 50 : 0));
        assert_null(mica_session_logits(s));
        w = (watch){.last_done = -1, .stop_at = -1, .behind = true};
        assert_int_equal(mica_session_score(s, tokens, N, 0, on_logits, &w, &err), MICA_OK);
        assert_memory_equal(w.hash, want, sizeof want);
    }
    w = (watch){.last_done = -1, .stop_at = -1, .behind = true};
    mica_session_cancel(s); /* of a call that is over: forgotten */
    assert_int_equal(mica_session_score(s, tokens, N, 0, on_logits, &w, &err), MICA_OK);
    mica_session_free(s);
    mica_model_close(model);
}

/* The history can be gone on with: only the last token is computed again. */
static void test_left_behind(void **state)
{
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
    int32_t tokens[N];
    watch w;
    mica_error err;
    mica_generate_options o = mica_generate_options_default();
    mica_result result;
    (void)state;
    make_text(tokens);
    mica_session *s = watched(model, &w);
    assert_int_equal(mica_session_score(s, tokens, N, 0, on_logits, &w, &err), MICA_OK);
    assert_null(mica_session_logits(s));
    s->options.on_prefill = NULL;
    assert_int_equal(mica_session_sync(s, tokens, N, &err), MICA_OK);
    assert_int_equal(hash_bytes(1, mica_session_logits(s), 288 * sizeof(float)), w.hash[N - 1]);
    o.max_tokens = 1;
    assert_int_equal(mica_session_generate(s, &o, &result, &err), MICA_OK);
    assert_int_equal(result.cached_n, N - 1);
    mica_session_free(s);
    mica_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
