#include "serve/chat_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "serve/fields.h"

/* A placeholder for a text that spells a control token: private-use characters around digits, which no template changes: MARK,
 * 16 hexadecimal digits that nobody can guess, '-', 6 digits, MARK. */
#define MARK         "\xEE\x83\xB1" /* U+E0F1 */
#define MARK_BYTES   3
#define NONCE_DIGITS 16
#define HOLDER_BYTES (MARK_BYTES + NONCE_DIGITS + 1 + 6 + MARK_BYTES)

static bool no_memory(mica_fault *fault)
{
    return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the conversation");
}

/* ---- Messages ---- */

/* A list of parts becomes the text of them all; only texts can be read here. */
static json_t *join_parts(const json_t *parts, const char *param, mica_fault *fault)
{
    mica_buf text;
    mica_buf_init(&text, MICA_SERVE_BODY_MAX);
    bool good = json_array_size(parts) > 0 || mica_fault_bad(fault, param, "\"%s\" is an empty list", param);
    for (size_t i = 0; good && i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        const json_t *said = json_object_get(part, type && strcmp(type, "refusal") == 0 ? "refusal" : "text");
        if (!type || (strcmp(type, "text") != 0 && strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0 &&
                      strcmp(type, "refusal") != 0))
            good = mica_fault_bad(fault, param, "part %zu of \"%s\" is no text; this model reads nothing else", i, param);
        else if (!json_is_string(said))
            good = mica_fault_bad(fault, param, "part %zu of \"%s\" has no \"text\"", i, param);
        else
            good = mica_buf_append(&text, json_string_value(said), json_string_length(said)) || no_memory(fault);
    }
    json_t *joined = good ? json_stringn(text.data ? text.data : "", text.length) : NULL;
    mica_buf_free(&text);
    return joined;
}

static bool check_role(json_t *message, const char *param, mica_fault *fault)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool", "function"};
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!role)
        return mica_fault_bad(fault, param, "\"%s.role\" must be a string", param);
    if (strcmp(role, "developer") == 0)
        return json_object_set_new(message, "role", json_string("system")) == 0;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return true;
    return mica_fault_set(fault, 400, "invalid_value", param,
                          "\"%s.role\" is \"%.40s\"; it must be system, developer, user, assistant or tool", param, role);
}

static bool check_message(json_t *message, size_t i, mica_fault *fault)
{
    char param[64], place[48];
    snprintf(place, sizeof place, "messages[%zu]", i);
    snprintf(param, sizeof param, "%s.content", place);
    if (!json_is_object(message))
        return mica_fault_set(fault, 400, "invalid_type", place, "\"%s\" must be an object", place);
    if (!check_role(message, place, fault))
        return false;
    json_t *content = json_object_get(message, "content");
    if (json_is_string(content))
        return true;
    if (json_is_array(content)) {
        json_t *joined = join_parts(content, param, fault);
        return joined && json_object_set_new(message, "content", joined) == 0;
    }
    bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
    if (calls && (!content || json_is_null(content)))
        return json_object_set_new(message, "content", json_null()) == 0;
    return mica_fault_set(fault, 400, "invalid_type", param, "\"%s\" must be a string or a list of parts", param);
}

json_t *mica_chat_messages(const json_t *body, mica_fault *fault)
{
    const json_t *given = json_object_get(body, "messages");
    size_t n = json_array_size(given);
    if (!json_is_array(given)) {
        mica_fault_set(fault, 400, given ? "invalid_type" : "missing_required_parameter", "messages",
                       "\"messages\" must be a list of messages");
        return NULL;
    }
    if (n == 0 || n > MICA_SERVE_MESSAGES_MAX) {
        mica_fault_bad(fault, "messages", "\"messages\" has %zu messages; it must have 1 to %d", n, MICA_SERVE_MESSAGES_MAX);
        return NULL;
    }
    json_t *messages = json_deep_copy(given);
    bool good = messages || no_memory(fault);
    for (size_t i = 0; good && i < n; i++)
        good = check_message(json_array_get(messages, i), i, fault);
    if (good)
        return messages;
    json_decref(messages);
    return NULL;
}

