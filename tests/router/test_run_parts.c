/* What a request goes through on its way to a rung: its body, marks for personal data and back, the check of a reply. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router/run_body.h"
#include "router/run_check.h"
#include "router/run_redact.h"
#include "router/run_settings.h"
#include "router/run_try.h"

static mica_error err;

static mica_status read_body(const char *json, mica_run_body *body)
{
    return mica_run_body_read(json, strlen(json), body, &err);
}

/* ---- Bodies ---- */

static void test_body(void **state)
{
    (void)state;
    mica_run_body b;
    assert_int_equal(
        read_body("{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                  "\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]},{\"role\":\"assistant\",\"content\":\"c\"}],"
                  "\"max_tokens\":5,\"max_completion_tokens\":7}",
                  &b),
        MICA_OK);
    assert_string_equal(b.user_text, "ab");
    assert_int_equal(b.max_tokens, 7);
    assert_null(b.schema);
    mica_run_body_free(&b);
}

static void test_body_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"messages\":{}}",
        "{\"messages\":[1]}",
        "{\"messages\":[{\"role\":\"user\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":1}]}",
        "{\"messages\":[{\"role\":5,\"content\":\"x\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"max_tokens\":\"many\"}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"json_schema\"}}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"messages\":[]}",
    };
    mica_run_body b;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(read_body(bad[i], &b), MICA_OK);
        assert_null(b.request);
        assert_true(strlen(err.message) > 10);
    }
}

static void test_body_for_a_server(void **state)
{
    (void)state;
    size_t length;
    mica_run_body b;
    mica_endpoint e = {.stream = true, .model = "m"};
    assert_int_equal(
        read_body("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"model\":\"auto\",\"route\":{\"private\":false},"
                  "\"top_k\":4,\"stream\":false}",
                  &b),
        MICA_OK);
    char *text = mica_run_body_remote(&b, &e, mica_run_body_messages(&b, "Be brief."), 9, &length);
    json_t *o = json_loads(text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(o, "model")), "m");
    assert_int_equal(json_integer_value(json_object_get(o, "max_tokens")), 9);
    assert_int_equal(json_integer_value(json_object_get(o, "top_k")), 4); /* what we do not know is the server's business */
    assert_true(json_is_true(json_object_get(o, "stream")));
    assert_null(json_object_get(o, "route"));
    assert_int_equal(json_array_size(json_object_get(o, "messages")), 2);
    assert_int_equal(json_array_size(b.messages), 1); /* the request itself stays */
    json_decref(o);
    free(text);
    mica_run_body_free(&b);
}

static void test_words_before_a_system_message(void **state)
{
    (void)state;
    mica_run_body b;
    assert_int_equal(
        read_body("{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"x\"}]}", &b),
        MICA_OK);
    json_t *m = mica_run_body_messages(&b, "Be brief.");
    assert_int_equal(json_array_size(m), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(m, 0), "content")), "Be brief.\n\ns");
    json_decref(m);
    mica_run_body_free(&b);
}

/* ---- Personal data ---- */

static void restore_in_pieces(const json_t *marks, const char *text, size_t piece, const char *wanted)
{
    mica_restore r;
    mica_buf out;
    mica_buf_init(&out, 1000);
    mica_restore_start(&r, marks);
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at += piece)
        assert_true(mica_restore_feed(&r, text + at, piece < n - at ? piece : n - at, false, &out));
    assert_true(mica_restore_feed(&r, "", 0, true, &out));
    assert_int_equal(out.length, strlen(wanted));
    assert_memory_equal(out.data ? out.data : "", wanted, out.length);
    mica_buf_free(&out);
    mica_restore_free(&r);
}

static void test_restore(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"[A_1]", "ada"},
        {"x[A_1]y[A_2]", "xaday[A_2]"},
        {"[[A_1]]", "[ada]"},
        {"[A_1[A_1]", "[A_1ada"},
        {"[a_1]", "[a_1]"},
        {"[A_1", "[A_1"},
        {"[]", "[]"},
        {"", ""},
        {"[A 1] [B_12]", "[A 1] long \xC3\xA9"},
        {"[ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ]", "[ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ]"},
    };
    json_t *marks = json_pack("{s:s, s:s}", "[A_1]", "ada", "[B_12]", "long \xC3\xA9");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (size_t piece = 1; piece <= strlen(pairs[i][0]) + 1; piece++)
            restore_in_pieces(marks, pairs[i][0], piece, pairs[i][1]);
    json_decref(marks);
}

