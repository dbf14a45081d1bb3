/* test_queue.c - which of the waiting requests is next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "serve/queue.h"

#define N     8
#define AGE   ((int64_t)MICA_SERVE_AGE_S * 1000000000)
#define START ((int64_t)1 << 40)

typedef struct fixture {
    mica_queue queue;
    mica_job jobs[N];
    mica_request requests[N];
    int32_t running[4]; /* of the clients 0 to 3 */
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    mica_queue_init(&f->queue);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static int32_t running(const void *user, uint64_t client)
{
    const fixture *f = user;
    assert_true(client < 4);
    return f->running[client];
}

static void add(fixture *f, size_t i, uint64_t client, int32_t priority, int64_t arrived_ns)
{
    f->jobs[i].arrived_ns = arrived_ns;
    f->requests[i] = (mica_request){.job = &f->jobs[i], .client = client, .priority = priority};
    mica_queue_add(&f->queue, &f->requests[i]);
}

/* Which one is next; -1: none. */
static int next(const fixture *f, int64_t now_ns)
{
    const mica_request *r = mica_queue_next(&f->queue, now_ns, running, f);
    return r ? (int)(r - f->requests) : -1;
}

/* Takes the next one out, as if its only reply began. */
static int take(fixture *f, int64_t now_ns)
{
    int i = next(f, now_ns);
    mica_queue_remove(&f->queue, &f->requests[i]);
    f->running[f->requests[i].client]++;
    return i;
}

static void test_list(void **state)
{
    fixture *f = *state;
    mica_queue other;
    mica_queue_init(&other);
    assert_int_equal(next(f, START), -1);
    mica_queue_move(&f->queue, &other); /* nothing */
    for (size_t i = 0; i < 4; i++)
        add(f, i, 0, 0, START);
    assert_true(mica_queue_has(&f->queue, &f->requests[3]));
    mica_queue_remove(&f->queue, &f->requests[3]); /* the end */
    assert_false(mica_queue_has(&f->queue, &f->requests[3]));
    mica_queue_add(&other, &f->requests[3]);
    mica_queue_move(&f->queue, &other);
    assert_null(other.first);
    mica_queue_remove(&f->queue, &f->requests[1]); /* the middle */
    assert_int_equal(take(f, START), 0);           /* the beginning */
    assert_int_equal(take(f, START), 2);
    assert_int_equal(take(f, START), 3);
    assert_null(f->queue.first);
    mica_queue_add(&f->queue, &f->requests[1]); /* empty, it is as good as new */
    assert_int_equal(next(f, START), 1);
    assert_null(f->queue.first->next);
}

static void test_priority(void **state)
{
    fixture *f = *state;
    add(f, 0, 0, 0, START);
    add(f, 1, 0, -100, START);
    add(f, 2, 0, 100, START);
    add(f, 3, 0, 5, START);
    add(f, 4, 0, 5, START);
    f->running[0] = 9; /* of all the same */
    assert_int_equal(take(f, START), 2);
    assert_int_equal(take(f, START), 3);
    assert_int_equal(take(f, START), 4);
    assert_int_equal(take(f, START), 0);
    assert_int_equal(take(f, START), 1);
}

/* One client has sent four requests before the other two send theirs: they take turns. */
static void test_fair(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < 4; i++)
        add(f, i, 1, 0, START);
    add(f, 4, 2, 0, START + 1);
    add(f, 5, 3, 0, START + 2);
    add(f, 6, 2, 0, START + 3);
    static const int order[] = {0, 4, 5, 1, 6, 2, 3};
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(take(f, START + 4), order[i]);
}

/* Priority counts before fairness. */
static void test_priority_first(void **state)
{
    fixture *f = *state;
    f->running[1] = 3;
    add(f, 0, 2, 0, START);
    add(f, 1, 1, 1, START);
    assert_int_equal(next(f, START), 1);
}

static void test_age(void **state)
{
    fixture *f = *state;
    f->running[1] = 3;
    add(f, 0, 1, -2, START);
    add(f, 1, 2, 0, START + 2 * AGE - 1);
    assert_int_equal(next(f, START + 2 * AGE - 1), 1);
    assert_int_equal(next(f, START + 2 * AGE), 1); /* the same level: the client with less */
    assert_int_equal(next(f, START + 3 * AGE - 2), 1);
    mica_queue_remove(&f->queue, &f->requests[1]);
    add(f, 1, 2, 0, START + 3 * AGE); /* however many newcomers there are, in the end it is older by enough */
    assert_int_equal(next(f, START + 3 * AGE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list, setup, teardown),
        cmocka_unit_test_setup_teardown(test_priority, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fair, setup, teardown),
        cmocka_unit_test_setup_teardown(test_priority_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_age, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
