/* test_sampler_stages.c - the stages of the sampler against naive versions, log-probabilities, and the promise that nothing is
 * allocated after mica_sampler_new().
 */
#include "sampler_testing.h"
#include "text/sampler_impl.h"

/* ---- Allocations are counted where the C library lets us ------------------------------------------------------------- */

#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static size_t allocations, allocated_bytes;

#if defined(__GLIBC__) && !SANITIZED
#define COUNTS_ALLOCATIONS 1
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
void *malloc(size_t n)
{
    allocations++;
    allocated_bytes += n;
    return __libc_malloc(n);
}
void *calloc(size_t count, size_t size)
{
    allocations++;
    allocated_bytes += count * size;
    return __libc_calloc(count, size);
}
void *realloc(void *p, size_t n)
{
    allocations++;
    allocated_bytes += n;
    return __libc_realloc(p, n);
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

/* ---- Stages against naive versions ----------------------------------------------------------------------------------- */

static void test_greedy_against_naive(void **state)
{
    (void)state;
    static float x[700];
    mica_rng rng;
    mica_rng_seed(&rng, 3);
    for (int round = 0; round < 600; round++) {
        int32_t n = 1 + (int32_t)(mica_rng_next(&rng) % 700), best = 0;
        random_logits(&rng, x, (size_t)n, 1.0, round % 2 ? 0.5 : 0.0); /* every other round has ties, and -0 beside 0 */
        for (int32_t i = 0; i < n; i++) {
            if (mica_rng_next(&rng) % 8 == 0)
                x[i] = -INFINITY;
            if (x[i] > x[best])
                best = i;
        }
        mica_sampler *s = make(n);
        start(s, greedy());
        if (x[best] == -INFINITY) {
            int32_t token;
            assert_int_equal(mica_sampler_pick(s, x, NULL, 0, &token, NULL), MICA_NON_FINITE);
        } else {
            assert_int_equal(pick(s, x), best);
        }
        mica_sampler_free(s);
    }
}

static void test_negative_zero_is_a_tie(void **state)
{
    (void)state;
    float x[300];
    for (int i = 0; i < 300; i++)
        x[i] = -1.0f;
    x[7] = -0.0f;
    x[200] = 0.0f;
    mica_sampler *s = make(300);
    start(s, greedy());
    assert_int_equal(pick(s, x), 7);
    x[7] = 0.0f;
    x[200] = -0.0f;
    assert_int_equal(pick(s, x), 7);
    mica_sampler_free(s);
}

static int by_rank(const void *a, const void *b)
{
    const mica_cand *p = a, *q = b;
    if (p->key != q->key)
        return p->key > q->key ? -1 : 1;
    return p->id < q->id ? -1 : p->id > q->id;
}

static void test_top_k_against_sort(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    static float x[MOST];
    static mica_cand sorted[MOST], got[MOST];
    int32_t block_max[MOST / MICA_BLOCK + 1];
    mica_rng rng;
    mica_rng_seed(&rng, 4);
    for (int round = 0; round < 400; round++) {
        size_t n = 1 + mica_rng_next(&rng) % MOST, k = 1 + mica_rng_next(&rng) % (round % 3 ? 40 : n), n_sorted = 0;
        random_logits(&rng, x, n, 3.0, round % 2 ? 0.25 : 0.0);
        if (round % 5 == 0) /* mostly banned, as under a grammar */
            for (size_t i = 0; i < n; i++)
                x[i] = mica_rng_next(&rng) % 50 ? -INFINITY : x[i];
        for (size_t i = 0; i < n; i++)
            if (x[i] != -INFINITY)
                sorted[n_sorted++] = (mica_cand){x[i], (int32_t)i};
        qsort(sorted, n_sorted, sizeof *sorted, by_rank);
        mica_scan scan;
        assert_int_equal(mica_scan_logits(x, n, block_max, &scan), n_sorted > 0);
        size_t n_got = mica_top_k(&scan, k, got);
        assert_int_equal(n_got, k < n_sorted ? k : n_sorted);
        for (size_t i = 0; i < n_got; i++)
            assert_int_equal(got[i].id, sorted[i].id);
    }
}

static void test_weight_accuracy(void **state)
{
    (void)state;
    mica_weights w;
    mica_weights_init(&w);
    for (int i = 0; i <= 1000000; i++) {
        double x = -64.0 * i / 1000000.0, got = mica_weight(&w, x), want = exp(x);
        assert_true(fabs(got - want) <= 1e-13 * want);
    }
    assert_true(mica_weight(&w, 0.0) == 1.0);
    assert_true(mica_weight(&w, -64.001) == 0.0 && mica_weight(&w, -1e300) == 0.0 && mica_weight(&w, -INFINITY) == 0.0);
}

static void naive_penalties(const mica_sampling *o, const int32_t *history, size_t n, float *x, int32_t n_vocab)
{
    size_t from = o->penalty_last_n < 0 || (size_t)o->penalty_last_n > n ? 0 : n - (size_t)o->penalty_last_n;
    for (int32_t id = 0; id < n_vocab; id++) {
        int count = 0;
        for (size_t i = from; i < n; i++)
            count += history[i] == id;
        if (count == 0)
            continue;
        double v = (double)x[id];
        v = v > 0 ? v / (double)o->repeat_penalty : v * (double)o->repeat_penalty;
        x[id] = (float)(v - (count * (double)o->frequency_penalty + (double)o->presence_penalty));
    }
}

static void test_penalties_against_naive(void **state)
{
    (void)state;
    enum { N = 50 };
    int32_t history[60], mark[N] = {0};
    const int32_t zero[N] = {0};
    float got[N], want[N];
    mica_rng rng;
    mica_rng_seed(&rng, 5);
    for (int round = 0; round < 2000; round++) {
        size_t n = mica_rng_next(&rng) % 60;
        mica_sampling o = plain();
        o.repeat_penalty = (float)(0.5 + mica_rng_unit(&rng));
        o.frequency_penalty = (float)(mica_rng_unit(&rng) * 4 - 2);
        o.presence_penalty = (float)(mica_rng_unit(&rng) * 4 - 2);
        o.penalty_last_n = (int32_t)(mica_rng_next(&rng) % 70) - 1;
        for (size_t i = 0; i < n; i++)
            history[i] = (int32_t)(mica_rng_next(&rng) % N);
        random_logits(&rng, got, N, 3.0, 0.0);
        memcpy(want, got, sizeof got);
        naive_penalties(&o, history, n, want, N);
        mica_penalties_apply(&o, history, n, mark, got);
        assert_memory_equal(got, want, sizeof got);
        assert_memory_equal(mark, zero, sizeof mark);
    }
}

/* Length of the longest match that `id` would extend: an earlier place i with that token, after the same tokens as the end. */
static int naive_match(const int32_t *h, size_t n, int32_t id)
{
    int best = 0;
    for (size_t i = 1; i < n; i++) {
        if (h[i] != id)
            continue;
        int length = 0;
        while ((size_t)length < i && h[i - 1 - (size_t)length] == h[n - 1 - (size_t)length])
            length++;
        best = length > best ? length : best;
    }
    return best;
}

static void test_dry_against_naive(void **state)
{
    (void)state;
    enum { N = 12 };
    int32_t history[80], mark[N] = {0}, z[80];
    const int32_t zero[N] = {0};
    float got[N], want[N];
    int touched = 0;
    mica_rng rng;
    mica_rng_seed(&rng, 6);
    for (int round = 0; round < 4000; round++) {
        size_t n = mica_rng_next(&rng) % 80, letters = 1 + mica_rng_next(&rng) % N;
        mica_sampling o = plain();
        o.dry_multiplier = 0.8f;
        o.dry_base = (float)(1.0 + mica_rng_unit(&rng));
        o.dry_allowed_length = (int32_t)(mica_rng_next(&rng) % 5);
        o.dry_last_n = (int32_t)(mica_rng_next(&rng) % 90) - 1;
        size_t window = o.dry_last_n < 0 || (size_t)o.dry_last_n > n ? n : (size_t)o.dry_last_n;
        for (size_t i = 0; i < n; i++)
            history[i] = (int32_t)(mica_rng_next(&rng) % letters);
        random_logits(&rng, got, N, 3.0, 0.0);
        memcpy(want, got, sizeof got);
        mica_dry_apply(&o, history, n, mark, z, got);
        for (int32_t id = 0; id < N; id++) {
            int length = naive_match(history + (n - window), window, id);
            bool hit = length > 0 && length >= o.dry_allowed_length;
            touched += hit;
            if (!hit) {
                assert_memory_equal(&got[id], &want[id], sizeof *got);
                continue;
            }
            double penalty = 0.8f * pow((double)o.dry_base, length - o.dry_allowed_length);
            assert_true(fabs((double)want[id] - penalty - (double)got[id]) <= 1e-6 * (penalty + 16.0));
        }
        assert_memory_equal(mark, zero, sizeof mark);
    }
    assert_true(touched > 4000);
}

/* A sequence that repeats: 1 2 3 4 ... 1 2 3 -> 4 has match length 3. */
static void test_dry_breaks_a_loop(void **state)
{
    (void)state;
    const int32_t history[] = {1, 2, 3, 4, 9, 1, 2, 3};
    float x[10] = {0};
    x[4] = 1.0f;
    x[5] = 0.5f;
    mica_sampler *s = make(10);
    mica_sampling o = greedy();
    o.dry_multiplier = 0.25f; /* 0.25 * 1.75^(3-2) = 0.4375 leaves 0.5625 */
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 8), 4);
    o.dry_multiplier = 0.3f; /* 0.525 leaves 0.475 */
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 8), 5);
    o.dry_allowed_length = 4;
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 8), 4);
    o.dry_allowed_length = 2;
    o.dry_last_n = 7; /* the window begins after the 1: length 2, penalty 0.3 */
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 8), 4);
    o.dry_last_n = 0;
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 8), 4);
    mica_sampler_free(s);
}

