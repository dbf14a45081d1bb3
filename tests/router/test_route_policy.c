/* Policy files: those that come with the program, those that are wrong, and a router that reads its file again. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "route_util.h"

static mica_status parse(const char *json, mica_error *err)
{
    mica_route_policy *policy;
    memset(err, 0, sizeof *err);
    mica_status status = mica_route_policy_parse(json, strlen(json), "test.json", NULL, NULL, &policy, err);
    if (status)
        assert_null(policy);
    mica_route_policy_release(policy);
    return status;
}

static void test_shipped(void **state)
{
    (void)state;
    static const char *const names[] = {"default", "remote", "small"};
    for (size_t i = 0; i < 3; i++) {
        char path[600];
        mica_route_policy *policy;
        mica_route_policy_info info;
        mica_error err = {0};
        snprintf(path, sizeof path, "%s/router/policies/%s.json", MICA_SHARE, names[i]);
        if (mica_route_policy_open(path, MICA_SHARE, &policy, &err))
            fail_msg("%s", err.message);
        mica_route_policy_get_info(policy, &info);
        assert_string_equal(info.name, names[i]);
        assert_int_equal(info.n_rungs, 4);
        assert_int_equal(info.allow_egress, i == 1); /* denied unless the policy is about it */
        assert_false(info.log_text);
        assert_int_equal(strlen(info.hash), 16);
        assert_int_equal(strlen(info.classifier_hash), 16);
        mica_route_policy_release(policy);
    }
}

/* Each is wrong in one way, and the message says where. */
static void test_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *json, *part;
    } wrong[] = {
        {"", "not JSON"},
        {"[]", "must be an object"},
        {"{}", "ladder"},
        {POLICY("true", ",\"allow_egres\":false"), "test.json: /allow_egres: there is no such member"},
        {POLICY("1", ""), "/allow_egress must be true or false"},
        {POLICY("true", ",\"schema\":1"), "duplicate"},
        {POLICY("true", ",\"hops\":0"), "/hops must be a whole number from 1 to 16"},
        {POLICY("true", ",\"hops\":1.5"), "/hops must be a whole number"},
        {POLICY("true", ",\"rules\":[{\"name\":\"a\"}]"), "/rules/0 does nothing"},
        {POLICY("true", ",\"rules\":[{\"name\":\"a\",\"pattern\":\"(\",\"class\":\"narrow\"}]"),
         "/rules/0/pattern is no regular"},
        {POLICY("true", ",\"rules\":[{\"name\":\"a b\",\"class\":\"narrow\"}]"), "/rules/0/name must be a text"},
        {POLICY("true", ",\"rules\":[{\"name\":\"a\",\"class\":\"easy\"}]"),
         "/rules/0/class must be one of \"unknown\", \"narrow\""},
        {POLICY("true", ",\"rules\":[{\"name\":\"a\",\"class\":\"narrow\",\"task\":[5]}]"), "/rules/0/task/0"},
        {POLICY("true", ",\"rules\":{}"), "/rules must be a list"},
        {POLICY("true", ",\"when\":[{\"name\":\"x\",\"battery_below\":20}]"),
         "/when/0/battery_below must be a number from 0 to 1"},
        {POLICY("true", ",\"when\":[{\"name\":\"x\",\"order\":\"score\"}]"), "/when/0/order \"score\""},
        {POLICY("true", ",\"when\":[{\"name\":\"x\",\"thermal_at_least\":\"boiling\"}]"),
         "/when/0/thermal_at_least must be one of"},
        {POLICY("true", ",\"classifier\":{\"file\":\"c.json\",\"min_confidence\":0.8}"), "/classifier names a file"},
        {POLICY("true", ",\"prices\":{\"date\":\"x\"}"), "price table"},
        {POLICY("true", ",\"run\":{\"retries\":-1}"), "retries"},
        {"{\"schema\":2,\"name\":\"p\",\"version\":\"7\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.5},\"ladder\":" LADDER
         ",\"classes\":" CLASSES "}", "/schema must be 1"},
        {"{\"schema\":1,\"name\":\"p\",\"version\":\"7\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":1.5},\"ladder\":" LADDER
         ",\"classes\":" CLASSES "}", "/memory/ram_fraction must be a number from 0.01 to 1"},
        {"{\"schema\":1,\"name\":\"p\",\"version\":\"7\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.5},\"ladder\":" LADDER
         ",\"classes\":{\"narrow\":{\"order\":\"ladder\",\"output_tokens\":5}}}", "/classes/unknown is missing"},
