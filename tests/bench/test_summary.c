/* Figures from records that are made by hand: every number has a closed form. Then verifying: any change of a figure or a
 * sample is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "bench/protocol.h"
#include "bench/slo.h"
#include "bench/summary.h"
#include "bench/verify.h"

#define MS 1000000LL
#define S  1000000000LL

static const char protocol_text[] =
    "{\"version\": 1, \"name\": \"made\", \"description\": \"by hand\", \"n_ctx\": 1024, \"cold_s\": 10, \"steady_s\": 20, "
    "\"ttft_ratio\": 1.5, \"phases\": [{\"kind\": \"load\", \"cache\": \"cold\"}, {\"kind\": \"ttft\", \"prompt\": 512, "
    "\"reply\": 2, "
    "\"repeat\": 5}, {\"kind\": \"ttft\", \"prompt\": 32, \"reply\": 2, \"repeat\": 5}, {\"kind\": \"decode\", \"prompt\": 32, "
    "\"reply\": "
    "100, \"min_s\": 60}]}";

typedef struct maker {
    mica_record record;
    int64_t now;
} maker;

static void begin(maker *m)
{
    json_t *head;
    m->now = 100 * S;
    assert_int_equal(mica_record_init(&m->record, NULL), MICA_OK);
    head = m->record.head;
    json_object_set_new(head, "protocol", json_loads(protocol_text, 0, NULL));
    json_object_set_new(head, "name", json_string("made cpu"));
    json_object_set_new(head, "state", json_string("done"));
    json_object_set_new(head, "loads", json_pack("[{s:s, s:f, s:f}]", "cache", "cold", "ms", 812.5, "resident_before", 0.0));
    json_object_set_new(
        head, "memory",
        json_pack("{s:i, s:i, s:i, s:i}", "peak_bytes", 5000, "anon_bytes", 1000, "file_bytes", 3900, "shared_bytes", -1));
    json_object_set_new(head, "loaded",
                        json_pack("{s:i, s:n, s:f}", "file_bytes", 4000, "weight_bytes", "bits_per_weight", 4.5));
}

/* A reply of n tokens, the first after `ttft`, one each `gap`. */
static void reply(maker *m, const char *phase, int32_t prompt, int64_t ttft, size_t n, int64_t gap, int64_t cached)
{
    int64_t *times = calloc(n + 1, sizeof *times), *tokens = calloc(n + 1, sizeof *tokens);
    for (size_t i = 0; i < n; i++)
        times[i] = m->now + ttft + (int64_t)i * gap;
    mica_series x = {.exact = true,
                     .prompt_asked = prompt,
                     .n_asked = (int32_t)n,
                     .started_ns = m->now,
                     .done_ns = times[n - 1],
                     .prompt_n = prompt,
                     .cached_n = cached,
                     .gen_n = (int64_t)n,
                     .reason = "length",
                     .n = n,
                     .times = times,
                     .tokens = tokens};
    snprintf(x.phase, sizeof x.phase, "%s", phase);
    m->now = x.done_ns + 1 * MS;
    assert_int_equal(mica_record_add(&m->record, &x, NULL), MICA_OK);
    free(times);
    free(tokens);
}

/* TTFT 512: 400, 410, ... 440 ms; 32: 50 ... 54; decode: 70 replies of 101 tokens, 10 ms each. */
static void standard(maker *m)
{
    begin(m);
    for (int i = 0; i < 5; i++)
        reply(m, "ttft_512", 512, (400 + 10 * i) * MS, 2, 10 * MS, 0);
    for (int i = 0; i < 5; i++)
        reply(m, "ttft_32", 32, (50 + i) * MS, 2, 10 * MS, 0);
    for (int i = 0; i < 70; i++)
        reply(m, "decode", 32, 50 * MS, 101, 10 * MS, 0);
}

static double number(const json_t *summary, const char *name)
{
    const json_t *value = json_object_get(summary, name);
    if (!json_is_number(value))
        fail_msg("%s is no number", name);
    return json_number_value(value);
}

static void near(const json_t *summary, const char *name, double wanted)
{
    double got = number(summary, name);
    if (fabs(got - wanted) > 1e-9 * fabs(wanted))
        fail_msg("%s is %.12g, not %.12g", name, got, wanted);
}

