/* Snapshots: a restored session goes on bit for bit as the saved one, whatever its context, threads, chunk and kernels. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "snapshot_util.h"

#define PROMPT 40
#define TOTAL 60

static int count_calls(void *user, int32_t done, int32_t total)
{
    (void)done;
    (void)total;
    ++*(int *)user;
    return 0;
}

/* A session that counts the calls of on_prefill, which come exactly when something is computed. */
static mica_session *counting_session(mica_model *model, int32_t n_ctx, int threads, int chunk, int *calls)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    o.n_ctx = n_ctx;
    o.n_threads = threads;
    o.prefill_chunk = chunk;
    o.on_prefill = count_calls;
    o.user = calls;
    *calls = 0;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

/* Hash of the logits after each of the tokens [from, TOTAL), decoded one by one; all before are in the cache. */
static uint64_t continue_hash(mica_session *s, const int32_t *tokens, size_t n_vocab)
{
    uint64_t h = 0xCBF29CE484222325ull;
    for (size_t i = PROMPT; i <= TOTAL; i++) {
        sync_tokens(s, tokens, i);
        h = hash_bytes(h, mica_session_logits(s), n_vocab * sizeof(float));
    }
    return h;
}

/* Saved from two threads, chunk 7 and the best kernels; restored with others. */
static void check_model(const char *path, const char *kernels)
{
    int32_t tokens[TOTAL];
    mica_model_info info;
    mica_model *model = open_model(path, NULL), *other = open_model(path, kernels);
    mica_session *plain = open_session(model, 96, 1, 64), *saved = open_session(model, 96, 2, 7);
    mica_model_get_info(model, &info);
    some_tokens(tokens, TOTAL);
    sync_tokens(plain, tokens, PROMPT);
    uint64_t expected = continue_hash(plain, tokens, (size_t)info.n_vocab);
    sync_tokens(saved, tokens, PROMPT);
    bytes b = snapshot(saved);
    for (int i = 0; i < 4; i++) {
        static const int ctx[] = {96, 200, 64, 97}, threads[] = {1, 3, 2, 1}, chunk[] = {1, 64, 512, 5};
        int calls;
        mica_session *s = counting_session(i % 2 ? other : model, ctx[i], threads[i], chunk[i], &calls);
        restore(s, b);
        assert_non_null(mica_session_logits(s));
        sync_tokens(s, tokens, PROMPT);
        assert_int_equal(calls, 0);
        if (continue_hash(s, tokens, (size_t)info.n_vocab) != expected)
            fail_msg("%s: restored into n_ctx %d, %d threads, kernels %s: the logits differ", path, ctx[i], threads[i],
                     i % 2 ? kernels : "best");
        assert_true(calls > 0);
        mica_session_free(s);
    }
    free(b.data);
    mica_session_free(plain);
    mica_session_free(saved);
    mica_model_close(model);
    mica_model_close(other);
}

static void test_architectures(void **state)
{
    (void)state;
    static const char *const names[] = {"llama",  "llama3-rope",   "mistral", "qwen2",         "qwen3",    "gemma2",
                                        "gemma3", "gemma3-linear", "phi3",    "phi3-longrope", "phi4-mini"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[i]);
        check_model(path, "portable");
    }
}

/* Models with two sets of RoPE factors rotate differently in long contexts. */
static void test_long_rope(void **state)
{
    (void)state;
    mica_model *model = open_model(MICA_TEST_DATA "/tiny/phi3-longrope.gguf", NULL);
    mica_session *brief = open_session(model, 32, 1, 8), *lengthy = open_session(model, 33, 1, 8);
    int32_t tokens[20];
    some_tokens(tokens, 20);
    sync_tokens(brief, tokens, 20);
    bytes b = snapshot(brief);
    check_refused(lengthy, b, MICA_UNSUPPORTED, "a context of 32 tokens");
    free(b.data);
    mica_session_free(brief);
    mica_session_free(lengthy);
    mica_model_close(model);
}

typedef struct reply {
    int32_t tokens[64];
    int n;
    mica_result result;
} reply;

static int keep_token(void *user, const mica_token_event *e)
{
    reply *r = user;
    r->tokens[r->n++] = e->token;
    return 0;
}

