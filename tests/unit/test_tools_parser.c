/* Calls out of replies: every format, well formed and not, cut at every byte. */
#include "tools_util.h"

#include "tool/json_scan.h"

typedef struct reply {
    const char *format, *text, *events;
} reply;

static const char *template_of(const char *format)
{
    static const char *const all[][2] = {{"hermes", HERMES_TEMPLATE},       {"llama3", LLAMA3_TEMPLATE},
                                         {"mistral", MISTRAL_TEMPLATE},
                                         {"functionary", FUNCTIONARY_TEMPLATE}, {"generic", PLAIN_TEMPLATE}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i][0], format) == 0)
            return all[i][1];
    fail_msg("no format %s", format);
    return NULL;
}

static const reply replies[] = {
    /* Qwen2.5: one call, two calls, text in front; ids and digits as they come */
    {"hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>",
     "B0(add) A({\"a\": 2, \"b\": 3}) E0"},
    {"hermes",
     "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>\n<tool_call>\n{\"name\": "
     "\"get_weather\", "
     "\"arguments\": {\"city\": \"S\xC3\xA3o Paulo\"}}\n</tool_call>",
     "B0(add) A({\"a\": 2, \"b\": 3}) E0 B1(get_weather) A({\"city\": \"S\xC3\xA3o Paulo\"}) E1"},
    {"hermes", "I will look.\n\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>\n",
     "T(I will look.) B0(add) A({\"a\": 2, \"b\": 3}) E0"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call> That was it.\n\nBye. ",
     "B0(add) A({}) E0 T( That was it.\n\nBye. )"},
    /* no marker, parts of one, several beginnings */
    {"hermes", "No <tool> and no <tool_call; 1 < 2, <<tool_", "T(No <tool> and no <tool_call; 1 < 2, <<tool_)"},
    {"hermes", "<tool_<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>", "T(<tool_) B0(add) A({}) E0"},
    {"hermes", " \n ", "T( \n )"},
    /* braces, quotes and the marker inside of a string */
    {"hermes", "<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"}\\\"{ \\\\\"}}</tool_call>x",
     "B0(get_weather) A({\"city\":\"}\\\"{ \\\\\"}) E0 T(x)"},
    {"hermes", "<tool_call>{\"name\":\"get_weather\",\"arguments\":{\"city\":\"</tool_call><tool_call>\"}}</tool_call>",
     "B0(get_weather) A({\"city\":\"</tool_call><tool_call>\"}) E0"},
    /* members in another order, further ones, the API's arguments as text, none at all, a missing end */
    {"hermes", "<tool_call>{\"id\": [1, {}], \"arguments\": {\"a\":1,\"b\":2}, \"name\": \"add\", \"x\": null}</tool_call>",
     "B0(add) A({\"a\":1,\"b\":2}) E0"},
    {"hermes", "<tool_call>{\"name\": \"add\", \"arguments\": \"{\\\"a\\\": 1, \\\"b\\\": 2}\"}</tool_call>",
     "B0(add) A({\"a\": 1, \"b\": 2}) E0"},
    {"hermes", "<tool_call>{\"id\":7,\"name\":\"add\"}</tool_call>", "B0(add) A({}) E0"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"parameters\":{\"a\":1}}</tool", "B0(add) A({\"a\":1}) E0"},
    /* two objects between one pair of markers */
    {"hermes", "<tool_call>\n{\"name\":\"add\",\"arguments\":{}}\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n</tool_call>",
     "B0(add) A({}) E0 B1(add) A({\"a\":1}) E1"},
    /* without markers, in a fence, a list of such; JSON that is no call */
    {"hermes", "{\"name\": \"add\", \"arguments\": {\"a\": 2}}", "B0(add) A({\"a\": 2}) E0"},
    {"hermes", "```json\n{\n  \"name\": \"add\",\n  \"arguments\": {\n\"a\": 2}\n}\n```\n", "B0(add) A({\n\"a\": 2}) E0"},
    {"hermes", "```{\"name\":\"add\"}```\n```json{\"name\":\"add\"}```ok", "B0(add) A({}) E0 B1(add) A({}) E1 T(ok)"},
    {"hermes", "```json {\"name\":\"add\"}\n``", "B0(add) A({}) E0"},
    {"hermes", "```json\n{\"name\": \"Bob\"}\n```", "T(```json\n{\"name\": \"Bob\"}\n```)"},
    {"hermes", "```js\n{\"name\": \"add\"}\n```", "T(```js\n{\"name\": \"add\"}\n```)"},
    {"hermes", "``", "T(``)"},
    /* malformed: raw text, and what follows is read */
    {"hermes", "Hm <tool_call>\nadd(2, 3)\n</tool_call> so.", "T(Hm) X-1(<tool_call>\nadd(2, 3)\n</tool_call>) T( so.)"},
    {"hermes", "<tool_call>{\"name\":\"sub\",\"arguments\":{}}</tool_call>",
     "X-1(<tool_call>{\"name\":\"sub\",\"arguments\":{}}</tool_call>)"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1,}}</tool_call>",
     "B0(add) A({\"a\":1,) X0(<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1,}}</tool_call>)"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1",
     "B0(add) A({\"a\":1) X0(<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1)"},
    {"hermes",
     "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":1}}}\n</tool_call>\n<tool_call>{\"name\":\"add\"}</tool_call>",
     "B0(add) A({\"a\":1}) E0 X-1(}\n</tool_call>) B1(add) A({}) E1"},
    {"hermes", "<tool_call>add\n<tool_call>{\"name\":\"add\"}</tool_call>", "X-1(<tool_call>add\n) B0(add) A({}) E0"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"name\":\"add\"}</tool_call>",
     "X-1(<tool_call>{\"name\":\"add\",\"name\":\"add\"}</tool_call>)"},
    {"hermes", "<tool_call>{\"arguments\":{}}</tool_call>", "X-1(<tool_call>{\"arguments\":{}}</tool_call>)"},
    {"hermes", "<tool_call>{\"name\":\"add\",\"arguments\":[1]}</tool_call>",
     "X-1(<tool_call>{\"name\":\"add\",\"arguments\":[1]}</tool_call>)"},
    {"hermes", "<tool_call>{\"name\":7}</tool_call>", "X-1(<tool_call>{\"name\":7}</tool_call>)"},
    {"hermes", "<tool_call>", "X-1(<tool_call>)"},

    {"llama3", "{\"name\": \"get_weather\", \"parameters\": {\"city\": \"Paris\"}}",
     "B0(get_weather) A({\"city\": \"Paris\"}) E0"},
    {"llama3", "\n<|python_tag|>{ \"name\" : \"add\", \"parameters\": {\"a\": \"1\", \"b\": 2}}",
     "B0(add) A({\"a\": \"1\", \"b\": 2}) E0"},
    {"llama3", "{\"type\": \"function\", \"name\": \"add\"}", "T({\"type\": \"function\", \"name\": \"add\"})"},
    {"llama3", "{\"name\": \"add\", \"parameters\": {}}\n{\"name\": \"add\", \"parameters\": {\"a\":1}}",
     "B0(add) A({}) E0 B1(add) A({\"a\":1}) E1"},
    /* JSON that is no call is an answer */
    {"llama3", "{\"name\": \"Bob\", \"age\": 3}", "T({\"name\": \"Bob\", \"age\": 3})"},
    {"llama3", "  {\"name\"", "T(  {\"name\")"},
    {"llama3", "Like {\"name\": \"add\", \"parameters\": {}}", "T(Like {\"name\": \"add\", \"parameters\": {}})"},
    {"llama3", "{\"name\": \"add\", \"parameters\": {oops}}", "B0(add) A({) X0({\"name\": \"add\", \"parameters\": {oops}})"},
    {"llama3", "<|python_tag|>print(1)", "X-1(<|python_tag|>print(1))"},

    {"functionary", "<function=add>{\"a\": 1, \"b\": 2}</function><function=get_weather>{\"city\": \"<function=\"}</function>",
     "B0(add) A({\"a\": 1, \"b\": 2}) E0 B1(get_weather) A({\"city\": \"<function=\"}) E1"},
    {"functionary", "So: <function=add>{}</function> <function", "T(So:) B0(add) A({}) E0 T( <function)"},
    {"functionary", "<function=sub>{}</function>.", "X-1(<function=sub>{}</function>) T(.)"},
    {"functionary", "<function=add>5</function>", "X-1(<function=add>5</function>)"},

    {"mistral", "[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 1}}]", "B0(add) A({\"a\": 1}) E0"},
    {"mistral",
     "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {}, \"id\": \"x\"}, {\"name\": \"get_weather\", \"arguments\": {}}] ok",
     "B0(add) A({}) E0 B1(get_weather) A({}) E1 T( ok)"},
    {"mistral", "[TOOL_CALLS] none", "X-1([TOOL_CALLS] none)"},
    {"mistral", "[TOOL] [TOOL_CALLS][{\"name\": \"add\"", "T([TOOL]) X-1([TOOL_CALLS][{\"name\": \"add\")"},

    {"generic", "{\"tool_call\": {\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}}",
     "B0(add) A({\"a\": 1, \"b\": 2}) E0"},
    {"generic", "```json\n{\"tool_call\": {\"name\": \"add\", \"arguments\": {}}}\n``` ", "B0(add) A({}) E0"},
    {"generic", "\n{ \"tool_call\" :\n{\"name\": \"add\"}\n}\n", "B0(add) A({}) E0"},
    {"generic", "{\"tool_call\": 5}", "T({\"tool_call\": 5})"},
    {"generic", "{\"tool\": 1}", "T({\"tool\": 1})"},
    {"generic", "{\"tool_call\": {\"name\": \"add\", \"arguments\": {}}, \"x\": 1}", "B0(add) A({}) E0 X-1(, \"x\": 1})"},
};

