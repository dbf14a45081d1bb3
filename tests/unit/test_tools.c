/* Lists of tools, the formats of templates, requests, and what the constraint lets through. */
#include "tools_util.h"

/* ---- Lists ---- */

static void refused(const char *tools_json, mica_status status, const char *part)
{
    mica_tools_options o = mica_tools_options_default();
    mica_tools *tools;
    mica_error err = {.message = ""};
    o.chat_template = HERMES_TEMPLATE;
    assert_int_equal(mica_tools_new(NULL, tools_json, strlen(tools_json), &o, &tools, &err), status);
    assert_null(tools);
    if (!strstr(err.message, part))
        fail_msg("%s: \"%s\" does not say \"%s\"", tools_json, err.message, part);
}

static void test_bad_lists(void **state)
{
    (void)state;
    refused("[", MICA_BAD_TEXT, "not JSON");
    refused("{}", MICA_INVALID_ARGUMENT, "array of 1 to 256");
    refused("[]", MICA_INVALID_ARGUMENT, "array of 1 to 256");
    refused("[5]", MICA_INVALID_ARGUMENT, "tools[0] must be an object");
    refused("[{\"type\":\"retrieval\"}]", MICA_INVALID_ARGUMENT, "\"type\"");
    refused("[{\"type\":\"function\",\"function\":5}]", MICA_INVALID_ARGUMENT, "\"function\" must be an object");
    refused("[{\"name\":\"\"}]", MICA_INVALID_ARGUMENT, "\"name\"");
    refused("[{\"name\":\"a b\"}]", MICA_INVALID_ARGUMENT, "\"name\"");
    refused("[{\"name\":\"x\"},{\"name\":\"a\\\"b\"}]", MICA_INVALID_ARGUMENT, "tools[1]");
    refused("[{\"name\":\"x2345678901234567890123456789012345678901234567890123456789012345\"}]", MICA_INVALID_ARGUMENT,
            "1 to 64");
    refused("[{\"name\":\"x\"},{\"name\":\"x\"}]", MICA_INVALID_ARGUMENT, "another tool called x");
    refused("[{\"name\":\"x\",\"name\":\"y\"}]", MICA_BAD_TEXT, "uplicate");
    refused("[{\"name\":\"x\",\"description\":5}]", MICA_INVALID_ARGUMENT, "\"description\"");
    refused("[{\"name\":\"x\",\"parameters\":[]}]", MICA_INVALID_ARGUMENT, "(x): \"parameters\" must be an object");
    refused("[{\"name\":\"x\",\"parameters\":{\"type\":\"string\"}}]", MICA_INVALID_ARGUMENT, "must be \"object\"");
    refused("[{\"name\":\"x\",\"p\\u0061rameters\":{}}]", MICA_INVALID_ARGUMENT, "without escapes");
    refused("[{\"name\":\"y\"},{\"name\":\"x\",\"parameters\":{\"properties\":{\"a\":{\"uniqueItems\":true,"
            "\"type\":\"array\"}}}}]", MICA_UNSUPPORTED,
            "tools[1] (x): ");
}

static void test_bad_options(void **state)
{
    (void)state;
    mica_tools_options o = mica_tools_options_default();
    mica_tools *tools;
    mica_error err;
    assert_int_equal(mica_tools_new(NULL, TWO_TOOLS, strlen(TWO_TOOLS), NULL, &tools, &err), MICA_INVALID_ARGUMENT);
    o.chat_template = PLAIN_TEMPLATE;
    o.choice = MICA_TOOL_NAMED;
    assert_int_equal(mica_tools_new(NULL, TWO_TOOLS, strlen(TWO_TOOLS), &o, &tools, &err), MICA_INVALID_ARGUMENT);
    o.name = "sub";
    assert_int_equal(mica_tools_new(NULL, TWO_TOOLS, strlen(TWO_TOOLS), &o, &tools, &err), MICA_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "no tool called sub"));
    o.name = "add";
    o.struct_size = 1;
    assert_int_equal(mica_tools_new(NULL, TWO_TOOLS, strlen(TWO_TOOLS), &o, &tools, &err), MICA_INVALID_ARGUMENT);
    mica_tools_free(NULL);
    mica_tool_parser_free(NULL);
}