static const char rules[] =
    "{\"version\":1,\"kind\":\"redact\",\"name\":\"r\",\"detect\":[\"email\",\"phone\"],\"replacement\":\"[{type}]\"}";

static void test_redact_all_of_a_conversation(void **state)
{
    (void)state;
    mica_task *task;
    json_t *marks;
    assert_int_equal(mica_redact_rules(rules, &task, &err), MICA_OK);
    json_t *m = json_loads(
        "[{\"role\":\"user\",\"content\":\"I am ada@example.org\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
        "[{\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"to\\\":\\\"ada@example.org\\\",\\\"cc\\\":\\\"bob@example.org\\\"}"
        "\"}}]},"
        "{\"role\":\"tool\",\"content\":\"sent to bob@example.org\"}]",
        0, NULL);
    assert_int_equal(mica_redact_messages(task, m, &marks, &err), MICA_OK);
    char *text = json_dumps(m, JSON_COMPACT);
    assert_null(strstr(text, "example.org"));
    assert_non_null(strstr(text, "I am [EMAIL_1]"));
    assert_non_null(strstr(text, "sent to [EMAIL_2]"));
    assert_string_equal(json_string_value(json_object_get(marks, "[EMAIL_2]")), "bob@example.org");
    assert_int_equal(json_object_size(marks), 2);
    free(text);
    json_decref(m);
    json_decref(marks);
    mica_task_free(task);
}

static void test_redact_rules_only(void **state)
{
    (void)state;
    mica_task *task;
    assert_int_not_equal(mica_redact_rules("{\"version\":1,\"kind\":\"classify\",\"name\":\"c\"}", &task, &err), MICA_OK);
    assert_int_not_equal(mica_redact_rules("nothing", &task, &err), MICA_OK);
    assert_null(task);
}

/* ---- Replies against a schema ---- */

static bool allowed(const char *schema, const char *reply)
{
    char json[600];
    mica_run_body b;
    mica_constraint *check;
    mica_try t;
    snprintf(json, sizeof json,
             "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"response_format\":{\"type\":\"json_schema\","
             "\"json_schema\":{\"strict\":true,\"schema\":%s}}}",
             schema);
    assert_int_equal(read_body(json, &b), MICA_OK);
    assert_int_equal(mica_check_new(&b, &check, &err), MICA_OK);
    mica_try_init(&t);
    bool good = mica_check_reply(check, b.schema, reply, strlen(reply), &t);
    assert_true(good == (t.failure == MICA_FAILURE_NONE));
    mica_try_free(&t);
    mica_constraint_free(check);
    mica_run_body_free(&b);
    return good;
}

static void test_check(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"object\",\"properties\":{\"x\":{\"type\":\"string\"},\"y\":{\"type\":\"boolean\"}},\"required\":[\"x\",\"y\"],"
        "\"additionalProperties\":false}}},\"required\":[\"a\",\"b\"],\"additionalProperties\":false}";
    assert_true(allowed(schema, "{\"a\":1,\"b\":[]}"));
    assert_true(allowed(schema, " { \"b\" : [ {\"y\":true,\n\"x\":\"q\"} ] , \"a\":-4 } ")); /* blanks and order do not count */
    assert_false(allowed(schema, "{\"a\":1}"));
    assert_false(allowed(schema, "{\"a\":1.5,\"b\":[]}"));
    assert_false(allowed(schema, "{\"a\":1,\"b\":[{\"x\":\"q\"}]}"));
    assert_false(allowed(schema, "{\"a\":1,\"b\":[],\"c\":1}"));
    assert_false(allowed(schema, "{\"a\":1,\"b\":[]"));
    assert_false(allowed(schema, "```json\n{\"a\":1,\"b\":[]}\n```"));
    assert_false(allowed(schema, ""));
    assert_true(allowed("{\"enum\":[\"x\",\"y\"]}", "\"y\""));
    assert_false(allowed("{\"enum\":[\"x\",\"y\"]}", "\"z\""));
}

/* ---- What servers say ---- */

