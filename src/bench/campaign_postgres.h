/* campaign_postgres.h - a copy of the shards that are done in a PostgreSQL database, for those who look at results of many
 * campaigns there. What counts is the SQLite database: a copy is made of it, by a shard's id once, and what is missing there is
 * made up for at the next call. Called by campaign_nats.c. */
#ifndef MICA_BENCH_CAMPAIGN_POSTGRES_H
#define MICA_BENCH_CAMPAIGN_POSTGRES_H
#include "bench/campaign_store.h"

typedef struct mica_mirror mica_mirror;

/** `url`: postgresql://user@host/database, or what else libpq takes. Makes the tables mica_campaign and mica_shard if they
 * are not there. MICA_UNSUPPORTED: this build has no libpq. */
mica_status mica_mirror_open(const char *url, mica_mirror **out, mica_error *err);
void mica_mirror_close(mica_mirror *mirror);

/** Copies the campaign, and every shard of it that is done and not there. *copied: how many those were. After a lost connection
 * the next call connects anew. */
mica_status mica_mirror_update(mica_mirror *mirror, mica_store *store, const char *campaign_id, int64_t *copied,
                               mica_error *err);

#endif