static void keep_result(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    reply *r = user;
    if (status)
        fail_msg("%s", error->message);
    r->result = *result;
}

static mica_generate_options sampled(reply *r, int n)
{
    mica_generate_options o = mica_generate_options_default();
    o.max_tokens = n;
    o.ignore_eos = true;
    o.sampling.seed = 7;
    o.on_token = keep_token;
    o.on_done = keep_result;
    o.user = r;
    return o;
}

static reply generate(mica_session *s, int n)
{
    reply r = {.n = 0};
    mica_error err;
    mica_generate_options o = sampled(&r, n);
    if (mica_session_generate(s, &o, &r.result, &err))
        fail_msg("%s", err.message);
    return r;
}

static void check_same_reply(mica_session *a, mica_session *b)
{
    reply x = generate(a, 20), y = generate(b, 20);
    assert_int_equal(x.n, 20);
    assert_int_equal(y.n, 20);
    assert_memory_equal(x.tokens, y.tokens, 20 * sizeof *x.tokens);
}

/* Snapshots between replies, where the last token is not computed yet. */
static void test_after_reply(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 128, 1, 8), *b = open_session(model, 128, 1, 8);
    int32_t tokens[PROMPT];
    size_t n;
    some_tokens(tokens, PROMPT);
    sync_tokens(a, tokens, PROMPT);
    generate(a, 5);
    bytes saved = snapshot(a);
    restore(b, saved);
    const int32_t *history = mica_session_tokens(b, &n);
    assert_int_equal(n, PROMPT + 5);
    assert_memory_equal(history, tokens, sizeof tokens);
    assert_null(mica_session_logits(b));
    bytes again = snapshot(b);
    assert_true(same_bytes(saved, again));
    check_same_reply(a, b);
    free(saved.data);
    free(again.data);
    mica_session_free(a);
    mica_session_free(b);
}

static void test_result_after_restore(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 128, 1, 8), *b = open_session(model, 128, 1, 8);
    int32_t tokens[PROMPT];
    some_tokens(tokens, PROMPT);
    sync_tokens(a, tokens, PROMPT);
    bytes saved = snapshot(a);
    restore(b, saved);
    reply r = generate(b, 2);
    assert_int_equal(r.result.prompt_n, PROMPT);
    assert_int_equal(r.result.cached_n, PROMPT);
    assert_true(r.result.prefill_ms >= 0 && r.result.prefill_ms < r.result.ttft_ms);
    free(saved.data);
    mica_session_free(a);
    mica_session_free(b);
}

static int stop_second(void *user, int32_t done, int32_t total)
{
    (void)user;
    (void)total;
    return done > 0;
}

/* A prefill that was cancelled after 8 of 40 tokens: the rest is computed after the restore. */
static void test_half_computed(void **state)
{
    mica_model *model = *state;
    mica_session_options o = mica_session_options_default();
    mica_session *a, *b = open_session(model, 128, 2, 64), *plain = open_session(model, 128, 1, 64);
    mica_error err;
    int32_t tokens[PROMPT];
    o.n_ctx = 128;
    o.n_threads = 1;
    o.prefill_chunk = 8;
    o.on_prefill = stop_second;
    some_tokens(tokens, PROMPT);
    assert_int_equal(mica_session_new(model, &o, &a, &err), MICA_OK);
    assert_int_equal(mica_session_sync(a, tokens, PROMPT, &err), MICA_CANCELLED);
    bytes saved = snapshot(a);
    restore(b, saved);
    assert_null(mica_session_logits(b));
    sync_tokens(plain, tokens, PROMPT);
    check_same_reply(plain, b);
    free(saved.data);
    mica_session_free(a);
    mica_session_free(b);
    mica_session_free(plain);
}

static int ignore_logits(void *user, size_t position, const float *logits)
{
    (void)user;
    (void)position;
    (void)logits;
    return 0;
}

