#include "pull/pull.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pull/cache.h"
#include "pull/part.h"
#include "pull/transfer.h"

#define ATTEMPTS_MAX 10000 /* of one address: a server that brings a byte at a time is no server */
#define RESTARTS_MAX 3
#define PAUSE_MS     500
#define PAUSE_MAX_MS 30000

typedef struct job {
    const mica_pull_entry *entry;
    const mica_pull_options *o;
    mica_part part;
    int64_t furthest; /* most bytes that the part ever had: progress is what goes beyond */
    int32_t idle;     /* attempts in a row without */
    int32_t restarts;
    bool again; /* a wrong file was thrown away once */
} job;

static void note(const mica_pull_options *o, const char *text)
{
    if (o->on_note)
        o->on_note(o->user, text);
}

/* Half a second, then twice as long each time, or what the server asked for. */
static mica_status pause_for(const job *j, int64_t wait_ms, mica_error *err)
{
    int64_t ms = PAUSE_MS;
    for (int32_t i = 1; i < j->idle && ms < PAUSE_MAX_MS; i++)
        ms *= 2;
    if (wait_ms > ms)
        ms = wait_ms;
    for (; ms > 0; ms -= 100) {
        if (mica_pull_cancelled(j->o, "waiting", j->part.size, j->entry->bytes))
            return mica_fail(err, MICA_CANCELLED, "cancelled at byte %lld; the same command goes on there",
                             (long long)j->part.size);
        nanosleep(&(struct timespec){.tv_nsec = (ms < 100 ? ms : 100) * 1000000L}, NULL);
    }
    return MICA_OK;
}

/* ---- What an attempt came to: MICA_OK, and *done tells whether the file is there ---- */

/* By the server's words the file is whole. */
static mica_status after_whole(job *j, bool *done, mica_error *err)
{
    char sum[MICA_SHA256_TEXT];
    mica_part_sum(&j->part, sum);
    *done = !*j->entry->sha256 || strcmp(sum, j->entry->sha256) == 0;
    if (*done)
        return MICA_OK;
    int64_t bytes = j->part.size;
    mica_status status = mica_part_restart(&j->part, err);
    if (!status && j->again)
        status = mica_fail(err, MICA_BAD_FILE,
                           "the server has another file: %lld bytes with SHA-256 %.16s..., and %.16s... was wanted",
                           (long long)bytes, sum, j->entry->sha256);
    if (!status)
        note(j->o, "the file that came has the wrong checksum: fetching it again from the start");
    j->again = true;
    return status;
}

static mica_status after_restart(job *j, mica_error *err)
{
    if (++j->restarts > RESTARTS_MAX)
        return mica_fail(err, MICA_IO_ERROR, "the server does not send the part of the file that it is asked for");
    note(j->o, "what is here cannot be continued with the server's file: fetching it from the start");
    return mica_part_restart(&j->part, err);
}

static mica_status after_break(job *j, int64_t wait_ms, mica_error *err)
{
    char text[600];
    bool further = j->part.size > j->furthest;
    j->furthest = further ? j->part.size : j->furthest;
    j->idle = further ? 0 : j->idle + 1;
    if (j->idle > j->o->retries)
        return MICA_IO_ERROR;
    snprintf(text, sizeof text, "%s; trying again", err->message);
    note(j->o, text);
    return j->idle > 0 ? pause_for(j, wait_ms, err) : MICA_OK;
}

static mica_status attempt(job *j, const char *url, bool *done, bool *stop, mica_error *err)
{
    int64_t wait_ms;
    mica_transfer_end end = mica_transfer_run(j->o, url, &j->part, &wait_ms, err);
    *done = mica_part_is_whole(&j->part); /* however the connection ended */
    *stop = end == MICA_END_STOP;
    if (*done && end != MICA_END_STOP)
        return MICA_OK;
    *done = false;
    switch (end) {
    case MICA_END_WHOLE:
        return after_whole(j, done, err);
    case MICA_END_RESTART:
        return after_restart(j, err);
    case MICA_END_AGAIN:
        return after_break(j, wait_ms, err);
    default:
        return err->code;
    }
}

static mica_status fetch_from(job *j, const char *url, bool *stop, mica_error *err)
{
    bool done = false;
    mica_status status = MICA_OK;
    j->furthest = j->part.size;
    j->idle = j->restarts = 0;
    for (int32_t i = 0; i < ATTEMPTS_MAX && !status && !done; i++)
        status = attempt(j, url, &done, stop, err);
    if (status == MICA_CANCELLED)
        *stop = true;
    return status || done ? status : mica_fail(err, MICA_IO_ERROR, "the server broke off %d times", ATTEMPTS_MAX);
}

