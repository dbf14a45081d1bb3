/* A governor that does its worst: threads, pauses, chunks and drafts change at every step, and the reply stays the same, bit
 * for bit. What a policy says of a request is done before its first token. */
#include <pthread.h>
#include <time.h>

#include "base/pool.h"
#include "device/governor.h"
#include "mica/mica_governor.h"
#include "reply_util.h"

#include "fake_tree.h"

#define MODEL MICA_TEST_DATA "/tiny/gemma3.gguf"

enum { REQUESTS = 12 };

/* ---- driven hard ---- */

typedef struct driver {
    int calls, pauses, most;
} driver;

/* Eight threads on a machine with fewer cores, none of them pinned. */
static void drive(void *user, mica_governor_output *next)
{
    static const int32_t sizes[] = {1, 3, 2, 8, 5, 2, 4, 1, 1, 6};
    driver *d = user;
    int i = d->calls++;
    next->n_fast = sizes[i % 10];
    next->n_slow = i % 3;
    next->pause_us = i % 4 == 0 ? 300 : 0;
    next->prefill_chunk = 1 + (i * 7) % 13;
    next->draft_max = i % 5 == 0 ? 0 : i % 6;
    d->pauses += next->pause_us > 0;
    d->most = sizes[i % 10] > d->most ? sizes[i % 10] : d->most;
}

static mica_governor *open_driven(driver *d)
{
    mica_governor_options o = mica_governor_options_default();
    mica_governor *g;
    mica_error err;
    o.on_output = drive;
    o.user = d;
    if (mica_governor_new(&o, &g, &err))
        fail_msg("%s", err.message);
    return g;
}