/* 4000 equal tokens: base^3998 is beyond any float, and yet nothing but a ban may make a logit infinite. */
static void test_penalties_stay_finite(void **state)
{
    (void)state;
    static int32_t history[4000];
    float x[4] = {-3e38f, -INFINITY, -INFINITY, -INFINITY};
    mica_sampler *s = make(4);
    mica_sampling o = plain();
    o.dry_multiplier = 3e38f;
    o.dry_base = 3e38f;
    o.repeat_penalty = 3e38f;
    o.frequency_penalty = 2.0f;
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 4000), 0);
    o.repeat_penalty = 1e-45f;
    x[0] = 3e38f;
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 4000), 0);
    mica_sampler_free(s);
}

/* ... and the other way round: penalties and biases do not repair what the model gave. */
static void test_edits_hide_nothing(void **state)
{
    (void)state;
    const int32_t history[] = {0, 1, 0};
    const mica_logit_bias bias = {1, 50.0f};
    const float bad[] = {-INFINITY, INFINITY, NAN};
    mica_sampler *s = make(3);
    mica_sampling o = greedy();
    o.repeat_penalty = 1.5f;
    o.presence_penalty = 1.0f;
    o.dry_multiplier = 1.0f;
    o.dry_allowed_length = 1;
    o.logit_bias = &bias;
    o.n_logit_bias = 1;
    start(s, o);
    for (int i = 0; i < 3; i++) {
        const float x[3] = {bad[i], bad[i], -INFINITY};
        int32_t token;
        assert_int_equal(mica_sampler_pick(s, x, history, 3, &token, NULL), MICA_NON_FINITE);
    }
    mica_sampler_free(s);
}

