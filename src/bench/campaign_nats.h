/* campaign_nats.h - a campaign computed by many machines: the coordinator. It cuts shards, stores them as pending, hands them
 * to a queue, and stores what workers (worker.h) send back, in the same database as campaign_run.c.
 *
 * Invariants:
 *  1. The database alone says what is done. Every shard is pending in it before it is in the queue, and a message leaves the
 *     queue only after what it stands for is safe one step further: work after its result is in the queue, a result after it
 *     is in the database.
 *  2. A result counts if it is that of a pending shard, by its id and the hash of its input, and has the answers that the
 *     shard asks for. Whatever comes a second time is dropped.
 *  3. What is pending but neither queued nor answered is queued again: so any of the three (coordinator, server, worker) may
 *     lose its state at any moment.
 * Called by programs/cmd_campaign.c. */
#ifndef MICA_BENCH_CAMPAIGN_NATS_H
#define MICA_BENCH_CAMPAIGN_NATS_H
#include "bench/campaign_nats_options.h"
#include "bench/campaign_run.h"

typedef struct mica_campaign_nats_options {
    const mica_campaign *campaign;
    mica_store *store;   /* whose lock the caller holds */
    const char *model;   /* its file; NULL: the manifest's hash is believed, the workers check it */
    const char *prompts; /* a file */
    mica_nats_options nats;
    const char *postgres; /* where results are copied to as well; NULL: nowhere */
    int64_t ahead;     /* shards that are queued or being computed, at most */
    double ack_wait_s; /* a worker that is silent for so long has lost its shard */
    double limit_s;    /* no shard is queued after so long; 0: no limit */
    bool (*finish)(void *user); /* asked all the time: true ends the run; the queue stays as it is */
    void (*on_progress)(void *user, const mica_campaign_progress *progress);
    void (*on_note)(void *user, const char *text); /* what is no failure, but should be told */
    void *user;
} mica_campaign_nats_options;

typedef struct mica_campaign_nats_stats {
    int64_t queued, again;        /* shards handed to the queue in this run; of these, such that were queued before */
    int64_t duplicates, refused;  /* results that came a second time; that were wrong */
    int64_t failures;             /* shards that a worker could not compute */
} mica_campaign_nats_stats;

mica_status mica_campaign_nats_run(const mica_campaign_nats_options *options, mica_campaign_outcome *out,
                                   mica_campaign_nats_stats *stats, mica_error *err);

#endif
