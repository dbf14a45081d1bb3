#include "serve/job.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/limits.h"

mica_status mica_outbox_init(mica_outbox *box, mica_error *err)
{
    *box = (mica_outbox){.first = NULL};
    pthread_mutex_init(&box->lock, NULL);
    box->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return box->wake >= 0 ? MICA_OK : mica_fail(err, MICA_IO_ERROR, "the system gives no eventfd: %s", strerror(errno));
}

void mica_outbox_close(mica_outbox *box)
{
    for (mica_job *job; (job = mica_outbox_take(box));)
        mica_job_release(job);
    if (box->wake >= 0)
        close(box->wake);
    pthread_mutex_destroy(&box->lock);
}

void mica_outbox_woken(mica_outbox *box)
{
    uint64_t count;
    if (read(box->wake, &count, sizeof count) < 0)
        return; /* woken for nothing */
}

mica_job *mica_outbox_take(mica_outbox *box)
{
    pthread_mutex_lock(&box->lock);
    mica_job *job = box->first;
    if (job) {
        box->first = job->next_news;
        box->last = box->first ? box->last : NULL;
        job->next_news = NULL;
        job->listed = false; /* from here on it may be listed anew */
    }
    pthread_mutex_unlock(&box->lock);
    return job;
}

/* With the lock held. */
static void list(mica_job *job)
{
    mica_outbox *box = job->outbox;
    uint64_t one = 1;
    if (job->listed)
        return;
    job->listed = true;
    job->next_news = NULL;
    if (box->last)
        box->last->next_news = mica_job_retain(job);
    else
        box->first = mica_job_retain(job);
    box->last = job;
    if (write(box->wake, &one, sizeof one) < 0)
        return; /* the counter is full: then the HTTP thread has been woken often enough */
}

mica_job *mica_job_new(mica_outbox *box, size_t route, char *body, size_t length)
{
    mica_job *job = calloc(1, sizeof *job);
    if (!job) {
        free(body);
        return NULL;
    }
    atomic_init(&job->references, 1);
    atomic_init(&job->gone, false);
    job->route = route;
    job->arrived_ns = mica_now_ns();
    job->body = body;
    job->length = length;
    job->outbox = box;
    mica_buf_init(&job->out, MICA_SERVE_REPLY_MAX);
    return job;
}

mica_job *mica_job_retain(mica_job *job)
{
    atomic_fetch_add(&job->references, 1);
    return job;
}

void mica_job_release(mica_job *job)
{
    if (!job || atomic_fetch_sub(&job->references, 1) > 1)
        return;
    if (job->in_flight)
        atomic_fetch_sub(job->in_flight, 1);
    mica_buf_free(&job->out);
    free(job->body);
    free(job);
}

void mica_job_reply(mica_job *job, int status, const char *type, const char *data, size_t length)
{
    static const char no_memory[] =
        "{\"error\":{\"message\":\"the server has no memory for the answer\",\"type\":\"server_error\","
        "\"param\":null,\"code\":\"out_of_memory\"}}";
    pthread_mutex_lock(&job->outbox->lock);
    if (!job->ended) {
        bool good = data && mica_buf_append(&job->out, data, length);
        if (!good)
            mica_buf_append(&job->out, no_memory, sizeof no_memory - 1);
        job->status = good ? status : 500;
        job->type = good ? type : "application/json";
        job->ended = true;
        list(job);
    }
    pthread_mutex_unlock(&job->outbox->lock);
}

void mica_job_fail(mica_job *job, const mica_fault *fault)
{
    char *json = mica_fault_json(fault);
    if (!job->streams) { /* set by this thread, or by the one before it */
        mica_job_reply(job, fault->status, "application/json", json, json ? strlen(json) : 0);
    } else {
        mica_job_send(job, "data: ", 6);
        mica_job_send(job, json ? json : "{}", json ? strlen(json) : 2);
        mica_job_send(job, "\n\n", 2);
        mica_job_end(job);
    }
    free(json);
}

void mica_job_stream(mica_job *job)
{
    pthread_mutex_lock(&job->outbox->lock);
    job->status = 200;
    job->type = "text/event-stream; charset=utf-8";
    job->streams = true;
    list(job);
    pthread_mutex_unlock(&job->outbox->lock);
}

void mica_job_send(mica_job *job, const char *data, size_t length)
{
    pthread_mutex_lock(&job->outbox->lock);
    if (!job->ended && !atomic_load(&job->gone)) {
        mica_buf_append(&job->out, data, length); /* over its maximum it stays failed, and the HTTP thread drops the stream */
        list(job);
    }
    pthread_mutex_unlock(&job->outbox->lock);
}

void mica_job_end(mica_job *job)
{
    pthread_mutex_lock(&job->outbox->lock);
    job->ended = true;
    list(job);
    pthread_mutex_unlock(&job->outbox->lock);
}
