#include "serve/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "serve/fields.h"
#include "serve/receipts.h"

static bool make_id(mica_request *r, mica_fault *fault)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return mica_fault_set(fault, 500, "engine_error", NULL, "the system gives no random numbers");
    snprintf(r->id, sizeof r->id, "%s%016llx%016llx", r->api->id_prefix, (unsigned long long)random[0],
             (unsigned long long)random[1]);
    r->created = (int64_t)time(NULL);
    return true;
}

mica_request *mica_request_new(const mica_serve_context *context, const mica_api *api, mica_job *job, const char *body,
                               size_t length, mica_fault *fault)
{
    mica_request *r = calloc(1, sizeof *r);
    if (!r) {
        mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
        return NULL;
    }
    r->context = context;
    r->api = api;
    r->job = job ? mica_job_retain(job) : NULL;
    r->n = 1;
    r->think = context->think;
    r->options = mica_generate_options_default();
    r->body = mica_fields_parse(job ? job->body : body, job ? job->length : length, fault);
    if (r->body && make_id(r, fault) && api->parse(r, fault))
        return r;
    mica_request_free(r);
    return NULL;
}

static void free_choice(mica_choice *c)
{
    mica_receipt_free(c->receipt);
    mica_tool_parser_free(c->parser);
    mica_buf_free(&c->content);
    mica_buf_free(&c->reasoning);
    mica_buf_free(&c->output.arguments);
    json_decref(c->output.items);
    json_decref(c->calls);
    json_decref(c->logprobs);
}

void mica_request_free(mica_request *r)
{
    if (!r)
        return;
    for (int32_t i = 0; i < r->n_choices; i++)
        free_choice(&r->choices[i]);
    for (size_t i = 0; i < r->n_prompts; i++) {
        mica_free(r->prompts[i].tokens);
        free(r->prompts[i].text);
        free(r->prompts[i].scores);
    }
    free(r->choices);
    free(r->prompts);
    free(r->bias);
    mica_cache_give_back(r->constraint_entry);
    mica_cache_give_back(r->tools_entry);
    json_decref(r->body);
    mica_job_release(r->job);
    free(r);
}

bool mica_request_make_choices(mica_request *r, mica_fault *fault)
{
    size_t n = (size_t)r->n * r->n_prompts;
    if (n > MICA_SERVE_REPLIES_MAX)
        return mica_fault_bad(fault, "n", "%zu replies are asked for at once; at most %d are possible", n,
                              MICA_SERVE_REPLIES_MAX);
    r->choices = calloc(n, sizeof *r->choices);
    if (!r->choices)
        return mica_fault_set(fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
    r->n_choices = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        mica_choice *c = &r->choices[i];
        c->request = r;
        c->index = (int32_t)i;
        c->prompt = &r->prompts[i / (size_t)r->n];
        mica_buf_init(&c->content, MICA_SERVE_REPLY_MAX / 4);
        mica_buf_init(&c->reasoning, MICA_SERVE_REPLY_MAX / 4);
        mica_buf_init(&c->output.arguments, MICA_SERVE_REPLY_MAX / 4);
        c->calls = json_array();
        c->logprobs = r->want_logprobs ? json_array() : NULL;
    }
    return mica_receipts_make(r, fault);
}

bool mica_request_is_scored(const mica_request *r)
{
    return r->n_prompts > 0 && r->prompts[0].scores;
}

bool mica_request_check_prompt(const mica_request *r, const mica_prompt *p, const char *param, mica_fault *fault)
{
    if (p->n == 0)
        return mica_fault_bad(fault, param, "the prompt is empty: there is no token to begin with");
    if (p->n >= (size_t)r->context->n_ctx)
        return mica_fault_set(
            fault, 400, "context_length_exceeded", param,
            "This model's maximum context length is %d tokens. However, your prompt has %zu tokens, and a reply needs one "
            "more. Please reduce the length of the prompt.",
            r->context->n_ctx, p->n);
    return true;
}

