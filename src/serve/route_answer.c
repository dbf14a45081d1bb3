/* route_answer.c - a routed request in OpenAI's form: the runner's text as chunks or as a whole, with what was decided. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "serve/receipts.h"
#include "serve/route_mode.h"

typedef struct answer {
    mica_route_mode *mode;
    mica_server *server;
    mica_job *job;
    bool stream, include_usage, began;
    char id[48], model[160], rung[MICA_ROUTE_NAME_MAX];
    int64_t created;
} answer;

/* ---- Pieces ---- */

static void send_event(answer *a, json_t *event)
{
    char *text = event ? mica_json_dumps(event, MICA_JSON_FLAGS) : NULL;
    if (text) {
        mica_job_send(a->job, "data: ", 6);
        mica_job_send(a->job, text, strlen(text));
        mica_job_send(a->job, "\n\n", 2);
    }
    free(text);
    json_decref(event);
}

static json_t *chunk(const answer *a, json_t *choices)
{
    json_t *o = json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", a->id, "object", "chat.completion.chunk", "created",
                          (json_int_t)a->created, "model", a->model, "system_fingerprint", "mica", "choices", choices);
    if (o && a->include_usage)
        json_object_set_new(o, "usage", json_null());
    return o;
}

static void send_delta(answer *a, json_t *delta, const char *finish)
{
    if (!a->began && delta)
        json_object_set_new(delta, "role", json_string("assistant"));
    a->began = true;
    send_event(a, chunk(a, json_pack("[{s:i, s:o, s:n, s:o}]", "index", 0, "delta", delta ? delta : json_object(), "logprobs",
                                     "finish_reason", finish ? json_string(finish) : json_null())));
}

/* ---- What the runner says ---- */

static void on_rung(void *user, const char *rung, const char *model)
{
    answer *a = user;
    snprintf(a->rung, sizeof a->rung, "%s", rung);
    snprintf(a->model, sizeof a->model, "%s", model);
    a->job->headers = mica_route_mode_header(a->mode, rung);
    if (a->stream)
        mica_job_stream(a->job);
}

static int on_text(void *user, const char *text, size_t length)
{
    answer *a = user;
    if (a->stream)
        send_delta(a, json_pack("{s:s%}", "content", text, length), NULL);
    return 0;
}

static bool is_cancelled(void *user)
{
    const answer *a = user;
    return atomic_load(&a->job->gone) || mica_route_mode_stops(a->mode) || mica_now_ns() >= a->job->deadline_ns;
}

/* ---- The end ---- */

static json_t *usage(const mica_run_reply *r)
{
    const mica_route_outcome *o = &r->outcome;
    int64_t in = o->prompt_tokens > 0 ? o->prompt_tokens : 0, out = o->output_tokens > 0 ? o->output_tokens : 0;
    return json_pack("{s:I, s:I, s:I}", "prompt_tokens", (json_int_t)in, "completion_tokens", (json_int_t)out, "total_tokens",
                     (json_int_t)(in + out));
}

static json_t *x_mica(const mica_run_reply *r)
{
    const mica_route_outcome *o = &r->outcome;
    json_t *attempts = json_array();
    for (int32_t i = 0; i < o->n_attempts; i++)
        json_array_append_new(attempts,
                              json_pack("{s:s, s:s, s:f, s:f}", "rung", o->attempts[i].rung, "result", o->attempts[i].result,
                                        "start_ms", o->attempts[i].start_ms, "end_ms", o->attempts[i].end_ms));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:o}", "rung", o->rung, "decision", r->decision.id, "policy",
                     r->decision.policy_hash, "class", mica_route_class_name(r->decision.route_class), "rule", r->decision.rule,
                     "degraded", r->decision.degraded, "attempts", attempts);
}

static json_t *calls_of(const mica_run_reply *r)
{
    json_t *calls = r->tool_calls ? mica_json_loads(r->tool_calls, 0, NULL) : NULL;
    for (size_t i = 0; i < json_array_size(calls); i++)
        json_object_set_new(json_array_get(calls, i), "index", json_integer((json_int_t)i));
    return calls;
}

static void end_stream(answer *a, const mica_run_reply *r)
{
    json_t *calls = calls_of(r);
    if (calls)
        send_delta(a, json_pack("{s:o}", "tool_calls", calls), NULL);
    else if (!a->began)
        send_delta(a, json_pack("{s:s}", "content", ""), NULL);
    json_t *last = chunk(a, json_pack("[{s:i, s:{}, s:n, s:s}]", "index", 0, "delta", "logprobs", "finish_reason", r->finish));
    json_object_set_new(last, "x_mica", x_mica(r));
    send_event(a, last);
    if (a->include_usage) {
        last = chunk(a, json_array());
        json_object_set_new(last, "usage", usage(r));
        send_event(a, last);
    }
    mica_job_send(a->job, "data: [DONE]\n\n", 14);
    mica_job_end(a->job);
}

static void reply_json(answer *a, int status, json_t *o)
{
    char *text = o ? mica_json_dumps(o, MICA_JSON_FLAGS) : NULL;
    mica_job_reply(a->job, status, "application/json", text, text ? strlen(text) : 0);
    free(text);
    json_decref(o);
}

