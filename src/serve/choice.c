/* choice.c - a reply as the engine makes it: its text into reasoning, calls and content, its tokens into log-probabilities, its
 * end into a reason. Runs on the scheduler's thread, in the engine's callbacks. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "serve/receipts.h"
#include "session/engine.h"

json_t *mica_json_lossy(const char *data, size_t length)
{
    mica_detok d = {.n_pending = 0};
    mica_buf out;
    char piece[MICA_DETOK_ROOM(256)];
    mica_buf_init(&out, MICA_SERVE_REPLY_MAX);
    for (size_t i = 0; i < length; i += 256) {
        size_t n = length - i < 256 ? length - i : 256;
        mica_buf_append(&out, piece, mica_detok_push(&d, data + i, n, piece));
    }
    mica_buf_append(&out, piece, mica_detok_finish(&d, piece));
    json_t *text = out.failed ? NULL : json_stringn(out.data ? out.data : "", out.length);
    mica_buf_free(&out);
    return text;
}

/* ---- Log-probabilities ---- */

static json_t *token_json(const mica_model *model, int32_t token, float logprob)
{
    char bytes[512];
    size_t n = mica_vocab_bytes(model->vocab, token, true, bytes, sizeof bytes);
    json_t *list = json_array();
    n = n <= sizeof bytes ? n : 0;
    for (size_t i = 0; i < n; i++)
        mica_json_add(&list, json_integer((unsigned char)bytes[i]));
    return json_pack("{s:o, s:f, s:o}", "token", mica_json_lossy(bytes, n), "logprob",
                     logprob > -9999.0f ? (double)logprob : -9999.0, "bytes", list);
}

static void note_logprobs(mica_choice *c, const mica_token_event *e)
{
    const mica_request *r = c->request;
    json_t *entry = token_json(r->context->model, e->token, e->logprob), *top = json_array();
    for (int32_t i = 0; i < e->n_top && i < r->n_top; i++)
        mica_json_add(&top, token_json(r->context->model, e->top_tokens[i], e->top_logprobs[i]));
    json_object_set_new(entry, "top_logprobs", top);
    json_array_append_new(c->logprobs, entry);
}

/* While the reply is being made, not at its end: who watches the counters sees the speed of now. */
static void count_token(mica_choice *c)
{
    const mica_request *r = c->request;
    mica_metrics *m = r->context->metrics;
    if (!m || !r->job)
        return;
    if (c->n_counted++ == 0 && c->first_ns)
        mica_histogram_add(&m->ttft, (double)(c->first_ns - r->job->arrived_ns) / 1e9);
    atomic_fetch_add(&m->generated_tokens, 1);
}

static int on_token(void *user, const mica_token_event *e)
{
    mica_choice *c = user;
    const mica_request *r = c->request;
    if (e->index == 0)
        c->first_ns = e->time_ns;
    c->reasoning_n += r->think && (c->think.state == MICA_THINK_OPENED || c->think.state == MICA_THINK_INSIDE);
    count_token(c);
    bool ends = !r->options.ignore_eos && mica_vocab_ends_generation(r->context->model->vocab, e->token);
    if (c->logprobs && (!ends || r->echo)) /* no part of the reply, but of the tokens that prompt and reply have together */
        note_logprobs(c, e);
    return mica_request_is_dropped(r);
}

/* ---- Text ---- */

static void say(mica_choice *c, const mica_delta *delta)
{
    mica_request *r = c->request;
    if ((r->stream || r->api->follows) && !mica_request_is_dropped(r))
        r->api->say(c, delta);
    c->began = true;
}

static void take_text(mica_choice *c, bool reasoning, const char *text, size_t length)
{
    if (length == 0)
        return;
    mica_buf_append(reasoning ? &c->reasoning : &c->content, text, length);
    say(c, &(mica_delta){.kind = reasoning ? MICA_DELTA_REASONING : MICA_DELTA_TEXT, .text = text, .length = length});
}

static int on_call(void *user, const mica_tool_event *e)
{
    mica_choice *c = user;
    mica_delta delta = {.text = e->text, .length = e->length, .call = e->index, .id = e->id, .name = e->name};
    switch (e->kind) {
    case MICA_TOOL_TEXT:
    case MICA_TOOL_ERROR: /* a malformed call is text, as the model wrote it */
        take_text(c, false, e->text, e->length);
        break;
    case MICA_TOOL_CALL_BEGIN:
        delta.kind = MICA_DELTA_CALL;
        say(c, &delta);
        break;
    case MICA_TOOL_ARGUMENTS:
        delta.kind = MICA_DELTA_ARGUMENTS;
        say(c, &delta);
        break;
    case MICA_TOOL_CALL_END:
        json_array_append_new(c->calls, json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", e->id, "type", "function", "function",
                                                  "name", e->name, "arguments", json_stringn(e->text, e->length)));
        break;
    }
    return mica_request_is_dropped(c->request);
}

