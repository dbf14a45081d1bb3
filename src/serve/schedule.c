#include "serve/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "mica/mica_governor.h"
#include "serve/queue.h"

typedef struct mica_slot {
    mica_schedule *schedule;
    mica_session *session;
    mica_choice *choice; /* NULL: idle */
} mica_slot;

struct mica_schedule {
    const mica_serve_context *context;
    mica_batch *batch;
    mica_governor *governor; /* NULL: none */
    int32_t n_slots, n_busy;
    int64_t measured_ns;
    mica_slot *slots;
    mica_queue waiting; /* the thread's own */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t news;
    mica_queue inbox; /* with the lock held, as all below */
    mica_schedule_task *first_task, *last_task;
    bool stopping, look;
};

/* ---- Requests that end ---- */

/* Neither running nor waiting any more. */
static void release_request(mica_request *r)
{
    if (r->n_started > 0)
        atomic_fetch_sub(&r->context->metrics->running, 1);
    mica_request_free(r);
}

/* For those who choose between models. */
static void note_wish(const mica_schedule *s)
{
    mica_governor_info info;
    if (!s->governor)
        return;
    mica_governor_get_info(s->governor, &info);
    atomic_store(&s->context->metrics->lower_rung, info.output.lower_rung);
}

static void on_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    mica_choice *c = user;
    mica_slot *slot = c->slot;
    mica_schedule *s = slot->schedule;
    mica_request *r = c->request;
    slot->choice = NULL;
    s->n_busy--;
    (void)mica_session_set_receipt(slot->session, NULL, NULL);
    note_wish(s);
    mica_choice_finish(c, status, result, error);
    (void)mica_session_reset(slot->session, NULL); /* what it computed stays in the batch's prefixes */
    if (r->n_ended == r->n_started && !mica_queue_has(&s->waiting, r))
        release_request(r);
}

/* ---- Slots ---- */

static mica_slot *idle_slot(mica_schedule *s)
{
    int32_t i = 0;
    while (s->slots[i].choice)
        i++;
    return &s->slots[i];
}

/* Whether the prompt fits beside what runs: starting it would only take memory from others. What runs alone always fits. */
static bool has_room(const mica_schedule *s, const mica_prompt *p)
{
    mica_batch_info info;
    mica_batch_get_info(s->batch, &info);
    return s->n_busy == 0 || info.kv_held + (int64_t)p->n < info.kv_tokens;
}

/* False: the request has failed. */
static bool start_choice(mica_schedule *s, mica_slot *slot, mica_choice *c)
{
    mica_generate_options options;
    mica_error err;
    mica_request *r = c->request;
    if (!mica_choice_start(c, &options, &r->fault)) {
        mica_request_fail(r, &r->fault);
        return false;
    }
    options.on_done = on_done;
    if (mica_session_set_receipt(slot->session, c->receipt, &err) ||
        mica_batch_submit(slot->session, c->prompt->tokens, c->prompt->n, &options, &err)) {
        (void)mica_session_set_receipt(slot->session, NULL, NULL);
        mica_fault_engine(&r->fault, &err, NULL);
        mica_request_fail(r, &r->fault);
        return false;
    }
    if (r->n_started++ == 0) {
        atomic_fetch_add(&r->context->metrics->running, 1);
        atomic_store(&r->job->started_ns, c->started_ns);
        mica_histogram_add(&r->context->metrics->queue_time, (double)(c->started_ns - r->job->arrived_ns) / 1e9);
    }
    c->slot = slot;
    slot->choice = c;
    s->n_busy++;
    return true;
}

static int32_t running_of(const void *user, uint64_t client)
{
    const mica_schedule *s = user;
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_slots; i++)
        n += s->slots[i].choice && s->slots[i].choice->request->client == client;
    return n;
}

static void leave_queue(mica_schedule *s, mica_request *r)
{
    mica_queue_remove(&s->waiting, r);
    atomic_fetch_sub(&s->context->metrics->queued, 1);
}

