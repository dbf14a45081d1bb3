/* Windowed layers keep a ring of positions: every logit is the one of a cache that keeps all, on every path, well beyond the
 * window; after cuts near and far, snapshots, speculation, batches and context shifts. */
#include <unistd.h>

#include "base/rng.h"
#include "model_util.h"
#include "session/session.h"

#define N 2300     /* tokens: about four rings */
#define N_CTX 2400
#define WHOLE 4096 /* a prefill chunk that makes the ring as long as the context */
#define MAX_MODELS 3

/* A tiny model with other numbers in its metadata. */
typedef struct variant {
    const char *name;
    struct {
        const char *key;
        uint32_t value;
    } patch[5];
} variant;

/* Windows within a tile, over many groups, and with heads that Q8_0 and Q4_0 can hold. */
static const variant variants[MAX_MODELS] = {
    {"gemma3", {{"gemma3.attention.sliding_window", 8}}},
    {"gemma3", {{"gemma3.attention.sliding_window", 600}}},
    {"gemma2", {{"gemma2.attention.sliding_window", 300}, {"gemma2.attention.head_count", 2},
                {"gemma2.attention.head_count_kv", 1}, {"gemma2.attention.key_length", 32},
                {"gemma2.attention.value_length", 32}}},
};

/* A value of four bytes follows its key and its type. */
static void patch_number(char *data, size_t n, const char *key, uint32_t value)
{
    char entry[80];
    size_t length = strlen(key);
    memcpy(entry, key, length);
    memcpy(entry + length, "\x04\0\0\0", 4);
    char *at = memmem(data, n, entry, length + 4);
    if (!at)
        fail_msg("no %s", key);
    memcpy(at + length + 4, &value, sizeof value);
}

static mica_model *open_variant(int i)
{
    char source[512], path[] = "/tmp/mica-window-XXXXXX";
    size_t n;
    snprintf(source, sizeof source, MICA_TEST_DATA "/tiny/%s.gguf", variants[i].name);
    char *data = load_bytes(source, &n);
    for (int p = 0; p < 5 && variants[i].patch[p].key; p++)
        patch_number(data, n, variants[i].patch[p].key, variants[i].patch[p].value);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    close(fd);
    free(data);
    mica_model *model = open_model(path, NULL);
    unlink(path); /* the mapping stays */
    return model;
}

static mica_session *session_of(mica_model *model, int32_t n_ctx, int threads, int chunk, mica_kv_type k, mica_kv_type v)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    o.n_ctx = n_ctx;
    o.n_threads = threads;
    o.prefill_chunk = chunk;
    o.kv_k = k;
    o.kv_v = v;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

/* One that keeps every position of every layer. */
static mica_session *whole_session(mica_model *model)
{
    mica_session *s = session_of(model, N_CTX, 1, WHOLE, MICA_KV_F16, MICA_KV_F16);
    assert_int_equal(s->kv.slots[MICA_KV_WINDOWED], N_CTX);
    return s;
}

static void some_tokens(int32_t *tokens, int n, uint64_t seed)
{
    mica_rng rng;
    mica_rng_seed(&rng, seed);
    for (int i = 0; i < n; i++)
        tokens[i] = 3 + (int32_t)(mica_rng_next(&rng) % 280);
}

static void sync_to(mica_session *s, const int32_t *tokens, int n)
{
    mica_error err;
    if (mica_session_sync(s, tokens, (size_t)n, &err))
        fail_msg("%s", err.message);
}

static uint64_t row_hash(const float *logits) { return hash_bytes(7, logits, 288 * sizeof *logits); }

static int keep_row(void *user, size_t position, const float *logits)
{
    ((uint64_t *)user)[position] = row_hash(logits);
    return 0;
}

/* Hash of the logits after every token. */
static void score(mica_session *s, const int32_t *tokens, uint64_t rows[N])
{
    mica_error err;
    if (mica_session_score(s, tokens, N, 0, keep_row, rows, &err))
        fail_msg("%s", err.message);
}

