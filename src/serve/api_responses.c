/* api_responses.c - /v1/responses: OpenAI's newer form, for texts: input in, one message out. Nothing is stored between
 * requests. */
#include <stdlib.h>
#include <string.h>

#include "serve/fields.h"
#include "serve/chat_prompt.h"

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
    const json_t *tools = mica_field(r->body, "tools");
    if (tools && (!json_is_array(tools) || json_array_size(tools) > 0))
        return mica_fault_bad(fault, "tools", "\"tools\" are not supported in this route: use /v1/chat/completions");
    return true;
}

/* "instructions" and "input" as "messages". */
static json_t *conversation(const mica_request *r, mica_fault *fault)
{
    json_t *messages = json_array(), *input = mica_field(r->body, "input"), *body, *checked;
    const char *instructions = NULL;
    if (!mica_field_text(r->body, "instructions", &instructions, fault))
        goto failed;
    if (instructions)
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", instructions));
    if (json_is_string(input)) {
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content", input));
    } else if (json_is_array(input)) {
        json_array_extend(messages, input);
    } else {
        mica_fault_set(fault, 400, input ? "invalid_type" : "missing_required_parameter", "input",
                       "\"input\" must be a string or a list of messages");
        goto failed;
    }
    body = json_pack("{s:o}", "messages", messages);
    checked = mica_chat_messages(body, fault);
    json_decref(body);
    return checked;
failed:
    json_decref(messages);
    return NULL;
}

static bool parse(mica_request *r, mica_fault *fault)
{
    const json_t *text = mica_field(r->body, "text");
    bool thinks = false;
    if (!mica_params_read(r, fault) || !refuse_unsupported(r, fault) ||
        !mica_field_int32(r->body, "max_output_tokens", 1, INT32_MAX, &r->options.max_tokens, fault))
        return false;
    if (text && !json_is_object(text))
        return mica_fault_set(fault, 400, "invalid_type", "text", "\"text\" must be an object");
    r->n = 1;
    json_t *messages = conversation(r, fault);
    r->prompts = messages ? calloc(1, sizeof *r->prompts) : NULL;
    r->n_prompts = r->prompts != NULL;
    bool good = messages &&
                (r->prompts || mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request"));
    good = good && (!text || mica_params_format(r, mica_field(text, "format"), "text.format", fault)) &&
           mica_chat_tokens(r->context, r->body, messages, NULL, &r->prompts[0], &thinks, fault) &&
           mica_request_check_prompt(r, &r->prompts[0], "input", fault) && mica_request_make_choices(r, fault);
    r->think_inside = thinks;
    json_decref(messages);
    return good;
}

/* ---- The response object ---- */

static json_t *part_of(const mica_choice *c)
{
    return json_pack("{s:s, s:s%, s:[]}", "type", "output_text", "text", c->content.length ? c->content.data : "",
                     c->content.length, "annotations");
}

static json_t *item_of(const mica_choice *c, const char *status)
{
    char id[80] = "msg_";
    strncat(id, c->request->id + strlen(c->request->api->id_prefix), sizeof id - 5);
    json_t *content = c->ended ? json_pack("[o]", part_of(c)) : json_array();
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", id, "type", "message", "status", status, "role", "assistant", "content",
                     content);
}

static bool is_cut(const mica_choice *c)
{
    return c->finish && strcmp(c->finish, "length") == 0;
}

static json_t *response_of(const mica_request *r)
{
    const mica_choice *c = &r->choices[0];
    const mica_sampling *s = &r->options.sampling;
    const char *status = !c->ended ? "in_progress" : is_cut(c) ? "incomplete" : "completed";
    json_t *o = json_pack("{s:s, s:s, s:I, s:s, s:s, s:n, s:o, s:O?, s:{}, s:b, s:s, s:[], s:f, s:f}", "id", r->id, "object",
                          "response", "created_at", (json_int_t)r->created, "status", status, "model", r->context->name,
                          "error", "output", c->ended ? json_pack("[o]", item_of(c, status)) : json_array(), "instructions",
                          mica_field(r->body, "instructions"), "metadata", "parallel_tool_calls", 0, "tool_choice", "auto",
                          "tools", "temperature", (double)s->temperature, "top_p", (double)s->top_p);
    json_object_set_new(o, "incomplete_details",
                        c->ended && is_cut(c) ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null());
    json_object_set_new(o, "usage", c->ended ? mica_request_usage(r, "input_tokens", "output_tokens") : json_null());
    if (c->ended)
        json_object_set_new(o, "mica", mica_request_timings(r));
    return o;
}

/* ---- Stream ---- */

static void event(mica_choice *c, const char *name, json_t *e)
{
    json_object_set_new(e, "type", json_string(name));
    json_object_set_new(e, "sequence_number", json_integer(c->sequence++));
    mica_request_event(c->request, name, e);
}

/* Events of the one part of the one item carry where it is. */
static json_t *placed(const mica_choice *c)
{
    json_t *item = item_of(c, "in_progress");
    json_t *e = json_pack("{s:O, s:i, s:i}", "item_id", json_object_get(item, "id"), "output_index", 0, "content_index", 0);
    json_decref(item);
    return e;
}

static void open_stream(mica_request *r)
{
    mica_choice *c = &r->choices[0];
    event(c, "response.created", json_pack("{s:o}", "response", response_of(r)));
    event(c, "response.in_progress", json_pack("{s:o}", "response", response_of(r)));
    event(c, "response.output_item.added", json_pack("{s:i, s:o}", "output_index", 0, "item", item_of(c, "in_progress")));
    json_t *e = placed(c);
    json_object_set_new(e, "part", json_pack("{s:s, s:s, s:[]}", "type", "output_text", "text", "", "annotations"));
    event(c, "response.content_part.added", e);
}

static void say(mica_choice *c, const mica_delta *d)
{
    if (d->kind != MICA_DELTA_TEXT)
        return; /* reasoning is no part of a message */
    json_t *e = placed(c);
    json_object_set_new(e, "delta", json_stringn(d->text, d->length));
    json_object_set_new(e, "logprobs", json_array());
    event(c, "response.output_text.delta", e);
}

static void end(mica_choice *c)
{
    json_t *e = placed(c);
    json_object_set_new(e, "text", json_stringn(c->content.length ? c->content.data : "", c->content.length));
    json_object_set_new(e, "logprobs", json_array());
    event(c, "response.output_text.done", e);
    e = placed(c);
    json_object_set_new(e, "part", part_of(c));
    event(c, "response.content_part.done", e);
    event(c, "response.output_item.done",
          json_pack("{s:i, s:o}", "output_index", 0, "item", item_of(c, is_cut(c) ? "incomplete" : "completed")));
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

const mica_api mica_api_responses = {"resp_", parse, open_stream, say, end, close_stream, whole};
