/* Records: what is in one, in words, and another policy on the same log, against sums made here. */
#include "route_util.h"

static mica_error err;

/* One decision with its outcome, as a line. */
static char *line_of(const mica_route_policy *policy, const char *id, mica_route_class value, const mica_route_outcome *outcome)
{
    mica_route_request r = mica_route_request_default();
    phone p;
    mica_route_decision d;
    char *line = NULL;
    size_t length = 0;
    phone_make(&p);
    p.state.time_ms = 1764540000000;
    r.id = id;
    r.route_class = value;
    r.prompt_tokens = 100;
    r.text = "my text";
    r.length = 7;
    if (mica_route_decide(policy, &r, &p.state, &d, &err) ||
        mica_route_record(policy, &d, &r, &p.state, outcome, &line, &length, &err))
        fail_msg("%s", err.message);
    assert_int_equal(strlen(line), length);
    assert_null(strchr(line, '\n'));
    return line;
}

static void test_record(void **state)
{
    (void)state;
    mica_route_policy *policy = policy_of(POLICY("true", ""));
    mica_route_outcome o = mica_route_outcome_default();
    o.ok = true;
    snprintf(o.rung, sizeof o.rung, "small");
    o.total_ms = 1234.5;
    o.n_attempts = 1;
    snprintf(o.attempts[0].rung, sizeof o.attempts[0].rung, "big");
    snprintf(o.attempts[0].result, sizeof o.attempts[0].result, "timeout");
    o.attempts[0].start_ms = 0;
    o.attempts[0].end_ms = 900;
    o.attempts[0].first_byte_ms = NAN;
    char *line = line_of(policy, "abc", MICA_CLASS_NARROW, &o);
    json_t *root = json_loads(line, 0, NULL);
    assert_non_null(root);
    assert_null(strstr(line, "my text")); /* not unless the policy says so */
    assert_int_equal(json_integer_value(json_object_get(root, "text_bytes")), 7);
    const json_t *d = json_object_get(root, "decision");
    assert_string_equal(json_string_value(json_object_get(d, "class")), "narrow");
    assert_int_equal(json_array_size(json_object_get(d, "order")), 3);
    assert_int_equal(json_array_size(json_object_get(d, "candidates")), 3);
    json_decref(root);
    char *words;
    size_t n;
    assert_int_equal(mica_route_explain(line, strlen(line), &words, &n, &err), MICA_OK);
    static const char *const wanted[] = {"request abc, 2025-11-30 22:00:00 UTC", "policy p 7", "8.00 GB of RAM",
                                         "narrow as the request says, so small, then big", "1. small, 0.554 GB",
                                         "tried big: timeout after 900 ms", "answered by small, 1.23 s in all"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(words, wanted[i]))
            fail_msg("%s\nis without \"%s\"", words, wanted[i]);
    mica_free(words);
    mica_free(line);
    mica_route_policy_release(policy);
    policy = policy_of(POLICY("true", ",\"log_text\":true"));
    line = line_of(policy, "abc", MICA_CLASS_NARROW, NULL);
    assert_non_null(strstr(line, "my text"));
    assert_non_null(strstr(line, "\"outcome\":null"));
    mica_free(line);
    mica_route_policy_release(policy);
}

/* A request that waits has not failed. */
static void test_held_in_words(void **state)
{
    (void)state;
    char *words;
    size_t n;
    mica_route_policy *policy = policy_of(POLICY("true", ""));
    mica_route_outcome o = mica_route_outcome_default();
    o.held = 7;
    char *line = line_of(policy, "abc", MICA_CLASS_NARROW, &o);
    assert_int_equal(mica_route_explain(line, strlen(line), &words, &n, &err), MICA_OK);
    assert_non_null(strstr(words, "outcome: held in the queue as 7 until the network returns"));
    assert_null(strstr(words, "failed"));
    mica_free(words);
    mica_free(line);
    o.held = 0;
    line = line_of(policy, "abc", MICA_CLASS_NARROW, &o);
    assert_int_equal(mica_route_explain(line, strlen(line), &words, &n, &err), MICA_OK);
    assert_non_null(strstr(words, "outcome: failed"));
    mica_free(words);
    mica_free(line);
    mica_route_policy_release(policy);
}

