/* test_task.c - tasks on models without weight: definitions, exact scores, parts of long texts, what is kept and what is
 * replaced. */
#include <math.h>
#include <unistd.h>

#include "base/rng.h"
#include "mica/mica_tasks.h"
#include "model_util.h"
#include "random_model.h"
#include "text/utf8.h"

#define SCRIPTED MICA_TEST_DATA "/cases/_common/scripted.gguf"

/* ---- Helpers ---- */

static mica_task *make_task(mica_model *model, const char *definition)
{
    mica_task *task;
    mica_error err;
    if (mica_task_new(model, definition, strlen(definition), &task, &err))
        fail_msg("%s", err.message);
    return task;
}

/* Runs on a text; the result is the caller's. */
static json_t *run_task(mica_task *task, mica_session *session, const char *text, size_t length)
{
    mica_task_input input = mica_task_input_default();
    mica_error err;
    char *result;
    size_t n;
    input.text = text;
    input.length = length;
    if (mica_task_run(task, session, &input, &result, &n, &err))
        fail_msg("%s", err.message);
    assert_int_equal(strlen(result), n);
    json_t *object = json_loadb(result, n, JSON_ALLOW_NUL, NULL);
    assert_non_null(object);
    mica_free(result);
    return object;
}

static json_int_t usage_of(const json_t *result, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(result, "usage"), key));
}

static void expect_close(double a, double b, double within)
{
    if (!(fabs(a - b) <= within))
        fail_msg("%.9f is not %.9f", a, b);
}

/* ---- Definitions ---- */

static void expect_refused(const char *definition, const char *named)
{
    mica_task *task;
    mica_error err = {.message = ""};
    mica_status status = mica_task_new(NULL, definition, strlen(definition), &task, &err);
    assert_null(task);
    if (status == MICA_OK || status == MICA_OUT_OF_MEMORY || !strstr(err.message, named))
        fail_msg("%s: \"%s\" does not name %s", definition, err.message, named);
}

#define CLASSIFY(fields) "{\"version\":1,\"kind\":\"classify\",\"name\":\"x\"," fields "}"
#define PROMPT           "\"prompt\":{\"text\":\"{input}\"}"
#define LABELS           "\"labels\":[\"a\",\"b\"]"

static void test_refused_definitions(void **state)
{
    (void)state;
    expect_refused("", "not JSON");
    expect_refused("[1]", "object");
    expect_refused("{\"version\":1,", "line 1");
    expect_refused("{\"version\":1,\"kind\":\"translate\",\"name\":\"x\"}", "\"kind\"");
    expect_refused("{\"kind\":\"redact\",\"name\":\"x\"}", "\"version\"");
    expect_refused("{\"version\":2,\"kind\":\"redact\",\"name\":\"x\"}", "\"version\"");
    expect_refused("{\"version\":1,\"kind\":\"redact\",\"name\":7}", "\"name\"");
    expect_refused("{\"version\":1,\"kind\":\"redact\",\"name\":\"x\",\"detect\":[\"shoe\"]}", "shoe");
    expect_refused("{\"version\":1,\"kind\":\"redact\",\"name\":\"x\",\"labels\":[\"a\",\"b\"]}", "\"labels\"");
    expect_refused("{\"version\":1,\"kind\":\"redact\",\"name\":\"x\",\"model\":{}}", "model.prompt");
    expect_refused("{\"version\":1,\"kind\":\"redact\",\"name\":\"x\",\"model\":{" PROMPT ",\"types\":{}}}", "model.types");
    expect_refused("{\"version\":1,\"kind\":\"complete\",\"name\":\"x\",\"max_tokens\":0}", "\"max_tokens\"");
    expect_refused("{\"version\":1,\"kind\":\"complete\",\"name\":\"x\",\"stop\":[1]}", "\"stop\"");
    expect_refused("{\"version\":1,\"kind\":\"complete\",\"name\":\"x\"}", "needs a model");
    expect_refused("{\"version\":1,\"kind\":\"route\",\"name\":\"x\"," PROMPT "," LABELS "}", "\"threshold\"");
    expect_refused(CLASSIFY(PROMPT), "\"labels\"");
    expect_refused(CLASSIFY(LABELS), "\"prompt\"");
    expect_refused(CLASSIFY(PROMPT ",\"labels\":[\"a\"]"), "\"labels\"");
    expect_refused(CLASSIFY(PROMPT ",\"labels\":[\"a\",\"a\"]"), "twice");
    expect_refused(CLASSIFY(PROMPT ",\"labels\":[\"a\",\"\"]"), "empty");
    expect_refused(CLASSIFY(PROMPT ",\"labels\":[\"a\",{\"lable\":\"b\"}]"), "lable");
    expect_refused(CLASSIFY(PROMPT "," LABELS ",\"treshold\":0.5"), "treshold");
    expect_refused(CLASSIFY(PROMPT "," LABELS ",\"normalise\":\"yes\""), "\"normalise\"");
    expect_refused(CLASSIFY(LABELS ",\"prompt\":{\"text\":\"no place\"}"), "{input}");
    expect_refused(CLASSIFY(LABELS ",\"prompt\":{\"text\":\"{input}{input}\"}"), "{input}");
    expect_refused(CLASSIFY(LABELS ",\"prompt\":{\"text\":\"{input}\",\"examples\":[{\"input\":\"a\"}]}"), "output");
    expect_refused("{\"version\":1,\"version\":1,\"kind\":\"redact\",\"name\":\"x\"}", "version");
}