/* Starts what there are slots for; a request leaves the queue when its last choice has started. */
static void start_waiting(mica_schedule *s, int64_t now)
{
    while (s->waiting.first && s->n_busy < s->n_slots) {
        mica_request *r = mica_queue_next(&s->waiting, now, running_of, s);
        mica_choice *c = &r->choices[r->n_started];
        if (!has_room(s, c->prompt))
            break;
        bool good = start_choice(s, idle_slot(s), c);
        if (good && r->n_started < r->n_choices)
            continue;
        leave_queue(s, r);
        if (r->n_ended == r->n_started)
            release_request(r);
    }
}

/* ---- What is to be dropped ---- */

static void check_time(mica_request *r, int64_t now)
{
    if (mica_request_is_dropped(r) || now < r->job->deadline_ns)
        return;
    atomic_fetch_add(&r->context->metrics->timeouts, 1);
    mica_fault_set(&r->fault, r->n_started > 0 ? 504 : 503, "timeout", NULL,
                   "the request reached the server's time limit after %.0f s, %s", (double)(now - r->job->arrived_ns) / 1e9,
                   r->n_started > 0 ? "while its reply was being made" : "while it waited for a slot");
    mica_request_fail(r, &r->fault);
}

static void drop_waiting(mica_schedule *s, int64_t now)
{
    for (mica_request *r = s->waiting.first, *next; r; r = next) {
        next = r->next;
        check_time(r, now);
        if (!mica_request_is_dropped(r))
            continue;
        leave_queue(s, r);
        if (r->n_ended == r->n_started)
            release_request(r);
    }
}

static void cancel_running(mica_schedule *s, int64_t now)
{
    for (int32_t i = 0; i < s->n_slots; i++) {
        mica_choice *c = s->slots[i].choice;
        if (c)
            check_time(c->request, now);
        if (c && mica_request_is_dropped(c->request))
            mica_session_cancel(s->slots[i].session);
    }
}

/* Ten times a second: it looks at every block. */
static void measure(mica_schedule *s, int64_t now)
{
    mica_metrics *m = s->context->metrics;
    mica_batch_info info;
    if (now - s->measured_ns < 100000000 && s->n_busy > 0)
        return;
    s->measured_ns = now;
    mica_batch_get_info(s->batch, &info);
    atomic_store(&m->kv_tokens, info.kv_held);
    atomic_store(&m->kv_cached, info.kv_cached);
    atomic_store(&m->kv_evictions, info.evictions);
    atomic_store(&m->suspensions, info.suspensions);
}

/* ---- Tasks ---- */

void mica_schedule_add(mica_schedule *s, mica_schedule_task *task)
{
    pthread_mutex_lock(&s->lock);
    task->next = NULL;
    if (s->first_task)
        s->last_task->next = task;
    else
        s->first_task = task;
    s->last_task = task;
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
}

static mica_schedule_task *take_task(mica_schedule *s)
{
    mica_schedule_task *task = s->first_task;
    if (task)
        s->first_task = task->next;
    return task;
}

/* ---- The thread ---- */

static void work(mica_schedule *s)
{
    int64_t now = mica_now_ns();
    drop_waiting(s, now);
    cancel_running(s, now);
    start_waiting(s, now);
    if (s->n_busy > 0) {
        (void)mica_batch_step(s->batch); /* on_done keeps count */
        atomic_fetch_add(&s->context->metrics->steps, 1);
    }
    measure(s, now);
}

bool mica_schedule_breathe(mica_schedule *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stopping;
    mica_queue_move(&s->waiting, &s->inbox);
    pthread_mutex_unlock(&s->lock);
    if (!stop)
        work(s);
    return !stop;
}

