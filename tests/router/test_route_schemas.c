/* The JSON Schemas in share/mica/schemas say what the readers take: the same members, the same bounds, both ways. */
#include "route_util.h"

#include "router/policy.h"
#include "router/run_settings.h"

static json_t *read_schema(const char *name)
{
    char path[600];
    json_error_t where;
    snprintf(path, sizeof path, "%s/schemas/%s", MICA_SHARE, name);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        fail_msg("%s: %s", path, where.text);
    return root;
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void expect_bounds(const mica_field_table *table, const mica_field_row *f, const json_t *p, const char *low,
                          const char *high)
{
    if (number_of(p, low) != f->low || number_of(p, high) != f->high)
        fail_msg("%s/%s is from %.15g to %.15g for the reader, from %.15g to %.15g in the schema", table->name, f->key, f->low,
                 f->high,
                 number_of(p, low), number_of(p, high));
}

static void check_choices(const mica_field_table *table, const mica_field_row *f, const json_t *p)
{
    const json_t *list = json_object_get(p, "enum");
    size_t n = 0;
    for (; f->choices[n]; n++)
        if (n >= json_array_size(list) || strcmp(json_string_value(json_array_get(list, n)), f->choices[n]) != 0)
            fail_msg("%s/%s: the schema has no \"%s\" in its place", table->name, f->key, f->choices[n]);
    assert_int_equal(n, json_array_size(list));
}

static void check_field(const mica_field_table *table, const mica_field_row *f, const json_t *p)
{
    static const char *const types[] = {[MICA_FIELD_TEXT] = "string",    [MICA_FIELD_NAME] = "string",
                                        [MICA_FIELD_INT] = "integer",
                                        [MICA_FIELD_REAL] = "number",    [MICA_FIELD_FLAG] = "boolean",   [MICA_FIELD_ANSWER] = "boolean",
                                        [MICA_FIELD_CHOICE] = NULL,      [MICA_FIELD_PART] = NULL};
    const char *type = json_string_value(json_object_get(p, "type"));
    if (types[f->kind] && (!type || strcmp(type, types[f->kind]) != 0))
        fail_msg("%s/%s is a %s for the reader, not in the schema", table->name, f->key, types[f->kind]);
    if (f->kind == MICA_FIELD_TEXT || f->kind == MICA_FIELD_NAME)
        expect_bounds(table, f, p, "minLength", "maxLength");
    if (f->kind == MICA_FIELD_NAME)
        assert_non_null(json_object_get(p, "pattern"));
    if (f->kind == MICA_FIELD_INT || f->kind == MICA_FIELD_REAL)
        expect_bounds(table, f, p, "minimum", "maximum");
    if (f->kind == MICA_FIELD_CHOICE)
        check_choices(table, f, p);
}

static bool is_listed(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0)
            return true;
    return false;
}

static void check_table(const mica_field_table *table, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties");
    assert_non_null(properties);
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    assert_int_equal(json_object_size(properties), table->n);
    for (size_t i = 0; i < table->n; i++) {
        const json_t *p = json_object_get(properties, table->field[i].key);
        if (!p)
            fail_msg("the schema of a %s has no %s", table->name, table->field[i].key);
        check_field(table, &table->field[i], p);
        assert_int_equal(is_listed(json_object_get(schema, "required"), table->field[i].key), table->field[i].required);
    }
}

static void test_policy(void **state)
{
    (void)state;
    static const char *const parts[] = {NULL, "memory", "classifier", "offline", "classes", "class", "when"};
    json_t *root = read_schema("route-policy.schema.json"), *defs = json_object_get(root, "$defs");
    for (size_t i = 0; mica_policy_table(i); i++) {
        assert_true(i < sizeof parts / sizeof *parts);
        check_table(mica_policy_table(i), parts[i] ? json_object_get(defs, parts[i]) : root);
    }
    check_table(mica_rules_table(0), json_object_get(defs, "rule"));
    check_table(mica_run_settings_table(), json_object_get(defs, "run"));
    assert_int_equal(json_object_size(defs), 8);
    json_decref(root);
}

static void test_ladder(void **state)
{
    (void)state;
    json_t *root = read_schema("route-ladder.schema.json"), *defs = json_object_get(root, "$defs");
    check_table(mica_ladder_table(0), root);
    check_table(mica_ladder_table(1), json_object_get(defs, "rung"));
    check_table(mica_ladder_table(2), json_object_get(defs, "quality"));
    check_table(mica_endpoint_table(), json_object_get(defs, "endpoint"));
    assert_null(mica_ladder_table(3));
    assert_int_equal(json_object_size(defs), 3);
    json_decref(root);
}

static void test_classifier(void **state)
{
    (void)state;
    json_t *root = read_schema("route-classifier.schema.json");
    check_table(mica_classifier_table(0), root);
    json_decref(root);
}

/* The price table is read without such tables: its schema's examples of what is wrong must be wrong for the reader, too. */
static void test_prices(void **state)
{
    (void)state;
    static const char *const good = "{\"schema\":1,\"date\":\"d\",\"electricity_usd_per_kwh\":0.2,\"blend\":{\"input\":3,\"output\":1},\"prices\":[]}";
    static const char *const wrong[] = {
        "{\"schema\":2,\"date\":\"d\",\"electricity_usd_per_kwh\":0.2,\"blend\":{\"input\":3,\"output\":1},\"prices\":[]}",
        "{\"schema\":1,\"electricity_usd_per_kwh\":0.2,\"blend\":{\"input\":3,\"output\":1},\"prices\":[]}",
        "{\"schema\":1,\"date\":\"d\",\"electricity_usd_per_kwh\":-1,\"blend\":{\"input\":3,\"output\":1},\"prices\":[]}",
        "{\"schema\":1,\"date\":\"d\",\"electricity_usd_per_kwh\":0.2,\"blend\":{\"input\":3,\"output\":1},\"prices\":[{}]}",
        "{\"schema\":1,\"date\":\"d\",\"electricity_usd_per_kwh\":0.2,\"blend\":{\"input\":3,\"output\":1},\"prices\":[],\"x\":1}",
    };
    json_t *root = read_schema("prices.schema.json");
    json_t *row = json_object_get(json_object_get(json_object_get(json_object_get(root, "properties"), "prices"), "items"),
                                  "required");
    mica_prices *prices;
    mica_error err;
    assert_int_equal(json_array_size(row), 5);
    assert_int_equal(mica_prices_read(good, strlen(good), &prices, &err), MICA_OK);
    mica_free(prices);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(mica_prices_read(wrong[i], strlen(wrong[i]), &prices, &err), MICA_BAD_TEXT);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_ladder),
        cmocka_unit_test(test_classifier),
        cmocka_unit_test(test_prices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
