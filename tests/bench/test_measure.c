/* Whole runs under a short protocol: our own engine on a model of 850 KB, and the fake adapter, well-behaved and not. Every run
 * ends with a record, and every record can be verified. */
#include "adapter_util.h"

#include <signal.h>

#include "bench/compare.h"
#include "bench/measure.h"
#include "bench/verify.h"

static const char short_protocol[] =
    "{\"version\": 1, \"name\": \"short\", \"description\": \"for tests\", \"n_ctx\": 256, \"cold_s\": 0.01, \"steady_s\": "
    "0.01, "
    "\"ttft_ratio\": 1.5, \"sample_s\": 0.02, \"phases\": [{\"kind\": \"load\", \"cache\": \"cold\"}, {\"kind\": \"load\", "
    "\"cache\": \"warm\"}, "
    "{\"kind\": \"cooldown\", \"within_c\": 2, \"settle_s\": 0, \"max_s\": 1, \"blind_s\": 0.05, \"poll_s\": 0.01}, {\"kind\": "
    "\"warmup\", "
    "\"prompt\": 16, \"reply\": 4, \"repeat\": 1}, {\"kind\": \"ttft\", \"prompt\": 200, \"reply\": 2, \"repeat\": 3}, "
    "{\"kind\": \"ttft\", "
    "\"prompt\": 16, \"reply\": 2, \"repeat\": 3}, {\"kind\": \"decode\", \"prompt\": 16, \"reply\": 40, \"min_s\": 0.2}]}";

typedef struct world {
    fake_tree tree;
    mica_protocol protocol;
    mica_store *store;
    char scripted[600];
    mica_record record;
    mica_error err;
} world;

static void begin(world *w)
{
    char path[600];
    memset(w, 0, sizeof *w);
    w->tree = tree_new();
    snprintf(path, sizeof path, "%s/bench.db", w->tree.root);
    snprintf(w->scripted, sizeof w->scripted, "%s/cases/_common/scripted.gguf", MICA_TEST_DATA);
    assert_int_equal(mica_protocol_read(short_protocol, strlen(short_protocol), &w->protocol, NULL), MICA_OK);
    assert_int_equal(mica_store_open(path, &w->store, NULL), MICA_OK);
}

static void finish(world *w)
{
    mica_record_free(&w->record);
    mica_store_close(w->store);
    mica_protocol_free(&w->protocol);
    tree_free(&w->tree);
}

static mica_measure_options options_of(world *w, const char *adapter)
{
    return (mica_measure_options){.adapter = adapter,
                                  .model = w->scripted,
                                  .backend = "default",
                                  .protocol = &w->protocol,
                                  .adapter_options = mica_adapter_options_default(),
                                  .store = w->store};
}

static const char *head_text(const world *w, const char *name)
{
    const char *text = json_string_value(json_object_get(w->record.head, name));
    return text ? text : "";
}

/* What the store has is what the record has, and the figures can be computed again. */
static void check_kept(world *w)
{
    mica_record back;
    json_t *complaints = json_array();
    assert_int_equal(mica_store_read(w->store, w->record.id, &back, &w->err), MICA_OK);
    assert_true(json_equal(back.head, w->record.head));
    assert_int_equal(back.n_series, w->record.n_series);
    assert_true(json_equal(back.samples, w->record.samples));
    assert_int_equal(mica_verify_record(&back, complaints, &w->err), MICA_OK);
    if (json_array_size(complaints) > 0)
        fail_msg("%s", json_string_value(json_array_get(complaints, 0)));
    json_decref(complaints);
    mica_record_free(&back);
}

static double figure(const world *w, const char *name)
{
    const json_t *value = json_object_get(w->record.summary, name);
    if (!json_is_number(value))
        fail_msg("%s is no number", name);
    return json_number_value(value);
}

static void test_fake(void **state)
{
    (void)state;
    world w;
    begin(&w);
    mica_measure_options o = options_of(&w, w.tree.root);
    json_t *conditions = json_pack("{s:s}", "ambient_c", "22");
    o.conditions = conditions;
    fake_folder(&w.tree, "good", FAKE_LIMITS);
    if (mica_measure_run(&o, &w.record, &w.err))
        fail_msg("%s", w.err.message);
    assert_string_equal(head_text(&w, "state"), "done");
    assert_string_equal(head_text(&w, "name"), "fake runtime cpu");
    assert_string_equal(json_string_value(json_object_get(json_object_get(w.record.head, "conditions"), "ambient_c")), "22");
    assert_int_equal(strlen(json_string_value(json_object_get(json_object_get(w.record.head, "model"), "sha256"))), 64);
    /* The fake takes 50 us a prompt token and 2 ms a token at least: sleeping can only take longer. */
    assert_true(figure(&w, "ttft_200_ms") >= 10.0 && figure(&w, "ttft_16_ms") >= 0.8);
    assert_true(figure(&w, "decode_tps") <= 500.0 && figure(&w, "decode_s") >= 0.2);
    assert_true(figure(&w, "itl_p50_ms") >= 2.0);
    assert_int_equal(figure(&w, "ttft_200_n"), 3);
    assert_true(figure(&w, "peak_rss_bytes") > 24 << 20); /* the child's, not ours */
    assert_true(json_array_size(w.record.samples) >= 2);
    assert_int_equal(json_array_size(json_object_get(w.record.head, "loads")), 2);
    assert_string_equal(w.record.series[0].phase, "warmup");
    check_kept(&w);
    finish(&w);
    json_decref(conditions);
}

