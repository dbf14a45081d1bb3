/* routes.c - the table of routes, and the answers that need no reply of the model. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http.h"
#include "base/json.h"
#include "serve/page.h"
#include "serve/receipts.h"
#include "serve/score.h"
#include "serve/text_routes.h"
#ifdef MICA_HAVE_ROUTER
#include "serve/route_mode.h"
#endif

static void reply_json(mica_job *job, int status, json_t *json)
{
    char *text = json ? mica_json_dumps(json, MICA_JSON_FLAGS) : NULL;
    mica_job_reply(job, status, "application/json", text, text ? strlen(text) : 0);
    free(text);
    json_decref(json);
}

static void health(mica_server *s, mica_job *job)
{
    reply_json(job, s->draining ? 503 : 200, json_pack("{s:s}", "status", s->draining ? "shutting down" : "ok"));
}

static json_t *model_json(const mica_server *s)
{
    const mica_model_info *i = &s->context.info;
    return json_pack("{s:s, s:s, s:I, s:s, s:{s:s, s:I, s:I, s:i, s:i, s:i, s:s}}", "id", s->context.name, "object", "model",
                     "created", (json_int_t)s->context.created, "owned_by", "mica", "meta", "architecture", i->architecture,
                     "n_params", (json_int_t)i->n_params, "file_bytes", (json_int_t)i->file_bytes, "n_vocab", i->n_vocab,
                     "n_ctx_train", i->n_ctx_train, "n_ctx", s->context.n_ctx, "kernels", i->kernels);
}

static void models(mica_server *s, mica_job *job)
{
    json_t *list = json_pack("[o]", model_json(s));
#ifdef MICA_HAVE_ROUTER
    if (s->route)
        mica_route_mode_models(s->route, list);
#endif
    reply_json(job, 200, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

static void metrics(mica_server *s, mica_job *job)
{
    mica_buf out;
    size_t length = 0;
    char *text = mica_metrics_text(&s->metrics, s->context.name, mica_route_name, mica_route_count(), &length);
    mica_buf_init(&out, (size_t)2 << 20);
    bool good = text && mica_buf_append(&out, text, length);
    mica_receipts_metrics(&s->context, mica_pressure_device(s->pressure), &out);
#ifdef MICA_HAVE_ROUTER
    if (s->route)
        mica_route_mode_metrics(s->route, &out);
#endif
    mica_job_reply(job, 200, "text/plain; version=0.0.4; charset=utf-8", good && !out.failed ? out.data : NULL, out.length);
    mica_buf_free(&out);
    free(text);
}

/* ---- Replies of the model ---- */

static void generate(mica_server *s, mica_job *job, const mica_api *api)
{
    mica_fault fault;
    mica_request *r = mica_request_new(&s->context, api, job, NULL, 0, &fault);
    if (!r) {
        mica_job_fail(job, &fault);
        return;
    }
    if (r->stream) {
        mica_job_stream(job);
        if (api->open)
            api->open(r);
    }
    if (mica_request_is_scored(r))
        mica_score_submit(s, r);
    else
        mica_schedule_submit(s->schedule, r);
}

static void chat(mica_server *s, mica_job *job)
{
#ifdef MICA_HAVE_ROUTER
    if (s->route && mica_route_mode_take(s->route, job))
        return;
#endif
    generate(s, job, &mica_api_chat);
}
static void completions(mica_server *s, mica_job *job)
{
    generate(s, job, &mica_api_completions);
}
static void responses(mica_server *s, mica_job *job)
{
    generate(s, job, &mica_api_responses);
}

/* ---- Texts ---- */

static void text_route(mica_server *s, mica_job *job,
                       json_t *(*answer)(const mica_serve_context *, const json_t *, mica_fault *))
{
    mica_fault fault;
    json_t *body = mica_fields_parse(job->body, job->length, &fault);
    json_t *json = body ? answer(&s->context, body, &fault) : NULL;
    json_decref(body);
    if (json)
        reply_json(job, 200, json);
    else
        mica_job_fail(job, &fault);
}

static void tokenize(mica_server *s, mica_job *job)
{
    text_route(s, job, mica_text_tokenize);
}
static void detokenize(mica_server *s, mica_job *job)
{
    text_route(s, job, mica_text_detokenize);
}
static void apply_template(mica_server *s, mica_job *job)
{
    text_route(s, job, mica_text_template);
}

/* ---- The table ---- */

static const mica_route table[] = {
    {"GET", "/health", true, false, health},
    {"GET", "/metrics", false, false, metrics},
    {"GET", "/v1/models", false, false, models},
    {"POST", "/v1/chat/completions", false, true, chat},
    {"POST", "/v1/completions", false, true, completions},
    {"POST", "/v1/responses", false, true, responses},
    {"POST", "/v1/embeddings", false, true, mica_embeddings_answer},
    {"POST", "/tokenize", false, true, tokenize},
    {"POST", "/detokenize", false, true, detokenize},
    {"POST", "/apply-template", false, true, apply_template},
    {"GET", "/v1/mica/status", false, false, mica_page_status},
    {"GET", "/", true, false, mica_page_html},
    {"GET", "/page.js", true, false, mica_page_js},
    {"GET", "/page.css", true, false, mica_page_css},
    {"GET", "/licenses.txt", true, false, mica_page_licenses},
};
#define N_ROUTES (sizeof table / sizeof *table)
_Static_assert(N_ROUTES < MICA_METRICS_ROUTES, "the last row of the metrics is for paths that are no route");

size_t mica_route_count(void)
{
    return N_ROUTES;
}
const mica_route *mica_route_at(size_t i)
{
    return &table[i];
}
const char *mica_route_name(size_t i)
{
    return table[i].path;
}

bool mica_route_find(const mica_http_parse *p, size_t *route, char allow[64], mica_fault *fault)
{
    bool head = strcmp(p->method, "HEAD") == 0;
    *route = N_ROUTES;
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (strcmp(p->path, table[i].path) != 0)
            continue;
        *route = i;
        if (strcmp(p->method, table[i].method) == 0 || (head && strcmp(table[i].method, "GET") == 0))
            return true;
        snprintf(allow, 64, "%s, OPTIONS", strcmp(table[i].method, "GET") == 0 ? "GET, HEAD" : table[i].method);
    }
    if (*route < N_ROUTES)
        return mica_fault_set(fault, 405, "method_not_allowed", NULL, "%s takes %s", p->path, table[*route].method);
    return mica_fault_set(fault, 404, "unknown_url", NULL, "there is no %.200s here (%.20s)", p->path, p->method);
}
