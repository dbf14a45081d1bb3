#include "serve/score.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/http.h"
#include "session/session.h"

typedef struct score_task {
    mica_side_task base; /* first */
    mica_request *request;
    mica_session *session;
    mica_prompt *prompt; /* whose turn it is */
    bool finite;         /* all of its logits so far */
    double prompt_ms;    /* that its scores took */
} score_task;

/* ---- Scores ---- */

/* The logits at a position are about the token after it. The arithmetic is that of a reply's log-probabilities. */
static int on_logits(void *user, size_t position, const float *logits)
{
    score_task *t = user;
    const mica_prompt *p = t->prompt;
    int32_t best[MICA_SERVE_TOP_MAX], n_top = t->request->n_top, n = n_top > 0 ? n_top : 1;
    float logprobs[MICA_SERVE_TOP_MAX];
    if (position + 1 == p->n)
        return 0;
    mica_score *row = p->scores + (position + 1) * (size_t)(1 + n_top);
    row[0].token = p->tokens[position + 1];
    mica_sampler_top_logprobs(t->session->sampler, logits, row[0].token, n, best, logprobs, &row[0].logprob);
    t->finite = best[0] >= 0;
    for (int32_t i = 0; i < n_top; i++)
        row[1 + i] = (mica_score){best[i], logprobs[i]};
    return !t->finite;
}

static mica_status score_prompt(score_task *t, mica_prompt *p, mica_error *err)
{
    int64_t begin = mica_now_ns();
    t->prompt = p;
    t->finite = true;
    mica_status status = mica_session_score(t->session, p->tokens, p->n, 0, on_logits, t, err);
    t->prompt_ms = (double)(mica_now_ns() - begin) / 1e6;
    if (!t->finite)
        return mica_fail(err, MICA_NON_FINITE, "the prompt cannot be scored: the model gives NaN or infinite logits");
    return status;
}

/* ---- Replies ---- */

static bool is_short(const mica_request *r)
{
    return r->options.max_tokens == 0 || r->options.max_tokens == 1;
}

/* The prompt is in the session's cache; but it was computed for this request. */
static void tell_cost(const score_task *t, mica_result *result)
{
    result->cached_n = 0;
    result->prefill_ms = t->prompt_ms;
    result->prefill_tps = t->prompt_ms > 0.0 ? (double)t->prompt->n / (t->prompt_ms / 1e3) : 0.0;
}

static mica_status make_reply(score_task *t, mica_choice *c, mica_error *err)
{
    mica_request *r = t->request;
    mica_generate_options options;
    mica_result result;
    if (!mica_choice_start(c, &options, &r->fault)) {
        mica_request_fail(r, &r->fault);
        return MICA_OK;
    }
    c->started_ns = t->base.started_ns; /* it waited until then */
    mica_status status = mica_session_sync(t->session, t->prompt->tokens, t->prompt->n, err);
    if (!status)
        status = mica_session_generate(t->session, &options, &result, err);
    if (status)
        return status;
    if (c->index % r->n == 0)
        tell_cost(t, &result);
    mica_choice_finish(c, MICA_OK, &result, NULL);
    return MICA_OK;
}

static mica_status compute(score_task *t, mica_error *err)
{
    mica_request *r = t->request;
    mica_status status = MICA_OK;
    for (size_t i = 0; i < r->n_prompts && !status; i++) {
        status = score_prompt(t, &r->prompts[i], err);
        for (int32_t k = 0; is_short(r) && k < r->n && !status && !mica_request_is_dropped(r); k++)
            status = make_reply(t, &r->choices[(int32_t)i * r->n + k], err);
    }
    return status;
}

/* ---- The task ---- */

/* On the scheduler's thread. */
static void run(mica_schedule_task *task, bool stopping)
{
    score_task *t = (score_task *)task;
    mica_request *r = t->request;
    mica_error err;
    mica_status status = mica_side_begin(&t->base, stopping, &t->session, &err);
    if (!status)
        status = compute(t, &err);
    mica_side_end(&t->base);
    if (status && !mica_request_is_dropped(r)) {
        mica_side_fault(&t->base, &err, "prompt", &r->fault);
        mica_request_fail(r, &r->fault);
    }
    if (is_short(r) || mica_request_is_dropped(r))
        mica_request_free(r);
    else
        mica_schedule_submit(t->base.server->schedule, r);
    mica_job_release(t->base.job);
    free(t);
}

void mica_score_submit(mica_server *s, mica_request *r)
{
    score_task *t = mica_new_array(1, sizeof *t);
    if (!t) {
        mica_fault_set(&r->fault, 500, "out_of_memory", NULL, "the server has no memory for the request");
        mica_request_fail(r, &r->fault);
        mica_request_free(r);
        return;
    }
    t->base = (mica_side_task){.base = {.run = run}, .server = s, .job = mica_job_retain(r->job)};
    t->request = r;
    mica_schedule_add(s->schedule, &t->base.base);
}