static void test_own_engine(void **state)
{
    (void)state;
    world w;
    begin(&w);
    mica_measure_options o = options_of(&w, "mica");
    mica_status status = mica_measure_run(&o, &w.record, &w.err);
    /* The model is so small that a prompt of 200 tokens may not take 1.5 times as long as one of 16. */
    if (status && strcmp(head_text(&w, "fault"), "figures") != 0)
        fail_msg("%s", w.err.message);
    assert_string_equal(head_text(&w, "name"), "mica cpu");
    assert_true(figure(&w, "decode_tps") > 1.0 && figure(&w, "decode_s") >= 0.2);
    assert_true(figure(&w, "file_bytes") > 800000 && figure(&w, "peak_rss_bytes") > 1000000);
    for (size_t i = 0; i < w.record.n_series; i++) /* nothing of a prompt comes from the cache */
        assert_int_equal(w.record.series[i].cached_n, 0);
    check_kept(&w);
    finish(&w);
}

/* Runs that fail are kept with the reason, and what was measured until then. */
static void test_failures_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *fault, *says;
        size_t replies; /* that were measured before */
    } cases[] = {
        {"dying", "died", "out of luck", 0},        {"clock_back", "clock", "backwards", 0},
        {"no_context", "count", "context of 8", 0}, {"refuses", "refused", "no model of mine", 0},
        {"not_set_up", "refused", "setup", 0},      {"flat_ttft", "figures", "1.5", 7},
        {"cached", "figures", "cache", 7},          {"partition", "backend", "fell back", 0},
        {"eos", "count", "before their second", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        begin(&w);
        mica_measure_options o = options_of(&w, w.tree.root);
        fake_folder(&w.tree, cases[i].mode, FAKE_LIMITS);
        mica_status status = mica_measure_run(&o, &w.record, &w.err);
        if (!status || strcmp(head_text(&w, "fault"), cases[i].fault) != 0 || !strstr(head_text(&w, "reason"), cases[i].says))
            fail_msg("%s: %d, \"%s\", %s", cases[i].mode, status, head_text(&w, "fault"), head_text(&w, "reason"));
        assert_string_equal(head_text(&w, "state"), "failed");
        assert_true(w.record.n_series >= cases[i].replies);
        check_kept(&w);
        finish(&w);
    }
}

static void test_fallback_is_in_the_name(void **state)
{
    (void)state;
    world w;
    begin(&w);
    mica_measure_options o = options_of(&w, w.tree.root);
    o.backend = "npu";
    o.allow_fallback = true;
    fake_folder(&w.tree, "lying_backend", FAKE_LIMITS);
    assert_int_equal(mica_measure_run(&o, &w.record, &w.err), MICA_OK);
    assert_string_equal(head_text(&w, "name"), "fake runtime npu (fell back to cpu)");
    assert_true(json_is_true(json_object_get(w.record.head, "fallback")));
    finish(&w);
}

static bool stop_after(void *user)
{
    return --*(int *)user < 0;
}

static void test_stopping(void **state)
{
    (void)state;
    for (int after = 0; after < 60; after += 12) {
        world w;
        int left = after;
        begin(&w);
        mica_measure_options o = options_of(&w, w.tree.root);
        o.adapter_options.stop = stop_after;
        o.adapter_options.user = &left;
        fake_folder(&w.tree, "good", FAKE_LIMITS);
        assert_int_equal(mica_measure_run(&o, &w.record, &w.err), MICA_CANCELLED);
        assert_string_equal(head_text(&w, "state"), "interrupted");
        check_kept(&w);
        finish(&w);
    }
}

/* ---- Comparing ---- */

static void test_compare_live(void **state)
{
    (void)state;
    fake_tree a = tree_new(), b = tree_new();
    mica_comparison c;
    mica_error err;
    mica_compare_options o = mica_compare_options_default();
    fake_folder(&a, "good", FAKE_LIMITS);
    fake_folder(&b, "flat_ttft", FAKE_LIMITS); /* 1.6 ms for any prompt, A 25 ms for 512 tokens */
    o.adapter[0] = a.root;
    o.adapter[1] = b.root;
    o.model[0] = o.model[1] = "/m/model.gguf";
    o.rounds = 6;
    o.reply = 33;
    if (mica_compare_live(&o, &c, &err))
        fail_msg("%s", err.message);
    assert_true(c.paired && c.n == 3);
    assert_string_equal(c.metric[0].name, "ttft_512_ms");
    assert_true(c.metric[0].n_a == 6 && c.metric[0].n_b == 6);
    assert_int_equal(mica_compare_better(&c.metric[0]), 'b');
    assert_true(c.metric[0].ratio.high < 1.0);
    assert_string_equal(c.metric[2].name, "decode_tps");
    assert_true(c.metric[2].n_a == 6 && c.metric[2].higher_is_better);
    mica_comparison_free(&c);
    o.rounds = 0;
    assert_int_equal(mica_compare_live(&o, &c, &err), MICA_INVALID_ARGUMENT);
    mica_comparison_free(&c);
    tree_free(&a);
    tree_free(&b);
}

