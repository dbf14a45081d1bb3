/* The official JSON-Schema-Test-Suite: each schema is compiled, and each instance, written canonically with its keys in the
 * order in which the schema has them, is allowed exactly if it is valid. A schema with a keyword that cannot be enforced must
 * be refused. MICA_SCHEMA_SUITE_DIR names the folder that scripts/fetch-schema-suite prints. */
#include "schema_util.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "constraint/schema_json.h"
#include "tmpl_data.h"

/* ---- Instances, in canonical form ---- */

/* All keys of a schema in the order of their first appearance: of properties, of values, and the names in "required". */
typedef struct key_order {
    const mica_jvalue **values; /* of the schema, in document order */
    int32_t n;
} key_order;

static int32_t rank_of(const key_order *order, const mica_jvalue *item)
{
    int32_t named = order->n;
    for (int32_t i = 0; i < order->n; i++) {
        const mica_jvalue *v = order->values[i];
        if (v->key && v->key_length == item->key_length && memcmp(v->key, item->key, v->key_length) == 0 && v->parent->parent)
            return i;
        if (named == order->n && v->kind == MICA_J_STRING && v->length == item->key_length &&
            memcmp(v->text, item->key, v->length) == 0)
            named = order->n + i; /* only in "required": behind all properties */
    }
    return named == order->n ? order->n * 3 : named;
}

static void print_canonical(mica_buf *out, const mica_jvalue *v, const key_order *order);

static void print_object(mica_buf *out, const mica_jvalue *v, const key_order *order)
{
    bool *done = calloc((size_t)v->n + 1, 1);
    mica_buf_putc(out, '{');
    for (int32_t k = 0; k < v->n; k++) {
        int32_t best = -1, best_rank = 0;
        for (int32_t i = 0; i < v->n; i++) {
            int32_t rank = done[i] ? 0 : rank_of(order, &v->items[i]);
            if (!done[i] && (best < 0 || rank < best_rank)) {
                best = i;
                best_rank = rank;
            }
        }
        done[best] = true;
        if (k)
            mica_buf_putc(out, ',');
        mica_json_print_string(out, v->items[best].key, v->items[best].key_length);
        mica_buf_putc(out, ':');
        print_canonical(out, &v->items[best], order);
    }
    mica_buf_putc(out, '}');
    free(done);
}

static void print_canonical(mica_buf *out, const mica_jvalue *v, const key_order *order)
{
    if (v->kind == MICA_J_OBJECT) {
        print_object(out, v, order);
        return;
    }
    if (v->kind != MICA_J_ARRAY) {
        mica_json_print(out, v);
        return;
    }
    mica_buf_putc(out, '[');
    for (int32_t i = 0; i < v->n; i++) {
        if (i)
            mica_buf_putc(out, ',');
        print_canonical(out, &v->items[i], order);
    }
    mica_buf_putc(out, ']');
}

/* ---- What is known to differ, with its reason ---- */

#define LEAP    "leap seconds are written in UTC only"
#define QUOTED  "local parts are not quoted"
#define LITERAL "domains are names"
#define LIMIT   "without bounds, numbers are those of 64 bits"

static const struct exception {
    const char *file, *group, *test; /* test NULL: the whole group is refused */
    const char *why;
} exceptions[] = {
    {"bignum", "integer", "a bignum is an integer", LIMIT},
    {"bignum", "integer", "a negative bignum is an integer", LIMIT},
    {"bignum", "number", "a bignum is a number", LIMIT},
    {"bignum", "number", "a negative bignum is a number", LIMIT},
    {"float-overflow", "all integers are multiples of 0.5, if overflow is handled",
     "valid if optional overflow handling is implemented", LIMIT},
    {"time", "validation of time strings", "valid leap second, positive time-offset", LEAP},
    {"time", "validation of time strings", "valid leap second, large positive time-offset", LEAP},
    {"time", "validation of time strings", "valid leap second, negative time-offset", LEAP},
    {"time", "validation of time strings", "valid leap second, large negative time-offset", LEAP},
    {"date-time", "validation of date-time strings", "a valid date-time with a leap second, with minus offset", LEAP},
    {"email", "validation of e-mail addresses", "a quoted string with a space in the local part is valid", QUOTED},
    {"email", "validation of e-mail addresses", "a quoted string with a double dot in the local part is valid", QUOTED},
    {"email", "validation of e-mail addresses", "a quoted string with a @ in the local part is valid", QUOTED},
    {"email", "validation of e-mail addresses", "an IPv4-address-literal after the @ is valid", LITERAL},
    {"email", "validation of e-mail addresses", "an IPv6-address-literal after the @ is valid", LITERAL},
};

static bool is_exception(const char *file, const char *group, const char *test)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strcmp(exceptions[i].file, file) == 0 && strcmp(exceptions[i].group, group) == 0 &&
            (!exceptions[i].test || strcmp(exceptions[i].test, test) == 0))
            return true;
    return false;
}

/* ---- Groups ---- */

typedef struct tally {
    int groups, refused, tests, valid, excepted, wrong;
} tally;

static const char *name_of(const mica_jvalue *v)
{
    return mica_json_get(v, "description")->text;
}
static bool is_valid(const mica_jvalue *test)
{
    return mica_json_get(test, "valid")->kind == MICA_J_TRUE;
}

