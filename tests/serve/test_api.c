/* test_api.c - requests and replies as JSON, without sockets and without computing: the callbacks are called as the engine
 * would call them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/fields.h"
#include "serve/request.h"
#include "serve/text_routes.h"

typedef struct fixture {
    mica_serve_context context;
    mica_metrics metrics;
    mica_outbox box;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    mica_error err;
    f->context = (mica_serve_context){.name = "m", .n_ctx = 512, .metrics = &f->metrics};
    assert_int_equal(mica_model_open(MICA_TEST_DATA "/cases/_common/scripted.gguf", NULL, &f->context.model, &err), MICA_OK);
    mica_model_get_info(f->context.model, &f->context.info);
    assert_int_equal(mica_outbox_init(&f->box, &err), MICA_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    mica_outbox_close(&f->box);
    mica_model_close(f->context.model);
    free(f);
    return 0;
}

/* ---- Helpers ---- */

static mica_job *job_of(fixture *f, const char *body)
{
    return mica_job_new(&f->box, 0, strdup(body), strlen(body));
}

static mica_request *request_of(fixture *f, const mica_api *api, mica_job *job)
{
    mica_fault fault = {.status = 0};
    mica_request *r = mica_request_new(&f->context, api, job, NULL, 0, &fault);
    if (!r)
        fail_msg("%s", fault.message);
    return r;
}

static void refuse(fixture *f, const mica_api *api, const char *body, int status, const char *param)
{
    mica_fault fault = {.status = 0};
    assert_null(mica_request_new(&f->context, api, NULL, body, strlen(body), &fault));
    assert_int_equal(fault.status, status);
    assert_string_equal(fault.param, param);
    char *json = mica_fault_json(&fault);
    json_t *whole = json_loads(json, 0, NULL);
    assert_non_null(json_object_get(json_object_get(whole, "error"), "message"));
    json_decref(whole);
    free(json);
}

/* The reply "text", in pieces as the engine would tell it, that ends by itself. */
static void answer(mica_choice *c, const char *const *pieces, const char *reason, mica_status status)
{
    mica_generate_options o;
    mica_fault fault;
    mica_result result = {.stop_reason = reason, .prompt_n = (int32_t)c->prompt->n, .kernels = "none"};
    mica_error why = {.code = status, .position = -1, .message = "it went wrong"};
    assert_true(mica_choice_start(c, &o, &fault));
    for (int32_t i = 0; pieces[i]; i++, result.gen_n++) {
        o.on_token(o.user, &(mica_token_event){.token = 351, .index = i, .logprob = -0.5f});
        o.on_text(o.user, pieces[i], strlen(pieces[i]));
    }
    mica_choice_finish(c, status, &result, status ? &why : NULL);
}

static json_t *said(mica_job *job)
{
    json_t *json = json_loadb(job->out.data, job->out.length, 0, NULL);
    assert_non_null(json);
    return json;
}

static const char *text_at(json_t *json, const char *a, size_t i, const char *b, const char *c)
{
    json_t *item = json_array_get(json_object_get(json, a), i);
    return json_string_value(b ? json_object_get(json_object_get(item, b), c) : json_object_get(item, c));
}

#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"E\"}]"

/* ---- Tests ---- */

static void test_chat(void **state)
{
    fixture *f = *state;
    static const char *const one[] = {"He", "llo", NULL}, *const two[] = {NULL};
    mica_job *job = job_of(f, "{" MESSAGES ",\"n\":2,\"seed\":5,\"stop\":\"x\",\"max_tokens\":7,\"logit_bias\":{\"3\":-100}}");
    mica_request *r = request_of(f, &mica_api_chat, job);
    assert_int_equal(r->n_choices, 2);
    assert_int_equal(r->options.max_tokens, 7);
    assert_int_equal(r->options.n_stop, 1);
    assert_true(r->bias[0].token == 3 && r->bias[0].bias < -1e30f);
    answer(&r->choices[0], one, "eos", MICA_OK);
    assert_false(job->ended);
    answer(&r->choices[1], two, "length", MICA_OK);
    assert_true(job->ended);
    json_t *json = said(job);
    assert_string_equal(text_at(json, "choices", 0, "message", "content"), "Hello");
    assert_string_equal(text_at(json, "choices", 1, "message", "content"), "");
    assert_string_equal(text_at(json, "choices", 0, NULL, "finish_reason"), "stop");
    assert_string_equal(text_at(json, "choices", 1, NULL, "finish_reason"), "length");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "usage"), "prompt_tokens")), 1);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "usage"), "completion_tokens")), 2);
    json_decref(json);
    mica_request_free(r);
    mica_job_release(job);
}

