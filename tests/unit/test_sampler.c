/* test_sampler.c - behaviour: options, edges, seeds, errors. Ids such as smp_02 name the cases of well-known engine faults that
 * a test covers. test_sampler_stages.c compares the stages with naive versions, test_sampler_draws.c has the statistics.
 */
#include "sampler_testing.h"

/* ---- Helpers --------------------------------------------------------------------------------------------------------- */

enum { P1 = 101, P2 = 102, P3 = 103, D_VOCAB = 374 };

/* The next token after the prompt "D" of the scripted model: p1 0.6, p2 0.3, p3 0.1, the rest together below 1e-9. */
static void logits_d(float *x)
{
    memset(x, 0, D_VOCAB * sizeof *x);
    x[P1] = 30.0f + (float)log(0.6);
    x[P2] = 30.0f + (float)log(0.3);
    x[P3] = 30.0f + (float)log(0.1);
}

/* Shares of p1, p2, p3 in the first draw over seeds 0..199. */
static void shares_d(mica_sampling o, double share[3])
{
    float x[D_VOCAB];
    int count[3] = {0, 0, 0};
    logits_d(x);
    mica_sampler *s = make(D_VOCAB);
    for (o.seed = 0; o.seed < 200; o.seed++) {
        start(s, o);
        int32_t t = pick(s, x);
        assert_in_range(t, P1, P3);
        count[t - P1]++;
    }
    for (int i = 0; i < 3; i++)
        share[i] = count[i] / 200.0;
    mica_sampler_free(s);
}

/* ---- Cases ----------------------------------------------------------------------------------------------------------- */

static void test_smp_01_temperature_zero(void **state)
{
    (void)state;
    float x[D_VOCAB];
    logits_d(x);
    mica_sampler *s = make(D_VOCAB);
    const float cold[] = {0.0f, -0.0f, 1e-45f, 1e-30f, 1e-7f};
    for (size_t i = 0; i < sizeof cold / sizeof *cold; i++) {
        mica_sampling o = plain();
        o.temperature = cold[i];
        for (o.seed = 0; o.seed < 20; o.seed++) {
            start(s, o);
            assert_int_equal(pick(s, x), P1);
        }
    }
    x[P3] = x[P1]; /* and a tie is no draw */
    mica_sampling o = plain();
    o.temperature = 1e-30f;
    for (o.seed = 0; o.seed < 20; o.seed++) {
        start(s, o);
        assert_int_equal(pick(s, x), P1);
    }
    mica_sampler_free(s);
}

static void test_smp_02_top_p_edges(void **state)
{
    (void)state;
    double share[3];
    mica_sampling o = plain();
    const float only_best[] = {0.0f, 0.59f};
    for (int i = 0; i < 2; i++) {
        o.top_p = only_best[i];
        shares_d(o, share);
        assert_true(share[0] == 1.0);
    }
    o.top_p = 0.61f;
    shares_d(o, share);
    assert_true(share[2] == 0.0);
    assert_true(fabs(share[1] - 1.0 / 3.0) < 0.11);
    o.top_p = 1.0f;
    shares_d(o, share);
    assert_true(fabs(share[0] - 0.6) < 0.11 && fabs(share[1] - 0.3) < 0.10 && fabs(share[2] - 0.1) < 0.07);
    o.top_k = 40; /* the same edges through the top-k path */
    o.top_p = 0.59f;
    shares_d(o, share);
    assert_true(share[0] == 1.0);
    o.top_p = 0.61f;
    shares_d(o, share);
    assert_true(share[2] == 0.0 && share[1] > 0.2);
}

static void test_smp_04_seed(void **state)
{
    (void)state;
    float x[D_VOCAB];
    logits_d(x);
    mica_sampler *a = make(D_VOCAB), *b = make(D_VOCAB);
    int32_t draws[9][16];
    mica_sampling o = plain();
    for (o.seed = 0; o.seed <= 8; o.seed++) {
        start(a, o);
        for (int i = 0; i < 16; i++)
            draws[o.seed][i] = pick(a, x);
    }
    for (o.seed = 8; o.seed >= 0; o.seed--) { /* in reverse, with another reply in between each pair of draws */
        mica_sampling other = o;
        other.seed = 4294967295;
        start(a, o);
        start(b, other);
        for (int i = 0; i < 16; i++) {
            assert_int_equal(pick(a, x), draws[o.seed][i]);
            pick(b, x);
        }
    }
    int differ_from_1 = 0, differ_from_0 = 0;
    for (int seed = 1; seed <= 8; seed++) {
        differ_from_1 += draws[seed][0] != draws[1][0];
        differ_from_0 += memcmp(draws[seed], draws[0], sizeof draws[0]) != 0;
    }
    assert_true(differ_from_1 > 0);
    assert_int_equal(differ_from_0, 8);
    mica_sampler_free(a);
    mica_sampler_free(b);
}

