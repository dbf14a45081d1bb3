/* route_engine.c - the rung whose file is the model that is served: a request of our own to the scheduler, and its event stream
 * read as that of a server elsewhere. So a rung's reply is the one that a client of the model gets. Runs on a thread that may
 * wait. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "router/remote_reply.h"
#include "router/remote_sse.h"
#include "serve/route_mode.h"

#define LOOK_MS   20
#define EVENT_MAX ((size_t)1 << 20)

typedef struct inner {
    mica_server *server;
    const mica_local_call *call;
    mica_try *t;
    mica_outbox outbox;
    mica_job *job;
    mica_sse sse;
    bool ended;
} inner;

static bool is_served(const mica_server *s, const char *file)
{
    char *a = s->options.model_path ? realpath(s->options.model_path, NULL) : NULL, *b = realpath(file, NULL);
    bool same = a && b && strcmp(a, b) == 0;
    free(a);
    free(b);
    return same;
}

static int on_event(void *user, const char *data, size_t length)
{
    inner *x = user;
    return strcmp(data, "[DONE]") != 0 && !mica_remote_chunk(x->t, x->call->link, data, length);
}

/* What the scheduler said since the last time; each job of the box is ours. */
static void read_news(inner *x)
{
    mica_error err;
    mica_outbox_woken(&x->outbox);
    for (mica_job *job; (job = mica_outbox_take(&x->outbox)); mica_job_release(job)) {
        pthread_mutex_lock(&x->outbox.lock);
        mica_buf news = job->out;
        bool ended = job->ended;
        mica_buf_init(&job->out, MICA_SERVE_REPLY_MAX);
        pthread_mutex_unlock(&x->outbox.lock);
        if (!x->t->failure &&
            mica_sse_feed(&x->sse, news.data ? news.data : "", news.length, on_event, x, &err) == MICA_BAD_TEXT)
            mica_try_fail(x->t, MICA_FAILURE_TOO_LONG, "%s", err.message);
        x->ended = x->ended || ended;
        mica_buf_free(&news);
    }
}

static void check_time(inner *x)
{
    const mica_local_call *call = x->call;
    int64_t now = mica_now_ns(), ms = 1000000;
    if (call->link->stop && call->link->stop(call->link->user))
        mica_try_fail(x->t, MICA_FAILURE_CANCELLED, "nobody waits for the reply any more");
    else if (now >= call->link->deadline_ns)
        mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "the request's time is over");
    else if (call->total_ms > 0 && now - x->t->start_ns > call->total_ms * ms)
        mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "no whole reply within %lld ms", (long long)call->total_ms);
    else if (call->first_ms > 0 && !x->t->first_ns && now - x->t->start_ns > call->first_ms * ms)
        mica_try_fail(x->t, MICA_FAILURE_TIMEOUT, "no text within %lld ms", (long long)call->first_ms);
}

/* Until nobody but us has the job: its outbox is on our stack. The scheduler looks at jobs that are gone between two steps. */
static void let_go(inner *x)
{
    atomic_store(&x->job->gone, true);
    mica_schedule_look(x->server->schedule);
    for (;;) {
        struct pollfd wake = {.fd = x->outbox.wake, .events = POLLIN};
        read_news(x);
        if (atomic_load(&x->job->references) == 1)
            break;
        (void)poll(&wake, 1, 1);
    }
    mica_job_release(x->job);
}

static void follow(inner *x)
{
    struct pollfd wake = {.fd = x->outbox.wake, .events = POLLIN};
    while (!x->ended && !x->t->failure) {
        (void)poll(&wake, 1, LOOK_MS);
        read_news(x);
        if (!x->ended && !x->t->failure)
            check_time(x);
    }
    if (!x->t->failure && !*x->t->finish)
        mica_try_fail(x->t, MICA_FAILURE_CUT, "the reply ended before its end");
}

static mica_job *make_job(inner *x)
{
    static const mica_endpoint form = {.stream = true};
    size_t length = 0;
    const mica_local_call *call = x->call;
    char *body = mica_run_body_remote(call->body, &form, json_incref(call->messages), call->max_tokens, &length);
    mica_job *job = body ? mica_job_new(&x->outbox, mica_route_count(), body, length) : NULL;
    if (job)
        job->deadline_ns = call->link->deadline_ns;
    return job;
}

static void run(inner *x)
{
    mica_fault fault;
    x->job = make_job(x);
    if (!x->job) {
        mica_try_fail(x->t, MICA_FAILURE_NO_MEMORY, "no memory for the request");
        return;
    }
    mica_request *r = mica_request_new(&x->server->context, &mica_api_chat, x->job, NULL, 0, &fault);
    if (r) {
        mica_job_stream(x->job);
        mica_schedule_submit(x->server->schedule, r);
        follow(x);
    } else {
        bool context = fault.code && strcmp(fault.code, "context_length_exceeded") == 0;
        mica_try_fail(x->t, context ? MICA_FAILURE_CONTEXT : MICA_FAILURE_ENGINE, "%s", fault.message);
    }
    x->t->work_ns = atomic_load(&x->job->started_ns);
    x->t->lower_rung = atomic_load(&x->server->metrics.lower_rung);
    let_go(x);
}

static bool run_here(void *user, const mica_local_call *call, mica_try *t)
{
    inner x = {.server = user, .call = call, .t = t};
    mica_error err;
    char path[4096];
    if (!mica_local_path(x.server->options.runner->local, call->rung->file, path) || !is_served(x.server, path))
        return false;
    if (mica_outbox_init(&x.outbox, &err)) {
        mica_try_fail(t, MICA_FAILURE_NO_MEMORY, "%s", err.message);
        return true;
    }
    mica_sse_init(&x.sse, EVENT_MAX);
    run(&x);
    mica_sse_free(&x.sse);
    mica_outbox_close(&x.outbox);
    t->end_ns = mica_now_ns();
    return true;
}

static bool load_here(void *user, const char *path, mica_engine_load *out)
{
    const mica_server *s = user;
    if (!is_served(s, path))
        return false;
    *out = (mica_engine_load){.n_running = atomic_load(&s->metrics.running),
                              .n_waiting = atomic_load(&s->metrics.queued),
                              .n_slots = atomic_load(&s->metrics.slots)};
    return true;
}

mica_status mica_route_mode_engine(mica_server *s, mica_run_engine *out, mica_error *err)
{
    mica_memory_plan plan;
    mica_status status = mica_batch_plan(s->options.model, &s->options.batch, &plan, err);
    *out = (mica_run_engine){.run = run_here, .load = load_here, .user = s};
    if (!status)
        out->bytes = plan.peak_bytes - plan.fixed_bytes; /* the program itself is there anyway */
    return status;
}
