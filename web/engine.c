/* engine.c - what JavaScript calls (engine.js): one model, one conversation, a step at a time, so that the worker can look
 * at its messages between two tokens. It is a batch with one session, which gives the replies that a session alone would
 * give.
 *
 *     w = web_new();  p = web_alloc(w, bytes);  ... the file's bytes are copied to p ...
 *     web_open(w, options, n);  web_submit(w, request, m);  while (web_step(w) > 0) { }
 *
 * Text in and out is UTF-8; what a call has to tell is JSON at web_text(w), web_length(w) bytes, until the next call. A
 * call that fails returns something else than 0, and tells {"code": "MICA_...", "message": "..."}.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica/mica_tools.h"

#define EXPORT(name) __attribute__((export_name(#name)))
#define IMPORT(name) __attribute__((import_module("mica"), import_name(#name)))

/* What a module can address, less the first page. */
#define ADDRESSABLE ((((int64_t)1) << 32) - 65536)
/* Tokens of a step: of a prompt, what is computed before the worker looks whether it shall stop. */
#define STEP_TOKENS 32

typedef struct web {
    void *file;
    size_t file_bytes;
    mica_model *model;
    mica_batch *batch;
    mica_session *session;
    mica_error err;
    char *text;
} web;

/* ---- What JavaScript calls ---- */

EXPORT(web_text) const char *web_text(const web *w);
EXPORT(web_length) size_t web_length(const web *w);
EXPORT(web_new) web *web_new(void);
/* For text that JavaScript passes; NULL: there is no memory. */
EXPORT(web_buffer) char *web_buffer(size_t bytes);
EXPORT(web_release) void web_release(char *buffer);
/* Room for a file's bytes, at a multiple of 64; 0: there is none. */
EXPORT(web_alloc) void *web_alloc(web *w, size_t bytes);
/* Options: {"context": tokens, "kernels": "simd128"}, both optional. The file's bytes must be where web_alloc() said. */
EXPORT(web_open) int web_open(web *w, const char *options, size_t length);
/* After it web_step(), again and again. */
EXPORT(web_submit) int web_submit(web *w, const char *text, size_t length);
/* Positive: there is more to compute. 0: the reply is over, what became of it is at web_text(). */
EXPORT(web_step) int web_step(web *w);
/* The next step ends the reply. */
EXPORT(web_cancel) void web_cancel(web *w);

/* ---- What the page hears while a step is computed ---- */

IMPORT(on_text) void web_on_text(const char *text, size_t length);
IMPORT(on_token) void web_on_token(int32_t token);

static int tell_text(void *user, const char *text, size_t length)
{
    (void)user;
    web_on_text(text, length);
    return 0;
}

static int tell_token(void *user, const mica_token_event *event)
{
    (void)user;
    web_on_token(event->token);
    return 0;
}

/* ---- Answers ---- */

static void answer(web *w, json_t *value)
{
    free(w->text);
    w->text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
}

static int finish(web *w, mica_status status, json_t *value)
{
    if (status) {
        json_decref(value);
        value = json_pack("{s:s, s:s}", "code", mica_status_name(status), "message", w->err.message);
    }
    answer(w, value);
    return (int)status;
}

const char *web_text(const web *w) { return w->text; }

size_t web_length(const web *w) { return w->text ? strlen(w->text) : 0; }

/* ---- The model ---- */

web *web_new(void) { return calloc(1, sizeof(web)); }

char *web_buffer(size_t bytes) { return malloc(bytes + 1); }

void web_release(char *buffer) { free(buffer); }

void *web_alloc(web *w, size_t bytes)
{
    free(w->file);
    w->file_bytes = bytes;
    if (posix_memalign(&w->file, 64, bytes) != 0)
        w->file = NULL;
    return w->file;
}

/* One thread: see port/pool.c. */
static mica_batch_options batch_options(int32_t n_ctx)
{
    mica_batch_options o = mica_batch_options_default();
    o.max_sessions = 1;
    o.n_ctx = n_ctx;
    o.step_tokens = STEP_TOKENS;
    o.n_threads = 1;
    o.app_limit = ADDRESSABLE;
    o.memory_budget = o.memory_limit = MICA_PERCENT(100);
    return o;
}

static json_t *describe(const web *w)
{
    mica_model_info i;
    mica_memory_plan p = {0};
    mica_batch_info b;
    mica_model_get_info(w->model, &i);
    mica_batch_get_info(w->batch, &b);
    const mica_batch_options o = batch_options((int32_t)b.kv_tokens);
    (void)mica_batch_plan(w->model, &o, &p, NULL); /* the batch was made with it */
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:I, s:I, s:b, s:f, s:s}", "architecture", i.architecture, "name", i.name,
                     "kernels", i.kernels, "parameters", (json_int_t)i.n_params, "file_bytes", (json_int_t)i.file_bytes,
                     "context", p.n_ctx, "kv_bytes", (json_int_t)p.kv_bytes, "workspace_bytes", (json_int_t)p.workspace_bytes,
                     "chat", (int)i.has_chat_template, "load_ms", i.load_ms, "version", mica_version());
}

static mica_status open_model(web *w, const char *kernels)
{
    char path[64];
    mica_model_options o = mica_model_options_default();
    o.kernels = kernels;
    snprintf(path, sizeof path, "memory:%lu+%zu", (unsigned long)(uintptr_t)w->file, w->file ? w->file_bytes : 0);
    return mica_model_open(path, &o, &w->model, &w->err);
}

