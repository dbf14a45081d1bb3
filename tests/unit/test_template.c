/* The template engine: small templates against jinja2, the public cases tpl-*, and what has no counterpart in jinja2: messages
 * with places, limits, refusals, the checks of the request. */
#include "tmpl_data.h"

#include "text/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define CASES MICA_TEST_DATA "/cases/"

/* ---- Against jinja2 ---- */

static void test_snippets(void **state)
{
    (void)state;
    json_t *data = data_json(MICA_TEST_DATA "/templates/snippets.json"), *row;
    size_t i;
    int n = 0, failed = 0;
    assert_non_null(data);
    json_array_foreach(json_object_get(data, "snippets"), i, row)
    {
        json_t *text = json_array_get(row, 0), *expect = json_array_get(row, 1);
        failed += !data_check("snippet", json_string_value(text), json_string_length(text), json_object_get(data, "request"),
                              CLOCK,
                              json_is_null(expect) ? NULL : expect, "*");
        n++;
    }
    json_decref(data);
    printf("%d snippets, %d failed\n", n, failed);
    assert_true(n >= 1400);
    assert_int_equal(failed, 0);
}

/* ---- Public cases ---- */

static void run_cases(const char *id, int expected)
{
    char path[600];
    size_t length;
    int n = 0;
    snprintf(path, sizeof path, CASES "%s/template.jinja", id);
    char *text = data_read(path, &length);
    assert_non_null(text);
    snprintf(path, sizeof path, CASES "%s/cases.json", id);
    assert_int_equal(data_cases(path, text, length, &n), 0);
    assert_int_equal(n, expected);
    free(text);
}

#define CASE(function, id, n) \
    static void function(void **state) \
    { \
        (void)state; \
        run_cases(id, n); \
    }

CASE(test_tpl_01, "tpl-01-reverse-slice-namespace", 3)
CASE(test_tpl_03, "tpl-03-generation-block", 1)
CASE(test_tpl_04, "tpl-04-tojson-bytes", 1)
CASE(test_tpl_05, "tpl-05-tojson-arguments", 1)
CASE(test_tpl_06, "tpl-06-strftime-now", 3)
CASE(test_tpl_07, "tpl-07-raise-exception", 4)
CASE(test_tpl_08, "tpl-08-no-system-role", 3)
CASE(test_tpl_09, "tpl-09-thinking-switch", 6)
CASE(test_tpl_11, "tpl-11-content-null-and-parts", 2)
CASE(test_tpl_12, "tpl-12-whitespace-control", 1)
CASE(test_tpl_14, "tpl-14-macros-and-filters", 1)
CASE(test_tpl_16, "tpl-16-rare-features", 1)
CASE(test_tpl_17, "tpl-17-runtime-errors", 6)

static mica_status render(const char *text, const char *request, char **out, mica_error *err)
{
    size_t n;
    *err = (mica_error){0};
    return mica_template_render(text, strlen(text), request, strlen(request), "<s>", "</s>", CLOCK, out, &n, err);
}

/* tpl-19: each template prints nothing of the host, and include, import and extends do not even compile. */
static void test_tpl_19(void **state)
{
    (void)state;
    json_t *templates = data_json(CASES "tpl-19-escape-attempts/templates.json"), *one;
    size_t i;
    assert_non_null(templates);
    assert_int_equal(json_array_size(templates), 10);
    json_array_foreach(templates, i, one)
    {
        const char *text = json_string_value(one);
        mica_error err;
        char *out;
        mica_template *t;
        mica_status status = render(text, "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}", &out, &err);
        if (status == MICA_OK) {
            assert_null(strstr(out, "class"));
            assert_null(strstr(out, "builtin"));
            assert_null(strstr(out, "root:"));
            assert_string_equal(out, "");
        } else {
            assert_int_equal(status, MICA_BAD_TEMPLATE);
        }
        free(out);
        if (strstr(text, "include") || strstr(text, "import") || strstr(text, "extends")) {
            assert_int_equal(mica_template_compile(text, strlen(text), &t, &err), MICA_BAD_TEMPLATE);
            assert_null(t);
        }
    }
    json_decref(templates);
}

