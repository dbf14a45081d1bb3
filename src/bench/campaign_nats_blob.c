/* campaign_nats_blob.c - data of any size in the stream MICA_DATA: parts that fit the server's messages, under the SHA-256 of
 * the whole. The same data put twice is there once. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/campaign_nats_link.h"

/* The server counts headers (the message's id) in its limit. A message of more than a MiB would hold up heartbeats. */
enum { HEADERS = 512, LEAST = 256, MOST = 1 << 20 };

size_t mica_nats_room(const mica_nats_link *link)
{
    int64_t limit = natsConnection_GetMaxPayload(link->connection) - HEADERS;
    return limit < LEAST ? LEAST : limit < MOST ? (size_t)limit : MOST;
}

static void hash_of(const void *data, size_t length, char out[65])
{
    uint8_t digest[32];
    crypto_hash_sha256(digest, data, length);
    sodium_bin2hex(out, 65, digest, sizeof digest);
}

static void subject_of(const char *tag, const mica_nats_blob *blob, size_t part, char out[MICA_NATS_SUBJECT])
{
    snprintf(out, MICA_NATS_SUBJECT, "mica.data.%s.%s.%zu", tag, blob->sha256, part);
}

mica_status mica_nats_blob_put(mica_nats_link *link, const char *tag, const void *data, size_t length, mica_nats_blob *out,
                               mica_error *err)
{
    size_t room = mica_nats_room(link);
    mica_status status = MICA_OK;
    hash_of(data, length, out->sha256);
    out->bytes = length;
    out->parts = (length + room - 1) / room;
    if (length == 0 || length > MICA_NATS_BLOB_MAX)
        return mica_fail(err, MICA_INVALID_ARGUMENT, "%zu bytes cannot go over the queue: 1 to %zu can", length,
                         MICA_NATS_BLOB_MAX);
    for (size_t i = 0; i < out->parts && !status; i++) {
        char subject[MICA_NATS_SUBJECT];
        size_t n = i + 1 < out->parts ? room : length - i * room;
        subject_of(tag, out, i, subject);
        status = mica_nats_publish(link, subject, NULL, (const char *)data + i * room, n, NULL, err);
    }
    return status;
}

static mica_status get_parts(mica_nats_link *link, const char *tag, const mica_nats_blob *blob, char *data, mica_error *err)
{
    mica_status status = MICA_OK;
    size_t at = 0;
    for (size_t i = 0; i < blob->parts && !status; i++) {
        char subject[MICA_NATS_SUBJECT];
        natsMsg *msg;
        subject_of(tag, blob, i, subject);
        status = mica_nats_last(link, MICA_STREAM_DATA, subject, &msg, err);
        if (status)
            return status;
        size_t n = msg ? (size_t)natsMsg_GetDataLength(msg) : 0;
        if (n == 0 || n > blob->bytes - at)
            status = mica_fail(err, MICA_BAD_FILE, "the queue does not have part %zu of %.16s whole", i, blob->sha256);
        else
            memcpy(data + at, natsMsg_GetData(msg), n);
        at += n;
        natsMsg_Destroy(msg);
    }
    if (!status && at != blob->bytes)
        status = mica_fail(err, MICA_BAD_FILE, "the queue has %zu bytes of %.16s instead of %zu", at, blob->sha256,
                           blob->bytes);
    return status;
}

mica_status mica_nats_blob_get(mica_nats_link *link, const char *tag, const mica_nats_blob *blob, void **data, mica_error *err)
{
    char hash[65];
    *data = NULL;
    if (blob->bytes == 0 || blob->bytes > MICA_NATS_BLOB_MAX || blob->parts > blob->bytes)
        return mica_fail(err, MICA_BAD_FILE, "the queue names data of %zu bytes; at most %zu are possible", blob->bytes,
                         MICA_NATS_BLOB_MAX);
    char *bytes = malloc(blob->bytes);
    if (!bytes)
        return mica_fail_nomem(err, blob->bytes, "data of the queue");
    mica_status status = get_parts(link, tag, blob, bytes, err);
    if (!status) {
        hash_of(bytes, blob->bytes, hash);
        if (strcmp(hash, blob->sha256) != 0)
            status = mica_fail(err, MICA_BAD_FILE, "data of the queue is damaged: its SHA-256 is not %.16s", blob->sha256);
    }
    if (status)
        free(bytes);
    else
        *data = bytes;
    return status;
}

mica_status mica_nats_blob_remove(mica_nats_link *link, const char *tag, const mica_nats_blob *blob, mica_error *err)
{
    char subject[MICA_NATS_SUBJECT];
    snprintf(subject, sizeof subject, "mica.data.%s.%s.*", tag, blob->sha256);
    return mica_nats_purge(link, MICA_STREAM_DATA, subject, err);
}