static void test_what_is_no_record(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "[]", "{}", "{\"record\":\"outcome\"}", "{\"record\":\"route\",\"schema\":1}",
                                        "{\"record\":\"route\",\"schema\":1,\"request\":{},\"state\":{},\"decision\":{}}",
                                        "{\"record\":\"route\",\"schema\":1,\"request\":{\"x\":1},\"state\":{},\"decision\":{\"class\":\"narrow\"}}"};
    char *words, *report;
    size_t n;
    mica_route_policy *policy = policy_of(POLICY("true", ""));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(mica_route_explain(wrong[i], strlen(wrong[i]), &words, &n, &err), MICA_OK);
        assert_true(strlen(err.message) > 10);
    }
    assert_int_equal(mica_route_replay("{}\n[]\nx\n", 8, policy, &report, &n, &err), MICA_BAD_TEXT);
    mica_route_policy_release(policy);
}

static void test_texts_that_are_no_utf8(void **state)
{
    (void)state;
    mica_route_request r = mica_route_request_default();
    phone p;
    mica_route_decision d;
    char *line;
    size_t n;
    phone_make(&p);
    mica_route_policy *policy = policy_of(POLICY("true", ""));
    r.task = "\xff";
    assert_int_equal(mica_route_decide(policy, &r, &p.state, &d, &err), MICA_OK);
    assert_int_equal(mica_route_record(policy, &d, &r, &p.state, NULL, &line, &n, &err), MICA_BAD_TEXT);
    mica_route_policy_release(policy);
}

/* ---- The log ---- */

static void test_log(void **state)
{
    (void)state;
    char path[] = "/tmp/mica-route-log-XXXXXX", id[33], other[33], data[100];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(mica_route_log_append(path, "{\"a\":1}", 7, &err), MICA_OK);
    assert_int_equal(mica_route_log_append(path, "{\"b\":2}", 7, &err), MICA_OK);
    FILE *file = fdopen(fd, "r");
    size_t n = fread(data, 1, sizeof data, file);
    assert_int_equal(n, 16);
    assert_memory_equal(data, "{\"a\":1}\n{\"b\":2}\n", 16);
    fclose(file);
    remove(path);
    assert_int_equal(mica_route_log_append("/nowhere/at/all", "x", 1, &err), MICA_IO_ERROR);
    assert_int_equal(mica_route_new_id(id, &err), MICA_OK);
    assert_int_equal(mica_route_new_id(other, &err), MICA_OK);
    assert_int_equal(strlen(id), 32);
    assert_string_not_equal(id, other);
}

/* ---- Replay ---- */

typedef struct log_text {
    char data[200000];
    size_t n;
} log_text;

static void add_line(log_text *log, char *line)
{
    log->n += (size_t)snprintf(log->data + log->n, sizeof log->data - log->n, "%s\n", line);
    assert_true(log->n < sizeof log->data);
    mica_free(line);
}

static void add_outcome(log_text *log, const char *id, const mica_route_outcome *o)
{
    char *line;
    size_t n;
    assert_int_equal(mica_route_outcome_line(id, o, &line, &n, &err), MICA_OK);
    add_line(log, line);
}

static const json_t *dimension(const json_t *report, const char *name)
{
    const json_t *list = json_object_get(report, "dimensions");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "name")), name) == 0)
            return json_array_get(list, i);
    fail_msg("no %s", name);
    return NULL;
}

static void expect(const json_t *object, const char *key, double wanted)
{
    double got = json_number_value(json_object_get(object, key));
    if (!(fabs(got - wanted) <= 1e-5 * fmax(fabs(wanted), 1e-6)))
        fail_msg("%s is %.9g, not %.9g", key, got, wanted);
}

