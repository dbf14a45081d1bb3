/* JSON Schema: the public cases by their ids, what each keyword allows and refuses, and what is refused as a whole, with its
 * place. */
#include "schema_util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tmpl_data.h"

#define CASES MICA_TEST_DATA "/cases/"

/* ---- The public cases ---- */

/* Lines of a file are texts, as JSON strings. */
static int check_lines(schema_test *t, const char *path, bool expected, int *n)
{
    FILE *f = fopen(path, "r");
    static char line[1 << 17];
    int wrong = 0;
    if (!f)
        return 1;
    while (fgets(line, sizeof line, f)) {
        json_t *text = json_loads(line, JSON_DECODE_ANY, NULL);
        if (!text)
            continue;
        ++*n;
        if (schema_accepts_n(t, json_string_value(text), json_string_length(text)) != expected) {
            fprintf(stderr, "%s: %.200s\n", path, line);
            wrong++;
        }
        json_decref(text);
    }
    fclose(f);
    return wrong;
}

static void check_case(const char *id, int accepted, int rejected)
{
    char path[600];
    size_t length;
    int n = 0;
    snprintf(path, sizeof path, CASES "%s/schema.json", id);
    char *text = data_read(path, &length);
    assert_non_null(text);
    schema_test t = schema_compile_n(text, length, NULL);
    if (t.status)
        fail_msg("%s: %s", id, t.err.message);
    snprintf(path, sizeof path, CASES "%s/accept.jsonl", id);
    assert_int_equal(check_lines(&t, path, true, &n), 0);
    assert_int_equal(n, accepted);
    snprintf(path, sizeof path, CASES "%s/reject.jsonl", id);
    assert_int_equal(check_lines(&t, path, false, &n), 0);
    assert_int_equal(n, accepted + rejected);
    schema_free(&t);
    free(text);
}

static void test_gr_01_pattern_classes(void **state)
{
    (void)state;
    check_case("gr-01-pattern-classes", 1, 4);
}
static void test_gr_02_pattern_escapes(void **state)
{
    (void)state;
    check_case("gr-02-pattern-escapes", 3, 4);
}
static void test_gr_03_enum_behind_ref(void **state)
{
    (void)state;
    check_case("gr-03-enum-behind-ref", 2, 4);
}
static void test_gr_08_const_with_quotes(void **state)
{
    (void)state;
    check_case("gr-08-const-with-quotes", 2, 1);
}
static void test_gr_09_integer_ranges(void **state)
{
    (void)state;
    check_case("gr-09-integer-ranges", 3, 10);
}
static void test_gr_10_additional(void **state)
{
    (void)state;
    check_case("gr-10-additional-properties", 4, 4);
}
static void test_gr_11_items(void **state)
{
    (void)state;
    check_case("gr-11-items-and-unique", 2, 5);
}

/* A text nested 500 deep, and one less bracket. */
static void test_gr_05_recursive_tree(void **state)
{
    (void)state;
    check_case("gr-05-recursive-tree", 2, 3);
    size_t length;
    char *schema = data_read(CASES "gr-05-recursive-tree/schema.json", &length);
    schema_test t = schema_compile_n(schema, length, NULL);
    assert_int_equal(t.status, MICA_OK);
    mica_buf text;
    mica_buf_init(&text, 1 << 20);
    for (int i = 0; i < 500; i++)
        mica_buf_puts(&text, "{\"v\":1,\"kids\":[");
    for (int i = 0; i < 500; i++)
        mica_buf_puts(&text, "]}");
    assert_true(schema_accepts_n(&t, text.data, text.length));
    assert_false(schema_accepts_n(&t, text.data, text.length - 1));
    mica_buf_free(&text);
    schema_free(&t);
    free(schema);
}