static void test_info(void **state)
{
    mica_task_info info;
    (void)state;
    mica_task *task = make_task(NULL, "{\"version\":1,\"kind\":\"redact\",\"name\":\"mine\",\"description\":\"d\"}");
    mica_task_get_info(task, &info);
    assert_int_equal(info.kind, MICA_TASK_REDACT);
    assert_string_equal(info.name, "mine");
    assert_string_equal(info.description, "d");
    assert_false(info.needs_model);
    assert_string_equal(mica_task_kind_name(MICA_TASK_SUMMARISE), "summarise");
    assert_null(mica_task_kind_name((mica_task_kind)99));
    mica_task_free(task);
    mica_task_free(NULL);
}

/* ---- Classify ---- */

/* After "D" the scripted model says p1, p2, p3 with 0.6, 0.3 and 0.1. */
#define THREE(more)                                                                                                            \
    "{\"version\":1,\"kind\":\"classify\",\"name\":\"x\",\"prompt\":{\"text\":\"{input}D\",\"chat\":false},\"label_prefix\":"  \
    "\"\","                                                                                                                    \
    "\"labels\":[\"p3\",\"p1\",{\"label\":\"two\",\"text\":\"p2\"}]" more "}"

static void expect_score(const json_t *result, size_t i, const char *label, double logprob, double probability)
{
    const json_t *s = json_array_get(json_object_get(result, "scores"), i);
    assert_string_equal(json_string_value(json_object_get(s, "label")), label);
    expect_close(json_number_value(json_object_get(s, "logprob")), logprob, 1e-4);
    expect_close(json_number_value(json_object_get(s, "probability")), probability, 1e-4);
    assert_int_equal(json_integer_value(json_object_get(s, "tokens")), 1);
}

static void test_exact_scores(void **state)
{
    (void)state;
    mica_model *model = open_model(SCRIPTED, NULL);
    mica_session *session = open_session(model, 256, 1, 0);
    mica_task *task = make_task(model, THREE(""));
    json_t *result = run_task(task, session, "hello ", 6);
    assert_string_equal(json_string_value(json_object_get(result, "label")), "p1");
    expect_score(result, 0, "p1", log(0.6), 0.6);
    expect_score(result, 1, "two", log(0.3), 0.3);
    expect_score(result, 2, "p3", log(0.1), 0.1);
    json_decref(result);
    mica_task_free(task);

    task = make_task(model, THREE(",\"calibrate\":[\"\"]")); /* the input makes no difference here: all that is left is even */
    result = run_task(task, session, "hello ", 6);
    for (size_t i = 0; i < 3; i++)
        expect_close(json_number_value(json_object_get(json_array_get(json_object_get(result, "scores"), i), "probability")),
                     1.0 / 3, 1e-4);
    json_decref(result);
    mica_task_free(task);
    mica_session_free(session);
    mica_model_close(model);
}