static void end_whole(answer *a, const mica_run_reply *r)
{
    json_t *message =
        json_pack("{s:s, s:o, s:n}", "role", "assistant", "content",
                  r->length == 0 && r->tool_calls ? json_null() : json_stringn(r->text ? r->text : "", r->length), "refusal");
    if (r->tool_calls)
        json_object_set_new(message, "tool_calls", mica_json_loads(r->tool_calls, 0, NULL));
    reply_json(a, 200,
               json_pack("{s:s, s:s, s:I, s:s, s:s, s:[{s:i, s:o, s:n, s:s}], s:o, s:o}", "id", a->id, "object",
                         "chat.completion", "created", (json_int_t)a->created, "model", a->model, "system_fingerprint", "mica",
                         "choices", "index", 0, "message", message, "logprobs", "finish_reason", r->finish, "usage", usage(r),
                         "x_mica", x_mica(r)));
}

static const char *last_result(const mica_run_reply *r)
{
    const mica_route_outcome *o = &r->outcome;
    return o->n_attempts > 0 ? o->attempts[o->n_attempts - 1].result : "";
}

/* The last rung's own status, where it has one that a client can make something of. */
static int status_of(const mica_run_reply *r)
{
    const char *last = last_result(r);
    int status = 0;
    if (strcmp(last, "timeout") == 0)
        return 504;
    if (strcmp(last, "no_memory") == 0 || strcmp(last, "breaker_open") == 0 || strcmp(last, "hot") == 0)
        return 503;
    if (strcmp(last, "context_full") == 0)
        return 400;
    bool known = sscanf(last, "http_%d", &status) == 1 && (status == 400 || status == 413 || status == 429 || status == 503);
    return known ? status : 502;
}

static void end_failed(answer *a, const mica_run_reply *r, mica_status status, const mica_error *err)
{
    mica_fault fault;
    if (status == MICA_CANCELLED && mica_route_mode_stops(a->mode))
        mica_fault_set(&fault, 503, "shutting_down", NULL, "the server is shutting down");
    else if (status == MICA_CANCELLED)
        mica_fault_set(&fault, 504, "timeout", NULL, "the request reached the server's time limit");
    else if (!r->record)
        mica_fault_engine(&fault, err, NULL);
    else if (status == MICA_UNSUPPORTED)
        mica_fault_set(&fault, 503, "no_rung", NULL, "%s", err->message);
    else if (status == MICA_OVER_BUDGET)
        mica_fault_set(&fault, 503, "queue_full", NULL, "%s", err->message);
    else
        mica_fault_set(&fault, status_of(r), strcmp(last_result(r), "hot") == 0 ? "device_too_hot" : "rungs_failed", NULL, "%s",
                       err->message);
    mica_job_fail(a->job, &fault);
}

static void end(answer *a, const mica_run_reply *r, mica_status status, const mica_error *err)
{
    if (status)
        end_failed(a, r, status, err);
    else if (r->held)
        reply_json(a, 202,
                   json_pack("{s:s, s:s, s:I, s:[], s:o}", "id", a->id, "object", "mica.held", "held", (json_int_t)r->held,
                             "choices", "x_mica", x_mica(r)));
    else if (a->stream)
        end_stream(a, r);
    else
        end_whole(a, r);
}

static void read_form(answer *a)
{
    json_t *body = mica_json_loadb(a->job->body, a->job->length, 0, NULL);
    a->stream = json_is_true(json_object_get(body, "stream"));
    a->include_usage = a->stream && json_is_true(json_object_get(json_object_get(body, "stream_options"), "include_usage"));
    json_decref(body);
}

void mica_route_mode_answer(mica_route_mode *m, mica_server *s, mica_job *job)
{
    answer a = {.mode = m, .server = s, .job = job, .created = (int64_t)time(NULL)};
    uint64_t random[2] = {0, 0};
    mica_run_request request = mica_run_request_default();
    mica_run_reply reply;
    mica_error err = {.message = ""};
    if (mica_receipts_refuse(job))
        return;
    if (getrandom(random, sizeof random, 0) < 0)
        random[0] = (uint64_t)mica_now_ns(); /* it only names the answer */
    snprintf(a.id, sizeof a.id, "chatcmpl-%016llx%016llx", (unsigned long long)random[0], (unsigned long long)random[1]);
    read_form(&a);
    request.body = job->body;
    request.length = job->length;
    request.idempotency_key = *job->idempotency_key ? job->idempotency_key : NULL;
    request.network = s->options.network;
    request.metered = s->options.metered;
    request.on_rung = on_rung;
    request.on_text = on_text;
    request.is_cancelled = is_cancelled;
    request.user = &a;
    mica_status status = mica_runner_ask(s->options.runner, &request, &reply, &err);
    end(&a, &reply, status, &err);
    if (reply.held)
        mica_route_mode_held(m);
    else if (!status && reply.may_have_arrived)
        mica_route_mode_reached(m);
    mica_run_reply_free(&reply);
}
