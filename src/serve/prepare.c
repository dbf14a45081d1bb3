#include "serve/prepare.h"

#include <stdlib.h>

#include "base/mem.h"

struct mica_prepare {
    void (*work)(void *user, mica_job *job);
    void *user;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    mica_job *first, *last; /* with the lock held, as `stopping` */
    bool stopping;
};

static mica_job *take(mica_prepare *p)
{
    mica_job *job = p->first;
    if (job) {
        p->first = job->next;
        p->last = p->first ? p->last : NULL;
    }
    return job;
}

static void *run(void *user)
{
    mica_prepare *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        mica_job *job = take(p);
        if (!job) {
            pthread_cond_wait(&p->news, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        if (!atomic_load(&job->gone))
            p->work(p->user, job);
        mica_job_release(job);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

mica_status mica_prepare_new(void (*work)(void *, mica_job *), void *user, mica_prepare **out, mica_error *err)
{
    mica_prepare *p = mica_new_array(1, sizeof *p);
    *out = NULL;
    if (!p)
        return mica_fail_nomem(err, sizeof *p, "the preparing thread");
    p->work = work;
    p->user = user;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->news, NULL);
    if (pthread_create(&p->thread, NULL, run, p)) {
        free(p);
        return mica_fail(err, MICA_OUT_OF_MEMORY, "the system refuses another thread");
    }
    *out = p;
    return MICA_OK;
}

void mica_prepare_free(mica_prepare *p)
{
    mica_fault fault;
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_signal(&p->news);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    mica_fault_set(&fault, 503, "shutting_down", NULL, "the server is shutting down");
    for (mica_job *job; (job = take(p));) {
        mica_job_fail(job, &fault);
        mica_job_release(job);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->news);
    free(p);
}

void mica_prepare_add(mica_prepare *p, mica_job *job)
{
    pthread_mutex_lock(&p->lock);
    job->next = NULL;
    if (p->last)
        p->last->next = job;
    else
        p->first = job;
    p->last = job;
    pthread_cond_signal(&p->news);
    pthread_mutex_unlock(&p->lock);
}