static void expect_row(const mica_session *s, const uint64_t rows[N], int n, const char *what)
{
    if (row_hash(mica_session_logits(s)) != rows[n - 1])
        fail_msg("%s: the logits after %d tokens differ", what, n);
}

/* ---- sizes ---- */

static int64_t kv_bytes(mica_model *model, int32_t n_ctx, int chunk, int draft, int32_t *window_ctx)
{
    mica_session_options o = mica_session_options_default();
    mica_memory_plan plan;
    mica_error err;
    o.n_ctx = n_ctx;
    o.prefill_chunk = chunk;
    o.draft_max = draft;
    if (mica_session_plan(model, &o, &plan, &err))
        fail_msg("%s", err.message);
    *window_ctx = plan.window_ctx;
    return plan.kv_bytes;
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        int model, n_ctx, chunk, draft, ring;
    } cases[] = {{0, 2400, 64, 0, 512},   {0, 2400, 248, 0, 512},   {0, 2400, 249, 0, 1024},  {0, 511, 64, 0, 511},
                 {0, 512, 64, 0, 512},    {0, 513, 64, 0, 512},     {1, 2400, 168, 0, 1024},  {1, 2400, 169, 0, 1536},
                 {1, 1000, 1, 0, 1000},   {1, 2400, 1, 63, 1024},   {0, 2400, 192, 63, 512},  {0, 2400, 4096, 0, 2400},
                 {1, 32768, 512, 0, 1536}, {2, 5000, 0, 0, 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mica_model *model = open_variant(cases[i].model);
        const mica_hparams *h = &model->weights.h;
        int32_t windowed = 0, window_ctx;
        for (int32_t l = 0; l < h->n_layers; l++)
            windowed += h->windowed[l];
        assert_true(windowed > 0 && windowed < h->n_layers);
        int64_t slots = (int64_t)(h->n_layers - windowed) * cases[i].n_ctx + (int64_t)windowed * cases[i].ring;
        int64_t bytes = kv_bytes(model, cases[i].n_ctx, cases[i].chunk, cases[i].draft, &window_ctx);
        assert_int_equal(window_ctx, cases[i].ring);
        assert_int_equal(bytes, slots * h->n_kv_heads * h->head_dim * 4);
        mica_model_close(model);
    }
    int32_t window_ctx;
    mica_model *llama = open_model(MICA_TEST_DATA "/tiny/llama.gguf", NULL);
    assert_int_equal(kv_bytes(llama, 5000, 64, 0, &window_ctx), 2LL * 2 * 16 * 4 * 5000);
    assert_int_equal(window_ctx, 5000);
    mica_model_close(llama);
}

/* ---- paths ---- */

static void check_paths(mica_model *model, const int32_t *tokens, const uint64_t *rows, int threads, int chunk)
{
    static uint64_t got[N];
    char what[80];
    snprintf(what, sizeof what, "%d threads, chunk %d", threads, chunk);
    mica_session *s = session_of(model, N_CTX, threads, chunk, MICA_KV_F16, MICA_KV_F16);
    assert_true(s->kv.slots[MICA_KV_WINDOWED] < 1600);
    sync_to(s, tokens, N - 40);
    expect_row(s, rows, N - 40, what);
    for (int n = N - 39; n <= N; n++) { /* decode */
        sync_to(s, tokens, n);
        expect_row(s, rows, n, what);
    }
    assert_int_equal(s->kv.first, N - s->kv.slots[MICA_KV_WINDOWED]);
    score(s, tokens, got);
    for (int i = 0; i < N; i++)
        if (got[i] != rows[i])
            fail_msg("%s: scoring differs at %d", what, i);
    mica_session_free(s);
}

static void test_paths(void **state)
{
    (void)state;
    static int32_t tokens[N];
    static uint64_t rows[N];
    some_tokens(tokens, N, 1);
    for (int i = 0; i < MAX_MODELS; i++) {
        mica_model *model = open_variant(i);
        mica_session *whole = whole_session(model);
        score(whole, tokens, rows);
        assert_int_equal(whole->kv.first, 0);
        mica_session_free(whole);
        static const int threads[] = {1, 1, 3, 2}, chunks[] = {1, 64, 7, 300};
        for (int k = 0; k < 4; k++)
            check_paths(model, tokens, rows, threads[k], chunks[k]);
        mica_model_close(model);
    }
}

