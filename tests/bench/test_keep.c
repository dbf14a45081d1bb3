/* What mica bench leaves in the figures of the device: of which runs, and that they are found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "../unit/fake_tree.h"
#include "bench/keep.h"
#include "device/figures.h"

typedef struct world {
    fake_tree tree;
    char store[300], model[300];
    mica_record record;
} world;

static world sustained_run(void)
{
    world w = {.tree = tree_new()};
    tree_bytes(&w.tree, "m.gguf", "12345", 5);
    snprintf(w.model, sizeof w.model, "%.280s/m.gguf", w.tree.root);
    snprintf(w.store, sizeof w.store, "%.280s/device.json", w.tree.root);
    w.record.head = json_pack("{s:s, s:i, s:{s:s}, s:{s:s, s:i}}", "state", "done", "created_unix", 1700000000, "runtime",
                              "adapter", "mica", "loaded", "device", "portable kernels, 3 threads", "threads", 3);
    w.record.summary =
        json_pack("{s:b, s:[], s:f, s:f, s:f, s:f, s:n, s:f}", "sustained", 1, "problems", "steady_tps", 20.5, "cold_tps", 30.0,
                  "prefill_512_tps", 99.0, "decode_s", 480.0, "peak_rss_bytes", "energy_wh_per_1k", 0.5);
    return w;
}

static void end(world *w)
{
    json_decref(w->record.head);
    json_decref(w->record.summary);
    tree_free(&w->tree);
}

static void sustained_runs_of_our_own_are_kept(void **state)
{
    (void)state;
    world w = sustained_run();
    mica_figures f;
    mica_figures_context here;
    mica_error err;
    assert_true(mica_bench_keeps(&w.record));
    assert_int_equal(mica_bench_keep(&w.record, w.model, w.store, &err), MICA_OK);
    assert_int_equal(mica_figures_load(w.store, "m.gguf@5", &f, &err), MICA_OK);
    assert_true(f.decode_tps == 20.5 && f.cold_tps == 30 && f.prefill_tps == 99 && f.measured_s == 480 && f.threads == 3);
    assert_true(fabs(f.joules_per_token - 1.8) < 1e-9 && f.peak_rss_bytes == -1 && f.measured_unix == 1700000000);
    assert_string_equal(f.source, "bench");
    mica_figures_context_here(NULL, "portable", &here);
    assert_true(mica_figures_hold(&f.context, &here));
    end(&w);
}

static void others_are_not(void **state)
{
    (void)state;
    static const char *const changes[][3] = {{"head", "state", "\"failed\""},
                                             {"summary", "sustained", "false"},
                                             {"summary", "problems", "[\"cached\"]"},
                                             {"head", "runtime", "{\"adapter\": \"x\"}"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        world w = sustained_run();
        json_t *of = strcmp(changes[i][0], "head") == 0 ? w.record.head : w.record.summary;
        json_object_set_new(of, changes[i][1], json_loads(changes[i][2], JSON_DECODE_ANY, NULL));
        assert_false(mica_bench_keeps(&w.record));
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sustained_runs_of_our_own_are_kept),
        cmocka_unit_test(others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
