#include "router/run_local.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/budget.h"
#include "device/memory.h"
#include "router/run_engine.h"

#define LOOK_MS 20 /* how often who waits for a rung looks whether its own time is over */

typedef struct loaded {
    struct loaded *next;
    char *path;
    int64_t context; /* of the rung, as the ladder says */
    mica_model *model;
    mica_session *session;
    mica_governor *governor; /* NULL: none */
    int64_t bytes, used_ns, began_ns;
    int64_t n_asking; /* requests that run here or wait for it */
    bool busy;
    mica_engine_reply reply; /* while it is busy */
} loaded;

struct mica_local {
    char *models_dir, *sysroot;
    int64_t budget;         /* bytes, for all together */
    int64_t session_budget; /* of one session: more than the usual one, if more was asked for; 0: that */
    int64_t reserved;       /* of the budget: what others have loaded */
    int64_t base_bytes;     /* resident when nothing was loaded */
    char *governor;         /* a policy; NULL: none */
    mica_device *device;    /* of the governors */
    int32_t n_threads;
    pthread_mutex_t lock;
    pthread_cond_t free_again;
    loaded *first; /* with the lock held, as what a rung that is not busy has */
};

/* ---- Making ---- */

static int64_t resident_bytes(void)
{
    mica_memory_usage usage; /* of this process, wherever sysroot is */
    return mica_memory_usage_read(NULL, &usage, NULL) == MICA_OK && usage.rss_bytes > 0 ? usage.rss_bytes : 0;
}

mica_status mica_local_new(const char *models_dir, const char *sysroot, int64_t budget, int32_t n_threads, mica_local **out,
                           mica_error *err)
{
    pthread_condattr_t attributes;
    mica_memory_bounds bounds, usual;
    mica_local *l = mica_new_array(1, sizeof *l);
    *out = NULL;
    if (!l)
        return mica_fail_nomem(err, sizeof *l, "the local rungs");
    l->models_dir = strdup(models_dir ? models_dir : "");
    l->sysroot = strdup(sysroot ? sysroot : "");
    l->n_threads = n_threads;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&l->free_again, &attributes);
    pthread_condattr_destroy(&attributes);
    mica_status status = l->models_dir && l->sysroot ? mica_memory_bounds_read(sysroot, 0, budget, 0, &bounds, err)
                                                     : mica_fail_nomem(err, sizeof *l, "the local rungs");
    if (!status)
        status = mica_memory_bounds_read(sysroot, 0, 0, 0, &usual, err);
    if (status) {
        mica_local_free(l);
        return status;
    }
    l->base_bytes = resident_bytes();
    l->budget = bounds.budget;
    l->session_budget = bounds.budget > usual.budget ? budget : 0;
    *out = l;
    return MICA_OK;
}

static void unload(loaded *m)
{
    mica_session_free(m->session);
    mica_governor_free(m->governor);
    mica_model_close(m->model);
    m->session = NULL;
    m->governor = NULL;
    m->model = NULL;
    m->bytes = 0;
}

void mica_local_free(mica_local *l)
{
    if (!l)
        return;
    for (loaded *m = l->first, *next; m; m = next) {
        next = m->next;
        unload(m);
        free(m->path);
        free(m);
    }
    pthread_cond_destroy(&l->free_again);
    pthread_mutex_destroy(&l->lock);
    free(l->models_dir);
    free(l->sysroot);
    free(l->governor);
    free(l);
}

static mica_status make_governor(const mica_local *l, mica_governor **out, mica_error *err)
{
    mica_governor_options o = mica_governor_options_default();
    o.policy = l->governor;
    o.policy_length = strlen(l->governor);
    o.device = l->device;
    o.sysroot = *l->sysroot ? l->sysroot : NULL;
    o.n_threads = l->n_threads;
    return mica_governor_new(&o, out, err);
}

mica_status mica_local_govern(mica_local *l, const char *policy, mica_device *device, mica_error *err)
{
    mica_governor *trial = NULL; /* a policy that is wrong is told now */
    l->device = device;
    l->governor = strdup(policy);
    mica_status status =
        l->governor ? make_governor(l, &trial, err) : mica_fail_nomem(err, strlen(policy), "a governor's policy");
    mica_governor_free(trial);
    return status;
}

void mica_local_reserve(mica_local *l, int64_t bytes)
{
    l->reserved = bytes;
}

bool mica_local_path(const mica_local *l, const char *file, char out[4096])
{
    bool whole = file[0] == '/' || !*l->models_dir;
    int n = snprintf(out, 4096, "%s%s%s", whole ? "" : l->models_dir, whole ? "" : "/", file);
    return n > 0 && n < 4096;
}

