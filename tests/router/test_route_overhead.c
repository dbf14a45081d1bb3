/* A decision must not be felt: 99 of 100 take at most 200 us without the classifier, 1 ms with it, also those of a text of 64 KB. What
 * is measured is the thread's own time, and of several batches the best one counts: other work on the machine slows some of them,
 * what a decision does itself slows all. bench/route prints the percentiles. */
#include "route_util.h"

#include <time.h>

enum { N = 200, BATCHES = 25 };

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The 99th percentile of one batch. */
static int64_t batch_ns(const mica_route_policy *policy, const mica_route_request *r, const phone *p, const char *by)
{
    int64_t ns[N];
    mica_error err;
    for (int i = 0; i < N; i++) {
        mica_route_decision d;
        int64_t start = cpu_ns();
        assert_int_equal(mica_route_decide(policy, r, &p->state, &d, &err), MICA_OK);
        ns[i] = cpu_ns() - start;
        assert_string_equal(d.class_by, by);
    }
    qsort(ns, N, sizeof *ns, by_value);
    return ns[N * 99 / 100];
}

static int64_t best_p99_ns(const mica_route_policy *policy, const char *task, const char *text, const char *by)
{
    int64_t best = INT64_MAX;
    mica_route_request r = mica_route_request_default();
    phone p;
    phone_make(&p);
    r.task = task;
    r.text = text;
    r.length = strlen(text);
    for (int i = 0; i < BATCHES; i++) {
        int64_t ns = batch_ns(policy, &r, &p, by);
        best = ns < best ? ns : best;
    }
    return best;
}

/* Prose, with words that begin as secrets do, and figures. */
static char *long_text(size_t length)
{
    static const char words[] = "Tell me about bees, spiders and other passable animals in private gardens; we meet there at 17:35. ";
    char *text = malloc(length + 1);
    assert_non_null(text);
    for (size_t i = 0; i < length; i++)
        text[i] = words[i % (sizeof words - 1)];
    text[length] = '\0';
    return text;
}

static void test_overhead(void **state)
{
    (void)state;
    char path[600], *page = long_text(4000), *book = long_text(65536);
    mica_route_policy *policy;
    mica_error err;
    snprintf(path, sizeof path, "%s/router/policies/remote.json", MICA_SHARE);
    assert_int_equal(mica_route_policy_open(path, MICA_SHARE, &policy, &err), MICA_OK);
    int64_t without = best_p99_ns(policy, "classify", page, "rule"), with = best_p99_ns(policy, NULL, page, "classifier");
    int64_t longest = best_p99_ns(policy, NULL, book, "rule");
    print_message("p99: %.1f us without the classifier, %.1f us with it, %.1f us for 64 KB\n", (double)without / 1e3,
                  (double)with / 1e3, (double)longest / 1e3);
    mica_route_policy_release(policy);
    free(page);
    free(book);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(without <= 200000);
    assert_true(with <= 1000000);
    assert_true(longest <= 200000);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overhead)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
