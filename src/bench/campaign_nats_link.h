/* campaign_nats_link.h - a NATS server with JetStream: the connection, three streams, and pieces of data larger than a message.
 *
 *     MICA_WORK     mica.work.CAMPAIGN.SEQ           shards to be computed; a message is gone once a worker has acknowledged it
 *     MICA_RESULT   mica.result.CAMPAIGN.SEQ         what came of them; gone once the coordinator has stored it
 *     MICA_DATA     mica.campaign.CAMPAIGN           what the campaign is and needs, the last word of it
 *                   mica.data.CAMPAIGN.SHA256.PART   the set of prompts, and results that no message holds
 *
 * CAMPAIGN is the beginning of the campaign's id. All streams are on the server's disk. Calls that the server must answer are
 * repeated while it is away, until link->stop says otherwise; the client library connects again by itself.
 * Called by campaign_nats.c and worker.c. One thread at a time, except where said. */
#ifndef MICA_BENCH_CAMPAIGN_NATS_LINK_H
#define MICA_BENCH_CAMPAIGN_NATS_LINK_H
#include <nats/nats.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "bench/campaign_nats_options.h"

#define MICA_STREAM_WORK   "MICA_WORK"
#define MICA_STREAM_RESULT "MICA_RESULT"
#define MICA_STREAM_DATA   "MICA_DATA"

enum { MICA_NATS_TAG = 17, MICA_NATS_SUBJECT = 160 };

typedef struct mica_nats_link {
    natsConnection *connection;
    jsCtx *js;
    atomic_int losses; /* of the connection, so far */
    bool (*stop)(void *user); /* asked while a call is repeated; NULL: it is repeated for ever */
    void *user;
} mica_nats_link;

/** MICA_IO_ERROR says what is wrong. The link must not move while it is open. */
mica_status mica_nats_open(const mica_nats_options *options, mica_nats_link *link, mica_error *err);
/** Of a link that could not be opened too, if it was zeroed before. Ends the library's threads: the last link of a process. */
void mica_nats_close(mica_nats_link *link);

/** Makes the streams, if they are not there. */
mica_status mica_nats_streams_make(mica_nats_link *link, mica_error *err);

/** A status of the library as an error. `what` begins the sentence: "the shard could not be published". */
mica_status mica_nats_fail(const mica_nats_link *link, natsStatus status, const char *what, mica_error *err);
/** Whether it may go better after a moment: the server is away, or has just come back. */
bool mica_nats_transient(const mica_nats_link *link, natsStatus status);
/** Waits a moment. False: link->stop says to give up. */
bool mica_nats_pause(const mica_nats_link *link);

/** CAMPAIGN of the subjects. */
void mica_nats_tag(const char *campaign_id, char out[MICA_NATS_TAG]);

/** Publishes and waits until the server has it. Of messages with one `id` it keeps the first; *duplicate (may be NULL) tells
 * that this was a later one. */
mica_status mica_nats_publish(mica_nats_link *link, const char *subject, const char *id, const void *data, size_t length,
                              bool *duplicate, mica_error *err);

/** The last message of a subject; destroyed by the caller. *out NULL: there is none, or no stream. */
mica_status mica_nats_last(mica_nats_link *link, const char *stream, const char *subject, natsMsg **out, mica_error *err);
/** Removes the messages of a subject, which may have wildcards. No stream is no error. */
mica_status mica_nats_purge(mica_nats_link *link, const char *stream, const char *subject, mica_error *err);
/** Calls `each` with the last word of every subject in the stream that the filter matches. */
mica_status mica_nats_subjects(mica_nats_link *link, const char *stream, const char *filter,
                               void (*each)(void *user, const char *word), void *user, mica_error *err);

/* ---- Data of any size ---- */

#define MICA_NATS_BLOB_MAX ((size_t)512 << 20)

typedef struct mica_nats_blob {
    char sha256[65];
    size_t bytes, parts;
} mica_nats_blob;

/** The most bytes that one message carries here. */
size_t mica_nats_room(const mica_nats_link *link);
/** Puts the data into MICA_DATA under its hash. Once it returns the server has all of it. */
mica_status mica_nats_blob_put(mica_nats_link *link, const char *tag, const void *data, size_t length, mica_nats_blob *out,
                               mica_error *err);
/** *data is the caller's: free(). MICA_BAD_FILE: it is not what its hash says, or not all of it is there. */
mica_status mica_nats_blob_get(mica_nats_link *link, const char *tag, const mica_nats_blob *blob, void **data, mica_error *err);
mica_status mica_nats_blob_remove(mica_nats_link *link, const char *tag, const mica_nats_blob *blob, mica_error *err);

#endif