/* Feeds text in pieces that end at a, b and the end. */
static void check(const mica_tools *tools, const reply *r, size_t a, size_t b)
{
    event_log log;
    mica_error err = {.message = ""};
    mica_tool_parser *parser;
    size_t n = strlen(r->text), cuts[] = {0, a, b, n};
    log_init(&log);
    assert_int_equal(mica_tool_parser_new(tools, 7, log_event, &log, &parser, &err), MICA_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mica_tool_parser_feed(parser, r->text + cuts[i], cuts[i + 1] - cuts[i], &err), MICA_OK);
    assert_int_equal(mica_tool_parser_finish(parser, &err), MICA_OK);
    if (strcmp(log.line.length ? log.line.data : "", r->events) != 0)
        fail_msg("%s, cut at %zu and %zu:\n%s\ngives    %s\nnot      %s", r->format, a, b, r->text, log.line.data, r->events);
    mica_tool_parser_free(parser);
    log_free(&log);
}

static void test_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        mica_tools *tools = make_tools(template_of(replies[i].format), TWO_TOOLS, MICA_TOOL_AUTO, NULL);
        size_t n = strlen(replies[i].text);
        assert_string_equal(mica_tools_format(tools), replies[i].format);
        for (size_t a = 0; a <= n; a++)
            for (size_t b = a; b <= n; b += n < 60 ? 1 : 7)
                check(tools, &replies[i], a, b);
        mica_tools_free(tools);
    }
}