/* On success the part is the whole file, and has the right checksum if one is known. */
static mica_status fetch(job *j, mica_error *err)
{
    char text[600];
    bool stop = false;
    mica_error own;
    mica_status status = MICA_OK;
    err = err ? err : &own;
    if (mica_part_is_whole(&j->part))
        return MICA_OK;
    if (j->entry->bytes > j->part.size && mica_part_check_space(&j->part, j->entry->bytes - j->part.size, err))
        return err->code;
    if (j->entry->bytes >= 0 && j->part.size >= j->entry->bytes) { /* complete or longer, and not right */
        note(j->o, "the file that is here has the wrong checksum: fetching it from the start");
        status = mica_part_restart(&j->part, err);
    }
    for (size_t i = 0; !status && i < j->entry->n_urls; i++) {
        status = fetch_from(j, j->entry->url[i], &stop, err);
        if (!status || stop || i + 1 == j->entry->n_urls)
            return status;
        snprintf(text, sizeof text, "%s; trying the next address", err->message);
        note(j->o, text);
        status = MICA_OK;
    }
    return status;
}

/* ---- Where it goes ---- */

/* Under the part's lock, as another pull may have just put the file there. What an earlier one left in the part is of no use
 * then. */
static mica_status is_there(job *j, const char *target, bool *there, mica_error *err)
{
    char sum[MICA_SHA256_TEXT];
    *there = false;
    if (!*j->entry->sha256 || access(target, R_OK) != 0)
        return MICA_OK;
    mica_status status = mica_cache_hash(target, j->o, sum, err);
    *there = !status && strcmp(sum, j->entry->sha256) == 0;
    return *there ? mica_part_restart(&j->part, err) : status;
}

static mica_status fetch_file(job *j, const char *target, char sum[MICA_SHA256_TEXT], mica_error *err)
{
    mica_status status = fetch(j, err);
    mica_part_sum(&j->part, sum);
    return status ? status : mica_part_commit(&j->part, target, err);
}

mica_status mica_pull_file(const mica_pull_entry *entry, const char *target, const mica_pull_options *o,
                           char sum[MICA_SHA256_TEXT], mica_error *err)
{
    job j = {.entry = entry, .o = o};
    bool there;
    memcpy(sum, entry->sha256, MICA_SHA256_TEXT);
    mica_status status = mica_part_open(target, entry, o, &j.part, err);
    if (status)
        return status;
    status = is_there(&j, target, &there, err);
    if (!status && !there)
        status = fetch_file(&j, target, sum, err);
    mica_part_close(&j.part);
    return status;
}

/* What the blob is called while it comes: by its checksum, or, if that is not known, by its address. */
static bool blob_target(const mica_pull_entry *entry, const char *folder, char out[4096])
{
    char sum[MICA_SHA256_TEXT];
    mica_sha256 h;
    mica_sha256_start(&h);
    mica_sha256_add(&h, entry->url[0], strlen(entry->url[0]));
    mica_sha256_text(&h, sum);
    return snprintf(out, 4096, "%s/blobs/%s%s", folder, *entry->sha256 ? "sha256-" : "url-",
                    *entry->sha256 ? entry->sha256 : sum) < 4096;
}

/* The blob's file, if it is not there, and its name. A blob that was good a moment ago may have been removed since. */
static mica_status put(job *j, const char *folder, bool there, char path[4096], mica_error *err)
{
    char blob[4096], sum[MICA_SHA256_TEXT];
    mica_status status = MICA_OK;
    mica_part_sum(&j->part, sum);
    if (there)
        memcpy(sum, j->entry->sha256, sizeof sum);
    if (!mica_cache_blob(folder, sum, blob))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the folder of models is too long");
    if (!there)
        status = mica_part_commit(&j->part, blob, err);
    else if (access(blob, R_OK) != 0)
        status = mica_fail(err, MICA_IO_ERROR, "the model was removed while it was checked: pull it again");
    if (!status && !there)
        mica_cache_stamp(blob);
    return status ? status : mica_cache_link(folder, j->entry->name, sum, path, err);
}

mica_status mica_pull_model(const mica_pull_entry *entry, const char *folder, const mica_pull_options *o, char path[4096],
                            mica_error *err)
{
    char target[4096];
    job j = {.entry = entry, .o = o};
    if (entry->n_urls == 0 || !blob_target(entry, folder, target))
        return mica_fail(err, MICA_INVALID_ARGUMENT, "the path of the folder of models is too long");
    mica_status status = mica_cache_make(folder, err);
    if (!status)
        status = mica_part_open(target, entry, o, &j.part, err);
    if (status)
        return status;
    bool there = *entry->sha256 && access(target, R_OK) == 0 && mica_cache_check(target, o, NULL) == MICA_OK;
    status = there ? mica_part_restart(&j.part, err) : fetch(&j, err);
    int lock = status ? -1 : mica_cache_lock(folder, false);
    if (!status)
        status = put(&j, folder, there, path, err);
    if (lock >= 0)
        close(lock);
    mica_part_close(&j.part);
    return status;
}
