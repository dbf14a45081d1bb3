/* campaign_nats_open.h - the shards of a campaign that are cut and not done, in memory, as the database has them; and how fast
 * the last ones were. Called by campaign_nats.c. */
#ifndef MICA_BENCH_CAMPAIGN_NATS_OPEN_H
#define MICA_BENCH_CAMPAIGN_NATS_OPEN_H
#include "bench/campaign_run.h"

enum { MICA_RECENT_SHARDS = 64 };

typedef struct mica_open_shard {
    mica_shard shard; /* without items */
    bool queued;      /* as far as we know */
    bool before;      /* it was queued before, and is lost */
    int failures;
} mica_open_shard;

typedef struct mica_open_shards {
    mica_open_shard *item; /* in the order of seq */
    size_t n, capacity;
    mica_shard end;      /* where the next shard begins: seq, first_item, before */
    int64_t done_tokens; /* planned tokens of the shards that are done */
    mica_shard_row recent[MICA_RECENT_SHARDS];
    size_t n_recent; /* in all; they go round */
} mica_open_shards;

/** From the database. */
mica_status mica_open_shards_read(mica_store *store, const char *campaign_id, mica_open_shards *out, mica_error *err);
void mica_open_shards_free(mica_open_shards *o);

/** One that was cut at the end. */
mica_status mica_open_shards_add(mica_open_shards *o, const mica_shard *shard, mica_error *err);
/** NULL: it is done, or was never cut. */
mica_open_shard *mica_open_shards_find(mica_open_shards *o, int64_t seq);
/** It is done. */
void mica_open_shards_remove(mica_open_shards *o, mica_open_shard *shard, const mica_shard_row *row);

/** The slowest of the last ones: the next shards are cut for a machine like that. NULL: none is done. */
const mica_shard_row *mica_open_shards_slowest(const mica_open_shards *o);

#endif
