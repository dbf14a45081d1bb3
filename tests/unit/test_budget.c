/* What is usable, the budget in it, and what would fit where a session does not: the memory contract before a load. */
#include "device/budget.h"

#include "model_util.h"

#include "fake_tree.h"
#include "mica/mica_memory.h"

#define MIB(n) ((int64_t)(n) << 20)
#define TINY   MICA_TEST_DATA "/cases/_common/scripted.gguf"

/* ---- Bounds ------------------------------------------------------------------------------------------------------------ */

static mica_memory_bounds bounds_of(const fake_tree *t, int64_t app, int64_t budget, int64_t limit)
{
    mica_memory_bounds b;
    mica_error err;
    if (mica_memory_bounds_read(t->root, app, budget, limit, &b, &err))
        fail_msg("%s", err.message);
    return b;
}

static void usable_is_the_least(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_memory_bounds b = bounds_of(&t, 0, 0, 0); /* nothing says anything */
    assert_int_equal(b.usable, -1);
    assert_true(b.budget == INT64_MAX && b.limit == INT64_MAX);
    tree_line(&t, "proc/meminfo", "MemTotal:       8192000 kB\nMemFree: 1 kB\nMemAvailable: 1000000 kB");
    b = bounds_of(&t, 0, 0, 0);
    assert_int_equal(b.usable, INT64_C(8192000) * 1024);
    assert_string_equal(b.source, "MemTotal of /proc/meminfo");
    assert_int_equal(b.budget, b.usable / 100 * 55);
    assert_int_equal(b.limit, b.usable / 100 * 70);
    tree_line(&t, "proc/self/cgroup", "0::/app.slice/unit");
    tree_line(&t, "sys/fs/cgroup/app.slice/unit/memory.max", "max");
    tree_line(&t, "sys/fs/cgroup/app.slice/memory.max", "2147483648");
    b = bounds_of(&t, 0, 0, 0);
    assert_int_equal(b.usable, MIB(2048));
    assert_string_equal(b.source, "/sys/fs/cgroup/app.slice/memory.max");
    tree_line(&t, "sys/fs/cgroup/app.slice/unit/memory.high", "1073741824");
    assert_int_equal(bounds_of(&t, 0, 0, 0).usable, MIB(1024));
    tree_line(&t, "proc/self/limits",
              "Limit                     Soft Limit           Hard Limit           Units     \n"
              "Max data size             unlimited            unlimited            bytes     \n"
              "Max address space         536870912            1073741824           bytes     ");
    b = bounds_of(&t, 0, 0, 0);
    assert_int_equal(b.usable, MIB(512));
    assert_non_null(strstr(b.source, "Max address space"));
    b = bounds_of(&t, MIB(300), 0, 0);
    assert_int_equal(b.usable, MIB(300));
    assert_non_null(strstr(b.source, "app"));
    tree_free(&t);
}

