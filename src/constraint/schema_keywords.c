/* schema_keywords.c - which keywords there are, and the reading of simple ones. */
#include "constraint/schema_impl.h"

#include <string.h>

typedef enum keyword_kind {
    ANNOTATION, /* says nothing about which values are valid */
    ENFORCED,
    UNENFORCED, /* known, but not a matter for a grammar */
} keyword_kind;

static const struct {
    const char *name;
    keyword_kind kind;
} keywords[] = {
    {"$anchor", ENFORCED},
    {"$comment", ANNOTATION},
    {"$defs", ENFORCED},
    {"$dynamicAnchor", ENFORCED},
    {"$dynamicRef", UNENFORCED},
    {"$id", ENFORCED},
    {"$recursiveAnchor", UNENFORCED},
    {"$recursiveRef", UNENFORCED},
    {"$ref", ENFORCED},
    {"$schema", ENFORCED},
    {"$vocabulary", UNENFORCED},
    {"additionalItems", ENFORCED},
    {"additionalProperties", ENFORCED},
    {"allOf", ENFORCED},
    {"anyOf", ENFORCED},
    {"const", ENFORCED},
    {"contains", UNENFORCED},
    {"contentEncoding", ANNOTATION},
    {"contentMediaType", ANNOTATION},
    {"contentSchema", ANNOTATION},
    {"default", ANNOTATION},
    {"definitions", ENFORCED},
    {"dependencies", UNENFORCED},
    {"dependentRequired", UNENFORCED},
    {"dependentSchemas", UNENFORCED},
    {"deprecated", ANNOTATION},
    {"description", ANNOTATION},
    {"discriminator", ANNOTATION},
    {"else", ANNOTATION}, /* only "if" makes it more */
    {"enum", ENFORCED},
    {"example", ANNOTATION},
    {"examples", ANNOTATION},
    {"exclusiveMaximum", ENFORCED},
    {"exclusiveMinimum", ENFORCED},
    {"externalDocs", ANNOTATION},
    {"format", ENFORCED},
    {"if", UNENFORCED},
    {"items", ENFORCED},
    {"maxContains", ANNOTATION}, /* only "contains" makes it more */
    {"maxItems", ENFORCED},
    {"maxLength", ENFORCED},
    {"maxProperties", ENFORCED},
    {"maximum", ENFORCED},
    {"minContains", ANNOTATION},
    {"minItems", ENFORCED},
    {"minLength", ENFORCED},
    {"minProperties", ENFORCED},
    {"minimum", ENFORCED},
    {"multipleOf", ENFORCED},
    {"not", UNENFORCED},
    {"nullable", ENFORCED},
    {"oneOf", ENFORCED},
    {"pattern", ENFORCED},
    {"patternProperties", ENFORCED},
    {"prefixItems", ENFORCED},
    {"properties", ENFORCED},
    {"propertyNames", ENFORCED},
    {"readOnly", ANNOTATION},
    {"required", ENFORCED},
    {"then", ANNOTATION},
    {"title", ANNOTATION},
    {"type", ENFORCED},
    {"unevaluatedItems", UNENFORCED},
    {"unevaluatedProperties", UNENFORCED},
    {"uniqueItems", UNENFORCED},
    {"writeOnly", ANNOTATION},
    {"xml", ANNOTATION},
};

#define N_KEYWORDS ((int)(sizeof keywords / sizeof *keywords))

static int find_keyword(const mica_jvalue *member)
{
    for (int i = 0; i < N_KEYWORDS; i++)
        if (strlen(keywords[i].name) == member->key_length && memcmp(keywords[i].name, member->key, member->key_length) == 0)
            return i;
    return -1;
}

bool mica_schema_stands_for(mica_schema_compiler *c, const mica_jvalue *schema, const mica_jvalue **target)
{
    const mica_jvalue *ref = mica_json_get(schema, "$ref"), *all = mica_json_get(schema, "allOf");
    *target = NULL;
    if (!ref && !(all && all->kind == MICA_J_ARRAY && all->n == 1))
        return true;
    for (int32_t i = 0; i < schema->n; i++) {
        const mica_jvalue *member = &schema->items[i];
        int k = find_keyword(member);
        if (member != (ref ? ref : all) && (k < 0 || keywords[k].kind != ANNOTATION) && strncmp(member->key, "x-", 2) != 0)
            return true;
    }
    if (!ref)
        *target = &all->items[0];
    else if (ref->kind == MICA_J_STRING && !(*target = mica_schema_resolve(c, ref)))
        return false;
    return true;
}

bool mica_schema_is_plain(const mica_jvalue *schema, bool items)
{
    static const char *const applicators[] = {"$ref",       "allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas",
                                              "$dynamicRef"};
    for (size_t i = 0; i < sizeof applicators / sizeof *applicators; i++)
        if (mica_json_get(schema, applicators[i]))
            return false;
    return !items || !mica_json_get(schema, "contains");
}

