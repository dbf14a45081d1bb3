#include "router/run_engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

#define STOPS_MAX 32

/* ---- Fields ---- */

typedef struct number_field {
    const char *name;
    bool whole;
    size_t offset; /* in mica_sampling */
    double low, high;
} number_field;

#define REAL(name, low, high)                                                                                                  \
    {                                                                                                                          \
#name, false, offsetof(mica_sampling, name), low, high                                                                 \
    }
#define WHOLE(name, low, high)                                                                                                 \
    {                                                                                                                          \
#name, true, offsetof(mica_sampling, name), low, high                                                                  \
    }

/* As the server takes them. */
static const number_field numbers[] = {
    REAL(temperature, 0, 2),         REAL(top_p, 0, 1),
    WHOLE(top_k, 0, INT32_MAX),      REAL(min_p, 0, 1),
    REAL(frequency_penalty, -2, 2),  REAL(presence_penalty, -2, 2),
    REAL(repeat_penalty, 1e-6, 100),
};

static bool read_number(const json_t *request, const number_field *f, mica_sampling *s, mica_try *t)
{
    const json_t *value = json_object_get(request, f->name);
    double number = json_number_value(value);
    char *at = (char *)s + f->offset;
    if (!value || json_is_null(value))
        return true;
    if (!(f->whole ? json_is_integer(value) : json_is_number(value)) || !(number >= f->low && number <= f->high))
        return mica_try_fail(t, MICA_FAILURE_ENGINE, "\"%s\" must be a number from %g to %g", f->name, f->low, f->high);
    if (f->whole)
        *(int32_t *)(void *)at = (int32_t)number;
    else
        *(float *)(void *)at = (float)number;
    return true;
}

static bool read_stop(const json_t *request, const char *stop[STOPS_MAX], size_t *n, mica_try *t)
{
    const json_t *given = json_object_get(request, "stop");
    size_t count = json_is_array(given) ? json_array_size(given) : json_is_string(given);
    for (*n = 0; *n < count && *n < STOPS_MAX; ++*n) {
        stop[*n] = json_string_value(json_is_array(given) ? json_array_get(given, *n) : given);
        if (!stop[*n] || !*stop[*n])
            return mica_try_fail(t, MICA_FAILURE_ENGINE, "\"stop\" must be a text or a list of texts, none of them empty");
    }
    return count <= STOPS_MAX || mica_try_fail(t, MICA_FAILURE_ENGINE, "there are more than %d stop strings", STOPS_MAX);
}

static bool read_options(const mica_local_call *call, mica_generate_options *o, const char *stop[STOPS_MAX], mica_try *t)
{
    const json_t *request = call->body->request, *seed = json_object_get(request, "seed");
    *o = mica_generate_options_default();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!read_number(request, &numbers[i], &o->sampling, t))
            return false;
    if (json_is_integer(seed) && json_integer_value(seed) != -1)
        o->sampling.seed = json_integer_value(seed) & INT64_MAX;
    int64_t limit = call->max_tokens >= 0 ? call->max_tokens : call->body->max_tokens;
    o->max_tokens = limit < INT32_MAX ? (int32_t)limit : INT32_MAX;
    o->stop = stop;
    return read_stop(request, stop, &o->n_stop, t);
}

/* ---- Constraint and tools ---- */

static bool engine_failed(mica_try *t, const mica_error *err)
{
    return mica_try_fail(t,
                         err->code == MICA_CONTEXT_FULL                                     ? MICA_FAILURE_CONTEXT
                         : err->code == MICA_OUT_OF_MEMORY || err->code == MICA_OVER_BUDGET ? MICA_FAILURE_NO_MEMORY
                         : err->code == MICA_TOO_HOT                                        ? MICA_FAILURE_HOT
                                                                                            : MICA_FAILURE_ENGINE,
                         "%s", err->message);
}