static void test_history_longer_than_context(void **state)
{
    (void)state;
    float x[4] = {2.0f, 1.0f, 1.5f, 0.0f};
    int32_t history[10] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1};
    mica_sampler *s;
    mica_error err;
    assert_int_equal(mica_sampler_new(4, 4, &s, &err), MICA_OK);
    mica_sampling o = greedy();
    o.presence_penalty = 2.0f;
    o.penalty_last_n = -1;
    o.dry_multiplier = 0.1f;
    start(s, o);
    assert_int_equal(pick_after(s, x, history, 10), 0); /* the zeros are beyond the context: else 2 would win */
    mica_sampler_free(s);
}

/* ---- Log-probabilities and memory ------------------------------------------------------------------------------------ */

static void test_top_logprobs(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float x[N];
    static mica_cand sorted[N];
    int32_t tokens[20];
    float logprobs[20], own;
    mica_rng rng;
    mica_rng_seed(&rng, 7);
    mica_sampler *s = make(N);
    mica_sampling o = plain(); /* options do not matter to it */
    o.temperature = 0.3f;
    o.top_k = 3;
    start(s, o);
    for (int round = 0; round < 50; round++) {
        random_logits(&rng, x, N, 4.0, round % 2 ? 0.5 : 0.0);
        long double mass = 0;
        for (int32_t i = 0; i < N; i++) {
            mass += expl((long double)x[i]);
            sorted[i] = (mica_cand){x[i], i};
        }
        qsort(sorted, N, sizeof *sorted, by_rank);
        mica_sampler_top_logprobs(s, x, 500, 20, tokens, logprobs, &own);
        assert_true(fabsl((long double)own - ((long double)x[500] - logl(mass))) < 1e-6L * (1 + fabsl((long double)own)));
        for (int i = 0; i < 20; i++) {
            assert_int_equal(tokens[i], sorted[i].id);
            long double want = (long double)sorted[i].key - logl(mass);
            assert_true(fabsl((long double)logprobs[i] - want) < 1e-6L * (1 + fabsl(want)));
        }
    }
    mica_sampler_free(s);
}

