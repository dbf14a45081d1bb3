/* mica_governor.h - hold the speed that lasts: a controller between tokens that chooses threads, cores and pauses.
 *
 *     mica_governor_options o = mica_governor_options_default();
 *     o.objective = MICA_OBJECTIVE_SUSTAINED;
 *     o.device = device;                                   // mica_device.h; NULL: only the token rate is known
 *     mica_governor_new(&o, &governor, &err);
 *     session_options.governor = governor;                 // or batch_options.governor
 *     ...                                                  // generate as ever
 *     mica_governor_free(governor);                        // after the session
 *
 * It changes how fast a reply comes, never what it says: threads, chunks, drafts and pauses do not touch a bit of the
 * results. Two things that a policy may ask for are about the request and are decided before its first token: the longest
 * reply, and refusing one that may be long while the device is too hot. A governor serves one session or batch at a time, on
 * its thread. docs/governor.md explains policies and what they bring. */
#ifndef MICA_MICA_GOVERNOR_H
#define MICA_MICA_GOVERNOR_H
#include "mica/mica.h"
#include "mica/mica_device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mica_objective {
    MICA_OBJECTIVE_OFF = 0,       /* threads stay as they were chosen; a policy's limits on replies hold all the same */
    MICA_OBJECTIVE_BURST = 1,     /* latency first: the fastest cores; gives way only to a status of CRITICAL */
    MICA_OBJECTIVE_SUSTAINED = 2, /* the most tokens over the next ten minutes */
    MICA_OBJECTIVE_EFFICIENT = 3, /* the fewest joules a token, above a floor of the rate */
} mica_objective;

/** What the engine does from the next step on. */
typedef struct mica_governor_output {
    /** Threads: on the fastest cores, and on the efficient ones where the machine has both. 0 and 0: as they are. */
    int32_t n_fast, n_slow;
    int32_t pause_us;      /* after each step */
    int32_t prefill_chunk; /* tokens computed together; 0: as the session was made */
    int32_t draft_max;     /* longest draft; -1: as the session was made */
    int32_t max_tokens;    /* cap on replies that begin now; -1: none */
    int32_t refuse_above;  /* replies that may be longer are refused (MICA_TOO_HOT); -1: none is */
    bool lower_rung;       /* a smaller model would serve better: the device cannot hold the policy's floor */
} mica_governor_output;

typedef struct mica_governor_options {
    size_t struct_size;
    mica_objective objective; /* without a policy */
    /** A policy: JSON, share/mica/schemas/governor.schema.json; NULL: the objective with usual limits. Not kept. */
    const char *policy;
    size_t policy_length;
    mica_device *device; /* borrowed until the governor is freed; NULL: none */
    const char *sysroot; /* where the cores are read; NULL for the real ones. Not kept */
    int32_t n_threads;   /* threads to begin with, e.g. as `mica tune` found them; 0: all fast cores */
    int32_t max_threads; /* never more; 0: no limit of its own */
    /** The application's last word: may change what was decided, at every step. NULL: none. */
    void (*on_output)(void *user, mica_governor_output *next);
    void *user;
} mica_governor_options;

typedef struct mica_governor mica_governor;

MICA_API mica_governor_options mica_governor_options_default(void);

/** MICA_BAD_TEXT: the policy is not JSON; MICA_INVALID_ARGUMENT: it is, and a field is wrong; the message names it. */
MICA_API mica_status mica_governor_new(const mica_governor_options *options, mica_governor **out, mica_error *err);
/** NULL is fine. */
MICA_API void mica_governor_free(mica_governor *governor);

typedef struct mica_governor_info {
    mica_objective objective; /* in force now: battery and power saver may have changed it */
    mica_governor_output output;
    int64_t changes;    /* of threads or cores so far */
    double rate_tps;    /* tokens a second of computing, last measured; NAN: not yet */
    double margin_c;    /* degrees below the temperature that is held; NAN: unknown */
    bool throttled;     /* the device slows itself down */
    const char *reason; /* of the last change, for people. Static */
    const char *policy; /* its name. Borrowed until the governor is freed */
} mica_governor_info;

MICA_API void mica_governor_get_info(const mica_governor *governor, mica_governor_info *info);

/** "off", "burst", "sustained", "efficient". Static. */
MICA_API const char *mica_objective_name(mica_objective objective);

#ifdef __cplusplus
}
#endif
#endif
