#include "router/run_redact.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define MARK_MAX 48 /* bytes: a type's name, a number, brackets */

mica_status mica_redact_rules(const char *definition, mica_task **out, mica_error *err)
{
    json_error_t why;
    json_t *o = mica_json_loads(definition, JSON_REJECT_DUPLICATES, &why);
    *out = NULL;
    if (!json_is_object(o)) {
        json_decref(o);
        return mica_fail(err, MICA_BAD_TEXT, "the task that redacts is no JSON object: %.200s", o ? "" : why.text);
    }
    json_object_del(o, "model");
    char *rules = mica_json_dumps(o, JSON_COMPACT);
    json_decref(o);
    mica_task_info info = {.kind = MICA_TASK_REDACT};
    mica_status status = rules ? mica_task_new(NULL, rules, strlen(rules), out, err) : mica_fail_nomem(err, 0, "a task");
    free(rules);
    if (!status)
        mica_task_get_info(*out, &info);
    if (info.kind == MICA_TASK_REDACT)
        return status;
    status = mica_fail(err, MICA_INVALID_ARGUMENT, "the task \"%.60s\" is not of the kind redact", info.name);
    mica_task_free(*out);
    *out = NULL;
    return status;
}

/* ---- Out ---- */

typedef struct redaction {
    mica_task *rules;
    char *before; /* the whole conversation, to see which marks are taken */
    json_t *marks;
} redaction;

/* The mark of a text: the one that it has, or the first free number of its type. False without memory. */
static bool mark_of(redaction *r, const char *type, const char *text, size_t length, char mark[MARK_MAX])
{
    const char *key;
    json_t *value;
    json_object_foreach(r->marks, key,
                        value) if (json_string_length(value) == length && memcmp(json_string_value(value), text, length) == 0)
    {
        snprintf(mark, MARK_MAX, "%s", key);
        return true;
    }
    for (unsigned n = 1;; n++) {
        snprintf(mark, MARK_MAX, "[%.32s_%u]", type, n);
        if (!json_object_get(r->marks, mark) && !strstr(r->before, mark))
            return json_object_set_new(r->marks, mark, json_stringn(text, length)) == 0;
    }
}

/* Spans are in order and do not overlap. */
static mica_status replace(redaction *r, const char *text, size_t length, const json_t *spans, mica_buf *out, mica_error *err)
{
    char mark[MARK_MAX];
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(spans); i++) {
        const json_t *span = json_array_get(spans, i);
        size_t start = (size_t)json_integer_value(json_object_get(span, "start"));
        size_t end = (size_t)json_integer_value(json_object_get(span, "end"));
        const char *type = json_string_value(json_object_get(span, "type"));
        if (!type || start < at || end <= start || end > length)
            return mica_fail(err, MICA_BAD_TEXT, "the spans of the task that redacts are out of order");
        if (!mark_of(r, type, text + start, end - start, mark) || !mica_buf_append(out, text + at, start - at) ||
            !mica_buf_puts(out, mark))
            return mica_fail_nomem(err, length, "a redacted message");
        at = end;
    }
    return mica_buf_append(out, text + at, length - at) ? MICA_OK : mica_fail_nomem(err, length, "a redacted message");
}

static mica_status redact_member(redaction *r, json_t *object, const char *name, mica_error *err)
{
    const json_t *value = json_object_get(object, name);
    mica_task_input input = mica_task_input_default();
    char *result = NULL;
    size_t length;
    mica_buf out;
    if (!json_is_string(value) || json_string_length(value) == 0)
        return MICA_OK;
    input.text = json_string_value(value);
    input.length = json_string_length(value);
    mica_status status = mica_task_run(r->rules, NULL, &input, &result, &length, err);
    if (status)
        return status;
    json_t *found = mica_json_loadb(result, length, 0, NULL);
    mica_free(result);
    const json_t *spans = json_object_get(found, "spans");
    mica_buf_init(&out, 4 * input.length + ((size_t)1 << 20));
    status = json_is_array(spans) ? replace(r, input.text, input.length, spans, &out, err)
                                  : mica_fail(err, MICA_BAD_TEXT, "the task that redacts gave no spans");
    if (!status && json_object_set_new(object, name, json_stringn(out.data ? out.data : "", out.length)))
        status = mica_fail_nomem(err, out.length, "a redacted message");
    mica_buf_free(&out);
    json_decref(found);
    return status;
}

static mica_status redact_message(redaction *r, json_t *message, mica_error *err)
{
    json_t *calls = json_object_get(message, "tool_calls");
    mica_status status = redact_member(r, message, "content", err);
    for (size_t i = 0; !status && i < json_array_size(calls); i++)
        status = redact_member(r, json_object_get(json_array_get(calls, i), "function"), "arguments", err);
    return status;
}

mica_status mica_redact_messages(mica_task *rules, json_t *messages, json_t **marks, mica_error *err)
{
    redaction r = {.rules = rules, .before = mica_json_dumps(messages, JSON_COMPACT), .marks = json_object()};
    mica_status status = r.before && r.marks ? MICA_OK : mica_fail_nomem(err, 0, "a redacted conversation");
    for (size_t i = 0; !status && i < json_array_size(messages); i++)
        status = redact_message(&r, json_array_get(messages, i), err);
    free(r.before);
    *marks = r.marks;
    return status;
}

/* ---- Back ---- */

void mica_restore_start(mica_restore *r, const json_t *marks)
{
    r->marks = marks;
    mica_buf_init(&r->held, MARK_MAX);
}

void mica_restore_free(mica_restore *r)
{
    mica_buf_free(&r->held);
}

/* What was held is a mark, or was text all along. */
static bool let_go(mica_restore *r, mica_buf *out)
{
    const json_t *text = r->held.length > 0 ? json_object_get(r->marks, r->held.data) : NULL;
    bool good = text ? mica_buf_append(out, json_string_value(text), json_string_length(text))
                     : mica_buf_append(out, r->held.data, r->held.length);
    r->held.length = 0;
    return good;
}

static bool feed_char(mica_restore *r, char c, mica_buf *out)
{
    bool opens = c == '[', inside = r->held.length > 0;
    bool fits = isupper((unsigned char)c) || isdigit((unsigned char)c) || c == '_' || c == ']';
    if (inside && (opens || !fits || r->held.length + 1 >= MARK_MAX) && !let_go(r, out))
        return false;
    inside = r->held.length > 0;
    if (!inside && !opens)
        return mica_buf_putc(out, c);
    return mica_buf_putc(&r->held, c) && (c != ']' || let_go(r, out));
}

bool mica_restore_feed(mica_restore *r, const char *text, size_t length, bool last, mica_buf *out)
{
    bool good = true;
    for (size_t i = 0; good && i < length; i++)
        good = feed_char(r, text[i], out);
    return good && (!last || let_go(r, out));
}