#define WITH_RUNGS(rungs)                                                                                                      \
    "{\"schema\":1,\"name\":\"p\",\"version\":\"7\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.5},\"classes\":" CLASSES \
    ",\"ladder\":{\"schema\":1,\"name\":\"l\",\"version\":\"1\",\"rungs\":[" rungs "]}}"
        {WITH_RUNGS(""), "/ladder/rungs must have 1 to 16 rungs"},
        {WITH_RUNGS(BIG "," BIG), "/ladder/rungs/1/name: \"big\" is the name of rung 0"},
        {WITH_RUNGS("{\"name\":\"x\",\"kind\":\"local\",\"context\":100}"),
         "/ladder/rungs/0/file is missing: a local rung has one"},
        {WITH_RUNGS("{\"name\":\"x\",\"kind\":\"remote\",\"context\":100}"), "/ladder/rungs/0/endpoint is missing"},
        {WITH_RUNGS("{\"name\":\"auto\",\"kind\":\"remote\",\"context\":9,\"endpoint\":{\"url\":\"http://127.0.0.1/v1\"}}"),
         "auto"},
        {WITH_RUNGS("{\"name\":\"x\",\"kind\":\"remote\",\"context\":9,\"file\":\"f\",\"endpoint\":{\"url\":\"http://127.0.0.1/v1\"}}"),
         "/file: a remote rung has none"},
        {WITH_RUNGS("{\"name\":\"x\",\"kind\":\"remote\",\"context\":9,\"price\":\"gold\",\"endpoint\":{\"url\":\"http://127.0.0.1/v1\"}}"),
         "names no price table"},
        {WITH_RUNGS("{\"name\":\"x\",\"kind\":\"remote\",\"context\":9,\"quality\":{\"narrow\":2},\"endpoint\":{\"url\":\"http://h/v1\"}}"),
         "/quality/narrow must be a number from 0 to 1"},
        {WITH_RUNGS("{\"name\":\"x\",\"kind\":\"remote\",\"context\":9,\"quality\":{\"tasks\":{\"a\":-1}},\"endpoint\":{\"url\":\"http://h/v1\"}}"),
         "/quality/tasks/a"},
        {WITH_RUNGS("{\"name\":\"x\",\"kind\":\"remote\",\"context\":9,\"endpoint\":{\"url\":\"ftp://h\"}}"), "url"},
    };
    mica_error err;
    assert_int_equal(parse(POLICY("true", ""), &err), MICA_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(parse(wrong[i].json, &err), MICA_OK);
        if (!strstr(err.message, wrong[i].part))
            fail_msg("%zu: \"%s\" does not say \"%s\"", i, err.message, wrong[i].part);
    }
}

static void test_hash(void **state)
{
    (void)state;
    mica_route_policy_info a, b, c;
    mica_route_policy *p = policy_of(POLICY("true", "")), *q = policy_of(POLICY("true", "")), *r = policy_of(POLICY("false",
                                                                                                                    ""));
    mica_route_policy_get_info(p, &a);
    mica_route_policy_get_info(q, &b);
    mica_route_policy_get_info(r, &c);
    assert_string_equal(a.hash, b.hash);
    assert_string_not_equal(a.hash, c.hash);
    mica_route_policy_release(p);
    mica_route_policy_release(q);
    mica_route_policy_release(r);
}

