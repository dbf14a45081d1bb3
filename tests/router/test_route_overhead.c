/* A decision must not be felt: 200 us without the classifier, 1 ms with it (bench/route measures the 99th percentile on a
 * machine of its own). Here, beside other work, the median must keep to that. */
#include "route_util.h"

#include "base/clock.h"

enum { N = 2001 };

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median_ns(const mica_route_policy *policy, const char *task, const char *text)
{
    static int64_t ns[N];
    mica_route_request r = mica_route_request_default();
    phone p;
    mica_error err;
    phone_make(&p);
    r.task = task;
    r.text = text;
    r.length = strlen(text);
    for (int i = 0; i < N; i++) {
        mica_route_decision d;
        int64_t start = mica_now_ns();
        assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_OK);
        ns[i] = mica_now_ns() - start;
        assert_string_equal(d.class_by, task ? "rule" : "classifier");
    }
    qsort(ns, N, sizeof *ns, by_value);
    return ns[N / 2];
}

static void test_overhead(void **state)
{
    (void)state;
    char path[600];
    static char text[4001];
    mica_route_policy *policy;
    mica_error err;
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = "Tell me about bees and other animals. "[i % 38];
    snprintf(path, sizeof path, "%s/router/policies/remote.json", MICA_SHARE);
    assert_int_equal(mica_route_policy_open(path, MICA_SHARE, &policy, &err), MICA_OK);
    int64_t without = median_ns(policy, "classify", text), with = median_ns(policy, NULL, text);
    print_message("%.1f us without the classifier, %.1f us with it\n", (double)without / 1e3, (double)with / 1e3);
    assert_true(without <= 200000);
    assert_true(with <= 1000000);
    mica_route_policy_release(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overhead)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
