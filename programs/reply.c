#include "reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "constrain.h"
#include "guard.h"
#include "interrupt.h"

#define MAX_TEXT ((size_t)1 << 30)

/* ---- Options ---- */

/* "ID=X"; X may be -inf */
static bool read_bias(const char *text, mica_logit_bias *bias)
{
    char id[16];
    size_t n = strcspn(text, "=");
    int64_t token;
    double value;
    if (text[n] != '=' || n >= sizeof id)
        return false;
    memcpy(id, text, n);
    id[n] = '\0';
    if (!mica_opt_read_int(id, 0, INT32_MAX, &token))
        return false;
    bias->token = (int32_t)token;
    bias->bias = -INFINITY;
    if (strcmp(text + n + 1, "-inf") == 0)
        return true;
    bias->bias = mica_opt_read_real(text + n + 1, &value) ? (float)value : NAN;
    return isfinite(bias->bias);
}

static int read_biases(mica_reply *r)
{
    const mica_opt_list *list = &r->o->logit_bias;
    r->bias = calloc(list->n ? list->n : 1, sizeof *r->bias);
    if (!r->bias)
        return mica_term_error("not enough memory for --logit-bias");
    for (size_t i = 0; i < list->n; i++)
        if (!read_bias(list->item[i], &r->bias[i]))
            return mica_term_usage("--logit-bias: \"%s\" is not TOKEN=NUMBER, with a token id and a finite number or -inf",
                                   list->item[i]);
    return CODE_OK;
}

static mica_sampling sampling_of(const mica_opts *o)
{
    return (mica_sampling){
        .temperature = (float)o->temperature, .top_k = (int32_t)o->top_k, .top_p = (float)o->top_p, .min_p = (float)o->min_p,
        .typical_p = (float)o->typical_p, .repeat_penalty = (float)o->repeat_penalty,
        .frequency_penalty = (float)o->frequency_penalty, .presence_penalty = (float)o->presence_penalty,
        .penalty_last_n = (int32_t)o->penalty_last_n, .dry_multiplier = (float)o->dry_multiplier,
        .dry_base = (float)o->dry_base, .dry_allowed_length = (int32_t)o->dry_allowed_length,
        .dry_last_n = (int32_t)o->dry_last_n, .seed = o->seed};
}

/* ---- JSON lines ---- */

/* Prints the waiting token, now that its text is known. */
static bool print_waiting(mica_reply *r)
{
    json_t *token = r->waiting;
    r->waiting = NULL;
    if (!token)
        return true;
    const char *text = r->text.data ? r->text.data + r->waiting_from : "";
    json_object_set_new(token, "text", mica_json_text(text, r->text.length - r->waiting_from));
    return mica_json_line(token);
}

static json_t *top_of(const mica_token_event *event)
{
    json_t *top = json_array();
    for (int32_t i = 0; i < event->n_top; i++)
        json_array_append_new(top, json_pack("{s:i, s:o}", "token", (int)event->top_tokens[i], "logprob",
                                             mica_json_real((double)event->top_logprobs[i])));
    return top;
}

static bool hold_token(mica_reply *r, const mica_token_event *event)
{
    r->waiting = json_pack("{s:i, s:s}", "token", (int)event->token, "text", "");
    r->waiting_from = r->text.length;
    if (!r->waiting)
        return false;
    if (r->options.top_logprobs > 0) {
        json_object_set_new(r->waiting, "logprob", mica_json_real((double)event->logprob));
        json_object_set_new(r->waiting, "top", top_of(event));
    }
    return json_object_set_new(r->waiting, "t_ms", json_real((double)(event->time_ns - r->start_ns) / 1e6)) == 0;
}

json_t *mica_reply_result_json(const mica_result *m)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:s, s:i, s:i, s:i, "
                     "s:i}",
                     "stop_reason", m->stop_reason, "prompt_n", (int)m->prompt_n, "cached_n", (int)m->cached_n, "gen_n",
                     (int)m->gen_n,
                     "dropped_n", (int)m->dropped_n, "needed_n", (int)m->needed_n, "load_ms", m->load_ms, "ttft_ms", m->ttft_ms,
                     "tpot_ms", m->tpot_ms, "tpot_p50_ms", m->tpot_p50_ms, "tpot_p95_ms", m->tpot_p95_ms, "prefill_ms",
                     m->prefill_ms, "prefill_tps", m->prefill_tps, "decode_tps", m->decode_tps, "peak_rss_bytes",
                     (json_int_t)m->peak_rss_bytes, "seed", (json_int_t)m->seed, "kernels", m->kernels, "n_threads",
                     (int)m->n_threads, "drafted_n", (int)m->drafted_n, "accepted_n", (int)m->accepted_n, "forced_n",
                     (int)m->forced_n);
}

/* ---- Streaming ---- */

static int on_text(void *user, const char *text, size_t length)
{
    mica_reply *r = user;
    mica_buf_append(&r->text, text, length);
    if (r->calls.tools)
        r->output_failed = r->output_failed || !mica_calls_feed(&r->calls, text, length);
    else if (!r->json && !mica_term_write(text, length))
        r->output_failed = true;
    return r->output_failed || r->text.failed;
}