/* Under the log's policy six complex requests went to the server and two narrow ones to small; the new one keeps all here. */
static void test_replay(void **state)
{
    (void)state;
    static log_text log;
    char id[16];
    char *report;
    size_t n;
    log.n = 0;
    mica_route_policy *old = policy_of(POLICY("true", ""));
    for (int i = 0; i < 8; i++) {
        mica_route_outcome o = mica_route_outcome_default();
        bool narrow = i >= 6;
        o.ok = true;
        snprintf(o.rung, sizeof o.rung, "%s", narrow ? "small" : "server");
        o.prompt_tokens = 100;
        o.output_tokens = 50;
        o.total_ms = narrow ? 3000 : 5000 + 100 * i; /* the server: 5.25 s in the middle; predicted is 700 + 50 / 50 = 1.7 s */
        o.usd = narrow ? NAN : 0.001;
        o.joules = narrow ? 9 : NAN;
        o.quality = narrow ? NAN : 0.8;
        snprintf(id, sizeof id, "r%d", i);
        if (i % 2) {
            add_line(&log, line_of(old, id, narrow ? MICA_CLASS_NARROW : MICA_CLASS_COMPLEX, &o));
        } else {
            add_line(&log, line_of(old, id, narrow ? MICA_CLASS_NARROW : MICA_CLASS_COMPLEX, NULL));
            add_outcome(&log, id, &o);
        }
    }
    static const char local[] =
        "{\"schema\":1,\"name\":\"local\",\"version\":\"2\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},\"ladder\":" LADDER
        ",\"classes\":{\"narrow\":{\"order\":\"smallest\",\"output_tokens\":100},\"complex\":{\"order\":\"ladder\",\"output_tokens\":500},"
        "\"unknown\":{\"order\":\"ladder\",\"output_tokens\":200}}}";
    mica_route_policy *new = policy_of(local);
    snprintf(log.data + log.n, sizeof log.data - log.n, "{\"record\":\"route\"}\n{torn");
    if (mica_route_replay(log.data, strlen(log.data), new, &report, &n, &err))
        fail_msg("%s", err.message);
    json_t *root = json_loads(report, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "records")), 8);
    assert_int_equal(json_integer_value(json_object_get(root, "with_outcome")), 8);
    assert_int_equal(json_integer_value(json_object_get(root, "same_choice")), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "damaged_lines")), 1);
    assert_int_equal(json_integer_value(json_object_get(root, "unreadable_records")), 1);
    /* big would take 2000 + 1000 + 5000 = 8 s each (nothing is measured of it); small was measured: 3 s. */
    const json_t *ms = dimension(root, "total_ms");
    expect(ms, "records", 8);
    expect(ms, "log_measured", 8);
    expect(ms, "new_measured", 2);
    double logged = (5000 + 5100 + 5200 + 5300 + 5400 + 5500 + 2 * 3000) / 8.0, chosen = (6 * 8000 + 2 * 3000) / 8.0;
    expect(ms, "log_mean", logged);
    expect(ms, "new_mean", chosen);
    /* The best of each complex one: small, 500 + 250 + 1250 = 2 s (twice measured: too few to correct it). */
    double best = (6 * 2000 + 2 * 3000) / 8.0;
    expect(ms, "best_mean", best);
    expect(ms, "log_regret", logged - best);
    expect(ms, "new_regret", chosen - best);
    const json_t *quality = dimension(root,
                                      "quality"); /* graded 0.8 by the log, big 0.5 by the ladder; narrow: small's 0.65, twice */
    expect(quality, "log_mean", (6 * 0.8 + 2 * 0.65) / 8);
    expect(quality, "new_mean", (6 * 0.5 + 2 * 0.65) / 8);
    expect(quality, "new_regret", (6 * 0.3 + 2 * 0.15) / 8); /* big would have been better for the narrow ones: 0.8 */
    const json_t *usd = dimension(root, "usd"); /* without a price of electricity only the log's side is known */
    expect(usd, "records", 0);
    json_decref(root);
    mica_free(report);
    mica_route_policy_release(old);
    mica_route_policy_release(new);
}

