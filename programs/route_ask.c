/* route_ask.c - mica route ask: one request through the rungs of a policy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account.h"
#include "base/json.h"
#include "interrupt.h"
#include "load.h"
#include "mica/mica_device.h"
#include "route.h"

/* ---- The request ---- */

static void add_message(json_t *messages, const char *role, const char *text, size_t length)
{
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", role, "content", mica_json_text(text, length)));
}

/* Only what was said: a server has its own defaults. */
static void add_sampling(const mica_opts *o, json_t *body)
{
    mica_opts none;
    mica_opts_init(&none);
    if (o->n_predict >= 0)
        json_object_set_new(body, "max_tokens", json_integer(o->n_predict));
    if (fabs(o->temperature - none.temperature) > 0)
        json_object_set_new(body, "temperature", json_real(o->temperature));
    if (o->seed >= 0)
        json_object_set_new(body, "seed", json_integer(o->seed));
    mica_opts_free(&none);
}

static int body_from_text(const mica_opts *o, json_t **body)
{
    char *text;
    size_t length;
    int code = mica_load_text(o, &text, &length);
    if (code != CODE_OK)
        return code;
    if (!o->prompt && length > 0 && text[length - 1] == '\n')
        length--; /* the end of the last line is not meant */
    json_t *messages = json_array();
    if (o->system)
        add_message(messages, "system", o->system, strlen(o->system));
    add_message(messages, "user", text, length);
    *body = json_pack("{s:o}", "messages", messages);
    add_sampling(o, *body);
    free(text);
    return CODE_OK;
}

static int body_from_file(const mica_opts *o, json_t **body)
{
    char *text;
    size_t length;
    json_error_t why;
    int code = mica_load_file(o->request, &text, &length);
    if (code != CODE_OK)
        return code;
    *body = mica_json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    free(text);
    if (json_is_object(*body))
        return CODE_OK;
    return mica_term_error("%s is no JSON object: %s", o->request, *body ? "" : why.text);
}

/* What the options say goes into "route", beside what is there. */
static int add_route(const mica_opts *o, json_t *body)
{
    json_t *route = json_object_get(body, "route");
    if (!route) {
        route = json_object();
        json_object_set_new(body, "route", route);
    }
    if (!json_is_object(route))
        return mica_term_error("\"route\" of the request must be an object");
    if (o->private_request)
        json_object_set_new(route, "private", json_true());
    if (o->task_name)
        json_object_set_new(route, "task", json_string(o->task_name));
    if (o->rung)
        json_object_set_new(route, "rung", json_string(o->rung));
    if (o->deadline_ms >= 0)
        json_object_set_new(route, "deadline_ms", json_integer(o->deadline_ms));
    return CODE_OK;
}

static int make_body(const mica_opts *o, char **text)
{
    json_t *body = NULL;
    if (o->request && (o->prompt || o->file || o->system))
        return mica_term_usage("--request is the whole request: it goes with no --prompt, --file or --system");
    int code = o->request ? body_from_file(o, &body) : body_from_text(o, &body);
    if (code == CODE_OK)
        code = add_route(o, body);
    *text = code == CODE_OK ? mica_json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return code == CODE_OK && !*text ? mica_term_error("not enough memory for the request") : code;
}

/* ---- The reply ---- */

static int on_text(void *user, const char *text, size_t length)
{
    (void)user;
    return !mica_term_write(text, length);
}

static bool is_cancelled(void *user)
{
    (void)user;
    return mica_interrupt_count() > 0;
}

static json_t *attempts_json(const mica_route_outcome *o)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < o->n_attempts; i++) {
        const mica_route_attempt *a = &o->attempts[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:o, s:o, s:o, s:b}", "rung", a->rung, "result", a->result, "error",
                                        mica_json_text(a->error, strlen(a->error)), "start_ms", mica_json_real(a->start_ms),
                                        "end_ms", mica_json_real(a->end_ms), "hedge", a->hedge));
    }
    return list;
}

