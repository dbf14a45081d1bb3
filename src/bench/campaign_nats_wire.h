/* campaign_nats_wire.h - what coordinator and workers say to one another, as bytes: a campaign (JSON), a shard to be computed
 * (JSON), and a result: the line "mica-shard-result 1", a 32-bit little-endian length, a JSON header of that length, and the
 * four packed parts of campaign_pack.h. Nothing that comes from the queue is trusted. Called by campaign_nats.c and
 * worker.c. */
#ifndef MICA_BENCH_CAMPAIGN_NATS_WIRE_H
#define MICA_BENCH_CAMPAIGN_NATS_WIRE_H
#include "bench/campaign_nats_link.h"
#include "bench/campaign_pack.h"

/** What a worker must have, and where the prompts are. */
typedef struct mica_notice {
    char id[65], model_sha256[65];
    double ack_wait_s;
    mica_nats_blob prompts; /* packed by mica_pack_text() */
    mica_campaign campaign; /* freed by mica_notice_free() */
} mica_notice;

/** *text is the caller's: free(). `source`: the manifest. */
mica_status mica_notice_write(const mica_notice *notice, const json_t *source, char **text, mica_error *err);
/** Whatever it says, the campaign's id is that of its manifest and model. */
mica_status mica_notice_read(const char *text, size_t length, mica_notice *out, mica_error *err);
void mica_notice_free(mica_notice *notice);

/** A shard without its items. *text is the caller's. */
mica_status mica_work_write(const mica_shard *shard, char **text, mica_error *err);
mica_status mica_work_read(const char *text, size_t length, mica_shard *out, mica_error *err);

/** What came of a shard: a result, or why there is none. */
typedef struct mica_outcome {
    char campaign[65], id[33], input[65];
    int64_t seq, started_unix, wall_ns;
    json_t *head;              /* what computed it; an object */
    char error[400];           /* "": there is a result */
    mica_packed_result packed; /* of an outcome that was read: parts of the message, borrowed */
} mica_outcome;

/** *data is the caller's. */
mica_status mica_outcome_write(const mica_outcome *outcome, void **data, size_t *length, mica_error *err);
mica_status mica_outcome_read(const void *data, size_t length, mica_outcome *out, mica_error *err);
/** Not the parts. */
void mica_outcome_free(mica_outcome *outcome);

/** A message that only says where the bytes are. False: `data` is no such message. */
bool mica_blob_word_read(const void *data, size_t length, mica_nats_blob *out);
mica_status mica_blob_word_write(const mica_nats_blob *blob, char **text, mica_error *err);

#endif