/* ---- Rendering ---- */

bool mica_chat_prompt(const mica_serve_context *context, const json_t *body, const json_t *messages, const mica_tools *tools,
                      char **text, size_t *length, mica_fault *fault)
{
    mica_error err;
    char *with_tools = NULL;
    json_t *request = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    json_t *kwargs = mica_field(body, "chat_template_kwargs");
    if (kwargs && !json_is_object(kwargs)) {
        json_decref(request);
        return mica_fault_set(fault, 400, "invalid_type", "chat_template_kwargs", "\"chat_template_kwargs\" must be an object");
    }
    if (kwargs)
        json_object_set(request, "chat_template_kwargs", kwargs);
    char *json = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    *text = NULL;
    if (!json)
        return no_memory(fault);
    size_t n = strlen(json);
    mica_status status = tools ? mica_tools_request(tools, json, n, &with_tools, &n, &err) : MICA_OK;
    if (!status)
        status = mica_model_chat_render(context->model, tools ? with_tools : json, n, -1, text, length, &err);
    mica_free(with_tools);
    free(json);
    return status ? mica_fault_engine(fault, &err, "messages") : true;
}

/* ---- Texts that spell a control token ---- */

typedef struct held {
    char start[MARK_BYTES + NONCE_DIGITS + 2]; /* of each placeholder */
    json_t *messages;                          /* with placeholders */
    json_t *originals;                         /* what they stand for */
} held;

static bool spells_special(const mica_model *model, const char *text, size_t length, bool *spells, mica_fault *fault)
{
    mica_error err;
    int32_t *plain = NULL, *parsed = NULL;
    size_t n_plain = 0, n_parsed = 0;
    mica_status status = mica_model_tokenize(model, text, length, 0, &plain, &n_plain, &err);
    if (!status)
        status = mica_model_tokenize(model, text, length, MICA_TOKENIZE_PARSE_SPECIAL, &parsed, &n_parsed, &err);
    *spells = !status && (n_plain != n_parsed || (n_plain > 0 && memcmp(plain, parsed, n_plain * sizeof *plain) != 0));
    mica_free(plain);
    mica_free(parsed);
    return status ? mica_fault_engine(fault, &err, "messages") : true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Blanks at the ends stay outside of the placeholder: templates trim them. */
static bool hold(held *h, json_t *message, const char *text, size_t length)
{
    size_t from = 0, to = length;
    mica_buf buf;
    while (from < to && is_blank(text[from]))
        from++;
    while (to > from && is_blank(text[to - 1]))
        to--;
    mica_buf_init(&buf, length + HOLDER_BYTES);
    mica_buf_append(&buf, text, from);
    mica_buf_printf(&buf, "%s%06zu" MARK, h->start, json_array_size(h->originals));
    mica_buf_append(&buf, text + to, length - to);
    bool done = !buf.failed && json_array_append_new(h->originals, json_stringn(text + from, to - from)) == 0 &&
                json_object_set_new(message, "content", json_stringn(buf.data, buf.length)) == 0;
    mica_buf_free(&buf);
    return done;
}

/* h->messages becomes a copy with placeholders, or stays NULL where no text needs one. */
static bool hold_all(held *h, const mica_model *model, const json_t *messages, mica_fault *fault)
{
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return mica_fault_set(fault, 500, "engine_error", NULL, "the system gives no random numbers");
    snprintf(h->start, sizeof h->start, MARK "%016llx-", (unsigned long long)random);
    h->originals = json_array();
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        const char *text = json_string_value(content);
        bool spells = false;
        if (text && !spells_special(model, text, json_string_length(content), &spells, fault))
            return false;
        if (!spells)
            continue;
        if (!h->messages && !(h->messages = json_deep_copy(messages)))
            return no_memory(fault);
        if (!hold(h, json_array_get(h->messages, i), text, json_string_length(content)))
            return no_memory(fault);
    }
    return true;
}

