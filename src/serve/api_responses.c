/* api_responses.c - /v1/responses: OpenAI's newer form: input in, a list of items out, which are a message, function calls, or
 * both. Nothing is stored between requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/chat_prompt.h"
#include "serve/fields.h"
#include "serve/responses_input.h"
#include "serve/tool_fields.h"

/* ---- Request ---- */

static bool refuse_unsupported(const mica_request *r, mica_fault *fault)
{
    static const char *const never[] = {"previous_response_id", "conversation", "prompt", "background"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        const json_t *value = mica_field(r->body, never[i]);
        if (value && !json_is_false(value))
            return mica_fault_bad(fault, never[i], "\"%s\" is not supported: nothing is stored here; send the whole input",
                                  never[i]);
    }
    return true;
}

static bool make_prompt(mica_request *r, const json_t *messages, mica_fault *fault)
{
    bool thinks = false;
    r->prompts = calloc(1, sizeof *r->prompts);
    if (!r->prompts)
        return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
    r->n_prompts = 1;
    bool good = mica_chat_tokens(r->context, r->body, messages, r->tools, &r->prompts[0], &thinks, fault);
    r->think_inside = thinks;
    return good && mica_request_check_prompt(r, &r->prompts[0], "input", fault);
}

static bool parse(mica_request *r, mica_fault *fault)
{
    const json_t *text = mica_field(r->body, "text");
    if (!mica_params_read(r, fault) || !refuse_unsupported(r, fault) ||
        !mica_field_int32(r->body, "max_output_tokens", 1, INT32_MAX, &r->options.max_tokens, fault))
        return false;
    if (text && !json_is_object(text))
        return mica_fault_set(fault, 400, "invalid_type", "text", "\"text\" must be an object");
    r->n = 1;
    json_t *messages = mica_responses_messages(r->body, fault);
    bool good = messages && mica_tool_fields_read(r, fault) &&
                (!text || mica_params_format(r, mica_field(text, "format"), "text.format", fault)) &&
                mica_tool_fields_constrain(r, "text.format", fault) && make_prompt(r, messages, fault) &&
                mica_request_make_choices(r, fault);
    json_decref(messages);
    return good;
}

/* ---- Events ---- */

/* Where there is a stream. Releases `e`. */
static void event(mica_choice *c, const char *name, json_t *e)
{
    if (!c->request->stream) {
        json_decref(e);
        return;
    }
    json_object_set_new(e, "type", json_string(name));
    json_object_set_new(e, "sequence_number", json_integer(c->sequence++));
    mica_request_event(c->request, name, e);
}

static json_t *last_item(const mica_choice *c)
{
    return json_array_get(c->output.items, json_array_size(c->output.items) - 1);
}

static int last_index(const mica_choice *c)
{
    return (int)json_array_size(c->output.items) - 1;
}

/* The item itself, when it begins or ends. */
static void item_event(mica_choice *c, const char *name)
{
    event(c, name, json_pack("{s:i, s:O}", "output_index", last_index(c), "item", last_item(c)));
}

/* What happens inside the open item carries where that is. */
static json_t *placed(const mica_choice *c, bool in_part)
{
    json_t *e = json_pack("{s:O, s:i}", "item_id", json_object_get(last_item(c), "id"), "output_index", last_index(c));
    if (in_part)
        json_object_set_new(e, "content_index", json_integer(0));
    return e;
}

/* ---- Items ---- */

/* Takes the item over; it gets an id. */
static void open_item(mica_choice *c, const char *prefix, json_t *item)
{
    mica_output *o = &c->output;
    char id[96];
    if (!o->items)
        o->items = json_array();
    snprintf(id, sizeof id, "%s_%s_%zu", prefix, c->request->id + strlen(c->request->api->id_prefix),
             json_array_size(o->items));
    json_object_set_new(item, "id", json_string(id));
    json_object_set_new(item, "status", json_string("in_progress"));
    json_array_append_new(o->items, item);
    o->open = true;
    item_event(c, "response.output_item.added");
}

static void close_item(mica_choice *c, const char *status)
{
    json_object_set_new(last_item(c), "status", json_string(status));
    c->output.open = false;
    item_event(c, "response.output_item.done");
}

static bool is_call(const mica_choice *c)
{
    return c->output.open && json_object_get(last_item(c), "call_id");
}

static json_t *part_of(const char *text, size_t length)
{
    return json_pack("{s:s, s:s%, s:[], s:[]}", "type", "output_text", "text", text, length, "annotations", "logprobs");
}

static void open_message(mica_choice *c, size_t from)
{
    c->output.from = from;
    open_item(c, "msg", json_pack("{s:s, s:s, s:[]}", "type", "message", "role", "assistant", "content"));
    json_t *e = placed(c, true);
    json_object_set_new(e, "part", part_of("", 0));
    event(c, "response.content_part.added", e);
}

static void close_message(mica_choice *c, const char *status)
{
    size_t from = c->output.from, length = c->content.length - from;
    const char *text = length > 0 ? c->content.data + from : "";
    json_t *e = placed(c, true), *part = part_of(text, length);
    json_object_set_new(e, "text", json_stringn(text, length));
    json_object_set_new(e, "logprobs", json_array());
    event(c, "response.output_text.done", e);
    e = placed(c, true);
    json_object_set(e, "part", part);
    event(c, "response.content_part.done", e);
    json_array_append_new(json_object_get(last_item(c), "content"), part);
    close_item(c, status);
}