/* A keyword that cannot be enforced is refused, or told of. */
static void count_warning(void *user, const char *message)
{
    assert_true(*message);
    ++*(int *)user;
}

static void test_lenient(void **state)
{
    (void)state;
    const char *text = "[{\"name\":\"x\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\","
                       "\"uniqueItems\":true}}}}]";
    mica_tools_options o = mica_tools_options_default();
    mica_tools *tools;
    mica_error err;
    int warnings = 0;
    o.chat_template = PLAIN_TEMPLATE;
    o.lenient = true;
    o.on_warning = count_warning;
    o.user = &warnings;
    assert_int_equal(mica_tools_new(NULL, text, strlen(text), &o, &tools, &err), MICA_OK);
    assert_true(warnings > 0);
    mica_tools_free(tools);
}

/* ---- Formats and requests ---- */

static void test_formats(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{HERMES_TEMPLATE, "hermes"}, {LLAMA3_TEMPLATE, "llama3"},
                                          {FUNCTIONARY_TEMPLATE, "functionary"},
                                          {MISTRAL_TEMPLATE, "mistral"}, {TEXT_TEMPLATE, "hermes"}, {PLAIN_TEMPLATE, "generic"},
                                          {STRICT_TEMPLATE, "generic"}, {"{{ raise_exception('no') }}", "generic"},
                                          /* tells of calls, but not of the tools */
                                          {"{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] "
                                           "%}<tool_call>{\"name\": \"{{ "
                                           "c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson "
                                           "}}}</tool_call>{% endfor %}"
                                           "{% endfor %}", "generic"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mica_tools *tools = make_tools(rows[i][0], TWO_TOOLS, MICA_TOOL_AUTO, NULL);
        assert_string_equal(mica_tools_format(tools), rows[i][1]);
        mica_tools_free(tools);
    }
}

#define CONVERSATION \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"1+2?\"}, {\"role\": \"assistant\", \"content\": null, " \
    "\"tool_calls\": [{\"id\": " \
    "\"call_01ab\", \"type\": \"function\", \"function\": {\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1, \\\"b\\\": " \
    "2}\"}}]}, " \
    "{\"role\": \"tool\", \"tool_call_id\": \"call_01ab\", \"content\": \"3\"}], \"tools\": [{\"mine\": 1}], " \
    "\"add_generation_prompt\": true}"

static void rendered(const char *template_text, mica_tool_choice choice, const char *request, char **text)
{
    mica_tools *tools = make_tools(template_text, TWO_TOOLS, choice, choice == MICA_TOOL_NAMED ? "add" : NULL);
    char *json;
    size_t n, n_text;
    mica_error err = {.message = ""};
    if (mica_tools_request(tools, request, strlen(request), &json, &n, &err))
        fail_msg("%s", err.message);
    if (mica_template_render(template_text, strlen(template_text), json, n, "", "", 0, text, &n_text, &err))
        fail_msg("%s\n%s", err.message, json);
    mica_free(json);
    mica_tools_free(tools);
}

static void check_rendered(const char *template_text, mica_tool_choice choice, const char *request, const char *wanted)
{
    char *text;
    rendered(template_text, choice, request, &text);
    if (!strstr(text, wanted))
        fail_msg("\"%s\"\nis not in\n%s", wanted, text);
    mica_free(text);
}