static void test_smp_04_fresh_seed_is_reported(void **state)
{
    (void)state;
    float x[D_VOCAB];
    logits_d(x);
    mica_sampler *s = make(D_VOCAB);
    mica_error err;
    mica_sampling o = plain();
    int64_t first, second, again;
    int32_t draws[32];
    o.seed = -1;
    assert_int_equal(mica_sampler_start(s, &o, &first, &err), MICA_OK);
    for (int i = 0; i < 32; i++)
        draws[i] = pick(s, x);
    assert_int_equal(mica_sampler_start(s, &o, &second, &err), MICA_OK);
    assert_true(first >= 0 && second >= 0 && first != second);
    o.seed = first;
    assert_int_equal(mica_sampler_start(s, &o, &again, &err), MICA_OK);
    assert_true(again == first);
    for (int i = 0; i < 32; i++)
        assert_int_equal(pick(s, x), draws[i]);
    o.seed = 0; /* zero is a seed like any other, not "none" */
    assert_int_equal(mica_sampler_start(s, &o, &again, &err), MICA_OK);
    assert_true(again == 0);
    mica_sampler_free(s);
}

static int32_t greedy_with_bias(mica_sampler *s, const float *x, mica_logit_bias a, mica_logit_bias b)
{
    const mica_logit_bias both[2] = {a, b};
    mica_sampling o = greedy();
    o.logit_bias = both;
    o.n_logit_bias = 2;
    start(s, o);
    return pick(s, x);
}

static void test_smp_05_logit_bias(void **state)
{
    (void)state;
    float x[D_VOCAB], copy[D_VOCAB];
    const mica_logit_bias none = {0, 0.0f};
    logits_d(x);
    memcpy(copy, x, sizeof x);
    mica_sampler *s = make(D_VOCAB);
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P1, -100.0f}, none), P2);
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P3, 100.0f}, none), P3);
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P2, 0.70f}, none), P2); /* 0.3 e^0.70 > 0.6 */
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P2, 0.68f}, none), P1); /* 0.3 e^0.68 < 0.6 */
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P1, -INFINITY}, none), P2);
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P1, -INFINITY}, (mica_logit_bias){P2, -INFINITY}), P3);
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P2, 0.4f}, (mica_logit_bias){P2, 0.4f}), P2); /* they add up */
    assert_int_equal(greedy_with_bias(s, x, (mica_logit_bias){P1, 3e38f}, (mica_logit_bias){P1, 3e38f}), P1); /* no overflow */
    assert_memory_equal(x, copy, sizeof x);
    double share[3];
    const mica_logit_bias ban = {P1, -INFINITY};
    mica_sampling o = plain();
    o.logit_bias = &ban;
    o.n_logit_bias = 1;
    shares_d(o, share);
    assert_true(share[0] == 0.0 && fabs(share[1] - 0.75) < 0.1);
    mica_sampler_free(s);
}

