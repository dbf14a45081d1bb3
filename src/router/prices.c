/* prices.c - reads a table of list prices: JSON with a date, the blend of input and output tokens, and rows. Unknown members
 * are errors: a misspelt "output" must not make a price free. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "mica/mica_ops.h"

static mica_status check_members(const json_t *object, const char *const *known, const char *where, mica_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return mica_fail(err, MICA_BAD_TEXT, "price table: %s has no member \"%.40s\"", where, key);
    }
    return MICA_OK;
}

/* A text that fits `size` with its end; "" where it is absent and may be. */
static mica_status get_text(const json_t *object, const char *key, bool required, char *out, size_t size, const char *where,
                            mica_error *err)
{
    const json_t *value = json_object_get(object, key);
    out[0] = '\0';
    if (!value && !required)
        return MICA_OK;
    if (!json_is_string(value) || json_string_length(value) >= size ||
        strlen(json_string_value(value)) != json_string_length(value))
        return mica_fail(err, MICA_BAD_TEXT, "price table: \"%s\" of %s must be a text of less than %zu bytes", key, where,
                         size);
    snprintf(out, size, "%s", json_string_value(value));
    return MICA_OK;
}

static mica_status get_number(const json_t *object, const char *key, double low, double *out, const char *where,
                              mica_error *err)
{
    const json_t *value = json_object_get(object, key);
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    if (!(*out >= low && *out <= 1e9))
        return mica_fail(err, MICA_BAD_TEXT, "price table: \"%s\" of %s must be a number from %g to 1e9", key, where, low);
    return MICA_OK;
}

static mica_status read_row(const json_t *row, size_t i, mica_price_row *out, mica_error *err)
{
    static const char *const known[] = {"name", "provider", "date", "source", "input", "output", NULL};
    char where[32];
    snprintf(where, sizeof where, "price %zu", i);
    if (!json_is_object(row))
        return mica_fail(err, MICA_BAD_TEXT, "price table: %s is no object", where);
    mica_status status = check_members(row, known, where, err);
    if (!status)
        status = get_text(row, "name", true, out->name, sizeof out->name, where, err);
    if (!status)
        status = get_text(row, "provider", true, out->provider, sizeof out->provider, where, err);
    if (!status)
        status = get_text(row, "date", true, out->date, sizeof out->date, where, err);
    if (!status)
        status = get_text(row, "source", false, out->source, sizeof out->source, where, err);
    if (!status)
        status = get_number(row, "input", 0, &out->in.v, where, err);
    return status ? status : get_number(row, "output", 0, &out->out.v, where, err);
}

static mica_status read_table(const json_t *root, mica_prices *p, mica_error *err)
{
    static const char *const known[] = {"schema", "date", "note", "blend", "electricity_usd_per_kwh", "prices", NULL};
    const json_t *schema = json_object_get(root, "schema"), *blend = json_object_get(root, "blend"), *rows = json_object_get(root, "prices");
    if (!json_is_object(root))
        return mica_fail(err, MICA_BAD_TEXT, "price table: the text is no JSON object");
    if (schema && json_integer_value(schema) != 1)
        return mica_fail(err, MICA_BAD_TEXT, "price table: \"schema\" must be 1: this build knows no other form");
    mica_status status = check_members(root, known, "the table", err);
    if (!status)
        status = get_text(root, "date", true, p->date, sizeof p->date, "the table", err);
    if (!status)
        status = get_text(root, "note", false, p->note, sizeof p->note, "the table", err);
    if (!status)
        status = get_number(root, "electricity_usd_per_kwh", 0, &p->electricity.v, "the table", err);
    if (!status)
        status = get_number(blend, "input", 0, &p->blend_in, "\"blend\"", err);
    if (!status)
        status = get_number(blend, "output", 0, &p->blend_out, "\"blend\"", err);
    if (!status && p->blend_in + p->blend_out <= 0)
        status = mica_fail(err, MICA_BAD_TEXT, "price table: a blend of nothing is none");
    if (!status && (!json_is_array(rows) || json_array_size(rows) > MICA_PRICE_ROWS_MAX))
        status = mica_fail(err, MICA_BAD_TEXT, "price table: \"prices\" must be a list of at most %d", MICA_PRICE_ROWS_MAX);
    for (; !status && p->n < json_array_size(rows); p->n++)
        status = read_row(json_array_get(rows, p->n), p->n, &p->rows[p->n], err);
    return status;
}

mica_status mica_prices_read(const char *json, size_t length, mica_prices **out, mica_error *err)
{
    json_error_t where;
    *out = NULL;
    json_t *root = mica_json_loadb(json, length, JSON_REJECT_DUPLICATES, &where);
    if (!root && mica_json_no_memory(&where))
        return mica_fail_nomem(err, length, "the price table");
    if (!root)
        return mica_fail_at(err, MICA_BAD_TEXT, where.position, "price table, line %d: %s", where.line, where.text);
    mica_prices *p = calloc(1, sizeof *p);
    mica_status status = p ? read_table(root, p, err) : mica_fail_nomem(err, sizeof *p, "the price table");
    json_decref(root);
    if (status)
        free(p);
    else
        *out = p;
    return status;
}
