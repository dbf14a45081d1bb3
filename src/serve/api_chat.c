/* api_chat.c - /v1/chat/completions: a conversation in, a message out. */
#include <stdlib.h>
#include <string.h>

#include "serve/fields.h"
#include "base/json.h"
#include "serve/chat_prompt.h"
#include "serve/tool_fields.h"

/* ---- Request ---- */

static bool read_limits(mica_request *r, mica_fault *fault)
{
    bool logprobs = false;
    int32_t old = -1, n_top = 0;
    if (!mica_field_int32(r->body, "max_tokens", -1, INT32_MAX, &old, fault) ||
        !mica_field_int32(r->body, "max_completion_tokens", -1, INT32_MAX, &old, fault) ||
        !mica_field_bool(r->body, "logprobs", &logprobs, fault) ||
        !mica_field_int32(r->body, "top_logprobs", 0, 20, &n_top, fault))
        return false;
    if (n_top > 0 && !logprobs)
        return mica_fault_bad(fault, "top_logprobs", "\"top_logprobs\" needs \"logprobs\": true");
    r->options.max_tokens = old;
    r->want_logprobs = logprobs;
    r->n_top = n_top;
    r->options.top_logprobs = logprobs ? (n_top > 0 ? n_top : 1) : 0; /* the engine tells a token's own only with others */
    return true;
}

static bool parse(mica_request *r, mica_fault *fault)
{
    bool thinks = false;
    if (!mica_params_read(r, fault) || !read_limits(r, fault))
        return false;
    json_t *messages = mica_chat_messages(r->body, fault);
    bool good = messages && mica_tool_fields_read(r, fault) &&
                mica_params_format(r, mica_field(r->body, "response_format"), "response_format", fault) &&
                mica_tool_fields_constrain(r, "response_format", fault);
    r->prompts = good ? calloc(1, sizeof *r->prompts) : NULL;
    r->n_prompts = r->prompts != NULL;
    if (good && !r->prompts)
        good = mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
    good = good && mica_chat_tokens(r->context, r->body, messages, r->tools, &r->prompts[0], &thinks, fault) &&
           mica_request_check_prompt(r, &r->prompts[0], "messages", fault) && mica_request_make_choices(r, fault);
    r->think_inside = thinks;
    json_decref(messages);
    return good;
}

/* ---- Stream ---- */

static json_t *chunk(const mica_request *r, json_t *choices)
{
    json_t *o = json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", r->id, "object", "chat.completion.chunk", "created",
                          (json_int_t)r->created, "model", r->context->name, "system_fingerprint", "mica", "choices", choices);
    if (o && r->include_usage)
        json_object_set_new(o, "usage", json_null());
    return o;
}

/* The entries that were not said yet, as {"content": [...]}; null where none were asked for. */
static json_t *take_logprobs(mica_choice *c)
{
    if (!c->logprobs)
        return json_null();
    json_t *taken = json_pack("{s:o, s:n}", "content", c->logprobs, "refusal");
    c->logprobs = json_array();
    return taken;
}

static void send_delta(mica_choice *c, json_t *delta, bool with_logprobs, json_t *finish)
{
    if (!c->began) /* the role comes first, and once */
        json_object_set_new(delta, "role", json_string("assistant"));
    json_t *choice = json_pack("{s:i, s:o, s:o, s:o}", "index", c->index, "delta", delta, "logprobs",
                               with_logprobs ? take_logprobs(c) : json_null(), "finish_reason", finish);
    mica_request_event(c->request, NULL, chunk(c->request, json_pack("[o]", choice)));
}

static void say(mica_choice *c, const mica_delta *d)
{
    json_t *delta = NULL;
    switch (d->kind) {
    case MICA_DELTA_TEXT:
        delta = json_pack("{s:s%}", "content", d->text, d->length);
        break;
    case MICA_DELTA_REASONING:
        delta = json_pack("{s:s%}", "reasoning_content", d->text, d->length);
        break;
    case MICA_DELTA_CALL:
        delta = json_pack("{s:[{s:i, s:s, s:s, s:{s:s, s:s}}]}", "tool_calls", "index", d->call, "id", d->id, "type",
                          "function", "function", "name", d->name, "arguments", "");
        if (!c->began)
            json_object_set_new(delta, "content", json_null());
        break;
    case MICA_DELTA_ARGUMENTS:
        delta = json_pack("{s:[{s:i, s:{s:s%}}]}", "tool_calls", "index", d->call, "function", "arguments", d->text, d->length);
        break;
    }
    send_delta(c, delta, true, json_null());
}

static void end(mica_choice *c)
{
    mica_request *r = c->request;
    bool rest = c->logprobs && json_array_size(c->logprobs) > 0;
    if (!c->began || rest) /* a reply without text has a delta all the same */
        say(c, &(mica_delta){.kind = MICA_DELTA_TEXT, .text = ""});
    c->began = true;
    json_t *choice = json_pack("{s:i, s:{}, s:n, s:s}", "index", c->index, "delta", "logprobs", "finish_reason", c->finish);
    json_t *last = chunk(r, json_pack("[o]", choice));
    if (r->n_ended == r->n_choices)
        json_object_set_new(last, "mica", mica_request_timings(r));
    mica_request_event(r, NULL, last);
}

static void close_stream(mica_request *r)
{
    if (r->include_usage) {
        json_t *last = chunk(r, json_array());
        json_object_set_new(last, "usage", mica_request_usage(r, "prompt_tokens", "completion_tokens"));
        mica_request_event(r, NULL, last);
    }
    mica_request_done_mark(r);
}

/* ---- Whole ---- */

static json_t *message_of(mica_choice *c)
{
    bool calls = json_array_size(c->calls) > 0;
    json_t *message = json_pack("{s:s}", "role", "assistant");
    json_object_set_new(message, "content",
                        calls && c->content.length == 0
                            ? json_null()
                            : json_stringn(c->content.length ? c->content.data : "", c->content.length));
    if (c->reasoning.length > 0)
        json_object_set_new(message, "reasoning_content", json_stringn(c->reasoning.data, c->reasoning.length));
    if (calls)
        json_object_set(message, "tool_calls", c->calls);
    json_object_set_new(message, "refusal", json_null());
    return message;
}

static json_t *whole(mica_request *r)
{
    json_t *choices = json_array();
    for (int32_t i = 0; i < r->n_choices; i++) {
        mica_choice *c = &r->choices[i];
        mica_json_add(&choices, json_pack("{s:i, s:o, s:o, s:s}", "index", c->index, "message", message_of(c),
                                                 "logprobs", take_logprobs(c), "finish_reason", c->finish));
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o, s:o}", "id", r->id, "object", "chat.completion", "created",
                     (json_int_t)r->created, "model", r->context->name, "system_fingerprint", "mica", "choices", choices,
                     "usage", mica_request_usage(r, "prompt_tokens", "completion_tokens"), "mica", mica_request_timings(r));
}

const mica_api mica_api_chat = {"chatcmpl-", false, parse, NULL, say, end, close_stream, whole};