/* The API's arguments are text; what the template prints is an object, whichever it wants. */
static void test_native_requests(void **state)
{
    (void)state;
    char *text;
    check_rendered(HERMES_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION,
                   "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}\n</tool_call>[tool]3");
    check_rendered(HERMES_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, "{\"type\": \"function\", \"function\": {\"name\": \"add\"");
    check_rendered(LLAMA3_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION,
                   "{\"name\": \"add\", \"parameters\": {\"a\": 1, \"b\": 2}}[tool]3");
    check_rendered(TEXT_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, "\"arguments\": {\"a\": 1, \"b\": 2}}</tool_call>[tool]3");
    check_rendered(FUNCTIONARY_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, "Use get_weather to [user]1+2?");
    check_rendered(FUNCTIONARY_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, "<function=add>{\"a\": 1, \"b\": 2}</function>[tool]3");
    rendered(HERMES_TEMPLATE, MICA_TOOL_NONE, CONVERSATION, &text);
    assert_null(strstr(text, "[system]"));
    assert_null(strstr(text, "mine"));
    mica_free(text);
    /* an empty list of calls is none; arguments that are no object stay as they are */
    check_rendered(LLAMA3_TEMPLATE, MICA_TOOL_AUTO,
                   "{\"messages\": [{\"role\": \"assistant\", \"content\": \"hi\", \"tool_calls\": []}]}", "[assistant]hi");
    check_rendered(HERMES_TEMPLATE, MICA_TOOL_AUTO,
                   "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": "
                   "\"add\", \"arguments\": \"oops\"}}]}]}",
                   "\"arguments\": \"oops\"}");
}

static void test_generic_requests(void **state)
{
    (void)state;
    static const char system[] = "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", "
                                 "\"content\": \"Hi\"}]}";
    static const char call[] = "[assistant]{\"tool_call\": {\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": "
                               "2}}}[user]Result of add: 3";
    char *text;
    check_rendered(PLAIN_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, call);
    check_rendered(PLAIN_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, "[system]You can call these functions");
    check_rendered(PLAIN_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, "reply with ordinary text.[user]1+2?");
    check_rendered(PLAIN_TEMPLATE, MICA_TOOL_AUTO, system, "[system]Be brief.\n\nYou can call");
    check_rendered(PLAIN_TEMPLATE, MICA_TOOL_REQUIRED, system, "Reply with nothing but a call");
    check_rendered(STRICT_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, call);
    check_rendered(STRICT_TEMPLATE, MICA_TOOL_AUTO, CONVERSATION, "ordinary text.\n\n1+2?[assistant]");
    rendered(PLAIN_TEMPLATE, MICA_TOOL_NAMED, CONVERSATION, &text);
    assert_null(strstr(text, "get_weather"));
    mica_free(text);
    rendered(PLAIN_TEMPLATE, MICA_TOOL_NONE, CONVERSATION, &text);
    assert_string_equal(text,
                        "[user]1+2?[assistant]{\"tool_call\": {\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": "
                        "2}}}[user]Result of add: 3");
    mica_free(text);
}

/* Results that follow each other are one message of the user; contents may be lists of parts. */
static void test_generic_results(void **state)
{
    (void)state;
    check_rendered(STRICT_TEMPLATE, MICA_TOOL_NONE,
                   "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"assistant\", \"content\": "
                   "\"Well.\", \"tool_calls\": ["
                   "{\"id\": \"1\", \"function\": {\"name\": \"add\", \"arguments\": {}}}, {\"id\": \"2\", \"function\": "
                   "{\"name\": \"get_weather\"}}]}, "
                   "{\"role\": \"tool\", \"tool_call_id\": \"2\", \"content\": \"wet\"}, {\"role\": \"tool\", \"name\": "
                   "\"add\", \"content\": {\"sum\": 0.5}}, "
                   "{\"role\": \"assistant\", \"content\": \"So.\"}, {\"role\": \"tool\", \"content\": null}]}",
                   "[assistant]Well.\n{\"tool_call\": {\"name\": \"add\", \"arguments\": {}}}\n{\"tool_call\": {\"name\": "
                   "\"get_weather\"}}"
                   "[user]Result of get_weather: wet\nResult of add: {\"sum\": 0.5}[assistant]So.[user]Result of the call: ");
    check_rendered("{% for m in messages %}[{{ m.role }}]{{ m.content if m.content is string else m.content | "
                   "map(attribute='text') | join('|') }}{% endfor %}",
                   MICA_TOOL_AUTO,
                       "{\"messages\": [{\"role\": \"system\", \"content\": [{\"type\": \"text\", \"text\": \"Be brief.\"}]}]}",
                   "[system]Be brief.|You can call");
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "{", "[]", "{}", "{\"messages\": 5}", "{\"messages\": [5]}",
                                      "{\"messages\": [{\"tool_calls\": 5}]}"};
    for (int k = 0; k < 2; k++) {
        mica_tools *tools = make_tools(k ? HERMES_TEMPLATE : PLAIN_TEMPLATE, TWO_TOOLS, MICA_TOOL_AUTO, NULL);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            char *json;
            size_t n;
            mica_error err = {.message = ""};
            assert_int_equal(mica_tools_request(tools, bad[i], strlen(bad[i]), &json, &n, &err),
                             i < 2 ? MICA_BAD_TEXT : MICA_INVALID_ARGUMENT);
            assert_null(json);
            assert_true(*err.message);
        }
        mica_tools_free(tools);
    }
}

