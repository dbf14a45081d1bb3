#include "router/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "router/rules.h"

enum { TEXT_MAX = 64 << 20 };

struct mica_route_request_file {
    mica_route_request request;
    char id[64], task[MICA_ROUTE_NAME_MAX], rung[128];
    int32_t route_class;
    char *joined; /* the text, where it is of several parts */
    json_t *root;
};

#define TOKENS_MAX 1e9

static const mica_field_row plain_fields[] = {
    MICA_TEXT_FIELD(mica_route_request_file, id, "id", 0, false),
    MICA_TEXT_FIELD(mica_route_request_file, task, "task", 0, false),
    MICA_CHOICE_FIELD(mica_route_request_file, route_class, "class", 0, mica_route_class_words, false),
    MICA_PART_FIELD("text", false),
    MICA_INT_FIELD(mica_route_request_file, request.prompt_tokens, "prompt_tokens", 0, TOKENS_MAX, false),
    MICA_INT_FIELD(mica_route_request_file, request.prompt_bytes, "prompt_bytes", 0, 1e12, false),
    MICA_INT_FIELD(mica_route_request_file, request.output_tokens, "output_tokens", 0, TOKENS_MAX, false),
    MICA_FLAG_FIELD(mica_route_request_file, request.has_schema, "schema"),
    MICA_FLAG_FIELD(mica_route_request_file, request.has_tools, "tools"),
    MICA_FLAG_FIELD(mica_route_request_file, request.is_private, "private"),
    MICA_INT_FIELD(mica_route_request_file, request.deadline_ms, "deadline_ms", 0, 1e12, false),
    MICA_REAL_FIELD(mica_route_request_file, request.max_usd, "max_usd", 0, 1e12, false),
    MICA_REAL_FIELD(mica_route_request_file, request.max_joules, "max_joules", 0, 1e12, false),
    MICA_TEXT_FIELD(mica_route_request_file, rung, "rung", 1, false),
};

static const mica_field_table plain_table = MICA_FIELD_TABLE("request", plain_fields, true);

/* ---- The body of a chat request ---- */

/* The text of a message's content, which is a text or a list of parts; appended to `out`. */
static void add_content(const json_t *content, mica_buf *out)
{
    size_t i;
    json_t *part;
    if (json_is_string(content))
        mica_buf_append(out, json_string_value(content), json_string_length(content));
    json_array_foreach((json_t *)content, i, part)
    {
        const json_t *text = json_object_get(part, "text");
        if (out->length > 0)
            mica_buf_putc(out, '\n');
        mica_buf_append(out, json_string_value(text) ? json_string_value(text) : "", json_string_length(text));
    }
}

static mica_status read_messages(mica_route_request_file *file, const char *where, const json_t *messages, mica_error *err)
{
    const json_t *last = NULL;
    mica_buf text;
    int64_t bytes = 0;
    if (!json_is_array(messages))
        return mica_fail(err, MICA_BAD_TEXT, "%s/messages must be a list", where);
    mica_buf_init(&text, TEXT_MAX);
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        if (role && strcmp(role, "user") == 0)
            last = message;
        text.length = 0;
        add_content(json_object_get(message, "content"), &text);
        bytes += (int64_t)text.length;
    }
    text.length = 0;
    add_content(json_object_get(last, "content"), &text);
    size_t length;
    bool empty = text.length == 0 && !text.failed;
    file->joined = empty ? NULL : mica_buf_take(&text, &length);
    mica_buf_free(&text);
    if (!file->joined && !empty)
        return mica_fail_nomem(err, TEXT_MAX, "the text of the messages");
    if (file->joined && !file->request.text) {
        file->request.text = file->joined;
        file->request.length = length;
    }
    if (file->request.prompt_bytes < 0)
        file->request.prompt_bytes = bytes;
    return MICA_OK;
}