/* ---- What they weigh ---- */

static void usual_options(const mica_local *l, int64_t context, mica_session_options *o)
{
    *o = mica_session_options_default();
    o->n_ctx = context < INT32_MAX ? (int32_t)context : INT32_MAX;
    o->n_threads = l->n_threads;
    o->full_policy = MICA_FULL_STOP;
    o->memory_budget = l->session_budget;
    o->sysroot = *l->sysroot ? l->sysroot : NULL;
}

/* A plan counts what the process has now, other rungs too, which can be unloaded: the budget is larger by as much. With a limit
 * in bytes what is free now is not looked at: a decision does that each time. */
void mica_local_weigh(const mica_local *l, const char *path, int64_t context, mica_rung_weight *out)
{
    mica_session_options o;
    mica_budget b;
    int64_t more = resident_bytes() - l->base_bytes;
    more = more > 0 ? more : 0;
    *out = (mica_rung_weight){.peak_bytes = -1, .free_bytes = -1};
    usual_options(l, context, &o);
    if (l->budget < INT64_MAX) {
        int64_t left = l->budget - l->reserved + more;
        o.memory_budget = o.memory_limit = left > 0 ? left : 1;
    }
    if (mica_budget_check(path, &o, &b, NULL))
        return; /* whoever opens it says why */
    out->peak_bytes = b.plan.peak_bytes > more ? b.plan.peak_bytes - more : 0;
    out->free_bytes = b.plan.kv_bytes + b.plan.workspace_bytes;
    if (!b.fits && (b.plan.peak_bytes > b.budget_bytes || b.available_bytes < 0))
        snprintf(out->refusal, sizeof out->refusal, "%s", b.message);
}

/* ---- Which are loaded ---- */

static loaded *find(mica_local *l, const char *path, int64_t context)
{
    loaded *m = l->first;
    while (m && (strcmp(m->path, path) != 0 || m->context != context))
        m = m->next;
    return m;
}

bool mica_local_is_resident(mica_local *l, const char *file)
{
    char path[4096];
    bool resident = false;
    if (!mica_local_path(l, file, path))
        return false;
    pthread_mutex_lock(&l->lock);
    for (const loaded *m = l->first; m; m = m->next)
        resident = resident || (strcmp(m->path, path) == 0 && m->bytes > 0);
    pthread_mutex_unlock(&l->lock);
    return resident;
}

void mica_local_queue(mica_local *l, const char *path, int64_t context, int64_t *n, double *ran_ms)
{
    pthread_mutex_lock(&l->lock);
    const loaded *m = find(l, path, context);
    *n = m ? m->n_asking : 0;
    *ran_ms = m && m->busy ? (double)(mica_now_ns() - m->began_ns) / 1e6 : 0;
    pthread_mutex_unlock(&l->lock);
}

static loaded *add(mica_local *l, const char *path, int64_t context)
{
    loaded *m = mica_new_array(1, sizeof *m);
    if (!m)
        return NULL;
    m->path = strdup(path);
    m->context = context;
    if (!m->path) {
        free(m);
        return NULL;
    }
    m->next = l->first;
    l->first = m;
    return m;
}

static void wait_a_moment(mica_local *l)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += LOOK_MS * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&l->free_again, &l->lock, &t);
}

/* The rung for this call alone; NULL: the attempt is over, and says why. */
static loaded *take(mica_local *l, const char *path, int64_t context, mica_engine_reply *reply)
{
    pthread_mutex_lock(&l->lock);
    loaded *m = find(l, path, context);
    if (!m)
        m = add(l, path, context);
    if (!m)
        mica_try_fail(reply->t, MICA_FAILURE_NO_MEMORY, "no memory for another rung");
    else
        m->n_asking++;
    while (m && m->busy && !mica_engine_check(reply))
        wait_a_moment(l);
    if (m && m->busy) {
        m->n_asking--;
        m = NULL;
    }
    if (m) {
        m->busy = true;
        m->began_ns = mica_now_ns();
        m->reply = *reply;
    }
    pthread_mutex_unlock(&l->lock);
    return m;
}

static void give_back(mica_local *l, loaded *m)
{
    pthread_mutex_lock(&l->lock);
    m->busy = false;
    m->n_asking--;
    m->used_ns = mica_now_ns();
    pthread_cond_broadcast(&l->free_again);
    pthread_mutex_unlock(&l->lock);
}

/* ---- Loading ---- */

/* Makes room for `bytes` of `m` and books them; what is unloaded for it is freed here, which takes no time worth a second lock.
 */
