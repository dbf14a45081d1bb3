/* A device that is too hot for a rung: the next lower one, or a server; no failure of the rung, and for a while it is not asked
 * again. */
#include <time.h>

#include "base/clock.h"
#include "runner_util.h"

/* ---- Decisions ---- */

static mica_route_decision decide_hot(const char *policy, const char *hot, const char *rung)
{
    phone p;
    mica_route_decision d;
    mica_route_request r = mica_route_request_default();
    phone_make(&p);
    for (int i = 0; i < 2; i++)
        p.rung[i].hot = strcmp(p.rung[i].name, hot) == 0 ? MICA_YES : MICA_UNKNOWN;
    r.route_class = MICA_CLASS_UNKNOWN;
    r.rung = rung;
    decide(policy, &r, &p.state, &d);
    return d;
}

static void test_passed_over(void **state)
{
    (void)state;
    mica_route_decision d = decide_hot(POLICY("true", ""), "none", NULL);
    assert_string_equal(order_of(&d), "big small server");
    d = decide_hot(POLICY("true", ""), "big", NULL);
    assert_string_equal(order_of(&d), "small server");
    assert_int_equal(reason_of(&d, "big"), MICA_ROUTE_HOT);
    assert_string_equal(mica_route_reason_name(MICA_ROUTE_HOT), "hot");
    assert_non_null(strstr(d.candidates[0].why, "too hot"));
    d = decide_hot(POLICY("true", ""), "small", NULL); /* what is larger heats no less */
    assert_string_equal(order_of(&d), "server");
    assert_non_null(strstr(d.candidates[0].why, "too hot for small"));
}

/* Slow is better than nothing, and a request that names its rung gets it. */
static void test_nothing_else(void **state)
{
    (void)state;
    mica_route_decision d = decide_hot(POLICY("false", ""), "small", NULL);
    assert_string_equal(order_of(&d), "big small");
    d = decide_hot(POLICY("true", ""), "big", "big");
    assert_string_equal(order_of(&d), "big");
}

/* ---- Runs, with an engine that is as hot as it is told ---- */

typedef struct engine {
    const char *hot, *wishes; /* rungs that refuse, and that ask for a lower one */
    char asked[200];
} engine;

static bool run_engine(void *user, const mica_local_call *call, mica_try *t)
{
    engine *e = user;
    snprintf(e->asked + strlen(e->asked), sizeof e->asked - strlen(e->asked), "%s ", call->rung->name);
    if (strstr(e->hot, call->rung->name)) {
        mica_try_fail(t, MICA_FAILURE_HOT, "the device is too hot for a reply of up to 16 tokens");
    } else if (mica_try_text(t, call->link, "well", 4)) {
        t->lower_rung = strstr(e->wishes, call->rung->name) != NULL;
        strcpy(t->finish, "stop");
    }
    t->end_ns = mica_now_ns();
    return true;
}

#define THREE LOCAL_RUNG("big", "2000") "," LOCAL_RUNG("larger", "3000") "," LOCAL_RUNG("small", "1000")

static running start_engine(engine *e, const char *policy)
{
    running r = runner_start(policy);
    mica_run_engine made = {.run = run_engine, .user = e};
    mica_runner_set_engine(r.runner, &made);
    return r;
}

static void expect_ask(const running *r, engine *e, const char *attempts, const char *asked)
{
    mica_run_reply reply;
    mica_error err = {0};
    e->asked[0] = '\0';
    if (runner_ask(r, "", NULL, NULL, &reply, &err))
        fail_msg("%s", err.message);
    assert_string_equal(attempts_of(&reply), attempts);
    assert_string_equal(e->asked, asked);
    mica_run_reply_free(&reply);
}

/* "breaker_failures" 1: one failure would leave the rung alone. */
static void test_the_next_lower_rung(void **state)
{
    (void)state;
    engine e = {.hot = "big", .wishes = ""};
    running r = start_engine(&e, RUNNER_POLICY(THREE, "\"breaker_failures\":1,\"hot_ms\":300"));
    mica_runner_rung rung;
    expect_ask(&r, &e, "big hot, larger hot, small ok", "big small ");
    for (size_t i = 0; mica_runner_rung_at(r.runner, i, &rung); i++)
        assert_false(rung.open);
    expect_ask(&r, &e, "small ok", "small "); /* not asked for a while */
    e.hot = "";
    nanosleep(&(struct timespec){0, 350000000}, NULL);
    expect_ask(&r, &e, "big ok", "big ");
    runner_end(&r);
}

static void test_a_wish_for_a_lower_rung(void **state)
{
    (void)state;
    engine e = {.hot = "", .wishes = "big"};
    running r = start_engine(&e, RUNNER_POLICY(THREE, "\"hot_ms\":300"));
    expect_ask(&r, &e, "big ok", "big "); /* its reply is good */
    expect_ask(&r, &e, "small ok", "small ");
    e.wishes = "";
    nanosleep(&(struct timespec){0, 350000000}, NULL);
    expect_ask(&r, &e, "big ok", "big ");
    expect_ask(&r, &e, "big ok", "big ");
    runner_end(&r);
}

static void test_all_are_too_hot(void **state)
{
    (void)state;
    mica_run_reply reply;
    mica_error err = {0};
    engine e = {.hot = "big small larger", .wishes = ""};
    running r = start_engine(&e, RUNNER_POLICY(THREE, ""));
    assert_int_equal(runner_ask(&r, "", NULL, NULL, &reply, &err), MICA_IO_ERROR);
    assert_string_equal(attempts_of(&reply), "big hot, larger hot, small hot");
    assert_string_equal(e.asked, "big small ");
    assert_non_null(strstr(err.message, "too hot"));
    mica_run_reply_free(&reply);
    runner_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passed_over),         cmocka_unit_test(test_nothing_else),
        cmocka_unit_test(test_the_next_lower_rung), cmocka_unit_test(test_a_wish_for_a_lower_rung),
        cmocka_unit_test(test_all_are_too_hot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
