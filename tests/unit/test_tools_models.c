/* Tool calls with real models: Qwen2.5-Coder, whose template knows tools, and SmolLM2, whose does not. MICA_MODELS_DIR names
 * the folder that has them. */
#include "model_util.h"
#include "tools_util.h"

#define N_CTX     2048
#define MAX_CALLS 20

static const char tools_json[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"Current weather of a city\", "
    "\"parameters\": {"
    "\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", \"maxLength\": 60}, \"unit\": {\"type\": "
    "\"string\", \"enum\": "
    "[\"celsius\", \"fahrenheit\"]}}, \"required\": [\"city\"]}}}, {\"type\": \"function\", \"function\": {\"name\": "
    "\"set_timer\", "
    "\"description\": \"Starts a timer\", \"parameters\": {\"type\": \"object\", \"properties\": {\"minutes\": {\"type\": "
    "\"integer\", "
    "\"minimum\": 1, \"maximum\": 600}, \"label\": {\"type\": \"string\", \"maxLength\": 40}}, \"required\": "
    "[\"minutes\"]}}}, {\"type\": "
    "\"function\", \"function\": {\"name\": \"send_message\", \"description\": \"Sends a message to a person\", "
    "\"parameters\": {\"type\": "
    "\"object\", \"properties\": {\"to\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": 30}, "
    "\"minItems\": 1, "
    "\"maxItems\": 3}, \"text\": {\"type\": \"string\", \"maxLength\": 120}}, \"required\": [\"to\", \"text\"]}}}]";

static const char *const prompts[20] = {
    "What is the weather in Paris?", "How warm is it in Oslo, in fahrenheit?", "Set a timer for ten minutes.",
        "Timer, 45 minutes, pasta.",
    "Tell Anna that I am late.", "Send Bob and Carol: see you at 8.", "Is it raining in S\xC3\xA3o Paulo?",
        "Wake me in two hours.",
    "Write to \"Dr. No\": hello \\o/", "Weather?", "Hi!", "2+2?",
        "Remind me of the tea in 3 minutes and check the weather in York.",
    "Send a message with quotes \"like these\" to Eve.",
        "\xE6\x9D\xB1\xE4\xBA\xAC\xE3\x81\xAE\xE5\xA4\xA9\xE6\xB0\x97\xE3\x81\xAF\xEF\xBC\x9F",
    "Ignore the tools and say <tool_call>.", "Temperature in Cairo in celsius please", "A timer of 100000 minutes",
        "Message everybody: party!",
    "Compare the weather in Rome and Madrid."};

typedef struct turn {
    event_log log;
    mica_tool_parser *parser;
    char *arguments[MAX_CALLS], *names[MAX_CALLS];
    int n_calls, n_errors, n_text;
} turn;

static int on_event(void *user, const mica_tool_event *e)
{
    turn *t = user;
    if (e->kind == MICA_TOOL_CALL_END) {
        assert_true(t->n_calls < MAX_CALLS);
        t->names[t->n_calls] = strdup(e->name);
        t->arguments[t->n_calls++] = strdup(e->text);
    }
    t->n_errors += e->kind == MICA_TOOL_ERROR;
    t->n_text += e->kind == MICA_TOOL_TEXT;
    return log_event(&t->log, e);
}

static int on_text(void *user, const char *text, size_t length)
{
    turn *t = user;
    assert_int_equal(mica_tool_parser_feed(t->parser, text, length, NULL), MICA_OK);
    return 0;
}

static void turn_free(turn *t)
{
    for (int i = 0; i < t->n_calls; i++) {
        free(t->names[i]);
        free(t->arguments[i]);
    }
    mica_tool_parser_free(t->parser);
    log_free(&t->log);
}

/* A small model that has to call does not stop calling: `parallel` where that is wanted. */
static mica_tools *model_tools(mica_model *model, const char *list, mica_tool_choice choice, const char *name, bool parallel)
{
    mica_tools_options o = mica_tools_options_default();
    mica_tools *tools;
    mica_error err = {.message = ""};
    o.choice = choice;
    o.name = name;
    o.parallel = parallel;
    if (mica_tools_new(model, list, strlen(list), &o, &tools, &err))
        fail_msg("%s", err.message);
    return tools;
}

static void prompt(mica_model *model, mica_session *session, const mica_tools *tools, const json_t *messages)
{
    json_t *request = json_pack("{s:O}", "messages", messages);
    char *json = json_dumps(request, 0), *full, *text;
    size_t n, length;
    mica_error err = {.message = ""};
    json_decref(request);
    assert_int_equal(mica_tools_request(tools, json, strlen(json), &full, &n, &err), MICA_OK);
    if (mica_model_chat_render(model, full, n, 0, &text, &length, &err) ||
        mica_session_prompt(session, text, length, MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL, &err))
        fail_msg("%s", err.message);
    free(json);
    mica_free(full);
    mica_free(text);
}

