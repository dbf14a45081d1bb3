/* campaign_engine.h - what computes shards: our own engine with many replies at a time (campaign_batch.c), or any adapter, one
 * reply after the other (campaign_adapter.c). Owns the loaded model. Called by campaign_run.c and
 * worker.c. */
#ifndef MICA_BENCH_CAMPAIGN_ENGINE_H
#define MICA_BENCH_CAMPAIGN_ENGINE_H
#include "bench/adapter.h"
#include "bench/campaign.h"

typedef struct mica_engine_options {
    const mica_campaign *campaign;
    const mica_prompts *prompts;
    const char *model;   /* its file */
    const char *adapter; /* a folder; NULL: our own engine */
    int32_t threads;
    bool allow_fallback;
    mica_adapter_options adapter_options;          /* stop: gives up the running shard */
    void (*on_tokens)(void *user, int64_t tokens); /* so many more of the running shard are done; may be NULL */
    void *user;
} mica_engine_options;

typedef struct mica_engine mica_engine;

struct mica_engine {
    const mica_engine_options *options; /* borrowed */
    json_t *head;                       /* what computes: runtime, version, backend, device, threads */
    int64_t pid;                        /* of the process with the model; -1: not on this machine */
    mica_status (*run)(mica_engine *e, const mica_shard *shard, mica_shard_result *result, mica_error *err);
    void (*close)(mica_engine *e); /* frees */
};

/** One of the two below. *head (the caller's) tells what computes, and on which machine. */
mica_status mica_engine_open(const mica_engine_options *options, mica_engine **out, json_t **head, mica_error *err);
/** Computes a shard: its answers, and the state of the machine every second meanwhile. */
mica_status mica_engine_compute(mica_engine *e, const mica_shard *shard, mica_shard_result *result, mica_error *err);

mica_status mica_engine_batch_open(const mica_engine_options *options, mica_engine **out, mica_error *err);
mica_status mica_engine_adapter_open(const mica_engine_options *options, mica_engine **out, mica_error *err);

#endif
