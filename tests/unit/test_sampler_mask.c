/* Masks: a masked pick is the pick from logits in which all other tokens are impossible, with every stage and at any
 * density. */
#include "sampler_testing.h"

enum { N = 1000, WORDS = (N + 31) / 32 };

static bool allowed(const uint32_t *mask, int32_t i) { return mask[i / 32] >> i % 32 & 1; }

/* About one token of `sparse` is allowed, at least one; none beyond the vocabulary. */
static void random_mask(mica_rng *rng, uint32_t mask[WORDS], int sparse)
{
    memset(mask, 0, WORDS * sizeof *mask);
    for (int32_t i = 0; i < N; i++)
        if (mica_rng_unit(rng) * sparse < 1.0)
            mask[i / 32] |= 1u << i % 32;
    int32_t sure = (int32_t)(mica_rng_unit(rng) * N);
    mask[sure / 32] |= 1u << sure % 32;
}

static int32_t pick_masked(mica_sampler *s, const float *logits, const uint32_t *mask, const int32_t *history, size_t n)
{
    int32_t token = -1;
    mica_error err = {.message = ""};
    if (mica_sampler_pick_masked(s, logits, mask, history, n, &token, &err))
        fail_msg("%s", err.message);
    return token;
}

static mica_sampling options_of(int i)
{
    mica_sampling o = i % 4 == 0 ? greedy() : plain();
    o.top_k = i % 3 == 1 ? 1 + i % 50 : 0;
    o.top_p = i % 5 == 2 ? 0.7f : 1.0f;
    o.min_p = i % 7 == 3 ? 0.1f : 0.0f;
    o.typical_p = i % 11 == 5 ? 0.6f : 1.0f;
    o.repeat_penalty = i % 2 ? 1.3f : 1.0f;
    o.dry_multiplier = i % 6 == 1 ? 0.8f : 0.0f;
    o.seed = i;
    return o;
}

static void test_like_infinite_logits(void **state)
{
    (void)state;
    static float x[N], masked[N];
    uint32_t mask[WORDS];
    int32_t history[60];
    mica_rng rng;
    mica_rng_seed(&rng, 7);
    mica_sampler *a = make(N), *b = make(N);
    for (int i = 0; i < 600; i++) {
        mica_sampling o = options_of(i);
        mica_logit_bias bias[2] = {{.token = i % N, .bias = 3.0f}, {.token = (i * 7) % N, .bias = -2.0f}};
        o.logit_bias = bias;
        o.n_logit_bias = i % 3 == 0 ? 2 : 0;
        random_logits(&rng, x, N, 3.0, i % 2 ? 0.5 : 0.0);
        random_mask(&rng, mask, 1 << i % 9);
        for (int k = 0; k < 60; k++)
            history[k] = (k * k * 13 + i) % (N / 2);
        for (int32_t k = 0; k < N; k++)
            masked[k] = allowed(mask, k) ? x[k] : -INFINITY;
        start(a, o);
        start(b, o);
        for (int k = 0; k < 4; k++) { /* further draws: the generators stay in step */
            int32_t want = pick_after(a, masked, history, 60), got = pick_masked(b, x, mask, history, 60);
            assert_true(allowed(mask, got));
            assert_int_equal(got, want);
        }
    }
    mica_sampler_free(a);
    mica_sampler_free(b);
}

static void test_ties_and_full_mask(void **state)
{
    (void)state;
    static float x[N];
    uint32_t mask[WORDS];
    mica_sampler *s = make(N);
    start(s, greedy());
    memset(mask, 0, sizeof mask);
    mask[3] = 0xFFFFFFFF;
    mask[20] = 0x10;
    assert_int_equal(pick_masked(s, x, mask, NULL, 0), 96); /* all logits are 0 */
    x[644] = 1.0f;
    assert_int_equal(pick_masked(s, x, mask, NULL, 0), 644);
    x[645] = 2.0f; /* not allowed */
    assert_int_equal(pick_masked(s, x, mask, NULL, 0), 644);
    assert_int_equal(pick_masked(s, x, NULL, NULL, 0), 645);
    mica_sampler_free(s);
}

static void expect_failure(mica_sampler *s, const float *x, const uint32_t *mask, mica_status code, const char *says)
{
    int32_t token;
    mica_error err;
    assert_int_equal(mica_sampler_pick_masked(s, x, mask, NULL, 0, &token, &err), code);
    assert_non_null(strstr(err.message, says));
}

static void test_failures(void **state)
{
    (void)state;
    static float x[N];
    uint32_t mask[WORDS] = {0};
    mica_sampler *s = make(N);
    mica_sampling o = greedy();
    mica_logit_bias ban = {.token = 40, .bias = -INFINITY};
    start(s, o);
    expect_failure(s, x, mask, MICA_INVALID_ARGUMENT, "no token of this vocabulary");
    mask[1] = 1u << 8; /* token 40 */
    x[40] = -INFINITY;
    expect_failure(s, x, mask, MICA_NON_FINITE, "the constraint allows");
    x[40] = NAN;
    expect_failure(s, x, mask, MICA_NON_FINITE, "token 40");
    x[40] = 0.0f;
    assert_int_equal(pick_masked(s, x, mask, NULL, 0), 40);
    o.logit_bias = &ban;
    o.n_logit_bias = 1;
    start(s, o);
    expect_failure(s, x, mask, MICA_INVALID_ARGUMENT, "logit_bias");
    mask[1] |= 1u << 9;
    assert_int_equal(pick_masked(s, x, mask, NULL, 0), 41);
    mica_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_infinite_logits), cmocka_unit_test(test_ties_and_full_mask),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