/* Behind the reasoning. */
static void on_part(void *user, bool reasoning, const char *text, size_t length)
{
    mica_choice *c = user;
    if (c->parser && !reasoning)
        (void)mica_tool_parser_feed(c->parser, text, length, NULL); /* refused only once the request is dropped */
    else
        take_text(c, reasoning, text, length);
}

static int on_text(void *user, const char *text, size_t length)
{
    mica_choice *c = user;
    if (c->request->think)
        mica_think_feed(&c->think, text, length);
    else
        on_part(c, false, text, length);
    return mica_request_is_dropped(c->request);
}

/* ---- Beginning and end ---- */

bool mica_choice_start(mica_choice *c, mica_generate_options *options, mica_fault *fault)
{
    mica_request *r = c->request;
    mica_error err;
    *options = r->options;
    if (options->sampling.seed >= 0) /* choices of one seed differ, and again come out the same */
        options->sampling.seed = (int64_t)(((uint64_t)options->sampling.seed + (uint64_t)c->index) & INT64_MAX);
    options->on_token = on_token;
    options->on_text = on_text;
    options->user = c;
    mica_think_start(&c->think, r->think_inside, on_part, c);
    c->started_ns = mica_now_ns();
    if (r->tools && mica_tools_constraint(r->tools) &&
        mica_tool_parser_new(r->tools, options->sampling.seed, on_call, c, &c->parser, &err))
        return mica_fault_engine(fault, &err, "tools");
    return true;
}

static void tell_rest(mica_choice *c)
{
    if (c->request->think)
        mica_think_finish(&c->think);
    if (c->parser)
        (void)mica_tool_parser_finish(c->parser, NULL);
}

static void measure(const mica_choice *c)
{
    const mica_request *r = c->request;
    mica_metrics *m = r->context->metrics;
    if (!m || !r->job)
        return;
    atomic_fetch_add(&m->prompt_tokens, c->prompt->n);
    atomic_fetch_add(&m->cached_tokens, (uint64_t)c->result.cached_n);
    if (c->result.gen_n > c->n_counted) /* without an event of its own */
        atomic_fetch_add(&m->generated_tokens, (uint64_t)(c->result.gen_n - c->n_counted));
    if (c->result.gen_n > 1)
        mica_histogram_add(&m->tpot, c->result.tpot_ms / 1e3);
}

static void close_request(mica_request *r)
{
    if (r->stream) {
        r->api->close(r);
        if (r->job && !r->failed)
            mica_job_end(r->job);
        return;
    }
    json_t *whole = r->api->whole(r);
    char *text = whole ? mica_json_dumps(whole, MICA_JSON_FLAGS) : NULL;
    if (r->job)
        mica_job_reply(r->job, 200, "application/json", text, text ? strlen(text) : 0);
    free(text);
    json_decref(whole);
}

void mica_choice_finish(mica_choice *c, mica_status status, const mica_result *result, const mica_error *error)
{
    mica_request *r = c->request;
    c->result = *result;
    c->ended = true;
    r->n_ended++;
    measure(c);
    bool dropped = mica_request_is_dropped(r);
    if (!status && !dropped)
        tell_rest(c);
    mica_receipts_tell(c, status);
    if (dropped)
        return;
    if (c->content.failed || c->reasoning.failed || c->output.arguments.failed) {
        status = MICA_OUT_OF_MEMORY;
        error = NULL;
    }
    if (status) {
        mica_error none = {.code = status, .position = -1, .message = "the reply is too long for the server's memory"};
        mica_fault_engine(&r->fault, error ? error : &none, NULL);
        mica_request_fail(r, &r->fault);
        return;
    }
    bool cut = strcmp(result->stop_reason, "length") == 0 || strcmp(result->stop_reason, "context") == 0;
    c->finish = json_array_size(c->calls) > 0 ? "tool_calls" : cut ? "length" : "stop";
    if (r->stream || r->api->follows)
        r->api->end(c);
    if (r->n_ended == r->n_choices && !mica_request_is_dropped(r))
        close_request(r);
}