/* ---- Saying ---- */

static int append(const char *data, size_t length, void *user)
{
    return mica_buf_append(user, data, length) ? 0 : -1;
}

void mica_request_event(mica_request *r, const char *name, json_t *event)
{
    mica_buf out;
    mica_buf_init(&out, MICA_SERVE_REPLY_MAX);
    if (name)
        mica_buf_printf(&out, "event: %s\n", name);
    mica_buf_puts(&out, "data: ");
    bool good = event && json_dump_callback(event, append, &out, MICA_JSON_FLAGS) == 0 && mica_buf_puts(&out, "\n\n");
    if (good && r->job)
        mica_job_send(r->job, out.data, out.length);
    mica_buf_free(&out);
    json_decref(event);
    if (!good && !r->failed) {
        mica_fault_set(&r->fault, 500, "out_of_memory", NULL, "the server has no memory for the answer");
        mica_request_fail(r, &r->fault);
    }
}

void mica_request_done_mark(mica_request *r)
{
    if (r->job)
        mica_job_send(r->job, "data: [DONE]\n\n", 14);
}

void mica_request_fail(mica_request *r, const mica_fault *fault)
{
    if (!r->failed && r->job)
        mica_job_fail(r->job, fault);
    r->failed = true;
}

bool mica_request_is_dropped(const mica_request *r)
{
    return r->failed || (r->job && atomic_load(&r->job->gone));
}

/* ---- Figures ---- */

static void count(const mica_request *r, int64_t *prompt, int64_t *cached, int64_t *made)
{
    *prompt = *cached = *made = 0;
    for (int32_t i = 0; i < r->n_choices; i++) {
        const mica_choice *c = &r->choices[i];
        bool first = i % r->n == 0; /* a prompt counts once, however many choices it has */
        *prompt += first ? (int64_t)c->prompt->n : 0;
        *cached += first ? c->result.cached_n : 0;
        *made += c->result.gen_n;
    }
}

json_t *mica_request_usage(const mica_request *r, const char *in, const char *out)
{
    char in_details[40], out_details[40];
    int64_t prompt, cached, made, reasoning = 0;
    for (int32_t i = 0; i < r->n_choices; i++)
        reasoning += r->choices[i].reasoning_n;
    count(r, &prompt, &cached, &made);
    snprintf(in_details, sizeof in_details, "%s_details", in);
    snprintf(out_details, sizeof out_details, "%s_details", out);
    return json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I}}", in, (json_int_t)prompt, out, (json_int_t)made, "total_tokens",
                     (json_int_t)(prompt + made), in_details, "cached_tokens", (json_int_t)cached, out_details,
                     "reasoning_tokens", (json_int_t)reasoning);
}

json_t *mica_request_timings(const mica_request *r)
{
    const mica_choice *c = &r->choices[0];
    const mica_result *m = &c->result;
    int64_t prompt, cached, made, arrived = r->job ? r->job->arrived_ns : c->started_ns;
    double ms = 1e-6;
    count(r, &prompt, &cached, &made);
    json_t *timings = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:i, s:I, s:s, s:i}", "queue_ms",
                     (double)(c->started_ns - arrived) * ms, "ttft_ms",
                     c->first_ns ? (double)(c->first_ns - arrived) * ms : 0.0, "total_ms",
                     (double)(mica_now_ns() - arrived) * ms, "prefill_ms", m->prefill_ms, "prefill_tps", m->prefill_tps,
                     "tpot_ms", m->tpot_ms, "decode_tps", m->decode_tps, "prompt_n", (json_int_t)prompt, "cached_n",
                     (json_int_t)cached, "gen_n", (json_int_t)made, "forced_n", m->forced_n, "seed", (json_int_t)m->seed,
                     "kernels", m->kernels ? m->kernels : "", "threads", m->n_threads);
    mica_receipts_add(r, timings);
    return timings;
}