static void test_route_threshold(void **state)
{
    (void)state;
    mica_model *model = open_model(SCRIPTED, NULL);
    mica_session *session = open_session(model, 256, 1, 0);
    for (int i = 0; i < 2; i++) {
        char definition[512];
        snprintf(definition, sizeof definition,
                 "{\"version\":1,\"kind\":\"route\",\"name\":\"x\",\"prompt\":{\"text\":\"{input}D\",\"chat\":false},\"label_"
                 "prefix\":\"\","
                 "\"labels\":[\"p3\",\"p1\",\"p2\"],\"threshold\":%s,\"none\":\"nobody\"}",
                 i ? "0.61" : "0.59");
        mica_task *task = make_task(model, definition);
        json_t *result = run_task(task, session, "", 0);
        assert_string_equal(json_string_value(json_object_get(result, "label")), i ? "nobody" : "p1");
        json_decref(result);
        mica_task_free(task);
    }
    mica_session_free(session);
    mica_model_close(model);
}

/* log softmax(logits)[token], the plain way */
static double plain_logprob(const float *logits, int32_t n, int32_t token)
{
    double sum = 0.0;
    for (int32_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - (double)logits[token]);
    return -log(sum);
}

/* The score of a label computed without any sharing. */
static double plain_score(mica_model *model, const char *prompt, const char *label)
{
    char text[256];
    int32_t *all, *bare;
    size_t n, n_bare;
    double score = 0.0;
    mica_session *session = open_session(model, 256, 1, 0);
    mica_model_info info;
    mica_error err;
    mica_model_get_info(model, &info);
    snprintf(text, sizeof text, "%s%s", prompt, label);
    assert_int_equal(mica_model_tokenize(model, text, strlen(text), 0, &all, &n, &err), MICA_OK);
    assert_int_equal(mica_model_tokenize(model, prompt, strlen(prompt), 0, &bare, &n_bare, &err), MICA_OK);
    for (size_t at = n_bare; at < n; at++) {
        assert_int_equal(mica_session_sync(session, all, at, &err), MICA_OK);
        score += plain_logprob(mica_session_logits(session), info.n_vocab, all[at]);
    }
    mica_free(all);
    mica_free(bare);
    mica_session_free(session);
    return score;
}

/* Labels that share beginnings, one a beginning of another: scored once for each place, as if each were alone. */
static void test_shared_labels(void **state)
{
    char path[] = "/tmp/mica-test-task-XXXXXX";
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(write_random_model(path, MICA_TYPE_F16));
    mica_model *model = open_model(path, NULL);
    mica_session *session = open_session(model, 256, 1, 0);
    mica_task *task =
        make_task(model, "{\"version\":1,\"kind\":\"classify\",\"name\":\"x\",\"prompt\":{\"text\":\"Text: {input} Label:\"},"
                         "\"label_prefix\":\"\",\"labels\":[\"abc\",\"abd\",\"ab\",\"b\",\"abcd\"],\"normalise\":true}");
    json_t *first = run_task(task, session, "some input", 10), *again;
    for (size_t i = 0; i < 5; i++) {
        const json_t *s = json_array_get(json_object_get(first, "scores"), i);
        const char *label = json_string_value(json_object_get(s, "label"));
        expect_close(json_number_value(json_object_get(s, "logprob")), plain_score(model, "Text: some input Label:", label),
                     1e-4);
        assert_int_equal(json_integer_value(json_object_get(s, "tokens")), strlen(label));
    }
    /* the prompt once, then the places a, ab, abc of the tree */
    int32_t *tokens;
    size_t n;
    assert_int_equal(mica_model_tokenize(model, "Text: some input Label:", 23, 0, &tokens, &n, NULL), MICA_OK);
    mica_free(tokens);
    assert_int_equal(usage_of(first, "computed_tokens"), n + 3);
    again = run_task(task, session, "some other text", 15);
    assert_true(usage_of(again, "cached_tokens") >= 6); /* "Text: " at the least, from the run before */
    json_decref(again);
    again = run_task(task, session, "some input", 10);
    assert_true(json_equal(json_object_get(first, "scores"), json_object_get(again, "scores"))); /* bit for bit */
    json_decref(again);
    json_decref(first);
    mica_task_free(task);
    mica_session_free(session);
    mica_model_close(model);
    unlink(path);
}