/* Where a rung answered five times, its predictions are corrected by what it really took. */
static void test_replay_corrects(void **state)
{
    (void)state;
    static log_text log;
    char *report;
    size_t n;
    log.n = 0;
    mica_route_policy *policy = policy_of(POLICY("true", ""));
    for (int i = 0; i < 6; i++) {
        char id[16];
        mica_route_outcome o = mica_route_outcome_default();
        snprintf(id, sizeof id, "r%d", i);
        o.ok = true;
        snprintf(o.rung, sizeof o.rung, "server");
        o.prompt_tokens = 100;
        o.output_tokens = 50;
        o.total_ms = 1700 * (i < 5 ? 2 : 9); /* twice what is predicted, once nine times: the median tells */
        add_line(&log, line_of(policy, id, MICA_CLASS_COMPLEX, i < 5 ? &o : NULL));
    }
    assert_int_equal(mica_route_replay(log.data, log.n, policy, &report, &n, &err), MICA_OK);
    json_t *root = json_loads(report, 0, NULL);
    const json_t *factors = json_object_get(root, "factors");
    expect(json_array_get(factors, 2), "total_ms", 2);
    expect(json_array_get(factors, 0), "total_ms", 1);
    const json_t *ms = dimension(root, "total_ms"); /* the sixth has no outcome: 700 + 500 / 50, doubled */
    expect(ms, "records", 6);
    expect(ms, "log_mean", (5 * 3400 + 2 * (700 + 10000)) / 6.0);
    json_decref(root);
    mica_free(report);
    mica_route_policy_release(policy);
}

/* What failed in the log fails again: the same policy has the same values, and another one loses the same time. */
static void test_replay_of_failures(void **state)
{
    (void)state;
    static log_text log;
    char *report;
    size_t n;
    mica_route_outcome o = mica_route_outcome_default();
    mica_route_policy *policy = policy_of(POLICY("true", ""));
    o.ok = true;
    snprintf(o.rung, sizeof o.rung, "big");
    o.prompt_tokens = 100;
    o.output_tokens = 50;
    o.total_ms = 9000;
    o.n_attempts = 2;
    snprintf(o.attempts[0].rung, sizeof o.attempts[0].rung, "small");
    snprintf(o.attempts[0].result, sizeof o.attempts[0].result, "no_memory");
    o.attempts[0].start_ms = 100;
    o.attempts[0].end_ms = 700;
    snprintf(o.attempts[1].rung, sizeof o.attempts[1].rung, "big");
    snprintf(o.attempts[1].result, sizeof o.attempts[1].result, "ok");
    log.n = 0;
    add_line(&log, line_of(policy, "a", MICA_CLASS_NARROW, &o)); /* small, big, server */
    assert_int_equal(mica_route_replay(log.data, log.n, policy, &report, &n, &err), MICA_OK);
    json_t *root = json_loads(report, 0, NULL);
    expect(dimension(root, "total_ms"), "log_mean", 9000);
    expect(dimension(root, "total_ms"), "new_mean", 9000);
    expect(dimension(root, "quality"), "difference", 0);
    assert_int_equal(json_integer_value(json_object_get(root, "same_choice")), 1);
    json_decref(root);
    mica_free(report);
    mica_route_policy_release(policy);
    /* small first, then the server: 600 ms are lost before 700 + 50 / 50. */
    policy = policy_of("{\"schema\":1,\"name\":\"p\",\"version\":\"2\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},"
                       "\"allow_egress\":true,\"ladder\":{\"schema\":1,\"name\":\"t\",\"version\":\"2\",\"rungs\":[" SMALL "," SERVER "]},"
                       "\"classes\":" CLASSES "}");
    assert_int_equal(mica_route_replay(log.data, log.n, policy, &report, &n, &err), MICA_OK);
    root = json_loads(report, 0, NULL);
    expect(dimension(root, "total_ms"), "records", 0); /* big is not in the new ladder: there is nothing to compare with */
    json_decref(root);
    mica_free(report);
    mica_route_policy_release(policy);
    policy = policy_of("{\"schema\":1,\"name\":\"p\",\"version\":\"2\",\"bytes_per_token\":4,\"memory\":{\"ram_fraction\":0.55},"
                       "\"allow_egress\":true,\"ladder\":{\"schema\":1,\"name\":\"t\",\"version\":\"2\",\"rungs\":[" SMALL "," SERVER "," BIG
                       "]},\"classes\":{\"narrow\":{\"order\":\"ladder\",\"output_tokens\":100},\"complex\":{\"order\":\"ladder\","
                       "\"output_tokens\":100},\"unknown\":{\"order\":\"ladder\",\"output_tokens\":100}}}");
    assert_int_equal(mica_route_replay(log.data, log.n, policy, &report, &n, &err), MICA_OK);
    root = json_loads(report, 0, NULL);
    expect(dimension(root, "total_ms"), "log_mean", 9000);
    expect(dimension(root, "total_ms"), "new_mean", 600 + 1700);
    json_decref(root);
    mica_free(report);
    mica_route_policy_release(policy);
}