static bool has_text(const json_t *list, const char *part)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strstr(json_string_value(json_array_get(list, i)), part))
            return true;
    return false;
}

static json_t *summary_of(const maker *m)
{
    json_t *summary;
    mica_error err;
    if (mica_summary_make(&m->record, &summary, &err))
        fail_msg("%s", err.message);
    return summary;
}

static void test_figures(void **state)
{
    (void)state;
    maker m;
    standard(&m);
    json_t *s = summary_of(&m);
    near(s, "load_cold_ms", 812.5);
    assert_true(json_is_null(json_object_get(s, "load_warm_ms")));
    near(s, "ttft_512_ms", 420);
    near(s, "ttft_512_p95_ms", 438);
    near(s, "ttft_32_ms", 52);
    near(s, "ttft_512_n", 5);
    near(s, "prefill_512_tps", 512 / 0.420);
    near(s, "decode_tokens", 7001); /* one, and 100 more of each reply */
    near(s, "decode_s", 70);        /* the prompts between the replies are not in it */
    near(s, "decode_tps", 100);
    near(s, "cold_tps", 100);
    near(s, "steady_tps", 100);
    near(s, "tpot_ms", 10);
    near(s, "itl_p99_ms", 10);
    assert_true(json_is_null(json_object_get(s, "throttle_depth_pct"))); /* 70 s are too short to tell */
    near(s, "peak_rss_bytes", 5000);
    assert_true(json_is_null(json_object_get(s, "rss_shared_bytes")));
    assert_true(json_is_null(json_object_get(s, "energy_wh_per_1k")));
    assert_true(json_is_null(json_object_get(s, "weight_bytes")));
    assert_true(json_is_false(json_object_get(s, "sustained")));
    assert_int_equal(json_array_size(json_object_get(s, "problems")), 0);
    assert_true(has_text(json_object_get(s, "flags"), "not sustained"));
    json_decref(s);
    mica_record_free(&m.record);
}

static void test_cached_prompts_do_not_count(void **state)
{
    (void)state;
    maker m;
    standard(&m);
    reply(&m, "ttft_512", 512, 31 * MS, 2, 10 * MS, 511); /* the trap: 31 ms from a prefix cache */
    json_t *s = summary_of(&m);
    near(s, "ttft_512_ms", 420);
    near(s, "ttft_512_n", 5);
    assert_true(has_text(json_object_get(s, "flags"), "from a cache"));
    json_decref(s);
    mica_record_free(&m.record);
}

static void test_a_ttft_that_cannot_be(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    for (int i = 0; i < 5; i++)
        reply(&m, "ttft_512", 512, 60 * MS, 2, 10 * MS, -1); /* a cache that is not counted */
    for (int i = 0; i < 5; i++)
        reply(&m, "ttft_32", 32, 50 * MS, 2, 10 * MS, -1);
    json_t *s = summary_of(&m);
    assert_true(has_text(json_object_get(s, "problems"), "1.20 times"));
    json_decref(s);
    mica_record_free(&m.record);
}

static void test_chunks(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    reply(&m, "decode", 32, 50 * MS, 50, 30 * MS, 0);
    m.record.series[0].exact = false;
    m.record.series[0].gen_n = 148; /* by the engine's count: 147 gaps in 1.47 s */
    json_t *s = summary_of(&m);
    near(s, "decode_tps", 100);
    near(s, "decode_tokens", 148);
    assert_true(json_is_null(json_object_get(s, "itl_p50_ms")));
    assert_true(has_text(json_object_get(s, "flags"), "not tokens"));
    json_decref(s);
    mica_record_free(&m.record);
}

static void test_throttle_is_found(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    for (int i = 0; i < 240; i++) /* 240 s at 100 tok/s */
        reply(&m, "decode", 32, 50 * MS, 101, 10 * MS, 0);
    for (int i = 0; i < 240; i++) /* 300 s at 80 */
        reply(&m, "decode", 32, 50 * MS, 101, 12500000, 0);
    json_t *s = summary_of(&m);
    const json_t *step = json_object_get(s, "throttle");
    assert_true(fabs(number(s, "throttle_depth_pct") - 20) < 3);
    assert_true(fabs(number(step, "start_s") - 240) < 6);
    near(s, "steady_tps", 80);
    near(s, "cold_tps", 100);
    assert_true(has_text(json_object_get(s, "flags"), "throttled"));
    json_decref(s);
    mica_record_free(&m.record);
}