static void test_kv_types(void **state)
{
    (void)state;
    static int32_t tokens[N];
    static uint64_t rows[N], got[N];
    mica_model *model = open_variant(2);
    some_tokens(tokens, N, 2);
    for (int i = 0; i < 9; i++) {
        mica_session *whole = session_of(model, N_CTX, 2, WHOLE, (mica_kv_type)(i % 3), (mica_kv_type)(i / 3));
        mica_session *s = session_of(model, N_CTX, 2, 50, (mica_kv_type)(i % 3), (mica_kv_type)(i / 3));
        assert_true(whole->kv.slots[MICA_KV_WINDOWED] == N_CTX && s->kv.slots[MICA_KV_WINDOWED] == 1024);
        score(whole, tokens, rows);
        score(s, tokens, got);
        assert_memory_equal(rows, got, sizeof rows);
        sync_to(s, tokens, N);
        expect_row(s, rows, N, "prefill");
        mica_session_free(whole);
        mica_session_free(s);
    }
    mica_model_close(model);
}

/* ---- cuts ---- */

/* Both get the same history; `cached` is what the ring must have kept of it. */
static void same_step(mica_session *ring, mica_session *whole, const int32_t *tokens, int n, int32_t cached)
{
    sync_to(ring, tokens, n);
    sync_to(whole, tokens, n);
    if (ring->cached_n != cached)
        fail_msg("%d tokens came from the cache, expected %d", ring->cached_n, cached);
    assert_memory_equal(mica_session_logits(ring), mica_session_logits(whole), 288 * sizeof(float));
}

static void test_cuts(void **state)
{
    (void)state;
    static int32_t tokens[N], other[N];
    for (int i = 0; i < MAX_MODELS; i++) {
        mica_model *model = open_variant(i);
        mica_session *ring = session_of(model, N_CTX, 1, 64, MICA_KV_F16, MICA_KV_F16), *whole = whole_session(model);
        int32_t near = N - (ring->kv.slots[MICA_KV_WINDOWED] - model->weights.h.window + 1); /* the deepest cut that costs nothing */
        some_tokens(tokens, N, 3);
        some_tokens(other, N, 4);
        same_step(ring, whole, tokens, N, 0);
        same_step(ring, whole, tokens, near + 1, near); /* the last token is computed again */
        same_step(ring, whole, tokens, N, near + 1);
        memcpy(other, tokens, (size_t)near * sizeof *other);
        same_step(ring, whole, other, N - 100, near);
        same_step(ring, whole, other, N, N - 100);
        same_step(ring, whole, other, near, 0); /* one deeper */
        assert_int_equal(ring->kv.first, near > ring->kv.slots[MICA_KV_WINDOWED] ? near - ring->kv.slots[MICA_KV_WINDOWED] : 0);
        same_step(ring, whole, tokens, N, near);
        same_step(ring, whole, other, 100, 0);
        same_step(ring, whole, tokens, 90, 89); /* nothing is lost of a short history */
        same_step(ring, whole, other, 1, 0);
        mica_session_free(ring);
        mica_session_free(whole);
        mica_model_close(model);
    }
}

