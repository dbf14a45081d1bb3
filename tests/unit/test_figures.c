/* The store of measured figures: what is kept, what goes stale, what is refused, and writers side by side. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "device/figures.h"
#include "device/storage.h"
#include "fake_tree.h"

static const char *store(const fake_tree *t)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/device.json", t->root);
    return path;
}

static mica_figures some(const char *kernels, double decode)
{
    mica_figures f;
    mica_figures_clear(&f);
    mica_figures_context_here(NULL, kernels, &f.context);
    snprintf(f.source, sizeof f.source, "probe");
    f.decode_tps = decode;
    f.threads = 3;
    f.measured_unix = 1700000000;
    return f;
}

static void the_context_is_of_this_build(void **state)
{
    (void)state;
    mica_figures_context a, b;
    mica_figures_context_here(NULL, "avx2", &a);
    mica_figures_context_here(NULL, "avx2", &b);
    assert_true(strlen(a.build) >= 8 && strcmp(a.build, b.build) == 0 && strstr(a.cpu, "usable"));
    assert_true(mica_figures_hold(&a, &b));
    mica_figures_context_here(NULL, NULL, &b);
    assert_false(mica_figures_hold(&a, &b));
}

static void keys(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    char key[MICA_FIGURES_KEY], path[600];
    mica_error err;
    tree_bytes(&t, "folder/model \"x\".gguf", "12345", 5);
    snprintf(path, sizeof path, "%s/folder/model \"x\".gguf", t.root);
    assert_int_equal(mica_figures_key(path, key, &err), MICA_OK);
    assert_string_equal(key, "model \"x\".gguf@5");
    snprintf(path, sizeof path, "%s/absent.gguf", t.root);
    assert_int_equal(mica_figures_key(path, key, &err), MICA_IO_ERROR);
    tree_free(&t);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_figures f = some("avx2", 31.25), g;
    mica_error err;
    assert_int_equal(mica_figures_load(store(&t), "m@1", &g, &err), MICA_OK); /* no file yet */
    assert_true(isnan(g.decode_tps) && g.measured_unix == 0 && g.threads == 0 && g.peak_rss_bytes == -1);
    f.tuned_threads = 2;
    f.n_tuned_cpus = 2;
    f.tuned_cpus[0] = 4;
    f.tuned_cpus[1] = 7;
    assert_int_equal(mica_figures_save(store(&t), "m@1", &f, &err), MICA_OK);
    assert_int_equal(mica_figures_load(store(&t), "m@1", &g, &err), MICA_OK);
    assert_true(g.decode_tps == 31.25 && isnan(g.prefill_tps) && g.threads == 3 && g.measured_unix == 1700000000);
    assert_true(g.tuned_threads == 2 && g.n_tuned_cpus == 2 && g.tuned_cpus[0] == 4 && g.tuned_cpus[1] == 7);
    assert_string_equal(g.source, "probe");
    assert_true(mica_figures_hold(&f.context, &g.context));
    assert_int_equal(mica_figures_load(store(&t), "other@1", &g, &err), MICA_OK);
    assert_true(isnan(g.decode_tps));
    tree_free(&t);
}

static void figures_of_one_context_are_joined_and_of_another_replaced(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_figures f = some("avx2", 31.25), g;
    mica_error err;
    assert_int_equal(mica_figures_save(store(&t), "m@1", &f, &err), MICA_OK);
    mica_figures tuned = some("avx2", NAN);
    tuned.tuned_threads = 2;
    assert_int_equal(mica_figures_save(store(&t), "m@1", &tuned, &err), MICA_OK);
    assert_int_equal(mica_figures_load(store(&t), "m@1", &g, &err), MICA_OK);
    assert_true(g.decode_tps == 31.25 && g.tuned_threads == 2 && g.n_tuned_cpus == 0);
    mica_figures other = some("avx512", NAN);
    other.prefill_tps = 200;
    assert_int_equal(mica_figures_save(store(&t), "m@1", &other, &err), MICA_OK);
    assert_int_equal(mica_figures_load(store(&t), "m@1", &g, &err), MICA_OK);
    assert_true(isnan(g.decode_tps) && g.tuned_threads == 0 && g.prefill_tps == 200);
    tree_free(&t);
}

static void machines(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_machine_figures m = {.measured_unix = 5, .threads = 2, .read_bytes_per_s = 1e10}, n;
    mica_figures f = some("avx2", 31.25), g;
    mica_error err;
    mica_figures_context_here(NULL, NULL, &m.context);
    assert_int_equal(mica_figures_load_machine(store(&t), &n, &err), MICA_OK);
    assert_true(isnan(n.read_bytes_per_s));
    assert_int_equal(mica_figures_save(store(&t), "m@1", &f, &err), MICA_OK);
    assert_int_equal(mica_figures_save_machine(store(&t), &m, &err), MICA_OK);
    assert_int_equal(mica_figures_load_machine(store(&t), &n, &err), MICA_OK);
    assert_true(n.read_bytes_per_s == 1e10 && n.threads == 2 && mica_figures_hold(&m.context, &n.context));
    assert_int_equal(mica_figures_load(store(&t), "m@1", &g, &err), MICA_OK);
    assert_true(g.decode_tps == 31.25);
    tree_free(&t);
}

