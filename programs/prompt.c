#include "prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"

/* A placeholder: private-use characters around digits, which no template changes: MARK, 20 digits, '-', 6 digits, MARK. */
#define MARK         "\xEE\x83\xB0" /* U+E0F0 */
#define MARK_BYTES   3
#define NONCE_DIGITS 20
#define HOLDER_BYTES (MARK_BYTES + NONCE_DIGITS + 1 + 6 + MARK_BYTES)
#define MAX_MESSAGES 1000000 /* what six digits count */

int mica_prompt_add(json_t *messages, const char *role, const char *content, size_t length)
{
    json_t *text = json_stringn(content, length);
    if (!text)
        return mica_term_error("the text of the %s message is not valid UTF-8", role);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", text);
    if (json_array_append_new(messages, message))
        return mica_term_error("not enough memory for the conversation");
    return CODE_OK;
}

int mica_prompt_raw(const mica_opts *o, const mica_model *model, const char *text, size_t length, int32_t **tokens, size_t *n)
{
    mica_error err;
    unsigned flags = (o->no_bos ? 0u : MICA_TOKENIZE_ADD_BOS) | (o->parse_special ? MICA_TOKENIZE_PARSE_SPECIAL : 0u);
    return mica_model_tokenize(model, text, length, flags, tokens, n, &err) ? mica_load_failed(&err) : CODE_OK;
}

/* ---- Which texts spell a control token ---- */

static int spells_special(const mica_model *model, const char *text, size_t length, bool *spells)
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
    return status ? mica_load_failed(&err) : CODE_OK;
}

/* ---- Placeholders ---- */

typedef struct held {
    char nonce[NONCE_DIGITS + 1];
    json_t *messages; /* a copy, with placeholders; owned */
    json_t *originals; /* strings that they stand for, by number; owned */
} held;

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* Blanks at the ends stay outside of the placeholder: templates trim them. */
static bool hold(held *h, json_t *message, const char *text, size_t length)
{
    size_t from = 0, to = length;
    while (from < to && is_blank(text[from]))
        from++;
    while (to > from && is_blank(text[to - 1]))
        to--;
    mica_buf buf;
    mica_buf_init(&buf, length + HOLDER_BYTES);
    mica_buf_append(&buf, text, from);
    mica_buf_printf(&buf, MARK "%s-%06zu" MARK, h->nonce, json_array_size(h->originals));
    mica_buf_append(&buf, text + to, length - to);
    bool done = !buf.failed && json_array_append_new(h->originals, json_stringn(text + from, to - from)) == 0 &&
                json_object_set_new(message, "content", json_stringn(buf.data, buf.length)) == 0;
    mica_buf_free(&buf);
    return done;
}

static int hold_all(held *h, const mica_model *model, const json_t *messages)
{
    h->messages = json_deep_copy(messages);
    h->originals = json_array();
    if (!h->messages || !h->originals)
        return mica_term_error("not enough memory for the conversation");
    if (json_array_size(messages) >= MAX_MESSAGES)
        return mica_term_error("the conversation has more than %d messages", MAX_MESSAGES);
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(h->messages, i), *content = json_object_get(message, "content");
        bool spells = false;
        if (!json_is_string(content))
            continue;
        json_incref(content); /* hold() replaces it */
        int code = spells_special(model, json_string_value(content), json_string_length(content), &spells);
        if (code == CODE_OK && spells && !hold(h, message, json_string_value(content), json_string_length(content)))
            code = mica_term_error("not enough memory for the conversation");
        json_decref(content);
        if (code != CODE_OK)
            return code;
    }
    return CODE_OK;
}

/* ---- Rendering ---- */

static mica_status render_request(const mica_model *model, const mica_tools *tools, const char *json, char **text,
                                  size_t *length, mica_error *err)
{
    char *with_tools = NULL;
    size_t n = strlen(json);
    mica_status status = tools ? mica_tools_request(tools, json, n, &with_tools, &n, err) : MICA_OK;
    if (!status)
        status = mica_model_chat_render(model, tools ? with_tools : json, n, -1, text, length, err);
    mica_free(with_tools);
    return status;
}

static int render(const mica_model *model, const mica_tools *tools, json_t *messages, char **text, size_t *length)
{
    mica_error err;
    json_t *request = json_pack("{s:O, s:b}", "messages", messages, "add_generation_prompt", 1);
    char *json = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    *text = NULL;
    if (!json)
        return mica_term_error("not enough memory for the conversation");
    mica_status status = render_request(model, tools, json, text, length, &err);
    free(json);
    return status ? mica_load_failed(&err) : CODE_OK;
}