static void test_failure(void **state)
{
    fixture *f = *state;
    static const char *const some[] = {"He", NULL};
    mica_job *job = job_of(f, "{" MESSAGES ",\"n\":2}");
    mica_request *r = request_of(f, &mica_api_chat, job);
    answer(&r->choices[0], some, "error", MICA_NON_FINITE);
    answer(&r->choices[1], some, "cancelled", MICA_CANCELLED);
    assert_int_equal(job->status, 500);
    json_t *json = said(job);
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "error"), "message")), "it went wrong");
    json_decref(json);
    mica_request_free(r);
    mica_job_release(job);
}

/* An error in a stream is its last event. */
static void test_failure_in_stream(void **state)
{
    fixture *f = *state;
    static const char *const some[] = {"He", NULL};
    mica_job *job = job_of(f, "{" MESSAGES ",\"stream\":true}");
    mica_request *r = request_of(f, &mica_api_chat, job);
    mica_job_stream(job);
    answer(&r->choices[0], some, "error", MICA_NON_FINITE);
    assert_true(job->ended && job->status == 200);
    mica_buf_putc(&job->out, '\0');
    const char *last = strstr(job->out.data, "data: {\"error\"");
    assert_non_null(last);
    assert_non_null(strstr(last, "it went wrong"));
    assert_null(strstr(last + 6, "data: "));
    mica_request_free(r);
    mica_job_release(job);
}

/* A client that leaves: nothing more is said, and the engine is told to stop. */
static void test_gone(void **state)
{
    fixture *f = *state;
    mica_generate_options o;
    mica_fault fault;
    mica_job *job = job_of(f, "{" MESSAGES ",\"stream\":true}");
    mica_request *r = request_of(f, &mica_api_chat, job);
    mica_job_stream(job);
    assert_true(mica_choice_start(&r->choices[0], &o, &fault));
    assert_int_equal(o.on_text(o.user, "a", 1), 0);
    size_t before = job->out.length;
    atomic_store(&job->gone, true);
    assert_int_not_equal(o.on_text(o.user, "b", 1), 0);
    assert_int_not_equal(o.on_token(o.user, &(mica_token_event){.token = 351}), 0);
    mica_choice_finish(&r->choices[0], MICA_CANCELLED, &(mica_result){.stop_reason = "cancelled"}, NULL);
    assert_int_equal(job->out.length, before);
    mica_request_free(r);
    mica_job_release(job);
}

static void test_completions(void **state)
{
    fixture *f = *state;
    static const char *const some[] = {"H\"", "é", NULL};
    mica_job *job = job_of(f, "{\"prompt\":[[262,263],[264]],\"echo\":true}");
    mica_request *r = request_of(f, &mica_api_completions, job);
    assert_int_equal(r->n_prompts, 2);
    assert_int_equal(r->prompts[0].n, 2);
    assert_int_equal(r->options.max_tokens, 16);
    answer(&r->choices[1], some, "stop", MICA_OK);
    answer(&r->choices[0], some, "stop", MICA_OK);
    json_t *json = said(job);
    assert_string_equal(text_at(json, "choices", 0, NULL, "text"), "EVH\"é");
    assert_string_equal(text_at(json, "choices", 1, NULL, "text"), "CH\"é");
    json_decref(json);
    mica_request_free(r);
    mica_job_release(job);
}

static void test_responses(void **state)
{
    fixture *f = *state;
    static const char *const some[] = {"Hel", "lo", NULL};
    mica_job *job = job_of(f, "{\"input\":\"E\",\"instructions\":\"be brief\"}");
    mica_request *r = request_of(f, &mica_api_responses, job);
    answer(&r->choices[0], some, "length", MICA_OK);
    json_t *json = said(job), *output = json_array_get(json_object_get(json, "output"), 0);
    assert_string_equal(text_at(output, "content", 0, NULL, "text"), "Hello");
    assert_string_equal(json_string_value(json_object_get(json, "status")), "incomplete");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "usage"), "output_tokens")), 2);
    json_decref(json);
    mica_request_free(r);
    mica_job_release(job);
}