static mica_status open_batch(web *w, int32_t n_ctx)
{
    const mica_batch_options o = batch_options(n_ctx);
    mica_session_options s = mica_session_options_default();
    s.full_policy = MICA_FULL_STOP; /* the result tells */
    mica_status status = mica_batch_new(w->model, &o, &w->batch, &w->err);
    return status ? status : mica_batch_session_new(w->batch, &s, &w->session, &w->err);
}

static mica_status bad_json(web *w, const json_error_t *error)
{
    snprintf(w->err.message, sizeof w->err.message, "not what was expected: %s", error->text);
    return w->err.code = MICA_INVALID_ARGUMENT;
}

int web_open(web *w, const char *options, size_t length)
{
    json_error_t error;
    int n_ctx = 0;
    const char *kernels = NULL;
    json_t *o = json_loadb(options, length, 0, &error);
    mica_status status = MICA_OK;
    if (!o || json_unpack_ex(o, &error, JSON_STRICT, "{s?i, s?s}", "context", &n_ctx, "kernels", &kernels))
        status = bad_json(w, &error);
    if (!status)
        status = open_model(w, kernels);
    if (!status)
        status = open_batch(w, n_ctx);
    json_decref(o);
    return finish(w, status, status ? NULL : describe(w));
}

/* ---- A reply ---- */

static json_t *describe_result(const mica_result *r)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:I}", "stop_reason", r->stop_reason, "prompt_n",
                     r->prompt_n, "cached_n", r->cached_n, "gen_n", r->gen_n, "ttft_ms", r->ttft_ms, "tpot_ms", r->tpot_ms,
                     "prefill_ms", r->prefill_ms, "prefill_tps", r->prefill_tps, "decode_tps", r->decode_tps, "seed",
                     (json_int_t)r->seed);
}

static void done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    web *w = user;
    json_t *value = describe_result(result);
    if (status && status != MICA_CANCELLED)
        json_object_set_new(value, "error", json_string(error->message));
    answer(w, value);
}

typedef struct request {
    const char *prompt;
    json_t *messages;
    mica_generate_options options;
    int ignore_eos;
} request;

/* {"messages": [...]} or {"prompt": "text"}, and "max_tokens", "temperature", "top_p", "top_k", "min_p", "seed",
 * "ignore_eos". */
static mica_status read_request(web *w, json_t *in, request *r)
{
    json_error_t error;
    mica_sampling *s = &r->options.sampling;
    double temperature = (double)s->temperature, top_p = (double)s->top_p, min_p = (double)s->min_p;
    int max_tokens = r->options.max_tokens, top_k = s->top_k;
    json_int_t seed = s->seed;
    if (json_unpack_ex(in, &error, JSON_STRICT, "{s?s, s?o, s?i, s?F, s?F, s?i, s?F, s?I, s?b}", "prompt", &r->prompt,
                       "messages", &r->messages, "max_tokens", &max_tokens, "temperature", &temperature, "top_p", &top_p,
                       "top_k", &top_k, "min_p", &min_p, "seed", &seed, "ignore_eos", &r->ignore_eos))
        return bad_json(w, &error);
    if (!r->prompt == !r->messages) {
        snprintf(error.text, sizeof error.text, "either \"messages\" or \"prompt\" is needed");
        return bad_json(w, &error);
    }
    s->temperature = (float)temperature;
    s->top_p = (float)top_p;
    s->min_p = (float)min_p;
    s->top_k = top_k;
    s->seed = seed;
    r->options.max_tokens = max_tokens;
    r->options.ignore_eos = r->ignore_eos != 0;
    return MICA_OK;
}

static mica_status tokens_of(web *w, const request *r, int32_t **tokens, size_t *n)
{
    const unsigned flags = MICA_TOKENIZE_ADD_BOS | MICA_TOKENIZE_PARSE_SPECIAL; /* the caller's own text, markers included */
    if (r->prompt)
        return mica_model_tokenize(w->model, r->prompt, strlen(r->prompt), flags, tokens, n, &w->err);
    json_t *chat = json_pack("{s:O}", "messages", r->messages);
    char *text = chat ? json_dumps(chat, JSON_COMPACT) : NULL;
    json_decref(chat);
    if (!text) {
        snprintf(w->err.message, sizeof w->err.message, "there is no memory for the conversation");
        return w->err.code = MICA_OUT_OF_MEMORY;
    }
    mica_status status = mica_chat_tokenize(w->model, text, strlen(text), NULL, tokens, n, NULL, NULL, &w->err);
    free(text);
    return status;
}

int web_submit(web *w, const char *text, size_t length)
{
    json_error_t error;
    int32_t *tokens = NULL;
    size_t n = 0;
    request r = {.options = mica_generate_options_default()};
    json_t *in = json_loadb(text, length, 0, &error);
    mica_status status = in ? read_request(w, in, &r) : bad_json(w, &error);
    r.options.on_text = tell_text;
    r.options.on_token = tell_token;
    r.options.on_done = done;
    r.options.user = w;
    if (!status)
        status = tokens_of(w, &r, &tokens, &n);
    if (!status)
        status = mica_batch_submit(w->session, tokens, n, &r.options, &w->err);
    mica_free(tokens);
    json_decref(in);
    return finish(w, status, NULL);
}

int web_step(web *w) { return (int)mica_batch_step(w->batch); }

void web_cancel(web *w) { mica_session_cancel(w->session); }