/* Random cuts and additions: the ring's session does what one does that keeps everything. */
static void test_random_cuts(void **state)
{
    (void)state;
    static int32_t tokens[N];
    mica_model *model = open_variant(1);
    mica_session *ring = session_of(model, N_CTX, 2, 100, MICA_KV_F16, MICA_KV_F16), *whole = whole_session(model);
    mica_rng rng;
    int n = 0, kept = 0;
    mica_rng_seed(&rng, 5);
    for (int step = 0; step < 100; step++) {
        int cut = (int)(mica_rng_next(&rng) % (step % 5 == 0 ? 1200 : 500)), add = (int)(mica_rng_next(&rng) % 700) + 1;
        n = n > cut ? n - cut : n / 2;
        add = n + add > N ? N - n : add;
        some_tokens(tokens + n, add, (uint64_t)step);
        int before = n;
        n += add;
        if (n == 0 || add == 0)
            continue;
        sync_to(ring, tokens, n);
        sync_to(whole, tokens, n);
        assert_memory_equal(mica_session_logits(ring), mica_session_logits(whole), 288 * sizeof(float));
        assert_true(ring->cached_n == 0 || ring->cached_n == whole->cached_n);
        kept += before > 0 && ring->cached_n == whole->cached_n;
    }
    assert_in_range(kept, 30, 98); /* both happen */
    mica_session_free(ring);
    mica_session_free(whole);
    mica_model_close(model);
}

/* ---- snapshots ---- */

static void go_on(mica_session *s, const int32_t *tokens, const uint64_t *rows, int n, const char *what)
{
    sync_to(s, tokens, n);
    assert_int_equal(s->prefill_n, 0);
    expect_row(s, rows, n, what);
    for (int i = n + 1; i <= n + 20; i++) {
        sync_to(s, tokens, i);
        assert_int_equal(s->prefill_n, 1);
        expect_row(s, rows, i, what);
    }
    sync_to(s, tokens, n - 200); /* a cut that every ring here has room for */
    expect_row(s, rows, n - 200, what);
    assert_int_equal(s->cached_n, n - 201);
    sync_to(s, tokens, n + 60);
    expect_row(s, rows, n + 60, what);
}

/* From any ring into any other. */
static void test_snapshots(void **state)
{
    (void)state;
    static int32_t tokens[N];
    static uint64_t rows[N];
    static const int at[] = {400, 1100, 2100}, chunks[] = {64, 700, WHOLE};
    mica_error err;
    some_tokens(tokens, N, 6);
    for (int i = 0; i < MAX_MODELS; i++) {
        mica_model *model = open_variant(i);
        mica_session *whole = whole_session(model);
        score(whole, tokens, rows);
        mica_session_free(whole);
        for (int k = i; k < 27; k += i == 0 ? 1 : 4) {
            int n = at[k % 3], from = k / 3 % 3, into = k / 9;
            void *bytes;
            size_t length;
            mica_session *a = session_of(model, N_CTX, 1, chunks[from], MICA_KV_F16, MICA_KV_F16);
            mica_session *b = session_of(model, into == 2 ? n + 100 : N_CTX, 2, chunks[into], MICA_KV_F16, MICA_KV_F16);
            sync_to(a, tokens, n);
            assert_int_equal(mica_session_snapshot(a, &bytes, &length, &err), MICA_OK);
            assert_int_equal(length, mica_session_snapshot_bytes(a));
            sync_to(b, tokens + 3, 300); /* something else is in the ring */
            if (mica_session_restore_memory(b, bytes, length, &err))
                fail_msg("%s", err.message);
            go_on(b, tokens, rows, n, "restored");
            free(bytes);
            mica_session_free(a);
            mica_session_free(b);
        }
        mica_model_close(model);
    }
}

/* Snapshots hold what is there: the ring and no more. */
static void test_snapshot_bytes(void **state)
{
    (void)state;
    static int32_t tokens[N];
    mica_model *model = open_variant(0);
    mica_session *ring = session_of(model, N_CTX, 1, 64, MICA_KV_F16, MICA_KV_F16), *whole = whole_session(model);
    some_tokens(tokens, N, 7);
    sync_to(ring, tokens, 2000);
    sync_to(whole, tokens, 2000);
    const mica_hparams *h = &model->weights.h;
    size_t windowed = 0;
    for (int32_t l = 0; l < h->n_layers; l++)
        windowed += h->windowed[l];
    size_t saved = windowed * (2000 - 512) * (size_t)(h->n_kv_heads * h->head_dim) * 4;
    assert_int_equal(mica_session_snapshot_bytes(whole) - mica_session_snapshot_bytes(ring), saved);
    mica_session_free(ring);
    mica_session_free(whole);
    mica_model_close(model);
}

