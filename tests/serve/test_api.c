/* test_api.c - requests and replies as JSON, without sockets and without computing: the callbacks are called as the engine
 * would call them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/fields.h"
#include "serve/request.h"
#include "serve/responses_input.h"
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

static const char *entry_at(json_t *lists, const char *list, size_t i)
{
    return json_string_value(json_array_get(json_object_get(lists, list), i));
}

static int64_t offset_at(json_t *lists, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(lists, "text_offset"), i));
}

/* The prompt's log-probabilities, then the reply's, with the token that ends it. */
static void test_scored(void **state)
{
    fixture *f = *state;
    static const char *const some[] = {"ok", NULL};
    mica_job *job = job_of(f, "{\"prompt\":\"E\xC3\xA9V\",\"echo\":true,\"logprobs\":2,\"max_tokens\":3}");
    mica_request *r = request_of(f, &mica_api_completions, job);
    assert_true(mica_request_is_scored(r));
    const mica_prompt *p = &r->prompts[0];
    for (size_t i = 0; i < p->n; i++) {
        p->scores[3 * i] = (mica_score){p->tokens[i], -2.5f};
        p->scores[3 * i + 1] = (mica_score){262, -0.5f};
        p->scores[3 * i + 2] = (mica_score){-1, -INFINITY}; /* fewer tokens than were asked for have a chance */
    }
    answer(&r->choices[0], some, "eos", MICA_OK);
    json_t *json = said(job), *lists = json_object_get(json_array_get(json_object_get(json, "choices"), 0), "logprobs");
    assert_string_equal(text_at(json, "choices", 0, NULL, "text"), "E\xC3\xA9Vok");
    assert_int_equal(json_array_size(json_object_get(lists, "tokens")), p->n + 1);
    assert_true(json_is_null(json_array_get(json_object_get(lists, "token_logprobs"), 0)));
    assert_true(json_is_null(json_array_get(json_object_get(lists, "top_logprobs"), 0)));
    assert_true(json_real_value(json_array_get(json_object_get(lists, "token_logprobs"), 1)) == -2.5);
    json_t *top = json_array_get(json_object_get(lists, "top_logprobs"), 1);
    assert_int_equal(json_object_size(top), 2); /* the best one, and the token itself */
    assert_true(json_real_value(json_object_get(top, "E")) == -0.5);
    assert_true(json_real_value(json_object_get(top, entry_at(lists, "tokens", 1))) == -2.5);
    assert_string_equal(entry_at(lists, "tokens", p->n - 1), "V");
    assert_int_equal(offset_at(lists, 0), 0);
    assert_int_equal(offset_at(lists, p->n - 1), 2); /* characters, not bytes */
    assert_int_equal(offset_at(lists, p->n), 3);
    json_decref(json);
    mica_request_free(r);
    mica_job_release(job);
}