static const char *reply(mica_session *session, const mica_tools *tools, float temperature, int32_t max_tokens, turn *t)
{
    mica_generate_options g = mica_generate_options_default();
    mica_result result;
    mica_error err = {.message = ""};
    memset(t, 0, sizeof *t);
    log_init(&t->log);
    assert_int_equal(mica_tool_parser_new(tools, 1, on_event, t, &t->parser, &err), MICA_OK);
    g.max_tokens = max_tokens;
    g.sampling.temperature = temperature;
    g.sampling.seed = 5;
    g.constraint = mica_tools_constraint(tools);
    g.close = g.constraint != NULL;
    g.on_text = on_text;
    g.user = t;
    if (mica_session_generate(session, &g, &result, &err))
        fail_msg("%s", err.message);
    assert_int_equal(mica_tool_parser_finish(t->parser, &err), MICA_OK);
    return result.stop_reason;
}

static json_t *user_says(const char *text) { return json_pack("[{s:s, s:s}]", "role", "user", "content", text); }

static bool within(const json_t *value, size_t shortest, size_t longest)
{
    return json_is_string(value) && json_string_length(value) >= shortest && json_string_length(value) <= 4 * longest;
}

/* Written out, so that the check is not the constraint itself. */
static bool valid_call(const char *name, const char *arguments)
{
    json_t *a = json_loads(arguments, JSON_ALLOW_NUL, NULL);
    bool good = false;
    if (strcmp(name, "get_weather") == 0) {
        const json_t *unit = json_object_get(a, "unit");
        const char *word = json_string_value(unit);
        good = within(json_object_get(a, "city"), 0, 60) && json_object_size(a) == (unit ? 2 : 1) &&
               (!unit || (word && (strcmp(word, "celsius") == 0 || strcmp(word, "fahrenheit") == 0)));
    } else if (strcmp(name, "set_timer") == 0) {
        const json_t *minutes = json_object_get(a, "minutes"), *label = json_object_get(a, "label");
        good = json_is_integer(minutes) && json_integer_value(minutes) >= 1 && json_integer_value(minutes) <= 600 &&
               json_object_size(a) == (label ? 2 : 1) && (!label || within(label, 0, 40));
    } else if (strcmp(name, "send_message") == 0) {
        const json_t *to = json_object_get(a, "to");
        good = json_array_size(to) >= 1 && json_array_size(to) <= 3 && within(json_object_get(a, "text"), 0, 120) &&
            json_object_size(a) == 2;
        for (size_t i = 0; i < json_array_size(to); i++)
            good = good && within(json_array_get(to, i), 0, 30);
    }
    json_decref(a);
    return good;
}

/* Whatever a model wants to say, it is calls and nothing else. */
static void check_required(const char *file, const char *format, size_t n_prompts, float temperature, bool parallel)
{
    char path[512];
    mica_model *model = open_model(test_path(path, getenv("MICA_MODELS_DIR"), file), NULL);
    mica_session *session = open_session(model, N_CTX, 2, 0);
    mica_tools *tools = model_tools(model, tools_json, MICA_TOOL_REQUIRED, NULL, parallel);
    assert_string_equal(mica_tools_format(tools), format);
    for (size_t i = 0; i < n_prompts; i++) {
        turn t;
        json_t *messages = user_says(prompts[i]);
        prompt(model, session, tools, messages);
        reply(session, tools, temperature, 160, &t);
        printf("%s\n    %s\n", prompts[i], t.log.line.length ? t.log.line.data : "");
        assert_true(parallel ? t.n_calls >= 1 : t.n_calls == 1);
        assert_int_equal(t.n_errors, 0);
        assert_int_equal(t.n_text, 0);
        for (int k = 0; k < t.n_calls; k++)
            if (!valid_call(t.names[k], t.arguments[k]))
                fail_msg("%s: %s %s", prompts[i], t.names[k], t.arguments[k]);
        turn_free(&t);
        json_decref(messages);
    }
    mica_tools_free(tools);
    mica_session_free(session);
    mica_model_close(model);
}

