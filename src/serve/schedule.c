#include "serve/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

typedef struct mica_slot {
    mica_schedule *schedule;
    mica_session *session;
    mica_choice *choice; /* NULL: idle */
    uint64_t last_used;  /* a count of replies; 0: never */
} mica_slot;

typedef struct request_list {
    mica_request *first, **end;
} request_list;

struct mica_schedule {
    const mica_serve_context *context;
    mica_batch *batch;
    int32_t n_slots, n_busy;
    mica_slot *slots;
    uint64_t replies;
    request_list waiting; /* the thread's own */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t news;
    request_list inbox; /* with the lock held, as all below */
    mica_schedule_task *first_task, *last_task;
    bool stopping, look;
};

/* ---- Lists ---- */

static void list_init(request_list *list)
{
    *list = (request_list){NULL, &list->first};
}

static void list_add(request_list *list, mica_request *r)
{
    r->next = NULL;
    *list->end = r;
    list->end = &r->next;
}

static void list_move(request_list *to, request_list *from)
{
    if (!from->first)
        return;
    *to->end = from->first;
    to->end = from->end;
    list_init(from);
}

/* ---- Requests that end ---- */

/* Neither running nor waiting any more. */
static void release_request(mica_request *r)
{
    if (r->n_started > 0)
        atomic_fetch_sub(&r->context->metrics->running, 1);
    mica_request_free(r);
}

static bool waits(const mica_schedule *s, const mica_request *wanted)
{
    for (const mica_request *r = s->waiting.first; r; r = r->next)
        if (r == wanted)
            return true;
    return false;
}

static void on_done(void *user, mica_status status, const mica_result *result, const mica_error *error)
{
    mica_choice *c = user;
    mica_slot *slot = c->slot;
    mica_schedule *s = slot->schedule;
    mica_request *r = c->request;
    slot->choice = NULL;
    slot->last_used = ++s->replies;
    s->n_busy--;
    mica_choice_finish(c, status, result, error);
    if (r->n_ended == r->n_started && !waits(s, r))
        release_request(r);
}

/* ---- Slots ---- */

static size_t common_prefix(const mica_session *session, const mica_prompt *p)
{
    size_t n, i = 0;
    const int32_t *tokens = mica_session_tokens(session, &n);
    n = n < p->n ? n : p->n;
    while (i < n && tokens[i] == p->tokens[i])
        i++;
    return i;
}

static mica_slot *choose_slot(mica_schedule *s, const mica_prompt *p)
{
    mica_slot *best = NULL;
    size_t longest = 0;
    for (int32_t i = 0; i < s->n_slots; i++) {
        mica_slot *slot = &s->slots[i];
        size_t n = slot->choice ? 0 : common_prefix(slot->session, p);
        if (!slot->choice && (!best || n > longest || (n == longest && slot->last_used < best->last_used))) {
            best = slot;
            longest = n;
        }
    }
    return best;
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
    if (mica_batch_submit(slot->session, c->prompt->tokens, c->prompt->n, &options, &err)) {
        mica_fault_engine(&r->fault, &err, NULL);
        mica_request_fail(r, &r->fault);
        return false;
    }
    if (r->n_started++ == 0) {
        atomic_fetch_add(&r->context->metrics->running, 1);
        mica_histogram_add(&r->context->metrics->queue_time, (double)(c->started_ns - r->job->arrived_ns) / 1e9);
    }
    c->slot = slot;
    slot->choice = c;
    s->n_busy++;
    return true;
}

/* Starts what there are slots for; a request leaves the list when its last choice has started. */
static void start_waiting(mica_schedule *s)
{
    while (s->waiting.first && s->n_busy < s->n_slots) {
        mica_request *r = s->waiting.first;
        mica_choice *c = &r->choices[r->n_started];
        bool good = start_choice(s, choose_slot(s, c->prompt), c);
        if (good && r->n_started < r->n_choices)
            continue;
        s->waiting.first = r->next;
        if (!s->waiting.first)
            list_init(&s->waiting);
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
    request_list all = s->waiting;
    if (!all.first)
        return;
    list_init(&s->waiting);
    for (mica_request *r = all.first, *next; r; r = next) {
        next = r->next;
        check_time(r, now);
        if (!mica_request_is_dropped(r))
            list_add(&s->waiting, r);
        else if (r->n_ended == r->n_started)
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

static void measure(mica_schedule *s)
{
    size_t n, total = 0;
    for (int32_t i = 0; i < s->n_slots; i++) {
        (void)mica_session_tokens(s->slots[i].session, &n);
        total += n;
    }
    atomic_store(&s->context->metrics->kv_tokens, (int64_t)total);
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
    start_waiting(s);
    if (s->n_busy > 0) {
        (void)mica_batch_step(s->batch); /* on_done keeps count */
        atomic_fetch_add(&s->context->metrics->steps, 1);
    }
    measure(s);
}

bool mica_schedule_breathe(mica_schedule *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stopping;
    list_move(&s->waiting, &s->inbox);
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
        list_move(&s->waiting, &s->inbox);
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
    mica_schedule *s = mica_new_array(1, sizeof *s);
    *out = NULL;
    if (!s)
        return mica_fail_nomem(err, sizeof *s, "the scheduler");
    s->context = context;
    s->n_slots = options->max_sessions;
    list_init(&s->waiting);
    list_init(&s->inbox);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    mica_status status = mica_batch_new(context->model, options, &s->batch, err);
    if (!status)
        status = make_slots(s, err);
    if (!status && pthread_create(&s->thread, NULL, run, s))
        status = mica_fail(err, MICA_OUT_OF_MEMORY, "the system refuses another thread");
    s->started = !status;
    if (status) {
        mica_schedule_free(s);
        return status;
    }
    atomic_store(&context->metrics->slots, s->n_slots);
    atomic_store(&context->metrics->kv_capacity, (int64_t)s->n_slots * context->n_ctx);
    *out = s;
    return MICA_OK;
}

void mica_schedule_free(mica_schedule *s)
{
    if (!s)
        return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->stopping = true;
        pthread_cond_signal(&s->news);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    mica_batch_free(s->batch); /* and its sessions */
    free(s->slots);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->news);
    free(s);
}

void mica_schedule_submit(mica_schedule *s, mica_request *r)
{
    pthread_mutex_lock(&s->lock);
    list_add(&s->inbox, r);
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