static bool make_constraint(mica_model *model, const mica_run_body *body, mica_constraint **out, mica_try *t)
{
    mica_constraint_options o = mica_constraint_options_default();
    mica_error err;
    if (!body->schema && !body->any_json)
        return true;
    char *text = body->schema ? mica_json_dumps(body->schema, JSON_COMPACT) : strdup("{\"type\":\"object\"}");
    if (!text)
        return mica_try_fail(t, MICA_FAILURE_NO_MEMORY, "no memory for the schema");
    o.kind = MICA_CONSTRAINT_JSON_SCHEMA;
    o.text = text;
    o.length = strlen(text);
    o.lenient = !body->strict;
    mica_status status = mica_constraint_new(model, &o, out, &err);
    free(text);
    return !status || engine_failed(t, &err);
}

static bool read_choice(const mica_run_body *body, mica_tools_options *o, mica_try *t)
{
    const json_t *choice = json_object_get(body->request, "tool_choice");
    const char *word = json_string_value(choice);
    o->parallel = !json_is_false(json_object_get(body->request, "parallel_tool_calls"));
    o->lenient = true;
    if (!choice || json_is_null(choice) || (word && strcmp(word, "auto") == 0))
        return true;
    o->name = json_string_value(json_object_get(json_object_get(choice, "function"), "name"));
    o->choice = o->name ? MICA_TOOL_NAMED : MICA_TOOL_REQUIRED;
    if (word && strcmp(word, "none") == 0)
        o->choice = MICA_TOOL_NONE;
    return o->name || (word && (strcmp(word, "none") == 0 || strcmp(word, "required") == 0)) ||
           mica_try_fail(t, MICA_FAILURE_ENGINE, "\"tool_choice\" must be \"auto\", \"none\", \"required\" or a function");
}

static bool make_tools(mica_model *model, const mica_run_body *body, mica_tools **out, mica_try *t)
{
    mica_tools_options o = mica_tools_options_default();
    mica_error err;
    if (!body->tools)
        return true;
    if (!read_choice(body, &o, t))
        return false;
    char *text = mica_json_dumps(body->tools, JSON_COMPACT);
    mica_status status =
        text ? mica_tools_new(model, text, strlen(text), &o, out, &err) : mica_fail_nomem(&err, 0, "the tools");
    free(text);
    return !status || engine_failed(t, &err);
}

/* ---- The reply ---- */

int mica_engine_check(mica_engine_reply *reply)
{
    const mica_local_call *call = reply->call;
    int64_t now = mica_now_ns(), ms = 1000000;
    mica_try *t = reply->t;
    if (t->failure)
        return 1;
    if (call->link->stop && call->link->stop(call->link->user))
        mica_try_fail(t, MICA_FAILURE_CANCELLED, "nobody waits for the reply any more");
    else if (now >= call->link->deadline_ns)
        mica_try_fail(t, MICA_FAILURE_TIMEOUT, "the request's time is over");
    else if (call->total_ms > 0 && now - t->start_ns > call->total_ms * ms)
        mica_try_fail(t, MICA_FAILURE_TIMEOUT, "no whole reply within %lld ms", (long long)call->total_ms);
    else if (call->first_ms > 0 && !t->first_ns && !t->tool_calls && now - t->start_ns > call->first_ms * ms)
        mica_try_fail(t, MICA_FAILURE_TIMEOUT, "no text within %lld ms", (long long)call->first_ms);
    return t->failure != MICA_FAILURE_NONE;
}

static int on_token(void *user, const mica_token_event *token)
{
    mica_engine_reply *reply = user;
    reply->n_tokens = token->index + 1;
    return mica_engine_check(reply);
}

static int on_text(void *user, const char *text, size_t length)
{
    mica_engine_reply *reply = user;
    if (reply->parser)
        return mica_tool_parser_feed(reply->parser, text, length, NULL) != MICA_OK;
    return !mica_try_text(reply->t, reply->call->link, text, length);
}