static int on_token(void *user, const mica_token_event *event)
{
    mica_reply *r = user;
    if (event->index == 0)
        mica_guard_end(true); /* all that a load takes is there */
    if (r->json && (!print_waiting(r) || !hold_token(r, event)))
        r->output_failed = true;
    return r->output_failed || mica_interrupt_count() > 0;
}

static mica_speculation speculation_of(const mica_opts *o)
{
    return strcmp(o->speculate, "lookup") == 0  ? MICA_SPECULATE_LOOKUP
           : strcmp(o->speculate, "model") == 0 ? MICA_SPECULATE_MODEL
           : strcmp(o->speculate, "both") == 0  ? MICA_SPECULATE_BOTH
                                                : MICA_SPECULATE_OFF;
}

static int check_options(const mica_opts *o)
{
    bool wants_model = speculation_of(o) & MICA_SPECULATE_MODEL;
    if (o->draft_model && !wants_model)
        return mica_term_usage("--draft-model needs --speculate model or both");
    if (wants_model && !o->draft_model)
        return mica_term_usage("--speculate %s needs --draft-model FILE", o->speculate);
    if (o->close && !mica_constrain_asked(o) && !o->tools)
        return mica_term_usage("--close needs a constraint, such as --schema");
    int code = mica_calls_check(o);
    return code == CODE_OK ? mica_constrain_check(o) : code;
}

int mica_reply_constrain(mica_reply *r, mica_model *model)
{
    int code = mica_constrain_load(r->o, model, &r->constraint);
    if (code == CODE_OK)
        code = mica_calls_load(&r->calls, r->o, model);
    r->calls.quiet = r->json;
    r->options.constraint = r->constraint;
    return code;
}

int mica_reply_init(mica_reply *r, const mica_opts *o)
{
    memset(r, 0, sizeof *r);
    r->o = o;
    r->json = o->json;
    mica_buf_init(&r->text, MAX_TEXT);
    int code = check_options(o);
    if (code == CODE_OK)
        code = read_biases(r);
    mica_generate_options *g = &r->options;
    *g = mica_generate_options_default();
    g->max_tokens = (int32_t)o->n_predict;
    g->sampling = sampling_of(o);
    g->sampling.logit_bias = r->bias;
    g->sampling.n_logit_bias = o->logit_bias.n;
    g->stop = o->stop.item;
    g->n_stop = o->stop.n;
    g->ignore_eos = o->ignore_eos;
    g->close = o->close;
    g->token_healing = o->token_healing;
    g->speculate = speculation_of(o);
    g->top_logprobs = o->json ? (int32_t)o->logprobs : 0;
    g->on_text = on_text;
    g->on_token = on_token;
    g->user = r;
    return code;
}

void mica_reply_free(mica_reply *r)
{
    mica_buf_free(&r->text);
    json_decref(r->waiting);
    mica_constraint_free(r->constraint);
    mica_calls_free(&r->calls);
    free(r->bias);
}

/* What the status of the engine means here. The output's own failure is told by mica_term_finish(). */
static int code_of(const mica_reply *r, mica_status status, const mica_error *err)
{
    if (r->output_failed)
        return CODE_FAILED;
    if (status == MICA_CANCELLED && mica_interrupt_count() > 0)
        return CODE_INTERRUPTED;
    if (r->text.failed)
        return mica_term_error("the reply is longer than %zu bytes, or there is no memory for it", MAX_TEXT);
    return status ? mica_load_failed(err) : CODE_OK;
}

/* The ids of calls come from the sampling seed, so that a reply that is asked for again is the same. */
static int begin_calls(mica_reply *r)
{
    if (!r->calls.tools)
        return CODE_OK;
    r->options.constraint = mica_tools_constraint(mica_calls_tools(&r->calls));
    return mica_calls_begin(&r->calls, r->o->seed);
}

int mica_reply_run(mica_reply *r, mica_session *session, const int32_t *tokens, size_t n, bool *began)
{
    mica_error err = {.code = MICA_OK};
    mica_buf_free(&r->text);
    *began = false;
    if (begin_calls(r) != CODE_OK)
        return CODE_FAILED;
    mica_interrupt_watch(session);
    r->start_ns = mica_now_ns();
    mica_status status = mica_session_sync(session, tokens, n, &err);
    if (!status) {
        *began = true;
        status = mica_session_generate(session, &r->options, &r->result, &err);
    }
    r->status = status;
    mica_interrupt_watch(NULL);
    if (*began && r->calls.tools && !mica_calls_end(&r->calls))
        r->output_failed = true;
    if (r->json && !print_waiting(r))
        r->output_failed = true;
    int code = code_of(r, status, &err);
    if (code == CODE_OK && strcmp(r->result.stop_reason, "context") == 0)
        mica_term_note("context full: the reply ended there; one more token needs --ctx %d, or use --full shift",
                       r->result.needed_n);
    return code;
}

void mica_reply_print_metrics(const mica_result *m)
{
    fprintf(stderr,
            "ttft_ms=%.1f;tpot_ms=%.2f;prompt_n=%d;gen_n=%d;prefill_tps=%.1f;decode_tps=%.1f;peak_rss=%lld;threads=%d;"
            "kernels=%s;stop=%s\n",
            m->ttft_ms, m->tpot_ms, m->prompt_n, m->gen_n, m->prefill_tps, m->decode_tps, (long long)m->peak_rss_bytes,
            m->n_threads, m->kernels, m->stop_reason);
}