typedef struct token_list {
    int32_t *id; /* from malloc, as the library's own: mica_free() is good for it */
    size_t n;
} token_list;

static int append_tokens(token_list *list, const mica_model *model, const char *text, size_t length, unsigned flags)
{
    mica_error err;
    int32_t *tokens;
    size_t n;
    if (mica_model_tokenize(model, text, length, flags, &tokens, &n, &err))
        return mica_load_failed(&err);
    int32_t *grown = realloc(list->id, (list->n + n + 1) * sizeof *grown);
    if (grown) {
        list->id = grown;
        if (n > 0)
            memcpy(grown + list->n, tokens, n * sizeof *tokens);
        list->n += n;
    }
    mica_free(tokens);
    return grown ? CODE_OK : mica_term_error("not enough memory for the prompt's tokens");
}

/* The BOS (and EOS, which goes to the very end) that the model wants around a text: asked for with an empty one. */
static int add_frame(token_list *list, const mica_model *model)
{
    mica_model_info info;
    mica_model_get_info(model, &info);
    token_list frame = {NULL, 0};
    int code = append_tokens(&frame, model, "", 0, MICA_TOKENIZE_ADD_BOS);
    int32_t *grown = code == CODE_OK ? realloc(list->id, (list->n + frame.n + 1) * sizeof *grown) : NULL;
    if (grown) {
        list->id = grown;
        size_t before = info.add_bos && frame.n > 0 ? 1 : 0;
        if (before && !(list->n > 0 && grown[0] == frame.id[0])) {
            memmove(grown + 1, grown, list->n * sizeof *grown);
            grown[0] = frame.id[0];
            list->n++;
        }
        for (size_t i = before; i < frame.n; i++)
            grown[list->n++] = frame.id[i];
    } else if (code == CODE_OK) {
        code = mica_term_error("not enough memory for the prompt's tokens");
    }
    free(frame.id);
    return code;
}

/* Template parts with control tokens, the held texts without. */
static int tokenize_held(const held *h, const mica_model *model, const char *text, size_t length, token_list *list)
{
    char start[MARK_BYTES + NONCE_DIGITS + 2];
    snprintf(start, sizeof start, MARK "%s-", h->nonce);
    const char *at = text, *end = text + length;
    int code = CODE_OK;
    while (code == CODE_OK && at < end) {
        const char *holder = memmem(at, (size_t)(end - at), start, strlen(start));
        bool whole = holder && (size_t)(end - holder) >= HOLDER_BYTES;
        size_t before = (size_t)((whole ? holder : end) - at);
        if (before > 0)
            code = append_tokens(list, model, at, before, MICA_TOKENIZE_PARSE_SPECIAL);
        at += before;
        if (code != CODE_OK || !whole)
            continue;
        json_t *original = json_array_get(h->originals, (size_t)strtoul(holder + strlen(start), NULL, 10));
        if (original)
            code = append_tokens(list, model, json_string_value(original), json_string_length(original), 0);
        at += HOLDER_BYTES;
    }
    return code;
}

static int tokenize_chat(const mica_opts *o, const held *h, const mica_model *model, const mica_tools *tools, json_t *messages,
                         token_list *list)
{
    char *text;
    size_t length;
    bool plain = !h || json_array_size(h->originals) == 0;
    int code = render(model, tools, plain ? messages : h->messages, &text, &length);
    if (code == CODE_OK && plain) {
        unsigned bos = o->no_bos ? 0 : MICA_TOKENIZE_ADD_BOS;
        code = append_tokens(list, model, text, length, bos | MICA_TOKENIZE_PARSE_SPECIAL);
    } else if (code == CODE_OK) {
        code = tokenize_held(h, model, text, length, list);
        if (code == CODE_OK && !o->no_bos)
            code = add_frame(list, model);
    }
    mica_free(text);
    return code;
}

int mica_prompt_chat(const mica_opts *o, const mica_model *model, const mica_tools *tools, json_t *messages, int32_t **tokens,
                     size_t *n)
{
    token_list list = {NULL, 0};
    held h = {.messages = NULL};
    uint64_t random = 0;
    int code = CODE_OK;
    if (!o->parse_special) {
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return mica_term_error("the system gives no random numbers");
        snprintf(h.nonce, sizeof h.nonce, "%020llu", (unsigned long long)random);
        code = hold_all(&h, model, messages);
    }
    if (code == CODE_OK)
        code = tokenize_chat(o, o->parse_special ? NULL : &h, model, tools, messages, &list);
    json_decref(h.messages);
    json_decref(h.originals);
    if (code != CODE_OK) {
        free(list.id);
        list = (token_list){NULL, 0};
    }
    *tokens = list.id;
    *n = list.n;
    return code;
}
