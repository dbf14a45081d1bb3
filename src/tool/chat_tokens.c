/* chat_tokens.c - a conversation to tokens, in which what the request says stays text; text/standin.h has the method. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session/engine.h"
#include "text/standin.h"
#include "tool/tools.h"

#define MAX_RENDERED ((size_t)1 << 30) /* of restored text; templates write less */

typedef struct rendered {
    char *text; /* with stand-ins; malloc'ed */
    size_t n;
} rendered;

mica_chat_options mica_chat_options_default(void)
{
    return (mica_chat_options){.struct_size = sizeof(mica_chat_options), .flags = MICA_TOKENIZE_ADD_BOS, .now_unix = -1};
}

/* ---- The request ---- */

static mica_status check_options(const mica_chat_options *o, mica_error *err)
{
    if (o->struct_size != sizeof *o)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "mica_chat_options.struct_size is %zu, not %zu: use mica_chat_options_default()", o->struct_size,
                         sizeof *o);
    if (o->flags & ~(unsigned)(MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "mica_chat_options.flags 0x%x has bits that mean nothing", o->flags);
    return MICA_OK;
}

static mica_status read_request(const mica_chat_options *o, const char *json, size_t length, json_t **root, mica_error *err)
{
    char *with_tools = NULL;
    mica_status status = o->tools ? mica_tools_request(o->tools, json, length, &with_tools, &length, err) : MICA_OK;
    if (!status)
        status = mica_chat_request_read(o->tools ? with_tools : json, length, root, err);
    free(with_tools);
    return status;
}

/* ---- Rendering ---- */

static mica_status render_replaced(const mica_model *m, mica_standins *s, json_t *root, bool all, int64_t now, rendered *out,
                                   mica_error *err)
{
    json_t *replaced = mica_standins_replace(s, root, all);
    if (!replaced && s->exhausted)
        return mica_fail(err, MICA_INVALID_ARGUMENT,
                         "the conversation spells control tokens, and has so many rare characters that none is left to keep "
                         "them apart from the template's");
    if (!replaced)
        return mica_fail_nomem(err, 0, "the conversation");
    mica_status status = mica_model_chat_run(m, replaced, now, &out->text, &out->n, err);
    json_decref(replaced);
    return status;
}

/* Keeps the text with few stand-ins where its control tokens are the template's, which the text with all of them has; else
 * takes that one. A template that fails on it cannot be checked: the request is refused. */
static mica_status check_controls(const mica_model *m, mica_standins *s, json_t *root, int64_t now, rendered *out,
                                  mica_error *err)
{
    rendered all = {.text = NULL};
    mica_status status = render_replaced(m, s, root, true, now, &all, err);
    if (!status && !mica_standins_same_controls(m->vocab, out->text, out->n, all.text, all.n)) {
        const rendered few = *out;
        *out = all;
        all = few;
    }
    free(all.text);
    return status;
}

static mica_status render(const mica_model *m, mica_standins *s, json_t *root, int64_t now, rendered *out, mica_error *err)
{
    mica_standins_init(s, m->vocab);
    mica_standins_avoid(s, m->chat_template, strlen(m->chat_template));
    if (!mica_standins_look(s, root))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the request is nested too deep");
    mica_status status = s->spells ? render_replaced(m, s, root, false, now, out, err)
                                   : mica_model_chat_run(m, root, now, &out->text, &out->n, err);
    return !status && s->tells ? check_controls(m, s, root, now, out, err) : status;
}

/* ---- Both ---- */

/* *text takes over the rendered text, or becomes a restored copy. */
static mica_status give_text(const mica_standins *s, rendered *r, char **text, size_t *length, mica_error *err)
{
    if (!mica_standins_any(s, r->text, r->n)) {
        *text = r->text;
        *length = r->n;
        r->text = NULL;
        return MICA_OK;
    }
    mica_buf plain;
    mica_buf_init(&plain, MAX_RENDERED);
    mica_standins_restore(s, r->text, r->n, &plain);
    *text = mica_buf_take(&plain, length);
    return *text ? MICA_OK : mica_fail_nomem(err, r->n, "the rendered text");
}

mica_status mica_chat_tokenize(const mica_model *m, const char *request_json, size_t length, const mica_chat_options *options,
                               int32_t **tokens, size_t *n_tokens, char **text, size_t *text_length, mica_error *err)
{
    const mica_chat_options defaults = mica_chat_options_default(), *o = options ? options : &defaults;
    rendered r = {.text = NULL};
    mica_standins s = {.vocab = m->vocab};
    json_t *root = NULL;
    size_t n = 0;
    *tokens = NULL;
    *n_tokens = 0;
    if (text)
        *text = NULL;
    if (text_length)
        *text_length = 0;
    mica_status status = check_options(o, err);
    if (!status)
        status = read_request(o, request_json, length, &root, err);
    if (status)
        return status;
    int64_t now = o->now_unix >= 0 ? o->now_unix : (int64_t)time(NULL); /* one time for all renderings */
    if (o->flags & MICA_TOKENIZE_PARSE_SPECIAL)
        status = mica_model_chat_run(m, root, now, &r.text, &r.n, err);
    else
        status = render(m, &s, root, now, &r, err);
    json_decref(root);
    if (!status)
        status = mica_standins_tokenize(&s, r.text, r.n, o->flags, tokens, n_tokens, err);
    if (!status && text)
        status = give_text(&s, &r, text, &n, err);
    free(r.text);
    if (text_length)
        *text_length = n;
    if (status) {
        free(*tokens);
        *tokens = NULL;
        *n_tokens = 0;
    }
    return status;
}