static void what_others_wrote_stays(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_figures f = some("avx2", 1), g;
    mica_error err;
    char text[2000];
    tree_line(&t, "device.json",
              "{\"version\": 1, \"more\": [1, 2], \"models\": {\"a@1\": {\"decode_tps\": 5, \"note\": \"x\"}}}");
    assert_int_equal(mica_figures_save(store(&t), "b@1", &f, &err), MICA_OK);
    assert_int_equal(mica_figures_load(store(&t), "a@1", &g, &err), MICA_OK);
    assert_true(g.decode_tps == 5);
    FILE *in = fopen(store(&t), "rb");
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    assert_non_null(strstr(text, "\"more\""));
    assert_non_null(strstr(text, "\"note\""));
    tree_free(&t);
}

static void damaged_files_are_refused_and_left(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "{", "[]", "{\"version\": 2}", "{\"version\": \"1\"}", "{\"version\": 1, \"version\": 1}", "null"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fake_tree t = tree_new();
        mica_figures f = some("avx2", 1);
        mica_error err;
        tree_line(&t, "device.json", texts[i]);
        assert_int_equal(mica_figures_load(store(&t), "m@1", &f, &err), MICA_BAD_FILE);
        assert_non_null(strstr(err.message, "remove it"));
        assert_int_equal(mica_figures_save(store(&t), "m@1", &f, &err), MICA_BAD_FILE);
        tree_free(&t);
    }
}

static void absurd_members_are_unknown(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_figures f;
    mica_error err;
    tree_line(&t, "device.json",
              "{\"version\": 1, \"models\": {\"m@1\": {\"decode_tps\": -3, \"threads\": 99999999999, \"prefill_tps\": \"x\", "
              "\"tuned_threads\": 2, "
              "\"tuned_cpus\": [1, -1], \"peak_rss_bytes\": -7, \"source\": 12}, \"n@1\": 5}}");
    assert_int_equal(mica_figures_load(store(&t), "m@1", &f, &err), MICA_OK);
    assert_true(isnan(f.decode_tps) && isnan(f.prefill_tps) && f.threads == 0 && f.peak_rss_bytes == -1 && f.n_tuned_cpus == 0);
    assert_true(f.tuned_threads == 2 && f.source[0] == '\0');
    assert_int_equal(mica_figures_load(store(&t), "n@1", &f, &err), MICA_OK);
    assert_true(isnan(f.decode_tps));
    f = some("avx2", 2);
    assert_int_equal(mica_figures_save(store(&t), "n@1", &f, &err), MICA_OK); /* 5 is no object: it goes */
    tree_free(&t);
}

static void count_models(void *user, const char *key, const mica_figures *f)
{
    int *n = user;
    assert_true(key[0] == 'k' && f->decode_tps >= 1);
    (*n)++;
}

static void writers_do_not_lose_each_others_figures(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_error err;
    int n = 0;
    for (int child = 0; child < 4; child++) {
        if (fork() != 0)
            continue;
        int failed = 0;
        for (int i = 0; i < 5; i++) {
            char key[32];
            mica_figures f = some("avx2", 1 + i);
            snprintf(key, sizeof key, "k%d-%d", child, i);
            failed |= mica_figures_save(store(&t), key, &f, NULL) != MICA_OK;
        }
        _exit(failed);
    }
    for (int child = 0; child < 4; child++) {
        int code = -1;
        wait(&code);
        assert_int_equal(code, 0);
    }
    assert_int_equal(mica_figures_visit(store(&t), count_models, &n, &err), MICA_OK);
    assert_int_equal(n, 20);
    tree_free(&t);
}

static void disks(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_storage s;
    mica_error err;
    char path[600], *data = calloc(8, 1 << 20);
    assert_non_null(data);
    tree_bytes(&t, "small", data, 1 << 20);
    snprintf(path, sizeof path, "%s/small", t.root);
    assert_int_equal(mica_storage_read(path, 1.0, &s, &err), MICA_UNSUPPORTED);
    assert_true(isnan(s.bytes_per_s));
    snprintf(path, sizeof path, "%s/absent", t.root);
    assert_int_equal(mica_storage_read(path, 1.0, &s, &err), MICA_IO_ERROR);
    tree_bytes(&t, "large", data, 8 << 20);
    snprintf(path, sizeof path, "%s/large", t.root);
    int fd = open(path, O_RDONLY);
    fsync(fd);
    close(fd);
    mica_status status = mica_storage_read(path, 1.0, &s, &err);
    if (status == MICA_UNSUPPORTED) { /* a file system in memory */
        assert_non_null(strstr(err.message, "stay in memory"));
    } else {
        assert_int_equal(status, MICA_OK);
        assert_true(s.bytes > 0 && s.bytes <= 8 << 20 && s.bytes_per_s > 1e5 && s.method[0]);
    }
    assert_true(mica_storage_read(path, 1e-9, &s, &err) != MICA_OK || s.bytes == 1 << 20); /* one piece, whatever the time */
    free(data);
    tree_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_context_is_of_this_build),
        cmocka_unit_test(keys),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(figures_of_one_context_are_joined_and_of_another_replaced),
        cmocka_unit_test(machines),
        cmocka_unit_test(what_others_wrote_stays),
        cmocka_unit_test(damaged_files_are_refused_and_left),
        cmocka_unit_test(absurd_members_are_unknown),
        cmocka_unit_test(writers_do_not_lose_each_others_figures),
        cmocka_unit_test(disks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
