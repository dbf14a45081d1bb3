#include "serve/side.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/http.h"

/* Tokens that are computed at once: half of a batch's step, so that streams wait less than for a step more. */
#define SIDE_CHUNK 128

struct mica_side {
    mica_session *session;
    mica_side_task *task; /* that has its turn; NULL: none */
};

void mica_side_free(mica_side *side)
{
    if (!side)
        return;
    mica_session_free(side->session);
    free(side);
}

void mica_side_shed(mica_side *side, mica_side **owner)
{
    if (!side || side->task)
        return;
    mica_side_free(side);
    *owner = NULL;
}

static bool is_unwanted(const mica_side_task *t)
{
    return t->stopping || atomic_load(&t->job->gone) || mica_now_ns() >= t->job->deadline_ns;
}

/* Between two chunks: others get their turn; non-zero where there is no more use in going on. */
static int on_chunk(void *user, int32_t done, int32_t total)
{
    mica_side_task *t = ((mica_side *)user)->task;
    if (done == total)
        return 0;
    t->stopping = !mica_schedule_breathe(t->server->schedule);
    return is_unwanted(t);
}

/* The bounds on memory are the server's: a plan counts what the batch has. */
static void session_options(const mica_server *s, mica_session_options *o)
{
    const mica_batch_options *b = &s->options.batch;
    *o = mica_session_options_default();
    o->full_policy = MICA_FULL_STOP; /* as the slots */
    o->n_ctx = s->context.n_ctx;
    o->n_threads = b->n_threads;
    o->cpus = b->cpus;
    o->prefill_chunk = SIDE_CHUNK;
    o->sysroot = b->sysroot;
    o->kv_k = b->kv_k;
    o->kv_v = b->kv_v;
    o->on_prefill = on_chunk;
    o->memory_budget = b->memory_budget;
    o->memory_limit = b->memory_limit;
    o->app_limit = b->app_limit;
    o->constrained = b->constrained;
}

static mica_status make_side(mica_server *s, mica_error *err)
{
    mica_session_options o;
    mica_side *side = mica_new_array(1, sizeof *side);
    if (!side)
        return mica_fail_nomem(err, sizeof *side, "the session beside the slots");
    session_options(s, &o);
    o.user = side;
    mica_status status = mica_session_new(s->context.model, &o, &side->session, err);
    if (status)
        mica_side_free(side);
    else
        s->side = side;
    return status;
}

mica_status mica_side_begin(mica_side_task *t, bool stopping, mica_session **session, mica_error *err)
{
    mica_server *s = t->server;
    t->stopping = stopping;
    t->started_ns = mica_now_ns();
    if (is_unwanted(t))
        return mica_fail(err, MICA_CANCELLED, "nobody waits for this any more");
    mica_status status = s->side ? MICA_OK : make_side(s, err);
    if (!status) {
        s->side->task = t;
        *session = s->side->session;
    }
    return status;
}

void mica_side_end(mica_side_task *t)
{
    if (t->server->side)
        t->server->side->task = NULL;
}

void mica_side_fault(const mica_side_task *t, const mica_error *err, const char *param, mica_fault *fault)
{
    if (t->stopping) {
        mica_fault_set(fault, 503, "shutting_down", NULL, "the server is shutting down");
    } else if (err->code == MICA_CANCELLED) { /* by time, or because nobody reads this */
        if (!atomic_load(&t->job->gone))
            atomic_fetch_add(&t->server->metrics.timeouts, 1);
        mica_fault_set(fault, 504, "timeout", NULL,
                       "the request reached the server's time limit while its \"%s\" was being read", param);
    } else {
        mica_fault_engine(fault, err, param);
    }
}
