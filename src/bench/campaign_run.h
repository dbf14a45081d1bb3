/* campaign_run.h - carries a campaign on from wherever it stands, shard by shard, until it is done or told to stop.
 *
 *     mica_campaign_run_options o = {.campaign = &c, .db = path, .model = file, .prompts = file, ...};
 *     mica_status status = mica_campaign_run(&o, &outcome, &err);
 *
 * A crash at any moment loses at most the shard that runs: it was cut before it began, and is computed again from the same
 * items. Called by programs/cmd_campaign.c. */
#ifndef MICA_BENCH_CAMPAIGN_RUN_H
#define MICA_BENCH_CAMPAIGN_RUN_H
#include "bench/campaign_engine.h"
#include "bench/campaign_store.h"

typedef struct mica_campaign_progress {
    int64_t total;   /* tokens of the campaign */
    int64_t done;    /* planned tokens of the shards that are done */
    int64_t running; /* tokens of the running shard so far */
    int64_t shard;   /* its number, from 0 */
    double tps;      /* of the last shard; NAN: none is done yet */
    bool shard_done; /* the call tells that a shard was stored */
    double shard_s;  /* its time */
} mica_campaign_progress;

typedef struct mica_campaign_run_options {
    const mica_campaign *campaign;
    mica_store *store;           /* whose lock the caller holds */
    const char *model, *prompts; /* files */
    const char *adapter;         /* a folder; NULL: our own engine */
    int32_t threads;
    bool allow_fallback;
    mica_adapter_options adapter_options; /* stop: gives up the running shard */
    bool (*finish)(void *user);           /* asked between shards: true ends the run. May be NULL */
    double limit_s;                       /* no shard begins after so long; 0: no limit */
    void (*on_progress)(void *user, const mica_campaign_progress *progress); /* may be NULL */
    void *user;
} mica_campaign_run_options;

typedef enum mica_campaign_end {
    MICA_CAMPAIGN_DONE = 0,    /* every token */
    MICA_CAMPAIGN_STOPPED = 1, /* finish() said so */
    MICA_CAMPAIGN_LIMIT = 2,   /* limit_s */
} mica_campaign_end;

typedef struct mica_campaign_outcome {
    char id[65];
    int64_t shards; /* done in this call */
    mica_campaign_end end;
} mica_campaign_outcome;

mica_status mica_campaign_run(const mica_campaign_run_options *options, mica_campaign_outcome *out, mica_error *err);

/** Tokens that the next shard should have: what takes 80 % of the manifest's seconds at the rate of the last one, at most eight
 * times as many as that had; the first shard is a round of the batch. `last` NULL: there is none. `limit_s`: that is left; 0:
 * no limit. */
int64_t mica_campaign_target(const mica_campaign *c, const mica_shard_row *last, double limit_s);

#endif