static json_t *reply_json(const mica_run_reply *r, mica_status status, const mica_error *err)
{
    const mica_route_outcome *o = &r->outcome;
    json_t *out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:o, s:o, s:o}", "decision", r->decision.id, "action",
                            mica_route_action_name(r->decision.action), "rung", o->rung, "model", r->model, "finish", r->finish,
                            "text", mica_json_text(r->text ? r->text : "", r->length), "held", (json_int_t)r->held,
                            "output_tokens", (json_int_t)o->output_tokens, "ttft_ms", mica_json_real(o->ttft_ms), "total_ms",
                            mica_json_real(o->total_ms), "attempts", attempts_json(o));
    if (out && r->tool_calls)
        json_object_set_new(out, "tool_calls", mica_json_loads(r->tool_calls, 0, NULL));
    if (out && status)
        json_object_set_new(out, "error", mica_json_text(err->message, strlen(err->message)));
    return out;
}

/* "mica: answered by small (SmolLM2), 12 tokens, first after 80 ms; before: big no_memory" */
static void print_outcome(const mica_run_reply *r, const char *queue)
{
    const mica_route_outcome *o = &r->outcome;
    char tried[400] = "", tokens[40] = "";
    size_t at = 0;
    for (int32_t i = 0; i < o->n_attempts && at < sizeof tried; i++)
        if (strcmp(o->attempts[i].result, "ok") != 0 && strcmp(o->attempts[i].result, "held") != 0)
            at += (size_t)snprintf(tried + at, sizeof tried - at, "%s%s %s", at ? ", " : "; before: ", o->attempts[i].rung,
                                   o->attempts[i].result);
    if (o->output_tokens >= 0)
        snprintf(tokens, sizeof tokens, ", %lld tokens", (long long)o->output_tokens);
    if (r->held)
        mica_term_note("there is no network: the request waits as number %lld in %s%s", (long long)r->held, queue, tried);
    else
        mica_term_note("answered by %s (%s)%s, first text after %.0f ms%s", o->rung, r->model, tokens, o->ttft_ms, tried);
}

static int finish(const mica_opts *o, const mica_routing *routing, const mica_run_reply *r, mica_status status,
                  const mica_error *err)
{
    int code = routing->log_failed ? CODE_FAILED : CODE_OK;
    if (o->json)
        mica_json_line(reply_json(r, status, err));
    else if (r->length > 0 && isatty(STDOUT_FILENO))
        mica_term_write("\n", 1);
    if (r->tool_calls && !o->json) {
        mica_term_write(r->tool_calls, strlen(r->tool_calls));
        mica_term_write("\n", 1);
    }
    if (status)
        code = mica_load_failed(err);
    else if (!o->json)
        print_outcome(r, routing->queue);
    return code;
}

int mica_route_ask(const mica_opts *o)
{
    mica_routing routing = {.telemetry = NULL};
    mica_run_request request = mica_run_request_default();
    mica_run_reply reply;
    mica_error err;
    char *body = NULL;
    int code = make_body(o, &body);
    if (code == CODE_OK)
        code = mica_account_open_telemetry(o, &routing.telemetry);
    if (code == CODE_OK) {
        code = mica_routing_open(o, NULL, &routing);
        request.body = body;
        request.length = strlen(body);
        request.network = mica_routing_network(o);
        request.metered = o->metered ? MICA_YES : MICA_UNKNOWN;
        request.idempotency_key = o->idempotency_key;
        request.on_text = o->json ? NULL : on_text;
        request.is_cancelled = is_cancelled;
        if (code == CODE_OK) {
            mica_interrupt_catch();
            mica_status status = mica_runner_ask(routing.runner, &request, &reply, &err);
            code = finish(o, &routing, &reply, status, &err);
            mica_run_reply_free(&reply);
        }
        mica_routing_close(&routing);
    }
    mica_account_close_telemetry(routing.telemetry);
    free(body);
    return code;
}
