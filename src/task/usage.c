/* usage.c - the work of one run: prompts computed, replies generated, and what they cost. */
#include "base/clock.h"
#include "session/session.h"
#include "task/task.h"

int32_t mica_task_context(const mica_task_job *job)
{
    return job->session->options.n_ctx;
}

mica_status mica_task_sync(mica_task_job *job, const int32_t *tokens, size_t n, mica_error *err)
{
    mica_status status = mica_session_sync(job->session, tokens, n, err);
    job->prompt_n += (int64_t)n;
    job->cached_n += job->session->cached_n;
    job->computed_n += job->session->prefill_n;
    return status;
}

/* The reply's text, for `text` and for the caller's own callback. */
typedef struct collector {
    mica_buf *text;
    int (*on_text)(void *user, const char *text, size_t length);
    void *user;
} collector;

static int collect(void *user, const char *text, size_t length)
{
    collector *c = user;
    if (!mica_buf_append(c->text, text, length))
        return 1;
    return c->on_text ? c->on_text(c->user, text, length) : 0;
}

mica_status mica_task_generate(mica_task_job *job, const int32_t *tokens, size_t n, const mica_generate_options *options,
                               mica_buf *text, const char **reason, mica_error *err)
{
    mica_generate_options o = options ? *options : mica_generate_options_default();
    collector c = {text, o.on_text, o.user};
    mica_result result;
    o.on_text = collect;
    o.user = &c;
    o.sampling.temperature = 0.0f;
    mica_status status = mica_task_sync(job, tokens, n, err);
    if (status)
        return status;
    status = mica_session_generate(job->session, &o, &result, err);
    job->gen_n += result.gen_n;
    if (reason)
        *reason = result.stop_reason;
    return text->failed ? mica_fail_nomem(err, text->length, "the reply") : status;
}

void mica_task_stops(const mica_task *t, const char *stops[MICA_TASK_MAX_STOPS], mica_generate_options *o)
{
    o->stop = stops;
    for (; o->n_stop < json_array_size(t->stop) && o->n_stop < MICA_TASK_MAX_STOPS; o->n_stop++)
        stops[o->n_stop] = json_string_value(json_array_get(t->stop, o->n_stop));
}

json_t *mica_task_usage(const mica_task_job *job)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:f}", "prompt_tokens", (json_int_t)job->prompt_n, "cached_tokens",
                     (json_int_t)job->cached_n, "computed_tokens", (json_int_t)job->computed_n, "generated_tokens",
                     (json_int_t)job->gen_n, "ms", (double)(mica_now_ns() - job->begin_ns) / 1e6);
}
