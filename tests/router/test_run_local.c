/* Local rungs: opened when wanted, kept within the budget, the longest unused one unloaded. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gate.h"
#include "router/run_local.h"

#define MODEL MICA_TEST_DATA "/cases/_common/scripted.gguf"

static mica_error err;
static char copies[3][64];

/* Three rungs are three files. */
static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(copies[i], sizeof copies[i], "/tmp/mica-rung-%d-%d.gguf", (int)getpid(), i);
        if (symlink(MODEL, copies[i]))
            return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        unlink(copies[i]);
    return 0;
}

static int64_t rung_bytes(void)
{
    mica_model *model;
    mica_memory_plan plan;
    mica_session_options o = mica_session_options_default();
    assert_int_equal(mica_model_open(MODEL, NULL, &model, &err), MICA_OK);
    o.n_ctx = 128;
    o.full_policy = MICA_FULL_STOP;
    assert_int_equal(mica_session_plan(model, &o, &plan, &err), MICA_OK);
    mica_model_close(model);
    return plan.total_bytes;
}

typedef struct job {
    mica_local *local;
    const char *file;
    bool (*stop)(void *user);
    int (*on_text)(void *user, const char *text, size_t length);
    void *user;
    int64_t time_ms;
    mica_failure failure;
    char text[200], message[240];
} job;