static void usable_under_cgroup_v1(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    tree_line(&t, "proc/meminfo", "MemTotal: 24600000 kB");
    tree_line(&t, "proc/self/cgroup", "4:memory:/ci/job7\n1:cpu:/\n0::/");
    tree_line(&t, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    tree_line(&t, "sys/fs/cgroup/memory/ci/job7/memory.limit_in_bytes", "4294967296");
    assert_int_equal(bounds_of(&t, 0, 0, 0).usable, INT64_C(4294967296));
    tree_free(&t);
}

static void what_is_asked_for(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_memory_bounds b;
    mica_error err;
    tree_line(&t, "proc/meminfo", "MemTotal: 1024000 kB");
    b = bounds_of(&t, 0, MICA_PERCENT(60), 0);
    assert_int_equal(b.budget, b.usable / 100 * 60);
    b = bounds_of(&t, 0, MICA_PERCENT(90), MICA_PERCENT(95));
    assert_int_equal(b.budget, b.usable / 100 * 90);
    b = bounds_of(&t, 0, 0, MIB(100)); /* the default budget is not more than the limit */
    assert_int_equal(b.budget, MIB(100));
    assert_int_equal(mica_memory_bounds_read(t.root, 0, MICA_PERCENT(71), 0, &b, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "hard limit"));
    assert_int_equal(mica_memory_bounds_read(t.root, 0, MICA_PERCENT(101), 0, &b, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_memory_bounds_read("/nowhere", 0, 0, 0, &b, &err), MICA_IO_ERROR);
    tree_remove(&t, "proc/meminfo");
    assert_int_equal(mica_memory_bounds_read(t.root, 0, MICA_PERCENT(60), 0, &b, &err), MICA_IO_ERROR);
    assert_non_null(strstr(err.message, "bytes"));
    b = bounds_of(&t, 0, MIB(7), MIB(9));
    assert_true(b.budget == MIB(7) && b.limit == MIB(9) && b.usable == -1);
    tree_free(&t);
}

static void sizes_as_text(void **state)
{
    (void)state;
    char text[32];
    mica_memory_text(1000, text);
    assert_string_equal(text, "1000 bytes");
    mica_memory_text(MIB(12) + MIB(1) / 2, text);
    assert_string_equal(text, "12.5 MiB");
    mica_memory_text(MIB(3328), text);
    assert_string_equal(text, "3.25 GiB");
}

/* ---- What fits --------------------------------------------------------------------------------------------------------- */

static mica_session_options small_options(int32_t n_ctx)
{
    mica_session_options o = mica_session_options_default();
    o.n_ctx = n_ctx;
    o.n_threads = 1;
    o.memory_limit = MIB(4096);
    return o;
}

static int64_t peak_of(const mica_model *m, mica_session_options o, int32_t n_ctx, mica_kv_type type)
{
    mica_memory_plan plan;
    o.n_ctx = n_ctx;
    o.kv_k = o.kv_v = type;
    assert_int_equal(mica_session_plan(m, &o, &plan, NULL), MICA_OK);
    return plan.peak_bytes;
}

/* What is advised fits with a MiB to spare, and the next larger does not. */
static void advice_is_the_largest(void **state)
{
    (void)state;
    enum { ASKED = 65536 };
    mica_model *m = open_model(TINY, NULL);
    mica_session_options o = small_options(ASKED);
    mica_budget b;
    mica_error err;
    o.memory_budget = peak_of(m, o, 20000, MICA_KV_F16);
    if (mica_model_budget(m, &o, &b, &err))
        fail_msg("%s", err.message);
    assert_false(b.fits);
    assert_int_equal(b.plan.peak_bytes, peak_of(m, o, ASKED, MICA_KV_F16));
    assert_int_equal(b.budget_bytes, o.memory_budget);
    int32_t before = 0;
    for (int type = MICA_KV_F16; type <= MICA_KV_Q4_0; type++) {
        int32_t n = b.ctx_that_fits[type];
        assert_true(n > before && n % 256 == 0 && n < ASKED);
        assert_true(peak_of(m, o, n, (mica_kv_type)type) <= o.memory_budget - MIB(1));
        assert_true(peak_of(m, o, n + 256, (mica_kv_type)type) > o.memory_budget - MIB(1));
        before = n;
        char text[32];
        snprintf(text, sizeof text, "context of %d", n);
        assert_non_null(strstr(b.message, text));
    }
    assert_in_range(b.ctx_that_fits[MICA_KV_F16], 17000, 19000); /* 540 bytes a token, and a MiB to spare */
    o.n_ctx = b.ctx_that_fits[MICA_KV_F16];
    assert_int_equal(mica_model_budget(m, &o, &b, &err), MICA_OK);
    assert_true(b.fits && !*b.message);
    mica_model_close(m);
}

/* A session, and a batch, are refused with that sentence before anything is reserved. */
static void refusals(void **state)
{
    (void)state;
    mica_model *m = open_model(TINY, NULL);
    mica_session_options o = small_options(32768);
    mica_batch_options batch = mica_batch_options_default();
    mica_session *s;
    mica_batch *many;
    mica_error err;
    o.memory_budget = peak_of(m, o, 8192, MICA_KV_F16);
    assert_int_equal(mica_session_new(m, &o, &s, &err), MICA_OVER_BUDGET);
    assert_non_null(strstr(err.message, "over the budget"));
    assert_non_null(strstr(err.message, "what fits: a context of 6144, a context of "));
    assert_non_null(strstr(err.message, "ask for a memory budget of"));
    o.memory_limit = o.memory_budget;
    assert_int_equal(mica_session_new(m, &o, &s, &err), MICA_OVER_BUDGET);
    assert_null(strstr(err.message, "ask for"));
    batch.n_ctx = 4096;
    batch.n_threads = 1;
    batch.memory_limit = o.memory_limit;
    assert_int_equal(mica_batch_new(m, &batch, &many, &err), MICA_OVER_BUDGET);
    assert_non_null(strstr(err.message, "fewer sessions"));
    o.memory_budget = o.memory_limit = 1; /* nothing fits */
    assert_int_equal(mica_session_new(m, &o, &s, &err), MICA_OVER_BUDGET);
    assert_non_null(strstr(err.message, "smaller model"));
    mica_model_close(m);
}

/* What is free now counts, too, unless a limit in bytes says that the caller knows better. */
static void available_counts(void **state)
{
    (void)state;
    fake_tree t = tree_new();
    mica_model *m = open_model(TINY, NULL);
    mica_session_options o = small_options(32768);
    mica_budget b;
    tree_line(&t, "proc/meminfo", "MemTotal: 24600000 kB\nMemAvailable: 4000 kB");
    o.sysroot = t.root;
    o.memory_limit = 0;
    assert_int_equal(mica_model_budget(m, &o, &b, NULL), MICA_OK);
    assert_false(b.fits);
    assert_int_equal(b.available_bytes, 4096000);
    assert_non_null(strstr(b.message, "only 4096000 bytes are available now (MemAvailable"));
    assert_in_range(b.ctx_that_fits[MICA_KV_F16], 256, 32512);
    o.memory_limit = MIB(4096);
    assert_int_equal(mica_model_budget(m, &o, &b, NULL), MICA_OK);
    assert_true(b.fits);
    assert_int_equal(b.available_bytes, -1);
    mica_model_close(m);
    tree_free(&t);
}

/* The sizes of a smaller format, from the shapes alone. */
static void smaller_weights(void **state)
{
    (void)state;
    mica_model *m = open_model(TINY, NULL);
    mica_model_info info;
    mica_session_options o = small_options(512);
    mica_budget b;
    mica_model_get_info(m, &info);
    o.memory_budget = peak_of(m, o, 512, MICA_KV_F16) - 1;
    assert_int_equal(mica_model_budget(m, &o, &b, NULL), MICA_OK);
    assert_false(b.fits);
    assert_string_equal(b.type_that_fits, "Q8_0"); /* the file's are F32 */
    assert_in_range(b.type_bytes, info.weight_bytes / 4, info.weight_bytes / 2);
    assert_non_null(strstr(b.message, "weights in Q8_0 ("));
    mica_model_close(m);
}

/* Without opening the model: the same numbers. */
static void check_of_a_file(void **state)
{
    (void)state;
    mica_session_options o = small_options(4096);
    mica_budget from_file, from_model;
    mica_error err;
    if (mica_budget_check(TINY, &o, &from_file, &err))
        fail_msg("%s", err.message);
    mica_model *m = open_model(TINY, NULL);
    assert_int_equal(mica_model_budget(m, &o, &from_model, &err), MICA_OK);
    assert_true(from_file.fits);
    assert_int_equal(from_file.plan.touched_bytes, from_model.plan.touched_bytes);
    assert_int_equal(from_file.plan.kv_bytes, from_model.plan.kv_bytes);
    assert_int_equal(from_file.plan.workspace_bytes, from_model.plan.workspace_bytes);
    assert_true(llabs((long long)(from_file.plan.fixed_bytes - from_model.plan.fixed_bytes)) <
                MIB(2)); /* what was resident before */
    mica_model_close(m);
    assert_int_equal(mica_budget_check("/nowhere.gguf", &o, &from_file, &err), MICA_IO_ERROR);
    o.n_ctx = -1;
    assert_int_equal(mica_budget_check(TINY, &o, &from_file, &err), MICA_INVALID_ARGUMENT);
}

/* Sessions of one model are counted together, as long as they live. */
static void sessions_add_up(void **state)
{
    (void)state;
    mica_model *m = open_model(TINY, NULL);
    mica_session_options o = small_options(4096);
    mica_memory_plan alone, second, again;
    mica_session *s;
    assert_int_equal(mica_session_plan(m, &o, &alone, NULL), MICA_OK);
    assert_int_equal(mica_session_new(m, &o, &s, NULL), MICA_OK);
    assert_int_equal(mica_session_plan(m, &o, &second, NULL), MICA_OK);
    assert_int_equal(second.peak_bytes - alone.peak_bytes, alone.kv_bytes + alone.workspace_bytes);
    mica_session_free(s);
    assert_int_equal(mica_session_plan(m, &o, &again, NULL), MICA_OK);
    assert_int_equal(again.peak_bytes, alone.peak_bytes);
    o.constrained = true;
    assert_int_equal(mica_session_plan(m, &o, &again, NULL), MICA_OK);
    assert_true(again.guide_bytes > 0 && again.peak_bytes == alone.peak_bytes + again.guide_bytes);
    mica_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usable_is_the_least), cmocka_unit_test(usable_under_cgroup_v1), cmocka_unit_test(what_is_asked_for),
        cmocka_unit_test(sizes_as_text),       cmocka_unit_test(advice_is_the_largest),  cmocka_unit_test(refusals),
        cmocka_unit_test(available_counts),    cmocka_unit_test(smaller_weights),        cmocka_unit_test(check_of_a_file),
        cmocka_unit_test(sessions_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
