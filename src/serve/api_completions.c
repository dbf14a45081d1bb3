/* api_completions.c - /v1/completions: texts or token ids in, their continuations out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/fields.h"
#include "serve/request.h"

/* ---- Request ---- */

static bool text_prompt(mica_request *r, const json_t *text, mica_prompt *p, mica_fault *fault)
{
    mica_error err;
    unsigned flags =
        MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL; /* a raw prompt is the caller's own, markers included */
    if (mica_model_tokenize(r->context->model, json_string_value(text), json_string_length(text), flags, &p->tokens, &p->n,
                            &err))
        return mica_fault_engine(fault, &err, "prompt");
    if (r->echo) {
        p->text = malloc(json_string_length(text) + 1);
        if (!p->text)
            return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the prompt");
        memcpy(p->text, json_string_value(text), json_string_length(text) + 1);
        p->length = json_string_length(text);
    }
    return true;
}

static bool id_prompt(mica_request *r, const json_t *ids, mica_prompt *p, mica_fault *fault)
{
    mica_error err;
    size_t n = json_array_size(ids);
    char *text;
    p->tokens = malloc((n + 1) * sizeof *p->tokens);
    if (!p->tokens)
        return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the prompt");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(ids, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id))
            return mica_fault_set(fault, 400, "invalid_type", "prompt",
                                  "\"prompt\" must be a string, a list of strings, or of token ids");
        if (value < 0 || value >= r->context->info.n_vocab)
            return mica_fault_bad(fault, "prompt", "token id %lld is not in the vocabulary, which ends at %d", (long long)value,
                                  r->context->info.n_vocab - 1);
        p->tokens[p->n++] = (int32_t)value;
    }
    if (!r->echo)
        return true;
    if (mica_model_detokenize(r->context->model, p->tokens, p->n, false, &text, &p->length, &err))
        return mica_fault_engine(fault, &err, "prompt");
    p->text = text; /* from malloc, as all that the library hands over */
    return true;
}

static bool read_prompt(mica_request *r, const json_t *prompt, mica_prompt *p, mica_fault *fault)
{
    if (!json_is_string(prompt) && !json_is_array(prompt))
        return mica_fault_set(fault, 400, "invalid_type", "prompt",
                              "\"prompt\" must be a string, a list of strings, or of token ids");
    bool good = json_is_string(prompt) ? text_prompt(r, prompt, p, fault) : id_prompt(r, prompt, p, fault);
    return good && mica_request_check_prompt(r, p, "prompt", fault);
}

static bool read_prompts(mica_request *r, mica_fault *fault)
{
    const json_t *prompt = mica_field(r->body, "prompt"), *first = json_array_get(prompt, 0);
    bool many = json_is_string(first) || json_is_array(first);
    size_t n = many ? json_array_size(prompt) : 1;
    if (!prompt)
        return mica_fault_set(fault, 400, "missing_required_parameter", "prompt", "\"prompt\" is missing");
    if (n > MICA_SERVE_PROMPTS_MAX)
        return mica_fault_bad(fault, "prompt", "\"prompt\" has %zu prompts; at most %d are possible", n,
                              MICA_SERVE_PROMPTS_MAX);
    r->prompts = calloc(n, sizeof *r->prompts);
    if (!r->prompts)
        return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
    r->n_prompts = n;
    for (size_t i = 0; i < n; i++)
        if (!read_prompt(r, many ? json_array_get(prompt, i) : prompt, &r->prompts[i], fault))
            return false;
    return true;
}

static bool refuse_unsupported(mica_request *r, mica_fault *fault)
{
    int64_t best_of = 1;
    const char *suffix = NULL;
    if (!mica_field_int(r->body, "best_of", 1, MICA_SERVE_CHOICES_MAX, &best_of, fault) ||
        !mica_field_text(r->body, "suffix", &suffix, fault))
        return false;
    if (best_of > r->n)
        return mica_fault_bad(fault, "best_of", "\"best_of\" above \"n\" is not supported");
    if (suffix && *suffix)
        return mica_fault_bad(fault, "suffix", "\"suffix\" is not supported");
    if (r->echo && r->want_logprobs)
        return mica_fault_bad(fault, "logprobs",
                              "\"logprobs\" of an echoed prompt are not supported: leave out \"echo\" or \"logprobs\"");
    return true;
}

static bool parse(mica_request *r, mica_fault *fault)
{
    int32_t logprobs = -1;
    r->options.max_tokens = 16; /* OpenAI's default for this route */
    if (!mica_params_read(r, fault) || !mica_field_int32(r->body, "max_tokens", -1, INT32_MAX, &r->options.max_tokens, fault) ||
        !mica_field_bool(r->body, "echo", &r->echo, fault) || !mica_field_int32(r->body, "logprobs", 0, 20, &logprobs, fault))
        return false;
    r->think = false; /* raw text in, raw text out */
    r->want_logprobs = logprobs >= 0;
    r->n_top = logprobs > 0 ? logprobs : 0;
    r->options.top_logprobs = logprobs < 0 ? 0 : logprobs > 0 ? logprobs : 1;
    return refuse_unsupported(r, fault) &&
           mica_params_format(r, mica_field(r->body, "response_format"), "response_format", fault) && read_prompts(r, fault) &&
           mica_request_make_choices(r, fault);
}