/* ---- Messages ---- */

#define REQUEST "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], \"big\": 9223372036854775807}"

static void expect_error_with(const char *text, const char *request, mica_status status, const char *message)
{
    mica_error err;
    char *out;
    mica_status got = render(text, request, &out, &err);
    if (got != status || !strstr(err.message, message))
        fail_msg("%.200s: expected %s with '%s', got %s: %s", text, mica_status_name(status), message, mica_status_name(got),
                 err.message);
    assert_null(out);
    assert_int_equal(err.code, status);
}

static void test_messages_have_places(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a\nb\n {% include 'x' %}", "line 3, column 5: the tag 'include' is not supported"},
        {"{% if x %}{% include 'x' %}{% endif %}", "line 1, column 14: the tag 'include' is not supported"},
        {"{% import 'x' as y %}", "the tag 'import' is not supported"},
        {"{% from 'x' import y %}", "the tag 'from' is not supported"},
        {"{% extends 'x' %}", "the tag 'extends' is not supported"},
        {"{% block x %}{% endblock %}", "the tag 'block' is not supported"},
        {"{% autoescape true %}{% endautoescape %}", "the tag 'autoescape' is not supported"},
        {"\xC3\xA9\xC3\xA9 {{ 1 | nofilter }}", "line 1, column 11: there is no filter named 'nofilter'"},
        {"{{ 1 is notest }}", "line 1, column 9: there is no test named 'notest'"},
        {"{{ x | random }}", "there is no filter named 'random'"},
        {"{{ x | urlize }}", "there is no filter named 'urlize'"},
        {"{{ x | wordwrap }}", "there is no filter named 'wordwrap'"},
        {"{{ x | pprint }}", "there is no filter named 'pprint'"},
        {"{{ x | striptags }}", "there is no filter named 'striptags'"},
        {"\n\n{% if true %}{{ 1 | nofilter }}{% endif %}", "line 3: there is no filter named 'nofilter'"},
        {"a\n{{ missing.x }}", "line 2: 'missing' is undefined"},
        {"{{\n\n messages[0].nope.x }}", "line 3: 'dict object' has no attribute 'nope'"},
        {"{{ 'a'.encode() }}", "line 1: the method str.encode() is not supported"},
        {"{{ lipsum() }}", "lipsum() is not supported"},
        {"{{ dict.fromkeys }}{{ {}.fromkeys() }}", "the method dict.fromkeys() is not supported"},
        {"{{ messages | map('upper') }}", "cannot be printed"},
        {"{{ big + 1 }}", "does not fit 64 bits"},
        {"{{ big * 2 }}", "does not fit 64 bits"},
        {"{{ -big - 2 }}", "does not fit 64 bits"},
        {"{{ 2 ** 63 }}", "does not fit 64 bits"},
        {"{{ '99999999999999999999' | int }}", "does not fit 64 bits"},
        {"{{ 99999999999999999999 }}", "line 1, column 4: this integer does not fit 64 bits"},
        {"{{ 2 ** 0.5 }}", "is not supported"},
        {"{{ strftime_now('%Q') }}", "strftime directive %Q is not supported"},
        {"{{ messages.append(1) }}", "access to attribute 'append' of 'list' object is unsafe"},
        {"{{ messages[0].update(1) }}", "access to attribute 'update' of 'dict' object is unsafe"},
        {"x {{ 'abc", "line 1, column 6: this string is not closed"},
        {"{{ 1", "this {{ is not closed by }}"},
        {"{% if 1 %}", "the template ends where"},
        {"{% for x in y %}{% endif %}", "unknown or misplaced tag 'endif'"},
        {"{{ raise_exception('caf\xC3\xA9 ' ~ messages[0].content) }}", "caf\xC3\xA9 hi"},
        {"{% macro f() %}\n{{ 1 // 0 }}{% endmacro %}\n{{ f() }}", "line 2: integer division or modulo by zero"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_error_with(rows[i][0], REQUEST, MICA_BAD_TEMPLATE, rows[i][1]);
}

static void test_positions_are_offsets(void **state)
{
    (void)state;
    mica_error err;
    char *out;
    assert_int_equal(render("ab\n{{ nope.x }}", REQUEST, &out, &err), MICA_BAD_TEMPLATE);
    assert_int_equal(err.position, 10); /* of the dot */
    assert_int_equal(render("ab\n{% nope %}", REQUEST, &out, &err), MICA_BAD_TEMPLATE);
    assert_int_equal(err.position, 6);
    assert_int_equal(render("ab\r\n{% nope %}", REQUEST, &out, &err), MICA_BAD_TEMPLATE); /* rewritten line ends: no offset */
    assert_int_equal(err.position, -1);
    assert_int_equal(render("ab\xFF", REQUEST, &out, &err), MICA_BAD_TEXT);
    assert_int_equal(err.position, 2);
    assert_int_equal(render("ab\xED\xA0\x80", REQUEST, &out, &err), MICA_BAD_TEXT); /* a surrogate */
    assert_int_equal(err.position, 2);
}

/* A long message is cut at a character. */
static void test_long_message_stays_utf8(void **state)
{
    (void)state;
    mica_error err;
    char *out;
    for (int shift = 0; shift < 3; shift++) {
        char text[200];
        snprintf(text, sizeof text, "{{ raise_exception('%.*s' ~ '\xE2\x82\xAC' * 500) }}", shift, "xx");
        assert_int_equal(render(text, REQUEST, &out, &err), MICA_BAD_TEMPLATE);
        size_t n = strlen(err.message);
        assert_true(n > 300 && n < sizeof err.message);
        assert_int_equal((unsigned char)err.message[n - 1], 0xAC);
        assert_int_equal((unsigned char)err.message[n - 3], 0xE2);
    }
}

/* ---- Limits: all of these must end quickly, with an error that says why ---- */

static void test_limits(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", "more than 10000000 steps"},
        {"{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}", "more than"},
        {"{{ range(100001) }}", "Range too big"},
        {"{{ range(0, 9223372036854775807, 1) }}", "Range too big"},
        {"{{ range(-9223372036854775807, 9223372036854775807) }}", "Range too big"},
        {"{{ 'x' * 100000000000 }}", "longer than 16 MiB"},
        {"{{ 'x' * 9223372036854775807 }}", "longer than 16 MiB"},
        {"{{ [1] * 9223372036854775807 }}", "too long"},
        {"{{ [1] * 9999999 }}", "more than"},
        {"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
         "longer than 16 MiB"},
        {"{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}", "more than"},
        {"{% set x = 'x' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}", "longer than 16 MiB"},
        {"{% set x = 'ab' * 1000000 %}{% for i in range(1000) %}{% set y = x|replace('a', 'bb') %}{% endfor %}", "more than"},
        {"{% set x = 'a' * 8000000 %}{% for i in range(100000) %}{% if (x ~ 'b') in x %}{% endif %}{% endfor %}", "more than"},
        {"{{ ('a' * 8000000).rfind('b' ~ 'a' * 4000000) }}{{ ('a' * 8000000).rfind('a' * 2000 ~ 'b' ~ 'a' * 2000) }}",
         "more than"},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested too deeply"},
        {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nested too deeply"},
        {"{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
         "nested too deeply"},
        {"{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l|tojson }}",
         "nested too deeply"},
        {"{% set a = namespace(l=[]) %}{% set b = namespace(l=[]) %}{% for i in range(5000) %}{% set a.l = [a.l] %}"
         "{% set b.l = [b.l] %}{% endfor %}{{ a.l == b.l }}",
         "nested too deeply"},
        {"{% set a = namespace(l=()) %}{% for i in range(5000) %}{% set a.l = (a.l,) %}{% endfor %}{{ {a.l: 1} }}",
         "nested too deeply"},
        {"{% set ns = namespace(g=[1]) %}{% for i in range(2000) %}{% set ns.g = ns.g|map('string') %}{% endfor %}"
         "{{ ns.g|list }}",
         "nested too deeply"},
        {"{{ '%100001d' % 1 }}", "width"},
        {"{{ '%.1000f' % 1 }}", "not supported"},
        {"{{ 'x'.center(9223372036854775807) }}", "longer than 16 MiB"},
        {"{{ '{:999999999}'.format(1) }}", "format specifier"},
        {"{{ [1]|batch(9223372036854775807, 0)|list }}", "too long"},
        {"{{ [1]|slice(9223372036854775807)|list }}", "more than"},
        {"{{ 'x'|indent(9223372036854775807) }}", "longer than 16 MiB"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_error_with(rows[i][0], REQUEST, MICA_BAD_TEMPLATE, rows[i][1]);
}

/* `before` n times, then `middle`, then `after` n times. */
static char *nest(const char *before, const char *middle, const char *after, size_t n)
{
    size_t a = strlen(before), b = strlen(after), m = strlen(middle);
    char *text = malloc(n * (a + b) + m + 1), *p = text;
    for (size_t i = 0; i < n; i++, p += a)
        memcpy(p, before, a);
    memcpy(p, middle, m);
    p += m;
    for (size_t i = 0; i < n; i++, p += b)
        memcpy(p, after, b);
    *p = '\0';
    return text;
}

static void test_deep_templates(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"{{ ", "", " }}"}, {"(", "1", ")"}, {"[", "1", "]"}, {"{1:", "1", "}"}, {"-", "1", ""}, {"not ", "1", ""},
            {"x.", "x", ""},
        {"f(", "1", ")"}, {"x[", "1", "]"}, {"1 if 1 else ", "1", ""}, {"1 + ", "1", ""}, {"1 ** ", "1", ""},
            {"1 and ", "1", ""},
        {"x|e(", "1", ")"}, {"", "x", "|upper"}, {"", "x", "()"}, {"", "x", " is defined"},
    };
    for (size_t i = 1; i < sizeof rows / sizeof *rows; i++) {
        char *inner = nest(rows[i][0], rows[i][1], rows[i][2], 20000), *text = nest("{{ ", inner, " }}", 1);
        mica_template *t;
        mica_error err = {0};
        mica_status status = mica_template_compile(text, strlen(text), &t, &err);
        if (status != MICA_BAD_TEMPLATE)
            fail_msg("'%s' nested 20000 times: %s %s", rows[i][0], mica_status_name(status), err.message);
        free(inner);
        free(text);
    }
    static const char *const blocks[][2] = {{"{% if 1 %}", "{% endif %}"}, {"{% for x in y %}", "{% endfor %}"},
                                            {"{% macro f() %}", "{% endmacro %}"}, {"{% set x %}", "{% endset %}"},
                                            {"{% filter upper %}", "{% endfilter %}"}, {"{% with %}", "{% endwith %}"},
                                            {"{% call f() %}", "{% endcall %}"}, {"{% generation %}", "{% endgeneration %}"}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        char *text = nest(blocks[i][0], "x", blocks[i][1], 5000);
        expect_error_with(text, REQUEST, MICA_BAD_TEMPLATE, "nested more than");
        free(text);
        text = nest(blocks[i][0], "x", blocks[i][1], 30);
        mica_template *t;
        assert_int_equal(mica_template_compile(text, strlen(text), &t, NULL), MICA_OK);
        mica_template_free(t);
        free(text);
    }
}

/* What is long but not deep must work. */
static void test_long_templates(void **state)
{
    (void)state;
    mica_error err;
    char *out;
    char *inner = nest("1 ~ ", "1", "", 5000), *text = nest("{{ ", inner, " }}", 1);
    assert_int_equal(render(text, REQUEST, &out, &err), MICA_OK);
    assert_int_equal(strlen(out), 5001);
    free(inner);
    free(text);
    free(out);
    text = nest("{% if no %}a{% elif messages %}b{% endif %}{% set x = 1 %}", "", "", 10000);
    assert_int_equal(render(text, REQUEST, &out, &err), MICA_OK);
    assert_int_equal(strlen(out), 10000);
    free(text);
    free(out);
    inner = nest("{% elif no %}b", "", "", 20000);
    text = nest("{% if no %}a", inner, "{% else %}c{% endif %}", 1);
    assert_int_equal(render(text, REQUEST, &out, &err), MICA_OK);
    assert_string_equal(out, "c");
    free(inner);
    free(text);
    free(out);
    text = nest("x", "", "", (1 << 20) + 1);
    expect_error_with(text, REQUEST, MICA_BAD_TEMPLATE, "more than the limit of 1048576");
    free(text);
}

/* Appending in a loop must not take quadratic memory. */
static void test_appending_is_linear(void **state)
{
    (void)state;
    mica_error err;
    char *out;
    assert_int_equal(render("{% set ns = namespace(s='') %}{% for i in range(30000) %}"
                            "{% set ns.s = ns.s ~ '0123456789' %}{% endfor %}"
                            "{{ ns.s|length }}",
                            REQUEST, &out, &err),
                     MICA_OK);
    assert_string_equal(out, "300000");
    free(out);
    assert_int_equal(render("{% set a = namespace(s='', t='') %}{% for i in range(30000) %}"
                            "{% set a.s = a.s ~ '012345' ~ i % 10 ~ ('x'|upper) %}"
                            "{% set a.t = a.t + ['ab'][0]|trim %}{% endfor %}{{ a.s|length }} {{ a.t|length }} {{ a.s[-8:] }}",
                            REQUEST, &out, &err),
                     MICA_OK);
    assert_string_equal(out, "240000 60000 0123459X");
    free(out);
}

/* Growing a string in place must not change strings that share its bytes. */
static void test_strings_are_values(void **state)
{
    (void)state;
    mica_error err;
    char *out;
    assert_int_equal(render("{% set a = 'x' ~ 'y' %}{% set b = a ~ '1' %}{% set c = a ~ '2' %}"
                            "{% set d = b ~ '3' %}{% set e = b[1:] ~ '4' %}"
                            "{{ a }} {{ b }} {{ c }} {{ d }} {{ e }}",
                            REQUEST, &out, &err),
                     MICA_OK);
    assert_string_equal(out, "xy xy1 xy2 xy13 y14");
    free(out);
    assert_int_equal(render("{% set a = 'x' * 300 ~ 'y' %}{% set b = a ~ '1' %}{% set c = a ~ '2' %}"
                            "{% set d = b ~ '3' %}{% set e = b[299:] ~ '4' %}"
                            "{{ a[299:] }} {{ b[299:] }} {{ c[299:] }} {{ d[299:] }} {{ e }}",
                            REQUEST, &out, &err),
                     MICA_OK);
    assert_string_equal(out, "xy xy1 xy2 xy13 xy14");
    free(out);
}

/* ---- The request ---- */

static void expect_output(const char *text, const char *request, const char *expected)
{
    mica_error err;
    char *out;
    if (render(text, request, &out, &err) != MICA_OK)
        fail_msg("%s: %s", text, err.message);
    assert_string_equal(out, expected);
    free(out);
}

static void test_request_variables(void **state)
{
    (void)state;
    expect_output("{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ bos_token }}{{ eos_token }}", "{\"messages\": []}",
                  "NoneNoneTrue<s></s>");
    expect_output("{{ add_generation_prompt }}{{ x }}{{ tools }}",
                  "{\"messages\": [], \"add_generation_prompt\": false, \"x\": 1, \"tools\": []}", "False1[]");
    expect_output("{{ x }}{{ bos_token }}{{ chat_template_kwargs is defined }}",
                  "{\"messages\": [], \"x\": 1, \"chat_template_kwargs\": {\"x\": 2, \"bos_token\": \"B\"}}", "2BFalse");
    expect_output("{{ x }}", "{\"messages\": [], \"x\": 1, \"chat_template_kwargs\": null}", "1");
    expect_output("{{ messages }}", "{\"messages\": [{\"z\": 1.0, \"a\": [true, null, -0.0, 1e30]}]}",
                  "[{'z': 1.0, 'a': [True, None, -0.0, 1e+30]}]");
    expect_output("{{ range }}", "{\"messages\": [], \"range\": \"mine\"}", "mine");
    expect_output("{{ x|length }}", "{\"messages\": [], \"x\": \"a\\u0000b\"}", "3");
    expect_output("{{ x }}{{ x.a }}", "{\"messages\": [], \"x\": {\"a\": 1, \"b\": 2, \"a\": 3}}", "{'a': 3, 'b': 2}3");
    char *out;
    size_t n;
    assert_int_equal(mica_template_render("{{ bos_token is defined }}", 26, "{\"messages\": []}", 16, NULL, NULL, CLOCK, &out,
                                          &n, NULL),
                     MICA_OK);
    assert_string_equal(out, "False");
    free(out);
}

/* A dict large enough to be indexed keeps its order and finds its keys. */
static void test_large_dict(void **state)
{
    (void)state;
    char request[8192], expected[8192];
    int r = sprintf(request, "{\"messages\": [], \"d\": {"), e = 0;
    for (int i = 0; i < 300; i++) {
        r += sprintf(request + r, "%s\"k%d\": %d", i ? "," : "", 300 - i, i);
        e += sprintf(expected + e, "k%d=%d;", 300 - i, i);
    }
    sprintf(request + r, "}}");
    expect_output("{% for k in d %}{{ k }}={{ d[k] }};{% endfor %}", request, expected);
    expect_output("{{ d.k7 }} {{ d.k301 is defined }} {{ 'k300' in d }}", request, "293 False True");
}

static void test_bad_requests(void **state)
{
    (void)state;
    static const struct {
        const char *request, *message;
        mica_status status;
    } rows[] = {
        {"{\"messages\": [", "is not valid JSON", MICA_BAD_TEXT},
        {"", "is not valid JSON", MICA_BAD_TEXT},
        {"{\"messages\": [\"\xFF\"]}", "is not valid JSON", MICA_BAD_TEXT},
        {"[]", "must be a JSON object", MICA_INVALID_ARGUMENT},
        {"{}", "must have \"messages\"", MICA_INVALID_ARGUMENT},
        {"{\"messages\": {}}", "must have \"messages\"", MICA_INVALID_ARGUMENT},
        {"{\"messages\": [{}, 1]}", "messages[1] must be an object", MICA_INVALID_ARGUMENT},
        {"{\"messages\": [], \"tools\": {}}", "\"tools\" must be an array", MICA_INVALID_ARGUMENT},
        {"{\"messages\": [], \"add_generation_prompt\": 1}", "must be true or false", MICA_INVALID_ARGUMENT},
        {"{\"messages\": [], \"chat_template_kwargs\": []}", "must be an object", MICA_INVALID_ARGUMENT},
        {"{\"messages\": [], \"chat_template_kwargs\": {\"messages\": []}}", "must not have", MICA_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_error_with("x", rows[i].request, rows[i].status, rows[i].message);
    char *lists = nest("[", "1", "]", 1000), *request = nest("{\"messages\": [], \"x\": ", lists, "}", 1);
    expect_error_with("x", request, MICA_BAD_TEMPLATE, "nested more than 200 levels");
    free(lists);
    free(request);
    expect_output("{{ x }}", "{\"messages\": [], \"x\": [[[[1]]]]}", "[[[[1]]]]");
}

static void test_public_arguments(void **state)
{
    (void)state;
    char *out = NULL;
    size_t n;
    mica_error err;
    assert_int_equal(mica_template_render(NULL, 0, "{}", 2, NULL, NULL, 0, &out, &n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_template_render("", 0, NULL, 0, NULL, NULL, 0, &out, &n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_template_render("", 0, "{}", 2, NULL, NULL, 0, NULL, &n, &err), MICA_INVALID_ARGUMENT);
    assert_int_equal(mica_template_render("", 0, "{\"messages\":[]}", 15, NULL, NULL, -1, &out, &n, NULL), MICA_OK);
    assert_string_equal(out, "");
    assert_int_equal(n, 0);
    free(out);
    mica_template_free(NULL);
}

/* now_unix negative: the clock. */
static void test_clock(void **state)
{
    (void)state;
    char *out;
    size_t n;
    const char *text = "{{ strftime_now('%Y')|int >= 2025 }}";
    assert_int_equal(mica_template_render(text, strlen(text), "{\"messages\":[]}", 15, NULL, NULL, -1, &out, &n, NULL),
                     MICA_OK);
    assert_string_equal(out, "True");
    free(out);
    static const struct {
        int64_t now;
        const char *expected;
    } rows[] = {{0, "1970-01-01 00:00:00 Thu 001 01"},
                {951782399, "2000-02-28 23:59:59 Mon 059 09"},
                {951868799, "2000-02-29 23:59:59 Tue 060 09"},
                {4107542399, "2100-02-28 23:59:59 Sun 059 08"},
                {4107542400, "2100-03-01 00:00:00 Mon 060 09"},
                {1735603200, "2024-12-31 00:00:00 Tue 366 01"},
                {1609459199, "2020-12-31 23:59:59 Thu 366 53"},
                {253402300799, "9999-12-31 23:59:59 Fri 365 52"}};
    text = "{{ strftime_now('%Y-%m-%d %H:%M:%S %a %j %V') }}";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(mica_template_render(text, strlen(text), "{\"messages\":[]}", 15, NULL, NULL, rows[i].now, &out, &n,
                                              NULL), MICA_OK);
        assert_string_equal(out, rows[i].expected);
        free(out);
    }
    mica_error err;
    assert_int_equal(mica_template_render(text, strlen(text), "{\"messages\":[]}", 15, NULL, NULL, 253402300800, &out, &n,
                                          &err),
                     MICA_BAD_TEMPLATE);
    assert_non_null(strstr(err.message, "years 1 to 9999"));
}

/* One compiled template serves any number of renderings. */
static void test_template_is_reusable(void **state)
{
    (void)state;
    const char *text = "{% set x = messages|length %}{% for m in messages %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}";
    mica_template *t;
    assert_int_equal(mica_template_compile(text, strlen(text), &t, NULL), MICA_OK);
    for (int i = 0; i < 5; i++) {
        const char *json = i % 2 ? "{\"messages\": [{}]}" : "{\"messages\": [{}, {}]}";
        mica_chat_request request = {.json = json, .length = strlen(json), .now_unix = 0};
        char *out;
        size_t n;
        assert_int_equal(mica_template_run(t, &request, &out, &n, NULL), MICA_OK);
        assert_string_equal(out, i % 2 ? "21" : "332");
        free(out);
    }
    mica_template_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snippets),
        cmocka_unit_test(test_tpl_01),
        cmocka_unit_test(test_tpl_03),
        cmocka_unit_test(test_tpl_04),
        cmocka_unit_test(test_tpl_05),
        cmocka_unit_test(test_tpl_06),
        cmocka_unit_test(test_tpl_07),
        cmocka_unit_test(test_tpl_08),
        cmocka_unit_test(test_tpl_09),
        cmocka_unit_test(test_tpl_11),
        cmocka_unit_test(test_tpl_12),
        cmocka_unit_test(test_tpl_14),
        cmocka_unit_test(test_tpl_16),
        cmocka_unit_test(test_tpl_17),
        cmocka_unit_test(test_tpl_19),
        cmocka_unit_test(test_messages_have_places),
        cmocka_unit_test(test_positions_are_offsets),
        cmocka_unit_test(test_long_message_stays_utf8),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_deep_templates),
        cmocka_unit_test(test_long_templates),
        cmocka_unit_test(test_appending_is_linear),
        cmocka_unit_test(test_strings_are_values),
        cmocka_unit_test(test_request_variables),
        cmocka_unit_test(test_large_dict),
        cmocka_unit_test(test_bad_requests),
        cmocka_unit_test(test_public_arguments),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_template_is_reusable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
