/* chat_tokens_util.h - what the tests of mica_chat_tokenize() share: conversations in short, and the tokens that are wanted. */
#ifndef MICA_TESTS_CHAT_TOKENS_UTIL_H
#define MICA_TESTS_CHAT_TOKENS_UTIL_H
#include "base/buf.h"
#include "mica/mica_tools.h"
#include "model_util.h"

/* In a wanted text: what is between is a control token. */
#define C(token) "\x01" token "\x01"

typedef struct ids {
    int32_t *id;
    size_t n;
} ids;

static inline void ids_add(ids *to, const mica_model *model, const char *text, size_t length, unsigned flags)
{
    mica_error err;
    int32_t *tokens;
    size_t n;
    if (mica_model_tokenize(model, text, length, flags, &tokens, &n, &err))
        fail_msg("%s", err.message);
    to->id = realloc(to->id, (to->n + n + 1) * sizeof *to->id);
    if (n > 0)
        memcpy(to->id + to->n, tokens, n * sizeof *tokens);
    to->n += n;
    mica_free(tokens);
}

/* The tokens of a wanted text: each piece between control tokens by itself, as text. */
static inline ids wanted_ids(const mica_model *model, const char *want, size_t length, mica_buf *text)
{
    ids all = {NULL, 0};
    bool control = false;
    for (const char *at = want, *end = want + length; at <= end; control = !control) {
        const char *mark = memchr(at, 1, (size_t)(end - at));
        size_t n = (size_t)((mark ? mark : end) - at), before = all.n;
        ids_add(&all, model, at, n, control ? MICA_TOKENIZE_PARSE_SPECIAL : 0);
        if (control && all.n != before + 1)
            fail_msg("%.*s is no control token", (int)n, at);
        mica_buf_append(text, at, n);
        at += n + 1;
    }
    return all;
}

/* {"messages": `messages`}; `messages` is JSON in which ' stands for ". */
static inline char *request_of(const char *messages)
{
    mica_buf buf;
    mica_buf_init(&buf, 1 << 24);
    mica_buf_puts(&buf, "{\"messages\": ");
    for (const char *c = messages; *c; c++)
        mica_buf_putc(&buf, *c == '\'' ? '"' : *c);
    mica_buf_puts(&buf, "}");
    return mica_buf_take(&buf, NULL);
}

/* Fails unless a request gives these tokens and this text. */
static inline void check_request(const mica_model *model, const mica_chat_options *options, const char *request,
                                 const char *want, size_t length)
{
    mica_error err = {.message = ""};
    int32_t *tokens;
    char *text;
    size_t n, n_text;
    mica_buf wanted_text;
    mica_buf_init(&wanted_text, 1 << 24);
    mica_buf_puts(&wanted_text, "");
    ids wanted = wanted_ids(model, want, length, &wanted_text);
    if (mica_chat_tokenize(model, request, strlen(request), options, &tokens, &n, &text, &n_text, &err))
        fail_msg("%s: %s", request, err.message);
    if (n_text != wanted_text.length || memcmp(text, wanted_text.data, n_text) != 0 || text[n_text] != '\0')
        fail_msg("%s: \"%s\", not \"%s\"", request, text, wanted_text.data);
    if (n != wanted.n || (n > 0 && memcmp(tokens, wanted.id, n * sizeof *tokens) != 0)) {
        char *got;
        mica_model_detokenize(model, tokens, n, true, &got, &n_text, NULL);
        fail_msg("%s: %zu tokens, not %zu: \"%s\"", request, n, wanted.n, got);
    }
    mica_free(tokens);
    mica_free(text);
    free(wanted.id);
    mica_buf_free(&wanted_text);
}

static inline void check_messages(const mica_model *model, const char *messages, const char *want)
{
    char *request = request_of(messages);
    check_request(model, NULL, request, want, strlen(want));
    free(request);
}

static inline mica_model *open_with_template(const char *path, const char *chat_template)
{
    mica_model_options o = mica_model_options_default();
    mica_model *model = NULL;
    mica_error err;
    o.chat_template = chat_template;
    if (mica_model_open(path, &o, &model, &err))
        fail_msg("%s", err.message);
    return model;
}

static inline void check_refused(const mica_model *model, const mica_chat_options *options, const char *request, size_t length,
                                 mica_status status, const char *part)
{
    mica_error err = {.message = ""};
    int32_t *tokens = (int32_t *)(uintptr_t)1;
    char *text = (char *)(uintptr_t)1;
    size_t n = 1, n_text = 1;
    assert_int_equal(mica_chat_tokenize(model, request, length, options, &tokens, &n, &text, &n_text, &err), status);
    assert_true(!tokens && n == 0 && !text && n_text == 0);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

#endif