static void check_length_bound(long bound, const char *more)
{
    char schema[200];
    struct timespec from, to;
    snprintf(schema, sizeof schema, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":%ld%s},\"maxItems\":%ld}",
             bound, more, bound);
    clock_gettime(CLOCK_MONOTONIC, &from);
    schema_test t = schema_compile(schema);
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_int_equal(t.status, MICA_OK);
    assert_true((double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9 < 1.0);
    for (int extra = 0; bound > 0 && bound < 100000 && extra < 2; extra++) {
        mica_buf text;
        mica_buf_init(&text, 1 << 20);
        mica_buf_puts(&text, "[\"");
        for (long i = 0; i < bound + extra; i++)
            mica_buf_puts(&text, i % 7 ? "a": "\xC3\xA9");
        mica_buf_puts(&text, "\"]");
        if (schema_accepts_n(&t, text.data, text.length) == !!extra)
            fail_msg("%s with %ld characters", schema, bound + extra);
        mica_buf_free(&text);
    }
    assert_true(schema_accepts(&t, "[\"\",\"a\"]") || bound < 2);
    schema_free(&t);
}

static void test_gr_06_max_length(void **state)
{
    (void)state;
    static const long bounds[] = {0, 1, 2, 255, 1999, 2000, 2001, 65535, 65536, 1000000, 2147483646, 2147483647};
    check_case("gr-06-max-length-threshold", 3, 2);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        check_length_bound(bounds[i], "");
    check_length_bound(2147483647, ",\"minLength\":0");
    check_length_bound(2000, ",\"pattern\":\"^[a\\u00e9]*$\"");
}

static void test_gr_13_no_trailing_blank(void **state)
{
    (void)state;
    size_t length;
    char *schema = data_read(CASES "gr-13-no-trailing-blank/schema.json", &length);
    assert_non_null(schema);
    mica_schema_options options = {.whitespace = true};
    for (int blanks = 0; blanks < 2; blanks++) {
        schema_test t = schema_compile_n(schema, length, blanks ? &options : NULL);
        assert_int_equal(t.status, MICA_OK);
        assert_true(schema_accepts(&t, "{\"a\":\"x\"}"));
        assert_true(mica_matcher_must_end(t.matcher));
        assert_false(schema_accepts(&t, "{\"a\":\"x\"} "));
        assert_false(schema_accepts(&t, "{\"a\":\"x\"}\n"));
        schema_free(&t);
    }
    free(schema);
}

/* Each is refused before anything is generated, and the message names the place. */
static void test_gr_15_fail_closed(void **state)
{
    (void)state;
    static const struct {
        mica_status status;
        const char *place;
    } expected[] = {
        {MICA_UNSUPPORTED, "#/properties/a/pattern: "},
        {MICA_UNSUPPORTED, "#/properties/a/pattern: "},
        {MICA_BAD_TEXT, "#/properties/a/pattern: "},
        {MICA_BAD_TEXT, "#/properties/a/pattern: "},
        {MICA_BAD_TEXT, "#/type: "},
        {MICA_BAD_TEXT, "#/$ref: "},
        {MICA_UNSUPPORTED, "#/$ref: "},
        {MICA_INVALID_ARGUMENT, "nothing is valid"},
        {MICA_INVALID_ARGUMENT, "#/enum"},
        {MICA_INVALID_ARGUMENT, "nothing is valid"},
    };
    json_t *schemas = data_json(CASES "gr-15-fail-closed/schemas.json"), *schema;
    size_t i;
    assert_int_equal(json_array_size(schemas), sizeof expected / sizeof *expected);
    json_array_foreach(schemas, i, schema)
    {
        char *text = json_dumps(schema, JSON_ENCODE_ANY);
        schema_test t = schema_compile(text);
        if (t.status != expected[i].status || !strstr(t.err.message, expected[i].place))
            fail_msg("%s: %s: %s", text, mica_status_name(t.status), t.err.message);
        assert_null(t.automaton);
        free(text);
    }
    json_decref(schemas);
}

/* ---- Keywords ---- */

#define S(...) #__VA_ARGS__

static const schema_row rows[] = {
    /* types */
    {"true",
     {"1", "-0.5", "\"\"", "[]", "{}", "[1,{\"a\":[null,true]}]", "\"a\\n\\\"\\\\\\u0000\""},
     {"", " 1", "1 ", "[1, 2]", "-0", "01", "+1", "1.", ".5", "\"\n\"", "\"\\/\""}},
    {S({"type": "integer"}),
     {"0", "-1", "9223372036854775807", "-9223372036854775808"},
     {"1.0", "1e3", "9223372036854775808", "null", "\"1\""}},
    {S({"type": "number"}),
     {"0", "1.0", "-0.5", "0.001", "3.1415926535897931"},
     {"-0", "-0.0", "1e5", "00", "1.", "0.12345678901234567"}},
    {S({"type": ["string", "null"]}), {"null", "\"x\""}, {"1", "[]"}},
    {S({"type": "string", "nullable": true}), {"null", "\"x\""}, {"1"}},
    {S({"type": "boolean"}), {"true", "false"}, {"null", "True", "1"}},
    {S({"type": [], "nullable": true}), {"null"}, {"1"}},
    {"{}", {"1", "{}"}, {""}},
    /* a keyword for one type leaves the others alone */
    {S({"minimum": 5}), {"5", "\"x\"", "null", "[]", "{}"}, {"4"}},
    {S({"maxLength": 1}), {"5", "\"x\"", "\"\\n\"", "null"}, {"\"xx\""}},
    {S({"required": ["a"]}), {"5", "{\"a\":1}", "[]"}, {"{}", "{\"b\":1}"}},
    /* numbers */
    {S({"type": "integer", "minimum": -5, "maximum": 17}), {"-5", "0", "9", "10", "17"}, {"-6", "18", "-0", "007", "170"}},
    {S({"type": "integer", "exclusiveMinimum": 99, "exclusiveMaximum": 1000}), {"100", "999"}, {"99", "1000"}},
    {S({"type": "integer", "minimum": 0.5, "maximum": 2.5}), {"1", "2"}, {"0", "3"}},
    {S({"type": "number", "minimum": 0.1, "exclusiveMaximum": 1}),
     {"0.1", "0.10", "0.5", "0.99999"},
     {"0.09", "1", "1.0", "0", "-0.5"}},
    {S({"type": "number", "exclusiveMinimum": 0, "maximum": 1e-2}), {"0.01", "0.005", "0.010"}, {"0", "0.0", "0.011"}},
    {S({"type": "number", "exclusiveMinimum": -1.5, "maximum": -0.5}),
     {"-1.4", "-0.5", "-1", "-0.50"},
     {"-1.5", "-0.4", "0", "1"}},
    {S({"type": "integer", "minimum": 18446744073709551615}),
     {"18446744073709551615", "99999999999999999999"},
     {"18446744073709551614", "0"}},
    {S({"type": "integer", "multipleOf": 7}), {"0", "7", "-14", "700"}, {"1", "8", "-13"}},
    {S({"type": "integer", "multipleOf": 1000, "minimum": 1}), {"1000", "12000", "1000000"}, {"0", "100", "1500"}},
    {S({"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 10}),
     {"0", "0.25", "0.5", "0.50", "1", "9.75", "10"},
     {"0.1", "0.26", "10.25", "0.255"}},
    {S({"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]}), {"0", "12", "24"}, {"4", "6", "8"}},
    {S({"type": "integer", "format": "int32"}), {"2147483647", "-2147483648"}, {"2147483648"}},
    /* strings */
    {S({"type": "string", "minLength": 2, "maxLength": 3}),
     {"\"ab\"", "\"a\\nb\"", "\"\xC3\xA9\xF0\x9F\x99\x82\""},
     {"\"a\"", "\"abcd\"", "\"\""}},
    {S({"type": "string", "pattern": "b"}), {"\"b\"", "\"abc\""}, {"\"\"", "\"ac\""}},
    {S({"type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 4}),
     {"\"aa\"", "\"aaaa\""},
     {"\"a\"", "\"aaaaa\"", "\"ab\""}},
    {S({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string", "maxLength": 2}),
     {"\"ab\"", "\"ba\""},
     {"\"aa\"", "\"abc\"", "\"a\""}},
    {S({"type": "string", "pattern": "^\\n\"$"}), {"\"\\n\\\"\""}, {"\"n\""}},
    /* enum, const */
    {S({"enum": ["a", 1, 1.50, null, [ 1, {"x": true}]]}),
     {"\"a\"", "1", "1.5", "null", "[1,{\"x\":true}]"},
     {"\"b\"", "1.50", "[1, {\"x\": true}]"}},
    {S({"enum": ["a", "bb", 3 ], "type": "string", "maxLength": 1}), {"\"a\""}, {"\"bb\"", "3"}},
    {S({"const": {"b": 1, "a": [2]}}), {"{\"b\":1,\"a\":[2]}"}, {"{\"a\":[2],\"b\":1}", "{}"}},
    {S({"const": -0}), {"0"}, {"-0"}},
    {S({"const": 1e2}), {"100"}, {"1e2"}},
    {S({"enum": [1, 2, 3 ], "allOf": [{"enum": [2, 3, 4]}, {"const": 3.0}]}), {"3"}, {"2", "1"}},
    /* arrays */
    {S({"type": "array", "items": {"type": "integer"}}), {"[]", "[1]", "[1,2,3]"}, {"[1,]", "[,1]", "[1.5]", "[1 ,2]"}},
    {S({"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2}),
     {"[null]", "[null,null]"},
     {"[]", "[null,null,null]"}},
    {S({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}}),
     {"[]", "[1]", "[1,2]", "[1,2,3,3]"},
     {"[2]", "[1,3]", "[1,2,2]"}},
    {S({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false, "minItems": 1}),
     {"[1]", "[1,2]"},
     {"[]", "[1,2,3]"}},
    {S({"type": "array", "prefixItems": [{"const": 1}, false, {"const": 3}]}), {"[]", "[1]"}, {"[1,2]", "[1,2,3]"}},
    {S({"type": "array", "items": [{"const": 1}], "additionalItems": {"const": 2}}),
     {"[]", "[1,2,2]"},
     {"[2]", "[1,1]"}},
    {S({"type": "array", "maxItems": 0}), {"[]"}, {"[1]"}},
    {S({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1}), {"[]", "[1]"}, {"[1,2]"}},
    {S({"type": "array", "uniqueItems": false, "items": {"const": 1}, "maxItems": 2}), {"[1,1]"}, {"[1,1,1]"}},
    /* objects */
    {S({
         "type": "object",
         "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
         "additionalProperties": false
     }),
     {"{}", "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"c\":3}", "{\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}"},
     {"{\"b\":2,\"a\":1}", "{,\"a\":1}", "{\"a\":1,}", "{\"a\":1,\"a\":1}", "{\"a\":2}", "{\"d\":1}"}},
    {S({
         "type": "object",
         "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
         "required": ["b"],
         "additionalProperties": false
     }),
     {"{\"b\":2}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}"},
     {"{}", "{\"a\":1}", "{\"a\":1,\"c\":3}", "{\"c\":3}"}},
    {S({
         "type": "object",
         "properties": {"a": {"const": 1}},
         "required": ["z"],
         "additionalProperties": {"type": "boolean"}
     }),
     {"{\"z\":true}", "{\"a\":1,\"z\":false,\"y\":true}"},
     {"{\"z\":1}", "{}", "{\"a\":1}", "{\"z\":true,\"a\":1}", "{\"z\":true,\"z\":true}"}},
    {S({"type": "object", "properties": {"a\"\\\n\u00e9/~": {"const": 1}}, "additionalProperties": false}),
     {"{\"a\\\"\\\\\\n\xC3\xA9/~\":1}"},
     {"{\"a\":1}"}},
    {S({"type": "object", "properties": {"": {"const": 1}}, "additionalProperties": {"const": 2}}),
     {"{\"\":1}", "{\"a\":2}", "{\"\":1,\"a\":2}"},
     {"{\"\":2}", "{\"a\":1}"}},
    {S({"type": "object", "properties": {"a": false, "b": {"const": 1}}}),
     {"{}", "{\"b\":1}", "{\"c\":5}"},
     {"{\"a\":1}"}},
    {S({"type": "object", "additionalProperties": {"type": "integer"}}),
     {"{}", "{\"x\":1,\"y\":2}", "{\"\\u001f\":1}"},
     {"{\"x\":\"1\"}", "{\"\x1f\":1}"}},
    {S({
         "type": "object",
         "patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "number", "maximum": 5}},
         "additionalProperties": false
     }),
     {"{}", "{\"a\":9}", "{\"b\":1.5}", "{\"ab\":5,\"xb\":0.5}"},
     {"{\"ab\":6}", "{\"ab\":1.5}", "{\"c\":1}", "{\"a\":1.5}"}},
    {S({"type": "object", "patternProperties": {"^a": true}, "additionalProperties": false}),
     {"{}", "{\"a\":9}"},
     {"{\"b\":1}", "{\"\":1}"}},
    {S({
         "type": "object",
         "properties": {"ax": {"maximum": 3}},
         "patternProperties": {"^a": {"type": "integer"}},
         "additionalProperties": {"type": "null"}
     }),
     {"{\"ax\":3}", "{\"ay\":9,\"b\":null}"},
     {"{\"ax\":4}", "{\"ax\":\"s\"}", "{\"b\":1}", "{\"ay\":null}"}},
    {S({
         "type": "object",
         "propertyNames": {"pattern": "^[a-c]+$", "maxLength": 2},
         "properties": {"zz": true, "b": {"const": 1}},
         "additionalProperties": {"const": 2}
     }),
     {"{}", "{\"b\":1}", "{\"ab\":2,\"c\":2}"},
     {"{\"zz\":1}", "{\"abc\":2}", "{\"d\":2}"}},
    {S({"type": "object", "propertyNames": {"enum": ["x", "y"]}, "additionalProperties": {"const": 2}}),
     {"{\"x\":2}", "{\"y\":2,\"x\":2}"},
     {"{\"z\":2}"}},
    {S({
         "type": "object",
         "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
         "additionalProperties": false,
         "minProperties": 2
     }),
     {"{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}", "{\"a\":1,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}"},
     {"{}", "{\"a\":1}", "{\"c\":3}"}},
    {S({
         "type": "object",
         "properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}},
         "maxProperties": 2,
         "required": ["b"],
         "additionalProperties": {"const": 4}
     }),
     {"{\"b\":2}", "{\"a\":1,\"b\":2}", "{\"b\":2,\"c\":3}", "{\"b\":2,\"x\":4}"},
     {"{\"a\":1,\"b\":2,\"c\":3}", "{\"b\":2,\"c\":3,\"x\":4}", "{\"a\":1,\"c\":3}", "{\"b\":2,\"x\":4,\"y\":4}"}},
    {S({"type": "object", "minProperties": 1, "additionalProperties": {"const": 4}}),
     {"{\"a\":4}", "{\"a\":4,\"b\":4}"},
     {"{}"}},
    {S({"type": "object", "maxProperties": 1, "additionalProperties": {"const": 4}}),
     {"{}", "{\"a\":4}"},
     {"{\"a\":4,\"b\":4}"}},
    {S({"type": "object", "maxProperties": 0}), {"{}"}, {"{\"a\":4}"}},
    {S({"type": "object", "properties": {"a": {"const": 1}}, "unevaluatedProperties": false}),
     {"{}", "{\"a\":1}"},
     {"{\"b\":1}"}},
    /* combinations */
    {S({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]}), {"1", "\"a\"", "\"\""}, {"\"ab\"", "1.5"}},
    {S({
         "type": "integer",
         "anyOf": [{"maximum": 0}, {"minimum": 10}],
         "oneOf": [{"multipleOf": 2, "maximum": 4}, {"minimum": 5}]
     }),
     {"0", "-2", "10", "11"},
     {"-1", "2", "9"}},
    {S({"oneOf": [{"type": "string"}, {"type": "integer"}]}), {"1", "\"a\""}, {"null"}},
    {S({"oneOf": [{"const": 1}, {"const": 2}, {"enum": [3, 4]}]}), {"1", "4"}, {"5"}},
    {S({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "number", "exclusiveMinimum": 3}]}),
     {"1", "3", "4.5"},
     {"2.5"}},
    {S({"oneOf": [{"type": "string", "maxLength": 2}, {"type": "string", "minLength": 3}]}),
     {"\"ab\"", "\"abc\""},
     {"1"}},
    {S({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}]}),
     {"\"ab\"", "\"bc\""},
     {"\"c\""}},
    {S({
         "type": "object",
         "oneOf": [
             {
                 "properties": {"k": {"const": "a"}, "x": {"type": "integer"}},
                 "required": ["k", "x"],
                 "additionalProperties": false
             },
             {
                 "properties": {"k": {"const": "b"}, "y": {"type": "null"}},
                 "required": ["k"],
                 "additionalProperties": false
             }
         ]
     }),
     {"{\"k\":\"a\",\"x\":1}", "{\"k\":\"b\"}", "{\"k\":\"b\",\"y\":null}"},
     {"{\"k\":\"a\"}", "{\"k\":\"b\",\"x\":1}", "{}"}},
    {S({
         "oneOf": [
             {"type": "array", "prefixItems": [{"const": 1}], "minItems": 1},
             {"type": "array", "prefixItems": [{"const": 2}], "minItems": 1}, {"type": "array", "maxItems": 0}
         ]
     }),
     {"[]", "[1]", "[2,3]"},
     {"[3]"}},
    {S({
         "allOf": [
             {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
             {"properties": {"a": {"maximum": 5}, "b": {"type": "null"}}, "required": ["b"]}
         ]
     }),
     {"{\"a\":5,\"b\":null}", "{\"a\":1,\"b\":null,\"c\":[]}"},
     {"{\"a\":6,\"b\":null}", "{\"a\":1}"}},
    {S({
         "allOf": [{"properties": {"a": true}, "additionalProperties": false}, {"properties": {"b": true}}],
         "type": "object"
     }),
     {"{}", "{\"a\":1}"},
     {"{\"b\":1}"}},
    {S({"not": false, "if": true, "type": "null"}), {"null"}, {"1"}},
    /* references */
    {S({"$defs": {"a/b~c %": {"type": "integer"}}, "$ref": "#/$defs/a~1b~0c%20%25"}), {"1"}, {"null"}},
    {S({"definitions": {"x": {"$anchor": "here", "type": "null"}}, "$ref": "#here"}), {"null"}, {"1"}},
    {S({
         "$id": "http://x.test/a/root.json",
         "$defs": {"x": {"$id": "sub/y.json", "$defs": {"z": {"const": 7}}}},
         "$ref": "sub/y.json#/$defs/z"
     }),
     {"7"},
     {"1"}},
    {S({"$id": "http://x.test/a/root.json", "$defs": {"x": {"$id": "/b/y.json", "const": 7}}, "$ref": "../b/./y.json"}),
     {"7"},
     {"1"}},
    {S({"$id": "urn:uuid:1", "$defs": {"x": {"const": 7}}, "$ref": "urn:uuid:1#/$defs/x"}), {"7"}, {"1"}},
    {S({"$ref": "#/$defs/x", "maximum": 3, "$defs": {"x": {"type": "integer", "minimum": 2}}}), {"2", "3"}, {"1", "4"}},
    {S({"type": ["array", "integer"], "items": {"$ref": "#"}}), {"1", "[]", "[1,[2,[[]]]]"}, {"[null]", "null"}},
    {S({
         "$ref": "#/$defs/list",
         "$defs": {
             "list": {
                 "anyOf": [
                     {"type": "null"}, {
                         "type": "object",
                         "properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/list"}},
                         "required": ["v", "n"],
                         "additionalProperties": false
                     }
                 ]
             }
         }
     }),
     {"null", "{\"v\":1,\"n\":{\"v\":2,\"n\":null}}"},
     {"{\"v\":1}", "{\"v\":1,\"n\":1}"}},
    {S({
         "type": "object",
         "properties": {"self": {"$ref": "#"}, "x": {"type": "integer"}},
         "additionalProperties": false
     }),
     {"{}", "{\"self\":{\"self\":{},\"x\":1}}"},
     {"{\"self\":1}"}},
    {S({
         "type": "object",
         "properties": {"$ref": {"type": "integer"}, "type": {"const": 1}},
         "additionalProperties": false
     }),
     {"{\"$ref\":1,\"type\":1}"},
     {"{\"$ref\":\"x\"}"}},
    /* a branch that needs itself for ever is no way to a value */
    {S({
         "anyOf": [
             {"type": "object", "properties": {"x": {"$ref": "#/$defs/loop"}}, "required": ["x"]}, {"type": "integer"}
         ],
         "$defs": {"loop": {"type": "object", "properties": {"y": {"$ref": "#/$defs/loop"}}, "required": ["y"]}}
     }),
     {"1"},
     {"{", "{\"x\":{}}"}},
    /* annotations */
    {S({
         "title": "t",
         "description": "d",
         "default": 5,
         "examples": [1],
         "deprecated": true,
         "$comment": "c",
         "readOnly": true,
         "x-order": 3,
         "contentMediaType": "a",
         "type": "null",
         "$schema": "https://json-schema.org/draft/2020-12/schema"
     }),
     {"null"},
     {"1"}},
};

static void test_keywords(void **state)
{
    (void)state;
    int n = 0, wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        wrong += schema_check_row(&rows[i], NULL, &n);
    printf("%zu schemas, %d texts, %d wrong\n", sizeof rows / sizeof *rows, n, wrong);
    assert_int_equal(wrong, 0);
}

static void test_whitespace(void **state)
{
    (void)state;
    static const schema_row blank_rows[] = {
        {S({
             "type": "object",
             "properties": {
                 "a": {"type": "array", "items": {"type": "integer"}},
                 "b": {"const": {"x": [1, "a, :[]{}\"b"], "y": {}}}
             },
             "additionalProperties": false
         }),
         {"{}", "{\"a\":[]}", "{\"a\": [1, 2]}", "{\n  \"a\": [\n    1,\n    2\n  ]\n}", "{\n\t\"a\":[1]\n}",
          "{\"b\": {\"x\": [1, \"a, :[]{}\\\"b\"], \"y\": {}}}",
          "{\"b\": {\n \"x\": [\n1,\"a, :[]{}\\\"b\"\n],\n\"y\": {}\n}}"},
         {"{ }", "{\"a\":  [1]}", "{\"a\" :[1]}", "{\n\n\"a\":[1]}", "{\"a\":[1 ]}", "{\"a\":[1]}\n", " {}",
          "{\"a\":[1,\n\n2]}"}},
    };
    mica_schema_options options = {.whitespace = true};
    int n = 0;
    assert_int_equal(schema_check_row(&blank_rows[0], &options, &n), 0);
}

/* ---- What is refused ---- */

static const struct refusal {
    const char *schema;
    mica_status status;
    const char *message; /* a part of it */
} refusals[] = {
    {"", MICA_BAD_TEXT, "JSON"},
    {"{\"type\":\"null\"", MICA_BAD_TEXT, "JSON"},
    {"{\"type\":\"null\",\"type\":\"null\"}", MICA_BAD_TEXT, "duplicate"},
    {"{\"type\":\"null\xFF\"}", MICA_BAD_TEXT, "decode"},
    {"3", MICA_BAD_TEXT, "#: "},
    {"[]", MICA_BAD_TEXT, "#: "},
    {S({"allOf": [[true]]}), MICA_BAD_TEXT, "#/allOf/0: "},
    {S({"anyOf": []}), MICA_BAD_TEXT, "#/anyOf: "},
    {S({"properties": {"a": 1}, "required": ["a"]}), MICA_BAD_TEXT, "#/properties/a: "},
    {S({"properties": {"a": {"type": "strin"}}}), MICA_BAD_TEXT, "#/properties/a/type: "},
    {S({"type": ["null", 1]}), MICA_BAD_TEXT, "#/type/1: "},
    {S({"minLength": -1}), MICA_BAD_TEXT, "#/minLength: "},
    {S({"minLength": 1.5}), MICA_BAD_TEXT, "#/minLength: "},
    {S({"maxItems": "1"}), MICA_BAD_TEXT, "#/maxItems: "},
    {S({"minimum": "1"}), MICA_BAD_TEXT, "#/minimum: "},
    {S({"exclusiveMinimum": true}), MICA_BAD_TEXT, "draft 4"},
    {S({"multipleOf": 0}), MICA_BAD_TEXT, "#/multipleOf: "},
    {S({"multipleOf": 12345}), MICA_UNSUPPORTED, "#/multipleOf: "},
    {S({"required": [1]}), MICA_BAD_TEXT, "#/required/0: "},
    {S({"items": {"uniqueItems": true}}), MICA_UNSUPPORTED, "#/items/uniqueItems: "},
    {S({"contains": {}}), MICA_UNSUPPORTED, "#/contains: "},
    {S({"not": {"type": "null"}}), MICA_UNSUPPORTED, "#/not: "},
    {S({"if": {}, "then": {}}), MICA_UNSUPPORTED, "#/if: "},
    {S({"dependentRequired": {"a": ["b"]}}), MICA_UNSUPPORTED, "#/dependentRequired: "},
    {S({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false}), MICA_UNSUPPORTED,
     "#/unevaluatedProperties: "},
    {S({"minLenght": 3}), MICA_UNSUPPORTED, "#/minLenght: "},
    {S({"properties": {"a": {"format": "hostname"}}}), MICA_UNSUPPORTED, "#/properties/a/format: "},
    {S({"$dynamicRef": "#a"}), MICA_UNSUPPORTED, "#/$dynamicRef: "},
    {S({"$schema": "http://x.test/own"}), MICA_UNSUPPORTED, "#/$schema: "},
    {S({"oneOf": [{"type": "integer"}, {"type": "number"}]}), MICA_UNSUPPORTED, "#/oneOf: "},
    {S({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), MICA_UNSUPPORTED, "#/oneOf: "},
    {S({"type": "object", "minProperties": 2}), MICA_UNSUPPORTED, "#/minProperties: "},
    {S({"$ref": "#/$defs/x"}), MICA_BAD_TEXT, "#/$ref: "},
    {S({"$ref": "#x"}), MICA_BAD_TEXT, "#/$ref: "},
    {S({"$ref": "other.json"}), MICA_UNSUPPORTED, "never fetched"},
    {S({"$ref": "#"}), MICA_BAD_TEXT, "refers to itself"},
    {S({
         "anyOf": [{"$ref": "#/$defs/a"}, true ],
         "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}
     }),
     MICA_BAD_TEXT, "refers to itself"},
    {S({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}), MICA_INVALID_ARGUMENT,
     "nothing is valid"},
    {S({"type": "string", "allOf": [{"type": "null"}]}), MICA_INVALID_ARGUMENT, "#/allOf/0/type"},
    {S({"type": "string", "minLength": 3, "maxLength": 2}), MICA_INVALID_ARGUMENT, "minLength"},
    {S({"type": "string", "pattern": "^a$", "minLength": 2}), MICA_INVALID_ARGUMENT, "pattern"},
    {S({"type": "string", "allOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]}), MICA_INVALID_ARGUMENT, "nothing is valid"},
    {S({"type": "array", "minItems": 2, "maxItems": 1}), MICA_INVALID_ARGUMENT, "minItems"},
    {S({"type": "array", "minItems": 1, "items": false}), MICA_INVALID_ARGUMENT, "#/items"},
    {S({"type": "object", "required": ["a"], "properties": {"a": false}}), MICA_INVALID_ARGUMENT, "#/properties/a"},
    {S({"type": "object", "required": ["a", "b"], "maxProperties": 1}), MICA_INVALID_ARGUMENT, "maxProperties"},
    {S({"type": "object", "required": ["abc"], "propertyNames": {"maxLength": 2}}), MICA_INVALID_ARGUMENT,
     "nothing is valid"},
    {S({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}), MICA_INVALID_ARGUMENT, "nothing is valid"},
    {S({"type": "integer", "minimum": 8, "maximum": 13, "multipleOf": 7}), MICA_INVALID_ARGUMENT, "nothing is valid"},
    {S({"const": 1, "enum": [2]}), MICA_INVALID_ARGUMENT, "nothing is valid"},
    {S({"type": "array", "items": {"type": "string", "pattern": "^a*$", "maxLength": 100000}}), MICA_INVALID_ARGUMENT,
     "large"},
};

static void test_refusals(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        schema_test t = schema_compile(refusals[i].schema);
        if (t.status != refusals[i].status || !strstr(t.err.message, refusals[i].message)) {
            fprintf(stderr, "%s: %s: %s\n", refusals[i].schema, mica_status_name(t.status), t.err.message);
            wrong++;
        }
        schema_free(&t);
    }
    assert_int_equal(wrong, 0);
}

typedef struct warnings {
    int n;
    char text[8][512];
} warnings;

static void keep_warning(void *user, const char *message)
{
    warnings *w = user;
    snprintf(w->text[w->n++ & 7], sizeof w->text[0], "%s", message);
}

static void test_lenient(void **state)
{
    (void)state;
    warnings w = {0};
    mica_schema_options options = {.lenient = true, .on_warning = keep_warning, .user = &w};
    const char *schema = S({
        "type": "array",
        "uniqueItems": true,
        "items": {"oneOf": [{"type": "integer"}, {"type": "number", "multipleOf": 99999}], "odd": 1},
        "prefixItems": [{"type": "string", "pattern": "^(a)\\1$", "format": "hostname"}]
    });
    schema_test t = schema_compile_n(schema, strlen(schema), &options);
    assert_int_equal(t.status, MICA_OK);
    for (int i = 0; i < w.n; i++)
        printf("  %s\n", w.text[i & 7]);
    assert_int_equal(w.n, 6);
    assert_true(schema_accepts(&t, "[\"zz\",1,1,2.5]"));
    assert_false(schema_accepts(&t, "[\"zz\",\"a\"]"));
    schema_free(&t);
    /* what is malformed or cannot be satisfied stays an error */
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (refusals[i].status == MICA_UNSUPPORTED)
            continue;
        t = schema_compile_n(refusals[i].schema, strlen(refusals[i].schema), &options);
        assert_int_equal(t.status, refusals[i].status);
    }
}

/* ---- Size ---- */

static void repeat_text(mica_buf *b, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        mica_buf_printf(b, text, i, i);
}

/* Compiles in time proportional to its size, though every subset of 400 properties is allowed. */
static void test_many_properties(void **state)
{
    (void)state;
    mica_buf b;
    mica_buf_init(&b, 1 << 22);
    mica_buf_puts(&b, "{\"type\":\"object\",\"properties\":{\"first\":{\"const\":0}");
    repeat_text(&b, ",\"p%d\":{\"const\":%d}", 400);
    mica_buf_puts(&b, "},\"additionalProperties\":{\"type\":\"null\"}}");
    schema_test t = schema_compile_n(b.data, b.length, NULL);
    if (t.status)
        fail_msg("%s", t.err.message);
    assert_true(schema_accepts(&t, "{\"p7\":7,\"p12\":12,\"p399\":399,\"p400\":null}"));
    assert_false(schema_accepts(&t, "{\"p7\":7,\"p12\":12,\"p8\":8}"));
    assert_false(schema_accepts(&t, "{\"p7\":7,\"p8\":null}"));
    assert_true(schema_accepts(&t, "{}"));
    schema_free(&t);
    mica_buf_free(&b);
}

/* Deep or wide schemas are an error or compile; they never run out of stack. */
static void test_extremes(void **state)
{
    (void)state;
    static const struct {
        const char *head, *part, *tail, *ends;
        int n;
        mica_status status;
    } shapes[] = {
        {"", "{\"items\":", "true", "}", 200, MICA_OK},
        {"", "{\"items\":", "true", "}", 300, MICA_INVALID_ARGUMENT},
        {"", "{\"allOf\":[", "true", "]}", 120, MICA_OK},
        {"", "{\"anyOf\":[{\"const\":1},", "true", "]}", 100, MICA_OK},
        {"{\"allOf\":[{\"anyOf\":[{\"minimum\":1},{\"minimum\":2}]}", ",{\"anyOf\":[{\"maximum\":1},{\"maximum\":2}]}", "]}",
         "", 14, MICA_INVALID_ARGUMENT},
        {"{\"enum\":[0", ",\"v%d\"", "]}", "", 5000, MICA_OK},
        {"{\"$ref\":\"#/$defs/d0\",\"$defs\":{\"x\":true",
         ",\"d%d\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/$defs/d%d\"}},\"required\":[\"a\"]}", "}}", "",
         3000, MICA_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        mica_buf b;
        mica_buf_init(&b, 1 << 22);
        mica_buf_puts(&b, shapes[i].head);
        repeat_text(&b, shapes[i].part, shapes[i].n);
        mica_buf_puts(&b, shapes[i].tail);
        for (int k = 0; k < shapes[i].n; k++)
            mica_buf_puts(&b, shapes[i].ends);
        schema_test t = schema_compile_n(b.data, b.length, NULL);
        if (t.status != shapes[i].status)
            fail_msg("%zu: %s: %s", i, mica_status_name(t.status), t.err.message);
        schema_free(&t);
        mica_buf_free(&b);
    }
}

static void test_any_json(void **state)
{
    (void)state;
    mica_grammar *g;
    mica_automaton *a;
    schema_test t = {0};
    assert_int_equal(mica_grammar_any_json(NULL, &g, NULL), MICA_OK);
    assert_int_equal(mica_automaton_new(g, &a, NULL), MICA_OK);
    mica_grammar_free(g);
    t.automaton = a;
    assert_int_equal(mica_matcher_new(a, &t.matcher, NULL), MICA_OK);
    assert_true(schema_accepts(&t, "{\"a\":[1,-2.5,true,false,null,\"x\\ty\"],\"\":{}}"));
    assert_false(schema_accepts(&t, "{\"a\":}"));
    schema_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gr_01_pattern_classes),
        cmocka_unit_test(test_gr_02_pattern_escapes),
        cmocka_unit_test(test_gr_03_enum_behind_ref),
        cmocka_unit_test(test_gr_05_recursive_tree),
        cmocka_unit_test(test_gr_06_max_length),
        cmocka_unit_test(test_gr_08_const_with_quotes),
        cmocka_unit_test(test_gr_09_integer_ranges),
        cmocka_unit_test(test_gr_10_additional),
        cmocka_unit_test(test_gr_11_items),
        cmocka_unit_test(test_gr_13_no_trailing_blank),
        cmocka_unit_test(test_gr_15_fail_closed),
        cmocka_unit_test(test_keywords),
        cmocka_unit_test(test_whitespace),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lenient),
        cmocka_unit_test(test_many_properties),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_any_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