static void test_every_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        mica_tools *tools = make_tools(template_of(replies[i].format), TWO_TOOLS, MICA_TOOL_REQUIRED, NULL);
        event_log log;
        mica_error err;
        mica_tool_parser *parser;
        log_init(&log);
        assert_int_equal(mica_tool_parser_new(tools, 7, log_event, &log, &parser, &err), MICA_OK);
        for (const char *c = replies[i].text; *c; c++)
            assert_int_equal(mica_tool_parser_feed(parser, c, 1, &err), MICA_OK);
        assert_int_equal(mica_tool_parser_finish(parser, &err), MICA_OK);
        assert_string_equal(log.line.length ? log.line.data : "", replies[i].events);
        mica_tool_parser_free(parser);
        log_free(&log);
        mica_tools_free(tools);
    }
}

/* Text comes as soon as it cannot be a marker, arguments with the piece that brings them. */
static void test_streams(void **state)
{
    (void)state;
    static const char *const pieces[] = {"Let", " me <", "b> see <tool", "_call>\n{\"name\": \"a",
                                         "dd\", \"arguments\": {\"a\"", ": 1}", "}"};
    static const char *const seen[] = {"T(Let)", "T(Let me)", "T(Let me <b> see)", "T(Let me <b> see)",
                                       "T(Let me <b> see) B0(add) A({\"a\")", "T(Let me <b> see) B0(add) A({\"a\": 1})",
                                       "T(Let me <b> see) B0(add) A({\"a\": 1}) E0"};
    mica_tools *tools = make_tools(HERMES_TEMPLATE, TWO_TOOLS, MICA_TOOL_AUTO, NULL);
    event_log log;
    mica_error err;
    mica_tool_parser *parser;
    log_init(&log);
    assert_int_equal(mica_tool_parser_new(tools, 1, log_event, &log, &parser, &err), MICA_OK);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        assert_int_equal(mica_tool_parser_feed(parser, pieces[i], strlen(pieces[i]), &err), MICA_OK);
        assert_string_equal(log.line.data, seen[i]);
        assert_int_equal(mica_tool_parser_calls(parser), i == 6);
    }
    mica_tool_parser_free(parser);
    log_free(&log);
    mica_tools_free(tools);
}