static void sample(maker *m, int64_t t, double other, json_int_t energy, json_int_t swap)
{
    json_array_append_new(m->record.samples,
                          json_pack("{s:I, s:f, s:[I], s:[I], s:I, s:{s:f}}", "t_ns", (json_int_t)t, "cpu_other", other,
                                    "energy_uj", energy, "energy_range_uj", (json_int_t)1000000, "swap_pages", swap, "temp_c",
                                    "cpu#0", 50.0 + other));
}

static void test_machine_and_energy(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    int64_t start = m.now;
    reply(&m, "decode", 32, 0, 1001, 10 * MS, 0); /* 10 s: a token at 0, 10 ms, ... */
    sample(&m, start - 1, 5.0, 0, 3);             /* before the phase: not in it */
    sample(&m, start, 0.0, 900000, 3);
    sample(&m, start + 5 * S, 0.5, 400000, 3);  /* wrapped around: 0.5 J */
    sample(&m, start + 10 * S, 1.0, 900000, 8); /* 0.5 J more */
    json_t *s = summary_of(&m);
    near(s, "power_w", 0.1);
    near(s, "energy_wh_per_1k", 1.0 / 3600.0); /* 1 J for 1000 tokens */
    near(s, "other_cpu", 0.75);                /* 0.5 for 5 s, 1.0 for 5 s */
    near(s, "hottest_c", 51);
    assert_true(has_text(json_object_get(s, "flags"), "other processes took 75 %"));
    assert_true(has_text(json_object_get(s, "flags"), "swapped 5 pages"));
    assert_non_null(strstr(json_string_value(json_object_get(s, "energy_source")), "RAPL"));
    json_decref(s);
    mica_record_free(&m.record);
}

static void test_roofline(void **state)
{
    (void)state;
    maker m;
    standard(&m);
    json_object_set_new(m.record.head, "roofline", json_pack("{s:f, s:f}", "read_bytes_per_s", 2e10, "decode_bytes", 1e8));
    json_t *s = summary_of(&m);
    near(s, "roofline_pct", 50); /* 100 tok/s x 100 MB of 20 GB/s */
    assert_false(has_text(json_object_get(s, "flags"), "read bandwidth"));
    json_decref(s);
    json_object_set_new(m.record.head, "roofline", json_pack("{s:f, s:f}", "read_bytes_per_s", 5e9, "decode_bytes", 1e8));
    s = summary_of(&m);
    near(s, "roofline_pct", 200);
    assert_true(has_text(json_object_get(s, "flags"), "read bandwidth"));
    json_decref(s);
    mica_record_free(&m.record);
}

static void test_empty_record(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    json_t *s = summary_of(&m);
    assert_true(json_is_null(json_object_get(s, "decode_tps")) && json_is_null(json_object_get(s, "ttft_512_ms")));
    json_decref(s);
    json_object_del(m.record.head, "protocol");
    assert_int_equal(mica_summary_make(&m.record, &s, NULL), MICA_BAD_FILE);
    mica_record_free(&m.record);
}

/* ---- Verifying ---- */

static size_t complaints_of(const mica_record *r)
{
    json_t *complaints = json_array();
    mica_error err;
    if (mica_verify_record(r, complaints, &err))
        fail_msg("%s", err.message);
    size_t n = json_array_size(complaints);
    json_decref(complaints);
    return n;
}

static void test_verify_finds_any_changed_figure(void **state)
{
    (void)state;
    maker m;
    const char *key;
    json_t *value;
    standard(&m);
    m.record.summary = summary_of(&m);
    assert_int_equal(complaints_of(&m.record), 0);
    json_t *good = json_deep_copy(m.record.summary);
    json_object_foreach(good, key, value)
    {
        json_t *other = json_is_number(value) ? json_real(json_number_value(value) * 1.000001 + 1e-6) : json_string("forged");
        json_object_set_new(m.record.summary, key, other);
        if (complaints_of(&m.record) == 0)
            fail_msg("a changed %s is not found", key);
        json_object_del(m.record.summary, key);
        if (complaints_of(&m.record) == 0)
            fail_msg("a missing %s is not found", key);
        json_object_set(m.record.summary, key, value);
    }
    json_object_set_new(m.record.summary, "bonus_tps", json_real(1e6));
    assert_int_equal(complaints_of(&m.record), 1);
    json_object_del(m.record.summary, "bonus_tps");
    assert_int_equal(complaints_of(&m.record), 0);
    json_decref(good);
    mica_record_free(&m.record);
}