static void check_test(schema_test *t, const char *file, const char *group, const mica_jvalue *test, const key_order *order,
                       tally *sum)
{
    mica_buf text;
    mica_buf_init(&text, 1 << 20);
    print_canonical(&text, mica_json_get(test, "data"), order);
    sum->tests++;
    sum->valid += is_valid(test);
    bool right = schema_accepts_n(t, text.data, text.length) == is_valid(test);
    if (is_exception(file, group, name_of(test))) {
        sum->excepted++;
        sum->wrong += right;
        if (right)
            fprintf(stderr, "%s: %s: %s: is no exception\n", file, group, name_of(test));
    } else if (!right) {
        sum->wrong++;
        fprintf(stderr, "%s: %s: %s: %.*s should %sbe allowed\n", file, group, name_of(test), (int)text.length, text.data,
                is_valid(test) ? "" : "not ");
    }
    mica_buf_free(&text);
}

/* Nothing is valid for some schemas: there the refusal is right if the suite has no valid instance. */
static bool may_refuse(const schema_test *t, const mica_jvalue *tests)
{
    if (t->status == MICA_UNSUPPORTED)
        return true;
    for (int32_t i = 0; i < tests->n; i++)
        if (is_valid(&tests->items[i]))
            return false;
    return t->status == MICA_INVALID_ARGUMENT && strncmp(t->err.message, "nothing is valid", 16) == 0;
}

static void check_group(const char *file, const mica_jvalue *group, tally *sum)
{
    const mica_jvalue *tests = mica_json_get(group, "tests");
    mica_buf text;
    mica_tarena arena;
    key_order order = {0};
    mica_buf_init(&text, 1 << 20);
    mica_json_print(&text, mica_json_get(group, "schema"));
    schema_test t = schema_compile_n(text.data, text.length, NULL);
    sum->groups++;
    mica_tarena_init(&arena, 16 << 20);
    assert_int_equal(mica_json_parse(&arena, text.data, text.length, &order.values, &order.n, NULL), MICA_OK);
    if (t.status) {
        bool right = may_refuse(&t, tests) || is_exception(file, name_of(group), NULL);
        sum->refused++;
        sum->wrong += !right;
        if (!right || getenv("MICA_SCHEMA_SUITE_VERBOSE"))
            fprintf(stderr, "%s: %s: %s\n", file, name_of(group), t.err.message);
    } else {
        for (int32_t i = 0; i < tests->n; i++)
            check_test(&t, file, name_of(group), &tests->items[i], &order, sum);
    }
    schema_free(&t);
    mica_tarena_free(&arena);
    mica_buf_free(&text);
}

static void check_file(const char *folder, const char *file, tally *sum)
{
    char path[1024];
    size_t length;
    mica_tarena arena;
    mica_error err = {0};
    const mica_jvalue **values;
    int32_t n;
    tally before = *sum;
    snprintf(path, sizeof path, "%s/%s/%s.json", getenv("MICA_SCHEMA_SUITE_DIR"), folder, file);
    char *text = data_read(path, &length);
    if (!text)
        fail_msg("%s is missing", path);
    mica_tarena_init(&arena, 64 << 20);
    if (mica_json_parse(&arena, text, length, &values, &n, &err))
        fail_msg("%s: %s", path, err.message);
    for (int32_t i = 0; i < values[0]->n; i++)
        check_group(file, &values[0]->items[i], sum);
    mica_tarena_free(&arena);
    free(text);
    printf("%-28s %3d groups, %3d refused, %4d tests, %d wrong\n", file, sum->groups - before.groups,
           sum->refused - before.refused, sum->tests - before.tests, sum->wrong - before.wrong);
}

/* Every file of the suite's required part, but for that on format, which is about its being an annotation. */
static void test_required(void **state)
{
    (void)state;
    static const char *const files[] = {
        "additionalProperties",
        "allOf",
        "anchor",
        "anyOf",
        "boolean_schema",
        "const",
        "contains",
        "content",
        "default",
        "defs",
        "dependentRequired",
        "dependentSchemas",
        "dynamicRef",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "if-then-else",
        "infinite-loop-detection",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "ref",
        "refRemote",
        "required",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "vocabulary",
    };
    tally sum = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        check_file("tests", files[i], &sum);
    printf("%d groups, %d refused, %d tests (%d valid), %d excepted, %d wrong\n", sum.groups, sum.refused, sum.tests, sum.valid,
           sum.excepted, sum.wrong);
    assert_int_equal(sum.wrong, 0);
    assert_true(sum.tests > 600 && sum.valid > 300);
}

static void test_optional(void **state)
{
    (void)state;
    static const char *const files[] = {"anchor",    "bignum",        "ecmascript-regex",    "float-overflow", "id",
                                        "no-schema", "non-bmp-regex", "refOfUnknownKeyword", "unknownKeyword"};
    tally sum = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        check_file("optional", files[i], &sum);
    assert_int_equal(sum.wrong, 0);
    assert_true(sum.tests > 60);
}

static void test_formats(void **state)
{
    (void)state;
    static const char *const files[] = {"date", "time", "date-time", "duration", "uuid", "email", "ipv4", "ipv6", "uri"};
    tally sum = {0};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        check_file("format", files[i], &sum);
    printf("%d tests (%d valid), %d excepted\n", sum.tests, sum.valid, sum.excepted);
    assert_int_equal(sum.wrong, 0);
    assert_int_equal(sum.refused, 0);
    assert_true(sum.tests > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_optional),
        cmocka_unit_test(test_formats),
    };
    if (!getenv("MICA_SCHEMA_SUITE_DIR")) {
        fprintf(stderr, "MICA_SCHEMA_SUITE_DIR is not set: skipped\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