static int stop_at_once(void *user, int32_t done, int32_t total)
{
    (void)done;
    (void)total;
    return *(int *)user;
}

/* Cut far back, and stopped before anything was computed again: the snapshot says so. */
static void test_snapshot_of_nothing(void **state)
{
    (void)state;
    static int32_t tokens[N];
    int stop = 0;
    void *bytes;
    size_t length;
    mica_error err;
    mica_model *model = open_variant(0);
    mica_session_options o = mica_session_options_default();
    mica_session *s, *t = session_of(model, N_CTX, 1, 64, MICA_KV_F16, MICA_KV_F16);
    o.n_ctx = N_CTX;
    o.prefill_chunk = 64;
    o.on_prefill = stop_at_once;
    o.user = &stop;
    assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
    some_tokens(tokens, N, 8);
    sync_to(s, tokens, N);
    stop = 1;
    assert_int_equal(mica_session_sync(s, tokens, 300, &err), MICA_CANCELLED);
    assert_int_equal(s->n_computed, 0);
    assert_int_equal(mica_session_snapshot(s, &bytes, &length, &err), MICA_OK);
    if (mica_session_restore_memory(t, bytes, length, &err))
        fail_msg("%s", err.message);
    stop = 0;
    sync_to(s, tokens, 300);
    sync_to(t, tokens, 300);
    assert_int_equal(t->cached_n, 0);
    assert_memory_equal(mica_session_logits(s), mica_session_logits(t), 288 * sizeof(float));
    free(bytes);
    mica_session_free(s);
    mica_session_free(t);
    mica_model_close(model);
}

/* ---- replies ---- */

#define REPLY 120

typedef struct reply {
    int32_t tokens[REPLY];
    int n;
    bool done;
} reply;

static int keep_token(void *user, const mica_token_event *e)
{
    reply *r = user;
    assert_true(r->n < REPLY);
    r->tokens[r->n++] = e->token;
    return 0;
}

static void note_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    (void)result;
    (void)error;
    assert_int_equal(status, MICA_OK);
    ((reply *)user)->done = true;
}

static mica_generate_options reply_options(reply *r)
{
    mica_generate_options g = mica_generate_options_default();
    *r = (reply){.n = 0};
    g.max_tokens = REPLY;
    g.ignore_eos = true;
    g.sampling.seed = 11;
    g.on_token = keep_token;
    g.on_done = note_done;
    g.user = r;
    return g;
}

static void generate(mica_session *s, reply *r, mica_speculation speculate)
{
    mica_generate_options g = reply_options(r);
    mica_error err;
    g.speculate = speculate;
    if (mica_session_generate(s, &g, NULL, &err))
        fail_msg("%s", err.message);
    assert_int_equal(r->n, REPLY);
}

static void same_reply(const reply *a, const reply *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->tokens, b->tokens, (size_t)a->n * sizeof *a->tokens);
}

/* Drafts that are mostly wrong, right behind the end of a ring and across it; then the same from a cut. */
static void test_speculation(void **state)
{
    (void)state;
    static int32_t tokens[N];
    reply expected, got;
    mica_error err;
    for (int i = 0; i < MAX_MODELS; i++) {
        mica_model *model = open_variant(i);
        mica_session_options o = mica_session_options_default();
        mica_session *s, *whole = whole_session(model);
        o.n_ctx = N_CTX;
        o.prefill_chunk = 16;
        o.draft_max = 63;
        o.n_threads = 1;
        o.draft_model = model;
        assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
        assert_true(s->kv.slots[MICA_KV_WINDOWED] < 1100);
        some_tokens(tokens, 40, 9);
        for (int k = 40; k < N; k++) /* much to look up */
            tokens[k] = k % 37 == 0 ? 3 + k % 200 : tokens[k - 40];
        for (int n = 1000; n <= 2200; n += 300) {
            sync_to(whole, tokens, n);
            generate(whole, &expected, MICA_SPECULATE_OFF);
            for (mica_speculation how = MICA_SPECULATE_OFF; how <= MICA_SPECULATE_BOTH; how++) {
                sync_to(s, tokens, n);
                generate(s, &got, how);
                same_reply(&expected, &got);
            }
        }
        mica_session_free(s);
        mica_session_free(whole);
        mica_model_close(model);
    }
}