/* After scoring everything is computed but no logits are kept: a restored session must not reply from stale ones. */
static void test_after_score(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 128, 1, 8), *b = open_session(model, 128, 1, 8);
    mica_error err;
    int32_t tokens[PROMPT];
    some_tokens(tokens, PROMPT);
    assert_int_equal(mica_session_score(a, tokens, PROMPT, 0, ignore_logits, NULL, &err), MICA_OK);
    bytes saved = snapshot(a);
    restore(b, saved);
    assert_null(mica_session_logits(b));
    sync_tokens(a, tokens, PROMPT);
    check_same_reply(a, b);
    free(saved.data);
    mica_session_free(a);
    mica_session_free(b);
}

/* From a session into one of a batch, which has no place for logits, and back. */
static void test_batch(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 128, 1, 8), *b, *c = open_session(model, 128, 1, 8);
    mica_batch_options options = mica_batch_options_default();
    mica_batch *batch;
    mica_error err;
    int32_t tokens[PROMPT];
    reply r = {.n = 0};
    options.n_ctx = 128;
    options.n_threads = 1;
    some_tokens(tokens, PROMPT);
    sync_tokens(a, tokens, PROMPT);
    assert_int_equal(mica_batch_new(model, &options, &batch, &err), MICA_OK);
    assert_int_equal(mica_batch_session_new(batch, NULL, &b, &err), MICA_OK);
    bytes saved = snapshot(a);
    restore(b, saved);
    assert_null(mica_session_logits(b));
    mica_generate_options o = sampled(&r, 20);
    assert_int_equal(mica_batch_submit(b, tokens, PROMPT, &o, &err), MICA_OK);
    while (mica_batch_step(batch) > 0)
        assert_true(r.n < 20);
    reply expected = generate(a, 20);
    assert_int_equal(r.n, 20);
    assert_memory_equal(r.tokens, expected.tokens, 20 * sizeof *r.tokens);
    assert_int_equal(r.result.cached_n, PROMPT - 1);
    free(saved.data);
    saved = snapshot(b);
    restore(c, saved);
    check_same_reply(a, c);
    free(saved.data);
    mica_session_free(a);
    mica_session_free(b);
    mica_session_free(c);
    mica_batch_free(batch);
}

static void test_empty(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 64, 1, 8), *b = open_session(model, 64, 1, 8);
    int32_t tokens[PROMPT];
    size_t n;
    some_tokens(tokens, PROMPT);
    sync_tokens(b, tokens, PROMPT);
    bytes saved = snapshot(a);
    assert_int_equal(saved.n, 256);
    restore(b, saved);
    mica_session_tokens(b, &n);
    assert_int_equal(n, 0);
    assert_null(mica_session_logits(b));
    sync_tokens(a, tokens, PROMPT);
    sync_tokens(b, tokens, PROMPT);
    check_same_reply(a, b);
    free(saved.data);
    mica_session_free(a);
    mica_session_free(b);
}

static void test_context_sizes(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 128, 1, 8);
    int32_t tokens[PROMPT];
    some_tokens(tokens, PROMPT);
    sync_tokens(a, tokens, PROMPT);
    bytes saved = snapshot(a);
    for (int n_ctx = PROMPT - 1; n_ctx <= PROMPT + 1; n_ctx++) {
        mica_session *b = open_session(model, n_ctx, 1, 8);
        sync_tokens(b, tokens + 1, 3);
        if (n_ctx < PROMPT) {
            check_refused(b, saved, MICA_CONTEXT_FULL, "40 tokens");
            check_refused(b, saved, MICA_CONTEXT_FULL, "holds 39");
        } else {
            restore(b, saved);
            assert_memory_equal(mica_session_logits(b), mica_session_logits(a), 64);
        }
        mica_session_free(b);
    }
    free(saved.data);
    mica_session_free(a);
}

