#include "serve/fields.h"

#include <string.h>

#include "base/json.h"
#include "serve/limits.h"

/* The deepest nesting of brackets outside of strings; the parser is recursive, and so are templates and schemas behind it. */
static size_t depth_of(const char *body, size_t length)
{
    size_t depth = 0, deepest = 0;
    bool text = false;
    for (size_t i = 0; i < length; i++) {
        char c = body[i];
        if (text && c == '\\')
            i++;
        else if (c == '"')
            text = !text;
        else if (!text && (c == '{' || c == '['))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!text && (c == '}' || c == ']') && depth > 0)
            depth--;
    }
    return deepest;
}

json_t *mica_fields_parse(const char *body, size_t length, mica_fault *fault)
{
    json_error_t why;
    if (length == 0) {
        mica_fault_bad(fault, NULL, "the body is empty; it must be a JSON object");
        return NULL;
    }
    if (depth_of(body, length) > MICA_SERVE_DEPTH_MAX) {
        mica_fault_bad(fault, NULL, "the JSON of the body is nested deeper than %d levels", MICA_SERVE_DEPTH_MAX);
        return NULL;
    }
    json_t *object = mica_json_loadb(body, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!object && mica_json_no_memory(&why)) {
        mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
        return NULL;
    }
    if (!object) {
        mica_fault_bad(fault, NULL, "the body is not valid JSON: line %d, column %d: %s", why.line, why.column, why.text);
        return NULL;
    }
    if (!json_is_object(object)) {
        mica_fault_bad(fault, NULL, "the body must be a JSON object");
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *mica_field(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

static bool wrong(mica_fault *fault, const char *name, const char *wanted)
{
    return mica_fault_set(fault, 400, "invalid_type", name, "\"%s\" must be %s", name, wanted);
}

bool mica_field_bool(const json_t *object, const char *name, bool *out, mica_fault *fault)
{
    const json_t *value = mica_field(object, name);
    if (value && !json_is_boolean(value))
        return wrong(fault, name, "true or false");
    if (value)
        *out = json_is_true(value);
    return true;
}

bool mica_field_int(const json_t *object, const char *name, int64_t low, int64_t high, int64_t *out, mica_fault *fault)
{
    const json_t *value = mica_field(object, name);
    if (value && !json_is_integer(value))
        return wrong(fault, name, "a whole number");
    if (value && (json_integer_value(value) < low || json_integer_value(value) > high))
        return mica_fault_set(fault, 400, "invalid_value", name, "\"%s\" is %lld; it must be from %lld to %lld", name,
                              (long long)json_integer_value(value), (long long)low, (long long)high);
    if (value)
        *out = json_integer_value(value);
    return true;
}

bool mica_field_int32(const json_t *object, const char *name, int32_t low, int32_t high, int32_t *out, mica_fault *fault)
{
    int64_t value = *out;
    bool good = mica_field_int(object, name, low, high, &value, fault);
    if (good)
        *out = (int32_t)value;
    return good;
}

bool mica_field_real(const json_t *object, const char *name, double low, double high, float *out, mica_fault *fault)
{
    const json_t *value = mica_field(object, name);
    if (value && !json_is_number(value))
        return wrong(fault, name, "a number");
    if (!value)
        return true;
    double number = json_number_value(value);
    if (!(number >= low && number <= high))
        return mica_fault_set(fault, 400, "invalid_value", name, "\"%s\" is %g; it must be from %g to %g", name, number, low,
                              high);
    *out = (float)number;
    return true;
}

bool mica_field_text(const json_t *object, const char *name, const char **out, mica_fault *fault)
{
    const json_t *value = mica_field(object, name);
    if (value && !json_is_string(value))
        return wrong(fault, name, "a string");
    if (value)
        *out = json_string_value(value);
    return true;
}
