/* campaign_status.h - how far a campaign is, computed from what is stored: rates, the time that is left, energy, cost. What is
 * not known is NAN. Called by programs/cmd_campaign.c. */
#ifndef MICA_BENCH_CAMPAIGN_STATUS_H
#define MICA_BENCH_CAMPAIGN_STATUS_H
#include "bench/campaign_store.h"
#include "mica/mica_ops.h"

typedef struct mica_campaign_state {
    mica_campaign_totals totals;
    int64_t tokens;                       /* done: prompts and replies as the runtime counted them */
    double part;                          /* of the planned tokens, 0..1 */
    double tps;                           /* over the time of all shards: of one machine, where many compute */
    double recent_tps;                    /* of the last five */
    double left_s;                        /* at that rate, on as many machines as lately; 0: done */
    double energy_wh;                     /* of the shards with a source */
    double usd, energy_usd, hardware_usd; /* of the tokens so far */
} mica_campaign_state;

/** `price`: what is known of the device; its rate and measured energy are filled in here. */
mica_status mica_campaign_state_read(mica_store *store, const mica_campaign_row *row, const mica_device_cost_input *price,
                                     mica_campaign_state *out, mica_error *err);

/** "done", "running" (the lock is held and work is left), "stopped". Static. */
const char *mica_campaign_state_name(const mica_campaign_state *state, bool locked);

/** All of it as an object, the caller's: json_decref(). NULL without memory. */
json_t *mica_campaign_state_json(const mica_campaign_row *row, const mica_campaign_state *state, bool locked);

/** A shard with its raw samples, the caller's: a line of mica campaign export. */
json_t *mica_campaign_shard_json(const mica_shard_row *row, const mica_shard_result *result);

#endif
