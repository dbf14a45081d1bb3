/* The queue of telemetry: order, its bound, and that with many writers nothing is lost and nothing comes twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <cmocka.h>

#include "router/telemetry_queue.h"

enum { WRITERS = 4, EACH = 50000 };

static void test_order_and_bound(void **state)
{
    mica_ring ring;
    int items[20];
    (void)state;
    assert_true(mica_ring_init(&ring, 8));
    for (int round = 0; round < 5; round++) {
        int n = 0;
        assert_null(mica_ring_take(&ring));
        while (n < 20 && mica_ring_put(&ring, &items[n]))
            n++;
        assert_int_equal(n, 8);
        for (int i = 0; i < 8; i++)
            assert_ptr_equal(mica_ring_take(&ring), &items[i]);
        assert_null(mica_ring_take(&ring));
    }
    mica_ring_free(&ring);
}

typedef struct writer {
    mica_ring *ring;
    uint32_t number, dropped;
} writer;

static void *write_all(void *user)
{
    writer *w = user;
    for (uint32_t i = 0; i < EACH; i++) {
        void *item = (void *)(uintptr_t)(w->number * EACH + i + 1);
        int tries = 0;
        while (!mica_ring_put(w->ring, item) && ++tries < 1000)
            sched_yield();
        w->dropped += tries == 1000;
    }
    return NULL;
}

static void test_many_writers(void **state)
{
    mica_ring ring;
    writer w[WRITERS] = {{NULL, 0, 0}};
    pthread_t threads[WRITERS];
    uint32_t last[WRITERS] = {0}, taken = 0, dropped = 0;
    (void)state;
    assert_true(mica_ring_init(&ring, 64));
    for (uint32_t i = 0; i < WRITERS; i++) {
        w[i] = (writer){&ring, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, write_all, &w[i]), 0);
    }
    for (int idle = 0; idle < 100000 && taken < WRITERS * EACH;) {
        uintptr_t item = (uintptr_t)mica_ring_take(&ring);
        if (!item) {
            idle++;
            sched_yield();
            continue;
        }
        idle = 0;
        uint32_t from = (uint32_t)((item - 1) / EACH), number = (uint32_t)((item - 1) % EACH) + 1;
        assert_true(from < WRITERS && number > last[from]); /* each writer's items in its order, so none twice */
        last[from] = number;
        taken++;
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        dropped += w[i].dropped;
    }
    while (mica_ring_take(&ring))
        taken++;
    assert_int_equal(taken + dropped, WRITERS * EACH);
    mica_ring_free(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_and_bound), cmocka_unit_test(test_many_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