static void id_of(const char *template_text, int64_t seed, char id[64])
{
    static const char hermes[] = "<tool_call>{\"name\":\"add\"}</tool_call>", mistral[] = "[TOOL_CALLS][{\"name\":\"add\"}]";
    mica_tools *tools = make_tools(template_text, TWO_TOOLS, MICA_TOOL_AUTO, NULL);
    const char *text = strcmp(mica_tools_format(tools), "hermes") == 0 ? hermes : mistral;
    event_log log;
    mica_error err;
    mica_tool_parser *parser;
    log_init(&log);
    assert_int_equal(mica_tool_parser_new(tools, seed, log_event, &log, &parser, &err), MICA_OK);
    assert_int_equal(mica_tool_parser_feed(parser, text, strlen(text), &err), MICA_OK);
    memcpy(id, log.id, 64);
    mica_tool_parser_free(parser);
    log_free(&log);
    mica_tools_free(tools);
}

static void test_ids(void **state)
{
    (void)state;
    char a[64], b[64];
    id_of(HERMES_TEMPLATE, 5, a);
    id_of(HERMES_TEMPLATE, 5, b);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), 5 + 24);
    assert_memory_equal(a, "call_", 5);
    assert_int_equal(strspn(a + 5, "0123456789abcdef"), 24);
    id_of(HERMES_TEMPLATE, 6, b);
    assert_string_not_equal(a, b);
    id_of(HERMES_TEMPLATE, -1, a);
    id_of(HERMES_TEMPLATE, -1, b);
    assert_string_not_equal(a, b);
    id_of(MISTRAL_TEMPLATE, 5, a);
    assert_int_equal(strlen(a), 9);
}

static void test_none_parses_nothing(void **state)
{
    (void)state;
    const char *text = "<tool_call>{\"name\":\"add\"}</tool_call> ";
    mica_tools *tools = make_tools(HERMES_TEMPLATE, TWO_TOOLS, MICA_TOOL_NONE, NULL);
    event_log log;
    mica_error err;
    mica_tool_parser *parser;
    log_init(&log);
    assert_int_equal(mica_tool_parser_new(tools, 5, log_event, &log, &parser, &err), MICA_OK);
    assert_int_equal(mica_tool_parser_feed(parser, text, strlen(text), &err), MICA_OK);
    assert_int_equal(mica_tool_parser_finish(parser, &err), MICA_OK);
    assert_string_equal(log.line.data, "T(<tool_call>{\"name\":\"add\"}</tool_call> )");
    mica_tool_parser_free(parser);
    log_free(&log);
    mica_tools_free(tools);
}

static void test_reader_stops(void **state)
{
    (void)state;
    const char *text = "Hm. <tool_call>{\"name\":\"add\"}</tool_call> And.";
    mica_tools *tools = make_tools(HERMES_TEMPLATE, TWO_TOOLS, MICA_TOOL_AUTO, NULL);
    for (int after = 1; after <= 5; after++) {
        event_log log;
        mica_error err = {.code = MICA_OK};
        mica_tool_parser *parser;
        log_init(&log);
        log.stop_after = after;
        assert_int_equal(mica_tool_parser_new(tools, 5, log_event, &log, &parser, &err), MICA_OK);
        assert_int_equal(mica_tool_parser_feed(parser, text, strlen(text), &err), MICA_CANCELLED);
        assert_int_equal(err.code, MICA_CANCELLED);
        size_t length = log.line.length;
        assert_int_equal(mica_tool_parser_feed(parser, text, strlen(text), &err), MICA_CANCELLED);
        assert_int_equal(mica_tool_parser_finish(parser, &err), MICA_CANCELLED);
        assert_int_equal(log.line.length, length);
        mica_tool_parser_free(parser);
        log_free(&log);
    }
    mica_tools_free(tools);
}