static void open_call(mica_choice *c, const char *id, const char *name)
{
    c->output.n_calls = json_array_size(c->calls);
    c->output.arguments.length = 0;
    open_item(c, "fc",
              json_pack("{s:s, s:s, s:s, s:s}", "type", "function_call", "call_id", id, "name", name, "arguments", ""));
}

/* Of a call that is not whole the arguments are as far as they came. */
static void close_call(mica_choice *c)
{
    const mica_buf *arguments = &c->output.arguments;
    const char *text = arguments->length > 0 ? arguments->data : "";
    bool whole = json_array_size(c->calls) > c->output.n_calls;
    json_object_set_new(last_item(c), "arguments", json_stringn(text, arguments->length));
    json_t *e = placed(c, false);
    json_object_set(e, "name", json_object_get(last_item(c), "name"));
    json_object_set(e, "arguments", json_object_get(last_item(c), "arguments"));
    event(c, "response.function_call_arguments.done", e);
    close_item(c, whole ? "completed" : "incomplete");
}

/* ---- What is said ---- */

static void say_text(mica_choice *c, const mica_delta *d)
{
    if (is_call(c)) {
        bool whole = json_array_size(c->calls) > c->output.n_calls;
        close_call(c);
        if (!whole) /* the text is the call once more, as the model wrote it */
            return;
    }
    if (!c->output.open)
        open_message(c, c->content.length - d->length);
    json_t *e = placed(c, true);
    json_object_set_new(e, "delta", json_stringn(d->text, d->length));
    json_object_set_new(e, "logprobs", json_array());
    event(c, "response.output_text.delta", e);
}

static void say_call(mica_choice *c, const mica_delta *d)
{
    if (is_call(c))
        close_call(c);
    else if (c->output.open)
        close_message(c, "completed");
    open_call(c, d->id, d->name);
}

static void say_arguments(mica_choice *c, const mica_delta *d)
{
    mica_buf_append(&c->output.arguments, d->text, d->length);
    json_t *e = placed(c, false);
    json_object_set_new(e, "delta", json_stringn(d->text, d->length));
    event(c, "response.function_call_arguments.delta", e);
}

static void say(mica_choice *c, const mica_delta *d)
{
    switch (d->kind) {
    case MICA_DELTA_TEXT:
        say_text(c, d);
        break;
    case MICA_DELTA_CALL:
        say_call(c, d);
        break;
    case MICA_DELTA_ARGUMENTS:
        say_arguments(c, d);
        break;
    case MICA_DELTA_REASONING: /* is no part of the output */
        break;
    }
}

/* A reply that ends with whole calls is whole, whatever it was that ended it. */
static bool is_cut(const mica_choice *c)
{
    const char *status = json_string_value(json_object_get(last_item(c), "status"));
    return strcmp(c->finish, "length") == 0 || (status && strcmp(status, "incomplete") == 0);
}

static void end(mica_choice *c)
{
    if (!c->output.items) /* a reply without text has a message all the same */
        open_message(c, c->content.length);
    if (is_call(c))
        close_call(c);
    else if (c->output.open)
        close_message(c, is_cut(c) ? "incomplete" : "completed");
}

/* ---- The response object ---- */

/* A field of the request as it came, or what it is without. Takes `absent` over. */
static void repeat(json_t *o, const mica_request *r, const char *name, json_t *absent)
{
    json_t *given = mica_field(r->body, name);
    json_object_set(o, name, given ? given : absent);
    json_decref(absent);
}

static json_t *response_of(const mica_request *r)
{
    const mica_choice *c = &r->choices[0];
    const mica_sampling *s = &r->options.sampling;
    const char *status = !c->ended ? "in_progress" : is_cut(c) ? "incomplete" : "completed";
    json_t *o = json_pack("{s:s, s:s, s:I, s:s, s:s, s:n, s:f, s:f, s:b, s:n}", "id", r->id, "object", "response", "created_at",
                          (json_int_t)r->created, "status", status, "model", r->context->name, "error", "temperature",
                          (double)s->temperature, "top_p", (double)s->top_p, "store", 0, "previous_response_id");
    repeat(o, r, "instructions", json_null());
    repeat(o, r, "max_output_tokens", json_null());
    repeat(o, r, "metadata", json_object());
    repeat(o, r, "parallel_tool_calls", json_true());
    repeat(o, r, "tools", json_array());
    repeat(o, r, "tool_choice", json_string("auto"));
    repeat(o, r, "text", json_pack("{s:{s:s}}", "format", "type", "text"));
    json_object_set_new(o, "output", c->ended ? json_incref(c->output.items) : json_array());
    json_object_set_new(o, "incomplete_details",
                        c->ended && is_cut(c) ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null());
    json_object_set_new(o, "usage", c->ended ? mica_request_usage(r, "input_tokens", "output_tokens") : json_null());
    if (c->ended)
        json_object_set_new(o, "mica", mica_request_timings(r));
    return o;
}

/* ---- Beginning and end ---- */

static void open_stream(mica_request *r)
{
    mica_choice *c = &r->choices[0];
    event(c, "response.created", json_pack("{s:o}", "response", response_of(r)));
    event(c, "response.in_progress", json_pack("{s:o}", "response", response_of(r)));
}

static void close_stream(mica_request *r)
{
    mica_choice *c = &r->choices[0];
    event(c, is_cut(c) ? "response.incomplete" : "response.completed", json_pack("{s:o}", "response", response_of(r)));
}

static json_t *whole(mica_request *r)
{
    return response_of(r);
}

const mica_api mica_api_responses = {"resp_", true, parse, open_stream, say, end, close_stream, whole};