/* ---- Log-probabilities in this route's old form ---- */

/* The token's text, or "bytes:\xNN..." where it is no text of its own, as OpenAI writes it. */
static json_t *old_token(const json_t *entry)
{
    const json_t *bytes = json_object_get(entry, "bytes");
    char plain[512], spelt[2100];
    size_t n = json_array_size(bytes), at = (size_t)snprintf(spelt, sizeof spelt, "bytes:");
    for (size_t i = 0; i < n && i < sizeof plain; i++) {
        plain[i] = (char)json_integer_value(json_array_get(bytes, i));
        at += (size_t)snprintf(spelt + at, sizeof spelt - at, "\\x%02x", (unsigned)(unsigned char)plain[i]);
    }
    json_t *text = json_stringn(plain, n);
    return text ? text : json_string(spelt);
}

static json_t *old_top(const json_t *entry)
{
    json_t *object = json_object();
    const json_t *top = json_object_get(entry, "top_logprobs");
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *one = json_array_get(top, i);
        json_t *name = old_token(one);
        json_object_set(object, json_string_value(name), json_object_get(one, "logprob"));
        json_decref(name);
    }
    return object;
}

/* Characters that begin in these bytes: all but UTF-8's continuation bytes. */
static size_t characters_of(const json_t *bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(bytes); i++)
        n += (json_integer_value(json_array_get(bytes, i)) & 0xC0) != 0x80;
    return n;
}

static json_t *take_logprobs(mica_choice *c)
{
    if (!c->logprobs)
        return json_null();
    json_t *tokens = json_array(), *values = json_array(), *tops = json_array(), *offsets = json_array();
    for (size_t i = 0; i < json_array_size(c->logprobs); i++) {
        const json_t *entry = json_array_get(c->logprobs, i);
        json_array_append_new(tokens, old_token(entry));
        json_array_append(values, json_object_get(entry, "logprob"));
        json_array_append_new(tops, c->request->n_top > 0 ? old_top(entry) : json_null());
        json_array_append_new(offsets, json_integer((json_int_t)c->offset));
        c->offset += characters_of(json_object_get(entry, "bytes"));
    }
    json_array_clear(c->logprobs);
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values, "top_logprobs", tops, "text_offset",
                     offsets);
}

/* ---- Replies ---- */

static json_t *object_of(const mica_request *r, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", r->id, "object", "text_completion", "created",
                     (json_int_t)r->created, "model", r->context->name, "system_fingerprint", "mica", "choices", choices);
}

static json_t *choice_of(mica_choice *c, const char *text, size_t length, const char *finish)
{
    return json_pack("{s:i, s:s%, s:o, s:s?}", "index", c->index, "text", text, length, "logprobs", take_logprobs(c),
                     "finish_reason", finish);
}

static void send(mica_choice *c, const char *text, size_t length, const char *finish)
{
    mica_request *r = c->request;
    json_t *o = object_of(r, json_pack("[o]", choice_of(c, text, length, finish)));
    if (r->include_usage)
        json_object_set_new(o, "usage", json_null());
    if (finish && r->n_ended == r->n_choices)
        json_object_set_new(o, "mica", mica_request_timings(r));
    mica_request_event(r, NULL, o);
}

static void echo(mica_choice *c)
{
    if (c->prompt->text && !c->began)
        send(c, c->prompt->text, c->prompt->length, NULL);
    c->began = true;
}

static void say(mica_choice *c, const mica_delta *d)
{
    echo(c);
    send(c, d->text, d->length, NULL);
}

static void end(mica_choice *c)
{
    echo(c);
    send(c, "", 0, c->finish);
}

static void close_stream(mica_request *r)
{
    if (r->include_usage) {
        json_t *last = object_of(r, json_array());
        json_object_set_new(last, "usage", mica_request_usage(r, "prompt_tokens", "completion_tokens"));
        mica_request_event(r, NULL, last);
    }
    mica_request_done_mark(r);
}

static json_t *whole(mica_request *r)
{
    json_t *choices = json_array();
    for (int32_t i = 0; i < r->n_choices; i++) {
        mica_choice *c = &r->choices[i];
        mica_buf text;
        mica_buf_init(&text, MICA_SERVE_REPLY_MAX);
        mica_buf_append(&text, c->prompt->text ? c->prompt->text : "", c->prompt->text ? c->prompt->length : 0);
        mica_buf_append(&text, c->content.data ? c->content.data : "", c->content.length);
        json_array_append_new(choices, choice_of(c, text.length ? text.data : "", text.length, c->finish));
        mica_buf_free(&text);
    }
    json_t *o = object_of(r, choices);
    json_object_set_new(o, "usage", mica_request_usage(r, "prompt_tokens", "completion_tokens"));
    json_object_set_new(o, "mica", mica_request_timings(r));
    return o;
}

const mica_api mica_api_completions = {"cmpl-", parse, NULL, say, end, close_stream, whole};