/* Endless blanks, endless names, deep nesting: all of it comes out again, and little is held. */
static void test_hostile(void **state)
{
    (void)state;
    mica_tools *tools = make_tools(HERMES_TEMPLATE, TWO_TOOLS, MICA_TOOL_AUTO, NULL);
    static const char *const openings[] = {"", "<tool_call>", "<tool_call>{\"", "<tool_call>{\"name\":\"",
                                           "<tool_call>{\"name\":\"add\",\"arguments\":{\"a\":"};
    static const char fills[] = " x[\"\\<{";
    for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
        for (const char *fill = fills; *fill; fill++) {
            event_log log;
            mica_error err;
            mica_tool_parser *parser;
            log_init(&log);
            assert_int_equal(mica_tool_parser_new(tools, 5, log_event, &log, &parser, &err), MICA_OK);
            assert_int_equal(mica_tool_parser_feed(parser, openings[i], strlen(openings[i]), &err), MICA_OK);
            for (int k = 0; k < 3000; k++)
                assert_int_equal(mica_tool_parser_feed(parser, fill, 1, &err), MICA_OK);
            assert_int_equal(mica_tool_parser_finish(parser, &err), MICA_OK);
            assert_int_equal(mica_tool_parser_calls(parser), 0);
            assert_true(log.line.length >= strlen(openings[i]) + 3000);
            mica_tool_parser_free(parser);
            log_free(&log);
        }
    mica_tools_free(tools);
}

static void test_json_scan(void **state)
{
    (void)state;
    static const char *const good[] = {"0", "-0", "-12.5e+3", "1E9", "10", "true", "false", "null", "\"\"",
                                       "\"\\u00e9\\n\\\"\"", "[]", "{}", "[1, 2 ,[ ]]",
                                       "{\"a\": {\"b\" : [0.5, {}]} , \"c\":null}", "[1,true,\"x\"]"};
    static const char *const bad[] = {"", "-", "01", "1.", "1.e2", ".5", "1e", "tru", "nulL", "\"\\x\"", "\"\\u12g4\"",
                                      "\"\n\"", "[1,]", "[,1]", "[1 2]", "{a:1}",
                                      "{\"a\" 1}", "{\"a\":1,}", "{\"a\"}", "[}", "{]", "]", "+1", "'a'", "[01]", "{1:2}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(mica_json_value_length(good[i], strlen(good[i])), strlen(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(mica_json_value_length(bad[i], strlen(bad[i])) != strlen(bad[i]) || !*bad[i]);
    assert_int_equal(mica_json_value_length("12, 3", 5), 2);
    assert_int_equal(mica_json_value_length("[1] ]", 5), 3);
    char deep[2 * MICA_JSON_SCAN_DEPTH + 4];
    for (int depth = MICA_JSON_SCAN_DEPTH; depth <= MICA_JSON_SCAN_DEPTH + 1; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        assert_int_equal(mica_json_value_length(deep, 2 * (size_t)depth), depth == MICA_JSON_SCAN_DEPTH ? 2 * depth : 0);
    }
}

static void test_json_members(void **state)
{
    (void)state;
    const char *text = " { \"a\" : 1.50 , \"b\":[1, 2], \"c\":{} } ";
    static const char *const keys[] = {"a", "b", "c"}, *const values[] = {"1.50", "[1, 2]", "{}"};
    size_t at = 0, n = 0;
    mica_json_member m;
    for (; mica_json_next(text, strlen(text), &at, &m); n++) {
        assert_true(n < 3);
        assert_int_equal(m.key_length, strlen(keys[n]));
        assert_memory_equal(m.key, keys[n], m.key_length);
        assert_int_equal(m.value_length, strlen(values[n]));
        assert_memory_equal(m.value, values[n], m.value_length);
    }
    assert_int_equal(n, 3);
    at = 0;
    for (n = 0; mica_json_next("[1,\"x\", {\"a\":1}]", 17, &at, &m); n++)
        assert_int_equal(m.key_length, 0);
    assert_int_equal(n, 3);
    at = 0;
    assert_false(mica_json_next("[ ]", 3, &at, &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut), cmocka_unit_test(test_every_byte), cmocka_unit_test(test_streams),
            cmocka_unit_test(test_ids),
        cmocka_unit_test(test_none_parses_nothing), cmocka_unit_test(test_reader_stops), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_json_scan), cmocka_unit_test(test_json_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