static void test_rungs(void **state)
{
    (void)state;
    mica_route_rung rung;
    mica_error err;
    mica_route_policy *p = policy_of(POLICY("true", ""));
    assert_int_equal(mica_route_rung_find(p, "server"), 2);
    assert_int_equal(mica_route_rung_find(p, "serve"), -1);
    assert_int_equal(mica_route_rung_get(p, 1, &rung, &err), MICA_OK);
    assert_string_equal(rung.file, "s.gguf");
    assert_int_equal(rung.weights_bytes, 500000000);
    assert_int_equal(mica_route_rung_get(p, 3, &rung, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_route_rung_get(p, -1, &rung, &err), MICA_INVALID_ARGUMENT);
    mica_route_policy_release(p);
}

/* ---- A router ---- */

static char folder[] = "/tmp/mica-route-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define BY_FILE(egress)                                                                                                        \
    "{\"schema\":1,\"name\":\"p\",\"version\":\"7\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},\"allow_egress\":" egress \
    ",\"ladder\":\"ladder.json\",\"classes\":" CLASSES "}"

static bool egress_of(mica_router *router)
{
    mica_route_policy_info info;
    mica_route_policy *policy = mica_router_policy(router);
    mica_route_policy_get_info(policy, &info);
    mica_route_policy_release(policy);
    return info.allow_egress;
}

static void test_reload(void **state)
{
    (void)state;
    char path[200];
    mica_router *router;
    mica_error err = {0};
    snprintf(path, sizeof path, "%s/policy.json", folder);
    write_file("ladder.json", LADDER);
    write_file("policy.json", BY_FILE("false"));
    assert_int_equal(mica_router_new(path, NULL, &router, &err), MICA_OK);
    mica_route_policy *held = mica_router_policy(router);
    assert_false(egress_of(router));
    write_file("policy.json", BY_FILE("true"));
    assert_int_equal(mica_router_reload(router, &err), MICA_OK);
    assert_true(egress_of(router));
    write_file("policy.json", BY_FILE("maybe"));
    assert_int_not_equal(mica_router_reload(router, &err), MICA_OK);
    assert_non_null(strstr(err.message, "the policy in use stays"));
    assert_true(egress_of(router));
    write_file("policy.json", BY_FILE("false"));
    write_file("ladder.json", "{\"schema\":1}"); /* a file that it names */
    assert_int_not_equal(mica_router_reload(router, &err), MICA_OK);
    assert_non_null(strstr(err.message, "ladder.json: /name is missing"));
    assert_true(egress_of(router));
    mica_route_policy_info info;
    mica_route_policy_get_info(held, &info); /* what was taken out before is as it was */
    assert_false(info.allow_egress);
    mica_route_policy_release(held);
    mica_router_free(router);
}

typedef struct racing {
    mica_router *router;
    atomic_bool stop;
    atomic_int decisions;
} racing;

static void *decide_all_the_time(void *user)
{
    racing *r = user;
    mica_route_request request = mica_route_request_default();
    phone p;
    phone_make(&p);
    while (!atomic_load(&r->stop)) {
        mica_route_decision d;
        mica_error err;
        mica_route_policy *policy = mica_router_policy(r->router);
        if (mica_route_decide(policy, &request, &p.state, &d, &err) || d.n_candidates != 3)
            abort();
        mica_route_policy_release(policy);
        atomic_fetch_add(&r->decisions, 1);
    }
    return NULL;
}

static void test_reload_under_load(void **state)
{
    (void)state;
    char path[200];
    pthread_t thread[2];
    racing r = {.stop = false};
    mica_error err;
    snprintf(path, sizeof path, "%s/policy.json", folder);
    write_file("ladder.json", LADDER);
    write_file("policy.json", BY_FILE("true"));
    assert_int_equal(mica_router_new(path, NULL, &r.router, &err), MICA_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, decide_all_the_time, &r), 0);
    for (int i = 0; i < 50 || atomic_load(&r.decisions) < 50; i++)
        assert_int_equal(mica_router_reload(r.router, &err), MICA_OK);
    atomic_store(&r.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    mica_router_free(r.router);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[200];
    static const char *const names[] = {"policy.json", "ladder.json"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped), cmocka_unit_test(test_wrong),  cmocka_unit_test(test_hash),
        cmocka_unit_test(test_rungs),   cmocka_unit_test(test_reload), cmocka_unit_test(test_reload_under_load),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