static void test_verify_finds_changed_samples(void **state)
{
    (void)state;
    maker m;
    standard(&m);
    m.record.summary = summary_of(&m);
    mica_series *x = &m.record.series[40];
    x->times[50] -= 30 * MS; /* backwards */
    assert_true(complaints_of(&m.record) > 0);
    x->times[50] += 30 * MS;
    x->times[100] -= 1 * MS; /* a faster reply */
    assert_true(complaints_of(&m.record) > 0);
    x->times[100] += 1 * MS;
    x->gen_n++;
    assert_true(complaints_of(&m.record) > 0);
    x->gen_n--;
    x->started_ns -= 10 * S; /* before the reply in front of it ended */
    assert_true(complaints_of(&m.record) > 0);
    x->started_ns += 10 * S;
    assert_int_equal(complaints_of(&m.record), 0);
    m.record.n_series--; /* a slow reply left out */
    assert_true(complaints_of(&m.record) > 0);
    m.record.n_series++;
    mica_record_free(&m.record);
}

/* ---- Limits ---- */

static bool keeps(const char *slo_text, const json_t *summary, const char *says)
{
    json_t *slo = json_loads(slo_text, 0, NULL), *broken = json_array();
    mica_error err;
    assert_int_equal(mica_slo_check(slo, &err), MICA_OK);
    bool kept = mica_slo_judge(slo, summary, broken);
    assert_true(kept || has_text(broken, says));
    json_decref(slo);
    json_decref(broken);
    return kept;
}

static void test_limits(void **state)
{
    (void)state;
    maker m;
    mica_error err;
    standard(&m);
    json_t *s = summary_of(&m);
    assert_true(keeps("{\"version\": 1, \"limits\": [{\"metric\": \"steady_tps\", \"min\": 99}, {\"metric\": "
                      "\"ttft_512_p95_ms\", \"max\": 438.1}]}",
                      s, ""));
    assert_false(
        keeps("{\"version\": 1, \"limits\": [{\"metric\": \"steady_tps\", \"min\": 101}]}", s, "steady_tps is 100, below 101"));
    assert_false(keeps("{\"version\": 1, \"limits\": [{\"metric\": \"peak_rss_bytes\", \"max\": 4999}]}", s,
                       "peak_rss_bytes is 5000, above 4999"));
    assert_false(keeps("{\"version\": 1, \"limits\": [{\"metric\": \"energy_wh_per_1k\", \"max\": 1}]}", s, "is not known"));
    assert_false(keeps("{\"version\": 1, \"limits\": [{\"metric\": \"typo_tps\", \"min\": 0}]}", s, "is not known"));
    static const char *const bad[] = {"{}", "{\"version\": 1, \"limits\": []}",
                                      "{\"version\": 1, \"limits\": [{\"metric\": \"x\"}]}",
                                      "{\"version\": 1, \"limits\": [{\"metric\": \"x\", \"min\": \"1\"}]}",
                                      "{\"version\": 1, \"limits\": [{\"metric\": \"x\", \"min\": 1, \"mx\": 2}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *slo = json_loads(bad[i], 0, NULL);
        assert_int_equal(mica_slo_check(slo, &err), MICA_BAD_TEXT);
        json_decref(slo);
    }
    json_decref(s);
    mica_record_free(&m.record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_cached_prompts_do_not_count),
        cmocka_unit_test(test_a_ttft_that_cannot_be),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_throttle_is_found),
        cmocka_unit_test(test_machine_and_energy),
        cmocka_unit_test(test_roofline),
        cmocka_unit_test(test_empty_record),
        cmocka_unit_test(test_verify_finds_any_changed_figure),
        cmocka_unit_test(test_verify_finds_changed_samples),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
