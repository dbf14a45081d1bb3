/* worker.h - takes shards of campaigns (campaign_nats.h) from a queue, computes them, and sends the results back.
 *
 * A worker asks for the shards of a campaign only if it can compute them: the runtime is here, the model's file has the
 * campaign's SHA-256, the prompts are those of the manifest, and the engine could be opened with the memory that there is.
 * While it computes, a thread tells the queue that the shard is in work; a worker that is killed, or makes no progress for
 * MICA_WORKER_STALL_S, falls silent, and the queue gives the shard to another one. Called by programs/cmd_worker.c. */
#ifndef MICA_BENCH_WORKER_H
#define MICA_BENCH_WORKER_H
#include "bench/campaign_engine.h"
#include "bench/campaign_nats_options.h"

#define MICA_WORKER_STALL_S 600.0 /* as long as a shard may take at all */

typedef struct mica_worker_options {
    mica_nats_options nats;
    const char *name;   /* that results carry; no name of a host or person unless the user gives one */
    const char *model;  /* a file to try first; NULL: none */
    const char *models; /* a folder: the file that the campaign names, then all *.gguf in it; NULL: none */
    int32_t threads;
    bool allow_fallback;
    mica_adapter_options adapter_options; /* stop: gives up the running shard; asked all the time */
    /* The folder of the adapter with that name, "" for our own engine. False: this machine has none. */
    bool (*find_runtime)(void *user, const char *runtime, char out[4096]);
    bool (*finish)(void *user); /* true: no more shards */
    double idle_s;              /* ends after so long without work; 0: never */
    void (*on_note)(void *user, const char *text);
    void *user;
} mica_worker_options;

typedef struct mica_worker_stats {
    int64_t shards, tokens; /* computed, and taken by the queue */
    int64_t failed;
} mica_worker_stats;

mica_status mica_worker_run(const mica_worker_options *options, mica_worker_stats *stats, mica_error *err);

/* ---- worker_probe.c: what this machine can compute ---- */

typedef struct mica_worker_probe mica_worker_probe; /* hashes of model files that were looked at */

mica_worker_probe *mica_worker_probe_new(void);
void mica_worker_probe_free(mica_worker_probe *probe);

/** The file with that hash. MICA_UNSUPPORTED: this machine does not have it. */
mica_status mica_worker_model_find(mica_worker_probe *probe, const mica_worker_options *options, const char *file,
                                   const char *sha256, char out[4096], mica_error *err);
/** Whether the model's file fits into the memory that is free. Our own engine plans more exactly when it is opened. */
mica_status mica_worker_memory_check(const mica_worker_options *options, const char *model, mica_error *err);

#endif
