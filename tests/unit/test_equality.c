/* The invariant of docs/numerics.md, end to end: a hash of all logits is the same for every number of threads, prefill chunk,
 * kernel set, and whether a prefix came from the cache, for every architecture and weight type. */
#include <unistd.h>

#include "kern/kern.h"
#include "model_util.h"
#include "random_model.h"

static int hash_row(void *user, size_t position, const float *logits)
{
    uint64_t *h = user;
    (void)position;
    *h = hash_bytes(*h, logits, 288 * sizeof *logits);
    return 0;
}

/* Hash of the logits of all positions. */
static uint64_t score_hash(mica_session *s, const int32_t *tokens, size_t n)
{
    uint64_t h = 0xCBF29CE484222325ull;
    mica_error err;
    if (mica_session_score(s, tokens, n, 0, hash_row, &h, &err))
        fail_msg("%s", err.message);
    return h;
}

/* The same hash, token by token: decode instead of prefill. */
static uint64_t decode_hash(mica_session *s, const int32_t *tokens, size_t n)
{
    uint64_t h = 0xCBF29CE484222325ull;
    mica_error err;
    for (size_t i = 1; i <= n; i++) {
        if (mica_session_sync(s, tokens, i, &err))
            fail_msg("%s", err.message);
        h = hash_bytes(h, mica_session_logits(s), 288 * sizeof(float));
    }
    return h;
}

/* Hash of the last logits only, after a prefill with the session's chunk. */
static uint64_t last_hash(mica_session *s, const int32_t *tokens, size_t n)
{
    mica_error err;
    if (mica_session_sync(s, tokens, n, &err))
        fail_msg("%s", err.message);
    return hash_bytes(0, mica_session_logits(s), 288 * sizeof(float));
}

static void check_session(mica_model *model, const int32_t *tokens, size_t n, int threads, int chunk, uint64_t all, uint64_t last,
                          const char *name)
{
    int32_t other[200];
    mica_session *s = open_session(model, 200, threads, chunk);
    memcpy(other, tokens, n * sizeof *tokens);
    other[n / 2] ^= 1;
    if (last_hash(s, tokens, n) != last)
        fail_msg("%s: prefill with %d threads, chunk %d differs", name, threads, chunk);
    last_hash(s, other, n); /* another history with a common prefix, and back: half comes from the cache */
    if (last_hash(s, tokens, n) != last)
        fail_msg("%s: a cached prefix changes the logits with %d threads, chunk %d", name, threads, chunk);
    if (chunk == 7) {
        if (score_hash(s, tokens, n) != all)
            fail_msg("%s: scoring with %d threads differs", name, threads);
        last_hash(s, other, 1);
        if (decode_hash(s, tokens, n) != all)
            fail_msg("%s: decode with %d threads differs from prefill", name, threads);
    }
    mica_session_free(s);
}

static void check_model(const char *path, const char *name, int n)
{
    static const int threads[] = {1, 2, 3, 8}, chunks[] = {1, 7, 64, 512};
    int32_t tokens[150];
    uint64_t all = 0, last = 0;
    for (int i = 0; i < n; i++)
        tokens[i] = 3 + (i * 7919 + i * i * 31) % 280;
    for (size_t k = 0; k < mica_isa_count(); k++) {
        if (!mica_isa_at(k)->supported())
            continue;
        mica_model *model = open_model(path, mica_isa_at(k)->name);
        if (k == 0) { /* the portable kernels, one thread, are the definition */
            mica_session *s = open_session(model, 200, 1, 64);
            all = score_hash(s, tokens, (size_t)n);
            last = last_hash(s, tokens, (size_t)n);
            mica_session_free(s);
        }
        for (int t = 0; t < 4; t++)
            for (int c = 0; c < 4; c++)
                if (k > 0 || (t + c) % 4 == 1) /* the portable kernels are slow: each value once */
                    check_session(model, tokens, (size_t)n, threads[t], chunks[c], all, last, name);
        mica_model_close(model);
    }
    print_message("%s: %016llx\n", name, (unsigned long long)all);
}