/* ---- Requests as JSON ---- */

static void test_requests(void **state)
{
    (void)state;
    mica_route_request_file *file;
    static const char chat[] =
        "{\"model\":\"auto\",\"messages\":[{\"role\":\"system\",\"content\":\"Be kind.\"},{\"role\":\"user\",\"content\":\"first\"},"
        "{\"role\":\"assistant\",\"content\":\"yes\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"second\"},{\"type\":"
        "\"text\",\"text\":\"part\"}]}],\"max_tokens\":77,\"tools\":[{}],\"response_format\":{\"type\":\"json_schema\"},\"temperature\":0.5,"
        "\"route\":{\"task\":\"extract\",\"private\":true,\"max_usd\":0.5}}";
    assert_int_equal(mica_route_request_parse(chat, strlen(chat), &file, &err), MICA_OK);
    const mica_route_request *r = mica_route_request_of(file);
    assert_int_equal(r->length, 11);
    assert_memory_equal(r->text, "second\npart", 11);
    assert_int_equal(r->prompt_bytes, 8 + 5 + 3 + 11);
    assert_int_equal(r->output_tokens, 77);
    assert_true(r->has_tools && r->has_schema && r->is_private);
    assert_string_equal(r->task, "extract");
    assert_string_equal(r->rung, "auto");
    assert_true(r->max_usd > 0.4 && isnan(r->max_joules));
    mica_route_request_free(file);
    static const char *const wrong[] = {"[]", "{\"x\":1}", "{\"messages\":5}", "{\"private\":1}", "{\"prompt_tokens\":-1}",
                                        "{\"messages\":[],\"route\":{\"clas\":\"narrow\"}}", "{\"messages\":[],\"max_tokens\":-1}",
                                        "{\"text\":5}", "{\"class\":\"big\"}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (mica_route_request_parse(wrong[i], strlen(wrong[i]), &file, &err) == MICA_OK)
            fail_msg("%s was taken", wrong[i]);
        assert_null(file);
    }
}

static void test_states(void **state)
{
    (void)state;
    mica_route_state_file *file;
    static const char json[] = "{\"device\":{\"ram_bytes\":8000000000,\"thermal\":\"severe\",\"battery\":null},\"network\":false,"
                               "\"rungs\":[{\"name\":\"a\",\"file\":true,\"decode_tps\":12.5}]}";
    assert_int_equal(mica_route_state_parse(json, strlen(json), &file, &err), MICA_OK);
    const mica_route_state *s = mica_route_state_of(file);
    assert_int_equal(s->device.thermal, MICA_THERMAL_SEVERE);
    assert_true(isnan(s->device.battery));
    assert_int_equal(s->network, MICA_NO);
    assert_int_equal(s->metered, MICA_UNKNOWN);
    assert_int_equal(s->n_rungs, 1);
    assert_string_equal(s->rungs[0].name, "a");
    assert_true(s->rungs[0].decode_tps > 12.4 && s->rungs[0].resident == MICA_UNKNOWN);
    mica_route_state_free(file);
    static const char *const wrong[] = {"5", "{\"network\":1}", "{\"device\":{\"battery\":50}}", "{\"rungs\":[{}]}",
                                        "{\"device\":{\"thermal\":\"hot\"}}", "{\"rungs\":{}}", "{\"rungs\":[{\"name\":\"a\",\"watts\":-1}]}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (mica_route_state_parse(wrong[i], strlen(wrong[i]), &file, &err) == MICA_OK)
            fail_msg("%s was taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_held_in_words),
        cmocka_unit_test(test_what_is_no_record),
        cmocka_unit_test(test_texts_that_are_no_utf8),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_corrects),
        cmocka_unit_test(test_replay_of_failures),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
