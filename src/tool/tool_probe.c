/* tool_probe.c - how a chat template writes calls: it is given a conversation with one, and what comes out is compared with
 * each format. That asks the template itself, whatever language its text is in. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tool/json_scan.h"
#include "tool/tools.h"

#define PROBE_NAME   "probe_name"
#define PROBE_ABOUT  "probe about"
#define PROBE_RESULT "probe result"
#define PROBE_SYSTEM "probe system"

static json_t *call_request(bool arguments_text)
{
    json_t *arguments = arguments_text ? json_string("{\"a\": 1}") : json_pack("{s:i}", "a", 1);
    return json_pack(
        "{s:[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}}], s:[{s:s, s:s}, {s:s, s:s, s:[{s:s, s:s, s:{s:s, "
        "s:o}}]}, {s:s, s:s, "
        "s:s, s:s}]}",
        "tools", "type", "function", "function", "name", PROBE_NAME, "description", PROBE_ABOUT, "parameters", "type", "object",
        "properties", "a", "type", "integer", "description", "a number", "required", "a", /* mistral wants ids of nine letters
                                                                                             */
        "messages", "role", "user", "content", "probe user", "role", "assistant", "content", "", "tool_calls", "id",
            "abcdefghi", "type",
        "function", "function", "name", PROBE_NAME, "arguments", arguments, "role", "tool", "tool_call_id", "abcdefghi", "name",
        PROBE_NAME, "content", PROBE_RESULT);
}

static json_t *system_request(void)
{
    return json_pack("{s:[{s:s, s:s}, {s:s, s:s}]}", "messages", "role", "system", "content", PROBE_SYSTEM, "role", "user",
                     "content",
                     "probe user");
}

/* Appends without blanks: templates differ in them. */
static void squeeze(mica_buf *buf, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!mica_json_blank(text[i]))
            mica_buf_putc(buf, text[i]);
}

/* What the template makes of a request, without blanks; *out is NULL where it fails. Consumes the request. */
static mica_status render(const mica_tools *t, json_t *request, char **out, size_t *n, mica_error *err)
{
    char *json, *text = NULL;
    size_t length;
    *out = NULL;
    mica_status status = mica_tool_dump(request, &json, &length, err);
    json_decref(request);
    if (status)
        return status;
    status = t->chat_template ? mica_template_render(t->chat_template, strlen(t->chat_template), json, length, "", "", 0, &text,
                                                     &length, err)
                              : mica_model_chat_render(t->model, json, length, 0, &text, &length, err);
    free(json);
    if (status)
        return status == MICA_OUT_OF_MEMORY ? status : MICA_OK;
    mica_buf buf;
    mica_buf_init(&buf, length + 1);
    squeeze(&buf, text, length);
    mica_free(text);
    *out = mica_buf_take(&buf, n);
    mica_buf_free(&buf);
    return *out ? MICA_OK : mica_fail_nomem(err, length, "a rendered template");
}

static bool has(const char *text, size_t n, const char *part) { return memmem(text, n, part, strlen(part)) != NULL; }

/* Everything of the conversation is there, and the call as this format has it. */
static bool writes(const char *text, size_t n, const mica_tool_format *f)
{
    mica_buf call;
    mica_buf_init(&call, 1024);
    const char *const parts[] = {f->marker_written ? f->marker : "", f->first, f->before, PROBE_NAME, f->middle, "{\"a\":1}"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        squeeze(&call, parts[i], strlen(parts[i]));
    bool found = !call.failed && has(text, n, "probeabout") && has(text, n, "proberesult") &&
                 memmem(text, n, call.data, call.length) && has(text, n, f->close);
    mica_buf_free(&call);
    return found;
}

static mica_status probe_format(mica_tools *t, bool arguments_text, mica_error *err)
{
    char *text;
    size_t n = 0;
    mica_status status = render(t, call_request(arguments_text), &text, &n, err);
    if (status || !text)
        return status;
    for (size_t i = 0; mica_tool_format_at(i) && !t->format; i++)
        if (writes(text, n, mica_tool_format_at(i)))
            t->format = mica_tool_format_at(i);
    t->arguments_text = t->format && arguments_text;
    free(text);
    return MICA_OK;
}

/* Some templates paste descriptions together without asking whether they are there. */
static mica_status probe_descriptions(mica_tools *t, mica_error *err)
{
    char *text;
    size_t n = 0;
    json_t *request = call_request(t->arguments_text);
    json_object_del(json_object_get(json_array_get(json_object_get(request, "tools"), 0), "function"), "description");
    mica_status status = render(t, request, &text, &n, err);
    t->descriptions = !status && !text;
    free(text);
    return status;
}

static mica_status probe_system(mica_tools *t, mica_error *err)
{
    char *text;
    size_t n = 0;
    mica_status status = render(t, system_request(), &text, &n, err);
    t->system_role = !status && text && has(text, n, "probesystem");
    free(text);
    return status;
}

/* Whether a marker reaches the text of a reply: control tokens do not. */
static mica_status marker_shows(const mica_model *model, const char *marker, bool *shows, mica_error *err)
{
    int32_t *tokens = NULL;
    size_t n_tokens = 0, n = 0;
    char *text = NULL;
    mica_status status = mica_model_tokenize(model, marker, strlen(marker), MICA_TOKENIZE_PARSE_SPECIAL, &tokens, &n_tokens,
                                             err);
    if (!status)
        status = mica_model_detokenize(model, tokens, n_tokens, false, &text, &n, err);
    *shows = !status && has(text, n, marker);
    mica_free(tokens);
    mica_free(text);
    return status;
}

mica_status mica_tools_probe(mica_tools *t, mica_error *err)
{
    mica_model_info info = {.has_chat_template = true};
    mica_status status = MICA_OK;
    bool shows = true;
    if (!t->chat_template)
        mica_model_get_info(t->model, &info);
    if (info.has_chat_template)
        status = probe_format(t, false, err);
    if (!status && info.has_chat_template && !t->format)
        status = probe_format(t, true, err);
    if (!status && t->format)
        status = probe_descriptions(t, err);
    if (!status && info.has_chat_template)
        status = probe_system(t, err);
    if (!t->format)
        t->format = mica_tool_format_generic();
    if (!status && t->model && t->format->unmarked)
        status = marker_shows(t->model, t->format->marker, &shows, err);
    if (!shows)
        t->format = t->format->unmarked;
    return status;
}
