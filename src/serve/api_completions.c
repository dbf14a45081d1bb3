/* api_completions.c - /v1/completions: texts or token ids in, their continuations out. */
#include <stdlib.h>
#include <string.h>

#include "serve/fields.h"
#include "serve/old_logprobs.h"
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

/* What the tokens say, with U+FFFD for what is no text. */
static bool make_text(const mica_request *r, mica_prompt *p, mica_fault *fault)
{
    mica_error err;
    char *bytes;
    size_t n;
    if (mica_model_detokenize(r->context->model, p->tokens, p->n, false, &bytes, &n, &err))
        return mica_fault_engine(fault, &err, "prompt");
    json_t *text = mica_json_lossy(bytes, n);
    mica_free(bytes);
    p->length = json_string_length(text);
    p->text = text ? malloc(p->length + 1) : NULL;
    if (p->text)
        memcpy(p->text, json_string_value(text), p->length + 1);
    json_decref(text);
    return p->text || mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the prompt");
}

static bool id_prompt(mica_request *r, const json_t *ids, mica_prompt *p, mica_fault *fault)
{
    size_t n = json_array_size(ids);
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
    p->from_ids = true;
    return !r->echo || make_text(r, p, fault);
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
    if (r->echo && r->want_logprobs && r->options.token_healing)
        return mica_fault_bad(fault, "token_healing",
                              "\"token_healing\" changes the prompt's end, so that \"echo\" cannot have its \"logprobs\"");
    return true;
}

/* Memory for the log-probabilities of the prompts, which are there before the first reply begins. */
static bool make_scores(mica_request *r, mica_fault *fault)
{
    size_t wide = (size_t)(1 + r->n_top), most = r->stream ? MICA_SERVE_SCORES_SENT : MICA_SERVE_SCORES_MAX, n = 0;
    for (size_t i = 0; i < r->n_prompts; i++)
        n += r->prompts[i].n * wide * (size_t)r->n;
    if (n > most)
        return mica_fault_bad(fault, "logprobs",
                              "the prompts would have %zu log-probabilities, more than the %zu that %s may have: send fewer or "
                              "shorter prompts, or ask for a lower \"logprobs\"",
                              n, most, r->stream ? "a stream" : "an answer");
    for (size_t i = 0; i < r->n_prompts; i++) {
        r->prompts[i].scores = calloc(r->prompts[i].n * wide, sizeof *r->prompts[i].scores);
        if (!r->prompts[i].scores)
            return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the log-probabilities");
    }
    return true;
}

static bool parse(mica_request *r, mica_fault *fault)
{
    int32_t logprobs = -1;
    r->options.max_tokens = 16; /* OpenAI's default for this route */
    if (!mica_params_read(r, fault) || !mica_field_int32(r->body, "max_tokens", -1, INT32_MAX, &r->options.max_tokens, fault) ||
        !mica_field_bool(r->body, "echo", &r->echo, fault) ||
        !mica_field_int32(r->body, "logprobs", 0, MICA_SERVE_TOP_MAX, &logprobs, fault))
        return false;
    r->think = false; /* raw text in, raw text out */
    r->want_logprobs = logprobs >= 0;
    r->n_top = logprobs > 0 ? logprobs : 0;
    r->options.top_logprobs = logprobs < 0 ? 0 : logprobs > 0 ? logprobs : 1;
    return refuse_unsupported(r, fault) &&
           mica_params_format(r, mica_field(r->body, "response_format"), "response_format", fault) && read_prompts(r, fault) &&
           (!r->echo || !r->want_logprobs || make_scores(r, fault)) && mica_request_make_choices(r, fault);
}

/* ---- Log-probabilities ---- */

/* Of the prompt, of what was not told yet of the reply, or of both; null where none were asked for. */
static json_t *take_logprobs(mica_choice *c, bool prompt, bool reply)
{
    json_t *lists = c->logprobs ? mica_old_logprobs_new() : json_null();
    if (c->logprobs && prompt && c->prompt->scores)
        mica_old_logprobs_prompt(c, lists);
    if (prompt && c->prompt->text)
        c->offset = mica_old_logprobs_characters(c->prompt->text, c->prompt->length);
    if (c->logprobs && reply)
        mica_old_logprobs_reply(c, lists);
    return lists;
}

/* ---- Replies ---- */

static json_t *object_of(const mica_request *r, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", r->id, "object", "text_completion", "created",
                     (json_int_t)r->created, "model", r->context->name, "system_fingerprint", "mica", "choices", choices);
}

static json_t *choice_of(const mica_choice *c, const char *text, size_t length, json_t *logprobs, const char *finish)
{
    return json_pack("{s:i, s:s%, s:o, s:s?}", "index", c->index, "text", text, length, "logprobs", logprobs, "finish_reason",
                     finish);
}

static void send(mica_choice *c, const char *text, size_t length, json_t *logprobs, const char *finish)
{
    mica_request *r = c->request;
    json_t *o = object_of(r, json_pack("[o]", choice_of(c, text, length, logprobs, finish)));
    if (r->include_usage)
        json_object_set_new(o, "usage", json_null());
    if (finish && r->n_ended == r->n_choices)
        json_object_set_new(o, "mica", mica_request_timings(r));
    mica_request_event(r, NULL, o);
}

static void echo(mica_choice *c)
{
    if (c->prompt->text && !c->began)
        send(c, c->prompt->text, c->prompt->length, take_logprobs(c, true, false), NULL);
    c->began = true;
}

static void say(mica_choice *c, const mica_delta *d)
{
    echo(c);
    send(c, d->text, d->length, take_logprobs(c, false, true), NULL);
}

static void end(mica_choice *c)
{
    echo(c);
    send(c, "", 0, take_logprobs(c, false, true), c->finish);
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
        json_array_append_new(choices,
                              choice_of(c, text.length ? text.data : "", text.length, take_logprobs(c, true, true), c->finish));
        mica_buf_free(&text);
    }
    json_t *o = object_of(r, choices);
    json_object_set_new(o, "usage", mica_request_usage(r, "prompt_tokens", "completion_tokens"));
    json_object_set_new(o, "mica", mica_request_timings(r));
    return o;
}

const mica_api mica_api_completions = {"cmpl-", false, parse, NULL, say, end, close_stream, whole};