static void test_client(void **state)
{
    fixture *f = *state;
    static const struct {
        bool has_key;
        const char *more;
        bool own; /* it counts for its user, not for its key or address */
    } rows[] = {{false, "", false},
                {false, ",\"user\":\"u\"", true},
                {true, ",\"user\":\"u\"", false},
                {false, ",\"user\":\"\"", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[200];
        snprintf(body, sizeof body, "{" MESSAGES ",\"priority\":-7%s}", rows[i].more);
        mica_job *job = job_of(f, body);
        job->client = 12345;
        job->has_key = rows[i].has_key;
        mica_request *r = request_of(f, &mica_api_chat, job);
        assert_int_equal(r->priority, -7);
        assert_int_equal(r->client != 12345, rows[i].own);
        mica_request_free(r);
        mica_job_release(job);
    }
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

#define TOOLS "\"tools\":[{\"type\":\"function\",\"name\":\"add\",\"parameters\":{\"properties\":{\"a\":{}}},\"strict\":true}]"

static const char *item_field(json_t *json, size_t i, const char *name)
{
    return text_at(json, "output", i, NULL, name);
}

static void test_calls_in_responses(void **state)
{
    fixture *f = *state;
    static const char *const call[] = {"{\"tool_call\": {\"name\": \"add\", \"arg", "uments\": {\"a\": 1", "2}}}", NULL};
    static const char *const cut[] = {"{\"tool_call\": {\"name\": \"add\", \"arguments\": {\"a\": 1", NULL};
    for (int whole = 0; whole < 2; whole++) {
        mica_job *job = job_of(f, "{\"input\":\"E\"," TOOLS ",\"tool_choice\":{\"type\":\"function\",\"name\":\"add\"}}");
        mica_request *r = request_of(f, &mica_api_responses, job);
        answer(&r->choices[0], whole ? call : cut, whole ? "stop" : "length", MICA_OK);
        json_t *json = said(job);
        assert_string_equal(json_string_value(json_object_get(json, "status")), whole ? "completed" : "incomplete");
        assert_int_equal(json_array_size(json_object_get(json, "output")), 1);
        assert_string_equal(item_field(json, 0, "type"), "function_call");
        assert_string_equal(item_field(json, 0, "name"), "add");
        assert_string_equal(item_field(json, 0, "status"), whole ? "completed" : "incomplete");
        assert_string_equal(item_field(json, 0, "arguments"), whole ? "{\"a\": 12}" : "{\"a\": 1");
        assert_int_equal(strncmp(item_field(json, 0, "call_id"), "call_", 5), 0);
        assert_int_equal(json_array_size(json_object_get(json, "tools")), 1);
        assert_true(json_is_object(json_object_get(json, "tool_choice")));
        json_decref(json);
        mica_request_free(r);
        mica_job_release(job);
    }
}

static void push_text(mica_choice *c, const char *text)
{
    mica_buf_append(&c->content, text, strlen(text));
    mica_api_responses.say(c, &(mica_delta){.kind = MICA_DELTA_TEXT, .text = text, .length = strlen(text)});
}

static void push_call(mica_choice *c, const char *id, const char *arguments)
{
    mica_api_responses.say(c, &(mica_delta){.kind = MICA_DELTA_CALL, .id = id, .name = "add"});
    for (const char *p = arguments; *p; p++)
        mica_api_responses.say(c, &(mica_delta){.kind = MICA_DELTA_ARGUMENTS, .text = p, .length = 1});
    json_array_append_new(c->calls, json_string(id));
}

/* The names of the events, in order; that of the last event's response is left in *last. */
static void read_events(mica_job *job, char *names, size_t room, json_t **last)
{
    char *rest = NULL;
    size_t n = 0;
    mica_buf_putc(&job->out, '\0');
    names[0] = '\0';
    for (char *line = strtok_r(job->out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "event: response.", 16) == 0)
            n += (size_t)snprintf(names + n, room - n, "%s ", line + 16);
        if (strncmp(line, "data: {", 7) == 0) {
            json_decref(*last);
            *last = json_loads(line + 6, 0, NULL);
            assert_non_null(*last);
        }
    }
}

/* A message, then two calls: items one after the other, each with its events. */
static void test_items(void **state)
{
    fixture *f = *state;
    char names[2000];
    json_t *last = NULL;
    mica_job *job = job_of(f, "{\"input\":\"E\",\"stream\":true," TOOLS "}");
    mica_request *r = request_of(f, &mica_api_responses, job);
    mica_choice *c = &r->choices[0];
    mica_generate_options o;
    mica_fault fault;
    mica_job_stream(job);
    mica_api_responses.open(r);
    assert_true(mica_choice_start(c, &o, &fault));
    push_text(c, "I ");
    push_text(c, "add");
    push_call(c, "call_1", "{}");
    push_call(c, "call_2", "[]");
    mica_choice_finish(c, MICA_OK, &(mica_result){.stop_reason = "stop", .kernels = "none"}, NULL);
    read_events(job, names, sizeof names, &last);
    assert_string_equal(names, "created in_progress output_item.added content_part.added output_text.delta output_text.delta "
                               "output_text.done content_part.done output_item.done "
                               "output_item.added function_call_arguments.delta function_call_arguments.delta "
                               "function_call_arguments.done output_item.done "
                               "output_item.added function_call_arguments.delta function_call_arguments.delta "
                               "function_call_arguments.done output_item.done completed ");
    json_t *response = json_object_get(last, "response");
    assert_int_equal(json_array_size(json_object_get(response, "output")), 3);
    assert_string_equal(text_at(json_array_get(json_object_get(response, "output"), 0), "content", 0, NULL, "text"), "I add");
    assert_string_equal(item_field(response, 1, "call_id"), "call_1");
    assert_string_equal(item_field(response, 2, "arguments"), "[]");
    assert_string_not_equal(item_field(response, 1, "id"), item_field(response, 2, "id"));
    json_decref(last);
    mica_request_free(r);
    mica_job_release(job);
}

/* "input" as messages. */
static void test_input(void **state)
{
    mica_fault fault = {.status = 0};
    (void)state;
    json_t *body = json_loads(
        "{\"instructions\":\"I\",\"input\":[{\"role\":\"developer\",\"content\":\"D\"},"
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"A\"}]},"
        "{\"type\":\"reasoning\",\"summary\":[]},"
        "{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{}\"},"
        "{\"type\":\"function_call\",\"call_id\":\"c2\",\"name\":\"g\",\"arguments\":\"\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"5\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c2\",\"output\":[{\"type\":\"input_text\",\"text\":\"6\"}]},"
        "{\"type\":\"function_call\",\"call_id\":\"c3\",\"name\":\"f\",\"arguments\":\"{}\"}]}",
        0, NULL);
    json_t *wanted = json_loads("[{\"role\":\"system\",\"content\":\"I\"},{\"role\":\"system\",\"content\":\"D\"},"
                                "{\"role\":\"assistant\",\"content\":\"A\",\"tool_calls\":["
                                "{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},"
                                "{\"id\":\"c2\",\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"\"}}]},"
                                "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"5\"},"
                                "{\"role\":\"tool\",\"tool_call_id\":\"c2\",\"content\":\"6\"},"
                                "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
                                "{\"id\":\"c3\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]",
                                0, NULL);
    json_t *messages = mica_responses_messages(body, &fault);
    assert_true(wanted && json_equal(messages, wanted));
    json_decref(body);
    json_decref(wanted);
    json_decref(messages);
}

static void test_refused_input(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *input, *param;
    } rows[] = {
        {"[]", "input"},
        {"[{\"role\":\"user\",\"content\":\"E\"},5]", "input[1]"},
        {"[{\"role\":\"user\",\"content\":\"E\"},{\"role\":\"user\",\"content\":5}]", "input[1].content"},
        {"[{\"role\":\"king\",\"content\":\"E\"}]", "input[0]"},
        {"[{\"type\":5}]", "input[0].type"},
        {"[{\"type\":\"item_reference\",\"id\":\"x\"}]", "input[0].type"},
        {"[{\"type\":\"function_call\",\"name\":\"f\",\"arguments\":\"{}\"}]", "input[0].call_id"},
        {"[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":5,\"arguments\":\"{}\"}]", "input[0].name"},
        {"[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":{}}]", "input[0].arguments"},
        {"[{\"type\":\"function_call_output\",\"call_id\":\"c\"}]", "input[0].output"},
        {"[{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":[{\"type\":\"input_image\"}]}]", "input[0].output"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[400];
        snprintf(body, sizeof body, "{\"input\":%s}", rows[i].input);
        refuse(f, &mica_api_responses, body, 400, rows[i].param);
    }
    refuse(f, &mica_api_responses, "{\"input\":\"E\"," TOOLS ",\"text\":{\"format\":{\"type\":\"json_object\"}}}", 400,
           "text.format");
    refuse(f, &mica_api_responses, "{\"input\":\"E\",\"tools\":[{\"type\":\"web_search\"}]}", 400, "tools");
    refuse(f, &mica_api_responses, "{\"input\":\"E\",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"strict\":1}]}", 400,
           "tools[0].strict");
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
        cmocka_unit_test(test_fault),   cmocka_unit_test(test_metrics),       cmocka_unit_test(test_scored),
        cmocka_unit_test(test_client),  cmocka_unit_test(test_items),         cmocka_unit_test(test_calls_in_responses),
        cmocka_unit_test(test_input),   cmocka_unit_test(test_refused_input),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