static int on_call(void *user, const mica_tool_event *e)
{
    mica_engine_reply *reply = user;
    mica_try *t = reply->t;
    if (e->kind == MICA_TOOL_TEXT || e->kind == MICA_TOOL_ERROR) /* a malformed call is text, as the model wrote it */
        return !mica_try_text(t, reply->call->link, e->text, e->length);
    if (e->kind != MICA_TOOL_CALL_END)
        return 0;
    if (!t->tool_calls)
        t->tool_calls = json_array();
    return json_array_append_new(t->tool_calls,
                                 json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", e->id, "type", "function", "function", "name",
                                           e->name, "arguments", json_stringn(e->text, e->length)));
}

static void judge(mica_engine_reply *reply, mica_status status, const mica_result *result, const mica_error *err)
{
    mica_try *t = reply->t;
    const char *reason = result->stop_reason;
    t->prompt_tokens = result->prompt_n;
    t->output_tokens = result->gen_n;
    if (result->gen_n > 1 && result->decode_tps > 0)
        t->decode_tps = result->decode_tps;
    if (t->failure)
        return;
    if (status) {
        engine_failed(t, err);
        return;
    }
    bool cut = strcmp(reason, "length") == 0 || strcmp(reason, "context") == 0;
    strcpy(t->finish, t->tool_calls ? "tool_calls" : cut ? "length" : "stop");
}

static void generate(mica_session *session, mica_engine_reply *reply, mica_generate_options *o)
{
    mica_result result = {.stop_reason = "error"};
    mica_error err;
    o->on_token = on_token;
    o->on_text = on_text;
    o->user = reply;
    mica_status status = mica_session_generate(session, o, &result, &err);
    if (!status && reply->parser)
        status = mica_tool_parser_finish(reply->parser, &err);
    judge(reply, status, &result, &err);
}

static bool sync_prompt(mica_model *model, mica_session *session, mica_engine_reply *reply, const mica_tools *tools)
{
    mica_chat_options o = mica_chat_options_default();
    const json_t *kwargs = json_object_get(reply->call->body->request, "chat_template_kwargs");
    int32_t *tokens = NULL;
    size_t n = 0;
    mica_error err;
    json_t *request = json_pack("{s:O, s:b}", "messages", reply->call->messages, "add_generation_prompt", 1);
    if (json_is_object(kwargs))
        json_object_set_new(request, "chat_template_kwargs", json_deep_copy(kwargs));
    char *text = request ? mica_json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    o.tools = tools;
    mica_status status = text ? mica_chat_tokenize(model, text, strlen(text), &o, &tokens, &n, NULL, NULL, &err)
                              : mica_fail_nomem(&err, 0, "the conversation");
    if (!status)
        status = mica_session_sync(session, tokens, n, &err);
    free(text);
    mica_free(tokens);
    return !status || reply->t->failure || engine_failed(reply->t, &err);
}

void mica_engine_run(mica_model *model, mica_session *session, mica_engine_reply *reply)
{
    const char *stop[STOPS_MAX];
    const mica_run_body *body = reply->call->body;
    mica_generate_options o;
    mica_constraint *constraint = NULL;
    mica_tools *tools = NULL;
    mica_error err;
    mica_try *t = reply->t;
    bool good = read_options(reply->call, &o, stop, t) && make_constraint(model, body, &constraint, t) &&
                make_tools(model, body, &tools, t);
    if (good && tools && mica_tools_constraint(tools)) {
        good = !constraint || mica_try_fail(t, MICA_FAILURE_ENGINE, "tools and a schema for the reply do not go together");
        if (good && mica_tool_parser_new(tools, -1, on_call, reply, &reply->parser, &err))
            good = engine_failed(t, &err);
    }
    o.constraint = tools && mica_tools_constraint(tools) ? mica_tools_constraint(tools) : constraint;
    o.close = constraint != NULL;
    if (good && sync_prompt(model, session, reply, tools) && !t->failure && !mica_engine_check(reply))
        generate(session, reply, &o);
    mica_tool_parser_free(reply->parser);
    reply->parser = NULL;
    mica_tools_free(tools);
    mica_constraint_free(constraint);
}