/* ---- Summarise ---- */

/* The prompt ends with R, after which the scripted model says "red fox" and ends. */
#define FOX                                                                                                                    \
    "{\"version\":1,\"kind\":\"summarise\",\"name\":\"x\",\"prompt\":{\"text\":\"{input}R\",\"chat\":false},\"max_tokens\":"   \
    "20}"

static void test_parts(void **state)
{
    (void)state;
    mica_model *model = open_model(SCRIPTED, NULL);
    mica_session *session = open_session(model, 128, 1, 0);
    mica_task *task = make_task(model, FOX);
    char text[4000];
    for (size_t length = 0; length < sizeof text; length += 331) {
        for (size_t i = 0; i < length; i++)
            text[i] = i % 97 == 96 ? '\n' : i % 29 == 28 ? '.' : i % 7 == 6 ? ' ' : (char)('a' + i % 26);
        json_t *result = run_task(task, session, text, length), *parts = json_object_get(result, "parts");
        json_int_t at = 0;
        for (size_t i = 0; i < json_array_size(parts); i++) {
            const json_t *part = json_array_get(parts, i);
            assert_int_equal(json_integer_value(json_object_get(part, "start")), at);
            assert_true(json_integer_value(json_object_get(part, "end")) > at);
            at = json_integer_value(json_object_get(part, "end"));
        }
        assert_int_equal(at, length);
        assert_true(length < 50 || length > 1000 || json_array_size(parts) > 1 || length < 108);
        assert_int_equal(json_integer_value(json_object_get(result, "levels")) > 1, json_array_size(parts) > 1);
        assert_string_equal(json_string_value(json_object_get(result, "summary")), "red fox");
        assert_true(json_is_true(json_object_get(result, "complete")));
        json_decref(result);
    }
    mica_task_free(task);
    mica_session_free(session);
    mica_model_close(model);
}

static void test_bounds(void **state)
{
    (void)state;
    mica_model *model = open_model(SCRIPTED, NULL);
    mica_session *session = open_session(model, 128, 1, 0);
    /* "Mars?\nBob": one sentence is enough */
    mica_task *task = make_task(
        model, "{\"version\":1,\"kind\":\"summarise\",\"name\":\"x\",\"prompt\":{\"text\":\"{input}Q\",\"chat\":false},"
               "\"max_tokens\":20,\"max_sentences\":1}");
    json_t *result = run_task(task, session, "a", 1);
    assert_string_equal(json_string_value(json_object_get(result, "summary")), "Mars?");
    assert_int_equal(json_integer_value(json_object_get(result, "sentences")), 1);
    assert_true(json_is_true(json_object_get(result, "complete")));
    json_decref(result);
    mica_task_free(task);
    /* "xxxx..." for ever: max_tokens ends it, and the result says so */
    task = make_task(model,
                     "{\"version\":1,\"kind\":\"summarise\",\"name\":\"x\",\"prompt\":{\"text\":\"{input}X\",\"chat\":false},"
                     "\"max_tokens\":5}");
    result = run_task(task, session, "a", 1);
    assert_string_equal(json_string_value(json_object_get(result, "summary")), "xxxxx");
    assert_true(json_is_false(json_object_get(result, "complete")));
    assert_int_equal(json_integer_value(json_object_get(result, "cut_replies")), 1);
    json_decref(result);
    mica_task_free(task);
    mica_session_free(session);
    mica_model_close(model);
}

