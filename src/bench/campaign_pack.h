/* campaign_pack.h - the answers of a shard as packed bytes: the blobs that a database keeps and that workers send.
 *
 * `answers` packs seven columns of n items one after the other: started_ns, done_ns, prompt_n, cached_n, gen_n, reason, and how
 * many events the answer has; `times` and `tokens` pack the events of all answers in the order of items; `samples` is a JSON
 * array. See pack.c. Nothing in packed bytes is trusted. Called by campaign_store.c and campaign_nats_wire.c. */
#ifndef MICA_BENCH_CAMPAIGN_PACK_H
#define MICA_BENCH_CAMPAIGN_PACK_H
#include "bench/campaign.h"

enum { MICA_PACKED_ANSWERS, MICA_PACKED_TIMES, MICA_PACKED_TOKENS, MICA_PACKED_SAMPLES, MICA_PACKED_PARTS };

/** Four pieces of memory. Who made them says whose they are. */
typedef struct mica_packed_result {
    void *data[MICA_PACKED_PARTS];
    size_t length[MICA_PACKED_PARTS];
} mica_packed_result;

/** The parts are the caller's: mica_packed_result_free(). */
mica_status mica_shard_result_pack(const mica_shard_result *r, mica_packed_result *out, mica_error *err);
void mica_packed_result_free(mica_packed_result *packed);

/** The result of a shard of n items, without its times of the clock (started_unix, wall_ns), which are left alone. On a failure
 * *out may still be freed. */
mica_status mica_shard_result_unpack(const mica_packed_result *packed, size_t n, mica_shard_result *out, mica_error *err);

#endif