static void fail_all(mica_schedule *s)
{
    mica_fault fault;
    mica_fault_set(&fault, 503, "shutting_down", NULL, "the server is shutting down");
    for (mica_request *r = s->waiting.first; r; r = r->next)
        mica_request_fail(r, &fault);
    for (int32_t i = 0; i < s->n_slots; i++)
        if (s->slots[i].choice)
            mica_request_fail(s->slots[i].choice->request, &fault);
    while (s->waiting.first || s->n_busy > 0)
        work(s);
}

static void *run(void *user)
{
    mica_schedule *s = user;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        while (!s->inbox.first && !s->waiting.first && s->n_busy == 0 && !s->look && !s->stopping && !s->first_task)
            pthread_cond_wait(&s->news, &s->lock);
        bool stop = s->stopping;
        s->look = false;
        mica_queue_move(&s->waiting, &s->inbox);
        mica_schedule_task *task = stop ? NULL : take_task(s);
        pthread_mutex_unlock(&s->lock);
        if (stop)
            break;
        work(s);
        if (task)
            task->run(task, false);
        pthread_mutex_lock(&s->lock);
    }
    fail_all(s);
    for (mica_schedule_task *task; (task = take_task(s));) /* nobody adds any more */
        task->run(task, true);
    return NULL;
}

/* ---- Making ---- */

static mica_status make_slots(mica_schedule *s, mica_error *err)
{
    mica_session_options o = mica_session_options_default();
    mica_status status = MICA_OK;
    o.full_policy = MICA_FULL_STOP;
    o.n_ctx = s->context->n_ctx;
    s->slots = mica_new_array((size_t)s->n_slots, sizeof *s->slots);
    if (!s->slots)
        return mica_fail_nomem(err, (size_t)s->n_slots * sizeof *s->slots, "the slots");
    for (int32_t i = 0; !status && i < s->n_slots; i++) {
        s->slots[i].schedule = s;
        status = mica_batch_session_new(s->batch, &o, &s->slots[i].session, err);
    }
    return status;
}

mica_status mica_schedule_new(const mica_serve_context *context, const mica_batch_options *options, mica_schedule **out,
                              mica_error *err)
{
    mica_batch_info info;
    mica_schedule *s = mica_new_array(1, sizeof *s);
    *out = NULL;
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "the scheduler");
    s->context = context;
    s->n_slots = options->max_sessions;
    s->governor = options->governor;
    mica_queue_init(&s->waiting);
    mica_queue_init(&s->inbox);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    mica_status status = mica_batch_new(context->model, options, &s->batch, err);
    if (!status)
        status = make_slots(s, err);
    if (status) {
        mica_schedule_free(s);
        return status;
    }
    atomic_store(&context->metrics->slots, s->n_slots);
    mica_batch_get_info(s->batch, &info);
    atomic_store(&context->metrics->kv_capacity, info.kv_tokens);
    *out = s;
    return MICA_OK;
}

mica_batch *mica_schedule_batch(mica_schedule *s) { return s->batch; }

mica_status mica_schedule_start(mica_schedule *s, mica_error *err)
{
    if (pthread_create(&s->thread, NULL, run, s))
        return mica_fail(err, MICA_OUT_OF_MEMORY, "the system refuses another thread");
    s->started = true;
    return MICA_OK;
}

void mica_schedule_end(mica_schedule *s)
{
    if (!s->started)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    s->started = false;
}

void mica_schedule_free(mica_schedule *s)
{
    if (!s)
        return;
    mica_schedule_end(s);
    mica_batch_free(s->batch); /* and its sessions */
    free(s->slots);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->news);
    free(s);
}

void mica_schedule_submit(mica_schedule *s, mica_request *r)
{
    atomic_fetch_add(&s->context->metrics->queued, 1);
    pthread_mutex_lock(&s->lock);
    mica_queue_add(&s->inbox, r);
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
}

void mica_schedule_look(mica_schedule *s)
{
    pthread_mutex_lock(&s->lock);
    s->look = true;
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
}