/* ---- Constraints ---- */

typedef struct reply {
    const char *text;
    bool allowed;
} reply;

static void check_replies(const char *template_text, mica_tool_choice choice, const char *name, const reply *replies, size_t n)
{
    mica_tools *tools = make_tools(template_text, TWO_TOOLS, choice, name);
    assert_non_null(mica_tools_constraint(tools));
    for (size_t i = 0; i < n; i++) {
        bool matches;
        size_t prefix;
        mica_error err;
        assert_int_equal(mica_constraint_match(mica_tools_constraint(tools), replies[i].text, strlen(replies[i].text), &matches,
                                               &prefix, &err), MICA_OK);
        if (matches != replies[i].allowed)
            fail_msg("%s, choice %d: %s is %s (%zu bytes agree)", mica_tools_format(tools), (int)choice, replies[i].text,
                     matches ? "allowed" : "refused", prefix);
    }
    mica_tools_free(tools);
}

#define CHECK(template_text, choice, name, replies) \
    check_replies(template_text, choice, name, replies, sizeof(replies) / sizeof *(replies))

static void test_hermes_constraint(void **state)
{
    (void)state;
    static const char add[] = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": -20}}\n</tool_call>";
    static const reply calls[] = {
        {add, true},
        {"<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\":1,\"b\":2}}\n</tool_call>\n<tool_call>\n{\"name\": "
         "\"get_weather\", \"arguments\": {\"city\":\"x\"}}\n</tool_call>", true},
        {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"\xC3\xA9\\\"\", \"unit\": \"F\"}}\n</tool_call>",
         true},
        {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\", \"unit\": \"K\"}}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"unit\": \"F\"}}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x\", \"more\": 1}}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"add\", \"arguments\": {\"city\": \"x\"}}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1.5, \"b\": 2}}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"sub\", \"arguments\": {\"a\": 1, \"b\": 2}}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"add\"}\n</tool_call>", false},
        {"<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}", false},
        {"", false},
    };
    static const reply texts[] = {{"", true},
                                  {"No tool is of use; a <tool_cal is no marker, \xE2\x82\xAC.", true},
                                  {"Let me see.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": "
                                   "2}}\n</tool_call>", true},
                                  {"<tool_<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}\n</tool_call>",
                                   true},
                                  {"{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}", true},
                                  {"```json\n{\n  \"name\": \"add\",\n  \"arguments\": {\"a\": 1, \"b\": 2}\n}\n```", true},
                                  {"```json\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}", false},
                                  {"```json\n{\"name\": \"sub\", \"arguments\": {\"a\": 1, \"b\": 2}}\n```", false},
                                  {"```json\n{\"names\": [\"sub\"]}\n```", true},
                                  {"```c\n{\"name\"}\n```", true},
                                  {"The marker is <tool_call>.", false},
                                  {"x<tool_call>\n{\"name\": \"sub\"}\n</tool_call>", false},
                                  {"\xFF", false}};
    static const reply named[] = {{add, true},
                                  {"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\":\"x\"}}\n</tool_call>",
                                   false},
                                  {"<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\":1,\"b\":2}}\n</tool_call>\n",
                                   false}};
    CHECK(HERMES_TEMPLATE, MICA_TOOL_REQUIRED, NULL, calls);
    CHECK(HERMES_TEMPLATE, MICA_TOOL_AUTO, NULL, texts);
    check_replies(HERMES_TEMPLATE, MICA_TOOL_AUTO, NULL, calls, 3);
    CHECK(HERMES_TEMPLATE, MICA_TOOL_NAMED, "add", named);
}