static void test_top_logprobs_edges(void **state)
{
    (void)state;
    const float x[3] = {-INFINITY, 1.0f, 1.0f}, broken[3] = {0.0f, NAN, 0.0f};
    int32_t tokens[5];
    float logprobs[5], own;
    mica_sampler *s = make(3);
    mica_sampler_top_logprobs(s, x, 0, 5, tokens, logprobs, &own);
    assert_true(own == -INFINITY);
    assert_int_equal(tokens[0], 1);
    assert_int_equal(tokens[1], 2);
    assert_true(fabsf(logprobs[0] - logf(0.5f)) < 1e-7f && logprobs[0] == logprobs[1]);
    for (int i = 2; i < 5; i++) {
        assert_int_equal(tokens[i], -1);
        assert_true(logprobs[i] == -INFINITY);
    }
    mica_sampler_top_logprobs(s, x, 1, 0, NULL, NULL, &own);
    assert_true(own == logprobs[0]);
    mica_sampler_top_logprobs(s, broken, 0, 2, tokens, logprobs, &own);
    assert_int_equal(tokens[0], -1);
    assert_true(own == -INFINITY);
    mica_sampler_free(s);
}

static void test_no_allocation_after_new(void **state)
{
    (void)state;
    if (!COUNTS_ALLOCATIONS)
        skip(); /* the sanitizer owns malloc */
    static float x[5000];
    static int32_t history[3000];
    const mica_logit_bias bias = {4, -1.0f};
    int32_t tokens[20];
    float logprobs[20], own;
    mica_rng rng;
    mica_rng_seed(&rng, 8);
    random_logits(&rng, x, 5000, 3.0, 0.0);
    allocated_bytes = 0;
    mica_sampler *s = make(5000);
    assert_true(allocated_bytes == mica_sampler_bytes(5000, 4096));
    size_t before = allocations;
    for (int i = 0; i < 32; i++) {
        mica_sampling o = plain();
        o.top_k = i & 1 ? 40 : 0;
        o.typical_p = i & 2 ? 0.9f : 1.0f;
        o.top_p = i & 4 ? 0.9f : 1.0f;
        o.min_p = i & 8 ? 0.05f : 0.0f;
        o.dry_multiplier = o.presence_penalty = i & 16 ? 1.0f : 0.0f;
        o.logit_bias = &bias;
        o.n_logit_bias = i & 16 ? 1 : 0;
        start(s, o);
        pick_after(s, x, history, 3000);
        mica_sampler_top_logprobs(s, x, 3, 20, tokens, logprobs, &own);
    }
    assert_int_equal(allocations, before);
    mica_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_against_naive),
        cmocka_unit_test(test_negative_zero_is_a_tie),
        cmocka_unit_test(test_top_k_against_sort),
        cmocka_unit_test(test_weight_accuracy),
        cmocka_unit_test(test_penalties_against_naive),
        cmocka_unit_test(test_dry_against_naive),
        cmocka_unit_test(test_dry_breaks_a_loop),
        cmocka_unit_test(test_penalties_stay_finite),
        cmocka_unit_test(test_edits_hide_nothing),
        cmocka_unit_test(test_history_longer_than_context),
        cmocka_unit_test(test_top_logprobs),
        cmocka_unit_test(test_top_logprobs_edges),
        cmocka_unit_test(test_no_allocation_after_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