static void expect_non_finite(mica_sampler *s, mica_sampling o, const float *x, const char *words)
{
    mica_error err = {.message = ""};
    int32_t token = -7;
    start(s, o);
    assert_int_equal(mica_sampler_pick(s, x, NULL, 0, &token, &err), MICA_NON_FINITE);
    assert_int_equal(token, -7);
    assert_int_equal(err.code, MICA_NON_FINITE);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static void test_smp_07_non_finite_logits(void **state)
{
    (void)state;
    mica_sampler *s = make(D_VOCAB);
    mica_sampling modes[2] = {greedy(), plain()};
    for (int mode = 0; mode < 2; mode++) {
        const float bad[] = {NAN, -NAN, INFINITY};
        const size_t where[] = {0, 127, 128, 300, D_VOCAB - 1};
        float x[D_VOCAB];
        for (size_t i = 0; i < 3; i++) {
            for (size_t j = 0; j < 5; j++) {
                logits_d(x);
                x[where[j]] = bad[i];
                char words[32];
                snprintf(words, sizeof words, "token %zu:", where[j]);
                expect_non_finite(s, modes[mode], x, words);
            }
            for (size_t j = 0; j < D_VOCAB; j++)
                x[j] = bad[i];
            expect_non_finite(s, modes[mode], x, "token 0:");
        }
        for (size_t j = 0; j < D_VOCAB; j++)
            x[j] = -INFINITY;
        expect_non_finite(s, modes[mode], x, "all 374 logits are -inf");
        x[200] = -1e30f; /* -inf means banned: one finite logit is enough */
        start(s, modes[mode]);
        assert_int_equal(pick(s, x), 200);
    }
    mica_sampler_free(s);
}

static void test_smp_07_everything_banned(void **state)
{
    (void)state;
    mica_sampler *s = make(3);
    const mica_logit_bias bans[3] = {{0, -INFINITY}, {1, -INFINITY}, {2, -INFINITY}};
    float x[3] = {1.0f, 2.0f, -INFINITY};
    mica_sampling o = greedy();
    o.logit_bias = bans;
    o.n_logit_bias = 2;
    expect_non_finite(s, o, x, "logit_bias bans every token");
    o.n_logit_bias = 3;
    x[1] = NAN; /* a ban does not hide that the model is broken */
    expect_non_finite(s, o, x, "token 1:");
    x[1] = INFINITY;
    expect_non_finite(s, o, x, "token 1:");
    mica_sampler_free(s);
}

/* Six greedy tokens of a model in which x follows x for ever: logit `logit`, all others 0. */
static void run_x(mica_sampling o, float logit, char out[7])
{
    enum { X = 50, N = 64 };
    float x[N] = {0};
    int32_t history[8];
    x[X] = logit;
    o.temperature = 0.0f;
    mica_sampler *s = make(N);
    start(s, o);
    for (size_t n = 0; n < 6; n++) {
        history[n] = pick_after(s, x, history, n);
        out[n] = history[n] == X ? 'x' : '.';
    }
    out[6] = 0;
    mica_sampler_free(s);
}

/* With ranges as OpenAI's: where the case uses 20 and 50 at logit 30, 2 at logits 3 and 1.5 have the same closed form. */
static void test_smp_09_penalties(void **state)
{
    (void)state;
    char out[7];
    mica_sampling o = plain();
    run_x(o, 30.0f, out);
    assert_string_equal(out, "xxxxxx"); /* defaults penalise nothing */
    o.repeat_penalty = 1e6f;
    run_x(o, 30.0f, out);
    assert_string_equal(out, "xxxxxx"); /* 30/1e6 is still above 0 */
    run_x(o, 0.0f, out);
    assert_string_equal(out, "......");
    o = plain();
    o.frequency_penalty = 2.0f;
    run_x(o, 3.0f, out);
    assert_memory_equal(out, "xx.", 3); /* 3-2 > 0, 3-4 < 0 */
    o.penalty_last_n = 0;
    run_x(o, 3.0f, out);
    assert_string_equal(out, "xxxxxx"); /* window 0 switches penalties off */
    o.penalty_last_n = 1;
    run_x(o, 3.0f, out);
    assert_string_equal(out, "xxxxxx"); /* one occurrence in the window costs 2 at most */
    o = plain();
    o.presence_penalty = 2.0f;
    run_x(o, 1.5f, out);
    assert_memory_equal(out, "x.", 2);
    run_x(o, 2.5f, out);
    assert_string_equal(out, "xxxxxx"); /* presence counts once */
}

/* ---- Options --------------------------------------------------------------------------------------------------------- */

static void expect_refused(mica_sampler *s, mica_sampling o, const char *field, const char *value, const char *range)
{
    mica_error err = {.message = ""};
    int64_t seed = -5;
    assert_int_equal(mica_sampler_start(s, &o, &seed, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(err.code, MICA_INVALID_ARGUMENT);
    assert_true(seed == -5);
    if (!strstr(err.message, field) || !strstr(err.message, value) || !strstr(err.message, range))
        fail_msg("'%s' lacks '%s', '%s' or '%s'", err.message, field, value, range);
    assert_int_equal(mica_sampler_start(s, &o, NULL, NULL), MICA_INVALID_ARGUMENT);
}

#define REFUSE(FIELD, VALUE, SHOWN, RANGE)                 \
    do {                                                   \
        mica_sampling changed = plain();                   \
        changed.FIELD = VALUE;                             \
        expect_refused(s, changed, #FIELD, SHOWN, RANGE);  \
    } while (0)

static void test_smp_10_out_of_range(void **state)
{
    (void)state;
    mica_sampler *s = make(D_VOCAB);
    REFUSE(temperature, -1.0f, "is -1", "at least 0");
    REFUSE(temperature, NAN, "nan", "finite");
    REFUSE(temperature, INFINITY, "is inf", "finite"); /* what 3.5e38 becomes */
    REFUSE(top_k, -3, "is -3", "at least 0");
    REFUSE(top_p, -0.1f, "is -0.1", "[0, 1]");
    REFUSE(top_p, 1.5f, "is 1.5", "[0, 1]");
    REFUSE(top_p, NAN, "nan", "[0, 1]");
    REFUSE(min_p, 2.0f, "is 2", "[0, 1]");
    REFUSE(min_p, -1e-9f, "is -1e-09", "[0, 1]");
    REFUSE(min_p, NAN, "nan", "[0, 1]");
    REFUSE(typical_p, 0.0f, "is 0", "above 0");
    REFUSE(typical_p, -0.5f, "is -0.5", "above 0");
    REFUSE(typical_p, 1.01f, "is 1.01", "at most 1");
    REFUSE(typical_p, NAN, "nan", "above 0");
    REFUSE(repeat_penalty, 0.0f, "is 0", "above 0");
    REFUSE(repeat_penalty, -1.0f, "is -1", "above 0");
    REFUSE(repeat_penalty, INFINITY, "is inf", "finite");
    REFUSE(repeat_penalty, NAN, "nan", "above 0");
    REFUSE(frequency_penalty, 2.1f, "is 2.1", "[-2, 2]");
    REFUSE(frequency_penalty, -20.0f, "is -20", "[-2, 2]");
    REFUSE(frequency_penalty, NAN, "nan", "[-2, 2]");
    REFUSE(presence_penalty, 50.0f, "is 50", "[-2, 2]");
    REFUSE(presence_penalty, -2.5f, "is -2.5", "[-2, 2]");
    REFUSE(presence_penalty, NAN, "nan", "[-2, 2]");
    REFUSE(penalty_last_n, -2, "is -2", "-1");
    REFUSE(dry_multiplier, -1.0f, "is -1", "at least 0");
    REFUSE(dry_multiplier, NAN, "nan", "at least 0");
    REFUSE(dry_base, 0.99f, "is 0.99", "at least 1");
    REFUSE(dry_base, INFINITY, "is inf", "finite");
    REFUSE(dry_allowed_length, -1, "is -1", "at least 0");
    REFUSE(dry_last_n, -2, "is -2", "-1");
    REFUSE(seed, -2, "is -2", "at least 0");
    REFUSE(seed, INT64_MIN, "is -9223372036854775808", "at least 0");
    mica_sampler_free(s);
}

static void test_smp_10_bad_bias(void **state)
{
    (void)state;
    static mica_logit_bias many[MICA_SAMPLER_MAX_BIAS + 1];
    mica_sampler *s = make(D_VOCAB);
    const struct {
        mica_logit_bias bias;
        const char *value, *range;
    } rows[] = {
        {{99999999, -100.0f}, "99999999", "[0, 373]"}, {{374, 1.0f}, "374", "[0, 373]"}, {{-1, 5.0f}, "-1", "[0, 373]"},
        {{P1, NAN}, "nan", "finite"},                  {{P1, INFINITY}, "inf", "finite"},
    };
    mica_sampling o = plain();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        many[1] = rows[i].bias;
        o.logit_bias = many;
        o.n_logit_bias = 2;
        expect_refused(s, o, "logit_bias entry 1", rows[i].value, rows[i].range);
    }
    many[1] = (mica_logit_bias){0, 0.0f};
    o.n_logit_bias = MICA_SAMPLER_MAX_BIAS + 1;
    expect_refused(s, o, "logit_bias", "4097", "at most 4096");
    o.n_logit_bias = MICA_SAMPLER_MAX_BIAS;
    start(s, o);
    o.logit_bias = NULL;
    expect_refused(s, o, "logit_bias", "NULL", "must be 0");
    mica_sampler_free(s);
}

#define ACCEPT(FIELD, VALUE)                               \
    do {                                                   \
        mica_sampling changed = plain();                   \
        changed.FIELD = VALUE;                             \
        start(s, changed);                                 \
        assert_in_range(pick_after(s, x, history, 40), P1, P3); \
    } while (0)

static void test_limits_are_inside(void **state)
{
    (void)state;
    float x[D_VOCAB];
    int32_t history[40];
    logits_d(x);
    for (int i = 0; i < 40; i++)
        history[i] = i % 3;
    mica_sampler *s = make(D_VOCAB);
    ACCEPT(temperature, 1.1e-6f);
    ACCEPT(top_k, 1);
    ACCEPT(top_k, INT32_MAX);
    ACCEPT(top_p, 0.0f);
    ACCEPT(top_p, 0x1.fffffep-1f);
    ACCEPT(top_p, 1e-45f);
    ACCEPT(min_p, 1.0f);
    ACCEPT(min_p, 1e-4f);
    ACCEPT(typical_p, 0.99f);
    ACCEPT(typical_p, 1e-45f);
    ACCEPT(repeat_penalty, 3.4e38f);
    ACCEPT(repeat_penalty, 1e-45f);
    ACCEPT(frequency_penalty, 2.0f);
    ACCEPT(presence_penalty, 2.0f);
    ACCEPT(penalty_last_n, -1);
    ACCEPT(penalty_last_n, INT32_MAX);
    ACCEPT(dry_multiplier, 3.4e38f);
    ACCEPT(dry_base, 1.0f);
    ACCEPT(dry_allowed_length, INT32_MAX);
    ACCEPT(dry_last_n, 0);
    ACCEPT(seed, INT64_MAX);
    mica_sampling o = plain();
    o.temperature = 3.4e38f; /* all tokens alike */
    start(s, o);
    int outside = 0;
    for (int i = 0; i < 20; i++) {
        int32_t t = pick(s, x);
        outside += t < P1 || t > P3;
    }
    assert_true(outside > 10);
    mica_sampler_free(s);
}

static void test_refused_start_changes_nothing(void **state)
{
    (void)state;
    float x[D_VOCAB];
    logits_d(x);
    mica_sampler *a = make(D_VOCAB), *b = make(D_VOCAB);
    mica_sampling bad = greedy();
    bad.top_p = 7.0f;
    start(a, plain());
    start(b, plain());
    for (int i = 0; i < 50; i++) {
        mica_sampler_start(a, &bad, NULL, NULL);
        assert_int_equal(pick(a, x), pick(b, x));
    }
    mica_sampler_free(a);
    mica_sampler_free(b);
}

static void test_bad_sizes_and_history(void **state)
{
    (void)state;
    mica_sampler *s = NULL;
    mica_error err;
    assert_int_equal(mica_sampler_new(0, 16, &s, &err), MICA_INVALID_ARGUMENT);
    assert_null(s);
    assert_int_equal(mica_sampler_new(16, -1, &s, &err), MICA_INVALID_ARGUMENT);
    assert_true(mica_sampler_bytes(0, 16) == 0);
    mica_sampler_free(NULL);
    s = make(8);
    float x[8] = {0};
    mica_sampling o = greedy();
    o.repeat_penalty = 1.1f;
    start(s, o);
    const int32_t bad[2][2] = {{1, 8}, {-1, 1}};
    int32_t token;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mica_sampler_pick(s, x, bad[i], 2, &token, &err), MICA_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "[0, 7]"));
    }
    start(s, greedy());
    assert_int_equal(pick_after(s, x, bad[0], 2), 0); /* not read when no penalty is on */
    mica_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smp_01_temperature_zero),
        cmocka_unit_test(test_smp_02_top_p_edges),
        cmocka_unit_test(test_smp_04_seed),
        cmocka_unit_test(test_smp_04_fresh_seed_is_reported),
        cmocka_unit_test(test_smp_05_logit_bias),
        cmocka_unit_test(test_smp_07_non_finite_logits),
        cmocka_unit_test(test_smp_07_everything_banned),
        cmocka_unit_test(test_smp_09_penalties),
        cmocka_unit_test(test_smp_10_out_of_range),
        cmocka_unit_test(test_smp_10_bad_bias),
        cmocka_unit_test(test_limits_are_inside),
        cmocka_unit_test(test_refused_start_changes_nothing),
        cmocka_unit_test(test_bad_sizes_and_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