static void test_too_small(void **state)
{
    mica_task_input input = mica_task_input_default();
    mica_error err;
    char *result;
    size_t n;
    (void)state;
    mica_model *model = open_model(SCRIPTED, NULL);
    mica_session *session = open_session(model, 16, 1, 0);
    mica_task *task = make_task(model, FOX);
    input.text = "abc";
    input.length = 3;
    assert_int_equal(mica_task_run(task, session, &input, &result, &n, &err), MICA_CONTEXT_FULL);
    assert_null(result);
    mica_task_free(task);
    mica_session_free(session);
    mica_model_close(model);
}

/* ---- Extract ---- */

static void test_extract(void **state)
{
    (void)state;
    mica_model *model = open_model(SCRIPTED, NULL);
    mica_session *session = open_session(model, 256, 1, 0);
    mica_task *task =
        make_task(model, "{\"version\":1,\"kind\":\"extract\",\"name\":\"x\",\"prompt\":{\"text\":\"{input}\",\"chat\":false},"
                         "\"schema\":{\"type\":\"object\",\"properties\":{\"who\":{\"enum\":[\"Bob\"]},\"list\":{\"type\":"
                         "\"array\",\"items\":{\"const\":\"x/~\"},\"minItems\":2,\"maxItems\":2}},\"required\":[\"who\","
                         "\"list\"],\"additionalProperties\":false},\"max_tokens\":60}");
    json_t *result = run_task(task, session, "äbob x/~", 9), *spans = json_object_get(result, "spans");
    json_t *data = json_loads("{\"who\":\"Bob\",\"list\":[\"x/~\",\"x/~\"]}", 0, NULL);
    assert_true(json_equal(json_object_get(result, "data"), data));
    assert_int_equal(json_array_size(spans), 3);
    const json_t *who = json_array_get(spans, 0), *second = json_array_get(spans, 2);
    assert_string_equal(json_string_value(json_object_get(who, "path")), "/who");
    assert_string_equal(json_string_value(json_object_get(who, "match")), "loose");
    assert_int_equal(json_integer_value(json_object_get(who, "start")), 2);
    assert_int_equal(json_integer_value(json_object_get(who, "char_start")), 1);
    assert_int_equal(json_integer_value(json_object_get(who, "end")), 5);
    assert_string_equal(json_string_value(json_object_get(second, "path")), "/list/1");
    assert_string_equal(json_string_value(json_object_get(second, "match")), "exact");
    json_decref(result);
    result = run_task(task, session, "nobody", 6);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(result, "spans"), 0), "match")));
    assert_null(json_object_get(json_array_get(json_object_get(result, "spans"), 0), "start"));
    json_decref(result);
    json_decref(data);
    mica_task_free(task);
    mica_session_free(session);
    mica_model_close(model);
}

/* ---- Redact ---- */

/* What lies outside of the spans is the input, byte for byte; what lies in them is the replacement. */
static void check_redacted(const char *text, size_t length, const json_t *result)
{
    const json_t *out = json_object_get(result, "text"), *spans = json_object_get(result, "spans");
    const char *redacted = json_string_value(out);
    size_t at = 0, to = 0, left = json_string_length(out), i;
    json_t *span;
    json_array_foreach((json_t *)spans, i, span)
    {
        char replacement[64];
        size_t start = (size_t)json_integer_value(json_object_get(span, "start"));
        size_t end = (size_t)json_integer_value(json_object_get(span, "end"));
        size_t n = (size_t)snprintf(replacement, sizeof replacement, "<%s>", json_string_value(json_object_get(span, "type")));
        assert_true(start >= at && end > start && end <= length && left - to >= start - at + n);
        assert_memory_equal(redacted + to, text + at, start - at);
        assert_memory_equal(redacted + to + (start - at), replacement, n);
        to += start - at + n;
        at = end;
    }
    assert_int_equal(left - to, length - at);
    assert_memory_equal(redacted + to, text + at, length - at);
}