static mica_session *open_governed(mica_model *model, mica_governor *g, int32_t draft_max)
{
    mica_session_options o = mica_session_options_default();
    mica_session *s;
    mica_error err;
    o.n_ctx = 512;
    o.n_threads = 2;
    o.prefill_chunk = 32;
    o.draft_max = draft_max;
    o.governor = g;
    if (mica_session_new(model, &o, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

static void compare(mica_speculation how)
{
    static record want, have;
    mica_model *model = open_model(MODEL, NULL);
    driver d = {.calls = 0};
    mica_governor *g = open_driven(&d);
    mica_session *calm = open_governed(model, NULL, 15), *driven = open_governed(model, g, 15);
    for (int i = 0; i < REQUESTS; i++) {
        request q = make_request(i);
        run_alone(calm, &q, &want);
        q.o.speculate = how;
        run_alone(driven, &q, &have);
        expect_same(&want, &have, "a driven session");
    }
    assert_true(d.calls > 10 * REQUESTS && d.pauses > 2 * REQUESTS);
    assert_int_equal(d.most, 8);
    mica_session_free(calm);
    mica_session_free(driven);
    mica_governor_free(g);
    mica_model_close(model);
}

static void test_session(void **state)
{
    (void)state;
    compare(MICA_SPECULATE_OFF);
}

static void test_speculation(void **state)
{
    (void)state;
    compare(MICA_SPECULATE_LOOKUP);
}

static void test_batch(void **state)
{
    (void)state;
    static record want[REQUESTS], have[REQUESTS];
    mica_model *model = open_model(MODEL, NULL);
    driver d = {.calls = 0};
    mica_batch_options o = mica_batch_options_default();
    mica_session *s[REQUESTS];
    mica_batch *batch;
    mica_error err;
    mica_session *calm = open_governed(model, NULL, 0);
    o.max_sessions = REQUESTS;
    o.n_ctx = 512;
    o.step_tokens = 48;
    o.n_threads = 2;
    o.governor = open_driven(&d);
    assert_int_equal(mica_batch_new(model, &o, &batch, &err), MICA_OK);
    for (int i = 0; i < REQUESTS; i++) {
        request q = make_request(i);
        run_alone(calm, &q, &want[i]);
        assert_int_equal(mica_batch_session_new(batch, NULL, &s[i], &err), MICA_OK);
        start_record(&have[i], s[i]);
        mica_generate_options r = recorded(&q, &have[i]);
        assert_int_equal(mica_batch_submit(s[i], q.prompt, q.n, &r, &err), MICA_OK);
    }
    while (mica_batch_step(batch) > 0)
        continue;
    for (int i = 0; i < REQUESTS; i++) {
        assert_true(have[i].done);
        expect_same(&want[i], &have[i], "a driven batch");
    }
    assert_true(d.calls > 20 && d.pauses > 5);
    mica_batch_free(batch);
    mica_governor_free(o.governor);
    mica_session_free(calm);
    mica_model_close(model);
}

/* The team is what the governor wants, from the next step on. */
static void want_three(void *user, mica_governor_output *next)
{
    *(int *)user += 1;
    next->n_fast = 3;
    next->n_slow = 0;
}

static void test_threads(void **state)
{
    (void)state;
    static record r;
    mica_model *model = open_model(MODEL, NULL);
    mica_governor_options o = mica_governor_options_default();
    mica_governor *g;
    mica_error err;
    int calls = 0;
    o.on_output = want_three;
    o.user = &calls;
    assert_int_equal(mica_governor_new(&o, &g, &err), MICA_OK);
    mica_session *s = open_governed(model, g, 0);
    assert_int_equal(mica_pool_threads(s->pool), 2);
    request q = make_request(4);
    run_alone(s, &q, &r);
    assert_int_equal(r.status, MICA_OK);
    assert_int_equal(mica_pool_threads(s->pool), 3);
    assert_int_equal(r.result.n_threads, 3);
    assert_true(calls >= r.n_tokens);
    mica_session_free(s);
    mica_governor_free(g);
    mica_model_close(model);
}

/* ---- limits on replies ---- */

typedef struct limits {
    int32_t refuse_above, max_tokens;
} limits;

static void set_limits(void *user, mica_governor_output *next)
{
    const limits *l = user;
    next->n_fast = next->n_slow = 0;
    next->refuse_above = l->refuse_above;
    next->max_tokens = l->max_tokens;
}

static mica_status ask(mica_session *s, int32_t max_tokens, record *r)
{
    request q = make_request(4);
    q.o.max_tokens = max_tokens;
    q.o.ignore_eos = true;
    run_alone(s, &q, r);
    return r->status;
}

static void test_limits(void **state)
{
    (void)state;
    static record r, free_r;
    mica_model *model = open_model(MODEL, NULL);
    limits l = {.refuse_above = 20, .max_tokens = -1};
    mica_governor_options o = mica_governor_options_default();
    mica_governor *g;
    mica_error err;
    o.on_output = set_limits;
    o.user = &l;
    assert_int_equal(mica_governor_new(&o, &g, &err), MICA_OK);
    mica_session *s = open_governed(model, g, 0), *plain = open_governed(model, NULL, 0);
    assert_int_equal(ask(s, 21, &r), MICA_TOO_HOT);
    assert_non_null(strstr(r.message, "21 tokens"));
    assert_int_equal(r.n_tokens, 0);
    assert_int_equal(ask(s, -1, &r), MICA_TOO_HOT); /* it may be as long as the context */
    assert_int_equal(ask(s, 20, &r), MICA_OK);
    assert_int_equal(r.n_tokens, 20);
    l = (limits){.refuse_above = -1, .max_tokens = 7};
    assert_int_equal(ask(s, -1, &r), MICA_OK);
    assert_string_equal(r.reason, "length");
    assert_int_equal(r.n_tokens, 7);
    assert_int_equal(ask(plain, 30, &free_r), MICA_OK);
    assert_memory_equal(r.tokens, free_r.tokens, 7 * sizeof *r.tokens); /* a beginning of the same reply */
    assert_int_equal(ask(s, 3, &r), MICA_OK);
    assert_int_equal(r.n_tokens, 3);
    assert_string_equal(mica_status_name(MICA_TOO_HOT), "MICA_TOO_HOT");
    mica_session_free(plain);
    mica_session_free(s);
    mica_governor_free(g);
    mica_model_close(model);
}

/* ---- pauses ---- */

static void pause_long(void *user, mica_governor_output *next)
{
    (void)user;
    next->n_fast = next->n_slow = 0;
    next->pause_us = 1500000;
}

static void *cancel_soon(void *session)
{
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    mica_session_cancel(session);
    return NULL;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A cancel ends a pause: here one of 1.5 s after 0.1 s. */
static void test_pause(void **state)
{
    (void)state;
    static record r;
    mica_model *model = open_model(MODEL, NULL);
    mica_governor_options o = mica_governor_options_default();
    mica_governor *g;
    mica_error err;
    pthread_t thread;
    o.on_output = pause_long;
    assert_int_equal(mica_governor_new(&o, &g, &err), MICA_OK);
    mica_session *s = open_governed(model, g, 0);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, s), 0);
    double start = seconds();
    assert_int_equal(ask(s, 50, &r), MICA_CANCELLED);
    double took = seconds() - start;
    pthread_join(thread, NULL);
    if (took < 0.09 || took > 1.2)
        fail_msg("%.3f s until the cancel", took);
    mica_session_free(s);
    mica_governor_free(g);
    mica_model_close(model);
}

/* ---- cost ---- */

/* Between two decisions a look costs well below a microsecond. */
static void test_cost(void **state)
{
    (void)state;
    enum { N = 1000000 };
    mica_governor_options o = mica_governor_options_default();
    mica_governor *g;
    mica_error err;
    int64_t sum = 0;
    assert_int_equal(mica_governor_new(&o, &g, &err), MICA_OK);
    double best = 1;
    for (int round = 0; round < 5; round++) { /* the best of five: others use this machine, too */
        double start = seconds();
        for (int i = 0; i < N; i++) {
            mica_governor_note(g, 1, 1, 1000); /* long before the next decision is due */
            sum += mica_governor_next(g)->n_fast;
        }
        double each = (seconds() - start) / N;
        best = each < best ? each : best;
    }
    assert_true(sum > 0);
    print_message("a look without a decision takes %.1f ns\n", best * 1e9);
    assert_true(best < 1e-6);
    mica_governor_free(g);
}

/* ---- cores ---- */

static void check_cores(const fake_tree *t, int fast, int slow, bool pinned)
{
    mica_governor_options o = mica_governor_options_default();
    mica_governor *g;
    mica_error err;
    int32_t cpus[MICA_MAX_THREADS];
    o.sysroot = t->root;
    assert_int_equal(mica_governor_new(&o, &g, &err), MICA_OK);
    mica_governor_output out = *mica_governor_next(g);
    assert_int_equal(out.n_fast, fast); /* to begin with */
    assert_int_equal(out.n_slow, 0);
    out.n_slow = slow;
    mica_governor_cpus(g, &out, cpus);
    for (int i = 0; i < fast + slow; i++) {
        if (!pinned)
            assert_int_equal(cpus[i], -1);
        for (int k = 0; pinned && k < i; k++)
            assert_true(cpus[i] >= 0 && cpus[i] != cpus[k]);
    }
    assert_int_equal(cpus[fast + slow], -1);
    mica_governor_free(g);
}

static void test_cores(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_flat(&t, 4);
    check_cores(&t, 4, 0, false);
    for (int i = 0; i < 4; i++)
        tree_cpu(&t, i, "cpu_capacity", i < 2 ? "300" : "1024");
    check_cores(&t, 2, 2, true);
    tree_line(&t, "sys/fs/cgroup/cpu.max", "100000 100000"); /* a quota of one CPU: the fast one */
    check_cores(&t, 1, 0, false);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_session), cmocka_unit_test(test_speculation),
                                       cmocka_unit_test(test_batch),   cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_limits),  cmocka_unit_test(test_pause),
                                       cmocka_unit_test(test_cost),    cmocka_unit_test(test_cores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
