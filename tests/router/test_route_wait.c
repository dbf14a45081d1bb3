/* How long a request would wait for a rung: those before it, at the pace of the rung's replies so far; a deadline counts it. */
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "gate.h"
#include "runner_util.h"

static void sleep_ms(int64_t ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static mica_error err;

static void expect_refused(const running *r, const char *route, mica_route_reason reason)
{
    mica_run_reply reply;
    assert_int_equal(runner_ask(r, route, NULL, NULL, &reply, &err), MICA_UNSUPPORTED);
    assert_int_equal(reply.decision.candidates[0].reason, reason);
    mica_run_reply_free(&reply);
}

/* ---- An engine with slots ---- */

enum { WORK_MS = 40 };

static mica_engine_load load;

static bool run_engine(void *user, const mica_local_call *call, mica_try *t)
{
    (void)user;
    t->work_ns = mica_now_ns();
    sleep_ms(WORK_MS);
    if (mica_try_text(t, call->link, "well", 4))
        strcpy(t->finish, "stop");
    t->end_ns = mica_now_ns();
    return true;
}

static bool load_engine(void *user, const char *path, mica_engine_load *out)
{
    (void)user;
    *out = load;
    return strcmp(path, SCRIPTED) == 0;
}

static double wait_of(const running *r)
{
    mica_run_reply reply;
    if (runner_ask(r, "", NULL, NULL, &reply, &err))
        fail_msg("%s", err.message);
    double wait = state_number(&reply, 0, "wait_ms");
    mica_run_reply_free(&reply);
    return wait;
}

static void test_slots(void **state)
{
    (void)state;
    running r = runner_start(RUNNER_POLICY(LOCAL_RUNG("near", "1000"), ""));
    mica_run_engine engine = {.run = run_engine, .load = load_engine};
    mica_runner_set_engine(r.runner, &engine);
    load = (mica_engine_load){.n_running = 1, .n_waiting = 0, .n_slots = 2};
    assert_true(isnan(wait_of(&r)));
    load.n_running = 2;
    double wait = wait_of(&r); /* half of a reply until one of two ends */
    assert_true(wait >= WORK_MS / 2.0);
    load.n_waiting = 9;
    double more = wait_of(&r);
    assert_true(more >= 10 * WORK_MS / 2.0);
    assert_true(more > 5 * wait);
    expect_refused(&r, "\"deadline_ms\":100", MICA_ROUTE_TOO_SLOW);
    assert_non_null(strstr(err.message, "the deadline is 100 ms"));
    load.n_waiting = 0;
    mica_run_reply reply;
    assert_int_equal(runner_ask(&r, "\"deadline_ms\":10000", NULL, NULL, &reply, &err), MICA_OK);
    mica_run_reply_free(&reply);
    runner_end(&r);
}

/* ---- A rung of the runner's own ---- */

/* A request of another thread. */
typedef struct asking {
    const running *r;
    gate gate;
    mica_status status;
} asking;

static int on_slow_text(void *user, const char *text, size_t length)
{
    (void)user;
    (void)text;
    sleep_ms(length > 0 ? 100 : 0);
    return 0;
}

static void *ask_in_thread(void *user)
{
    asking *a = user;
    mica_run_reply reply;
    mica_error why;
    a->status = runner_ask(a->r, "", gate_wait, &a->gate, &reply, &why);
    mica_run_reply_free(&reply);
    return NULL;
}

static void test_own_rung(void **state)
{
    (void)state;
    running r = runner_start(RUNNER_POLICY(LOCAL_RUNG("near", "1000"), ""));
    asking a = {.r = &r, .gate = GATE};
    mica_run_reply reply;
    pthread_t thread;
    assert_int_equal(runner_ask(&r, "", on_slow_text, NULL, &reply, &err), MICA_OK); /* several pieces of 100 ms each */
    assert_true(isnan(state_number(&reply, 0, "wait_ms")));
    double took = reply.outcome.attempts[0].end_ms - reply.outcome.attempts[0].start_ms;
    assert_true(took >= 200);
    mica_run_reply_free(&reply);
    assert_int_equal(pthread_create(&thread, NULL, ask_in_thread, &a), 0);
    gate_await(&a.gate);
    int64_t begun = mica_now_ns();
    assert_int_equal(runner_ask(&r, "\"deadline_ms\":1", NULL, NULL, &reply, &err), MICA_UNSUPPORTED);
    double wait = state_number(&reply, 0, "wait_ms"), ran = (double)(mica_now_ns() - begun) / 1e6;
    if (ran < took / 2) /* else the machine was stopped meanwhile, and what ran so long is expected to end at any time */
        assert_true(wait > 1 && wait <= took);
    mica_run_reply_free(&reply);
    gate_open(&a.gate);
    pthread_join(thread, NULL);
    assert_int_equal(a.status, MICA_OK);
    assert_int_equal(runner_ask(&r, "", NULL, NULL, &reply, &err), MICA_OK); /* nobody is before this one */
    assert_true(isnan(state_number(&reply, 0, "wait_ms")));
    mica_run_reply_free(&reply);
    runner_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slots), cmocka_unit_test(test_own_rung)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