static void test_compare_stored(void **state)
{
    (void)state;
    mica_comparison c = {.n = 0};
    mica_ratio_options ratio = mica_ratio_options_default();
    mica_error err;
    for (int side = 0; side < 2; side++) {
        mica_record r;
        assert_int_equal(mica_record_init(&r, &err), MICA_OK);
        json_object_set_new(r.head, "name", json_string(side ? "new" : "old"));
        for (int i = 0; i < 20; i++) { /* 101 tokens, 10 ms apart and a little more; the new one takes 5 % longer */
            int64_t times[101], tokens[101] = {0};
            for (int k = 0; k < 101; k++)
                times[k] = k * (int64_t)((10000000 + 10000 * (i % 7)) * (side ? 1.05 : 1.0));
            mica_series x = {.phase = "decode", .exact = true, .gen_n = 101, .n = 101, .times = times, .tokens = tokens};
            assert_int_equal(mica_record_add(&r, &x, &err), MICA_OK);
        }
        assert_int_equal(mica_compare_add(&c, side, &r, &err), MICA_OK);
        mica_record_free(&r);
    }
    assert_int_equal(mica_compare_judge(&c, &ratio, &err), MICA_OK);
    assert_int_equal(c.n, 1);
    assert_true(c.metric[0].ratio.ratio > 0.951 && c.metric[0].ratio.ratio < 0.954); /* 1 / 1.05 */
    assert_int_equal(mica_compare_better(&c.metric[0]), 'a');
    ratio.margin = 0.10;
    assert_int_equal(mica_compare_judge(&c, &ratio, &err), MICA_OK);
    assert_int_equal(mica_compare_better(&c.metric[0]), '=');
    mica_comparison_free(&c);
}

/* ---- The public functions ---- */

static void count_progress(void *user, const mica_bench_progress *p)
{
    assert_true(p->at >= 0 && p->at < p->n && p->done >= 0.0 && p->done <= 1.0 && p->phase && p->note);
    ++*(int *)user;
}

static void test_public(void **state)
{
    (void)state;
    world w;
    int told = 0;
    char *archive, *complaints;
    begin(&w);
    mica_bench_options o = mica_bench_options_default();
    fake_folder(&w.tree, "good", FAKE_LIMITS);
    o.adapter = w.tree.root;
    o.model = w.scripted;
    o.protocol = short_protocol;
    o.protocol_length = strlen(short_protocol);
    o.conditions = "{\"ambient_c\": \"20\"}";
    o.on_progress = count_progress;
    o.user = &told;
    assert_int_equal(mica_bench_run(&o, &archive, &w.err), MICA_OK);
    assert_true(told >= 10);
    assert_int_equal(mica_bench_verify(archive, strlen(archive), &complaints, &w.err), MICA_OK);
    assert_string_equal(complaints, "[]");
    mica_free(complaints);
    char *figure_at = strstr(archive, "\"ttft_200_n\":3");
    assert_non_null(figure_at);
    figure_at[strlen("\"ttft_200_n\":")] = '4';
    assert_int_equal(mica_bench_verify(archive, strlen(archive), &complaints, &w.err), MICA_OK);
    assert_non_null(strstr(complaints, "ttft_200_n: reported 4, computed 3"));
    mica_free(complaints);
    assert_int_equal(mica_bench_verify(archive, strlen(archive) / 2, &complaints, &w.err), MICA_BAD_TEXT);
    mica_free(archive);
    o.backend = "npu";
    fake_folder(&w.tree, "lying_backend", FAKE_LIMITS);
    assert_int_equal(mica_bench_run(&o, &archive, &w.err), MICA_UNSUPPORTED); /* and the record of it is there */
    assert_non_null(strstr(archive, "\"fault\":\"backend\""));
    mica_free(archive);
    o.conditions = "[]";
    assert_int_equal(mica_bench_run(&o, &archive, &w.err), MICA_BAD_TEXT);
    o.struct_size = 1;
    assert_int_equal(mica_bench_run(&o, &archive, &w.err), MICA_INVALID_ARGUMENT);
    assert_null(archive);
    finish(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fake),
        cmocka_unit_test(test_own_engine),
        cmocka_unit_test(test_failures_are_kept),
        cmocka_unit_test(test_fallback_is_in_the_name),
        cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_compare_live),
        cmocka_unit_test(test_compare_stored),
        cmocka_unit_test(test_public),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