/* ---- Tokens ---- */

static bool append_tokens(mica_prompt *p, const mica_model *model, const char *text, size_t length, unsigned flags,
                          mica_fault *fault)
{
    mica_error err;
    int32_t *tokens;
    size_t n;
    if (mica_model_tokenize(model, text, length, flags, &tokens, &n, &err))
        return mica_fault_engine(fault, &err, "messages");
    int32_t *grown = realloc(p->tokens, (p->n + n + 1) * sizeof *grown);
    if (grown) {
        p->tokens = grown;
        if (n > 0)
            memcpy(grown + p->n, tokens, n * sizeof *tokens);
        p->n += n;
    }
    mica_free(tokens);
    return grown || no_memory(fault);
}

/* The BOS (and EOS, which goes to the very end) that the model wants around a text: asked for with an empty one. */
static bool add_frame(mica_prompt *p, const mica_serve_context *context, mica_fault *fault)
{
    mica_prompt frame = {.n = 0};
    bool good = append_tokens(&frame, context->model, "", 0, MICA_TOKENIZE_ADD_BOS, fault);
    int32_t *grown = good ? realloc(p->tokens, (p->n + frame.n + 1) * sizeof *grown) : NULL;
    if (grown) {
        p->tokens = grown;
        size_t before = context->info.add_bos && frame.n > 0 ? 1 : 0;
        if (before && !(p->n > 0 && grown[0] == frame.tokens[0])) {
            memmove(grown + 1, grown, p->n * sizeof *grown);
            grown[0] = frame.tokens[0];
            p->n++;
        }
        for (size_t i = before; i < frame.n; i++)
            grown[p->n++] = frame.tokens[i];
    }
    mica_free(frame.tokens);
    return grown || (good && no_memory(fault));
}

/* The template's parts with control tokens, the held texts without. */
static bool tokenize_held(const held *h, const mica_model *model, const char *text, size_t length, mica_prompt *p,
                          mica_fault *fault)
{
    const char *at = text, *end = text + length;
    bool good = true;
    while (good && at < end) {
        const char *holder = memmem(at, (size_t)(end - at), h->start, strlen(h->start));
        bool whole = holder && (size_t)(end - holder) >= HOLDER_BYTES;
        size_t before = (size_t)((whole ? holder : end) - at);
        if (before > 0)
            good = append_tokens(p, model, at, before, MICA_TOKENIZE_PARSE_SPECIAL, fault);
        at += before;
        if (!good || !whole)
            continue;
        const json_t *original = json_array_get(h->originals, (size_t)strtoul(holder + strlen(h->start), NULL, 10));
        if (original)
            good = append_tokens(p, model, json_string_value(original), json_string_length(original), 0, fault);
        at += HOLDER_BYTES;
    }
    return good;
}

static bool ends_thinking(const char *text, size_t length)
{
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    return length >= 7 && memcmp(text + length - 7, "<think>", 7) == 0;
}

bool mica_chat_tokens(const mica_serve_context *context, const json_t *body, const json_t *messages, const mica_tools *tools,
                      mica_prompt *prompt, bool *thinks, mica_fault *fault)
{
    held h = {.messages = NULL};
    char *text = NULL;
    size_t length = 0;
    bool good = hold_all(&h, context->model, messages, fault) &&
                mica_chat_prompt(context, body, h.messages ? h.messages : messages, tools, &text, &length, fault);
    *prompt = (mica_prompt){.n = 0};
    *thinks = good && ends_thinking(text, length);
    if (good && !h.messages)
        good = append_tokens(prompt, context->model, text, length, MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL, fault);
    else if (good)
        good = tokenize_held(&h, context->model, text, length, prompt, fault) && add_frame(prompt, context, fault);
    mica_free(text);
    json_decref(h.messages);
    json_decref(h.originals);
    return good;
}