/* An unenforceable keyword in a form that says nothing, or that other keywords say as well. */
static bool says_nothing(const mica_jvalue *schema, const mica_jvalue *member)
{
    const char *key = member->key;
    bool is_true = member->kind == MICA_J_TRUE, no_members = member->kind == MICA_J_OBJECT && member->n == 0;
    if (strcmp(key, "uniqueItems") == 0)
        return member->kind == MICA_J_FALSE;
    if (strcmp(key, "if") == 0)
        return !mica_json_get(schema, "then") && !mica_json_get(schema, "else");
    if (strcmp(key, "not") == 0)
        return member->kind == MICA_J_FALSE;
    if (strncmp(key, "dependen", 8) == 0)
        return no_members;
    if (strcmp(key, "unevaluatedProperties") == 0)
        return is_true || no_members || mica_json_get(schema, "additionalProperties") || mica_schema_is_plain(schema, false);
    if (strcmp(key, "unevaluatedItems") == 0)
        return is_true || no_members || mica_json_get(schema, "items") || mica_schema_is_plain(schema, true);
    return false;
}

static bool check_dialect(mica_schema_compiler *c, const mica_jvalue *member)
{
    static const char *const heads[] = {"http://json-schema.org/", "https://json-schema.org/"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (member->kind == MICA_J_STRING && strncmp(member->text, heads[i], strlen(heads[i])) == 0)
            return true;
    return mica_schema_unenforced(c, member, NULL, "this dialect of JSON Schema is not known");
}

static bool check_member(mica_schema_compiler *c, const mica_jvalue *schema, const mica_jvalue *member)
{
    int i = find_keyword(member);
    if (i < 0)
        return (member->key_length >= 2 && memcmp(member->key, "x-", 2) == 0) ||
               mica_schema_unenforced(c, member, NULL, "the keyword is not known, so it cannot be enforced");
    if (keywords[i].kind == UNENFORCED && !says_nothing(schema, member))
        return mica_schema_unenforced(c, member, NULL, "the keyword %s cannot be enforced", keywords[i].name);
    return strcmp(member->key, "$schema") != 0 || check_dialect(c, member);
}

bool mica_schema_check_keywords(mica_schema_compiler *c, const mica_jvalue *schema)
{
    if (c->checked[schema->id] & MICA_S_KEYWORDS)
        return true;
    c->checked[schema->id] |= MICA_S_KEYWORDS;
    for (int32_t i = 0; i < schema->n; i++)
        if (!check_member(c, schema, &schema->items[i]))
            return false;
    return true;
}

bool mica_schema_count(mica_schema_compiler *c, const mica_jvalue *schema, const char *keyword, int64_t absent, int64_t *out)
{
    const mica_jvalue *v = mica_json_get(schema, keyword);
    *out = absent;
    if (!v)
        return true;
    if (v->kind != MICA_J_NUMBER || v->number.negative || !mica_decimal_is_integer(&v->number))
        return mica_schema_fail(c, MICA_BAD_TEXT, v, NULL, "must be an integer, 0 or more");
    *out = 0;
    for (int32_t i = 0; i < v->number.point && *out < INT32_MAX; i++)
        *out = *out * 10 + (i < v->number.n ? v->number.digits[i] - '0' : 0);
    if (*out > INT32_MAX)
        *out = INT32_MAX;
    return true;
}

bool mica_schema_member(mica_schema_compiler *c, const mica_jvalue *schema, const char *keyword, mica_jkind kind,
                        const mica_jvalue **out)
{
    static const char *const names[] = {"null", "a boolean", "a boolean", "a number", "a string", "an array", "an object"};
    *out = mica_json_get(schema, keyword);
    if (*out && (*out)->kind != kind)
        return mica_schema_fail(c, MICA_BAD_TEXT, *out, NULL, "must be %s", names[kind]);
    return true;
}

static bool add_type(mica_schema_compiler *c, const mica_jvalue *name, unsigned *types)
{
    static const struct {
        const char *name;
        unsigned types;
    } known[] = {{"null", MICA_T_NULL},     {"boolean", MICA_T_BOOLEAN}, {"integer", MICA_T_INTEGER}, {"number", MICA_T_NUMBER},
                 {"string", MICA_T_STRING}, {"array", MICA_T_ARRAY},     {"object", MICA_T_OBJECT}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (mica_json_is_text(name, known[i].name)) {
            *types |= known[i].types;
            return true;
        }
    if (name->kind != MICA_J_STRING)
        return mica_schema_fail(c, MICA_BAD_TEXT, name, NULL, "must be the name of a type, or an array of such names");
    return mica_schema_fail(c, MICA_BAD_TEXT, name, NULL, "there is no type \"%.40s\"", name->text);
}

bool mica_schema_types(mica_schema_compiler *c, const mica_jvalue *schema, unsigned *out)
{
    const mica_jvalue *type = mica_json_get(schema, "type"), *nullable = mica_json_get(schema, "nullable");
    *out = 0;
    if (nullable && nullable->kind != MICA_J_TRUE && nullable->kind != MICA_J_FALSE)
        return mica_schema_fail(c, MICA_BAD_TEXT, nullable, NULL, "must be true or false");
    if (!type) {
        *out = MICA_T_ALL;
        return true;
    }
    if (nullable && nullable->kind == MICA_J_TRUE)
        *out |= MICA_T_NULL;
    if (type->kind != MICA_J_ARRAY)
        return add_type(c, type, out);
    for (int32_t i = 0; i < type->n; i++)
        if (!add_type(c, &type->items[i], out))
            return false;
    return true;
}
