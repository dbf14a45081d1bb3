#include "constraint/schema_json.h"

#include <jansson.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "text/utf8.h"

typedef struct builder {
    mica_tarena *arena;
    const char *text, *end; /* what is left of the text, for the digits of numbers */
    const mica_jvalue **values;
    int32_t n, capacity;
    mica_error *err;
    mica_status status;
} builder;

/* ---- Building the tree ---- */

static mica_status fail_nomem(builder *b, size_t bytes)
{
    if (!b->status)
        b->status = b->arena->refused ? mica_fail_nomem(b->err, bytes, "a JSON schema")
                                      : mica_fail(b->err, MICA_INVALID_ARGUMENT, "the JSON schema is too large");
    return b->status;
}

static void *take(builder *b, size_t count, size_t size)
{
    void *p = mica_tarena_array(b->arena, count ? count : 1, size);
    if (!p)
        fail_nomem(b, count * size);
    return p;
}

static const char *copy_text(builder *b, const char *text, size_t length)
{
    char *copy = mica_tarena_bytes(b->arena, length + 1);
    if (!copy) {
        fail_nomem(b, length);
        return "";
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* The next number of the text: values are visited in the order in which they stand there, and everything else is skipped. */
static void take_number(builder *b, mica_jvalue *v)
{
    for (; b->text < b->end && *b->text != '-' && (*b->text < '0' || *b->text > '9'); b->text++)
        if (*b->text == '"')
            for (b->text++; *b->text != '"'; b->text++)
                b->text += *b->text == '\\';
    const char *start = b->text;
    while (b->text < b->end && strchr("+-.eE0123456789", *b->text) && *b->text)
        b->text++;
    v->length = (size_t)(b->text - start);
    v->text = copy_text(b, start, v->length);
    char *digits = mica_tarena_bytes(b->arena, v->length + 1);
    if (!digits)
        fail_nomem(b, v->length);
    else if (!b->status && !mica_decimal_read(v->text, v->length, digits, &v->number))
        b->status = mica_fail(b->err, MICA_INVALID_ARGUMENT, "the number %.40s of the schema has more than %d digits", v->text,
                              MICA_DECIMAL_MAX_DIGITS);
}

static bool add_value(builder *b, mica_jvalue *v)
{
    if (b->n >= b->capacity) {
        int32_t capacity = b->capacity ? b->capacity * 2 : 256;
        const mica_jvalue **values = capacity <= MICA_JSON_MAX_VALUES * 2 ? take(b, (size_t)capacity, sizeof(*values)) : NULL;
        if (!values) {
            fail_nomem(b, (size_t)capacity * sizeof(*values));
            return false;
        }
        if (b->n)
            memcpy(values, b->values, (size_t)b->n * sizeof(*values));
        b->values = values;
        b->capacity = capacity;
    }
    v->id = b->n;
    b->values[b->n++] = v;
    return true;
}

static void build(builder *b, mica_jvalue *v, const json_t *json, int depth);

static void build_items(builder *b, mica_jvalue *v, const json_t *json, int depth)
{
    bool object = v->kind == MICA_J_OBJECT;
    size_t n = object ? json_object_size(json) : json_array_size(json);
    mica_jvalue *items = take(b, n, sizeof *items);
    void *iter = object ? json_object_iter((json_t *)(uintptr_t)json) : NULL;
    if (!items)
        return;
    v->items = items;
    v->n = (int32_t)n;
    for (size_t i = 0; i < n && !b->status; i++) {
        mica_jvalue *item = &items[i];
        item->parent = v;
        item->index = (int32_t)i;
        if (object) {
            item->key_length = json_object_iter_key_len(iter);
            item->key = copy_text(b, json_object_iter_key(iter), item->key_length);
        }
        build(b, item, object ? json_object_iter_value(iter) : json_array_get(json, i), depth + 1);
        iter = object ? json_object_iter_next((json_t *)(uintptr_t)json, iter) : NULL;
    }
}

static void build(builder *b, mica_jvalue *v, const json_t *json, int depth)
{
    static const mica_jkind kinds[] = {
        [JSON_OBJECT] = MICA_J_OBJECT,  [JSON_ARRAY] = MICA_J_ARRAY, [JSON_STRING] = MICA_J_STRING,
        [JSON_INTEGER] = MICA_J_NUMBER, [JSON_REAL] = MICA_J_NUMBER, [JSON_TRUE] = MICA_J_TRUE,
        [JSON_FALSE] = MICA_J_FALSE,    [JSON_NULL] = MICA_J_NULL,
    };
    v->kind = kinds[json_typeof(json)];
    if (depth > MICA_JSON_MAX_DEPTH) {
        b->status =
            mica_fail(b->err, MICA_INVALID_ARGUMENT, "the JSON schema is nested more than %d deep", MICA_JSON_MAX_DEPTH);
        return;
    }
    if (!add_value(b, v))
        return;
    if (v->kind == MICA_J_NUMBER) {
        take_number(b, v);
    } else if (v->kind == MICA_J_STRING) {
        v->length = json_string_length(json);
        v->text = copy_text(b, json_string_value(json), v->length);
    } else if (v->kind >= MICA_J_ARRAY) {
        build_items(b, v, json, depth);
    }
}

mica_status mica_json_parse(mica_tarena *arena, const char *text, size_t length, const mica_jvalue ***values, int32_t *n_values,
                            mica_error *err)
{
    json_error_t at;
    builder b = {.arena = arena, .text = text, .end = text + length, .err = err};
    json_t *json =
        mica_json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &at);
    if (!json && mica_json_no_memory(&at))
        return mica_fail_nomem(err, length, "the schema");
    if (!json) {
        at.text[mica_utf8_check(at.text, strlen(at.text))] = '\0'; /* it may quote what is not */
        return mica_fail_at(err, MICA_BAD_TEXT, at.position, "the schema is not valid JSON: %s (line %d, column %d)", at.text,
                            at.line, at.column);
    }
    mica_jvalue *root = take(&b, 1, sizeof *root);
    if (root)
        build(&b, root, json, 0);
    json_decref(json);
    *values = b.values;
    *n_values = b.n;
    return b.status;
}

/* ---- Reading it ---- */

const mica_jvalue *mica_json_get_n(const mica_jvalue *object, const char *key, size_t length)
{
    if (!object || object->kind != MICA_J_OBJECT)
        return NULL;
    for (int32_t i = 0; i < object->n; i++)
        if (object->items[i].key_length == length && memcmp(object->items[i].key, key, length) == 0)
            return &object->items[i];
    return NULL;
}

const mica_jvalue *mica_json_get(const mica_jvalue *object, const char *key)
{
    return mica_json_get_n(object, key, strlen(key));
}

bool mica_json_is_text(const mica_jvalue *value, const char *text)
{
    return value && value->kind == MICA_J_STRING && value->length == strlen(text) &&
           memcmp(value->text, text, value->length) == 0;
}

bool mica_json_equal(const mica_jvalue *a, const mica_jvalue *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (a->kind == MICA_J_NUMBER)
        return mica_decimal_compare(&a->number, &b->number) == 0;
    if (a->kind == MICA_J_STRING)
        return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
    for (int32_t i = 0; i < a->n; i++) {
        const mica_jvalue *item = &a->items[i];
        const mica_jvalue *other = a->kind == MICA_J_ARRAY ? &b->items[i] : mica_json_get_n(b, item->key, item->key_length);
        if (!other || !mica_json_equal(item, other))
            return false;
    }
    return true;
}

/* ---- Writing ---- */

void mica_json_print_string(mica_buf *out, const char *text, size_t length)
{
    static const char *const escapes[] = {['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t"};
    mica_buf_putc(out, '"');
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            mica_buf_printf(out, "\\%c", c);
        else if (c < sizeof escapes / sizeof *escapes && escapes[c])
            mica_buf_puts(out, escapes[c]);
        else if (c < 0x20)
            mica_buf_printf(out, "\\u%04x", c);
        else
            mica_buf_putc(out, (char)c);
    }
    mica_buf_putc(out, '"');
}

static void print_items(mica_buf *out, const mica_jvalue *value)
{
    bool object = value->kind == MICA_J_OBJECT;
    mica_buf_putc(out, object ? '{' : '[');
    for (int32_t i = 0; i < value->n; i++) {
        if (i)
            mica_buf_putc(out, ',');
        if (object) {
            mica_json_print_string(out, value->items[i].key, value->items[i].key_length);
            mica_buf_putc(out, ':');
        }
        mica_json_print(out, &value->items[i]);
    }
    mica_buf_putc(out, object ? '}' : ']');
}

void mica_json_print(mica_buf *out, const mica_jvalue *value)
{
    char digits[64];
    switch (value->kind) {
    case MICA_J_NULL:
        mica_buf_puts(out, "null");
        break;
    case MICA_J_FALSE:
    case MICA_J_TRUE:
        mica_buf_puts(out, value->kind == MICA_J_TRUE ? "true" : "false");
        break;
    case MICA_J_NUMBER:
        if (mica_decimal_print(&value->number, digits, sizeof digits))
            mica_buf_puts(out, digits);
        else
            mica_buf_append(out, value->text, value->length);
        break;
    case MICA_J_STRING:
        mica_json_print_string(out, value->text, value->length);
        break;
    default:
        print_items(out, value);
    }
}

#define CUT "..." /* stands for the front of a pointer that is too long */

/* Writes one step of a pointer to the left of *to; false, with less written, if there is no room. */
static bool step_left(const char *out, char **to, const mica_jvalue *value, const char *keyword)
{
    char number[16];
    const char *key = keyword ? keyword : value->key;
    size_t n = keyword ? strlen(keyword) : value->key_length;
    if (!key) {
        n = (size_t)snprintf(number, sizeof number, "%d", value->index);
        key = number;
    }
    while (n--) {
        char c = key[n];
        const char *text = c == '~' ? "~0" : c == '/' ? "~1" : (unsigned char)c < 0x20 ? "?" : NULL;
        size_t size = text ? strlen(text) : 1;
        if ((size_t)(*to - out) < size + sizeof CUT)
            return false;
        *to -= size;
        memcpy(*to, text ? text : &c, size);
    }
    *--*to = '/';
    return true;
}

void mica_json_pointer(const mica_jvalue *value, const char *keyword, char *out, size_t capacity)
{
    char *end = out + capacity - 1, *to = end;
    *end = '\0';
    bool whole = !keyword || step_left(out, &to, NULL, keyword);
    for (; value && value->parent && whole; value = value->parent)
        whole = step_left(out, &to, value, NULL);
    while (!whole && ((unsigned char)*to & 0xC0) == 0x80)
        to++; /* the cut was inside a character */
    size_t length = whole ? 1 : strlen(CUT);
    to -= length;
    memcpy(to, whole ? "#" : CUT, length);
    memmove(out, to, (size_t)(end - to) + 1);
}
