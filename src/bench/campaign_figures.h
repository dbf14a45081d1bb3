/* campaign_figures.h - what a campaign's raw samples say beside its sums (campaign_status.h): times, rates over time, memory,
 * energy, a step of throttling. For limits (slo.h): members are named as in the summary of a run where they mean the same.
 * Reads every shard that is done, one at a time; called by programs/slo_file.c.
 *
 *   ttft_p50_ms, ttft_p95_ms          request submitted -> first token; in a batch with the waiting for the steps of others
 *   itl_p50_ms, itl_p95_ms, itl_p99_ms   between tokens of a reply; of tokens that come together 0 counts as 1 us
 *   tpot_ms                           their mean
 *   tps, decode_tps                   tokens by the time of all shards: all of them, those of replies
 *   cold_tps, steady_tps              of replies, in the first 60 s and the last 180 s of computing; steady from 480 s on
 *   throttle_depth_pct                of the deepest step, 0: none was found
 *   peak_rss_bytes                    the highest reading, once a second
 *   energy_wh_per_1k                  by all tokens of the shards that have a source of energy
 *
 * null: not known. Percentiles are of bins that are 0.54 % wide, nearest rank, so that memory does not grow with the campaign.
 */
#ifndef MICA_BENCH_CAMPAIGN_FIGURES_H
#define MICA_BENCH_CAMPAIGN_FIGURES_H
#include "bench/campaign_store.h"

/** *figures, an object, is the caller's: json_decref(). */
mica_status mica_campaign_figures(mica_store *store, const char *id, json_t **figures, mica_error *err);

#endif