static void ask(job *j)
{
    mica_run_body body;
    mica_try t;
    static const char json[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"S\"}],\"temperature\":0}";
    mica_route_rung rung = {.name = "near", .file = j->file, .context = 128};
    mica_try_link link = {.deadline_ns = mica_now_ns() + (j->time_ms ? j->time_ms : 60000) * 1000000,
                          .stop = j->stop,
                          .on_text = j->on_text,
                          .user = j->user};
    assert_int_equal(mica_run_body_read(json, sizeof json - 1, &body, &err), MICA_OK);
    json_t *messages = mica_run_body_messages(&body, "");
    mica_local_call call = {.rung = &rung, .body = &body, .messages = messages, .max_tokens = -1, .link = &link};
    mica_try_init(&t);
    mica_local_run(j->local, &call, &t);
    j->failure = t.failure;
    snprintf(j->text, sizeof j->text, "%.*s", (int)t.text.length, t.text.data ? t.text.data : "");
    snprintf(j->message, sizeof j->message, "%s", t.message);
    mica_try_free(&t);
    json_decref(messages);
    mica_run_body_free(&body);
}

static mica_failure ask_of(mica_local *local, const char *file)
{
    job j = {.local = local, .file = file};
    ask(&j);
    if (!j.failure)
        assert_string_equal(j.text, "alpha beta gamma delta");
    return j.failure;
}

static void test_the_longest_unused_goes(void **state)
{
    (void)state;
    mica_local *l;
    assert_int_equal(mica_local_new(NULL, NULL, 2 * rung_bytes() + 1000, 1, &l, &err), MICA_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ask_of(l, copies[i]), MICA_FAILURE_NONE);
    assert_true(mica_local_is_resident(l, copies[0]) && mica_local_is_resident(l, copies[1]));
    assert_int_equal(ask_of(l, copies[0]), MICA_FAILURE_NONE); /* now 1 is the longest unused */
    assert_int_equal(ask_of(l, copies[2]), MICA_FAILURE_NONE);
    assert_true(mica_local_is_resident(l, copies[0]) && mica_local_is_resident(l, copies[2]));
    assert_false(mica_local_is_resident(l, copies[1]));
    assert_int_equal(ask_of(l, copies[1]), MICA_FAILURE_NONE); /* and it comes back */
    assert_false(mica_local_is_resident(l, copies[0]));
    mica_local_free(l);
}

static void test_what_does_not_fit_alone(void **state)
{
    (void)state;
    mica_local *l;
    job j = {.file = copies[0]};
    assert_int_equal(mica_local_new(NULL, NULL, rung_bytes() - 1, 1, &l, &err), MICA_OK);
    j.local = l;
    ask(&j);
    assert_int_equal(j.failure, MICA_FAILURE_NO_MEMORY);
    assert_non_null(strstr(j.message, "budget"));
    assert_false(mica_local_is_resident(l, copies[0]));
    assert_int_equal(ask_of(l, "/nowhere/model.gguf"), MICA_FAILURE_NO_MODEL);
    mica_local_free(l);
}

/* ---- Weighing ---- */

static mica_local *new_local(int64_t budget)
{
    mica_local *l;
    assert_int_equal(mica_local_new(NULL, NULL, budget, 1, &l, &err), MICA_OK);
    return l;
}

/* As mica_budget_check() says it, with its sentence. */
static void test_weight(void **state)
{
    (void)state;
    mica_rung_weight w;
    mica_budget b;
    mica_session_options o = mica_session_options_default();
    o.n_ctx = 128;
    o.n_threads = 1;
    o.full_policy = MICA_FULL_STOP;
    assert_int_equal(mica_budget_check(copies[0], &o, &b, &err), MICA_OK);
    mica_local *l = new_local(1 << 30);
    mica_local_weigh(l, copies[0], 128, &w);
    assert_string_equal(w.refusal, "");
    assert_true(llabs(w.peak_bytes - b.plan.peak_bytes) < 4 << 20); /* the process itself grows meanwhile */
    assert_int_equal(w.free_bytes, b.plan.kv_bytes + b.plan.workspace_bytes);
    mica_local_weigh(l, "/nowhere/model.gguf", 128, &w);
    assert_int_equal(w.peak_bytes, -1);
    assert_string_equal(w.refusal, "");
    mica_local_free(l);
    l = new_local(1 << 20);
    mica_local_weigh(l, copies[0], 128, &w);
    assert_non_null(strstr(w.refusal, "a context of 128 needs"));
    assert_non_null(strstr(w.refusal, "over the budget of"));
    mica_local_free(l);
}

/* What another engine has loaded leaves less, for the decision and for loading; what can be unloaded does not. */
static void test_what_others_have(void **state)
{
    (void)state;
    mica_rung_weight before, after;
    mica_local *l = new_local(1 << 30);
    mica_local_weigh(l, copies[0], 128, &before);
    assert_int_equal(ask_of(l, copies[1]), MICA_FAILURE_NONE);
    mica_local_weigh(l, copies[0], 128, &after);
    assert_true(llabs(after.peak_bytes - before.peak_bytes) < 2 << 20);
    mica_local_free(l);
    l = new_local(before.peak_bytes + (64 << 20));
    mica_local_weigh(l, copies[0], 128, &after);
    assert_string_equal(after.refusal, "");
    mica_local_free(l);
    l = new_local(before.peak_bytes + (64 << 20));
    mica_local_reserve(l, 65 << 20);
    mica_local_weigh(l, copies[0], 128, &after);
    assert_non_null(strstr(after.refusal, "over the budget of"));
    mica_local_free(l);
    l = new_local(64 << 20);
    mica_local_reserve(l, (64 << 20) - rung_bytes() + 1);
    assert_int_equal(ask_of(l, copies[0]), MICA_FAILURE_NO_MEMORY);
    mica_local_free(l);
}

static void test_governor(void **state)
{
    (void)state;
    static const char policy[] = "{\"version\":1,\"objective\":\"sustained\"}";
    mica_local *l = new_local(1 << 30);
    assert_int_equal(mica_local_govern(l, "{\"version\":1,\"objective\":\"fast\"}", NULL, &err), MICA_INVALID_ARGUMENT);
    mica_local_free(l);
    l = new_local(1 << 30);
    assert_int_equal(mica_local_govern(l, policy, NULL, &err), MICA_OK);
    assert_int_equal(ask_of(l, copies[0]), MICA_FAILURE_NONE); /* the same text */
    mica_local_free(l);
}

static bool at_once(void *user)
{
    (void)user;
    return true;
}

static int refuse_text(void *user, const char *text, size_t length)
{
    (void)user;
    (void)text;
    return length > 0;
}

static void test_stopped(void **state)
{
    (void)state;
    mica_local *l;
    assert_int_equal(mica_local_new(NULL, NULL, 1 << 30, 1, &l, &err), MICA_OK);
    job j = {.local = l, .file = copies[0], .stop = at_once};
    ask(&j);
    assert_int_equal(j.failure, MICA_FAILURE_CANCELLED);
    j = (job){.local = l, .file = copies[0], .on_text = refuse_text};
    ask(&j);
    assert_int_equal(j.failure, MICA_FAILURE_CANCELLED);
    assert_int_equal(ask_of(l, copies[0]), MICA_FAILURE_NONE); /* the session is good all the same */
    mica_local_free(l);
}

/* ---- Two at a time ---- */

static void *ask_in_thread(void *user)
{
    ask(user);
    return NULL;
}

/* A rung that answers is not unloaded, and one more request for it waits, no longer than its own time. */
static void test_busy(void **state)
{
    (void)state;
    mica_local *l;
    pthread_t thread;
    gate g = GATE;
    assert_int_equal(mica_local_new(NULL, NULL, rung_bytes() + 1000, 1, &l, &err), MICA_OK);
    job first = {.local = l, .file = copies[0], .on_text = gate_wait, .user = &g};
    assert_int_equal(pthread_create(&thread, NULL, ask_in_thread, &first), 0);
    gate_await(&g);
    job same = {.local = l, .file = copies[0], .time_ms = 100};
    ask(&same);
    assert_int_equal(same.failure, MICA_FAILURE_TIMEOUT);
    assert_int_equal(ask_of(l, copies[1]), MICA_FAILURE_NO_MEMORY);
    gate_open(&g);
    pthread_join(thread, NULL);
    assert_int_equal(first.failure, MICA_FAILURE_NONE);
    assert_string_equal(first.text, "alpha beta gamma delta");
    assert_int_equal(ask_of(l, copies[1]), MICA_FAILURE_NONE);
    mica_local_free(l);
}

int main(void)
{
    if (access(MODEL, R_OK) != 0) {
        fprintf(stderr, "skipped: %s is not there\n", MODEL);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_longest_unused_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_does_not_fit_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_weight, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_others_have, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_governor, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_busy, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