static void test_copies_are_clean(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"plain", "plain"},
        {"a\x01\n\x7f", "a   "},
        {"\xC3\xA9t\xC3\xA9", "\xC3\xA9t\xC3\xA9"},
        {"\xC3", "?"},
        {"\xF0\x9F\x99\x82", "\xF0\x9F\x99\x82"},
        {"\xED\xA0\x80", "???"},
        {"\xC0\x80x", "??x"},
        {"\xF4\x90\x80\x80", "????"},
    };
    char out[16];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        mica_try_copy(out, sizeof out, pairs[i][0]);
        assert_string_equal(out, pairs[i][1]);
    }
    mica_try_copy(out, 4, "a\xF0\x9F\x99\x82"); /* cut in the middle of a character */
    assert_string_equal(out, "a??");
}

/* ---- Endpoints ---- */

static void test_endpoints(void **state)
{
    (void)state;
    static const char *const good[] = {"https://a.example/v1", "http://a.example:8080", "http://[::1]:80/v1",
                                       "https://[2001:db8::1]/v1"};
    static const char *const bad[] = {"",
                                      "a.example",
                                      "ftp://a.example",
                                      "https://",
                                      "https:///v1",
                                      "http://:80/",
                                      "http://[::1",
                                      "https://user@a.example/",
                                      "https://a.example/?x",
                                      "https://a.example/#x",
                                      "https://a .example/",
                                      "https://a.example\\@b/"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(mica_endpoint_check(good[i], false, &err), MICA_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mica_endpoint_check(bad[i], false, &err), MICA_BAD_TEXT);
    assert_int_equal(mica_endpoint_check("http://a.example/v1", true, &err), MICA_BAD_TEXT);
    assert_int_equal(mica_endpoint_check("http://localhost.example/v1", true, &err), MICA_BAD_TEXT);
    assert_int_equal(mica_endpoint_check("https://a.example/v1", true, &err), MICA_OK);
    assert_int_equal(mica_endpoint_check("http://127.0.0.1:8080/v1", true, &err), MICA_OK);
    assert_int_equal(mica_endpoint_check("http://[::1]:8080/v1", true, &err), MICA_OK);
}

static void test_settings(void **state)
{
    (void)state;
    mica_run_settings s;
    mica_endpoint e;
    assert_int_equal(mica_run_settings_read(NULL, &s, &err), MICA_OK);
    assert_true(s.fallback && !s.buffer && s.hedge_ms == 0);
    json_t *o = json_pack("{s:i, s:b}", "hedge_ms", 200, "buffer", 1);
    assert_int_equal(mica_run_settings_read(o, &s, &err), MICA_OK);
    assert_true(s.hedge_ms == 200 && s.buffer && s.fallback);
    json_object_set_new(o, "hedge", json_integer(1)); /* misspelt */
    assert_int_not_equal(mica_run_settings_read(o, &s, &err), MICA_OK);
    assert_non_null(strstr(err.message, "hedge"));
    json_decref(o);
    o = json_pack("{s:s, s:s, s:s}", "url", "https://a.example/v1", "key_env", "K", "key_file", "f");
    assert_int_not_equal(mica_endpoint_read(o, "far", &e, &err), MICA_OK);
    assert_non_null(strstr(err.message, "far"));
    json_object_del(o, "key_file");
    assert_int_equal(mica_endpoint_read(o, "far", &e, &err), MICA_OK);
    assert_true(e.stream && e.connect_ms > 0 && e.idle_ms > 0 && e.total_ms > 0);
    json_decref(o);
}

static void test_backoff(void **state)
{
    (void)state;
    mica_run_settings s = {.backoff_ms = 100, .backoff_max_ms = 1000};
    static const int64_t whole[] = {100, 200, 400, 800, 1000, 1000};
    for (int64_t n = 0; n < 6; n++) {
        assert_int_equal(mica_run_backoff_ms(&s, n, 0), whole[n]);
        assert_int_equal(mica_run_backoff_ms(&s, n, 0.5), whole[n] * 3 / 4);
        assert_true(mica_run_backoff_ms(&s, n, 0.999999) >= whole[n] / 2);
    }
    assert_int_equal(mica_run_backoff_ms(&s, INT64_MAX, 0), 1000); /* no overflow */
    s.backoff_ms = 0;
    assert_int_equal(mica_run_backoff_ms(&s, 60, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_body),
        cmocka_unit_test(test_body_refused),
        cmocka_unit_test(test_body_for_a_server),
        cmocka_unit_test(test_words_before_a_system_message),
        cmocka_unit_test(test_restore),
        cmocka_unit_test(test_redact_all_of_a_conversation),
        cmocka_unit_test(test_redact_rules_only),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_copies_are_clean),
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_backoff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
