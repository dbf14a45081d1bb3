#include "router/run_check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define DEPTH_MAX 32

mica_status mica_check_new(const mica_run_body *body, mica_constraint **out, mica_error *err)
{
    mica_constraint_options o = mica_constraint_options_default();
    *out = NULL;
    if (!body->schema && !body->any_json)
        return MICA_OK;
    char *text = body->schema ? mica_json_dumps(body->schema, JSON_COMPACT) : strdup("{\"type\":\"object\"}");
    if (!text)
        return mica_fail_nomem(err, 0, "the schema");
    o.kind = MICA_CONSTRAINT_JSON_SCHEMA;
    o.text = text;
    o.length = strlen(text);
    o.lenient = !body->strict;
    mica_status status = mica_constraint_new(NULL, &o, out, err);
    free(text);
    return status;
}

/* A copy with the members of objects in the order of the schema, in which the constraint wants them; others behind. */
static json_t *in_order(const json_t *value, const json_t *schema, int depth)
{
    const json_t *properties = json_object_get(schema, "properties");
    const char *key;
    json_t *item, *out;
    size_t i;
    if (depth >= DEPTH_MAX || !(json_is_object(value) || json_is_array(value)))
        return json_deep_copy(value);
    if (json_is_array(value)) {
        out = json_array();
        json_array_foreach(value, i, item)
            json_array_append_new(out, in_order(item, json_object_get(schema, "items"), depth + 1));
        return out;
    }
    out = json_object();
    json_t *p = (json_t *)(uintptr_t)properties, *v = (json_t *)(uintptr_t)value; /* jansson's iterators take no const */
    json_object_foreach(p, key, item) if (json_object_get(value, key))
        json_object_set_new(out, key, in_order(json_object_get(value, key), item, depth + 1));
    json_object_foreach(v, key, item) if (!json_object_get(out, key))
        json_object_set_new(out, key, in_order(item, NULL, depth + 1));
    return out;
}

bool mica_check_reply(const mica_constraint *check, const json_t *schema, const char *text, size_t length, mica_try *t)
{
    bool matches = false;
    json_t *given = mica_json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL),
           *ordered = given ? in_order(given, schema, 0) : NULL;
    char *compact = ordered ? mica_json_dumps(ordered, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (compact && mica_constraint_match(check, compact, strlen(compact), &matches, NULL, NULL))
        matches = false;
    free(compact);
    json_decref(given);
    json_decref(ordered);
    return matches || mica_try_fail(t, MICA_FAILURE_INVALID_OUTPUT, "the reply is not what the request's schema allows");
}