static mica_status read_limit(mica_route_request_file *file, const char *where, const char *key, const json_t *root,
                              mica_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (!value || json_is_null(value) || file->request.output_tokens >= 0)
        return MICA_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > (json_int_t)TOKENS_MAX)
        return mica_fail(err, MICA_BAD_TEXT, "%s/%s must be a whole number from 0 to 1000000000", where, key);
    file->request.output_tokens = json_integer_value(value);
    return MICA_OK;
}

static mica_status read_chat(mica_route_request_file *file, const char *where, const json_t *root, mica_error *err)
{
    const char *format = json_string_value(json_object_get(json_object_get(root, "response_format"), "type"));
    const char *choice = json_string_value(json_object_get(root, "tool_choice"));
    const char *model = json_string_value(json_object_get(root, "model"));
    mica_status status = read_messages(file, where, json_object_get(root, "messages"), err);
    if (!status)
        status = read_limit(file, where, "max_completion_tokens", root, err);
    if (!status)
        status = read_limit(file, where, "max_tokens", root, err);
    if (format && strcmp(format, "text") != 0)
        file->request.has_schema = true;
    if (json_array_size(json_object_get(root, "tools")) > 0 && !(choice && strcmp(choice, "none") == 0))
        file->request.has_tools = true;
    if (!status && model && !file->rung[0] && strlen(model) >= sizeof file->rung)
        status = mica_fail(err, MICA_BAD_TEXT, "%s/model is longer than %zu bytes", where, sizeof file->rung - 1);
    if (!status && model && !file->rung[0])
        snprintf(file->rung, sizeof file->rung, "%s", model);
    return status;
}

/* ---- Requests ---- */

static mica_status read_request(mica_route_request_file *file, const char *where, mica_error *err)
{
    char here[192];
    bool chat = json_object_get(file->root, "messages") != NULL;
    const json_t *plain = chat ? json_object_get(file->root, "route") : file->root, *text = json_object_get(plain, "text");
    snprintf(here, sizeof here, "%.140s%s", where, chat ? "/route" : "");
    mica_status status = plain && !(chat && json_is_null(plain)) ? mica_fields_read(plain, here, &plain_table, file,
                                                                                    err) : MICA_OK;
    if (status)
        return status;
    if (text && !json_is_null(text) && !json_is_string(text))
        return mica_fail(err, MICA_BAD_TEXT, "%s/text must be a text", here);
    file->request.text = json_string_value(text);
    file->request.length = json_string_length(text);
    status = chat ? read_chat(file, where, file->root, err) : MICA_OK;
    file->request.route_class = (mica_route_class)file->route_class;
    file->request.id = file->id;
    file->request.task = file->task[0] ? file->task : NULL;
    file->request.rung = file->rung[0] ? file->rung : NULL;
    return status;
}

mica_status mica_route_request_from(json_t *root, const char *where, mica_route_request_file **out, mica_error *err)
{
    *out = NULL;
    if (!json_is_object(root))
        return mica_fail(err, MICA_BAD_TEXT, "%s must be an object", where);
    mica_route_request_file *file = calloc(1, sizeof *file);
    if (!file)
        return mica_fail_nomem(err, sizeof *file, "the request");
    file->request = mica_route_request_default();
    file->route_class = MICA_CLASS_AUTO;
    file->root = json_incref(root);
    mica_status status = read_request(file, where, err);
    if (status)
        mica_route_request_free(file);
    else
        *out = file;
    return status;
}

mica_status mica_route_request_parse(const char *json, size_t length, mica_route_request_file **out, mica_error *err)
{
    json_t *root;
    *out = NULL;
    mica_status status = mica_fields_load(json, length, "the request", &root, err);
    if (!status)
        status = mica_route_request_from(root, "the request: ", out, err);
    if (root)
        json_decref(root);
    return status;
}

const mica_route_request *mica_route_request_of(const mica_route_request_file *file) { return &file->request; }

void mica_route_request_free(mica_route_request_file *file)
{
    if (!file)
        return;
    json_decref(file->root);
    free(file->joined);
    free(file);
}
