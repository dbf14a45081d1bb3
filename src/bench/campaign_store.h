/* campaign_store.h - campaigns and their shards in a store's database.
 *
 * Invariants:
 *  1. A shard is cut (pending) once, in the order of seq, and its result is stored once: a second result is refused, whoever
 *     brings it. A result, its sums and the state "done" come in one transaction, on the disk when the call returns.
 *  2. The sums of the columns are those of the raw samples beside them; mica_campaign_store_result() checks that.
 *  3. One process at a time runs campaigns in a database: it holds a lock on FILE.lock, which ends with the process.
 * Called by campaign_run.c, campaign_status.c and programs/cmd_campaign.c. */
#ifndef MICA_BENCH_CAMPAIGN_STORE_H
#define MICA_BENCH_CAMPAIGN_STORE_H
#include "bench/campaign.h"
#include "bench/store.h"

/** Takes the lock on the database at `path`; *fd is closed to give it back. MICA_INVALID_ARGUMENT: another process has it. */
mica_status mica_campaign_lock(const char *path, int *fd, mica_error *err);
/** Whether some process has it. */
bool mica_campaign_locked(const char *path);

/** Makes the campaign known; one that is there already stays. */
mica_status mica_campaign_store_begin(mica_store *store, const mica_campaign *c, const char *id, const char *model_sha256,
                                      mica_error *err);

/** What is to be done next. *pending: a shard that was cut and has no result, its n_items, id and input filled; else where the
 * next one begins, n_items 0. Its items are not there. */
mica_status mica_campaign_store_next(mica_store *store, const char *id, mica_shard *out, bool *pending, mica_error *err);
mica_status mica_campaign_store_cut(mica_store *store, const char *id, const mica_shard *shard, mica_error *err);
/** `head`: an object, what computed it. MICA_INVALID_ARGUMENT: no such shard is pending. */
mica_status mica_campaign_store_done(mica_store *store, const char *id, const mica_shard *shard,
                                     const mica_shard_result *result, const json_t *head, mica_error *err);

/** Sums over the shards that are done. */
typedef struct mica_campaign_totals {
    int64_t shards, items, planned, prompt_tokens, cached_tokens, reply_tokens, wall_ns;
    int64_t first_unix, last_unix;    /* when the first and the last of them began; 0: none */
    int64_t recent_tokens, recent_ns; /* of the last five */
    int64_t longest_ns;               /* the longest of them */
    double machines;                  /* how many computed at a time, of the 64 that ended last; 1 at least */
    double joules;                    /* of those with a source; NAN: none has one */
    int64_t measured_tokens;          /* tokens of those */
} mica_campaign_totals;

mica_status mica_campaign_store_totals(mica_store *store, const char *id, mica_campaign_totals *out, mica_error *err);

typedef struct mica_campaign_row {
    char id[65], name[64], model_sha256[65];
    int64_t created, tokens;
    json_t *manifest; /* borrowed for the call */
} mica_campaign_row;

/** The oldest first, until `each` returns false. */
mica_status mica_campaign_store_list(mica_store *store, bool (*each)(void *user, const mica_campaign_row *row), void *user,
                                     mica_error *err);

/** A shard as it is stored. */
typedef struct mica_shard_row {
    mica_shard shard; /* without items */
    bool done;
    int64_t started_unix, wall_ns;
    mica_shard_sums sums;
    json_t *head; /* NULL: none */
} mica_shard_row;

/** In their order. `each` returns a status that ends it. */
mica_status mica_campaign_store_shards(mica_store *store, const char *id,
                                       mica_status (*each)(void *user, const mica_shard_row *row, mica_error *err), void *user,
                                       mica_error *err);
/** The raw samples of a shard that is done, with every sum checked against them: MICA_BAD_FILE. */
mica_status mica_campaign_store_result(mica_store *store, const char *id, const mica_shard_row *row, mica_shard_result *out,
                                       mica_error *err);

#endif