static void test_other_constraints(void **state)
{
    (void)state;
    static const reply llama[] = {{"{\"name\": \"add\", \"parameters\": {\"a\": 1, \"b\": 2}}", true},
                                  {"{\"name\": \"add\", \"parameters\": {\"a\": 1}}", false},
                                  {"{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}", false}};
    static const reply llama_auto[] = {{"{\"name\": \"add\", \"parameters\": {\"a\": 1, \"b\": 2}}", true},
                                       {"{\"name\": \"Bob\"}", false},
                                       {"{\"age\": 3, \"name\": \"Bob\"}", true},
                                       {" {\n\"name\": \"Bob\"}", false},
                                       {" {\n\"name\": \"add\", \"parameters\": {\"a\": 1, \"b\": 2}\n}", true},
                                       {"Sure: {\"name\": \"Bob\"}", true},
                                       {"I use <|python_tag|>", false}};
    static const reply mistral[] = {{"[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}, {\"name\": "
                                     "\"get_weather\", \"arguments\": {\"city\":\"x\"}}]", true},
                                    {"[TOOL_CALLS][]", false},
                                    {"[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}", false}};
    static const reply functionary[] = {{"<function=add>{\"a\": 1, \"b\": 2}</function>", true},
                                        {"<function=add>{\"a\": 1, \"b\": "
                                         "2}</function><function=get_weather>{\"city\":\"\"}</function>", true},
                                        {"<function=get_weather>{\"a\": 1, \"b\": 2}</function>", false}};
    static const reply generic[] = {{"{\"tool_call\": {\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}}", true},
                                    {"{\"tool_call\": {\"name\": \"add\", \"arguments\": {\"a\": \"1\", \"b\": 2}}}", false},
                                    {"Hello", false}};
    static const reply generic_auto[] = {{"Hello", true}, {"{\"tool\": 1}", true}, {"{\"tool_call\": 1}", false}, {"", true}};
    CHECK(LLAMA3_TEMPLATE, MICA_TOOL_REQUIRED, NULL, llama);
    CHECK(LLAMA3_TEMPLATE, MICA_TOOL_AUTO, NULL, llama_auto);
    CHECK(MISTRAL_TEMPLATE, MICA_TOOL_REQUIRED, NULL, mistral);
    CHECK(FUNCTIONARY_TEMPLATE, MICA_TOOL_REQUIRED, NULL, functionary);
    CHECK(PLAIN_TEMPLATE, MICA_TOOL_REQUIRED, NULL, generic);
    CHECK(PLAIN_TEMPLATE, MICA_TOOL_AUTO, NULL, generic_auto);
    mica_tools *none = make_tools(PLAIN_TEMPLATE, TWO_TOOLS, MICA_TOOL_NONE, NULL);
    assert_null(mica_tools_constraint(none));
    mica_tools_free(none);
}