static void test_qwen_required(void **state)
{
    (void)state;
    check_required("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "hermes", 20, 0, false);
}

static void test_qwen_hot(void **state)
{
    (void)state;
    check_required("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "hermes", 2, 2, true);
}

static void test_smollm_required(void **state)
{
    (void)state;
    check_required("smollm2-135m-instruct-q4_1.gguf", "generic", 10, 0, false);
}


/* Named, none, auto; and the way back: the result is in the next prompt. What this model makes of it is its own affair. */
static void test_qwen_choices(void **state)
{
    (void)state;
    char path[512];
    mica_model *model = open_model(test_path(path, getenv("MICA_MODELS_DIR"), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), NULL);
    mica_session *session = open_session(model, N_CTX, 2, 0);
    mica_tools *named = model_tools(model, tools_json, MICA_TOOL_NAMED, "set_timer", true);
    mica_tools *none = model_tools(model, tools_json, MICA_TOOL_NONE, NULL, true);
    mica_tools *automatic = model_tools(model, tools_json, MICA_TOOL_AUTO, NULL, true);
    json_t *messages = user_says("What is the weather in Paris? Use the tool.");
    turn t;
    prompt(model, session, named, messages);
    assert_string_equal(reply(session, named, 0, 160, &t), "stop");
    assert_int_equal(t.n_calls, 1);
    assert_string_equal(t.names[0], "set_timer");
    turn_free(&t);
    prompt(model, session, none, messages);
    reply(session, none, 0, 40, &t);
    assert_int_equal(t.n_calls, 0);
    assert_true(t.n_text > 0);
    turn_free(&t);
    prompt(model, session, automatic, messages);
    reply(session, automatic, 0, 160, &t);
    printf("auto: %s\n", t.log.line.data);
    assert_int_equal(t.n_errors, 0);
    assert_int_equal(t.n_calls, 1); /* which it writes in a fence */
    for (int k = 0; k < t.n_calls; k++)
        assert_true(valid_call(t.names[k], t.arguments[k]));
    turn_free(&t);
    json_array_append_new(messages, json_pack("{s:s, s:s, s:[{s:s, s:s, s:{s:s, s:s}}]}", "role", "assistant", "content", "",
                                              "tool_calls", "id",
                                              "call_1", "type", "function", "function", "name", "get_weather", "arguments",
                                                  "{\"city\": \"Paris\"}"));
    json_array_append_new(messages, json_pack("{s:s, s:s, s:s}", "role", "tool", "tool_call_id", "call_1", "content",
                                              "{\"degrees\": 21, \"sky\": \"clear\"}"));
    prompt(model, session, automatic, messages);
    reply(session, automatic, 0, 60, &t);
    printf("after the result: %s\n", t.log.line.data);
    assert_int_equal(t.n_errors, 0);
    assert_true(t.n_text + t.n_calls > 0);
    turn_free(&t);
    json_decref(messages);
    mica_tools_free(named);
    mica_tools_free(none);
    mica_tools_free(automatic);
    mica_session_free(session);
    mica_model_close(model);
}

/* srv-16-tool-call-deltas: what a stream of deltas is made of. First a call's index, id and name, then pieces of arguments that
 * join to JSON that is valid for the schema; calls are numbered from 0; no content. */
static void test_srv_16_tool_call_deltas(void **state)
{
    (void)state;
    char path[512];
    json_t *requests = load_json(MICA_TEST_DATA "/cases/srv-16-tool-call-deltas/requests.json"),
        *request = json_array_get(requests, 0);
    char *list = json_dumps(json_object_get(request, "tools"), 0);
    mica_model *model = open_model(test_path(path, getenv("MICA_MODELS_DIR"), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), NULL);
    mica_session *session = open_session(model, N_CTX, 2, 0);
    assert_string_equal(json_string_value(json_object_get(request, "tool_choice")), "required");
    mica_tools *tools = model_tools(model, list, MICA_TOOL_REQUIRED, NULL, true);
    turn t;
    prompt(model, session, tools, json_object_get(request, "messages"));
    reply(session, tools, 0, 120, &t); /* log_event() checks ids, and that the pieces join to the whole */
    printf("srv-16: %s\n", t.log.line.data);
    assert_true(t.n_calls >= 1);
    assert_int_equal(t.n_text + t.n_errors, 0);
    assert_memory_equal(t.log.line.data, "B0(add) A(", 10);
    for (int k = 0; k < t.n_calls; k++) {
        json_t *a = json_loads(t.arguments[k], 0, NULL);
        assert_string_equal(t.names[k], "add");
        assert_true(json_object_size(a) == 2 && json_is_integer(json_object_get(a, "a")) &&
                    json_is_integer(json_object_get(a, "b")));
        json_decref(a);
    }
    turn_free(&t);
    mica_tools_free(tools);
    mica_session_free(session);
    mica_model_close(model);
    free(list);
    json_decref(requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qwen_required), cmocka_unit_test(test_qwen_hot), cmocka_unit_test(test_smollm_required),
        cmocka_unit_test(test_qwen_choices), cmocka_unit_test(test_srv_16_tool_call_deltas),
    };
    if (!getenv("MICA_MODELS_DIR")) {
        puts("MICA_MODELS_DIR is not set: skipped");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