static bool book(mica_local *l, loaded *m, int64_t bytes, bool *unloaded, mica_try *t)
{
    int64_t taken = 0;
    pthread_mutex_lock(&l->lock);
    for (;;) {
        loaded *oldest = NULL;
        taken = l->reserved;
        for (loaded *o = l->first; o; o = o->next) {
            taken += o->bytes;
            if (!o->busy && o->bytes > 0 && (!oldest || o->used_ns < oldest->used_ns))
                oldest = o;
        }
        if (bytes <= l->budget - taken || !oldest)
            break;
        unload(oldest);
        *unloaded = true;
    }
    bool fits = bytes <= l->budget - taken;
    if (fits)
        m->bytes = bytes;
    pthread_mutex_unlock(&l->lock);
    return fits ||
           mica_try_fail(t, MICA_FAILURE_NO_MEMORY, "it would take %lld MB; the budget is %lld MB, of which others use %lld MB",
                         (long long)(bytes >> 20), (long long)(l->budget >> 20), (long long)(taken >> 20));
}

static int on_prefill(void *user, int32_t done, int32_t total)
{
    (void)done;
    (void)total;
    return mica_engine_check(&((loaded *)user)->reply);
}

static void session_options(const mica_local *l, const loaded *m, loaded *user, mica_session_options *o)
{
    mica_model_info info;
    mica_model_get_info(m->model, &info);
    usual_options(l, m->context < info.n_ctx_train ? m->context : info.n_ctx_train, o);
    o->governor = m->governor;
    o->on_prefill = on_prefill;
    o->user = user;
}

static mica_status open_model(loaded *m, mica_error *err)
{
    const char *chat_template = m->reply.call->rung->chat_template; /* NULL, "": the model's own */
    mica_model_options options = mica_model_options_default();
    options.chat_template = chat_template && *chat_template ? chat_template : NULL;
    mica_model_close(m->model);
    m->model = NULL;
    return mica_model_open(m->path, &options, &m->model, err);
}

/* A model that was opened while others were loaded would count them in its peak: where they had to go, it is opened again. */
static bool make_room(mica_local *l, loaded *m, mica_try *t)
{
    mica_session_options o;
    mica_memory_plan plan;
    mica_error err;
    bool unloaded = false;
    session_options(l, m, m, &o);
    if (mica_session_plan(m->model, &o, &plan, &err))
        return mica_try_fail(t, MICA_FAILURE_ENGINE, "%s", err.message);
    if (!book(l, m, plan.total_bytes, &unloaded, t))
        return false;
    return !unloaded || !open_model(m, &err) || mica_try_fail(t, MICA_FAILURE_NO_MODEL, "%s", err.message);
}

static bool load(mica_local *l, loaded *m, mica_try *t)
{
    mica_session_options o;
    mica_error err;
    if (m->session)
        return true;
    if (open_model(m, &err))
        return mica_try_fail(t, MICA_FAILURE_NO_MODEL, "%s", err.message);
    if (!make_room(l, m, t))
        return false;
    mica_status status = l->governor ? make_governor(l, &m->governor, &err) : MICA_OK;
    session_options(l, m, m, &o);
    if (!status)
        status = mica_session_new(m->model, &o, &m->session, &err);
    if (!status)
        return true;
    bool memory = status == MICA_OUT_OF_MEMORY || status == MICA_OVER_BUDGET;
    return mica_try_fail(t, memory ? MICA_FAILURE_NO_MEMORY : MICA_FAILURE_ENGINE, "%s", err.message);
}

static void note_wish(const loaded *m, mica_try *t)
{
    mica_governor_info info;
    if (!m->governor)
        return;
    mica_governor_get_info(m->governor, &info);
    t->lower_rung = info.output.lower_rung;
}

void mica_local_run(mica_local *l, const mica_local_call *call, mica_try *t)
{
    char path[4096];
    mica_engine_reply reply = {.call = call, .t = t};
    loaded *m = NULL;
    if (!mica_local_path(l, call->rung->file, path))
        mica_try_fail(t, MICA_FAILURE_NO_MODEL, "the path of the rung's file is too long");
    else
        m = take(l, path, call->rung->context, &reply);
    if (m && load(l, m, t)) {
        mica_model_info info;
        mica_model_get_info(m->model, &info);
        snprintf(t->model, sizeof t->model, "%s", *info.name ? info.name : call->rung->name);
        t->work_ns = mica_now_ns();
        mica_engine_run(m->model, m->session, &m->reply);
        note_wish(m, t);
    } else if (m) {
        pthread_mutex_lock(&l->lock);
        unload(m);
        pthread_mutex_unlock(&l->lock);
    }
    if (m)
        give_back(l, m);
    t->end_ns = mica_now_ns();
}