/* What a list of tools leaves unsaid. */
static void test_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *parameters, *arguments;
        bool allowed;
    } rows[] = {
        {"", "{}", true},
        {"", "{\"x\":1}", false},
        {",\"parameters\":null", "{}", true},
        {",\"parameters\":{\"type\":\"object\",\"properties\":{}}", "{}", true},
        {",\"parameters\":{\"type\":\"object\",\"properties\":{}}", "{\"x\":1}", false},
        {",\"parameters\":{}", "{\"x\":1}", true},
        {",\"parameters\":{ }", "{}", true},
        {",\"parameters\":{\"properties\":{\"x\":{\"type\":\"integer\"}}}", "{\"x\":1}", true},
        {",\"parameters\":{\"properties\":{\"x\":{\"type\":\"integer\"}}}", "[]", false},
        {",\"parameters\":{\"properties\":{\"x\":{\"type\":\"integer\"}},\"additionalProperties\":true}", "{\"x\":1,\"y\":2}",
         true},
        {",\"parameters\":{\"type\":\"object\"}", "{\"y\":[1,{}]}", true},
        /* digits of bounds are read as they are written */
        {",\"parameters\":{\"properties\":{\"x\":{\"type\":\"number\",\"minimum\":0.1}}}", "{\"x\":0.1}", true},
        {",\"parameters\":{\"properties\":{\"x\":{\"type\":\"number\",\"maximum\":0.3}}}", "{\"x\":0.3}", true},
        {",\"parameters\":{\"properties\":{\"x\":{\"type\":\"number\",\"maximum\":0.3}}}", "{\"x\":0.31}", false},
        {",\"parameters\":{\"properties\":{\"x\":{\"type\":\"integer\",\"minimum\":-3,\"maximum\":7}}}", "{\"x\":8}", false},
        {",\"parameters\":{\"properties\":{\"x\":{\"$ref\":\"#/$defs/n\"}},\"$defs\":{\"n\":{\"const\":5}}}", "{\"x\":5}",
         true},
        {",\"parameters\":{\"properties\":{\"x\":{\"$ref\":\"#/$defs/n\"}},\"$defs\":{\"n\":{\"const\":5}}}", "{\"x\":6}",
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char list[512], text[512];
        snprintf(list, sizeof list, "[{\"name\":\"f\"%s}]", rows[i].parameters);
        snprintf(text, sizeof text, "<function=f>%s</function>", rows[i].arguments);
        mica_tools *tools = make_tools(FUNCTIONARY_TEMPLATE, list, MICA_TOOL_REQUIRED, NULL);
        bool matches;
        mica_error err;
        assert_int_equal(mica_constraint_match(mica_tools_constraint(tools), text, strlen(text), &matches, NULL, &err),
                         MICA_OK);
        if (matches != rows[i].allowed)
            fail_msg("row %zu: %s%s", i, list, text);
        mica_tools_free(tools);
    }
}

/* More calls than the limit, and none where only one may be. */
static void test_how_many(void **state)
{
    (void)state;
    char text[4096];
    for (int parallel = 0; parallel < 2; parallel++) {
        mica_tools_options o = mica_tools_options_default();
        mica_tools *tools;
        mica_error err;
        o.chat_template = FUNCTIONARY_TEMPLATE;
        o.choice = MICA_TOOL_REQUIRED;
        o.parallel = parallel;
        assert_int_equal(mica_tools_new(NULL, "[{\"name\":\"f\"}]", 14, &o, &tools, &err), MICA_OK);
        text[0] = '\0';
        for (int n = 1; n <= MICA_TOOL_CALLS_MAX + 1; n++) {
            bool matches;
            strcat(text, "<function=f>{}</function>");
            assert_int_equal(mica_constraint_match(mica_tools_constraint(tools), text, strlen(text), &matches, NULL, &err),
                             MICA_OK);
            assert_int_equal(matches, n <= (parallel ? MICA_TOOL_CALLS_MAX : 1));
        }
        mica_tools_free(tools);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_lists), cmocka_unit_test(test_bad_options), cmocka_unit_test(test_lenient),
            cmocka_unit_test(test_formats),
        cmocka_unit_test(test_native_requests), cmocka_unit_test(test_generic_requests), cmocka_unit_test(test_generic_results),
        cmocka_unit_test(test_bad_requests), cmocka_unit_test(test_hermes_constraint), cmocka_unit_test(test_other_constraints),
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_how_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
