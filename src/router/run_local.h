/* run_local.h - local rungs: models that are opened when they are first wanted and stay loaded, each with one session and, if
 * there is a policy for it, a governor of its own.
 *
 * Invariants
 *  1. What all loaded rungs take by plan (weights, KV cache, workspace), and what is reserved for models that others have
 *     loaded, is at most the budget. Before one more is loaded, those that run nothing are unloaded, the longest unused first;
 *     what does not fit even so is a failure, MICA_FAILURE_NO_MEMORY. mica_local_weigh() says before whether a rung can fit.
 *  2. A rung runs one reply at a time; others wait for it until their time is over.
 * Called by run_attempt.c and run.c, from any thread. */
#ifndef MICA_ROUTER_RUN_LOCAL_H
#define MICA_ROUTER_RUN_LOCAL_H
#include "mica/mica_governor.h"
#include "mica/mica_memory.h"
#include "router/run_body.h"
#include "router/run_try.h"

typedef struct mica_local mica_local;

/** `models_dir` and `sysroot` may be NULL; copied. `budget`: as mica_session_options.memory_budget, for all of them together. */
mica_status mica_local_new(const char *models_dir, const char *sysroot, int64_t budget, int32_t n_threads, mica_local **out,
                           mica_error *err);
void mica_local_free(mica_local *l);

/** Every rung that is loaded from now on runs under a governor of this policy (JSON). The device is borrowed until the end. */
mica_status mica_local_govern(mica_local *l, const char *policy, mica_device *device, mica_error *err);
/** So much of the budget belongs to others. Before the first request. */
void mica_local_reserve(mica_local *l, int64_t bytes);

/** The path of a rung's file. False: too long. */
bool mica_local_path(const mica_local *l, const char *file, char out[4096]);
bool mica_local_is_resident(mica_local *l, const char *file);

#define MICA_REFUSAL_MAX sizeof(((mica_budget *)0)->message)

/** What a rung takes, by mica_budget_check(). */
typedef struct mica_rung_weight {
    int64_t peak_bytes; /* of the process, had it nothing else loaded; -1: the file does not tell */
    int64_t free_bytes; /* of these, what must be free when it is loaded; -1 */
    char refusal[MICA_REFUSAL_MAX]; /* why it never fits the budget, beside what is reserved; "": it does */
} mica_rung_weight;

/** Reads the tables of the file, which takes milliseconds. */
void mica_local_weigh(const mica_local *l, const char *path, int64_t context, mica_rung_weight *out);

/** Requests that a rung runs or that wait for it, and for how long the one that runs has done so. */
void mica_local_queue(mica_local *l, const char *path, int64_t context, int64_t *n, double *ran_ms);

typedef struct mica_local_call {
    const mica_route_rung *rung;
    const mica_run_body *body;
    json_t *messages;           /* as they are to be read; borrowed */
    int64_t max_tokens;         /* -1: as the request says */
    int64_t first_ms, total_ms; /* from the beginning of the attempt to the first text, to the last; 0: any time */
    const mica_try_link *link;
} mica_local_call;

/** Fills *t, which mica_try_init() has made. */
void mica_local_run(mica_local *l, const mica_local_call *call, mica_try *t);

#endif
