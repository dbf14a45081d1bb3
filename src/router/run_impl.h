/* run_impl.h - what the run*.c share: the runner, a request on its way, an attempt of it. Private to the router, but for
 * mica_runner_set_engine(), which the server calls.
 *
 * Invariants
 *  1. `winner` is the attempt whose reply is handed over: the first that had a piece to say, or that ended well. It never
 * changes once set: so a text is of one rung.
 *  2. A remote attempt begins only after mica_ask_may_leave(), whatever the decision says.
 *  3. Fields of mica_runner below `lock` are touched with it held; those of mica_ask by its own thread, but for `winner`. */
#ifndef MICA_ROUTER_RUN_IMPL_H
#define MICA_ROUTER_RUN_IMPL_H
#include <pthread.h>

#include "base/rng.h"
#include "mica/mica_device.h"
#include "router/breaker.h"
#include "router/policy.h"
#include "router/run_local.h"
#include "router/run_redact.h"

/** What the runner knows of a rung, by its name: policies come and go. */
typedef struct mica_rung_memory {
    struct mica_rung_memory *next;
    char name[MICA_ROUTE_NAME_MAX], file[256];
    mica_breaker breaker;
    bool unreached; /* the last attempt came to no connection */
    uint64_t answered, failed, output_tokens;
    double decode_tps;    /* a moving mean of what was measured; NAN: nothing yet */
    double busy_ms;       /* local: the same of how long a reply has the rung to itself */
    double guess_ms;      /* and what a decision expected, until one is measured; NAN: nothing */
    int64_t hot_until_ns; /* the device was too hot for it */
    char weighed[256];    /* the file that `weight` is of; "": none */
    int64_t weighed_context;
    mica_rung_weight weight;
    bool looked_up;       /* the next is what the device's file has, read once */
    mica_route_rung_state kept;
} mica_rung_memory;

/** How busy an engine is: replies that run, those that wait, and how many run at the same time. */
typedef struct mica_engine_load {
    int64_t n_running, n_waiting, n_slots;
} mica_engine_load;

/** An engine beside the runner's own, which has one model loaded for good: the server's batch. Called from any thread. */
typedef struct mica_run_engine {
    /** False: it is not the rung's model. */
    bool (*run)(void *user, const mica_local_call *call, mica_try *t);
    /** The same of a model's file, and how busy the engine is. */
    bool (*load)(void *user, const char *path, mica_engine_load *out);
    int64_t bytes; /* what it takes of the memory budget, by plan */
    void *user;
} mica_run_engine;

struct mica_runner {
    mica_runner_options options; /* texts are owned */
    mica_local *local;
    mica_device *device;
    mica_held *held; /* NULL: none */
    mica_task *redact;
    pthread_mutex_t redact_lock;
    mica_run_engine engine; /* all NULL: none */
    pthread_mutex_t lock;
    mica_rung_memory *rungs;
    mica_rng rng;
    bool has_curl;
};

typedef struct mica_attempt mica_attempt;

/** One request on its way. */
typedef struct mica_ask {
    mica_runner *runner;
    const mica_run_request *request;
    mica_route_policy *policy;
    const mica_run_settings *settings;
    mica_run_body body;
    mica_route_request_file *route_file;
    mica_route_request route; /* its texts belong to the file, or to the ask */
    mica_route_state state;
    mica_route_rung_state rungs[MICA_ROUTE_RUNGS_MAX];
    char refusals[MICA_ROUTE_RUNGS_MAX][MICA_REFUSAL_MAX]; /* of `rungs` */
    const mica_rung *hot; /* the smallest local rung that the device was too hot for; NULL: none */
    mica_run_reply *reply;
    mica_constraint *check; /* of the schema, for remote replies; NULL: none */
    char id[33], key[65];
    int64_t start_ns, deadline_ns;
    int64_t loading_ns; /* until when an answer 503 of the rung at hand means that it is loading */
    _Atomic(mica_attempt *) winner;
    int64_t retries;               /* further attempts so far */
    int32_t n_remote, n_unreached; /* remote rungs tried, and those that could not be reached */
    mica_buf reasons;              /* "RUNG: why; ..." */
} mica_ask;

/** One attempt at one rung. */
struct mica_attempt {
    mica_ask *ask;
    int32_t index; /* of the rung in the policy's ladder */
    const mica_rung *rung;
    bool hedge, buffered;
    mica_try t;
    json_t *marks; /* of what was taken out */
    mica_restore restore;
    bool restores;
    mica_buf said;    /* the reply as the caller gets it */
    atomic_bool stop; /* nobody wants it any more */
};

/* run.c */
/** Before the first request. */
void mica_runner_set_engine(mica_runner *runner, const mica_run_engine *engine);
/** The runner's memory of a rung; NULL without memory. With the lock held. */
mica_rung_memory *mica_runner_memory(mica_runner *runner, const char *name);

/* run_state.c */
/** The state of device and rungs that a decision is made from. */
void mica_ask_state(mica_ask *ask);

/* run_attempt.c */
/** Whether a request may go to a remote rung at all. */
bool mica_ask_may_leave(const mica_ask *ask);
/** Runs it to its end; afterwards `t` says how that was. Breaker and figures take note. */
void mica_attempt_run(mica_attempt *a, mica_ask *ask, int32_t index, bool hedge);
void mica_attempt_free(mica_attempt *a);
/** Whether the caller has had a piece of it. */
bool mica_attempt_told(const mica_attempt *a);

/* run_hedge.c */
/** The decision's first rung in tries[0] and, if it says nothing for the policy's pause, the second in tries[1]; both are at
 * their end afterwards. Returns how many were tried. */
int32_t mica_ask_race(mica_ask *ask, mica_attempt tries[2]);

/* run_ladder.c */
/** Whether the rung's breaker lets an attempt through, which then must be made. */
bool mica_ask_may_try(mica_ask *ask, int32_t index);
/** Tries the rungs of the decision in order. */
mica_status mica_ask_climb(mica_ask *ask, mica_error *err);

#endif