static void test_redact_keeps_the_rest(void **state)
{
    static const char *const parts[] = {"a@b.de",
                                        "+44 20 7946 0958",
                                        "10.0.0.1",
                                        "2020-01-02",
                                        "4111 1111 1111 1111",
                                        "ä",
                                        "\n",
                                        " ",
                                        "word",
                                        "\"",
                                        "\\",
                                        ".",
                                        "1",
                                        "DE89370400440532013000",
                                        "[EMAIL]",
                                        "日本",
                                        "\xC2\xA0",
                                        "{type}",
                                        "\x01"};
    char text[2048];
    mica_rng rng;
    (void)state;
    mica_rng_seed(&rng, 3);
    mica_task *task = make_task(NULL, "{\"version\":1,\"kind\":\"redact\",\"name\":\"x\",\"replacement\":\"<{type}>\","
                                      "\"detect\":[\"email\",\"phone\",\"iban\",\"card\",\"ip\",\"date\"]}");
    size_t found = 0;
    for (int round = 0; round < 500; round++) {
        size_t n = 0, count = mica_rng_next(&rng) % 40;
        for (size_t i = 0; i < count; i++) {
            const char *part = parts[mica_rng_next(&rng) % (sizeof parts / sizeof *parts)];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
            if (mica_rng_next(&rng) % 2)
                text[n++] = mica_rng_next(&rng) % 16 ? ' ' : '\0';
        }
        json_t *result = run_task(task, NULL, text, n);
        found += json_array_size(json_object_get(result, "spans"));
        check_redacted(text, n, result);
        json_decref(result);
    }
    assert_true(found > 500);
    mica_task_free(task);
}

static void test_bad_input(void **state)
{
    mica_task_input input = mica_task_input_default();
    mica_error err;
    char *result;
    size_t n;
    (void)state;
    mica_task *task = make_task(NULL, "{\"version\":1,\"kind\":\"redact\",\"name\":\"x\"}");
    input.text = "ab\xFFz";
    input.length = 4;
    assert_int_equal(mica_task_run(task, NULL, &input, &result, &n, &err), MICA_BAD_TEXT);
    assert_int_equal(err.position, 2);
    assert_null(result);
    mica_task_free(task);
    mica_model *model = open_model(SCRIPTED, NULL);
    task = make_task(model, FOX);
    input.text = "a";
    input.length = 1;
    assert_int_equal(mica_task_run(task, NULL, &input, &result, &n, &err), MICA_INVALID_ARGUMENT);
    mica_task_free(task);
    mica_model_close(model);
}

/* ---- Complete ---- */

static int stop_at_once(void *user, const char *text, size_t length)
{
    (void)text;
    *(size_t *)user += length;
    return 1;
}

static void test_complete(void **state)
{
    mica_task_input input = mica_task_input_default();
    mica_error err;
    char *text;
    size_t n, heard = 0;
    (void)state;
    mica_model *model = open_model(SCRIPTED, NULL);
    mica_session *session = open_session(model, 128, 1, 0);
    mica_task *task =
        make_task(model, "{\"version\":1,\"kind\":\"complete\",\"name\":\"x\",\"stop\":[\"\\n\"],\"max_tokens\":9,"
                         "\"token_healing\":false}");
    json_t *result = run_task(task, session, "aQ", 2);
    assert_string_equal(json_string_value(json_object_get(result, "completion")), "Mars?");
    assert_string_equal(json_string_value(json_object_get(result, "mode")), "prefix");
    assert_string_equal(json_string_value(json_object_get(result, "stop_reason")), "stop");
    json_decref(result);
    result = run_task(task, session, "aX", 2);
    assert_string_equal(json_string_value(json_object_get(result, "completion")), "xxxxxxxxx");
    assert_string_equal(json_string_value(json_object_get(result, "stop_reason")), "length");
    json_decref(result);
    input.text = "aX";
    input.length = 2;
    input.on_text = stop_at_once;
    input.user = &heard;
    assert_int_equal(mica_task_run(task, session, &input, &text, &n, &err), MICA_CANCELLED);
    assert_int_equal(heard, 1);
    mica_task_free(task);
    mica_session_free(session);
    mica_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_definitions),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_exact_scores),
        cmocka_unit_test(test_route_threshold),
        cmocka_unit_test(test_shared_labels),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_extract),
        cmocka_unit_test(test_redact_keeps_the_rest),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