/* Prompts of different lengths together, in steps that a plain session's ring would not have room for. */
static void test_batch(void **state)
{
    (void)state;
    static int32_t tokens[N];
    static const int lengths[] = {700, 1500, 2200, 90};
    reply expected[4], got[4];
    mica_batch_options o = mica_batch_options_default();
    mica_batch *batch;
    mica_error err;
    some_tokens(tokens, N, 10);
    for (int i = 0; i < MAX_MODELS; i++) {
        mica_model *model = open_variant(i);
        mica_session *whole = whole_session(model), *members[4];
        o.max_sessions = 4;
        o.n_ctx = N_CTX;
        o.step_tokens = i == 0 ? 700 : 90;
        o.n_threads = 2;
        assert_int_equal(mica_batch_new(model, &o, &batch, &err), MICA_OK);
        for (int k = 0; k < 4; k++) {
            mica_generate_options g = reply_options(&got[k]);
            sync_to(whole, tokens, lengths[k]);
            generate(whole, &expected[k], MICA_SPECULATE_OFF);
            assert_int_equal(mica_batch_session_new(batch, NULL, &members[k], &err), MICA_OK);
            assert_true(members[k]->kv.slots[MICA_KV_WINDOWED] < 4 * 2 * 1100); /* with room for what others had */
            assert_int_equal(mica_batch_submit(members[k], tokens, (size_t)lengths[k], &g, &err), MICA_OK);
        }
        while (mica_batch_step(batch) > 0)
            ;
        for (int k = 0; k < 4; k++)
            same_reply(&expected[k], &got[k]);
        for (int k = 0; k < 4; k++) { /* the same again: near cuts and far ones, together */
            mica_generate_options g = reply_options(&got[k]);
            assert_int_equal(mica_batch_submit(members[k], tokens, (size_t)lengths[3 - k], &g, &err), MICA_OK);
        }
        while (mica_batch_step(batch) > 0)
            ;
        for (int k = 0; k < 4; k++)
            same_reply(&expected[3 - k], &got[k]);
        mica_batch_free(batch);
        mica_session_free(whole);
        mica_model_close(model);
    }
}

/* The context overflows while the ring has wrapped: half of it is dropped and computed anew. */
static void test_shift(void **state)
{
    (void)state;
    static int32_t tokens[N];
    reply got[2];
    mica_error err;
    mica_model *model = open_variant(0);
    some_tokens(tokens, N, 12);
    for (int i = 0; i < 2; i++) {
        mica_session_options o = mica_session_options_default();
        mica_session *s;
        o.n_ctx = 800;
        o.prefill_chunk = i ? 64 : 800;
        o.full_policy = MICA_FULL_SHIFT;
        o.keep_first = 5;
        assert_int_equal(mica_session_new(model, &o, &s, &err), MICA_OK);
        assert_int_equal(s->kv.slots[MICA_KV_WINDOWED], i ? 512 : 800);
        sync_to(s, tokens, 760);
        generate(s, &got[i], MICA_SPECULATE_OFF);
        assert_true(s->n_tokens < 700);
        mica_session_free(s);
    }
    same_reply(&got[0], &got[1]);
    mica_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),          cmocka_unit_test(test_paths),       cmocka_unit_test(test_kv_types),
        cmocka_unit_test(test_cuts),           cmocka_unit_test(test_random_cuts), cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_snapshot_bytes), cmocka_unit_test(test_snapshot_of_nothing),
        cmocka_unit_test(test_speculation),    cmocka_unit_test(test_batch),       cmocka_unit_test(test_shift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