/* The file has the bytes of the snapshot in memory; those may lie at any address. */
static void test_file_and_memory(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 64, 1, 8), *b = open_session(model, 64, 1, 8);
    int32_t tokens[PROMPT];
    mica_error err;
    folder f;
    bytes file;
    folder_make(&f);
    some_tokens(tokens, PROMPT);
    sync_tokens(a, tokens, PROMPT);
    bytes saved = snapshot(a);
    for (int i = 0; i < 2; i++) /* a new file, and one replaced */
        if (mica_session_save(a, f.file, &err))
            fail_msg("%s", err.message);
    file.data = load_bytes(f.file, &file.n);
    assert_true(same_bytes(file, saved));
    char *moved = malloc(saved.n + 1);
    memcpy(moved + 1, saved.data, saved.n);
    restore(b, (bytes){moved + 1, saved.n});
    sync_tokens(b, tokens, 1);
    if (mica_session_restore(b, f.file, &err))
        fail_msg("%s", err.message);
    bytes again = snapshot(b);
    assert_true(same_bytes(again, saved));
    assert_int_equal(folder_count(&f, false), 1);
    free(moved);
    free(file.data);
    free(saved.data);
    free(again.data);
    mica_session_free(a);
    mica_session_free(b);
    folder_remove(&f);
}

/* A writer killed at any time leaves the one or the other snapshot. */
static void check_killed(mica_session *a, mica_session *b, mica_session *reader, const folder *f, int round)
{
    mica_error err;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        for (;;)
            if (mica_session_save(a, f->file, NULL) || mica_session_save(b, f->file, NULL))
                _exit(1);
    nanosleep(&(struct timespec){.tv_nsec = 1000000L + 1373000L * round}, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    if (mica_session_restore(reader, f->file, &err))
        fail_msg("%s", err.message);
    size_t n, n_a, n_b;
    const int32_t *tokens = mica_session_tokens(reader, &n);
    const int32_t *of_a = mica_session_tokens(a, &n_a), *of_b = mica_session_tokens(b, &n_b);
    assert_true((n == n_a && memcmp(tokens, of_a, n * 4) == 0) || (n == n_b && memcmp(tokens, of_b, n * 4) == 0));
}

static void test_killed_writer(void **state)
{
    mica_model *model = *state;
    mica_session *a = open_session(model, 512, 1, 64), *b = open_session(model, 512, 1, 64);
    mica_session *reader = open_session(model, 512, 1, 64);
    int32_t tokens[400];
    mica_error err;
    folder f;
    folder_make(&f);
    some_tokens(tokens, 400);
    sync_tokens(a, tokens, 400);
    sync_tokens(b, tokens + 1, 390);
    assert_int_equal(mica_session_save(a, f.file, &err), MICA_OK);
    for (int round = 0; round < 20; round++)
        check_killed(a, b, reader, &f, round);
    mica_session_free(a);
    mica_session_free(b);
    mica_session_free(reader);
    folder_remove(&f);
}

/* The disk is full after each of some numbers of bytes: an error, and the old file. */
static void test_full_disk(void **state)
{
    mica_model *model = *state;
    mica_session *old = open_session(model, 512, 1, 64), *new = open_session(model, 512, 1, 64);
    int32_t tokens[400];
    mica_error err;
    folder f;
    folder_make(&f);
    some_tokens(tokens, 400);
    sync_tokens(old, tokens, 20);
    sync_tokens(new, tokens, 400);
    assert_int_equal(mica_session_save(old, f.file, &err), MICA_OK);
    for (rlim_t limit = 0; limit < mica_session_snapshot_bytes(new); limit += 50001) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
            _exit(mica_session_save(new, f.file, &err) == MICA_IO_ERROR ? 0 : 1);
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
        assert_int_equal(folder_count(&f, false), 1);
    }
    bytes file, saved = snapshot(old);
    file.data = load_bytes(f.file, &file.n);
    assert_true(same_bytes(file, saved));
    free(file.data);
    free(saved.data);
    mica_session_free(old);
    mica_session_free(new);
    folder_remove(&f);
}

int main(void)
{
    mica_model *model = open_model(SCRIPTED, NULL);
#define TEST(f) cmocka_unit_test_prestate(f, model)
    const struct CMUnitTest tests[] = {
        TEST(test_architectures), TEST(test_long_rope), TEST(test_after_reply),   TEST(test_result_after_restore),
        TEST(test_half_computed), TEST(test_after_score), TEST(test_empty),       TEST(test_context_sizes),
        TEST(test_file_and_memory), TEST(test_killed_writer), TEST(test_full_disk), TEST(test_batch),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mica_model_close(model);
    return failed;
}