static void test_architectures(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3-longrope"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[i]);
        check_model(path, names[i], 100);
    }
}

static void test_weight_types(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < MICA_TYPE_COUNT; type++) {
        char path[] = "/tmp/mica-equality-XXXXXX";
        if (!mica_quant_of(type))
            continue;
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        assert_true(write_random_model(path, (mica_type)type));
        check_model(path, mica_quant_of(type)->name, 70);
        unlink(path);
    }
}

static mica_session *open_kv_session(mica_model *model, int threads, int chunk, mica_kv_type k, mica_kv_type v)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s = NULL;
    mica_error err;
    o.n_ctx = 200;
    o.n_threads = threads;
    o.prefill_chunk = chunk;
    o.kv_k = k;
    o.kv_v = v;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

/* Each cache type has its own logits, the same on every path. */
static void test_cache_types(void **state)
{
    (void)state;
    int32_t tokens[150];
    char path[] = "/tmp/mica-equality-XXXXXX";
    uint64_t hashes[3][3] = {{0}};
    close(mkstemp(path));
    assert_true(write_random_model(path, MICA_TYPE_Q8_0));
    for (int i = 0; i < 150; i++)
        tokens[i] = 3 + (i * 7919 + i * i * 31) % 280;
    for (size_t set = 0; set < mica_isa_count(); set++) {
        if (!mica_isa_at(set)->supported())
            continue;
        mica_model *model = open_model(path, mica_isa_at(set)->name);
        for (int i = 0; i < 9 * 3; i++) {
            int k = i % 3, v = i / 3 % 3, variant = i / 9;
            mica_session *s = open_kv_session(model, 1 + variant, variant == 0 ? 64 : variant == 1 ? 7 : 200, (mica_kv_type)k, (mica_kv_type)v);
            uint64_t h = variant == 2 ? decode_hash(s, tokens, 150) : score_hash(s, tokens, 150);
            hashes[k][v] = hashes[k][v] ? hashes[k][v] : h;
            if (h != hashes[k][v])
                fail_msg("keys %d, values %d: %s differs in variant %d", k, v, mica_isa_at(set)->name, variant);
            mica_session_free(s);
        }
        mica_model_close(model);
    }
    for (int i = 1; i < 9; i++)
        assert_true(hashes[i % 3][i / 3] != hashes[0][0]);
    unlink(path);
}

/* Beyond 512 positions attention is computed in groups: with one thread as with many, in prefill and in decode. */
static void test_long_context(void **state)
{
    (void)state;
    static int32_t tokens[1300];
    static const char *const names[] = {"llama", "gemma3"};
    for (int i = 0; i < 1300; i++)
        tokens[i] = 3 + (i * 7919 + i * i * 31) % 280;
    for (size_t m = 0; m < 2; m++) {
        char path[512];
        snprintf(path, sizeof path, MICA_TEST_DATA "/tiny/%s.gguf", names[m]);
        mica_model *model = open_model(path, NULL);
        uint64_t first = 0;
        for (int threads = 1; threads <= 3; threads++) {
            for (int chunk = 5; chunk <= 605; chunk += 300) {
                mica_session *s = open_session(model, 1310, threads, chunk);
                uint64_t h = last_hash(s, tokens, 1298);
                for (size_t n = 1299; n <= 1300; n++)
                    h = hash_bytes(h, &(uint64_t){last_hash(s, tokens, n)}, sizeof h);
                first = first ? first : h;
                if (h != first)
                    fail_msg("%s: %d threads, chunk %d differ at 1300 tokens", names[m], threads, chunk);
                mica_session_free(s);
            }
        }
        mica_model_close(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_architectures), cmocka_unit_test(test_weight_types),
                                       cmocka_unit_test(test_long_context), cmocka_unit_test(test_cache_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
