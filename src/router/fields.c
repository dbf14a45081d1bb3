#include "router/fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "mica/mica_device.h"

mica_status mica_fields_load(const char *json, size_t length, const char *name, json_t **out, mica_error *err)
{
    json_error_t at;
    *out = mica_json_loadb(json, length, JSON_REJECT_DUPLICATES, &at);
    if (!*out && mica_json_no_memory(&at))
        return mica_fail_nomem(err, length, "a JSON file");
    if (!*out)
        return mica_fail_at(err, MICA_BAD_TEXT, at.position, "%s is not JSON: line %d, column %d: %.200s", mica_path_tail(name),
                            at.line, at.column, at.text);
    return MICA_OK;
}

static mica_status refuse(const char *where, const char *key, const char *wanted, mica_error *err)
{
    return mica_fail(err, MICA_BAD_TEXT, "%s/%s must be %s", where, key, wanted);
}

/* ---- One member ---- */

/* Texts go to terminals and logs. */
static bool is_clean(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return text[strspn(text, letters)] == '\0';
}

static mica_status read_text(const json_t *value, const char *where, const mica_field_row *f, char *out, mica_error *err)
{
    char wanted[120];
    size_t length = json_string_length(value);
    if (json_is_string(value) && (double)length >= f->low && (double)length <= f->high &&
        (f->kind == MICA_FIELD_NAME ? is_name(json_string_value(value)) : is_clean(json_string_value(value), length))) {
        memcpy(out, json_string_value(value), length + 1);
        return MICA_OK;
    }
    snprintf(wanted, sizeof wanted, "a text of %.0f to %.0f bytes, %s", f->low, f->high,
             f->kind == MICA_FIELD_NAME ? "of letters, digits, '.', '_' and '-'" : "without control characters");
    return refuse(where, f->key, wanted, err);
}

static mica_status read_number(const json_t *value, const char *where, const mica_field_row *f, void *out, mica_error *err)
{
    char wanted[96];
    bool whole = f->kind == MICA_FIELD_INT;
    double number = json_is_number(value) ? json_number_value(value) : NAN;
    if ((!whole || json_is_integer(value)) && number >= f->low && number <= f->high) {
        if (whole)
            *(int64_t *)out = json_integer_value(value);
        else
            *(double *)out = number;
        return MICA_OK;
    }
    snprintf(wanted, sizeof wanted, "a %snumber from %.15g to %.15g", whole ? "whole " : "", f->low, f->high);
    return refuse(where, f->key, wanted, err);
}

static mica_status read_choice(const json_t *value, const char *where, const mica_field_row *f, int32_t *out, mica_error *err)
{
    char wanted[160] = "one of";
    const char *text = json_string_value(value);
    for (int32_t i = 0; f->choices[i]; i++) {
        size_t used = strlen(wanted);
        if (text && strcmp(text, f->choices[i]) == 0) {
            *out = (int32_t)f->low + i;
            return MICA_OK;
        }
        snprintf(wanted + used, sizeof wanted - used, "%s \"%s\"", i > 0 ? "," : "", f->choices[i]);
    }
    return refuse(where, f->key, wanted, err);
}

static mica_status read_member(const json_t *value, const char *where, const mica_field_row *f, void *out, mica_error *err)
{
    switch (f->kind) {
    case MICA_FIELD_TEXT:
    case MICA_FIELD_NAME:
        return read_text(value, where, f, out, err);
    case MICA_FIELD_INT:
    case MICA_FIELD_REAL:
        return read_number(value, where, f, out, err);
    case MICA_FIELD_CHOICE:
        return read_choice(value, where, f, out, err);
    case MICA_FIELD_FLAG:
    case MICA_FIELD_ANSWER:
        if (!json_is_boolean(value))
            return refuse(where, f->key, "true or false", err);
        if (f->kind == MICA_FIELD_FLAG)
            *(bool *)out = json_is_true(value);
        else
            *(int *)out = json_is_true(value) ? MICA_YES : MICA_NO;
        return MICA_OK;
    case MICA_FIELD_PART:
        return MICA_OK;
    }
    return MICA_OK;
}

/* ---- The whole ---- */

static const mica_field_row *find(const mica_field_table *table, const char *key)
{
    for (size_t i = 0; i < table->n; i++)
        if (strcmp(table->field[i].key, key) == 0)
            return &table->field[i];
    return NULL;
}

static mica_status check_known(const json_t *object, const char *where, const mica_field_table *table, mica_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        if (!find(table, key))
            return mica_fail(err, MICA_BAD_TEXT, "%s/%.40s: there is no such member in a %s (docs/router.md lists them)", where,
                             key, table->name);
    }
    return MICA_OK;
}

mica_status mica_fields_read(const json_t *object, const char *where, const mica_field_table *table, void *out,
                             mica_error *err)
{
    if (!json_is_object(object))
        return mica_fail(err, MICA_BAD_TEXT, "%s must be an object: a %s", where, table->name);
    mica_status status = check_known(object, where, table, err);
    for (size_t i = 0; !status && i < table->n; i++) {
        const mica_field_row *f = &table->field[i];
        const json_t *value = json_object_get(object, f->key);
        if (table->nullable && json_is_null(value))
            value = NULL;
        if (value)
            status = read_member(value, where, f, (char *)out + f->offset, err);
        else if (f->required)
            status = mica_fail(err, MICA_BAD_TEXT, "%s/%s is missing", where, f->key);
    }
    return status;
}

mica_status mica_field_part(const json_t *object, const char *where, const char *key, json_type type, size_t most,
                            const json_t **out, mica_error *err)
{
    char wanted[64];
    const json_t *value = json_object_get(object, key);
    *out = value;
    if (!value || (json_typeof(value) == type && json_array_size(value) <= most))
        return MICA_OK;
    snprintf(wanted, sizeof wanted, "a list of at most %zu", most);
    return refuse(where, key, type == JSON_ARRAY ? wanted : "an object", err);
}