static void test_refused(void **state)
{
    fixture *f = *state;
    refuse(f, &mica_api_chat, "", 400, "");
    refuse(f, &mica_api_chat, "[]", 400, "");
    refuse(f, &mica_api_chat, "{\"messages\":5}", 400, "messages");
    refuse(f, &mica_api_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"E\"},{\"role\":\"user\"}]}", 400,
           "messages[1].content");
    refuse(f, &mica_api_chat, "{" MESSAGES ",\"top_logprobs\":2}", 400, "top_logprobs");
    refuse(f, &mica_api_chat, "{" MESSAGES ",\"tools\":[{\"name\":\"f\"}],\"response_format\":{\"type\":\"json_object\"}}", 400,
           "response_format");
    refuse(f, &mica_api_completions, "{\"prompt\":\"\"}", 400, "prompt");
    refuse(f, &mica_api_completions, "{\"prompt\":[374]}", 400, "prompt");
    refuse(f, &mica_api_responses, "{\"input\":\"E\",\"background\":true}", 400, "background");
}

/* What a user writes stays text, where the template does not say otherwise. */
static void test_special_texts(void **state)
{
    fixture *f = *state;
    static const char body[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\" <|eot|> \"},{\"role\":\"user\",\"content\":\"E\"}]}";
    mica_fault fault;
    mica_request *r = mica_request_new(&f->context, &mica_api_chat, NULL, body, sizeof body - 1, &fault);
    assert_non_null(r);
    for (size_t i = 0; i < r->prompts[0].n; i++)
        assert_int_not_equal(r->prompts[0].tokens[i], f->context.info.eot_token);
    char *text;
    size_t length;
    assert_int_equal(
        mica_model_detokenize(f->context.model, r->prompts[0].tokens, r->prompts[0].n, false, &text, &length, NULL), MICA_OK);
    assert_string_equal(text, " <|eot|> E");
    mica_free(text);
    mica_request_free(r);
}

static void test_texts(void **state)
{
    fixture *f = *state;
    mica_fault fault;
    static const char round[] = "Hi E<think>\xC3\xA9";
    json_t *body = json_pack("{s:s}", "content", round), *tokens = mica_text_tokenize(&f->context, body, &fault);
    assert_non_null(tokens);
    json_t *back = mica_text_detokenize(&f->context, tokens, &fault);
    assert_string_equal(json_string_value(json_object_get(back, "content")), round);
    json_decref(body);
    json_decref(tokens);
    json_decref(back);
    body = json_loads("{" MESSAGES "}", 0, NULL);
    back = mica_text_template(&f->context, body, &fault);
    assert_string_equal(json_string_value(json_object_get(back, "prompt")), "E");
    json_decref(body);
    json_decref(back);
}

/* A fault's text is always UTF-8, whatever it quotes. */
static void test_fault(void **state)
{
    mica_fault fault;
    (void)state;
    mica_fault_bad(&fault, "p\xFFq", "a\xC3\x28z\xE2\x82");
    char *json = mica_fault_json(&fault);
    json_t *whole = json_loads(json, 0, NULL), *error = json_object_get(whole, "error");
    assert_string_equal(json_string_value(json_object_get(error, "message")), "a?(z??");
    assert_string_equal(json_string_value(json_object_get(error, "param")), "p?q");
    json_decref(whole);
    free(json);
}

static const char *name_of(size_t route)
{
    return route == 0 ? "/a" : "/b";
}

static void test_metrics(void **state)
{
    mica_metrics *m = calloc(1, sizeof *m);
    size_t length;
    (void)state;
    mica_metrics_request(m, 1, 200);
    mica_metrics_request(m, 2, 404);
    mica_histogram_add(&m->ttft, 0.003);
    mica_histogram_add(&m->ttft, 1000.0);
    char *text = mica_metrics_text(m, "a\"b", name_of, 2, &length);
    assert_int_equal(strlen(text), length);
    assert_non_null(strstr(text, "mica_requests_total{route=\"/b\",status=\"200\"} 1\n"));
    assert_non_null(strstr(text, "mica_requests_total{route=\"other\",status=\"404\"} 1\n"));
    assert_non_null(strstr(text, "mica_ttft_seconds_bucket{le=\"0.0025\"} 0\n"));
    assert_non_null(strstr(text, "mica_ttft_seconds_bucket{le=\"0.005\"} 1\n"));
    assert_non_null(strstr(text, "mica_ttft_seconds_bucket{le=\"60\"} 1\n"));
    assert_non_null(strstr(text, "mica_ttft_seconds_bucket{le=\"+Inf\"} 2\n"));
    assert_non_null(strstr(text, "mica_ttft_seconds_count 2\n"));
    assert_non_null(strstr(text, "model=\"a\\\"b\""));
    free(text);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chat),    cmocka_unit_test(test_failure),       cmocka_unit_test(test_failure_in_stream),
        cmocka_unit_test(test_gone),    cmocka_unit_test(test_completions),   cmocka_unit_test(test_responses),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_special_texts), cmocka_unit_test(test_texts),
        cmocka_unit_test(test_fault),   cmocka_unit_test(test_metrics),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
